"""`compare`: systems against each other on the same judgments. Each run is measured once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from numbers import Number
from os import PathLike
from typing import Any, get_args

from tiewise.analysis.comparison.result import Compared
from tiewise.analysis.comparison.system import System, align
from tiewise.analysis.comparison.tie_orders import Orders
from tiewise.analysis.evaluating import report_of
from tiewise.analysis.measuring import Evaluation, resolve_measures
from tiewise.analysis.options import OptionNames, Options, Unpack, takes_options
from tiewise.analysis.significance import check_confidence
from tiewise.analysis.simultaneous import TESTS, Test
from tiewise.data.columns import by_name, identifier
from tiewise.data.progress import Progress, check_progress
from tiewise.errors import InputError, MeasureError, prefix_errors, warn_of_cuts
from tiewise.io import as_qrels, as_source
from tiewise.io.run_names import name_listed
from tiewise.io.sources import check_not_swapped
from tiewise.io.types import QrelsLike, RunLike
from tiewise.metrics.aggregation import GEOMETRIC_MEAN
from tiewise.metrics.catalogue import Judged
from tiewise.metrics.definition import Measure
from tiewise.metrics.names import MeasureLike
from tiewise.results.wording import list_examples

#: One measure: each further one makes intervals wider and p-values larger.
DEFAULT_MEASURES = ("nDCG@10",)


@takes_options()
def compare(
    qrels: QrelsLike,
    runs: Mapping[Any, RunLike] | Sequence[str | PathLike[str]],
    measures: MeasureLike | Iterable[MeasureLike] = DEFAULT_MEASURES,
    *,
    baseline: str | None = None,
    orders: Orders = "independent",
    test: Test = "max-t",
    confidence: float = 0.95,
    progress: Progress | None = None,
    **options: Unpack[OptionNames],
) -> Compared:
    """Systems against each other: who is ahead, and whether ties, the sample of queries or a tool decide that.

    `runs` is ``{name: run}``, two or more, in any form that `evaluate` takes; or a list of paths, which name the runs.

    - `baseline`: the system that all others are compared with; without one, each is compared with the best, and all
      pairs are tested at once, because the best one is chosen after looking.
    - `orders`: the ties of each run are broken independently (``"independent"``), or one random order of all document
      ids breaks the ties of all runs in all queries (``"shared"``), as in a tool that sorts by id. ``"per-query"`` is
      one order for all runs, and another in each query.
    - `test`: ``"max-t"``, the largest of all paired t-statistics (one pair in one measure: Student's t), or
      ``"tukey"``, randomised Tukey HSD; both on the queries' expected values, for all measures at once.
    - `confidence` of the intervals, which hold together; a difference is shown if its p-value is below 1 − confidence.
    {options}

    >>> qrels = {"q1": {"a": 1, "b": 0}, "q2": {"c": 1}}
    >>> tied = {"q1": {"a": 1.0, "b": 1.0}, "q2": {"c": 2.0, "d": 1.0}}
    >>> late = {"q1": {"b": 2.0, "a": 1.0}, "q2": {"c": 2.0, "d": 1.0}}
    >>> pair = compare(qrels, {"tied": tied, "late": late}, "RR", complete=True).pair("tied", "late")
    >>> pair.difference
    RR 0.1250 [0.0000, 0.2500]
    >>> pair.certain, pair.probability, pair.probability_equal
    (False, 0.5, 0.5)
    """
    runs = name_listed(runs)
    if not isinstance(runs, Mapping):
        raise InputError(f"Give the runs as {{name: run}}, not as a {type(runs).__name__}.")
    chosen, checked = resolve_measures(measures), Options.of("compare", options)
    for one in chosen:
        if one.aggregation is GEOMETRIC_MEAN:
            raise MeasureError(
                f"{one} is a geometric mean over queries, so two systems have no difference in a query. Compare "
                f"{one.stem.replace('GM', 'Log')} instead: in one order of ties its mean is the logarithm of {one}."
            )
    if any(isinstance(run, Mapping) and any(isinstance(x, Number) for x in run.values()) for run in runs.values()):
        raise InputError("These are the lists of one run. Name each run: {'A': run, 'B': other}.")
    named = by_name(runs, "system")
    baseline = None if baseline is None else identifier(baseline, "system")
    if len(named) < 2:
        raise InputError(f"A comparison is between two systems or more; {len(named)} was given.")
    if baseline is not None and baseline not in named:
        raise InputError(f"The baseline '{baseline}' is not one of the systems: {list_examples(named, 5)}.")
    check_options(orders, test, confidence)
    report_progress = check_progress(progress)
    systems = []
    for done, system in enumerate(measure_systems(qrels, named, chosen, checked, counted=[Judged]), 1):
        systems.append(system)  # how much is judged is noted
        report_progress(done, len(named))
    measured = [one for one in chosen if any(len(system.estimates[one]) for system in systems)]
    if not measured:
        raise InputError(f"No query is left to compare by {list_examples(chosen)}: see missing= and no_relevant=.")
    if orders != "independent":  # an order for several runs is an order of all their documents
        kept = {measure: align(systems, measure).kept for measure in measured}
        for system in systems:
            with prefix_errors(f"Run '{system.name}'"):
                system.find_documents(kept, across_queries=orders == "shared")
    compared = Compared(systems, measured, baseline, orders, test, confidence, checked.seed)
    warn_of_cuts(compared.cut_note)
    return compared


def measure_systems(
    qrels: QrelsLike,
    runs: Mapping[str, RunLike],
    measures: list[Measure],
    options: Options,
    *,
    counted: Iterable[Measure] = (),
) -> Iterator[System]:
    """Each run, counted and measured on the same judgments, and counted for some more measures."""
    judged = as_qrels(qrels)
    sources = {}
    for name, run in runs.items():
        with prefix_errors_of(name, run):
            sources[name] = as_source(run)
    for name, source in sources.items():
        with prefix_errors(f"Run '{name}'"):
            check_not_swapped(qrels, runs[name], judged)
            evaluation = Evaluation.of(judged, source, options, [*measures, *counted])
            system = System(name, evaluation, report_of(evaluation, measures))
        yield system


def prefix_errors_of(name: str, run: object) -> AbstractContextManager[None]:
    """Start what errors say with the name of the run, unless they name its file."""
    return nullcontext() if isinstance(run, (str, PathLike)) else prefix_errors(f"Run '{name}'")


def check_options(orders: Any, test: Any, confidence: Any) -> None:
    """Raise an error for invalid options, before anything is read."""
    for name, given, known in (("orders", orders, get_args(Orders)), ("test", test, TESTS)):
        if given not in known:
            *most, last = map(repr, known)
            raise InputError(f"Unknown {name} {given!r}. Use {', '.join(most)} or {last}.")
    check_confidence(confidence)
