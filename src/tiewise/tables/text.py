"""Tables for a terminal, drawn with rich: numbers are never cut, and ids are plain text, whatever they contain."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import replace

from rich.box import Box
from rich.cells import cell_len
from rich.console import Console
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
    out = io.StringIO()
    console = Console(
        file=out,
        width=width or UNLIMITED,
        force_terminal=colour,
        no_color=None if colour else True,
        markup=False,
        highlight=False,
        emoji=False,
        legacy_windows=False,
    )
    notes = [Paragraph(f"note: {note}", "dim") for note in section.notes]
    parts: list[Part] = [Paragraph(section.title, "bold"), *section.parts, *notes]
    for part in parts:
        for drawn in _draw(part, console):
            console.print(drawn, soft_wrap=isinstance(drawn, Text))  # text is wrapped already, and code never is
    return "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines())


def _draw(part: Part, console: Console) -> Iterator[Text | RichTable]:
    if part == "":
        yield Text("")
    elif isinstance(part, str):
        yield from _wrap(part, "", console)
    elif isinstance(part, Paragraph):
        yield from _wrap(part.text, part.style, console)
    elif isinstance(part, Code):
        for use, code in part.lines.items():
            yield from _wrap(f"for {use}:", "", console)
            yield Text("  ").append(escape_controls(code), style="cyan")
    else:
        yield from _wrap(part.title, "bold", console)
        for place, table in enumerate(_draw_table(part.without_bars(), console.width)):
            yield from [Text("")] if place else []
            yield table
        for note in part.notes:
            yield from _wrap(note, "dim", console)


def _wrap(text: str, style: str, console: Console) -> Iterator[Text]:
    whole = Text(escape_controls(text), style=_STYLES.get(style, style))
    for line in whole.wrap(console, min(console.width, LINE_WIDTH)) if text else ():
        line.rstrip()
        yield line


def _draw_table(table: Table, width: int) -> Iterator[RichTable]:
    """The table cut between columns of numbers so that each part fits the width; names are repeated in each part."""
    rows = table.cells()
    cells = [[row[place] for row in rows] for place in range(len(table.columns))]
    names = [place for place, column in enumerate(table.columns) if column.align == "left"]
    numbers = [place for place, column in enumerate(table.columns) if column.align == "right"]
    for place in numbers:
        cells[place] = _align(cells[place])
    widths = [
        max(cell_len(escape_controls(text)) for text in (column.title, *map(str, cells[place])))
        for place, column in enumerate(table.columns)
    ]
    room = width - sum(min(widths[place], NAME_WIDTH) + GAP for place in names)
    for part in _split_columns(numbers, [widths[place] + GAP for place in numbers], room + GAP):
        yield _rich_table(table, [*names, *part], cells, widths)


def _split_columns(places: Sequence[int], widths: Sequence[int], room: int) -> list[list[int]]:
    """Columns in as few parts as fit the room, of equal numbers of columns if these fit too.

    >>> _split_columns([1, 2, 3, 4], [8, 8, 8, 4], 24), _split_columns([1, 2, 3], [8, 8, 4], 20)
    ([[1, 2], [3, 4]], [[1, 2, 3]])
    """
    parts, used = [list[int]()], 0
    for place, width in zip(places, widths, strict=True):
        if parts[-1] and used + width > room:
            parts.append([])
            used = 0
        parts[-1].append(place)
        used += width
    size = -(-len(places) // len(parts))
    even = [list(places[start : start + size]) for start in range(0, len(places), size or 1)]
    width_of = dict(zip(places, widths, strict=True))
    return even if even and all(sum(map(width_of.__getitem__, one)) <= room for one in even) else parts


def _rich_table(
    table: Table, places: Sequence[int], cells: Sequence[Sequence[Cell]], widths: Sequence[int]
) -> RichTable:
    drawn = RichTable(box=_RULES, show_edge=False, pad_edge=False, padding=(0, GAP - 1, 0, 0), header_style="bold")
    for place in places:
        column, title = table.columns[place], Text(escape_controls(table.columns[place].title))
        if column.align == "left":
            shortest = min(widths[place], NAME_WIDTH)
            drawn.add_column(title, overflow="fold", min_width=shortest, max_width=column.width)
        else:
            drawn.add_column(title, no_wrap=True)
    for place, row in enumerate(zip(*(cells[place] for place in places), strict=True)):
        if place in table.summary:  # a rule before it, and one after it
            drawn.add_section()
        drawn.add_row(*map(_styled, row), end_section=place in table.summary)
    return drawn


def _align(cells: Sequence[Cell]) -> list[Cell]:
    """The cells of a column with texts flush right and marks of equal width, so that decimal points stand in line."""
    text = max((cell_len(cell.text) for cell in cells), default=0)
    mark = max((cell_len(cell.mark) for cell in cells), default=0)
    return [
        replace(
            cell,
            text=" " * (text - cell_len(cell.text)) + cell.text,
            mark=cell.mark + " " * (mark - cell_len(cell.mark)),
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
