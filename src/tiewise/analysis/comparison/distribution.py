"""Lots: what chance there is in the order of ties, as a sum of independent draws.

What a tie group adds to a measure depends on its own order alone, so the sum over queries is a constant plus one `Lot`
for each tie group that matters: a few values, each with its chance. Lots are added up: exactly while their sums are
few, then with neighbouring rare sums taken together, which moves no chance by as much as a thousandth; very many lots
are drawn instead. Groups with too many different orders have no lot, and say so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import perm

import numpy as np
from numpy.typing import NDArray

from tiewise.analysis.significance import ATOL
from tiewise.data.columns import Codes, Floats
from tiewise.metrics.definition import Measure
from tiewise.metrics.engine import Order, Urns, safe_divide, segment_sum

__all__ = ["Chances", "Lot", "Tied", "Words", "added", "chances", "lots", "words"]

#: A group with more different orders than this is not enumerated, nor with more documents in all of them together, nor
#: a measure with more groups.
MOST_WORDS, MOST_LETTERS, MOST_GROUPS = 2000, 40_000, 1000
#: So many sums of lots are kept apart; of more, those that are rarer than one in FINE are put into so many bins.
MOST_SUMS, FINE = 1 << 14, 1 << 11
#: About how many sums one step may make; more lots than MOST_ADDED are drawn.
STEP, MOST_ADDED = 1 << 18, 200


@dataclass(frozen=True)
class Chances:
    """How likely a difference is above, at and below 0 when ties are in random order, and how that was found."""

    greater: float
    equal: float | None  #: None where it is not known: a normal distribution has no chance of being level
    less: float
    method: str  #: "exact", "rounded", "sampled (n=…)" or "normal"
    draws: int | None = None  #: how many random orders were drawn; None where none were

    @property
    def error(self) -> float | None:
        """The standard error of `greater`, at the most; None where no orders were drawn.

        >>> Chances(0.5, 0.0, 0.5, "sampled (n=100)", draws=100).error
        0.05
        """
        return None if self.draws is None else float(np.sqrt(self.greater * (1 - self.greater) / self.draws))

    @property
    def reversed(self) -> Chances:
        """The same for the difference the other way round."""
        return replace(self, greater=self.less, less=self.greater)

    @classmethod
    def of_sign(cls, value: float) -> Chances:
        """Those of a difference that no order changes."""
        return cls(float(value > ATOL), float(abs(value) <= ATOL), float(value < -ATOL), "exact")

    def within(self, minimum: float, maximum: float) -> Chances:
        """The same where the difference lies in a range: a side that it cannot reach has no chance."""
        greater, equal, less = self.greater, self.equal, self.less
        if maximum <= ATOL:
            greater, equal = 0.0, None if equal is None else equal + greater
        if minimum >= -ATOL:
            less, equal = 0.0, None if equal is None else equal + less
        return replace(self, greater=greater, equal=equal, less=less)


@dataclass(frozen=True)
class Lot:
    """Ascending values that are drawn with these chances; how they were found, if not exactly."""

    value: Floats
    chance: Floats
    rounded: bool = False  #: whether rare values near to each other were taken together
    draws: int | None = None  #: of how many random orders these are the values

    @classmethod
    def of_draws(cls, drawn: Floats) -> Lot:
        """Values that were drawn, all equally likely."""
        return cls(np.sort(drawn), np.full(len(drawn), 1 / len(drawn)), draws=len(drawn))

    @property
    def mean(self) -> float:
        """The expected value."""
        return float(self.value @ self.chance)

    @property
    def variance(self) -> float:
        """The expected squared distance from it."""
        return float((self.value - self.mean) ** 2 @ self.chance)

    def plus(self, other: Lot) -> Lot:
        """The sum of two lots, equal sums taken together."""
        value = np.add.outer(self.value, other.value).ravel()
        chance = np.multiply.outer(self.chance, other.chance).ravel()
        return Lot(value, chance, self.rounded or other.rounded).merged()

    def moved(self, constant: float) -> Lot:
        """Every value and a number."""
        return replace(self, value=self.value + constant)

    def merged(self) -> Lot:
        """The same in ascending order, with equal values taken together."""
        _, first, at = np.unique(np.round(self.value, 12), return_index=True, return_inverse=True)
        return replace(self, value=self.value[first], chance=segment_sum(at.ravel(), self.chance, len(first)))

    def to_bins(self, bins: int) -> Lot:
        """Values rarer than one in `bins` in so many bins of equal chance, each at its mean; all others as they are.

        What is likely stays apart, so that the chance of being level is kept too.
        """
        rare = self.chance < 1 / bins
        value, chance = self.value[rare], self.chance[rare]
        if len(value) <= bins:
            return self
        place = np.minimum((np.cumsum(chance) - chance / 2) / chance.sum() * bins, bins - 1).astype(np.int64)
        held = segment_sum(place, chance, bins)
        some = held > 0
        means = segment_sum(place, chance * value, bins)[some] / held[some]
        whole = np.append(self.value[~rare], means), np.append(self.chance[~rare], held[some])
        order = np.argsort(whole[0])
        return Lot(whole[0][order], whole[1][order], rounded=True)


def added(lots: Sequence[Lot], *, samples: int, seed: int | Sequence[int]) -> Lot:
    """The sum of a draw from each lot.

    >>> coin = Lot(np.array([-1.0, 1.0]), np.array([0.5, 0.5]))
    >>> added([coin, coin], samples=100, seed=0).chance
    array([0.25, 0.5 , 0.25])
    """
    if len(lots) > MOST_ADDED:
        rng, drawn = np.random.default_rng(seed), np.zeros(samples)
        for lot in lots:
            drawn += lot.value[np.searchsorted(np.cumsum(lot.chance)[:-1], rng.random(samples), side="right")]
        return Lot.of_draws(drawn)
    total = Lot(np.zeros(1), np.ones(1))
    for lot in sorted(lots, key=lambda one: len(one.value)):
        if len(total.value) * len(lot.value) > STEP:
            total = total.to_bins(FINE)
            lot = lot.to_bins(STEP // len(total.value))
        total = total.plus(lot)
        total = total if len(total.value) <= MOST_SUMS else total.to_bins(FINE)
    return total


def chances(a: Lot, b: Lot, dust: float = ATOL) -> Chances:
    """How likely a draw from a lot is above one from another; values within `dust` of each other are level.

    >>> coin = Lot(np.array([-1.0, 1.0]), np.array([0.5, 0.5]))
    >>> chances(coin, Lot(np.array([-1.0]), np.array([1.0])))
    Chances(greater=0.5, equal=0.5, less=0.0, method='exact', draws=None)
    """
    below = np.append(0.0, np.cumsum(b.chance))  # the chance of a value before this place
    greater = float(a.chance @ below[np.searchsorted(b.value, a.value - dust, side="left")])
    no_less = float(a.chance @ below[np.searchsorted(b.value, a.value + dust, side="right")])
    whole = float(a.chance.sum() * below[-1])
    parts = greater / whole, max(no_less - greater, 0.0) / whole, max(whole - no_less, 0.0) / whole
    drawn = [lot.draws for lot in (a, b) if lot.draws is not None]
    if not drawn:
        return Chances(*parts, "rounded" if a.rounded or b.rounded else "exact")
    n = min(drawn)  # k of n draws count as (k + ½) / (n + 1): what was never drawn may still be
    more = (0.5, 0.0, 0.5)
    greater, equal, less = ((n * part + some) / (n + 1) for part, some in zip(parts, more, strict=True))
    return Chances(greater, equal, less, f"sampled (n={n:,})", draws=n)


# -- words: the different orders of a group ---------------------------------------------------------------------


@dataclass(frozen=True)
class Words:
    """The different ways to fill some slots with documents of some kinds, and how likely each is."""

    kind: NDArray[np.int8]  # (n_words, n_slots)
    chance: Floats  # (n_words,)

    def slots(self, kind: int, count: int) -> Codes:
        """The slots of the first `count` documents of a kind in each word; those left out stand behind all slots."""
        n = self.kind.shape[1]
        place = np.where(self.kind == kind, np.arange(n), n + np.arange(n))
        padded = np.hstack([np.sort(place, axis=1), np.full((len(place), count), 2 * n)])
        return padded[:, :count]


@lru_cache(maxsize=4096)
def words(counts: tuple[int, ...], slots: int) -> Words | None:
    """All words of `slots` letters drawn from so many documents of each kind; None if they are too many.

    >>> words((1, 2), 2).kind.tolist(), words((1, 2), 2).chance.round(3).tolist()
    ([[0, 1], [1, 0], [1, 1]], [0.333, 0.333, 0.333])
    """
    if perm(len(counts), min(len(counts), slots, 20)) > MOST_WORDS:  # words that begin with different kinds
        return None
    begun: list[tuple[tuple[int, ...], tuple[int, ...], float]] = [((), counts, 1.0)]
    for total in range(sum(counts), sum(counts) - slots, -1):
        begun = [
            ((*word, kind), (*held[:kind], n - 1, *held[kind + 1 :]), chance * n / total)
            for word, held, chance in begun
            for kind, n in enumerate(held)
            if n
        ]
        if len(begun) > MOST_WORDS or len(begun) * slots > MOST_LETTERS:
            return None
    kinds = np.array([word for word, _, _ in begun], dtype=np.int8).reshape(len(begun), slots)
    return Words(kinds, np.array([chance for _, _, chance in begun]))


# -- the tie groups of a run that matter to a measure -----------------------------------------------------------


class Tied:
    """The tie groups of a run whose order can change a measure, and what each adds to it in a given order.

    `keys` tells documents apart that the measure tells apart: by gain, or by label where it has its own `terms`.
    """

    def __init__(self, measure: Measure, urns: Urns, kept: NDArray[np.bool_]):
        self.measure, self.urns = measure, urns
        self.depth = np.asarray(measure.depth(urns))
        self.inside: Codes = np.clip(self.depth[urns.group_query] - urns.group_start, 0, urns.group_size).astype(int)
        plain = type(measure).terms is Measure.terms
        self.keys = measure.gain(urns.label) if plain else urns.label
        self.unjudged = 0.0 if plain else -np.inf  # the key of documents without a label
        self.groups = np.flatnonzero((self.inside > 0) & kept[urns.group_query] & self._mixed())
        self._kept = kept
        self._divisor = np.asarray(measure.divisor(urns), dtype=np.float64)[urns.group_query]
        self.queries = np.zeros(urns.n_queries, dtype=bool)  #: whether a query has such a group
        self.queries[urns.group_query[self.groups]] = True
        counted = self.queries[urns.query] & (urns.start < self.depth[urns.query])
        self.docs = np.flatnonzero(counted)  # into the arrays of `urns`: all that stands in a list with such a group
        place = np.arange(len(urns.group)) - urns.first[urns.group]
        self.rank: Codes = (urns.start + 1 + place)[self.docs]  # an order that is as good as any where it matters not

    def _mixed(self) -> NDArray[np.bool_]:
        urns = self.urns
        if not len(urns.first):
            return np.zeros(0, dtype=bool)
        low, high = np.minimum.reduceat(self.keys, urns.first), np.maximum.reduceat(self.keys, urns.first)
        others = urns.group_size > urns.held
        low = np.where(others, np.minimum(low, self.unjudged), low)
        high = np.where(others, np.maximum(high, self.unjudged), high)
        return np.asarray(low < high)

    def __len__(self) -> int:
        return len(self.groups)

    def shares(self, rank: Codes) -> Floats:
        """What each group adds to its query's value when `docs` stand at these ranks, (n_groups,)."""
        return safe_divide(self._added(rank)[self.groups], self._divisor[self.groups])

    def _added(self, rank: Codes) -> Floats:
        """The sum of the terms of every group of `urns` in an order of `docs`."""
        urns = self.urns
        query = urns.query[self.docs]
        rows = np.lexsort((rank, query))
        order = Order(urns, query[rows], rank[rows], urns.label[self.docs][rows])
        within = order.rank <= self.depth[order.query]
        terms = np.where(within, self.measure.terms(order), 0.0)
        return segment_sum(urns.group[self.docs][rows], terms, len(urns.first))

    def constant(self, expected: Floats) -> float:
        """The sum over the queries kept, without what these groups add; `expected` holds all queries' values."""
        rest = np.ones(len(self.urns.first), dtype=bool)
        rest[self.groups] = False
        fixed = (
            safe_divide(self._added(self.rank), self._divisor)[rest].sum()
            + self.measure.base(self.urns)[self.queries].sum()
        )
        return float(expected[self._kept & ~self.queries].sum() + fixed)

    @property
    def query(self) -> Codes:
        """The query of each group."""
        return self.urns.group_query[self.groups]

    def docs_of(self, place: int) -> slice:
        """Where in `docs` the judged documents of a group stand."""
        group = self.groups[place]
        first = int(np.searchsorted(self.docs, self.urns.first[group]))
        return slice(first, first + int(self.urns.held[group]))

    def judged(self) -> Codes:
        """Where in `docs` the judged documents of all groups stand, group by group."""
        first = np.searchsorted(self.docs, self.urns.first[self.groups])
        held = self.urns.held[self.groups]
        ends = np.cumsum(held)
        flat: Codes = np.arange(int(held.sum())) + np.repeat(first - (ends - held), held)
        return flat

    def in_words(self, most: int) -> Iterator[Floats]:
        """What each group adds in each order: `shares` with all groups in their first order, their second, …"""
        ranks = [self._ranks(place) for place in range(len(self))]
        for word in range(most):
            rank = self.rank.copy()
            for place, choices in enumerate(ranks):
                if word < len(choices):
                    rank[self.docs_of(place)] = choices[word]
            yield self.shares(rank)

    def words(self, place: int) -> Words | None:
        """The orders of a group, as far down as the measure looks."""
        return words(self._counts(place)[1], int(self.inside[self.groups[place]]))

    def _counts(self, place: int) -> tuple[Floats, tuple[int, ...]]:
        """The keys in a group, and how many documents have each."""
        group = self.groups[place]
        keys = self.keys[self.docs[self.docs_of(place)]]
        others = int(self.urns.group_size[group] - self.urns.held[group])
        kinds, counts = np.unique(np.append(keys, [self.unjudged] * bool(others)), return_counts=True)
        counts[np.searchsorted(kinds, self.unjudged)] += max(others - 1, 0) if others else 0
        return kinds, tuple(counts.tolist())

    def _ranks(self, place: int) -> Codes:
        """The ranks of a group's judged documents in each of its words, (n_words, n_documents)."""
        found = self.words(place)
        assert found is not None
        group, docs = self.groups[place], self.docs_of(place)
        keys = self.keys[self.docs[docs]]
        kinds, _ = self._counts(place)
        rank = np.empty((len(found.chance), len(keys)), dtype=np.int64)
        for kind, key in enumerate(kinds.tolist()):
            mine = np.flatnonzero(keys == key)
            rank[:, mine] = found.slots(kind, len(mine))
        return rank + 1 + int(self.urns.group_start[group])


def lots(tied: Tied) -> list[Lot] | None:
    """A lot for each tie group, in what it adds to its query's value; None if a group has too many orders."""
    if len(tied) > MOST_GROUPS:
        return None
    found = [tied.words(place) for place in range(len(tied))]
    some = [one for one in found if one is not None]
    if len(some) < len(found):
        return None
    most = max((len(one.chance) for one in some), default=0)
    values = np.array(list(tied.in_words(most))).reshape(most, len(tied))
    return [Lot(values[: len(one.chance), place], one.chance).merged() for place, one in enumerate(some)]
