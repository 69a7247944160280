"""`ArrowRun`: a run that stays in Arrow columns, in memory or in a Parquet file that is read batch by batch.

Ids are looked up where Arrow keeps them: they are not copied and do not become Python objects. Unusual input (missing
values, queries whose rows are not contiguous, duplicate documents) is left to `Run`, which reads it or raises an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from tiewise.data.columns import Floats
from tiewise.data.runs import SCORE_NAMES, Run, Trend
from tiewise.data.source import Source
from tiewise.data.table import DOC_NAMES, QUERY_NAMES, RANK_NAMES, find_name, pick_column
from tiewise.errors import InputError
from tiewise.io import streaming
from tiewise.io.compression import Reread
from tiewise.io.parquet import parquet_errors
from tiewise.io.reading import read_run
from tiewise.io.streaming import Counting, StreamedRun
from tiewise.io.text import reader
from tiewise.results.optional import installed, need
from tiewise.ties import counted

NAMES = (QUERY_NAMES, DOC_NAMES, SCORE_NAMES)


class ArrowRun(StreamedRun):
    """A run in Arrow columns; `batches(names)` reads these columns again for every count."""

    def __init__(
        self,
        names: Sequence[str],
        rows: int,
        batches: Callable[[list[str]], Iterable[Any]],
        read: Callable[[], Run],
        file: Reread | None = None,
    ):
        self._has_ranks = find_name(names, RANK_NAMES) is not None
        self._names = [pick_column(Run, names, known) for known in NAMES]
        self._threads = 1 if rows <= streaming.SMALL else streaming.THREADS
        self._batches, self._file, self._read_rows = batches, file, read
        self._name = self._name if file is None else file.path

    @classmethod
    def of_table(cls, frame: Any) -> ArrowRun | None:
        """A run in an Arrow table, or in a data frame that exports one; None if `Run` must read it without Arrow."""
        arrow = installed("pyarrow")
        if arrow is None:
            return None
        names = list(frame.column_names if isinstance(frame, arrow.Table) else getattr(frame, "columns", []))
        if not names or not all(isinstance(name, str) for name in names) or not _has_columns(names):
            return None
        chosen = [pick_column(Run, names, known) for known in NAMES]
        try:
            table = (frame if isinstance(frame, arrow.Table) else arrow.table(frame[chosen])).select(chosen)  # no index
        except (arrow.ArrowException, OverflowError):  # ids of several types, or beyond 64 bits
            return None
        if any(map(arrow.types.is_nested, table.schema.types)):  # a ranking in each row
            return None
        return cls(
            names, len(table), lambda _: table.to_batches(max_chunksize=counted.ROWS), lambda: Run.from_frame(frame)
        )

    @classmethod
    def of_parquet(cls, path: str) -> ArrowRun | None:
        """A run in a Parquet file; None if `Run` must read it."""
        parquet, file = need("pyarrow.parquet", "Parquet", "arrow"), Reread(path)

        def batches(names: list[str]) -> Iterator[Any]:
            file.check()
            with parquet.ParquetFile(file.absolute) as opened:
                yield from opened.iter_batches(counted.ROWS, columns=names)
            file.check()

        with parquet_errors():
            meta = parquet.read_metadata(path)
            names = meta.schema.to_arrow_schema().names
        if not _has_columns(names):
            return None
        return cls(names, meta.num_rows, batches, lambda: read_run(path, format="parquet"), file)

    @property
    def _source(self) -> Source | None:
        file = self._file
        return None if file is None else Source(file.path, lambda: file.sha256, "parquet")

    def rows(self) -> Run:
        """The same run as columns."""
        return self._read_rows()

    def _rank_trend(self) -> Trend | None:
        return self.rows().rank_trend() if self._has_ranks else None

    def _read(self, counting: Counting) -> bool:
        if counting.needs_ranks:
            return False
        try:
            return counting.count(self._parts(), _load)
        except (_UnusualError, OSError, IndexError, need("pyarrow", "An Arrow table", "arrow").ArrowException):
            return False  # unusual, or damaged

    def _parts(self) -> Iterator[list[_Rows]]:
        """The rows as parts of whole lists: each part ends where the query changes."""
        pending: list[_Rows] = []
        n_rows = 0
        for batch in self._batches(self._names):
            if not len(batch):
                continue
            last = _rows(batch)
            pending.append(last)
            n_rows += len(batch)
            cut = last.query.last_list(0, last.last) if n_rows >= counted.ROWS else 0
            if cut:  # otherwise the last list may begin in an earlier batch
                yield [*pending[:-1], last._replace(last=cut)]
                pending, n_rows = [last._replace(first=cut)], last.last - cut
        if pending:
            yield pending


def _has_columns(names: Sequence[str]) -> bool:
    """Whether there are a query, a document and a score in each row."""
    return all(find_name(names, known) is not None for known in NAMES)


class _Rows(NamedTuple):
    """The rows from `first` to before `last` of three columns."""

    query: Any
    doc: Any
    score: Floats
    first: int
    last: int


class _UnusualError(Exception):
    """Unusual input, which is left to `Run`."""


def _rows(batch: Any) -> _Rows:
    """The rows of a batch; its columns are not copied."""
    query, doc, score = batch.columns
    arrow = need("pyarrow", "An Arrow table", "arrow")
    if score.null_count or not (arrow.types.is_floating(score.type) or arrow.types.is_integer(score.type)):
        raise _UnusualError
    try:
        scores = score.cast(arrow.float64()).to_numpy()
    except arrow.ArrowException:  # an integer that float64 cannot hold
        raise _UnusualError from None
    return _Rows(_column(arrow, query), _column(arrow, doc), scores, 0, len(batch))


def _column(arrow: Any, ids: Any) -> Any:
    """A column of ids for the compiled reader."""
    types, codes = arrow.types, None
    if types.is_dictionary(ids.type):
        codes, ids = ids.indices, ids.dictionary
    kind = ids.type
    if ids.null_count or (codes is not None and codes.null_count):
        raise _UnusualError  # the dictionary may contain a null, too
    if types.is_integer(kind):
        ids = ids.cast(arrow.large_string())
    elif not (types.is_string(kind) or types.is_large_string(kind)):
        raise _UnusualError
    _, ends, data = ids.buffers()
    width = np.int64 if types.is_large_string(ids.type) else np.int32
    offsets = np.frombuffer(ends, width, ids.offset + len(ids) + 1)[ids.offset :]
    text = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
    if codes is None:
        return reader().Column(text, offsets, None)
    numbers = codes.to_numpy()
    if not (len(numbers) and numbers.min() >= 0 and numbers.max() < len(ids)):
        raise _UnusualError  # codes without an id, which `Run` reports
    return reader().Column(text, offsets, numbers.astype(np.int32, copy=False))


def _load(block: Any, rows: list[_Rows]) -> None:
    try:
        block.columns(rows)
    except IndexError:
        raise InputError("A column of ids is damaged.") from None
    if len(block.irregular):
        raise InputError("A score is NaN.")
