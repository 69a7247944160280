"""Exact scores of vectors in main memory: a fast product as a filter, the definition where it is needed.

The score of a pair is defined by its two vectors alone (`tiewise.scoring.definition`). Computing all scores that way
would be slow, and is not needed: a product of BLAS gives approximate scores with a proven error bound
(`tiewise.scoring.approximate`), and these decide nearly everything. What they leave open is scored by the definition.

Each function of a query and a document is one class with the definition (`exact`) and the filter (`approximate`). The
filter may work on another scale than the score: Euclidean distances are filtered by q·d − ‖d‖²/2, which orders
documents in the same way. `to_filter` and `from_filter` convert between the two scales.

Numbers of equations are those of docs/theory.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tiewise.data.columns import Codes, Floats
from tiewise.data.native import native
from tiewise.errors import InputError, counted
from tiewise.scoring.approximate import Approximation
from tiewise.scoring.arrays import Torch, finfo, such_rows
from tiewise.scoring.definition import dot_sums, squared_distances, squared_norms
from tiewise.scoring.operands import Operand
from tiewise.scoring.precisions import Types
from tiewise.scoring.rounding import Rounding, no_rounding, to_float32, to_low
from tiewise.scoring.threads import threads_for

__all__ = ["HostScores", "Rows", "most_near", "relative_error"]

#: Numbers of document vectors that are held at a time while scattered pairs are scored.
HELD = 2**24

#: For so many queries, products and norms are found in one reading of the documents.
FEW_QUERIES = 2

#: One in so many documents of a block is scored by the definition at most.
NEAR_SHARE = 8

#: Norms outside of which rows are scaled before they are multiplied for a cosine.
SAFE_NORMS = {np.dtype(np.float32): (1e-15, 1e15), np.dtype(np.float64): (1e-120, 1e120)}


@dataclass(frozen=True)
class Rows:
    """Some queries or documents, prepared. Late interaction has several vectors for each of the n rows."""

    n: int
    vectors: NDArray[Any]  # (n_vectors, dims), float32 or float64
    scaled: NDArray[Any]  # the vectors of the definition: float64 ones are scaled by 2^-exponent
    exponents: Codes  # (n_vectors,): all 0 for float32
    squares: Floats  # (n_vectors,): S(x, x) of the scaled vectors; empty unless the function needs it
    mask: NDArray[np.bool_] | None  # (n, tokens)
    source: tuple[str, Any]  # queries or documents, and which rows of them

    @cached_property
    def norms(self) -> Floats:
        """(n_vectors,): upper bounds of the Euclidean norms."""
        if not len(self.squares) and self.scaled.dtype == np.float32:
            return self._checked(_norm_bounds(self.scaled, _quick(self.scaled[:0], self.scaled)[1]))
        squares = self.squares if len(self.squares) else np.einsum("ij,ij->i", self.scaled, self.scaled)
        found = np.ldexp(np.sqrt(squares), self.exponents) * (1 + (self.scaled.shape[1] + 4) * 2.0**-52)
        return self._checked(found)

    def products_with(self, few: Rows) -> NDArray[Any]:
        """Approximate products with a few vectors, in float32; the norms are found on the way."""
        products, squares = _quick(few.vectors, self.vectors)
        if "norms" not in vars(self):
            vars(self)["norms"] = self._checked(_norm_bounds(self.vectors, squares))
        return products

    def _checked(self, norms: Floats) -> Floats:
        if not np.isfinite(norms).all():
            self.check_finite()
        return norms

    def check_finite(self) -> None:
        """Raise if a vector holds NaN or infinity."""
        side, rows = self.source
        bad = np.flatnonzero(~np.isfinite(self.vectors).reshape(self.n, -1).all(1))
        if len(bad):
            row = rows.start + bad[0] if isinstance(rows, slice) else rows[bad[0]]
            raise InputError(
                f"Row {int(row)} of the {side} holds NaN or infinity ({such_rows(len(bad))} in this block). "
                "It has no score: leave it out or mend it."
            )

    def take(self, rows: Codes) -> Rows:
        """Some of the rows."""
        tokens = len(self.vectors) // max(self.n, 1)
        at = (rows[:, None] * tokens + np.arange(tokens)).ravel()
        side, every = self.source
        return Rows(
            len(rows),
            self.vectors[at],
            self.scaled[at],
            self.exponents[at],
            self.squares[at] if len(self.squares) else self.squares,
            None if self.mask is None else self.mask[rows],
            (side, rows + every.start if isinstance(every, slice) else every[rows]),
        )


class Dot:
    """The dot product."""

    def __init__(self, dims: int, rounding: Rounding):
        self.dims, self.rounding = dims, rounding

    def exact(self, q: Rows, d: Rows, i: Codes, j: Codes) -> Floats:
        """The definition of the score of some pairs of rows, before the last rounding."""
        sums = dot_sums(q.scaled, d.scaled, i, j)
        return sums if q.scaled.dtype == np.float32 else np.ldexp(sums, q.exponents[i] + d.exponents[j])

    def approximate(self, q: Rows, d: Rows, dtype: Any) -> Approximation:
        """All pairs by a product in a type, float32 or float64, with their error bounds (Eq. 29)."""
        if q.n <= FEW_QUERIES and q.vectors.dtype == dtype == np.float32:
            values = d.products_with(q)
        else:
            values = _product(q.vectors, d.vectors, dtype)
        row, doc = self._errors(q.norms, d.norms, dtype)
        return Approximation(self._in_range(values), row, doc)

    def _in_range(self, values: NDArray[Any]) -> NDArray[Any]:
        """Values, NaN where they lie beyond what the result can hold, so that the definition looks at them."""
        if values.dtype == np.float64 and self.rounding.eps:
            values[np.abs(values) > self.rounding.largest] = np.nan
        return values

    def to_filter(self, q: Rows, score: Floats) -> Floats:
        """Scores, (rows, any), on the scale of the filter."""
        return score

    def from_filter(self, q: Rows, row: Codes, value: Floats) -> Floats:
        """Values of the filter as scores; `row` has the query of each."""
        return value

    def _errors(self, q: Floats, d: Floats, dtype: Any, extra: float = 0.0, sums: int = 1) -> tuple[Floats, Floats]:
        """Eq. 29: the error of products in any order of additions, with or without fused multiply-adds.

        So many sums make a score. The flushed terms hold for a CPU that flushes subnormal operands or results to zero.
        """
        tiny = sums * float(np.finfo(dtype).smallest_normal)
        flushed = tiny * self.dims**0.5
        relative = relative_error(self.dims + 2, dtype) + extra
        return np.stack([relative * q + flushed, tiny * (self.dims + 1) + flushed * q]), d[None]


class Cosine(Dot):
    """The dot product over the square root of the product of the squared norms; 0 for a zero vector."""

    def exact(self, q: Rows, d: Rows, i: Codes, j: Codes) -> Floats:
        """S(q, d) / √(S(q, q)·S(d, d))."""
        both = np.sqrt(q.squares[i] * d.squares[j])
        return np.where(both == 0, 0.0, dot_sums(q.scaled, d.scaled, i, j) / both)

    def approximate(self, q: Rows, d: Rows, dtype: Any) -> Approximation:
        """Products of normalised queries with documents, times the inverse norms of these (Eq. 30)."""
        unit = _normalised(q, dtype)
        vectors, norms = _in_range(d, dtype)
        inverse = np.divide(1, norms, out=np.zeros_like(norms), where=norms > 0).astype(dtype)
        u = float(np.finfo(dtype).eps) / 2
        # The query is of length 1 but for rounding, hence the factor.
        bound = 1.01 * relative_error(self.dims + 2, dtype) + 8 * u + (self.dims + 2) * u * 2.0**-20
        row = np.stack([np.full(q.n, bound), np.zeros(q.n)])
        return Approximation(_product(unit, vectors, dtype), row, np.ones((1, d.n)), scale=inverse)


class Euclidean(Dot):
    """The distance with a minus sign, so that larger is better."""

    def exact(self, q: Rows, d: Rows, i: Codes, j: Codes) -> Floats:
        """−√Σ(q_k − d_k)²."""
        if q.vectors.dtype == d.vectors.dtype == np.float32:
            return 0.0 - np.sqrt(squared_distances(q.vectors, d.vectors, i, j))
        found = np.empty(len(i))
        for at in range(0, len(i), size := max(HELD // self.dims // 4, 1)):
            mine = slice(at, at + size)
            apart = q.vectors[i[mine]].astype(np.float64) - d.vectors[j[mine]]
            apart, exponent = _scaled(apart)
            rows = np.arange(len(apart))
            found[mine] = 0.0 - np.ldexp(np.sqrt(dot_sums(apart, apart, rows, rows)), exponent)
        return found

    def approximate(self, q: Rows, d: Rows, dtype: Any) -> Approximation:
        """q·d − ‖d‖²/2 (Eq. 31)."""
        u = float(np.finfo(dtype).eps) / 2
        row, _ = self._errors(q.norms, d.norms, dtype, extra=2 * u)
        doc = np.stack([d.norms, 2 * u * d.norms**2])
        half = np.ldexp(d.squares, 2 * d.exponents) / 2
        largest = q.norms + d.norms.max(initial=0.0)
        row[1] += (self.dims + 8) * 2.0**-52 * largest**2  # of the definition, and of to_filter
        return Approximation(_product(q.vectors, d.vectors, dtype), row, doc, offset=(-half).astype(dtype))

    def to_filter(self, q: Rows, score: Floats) -> Floats:
        """(‖q‖² − s²) / 2, where s is the distance with its sign."""
        return (np.ldexp(q.squares, 2 * q.exponents)[:, None] - np.minimum(score, 0) ** 2) / 2

    def from_filter(self, q: Rows, row: Codes, value: Floats) -> Floats:
        """−√(‖q‖² − 2x)."""
        return 0.0 - np.sqrt(np.maximum(np.ldexp(q.squares, 2 * q.exponents)[row] - 2 * value, 0.0))


class MaxSim(Dot):
    """For each token of the query its best match among the document's tokens, added up."""

    def __init__(self, dims: int, rounding: Rounding, tokens: tuple[int, int], native: bool):
        super().__init__(dims, rounding)
        self.tokens, self.native = tokens, native

    def exact(self, q: Rows, d: Rows, i: Codes, j: Codes) -> Floats:
        """Σ over query tokens, in their order, of the maximum over document tokens of S."""
        found, (left, right) = np.empty(len(i)), self.tokens
        for at in range(0, len(i), size := max(HELD // (left * right) // 4, 1)):
            a = i[at : at + size, None, None] * left + np.arange(left)[:, None]
            b = j[at : at + size, None, None] * right + np.arange(right)
            a, b = (np.ascontiguousarray(part).ravel() for part in np.broadcast_arrays(a, b))
            pairs = super().exact(q, d, a, b)
            pairs = (self.rounding(pairs) if self.native else pairs).reshape(-1, left, right)
            found[at : at + size] = self._reduced(pairs, q.mask, d.mask, i[at : at + size], j[at : at + size])
        return found

    @staticmethod
    def _reduced(pairs: Floats, q_mask: Any, d_mask: Any, i: Codes, j: Codes) -> Floats:
        if d_mask is not None:
            pairs = np.where(d_mask[j][:, None, :], pairs, -np.inf)
        best = pairs.max(2)
        if q_mask is not None:
            best = np.where(q_mask[i], best, 0.0)
        return np.cumsum(best, axis=1)[:, -1] + 0.0

    def approximate(self, q: Rows, d: Rows, dtype: Any) -> Approximation:
        """The same from one product of all tokens."""
        left, right = self.tokens
        pairs = _product(q.vectors, d.vectors, dtype).reshape(q.n, left, d.n, right)
        unknown = ~np.isfinite(pairs).all(3)  # a maximum would hide a product that overflowed
        if d.mask is not None:
            pairs = np.where(d.mask, pairs, -np.inf)
        best = np.where(unknown, np.nan, pairs.max(3)).astype(dtype)
        mask = np.ones((q.n, left), bool) if q.mask is None else q.mask
        best = np.where(mask[:, :, None], best, 0)
        norms = np.where(mask, q.norms.reshape(q.n, left), 0.0).sum(1)
        there = np.ones((d.n, right), bool) if d.mask is None else d.mask
        longest = np.where(there, d.norms.reshape(d.n, right), 0.0).max(1, initial=0.0)
        extra = relative_error(left + 2, dtype) + (2.0 * self.rounding.eps if self.native else 0.0)
        row, doc = self._errors(norms, longest, dtype, extra, sums=left)
        if self.native:  # below the normal numbers of a type its rounding is not relative
            row[1] += left * self.rounding.least_normal * self.rounding.eps
        return Approximation(best.sum(1), row, doc)


class WholeNumbers(Dot):
    """The dot product of small whole numbers, which every product gives exactly."""

    def _errors(self, q: Floats, d: Floats, dtype: Any, extra: float = 0.0, sums: int = 1) -> tuple[Floats, Floats]:
        return np.zeros((2, len(q))), np.zeros((1, len(d)))


class Hamming(WholeNumbers):
    """How many bits are equal, from the product of vectors of −1 and 1."""

    def exact(self, q: Rows, d: Rows, i: Codes, j: Codes) -> Floats:
        """(S + dims) / 2."""
        return (super().exact(q, d, i, j) + self.dims) / 2

    def to_filter(self, q: Rows, score: Floats) -> Floats:
        """2s − dims."""
        return 2 * score - self.dims

    def from_filter(self, q: Rows, row: Codes, value: Floats) -> Floats:
        """(x + dims) / 2."""
        return (value + self.dims) / 2


class WholeMaxSim(MaxSim):
    """Late interaction of small whole numbers."""

    _errors = WholeNumbers._errors


class HostScores:
    """Scores of queries against documents, for any rows of either."""

    def __init__(self, queries: Operand, docs: Operand, fn: str, precision: str):
        self.queries, self.docs, self.fn = queries, docs, fn
        self.types = Types(precision, fn, queries, docs)
        self.rounding = _rounding(self.types, queries)
        self.function = _function(self, fn)
        self.vector_type: Any = np.dtype(np.float64 if self.types.wide else np.float32)
        self.what = "scores"  # what they are called in messages
        self._zeros: dict[str, set[int]] = {"queries": set(), "documents": set()}

    # -- rows ---------------------------------------------------------------------------------------------------------

    def query_rows(self, rows: Any) -> Rows:
        """Some queries (a slice, or positions), prepared."""
        return self._rows(self.queries, rows, "queries")

    def doc_rows(self, rows: Any) -> Rows:
        """Some documents, prepared."""
        return self._rows(self.docs, rows, "documents")

    def _rows(self, operand: Operand, rows: Any, side: str) -> Rows:
        given = np.asarray(operand.take(rows))
        n = len(given)
        vectors = np.ascontiguousarray(given.reshape(-1, given.shape[-1]), dtype=self.vector_type)
        mask = None if operand.mask is None else np.asarray(operand.mask[rows])
        if mask is not None:
            vectors = np.where(mask.reshape(-1, 1), vectors, 0)  # what is masked need not be finite
        scaled, exponents = _scaled(vectors) if self.types.wide else (vectors, np.zeros(len(vectors), np.int64))
        squares = squared_norms(scaled) if self.fn in ("cosine", "euclidean") else np.zeros(0)
        found = Rows(n, vectors, scaled, exponents, squares, mask, (side, rows))
        if not np.isfinite(squares).all():
            found.check_finite()
        if self.fn == "cosine":
            zero = np.flatnonzero(squares == 0)
            self._zeros[side].update((zero + rows.start if isinstance(rows, slice) else rows[zero]).tolist())
            if self.types.low:
                vectors = self._normalised_low(vectors, squares)
                found = Rows(n, vectors, vectors, exponents, np.zeros(0), mask, (side, rows))
        return found

    def _normalised_low(self, vectors: NDArray[Any], squares: Floats) -> NDArray[Any]:
        """Vectors over their norms, both rounded to the low type, as a model's own normalisation does it."""
        norms = self.rounding(np.sqrt(squares))
        if not np.isfinite(norms).all():
            many = counted(int(np.count_nonzero(~np.isfinite(norms))), "vector has", "vectors have")
            raise InputError(
                f"{many} a norm too large for {self.rounding.name}. Use precision='float32' or scale the vectors."
            )
        found = np.where(norms[:, None] > 0, vectors / norms[:, None], 0.0)
        return np.ascontiguousarray(self.rounding(found), dtype=np.float32)

    def zero_vectors(self) -> dict[str, int]:
        """How many queries and documents had no direction, so that their cosine is 0."""
        return {side: len(rows) for side, rows in self._zeros.items()}

    # -- scores -------------------------------------------------------------------------------------------------------

    def approximate(self, q: Rows, d: Rows) -> Approximation:
        """Approximate scores of all pairs."""
        return self.function.approximate(q, d, self.vector_type)

    def exact(self, q: Rows, d: Rows, i: Codes, j: Codes) -> Floats:
        """The scores of some pairs of prepared rows by the definition, rounded."""
        return self._finite(self.rounding(self.function.exact(q, d, i, j)), q, d)

    def matrix(self, q: Rows, d: Rows, add: Floats | None = None) -> Floats:
        """The scores of all pairs of prepared rows, rounded, (queries, documents); `add` is added before rounding.

        They come from a product in float64. An interval around each value holds the sum of the definition; where both
        of its ends round to one value, that is the score.
        """
        near = self.function.approximate(q, d, np.float64)
        row = np.arange(q.n)[:, None]
        error = near.error(row, np.arange(d.n))
        ends = [self.function.from_filter(q, row, near.matrix + side * error) for side in (-1, 1)]
        ends = ends if add is None else [end + add for end in ends]  # rounding is monotone here too
        low, high = (self.rounding(end) for end in ends)
        known = np.isfinite(near.matrix) & np.isfinite(low) & (low == high) & (np.signbit(low) == np.signbit(high))
        i, j = np.nonzero(~known)
        if len(i):
            exact = self.function.exact(q, d, i, j)
            low[i, j] = self.rounding(exact if add is None else exact + np.broadcast_to(add, low.shape)[i, j])
        return self._finite(low, q, d)

    def pairs(self, query_rows: Codes, doc_rows: Codes) -> Floats:
        """The scores of any pairs of a query and a document, by the definition."""
        found = np.empty(len(query_rows))
        order = np.argsort(doc_rows, kind="stable")
        size = max(HELD // max(self.docs.dims * self.docs.tokens, 1), 1)
        distinct, place = np.unique(doc_rows[order], return_inverse=True)
        for at in range(0, len(distinct), size):
            docs = self.doc_rows(distinct[at : at + size])
            low, high = np.searchsorted(place, [at, at + size])
            for begin in range(low, high, step := max(HELD // max(self.queries.tokens, 1), 1)):
                mine = order[begin : min(begin + step, high)]
                queries, i = np.unique(query_rows[mine], return_inverse=True)
                q = self.query_rows(queries)
                found[mine] = self.exact(q, docs, i, place[begin : begin + len(mine)] - at)
        return found

    # -- errors -------------------------------------------------------------------------------------------------------

    def _finite(self, scores: Floats, q: Rows, d: Rows) -> Floats:
        odd = scores.size - np.count_nonzero(np.isfinite(scores))
        if odd:
            q.check_finite()
            d.check_finite()
            remedies = {"float64": "Scale", "float32": "Use precision='float64' or scale"}
            name = self.rounding.name
            remedy = remedies.get(name, "Use precision='float32' or scale")
            raise InputError(f"{odd:,} of the {self.what} are too large for {name}. {remedy} the vectors.")
        return scores


def relative_error(terms: int, dtype: Any) -> float:
    """c·γ of Eqs. 28 and 29 for so many roundings: of the approximation and, in float64, of the definition as well."""
    u = float(np.finfo(dtype).eps) / 2
    if terms * u >= 0.25:
        return float("inf")
    return (1.01 if dtype == np.float32 else 2.02) * terms * u / (1 - terms * u)


def most_near(docs: int) -> int:
    """Of so many documents, more near ones are better scored by a product in float64."""
    return max(docs // NEAR_SHARE, 64)


def _function(scores: HostScores, fn: str) -> Dot:
    dims, rounding, types = scores.queries.dims, scores.rounding, scores.types
    if fn == "maxsim":
        made = WholeMaxSim if types.exact else MaxSim
        return made(dims, rounding, (scores.queries.tokens, scores.docs.tokens), types.low)
    if fn == "hamming":
        return Hamming(dims, rounding)
    if fn == "cosine":
        return Dot(dims, rounding) if types.low else Cosine(dims, rounding)
    if fn == "euclidean":
        return Euclidean(dims, rounding)
    return WholeNumbers(dims, rounding) if types.exact else Dot(dims, rounding)


def _rounding(types: Types, queries: Operand) -> Rounding:
    if types.low:
        return to_low(queries.type_name, _low_cast(queries), finfo(queries.dtype))
    return to_float32() if types.result == "float32" and not types.exact else no_rounding()


def _low_cast(queries: Operand) -> Callable[[Floats], Floats]:
    """Rounding to a low type, by the library that has it."""
    lib = queries.lib

    def cast(x: Floats) -> Floats:
        single = x.astype(np.float32)
        if not isinstance(lib, Torch):
            return np.asarray(single.astype(queries.dtype), dtype=np.float64)
        rounded = lib.torch.from_numpy(np.ascontiguousarray(single)).to(queries.dtype)
        return np.asarray(rounded.double().numpy()).reshape(x.shape)

    return cast


def _product(a: NDArray[Any], b: NDArray[Any], dtype: Any) -> NDArray[Any]:
    return a.astype(dtype, copy=False) @ b.astype(dtype, copy=False).T


def _quick(few: NDArray[Any], rows: NDArray[Any]) -> tuple[NDArray[Any], Floats]:
    """Products in float32 of a few vectors with rows, and the squared norms of these, with rounding errors."""
    kernels = native("kernels")
    if kernels is None:
        return _product(few, rows, np.float32), np.einsum("ij,ij->i", rows, rows).astype(np.float64)
    products, squares = np.empty((len(few), len(rows)), np.float32), np.empty(len(rows))
    threads = threads_for(rows.size * (len(few) + 1))
    # Norms alone are found beside a product by BLAS, whose threads go on using their cores for a while.
    kernels.quick(few, rows, products, squares, threads if len(few) else -(-threads // 2))
    return products, squares


def _norm_bounds(x: NDArray[Any], squares: Floats) -> Floats:
    """Upper bounds of the norms of float32 rows, in place of their squares in float32.

    Squares that a float32 cannot hold with its usual precision are computed in float64.
    """
    if len(squares) and not (squares.min() > 1e-25 and squares.max() < 1e35):
        odd = np.flatnonzero(~((squares > 1e-25) & (squares < 1e35)))
        wide = x[odd].astype(np.float64)
        squares[odd] = np.einsum("ij,ij->i", wide, wide)
    np.sqrt(squares, out=squares)
    squares *= 1 + (x.shape[1] + 4) * 2.0**-24
    return squares


def _scaled(x: NDArray[np.float64]) -> tuple[NDArray[np.float64], Codes]:
    """Rows times 2^-e, so that their largest value lies between ½ and 1, and e."""
    largest = np.abs(x).max(1, initial=0.0)
    exponents = np.where(np.isfinite(largest), np.frexp(np.where(np.isfinite(largest), largest, 1.0))[1], 0)
    return np.ldexp(x, -exponents[:, None]), exponents.astype(np.int64)


def _normalised(q: Rows, dtype: Any) -> NDArray[Any]:
    """Rows over their norms; zero vectors stay zero."""
    norms = np.sqrt(q.squares)[:, None]
    return np.where(norms > 0, q.scaled / norms, 0.0).astype(dtype)


def _in_range(d: Rows, dtype: Any) -> tuple[NDArray[Any], Floats]:
    """Rows and norms; rows that are very long or very short are scaled by a power of two."""
    norms = np.sqrt(d.squares)
    if d.scaled.dtype == np.float64:
        return d.scaled, norms
    least, most = SAFE_NORMS[np.dtype(dtype)]
    odd = np.flatnonzero((norms > 0) & ~((norms > least) & (norms < most)))
    if not len(odd):
        return d.scaled, norms
    vectors, norms = d.scaled.copy(), norms.copy()
    wide, exponents = _scaled(d.scaled[odd].astype(np.float64))
    vectors[odd], norms[odd] = wide, np.ldexp(norms[odd], -exponents)
    return vectors, norms
