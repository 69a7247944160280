"""The text reader in Python and NumPy, for installations without the compiled one. It has the same interface.

A block of lines is split at its blanks as one array of bytes, so that cells do not become Python objects.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import chain, count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tiewise.data.columns import Codes as Ints
from tiewise.data.columns import Floats
from tiewise.io.formats import has_inner_return, is_nonzero

Cells = NDArray[Any]  # (n_rows,): a column of a block, of fixed width or, if an id is long, of bytes objects

MAX_WIDTH = 128  # bytes; a column with longer cells becomes bytes objects: cells of fixed width would waste memory
EMPTY: Ints = np.zeros(0, np.int64)
INNER_RETURN = re.compile(rb"\r[^\S\n]*\S")


class Block:
    """The rows of a block of lines: see `Rows` in src/reader/rows.h."""

    lines: int
    irregular: Ints  # lines that are not plain rows; if there are any, nothing else is set
    line: Ints  # (n_rows,): the index of each row's line
    offsets: Ints  # (n_lists + 1,): a list is a sequence of rows with one query
    value: Floats  # (n_rows,)
    rank: Ints | None
    tag: bytes | None

    def parse(
        self,
        texts: Sequence[bytes],
        columns: int,
        kind: str,
        tabs: bool,
        with_rank: bool,
        with_tag: bool,
        run_tag: bytes,
    ) -> None:
        """Split texts of whole lines. `kind` is "score", "label" or "rank": the number of a row.

        `run_tag` is for the compiled reader: here all lines with more words are irregular.
        """
        self._data = data = b"".join(texts)
        self._text = np.frombuffer(data, np.uint8)
        self._begin = self._end = np.zeros((0, columns), np.int64)
        breaks = np.flatnonzero(self._text == ord("\n"))
        self.lines, self.irregular, self.rank, self.tag = len(breaks), EMPTY, None, None
        number = 4 if columns == 6 else columns - 1
        if not self._split(breaks, columns, tabs):
            self.irregular = self._irregular_lines(columns, number, kind, tabs)
        if not len(self):
            return
        numbers = self.cells(number)
        self.value, irregular = _parse_numbers(numbers, kind)
        self.irregular = self.line[irregular]
        query = self.cells(0)
        heads = np.flatnonzero(np.append(True, query[1:] != query[:-1]))
        self._queries, self.offsets = query[heads], np.append(heads, len(query))
        self._docs = self.cells(1 if columns == 3 or (columns == 4 and kind == "score") else 2)
        if with_rank and kind != "label" and not (columns == 3 and kind == "score"):
            self.rank = _parse_integers(self.cells({6: 3, 4: 2}[columns]) if columns > 3 else numbers)
        if with_tag and columns == 6:
            tag = self.cells(5)
            self.tag = tag[0] if (tag == tag[0]).all() else None

    def __len__(self) -> int:
        return len(self._begin)

    def take_value(self) -> Floats:
        """The number of each row."""
        return self.value

    def query(self, place: int) -> bytes:
        """The query id of a list."""
        return bytes(self._queries[place])

    def doc(self, row: int) -> bytes:
        """The document id of a row."""
        return bytes(self._docs[row])

    def not_utf8_queries(self) -> Ints:
        """The lists with a query id that is not UTF-8."""
        return self.not_utf8(self._queries)

    def not_utf8_docs(self) -> Ints:
        """The rows with a document id that is not UTF-8."""
        return self.not_utf8(self._docs)

    def not_utf8(self, ids: Cells) -> Ints:
        """The rows of a column of ids that are not UTF-8."""
        if _is_utf8(self._data):
            return EMPTY
        return np.array([place for place, id in enumerate(ids.tolist()) if not _is_utf8(id)], np.int64)

    def _split(self, breaks: Ints, columns: int, tabs: bool) -> bool:
        """Find where cells begin and end; False if a line is neither blank nor has exactly these columns."""
        byte = self._text
        # The blanks of bytes.split(): \t \n \v \f \r (9 to 13; a byte below 9 wraps around) and the space.
        blank = (byte == 9) | (byte == 10) | (byte == 13) if tabs else (byte - np.uint8(9) < 5) | (byte == 32)
        blank = np.append(True, blank)
        edges = np.flatnonzero(blank[1:] != blank[:-1])
        if len(edges) % (2 * columns) or b"\0" in self._data or INNER_RETURN.search(self._data):
            return False
        begin, end = edges[0::2].reshape(-1, columns), edges[1::2].reshape(-1, columns)
        first = begin[:, 0]
        line = np.arange(len(begin)) if len(begin) == len(breaks) else np.searchsorted(breaks, first)
        straddling = (first[1:] < breaks[line[:-1]]).any() or (end[:, -1] > breaks[line]).any()
        if straddling or (byte[first] == ord("#")).any():
            return False
        self._begin, self._end, self.line = begin, end, line
        return True

    def _irregular_lines(self, columns: int, number: int, kind: str, tabs: bool) -> Ints:
        """The lines that are not blank and have other columns, a comment, a NUL byte or an irregular number."""
        irregular: list[int] = []
        numbers: dict[int, bytes] = {}
        for place, line in enumerate(self._data.split(b"\n")):
            cells = [cell for cell in line.replace(b"\r", b"\t").split(b"\t") if cell] if tabs else line.split()
            odd = b"\0" in line or has_inner_return(line)
            if cells and (len(cells) != columns or cells[0].startswith(b"#") or odd):
                irregular.append(place)
            elif cells:
                numbers[place] = cells[number]
        _, rows = _parse_numbers(np.array([*numbers.values()], object), kind)
        return np.sort(np.array(irregular + np.array([*numbers], np.int64)[rows].tolist(), np.int64))

    def cells(self, column: int) -> Cells:
        """A column, its cells padded with NUL bytes to a multiple of eight."""
        begin = self._begin[:, column].copy()
        size = self._end[:, column] - begin
        shortest, longest = int(size.min()), int(size.max())
        if longest > MAX_WIDTH:
            each = [self._data[low : low + width] for low, width in zip(begin.tolist(), size.tolist(), strict=True)]
            return np.array(each, object)
        grid = np.zeros((len(begin), -(-longest // 8) * 8), np.uint8)
        for place in range(longest):
            letter = self._text.take(begin + place, mode="clip")
            grid[:, place] = letter if place < shortest else letter * (size > place)
        return grid.view(f"S{grid.shape[1]}")[:, 0]


class Codes:
    """Ids as codes: see `Codes` in src/reader/regroup.h."""

    def __init__(self) -> None:
        self._index: defaultdict[bytes, int] = defaultdict(count().__next__)
        self._ids: Iterable[bytes] = self._index

    def queries(self, block: Block) -> Ints:
        """The codes of a block's queries, (n_lists,)."""
        return self._encode(block._queries.tolist())

    def docs(self, block: Block) -> Cells:
        """The documents of a block, which `join` encodes."""
        return block._docs

    def join(self, parts: Sequence[Cells]) -> Ints:
        """The codes of all documents, by sorting their hashes: faster than a dictionary."""
        if any(part.dtype == object for part in parts):
            return self._encode(chain.from_iterable(part.tolist() for part in parts))
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
        if words.shape[1] > 1 and (ids[code] != cells).any():  # two ids have the same hash
            return self._encode(cells.tolist())
        self._ids = ids.tolist()
        return code

    def ids(self) -> list[str]:
        """The ids in the order of their codes."""
        return b"\n".join(self._ids).decode().split("\n") if self._ids else []

    def _encode(self, ids: Iterable[bytes]) -> Ints:
        return np.fromiter(map(self._index.__getitem__, ids), np.int64)


def _parse_numbers(cells: Cells, kind: str) -> tuple[Floats, NDArray[Any]]:
    """The numbers of a column, a rank as −rank, and the rows whose number is missing or needs a closer look."""
    try:
        numbers = cells.astype(np.float64)
    except ValueError:
        numbers = np.array([_to_float(cell) for cell in cells.tolist()])
    if kind == "rank":
        plain = (numbers >= 1) & (numbers < 2**53) & (numbers == np.floor(numbers))
    elif kind == "label":
        plain = np.isfinite(numbers)
    else:
        plain = ~np.isnan(numbers)
    small = {text for text in set(cells[numbers == 0].tolist()) if is_nonzero(text)}  # such as 1e-400
    if small:
        plain &= np.array([text not in small for text in cells.tolist()])
    # Integers from 2**53 on may have been rounded, an infinity may be 1e400, and Python reads 1_000 as a number.
    unsure = ~(np.abs(numbers) < 2**53) | _has_underscore(cells)
    for row in np.flatnonzero(plain & unsure).tolist():
        text = bytes(cells[row]).lower()
        plain[row] = b"inf" in text if np.isinf(numbers[row]) else not (text.strip(b" +-").isdigit() or b"_" in text)
    return -numbers if kind == "rank" else numbers, np.flatnonzero(~plain)


def _parse_integers(cells: Cells) -> Ints | None:
    """The integers of a column; None if a cell is not an integer."""
    try:
        return None if _has_underscore(cells) else cells.astype(np.int64)
    except (ValueError, OverflowError):
        return None


def _has_underscore(cells: Cells) -> bool:
    return b"_" in (b"".join(cells) if cells.dtype == object else cells.tobytes())


def _to_float(text: bytes) -> float:
    try:
        return float(text)
    except ValueError:
        return np.nan


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True
