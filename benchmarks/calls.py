"""Calls in a loop in one process: the cost of a small call, and of many runs with the same judgments.

Small calls are for 1, 10 and 50 queries of 100 documents, and for 400 of 20, with 20 judgments each. Contenders take
turns in batches of calls; the CPU time of a call is that of the fastest batch. Runs that are `Run` objects are new in
each call, so they bring no cached results. Other tools and their drop-ins are called with a new evaluator in each
call, and with one evaluator for all calls.

    python -m benchmarks.calls FOLDER [--quick]    one process, which prints its measurements as JSON
"""

from __future__ import annotations

import importlib
import json
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.contenders import (
    MEASURES,
    PREPARED,
    Means,
    check_means,
    dicts,
    evaluator_means,
    ir_measures_kept,
    ir_measures_means,
    load_tiewise,
    means,
    pytrec_evaluator,
    pytrec_means,
)
from benchmarks.shapes import CALL_DOCUMENTS, Scores, files, reorder
from benchmarks.turns import Row
from benchmarks.worker import clock

DICTIONARIES, OBJECTS = "tiewise, dictionaries", "tiewise, Qrels and Run"
#: `evaluate` alone: with its notes, but without its numbers, which are made when they are looked at.
ALONE = f"{PREPARED}, evaluate alone"
PYTREC_EVAL, IR_MEASURES = "pytrec_eval", "ir_measures"
KEPT = ", one evaluator"
#: The drop-in for each tool, with a new evaluator in each call and with one for all calls.
DROP_INS = {
    tool + kept: f"tiewise drop-in for {tool}{kept}" for tool in (PYTREC_EVAL, IR_MEASURES) for kept in ("", KEPT)
}


class Lazy(Mapping[str, float]):
    """The oblivious means of a report, made when they are looked at."""

    def __init__(self, report: Any):
        self._report = report

    def __getitem__(self, measure: str) -> float:
        return float(self._report[measure].oblivious)

    def __iter__(self) -> Iterator[str]:
        return iter(MEASURES)

    def __len__(self) -> int:
        return len(MEASURES)


class Contender(NamedTuple):
    """A function that is timed, and one that makes its argument before."""

    prepare: Callable[[], tuple[Any, Any]]
    call: Callable[[Any, Any], Mapping[str, float]]


def small_calls(queries: int, folder: Path, batches: int, batch_seconds: float) -> list[Row]:
    """The CPU seconds of a call of each contender."""
    contenders = _contenders(*dicts(*files(f"call-{queries}", folder)))
    calls = {}
    expected: Mapping[str, float] = {}
    for name, contender in contenders.items():
        for _ in range(2):  # some tools import at their first call
            values, cpu, _ = clock(partial(contender.call, *contender.prepare()))
        expected = expected or values
        check_means(name, values, expected)
        calls[name] = max(1, round(batch_seconds / cpu))
    best = dict.fromkeys(contenders, float("inf"))
    for _ in range(batches):
        for name, contender in contenders.items():
            best[name] = min(best[name], _time_batch(contender, calls[name]))
    return [{"queries": queries, "tool": name, "cpu": cpu} for name, cpu in best.items()]


def _time_batch(contender: Contender, calls: int) -> float:
    arguments = [contender.prepare() for _ in range(calls)]

    def batch() -> None:
        for argument in arguments:
            contender.call(*argument)

    return clock(batch)[1] / calls


def _contenders(labels: dict[str, dict[str, int]], scores: Scores) -> dict[str, Contender]:
    tw = load_tiewise()
    pytrec_eval = importlib.import_module("pytrec_eval")
    drop_in = importlib.import_module("tiewise.adapters.pytrec_eval")
    ir_measures = importlib.import_module("ir_measures")
    ir_drop_in = importlib.import_module("tiewise.adapters.ir_measures")
    qrels = tw.Qrels.from_dict(labels)

    def evaluate(qrels: Any, run: Any) -> Means:
        return means(tw.evaluate(qrels, run, MEASURES))

    def new_run() -> tuple[Any, Any]:
        run = tw.Run.from_dict(scores)
        _ = run.doc_index  # the index by id is part of the columns, as the hash table is part of a dictionary
        return qrels, run

    def both() -> tuple[Any, Any]:
        return labels, scores

    found = {
        DICTIONARIES: Contender(both, evaluate),
        PREPARED: Contender(lambda: (qrels, scores), evaluate),
        ALONE: Contender(lambda: (qrels, scores), lambda qrels, run: Lazy(tw.evaluate(qrels, run, MEASURES))),
        OBJECTS: Contender(new_run, evaluate),
    }
    for name, module in {DROP_INS[PYTREC_EVAL]: drop_in, PYTREC_EVAL: pytrec_eval}.items():
        kept = pytrec_evaluator(module, labels)
        found[name] = Contender(both, partial(pytrec_means, module))
        found[name + KEPT] = Contender(both, lambda _, run, kept=kept: evaluator_means(kept, run, len(labels)))
    for name, module in {DROP_INS[IR_MEASURES]: ir_drop_in, IR_MEASURES: ir_measures}.items():
        once = ir_measures_kept(module, labels)
        found[name] = Contender(both, ir_measures_means(module)[1])
        found[name + KEPT] = Contender(both, lambda _, run, once=once: once(run))
    return found


# -- many runs --------------------------------------------------------------------------------------------------------


def many_runs(shape: str, runs: int, folder: Path, batches: int) -> list[Row]:
    """For Tiewise and pytrec_eval: the CPU seconds to prepare the judgments, of the first run and of a later run."""
    labels, scores = dicts(*files(shape, folder))
    variants = [scores, *(reorder(scores, seed) for seed in range(1, runs))]
    tw, pytrec_eval = load_tiewise(), importlib.import_module("pytrec_eval")
    names = {"ndcg_cut.10", "map", "recip_rank", "P.10", "recall.100"}
    prepare: dict[str, Callable[[], Any]] = {
        "tiewise": lambda: tw.Qrels.from_dict(labels),
        PYTREC_EVAL: lambda: pytrec_eval.RelevanceEvaluator(labels, names),
    }
    evaluate: dict[str, Callable[[Any, Scores], Any]] = {
        "tiewise": lambda qrels, run: means(tw.evaluate(qrels, run, MEASURES)),
        PYTREC_EVAL: lambda evaluator, run: evaluator.evaluate(run),
    }
    for tool in prepare:  # some tools import at their first call
        evaluate[tool](prepare[tool](), scores)
    best: dict[str, Row] = {}
    for _ in range(batches):
        for tool in prepare:
            judgments, cpu, _ = clock(prepare[tool])
            calls = (partial(evaluate[tool], judgments, run) for run in variants)
            each = [clock(call)[1] for call in calls]
            spent = {"prepare": cpu, "first": each[0], "later": sum(each[1:]) / (runs - 1)}
            before = best.get(tool, spent)
            best[tool] = {name: min(before[name], spent[name]) for name in spent}
    return [{"shape": shape, "tool": tool, "runs": runs, **spent} for tool, spent in best.items()]


# -- rows -------------------------------------------------------------------------------------------------------------


def named_tuples(shape: str, folder: Path, turns: int) -> list[Row]:
    """The CPU seconds of ir_measures, and of its drop-in, with one evaluator and a run of its own named tuples."""
    labels, scores = dicts(*files(shape, folder))
    ir_measures = importlib.import_module("ir_measures")
    rows = [ir_measures.ScoredDoc(query, doc, score) for query, docs in scores.items() for doc, score in docs.items()]
    modules = {
        DROP_INS[IR_MEASURES + KEPT]: importlib.import_module("tiewise.adapters.ir_measures"),
        IR_MEASURES + KEPT: ir_measures,
    }
    calls = {name: partial(ir_measures_kept(module, labels), rows) for name, module in modules.items()}
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(turns):
        for name, call in calls.items():
            best[name] = min(best[name], clock(call)[1])
    return [{"shape": shape, "tool": name, "cpu": cpu} for name, cpu in best.items()]


def main() -> None:
    warnings.simplefilter("ignore")
    folder, quick = Path(sys.argv[1]), "--quick" in sys.argv
    batches, batch_seconds = (2, 0.005) if quick else (15, 0.1)
    calls = [row for queries in CALL_DOCUMENTS for row in small_calls(queries, folder, batches, batch_seconds)]
    runs = [
        row
        for shape in ("robust", "robust-untied")[: 1 if quick else 2]
        for row in many_runs(shape, 2 if quick else 20, folder, 1 if quick else 5)
    ]
    tuples = named_tuples("robust", folder, 2 if quick else 5)
    print(json.dumps({"calls": calls, "many_runs": runs, "tuples": tuples}))


if __name__ == "__main__":
    main()
