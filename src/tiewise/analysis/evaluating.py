"""`evaluate`: judgments and a run in, a `Report` out, with every measure as an estimate over the orders of ties."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from numbers import Integral
from typing import Any, Literal

import numpy as np

from tiewise.analysis.measuring import asked, estimates
from tiewise.analysis.readings import CountedRun, Readings
from tiewise.analysis.reports import Report
from tiewise.errors import CutWarning, InputError, counted, listed
from tiewise.metrics.definition import Measure
from tiewise.ties.groups import TieGroups

__all__ = ["DEFAULT_MEASURES", "check_options", "evaluate"]

#: What is measured when nothing is asked for.
DEFAULT_MEASURES = ("nDCG@10", "AP", "RR", "P@10", "R@100")


def evaluate(
    qrels: Any,
    run: Any,
    measures: str | Measure | Iterable[str | Measure] = DEFAULT_MEASURES,
    *,
    oblivious: str | None = "trec_eval",
    missing: Literal["zero", "skip", "error"] = "zero",
    no_relevant: Literal["zero", "skip"] = "zero",
    score_dtype: str | None = None,
    depth: int | None = None,
    judged_only: bool = False,
    complete: bool = False,
) -> Report:
    """A `Report` of the measures of a run, each exact over all orders of its tied documents.

    `qrels` and `run` are a path, ``{query: {document: number}}``, a data frame, rows of three values, or `Qrels` and
    `Run`; a run may also be `TieGroups`, or a run in shards as `tiewise.adapters.ray.count` counted it.

    - `oblivious`: the order whose value stands beside the expectation: the name of a tool, or ``"given"``,
      ``"docid-desc"``, ``"docid-asc"``, ``"rank"`` (the file's rank column); None for none. A tool that does not have
      a measure lends its usual order.
    - `missing`: judged queries that the run does not have score 0 (``"zero"``), are left out (``"skip"``), or are an
      ``"error"``. `no_relevant`: the same for queries without a relevant document.
    - `score_dtype`: read scores as ``"float32"``, ``"float16"``, ``"bfloat16"`` or ``"decimal:3"`` first.
    - `depth`: only the first ranks count. `judged_only`: unjudged documents, and those with a label below 0, are taken
      out of the lists first, as ``trec_eval -J`` does.
    - `complete`: the lists are whole, so one that ends inside a tie group was not cut there.

    >>> import tiewise as tw
    >>> qrels = {"q1": {"a": 1, "b": 0}, "q2": {"c": 1}}
    >>> run = {"q1": {"a": 0.5, "b": 0.5, "x": 0.1}, "q2": {"c": 0.9, "y": 0.8}}
    >>> report = tw.evaluate(qrels, run, ["RR", "nDCG@10"])
    >>> report["RR"]
    RR 0.8750 [0.7500, 1.0000]
    >>> report.per_query("RR")["q1"].oblivious  # trec_eval lists tied documents by descending id: b, a
    0.5
    """
    chosen = asked(measures)
    check_options(oblivious, missing, no_relevant, score_dtype, depth)
    depth = None if depth is None else int(depth)
    options = {
        "oblivious": oblivious,
        "missing": missing,
        "no_relevant": no_relevant,
        "score_dtype": score_dtype,
        "depth": depth,
        "judged_only": judged_only,
        "complete": complete or (isinstance(run, (TieGroups, CountedRun)) and run.complete),
    }
    readings = Readings(qrels, run, score_dtype=score_dtype, judged_only=judged_only, depth=depth)
    found = estimates(chosen, readings, options)
    absent = [readings.qrels.queries[place] for place in np.flatnonzero(~readings.ties.present).tolist()]
    if absent and missing == "error":
        number = counted(len(absent), "judged query is", "judged queries are")
        raise InputError(f"{number} missing from the run: {listed(absent)}.")
    report = Report(found, readings, options)
    if report.cut_lists:
        warnings.warn(report.cut_note, CutWarning, stacklevel=2)
    return report


def check_options(
    oblivious: str | None, missing: str, no_relevant: str, score_dtype: str | None, depth: int | None
) -> None:
    """Raise if an option of an evaluation is not one; asked before anything is read."""
    if missing not in ("zero", "skip", "error") or no_relevant not in ("zero", "skip"):
        raise InputError("missing is 'zero', 'skip' or 'error'; no_relevant is 'zero' or 'skip'.")
    if depth is not None and (not isinstance(depth, Integral) or isinstance(depth, bool) or not 1 <= depth <= 2**53):
        raise InputError(f"depth is a whole number of ranks from 1 on, not {depth!r}.")
    if not isinstance(oblivious, (str, type(None))) or not isinstance(score_dtype, (str, type(None))):
        raise InputError("oblivious and score_dtype are names, or None.")
