"""Average precision, measures made of it, infAP and YAAP, and interpolated precision."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tiewise.data.columns import Floats
from tiewise.metrics.catalogue.parts import Binary, spell_numbers
from tiewise.metrics.definition import Law, param
from tiewise.metrics.engine import sorted_extremes
from tiewise.metrics.grouped_judgments import GroupBlock, GroupedJudgments, Order
from tiewise.metrics.hypergeometric import hypergeometric, mean_reciprocals
from tiewise.metrics.names import measure
from tiewise.metrics.segments import row_sum

__all__ = ["AP", "YAAP", "ElevenPointAP", "IPrec", "infAP"]


class _AP(Binary):
    """Average precision: the mean over all relevant documents of the precision at their rank, 0 below k (mean: MAP).

    The divisor is the number of relevant documents (`norm="all"`, trec_eval's map_cut), or at most k of them
    (`norm="cap"`, sentence-transformers).

    >>> AP.of("(10)1")
    AP 0.7083 [0.5833, 0.8333]
    """

    norm: str = param("all", choices=("all", "cap"))
    aliases = ("map", "average_precision", "avg_precision")
    form = "average precision"

    def payoff(self, rank: Floats, seen: Floats) -> Floats:
        return (1.0 + seen) / rank

    def divisor(self, q: GroupedJudgments) -> NDArray[Any]:
        relevant = q.relevant(self)
        return relevant if self.norm == "all" or self.cutoff is None else np.minimum(relevant, self.cutoff)

    def law(self, block: GroupBlock) -> Law:
        n, r, i = block.size, block.relevant, block.slot
        a = np.where(block.within, 1.0 / block.rank, 0.0)
        beta = (r - 1) / np.maximum(n - 1, 1)  # 0 if the document is alone (Yang et al., Eq. 23, is 0/0 there)
        mean = r / n * row_sum(a * (block.seen + 1 + beta * i))
        # Taking one constant off all n weights leaves the variance as it is, and less cancels.
        a = np.where(block.inside == n, np.where(block.within, a - 1.0 / (block.start + n), 0.0), a)
        return Law(mean, lambda: _ap_variance(a, block))


def _ap_variance(a: Floats, block: GroupBlock) -> Floats:
    """The variance of Σ a_i · (relevant documents up to slot i) over the relevant slots i of a group.

    The statistic is a quadratic form in the indicators of relevance; Hoeffding's decomposition under sampling without
    replacement splits it into a linear part l and an uncorrelated rest (theory.md, Eq. 9).
    """
    n, r, i = block.size, block.relevant, block.slot
    beyond = n - block.inside  # slots past the cutoff, where every term below is that of a weight of 0
    n_2, weighted = np.maximum(n - 2, 1), i * a
    after = a[:, ::-1].cumsum(axis=1)[:, ::-1] - a
    b = np.where(block.within, weighted + after, 0.0)
    linear = np.where(block.within, (block.seen + 1) * a + (r - 1) / n_2 * b * (n > 2), 0.0)
    mean = row_sum(linear) / n
    first = row_sum(np.where(block.within, linear - mean, 0.0) ** 2) + beyond * mean**2
    total = row_sum(weighted) / np.maximum(n - 1, 1)
    alpha = np.where(block.within, b - total, 0.0) / n_2
    squares = row_sum(alpha**2) + beyond * (total / n_2) ** 2
    rest = row_sum(i * a**2) - (n - 2) * squares - total**2
    pairs = r * (r - 1) * (n - r) * (n - r - 1) / np.maximum(n * (n - 1) * (n - 2) * (n - 3), 1)
    variance = r * (n - r) / np.maximum(n * (n - 1), 1) * first + pairs * rest
    return np.maximum(variance, 0.0)


#: What keeps trec_eval's infAP from dividing by 0.
INFERENCE_EPSILON = 0.00001
#: Up to this list length, without negative labels, a relevant document adds more to infAP the higher it stands.
INFERENCE_LENGTH = 50_000


class _infAP(Binary):
    """Average precision, its precisions inferred from the judged documents above (Yilmaz & Aslam, 2006; trec_eval's).

    A document with a negative label was in the pool, but was not judged. An unjudged document was not in the pool.

    >>> infAP.of("(10)1")
    infAP 0.7083 [0.5833, 0.8333]
    """

    takes_cutoff = False
    distinguishes_unjudged = True
    sorted_extremes = False

    def divisor(self, q: GroupedJudgments) -> NDArray[Any]:
        return q.relevant(self)

    def kinds(self, documents: GroupedJudgments) -> tuple[Floats, float]:
        label = documents.label
        return np.where(label < 0, 2.0, np.where(self.gain(label) > 0, 3.0, 1.0)), 0.0  # pooled, relevant, others

    def terms(self, order: Order) -> Floats:
        gain = self.gain(order.label)
        relevant = order.count_before(gain > 0)
        judged = relevant + order.count_before((gain == 0) & (order.label >= 0))
        pooled = judged + order.count_before(order.label < 0)
        return gain * self._inferred(order.rank, relevant, judged, pooled)

    def _inferred(self, rank: Floats, relevant: Floats, judged: Floats, pooled: Floats) -> Floats:
        """The precision at a relevant document, from the relevant, judged and pooled ones above it."""
        above = np.maximum(rank - 1, 1)
        share = (rank - 1) / rank * (pooled / above)  # the factors of trec_eval, to the last bit
        return 1.0 / rank + share * ((relevant + INFERENCE_EPSILON) / (judged + 2 * INFERENCE_EPSILON))

    def law(self, block: GroupBlock) -> Law:
        # At slot j, s of the j documents above are judged: s is hypergeometric. Given s, the relevant and the pooled
        # ones among them are hypergeometric too, and enter linearly, so that their means will do. What is left is the
        # mean of (α + βs)(γ + ρs) / (δ + s), which is that of a linear function and of 1 / (δ + s).
        label, gain, j = block.label, self.gain(block.label), block.slot
        is_judged, is_pooled = label >= 0, label < 0
        others, judged, pooled = block.size - 1, np.maximum(block.sum(is_judged) - 1, 0), block.sum(is_pooled)
        relevant_above, judged_above, pooled_above = (block.above(flags) for flags in (gain > 0, is_judged, is_pooled))
        rho, pi = (block.relevant - 1) / np.maximum(judged, 1), pooled / np.maximum(others - judged, 1)
        alpha, beta = judged_above + pooled_above + j * pi, 1 - pi
        gamma, delta = relevant_above + INFERENCE_EPSILON, judged_above + 2 * INFERENCE_EPSILON
        drawn = j * judged / np.maximum(others, 1)
        reciprocal = mean_reciprocals(others, judged, delta, j.shape[1])
        inferred = beta * rho * drawn + alpha * rho + beta * (gamma - rho * delta)
        inferred += (alpha - beta * delta) * (gamma - rho * delta) * reciprocal
        total = row_sum(np.where(block.within, (1 + inferred) / block.rank, 0.0))
        q = block.grouped
        is_sorted = (q.judged(q.ties.qrels.label < 0) == 0) & (q.length <= INFERENCE_LENGTH)
        return Law(block.relevant / block.size * total, extremes=lambda: sorted_extremes(self, block, is_sorted))


class _YAAP(Binary):
    """Log-odds of average precision: log((1 + S) / (1 + N − S)), S = AP · N for N relevant documents (Robertson, 2012).

    >>> YAAP.of("(10)1")
    YAAP 0.4301 [0.1671, 0.6931]
    """

    takes_cutoff = False
    additive = False
    aliases = ("yaap",)
    limits = (-math.inf, math.inf)

    def values(self, order: Order) -> Floats:
        within = order.rank <= order.grouped.length[order.query]
        found = order.sum(np.where(within, AP(rel=self.rel).terms(order), 0.0))
        odds: Floats = np.log((1 + found) / (1 + order.grouped.relevant(self) - found))
        return odds


# -- interpolated precision: the highest precision at some recall or beyond it --------------------------------------

#: Above this cost in one query (the square of the number of possible precisions) a distribution is not computed.
LATTICE_COST = 1e6


class Interpolated(Binary):
    """Measures of the interpolated precision at some shares of the relevant documents: its mean over them."""

    takes_cutoff = False
    additive = False
    offset: float = param(0.5, least=0, below=1)

    def shares(self) -> Sequence[float]:
        """The shares of the relevant documents."""
        raise NotImplementedError

    def is_undefined(self, q: GroupedJudgments) -> NDArray[np.bool_]:
        """Whether trec_eval divides 0 by 0, as it does for an empty list and a share of no document; 0 here."""
        count = min(self.shares()) * q.relevant(self)
        return (q.length == 0) & (np.floor(count + self.offset) == 0)

    def needed(self, share: float, q: GroupedJudgments) -> Floats:
        """How many relevant documents make a share of all of them, at least one."""
        return np.clip(np.floor(share * q.relevant(self) + self.offset), 1.0, 2.0**53)

    def interpolated(self, share: float, order: Order) -> Floats:
        """The highest precision at a relevant document that makes the share of them, or at one below it."""
        is_relevant = self.gain(order.label) > 0
        seen = order.count_before(is_relevant) + 1
        counts = is_relevant & (order.rank <= order.grouped.length[order.query])
        counts &= seen >= self.needed(share, order.grouped)[order.query]
        highest = np.zeros(order.n_queries)
        np.maximum.at(highest, order.query[counts], (seen / order.rank)[counts])
        return highest

    def values(self, order: Order) -> Floats:
        found: Floats = sum(self.interpolated(share, order) for share in reversed(self.shares())) / len(self.shares())  # type: ignore[assignment]
        return found


class _IPrec(Interpolated):
    """Interpolated precision: the highest at the rank where a share of the relevant documents was seen, or below.

    The share is that of ⌊recall · N + offset⌋ of the N relevant documents. The offset is 0.5 in trec_eval 10, but
    0.9 in trec_eval 9, pytrec_eval and ir_measures.

    >>> IPrec(recall=0.5).of("(10)1|1")
    IPrec(recall=0.5) 0.6667
    >>> IPrec(recall=0.1).of("(10)1|1")
    IPrec(recall=0.1) 0.8333 [0.6667, 1.0000]
    """

    recall: float = param(0.0, least=0, shown=True)
    after_at = "recall"
    aliases = ("iprec_at_recall",)

    def shares(self) -> Sequence[float]:
        return (self.recall,)

    def law(self, q: GroupedJudgments) -> Law:
        mean, variance = np.full((2, q.n_queries), np.nan)
        for query, values, chances in _distributions(self, q, self.recall):
            mean[query] = np.sum(chances * values)
            variance[query] = np.sum(chances * (values - mean[query]) ** 2)
        return Law(mean, lambda: variance)


class _ElevenPointAP(Interpolated):
    """The mean of the interpolated precision at eleven shares of the relevant documents, 0, 0.1, … 1, or at `points`.

    `offset` is that of IPrec.

    >>> ElevenPointAP.of("(10)1|1")
    ElevenPointAP 0.6212 [0.5455, 0.6970]
    """

    points: str = param("0,0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8,0.9,1", text=spell_numbers)
    aliases = ("11pt_avg",)

    def shares(self) -> Sequence[float]:
        return [float(share) for share in self.points.split(",")]

    def law(self, q: GroupedJudgments) -> Law:
        each = [IPrec(recall=share, rel=self.rel, offset=self.offset).law(q).mean for share in self.shares()]
        return Law(np.mean(each, axis=0))


# -- the distribution -------------------------------------------------------------------------------------------------


def _distributions(who: Interpolated, q: GroupedJudgments, share: float) -> Iterator[tuple[int, Floats, Floats]]:
    """For each query that is not too costly, the values of the interpolated precision and their probabilities.

    Groups are independent, and the value is the highest of all groups: P(value ≤ x) = Π P(value of a group ≤ x).
    """
    low, high = (who.interpolated(share, order) for order in (q.worst(who), q.best(who)))
    needed, relevant = who.needed(share, q), q.in_group(who.gain(q.label))
    above = q.above_group(relevant)
    columns = (q.group_start, q.group_size, q.inside(q.length), relevant, above, needed[q.group_query])
    every = [_Group(*row) for row in zip(*(column.astype(np.int64).tolist() for column in columns), strict=True)]
    bounds = np.searchsorted(q.group_query, np.arange(q.n_queries + 1)).tolist()
    for query in range(q.n_queries):
        groups = [group for group in every[bounds[query] : bounds[query + 1]] if group.highest > low[query]]
        cost = sum(group.cost for group in groups)
        if cost**2 > LATTICE_COST:
            continue
        values = np.unique(np.concatenate([[low[query]], *(group.values for group in groups)]))
        values = values[(low[query] <= values) & (values <= high[query])]
        at_most = np.ones(len(values))
        for group in groups:
            at_most *= group.at_most(values)
        yield query, values, np.diff(at_most, prepend=0.0)


class _Group(NamedTuple):
    """A tie group: the precisions at its relevant documents that count, from the `needed`-th of the list on."""

    start: int
    size: int
    inside: int
    relevant: int
    above: int  # relevant documents above the group
    needed: int

    @property
    def cost(self) -> int:
        """The number of precisions."""
        return self.inside * min(self.relevant, self.inside)

    @property
    def highest(self) -> float:
        """The highest precision, with the relevant documents first."""
        count = range(max(self.needed - self.above, 1), min(self.relevant, self.inside) + 1)
        return max(((self.above + k) / (self.start + k) for k in count), default=0.0)

    @property
    def values(self) -> Floats:
        """All precisions that there can be."""
        k = np.arange(1, min(self.relevant, self.inside) + 1)[:, None]
        found: Floats = ((self.above + k) / (self.start + np.arange(1, self.inside + 1))).ravel()
        return found

    def at_most(self, x: Floats) -> Floats:
        """The probability that no precision that counts is above x.

        Of the group's relevant documents, k stand within the list, each set of k slots equally often. The slots are
        chosen one after another: `last` is the probability that the k-th one is slot p and all k are allowed.
        """
        t, slot = self.inside, np.arange(1, self.inside + 1)
        chance = hypergeometric([self.size], [self.relevant], [t])[0]
        total = np.full(len(x), chance[0])
        before = np.ones((len(x), t))  # the same of k − 1 slots, all of them before slot p
        for k in range(1, len(chance)):
            last = before * (k / (t - k + 1))
            if self.above + k >= self.needed:
                last *= (self.above + k) / (self.start + slot) <= x[:, None]
            total += chance[k] * last.sum(axis=1)
            before = np.cumsum(last, axis=1) - last
        return total


AP = measure(_AP)
infAP = measure(_infAP)
YAAP = measure(_YAAP)
IPrec = measure(_IPrec)
ElevenPointAP = measure(_ElevenPointAP)
