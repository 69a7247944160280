"""A system of a comparison: a run that was counted once, and how its ties spread its sum over queries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tiewise.analysis.comparison.distribution import Lot, Tied, added, lots
from tiewise.analysis.comparison.shared_order import Members, drawn
from tiewise.analysis.measuring import Evaluation
from tiewise.analysis.options import Options
from tiewise.analysis.reports import Provenance, Report
from tiewise.data.columns import Codes, Floats
from tiewise.data.runs import Run
from tiewise.metrics import engine
from tiewise.metrics.definition import Measure
from tiewise.metrics.estimate import Estimates
from tiewise.metrics.tools import TOOLS, Rule
from tiewise.ties.counted import DTYPES

__all__ = ["ORDERS", "Printed", "System"]

#: Orders in which tools list ties, applied to a measure as it is defined here.
ORDERS = {"given": "the order of the file", "docid-desc": "descending ids", "docid-asc": "ascending ids"}
#: How many random orders are drawn of a run alone: as many as look at so many documents in all, between these bounds.
FEWEST, DRAWS, SEEN = 200, 2000, 40_000_000
#: Orders that look at more documents than this are drawn only if there is no other way.
LARGE = 50_000


@dataclass(frozen=True)
class Printed:
    """What a tool prints for a run, and whether it differs from others by the order of ties alone."""

    value: float
    same: bool  #: whether its definition gives the same expectation as ours


class System:
    """A run under its name, with the estimates of all measures."""

    def __init__(self, name: str, evaluation: Evaluation, report: Report):
        self.name, self._evaluation = name, evaluation
        self.estimates: Mapping[Measure, Estimates] = {measure: report.per_query(measure) for measure in report}
        self._report = report
        self.notes, self.cut_lists = report.notes, report.cut_lists
        self._tied: dict[Measure, Tied] = {}
        self._members: dict[Measure, Members] = {}
        self._printed: dict[Measure, dict[str, Printed]] = {}
        self._totals: dict[Measure, Lot | None] = {}
        self._drawn: dict[Measure, Floats] = {}

    @property
    def options(self) -> Options:
        """The options of the evaluation."""
        return self._evaluation.options

    @property
    def provenance(self) -> Provenance:
        """The files, and how many queries and rows there were."""
        return self._report.provenance

    # -- the order of ties --------------------------------------------------------------------------------------

    def tied(self, measure: Measure, kept: NDArray[np.bool_]) -> Tied:
        """The tie groups whose order can change a measure, of the queries that are compared."""
        if measure not in self._tied:
            self._tied[measure] = Tied(measure, self._evaluation.urns(measure), kept)
        return self._tied[measure]

    def find_members(self, run: Run, kept: Mapping[Measure, NDArray[np.bool_]], *, across_queries: bool) -> None:
        """Find all documents of these groups, for each measure: an order for several runs needs them."""
        options = self._evaluation.options
        run = run.judged_only(self._evaluation.qrels) if options.judged_only else run
        run = run if options.score_dtype is None else run.projected(options.score_dtype)
        for measure, queries in kept.items():
            self._members[measure] = Members(self.tied(measure, queries), run, across_queries=across_queries)

    def members(self, measure: Measure) -> Members:
        """All documents of the tie groups that matter to a measure."""
        return self._members[measure]

    def constant(self, measure: Measure, kept: NDArray[np.bool_]) -> float:
        """The sum over queries without what these groups add."""
        each = self.estimates[measure].expected
        expected = np.zeros(len(kept))
        expected[self.kept(measure)] = each
        return self.tied(measure, kept).constant(expected)

    def total(
        self, measure: Measure, kept: NDArray[np.bool_], samples: int, seed: int, *, patient: bool = False
    ) -> Lot | None:
        """The sum over queries in a random order of its ties; None if drawing one takes long, unless one is patient."""
        if measure not in self._totals or (patient and self._totals[measure] is None):
            self._totals[measure] = self._total(measure, kept, samples, [seed, *self.name.encode()], patient)
        return self._totals[measure]

    def _total(
        self, measure: Measure, kept: NDArray[np.bool_], samples: int, seed: list[int], patient: bool
    ) -> Lot | None:
        tied = self.tied(measure, kept)
        parts = lots(tied)
        if parts is not None:
            return added(parts, samples=samples, seed=seed).moved(self.constant(measure, kept))
        places = Places(tied)
        if places.seen > LARGE and not patient:
            return None
        rng, draws = np.random.default_rng(seed), int(np.clip(SEEN // places.seen, FEWEST, DRAWS))
        drawn = [tied.shares(places.rank(rng)).sum() for _ in range(draws)]
        return Lot.of_draws(np.array(drawn) + self.constant(measure, kept))

    def drawn(self, measure: Measure, kept: NDArray[np.bool_], seed: int) -> Floats:
        """The sum over queries in random orders that are the same for all runs."""
        if measure not in self._drawn:
            self._drawn[measure] = drawn(self.members(measure), seed) + self.constant(measure, kept)
        return self._drawn[measure]

    # -- tools --------------------------------------------------------------------------------------------------

    def printed(self, measure: Measure) -> dict[str, Printed]:
        """What each known tool prints, and what the measure is in each order that one of them uses."""
        if not self._printed:
            evaluation = self._evaluation
            if not all(evaluation.counted.has(order, dtype) for order in ORDERS for dtype in DTYPES):
                return {}
            table = Report(evaluation, self.estimates).oblivious_by_tool()
            for one in self.estimates:
                means: dict[tuple[Any, ...], float] = {}
                found = {
                    row.tool: Printed(row.value, self._same(one, row.tool, means))
                    for row in table
                    if row.measure == one.name and row.value is not None
                }
                self._printed[one] = found | self._in_orders(one)
        return self._printed[measure]

    def _in_orders(self, measure: Measure) -> dict[str, Printed]:
        kept = self.kept(measure)
        values = {order: self._evaluation.in_order(measure, Rule(order)) for order in ORDERS}
        return {
            ORDERS[order]: Printed(float(value[kept].sum() if measure.total else value[kept].mean()), True)
            for order, value in values.items()
            if value is not None
        }

    def _same(self, measure: Measure, tool: str, means: dict[tuple[Any, ...], float]) -> bool:
        """Whether a tool's definition and queries give the same expectation as ours here; `means` holds those known."""
        rule = TOOLS[tool].rule(measure)
        ours = self.estimates[measure].mean().expected
        assert rule is not None and ours is not None
        own = rule.measure or measure
        key = (own, rule.missing, rule.skips_no_relevant, rule.retrieved_only)
        if key not in means:
            means[key] = _expected(self._evaluation, own, rule, total=measure.total)
        return abs(means[key] - ours) < 1e-9

    def kept(self, measure: Measure) -> NDArray[np.bool_]:
        """Which of the judged queries its estimates have, (n_queries,)."""
        there = self.estimates[measure].queries
        if len(there) == len(self._evaluation.qrels.queries):
            return np.ones(len(there), dtype=bool)
        known = set(there)
        return np.array([query in known for query in self._evaluation.qrels.queries], dtype=bool)

    def source(self) -> dict[str, Any]:
        """The name and the file of the run."""
        return {"name": self.name, **(self.provenance.run or {})}


class Places:
    """Where the judged documents of tie groups stand in a random order, for which few others need to be moved."""

    def __init__(self, tied: Tied):
        self._tied, self._target = tied, tied.judged()
        self._size, held = tied.urns.group_size[tied.groups], tied.urns.held[tied.groups]
        self._group = np.repeat(np.arange(len(held)), held)  # of each judged document
        self._start = tied.urns.group_start[tied.groups][self._group]
        self._crowded = held**2 > self._size  # slots drawn at random would be taken too often
        self._first = np.arange(len(self._group)) - np.repeat(np.cumsum(held) - held, held)

    @property
    def seen(self) -> int:
        """How many documents an order moves or counts."""
        return int(self._size[self._crowded].sum()) + len(self._tied.docs)

    def rank(self, rng: np.random.Generator) -> Codes:
        """The ranks of `tied.docs` in a random order of the ties."""
        rank = self._tied.rank.copy()
        rank[self._target] = self._start + 1 + self._slots(rng)
        return rank

    def _slots(self, rng: np.random.Generator) -> Codes:
        slot, group = self._shuffled(rng), self._group
        again = ~self._crowded
        while again.any():  # slots are drawn until no two documents of a group have the same
            some = again[group]
            slot[some] = rng.integers(0, self._size[group[some]])
            order = np.lexsort((slot, group))
            twice = (np.diff(group[order]) == 0) & (np.diff(slot[order]) == 0)
            again = np.bincount(group[order[1:][twice]], minlength=len(again)) > 0
        return slot

    def _shuffled(self, rng: np.random.Generator) -> Codes:
        """The first slots of crowded groups, wherever a shuffle of all their documents puts them."""
        size = np.where(self._crowded, self._size, 0)
        heads = np.cumsum(size) - size
        crowd = np.repeat(np.arange(len(size)), size)
        order = np.argsort(crowd + rng.random(len(crowd)))
        slot = np.zeros(len(self._group), dtype=np.int64)
        mine = self._crowded[self._group]
        head = heads[self._group[mine]]
        slot[mine] = order[head + self._first[mine]] - head
        return slot


def _expected(evaluation: Evaluation, measure: Measure, rule: Rule, *, total: bool) -> float:
    """The mean expectation over the queries that a rule counts."""
    urns = evaluation.urns(measure)
    kept = np.ones(urns.n_queries, dtype=bool)
    if rule.missing == "skip":
        kept &= evaluation.ties.present
    if rule.skips_no_relevant:
        kept &= urns.relevant(measure) > 0
    if rule.retrieved_only:
        urns = engine.Urns(urns.ties.retrieved_only())
    each = engine.expected(measure, urns)[0][kept]
    return float(each.sum() if total else each.mean())
