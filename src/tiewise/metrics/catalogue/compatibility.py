"""Compatibility: how similar a list is to the ideal ranking that is nearest to it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tiewise.data.columns import Codes, Floats
from tiewise.metrics.catalogue.parts import OfGains
from tiewise.metrics.definition import Law, param
from tiewise.metrics.engine import sum_payoffs
from tiewise.metrics.grouped_judgments import GroupBlock, GroupedJudgments, Order
from tiewise.metrics.hypergeometric import hypergeometric_window
from tiewise.metrics.names import measure
from tiewise.metrics.segments import alike

__all__ = ["Compat"]


class _Compat(OfGains):
    """Compatibility: the rank-biased overlap of a list and the ideal ranking nearest to it (Clarke et al., 2021).

    An ideal ranking has the documents with a label above 0, by descending label. Those of one label are in the order of
    the list, which gives the highest overlap. With `normalize` it is divided by that of the ideal ranking itself.

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

    @property
    def value_range(self) -> tuple[float, float] | None:
        """None known without `normalize`: then a longer list can have a lower value."""
        return None if self.normalize else (np.nan, np.nan)

    def gain(self, label: Floats) -> Floats:
        return np.maximum(label, 0.0)

    def depth(self, q: GroupedJudgments) -> NDArray[Any]:
        return np.minimum(q.length, self._deepest)

    @property
    def _deepest(self) -> int:
        """Below this depth there is no weight: p^depth < 1e-300."""
        return math.ceil(-700 / math.log(self.p))

    def _depths(self, q: GroupedJudgments) -> tuple[Floats, Floats]:
        """The number of depths of each query, and its documents with a label above 0."""
        ideal = q.relevant(self)
        return np.maximum(q.length, ideal), ideal

    def _weights(self, q: GroupedJudgments) -> Floats:
        """The sums of p^(d−1)/d over all d from 1, 2, 3, … to the largest depth of any query with a weight, and 0."""
        depth = np.arange(min(int(self._depths(q)[0].max(initial=0)), self._deepest), 0, -1.0)
        return np.append(np.cumsum(self.p ** (depth - 1) / depth)[::-1], 0.0)

    def _weight_from(self, weights: Floats, first: Floats, depths: Floats) -> Floats:
        """The weight of the depths from `first` to the last one."""
        last = np.minimum(depths.astype(np.int64), len(weights) - 1)
        return weights[np.minimum(first.astype(np.int64), last + 1) - 1] - weights[last]

    def divisor(self, q: GroupedJudgments) -> NDArray[Any]:
        depths, ideal = self._depths(q)
        if not self.normalize:
            return (1 - self.p**depths) / (1 - self.p)
        weights = self._weights(q)
        total, end = np.append(0.0, np.cumsum(weights)), len(weights) - 1
        return (
            total[np.minimum(ideal.astype(np.int64), end)] - ideal * weights[np.minimum(depths.astype(np.int64), end)]
        )

    def _count_higher(self, q: GroupedJudgments) -> Codes:
        """N_{>λ}: how many judged documents of its query have a higher label than each, (n_rows of the qrels,)."""
        qrels, higher = q.ties.qrels, np.zeros(len(q.ties.qrels), dtype=np.int64)
        rows = np.lexsort((-qrels.label, qrels.query))
        higher[rows] = _heads(qrels.query[rows], qrels.label[rows]) - _heads(qrels.query[rows])
        return higher

    def terms(self, order: Order) -> Floats:
        q, label = order.grouped, order.label
        weights, depths = self._weights(q), self._depths(q)[0][order.query]
        by_label, before = np.lexsort((label, order.segment)), np.zeros(len(label))  # in a list, by rank already
        before[by_label] = np.arange(len(label)) - _heads(order.segment[by_label], label[by_label])
        first = np.maximum(order.rank, self._count_higher(q)[order.rows] + before + 1)
        return np.where(label > 0, self._weight_from(weights, first, depths), 0.0)

    def law(self, block: GroupBlock) -> Law:
        """The expectation is a sum over labels, Eq. (2) for each; there is no closed form for the variance."""
        q, weights = block.grouped, self._weights(block.grouped)
        mean, depths = np.zeros_like(block.start), block.of_query(self._depths(q)[0])
        place = np.full(len(q.first), -1)
        place[block.groups] = np.arange(len(block.groups))
        # Documents by query, label and group: those of one label and group are a part of the sum.
        rows = np.flatnonzero(q.label > 0)
        rows = rows[np.lexsort((q.group[rows], q.label[rows], q.query[rows]))]
        of_level, head = _heads(q.query[rows], q.label[rows]), _heads(q.label[rows], q.group[rows])
        first, number = np.unique(head, return_counts=True)
        chosen = np.flatnonzero(place[q.group[rows[first]]] >= 0)
        first, number = first[chosen], number[chosen]
        count = number.astype(np.float64)[:, None]
        owner, seen = place[q.group[rows[first]]], (first - of_level[first]).astype(np.float64)[:, None]
        higher = self._count_higher(q)[q.rows[rows[first]]][:, None]
        for some in alike(np.maximum(number, block.slot.shape[1])):
            part, above, last = block.take(owner[some]), higher[some], depths[owner[some]]
            if block.slot.shape[1] * number[some].max() > LARGE:
                for one, at in enumerate(some.tolist()):
                    of_group = (int(column[one, 0]) for column in (part.start, part.size, part.inside, last))
                    ideal = int(above[one, 0] + seen[at, 0])
                    mean[owner[at]] += self._sum_large(weights, int(number[at]), ideal, *of_group)
                continue

            def payoff(rank: Floats, seen: Floats, above: Codes = above, last: Floats = last) -> Floats:
                return self._weight_from(weights, np.maximum(rank, above + seen + 1), last)

            total = count[some] / part.size * sum_payoffs(payoff, part, count[some], seen[some])
            np.add.at(mean, owner[some], total)
        return Law(mean)

    def _sum_large(
        self, weights: Floats, count: int, ideal: int, start: int, size: int, inside: int, depths: int
    ) -> float:
        """What `count` documents of one label add in a large tie group; `ideal` ideal ranks are above theirs.

        With u other documents of the group above one of them, its ideal rank is above its rank if u < ideal − start.
        """
        seen = np.searchsorted(-weights, -NEGLIGIBLE) - start  # ranks below have no weight that is worth adding
        slot = np.arange(min(inside, max(int(seen), 0)))
        rank_weight = self._weight_from(weights, (start + 1 + slot).astype(np.float64), np.array(depths))
        total, lead, others = float(rank_weight.sum()), ideal - start, size - count
        n_slots = _slots_with_few(size - 1, others, len(slot), lead)
        for some in np.array_split(slot[:n_slots], n_slots // 512 + 1):
            u, chance = hypergeometric_window(size - 1, others, some)
            first = np.maximum(ideal + 1.0 + some[:, None] - u, 1.0)
            more = self._weight_from(weights, first, np.array(depths)) - rank_weight[some][:, None]
            total += float((chance * np.where(u < lead, more, 0.0)).sum())
        return count / size * total


#: Above this number of slots times documents, a tie group is worked through alone, and ranks below this weight are not.
LARGE, NEGLIGIBLE = 1 << 16, 1e-30


def _slots_with_few(size: int, marked: int, slots: int, few: int) -> int:
    """The first slots above which fewer than a few marked items may stand, with a chance that is not negligible."""
    if few <= 0:
        return 0
    mean = np.arange(slots) * (marked / size)
    return int(np.count_nonzero(mean - 10 * np.sqrt(mean) - 10 < few))


def _heads(*keys: NDArray[Any]) -> Codes:
    """For each element, the first of the elements next to it that have the same keys."""
    new = np.ones(len(keys[0]), dtype=bool)
    new[1:] = np.logical_or.reduce([key[1:] != key[:-1] for key in keys])
    found: Codes = np.flatnonzero(new)[np.cumsum(new) - 1]
    return found


Compat = measure(_Compat)
