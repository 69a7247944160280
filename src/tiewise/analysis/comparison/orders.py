"""One or two systems over the orders of ties: how far a value or a difference can go, and how often which is ahead.

The ties of each run fall on their own (independent orders), or one order breaks those of all runs: one for each query,
or one of all documents, for all queries (a shared order). The extremes of independent orders are means of the queries'
extremes, and contain those of any other. Probabilities come from lots that are added up, or from orders that are drawn.
Where so many documents are tied that drawing would take too long, they are those of a normal distribution, which knows
no skew and no level.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Literal

import numpy as np

from tiewise.analysis.comparison.aligned import Columns
from tiewise.analysis.comparison.distribution import Chances, Lot, Tied, added, chances
from tiewise.analysis.comparison.shared_order import Component, components, lots_of
from tiewise.analysis.comparison.system import System
from tiewise.analysis.significance import ATOL
from tiewise.data.columns import Floats
from tiewise.metrics.definition import Measure
from tiewise.metrics.estimate import Estimate

__all__ = ["Meeting", "Orders", "Outcome"]

Orders = Literal["independent", "per-query", "shared"]

#: Too large to draw, a sum is taken as normal from so many tied queries on, none of which may weigh more than a share.
MANY, HEAVIEST = 30, 0.1


@dataclass(frozen=True)
class Outcome:
    """The difference over the orders of ties, how likely it has which sign, and whether its range is exact."""

    difference: Estimate
    chances: Chances
    exact_range: bool
    std_error: float | None = None  #: the standard error of the std, where that comes from orders that were drawn

    @property
    def reversed(self) -> Outcome:
        """The same for the difference the other way round."""
        low, mean, high = (
            None if part is None else 0.0 - part
            for part in (self.difference.maximum, self.difference.expected, self.difference.minimum)
        )
        turned = replace(self.difference, minimum=low, expected=mean, maximum=high)
        return replace(self, difference=turned, chances=self.chances.reversed)


@dataclass(frozen=True)
class _Spread:
    """What is known of the sum of differences over queries: the range, the variance, the chances."""

    low: float
    high: float
    variance: float
    chances: Chances | None = None
    exact: bool = True
    std_error: float | None = None


@dataclass(frozen=True)
class Meeting:
    """Two systems, by place among the columns, in one measure; or one system alone, as if the other were 0."""

    systems: tuple[System, ...]
    places: tuple[int, ...]
    measure: Measure
    columns: Columns
    samples: int
    seed: int

    def outcome(self, orders: Orders) -> Outcome:
        """What the orders of ties can make of the difference."""
        spread = self._apart
        if orders != "independent" and spread.high - spread.low > ATOL:
            spread = self._together(across_queries=orders == "shared")
        n, scale = len(self.columns.queries), self.columns.scale
        expected = float(self._value.mean())
        minimum, maximum = min(spread.low / n, expected), max(spread.high / n, expected)
        settled = minimum > ATOL or maximum < -ATOL or maximum - minimum <= ATOL
        settled |= len(self.systems) == 1  # which is ahead of none
        odds = Chances.of_sign(expected) if settled else spread.chances or self._independent()
        odds = odds.within(minimum, maximum)
        std = float(np.sqrt(spread.variance)) / n * scale
        found = Estimate(
            expected=expected * scale,
            minimum=minimum * scale,
            maximum=maximum * scale,
            std=None if np.isnan(std) else std,
            measure=self.measure.name,
        )
        error = None if spread.std_error is None else spread.std_error / n * scale
        return Outcome(found, odds, spread.exact, error)

    @property
    def _value(self) -> Floats:
        """The expected difference of each query."""
        first, *others = (self.columns.expected[:, place] for place in self.places)
        return np.asarray(first - sum(others))

    # -- independent orders -------------------------------------------------------------------------------------

    @property
    def _ends(self) -> tuple[Floats, Floats]:
        """The least and the most that independent orders can make of each query's difference."""
        lows, highs = self.columns.minimum, self.columns.maximum
        first, *others = self.places
        low = lows[:, first] - sum(highs[:, other] for other in others)
        high = highs[:, first] - sum(lows[:, other] for other in others)
        return np.asarray(low), np.asarray(high)

    @property
    def _apart(self) -> _Spread:
        low, high = self._ends
        return _Spread(float(low.sum()), float(high.sum()), float(self._variance.sum()))

    @property
    def _variance(self) -> Floats:
        return np.asarray(self.columns.variance[:, list(self.places)].sum(axis=1))

    def _independent(self) -> Chances:
        left, right = self._totals()
        if left is None or right is None:
            each, total = self._variance, float(self._variance.sum())
            if np.count_nonzero(each) >= MANY and each.max() <= HEAVIEST * total:  # neither holds of an unknown one
                below = NormalDist().cdf(-float(self._value.sum()) / total**0.5)
                return Chances(1.0 - below, None, below, "normal")
            left, right = self._totals(patient=True)
        assert left is not None and right is not None
        return chances(left, right, self._dust)

    def _totals(self, *, patient: bool = False) -> tuple[Lot | None, Lot | None]:
        first, second = (
            system.total(self.measure, self.columns.kept, self.samples, self.seed, patient=patient)
            for system in self.systems
        )
        return first, second

    # -- one order for all runs ---------------------------------------------------------------------------------

    def _together(self, *, across_queries: bool) -> _Spread:
        """The same with one order for all runs, in each query or in all of them.

        What can be enumerated is exact. Queries with too many orders keep the range of independent orders, and queries
        that share documents in too many orders the sum of their own ranges: bounds that some order may not reach.
        """
        sides = [system.members(self.measure) for system in self.systems]
        parts = components(sides, across_queries=False)
        whole = components(sides, across_queries=True) if across_queries else parts
        if parts is None or whole is None:
            return self._sampled(replace(self._apart, exact=False))
        ranges = _ranges(parts, whole, [side.tied for side in sides])
        row = np.cumsum(self.columns.kept) - 1  # the row of a judged query among those compared
        open_ = np.zeros(len(self.columns.queries), dtype=bool)
        open_[row[ranges.open_queries]] = True
        low, high = (
            float(np.where(open_, end, self._value).sum() + more)
            for end, more in zip(self._ends, ranges.around_mean, strict=True)
        )
        if ranges.lots is None:
            return self._sampled(_Spread(low, high, np.nan, exact=ranges.exact))
        total = added(ranges.lots, samples=self.samples, seed=self.seed)
        first, *others = (system.constant(self.measure, self.columns.kept) for system in self.systems)
        level = Lot(np.array([sum(others) - first]), np.ones(1))
        return _Spread(low, high, sum(lot.variance for lot in ranges.lots), chances(total, level, self._dust))

    def _sampled(self, bounds: _Spread) -> _Spread:
        """The variance and the chances of random orders that are the same for all runs."""
        each = [system.drawn(self.measure, self.columns.kept, self.seed) for system in self.systems]
        n = min(map(len, each))
        first, *others = (values[:n] for values in each)
        drawn = first - sum(others)
        odds = chances(Lot.of_draws(drawn), Lot(np.zeros(1), np.ones(1)), self._dust)
        variance = float(drawn.var())
        return replace(bounds, variance=variance, chances=odds, std_error=_error_of_std(drawn))

    @property
    def _dust(self) -> float:
        """Within this, sums over queries are one number."""
        return ATOL * len(self.columns.queries)


def _error_of_std(drawn: Floats) -> float:
    """The standard error of the standard deviation of some draws, by their fourth moment (the delta method)."""
    squares = (drawn - drawn.mean()) ** 2
    variance = squares.mean()
    return float(np.sqrt(squares.var() / len(drawn) / (4 * variance))) if variance > 0 else 0.0


@dataclass(frozen=True)
class _Ranges:
    """How far components move the sum over queries from its mean, down and up, as far as they can be enumerated."""

    around_mean: tuple[float, float]
    open_queries: list[int]  #: judged queries whose components are left out: there, independent orders set the range
    exact: bool  #: whether some order gives the lowest sum, and some order the highest
    lots: list[Lot] | None  #: one for each component, if all of them can be enumerated


def _ranges(parts: Sequence[Component], whole: Sequence[Component], sides: Sequence[Tied]) -> _Ranges:
    """The ranges of components across queries, `whole`, each made of one or more components within queries, `parts`.

    A whole that is too large to enumerate has the sum of its parts' ranges. If its parts and their documents make a
    tree (no cycle of parts, each with a document of the next), any orders of the parts go together: two parts share at
    most one document, so no two of them can ask for opposite orders, nor can several in a circle.
    """
    node = {(side, group): at for at, one in enumerate(whole) for side, some in enumerate(one.groups) for group in some}
    own: list[list[Component]] = [[] for _ in whole]
    for part in parts:
        own[node[part.first]].append(part)
    query = {part.first: int(sides[part.first[0]].query[part.first[1]]) for part in parts}
    complete = all(one.words is not None for one in whole)
    known = len(sides) == 1 and not complete  # of one run, each query's range is known without enumeration
    open_ = {query[part.first] for part in parts if known or part.words is None}
    enumerated: list[Component] = []
    exact = not open_
    for one, some in zip(whole, own, strict=True):
        if one.words is not None and not any(query[part.first] in open_ for part in some):
            enumerated.append(one)
        else:
            enumerated += [part for part in some if query[part.first] not in open_]
            exact &= sum(part.size for part in some) - one.size == len(some) - 1
    lots = lots_of(enumerated, sides)
    low, high = sum(lot.value[0] - lot.mean for lot in lots), sum(lot.value[-1] - lot.mean for lot in lots)
    return _Ranges((float(low), float(high)), sorted(open_), exact, lots if complete else None)
