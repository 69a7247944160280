"""What the lines of a text file hold, and what is said of a line that does not hold it.

Two readers cut lines into columns, one compiled and one in Python. What they share stands here: the layouts, the
columns they give, and the words for every problem, so that an error reads the same whoever found it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import NamedTuple

from tiewise.data.columns import Codes, Floats
from tiewise.errors import InputError

__all__ = ["Columns", "Layout", "Problems", "blocks", "split", "width"]

MOST_PROBLEMS = 10
MOST_COLUMNS = 100  # of a line that is no row; more are not counted


@dataclass(frozen=True)
class Layout:
    """What the columns of a line hold: "query", "document", and the number, a "score", a "label" or a "rank"."""

    format: str
    columns: tuple[str, ...]
    nan_advice: str
    tabs: bool = False  # columns end at tabs only, so that ids may hold spaces

    @cached_property
    def number(self) -> str:
        """The column that holds the number: the rank only where there is nothing better."""
        return next(name for name in ("score", "label", "rank") if name in self.columns)

    def split(self, line: bytes) -> list[bytes]:
        """The columns of one line, without the words after a run's tag, which trec_eval passes over too.

        Where the rank is no whole number, they are kept: an id may hold a blank, and columns stand in wrong places.
        """
        cells, most = split(line, self.tabs), len(self.columns)
        more = self.more and len(cells) > most and re.fullmatch(rb"[-+]?[0-9]+", cells[self.columns.index("rank")])
        return cells[:most] if more else cells

    @property
    def more(self) -> bool:
        """Whether more words may follow the columns."""
        return "tag" in self.columns

    def trimmed(self, line: bytes) -> bytes:
        """A line without words that do not matter; where there are none, or a NUL byte, as it is."""
        if not self.more or b"\0" in line or len(cells := split(line)) <= len(self.columns):
            return line
        return b" ".join(self.split(line)) if len(self.split(line)) < len(cells) else line

    def plainly(self, line: bytes) -> bytes:
        """A row as anybody would write it: one blank between columns, a score or label as Python prints it."""
        cells = self.split(line)
        place = self.columns.index(self.number)
        cells[place] = cells[place].strip() if self.number == "rank" else repr(float(cells[place])).encode()
        return (b"\t" if self.tabs else b" ").join(cells)

    def is_row(self, line: bytes) -> bool:
        """Whether a line is neither blank nor a comment."""
        return bool(line.strip()) and not line.lstrip(b"\t\r" if self.tabs else None).startswith(b"#")


def split(line: bytes, tabs: bool = False) -> list[bytes]:
    """The columns of a line, up to one too many: what is no row may have as many as the file has bytes."""
    found = re.finditer(rb"[^\t\r]+" if tabs else rb"\S+", line)
    return [cell.group() for cell in islice(found, MOST_COLUMNS + 1)]


def width(columns: int) -> str:
    """How many columns there are, in words."""
    return f"over {MOST_COLUMNS} columns" if columns > MOST_COLUMNS else f"{columns} column{'s' * (columns != 1)}"


class Columns(NamedTuple):
    """A file as columns, ids as codes. `line(row)` is the number of a row's line."""

    query: Codes
    queries: list[str]
    doc: Codes
    docs: list[str]
    number: Floats
    rank: Codes | None  # None where the layout has no such column or where a value is no integer
    tag: str | None  # None where the layout has no such column or where the values differ
    line: Callable[[int], int]


def blocks(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Chunks of any size as blocks of whole lines; a last line without a line break gets one."""
    rest: list[bytes] = []
    for chunk in chunks:
        head, found, tail = chunk.rpartition(b"\n")
        if found:
            yield b"".join([*rest, head, found])
            rest = []
        rest.append(tail)
    if any(rest):
        yield b"".join([*rest, b"\n"])


@dataclass
class Problems:
    """What is wrong with a file, each with its line; the tenth ends the reading."""

    layout: Layout
    name: str
    strict: bool = False  # the first one ends it
    found: list[str] = field(default_factory=list)

    def note(self, line: int, problem: str) -> None:
        """Note what is wrong with a line."""
        self.found.append(f"{self.name}:{line}: {problem}")
        if self.strict:
            raise InputError(*self.found)
        if len(self.found) == MOST_PROBLEMS:
            raise InputError(*self.found, f"Reading stopped after {MOST_PROBLEMS} problems.")

    def garbled(self, line: int, what: str, name: bytes) -> None:
        """Note an id that is not UTF-8."""
        self.note(line, f"the {what} id {name!r} is not UTF-8. Convert the file with iconv.")

    def check(self) -> None:
        """Raise if anything is wrong."""
        if self.found:
            raise InputError(*self.found)

    def plain(self, lines: list[bytes], odd: Iterable[int], first: int) -> bytes:
        """A block of lines, of which the odd ones are written plainly, or left blank where they hold no row.

        What is wrong with one is noted; `first` is the number of the block's first line.
        """
        for place in odd:
            line = lines[place]
            wrong = problem(line, self.layout) if self.layout.is_row(line) else ""
            if wrong:
                self.note(first + place, wrong)
            lines[place] = b"" if wrong is not None else self.layout.plainly(line)
        return b"\n".join(lines)


def problem(line: bytes, layout: Layout) -> str | None:
    """What is wrong with a line, if anything is."""
    cells = layout.split(line)
    if b"\0" in line:
        return "a NUL byte. Is this a text file?"
    if len(cells) != len(layout.columns):
        shown = line.strip()[:300].decode(errors="replace")
        shown = shown if len(shown) <= 60 else shown[:60] + "…"
        return f"{width(len(cells))} instead of {len(layout.columns)} ({' '.join(layout.columns)}): {shown!r}"
    advice = _advice(cells[layout.columns.index(layout.number)].decode(errors="replace"), layout)
    if advice is None:
        return None
    text = dict(zip(layout.columns, (cell.decode(errors="replace") for cell in cells), strict=True))
    return (
        f"{layout.number} '{text[layout.number]}' for query '{text['query']}', document '{text['document']}'. {advice}."
    )


def _advice(text: str, layout: Layout) -> str | None:
    """What to do about a number that is none, or None if it is all right."""
    try:
        number = float(text)
    except ValueError:
        if re.fullmatch(r"[-+]?\d+,\d+", text):
            return f"Write a decimal point: {text.replace(',', '.')}"
        if re.fullmatch(r"[-+]?0[xX][0-9a-fA-F.pP+-]+", text):
            return "Write it as a decimal number"
        wrapped = re.fullmatch(r"[\w.]+\((.+)\)", text)  # np.float64(0.5), the repr of NumPy 2
        return f"Write {wrapped[1]} alone" if wrapped else "It is no number"
    if "_" in text or not text.isascii():
        return "Write digits only"
    if layout.number == "rank" and not (1 <= number < 2**53 and number.is_integer()):
        return "The third of three columns is a rank, counted from 1. For scores, write the six columns of TREC"
    if math.isnan(number):
        return layout.nan_advice
    if math.isinf(number) and "inf" not in text.lower():
        return "It is too large for float64; scale the numbers"
    if layout.number != "rank" and re.fullmatch(r"[-+]?\d+", text) and abs(number) >= 2**53 and int(text) != number:
        return f"Beyond 2**53 an integer has no exact float64, so distinct {layout.number}s would be equal; scale them"
    return "A label is finite" if math.isinf(number) and layout.number == "label" else None
