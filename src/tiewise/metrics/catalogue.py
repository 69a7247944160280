"""The measures: the only file to touch in order to add one.

Each class is a definition on a list without ties, Eq. (1) of `definition`, and becomes a value under its name
without the underscore; the class attribute `aliases` holds the spellings of other tools. Where a class brings a
`moments` of its own, it is the closed form for a tie group of `size` documents (`inside` of them within the cutoff)
after `start` others, with `relevant` relevant documents in it and `seen` above it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tiewise.data.columns import Floats
from tiewise.errors import MeasureError
from tiewise.metrics.definition import Measure, measure, param
from tiewise.metrics.engine import BLOCK, Order, Urn, Urns, per, row_sum
from tiewise.metrics.hypergeometric import hypergeometric

__all__ = [
    "AP",
    "AUC",
    "DCG",
    "ERR",
    "F1",
    "RBP",
    "RR",
    "Bpref",
    "F",
    "Hits",
    "Judged",
    "NumRel",
    "NumRelRet",
    "NumRet",
    "P",
    "R",
    "Rprec",
    "SetP",
    "SetR",
    "Success",
    "nDCG",
    "nERR",
]


class Binary(Measure):
    """Measures that tell relevant documents from all others: a judged one is relevant if 0 ≤ rel ≤ label."""

    rel: float = param(1, least=0)


# -- counts and sets ------------------------------------------------------------------------------------------


class _Hits(Binary):
    """The number of relevant documents in the first k, averaged over queries (NumRelRet adds them up).

    >>> Hits.of("(10)1", k=2)
    Hits@2 1.0000
    """


Hits = measure(_Hits)


class _P(Binary):
    """Precision: the share of relevant documents among the first k ranks, also where the list is shorter.

    >>> P.of("(100)", k=2)
    P@2 0.3333 [0.0000, 0.5000]
    """

    aliases = ("precision",)

    def divisor(self, q: Urns) -> NDArray[Any]:
        return q.ranks(self.cutoff)


P = measure(_P)


class _R(Binary):
    """Recall: the share of all relevant documents that stand in the first k.

    >>> R.of("(10)1", k=1)
    R@1 0.2500 [0.0000, 0.5000]
    """

    aliases = ("recall",)

    def divisor(self, q: Urns) -> NDArray[Any]:
        return q.relevant(self)


R = measure(_R)


class _Balanced(Binary):
    beta: Any = 1.0

    def divisor(self, q: Urns) -> NDArray[Any]:
        square = self.beta**2
        return (q.ranks(self.cutoff) + square * q.relevant(self)) / (1 + square)


class _F1(_Balanced):
    """The harmonic mean of precision and recall at k.

    >>> F1.of("(10)1", k=1)
    F1@1 0.3333 [0.0000, 0.6667]
    """

    aliases = ("f1_score",)


F1 = measure(_F1)


class _F(_Balanced):
    """The weighted harmonic mean of precision and recall at k; recall counts beta times as much.

    >>> F(beta=2).of("(10)1", k=1)
    F(beta=2)@1 0.2778 [0.0000, 0.5556]
    """

    beta: float = param(1.0, above=0, below=1e100, shown=True)


F = measure(_F)


class _Rprec(Binary):
    """Precision at the rank that is the number of relevant documents.

    >>> Rprec.of("(10)1")
    Rprec 0.5000
    """

    takes_cutoff = False
    aliases = ("r-precision", "r_precision", "rprecision")

    def depth(self, q: Urns) -> NDArray[Any]:
        return np.minimum(q.length, q.relevant(self))

    def divisor(self, q: Urns) -> NDArray[Any]:
        return q.relevant(self)


Rprec = measure(_Rprec)


class _SetP(Binary):
    """The share of relevant documents in the whole list.

    >>> SetP.of("(10)1")
    SetP 0.6667
    """

    takes_cutoff = False
    aliases = ("set_p",)

    def divisor(self, q: Urns) -> NDArray[Any]:
        return q.length


SetP = measure(_SetP)


class _SetR(Binary):
    """The share of all relevant documents that the whole list holds.

    >>> SetR.of("(10)1|1")
    SetR 0.6667
    """

    takes_cutoff = False
    aliases = ("set_recall",)

    def divisor(self, q: Urns) -> NDArray[Any]:
        return q.relevant(self)


SetR = measure(_SetR)


class _NumRet(Measure):
    """The number of documents retrieved, added up over queries.

    >>> NumRet.of("(10)1")
    NumRet 3.0000
    """

    takes_cutoff = False
    total = True
    aliases = ("num_ret",)

    def depth(self, q: Urns) -> NDArray[Any]:
        return np.zeros(q.n_queries)  # it does not depend on what is retrieved where

    def base(self, q: Urns) -> Floats:
        return q.length.astype(np.float64)


NumRet = measure(_NumRet)


class _NumRel(Binary):
    """The number of relevant documents judged, retrieved or not, added up over queries.

    >>> NumRel.of("(10)1|1")
    NumRel 3.0000
    """

    takes_cutoff = False
    total = True
    aliases = ("num_rel",)

    def depth(self, q: Urns) -> NDArray[Any]:
        return np.zeros(q.n_queries)  # it does not depend on what is retrieved where

    def base(self, q: Urns) -> Floats:
        return q.relevant(self)


NumRel = measure(_NumRel)


class _NumRelRet(Binary):
    """The number of relevant documents retrieved, added up over queries.

    >>> NumRelRet.of("(10)1|1")
    NumRelRet 2.0000
    """

    takes_cutoff = False
    total = True
    aliases = ("num_rel_ret",)


NumRelRet = measure(_NumRelRet)


class _Judged(Measure):
    """The share of judged documents among the first k ranks (`norm="cap"`: among those of them that the list has).

    >>> Judged.of("(1-)0", k=1)
    Judged@1 0.5000 [0.0000, 1.0000]
    """

    norm: str = param("all", choices=("all", "cap"))

    def gain(self, label: Floats) -> Floats:
        return np.ones_like(label)

    def relevant(self, label: Floats) -> NDArray[np.bool_]:
        return label >= 1

    def key(self, label: Floats) -> Floats:
        return np.ones_like(label)  # a negative label is a judgment too

    def divisor(self, q: Urns) -> NDArray[Any]:
        return q.ranks(self.cutoff) if self.norm == "all" else np.minimum(q.length, q.ranks(self.cutoff))


Judged = measure(_Judged)


# -- the first relevant document ------------------------------------------------------------------------------


class _First(Binary):
    """Measures that pay for the first relevant document only: payoff(r, seen) = [seen = 0] · worth(r)."""

    def worth(self, rank: Floats) -> Floats:
        raise NotImplementedError

    def payoff(self, rank: Floats, seen: Floats) -> Floats:
        return np.where(seen == 0, self.worth(rank), 0.0)

    def moments(self, urn: Urn) -> tuple[Floats, Floats]:
        # The first relevant document is in slot s with chance q_s = survival_s · r/(n−s); no binomials, so that
        # a million tied documents neither overflow nor cancel.
        left = np.maximum(urn.size - urn.slot, 1)
        stay = np.clip((urn.size - urn.relevant - urn.slot) / left, 0.0, 1.0)
        survival = np.ones_like(urn.rank)
        np.cumprod(stay[:, :-1], axis=1, out=survival[:, 1:])
        chance = np.where(urn.within & (urn.seen == 0), survival * np.minimum(urn.relevant / left, 1.0), 0.0)
        worth = self.worth(urn.rank)
        mean = (chance * worth).sum(axis=1, keepdims=True)
        missed = np.where(urn.seen == 0, np.maximum(1 - chance.sum(axis=1, keepdims=True), 0.0), 0.0)
        return mean, (chance * (worth - mean) ** 2).sum(axis=1, keepdims=True) + missed * mean**2


class _RR(_First):
    """Reciprocal rank: 1 / rank of the first relevant document, 0 if it stands below k (mean: MRR).

    >>> RR.of("(10)1")
    RR 0.7500 [0.5000, 1.0000]
    """

    aliases = ("mrr", "recip_rank", "reciprocal_rank")

    def worth(self, rank: Floats) -> Floats:
        return 1.0 / rank


RR = measure(_RR)


class _Success(_First):
    """1 if a relevant document stands in the first k, else 0 (hit rate; Hits counts them).

    >>> Success.of("(0011)", k=2)
    Success@2 0.8333 [0.0000, 1.0000]
    """

    aliases = ("hit_rate", "hitrate", "top_k_accuracy")

    def worth(self, rank: Floats) -> Floats:
        return np.ones_like(rank)


Success = measure(_Success)


# -- average precision ----------------------------------------------------------------------------------------


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

    def divisor(self, q: Urns) -> NDArray[Any]:
        relevant = q.relevant(self)
        return relevant if self.norm == "all" or self.cutoff is None else np.minimum(relevant, self.cutoff)

    def moments(self, urn: Urn) -> tuple[Floats, Floats]:
        n, r, i = urn.size, urn.relevant, urn.slot
        a = np.where(urn.within, 1.0 / urn.rank, 0.0)
        beta = (r - 1) / np.maximum(n - 1, 1)  # 0 if the document is alone (Yang et al., Eq. 23, is 0/0 there)
        mean = r / n * row_sum(a * (urn.seen + 1 + beta * i))
        # Taking one constant off all n weights leaves the variance as it is, and less cancels.
        a = np.where(urn.inside == n, np.where(urn.within, a - 1.0 / (urn.start + n), 0.0), a)
        return mean, _ap_variance(a, urn)


AP = measure(_AP)


def _ap_variance(a: Floats, urn: Urn) -> Floats:
    """The variance of Σ a_i · (relevant documents up to slot i) over the relevant slots i of a group.

    The statistic is a quadratic form in the indicators of relevance; Hoeffding's decomposition under sampling without
    replacement splits it into a linear part l and an uncorrelated rest (theory.md, Eq. 9).
    """
    n, r, i = urn.size, urn.relevant, urn.slot
    beyond = n - urn.inside  # slots past the cutoff, where every term below is that of a weight of 0
    after = np.cumsum(a[:, ::-1], axis=1)[:, ::-1] - a
    b = np.where(urn.within, i * a + after, 0.0)
    linear = np.where(urn.within, (urn.seen + 1) * a + (r - 1) / np.maximum(n - 2, 1) * b * (n > 2), 0.0)
    mean = row_sum(linear) / n
    first = row_sum(np.where(urn.within, linear - mean, 0.0) ** 2) + beyond * mean**2
    total = row_sum(i * a) / np.maximum(n - 1, 1)
    alpha = np.where(urn.within, b - total, 0.0) / np.maximum(n - 2, 1)
    squares = row_sum(alpha**2) + beyond * (total / np.maximum(n - 2, 1)) ** 2
    rest = row_sum(i * a**2) - (n - 2) * squares - total**2
    pairs = r * (r - 1) * (n - r) * (n - r - 1) / np.maximum(n * (n - 1) * (n - 2) * (n - 3), 1)
    variance = r * (n - r) / np.maximum(n * (n - 1), 1) * first + pairs * rest
    return np.maximum(variance, 0.0)


# -- discounted gain ------------------------------------------------------------------------------------------


class _Discounted(Measure):
    gains: str = param("linear", choices=("linear", "exp", "binary"))

    def gain(self, label: Floats) -> Floats:
        if self.gains == "binary":
            return Measure.gain(self, label)
        positive = np.maximum(label, 0.0)
        return positive if self.gains == "linear" else _exponential(positive)

    def payoff(self, rank: Floats) -> Floats:  # type: ignore[override]  # it ignores `seen`
        return 1.0 / np.log2(rank + 1)


#: The square of a larger gain, added up over a list, could exceed float64.
LARGEST_GAIN = 1e150


class _DCG(_Discounted):
    """Discounted cumulative gain: the sum of gains over log2(rank + 1).

    Gains are labels, 2^label − 1 (`gains="exp"`), or 1 for labels from 1 on (`gains="binary"`).

    >>> DCG.of("(20)1", k=2)
    DCG@2 1.6309 [1.2619, 2.0000]
    """

    aliases = ("dcg_burges:gains='exp'",)

    def gain(self, label: Floats) -> Floats:
        gain = super().gain(label)
        if gain.size and gain.max() > LARGEST_GAIN:
            raise MeasureError(
                f"{self.name}: a gain of {gain.max():g} is too large to be added up. Divide all labels by one number, "
                "or use nDCG, which does not depend on their unit."
            )
        return gain


DCG = measure(_DCG)


class _nDCG(_Discounted):
    """DCG over the DCG of the best list of all judged documents.

    Gains are labels, 2^label − 1 (`gains="exp"`), or 1 for labels from 1 on (`gains="binary"`).

    >>> nDCG.of("(20)10")
    nDCG 0.8100 [0.6697, 0.9502]
    """

    aliases = ("ndcg_burges:gains='exp'",)

    def scaled_gain(self, documents: Urns | Order) -> Floats:
        gain, unit = self.gain(documents.label), documents.urns.unit(self)
        return gain if unit is None else gain / unit[documents.query]

    def divisor(self, q: Urns) -> NDArray[Any]:
        return _ideal(self, q)


nDCG = measure(_nDCG)


class _RBP(Binary):
    """Rank-biased precision: (1 − p) · Σ p^(rank−1) over the relevant documents; `residual` is what is unknown.

    With `gains="graded"` a document counts label / max; with `gains="judged"` every judged one counts 1. `phi` is
    another name of `p`.

    >>> RBP(p=0.5).of("(10)1")
    RBP(p=0.5) 0.5000 [0.3750, 0.6250]
    >>> RBP(phi=0.5)
    RBP(p=0.5)
    """

    p: float = param(0.8, above=0, below=1, shown=True)
    gains: str = param("binary", choices=("binary", "graded", "judged"))
    max: float = param(1, above=0)

    def __call__(self, /, **params: Any) -> _RBP:
        if {"p", "phi"} <= params.keys():
            raise MeasureError("RBP: p and phi are two names of one parameter. Give one of them.")
        return super().__call__(**{"p" if name == "phi" else name: value for name, value in params.items()})

    def gain(self, label: Floats) -> Floats:
        if self.gains == "binary":
            return Binary.gain(self, label)
        if self.gains == "judged":
            return np.ones_like(label)
        return _up_to(self.max, label, self) / self.max

    def key(self, label: Floats) -> Floats:
        return np.ones_like(label) if self.gains == "judged" else label

    def payoff(self, rank: Floats) -> Floats:  # type: ignore[override]
        return (1 - self.p) * self.p ** (rank - 1)

    def companion(self) -> Measure | None:
        return None if self.gains == "judged" else self(gains="judged")


RBP = measure(_RBP)


# -- cascades -------------------------------------------------------------------------------------------------


class _Cascade(Measure):
    """A reader goes down the list and stops at a document with probability gain = (2^label − 1) / 2^max."""

    max: float = param(4, above=0, below=1000, shown=True)

    def gain(self, label: Floats) -> Floats:
        return _exponential(_up_to(self.max, label, self)) / 2.0**self.max

    def terms(self, order: Order) -> Floats:
        gain = self.gain(order.label)
        return gain * order.product_before(1 - gain) / order.rank

    def moments(self, urn: Urn) -> tuple[Floats, Floats]:
        reach = urn.product_above(1 - self.gain(urn.label))  # the chance to come as far as this group
        # m_s: the mean over orders of Π(1 − gain) of the first s documents; d_s = m_s − m_{s+1}, by a recurrence
        # of its own so that nothing cancels. Documents are added to the group one by one.
        s = urn.slot
        items = urn.size - urn.relevant  # those without a gain are in already: m = 1 for s ≤ items
        m, d = np.where(s <= items, 1.0, 0.0), np.zeros_like(urn.rank)
        for gain in urn.gains.T[:, :, None]:
            added, theta = gain != 0, 1 - gain
            m_before, d_before = np.zeros_like(m), np.zeros_like(d)
            m_before[:, 1:], d_before[:, 1:] = m[:, :-1], d[:, :-1]
            total = items + 1
            d = np.where(added, (np.maximum(items - s, 0) * d + s * theta * d_before + gain * m) / total, d)
            m = np.where(added, (np.maximum(total - s, 0) * m + s * theta * m_before) / total, m)
            items = items + added
        mean = reach * row_sum(np.where(urn.within, d / urn.rank, 0.0))
        return mean, reach**2 * _cascade_variance(urn)


class _ERR(_Cascade):
    """Expected reciprocal rank: a reader stops at a document with probability (2^label − 1) / 2^max.

    >>> ERR(max=1).of("(10)1")
    ERR(max=1) 0.4583 [0.3333, 0.5833]
    """


ERR = measure(_ERR)


class _nERR(_Cascade):
    """ERR over the ERR of the best list of all judged documents.

    >>> nERR(max=1).of("(10)1")
    nERR(max=1) 0.7333 [0.5333, 0.9333]
    """

    def divisor(self, q: Urns) -> NDArray[Any]:
        return _ideal(self, q)


nERR = measure(_nERR)


#: Above this cost in one query (relevant documents × slots², over its tie groups) the variance is left out.
CASCADE_COST = 2e7


def _cascade_variance(urn: Urn) -> Floats:
    """The variance of Σ_s (D_s − D_{s+1}) / rank_s, where D_s = Π(1 − gain) over the first s documents of a group."""
    variance = np.full_like(urn.start, np.nan)
    able = np.flatnonzero(urn.effort[:, 0] <= CASCADE_COST)
    a = np.where(urn.within, 1.0 / urn.rank, 0.0)
    none = np.zeros((len(a), 1))
    b = np.hstack([a, none]) - np.hstack([none, a])  # summed by parts, the statistic is Σ b_s·D_s
    blanks = (urn.size - urn.relevant)[:, 0]
    step = max(BLOCK // b.shape[1] ** 2, 1)
    for some in (able[low : low + step] for low in range(0, len(able), step)):
        covariance = _cascade_covariance(urn.gains[some], blanks[some], urn.inside[some, 0])
        t = covariance.shape[1]
        weight = b[some][:, :t]
        variance[some, 0] = np.einsum("gs,gsu,gu->g", weight, covariance, weight)
    return np.maximum(variance, 0.0)


def _cascade_covariance(gains: Floats, blanks: Floats, inside: Floats) -> Floats:
    """Cov(D_s, D_u) for s, u = 0..t in groups of documents with these gains and `blanks` without one.

    For s ≤ u, D_s is a product over a random set A of s documents, D_u over A and a set B of v = u − s others.
    Documents are added one by one; each falls into A, into B, or into neither. What is followed is 1 − D, so that small
    gains do not drown in 1: `dd`, `cd`, `dc` and `cc` are the means of D_s·D_u, (1−D_s)·D_u, D_s·(1−D_u) and
    (1−D_s)·(1−D_u) (theory.md, Eqs. 12 and 13).
    """
    t = int(inside.max())
    s, v = np.arange(t + 1.0)[None, :, None], np.arange(t + 1.0)[None, None, :]
    items = blanks[:, None, None].copy()
    dd = np.where(s + v <= items, 1.0, 0.0)
    cd, dc, cc = np.zeros_like(dd), np.zeros_like(dd), np.zeros_like(dd)

    def into_a(mean: Floats) -> Floats:
        moved = np.zeros_like(mean)
        moved[:, 1:] = mean[:, :-1]
        return moved

    def into_b(mean: Floats) -> Floats:
        moved = np.zeros_like(mean)
        moved[:, :, 1:] = mean[:, :, :-1]
        return moved

    for column in gains.T:
        added = column != 0
        if not added.all():  # the groups that are full are done
            live = np.flatnonzero(added)
            if not len(live):
                break
        else:
            live = np.arange(len(added))
        gain = column[live][:, None, None]
        more, theta = items[live] + 1, 1 - gain
        keep, a, b = np.maximum(more - s - v, 0) / more, s / more, v / more
        d2, c1, c2, c0 = dd[live], cd[live], dc[live], cc[live]
        cc[live] = keep * c0 + b * into_b(c0 + gain * c1) + a * into_a(c0 + gain * (c1 + c2) + gain**2 * d2)
        cd[live] = keep * c1 + theta * (b * into_b(c1) + a * into_a(c1 + gain * d2))
        dc[live] = keep * c2 + b * into_b(c2 + gain * d2) + theta * a * into_a(c2 + gain * d2)
        dd[live] = keep * d2 + theta * (b * into_b(d2) + theta * a * into_a(d2))
        items[live] = more
    lost = dc[:, 0]  # the mean of 1 − D_u
    i, j = np.triu_indices(t + 1)
    covariance = np.zeros_like(dd)
    covariance[:, i, j] = covariance[:, j, i] = cc[:, i, j - i] - lost[:, i] * lost[:, j]
    return covariance


# -- pairs ----------------------------------------------------------------------------------------------------


class _Bpref(Binary):
    """Binary preference: how rarely a judged non-relevant document stands above a relevant one (trec_eval's).

    Unjudged documents, and those with a negative label, are passed over.

    >>> Bpref.of("(10)1")
    Bpref 0.2500 [0.0000, 0.5000]
    """

    takes_cutoff = False

    def divisor(self, q: Urns) -> NDArray[Any]:
        return q.relevant(self)

    def _other(self, label: Floats) -> NDArray[np.bool_]:
        return (label >= 0) & (self.gain(label) == 0)

    def _preference(self, above: Floats, relevant: Floats, other: Floats) -> Floats:
        return 1.0 - per(np.minimum(above, relevant), np.minimum(other, relevant))

    def _totals(self, q: Urns) -> tuple[Floats, Floats]:
        return q.relevant(self), q.judged(self._other(q.ties.qrels.label))

    def terms(self, order: Order) -> Floats:
        relevant, other = self._totals(order.urns)
        above = order.count_before(self._other(order.label))
        return self.gain(order.label) * self._preference(above, relevant[order.query], other[order.query])

    def moments(self, urn: Urn) -> tuple[Floats, Floats]:
        # Of the group's b others, h stand within the cutoff, and so do some of its relevant documents. Each of these
        # has 0, 1, … h of them above it, equally often (theory.md, Eq. 14).
        n, t, r = urn.size, urn.inside, urn.relevant
        flags = self._other(urn.label)
        b = urn.sum(flags)
        chance = hypergeometric(n, b, t)
        h = np.arange(chance.shape[1])[None, :]
        relevant, other = (np.broadcast_to(urn.of_query(total), chance.shape) for total in self._totals(urn.urns))
        f = self._preference(urn.above(flags) + h, relevant, other)
        low = f[:, -1:]  # what f falls to is taken off first, so that less cancels
        mean = np.cumsum(f - low, axis=1) / (h + 1)
        spread = np.maximum(np.cumsum((f - low) ** 2, axis=1) / (h + 1) - mean**2, 0.0)
        mean += low
        # The relevant documents within the cutoff: t − h of the n − b documents that are no others stand there.
        found = (t - h) * r / (n - b)
        found_variance = found * (1 - r / (n - b)) * (n - b - t + h) / np.maximum(n - b - 1, 1)
        total = row_sum(chance * found * mean)
        within = spread * (found + (found_variance + found**2 - found) / (h + 2))
        return total, row_sum(chance * (within + found_variance * mean**2 + (found * mean - total) ** 2))


Bpref = measure(_Bpref)


class _AUC(Binary):
    """The share of pairs of a relevant and another retrieved document that are in the right order.

    >>> AUC.of("(10)1")
    AUC 0.2500 [0.0000, 0.5000]
    """

    takes_cutoff = False
    takes_depth = False
    value_range = (0.0, 1.0)
    aliases = ("roc_auc",)

    def divisor(self, q: Urns) -> NDArray[Any]:
        relevant = q.retrieved(self.gain(q.label))
        return relevant * (q.length - relevant)

    def terms(self, order: Order) -> Floats:
        q, gain = order.urns, self.gain(order.label)
        relevant = q.retrieved(self.gain(q.label))[order.query]
        below = relevant - order.count_before(gain > 0) - 1
        return gain * (q.length[order.query] - order.rank - below)

    def moments(self, urn: Urn) -> tuple[Floats, Floats]:
        n, r, q = urn.size, urn.relevant, urn.urns
        relevant = urn.of_query(q.retrieved(self.gain(q.label)))
        below = (urn.of_query(q.length) - urn.start - n) - (relevant - urn.seen - r)
        return r * (below + (n - r) / 2), r * (n - r) * (n + 1) / 12


AUC = measure(_AUC)


# -- parts ----------------------------------------------------------------------------------------------------


def _exponential(label: Floats) -> Floats:
    """2^label − 1, precise for small fractional labels too."""
    if label.size and label.max() > 1023:  # 2^1024 is not a float64
        raise MeasureError(f"A label of {label.max():g} is too large for a gain of 2^label − 1. Use linear gains.")
    return np.where(label == np.floor(label), 2.0**label - 1, np.expm1(label * np.log(2.0)))


def _up_to(most: float, label: Floats, who: Measure) -> Floats:
    """Labels with negative ones at 0; an error if one exceeds the scale."""
    if label.size and label.max() > most:
        raise MeasureError(
            f"{who.name}: a label of {label.max():g} exceeds max={most:g}. Give the highest label of the scale: "
            f"{who.stem}(…, max={label.max():g})."
        )
    return np.maximum(label, 0.0)


def _ideal(who: Measure, q: Urns) -> Floats:
    """The sum of a measure's terms on the best list of all judged documents."""
    order = q.ideal
    within = order.rank <= (np.inf if who.cutoff is None else who.cutoff)
    return order.sum(np.where(within, who.terms(order), 0.0))
