"""The best documents of a block of queries, kept while the documents come block by block.

Every candidate has the lowest and the highest score that it may have. The k-th largest of the lowest scores is a limit:
a document that cannot reach it is neither among the k best nor tied with the k-th. From a device both ends are the
score itself. In main memory they are the ends of an interval around an approximate score; the few documents that are
left at the end, little more than k for a query, are scored by the definition.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from tiewise.data.columns import Floats
from tiewise.scoring.approximate import ApproximateScores
from tiewise.scoring.blocks import Blocks, Scorer
from tiewise.scoring.device_counting import BestDocuments, ScoreBlock
from tiewise.scoring.device_scorer import DeviceScorer
from tiewise.scoring.host_functions import VectorBlock
from tiewise.scoring.host_scorer import HostScorer, max_near
from tiewise.scoring.spans import Indices


def find_best(scorer: Scorer, blocks: Blocks, k: int) -> tuple[Indices, Indices, Floats]:
    """Queries, documents and scores of the k best of each query, and of all that tie with the k-th; best first."""
    make: Any = _DeviceCandidates if isinstance(scorer, DeviceScorer) else _HostCandidates
    candidates: list[Candidates] = [make(scorer, rows, k) for rows in blocks.queries]
    blocks.visit(candidates)
    found = [part.finish() for part in candidates] or [(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))]
    query, doc, score = found[0] if len(found) == 1 else map(np.concatenate, zip(*found, strict=True))
    if not all(part.is_ranked for part in candidates):
        order = np.lexsort((doc, -score, query))
        query, doc, score = query[order], doc[order], score[order]
    return query, doc, score


class Candidates(ABC):
    """For a block of queries, the documents that may be among the k best."""

    is_ranked = False  #: whether `finish` orders them by query, descending score, and document

    def __init__(self, rows: slice, k: int):
        self.first_row, self.n, self.k = rows.start, rows.stop - rows.start, k
        self._top = np.full((self.n, k), -np.inf)  # the k largest lower ends of each query, in any order
        self._parts: list[tuple[Any, ...]] = []  # query, document, and one or both ends
        self._n_new = 0  # candidates since the last time that some were dropped

    @abstractmethod
    def add(self, docs: Any) -> None:
        """Add a block of documents, which comes from `Scorer.doc_block`."""

    @abstractmethod
    def _final_scores(self) -> tuple[Indices, Indices, Floats]:
        """Queries, documents and scores of the result, in main memory."""

    def _largest(self, values: Floats) -> Floats:
        """The k largest values of each row, in any order."""
        return np.partition(values, values.shape[1] - self.k, axis=1)[:, values.shape[1] - self.k :]

    def finish(self) -> tuple[Indices, Indices, Floats]:
        """Queries, documents and scores of the k best, and of all that tie with the k-th."""
        if not self._parts:
            return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0)
        self._drop_below_limit()
        row, doc, score = self._final_scores()
        return row + self.first_row, doc, score

    @property
    def _limit(self) -> Floats:
        """(n,): at least k documents score this much."""
        return np.asarray(self._top.min(1))

    def _update_top(self, row: Indices, lower: Floats) -> None:
        """Merge new lower ends, ordered by query, into the k largest."""
        if not len(row):
            return
        counts = np.bincount(row, minlength=self.n)
        column = np.arange(len(row)) - (np.cumsum(counts) - counts)[row]
        new = np.full((self.n, int(counts.max())), -np.inf)
        new[row, column] = lower
        self._top = self._largest(np.concatenate([self._top, new], 1))

    def _keep(self, row: Indices, doc: Indices, *ends: Floats) -> None:
        fits = ends[-1] >= self._limit[row]
        self._parts.append(tuple(column[fits] for column in (row, doc, *ends)))
        self._n_new += len(self._parts[-1][0])
        if self._n_new > 4 * self.n * self.k:
            self._drop_below_limit()

    def _drop_below_limit(self) -> None:
        columns = [np.concatenate(column) for column in zip(*self._parts, strict=True)]
        self._parts, self._n_new = [], 0
        fits = columns[-1] >= self._limit[columns[0]]
        self._parts = [tuple(column[fits] for column in columns)]


class _DeviceCandidates(Candidates):
    """Candidates from the scores of a device.

    Of each block of documents the k best come to main memory, and all that tie with the k-th. A document below them is
    not among the k best of all blocks. The next blocks are queued on the device before that is waited for.
    """

    def __init__(self, scorer: DeviceScorer, rows: slice, k: int):
        super().__init__(rows, k)
        self.scorer, self.rows, self.tiles = scorer, rows, scorer.query_tiles(rows)
        self._n_blocks = 0

    def add(self, docs: slice) -> None:
        queue, backend = self.scorer.queue, self.scorer.backend
        block = self.scorer.score_block(self.tiles, docs, buffer=queue.next_buffer())
        best = BestDocuments(backend, block, self.k)
        queue.add(lambda: self._add_best(docs, block, best))

    def _add_best(self, docs: slice, block: ScoreBlock, best: BestDocuments) -> None:
        """Take the best documents of a block, after the device has found them."""
        all_finite, row, doc, score = best.wait()
        if not all_finite:
            self.scorer.raise_not_finite(block.matrix(), docs, self.rows)
        self._n_blocks += 1
        self.is_ranked = best.is_ranked and self._n_blocks == 1
        part = row, doc + docs.start, score
        if self._n_blocks == 1:  # with one block of documents these are the k best
            self._parts.append(part)
            return
        if self._n_blocks == 2:
            self._merge(*self._parts.pop())
        self._merge(*part)

    def _merge(self, row: Indices, doc: Indices, score: Floats) -> None:
        self._update_top(row, score)
        self._keep(row, doc, score)

    def finish(self) -> tuple[Indices, Indices, Floats]:
        self.scorer.queue.finish()
        if self._n_blocks != 1:
            return super().finish()
        row, doc, score = self._parts[0]
        return row + self.first_row, doc, score

    def _final_scores(self) -> tuple[Indices, Indices, Floats]:
        row, doc, score = self._parts[0]
        return row, doc, score


class _HostCandidates(Candidates):
    """Candidates in main memory, each with an interval for its score."""

    def __init__(self, scorer: HostScorer, rows: slice, k: int):
        super().__init__(rows, k)
        self.scorer, self.queries = scorer, scorer.query_block(rows)
        self._first_limit = np.full(self.n, -np.inf)

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
        # These documents will be added with the block, so their lower ends must not be in _top already.
        lower = approximate.kth_lower_bound(self.k)
        if lower is not None:
            self._first_limit = self._to_score(np.arange(self.n), lower)

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
