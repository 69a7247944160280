"""Whether distinct scores lie as near to each other as they would if nothing but chance kept them apart.

Rounded numbers keep a distance of one step, and so does whatever a smooth function makes of them, known or not: where
ties are frequent, no two distinct scores lie much nearer to each other than their neighbours do. Documents that are
tied for another reason, such as copies, leave the distances between other scores as chance made them: some are small.

How far apart rounding would keep scores follows from the ties themselves. If a step holds λ documents on average, a
share λ / (e^λ − 1) of the steps that hold any hold one, and 1 − e^−λ of all steps hold any.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tiewise.columns import Codes, Floats
from tiewise.tieaudit.grids import FLOAT32
from tiewise.tieaudit.grouping import Grouping

__all__ = ["Spacing", "spacing_of"]

ENOUGH = 10  # so many near neighbours must be expected for their absence, or presence, to say anything
HALF = 0.5  # this share of them must be there for ties to be no work of rounding
AROUND = 4  # a gap is compared with so many on either side, where a function is as good as linear or exponential
LEAST = 4  # of them, so many there must be
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
        return self.known and self.near < HALF * self.expected

    @property
    def by_chance(self) -> bool:
        """Whether scores lie as near to each other as chance would have it, so that rounding made few ties."""
        return self.known and self.near >= HALF * self.expected


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
    gaps = _gaps(groups)
    if not len(gaps.relative):
        return Spacing(0, 0.0)
    found = [_near(gaps.relative[order], gaps.tied[order]) for order in (gaps.by_list, gaps.by_score)]
    return min(found, key=lambda one: one.near / max(one.expected, 1.0))


class _Gaps(NamedTuple):
    """The gaps between neighbouring scores of a list, each relative to those around it, with two orders of them."""

    relative: Floats  # (n_gaps,)
    tied: NDArray[np.bool_]  # (n_gaps,): whether the score above is that of several documents
    by_list: Codes
    by_score: Codes


def _gaps(groups: Grouping) -> _Gaps:
    query, score, size = groups.sample()
    head = np.ones(len(score), dtype=bool)
    head[1:] = (query[1:] != query[:-1]) | (score[:-1] - score[1:] > EQUAL * FLOAT32.step(score[1:]))
    first = np.flatnonzero(head)
    query, score = query[first], score[first]
    tied = (np.add.reduceat(size, first) if len(first) else size) > 1
    above = np.flatnonzero(query[1:] == query[:-1])
    gap = score[above] - score[above + 1]
    around = _within(query[above])
    mine = np.flatnonzero(around >= LEAST)
    around = around[mine]
    sums = np.concatenate([[0.0], np.cumsum(np.log(gap))])
    beside = (sums[mine + around + 1] - sums[mine - around] - np.log(gap[mine])) / (2 * around)
    relative, upper, lower = gap[mine] / np.exp(beside), score[above[mine]], score[above[mine] + 1]
    by_score = np.lexsort((lower, upper))
    new = np.ones(len(by_score), dtype=bool)  # a gap that several lists have is one observation
    new[1:] = (np.diff(upper[by_score]) != 0) | (np.diff(lower[by_score]) != 0)
    return _Gaps(relative, tied[above[mine]], np.sort(by_score[new]), by_score[new])


def _within(query: Codes) -> Codes:
    """How many gaps of the same list stand on either side of each, up to those that are looked at."""
    first = np.flatnonzero(np.diff(query, prepend=-1))
    length = np.diff(np.append(first, len(query)))
    place = np.arange(len(query)) - np.repeat(first, length)
    return np.minimum(AROUND, np.minimum(place, np.repeat(length, length) - 1 - place))


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
