"""From what coarse numbers scores were made: numbers of a low-precision type, or even steps, and what hides them.

Printing and score functions turn coarse numbers into fine ones that are tied as before. Each of these is undone: a
score stands for all numbers that would have been printed or computed as this score, and so for a small interval of the
numbers beneath. If a grid meets nearly all of these intervals, where by chance it would meet few, the scores were made
from its numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tiewise.analysis.auditing.functions import FUNCTIONS, ScoreFunction
from tiewise.analysis.auditing.grids import FEW, FLOAT32, GRIDS, LOW_PRECISION, Grid, StepGrid, glance, printings
from tiewise.data.columns import Floats

__all__ = ["CHANCE", "Beneath", "Origin", "beneath", "log10_chance", "origin_of"]

CHANCE = -12.0  # log10: what is less likely than this did not come about by chance
DECIDED = 3.0  # log10: of two grids, one is chosen if it makes the scores a thousand times as likely
TRIED = 200  # so many numbers are tried on the finest of several grids before all are tried on each
MOST = 0.9  # of tied scores, so many must lie on a grid: a few may come from elsewhere

#: Even steps, from the widest on.
STEPS = tuple(StepGrid("1" if not k else f"1/{2**k}", 2.0**-k) for k in range(15))

#: The grids to look for, under a grid that holds all numbers of theirs.
NESTED: tuple[tuple[Grid, tuple[Grid, ...]], ...] = (
    (GRIDS["bfloat16"], tuple(GRIDS[name] for name in LOW_PRECISION if name != "float16")),
    (GRIDS["float16"], (GRIDS["float16"],)),
    (STEPS[-1], STEPS),
)


@dataclass(frozen=True)
class Origin:
    """The coarse numbers from which scores were made. Where a type and even steps are as likely, it has both."""

    type: str | None  #: the low-precision type
    steps: StepGrid | None  #: the even steps in which the numbers come
    function: ScoreFunction  #: what was done to the numbers
    printing: Grid | None  #: the few digits with which scores were printed

    @property
    def grid(self) -> Grid:
        """The grid on which the numbers beneath lie."""
        found = GRIDS[self.type] if self.type else self.steps
        assert found is not None
        return found

    @property
    def made_by(self) -> str | None:
        """What hides the grid: ``"printing"``, or the name of a score function; None if nothing does."""
        return self.function.name or (None if self.printing is None else "printing")

    @property
    def precision(self) -> str | None:
        """The type to which numbers were rounded, as far as it can be told; None if steps say no such thing."""
        if self.type is None or (self.steps and self.function.of_logits):  # of two logits the difference shows
            return "low precision" if self.function.of_logits else None
        return self.type

    def told_by(self, x: Floats) -> float:
        """log10 of how many times fewer numbers could have come up, of all float32, if all scores were made so."""
        some = glance(x)
        below = _beneath(some, self.function, None)
        tells = _meets(self.grid, _beneath(some, self.function, self.printing)) & (np.abs(below.value) > below.margin)
        steps = self.grid.step(below.value[tells]) * self.function.error / below.margin[tells]  # in float32 steps
        return float(np.log10(steps).sum())

    def share(self, x: Floats, weight: Any = 1) -> float:
        """The share of some distinct scores that can have been made so, each of such a weight."""
        weights = np.broadcast_to(weight, x.shape)
        return float(weights[_meets(self.grid, _beneath(x, self.function, self.printing))].sum() / weights.sum())


def origin_of(x: Floats, least: float = 1.0) -> Origin | None:
    """From what numbers distinct, finite scores were made; None if there is no evidence of any.

    `least` is the share of them that must fit.

    >>> logits = np.linspace(-4, 4, 300).astype(np.float16).astype(float)
    >>> found = origin_of(1 / (1 + np.exp(-logits)))
    >>> found.type, found.made_by
    ('float16', 'sigmoid')
    """
    if len(x) < FEW:
        return None
    printed = (None, *printings(x))
    possible = [function for function in FUNCTIONS if function.may_give(x[0], x[-1])]
    found = [one for function in possible for digits in printed if (one := _found(x, function, digits, least))]
    best = max((one.told_by(x) for one in found), default=0.0)
    return next((one for one in found if one.told_by(x) >= best - DECIDED), None)


def log10_chance(part: Floats, missed: int = 0) -> float:
    """How likely a grid misses no more of some numbers than this, if it holds such a part of all numbers near each.

    It is a bound: the chance of every choice of missed numbers is added up.
    """
    logs = np.sort(np.log10(np.minimum(part, 1.0)))
    n = len(logs)
    choices = math.lgamma(n + 1) - math.lgamma(missed + 1) - math.lgamma(n - missed + 1)
    return float(logs[missed:].sum()) + choices / math.log(10)


# -- what lies beneath ----------------------------------------------------------------------------------------------


class Beneath(NamedTuple):
    """The numbers from which scores were made, each known to a margin."""

    value: Floats
    margin: Floats


def _beneath(x: Floats, function: ScoreFunction, printing: Grid | None) -> Beneath:
    """What lies beneath scores that were computed, and perhaps printed."""
    return beneath(x, function.error * FLOAT32.step(x) + (0 if printing is None else printing.step(x) / 2), function)


def beneath(x: Floats, half: Floats, function: ScoreFunction) -> Beneath:
    """What lies beneath scores known to half a step; at its limits, a sigmoid may come from anything."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ends = [function.inverse(np.clip(end, *function.domain)) for end in (x - half, x + half)]
        value, margin = (ends[0] + ends[1]) / 2, np.abs(ends[1] - ends[0]) / 2
        margin = np.maximum(margin, np.spacing(np.abs(value)))  # what is lost in float64 itself
    known = np.isfinite(value) & np.isfinite(margin)
    return Beneath(np.where(known, value, 0.0), np.where(known, margin, np.inf))


def _meets(grid: Grid, below: Beneath) -> NDArray[np.bool_]:
    """Whether the interval of each number holds one of the grid."""
    nearest = grid.nearest(below.value)
    near = np.abs(nearest - below.value) <= below.margin * 1.000001
    return np.asarray(near & grid.holds(nearest))


def _found(x: Floats, function: ScoreFunction, printing: Grid | None, least: float) -> Origin | None:
    some = _beneath(glance(x), function, printing)
    possible = [grid for finest, grids in NESTED if _possible(finest, some, least) for grid in grids]
    grids = [grid for grid in possible if _fits(grid, some, least)]
    if not grids:
        return None
    below = _beneath(x, function, printing)
    fitting = [grid for grid in grids if _fits(grid, below, least)]
    kind = next((grid for grid in fitting if grid.name in LOW_PRECISION), None)
    steps = next((grid for grid in fitting if isinstance(grid, StepGrid)), None)
    if kind and steps:
        odds = _odds(steps, kind, below)
        kind, steps = (None if odds > DECIDED else kind), (None if odds < -DECIDED else steps)
    return Origin(kind.name if kind else None, steps, function, printing) if kind or steps else None


def _possible(finest: Grid, below: Beneath, least: float) -> bool:
    """Whether a grid, or one that it holds, can fit: a few numbers that lie on none of them rule all of them out."""
    some = slice(None, None, len(below.value) // TRIED + 1)
    value, margin = below.value[some], below.margin[some]
    tells = 4 * margin < finest.step(value)
    missed = int(np.count_nonzero(~_meets(finest, Beneath(value[tells], margin[tells]))))
    return missed <= 2 * (1 - least) * len(value)


def _fits(grid: Grid, below: Beneath, least: float) -> bool:
    """Whether a grid holds nearly all numbers that could tell, and would not by chance; 0 lies on every grid.

    Scores that would come from one and the same number of the grid tell as much as one of them.
    """
    part = 2 * below.margin / grid.step(below.value)
    tells = (part < 0.5) & (np.abs(below.value) > below.margin)
    if np.count_nonzero(tells) < FEW:
        return False
    value, part = below.value[tells], part[tells]
    met = _meets(grid, Beneath(value, below.margin[tells]))
    one_each = np.unique(grid.nearest(value), return_index=True)[1]
    if len(one_each) < FEW or np.count_nonzero(~met) > (1 - least) * len(met):
        return False
    return log10_chance(part[one_each], int(np.count_nonzero(~met[one_each]))) < CHANCE


def _odds(steps: Grid, kind: Grid, below: Beneath) -> float:
    """log10 of how much likelier numbers of one grid are than those of the other to be these: the finer grid has more
    numbers that could have come up."""
    both = _meets(steps, below) & _meets(kind, below) & (np.abs(below.value) > below.margin)
    value = below.value[both]
    return float(np.log10(steps.step(value) / kind.step(value)).sum())
