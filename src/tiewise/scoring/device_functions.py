"""The score functions on a device: dot, cosine, Euclidean, late interaction, Hamming.

Each has two steps. `prepare` converts rows, once for a tile, and says how to compute what belongs to them (norms,
squares, a mask); `combine` scores all pairs of two prepared tiles. Larger is better in all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tiewise.caching import cached_property
from tiewise.scoring.backends import Array, TorchBackend
from tiewise.scoring.operands import Operand, ScoreTypes
from tiewise.scoring.spans import Rows

#: A square below this part of ‖q‖² + ‖d‖² is computed again, from the difference of the vectors.
CANCELLATION = 1e-6

#: How many numbers are subtracted at a time for that.
DIFFERENCES = 2**20


class Arithmetic:
    """The types of one computation on a device.

    `compute_dtype` is the type of intermediate results, `out_dtype` that of the scores (float32 or float64), and
    `low_dtype` the low precision to which scores are rounded, or None.
    """

    def __init__(self, backend: TorchBackend, types: ScoreTypes, fn: str, queries: Operand, docs: Operand):
        self.backend = backend
        # For vectors that are close together |q|² + |d|² − 2q·d cancels; float32 would leave little but noise.
        wide = types.wide or types.result == "float64" or fn == "euclidean"
        self.low_dtype: Any = backend.dtype(queries.dtype_name) if types.low else None
        self.compute_dtype = backend.dtype("float64" if wide else "float32")
        self.out_dtype = backend.dtype(types.result)
        #: Whether low-precision vectors are multiplied as they are, with sums and results in float32.
        self.float32_output = not wide and backend.has_float32_output(queries.dtype_name, docs.dtype_name)

    def to_factor(self, x: Array) -> Array:
        """Vectors in the type in which they are multiplied."""
        low = self.low_dtype is not None and self.backend.supports_matmul(x.dtype)
        return x if self.float32_output or low else self.widen(x)

    def widen(self, x: Array) -> Array:
        """Values in the computing type."""
        return self.backend.cast(x, self.compute_dtype)

    def product(self, a: Array, b: Array) -> Array:
        """All dot products of the rows of two matrices from `to_factor`, in the computing type."""
        if self.low_dtype is not None and a.dtype == b.dtype and self.backend.supports_matmul(a.dtype):
            return self.widen(self.backend.torch.mm(a, b.T))
        return self.round(self.backend.product(a, b))

    def round(self, x: Array) -> Array:
        """Values rounded to the low precision, if there is one."""
        return x if self.low_dtype is None else self.widen(self.backend.cast(x, self.low_dtype))


class Tile:
    """Prepared vectors of `n` rows, and what belongs to them; zeros behind them fill the tile."""

    def __init__(self, rows: Rows, n: int, vectors: Array, compute_extra: Callable[[], Array | None]):
        self.rows, self.n, self.vectors, self._compute_extra = rows, n, vectors, compute_extra

    @cached_property
    def extra(self) -> Any:
        """Norms, squares, a mask or None; computed at the first use, so that a product can be started before."""
        return self._compute_extra()


class Dot:
    """The dot product."""

    def __init__(self, backend: TorchBackend, arithmetic: Arithmetic, queries: Operand, docs: Operand):
        self.backend, self.arithmetic, self.queries, self.docs = backend, arithmetic, queries, docs

    @property
    def is_product(self) -> bool:
        """Whether scores are products, perhaps times a factor for each query and each document (`factors`)."""
        return type(self) in (Dot, Cosine) and self.arithmetic.low_dtype is None

    def factors(self, extra: Array) -> Array | None:
        """The factors of products from what belongs to the rows, if there are any."""
        return None

    def prepare(self, x: Array, mask: Array | None) -> tuple[Array, Callable[[], Array | None]]:
        """Rows for the product, and a function that computes what belongs to them."""
        return self.arithmetic.to_factor(x), lambda: None

    def combine(self, left: Tile, right: Tile) -> Array:
        """The scores of all pairs of two tiles."""
        return self.arithmetic.product(left.vectors, right.vectors)

    def combine_into(self, out: Array, left: Tile, right: Tile) -> None:
        """Write the scores of all pairs of two tiles into `out`."""
        if not (type(self) is Dot and self.is_product and self.backend.product_into(out, left.vectors, right.vectors)):
            out[...] = self.combine(left, right)


class Cosine(Dot):
    """The dot product over the norms; 0 for a zero vector.

    The product is multiplied with the inverse norms, first that of the document, so that low-precision vectors are
    multiplied as they are. In native precision vectors are divided by their norms first and both are rounded, as a
    model normalises its output. A norm that overflows is an error.
    """

    def prepare(self, x: Array, mask: Array | None) -> tuple[Array, Callable[[], Array | None]]:
        """Rows, and their norms."""
        arithmetic = self.arithmetic
        if arithmetic.low_dtype is None:
            return arithmetic.to_factor(x), lambda: self._norms(x)
        norm = self._norms(x)
        unit = arithmetic.widen(x) / arithmetic.round(_zero_to_one(norm))[:, None]
        return arithmetic.to_factor(self.backend.cast(unit, arithmetic.low_dtype)), lambda: norm

    def _norms(self, x: Array) -> Array:
        """The norms of rows, NaN where they overflow: a product over infinity would look like 0."""
        # Without a wider copy of the rows where torch supports their type.
        rows = x if self.backend.supports_matmul(x.dtype) else self.arithmetic.widen(x)
        norm = self.backend.torch.linalg.vector_norm(rows, dim=-1, dtype=self.arithmetic.compute_dtype)
        return norm.add(norm, alpha=0)

    def combine(self, left: Tile, right: Tile) -> Array:
        """Products over norms."""
        product = self.arithmetic.product(left.vectors, right.vectors)
        if self.arithmetic.low_dtype is not None:
            return product
        return product * self.factors(right.extra) * self.factors(left.extra)[:, None]

    def factors(self, extra: Array) -> Array:
        """Inverse norms."""
        return _zero_to_one(extra).reciprocal()


def _zero_to_one(norm: Array) -> Array:
    """Norms with 1 in place of 0, so that they can divide."""
    return norm + (norm == 0)


class Euclidean(Dot):
    """The negative distance.

    It comes from one product, ‖q‖² + ‖d‖² − 2q·d. For vectors that are close together this difference is mostly
    rounding error, so there the square is computed again, from q − d.
    """

    def prepare(self, x: Array, mask: Array | None) -> tuple[Array, Callable[[], Array | None]]:
        """Rows, and their squared norms."""
        x = self.arithmetic.widen(x)
        return x, lambda: (x * x).sum(-1)

    def combine(self, left: Tile, right: Tile) -> Array:
        """−‖q − d‖, in float64."""
        both = left.extra[:, None] + right.extra
        square = both - 2 * self.backend.product(left.vectors, right.vectors)
        rows, columns = self.backend.torch.nonzero(square < CANCELLATION * both, as_tuple=True)
        size = max(DIFFERENCES // self.queries.dims, 1)
        for start in range(0, len(rows), size):
            i, j = rows[start : start + size], columns[start : start + size]
            square[i, j] = self._squared_distances(left.vectors[i], right.vectors[j], size)
        return self.arithmetic.round(0 - self.backend.xp.sqrt(square))

    def _squared_distances(self, a: Array, b: Array, size: int) -> Array:
        """Σ(a − b)² of each row; always for `size` rows, because a device chooses a kernel by their number."""
        difference = a - b
        if len(difference) < size:
            padding = self.backend.zeros((size - len(difference), difference.shape[1]), difference.dtype)
            difference = self.backend.torch.cat([difference, padding])
        return (difference * difference).sum(-1)[: len(a)]


class MaxSim(Dot):
    """For each token of the query its best match among the tokens of the document, added up."""

    def prepare(self, x: Array, mask: Array | None) -> tuple[Array, Callable[[], Array | None]]:
        """The token vectors of all rows, and the mask."""
        return self.arithmetic.to_factor(x.reshape(-1, x.shape[-1])), lambda: mask

    def combine(self, left: Tile, right: Tile) -> Array:
        """Σ over query tokens of the maximum over document tokens."""
        xp = self.backend.xp
        product = self.arithmetic.product(left.vectors, right.vectors)
        n_docs = len(right.vectors) // self.docs.tokens
        product = product.reshape(-1, self.queries.tokens, n_docs, self.docs.tokens)
        product = product + 0 * product  # NaN where it overflowed: a maximum would hide infinity
        if right.extra is not None:
            product = xp.where(right.extra, product, xp.full_like(product[:1, :1, :1, :1], -float("inf")))
        best = xp.amax(product, -1)  # (queries, query tokens, documents)
        if left.extra is not None:
            best = xp.where(left.extra[:, :, None], best, xp.zeros_like(best[:1, :1, :1]))
        return self.arithmetic.round(best.sum(1))


class Hamming(Dot):
    """The number of equal bits: dimensions less the Hamming distance."""

    def combine(self, left: Tile, right: Tile) -> Array:
        """Equal bits from the product of −1 and 1, exactly."""
        return (self.arithmetic.product(left.vectors, right.vectors) + self.queries.dims) / 2


DEVICE_FUNCTIONS: dict[str, type[Dot]] = {
    "dot": Dot,
    "cosine": Cosine,
    "euclidean": Euclidean,
    "maxsim": MaxSim,
    "hamming": Hamming,
}
