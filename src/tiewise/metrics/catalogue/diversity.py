"""Diversity measures, which use the labels of documents for the subtopics of a query, as ndeval defines them.

A document is relevant for a subtopic if its label for it is at least `rel`. S is the number of subtopics for which a
query has a relevant document, retrieved or not. A measure is a sum over subtopics of an ordinary measure of each of
them (`part`): see `tiewise.metrics.subtopics`.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tiewise.caching import cached_property
from tiewise.data.columns import Codes, Floats
from tiewise.errors import MeasureError
from tiewise.metrics.catalogue.average_precision import AP
from tiewise.metrics.catalogue.first_relevant import Success
from tiewise.metrics.catalogue.parts import Binary, log_discount
from tiewise.metrics.catalogue.sets import Hits
from tiewise.metrics.definition import Law, Measure, param
from tiewise.metrics.grouped_judgments import GroupBlock, GroupedJudgments, Order
from tiewise.metrics.names import measure

__all__ = ["AP_IA", "ERR_IA", "NRBP", "P_IA", "STREC", "alpha_DCG", "alpha_nDCG", "nERR_IA", "nNRBP"]


class _Diversity(Binary):
    """Sums of a measure over subtopics, divided by S."""

    @property
    def part(self) -> Measure:
        raise NotImplementedError

    def divisor(self, q: GroupedJudgments) -> NDArray[Any]:
        return q.by_subtopic.count_subtopics(self)


class _P_IA(_Diversity):
    """Intent-aware precision: the mean over subtopics of the precision at k.

    >>> P_IA.of("({ab}b)a", k=1)
    P_IA@1 0.7500 [0.5000, 1.0000]
    """

    @cached_property
    def part(self) -> Measure:
        return Hits(rel=self.rel, cutoff=self.cutoff)

    def scaled_gain(self, documents: GroupedJudgments | Order) -> Floats:
        return documents.grouped.by_subtopic.count_relevant(self)[documents.rows]

    def sort_key(self, documents: GroupedJudgments) -> Floats:
        return self.scaled_gain(documents)

    def divisor(self, q: GroupedJudgments) -> NDArray[Any]:
        return super().divisor(q) * q.ranks(self.cutoff)


class _OverSubtopics(_Diversity):
    """Those whose payoff depends on the documents above: a document has a term for each of its subtopics."""

    sorted_extremes = False

    def terms(self, order: Order) -> Floats:
        return order.grouped.by_subtopic.terms(self.part, order)

    def law(self, block: GroupBlock) -> Law:
        subtopics = block.grouped.by_subtopic

        def extremes() -> tuple[Floats, Floats, bool]:
            low, high = subtopics.group_extremes(self.part)
            return low[block.groups], high[block.groups], True

        return Law(subtopics.group_means(self.part)[block.groups], extremes=extremes)

    def kinds(self, documents: GroupedJudgments) -> tuple[Floats, float]:
        return documents.by_subtopic.sets(self)[documents.rows], 0.0


class _AP_IA(_OverSubtopics):
    """Intent-aware average precision: the mean over subtopics of AP (ndeval's MAP-IA).

    >>> AP_IA.of("({ab}b)a")
    AP_IA 0.8542 [0.7917, 0.9167]
    """

    takes_cutoff = False
    aliases = ("map_ia",)

    @cached_property
    def part(self) -> Measure:
        return AP(rel=self.rel)


class _STREC(_OverSubtopics):
    """Subtopic recall: the share of subtopics for which a relevant document stands in the first k.

    >>> STREC.of("(abc)", k=2)
    STREC@2 0.6667
    """

    aliases = ("strecall", "subtopic_recall", "s_recall")

    @cached_property
    def part(self) -> Measure:
        return Success(rel=self.rel, cutoff=self.cutoff)

    def kinds(self, documents: GroupedJudgments) -> tuple[Floats, float]:
        """All subtopics of a group that ends above the cutoff are found: its documents are of one kind."""
        sets, unjudged = super().kinds(documents)
        ends: Codes = documents.start + documents.size
        return np.where(ends <= self.depth(documents)[documents.query], unjudged, sets), unjudged

    def law(self, block: GroupBlock) -> Law:
        each = list(zip(block.groups.tolist(), block.inside[:, 0].astype(np.int64).tolist(), strict=True))

        def variance() -> Floats:
            return np.array([self._variance(block.grouped, group, inside) for group, inside in each])

        return super().law(block)._replace(variance=variance)

    def _variance(self, q: GroupedJudgments, group: int, inside: int) -> float:
        """The variance of the number of subtopics that the first documents of a tie group add to those above it."""
        query, first, size = int(q.group_query[group]), int(q.first[group]), int(q.group_size[group])
        relevant = q.by_subtopic.matrix(self, query)
        rows = q.rows - q.ties.qrels.offsets[query]
        found = relevant[rows[q.head[first] : first]].any(axis=0)
        own = relevant[rows[first : first + int(q.n_judged[group])]][:, ~found].astype(np.int64)
        both = own.T @ own  # documents that are relevant for two subtopics
        number = np.diag(both)
        either = number[:, None] + number[None, :] - both
        # Of u documents none is drawn: C(n − u, k) / C(n, k).
        u = np.arange(int(either.max(initial=0)))
        none = np.append(1.0, np.cumprod(np.maximum(size - inside - u, 0) / (size - u)))
        return max(float((none[either] - np.outer(none[number], none[number])).sum()), 0.0)


#: The ranks of the longest list by which a measure is divided.
MOST_RANKS = 10_000_000


class _Novelty(Binary):
    """Of one subtopic: the sum of (1 − α)^(relevant documents above) · discount(rank) over its relevant documents."""

    alpha: float = param(0.5)
    beta: float = param(0.5)
    discount: str = param("log2", choices=("log2", "rank", "geometric"))
    uses_seen = True

    def payoff(self, rank: Floats, seen: Floats) -> Floats:
        if self.discount == "log2":
            worth = 1.0 / log_discount(rank)
        else:
            worth = 1.0 / rank if self.discount == "rank" else self.beta ** (rank - 1)
        return (1 - self.alpha) ** seen * worth

    def most(self, ranks: NDArray[Any]) -> Floats:
        """The sum if all documents down to some ranks are relevant."""
        n = float(ranks.max(initial=0))
        if self.alpha > 0:  # what follows is too small to change the sum
            n = min(n, 2 + 50 / -np.log1p(-min(self.alpha, 0.999)))
        if n > MOST_RANKS:
            raise MeasureError(f"A cutoff of {ranks.max()} is too large with alpha={self.alpha:g}. Use a smaller one.")
        rank = np.arange(1.0, int(n) + 1)
        total: Floats = np.append(0.0, np.cumsum(self.payoff(rank, rank - 1)))[np.minimum(ranks, len(rank))]
        return total


class _Novel(_OverSubtopics):
    """The more documents above are relevant for a subtopic, the less another one counts: (1 − α) times for each."""

    alpha: float = param(0.5, least=0, most=1)
    discount: ClassVar[str] = "log2"

    @cached_property
    def part(self) -> _Novelty:
        beta = getattr(self, "beta", 0.5)
        return _Novelty(rel=self.rel, alpha=self.alpha, beta=beta, discount=self.discount, cutoff=self.cutoff)

    def divisor(self, q: GroupedJudgments) -> NDArray[Any]:
        return super().divisor(q) * self.part.most(q.ranks(self.cutoff))


class _IdealNovel(_Novel):
    """The same over that of an ideal list, which is found greedily and need not be the best one."""

    def divisor(self, q: GroupedJudgments) -> NDArray[Any]:
        order = q.by_subtopic.ideal(self, self.alpha, q)
        within = order.rank <= (np.inf if self.cutoff is None else self.cutoff)
        return order.sum(np.where(within, self.terms(order), 0.0))


class _alpha_DCG(_Novel):
    """α-DCG: gains discounted by log2(rank + 1), over those of a list whose documents are relevant for all subtopics.

    A document gains (1 − α)^(documents above that are relevant for s), summed over its subtopics s.

    >>> alpha_DCG.of("({ab}b)a", k=2)
    alpha_DCG@2 0.8100 [0.7398, 0.8801]
    """

    aliases = ("α_dcg",)


class _alpha_nDCG(_IdealNovel):
    """α-DCG over that of an ideal list of all judged documents.

    >>> alpha_nDCG.of("({ab}b)a", k=2)
    alpha_nDCG@2 0.9203 [0.8406, 1.0000]
    """

    aliases = ("α_ndcg",)


class _ERR_IA(_Novel):
    """Intent-aware expected reciprocal rank, over that of a list whose documents are relevant for all subtopics.

    For each subtopic, a reader goes on after a relevant document with probability 1 − α.

    >>> ERR_IA.of("({ab}b)a", k=2)
    ERR_IA@2 0.8000 [0.7000, 0.9000]
    """

    discount = "rank"


class _nERR_IA(_IdealNovel):
    """ERR-IA over that of the ideal list of alpha_nDCG.

    >>> nERR_IA.of("({ab}b)a", k=2)
    nERR_IA@2 0.8889 [0.7778, 1.0000]
    """

    discount = "rank"


class _NRBP(_Novel):
    """Novelty- and rank-biased precision: gains as in alpha_DCG, discounted by β^(rank−1).

    It is divided by the value of an infinite list whose documents are relevant for all S subtopics, S / (1 − (1 − α)β).

    >>> NRBP.of("({ab}b)a")
    NRBP 0.7969 [0.7031, 0.8906]
    """

    takes_cutoff = False
    discount = "geometric"
    beta: float = param(0.5, above=0, below=1)

    def divisor(self, q: GroupedJudgments) -> NDArray[Any]:
        return q.by_subtopic.count_subtopics(self) / (1 - (1 - self.alpha) * self.beta)


class _nNRBP(_IdealNovel):
    """NRBP over that of the ideal list of alpha_nDCG.

    >>> nNRBP.of("({ab}b)a")
    nNRBP 0.8947 [0.7895, 1.0000]
    """

    takes_cutoff = False
    discount = "geometric"
    beta: float = param(0.5, above=0, below=1)


P_IA = measure(_P_IA)
AP_IA = measure(_AP_IA)
STREC = measure(_STREC)
alpha_DCG = measure(_alpha_DCG)
alpha_nDCG = measure(_alpha_nDCG)
ERR_IA = measure(_ERR_IA)
nERR_IA = measure(_nERR_IA)
NRBP = measure(_NRBP)
nNRBP = measure(_nNRBP)
