"""The ids of queries and documents: given, or ``"0"``, ``"1"``, … in the order of their rows."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence
from operator import eq
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tiewise.data.columns import identifiers, positions
from tiewise.data.table import Table
from tiewise.errors import InputError
from tiewise.results.wording import count_noun, list_examples
from tiewise.scoring.spans import Indices

IdsLike: TypeAlias = Iterable[str | int] | NDArray[Any] | None

POWERS_OF_TEN = 10 ** np.arange(19, dtype=np.int64)


class Ids:
    """The ids of all rows, one per row. Without given ids, the id of a row is its number, and the ids are made up.

    >>> Ids(None, 3, "document").of_rows([0, 2])
    ['0', '2']
    """

    def __init__(self, given: IdsLike, n: int, what: str):
        self.n, self.what = n, what
        self.are_made_up = given is None
        self.are_row_numbers = self.are_made_up or isinstance(given, _RowNumbers)
        self._last_table: tuple[weakref.ref[Table] | None, Indices] = None, np.zeros(0, np.int64)
        if given is None or isinstance(given, _RowNumbers):
            return
        values = given.tolist() if hasattr(given, "tolist") else given
        if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
            raise InputError(f"The {what} ids must be a list with one id per row, not {values!r}.")
        self._ids: list[str] = identifiers(values, what)
        if len(self._ids) != n:
            counts = f"{count_noun(len(self._ids), f'{what} id')} for {count_noun(n, f'{what} vector')}"
            raise InputError(f"{counts}. Give one id per row.")
        self._row_by_id = dict(zip(self._ids, range(n), strict=True))
        if len(self._row_by_id) < n:
            seen: set[str] = set()
            repeated = [one for one in self._ids if one in seen or seen.add(one)]  # type: ignore[func-returns-value]
            occurs = count_noun(len(repeated), f"{what} id occurs", f"{what} ids occur")
            raise InputError(f"{occurs} more than once: {list_examples(repeated)}. Ids must be distinct.")

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_last_table": (None, np.zeros(0, np.int64))}  # weak references cannot be pickled

    @property
    def digits(self) -> int:
        """The number of digits of the last row."""
        return len(str(max(self.n - 1, 1)))

    def of_rows(self, rows: Any) -> list[str]:
        """The ids of some rows."""
        numbers = rows.tolist() if hasattr(rows, "tolist") else list(rows)
        return list(map(str, numbers)) if self.are_row_numbers else [self._ids[row] for row in numbers]

    @property
    def all(self) -> Sequence[str]:
        """The ids of all rows. Row numbers become text only when they are used."""
        return _RowNumbers(self.n) if self.are_row_numbers else self._ids

    def find_rows(self, ids: Any) -> Indices:
        """The row of each id, −1 where there is none."""
        if self.are_row_numbers:
            return self._parse_rows(list(ids))
        return positions(self._row_by_id, ids)

    def find_doc_rows(self, table: Table) -> Indices:
        """The row of each document of a table, −1 where there is none. It is kept for the next call with the table."""
        last, rows = self._last_table
        if last is None or last() is not table:
            rows = self.find_rows(table.docs)
            self._last_table = weakref.ref(table), rows
        return rows

    def sort_keys(
        self, rows: Indices, other_rows: Indices, other_ids: Callable[[], list[str]]
    ) -> tuple[Indices, Indices]:
        """Integers that sort like the ids, by code point, of some rows and of other documents.

        `other_rows` is −1 for a document that is not here. `other_ids` is called only if rows are not enough.
        """
        if self.are_row_numbers and not (other_rows < 0).any():
            keys = self._decimal_keys(np.concatenate([rows, other_rows]))
            return keys[: len(rows)], keys[len(rows) :]
        others = other_ids()
        if len(rows) < self.n // 16:
            distinct, inverse = np.unique(rows, return_inverse=True)
        else:  # a pass over all rows costs less than sorting these
            selected = np.zeros(self.n, dtype=bool)
            selected[rows] = True
            distinct, inverse = np.flatnonzero(selected), (np.cumsum(selected) - 1)[rows]
        ids = self.of_rows(distinct)
        order = {one: position for position, one in enumerate(sorted({*ids, *others}))}
        return positions(order, ids)[inverse], positions(order, others)

    def _decimal_keys(self, rows: Indices) -> Indices:
        """Integers that sort like the rows in decimal notation: by their digits, then by the number of digits."""
        lengths = _decimal_lengths(rows)
        return rows * POWERS_OF_TEN[self.digits - lengths] * (self.digits + 1) + lengths

    def _parse_rows(self, ids: list[str]) -> Indices:
        """The rows whose numbers are given: "7", but neither "07" nor "+7"."""
        if len(ids) <= self.n and all(map(eq, ids, map(str, range(self.n)))):  # stops at the first difference
            return np.arange(len(ids))
        digits = "".join(ids)
        if digits.isascii() and digits.isdecimal() and max(map(len, ids)) < len(POWERS_OF_TEN):
            rows = np.fromstring(" ".join(ids), np.int64, sep=" ")
            # If all numbers together have as many digits as the text, each id is what str() makes of its number.
            if len(rows) == len(ids) and int(_decimal_lengths(rows).sum()) == len(digits):
                return np.where(rows < self.n, rows, -1)
        return np.fromiter(map(self._parse_row, ids), np.int64, len(ids))

    def _parse_row(self, text: str) -> int:
        row = int(text) if text.isdecimal() and text.isascii() else -1
        return row if 0 <= row < self.n and str(row) == text else -1


def _decimal_lengths(rows: Indices) -> Indices:
    """The number of digits of non-negative integers."""
    return np.maximum(np.searchsorted(POWERS_OF_TEN, rows, side="right"), 1)


class _RowNumbers(Sequence[str]):
    """The texts "0", "1", … of row numbers."""

    def __init__(self, n: int):
        self._rows = range(n)

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, row: Any) -> Any:
        return list(map(str, self._rows[row])) if isinstance(row, slice) else str(self._rows[row])
