"""Runs in memory as sources of tie groups: `MemoryRun`, the columns of a `Run`, and `DictRun`, the user's dictionary.

Most runs in Python are dictionaries already. The compiled reader looks ids up where Python keeps them: none is coded or
copied.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from tiewise.caching import cached_method
from tiewise.data.columns import positions, split_segments
from tiewise.data.native import native
from tiewise.data.runs import Run, Trend
from tiewise.data.source import Source
from tiewise.io import streaming
from tiewise.io.rankings import as_table, rows_of_columns
from tiewise.io.streaming import Counting, StreamedRun, judgments, pool
from tiewise.ties.counted import ROWS, Counted, CountedLists, Request, RunSource, count_lists
from tiewise.ties.orders import check_orders

#: What a request asks for besides judgments, orders and types, if it asks for nothing else.
PLAIN = (None, False, None, 0, None)


class MemoryRun(StreamedRun):
    """A `Run` as a source of tie groups. It remembers its counts, so several questions share one count.

    >>> from tiewise import Qrels
    >>> qrels = Qrels.from_dict({"q": {"a": 1}})
    >>> counted = MemoryRun(Run.from_dict({"q": {"a": 1.0, "b": 1.0}})).count(qrels, ["docid-desc"])
    >>> counted.ties["float64"].size, counted.tied_rows
    (array([2]), 2)
    """

    def __init__(self, run: Run):
        self._run = run
        self._threads = 1 if len(run) <= streaming.SMALL else streaming.THREADS

    def rows(self) -> Run:
        """The run itself."""
        return self._run

    def _rank_trend(self) -> Trend | None:
        return self._run.rank_trend()

    @property
    def _source(self) -> Source | None:
        return self._run.source

    @property
    def _tag(self) -> str | None:
        return self._run.name

    def _count(self, request: Request) -> Counted:
        is_kept = request.scores is None and request.inspect is None
        return self._count_once(request) if is_kept else self._count_anew(request)

    def _count_anew(self, request: Request) -> Counted:
        counted = count_lists(self._run, request) if native() is None else super()._count(request)
        counted = counted.replace(numbered=self._run.numbered)
        is_known = self._run.complete_lists is not None and request.score_dtype is None
        return self._mark_complete(counted) if is_known else counted

    _count_once = cached_method(_count_anew)

    def _mark_complete(self, counted: Counted) -> Counted:
        """The counts, with the lists that are known to be complete. Rounded scores may tie with what was left out."""
        exact, run = counted.ties["float64"], self._run
        assert run.complete_lists is not None
        places = positions(run.query_index, exact.qrels.queries)
        known = np.append(run.complete_lists, False)[places]  # -1: a query that the run lacks
        return counted.replace(ties={**counted.ties, "float64": replace(exact, complete_lists=known)})

    def _read(self, counting: Counting) -> bool:
        parts = split_segments(self._run.offsets, ROWS)
        return counting.count(parts, lambda block, lists: self._load(block, lists, counting.needs_ranks))

    def _load(self, block: Any, lists: slice, with_ranks: bool) -> None:
        run, offsets = self._run, self._run.offsets[lists.start : lists.stop + 1]
        rows = slice(int(offsets[0]), int(offsets[-1]))
        rank = np.array(run.rank[rows]) if with_ranks and run.rank is not None else None
        ids, places = run.documents.compiled(rows)
        block.read_rows(list(run.queries[lists]), np.array(offsets), ids, places, run.value[rows], rank)


class DictRun(RunSource):
    """A run in the user's dictionary of dictionaries.

    >>> DictRun({"q1": {"d1": 0.5}}).rows()
    <Run: 1 query, 1 row>
    """

    is_constant = False  # the user may change the dictionary

    def __init__(self, table: dict[Any, Any], reader: Any | None = None):
        self._reader = reader  # the compiled one
        # An `OrderedDict` may have another order than the dictionary beneath it, which the compiled reader walks.
        self._table = table if type(table).__iter__ is dict.__iter__ else dict(table)

    def rows(self) -> Run:
        """The same run as columns."""
        rows = rows_of_columns(Run, self._table)
        return Run.from_dict(as_table(Run, self._table)) if rows is None else Run.from_rows(rows)

    def _count(self, request: Request) -> Counted:
        check_orders(request.orders)
        is_plain = request.scores is None and request[3:] == PLAIN and "rank" not in request.orders
        if self._reader is not None and is_plain and rows_of_columns(Run, self._table) is None:
            with suppress(UnicodeEncodeError):  # of an id with a lone surrogate, which has no UTF-8
                judged, all_judged = judgments(request.qrels), pool(request.qrels)
                lists = self._reader.Lists(judged, all_judged, request.dtypes, request.orders)
                if lists.read(self._table):
                    return CountedLists(lists, request)
        return count_lists(self.rows(), request)  # which says what is wrong
