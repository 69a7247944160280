"""The ranks that the orders of ties allow each system: from the ranges of systems, or of pairs in one common order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tiewise.analysis.significance import ATOL
from tiewise.data.columns import Codes, Floats


@dataclass(frozen=True)
class RankRanges:
    """The best and the worst rank of each system over the orders of ties, and whether an order reaches them."""

    best: Codes  # (n_systems,)
    worst: Codes
    reached: NDArray[np.bool_]


def rank_independently(minimum: Floats, maximum: Floats) -> RankRanges:
    """The ranks if each system may be anywhere in its range; equal values share a rank.

    >>> ranks = rank_independently(np.array([0.3, 0.2, 0.1]), np.array([0.4, 0.35, 0.1]))
    >>> ranks.best, ranks.worst
    (array([1, 1, 3]), array([2, 2, 3]))
    """
    n, lows, highs = len(minimum), np.sort(minimum), np.sort(maximum)
    best = 1 + n - np.searchsorted(lows, maximum + ATOL, side="right")
    # The highest value of a tied system is above its own lowest; it is not one of the others.
    worst = n - np.searchsorted(highs, minimum + ATOL, side="right") + (maximum <= minimum + ATOL)
    return RankRanges(best, worst, np.ones(n, dtype=bool))


def rank_in_one_order(lowest: Floats, exact: NDArray[np.bool_], sampled: Floats) -> RankRanges:
    """The ranks if one order breaks the ties of all systems.

    `lowest` has the lowest value of i − j for each pair, `exact` whether some order gives it, and `sampled` the values
    of all systems in some orders, (n_orders, n_systems).

    >>> lowest = np.array([[0.0, -0.1, 0.2], [-0.2, 0.0, 0.1], [-0.4, -0.3, 0.0]])
    >>> ranks = rank_in_one_order(lowest, np.ones((3, 3), dtype=bool), np.array([[0.4, 0.3, 0.1]]))
    >>> ranks.best, ranks.worst, ranks.reached
    (array([1, 1, 3]), array([2, 2, 3]), array([ True,  True,  True]))
    """
    always_above, can_be_above = lowest > ATOL, lowest.T < -ATOL
    best, worst = 1 + always_above.sum(axis=0), 1 + can_be_above.sum(axis=0)
    # The extremes of a pair are those of the rank if there is only one rival. Otherwise an order must show them.
    rivals = can_be_above & ~always_above
    is_known = (rivals.sum(axis=0) <= 1) & (exact | ~rivals).all(axis=0)
    ranks = _ranks(sampled)
    reached = is_known | ((ranks.min(axis=0) == best) & (ranks.max(axis=0) == worst))
    return RankRanges(best, worst, reached)


def _ranks(means: Floats) -> Codes:
    """1 + the number of systems that are higher, in each row."""
    order = np.argsort(-means, axis=1)
    descending = np.take_along_axis(means, order, axis=1)
    ranks = np.empty(means.shape, dtype=np.int64)
    np.put_along_axis(ranks, order, np.arange(1, means.shape[1] + 1)[None, :], axis=1)
    for row in np.flatnonzero((descending[:, :-1] - descending[:, 1:] <= 2 * ATOL).any(axis=1)):  # nearly equal
        ranks[row] = 1 + np.searchsorted(-descending[row], -means[row] - ATOL)
    return ranks
