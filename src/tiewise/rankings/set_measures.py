"""Precision and recall: of a set against a set, and of the head of a ranking where not all items are judged.

Sets give one number. The head of a ranking has two uncertainties, kept apart as in `Bounds`: unjudged items may turn
out relevant or not, and a tie group that straddles the cutoff may put any of its items into the head. Bounds rise with
the relevant items drawn from that group and are linear in them, so that it is enough to go through the numbers of
unjudged ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from tiewise.data.columns import Floats
from tiewise.errors import InputError
from tiewise.metrics.estimate import Bounds, Estimate
from tiewise.metrics.hypergeometric import hypergeometric
from tiewise.rankings.ranking import Ranking, check_depth, check_gains

__all__ = ["precision", "precision_at", "recall", "recall_at"]


def precision(observed: Iterable[Any], reference: Iterable[Any]) -> float:
    """The share of an observed set that is in a reference set, 0 if it is empty (Moffat et al. 2024, Eq. 1).

    >>> precision({"a", "b"}, {"b", "c", "d"})
    0.5
    """
    b, r = _items(observed), _items(reference)
    return len(b & r) / len(b) if b else 0.0


def recall(observed: Iterable[Any], reference: Iterable[Any]) -> float:
    """The share of a reference set that an observed set holds, 0 if it is empty (Moffat et al. 2024, Eq. 2).

    >>> recall({"a", "b"}, {"b", "c", "d"})
    0.3333333333333333
    """
    return precision(reference, observed)  # Eq. 3


def precision_at(ranking: Any, gains: Mapping[Any, float], k: int) -> Bounds:
    """P@k of a ranking for the gains of some items; items without one are unjudged, those with a gain relevant.

    The lower bound takes unjudged items as not relevant, the upper one as relevant, and with them the ranks up to k
    that a shorter ranking does not show.

    >>> precision_at("a (b c) d", {"a": 1, "b": 0, "d": 1}, k=2)
    P@2 [0.5000, 0.7500]
    """
    head = _Head.of(ranking, gains, k)
    return head.bounds(
        f"P@{k}",
        lambda relevant, unjudged: relevant / k,
        lambda relevant, unjudged: (relevant + unjudged + head.unseen) / k,
    )


def recall_at(ranking: Any, gains: Mapping[Any, float], k: int, others: float = 0) -> Bounds:
    """R@k of a ranking for the gains of some items; items without one are unjudged, those with a gain relevant.

    The lower bound takes unjudged items in the first k as not relevant and those after it as relevant; the upper one
    the reverse. So many `others` that are neither ranked nor judged may be relevant too (``math.inf``: nobody knows how
    many): for the lower bound all of them are, and none is found. Ranks up to k that a shorter ranking does not show
    add nothing to the lower bound; for the upper one they hold the judged relevant items that it lacks, then others.

    >>> recall_at("a (b c) d", {"a": 1, "b": 0, "d": 1}, k=2)
    R@2 [0.4167, 0.5833]
    """
    head = _Head.of(ranking, gains, k)
    if isinstance(others, str) or not others >= 0:
        raise InputError(f"others={others!r} is no number of items.")
    known = sum(gain > 0 for gain in gains.values())

    def lower(relevant: Floats, unjudged: Floats) -> Floats:
        return _per(relevant, known + head.unjudged - unjudged + others)

    def upper(relevant: Floats, unjudged: Floats) -> Floats:
        judged = np.minimum(head.unseen, known - relevant)  # where ranks are unseen, all that is ranked is in the head
        more = unjudged + np.minimum(head.unseen - judged, others)
        return _per(relevant + judged + more, known + more)

    return head.bounds(f"R@{k}", lower, upper)


_Value = Callable[[Floats, Floats], Floats]  # of the numbers of relevant and of unjudged items in the head


class _Head(NamedTuple):
    """What is known of the first k items of a ranking."""

    relevant: int  # surely among them
    unjudged: int  # of the whole ranking
    sure_unjudged: int  # surely among them
    group: tuple[int, int, int]  # of the group that straddles k: items, relevant, unjudged
    drawn: int  # how many of that group are among them
    unseen: int  # ranks up to k that the ranking does not show

    @staticmethod
    def of(ranking: Any, gains: Mapping[Any, float], k: int) -> _Head:
        x = Ranking(ranking)
        check_depth(k, "k")
        check_gains(gains)
        before, relevant, unjudged, straddling, drawn = 0, 0, 0, (0, 0, 0), 0
        for group in x:
            good, unknown = sum(gains.get(item, 0) > 0 for item in group), sum(item not in gains for item in group)
            if before + len(group) <= k:
                relevant, unjudged = relevant + good, unjudged + unknown
            elif before < k:
                straddling, drawn = (len(group), good, unknown), k - before
            before += len(group)
        everywhere = sum(item not in gains for item in x.items)
        return _Head(relevant, everywhere, unjudged, straddling, drawn, max(0, k - before))

    def bounds(self, name: str, lower: _Value, upper: _Value) -> Bounds:
        """The bounds of a measure of how many relevant and unjudged items are among the first k."""
        size, good, unknown = self.group
        chance = hypergeometric(size, unknown, self.drawn)[0]
        unjudged = np.arange(len(chance), dtype=np.float64)
        chance, unjudged = chance[chance > 0], unjudged[chance > 0]
        left = self.drawn - unjudged
        least, most = np.maximum(0, left - (size - good - unknown)), np.minimum(good, left)
        mean = left * (good / max(size - unknown, 1))

        def estimate(value: _Value) -> Estimate:
            low, expected, high = (value(self.relevant + r, self.sure_unjudged + unjudged) for r in (least, mean, most))
            minimum, maximum = float(low.min()), float(high.max())
            average = float((chance * expected).sum())
            return Estimate(min(max(average, minimum), maximum), minimum, maximum, measure=name)

        return Bounds(estimate(lower), estimate(upper), measure=name)


def _items(given: Iterable[Any]) -> set[Any]:
    """The items of a set; a text is written like a ranking."""
    return set(Ranking(given).items) if isinstance(given, str) else set(given)


def _per(amount: Floats, divisor: Floats) -> Floats:
    return np.divide(amount, divisor, out=np.zeros_like(amount), where=divisor != 0)
