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

from tiewise.data.columns import Codes, Floats
from tiewise.errors import InputError
from tiewise.metrics.estimate import Bounds
from tiewise.metrics.hypergeometric import hypergeometric
from tiewise.rankings.pairs import RankingPair, Side, TieOrder, make_estimate
from tiewise.rankings.ranking import RankingLike
from tiewise.rankings.weights import Weights, WeightsLike, as_weights

__all__ = ["compute_rba", "rba"]


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
    return compute_rba(RankingPair.from_rankings(x, y), as_weights(phi, weights), ties)


def compute_rba(pair: RankingPair, weights: Weights, ties: str = "average", extremes: bool = True) -> Bounds:
    """RBA of a pair of rankings; without `extremes`, only the expectations."""
    if ties == "share":
        left, right = (np.sqrt(weights.mean(side.start, side.size)) for side in (pair.left, pair.right))
        return Bounds(make_estimate("RBA", [float((left * right).sum())], extremes), None, measure="RBA")
    if ties != "average":
        raise InputError(f"ties={ties!r} is not possible for RBA. Use 'average' or 'share'.")
    if pair.tied:
        values = [_expected_bounds(pair, weights)]
        if extremes:
            values += [_bounds_in_order(pair, weights, order) for order in ("worst", "best")]
    else:
        values = [_bounds_in_order(pair, weights, "best")]
    lower, upper = zip(*values, strict=True)
    return Bounds(make_estimate("RBA", lower, extremes), make_estimate("RBA", upper, extremes), measure="RBA")


def _bounds_in_order(pair: RankingPair, weights: Weights, order: TieOrder) -> tuple[float, float]:
    """The lower and the upper bound in the best or the worst tie order: Algorithm 1."""
    left, right = pair.ranks(order)
    base = _align(weights, left[pair.left.common], right[pair.right.common])
    residual = 0.0
    for side, ranks in ((pair.left, left), (pair.right, right)):
        unmatched = np.sort(np.delete(ranks, side.common))
        residual += _align(weights, unmatched, side.other_length + np.arange(1, len(unmatched) + 1))
    return base, base + residual + float(weights.after(pair.n_union))


def _align(weights: Weights, left: Codes, right: Codes) -> float:
    """What items with these two ranks add: Σ √(weight · weight) (Eq. 11)."""
    return float((weights.at(left, power=0.5) * weights.at(right, power=0.5)).sum())


def _expected_bounds(pair: RankingPair, weights: Weights) -> tuple[float, float]:
    """The lower and the upper bound, expected over all tie orders."""
    left, right = (weights.mean(side.start, side.size, power=0.5) for side in (pair.left, pair.right))
    base = float((left * right).sum())
    residual = _unmatched_residual(pair.left, weights) + _unmatched_residual(pair.right, weights)
    return base, base + residual + float(weights.after(pair.n_union))


def _unmatched_residual(side: Side, weights: Weights) -> float:
    """What the unmatched items of a ranking can still add, in expectation (Algorithm 1, lines 7 to 11).

    The i-th unmatched item takes rank n' + i of the other ranking, which has n' items. A group without matched items
    adds the same in every order.
    """
    groups, unmatched = side.groups, side.unmatched
    before = np.cumsum(unmatched) - unmatched  # unmatched items of earlier groups
    position = np.flatnonzero((unmatched == groups.size)[groups.group])
    number = before[groups.group[position]] + position - groups.item_start[position]
    residual = _align(weights, position + 1, side.other_length + number + 1)
    mixed = np.flatnonzero((unmatched > 0) & (unmatched < groups.size))
    if not len(mixed):
        return residual
    start, other = groups.start[mixed], side.other_length + before[mixed]
    size, marked = groups.size[mixed].tolist(), unmatched[mixed].tolist()
    geometric = weights.is_geometric_after(np.minimum(start, other))
    root, first = math.sqrt(weights.ratio), weights.at(start + 1, power=0.5) * weights.at(other + 1, power=0.5)
    inside = [
        float(first[g]) * expected_power_sum(root, size[g], marked[g])
        if geometric[g]
        else _expected_alignment(weights, int(start[g]), int(other[g]), size[g], marked[g])
        for g in range(len(mixed))
    ]
    return residual + math.fsum(inside)


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
