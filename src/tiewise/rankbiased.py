"""Rank-biased measures of sets and rankings against each other, with ties and bounds: RBP, RBR, RBO and RBA.

A ranking is the visible head of an unbounded one, and rank r weighs (1−φ)·φ^(r−1). What is unseen or unjudged is
resolved against the score (`lower`) or in its favour (`upper`); each of the two is an Estimate over all orders of tied
items. Expectations have closed forms; the extremes need sorting only: a sum over common items of a function that falls
with both ranks and is supermodular is largest when tied items of each ranking follow the other ranking, and smallest
when they run against it. Equation numbers are those of Moffat et al. (SIGIR-AP 2024), unless said otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from tiewise import engine
from tiewise.catalogue import RBP
from tiewise.columns import Codes, Floats
from tiewise.data import Qrels, Run
from tiewise.errors import InputError
from tiewise.estimate import Bounds, Estimate
from tiewise.observed import Observed
from tiewise.ranking import Groups, Ranking, check_gains
from tiewise.ties import TieGroups, tie_groups

__all__ = [
    "Pair",
    "mean_power",
    "phi_for_discount",
    "phi_for_reverse_rba",
    "rba",
    "rba_of",
    "rbo",
    "rbo_of",
    "rbp",
    "rbr",
    "rbr_of",
    "top_weight",
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
    _check_phi(phi)
    x = Ranking(ranking)
    if not gmax > 0:
        raise InputError(f"gmax={gmax!r} is not possible: it is the largest gain that an item can have.")
    check_gains(gains, gmax)
    seen = len(x.items) if depth is None else min(depth, len(x.items))
    judged = np.array([place for item, place in x.place.items() if item in gains], dtype=np.int64)
    worth = np.array([gains.get(item, gmax) for item in x.items], dtype=np.float64)  # unjudged ones at their best
    lower = _precision(x.groups, judged, worth[judged], phi, depth, gmax)
    upper = _precision(x.groups, np.arange(len(worth)), worth, phi, depth, gmax)
    return Bounds(lower, _shifted(upper, phi**seen * gmax), measure="RBP")


def rbr(observed: Iterable[Any], reference: Any, phi: float, depth: int | None = None) -> Bounds:
    """Rank-biased recall: the weight, in a reference ranking, of the items of an observed set (Eqs. 6 to 9).

    With `depth`, the observed is a ranking of which the first `depth` items are the set; of a tie group that straddles
    the depth, each item is in it with the chance that a random order gives.

    >>> r = "D07 D04 D11 D12 D10 D15 D06 D22 D19 D28"
    >>> rbr({"D06", "D23", "D10", "D07", "D04"}, r, phi=0.6)
    RBR [0.7105, 0.7129]
    >>> rbr("D06 (D07 D04)", r, phi=0.6, depth=2).lower
    RBR 0.3387 [0.2587, 0.4187]
    """
    items = Ranking([*dict.fromkeys(observed)] if depth is None else observed)
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


# -- two rankings side by side ----------------------------------------------------------------------------------


class Side:
    """One of two rankings: arrays over the common items, in an order that both sides share."""

    def __init__(self, groups: Groups, common: Codes, other: Groups):
        self.groups, self.common = groups, common
        self.length, self.other_length = len(groups.group), len(other.group)
        mine = groups.group[common]
        self.start: Floats = groups.starts[mine].astype(np.float64)
        self.size: Floats = groups.sizes[mine].astype(np.float64)
        # items of each group that the other ranking does not have
        self.lonely: Codes = groups.sizes - np.bincount(mine, minlength=len(groups.sizes))

    def mean_power(self, x: float) -> Floats:
        """The mean of x^rank over the ranks of each common item's group."""
        return mean_power(x, self.start, self.size)

    def inclusion(self, depth: Floats | float) -> Floats:
        """The chance that each common item is in the top `depth`."""
        return np.clip((depth - self.start) / self.size, 0.0, 1.0)


def mean_power(x: float, start: Floats, size: Floats) -> Floats:
    """The mean of x^rank over the ranks of groups of these sizes after so many items."""
    return x ** (start + 1) * -np.expm1(size * math.log(x)) / (size * (1 - x))


class Pair:
    """Two rankings with their common items; `at` is the place in y of each item of x, −1 where y lacks it."""

    def __init__(self, x: Groups, y: Groups, at: Codes):
        here = np.flatnonzero(at >= 0)
        self.common = len(here)
        self.left, self.right = Side(x, here, y), Side(y, at[here], x)
        self.union = len(x.group) + len(y.group) - self.common

    @staticmethod
    def of(x: Ranking, y: Ranking) -> Pair:
        """The pair of two rankings of named items."""
        at = np.array([y.place.get(item, -1) for item in x.items], dtype=np.int64)
        return Pair(x.groups, y.groups, at)

    def ranks(self, which: str) -> tuple[Codes, Codes]:
        """The ranks of all items of both rankings in the best or the worst order of ties, along their `items`.

        Best: tied items follow the other ranking's groups, those that it lacks come last, and items that are tied in
        both stand in one order on both sides. Worst: the reverse of all three.
        """
        return self._ranks(self.left, self.right, which), self._ranks(self.right, self.left, which)

    def _ranks(self, side: Side, other: Side, which: str) -> Codes:
        n, best = side.length, which == "best"
        away = np.full(n, len(other.groups.sizes))  # the other's group; past its last for items that it lacks
        away[side.common] = other.groups.group[other.common]
        twin = np.arange(n)  # an order that both sides share
        twin[side.common] = np.arange(self.common)
        flip = 1 if best or side is self.left else -1
        order = np.lexsort((flip * twin, away if best else -away, side.groups.group))
        ranks = np.empty(n, dtype=np.int64)
        ranks[order] = np.arange(1, n + 1)
        return ranks


# -- RBP and RBR: the measure of `evaluate` ------------------------------------------------------------------------


def rbr_of(pair: Pair, phi: float, depth: int | None = None) -> Bounds:
    """RBR of two rankings side by side, the first `depth` items of the left one taken as a set."""
    _check_phi(phi)
    left, right = pair.left, pair.right
    n, group = left.length, right.groups.group[right.common]
    start, size = np.zeros((2, n), dtype=np.int64)
    start[left.common], size[left.common] = right.groups.starts[group], right.groups.sizes[group]
    none = np.full(1, np.nan)
    ties = TieGroups(
        qrels=Qrels(("",), np.array([0, n]), np.arange(n), [str(place) for place in range(n)], np.zeros(n)),
        score=np.full(n, np.nan),
        start=start,
        size=size,
        length=np.array([right.length]),
        present=np.array([True]),
        floor=none,
        floor_size=np.zeros(1, dtype=np.int64),
    )
    own = left.groups
    found = Observed(ties, own.starts[own.group], own.sizes[own.group]).to(depth).rbr(phi)
    return Bounds(
        _estimate(found.lower, found.lower_minimum, found.lower_maximum),
        _estimate(found.upper, found.upper_minimum, found.upper_maximum),
        measure="RBR",
    )


def _estimate(expected: Floats, minimum: Floats, maximum: Floats) -> Estimate:
    """RBR of the only query."""
    return Estimate(float(expected[0]), float(minimum[0]), float(maximum[0]), measure="RBR")


def _precision(groups: Groups, judged: Codes, gain: Floats, phi: float, depth: int | None, gmax: float) -> Estimate:
    """RBP of a ranking by the engine, in units of gain; `judged` are the places of the items that have one."""
    n = len(groups.group)
    names = [str(place) for place in range(n)]
    run = Run(("",), np.array([0, n]), np.arange(n), names, -groups.group.astype(np.float64))
    qrels = Qrels(("",), np.array([0, len(judged)]), judged, names, gain)
    measure = RBP(p=phi, gains="graded", max=gmax) @ depth
    found = engine.estimates(measure, engine.Urns(tie_groups(qrels, run, ()))).mean()
    values = (found.expected, found.minimum, found.maximum, found.std)
    expected, minimum, maximum, std = ((value or 0.0) * gmax for value in values)
    return Estimate(expected, minimum, maximum, std, measure="RBP")


# -- RBO -----------------------------------------------------------------------------------------------------------


def rbo_of(pair: Pair, phi: float, ties: str = "average") -> Bounds:
    """RBO of two rankings side by side."""
    _check_phi(phi)
    if ties == "average":
        return _rbo_average(pair, phi)
    if ties in ("w", "a", "b"):
        return _rbo_variant(pair, phi, ties)
    raise InputError(f"ties={ties!r} is not possible for RBO. Use 'average', 'w', 'a' or 'b'.")


class Weights:
    """Sums of φ^d/d, φ^d and d·φ^d for d = 1, 2, …, as tables, and the whole of the first."""

    def __init__(self, phi: float, depth: int):
        d = np.arange(1, depth + 1, dtype=np.float64)
        power = phi**d
        self.phi, self.all = phi, -math.log1p(-phi)
        self.over, self.plain, self.times = (np.append(0.0, np.cumsum(w)) for w in (power / d, power, d * power))

    def beyond(self, depth: Codes | int) -> Any:
        """Σ_{d > depth} φ^d/d."""
        return self.all - self.over[depth]


@lru_cache(maxsize=64)
def weights(phi: float, depth: int) -> Weights:
    """The tables for a φ and a depth: the same for all pairs of systems."""
    return Weights(phi, depth)


def _rbo_average(pair: Pair, phi: float) -> Bounds:
    w = weights(phi, pair.left.length + pair.right.length + 1)
    mean = _overlap_sum(pair.left, pair.right, w)
    gap = _rbo_gap(pair, w)
    short = min(pair.left.length, pair.right.length)
    overlap = float((pair.left.inclusion(short) * pair.right.inclusion(short)).sum())
    lower, extrapolated = [_rbo_lower(mean, phi)], [_rbo_extrapolated(pair, w, mean, overlap)]
    for which in ("worst", "best"):
        left, right = pair.ranks(which)
        a, b = left[pair.left.common], right[pair.right.common]
        total = float(w.beyond(np.maximum(a, b) - 1).sum())
        inside = float(np.count_nonzero(np.maximum(a, b) <= short))
        lower.append(_rbo_lower(total, phi))
        extrapolated.append(_rbo_extrapolated(pair, w, total, inside))
    low, ext = (Estimate(e, least, most, measure="RBO") for e, least, most in (lower, extrapolated))
    return Bounds(low, _shifted(low, gap), ext if short else None, measure="RBO")


def _rbo_lower(total: float, phi: float) -> float:
    return (1 - phi) / phi * total


def _overlap_sum(left: Side, right: Side, w: Weights) -> float:
    """Σ_d X_d·φ^d/d over all depths, X_d the expected overlap: a sum of two-piece polynomials over the common items."""
    s1, s2, m1, m2 = left.start, right.start, left.size, right.size
    begin = np.maximum(s1, s2).astype(np.int64)
    middle = np.maximum(begin, np.minimum(s1 + m1, s2 + m2)).astype(np.int64)
    end = np.maximum(s1 + m1, s2 + m2).astype(np.int64)
    # Both chances grow: (d−s1)(d−s2)/(m1·m2); then only that of the group that ends last: (d−s)/m; then both are 1.
    both = (
        (w.times[middle] - w.times[begin])
        - (s1 + s2) * (w.plain[middle] - w.plain[begin])
        + s1 * s2 * (w.over[middle] - w.over[begin])
    ) / (m1 * m2)
    later = s1 + m1 > s2 + m2
    s, m = np.where(later, s1, s2), np.where(later, m1, m2)
    one = ((w.plain[end] - w.plain[middle]) - s * (w.over[end] - w.over[middle])) / m
    return float((both + one + w.beyond(end)).sum())


def _rbo_gap(pair: Pair, w: Weights) -> float:
    """RBO_MAX − RBO_MIN, which depends on the lengths and on the number of common items only."""
    s, long = sorted((pair.left.length, pair.right.length))
    c, f, phi = pair.common, pair.union, w.phi
    d = np.arange(1, f + 1, dtype=np.float64)
    weight = phi**d / d
    first = ((d - s) * weight)[s:long].sum()
    second = ((2 * d - long - s + c) * weight)[long:f].sum()
    return float((1 - phi) / phi * (first + second + phi ** (f + 1) / (1 - phi) - c * w.beyond(long)))


def _rbo_extrapolated(pair: Pair, w: Weights, total: float, overlap: float) -> float:
    """RBO_EXT from the overlap sum over all depths and the overlap at the shorter list's end."""
    s, long = sorted((pair.left.length, pair.right.length))
    if s == 0:  # nothing to extrapolate from
        return 0.0
    phi, c = w.phi, pair.common
    d = np.arange(s + 1, long + 1, dtype=np.float64)
    base = total - c * w.beyond(long) + overlap / s * float(((d - s) * phi**d / d).sum())
    return (1 - phi) / phi * base + ((c - overlap) / long + overlap / s) * phi**long


def _rbo_variant(pair: Pair, phi: float, ties: str) -> Bounds:
    """RBO^w, RBO^a or RBO^b of Corsi & Urbano (SIGIR 2024): another agreement at each depth, one number each."""
    short, long = (pair.left, pair.right) if pair.left.length <= pair.right.length else (pair.right, pair.left)
    s, n, c, f = short.length, long.length, pair.common, pair.union
    w, scale = weights(phi, f + 1), (1 - phi) / phi
    d = np.arange(1, n + 1, dtype=np.float64)
    weight = phi**d / d

    def chances(side: Side, items: Codes) -> Floats:
        """How far each item counts at each depth, (n_depths, n_items)."""
        start = side.groups.starts[side.groups.group[items]].astype(np.float64)
        size = side.groups.sizes[side.groups.group[items]].astype(np.float64)
        if ties == "w":
            return (start < d[:, None]).astype(np.float64)
        return np.clip((d[:, None] - start) / size, 0.0, 1.0)

    both = (chances(short, short.common) * chances(long, long.common)).sum(axis=1)
    total = [chances(side, np.arange(side.length)) for side in (short, long)]
    if ties == "b":
        mass = [
            np.where((side is short) & (d > s), d, (t**2).sum(axis=1))
            for side, t in zip((short, long), total, strict=True)
        ]
        divisor = np.sqrt(mass[0] * mass[1])
    elif ties == "w":
        mass = [
            np.where((side is short) & (d > s), d, t.sum(axis=1)) for side, t in zip((short, long), total, strict=True)
        ]
        divisor = (mass[0] + mass[1]) / 2
    else:
        divisor = d
    alone = np.setdiff1d(np.arange(long.length), long.common)
    only = chances(long, alone)  # items seen only in the longer list
    past = d > s

    def agreement(added: Floats) -> Floats:
        return np.divide(both + np.where(past, added, 0.0), divisor, out=np.zeros_like(d), where=divisor > 0)

    first = np.arange(only.shape[1])[None, :] < (d - s)[:, None]
    at_best = agreement((only * first).sum(axis=1))
    at_short = float(agreement(np.zeros_like(d))[s - 1]) if s else 0.0
    positive = (only > 0).sum(axis=1)
    mean = np.divide(only.sum(axis=1), positive, out=np.zeros_like(d), where=positive > 0)
    extended = agreement((d - s) * at_short * mean)
    power = d * weight
    tail = c * w.beyond(n)
    lower = scale * (float((agreement(np.zeros_like(d)) * power).sum()) + tail)
    deep = np.arange(n + 1, f + 1, dtype=np.float64)
    beyond = float(((2 * deep - n - s + c) * phi**deep / deep).sum()) + phi ** (f + 1) / (1 - phi)
    upper = scale * (float((at_best * power).sum()) + beyond)
    ext = scale * float((extended * power).sum()) + ((c + (n - s) * at_short) / n * phi**n if n else 0.0)
    return Bounds(_one(lower, "RBO"), _one(upper, "RBO"), _one(ext, "RBO") if s else None, measure="RBO")


# -- RBA -----------------------------------------------------------------------------------------------------------


def rba_of(pair: Pair, phi: float, ties: str = "average") -> Bounds:
    """RBA of two rankings side by side."""
    _check_phi(phi)
    if ties == "share":
        share = [np.sqrt((1 - phi) / phi * side.mean_power(phi)) for side in (pair.left, pair.right)]
        value = float((share[0] * share[1]).sum())
        return Bounds(_one(value, "RBA"), None, measure="RBA")
    if ties != "average":
        raise InputError(f"ties={ties!r} is not possible for RBA. Use 'average' or 'share'.")
    scale, root = (1 - phi) / phi, math.sqrt(phi)
    lower = scale * float((pair.left.mean_power(root) * pair.right.mean_power(root)).sum())
    tail = phi**pair.union
    extra = tail + scale * (_lonely(pair.left, root) + _lonely(pair.right, root))
    bounds = [_rba_of_order(pair, which, phi) for which in ("worst", "best")]
    return Bounds(
        Estimate(lower, bounds[0][0], bounds[1][0], measure="RBA"),
        Estimate(lower + extra, bounds[0][1], bounds[1][1], measure="RBA"),
        measure="RBA",
    )


def _lonely(side: Side, x: float) -> float:
    """What the items that the other ranking lacks can still add, in expectation (Algorithm 1, lines 7 to 11).

    The i-th of them, counted from the head, comes at rank n' + i of the other. Within a group of m items, u of them
    lonely, the number of lonely ones before slot p is hypergeometric.
    """
    total, done = 0.0, 0
    for start, size, lonely in zip(
        side.groups.starts.tolist(), side.groups.sizes.tolist(), side.lonely.tolist(), strict=True
    ):
        if lonely:
            slots = x ** (start + np.arange(1, size + 1.0)) * _mean_power(x, size, lonely)
            total += lonely / size * float(slots.sum()) * x ** (side.other_length + done + 1)
            done += lonely
    return total


def _mean_power(x: float, size: int, lonely: int) -> Floats:
    """E[x^H] for each slot p = 1..size, H ~ Hypergeometric(size−1, lonely−1, p−1): a symmetric mean."""
    s = np.arange(size, dtype=np.float64)
    mean = np.where(s <= size - lonely, 1.0, 0.0)
    for items in range(size - lonely, size - 1):
        before = np.append(0.0, mean[:-1])
        mean = (np.maximum(items + 1 - s, 0) * mean + s * x * before) / (items + 1)
    return mean


def _rba_of_order(pair: Pair, which: str, phi: float) -> tuple[float, float]:
    """Lower and upper bound in the best or the worst order of ties: Algorithm 1."""
    left, right = pair.ranks(which)
    scale, root = (1 - phi) / phi, math.sqrt(phi)
    base = float((root ** (left[pair.left.common] + right[pair.right.common]).astype(np.float64)).sum())
    extra = 0.0
    for side, ranks in ((pair.left, left), (pair.right, right)):
        lonely = np.sort(np.delete(ranks, side.common)).astype(np.float64)
        extra += float((root ** (lonely + side.other_length + np.arange(1, len(lonely) + 1))).sum())
    return scale * base, scale * (base + extra) + phi**pair.union


# -- parameters ----------------------------------------------------------------------------------------------------


def phi_for_discount(f: float, k: int) -> float:
    """The φ at which the weight at rank k + 1 is `f` times that at rank 1: f^(1/k) (Eq. 10).

    >>> round(phi_for_discount(0.1, 10), 4)
    0.7943
    """
    if not 0 < f < 1 or k < 1:
        raise InputError(f"phi_for_discount({f!r}, {k!r}): f lies between 0 and 1, k is a rank from 1 on.")
    return float(f ** (1 / k))


def phi_for_reverse_rba(score: float, k: int) -> float:
    """The φ at which RBA gives `score` to a ranking of k items against its reverse (Eq. 12).

    k(1−φ)·φ^((k−1)/2) rises to φ* = (k−1)/(k+1) and falls after it, so there are two such φ or none: this is the one
    that is at most φ*.

    >>> round(phi_for_reverse_rba(0.2, 50), 4)
    0.8666
    """
    if k < 2:
        raise InputError(f"phi_for_reverse_rba needs two items or more, not k={k!r}: one item has no reverse.")
    peak = (k - 1) / (k + 1)

    def reverse(phi: float) -> float:
        return float(k * (1 - phi) * phi ** ((k - 1) / 2))

    if not 0 < score <= reverse(peak):
        raise InputError(
            f"No φ gives a reversed ranking of {k} items an RBA of {score!r}. It lies above 0, and the most is "
            f"{reverse(peak):.4f}, at φ = {peak:.4f}."
        )
    low, high = 0.0, peak
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if reverse(middle) < score else (low, middle)
    return (low + high) / 2


def top_weight(phi: float, d: int) -> float:
    """The share of RBO's weight that falls on the first d ranks (Webber et al. 2010, Eq. 21).

    >>> round(top_weight(0.9, 10), 4)
    0.8556
    """
    _check_phi(phi)
    if d < 1:
        raise InputError(f"top_weight: d={d!r} is no rank.")
    i = np.arange(1, d, dtype=np.float64)
    head = float((phi**i / i).sum())
    return 1 - phi ** (d - 1) + (1 - phi) / phi * d * (-math.log1p(-phi) - head)


def _check_phi(phi: float) -> None:
    if not 0 < phi < 1:
        raise InputError(f"phi={phi!r} is not possible. It must lie above 0 and below 1.")


def _shifted(estimate: Estimate, by: float) -> Estimate:
    low, mean, high = ((value or 0.0) + by for value in (estimate.minimum, estimate.expected, estimate.maximum))
    return Estimate(mean, low, high, measure=estimate.measure)


def _one(value: float, measure: str) -> Estimate:
    return Estimate(value, value, value, measure=measure)
