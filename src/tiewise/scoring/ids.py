"""The ids of queries and documents: given, or counted ``"0"``, ``"1"``, … in the order of their rows."""

from __future__ import annotations

from bisect import bisect_left
from functools import cached_property
from itertools import repeat
from typing import Any

import numpy as np

from tiewise.columns import Codes, identifier, positions
from tiewise.data import Table
from tiewise.errors import InputError, listed

__all__ = ["Ids"]


class Ids:
    """One id a row.

    >>> Ids(None, 3, "document").names([0, 2])
    ['0', '2']
    """

    def __init__(self, given: Any, n: int, what: str):
        self.n, self.counted = n, given is None
        if given is None:
            return
        listing = given.tolist() if hasattr(given, "tolist") else list(given)
        self._names: list[str] = [identifier(value, what) for value in listing]
        if len(self._names) != n:
            raise InputError(f"{len(self._names):,} {what} ids for {n:,} {what} vectors. Give one for every row.")
        if len(set(self._names)) < n:
            seen: set[str] = set()
            twice = [name for name in self._names if name in seen or seen.add(name)]  # type: ignore[func-returns-value]
            raise InputError(f"{len(twice)} {what} ids stand more than once: {listed(twice)}. Ids must be distinct.")

    def names(self, rows: Any) -> list[str]:
        """The ids of some rows."""
        places = rows.tolist() if hasattr(rows, "tolist") else list(rows)
        return [str(row) for row in places] if self.counted else [self._names[row] for row in places]

    def find(self, wanted: Any) -> Codes:
        """The row of each wanted id, −1 if there is none."""
        if self.counted:
            return np.fromiter(map(self._place, wanted), np.int64)
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

    @cached_property
    def by_name(self) -> Codes:
        """The place of each row when rows are sorted by id, by code point."""
        place = np.empty(self.n, dtype=np.int64)
        place[self._sorted] = np.arange(self.n)
        return place

    def keys(self, names: list[str], rows: Codes) -> Codes:
        """Where ids stand among ours when sorted: at twice their place, and between two of ours if they are strangers,
        which have −1 for a row."""
        own = 2 * self.by_name[rows] if self.n else np.zeros(len(rows), np.int64)
        for stranger in np.flatnonzero(rows < 0).tolist():
            name = names[stranger]
            own[stranger] = 2 * bisect_left(self._sorted, name, key=lambda row: self.names([row])[0]) - 1
        return own

    @cached_property
    def _sorted(self) -> list[int]:
        return sorted(range(self.n), key=self.names(range(self.n)).__getitem__)

    @cached_property
    def _index(self) -> dict[str, int]:
        return dict(zip(self._names, range(self.n), strict=True))

    def _place(self, name: str) -> int:
        """The row that a counted id names: "7", but neither "07" nor "+7"."""
        row = int(name) if name.isdecimal() and name.isascii() else -1
        return row if 0 <= row < self.n and str(row) == name else -1
