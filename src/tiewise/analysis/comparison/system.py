"""A system of a comparison: a run, measured once, of which little is kept until more is asked for.

What is kept of every system are its estimates, what tools print for it, and how its sum over queries is spread over the
orders of its ties: a few numbers a query. Tie groups and documents are found when a pair needs them, and stand on a
`Shelf` that holds the runs used last; from any other, the run is opened again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tiewise.analysis.comparison.distribution import Lot, Tied, added, lots
from tiewise.analysis.comparison.shared_order import Members, drawn
from tiewise.analysis.readings import Readings
from tiewise.analysis.reports import Provenance, Report
from tiewise.data.columns import Codes, Floats
from tiewise.data.dict_run import MappedRun
from tiewise.data.runs import Qrels
from tiewise.errors import InputError
from tiewise.metrics import engine
from tiewise.metrics.definition import Measure
from tiewise.metrics.estimate import Estimates
from tiewise.metrics.tools import TOOLS, Rule
from tiewise.ties.groups import TieGroups

__all__ = ["ORDERS", "Printed", "Shelf", "System"]

#: Orders in which tools list ties, applied to a measure as it is defined here.
ORDERS = {"given": "the order of the file", "docid-desc": "descending ids", "docid-asc": "ascending ids"}
#: How many random orders are drawn of a run alone: as many as look at so many documents in all, between these bounds.
FEWEST, DRAWS, SEEN = 200, 2000, 40_000_000
#: Orders that look at more documents than this are drawn only if there is no other way.
LARGE = 50_000
#: How many rows the runs on a shelf may have together.
ROOM = 10_000_000


class Opened:
    """A run with its tie groups counted, and those that matter to a measure, with all their documents if need be."""

    def __init__(self, readings: Readings):
        self.readings = readings
        self.rows = (0 if readings.run is None else len(readings.run)) + len(readings.qrels)
        self.tied: dict[Measure, Tied] = {}
        self.members: dict[Measure, Members] = {}

    @cached_property
    def urns(self) -> engine.Urns:
        """The tie groups of the scores as they are."""
        return self.readings.urns("float64")


class Shelf:
    """The runs that were opened last: two, and more while they have no more than ROOM rows together."""

    def __init__(self) -> None:
        self._held: dict[str, Opened] = {}

    def take(self, name: str, opened: Callable[[], Opened]) -> Opened:
        """A run from the shelf, or opened now."""
        found = self._held.pop(name, None) or opened()
        self._held[name] = found  # the one used last stands last
        while len(self._held) > 2 and sum(one.rows for one in self._held.values()) > ROOM:
            del self._held[next(iter(self._held))]
        return found


@dataclass(frozen=True)
class Printed:
    """What a tool prints for a run, and whether it differs from others by the order of ties alone."""

    value: float
    same: bool  #: whether its definition gives the same expectation as ours


class System:
    """A run under its name, with the estimates of all measures."""

    def __init__(self, name: str, run: Any, qrels: Qrels, report: Report, shelf: Shelf, *, across_queries: bool):
        self.name, self._run, self._qrels, self._shelf = name, run, qrels, shelf
        self._across_queries = across_queries  # whether an order that is for several runs is also for all queries
        self.estimates: Mapping[Measure, Estimates] = {measure: report.per_query(measure) for measure in report}
        self.provenance: Provenance = report.provenance
        self.notes, self.cut_lists = report.notes, report.cut_lists
        self._printed: dict[Measure, dict[str, Printed]] = {}
        self._totals: dict[Measure, Lot | None] = {}
        self._drawn: dict[Measure, Floats] = {}

    def _readings(self) -> Readings:
        options = self.provenance.options
        return Readings(
            None if isinstance(self._run, TieGroups) else self._qrels,
            self._run,
            **{name: options[name] for name in ("score_dtype", "judged_only", "depth")},
        )

    def _opened(self) -> Opened:
        return self._shelf.take(self.name, lambda: Opened(self._readings()))

    # -- the order of ties --------------------------------------------------------------------------------------

    def tied(self, measure: Measure, kept: NDArray[np.bool_]) -> Tied:
        """The tie groups whose order can change a measure, of the queries that are compared."""
        run = self._opened()
        if measure not in run.tied:
            run.tied[measure] = Tied(measure, run.urns, kept)
        return run.tied[measure]

    def members(self, measure: Measure, kept: NDArray[np.bool_]) -> Members:
        """All the documents that stand in them."""
        tied, opened = self.tied(measure, kept), self._opened()
        if measure not in opened.members:
            run = opened.readings.run
            if run is None:
                raise InputError(
                    f"'{self.name}' is given as tie groups, which hold no documents to order: use its run."
                )
            whole = run.to_run() if isinstance(run, MappedRun) else run
            opened.members[measure] = Members(tied, whole, across_queries=self._across_queries)
        return opened.members[measure]

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
            self._drawn[measure] = drawn(self.members(measure, kept), seed) + self.constant(measure, kept)
        return self._drawn[measure]

    # -- tools --------------------------------------------------------------------------------------------------

    def printed(self, measure: Measure) -> dict[str, Printed]:
        """What each known tool prints, and what the measure is in each order that one of them uses."""
        if not self._printed:
            readings = self._readings()  # of its own: these orders are counted for this alone
            if readings.run is None:
                return {}
            rules = (tool.rule(one) for one in self.estimates for tool in TOOLS.values())
            readings.count({rule for rule in rules if rule is not None} | {Rule(order) for order in ORDERS})
            table = Report(self.estimates, readings, self.provenance.options).oblivious_by_tool()
            for one in self.estimates:  # all measures at once: the orders are counted for all of them
                means: dict[tuple[Any, ...], float] = {}
                found = {
                    row.tool: Printed(row.value, self._same(readings, one, row.tool, means))
                    for row in table
                    if row.measure == one.name and row.value is not None
                }
                self._printed[one] = found | self._in_orders(readings, one)
        return self._printed[measure]

    def _in_orders(self, readings: Readings, measure: Measure) -> dict[str, Printed]:
        kept = self.kept(measure)
        values = {order: readings.in_order(measure, Rule(order)) for order in ORDERS}
        return {
            ORDERS[order]: Printed(float(value[kept].sum() if measure.total else value[kept].mean()), True)
            for order, value in values.items()
            if value is not None
        }

    def _same(self, readings: Readings, measure: Measure, tool: str, means: dict[tuple[Any, ...], float]) -> bool:
        """Whether a tool's definition and queries give the same expectation as ours here; `means` holds those known."""
        rule = TOOLS[tool].rule(measure)
        ours = self.estimates[measure].mean().expected
        assert rule is not None and ours is not None
        own = rule.measure or measure
        key = (own, rule.missing, rule.skips_no_relevant, rule.retrieved_only)
        if key not in means:
            means[key] = _expected(readings, own, rule, total=measure.total)
        return abs(means[key] - ours) < 1e-9

    def kept(self, measure: Measure) -> NDArray[np.bool_]:
        """Which of the judged queries its estimates have, (n_queries,)."""
        there = self.estimates[measure].queries
        if len(there) == len(self._qrels.queries):
            return np.ones(len(there), dtype=bool)
        known = set(there)
        return np.array([query in known for query in self._qrels.queries], dtype=bool)

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


def _expected(readings: Readings, measure: Measure, rule: Rule, *, total: bool) -> float:
    """The mean expectation over the queries that a rule counts."""
    urns = readings.urns("float64")
    kept = np.ones(urns.n_queries, dtype=bool)
    if rule.missing == "skip":
        kept &= readings.ties.present
    if rule.skips_no_relevant:
        kept &= urns.relevant(measure) > 0
    if rule.retrieved_only:
        urns = engine.Urns(urns.ties.retrieved_only())
    each = engine.expected(measure, urns)[0][kept]
    return float(each.sum() if total else each.mean())
