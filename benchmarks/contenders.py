"""Tiewise and other tools, for each kind of input that they take.

A contender is a function of the paths of qrels and run. It returns two functions: one that prepares the data that is in
memory when the clock starts, and one that is timed and returns the means. All compute the same five measures for every
query. Tiewise computes all its statistics: expectation, extremes, variance, oblivious value and cut bounds. For a
program that is not Python, the whole process counts: its contender returns the command, and a function that reads its
output.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

Means = dict[str, float]
Timed = tuple[Callable[[], Any], Callable[[Any], Means]]
Command = tuple[list[str], Callable[[str], Means]]

#: Each measure, with trec_eval's name for it as an option and in the output.
TREC = {
    "nDCG@10": ("ndcg_cut.10", "ndcg_cut_10"),
    "AP": ("map", "map"),
    "RR": ("recip_rank", "recip_rank"),
    "P@10": ("P.10", "P_10"),
    "R@100": ("recall.100", "recall_100"),
}
MEASURES = list(TREC)

#: The environment variable with the path of a trec_eval binary.
TREC_EVAL = "TREC_EVAL"


def read(path: Path, number: type, doc: int, value: int) -> dict[str, dict[str, Any]]:
    """{query: {document: number}} from a file."""
    table: dict[str, dict[str, Any]] = {}
    with path.open() as lines:
        for line in lines:
            parts = line.split()
            table.setdefault(parts[0], {})[parts[doc]] = number(parts[value])
    return table


def dicts(qrels: Path, run: Path) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, float]]]:
    return read(qrels, int, 2, 3), read(run, float, 2, 4)


#: trec_eval prints four digits, so its means may differ by half of the last one.
TOLERANCE = 0.00005 + 1e-9


def check_means(name: str, theirs: Mapping[str, float], ours: Mapping[str, float]) -> None:
    """Stop if a tool that breaks ties as trec_eval does has other means."""
    for measure in MEASURES:
        if abs(theirs[measure] - ours[measure]) > TOLERANCE:
            raise SystemExit(f"{name} has {measure} {theirs[measure]}, Tiewise has {ours[measure]}: not comparable.")


# -- Tiewise ----------------------------------------------------------------------------------------------------------


def load_tiewise(threads: int = 1, reader: str = "compiled") -> Any:
    """The package, with the reader and the number of threads set."""
    os.environ["TIEWISE_READER"] = reader
    if (importlib.import_module("tiewise.data.native").native() is None) != (reader == "python"):
        raise SystemExit("the compiled reader is not installed")
    streaming: Any = importlib.import_module("tiewise.io.streaming")
    streaming.THREADS = threads
    return importlib.import_module("tiewise")


def means(report: Any) -> Means:
    """The oblivious means, which other tools print, after reading every statistic of every query and of the mean."""
    result = {}
    for measure in MEASURES:
        each, mean = report.per_query(measure), report[measure]
        _ = each.expected, each.minimum, each.maximum, each.variance, each.oblivious, each.cut
        _ = mean.expected, mean.minimum, mean.maximum, mean.std, mean.cut
        result[measure] = mean.oblivious
    return result


def _from_files(**options: Any) -> Callable[[Path, Path], Timed]:
    def contender(qrels: Path, run: Path) -> Timed:
        tw = load_tiewise(**options)
        return lambda: None, lambda _: means(tw.evaluate(qrels, run, MEASURES))

    return contender


tiewise_files = _from_files()
tiewise_two_threads = _from_files(threads=2)
tiewise_python_reader = _from_files(reader="python")


def tiewise_dicts(qrels: Path, run: Path) -> Timed:
    tw = load_tiewise()
    return lambda: dicts(qrels, run), lambda both: means(tw.evaluate(*both, MEASURES))


def tiewise_prepared_qrels(qrels: Path, run: Path) -> Timed:
    tw = load_tiewise()

    def prepare() -> Any:
        labels, scores = dicts(qrels, run)
        return tw.Qrels.from_dict(labels), scores

    return prepare, lambda both: means(tw.evaluate(*both, MEASURES))


def tiewise_columns(qrels: Path, run: Path) -> Timed:
    tw = load_tiewise()

    def prepare() -> Any:
        data = tw.read_qrels(qrels), tw.read_run(run)
        _ = data[1].doc_index  # the index by id is part of the columns, as the hash table is part of a dictionary
        return data

    return prepare, lambda both: means(tw.evaluate(*both, MEASURES))


def tiewise_arrow(qrels: Path, run: Path) -> Timed:
    tw = load_tiewise()
    csv = importlib.import_module("pyarrow.csv")

    def table(path: Path, names: list[str], columns: list[str]) -> Any:
        texts = dict.fromkeys(("query", "doc"), "string")
        return csv.read_csv(
            path,
            read_options=csv.ReadOptions(column_names=names),
            parse_options=csv.ParseOptions(delimiter=" "),
            convert_options=csv.ConvertOptions(include_columns=columns, column_types=texts),
        )

    def prepare() -> Any:
        judgments = table(qrels, ["query", "Q0", "doc", "label"], ["query", "doc", "label"])
        rows = table(run, ["query", "Q0", "doc", "rank", "score", "tag"], ["query", "doc", "score"])
        return judgments, rows

    return prepare, lambda both: means(tw.evaluate(*both, MEASURES))


def tiewise_drop_in(qrels: Path, run: Path) -> Timed:
    load_tiewise()
    return _relevance_evaluator(importlib.import_module("tiewise.adapters.pytrec_eval"), qrels, run)


# -- others -----------------------------------------------------------------------------------------------------------


def pytrec_eval_dicts(qrels: Path, run: Path) -> Timed:
    return _relevance_evaluator(importlib.import_module("pytrec_eval"), qrels, run)


def _relevance_evaluator(module: Any, qrels: Path, run: Path) -> Timed:
    return lambda: dicts(qrels, run), lambda both: pytrec_means(module, *both)


def pytrec_eval_files(qrels: Path, run: Path) -> Timed:
    module = importlib.import_module("pytrec_eval")

    def timed(_: Any) -> Means:
        with qrels.open() as judgments, run.open() as rows:
            labels, scores = module.parse_qrel(judgments), module.parse_run(rows)
        return pytrec_means(module, labels, scores)

    return lambda: None, timed


def pytrec_means(module: Any, labels: Mapping[str, Any], scores: Mapping[str, Any]) -> Means:
    """The means of pytrec_eval, or of its drop-in, over the judged queries."""
    return evaluator_means(pytrec_evaluator(module, labels), scores, len(labels))


def pytrec_evaluator(module: Any, labels: Mapping[str, Any]) -> Any:
    """An evaluator of pytrec_eval, or of its drop-in."""
    return module.RelevanceEvaluator(labels, {option for option, _ in TREC.values()})


def evaluator_means(evaluator: Any, scores: Mapping[str, Any], n_queries: int) -> Means:
    """The means of an evaluator over the judged queries."""
    queries = evaluator.evaluate(scores).values()
    return {name: sum(values[key] for values in queries) / n_queries for name, (_, key) in TREC.items()}


def ir_measures_means(module: Any = None) -> tuple[Any, Callable[[Any, Any], Means]]:
    """ir_measures, and a function from qrels and run to the means of its `calc_aggregate`, or of the drop-in's."""
    irm = importlib.import_module("ir_measures")
    measures = _ir_measures()

    def calculate(qrels: Any, run: Any) -> Means:
        return _named((module or irm).calc_aggregate(measures, qrels, run))

    return irm, calculate


def ir_measures_kept(module: Any, qrels: Any) -> Callable[[Any], Means]:
    """A function from a run to the means of one evaluator of ir_measures, or of its drop-in."""
    evaluator = module.evaluator(_ir_measures(), qrels)
    return lambda run: _named(evaluator.calc_aggregate(run))


def _ir_measures() -> list[Any]:
    irm = importlib.import_module("ir_measures")
    return [irm.nDCG @ 10, irm.AP, irm.RR, irm.P @ 10, irm.R @ 100]


def _named(values: Mapping[Any, Any]) -> Means:
    return {name: float(values[measure]) for name, measure in zip(MEASURES, _ir_measures(), strict=True)}


def ir_measures_files(qrels: Path, run: Path) -> Timed:
    irm, calculate = ir_measures_means()
    return lambda: None, lambda _: calculate(irm.read_trec_qrels(str(qrels)), irm.read_trec_run(str(run)))


def ir_measures_dicts(qrels: Path, run: Path) -> Timed:
    _, calculate = ir_measures_means()
    return lambda: dicts(qrels, run), lambda both: calculate(*both)


RANX = ["ndcg@10", "map", "mrr", "precision@10", "recall@100"]


def _ranx_means(ranx: Any, qrels: Any, run: Any) -> Means:
    values = ranx.evaluate(qrels, run, RANX, make_comparable=True)
    return {name: float(values[key]) for name, key in zip(MEASURES, RANX, strict=True)}


def ranx_files(qrels: Path, run: Path) -> Timed:
    ranx = importlib.import_module("ranx")

    def timed(_: Any) -> Means:
        both = ranx.Qrels.from_file(str(qrels), kind="trec"), ranx.Run.from_file(str(run), kind="trec")
        return _ranx_means(ranx, *both)

    return lambda: None, timed


def ranx_dicts(qrels: Path, run: Path) -> Timed:
    ranx = importlib.import_module("ranx")
    return lambda: dicts(qrels, run), lambda both: _ranx_means(ranx, ranx.Qrels(both[0]), ranx.Run(both[1]))


def trm_lists(qrels: Path, run: Path) -> Timed:
    """The other tie-aware package. It takes lists of scores and of flags, and ignores unretrieved documents."""
    trm = importlib.import_module("trm")

    def prepare() -> Any:
        labels, scores = dicts(qrels, run)
        queries = [query for query in scores if query in labels]
        flags = [[labels[query].get(doc, 0) >= 1 for doc in scores[query]] for query in queries]
        return [list(scores[query].values()) for query in queries], flags

    def timed(both: Any) -> Means:
        result = trm.evaluate(*both, metrics=["ndcg", "map", "mrr", "precision", "recall"], k_list=[10, 100])
        return {"nDCG@10": float(result.metrics["ndcg"][10].expected)}

    return prepare, timed


# -- programs ---------------------------------------------------------------------------------------------------------


def wc(qrels: Path, run: Path) -> Command:
    """Counting lines: a lower bound for the cost of reading a file."""
    return ["wc", "-l", str(run)], lambda _: {}


def trec_eval(qrels: Path, run: Path) -> Command:
    """The binary that the environment variable names."""
    if TREC_EVAL not in os.environ:
        raise SystemExit("no binary was given")
    options = [word for name, _ in TREC.values() for word in ("-m", name)]

    def read_output(output: str) -> Means:
        values = {name: float(value) for name, _, value in map(str.split, output.splitlines())}
        return {name: values[key] for name, (_, key) in TREC.items()}

    return [os.environ[TREC_EVAL], *options, str(qrels), str(run)], read_output


COMMANDS: dict[str, Callable[[Path, Path], Command]] = {"wc -l": wc, "trec_eval": trec_eval}

PREPARED = "tiewise, prepared Qrels"

#: By kind of input. The commands also read files.
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
        PREPARED: tiewise_prepared_qrels,
        "tiewise drop-in": tiewise_drop_in,
        "pytrec_eval": pytrec_eval_dicts,
        "ir_measures": ir_measures_dicts,
        "ranx": ranx_dicts,
    },
    "columns": {"tiewise": tiewise_columns, "tiewise, Arrow": tiewise_arrow, "trm (lists)": trm_lists},
}

#: Tools that break ties as trec_eval does, so their means must agree; those of ranx and trm differ.
SAME_TIES = {"trec_eval", "pytrec_eval", "ir_measures"}

#: The shapes for which a tool needs minutes. It is left out there, and the table shows a dash.
TOO_SLOW = {
    ("columns", "trm (lists)"): {"dl", "marco", "large", "robust", "robust-untied"},
    ("files", "ir_measures"): {"large"},
    ("files", "ranx"): {"large"},
}

#: Tools that compile for half a minute in every turn. They take part only with --compiling.
COMPILING = {"ranx"}


def contender_names(source: str, shape: str, compiling: bool) -> list[str]:
    """The contenders for a kind of input and a shape."""
    names = [*(COMMANDS if source == "files" else ()), *CONTENDERS[source]]
    left_out = set() if compiling else COMPILING
    return [name for name in names if name not in left_out and shape not in TOO_SLOW.get((source, name), ())]
