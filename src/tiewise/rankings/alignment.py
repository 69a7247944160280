"""Rank-biased alignment (RBA) of two rankings with ties: common items weigh by their rank in both.

A common item adds the geometric mean of the weights of its two ranks (Moffat et al., SIGIR-AP 2024, Eq. 11). At best
each ranking goes on with the items that only the other holds, in the other's order, and then both go on alike
(Algorithm 1). Over the orders of ties expectations have closed forms, as tie groups are ordered independently.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from tiewise.data.columns import Codes, Floats
from tiewise.errors import InputError
from tiewise.metrics.estimate import Bounds
from tiewise.rankings.pairs import Pair, Side, estimate
from tiewise.rankings.weights import check_phi, mean_weight

__all__ = ["rba_of"]


def rba_of(pair: Pair, phi: float, ties: str = "average", extremes: bool = True) -> Bounds:
    """RBA of two rankings side by side; without `extremes`, the expectations alone."""
    phi = check_phi(phi)
    if ties == "share":
        share = [np.sqrt(mean_weight(phi, side.start, side.size)) for side in (pair.left, pair.right)]
        return Bounds(estimate("RBA", [float((share[0] * share[1]).sum())], extremes), None, measure="RBA")
    if ties != "average":
        raise InputError(f"ties={ties!r} is not possible for RBA. Use 'average' or 'share'.")
    if not pair.tied:
        values = [_of_order(pair, phi, "best")]
    else:
        values = [_expected(pair, phi)]
        values += [_of_order(pair, phi, which) for which in ("worst", "best")] if extremes else []
    lower, upper = zip(*values, strict=True)
    return Bounds(estimate("RBA", lower, extremes), estimate("RBA", upper, extremes), measure="RBA")


def _of_order(pair: Pair, phi: float, which: str) -> tuple[float, float]:
    """Lower and upper bound in the best or the worst order of ties: Algorithm 1."""
    left, right = pair.ranks(which)
    base = _aligned(phi, left[pair.left.common], right[pair.right.common])
    extra = 0.0
    for side, ranks in ((pair.left, left), (pair.right, right)):
        lonely = np.sort(np.delete(ranks, side.common))
        extra += _aligned(phi, lonely, side.other_length + np.arange(1, len(lonely) + 1))
    return base, base + extra + phi**pair.union


def _aligned(phi: float, left: Codes, right: Codes) -> float:
    """What items with these ranks add: Σ √(weight · weight)."""
    return float((1 - phi) * (phi ** ((left + right) / 2 - 1)).sum())


def _expected(pair: Pair, phi: float) -> tuple[float, float]:
    """Lower and upper bound in expectation over the orders of ties."""
    left, right = (mean_weight(phi, side.start, side.size, power=0.5) for side in (pair.left, pair.right))
    base = float((left * right).sum())
    return base, base + _lonely(pair.left, phi) + _lonely(pair.right, phi) + phi**pair.union


def _lonely(side: Side, phi: float) -> float:
    """What the items that the other ranking lacks can still add, in expectation (Algorithm 1, lines 7 to 11).

    The i-th of them, counted from the head, comes at rank n' + i of the other. A group that is lonely throughout adds
    the same in every order.
    """
    starts, sizes, lonely = side.groups.starts, side.groups.sizes, side.lonely
    before = np.cumsum(lonely) - lonely  # lonely items of earlier groups
    group = side.groups.group
    place = np.flatnonzero((lonely == sizes)[group])
    turn = before[group[place]] + place - starts[group[place]]
    whole = _aligned(phi, place + 1, side.other_length + turn + 1)
    mixed = np.flatnonzero((lonely > 0) & (lonely < sizes))
    if not len(mixed):
        return whole
    root = math.sqrt(phi)
    inside = [scattered(root, *counts) for counts in zip(sizes[mixed].tolist(), lonely[mixed].tolist(), strict=True)]
    head = phi ** ((starts[mixed] + side.other_length + before[mixed]) / 2)
    return whole + (1 - phi) * float((head * inside).sum())


@lru_cache(maxsize=1 << 14)
def scattered(x: float, size: int, lonely: int) -> float:
    """E[Σ_i x^(slot of the i-th lonely item + i)], slots and i from 0, if the lonely items of a group fall anywhere.

    An item in slot p is lonely with chance u/m, and has H lonely ones before it: Σ_p u/m · x^p · E[x^H], where
    H ~ Hypergeometric(m−1, u−1, p).
    """
    others, marked = size - 1, lonely - 1
    # E[x^H] goes from 1 at p = 0 to x^marked at the end. Its ratios follow upward from the one, and downward from the
    # other, by sums of positive terms: each to where the other takes over.
    up = math.ceil((others - marked * (1 - x)) / (1 + x))
    ratio = np.empty(others)
    ratio[:up] = list(_ratios(others, marked, x, up))
    ratio[up:] = [1 / down for down in _ratios(others, marked, 1 / x, others - up)][::-1]
    mean: Floats = np.cumprod(np.append(1.0, ratio))
    return float(lonely / size * (x ** np.arange(size) * mean).sum())


def _ratios(others: int, marked: int, x: float, steps: int) -> Iterator[float]:
    """E[x^H] of p + 1 draws over that of p draws, for p = 0, 1, …, of `others` items of which some are marked."""
    ratio = 1.0
    for p in range(steps):
        ratio = (others - 2 * p + (p - marked) * (1 - x) + p * x / ratio) / (others - p)
        yield ratio
