"""TSV and CSV: a header and one line for each run, measure and query; the columns are those of `rows.COLUMNS`."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any

from tiewise.output.rows import records
from tiewise.output.sheet import Sheet
from tiewise.output.view import Named, View

__all__ = ["delimited", "draw", "render"]


def render(reports: Sequence[Named], view: View) -> str:
    """The rows as TSV or CSV, numbers in full precision unless digits were asked for."""
    return _text(*records(reports, view), view)


def draw(sheet: Sheet, view: View) -> str:
    """The rows of a sheet in the same way."""
    return _text(sheet.columns, sheet.rows(view), view)


def _text(columns: Sequence[str], rows: Iterable[dict[str, Any]], view: View) -> str:
    lines = [[_cell(row[column], view.digits) for column in columns] for row in rows]
    return delimited(columns, lines, comma=view.format == "csv")


def delimited(columns: Sequence[str], lines: Sequence[Sequence[str]], *, comma: bool = False) -> str:
    """A header and lines of cells as TSV, or as CSV.

    >>> delimited(["a", "b"], [["1", "tab\\there"]])
    'a\\tb\\n1\\ttab\\\\there\\n'
    """
    if comma:
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows([columns, *lines])
        return out.getvalue()
    return "".join("\t".join(map(_escaped, line)) + "\n" for line in [columns, *lines])


def _cell(value: Any, digits: int | None) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return repr(value) if digits is None else f"{value:.{digits}f}"
    return str(value)


def _escaped(text: str) -> str:
    """TSV has no quotes: what would end a cell is written as JSON and MySQL write it."""
    if not {"\t", "\n", "\r", "\\"} & set(text):
        return text
    return text.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")
