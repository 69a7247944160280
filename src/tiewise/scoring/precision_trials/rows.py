"""What the trials of vectors and of rerankers share: their options, and a row of the table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from tiewise.analysis.measuring import resolve_measures
from tiewise.analysis.reports import Report
from tiewise.analysis.significance import check_options
from tiewise.data.judgments import Qrels
from tiewise.data.runs import Run
from tiewise.errors import InputError, MeasureError
from tiewise.io import as_qrels
from tiewise.metrics.aggregation import MEAN
from tiewise.metrics.definition import Measure
from tiewise.metrics.estimate import Bounds
from tiewise.metrics.names import MeasureLike, parse
from tiewise.rankings.run_similarity import similarity
from tiewise.scoring.precision_trials.result import DEFAULT_CUTOFF, PrecisionRow
from tiewise.scoring.precision_trials.setups import Setup

__all__ = ["check_trial", "make_row", "take_first_for_relevant"]


def check_trial(
    measures: MeasureLike | Iterable[MeasureLike], max_loss: float | None, resamples: int, seed: int
) -> list[Measure]:
    """The measures; an error if an option is not possible."""
    check_options(resamples=resamples, seed=seed)
    if max_loss is not None and not 0 < max_loss < 1:
        raise InputError(f"max_loss lies between 0 and 1, such as 0.005, not {max_loss!r}.")
    chosen = resolve_measures(measures)
    for one in chosen:
        if one.aggregation is not MEAN:
            raise MeasureError(
                f"{one} is not a mean over queries, so rows have no mean difference. Use another measure."
            )
    return chosen


def make_row(
    setup: Setup | str,
    run: Run,
    reference: Run,
    evaluate: Callable[[list[Measure]], Report],
    measures: Sequence[Measure],
    phi: float,
) -> PrecisionRow:
    """A row from a run, the run of the reference, and a function that measures the row."""
    judged = parse("Judged")(norm="cap") @ (measures[0].cutoff or DEFAULT_CUTOFF)
    report = evaluate([*measures, judged])
    runs = {"a": run, "b": reference}

    def compare(measure: str) -> Bounds:
        return similarity(runs, f"{measure}(phi={phi})", edge="extend", complete=True).pair("a", "b")

    return PrecisionRow(
        setup=setup,
        estimates={measure: report.per_query(measure) for measure in measures},
        judged=report[judged].expected,
        rbo=compare("RBO"),
        rbr=compare("RBR") if isinstance(setup, Setup) else None,
        tied_share=run.tied_share,
    )


def take_first_for_relevant(run: Run, measure: Measure) -> Qrels:
    """Judgments in which the first documents of each list alone are relevant, and all that tie with the last."""
    cutoff = measure.cutoff or DEFAULT_CUTOFF
    labels = {}
    for query, scores in run.to_dict().items():
        lowest = sorted(scores.values(), reverse=True)[:cutoff][-1]
        labels[query] = {doc: 1 for doc, score in scores.items() if score >= lowest}
    return as_qrels(labels)
