"""Runs that are not in memory: they are counted in one pass, block by block.

Tie groups need counts, not rows. A block holds whole lists, and it fills the elements of its own queries in the arrays
of the result. So blocks are independent, and the result does not depend on the number of threads.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tiewise.data.columns import Codes, Floats, project, ranges
from tiewise.data.documents import Documents
from tiewise.data.judgments import Qrels
from tiewise.data.runs import Trend
from tiewise.data.source import Source
from tiewise.errors import InputError, name_memory_errors
from tiewise.io.text import find_not_utf8, reader
from tiewise.ties.counted import EXAMPLES, Counted, ListScores, Request, RunSource, count_lists
from tiewise.ties.groups import TieGroups
from tiewise.ties.orders import NO_RANKS, check_orders

MAX_THREADS = 8
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
ALLOWED = os.environ.get("OMP_NUM_THREADS", "")  # clusters set it for their workers
THREADS = max(1, min(CORES, int(ALLOWED) if ALLOWED.isdecimal() else CORES, MAX_THREADS))
SMALL = 1 << 18  # rows for which a second thread does not help

Load = Callable[[Any, Any], None]  # fills a compiled block with a part of a run
Problem = Literal["unreadable", "not contiguous", "duplicate"]  # a line or an id, the rows of a query, a document


class StreamedRun(RunSource):
    """A run that the compiled reader counts block by block, wherever it is; every count reads it once."""

    _threads: int  # the number of threads that may read it
    _name = "the run"  # in messages

    @abstractmethod
    def _read(self, counting: Counting) -> bool:
        """Read and count the run; False if that needs its rows as columns."""

    @property
    def _source(self) -> Source | None:
        """The file, if the run is one; its format is known after reading."""
        return None

    @property
    def _tag(self) -> str | None:
        """The tag of the run, if it has one and was inspected."""
        return None

    def _rank_trend(self) -> Trend | None:
        """The trend of the scores along the rank column, perhaps of the first lists only; None if there is none."""
        return None

    def _count(self, request: Request) -> Counted:
        check_orders(request.orders)
        whole = self._count_lists(request._replace(judged_only=False))
        counted = whole.condensed() if request.judged_only and whole is not None else whole
        return count_lists(self.rows(), request) if counted is None else counted

    def _count_lists(self, request: Request) -> Counted | None:
        """The whole lists, counted block by block; None if that needs the rows as columns."""
        try:
            with name_memory_errors(self._name):
                counting = Counting(request, self._threads)
                if self._read(counting):
                    trend = counting.trend.or_along_ranks(self._rank_trend)
                    return counting.counted().replace(source=self._source, trend=trend, name=self._tag)
        except UnicodeEncodeError:  # an id has a lone surrogate, so it has no UTF-8
            pass
        return None


class _ScoreView:
    """The scores rounded to one type, and their tie groups, whose arrays are filled by blocks."""

    def __init__(self, orders: Sequence[str], dtypes: tuple[str, ...], scores: Floats | None):
        self.orders = orders
        self.dtypes = dtypes  # scores are rounded to these types, one after another
        self.scores = scores  # the judged scores, if this run is one shard of several

    def clear(self, qrels: Qrels, length: Codes, present: NDArray[np.bool_]) -> None:
        """Discard all counts, or begin to count."""
        n_judged, n_queries = len(qrels), len(qrels.queries)
        self.totals = np.zeros(6, np.int64)  # tied rows, neighbours with equal scores, and the four counts of `Trend`
        self.ties = TieGroups(
            qrels=qrels,
            score=np.full(n_judged, np.nan) if self.scores is None else np.array(self.scores),
            start=np.zeros(n_judged, np.int64),
            size=np.zeros(n_judged, np.int64),
            length=length,
            present=present,
            lowest=np.full(n_queries, np.nan),
            lowest_size=np.zeros(n_queries, np.int64),
            before={order: np.zeros(n_judged, np.int64) for order in self.orders},
        )
        filled = self.ties.score, self.ties.start, self.ties.size, self.ties.lowest, self.ties.lowest_size
        before = (self.ties.before.get(order) for order in ("docid-desc", "docid-asc", "given", "rank"))
        self._groups = reader().Groups(*filled, *before)

    def count(self, block: Any, judged: Any, place: Codes, row: Codes, exact: _ScoreView | None) -> tuple[int, ...]:
        """Count a block: what it adds to `totals`.

        `exact` has the tie groups of the original scores, which are copied where rounding does not change them.
        """
        value = block.value
        for dtype in self.dtypes:
            value = project(value, dtype)
        groups = None if exact is None else exact._groups
        found: tuple[int, ...] = block.count(judged, value, place, row, self.scores is None, self._groups, groups)
        return found


@dataclass(eq=False, repr=False)
class _BlockResult:
    """Facts about a block besides its counts; nothing else if it has a problem."""

    problem: Problem | None = None
    queries: tuple[str, ...] = ()  # the first few
    docs: tuple[str, ...] = ()  # the first few
    n_queries: int = 0
    unjudged: list[str] = field(default_factory=list)
    rows: int = 0
    totals: list[tuple[int, ...]] = field(default_factory=list)  # by score view
    has_ranks: bool = True
    fingerprints: Any = None
    inspected: Any = None


class Counting:
    """One pass over a run for some orders and score types, up to its first problem."""

    def __init__(self, request: Request, threads: int):
        qrels, orders, score_dtype, scores = request.qrels, request.orders, request.score_dtype, request.scores
        self.qrels, self.threads, self._score_dtype = qrels, threads, score_dtype
        first = () if score_dtype is None else (score_dtype,)
        for dtype in first:
            project(np.zeros(0), dtype)  # raises if the type is unknown
        self._views = {
            dtype: _ScoreView(orders, first, scores)
            if dtype == "float64"
            else _ScoreView(orders, (*first, dtype), None if scores is None else project(scores, dtype))
            for dtype in request.dtypes
        }
        self._all_views = list(self._views.values())
        if first:  # the original scores, to count the ties that rounding creates
            self._all_views.append(_ScoreView((), (), scores))
        self.needs_ranks = "rank" in orders
        self._limit, self.inspect = request.fingerprint_limit, request.inspect
        self._is_whole = scores is None  # not one shard of several
        self._judged = judgments(qrels)
        self.clear()

    def clear(self) -> None:
        """Discard all counts."""
        self._others = reader().Codes()  # of queries that are not judged, to see whether one appears in two blocks
        self._done: list[_BlockResult] = []
        self.problem: Problem | None = None
        self._row = np.full(len(self.qrels), -1, np.int64)
        self._length = np.zeros(len(self.qrels.queries), np.int64)
        self._present, self._found, self._has_self = np.zeros((3, len(self.qrels.queries)), bool)
        for view in self._all_views:
            view.clear(self.qrels, self._length, self._present)

    def count(self, parts: Iterable[Any], load: Load) -> bool:
        """Count parts that hold whole lists, up to the first problem; True if there was none."""
        for block in self._blocks(parts, load):
            if block.problem is not None:
                self.problem = block.problem
                return False
            self._done.append(block)
            for view, totals in zip(self._all_views, block.totals, strict=True):
                view.totals += totals
        return True

    @property
    def rows(self) -> int:
        """The number of rows."""
        return sum(block.rows for block in self._done)

    @property
    def trend(self) -> Trend:
        """The trend of the scores along the lists."""
        return Trend(*self._all_views[0].totals[2:].tolist())

    def counted(self) -> Counted:
        """The result."""
        done = self._done
        if not all(block.has_ranks for block in done):  # reported last: the run is otherwise correct
            raise InputError(NO_RANKS)
        n_rows, n_queries = self.rows, sum(block.n_queries for block in done)
        tied_rows, equal_neighbours = self._all_views[0].totals[:2].tolist()
        in_shard = None if self._is_whole else self._row >= 0
        unjudged = frozenset(chain.from_iterable(block.unjudged for block in done))
        return Counted(
            {dtype: replace(view.ties, in_shard=in_shard, unjudged=unjudged) for dtype, view in self._views.items()},
            n_rows=n_rows,
            tied_rows=tied_rows,
            equal_share=equal_neighbours / max(n_rows - n_queries, 1),
            new_ties=None if self._score_dtype is None else tied_rows - int(self._all_views[-1].totals[0]),
            found=self._found,
            n_queries=n_queries,
            queries=tuple(islice(chain.from_iterable(block.queries for block in done), EXAMPLES)),
            docs=tuple(islice(chain.from_iterable(block.docs for block in done), EXAMPLES)),
            score_dtype=self._score_dtype,
            fingerprints=np.concatenate([block.fingerprints for block in done]) if self._limit and done else None,
            has_self=self._has_self,
            inspected=() if self.inspect is None else tuple(block.inspected for block in done),
        )

    def _blocks(self, parts: Iterable[Any], load: Load) -> Iterator[_BlockResult]:
        """The results of all parts in order, read by one thread or by several."""
        if self.threads == 1:
            block = reader().Block()
            yield from (self._count_block(block, part, load) for part in parts)
            return
        from concurrent.futures import Future, ThreadPoolExecutor

        free = [reader().Block() for _ in range(self.threads)]  # a thread takes one while it counts

        def count(part: Any) -> _BlockResult:
            if isinstance(part, Exception):
                raise part
            block = free.pop()
            try:
                return self._count_block(block, part, load)
            finally:
                free.append(block)

        pending: deque[Future[_BlockResult]] = deque()
        with ThreadPoolExecutor(self.threads) as pool:
            try:
                for part in _until_error(parts):
                    pending.append(pool.submit(count, part))
                    if len(pending) > 2 * self.threads:
                        yield pending.popleft().result()
                while pending:
                    yield pending.popleft().result()
            finally:  # after a problem or an interrupt
                pool.shutdown(cancel_futures=True)

    def _count_block(self, block: Any, part: Any, load: Load) -> _BlockResult:
        """Read and count one part."""
        try:
            load(block, part)
        except InputError:
            return _BlockResult("unreadable")
        if find_not_utf8(block):
            return _BlockResult("unreadable")
        place = np.empty(block.lists, np.int64)
        block.look_up_queries(self._judged, place)
        if not self._others.claim(block, place, self._present):  # so one thread fills the arrays of a query, once
            return _BlockResult("not contiguous")
        if block.look_up(self._judged, place, self._length, self._row, self._found, self._has_self):
            return _BlockResult("duplicate")
        self._find_other_judged(block, np.flatnonzero(place >= 0), place)
        return _BlockResult(
            queries=tuple(block.query(at).decode() for at in range(min(EXAMPLES, block.lists))),
            docs=tuple(block.doc(row).decode() for row in range(min(EXAMPLES, len(block)))),
            n_queries=block.lists,
            unjudged=[block.query(at).decode() for at in np.flatnonzero(place < 0).tolist()],
            rows=len(block),
            totals=self._count_views(block, place),
            has_ranks=not self.needs_ranks or block.rank is not None,
            fingerprints=block.fingerprints(self._limit) if self._limit else None,
            inspected=None if self.inspect is None else self.inspect(_scores(block)),
        )

    def _find_other_judged(self, block: Any, lists: Codes, place: Codes) -> None:
        """See whether lists without a document of another label have one of label 0."""
        if self.qrels.pool is None:
            return
        documents, offsets = self.qrels.pool
        lists = lists[~self._found[place[lists]]]
        query = place[lists]
        n_judged = offsets[query + 1] - offsets[query]
        rows = ranges(offsets[query], n_judged)
        own = np.concatenate([[0], np.cumsum(n_judged)])
        found = block.lists_with_any(lists, own, *documents.compiled(rows))
        self._found[place[found]] = True

    def _count_views(self, block: Any, place: Codes) -> list[tuple[int, ...]]:
        """Count a block for all score types."""
        views = self._all_views
        original = views[0] if not views[0].dtypes and views[0].scores is None else None
        exact = [None, *(original for _ in views[1:])]
        return [view.count(block, self._judged, place, self._row, one) for view, one in zip(views, exact, strict=True)]


def _scores(block: Any) -> ListScores:
    def docs(rows: Codes) -> list[str]:
        return [block.doc(row).decode() for row in rows.tolist()]

    return ListScores(block.value, block.offsets, lambda at: str(block.query(at), "utf-8"), docs)


def _until_error(parts: Iterable[Any]) -> Iterator[Any]:
    """The parts, and at last the error that ends them, which is raised in its turn: after problems of earlier parts."""
    try:
        yield from parts
    except Exception as error:
        yield error


def judgments(qrels: Qrels) -> Any:
    """The judgments as the compiled reader looks them up."""
    return qrels.derived("reader", lambda: _compile(qrels, qrels.documents, qrels.offsets))


def pool(qrels: Qrels) -> Any | None:
    """All judged documents of the same queries, if the judgments are only some of them."""
    documents = qrels.pool
    return None if documents is None else qrels.derived("reader pool", lambda: _compile(qrels, *documents))


def _compile(qrels: Qrels, documents: Documents, offsets: Codes) -> Any:
    return reader().Judged(list(qrels.queries), np.array(offsets), *documents.compiled())
