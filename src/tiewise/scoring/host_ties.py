"""Tie groups of judged documents, counted in main memory.

The scores of the judged documents are computed first, by the definition. They are the thresholds. Approximate scores
decide for nearly all documents whether they are above, at or below a threshold; the others are scored by the definition
too.
"""

from __future__ import annotations

import numpy as np

from tiewise.data.columns import Floats
from tiewise.scoring.approximate import ApproximateScores, Thresholds
from tiewise.scoring.backends import Indices
from tiewise.scoring.blocks import Blocks
from tiewise.scoring.host_functions import VectorBlock
from tiewise.scoring.host_scorer import HostScorer, max_near
from tiewise.scoring.judgments import Judgments
from tiewise.scoring.tie_counts import TieCounts

__all__ = ["HostTieCounts"]


class HostTieCounts(TieCounts):
    """Counts from approximate scores and, where these are not enough, from exact ones."""

    def __init__(self, scorer: HostScorer, judgments: Judgments, orders: tuple[str, ...], shared_scores: Floats | None):
        super().__init__(judgments, orders, shared_scores)
        self.scorer = scorer

    def count(self, blocks: Blocks) -> None:
        """Count in all blocks."""
        self.allocate()
        judgments = self.judgments
        judged = np.flatnonzero(judgments.has_vectors)
        score = self.scorer.score_pairs(judgments.query_rows[judgments.query[judged]], judgments.doc[judged])
        if self.shared_scores is None:
            self.score[judged] = score
        else:
            self.check_shared_scores(judged, score)
        parts = [_QueryBlockCounts(self, block) for block in blocks.queries]
        for span in blocks.docs if parts else ():
            docs = self.scorer.doc_vectors(span)
            for part in parts:
                part.add(docs, span.start)
                blocks.add_done(part.queries.n * docs.n)
        for part in parts if blocks.docs else ():
            part.finish()


class _QueryBlockCounts:
    """The counts of one block of queries.

    Judged documents of a query with equal scores share a threshold. A threshold is a tie group with a number, and a
    cell in a table with one row per query.
    """

    def __init__(self, counts: HostTieCounts, block: slice):
        self.counts, self.scorer, self.block = counts, counts.scorer, block
        self.queries = self.scorer.query_vectors(counts.judgments.rows_of_block(block))
        self.slots = counts.judgments.slots(block, counts.score)
        score = counts.score[self.slots.judged]
        self.group, first = self.slots.group_ties(score)  # of each slot; and a slot of each group
        self.row, self.threshold = self.slots.row[first], score[first]  # of each group
        sizes = np.bincount(self.row, minlength=self.queries.n)
        self.column = np.arange(len(self.row)) - (np.cumsum(sizes) - sizes)[self.row]
        self.group_at = np.full((self.queries.n, int(sizes.max(initial=0))), -1)  # the group in each cell
        self.group_at[self.row, self.column] = np.arange(len(self.row))
        self.thresholds = self._make_thresholds(sizes)
        self.above, self.equal = np.zeros(self.group_at.shape, np.int64), np.zeros(self.group_at.shape, np.int64)
        self.floor, self.floor_size = np.full(self.queries.n, np.inf), np.zeros(self.queries.n, np.int64)
        self.ties: list[tuple[Indices, Indices]] = []  # groups, and documents that belong to them

    def _make_thresholds(self, sizes: Indices) -> Thresholds:
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
        return Thresholds(bounds, sizes)

    def add(self, docs: VectorBlock, offset: int) -> None:
        """Count in a block of documents, whose first row is `offset`."""
        approximate = self.scorer.approximate(self.queries, docs)
        above, equal, skipped, row, column, doc = approximate.count(self.thresholds, max_near(docs.n))
        if skipped.any():
            self._add_rows_exactly(np.flatnonzero(skipped), docs, offset)
        if self.counts.orders:
            self._add_certain_ties(approximate, equal, offset)
        self.above += above
        self.equal += equal
        self._add_near(row, column, doc + offset, self.scorer.exact_scores(self.queries, docs, row, doc))
        self._add_floor(approximate, docs)

    def _add_near(self, row: Indices, column: Indices, doc: Indices, score: Floats) -> None:
        """Compare near documents, by their exact scores, with the threshold that each of them is near to."""
        group = self.group_at[row, column]
        threshold = self.threshold[group]
        is_equal = score == threshold
        np.add.at(self.above, (row, column), score > threshold)
        np.add.at(self.equal, (row, column), is_equal)
        if self.counts.orders:
            self.ties.append((group[is_equal], doc[is_equal]))

    def _add_rows_exactly(self, rows: Indices, docs: VectorBlock, offset: int) -> None:
        """Count with the exact scores of all documents, for rows in which too many are near."""
        for row, score in zip(rows.tolist(), self.scorer.exact_matrix(self.queries.take(rows), docs), strict=True):
            group = self.group_at[row][self.group_at[row] >= 0]
            order = np.argsort(score, kind="stable")
            low, high = (np.searchsorted(score[order], self.threshold[group], side=side) for side in ("left", "right"))
            self.above[row, : len(group)] += docs.n - high
            self.equal[row, : len(group)] += high - low
            if self.counts.orders:
                for number, start, stop in zip(group.tolist(), low.tolist(), high.tolist(), strict=True):
                    self.ties.append((np.full(stop - start, number), order[start:stop] + offset))

    def _add_certain_ties(self, approximate: ApproximateScores, equal: Indices, offset: int) -> None:
        """Find the documents that certainly equal a threshold; only coarse scores have such documents."""
        _, low_in, high_in, _ = self.thresholds.bounds
        for row in np.flatnonzero(equal.any(1)).tolist():
            low, high = approximate.intervals(row)
            for column in np.flatnonzero(equal[row]).tolist():
                docs = np.flatnonzero((low >= low_in[row, column]) & (high <= high_in[row, column]))
                self.ties.append((np.full(len(docs), self.group_at[row, column]), docs + offset))

    def _add_floor(self, approximate: ApproximateScores, docs: VectorBlock) -> None:
        """Update the lowest score of each row, and the number of documents that have it."""
        scorer, function, n_rows = self.scorer, self.scorer.function, self.queries.n
        bound = function.from_filter(self.queries, np.arange(n_rows), approximate.minimum_upper_bound())
        bound = np.fmin(scorer.rounding(bound), self.floor)
        highest = scorer.rounding.interval(np.where(np.isfinite(bound), bound, 0.0))[3]
        limit = function.to_filter(self.queries, highest[:, None])[:, 0]
        limit = np.where(np.isfinite(bound), limit, np.inf)
        skipped, row, doc, _ = approximate.select(limit, max_near(docs.n), below=True)
        floor, size = np.full(n_rows, np.inf), np.zeros(n_rows, np.int64)
        if skipped.any():
            scores = scorer.exact_matrix(self.queries.take(np.flatnonzero(skipped)), docs)
            floor[skipped] = scores.min(1)
            size[skipped] = np.count_nonzero(scores == floor[skipped][:, None], axis=1)
        exact = scorer.exact_scores(self.queries, docs, row, doc)
        np.minimum.at(floor, row, exact)
        size += np.bincount(row, weights=exact == floor[row], minlength=n_rows).astype(np.int64)
        self.floor_size = np.where(floor < self.floor, 0, self.floor_size) + np.where(floor <= self.floor, size, 0)
        self.floor = np.minimum(self.floor, floor)

    def finish(self) -> None:
        """Copy the counts to the judgments."""
        counts, slots = self.counts, self.slots
        row, column = self.row[self.group], self.column[self.group]
        size = self.equal[row, column]
        counts.start[slots.judged], counts.size[slots.judged] = self.above[row, column], size
        query, position = counts.judgments.queries_in_block(self.block)
        counts.set_floor(query, self.floor[position], self.floor_size[position])
        if counts.orders and self.ties:
            tied_group, tied_doc = (np.concatenate(parts) for parts in zip(*self.ties, strict=True))
            counts.count_block_ties(slots, size, self.group, tied_group, tied_doc)
