"""How many scores lie above some values and how many equal them: what the waist needs of a block of scores.

`read` goes through a block once. On a device that is done by a kernel (`tiewise.scoring.kernels`), or by torch where
there is none; nothing waits for the device until the first number is asked for.
"""

from __future__ import annotations

from functools import cache, cached_property
from typing import Any

import numpy as np

from tiewise.columns import Codes, Floats
from tiewise.scoring.arrays import Array, Library
from tiewise.scoring.judgments import Slots

__all__ = ["Reading", "looked_up", "picked", "read"]

#: From so many values a row on, sorting the row costs less than comparing it with each.
SORT_FROM = 16


def read(lib: Library, scores: Array, values: Array, docs: Array | None = None, digits: int = 1) -> Reading:
    """Count in a block of scores, (rows, documents), for the values of each row, (rows, most values a row).

    Values are scores, of the same type; a row that has fewer is filled up with infinity, which no score reaches. On a
    device, `docs` may have the documents whose scores they are, if ids are rows written in so many digits at most; then
    it is also counted how many that tie stand before them.

    >>> from tiewise.scoring.arrays import Numpy
    >>> reading = read(Numpy(), np.array([[3.0, 1.0, 2.0, 2.0]]), np.array([[1.0, 2.0, np.inf]]))
    >>> reading.above, reading.equal, reading.low, reading.low_size
    (array([[3, 1, 0]]), array([[1, 2, 0]]), array([1.]), array([1]))
    >>> reading.tied(np.array([0, 0]), np.array([1, 0]))
    (array([0, 0, 1]), array([2, 3, 1]))
    """
    if isinstance(scores, np.ndarray):
        return Reading(scores, values)
    return DeviceReading(lib, scores, values, docs, digits)


class Reading:
    """What was counted in a block of scores."""

    finite: bool  # whether all scores are finite; the rest has no meaning if they are not
    values: Floats  # (rows, most): as they were given
    above: Codes  # (rows, most): scores above each value
    equal: Codes  # (rows, most): scores that equal it
    low: Floats  # (rows,): the lowest score
    low_size: Codes  # (rows,): how often it occurs

    def __init__(self, scores: Array, values: Array):
        self.scores, self._values = scores, values
        self._count()

    def _count(self) -> None:
        scores, values = self.scores, self._values
        low, high = scores.min(1), scores.max(1)
        self.finite = bool(np.isfinite(low).all() and np.isfinite(high).all())
        self.values, self.low = values.astype(np.float64), low.astype(np.float64)
        self.above, self.equal = np.zeros(values.shape, np.int64), np.zeros(values.shape, np.int64)
        self.low_size = np.zeros(len(scores), np.int64)
        wanted = np.count_nonzero(np.isfinite(values), axis=1)
        for row, (mine, n) in enumerate(zip(scores, wanted.tolist(), strict=True)):
            self.low_size[row] = np.count_nonzero(mine == low[row])
            if n:
                self.above[row, :n], self.equal[row, :n] = _counts(mine, values[row, :n])

    def at(self, places: Codes) -> tuple[Floats, Codes, Codes]:
        """Some of the values, by ascending places in their table, the scores above each, and those that equal it."""
        value, above, equal = self.values.ravel(), self.above.ravel(), self.equal.ravel()
        return (value, above, equal) if len(places) == len(value) else (value[places], above[places], equal[places])

    def ahead(self, places: Codes) -> dict[str, Codes]:
        """By tie-break order, how many that tie with the documents at some places stand before them, where that was
        counted too."""
        return {}

    def tied(self, row: Codes, column: Codes) -> tuple[Codes, Codes]:
        """Which scores equal some of the values: the number of the question, ascending, and the document."""
        values = self._values[row, column]
        places = [np.flatnonzero(self.scores[at] == one) for at, one in zip(row.tolist(), values, strict=True)]
        lengths = np.array([len(place) for place in places], dtype=np.int64)
        return np.repeat(np.arange(len(places)), lengths), np.concatenate([*places, np.zeros(0, np.int64)])


def _counts(mine: Any, values: Any) -> tuple[Any, Any]:
    """How many of a row's scores lie above each value, and how many equal it."""
    if len(values) >= SORT_FROM:
        ordered = np.sort(mine)
        low, high = (np.searchsorted(ordered, values, side=side) for side in ("left", "right"))
        return len(mine) - high, high - low
    near = mine >= values.min()
    if 8 * np.count_nonzero(near) < len(mine):  # judged documents tend to score well, and then few come near them
        mine = mine[near]
    return [np.count_nonzero(mine > value) for value in values], [np.count_nonzero(mine == value) for value in values]


class DeviceReading(Reading):
    """The same of a block of scores on a device, in one table that comes to main memory when it is first asked for."""

    def __init__(self, lib: Library, scores: Array, values: Array, docs: Array | None, digits: int):
        self.lib, self._kernels, self._shape = lib, _kernels(scores.device.type), tuple(values.shape)
        self._ordered = docs is not None and self._kernels is not None
        self._count_with = docs, digits
        super().__init__(scores, values)

    def _count(self) -> None:
        count = _count if self._kernels is None else self._kernels.count
        found: tuple[Array, Array] = count(self.lib.xp, self.scores, self._values, *self._count_with)
        self._arrives, self._chunks = self.lib.soon(found[0]), found[1]
        if self._ordered:  # nothing more will be asked, and to let go of it takes time that nobody waits for now
            del self._values, self._chunks, self._count_with

    @cached_property
    def _all(self) -> Codes:
        return self._arrives()

    def _table(self, number: int) -> Codes:
        rows, wide = self._shape
        return self._all[number * rows * wide : (number + 1) * rows * wide].reshape(rows, wide)

    def _column(self, number: int) -> Codes:
        rows, wide = self._shape
        begin = (3 * wide + number) * rows
        return self._all[begin : begin + rows]

    @property
    def finite(self) -> bool:  # type: ignore[override]
        """Whether all scores are finite."""
        return not self._column(2).any()

    @property
    def values(self) -> Floats:  # type: ignore[override]
        """The values."""
        return self._table(0).view(np.float64)

    @property
    def above(self) -> Codes:  # type: ignore[override]
        """Scores above each value."""
        return self._table(1)

    @property
    def equal(self) -> Codes:  # type: ignore[override]
        """Scores that equal it."""
        return self._table(2)

    @property
    def low(self) -> Floats:  # type: ignore[override]
        """The lowest score of each row."""
        return self._column(0).view(np.float64)

    @property
    def low_size(self) -> Codes:  # type: ignore[override]
        """How often the lowest score occurs."""
        return self._column(1)

    def ahead(self, places: Codes) -> dict[str, Codes]:
        """Both orders that rows alone decide, if the documents were given."""
        if not self._ordered:
            return {}
        rows, wide = self._shape
        begin, size = (3 * wide + 3) * rows, rows * wide
        every = {"given": self._all[begin : begin + size], "docid-desc": self._all[begin + size :]}
        return every if len(places) == size else {order: one[places] for order, one in every.items()}

    def tied(self, row: Codes, column: Codes) -> tuple[Codes, Codes]:
        """Which scores equal some of the values; how many there are is known."""
        if not len(row):
            return row, row
        many = self.equal[row, column]
        if self._kernels is None:
            same = [self.scores[i] == self._values[i, j] for i, j in zip(row.tolist(), column.tolist(), strict=True)]
            found = [self.lib.xp.nonzero(one) for one in same]
            docs = self.lib.host(self.lib.joined(found))[:, 0]
        else:
            with self.lib.ahead():
                asked = self.lib.integers(np.stack([row, column, np.cumsum(many) - many]))
                found = self._kernels.tied(self.lib.xp, self.scores, self._values, self._chunks, asked, int(many.sum()))
                docs = self.lib.host(found)
        return np.repeat(np.arange(len(row)), many), docs


def looked_up(
    lib: Library, scores: Array, slots: Slots, table: Floats | None, docs: Codes | None = None
) -> tuple[Array, Array | None]:
    """A table of values for the slots, at those of documents that are here their scores, if `docs` says where; and, on
    a device, the table of these documents, −1 where there is none.

    On a device nobody waits for it.
    """
    row, column = slots.row[slots.known], slots.column[slots.known]
    if isinstance(scores, np.ndarray):
        values = np.full(slots.shape, np.inf, scores.dtype) if table is None else table.astype(scores.dtype)
        if docs is not None:
            values[row, column] = scores[row, docs]
        return values, None
    given = None if table is None else lib.cast(lib.here(table), scores.dtype)
    if docs is None:
        return given, None
    places = np.full(slots.shape, -1)
    places[row, column] = docs
    wanted = lib.beside(places)
    if len(row) == places.size:
        return scores.gather(1, wanted), wanted
    found = scores.gather(1, lib.xp.clip(wanted, 0))
    return (found.masked_fill(wanted < 0, np.inf) if given is None else lib.xp.where(wanted < 0, given, found)), wanted


def picked(lib: Library, scores: Array, row: Codes, column: Codes) -> Floats:
    """Some of the scores, as float64."""
    if isinstance(scores, np.ndarray):
        return scores[row, column].astype(np.float64)
    return lib.host(scores[lib.integers(row), lib.integers(column)]).astype(np.float64)


def _count(torch: Any, scores: Array, values: Array, docs: Array | None, digits: int) -> tuple[Array, None]:
    """What the kernels count, by torch alone, but for the order of documents that tie."""
    each = [values[:, place : place + 1] for place in range(values.shape[1])]
    above, equal = [(scores > one).sum(1) for one in each], [(scores == one).sum(1) for one in each]
    low, high = torch.aminmax(scores, dim=1)
    odd = (low * 0 + high * 0 != 0).long()
    tables = [torch.stack(columns, 1).ravel() for columns in (above, equal)]
    ends = [low.double().view(torch.int64), (scores == low[:, None]).sum(1), odd]
    return torch.cat([values.double().view(torch.int64).ravel(), *tables, *ends]), None


@cache
def _kernels(device: str) -> Any:
    """The module with the kernels, None where they do not run."""
    if device != "cuda":
        return None
    from tiewise.scoring import kernels

    return None if kernels.triton is None else kernels
