"""Parquet: a table with a column of queries, of documents and of numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tiewise.errors import InputError
from tiewise.tables.optional import need

__all__ = ["ParquetFrame", "parquet_bytes", "unreadable"]


class ParquetFrame:
    """A Parquet file as a data frame. Only columns that are used are read."""

    def __init__(self, data: bytes, name: str):
        self._arrow = need("pyarrow", "Parquet", "arrow")
        parquet = need("pyarrow.parquet", "Parquet", "arrow")
        self._name = name
        try:
            self._file = parquet.ParquetFile(self._arrow.BufferReader(data))
        except self._arrow.ArrowException as error:
            raise InputError(f"{name}: {unreadable(error)}") from None
        self.columns: list[str] = self._file.schema_arrow.names

    def __getitem__(self, column: str) -> Any:
        try:
            return self._file.read(columns=[column]).column(0)
        except (self._arrow.ArrowException, OSError) as error:
            raise InputError(f"{self._name}: {unreadable(error)}") from None


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


def unreadable(error: Exception) -> str:
    """The message about a damaged file, with the first line of Arrow's own."""
    return f"is not readable as Parquet ({str(error).splitlines()[0].rstrip('.')})."
