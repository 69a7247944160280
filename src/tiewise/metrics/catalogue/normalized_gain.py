"""Gains against those of the ideal list, rank by rank: G, RnDCG and nDCGRel (trec_eval's G, Rndcg and ndcg_rel)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tiewise.data.columns import Codes, Floats
from tiewise.metrics.catalogue.parts import LevelGains, ideal_order
from tiewise.metrics.definition import Law, Measure, param
from tiewise.metrics.engine import linear_law, sorted_extremes
from tiewise.metrics.grouped_judgments import GroupBlock, GroupedJudgments, Order
from tiewise.metrics.names import measure
from tiewise.metrics.segments import safe_divide

__all__ = ["G", "RnDCG", "nDCGRel"]


class _IdealList:
    """The gains of all judged documents of each query in descending order, and what they add up to by rank."""

    def __init__(self, who: Measure, q: GroupedJudgments):
        self.order = order = ideal_order(who, q)
        self.query, self.rank = order.query, order.rank
        self.gain = np.maximum(who.gain(order.label), 0.0)
        self.n_positive = order.sum(self.gain > 0)
        self.first, self.size = q.ties.qrels.offsets[:-1], np.diff(q.ties.qrels.offsets)
        payoff = self.gain / np.log2(self.rank + 1)
        self.discounted = order.sum_before(payoff) + payoff

    def at(self, sums: Floats, query: Codes, rank: Floats) -> Floats:
        """The sums of some queries up to some ranks; at most those of their whole list."""
        held = np.minimum(rank, self.size[query]).astype(np.int64)
        found: Floats = np.where(held > 0, np.append(sums, 0.0)[self.first[query] + held - 1], 0.0)
        return found


class _G(LevelGains):
    """The sum of gain / log2(2 + the lead of the best list at this rank), over the sum of all gains (trec_eval's G).

    At rank i the lead is the sum of the i highest gains, each at least 1, minus the sum of this list's first i gains.

    >>> G.of("(20)1")
    G 0.7540 [0.6309, 0.8770]
    """

    takes_cutoff = False
    sorted_extremes = False

    def divisor(self, q: GroupedJudgments) -> NDArray[Any]:
        return q.judged(np.maximum(self.gain(q.ties.qrels.label), 0.0))

    def terms(self, order: Order) -> Floats:
        ideal = _IdealList(self, order.grouped)
        more = np.maximum(ideal.gain - 1, 0.0)  # a rank counts at least 1
        more = ideal.order.sum_before(more) + more
        cost = order.rank + ideal.at(more, order.query, order.rank)
        gain = self.gain(order.label)
        return gain / np.log2(2 + cost - (order.sum_before(gain) + gain))

    def law(self, block: GroupBlock) -> Law:
        """The orders by label are the extremes if all gains of a query are one number or 0."""
        q = block.grouped
        gain = self.gain(q.ties.qrels.label)
        most, least = np.zeros((2, q.n_queries))
        np.maximum.at(most, q.ties.qrels.query, gain)
        np.minimum.at(least, q.ties.qrels.query, np.where(gain == 0, 0.0, gain - most[q.ties.qrels.query]))
        return Law(np.full_like(block.start, np.nan), extremes=lambda: sorted_extremes(self, block, least == 0))


class _RnDCG(LevelGains):
    """The mean of nDCG at the ranks where the gain of the ideal list decreases, and at the end of a longer list.

    It is 0 if no label is at least `rel` (trec_eval's Rndcg).

    >>> RnDCG.of("(20)100")
    RnDCG 0.6433 [0.3831, 0.9035]
    """

    takes_cutoff = False
    rel: float = param(1, least=0)

    @property
    def value_range(self) -> tuple[float, float] | None:
        """None known with negative gains: then a longer list can have a lower value at its end."""
        return (np.nan, np.nan) if min(self.levels.values(), default=0.0) < 0 else None

    def _cuts(self, q: GroupedJudgments) -> tuple[Floats, Floats]:
        """For each query the ranks and the share of the value that DCG has there, (n_queries, n_cuts)."""
        ideal = _IdealList(self, q)
        positive = ideal.gain > 0
        following = np.append(ideal.gain[1:], 0.0)
        following[ideal.rank == ideal.size[ideal.query]] = 0.0  # after the last of a query
        last = np.flatnonzero(positive & (following != ideal.gain))
        query = ideal.query[last]
        place = np.arange(len(last)) - np.searchsorted(query, query)
        rank, worth = np.zeros((2, q.n_queries, int(place.max(initial=-1)) + 2))
        rank[query, place], worth[query, place] = ideal.rank[last], 1.0 / ideal.discounted[last]
        longer = np.flatnonzero((q.length > ideal.n_positive + 1) & (ideal.n_positive > 0))
        rank[longer, -1] = q.length[longer]
        worth[longer, -1] = 1.0 / ideal.at(ideal.discounted, longer, ideal.n_positive[longer])
        number = np.count_nonzero(worth, axis=1)
        relevant = q.judged((q.ties.qrels.label >= self.rel) & (q.ties.qrels.label >= 0)) > 0
        return rank, worth * safe_divide(relevant.astype(np.float64), number)[:, None]

    def _payoff(self, rank: Floats, cuts: Floats, worth: Floats) -> Floats:
        """The payoff at some ranks, the cuts of their queries along the last axis."""
        weight = sum(np.where(rank <= cuts[..., i], worth[..., i], 0.0) for i in range(cuts.shape[-1]))
        found: Floats = weight / np.log2(rank + 1)
        return found

    def terms(self, order: Order) -> Floats:
        cuts, worth = (column[order.query] for column in self._cuts(order.grouped))
        return self.gain(order.label) * self._payoff(order.rank, cuts, worth)

    def law(self, block: GroupBlock) -> Law:
        query = block.grouped.group_query[block.groups]
        cuts, worth = (column[query][:, None, :] for column in self._cuts(block.grouped))
        return linear_law(self._payoff(block.rank, cuts, worth), block)


class _nDCGRel(LevelGains):
    """The mean over all documents with a gain of nDCG at their rank, at the list's end if not retrieved.

    It is trec_eval's ndcg_rel.

    >>> nDCGRel.of("(20)1")
    nDCGRel 0.7749 [0.5746, 0.9751]
    """

    takes_cutoff = False
    additive = False
    sorted_extremes = False

    def law(self, q: GroupedJudgments) -> Law:
        """Without negative gains a better document higher up raises every term."""
        if min(self.levels.values(), default=0.0) < 0:
            return super().law(q)
        return super().law(q)._replace(extremes=lambda: (self.values(q.worst(self)), self.values(q.best(self)), False))

    def values(self, order: Order) -> Floats:
        q = order.grouped
        ideal = _IdealList(self, q)
        gain = np.where(order.rank <= q.length[order.query], self.gain(order.label), 0.0)
        payoff = gain / np.log2(order.rank + 1)
        there = order.sum_before(payoff) + payoff
        normalized = safe_divide(there, ideal.at(ideal.discounted, order.query, order.rank))
        total = order.sum(np.where(gain > 0, normalized, 0.0))
        unseen = ideal.n_positive - order.sum(gain > 0)
        best = ideal.at(ideal.discounted, np.arange(q.n_queries), ideal.n_positive)
        return np.maximum(safe_divide(total + safe_divide(unseen * order.sum(payoff), best), ideal.n_positive), 0.0)


G = measure(_G)
RnDCG = measure(_RnDCG)
nDCGRel = measure(_nDCGRel)
