"""The table for people, drawn with rich: numbers are never cut, and ids are text, whatever they hold."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from rich.box import Box
from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from tiewise.errors import counted
from tiewise.output.grid import BEST, OPEN, Cell, Grid, grid_of, tool_grid
from tiewise.output.sheet import Sheet
from tiewise.output.view import Named, View
from tiewise.output.wording import notes, reading, safe, tools_title

__all__ = ["Drawing", "draw", "render"]

GAP = 2  # blanks between columns, one of them that of the box
WIDEST = 100  # lines of words are not longer than this
LONGEST_NAME = 24  # names are folded rather than numbers cut, but not below this

# A line below the heads, one above a sum, and nothing else.
_RULES = Box("    \n    \n ── \n    \n ── \n ── \n    \n    \n")

_MARKS = {BEST: "bold green", OPEN: "yellow"}


def render(reports: Sequence[Named], view: View) -> str:
    """The table of some reports, what explains it, and what else a reader should know."""
    drawing = Drawing(view.width, colour=view.colour)
    if len(reports) == 1:
        name, report = reports[0]
        drawing.words(f"{name} · {counted(report.provenance.judged_queries, 'query', 'queries')}", "bold")
    drawing.grid(grid_of(reports, view))
    if len(reports) == 1:
        drawing.words(reading(reports[0].report, view))
    for name, report in reports if view.tools else ():
        drawing.gap()
        drawing.words(tools_title(name if len(reports) > 1 else "", report), "bold")
        drawing.grid(tool_grid(report, view))
    drawing.notes(notes(reports, view))
    return drawing.text()


def draw(sheet: Sheet, view: View) -> str:
    """The table of a sheet, below its title."""
    drawing = Drawing(view.width, colour=view.colour)
    drawing.words(sheet.title, "bold")
    drawing.grid(sheet.grid(view))
    drawing.notes(view.notes)
    return drawing.text()


class Drawing:
    """Tables and lines of words, one below the other, as text of a given width."""

    def __init__(self, width: int | None = None, *, colour: bool = False):
        self._width = width or 10_000
        self._parts: list[RenderableType] = []
        self._colour = colour

    def words(self, text: str, style: str = "") -> None:
        """Add a paragraph; an empty one is left out."""
        if text:
            lines = Text(safe(text), style=style).wrap(_console(None, 0, colour=False), min(self._width, WIDEST))
            for line in lines:
                line.rstrip()
            self._parts += lines

    def notes(self, said: Iterable[str]) -> None:
        """Add notes, each a paragraph."""
        for note in said:
            self.words(f"note: {note}", "dim")

    def gap(self) -> None:
        """Add an empty line."""
        self._parts.append(Text(""))

    def grid(self, grid: Grid) -> None:
        """Add a grid, in several parts where it is wider than the text, and its legend."""
        for place, part in enumerate(_parts(grid, self._width)):
            if place:
                self.gap()
            self._parts.append(_table(part))
        for line in grid.legend:
            self.words(line, "dim")

    def table(self, heads: Sequence[str]) -> Table:
        """Add an empty table of texts, and return it to be filled."""
        table = _empty()
        for head in heads:
            table.add_column(Text(head), overflow="fold")
        self._parts.append(table)
        return table

    def text(self) -> str:
        """All of it."""
        out = io.StringIO()
        _console(out, self._width, colour=self._colour).print(Group(*self._parts), soft_wrap=False)
        return "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines())


def _console(out: io.StringIO | None, width: int, *, colour: bool) -> Console:
    return Console(
        file=out or io.StringIO(),
        width=width or None,
        force_terminal=colour,
        no_color=None if colour else True,
        markup=False,
        highlight=False,
        emoji=False,
        legacy_windows=False,
    )


def _parts(grid: Grid, width: int) -> Iterator[Grid]:
    """The grid cut between columns so that each part fits the width, numbers whole."""
    names = sum(min(_longest(grid, place), LONGEST_NAME) + GAP for place in range(len(grid.names)))
    first, used = 0, names
    for place in range(len(grid.heads)):
        cells = [line.cells[place] for line in grid.lines]
        wide = max([cell_len(safe(grid.heads[place])), *(cell_len(str(cell)) for cell in _aligned(cells))]) + GAP
        if place > first and used + wide - GAP > width:
            yield grid.columns(first, place)
            first, used = place, names
        used += wide
    yield grid.columns(first, len(grid.heads))


def _longest(grid: Grid, place: int) -> int:
    return max([cell_len(grid.names[place]), *(cell_len(safe(line.names[place])) for line in grid.lines)])


def _empty() -> Table:
    return Table(box=_RULES, show_edge=False, pad_edge=False, padding=(0, GAP - 1, 0, 0), header_style="bold")


def _table(grid: Grid) -> Table:
    table = _empty()
    for place, name in enumerate(grid.names):
        shortest = min(_longest(grid, place), LONGEST_NAME)
        table.add_column(Text(name), overflow="fold", min_width=shortest)
    for head in grid.heads:
        table.add_column(Text(safe(head)), no_wrap=True)
    columns = [_aligned([line.cells[place] for line in grid.lines]) for place in range(len(grid.heads))]
    for line, *cells in zip(grid.lines, *columns, strict=True):
        if line.summary:  # a rule before it, and one after it
            table.add_section()
        table.add_row(*chain((Text(safe(name)) for name in line.names), map(_styled, cells)), end_section=line.summary)
    return table


def _aligned(cells: Sequence[Cell]) -> list[Cell]:
    """The cells of a column with numbers flush right and marks of equal width, so that points stand in line."""
    numbers = max((cell_len(cell.number) for cell in cells), default=0)
    marks = max((cell_len(cell.mark) for cell in cells), default=0)
    return [
        Cell(
            " " * (numbers - cell_len(cell.number)) + cell.number,
            cell.detail,
            cell.mark + " " * (marks - cell_len(cell.mark)),
        )
        for cell in cells
    ]


def _styled(cell: Cell) -> Text:
    mark = cell.mark.strip()
    text = Text()
    text.append(cell.number, style=_MARKS[BEST] if mark == BEST else "")
    text.append(cell.mark, style=_MARKS.get(mark, "dim"))
    if cell.detail:
        text.append(f" {cell.detail}", style="cyan")
    return text
