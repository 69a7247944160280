"""`RankingPair`: two rankings with their common items, and the tie orders in which they agree most and least.

`PairRow` is one ranking with several others, for measures that are computed for many pairs at once.

RBO, RBA and τ_AP are sums over the common items of a function that falls with both ranks and is supermodular. Such a
sum is largest if the tied items of each ranking follow the other ranking, and smallest if they run against it. So their
extremes over all tie orders only need sorting.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tiewise.caching import cached_property
from tiewise.data.columns import Codes, Floats
from tiewise.metrics.estimate import Estimate
from tiewise.rankings.ranking import RankGroups, RankingLike, as_ranking

__all__ = ["PairRow", "RankingPair", "Side", "TieOrder", "make_estimate", "split_groups"]

TieOrder = Literal["best", "worst"]


class Side:
    """One ranking of a pair. Arrays over the common items have the same order on both sides."""

    def __init__(self, groups: RankGroups, common: Codes, other_length: int):
        self.groups, self.common = groups, common  # `common`: the positions of the common items
        self.length, self.other_length = len(groups), other_length
        self.tied = len(groups.size) < self.length
        self.start: Codes = groups.item_start[common]
        self.size: Codes = groups.item_size[common]
        self.end: Codes = self.start + self.size

    @cached_property
    def unmatched(self) -> Codes:
        """How many items of each group the other ranking lacks, (n_groups,)."""
        matched = np.bincount(self.groups.group[self.common], minlength=len(self.groups.size))
        return self.groups.size - matched

    def contribution(self, depths: int) -> Floats:
        """The probability that an item of the tie group at rank d is among the first d, for d = 1 … depths.

        It is the contribution c_{e|d} of Corsi & Urbano (2024). Items of earlier groups contribute 1, items of later
        groups 0. After the end of the ranking it is 0.
        """
        contribution = np.zeros(depths)
        ranks = np.arange(1, self.length + 1)
        contribution[: self.length] = (ranks - self.groups.item_start) / self.groups.item_size
        return contribution

    def break_ties(self, key: Codes, largest: int) -> Codes:
        """The ranks of all items if ties are broken by ascending key, 0 … largest; equal keys keep their order."""
        ranks = np.arange(1, self.length + 1)
        if self.tied:
            tied = np.flatnonzero(self.groups.item_size > 1)
            order = tied[np.argsort(self.groups.group[tied] * (largest + 1) + key[tied], kind="stable")]
            ranks[order] = tied + 1
        return ranks


class RankingPair:
    """Two rankings x and y; `position` is where y has each item of x, −1 if y lacks it."""

    def __init__(self, x: RankGroups, y: RankGroups, position: Codes):
        common = np.flatnonzero(position >= 0)
        self.n_common = len(common)
        self.n_union = len(x) + len(y) - self.n_common
        self.left, self.right = Side(x, common, len(y)), Side(y, position[common], len(x))
        self.tied = self.left.tied or self.right.tied

    @staticmethod
    def from_rankings(x: RankingLike, y: RankingLike) -> RankingPair:
        """The pair of two rankings of named items."""
        left, right = as_ranking(x), as_ranking(y)
        position = np.array([right.position.get(item, -1) for item in left.items], dtype=np.int64)
        return RankingPair(left.groups, right.groups, position)

    @property
    def by_length(self) -> tuple[Side, Side]:
        """The shorter ranking S and the longer ranking L."""
        return (self.left, self.right) if self.left.length <= self.right.length else (self.right, self.left)

    def ranks(self, order: TieOrder) -> tuple[Codes, Codes]:
        """The ranks of all items of both rankings in the best or the worst tie order.

        Best: tied items follow the other ranking's groups, unmatched items come last, and items that are tied in both
        rankings have one order on both sides: that of x. Worst: the reverse of all three.
        """
        left, right = self.left, self.right
        n_groups, n_items = len(right.groups.size), left.length
        group = np.full(left.length, n_groups)  # the group in y of each item of x
        group[left.common] = right.groups.group[right.common]
        position = np.full(right.length, n_items)  # the position in x of each item of y
        position[right.common] = left.common
        if order == "worst":
            group, position = n_groups - group, n_items - position
        return left.break_ties(group, n_groups), right.break_ties(position, n_items)


@dataclass(frozen=True, eq=False)
class PairRow:
    """One ranking x and several others. Arrays have a row for each of the others.

    The items of x are columns of `start` and `end`. An item that the other ranking lacks has the end 0.
    """

    x: RankGroups
    length: Codes  # (n_pairs,): of the other rankings
    start: Codes  # (n_pairs, len(x)): items before the item's group in the other ranking
    end: Codes  # (n_pairs, len(x)): the last rank of that group
    split: Codes  # (2, n_pairs, n_depths): `split_groups` of the other rankings

    @staticmethod
    def from_pair(pair: RankingPair) -> PairRow:
        """The row of a single pair."""
        left, right = pair.left, pair.right
        start, end = np.zeros((2, 1, left.length), dtype=np.int64)
        start[0, left.common], end[0, left.common] = right.start, right.end
        split = split_groups(right.groups, max(left.length, right.length))
        return PairRow(left.groups, np.array([right.length]), start, end, split[:, None])


def split_groups(groups: RankGroups, depths: int) -> Codes:
    """The tie group that depth d splits, for d = 1 … depths: its items among the first d, and its size, (2, depths).

    Both are 0 if depth d is the end of a group, or lies after the ranking's end.
    """
    split: Codes = np.zeros((2, depths), dtype=np.int32)
    taken = np.arange(1, len(groups) + 1) - groups.item_start
    split[:, : len(groups)] = np.where(taken < groups.item_size, (taken, groups.item_size), 0)
    return split


def make_estimate(measure: str, values: Sequence[float] | Floats, extremes: bool = True) -> Estimate:
    """An Estimate from (expected,), or from (expected, worst, best).

    A single value is the same in all tie orders. Rounding cannot move the expectation outside the extremes.
    """
    if not extremes:
        return Estimate(float(values[0]), measure=measure)
    expected, low, high = (float(value) for value in (values if len(values) > 1 else [values[0]] * 3))
    return Estimate(min(max(expected, low), high), low, high, measure=measure)
