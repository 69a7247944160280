"""`TieGroups`: the sufficient statistic of a ranking with ties, which is all that a measure needs to know of it.

For a judged document with score s, all that matters is how many documents of its list score above s (`start`)
and how many score exactly s (`size`). Both are found by counting, so no run has to be sorted; counts of
disjoint shards add up, so a collection in a thousand pieces is evaluated exactly. `before` counts the tied documents
that a fixed order puts first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tiewise.caching import cached_property
from tiewise.data.columns import Codes, Floats, heads
from tiewise.data.judgments import Qrels
from tiewise.errors import InputError
from tiewise.results.wording import count_noun
from tiewise.ties.shards import Counts, Total


class CondensedEnd(NamedTuple):
    """The last tie groups of condensed lists, from which unjudged documents are removed; arrays are (n_queries,)."""

    kept: Codes  # judged documents in them
    candidates: Codes  # judged documents that may be there if the list is truncated: also those not retrieved

    def take(self, places: Codes) -> CondensedEnd:
        """Those of some lists."""
        return CondensedEnd(self.kept[places], self.candidates[places])


@dataclass(frozen=True, eq=False, repr=False)
class TieGroups:
    """Per judged document the start and size of its tie group, and per query the list's length.

    Arrays over documents run along the rows of `qrels`, arrays over queries along `qrels.queries`.

    >>> from tiewise import notation
    >>> ties = notation("(20)-1")
    >>> ties.start, ties.size, ties.length
    (array([0, 0, 3]), array([2, 2, 1]), array([4]))
    """

    qrels: Qrels
    score: Floats  # (n_judged,): NaN if the document was not retrieved
    start: Codes  # (n_judged,): documents of its list that score higher
    size: Codes  # (n_judged,): documents that score the same, itself included; 0 if not retrieved
    length: Codes  # (n_queries,): documents in the list
    present: NDArray[np.bool_]  # (n_queries,): whether the run has the query at all
    lowest: Floats  # (n_queries,): the lowest score of the list, NaN if it is empty
    lowest_size: Codes  # (n_queries,): documents with that score, the list's last tie group, before it is condensed
    before: Mapping[str, Codes] = field(default_factory=dict)  # by order, (n_judged,): tied documents ahead of it
    in_shard: NDArray[np.bool_] | None = None  # (n_judged,): retrieved in this shard; None: this is the whole
    unjudged: frozenset[str] = frozenset()  # queries of the run that the qrels do not have
    depth: int | None = None  # only ranks up to here count
    condensed_end: CondensedEnd | None = None  # of condensed lists; None: lists are whole
    complete: bool = False  # the lists are known to be whole, so none was cut inside its last tie group
    complete_lists: NDArray[np.bool_] | None = None  # (n_queries,): lists of which this is known; None: of no list
    may_go_on: NDArray[np.bool_] | None = None  # (n_queries,): of a part of a run: lists that may be truncated there

    def __repr__(self) -> str:
        queries = count_noun(len(self.qrels.queries), "query", "queries")
        retrieved = count_noun(int(np.count_nonzero(self.size)), "judged document")
        return f"<TieGroups: {queries}, {retrieved} retrieved, {int(np.count_nonzero(self.size > 1)):,} of them tied>"

    def _repr_html_(self) -> str:
        from tiewise.results.html import render_html
        from tiewise.results.model import PREVIEW_ROWS, Section, Table

        few, offsets = self.qrels.queries[:PREVIEW_ROWS], self.qrels.offsets
        sizes = [self.size[offsets[q] : offsets[q + 1]] for q in range(len(few))]
        columns = {
            "query": few,
            "documents": self.length[: len(few)].tolist(),
            "judged": [len(size) for size in sizes],
            "of them retrieved": [int(np.count_nonzero(size)) for size in sizes],
            "of these tied": [int(np.count_nonzero(size > 1)) for size in sizes],
            "largest tie group": [int(size.max(initial=0)) for size in sizes],
        }
        table = Table.of_columns(columns, total=len(self.qrels.queries))
        return render_html(Section([table], repr(self).strip("<>")))

    @cached_property
    def limit(self) -> Codes:
        """The number of ranks that count in each list, (n_queries,)."""
        return self.length if self.depth is None else np.minimum(self.length, self.depth)

    def to_depth(self, depth: int | None) -> TieGroups:
        """The same rankings, of which only the first `depth` ranks count."""
        return replace(self, depth=depth)

    def same_places(self, other: TieGroups) -> bool:
        """Whether all documents of the same judgments have the same places in every order as in other tie groups."""
        counts = ((one.start, one.size, *(one.before[order] for order in sorted(one.before))) for one in (self, other))
        return self.before.keys() == other.before.keys() and all(
            np.array_equal(own, others) for own, others in zip(*counts, strict=True)
        )

    def only(self, orders: Iterable[str]) -> TieGroups:
        """The same rankings with the counts of some tie-break orders."""
        return replace(self, before={order: self.before[order] for order in orders})

    def with_nonzero_labels(self) -> TieGroups:
        """The same rankings without the judgments of label 0, which most measures treat like unjudged documents."""
        nonzero = self.qrels.nonzero
        return self if nonzero is self.qrels else self.for_judgments(nonzero, np.flatnonzero(self.qrels.label))

    def retrieved_only(self) -> TieGroups:
        """The same rankings with the judgments of retrieved documents alone."""
        return self.take(np.flatnonzero(self.size > 0))

    def take(self, rows: Codes) -> TieGroups:
        """The same rankings with some of the judgments, given as ascending rows of the qrels."""
        return self.for_judgments(self.qrels.take(rows), rows)

    def select_queries(self, places: Codes) -> TieGroups:
        """The rankings of some queries, given by their places in ascending order, as if there were no others."""
        qrels = self.qrels
        if len(places) == len(qrels.queries):
            return self
        rows = np.flatnonzero(np.isin(qrels.query, places))
        some = qrels.take(rows)
        names, offsets = tuple(qrels.queries[place] for place in places.tolist()), some.offsets
        own = replace(some, queries=names, offsets=np.append(offsets[places], offsets[-1]), pool=None)
        return self.for_judgments(own, rows, places)

    def for_judgments(self, qrels: Qrels, rows: Codes, lists: Codes | None = None) -> TieGroups:
        """The same rankings for other judgments, which have the documents of some rows of these.

        `lists` has the place of the list of each of their queries, if they have other queries.
        """
        found = replace(
            self,
            qrels=qrels,
            score=self.score[rows],
            start=self.start[rows],
            size=self.size[rows],
            before={order: before[rows] for order, before in self.before.items()},
        )
        if lists is None:
            return found
        return replace(
            found,
            **{name: getattr(self, name)[lists] for name in ("length", "present", "lowest", "lowest_size")},
            condensed_end=None if self.condensed_end is None else self.condensed_end.take(lists),
            may_go_on=self.may_be_truncated[lists],
            complete_lists=None,
        )

    def without(self, rows: Codes) -> TieGroups:
        """Complete rankings without some judged documents, one row of the qrels in each query.

        >>> from tiewise import notation
        >>> ties = notation("(20)-1").without(np.array([1]))
        >>> ties.start, ties.size, ties.length
        (array([0, 0, 2]), array([1, 0, 1]), array([3]))
        """
        dropped = np.full(len(self.length), -1)
        dropped[self.qrels.query[rows]] = np.where(self.size[rows] > 0, rows, -1)
        of_query = dropped[self.qrels.query]
        score = np.where(of_query >= 0, self.score[of_query], np.nan)  # that of the dropped document
        tied, own = score == self.score, of_query == np.arange(len(of_query))
        lowest = np.where(dropped >= 0, self.score[dropped], np.nan) == self.lowest
        return replace(
            self,
            score=np.where(own, np.nan, self.score),
            start=np.where(own, 0, self.start - (score > self.score)),
            size=np.where(own, 0, self.size - tied),
            length=self.length - (dropped >= 0),
            lowest_size=self.lowest_size - lowest,
            before={
                order: np.where(own, 0, before - (tied & (before[of_query] < before)))
                for order, before in self.before.items()
            },
        )

    def condensed(self) -> TieGroups:
        """The rankings without unjudged documents and those with a label below 0, as trec_eval -J reads them.

        It takes all judgments, those of label 0 too.

        >>> from tiewise import notation
        >>> notation("-(20-)-1").condensed().start
        array([0, 0, 2])
        """
        assert self.qrels.pool is None and self.in_shard is None
        kept = (self.size > 0) & (self.qrels.label >= 0)
        rows = np.flatnonzero(kept)
        rows = rows[np.lexsort((self.start[rows], self.qrels.query[rows]))]
        query, start = self.qrels.query[rows], self.start[rows]
        length = np.bincount(query, minlength=len(self.qrels.queries))
        first_of_query = (np.cumsum(length) - length)[query]
        first = heads(query, start)

        def spread(values: Codes, at: Codes = rows) -> Codes:
            column = np.zeros(len(kept), dtype=np.int64)
            column[at] = values
            return column

        def count_before(before: Codes) -> Codes:
            return spread(np.arange(len(rows)) - first, rows[np.lexsort((before[rows], first))])

        found = replace(
            self,
            score=np.where(kept, self.score, np.nan),
            start=spread(first - first_of_query),
            size=spread(np.bincount(first)[first]),
            length=length,
            before={order: count_before(before) for order, before in self.before.items()},
        )
        return found.condensed_from(self)

    # -- lists that end inside a tie group --------------------------------------------------------------------

    @cached_property
    def may_be_truncated(self) -> NDArray[np.bool_]:
        """Whether a list may have been cut among documents tied with its last one, (n_queries,).

        It ends with tied documents, or the run looks truncated: at least three lists, and nine of ten, are of the
        largest length. Then the next document may be tied with the last one, even if that stands alone. A list that
        holds all judged documents and no others is not one of these: it has the candidates of a reranker.
        """
        ends = self._find_truncated(self.length) if self.may_go_on is None else self.may_go_on
        return ends if self.complete_lists is None else ends & ~self.complete_lists

    def truncated_from(self, length: Codes) -> TieGroups:
        """The same lists, of which these lengths say whether they look truncated, (n_queries,)."""
        return replace(self, may_go_on=self._find_truncated(length))

    def _find_truncated(self, length: Codes) -> NDArray[np.bool_]:
        longest = self.present & (length == length.max(initial=1))
        looks_truncated = np.count_nonzero(longest) >= max(3, 0.9 * np.count_nonzero(self.present))
        ends_tied: NDArray[np.bool_] = self.lowest_size > 1
        return ends_tied | (longest & ~self._holds_all_judged(length)) if looks_truncated else ends_tied

    def _holds_all_judged(self, length: Codes) -> NDArray[np.bool_]:
        """Whether a list has the judged documents and no others, like reranked candidates, (n_queries,)."""
        qrels = self.qrels
        n_judged = np.diff(qrels.offsets if qrels.pool is None else qrels.pool.offsets)
        found = np.bincount(qrels.query, weights=self.size > 0, minlength=len(length))
        return (n_judged == length) & (found == np.diff(qrels.offsets))

    def condensed_from(self, whole: TieGroups) -> TieGroups:
        """These condensed lists with the last tie groups of the whole lists, which may be truncated there.

        Only the lowest score of each whole list and the number of its documents are used.
        """
        query, n = self.qrels.query, len(self.length)
        kept = (self.size > 0) & (self.score == whole.lowest[query])
        may_be_there = kept | ((self.size == 0) & (self.qrels.label >= 0))
        end = CondensedEnd(np.bincount(query[kept], minlength=n), np.bincount(query[may_be_there], minlength=n))
        lowest, size, may_go_on = whole.lowest, whole.lowest_size, whole.may_be_truncated
        return replace(self, lowest=lowest, lowest_size=size, may_go_on=may_go_on, condensed_end=end)

    @property
    def last_start(self) -> Codes:
        """The number of documents above the last tie group of each list, (n_queries,)."""
        return self.length - (self.lowest_size if self.condensed_end is None else self.condensed_end.kept)

    def with_last_group(self, rows: Codes, ranks: Codes) -> TieGroups:
        """The lists with these judged documents in their last tie group and no others; it has so many ranks.

        `rows` are of the qrels, at most as many in a list as its last group has ranks.
        """
        query = self.qrels.query
        last = self.in_last_group
        last[rows] = True
        joins = np.zeros(len(query), dtype=bool)
        joins[rows] = True
        return replace(
            self,
            start=np.where(joins, self.last_start[query], self.start),
            size=np.where(last, np.where(joins, ranks[query], 0), self.size),
            length=self.last_start + ranks,
            lowest_size=ranks,
            condensed_end=None,
            may_go_on=self.may_be_truncated,
        )

    @property
    def in_last_group(self) -> NDArray[np.bool_]:
        """Whether a judged document stands in the last tie group of an open-ended list, (n_judged,)."""
        query = self.qrels.query
        return (self.size > 0) & (self.score == self.lowest[query]) & self.may_be_truncated[query]

    def share(self, other: TieGroups) -> TieGroups:
        """The same tie groups, with the arrays of others where these have equal counts."""

        def pick(own: Codes, known: Codes | None) -> Codes:
            return own if known is None or not np.array_equal(own, known) else known

        return replace(
            self,
            start=pick(self.start, other.start),
            size=pick(self.size, other.size),
            lowest_size=pick(self.lowest_size, other.lowest_size),
            before={order: pick(own, other.before.get(order)) for order, own in self.before.items()},
        )

    # -- shards -----------------------------------------------------------------------------------------------

    @staticmethod
    def merge(shards: Iterable[TieGroups]) -> TieGroups:
        """The tie groups of a collection from those of its disjoint shards, which may come one by one.

        Every shard must have counted for the judged scores of all shards: see `from_shards`, which does it.
        Tied documents are `given` in the order of the shards.
        """
        first, total, unjudged = None, None, set[str]()
        for shard in shards:
            if first is None or total is None:
                first, total = shard, shard._total()
            shard._check_like(first)
            counts = shard.counts()
            _check_apart(first.qrels, total.held(counts))
            total.add(counts)
            unjudged |= shard.unjudged
        if first is None or total is None:
            raise InputError("There are no shards to merge.")
        whole = replace(first, in_shard=None, complete_lists=None, may_go_on=None)  # these are of one shard alone
        merged = replace(whole, **total.columns(), unjudged=frozenset(unjudged))
        if first.condensed_end is None:
            return merged
        return merged.condensed_from(replace(merged, may_go_on=merged.lowest_size > 1))  # whole lengths are not known

    def counts(self) -> Counts:
        """What these tie groups add to those of a larger collection, of which they are a shard."""
        in_shard = ~np.isnan(self.score) if self.in_shard is None else self.in_shard
        per_query = (self.present, self.length, self.lowest, self.lowest_size)
        return Counts.of(self.start, self.size, in_shard, self.before, *per_query)

    def _total(self) -> Total:
        if "rank" in self.before:
            raise InputError("Rank columns of shards do not make one ranking. Use another tie-break order.")
        return Total(len(self.qrels), len(self.qrels.queries), self.before)

    def _check_like(self, first: TieGroups) -> None:
        if not self.qrels.equals(first.qrels):
            raise InputError("Shards with different qrels cannot be merged. Use the same qrels for all.")
        if set(self.before) != set(first.before):
            raise InputError("Shards counted for different tie-break orders cannot be merged.")
        if not np.array_equal(self.score, first.score, equal_nan=True):
            raise InputError(
                "Shards that counted for different scores cannot be merged. Gather judged_scores() of all "
                "shards first and give them to tie_groups(), or use TieGroups.from_shards()."
            )

    @staticmethod
    def from_shards(qrels: Any, shards: Sequence[Any], orders: Sequence[str] = ("docid-desc",)) -> TieGroups:
        """The tie groups of a run that is cut into shards of disjoint documents, given as whatever `evaluate` takes.

        >>> left, right = {"q": {"a": 2.0, "b": 1.0}}, {"q": {"c": 1.0, "d": 3.0}}
        >>> whole = TieGroups.from_shards({"q": {"a": 1, "c": 1}}, [left, right])
        >>> whole.start, whole.size
        (array([1, 2]), array([1, 2]))
        """
        merged: TieGroups = import_module("tiewise.io.sources").count_shards(qrels, shards, orders)
        return merged


def _check_apart(qrels: Qrels, twice: Codes) -> None:
    """Raise if there are judged documents that an earlier shard had."""
    if len(twice):
        query, doc = qrels.row(int(twice[0]))
        some = count_noun(len(twice), "such document")
        raise InputError(
            f"Document '{doc}' of query '{query}' was retrieved in two shards ({some}). Shards must not share "
            "documents; was one given twice?"
        )
