"""The judged documents of a run by query and tie group, their orders, and tie groups as dense blocks.

The tie groups of a ranking follow each other. What stands above a group is a fixed number of documents, so groups are
independent. They are worked through as dense blocks, groups × ranks, of groups of about one size, so that memory stays
bounded and sums are taken pairwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from tiewise.caching import cached_property
from tiewise.data.columns import Codes, Floats, heads
from tiewise.errors import InputError
from tiewise.metrics.definition import Measure
from tiewise.metrics.segments import alike, padded, segment_sum
from tiewise.ties.groups import TieGroups

if TYPE_CHECKING:
    from tiewise.metrics.subtopics import SubtopicJudgments

#: How many groups of any sizes may have together in one block.
SMALL_BLOCK = 1 << 12
#: Gains beyond 2 to the power of this, up or down, are not squared as they are.
EXPONENT = 400

Value = TypeVar("Value")


class Order:
    """The judged documents of some lists in one order: by list, ascending rank.

    There is a list for each query, or, in a `Stack`, several: `segment` has the list of each document.
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
        self.grouped = grouped
        self.query, self.rows, self.n_queries = query, rows, grouped.n_queries  # rows of the qrels
        self.rank: Floats = rank.astype(np.float64, copy=False)
        self.segment = query if segment is None else segment
        self.n_segments = grouped.n_queries if n_segments is None else n_segments

    @cached_property
    def label(self) -> Floats:
        """The label of each document."""
        return self.grouped.ties.qrels.label[self.rows]

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
        return self.grouped.head if self.segment is self.grouped.query else heads(self.segment)

    def product_before(self, values: Floats) -> Floats:
        """The product of the values that stand before each document in its list."""
        return self._reduce_before(np.multiply, values)

    def sum_before(self, values: Floats) -> Floats:
        """The sum of the values that stand before each document in its list."""
        return self._reduce_before(np.add, values)

    def _reduce_before(self, ufunc: np.ufunc, values: Floats) -> Floats:
        out = np.full(len(values), float(ufunc.identity))
        for rows, held in padded(np.bincount(self.segment, minlength=self.n_segments)):
            run = ufunc.accumulate(np.where(held, values[rows], ufunc.identity), axis=1)
            out[rows[:, 1:][held[:, 1:]]] = run[:, :-1][held[:, 1:]]
        return out


class Stack(NamedTuple):
    """All lists of which the statistics of a measure are made, one after another.

    These are the best order of every list, then one fixed order and the worst order of lists with ties.
    """

    order: Order
    query: Codes  # (n_lists,): the query of each list
    parts: list[tuple[Order, Any]]  # the orders of all queries, and which of their documents are in the stack


class GroupedJudgments:
    """Tie groups as the measures see them: judged documents by query, tie group and label."""

    def __init__(self, ties: TieGroups):
        qrels = ties.qrels
        self.ties = ties
        self.n_queries = len(qrels.queries)
        self.length = ties.limit  # (n_queries,): the ranks that count
        self._orders: dict[str, tuple[NDArray[Any], Codes]] = {}  # ranks and rows; an `Order` refers to this object
        seen = ((ties.size > 0) & (ties.start < self.length[qrels.query])).nonzero()[0]
        first = ties.length.cumsum() - ties.length  # if lists stood one after another
        place = ties.start[seen] + first[qrels.query[seen]]
        if np.count_nonzero(ties.size[seen] > 1):
            self.rows = rows = seen[np.lexsort((-qrels.label[seen], place))]  # of the qrels
        else:  # quicker, as a place has one document
            self.rows = rows = seen[place.argsort(kind="stable")]
        # Arrays over the retrieved judged documents: by query, by group, by descending label.
        self.query, self.label = qrels.query[rows], qrels.label[rows]
        self.start, self.size = ties.start[rows], ties.size[rows]
        new = np.ones(len(rows), dtype=bool)
        new[1:] = (self.query[1:] != self.query[:-1]) | (self.start[1:] != self.start[:-1])
        self.group: Codes = new.cumsum() - 1  # (n_documents,)
        # Arrays over the tie groups that hold one of them.
        self.first: Codes = new.nonzero()[0]
        self.n_judged = np.bincount(self.group)  # judged documents in the group
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
        return self.of_judgments("relevant", measure, lambda: self.judged(measure.gain(self.ties.qrels.label) > 0))

    def of_judgments(self, name: str, measure: Measure, compute: Callable[[], Value]) -> Value:
        """What a measure computes from the judgments alone, under a name; the next run has it too."""
        return self.ties.qrels.derived((name, measure), compute)

    def unit(self, measure: Measure) -> Floats | None:
        """For each query a power of two near its largest gain, where that is too large or too small to be squared.

        Dividing by it changes no digit. None if the gains of all queries can be squared as they are.
        """
        return self.of_judgments("unit", measure, lambda: self._unit(measure))

    def _unit(self, measure: Measure) -> Floats | None:
        qrels = self.ties.qrels
        gain = measure.gain(qrels.label)
        if np.abs(np.frexp(gain)[1]).max(initial=0) < EXPONENT:  # nearly always
            return None
        held = np.flatnonzero(np.diff(qrels.offsets))
        exponent = np.zeros(self.n_queries, dtype=np.int64)
        exponent[held] = np.frexp(np.maximum.reduceat(gain, qrels.offsets[held]))[1] - 1
        odd = np.abs(exponent) > EXPONENT
        return np.ldexp(1.0, np.where(odd, exponent, 0)) if odd.any() else None

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

    def inside(self, depth: NDArray[Any]) -> NDArray[Any]:
        """How many ranks of each tie group lie within the depth of its list, from depths (…, n_queries)."""
        return np.clip(depth[..., self.group_query] - self.group_start, 0, self.group_size)

    def above_group(self, per_group: Floats) -> Floats:
        """The sum of a count over the groups of the same query above each group."""
        total = np.cumsum(per_group) - per_group
        above: Floats = total - total[heads(self.group_query)]
        return above

    # -- orders: Eq. (4) --------------------------------------------------------------------------------------

    def best(self, measure: Measure) -> Order:
        """The order that is best for a measure: by descending key in each group, unjudged documents at key 0."""
        return self._sorted("best", measure)

    def worst(self, measure: Measure) -> Order:
        """The reverse of the best order."""
        return self._sorted("worst", measure)

    def ideal(self, measure: Measure) -> Order:
        """All judged documents, retrieved or not, by descending key."""
        qrels = self.ties.qrels

        def sort() -> tuple[Codes, Codes]:
            rows = np.lexsort((-measure.key(qrels.label), qrels.query))
            return np.arange(len(rows)) - qrels.offsets[:-1][qrels.query[rows]] + 1, rows

        rank, rows = qrels.derived(("ideal order", None if measure.sorts_by_label else measure), sort)
        return Order(self, qrels.query[rows], rank, rows)

    def oblivious(self, order: str) -> Order:
        """The judged documents where one fixed order puts them."""
        if order not in self._orders:
            if order not in self.ties.before:
                raise InputError(f"These tie groups were counted without the order '{order}'.")
            self._orders[order] = self._put(self.ties.before[order][self.rows])
        return Order(self, self.query, *self._orders[order])

    @cached_property
    def _slot(self) -> Codes:
        """The first slot of each document's group, if groups stood one after another, (n_documents,)."""
        slot: Codes = (self.group_size.cumsum() - self.group_size)[self.group]
        return slot

    def in_places(self, before: Codes) -> Order:
        """The order in which `before[i]` tied documents precede document i."""
        return Order(self, self.query, *self._put(before))

    def _put(self, before: Codes) -> tuple[NDArray[Any], Codes]:
        rows = (self._slot + before).argsort(kind="stable")  # quick, as groups stand in order already
        return (self.start + 1 + before)[rows], self.rows[rows]

    @cached_property
    def offset(self) -> Codes:
        """How many judged documents of its group stand before each document, by descending label, (n_documents,)."""
        offset: Codes = np.arange(len(self.group)) - self.first[self.group]
        return offset

    def _sorted(self, which: str, measure: Measure) -> Order:
        shared = measure.sorts_by_label  # nearly every measure: one order serves them all
        if shared and which in self._orders:
            return Order(self, self.query, *self._orders[which])
        key, rows = measure.sort_key(self), self.rows
        if not shared:  # else documents stand in this order already
            by_key = np.lexsort((-key, self.group))
            key, rows = key[by_key], rows[by_key]
        # By descending key, ranks are counted from the group's front, or from its back for keys below those of the
        # unjudged; by ascending key, the other way round.
        place = self.offset
        back = self.n_judged[self.group] - 1 - place
        if which == "best":
            rank = self.start + np.where(key >= 0, 1 + place, self.size - back)
        else:
            turned = np.arange(len(key)) - place + back
            rank = (self.start + np.where(key >= 0, self.size - place, 1 + back))[turned]
            rows = rows[turned]
        if shared:
            self._orders[which] = rank, rows
        return Order(self, self.query, rank, rows)

    def stack(self, measure: Measure, oblivious: str | None) -> Stack:
        """The lists of which a measure's statistics are made."""
        n, tied, documents = self.n_queries, self.tied_queries, self.tied_documents
        parts: list[tuple[Order, Any]] = [(self.best(measure), slice(None))]
        if len(tied):
            parts += [] if oblivious is None else [(self.oblivious(oblivious), documents)]
            parts.append((self.worst(measure), documents))
        again = range(len(parts) - 1)
        query = self.query[documents] if len(tied) else self.query[:0]
        place = n + self.place_among_tied[query]
        order = Order(
            self,
            np.concatenate([self.query, *(query for _ in again)]),
            np.concatenate([order.rank[some] for order, some in parts]),
            np.concatenate([order.rows[some] for order, some in parts]),
            segment=np.concatenate([self.query, *(place + i * len(tied) for i in again)]),
            n_segments=n + len(again) * len(tied),
        )
        return Stack(order, np.concatenate([np.arange(n), *(tied for _ in again)]), parts)

    # -- parts ------------------------------------------------------------------------------------------------

    @cached_property
    def by_subtopic(self) -> SubtopicJudgments:
        """The labels for each subtopic; an error if there are none."""
        from tiewise.metrics.subtopics import SubtopicJudgments

        return SubtopicJudgments(self)

    @cached_property
    def head(self) -> Codes:
        """The first document of the query of each document, (n_documents,)."""
        return heads(self.query)

    @cached_property
    def tied_groups(self) -> tuple[Codes, Codes]:
        """The groups of two documents or more, and the judged documents in them."""
        tied = self.group_size > 1
        return tied.nonzero()[0], tied[self.group].nonzero()[0]

    @cached_property
    def above_last(self) -> NDArray[np.bool_]:
        """Whether a group has two documents or more and is not the last of its list, (n_groups,)."""
        return (self.group_size > 1) & (self.group_start < self.ties.last_start[self.group_query])

    @cached_property
    def tied_queries(self) -> Codes:
        """The queries that have a tie group with a judged document."""
        has_ties = np.zeros(self.n_queries, dtype=bool)
        has_ties[self.group_query[self.group_size > 1]] = True
        return has_ties.nonzero()[0]

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
        return GroupedJudgments(self.ties.select_queries(places)), np.flatnonzero(chosen[self.group_query])

    def is_mixed(self, keys: Floats, unjudged_key: float) -> NDArray[np.bool_]:
        """Whether a group of two or more holds documents of different keys, (n_groups,)."""
        groups, documents = self.tied_groups
        found = np.zeros(len(self.first), dtype=bool)
        if len(groups):
            keys, n_judged = keys[documents], self.n_judged[groups]
            first = n_judged.cumsum() - n_judged
            low, high = np.minimum.reduceat(keys, first), np.maximum.reduceat(keys, first)
            has_unjudged = self.group_size[groups] > n_judged
            low = np.where(has_unjudged, np.minimum(low, unjudged_key), low)
            found[groups] = low != np.where(has_unjudged, np.maximum(high, unjudged_key), high)
        return found


class GroupSums:
    """The gains in tied groups, as sums and counts that are computed lazily; arrays run over all groups."""

    def __init__(self, grouped: GroupedJudgments, gain: Floats):
        self.grouped, self.gain = grouped, gain
        self._documents = grouped.tied_groups[1]
        self._of = grouped.group[self._documents]
        self._gain = gain[self._documents]
        self.is_mixed = grouped.is_mixed(gain, 0.0)  # whether a group's order matters

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
        if not len(groups):
            return
        # Slots and gains are the two ways in which a block can be wide.
        width = np.maximum(inside, self.relevant[groups].astype(np.int64))
        small = len(groups) * int(width.max()) <= SMALL_BLOCK
        for some in [np.arange(len(groups))] if small else alike(width):
            yield GroupBlock(self, groups[some], inside[some])


class GroupBlock:
    """A block of tie groups: columns (n_groups, 1) over groups, rows (n_groups, n_slots) over their ranks."""

    def __init__(self, sums: GroupSums, groups: Codes, inside: Codes):
        self.grouped, self._sums, self.groups = sums.grouped, sums, groups
        self.start = self._column(self.grouped.group_start)  #: documents above the group
        self.size = self._column(self.grouped.group_size)  #: documents in it
        self.inside = inside[:, None].astype(np.float64)  #: of these, within the cutoff
        self.relevant = self._column(sums.relevant)  #: documents in it with a gain
        self.slot = np.arange(int(inside.max()), dtype=np.float64)[None, :]  #: 0, 1, … inside the group
        self.rank = self.start + 1 + self.slot
        self.within = self.slot < self.inside  #: whether a slot exists and lies within the cutoff

    def take(self, places: Codes) -> GroupBlock:
        """Some of the groups, which may be repeated."""
        part = copy(self)
        for name in ("groups", "start", "size", "inside", "relevant", "rank", "within"):
            setattr(part, name, getattr(self, name)[places])
        for name in ("seen", "gain", "gain_ss", "gains"):
            vars(part).pop(name, None)
        return part

    @cached_property
    def seen(self) -> Floats:
        """Documents above the group with a gain."""
        return self._column(self._sums.seen)

    @cached_property
    def gain(self) -> Floats:
        """The sum of the group's gains."""
        return self._column(self._sums.total)

    @cached_property
    def gain_ss(self) -> Floats:
        """Squared deviations of the gains from their mean, unjudged documents at 0."""
        return self._column(self._sums.squares)

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
        gains[owner, np.arange(len(rows)) - heads(owner)] = gain[rows]
        return gains
