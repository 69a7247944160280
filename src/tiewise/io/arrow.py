"""`ArrowRun`: a run that stays in Arrow columns, in memory or in a Parquet file that is read batch by batch.

Ids are looked up where Arrow keeps them: none is copied or becomes a Python object.
Whatever is out of the ordinary (missing values, queries whose rows lie apart, a document that stands twice) is left to
`Run`, which can hold it or say what is wrong with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tiewise.columns import Codes, Floats, installed, need
from tiewise.data import DOC_NAMES, QUERY_NAMES, SCORE_NAMES, Qrels, Run, Source, picked
from tiewise.errors import InputError
from tiewise.io import onepass
from tiewise.io.parquet import brief
from tiewise.io.streams import Reread

__all__ = ["ArrowRun"]

ROWS = 1 << 16  # rows that are read at a time


class ArrowRun(onepass.PassedRun):
    """A run in Arrow columns; `batches(names)` gives these columns anew for every question."""

    def __init__(
        self,
        names: Sequence[str],
        batches: Callable[[list[str]], Iterable[Any]],
        to_run: Callable[[], Run],
        source: Callable[[], Source] | None = None,
    ):
        super().__init__(to_run)
        self._names = [picked(Run, names, known) for known in (QUERY_NAMES, DOC_NAMES, SCORE_NAMES)]
        self._batches, self._source = batches, source

    @classmethod
    def of_table(cls, frame: Any) -> ArrowRun | None:
        """A run in an Arrow table, or in anything that gives one; None if `Run` must read it without Arrow."""
        arrow = installed("pyarrow")
        if arrow is None:
            return None
        names = list(frame.column_names if isinstance(frame, arrow.Table) else getattr(frame, "columns", []))
        if not names or not all(isinstance(name, str) for name in names):
            return None
        chosen = [picked(Run, names, known) for known in (QUERY_NAMES, DOC_NAMES, SCORE_NAMES)]
        try:
            table = (frame if isinstance(frame, arrow.Table) else arrow.table(frame[chosen])).select(chosen)  # no index
        except arrow.ArrowException:  # ids of several types
            return None
        return cls(names, lambda _: table.to_batches(max_chunksize=ROWS), lambda: Run.from_frame(frame))

    @classmethod
    def of_parquet(cls, path: str, to_run: Callable[[], Run]) -> ArrowRun:
        """A run in a Parquet file."""
        parquet, file = need("pyarrow.parquet", "Parquet", "arrow"), Reread(path)

        def batches(names: list[str]) -> Iterator[Any]:
            file.check()
            with parquet.ParquetFile(file.absolute) as opened:
                yield from opened.iter_batches(ROWS, columns=names)
            file.check()

        try:
            names = parquet.read_schema(path).names
        except need("pyarrow", "Parquet", "arrow").ArrowException as error:
            raise InputError(f"is not readable as Parquet ({brief(error)}).") from None
        return cls(names, batches, to_run, lambda: Source(path, file.sha256, "parquet"))

    @property
    def source(self) -> Source | None:
        """The file, if it is one."""
        return self._source() if self._source else None

    def _passed(self, qrels: Qrels, wanted: Mapping[str, Sequence[str]], scores: Floats | None) -> onepass.Pass | None:
        if any("rank" in orders for orders in wanted.values()):
            return None
        done = onepass.Pass(qrels, wanted, scores, self._dtypes, _load, onepass.THREADS)
        try:
            return done if done.count(self._parts()) else None
        except (_UnusualError, OSError):  # an OSError is Arrow's word for a file that is damaged, too
            return None

    def _parts(self) -> Iterator[Any]:
        """The rows as batches of whole lists."""
        arrow = need("pyarrow", "An Arrow table", "arrow")
        held: list[Any] = []
        rest = fresh = 0  # rows of a list that goes on, and rows after them
        for batch in self._batches(self._names):
            held.append(_plain(batch))
            fresh += len(batch)
            if fresh < max(ROWS, rest):
                continue
            whole = _joined(arrow, held)
            cut = _last_list(whole.column(0))
            if cut:
                yield whole.slice(0, cut)
            held, rest, fresh = [whole.slice(cut)], len(whole) - cut, 0
        if held:
            yield _joined(arrow, held)


class _UnusualError(Exception):
    """What is left to `Run`."""


def _plain(batch: Any) -> Any:
    """A batch as ids in text and scores in float64, without missing values."""
    arrow = need("pyarrow", "An Arrow table", "arrow")
    kinds = (arrow.large_string(), arrow.large_string(), arrow.float64())
    columns = []
    for column, kind in zip(batch.columns, kinds, strict=True):
        known = _is_number if kind == arrow.float64() else _is_id
        if column.null_count or not known(arrow.types, column.type):
            raise _UnusualError
        try:
            columns.append(column if column.type == kind else column.cast(kind))
        except arrow.ArrowException:  # an integer that float64 cannot hold
            raise _UnusualError from None
    if any(column.null_count for column in columns) or np.isnan(columns[2].to_numpy()).any():
        raise _UnusualError  # a null may have stood among the values of codes
    return arrow.RecordBatch.from_arrays(columns, ["query", "document", "score"])


def _is_id(types: Any, kind: Any) -> bool:
    kind = kind.value_type if types.is_dictionary(kind) else kind
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_integer(kind))


def _is_number(types: Any, kind: Any) -> bool:
    return bool(types.is_floating(kind) or types.is_integer(kind))


def _last_list(queries: Any) -> int:
    """The row with which the last list of a column of queries begins."""
    compute = need("pyarrow.compute", "An Arrow table", "arrow")
    changes = compute.not_equal(queries[1:], queries[:-1]).to_numpy(zero_copy_only=False)
    found = np.flatnonzero(changes)
    return int(found[-1]) + 1 if len(found) else 0


def _joined(arrow: Any, batches: list[Any]) -> Any:
    """Batches as one."""
    return batches[0] if len(batches) == 1 else arrow.Table.from_batches(batches).combine_chunks().to_batches()[0]


def _load(block: Any, batch: Any) -> None:
    query, doc, score = batch.columns
    block.columns(*_text(query), *_text(doc), score.to_numpy())
    if len(block.garbled_queries()) or len(block.garbled_docs()):
        raise InputError("An id is not UTF-8.")


def _text(column: Any) -> tuple[Codes, Any]:
    """Where the ids of a column end, and their bytes."""
    _, ends, data = column.buffers()
    offsets = np.frombuffer(ends, np.int64)[column.offset : column.offset + len(column) + 1]
    return offsets, np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
