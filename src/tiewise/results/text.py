"""Sections as text for a terminal or a log. A row is one line: numbers are never cut, and only names are folded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from unicodedata import category, east_asian_width

from tiewise.results.model import BEST, OPEN, Cell, Code, Column, Paragraph, Part, Section, Table
from tiewise.results.view import WIDTH
from tiewise.results.wording import LINE_WIDTH, escape_controls

GAP, GROUP_GAP = 2, 3  # blanks between columns, and before a group of columns
NAME_WIDTH = 24  # names are folded if a line is too long, but not below this width

_CODES = {"bold": "1", "dim": "2", "good": "1;32", "warning": "1;33", "bad": "1;31", "code": "36"}
_MARKS = {BEST: "good", OPEN: "warning"}


def render_text(section: Section, width: int = WIDTH, *, colour: bool = False) -> str:
    """A section as lines of text; `width` is that of the terminal."""
    parts: list[Part] = [Paragraph(section.title, "bold"), *section.parts]
    parts += [Paragraph(f"note: {note}", "dim") for note in section.notes]
    painter = _Painter(colour)
    return "".join(f"{line.rstrip()}\n" for part in parts for line in _draw(part, width, painter))


class _Painter:
    """Writes text in a style, if there are colours."""

    def __init__(self, colour: bool):
        self._colour = colour

    def __call__(self, text: str, style: str) -> str:
        return f"\x1b[{_CODES[style]}m{text}\x1b[0m" if self._colour and style and text.strip() else text


def _draw(part: Part, width: int, paint: _Painter) -> Iterator[str]:
    if part == "":
        yield ""
    elif isinstance(part, str):
        yield from _wrap(part, min(width, LINE_WIDTH))
    elif isinstance(part, Paragraph):
        yield from (paint(line, part.style) for line in _wrap(part.text, min(width, LINE_WIDTH)))
    elif isinstance(part, Code):
        for use, code in part.lines.items():
            yield from _wrap(f"for {use}:", min(width, LINE_WIDTH))
            yield f"  {paint(escape_controls(code), 'code')}"
    else:
        yield from (paint(line, "bold") for line in _wrap(part.title, min(width, LINE_WIDTH)))
        yield from _draw_table(part.without_bars(), width, paint)
        for note in part.notes:
            yield from (paint(line, "dim") for line in _wrap(note, min(width, LINE_WIDTH)))


def table_width(table: Table) -> int:
    """How many columns of a terminal a table takes if no name is folded.

    >>> table_width(Table.of_columns({"run": ["bm25"], "value": [0.5]}))
    12
    """
    return max(map(text_width, _draw_table(table.without_bars(), 1 << 20, _Painter(False))), default=0)


def _draw_table(table: Table, width: int, paint: _Painter) -> Iterator[str]:
    columns, rows = table.columns, table.cells()
    heads = [escape_controls(column.title) for column in columns]
    shown = [_align([row[place] for row in rows], column) for place, column in enumerate(columns)]
    widths = [max(map(text_width, (head, *map(str, cells)))) for head, cells in zip(heads, shown, strict=True)]
    _widen_groups(columns, widths)
    _fold_names(columns, widths, width)
    if any(column.group for column in columns):
        yield paint(_group_line(columns, widths), "bold")
    if any(heads):
        headings = _lines([Cell(head) for head in heads], columns, widths, _Painter(False))
        yield from (paint(line, "bold") for line in headings)
    rule = "─" * (sum(widths) + sum(_gap(columns, place) for place in range(1, len(columns))))
    for number in range(len(rows)):
        if number and {number, number - 1} & table.summary:
            yield rule
        yield from _lines([cells[number] for cells in shown], columns, widths, paint)


def _align(cells: Sequence[Cell], column: Column) -> list[Cell]:
    """The cells with escapes; those of numbers with texts and marks of equal width, so that their points align."""
    clean = [
        Cell(escape_controls(cell.text), escape_controls(cell.detail), escape_controls(cell.mark)) for cell in cells
    ]
    if column.align == "left":
        return clean
    text = max((text_width(cell.text) for cell in clean), default=0)
    mark = max((text_width(cell.mark) for cell in clean), default=0)
    detail = max((text_width(cell.detail) for cell in clean), default=0)
    return [Cell(_pad(cell.text, text, "right"), _pad(cell.detail, detail), _pad(cell.mark, mark)) for cell in clean]


def _widen_groups(columns: Sequence[Column], widths: list[int]) -> None:
    """Make the last column of each group so wide that the heading of the group has room."""
    for group, places in groupby(range(len(columns)), key=lambda place: columns[place].group):
        some = list(places)
        used = sum(widths[place] for place in some) + GAP * (len(some) - 1)
        widths[some[-1]] += max(text_width(group) - used, 0)


def _fold_names(columns: Sequence[Column], widths: list[int], width: int) -> None:
    """Make columns of names narrower until the table fits, if it can."""
    for place, column in enumerate(columns):
        if column.width is not None:
            widths[place] = min(widths[place], column.width)
    gaps = sum(_gap(columns, place) for place in range(1, len(columns)))
    names = [place for place, column in enumerate(columns) if column.align == "left"]
    while (excess := sum(widths) + gaps - width) > 0:
        widest = max(names, key=widths.__getitem__, default=None)
        if widest is None or widths[widest] <= NAME_WIDTH:
            return
        widths[widest] = max(widths[widest] - excess, NAME_WIDTH)


def _gap(columns: Sequence[Column], place: int) -> int:
    """The blanks before a column."""
    if not place:
        return 0
    return GROUP_GAP if columns[place].group != columns[place - 1].group else GAP


def _group_line(columns: Sequence[Column], widths: Sequence[int]) -> str:
    line, used, before = "", 0, ""
    for place, column in enumerate(columns):
        used += _gap(columns, place)
        if column.group and column.group != before:
            line += " " * (used - text_width(line)) + escape_controls(column.group)
        used, before = used + widths[place], column.group
    return line


def _lines(cells: Sequence[Cell], columns: Sequence[Column], widths: Sequence[int], paint: _Painter) -> Iterator[str]:
    """The lines of a row: more than one only if a name is folded."""
    folded = [
        list(_wrap(str(cell), widths[place]))
        if columns[place].align == "left" and text_width(str(cell)) > widths[place]
        else [_painted(cell, paint)]
        for place, cell in enumerate(cells)
    ]
    plain = [str(cell) for cell in cells]
    for number in range(max(map(len, folded))):
        line = ""
        for place, column in enumerate(columns):
            text = folded[place][number] if number < len(folded[place]) else ""
            seen = plain[place] if text and len(folded[place]) == 1 else text
            blanks = " " * (widths[place] - text_width(seen))
            line += " " * _gap(columns, place) + (text + blanks if column.align == "left" else blanks + text)
        yield line


def _painted(cell: Cell, paint: _Painter) -> str:
    style = _MARKS.get(cell.mark.strip(), "")
    mark = paint(cell.mark, style or "dim")
    return paint(cell.text, style if cell.is_best else "") + mark + " " * bool(cell.detail) + cell.detail


def _pad(text: str, width: int, align: str = "left") -> str:
    blanks = " " * (width - text_width(text))
    return text + blanks if align == "left" else blanks + text


def _wrap(text: str, width: int) -> Iterator[str]:
    """A paragraph in lines of this width; a word that is longer is folded."""
    line = ""
    for word in escape_controls(text).split():
        while text_width(word) > width:
            room = width - text_width(line) - 1 if line else width
            if room < width // 2:
                yield line
                line, room = "", width
            kept = _prefix(word, room)
            yield f"{line} {kept}" if line else kept
            word, line = word[len(kept) :], ""
        joined = f"{line} {word}" if line else word
        if text_width(joined) > width:
            yield line
            joined = word
        line = joined
    if line:
        yield line


def _prefix(word: str, width: int) -> str:
    """As many letters of a word as fit, at least one; up to the last hyphen of them, if that is in their second half.

    >>> _prefix("sentence-transformers-rerank", 24), _prefix("a-constant", 8)
    ('sentence-transformers-', 'a-consta')
    """
    used = 0
    for place, letter in enumerate(word):
        used += text_width(letter)
        if used > width:
            kept = word[: max(place, 1)]
            hyphen = kept.rfind("-") + 1
            return kept[:hyphen] if 2 * hyphen > len(kept) else kept
    return word


def text_width(text: str) -> int:
    """How many columns of a terminal a text takes.

    >>> text_width("−.363 ±"), text_width("文"), text_width("e\\u0301")
    (7, 2, 1)
    """
    if text.isascii():
        return len(text)
    return sum(
        0 if category(letter) in ("Mn", "Me", "Cf") else 2 if east_asian_width(letter) in ("W", "F") else 1
        for letter in text
    )
