"""The best documents of a block of queries, kept while the documents come block by block.

Every candidate has the lowest and the highest score that it may have. The k-th largest of the lowest scores is a limit:
a document that cannot reach it is neither among the k best nor tied with the k-th. On a device both ends are the score
itself. In main memory they are the ends of an interval around an approximate score; the few documents that are left at
the end, little more than k for a query, are scored by the definition.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from tiewise.data.columns import Floats
from tiewise.scoring.approximate import ApproximateScores
from tiewise.scoring.backends import Array, Backend, Indices, NumpyBackend
from tiewise.scoring.blocks import Scorer
from tiewise.scoring.device_scorer import DeviceScorer
from tiewise.scoring.host_functions import VectorBlock
from tiewise.scoring.host_scorer import HostScorer, max_near

__all__ = ["Candidates", "make_candidates"]


def make_candidates(scorer: Scorer, rows: slice, k: int) -> Candidates:
    """The candidates for a block of queries, none yet."""
    if isinstance(scorer, DeviceScorer):
        return _DeviceCandidates(scorer, rows, k)
    assert isinstance(scorer, HostScorer)
    return _HostCandidates(scorer, rows, k)


class Candidates(ABC):
    """For a block of queries, the documents that may be among the k best."""

    def __init__(self, backend: Backend, dtype: Any, rows: slice, k: int):
        self.backend, self.first_row, self.n, self.k = backend, rows.start, rows.stop - rows.start, k
        self._top = backend.zeros((self.n, k), dtype) - np.inf  # the k largest lower ends of each query, in any order
        self._parts: list[tuple[Array, ...]] = []  # query, document, and one or both ends
        self._n_new = 0  # candidates since the last time that some were dropped

    @abstractmethod
    def add(self, docs: Any) -> None:
        """Add a block of documents, which comes from `Scorer.doc_block`."""

    @abstractmethod
    def _final_scores(self) -> tuple[Indices, Indices, Floats]:
        """Queries, documents and scores of the result, in main memory."""

    @abstractmethod
    def _largest(self, values: Array) -> Array:
        """The k largest values of each row, in any order."""

    def finish(self) -> tuple[Indices, Indices, Floats]:
        """Queries, documents and scores of the k best, and of all that tie with the k-th."""
        if not self._parts:
            return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0)
        self._drop_below_limit()
        row, doc, score = self._final_scores()
        return row + self.first_row, doc, score

    @property
    def _limit(self) -> Array:
        """(n,): at least k documents score this much."""
        return self.backend.xp.amin(self._top, 1)

    def _update_top(self, row: Array, lower: Array) -> None:
        """Merge new lower ends, ordered by query, into the k largest."""
        if not len(row):
            return
        xp = self.backend.xp
        counts = xp.bincount(row, minlength=self.n)
        column = self.backend.as_indices(np.arange(len(row))) - (xp.cumsum(counts, 0) - counts)[row]
        new = self.backend.zeros((self.n, int(counts.max())), lower.dtype) - np.inf
        new[row, column] = lower
        self._top = self._largest(xp.concatenate([self._top, new], 1))

    def _keep(self, row: Array, doc: Array, *ends: Array) -> None:
        """Keep documents that reach the limit."""
        fits = ends[-1] >= self._limit[row]
        self._parts.append(tuple(column[fits] for column in (row, doc, *ends)))
        self._n_new += len(self._parts[-1][0])
        if self._n_new > 4 * self.n * self.k:
            self._drop_below_limit()

    def _drop_below_limit(self) -> None:
        columns = [self.backend.xp.concatenate(column) for column in zip(*self._parts, strict=True)]
        self._parts, self._n_new = [], 0
        fits = columns[-1] >= self._limit[columns[0]]
        self._parts = [tuple(column[fits] for column in columns)]


class _DeviceCandidates(Candidates):
    """Candidates with their scores on a device."""

    def __init__(self, scorer: DeviceScorer, rows: slice, k: int):
        super().__init__(scorer.backend, scorer.arithmetic.out_dtype, rows, k)
        self.scorer, self.rows, self.tiles = scorer, rows, scorer.query_tiles(rows)

    def _largest(self, values: Array) -> Array:
        if values.shape[1] <= self.k:
            return values
        return self.backend.xp.topk(values, self.k, dim=1, sorted=False).values

    def add(self, docs: slice) -> None:
        scores = self.scorer.finite_scores(self.tiles, docs, self.rows, buffer=1)
        if not self._parts:
            self._top = self._largest(self.backend.xp.concatenate([self._top, self._largest(scores)], 1))
            row, column = self._find_above_limit(scores)
        else:
            row, column = self._find_above_limit(scores)
            self._update_top(row, scores[row, column])
        self._keep(row, column + docs.start, scores[row, column])

    def _find_above_limit(self, scores: Array) -> tuple[Array, Array]:
        return self.backend.xp.nonzero(scores >= self._limit[:, None], as_tuple=True)

    def _final_scores(self) -> tuple[Indices, Indices, Floats]:
        row, doc, score = (self.backend.to_numpy(column) for column in self._parts[0])
        return row, doc, score


class _HostCandidates(Candidates):
    """Candidates in main memory, each with an interval for its score."""

    def __init__(self, scorer: HostScorer, rows: slice, k: int):
        super().__init__(NumpyBackend(), np.float64, rows, k)
        self.scorer, self.queries = scorer, scorer.query_block(rows)
        self._first_limit = np.full(self.n, -np.inf)

    def _largest(self, values: Array) -> Array:
        return np.partition(values, values.shape[1] - self.k, axis=1)[:, values.shape[1] - self.k :]

    def add(self, docs: VectorBlock) -> None:
        approximate = self.scorer.approximate(self.queries, docs)
        if not self._parts:
            self._set_first_limit(approximate)
        skipped, (row, doc, value) = approximate.select(self._filter_limit(), max_near(docs.n))
        if skipped.any():
            self._add_rows_exactly(np.flatnonzero(skipped), docs)
        error = approximate.error(row, doc)
        lower, upper = (self._to_score(row, value + sign * error) for sign in (-1, 1))
        unknown = ~(np.isfinite(value) & np.isfinite(lower) & np.isfinite(upper))
        lower[unknown], upper[unknown] = -np.inf, np.inf
        self._update_top(row, lower)
        self._keep(row, doc + docs.start, lower, upper)

    def _set_first_limit(self, approximate: ApproximateScores) -> None:
        """A first limit from a part of the first block, so that not all of it become candidates."""
        if approximate.values.shape[1] < 2 * self.k:
            return
        first = approximate.take_first(max(4 * self.k, 4096))
        values = np.where(np.isfinite(first.matrix), first.matrix, -np.inf)
        kth = values.shape[1] - self.k
        value = np.partition(values, kth, axis=1)[:, kth].astype(np.float64)
        # These documents will be added with the block, so their lower ends must not be in _top already.
        self._first_limit = self._to_score(np.arange(self.n), value - first.max_error())

    def _filter_limit(self) -> Floats:
        """The lowest score that may still round to the limit, on the scale of the filter."""
        limit = np.maximum(self._limit, self._first_limit)
        is_set = np.isfinite(limit)
        lowest = self.scorer.rounding.interval(np.where(is_set, limit, 0.0))[0]
        return np.where(is_set, self.scorer.function.to_filter(self.queries, lowest[:, None])[:, 0], -np.inf)

    def _to_score(self, row: Indices, value: Floats) -> Floats:
        return self.scorer.rounding(self.scorer.function.from_filter(self.queries, row, value))

    def _add_rows_exactly(self, rows: Indices, docs: VectorBlock) -> None:
        """Add the exact scores of all documents, for rows in which approximate scores exclude too few."""
        scores = self.scorer.exact_matrix(self.queries.take(rows), docs)
        row, doc = np.nonzero(scores >= self._limit[rows][:, None])
        score = scores[row, doc]
        self._update_top(rows[row], score)
        self._keep(rows[row], doc + docs.start, score, score)

    def _final_scores(self) -> tuple[Indices, Indices, Floats]:
        row, doc, score, upper = self._parts[0]
        unknown = np.flatnonzero((score != upper) | (np.signbit(score) != np.signbit(upper)))
        score[unknown] = self.scorer.score_pairs(self.first_row + np.arange(self.n), row[unknown], doc[unknown])
        order = np.lexsort((doc, row))
        row, doc, score = row[order], doc[order], score[order]
        self._top = np.full((self.n, self.k), -np.inf)
        self._update_top(row, score)
        fits = score >= self._limit[row]
        return row[fits], doc[fits], score[fits]
