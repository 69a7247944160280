"""Parquet: the rows of TSV, with texts as strings and numbers as float64, null where a cell would be empty."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tiewise.columns import need
from tiewise.io.parquet import parquet_bytes
from tiewise.reporting.rows import records, rounded
from tiewise.reporting.sheet import Sheet
from tiewise.reporting.view import Named, View

__all__ = ["draw", "render"]

TEXTS = ("run", "observed", "reference", "measure", "query", "tool", "version", "note")


def render(reports: Sequence[Named], view: View) -> bytes:
    """The rows as a Parquet file."""
    return _file(*records(reports, view), view)


def draw(sheet: Sheet, view: View) -> bytes:
    """The rows of a sheet as a Parquet file."""
    return _file(sheet.columns, sheet.rows(view), view)


def _file(columns: Sequence[str], found: Iterable[dict[str, Any]], view: View) -> bytes:
    arrow = need("pyarrow", "Parquet", "arrow")
    rows = list(found)
    return parquet_bytes(
        {
            name: arrow.array(
                [rounded(row[name], view.digits) for row in rows], arrow.string() if name in TEXTS else arrow.float64()
            )
            for name in columns
        }
    )
