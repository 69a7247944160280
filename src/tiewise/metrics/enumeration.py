"""Parts of lists without a closed form: what their order does, from all its arrangements or from a sample.

A part of a list is what the order of its tie groups changes together. The terms of a sum depend on which documents
stand above a group, but not on their order: there every tie group is a part. For other measures the list is one part.
A part with few arrangements is enumerated, so that its law is exact: documents that a measure does not tell apart are
of one kind, and only the order of kinds matters. For others random orders are drawn. They depend on the seed and the
query's id alone, not on the other queries. The extremes are then those of all orders tried, with the two by `key`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import inf, lgamma, log, perm
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tiewise.data.columns import Codes, Floats
from tiewise.metrics.definition import Sampling
from tiewise.ties.orders import RandomPlaces, hash_names

if TYPE_CHECKING:
    from tiewise.metrics.engine import Parts
    from tiewise.metrics.grouped_judgments import GroupedJudgments, Order

#: The most arrangements that are enumerated, and the most documents in all of them together.
MAX_ARRANGEMENTS, MAX_SLOTS = 2000, 40_000
#: About how many documents the random orders of one measure may move: with more documents fewer orders are drawn.
MOVED_DOCUMENTS = 40_000_000
#: The fewest random orders.
MIN_SAMPLES = 20


class OrderStatistics(NamedTuple):
    """What the orders of their ties give for the parts of lists."""

    mean: Floats
    variance: Floats
    minimum: Floats
    maximum: Floats
    samples: Codes  # random orders that were drawn; 0: all arrangements were enumerated


def try_orders(parts: Parts, inside: Codes, sampling: Sampling) -> OrderStatistics:
    """The statistics of some parts, and the value of one order for others.

    `inside` has for each tie group the number of its ranks that matter, 0 if none does.
    """
    one = parts.values(parts.grouped.worst(parts.measure))
    found = OrderStatistics(one.copy(), np.zeros_like(one), one.copy(), one, np.zeros(len(one), dtype=np.int64))
    for batch in _batches(parts, inside):
        some = batch.parts
        orders: Iterator[tuple[Order, Any]]
        if batch.moves is None:
            orders = sample_orders(some.grouped, sampling, least=MIN_SAMPLES)
        else:
            orders = enumerate_orders(batch.moves, some.grouped, some.n_parts)
        summary = _Summary(some.n_parts, is_sample=batch.moves is None)
        for order, probability in orders:
            summary.add(some.values(order), probability)
        if batch.moves is None:
            for order in (some.grouped.worst(some.measure), some.grouped.best(some.measure)):
                summary.extend(some.values(order))
        use, own = batch.chosen, batch.numbers[batch.chosen]
        found.mean[own], found.variance[own] = summary.mean[use], summary.variance[use]
        found.minimum[own], found.maximum[own] = summary.minimum[use], summary.maximum[use]
        found.samples[own] = summary.weight[use] if batch.moves is None else 0
    return found


def find_outcomes(parts: Parts, inside: Codes) -> list[tuple[int, Floats, Floats]] | None:
    """Each of these parts with all its values and their probabilities; None if one has too many arrangements."""
    found: list[tuple[int, Floats, Floats]] = []
    batches = list(_batches(parts, inside))
    if any(batch.moves is None for batch in batches):
        return None
    for batch in batches:
        orders = enumerate_orders(batch.moves or [], batch.parts.grouped, batch.parts.n_parts)
        each = [(batch.parts.values(order), probability) for order, probability in orders]
        values, chances = (np.array(column).T for column in zip(*each, strict=True))
        chances = np.where(np.isnan(values), 0.0, chances)  # it is not defined in these orders
        for place in np.flatnonzero(batch.chosen).tolist():
            held = chances[place] > 0
            chance = chances[place, held]
            found.append((int(batch.numbers[place]), values[place, held], chance / chance.sum()))
    return found


# -- parts that are worked through together ---------------------------------------------------------------------------


class Moves(NamedTuple):
    """The arrangements of documents that move together, as their places in their tie groups."""

    part: int
    probabilities: Floats  # (n_arrangements,)
    documents: Codes  # as indices into the arrays of the tie groups
    before: Codes  # (n_arrangements, n_documents): the documents of its tie group that precede each


class _Batch(NamedTuple):
    """Parts with about one number of arrangements."""

    parts: Parts  # all parts of their queries
    numbers: Codes  # of these among the parts of all queries
    chosen: NDArray[np.bool_]  # which of these are meant
    moves: list[Moves] | None  # None: there are too many arrangements


def _batches(parts: Parts, inside: Codes) -> Iterator[_Batch]:
    grouped, part, n_parts = parts.grouped, parts.part, parts.n_parts
    matters = np.flatnonzero(inside)
    moves = [_arrange(parts, group, int(inside[group])) for group in matters.tolist()]
    log_number, moved = np.zeros(n_parts), np.zeros(n_parts, dtype=bool)
    np.add.at(log_number, part[matters], [inf if one is None else log(len(one.before)) for one in moves])
    moved[part[matters]] = True
    below = -1.0
    for limit in (log(20), log(300), log(MAX_ARRANGEMENTS), inf):
        chosen = moved & (log_number > below) & (log_number <= limit + 1e-9)
        below = limit + 1e-9
        if not chosen.any():
            continue
        queries = np.zeros(grouped.n_queries, dtype=bool)
        queries[grouped.group_query[matters[chosen[part[matters]]]]] = True
        some, groups = parts.select(np.flatnonzero(queries))
        numbers = groups if some.by_group else np.flatnonzero(queries)
        use = [one for one in moves if one is not None and chosen[one.part]] if limit < inf else None
        if use is not None and some is not parts:  # their documents and parts have other places there
            kept = queries[grouped.query]
            document_at, part_at = np.cumsum(kept) - 1, np.full(n_parts, -1)
            part_at[numbers] = np.arange(len(numbers))
            use = [one._replace(part=int(part_at[one.part]), documents=document_at[one.documents]) for one in use]
        yield _Batch(some, numbers, chosen[numbers], use)


def _arrange(parts: Parts, group: int, slots: int) -> Moves | None:
    """The arrangements of a tie group; None if there are too many."""
    grouped = parts.grouped
    first, n = int(grouped.first[group]), int(grouped.n_judged[group])
    unjudged = int(grouped.group_size[group]) - n
    every = np.append(parts.keys[first : first + n], [parts.unjudged_key] if unjudged else [])
    _, kind, counts = np.unique(every, return_inverse=True, return_counts=True)
    if unjudged:
        counts[kind[-1]] += unjudged - 1
    found = arrange(tuple(counts.tolist()), slots)
    if found is None:
        return None
    documents = np.arange(first, first + n)
    return Moves(int(parts.part[group]), found.probabilities, documents, found.before(kind[:n]))


# -- orders, one after another ----------------------------------------------------------------------------------------


def enumerate_orders(moves: Sequence[Moves], grouped: GroupedJudgments, n_parts: int) -> Iterator[tuple[Order, Floats]]:
    """All arrangements; those of one part are combined. The probability is 0 once a part has no more of them."""
    part, number = np.array([one.part for one in moves]), np.array([len(one.before) for one in moves])
    step = np.ones_like(number)  # how often an arrangement stays while those of the same part before it change
    total = np.ones(n_parts, dtype=np.int64)
    for index, (own, many) in enumerate(zip(part.tolist(), number.tolist(), strict=True)):
        step[index] = total[own]
        total[own] *= many
    probability = np.concatenate([one.probabilities for one in moves])
    first_probability = np.cumsum(number) - number
    width = np.array([len(one.documents) for one in moves])
    table = np.concatenate([one.before.ravel() for one in moves])
    first_row = np.cumsum(number * width) - number * width
    owner = np.repeat(np.arange(len(moves)), width)
    column = np.arange(len(owner)) - np.repeat(np.cumsum(width) - width, width)
    documents = np.concatenate([one.documents for one in moves])
    before = grouped.offset.copy()
    for index in range(int(total.max())):
        chosen = index // step % number
        before[documents] = table[(first_row + chosen * width)[owner] + column]
        weight = np.where(index < total, 1.0, 0.0)
        np.multiply.at(weight, part, probability[first_probability + chosen])
        yield grouped.in_places(before), weight


def sample_orders(grouped: GroupedJudgments, sampling: Sampling, *, least: int) -> Iterator[tuple[Order, float]]:
    """Random orders of all tie groups; fewer of very many documents, but at least so many."""
    names = hash_names(grouped.ties.qrels.queries, grouped.group_query)
    ids = names + grouped.group_start.astype(np.uint64)
    places = RandomPlaces(ids, grouped.group_size, grouped.n_judged, sampling.seed)
    for number in range(min(sampling.samples, max(MOVED_DOCUMENTS // places.moved, least))):
        yield grouped.in_places(places.draw(number)), 1.0


class _Summary:
    """Mean, variance and extremes of values that come one after another, with their probabilities.

    An order in which the value is not defined (NaN) is left out.
    """

    def __init__(self, n_parts: int, *, is_sample: bool):
        self._is_sample = is_sample
        self.weight, self._sum, self._squares = (np.zeros(n_parts) for _ in range(3))
        self._origin: Floats | None = None  # differences to the first value cancel less
        self.minimum, self.maximum = np.full((2, n_parts), np.nan)

    def add(self, values: Floats, probability: Floats | float) -> None:
        is_undefined = np.isnan(values)
        if is_undefined.any():
            values, probability = np.where(is_undefined, 0.0, values), np.where(is_undefined, 0.0, probability)
        if self._origin is None:
            self._origin = values
        difference = values - self._origin
        self.weight += probability
        self._sum += probability * difference
        self._squares += probability * difference**2
        self.extend(values, where=np.asarray(probability) > 0)

    def extend(self, values: Floats, where: NDArray[np.bool_] | bool = True) -> None:
        """Extend the extremes to some values."""
        np.fmin(self.minimum, values, out=self.minimum, where=where)
        np.fmax(self.maximum, values, out=self.maximum, where=where)

    @property
    def mean(self) -> Floats:
        assert self._origin is not None
        mean = self._origin + self._sum / np.maximum(self.weight, 1e-300)
        return np.where(self.weight > 0, mean, np.nan)

    @property
    def variance(self) -> Floats:
        weight = np.maximum(self.weight, 1e-300)
        variance = np.maximum(self._squares / weight - (self._sum / weight) ** 2, 0.0)
        return variance * weight / np.maximum(weight - 1, 1) if self._is_sample else variance


# -- the arrangements of a tie group -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Arrangements:
    """The different ways to fill some slots with documents of some kinds, and the probability of each."""

    kinds: NDArray[np.int16]  # (n_arrangements, n_slots)
    probabilities: Floats  # (n_arrangements,)

    def __len__(self) -> int:
        return len(self.probabilities)

    def before(self, document_kinds: Codes, kind_of: Codes | None = None) -> Codes:
        """How many documents of a tie group precede some of its documents, (n_arrangements, n_documents).

        Documents of one kind stand in the given order. Those outside the slots follow the last slot. If documents of
        several groups are arranged together, `kind_of` has for each of their kinds that of this group, −1 for none.

        >>> arrange((1, 2), 2).before(np.array([0, 1])).tolist()
        [[0, 1], [1, 0], [2, 0]]
        >>> arrange((1, 1, 1), 3).before(np.array([0]), np.array([-1, 0, 1])).ravel().tolist()
        [0, 1, 0, 0, 1, 1]
        """
        n, slots = self.kinds.shape
        kinds = self.kinds if kind_of is None else kind_of[self.kinds]
        place = np.cumsum(kinds >= 0, axis=1) - 1
        before = np.full((n, len(document_kinds)), slots, dtype=np.int64)
        for kind in np.unique(document_kinds).tolist():
            columns = np.flatnonzero(document_kinds == kind)[:slots]
            places = np.sort(np.where(kinds == kind, place, slots), axis=1)
            before[:, columns] = places[:, : len(columns)]
        outside = before == slots
        return np.where(outside, slots - 1 + np.cumsum(outside, axis=1), before)


@lru_cache(maxsize=4096)
def arrange(counts: tuple[int, ...], slots: int) -> Arrangements | None:
    """All ways to fill `slots` with documents, given their number for each kind; None if there are too many.

    >>> arrange((1, 2), 2).kinds.tolist(), arrange((1, 2), 2).probabilities.round(3).tolist()
    ([[0, 1], [1, 0], [1, 1]], [0.333, 0.333, 0.333])
    """
    if perm(len(counts), min(len(counts), slots, 20)) > MAX_ARRANGEMENTS:  # those that begin with different kinds
        return None
    if slots == sum(counts):  # a multinomial coefficient
        log_number = lgamma(slots + 1) - sum(lgamma(n + 1) for n in counts)
        if log_number > log(MAX_ARRANGEMENTS) + 1e-9:
            return None
    partial: list[tuple[tuple[int, ...], tuple[int, ...], float]] = [((), counts, 1.0)]
    for total in range(sum(counts), sum(counts) - slots, -1):
        partial = [
            ((*kinds, kind), (*rest[:kind], n - 1, *rest[kind + 1 :]), probability * n / total)
            for kinds, rest, probability in partial
            for kind, n in enumerate(rest)
            if n
        ]
        if len(partial) > MAX_ARRANGEMENTS or len(partial) * slots > MAX_SLOTS:
            return None
    kinds = np.array([kinds for kinds, _, _ in partial], dtype=np.int16).reshape(len(partial), slots)
    return Arrangements(kinds, np.array([probability for _, _, probability in partial]))
