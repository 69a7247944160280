"""The last rounding of a score, to float32, to a model's own low precision, or none at all.

Rounding is monotone. Two things follow. If the ends of an interval round to one value, everything in it does. And the
scores that round to a value t form an interval, so that counting documents with score t means counting exact sums in an
interval (`Rounding.interval`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tiewise.data.columns import Floats

__all__ = ["Rounding", "no_rounding", "to_float32", "to_low"]


class Rounding:
    """A monotone rounding of float64 values to a coarser type, whose values are held as float64."""

    def __init__(self, name: str, cast: Callable[[Floats], Floats], eps: float, least_normal: float, largest: float):
        """`eps` is the distance from 1 to the next value, `least_normal` the smallest normal number."""
        self.name, self._cast = name, cast
        self.eps, self.least_normal, self.largest = eps, least_normal, largest
        self._beyond = largest + self._gap(np.array(largest)) / 2  # some types have no infinity, and would saturate

    def __call__(self, x: Floats) -> Floats:
        """Values rounded; what is too large is not finite."""
        found = self._cast(x)
        return np.where(np.abs(x) > self._beyond, np.nan, found) if self.eps else found

    def interval(self, t: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """For rounded values: scores outside [first, last] do not round to t, those within [second, third] do.

        >>> first, second, third, last = to_float32().interval(np.array([1.0]))
        >>> float(last[0] - 1) * 2**24, float(1 - first[0]) * 2**25
        (1.0, 1.0)
        """
        if self.eps == 0:
            return t, t, t, t
        # The gap to the next value below t is half as wide where t is a power of two, seen from 0.
        up, down = np.abs(t) + self._gap(np.abs(t)) / 2, np.abs(t) - self._gap(np.abs(t) * (1 - 2.0**-40)) / 2
        high, low = np.where(t < 0, -down, up), np.where(t < 0, -up, down)
        # A low type is reached by way of float32, which may round a value onto the border between two.
        relative, least = (0.0, 0.0) if self.name == "float32" else (2.0**-24, 2.0**-149)
        low_slack, high_slack = np.abs(low) * relative + least, np.abs(high) * relative + least
        # A value on the border goes to the even neighbour, so the border itself is never sure.
        second, third = np.nextafter(low + low_slack, np.inf), np.nextafter(high - high_slack, -np.inf)
        return low - low_slack, second, third, high + high_slack

    def _gap(self, size: Floats) -> Floats:
        """The distance from a value to the next larger one."""
        exponent = np.frexp(np.maximum(size, self.least_normal))[1] - 1
        return np.ldexp(self.eps, exponent)


def no_rounding() -> Rounding:
    """Scores stay float64, or are whole numbers already."""
    return Rounding("float64", lambda x: x, 0.0, 0.0, float(np.finfo(np.float64).max))


def to_float32() -> Rounding:
    """Scores are rounded to float32."""
    info = np.finfo(np.float32)
    return Rounding(
        "float32",
        lambda x: x.astype(np.float32).astype(np.float64),
        float(info.eps),
        float(info.smallest_normal),
        float(info.max),
    )


def to_low(name: str, cast: Callable[[Any], Any], info: Any) -> Rounding:
    """Scores are rounded to float32 and then to a low type, whose `info` has eps and the smallest normal number."""
    return Rounding(name, cast, float(info.eps), float(info.smallest_normal), float(info.max))
