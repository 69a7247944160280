"""Parquet and Arrow's own files: a table with a column of queries, of documents and of numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tiewise.errors import InputError, TiewiseError
from tiewise.results.optional import need


@contextmanager
def parquet_errors(format: str = "Parquet") -> Iterator[None]:
    """Turn whatever Arrow raises for a missing or damaged file into an `InputError`.

    >>> with parquet_errors():
    ...     raise OSError("Unexpected end of stream.")
    Traceback (most recent call last):
    tiewise.errors.InputError: is not readable as Parquet (Unexpected end of stream).
    """
    try:
        yield
    except (TiewiseError, MemoryError):
        raise
    except FileNotFoundError:
        raise InputError("there is no such file.") from None
    except Exception as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(". :")
        raise InputError(f"is not readable as {format} ({reason}).") from None


class ParquetFrame:
    """A Parquet file as a data frame. Only columns that are used are read."""

    def __init__(self, data: bytes):
        arrow = need("pyarrow", "Parquet", "arrow")
        parquet = need("pyarrow.parquet", "Parquet", "arrow")
        with parquet_errors():
            self._file = parquet.ParquetFile(arrow.BufferReader(data))
            self.columns: list[str] = self._file.schema_arrow.names

    def __getitem__(self, column: str) -> Any:
        with parquet_errors():
            return self._file.read(columns=[column]).column(0)


class ArrowFrame:
    """A file or a stream of Arrow as a data frame."""

    def __init__(self, data: bytes):
        arrow = need("pyarrow", "Arrow", "arrow")
        with parquet_errors("Arrow"):
            source = arrow.BufferReader(data)
            opened = arrow.ipc.open_file(source) if data.startswith(b"ARROW1") else arrow.ipc.open_stream(source)
            self._table = opened.read_all()
        self.columns: list[str] = self._table.column_names

    def __getitem__(self, column: str) -> Any:
        return self._table.column(column)


def parquet_bytes(columns: Mapping[str, Any]) -> bytes:
    """A Parquet file with these columns."""
    arrow = need("pyarrow", "Parquet", "arrow")
    sink = arrow.BufferOutputStream()
    try:
        table = arrow.table(dict(columns))
    except UnicodeEncodeError as error:
        raise InputError(f"{error.object!r} cannot be written as Parquet: it has no UTF-8. Rename it.") from None
    need("pyarrow.parquet", "Parquet", "arrow").write_table(table, sink)
    data: bytes = sink.getvalue().to_pybytes()
    return data
