"""The tie groups of a run whose order can change a measure, and how their orders spread its sum over queries."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from tiewise.analysis.comparison.distribution import Distribution, add_distributions
from tiewise.caching import cached_property
from tiewise.data.columns import Codes, Floats
from tiewise.metrics.definition import Measure, Sampling
from tiewise.metrics.engine import Parts, expected, value
from tiewise.metrics.enumeration import find_outcomes, sample_orders
from tiewise.metrics.grouped_judgments import GroupedJudgments, Order

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
        own_seed = seed + int.from_bytes(self._digest)  # other runs have other orders, whatever their names
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
