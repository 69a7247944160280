"""Lines become columns, with NumPy: what reads a text file where the compiled reader is not installed.

A block of whole lines is cut where its blanks are, so a column is gathered as cells of one width and no token becomes
a Python object. If that does not work, comments and blank lines are dropped; if it still does not, the block is checked
line by line, which notes every problem with its line and leaves rows that are plain.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain, count
from operator import itemgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tiewise.data.columns import Codes, Floats
from tiewise.io.layouts import Columns, Layout, Problems, problem

__all__ = ["parse_lines"]

Cells = NDArray[np.bytes_]  # (n_rows,): one column of a block, each cell as wide as the widest

WIDEST = 128  # bytes: longer ids are kept one by one, since cells would all be as wide as the longest
SLICE = 1 << 14  # ids that are turned into text at a time
SKEW = 16  # a block is halved until its cells take at most this many times its own bytes


def parse_lines(blocks: Iterable[bytes], layout: Layout, name: str) -> Columns:
    """The columns of a text file, which comes as blocks of whole lines; `name` is its name in messages.

    >>> layout = Layout("trec", ("query", "iteration", "document", "label"), "Drop the row.")
    >>> found = parse_lines([b"q1 0 d1 1\\nq1 0 d2 0\\n"], layout, "qrels.txt")
    >>> found.queries, found.query, sorted(found.docs), found.number
    (['q1'], array([0, 0]), ['d1', 'd2'], array([1., 0.]))
    """
    reader = _Reader(layout, name)
    for block in blocks:
        reader.add(block)
    return reader.columns()


@dataclass
class _Reader:
    """What has been read so far."""

    layout: Layout
    name: str
    lines: int = 0
    rows: int = 0
    spans: list[tuple[int, Sequence[int]]] = field(default_factory=list)  # a row, and the lines of the rows from it on
    heads: list[bytes] = field(default_factory=list)  # the query of each stretch of rows
    lengths: list[Codes] = field(default_factory=list)  # and how many rows the stretch has
    docs: list[Cells | list[bytes]] = field(default_factory=list)
    numbers: list[Floats] = field(default_factory=list)
    ranks: list[Codes] | None = field(default_factory=list)  # None once one of them was no integer
    tags: set[bytes] = field(default_factory=set)
    problems: Problems = field(init=False)

    def __post_init__(self) -> None:
        self.problems = Problems(self.layout, self.name)

    def add(self, block: bytes) -> None:
        """Read a block of whole lines."""
        breaks = np.flatnonzero(np.frombuffer(block, np.uint8) == ord("\n"))
        longest = int(np.diff(breaks, prepend=-1).max())
        if len(breaks) > 1 and longest * len(breaks) > SKEW * len(block):
            middle = int(breaks[(len(breaks) - 1) // 2]) + 1
            self.add(block[:middle])
            self.add(block[middle:])
            return
        lines: Sequence[int] = range(self.lines + 1, self.lines + 1 + len(breaks))
        self.lines += len(breaks)
        if self._keep(block, lines):
            return
        rows = dict(zip(lines, block.split(b"\n"), strict=False))
        rows = {number: self.layout.trimmed(line) for number, line in rows.items() if self.layout.is_row(line)}
        if self._keep(_joined(rows.values()), list(rows)):
            return
        for number, wrong in [(number, problem(line, self.layout)) for number, line in rows.items()]:
            if wrong:
                self.problems.note(number, wrong)
                del rows[number]
        done = self._keep(_joined(rows.values()), list(rows), checked=True)
        assert done, "rows without problems are plain"

    def _keep(self, block: bytes, lines: Sequence[int], checked: bool = False) -> bool:
        """Keep the rows of a block and say so, or keep none if one is not plain. `checked`: the numbers are."""
        if not lines:
            return True
        cut = _Cut.of(block, self.layout)
        numbers = None if cut is None else _numbers(cut.cells(self.layout.number), self.layout, checked)
        if cut is None or numbers is None:
            return False
        self.spans.append((self.rows, lines))
        self.rows += len(lines)
        query = cut.cells("query")
        heads = np.flatnonzero(np.append(True, query[1:] != query[:-1]))
        self.heads += query[heads].tolist()
        self.lengths.append(np.diff(heads, append=len(query)))
        doc = cut.cells("document")
        self.docs.append(doc if doc.itemsize <= WIDEST else doc.tolist())
        self.numbers.append(numbers)
        if "rank" in self.layout.columns and self.ranks is not None:
            ranks = _integers(cut.cells("rank"))
            if ranks is None:
                self.ranks = None
            else:
                self.ranks.append(ranks)
        if "tag" in self.layout.columns and len(self.tags) < 2:
            tag = cut.cells("tag")
            self.tags |= {tag[0], tag[np.argmax(tag != tag[0])]}
        return True

    def columns(self) -> Columns:
        """All that has been read, or all that was wrong with it."""
        self.problems.check()
        if not self.rows:  # a header and no more
            return Columns(np.zeros(0, np.int64), [], np.zeros(0, np.int64), [], np.zeros(0), None, None, self._line)
        head, queries = _encode_each(self.heads)
        query = np.repeat(head, np.concatenate(self.lengths))
        doc, docs = _encode(self.docs)
        return Columns(
            query,
            self._text(queries, query, "query"),
            doc,
            self._text(docs, doc, "document"),
            np.concatenate(self.numbers),
            np.concatenate(self.ranks) if self.ranks else None,
            next(iter(self.tags)).decode(errors="replace") if len(self.tags) == 1 else None,
            self._line,
        )

    def _line(self, row: int) -> int:
        first, lines = self.spans[bisect_right(self.spans, row, key=itemgetter(0)) - 1]
        return lines[row - first]

    def _text(self, ids: Cells | list[bytes], codes: Codes, what: str) -> list[str]:
        """The ids as text, or an error that names the lines of those that are not UTF-8."""
        texts: list[str] = []
        bad: list[tuple[int, bytes]] = []
        for first in range(0, len(ids), SLICE):
            part = _listing(ids[first : first + SLICE])
            try:
                texts += b"\n".join(part).decode().split("\n")
            except UnicodeDecodeError:
                for code, name in enumerate(part, first):
                    if name.decode(errors="ignore").encode() != name:
                        bad.append((self._line(int(np.argmax(codes == code))), name))
        for line, name in sorted(bad):
            self.problems.garbled(line, what, name)
        self.problems.check()
        return texts


class _Cut(NamedTuple):
    """A block whose lines all have the columns of its layout, and where these are."""

    layout: Layout
    byte: NDArray[np.uint8]
    begin: Codes  # (n_rows, n_columns)
    end: Codes  # (n_rows, n_columns)

    @classmethod
    def of(cls, block: bytes, layout: Layout) -> _Cut | None:
        """The cut of a block, or None if one of its lines is a comment, is blank, or has other columns."""
        byte = np.frombuffer(block, np.uint8)
        # The blanks of bytes.split(): \t \n \v \f \r (9 to 13; what is below 9 wraps around) and the space.
        blank = (byte == 9) | (byte == 10) | (byte == 13) if layout.tabs else (byte - np.uint8(9) < 5) | (byte == 32)
        blank = np.append(True, blank)
        edges = np.flatnonzero(blank[1:] != blank[:-1])
        breaks = np.flatnonzero(byte == 10)
        if len(edges) != 2 * len(layout.columns) * len(breaks) or b"\0" in block:
            return None
        begin, end = edges[0::2].reshape(len(breaks), -1), edges[1::2].reshape(len(breaks), -1)
        straddling = (begin[1:, 0] < breaks[:-1]).any() or (end[:, -1] > breaks).any()
        if straddling or (byte[begin[:, 0]] == ord("#")).any():
            return None
        return cls(layout, byte, begin, end)

    def cells(self, name: str) -> Cells:
        """One column, its cells padded with NUL bytes to a multiple of eight."""
        column = self.layout.columns.index(name)
        begin = self.begin[:, column].copy()
        size = self.end[:, column] - begin
        shortest, longest = int(size.min()), int(size.max())
        wide = -(-longest // 8) * 8
        if longest > len(begin):  # few rows, one of them long
            each = [self.byte[low : low + many].tobytes() for low, many in zip(begin, size, strict=True)]
            return np.array(each, f"S{wide}")
        grid = np.zeros((len(begin), wide), np.uint8)
        for place in range(longest):
            letter = self.byte.take(begin + place, mode="clip")
            grid[:, place] = letter if place < shortest else letter * (size > place)
        return grid.view(f"S{grid.shape[1]}")[:, 0]


def _numbers(cells: Cells, layout: Layout, checked: bool) -> Floats | None:
    """The numbers of a column, or None if one of them is none or needs a closer look."""
    try:
        numbers = cells.astype(np.float64)
    except ValueError:
        return None
    if checked:
        return numbers
    plain = not _underscored(cells)
    plain &= not (np.isfinite(numbers) & (np.abs(numbers) >= 2.0**53)).any()  # an integer may have been rounded
    if layout.number == "score":  # may be infinite if it says so; 1e400 does not
        plain &= all(b"inf" in cell.lower() for cell in cells[~np.isfinite(numbers)].tolist())
    elif layout.number == "label":
        plain &= bool(np.isfinite(numbers).all())
    else:
        plain &= bool(((numbers >= 1) & (numbers < 2**53) & (numbers == np.floor(numbers))).all())
    return numbers if plain else None


def _integers(cells: Cells) -> Codes | None:
    """The integers of a column, or None if one of them is none."""
    try:
        return None if _underscored(cells) else cells.astype(np.int64)
    except (ValueError, OverflowError):
        return None


def _underscored(cells: Cells) -> bool:
    """Whether a cell holds an underscore: Python takes 1_000 for a number, nobody else does."""
    return bool((cells[:, None].view(np.uint8) == ord("_")).any())


def _joined(lines: Iterable[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in lines)


def _encode(parts: Sequence[Cells | list[bytes]]) -> tuple[Codes, Cells | list[bytes]]:
    """Codes for the cells of all blocks, and the ids they stand for: equal cells are found by sorting hashes."""
    if any(isinstance(part, list) for part in parts):
        return _encode_each(chain.from_iterable(map(_listing, parts)))
    cells = np.concatenate(parts)
    words = cells.view(np.uint64).reshape(len(cells), -1)
    hashed = words[:, 0].copy()
    for place in range(1, words.shape[1]):
        hashed ^= hashed >> np.uint64(32)
        hashed *= np.uint64(0x9E3779B97F4A7C15)
        hashed += words[:, place]
    order = np.argsort(hashed)
    ordered = hashed[order]
    first = np.append(True, ordered[1:] != ordered[:-1])
    code = np.empty(len(cells), np.int64)
    code[order] = np.cumsum(first) - 1
    ids = cells[order[first]]
    if words.shape[1] > 1 and (ids[code] != cells).any():  # two ids with one hash
        return _encode_each(_listing(cells))
    return code, ids


def _listing(ids: Cells | list[bytes]) -> list[bytes]:
    return ids if isinstance(ids, list) else ids.tolist()


def _encode_each(ids: Iterable[bytes]) -> tuple[Codes, list[bytes]]:
    index: defaultdict[bytes, int] = defaultdict(count().__next__)
    return np.fromiter(map(index.__getitem__, ids), np.int64), list(index)
