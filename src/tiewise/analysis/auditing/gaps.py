"""Whether distinct scores come as near to each other as they would by chance.

Rounded numbers are at least one step apart, and a smooth function keeps them apart, known or not: where ties are
frequent, no two distinct scores are much nearer than their neighbours are. Documents that tie for another reason, such
as copies, leave the gaps between other scores as chance made them: some gaps are small.

The size of the rounding step follows from the ties. If a step holds λ documents on average, a share λ / (e^λ − 1) of
the non-empty steps holds exactly one document, and 1 − e^−λ of all steps are not empty.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tiewise.analysis.auditing.tie_statistics import TieStatistics
from tiewise.analysis.grids import FLOAT32
from tiewise.data.columns import Codes, Floats

BY_CHANCE = 0.6  # from this share of the expected small gaps on, rounding did not make the ties
MIN_EXPECTED = 10  # small gaps that must be expected for the share to mean anything
NEIGHBOURS = 4  # on either side: the gaps with which a gap is compared
SMALL_GAP = 0.6  # of a step; in one power of two and the next, steps differ by a factor of 2
GEOMETRIC_MEAN = 0.62  # the expected geometric mean of eight exponential variables of mean 1
TIED_NEIGHBOURS = 8  # on either side: the tied groups from which the local frequency of ties is estimated
EQUAL_ULPS = 4  # float32 steps: scores that are no further apart may come from one number

_LOAD = np.linspace(12.0, 1e-3, 4000)  # λ, documents per step
_SINGLE_SHARE = _LOAD / np.expm1(_LOAD)  # of the non-empty steps, those with one document


def measure_small_gaps(ties: TieStatistics) -> float | None:
    """The number of gaps between scores that are smaller than rounding would leave, relative to that by chance.

    It is about 1 if chance made the gaps, about 0 after rounding, None if there are too few ties or distinct scores.

    >>> from tiewise.io import as_run
    >>> places = np.arange(400.0)
    >>> copies = np.append(places, places[::10]) ** 2 * 0.6180339887 % 1
    >>> rounded = np.tanh(np.round(copies, 2))
    >>> for scores in (copies, rounded):
    ...     run = as_run({"q": {f"d{i}": score for i, score in enumerate(scores)}})
    ...     print(round(measure_small_gaps(TieStatistics(run)), 1))
    1.2
    0.0
    """
    query, score, tied = _merge_nearly_equal(*ties.sample_groups())
    counts = _count_small_gaps(query, score, tied)
    sign = 1 if score.min(initial=0.0) == 0 else -1 if score.max(initial=0.0) == 0 else 0
    if sign:  # the steps of a softmax are even only on a logarithmic scale
        query, score, tied = (column[score != 0] for column in (query, score, tied))
        counts += _count_small_gaps(query, sign * np.log(sign * score), tied)
    small, expected = min(counts, key=lambda one: one[0] / max(one[1], 1.0))
    return small / expected if expected >= MIN_EXPECTED else None


def _merge_nearly_equal(query: Codes, score: Floats, size: Codes) -> tuple[Codes, Floats, NDArray[np.bool_]]:
    """Distinct scores of each list, best first, and whether several documents have each.

    Scores that are equal up to the error of a transformation count as one.
    """
    new = np.ones(len(score), dtype=bool)
    new[1:] = (query[1:] != query[:-1]) | (score[:-1] - score[1:] > EQUAL_ULPS * FLOAT32.spacing(score[1:]))
    first = np.flatnonzero(new)
    return query[first], score[first], (np.add.reduceat(size, first) if len(first) else size) > 1


def _count_small_gaps(query: Codes, score: Floats, tied: NDArray[np.bool_]) -> list[tuple[int, float]]:
    """The gaps that are smaller than rounding would leave, and the expected number of them.

    The gaps are looked at in two orders: by list, and by score. The same gap in several lists is one observation.
    """
    above = np.flatnonzero(query[1:] == query[:-1])  # the score above each gap
    gap, of_list = score[above] - score[above + 1], query[above]
    inner = NEIGHBOURS + np.flatnonzero(of_list[2 * NEIGHBOURS :] == of_list[: -2 * NEIGHBOURS])  # enough gaps around
    logs = np.log(gap)
    sums = np.concatenate([[0.0], np.cumsum(logs)])
    around = (sums[inner + NEIGHBOURS + 1] - sums[inner - NEIGHBOURS] - logs[inner]) / (2 * NEIGHBOURS)
    relative, is_tied = gap[inner] / np.exp(around), tied[above[inner]]
    upper, lower = score[above[inner]], score[above[inner] + 1]
    by_score = np.lexsort((lower, upper))
    new = np.ones(len(by_score), dtype=bool)
    new[1:] = (np.diff(upper[by_score]) != 0) | (np.diff(lower[by_score]) != 0)
    once = by_score[new]
    counts = []
    for order in (np.sort(once), once):
        limit = _limits(is_tied[order])
        small = int(np.count_nonzero(relative[order] < limit))
        counts.append((small, float(-np.expm1(-GEOMETRIC_MEAN * limit).sum())))
    return counts


def _limits(tied: NDArray[np.bool_]) -> Floats:
    """The size below which rounding would leave no gap, relative to the gaps around, by the frequency of ties there.

    It is 0 without ties.
    """
    where = np.flatnonzero(tied)
    if not len(where):
        return np.zeros(len(tied))
    before = np.searchsorted(where, np.arange(len(tied)))
    low, high = before - TIED_NEIGHBOURS, before + TIED_NEIGHBOURS
    start = np.where(low < 0, 0, where[np.maximum(low, 0)])
    stop = np.where(high > len(where), len(tied), where[np.minimum(high, len(where)) - 1] + 1)
    single = 1 - (np.minimum(high, len(where)) - np.maximum(low, 0)) / (stop - start)
    occupied = -np.expm1(-np.interp(single, _SINGLE_SHARE, _LOAD))
    return np.asarray(SMALL_GAP * occupied)
