"""Measures of pairs of documents, Bpref, binG, AUC and Accuracy, and compatibility with an ideal ranking."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tiewise.data.columns import Codes, Floats, heads
from tiewise.metrics.catalogue.parts import Binary, OfGains
from tiewise.metrics.definition import Law, Measure, param
from tiewise.metrics.engine import sum_payoffs
from tiewise.metrics.grouped_judgments import GroupBlock, GroupedJudgments, Order
from tiewise.metrics.hypergeometric import hypergeometric, hypergeometric_window, is_possible
from tiewise.metrics.names import measure
from tiewise.metrics.segments import alike, row_sum, safe_divide, segment_sum

__all__ = ["AUC", "Accuracy", "Bpref", "Compat", "binG"]


class _Bpref(Binary):
    """Binary preference: how rarely a judged non-relevant document stands above a relevant one (trec_eval's).

    Unjudged documents, and those with a negative label, are ignored.

    >>> Bpref.of("(10)1")
    Bpref 0.2500 [0.0000, 0.5000]
    """

    takes_cutoff = False
    distinguishes_unjudged = True

    def divisor(self, q: GroupedJudgments) -> NDArray[Any]:
        return q.relevant(self)

    def kinds(self, documents: GroupedJudgments) -> tuple[Floats, float]:
        return Measure.kinds(self, documents)

    def _other(self, label: Floats) -> NDArray[np.bool_]:
        return (label >= 0) & (label < self.rel)

    def _preference(self, above: Floats, relevant: Floats, other: Floats) -> Floats:
        return 1.0 - safe_divide(np.minimum(above, relevant), np.minimum(other, relevant))

    def _totals(self, q: GroupedJudgments) -> tuple[Floats, Floats]:
        return q.relevant(self), q.judged(self._other(q.ties.qrels.label))

    def terms(self, order: Order) -> Floats:
        relevant, other = self._totals(order.grouped)
        above = order.count_before(self._other(order.label))
        return self.gain(order.label) * self._preference(above, relevant[order.query], other[order.query])

    def law(self, block: GroupBlock) -> Law:
        flags, totals = self._other(block.label), self._totals(block.grouped)

        def worth(h: Floats) -> Floats:
            relevant, other = (np.broadcast_to(block.of_query(total), h.shape) for total in totals)
            return self._preference(block.above(flags) + h, relevant, other)

        return _law_by_others_above(block, block.sum(flags), worth)


def _law_by_others_above(block: GroupBlock, others: Floats, worth: Callable[[Floats], Floats]) -> Law:
    """The law if a relevant document is worth `worth(h)` with h of the group's others above it.

    Of the group's others, h stand within the cutoff, and so do some of its relevant documents. Each of these has
    0, 1, … h of them above it, equally often (theory.md, Eq. 14).
    """
    n, t, r, b = block.size, block.inside, block.relevant, others
    chance = hypergeometric(n, b, t)
    h = np.arange(chance.shape[1])[None, :]
    f = worth(np.broadcast_to(h, chance.shape))
    low = f[:, -1:]  # what f falls to is taken off first, so that less cancels
    above_low = np.cumsum(f - low, axis=1) / (h + 1)
    mean = above_low + low
    # The relevant documents within the cutoff: t − h of the n − b documents that are no others stand there.
    found = (t - h) * r / (n - b)
    total = row_sum(chance * found * mean)

    def variance() -> Floats:
        spread = np.maximum(np.cumsum((f - low) ** 2, axis=1) / (h + 1) - above_low**2, 0.0)
        found_variance = found * (1 - r / (n - b)) * (n - b - t + h) / np.maximum(n - b - 1, 1)
        within = spread * (found + (found_variance + found**2 - found) / (h + 2))
        return row_sum(chance * (within + found_variance * mean**2 + (found * mean - total) ** 2))

    return Law(total, variance)


class _binG(Binary):
    """The mean over all relevant documents of 1 / log2(2 + other documents above them), 0 if not retrieved.

    >>> binG.of("(10)")
    binG 0.8155 [0.6309, 1.0000]
    """

    takes_cutoff = False

    def payoff(self, rank: Floats, seen: Floats) -> Floats:
        return 1.0 / np.log2(2 + np.maximum(rank - 1 - seen, 0))

    def divisor(self, q: GroupedJudgments) -> NDArray[Any]:
        return q.relevant(self)

    def law(self, block: GroupBlock) -> Law:
        first = block.start - block.seen + 1
        return _law_by_others_above(block, block.size - block.relevant, lambda h: self.payoff(first + h, np.zeros(1)))


class _AUC(Binary):
    """The share of pairs of a relevant and another retrieved document that are in the right order.

    >>> AUC.of("(10)1")
    AUC 0.2500 [0.0000, 0.5000]
    """

    takes_cutoff = False
    takes_depth = False
    value_range = (0.0, 1.0)
    aliases = ("roc_auc",)

    def divisor(self, q: GroupedJudgments) -> NDArray[Any]:
        relevant = q.retrieved(self.gain(q.label))
        return relevant * (q.length - relevant)

    def terms(self, order: Order) -> Floats:
        q, gain = order.grouped, self.gain(order.label)
        relevant = q.retrieved(self.gain(q.label))[order.query]
        below = relevant - order.count_before(gain > 0) - 1
        return gain * (q.length[order.query] - order.rank - below)

    def law(self, block: GroupBlock) -> Law:
        n, r, q = block.size, block.relevant, block.grouped
        relevant = block.of_query(q.retrieved(self.gain(q.label)))
        below = (block.of_query(q.length) - block.start - n) - (relevant - block.seen - r)
        return Law(r * (below + (n - r) / 2), lambda: r * (n - r) * (n + 1) / 12)


class _Accuracy(Binary):
    """The share of pairs of a relevant and another document of the first k ranks that are in the right order.

    Without a cutoff it is AUC. A query whose first k ranks have no such pair is left out. If they have one in some
    orders of the ties only, these orders count. What BEIR and sentence-transformers call accuracy is Success.

    >>> Accuracy.of("(10)10", k=3)
    Accuracy@3 0.2500 [0.0000, 0.5000]
    """

    additive = False
    sorted_extremes = False
    value_range = (0.0, 1.0)

    def values(self, order: Order) -> Floats:
        depth = np.asarray(self.depth(order.grouped), dtype=np.float64)
        gain = np.where(order.rank <= depth[order.query], self.gain(order.label), 0.0)
        relevant = order.sum(gain)
        others_above = order.rank - 1 - order.count_before(gain > 0)
        return _share(relevant * (depth - relevant) - order.sum(gain * others_above), relevant * (depth - relevant))

    def law(self, q: GroupedJudgments) -> Law:
        # In random order half of the pairs within a group are right, with the variance of the Mann-Whitney statistic.
        found = _Pairs(self, q)
        chance = np.where(found.number > 0, found.chance, 0.0)
        chance = _share(chance, row_sum(chance))
        number = np.maximum(found.number, 1)
        value = (found.right + (found.loose + found.cut_loose) / 2) / number
        mean = row_sum(chance * value)

        def variance() -> Floats:
            spread = (found.spread + found.cut_loose * (found.slots + 1)) / 12 / number**2
            return row_sum(chance * ((value - mean) ** 2 + spread))

        def extremes() -> tuple[Floats, Floats, bool]:
            possible = np.where(found.possible, found.number, 0.0)
            low, high = _share(found.right, possible), _share(found.right + found.loose + found.cut_loose, possible)
            return np.fmin.reduce(low, axis=1), np.fmax.reduce(high, axis=1), False

        return Law(mean, variance, extremes)


class _Pairs:
    """The pairs of a relevant and another document in the first ranks, (n_queries, n_h) or (n_queries, 1).

    At most one tie group is cut by the last rank. Of its documents within it, h are relevant.
    """

    def __init__(self, measure: Binary, q: GroupedJudgments):
        depth = np.asarray(measure.depth(q), dtype=np.float64)
        end, of_group = q.group_start + q.group_size, depth[q.group_query]
        n, r = q.group_size.astype(np.float64), q.in_group(measure.gain(q.label))
        is_whole, is_cut = end <= of_group, (q.group_start < of_group) & (of_group < end)

        def total(values: Floats) -> Floats:
            return segment_sum(q.group_query, np.where(is_whole, values, 0.0), q.n_queries)[:, None]

        def of_cut(values: NDArray[Any]) -> Floats:
            return segment_sum(q.group_query, np.where(is_cut, values, 0.0), q.n_queries)[:, None]

        size, marked = of_cut(n), of_cut(r)
        self.slots = of_cut(of_group - q.group_start)  #: of the group that is cut, within the last rank
        self.chance = hypergeometric(size, marked, self.slots)  #: of h
        h = np.arange(self.chance.shape[1])[None, :]
        self.possible = is_possible(size, marked, self.slots)
        above = total(r)
        relevant = above + h
        self.number = relevant * (depth[:, None] - relevant)  #: all pairs
        self.cut_loose = h * (self.slots - h)  #: pairs within the group that is cut
        self.loose, self.spread = total(r * (n - r)), total(r * (n - r) * (n + 1))  #: pairs within other groups
        others_below = of_group - end - (above[q.group_query, 0] - q.above_group(r) - r)
        self.right = total(r * others_below) - h * above  #: pairs in the right order in any order of the ties


def _share(part: Floats, whole: Floats) -> Floats:
    """part / whole, NaN where there is nothing to divide."""
    return np.divide(part, whole, out=np.full(np.broadcast(part, whole).shape, np.nan), where=whole > 0)


# -- compatibility: how similar a list is to the ideal ranking that is nearest to it --------------------------------


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
        rows = q.ideal(self).rows
        higher[rows] = heads(qrels.query[rows], qrels.label[rows]) - heads(qrels.query[rows])
        return higher

    def terms(self, order: Order) -> Floats:
        q, label = order.grouped, order.label
        weights, depths = self._weights(q), self._depths(q)[0][order.query]
        by_label, before = np.lexsort((label, order.segment)), np.zeros(len(label))  # in a list, by rank already
        before[by_label] = np.arange(len(label)) - heads(order.segment[by_label], label[by_label])
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
        of_level, head = heads(q.query[rows], q.label[rows]), heads(q.label[rows], q.group[rows])
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


Bpref = measure(_Bpref)
binG = measure(_binG)
AUC = measure(_AUC)
Accuracy = measure(_Accuracy)
Compat = measure(_Compat)
