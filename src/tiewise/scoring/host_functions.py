"""The score functions in main memory: dot, cosine, Euclidean, late interaction, Hamming.

The score of a pair is defined by its two vectors alone (`tiewise.scoring.definition`). To compute all scores that way
would be slow, and is not necessary: a product of BLAS gives approximate scores with a proven error bound
(`tiewise.scoring.approximate`), and these decide nearly everything.

Each function is one class with the definition (`exact`) and the approximation (`approximate`). The approximation is a
filter and may be on another scale than the score: Euclidean distances are filtered by q·d − ‖d‖²/2, which orders
documents in the same way. `to_filter` and `from_filter` convert between the two scales.

Equation numbers are those of docs/theory.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tiewise.data.columns import Floats
from tiewise.data.native import native
from tiewise.scoring.approximate import ApproximateScores
from tiewise.scoring.backends import Indices, Rows, not_finite_error
from tiewise.scoring.definition import Rounding, dot_sums, squared_distances, thread_count

__all__ = ["FUNCTIONS", "Dot", "VectorBlock", "relative_error", "scale_rows"]

#: How many numbers are kept at a time while pairs are scored by the definition.
CHUNK = 2**22

#: Up to this number of queries, products and norms are computed in one pass over the documents.
FEW_QUERIES = 2

#: Rows with a norm outside this range are scaled before they are multiplied for a cosine.
SAFE_NORMS = {np.dtype(np.float32): (1e-15, 1e15), np.dtype(np.float64): (1e-120, 1e120)}


@dataclass(frozen=True)
class VectorBlock:
    """Some queries or documents, prepared for scoring. Late interaction has several vectors for each of the n rows."""

    n: int
    vectors: NDArray[Any]  # (n_vectors, dims), float32 or float64
    scaled: NDArray[Any]  # the vectors as the definition takes them: float64 vectors are scaled by 2^-exponent
    exponents: Indices  # (n_vectors,): all 0 for float32
    squared_norms: Floats  # (n_vectors,): S(x, x) of the scaled vectors; empty unless the function needs it
    mask: NDArray[np.bool_] | None  # (n, tokens)
    side: str  # "queries" or "documents"
    rows: Rows  # which rows these are

    @property
    def start(self) -> int:
        """The first row, of contiguous ones."""
        assert isinstance(self.rows, slice)
        return int(self.rows.start)

    @cached_property
    def norms(self) -> Floats:
        """(n_vectors,): upper bounds of the Euclidean norms."""
        if not len(self.squared_norms) and self.scaled.dtype == np.float32:
            return self._check_norms(_norm_bounds(self.scaled, _fast_products(self.scaled[:0], self.scaled)[1]))
        squares = self.squared_norms if len(self.squared_norms) else np.einsum("ij,ij->i", self.scaled, self.scaled)
        norms = np.ldexp(np.sqrt(squares), self.exponents)
        return self._check_norms(norms * (1 + (self.scaled.shape[1] + 4) * 2.0**-52))

    def products_with(self, few: VectorBlock) -> NDArray[Any]:
        """Approximate products with a few vectors, in float32. The norms are computed in the same pass."""
        products, squares = _fast_products(few.vectors, self.vectors)
        if "norms" not in vars(self):
            vars(self)["norms"] = self._check_norms(_norm_bounds(self.vectors, squares))
        return products

    def _check_norms(self, norms: Floats) -> Floats:
        if not np.isfinite(norms).all():
            self.check_finite()
        return norms

    def check_finite(self) -> None:
        """Raise if a vector holds NaN or infinity."""
        bad = np.flatnonzero(~np.isfinite(self.vectors).reshape(self.n, -1).all(1))
        if len(bad):
            raise not_finite_error(self.side, bad, self.rows, " Leave it out or correct it.")

    def take(self, rows: Indices) -> VectorBlock:
        """Some of the rows."""
        tokens = len(self.vectors) // max(self.n, 1)
        at = (rows[:, None] * tokens + np.arange(tokens)).ravel()
        return VectorBlock(
            len(rows),
            self.vectors[at],
            self.scaled[at],
            self.exponents[at],
            self.squared_norms[at] if len(self.squared_norms) else self.squared_norms,
            None if self.mask is None else self.mask[rows],
            self.side,
            rows + self.rows.start if isinstance(self.rows, slice) else self.rows[rows],
        )


class Dot:
    """The dot product."""

    def __init__(self, dims: int, rounding: Rounding, integer: bool, tokens: tuple[int, int], low_precision: bool):
        """`integer` vectors have exact products; with `low_precision` every step is rounded."""
        self.dims, self.rounding, self.integer = dims, rounding, integer
        self.tokens, self.low_precision = tokens, low_precision

    def exact(self, q: VectorBlock, d: VectorBlock, i: Indices, j: Indices) -> Floats:
        """The scores of some pairs of rows by the definition, before the last rounding."""
        sums = dot_sums(q.scaled, d.scaled, i, j)
        return sums if q.scaled.dtype == np.float32 else np.ldexp(sums, q.exponents[i] + d.exponents[j])

    def approximate(self, q: VectorBlock, d: VectorBlock, dtype: Any) -> ApproximateScores:
        """All pairs by a product in float32 or float64, with error bounds (Eq. 29)."""
        if q.n <= FEW_QUERIES and q.vectors.dtype == dtype == np.float32:
            values = d.products_with(q)
        else:
            values = _product(q.vectors, d.vectors, dtype)
        if values.dtype == np.float64 and self.rounding.eps:  # the definition decides about scores that overflow
            values[np.abs(values) > self.rounding.largest] = np.nan
        return ApproximateScores(values, *self._error_bounds(q.norms, d.norms, dtype))

    def to_filter(self, q: VectorBlock, score: Floats) -> Floats:
        """Scores, (rows, any), on the scale of the filter."""
        return score

    def from_filter(self, q: VectorBlock, row: Indices, value: Floats) -> Floats:
        """Values of the filter as scores; `row` is the query of each."""
        return value

    def _error_bounds(
        self, q_norms: Floats, d_norms: Floats, dtype: Any, extra: float = 0.0, sums: int = 1
    ) -> tuple[Floats, Floats]:
        """Eq. 29: the error of products with any order of additions, with or without fused multiply-adds.

        A score is made of `sums` products. The terms with `flushed` hold for a CPU that flushes subnormal operands or
        results to zero.
        """
        if self.integer:
            return np.zeros((2, len(q_norms))), np.zeros((1, len(d_norms)))
        tiny = sums * float(np.finfo(dtype).smallest_normal)
        flushed = tiny * self.dims**0.5
        relative = relative_error(self.dims + 2, dtype) + extra
        return np.stack([relative * q_norms + flushed, tiny * (self.dims + 1) + flushed * q_norms]), d_norms[None]


class Cosine(Dot):
    """The dot product over the square root of the product of the squared norms; 0 for a zero vector."""

    def exact(self, q: VectorBlock, d: VectorBlock, i: Indices, j: Indices) -> Floats:
        """S(q, d) / √(S(q, q)·S(d, d))."""
        norms = np.sqrt(q.squared_norms[i] * d.squared_norms[j])
        return np.where(norms == 0, 0.0, dot_sums(q.scaled, d.scaled, i, j) / norms)

    def approximate(self, q: VectorBlock, d: VectorBlock, dtype: Any) -> ApproximateScores:
        """Products of normalised queries with documents, times the inverse norms of the documents (Eq. 30)."""
        vectors, norms = _in_safe_range(d, dtype)
        inverse = np.divide(1, norms, out=np.zeros_like(norms), where=norms > 0).astype(dtype)
        u = float(np.finfo(dtype).eps) / 2
        # The factor 1.01 is for the length of the query, which is 1 up to rounding.
        bound = 1.01 * relative_error(self.dims + 2, dtype) + 8 * u + (self.dims + 2) * u * 2.0**-20
        row_error = np.stack([np.full(q.n, bound), np.zeros(q.n)])
        product = _product(_normalise(q, dtype), vectors, dtype)
        return ApproximateScores(product, row_error, np.ones((1, d.n)), scale=inverse)


class Euclidean(Dot):
    """The negative distance, so that larger is better."""

    def exact(self, q: VectorBlock, d: VectorBlock, i: Indices, j: Indices) -> Floats:
        """−√Σ(q_k − d_k)²."""
        if q.vectors.dtype == d.vectors.dtype == np.float32:
            return 0.0 - np.sqrt(squared_distances(q.vectors, d.vectors, i, j))
        scores = np.empty(len(i))
        for start in range(0, len(i), size := max(CHUNK // self.dims, 1)):
            chunk = slice(start, start + size)
            difference, exponents = scale_rows(q.vectors[i[chunk]].astype(np.float64) - d.vectors[j[chunk]])
            rows = np.arange(len(difference))
            scores[chunk] = 0.0 - np.ldexp(np.sqrt(dot_sums(difference, difference, rows, rows)), exponents)
        return scores

    def approximate(self, q: VectorBlock, d: VectorBlock, dtype: Any) -> ApproximateScores:
        """q·d − ‖d‖²/2 (Eq. 31)."""
        u = float(np.finfo(dtype).eps) / 2
        row_error, _ = self._error_bounds(q.norms, d.norms, dtype, extra=2 * u)
        doc_error = np.stack([d.norms, 2 * u * d.norms**2])
        half = np.ldexp(d.squared_norms, 2 * d.exponents) / 2
        largest = q.norms + d.norms.max(initial=0.0)
        row_error[1] += (self.dims + 8) * 2.0**-52 * largest**2  # the error of the definition and of to_filter
        product = _product(q.vectors, d.vectors, dtype)
        return ApproximateScores(product, row_error, doc_error, offset=(-half).astype(dtype))

    def to_filter(self, q: VectorBlock, score: Floats) -> Floats:
        """(‖q‖² − s²) / 2, where s is the negative distance."""
        return (np.ldexp(q.squared_norms, 2 * q.exponents)[:, None] - np.minimum(score, 0) ** 2) / 2

    def from_filter(self, q: VectorBlock, row: Indices, value: Floats) -> Floats:
        """−√(‖q‖² − 2x)."""
        return 0.0 - np.sqrt(np.maximum(np.ldexp(q.squared_norms, 2 * q.exponents)[row] - 2 * value, 0.0))


class MaxSim(Dot):
    """For each token of the query its best match among the tokens of the document, added up."""

    def exact(self, q: VectorBlock, d: VectorBlock, i: Indices, j: Indices) -> Floats:
        """Σ over query tokens, in their order, of the maximum over document tokens of S."""
        scores, (q_tokens, d_tokens) = np.empty(len(i)), self.tokens
        for start in range(0, len(i), size := max(CHUNK // (q_tokens * d_tokens), 1)):
            chunk = slice(start, start + size)
            a = i[chunk, None, None] * q_tokens + np.arange(q_tokens)[:, None]
            b = j[chunk, None, None] * d_tokens + np.arange(d_tokens)
            a, b = (np.ascontiguousarray(part).ravel() for part in np.broadcast_arrays(a, b))
            products = super().exact(q, d, a, b)
            products = (self.rounding(products) if self.low_precision else products).reshape(-1, q_tokens, d_tokens)
            if d.mask is not None:
                products = np.where(d.mask[j[chunk]][:, None, :], products, -np.inf)
            best = products.max(2)
            if q.mask is not None:
                best = np.where(q.mask[i[chunk]], best, 0.0)
            scores[chunk] = np.cumsum(best, axis=1)[:, -1] + 0.0
        return scores

    def approximate(self, q: VectorBlock, d: VectorBlock, dtype: Any) -> ApproximateScores:
        """The same from one product of all tokens."""
        q_tokens, d_tokens = self.tokens
        products = _product(q.vectors, d.vectors, dtype).reshape(q.n, q_tokens, d.n, d_tokens)
        unknown = ~np.isfinite(products).all(3)  # a maximum would hide a product that overflowed
        if d.mask is not None:
            products = np.where(d.mask, products, -np.inf)
        best = np.where(unknown, np.nan, products.max(3)).astype(dtype)
        q_mask = np.ones((q.n, q_tokens), bool) if q.mask is None else q.mask
        d_mask = np.ones((d.n, d_tokens), bool) if d.mask is None else d.mask
        best = np.where(q_mask[:, :, None], best, 0)
        q_norms = np.where(q_mask, q.norms.reshape(q.n, q_tokens), 0.0).sum(1)
        d_norms = np.where(d_mask, d.norms.reshape(d.n, d_tokens), 0.0).max(1, initial=0.0)
        extra = relative_error(q_tokens + 2, dtype) + (2.0 * self.rounding.eps if self.low_precision else 0.0)
        row_error, doc_error = self._error_bounds(q_norms, d_norms, dtype, extra, sums=q_tokens)
        if self.low_precision:  # the rounding of subnormal numbers has no relative error bound
            row_error[1] += q_tokens * self.rounding.smallest_normal * self.rounding.eps
        return ApproximateScores(best.sum(1), row_error, doc_error)


class Hamming(Dot):
    """The number of equal bits, from the product of vectors of −1 and 1."""

    def exact(self, q: VectorBlock, d: VectorBlock, i: Indices, j: Indices) -> Floats:
        """(S + dims) / 2."""
        return (super().exact(q, d, i, j) + self.dims) / 2

    def to_filter(self, q: VectorBlock, score: Floats) -> Floats:
        """2s − dims."""
        return 2 * score - self.dims

    def from_filter(self, q: VectorBlock, row: Indices, value: Floats) -> Floats:
        """(x + dims) / 2."""
        return (value + self.dims) / 2


FUNCTIONS: dict[str, type[Dot]] = {
    "dot": Dot,
    "cosine": Cosine,
    "euclidean": Euclidean,
    "maxsim": MaxSim,
    "hamming": Hamming,
}


def relative_error(terms: int, dtype: Any) -> float:
    """c·γ of Eqs. 28 and 29 for this number of roundings: of the approximation and, in float64, of the definition."""
    u = float(np.finfo(dtype).eps) / 2
    if terms * u >= 0.25:
        return float("inf")
    return (1.01 if dtype == np.float32 else 2.02) * terms * u / (1 - terms * u)


def scale_rows(x: NDArray[np.float64]) -> tuple[NDArray[np.float64], Indices]:
    """Rows times 2^-e, so that their largest absolute value is between ½ and 1, and the exponents e."""
    largest = np.abs(x).max(1, initial=0.0)
    exponents = np.where(np.isfinite(largest), np.frexp(np.where(np.isfinite(largest), largest, 1.0))[1], 0)
    return np.ldexp(x, -exponents[:, None]), exponents.astype(np.int64)


def _product(a: NDArray[Any], b: NDArray[Any], dtype: Any) -> NDArray[Any]:
    return a.astype(dtype, copy=False) @ b.astype(dtype, copy=False).T


def _fast_products(few: NDArray[Any], rows: NDArray[Any]) -> tuple[NDArray[Any], Floats]:
    """Products in float32 of a few vectors with rows, and the squared norms of the rows, with rounding errors."""
    kernels = native("kernels")
    if kernels is None:
        return _product(few, rows, np.float32), np.einsum("ij,ij->i", rows, rows).astype(np.float64)
    products, squares = np.empty((len(few), len(rows)), np.float32), np.empty(len(rows))
    threads = thread_count(rows.size * (len(few) + 1))
    # Without products, BLAS has just multiplied: its threads keep their cores busy for a while.
    kernels.fast_products(few, rows, products, squares, threads if len(few) else -(-threads // 2))
    return products, squares


def _norm_bounds(x: NDArray[Any], squares: Floats) -> Floats:
    """Upper bounds of the norms of float32 rows from their squares in float32, which are overwritten.

    Squares for which float32 is not precise are computed in float64.
    """
    if len(squares) and not (squares.min() > 1e-25 and squares.max() < 1e35):
        imprecise = np.flatnonzero(~((squares > 1e-25) & (squares < 1e35)))
        wide = x[imprecise].astype(np.float64)
        squares[imprecise] = np.einsum("ij,ij->i", wide, wide)
    np.sqrt(squares, out=squares)
    squares *= 1 + (x.shape[1] + 4) * 2.0**-24
    return squares


def _normalise(q: VectorBlock, dtype: Any) -> NDArray[Any]:
    """Vectors over their norms; zero vectors stay zero."""
    norms = np.sqrt(q.squared_norms)[:, None]
    return np.where(norms > 0, q.scaled / norms, 0.0).astype(dtype)


def _in_safe_range(d: VectorBlock, dtype: Any) -> tuple[NDArray[Any], Floats]:
    """Vectors and norms; very long and very short vectors are scaled by a power of two."""
    norms = np.sqrt(d.squared_norms)
    if d.scaled.dtype == np.float64:
        return d.scaled, norms
    low, high = SAFE_NORMS[np.dtype(dtype)]
    unsafe = np.flatnonzero((norms > 0) & ~((norms > low) & (norms < high)))
    if not len(unsafe):
        return d.scaled, norms
    vectors, norms = d.scaled.copy(), norms.copy()
    scaled, exponents = scale_rows(d.scaled[unsafe].astype(np.float64))
    vectors[unsafe], norms[unsafe] = scaled, np.ldexp(norms[unsafe], -exponents)
    return vectors, norms
