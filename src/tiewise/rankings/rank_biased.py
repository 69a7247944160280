"""Rank-biased precision (RBP) and rank-biased recall (RBR): a ranking against judged items, or against a set.

The rank-biased measures (RBO and RBA are in the modules beside) take a ranking for the visible part of an unbounded
one, in which rank r weighs (1−φ)·φ^(r−1). `lower` assumes that unseen and unjudged items lower the score, `upper` that
they raise it. Both are Estimates over all orders of the tied items. Equation numbers are those of Moffat et al.
(SIGIR-AP 2024), unless another paper is named.

RBR is RBP with exchanged roles, RBR(B|R) = RBP(R|B): the reference R is the run, and the documents of the set B are the
judged ones. The set may be the first `depth` documents of a ranking. If the depth splits a tie group of that ranking,
the documents of the group are in the set with a probability. The expectation weighs each by this probability. The
extremes take the documents of the group that the reference ranks highest, or lowest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from math import inf
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tiewise.caching import cached_property
from tiewise.data.columns import Codes, Floats
from tiewise.data.documents import Documents
from tiewise.data.judgments import Qrels
from tiewise.errors import InputError
from tiewise.metrics import engine
from tiewise.metrics.catalogue import RBP, Hits
from tiewise.metrics.definition import Measure
from tiewise.metrics.estimate import Bounds, Estimate
from tiewise.metrics.grouped_judgments import GroupedJudgments
from tiewise.metrics.hypergeometric import hypergeometric
from tiewise.metrics.segments import safe_divide, segment_sum
from tiewise.rankings.pairs import PairRow, RankingPair, make_estimate
from tiewise.rankings.ranking import Gains, Ranking, RankingLike, as_ranking, check_depth, check_gains
from tiewise.rankings.weights import Weights, WeightsLike, as_weights, check_phi
from tiewise.ties.groups import TieGroups

__all__ = ["ObservedRankings", "ObservedSets", "rbp", "rbr", "rbr_of_row"]


def rbp(
    ranking: RankingLike,
    gains: Gains,
    phi: float = 0.8,
    depth: int | None = None,
    gmax: float = 1.0,
    *,
    p: float | None = None,
) -> Bounds:
    """Rank-biased precision of a ranking (Eq. 4; Moffat & Zobel 2008). Items without a gain are unjudged.

    It is the measure `RBP` of `evaluate`. The lower bound gives unjudged items a gain of 0, the upper bound `gmax`; the
    upper bound adds the weight φ^d of the unseen tail. `p` is another name of `phi`.

    >>> rbp("a (b c)", {"a": 1, "b": 0}, phi=0.5)
    RBP [0.5000, 0.8125]
    """
    if p is not None and phi != RBP.p:
        raise InputError(f"phi={phi!r} and p={p!r} are two names of one parameter. Give one of them.")
    phi = check_phi(phi if p is None else p)
    if depth is not None:
        check_depth(depth)
    if not isinstance(gmax, Real) or not 0 < gmax < inf:
        raise InputError(f"gmax={gmax!r} is not possible: it is the largest gain that an item can have.")
    check_gains(gains, gmax)
    x = as_ranking(ranking)
    length = len(x.items) if depth is None else min(depth, len(x.items))
    gain = np.array([gains.get(item, gmax) for item in x.items], dtype=np.float64)  # unjudged items at their best
    judged = np.array([position for item, position in x.position.items() if item in gains], dtype=np.int64)
    measure = RBP(p=phi, gains="graded", max=gmax) @ depth

    def estimate(items: Codes, tail: float) -> Estimate:
        """RBP of the items at some positions, in units of gain; `tail` is added."""
        start, size = x.groups.item_start[items], x.groups.item_size[items]
        ties = _judged_items(start[None], size[None], gain[items], np.array([len(x.items)]))
        mean = engine.estimates(measure, GroupedJudgments(ties)).mean()
        values = (mean.expected, mean.minimum, mean.maximum)
        expected, minimum, maximum = ((value or 0.0) * gmax + tail * gmax for value in values)
        return Estimate(expected, minimum, maximum, (mean.std or 0.0) * gmax, measure="RBP")

    return Bounds(estimate(judged, 0.0), estimate(np.arange(len(gain)), phi**length), measure="RBP")


def rbr(
    observed: RankingLike | Iterable[Any],
    reference: RankingLike,
    phi: float | None = None,
    depth: int | None = None,
    *,
    weights: WeightsLike | None = None,
) -> Bounds:
    """Rank-biased recall: the weight, in a reference ranking, of the items of an observed set (Eqs. 6 to 9).

    Ranks have geometric weights for φ, or other `weights`. A string is parsed as a ranking. With `depth`, `observed` is
    a ranking, and its first `depth` items are the set. If the depth splits a tie group, each item of the group is in
    the set with the probability that a random order gives.

    >>> r = "D07 D04 D11 D12 D10 D15 D06 D22 D19 D28"
    >>> rbr({"D06", "D23", "D10", "D07", "D04"}, r, phi=0.6)
    RBR [0.7105, 0.7129]
    >>> rbr("D06 (D07 D04)", r, phi=0.6, depth=2).lower
    RBR 0.3387 [0.2587, 0.4187]
    >>> rbr({"D06", "D23", "D10", "D07", "D04"}, r, weights=Weights.dcg(10))
    RBR [0.5175, 0.5175]
    """
    is_set = depth is None and not isinstance(observed, (str, Ranking))
    items = [[item] for item in dict.fromkeys(observed)] if is_set else observed  # an item may be a tuple
    row = PairRow.from_pair(RankingPair.from_rankings(items, reference))
    lower, upper = rbr_of_row(row, as_weights(phi, weights), depth)
    return Bounds(make_estimate("RBR", lower[:, 0]), make_estimate("RBR", upper[:, 0]), measure="RBR")


def rbr_of_row(row: PairRow, weights: Weights, depth: int | None = None) -> tuple[Floats, Floats]:
    """RBR of the first `depth` items of x, as a set, against each of the others: the bounds, (3, n_pairs) each."""
    if depth is not None:
        check_depth(depth)
    n_pairs, groups = len(row.length), row.x
    ties = _judged_items(row.start, row.end - row.start, np.zeros(len(groups)), row.length)
    own = (np.tile(column, n_pairs) for column in (groups.item_start, groups.item_size))
    return ObservedRankings(ties, *own).first(depth).rbr(weights)


class _WeightedGains(Measure):
    """RBP for any weights of the ranks: the sum of gain · weight."""

    weights: Weights

    def __init__(self, weights: Weights, cutoff: int | None = None):
        super().__init__(cutoff=cutoff)
        vars(self)["weights"] = weights

    @cached_property
    def _key(self) -> tuple[Any, ...]:
        return self.cutoff, self.weights

    def gain(self, label: Floats) -> Floats:
        return label

    def payoff(self, rank: Floats, seen: Floats) -> Floats:
        return self.weights.at(rank)


def _judged_items(start: Codes, size: Codes, gain: Floats, length: Codes) -> TieGroups:
    """The tie groups of the judged items of rankings, (n_rankings, n_items); they need no names."""
    n, items = start.shape
    names, documents = tuple(map(str, range(n))), np.arange(n * items)
    return TieGroups(
        qrels=Qrels(names, items * np.arange(n + 1), Documents(documents, [""] * (n * items)), np.tile(gain, n)),
        score=np.full(n * items, np.nan),
        start=start.ravel(),
        size=size.ravel(),
        length=length,
        present=np.ones(n, dtype=bool),
        lowest=np.full(n, np.nan),
        lowest_size=np.zeros(n, dtype=np.int64),
    )


BLOCK_ROWS = 1 << 20  # rows that are measured at a time


@dataclass(frozen=True, eq=False)
class ObservedRankings:
    """The documents of observed rankings, their own tie groups, and their tie groups in the reference."""

    ties: TieGroups  # in the reference; the labels are not used
    start: Codes  # (n_rows,): documents of the observed ranking that score higher
    size: Codes  # (n_rows,): documents of the observed ranking that score the same

    def blocks(self) -> Iterator[ObservedRankings]:
        """The same rankings, some queries at a time: memory is needed for a block, not for all."""
        ties, offsets = self.ties, self.ties.qrels.offsets
        low = 0
        while low < len(offsets) - 1:
            high = max(int(np.searchsorted(offsets, offsets[low] + BLOCK_ROWS, side="right")) - 1, low + 1)
            rows, queries = slice(offsets[low], offsets[high]), slice(low, high)
            qrels = ties.qrels
            part = Qrels(
                qrels.queries[queries],
                offsets[low : high + 1] - offsets[low],
                qrels.documents.take(np.arange(rows.start, rows.stop)),
                qrels.label[rows],
            )
            block = TieGroups(
                qrels=part,
                score=ties.score[rows],
                start=ties.start[rows],
                size=ties.size[rows],
                length=ties.length[queries],
                present=ties.present[queries],
                lowest=ties.lowest[queries],
                lowest_size=ties.lowest_size[queries],
            )
            yield ObservedRankings(block, self.start[rows], self.size[rows])
            low = high

    def first(self, depth: int | None) -> ObservedSets:
        """The sets of the first `depth` documents, or of all documents (None)."""
        if depth is None:
            return ObservedSets(self.ties, np.ones(len(self.start)))
        rows = np.flatnonzero(self.start < depth)
        probability = np.minimum((depth - self.start[rows]) / self.size[rows], 1.0)
        return ObservedSets(self.ties.take(rows), probability)


@dataclass(frozen=True, eq=False)
class ObservedSets:
    """Sets of documents. Each document is in the set of its query with a probability."""

    ties: TieGroups  # of the documents in the reference
    probability: Floats  # (n_rows,), above 0

    def rbr(self, weights: Weights) -> tuple[Floats, Floats]:
        """The lower and the upper bound, (3, n_queries) each: expected, and in the worst and the best tie order.

        Documents that the reference does not show come last for the lower bound, and next for the upper bound.
        """
        measure = _WeightedGains(weights)
        mean, worst, best = self._grouped
        minimum = engine.value(measure, worst, worst.worst(measure))
        maximum = engine.value(measure, best, best.best(measure))
        expected = np.clip(engine.expected(measure, mean), minimum, maximum)
        lower = np.array([expected, minimum, maximum])
        return lower, lower + self._residual(weights)

    def rbr_at(self, weights: Weights, k: int) -> Floats:
        """Expected rank-biased recall if only the first k ranks of the reference count, (n_queries,)."""
        return engine.expected(_WeightedGains(weights, k), self._grouped[0])

    def recall(self, k: int | None = None) -> Floats:
        """The expected share of the reference's first `k` documents (None: of all) in the set, (n_queries,)."""
        ties, length = self.ties, self._reference_length(k)
        inside = np.clip((length[ties.qrels.query] - ties.start) / np.maximum(ties.size, 1), 0.0, 1.0)
        return safe_divide(self._sum(self.probability * np.where(ties.size > 0, inside, 0.0)), length)

    def recall_range(self, k: int | None = None) -> tuple[Floats, Floats]:
        """The lowest and the highest `recall` over the tie orders."""
        hits, (_, worst, best) = Hits @ k, self._grouped
        low = engine.value(hits, worst, worst.worst(hits))
        high = engine.value(hits, best, best.best(hits))
        return safe_divide(low, self._reference_length(k)), safe_divide(high, self._reference_length(k))

    def _reference_length(self, k: int | None) -> Codes:
        return self.ties.length if k is None else np.minimum(self.ties.length, k)

    @property
    def set_size(self) -> Floats:
        """The number of documents in each set, (n_queries,)."""
        return self._sum(self.probability)

    # -- the members of the sets -------------------------------------------------------------------------------

    @cached_property
    def _grouped(self) -> tuple[GroupedJudgments, GroupedJudgments, GroupedJudgments]:
        """The reference with the probabilities as labels, and with the members of the worst and the best sets."""
        mean = self._with_labels(self.probability)
        if not len(self._uncertain):
            return mean, mean, mean
        worst, best = self._extreme_sets
        return mean, self._with_labels(worst), self._with_labels(best)

    def _with_labels(self, label: Floats) -> GroupedJudgments:
        return GroupedJudgments(replace(self.ties, qrels=replace(self.ties.qrels, value=label)))

    @cached_property
    def _uncertain(self) -> Codes:
        """The rows of the split tie groups: one group for each query at the most."""
        return np.flatnonzero(self.probability < 1)

    @cached_property
    def _n_drawn(self) -> Codes:
        """How many documents of the split tie group are in the set, for each query."""
        return np.rint(self._sum(np.where(self.probability < 1, self.probability, 0.0))).astype(np.int64)

    @cached_property
    def _extreme_sets(self) -> tuple[Floats, Floats]:
        """The worst and the best sets, as labels: documents that the reference ranks last, or first, are drawn."""
        ties = self.ties
        rank = np.where(ties.size > 0, ties.start, ties.length[ties.qrels.query])  # absent documents come last
        return self._draw(-rank), self._draw(rank)

    def _draw(self, key: Codes) -> Floats:
        """The sets with the lowest keys of each split tie group, as labels."""
        rows = self._uncertain
        rows = rows[np.lexsort((key[rows], self.ties.qrels.query[rows]))]
        query = self.ties.qrels.query[rows]
        number = np.arange(len(rows)) - np.searchsorted(query, query)
        label = np.floor(self.probability)
        label[rows[number < self._n_drawn[query]]] = 1.0
        return label

    def _residual(self, weights: Weights) -> Floats:
        """The weight of the b ranks after the reference, for b documents of the set that it lacks (Eq. 9).

        Expected, and for the worst and the best set, (3, n_queries).
        """
        absent, length, n = self.ties.size == 0, self.ties.length, len(self.ties.length)
        certain = self._sum(absent & (self.probability == 1)).astype(np.int64)
        residual = np.array([weights.sum(length, certain)] * 3)
        if not len(self._uncertain):
            return residual
        # b of the split tie group has a hypergeometric distribution: some of its documents are drawn, some are absent.
        query = self.ties.qrels.query[self._uncertain]
        size, n_absent = np.bincount(query, minlength=n), np.bincount(query[absent[self._uncertain]], minlength=n)
        some = np.flatnonzero(n_absent)
        if len(some):
            probability = hypergeometric(size[some], n_absent[some], self._n_drawn[some])
            b = certain[some, None] + np.arange(probability.shape[1])
            residual[0, some] = (probability * weights.sum(length[some, None], b)).sum(axis=1)
        for order, label in enumerate(self._extreme_sets, start=1):
            residual[order] = weights.sum(length, self._sum(absent * label).astype(np.int64))
        return residual

    def _sum(self, values: NDArray[Any]) -> Floats:
        """The sum of the values of each query."""
        return segment_sum(self.ties.qrels.query, values, len(self.ties.length))
