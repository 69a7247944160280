"""JSON: plain values as one document, or the rows of a table as JSON Lines."""

from __future__ import annotations

import json
from typing import Any

from tiewise.tables.model import Table

__all__ = ["render_json", "render_json_lines", "round_floats"]


def render_json(plain: Any, digits: int | None = None) -> str:
    """Plain values as one indented document."""
    return json.dumps(round_floats(plain, digits), indent=2, ensure_ascii=False) + "\n"


def render_json_lines(table: Table, digits: int | None = None) -> str:
    """Each row as an object on a line of its own; a value that does not apply is null."""
    return "".join(json.dumps(round_floats(row, digits), ensure_ascii=False) + "\n" for row in table.records())


def round_floats(value: Any, digits: int | None) -> Any:
    """All numbers of nested lists and dictionaries rounded to some digits; None leaves them as they are."""
    if digits is None:
        return value
    if isinstance(value, float):
        return round(value, digits)
    if isinstance(value, dict):
        return {key: round_floats(one, digits) for key, one in value.items()}
    return [round_floats(one, digits) for one in value] if isinstance(value, list) else value
