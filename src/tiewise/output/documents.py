"""JSON: one document ``{"runs": [{"name": …, "provenance": …, "notes": …, "measures": …}, …]}``; or a line a row.

A run's object is `Report.to_dict` under its name: with ``-q`` it also has "queries", with ``--tools`` also "tools".
JSON Lines have the rows of TSV, one object each, with the keys of `rows.COLUMNS`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from tiewise.output.rows import TOOL_COLUMNS, records, rounded
from tiewise.output.sheet import Sheet
from tiewise.output.view import Named, View

__all__ = ["draw", "render"]


def render(reports: Sequence[Named], view: View) -> str:
    """The reports as one JSON document, or their rows as JSON Lines."""
    if view.format == "jsonl":
        return _lines(records(reports, view)[1], view)
    return _document({"runs": [_run(one, view) for one in reports]})


def draw(sheet: Sheet, view: View) -> str:
    """A sheet as one JSON document, or its rows as JSON Lines."""
    return _lines(sheet.rows(view), view) if view.format == "jsonl" else _document(sheet.document(view))


def _lines(rows: Iterable[dict[str, Any]], view: View) -> str:
    return "".join(json.dumps(rounded(row, view.digits), ensure_ascii=False) + "\n" for row in rows)


def _document(plain: dict[str, Any]) -> str:
    return json.dumps(plain, indent=2, ensure_ascii=False) + "\n"


def _run(one: Named, view: View) -> dict[str, Any]:
    plain = one.report.to_dict(per_query=view.per_query)
    for part in ("measures", "queries"):
        if part in plain:
            plain[part] = rounded(plain[part], view.digits)
    if not view.summary:
        del plain["measures"]
    if view.tools:
        keys = [name for name in TOOL_COLUMNS if name != "run"]
        table = [{name: getattr(row, name) for name in keys} for row in one.report.oblivious_by_tool()]
        plain["tools"] = rounded(table, view.digits)
    return {"name": one.name, **plain}
