"""Formats for programs: TSV and CSV, JSON Lines, and plain values as one JSON document.

TSV, CSV and JSON Lines have the rows of a table. A value that does not apply is an empty cell, or null.
"""

from __future__ import annotations

import io
from typing import Any

from tiewise.results.model import Table


def render_tsv(table: Table, digits: int | None = None) -> str:
    """The rows as TSV; `digits` after the point, or numbers in full precision.

    >>> render_tsv(Table.of_columns({"a": [0.25], "b": ["tab\\there"]}))
    'a\\tb\\n0.25\\ttab\\\\there\\n'
    """
    # TSV has no quotes: characters that would end a cell are written as in JSON and MySQL
    escapes = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})
    lines = ("\t".join(cell.translate(escapes) for cell in line) for line in _lines(table, digits))
    return "".join(f"{line}\n" for line in lines)


def render_csv(table: Table, digits: int | None = None) -> str:
    """The rows as CSV, in the same way. Text that a spreadsheet would run as a formula gets an apostrophe before it.

    >>> render_csv(Table.of_columns({"id": ["=1+1", "-5"], "value": [-0.25, 1.0]}))
    "id,value\\n'=1+1,-0.25\\n-5,1.0\\n"
    """
    import csv

    out = io.StringIO()
    lines = ([f"'{cell}" if _is_formula(cell) else cell for cell in line] for line in _lines(table, digits))
    csv.writer(out, lineterminator="\n").writerows(lines)
    return out.getvalue()


def _is_formula(cell: str) -> bool:
    """Whether a spreadsheet takes a cell for a formula."""
    if not cell.lstrip().startswith(("=", "@", "+", "-")):
        return False
    try:
        float(cell)
    except ValueError:
        return True
    return False


def render_json_lines(table: Table, digits: int | None = None) -> str:
    """Each row as an object on a line of its own."""
    import json

    return "".join(json.dumps(round_floats(row, digits), ensure_ascii=False) + "\n" for row in table.records())


def render_json(plain: Any) -> str:
    """Plain values as one indented document."""
    import json

    return json.dumps(plain, indent=2, ensure_ascii=False) + "\n"


def round_floats(value: Any, digits: int | None) -> Any:
    """All numbers of nested lists and dictionaries rounded to some digits; None leaves them as they are."""
    if digits is None:
        return value
    if isinstance(value, float):
        return round(value, digits)
    if isinstance(value, dict):
        return {key: round_floats(one, digits) for key, one in value.items()}
    return [round_floats(one, digits) for one in value] if isinstance(value, list) else value


def _lines(table: Table, digits: int | None) -> list[list[str]]:
    names = [column.name for column in table.columns]
    return [names, *([_text(value, digits) for value in row] for row in table.rows)]


def _text(value: Any, digits: int | None) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return repr(value) if digits is None else f"{value:.{digits}f}"
    return str(value)
