"""Rank weights and the choice of φ: rank r has the weight (1−φ)·φ^(r−1), so all ranks weigh 1 in total.

RBP, RBR, RBO and RBA are sums of such weights. The ranks after n weigh φ^n. φ is the persistence `p` of Moffat & Zobel
(2008) and of Webber et al. (2010). All sums have positive terms only, so no precision is lost to cancellation, whatever
the length of a list and however close φ is to 0 or 1.
"""

from __future__ import annotations

import math
from functools import lru_cache
from numbers import Real
from typing import Any, TypeVar

import numpy as np

from tiewise.data.columns import Codes, Floats
from tiewise.errors import InputError
from tiewise.rankings.ranking import check_depth

__all__ = [
    "WeightTable",
    "check_phi",
    "mean_weight",
    "phi_for_discount",
    "phi_for_reverse_rba",
    "reversed_rba",
    "tail_weight",
    "top_weight",
    "weight_table",
]

FloatOrArray = TypeVar("FloatOrArray", float, Floats)


def check_phi(phi: object) -> float:
    """φ as a float; an error unless 0 < φ < 1."""
    number: Any = phi if isinstance(phi, Real) else math.nan
    if not 0 < number < 1:
        raise InputError(f"phi={phi!r} is not possible. It must lie above 0 and below 1.")
    return float(number)


# -- weights of ranks ----------------------------------------------------------------------------------------------


def mean_weight(phi: float, start: Codes | int, size: Codes | int, power: float = 1.0) -> Floats:
    """The mean of weight^power over the ranks start + 1 … start + size of tie groups: a geometric sum."""
    rate = power * math.log(phi)
    mean: Floats = np.expm1(size * rate) / (size * np.expm1(rate))
    return (1 - phi) ** power * phi ** (power * start) * mean


class WeightTable:
    """Weights at the depths 1, 2, … n, for sums over depths such as RBO."""

    def __init__(self, phi: float, n: int):
        self.phi = phi
        self.depth: Floats = np.arange(1, n + 1, dtype=np.float64)
        self.weight: Floats = (1 - phi) * phi ** (self.depth - 1)
        smallest_first = np.append(tail_weight(phi, n), (self.weight / self.depth)[::-1])
        self.tail: Floats = np.cumsum(smallest_first)[::-1]  # (n + 1,): tail_weight for depth 0, 1, … n


def weight_table(phi: float, depth: int) -> WeightTable:
    """A table for φ that reaches at least to this depth. Some tables are cached: pairs of systems share them."""
    return _cached_table(phi, 1 << max(depth - 1, 0).bit_length())


_cached_table = lru_cache(maxsize=8)(WeightTable)


def tail_weight(phi: float, depth: int) -> float:
    """(1−φ)·Σ_{d > depth} φ^(d−1)/d: what one shared item adds to RBO at all depths after `depth`.

    For large depths the sum equals (1−φ)·φ^depth · ∫ e^(−au)/(1−φe^(−u)) du with a = depth + 1. The integrand is
    smooth, so Gauss-Laguerre quadrature is exact enough. Otherwise it is the sum over all depths, a logarithm, minus
    the first terms.

    >>> tail_weight(0.5, 0) == math.log(2)
    True
    """
    a = depth + 1
    if a * (1 - phi) < 2:
        d = np.arange(1, a, dtype=np.float64)
        return float((1 - phi) * (-math.log1p(-phi) / phi - (phi ** (d - 1) / d).sum()))
    node, node_weight = _laguerre_nodes()
    mean = (node_weight / ((1 - phi) - phi * np.expm1(-node / a))).sum()
    return float((1 - phi) * phi**depth / a * mean)


@lru_cache(maxsize=1)
def _laguerre_nodes() -> tuple[Floats, Floats]:
    """Nodes and weights: 64 of them give the tail to 14 digits."""
    return np.polynomial.laguerre.laggauss(64)


# -- the choice of φ -----------------------------------------------------------------------------------------------


def top_weight(phi: float, d: int) -> float:
    """The share of RBO's weight on the first d ranks (Webber et al. 2010, Eq. 21).

    >>> round(top_weight(0.9, 10), 4)
    0.8556
    """
    phi = check_phi(phi)
    check_depth(d, "d")
    return 1 - phi ** (d - 1) + d * tail_weight(phi, d - 1)


def phi_for_discount(f: float, k: int) -> float:
    """The φ for which rank k + 1 weighs `f` times as much as rank 1: f^(1/k) (Moffat et al. 2024, Eq. 10).

    >>> round(phi_for_discount(0.1, 10), 4)
    0.7943
    """
    if not isinstance(f, Real) or not isinstance(k, Real) or not 0 < f < 1 or k < 1:
        raise InputError(f"phi_for_discount({f!r}, {k!r}): f must be between 0 and 1, and k a rank of at least 1.")
    return float(f ** (1 / k))


def reversed_rba(phi: FloatOrArray, k: int) -> FloatOrArray:
    """RBA's lower bound for a ranking of k items and its reverse: k(1−φ)·φ^((k−1)/2) (Moffat et al. 2024, Eq. 12).

    >>> reversed_rba(0.25, 2)
    0.75
    """
    return k * (1 - phi) * phi ** ((k - 1) / 2)


def phi_for_reverse_rba(score: float, k: int) -> float:
    """The φ for which RBA gives `score` to a ranking of k items and its reverse (Moffat et al. 2024, Eq. 12).

    `reversed_rba` rises up to φ* = (k−1)/(k+1) and falls after it, so two such φ exist, or none. This is the one that
    is at most φ*.

    >>> round(phi_for_reverse_rba(0.2, 50), 4)
    0.8666
    """
    if not isinstance(k, Real) or not k >= 2:
        raise InputError(f"phi_for_reverse_rba needs two items or more, not k={k!r}: one item has no reverse.")
    peak = (k - 1) / (k + 1)
    highest = reversed_rba(peak, k)
    if not isinstance(score, Real) or not 0 < score <= highest:
        raise InputError(
            f"No φ gives a reversed ranking of {k} items an RBA of {score!r}. The RBA must be above 0 and at most "
            f"{highest:.4f}, its value at φ = {peak:.4f}."
        )
    low, high = 0.0, peak
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if reversed_rba(middle, k) < score else (low, middle)
    return (low + high) / 2
