"""`RunSource`: everything that can be counted; `Counted`: a run after counting.

A run comes from a file, a dictionary, columns, an Arrow table, vectors or shards. Whatever it is, it answers two
questions: count the tie groups for some judgments, and give all rows. `Counted` holds the answer to the first: small
arrays, and no reference to the run. All measures, tools and formats of a command take it, so a run is counted once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tiewise.caching import LazyMapping, cached_property
from tiewise.data.columns import Codes, Floats, positions, split_segments
from tiewise.data.judgments import Qrels
from tiewise.data.runs import Run, Trend
from tiewise.data.source import Source
from tiewise.errors import InputError
from tiewise.ties.counting import count_ties
from tiewise.ties.groups import TieGroups
from tiewise.ties.orders import TOOL_ORDERS
from tiewise.ties.shards import Fingerprints, fingerprint_rows

#: The score types that known tools use: "float64" are the scores as they are.
DTYPES = ("float64", "float32")
#: Queries and documents that are kept for messages.
EXAMPLES = 3
ROWS = 1 << 16  # rows that are counted at a time, of a run that is not text


class ListScores(NamedTuple):
    """The scores of some lists, in the order of the run; ids are made when they are asked for."""

    value: Floats  # (n_rows,), in memory that is used again
    offsets: Codes  # (n_lists + 1,)
    query: Callable[[int], str]  # of a list
    docs: Callable[[Codes], list[str]]  # of some rows


class Request(NamedTuple):
    """What is to be counted of a run."""

    qrels: Qrels
    orders: tuple[str, ...]
    dtypes: tuple[str, ...] = DTYPES
    score_dtype: str | None = None  # scores are rounded to this type first
    judged_only: bool = False  # unjudged documents are removed first, and those with a negative label
    scores: Floats | None = None  # the judged scores of a larger collection, of which the run is one shard
    fingerprint_limit: int = 0  # keep the fingerprints of rows below this
    inspect: Callable[[ListScores], Any] | None = None  # is called with all lists, some at a time


class RunSource:
    """A run, wherever it is."""

    is_constant: bool = True  #: whether a second count sees the same run, or raises an error
    drop_self: bool = False  #: whether documents with the id of their query are removed before counting
    distances: bool = False  #: whether scores are negated before counting

    def rows(self) -> Run:
        """All rows as columns: for what tie groups do not hold."""
        raise NotImplementedError

    def without_self(self) -> RunSource | None:
        """The run without documents that have the id of their query; None if its rows are to be edited."""
        return None

    def count(
        self,
        qrels: Qrels,
        orders: Sequence[str],
        dtypes: Sequence[str] = DTYPES,
        *,
        score_dtype: str | None = None,
        judged_only: bool = False,
        scores: Floats | None = None,
        fingerprint_limit: int = 0,
        inspect: Callable[[ListScores], Any] | None = None,
    ) -> Counted:
        """The tie groups for every order and every score type, in one pass over the run: see `Request`."""
        options = score_dtype, judged_only, scores, fingerprint_limit, inspect
        return self._count(Request(qrels, tuple(orders), tuple(dtypes), *options))

    def _count(self, request: Request) -> Counted:
        """Count what was requested."""
        raise NotImplementedError


@dataclass(eq=False, slots=True)  # with slots, a subclass can fill fields in later
class Counted(RunSource):
    """The tie groups of a run for one or more score types, and a few facts about all of its rows.

    >>> from tiewise import notation
    >>> Counted.of(notation("(10)1")).complete
    False
    """

    ties: Mapping[str, TieGroups]  # by score type; "float64" is the scores as they are
    n_rows: int | None = None
    tied_rows: int | None = None  # rows that share their score with another row of their query
    equal_share: float | None = None  # of neighbours in the ranked lists, those with equal scores
    new_ties: int | None = None  # tied rows that `score_dtype` made
    found: NDArray[np.bool_] | None = None  # (n_queries of the qrels,): whether the list has a judged document
    n_queries: int | None = None
    queries: tuple[str, ...] = ()  # a few, for messages; the first ones, unless the file had to be grouped by query
    docs: tuple[str, ...] = ()  # a few, for messages
    source: Source | None = None  # the file
    score_dtype: str | None = None  # the type to which scores were rounded before counting
    judged_only: bool = False  # whether unjudged documents were removed before counting
    fingerprints: Fingerprints | None = None  # of rows, below the limit of the request
    numbered: tuple[str, ...] = ()  # whose ids are row numbers: "query", "document"
    has_self: NDArray[np.bool_] | None = None  # (n_queries of the qrels,): the list has a document with the query's id
    trend: Trend | None = None  # of the scores along the lists, or, if most do not fall, along the rank column
    name: str | None = None  # the run's tag, if it was inspected
    inspected: tuple[Any, ...] = ()  # what `Request.inspect` returned, in the order of the lists
    drop_self: bool = False
    distances: bool = False

    @staticmethod
    def of(ties: TieGroups) -> Counted:
        """A run of which only the tie groups are known."""
        return Counted({"float64": ties})

    @property
    def qrels(self) -> Qrels:
        """The judgments for which the run was counted."""
        return self._any.qrels

    @property
    def n_present(self) -> int:
        """The number of judged queries that the run has."""
        return int(np.count_nonzero(self._any.present))

    @cached_property
    def self_queries(self) -> int:
        """How many judged queries have a document with their own id in their list."""
        return 0 if self.has_self is None else int(np.count_nonzero(self.has_self))

    @property
    def longest(self) -> int:
        """The length of the longest list of a judged query."""
        return int(self._any.length.max(initial=0))

    @property
    def is_condensed(self) -> bool:
        """Whether unjudged documents were removed from the lists."""
        return self._any.condensed_end is not None

    @property
    def _any(self) -> TieGroups:
        """Tie groups of one of the score types, for what is the same in all of them."""
        return next(iter(self.ties.values()))

    @property
    def complete(self) -> bool:
        """Whether the lists are known to be complete."""
        return self._any.complete

    def has(self, order: str | None, dtype: str) -> bool:
        """Whether the run was counted for an order of ties and a score type."""
        return dtype in self.ties and order in self.ties[dtype].before

    def condensed(self) -> Counted | None:
        """The run without unjudged documents, as `Request.judged_only` counts it; None if that takes its rows."""
        is_part = self.fingerprints is not None or any(ties.in_shard is not None for ties in self.ties.values())
        has_self = self.has_self is None or self.has_self.any()
        if is_part or has_self or self.score_dtype is not None:
            return None
        ties = {dtype: one.condensed() for dtype, one in self.ties.items()}
        exact = ties["float64"]
        tied_rows = int(np.count_nonzero(exact.size > 1))
        return self.replace(ties=ties, n_rows=int(exact.length.sum()), tied_rows=tied_rows, judged_only=True)

    def replace(self, **changes: Any) -> Counted:
        """The same with some fields changed."""
        return Counted(**{one.name: getattr(self, one.name) for one in fields(Counted)} | changes)

    def compact(self) -> Counted:
        """The same, to be kept: score types whose tie groups are equal, as is usual, have the same arrays."""
        first = next(iter(self.ties.values()))
        return self.replace(ties={dtype: ties.share(first) for dtype, ties in self.ties.items()})

    # -- a source of itself -------------------------------------------------------------------------------------

    def _count(self, request: Request) -> Counted:
        """The same; an error if it was counted for other judgments or options."""
        if (request.score_dtype, request.judged_only) != (self.score_dtype, self.judged_only):
            raise InputError("Tie groups hold counts, not scores: give score_dtype or judged_only a run.")
        if any(ties.in_shard is not None for ties in self.ties.values()):
            raise InputError("These are the tie groups of one shard. Merge those of all shards first.")
        if not request.qrels.equals(self.qrels):
            raise InputError("The tie groups were counted for other qrels. Give None, or the same.")
        return self

    def rows(self) -> Run:
        """Raise: tie groups hold no rows."""
        raise InputError("Tie groups hold counts, not rows: give the run itself.")


_FIELDS = [one.name for one in fields(Counted)]


class CountedLists(Counted):
    """Lists that the compiled reader counted, for all orders of tools. Fields are filled in when one is looked at."""

    is_condensed = complete = False

    def __init__(self, lists: Any, request: Request):
        self.lists, self._request = lists, request  # the compiled object

    def __getattr__(self, name: str) -> Any:
        if name not in _FIELDS:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        lists = self.lists
        tied_rows, equal_neighbours, *trend = lists.totals()
        super().__init__(
            LazyMapping(self._request.dtypes, partial(_make_ties, lists, self._request)),
            n_rows=lists.n_rows,
            tied_rows=tied_rows,
            equal_share=equal_neighbours / max(lists.n_rows - lists.n_lists, 1),
            found=lists.found,
            n_queries=lists.n_lists,
            queries=tuple(lists.queries),
            docs=tuple(lists.docs),
            has_self=lists.has_self,
            trend=Trend(*trend),
        )
        return getattr(self, name)

    def __reduce__(self) -> tuple[Any, ...]:
        return Counted, tuple(getattr(self, name) for name in _FIELDS)

    @property
    def qrels(self) -> Qrels:
        """The judgments for which the run was counted."""
        return self._request.qrels

    @property
    def n_present(self) -> int:
        """The number of judged queries that the run has."""
        return int(self.lists.n_present)

    @property
    def longest(self) -> int:
        """The length of the longest list of a judged query."""
        return int(self.lists.longest)

    def has(self, order: str | None, dtype: str) -> bool:
        """Whether the run was counted for an order of ties and a score type."""
        return dtype in self._request.dtypes and order in self._request.orders


def _make_ties(lists: Any, request: Request, dtype: str) -> TieGroups:
    """The tie groups of lists that the compiled reader counted."""
    score, start, size, lowest, lowest_size, *before = lists.groups(dtype == "float32")
    orders = dict(zip(TOOL_ORDERS, before, strict=True))
    return TieGroups(
        qrels=request.qrels,
        score=score,
        start=start,
        size=size,
        length=lists.length,
        present=lists.present,
        lowest=lowest,
        lowest_size=lowest_size,
        before={order: orders[order] for order in request.orders},
        unjudged=frozenset(lists.unjudged),
    )


def count_lists(run: Run, request: Request) -> Counted:
    """Ranked lists in memory, counted in NumPy."""
    if request.judged_only:
        return _count_condensed(run, request)
    dtype = request.score_dtype
    rounded = run if dtype is None else run.projected(dtype)
    ties = count_ties(request.qrels, rounded, request.orders, request.dtypes, request.scores)
    return Counted(
        ties,
        n_rows=len(rounded),
        tied_rows=rounded.tied_rows,
        equal_share=(len(rounded) - rounded.n_groups) / max(len(rounded) - len(rounded.queries), 1),
        new_ties=None if dtype is None else rounded.tied_rows - run.tied_rows,
        found=_has_judged(run, request.qrels, next(iter(ties.values()))),
        n_queries=len(run.queries),
        queries=run.queries[:EXAMPLES],
        docs=tuple(run.ids(np.arange(min(EXAMPLES, len(run))))),
        source=run.source,
        score_dtype=dtype,
        fingerprints=fingerprint_rows(run, request.fingerprint_limit) if request.fingerprint_limit else None,
        has_self=np.isin(positions(run.query_index, request.qrels.queries), run.query[run.self_rows]),
        trend=rounded.trend(),
        name=run.name,
        inspected=() if request.inspect is None else tuple(map(request.inspect, scores_of(run))),
    )


def scores_of(run: Run) -> Iterator[ListScores]:
    """The scores of all lists of a run in memory, some lists at a time."""
    for lists in split_segments(run.offsets, ROWS):
        queries, offsets = run.queries[lists], run.offsets[lists.start : lists.stop + 1]
        low = int(offsets[0])

        def docs(rows: Codes, low: int = low) -> list[str]:
            return run.ids(low + rows)

        yield ListScores(run.value[low : int(offsets[-1])], offsets - low, queries.__getitem__, docs)


def _count_condensed(run: Run, request: Request) -> Counted:
    """The run without its unjudged documents. A list is open-ended only where it ends as the whole list does."""
    request = request._replace(judged_only=False)
    counted = count_lists(run.judged_only(request.qrels), request)
    whole = count_lists(run, request._replace(orders=()))
    ties = {dtype: one.condensed_from(whole.ties[dtype]) for dtype, one in counted.ties.items()}
    return counted.replace(
        ties=ties,
        found=whole.found,
        docs=whole.docs,
        equal_share=whole.equal_share,
        trend=whole.trend,
        judged_only=True,
    )


def _has_judged(lists: Run, qrels: Qrels, ties: TieGroups) -> NDArray[np.bool_]:
    """Whether the list of each query has a judged document, (n_queries,)."""
    retrieved = ties.size > 0 if ties.in_shard is None else ties.in_shard
    found = np.bincount(qrels.query, weights=retrieved, minlength=len(qrels.queries)) > 0
    if qrels.pool is not None:
        documents, offsets = qrels.pool
        pool = Qrels(qrels.queries, offsets, documents, np.zeros(len(documents)))
        score, _ = lists.find(pool, positions(lists.query_index, pool.queries))
        found |= np.bincount(pool.query, weights=~np.isnan(score), minlength=len(pool.queries)) > 0
    return found
