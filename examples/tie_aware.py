# From Tiewise 1.0. Licensed under the Apache License, Version 2.0. Please cite the papers that this file computes:
#   Yang, Jang, Jang, Choi, Augenstein, Lim: Reliable Evaluation Protocol for Low-Precision Retrieval. ACL 2026.
#   McSherry, Najork: Computing Information Retrieval Performance Measures Efficiently in the Presence of Tied
#   Scores. ECIR 2008.
"""Retrieval measures under ties, in one file to copy: expected value, minimum and maximum over all orders of ties.

    >>> reciprocal_rank([0.5, 0.5, 0.1], [0, 1, 0], 10)
    Estimate(expected=0.75, minimum=0.5, maximum=1.0)

Each function takes the scores and labels of one query's list, in any order, and a cutoff (None: the whole list). A
document is relevant if its label is above 0; nDCG takes the label as gain. `unretrieved` are the labels of judged
documents that the list lacks: they count in N+ and in the ideal list. Without a relevant document a measure is 0.

Numbers in brackets are the equations of the first paper (Appendix C). Two of them are mended: N+ counts all relevant
documents, not only those retrieved, and (23) is taken as R + 1 for a group of one, where it reads 0/0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class Estimate(NamedTuple):
    """What a measure is worth over all orders of tied documents."""

    expected: float
    minimum: float
    maximum: float


class _List(NamedTuple):
    """One list: labels in the worst and in the best order, and its tie groups (2) in descending order of scores."""

    worst: np.ndarray  # in each group ascending
    best: np.ndarray  # in each group descending
    sizes: np.ndarray  # |G_n|
    starts: np.ndarray  # c_{n-1} (8)
    cutoff: int

    @classmethod
    def of(cls, scores: Sequence[float], labels: Sequence[float], k: int | None) -> _List:
        keys, values = -np.asarray(scores, dtype=float), np.maximum(np.asarray(labels, dtype=float), 0)
        if keys.shape != values.shape or keys.ndim != 1 or np.isnan(keys).any() or np.isnan(values).any():
            raise ValueError("scores and labels: two lists of numbers of the same length")
        if k is not None and k < 1:
            raise ValueError("k: at least 1, or None for the whole list")
        sizes = np.unique(keys, return_counts=True)[1]
        worst, best = values[np.lexsort((values, keys))], values[np.lexsort((-values, keys))]
        return cls(worst, best, sizes, np.cumsum(sizes) - sizes, len(keys) if k is None else k)

    def binary(self) -> _List:
        """The same list with 1 for each relevant document and 0 for others."""
        return self._replace(worst=np.sign(self.worst), best=np.sign(self.best))

    def group_sums(self) -> np.ndarray:
        """The sum of labels in each group; r_n for a binary list."""
        return np.add.reduceat(self.best, self.starts) if len(self.best) else np.zeros(0)

    def weighted(self, weights: np.ndarray, divisor: float) -> Estimate:
        """Σ weight(rank) · label / divisor. Its expectation gives each document its group's mean label (7)."""
        mean = np.repeat(self.group_sums() / self.sizes, self.sizes)
        top = slice(min(self.cutoff, len(mean)))
        return Estimate(*(_ratio(weights[top] @ labels[top], divisor) for labels in (mean, self.worst, self.best)))


def _ratio(numerator: float, divisor: float) -> float:
    return float(numerator / divisor) if divisor else 0.0


def _n_relevant(lst: _List, unretrieved: Sequence[float]) -> int:
    return int(lst.best.sum()) + sum(label > 0 for label in unretrieved)  # N+


def hits(scores: Sequence[float], labels: Sequence[float], k: int | None = None) -> Estimate:
    """Relevant documents in the first k (10)."""
    lst = _List.of(scores, labels, k).binary()
    return lst.weighted(np.ones(len(lst.best)), 1)


def precision(scores: Sequence[float], labels: Sequence[float], k: int | None = None) -> Estimate:
    """Hits / k, also where the list is shorter than k (12)."""
    lst = _List.of(scores, labels, k).binary()
    return lst.weighted(np.ones(len(lst.best)), lst.cutoff)


def recall(
    scores: Sequence[float], labels: Sequence[float], k: int | None = None, unretrieved: Sequence[float] = ()
) -> Estimate:
    """Hits / N+ (11)."""
    lst = _List.of(scores, labels, k).binary()
    return lst.weighted(np.ones(len(lst.best)), _n_relevant(lst, unretrieved))


def f1(
    scores: Sequence[float], labels: Sequence[float], k: int | None = None, unretrieved: Sequence[float] = ()
) -> Estimate:
    """2 Hits / (k + N+) (13)."""
    lst = _List.of(scores, labels, k).binary()
    return lst.weighted(np.full(len(lst.best), 2.0), lst.cutoff + _n_relevant(lst, unretrieved))


def ndcg(
    scores: Sequence[float], labels: Sequence[float], k: int | None = None, unretrieved: Sequence[float] = ()
) -> Estimate:
    """Discounted gain over that of the ideal list (14–17)."""
    lst = _List.of(scores, labels, k)
    ideal = np.sort(np.concatenate((lst.best, np.maximum(np.asarray(unretrieved, dtype=float), 0))))[::-1]
    ideal = ideal if k is None else ideal[:k]
    weights = 1 / np.log2(np.arange(max(len(lst.best), len(ideal))) + 2)
    return lst.weighted(weights, float(ideal @ weights[: len(ideal)]))


def reciprocal_rank(scores: Sequence[float], labels: Sequence[float], k: int | None = None) -> Estimate:
    """1 / rank of the first relevant document, 0 beyond k (18–22)."""
    lst = _List.of(scores, labels, k).binary()
    relevant = lst.group_sums()
    if not relevant.any():
        return Estimate(0.0, 0.0, 0.0)
    n = int(np.flatnonzero(relevant)[0])  # the first group that holds one
    size, r, above = int(lst.sizes[n]), int(relevant[n]), int(lst.starts[n])
    t = np.arange(size - r + 1)  # non-relevant documents of the group before it
    survival = np.cumprod(np.append(1.0, (size - r - t[:-1]) / (size - t[:-1])))  # π_t (20), without binomials
    ranks = above + 1 + t  # (19)
    values = np.where(ranks <= lst.cutoff, 1 / ranks, 0.0)
    chance = survival * r / (size - t)  # π_t · λ_t (21)
    return Estimate(float(values @ chance), float(values[-1]), float(values[0]))


def average_precision(
    scores: Sequence[float], labels: Sequence[float], k: int | None = None, unretrieved: Sequence[float] = ()
) -> Estimate:
    """Precision at each relevant document of the first k, over N+ (23–25)."""
    lst = _List.of(scores, labels, k).binary()
    relevant = lst.group_sums()
    group = np.repeat(np.arange(len(lst.sizes)), lst.sizes)
    r, size, above = relevant[group], lst.sizes[group], (np.cumsum(relevant) - relevant)[group]  # above: R_{n-1}
    ranks = np.arange(1, len(lst.best) + 1)  # D_{n,t} (24)
    t = ranks - 1 - lst.starts[group]
    seen = above + 1 + t * (r - 1) / np.maximum(size - 1, 1)  # A_{n,t} (23), if the document at this rank is relevant
    within, n_relevant = ranks <= lst.cutoff, _n_relevant(lst, unretrieved)
    terms = (r / size * seen, *(order * np.cumsum(order) for order in (lst.worst, lst.best)))
    return Estimate(*(_ratio((term / ranks) @ within, n_relevant) for term in terms))
