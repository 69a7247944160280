"""In which types scores are computed and returned.

``"float32"`` is the type to which a score is rounded, once, at the end; ``"float64"`` leaves the last rounding out.
``"native"`` reproduces what a model running in the operands' own low precision would give: products are added up in a
wider type and rounded to the operands' type, and so is every later step. Products of whole numbers are exact in all
three.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from tiewise.errors import InputError
from tiewise.scoring.arrays import is_integer, is_low
from tiewise.scoring.operands import Operand

__all__ = ["PRECISIONS", "Types", "check_precision"]

PRECISIONS = ("float32", "float64", "native")
SMALL = ("bool", "int8", "uint8")  # whole numbers whose products can be exact in float32


class Types:
    """The types of one computation.

    `wide` says whether vectors are taken as float64, `result` is the type that holds the scores (float32 or float64),
    `low` says whether they are rounded to the operands' own low precision, and `exact` whether all scores are whole
    numbers that need no rounding.
    """

    def __init__(self, precision: str, fn: str, queries: Operand, docs: Operand):
        check_precision(precision)
        names = queries.type_name, docs.type_name
        self.exact, self.wide, double = _widths(fn, precision, names, queries.dims * queries.tokens)
        self.result = "float64" if double else "float32"
        self.low = precision == "native" and names[0] == names[1] and is_low(names[0])

    def native_type(self, queries: Operand, lib: Any) -> Any:
        """The type of scores in native precision, in a library."""
        if self.exact:
            return lib.dtype("int32" if self.result == "float32" else "int64")
        if not self.low:
            return lib.dtype(self.result)
        # A library without the type (NumPy, of bfloat16 tensors) is asked for the tensors' own.
        return queries.dtype


@cache
def _widths(fn: str, precision: str, names: tuple[str, str], terms: int) -> tuple[bool, bool, bool]:
    """Whether scores of so many terms are whole numbers, whether vectors are float64, and whether the result is."""
    if fn == "hamming" or (fn in ("dot", "maxsim") and set(names) <= set(SMALL)):
        # Sums up to 2**24 are exact in float32, in whatever order they are added.
        largest = terms * (1 if fn == "hamming" else 2**16 if "uint8" in names else 2**14)
        wide = precision == "float64" or largest > 2**24
        return True, wide, wide
    wide = "float64" in names or any(is_integer(name) and name not in SMALL for name in names)
    return False, wide, precision == "float64" or (precision == "native" and wide)


def check_precision(precision: str) -> None:
    """Raise if there is no such precision."""
    if precision not in PRECISIONS:
        raise InputError(f"Unknown precision {precision!r}. Use one of: {', '.join(PRECISIONS)}.")
