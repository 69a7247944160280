"""`evaluate`: judgments and a run in, a `Report` out, with every measure as an estimate over the orders of ties."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tiewise.analysis.measuring import Evaluation, resolve_measures
from tiewise.analysis.options import OptionNames, Options, Unpack, takes_options
from tiewise.analysis.reports import Report
from tiewise.errors import InputError, warn_of_cuts
from tiewise.io import as_qrels, as_source
from tiewise.io.reading import column_format
from tiewise.io.sources import check_not_swapped
from tiewise.metrics.definition import Measure
from tiewise.metrics.names import MeasureLike
from tiewise.results.wording import count_noun, list_examples

if TYPE_CHECKING:
    from tiewise.io.types import QrelsLike, RunLike

#: What is measured by default.
DEFAULT_MEASURES = ("nDCG@10", "AP", "RR", "P@10", "R@100")


@takes_options()
def evaluate(
    qrels: QrelsLike | None,
    run: RunLike,
    measures: MeasureLike | Iterable[MeasureLike] = DEFAULT_MEASURES,
    *,
    input_columns: str | Sequence[str] | None = None,
    rerun: RunLike | tuple[RunLike, RunLike] | None = None,
    noise: float | str | None = None,
    **options: Unpack[OptionNames],
) -> Report:
    """A `Report` of the measures of a run, each exact over all orders of its tied documents.

    `qrels` and `run` are a path, ``{query: {document: number}}``, a data frame, rows of three values, or `Qrels` and
    `Run`; a run may also be `TieGroups`, or a run in shards that `tiewise.adapters.ray.count` counted. For diversity
    measures, judgments are ``{query: {document: {subtopic: label}}}`` or ``read_qrels(path, kind="diversity")``.

    - `input_columns`: the columns of the run's file, if it does not say itself which is which: "query,doc,score".
    - `rerun`: a second run of the same system (another batch size, GPU, kernel or seed), also of some queries alone, or
      a pair of two such runs of other queries. Then ``report["nDCG@10"].rerun`` is the `Rerun` band.
    - `noise`: the standard deviation of normal noise, or ``"uniform:0.001"`` for half the width of uniform noise. Then
      ``report["nDCG@10"].noise`` is what such `Noise` would do to the mean: for study, not for claims.
    {options}

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
    source = as_source(run, format=column_format(None, input_columns))
    check_not_swapped(qrels, run, judged)
    report = report_of(Evaluation.of(judged, source, checked, chosen), chosen)
    if rerun is not None or noise is not None:
        report = report.with_noise(rerun=rerun, noise=noise)
    warn_of_cuts(report.cut_note)
    return report


def report_of(evaluation: Evaluation, measures: list[Measure]) -> Report:
    """The report of a run that was counted."""
    options = evaluation.options
    if evaluation.counted.complete and not options.complete:
        options = replace(options, complete=True)
        evaluation = Evaluation(evaluation.counted, options, evaluation.source, evaluation.qrels)
    if options.missing == "error" and not evaluation.ties.present.all():
        absent = [evaluation.qrels.queries[place] for place in np.flatnonzero(~evaluation.ties.present).tolist()]
        number = count_noun(len(absent), "judged query is", "judged queries are")
        raise InputError(f"{number} missing from the run: {list_examples(absent)}.")
    return Report(evaluation, evaluation.estimates(measures))
