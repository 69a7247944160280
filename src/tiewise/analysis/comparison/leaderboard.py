"""A leaderboard: in which order systems stand, and how far the order of ties or the sample of queries could move them.

A system's best rank over ties is the one it has when its own ties fall well and all others' fall badly. Where one order
breaks the ties of all, they cannot always do so at once: then ranks are bounds, found pair by pair, and marked as
reached only if an order is known that gives them. Groups are cut only where all above stand over all below, whatever
the order of ties, or in nearly all resamples of the queries.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tiewise.analysis.significance import ATOL, bootstrap_means
from tiewise.data.columns import Codes, Floats
from tiewise.tables.records import Rows

__all__ = ["Ranks", "apart", "leaderboard", "together"]


@dataclass(frozen=True)
class Ranks:
    """What the orders of ties allow: the best and the worst rank of each system, and whether an order reaches them."""

    best: Codes  # (n_systems,)
    worst: Codes
    reached: NDArray[np.bool_]
    over: Callable[[Codes, Codes], bool]  #: whether all of some systems stand above all of some others in every order


def apart(minimum: Floats, maximum: Floats) -> Ranks:
    """The ranks if each system may lie anywhere in its range; equal values share a rank.

    >>> ranks = apart(np.array([0.3, 0.2, 0.1]), np.array([0.4, 0.35, 0.1]))
    >>> ranks.best, ranks.worst
    (array([1, 1, 3]), array([2, 2, 3]))
    """
    lows, highs = np.sort(minimum), np.sort(maximum)
    n = len(lows)
    best = 1 + n - np.searchsorted(lows, maximum + ATOL, side="right")
    # Its own highest value may stand above its lowest, and is none of the others.
    worst = n - np.searchsorted(highs, minimum + ATOL, side="right") + (maximum <= minimum + ATOL)
    reached = np.ones(n, dtype=bool)
    return Ranks(best, worst, reached, lambda some, others: minimum[some].min() > maximum[others].max() + ATOL)


def together(low: Floats, exact: NDArray[np.bool_], drawn: Floats) -> Ranks:
    """The ranks if one order breaks the ties of all.

    `low` holds the least that i − j can be, for each pair, and `exact` whether some order gives that; `drawn` has the
    values of all systems in some orders, (n_orders, n_systems).

    >>> low = np.array([[0.0, -0.1, 0.2], [-0.2, 0.0, 0.1], [-0.4, -0.3, 0.0]])
    >>> ranks = together(low, np.ones((3, 3), dtype=bool), np.array([[0.4, 0.3, 0.1]]))
    >>> ranks.best, ranks.worst, ranks.reached
    (array([1, 1, 3]), array([2, 2, 3]), array([ True,  True,  True]))
    """
    always, ever = low > ATOL, low.T < -ATOL  # whether i stands above j in every order; in some order
    best, worst = 1 + always.sum(axis=0), 1 + ever.sum(axis=0)
    # Against one rival alone, the extremes of the pair are those of the rank; against more, an order must show them.
    rivals = ever & ~always
    known = (rivals.sum(axis=0) <= 1) & (exact | ~rivals).all(axis=0)
    seen = _ranks(drawn)
    reached = known | ((seen.min(axis=0) == best) & (seen.max(axis=0) == worst))
    return Ranks(best, worst, reached, lambda some, others: bool(always[np.ix_(some, others)].all()))


def leaderboard(
    systems: Sequence[str],
    expected: Floats,  # (n_queries, n_systems)
    minimum: Floats,  # (n_systems,): of the mean
    maximum: Floats,
    oblivious: Floats | None,
    ranks: Ranks,
    *,
    scale: float,
    confidence: float,
    samples: int,
    seed: int,
) -> Rows:
    """The systems by descending expectation, each with its rank intervals and its groups."""
    mean = expected.mean(axis=0)
    order = np.lexsort((np.arange(len(mean)), -mean))
    low, high, firm = _over_queries(expected, order, confidence, samples, seed)
    rank = 1 + np.searchsorted(np.sort(-mean), -mean - ATOL, side="left")
    firm_in_ties = np.array([ranks.over(order[:place], order[place:]) for place in range(1, len(order))], dtype=bool)
    return Rows(
        {
            "rank": rank[order].tolist(),
            "system": [systems[place] for place in order],
            "expected": (mean * scale)[order].tolist(),
            "minimum": minimum[order].tolist(),
            "maximum": maximum[order].tolist(),
            "oblivious": [None] * len(order) if oblivious is None else oblivious[order].tolist(),
            "rank_best": ranks.best[order].tolist(),
            "rank_worst": ranks.worst[order].tolist(),
            "ranks_reached": ranks.reached[order].tolist(),
            "group_ties": _groups(firm_in_ties),
            "rank_low": low[order].tolist(),
            "rank_high": high[order].tolist(),
            "group_queries": _groups(firm),
        }
    )


def _groups(cut_after: NDArray[np.bool_]) -> list[int]:
    """The number of each place's group, when groups are cut after some places."""
    return [1, *(1 + np.cumsum(cut_after)).tolist()]


def _over_queries(
    expected: Floats, order: Codes, confidence: float, samples: int, seed: int
) -> tuple[Codes, Codes, NDArray[np.bool_]]:
    """The interval of each system's rank over resamples of the queries, and after which places all above stay above."""
    ranks = np.empty((samples, len(order)), dtype=np.int32)
    firm, done = np.zeros(len(order) - 1), 0
    for means in bootstrap_means(expected, samples, seed):
        some = slice(done, done + len(means))
        ranks[some] = _ranks(means)
        sorted_ = means[:, order]
        above = np.minimum.accumulate(sorted_, axis=1)[:, :-1]
        below = np.maximum.accumulate(sorted_[:, ::-1], axis=1)[:, ::-1][:, 1:]
        firm += np.count_nonzero(above > below + ATOL, axis=0)
        done += len(means)
    tail = (1 - confidence) / 2
    low: Any = np.quantile(ranks, tail, axis=0, method="lower")
    high: Any = np.quantile(ranks, 1 - tail, axis=0, method="higher")
    return low, high, firm >= confidence * samples


def _ranks(means: Floats) -> Codes:
    """1 + the number of systems that are higher, in each row."""
    descending = np.sort(-means, axis=1)
    return np.stack([1 + np.searchsorted(row, -own - ATOL) for row, own in zip(descending, means, strict=True)])
