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

__all__ = ["Reading", "picked", "read"]

#: From so many values a row on, sorting the row costs less than comparing it with each.
SORT_FROM = 16

#: Scores of a device that are compared at a time, to find which ones are tied.
AT_ONCE = 2**24


def read(lib: Library, scores: Array, values: Array) -> Reading:
    """Count in a block of scores, (rows, documents), for the values of each row, (rows, most values a row).

    Values are scores, of the same type; a row that has fewer is filled up with infinity, which no score reaches.

    >>> from tiewise.scoring.arrays import Numpy
    >>> reading = read(Numpy(), np.array([[3.0, 1.0, 2.0, 2.0]]), np.array([[1.0, 2.0, np.inf]]))
    >>> reading.above, reading.equal, reading.low, reading.low_size
    (array([[3, 1, 0]]), array([[1, 2, 0]]), array([1.]), array([1]))
    >>> reading.tied(np.array([0, 0]), np.array([1, 0]))
    (array([0, 0, 1]), array([2, 3, 1]))
    """
    return Reading(scores, values) if isinstance(scores, np.ndarray) else DeviceReading(lib, scores, values)


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

    def tied(self, row: Codes, column: Codes) -> tuple[Codes, Codes]:
        """Which scores equal some of the values: the number of the question, and the document; ordered by both."""
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
    """The same of a block of scores on a device, whose chunks are counted one by one."""

    def __init__(self, lib: Library, scores: Array, values: Array):
        self.lib = lib
        super().__init__(scores, values)

    def _count(self) -> None:
        kernels = _kernels(self.scores.device.type)
        found = _chunk_counts if kernels is None else kernels.chunk_counts
        above, self._equal, low, low_size, odd = found(self.lib.xp, self.scores, self._values)
        self._chunk = self.scores.shape[1] if kernels is None else kernels.BLOCK
        self._found = [(odd == 0).all(), self._values, above, self._equal.sum(1), low, low_size]

    @cached_property
    def _host(self) -> list[Floats]:
        return self.lib.hosts(self._found)

    @property
    def finite(self) -> bool:  # type: ignore[override]
        """Whether all scores are finite."""
        return bool(self._host[0])

    @property
    def values(self) -> Floats:  # type: ignore[override]
        """The values."""
        return self._host[1]

    @property
    def low(self) -> Floats:  # type: ignore[override]
        """The lowest score of each row."""
        return self._host[4]

    @cached_property
    def above(self) -> Codes:  # type: ignore[override]
        """Scores above each value."""
        return self._host[2].astype(np.int64)

    @cached_property
    def equal(self) -> Codes:  # type: ignore[override]
        """Scores that equal it."""
        return self._host[3].astype(np.int64)

    @cached_property
    def low_size(self) -> Codes:  # type: ignore[override]
        """How often the lowest score occurs."""
        return self._host[5].astype(np.int64)

    def tied(self, row: Codes, column: Codes) -> tuple[Codes, Codes]:
        """Which scores equal some of the values; only chunks that have any are looked at."""
        lib, n = self.lib, self.scores.shape[1]
        rows, columns = lib.integers(row), lib.integers(column)
        asked, chunk = lib.where(self._equal[rows, :, columns] > 0)
        inside, step = lib.integers(np.arange(self._chunk)), max(AT_ONCE // self._chunk, 1)
        question, doc = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for at in range(0, len(asked), step):
            which = asked[at : at + step]
            places = chunk[at : at + step, None] * self._chunk + inside
            mine, value = rows[which], self._values[rows[which], columns[which]]
            same = self.scores[mine[:, None], places.clamp(max=n - 1)] == value[:, None]
            hit, where = lib.where(same & (places < n))
            question.append(lib.host(which[hit]))
            doc.append(lib.host(places[hit, where]))
        return np.concatenate(question), np.concatenate(doc)


def picked(lib: Library, scores: Array, row: Codes, column: Codes) -> Floats:
    """Some of the scores, as float64."""
    if isinstance(scores, np.ndarray):
        return scores[row, column].astype(np.float64)
    return lib.host(scores[lib.integers(row), lib.integers(column)]).astype(np.float64)


def _chunk_counts(torch: Any, scores: Array, values: Array) -> tuple[Any, ...]:
    """What the kernel counts, by torch alone, with each row as one chunk."""
    each = [values[:, place : place + 1] for place in range(values.shape[1])]
    above = torch.stack([(scores > one).sum(1) for one in each], 1)
    equal = torch.stack([(scores == one).sum(1) for one in each], 1)
    low, high = torch.aminmax(scores, dim=1)
    return above, equal[:, None], low, (scores == low[:, None]).sum(1), low * 0 + high * 0


@cache
def _kernels(device: str) -> Any:
    """The module with the kernels, None where they do not run."""
    if device != "cuda":
        return None
    try:
        from tiewise.scoring import kernels
    except ImportError:
        return None
    return kernels
