"""Measures of pairs of documents: Bpref and AUC."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tiewise.data.columns import Floats
from tiewise.metrics.catalogue.parts import Binary
from tiewise.metrics.engine import GroupBlock, GroupedJudgments, Order, row_sum, safe_divide
from tiewise.metrics.hypergeometric import hypergeometric
from tiewise.metrics.names import measure

__all__ = ["AUC", "Bpref"]


class _Bpref(Binary):
    """Binary preference: how rarely a judged non-relevant document stands above a relevant one (trec_eval's).

    Unjudged documents, and those with a negative label, are passed over.

    >>> Bpref.of("(10)1")
    Bpref 0.2500 [0.0000, 0.5000]
    """

    takes_cutoff = False
    distinguishes_unjudged = True

    def divisor(self, q: GroupedJudgments) -> NDArray[Any]:
        return q.relevant(self)

    def _other(self, label: Floats) -> NDArray[np.bool_]:
        return (label >= 0) & (self.gain(label) == 0)

    def _preference(self, above: Floats, relevant: Floats, other: Floats) -> Floats:
        return 1.0 - safe_divide(np.minimum(above, relevant), np.minimum(other, relevant))

    def _totals(self, q: GroupedJudgments) -> tuple[Floats, Floats]:
        return q.relevant(self), q.judged(self._other(q.ties.qrels.label))

    def terms(self, order: Order) -> Floats:
        relevant, other = self._totals(order.grouped)
        above = order.count_before(self._other(order.label))
        return self.gain(order.label) * self._preference(above, relevant[order.query], other[order.query])

    def moments(self, block: GroupBlock) -> tuple[Floats, Floats]:
        # Of the group's b others, h stand within the cutoff, and so do some of its relevant documents. Each of these
        # has 0, 1, … h of them above it, equally often (theory.md, Eq. 14).
        n, t, r = block.size, block.inside, block.relevant
        flags = self._other(block.label)
        b = block.sum(flags)
        chance = hypergeometric(n, b, t)
        h = np.arange(chance.shape[1])[None, :]
        relevant, other = (
            np.broadcast_to(block.of_query(total), chance.shape) for total in self._totals(block.grouped)
        )
        f = self._preference(block.above(flags) + h, relevant, other)
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

    def divisor(self, q: GroupedJudgments) -> NDArray[Any]:
        relevant = q.retrieved(self.gain(q.label))
        return relevant * (q.length - relevant)

    def terms(self, order: Order) -> Floats:
        q, gain = order.grouped, self.gain(order.label)
        relevant = q.retrieved(self.gain(q.label))[order.query]
        below = relevant - order.count_before(gain > 0) - 1
        return gain * (q.length[order.query] - order.rank - below)

    def moments(self, block: GroupBlock) -> tuple[Floats, Floats]:
        n, r, q = block.size, block.relevant, block.grouped
        relevant = block.of_query(q.retrieved(self.gain(q.label)))
        below = (block.of_query(q.length) - block.start - n) - (relevant - block.seen - r)
        return r * (below + (n - r) / 2), r * (n - r) * (n + 1) / 12


AUC = measure(_AUC)
