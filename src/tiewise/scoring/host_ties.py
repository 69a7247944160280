"""Counts of tie groups in main memory.

Approximate scores decide for nearly all documents whether they are above, at or below a threshold; the others are
scored by the definition.
"""

from __future__ import annotations

import numpy as np

from tiewise.data.columns import Floats
from tiewise.scoring.approximate import ApproximateScores, Thresholds
from tiewise.scoring.host_functions import VectorBlock
from tiewise.scoring.host_scorer import HostScorer, max_near
from tiewise.scoring.spans import Indices
from tiewise.scoring.tie_counts import QueryBlockCounts, TieCounts


class _HostBlockCounts(QueryBlockCounts):
    def __init__(self, counts: TieCounts, block: slice):
        super().__init__(counts, block)
        assert isinstance(counts.scorer, HostScorer)
        self.scorer = counts.scorer
        self.queries = self.scorer.query_block(counts.judgments.rows_of_block(block))
        self.group_at = np.full(self.above.shape, -1)  # the group in each cell
        self.group_at[self.row, self.column] = np.arange(len(self.row))
        self.thresholds = self._make_thresholds()

    def _make_thresholds(self) -> Thresholds:
        bounds = np.full((4, *self.group_at.shape), np.inf)
        for bound, end in zip(bounds, self.scorer.rounding.interval(self.threshold), strict=True):
            table = np.zeros(self.group_at.shape)
            table[self.row, self.column] = end
            scaled = self.scorer.function.to_filter(self.queries, table)
            bound[self.row, self.column] = scaled[self.row, self.column]
        overflow = np.zeros(len(bounds[0]), bool)
        overflow[self.row] |= ~np.isfinite(bounds[:, self.row, self.column]).all(0)
        # Where squares overflow, every document of the row is near.
        bounds[:, overflow] = np.array([-np.inf, np.inf, -np.inf, np.inf])[:, None, None]
        return Thresholds(bounds, self.sizes)

    def add(self, docs: VectorBlock) -> None:
        approximate = self.scorer.approximate(self.queries, docs)
        decided = approximate.count(self.thresholds, max_near(docs.n))
        if decided.skipped.any():
            self._add_rows_exactly(np.flatnonzero(decided.skipped), docs)
        if self.counts.orders:
            self._add_certain_ties(approximate, decided.equal, docs.start)
        self.above += decided.above
        self.equal += decided.equal
        row, column, doc = decided.near
        self._add_near(row, column, doc + docs.start, self.scorer.exact_scores(self.queries, docs, row, doc))
        self._add_lowest(*self._find_lowest(approximate, decided.lowest, docs))

    def _add_near(self, row: Indices, column: Indices, doc: Indices, score: Floats) -> None:
        """Compare near documents, by their exact scores, with the threshold that each of them is near to."""
        group = self.group_at[row, column]
        threshold = self.threshold[group]
        is_equal = score == threshold
        cell, (rows, width) = row * self.above.shape[1] + column, self.above.shape
        for counts, counted in ((self.above, score > threshold), (self.equal, is_equal)):
            counts += np.bincount(cell[counted], minlength=rows * width).reshape(rows, width)
        if self.counts.orders:
            self.ties.append((group[is_equal], doc[is_equal]))

    def _add_rows_exactly(self, rows: Indices, docs: VectorBlock) -> None:
        """Count with the exact scores of all documents, for rows in which too many are near."""
        for row, score in zip(rows.tolist(), self.scorer.exact_matrix(self.queries.take(rows), docs), strict=True):
            group = self.group_at[row][self.group_at[row] >= 0]
            order = np.argsort(score, kind="stable")
            low, high = (np.searchsorted(score[order], self.threshold[group], side=side) for side in ("left", "right"))
            self.above[row, : len(group)] += docs.n - high
            self.equal[row, : len(group)] += high - low
            if self.counts.orders:
                for number, start, stop in zip(group.tolist(), low.tolist(), high.tolist(), strict=True):
                    self.ties.append((np.full(stop - start, number), order[start:stop] + docs.start))

    def _add_certain_ties(self, approximate: ApproximateScores, equal: Indices, offset: int) -> None:
        """Find the documents that certainly equal a threshold; only coarse scores have such documents."""
        _, low_in, high_in, _ = self.thresholds.bounds
        for row in np.flatnonzero(equal.any(1)).tolist():
            low, high = approximate.intervals(row)
            for column in np.flatnonzero(equal[row]).tolist():
                docs = np.flatnonzero((low >= low_in[row, column]) & (high <= high_in[row, column]))
                self.ties.append((np.full(len(docs), self.group_at[row, column]), docs + offset))

    def _find_lowest(self, approximate: ApproximateScores, bound: Floats, docs: VectorBlock) -> tuple[Floats, Indices]:
        """The lowest score of each query in a block of documents, at most `bound`, and how many of them have it."""
        scorer, function, n_rows = self.scorer, self.scorer.function, self.n
        bound = function.from_filter(self.queries, np.arange(n_rows), bound)
        bound = np.fmin(scorer.rounding(bound), self.lowest)
        highest = scorer.rounding.interval(np.where(np.isfinite(bound), bound, 0.0))[3]
        limit = function.to_filter(self.queries, highest[:, None])[:, 0]
        limit = np.where(np.isfinite(bound), limit, np.inf)
        skipped, (row, doc, _) = approximate.select(limit, max_near(docs.n), below=True)
        lowest, size = np.full(n_rows, np.inf), np.zeros(n_rows, np.int64)
        if skipped.any():
            scores = scorer.exact_matrix(self.queries.take(np.flatnonzero(skipped)), docs)
            lowest[skipped] = scores.min(1)
            size[skipped] = np.count_nonzero(scores == lowest[skipped][:, None], axis=1)
        exact = scorer.exact_scores(self.queries, docs, row, doc)
        np.minimum.at(lowest, row, exact)
        size += np.bincount(row, weights=exact == lowest[row], minlength=n_rows).astype(np.int64)
        return lowest, size


class HostTieCounts(TieCounts):
    """Counts from approximate scores and, where these are not enough, from exact ones."""

    block_counts = _HostBlockCounts
