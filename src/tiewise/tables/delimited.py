"""TSV and CSV: a header and one line for each row of a table; an empty cell is a value that does not apply."""

from __future__ import annotations

import csv
import io
from typing import Any

from tiewise.tables.model import Table

__all__ = ["render_csv", "render_tsv"]


def render_tsv(table: Table, digits: int | None = None) -> str:
    """The rows as TSV; `digits` after the point, or numbers in full precision.

    >>> render_tsv(Table.of_columns({"a": [0.25], "b": ["tab\\there"]}))
    'a\\tb\\n0.25\\ttab\\\\there\\n'
    """
    return "".join("\t".join(map(_escape, line)) + "\n" for line in _lines(table, digits))


def render_csv(table: Table, digits: int | None = None) -> str:
    """The rows as CSV, in the same way."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(_lines(table, digits))
    return out.getvalue()


def _lines(table: Table, digits: int | None) -> list[list[str]]:
    names = [column.name for column in table.columns]
    return [names, *([_text(value, digits) for value in row] for row in table.rows)]


def _text(value: Any, digits: int | None) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return repr(value) if digits is None else f"{value:.{digits}f}"
    return str(value)


def _escape(text: str) -> str:
    """TSV has no quotes: characters that would end a cell are written as in JSON and MySQL."""
    if not {"\t", "\n", "\r", "\\"} & set(text):
        return text
    return text.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")
