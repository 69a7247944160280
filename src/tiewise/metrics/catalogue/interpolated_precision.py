"""Interpolated precision: the highest precision at some recall or beyond it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tiewise.data.columns import Floats
from tiewise.metrics.catalogue.parts import Binary, spell_numbers
from tiewise.metrics.definition import Law, param
from tiewise.metrics.grouped_judgments import GroupedJudgments, Order
from tiewise.metrics.hypergeometric import hypergeometric
from tiewise.metrics.names import measure

__all__ = ["ElevenPointAP", "IPrec"]

#: Above this cost in one query (the square of the number of possible precisions) a distribution is not computed.
LATTICE_COST = 1e6


class Interpolated(Binary):
    """Measures of the interpolated precision at some shares of the relevant documents."""

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

    def values(self, order: Order) -> Floats:
        return self.interpolated(self.recall, order)

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

    def values(self, order: Order) -> Floats:
        found: Floats = sum(self.interpolated(share, order) for share in reversed(self.shares())) / len(self.shares())  # type: ignore[assignment]
        return found

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
    inside = np.clip(q.length[q.group_query] - q.group_start, 0, q.group_size)
    columns = (q.group_start, q.group_size, inside, relevant, above, needed[q.group_query])
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


IPrec = measure(_IPrec)
ElevenPointAP = measure(_ElevenPointAP)
