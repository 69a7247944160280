"""How many scores lie above some values and how many equal them: what the waist needs of a block of scores.

`count` and `tied` have one implementation each for NumPy and for tensors on a device, so that a faster one can take the
place of either.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tiewise.columns import Codes, Floats
from tiewise.scoring.arrays import Array, Library

__all__ = ["count", "lowest", "picked", "tied"]

#: From so many values a row on, sorting the row costs less than comparing it with each.
SORT_FROM = 16


def count(lib: Library, scores: Array, values: NDArray[Any]) -> tuple[Codes, Codes]:
    """For each row of scores, how many lie above each of its values, and how many equal it; both like `values`.

    `values` is (rows, most values a row), ascending in each row and filled up with infinity, which nothing reaches.

    >>> from tiewise.scoring.arrays import Numpy
    >>> count(Numpy(), np.array([[3.0, 1.0, 2.0, 2.0]]), np.array([[1.0, 2.0, np.inf]]))
    (array([[3, 1, 0]]), array([[1, 2, 0]]))
    """
    if not isinstance(scores, np.ndarray):
        return _count_on_device(lib, scores, values)
    values = values.astype(scores.dtype)  # they are scores, so nothing is rounded, and no row is widened to compare
    above, equal = np.zeros(values.shape, np.int64), np.zeros(values.shape, np.int64)
    wanted = np.count_nonzero(np.isfinite(values), axis=1)
    for row, (mine, n) in enumerate(zip(scores, wanted.tolist(), strict=True)):
        if n < SORT_FROM:
            for place, value in enumerate(values[row, :n]):
                above[row, place] = np.count_nonzero(mine > value)
                equal[row, place] = np.count_nonzero(mine == value)
        else:
            ordered = np.sort(mine)
            low = np.searchsorted(ordered, values[row, :n], side="left")
            high = np.searchsorted(ordered, values[row, :n], side="right")
            above[row, :n], equal[row, :n] = len(mine) - high, high - low
    return above, equal


def tied(lib: Library, scores: Array, row: Codes, value: NDArray[Any]) -> tuple[Codes, Codes]:
    """Where rows of scores equal a value each: which of the questions, and the column; ordered by both.

    >>> from tiewise.scoring.arrays import Numpy
    >>> tied(Numpy(), np.array([[3.0, 1.0, 2.0, 2.0]]), np.array([0, 0]), np.array([2.0, 3.0]))
    (array([0, 0, 1]), array([2, 3, 0]))
    """
    if not isinstance(scores, np.ndarray):
        return _tied_on_device(lib, scores, row, value)
    values = value.astype(scores.dtype)
    places = [np.flatnonzero(scores[at] == one) for at, one in zip(row.tolist(), values, strict=True)]
    lengths = np.array([len(place) for place in places], dtype=np.int64)
    return np.repeat(np.arange(len(places)), lengths), np.concatenate([*places, np.zeros(0, np.int64)])


def lowest(lib: Library, scores: Array) -> tuple[Floats, Codes]:
    """The lowest score of each row, and how often it occurs."""
    low = scores.min(1) if isinstance(scores, np.ndarray) else lib.xp.amin(scores, 1)
    many = (scores == low[:, None]).sum(1)
    if isinstance(scores, np.ndarray):
        return low.astype(np.float64), many
    return lib.host(low).astype(np.float64), lib.host(many)


def picked(lib: Library, scores: Array, row: Codes, column: Codes) -> Floats:
    """Some of the scores, as float64."""
    if isinstance(scores, np.ndarray):
        return scores[row, column].astype(np.float64)
    return lib.host(scores[lib.integers(row), lib.integers(column)]).astype(np.float64)


def _count_on_device(lib: Library, scores: Array, values: NDArray[Any]) -> tuple[Codes, Codes]:
    wanted = _tensor(lib, scores, values)
    above, equal = (lib.zeros(values.shape, lib.dtype("int64")) for _ in range(2))
    for place in range(values.shape[1]):
        one = wanted[:, place : place + 1]
        above[:, place], equal[:, place] = (scores > one).sum(1), (scores == one).sum(1)
    return lib.host(above), lib.host(equal)


def _tied_on_device(lib: Library, scores: Array, row: Codes, value: NDArray[Any]) -> tuple[Codes, Codes]:
    rows, values = lib.integers(row), _tensor(lib, scores, value)
    step = max(len(scores), 1)  # as many questions at a time as the block has rows, so that memory keeps to the block
    found = [
        (at, *lib.where(scores[rows[at : at + step]] == values[at : at + step, None]))
        for at in range(0, len(row), step)
    ]
    question = [lib.host(which) + at for at, which, _ in found]
    return np.concatenate([*question, np.zeros(0, np.int64)]), np.concatenate(
        [*(lib.host(column) for _, _, column in found), np.zeros(0, np.int64)]
    )


def _tensor(lib: Library, scores: Array, values: NDArray[Any]) -> Array:
    return lib.cast(lib.here(values), scores.dtype)
