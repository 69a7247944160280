"""How many scores on a device lie above some values and how many equal them: what tie groups need of a block of scores.

A block of scores is read once, by a kernel (`tiewise.scoring.device_kernels`), or by torch where there is none; nothing
waits for the device until the first number is asked for.
"""

from __future__ import annotations

from functools import cache, cached_property
from typing import Any

import numpy as np

from tiewise.data.columns import Codes, Floats
from tiewise.scoring.arrays import Array, Torch
from tiewise.scoring.judgments import Slots

__all__ = ["Reading", "looked_up", "picked"]


class Reading:
    """What was counted in a block of scores on a device, in a table that comes to main memory when it is asked for.

    Values are scores, (rows, most values a row), of the type of the scores, (rows, documents); a row that has fewer is
    filled up with infinity, which no score reaches. `docs` may have the documents whose scores they are, if ids are
    rows written in so many digits at most; then it is also counted how many that tie stand before them.
    """

    def __init__(self, lib: Torch, scores: Array, values: Array, docs: Array | None = None, digits: int = 1):
        self.lib, self.scores, self._values = lib, scores, values
        self._kernels, self._shape = _kernels(scores.device.type), tuple(values.shape)
        self._ordered = docs is not None and self._kernels is not None
        count = _count if self._kernels is None else self._kernels.count
        found: tuple[Array, Array] = count(lib.xp, scores, values, docs, digits)
        self._arrives, self._chunks = lib.soon(found[0]), found[1]
        if self._ordered:  # nothing more will be asked, and to let go of it takes time that nobody waits for now
            del self._values, self._chunks

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
    def finite(self) -> bool:
        """Whether all scores are finite."""
        return not self._column(2).any()

    @property
    def values(self) -> Floats:
        """The values."""
        return self._table(0).view(np.float64)

    @property
    def above(self) -> Codes:
        """Scores above each value."""
        return self._table(1)

    @property
    def equal(self) -> Codes:
        """Scores that equal it."""
        return self._table(2)

    @property
    def low(self) -> Floats:
        """The lowest score of each row."""
        return self._column(0).view(np.float64)

    @property
    def low_size(self) -> Codes:
        """How often the lowest score occurs."""
        return self._column(1)

    def at(self, places: Codes) -> tuple[Floats, Codes, Codes]:
        """Some of the values, by ascending places in their table, the scores above each, and those that equal it."""
        value, above, equal = self.values.ravel(), self.above.ravel(), self.equal.ravel()
        return (value, above, equal) if len(places) == len(value) else (value[places], above[places], equal[places])

    def ahead(self, places: Codes) -> dict[str, Codes]:
        """By tie-break order, how many that tie with the documents at some places stand before them, where that was
        counted too: for both orders that rows alone decide, if the documents were given."""
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
    lib: Torch, scores: Array, slots: Slots, table: Floats | None, docs: Codes | None = None
) -> tuple[Array, Array | None]:
    """A table of values for the slots, at those of documents that are here their scores, if `docs` says where; and the
    table of these documents, −1 where there is none. Nobody waits for it.
    """
    row, column = slots.row[slots.known], slots.column[slots.known]
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


def picked(lib: Torch, scores: Array, row: Codes, column: Codes) -> Floats:
    """Some of the scores, as float64."""
    return np.asarray(lib.host(scores[lib.integers(row), lib.integers(column)]), dtype=np.float64)


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
    from tiewise.scoring import device_kernels

    return None if device_kernels.triton is None else device_kernels
