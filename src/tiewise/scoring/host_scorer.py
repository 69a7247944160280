"""Exact scores of vectors in main memory: approximate scores decide, the definition where they cannot.

`tiewise.scoring.host_functions` has both for each score function.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tiewise.data.columns import Floats
from tiewise.data.native import native
from tiewise.errors import InputError
from tiewise.results.wording import count_noun
from tiewise.scoring.approximate import ApproximateScores
from tiewise.scoring.backends import Array, TorchBackend
from tiewise.scoring.blocks import Blocks, Scorer
from tiewise.scoring.definition import (
    KERNEL_LAYOUT,
    HalfRows,
    Rounding,
    SparseRows,
    float32_rounding,
    rounding_to,
    score_rounding,
)
from tiewise.scoring.host_functions import FUNCTIONS, Dot, VectorBlock, scale_rows
from tiewise.scoring.operands import Operand
from tiewise.scoring.spans import Indices, Rows

#: How many numbers of document vectors are copied at a time, to convert them or to score scattered pairs.
CHUNK = 2**24

#: The usual number of queries and documents in a block.
QUERIES, DOCUMENTS = 256, 16_384

#: How many times more documents a block has for few queries.
MAX_FACTOR = 64

#: If more than one in this number of documents of a block is near a threshold, all are scored by a float64 product.
NEAR_SHARE = 8


class HostScorer(Scorer):
    """Scores in main memory. They have the bits of the definition."""

    def __init__(self, queries: Operand, docs: Operand, fn: str, precision: str, score_dtype: str | None = None):
        super().__init__(queries, docs, fn, precision)
        self.rounding = self._make_rounding(score_dtype)
        # In low precision, vectors are normalised before they are multiplied.
        function = Dot if fn == "cosine" and self.types.low else FUNCTIONS[fn]
        self.function = function(queries.dims, docs.terms, self.rounding, self.types.integer, self.types.low)
        self.vector_dtype: Any = np.dtype(np.float64 if self.types.wide else np.float32)
        #: Whether documents in bfloat16 or float16 are not converted before they are scored.
        self.keeps_half = (
            docs.dtype_name in ("bfloat16", "float16")
            and not self.types.wide
            and not (fn == "cosine" and self.types.low)
            and native("kernels") is not None
        )
        self.result_name = "scores"  # for messages

    def _make_rounding(self, score_dtype: str | None) -> Rounding:
        if score_dtype is not None:
            return score_rounding(score_dtype)
        if self.types.low:
            return _low_precision_rounding(self.queries)
        if self.types.result == "float32" and not self.types.integer:
            return float32_rounding()
        return Rounding("float64", lambda x: x)

    # -- vectors ------------------------------------------------------------------------------------------------------

    def query_block(self, rows: Rows) -> VectorBlock:
        """Some queries, prepared."""
        return self._prepare(self.queries, rows, "queries")

    def doc_block(self, rows: Rows) -> VectorBlock:
        """Some documents, prepared."""
        return self._prepare(self.docs, rows, "documents")

    def _prepare(self, operand: Operand, rows: Rows, side: str) -> VectorBlock:
        given = operand.take_half(rows) if self.keeps_half and side == "documents" else operand.take(rows)
        if self.fn == "hamming":
            words = _as_words(np.asarray(given))
            n = len(words)
            return VectorBlock(n, words, words, np.zeros(n, np.int64), np.arange(n + 1), side, rows)
        vectors, offsets = self._to_vectors(operand, given, rows, side)
        if not self.types.wide:
            scaled, exponents = vectors, np.zeros(len(vectors), np.int64)
        else:
            scaled, exponents = vectors.scale_rows() if isinstance(vectors, SparseRows) else scale_rows(vectors)
        known = self._known_squares(operand, rows) if side == "documents" else None
        block = VectorBlock(len(offsets) - 1, vectors, scaled, exponents, offsets, side, rows, known)
        if self.fn == "cosine" and self.types.low:
            unit = self._normalise_in_low_precision(vectors, block.squared_norms)
            return VectorBlock(block.n, unit, unit, exponents, offsets, side, rows)
        return block

    def _to_vectors(self, operand: Operand, given: Any, rows: Rows, side: str) -> tuple[Any, Indices]:
        """Vectors, one after the other, and where those of each row start. Tokens that do not count are left out."""
        if operand.is_sparse:
            sparse = SparseRows(given.astype(self.vector_dtype, copy=False))
            vectors = sparse if side == "documents" else sparse.matrix.toarray()
            return vectors, np.arange(given.shape[0] + 1)
        given = np.asarray(given)
        flat = given.reshape(-1, given.shape[-1])
        keeps_half = self.keeps_half and side == "documents"
        vectors = HalfRows(flat) if keeps_half else np.require(flat, self.vector_dtype, KERNEL_LAYOUT)
        if operand.lengths is not None:
            return vectors, np.concatenate([[0], np.cumsum(operand.lengths[rows])])
        if operand.mask is None:
            return vectors, np.arange(len(given) + 1) * operand.tokens
        mask = np.asarray(operand.mask[rows])
        return vectors[mask.ravel()], np.concatenate([[0], np.cumsum(mask.sum(1))])

    def _known_squares(self, docs: Operand, rows: Rows) -> Floats | None:
        """The squared norms of some documents from earlier calls, NaN where there are none; for one vector a row."""
        if docs.tokens > 1 or docs.lengths is not None or not isinstance(rows, slice):
            return None
        key = f"squares, {self.vector_dtype}"
        if key not in docs.prepared:
            docs.prepared[key] = np.full(docs.n, np.nan)
        return docs.prepared[key][rows]

    def _normalise_in_low_precision(self, vectors: NDArray[Any], squares: Floats) -> NDArray[Any]:
        """Vectors over their norms, both rounded to low precision, as a model normalises its output."""
        norms = self.rounding(np.sqrt(squares))
        if not np.isfinite(norms).all():
            number = count_noun(int(np.count_nonzero(~np.isfinite(norms))), "vector has", "vectors have")
            raise InputError(
                f"{number} a norm too large for {self.rounding.name}. Use precision='float32' or scale the vectors."
            )
        unit = np.where(norms[:, None] > 0, vectors / norms[:, None], 0.0)
        return np.ascontiguousarray(self.rounding(unit), dtype=np.float32)

    def block_sizes(self, n_queries: int, block: int | None, query_block: int | None) -> tuple[int, int]:
        """The number of queries and of documents in a block."""
        query_size = query_block or max(QUERIES // self.queries.tokens, 1)
        # Few queries have few scores, so that their blocks may have more documents.
        factor = min(max(QUERIES // max(min(query_size, n_queries), 1), 1), MAX_FACTOR)
        docs = self.docs.storage
        is_matrix = docs.array is not None and docs.array.ndim == 2 and not docs.backend.on_device
        is_converted = docs.dtype_name != self.vector_dtype.name and not self.keeps_half
        if self.fn != "hamming" and (is_converted or not is_matrix):
            factor = min(factor, max(CHUNK // (DOCUMENTS * docs.dims), 1))  # they are copied
        return query_size, block or max(DOCUMENTS * factor // self.docs.tokens, 1)

    # -- scores -------------------------------------------------------------------------------------------------------

    def approximate(self, q: VectorBlock, d: VectorBlock) -> ApproximateScores:
        """Approximate scores of all pairs."""
        scores = self.function.approximate(q, d, self.vector_dtype)
        self._find_zero_rows(q, d)
        return scores

    def exact_scores(self, q: VectorBlock, d: VectorBlock, i: Indices, j: Indices) -> Floats:
        """The scores of some pairs by the definition."""
        self._find_zero_rows(q, d)
        return self._check_finite(self.rounding(self.function.exact(q, d, i, j)), q, d)

    def exact_matrix(self, q: VectorBlock, d: VectorBlock, bias: Floats | None = None) -> Floats:
        """The scores of all pairs, (queries, documents); `bias` is added before rounding.

        They come from a product in float64. An interval around each value holds the sum of the definition. Where both
        ends of it round to the same value, that is the score.
        """
        approximate = self.function.approximate(q, d, np.float64)
        self._find_zero_rows(q, d)
        row = np.arange(q.n)[:, None]
        error = approximate.error(row, np.arange(d.n))
        ends = [self.function.from_filter(q, row, approximate.matrix + sign * error) for sign in (-1, 1)]
        ends = ends if bias is None else [end + bias for end in ends]  # addition is monotone
        low, high = (self.rounding(end) for end in ends)
        decided = np.isfinite(approximate.matrix) & np.isfinite(low) & (low == high)
        i, j = np.nonzero(~(decided & (np.signbit(low) == np.signbit(high))))
        if len(i):
            exact = self.function.exact(q, d, i, j)
            low[i, j] = self.rounding(exact if bias is None else exact + np.broadcast_to(bias, low.shape)[i, j])
        return self._check_finite(low, q, d)

    def score_pairs(self, queries: Indices, query: Indices, doc: Indices) -> Floats:
        """The scores of any pairs, by the definition."""
        scores, order = np.empty(len(query)), np.argsort(doc, kind="stable")
        size = max(CHUNK // max(self.docs.dims * self.docs.tokens, 1), 1)
        distinct, position = np.unique(doc[order], return_inverse=True)
        for start in range(0, len(distinct), size):
            docs = self.doc_block(distinct[start : start + size])
            low, high = np.searchsorted(position, [start, start + size])
            for begin in range(low, high, step := max(CHUNK // max(self.queries.tokens, 1), 1)):
                pairs = order[begin : min(begin + step, high)]
                rows, i = np.unique(queries[query[pairs]], return_inverse=True)
                j = position[begin : begin + len(pairs)] - start
                scores[pairs] = self.exact_scores(self.query_block(rows), docs, i, j)
        return scores

    def score_all(self, bias: Floats | None = None) -> Array:
        """The scores of all pairs; `bias`, one number for each query, is added before rounding."""
        scores = np.empty((self.queries.n, self.docs.n), self.types.result)
        blocks = Blocks(self, self.queries.n)
        queries = [self.query_block(rows) for rows in blocks.queries]
        for span in blocks.docs:
            docs = self.doc_block(span)
            for rows, block in zip(blocks.queries, queries, strict=True):
                scores[rows, span] = self.exact_matrix(block, docs, None if bias is None else bias[rows, None])
        backend = self.queries.backend
        array = backend.torch.from_numpy(scores) if isinstance(backend, TorchBackend) else scores
        return self.to_result_type(array, backend)

    def _find_zero_rows(self, *blocks: VectorBlock) -> None:
        """Remember zero vectors, for the warning; they have norms of 0 in low precision too."""
        if self.fn == "cosine":
            for block in blocks:
                self._add_zero_rows(block.side, block.rows, block.is_zero)

    def _check_finite(self, scores: Floats, q: VectorBlock, d: VectorBlock) -> Floats:
        too_large = scores.size - np.count_nonzero(np.isfinite(scores))
        if too_large:
            q.check_finite()
            d.check_finite()
            name = self.rounding.name
            raise InputError(
                f"{too_large:,} of the {self.result_name} are too large for {name}. {overflow_remedy(name)}"
            )
        return scores


def _as_words(packed: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Rows of bytes as rows of words of 64 bits, filled with 0."""
    missing = -packed.shape[1] % 8
    padded = np.pad(packed, [(0, 0), (0, missing)]) if missing else np.ascontiguousarray(packed)
    return np.require(padded.view(np.uint64), requirements=KERNEL_LAYOUT)


def max_near(docs: int) -> int:
    """If more documents of a block are near, a product in float64 is faster than the definition."""
    return max(docs // NEAR_SHARE, 64)


def overflow_remedy(dtype_name: str) -> str:
    """What to do if scores are too large for a type."""
    remedies = {"float64": "Scale", "float32": "Use precision='float64' or scale", "float8": "Use fn='cosine' or scale"}
    remedy = remedies.get(dtype_name, "Use precision='float32' or scale")
    return f"{remedy} the vectors."


def _low_precision_rounding(queries: Operand) -> Rounding:
    """The rounding to the type of the queries, by the library that has the type."""
    backend, dtype = queries.backend, queries.dtype
    if not isinstance(backend, TorchBackend):
        return rounding_to(dtype, queries.dtype_name)

    def cast(x: Floats) -> Floats:
        rounded = backend.torch.from_numpy(np.ascontiguousarray(x.astype(np.float32))).to(dtype)
        return np.asarray(rounded.double().numpy()).reshape(x.shape)

    return Rounding(queries.dtype_name, cast, backend.torch.finfo(dtype))
