"""Rank-biased measures between sets and rankings, with ties and bounds: RBP, RBR, RBO and RBA.

A ranking is the visible part of an unbounded one, and rank r weighs (1−φ)·φ^(r−1). `lower` assumes that unseen and
unjudged items lower the score, `upper` that they raise it. Both are Estimates over all orders of the tied items.
Equation numbers are those of Moffat et al. (SIGIR-AP 2024), unless another paper is named.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from numbers import Real
from typing import Any, Literal

import numpy as np

from tiewise.data.columns import Codes, Floats
from tiewise.errors import InputError
from tiewise.metrics import engine
from tiewise.metrics.catalogue import RBP
from tiewise.metrics.estimate import Bounds, Estimate
from tiewise.rankings.alignment import compute_rba
from tiewise.rankings.overlap import compute_rbo
from tiewise.rankings.pairs import RankingPair
from tiewise.rankings.rank_biased_recall import compute_rbr, single_ranking_ties
from tiewise.rankings.ranking import Gains, RankGroups, Ranking, RankingLike, as_ranking, check_depth, check_gains
from tiewise.rankings.weights import check_phi

__all__ = ["rba", "rbo", "rbp", "rbr"]


def rbp(
    ranking: RankingLike,
    gains: Gains,
    phi: float | None = None,
    depth: int | None = None,
    gmax: float = 1.0,
    *,
    p: float | None = None,
) -> Bounds:
    """Rank-biased precision of a ranking (Eq. 4; Moffat & Zobel 2008). Items without a gain are unjudged.

    It is the measure `RBP` of `evaluate`. The lower bound gives unjudged items a gain of 0, the upper bound `gmax`; the
    upper bound adds the weight φ^d of the unseen tail. `p` is another name of `phi`; the default is 0.8.

    >>> rbp("a (b c)", {"a": 1, "b": 0}, phi=0.5)
    RBP [0.5000, 0.8125]
    """
    if phi is not None and p is not None:
        raise InputError(f"phi={phi!r} and p={p!r} are two names of one parameter. Give one of them.")
    phi = check_phi(RBP.p if phi is None and p is None else phi if p is None else p)
    if depth is not None:
        check_depth(depth)
    if not isinstance(gmax, Real) or not 0 < gmax < inf:
        raise InputError(f"gmax={gmax!r} is not possible: it is the largest gain that an item can have.")
    check_gains(gains, gmax)
    x = as_ranking(ranking)
    length = len(x.items) if depth is None else min(depth, len(x.items))
    judged = np.array([position for item, position in x.position.items() if item in gains], dtype=np.int64)
    gain = np.array([gains.get(item, gmax) for item in x.items], dtype=np.float64)  # unjudged items at their best
    lower = _estimate_rbp(x.groups, judged, gain[judged], phi, depth, gmax)
    upper = _estimate_rbp(x.groups, np.arange(len(gain)), gain, phi, depth, gmax, tail=phi**length)
    return Bounds(lower, upper, measure="RBP")


def rbr(observed: RankingLike | Iterable[Any], reference: RankingLike, phi: float, depth: int | None = None) -> Bounds:
    """Rank-biased recall: the weight, in a reference ranking, of the items of an observed set (Eqs. 6 to 9).

    A string is parsed as a ranking. With `depth`, `observed` is a ranking, and its first `depth` items are the set. If
    the depth splits a tie group, each item of the group is in the set with the probability that a random order gives.

    >>> r = "D07 D04 D11 D12 D10 D15 D06 D22 D19 D28"
    >>> rbr({"D06", "D23", "D10", "D07", "D04"}, r, phi=0.6)
    RBR [0.7105, 0.7129]
    >>> rbr("D06 (D07 D04)", r, phi=0.6, depth=2).lower
    RBR 0.3387 [0.2587, 0.4187]
    """
    is_set = depth is None and not isinstance(observed, (str, Ranking))
    items = [[item] for item in dict.fromkeys(observed)] if is_set else observed  # an item may be a tuple
    return compute_rbr(RankingPair.from_rankings(items, reference), phi, depth)


def rbo(
    x: RankingLike, y: RankingLike, phi: float = 0.9, ties: Literal["average", "w", "a", "b"] = "average"
) -> Bounds:
    """Rank-biased overlap of two rankings (Eq. 5; Webber et al. 2010): RBO_MIN, RBO_MAX, and RBO_EXT as `extrapolated`.

    `ties="average"` is the exact expectation over all tie orders, with its extremes; ``"w"``, ``"a"`` and ``"b"`` are
    the variants of Corsi & Urbano (2024), one number each.

    >>> rbo("a b c", "a c b", phi=0.9).extrapolated
    RBO 0.9550
    """
    return compute_rbo(RankingPair.from_rankings(x, y), phi, ties)


def rba(x: RankingLike, y: RankingLike, phi: float, ties: Literal["average", "share"] = "average") -> Bounds:
    """Rank-biased alignment of two rankings: each common item counts by its rank in both (Eqs. 11 to 13).

    `ties="share"` splits weights evenly over tied ranks before multiplying them. It has no upper bound.

    >>> rba("a b c", "a c b", phi=0.8)
    RBA [0.4862, 0.9982]
    """
    return compute_rba(RankingPair.from_rankings(x, y), phi, ties)


def _estimate_rbp(
    groups: RankGroups, judged: Codes, gain: Floats, phi: float, depth: int | None, gmax: float, tail: float = 0.0
) -> Estimate:
    """RBP by the engine, in units of gain; `judged` are the positions of the items with a gain, `tail` is added."""
    ties = single_ranking_ties(groups.item_start[judged], groups.item_size[judged], gain, len(groups))
    measure = RBP(p=phi, gains="graded", max=gmax) @ depth
    mean = engine.estimates(measure, engine.Urns(ties)).mean()
    values = (mean.expected, mean.minimum, mean.maximum)
    expected, minimum, maximum = ((value or 0.0) * gmax + tail * gmax for value in values)
    return Estimate(expected, minimum, maximum, (mean.std or 0.0) * gmax, measure="RBP")
