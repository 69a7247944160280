"""The section about growth, made from the results of `benchmarks.growth`."""

from __future__ import annotations

from typing import Any

__all__ = ["AXES", "page"]

#: What grows: the field of the size, and its name in the table.
AXES = {"queries": "queries", "documents": "documents", "systems": "systems", "group": "tie group"}

INTRODUCTION = """# Growth

What a command costs if its input grows. At first the input has {queries} queries, lists of {documents} documents,
{systems} systems, tie groups of {group} documents and a fifth as many judgments as documents; `score` has as many
vectors of {dimensions} dimensions. In each further column one of these is {factor} times as large; in brackets, the
cost divided by that of the first column. Whole processes, with the start of Python and all imports.
"""


def page(result: dict[str, Any]) -> str:
    """The text of the section."""
    head = INTRODUCTION.format(**result["base"], dimensions=result["dimensions"], factor=result["factor"])
    tables = [
        f"## {title}\n\n" + _table(result, key, digits)
        for title, key, digits in (("CPU seconds", "cpu", 2), ("Memory in MB", "mb", 0))
    ]
    where = (
        f"Measured by `python -m benchmarks.growth` on {result['date']} ({result['machine']}, "
        f"Python {result['python']})."
    )
    return "\n".join([head, where, "", *tables])


def _table(result: dict[str, Any], key: str, digits: int) -> str:
    """A row for each command; in brackets, the cost divided by that of the first column."""
    lines = [["command", "at first", *(f"{name} × {result['factor']}" for name in AXES.values())]]
    lines.append(["---"] * len(lines[0]))
    for row in result["commands"]:
        base = row["base"][key]
        cells = [f"{row[axis][key]:,.{digits}f} ({row[axis][key] / base:.1f})" if axis in row else "–" for axis in AXES]
        lines.append([f"`{row['command']}`", f"{base:,.{digits}f}", *cells])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
