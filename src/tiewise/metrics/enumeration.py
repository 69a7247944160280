"""Statistics without a closed form: all arrangements of tie groups, or a sample of their orders.

A part of a list is what the order of its tie groups changes together. The terms of a sum depend on which documents
stand above a group, but not on their order: there every tie group is a part. For other measures the list is one part.
A part with few arrangements is enumerated, so that its statistics are exact. For others random orders are drawn. They
depend on the seed and the query's id alone, not on the other queries.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, log
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from tiewise.data.columns import Codes, Floats
from tiewise.metrics.arrangements import MAX_ARRANGEMENTS, Arrangements, arrange
from tiewise.metrics.definition import Sampling

if TYPE_CHECKING:
    from tiewise.metrics.grouped_judgments import GroupedJudgments, Order

__all__ = ["PartStatistics", "RandomOrders", "mix_bits", "summarize_parts"]

#: About how many documents the random orders of one measure may move: with more documents fewer orders are drawn.
MOVED_DOCUMENTS = 40_000_000
#: The fewest random orders.
MIN_SAMPLES = 20


@dataclass(frozen=True)
class PartStatistics:
    """The statistics of the parts of lists over the orders of their ties; NaN for parts that no order changes."""

    mean: Floats
    variance: Floats
    minimum: Floats
    maximum: Floats
    samples: Codes  # random orders that were drawn; 0: all arrangements were enumerated

    @property
    def extremes(self) -> tuple[Floats, Floats]:
        """Minimum and maximum."""
        return self.minimum, self.maximum


def summarize_parts(
    bind: Callable[[GroupedJudgments], Callable[[Order], Floats]],
    grouped: GroupedJudgments,
    *,
    keys: Floats,
    unjudged_key: float,
    inside: Codes,
    by_group: bool,
    sampling: Sampling,
) -> PartStatistics:
    """The statistics of a value of each part; `bind` gives the function from an order of some groups to these values.

    `keys` has a number for each judged document: documents of one number cannot be told apart. Unjudged documents have
    `unjudged_key`. `inside` has for each tie group the number of its ranks that matter, 0 if its order does not matter.
    With `by_group` each tie group is a part, else each query.
    """
    part = np.arange(len(grouped.first)) if by_group else grouped.group_query
    n_parts = len(grouped.first) if by_group else grouped.n_queries
    matters = np.flatnonzero(inside)
    arrangements = [_arrange(grouped, group, keys, unjudged_key, int(inside[group])) for group in matters.tolist()]
    mean, variance, minimum, maximum = np.full((4, n_parts), np.nan)
    found = PartStatistics(mean, variance, minimum, maximum, np.zeros(n_parts, dtype=np.int64))
    log_number = np.zeros(n_parts)
    np.add.at(log_number, part[matters], [inf if one is None else log(len(one[0])) for one in arrangements])
    moved = np.zeros(n_parts, dtype=bool)
    moved[part[matters]] = True
    below = -1.0
    for limit in (log(20), log(300), log(MAX_ARRANGEMENTS), inf):  # parts of about one number of arrangements together
        chosen = moved & (log_number > below) & (log_number <= limit + 1e-9)
        below = limit + 1e-9
        if not chosen.any():
            continue
        queries = np.zeros(grouped.n_queries, dtype=bool)
        queries[grouped.group_query[matters[chosen[part[matters]]]]] = True
        some, groups = grouped.select(np.flatnonzero(queries))
        own_part = groups if by_group else np.flatnonzero(queries)  # the parts of the selected queries
        use = chosen[own_part]
        if limit < inf:
            place = np.full(len(grouped.first), -1)
            place[groups] = np.arange(len(groups))
            fixed = [
                (int(place[group]), *one)
                for group, one in zip(matters.tolist(), arrangements, strict=True)
                if one is not None and chosen[part[group]]
            ]
            own = np.arange(len(groups)) if by_group else some.group_query
            summary = _enumerate(bind(some), some, fixed, own, len(own_part))
        else:
            summary = _sample(bind(some), some, sampling, len(own_part))
        _store(found, own_part[use], summary, use)
    return found


def _store(found: PartStatistics, parts: Codes, summary: _Summary, use: NDArray[np.bool_]) -> None:
    found.mean[parts], found.variance[parts] = summary.mean[use], summary.variance[use]
    found.minimum[parts], found.maximum[parts] = summary.minimum[use], summary.maximum[use]
    found.samples[parts] = summary.weight[use] if summary.samples else 0


def _arrange(
    grouped: GroupedJudgments, group: int, keys: Floats, unjudged_key: float, slots: int
) -> tuple[Arrangements, Codes] | None:
    """The arrangements of a tie group and the kinds of its judged documents; None if there are too many."""
    first, n = int(grouped.first[group]), int(grouped.n_judged[group])
    unjudged = int(grouped.group_size[group]) - n
    every = np.append(keys[first : first + n], [unjudged_key] if unjudged else [])
    _, kind, counts = np.unique(every, return_inverse=True, return_counts=True)
    if unjudged:
        counts[kind[-1]] += unjudged - 1
    found = arrange(tuple(counts.tolist()), slots)
    return None if found is None else (found, kind[:n])


# -- one order after another ------------------------------------------------------------------------------------------


class _Summary:
    """Mean, variance and extremes of values that come one after another, with their probabilities.

    An order in which the value is not defined (NaN) is left out.
    """

    def __init__(self, n_parts: int, samples: int = 0):
        self.samples = samples
        self.weight, self._sum, self._squares = (np.zeros(n_parts) for _ in range(3))
        self._origin: Floats | None = None  # differences to the first value cancel less
        self.minimum, self.maximum = np.full((2, n_parts), np.nan)

    def add(self, values: Floats, probability: Floats) -> None:
        is_undefined = np.isnan(values)
        if is_undefined.any():
            values, probability = np.where(is_undefined, 0.0, values), np.where(is_undefined, 0.0, probability)
        if self._origin is None:
            self._origin = values
        difference = values - self._origin
        self.weight += probability
        self._sum += probability * difference
        self._squares += probability * difference**2
        used = probability > 0
        np.fmin(self.minimum, values, out=self.minimum, where=used)
        np.fmax(self.maximum, values, out=self.maximum, where=used)

    @property
    def mean(self) -> Floats:
        assert self._origin is not None
        mean = self._origin + self._sum / np.maximum(self.weight, 1e-300)
        return np.where(self.weight > 0, mean, np.nan)

    @property
    def variance(self) -> Floats:
        weight = np.maximum(self.weight, 1e-300)
        variance = np.maximum(self._squares / weight - (self._sum / weight) ** 2, 0.0)
        return variance * weight / np.maximum(weight - 1, 1) if self.samples > 1 else variance


def _enumerate(
    values: Callable[[Order], Floats],
    grouped: GroupedJudgments,
    fixed: list[tuple[int, Arrangements, Codes]],
    part: Codes,
    n_parts: int,
) -> _Summary:
    """All arrangements of some groups; those of one part are combined."""
    group = np.array([index for index, _, _ in fixed])
    number = np.array([len(one) for _, one, _ in fixed])
    step = np.ones_like(number)  # how often the arrangement of a group stays while those before it change
    total = np.ones(n_parts, dtype=np.int64)
    for index, (own, many) in enumerate(zip(part[group].tolist(), number.tolist(), strict=True)):
        step[index] = total[own]
        total[own] *= many
    probability = np.concatenate([one.probabilities for _, one, _ in fixed])
    first_probability = np.cumsum(number) - number
    tables = [one.before(kinds) for _, one, kinds in fixed]
    flat = np.concatenate([table.ravel() for table in tables])
    judged = grouped.n_judged[group]
    first_table = np.cumsum(number * judged) - number * judged
    owner = np.repeat(np.arange(len(group)), judged)
    column = np.arange(len(owner)) - np.repeat(np.cumsum(judged) - judged, judged)
    documents = grouped.first[group][owner] + column
    before = np.arange(len(grouped.group)) - grouped.first[grouped.group]
    summary = _Summary(n_parts)
    for index in range(int(total.max())):
        chosen = index // step % number
        before[documents] = flat[(first_table + chosen * judged)[owner] + column]
        weight = np.where(index < total, 1.0, 0.0)
        np.multiply.at(weight, part[group], probability[first_probability + chosen])
        summary.add(values(grouped.in_places(before)), weight)
    return summary


def _sample(values: Callable[[Order], Floats], grouped: GroupedJudgments, sampling: Sampling, n_parts: int) -> _Summary:
    """Random orders of all tie groups."""
    orders = RandomOrders(grouped, sampling.seed)
    samples = min(sampling.samples, max(MOVED_DOCUMENTS // orders.moved, MIN_SAMPLES))
    summary, one = _Summary(n_parts, samples), np.ones(n_parts)
    for index in range(samples):
        summary.add(values(grouped.in_places(orders.before(index))), one)
    return summary


class RandomOrders:
    """Random orders of the documents in tie groups, by number. Only places of judged documents are computed."""

    def __init__(self, grouped: GroupedJudgments, seed: int):
        self._group, self._size = grouped.group, grouped.group_size
        names = np.array([crc32(query.encode("utf-8", "surrogatepass")) for query in grouped.ties.qrels.queries])
        self._key = mix_bits(names.astype(np.uint64)[grouped.group_query] ^ mix_bits(np.uint64(seed % 2**64)))
        self._key += grouped.group_start.astype(np.uint64) << np.uint64(20)
        is_dense = grouped.n_judged**2 > self._size  # two random places would be equal too often
        self._slots = slots = np.where(is_dense, self._size, 0)
        self._n_dense = np.where(is_dense, grouped.n_judged, 0)
        # A dense group needs its lowest random keys, as many as it has judged documents. More of them are below this.
        self._low_key = (self._n_dense + 8 * np.sqrt(self._n_dense) + 8) / self._size
        self._first = np.cumsum(slots) - slots
        self._slot_group = np.repeat(np.arange(len(slots)), slots)
        self._slot = np.arange(len(self._slot_group)) - self._first[self._slot_group]
        self._offset = np.arange(len(self._group)) - grouped.first[self._group]  # of a document in its group
        self._dense = np.flatnonzero(is_dense[self._group])
        self._sparse = np.flatnonzero(~is_dense[self._group])

    @property
    def moved(self) -> int:
        """About how many documents one order moves."""
        return len(self._slot) + len(self._group) + 1

    def before(self, number: int) -> Codes:
        """How many documents of its group precede each judged document in a random order."""
        before = np.zeros(len(self._group), dtype=np.int64)
        if len(self._dense):
            key = self._uniform(number, 0, self._slot_group, self._slot)
            low = np.flatnonzero(key <= self._low_key[self._slot_group])
            many = np.bincount(self._slot_group[low], minlength=len(self._size))
            if (many < self._n_dense).any():  # by a rare chance
                low, many = np.arange(len(key)), self._slots
            shuffled = low[np.argsort((self._slot_group + key)[low], kind="stable")]
            group = self._group[self._dense]
            first = np.cumsum(many) - many
            before[self._dense] = shuffled[first[group] + self._offset[self._dense]] - self._first[group]
        documents, attempt = self._sparse, 1
        while len(documents):  # until no two documents of a group have the same place
            group = self._group[documents]
            uniform = self._uniform(number, attempt, group, self._offset[documents])
            before[documents] = np.minimum((uniform * self._size[group]).astype(np.int64), self._size[group] - 1)
            rows = np.lexsort((before[documents], group))
            equal = (group[rows][1:] == group[rows][:-1]) & (np.diff(before[documents][rows]) == 0)
            again = np.zeros(len(self._size), dtype=bool)
            again[group[rows][1:][equal]] = True
            documents, attempt = documents[again[group]], attempt + 1
        return before

    def _uniform(self, number: int, attempt: int, group: Codes, place: Codes) -> Floats:
        key = self._key[group] + mix_bits(np.uint64(number * 1024 + attempt)) + place.astype(np.uint64)
        uniform: Floats = (mix_bits(key) >> np.uint64(11)) * 2.0**-53
        return uniform


def mix_bits(key: Any) -> Any:
    """A hash of 64 bits to 64 bits, each of which depends on all of them (the finaliser of SplitMix64)."""
    with np.errstate(over="ignore"):
        key = key + np.uint64(0x9E3779B97F4A7C15)
        key = (key ^ (key >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        key = (key ^ (key >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return key ^ (key >> np.uint64(31))
