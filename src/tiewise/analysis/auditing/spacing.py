"""Whether distinct scores lie as near to each other as they would if nothing but chance kept them apart.

Rounded numbers keep a distance of one step, and so does whatever a smooth function makes of them, known or not: where
ties are frequent, no two distinct scores lie much nearer to each other than their neighbours do. Documents that are
tied for another reason, such as copies, leave the distances between other scores as chance made them: some are small.

How far apart rounding would keep scores follows from the ties themselves. If a step holds λ documents on average, a
share λ / (e^λ − 1) of the steps that hold any hold one, and 1 − e^−λ of all steps hold any.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tiewise.analysis.auditing.grids import FLOAT32
from tiewise.analysis.auditing.grouping import Grouping
from tiewise.data.columns import Codes, Floats

__all__ = ["Spacing", "spacing_of"]

ENOUGH = 10  # so many near neighbours must be expected for their absence, or presence, to say anything
MOST = 0.6  # this share of them must be there for ties to be no work of rounding
AROUND = 4  # a gap is compared with so many on either side
NEAR = 0.6  # of a step: in one power of two and the next, steps differ by a factor of 2
GEOMETRIC = 0.62  # the mean of a geometric mean of eight exponential numbers of mean 1
TIED = 8  # how frequent ties are is counted up to so many tied groups on either side
EQUAL = 4  # scores so few float32 steps apart may come from one number

_LOAD = np.linspace(12.0, 1e-3, 4000)  # documents in a step
_ALONE = _LOAD / np.expm1(_LOAD)  # of steps that hold any, those that hold one


class Spacing(NamedTuple):
    """How many gaps between neighbouring scores are smaller than rounding would leave."""

    near: int
    expected: float  #: as many would be if gaps came about by chance

    @property
    def known(self) -> bool:
        """Whether there are enough ties and distinct scores to say."""
        return self.expected >= ENOUGH

    @property
    def share(self) -> float | None:
        """Of those expected, the share that is there: about 1 by chance, about 0 after rounding; None if few are."""
        return self.near / self.expected if self.known else None

    @property
    def kept_apart(self) -> bool:
        """Whether scores lie less near to each other than chance would have it."""
        return self.known and self.near < MOST * self.expected

    @property
    def by_chance(self) -> bool:
        """Whether scores lie as near to each other as chance would have it, so that rounding made few ties."""
        return self.known and self.near >= MOST * self.expected


def spacing_of(groups: Grouping) -> Spacing:
    """The spacing of a run's scores.

    >>> from tiewise.io import as_run
    >>> places = np.arange(400.0)
    >>> copies = np.append(places, places[::10]) ** 2 * 0.6180339887 % 1
    >>> rounded = np.tanh(np.round(copies, 2))
    >>> for scores in (copies, rounded):
    ...     run = as_run({"q": {f"d{i}": score for i, score in enumerate(scores)}})
    ...     spacing_of(Grouping.of(run)).by_chance
    True
    False
    """
    query, score, tied = _distinct(groups)
    found = [
        _near(relative[order], tied_above[order])
        for here, value in _scales(score)
        for relative, tied_above, orders in [_gaps(query[here], value[here], tied[here])]
        for order in orders
    ]
    return min(found, key=lambda one: one.near / max(one.expected, 1.0))


def _distinct(groups: Grouping) -> tuple[Codes, Floats, NDArray[np.bool_]]:
    """Distinct scores, best first, with their lists and whether several documents have each; those equal up to the
    error of a score function are one."""
    query, score, size = groups.sample()
    head = np.ones(len(score), dtype=bool)
    head[1:] = (query[1:] != query[:-1]) | (score[:-1] - score[1:] > EQUAL * FLOAT32.step(score[1:]))
    first = np.flatnonzero(head)
    return query[first], score[first], (np.add.reduceat(size, first) if len(first) else size) > 1


def _scales(score: Floats) -> Iterator[tuple[NDArray[np.bool_], Floats]]:
    """The scores as they are and, if all have one sign, their logarithms, with which of them have one.

    Those of a softmax lie apart as exponential numbers do, which are even on that scale only.
    """
    yield np.ones(len(score), dtype=bool), score
    low, high = score.min(initial=0.0), score.max(initial=0.0)
    if low == 0 or high == 0:
        with np.errstate(divide="ignore"):
            yield score != 0, np.log(score) if low == 0 else -np.log(-score)


def _gaps(
    query: Codes, score: Floats, tied: NDArray[np.bool_]
) -> tuple[Floats, NDArray[np.bool_], tuple[Codes, Codes]]:
    """The gaps between neighbouring scores of a list relative to those around them, whether the score above each is
    tied, and two orders of gaps: by list, and by score."""
    above = np.flatnonzero(query[1:] == query[:-1])
    gap = score[above] - score[above + 1]
    mine = np.flatnonzero(_beside(query[above]) >= AROUND)
    sums = np.concatenate([[0.0], np.cumsum(np.log(gap))])
    around = (sums[mine + AROUND + 1] - sums[mine - AROUND] - np.log(gap[mine])) / (2 * AROUND)
    upper, lower = score[above[mine]], score[above[mine] + 1]
    by_score = np.lexsort((lower, upper))
    new = np.ones(len(by_score), dtype=bool)  # a gap that several lists have is one observation
    new[1:] = (np.diff(upper[by_score]) != 0) | (np.diff(lower[by_score]) != 0)
    once = by_score[new]
    return gap[mine] / np.exp(around), tied[above[mine]], (np.sort(once), once)


def _beside(query: Codes) -> Codes:
    """How many gaps of the same list stand on either side of each, whichever are fewer."""
    first = np.flatnonzero(np.diff(query, prepend=-1))
    length = np.diff(np.append(first, len(query)))
    place = np.arange(len(query)) - np.repeat(first, length)
    return np.minimum(place, np.repeat(length, length) - 1 - place)


def _near(relative: Floats, tied: NDArray[np.bool_]) -> Spacing:
    """The gaps that are smaller than rounding would leave, where ties are as frequent as around each of them."""
    where = np.flatnonzero(tied)
    if not len(where):
        return Spacing(0, 0.0)
    before = np.searchsorted(where, np.arange(len(tied)))
    low, high = before - TIED, before + TIED
    start = np.where(low < 0, 0, where[np.maximum(low, 0)])
    stop = np.where(high > len(where), len(tied), where[np.minimum(high, len(where)) - 1] + 1)
    alone = 1 - (np.minimum(high, len(where)) - np.maximum(low, 0)) / (stop - start)
    occupied = -np.expm1(-np.interp(alone, _ALONE, _LOAD))
    near = NEAR * occupied
    return Spacing(int(np.count_nonzero(relative < near)), float(-np.expm1(-GEOMETRIC * near).sum()))
