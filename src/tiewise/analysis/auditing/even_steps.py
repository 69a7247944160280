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
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tiewise.analysis.auditing.grids import FLOAT32, MIN_DISTINCT, Grid
from tiewise.analysis.auditing.quantization import LOG10_ALPHA
from tiewise.analysis.auditing.transformations import UP_TO_SCALE, Transformation
from tiewise.data.columns import Codes, Floats

__all__ = ["EvenSteps", "find_even_steps"]

LOG10_ALPHA_OF_LIST = -6.0  # the significance level for a single list
RANGES = ((0.0, 1.0), (0.5, 1.0), (0.0, 0.5), (0.75, 1.0), (0.0, 0.25))  # parts of the range of a list
OF_LISTS = [one for one in UP_TO_SCALE if one.name in ("scaling", "exp", "sigmoid")]  # exp: a softmax over a list
MAX_DENOMINATOR = 4096  # float16 has no more numbers in such a part


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
    may have been printed: the steps that they make are no evidence.

    >>> coarse = [np.unique(np.round(np.sin(np.arange(q, q + 40.0) ** 2), 1)) for q in range(5)]
    >>> scaled = [(x - x.min()) / (x.max() - x.min()) for x in coarse]
    >>> find_even_steps(scaled, np.array([])).lists, find_even_steps([np.sin(x) for x in scaled], np.array([]))
    (5, None)
    >>> find_even_steps([], np.log(np.arange(40.0, 80.0) * 0.0137)).description
    'exponentials of scores come in even steps'
    """
    tests = _test_lists([x for x in lists if len(x) >= MIN_DISTINCT], OF_LISTS, printings)
    even = [transformation for p_value, transformation in tests if p_value < LOG10_ALPHA_OF_LIST]
    p_value = _combine_p_values([p_value for p_value, _ in tests])
    if even and 2 * len(even) >= len(tests) and p_value <= LOG10_ALPHA:
        most = Counter(even).most_common(1)[0][0]
        return EvenSteps(len(even), len(tests), most.name, p_value, False, most.preimage)
    if len(run) < MIN_DISTINCT:
        return None
    ((p_value, best),) = _test_lists([run], UP_TO_SCALE, printings)
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


def _test_lists(
    lists: Sequence[Floats], transformations: Sequence[Transformation], printings: Sequence[Grid]
) -> list[tuple[float, Transformation]]:
    """For each list, log10 of the p-value of even steps, and the transformation that hides them.

    It is corrected for all tests that were made: parts of the range, transformations and denominators.
    """
    tests = math.log10(len(RANGES) * len(transformations) * MAX_DENOMINATOR)
    best = [(0.0, transformations[0])] * len(lists)
    for transformation in transformations:
        for parts in _split_ranges(lists, transformation, printings):
            for number, p_value in zip(parts.number.tolist(), _test_parts(parts), strict=True):
                if p_value < best[number][0]:
                    best[number] = p_value, transformation
    return [(min(0.0, p_value + tests), transformation) for p_value, transformation in best]


class _Parts(NamedTuple):
    """Parts of lists, one after another: the numbers behind their scores, ascending, moved to 0 … 1."""

    number: Codes  # (n_parts,): of the list
    first: Codes  # (n_parts,): where the part begins in the arrays below
    last: Codes
    place: Floats  # (n_scores,)
    tolerance: Floats


def _split_ranges(
    lists: Sequence[Floats], transformation: Transformation, printings: Sequence[Grid]
) -> Iterator[_Parts]:
    """The preimages of lists of ascending scores: for each of `RANGES` the parts that hold enough of them."""
    numbers = [number for number, x in enumerate(lists) if transformation.can_produce(x[0], x[-1])]
    if not numbers:
        return
    chosen = [lists[number] for number in numbers]
    x, number = np.concatenate(chosen), np.repeat(numbers, list(map(len, chosen)))
    first, last = _find_ends(number)
    largest = _spread(np.maximum(np.abs(x[first]), np.abs(x[last])), first, last)  # may have been subtracted
    printed = np.max([grid.spacing(x) for grid in printings], axis=0, initial=0.0) if printings else 0.0
    computed = transformation.error * FLOAT32.spacing(largest if transformation.linear else x)
    preimage = transformation.invert(x, computed + printed / 2)
    known = np.isfinite(preimage.margin)
    (value, margin), number = preimage.take(known), number[known]
    first, last = _find_ends(number)
    at = np.arange(len(value))
    descends = _spread(value[first] > value[last], first, last)
    at = np.where(descends, _spread(first + last, first, last) - at, at)
    value, margin = value[at], margin[at]
    place = _rescale(value, first, last)
    for low, high in RANGES:
        inside = np.flatnonzero((place >= low) & (place <= high))
        yield _take_parts(number[inside], value[inside], margin[inside])


def _take_parts(number: Codes, value: Floats, margin: Floats) -> _Parts:
    """The parts with enough numbers that differ."""
    first, last = _find_ends(number)
    width = value[last] - value[first]
    enough = (last - first + 1 >= MIN_DISTINCT) & (width > 0) & np.isfinite(width)
    kept = _spread(enough, first, last)
    number, value, margin = number[kept], value[kept], margin[kept]
    first, last = _find_ends(number)
    tolerance = margin + _spread(np.maximum(margin[first], margin[last]), first, last)
    place = _rescale(value, first, last)
    return _Parts(number[first], first, last, place, tolerance / _spread(width[enough], first, last))


def _find_ends(segment: Codes) -> tuple[Codes, Codes]:
    """Where each segment begins, and where it ends."""
    first = np.flatnonzero(np.diff(segment, prepend=-1))
    return first, np.append(first[1:], len(segment))[: len(first)] - 1


def _spread(values: NDArray[Any], first: Codes, last: Codes) -> NDArray[Any]:
    """A value for each segment, repeated for all its elements."""
    return np.repeat(values, last - first + 1)


def _rescale(value: Floats, first: Codes, last: Codes) -> Floats:
    """The numbers of each segment, with its first moved to 0 and its last to 1."""
    with np.errstate(divide="ignore", invalid="ignore"):
        moved: Floats = (value - _spread(value[first], first, last)) / _spread(value[last] - value[first], first, last)
    return moved


def _test_parts(parts: _Parts) -> list[float]:
    """log10 of the chance that all numbers of a part are fractions with their common denominator; 0 if there is none.

    Distinct scores must be distinct fractions.
    """
    found = [0.0] * len(parts.first)
    for part, denominator in zip(*_find_denominators(parts), strict=True):
        inside = slice(parts.first[part], parts.last[part] + 1)
        if not found[part] and np.diff(np.rint(parts.place[inside] * denominator)).min() >= 1:
            tolerance = parts.tolerance[inside][1:-1]
            found[part] = float(np.log10(np.minimum(2 * tolerance * denominator, 1.0)).sum())
    return found


def _find_denominators(parts: _Parts) -> tuple[list[int], list[float]]:
    """All denominators with which all numbers of a part are fractions, ascending, and the part of each."""
    _, first, last, place, tolerance = parts
    if not len(first):
        return [], []
    ordered = tolerance[np.lexsort((tolerance, _spread(first, first, last)))]
    median = (ordered[(first + last) // 2] + ordered[(first + last + 1) // 2]) / 2
    highest = np.minimum(np.ceil(0.25 / median), MAX_DENOMINATOR)  # with finer steps, most scores would always fit
    # The second number is one step or more above the first, which is 0. Each number of steps leaves few denominators.
    part, steps = _expand(np.ones(len(first)), np.rint(place[first + 1] * highest))
    second, error = place[first[part] + 1], tolerance[first[part] + 1]
    low = np.maximum(steps / (second + error), (steps - 0.5) / second)
    high = np.minimum(steps / np.maximum(second - error, second / 2), (steps + 0.5) / second)
    index, denominator = _expand(np.ceil(low - 1e-6), np.minimum(np.floor(high + 1e-6), highest[part]))
    part = part[index]
    fits = 4 * median[part] * denominator < 1
    for offset in range(1, int((last - first).max())):
        if not fits.any():
            break
        part, denominator = part[fits], denominator[fits]
        at = np.minimum(first[part] + offset, last[part])  # the last number, 1, fits every denominator
        steps = place[at] * denominator
        fits = np.abs(steps - np.rint(steps)) <= tolerance[at] * denominator
    return part[fits].tolist(), denominator[fits].tolist()


def _expand(low: Floats, high: Floats) -> tuple[Codes, Floats]:
    """All whole numbers from `low` to `high`, for one pair of bounds after another, and the index of the pair."""
    counts = np.maximum(high - low + 1, 0).astype(np.int64)
    index = np.repeat(np.arange(len(low)), counts)
    return index, low[index] + (np.arange(len(index)) - np.repeat(np.cumsum(counts) - counts, counts))
