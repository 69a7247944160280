"""Number grids: the numbers that a type such as bfloat16, or printing with few digits, can represent.

A score lies on a grid if its nearest float32 does, because text often keeps only 9 digits. One float32 in 65,536 is a
bfloat16 number. So if all scores of a run are bfloat16 numbers, they were rounded to bfloat16; a few such scores prove
nothing. `quantization` looks for a coarse grid behind scores that lie on a fine one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tiewise.data.columns import Floats

__all__ = ["FLOAT32", "GRIDS", "LOW_PRECISION", "Grid", "find_grid", "find_printings", "nearest_float32"]

MIN_DISTINCT = 10  # fewer distinct scores are not evidence: they may have been chosen by hand
SAMPLE_SIZE = 1000  # scores that are tested before all scores are: most hypotheses fail on them
BLOCK_SIZE = 2**16  # scores that are tested at a time


@dataclass(frozen=True)
class Grid:
    """A set of numbers on which scores may lie."""

    name: str

    @property
    def label(self) -> str:
        """What scores on this grid, and on no coarser one, are called."""
        return self.name

    @property
    def description(self) -> str:
        """What is true of scores on this grid, as the predicate of a sentence."""
        return f"lie on the {self.name} grid"

    def spacing(self, x: Floats) -> Floats:
        """The distance from each score to the next number of the grid away from zero."""
        raise NotImplementedError

    def contains(self, x: Floats) -> NDArray[np.bool_]:
        """Whether each score lies on the grid."""
        f = nearest_float32(x)
        with np.errstate(invalid="ignore"):
            steps = f / self.spacing(f)
            return np.asarray(steps == np.rint(steps))

    def round(self, x: Floats) -> Floats:
        """The number of the grid that is nearest to each score."""
        step = self.spacing(x)
        return np.rint(x / step) * step

    def contains_all(self, x: Floats) -> bool:
        """Whether all scores lie on the grid."""
        blocks = np.array_split(x, len(x) // BLOCK_SIZE + 1)
        return all(bool(self.contains(some).all()) for some in (subsample(x), *blocks))


@dataclass(frozen=True)
class FloatGrid(Grid):
    """A binary floating-point type.

    >>> FloatGrid("bfloat16", 7, -126, 3.4e38).contains(np.array([0.71875, 0.719]))
    array([ True, False])
    """

    significand_bits: int  # without the leading one
    min_exponent: int
    largest: float

    def contains(self, x: Floats) -> NDArray[np.bool_]:
        return super().contains(x) & (np.abs(nearest_float32(x)) <= self.largest)

    def spacing(self, x: Floats) -> Floats:
        exponent = np.frexp(np.where(np.isfinite(x), x, 1.0))[1] - 1
        return np.ldexp(1.0, np.maximum(exponent, self.min_exponent) - self.significand_bits)


@dataclass(frozen=True)
class _Float32(FloatGrid):
    """float32, also after printing with 6 to 16 significant digits."""

    @property
    def label(self) -> str:
        return "no coarser than float32"

    def contains(self, x: Floats) -> NDArray[np.bool_]:
        f = nearest_float32(x)
        with np.errstate(invalid="ignore"):
            found: NDArray[np.bool_] = np.abs(f - x) <= 0.51 * 10.0 ** (_decimal_exponent(x) - 12)  # 13 digits or more
        rest = np.flatnonzero(~found & np.isfinite(f) & (f != 0))
        for digits in (9, 8, 7, 6, 10, 11, 12):  # the usual ones first
            printed = _round_significant(f[rest], digits)
            hit = np.abs(printed - x[rest]) <= 4 * np.spacing(np.abs(x[rest]))
            found[rest[hit]] = True
            rest = rest[~hit]
        return found


@dataclass(frozen=True)
class DecimalGrid(Grid):
    """Numbers with a fixed number of decimals; with none, whole numbers.

    Where float32 itself has no more decimals than that, a score must have exactly these decimals.

    >>> DecimalGrid("decimal:2", 2).contains(np.array([0.25, 0.1, 0.125]))
    array([ True,  True, False])
    """

    decimals: int

    def contains(self, x: Floats) -> NDArray[np.bool_]:
        f = nearest_float32(x)
        with np.errstate(over="ignore", invalid="ignore"):
            rounded = np.round(x, self.decimals)
            same_float32 = rounded.astype(np.float32) == f
        finer = FLOAT32.spacing(f) < 10.0**-self.decimals  # else every float32 would round to itself
        return np.isfinite(x) & ((rounded == x) | (same_float32 & finer))

    def spacing(self, x: Floats) -> Floats:
        return np.full(len(x), 10.0**-self.decimals)

    @property
    def description(self) -> str:
        number = f"{self.decimals} decimal{'' if self.decimals == 1 else 's'}"
        return f"have at most {number}" if self.decimals else "are whole numbers"


@dataclass(frozen=True)
class SignificantDigitGrid(Grid):
    """Numbers with a fixed number of significant digits, as ``%.6g`` prints them."""

    digits: int

    def contains(self, x: Floats) -> NDArray[np.bool_]:
        return np.abs(_round_significant(x, self.digits) - x) <= 4 * np.spacing(np.abs(x))

    def spacing(self, x: Floats) -> Floats:
        return 10.0 ** (_decimal_exponent(x) - self.digits + 1)

    @property
    def description(self) -> str:
        return f"have at most {self.digits} digits"


@dataclass(frozen=True)
class UniformGrid(Grid):
    """Multiples of one step, a power of two: counts of equal bits, or differences of low-precision logits.

    >>> UniformGrid("1/256", 2.0**-8).contains(np.array([0.71875, 0.719]))
    array([ True, False])
    """

    step: float

    def spacing(self, x: Floats) -> Floats:
        return np.full(len(x), self.step)

    @property
    def label(self) -> str:
        return f"even steps of {self.name}"

    @property
    def description(self) -> str:
        return f"come in {self.label}"


FLOAT32 = _Float32("float32", 23, -126, float(np.finfo(np.float32).max))

#: From the coarsest to the finest: the grid of a run is the first that contains all its scores.
GRIDS: dict[str, Grid] = {
    grid.name: grid
    for grid in (
        DecimalGrid("integer", 0),
        FloatGrid("float8_e5m2", 2, -14, 57344.0),
        FloatGrid("float8_e4m3", 3, -6, 448.0),
        FloatGrid("bfloat16", 7, -126, 3.3895313892515355e38),
        FloatGrid("float16", 10, -14, 65504.0),
        *(DecimalGrid(f"decimal:{decimals}", decimals) for decimals in (1, 2, 3, 4)),
        FLOAT32,
        FloatGrid("float64", 52, -1022, float(np.finfo(np.float64).max)),
    )
}

#: The low-precision types.
LOW_PRECISION = ("float8_e5m2", "float8_e4m3", "bfloat16", "float16")


def find_grid(x: Floats) -> str:
    """The name of the coarsest grid that contains all scores, which are distinct and finite."""
    return next(name for name, grid in GRIDS.items() if name == "float64" or grid.contains_all(x))


def find_printings(x: Floats) -> tuple[Grid, ...]:
    """The fewest decimals (up to 8) and the fewest digits (2 to 8) with which all scores can have been printed."""
    decimals = (DecimalGrid(f"decimal:{decimals}", decimals) for decimals in range(1, 9))
    digits = (SignificantDigitGrid(f"digits:{digits}", digits) for digits in range(2, 9))
    coarsest = (next((grid for grid in grids if grid.contains_all(x)), None) for grids in (decimals, digits))
    return tuple(grid for grid in coarsest if grid is not None)


def subsample(x: Floats) -> Floats:
    """At most `SAMPLE_SIZE` of the scores, at even distances."""
    return x[:: len(x) // SAMPLE_SIZE + 1]


def nearest_float32(x: Floats) -> Floats:
    """The nearest float32 as float64: infinite beyond its range, NaN where a number is too small for it."""
    with np.errstate(over="ignore", under="ignore"):
        f = x.astype(np.float32).astype(np.float64)
    return np.where((f == 0) & (x != 0), np.nan, f)


def _decimal_exponent(x: Floats) -> Floats:
    return np.floor(np.log10(np.abs(np.where(x == 0, 1.0, x))))


def _round_significant(x: Floats, digits: int) -> Floats:
    places = digits - 1 - _decimal_exponent(x)
    with np.errstate(over="ignore", invalid="ignore"):
        scale = 10.0 ** np.abs(places)
        rounded = np.where(places >= 0, np.rint(x * scale) / scale, np.rint(x / scale) * scale)
    return np.where(x == 0, 0.0, rounded)
