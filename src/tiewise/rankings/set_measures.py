"""Precision and recall: of a set against a set, and of the first k items of a ranking with unjudged items.

Sets give one number. The first k items of a ranking have two uncertainties, which `Bounds` keeps apart: unjudged items
may be relevant or not, and a tie group that the cutoff splits may put any of its items into the first k. The bounds
are linear in the number of relevant items drawn from that group, and rise with it. So it is enough to enumerate the
number of unjudged items drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from tiewise.data.columns import Floats
from tiewise.errors import InputError
from tiewise.metrics.estimate import Bounds, Estimate
from tiewise.metrics.hypergeometric import hypergeometric
from tiewise.metrics.segments import safe_divide
from tiewise.rankings.ranking import Gains, Ranking, RankingLike, as_ranking, check_depth, check_gains
from tiewise.rankings.tie_orders import make_estimate


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
    P@2 [0.5000, 0.7500]
    """
    head = _Head(ranking, gains, k)
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
    R@2 [0.4167, 0.5833]
    """
    head = _Head(ranking, gains, k)
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


class _Head:
    """The first k items of a ranking: the groups that k does not split, and some items of the group that it splits."""

    def __init__(self, ranking: RankingLike, gains: Gains, k: int):
        x = as_ranking(ranking)
        check_depth(k, "k")
        check_gains(gains)
        inside = np.clip((k - x.start) / x.size, 0.0, 1.0)  # the probability to be among the first k
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
