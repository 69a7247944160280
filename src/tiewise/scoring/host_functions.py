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
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tiewise.caching import cached_property
from tiewise.data.columns import Floats, ranges, split_segments
from tiewise.data.native import native
from tiewise.scoring.approximate import ApproximateScores
from tiewise.scoring.backends import not_finite_error
from tiewise.scoring.definition import (
    HalfRows,
    Rounding,
    SparseRows,
    dot_sums,
    squared_distances,
    squared_norms,
    thread_count,
)
from tiewise.scoring.spans import Indices, Rows, numbers_of, split

#: How many numbers are kept at a time while pairs are scored by the definition.
CHUNK = 2**22

#: Up to this number of queries, products and norms are computed in one pass over the documents.
FEW_QUERIES = 8

#: If a norm is outside this range, products cannot filter cosines.
SAFE_NORMS = {np.dtype(np.float32): (1e-15, 1e15), np.dtype(np.float64): (1e-120, 1e120)}


@dataclass(frozen=True)
class VectorBlock:
    """Some queries or documents, prepared for scoring. Late interaction has several vectors for each of the n rows."""

    n: int
    vectors: Any  # (n_vectors, dims): float32 or float64, words of bits, HalfRows or SparseRows
    scaled: Any  # the vectors as the definition takes them: float64 vectors are scaled by 2^-exponent
    exponents: Indices  # (n_vectors,): all 0 for float32
    offsets: Indices  # (n + 1,): the vectors of each row
    side: str  # "queries" or "documents"
    rows: Rows  # which rows these are
    known_squares: Floats | None = None  # the squared norms of these rows in all calls; NaN if not known yet

    @property
    def start(self) -> int:
        """The first row, of contiguous ones."""
        assert isinstance(self.rows, slice)
        return int(self.rows.start)

    @property
    def lengths(self) -> Indices:
        """(n,): the number of vectors of each row."""
        return np.diff(self.offsets)

    @cached_property
    def squared_norms(self) -> Floats:
        """(n_vectors,): S(x, x) of the scaled vectors."""
        if self.known_squares is not None and not np.isnan(self.known_squares).any():
            return self.known_squares
        squares = self._checked(squared_norms(self.scaled))
        if self.known_squares is not None:
            self.known_squares[...] = squares
        return squares

    @property
    def is_zero(self) -> NDArray[np.bool_]:
        """(n_vectors,): which are zero vectors."""
        return (self.squared_norms if "squared_norms" in vars(self) else self.norms) == 0

    @cached_property
    def norms(self) -> Floats:
        """(n_vectors,): upper bounds of the Euclidean norms, at most by `norm_error` too large."""
        if isinstance(self.scaled, SparseRows):
            return self._checked(np.ldexp(self.scaled.norm_bounds(), self.exponents))
        if self.scaled.dtype == np.float32:
            no_products = np.empty((0, self.scaled.shape[1]), np.float32)
            return self._checked(_norm_bounds(self.scaled, _fast_products(no_products, self.scaled)[1]))
        squares = np.einsum("ij,ij->i", self.scaled, self.scaled)
        norms = np.ldexp(np.sqrt(squares), self.exponents)
        return self._checked(norms * (1 + (self.scaled.shape[1] + 4) * 2.0**-52))

    @property
    def norm_error(self) -> float:
        """How much too large a norm can be, relative to it."""
        return 2.02 * (self.scaled.shape[1] + 4) * (2.0**-24 if self.scaled.dtype == np.float32 else 2.0**-52)

    def products_with(self, few: NDArray[Any]) -> NDArray[Any]:
        """Approximate products with a few vectors, in float32. The norms are computed in the same pass."""
        products, squares = _fast_products(few, self.vectors)
        if "norms" not in vars(self):
            vars(self)["norms"] = self._checked(_norm_bounds(self.vectors, squares))
        return products

    def _checked(self, norms: Floats) -> Floats:
        if not np.isfinite(norms).all():
            self.check_finite()
        return norms

    def check_finite(self) -> None:
        """Raise if a vector holds NaN or infinity."""
        is_array = isinstance(self.vectors, np.ndarray)
        bad = np.flatnonzero(~np.isfinite(self.vectors).all(1)) if is_array else self.vectors.rows_not_finite()
        if len(bad):
            rows = np.unique(np.searchsorted(self.offsets, bad, side="right") - 1)
            raise not_finite_error(self.side, rows, self.rows, " Leave it out or correct it.")

    def take(self, rows: Indices) -> VectorBlock:
        """Some of the rows."""
        lengths = self.lengths[rows]
        at = ranges(self.offsets[rows], lengths)
        taken = VectorBlock(
            len(rows),
            self.vectors[at],
            self.scaled[at],
            self.exponents[at],
            np.concatenate([[0], np.cumsum(lengths)]),
            self.side,
            numbers_of(self.rows, rows),
        )
        for name in vars(self).keys() & {"norms", "squared_norms"}:
            vars(taken)[name] = vars(self)[name][at]
        return taken


class Dot:
    """The dot product."""

    def __init__(self, dims: int, terms: int, rounding: Rounding, integer: bool, low_precision: bool):
        """`integer` vectors have exact products; with `low_precision` every step is rounded.

        A sum over the dimensions has at most `terms` products that are not 0.
        """
        self.dims, self.terms, self.rounding = dims, terms, rounding
        self.integer, self.low_precision = integer, low_precision

    def exact(self, q: VectorBlock, d: VectorBlock, i: Indices, j: Indices) -> Floats:
        """The scores of some pairs of rows by the definition, before the last rounding."""
        sums = dot_sums(q.scaled, d.scaled, i, j)
        return sums if q.scaled.dtype == np.float32 else np.ldexp(sums, q.exponents[i] + d.exponents[j])

    def approximate(self, q: VectorBlock, d: VectorBlock, dtype: Any) -> ApproximateScores:
        """All pairs by a product in float32 or float64, with error bounds (Eq. 29)."""
        few = _is_few(q, d, dtype)
        values = d.products_with(q.vectors) if few else _product(q.vectors, d.vectors, dtype)
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
        flushed = tiny * self.terms**0.5
        relative = relative_error(self.terms + 2, dtype) + extra
        return np.stack([relative * q_norms + flushed, tiny * (self.terms + 1) + flushed * q_norms]), d_norms[None]


class Cosine(Dot):
    """The dot product over the square root of the product of the squared norms; 0 for a zero vector."""

    def exact(self, q: VectorBlock, d: VectorBlock, i: Indices, j: Indices) -> Floats:
        """S(q, d) / √(S(q, q)·S(d, d))."""
        squares = d.squared_norms[j] if "squared_norms" in vars(d) else dot_sums(d.scaled, d.scaled, j, j)
        norms = np.sqrt(q.squared_norms[i] * squares)
        return np.where(norms == 0, 0.0, dot_sums(q.scaled, d.scaled, i, j) / norms)

    def approximate(self, q: VectorBlock, d: VectorBlock, dtype: Any) -> ApproximateScores:
        """Products of normalised queries with documents, times the inverse norms of the documents (Eq. 30)."""
        unit = _normalise(q, dtype)
        product = d.products_with(unit) if _is_few(q, d, dtype) else None
        u = float(np.finfo(dtype).eps) / 2
        # The factor 1.01 is for the length of the query, which is 1 up to rounding.
        bound = 1.01 * relative_error(self.terms + 2, dtype) + 8 * u + (self.terms + 2) * u * 2.0**-20
        if product is not None:  # for few queries, norms that are bounds are good enough
            norms, bound = d.norms, bound + 1.01 * d.norm_error
        else:
            product, norms = _product(unit, d.scaled, dtype), np.sqrt(d.squared_norms)
        norms = _safe_norms(d, norms, dtype)
        inverse = np.divide(1, norms, out=np.zeros_like(norms), where=norms != 0).astype(dtype)
        row_error = np.stack([np.full(q.n, bound), np.zeros(q.n)])
        return ApproximateScores(product, row_error, np.ones((1, d.n)), scale=inverse)


class Euclidean(Dot):
    """The negative distance, so that larger is better."""

    def exact(self, q: VectorBlock, d: VectorBlock, i: Indices, j: Indices) -> Floats:
        """−√Σ(q_k − d_k)²."""
        if q.vectors.dtype == d.vectors.dtype == np.float32:
            return 0.0 - np.sqrt(squared_distances(q.vectors, d.vectors, i, j))
        scores = np.empty(len(i))
        for chunk in split(slice(0, len(i)), max(CHUNK // self.dims, 1)):
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
        scores = np.empty(len(i))
        for pairs in split_segments(np.append(0, np.cumsum(q.lengths[i] * d.lengths[j])), CHUNK):
            scores[pairs] = self._exact(q, d, i[pairs], j[pairs])
        return scores

    def _exact(self, q: VectorBlock, d: VectorBlock, i: Indices, j: Indices) -> Floats:
        q_lengths = q.lengths[i]
        pair, token = np.repeat(np.arange(len(i)), q_lengths), ranges(q.offsets[i], q_lengths)
        d_lengths = d.lengths[j][pair]  # of each query token of each pair
        starts = np.cumsum(d_lengths) - d_lengths
        products = super().exact(q, d, np.repeat(token, d_lengths), ranges(d.offsets[j][pair], d_lengths))
        best = np.maximum.reduceat(self.rounding(products) if self.low_precision else products, starts)
        table = np.zeros((len(i), int(q_lengths.max())))
        table[pair, ranges(np.zeros(len(i), np.int64), q_lengths)] = best
        return np.cumsum(table, axis=1)[:, -1] + 0.0

    def approximate(self, q: VectorBlock, d: VectorBlock, dtype: Any) -> ApproximateScores:
        """The same from one product of all tokens."""
        products = _product(q.vectors, d.vectors, dtype)
        products[~np.isfinite(products)] = np.nan  # a maximum would hide a product that overflowed
        best = _reduce_segments(np.maximum, products, d.offsets, axis=1)
        q_norms = np.add.reduceat(q.norms, q.offsets[:-1]) if q.n else np.zeros(0)
        d_norms = np.maximum.reduceat(d.norms, d.offsets[:-1]) if d.n else np.zeros(0)
        tokens = int(q.lengths.max(initial=1))
        extra = relative_error(tokens + 2, dtype) + (2.0 * self.rounding.eps if self.low_precision else 0.0)
        row_error, doc_error = self._error_bounds(q_norms, d_norms, dtype, extra, sums=tokens)
        if self.low_precision:  # the rounding of subnormal numbers has no relative error bound
            row_error[1] += tokens * self.rounding.smallest_normal * self.rounding.eps
        return ApproximateScores(_reduce_segments(np.add, best, q.offsets, axis=0), row_error, doc_error)


class Hamming(Dot):
    """The number of equal bits. The filter is the product of vectors of −1 and 1: equal bits less different ones."""

    def exact(self, q: VectorBlock, d: VectorBlock, i: Indices, j: Indices) -> Floats:
        """Dimensions less different bits."""
        scores = np.empty(len(i))
        for chunk in split(slice(0, len(i)), max(CHUNK // q.vectors.shape[1], 1)):
            scores[chunk] = self.dims - _count_bits(q.vectors[i[chunk]] ^ d.vectors[j[chunk]])
        return scores

    def approximate(self, q: VectorBlock, d: VectorBlock, dtype: Any) -> ApproximateScores:
        """Exact values: different bits are counted in words."""
        values, kernels = np.empty((q.n, d.n), dtype), native("kernels")
        if kernels is not None:
            steps = q.n * d.vectors.size
            kernels.bit_products(q.vectors, d.vectors, self.dims, values, thread_count(steps))
        else:
            for row, words in enumerate(q.vectors):
                values[row] = self.dims - 2 * _count_bits(d.vectors ^ words)
        return ApproximateScores(values, np.zeros((2, q.n)), np.zeros((1, d.n)))

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


def _product(a: NDArray[Any], b: Any, dtype: Any) -> NDArray[Any]:
    if not isinstance(b, np.ndarray):
        return b.products_with(a, dtype)
    return a.astype(dtype, copy=False) @ b.astype(dtype, copy=False).T


def _is_few(q: VectorBlock, d: VectorBlock, dtype: Any) -> bool:
    """Whether products and norms are computed in one pass over the documents."""
    return (
        q.n <= FEW_QUERIES
        and q.vectors.dtype == d.scaled.dtype == dtype == np.float32
        and not isinstance(d.scaled, SparseRows)
    )


def _reduce_segments(reduce: Any, values: NDArray[Any], offsets: Indices, axis: int) -> NDArray[Any]:
    """A ufunc over segments of an axis, none of them empty."""
    lengths = np.diff(offsets)
    if not len(lengths):
        return values
    if (lengths == lengths[0]).all():  # faster than reduceat
        shape = (*values.shape[:axis], len(lengths), int(lengths[0]), *values.shape[axis + 1 :])
        return np.ascontiguousarray(reduce.reduce(values.reshape(shape), axis=axis + 1))
    return np.ascontiguousarray(reduce.reduceat(values, offsets[:-1], axis=axis))


def _count_bits(words: NDArray[np.uint64]) -> NDArray[np.int64]:
    if hasattr(np, "bitwise_count"):  # NumPy 2
        return np.bitwise_count(words).sum(1, dtype=np.int64)
    return np.unpackbits(words.view(np.uint8), axis=1).sum(1, dtype=np.int64)


def _fast_products(few: NDArray[Any], rows: Any) -> tuple[NDArray[Any], Floats]:
    """Products in float32 of a few vectors with rows, and the squared norms of the rows, with rounding errors."""
    kernels = native("kernels")
    if kernels is None:
        return _product(few, rows, np.float32), np.einsum("ij,ij->i", rows, rows).astype(np.float64)
    products, squares = np.empty((len(few), len(rows)), np.float32), np.empty(len(rows))
    threads = thread_count(len(rows) * rows.shape[1] * (len(few) + 1))
    # Without products, BLAS has just multiplied: its threads keep their cores busy for a while.
    given = rows.rows if isinstance(rows, HalfRows) else rows
    kernels.fast_products(few, given, products, squares, threads if len(few) else -(-threads // 2))
    return products, squares


def _norm_bounds(x: Any, squares: Floats) -> Floats:
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


def _safe_norms(d: VectorBlock, norms: Floats, dtype: Any) -> Floats:
    """Norms, NaN for those of very long and very short vectors: the definition decides about their scores."""
    if d.scaled.dtype == np.float64:
        return norms
    low, high = SAFE_NORMS[np.dtype(dtype)]
    return np.where((norms == 0) | ((norms > low) & (norms < high)), norms, np.nan)
