"""A leaderboard: in which order systems stand, and how far the order of ties or the sample of queries could move them.

A system's best rank over ties is the one it has when its own ties fall well and all others' fall badly. Groups are cut
only where all above stand over all below, whatever the order of ties, or in nearly all resamples of the queries.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tiewise.columns import Codes, Floats
from tiewise.records import Rows
from tiewise.significance import DUST, bootstrap

__all__ = ["leaderboard", "rank_interval"]


def rank_interval(minimum: Floats, maximum: Floats) -> tuple[Codes, Codes]:
    """The best and the worst rank of each system, if each may lie anywhere in its range; equal values share a rank.

    >>> rank_interval(np.array([0.3, 0.2, 0.1]), np.array([0.4, 0.35, 0.1]))
    (array([1, 1, 3]), array([2, 2, 3]))
    """
    lows, highs = np.sort(minimum), np.sort(maximum)
    n = len(lows)
    best = 1 + n - np.searchsorted(lows, maximum + DUST, side="right")
    # Its own highest value may stand above its lowest, and is none of the others.
    worst = n - np.searchsorted(highs, minimum + DUST, side="right") + (maximum <= minimum + DUST)
    return best, worst


def leaderboard(
    systems: Sequence[str],
    expected: Floats,  # (n_queries, n_systems)
    minimum: Floats,  # (n_systems,): of the mean
    maximum: Floats,
    oblivious: Floats | None,
    *,
    scale: float,
    confidence: float,
    samples: int,
    seed: int,
) -> Rows:
    """The systems by descending expectation, each with its rank intervals and its groups."""
    mean = expected.mean(axis=0)
    order = np.lexsort((np.arange(len(mean)), -mean))
    best, worst = rank_interval(minimum, maximum)
    low, high, firm = _over_queries(expected, order, confidence, samples, seed)
    rank = 1 + np.searchsorted(np.sort(-mean), -mean - DUST, side="left")
    ties_firm = (
        np.minimum.accumulate(minimum[order])[:-1] > np.maximum.accumulate(maximum[order][::-1])[::-1][1:] + DUST
    )
    return Rows(
        {
            "rank": rank[order].tolist(),
            "system": [systems[place] for place in order],
            "expected": (mean * scale)[order].tolist(),
            "minimum": minimum[order].tolist(),
            "maximum": maximum[order].tolist(),
            "oblivious": [None] * len(order) if oblivious is None else oblivious[order].tolist(),
            "rank_best": best[order].tolist(),
            "rank_worst": worst[order].tolist(),
            "group_ties": _groups(ties_firm),
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
    for means in bootstrap(expected, samples, seed):
        some = slice(done, done + len(means))
        ranks[some] = _ranks(means)
        sorted_ = means[:, order]
        above = np.minimum.accumulate(sorted_, axis=1)[:, :-1]
        below = np.maximum.accumulate(sorted_[:, ::-1], axis=1)[:, ::-1][:, 1:]
        firm += np.count_nonzero(above > below + DUST, axis=0)
        done += len(means)
    tail = (1 - confidence) / 2
    low: Any = np.quantile(ranks, tail, axis=0, method="lower")
    high: Any = np.quantile(ranks, 1 - tail, axis=0, method="higher")
    return low, high, firm >= confidence * samples


def _ranks(means: Floats) -> Codes:
    """1 + the number of systems that are higher, in each row."""
    descending = np.sort(-means, axis=1)
    return np.stack([1 + np.searchsorted(row, -own - DUST) for row, own in zip(descending, means, strict=True)])
