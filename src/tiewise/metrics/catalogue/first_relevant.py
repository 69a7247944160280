"""Measures of the first relevant document: reciprocal rank and success."""

from __future__ import annotations

import numpy as np

from tiewise.data.columns import Floats
from tiewise.metrics.catalogue.parts import Binary
from tiewise.metrics.definition import Law
from tiewise.metrics.grouped_judgments import GroupBlock
from tiewise.metrics.names import measure
from tiewise.metrics.segments import row_sum

__all__ = ["RR", "Success"]


class _First(Binary):
    """Measures that pay for the first relevant document only: payoff(r, seen) = [seen = 0] · worth(r)."""

    def worth(self, rank: Floats) -> Floats:
        raise NotImplementedError

    def payoff(self, rank: Floats, seen: Floats) -> Floats:
        return np.where(seen == 0, self.worth(rank), 0.0)

    def law(self, block: GroupBlock) -> Law:
        return law_of_first(block, self.worth(block.rank))


def law_of_first(block: GroupBlock, worth: Floats) -> Law:
    """The law of what the slot of the first relevant document is worth, 0 if that stands above."""
    # The first relevant document is in slot s with chance q_s = survival_s · r/(n−s); no binomials, so that
    # a million tied documents neither overflow nor cancel.
    left, is_first = np.maximum(block.size - block.slot, 1), block.seen == 0
    stay = np.minimum(np.maximum((block.size - block.relevant - block.slot) / left, 0.0), 1.0)
    survival = np.ones(block.rank.shape)
    np.multiply.accumulate(stay[:, :-1], axis=1, out=survival[:, 1:])
    chance = np.where(block.within & is_first, survival * np.minimum(block.relevant / left, 1.0), 0.0)
    mean = row_sum(chance * worth)

    def variance() -> Floats:
        missed = np.where(is_first, np.maximum(1 - row_sum(chance), 0.0), 0.0)
        return row_sum(chance * (worth - mean) ** 2) + missed * mean**2

    return Law(mean, variance)


class _RR(_First):
    """Reciprocal rank: 1 / rank of the first relevant document, 0 if it stands below k (mean: MRR).

    >>> RR.of("(10)1")
    RR 0.7500 [0.5000, 1.0000]
    """

    form = "first"
    aliases = ("mrr", "recip_rank", "reciprocal_rank")

    def worth(self, rank: Floats) -> Floats:
        return 1.0 / rank


class _Success(_First):
    """1 if a relevant document stands in the first k, else 0 (hit rate; Hits counts them).

    >>> Success.of("(0011)", k=2)
    Success@2 0.8333 [0.0000, 1.0000]
    """

    form = "first"
    aliases = ("hit_rate", "hitrate", "top_k_accuracy")

    def worth(self, rank: Floats) -> Floats:
        return np.ones_like(rank)


RR = measure(_RR)
Success = measure(_Success)
