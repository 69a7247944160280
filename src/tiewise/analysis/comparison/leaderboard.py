"""A leaderboard: the ranks of all systems, and how far the order of ties or the sample of queries could move them.

The best rank of a system over ties is the one in its best order while all others have their worst. If one order breaks
the ties of all systems, that may be impossible. Then ranks are bounds from the ranges of the pairs, and are marked as
reached only if an order is known that gives them. A group ends only where all systems above are ahead of all below, in
every order of ties or in nearly all resamples of the queries.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tiewise.analysis.significance import ATOL, bootstrap_means
from tiewise.data.columns import Codes, Floats
from tiewise.metrics.aggregation import sum_over_queries
from tiewise.tables.records import Rows

__all__ = ["RankRanges", "leaderboard", "rank_in_one_order", "rank_independently"]


@dataclass(frozen=True)
class RankRanges:
    """The best and the worst rank of each system over the orders of ties, and whether an order reaches them."""

    best: Codes  # (n_systems,)
    worst: Codes
    reached: NDArray[np.bool_]
    all_above: Callable[[Codes, Codes], bool]  #: whether all of some systems are ahead of all of others in every order


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

    def all_above(some: Codes, others: Codes) -> bool:
        return bool(minimum[some].min() > maximum[others].max() + ATOL)

    return RankRanges(best, worst, np.ones(n, dtype=bool), all_above)


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
    return RankRanges(best, worst, reached, lambda some, others: bool(always_above[np.ix_(some, others)].all()))


def leaderboard(
    systems: Sequence[str],
    expected: Floats,  # (n_queries, n_systems)
    minimum: Floats,  # (n_systems,): of the mean
    maximum: Floats,
    oblivious: Floats | None,
    ranks: RankRanges,
    *,
    scale: float,
    confidence: float,
    resamples: int,
    seed: int,
) -> Rows:
    """The systems by descending expectation, each with its rank intervals and its groups."""
    mean = sum_over_queries(expected) / len(expected)
    order = np.argsort(-mean, kind="stable")
    low, high, separates_queries = _bootstrap_ranks(expected, order, confidence, resamples, seed)
    rank = 1 + np.searchsorted(np.sort(-mean), -mean - ATOL, side="left")
    separates_ties = [ranks.all_above(order[:index], order[index:]) for index in range(1, len(order))]
    return Rows(
        {
            "rank": rank[order].tolist(),
            "system": [systems[index] for index in order],
            "expected": (mean * scale)[order].tolist(),
            "minimum": minimum[order].tolist(),
            "maximum": maximum[order].tolist(),
            "oblivious": [None] * len(order) if oblivious is None else oblivious[order].tolist(),
            "rank_best": ranks.best[order].tolist(),
            "rank_worst": ranks.worst[order].tolist(),
            "ranks_reached": ranks.reached[order].tolist(),
            "group_ties": _number_groups(separates_ties),
            "rank_low": low[order].tolist(),
            "rank_high": high[order].tolist(),
            "group_queries": _number_groups(separates_queries.tolist()),
        }
    )


def _number_groups(ends_group: Sequence[bool]) -> list[int]:
    """The number of the group of each place, given after which places a group ends."""
    return list(accumulate(ends_group, initial=1))


def _bootstrap_ranks(
    expected: Floats, order: Codes, confidence: float, resamples: int, seed: int
) -> tuple[Codes, Codes, NDArray[np.bool_]]:
    """The rank interval of each system over resamples, and after which places all above stay ahead."""
    ranks = np.empty((resamples, len(order)), dtype=np.int32)
    separated, done = np.zeros(len(order) - 1), 0
    for means in bootstrap_means(expected, resamples, seed):
        ranks[done : done + len(means)] = _ranks(means)
        ordered = means[:, order]
        above = np.minimum.accumulate(ordered, axis=1)[:, :-1]
        below = np.maximum.accumulate(ordered[:, ::-1], axis=1)[:, ::-1][:, 1:]
        separated += np.count_nonzero(above > below + ATOL, axis=0)
        done += len(means)
    tail = (1 - confidence) / 2
    low: Any = np.quantile(ranks, tail, axis=0, method="lower")  # the type of `ranks`: these methods do not average
    high: Any = np.quantile(ranks, 1 - tail, axis=0, method="higher")
    return low, high, separated >= confidence * resamples


def _ranks(means: Floats) -> Codes:
    """1 + the number of systems that are higher, in each row."""
    order = np.argsort(-means, axis=1)
    descending = np.take_along_axis(means, order, axis=1)
    ranks = np.empty(means.shape, dtype=np.int64)
    np.put_along_axis(ranks, order, np.arange(1, means.shape[1] + 1)[None, :], axis=1)
    for row in np.flatnonzero((descending[:, :-1] - descending[:, 1:] <= 2 * ATOL).any(axis=1)):  # nearly equal
        ranks[row] = 1 + np.searchsorted(-descending[row], -means[row] - ATOL)
    return ranks
