"""Compatibility: how similar a list is to the ideal ranking that is nearest to it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tiewise.data.columns import Floats
from tiewise.metrics.definition import Measure, param
from tiewise.metrics.engine import sum_payoffs
from tiewise.metrics.grouped_judgments import GroupBlock, GroupedJudgments, Order
from tiewise.metrics.names import measure

__all__ = ["Compat"]


class _Compat(Measure):
    """Compatibility: the rank-biased overlap of a list and the ideal ranking nearest to it (Clarke et al., 2021).

    An ideal ranking has the documents with a label above 0, by descending label. Those of one label stand there as they
    do in the list, which gives the highest overlap. With `normalize` it is divided by that of the ideal ranking itself.

    >>> Compat.of("(20)1")
    Compat 0.6179 [0.4219, 0.8138]
    """

    # The m-th document of label λ in the list has the ideal rank i = N_{>λ} + m, where N_{>λ} documents have a higher
    # label. It is in both rankings from depth max(rank, i) on, so its term is the weight of these depths.
    #
    # The best order is by descending label. Let a document of label μ at rank r + 1 change places with one of a lower
    # label λ at rank r. No m changes. At depth r the overlap loses the second document only if its ideal rank, which is
    # above N_{>λ}, is at most r. Then the overlap gains the first one, whose ideal rank is at most N_{≥μ} ≤ N_{>λ}.

    takes_cutoff = False
    p: float = param(0.95, above=0, below=1)
    normalize: bool = param(True)

    def gain(self, label: Floats) -> Floats:
        return np.maximum(label, 0.0)

    def kinds(self, documents: GroupedJudgments) -> tuple[Floats, float]:
        return self.gain(documents.label), 0.0

    def depth(self, q: GroupedJudgments) -> NDArray[Any]:
        return np.minimum(q.length, math.ceil(-700 / math.log(self.p)))  # below it, p^rank < 1e-300

    def _depths(self, q: GroupedJudgments) -> tuple[Floats, Floats]:
        """The number of depths of each query, and its documents with a label above 0."""
        ideal = q.relevant(self)
        return np.maximum(q.length, ideal), ideal

    def _weights(self, q: GroupedJudgments) -> Floats:
        """The sums of p^(d−1)/d over all d from 1, 2, 3, … to the largest depth of any query, and 0."""
        depth = np.arange(int(self._depths(q)[0].max(initial=0)), 0, -1.0)
        return np.append(np.cumsum(self.p ** (depth - 1) / depth)[::-1], 0.0)

    def _weight_from(self, weights: Floats, first: Floats, depths: Floats) -> Floats:
        """The weight of the depths from `first` to the last one."""
        last = depths.astype(np.int64)
        return weights[np.minimum(first.astype(np.int64), last + 1) - 1] - weights[last]

    def divisor(self, q: GroupedJudgments) -> NDArray[Any]:
        depths, ideal = self._depths(q)
        if not self.normalize:
            return (1 - self.p**depths) / (1 - self.p)
        weights = self._weights(q)
        total = np.append(0.0, np.cumsum(weights))
        return total[ideal.astype(np.int64)] - ideal * weights[depths.astype(np.int64)]

    def terms(self, order: Order) -> Floats:
        q, label = order.grouped, order.label
        weights, depths = self._weights(q), self._depths(q)[0][order.query]
        terms = np.zeros(len(label))
        for level in np.unique(label[label > 0]).tolist():
            same = label == level
            higher = q.judged(q.ties.qrels.label > level)[order.query]
            first = np.maximum(order.rank, higher + order.count_before(same) + 1)
            terms += np.where(same, self._weight_from(weights, first, depths), 0.0)
        return terms

    def moments(self, block: GroupBlock) -> tuple[Floats, Floats]:
        """The expectation is a sum over labels, Eq. (2) for each; there is no closed form for the variance."""
        q, weights = block.grouped, self._weights(block.grouped)
        depths, mean = block.of_query(self._depths(q)[0]), np.zeros_like(block.start)
        for level in np.unique(q.label[q.label > 0]).tolist():
            same = q.label == level
            count, higher = block.sum(same), block.of_query(q.judged(q.ties.qrels.label > level))

            def payoff(rank: Floats, seen: Floats, higher: Floats = higher) -> Floats:
                return self._weight_from(weights, np.maximum(rank, higher + seen + 1), depths)

            if count.any():
                mean += count / block.size * sum_payoffs(payoff, block, count, block.above(same))
        return mean, np.full_like(mean, np.nan)


Compat = measure(_Compat)
