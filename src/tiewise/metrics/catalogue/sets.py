"""Counts and sets: precision, recall, F, hits, and the measures of the whole list."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tiewise.data.columns import Floats
from tiewise.metrics.catalogue.parts import Binary, OfGains
from tiewise.metrics.definition import Law, Measure, param
from tiewise.metrics.grouped_judgments import GroupedJudgments, Order
from tiewise.metrics.hypergeometric import hypergeometric
from tiewise.metrics.names import measure
from tiewise.metrics.segments import safe_divide, segment_sum

__all__ = ["F1", "F", "Hits", "Judged", "NumNonrelJudgedRet", "NumQ", "NumRel", "NumRelRet", "NumRet", "P", "R"]
__all__ += ["RelativeP", "Rprec", "RprecMult", "SetAP", "SetF", "SetP", "SetR", "SetRelativeP", "Unj", "Utility"]


class _Hits(Binary):
    """The number of relevant documents in the first k, averaged over queries (NumRelRet adds them up).

    >>> Hits.of("(10)1", k=2)
    Hits@2 1.0000
    """

    form = "sum"
    limits = (0.0, math.inf)


class _P(Binary):
    """Precision: the share of relevant documents among the first k ranks, also where the list is shorter.

    >>> P.of("(100)", k=2)
    P@2 0.3333 [0.0000, 0.5000]
    """

    form = "sum"
    aliases = ("precision",)

    def divisor(self, q: GroupedJudgments) -> NDArray[Any]:
        return q.ranks(self.cutoff)


class _R(Binary):
    """Recall: the share of all relevant documents that are in the first k ranks.

    >>> R.of("(10)1", k=1)
    R@1 0.2500 [0.0000, 0.5000]
    """

    form = "sum"
    aliases = ("recall",)

    def divisor(self, q: GroupedJudgments) -> NDArray[Any]:
        return q.relevant(self)


class _Balanced(Binary):
    beta: Any = 1.0

    @property
    def form(self) -> str | None:  # type: ignore[override]
        """Without a cutoff, the divisor is not the length of a list, but follows from it."""
        return None if self.cutoff is None else "sum"

    def divisor(self, q: GroupedJudgments) -> NDArray[Any]:
        square = self.beta**2
        return (q.ranks(self.cutoff) + square * q.relevant(self)) / (1 + square)


class _F1(_Balanced):
    """The harmonic mean of precision and recall at k.

    >>> F1.of("(10)1", k=1)
    F1@1 0.3333 [0.0000, 0.6667]
    """

    aliases = ("f1_score",)


class _F(_Balanced):
    """The weighted harmonic mean of precision and recall at k; recall counts beta times as much.

    >>> F(beta=2).of("(10)1", k=1)
    F(beta=2)@1 0.2778 [0.0000, 0.5556]
    """

    beta: float = param(1.0, above=0, below=1e100, shown=True)


class _Rprec(Binary):
    """Precision at the rank that is the number of relevant documents.

    >>> Rprec.of("(10)1")
    Rprec 0.5000
    """

    form = "sum"
    takes_cutoff = False
    aliases = ("r-precision", "r_precision", "rprecision")

    def depth(self, q: GroupedJudgments) -> NDArray[Any]:
        return np.minimum(q.length, q.relevant(self))

    def divisor(self, q: GroupedJudgments) -> NDArray[Any]:
        return q.relevant(self)


class _RprecMult(Binary):
    """Precision at a multiple of the number N of relevant documents: at rank ⌊multiple · N + 0.9⌋.

    >>> RprecMult(multiple=0.5).of("(10)1")
    RprecMult(multiple=0.5) 0.5000 [0.0000, 1.0000]
    """

    takes_cutoff = False
    multiple: float = param(1.0, least=0, shown=True)
    aliases = ("rprec_mult",)

    def _rank(self, q: GroupedJudgments) -> Floats:
        return np.floor(self.multiple * q.relevant(self) + 0.9)

    def depth(self, q: GroupedJudgments) -> NDArray[Any]:
        return np.minimum(q.length, self._rank(q))

    def divisor(self, q: GroupedJudgments) -> NDArray[Any]:
        return self._rank(q)  # even if the list is shorter


class _RelativeP(Binary):
    """The number of relevant documents in the first k ranks, over the smaller of k and the number of all relevant ones.

    >>> RelativeP.of("(100)1", k=1)
    RelativeP@1 0.3333 [0.0000, 1.0000]
    """

    aliases = ("relative_p",)

    def divisor(self, q: GroupedJudgments) -> NDArray[Any]:
        return np.minimum(q.ranks(self.cutoff), q.relevant(self))


class _SetP(_P):
    """The share of relevant documents in the whole list.

    >>> SetP.of("(10)1")
    SetP 0.6667
    """

    takes_cutoff = False
    aliases = ("set_p",)


class _SetR(_R):
    """The share of all relevant documents that the whole list holds.

    >>> SetR.of("(10)1|1")
    SetR 0.6667
    """

    takes_cutoff = False
    aliases = ("set_recall",)


class _OfCount(OfGains):
    """A function of the number of documents with a gain in the first ranks, monotone in it.

    The order of ties matters only for a tie group of which these ranks hold a part.
    """

    additive = False

    def of_count(self, count: Floats, length: Floats, relevant: Floats) -> Floats:
        """The value for lists of some length, for queries with so many relevant documents."""
        raise NotImplementedError

    def values(self, order: Order) -> Floats:
        q = order.grouped
        length = np.asarray(self.depth(q), dtype=np.float64)
        within = order.rank <= length[order.query]
        count = order.sum(np.where(within, self.gain(order.label), 0.0))
        return self.of_count(count, length, q.judged(self.relevant(q.ties.qrels.label)))

    def law(self, q: GroupedJudgments) -> Law:
        length = np.asarray(self.depth(q), dtype=np.float64)
        relevant, in_group = q.judged(self.relevant(q.ties.qrels.label)), q.in_group(self.gain(q.label))
        inside = q.inside(length)
        whole = segment_sum(q.group_query, np.where(inside == q.group_size, in_group, 0.0), q.n_queries)
        mean, variance = self.of_count(whole, length, relevant), np.zeros(q.n_queries)
        cut = np.flatnonzero((inside > 0) & (inside < q.group_size))  # one group at the most in a query
        if len(cut):
            query = q.group_query[cut]
            chance = hypergeometric(q.group_size[cut], in_group[cut], inside[cut])
            count = whole[query][:, None] + np.arange(chance.shape[1])
            value = self.of_count(count, length[query][:, None], relevant[query][:, None])
            mean[query] = (chance * value).sum(axis=1)
            variance[query] = (chance * (value - mean[query][:, None]) ** 2).sum(axis=1)
        return Law(mean, lambda: variance)


class _SetRelativeP(_RelativeP):
    """The number of relevant documents in the list, over the smaller of its length and the number of all relevant ones.

    >>> SetRelativeP.of("(10)1|1")
    SetRelativeP 0.6667
    """

    takes_cutoff = False
    aliases = ("set_relative_p",)


class _SetF(Binary, _OfCount):
    """The weighted harmonic mean of SetP and SetR, (x + 1)·P·R / (x·P + R): x is β², as in trec_eval.

    >>> SetF(x=2).of("100|1")
    SetF(x=2) 0.4286
    """

    takes_cutoff = False
    x: float = param(1.0, least=0)
    aliases = ("set_f",)

    def of_count(self, count: Floats, length: Floats, relevant: Floats) -> Floats:
        precision, recall = safe_divide(count, length), safe_divide(count, relevant)
        return safe_divide((self.x + 1) * precision * recall, self.x * precision + recall)


class _SetAP(Binary, _OfCount):
    """SetP · SetR.

    >>> SetAP.of("(10)1|1")
    SetAP 0.4444
    """

    takes_cutoff = False
    aliases = ("set_map",)

    def of_count(self, count: Floats, length: Floats, relevant: Floats) -> Floats:
        return safe_divide(count**2, length * relevant)


class _Utility(Binary, _OfCount):
    """a · relevant and b · other documents retrieved, plus c · relevant and d · other documents not retrieved.

    The last number needs that of all documents in the `collection` (trec_eval's -N).

    >>> Utility.of("(100)1-")
    Utility -1.0000
    >>> Utility(a=2, c=-1).of("(100)1-|1")
    Utility(a=2, c=-1) 0.0000
    """

    limits = (-math.inf, math.inf)

    takes_cutoff = False
    value_range = (np.nan, np.nan)
    a: float = param(1.0)
    b: float = param(-1.0)
    c: float = param(0.0)
    d: float = param(0.0)
    collection: float = param(0, least=0)

    def key(self, label: Floats) -> Floats:
        return self.gain(label) * (self.a - self.b - self.c + self.d)  # what one more relevant document adds

    def of_count(self, count: Floats, length: Floats, relevant: Floats) -> Floats:
        other = self.collection + count - length - relevant
        return self.a * count + self.b * (length - count) + self.c * (relevant - count) + self.d * other


class _OrderFreeCount(OfGains):
    """A count that does not depend on what is retrieved where: no rank matters."""

    takes_cutoff = False
    total = True

    def depth(self, q: GroupedJudgments) -> NDArray[Any]:
        return np.zeros(q.n_queries)


class _NumQ(_OrderFreeCount):
    """The number of queries.

    >>> NumQ.of("(10)1")
    NumQ 1.0000
    """

    aliases = ("num_q",)

    def base(self, q: GroupedJudgments) -> Floats:
        return np.ones(q.n_queries)


class _NumRet(_OrderFreeCount):
    """The number of documents retrieved, added up over queries.

    >>> NumRet.of("(10)1")
    NumRet 3.0000
    """

    aliases = ("num_ret",)

    def base(self, q: GroupedJudgments) -> Floats:
        return q.length.astype(np.float64)


class _NumRel(Binary, _OrderFreeCount):
    """The number of relevant documents judged, retrieved or not, added up over queries.

    >>> NumRel.of("(10)1|1")
    NumRel 3.0000
    """

    aliases = ("num_rel",)

    def base(self, q: GroupedJudgments) -> Floats:
        return q.relevant(self)


class _NumRelRet(Binary):
    """The number of relevant documents retrieved, added up over queries.

    >>> NumRelRet.of("(10)1|1")
    NumRelRet 2.0000
    """

    takes_cutoff = False
    total = True
    aliases = ("num_rel_ret",)


class _NumNonrelJudgedRet(Binary):
    """The number of documents retrieved that were judged not relevant, added up over queries.

    Documents with a negative label are not counted, as in trec_eval: they were in the pool, but not judged.

    >>> NumNonrelJudgedRet.of("(10)1-|0")
    NumNonrelJudgedRet 1.0000
    """

    takes_cutoff = False
    total = True
    sorts_by_label = False
    aliases = ("num_nonrel_judged_ret",)

    def gain(self, label: Floats) -> Floats:
        return ((label >= 0) & (label < self.rel)).astype(np.float64)

    def relevant(self, label: Floats) -> NDArray[np.bool_]:
        return Binary.gain(self, label) > 0


class _Judged(Measure):
    """The share of judged documents among the first k ranks (`norm="cap"`: among those of them that the list has).

    >>> Judged.of("(1-)0", k=1)
    Judged@1 0.5000 [0.0000, 1.0000]
    """

    sorts_by_label = False  # a negative label is a judgment too
    norm: str = param("all", choices=("all", "cap"))

    @property
    def form(self) -> str | None:  # type: ignore[override]
        return "sum" if self.norm == "all" else None  # else the divisor follows from the length of a list

    def gain(self, label: Floats) -> Floats:
        return np.ones_like(label)

    def relevant(self, label: Floats) -> NDArray[np.bool_]:
        return label >= 1

    def divisor(self, q: GroupedJudgments) -> NDArray[Any]:
        return q.ranks(self.cutoff) if self.norm == "all" else np.minimum(q.length, q.ranks(self.cutoff))


class _Unj(_OfCount):
    """The share of unjudged documents among the first k ranks, also where the list is shorter (trec_eval's unj).

    Documents with a negative label are unjudged, as in trec_eval.

    >>> Unj.of("(1-)0", k=1)
    Unj@1 0.5000 [0.0000, 1.0000]
    """

    value_range = (0.0, 1.0)

    def gain(self, label: Floats) -> Floats:
        return (label >= 0).astype(np.float64)

    def relevant(self, label: Floats) -> NDArray[np.bool_]:
        return label >= 1

    def key(self, label: Floats) -> Floats:
        return -self.gain(label)

    def of_count(self, count: Floats, length: Floats, relevant: Floats) -> Floats:
        return safe_divide(length - count, length if self.cutoff is None else np.array(float(self.cutoff)))


Hits = measure(_Hits)
P = measure(_P)
R = measure(_R)
F1 = measure(_F1)
F = measure(_F)
Rprec = measure(_Rprec)
RprecMult = measure(_RprecMult)
RelativeP = measure(_RelativeP)
SetP = measure(_SetP)
SetR = measure(_SetR)
SetRelativeP = measure(_SetRelativeP)
SetF = measure(_SetF)
SetAP = measure(_SetAP)
Utility = measure(_Utility)
NumQ = measure(_NumQ)
NumRet = measure(_NumRet)
NumRel = measure(_NumRel)
NumRelRet = measure(_NumRelRet)
NumNonrelJudgedRet = measure(_NumNonrelJudgedRet)
Judged = measure(_Judged)
Unj = measure(_Unj)
