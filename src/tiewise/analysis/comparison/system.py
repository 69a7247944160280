"""A system of a comparison: a run that was counted once, its estimates, and how tie order spreads its sum over queries.

`align` puts the estimates of all systems side by side, over the queries that all of them have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tiewise.analysis.comparison.arrangements import TiedGroups, enumerate_components
from tiewise.analysis.comparison.distribution import Distribution, add_distributions
from tiewise.analysis.comparison.shared_order import TiedDocuments, sample_shared_orders
from tiewise.analysis.measuring import Evaluation
from tiewise.analysis.reports import Report
from tiewise.data.columns import Codes, Floats
from tiewise.data.runs import Run
from tiewise.errors import InputError
from tiewise.metrics import engine
from tiewise.metrics.definition import Measure
from tiewise.metrics.estimate import Estimates
from tiewise.metrics.tool_rules import TOOLS, Rule
from tiewise.ties.counted import DTYPES

__all__ = ["ORDER_NAMES", "Aligned", "PrintedValue", "System", "align"]

#: Orders in which tools list ties, applied to a measure as it is defined here.
ORDER_NAMES = {"given": "the order of the file", "docid-desc": "descending ids", "docid-asc": "ascending ids"}
#: A measure with more tie groups than this is not enumerated.
MAX_GROUPS = 1000
#: The least and the most orders of one run that are sampled, and about how many documents they may sort in all.
MIN_SAMPLES, MAX_SAMPLES, SORTED_DOCS = 200, 2000, 40_000_000


class PrintedValue(NamedTuple):
    """What a tool prints for a run."""

    value: float
    same_definition: bool  #: whether the tool differs from our measure only by the order of ties


class System:
    """A run with its name and the estimates of all measures."""

    def __init__(self, name: str, evaluation: Evaluation, report: Report):
        self.name, self.report, self._evaluation = name, report, evaluation
        self.estimates: Mapping[Measure, Estimates] = {measure: report.per_query(measure) for measure in report}
        self._tied: dict[Measure, TiedGroups] = {}
        self._documents: dict[Measure, TiedDocuments] = {}
        self._printed: dict[Measure, dict[str, PrintedValue]] = {}
        self._sums: dict[Measure, Distribution] = {}
        self._shared_sums: dict[Measure, Floats] = {}

    @property
    def oblivious(self) -> str | None:
        """The order of ties, or the tool, of the oblivious values."""
        return self._evaluation.options.oblivious

    def kept(self, measure: Measure) -> NDArray[np.bool_]:
        """Which of the judged queries its estimates have, (n_judged_queries,)."""
        queries = self.estimates[measure].queries
        if len(queries) == len(self._evaluation.qrels.queries):
            return np.ones(len(queries), dtype=bool)
        known = set(queries)
        return np.array([query in known for query in self._evaluation.qrels.queries], dtype=bool)

    # -- the order of ties --------------------------------------------------------------------------------------

    def tied(self, measure: Measure, kept: NDArray[np.bool_]) -> TiedGroups:
        """The tie groups whose order can change a measure, in the queries that are compared."""
        if measure not in self._tied:
            self._tied[measure] = TiedGroups(measure, self._evaluation.grouped(measure), kept)
        return self._tied[measure]

    def find_documents(self, run: Run, kept: Mapping[Measure, NDArray[np.bool_]], *, across_queries: bool) -> None:
        """Find all documents of these groups, for each measure: an order for several runs needs them."""
        options = self._evaluation.options
        run = run.judged_only(self._evaluation.qrels) if options.judged_only else run
        run = run if options.score_dtype is None else run.projected(options.score_dtype)
        for measure, queries in kept.items():
            tied = self.tied(measure, queries)
            self._documents[measure] = TiedDocuments(tied, run, across_queries=across_queries)

    def documents(self, measure: Measure) -> TiedDocuments:
        """All documents of the tie groups that matter to a measure."""
        return self._documents[measure]

    def constant(self, measure: Measure, kept: NDArray[np.bool_]) -> float:
        """The sum over queries without what these groups add."""
        expected = np.zeros(len(kept))
        expected[self.kept(measure)] = self.estimates[measure].expected
        return self.tied(measure, kept).constant(expected)

    def sum_distribution(self, measure: Measure, kept: NDArray[np.bool_], samples: int, seed: int) -> Distribution:
        """The distribution of the sum over queries in a random order of the run's ties."""
        if measure not in self._sums:
            tied, own_seed = self.tied(measure, kept), [seed, *self.name.encode()]
            components = tied.components() if len(tied) <= MAX_GROUPS else None
            if not len(tied):
                found = Distribution.of_constant(0.0)
            elif components is not None and all(one.arrangements is not None for one in components):
                found = add_distributions(enumerate_components(components, [tied]), samples=samples, seed=own_seed)
            else:
                found = Distribution.of_samples(_sample_orders(tied, own_seed))
            self._sums[measure] = found.shift(self.constant(measure, kept))
        return self._sums[measure]

    def sample_sums(self, measure: Measure, kept: NDArray[np.bool_], seed: int) -> Floats:
        """The sum over queries in random orders that are the same for all runs."""
        if measure not in self._shared_sums:
            added = sample_shared_orders(self.documents(measure), seed)
            self._shared_sums[measure] = added + self.constant(measure, kept)
        return self._shared_sums[measure]

    # -- tools --------------------------------------------------------------------------------------------------

    def printed(self, measure: Measure) -> dict[str, PrintedValue]:
        """What each known tool prints, and the value of the measure in each order that one of them uses."""
        if not self._printed:
            counted = self._evaluation.counted
            if not all(counted.has(order, dtype) for order in ORDER_NAMES for dtype in DTYPES):
                return {}
            table = self.report.oblivious_by_tool()
            for one in self.estimates:
                means: dict[tuple[Any, ...], float] = {}
                self._printed[one] = {
                    row.tool: PrintedValue(row.value, self._has_same_definition(one, row.tool, means))
                    for row in table
                    if row.measure == one.name and row.value is not None
                } | self._in_orders(one)
        return self._printed[measure]

    def _in_orders(self, measure: Measure) -> dict[str, PrintedValue]:
        kept = self.kept(measure)
        values = {order: self._evaluation.in_order(measure, Rule(order)) for order in ORDER_NAMES}
        return {
            ORDER_NAMES[order]: PrintedValue(float(value[kept].sum() if measure.total else value[kept].mean()), True)
            for order, value in values.items()
            if value is not None
        }

    def _has_same_definition(self, measure: Measure, tool: str, means: dict[tuple[Any, ...], float]) -> bool:
        """Whether a tool's definition and queries give the same expectation as ours here; `means` is a cache."""
        rule = TOOLS[tool].rule(measure)
        ours = self.estimates[measure].mean().expected
        assert rule is not None and ours is not None
        own = rule.measure or measure
        key = (own, rule.missing, rule.skips_no_relevant, rule.retrieved_only)
        if key not in means:
            means[key] = _expected(self._evaluation, own, rule, total=measure.total)
        return abs(means[key] - ours) < 1e-9


def _expected(evaluation: Evaluation, measure: Measure, rule: Rule, *, total: bool) -> float:
    """The mean expectation over the queries that a rule counts."""
    grouped = evaluation.grouped(measure)
    kept = np.ones(grouped.n_queries, dtype=bool)
    if rule.missing == "skip":
        kept &= evaluation.ties.present
    if rule.skips_no_relevant:
        kept &= grouped.relevant(measure) > 0
    if rule.retrieved_only:
        grouped = engine.GroupedJudgments(grouped.ties.retrieved_only())
    each = engine.expected(measure, grouped)[kept]
    return float(each.sum() if total else each.mean())


def _sample_orders(tied: TiedGroups, seed: Sequence[int]) -> Floats:
    """What all groups add to the sum over queries, in random orders of one run's ties."""
    orders, rng = RandomOrders(tied), np.random.default_rng(seed)
    n = int(np.clip(SORTED_DOCS // orders.sorted_docs, MIN_SAMPLES, MAX_SAMPLES))
    return np.array([tied.contributions(orders.rank(rng)).sum() for _ in range(n)])


class RandomOrders:
    """Random ranks of the judged documents of tie groups; most unjudged documents need not be sorted for that."""

    def __init__(self, tied: TiedGroups):
        self._tied, self._target = tied, tied.judged_docs()
        self._group = np.repeat(np.arange(len(tied)), tied.judged)  # of each judged document
        self._is_dense = tied.judged**2 > tied.size  # two random slots would be equal too often
        self._offset = np.arange(len(self._group)) - np.repeat(np.cumsum(tied.judged) - tied.judged, tied.judged)

    @property
    def sorted_docs(self) -> int:
        """The number of documents that one order sorts."""
        return int(self._tied.size[self._is_dense].sum()) + len(self._tied.docs)

    def rank(self, rng: np.random.Generator) -> Codes:
        """The ranks of `tied.docs` in a random order."""
        rank = self._tied.rank.copy()
        rank[self._target] = self._tied.start[self._group] + 1 + self._slots(rng)
        return rank

    def _slots(self, rng: np.random.Generator) -> Codes:
        slot = self._shuffle_dense(rng)
        open_docs = np.flatnonzero(~self._is_dense[self._group])
        while len(open_docs):  # until no two documents of a group have the same slot
            group = self._group[open_docs]
            slot[open_docs] = rng.integers(0, self._tied.size[group])
            key = np.sort((group << 32) + slot[open_docs])
            has_equal = np.zeros(len(self._tied), dtype=bool)
            has_equal[key[1:][key[1:] == key[:-1]] >> 32] = True
            open_docs = open_docs[has_equal[group]]
        return slot

    def _shuffle_dense(self, rng: np.random.Generator) -> Codes:
        """The slots of judged documents in dense groups, from a shuffle of all documents of these groups."""
        size = np.where(self._is_dense, self._tied.size, 0)
        first = np.cumsum(size) - size
        group = np.repeat(np.arange(len(size)), size)
        order = np.argsort(group + rng.random(len(group)))
        slot = np.zeros(len(self._group), dtype=np.int64)
        dense = self._is_dense[self._group]
        start = first[self._group[dense]]
        slot[dense] = order[start + self._offset[dense]] - start
        return slot


# -- all systems ------------------------------------------------------------------------------------------------------


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
    oblivious: Floats | None
    exact_extremes: bool  # whether orders of ties reach minimum and maximum

    @property
    def scale(self) -> float:
        """The factor from a mean to the value that is reported: 1, or the number of queries for counts."""
        return float(len(self.queries)) if self.measure.total else 1.0

    def mean(self, values: Floats) -> Floats:
        """The mean over queries, as it is reported."""
        return np.asarray(values.mean(axis=0) * self.scale)

    def take(self, systems: Sequence[int]) -> Aligned:
        """The columns of some systems."""
        return replace(
            self,
            expected=self.expected[:, systems],
            minimum=self.minimum[:, systems],
            maximum=self.maximum[:, systems],
            variance=self.variance[:, systems],
            oblivious=None if self.oblivious is None else self.oblivious[:, systems],
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
    oblivious = [one.oblivious for one in estimates if one.oblivious is not None]
    return Aligned(
        measure,
        tuple(estimates[0].queries),
        kept,
        oblivious=np.stack(oblivious, axis=1) if len(oblivious) == len(estimates) else None,
        exact_extremes=all(one.method is None or not one.method.extremes.any() for one in estimates),
        **columns,
    )
