"""Gains discounted by rank: DCG, nDCG and RBP, also as trec_eval defines it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tiewise.data.columns import Codes, Floats
from tiewise.errors import MeasureError
from tiewise.metrics import engine
from tiewise.metrics.catalogue.parts import (
    Binary,
    LevelGains,
    clip_labels,
    exponential_gain,
    ideal_sum,
    spell_levels,
)
from tiewise.metrics.definition import Law, Measure, param
from tiewise.metrics.grouped_judgments import GroupedJudgments, Order
from tiewise.metrics.hypergeometric import hypergeometric
from tiewise.metrics.names import measure
from tiewise.metrics.segments import heads, segment_sum

__all__ = ["DCG", "RBP", "RBPresid", "TrecRBP", "nDCG"]


class _Discounted(LevelGains):
    gains: str = param("linear", choices=("linear", "exp", "binary"), text=spell_levels)

    def gain(self, label: Floats) -> Floats:
        if self.gains == "binary":
            return Measure.gain(self, label)
        return exponential_gain(np.maximum(label, 0.0)) if self.gains == "exp" else super().gain(label)

    def payoff(self, rank: Floats) -> Floats:  # type: ignore[override]  # it ignores `seen`
        return 1.0 / np.log2(rank + 1)


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
    """DCG over the DCG of the best list of all judged documents.

    Gains are labels, 2^label − 1 (`gains="exp"`), 1 for labels from 1 on (`gains="binary"`), or given for some labels:
    `gains="1=5,2=9"`.

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
    first = heads(query) == np.arange(len(query))
    above = np.where(first, 0.0, np.roll(end, 1))
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

    distinguishes_unjudged = True  # in its residual
    form = "sum"
    p: float = param(0.8, above=0, below=1, shown=True)
    gains: str = param("binary", choices=("binary", "graded", "judged"))
    max: float = param(1, above=0)

    def __call__(self, /, *unnamed: Any, **params: Any) -> _RBP:
        if {"p", "phi"} <= params.keys():
            raise MeasureError("RBP: p and phi are two names of one parameter. Give one of them.")
        return super().__call__(*unnamed, **{"p" if name == "phi" else name: value for name, value in params.items()})

    def gain(self, label: Floats) -> Floats:
        if self.gains == "binary":
            return Binary.gain(self, label)
        if self.gains == "judged":
            return np.ones_like(label)
        return clip_labels(self.max, label, self) / self.max

    @property
    def sorts_by_label(self) -> bool:
        return self.gains != "judged"

    def key(self, label: Floats) -> Floats:
        return label if self.sorts_by_label else np.ones_like(label)

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
    p: float = param(0.9, above=0, below=1, shown=True)
    aliases = ("rbp_resid",)

    def gain(self, label: Floats) -> Floats:
        return -(label >= 0).astype(np.float64)  # a judged document lowers it

    def relevant(self, label: Floats) -> NDArray[np.bool_]:
        return label >= 1

    def key(self, label: Floats) -> Floats:
        return self.gain(label)

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
        inside = np.minimum(q.length[q.group_query] - q.group_start, q.group_size)
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


DCG = measure(_DCG)
nDCG = measure(_nDCG)
RBP = measure(_RBP)
TrecRBP = measure(_TrecRBP)
RBPresid = measure(_RBPresid)
