"""Discrete distributions: their sum, and the probability that one of two values is higher.

What a tie group adds to a measure depends only on its own order. So the sum over queries is a constant plus one
independent value for each tie group. The distribution of that sum is exact, by convolution, as long as it has few
values. Otherwise it is sampled with a seed, and probabilities have a standard error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tiewise.analysis.significance import ATOL
from tiewise.data.columns import Floats
from tiewise.metrics.segments import segment_sum
from tiewise.ties.orders import random_shares

#: The most terms of one convolution: the values of one distribution times those of the other.
MAX_TERMS = 1 << 18


@dataclass(frozen=True)
class Probabilities:
    """How likely a difference is above, at and below 0 in a random order of the tied documents."""

    greater: float
    equal: float
    less: float
    samples: int | None = None  #: the number of random orders; None: exact

    @property
    def method(self) -> str:
        """How they were computed: ``exact`` or ``sampled (n=…)``."""
        return "exact" if self.samples is None else f"sampled (n={self.samples:,})"

    @property
    def error(self) -> float | None:
        """The standard error of `greater`, at most; None if it is exact.

        >>> Probabilities(0.5, 0.0, 0.5, samples=100).error
        0.05
        """
        return None if self.samples is None else float(np.sqrt(self.greater * (1 - self.greater) / self.samples))

    @property
    def reversed(self) -> Probabilities:
        """The same for the negative difference."""
        return replace(self, greater=self.less, less=self.greater)

    @classmethod
    def of_sign(cls, value: float) -> Probabilities:
        """The probabilities of a difference that has the same sign in every order."""
        return cls(float(value > ATOL), float(abs(value) <= ATOL), float(value < -ATOL))

    def restrict(self, minimum: float, maximum: float) -> Probabilities:
        """The same for a difference with a known range: a sign outside that range has probability 0."""
        greater, equal, less = self.greater, self.equal, self.less
        if maximum <= ATOL:
            greater, equal = 0.0, equal + greater
        if minimum >= -ATOL:
            less, equal = 0.0, equal + less
        return replace(self, greater=greater, equal=equal, less=less)


@dataclass(frozen=True)
class Distribution:
    """Ascending values and the probability of each."""

    values: Floats
    probabilities: Floats
    samples: int | None = None  #: the number of samples; None: exact

    @classmethod
    def of_constant(cls, value: float) -> Distribution:
        """The distribution of a constant."""
        return cls(np.array([value]), np.ones(1))

    @classmethod
    def of_samples(cls, values: Floats) -> Distribution:
        """Sampled values, all equally likely."""
        return cls(np.sort(values), np.full(len(values), 1 / len(values)), samples=len(values))

    @classmethod
    def of_outcomes(cls, values: Floats, probabilities: Floats) -> Distribution:
        """Values in any order; equal values are merged."""
        _, first, index = np.unique(np.round(values, 12), return_index=True, return_inverse=True)
        return cls(values[first], segment_sum(index.ravel(), probabilities, len(first)))

    def __len__(self) -> int:
        return len(self.values)

    @property
    def mean(self) -> float:
        """The expected value."""
        return float(self.values @ self.probabilities)

    @property
    def variance(self) -> float:
        """The variance."""
        return float((self.values - self.mean) ** 2 @ self.probabilities)

    def shift(self, constant: float) -> Distribution:
        """The distribution of the value plus a constant."""
        return replace(self, values=self.values + constant)

    def convolve(self, other: Distribution) -> Distribution:
        """The distribution of the sum of two independent values."""
        values = np.add.outer(self.values, other.values).ravel()
        return Distribution.of_outcomes(values, np.multiply.outer(self.probabilities, other.probabilities).ravel())

    def at(self, shares: Floats) -> Floats:
        """The values at some shares of the distribution, each from 0 to 1."""
        return self.values[np.searchsorted(np.cumsum(self.probabilities)[:-1], shares, side="right")]


def add_distributions(parts: Sequence[Distribution], *, samples: int, seed: int) -> Distribution:
    """The distribution of a sum of independent values: exact if it has few values, else from seeded samples.

    >>> coin = Distribution(np.array([-1.0, 1.0]), np.array([0.5, 0.5]))
    >>> add_distributions([coin, coin], samples=100, seed=0).probabilities
    array([0.25, 0.5 , 0.25])
    """
    total, largest = Distribution.of_constant(0.0), max(map(len, parts), default=1)
    for part in sorted(parts, key=len):
        if len(total) * largest > MAX_TERMS:  # the number of values only grows until the largest part is added
            draws = np.arange(samples)
            each = [one.at(random_shares(draws, seed, number)) for number, one in enumerate(parts)]
            return Distribution.of_samples(np.sum(each, axis=0))
        total = total.convolve(part)
    return total


def compare_distributions(a: Distribution, b: Distribution, atol: float = ATOL) -> Probabilities:
    """How likely a value of `a` is above one of `b`; values within `atol` of each other are equal.

    >>> coin = Distribution(np.array([-1.0, 1.0]), np.array([0.5, 0.5]))
    >>> compare_distributions(coin, Distribution.of_constant(-1.0))
    Probabilities(greater=0.5, equal=0.5, less=0.0, samples=None)
    """
    below = np.append(0.0, np.cumsum(b.probabilities))  # the probability of the values before each index
    low = np.searchsorted(b.values, a.values - atol, side="left")
    high, near = low.copy(), np.append(b.values, np.inf)[low] <= a.values + atol  # few have an equal value
    high[near] = np.searchsorted(b.values, a.values[near] + atol, side="right")
    greater, not_less = float(a.probabilities @ below[low]), float(a.probabilities @ below[high])
    total = float(a.probabilities.sum() * below[-1])
    parts = greater / total, max(not_less - greater, 0.0) / total, max(total - not_less, 0.0) / total
    if a.samples is None and b.samples is None:
        return Probabilities(*parts)
    n = min(one.samples for one in (a, b) if one.samples is not None)
    # k of n samples count as (k + ½) / (n + 1): an event that no sample shows may still be possible.
    greater, equal, less = ((n * part + more) / (n + 1) for part, more in zip(parts, (0.5, 0.0, 0.5), strict=True))
    return Probabilities(greater, equal, less, n)
