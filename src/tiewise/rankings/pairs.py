"""`Pair`: two rankings side by side, their common items, and the orders of ties in which they are most and least alike.

A sum over common items of a function that falls with both ranks and is supermodular is largest when the tied items of
each ranking follow the other ranking, and smallest when they run against it. So are every overlap of RBO at once, RBA
and τ_AP: their extremes over all orders of ties need sorting only.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from tiewise.data.columns import Codes, Floats
from tiewise.metrics.estimate import Estimate
from tiewise.rankings.ranking import Groups, Ranking

__all__ = ["Pair", "Side", "estimate"]


class Side:
    """One of two rankings: arrays over the common items, in an order that both sides share."""

    def __init__(self, groups: Groups, common: Codes, other: Groups):
        self.groups, self.common = groups, common  # `common`: the places of the common items
        self.length, self.other_length = len(groups.group), len(other.group)
        self.tied = len(groups.sizes) < self.length
        mine = groups.group[common]
        self.start: Codes = groups.starts[mine]
        self.size: Codes = groups.sizes[mine]
        self.end: Codes = self.start + self.size

    @cached_property
    def lonely(self) -> Codes:
        """How many items of each group the other ranking lacks, (n_groups,)."""
        mine = self.groups.group[self.common]
        return self.groups.sizes - np.bincount(mine, minlength=len(self.groups.sizes))

    def chance(self, depths: int) -> Floats:
        """The chance of the items of the group that rank d is in to be in the top d, for d = 1 … depths.

        Groups before it are in the top d whole. Past the ranking's end no group is open, and the chance is given as 0.
        """
        chance = np.zeros(depths)
        mine = self.groups.group
        chance[: self.length] = (np.arange(1, self.length + 1) - self.groups.starts[mine]) / self.groups.sizes[mine]
        return chance

    def ranks_by(self, key: Codes, most: int) -> Codes:
        """The ranks of all items if tied ones stand in the order of their keys, 0 … most; equal keys as they are."""
        ranks = np.arange(1, self.length + 1)
        if self.tied:
            group = self.groups.group
            tied = np.flatnonzero(self.groups.sizes[group] > 1)
            order = tied[np.argsort(group[tied] * (most + 1) + key[tied], kind="stable")]
            ranks[order] = tied + 1
        return ranks


class Pair:
    """Two rankings with their common items; `at` is the place in y of each item of x, −1 where y lacks it."""

    def __init__(self, x: Groups, y: Groups, at: Codes):
        here = np.flatnonzero(at >= 0)
        self.common = len(here)
        self.left, self.right = Side(x, here, y), Side(y, at[here], x)
        self.union = len(x.group) + len(y.group) - self.common
        self.tied = self.left.tied or self.right.tied

    @staticmethod
    def of(x: Ranking, y: Ranking) -> Pair:
        """The pair of two rankings of named items."""
        at = np.array([y.place.get(item, -1) for item in x.items], dtype=np.int64)
        return Pair(x.groups, y.groups, at)

    @property
    def by_length(self) -> tuple[Side, Side]:
        """The shorter ranking and the longer one."""
        return (self.left, self.right) if self.left.length <= self.right.length else (self.right, self.left)

    def ranks(self, which: str) -> tuple[Codes, Codes]:
        """The ranks of all items of both rankings in the best or the worst order of ties, along their `items`.

        Best: tied items follow the other ranking's groups, those that it lacks come last, and items that are tied in
        both stand in one order on both sides: that of x. Worst: the reverse of all three.
        """
        left, right = self.left, self.right
        to_group, to_place = len(right.groups.sizes), left.length
        group = np.full(left.length, to_group)  # in y, of each item of x; past the last for items that y lacks
        group[left.common] = right.groups.group[right.common]
        place = np.full(right.length, to_place)  # in x, of each item of y: ascending, as x's groups are
        place[right.common] = left.common
        if which == "worst":
            group, place = to_group - group, to_place - place
        return left.ranks_by(group, to_group), right.ranks_by(place, to_place)

    def common_ranks(self, which: str) -> tuple[Codes, Codes]:
        """The ranks of the common items in the best or the worst order of ties."""
        left, right = self.ranks(which)
        return left[self.left.common], right[self.right.common]


def estimate(measure: str, values: Sequence[float] | Floats, extremes: bool = True) -> Estimate:
    """An Estimate from the expectation and from the values in the worst and the best order.

    One value alone is the same in all orders. The expectation lies between the extremes, whatever rounding made of it.
    """
    if not extremes:
        return Estimate(float(values[0]), measure=measure)
    expected, low, high = (float(value) for value in (values if len(values) > 1 else [values[0]] * 3))
    return Estimate(min(max(expected, low), high), low, high, measure=measure)
