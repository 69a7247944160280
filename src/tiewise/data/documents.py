"""`Documents`: the column of document ids of a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tiewise.caching import cached_property
from tiewise.data.columns import Codes, encode, freeze
from tiewise.data.native import native


class Documents:
    """The document id of each row, as places in a sequence of ids.

    Where the ids of that sequence are not known to be distinct, codes are made when they are first needed: ties are
    counted without them.

    >>> documents = Documents.of_rows(["b", "a", "b"])
    >>> documents.ids(np.array([0, 1])), documents.codes, documents.names
    (['b', 'a'], array([0, 1, 0]), ['b', 'a'])
    """

    def __init__(self, places: NDArray[Any] | None, ids: Sequence[str], *, distinct: bool = True):
        self._places = None if places is None else freeze(places)  # None: there is one id for each row
        self._ids, self._distinct = ids, distinct

    @classmethod
    def of_rows(cls, ids: Sequence[str]) -> Documents:
        """A column with the id of every row."""
        return cls(None, ids, distinct=False)

    def __len__(self) -> int:
        return len(self._ids if self._places is None else self._places)

    def _places_of(self, rows: NDArray[Any] | slice = slice(None)) -> NDArray[Any]:
        """The places of some rows, in a new array."""
        if self._places is None:
            return np.arange(*rows.indices(len(self))) if isinstance(rows, slice) else np.array(rows)
        return self._places[rows].copy() if isinstance(rows, slice) else self._places[rows]

    def __getstate__(self) -> tuple[Codes, Sequence[str]]:
        return self._coded

    def __setstate__(self, state: tuple[Codes, Sequence[str]]) -> None:
        Documents.__init__(self, *state)

    @property
    def codes(self) -> Codes:
        """A number for each row, the same for the same id."""
        return self._coded[0]

    @property
    def names(self) -> Sequence[str]:
        """The distinct ids, in the order of their codes."""
        return self._coded[1]

    @cached_property
    def _coded(self) -> tuple[Codes, Sequence[str]]:
        if self._distinct and self._places is not None:
            return self._places, self._ids
        if hasattr(self._ids, "encode"):  # ids of the compiled reader
            codes, names = self._ids.encode(self._places_of())
        else:
            codes, names = encode(self.ids(np.arange(len(self))), "document")
        return freeze(codes), names

    def ids(self, rows: NDArray[Any]) -> list[str]:
        """The ids of some rows."""
        places = self._places_of(rows)
        if hasattr(self._ids, "take"):
            found: list[str] = self._ids.take(places)
            return found
        return list(map(self._ids.__getitem__, places.tolist()))

    def take(self, rows: NDArray[Any]) -> Documents:
        """The column of some rows."""
        return Documents(self._places_of(rows), self._ids, distinct=self._distinct)

    def known_unique(self, offsets: Codes) -> bool:
        """Whether the compiled reader sees that no list has a document twice; False if that takes codes to find out."""
        check = getattr(self._ids, "has_duplicates", None)
        if check is None:
            return False
        return not check(np.array(offsets), None if self._places is None else self._places_of())

    def compiled(self, rows: slice | Codes = slice(None)) -> tuple[Any, Codes]:
        """The ids for the compiled reader, and the places of some rows among them."""
        places = self._places_of(rows).astype(np.int64, copy=False)
        is_part = 2 * len(places) < len(self._ids)
        if is_part and not self._distinct and isinstance(self._ids, list):
            return _compiled(list(map(self._ids.__getitem__, places.tolist()))), np.arange(len(places))
        return self._compiled_ids, places

    @cached_property
    def _compiled_ids(self) -> Any:
        return self._ids if hasattr(self._ids, "encode") else _compiled(list(self._ids))


class RowNumbers(Sequence[str]):
    """The ids "0", "1", … of rows that have no others; they become text when they are used."""

    def __init__(self, n: int):
        self._rows = range(n)

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, row: Any) -> Any:
        return list(map(str, self._rows[row])) if isinstance(row, slice) else str(self._rows[row])


def _compiled(ids: list[str]) -> Any:
    module = native()
    assert module is not None
    return module.Ids(ids)
