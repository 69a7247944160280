"""Average precision."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tiewise.data.columns import Floats
from tiewise.metrics.catalogue.parts import Binary
from tiewise.metrics.definition import param
from tiewise.metrics.engine import GroupBlock, GroupedJudgments, row_sum
from tiewise.metrics.names import measure

__all__ = ["AP"]


class _AP(Binary):
    """Average precision: the mean over all relevant documents of the precision at their rank, 0 below k (mean: MAP).

    The divisor is the number of relevant documents (`norm="all"`, trec_eval's map_cut), or at most k of them
    (`norm="cap"`, sentence-transformers).

    >>> AP.of("(10)1")
    AP 0.7083 [0.5833, 0.8333]
    """

    norm: str = param("all", choices=("all", "cap"))
    aliases = ("map", "average_precision", "avg_precision")

    def payoff(self, rank: Floats, seen: Floats) -> Floats:
        return (1.0 + seen) / rank

    def divisor(self, q: GroupedJudgments) -> NDArray[Any]:
        relevant = q.relevant(self)
        return relevant if self.norm == "all" or self.cutoff is None else np.minimum(relevant, self.cutoff)

    def moments(self, block: GroupBlock) -> tuple[Floats, Floats]:
        n, r, i = block.size, block.relevant, block.slot
        a = np.where(block.within, 1.0 / block.rank, 0.0)
        beta = (r - 1) / np.maximum(n - 1, 1)  # 0 if the document is alone (Yang et al., Eq. 23, is 0/0 there)
        mean = r / n * row_sum(a * (block.seen + 1 + beta * i))
        # Taking one constant off all n weights leaves the variance as it is, and less cancels.
        a = np.where(block.inside == n, np.where(block.within, a - 1.0 / (block.start + n), 0.0), a)
        return mean, _ap_variance(a, block)


AP = measure(_AP)


def _ap_variance(a: Floats, block: GroupBlock) -> Floats:
    """The variance of Σ a_i · (relevant documents up to slot i) over the relevant slots i of a group.

    The statistic is a quadratic form in the indicators of relevance; Hoeffding's decomposition under sampling without
    replacement splits it into a linear part l and an uncorrelated rest (theory.md, Eq. 9).
    """
    n, r, i = block.size, block.relevant, block.slot
    beyond = n - block.inside  # slots past the cutoff, where every term below is that of a weight of 0
    after = np.cumsum(a[:, ::-1], axis=1)[:, ::-1] - a
    b = np.where(block.within, i * a + after, 0.0)
    linear = np.where(block.within, (block.seen + 1) * a + (r - 1) / np.maximum(n - 2, 1) * b * (n > 2), 0.0)
    mean = row_sum(linear) / n
    first = row_sum(np.where(block.within, linear - mean, 0.0) ** 2) + beyond * mean**2
    total = row_sum(i * a) / np.maximum(n - 1, 1)
    alpha = np.where(block.within, b - total, 0.0) / np.maximum(n - 2, 1)
    squares = row_sum(alpha**2) + beyond * (total / np.maximum(n - 2, 1)) ** 2
    rest = row_sum(i * a**2) - (n - 2) * squares - total**2
    pairs = r * (r - 1) * (n - r) * (n - r - 1) / np.maximum(n * (n - 1) * (n - 2) * (n - 3), 1)
    variance = r * (n - r) / np.maximum(n * (n - 1), 1) * first + pairs * rest
    return np.maximum(variance, 0.0)
