"""The section about growth, made from the results of `benchmarks.growth`."""

from __future__ import annotations

from typing import Any

__all__ = ["AXES", "page"]

#: What grows: the field of the size, and its name in the table.
AXES = {"queries": "queries", "documents": "documents", "systems": "systems", "group": "tie group"}

INTRODUCTION = """# Growth

CPU seconds and peak memory of whole processes, with the start of Python: at first for {queries} queries, lists of
{documents} documents, {systems} systems, tie groups of {group} and a fifth as many judgments as documents (`score`: as
many vectors of {dimensions} dimensions), then how many times the seconds, and the memory, if one of them is {factor}
times as large.
"""


def page(result: dict[str, Any]) -> str:
    """The text of the section."""
    head = INTRODUCTION.format(**result["base"], dimensions=result["dimensions"], factor=result["factor"])
    where = (
        f"Measured by `python -m benchmarks.growth` on {result['date']} ({result['machine']}, "
        f"Python {result['python']})."
    )
    return "\n".join([head, where, "", _table(result)])


def _table(result: dict[str, Any]) -> str:
    """A row for each command: its cost at first, then how many times as much it needs."""
    lines = [["command", "at first", *(f"{name} × {result['factor']}" for name in AXES.values())]]
    lines.append(["---"] * len(lines[0]))
    for row in result["commands"]:
        base = row["base"]
        cells = [
            " and ".join(f"{row[axis][key] / base[key]:.1f}" for key in ("cpu", "mb")) if axis in row else "–"
            for axis in AXES
        ]
        lines.append([f"`{row['command']}`", f"{base['cpu']:.2f} s, {base['mb']:,.0f} MB", *cells])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
