"""Tables for a terminal, drawn with rich: numbers are never cut, and ids are plain text, whatever they contain."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence

from rich.box import Box
from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from tiewise.tables.model import BEST, OPEN, Cell, Code, Paragraph, Part, Section, Table
from tiewise.tables.wording import LINE_WIDTH, escape_controls

__all__ = ["render_text"]

GAP = 2  # blanks between columns, one of them from the box
NAME_WIDTH = 24  # names are folded rather than numbers cut, but not below this width
UNLIMITED = 10_000

# A line below the headings, one above a summary, and nothing else.
_RULES = Box("    \n    \n ── \n    \n ── \n ── \n    \n    \n")
_MARKS = {BEST: "bold green", OPEN: "yellow"}
_STYLES = {"good": "bold green", "warning": "bold yellow", "bad": "bold red"}


def render_text(section: Section, width: int | None = None, *, colour: bool = False) -> str:
    """A section as text; `width` is that of the terminal, None for as wide as necessary."""
    width = width or UNLIMITED
    notes = [Paragraph(f"note: {note}", "dim") for note in section.notes]
    parts: list[Part] = [Paragraph(section.title, "bold"), *section.parts, *notes]
    return "".join(_print(drawn, at, colour=colour) for part in parts for drawn, at in _draw(part, width))


def _draw(part: Part, width: int) -> Iterator[tuple[RenderableType, int]]:
    """What to print for a part, each with the width to print it at."""
    if part == "":
        yield Text(""), width
    elif isinstance(part, str):
        yield from _draw(Paragraph(part), width)
    elif isinstance(part, Paragraph):
        text = Text(escape_controls(part.text), style=_STYLES.get(part.style, part.style))
        console = _console(io.StringIO(), width, colour=False)
        for line in text.wrap(console, min(width, LINE_WIDTH)) if part.text else ():
            line.rstrip()
            yield line, width
    elif isinstance(part, Code):
        for use, code in part.lines.items():
            yield from _draw(Paragraph(f"for {use}:"), width)
            yield Text("  ").append(escape_controls(code), style="cyan"), UNLIMITED  # a line of code is never broken
    else:
        yield from _draw(Paragraph(part.title, "bold"), width)
        for place, columns in enumerate(_split(part.without_bars(), width)):
            yield from [(Text(""), width)] if place else []
            yield _rich_table(columns), width
        for note in part.notes:
            yield from _draw(Paragraph(note, "dim"), width)


def _print(drawn: RenderableType, width: int, *, colour: bool) -> str:
    out = io.StringIO()
    _console(out, width, colour=colour).print(drawn, soft_wrap=False)
    return "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines())


def _console(out: io.StringIO, width: int, *, colour: bool) -> Console:
    return Console(
        file=out,
        width=width,
        force_terminal=colour,
        no_color=None if colour else True,
        markup=False,
        highlight=False,
        emoji=False,
        legacy_windows=False,
    )


def _split(table: Table, width: int) -> Iterator[Table]:
    """The table cut between columns of numbers so that each part fits the width; names are repeated in each part."""
    cells = table.cells()
    names = [place for place, column in enumerate(table.columns) if column.align == "left"]
    used = start = sum(min(_longest(table, cells, place), NAME_WIDTH) + GAP for place in names)
    part = list[int]()
    for place, column in enumerate(table.columns):
        if column.align == "left":
            continue
        aligned = _align([row[place] for row in cells])
        wide = max([cell_len(escape_controls(column.title)), *(cell_len(str(cell)) for cell in aligned)]) + GAP
        if part and used + wide - GAP > width:
            yield table.take_columns([*names, *part])
            part, used = [], start
        part.append(place)
        used += wide
    yield table.take_columns([*names, *part])


def _longest(table: Table, cells: Sequence[Sequence[Cell]], place: int) -> int:
    return max(map(cell_len, [table.columns[place].title, *(escape_controls(str(row[place])) for row in cells)]))


def _rich_table(table: Table) -> RichTable:
    drawn = RichTable(box=_RULES, show_edge=False, pad_edge=False, padding=(0, GAP - 1, 0, 0), header_style="bold")
    cells = table.cells()
    for place, column in enumerate(table.columns):
        if column.align == "left":
            shortest = min(_longest(table, cells, place), NAME_WIDTH)
            drawn.add_column(Text(column.title), overflow="fold", min_width=shortest, max_width=column.width)
        else:
            drawn.add_column(Text(escape_controls(column.title)), no_wrap=True)
    columns = [
        _align([row[place] for row in cells]) if column.align == "right" else [row[place] for row in cells]
        for place, column in enumerate(table.columns)
    ]
    for place, row in enumerate(zip(*columns, strict=True)):
        if place in table.summary:  # a rule before it, and one after it
            drawn.add_section()
        drawn.add_row(*map(_styled, row), end_section=place in table.summary)
    return drawn


def _align(cells: Sequence[Cell]) -> list[Cell]:
    """The cells of a column with texts flush right and marks of equal width, so that decimal points stand in line."""
    texts = max((cell_len(cell.text) for cell in cells), default=0)
    marks = max((cell_len(cell.mark) for cell in cells), default=0)
    return [
        Cell(
            " " * (texts - cell_len(cell.text)) + cell.text,
            cell.detail,
            cell.mark + " " * (marks - cell_len(cell.mark)),
        )
        for cell in cells
    ]


def _styled(cell: Cell) -> Text:
    mark = cell.mark.strip()
    text = Text()
    text.append(escape_controls(cell.text), style=_MARKS[BEST] if mark == BEST else "")
    text.append(cell.mark, style=_MARKS.get(mark, "dim"))
    if cell.detail:
        text.append(f" {cell.detail}", style="cyan")
    return text
