"""The grid on which scores lie: the numbers that a type or a way of printing can tell apart, and the evidence for it.

A score lies on a grid if its nearest float32 does, for text is often rounded to 9 digits. If all scores of a run lie on
bfloat16's grid, where one float32 in 65,536 does, they were bfloat16 once; that a few do says nothing. From what
numbers scores on a fine grid may have been made is the question of `origins`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tiewise.data.columns import Floats

__all__ = ["GRIDS", "LOW_PRECISION", "Grid", "grid_of", "nearest_float32", "printings"]

FEW = 10  # fewer distinct scores than this are no evidence of anything: they may have been chosen by hand
GLANCE = 1000  # so many scores are looked at before all are


@dataclass(frozen=True)
class Grid:
    """Numbers on which scores may lie; `step` is the distance from a number to the next one away from zero."""

    name: str

    def holds(self, x: Floats) -> NDArray[np.bool_]:
        """Whether each score lies on it."""
        raise NotImplementedError

    def step(self, x: Floats) -> Floats:
        """The distance between neighbours of the grid where each score lies."""
        raise NotImplementedError

    @property
    def words(self) -> str:
        """What scores on it do."""
        return f"lie on the {self.name} grid"

    def nearest(self, x: Floats) -> Floats:
        """The number of the grid that is nearest to each score."""
        step = self.step(x)
        return np.rint(x / step) * step


@dataclass(frozen=True)
class FloatGrid(Grid):
    """Binary floating point: so many digits behind the first one, a lowest exponent, and a largest number.

    >>> FloatGrid("bfloat16", 7, -126, 3.4e38).holds(np.array([0.71875, 0.719]))
    array([ True, False])
    """

    digits: int
    lowest: int
    largest: float

    def holds(self, x: Floats) -> NDArray[np.bool_]:
        f = nearest_float32(x)
        with np.errstate(invalid="ignore"):
            whole = f / self.step(f)
            return (whole == np.rint(whole)) & (np.abs(f) <= self.largest)

    def step(self, x: Floats) -> Floats:
        exponent = np.frexp(np.where(np.isfinite(x), x, 1.0))[1] - 1
        return np.ldexp(1.0, np.maximum(exponent, self.lowest) - self.digits)


@dataclass(frozen=True)
class _Float32(FloatGrid):
    """float32, and what text makes of it: a score lies here too if it is a float32 printed with 6 to 16 digits."""

    def holds(self, x: Floats) -> NDArray[np.bool_]:
        f = nearest_float32(x)
        with np.errstate(invalid="ignore"):
            held: NDArray[np.bool_] = np.abs(f - x) <= 0.51 * 10.0 ** (_exponent(x) - 12)  # 13 digits or more
        rest = np.flatnonzero(~held & np.isfinite(f) & (f != 0))
        for digits in range(6, 13):
            printed = _significant(f[rest], digits)
            hit = np.abs(printed - x[rest]) <= 4 * np.spacing(np.abs(x[rest]))
            held[rest[hit]] = True
            rest = rest[~hit]
        return held


@dataclass(frozen=True)
class DecimalGrid(Grid):
    """So many digits behind the point; none: whole numbers. Where float32 itself has no more, a float32 must have
    exactly these.

    >>> DecimalGrid("decimal:2", 2).holds(np.array([0.25, 0.1, 0.125]))
    array([ True,  True, False])
    """

    digits: int

    def holds(self, x: Floats) -> NDArray[np.bool_]:
        f = nearest_float32(x)
        with np.errstate(over="ignore", invalid="ignore"):
            rounded = np.round(x, self.digits)
            alike = rounded.astype(np.float32) == f
        finer = FLOAT32.step(f) < 10.0**-self.digits  # else every float32 would round to itself
        return np.isfinite(x) & ((rounded == x) | (alike & finer))

    def step(self, x: Floats) -> Floats:
        return np.full(len(x), 10.0**-self.digits)

    @property
    def words(self) -> str:
        number = f"{self.digits} decimal{'' if self.digits == 1 else 's'}"
        return f"have at most {number}" if self.digits else "are whole numbers"


@dataclass(frozen=True)
class DigitGrid(Grid):
    """So many digits from the first one that is not 0, as ``%.6g`` prints them."""

    digits: int

    def holds(self, x: Floats) -> NDArray[np.bool_]:
        return np.abs(_significant(x, self.digits) - x) <= 4 * np.spacing(np.abs(x))

    def step(self, x: Floats) -> Floats:
        return 10.0 ** (_exponent(x) - self.digits + 1)

    @property
    def words(self) -> str:
        return f"have at most {self.digits} digits"


@dataclass(frozen=True)
class StepGrid(Grid):
    """Even steps: whole numbers divided by a power of two, as counts of bits are, and differences of logits.

    >>> StepGrid("1/256", 2.0**-8).holds(np.array([0.71875, 0.719]))
    array([ True, False])
    """

    size: float

    def holds(self, x: Floats) -> NDArray[np.bool_]:
        whole = nearest_float32(x) / self.size
        return np.asarray(whole == np.rint(whole))

    def step(self, x: Floats) -> Floats:
        return np.full(len(x), self.size)

    @property
    def words(self) -> str:
        return f"come in even steps of {self.name}"


@dataclass(frozen=True)
class _Anything(FloatGrid):
    """float64: every score lies on it."""

    def holds(self, x: Floats) -> NDArray[np.bool_]:
        return np.ones(len(x), dtype=bool)


FLOAT32 = _Float32("float32", 23, -126, float(np.finfo(np.float32).max))

#: From the coarsest on: a run's grid is the first that holds all its scores.
GRIDS: dict[str, Grid] = {
    grid.name: grid
    for grid in (
        DecimalGrid("integer", 0),
        FloatGrid("float8_e5m2", 2, -14, 57344.0),
        FloatGrid("float8_e4m3", 3, -6, 448.0),
        FloatGrid("bfloat16", 7, -126, 3.3895313892515355e38),
        FloatGrid("float16", 10, -14, 65504.0),
        *(DecimalGrid(f"decimal:{digits}", digits) for digits in (1, 2, 3, 4)),
        FLOAT32,
        _Anything("float64", 52, -1022, float(np.finfo(np.float64).max)),
    )
}

#: The grids of number types in which scores are rounded off.
LOW_PRECISION = ("float8_e5m2", "float8_e4m3", "bfloat16", "float16")


def grid_of(x: Floats) -> str:
    """The name of the first grid that holds all of some distinct, finite scores."""
    return next(name for name, grid in GRIDS.items() if all_on(grid, x))


def all_on(grid: Grid, x: Floats) -> bool:
    """Whether a grid holds all scores; a glance at some of them spares the rest."""
    return all(bool(grid.holds(part).all()) for part in (glance(x), x))


def glance(x: Floats) -> Floats:
    """Some of the scores, evenly from all of them."""
    return x[:: len(x) // GLANCE + 1]


def printings(x: Floats) -> Iterator[Grid]:
    """The fewest decimals, and the fewest digits, with which all scores can have been printed."""
    decimals = (DecimalGrid(f"decimal:{digits}", digits) for digits in range(1, 9))
    digits = (DigitGrid(f"digits:{digits}", digits) for digits in range(2, 9))
    for grids in (decimals, digits):
        found = next((grid for grid in grids if all_on(grid, x)), None)
        if found is not None:
            yield found


def nearest_float32(x: Floats) -> Floats:
    """The nearest float32 as float64: infinite beyond its range, NaN where a number is too small for it."""
    with np.errstate(over="ignore", under="ignore"):
        f = x.astype(np.float32).astype(np.float64)
    return np.where((f == 0) & (x != 0), np.nan, f)


def _exponent(x: Floats) -> Floats:
    return np.floor(np.log10(np.abs(np.where(x == 0, 1.0, x))))


def _significant(x: Floats, digits: int) -> Floats:
    """Numbers rounded to so many significant digits."""
    places = digits - 1 - _exponent(x)
    with np.errstate(over="ignore", invalid="ignore"):
        scale = 10.0 ** np.abs(places)
        scaled = np.where(places >= 0, np.rint(x * scale) / scale, np.rint(x / scale) * scale)
    return np.where(x == 0, 0.0, scaled)
