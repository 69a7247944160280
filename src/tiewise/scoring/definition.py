"""Sums over the dimensions of pairs of vectors, as the definition of a score prescribes.

S(x, y) = Σ_k float64(x_k)·float64(y_k): each product is rounded to float64, which is exact for operands up to float32,
and the products are added in float64 in the order k = 0, 1, 2, …, starting from +0.0 (theory.md, Eq. 27). A matrix
product of BLAS does not promise any order, so its last bits can depend on the CPU, on the number of threads, and on the
position of a row in the matrix. These sums depend on the two vectors alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tiewise.data.columns import Floats
from tiewise.scoring.backends import Indices
from tiewise.scoring.kernels import compiled_kernels, thread_count

__all__ = ["dot_sums", "squared_distances", "squared_norms"]

#: How many numbers NumPy multiplies at a time.
CHUNK = 2**20

Vectors = NDArray[Any]  # (n_rows, dims), float32 or float64


def dot_sums(x: Vectors, y: Vectors, i: Indices, j: Indices) -> Floats:
    """S(x[i], y[j]) for pairs of rows.

    >>> x = np.float32([[1.0, 2.0], [0.5, -1.0]])
    >>> dot_sums(x, x, np.array([0, 0]), np.array([0, 1]))
    array([ 5. , -1.5])
    """
    return _sum_pairs(x, y, i, j, squared=False)


def squared_distances(x: Vectors, y: Vectors, i: Indices, j: Indices) -> Floats:
    """Σ_k (float64(x_k) − float64(y_k))² for pairs of rows, added in the same order."""
    return _sum_pairs(x, y, i, j, squared=True)


def squared_norms(x: Vectors) -> Floats:
    """S(x, x) for every row.

    >>> squared_norms(np.float32([[3.0, 4.0]]))
    array([25.])
    """
    rows = np.arange(len(x))
    return _sum_pairs(x, x, rows, rows, squared=False)


def _sum_pairs(x: Vectors, y: Vectors, i: Indices, j: Indices, *, squared: bool) -> Floats:
    out = np.zeros(len(i))
    kernels = compiled_kernels()
    if kernels is not None and len(i):
        same_type = x.dtype == y.dtype
        x, y = (np.ascontiguousarray(side, side.dtype if same_type else np.float64) for side in (x, y))
        i, j = np.ascontiguousarray(i), np.ascontiguousarray(j)
        kernels.sum_pairs(x, y, i, j, out, squared, thread_count(len(i) * x.shape[1]))
        return out
    size = max(CHUNK // max(x.shape[1], 1), 1)
    for start in range(0, len(i), size):
        chunk = slice(start, start + size)
        left, right = x[i[chunk]].astype(np.float64), y[j[chunk]].astype(np.float64)
        terms = np.square(left - right) if squared else left * right
        out[chunk] = np.cumsum(terms, axis=1)[:, -1] + 0.0  # cumsum adds in order, sum does not
    return out
