"""A Markdown table, good for a pull request, with the line that reads it and the notes below."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from tiewise.output.grid import BEST, Cell, Grid, grid_of, tool_grid
from tiewise.output.sheet import Sheet
from tiewise.output.view import Named, View
from tiewise.output.wording import notes, reading, safe, tools_title

__all__ = ["draw", "render"]


def render(reports: Sequence[Named], view: View) -> str:
    """The grid of some reports as Markdown."""
    parts = [_table(grid_of(reports, view))]
    if len(reports) == 1:
        parts.append(_escaped(f"{reports[0].name}: {reading(reports[0].report, view)}"))
    for name, report in reports if view.tools else ():
        parts += [f"{_escaped(tools_title(name, report))}:", _table(tool_grid(report, view))]
    return _page(parts, notes(reports, view))


def draw(sheet: Sheet, view: View) -> str:
    """The grid of a sheet as Markdown, below its title."""
    return _page([f"{_escaped(sheet.title)}:", _table(sheet.grid(view))], view.notes)


def _page(parts: Sequence[str], said: Iterable[str]) -> str:
    listed = "\n".join(f"- {_escaped(note)}" for note in said)
    return "\n\n".join(part for part in (*parts, listed) if part) + "\n"


def _table(grid: Grid) -> str:
    lines = ["| " + " | ".join(line) + " |" for line in _lines(grid)]
    return "\n".join(lines) + "".join(f"\n\n{_escaped(line)}" for line in grid.legend)


def _lines(grid: Grid) -> Iterator[list[str]]:
    yield [*map(_escaped, grid.names), *map(_escaped, grid.heads)]
    yield [*(":--" for _ in grid.names), *("--:" for _ in grid.heads)]
    for line in grid.lines:
        yield [*map(_escaped, line.names), *map(_cell, line.cells)]


def _cell(cell: Cell) -> str:
    number = f"**{cell.number}**" if cell.mark == BEST else cell.number
    return f"{number}{_escaped(cell.mark)}{' ' * bool(cell.detail)}{cell.detail}"


def _escaped(text: str) -> str:
    """Text in which nothing is Markdown or HTML.

    >>> print(_escaped("a_b|<i>"))
    a\\_b\\|&lt;i>
    """
    return re.sub(r"([\\`*_{}\[\]|~#])", r"\\\1", safe(text)).replace("&", "&amp;").replace("<", "&lt;")
