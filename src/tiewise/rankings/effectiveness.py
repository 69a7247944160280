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

from dataclasses import dataclass

import numpy as np

from tiewise.errors import InputError
from tiewise.metrics.catalogue import RBP
from tiewise.metrics.estimate import Estimate
from tiewise.rankings.overlap import sum_unseen
from tiewise.rankings.ranking import RankingLike, pair_rankings
from tiewise.rankings.tie_orders import Parts, make_estimate, mean_at_larger_rank, over_orders, sum_variance
from tiewise.rankings.weights import Weights, WeightsLike, as_weights, difference_table
from tiewise.ties.pairs import PairGroups


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
    pairs = pair_rankings(x, y)
    weight = chosen.at(np.arange(1, int(pairs.length.max()) + 1))
    variance = sum_variance(pairs, lambda i, k: weight[np.maximum(i, k)])
    parts = compute_med(pairs, chosen)
    value, lower, upper = (make_estimate("MED-RBP", part[:, 0], variance) for part in parts.values())
    return MED(value.expected, value.minimum, value.maximum, value.std, measure="MED-RBP", lower=lower, upper=upper)


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
