"""Which quantisation lies behind scores: a low-precision type or even steps, then a transformation and printing.

Transformations and printing turn coarse numbers into fine ones, but the ties stay. Each of them is inverted here. A
printed or computed score stands for all numbers that would have given the same score: an interval of preimages. If
nearly all of these intervals contain a number of a coarse grid, and few would by chance, the scores were quantised to
that grid.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tiewise.analysis.auditing.grids import (
    FLOAT32,
    GRIDS,
    LOW_PRECISION,
    MIN_DISTINCT,
    Grid,
    UniformGrid,
    growing_samples,
    subsample,
)
from tiewise.analysis.auditing.transformations import TRANSFORMATIONS, Transformation
from tiewise.data.columns import Floats

__all__ = ["LOG10_ALPHA", "Preimage", "Quantization", "find_quantization", "invert", "log10_p_value"]

LOG10_ALPHA = -12.0  # the significance level of every test here: a false positive rate of 10^-12
DECISIVE = 3.0  # log10: of two hypotheses, one is chosen if the scores are a thousand times as likely under it
SCREENED = 200  # scores that are tried on the finest of several nested grids before the others are

#: Even steps, from the widest on.
STEPS = tuple(UniformGrid("1" if not k else f"1/{2**k}", 2.0**-k) for k in range(15))

#: The grids to look for; each set comes with a grid that contains all numbers of the set.
NESTED: tuple[tuple[Grid, tuple[Grid, ...]], ...] = (
    (GRIDS["bfloat16"], tuple(GRIDS[name] for name in LOW_PRECISION if name != "float16")),
    (GRIDS["float16"], (GRIDS["float16"],)),
    (STEPS[-1], STEPS),
)


@dataclass(frozen=True)
class Quantization:
    """The grid of the numbers behind scores, and what was done to them; both grids if type and steps are as likely."""

    dtype: str | None  #: the low-precision type
    steps: UniformGrid | None  #: the even steps in which the numbers come
    transformation: Transformation
    printing: Grid | None  #: the few digits with which scores were printed

    @property
    def grid(self) -> Grid:
        """The grid of the numbers before the transformation."""
        grid = GRIDS[self.dtype] if self.dtype else self.steps
        assert grid is not None
        return grid

    @property
    def made_by(self) -> str | None:
        """What hides the grid: the name of a transformation, or ``"printing"``; None if nothing does."""
        return self.transformation.name or (None if self.printing is None else "printing")

    @property
    def precision(self) -> str | None:
        """The type to which numbers were rounded, if that can be known; None if they may be counts."""
        if self.dtype is None or (self.steps and self.transformation.of_logits):  # a difference of two logits
            return "low precision" if self.transformation.of_logits else None
        return self.dtype

    def log10_likelihood_ratio(self, x: Floats) -> float:
        """log10 of the likelihood of scores under this quantisation, relative to any float32 numbers."""
        sample = subsample(x)
        exact = _invert_score(sample, self.transformation, None)
        fits = _contains(self.grid, _invert_score(sample, self.transformation, self.printing)) & exact.is_nonzero
        steps = self.grid.spacing(exact.value[fits]) * self.transformation.error / exact.margin[fits]
        return float(np.log10(steps).sum())

    def explains(self, x: Floats) -> NDArray[np.bool_]:
        """Whether each score can have been made in this way."""
        return _contains(self.grid, _invert_score(x, self.transformation, self.printing))


def find_quantization(x: Floats, printings: Iterable[Grid], min_share: float = 1.0) -> Quantization | None:
    """The quantisation behind scores, which are distinct, finite and ascending; None without evidence of any.

    `printings` are the grids with which scores may have been printed. At least `min_share` of the scores must fit.

    >>> logits = np.linspace(-4, 4, 300).astype(np.float16).astype(float)
    >>> found = find_quantization(1 / (1 + np.exp(-logits)), ())
    >>> found.dtype, found.made_by
    ('float16', 'sigmoid')
    """
    if len(x) < MIN_DISTINCT:
        return None
    fitted = [
        (found.log10_likelihood_ratio(x), found)
        for transformation in TRANSFORMATIONS
        if transformation.can_produce(x[0], x[-1])
        for printing in (None, *printings)
        if (found := _fit(x, transformation, printing, min_share))
    ]
    best = max((ratio for ratio, _ in fitted), default=0.0)
    return next((found for ratio, found in fitted if ratio >= best - DECISIVE), None)  # the simplest of the likely ones


def log10_p_value(probability: Floats, misses: int = 0) -> float:
    """log10 of the chance that a grid misses at most so many numbers; each lies on it with a probability of its own.

    This is an upper bound: the chances of all choices of missed numbers are added up.
    """
    logs = np.sort(np.log10(np.minimum(probability, 1.0)))
    n = len(logs)
    choices = math.lgamma(n + 1) - math.lgamma(misses + 1) - math.lgamma(n - misses + 1)
    return float(logs[misses:].sum()) + choices / math.log(10)


# -- preimages ------------------------------------------------------------------------------------------------------


class Preimage(NamedTuple):
    """The numbers from which scores were made: each lies within `margin` of `value`."""

    value: Floats
    margin: Floats

    @property
    def is_nonzero(self) -> NDArray[np.bool_]:
        """Whether a number cannot be 0, which lies on every grid and so is no evidence."""
        return np.asarray(np.abs(self.value) > self.margin)

    def take(self, index: NDArray[np.bool_] | slice) -> Preimage:
        """Some of the numbers."""
        return Preimage(self.value[index], self.margin[index])


def invert(x: Floats, error: Floats, transformation: Transformation) -> Preimage:
    """The preimage of scores that are known up to an error; at the ends of its range, a sigmoid has no finite one."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ends = [transformation.inverse(np.clip(end, *transformation.domain)) for end in (x - error, x + error)]
        value, margin = (ends[0] + ends[1]) / 2, np.abs(ends[1] - ends[0]) / 2
        margin = np.maximum(margin, np.spacing(np.abs(value)))  # the rounding of float64 itself
    finite = np.isfinite(value) & np.isfinite(margin)
    return Preimage(np.where(finite, value, 0.0), np.where(finite, margin, np.inf))


def _invert_score(x: Floats, transformation: Transformation, printing: Grid | None) -> Preimage:
    """The preimage of scores that were computed in float32, and perhaps printed."""
    computed = transformation.error * FLOAT32.spacing(x)
    return invert(x, computed + (0 if printing is None else printing.spacing(x) / 2), transformation)


def _contains(grid: Grid, preimage: Preimage) -> NDArray[np.bool_]:
    """Whether each interval contains a number of the grid."""
    nearest = grid.round(preimage.value)
    near = np.abs(nearest - preimage.value) <= preimage.margin * 1.000001
    return np.asarray(near & grid.contains(nearest))


# -- fitting --------------------------------------------------------------------------------------------------------


def _fit(x: Floats, transformation: Transformation, printing: Grid | None, min_share: float) -> Quantization | None:
    """The coarsest type and the widest steps behind scores, for one transformation and one printing."""
    grids: list[Grid] | None = None
    for sample in growing_samples(x):
        preimage = _invert_score(sample, transformation, printing)
        if grids is None:
            grids = [grid for finest, nested in NESTED if _is_possible(finest, preimage, min_share) for grid in nested]
        grids = [grid for grid in grids if _fits(grid, preimage, min_share)]
        if not grids:
            return None
    assert grids is not None
    dtype = next((grid for grid in grids if grid.name in LOW_PRECISION), None)
    steps = next((grid for grid in grids if isinstance(grid, UniformGrid)), None)
    if dtype and steps:
        odds = _log10_odds(steps, dtype, preimage)
        dtype, steps = (None if odds > DECISIVE else dtype), (None if odds < -DECISIVE else steps)
    return Quantization(dtype.name if dtype else None, steps, transformation, printing)


def _is_possible(finest: Grid, preimage: Preimage, min_share: float) -> bool:
    """Whether a grid, or a coarser one inside it, can fit: a few numbers off the finest grid rule all of them out."""
    sample = preimage.take(slice(None, None, len(preimage.value) // SCREENED + 1))
    informative = sample.take(4 * sample.margin < finest.spacing(sample.value))
    misses = int(np.count_nonzero(~_contains(finest, informative)))
    return misses <= 2 * (1 - min_share) * len(sample.value)


def _fits(grid: Grid, preimage: Preimage, min_share: float) -> bool:
    """Whether a grid contains nearly all informative numbers, which is unlikely by chance.

    Several scores from the same number of the grid count once.
    """
    probability = 2 * preimage.margin / grid.spacing(preimage.value)
    informative = (probability < 0.5) & preimage.is_nonzero
    if np.count_nonzero(informative) < MIN_DISTINCT:
        return False
    preimage, probability = preimage.take(informative), probability[informative]
    hit = _contains(grid, preimage)
    once = np.unique(grid.round(preimage.value), return_index=True)[1]
    if len(once) < MIN_DISTINCT or np.count_nonzero(~hit) > (1 - min_share) * len(hit):
        return False
    return log10_p_value(probability[once], int(np.count_nonzero(~hit[once]))) < LOG10_ALPHA


def _log10_odds(steps: Grid, dtype: Grid, preimage: Preimage) -> float:
    """log10 of the likelihood ratio of two grids: the finer one has more numbers that could have occurred."""
    both = _contains(steps, preimage) & _contains(dtype, preimage) & preimage.is_nonzero
    value = preimage.value[both]
    return float(np.log10(steps.spacing(value) / dtype.spacing(value)).sum())
