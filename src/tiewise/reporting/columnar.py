"""Parquet: the rows of TSV, with texts as strings and numbers as float64, null where a cell would be empty."""

from __future__ import annotations

from collections.abc import Sequence

from tiewise.columns import need
from tiewise.io.parquet import parquet_bytes
from tiewise.reporting.rows import records, rounded
from tiewise.reporting.view import Named, View

__all__ = ["render"]

TEXTS = ("run", "measure", "query", "tool", "version", "note")


def render(reports: Sequence[Named], view: View) -> bytes:
    """The rows as a Parquet file."""
    arrow = need("pyarrow", "Parquet", "arrow")
    columns, found = records(reports, view)
    rows = list(found)
    return parquet_bytes(
        {
            name: arrow.array(
                [rounded(row[name], view.digits) for row in rows], arrow.string() if name in TEXTS else arrow.float64()
            )
            for name in columns
        }
    )
