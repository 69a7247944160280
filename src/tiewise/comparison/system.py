"""A system of a comparison: a run, measured once, of which little is kept until more is asked for.

What is kept of every system are its estimates. Its tie groups, what tools print for it, and the documents that are tied
are found when a pair needs them; where systems are many, the run itself is then read again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tiewise import engine
from tiewise.columns import Floats
from tiewise.comparison.lots import Lot, Tied, lots
from tiewise.comparison.shared import Members, drawn
from tiewise.data import MappedRun, Qrels
from tiewise.errors import InputError
from tiewise.estimate import Estimates
from tiewise.profiles import TOOLS, Rule
from tiewise.readings import Readings
from tiewise.registry import Measure
from tiewise.report import Provenance, Report
from tiewise.ties import TieGroups

__all__ = ["ORDERS", "Printed", "System"]

#: Orders in which tools list ties, applied to a measure as it is defined here.
ORDERS = {"given": "the order of the file", "docid-desc": "descending ids", "docid-asc": "ascending ids"}
#: How many random orders are drawn of a run alone: as many as may move so many documents in all, between these bounds.
FEWEST, DRAWS, MOVED = 200, 2000, 40_000_000


@dataclass(frozen=True)
class Printed:
    """What a tool prints for a run, and whether it differs from others by the order of ties alone."""

    value: float
    same: bool  #: whether its definition gives the same expectation as ours


class System:
    """A run under its name, with the estimates of all measures."""

    def __init__(self, name: str, run: Any, qrels: Qrels, report: Report, *, keep: bool):
        self.name, self._run, self._qrels, self._keep = name, run, qrels, keep
        self.estimates: Mapping[Measure, Estimates] = {measure: report.per_query(measure) for measure in report}
        self.provenance: Provenance = report.provenance
        self.notes, self.cut_lists = report.notes, report.cut_lists
        self._kept: Readings | None = None
        self._printed: dict[Measure, dict[str, Printed]] = {}
        self._lots: dict[Measure, list[Lot] | None] = {}
        self._tied: dict[Measure, Tied] = {}
        self._members: dict[Measure, Members] = {}
        self._drawn: dict[tuple[Measure, bool], Floats] = {}

    def _readings(self) -> Readings:
        if self._kept is not None:
            return self._kept
        options = self.provenance.options
        read = Readings(
            None if isinstance(self._run, TieGroups) else self._qrels,
            self._run,
            **{name: options[name] for name in ("score_dtype", "judged_only", "depth")},
        )
        if self._keep:
            self._kept = read
        return read

    @cached_property
    def _urns(self) -> engine.Urns:
        return self._readings().urns("float64")

    # -- the order of ties --------------------------------------------------------------------------------------

    def tied(self, measure: Measure, kept: NDArray[np.bool_]) -> Tied:
        """The tie groups whose order can change a measure, of the queries that are compared."""
        if measure not in self._tied:
            self._tied[measure] = Tied(measure, self._urns, kept)
        return self._tied[measure]

    def lots(self, measure: Measure, kept: NDArray[np.bool_]) -> list[Lot] | None:
        """What the order of each of them can add to the sum over queries; None if that is too much to enumerate."""
        if measure not in self._lots:
            self._lots[measure] = lots(self.tied(measure, kept))
        return self._lots[measure]

    def members(self, measure: Measure, kept: NDArray[np.bool_]) -> Members:
        """All the documents that stand in them."""
        if measure not in self._members:
            run = self._readings().run
            if run is None:
                raise InputError(
                    f"'{self.name}' is given as tie groups, which hold no documents to order: use its run."
                )
            run = run.to_run() if isinstance(run, MappedRun) else run
            self._members[measure] = Members(self.tied(measure, kept), run)
        return self._members[measure]

    def drawn(self, measure: Measure, kept: NDArray[np.bool_], seed: int, *, shared: bool) -> Floats:
        """The sum over queries of what these groups add, in random orders: of all runs alike, or of its own."""
        if (measure, shared) not in self._drawn:
            own = self._own_orders
            values = drawn(self.members(measure, kept), seed) if shared else own(measure, kept, seed)
            self._drawn[measure, shared] = values
        return self._drawn[measure, shared]

    def too_large(self, measure: Measure, kept: NDArray[np.bool_]) -> bool:
        """Whether even the fewest random orders would move too many documents."""
        tied = self.tied(measure, kept)
        return int(tied.urns.group_size[tied.groups].sum()) * FEWEST > MOVED

    def _own_orders(self, measure: Measure, kept: NDArray[np.bool_], seed: int) -> Floats:
        tied = self.tied(measure, kept)
        size = tied.urns.group_size[tied.groups]
        rng = np.random.default_rng([seed, *self.name.encode()])
        draws = int(np.clip(MOVED // max(int(size.sum()), 1), FEWEST, DRAWS))
        heads = np.cumsum(size) - size
        group = np.repeat(np.arange(len(size)), size)
        held = tied.urns.held[tied.groups]
        # The judged documents of a group take its first slots, and then wherever these are put.
        slots = np.arange(int(held.sum())) + np.repeat(heads - (np.cumsum(held) - held), held)
        target = tied.judged()
        start = tied.urns.group_start[tied.groups][group[slots]]
        values = np.empty(draws)
        for draw in range(draws):
            shuffled = np.argsort(group + rng.random(len(group))) - heads[group]
            rank = tied.rank.copy()
            rank[target] = start + 1 + shuffled[slots]
            values[draw] = tied.shares(rank).sum()
        return values

    # -- tools --------------------------------------------------------------------------------------------------

    def printed(self, measure: Measure) -> dict[str, Printed]:
        """What each known tool prints, and what the measure is in each order that one of them uses."""
        if measure not in self._printed:
            readings = self._readings()
            if readings.run is None:
                return {}
            table = Report(self.estimates, readings, self.provenance.options).oblivious_by_tool()
            for one in self.estimates:  # all measures at once: the orders are counted for all of them
                found = {
                    row.tool: Printed(row.value, self._same(readings, one, row.tool))
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

    def _same(self, readings: Readings, measure: Measure, tool: str) -> bool:
        """Whether a tool's definition, queries and type of scores give the same expectation as ours here."""
        rule = TOOLS[tool].rule(measure)
        ours = self.estimates[measure].mean().expected
        assert rule is not None and ours is not None
        urns = readings.urns("float64")
        own = rule.measure or measure
        kept = np.ones(urns.n_queries, dtype=bool)
        if rule.missing == "skip":
            kept &= readings.ties.present
        if rule.skips_no_relevant:
            kept &= urns.relevant(own) > 0
        if rule.retrieved_only:
            urns = engine.Urns(urns.ties.retrieved_only())
        theirs = engine.expected(own, urns)[0][kept]
        return abs(float(theirs.sum() if measure.total else theirs.mean()) - ours) < 1e-9

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
