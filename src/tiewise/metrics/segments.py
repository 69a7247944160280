"""Sums over segments of flat arrays, and segments as blocks of about one width."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tiewise.data.columns import Codes, Floats

#: How many numbers a block may hold.
BLOCK = 1 << 20


def segment_sum(index: Codes, values: NDArray[Any], n: int) -> Floats:
    """The sum of the values of each index, added up one after another so that zeros change nothing.

    Values may have several rows: then the sums of each row are a row.
    """
    if not len(index):  # bincount would give integers
        return np.zeros((*values.shape[:-1], n))
    if values.ndim == 1 or len(values) == 1:
        total = np.bincount(index, weights=values.ravel(), minlength=n)
    else:
        by_row = index + n * np.arange(len(values))[:, None]
        total = np.bincount(by_row.ravel(), weights=values.ravel(), minlength=n * len(values))
    sums: Floats = total.reshape((*values.shape[:-1], n))
    return sums


def safe_divide(amount: Floats, divisor: NDArray[Any]) -> Floats:
    """amount / divisor, 0 where the divisor is 0."""
    divisor = np.asarray(divisor, dtype=np.float64)
    if np.count_nonzero(divisor) == divisor.size:
        return amount / divisor
    return np.divide(amount, divisor, out=np.zeros(np.broadcast(amount, divisor).shape), where=divisor != 0)


def row_sum(values: Floats) -> Floats:
    """The sum of each row of a block, as a column."""
    total: Floats = np.add.reduce(values, axis=1, keepdims=True)
    return total


def padded(lengths: Codes) -> Iterator[tuple[Codes, NDArray[np.bool_]]]:
    """Segments of a flat array as matrices of row numbers, with a mask; segments of like length together."""
    starts = np.cumsum(lengths) - lengths
    held = np.flatnonzero(lengths)
    for some in alike(lengths[held]):
        segments = held[some]
        column = np.arange(int(lengths[segments].max()))
        there = column < lengths[segments][:, None]
        yield starts[segments][:, None] + np.where(there, column, 0), there


def alike(widths: Codes, sizes: Codes | None = None, block: int = BLOCK) -> Iterator[Codes]:
    """Indices in blocks of like width: at most twice the narrowest, and at most so many numbers in a block.

    `sizes` are the numbers that each needs, if not its width; a block has room for the largest in each place.
    """
    order = np.argsort(widths, kind="stable")
    ascending = widths[order]
    low = 0
    while low < len(order):
        width = max(int(ascending[low]), 16) * 2
        most = block // max(width if sizes is None else int(sizes[order[low]]), 1)
        high = low + int(np.searchsorted(ascending[low : low + max(most, 1)], width, side="right"))
        if sizes is not None:
            needed = np.maximum.accumulate(sizes[order[low:high]]) * np.arange(1, high - low + 1)
            high = low + int(np.count_nonzero(needed <= block))
        high = max(high, low + 1)
        yield order[low:high]
        low = high
