"""`MemoryRun`: a `Run`, whose columns are in memory, as a source of tie groups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tiewise.data.columns import Floats
from tiewise.data.native import native
from tiewise.data.runs import Qrels, Run, Source
from tiewise.io import streaming
from tiewise.io.streaming import Counting, StreamedRun
from tiewise.ties.counted import DTYPES, Counted, count_lists

__all__ = ["MemoryRun"]

ROWS = 1 << 16  # rows that are counted at a time
SMALL = 1 << 18  # so many rows are counted before a second thread could help


class MemoryRun(StreamedRun):
    """A `Run` as a source of tie groups. It remembers its counts, so several questions share one count.

    >>> qrels = Qrels.from_dict({"q": {"a": 1}})
    >>> counted = MemoryRun(Run.from_dict({"q": {"a": 1.0, "b": 1.0}})).count(qrels, ["docid-desc"])
    >>> counted.ties["float64"].size, counted.tied_rows
    (array([2]), 2)
    """

    def __init__(self, run: Run):
        self._run = run
        self._threads = 1 if len(run) <= SMALL else streaming.THREADS
        self._counts: dict[tuple[object, ...], Counted] = {}

    def rows(self) -> Run:
        """The run itself."""
        return self._run

    @property
    def _source(self) -> Source | None:
        return self._run.source

    def _count(
        self,
        qrels: Qrels,
        orders: Sequence[str],
        dtypes: Sequence[str],
        score_dtype: str | None,
        scores: Floats | None,
    ) -> Counted:
        if native() is None:
            return count_lists(self._run, qrels, orders, dtypes, score_dtype, scores)
        return super()._count(qrels, orders, dtypes, score_dtype, scores)

    def _read(self, counting: Counting) -> bool:
        return counting.count(self._parts(), lambda block, lists: self._load(block, lists, counting.needs_ranks))

    def _parts(self) -> Iterator[slice]:
        """Lists in parts of about `ROWS` rows."""
        offsets, first = self._run.offsets, 0
        while first < len(self._run.queries):
            last = max(int(np.searchsorted(offsets, offsets[first] + ROWS, side="right")) - 1, first + 1)
            yield slice(first, min(last, len(self._run.queries)))
            first = last

    def _load(self, block: Any, lists: slice, with_ranks: bool) -> None:
        run, offsets = self._run, self._run.offsets[lists.start : lists.stop + 1]
        rows = slice(int(offsets[0]), int(offsets[-1]))
        rank = np.array(run.rank[rows]) if with_ranks and run.rank is not None else None
        ids, places = run.documents.compiled(rows)
        block.read_rows(list(run.queries[lists]), np.array(offsets), ids, places, run.value[rows], rank)

    def count(
        self,
        qrels: Qrels,
        orders: Sequence[str],
        dtypes: Sequence[str] = DTYPES,
        *,
        score_dtype: str | None = None,
        judged_only: bool = False,
        scores: Floats | None = None,
    ) -> Counted:
        """The tie groups: see `RunSource`."""
        key = id(qrels), tuple(orders), tuple(dtypes), score_dtype, judged_only
        if scores is None and key in self._counts:
            return self._counts[key]
        counted = super().count(qrels, orders, dtypes, score_dtype=score_dtype, judged_only=judged_only, scores=scores)
        if scores is None:
            self._counts[key] = counted  # it holds the qrels, so that their id stays theirs
        return counted
