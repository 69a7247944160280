"""Rank-biased measures of sets and rankings against each other, with ties and bounds: RBP, RBR, RBO and RBA.

A ranking is the visible head of an unbounded one, and rank r weighs (1−φ)·φ^(r−1). What is unseen or unjudged is
resolved against the score (`lower`) or in its favour (`upper`); each of the two is an Estimate over all orders of tied
items. RBP and RBR are the measure of `evaluate`; RBO and RBA have rooms of their own. Equation numbers are those of
Moffat et al. (SIGIR-AP 2024), unless said otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from numbers import Real
from typing import Any, Literal

import numpy as np

from tiewise.data.columns import Codes, Floats
from tiewise.data.runs import Qrels
from tiewise.errors import InputError
from tiewise.metrics import engine
from tiewise.metrics.catalogue import RBP
from tiewise.metrics.estimate import Bounds, Estimate
from tiewise.rankings.alignment import rba_of
from tiewise.rankings.overlap import rbo_of
from tiewise.rankings.pairs import Pair, estimate
from tiewise.rankings.rank_biased_recall import Observed
from tiewise.rankings.ranking import Groups, Ranking, check_depth, check_gains
from tiewise.rankings.weights import check_phi, mean_weight, tail, weights
from tiewise.ties.groups import TieGroups

__all__ = [
    "Pair",
    "mean_weight",
    "phi_for_discount",
    "phi_for_reverse_rba",
    "rba",
    "rba_of",
    "rbo",
    "rbo_of",
    "rbp",
    "rbr",
    "rbr_of",
    "reversed_rba",
    "top_weight",
    "weights",
]


def rbp(
    ranking: Any, gains: Mapping[Any, float], phi: float = 0.8, depth: int | None = None, gmax: float = 1.0
) -> Bounds:
    """Rank-biased precision of a ranking for the gains of some items; items without one are unjudged (Eq. 4).

    It is the measure `RBP` of `evaluate`: the lower bound takes unjudged items as 0, the upper one as `gmax`, and gives
    the unseen tail φ^d to the score.

    >>> rbp("a (b c)", {"a": 1, "b": 0}, phi=0.5)
    RBP [0.5000, 0.8125]
    """
    phi = check_phi(phi)
    if depth is not None:
        check_depth(depth)
    if not isinstance(gmax, Real) or not 0 < gmax < float("inf"):
        raise InputError(f"gmax={gmax!r} is not possible: it is the largest gain that an item can have.")
    check_gains(gains, gmax)
    x = Ranking(ranking)
    seen = len(x.items) if depth is None else min(depth, len(x.items))
    judged = np.array([place for item, place in x.place.items() if item in gains], dtype=np.int64)
    worth = np.array([gains.get(item, gmax) for item in x.items], dtype=np.float64)  # unjudged ones at their best
    lower = _precision(x.groups, judged, worth[judged], phi, depth, gmax)
    upper = _precision(x.groups, np.arange(len(worth)), worth, phi, depth, gmax)
    return Bounds(lower, _shifted(upper, phi**seen * gmax), measure="RBP")


def rbr(observed: Iterable[Any], reference: Any, phi: float, depth: int | None = None) -> Bounds:
    """Rank-biased recall: the weight, in a reference ranking, of the items of an observed set (Eqs. 6 to 9).

    A text is read as a ranking is written. With `depth`, the observed is a ranking of which the first `depth` items are
    the set; of a tie group that straddles the depth, each item is in it with the chance that a random order gives.

    >>> r = "D07 D04 D11 D12 D10 D15 D06 D22 D19 D28"
    >>> rbr({"D06", "D23", "D10", "D07", "D04"}, r, phi=0.6)
    RBR [0.7105, 0.7129]
    >>> rbr("D06 (D07 D04)", r, phi=0.6, depth=2).lower
    RBR 0.3387 [0.2587, 0.4187]
    """
    whole = depth is None and not isinstance(observed, (str, Ranking))
    items = Ranking([[item] for item in dict.fromkeys(observed)] if whole else observed)  # an item may be a tuple
    return rbr_of(Pair.of(items, Ranking(reference)), phi, depth)


def rbo(x: Any, y: Any, phi: float = 0.9, ties: Literal["average", "w", "a", "b"] = "average") -> Bounds:
    """Rank-biased overlap of two rankings (Eq. 5; Webber et al. 2010), with `extrapolated` beside the bounds.

    `ties="average"` is the exact expectation over the orders of ties, with its extremes; ``"w"``, ``"a"`` and ``"b"``
    are the variants of Corsi & Urbano (2024), one number each.

    >>> rbo("a b c", "a c b", phi=0.9).extrapolated
    RBO 0.9550
    """
    return rbo_of(Pair.of(Ranking(x), Ranking(y)), phi, ties)


def rba(x: Any, y: Any, phi: float, ties: Literal["average", "share"] = "average") -> Bounds:
    """Rank-biased alignment of two rankings: each common item weighs by its rank in both (Eqs. 11 to 13).

    `ties="share"` splits weights evenly over tied ranks before they are multiplied; it has no upper bound.

    >>> rba("a b c", "a c b", phi=0.8)
    RBA [0.4862, 0.9982]
    """
    return rba_of(Pair.of(Ranking(x), Ranking(y)), phi, ties)


# -- RBP and RBR: the measure of `evaluate` ------------------------------------------------------------------------


def rbr_of(pair: Pair, phi: float, depth: int | None = None) -> Bounds:
    """RBR of two rankings side by side, the first `depth` items of the left one taken as a set."""
    phi = check_phi(phi)
    if depth is not None:
        check_depth(depth)
    left, right = pair.left, pair.right
    start, size = np.zeros((2, left.length), dtype=np.int64)
    start[left.common], size[left.common] = right.start, right.size
    own = left.groups
    ties = _one_list(start, size, np.zeros(left.length), right.length)
    found = Observed(ties, own.starts[own.group], own.sizes[own.group]).to(depth).rbr(phi)
    lower = np.concatenate([found.lower, found.lower_minimum, found.lower_maximum])  # of the only query
    upper = np.concatenate([found.upper, found.upper_minimum, found.upper_maximum])
    return Bounds(estimate("RBR", lower), estimate("RBR", upper), measure="RBR")


def _precision(groups: Groups, judged: Codes, gain: Floats, phi: float, depth: int | None, gmax: float) -> Estimate:
    """RBP of a ranking by the engine, in units of gain; `judged` are the places of the items that have one."""
    mine = groups.group[judged]
    ties = _one_list(groups.starts[mine], groups.sizes[mine], gain, len(groups.group))
    measure = RBP(p=phi, gains="graded", max=gmax) @ depth
    found = engine.estimates(measure, engine.Urns(ties)).mean()
    values = (found.expected, found.minimum, found.maximum, found.std)
    expected, minimum, maximum, std = ((value or 0.0) * gmax for value in values)
    return Estimate(expected, minimum, maximum, std, measure="RBP")


def _one_list(start: Codes, size: Codes, gain: Floats, length: int) -> TieGroups:
    """The tie groups of one ranking, from where its judged items are; nobody asks for their names."""
    n = len(start)
    return TieGroups(
        qrels=Qrels(("",), np.array([0, n]), np.arange(n), [""] * n, gain),
        score=np.full(n, np.nan),
        start=start,
        size=size,
        length=np.array([length]),
        present=np.array([True]),
        floor=np.full(1, np.nan),
        floor_size=np.zeros(1, dtype=np.int64),
    )


def _shifted(found: Estimate, by: float) -> Estimate:
    low, mean, high = ((value or 0.0) + by for value in (found.minimum, found.expected, found.maximum))
    return replace(found, expected=mean, minimum=low, maximum=high)


# -- parameters ----------------------------------------------------------------------------------------------------


def phi_for_discount(f: float, k: int) -> float:
    """The φ at which the weight at rank k + 1 is `f` times that at rank 1: f^(1/k) (Eq. 10).

    >>> round(phi_for_discount(0.1, 10), 4)
    0.7943
    """
    if not isinstance(f, Real) or not isinstance(k, Real) or not 0 < f < 1 or k < 1:
        raise InputError(f"phi_for_discount({f!r}, {k!r}): f lies between 0 and 1, k is a rank from 1 on.")
    return float(f ** (1 / k))


def reversed_rba(phi: Any, k: Any) -> Any:
    """RBA's lower bound of a ranking of k items and its reverse (Eq. 12): k(1−φ)·φ^((k−1)/2).

    >>> reversed_rba(0.25, 2)
    0.75
    """
    return k * (1 - phi) * phi ** ((k - 1) / 2)


def phi_for_reverse_rba(score: float, k: int) -> float:
    """The φ at which RBA gives `score` to a ranking of k items against its reverse (Eq. 12).

    `reversed_rba` rises to φ* = (k−1)/(k+1) and falls after it, so there are two such φ or none: this is the one that
    is at most φ*.

    >>> round(phi_for_reverse_rba(0.2, 50), 4)
    0.8666
    """
    if not isinstance(k, Real) or not k >= 2:
        raise InputError(f"phi_for_reverse_rba needs two items or more, not k={k!r}: one item has no reverse.")
    peak = (k - 1) / (k + 1)
    most = reversed_rba(peak, k)
    if not isinstance(score, Real) or not 0 < score <= most:
        raise InputError(
            f"No φ gives a reversed ranking of {k} items an RBA of {score!r}. It lies above 0, and the most is "
            f"{most:.4f}, at φ = {peak:.4f}."
        )
    low, high = 0.0, peak
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if reversed_rba(middle, k) < score else (low, middle)
    return (low + high) / 2


def top_weight(phi: float, d: int) -> float:
    """The share of RBO's weight that falls on the first d ranks (Webber et al. 2010, Eq. 21).

    >>> round(top_weight(0.9, 10), 4)
    0.8556
    """
    phi = check_phi(phi)
    check_depth(d, "d")
    return 1 - phi ** (d - 1) + d * tail(phi, d - 1)
