"""Whether scores come in even steps of any size, as rounded or counted numbers do after scaling.

`quantization` knows grids with steps of known size. Integers times a scale of their own, and lists that were scaled one
by one (to 0 … 1, to z-scores, by a softmax over the candidates), lie on no such grid. But their distances are still
multiples of one step: with the lowest score moved to 0 and the highest to 1, all scores are fractions with the same
denominator. The steps of floating point grow with the number, so halves and quarters of the range are tested as well:
in each of them, a float type has at most two step sizes.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tiewise.analysis.auditing.quantization import LOG10_ALPHA, UP_TO_SCALE, Preimage, Transformation
from tiewise.analysis.grids import FLOAT32, MIN_DISTINCT, Grid
from tiewise.data.columns import Floats

LOG10_ALPHA_OF_LIST = -6.0  # the significance level for a single list
RANGES = ((0.0, 1.0), (0.5, 1.0), (0.0, 0.5), (0.75, 1.0), (0.0, 0.25))  # parts of the range of a list
OF_LISTS = [one for one in UP_TO_SCALE if one.name in ("scaling", "exp", "sigmoid")]  # exp: a softmax over a list
MAX_DENOMINATOR = 4096  # float16 has no more numbers in such a part
DENOMINATORS = np.arange(1.0, MAX_DENOMINATOR + 1)


@dataclass(frozen=True)
class EvenSteps:
    """How many lists come in even steps, among those with enough distinct scores."""

    lists: int
    looked_at: int
    function: str  #: the transformation of most of these lists
    log10_chance: float  #: log10 of the p-value: the chance of such even lists if scores were any numbers
    one_step: bool  #: whether the whole run has one step
    preimage: str  #: what comes in even steps

    @property
    def evidence(self) -> str:
        """The evidence, in a sentence."""
        lists = "the one list" if self.looked_at == 1 else f"{self.lists:,} of {self.looked_at:,} lists"
        where = "throughout the run" if self.one_step else f"in {lists} looked at"
        return (
            f"But {where}, {self.preimage} come in even steps, as numbers do that were rounded or counted, and scaled "
            f"after it. The probability of this by chance is below 1 in 10^{-math.ceil(self.log10_chance):,}."
        )

    @property
    def description(self) -> str:
        """What is true of the scores, as a clause."""
        return f"{self.preimage} come in even steps{'' if self.one_step else ', list by list'}"

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values."""
        return {name: value for name, value in vars(self).items() if name != "preimage"}


def find_even_steps(
    lists: Sequence[Floats], run: Floats, n_lists: int = 1, printings: Sequence[Grid] = ()
) -> EvenSteps | None:
    """The even steps of at least half of the lists, else those of the whole run; None without evidence.

    The scores of each list, and those of the run, are distinct and ascend. `printings` are the grids with which scores
    may have been printed: the steps that they make are not evidence.

    >>> coarse = [np.unique(np.round(np.sin(np.arange(q, q + 40.0) ** 2), 1)) for q in range(5)]
    >>> scaled = [(x - x.min()) / (x.max() - x.min()) for x in coarse]
    >>> find_even_steps(scaled, np.array([])).lists, find_even_steps([np.sin(x) for x in scaled], np.array([]))
    (5, None)
    >>> find_even_steps([], np.log(np.arange(40.0, 80.0) * 0.0137)).description
    'exponentials of scores come in even steps'
    """
    long = [x for x in lists if len(x) >= MIN_DISTINCT]
    tests, even = [], list[Transformation]()
    for x in long:
        tests.append(_test_list(x, OF_LISTS, printings))
        if tests[-1][0] < LOG10_ALPHA_OF_LIST:
            even.append(tests[-1][1])
        elif len(tests) - len(even) > len(long) / 2:  # the others cannot change the answer
            break
    p_value = _combine_p_values([p_value for p_value, _ in tests])
    if even and 2 * len(even) >= len(tests) and p_value <= LOG10_ALPHA:
        most = Counter(even).most_common(1)[0][0]
        return EvenSteps(len(even), len(tests), most.name, p_value, False, most.preimage)
    if len(run) < MIN_DISTINCT:
        return None
    p_value, best = _test_list(run, UP_TO_SCALE, printings)
    return EvenSteps(n_lists, n_lists, best.name, p_value, True, best.preimage) if p_value < LOG10_ALPHA else None


def _combine_p_values(log10_p: Sequence[float]) -> float:
    """log10 of the p-value of several independent tests, by Fisher's method.

    In logarithms, because scipy's p-value would be 0 below 10^-308.
    """
    total = -sum(log10_p) * math.log(10)
    if not total:
        return 0.0
    terms = [j * math.log(total) - math.lgamma(j + 1) for j in range(len(log10_p))]
    return min(0.0, float(np.logaddexp.reduce(terms) - total) / math.log(10))


def _test_list(
    x: Floats, transformations: Sequence[Transformation], printings: Sequence[Grid]
) -> tuple[float, Transformation]:
    """log10 of the p-value of even steps in a list of ascending scores, and the transformation that hides them.

    It is corrected for all tests that were made: parts of the range, transformations and denominators.
    """
    tests = math.log10(len(RANGES) * len(transformations) * MAX_DENOMINATOR)
    printed = np.max([grid.spacing(x) for grid in printings], axis=0) if printings else np.zeros(1)
    found = [
        (_log10_chance(part), transformation)
        for transformation in transformations
        if transformation.can_produce(x[0], x[-1])
        for part in _split_range(_invert_list(x, transformation, printed))
    ]
    p_value, best = min(found, key=lambda one: one[0], default=(0.0, transformations[0]))
    return min(0.0, p_value + tests), best


def _invert_list(x: Floats, transformation: Transformation, printed: Floats) -> Preimage:
    """The numbers behind ascending scores, printed in such steps; where they are finite, ascending as well."""
    largest = max(abs(x[0]), abs(x[-1]))  # may have been subtracted
    computed = transformation.error * FLOAT32.spacing(np.asarray(largest) if transformation.linear else x)
    preimage = transformation.invert(x, computed + printed / 2)
    known = preimage.take(np.isfinite(preimage.margin))
    descends = len(known.value) and known.value[0] > known.value[-1]
    return known.take(slice(None, None, -1)) if descends else known


def _split_range(preimage: Preimage) -> Iterator[Preimage]:
    """For each of `RANGES` the numbers inside it, if there are enough that differ."""
    place = _rescale(preimage.value)
    for low, high in RANGES:
        part = preimage.take((place >= low) & (place <= high))
        if len(part.value) >= MIN_DISTINCT and 0 < part.value[-1] - part.value[0] < np.inf:
            yield part


def _rescale(ascending: Floats) -> Floats:
    """Numbers with the first moved to 0 and the last to 1."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray((ascending - ascending[:1]) / (ascending[-1:] - ascending[:1]))


def _log10_chance(part: Preimage) -> float:
    """log10 of the chance that all numbers are fractions with their common denominator; 0 if they have none.

    Distinct scores must be distinct fractions.
    """
    value, margin = part
    width = value[-1] - value[0]
    tolerance, place = (margin + max(margin[0], margin[-1])) / width, (value - value[0]) / width
    # Two neighbours are distinct fractions, so they are at least 1 / denominator apart, but for their tolerances.
    least = 0.999999 / max((place[1:] - place[:-1] + tolerance[1:] + tolerance[:-1]).min(), 1e-300)
    if least > MAX_DENOMINATOR:
        return 0.0
    ordered = np.sort(tolerance)
    median = (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2
    denominators = DENOMINATORS[max(int(least) - 1, 0) : int(min(np.ceil(0.25 / median), MAX_DENOMINATOR))]
    denominators = denominators[4 * median * denominators < 1]  # with finer steps, most scores would always fit
    start = 1
    for stop in (2, 3, 9, 40, len(place) - 1):  # a few numbers rule out most denominators; the first and last fit all
        if not len(denominators):
            return 0.0
        steps = place[start:stop, None] * denominators
        fits = np.abs(steps - np.rint(steps)) <= tolerance[start:stop, None] * denominators
        denominators, start = denominators[fits[0] if len(fits) == 1 else fits.all(axis=0)], stop
    for denominator in denominators:
        if np.diff(np.rint(place * denominator)).min() >= 1:
            return float(np.log10(np.minimum(2 * tolerance[1:-1] * denominator, 1.0)).sum())
    return 0.0
