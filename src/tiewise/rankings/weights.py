"""What a rank is worth: rank r weighs (1−φ)·φ^(r−1), so that all ranks weigh 1, and those after n weigh φ^n.

RBP, RBR, RBO and RBA are sums of such weights. Here are the means of weights over tied ranks, tables of them, and what
the depths that no list shows can add, all of them as sums of positive terms: nothing is lost to cancellation, however
long a list or near to 0 or 1 the φ.
"""

from __future__ import annotations

import math
from functools import lru_cache
from numbers import Real
from typing import Any

import numpy as np

from tiewise.data.columns import Codes, Floats
from tiewise.errors import InputError

__all__ = ["Weights", "check_phi", "mean_weight", "tail", "weights"]


def check_phi(phi: object) -> float:
    """φ as a float; an error unless it lies above 0 and below 1."""
    number: Any = phi if isinstance(phi, Real) else math.nan
    if not 0 < number < 1:
        raise InputError(f"phi={phi!r} is not possible. It must be a number above 0 and below 1.")
    return float(number)


def mean_weight(phi: float, start: Any, size: Any, power: float = 1.0) -> Floats:
    """The mean of weight^power over the ranks of groups of these sizes after so many items: a geometric sum."""
    rate = power * math.log(phi)
    spread: Floats = np.expm1(size * rate) / (size * np.expm1(rate))
    return (1 - phi) ** power * phi ** (power * start) * spread


class Weights:
    """Tables over the depths 1, 2, …: what each weighs, and what an item counts that two heads share from there on."""

    def __init__(self, phi: float, depth: int):
        self.phi = phi
        self.depth: Floats = np.arange(1, depth + 1, dtype=np.float64)
        self.each: Floats = (1 - phi) * phi ** (self.depth - 1)
        small_first = np.append(tail(phi, depth), (self.each / self.depth)[::-1])
        self.after: Floats = np.cumsum(small_first)[::-1]  # (depth + 1,): for k = 0, 1, …, as `tail`

    def beyond(self, depth: Codes | int) -> Any:
        """Σ_{d > depth} φ^d/d."""
        return self.phi / (1 - self.phi) * self.after[depth]


def weights(phi: float, depth: int) -> Weights:
    """Tables for a φ that reach to a depth or further: a few are kept, as pairs of systems ask for the same."""
    return _tables(phi, 1 << max(depth - 1, 0).bit_length())


@lru_cache(maxsize=8)
def _tables(phi: float, depth: int) -> Weights:
    return Weights(phi, depth)


def tail(phi: float, depth: int) -> float:
    """(1−φ)·Σ_{d > depth} φ^(d−1)/d: what an item adds to RBO at the depths past `depth` if two heads share it there.

    Far down, the sum is ∫ e^(−au)/(1−φe^(−u)) du times (1−φ)φ^depth, a = depth + 1, and the integrand is smooth
    enough for Gauss and Laguerre; otherwise the sum over all depths, a logarithm, less the head of it is safe.

    >>> tail(0.5, 0) == math.log(2)
    True
    """
    a = depth + 1
    if a * (1 - phi) < 2:
        d = np.arange(1, a, dtype=np.float64)
        return float((1 - phi) * (-math.log1p(-phi) / phi - (phi ** (d - 1) / d).sum()))
    node, share = _laguerre()
    mean = (share / ((1 - phi) - phi * np.expm1(-node / a))).sum()
    return float((1 - phi) * phi**depth / a * mean)


@lru_cache(maxsize=1)
def _laguerre() -> tuple[Floats, Floats]:
    """Nodes and weights: 64 of them give the tail to 14 digits."""
    return np.polynomial.laguerre.laggauss(64)
