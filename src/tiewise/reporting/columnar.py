"""Parquet: the rows of TSV, with texts as strings, numbers as numbers, and null where a cell would be empty."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tiewise.columns import need
from tiewise.io.parquet import parquet_bytes
from tiewise.reporting.rows import records, rounded
from tiewise.reporting.sheet import Sheet
from tiewise.reporting.view import Named, View

__all__ = ["draw", "render"]

TEXTS = ("run", "system", "observed", "reference", "measure", "query", "tool", "version", "note")


def render(reports: Sequence[Named], view: View) -> bytes:
    """The rows as a Parquet file."""
    return _file(*records(reports, view), view)


def draw(sheet: Sheet, view: View) -> bytes:
    """The rows of a sheet as a Parquet file."""
    return _file(sheet.columns, sheet.rows(view), view)


def _file(columns: Sequence[str], found: Iterable[dict[str, Any]], view: View) -> bytes:
    arrow = need("pyarrow", "Parquet", "arrow")
    kinds = dict.fromkeys(TEXTS, arrow.string()) | {"depth": arrow.int64(), "pareto": arrow.bool_()}
    rows = list(found)
    return parquet_bytes(
        {
            name: arrow.array([rounded(row[name], view.digits) for row in rows], kinds.get(name, arrow.float64()))
            for name in columns
        }
    )
