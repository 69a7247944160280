"""Discrete distributions: their sum, and the probability that one of two values is higher.

What a tie group adds to a measure depends only on its own order. So the sum over queries is a constant plus one
independent value for each tie group. The distribution of that sum is exact, by convolution, as long as it has few
values. Otherwise it is sampled with a seed, and probabilities have a standard error.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from tiewise.analysis.significance import ATOL
from tiewise.caching import cached_property
from tiewise.data.columns import Codes, Floats
from tiewise.metrics.definition import Measure, Sampling
from tiewise.metrics.engine import Parts, expected, value
from tiewise.metrics.enumeration import find_outcomes, sample_orders
from tiewise.metrics.grouped_judgments import GroupedJudgments, Order
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


#: A measure with more tie groups than this is not enumerated.
MAX_GROUPS = 1000
#: The fewest random orders of one run, and the fewest draws from the distributions of its tie groups, which are cheap.
MIN_SAMPLES, MIN_DRAWS = 200, 10_000


class TiedGroups:
    """The tie groups of a run whose order can change a measure, and what they add to its sum over queries."""

    def __init__(self, measure: Measure, grouped: GroupedJudgments, kept: NDArray[np.bool_]):
        self.measure, self._kept = measure, kept
        every = Parts(measure, grouped)
        matters = np.zeros(grouped.n_queries, dtype=bool)
        matters[grouped.group_query[every.inside > 0]] = True
        self.queries = matters & kept  #: whether a query has such a group
        places = np.flatnonzero(self.queries)
        self.parts = every.select(places)[0] if len(places) else every
        self.grouped = self.parts.grouped  #: the lists that have such a group
        inside = self.parts.inside if len(places) else np.zeros_like(every.inside)
        self.groups = np.flatnonzero(inside)  #: as indices into the groups of these lists
        self.inside: Codes = inside[self.groups]  #: the ranks of each group that the measure looks at
        self.size: Codes = self.grouped.group_size[self.groups]
        self.start: Codes = self.grouped.group_start[self.groups]
        self.query: Codes = places[self.grouped.group_query[self.groups]]  #: of each group, among all judged queries

    def __len__(self) -> int:
        return len(self.groups)

    def add(self, order: Order) -> Floats:
        """What each part of the lists adds to the sum over queries in one order; 0 if no order changes it."""
        values = self.parts.values(order)
        if not self.parts.by_group:
            return np.where(np.isnan(values), self._expected, values) if np.isnan(values).any() else values
        return values * self._unit

    @cached_property
    def _unit(self) -> Floats:
        return np.where(self.parts.inside > 0, self.parts.unit, 0.0)

    @cached_property
    def _expected(self) -> Floats:
        return expected(self.measure, self.grouped)

    def constant(self, expected: Floats) -> float:
        """The sum over queries without what these groups add; `expected` has the values of all queries."""
        certain = float(expected[self._kept & ~self.queries].sum())
        if not len(self) or not self.parts.by_group:
            return certain
        one = self.grouped.worst(self.measure)
        return certain + float(value(self.measure, self.grouped, one).sum() - self.add(one).sum())

    def distribution(self, samples: int, seed: int) -> Distribution:
        """The distribution of what all groups add in a random order of the run's ties."""
        if not len(self):
            return Distribution.of_constant(0.0)
        own_seed = seed + int.from_bytes(self._digest, "big")  # other runs have other orders, whatever their names
        outcomes = find_outcomes(self.parts, self.parts.inside) if len(self) <= MAX_GROUPS else None
        if outcomes is None:
            return Distribution.of_samples(np.array(list(self._sample(Sampling(samples, own_seed)))))
        unit = self.parts.unit
        each = [Distribution.of_outcomes(values * unit[part], chances) for part, values, chances in outcomes]
        return add_distributions(each, samples=max(samples, MIN_DRAWS), seed=own_seed)

    def _sample(self, sampling: Sampling) -> Iterator[float]:
        for order, _ in sample_orders(self.grouped, sampling, least=MIN_SAMPLES):
            yield float(self.add(order).sum())

    @property
    def _digest(self) -> bytes:
        """A number that follows from the groups and their judged documents alone."""
        grouped = self.grouped
        facts = (grouped.ties.qrels.query[grouped.rows], grouped.rows, grouped.start, grouped.size)
        return blake2b(np.concatenate(facts).astype("<i8").tobytes(), digest_size=8).digest()
