"""Rank-biased precision (RBP) and rank-biased recall (RBR): a ranking against judged items, or a set; and sets alone.

The rank-biased measures (RBO and RBA are in the module beside) take a ranking for the visible part of an unbounded
one, in which rank r weighs (1−φ)·φ^(r−1). `lower` assumes that unseen and unjudged items lower the score, `upper` that
they raise it. Both are Estimates over all orders of the tied items. Equation numbers are those of Moffat et al.
(SIGIR-AP 2024), unless another paper is named.

RBR is RBP with exchanged roles, RBR(B|R) = RBP(R|B). The set B may be the first `depth` items of a ranking. Then RBR is
a sum over common items of the weight of the rank in R, if the rank in the other ranking is at most `depth`. If the
depth splits a tie group, the items of the group are in the set with a probability.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from math import inf
from numbers import Real
from typing import Any

import numpy as np

from tiewise.data.columns import Codes, Floats
from tiewise.data.documents import Documents
from tiewise.data.judgments import Qrels
from tiewise.errors import InputError
from tiewise.metrics import engine
from tiewise.metrics.catalogue import RBP
from tiewise.metrics.estimate import Bounds, Estimate
from tiewise.metrics.grouped_judgments import GroupedJudgments
from tiewise.metrics.hypergeometric import hypergeometric
from tiewise.metrics.segments import safe_divide
from tiewise.rankings.ranking import Gains, Ranking, RankingLike, as_ranking, check_depth, check_gains, pair_rankings
from tiewise.rankings.tie_orders import Parts, make_bounds, make_estimate, over_orders, sum_variance
from tiewise.rankings.weights import Weights, WeightsLike, as_weights, check_phi, either_phi
from tiewise.ties.groups import TieGroups
from tiewise.ties.pairs import PairGroups, inclusion


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
    RBP from 0.5000 to 0.8125
    """
    phi = check_phi(either_phi(phi, p, RBP.p))
    if depth is not None:
        check_depth(depth)
    if not isinstance(gmax, Real) or not 0 < gmax < inf:
        raise InputError(f"gmax={gmax!r} is not possible: it is the largest gain that an item can have.")
    check_gains(gains, gmax)
    x = as_ranking(ranking)
    length = len(x.items) if depth is None else min(depth, len(x.items))
    gain = np.array([gains.get(item, gmax) for item in x.items], dtype=np.float64)  # unjudged items at their best
    judged = np.array([position for item, position in x.position.items() if item in gains], dtype=np.int64)
    measure = RBP(p=phi, gains="graded", max=gmax) @ depth

    def estimate(items: Codes, tail: float) -> Estimate:
        """RBP of the items at some positions, in units of gain; `tail` is added."""
        ties = _judged_items(x, items, gain[items])
        mean = engine.estimates(measure, GroupedJudgments(ties)).mean()
        values = (mean.expected, mean.minimum, mean.maximum)
        expected, minimum, maximum = ((value or 0.0) * gmax + tail * gmax for value in values)
        return Estimate(expected, minimum, maximum, (mean.std or 0.0) * gmax, measure="RBP")

    return Bounds(estimate(judged, 0.0), estimate(np.arange(len(gain)), phi**length), measure="RBP")


def _judged_items(ranking: Ranking, items: Codes, gain: Floats) -> TieGroups:
    """The tie groups of the items at some positions, which are judged; they need no names."""
    documents = Documents(np.arange(len(items)), [""] * len(items))
    return TieGroups(
        qrels=Qrels(("",), np.array([0, len(items)]), documents, gain),
        score=np.full(len(items), np.nan),
        start=ranking.start[items],
        size=ranking.size[items],
        length=np.array([len(ranking.items)]),
        present=np.ones(1, dtype=bool),
        lowest=np.full(1, np.nan),
        lowest_size=np.zeros(1, dtype=np.int64),
    )


def rbr(
    observed: RankingLike | Iterable[Any],
    reference: RankingLike,
    phi: float | None = None,
    depth: int | None = None,
    *,
    p: float | None = None,
    weights: WeightsLike | None = None,
) -> Bounds:
    """Rank-biased recall: the weight, in a reference ranking, of the items of an observed set (Eqs. 6 to 9).

    Ranks have geometric weights for φ (`phi` or `p`), or other `weights`. A string is parsed as a ranking. With
    `depth`, `observed` is a ranking, and its first `depth` items are the set. If the depth splits a tie group, each
    item of the group is in the set with the probability that a random order gives.

    >>> r = "D07 D04 D11 D12 D10 D15 D06 D22 D19 D28"
    >>> rbr({"D06", "D23", "D10", "D07", "D04"}, r, phi=0.6)
    RBR from 0.7105 to 0.7129
    >>> rbr("D06 (D07 D04)", r, phi=0.6, depth=2).lower
    RBR 0.3387 [0.2587, 0.4187]
    >>> rbr({"D06", "D23", "D10", "D07", "D04"}, r, weights=Weights.dcg(10))
    RBR from 0.5175 to 0.5175
    """
    is_set = depth is None and not isinstance(observed, (str, Ranking))
    items = [[item] for item in dict.fromkeys(observed)] if is_set else observed  # an item may be a tuple
    pairs, chosen = pair_rankings(items, reference), as_weights(either_phi(phi, p), weights)
    parts = compute_rbr(pairs, chosen, depth)
    return make_bounds("RBR", parts, partial(_variances, pairs, chosen, depth))


def compute_rbr(pairs: PairGroups, weights: Weights, depth: int | None = None, extremes: bool = True) -> Parts:
    """RBR of the first `depth` items of x, as a set, against y; without `extremes`, only the expectations."""
    if depth is not None:
        check_depth(depth)
    lower = [pairs.sum(pairs.inclusion(0, depth) * weights.mean(pairs.start[1], pairs.size[1]))]
    if not extremes:
        return {"lower": over_orders(lower, extremes)}
    residual, weight = [_expected_residual(pairs, weights, depth)], weights.at(_ranks(pairs))
    for left, right in pairs.extreme_ranks:
        inside = left <= (np.inf if depth is None else depth)
        lower.append(pairs.sum(weight[right - 1] * inside))
        residual.append(weights.sum(pairs.length[1], set_size(pairs, depth) - pairs.sum(inside).astype(np.int64)))
    upper = [base + unseen for base, unseen in zip(lower, residual, strict=True)]
    return {"lower": over_orders(lower), "upper": over_orders(upper)}


def set_size(pairs: PairGroups, depth: int | None) -> Codes:
    """The number of items in the set of each pair, (n_pairs,)."""
    return pairs.length[0] if depth is None else np.minimum(pairs.length[0], depth)


def _ranks(pairs: PairGroups) -> Codes:
    return np.arange(1, int(pairs.length.max(initial=0)) + 1)


def _expected_residual(pairs: PairGroups, weights: Weights, depth: int | None) -> Floats:
    """The weight of the b ranks after the reference, for b items of the set that it lacks (Eq. 9), (n_pairs,)."""
    length, probability = pairs.length[1], pairs.inclusion(0, depth)
    certain = set_size(pairs, depth) - pairs.sum(probability > 0).astype(np.int64)  # if all items that may be are in it
    residual = weights.sum(length, np.maximum(certain, 0))
    split = np.flatnonzero((probability > 0) & (probability < 1))
    if depth is None or not len(split):
        return residual
    # Of the split tie group some items are drawn and some are absent: b has a hypergeometric distribution.
    pair, first, n_present = np.unique(pairs.pair[split], return_index=True, return_counts=True)
    start, size = pairs.start[0, split[first]], pairs.size[0, split[first]]
    whole = pairs.sum(probability == 1)[pair].astype(np.int64)  # common items above the split group
    chance = hypergeometric(size, size - n_present, depth - start)
    b = (start - whole)[:, None] + np.arange(chance.shape[1])
    residual[pair] = (chance * weights.sum(length[pair, None], b)).sum(axis=1)
    return residual


def _variances(pairs: PairGroups, weights: Weights, depth: int | None) -> dict[str, float | None]:
    """The variance over the tie orders of one pair; of the upper bound only if the set is certain."""
    weight = weights.at(_ranks(pairs))
    (lower,) = sum_variance(pairs, lambda i, k: weight[k] * (i < (np.inf if depth is None else depth)))
    probability = pairs.inclusion(0, depth)
    return {"lower": lower, "upper": lower if ((probability == 0) | (probability == 1)).all() else None}


# -- precision and recall of sets -----------------------------------------------------------------------------------
# Sets give one number. The first k items of a ranking have two uncertainties, which `Bounds` keeps apart: unjudged
# items may be relevant or not, and a tie group that the cutoff splits may put any of its items into the first k. The
# bounds are linear in the number of relevant items drawn from that group, and rise with it. So it is enough to
# enumerate the number of unjudged items drawn.


def precision(observed: Iterable[Any], reference: Iterable[Any]) -> float:
    """The share of an observed set that is in a reference set; 0 if it is empty (Moffat et al. 2024, Eq. 1).

    >>> precision({"a", "b"}, {"b", "c", "d"})
    0.5
    """
    b, r = _as_set(observed), _as_set(reference)
    return len(b & r) / len(b) if b else 0.0


def recall(observed: Iterable[Any], reference: Iterable[Any]) -> float:
    """The share of a reference set that is in an observed set; 0 if it is empty (Moffat et al. 2024, Eq. 2).

    >>> recall({"a", "b"}, {"b", "c", "d"})
    0.3333333333333333
    """
    return precision(reference, observed)  # Eq. 3


def precision_at(ranking: RankingLike, gains: Gains, k: int) -> Bounds:
    """P@k of a ranking. Items with a positive gain are relevant, items without a gain are unjudged.

    The lower bound counts unjudged items as not relevant. The upper bound counts them as relevant, and also the ranks
    up to k after the end of a shorter ranking.

    >>> precision_at("a (b c) d", {"a": 1, "b": 0, "d": 1}, k=2)
    P@2 from 0.5000 to 0.7500
    """
    head = _JudgedHead(ranking, gains, k)
    return head.bounds(
        f"P@{k}",
        lambda relevant, unjudged: relevant / k,
        lambda relevant, unjudged: (relevant + unjudged + head.unseen) / k,
    )


def recall_at(ranking: RankingLike, gains: Gains, k: int, others: float = 0) -> Bounds:
    """R@k of a ranking. Items with a positive gain are relevant, items without a gain are unjudged.

    The lower bound counts unjudged items among the first k as not relevant and those after them as relevant; the upper
    bound does the reverse. `others` is the number of items that are neither ranked nor judged and may be relevant
    (``math.inf`` if it is unknown): for the lower bound all of them are relevant and none is found. Ranks up to k after
    the end of a shorter ranking add nothing to the lower bound; for the upper bound they hold the missing judged
    relevant items, then others.

    >>> recall_at("a (b c) d", {"a": 1, "b": 0, "d": 1}, k=2)
    R@2 from 0.4167 to 0.5833
    """
    head = _JudgedHead(ranking, gains, k)
    if isinstance(others, str) or not others >= 0:
        raise InputError(f"others={others!r} is not a number of items.")
    all_relevant = sum(gain > 0 for gain in gains.values())

    def lower(relevant: Floats, unjudged: Floats) -> Floats:
        return safe_divide(relevant, all_relevant + head.all_unjudged - unjudged + others)

    def upper(relevant: Floats, unjudged: Floats) -> Floats:
        judged = np.minimum(head.unseen, all_relevant - relevant)  # if ranks are unseen, all items are in the head
        extra = unjudged + np.minimum(head.unseen - judged, others)
        return safe_divide(relevant + judged + extra, all_relevant + extra)

    return head.bounds(f"R@{k}", lower, upper)


class _JudgedHead:
    """The first k items of a ranking: the groups that k does not split, and some items of the group that it splits."""

    def __init__(self, ranking: RankingLike, gains: Gains, k: int):
        x = as_ranking(ranking)
        check_depth(k, "k")
        check_gains(gains)
        inside = inclusion(x.start, x.size, k)
        relevant = np.array([gains.get(item, 0) > 0 for item in x.items], dtype=bool)
        unjudged = np.array([item not in gains for item in x.items], dtype=bool)
        certain, split = inside == 1, (inside > 0) & (inside < 1)
        self.relevant, self.unjudged = np.count_nonzero(relevant & certain), np.count_nonzero(unjudged & certain)
        #: Items of the split group: all, relevant and unjudged ones.
        self.split = [int(np.count_nonzero(split & kind)) for kind in (True, relevant, unjudged)]
        self.drawn = min(k, len(x.items)) - np.count_nonzero(certain)  # items of the split group among the first k
        self.unseen = max(0, k - len(x.items))  # ranks up to k after the end of the ranking
        self.all_unjudged = np.count_nonzero(unjudged)

    def bounds(self, name: str, lower: _CountMeasure, upper: _CountMeasure) -> Bounds:
        """The bounds of a measure that depends on the relevant and the unjudged items among the first k."""
        n_split, n_relevant, n_unjudged = self.split
        probability = hypergeometric(n_split, n_unjudged, self.drawn)[0]
        unjudged = np.arange(len(probability), dtype=np.float64)
        probability, unjudged = probability[probability > 0], unjudged[probability > 0]
        judged = self.drawn - unjudged
        fewest, most = np.maximum(0, judged - (n_split - n_relevant - n_unjudged)), np.minimum(n_relevant, judged)
        mean = judged * (n_relevant / max(n_split - n_unjudged, 1))

        def estimate(value: _CountMeasure) -> Estimate:
            expected, low, high = (
                value(self.relevant + relevant, self.unjudged + unjudged) for relevant in (mean, fewest, most)
            )
            low, high = low.min(), high.max()
            return make_estimate(name, np.array([np.clip((probability * expected).sum(), low, high), low, high]))

        return Bounds(estimate(lower), estimate(upper), measure=name)


#: A measure, from the numbers of relevant and of unjudged items among the first k.
_CountMeasure = Callable[[Floats, Floats], Floats]


def _as_set(items: Iterable[Any]) -> set[Any]:
    """The items of a set; a string is parsed as a ranking."""
    return set(Ranking(items).items) if isinstance(items, str) else set(items)
