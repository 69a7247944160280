"""The functions of a query and a document: dot, cosine, Euclidean, late interaction, Hamming.

Each has two steps. `prepared` makes rows ready, once for a tile, and finds what belongs to them (norms, squares, a
mask); `combined` scores all pairs of two prepared tiles. Larger is better in all of them.
"""

from __future__ import annotations

from typing import NamedTuple

from tiewise.errors import InputError
from tiewise.scoring.arithmetic import Arithmetic
from tiewise.scoring.arrays import Array, Library
from tiewise.scoring.operands import Operand

__all__ = ["PAIRWISE", "Similarity", "Tile", "check_pairwise"]


class Tile(NamedTuple):
    """Rows made ready for the product, and what belongs to them."""

    vectors: Array
    beside: Array | None
    rows: int  # how many of the tile's rows are real; the others are zeros


class Similarity:
    """The dot product."""

    def __init__(self, lib: Library, arithmetic: Arithmetic, queries: Operand, docs: Operand):
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
    are divided by their norms first and both are rounded, as a model's own normalisation does it.
    """

    def prepared(self, x: Array, mask: Array | None) -> tuple[Array, Array | None]:
        """Rows, and their norms."""
        ours, xp = self.arithmetic, self.lib.xp
        norm = self.lib.norms(x, ours.compute)
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
    """The distance with a minus sign."""

    def prepared(self, x: Array, mask: Array | None) -> tuple[Array, Array | None]:
        """Rows, and their squared norms."""
        x = self.arithmetic.wide(x)
        return x, (x * x).sum(-1)

    def combined(self, left: Tile, right: Tile) -> Array:
        """−‖q − d‖ from ‖q‖² + ‖d‖² − 2q·d, in float64."""
        assert left.beside is not None and right.beside is not None
        square = left.beside[:, None] + right.beside - 2 * self.lib.product(left.vectors, right.vectors)
        return self.arithmetic.rounded(-self.lib.xp.sqrt(self.lib.xp.clip(square, 0, None)))


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


#: The functions of a query and a document by name.
PAIRWISE: dict[str, type[Similarity]] = {
    "dot": Similarity,
    "cosine": Cosine,
    "euclidean": Euclidean,
    "maxsim": MaxSim,
    "hamming": Hamming,
}


def check_pairwise(fn: str) -> None:
    """Raise if there is no such function of two operands."""
    if fn not in PAIRWISE:
        raise InputError(f"Unknown score function {fn!r} of two operands. Use one of: {', '.join(PAIRWISE)}.")


def _or_one(xp: object, norm: Array) -> Array:
    """Norms, with 1 for those that are 0, so that they divide."""
    return xp.where(norm > 0, norm, xp.ones_like(norm))  # type: ignore[attr-defined]
