"""Two systems over the orders of their ties: how far the difference can go, and how often either is ahead.

The ties of each run fall on their own (independent orders), or one order of the documents breaks those of both (a
shared order). The extremes of independent orders are means of the queries' extremes, and contain those of a shared one.
Probabilities come from lots that are added up, or from orders that are drawn. Where so many documents are tied that
drawing would take too long, they are those of a normal distribution, which knows no skew and no level.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Literal

import numpy as np

from tiewise.columns import Floats
from tiewise.comparison.aligned import Columns
from tiewise.comparison.lots import Chances, Lot, added, chances
from tiewise.comparison.shared import components, lots_of
from tiewise.comparison.system import System
from tiewise.estimate import Estimate
from tiewise.registry import Measure
from tiewise.significance import DUST

__all__ = ["Meeting", "Orders", "Outcome"]

Orders = Literal["independent", "shared"]

#: Too large to draw, a sum is taken as normal from so many tied queries on, none of which may weigh more than a share.
MANY, HEAVIEST = 30, 0.1


@dataclass(frozen=True)
class Outcome:
    """The difference over the orders of ties, how likely it has which sign, and whether its range is exact."""

    difference: Estimate
    chances: Chances
    exact_range: bool

    @property
    def reversed(self) -> Outcome:
        """The same for the difference the other way round."""
        low, mean, high = (
            None if part is None else 0.0 - part
            for part in (self.difference.maximum, self.difference.expected, self.difference.minimum)
        )
        turned = replace(self.difference, minimum=low, expected=mean, maximum=high)
        return Outcome(turned, self.chances.reversed, self.exact_range)


@dataclass(frozen=True)
class _Spread:
    """What is known of the sum of differences over queries: the range of each query, the variance, the chances."""

    low: Floats
    high: Floats
    variance: float
    chances: Chances | None = None
    exact: bool = True


@dataclass(frozen=True)
class Meeting:
    """Two systems, by place among the columns, in one measure."""

    systems: tuple[System, System]
    places: tuple[int, int]
    measure: Measure
    columns: Columns
    samples: int
    seed: int

    def outcome(self, orders: Orders) -> Outcome:
        """What the orders of ties can make of the difference."""
        spread = self._apart()
        if orders == "shared" and (spread.high - spread.low > DUST).any():
            spread = self._together(spread)
        n, scale = len(spread.low), self.columns.scale
        expected = float(self.columns.difference(*self.places).mean())
        minimum, maximum = min(float(spread.low.mean()), expected), max(float(spread.high.mean()), expected)
        settled = minimum > DUST or maximum < -DUST or maximum - minimum <= DUST
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
        return Outcome(found, odds, spread.exact)

    # -- independent orders -------------------------------------------------------------------------------------

    def _apart(self) -> _Spread:
        columns, (i, j) = self.columns, self.places
        low, high = columns.minimum[:, i] - columns.maximum[:, j], columns.maximum[:, i] - columns.minimum[:, j]
        return _Spread(low, high, float(self._variance.sum()))

    @property
    def _variance(self) -> Floats:
        i, j = self.places
        return np.asarray(self.columns.variance[:, i] + self.columns.variance[:, j])

    def _independent(self) -> Chances:
        left, right = self._totals()
        if left is None or right is None:
            each, total = self._variance, float(self._variance.sum())
            if np.count_nonzero(each) >= MANY and each.max() <= HEAVIEST * total:  # neither holds of an unknown one
                below = NormalDist().cdf(-float(self.columns.difference(*self.places).sum()) / total**0.5)
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

    # -- one order for both -------------------------------------------------------------------------------------

    def _together(self, apart: _Spread) -> _Spread:
        """The same with one order; queries that cannot be enumerated keep the wider range of independent orders."""
        first, second = (system.members(self.measure, self.columns.kept) for system in self.systems)
        parts = components(first, second)
        if parts is None:
            return self._sampled(apart.low, apart.high)
        few = [part for part in parts if part.words is not None]
        lots = lots_of(few, first.tied, second.tied)
        row = np.cumsum(self.columns.kept) - 1  # the row of a judged query among those compared
        open_ = np.zeros(len(apart.low), dtype=bool)
        open_[[row[part.query] for part in parts if part.words is None]] = True
        value = self.columns.difference(*self.places)
        low, high = np.where(open_, apart.low, value), np.where(open_, apart.high, value)
        for part, lot in zip(few, lots, strict=True):
            if not open_[row[part.query]]:
                low[row[part.query]] += lot.value.min() - lot.mean
                high[row[part.query]] += lot.value.max() - lot.mean
        if open_.any():
            return self._sampled(low, high)
        total = added(lots, samples=self.samples, seed=self.seed)
        left, right = (system.constant(self.measure, self.columns.kept) for system in self.systems)
        level = Lot(np.array([right - left]), np.ones(1))
        return _Spread(low, high, sum(lot.variance for lot in lots), chances(total, level, self._dust))

    def _sampled(self, low: Floats, high: Floats) -> _Spread:
        left, right = (system.drawn(self.measure, self.columns.kept, self.seed) for system in self.systems)
        n = min(len(left), len(right))
        drawn = left[:n] - right[:n]
        odds = chances(Lot.of_draws(drawn), Lot(np.zeros(1), np.ones(1)), self._dust)
        return _Spread(low, high, float(drawn.var()), odds, exact=False)

    @property
    def _dust(self) -> float:
        """Within this, sums over queries are one number."""
        return DUST * len(self.columns.queries)
