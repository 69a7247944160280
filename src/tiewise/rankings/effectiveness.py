"""MED-RBP: the largest difference of RBP between two rankings that any judgments could give, with ties.

Maximised effectiveness difference is a distance of rankings (Tan & Clarke 2015). Let rank r have the weight w_r, and an
item the weight 0 in a ranking that lacks it. The judgments that favour x most call those items relevant that weigh more
in x. Their difference is Σ_e (w_x(e) − w_y(e))₊ = Σ_e w_x(e) − Σ_e min(w_x(e), w_y(e)). The first sum depends on the
length of x alone, so the difference in favour of the longer ranking is the larger one:

    MED = Σ_{r ≤ n} w_r − Σ_{common e} w_max(rank in x, rank in y) = Σ_d (w_d − w_{d+1}) · (min(d, n) − X_d)

n is the length of the longer ranking, and X_d the overlap of the first d items, as in RBO. So expectation and extremes
over the tie orders follow from those of X_d, and are exact. If the rankings are heads of unbounded ones, what follows
can lower or raise the difference, as for RBO.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from tiewise.data.columns import Floats
from tiewise.errors import InputError
from tiewise.metrics.catalogue import RBP
from tiewise.metrics.estimate import Estimate
from tiewise.rankings.overlap import Overlaps
from tiewise.rankings.pairs import PairRow, RankingPair, make_estimate
from tiewise.rankings.ranking import RankingLike
from tiewise.rankings.weights import Weights, WeightsLike, as_weights, difference_table

__all__ = ["MED", "med_of_row", "med_rbp"]

LARGEST = 1 << 24  # pairs of tied ranks that the standard deviation may need


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
    `std` is None if tie groups have many thousands of items.

    >>> med_rbp("a b c", "c b a", phi=0.5)
    MED-RBP 0.3750
    >>> med_rbp("a (b c) d", "b a e", phi=0.8).upper
    MED-RBP 0.6960 [0.6800, 0.7120]
    """
    if p is not None and phi is not None:
        raise InputError(f"phi={phi!r} and p={p!r} are two names of one parameter. Give one of them.")
    phi = phi if p is None else p
    chosen = as_weights(RBP.p if phi is None and weights is None else phi, weights)
    pair = RankingPair.from_rankings(x, y)
    parts = med_of_row(PairRow.from_pair(pair), chosen)
    variance = _variance(pair, difference_table(chosen, max(pair.left.length, pair.right.length)).tail)
    std = None if variance is None else float(np.sqrt(variance))
    value, lower, upper = (replace(make_estimate("MED-RBP", part[:, 0]), std=std) for part in parts)
    return MED(value.expected, value.minimum, value.maximum, std, measure="MED-RBP", lower=lower, upper=upper)


def med_of_row(row: PairRow, weights: Weights, extremes: bool = True) -> tuple[Floats, Floats, Floats]:
    """MED-RBP of many pairs and its two bounds, (n_orders, n_pairs) each: expected, lowest and highest."""
    found = Overlaps(row, extremes)
    table = difference_table(weights, int(found.n_union.max(initial=0)))
    n, common, union, depths = found.n, found.n_common, found.n_union, found.overlap.shape[-1]
    overlap = found.overlap[[0, 2, 1]] if len(found.overlap) > 1 else found.overlap  # most overlap: least difference
    seen = (table.depth[:depths] - overlap) @ (table.weight / table.depth)[:depths]
    # The depths after n are not part of it.
    seen -= (table.rest[n] - table.rest[depths]) - common * (table.tail[n] - table.tail[depths])
    value = np.maximum(seen, 0.0) + (n - common) * table.tail[n]
    upper = np.maximum(seen, 0.0) + table.rest[n] - common * table.tail[n]
    # At the most, two more items match at each depth after n, until all items match.
    until_all = union * (table.tail[n] - table.tail[union]) - (table.rest[n] - table.rest[union])
    lower = seen - found.sum_unseen(table) + np.maximum(until_all, 0.0)
    return value, np.clip(lower, 0.0, value), np.maximum(upper, value)


def _variance(pair: RankingPair, weight: Floats) -> float | None:
    """The variance of Σ_{common e} w_max(rank in x, rank in y) over the tie orders; None if it takes too long.

    Items in the same group of x and the same group of y form a cell. Over the ranks i and k of a cell, w_max(i, k) is a
    constant, plus a function of i, plus a function of k, plus a rest γ(i, k) whose rows and columns have the mean 0.
    These three are uncorrelated. Sums of the functions of i and of k are sums over random permutations of a group
    (Hoeffding 1951). The γ of two items of a cell have the covariance Σ γ² / (m(m−1)n(n−1)).
    """
    sides = pair.left, pair.right
    cells, count = np.unique([side.groups.group[side.common] for side in sides], axis=1, return_counts=True)
    sizes = [side.groups.size[group] for side, group in zip(sides, cells, strict=True)]
    tied = np.flatnonzero((sizes[0] > 1) | (sizes[1] > 1))
    if (sizes[0] * sizes[1])[tied].sum() > LARGEST:
        return None
    total = 0.0
    effects: tuple[_Effects, _Effects] = defaultdict(list), defaultdict(list)  # by group, on the left and on the right
    for cell in tied.tolist():
        (start, m), (other, n) = (
            (side.groups.start[g], side.groups.size[g]) for side, g in zip(sides, cells[:, cell], strict=True)
        )
        values = weight[np.maximum.outer(start + np.arange(m), other + np.arange(n))]
        values = values - values.mean()
        by_left, by_right = values.mean(axis=1), values.mean(axis=0)
        for effect, group, by_rank in zip(effects, cells[:, cell].tolist(), (by_left, by_right), strict=True):
            effect[group].append((int(count[cell]), by_rank))
        if m > 1 and n > 1:
            rest = ((values - by_left[:, None] - by_right) ** 2).mean()
            total += count[cell] * rest * (1 + (count[cell] - 1) / ((m - 1) * (n - 1)))
    return total + sum(_permutation_variance(effect.values()) for effect in effects)


_Effects = dict[int, list[tuple[int, Floats]]]


def _permutation_variance(groups: Iterable[list[tuple[int, Floats]]]) -> float:
    """The variance of Σ_e a_e(rank of e) over random orders of tie groups, which are independent.

    A group is a list of (number of items, their a at each rank); a has the mean 0, and is 0 for all other items.
    """
    total = 0.0
    for group in groups:
        count, a = np.array([number for number, _ in group]), np.array([by_rank for _, by_rank in group])
        m = a.shape[1]
        if m > 1:
            mean = count @ a / m
            squares = count @ ((a - mean) ** 2).sum(axis=1) + (m - count.sum()) * (mean**2).sum()
            total += float(squares) / (m - 1)
    return total
