"""All arithmetic on tie groups, over all queries at once.

A ranking with ties is a row of urns that empty in order. What was drawn before an urn is a fixed number, so groups
are independent, and expectation and variance are sums over groups. For a group of n documents after c others, with
r relevant in it and R relevant above it,

    M   = Σ_r gain(label_r) · payoff(r, seen_{r−1}) / divisor                                            (1)
    E   = Σ_g Σ_{j=1..n} ḡ_g · E[payoff(c+j, R+H)] / divisor,  H ~ Hypergeometric(n−1, r−1, j−1)         (2)
    Var = Σ_g SS(payoff) · SS(gain) / (n−1) / divisor²,        if payoff ignores `seen`                  (3)
    minimum, maximum, oblivious = (1) on labels sorted ascending, descending, or as given in each group  (4)

A query without ties has one order, so that (1) is all there is to say of it. In the others, only groups that hold
documents of different gain need (2) and (3). They are worked through as dense blocks, groups × ranks, of groups of
about one size, so that memory stays bounded and sums are taken pairwise.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from tiewise.data.columns import Codes, Floats
from tiewise.errors import InputError, MeasureError
from tiewise.metrics.estimate import Estimates
from tiewise.tables.wording import count_noun
from tiewise.ties.groups import TieGroups

if TYPE_CHECKING:
    from tiewise.metrics.definition import Measure

__all__ = [
    "Order",
    "Urn",
    "Urns",
    "estimates",
    "expected",
    "expected_with_last_group",
    "moments",
    "row_sum",
    "safe_divide",
    "segment_sum",
    "select_queries",
    "value",
]

#: How many numbers a block of tie groups may hold.
BLOCK = 1 << 20
#: Gains beyond 2 to the power of this, up or down, are not squared as they are.
EXPONENT = 400
#: How many random orders stand in for a variance that has no formula, and how many documents these may move.
SAMPLES, SAMPLED_ROWS = 1000, 20_000_000


class Order:
    """The judged documents in one order: by query, ascending rank. It does not keep its urns alive."""

    def __init__(self, urns: Urns, query: Codes, rank: Codes, label: Floats):
        self._urns = ref(urns)  # which may keep this order: a cycle would keep both
        self.query, self.label, self.n_queries = query, label, urns.n_queries
        self.rank: Floats = rank.astype(np.float64)

    @property
    def urns(self) -> Urns:
        """The tie groups of which this is an order; whoever uses it holds them."""
        urns = self._urns()
        assert urns is not None
        return urns

    def sum(self, values: NDArray[Any]) -> Floats:
        """The sum of each query's values."""
        return segment_sum(self.query, values, self.n_queries)

    def count_before(self, flags: NDArray[np.bool_]) -> Floats:
        """How many flagged documents of its query stand before each document."""
        before: Codes = np.cumsum(flags) - flags
        return (before - before[self._head]).astype(np.float64)

    @cached_property
    def _head(self) -> Codes:
        """The first document of the query of each document."""
        return self.urns.head if self.query is self.urns.query else _heads(self.query)

    def product_before(self, values: Floats) -> Floats:
        """The product of the values that stand before each document in its query."""
        out = np.ones(len(values))
        for rows, held in _padded(np.bincount(self.query, minlength=self.n_queries)):
            run = np.cumprod(np.where(held, values[rows], 1.0), axis=1)
            out[rows[:, 1:][held[:, 1:]]] = run[:, :-1][held[:, 1:]]
        return out


class Urns:
    """Tie groups as the measures see them: judged documents sorted into their urns."""

    def __init__(self, ties: TieGroups):
        qrels = ties.qrels
        self.ties = ties
        self.n_queries = len(qrels.queries)
        self.length = ties.limit  # (n_queries,): the ranks that count
        self._orders: dict[str, Order] = {}
        self._units: dict[Measure, Floats | None] = {}
        self._means: dict[Measure, Floats] = {}  # the expectation of each mixed tie group, before it is divided
        seen = np.flatnonzero((ties.size > 0) & (ties.start < self.length[qrels.query]))
        place = ties.start + (np.cumsum(ties.length) - ties.length)[qrels.query]  # if lists stood one after another
        self._rows = seen[np.lexsort((-qrels.label[seen], place[seen]))]
        # Arrays over the retrieved judged documents: by query, by group, by descending label.
        self.query, self.label = qrels.query[self._rows], qrels.label[self._rows]
        self.start, self.size = ties.start[self._rows], ties.size[self._rows]
        new = np.ones(len(self._rows), dtype=bool)
        new[1:] = (self.query[1:] != self.query[:-1]) | (self.start[1:] != self.start[:-1])
        self.group: Codes = np.cumsum(new) - 1  # (n_documents,)
        # Arrays over the tie groups that hold one of them.
        self.first = np.flatnonzero(new)
        self.held = np.diff(np.append(self.first, len(new)))  # judged documents in the group
        self.group_query, self.group_start = self.query[self.first], self.start[self.first]
        self.group_size = self.size[self.first]

    def __reduce__(self) -> tuple[type[Urns], tuple[TieGroups]]:
        return Urns, (self.ties,)

    def ranks(self, cutoff: int | None) -> NDArray[Any]:
        """The cutoff for every query, or the lists' lengths without one."""
        return self.length if cutoff is None else np.full(self.n_queries, cutoff)

    def judged(self, values: NDArray[Any]) -> Floats:
        """The sum over all judged documents of each query, retrieved or not, of values along the qrels' rows."""
        return segment_sum(self.ties.qrels.query, values, self.n_queries)

    def relevant(self, measure: Measure) -> Floats:
        """The number of judged documents with a gain, retrieved or not (N+)."""
        return self.judged(measure.gain(self.ties.qrels.label) > 0)

    def unit(self, measure: Measure) -> Floats | None:
        """For each query a power of two near its largest gain, where that is too large or too small to be squared.

        Dividing by it changes no digit. None if the gains of all queries can be squared as they are.
        """
        whole = measure.uncut
        if whole not in self._units:
            qrels = self.ties.qrels
            held = np.flatnonzero(np.diff(qrels.offsets))
            exponent = np.zeros(self.n_queries, dtype=np.int64)
            if len(held):
                largest = np.maximum.reduceat(measure.gain(qrels.label), qrels.offsets[held])
                exponent[held] = np.frexp(largest)[1] - 1
            odd = np.abs(exponent) > EXPONENT
            self._units[whole] = np.ldexp(1.0, np.where(odd, exponent, 0)) if odd.any() else None
        return self._units[whole]

    @property
    def urns(self) -> Urns:
        """These tie groups; an `Order` has them under this name too."""
        return self

    def retrieved(self, values: NDArray[Any]) -> Floats:
        """The sum over the retrieved judged documents of each query."""
        return segment_sum(self.query, values, self.n_queries)

    def in_group(self, values: NDArray[Any]) -> Floats:
        """The sum over the judged documents of each tie group."""
        return segment_sum(self.group, values, len(self.first))

    def above_group(self, per_group: Floats) -> Floats:
        """The sum of a count over the groups of the same query above each group."""
        total = np.cumsum(per_group) - per_group
        above: Floats = total - total[_heads(self.group_query)]
        return above

    # -- orders: Eq. (4) --------------------------------------------------------------------------------------

    def best(self, measure: Measure) -> Order:
        """The order that is best for a measure: by descending key in each group, unjudged documents at key 0."""
        return self._sorted("best", measure)

    def worst(self, measure: Measure) -> Order:
        """The reverse of the best order."""
        return self._sorted("worst", measure)

    @cached_property
    def ideal(self) -> Order:
        """All judged documents, retrieved or not, by descending label."""
        qrels = self.ties.qrels
        rows = np.lexsort((-qrels.label, qrels.query))
        rank = np.arange(len(rows)) - qrels.offsets[:-1][qrels.query[rows]] + 1
        return Order(self, qrels.query[rows], rank, qrels.label[rows])

    def oblivious(self, order: str) -> Order:
        """The judged documents where one fixed order puts them."""
        if order not in self._orders:
            if order not in self.ties.before:
                raise InputError(f"These tie groups were counted without the order '{order}'.")
            self._orders[order] = self._order(self.ties.before[order][self._rows])
        return self._orders[order]

    def random(self, rng: np.random.Generator) -> Order:
        """One random order of the documents of every group."""
        slots = np.repeat(np.arange(len(self.first)), self.group_size)
        shuffled = np.lexsort((rng.random(len(slots)), slots))
        place = np.arange(len(self.group)) - self.first[self.group]
        return self._order(shuffled[self._slot + place] - self._slot)

    @cached_property
    def _slot(self) -> Codes:
        """The first slot of each document's group, if groups stood one after another, (n_documents,)."""
        slot: Codes = (np.cumsum(self.group_size) - self.group_size)[self.group]
        return slot

    def _order(self, before: Codes) -> Order:
        """The order in which `before[i]` tied documents precede document i."""
        rows = np.argsort(self._slot + before, kind="stable")  # quick, as groups stand in order already
        return Order(self, self.query, (self.start + 1 + before)[rows], self.label[rows])

    def _sorted(self, which: str, measure: Measure) -> Order:
        key, label = measure.key(self.label), self.label
        shared = key is label  # nearly every measure: one order serves them all, and documents stand in it already
        if shared and which in self._orders:
            return self._orders[which]
        if not shared:
            rows = np.lexsort((-key, self.group))
            key, label = key[rows], label[rows]
        # By descending key, ranks are counted from the group's front, or from its back for keys below those of the
        # unjudged; by ascending key, the other way round.
        place = np.arange(len(key)) - self.first[self.group]
        back = self.held[self.group] - 1 - place
        if which == "best":
            order = Order(self, self.query, self.start + np.where(key >= 0, 1 + place, self.size - back), label)
        else:
            turned = self.first[self.group] + back
            rank = self.start + np.where(key >= 0, self.size - place, 1 + back)
            order = Order(self, self.query, rank[turned], label[turned])
        if shared:
            self._orders[which] = order
        return order

    # -- parts ------------------------------------------------------------------------------------------------

    @cached_property
    def head(self) -> Codes:
        """The first document of the query of each document, (n_documents,)."""
        return _heads(self.query)

    @cached_property
    def tied_groups(self) -> tuple[Codes, Codes]:
        """The groups of two documents or more, and the judged documents in them."""
        tied = self.group_size > 1
        return np.flatnonzero(tied), np.flatnonzero(tied[self.group])

    @cached_property
    def above_last(self) -> NDArray[np.bool_]:
        """Whether a group has two documents or more and is not the last of its list, (n_groups,)."""
        ends: Codes = self.group_start + self.group_size
        return (self.group_size > 1) & (ends < self.ties.length[self.group_query])

    @property
    def tied(self) -> tuple[Urns, Codes]:
        """The queries that have ties, alone, and their places; all queries if that leaves out only a few."""
        part, places = self._tied
        return (self if part is None else part), places

    @cached_property
    def _tied(self) -> tuple[Urns | None, Codes]:
        has_ties = np.zeros(self.n_queries, dtype=bool)
        has_ties[self.group_query[self.group_size > 1]] = True
        places = np.flatnonzero(has_ties)
        if 2 * len(places) > self.n_queries:
            return None, np.arange(self.n_queries)
        return Urns(select_queries(self.ties, places)), places

    # -- blocks -----------------------------------------------------------------------------------------------

    def blocks(self, gain: Floats, groups: Codes, inside: Codes) -> Iterator[Urn]:
        """Some groups in blocks of about one size; `inside` says how much of each lies within the cutoff."""
        if not len(groups):
            return
        drawn = _Drawn(self, gain, groups, inside)
        # Slots and gains are the two ways in which a block can be wide.
        wide = np.maximum(inside, drawn.relevant[groups].astype(np.int64))
        for some in _alike(wide):
            yield Urn(drawn, groups[some], inside[some])


class _Drawn:
    """The gains in tied groups, as sums and counts that are computed lazily; arrays run over all groups."""

    def __init__(self, urns: Urns, gain: Floats, groups: Codes, inside: Codes):
        self.urns, self.gain, self._groups, self._inside = urns, gain, groups, inside
        self._documents = urns.tied_groups[1]
        self._of = urns.group[self._documents]
        self._gain = gain[self._documents]
        self.relevant = self._in_group(self._gain != 0)

    def _in_group(self, values: NDArray[Any]) -> Floats:
        return segment_sum(self._of, values, len(self.urns.first))

    @cached_property
    def seen(self) -> Floats:
        """How many documents with a gain stand above each of the groups that were chosen."""
        total = np.append(0, np.cumsum(self.gain != 0))
        first, seen = self.urns.first[self._groups], np.zeros(len(self.urns.first))
        seen[self._groups] = total[first] - total[self.urns.head[first]]
        return seen

    @cached_property
    def total(self) -> Floats:
        return self._in_group(self._gain)

    @cached_property
    def squares(self) -> Floats:
        mean = self.total / self.urns.group_size
        unjudged = self.urns.group_size - self.urns.held
        return self._in_group((self._gain - mean[self._of]) ** 2) + unjudged * mean**2

    @cached_property
    def effort(self) -> Floats:
        query = self.urns.group_query
        cost = self.relevant[self._groups] * self._inside.astype(np.float64) ** 2
        return segment_sum(query[self._groups], cost, self.urns.n_queries)[query]


class Urn:
    """A block of tie groups: columns (n_groups, 1) over groups, rows (n_groups, n_slots) over their ranks."""

    def __init__(self, drawn: _Drawn, groups: Codes, inside: Codes):
        self.urns, self._drawn, self.groups = drawn.urns, drawn, groups
        self.start = self._column(self.urns.group_start)  #: documents above the group
        self.size = self._column(self.urns.group_size)  #: documents in it
        self.inside = inside[:, None].astype(np.float64)  #: of these, within the cutoff
        self.relevant = self._column(drawn.relevant)  #: documents in it with a gain
        self.slot = np.arange(int(inside.max()), dtype=np.float64)[None, :]  #: 0, 1, … inside the group
        self.rank = self.start + 1 + self.slot
        self.within = self.slot < self.inside  #: whether a slot exists and lies within the cutoff

    @property
    def seen(self) -> Floats:
        """Documents above the group with a gain."""
        return self._column(self._drawn.seen)

    @property
    def gain(self) -> Floats:
        """The sum of the group's gains."""
        return self._column(self._drawn.total)

    @property
    def gain_ss(self) -> Floats:
        """Squared deviations of the gains from their mean, unjudged documents at 0."""
        return self._column(self._drawn.squares)

    @property
    def effort(self) -> Floats:
        """relevant × inside², over all groups of the query."""
        return self._column(self._drawn.effort)

    def _column(self, per_group: NDArray[Any]) -> Floats:
        column: Floats = per_group[self.groups][:, None].astype(np.float64)
        return column

    def sum(self, values: NDArray[Any]) -> Floats:
        """The sum in each group of values along the retrieved judged documents."""
        return self._column(self.urns.in_group(values))

    def above(self, values: NDArray[Any]) -> Floats:
        """The sum of the same over the groups above."""
        return self._column(self.urns.above_group(self.urns.in_group(values)))

    def of_query(self, values: NDArray[Any]) -> Floats:
        """Values along the queries."""
        column: Floats = values[self.urns.group_query[self.groups]][:, None]
        return column

    def product_above(self, values: Floats) -> Floats:
        """The product over the judged documents of all groups above."""
        q = self.urns
        before = Order(q, q.query, q.start, q.label).product_before(values)
        return self._column(before[q.first])

    @property
    def label(self) -> Floats:
        """The labels of the retrieved judged documents, for `sum` and `above`."""
        return self.urns.label

    @cached_property
    def gains(self) -> Floats:
        """The gains in each group, zeros at the end, (n_groups, most documents with a gain in a group)."""
        place = np.full(len(self.urns.first), -1)
        place[self.groups] = np.arange(len(self.groups))
        gain = self._drawn.gain
        rows = np.flatnonzero((place[self.urns.group] >= 0) & (gain != 0))  # by group
        owner = place[self.urns.group[rows]]
        gains = np.zeros((len(self.groups), int(self.relevant.max())))
        gains[owner, np.arange(len(rows)) - _heads(owner)] = gain[rows]
        return gains


# -- statistics -----------------------------------------------------------------------------------------------


def value(measure: Measure, urns: Urns, order: Order) -> Floats:
    """A measure in one order, for each query: Eq. (1)."""
    return _Reckoning(measure, urns).value(order)


def expected(measure: Measure, urns: Urns) -> tuple[Floats, Floats]:
    """Expectation and variance over all orders, for each query: Eqs. (2) and (3)."""
    return _Reckoning(measure, urns).expected()


def expected_with_last_group(
    measure: Measure, urns: Urns, places: Codes, filled: Urns, order: Literal["best", "worst"]
) -> Floats:
    """The expectation in some queries if their last tie group held other documents, in a fixed order.

    `filled` has these queries, with those documents. The groups above the last one stay in random order. Their
    expectations are those that were computed for `urns`.
    """
    computation = _Reckoning(measure, filled)
    if not measure.is_built_in():  # it may depend on what the last group holds
        return computation.with_last_group(order, computation.group_moments[0])
    return computation.with_last_group(order, _means_above_last(measure, urns, places, filled))


def _means_above_last(measure: Measure, urns: Urns, places: Codes, filled: Urns) -> Floats:
    """For each tie group of `filled` its expectation, 0 for the last group of a list."""
    part, of_part = urns.tied
    if measure not in part._means:
        expected(measure, part)
    chosen = np.zeros(urns.n_queries, dtype=bool)
    chosen[places] = True
    means = np.zeros(len(filled.first))
    # Both hold the same groups, in the same order.
    means[filled.above_last] = part._means[measure][part.above_last & chosen[of_part[part.group_query]]]
    return means


def estimates(measure: Measure, urns: Urns, *, oblivious: str | None = None) -> Estimates:
    """Expectation, extremes, variance and, for a named order, the oblivious value of a measure for each query."""
    _check_depth(measure, urns)
    whole, companion = _Reckoning(measure, urns), measure.companion()
    maximum = whole.value(urns.best(measure))
    # Without ties, every statistic is the same number.
    mean, minimum, variance, one_order = maximum.copy(), maximum.copy(), np.zeros_like(maximum), maximum.copy()
    part, places = urns.tied
    if len(places):
        tied = whole if part is urns else _Reckoning(measure, part)
        low, high = tied.minimum(), maximum[places]
        e, spread = tied.expected()
        _check_order(measure, e, low, high)
        fixed = low == high  # then no order matters
        minimum[places] = low
        mean[places] = np.where(fixed, low, np.clip(e, low, high))
        variance[places] = np.where(fixed, 0.0, spread)
        if oblivious is not None:
            one_order[places] = tied.value(part.oblivious(oblivious))
    return Estimates(
        measure.name,
        urns.ties.qrels.queries,
        expected=mean,
        minimum=minimum,
        maximum=maximum,
        variance=variance,
        oblivious=None if oblivious is None else one_order,
        residual=None if companion is None else 1.0 - expected(companion, urns)[0],
        total=measure.total,
    )


class _Reckoning:
    """A measure over some urns: what is the same in all orders is worked out once."""

    def __init__(self, measure: Measure, urns: Urns):
        self.measure, self.urns = measure, urns
        self.depth, self.base = measure.depth(urns), measure.base(urns)
        self.divisor = np.asarray(measure.divisor(urns), dtype=np.float64)

    def value(self, order: Order) -> Floats:
        """Eq. (1), for each query."""
        return self._summed(order, self.measure.terms(order))

    def minimum(self) -> Floats:
        """Eq. (4), for each query."""
        return self._summed(self.urns.worst(self.measure), self._lowest)

    @cached_property
    def _lowest(self) -> Floats:
        """The terms of the worst order."""
        return self.measure.terms(self.urns.worst(self.measure))

    def expected(self) -> tuple[Floats, Floats]:
        """Eqs. (2) and (3), for each query."""
        measure, urns = self.measure, self.urns
        tied, _ = urns.tied_groups
        mean, variance = self.group_moments
        urns._means[measure] = mean
        expectation = self._with_means(urns.worst(measure), self._lowest, self._mixed[2], mean)
        total = segment_sum(urns.group_query[tied], variance[tied], urns.n_queries)
        spread = safe_divide(total, self.divisor**2)
        if np.isnan(spread).any() and measure.uses_seen:
            spread = np.where(np.isnan(spread), self._sampled_variance(expectation), spread)
        return expectation, spread

    @cached_property
    def group_moments(self) -> tuple[Floats, Floats]:
        """Expectation and variance of each tie group, before they are divided; 0 where its order does not matter."""
        urns = self.urns
        tied, _ = urns.tied_groups
        gain, inside, mixed = self._mixed
        mean, variance = np.zeros(len(urns.first)), np.zeros(len(urns.first))
        for urn in urns.blocks(gain, tied[mixed], inside[mixed]):
            e, var = self.measure.moments(urn)
            mean[urn.groups], variance[urn.groups] = e[:, 0], var[:, 0]
        return mean, variance

    def with_last_group(self, which: Literal["best", "worst"], means: Floats) -> Floats:
        """The expectation of each query with a fixed order of its last tie group; `means` are those of other groups."""
        urns, measure = self.urns, self.measure
        order = urns.best(measure) if which == "best" else urns.worst(measure)
        terms = measure.terms(order) if which == "best" else self._lowest
        return self._with_means(order, terms, self._mixed[2] & urns.above_last[urns.tied_groups[0]], means)

    def _with_means(self, order: Order, terms: Floats, mixed: NDArray[np.bool_], means: Floats) -> Floats:
        """Means for the mixed groups, and the terms of one order elsewhere: there any order will do."""
        tied, documents = self.urns.tied_groups
        certain = terms.copy()
        certain[documents[np.repeat(mixed, self.urns.held[tied])]] = 0.0
        total = segment_sum(self.urns.group_query[tied], np.where(mixed, means[tied], 0.0), self.urns.n_queries)
        return self._summed(order, certain) + safe_divide(total, self.divisor)

    @cached_property
    def _mixed(self) -> tuple[Floats, Codes, NDArray[np.bool_]]:
        """The gains; for each tied group the ranks within the cutoff, and whether its order matters there."""
        urns = self.urns
        tied, _ = urns.tied_groups
        gain = self.measure.scaled_gain(urns)
        depth, start, size = self.depth[urns.group_query[tied]], urns.group_start[tied], urns.group_size[tied]
        inside = np.clip(depth - start, 0, size).astype(np.int64)
        return gain, inside, (inside > 0) & _mixed(urns, gain)

    def _sampled_variance(self, expectation: Floats) -> Floats:
        """The variance about a known expectation, from seeded random orders."""
        rng = np.random.default_rng(0)
        samples = int(np.clip(SAMPLED_ROWS // max(int(self.urns.group_size.sum()), 1), 20, SAMPLES))
        squares = np.zeros(self.urns.n_queries)
        for _ in range(samples):
            squares += (self.value(self.urns.random(rng)) - expectation) ** 2
        return squares / samples

    def _summed(self, order: Order, terms: Floats) -> Floats:
        within = order.rank <= self.depth[order.query]
        return safe_divide(order.sum(np.where(within, terms, 0.0)), self.divisor) + self.base


def moments(measure: Measure, urn: Urn) -> tuple[Floats, Floats]:
    """The group step that follows from a measure's payoff alone; the variance is NaN if it depends on `seen`."""
    if measure.uses_seen:
        return _seen_expectation(measure, urn), np.full_like(urn.start, np.nan)
    weight = np.where(urn.within, measure.payoff(urn.rank, urn.rank), 0.0)
    total = row_sum(weight)
    mean = total / urn.size
    squares = row_sum(np.where(urn.within, weight - mean, 0.0) ** 2) + (urn.size - urn.inside) * mean**2
    return urn.gain / urn.size * total, squares * urn.gain_ss / np.maximum(urn.size - 1, 1)


def _seen_expectation(measure: Measure, urn: Urn) -> Floats:
    """Eq. (2): the payoff of each slot over the number H of relevant documents drawn in the slots before it."""
    others, hits = urn.size - 1, urn.relevant - 1
    h = np.arange(int(urn.relevant.max()), dtype=np.float64)[None, :]
    chance = np.where(h == 0, 1.0, 0.0) * np.ones_like(urn.start)  # P(H = h) before the first slot
    total = np.zeros_like(urn.start)
    for j in range(urn.slot.shape[1]):
        payoff = measure.payoff(np.broadcast_to(urn.rank[:, j : j + 1], chance.shape), urn.seen + h)
        total += np.where(urn.within[:, j : j + 1], row_sum(chance * np.where(chance > 0, payoff, 0.0)), 0.0)
        left = np.maximum(others - j, 1)  # one more of the others is drawn
        miss = np.clip((others - hits - (j - h)) / left, 0.0, 1.0)
        hit = np.clip((hits - h) / left, 0.0, 1.0)
        drawn = chance * hit
        chance = chance * miss
        chance[:, 1:] += drawn[:, :-1]
    return urn.gain / urn.size * total


def select_queries(ties: TieGroups, places: Codes) -> TieGroups:
    """The tie groups of some queries, given by their places in ascending order, as if there were no others."""
    qrels = ties.qrels
    chosen = np.zeros(len(qrels.queries), dtype=bool)
    chosen[places] = True
    some = ties.take(np.flatnonzero(chosen[qrels.query]))
    names, offsets = tuple(qrels.queries[place] for place in places.tolist()), some.qrels.offsets
    return replace(
        some,
        qrels=replace(some.qrels, queries=names, offsets=np.append(offsets[places], offsets[-1]), pool=None),
        length=ties.length[places],
        present=ties.present[places],
        floor=ties.floor[places],
        floor_size=ties.floor_size[places],
    )


def segment_sum(index: Codes, values: NDArray[Any], n: int) -> Floats:
    """The sum of the values of each index, added up one after another so that zeros change nothing."""
    total: Any = np.bincount(index, weights=values, minlength=n)
    return total


def safe_divide(amount: Floats, divisor: NDArray[Any]) -> Floats:
    """amount / divisor, 0 where the divisor is 0."""
    divisor = np.asarray(divisor, dtype=np.float64)
    return np.divide(amount, divisor, out=np.zeros_like(divisor), where=divisor != 0)


def _mixed(urns: Urns, gain: Floats) -> NDArray[np.bool_]:
    """Whether a tied group holds documents of different gain, unjudged ones at 0."""
    groups, documents = urns.tied_groups
    if not len(groups):
        return np.zeros(0, dtype=bool)
    gain, held = gain[documents], urns.held[groups]
    first = np.cumsum(held) - held
    low, high = np.minimum.reduceat(gain, first), np.maximum.reduceat(gain, first)
    unjudged = urns.group_size[groups] > held
    mixed: NDArray[np.bool_] = np.where(unjudged, np.minimum(low, 0) != np.maximum(high, 0), low != high)
    return mixed


def _check_order(measure: Measure, mean: Floats, minimum: Floats, maximum: Floats) -> None:
    """The two sorted orders are the extremes of top-heavy measures; another one must say how to sort for it."""
    slack = 1e-9 * (1 + np.abs(mean))
    if ((minimum > maximum) | (mean < minimum - slack) | (mean > maximum + slack)).any():
        raise MeasureError(
            f"{measure.name} is not best when labels descend within a tie group, nor worst when they ascend. Give it a "
            "method key(label): by what to sort for its best order, unjudged documents at 0."
        )


def _check_depth(measure: Measure, urns: Urns) -> None:
    if measure.takes_depth:
        return
    over = urns.group_start + urns.group_size > urns.length[urns.group_query]
    if over.any():
        some = count_noun(len(np.unique(urns.group_query[over])), "query", "queries")
        raise MeasureError(
            f"{measure.name} looks at whole tie groups, but depth {urns.ties.depth} ends inside one in {some}. Leave "
            f"the depth out, or leave out {measure.name}."
        )


def row_sum(values: Floats) -> Floats:
    """The sum of each row of a block, as a column."""
    total: Floats = values.sum(axis=1, keepdims=True)
    return total


def _heads(segment: Codes) -> Codes:
    """For each element, where its segment begins."""
    new = np.ones(len(segment), dtype=bool)
    new[1:] = segment[1:] != segment[:-1]
    heads: Codes = np.flatnonzero(new)[np.cumsum(new) - 1]
    return heads


def _padded(lengths: Codes) -> Iterator[tuple[Codes, NDArray[np.bool_]]]:
    """Segments of a flat array as matrices of row numbers, with a mask; segments of like length together."""
    starts = np.cumsum(lengths) - lengths
    held = np.flatnonzero(lengths)
    for some in _alike(lengths[held]):
        segments = held[some]
        column = np.arange(int(lengths[segments].max()))
        there = column < lengths[segments][:, None]
        yield starts[segments][:, None] + np.where(there, column, 0), there


def _alike(widths: Codes) -> Iterator[Codes]:
    """Indices in blocks of like width: at most twice the narrowest, and at most BLOCK numbers in a block."""
    order = np.argsort(widths, kind="stable")
    ascending = widths[order]
    low = 0
    while low < len(order):
        width = max(int(ascending[low]), 16) * 2
        high = low + int(np.searchsorted(ascending[low : low + max(BLOCK // width, 1)], width, side="right"))
        high = max(high, low + 1)
        yield order[low:high]
        low = high
