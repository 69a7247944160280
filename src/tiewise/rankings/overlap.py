"""Rank-biased overlap (RBO) of two rankings with ties: what their first d items share, at every depth d.

With the overlap X_d of the first d items and the agreement A_d = X_d / d (Webber et al. 2010)

    RBO = (1−φ) · Σ_d φ^(d−1) · A_d

At depth d at most one tie group of a ranking is split. Earlier groups count fully, later groups do not count. So X_d,
expected and in the worst and the best tie order, follows from four counts of common items: by whether the group of each
is split or complete on either side. The counts are running sums over the depths, for one pair of rankings or for many.
S is the shorter ranking, L the longer; their lengths are s and n (the paper's l).
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tiewise.data.columns import Codes, Floats
from tiewise.errors import InputError
from tiewise.metrics.estimate import Bounds
from tiewise.rankings.pairs import PairRow, RankingPair, Side, make_estimate, split_groups
from tiewise.rankings.ranking import RankingLike
from tiewise.rankings.weights import WeightTable, check_phi, weight_table

__all__ = ["Overlaps", "compute_rbo", "rbo", "rbo_of_row"]


def rbo(
    x: RankingLike, y: RankingLike, phi: float = 0.9, ties: Literal["average", "w", "a", "b"] = "average"
) -> Bounds:
    """Rank-biased overlap of two rankings (Eq. 5; Webber et al. 2010): RBO_MIN, RBO_MAX, and RBO_EXT as `extrapolated`.

    `ties="average"` is the exact expectation over all tie orders, with its extremes; ``"w"``, ``"a"`` and ``"b"`` are
    the variants of Corsi & Urbano (2024), one number each.

    >>> rbo("a b c", "a c b", phi=0.9).extrapolated
    RBO 0.9550
    """
    return compute_rbo(RankingPair.from_rankings(x, y), phi, ties)


def compute_rbo(pair: RankingPair, phi: float, ties: str = "average", extremes: bool = True) -> Bounds:
    """RBO of a pair of rankings; without `extremes`, only the expectations."""
    phi = check_phi(phi)
    if ties not in ("average", "w", "a", "b"):
        raise InputError(f"ties={ties!r} is not possible for RBO. Use 'average', 'w', 'a' or 'b'.")
    if ties == "average":
        parts = rbo_of_row(PairRow.from_pair(pair), phi, extremes)
    else:
        parts = _variant(pair, weight_table(phi, pair.n_union), ties)
    lower, upper, extrapolated = (make_estimate("RBO", part[:, 0], extremes) for part in parts)
    is_empty = not min(pair.left.length, pair.right.length)
    return Bounds(lower, upper, None if is_empty else extrapolated, measure="RBO")


def rbo_of_row(row: PairRow, phi: float, extremes: bool = True) -> tuple[Floats, Floats, Floats]:
    """RBO_MIN, RBO_MAX and RBO_EXT of many pairs, (n_orders, n_pairs) each: expected, worst and best.

    There is one order if none of the rankings has ties, or without `extremes`. RBO_EXT is NaN if a ranking is empty.
    """
    found = Overlaps(row, extremes)
    table = weight_table(phi, int(found.n_union.max(initial=0)))
    s, n, depths = found.s, found.n, found.overlap.shape[-1]
    seen = found.overlap @ (table.weight / table.depth)[:depths]
    seen += found.n_common * (table.tail[depths] - table.tail[n])  # the depths after n are not part of it
    unseen = found.sum_unseen(table)
    a_s = found.overlap_at_s / np.where(s, s, np.nan)
    return _bounds(table, found, seen, unseen, unseen * a_s, a_s)


def _bounds(
    table: WeightTable, pairs: Overlaps, seen: Floats, unseen_best: Floats, unseen_likely: Floats, a_s: Floats
) -> tuple[Floats, Floats, Floats]:
    """RBO_MIN, RBO_MAX and RBO_EXT (Webber et al. 2010, Eqs. 11, 30 and 32).

    `seen` is the sum over the depths 1 … n. There the unseen items of S can add `unseen_best` at the most, and
    `unseen_likely` if the agreement stays as it is at depth s, A_s.
    """
    s, n, common, union = pairs.s, pairs.n, pairs.n_common, pairs.n_union
    unchanged = common * table.tail[n]  # after depth n, if no more items match
    # At the most, two more items match at each depth after n, until all items match.
    until_all = 2 * (table.rest[n] - table.rest[union]) - (n + s - common) * (table.tail[n] - table.tail[union])
    most = np.maximum(until_all + table.rest[union], unchanged)
    a_n = (common + (n - s) * a_s) / np.maximum(n, 1)
    sums = (seen + unchanged, seen + unseen_best + most, seen + unseen_likely + a_n * table.rest[n])
    lower, upper, extrapolated = (np.minimum(part, 1.0) for part in sums)  # rounding cannot exceed 1
    return lower, upper, extrapolated


# -- overlap at each depth -----------------------------------------------------------------------------------------


class Overlaps:
    """X_d of pairs of rankings at all depths, expected over the tie orders, and in the worst and the best order."""

    def __init__(self, row: PairRow, extremes: bool = True):
        self._row, n_x = row, len(row.x)
        self.s, self.n = np.minimum(row.length, n_x), np.maximum(row.length, n_x)  # (n_pairs,)
        self._depths = int(self.n.max(initial=0))
        self._end = (row.x.item_start + row.x.item_size).astype(row.end.dtype)
        last = np.where(row.end, np.maximum(row.end, self._end), 0)
        complete = _running_sums(self._count(np.arange(len(last))[:, None], last))
        self.n_common = complete[:, -1] if self._depths else np.zeros(len(last), dtype=np.int64)
        self.n_union = row.length + n_x - self.n_common
        #: X_d, (n_orders, n_pairs, n_depths): one order if there are no ties, or without `extremes`.
        self.overlap: Floats = self._tied_overlap(complete, extremes).astype(np.float64)

    @property
    def overlap_at_s(self) -> Floats:
        """X_s, (n_orders, n_pairs)."""
        if not self._depths:
            return np.zeros(self.overlap.shape[:2])
        return self.overlap[:, np.arange(len(self.s)), np.maximum(self.s - 1, 0)]

    def sum_unseen(self, table: WeightTable) -> Floats:
        """Σ (d − s) · weight/d over the depths after s, up to n: for each unseen item of S that could match."""
        s, n = self.s, self.n
        total: Floats = (table.rest[s] - table.rest[n]) - s * (table.tail[s] - table.tail[n])
        return np.maximum(total, 0.0)

    def _count(self, pair: Codes, depth: Codes) -> Codes:
        """How many items of each pair have each depth, (n_pairs, n_depths); depth 0 is not counted."""
        width = self._depths + 1
        count = np.bincount((depth + pair * width).ravel(), minlength=len(self._row.length) * width)
        return count.reshape(-1, width)[:, 1:]

    def _tied_overlap(self, complete: Codes, extremes: bool) -> NDArray[np.generic]:
        x, row = self._row.x, self._row
        if len(x.size) == len(x) and not row.split.any():
            return complete[None]
        is_tied = (row.end > 0) & ((row.end - row.start > 1) | (x.item_size > 1))
        pair, item = np.nonzero(is_tied)
        flat = pair * len(x) + item
        starts, ends = (x.item_start[item], row.start.take(flat)), (self._end[item], row.end.take(flat))

        def count_between(start: Codes, end: Codes) -> Codes:
            """How many items have start < d < end, for each depth d."""
            first = np.minimum(start + 1, end)
            return _running_sums(self._count(pair, first) - self._count(pair, end))

        # Items whose group is split on the left or on the right, and complete on the other side; split on both sides.
        left = count_between(np.maximum(starts[0], ends[1] - 1), ends[0])
        right = count_between(np.maximum(starts[1], ends[0] - 1), ends[1])
        both = count_between(np.maximum(*starts), np.minimum(*ends))
        # Of the split groups, this many items are among the first d.
        (taken_left, size_left), (taken_right, size_right) = (
            split_groups(x, self._depths),
            row.split[:, :, : self._depths],
        )
        c_left, c_right = taken_left / np.maximum(size_left, 1), taken_right / np.maximum(size_right, 1)
        expected = complete + c_left * left + c_right * right + c_left * c_right * both
        if not extremes:
            return expected[None]
        # The worst order takes items that are not complete on the other side first, the best order takes them last.
        worst_left, spare_left = _take_last(taken_left, size_left - left, both)
        worst_right, spare_right = _take_last(taken_right, size_right - right, both)
        worst = complete + worst_left + worst_right + np.maximum(spare_left + spare_right - both, 0)
        free = np.minimum(np.maximum(taken_left - left, 0), np.maximum(taken_right - right, 0))
        best = complete + np.minimum(taken_left, left) + np.minimum(taken_right, right) + np.minimum(free, both)
        return np.array([expected, worst, best])


def _running_sums(count: Codes) -> Codes:
    return np.cumsum(count, axis=1, dtype=np.int32)  # which take less time than int64


def _take_last(taken: Codes, others: Codes, both: Codes) -> tuple[Codes, Codes]:
    """How many complete items, and items that are split on both sides, a split group must take if these come last.

    `others` of its items are not complete, and `both` of those are split on both sides.
    """
    return np.maximum(taken - others, 0), np.maximum(np.minimum(taken, others) - others + both, 0)


# -- the variants of Corsi & Urbano (SIGIR 2024) -------------------------------------------------------------------


def _variant(pair: RankingPair, table: WeightTable, ties: str) -> tuple[Floats, Floats, Floats]:
    """RBO_MIN, RBO_MAX and RBO_EXT of RBO^w, RBO^a or RBO^b, (1, 1) each.

    The overlap is Σ_e c_{e|d}(S) · c_{e|d}(L). An item's contribution c is its probability to be among the first d (a,
    b), or 1 from the first rank of its group on (w). The size is the mean of Σ c (w, a), or the geometric mean of Σ c²
    (b).
    """
    short, long = pair.by_length
    s, n = short.length, long.length
    found = Overlaps(PairRow.from_pair(pair), extremes=False)
    if ties == "w":
        begin = np.maximum(short.start, long.start)
        overlap, (c_short, c_long) = np.cumsum(np.bincount(begin, minlength=n)[:n]), np.ones((2, n))
    else:
        overlap, c_short, c_long = found.overlap[0, 0], short.contribution(n), long.contribution(n)
    if ties == "b":
        size = np.sqrt(_head_size(short, c_short**2, table) * _head_size(long, c_long**2, table))
    else:
        size = (_head_size(short, c_short, table) + _head_size(long, c_long, table)) / 2
    # Items that only L has: those in complete groups, and those in the split group.
    group = long.groups.group
    complete, split = (np.cumsum(long.unmatched) - long.unmatched)[group], long.unmatched[group]
    mean = (complete + c_long * split) / np.maximum(complete + split, 1)
    unseen = np.maximum(table.depth[:n] - s, 0)
    unseen_best = np.minimum(unseen, complete) + c_long * np.clip(unseen - complete, 0, split)
    a_s = overlap[s - 1] / size[s - 1] if s else np.nan
    weight = table.weight[:n] / size
    sums = ((terms * weight).sum() for terms in (overlap, unseen_best, unseen * mean))
    seen, best, likely = (np.full((1, 1), total) for total in sums)
    return _bounds(table, found, seen, best, likely * a_s, np.full((1, 1), a_s))


def _head_size(side: Side, contribution: Floats, table: WeightTable) -> Floats:
    """Σ_e of the contributions at each depth; after the ranking's end, the depth."""
    size = table.depth[: len(contribution)].copy()
    groups, n = side.groups, side.length
    size[:n] = groups.item_start + groups.item_size * contribution[:n]
    return size
