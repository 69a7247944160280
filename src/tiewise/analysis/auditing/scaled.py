"""Whether scores come in even steps of any size, as numbers do that were rounded or counted, and scaled after it.

`origins` finds coarse numbers beneath scores that were all made in one way. A scale of their own, such as that of 8-bit
integers, and scaling list by list, to 0 … 1, to z-scores or by a softmax over the candidates, hide on which grid the
numbers lay, but not that their distances are whole multiples of one step: with the lowest score at 0 and the highest at
1, all scores are fractions of one denominator. Steps of floating point widen with the number, so halves and quarters
of a list's range are looked at as well: in one of them a type has two sizes of step at the most.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tiewise.analysis.auditing.functions import UP_TO_SCALE, ScoreFunction
from tiewise.analysis.auditing.grids import FEW, FLOAT32, Grid
from tiewise.analysis.auditing.origins import CHANCE, Beneath, beneath
from tiewise.data.columns import Floats

__all__ = ["Steps", "steps_of", "steps_of_all"]

RARE = -6.0  # log10: a list that is as unlikely as this by chance is said to come in even steps
PARTS = ((0.0, 1.0), (0.5, 1.0), (0.0, 0.5), (0.75, 1.0), (0.0, 0.25))  # of the range of a list
BY_LIST = [one for one in UP_TO_SCALE if one.name in ("scaling", "exp", "sigmoid")]  # exp: a softmax over a list
DENOMINATORS = np.arange(1.0, 4097.0)  # float16 has no more numbers in such a part


@dataclass(frozen=True)
class Steps:
    """How many lists come in even steps, of those that could tell."""

    lists: int
    looked_at: int
    function: ScoreFunction  #: what was done to most of them
    log10_chance: float  #: of so many so even lists among these, if scores were any numbers
    one_step: bool = False  #: whether one step serves for the whole run

    @property
    def evidence(self) -> str:
        """What speaks for it, in a sentence."""
        lists = "the one list" if self.looked_at == 1 else f"{self.lists:,} of {self.looked_at:,} lists"
        where = "throughout the run" if self.one_step else f"in {lists} looked at"
        return (
            f"But {where}, {self.function.undone} come in even steps, as numbers do that were rounded or counted, and "
            f"scaled after it; by chance, one run in 10^{-self.log10_chance:,.0f} would."
        )

    @property
    def words(self) -> str:
        """What scores do."""
        return f"{self.function.undone} come in even steps{'' if self.one_step else ', list by list'}"

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return vars(self) | {"function": self.function.name}


def steps_of(lists: Sequence[Floats], printings: Sequence[Grid] = ()) -> Steps | None:
    """The even steps in which at least half of some lists come; None if there is no evidence of any.

    `printings` are the ways in which all scores can have been printed: what they make of numbers is no evidence.

    >>> coarse = [np.round(np.sin(np.arange(q, q + 40.0) ** 2), 1) for q in range(5)]
    >>> scaled = [(x - x.min()) / (x.max() - x.min()) for x in coarse]
    >>> steps_of(scaled).lists, steps_of([np.sin(x) for x in scaled])
    (5, None)
    """
    telling = [distinct for scores in lists if len(distinct := np.unique(scores[np.isfinite(scores)])) >= FEW]
    found = [_best(x, BY_LIST, printings) for x in telling]
    even = [function for chance, function in found if chance < RARE]
    joint = _joint([chance for chance, _ in found])
    if not even or 2 * len(even) < len(telling) or joint > CHANCE:
        return None
    return Steps(len(even), len(telling), Counter(even).most_common(1)[0][0], joint)


def steps_of_all(x: Floats, lists: int, printings: Sequence[Grid] = ()) -> Steps | None:
    """The even steps in which the distinct scores of a whole run come; None if there is no evidence of any.

    >>> steps_of_all(np.log(np.arange(40.0, 80.0) * 0.0137), 1).words
    'exponentials of scores come in even steps'
    """
    if len(x) < FEW:
        return None
    chance, function = _best(x, UP_TO_SCALE, printings)
    return Steps(lists, lists, function, chance, one_step=True) if chance < CHANCE else None


def _joint(chances: Sequence[float]) -> float:
    """log10 of how likely the product of chances, each as good as a uniform number, is as small as this."""
    total = -sum(chances) * math.log(10)
    if not total:
        return 0.0
    terms = [j * math.log(total) - math.lgamma(j + 1) for j in range(len(chances))]
    return min(0.0, float(np.logaddexp.reduce(terms) - total) / math.log(10))


def _best(x: Floats, functions: Sequence[ScoreFunction], printings: Sequence[Grid]) -> tuple[float, ScoreFunction]:
    """log10 of the chance that scores are as even as they are, and the function that hides it; 0 if they are not.

    All that is tried is paid for: the chance is multiplied by the number of parts, functions and denominators.
    """
    tried = math.log10(len(PARTS) * len(functions) * len(DENOMINATORS))
    possible = [function for function in functions if function.may_give(x[0], x[-1])]
    found = [(_log10_chance(part), function) for function in possible for part in _parts(x, function, printings)]
    chance, function = min(found, key=lambda one: one[0], default=(0.0, functions[0]))
    return min(0.0, chance + tried), function


def _parts(x: Floats, function: ScoreFunction, printings: Sequence[Grid]) -> Iterator[Beneath]:
    """What lies beneath scores, from the lowest on, in those parts of its range that hold enough of them."""
    largest = np.full_like(x, np.abs(x).max())  # what was subtracted may have been as large as that
    printed = np.max([grid.step(x) for grid in printings], axis=0, initial=0.0) if printings else 0.0
    computed = function.error * FLOAT32.step(largest if function.linear else x)
    below = beneath(x, computed + printed / 2, function)
    known = np.isfinite(below.margin)
    value, margin = below.value[known], below.margin[known]
    if len(value) < FEW or value[-1] == value[0]:
        return
    if value[0] > value[-1]:
        value, margin = value[::-1], margin[::-1]
    place = (value - value[0]) / (value[-1] - value[0])
    for low, high in PARTS:
        mine = (place >= low) & (place <= high)
        if np.count_nonzero(mine) >= FEW and np.ptp(value[mine]) > 0:
            yield Beneath(value[mine], margin[mine])


def _log10_chance(below: Beneath) -> float:
    """log10 of the chance that numbers are fractions of the denominator of which they are; 0 if of none.

    Distinct scores must be distinct fractions: they were made from distinct numbers.
    """
    value, margin = below
    width = value[-1] - value[0]
    place = (value - value[0]) / width
    slack = (margin + max(margin[0], margin[-1])) / width
    left = DENOMINATORS[4 * np.median(slack) * DENOMINATORS < 1]  # where steps are finer, most scores cannot tell
    for at, room in zip(place[1:-1], slack[1:-1], strict=True):
        left = left[np.abs(at * left - np.rint(at * left)) <= room * left]
        if not len(left):
            break
    for denominator in left:
        if np.diff(np.rint(place * denominator)).min() >= 1:
            return float(np.log10(np.minimum(2 * slack[1:-1] * denominator, 1.0)).sum())
    return 0.0
