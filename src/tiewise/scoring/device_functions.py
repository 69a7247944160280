"""The functions of a query and a document on a device: dot, cosine, Euclidean, late interaction, Hamming.

Each has two steps. `prepared` makes rows ready, once for a tile, and finds what belongs to them (norms, squares, a
mask); `combined` scores all pairs of two prepared tiles. Larger is better in all of them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tiewise.scoring.arrays import Array, Torch
from tiewise.scoring.operands import Operand
from tiewise.scoring.precisions import Types

__all__ = ["DEVICE_FUNCTIONS", "Arithmetic", "Similarity", "Tile"]

#: From how small a part of ‖q‖² + ‖d‖² on a square that comes from their difference is computed again.
CANCELLED = 1e-6

#: How many numbers are subtracted at a time where that is done.
DIFFERENCES = 2**20


class Arithmetic:
    """The types of one computation on a device.

    `compute` is the type of what is computed, `held` that of the scores it ends in (float32 or float64), and `native`
    the low type to which scores are rounded, None where there is none.
    """

    def __init__(self, lib: Torch, types: Types, fn: str, left: Operand, right: Operand):
        self.lib = lib
        # Near vectors: |q|² + |d|² − 2q·d cancels, so that float32 would leave little but noise.
        wide = types.wide or types.result == "float64" or fn == "euclidean"
        self.native: Any = lib.dtype(left.type_name) if types.low else None
        self.compute = lib.dtype("float64" if wide else "float32")
        self.held = lib.dtype(types.result)
        self.fused = not wide and lib.fuses(left.type_name, right.type_name)

    def ready(self, x: Array) -> Array:
        """Vectors in the type in which the product takes them."""
        own = self.native is not None and self.lib.multiplies(x.dtype)
        return x if self.fused or own else self.lib.cast(x, self.compute)

    def wide(self, x: Array) -> Array:
        """Values in the computing type."""
        return self.lib.cast(x, self.compute)

    def product(self, a: Array, b: Array) -> Array:
        """All dot products of the rows of two matrices made ready, in the computing type."""
        own = None if self.native is None else self.lib.own_product(a, b)
        return self.rounded(self.lib.product(a, b)) if own is None else self.wide(own)

    def rounded(self, x: Array) -> Array:
        """Values rounded to the native type, if there is one."""
        return x if self.native is None else self.wide(self.lib.cast(x, self.native))


class Tile(NamedTuple):
    """Rows made ready for the product, and what belongs to them."""

    vectors: Array
    beside: Array | None
    rows: int  # how many of the tile's rows are real; the others are zeros


class Similarity:
    """The dot product."""

    def __init__(self, lib: Torch, arithmetic: Arithmetic, queries: Operand, docs: Operand):
        self.lib, self.arithmetic, self.queries, self.docs = lib, arithmetic, queries, docs

    def prepared(self, x: Array, mask: Array | None) -> tuple[Array, Array | None]:
        """Rows ready for the product, and what belongs to them."""
        return self.arithmetic.ready(x), None

    def combined(self, left: Tile, right: Tile) -> Array:
        """The scores of all pairs of two tiles."""
        return self.arithmetic.product(left.vectors, right.vectors)

    def combine_into(self, room: Array, left: Tile, right: Tile) -> None:
        """Write the scores of all pairs of two tiles to where they belong."""
        plain = type(self) is Similarity and self.arithmetic.native is None
        if not (plain and self.lib.product_into(room, left.vectors, right.vectors)):
            room[...] = self.combined(left, right)


class Cosine(Similarity):
    """The dot product over the norms; 0 for a zero vector.

    The norms divide the product, so that low-precision vectors are multiplied as they are. In native precision vectors
    are divided by their norms first and both are rounded, as a model's own normalisation does it. A norm that overflows
    is an error.
    """

    def prepared(self, x: Array, mask: Array | None) -> tuple[Array, Array | None]:
        """Rows, and their norms."""
        ours, xp = self.arithmetic, self.lib.xp
        norm = self.lib.norms(x, ours.compute)
        norm = norm + 0 * norm  # no number where it overflowed: a product over infinity would pass for 0
        if ours.native is not None:
            x = self.lib.cast(ours.wide(x) / ours.rounded(_or_one(xp, norm))[:, None], ours.native)
        return ours.ready(x), norm

    def combined(self, left: Tile, right: Tile) -> Array:
        """Products over norms."""
        product, xp = self.arithmetic.product(left.vectors, right.vectors), self.lib.xp
        if self.arithmetic.native is not None:
            return product
        return product / _or_one(xp, left.beside)[:, None] / _or_one(xp, right.beside)


class Euclidean(Similarity):
    """The distance with a minus sign.

    It comes from one product, ‖q‖² + ‖d‖² − 2q·d. Of near vectors that difference leaves little but rounding, so there
    the square is computed once more, from q − d itself.
    """

    def prepared(self, x: Array, mask: Array | None) -> tuple[Array, Array | None]:
        """Rows, and their squared norms."""
        x = self.arithmetic.wide(x)
        return x, (x * x).sum(-1)

    def combined(self, left: Tile, right: Tile) -> Array:
        """−‖q − d‖, in float64."""
        assert left.beside is not None and right.beside is not None
        both = left.beside[:, None] + right.beside
        square = both - 2 * self.lib.product(left.vectors, right.vectors)
        near = self.lib.where(square < CANCELLED * both)
        size = max(DIFFERENCES // self.queries.dims, 1)
        for at in range(0, len(near[0]), size):
            rows, columns = near[0][at : at + size], near[1][at : at + size]
            square[rows, columns] = self._squares(left.vectors[rows], right.vectors[columns], size)
        return self.arithmetic.rounded(0 - self.lib.xp.sqrt(square))

    def _squares(self, a: Array, b: Array, size: int) -> Array:
        """Σ(a − b)², a row at a time; on a device always of as many rows, as it picks a kernel by their number."""
        apart = a - b
        if len(apart) < size:
            apart = self.lib.joined([apart, self.lib.zeros((size - len(apart), apart.shape[1]), apart.dtype)])
        return (apart * apart).sum(-1)[: len(a)]


class MaxSim(Similarity):
    """For each token of the query its best match among the document's tokens, added up."""

    def prepared(self, x: Array, mask: Array | None) -> tuple[Array, Array | None]:
        """Token vectors one after another, and the mask."""
        return self.arithmetic.ready(x.reshape(-1, x.shape[-1])), mask

    def combined(self, left: Tile, right: Tile) -> Array:
        """Σ over query tokens of the maximum over document tokens."""
        xp = self.lib.xp
        product = self.arithmetic.product(left.vectors, right.vectors)
        every = product.reshape(-1, self.queries.tokens, len(right.vectors) // self.docs.tokens, self.docs.tokens)
        every = every + 0 * every  # no number where it overflowed: a maximum would hide it
        if right.beside is not None:
            every = xp.where(right.beside, every, xp.full_like(every[:1, :1, :1, :1], -float("inf")))
        best = xp.amax(every, -1)  # (queries, query tokens, documents)
        if left.beside is not None:
            best = xp.where(left.beside[:, :, None], best, xp.zeros_like(best[:1, :1, :1]))
        return self.arithmetic.rounded(best.sum(1))


class Hamming(Similarity):
    """How many bits are equal: dimensions less the Hamming distance."""

    def combined(self, left: Tile, right: Tile) -> Array:
        """Equal bits from the product of −1 and 1, exactly."""
        return (self.arithmetic.product(left.vectors, right.vectors) + self.queries.dims) / 2


#: The functions by name.
DEVICE_FUNCTIONS: dict[str, type[Similarity]] = {
    "dot": Similarity,
    "cosine": Cosine,
    "euclidean": Euclidean,
    "maxsim": MaxSim,
    "hamming": Hamming,
}


def _or_one(xp: Any, norm: Array) -> Array:
    """Norms, with 1 for those that are 0, so that they divide."""
    return xp.where(norm == 0, xp.ones_like(norm), norm)
