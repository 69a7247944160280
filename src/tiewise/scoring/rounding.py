"""The last rounding of a score: to float32, to the low precision of a model, or none.

Rounding is monotone. So if both ends of an interval round to the same value, everything in the interval does. And the
scores that round to a value t form an interval: counting the documents with score t means counting exact sums in that
interval (`Rounding.interval`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tiewise.data.columns import Floats

__all__ = ["Rounding", "no_rounding", "to_float32", "to_low_precision"]


class Rounding:
    """A monotone rounding of float64 values to a coarser type. The results are kept as float64."""

    def __init__(self, name: str, cast: Callable[[Floats], Floats], eps: float, smallest_normal: float, largest: float):
        """`eps` is the distance from 1 to the next value; 0 means that nothing is rounded."""
        self.name, self._cast = name, cast
        self.eps, self.smallest_normal, self.largest = eps, smallest_normal, largest
        self._overflow = largest + self._spacing(np.array(largest)) / 2  # types without infinity would saturate

    def __call__(self, x: Floats) -> Floats:
        """Rounded values; NaN or infinity for those that are too large."""
        rounded = self._cast(x)
        return np.where(np.abs(x) > self._overflow, np.nan, rounded) if self.eps else rounded

    def interval(self, t: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Bounds (low_out, low_in, high_in, high_out) of the scores that round to each rounded value t.

        Scores outside [low_out, high_out] do not round to t; scores inside [low_in, high_in] do.

        >>> low_out, low_in, high_in, high_out = to_float32().interval(np.array([1.0]))
        >>> float(high_out[0] - 1) * 2**24, float(1 - low_out[0]) * 2**25
        (1.0, 1.0)
        """
        if self.eps == 0:
            return t, t, t, t
        # Below a power of two the spacing is half as wide as above it.
        size = np.abs(t)
        outer, inner = size + self._spacing(size) / 2, size - self._spacing(size * (1 - 2.0**-40)) / 2
        high, low = np.where(t < 0, -inner, outer), np.where(t < 0, -outer, inner)
        # Low precision is reached by way of float32, which may round a value onto the border between two values.
        relative, absolute = (0.0, 0.0) if self.name == "float32" else (2.0**-24, 2.0**-149)
        low_slack, high_slack = np.abs(low) * relative + absolute, np.abs(high) * relative + absolute
        # A score on the border rounds to the even neighbour, so the border itself belongs to no inner interval.
        low_in, high_in = np.nextafter(low + low_slack, np.inf), np.nextafter(high - high_slack, -np.inf)
        return low - low_slack, low_in, high_in, high + high_slack

    def _spacing(self, size: Floats) -> Floats:
        """The distance from a value to the next larger one."""
        exponent = np.frexp(np.maximum(size, self.smallest_normal))[1] - 1
        return np.ldexp(self.eps, exponent)


def no_rounding() -> Rounding:
    """Scores stay float64."""
    return Rounding("float64", lambda x: x, 0.0, 0.0, float(np.finfo(np.float64).max))


def to_float32() -> Rounding:
    """Scores are rounded to float32."""
    return to_low_precision("float32", lambda x: x.astype(np.float32).astype(np.float64), np.finfo(np.float32))


def to_low_precision(name: str, cast: Callable[[Any], Any], info: Any) -> Rounding:
    """Scores are rounded to float32 and then, by `cast`, to a type with the limits `info`."""
    return Rounding(name, cast, float(info.eps), float(info.smallest_normal), float(info.max))
