"""In which type scores are computed, and what is rounded where.

``"float32"`` and ``"float64"`` compute in that type or, if the operands are wider, in theirs, and round the score once.
``"native"`` reproduces what a model running in the operands' own low precision would give: products are added up in
float32 and rounded to the operands' type, and so is every later step. Products of whole numbers are exact in all three.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from tiewise.errors import InputError
from tiewise.scoring.arrays import Array, Library, is_integer, is_low
from tiewise.scoring.operands import Operand

__all__ = ["PRECISIONS", "Arithmetic", "check_precision"]

PRECISIONS = ("float32", "float64", "native")
SMALL = ("bool", "int8", "uint8")  # whole numbers whose products can be exact in float32


class Arithmetic:
    """The types of one computation.

    `compute` is the type of what is computed, `held` that of the scores it ends in (float32 or float64), and `native`
    the low type on whose grid ``"native"`` scores lie, None where there is none to round to.
    """

    def __init__(self, lib: Library, precision: str, fn: str, left: Operand, right: Operand):
        check_precision(precision)
        names = lib.name(left.dtype), lib.name(right.dtype)
        self.lib = lib
        self.exact, wide, held_wide = _widths(fn, precision, names, left.dims * left.tokens)
        own = precision == "native" and names[0] == names[1] and is_low(names[0])
        self.native: Any = left.dtype if own else None
        self.compute = lib.dtype("float64" if wide else "float32")
        self.held = lib.dtype("float64" if held_wide else "float32")
        self.fused = not wide and lib.fuses(*names)

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
        """Values on the grid of the native type, if there is one."""
        return x if self.native is None else self.wide(self.lib.cast(x, self.native))


@cache
def _widths(fn: str, precision: str, names: tuple[str, str], terms: int) -> tuple[bool, bool, bool]:
    """Whether scores of so many terms are whole numbers, and whether they are computed, and held, in float64."""
    if fn == "hamming" or (fn in ("dot", "maxsim") and set(names) <= set(SMALL)):
        # Sums up to 2**24 are exact in float32, in whatever order they are added.
        largest = terms * (1 if fn == "hamming" else 2**16 if "uint8" in names else 2**14)
        wide = precision == "float64" or largest > 2**24
        return True, wide, wide
    doubles = "float64" in names or any(is_integer(name) and name not in SMALL for name in names)
    # Near vectors: |q|² + |d|² − 2q·d cancels, so that float32 would leave little but noise.
    wide = doubles or precision == "float64" or fn == "euclidean"
    return False, wide, precision == "float64" or (precision == "native" and doubles)


def check_precision(precision: str) -> None:
    """Raise if there is no such precision."""
    if precision not in PRECISIONS:
        raise InputError(f"Unknown precision {precision!r}. Use one of: {', '.join(PRECISIONS)}.")
