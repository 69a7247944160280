"""Gains discounted by rank, DCG, nDCG and RBP, or against those of the ideal list, G, RnDCG and nDCGRel."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tiewise.data.columns import Codes, Floats, heads, is_first
from tiewise.errors import MeasureError
from tiewise.metrics import engine
from tiewise.metrics.catalogue.parts import (
    Binary,
    LevelGains,
    clip_labels,
    exponential_gain,
    ideal_sum,
    log_discount,
    spell_levels,
)
from tiewise.metrics.definition import Law, Measure, param
from tiewise.metrics.engine import linear_law, sorted_extremes
from tiewise.metrics.grouped_judgments import GroupBlock, GroupedJudgments, Order
from tiewise.metrics.hypergeometric import hypergeometric
from tiewise.metrics.names import measure
from tiewise.metrics.segments import safe_divide, segment_sum

__all__ = ["DCG", "RBP", "G", "RBPresid", "RnDCG", "TrecRBP", "nDCG", "nDCGRel"]


class _Discounted(LevelGains):
    gains: str = param("linear", choices=("linear", "exp", "binary"), text=spell_levels)

    def gain(self, label: Floats) -> Floats:
        if self.gains == "binary":
            return Measure.gain(self, label)
        return exponential_gain(np.maximum(label, 0.0)) if self.gains == "exp" else super().gain(label)

    def payoff(self, rank: Floats) -> Floats:  # type: ignore[override]  # it ignores `seen`
        return 1.0 / log_discount(rank)


#: The square of a larger gain, added up over a list, could exceed float64.
LARGEST_GAIN = 1e150


class _DCG(_Discounted):
    """Discounted cumulative gain: the sum of gains over log2(rank + 1).

    Gains are labels, 2^label − 1 (`gains="exp"`), 1 for labels from 1 on (`gains="binary"`), or given for some labels:
    `gains="1=5,2=9"`.

    >>> DCG.of("(20)1", k=2)
    DCG@2 1.6309 [1.2619, 2.0000]
    """

    form = "sum"
    aliases = ("dcg_burges:gains='exp'",)
    limits = (-math.inf, math.inf)

    def gain(self, label: Floats) -> Floats:
        gain = super().gain(label)
        if gain.size and gain.max() > LARGEST_GAIN:
            raise MeasureError(
                f"{self.name}: a gain of {gain.max():g} is too large to be added up. Divide all labels by one number, "
                "or use nDCG, which does not depend on their unit."
            )
        return gain


class _nDCG(_Discounted):
    """DCG over the DCG of the best list of all judged documents, with the gains of DCG.

    >>> nDCG.of("(20)10")
    nDCG 0.8100 [0.6697, 0.9502]
    """

    form = "sum"
    aliases = ("ndcg_burges:gains='exp'",)

    def scaled_gain(self, documents: GroupedJudgments | Order) -> Floats:
        gain, unit = self.gain(documents.label), documents.grouped.unit(self)
        return gain if unit is None else gain / unit[documents.query]

    def divisor(self, q: GroupedJudgments) -> NDArray[Any]:
        return ideal_sum(self, q)


def _rank_biased_weight(rank: Floats, p: float) -> Floats:
    """The share of readers who stop at a rank, if each goes on with probability p."""
    return (1 - p) * p ** (rank - 1)


def _unjudged_weight(
    p: float, query: Codes, start: Floats, end: Floats, share: Floats, n_queries: int
) -> tuple[Floats, Floats]:
    """The weight of unjudged documents above the last rank of a list's last group, and that rank, for each query.

    Groups follow each other by query and rank; `share` of the weight of each one is unjudged. What lies between groups
    is unjudged. It is added up, since 1 minus the weight of judged documents need not be 0 if all are judged.
    """
    above = np.where(is_first(query), 0.0, np.roll(end, 1))
    between = np.where(above < start, p**above - p**start, 0.0)
    last = np.zeros(n_queries)
    np.maximum.at(last, query, end)
    return segment_sum(query, between + share * (p**start - p**end), n_queries), last


def _unjudged_in_groups(
    p: float, q: GroupedJudgments, judged: NDArray[Any], depth: NDArray[Any]
) -> tuple[Floats, Floats]:
    """The same, expected over the orders of ties, with `judged` documents in each tie group."""
    depth, share = depth[q.group_query], (q.group_size - judged) / q.group_size
    start, end = np.minimum(q.group_start, depth), np.minimum(q.group_start + q.group_size, depth)
    return _unjudged_weight(p, q.group_query, start, end, share, q.n_queries)


class _RBP(Binary):
    """Rank-biased precision: (1 − p) · Σ p^(rank−1) over the relevant documents; `residual` is what is unknown.

    With `gains="graded"` a document counts label / max; with `gains="judged"` every judged one counts 1. `phi` is
    another name of `p`.

    >>> RBP(p=0.5).of("(10)1")
    RBP(p=0.5) 0.5000 [0.3750, 0.6250]
    >>> RBP(phi=0.5)
    RBP(p=0.5)
    """

    other_names: ClassVar[Mapping[str, str]] = {"phi": "p"}
    distinguishes_unjudged = True  # in its residual
    form = "sum"
    p: float = param(0.8, above=0, below=1, shown=True)
    gains: str = param("binary", choices=("binary", "graded", "judged"))
    max: float = param(1, above=0)

    def gain(self, label: Floats) -> Floats:
        if self.gains == "binary":
            return Binary.gain(self, label)
        if self.gains == "judged":
            return np.ones_like(label)
        return clip_labels(self.max, label, self) / self.max

    @property
    def sorts_by_label(self) -> bool:
        return self.gains != "judged"

    def payoff(self, rank: Floats) -> Floats:  # type: ignore[override]
        return _rank_biased_weight(rank, self.p)

    def residual(self, q: GroupedJudgments) -> Floats | None:
        if self.gains == "judged":
            return None
        weight, end = _unjudged_in_groups(self.p, q, q.n_judged, self.depth(q))
        return weight + self.p**end


class _TrecRBP(LevelGains):
    """Rank-biased precision as trec_eval 10 defines it: gains are divided by the highest, at least by 1.

    The highest is that of the query's judged documents and of the gains that `gains` gives to labels, whether or not
    the query has these labels.

    >>> TrecRBP(p=0.5).of("(20)1")
    TrecRBP(p=0.5) 0.4375 [0.3125, 0.5625]
    """

    takes_cutoff = False
    p: float = param(0.9, above=0, below=1, shown=True)

    def scaled_gain(self, documents: GroupedJudgments | Order) -> Floats:
        qrels = documents.grouped.ties.qrels
        most = np.full(len(qrels.queries), max([1.0, *self.levels.values()]))
        np.maximum.at(most, qrels.query, self.gain(qrels.label))
        return self.gain(documents.label) / most[documents.query]

    def payoff(self, rank: Floats) -> Floats:  # type: ignore[override]
        return _rank_biased_weight(rank, self.p)


class _RBPresid(Measure):
    """The residual of TrecRBP: (1 − p) · Σ p^(rank−1) over the unjudged documents, plus p^length; 0 if all are judged.

    Documents with a negative label are unjudged, as in trec_eval.

    >>> RBPresid(p=0.5).of("(1-)0")
    RBPresid(p=0.5) 0.5000 [0.3750, 0.6250]
    """

    takes_cutoff = False
    additive = False
    sorts_by_label = False
    p: float = param(0.9, above=0, below=1, shown=True)
    aliases = ("rbp_resid",)

    def gain(self, label: Floats) -> Floats:
        return -(label >= 0).astype(np.float64)  # a judged document lowers it

    def relevant(self, label: Floats) -> NDArray[np.bool_]:
        return label >= 1

    def values(self, order: Order) -> Floats:
        rows = order.rank <= order.grouped.length[order.query]
        rows &= order.label >= 0
        query, rank = order.query[rows], order.rank[rows]
        weight, end = _unjudged_weight(self.p, query, rank - 1, rank, np.zeros(len(rank)), order.n_queries)
        length = order.grouped.length
        all_judged = np.bincount(query, minlength=order.n_queries) == length
        return np.where(all_judged, 0.0, weight + self.p**end)

    def law(self, q: GroupedJudgments) -> Law:
        judged = q.in_group(q.label >= 0)
        weight, end = _unjudged_in_groups(self.p, q, judged, q.length)
        # Only the last tie group may hold unjudged documents if all ranks are to hold judged ones.
        inside = q.inside(q.length)
        held = np.minimum(judged, inside)
        chance = np.ones(q.n_queries)
        chance[segment_sum(q.group_query, held, q.n_queries) < q.length] = 0.0
        some = np.flatnonzero((chance[q.group_query] > 0) & (judged < q.group_size))
        if len(some):
            drawn = hypergeometric(q.group_size[some], judged[some], inside[some])
            chance[q.group_query[some]] = drawn[np.arange(len(some)), inside[some]]
        tail = self.p**end

        def variance() -> Floats:
            spread = engine.variance(RBP(p=self.p, rel=0), q)
            return spread + tail * chance * (tail * (1 - chance) + 2 * weight)

        return Law(weight + tail * (1 - chance), variance)


# -- gains against those of the ideal list, rank by rank (trec_eval's G, Rndcg and ndcg_rel) ------------------------


class _IdealList:
    """The gains of all judged documents of each query in descending order, and what they add up to by rank."""

    def __init__(self, who: Measure, q: GroupedJudgments):
        self.order = order = q.ideal(who)
        self.query, self.rank = order.query, order.rank
        self.gain = np.maximum(who.gain(order.label), 0.0)
        self.n_positive = order.sum(self.gain > 0)
        self.first, self.size = q.ties.qrels.offsets[:-1], np.diff(q.ties.qrels.offsets)
        payoff = self.gain / log_discount(self.rank)
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

    @property
    def distinguishes_unjudged(self) -> bool:  # type: ignore[override]
        """At level 0 a document without a gain is relevant if it was judged."""
        return self.rel <= 0

    def is_undefined(self, q: GroupedJudgments) -> NDArray[np.bool_]:
        """Whether trec_eval divides 0 by 0, as it does for relevant documents of which none has a gain; 0 here."""
        return (self._n_relevant(q) > 0) & (q.judged(self.gain(q.ties.qrels.label) > 0) == 0)

    def _n_relevant(self, q: GroupedJudgments) -> NDArray[Any]:
        return q.judged((q.ties.qrels.label >= self.rel) & (q.ties.qrels.label >= 0))

    def _cuts(self, q: GroupedJudgments) -> tuple[Floats, Floats]:
        """For each query the ranks and the share of the value that DCG has there, (n_queries, n_cuts)."""
        ideal = _IdealList(self, q)
        positive = ideal.gain > 0
        following = np.append(ideal.gain[1:], 0.0)
        following[ideal.rank == ideal.size[ideal.query]] = 0.0  # after the last of a query
        last = np.flatnonzero(positive & (following != ideal.gain))
        query = ideal.query[last]
        place = np.arange(len(last)) - heads(query)
        rank, worth = np.zeros((2, q.n_queries, int(place.max(initial=-1)) + 2))
        rank[query, place], worth[query, place] = ideal.rank[last], 1.0 / ideal.discounted[last]
        longer = np.flatnonzero((q.length > ideal.n_positive + 1) & (ideal.n_positive > 0))
        rank[longer, -1] = q.length[longer]
        worth[longer, -1] = 1.0 / ideal.at(ideal.discounted, longer, ideal.n_positive[longer])
        number = np.count_nonzero(worth, axis=1)
        relevant = self._n_relevant(q) > 0
        return rank, worth * safe_divide(relevant.astype(np.float64), number)[:, None]

    def _payoff(self, rank: Floats, cuts: Floats, worth: Floats) -> Floats:
        """The payoff at some ranks, the cuts of their queries along the last axis."""
        weight = sum(np.where(rank <= cuts[..., i], worth[..., i], 0.0) for i in range(cuts.shape[-1]))
        found: Floats = weight / log_discount(rank)
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
        payoff = gain / log_discount(order.rank)
        there = order.sum_before(payoff) + payoff
        normalized = safe_divide(there, ideal.at(ideal.discounted, order.query, order.rank))
        total = order.sum(np.where(gain > 0, normalized, 0.0))
        unseen = ideal.n_positive - order.sum(gain > 0)
        best = ideal.at(ideal.discounted, np.arange(q.n_queries), ideal.n_positive)
        return np.maximum(safe_divide(total + safe_divide(unseen * order.sum(payoff), best), ideal.n_positive), 0.0)


DCG = measure(_DCG)
nDCG = measure(_nDCG)
RBP = measure(_RBP)
TrecRBP = measure(_TrecRBP)
RBPresid = measure(_RBPresid)
G = measure(_G)
RnDCG = measure(_RnDCG)
nDCGRel = measure(_nDCGRel)
