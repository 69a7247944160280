"""The ids of queries and documents: given, or counted ``"0"``, ``"1"``, … in the order of their rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from itertools import repeat
from operator import eq
from typing import Any

import numpy as np

from tiewise.data.columns import Codes, identifiers, positions
from tiewise.data.runs import Table
from tiewise.errors import InputError, counted, listed

__all__ = ["Ids"]

TENS = 10 ** np.arange(19, dtype=np.int64)


class Ids:
    """One id a row.

    >>> Ids(None, 3, "document").names([0, 2])
    ['0', '2']
    """

    def __init__(self, given: Any, n: int, what: str):
        self.n, self.counted = n, given is None
        if given is None:
            return
        listing = given.tolist() if hasattr(given, "tolist") else given
        if isinstance(listing, (str, bytes)) or not isinstance(listing, Iterable):
            raise InputError(f"The {what} ids are a list with one for every row, not {listing!r} alone.")
        self._names: list[str] = identifiers(listing, what)
        if len(self._names) != n:
            said = f"{counted(len(self._names), f'{what} id')} for {counted(n, f'{what} vector')}"
            raise InputError(f"{said}. Give one for every row.")
        if len(set(self._names)) < n:
            seen: set[str] = set()
            twice = [name for name in self._names if name in seen or seen.add(name)]  # type: ignore[func-returns-value]
            said = counted(len(twice), f"{what} id stands", f"{what} ids stand")
            raise InputError(f"{said} more than once: {listed(twice)}. Ids must be distinct.")

    @property
    def digits(self) -> int:
        """How many digits the last row has."""
        return len(str(max(self.n - 1, 1)))

    def names(self, rows: Any) -> list[str]:
        """The ids of some rows."""
        places = rows.tolist() if hasattr(rows, "tolist") else list(rows)
        return [str(row) for row in places] if self.counted else [self._names[row] for row in places]

    def find(self, wanted: Any) -> Codes:
        """The row of each wanted id, −1 if there is none."""
        if self.counted:
            return self._counted(list(wanted))
        return positions(self._index, wanted)

    def find_docs(self, table: Table) -> Codes:
        """The row of each document of a table, −1 if there is none; the table's documents are indexed, not ours."""
        if self.counted or len(table.docs) > self.n:
            return self.find(table.docs)
        code = np.fromiter(map(table.doc_index.get, self._names, repeat(-1)), np.int64, self.n)
        rows = np.full(len(table.docs), -1)
        known = np.flatnonzero(code >= 0)
        rows[code[known]] = known
        return rows

    def keys(self, rows: Codes, places: Codes, names_of: Callable[[], list[str]]) -> tuple[Codes, Codes]:
        """Numbers in the order, by code point, of the ids of some rows, and of others, whose rows are `places`.

        A name that is none of ours has −1 for its row; the names are asked for only if rows do not say enough.
        """
        if self.counted and not (places < 0).any():
            both = self._digits(np.concatenate([rows, places]))
            return both[: len(rows)], both[len(rows) :]
        names = names_of()
        if len(rows) < self.n // 16:
            distinct, inverse = np.unique(rows, return_inverse=True)
        else:  # sorting them would cost more than going through all of ours
            there = np.zeros(self.n, dtype=bool)
            there[rows] = True
            distinct, inverse = np.flatnonzero(there), (np.cumsum(there) - 1)[rows]
        texts = self.names(distinct)
        order = {name: place for place, name in enumerate(sorted({*texts, *names}))}
        return positions(order, texts)[inverse], positions(order, names)

    def _digits(self, rows: Codes) -> Codes:
        """Numbers in the order of rows written in decimal: their digits, then how many there are."""
        digits = _lengths(rows)
        return rows * TENS[self.digits - digits] * (self.digits + 1) + digits

    @cached_property
    def _index(self) -> dict[str, int]:
        return dict(zip(self._names, range(self.n), strict=True))

    def _counted(self, names: list[str]) -> Codes:
        """The rows that counted ids name: "7", but neither "07" nor "+7"."""
        if len(names) <= self.n and all(map(eq, names, map(str, range(self.n)))):  # a name that differs ends it
            return np.arange(len(names))
        digits = "".join(names)
        if digits.isascii() and digits.isdecimal() and max(map(len, names)) < len(TENS):
            rows = np.fromstring(" ".join(names), np.int64, sep=" ")
            # As many digits as the numbers have in all: then each name is what str() makes of its number.
            if len(rows) == len(names) and int(_lengths(rows).sum()) == len(digits):
                return np.where(rows < self.n, rows, -1)
        return np.fromiter(map(self._place, names), np.int64, len(names))

    def _place(self, name: str) -> int:
        row = int(name) if name.isdecimal() and name.isascii() else -1
        return row if 0 <= row < self.n and str(row) == name else -1


def _lengths(rows: Codes) -> Codes:
    """How many digits numbers from 0 on have."""
    return np.maximum(np.searchsorted(TENS, rows, side="right"), 1)
