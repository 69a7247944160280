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
from tiewise.metrics.definition import SAMPLING, Measure, Sampling
from tiewise.metrics.estimate import BOUND, EXACT, SAMPLED, Estimates, Methods
from tiewise.tables.wording import count_noun
from tiewise.ties.groups import TieGroups

if TYPE_CHECKING:
    from tiewise.metrics.enumeration import PartStatistics
    from tiewise.metrics.subtopics import SubtopicJudgments

__all__ = [
    "GroupBlock",
    "GroupedJudgments",
    "Order",
    "estimates",
    "expected",
    "expected_with_last_group",
    "group",
    "group_means",
    "linear_moments",
    "mean_and_variance",
    "moments",
    "row_sum",
    "safe_divide",
    "segment_sum",
    "select_queries",
    "sum_payoffs",
    "value",
]

#: How many numbers a block of tie groups may hold, and how many groups of any sizes may have together in one block.
BLOCK, SMALL_BLOCK = 1 << 20, 1 << 12
#: Gains beyond 2 to the power of this, up or down, are not squared as they are.
EXPONENT = 400


class Order:
    """The judged documents of some lists in one order: by list, ascending rank.

    There is a list for each query, or, in a `Stack`, several: `segment` has the list of each document. Tie groups are
    held by a weak reference.
    """

    def __init__(
        self,
        grouped: GroupedJudgments,
        query: Codes,
        rank: NDArray[Any],
        rows: Codes,
        *,
        segment: Codes | None = None,
        n_segments: int | None = None,
    ):
        self._grouped = ref(grouped)  # which may keep this order: a cycle would keep both
        self.query, self.rows, self.n_queries = query, rows, grouped.n_queries  # rows of the qrels
        self.rank: Floats = rank.astype(np.float64, copy=False)
        self.label: Floats = grouped.ties.qrels.label[rows]
        self.segment = query if segment is None else segment
        self.n_segments = grouped.n_queries if n_segments is None else n_segments

    @property
    def grouped(self) -> GroupedJudgments:
        """The tie groups of which this is an order; whoever uses it holds them."""
        grouped = self._grouped()
        assert grouped is not None
        return grouped

    def take(self, kept: NDArray[np.bool_]) -> Order:
        """Some of the documents, in the same places."""
        columns = self.query[kept], self.rank[kept], self.rows[kept]
        return Order(self.grouped, *columns, segment=self.segment[kept], n_segments=self.n_segments)

    def sum(self, values: NDArray[Any]) -> Floats:
        """The sum of each list's values."""
        return segment_sum(self.segment, values, self.n_segments)

    def count_before(self, flags: NDArray[np.bool_]) -> Floats:
        """How many flagged documents of its list stand before each document."""
        before: Codes = flags.cumsum()
        before -= flags
        before -= before[self._head]
        return before.astype(np.float64)

    @cached_property
    def _head(self) -> Codes:
        """The first document of the list of each document."""
        return self.grouped.head if self.segment is self.grouped.query else _heads(self.segment)

    def product_before(self, values: Floats) -> Floats:
        """The product of the values that stand before each document in its list."""
        return self._reduce_before(np.multiply, values)

    def sum_before(self, values: Floats) -> Floats:
        """The sum of the values that stand before each document in its list."""
        return self._reduce_before(np.add, values)

    def _reduce_before(self, ufunc: np.ufunc, values: Floats) -> Floats:
        out = np.full(len(values), float(ufunc.identity))
        for rows, held in _padded(np.bincount(self.segment, minlength=self.n_segments)):
            run = ufunc.accumulate(np.where(held, values[rows], ufunc.identity), axis=1)
            out[rows[:, 1:][held[:, 1:]]] = run[:, :-1][held[:, 1:]]
        return out


class Stack(NamedTuple):
    """The best order of all lists, then the worst order of lists with ties, then one fixed order of these."""

    order: Order
    query: Codes  # (n_segments,): the query of each list
    worst: slice  # the documents in the worst order


class GroupedJudgments:
    """Tie groups as the measures see them: judged documents by query, tie group and label."""

    def __init__(self, ties: TieGroups):
        qrels = ties.qrels
        self.ties = ties
        self.n_queries = len(qrels.queries)
        self.length = ties.limit  # (n_queries,): the ranks that count
        self._orders: dict[str, Order] = {}
        self._stacks: dict[str | None, Stack] = {}
        self._sums: list[_GroupSums] = []
        self._units: dict[Measure, Floats | None] = {}
        self._relevant: dict[Measure, Floats] = {}
        self._means: dict[Measure, Floats] = {}  # the expectation of each mixed tie group, before it is divided
        seen = np.flatnonzero((ties.size > 0) & (ties.start < self.length[qrels.query]))
        place = ties.start + (np.cumsum(ties.length) - ties.length)[qrels.query]  # if lists stood one after another
        if (ties.size[seen] > 1).any():
            self.rows = rows = seen[np.lexsort((-qrels.label[seen], place[seen]))]  # of the qrels
        else:  # quicker, as a place has one document
            self.rows = rows = seen[np.argsort(place[seen], kind="stable")]
        # Arrays over the retrieved judged documents: by query, by group, by descending label.
        self.query, self.label = qrels.query[rows], qrels.label[rows]
        self.start, self.size = ties.start[rows], ties.size[rows]
        new = np.ones(len(rows), dtype=bool)
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
        return Order(self, qrels.query[rows], rank, rows)

    def oblivious(self, order: str) -> Order:
        """The judged documents where one fixed order puts them."""
        if order not in self._orders:
            if order not in self.ties.before:
                raise InputError(f"These tie groups were counted without the order '{order}'.")
            self._orders[order] = self.in_places(self.ties.before[order][self.rows])
        return self._orders[order]

    @cached_property
    def _slot(self) -> Codes:
        """The first slot of each document's group, if groups stood one after another, (n_documents,)."""
        slot: Codes = (np.cumsum(self.group_size) - self.group_size)[self.group]
        return slot

    def in_places(self, before: Codes) -> Order:
        """The order in which `before[i]` tied documents precede document i."""
        rows = np.argsort(self._slot + before, kind="stable")  # quick, as groups stand in order already
        return Order(self, self.query, (self.start + 1 + before)[rows], self.rows[rows])

    def _sorted(self, which: str, measure: Measure) -> Order:
        key, rows = measure.sort_key(self), self.rows
        shared = key is self.label  # nearly every measure: one order serves them all, and documents stand in it already
        if shared and which in self._orders:
            return self._orders[which]
        if not shared:
            by_key = np.lexsort((-key, self.group))
            key, rows = key[by_key], rows[by_key]
        # By descending key, ranks are counted from the group's front, or from its back for keys below those of the
        # unjudged; by ascending key, the other way round.
        place = np.arange(len(key)) - self.first[self.group]
        back = self.n_judged[self.group] - 1 - place
        if which == "best":
            rank = self.start + np.where(key >= 0, 1 + place, self.size - back)
        else:
            turned = self.first[self.group] + back
            rank = (self.start + np.where(key >= 0, self.size - place, 1 + back))[turned]
            rows = rows[turned]
        order = Order(self, self.query, rank, rows)
        if shared:
            self._orders[which] = order
        return order

    def stack(self, measure: Measure, oblivious: str | None) -> Stack:
        """All orders of which a measure's statistics are made, as one."""
        key = measure.sort_key(self)
        if key is self.label and oblivious in self._stacks:
            return self._stacks[oblivious]
        best, n, tied = self.best(measure), self.n_queries, self.tied_queries
        if len(tied):
            documents = self.tied_documents
            others = [self.worst(measure), *([] if oblivious is None else [self.oblivious(oblivious)])]
            query, n_best = self.query[documents], len(self.query)
            segment = n + self.place_among_tied[query]
            order = Order(
                self,
                np.concatenate([self.query, *[query] * len(others)]),
                np.concatenate([best.rank, *(one.rank[documents] for one in others)]),
                np.concatenate([best.rows, *(one.rows[documents] for one in others)]),
                segment=np.concatenate([self.query, *(segment + i * len(tied) for i in range(len(others)))]),
                n_segments=n + len(others) * len(tied),
            )
            queries = np.concatenate([np.arange(n), *[tied] * len(others)])
            found = Stack(order, queries, slice(n_best, n_best + len(query)))
        else:
            found = Stack(best, np.arange(n), slice(0, 0))
        if key is self.label:
            self._stacks[oblivious] = found
        return found

    # -- parts ------------------------------------------------------------------------------------------------

    @cached_property
    def by_subtopic(self) -> SubtopicJudgments:
        """The labels for each subtopic; an error if there are none."""
        from tiewise.metrics.subtopics import SubtopicJudgments

        return SubtopicJudgments(self)

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

    @cached_property
    def tied_queries(self) -> Codes:
        """The queries that have a tie group with a judged document."""
        has_ties = np.zeros(self.n_queries, dtype=bool)
        has_ties[self.group_query[self.group_size > 1]] = True
        return np.flatnonzero(has_ties)

    @cached_property
    def place_among_tied(self) -> Codes:
        """The place of each query among the tied ones, or −1, (n_queries,)."""
        place = np.full(self.n_queries, -1)
        place[self.tied_queries] = np.arange(len(self.tied_queries))
        return place

    @cached_property
    def tied_documents(self) -> Any:
        """The documents of the queries that have ties, as indices."""
        every = len(self.tied_queries) == self.n_queries
        return slice(None) if every else np.flatnonzero(self.place_among_tied[self.query] >= 0)

    def select(self, places: Codes) -> tuple[GroupedJudgments, Codes]:
        """Some queries, given by their places in ascending order, and the indices of their groups."""
        if len(places) == self.n_queries:
            return self, np.arange(len(self.first))
        chosen = np.zeros(self.n_queries, dtype=bool)
        chosen[places] = True
        return GroupedJudgments(select_queries(self.ties, places)), np.flatnonzero(chosen[self.group_query])

    # -- blocks -----------------------------------------------------------------------------------------------

    def sums(self, gain: Floats) -> _GroupSums:
        """The gains in tie groups; many measures have the same."""
        for known in self._sums:
            if np.array_equal(known.gain, gain):
                return known
        self._sums.append(_GroupSums(self, gain))
        return self._sums[-1]


class _GroupSums:
    """The gains in tied groups, as sums and counts that are computed lazily; arrays run over all groups."""

    def __init__(self, grouped: GroupedJudgments, gain: Floats):
        self._grouped, self.gain = ref(grouped), gain
        self._documents = grouped.tied_groups[1]
        self._of = grouped.group[self._documents]
        self._gain = gain[self._documents]
        self.is_mixed = _is_mixed(grouped, gain, 0.0)  # whether a group's order matters

    @property
    def grouped(self) -> GroupedJudgments:
        """The tie groups; whoever uses these sums holds them."""
        grouped = self._grouped()
        assert grouped is not None
        return grouped

    def _in_group(self, values: NDArray[Any]) -> Floats:
        return segment_sum(self._of, values, len(self.grouped.first))

    @cached_property
    def relevant(self) -> Floats:
        """How many documents with a gain are in each group."""
        return self._in_group(self._gain != 0)

    @cached_property
    def seen(self) -> Floats:
        """How many documents with a gain stand above each tied group."""
        grouped, total = self.grouped, np.zeros(len(self.gain) + 1, dtype=np.int64)
        np.cumsum(self.gain != 0, out=total[1:])
        tied = grouped.tied_groups[0]
        first, seen = grouped.first[tied], np.zeros(len(grouped.first))
        seen[tied] = total[first] - total[grouped.head[first]]
        return seen

    @cached_property
    def total(self) -> Floats:
        """The sum of the gains of each group."""
        return self._in_group(self._gain)

    @cached_property
    def squares(self) -> Floats:
        """Squared deviations of the gains of each group from their mean, unjudged documents at 0."""
        mean = self.total / self.grouped.group_size
        unjudged = self.grouped.group_size - self.grouped.n_judged
        return self._in_group((self._gain - mean[self._of]) ** 2) + unjudged * mean**2

    def blocks(self, groups: Codes, inside: Codes) -> Iterator[GroupBlock]:
        """Some groups in blocks of about one size; `inside` says how much of each lies within the cutoff."""
        # Slots and gains are the two ways in which a block can be wide.
        width = np.maximum(inside, self.relevant[groups].astype(np.int64))
        if len(groups) and len(groups) * int(width.max()) <= SMALL_BLOCK:
            yield GroupBlock(self, groups, inside, groups, inside)
            return
        for some in _alike(width):
            yield GroupBlock(self, groups[some], inside[some], groups, inside)


class GroupBlock:
    """A block of tie groups: columns (n_groups, 1) over groups, rows (n_groups, n_slots) over their ranks."""

    def __init__(self, sums: _GroupSums, groups: Codes, inside: Codes, all_groups: Codes, all_inside: Codes):
        self.grouped, self._sums, self.groups = sums.grouped, sums, groups
        self._all_groups, self._all_inside = all_groups, all_inside  # of all blocks
        self.start = self._column(self.grouped.group_start)  #: documents above the group
        self.size = self._column(self.grouped.group_size)  #: documents in it
        self.inside = inside[:, None].astype(np.float64)  #: of these, within the cutoff
        self.relevant = self._column(sums.relevant)  #: documents in it with a gain
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
        groups, query = self._all_groups, self.grouped.group_query
        cost = self._sums.relevant[groups] * self._all_inside.astype(np.float64) ** 2
        return self._column(segment_sum(query[groups], cost, self.grouped.n_queries)[query])

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
        before = Order(q, q.query, q.start, q.rows).product_before(values)
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


def group(measure: Measure, ties: TieGroups) -> GroupedJudgments:
    """The tie groups as a measure sees them: those of condensed lists, if it is measured on these."""
    return GroupedJudgments(ties.condensed() if measure.judged_only else ties)


def value(measure: Measure, grouped: GroupedJudgments, order: Order) -> Floats:
    """A measure in one order, for each query: Eq. (1)."""
    return _Computation(measure, grouped).value(order)


def expected(measure: Measure, grouped: GroupedJudgments, sampling: Sampling = SAMPLING) -> Floats:
    """The expectation over all orders, for each query: Eq. (2). Nothing is sampled if it has a closed form."""
    return _Computation(measure, grouped, sampling).expectation()


def mean_and_variance(measure: Measure, grouped: GroupedJudgments) -> tuple[Floats, Floats]:
    """Expectation and variance over all orders, for each query: Eqs. (2) and (3)."""
    found = _Computation(measure, grouped).statistics(None)
    return found.mean, found.variance


def group_means(measure: Measure, grouped: GroupedJudgments) -> Floats:
    """The expectation of each tie group of a measure that is a sum, before it is divided, (n_groups,)."""
    return _Computation(measure, grouped).all_group_means()


def expected_with_last_group(
    measure: Measure,
    grouped: GroupedJudgments,
    above: Codes,
    filled: GroupedJudgments,
    order: Literal["best", "worst"],
    sampling: Sampling = SAMPLING,
) -> Floats:
    """The expectation in some queries if their last tie group held other documents, in a fixed order.

    `filled` has these queries, with those documents. The tied groups above the last one, `above` of `grouped`, stay in
    random order. Their expectations are those that were computed for `grouped`.
    """
    if not measure.additive:
        return expected(measure, _untie_last_group(measure, filled.ties), sampling)
    computation = _Computation(measure, filled)
    if not measure.is_built_in():  # it may depend on what the last group holds
        return computation.with_last_group(order, computation.group_means)
    if measure not in grouped._means:
        grouped._means[measure] = _Computation(measure, grouped).group_means
    means = np.zeros(len(filled.first))
    means[filled.above_last] = grouped._means[measure][above]  # both hold the same groups, in the same order
    return computation.with_last_group(order, means)


def _untie_last_group(measure: Measure, ties: TieGroups) -> GroupedJudgments:
    """The same lists with the documents of the last tie group in their best order, those with a key of 0 at its end."""
    query = ties.qrels.query
    rows = np.flatnonzero((ties.size > 0) & (ties.start == (ties.length - ties.lowest_size)[query]))
    rows = rows[np.lexsort((-measure.key(ties.qrels.label[rows]), query[rows]))]
    start, size = ties.start.copy(), ties.size.copy()
    start[rows] += np.arange(len(rows)) - np.searchsorted(query[rows], query[rows])
    size[rows] = 1
    return GroupedJudgments(replace(ties, start=start, size=size))


def estimates(
    measure: Measure, grouped: GroupedJudgments, *, oblivious: str | None = None, sampling: Sampling = SAMPLING
) -> Estimates:
    """Expectation, extremes, variance and, for a named order, the oblivious value of a measure for each query."""
    _check_depth(measure, grouped)
    found, judged_weight = _Computation(measure, grouped, sampling).statistics(oblivious), measure.judged_weight()
    is_geometric = measure.aggregation is GEOMETRIC_MEAN  # else the tie groups need not be kept
    return Estimates(
        measure.name,
        grouped.ties.qrels.queries,
        expected=found.mean,
        minimum=found.minimum,
        maximum=found.maximum,
        variance=np.where(np.isnan(found.mean), np.nan, found.variance),  # NaN: it is not defined for these lists
        oblivious=found.oblivious,
        residual=None if judged_weight is None else 1.0 - expected(judged_weight, grouped),
        method=found.method,
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
    oblivious: Floats | None
    method: Methods | None


class _Computation:
    """A measure over some tie groups: what is the same in all orders is worked out once."""

    def __init__(self, measure: Measure, grouped: GroupedJudgments, sampling: Sampling = SAMPLING):
        self.measure, self.grouped, self.sampling = measure, grouped, sampling
        self.depth = measure.depth(grouped)
        self._parts: PartStatistics | None = None  # of what has no closed form
        self._closed: tuple[NDArray[np.bool_], NDArray[np.bool_]]  # whether mean and variance of a part have one

    # -- Eq. (1): one order, or a stack of several --------------------------------------------------------------------

    def value(self, order: Order) -> Floats:
        """Eq. (1), for each query."""
        return self._divide(order.sum(self._terms(order))) if self.measure.additive else self.measure.values(order)

    def _terms(self, order: Order) -> Floats:
        """The terms of Eq. (1), 0 beyond the depth."""
        return np.where(order.rank <= self.depth[order.query], self.measure.terms(order), 0.0)

    def _divide(self, total: Floats, query: Codes | None = None, *, with_base: bool = True) -> Floats:
        """Sums over lists, divided; `query` has the queries of the lists, if there is not one for each."""
        divisor, base = self._divisor, self._base if with_base else None
        if query is not None:
            divisor, base = (None if one is None else one[query] for one in (divisor, base))
        if divisor is not None:
            total = safe_divide(total, divisor)
        return total if base is None else total + base

    @cached_property
    def _divisor(self) -> Floats | None:
        """What each query's sum is divided by; None: by nothing."""
        if type(self.measure).divisor is Measure.divisor:
            return None
        return np.asarray(self.measure.divisor(self.grouped), dtype=np.float64)

    @cached_property
    def _base(self) -> Floats | None:
        """What is added for each query; None: nothing."""
        return None if type(self.measure).base is Measure.base else self.measure.base(self.grouped)

    # -- all orders ---------------------------------------------------------------------------------------------------

    def statistics(self, oblivious: str | None) -> _Statistics:
        """All statistics of each query."""
        measure, grouped = self.measure, self.grouped
        n, tied = grouped.n_queries, grouped.tied_queries
        if measure.additive and not measure.needs_subtopics:
            stack = grouped.stack(measure, oblivious)
            terms = self._terms(stack.order)
            values = self._divide(stack.order.sum(terms), stack.query)
            worst = terms[stack.worst]
        else:
            orders = [grouped.worst(measure), *([] if oblivious is None else [grouped.oblivious(oblivious)])]
            some = [self.value(order)[tied] for order in orders] if len(tied) else []
            values = np.concatenate([self.value(grouped.best(measure)), *some])
            worst = None
        maximum = values[:n]
        if not len(tied):  # without ties, every statistic is the same number
            return _Statistics(maximum, np.zeros(n), maximum, maximum, None if oblivious is None else maximum, None)
        low, high = values[n : n + len(tied)], maximum[tied]
        mean, variance = self._tied_moments(worst) if measure.additive else (x[tied] for x in self.list_moments)
        if measure.sorted_extremes and not measure.is_built_in():
            _check_order(measure, mean, low, high)
        method = None
        if not measure.sorted_extremes:
            closed = (x[tied] for x in self._closed_extremes)
            low, high = (np.where(np.isnan(x), y, x) for x, y in zip(closed, (low, high), strict=True))
        if self._parts is not None:
            low, high, method = self._extremes(self._parts, low, high)
        fixed = low == high  # then no order matters
        mean = np.where(fixed, low, np.minimum(np.maximum(mean, low), high))
        variance = np.where(fixed, 0.0, variance)
        if method is not None:
            method = method.take(~fixed).spread(n, tied[~fixed])
        one_order = None
        if oblivious is not None:
            one_order = values[n + len(tied) :]
            one_order = np.where(fixed & ~np.isnan(one_order), low, one_order)
        if len(tied) == n:
            return _Statistics(mean, variance, low, high, one_order, method)
        spread = np.zeros(n)
        spread[tied] = variance

        def whole(column: Floats) -> Floats:
            found = maximum.copy()
            found[tied] = column
            return found

        oblivious_values = None if one_order is None else whole(one_order)
        return _Statistics(whole(mean), spread, whole(low), whole(high), oblivious_values, method)

    def expectation(self) -> Floats:
        """Eq. (2), for each query."""
        if not self.measure.additive:
            return self.list_moments[0]
        found = self.value(self.grouped.best(self.measure))
        found[self.grouped.tied_queries] = self._tied_expectation(None)
        return found

    def _tied_expectation(self, worst: Floats | None) -> Floats:
        """Eq. (2), for each query with ties; `worst` has the terms of the worst order of their documents."""
        grouped, tied = self.grouped, self.grouped.tied_queries
        groups, _ = grouped.tied_groups
        grouped._means[self.measure] = mean = self.group_means
        place, documents = grouped.place_among_tied, grouped.tied_documents
        if worst is None:
            worst = self._terms(grouped.worst(self.measure))[documents]
        # Where a group is not mixed, any order will do.
        certain = np.where(self._mixed_groups[grouped.group[documents]], 0.0, worst)
        fixed = segment_sum(place[grouped.query[documents]], certain, len(tied))
        total = segment_sum(place[grouped.group_query[groups]], mean[groups], len(tied))
        return self._divide(fixed, tied) + self._divide(total, tied, with_base=False)

    def _tied_moments(self, worst: Floats | None) -> tuple[Floats, Floats]:
        """Eqs. (2) and (3), for each query with ties."""
        grouped, tied = self.grouped, self.grouped.tied_queries
        groups, _ = grouped.tied_groups
        variance = self.group_moments[1]
        squares = segment_sum(grouped.place_among_tied[grouped.group_query[groups]], variance[groups], len(tied))
        spread = squares if self._divisor is None else safe_divide(squares, self._divisor[tied] ** 2)
        return self._tied_expectation(worst), spread

    @property
    def group_means(self) -> Floats:
        """The expectations of `group_moments`; variances are not computed if they have no closed form."""
        mean, _ = self._closed_form
        sum_of_all = np.add.reduce(mean)
        return mean if sum_of_all == sum_of_all else self.group_moments[0]

    def all_group_means(self) -> Floats:
        """The expectation of each tie group, before it is divided, also where its order does not matter."""
        return np.where(self._mixed_groups, self.group_means, self.part_values(self.grouped.worst(self.measure)))

    @cached_property
    def _closed_form(self) -> tuple[Floats, Floats]:
        """Expectation and variance of each tie group as `moments` gives them, 0 where its order does not matter."""
        grouped, inside, mixed = self.grouped, self._inside, self._mixed_groups
        mean, variance = np.zeros(len(grouped.first)), np.zeros(len(grouped.first))
        groups = np.flatnonzero(mixed)
        for block in self._sums.blocks(groups, inside[groups]) if len(groups) else ():
            e, var = self.measure.moments(block)
            mean[block.groups], variance[block.groups] = e[:, 0], var[:, 0]
        return mean, variance

    @cached_property
    def group_moments(self) -> tuple[Floats, Floats]:
        """Expectation and variance of each tie group, before they are divided; 0 where its order does not matter."""
        grouped, inside, mixed = self.grouped, self._inside, self._mixed_groups
        mean, variance = self._closed_form
        sum_of_all = np.add.reduce(mean) + np.add.reduce(variance)
        if sum_of_all == sum_of_all and self.measure.sorted_extremes:  # nothing is NaN
            return mean, variance
        self._closed = ~np.isnan(mean), ~np.isnan(variance)
        is_open = ~(self._closed[0] & self._closed[1]) | (mixed & self._has_open_extremes[grouped.group_query])
        if np.count_nonzero(is_open):
            self._parts = parts = self._summarize(np.where(is_open, inside, 0))
            mean = np.where(self._closed[0], mean, parts.mean)
            variance = np.where(self._closed[1], variance, parts.variance)
        return mean, variance

    @cached_property
    def _sums(self) -> _GroupSums:
        return self.grouped.sums(self.measure.scaled_gain(self.grouped))

    @cached_property
    def _inside(self) -> Codes:
        """How many ranks of each group lie within the depth, (n_groups,)."""
        grouped = self.grouped
        inside = np.minimum(self.depth[grouped.group_query] - grouped.group_start, grouped.group_size)
        return np.maximum(inside, 0).astype(np.int64)

    @cached_property
    def _mixed_groups(self) -> NDArray[np.bool_]:
        """Whether the order of a group matters, within the depth, (n_groups,)."""
        is_mixed = self._sums.is_mixed
        if not self.measure.sorted_extremes:
            is_mixed = _is_mixed(self.grouped, *self.measure.kinds(self.grouped))
        return is_mixed & (self._inside > 0)

    @cached_property
    def list_moments(self) -> tuple[Floats, Floats]:
        """Expectation and variance of each query, for a measure that is not a sum."""
        mean, variance = self.measure.list_moments(self.grouped)
        self._closed = ~np.isnan(mean), ~np.isnan(variance)
        is_open = ~(self._closed[0] & self._closed[1]) | self._has_open_extremes
        if np.count_nonzero(is_open):
            grouped = self.grouped
            mixed = _is_mixed(grouped, *self.measure.kinds(grouped)) & is_open[grouped.group_query]
            self._parts = parts = self._summarize(np.where(mixed, self._inside, 0))
            one = self.measure.values(grouped.worst(self.measure))  # where no order changes the value
            found = [np.where(np.isnan(x), y, x) for x, y in ((parts.mean, one), (parts.variance, np.zeros_like(one)))]
            mean, variance = np.where(self._closed[0], mean, found[0]), np.where(self._closed[1], variance, found[1])
        return mean, variance

    # -- without a closed form ----------------------------------------------------------------------------------------

    def _summarize(self, inside: Codes) -> PartStatistics:
        from tiewise.metrics.enumeration import summarize_parts

        keys, unjudged_key = self.measure.kinds(self.grouped)
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
        return segment_sum(self.grouped.group, self._terms(order), len(self.grouped.first))

    def _extremes(self, parts: PartStatistics, low: Floats, high: Floats) -> tuple[Floats, Floats, Methods]:
        """The extremes of tied queries where the sorted orders need not give them, and how statistics were found."""
        grouped, measure, tied = self.grouped, self.measure, self.grouped.tied_queries
        has_mean, has_variance = self._closed
        is_sampled = parts.samples > 0
        error = np.where(is_sampled & ~has_mean, parts.variance / np.maximum(parts.samples, 1), 0.0)
        by_part = [is_sampled & ~has_mean, is_sampled & ~has_variance, is_sampled]
        if measure.additive:
            place, n = grouped.group_query, grouped.n_queries
            by_part = [segment_sum(place, one, n) > 0 for one in by_part]
            total = segment_sum(place, error, n)
            error = total if self._divisor is None else safe_divide(total, self._divisor**2)
        mean_sampled, std_sampled, any_sampled = (one[tied] for one in by_part)
        extremes = np.zeros(len(tied), dtype=np.int8)
        if not measure.sorted_extremes:
            is_open, most = self._has_open_extremes[tied], self._most_extreme(parts, low, high)
            low, high = (np.where(is_open, x, y) for x, y in zip(most, (low, high), strict=True))
            is_open &= any_sampled
            bounds = measure.extreme_bounds(grouped)
            if bounds is not None:
                low, high = (np.where(is_open, x[tied], y) for x, y in zip(bounds, (low, high), strict=True))
            extremes = np.where(is_open, SAMPLED if bounds is None else BOUND, EXACT).astype(np.int8)
        expected, std = (np.where(one, SAMPLED, EXACT).astype(np.int8) for one in (mean_sampled, std_sampled))
        return low, high, Methods(expected, extremes, std, np.where(mean_sampled, np.sqrt(error[tied]), np.nan))

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

    def _most_extreme(self, parts: PartStatistics, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """The lowest and the highest value of all orders that were tried, for each tied query."""
        grouped, tied = self.grouped, self.grouped.tied_queries
        if not self.measure.additive:
            return np.fmin(low, parts.minimum[tied]), np.fmax(high, parts.maximum[tied])
        mixed, order = self._mixed_groups, grouped.worst(self.measure)
        fixed = self._divide(order.sum(np.where(mixed[grouped.group], 0.0, self._terms(order))))
        totals = (segment_sum(grouped.group_query, np.where(mixed, x, 0.0), grouped.n_queries) for x in parts.extremes)
        seen = [(fixed + self._divide(total, with_base=False))[tied] for total in totals]
        return np.fmin(low, seen[0]), np.fmax(high, seen[1])

    # -- lists that may be truncated ----------------------------------------------------------------------------------

    def with_last_group(self, which: Literal["best", "worst"], means: Floats) -> Floats:
        """The expectation of each query with a fixed order of its last tie group; `means` are those of other groups."""
        grouped, measure = self.grouped, self.measure
        order = grouped.best(measure) if which == "best" else grouped.worst(measure)
        above = self._mixed_groups & grouped.above_last
        certain = np.where(above[grouped.group], 0.0, self._terms(order))
        total = segment_sum(grouped.group_query, np.where(above, means, 0.0), grouped.n_queries)
        return self._divide(order.sum(certain)) + self._divide(total, with_base=False)


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
    if not len(index):  # bincount would give integers
        return np.zeros(n)
    total: Any = np.bincount(index, weights=values, minlength=n)
    return total


def safe_divide(amount: Floats, divisor: NDArray[Any]) -> Floats:
    """amount / divisor, 0 where the divisor is 0."""
    divisor = np.asarray(divisor, dtype=np.float64)
    if np.count_nonzero(divisor) == divisor.size:
        return amount / divisor
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
