"""Tiewise and the tools beside it, through each door that they have.

A contender is a function that takes the paths of qrels and run and returns two more: one that prepares what is already
in memory when the clock starts, and one that is timed and returns the means. All compute the same five measures for
every query; only Tiewise and trm also give expectation, extremes and bias. Programs that are no Python are charged from
their start: a contender of theirs returns the words of the command, and how its output is read.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

Means = dict[str, float]
Timed = tuple[Callable[[], Any], Callable[[Any], Means]]
Command = tuple[list[str], Callable[[str], Means]]

#: Each measure, and what trec_eval calls it when asked and when it answers.
TREC = {
    "nDCG@10": ("ndcg_cut.10", "ndcg_cut_10"),
    "AP": ("map", "map"),
    "RR": ("recip_rank", "recip_rank"),
    "P@10": ("P.10", "P_10"),
    "R@100": ("recall.100", "recall_100"),
}
MEASURES = list(TREC)

#: Where the path of a binary of trec_eval is found.
TREC_EVAL = "TREC_EVAL"


def read(path: Path, number: type, doc: int, value: int) -> dict[str, dict[str, Any]]:
    """{query: {document: number}} from a file, for those who start from dicts."""
    table: dict[str, dict[str, Any]] = {}
    with path.open() as lines:
        for line in lines:
            parts = line.split()
            table.setdefault(parts[0], {})[parts[doc]] = number(parts[value])
    return table


def dicts(qrels: Path, run: Path) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, float]]]:
    return read(qrels, int, 2, 3), read(run, float, 2, 4)


# -- Tiewise ----------------------------------------------------------------------------------------------------------


def _tiewise(threads: int = 1, reader: str = "compiled") -> Any:
    os.environ["TIEWISE_READER"] = reader
    if (importlib.import_module("tiewise.data.native").native() is None) != (reader == "python"):
        raise SystemExit("the compiled reader is not installed")
    importlib.import_module("tiewise.io.streaming").THREADS = threads
    return importlib.import_module("tiewise")


def means(report: Any) -> Means:
    """The oblivious means, which other tools print; every statistic of every query was asked for before."""
    for measure in MEASURES:
        found = report.per_query(measure)
        _ = found.expected, found.minimum, found.maximum, found.variance, found.oblivious
        _ = report[measure].std
    return {measure: report[measure].oblivious for measure in MEASURES}


def _of_files(**how: Any) -> Callable[[Path, Path], Timed]:
    def contender(qrels: Path, run: Path) -> Timed:
        tw = _tiewise(**how)
        return lambda: None, lambda _: means(tw.evaluate(qrels, run, MEASURES))

    return contender


tiewise_files = _of_files()
tiewise_two_threads = _of_files(threads=2)
tiewise_python_reader = _of_files(reader="python")


def tiewise_dicts(qrels: Path, run: Path) -> Timed:
    tw = _tiewise()
    return lambda: dicts(qrels, run), lambda both: means(tw.evaluate(*both, MEASURES))


def tiewise_columns(qrels: Path, run: Path) -> Timed:
    tw = _tiewise()

    def prepare() -> Any:
        held = tw.read_qrels(qrels), tw.read_run(run)
        _ = held[1].doc_index  # the index by id belongs to the columns, as a dict's hash table does to a dict
        return held

    return prepare, lambda both: means(tw.evaluate(*both, MEASURES))


def tiewise_arrow(qrels: Path, run: Path) -> Timed:
    tw = _tiewise()
    csv = importlib.import_module("pyarrow.csv")

    def table(path: Path, names: list[str], kept: list[str]) -> Any:
        texts = dict.fromkeys(("query", "doc"), "string")
        return csv.read_csv(
            path,
            read_options=csv.ReadOptions(column_names=names),
            parse_options=csv.ParseOptions(delimiter=" "),
            convert_options=csv.ConvertOptions(include_columns=kept, column_types=texts),
        )

    def prepare() -> Any:
        judged = table(qrels, ["query", "Q0", "doc", "label"], ["query", "doc", "label"])
        listed = table(run, ["query", "Q0", "doc", "rank", "score", "tag"], ["query", "doc", "score"])
        return judged, listed

    return prepare, lambda both: means(tw.evaluate(*both, MEASURES))


def tiewise_drop_in(qrels: Path, run: Path) -> Timed:
    _tiewise()
    return _relevance_evaluator(importlib.import_module("tiewise.adapters.pytrec_eval"), qrels, run)


# -- others -----------------------------------------------------------------------------------------------------------


def pytrec_eval_dicts(qrels: Path, run: Path) -> Timed:
    return _relevance_evaluator(importlib.import_module("pytrec_eval"), qrels, run)


def _relevance_evaluator(module: Any, qrels: Path, run: Path) -> Timed:
    return lambda: dicts(qrels, run), lambda both: _pytrec_means(module, *both)


def pytrec_eval_files(qrels: Path, run: Path) -> Timed:
    module = importlib.import_module("pytrec_eval")

    def timed(_: Any) -> Means:
        with qrels.open() as judged, run.open() as listed:
            labels, scores = module.parse_qrel(judged), module.parse_run(listed)
        return _pytrec_means(module, labels, scores)

    return lambda: None, timed


def _pytrec_means(module: Any, labels: Mapping[str, Any], scores: Mapping[str, Any]) -> Means:
    found = module.RelevanceEvaluator(labels, {asked for asked, _ in TREC.values()}).evaluate(scores).values()
    return {name: sum(values[told] for values in found) / len(labels) for name, (_, told) in TREC.items()}


def _ir_measures() -> tuple[Any, Callable[..., Means]]:
    irm = importlib.import_module("ir_measures")
    asked = [irm.nDCG @ 10, irm.AP, irm.RR, irm.P @ 10, irm.R @ 100]

    def calculate(judged: Iterable[Any], listed: Iterable[Any]) -> Means:
        found = irm.calc_aggregate(asked, judged, listed)
        return {name: float(found[measure]) for name, measure in zip(MEASURES, asked, strict=True)}

    return irm, calculate


def ir_measures_files(qrels: Path, run: Path) -> Timed:
    irm, calculate = _ir_measures()
    return lambda: None, lambda _: calculate(irm.read_trec_qrels(str(qrels)), irm.read_trec_run(str(run)))


def ir_measures_dicts(qrels: Path, run: Path) -> Timed:
    _, calculate = _ir_measures()
    return lambda: dicts(qrels, run), lambda both: calculate(*both)


RANX = ["ndcg@10", "map", "mrr", "precision@10", "recall@100"]


def _ranx_means(ranx: Any, judged: Any, listed: Any) -> Means:
    found = ranx.evaluate(judged, listed, RANX, make_comparable=True)
    return {name: float(found[asked]) for name, asked in zip(MEASURES, RANX, strict=True)}


def ranx_files(qrels: Path, run: Path) -> Timed:
    ranx = importlib.import_module("ranx")

    def timed(_: Any) -> Means:
        judged, listed = ranx.Qrels.from_file(str(qrels), kind="trec"), ranx.Run.from_file(str(run), kind="trec")
        return _ranx_means(ranx, judged, listed)

    return lambda: None, timed


def ranx_dicts(qrels: Path, run: Path) -> Timed:
    ranx = importlib.import_module("ranx")
    return lambda: dicts(qrels, run), lambda both: _ranx_means(ranx, ranx.Qrels(both[0]), ranx.Run(both[1]))


def trm_lists(qrels: Path, run: Path) -> Timed:
    """The other tie-aware package: lists of scores and of flags; unretrieved documents it does not know."""
    trm = importlib.import_module("trm")

    def prepare() -> Any:
        labels, scores = dicts(qrels, run)
        asked = [query for query in scores if query in labels]
        flags = [[labels[query].get(doc, 0) >= 1 for doc in scores[query]] for query in asked]
        return [list(scores[query].values()) for query in asked], flags

    def timed(both: Any) -> Means:
        found = trm.evaluate(*both, metrics=["ndcg", "map", "mrr", "precision", "recall"], k_list=[10, 100])
        return {"nDCG@10": float(found.metrics["ndcg"][10].expected)}

    return prepare, timed


# -- programs ---------------------------------------------------------------------------------------------------------


def wc(qrels: Path, run: Path) -> Command:
    """Counting lines: the least that reading a file can cost."""
    return ["wc", "-l", str(run)], lambda _: {}


def trec_eval(qrels: Path, run: Path) -> Command:
    """The binary that the environment names."""
    if TREC_EVAL not in os.environ:
        raise SystemExit("no binary was given")
    asked = [word for name, _ in TREC.values() for word in ("-m", name)]

    def read(output: str) -> Means:
        told = {name: float(value) for name, _, value in map(str.split, output.splitlines())}
        return {name: told[answer] for name, (_, answer) in TREC.items()}

    return [os.environ[TREC_EVAL], *asked, str(qrels), str(run)], read


COMMANDS: dict[str, Callable[[Path, Path], Command]] = {"wc -l": wc, "trec_eval": trec_eval}

#: By door; commands read files, and stand there too.
CONTENDERS: dict[str, dict[str, Callable[[Path, Path], Timed]]] = {
    "files": {
        "tiewise": tiewise_files,
        "tiewise, 2 threads": tiewise_two_threads,
        "tiewise, Python reader": tiewise_python_reader,
        "pytrec_eval": pytrec_eval_files,
        "ir_measures": ir_measures_files,
        "ranx": ranx_files,
    },
    "dicts": {
        "tiewise": tiewise_dicts,
        "tiewise drop-in": tiewise_drop_in,
        "pytrec_eval": pytrec_eval_dicts,
        "ir_measures": ir_measures_dicts,
        "ranx": ranx_dicts,
    },
    "columns": {"tiewise": tiewise_columns, "tiewise, Arrow": tiewise_arrow, "trm (lists)": trm_lists},
}

#: Who breaks ties as trec_eval does, so must come to the same means; ranx and trm do not.
FOLLOWERS = {"trec_eval", "pytrec_eval", "ir_measures"}

#: Where a tool needs minutes, it is left out of a shape, and the table shows a dash.
TOO_SLOW = {
    ("columns", "trm (lists)"): {"dl", "marco", "large"},
    ("files", "ir_measures"): {"large"},
    ("files", "ranx"): {"large"},
}

#: Who compiles for half a minute before every turn, and takes part only if asked to.
COMPILING = {"ranx"}


def names(door: str, shape: str, compiling: bool) -> list[str]:
    """Who takes turns at a door."""
    everybody = [*(COMMANDS if door == "files" else ()), *CONTENDERS[door]]
    left_out = set() if compiling else COMPILING
    return [name for name in everybody if name not in left_out and shape not in TOO_SLOW.get((door, name), ())]
