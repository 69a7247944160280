"""`evaluate`: judgments and a run in, a `Report` out, with every measure as an estimate over the orders of ties."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tiewise.analysis.measuring import Evaluation, resolve_measures
from tiewise.analysis.options import EvaluateNames, Options
from tiewise.analysis.reports import Report
from tiewise.errors import CutWarning, InputError
from tiewise.io import as_qrels, as_source
from tiewise.io.sources import check_not_swapped
from tiewise.io.types import QrelsLike, RunLike
from tiewise.metrics.definition import Measure
from tiewise.metrics.names import MeasureLike
from tiewise.tables.wording import count_noun, list_examples

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["DEFAULT_MEASURES", "evaluate", "report_of"]

#: What is measured by default.
DEFAULT_MEASURES = ("nDCG@10", "AP", "RR", "P@10", "R@100")


def evaluate(
    qrels: QrelsLike | None,
    run: RunLike,
    measures: MeasureLike | Iterable[MeasureLike] = DEFAULT_MEASURES,
    **options: Unpack[EvaluateNames],
) -> Report:
    """A `Report` of the measures of a run, each exact over all orders of its tied documents.

    `qrels` and `run` are a path, ``{query: {document: number}}``, a data frame, rows of three values, or `Qrels` and
    `Run`; a run may also be `TieGroups`, or a run in shards that `tiewise.adapters.ray.count` counted. For diversity
    measures, judgments are ``{query: {document: {subtopic: label}}}`` or ``read_qrels(path, kind="diversity")``.

    Options:

    - `oblivious` (default ``"trec_eval"``): the order whose value is reported beside the expectation: the name of a
      tool, or ``"given"``, ``"docid-desc"``, ``"docid-asc"``, ``"rank"`` (the file's rank column); None for none. For a
      measure that a tool does not have, its usual order is used.
    - `missing`: judged queries that the run does not have score 0 (``"zero"``, the default), are left out
      (``"skip"``), or are an ``"error"``. `no_relevant`: the same for queries without a relevant document (``"zero"``
      or ``"skip"``).
    - `score_dtype`: round scores to ``"float32"``, ``"float16"``, ``"bfloat16"`` or ``"decimal:3"`` first.
    - `depth`: only the first ranks count. `judged_only`: unjudged documents, and those with a label below 0, are
      removed first, as ``trec_eval -J`` does.
    - `complete`: the lists are complete, so a list that ends inside a tie group was not truncated there.
    - `drop_self`: documents with the id of their query are removed first, as BEIR and some tasks of MTEB do;
      ``oblivious="beir"`` includes it. `distances`: the scores are distances, lowest first; they are negated.
    - `samples` and `seed`: the number of random orders, and their seed, for the few statistics that have no closed form
      and too many arrangements of ties to enumerate; `Estimate.method` says which.

    >>> import tiewise as tw
    >>> qrels = {"q1": {"a": 1, "b": 0}, "q2": {"c": 1}}
    >>> run = {"q1": {"a": 0.5, "b": 0.5, "x": 0.1}, "q2": {"c": 0.9, "y": 0.8}}
    >>> report = tw.evaluate(qrels, run, ["RR", "nDCG@10"])
    >>> report["RR"]
    RR 0.8750 [0.7500, 1.0000]
    >>> report.per_query("RR")["q1"].oblivious  # trec_eval lists tied documents by descending id: b, a
    0.5
    """
    chosen = resolve_measures(measures)
    checked = Options.of("evaluate", options)
    judged = None if qrels is None else as_qrels(qrels)
    source = as_source(run)
    check_not_swapped(qrels, run, judged)
    report = report_of(Evaluation.of(judged, source, checked, chosen), chosen)
    if report.is_cut:
        warnings.warn(report.cut_note, CutWarning, stacklevel=2)
    return report


def report_of(evaluation: Evaluation, measures: list[Measure]) -> Report:
    """The report of a run that was counted."""
    options = evaluation.options
    if evaluation.counted.complete and not options.complete:
        options = replace(options, complete=True)
        evaluation = Evaluation(evaluation.counted, options, evaluation.source, evaluation.qrels)
    absent = [evaluation.qrels.queries[place] for place in np.flatnonzero(~evaluation.ties.present).tolist()]
    if absent and options.missing == "error":
        number = count_noun(len(absent), "judged query is", "judged queries are")
        raise InputError(f"{number} missing from the run: {list_examples(absent)}.")
    return Report(evaluation, evaluation.estimates(measures))
