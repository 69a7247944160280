"""Measures of pairs of documents: Bpref, binG, AUC and Accuracy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tiewise.data.columns import Floats
from tiewise.metrics.catalogue.parts import Binary
from tiewise.metrics.definition import Law, Measure
from tiewise.metrics.grouped_judgments import GroupBlock, GroupedJudgments, Order
from tiewise.metrics.hypergeometric import hypergeometric, is_possible
from tiewise.metrics.names import measure
from tiewise.metrics.segments import row_sum, safe_divide, segment_sum

__all__ = ["AUC", "Accuracy", "Bpref", "binG"]


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
        above = block.start - block.seen
        return _law_by_others_above(block, block.size - block.relevant, lambda h: 1.0 / np.log2(2 + above + h))


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
    orders of the ties only, these orders count.

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


Bpref = measure(_Bpref)
binG = measure(_binG)
AUC = measure(_AUC)
Accuracy = measure(_Accuracy)
