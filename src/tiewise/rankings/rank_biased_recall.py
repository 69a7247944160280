"""`Observed`: sets against reference rankings, where a set may be the head of a ranking that ends inside a tie group.

Rank-biased recall is rank-biased precision with the roles exchanged, RBR(B|R) = RBP(R|B): the reference is the run, and
the observed documents are what is judged (Moffat et al., SIGIR-AP 2024, Eqs. 6 to 9). If a tie group of the observed
ranking straddles the depth, its documents are in the set by chance: the expectation weighs each by that chance, and the
extremes take those that the reference ranks highest, or lowest.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tiewise.data.columns import Codes, Floats
from tiewise.metrics import engine
from tiewise.metrics.catalogue import RBP, Hits
from tiewise.metrics.hypergeometric import hypergeometric
from tiewise.ties.groups import TieGroups

__all__ = ["Observed", "Recalls"]


@dataclass(frozen=True, eq=False)
class Recalls:
    """Rank-biased recall for each query, (n_queries,) each: bounds, and over the orders of ties what each can be."""

    lower: Floats  # expected, if all that the reference does not show comes last
    upper: Floats  # expected, if it comes next
    lower_minimum: Floats
    lower_maximum: Floats
    upper_minimum: Floats
    upper_maximum: Floats


@dataclass(frozen=True, eq=False)
class Observed:
    """The documents that were observed, in their own tie groups, and where the reference has them."""

    ties: TieGroups  # of these documents in the reference; its labels are not looked at
    start: Codes  # (n_rows,): documents of the own list that score higher
    size: Codes  # (n_rows,): documents of the own list that score the same

    def to(self, depth: int | None) -> Drawn:
        """The sets of the first `depth` documents; None takes all of them."""
        if depth is None:
            return Drawn(self.ties, np.ones(len(self.start)))
        rows = np.flatnonzero(self.start < depth)
        return Drawn(self.ties.take(rows), np.minimum((depth - self.start[rows]) / self.size[rows], 1.0))


@dataclass(frozen=True, eq=False)
class Drawn:
    """Sets of documents, each of which is in the set of its query with a chance."""

    ties: TieGroups  # of the documents in the reference
    chance: Floats  # (n_rows,), above 0

    def rbr(self, phi: float) -> Recalls:
        """Rank-biased recall of the sets, with its bounds."""
        measure = RBP(p=phi, gains="graded")
        mean, worst, best = self._urns
        minimum = engine.value(measure, worst, worst.worst(measure))
        maximum = engine.value(measure, best, best.best(measure))
        expected = np.clip(engine.expected(measure, mean)[0], minimum, maximum)
        tail = phi ** self.ties.length.astype(np.float64)
        more = [tail * (1 - power) for power in self._unseen_power(phi)]  # Eq. 9
        return Recalls(expected, expected + more[0], minimum, maximum, minimum + more[1], maximum + more[2])

    def base(self, phi: float, k: int) -> Floats:
        """Expected rank-biased recall if only the first k ranks of the reference weigh, (n_queries,)."""
        return engine.expected(RBP(p=phi, gains="graded") @ k, self._urns[0])[0]

    def recall(self, k: int | None = None) -> Floats:
        """The expected share of the reference's first `k` documents (None: of all) that is in the set, (n_queries,)."""
        ties, seen = self.ties, self._seen(k)
        inside = np.clip((seen[ties.qrels.query] - ties.start) / np.maximum(ties.size, 1), 0.0, 1.0)
        return engine.safe_divide(self._sum(self.chance * np.where(ties.size > 0, inside, 0.0)), seen)

    def recall_range(self, k: int | None = None) -> tuple[Floats, Floats]:
        """The lowest and the highest that `recall` can be over the orders of ties."""
        hits, (_, worst, best) = Hits @ k, self._urns
        low = engine.value(hits, worst, worst.worst(hits))
        high = engine.value(hits, best, best.best(hits))
        return engine.safe_divide(low, self._seen(k)), engine.safe_divide(high, self._seen(k))

    def _seen(self, k: int | None) -> Codes:
        return self.ties.length if k is None else np.minimum(self.ties.length, k)

    @property
    def number(self) -> Floats:
        """How many documents are in each set, (n_queries,)."""
        return self._sum(self.chance)

    # -- what is in the sets -----------------------------------------------------------------------------------

    @cached_property
    def _urns(self) -> tuple[engine.Urns, engine.Urns, engine.Urns]:
        """The reference with the chances as labels, and with the sets that are the worst and the best to draw."""
        mean = self._with_labels(self.chance)
        if not len(self._open):
            return mean, mean, mean
        return mean, self._with_labels(self._picked(-self._place)), self._with_labels(self._picked(self._place))

    def _with_labels(self, label: Floats) -> engine.Urns:
        return engine.Urns(replace(self.ties, qrels=replace(self.ties.qrels, value=label)))

    @cached_property
    def _open(self) -> Codes:
        """The rows that are in a set by chance."""
        return np.flatnonzero(self.chance < 1)

    @cached_property
    def _place(self) -> Codes:
        """Where the reference has each document; past its end if it does not."""
        return np.where(self.ties.size > 0, self.ties.start, self.ties.length[self.ties.qrels.query])

    def _picked(self, key: Codes) -> Floats:
        """The sets in which the documents with the lowest keys are drawn, as labels."""
        query = self.ties.qrels.query[self._open]
        order = self._open[np.lexsort((key[self._open], query))]
        query = self.ties.qrels.query[order]  # one tie group a query straddles the depth
        turn = np.arange(len(order)) - np.searchsorted(query, query)
        label = np.floor(self.chance)
        label[order[turn < self._drawn[query]]] = 1.0
        return label

    # -- what the reference does not show ----------------------------------------------------------------------

    def _unseen_power(self, phi: float) -> tuple[Floats, Floats, Floats]:
        """φ^b for each query, b the documents of the set that the reference lacks: expected, in the worst draw and in
        the best."""
        absent = self.ties.size == 0
        certain = phi ** self._sum(absent & (self.chance == 1))
        if not len(self._open):
            return certain, certain, certain
        worst, best = (phi ** self._sum(absent * self._picked(key)) for key in (-self._place, self._place))
        return certain * self._drawn_power(phi, absent[self._open]), worst, best

    def _drawn_power(self, phi: float, absent: NDArray[np.bool_]) -> Floats:
        """E[φ^H], H the absent documents among those drawn from the straddling group: hypergeometric."""
        n, query = len(self._drawn), self.ties.qrels.query[self._open]
        size, lonely = np.bincount(query, minlength=n), np.bincount(query[absent], minlength=n)
        power: Floats = np.ones(n)
        some = np.flatnonzero(lonely)
        if len(some):
            chance = hypergeometric(size[some], lonely[some], self._drawn[some])
            power[some] = chance @ phi ** np.arange(chance.shape[1])
        return power

    @cached_property
    def _drawn(self) -> Codes:
        """How many documents are drawn from the straddling group of each query."""
        return np.rint(self._sum(np.where(self.chance < 1, self.chance, 0.0))).astype(np.int64)

    def _sum(self, values: NDArray[Any]) -> Floats:
        """The sum of the values of each query."""
        return engine.segment_sum(self.ties.qrels.query, values, len(self.ties.length))
