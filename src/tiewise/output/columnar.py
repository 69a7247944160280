"""Parquet: the rows of TSV, with texts as strings, numbers as numbers, and null where a cell would be empty."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tiewise.io.parquet import parquet_bytes
from tiewise.output.rows import records, rounded
from tiewise.output.sheet import Sheet
from tiewise.output.view import Named, View
from tiewise.tables.optional import need

__all__ = ["draw", "render"]


def render(reports: Sequence[Named], view: View) -> bytes:
    """The rows as a Parquet file."""
    return _file(*records(reports, view), view)


def draw(sheet: Sheet, view: View) -> bytes:
    """The rows of a sheet as a Parquet file."""
    return _file(sheet.columns, sheet.rows(view), view)


def _file(columns: Sequence[str], found: Iterable[dict[str, Any]], view: View) -> bytes:
    arrow = need("pyarrow", "Parquet", "arrow")
    rows = [rounded(row, view.digits) for row in found]
    return parquet_bytes({name: arrow.array(column := [row[name] for row in rows], _kind(column)) for name in columns})


def _kind(column: Sequence[Any]) -> Any:
    """The type of a column by what it holds: numbers are float64 throughout, unless all are whole."""
    arrow = need("pyarrow", "Parquet", "arrow")
    kinds = {type(value) for value in column if value is not None}
    if kinds and kinds <= {str}:
        return arrow.string()
    return arrow.bool_() if kinds == {bool} else arrow.int64() if kinds == {int} else arrow.float64()
