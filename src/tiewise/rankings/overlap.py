"""Rank-biased overlap (RBO) of two rankings with ties: what their first d items share, at every depth d.

With the overlap X_d of the first d items and the agreement A_d = X_d / d (Webber et al. 2010)

    RBO = (1−φ) · Σ_d φ^(d−1) · A_d

At depth d only one tie group of a ranking is split: the group at rank d. Earlier groups count fully, later groups do
not count. So the expected X_d follows from four counts of common items, by whether the group of each is split or
complete on either side. Each count is a running sum over the depths. S is the shorter ranking, L the longer; their
lengths are s and n (the paper's l).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from tiewise.data.columns import Codes, Floats
from tiewise.errors import InputError
from tiewise.metrics.estimate import Bounds
from tiewise.rankings.pairs import RankingPair, Side, make_estimate
from tiewise.rankings.ranking import RankingLike
from tiewise.rankings.weights import WeightTable, check_phi, weight_table

__all__ = ["compute_rbo", "rbo"]


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
    table = weight_table(phi, pair.n_union)
    if ties == "average":
        agreement = _average_agreement(pair, table, extremes)
    else:
        agreement = _variant_agreement(pair, table, ties)
    lower, upper, extrapolated = _sum_over_depths(pair, table, agreement)
    return Bounds(
        make_estimate("RBO", lower, extremes),
        make_estimate("RBO", upper, extremes),
        None if extrapolated is None else make_estimate("RBO", extrapolated, extremes),
        measure="RBO",
    )


# -- sums over depths ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Agreement:
    """A_d = overlap / size for the depths 1 … n.

    After depth s, the unseen items of S can add to the overlap: `unseen_best` at the most, and `unseen_likely` · A_s if
    the agreement stays as it is.
    """

    overlap: Floats  # X_d, (n_orders, n): expected, and in the worst and the best order
    size: Floats  # (n,): d, or the mean size of the two heads
    unseen_best: Floats  # (n,)
    unseen_likely: Floats  # (n,)


def _sum_over_depths(
    pair: RankingPair, table: WeightTable, agreement: _Agreement
) -> tuple[Floats, Floats, Floats | None]:
    """RBO_MIN, RBO_MAX and RBO_EXT, (n_orders,) each (Webber et al. 2010, Eqs. 11, 30 and 32).

    RBO_EXT is None if a ranking is empty.
    """
    s, n = (side.length for side in pair.by_length)
    weight = table.weight[:n] / agreement.size
    overlap = agreement.overlap
    unchanged = pair.n_common * float(table.tail[n])  # after depth n, if no more items match
    most = max(_highest_tail(pair, table), unchanged)

    def total(overlap: Floats, tail: Floats | float) -> Floats:
        return np.minimum((overlap * weight).sum(axis=-1) + tail, 1.0)  # rounding cannot exceed 1

    lower, upper = total(overlap, unchanged), total(overlap + agreement.unseen_best, most)
    if not s:
        return lower, upper, None
    a_s = overlap[:, s - 1] / agreement.size[s - 1]
    a_n = (pair.n_common + (n - s) * a_s) / n
    return lower, upper, total(overlap + agreement.unseen_likely * a_s[:, None], a_n * table.phi**n)


def _highest_tail(pair: RankingPair, table: WeightTable) -> float:
    """What the depths after n add at the most: two more items match at each depth, until all items match."""
    s, n = (side.length for side in pair.by_length)
    d, weight = table.depth[n : pair.n_union], table.weight[n : pair.n_union]
    return float(((2 * d - n - s + pair.n_common) / d * weight).sum() + table.phi**pair.n_union)


# -- overlap at each depth -----------------------------------------------------------------------------------------


def _average_agreement(pair: RankingPair, table: WeightTable, extremes: bool) -> _Agreement:
    """X_d / d: expected over all tie orders, and in the worst and the best order."""
    s, n = (side.length for side in pair.by_length)
    if pair.tied:
        overlap = [_expected_overlap(pair, n)]
        if extremes:
            overlap += [_overlap_of_ranks(*pair.common_ranks(order), n) for order in ("worst", "best")]
    else:
        overlap = [_overlap_of_ranks(pair.left.end, pair.right.end, n)]
    depth = table.depth[:n]
    unseen = np.maximum(depth - s, 0)
    return _Agreement(np.array(overlap, dtype=np.float64), size=depth, unseen_best=unseen, unseen_likely=unseen)


def _overlap_of_ranks(left: Codes, right: Codes, depths: int) -> Floats:
    """X_d for common items with these ranks: an item counts from the larger of its two ranks on."""
    return _count_after(np.maximum(left, right) - 1, depths)


def _expected_overlap(pair: RankingPair, depths: int) -> Floats:
    """E[X_d]: items of complete groups count 1, those of the split group count their contribution."""
    left, right = pair.left, pair.right
    c_left, c_right = left.contribution(depths), right.contribution(depths)
    both_split = _count_between(np.maximum(left.start, right.start), np.minimum(left.end, right.end), depths)
    left_split = _count_between(np.maximum(left.start, right.end), left.end, depths)
    right_split = _count_between(np.maximum(right.start, left.end), right.end, depths)
    complete = _count_after(np.maximum(left.end, right.end), depths)
    return complete + c_left * left_split + c_right * right_split + c_left * c_right * both_split


def _count_after(start: Codes, depths: int) -> Floats:
    """The number of items with start < d, for d = 1 … depths."""
    count: Floats = np.cumsum(np.bincount(start, minlength=depths)[:depths])
    return count


def _count_between(start: Codes, end: Codes, depths: int) -> Floats:
    """The number of items with start < d ≤ end, for d = 1 … depths."""
    return _count_after(np.minimum(start, end), depths) - _count_after(end, depths)


# -- the variants of Corsi & Urbano (SIGIR 2024) -------------------------------------------------------------------


def _variant_agreement(pair: RankingPair, table: WeightTable, ties: str) -> _Agreement:
    """A_d of RBO^w, RBO^a or RBO^b, one number each.

    The overlap is Σ_e c_{e|d}(S) · c_{e|d}(L). An item's contribution c is its probability to be among the first d (a,
    b), or 1 from the first rank of its group on (w). The size is the mean of Σ c (w, a), or the geometric mean of Σ c²
    (b).
    """
    short, long = pair.by_length
    s, n = short.length, long.length
    if ties == "w":
        overlap, (c_short, c_long) = _count_after(np.maximum(short.start, long.start), n), np.ones((2, n))
    else:
        overlap, c_short, c_long = _expected_overlap(pair, n), short.contribution(n), long.contribution(n)
    if ties == "b":
        size = np.sqrt(_head_size(short, c_short**2, table) * _head_size(long, c_long**2, table))
    else:
        size = (_head_size(short, c_short, table) + _head_size(long, c_long, table)) / 2
    # Items that only L has: those in complete groups, and those in the split group.
    group = long.groups.group
    complete, split = (np.cumsum(long.unmatched) - long.unmatched)[group], long.unmatched[group]
    mean = (complete + c_long * split) / np.maximum(complete + split, 1)
    unseen = np.maximum(table.depth[:n] - s, 0)
    return _Agreement(
        np.array([overlap], dtype=np.float64),
        size=size,
        unseen_best=np.minimum(unseen, complete) + c_long * np.clip(unseen - complete, 0, split),
        unseen_likely=unseen * mean,
    )


def _head_size(side: Side, contribution: Floats, table: WeightTable) -> Floats:
    """Σ_e of the contributions at each depth; after the ranking's end, the depth."""
    size = table.depth[: len(contribution)].copy()
    groups, n = side.groups, side.length
    size[:n] = groups.item_start + groups.item_size * contribution[:n]
    return size
