"""Rank-biased alignment (RBA) of two rankings with ties: common items count by their rank in both.

A common item adds the geometric mean of the weights of its two ranks (Moffat et al., SIGIR-AP 2024, Eq. 11). For the
upper bound each ranking continues with the items that only the other one has, in the other's order, and then both
continue with the same items (Algorithm 1). Tie groups are ordered independently, so the expectations have closed forms.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tiewise.data.columns import Floats, ranges
from tiewise.errors import InputError
from tiewise.metrics.estimate import Bounds
from tiewise.metrics.hypergeometric import hypergeometric
from tiewise.metrics.segments import segment_sum
from tiewise.rankings.ranking import RankingLike, pair_rankings
from tiewise.rankings.tie_orders import Parts, make_bounds, over_orders, sum_variance
from tiewise.rankings.weights import Weights, WeightsLike, as_weights
from tiewise.ties.pairs import PairGroups


def rba(
    x: RankingLike,
    y: RankingLike,
    phi: float | None = None,
    ties: Literal["average", "share"] = "average",
    *,
    weights: WeightsLike | None = None,
) -> Bounds:
    """Rank-biased alignment of two rankings: each common item counts by its rank in both (Eqs. 11 to 13).

    Ranks have geometric weights for φ, or other `weights`. `ties="share"` splits weights evenly over tied ranks before
    multiplying them. It has no upper bound.

    >>> rba("a b c", "a c b", phi=0.8)
    RBA [0.4862, 0.9982]
    >>> rba("a b c", "a c b", weights=[3, 2, 1])
    RBA [0.9714, 0.9714]
    """
    pairs, chosen = pair_rankings(x, y), as_weights(phi, weights)
    return make_bounds("RBA", compute_rba(pairs, chosen, ties), _variance(pairs, chosen) if ties == "average" else {})


def compute_rba(pairs: PairGroups, weights: Weights, ties: str = "average", extremes: bool = True) -> Parts:
    """RBA of pairs of rankings; without `extremes`, only the expectations. `ties="share"` has no upper bound."""
    if ties == "share":
        left, right = np.sqrt(weights.mean(pairs.start, pairs.size))
        return {"lower": over_orders([pairs.sum(left * right)], extremes)}
    if ties != "average":
        raise InputError(f"ties={ties!r} is not possible for RBA. Use 'average' or 'share'.")
    left, right = weights.mean(pairs.start, pairs.size, power=0.5)
    lower = [pairs.sum(left * right)]
    if not extremes:
        return {"lower": over_orders(lower, extremes)}
    root = weights.at(np.arange(1, int(pairs.n_union.max(initial=0)) + 1), power=0.5)
    orders = pairs.extreme_ranks
    lower += [pairs.sum(root[left] * root[right]) for left, right in (ranks - 1 for ranks in orders)]
    residuals = [_Residual(pairs, side, root) for side in (0, 1)]
    added = [sum(side.expected(weights) for side in residuals)]
    added += [sum(side.in_order(last) for side in residuals) for last in (False, True)[: len(orders)]]
    unseen = weights.after(pairs.n_union)
    upper = [base + residual + unseen for base, residual in zip(lower, added, strict=True)]
    return {"lower": over_orders(lower), "upper": over_orders(upper)}


def _variance(pairs: PairGroups, weights: Weights) -> dict[str, float | None]:
    """The variance over the tie orders of one pair; of the upper bound only if unmatched items add a constant."""
    root = weights.at(np.arange(1, int(pairs.length.max()) + 1), power=0.5)
    lower = sum_variance(pairs, lambda i, k: root[i] * root[k])
    is_constant = all((groups.unmatched == groups.size).all() for groups in map(pairs.unmatched, (0, 1)))
    return {"lower": lower, "upper": lower if is_constant else None}


class _Residual:
    """What the unmatched items of one ranking can still add (Algorithm 1, lines 7 to 11).

    The i-th unmatched item takes rank n' + i of the other ranking, which has n' items: Σ √(weight · weight). A group
    without matched items adds the same in every order.
    """

    def __init__(self, pairs: PairGroups, side: int, root: Floats):
        self._n_pairs, self._root, self._groups = len(pairs), root, pairs.unmatched(side)
        self._other = pairs.length[1 - side][self._groups.pair] + self._groups.before  # rank n' + i, of the first item

    def in_order(self, last: bool, among: NDArray[np.bool_] | None = None) -> Floats:
        """The sum for each pair if the unmatched items of a group come last, or first; only those of some groups."""
        groups = self._groups
        count = groups.unmatched if among is None else groups.unmatched * among
        first = groups.start + groups.size - groups.unmatched if last else groups.start
        values = self._root[ranges(first, count)] * self._root[ranges(self._other, count)]
        return segment_sum(np.repeat(groups.pair, count), values, self._n_pairs)

    def expected(self, weights: Weights) -> Floats:
        """The mean over all tie orders."""
        groups = self._groups
        is_mixed = groups.unmatched < groups.size
        mixed, total = np.flatnonzero(is_mixed), self.in_order(last=True, among=~is_mixed)
        if not len(mixed):
            return total
        start, other = groups.start[mixed], self._other[mixed]
        size, marked = groups.size[mixed].tolist(), groups.unmatched[mixed].tolist()
        geometric = weights.is_geometric_after(np.minimum(start, other))
        ratio, first = math.sqrt(weights.ratio), self._root[start] * self._root[other]
        inside = [
            float(first[g]) * expected_power_sum(ratio, size[g], marked[g])
            if geometric[g]
            else _expected_alignment(weights, int(start[g]), int(other[g]), size[g], marked[g])
            for g in range(len(mixed))
        ]
        return total + segment_sum(groups.pair[mixed], np.array(inside), self._n_pairs)


def _expected_alignment(weights: Weights, start: int, other: int, size: int, marked: int) -> float:
    """E[Σ_i √(weight · weight)] if the i-th marked item of a tie group takes rank other + i of the other ranking.

    `marked` of `size` items are marked. The item in slot p is marked with probability u/m and has H marked items before
    it, with H ~ Hypergeometric(m−1, u−1, p).
    """
    left = weights.at(start + np.arange(1, size + 1), power=0.5)
    right = weights.at(other + np.arange(1, marked + 1), power=0.5)
    total = 0.0
    for slots in np.array_split(np.flatnonzero(left), 1 + size * marked // BLOCK):
        probability = hypergeometric(np.full(len(slots), size - 1), marked - 1, slots)
        total += float(left[slots] @ (probability @ right[: probability.shape[1]]))
    return marked / size * total


BLOCK = 1 << 20  # probabilities at a time


@lru_cache(maxsize=1 << 14)
def expected_power_sum(x: float, size: int, marked: int) -> float:
    """E[Σ_i x^(slot of the i-th marked item + i)] over random orders of a group; slots and i count from 0.

    The item in slot p is marked with probability u/m and has H marked items before it: Σ_p u/m · x^p · E[x^H], with
    H ~ Hypergeometric(m−1, u−1, p).
    """
    m, u = size - 1, marked - 1
    # E[x^H] goes from 1 at p = 0 to x^u at the end. Both recurrences of its ratios add positive terms only; each is
    # used where it is stable: upward from p = 0, and downward from the end.
    upward = math.ceil((m - u * (1 - x)) / (1 + x))
    ratio = np.empty(m)
    ratio[:upward] = list(_power_ratios(m, u, x, upward))
    ratio[upward:] = [1 / down for down in _power_ratios(m, u, 1 / x, m - upward)][::-1]
    mean: Floats = np.cumprod(np.append(1.0, ratio))
    return float(marked / size * (x ** np.arange(size) * mean).sum())


def _power_ratios(m: int, u: int, x: float, steps: int) -> Iterator[float]:
    """E[x^H] of p + 1 draws divided by that of p draws, for p = 0, 1, …, if u of m items are marked."""
    ratio = 1.0
    for p in range(steps):
        ratio = (m - 2 * p + (p - u) * (1 - x) + p * x / ratio) / (m - p)
        yield ratio
