"""A system of a comparison: a run that was counted once, its estimates, and how tie order spreads its sum over queries.

`align` puts the estimates of all systems side by side, over the queries that all of them have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tiewise.analysis.comparison.distribution import MIN_DRAWS, Distribution, TiedGroups
from tiewise.analysis.comparison.shared_order import TiedDocuments
from tiewise.analysis.measuring import Evaluation
from tiewise.analysis.reports import Report
from tiewise.analysis.settings import Settings
from tiewise.analysis.unjudged_bounds import Unjudged, unjudged
from tiewise.caching import cached_method
from tiewise.data.columns import Floats
from tiewise.errors import InputError
from tiewise.metrics import engine
from tiewise.metrics.aggregation import sum_over_queries
from tiewise.metrics.catalogue import Judged
from tiewise.metrics.definition import Measure
from tiewise.metrics.estimate import Estimates, Methods
from tiewise.metrics.tool_rules import TOOLS, Rule
from tiewise.ties.counted import DTYPES
from tiewise.ties.orders import ORDER_NAMES, TOOL_ORDERS


class PrintedValue(NamedTuple):
    """What a tool prints for a run."""

    value: float
    same_definition: bool  #: whether the tool differs from our measure only by the order of ties


class System:
    """A run with its name and the estimates of all measures."""

    def __init__(self, name: str, evaluation: Evaluation, report: Report):
        self.name, self.report, self._evaluation = name, report, evaluation
        self.estimates: Mapping[Measure, Estimates] = {measure: report.per_query(measure) for measure in report}
        self.documents: dict[Measure, TiedDocuments] = {}  #: those of the tie groups that matter: see `find_documents`

    @property
    def oblivious(self) -> str | None:
        """The order of ties, or the tool, of the oblivious values."""
        return self._evaluation.options.oblivious

    @property
    def _samples(self) -> int:
        return self._evaluation.options.samples

    @property
    def draws(self) -> int:
        """How often the distributions of tie groups are drawn from, if their sum has too many values."""
        return max(self._samples, MIN_DRAWS)

    def kept(self, measure: Measure) -> NDArray[np.bool_]:
        """Which of the judged queries its estimates have, (n_judged_queries,)."""
        return self._are_in(self.estimates[measure].queries)

    def _are_in(self, queries: Sequence[str]) -> NDArray[np.bool_]:
        """Which of the judged queries these are."""
        if len(queries) == len(self._evaluation.qrels.queries):
            return np.ones(len(queries), dtype=bool)
        known = set(queries)
        return np.array([query in known for query in self._evaluation.qrels.queries], dtype=bool)

    # -- the order of ties --------------------------------------------------------------------------------------

    @cached_method
    def tied(self, measure: Measure, kept: NDArray[np.bool_]) -> TiedGroups:
        """The tie groups whose order can change a measure, in the queries that are compared."""
        return TiedGroups(measure, self._evaluation.grouped(measure), kept)

    def find_documents(self, kept: Mapping[Measure, NDArray[np.bool_]], *, across_queries: bool) -> None:
        """Find all documents of these groups, for each measure: an order for several runs needs them."""
        options, source = self._evaluation.options, self._evaluation.source
        assert source is not None
        whole = source.rows() if options.score_dtype is None else source.rows().projected(options.score_dtype)
        for measure, queries in kept.items():
            condensed = options.judged_only or measure.judged_only
            run = whole.judged_only(self._evaluation.qrels) if condensed else whole
            tied = self.tied(measure, queries)
            self.documents[measure] = TiedDocuments(tied, run, across_queries=across_queries)

    def constant(self, measure: Measure, kept: NDArray[np.bool_]) -> float:
        """The sum over queries without what these groups add."""
        expected = np.zeros(len(kept))
        expected[self.kept(measure)] = self.estimates[measure].expected
        return self.tied(measure, kept).constant(expected)

    @cached_method
    def sum_distribution(self, measure: Measure, kept: NDArray[np.bool_], seed: int) -> Distribution:
        """The distribution of the sum over queries in a random order of the run's ties."""
        found = self.tied(measure, kept).distribution(self._samples, seed)
        return found.shift(self.constant(measure, kept))

    @cached_method
    def sample_sums(self, measure: Measure, kept: NDArray[np.bool_], seed: int) -> Floats:
        """The sum over queries in random orders that are the same for all runs."""
        return self.documents[measure].sample(self._samples, seed) + self.constant(measure, kept)

    # -- judgments ----------------------------------------------------------------------------------------------

    @cached_method
    def judged(self, k: int) -> tuple[float, float] | None:
        """The shares of its first k ranks that are judged, and that are not; None if only some tie groups are known.

        The two are below 1 together where lists are shorter.
        """
        try:
            each = self.report.at(Judged @ k).per_query(Judged @ k)
        except InputError:
            return None
        listed = np.minimum(self._evaluation.ties.limit[self._are_in(each.queries)], k) / k
        judged = float(each.expected.mean())
        return judged, float(listed.mean()) - judged

    def unjudged(self, measures: Sequence[Measure]) -> Unjudged | None:
        """The bounds over all labels of unjudged documents; None if only tie groups are known."""
        options, source = self._evaluation.options, self._evaluation.readable
        if source is None or options.judged_only:
            return None
        whole = options.to_dict() | {"drop_self": False, "distances": False}  # the source is so already
        return unjudged(self._evaluation.qrels, source.rows(), measures, **whole)

    # -- tools --------------------------------------------------------------------------------------------------

    @cached_method
    def printed(self, measure: Measure) -> dict[str, PrintedValue]:
        """What each known tool prints, and the value of the measure in each order that one of them uses."""
        counted = self._evaluation.counted
        if not all(counted.has(order, dtype) for order in TOOL_ORDERS for dtype in DTYPES):
            return {}
        printed = {
            row.tool: PrintedValue(row.value, self._has_same_definition(measure, row.tool))
            for row in self.report.select([measure]).oblivious_by_tool()
            if row.value is not None
        }
        for order in TOOL_ORDERS:
            if (value := self._evaluation.mean_in_order(measure, Rule(order))) is not None:
                printed[ORDER_NAMES[order]] = PrintedValue(value, True)
        return printed

    def _has_same_definition(self, measure: Measure, tool: str) -> bool:
        """Whether a tool's definition and queries give the same expectation as ours here."""
        rule, ours = TOOLS[tool].rule(measure), self.estimates[measure]
        assert rule is not None
        rule = rule.settle(self.report[measure])
        cuts_first = measure.judged_only and self._evaluation.options.depth is not None  # then it drops unjudged ones
        if cuts_first or self.report.drops_self(TOOLS[tool]):
            return False
        own = rule.measure or measure
        is_ours = own == measure and not rule.retrieved_only and len(ours) == len(self._evaluation.qrels.queries)
        each = ours.expected if is_ours else self._expected(own, rule.retrieved_only)
        kept = Settings.of_rule(rule, measure).kept(self._evaluation)
        each = each[kept & ~np.isnan(each)]  # NaN: it is not defined there
        mean = self.report[measure].expected
        assert mean is not None
        return bool(len(each)) and abs(measure.aggregation.of_values(each) - mean) < 1e-9

    @cached_method
    def _expected(self, measure: Measure, retrieved_only: bool) -> Floats:
        return engine.expected(measure, self._evaluation.grouped(measure, retrieved_only=retrieved_only))


# -- all systems ------------------------------------------------------------------------------------------------------


class Sums(NamedTuple):
    """The sums over queries of one system, or of its difference from another with independent orders of ties."""

    expected: float
    minimum: float
    maximum: float
    variance: float

    def minus(self, other: Sums) -> Sums:
        """The sums of the difference."""
        low, high = self.minimum - other.maximum, self.maximum - other.minimum
        return Sums(self.expected - other.expected, low, high, self.variance + other.variance)


@dataclass(frozen=True)
class Aligned:
    """The estimates of one measure: a row for each query, a column for each system."""

    measure: Measure
    queries: tuple[str, ...]
    kept: NDArray[np.bool_]  # (n_judged_queries,): which of the judged queries these are
    expected: Floats  # (n_queries, n_systems)
    minimum: Floats
    maximum: Floats
    variance: Floats
    methods: tuple[Methods | None, ...]  # how the statistics of each system were found; None: all are exact

    @property
    def scale(self) -> float:
        """The factor from a mean to the value that is reported: 1, or the number of queries for counts."""
        return float(len(self.queries)) if self.measure.total else 1.0

    def mean(self, values: Floats) -> Floats:
        """The mean over queries, as it is reported."""
        return sum_over_queries(values) / len(values) * self.scale

    @cached_method
    def rows(self) -> Floats:
        """The expected values with a row for each system."""
        return np.ascontiguousarray(self.expected.T)

    @cached_method
    def sums(self) -> list[Sums]:
        """Those of each system."""
        columns = (self.expected, self.minimum, self.maximum, self.variance)
        return [Sums(*row) for row in zip(*(sum_over_queries(column).tolist() for column in columns), strict=True)]

    def take(self, systems: Sequence[int]) -> Aligned:
        """The columns of some systems."""
        return replace(
            self,
            expected=self.expected[:, systems],
            minimum=self.minimum[:, systems],
            maximum=self.maximum[:, systems],
            variance=self.variance[:, systems],
            methods=tuple(self.methods[system] for system in systems),
        )

    @property
    def difference(self) -> Floats:
        """The expected value of the first system minus that of the second, if there is one, in each query."""
        return _subtract(self.expected, self.expected)

    @property
    def difference_range(self) -> tuple[Floats, Floats]:
        """The lowest and the highest difference of each query with independent orders."""
        return _subtract(self.minimum, self.maximum), _subtract(self.maximum, self.minimum)


def _subtract(a: Floats, b: Floats) -> Floats:
    """The first column of a minus the second column of b, if there is one."""
    return np.asarray(a[:, 0] - b[:, 1:].sum(axis=1))


def align(systems: Sequence[System], measure: Measure) -> Aligned:
    """The estimates of a measure for all systems."""
    own = [system.kept(measure) for system in systems]
    kept = np.logical_and.reduce(own)
    if not kept.any():
        raise InputError(f"The systems have no query in common for {measure}: there is nothing to compare.")
    masks = [kept[mask] for mask in own]
    estimates = [system.estimates[measure].take(mask) for system, mask in zip(systems, masks, strict=True)]
    columns = {
        name: np.stack([getattr(one, name) for one in estimates], axis=1)
        for name in ("expected", "minimum", "maximum", "variance")
    }
    return Aligned(
        measure, tuple(estimates[0].queries), kept, methods=tuple(one.method for one in estimates), **columns
    )
