"""All arithmetic on tie groups, over all queries at once.

The tie groups of a ranking follow each other. What stands above a group is a fixed number of documents, so groups are
independent, and expectation and variance are sums over groups. For a group of n documents after c others, with
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

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from tiewise.data.columns import Codes, Floats
from tiewise.errors import InputError, MeasureError
from tiewise.metrics.aggregation import GEOMETRIC_MEAN
from tiewise.metrics.enumeration import SAMPLING, PartStatistics, Sampling, summarize_parts
from tiewise.metrics.estimate import BOUND, EXACT, SAMPLED, Estimates, Methods
from tiewise.tables.wording import count_noun
from tiewise.ties.groups import TieGroups

if TYPE_CHECKING:
    from tiewise.metrics.definition import Measure

__all__ = [
    "GroupBlock",
    "GroupedJudgments",
    "Order",
    "estimates",
    "expected",
    "expected_with_last_group",
    "linear_moments",
    "moments",
    "row_sum",
    "safe_divide",
    "segment_sum",
    "select_queries",
    "sum_payoffs",
    "value",
]

#: How many numbers a block of tie groups may hold.
BLOCK = 1 << 20
#: Gains beyond 2 to the power of this, up or down, are not squared as they are.
EXPONENT = 400


class Order:
    """The judged documents in one order: by query, ascending rank. It holds its tie groups by a weak reference."""

    def __init__(self, grouped: GroupedJudgments, query: Codes, rank: Codes, label: Floats):
        self._grouped = ref(grouped)  # which may keep this order: a cycle would keep both
        self.query, self.label, self.n_queries = query, label, grouped.n_queries
        self.rank: Floats = rank.astype(np.float64)

    @property
    def grouped(self) -> GroupedJudgments:
        """The tie groups of which this is an order; whoever uses it holds them."""
        grouped = self._grouped()
        assert grouped is not None
        return grouped

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
        return self.grouped.head if self.query is self.grouped.query else _heads(self.query)

    def product_before(self, values: Floats) -> Floats:
        """The product of the values that stand before each document in its query."""
        return self._reduce_before(np.multiply, values)

    def sum_before(self, values: Floats) -> Floats:
        """The sum of the values that stand before each document in its query."""
        return self._reduce_before(np.add, values)

    def _reduce_before(self, ufunc: np.ufunc, values: Floats) -> Floats:
        out = np.full(len(values), float(ufunc.identity))
        for rows, held in _padded(np.bincount(self.query, minlength=self.n_queries)):
            run = ufunc.accumulate(np.where(held, values[rows], ufunc.identity), axis=1)
            out[rows[:, 1:][held[:, 1:]]] = run[:, :-1][held[:, 1:]]
        return out


class GroupedJudgments:
    """Tie groups as the measures see them: judged documents by query, tie group and label."""

    def __init__(self, ties: TieGroups):
        qrels = ties.qrels
        self.ties = ties
        self.n_queries = len(qrels.queries)
        self.length = ties.limit  # (n_queries,): the ranks that count
        self._orders: dict[str, Order] = {}
        self._units: dict[Measure, Floats | None] = {}
        self._relevant: dict[Measure, Floats] = {}
        self._means: dict[Measure, Floats] = {}  # the expectation of each mixed tie group, before it is divided
        seen = np.flatnonzero((ties.size > 0) & (ties.start < self.length[qrels.query]))
        place = ties.start + (np.cumsum(ties.length) - ties.length)[qrels.query]  # if lists stood one after another
        if (ties.size[seen] > 1).any():
            self._rows = seen[np.lexsort((-qrels.label[seen], place[seen]))]
        else:  # quicker, as a place has one document
            self._rows = seen[np.argsort(place[seen], kind="stable")]
        # Arrays over the retrieved judged documents: by query, by group, by descending label.
        self.query, self.label = qrels.query[self._rows], qrels.label[self._rows]
        self.start, self.size = ties.start[self._rows], ties.size[self._rows]
        new = np.ones(len(self._rows), dtype=bool)
        new[1:] = (self.query[1:] != self.query[:-1]) | (self.start[1:] != self.start[:-1])
        self.group: Codes = np.cumsum(new) - 1  # (n_documents,)
        # Arrays over the tie groups that hold one of them.
        self.first = np.flatnonzero(new)
        self.n_judged = np.diff(np.append(self.first, len(new)))  # judged documents in the group
        self.group_query, self.group_start = self.query[self.first], self.start[self.first]
        self.group_size = self.size[self.first]

    def __reduce__(self) -> tuple[type[GroupedJudgments], tuple[TieGroups]]:
        return GroupedJudgments, (self.ties,)

    def ranks(self, cutoff: int | None) -> NDArray[Any]:
        """The cutoff for every query, or the lists' lengths without one."""
        return self.length if cutoff is None else np.full(self.n_queries, cutoff)

    def judged(self, values: NDArray[Any]) -> Floats:
        """The sum over all judged documents of each query, retrieved or not, of values along the qrels' rows."""
        return segment_sum(self.ties.qrels.query, values, self.n_queries)

    def relevant(self, measure: Measure) -> Floats:
        """The number of judged documents with a gain, retrieved or not (N+)."""
        if measure not in self._relevant:
            self._relevant[measure] = self.judged(measure.gain(self.ties.qrels.label) > 0)
        return self._relevant[measure]

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
    def grouped(self) -> GroupedJudgments:
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
            self._orders[order] = self.in_places(self.ties.before[order][self._rows])
        return self._orders[order]

    @cached_property
    def _slot(self) -> Codes:
        """The first slot of each document's group, if groups stood one after another, (n_documents,)."""
        slot: Codes = (np.cumsum(self.group_size) - self.group_size)[self.group]
        return slot

    def in_places(self, before: Codes) -> Order:
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
        back = self.n_judged[self.group] - 1 - place
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
    def tied(self) -> tuple[GroupedJudgments, Codes]:
        """The queries that have ties, alone, and their places; all queries if that leaves out only a few."""
        part, places = self._tied
        return (self if part is None else part), places

    @cached_property
    def _tied(self) -> tuple[GroupedJudgments | None, Codes]:
        has_ties = np.zeros(self.n_queries, dtype=bool)
        has_ties[self.group_query[self.group_size > 1]] = True
        places = np.flatnonzero(has_ties)
        if 2 * len(places) > self.n_queries:
            return None, np.arange(self.n_queries)
        return GroupedJudgments(select_queries(self.ties, places)), places

    def select(self, places: Codes) -> tuple[GroupedJudgments, Codes]:
        """Some queries, given by their places in ascending order, and the indices of their groups."""
        if len(places) == self.n_queries:
            return self, np.arange(len(self.first))
        chosen = np.zeros(self.n_queries, dtype=bool)
        chosen[places] = True
        return GroupedJudgments(select_queries(self.ties, places)), np.flatnonzero(chosen[self.group_query])

    # -- blocks -----------------------------------------------------------------------------------------------

    def blocks(self, gain: Floats, groups: Codes, inside: Codes) -> Iterator[GroupBlock]:
        """Some groups in blocks of about one size; `inside` says how much of each lies within the cutoff."""
        if not len(groups):
            return
        drawn = _GroupSums(self, gain, groups, inside)
        # Slots and gains are the two ways in which a block can be wide.
        wide = np.maximum(inside, drawn.relevant[groups].astype(np.int64))
        for some in _alike(wide):
            yield GroupBlock(drawn, groups[some], inside[some])


class _GroupSums:
    """The gains in tied groups, as sums and counts that are computed lazily; arrays run over all groups."""

    def __init__(self, grouped: GroupedJudgments, gain: Floats, groups: Codes, inside: Codes):
        self.grouped, self.gain, self._groups, self._inside = grouped, gain, groups, inside
        self._documents = grouped.tied_groups[1]
        self._of = grouped.group[self._documents]
        self._gain = gain[self._documents]
        self.relevant = self._in_group(self._gain != 0)

    def _in_group(self, values: NDArray[Any]) -> Floats:
        return segment_sum(self._of, values, len(self.grouped.first))

    @cached_property
    def seen(self) -> Floats:
        """How many documents with a gain stand above each of the groups that were chosen."""
        total = np.append(0, np.cumsum(self.gain != 0))
        first, seen = self.grouped.first[self._groups], np.zeros(len(self.grouped.first))
        seen[self._groups] = total[first] - total[self.grouped.head[first]]
        return seen

    @cached_property
    def total(self) -> Floats:
        return self._in_group(self._gain)

    @cached_property
    def squares(self) -> Floats:
        mean = self.total / self.grouped.group_size
        unjudged = self.grouped.group_size - self.grouped.n_judged
        return self._in_group((self._gain - mean[self._of]) ** 2) + unjudged * mean**2

    @cached_property
    def effort(self) -> Floats:
        query = self.grouped.group_query
        cost = self.relevant[self._groups] * self._inside.astype(np.float64) ** 2
        return segment_sum(query[self._groups], cost, self.grouped.n_queries)[query]


class GroupBlock:
    """A block of tie groups: columns (n_groups, 1) over groups, rows (n_groups, n_slots) over their ranks."""

    def __init__(self, drawn: _GroupSums, groups: Codes, inside: Codes):
        self.grouped, self._sums, self.groups = drawn.grouped, drawn, groups
        self.start = self._column(self.grouped.group_start)  #: documents above the group
        self.size = self._column(self.grouped.group_size)  #: documents in it
        self.inside = inside[:, None].astype(np.float64)  #: of these, within the cutoff
        self.relevant = self._column(drawn.relevant)  #: documents in it with a gain
        self.slot = np.arange(int(inside.max()), dtype=np.float64)[None, :]  #: 0, 1, … inside the group
        self.rank = self.start + 1 + self.slot
        self.within = self.slot < self.inside  #: whether a slot exists and lies within the cutoff

    @property
    def seen(self) -> Floats:
        """Documents above the group with a gain."""
        return self._column(self._sums.seen)

    @property
    def gain(self) -> Floats:
        """The sum of the group's gains."""
        return self._column(self._sums.total)

    @property
    def gain_ss(self) -> Floats:
        """Squared deviations of the gains from their mean, unjudged documents at 0."""
        return self._column(self._sums.squares)

    @property
    def effort(self) -> Floats:
        """relevant × inside², over all groups of the query."""
        return self._column(self._sums.effort)

    def _column(self, per_group: NDArray[Any]) -> Floats:
        column: Floats = per_group[self.groups][:, None].astype(np.float64)
        return column

    def sum(self, values: NDArray[Any]) -> Floats:
        """The sum in each group of values along the retrieved judged documents."""
        return self._column(self.grouped.in_group(values))

    def above(self, values: NDArray[Any]) -> Floats:
        """The sum of the same over the groups above."""
        return self._column(self.grouped.above_group(self.grouped.in_group(values)))

    def of_query(self, values: NDArray[Any]) -> Floats:
        """Values along the queries."""
        column: Floats = values[self.grouped.group_query[self.groups]][:, None]
        return column

    def product_above(self, values: Floats) -> Floats:
        """The product over the judged documents of all groups above."""
        q = self.grouped
        before = Order(q, q.query, q.start, q.label).product_before(values)
        return self._column(before[q.first])

    @property
    def label(self) -> Floats:
        """The labels of the retrieved judged documents, for `sum` and `above`."""
        return self.grouped.label

    @cached_property
    def gains(self) -> Floats:
        """The gains in each group, zeros at the end, (n_groups, most documents with a gain in a group)."""
        place = np.full(len(self.grouped.first), -1)
        place[self.groups] = np.arange(len(self.groups))
        gain = self._sums.gain
        rows = np.flatnonzero((place[self.grouped.group] >= 0) & (gain != 0))  # by group
        owner = place[self.grouped.group[rows]]
        gains = np.zeros((len(self.groups), int(self.relevant.max())))
        gains[owner, np.arange(len(rows)) - _heads(owner)] = gain[rows]
        return gains


# -- statistics -----------------------------------------------------------------------------------------------


def value(measure: Measure, grouped: GroupedJudgments, order: Order) -> Floats:
    """A measure in one order, for each query: Eq. (1)."""
    return _Computation(measure, grouped).value(order)


def expected(measure: Measure, grouped: GroupedJudgments, sampling: Sampling = SAMPLING) -> tuple[Floats, Floats]:
    """Expectation and variance over all orders, for each query: Eqs. (2) and (3)."""
    return _Computation(measure, grouped, sampling).expected()


def expected_with_last_group(
    measure: Measure,
    grouped: GroupedJudgments,
    places: Codes,
    filled: GroupedJudgments,
    order: Literal["best", "worst"],
) -> Floats:
    """The expectation in some queries if their last tie group held other documents, in a fixed order.

    `filled` has these queries, with those documents. The groups above the last one stay in random order. Their
    expectations are those that were computed for `grouped`.
    """
    computation = _Computation(measure, filled)
    if not measure.is_built_in():  # it may depend on what the last group holds
        return computation.with_last_group(order, computation.group_moments[0])
    return computation.with_last_group(order, _means_above_last(measure, grouped, places, filled))


def _means_above_last(measure: Measure, grouped: GroupedJudgments, places: Codes, filled: GroupedJudgments) -> Floats:
    """For each tie group of `filled` its expectation, 0 for the last group of a list."""
    part, of_part = grouped.tied
    if measure not in part._means:
        expected(measure, part)
    chosen = np.zeros(grouped.n_queries, dtype=bool)
    chosen[places] = True
    means = np.zeros(len(filled.first))
    # Both hold the same groups, in the same order.
    means[filled.above_last] = part._means[measure][part.above_last & chosen[of_part[part.group_query]]]
    return means


def estimates(
    measure: Measure, grouped: GroupedJudgments, *, oblivious: str | None = None, sampling: Sampling = SAMPLING
) -> Estimates:
    """Expectation, extremes, variance and, for a named order, the oblivious value of a measure for each query."""
    _check_depth(measure, grouped)
    whole, judged_weight = _Computation(measure, grouped, sampling), measure.judged_weight()
    maximum = whole.value(grouped.best(measure))
    # Without ties, every statistic is the same number.
    mean, minimum, variance, one_order = maximum.copy(), maximum.copy(), np.zeros_like(maximum), maximum.copy()
    part, places = grouped.tied
    method = None
    if len(places):
        tied = whole if part is grouped else _Computation(measure, part, sampling)
        found = tied.statistics(maximum[places])
        fixed = found.minimum == found.maximum  # then no order matters
        minimum[places], maximum[places] = found.minimum, found.maximum
        mean[places] = np.where(fixed, found.minimum, np.clip(found.mean, found.minimum, found.maximum))
        variance[places] = np.where(fixed, 0.0, found.variance)
        if found.method is not None:
            method = found.method.take(~fixed).spread(grouped.n_queries, places[~fixed])
        if oblivious is not None:
            one_order[places] = tied.value(part.oblivious(oblivious))
    is_geometric = measure.aggregation is GEOMETRIC_MEAN  # else the tie groups need not be kept
    return Estimates(
        measure.name,
        grouped.ties.qrels.queries,
        expected=mean,
        minimum=minimum,
        maximum=maximum,
        variance=variance,
        oblivious=None if oblivious is None else one_order,
        residual=None if judged_weight is None else 1.0 - expected(judged_weight, grouped)[0],
        method=method,
        aggregation=measure.aggregation,
        powers=partial(_estimates_of_power, measure, grouped, sampling) if is_geometric else None,
    )


def _estimates_of_power(measure: Measure, grouped: GroupedJudgments, sampling: Sampling, exponent: float) -> Estimates:
    return estimates(measure.to_power(exponent), grouped, sampling=sampling)


class _Statistics(NamedTuple):
    """The statistics of each query; without `method` all of them are exact."""

    mean: Floats
    variance: Floats
    minimum: Floats
    maximum: Floats
    method: Methods | None


class _Computation:
    """A measure over some tie groups: what is the same in all orders is worked out once."""

    def __init__(self, measure: Measure, grouped: GroupedJudgments, sampling: Sampling = SAMPLING):
        self.measure, self.grouped, self.sampling = measure, grouped, sampling
        self.depth = measure.depth(grouped)
        self._parts: PartStatistics | None = None  # of what has no closed form
        self._closed: tuple[NDArray[np.bool_], NDArray[np.bool_]]  # whether mean and variance of a part have one

    @cached_property
    def base(self) -> Floats:
        """What is added for each query."""
        return self.measure.base(self.grouped)

    @cached_property
    def divisor(self) -> Floats:
        """What each query's sum is divided by."""
        return np.asarray(self.measure.divisor(self.grouped), dtype=np.float64)

    def value(self, order: Order) -> Floats:
        """Eq. (1), for each query."""
        if not self.measure.additive:
            return self.measure.values(order)
        return self._summed(order, self.measure.terms(order))

    def minimum(self) -> Floats:
        """Eq. (4), for each query."""
        if not self.measure.additive:
            return self.measure.values(self.grouped.worst(self.measure))
        return self._summed(self.grouped.worst(self.measure), self._lowest)

    @cached_property
    def _lowest(self) -> Floats:
        """The terms of the worst order."""
        return self.measure.terms(self.grouped.worst(self.measure))

    def statistics(self, high: Floats) -> _Statistics:
        """All statistics of each query; `high` has the values of the best order."""
        low = self.minimum()
        mean, variance = self.expected()
        method = None
        if self.measure.sorted_extremes:
            _check_order(self.measure, mean, low, high)
        else:
            low, high = (np.where(np.isnan(x), y, x) for x, y in zip(self._closed_extremes, (low, high), strict=True))
        if self._parts is not None:
            low, high, method = self._extremes(self._parts, low, high)
        return _Statistics(mean, variance, low, high, method)

    @cached_property
    def _closed_extremes(self) -> tuple[Floats, Floats]:
        """Minimum and maximum of each query by a closed form, NaN where there is none; the sorted orders are none."""
        return self.measure.extremes(self.grouped)

    @cached_property
    def _has_open_extremes(self) -> NDArray[np.bool_]:
        """Whether the extremes of a query must be searched for among its orders."""
        if self.measure.sorted_extremes:
            return np.zeros(self.grouped.n_queries, dtype=bool)
        low, high = self._closed_extremes
        return np.isnan(low) | np.isnan(high)

    def expected(self) -> tuple[Floats, Floats]:
        """Eqs. (2) and (3), for each query."""
        if not self.measure.additive:
            return self._list_moments
        measure, grouped = self.measure, self.grouped
        tied, _ = grouped.tied_groups
        mean, variance = self.group_moments
        grouped._means[measure] = mean
        expectation = self._with_means(grouped.worst(measure), self._lowest, self._mixed[2], mean)
        total = segment_sum(grouped.group_query[tied], variance[tied], grouped.n_queries)
        return expectation, safe_divide(total, self.divisor**2)

    @cached_property
    def group_moments(self) -> tuple[Floats, Floats]:
        """Expectation and variance of each tie group, before they are divided; 0 where its order does not matter."""
        grouped = self.grouped
        tied, _ = grouped.tied_groups
        gain, inside, mixed = self._mixed
        mean, variance = np.zeros(len(grouped.first)), np.zeros(len(grouped.first))
        for block in grouped.blocks(gain, tied[mixed], inside[mixed]):
            e, var = self.measure.moments(block)
            mean[block.groups], variance[block.groups] = e[:, 0], var[:, 0]
        self._closed = ~np.isnan(mean), ~np.isnan(variance)
        is_open = ~(self._closed[0] & self._closed[1])
        is_open[tied[mixed]] |= self._has_open_extremes[grouped.group_query[tied[mixed]]]
        if is_open.any():
            ranks = np.zeros(len(grouped.first), dtype=np.int64)
            ranks[tied[mixed]] = inside[mixed]
            self._parts = parts = self._summarize(np.where(is_open, ranks, 0))
            mean = np.where(self._closed[0], mean, parts.mean)
            variance = np.where(self._closed[1], variance, parts.variance)
        return mean, variance

    @cached_property
    def _list_moments(self) -> tuple[Floats, Floats]:
        """Expectation and variance of each query, for a measure that is not a sum."""
        mean, variance = self.measure.list_moments(self.grouped)
        self._closed = ~np.isnan(mean), ~np.isnan(variance)
        is_open = ~(self._closed[0] & self._closed[1]) | self._has_open_extremes
        if is_open.any():
            grouped = self.grouped
            keys, unjudged_key = self.measure.kinds(grouped.label)
            mixed = _is_mixed(grouped, keys, unjudged_key) & is_open[grouped.group_query]
            inside = np.clip(self.depth[grouped.group_query] - grouped.group_start, 0, grouped.group_size)
            self._parts = parts = self._summarize(np.where(mixed, inside, 0).astype(np.int64))
            one = self.minimum()  # where no order changes the value
            found = [np.where(np.isnan(x), y, x) for x, y in ((parts.mean, one), (parts.variance, np.zeros_like(one)))]
            mean, variance = np.where(self._closed[0], mean, found[0]), np.where(self._closed[1], variance, found[1])
        return mean, variance

    def _summarize(self, inside: Codes) -> PartStatistics:
        keys, unjudged_key = self.measure.kinds(self.grouped.label)
        return summarize_parts(
            lambda grouped: _Computation(self.measure, grouped).part_values,
            self.grouped,
            keys=keys,
            unjudged_key=unjudged_key,
            inside=inside,
            by_group=self.measure.additive,
            sampling=self.sampling,
        )

    def part_values(self, order: Order) -> Floats:
        """The value of each part in one order: of each tie group before it is divided, or of each query."""
        if not self.measure.additive:
            return self.measure.values(order)
        within = order.rank <= self.depth[order.query]
        terms = np.where(within, self.measure.terms(order), 0.0)
        return segment_sum(self.grouped.group, terms, len(self.grouped.first))

    def _extremes(self, parts: PartStatistics, low: Floats, high: Floats) -> tuple[Floats, Floats, Methods]:
        """The extremes where the sorted orders need not give them, and how all statistics were found."""
        grouped, measure = self.grouped, self.measure
        has_mean, has_variance = self._closed
        is_sampled = parts.samples > 0
        error = np.where(is_sampled & ~has_mean, parts.variance / np.maximum(parts.samples, 1), 0.0)
        by_query = [is_sampled & ~has_mean, is_sampled & ~has_variance, is_sampled]
        if measure.additive:
            by_query = [segment_sum(grouped.group_query, one, grouped.n_queries) > 0 for one in by_query]
            error = safe_divide(segment_sum(grouped.group_query, error, grouped.n_queries), self.divisor**2)
        extremes = np.zeros(grouped.n_queries, dtype=np.int8)
        if not measure.sorted_extremes:
            seen_low, seen_high = parts.minimum, parts.maximum
            if measure.additive:
                mixed = self._mixed[2]
                order, terms = grouped.worst(measure), self._lowest
                seen_low, seen_high = (self._with_means(order, terms, mixed, x) for x in (seen_low, seen_high))
            is_open = self._has_open_extremes
            low, high = (
                np.where(is_open, np.fmin(low, seen_low), low),
                np.where(is_open, np.fmax(high, seen_high), high),
            )
            is_open = is_open & by_query[2]
            extremes = np.where(is_open, SAMPLED, EXACT).astype(np.int8)
            bounds = measure.extreme_bounds(grouped)
            if bounds is not None:
                low, high = (np.where(is_open, x, y) for x, y in zip(bounds, (low, high), strict=True))
                extremes = np.where(is_open, BOUND, EXACT).astype(np.int8)
        expected, std = (np.where(one, SAMPLED, EXACT).astype(np.int8) for one in by_query[:2])
        return low, high, Methods(expected, extremes, std, np.where(by_query[0], np.sqrt(error), np.nan))

    def with_last_group(self, which: Literal["best", "worst"], means: Floats) -> Floats:
        """The expectation of each query with a fixed order of its last tie group; `means` are those of other groups."""
        grouped, measure = self.grouped, self.measure
        order = grouped.best(measure) if which == "best" else grouped.worst(measure)
        terms = measure.terms(order) if which == "best" else self._lowest
        return self._with_means(order, terms, self._mixed[2] & grouped.above_last[grouped.tied_groups[0]], means)

    def _with_means(self, order: Order, terms: Floats, mixed: NDArray[np.bool_], means: Floats) -> Floats:
        """Means for the mixed groups, and the terms of one order elsewhere: there any order will do."""
        tied, documents = self.grouped.tied_groups
        certain = terms.copy()
        certain[documents[np.repeat(mixed, self.grouped.n_judged[tied])]] = 0.0
        total = segment_sum(self.grouped.group_query[tied], np.where(mixed, means[tied], 0.0), self.grouped.n_queries)
        return self._summed(order, certain) + safe_divide(total, self.divisor)

    @cached_property
    def _mixed(self) -> tuple[Floats, Codes, NDArray[np.bool_]]:
        """The gains; for each tied group the ranks within the cutoff, and whether its order matters there."""
        grouped = self.grouped
        tied, _ = grouped.tied_groups
        gain = self.measure.scaled_gain(grouped)
        depth, start = self.depth[grouped.group_query[tied]], grouped.group_start[tied]
        inside = np.clip(depth - start, 0, grouped.group_size[tied]).astype(np.int64)
        return gain, inside, (inside > 0) & _is_mixed(grouped, gain, 0.0)[tied]

    def _summed(self, order: Order, terms: Floats) -> Floats:
        within = order.rank <= self.depth[order.query]
        return safe_divide(order.sum(np.where(within, terms, 0.0)), self.divisor) + self.base


def moments(measure: Measure, block: GroupBlock) -> tuple[Floats, Floats]:
    """The group step that follows from a measure's payoff alone; the variance is NaN if it depends on `seen`."""
    if measure.uses_seen:
        total = sum_payoffs(measure.payoff, block, block.relevant, block.seen)
        return block.gain / block.size * total, np.full_like(block.start, np.nan)
    return linear_moments(measure.payoff(block.rank, block.rank), block)


def linear_moments(payoff: Floats, block: GroupBlock) -> tuple[Floats, Floats]:
    """Expectation and variance of Σ gain · payoff for payoffs that depend on the rank alone, (n_groups, n_slots)."""
    weight = np.where(block.within, payoff, 0.0)
    total = row_sum(weight)
    mean = total / block.size
    squares = row_sum(np.where(block.within, weight - mean, 0.0) ** 2) + (block.size - block.inside) * mean**2
    return block.gain / block.size * total, squares * block.gain_ss / np.maximum(block.size - 1, 1)


def sum_payoffs(
    payoff: Callable[[Floats, Floats], Floats], block: GroupBlock, relevant: Floats, seen: Floats
) -> Floats:
    """Eq. (2): the sum over slots of the expected payoff of a relevant document that stands there.

    A group has `relevant` of them, and `seen` stand above it; H others of the group are drawn in the slots before.
    """
    others, hits = block.size - 1, relevant - 1
    h = np.arange(int(relevant.max()), dtype=np.float64)[None, :]
    chance = np.where(h == 0, 1.0, 0.0) * np.ones_like(block.start)  # P(H = h) before the first slot
    total = np.zeros_like(block.start)
    for j in range(block.slot.shape[1]):
        worth = payoff(np.broadcast_to(block.rank[:, j : j + 1], chance.shape), seen + h)
        total += np.where(block.within[:, j : j + 1], row_sum(chance * np.where(chance > 0, worth, 0.0)), 0.0)
        left = np.maximum(others - j, 1)  # one more of the others is drawn
        miss = np.clip((others - hits - (j - h)) / left, 0.0, 1.0)
        hit = np.clip((hits - h) / left, 0.0, 1.0)
        drawn = chance * hit
        chance = chance * miss
        chance[:, 1:] += drawn[:, :-1]
    return total


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
        lowest=ties.lowest[places],
        lowest_size=ties.lowest_size[places],
    )


def segment_sum(index: Codes, values: NDArray[Any], n: int) -> Floats:
    """The sum of the values of each index, added up one after another so that zeros change nothing."""
    total: Any = np.bincount(index, weights=values, minlength=n)
    return total


def safe_divide(amount: Floats, divisor: NDArray[Any]) -> Floats:
    """amount / divisor, 0 where the divisor is 0."""
    divisor = np.asarray(divisor, dtype=np.float64)
    return np.divide(amount, divisor, out=np.zeros_like(divisor), where=divisor != 0)


def _is_mixed(grouped: GroupedJudgments, keys: Floats, unjudged_key: float) -> NDArray[np.bool_]:
    """Whether a group of two or more holds documents of different keys, (n_groups,)."""
    groups, documents = grouped.tied_groups
    found = np.zeros(len(grouped.first), dtype=bool)
    if len(groups):
        keys, n_judged = keys[documents], grouped.n_judged[groups]
        first = np.cumsum(n_judged) - n_judged
        low, high = np.minimum.reduceat(keys, first), np.maximum.reduceat(keys, first)
        has_unjudged = grouped.group_size[groups] > n_judged
        low = np.where(has_unjudged, np.minimum(low, unjudged_key), low)
        found[groups] = low != np.where(has_unjudged, np.maximum(high, unjudged_key), high)
    return found


def _check_order(measure: Measure, mean: Floats, minimum: Floats, maximum: Floats) -> None:
    """The two sorted orders are the extremes of top-heavy measures; another one must say how to sort for it."""
    slack = 1e-9 * (1 + np.abs(mean))
    if ((minimum > maximum) | (mean < minimum - slack) | (mean > maximum + slack)).any():
        raise MeasureError(
            f"{measure.name} is not best when labels descend within a tie group, nor worst when they ascend. Give it a "
            "method key(label): by what to sort for its best order, unjudged documents at 0."
        )


def _check_depth(measure: Measure, grouped: GroupedJudgments) -> None:
    if measure.takes_depth:
        return
    over = grouped.group_start + grouped.group_size > grouped.length[grouped.group_query]
    if over.any():
        some = count_noun(len(np.unique(grouped.group_query[over])), "query", "queries")
        raise MeasureError(
            f"{measure.name} looks at whole tie groups, but depth {grouped.ties.depth} ends inside one in {some}. "
            f"Leave the depth out, or leave out {measure.name}."
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
