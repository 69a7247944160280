"""The types of numbers in which scores are computed and returned.

With ``precision="float32"`` a score is rounded once, at the end, to float32; ``"float64"`` leaves out this rounding.
``"native"`` reproduces what a model gives that runs in the low precision of its operands: products are added in a wider
type and rounded to the operands' type, and so is the result of every later step. Products of integers are exact in all
three.
"""

from __future__ import annotations

import sys
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from tiewise.scoring.backends import Backend
    from tiewise.scoring.operands import Operand

__all__ = ["LOW_PRECISION", "SUB_BYTE", "ScoreTypes", "finfo", "is_integer", "is_low_precision"]

#: How the names begin of floating-point types with less precision than float32, in torch and ml_dtypes.
LOW_PRECISION = ("bfloat16", "float16", "float8_", "float6_", "float4_")
INTEGERS = ("bool", "int", "uint")

#: Types of torch that are smaller than a byte and have no arithmetic.
SUB_BYTE = {f"{kind}{bits}" for kind in ("int", "uint") for bits in range(1, 8)}

#: Integer types whose products can be exact in float32.
SMALL_INTEGERS = ("bool", "int8", "uint8")


def is_low_precision(name: str) -> bool:
    """Whether a floating-point type has less precision than float32.

    >>> is_low_precision("bfloat16"), is_low_precision("float8_e4m3fn"), is_low_precision("float32")
    (True, True, False)
    """
    return name.startswith(LOW_PRECISION)


def is_integer(name: str) -> bool:
    """Whether a type holds integers or truth values."""
    return name.startswith(INTEGERS)


def finfo(dtype: Any) -> Any:
    """The limits of a floating-point type: eps, smallest_normal, max."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(dtype, getattr(torch, "dtype", ())):
        return torch.finfo(dtype)
    if np.dtype(dtype).name in ("float16", "float32", "float64"):
        return np.finfo(dtype)
    return sys.modules["ml_dtypes"].finfo(dtype)


class ScoreTypes:
    """The types of one computation of scores.

    - `wide`: vectors are converted to float64 (otherwise to float32).
    - `result`: the type in which scores are kept, float32 or float64.
    - `low`: scores are rounded to the low precision of the operands.
    - `integer`: all scores are integers, which need no rounding.
    """

    def __init__(self, precision: str, fn: str, queries: Operand, docs: Operand):
        names = queries.dtype_name, docs.dtype_name
        self.integer, self.wide, double = _choose_types(fn, precision, names, queries.dims * queries.tokens)
        self.result = "float64" if double else "float32"
        self.low = precision == "native" and names[0] == names[1] and is_low_precision(names[0])

    def native_dtype(self, queries: Operand, backend: Backend) -> Any:
        """The type of scores in native precision."""
        if self.integer:
            return backend.dtype("int32" if self.result == "float32" else "int64")
        return queries.dtype if self.low else backend.dtype(self.result)


@cache
def _choose_types(fn: str, precision: str, names: tuple[str, str], terms: int) -> tuple[bool, bool, bool]:
    """Whether scores are integers, whether vectors are float64, and whether scores are; `terms` are added for one."""
    if fn == "hamming" or (fn in ("dot", "maxsim") and set(names) <= set(SMALL_INTEGERS)):
        # Sums up to 2**24 are exact in float32, whatever the order of additions.
        largest = terms * (1 if fn == "hamming" else 2**16 if "uint8" in names else 2**14)
        wide = precision == "float64" or largest > 2**24
        return True, wide, wide
    wide = "float64" in names or any(is_integer(name) and name not in SMALL_INTEGERS for name in names)
    return False, wide, precision == "float64" or (precision == "native" and wide)
