"""The definition of a score: sums over the dimensions of two vectors, and the last rounding.

S(x, y) = Σ_k float64(x_k)·float64(y_k): each product is rounded to float64, which is exact for operands up to float32,
and the products are added in float64 in the order k = 0, 1, 2, …, starting from +0.0 (theory.md, Eq. 27). A matrix
product of BLAS does not promise any order, so its last bits can depend on the CPU, on the number of threads, and on the
position of a row in the matrix. These sums depend on the two vectors alone.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tiewise.data.columns import Floats
from tiewise.data.native import native
from tiewise.results.optional import need
from tiewise.scoring.spans import Indices, split

#: How many numbers NumPy multiplies at a time.
CHUNK = 2**20

#: Threads of the compiled kernels. With fewer steps for each, starting a thread costs more than it saves.
MAX_THREADS, STEPS_PER_THREAD = 8, 2**18

#: What the compiled kernels require of an array. The arrays of a safetensors file may begin at any byte.
KERNEL_LAYOUT: Final = ("C_CONTIGUOUS", "ALIGNED")

Vectors = Any  # (n_rows, dims), float32 or float64, HalfRows or SparseRows


def dot_sums(x: Vectors, y: Vectors, i: Indices, j: Indices) -> Floats:
    """S(x[i], y[j]) for pairs of rows.

    >>> x = np.float32([[1.0, 2.0], [0.5, -1.0]])
    >>> dot_sums(x, x, np.array([0, 0]), np.array([0, 1]))
    array([ 5. , -1.5])
    """
    if isinstance(y, SparseRows):
        return y.dot_sums(x, i, j)
    return _sum_pairs(x, y, i, j, squared=False)


def squared_distances(x: Vectors, y: Vectors, i: Indices, j: Indices) -> Floats:
    """Σ_k (float64(x_k) − float64(y_k))² for pairs of rows, added in the same order."""
    return _sum_pairs(x, y, i, j, squared=True)


def squared_norms(x: Vectors) -> Floats:
    """S(x, x) for every row."""
    if isinstance(x, HalfRows):
        return np.concatenate([np.zeros(0), *(squared_norms(x[rows].astype(np.float32)) for rows in x.chunks())])
    rows = np.arange(len(x))
    return dot_sums(x, x, rows, rows)


def _sum_pairs(x: Vectors, y: Vectors, i: Indices, j: Indices, *, squared: bool) -> Floats:
    out = np.zeros(len(i))
    kernels = native("kernels")
    chunks = split(slice(0, len(i)), max(CHUNK // max(x.shape[1], 1), 1))
    if isinstance(y, HalfRows):
        for chunk in chunks:
            right = _widen_rows(y, j[chunk])
            left = right if x is y and i is j else _widen_rows(x, i[chunk])
            out[chunk] = _sum_pairs(left[0], right[0], left[1], right[1], squared=squared)
        return out
    if kernels is not None and len(i):
        same_type = x.dtype == y.dtype
        x, y = (np.require(side, side.dtype if same_type else np.float64, KERNEL_LAYOUT) for side in (x, y))
        i, j = np.ascontiguousarray(i), np.ascontiguousarray(j)
        kernels.sum_pairs(x, y, i, j, out, squared, thread_count(len(i) * x.shape[1]))
        return out
    for chunk in chunks:
        left, right = x[i[chunk]].astype(np.float64), y[j[chunk]].astype(np.float64)
        terms = np.square(left - right) if squared else left * right
        out[chunk] = np.cumsum(terms, axis=1)[:, -1] + 0.0  # cumsum adds in order, sum does not
    return out


def _widen_rows(x: Vectors, rows: Indices) -> tuple[NDArray[Any], Indices]:
    """Vectors that hold some rows, in float32 if they are HalfRows, and where these rows are."""
    return (x[rows].astype(np.float32), np.arange(len(rows))) if isinstance(x, HalfRows) else (x, rows)


class HalfRows:
    """Rows in bfloat16 or float16 that count as float32; the compiled kernels convert a few of them at a time."""

    dtype = np.dtype(np.float32)

    def __init__(self, rows: NDArray[Any]):
        """`rows` are float16, or the bits of bfloat16 as uint16."""
        self.rows, self.shape = np.require(rows, requirements=KERNEL_LAYOUT), rows.shape

    def __len__(self) -> int:
        return int(self.shape[0])

    def __getitem__(self, rows: Any) -> HalfRows:
        return HalfRows(self.rows[rows])

    def astype(self, dtype: Any) -> NDArray[Any]:
        """A copy of the rows in float32 or float64."""
        wide = np.empty(self.shape, np.float32)
        kernels = native("kernels")
        assert kernels is not None
        # BLAS has often just multiplied: its threads keep their cores busy for a while.
        kernels.widen(self.rows, wide, -(-thread_count(wide.size) // 2))
        return wide.astype(dtype, copy=False)

    def chunks(self) -> list[slice]:
        """The rows in chunks to convert at a time, which fit into a cache."""
        return split(slice(0, len(self)), max(CHUNK // self.shape[1], 1))

    def products_with(self, x: NDArray[Any], dtype: Any) -> NDArray[Any]:
        """Approximate products with vectors, (len(x), rows)."""
        x, products = x.astype(dtype, copy=False), np.empty((len(x), len(self)), dtype)
        for rows in self.chunks():
            np.matmul(x, self[rows].astype(dtype).T, out=products[:, rows])
        return products

    def rows_not_finite(self) -> Indices:
        """The rows that hold NaN or infinity."""
        return np.flatnonzero(~np.isfinite(self.astype(np.float32)).all(1))


class SparseRows:
    """Rows of a compressed matrix of scipy, with sorted columns. To leave out products that are 0 changes no bit."""

    def __init__(self, matrix: Any):
        self.matrix, self.dtype, self.shape = matrix, matrix.dtype, matrix.shape

    def __len__(self) -> int:
        return int(self.shape[0])

    def __getitem__(self, rows: Any) -> SparseRows:
        return SparseRows(self.matrix[rows])

    def dot_sums(self, x: Any, i: Indices, j: Indices) -> Floats:
        """S(x[i], y[j]) for pairs of rows of dense vectors (or these vectors) and these."""
        out, longest = np.zeros(len(i)), int(np.diff(self.matrix.indptr).max(initial=1))
        for pairs in split(slice(0, len(i)), max(CHUNK // max(longest, 1), 1)):
            rows = self.matrix[j[pairs]]
            lengths = np.diff(rows.indptr)
            pair = np.repeat(np.arange(len(lengths)), lengths)
            own = rows.data.astype(np.float64)
            other = own if x is self else x[i[pairs][pair], rows.indices]
            table = np.zeros((len(lengths), max(int(lengths.max(initial=0)), 1)))
            table[pair, np.arange(len(pair)) - rows.indptr[pair]] = own * other
            out[pairs] = np.cumsum(table, axis=1)[:, -1] + 0.0
        return out

    def products_with(self, x: NDArray[Any], dtype: Any) -> NDArray[Any]:
        """Approximate products with dense vectors, (len(x), rows)."""
        product = self.matrix.astype(dtype, copy=False) @ np.ascontiguousarray(x.T, dtype=dtype)
        return np.ascontiguousarray(product.T)

    def norm_bounds(self) -> Floats:
        """Upper bounds of the norms of the rows."""
        wide = self.matrix.astype(np.float64)
        squares = np.asarray(wide.multiply(wide).sum(axis=1)).ravel()
        return np.sqrt(squares) * (1 + (self.shape[1] + 4) * 2.0**-52)

    def rows_not_finite(self) -> Indices:
        """The rows that hold NaN or infinity."""
        bad = np.flatnonzero(~np.isfinite(self.matrix.data))
        return np.unique(np.searchsorted(self.matrix.indptr, bad, "right") - 1)

    def scale_rows(self) -> tuple[SparseRows, Indices]:
        """Rows times 2^-e, so that their largest absolute value is between ½ and 1, and the exponents e."""
        matrix = self.matrix.astype(np.float64)
        row = np.repeat(np.arange(len(self)), np.diff(matrix.indptr))
        largest = np.zeros(len(self))
        np.maximum.at(largest, row, np.where(np.isfinite(matrix.data), np.abs(matrix.data), 0.0))
        exponents = np.frexp(np.where(largest > 0, largest, 1.0))[1].astype(np.int64)
        matrix.data = np.ldexp(matrix.data, -exponents[row])
        return SparseRows(matrix), exponents


def thread_count(steps: int) -> int:
    """The number of threads for some work: at most the usable cores, OMP_NUM_THREADS, and 8. It changes no result.

    >>> thread_count(10)
    1
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    allowed = os.environ.get("OMP_NUM_THREADS", "")
    allowed_cores = int(allowed) if allowed.isdecimal() and int(allowed) else cores
    return max(1, min(cores, allowed_cores, MAX_THREADS, steps // STEPS_PER_THREAD))


class Rounding:
    """A monotone rounding of float64 values to a coarser type, or none. The results are kept as float64.

    If both ends of an interval round to the same value, everything in the interval does. And the scores that round to a
    value t form an interval: to count the documents with score t is to count exact sums in that interval.
    """

    def __init__(self, name: str, cast: Callable[[Any], Any], info: Any = None):
        """`cast` rounds to the type, by way of float32; `info` has its limits. Without `info` nothing is rounded."""
        self.name, self._cast = name, cast
        self.eps = float(info.eps) if info else 0.0  # the distance from 1 to the next value
        self.smallest_normal = float(info.smallest_normal) if info else 0.0
        self.largest = float(info.max if info else np.finfo(np.float64).max)
        self._overflow = self.largest + self._spacing(np.array(self.largest)) / 2  # types without infinity saturate

    def __call__(self, x: Floats) -> Floats:
        """Rounded values; NaN or infinity for those that are too large."""
        rounded = self._cast(x)
        return np.where(np.abs(x) > self._overflow, np.nan, rounded) if self.eps else rounded

    def interval(self, t: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Bounds (low_out, low_in, high_in, high_out) of the scores that round to each rounded value t.

        Scores outside [low_out, high_out] do not round to t; scores inside [low_in, high_in] do.

        >>> low_out, low_in, high_in, high_out = float32_rounding().interval(np.array([1.0]))
        >>> float(high_out[0] - 1) * 2**24, float(1 - low_out[0]) * 2**25
        (1.0, 1.0)
        """
        if self.eps == 0:
            return t, t, t, t
        # Below a power of two the spacing is half as wide as above it.
        size = np.abs(t)
        outer, inner = size + self._spacing(size) / 2, size - self._spacing(size * (1 - 2.0**-40)) / 2
        high, low = np.where(t < 0, -inner, outer), np.where(t < 0, -outer, inner)
        # Low precision is reached by way of float32, which may round a value onto the border between two values.
        relative, absolute = (0.0, 0.0) if self.name == "float32" else (2.0**-24, 2.0**-149)
        low_slack, high_slack = np.abs(low) * relative + absolute, np.abs(high) * relative + absolute
        # A score on the border rounds to the even neighbour, so the border itself belongs to no inner interval.
        low_in, high_in = np.nextafter(low + low_slack, np.inf), np.nextafter(high - high_slack, -np.inf)
        return low - low_slack, low_in, high_in, high + high_slack

    def _spacing(self, size: Floats) -> Floats:
        """The distance from a value to the next larger one."""
        exponent = np.frexp(np.maximum(size, self.smallest_normal))[1] - 1
        return np.ldexp(self.eps, exponent)


def score_rounding(name: str) -> Rounding:
    """The rounding of scores to float16, bfloat16 or float8, by way of float32.

    >>> score_rounding("float16")(np.array([1.0001, 1.001])).tolist()
    [1.0, 1.0009765625]
    """
    if name == "float16":
        return rounding_to(np.dtype(np.float16), name)
    types = need("ml_dtypes", f"Rounding scores to {name}", "precision")  # NumPy itself does not have them
    return rounding_to(np.dtype(types.float8_e4m3fn if name == "float8" else types.bfloat16), name)


def rounding_to(dtype: Any, name: str) -> Rounding:
    """The rounding to a low-precision type of NumPy or ml_dtypes, by way of float32."""

    def cast(x: Floats) -> Floats:
        with np.errstate(over="ignore"):  # scores that are too large become NaN
            return np.asarray(x.astype(np.float32).astype(dtype), dtype=np.float64)

    return Rounding(name, cast, np.finfo(dtype) if dtype == np.float16 else sys.modules["ml_dtypes"].finfo(dtype))


def float32_rounding() -> Rounding:
    """The rounding of scores to float32."""
    return Rounding("float32", lambda x: x.astype(np.float32).astype(np.float64), np.finfo(np.float32))
