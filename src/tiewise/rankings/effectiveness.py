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

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from tiewise.data.columns import Codes, Floats
from tiewise.errors import InputError
from tiewise.metrics.catalogue import RBP
from tiewise.metrics.estimate import Estimate
from tiewise.rankings.overlap import Overlaps
from tiewise.rankings.pairs import PairRow, RankingPair, make_estimate
from tiewise.rankings.ranking import RankGroups, RankingLike
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
    `std` is None if tie groups of thousands of items meet.

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
    start = np.array([side.groups.start[group] for side, group in zip(sides, cells, strict=True)])
    size = np.array([side.groups.size[group] for side, group in zip(sides, cells, strict=True)])
    tied = size.max(axis=0, initial=0) > 1
    cell_count, start, size = count[tied], start[:, tied], size[:, tied]
    if size.prod(axis=0).sum() > LARGEST:
        return None
    total = 0.0
    effects: tuple[list[_Effect], list[_Effect]] = [], []
    for m, n in np.unique(size, axis=1).T.tolist():  # all cells of one shape
        some = (size[0] == m) & (size[1] == n)
        count, left, right = cell_count[some], start[0, some, None] + np.arange(m), start[1, some, None] + np.arange(n)
        values = weight[np.maximum(left[:, :, None], right[:, None, :])]
        values -= values.mean(axis=(1, 2), keepdims=True)
        by_left, by_right = values.mean(axis=2), values.mean(axis=1)
        effects[0].append(_Effect(left, count[:, None], by_left))
        effects[1].append(_Effect(right, count[:, None], by_right))
        if m > 1 and n > 1:
            rest = ((values - by_left[:, :, None] - by_right[:, None, :]) ** 2).mean(axis=(1, 2))
            total += float((count * rest * (1 + (count - 1) / ((m - 1) * (n - 1)))).sum())
    return total + sum(_permutation_variance(side.groups, effect) for side, effect in zip(sides, effects, strict=True))


class _Effect(NamedTuple):
    """What the rank of an item in one ranking adds, for the items of some cells."""

    rank: Codes  # (n_cells, n_ranks): the ranks of the group, from 0
    n_items: Codes  # (n_cells, 1): in the cell
    value: Floats  # (n_cells, n_ranks): with the mean 0 in each cell


def _permutation_variance(groups: RankGroups, effects: Sequence[_Effect]) -> float:
    """The variance of Σ_e value_e(rank of e) over random orders of the tie groups; 0 for items in no cell."""
    size = groups.item_size  # at each rank
    items, mean, squares = np.zeros((3, len(groups)))
    for rank, count, value in effects:
        np.add.at(items, rank, count)
        np.add.at(mean, rank, count * value / size[rank])
    for rank, count, value in effects:
        np.add.at(squares, rank, count * (value - mean[rank]) ** 2)
    squares += (size - items) * mean**2
    return float((squares / np.maximum(size - 1, 1))[size > 1].sum())
