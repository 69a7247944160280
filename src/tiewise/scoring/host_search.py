"""The best documents of queries in main memory.

At first, a document has an interval that holds its score. The k-th largest lower end so far is a limit: a document
whose upper end is below it is neither among the k best nor tied with the k-th. The few documents that are left at the
end, little more than k for a query, are scored by the definition.
"""

from __future__ import annotations

import numpy as np

from tiewise.data.columns import Floats
from tiewise.scoring.approximate import ApproximateScores
from tiewise.scoring.backends import Indices
from tiewise.scoring.blocks import Blocks
from tiewise.scoring.host_functions import VectorBlock
from tiewise.scoring.host_scorer import HostScorer, max_near

__all__ = ["top_k_on_host"]


def top_k_on_host(scorer: HostScorer, blocks: Blocks, k: int) -> list[tuple[Indices, Indices, Floats]]:
    """For each block of queries: rows, documents and scores of the k best, and of all that tie with the k-th."""
    candidates = [_Candidates(scorer, rows, k) for rows in blocks.queries]
    for span in blocks.docs if candidates else ():
        docs = scorer.doc_vectors(span)
        for part in candidates:
            part.add(docs, span.start)
            blocks.add_done(part.queries.n * docs.n)
    return [part.finish() for part in candidates]


class _Candidates:
    """For a block of queries, the documents that may be among the k best, each with an interval for its score."""

    def __init__(self, scorer: HostScorer, rows: slice, k: int):
        self.scorer, self.queries, self.first_row, self.k = scorer, scorer.query_vectors(rows), rows.start, k
        self._top = np.full((self.queries.n, k), -np.inf)  # the k largest lower ends, in any order
        self._parts: list[tuple[Indices, Indices, Floats, Floats]] = []  # row, document, lower end, upper end
        self._n_new = 0  # candidates since the last time that some were dropped
        self._first_limit = np.full(self.queries.n, -np.inf)

    @property
    def _limit(self) -> Floats:
        """(n_rows,): at least k documents score this much."""
        return self._top.min(1)

    def add(self, docs: VectorBlock, offset: int) -> None:
        """Add a block of documents, whose first row is `offset`."""
        approximate = self.scorer.approximate(self.queries, docs)
        if not self._parts:
            self._set_first_limit(approximate)
        skipped, row, doc, value = approximate.select(self._filter_limit(), max_near(docs.n))
        if skipped.any():
            self._add_rows_exactly(np.flatnonzero(skipped), docs, offset)
        error = approximate.error(row, doc)
        lower, upper = (self._to_score(row, value + sign * error) for sign in (-1, 1))
        unknown = ~(np.isfinite(value) & np.isfinite(lower) & np.isfinite(upper))
        lower[unknown], upper[unknown] = -np.inf, np.inf
        self._keep(row, doc + offset, lower, upper)

    def _set_first_limit(self, approximate: ApproximateScores) -> None:
        """A first limit from a part of the first block, so that not all of it become candidates."""
        if approximate.values.shape[1] < 2 * self.k:
            return
        first = approximate.take_first(max(4 * self.k, 4096))
        values = np.where(np.isfinite(first.matrix), first.matrix, -np.inf)
        kth = values.shape[1] - self.k
        value = np.partition(values, kth, axis=1)[:, kth].astype(np.float64)
        # These documents will be added with the block, so their lower ends must not be in _top already.
        self._first_limit = self._to_score(np.arange(self.queries.n), value - first.max_error())

    def _filter_limit(self) -> Floats:
        """The lowest score that may still round to the limit, on the scale of the filter."""
        limit = np.maximum(self._limit, self._first_limit)
        is_set = np.isfinite(limit)
        lowest = self.scorer.rounding.interval(np.where(is_set, limit, 0.0))[0]
        return np.where(is_set, self.scorer.function.to_filter(self.queries, lowest[:, None])[:, 0], -np.inf)

    def _to_score(self, row: Indices, value: Floats) -> Floats:
        return self.scorer.rounding(self.scorer.function.from_filter(self.queries, row, value))

    def _add_rows_exactly(self, rows: Indices, docs: VectorBlock, offset: int) -> None:
        """Add the exact scores of all documents, for rows in which approximate scores exclude too few."""
        scores = self.scorer.exact_matrix(self.queries.take(rows), docs)
        row, doc = np.nonzero(scores >= self._limit[rows][:, None])
        self._keep(rows[row], doc + offset, scores[row, doc], scores[row, doc])

    def _keep(self, row: Indices, doc: Indices, lower: Floats, upper: Floats) -> None:
        if not len(row):
            return
        self._update_top(row, lower)
        self._parts.append((row, doc, lower, upper))
        self._n_new += len(row)
        if self._n_new > 4 * self._top.size:
            self._drop_below_limit()

    def _update_top(self, row: Indices, lower: Floats) -> None:
        """Merge new lower ends, ordered by row, into the k largest."""
        counts = np.bincount(row, minlength=self.queries.n)
        column = np.arange(len(row)) - (np.cumsum(counts) - counts)[row]
        new = np.full((self.queries.n, int(counts.max())), -np.inf)
        new[row, column] = lower
        merged = np.concatenate([self._top, new], axis=1)
        self._top = np.partition(merged, merged.shape[1] - self.k, axis=1)[:, merged.shape[1] - self.k :]

    def _drop_below_limit(self) -> None:
        row, doc, lower, upper = (np.concatenate(parts) for parts in zip(*self._parts, strict=True))
        fits = upper >= self._limit[row]
        self._parts, self._n_new = [(row[fits], doc[fits], lower[fits], upper[fits])], 0

    def finish(self) -> tuple[Indices, Indices, Floats]:
        """Rows, documents and scores of the k best, and of all that tie with the k-th."""
        if not self._parts:
            return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0)
        self._drop_below_limit()
        row, doc, score, upper = self._parts[0]
        unknown = np.flatnonzero((score != upper) | (np.signbit(score) != np.signbit(upper)))
        score = score.copy()
        score[unknown] = self.scorer.score_pairs(row[unknown] + self.first_row, doc[unknown])
        order = np.lexsort((doc, row))
        row, doc, score = row[order], doc[order], score[order]
        self._top = np.full((self.queries.n, self.k), -np.inf)
        self._update_top(row, score)
        fits = score >= self._limit[row]
        return row[fits], doc[fits], score[fits]
