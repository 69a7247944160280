"""Rank-biased precision (RBP) of a ranking with ties and unjudged items, with bounds.

The rank-biased measures (RBP here; RBR, RBO and RBA in the modules beside) take a ranking for the visible part of an
unbounded one, in which rank r weighs (1−φ)·φ^(r−1). `lower` assumes that unseen and unjudged items lower the score,
`upper` that they raise it. Both are Estimates over all orders of the tied items. Equation numbers are those of Moffat
et al. (SIGIR-AP 2024), unless another paper is named.
"""

from __future__ import annotations

from math import inf
from numbers import Real

import numpy as np

from tiewise.data.columns import Codes, Floats
from tiewise.errors import InputError
from tiewise.metrics import engine
from tiewise.metrics.catalogue import RBP
from tiewise.metrics.estimate import Bounds, Estimate
from tiewise.rankings.rank_biased_recall import single_ranking_ties
from tiewise.rankings.ranking import Gains, RankGroups, RankingLike, as_ranking, check_depth, check_gains
from tiewise.rankings.weights import check_phi

__all__ = ["rbp"]


def rbp(
    ranking: RankingLike,
    gains: Gains,
    phi: float = 0.8,
    depth: int | None = None,
    gmax: float = 1.0,
    *,
    p: float | None = None,
) -> Bounds:
    """Rank-biased precision of a ranking (Eq. 4; Moffat & Zobel 2008). Items without a gain are unjudged.

    It is the measure `RBP` of `evaluate`. The lower bound gives unjudged items a gain of 0, the upper bound `gmax`; the
    upper bound adds the weight φ^d of the unseen tail. `p` is another name of `phi`.

    >>> rbp("a (b c)", {"a": 1, "b": 0}, phi=0.5)
    RBP [0.5000, 0.8125]
    """
    if p is not None and phi != RBP.p:
        raise InputError(f"phi={phi!r} and p={p!r} are two names of one parameter. Give one of them.")
    phi = check_phi(phi if p is None else p)
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
