"""Rank-biased overlap (RBO) of two rankings with ties: what their first d items share; RBA and MED-RBP.

With the overlap X_d of the first d items and the agreement A_d = X_d / d (Webber et al. 2010)

    RBO = (1−φ) · Σ_d φ^(d−1) · A_d

A common item is part of X_d from the larger of its two ranks on. So the sum over depths is a sum over common items of
what one shared item adds at all depths from that rank on. S is the shorter ranking, L the longer; their lengths are s
and n (the paper's l).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tiewise.data.columns import Codes, Floats, ranges
from tiewise.errors import InputError
from tiewise.metrics.catalogue import RBP
from tiewise.metrics.estimate import Bounds, Estimate
from tiewise.metrics.hypergeometric import hypergeometric
from tiewise.metrics.segments import segment_sum
from tiewise.rankings.ranking import RankingLike, pair_rankings
from tiewise.rankings.tie_orders import (
    Parts,
    make_bounds,
    make_estimate,
    mean_at_larger_rank,
    over_orders,
    sum_variance,
)
from tiewise.rankings.weights import (
    Weights,
    WeightsLike,
    WeightTable,
    as_weights,
    check_phi,
    difference_table,
    either_phi,
    weight_table,
)
from tiewise.ties.pairs import PairGroups, RankedLists


def rbo(
    x: RankingLike,
    y: RankingLike,
    phi: float = 0.9,
    ties: Literal["average", "w", "a", "b"] = "average",
    *,
    p: float | None = None,
) -> Bounds:
    """Rank-biased overlap of two rankings (Eq. 5; Webber et al. 2010): RBO_MIN, RBO_MAX, and RBO_EXT as `extrapolated`.

    `ties="average"` is the exact expectation over all tie orders, with its extremes and standard deviation; ``"w"``,
    ``"a"`` and ``"b"`` are the variants of Corsi & Urbano (2024), one number each. `p` is another name of `phi`.

    >>> rbo("a b c", "a c b", phi=0.9).extrapolated
    RBO 0.9550
    """
    pairs, phi = pair_rankings(x, y), check_phi(either_phi(phi, p, 0.9))
    return make_bounds("RBO", compute_rbo(pairs, phi, ties), partial(_variances, pairs, phi, ties))


def compute_rbo(pairs: PairGroups, phi: float, ties: str = "average", extremes: bool = True) -> Parts:
    """RBO_MIN, RBO_MAX and RBO_EXT of pairs of rankings; without `extremes`, only the expectations.

    RBO_EXT is NaN if a ranking is empty.
    """
    phi = check_phi(phi)
    if ties not in ("average", "w", "a", "b"):
        raise InputError(f"ties={ties!r} is not possible for RBO. Use 'average', 'w', 'a' or 'b'.")
    table = weight_table(phi, int(pairs.n_union.max(initial=0)))
    if ties != "average":
        each = [_variant(one, table, phi, ties) for one in _one_by_one(pairs)]
        orders = np.array(each).reshape(-1, 3).T[None]
    else:
        s, n = np.sort(pairs.length, axis=0)
        rate = 1 / np.where(s, s, np.nan)
        sums = [(pairs.sum(mean_at_larger_rank(pairs, table.tail)), pairs.overlap(s, s))]
        for ranks in pairs.extreme_ranks if extremes else ():
            larger = np.maximum(*ranks)
            sums.append((pairs.sum(table.tail[larger - 1]), pairs.sum(larger <= s[pairs.pair])))
        total, at_s = np.array(sums).transpose(1, 0, 2)
        unseen = sum_unseen(table, s, n)
        found = _bounds(table, pairs, total, unseen, unseen * at_s * rate, at_s * rate)
        orders = np.array(found).transpose(1, 0, 2)
    parts = over_orders(orders, extremes)  # (1 or 3, 3, n_pairs)
    return {"lower": parts[:, 0], "upper": parts[:, 1], "extrapolated": parts[:, 2]}


def _bounds(
    table: WeightTable, pairs: PairGroups, total: Floats, unseen_best: Floats, unseen_likely: Floats, a_s: Floats
) -> tuple[Floats, ...]:
    """RBO_MIN, RBO_MAX and RBO_EXT (Webber et al. 2010, Eqs. 11, 30 and 32), each (n_orders, n_pairs) or (n_pairs,).

    `total` is the sum over all depths if no more items match. At the depths up to n the unseen items of S can add
    `unseen_best` at the most, and `unseen_likely` if the agreement stays as it is at depth s, A_s.
    """
    s, n = np.sort(pairs.length, axis=0)
    common, union = pairs.n_common, pairs.n_union
    unchanged = common * table.tail[n]  # after depth n, if no more items match
    # At the most, two more items match at each depth after n, until all items match.
    until_all = 2 * (table.rest[n] - table.rest[union]) - (n + s - common) * (table.tail[n] - table.tail[union])
    most = np.maximum(until_all + table.rest[union] - unchanged, 0.0)
    a_n = (common + (n - s) * a_s) / np.maximum(n, 1)
    sums = (total, total + unseen_best + most, total - unchanged + unseen_likely + a_n * table.rest[n])
    return tuple(np.minimum(part, 1.0) for part in sums)  # rounding cannot exceed 1


def sum_unseen(table: WeightTable, s: Codes, n: Codes) -> Floats:
    """Σ (d − s) · weight/d over the depths after s, up to n: for each unseen item of S that could match."""
    total: Floats = (table.rest[s] - table.rest[n]) - s * (table.tail[s] - table.tail[n])
    return np.maximum(total, 0.0)


def _variances(pairs: PairGroups, phi: float, ties: str) -> dict[str, float | None]:
    """The variance of each part of RBO over the tie orders of one pair.

    All are sums over common items; if the lengths differ, RBO_EXT also counts those that have both ranks up to s.
    """
    if ties != "average":
        return {}
    table = weight_table(phi, int(pairs.n_union.max()))
    s, n = np.sort(pairs.length[:, 0])
    values = [table.tail]
    if s < n:
        value = table.tail.copy()
        value[:s] += (sum_unseen(table, s, n) + (n - s) / n * table.rest[n]) / max(s, 1)
        values.append(value)
    parts = sum_variance(pairs, *(lambda i, k, of=of: of[np.maximum(i, k)] for of in values))
    return {"lower": parts[0], "upper": parts[0], "extrapolated": parts[-1]}


# -- the variants of Corsi & Urbano (SIGIR 2024) -------------------------------------------------------------------


def _one_by_one(pairs: PairGroups) -> list[PairGroups]:
    if len(pairs) == 1:
        return [pairs]
    return [PairGroups.of(*(lists.take(np.array([i])) for lists in pairs.lists)) for i in range(len(pairs))]


def _variant(pair: PairGroups, table: WeightTable, phi: float, ties: str) -> tuple[float, ...]:
    """RBO_MIN, RBO_MAX and RBO_EXT of RBO^w, RBO^a or RBO^b of one pair.

    The overlap is Σ_e c_{e|d}(S) · c_{e|d}(L). An item's contribution c is its probability to be among the first d (a,
    b), or 1 from the first rank of its group on (w). The size is the mean of Σ c (w, a), or the geometric mean of Σ c²
    (b).
    """
    is_long = int(pair.length[1, 0] > pair.length[0, 0])
    short, long = pair.lists[1 - is_long], pair.lists[is_long]
    s, n = len(short.doc), len(long.doc)
    heads = [_Head(lists, n, ties) for lists in (short, long)]
    size = np.sqrt(heads[0].squares * heads[1].squares) if ties == "b" else (heads[0].total + heads[1].total) / 2
    # What one shared item adds at all depths from each rank on, up to n.
    depth = np.arange(1, n + 1)
    weight = Weights.geometric(phi).at(depth) / size
    tail = np.append(np.cumsum(weight[::-1])[::-1], 0.0)
    if ties == "w":
        begin = np.maximum(*pair.start)
        seen, at_s = tail[begin].sum(), np.count_nonzero(begin < s)
    else:
        seen = mean_at_larger_rank(pair, tail).sum()
        at_s = pair.overlap(s, s)[0]
    # Items that only L has: those in complete groups, and those in the split group.
    alone = np.bincount(np.delete(long.start, pair.rows[is_long]), minlength=n)
    start, c_long = heads[1].start, heads[1].contribution
    complete, split = (np.cumsum(alone) - alone)[start], alone[start]
    mean = (complete + c_long * split) / np.maximum(complete + split, 1)
    unseen = np.maximum(depth - s, 0)
    unseen_best = np.minimum(unseen, complete) + c_long * np.clip(unseen - complete, 0, split)
    a_s = at_s / size[s - 1] if s else np.nan
    total = seen + pair.n_common[0] * table.tail[n]
    best, likely = (np.array([(terms * weight).sum()]) for terms in (unseen_best, unseen * mean))
    found = _bounds(table, pair, np.array([total]), best, likely * a_s, np.array([a_s]))
    return tuple(float(part[0]) for part in found)


class _Head:
    """The first d items of a ranking, for d = 1 … depths; after its end, the ranking counts as d items."""

    def __init__(self, lists: RankedLists, depths: int, ties: str):
        depth, length = np.arange(1.0, depths + 1), len(lists.doc)
        self.start = np.sort(lists.start)  # of the tie group at each rank
        size = np.bincount(lists.start)[self.start] if length else self.start
        #: How much an item of the tie group at rank d contributes; items of earlier groups contribute 1.
        self.contribution = np.zeros(depths)
        self.contribution[:length] = 1.0 if ties == "w" else (depth[:length] - self.start) / size
        self.total, self.squares = depth.copy(), depth.copy()  # Σ c and Σ c² at each depth
        self.total[:length] = self.start + size * self.contribution[:length]
        self.squares[:length] = self.start + size * self.contribution[:length] ** 2


# -- MED-RBP --------------------------------------------------------------------------------------------------------
# Maximised effectiveness difference is a distance of rankings (Tan & Clarke 2015). Let rank r have the weight w_r,
# and an item the weight 0 in a ranking that lacks it. The judgments that favour x most call those items relevant that
# weigh more in x. Their difference is Σ_e (w_x(e) − w_y(e))₊ = Σ_e w_x(e) − Σ_e min(w_x(e), w_y(e)). The first sum
# depends on the length of x alone, so the difference in favour of the longer ranking is the larger one:
#
#     MED = Σ_{r ≤ n} w_r − Σ_{common e} w_max(rank in x, rank in y) = Σ_d (w_d − w_{d+1}) · (min(d, n) − X_d)
#
# n is the length of the longer ranking, and X_d the overlap of the first d items, as in RBO. So expectation and
# extremes over the tie orders follow from those of X_d, and are exact. If the rankings are heads of unbounded ones,
# what follows can lower or raise the difference, as for RBO.


@dataclass(frozen=True, repr=False)
class MED(Estimate):
    """MED-RBP of two rankings over the tie orders, and its bounds if the rankings are heads of longer ones.

    The value itself takes the rankings as complete. `lower` assumes that the items that follow agree as far as they
    can, `upper` that they are all different.

    >>> found = med_rbp("a (b c)", "a c b", phi=0.5)
    >>> found, found.lower, found.upper
    (MED-RBP 0.0625 [0.0000, 0.1250], MED-RBP 0.0625 [0.0000, 0.1250], MED-RBP 0.1875 [0.1250, 0.2500])
    """

    lower: Estimate | None = None
    upper: Estimate | None = None


def med_rbp(
    x: RankingLike,
    y: RankingLike,
    phi: float | None = None,
    *,
    p: float | None = None,
    weights: WeightsLike | None = None,
) -> MED:
    """The largest difference of RBP between two rankings that any judgments could give (Tan & Clarke 2015).

    It is 0 for the same ranking, and 1 at the most. φ is 0.8 by default, as for RBP; `p` is another name of it. Ranks
    may have other `weights` instead: with ``Weights.dcg(k)`` it is the MED of DCG@k, divided by the largest DCG@k.
    `std` is None if tie groups of thousands of items meet.

    >>> med_rbp("a b c", "c b a", phi=0.5)
    MED-RBP 0.3750
    >>> med_rbp("a (b c) d", "b a e", phi=0.8).upper
    MED-RBP 0.6960 [0.6800, 0.7120]
    """
    phi = either_phi(phi, p)
    chosen = as_weights(RBP.p if phi is None and weights is None else phi, weights)
    pairs = pair_rankings(x, y)
    weight = chosen.at(np.arange(1, int(pairs.length.max()) + 1))
    variance = cache(lambda: sum_variance(pairs, lambda i, k: weight[np.maximum(i, k)])[0])
    parts = compute_med(pairs, chosen)
    value, lower, upper = (make_estimate("MED-RBP", part[:, 0], variance) for part in parts.values())
    found = MED(value.expected, value.minimum, value.maximum, measure="MED-RBP", lower=lower, upper=upper)
    return found._defer_std(lambda: value.std)


def compute_med(pairs: PairGroups, weights: Weights, extremes: bool = True) -> Parts:
    """MED-RBP of pairs of rankings and its two bounds; without `extremes`, only the expectations."""
    s, n = np.sort(pairs.length, axis=0)
    common, union = pairs.n_common, pairs.n_union
    table = difference_table(weights, int(union.max(initial=0)))
    longer = (pairs.length[1] > pairs.length[0]).astype(np.int64)[pairs.pair]
    weight, places = table.tail, np.arange(len(pairs.pair))
    mean = weights.mean(pairs.start[longer, places], pairs.size[longer, places])
    sums = [(pairs.sum(mean - mean_at_larger_rank(pairs, weight)), pairs.sum(mean))]
    for ranks in pairs.extreme_ranks if extremes else ():
        own = weight[ranks[longer, places] - 1]
        sums.append((pairs.sum(own - weight[np.maximum(*ranks) - 1]), pairs.sum(own)))
    # At the most, two more items match at each depth after n, until all items match.
    until_all = union * (table.tail[n] - table.tail[union]) - (table.rest[n] - table.rest[union])
    change = np.maximum(until_all, 0.0) - sum_unseen(table, s, n) - (n - common) * table.tail[n]
    orders = []
    for of_common, own_weight in sums:
        of_others = np.where(n > common, weights.sum(0, n) - own_weight, 0.0)  # items that only the longer one has
        value = np.maximum(of_common, 0.0) + np.maximum(of_others, 0.0)
        orders.append((value, np.clip(value + change, 0.0, value), value + weights.after(n)))
    parts = (over_orders(part, extremes) for part in zip(*orders, strict=True))
    return dict(zip(("value", "lower", "upper"), parts, strict=True))


# -- rank-biased alignment (RBA): common items count by their rank in both ------------------------------------------
# A common item adds the geometric mean of the weights of its two ranks (Moffat et al., SIGIR-AP 2024, Eq. 11). For
# the upper bound each ranking continues with the items that only the other one has, in the other's order, and then
# both continue with the same items (Algorithm 1). Tie groups are ordered independently, so the expectations have
# closed forms.


def rba(
    x: RankingLike,
    y: RankingLike,
    phi: float | None = None,
    ties: Literal["average", "share"] = "average",
    *,
    p: float | None = None,
    weights: WeightsLike | None = None,
) -> Bounds:
    """Rank-biased alignment of two rankings: each common item counts by its rank in both (Eqs. 11 to 13).

    Ranks have geometric weights for φ (`phi` or `p`), or other `weights`. `ties="share"` splits weights evenly over
    tied ranks before multiplying them. It has no upper bound.

    >>> rba("a b c", "a c b", phi=0.8)
    RBA from 0.4862 to 0.9982
    >>> rba("a b c", "a c b", weights=[3, 2, 1])
    RBA from 0.9714 to 0.9714
    """
    pairs, chosen = pair_rankings(x, y), as_weights(either_phi(phi, p), weights)
    return make_bounds("RBA", compute_rba(pairs, chosen, ties), partial(_alignment_variances, pairs, chosen, ties))


def compute_rba(pairs: PairGroups, weights: Weights, ties: str = "average", extremes: bool = True) -> Parts:
    """RBA of pairs of rankings; without `extremes`, only the expectations. `ties="share"` has no upper bound."""
    if ties == "share":
        left, right = np.sqrt(weights.mean(pairs.start, pairs.size))
        return {"lower": over_orders([pairs.sum(left * right)], extremes)}
    if ties != "average":
        raise InputError(f"ties={ties!r} is not possible for RBA. Use 'average' or 'share'.")
    left, right = weights.mean(pairs.start, pairs.size, power=0.5)
    lower = [pairs.sum(left * right)]
    if not extremes:
        return {"lower": over_orders(lower, extremes)}
    root = weights.at(np.arange(1, int(pairs.n_union.max(initial=0)) + 1), power=0.5)
    orders = pairs.extreme_ranks
    lower += [pairs.sum(root[left] * root[right]) for left, right in (ranks - 1 for ranks in orders)]
    residuals = [_Residual(pairs, side, root) for side in (0, 1)]
    added = [sum(side.expected(weights) for side in residuals)]
    added += [sum(side.in_order(last) for side in residuals) for last in (False, True)[: len(orders)]]
    unseen = weights.after(pairs.n_union)
    upper = [base + residual + unseen for base, residual in zip(lower, added, strict=True)]
    return {"lower": over_orders(lower), "upper": over_orders(upper)}


def _alignment_variances(pairs: PairGroups, weights: Weights, ties: str) -> dict[str, float | None]:
    """The variance over the tie orders of one pair; of the upper bound only if unmatched items add a constant."""
    if ties != "average":
        return {}
    root = weights.at(np.arange(1, int(pairs.length.max()) + 1), power=0.5)
    (lower,) = sum_variance(pairs, lambda i, k: root[i] * root[k])
    is_constant = all((groups.unmatched == groups.size).all() for groups in map(pairs.unmatched, (0, 1)))
    return {"lower": lower, "upper": lower if is_constant else None}


class _Residual:
    """What the unmatched items of one ranking can still add (Algorithm 1, lines 7 to 11).

    The i-th unmatched item takes rank n' + i of the other ranking, which has n' items: Σ √(weight · weight). A group
    without matched items adds the same in every order.
    """

    def __init__(self, pairs: PairGroups, side: int, root: Floats):
        self._n_pairs, self._root, self._groups = len(pairs), root, pairs.unmatched(side)
        self._other = pairs.length[1 - side][self._groups.pair] + self._groups.before  # rank n' + i, of the first item

    def in_order(self, last: bool, among: NDArray[np.bool_] | None = None) -> Floats:
        """The sum for each pair if the unmatched items of a group come last, or first; only those of some groups."""
        groups = self._groups
        count = groups.unmatched if among is None else groups.unmatched * among
        first = groups.start + groups.size - groups.unmatched if last else groups.start
        values = self._root[ranges(first, count)] * self._root[ranges(self._other, count)]
        return segment_sum(np.repeat(groups.pair, count), values, self._n_pairs)

    def expected(self, weights: Weights) -> Floats:
        """The mean over all tie orders."""
        groups = self._groups
        is_mixed = groups.unmatched < groups.size
        mixed, total = np.flatnonzero(is_mixed), self.in_order(last=True, among=~is_mixed)
        if not len(mixed):
            return total
        start, other = groups.start[mixed], self._other[mixed]
        size, marked = groups.size[mixed].tolist(), groups.unmatched[mixed].tolist()
        geometric = weights.is_geometric_after(np.minimum(start, other))
        ratio, first = math.sqrt(weights.ratio), self._root[start] * self._root[other]
        inside = [
            float(first[g]) * expected_power_sum(ratio, size[g], marked[g])
            if geometric[g]
            else _expected_alignment(weights, int(start[g]), int(other[g]), size[g], marked[g])
            for g in range(len(mixed))
        ]
        return total + segment_sum(groups.pair[mixed], np.array(inside), self._n_pairs)


def _expected_alignment(weights: Weights, start: int, other: int, size: int, marked: int) -> float:
    """E[Σ_i √(weight · weight)] if the i-th marked item of a tie group takes rank other + i of the other ranking.

    `marked` of `size` items are marked. The item in slot p is marked with probability u/m and has H marked items before
    it, with H ~ Hypergeometric(m−1, u−1, p).
    """
    left = weights.at(start + np.arange(1, size + 1), power=0.5)
    right = weights.at(other + np.arange(1, marked + 1), power=0.5)
    total = 0.0
    for slots in np.array_split(np.flatnonzero(left), 1 + size * marked // BLOCK):
        probability = hypergeometric(np.full(len(slots), size - 1), marked - 1, slots)
        total += float(left[slots] @ (probability @ right[: probability.shape[1]]))
    return marked / size * total


BLOCK = 1 << 20  # probabilities at a time


@lru_cache(maxsize=1 << 14)
def expected_power_sum(x: float, size: int, marked: int) -> float:
    """E[Σ_i x^(slot of the i-th marked item + i)] over random orders of a group; slots and i count from 0.

    The item in slot p is marked with probability u/m and has H marked items before it: Σ_p u/m · x^p · E[x^H], with
    H ~ Hypergeometric(m−1, u−1, p).
    """
    m, u = size - 1, marked - 1
    # E[x^H] goes from 1 at p = 0 to x^u at the end. Both recurrences of its ratios add positive terms only; each is
    # used where it is stable: upward from p = 0, and downward from the end.
    upward = math.ceil((m - u * (1 - x)) / (1 + x))
    ratio = np.empty(m)
    ratio[:upward] = list(_power_ratios(m, u, x, upward))
    ratio[upward:] = [1 / down for down in _power_ratios(m, u, 1 / x, m - upward)][::-1]
    mean: Floats = np.cumprod(np.append(1.0, ratio))
    return float(marked / size * (x ** np.arange(size) * mean).sum())


def _power_ratios(m: int, u: int, x: float, steps: int) -> Iterator[float]:
    """E[x^H] of p + 1 draws divided by that of p draws, for p = 0, 1, …, if u of m items are marked."""
    ratio = 1.0
    for p in range(steps):
        ratio = (m - 2 * p + (p - u) * (1 - x) + p * x / ratio) / (m - p)
        yield ratio
