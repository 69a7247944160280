"""Some rows of a matrix, as a slice or as indices."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Indices: TypeAlias = NDArray[np.int64]
Rows: TypeAlias = slice | Indices


def length_of(rows: Rows) -> int:
    """How many rows these are."""
    return int(rows.stop - rows.start) if isinstance(rows, slice) else len(rows)


def numbers_of(rows: Rows, places: Any) -> Any:
    """The numbers of the rows at some places among these.

    >>> numbers_of(slice(5, 9), np.array([0, 3])), numbers_of(np.array([4, 2, 7]), np.array([2]))
    (array([5, 8]), array([7]))
    """
    return places + rows.start if isinstance(rows, slice) else rows[places]


def key_of(rows: Rows) -> Hashable:
    """A key for a dictionary."""
    return (rows.start, rows.stop) if isinstance(rows, slice) else rows.tobytes()


def as_slice(indices: Indices) -> Rows:
    """Ascending indices as a slice if they are contiguous, which makes indexing cheaper."""
    if len(indices) and indices[-1] - indices[0] == len(indices) - 1 and (np.diff(indices) == 1).all():
        return slice(int(indices[0]), int(indices[-1]) + 1)
    return indices


def split(rows: Rows, size: int) -> list[Any]:
    """Rows cut into pieces of a size.

    >>> split(slice(2, 7), 3)
    [slice(2, 5, None), slice(5, 7, None)]
    """
    if isinstance(rows, slice):
        return [slice(start, min(start + size, rows.stop)) for start in range(rows.start, rows.stop, size)]
    return [rows[start : start + size] for start in range(0, len(rows), size)]


def round_up(n: int, size: int) -> int:
    """The next multiple of a size.

    >>> round_up(5, 4), round_up(8, 4)
    (8, 8)
    """
    return -(-n // size) * size
