"""Tiewise and the tools beside it, through each door that they have. Imports are done before the clock runs.

A contender is a function that takes the paths of qrels and run and returns two more: one that prepares what is already
in memory when the clock starts, and one that is timed. All compute the same five measures; only Tiewise and trm also
give expectation, extremes and bias.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

Timed = tuple[Callable[[], Any], Callable[[Any], float]]

MEASURES = ["nDCG@10", "AP", "RR", "P@10", "R@100"]
TREC = {"ndcg_cut.10", "map", "recip_rank", "P.10", "recall.100"}


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


def _tiewise() -> Any:
    tw = importlib.import_module("tiewise")
    _ = tw.evaluate, tw.read_run  # names are imported when first asked for: ask before the clock runs
    return tw


def tiewise_files(qrels: Path, run: Path) -> Timed:
    tw = _tiewise()
    return lambda: None, lambda _: tw.evaluate(qrels, run, MEASURES)["nDCG@10"].oblivious


def tiewise_dicts(qrels: Path, run: Path) -> Timed:
    tw = _tiewise()
    return lambda: dicts(qrels, run), lambda both: tw.evaluate(*both, MEASURES)["nDCG@10"].oblivious


def tiewise_columns(qrels: Path, run: Path) -> Timed:
    tw = _tiewise()

    def prepare() -> Any:
        held = tw.read_qrels(qrels), tw.read_run(run)
        _ = held[1].doc_index  # the index by id belongs to the columns, as a dict's hash table does to a dict
        return held

    return prepare, lambda both: tw.evaluate(*both, MEASURES)["nDCG@10"].oblivious


def tiewise_drop_in(qrels: Path, run: Path) -> Timed:
    module = importlib.import_module("tiewise.adapters.pytrec_eval")
    return _relevance_evaluator(module, qrels, run)


def pytrec_eval_dicts(qrels: Path, run: Path) -> Timed:
    return _relevance_evaluator(importlib.import_module("pytrec_eval"), qrels, run)


def _relevance_evaluator(module: Any, qrels: Path, run: Path) -> Timed:
    def timed(both: Any) -> float:
        found = module.RelevanceEvaluator(both[0], TREC).evaluate(both[1])
        return sum(values["ndcg_cut_10"] for values in found.values()) / len(both[0])

    return lambda: dicts(qrels, run), timed


def pytrec_eval_files(qrels: Path, run: Path) -> Timed:
    module = importlib.import_module("pytrec_eval")

    def timed(_: Any) -> float:
        with qrels.open() as judged, run.open() as listed:
            labels, scores = module.parse_qrel(judged), module.parse_run(listed)
        found = module.RelevanceEvaluator(labels, TREC).evaluate(scores)
        return sum(values["ndcg_cut_10"] for values in found.values()) / len(labels)

    return lambda: None, timed


def ir_measures_files(qrels: Path, run: Path) -> Timed:
    irm = importlib.import_module("ir_measures")
    asked = [irm.nDCG @ 10, irm.AP, irm.RR, irm.P @ 10, irm.R @ 100]

    def timed(_: Any) -> float:
        judged, listed = irm.read_trec_qrels(str(qrels)), irm.read_trec_run(str(run))
        return float(irm.calc_aggregate(asked, judged, listed)[irm.nDCG @ 10])

    return lambda: None, timed


def ir_measures_dicts(qrels: Path, run: Path) -> Timed:
    irm = importlib.import_module("ir_measures")
    asked = [irm.nDCG @ 10, irm.AP, irm.RR, irm.P @ 10, irm.R @ 100]
    return lambda: dicts(qrels, run), lambda both: float(irm.calc_aggregate(asked, *both)[irm.nDCG @ 10])


RANX = ["ndcg@10", "map", "mrr", "precision@10", "recall@100"]


def _warm_ranx(ranx: Any) -> None:
    """Compile before the clock runs: ranx's first call takes seconds, which would hide the rest."""
    ranx.evaluate(ranx.Qrels({"q": {"d": 1}}), ranx.Run({"q": {"d": 1.0}}), RANX)


def ranx_files(qrels: Path, run: Path) -> Timed:
    ranx = importlib.import_module("ranx")
    _warm_ranx(ranx)

    def timed(_: Any) -> float:
        judged, listed = ranx.Qrels.from_file(str(qrels), kind="trec"), ranx.Run.from_file(str(run), kind="trec")
        return float(ranx.evaluate(judged, listed, RANX, make_comparable=True)["ndcg@10"])

    return lambda: None, timed


def ranx_dicts(qrels: Path, run: Path) -> Timed:
    ranx = importlib.import_module("ranx")
    _warm_ranx(ranx)

    def timed(both: Any) -> float:
        judged, listed = ranx.Qrels(both[0]), ranx.Run(both[1])
        return float(ranx.evaluate(judged, listed, RANX, make_comparable=True)["ndcg@10"])

    return lambda: dicts(qrels, run), timed


def trm_lists(qrels: Path, run: Path) -> Timed:
    """The other tie-aware package: lists of scores and of flags; unretrieved documents it does not know."""
    trm = importlib.import_module("trm")

    def prepare() -> Any:
        labels, scores = dicts(qrels, run)
        asked = [query for query in scores if query in labels]
        flags = [[labels[query].get(doc, 0) >= 1 for doc in scores[query]] for query in asked]
        return [list(scores[query].values()) for query in asked], flags

    def timed(both: Any) -> float:
        found = trm.evaluate(*both, metrics=["ndcg", "map", "mrr", "precision", "recall"], k_list=[10, 100])
        return float(found.metrics["ndcg"][10].expected)

    return prepare, timed


CONTENDERS: dict[str, dict[str, Callable[[Path, Path], Timed]]] = {
    "files": {
        "tiewise": tiewise_files,
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
    "columns": {"tiewise": tiewise_columns, "pytrec_eval (dicts)": pytrec_eval_dicts, "trm (lists)": trm_lists},
}

warnings.simplefilter("ignore")
