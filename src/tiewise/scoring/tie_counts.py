"""Counts for judged documents in the ranking of a whole collection, and the tie groups that follow from them.

The scores of the judged documents are computed first. They are the thresholds: every document is above, at or below.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tiewise.data.columns import Floats
from tiewise.errors import InputError
from tiewise.results.wording import count_noun
from tiewise.scoring.approximate import ApproximateScores, Thresholds
from tiewise.scoring.blocks import Blocks, Scorer
from tiewise.scoring.device_counting import BlockCounts, ScoreBlock, gather_thresholds
from tiewise.scoring.device_scorer import QUEUED_BLOCKS, DeviceScorer, gather_scores
from tiewise.scoring.host_functions import VectorBlock
from tiewise.scoring.host_scorer import HostScorer, max_near
from tiewise.scoring.judgments import Judgments, Slots
from tiewise.scoring.spans import Indices, as_slice
from tiewise.ties.groups import TieGroups


class TieCounts:
    """Counts for each judgment and each query of the qrels.

    `shared_scores` are the scores of the judged documents of all shards, if the documents are one shard of several.
    """

    block_counts: type[QueryBlockCounts]

    def __init__(
        self, scorer: Scorer, judgments: Judgments, orders: tuple[str, ...], shared_scores: Floats | None = None
    ):
        self.scorer, self.judgments, self.orders, self.shared_scores = scorer, judgments, orders, shared_scores

    def count(self, blocks: Blocks) -> None:
        """Count in all blocks of queries and documents."""
        self.allocate()
        judged = np.flatnonzero(self.judgments.has_vectors)
        score = self.judgments.score(self.scorer)
        if self.shared_scores is None:
            self.score[judged] = score
        else:
            self.check_shared_scores(judged, score)
        parts = [self.block_counts(self, block) for block in blocks.queries] if blocks.docs else []
        blocks.visit(parts)
        final = [self.block_counts(self, part.block) if part.correct_scores() else part for part in parts]
        blocks.visit([part for part in final if part not in parts])
        for part in final:
            part.finish()

    def allocate(self) -> None:
        """Create the arrays of counts, and check that a judged query and document are here."""
        judgments, shared = self.judgments, self.shared_scores
        judgments.check_ids(docs=shared is None)  # a shard may hold no judged document
        n, queries = len(judgments.qrels), len(judgments.qrels.queries)
        self.score = np.full(n, np.nan) if shared is None else shared
        self.start, self.size = np.zeros(n, np.int64), np.zeros(n, np.int64)
        self.lowest, self.lowest_size = np.full(queries, np.nan), np.zeros(queries, np.int64)
        self.present = judgments.position >= 0
        self.length, self.unjudged = np.where(self.present, judgments.doc_ids.n, 0), judgments.unjudged
        # docid-asc follows from docid-desc
        self.before = {order.replace("-asc", "-desc"): np.zeros(n, np.int64) for order in self.orders}

    def check_shared_scores(self, judged: Indices, score: Floats) -> None:
        """Raise if judged documents have other scores here than the shared ones."""
        wrong = judged[self.score[judged] != score]
        if len(wrong):
            query, doc = self.judgments.qrels.row(int(wrong[0]))
            raise InputError(
                f"The given score of document '{doc}' for query '{query}' differs from its score here "
                f"({count_noun(len(wrong), 'such document')}). Gather judged_scores() with the same queries and "
                "options, on the same kind of device."
            )

    def can_have_ties_before(self, slots: Slots, size: Indices) -> NDArray[np.bool_]:
        """Which judged documents can have tied documents before them, given the sizes of their groups.

        A document that ties only with itself has none. One of another shard may tie with a single document here.
        """
        return size > 1 if self.shared_scores is None else (size > 1) | ((size > 0) & ~slots.has_vectors)

    def count_ties_before(self, slots: Slots, group: Indices, tied_group: Indices, tied_doc: Indices) -> None:
        """Count the tied documents before each judged one: those with a greater id, and those in an earlier row.

        `group` has the group of each slot; `tied_group` has the group of each document in `tied_doc`.
        """
        if not len(tied_group):
            return
        judgments, judged = self.judgments, slots.judged
        own_doc = judgments.doc[judged]
        if "docid-desc" in self.before:
            keys, own = judgments.doc_ids.sort_keys(tied_doc, own_doc, lambda: judgments.qrels.ids(judged))
            self.before["docid-desc"][judged] = _count_greater(keys, tied_group, own, group)
        if "given" in self.orders:
            here = judgments.has_vectors[judged]
            last = judgments.doc_ids.n  # an earlier row is the greater key
            before = _count_greater(last - tied_doc, tied_group, last - own_doc[here], group[here])
            self.before["given"][judged[here]] = before

    def to_tie_groups(self) -> TieGroups:
        """The tie groups."""
        before = dict(self.before)
        if "docid-asc" in self.orders:
            others = self.size - self.judgments.has_vectors - before["docid-desc"]
            before["docid-asc"] = np.where(self.size > 0, others, 0)
        return TieGroups(
            qrels=self.judgments.qrels,
            score=self.score,
            start=self.start,
            size=self.size,
            length=self.length,
            present=self.present,
            lowest=self.lowest,
            lowest_size=self.lowest_size,
            before={order: before[order] for order in self.orders},
            in_shard=None if self.shared_scores is None else self.judgments.has_vectors,
            unjudged=self.unjudged,
            complete=True,  # all documents were counted
        )


class QueryBlockCounts(ABC):
    """The counts of one block of queries, added up over the blocks of documents.

    Judged documents of a query with equal scores share a threshold. A threshold is a tie group with a number, and a
    cell in a table with one row per query.
    """

    def __init__(self, counts: TieCounts, block: slice):
        self.counts, self.block, self.n = counts, block, block.stop - block.start
        self.slots = counts.judgments.slots(block, counts.score)
        score = counts.score[self.slots.judged]
        self.group, self.first = self.slots.group_ties(score)  # of each slot; and a slot of each group
        self.row, self.threshold = self.slots.row[self.first], score[self.first]  # of each group
        self.sizes = np.bincount(self.row, minlength=self.n)
        self.column = np.arange(len(self.row)) - (np.cumsum(self.sizes) - self.sizes)[self.row]
        shape = self.n, max(int(self.sizes.max(initial=0)), 1)
        self.above, self.equal = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        self.lowest, self.lowest_size = np.full(self.n, np.inf), np.zeros(self.n, np.int64)
        self.ties: list[tuple[Indices, Indices]] = []  # groups, and documents that belong to them

    @abstractmethod
    def add(self, docs: Any) -> None:
        """Count in a block of documents, which comes from `Scorer.doc_block`."""

    def correct_scores(self) -> bool:
        """Whether the scores of judged documents were corrected, so that all documents must be counted again."""
        return False

    def _add_lowest(self, lowest: Floats, size: Indices) -> None:
        """Update the lowest score of each query, and the number of documents that have it."""
        self.lowest_size[lowest < self.lowest] = 0
        self.lowest_size += np.where(lowest <= self.lowest, size, 0)
        self.lowest = np.minimum(self.lowest, lowest)

    def finish(self) -> None:
        """Copy the counts to the judgments."""
        counts, slots = self.counts, self.slots
        row, column = self.row[self.group], self.column[self.group]
        size = self.equal[row, column]
        counts.start[slots.judged], counts.size[slots.judged] = self.above[row, column], size
        query, position = counts.judgments.queries_in_block(self.block)
        counts.lowest[query], counts.lowest_size[query] = self.lowest[position], self.lowest_size[position]
        if self.ties:
            some = counts.can_have_ties_before(slots, size)
            group = self.group[some]
            tied_group, tied_doc = (np.concatenate(parts) for parts in zip(*self.ties, strict=True))
            is_needed = np.isin(tied_group, group)
            counts.count_ties_before(slots.take(some), group, tied_group[is_needed], tied_doc[is_needed])


def _count_greater(keys: Indices, group: Indices, own_key: Indices, own_group: Indices) -> Indices:
    """For each judged document, how many documents of its group have a greater key; keys are not negative."""
    span = max(int(keys.max()), int(own_key.max(initial=0))) + 1
    combined = np.sort(group * span + keys)
    end = np.searchsorted(combined, (own_group + 1) * span)
    return end - np.searchsorted(combined, own_group * span + own_key, side="right")


# -- counts in main memory ------------------------------------------------------------------------------------------
# Approximate scores decide for nearly all documents whether they are above, at or below a threshold; the others are
# scored by the definition.


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


# -- counts on a device ---------------------------------------------------------------------------------------------
# The score of a judged document must have the bits that the product of its block gives it; otherwise it would not tie
# with itself. Where all documents fit into one block, it is taken from that product. Otherwise it is computed before,
# in tiles of the same shape (`tiewise.scoring.device_scorer`), and compared while counting. If the products of the
# library differ nevertheless, the scores of the blocks are used and the collection is counted again.


class _QueuedBlock(NamedTuple):
    """A block of queries whose counts are queued on the device."""

    block: slice
    scores: ScoreBlock
    slots: Slots
    flat_indices: Indices  # of the slots
    judged: Any  # indices or a slice
    queries: tuple[Any, Any]  # the queries of the qrels in the block, and their positions
    counts: BlockCounts


class _DeviceBlockCounts(QueryBlockCounts):
    """Counts in one block of documents after the other."""

    def __init__(self, counts: TieCounts, block: slice):
        super().__init__(counts, block)
        assert isinstance(counts.scorer, DeviceScorer)
        self.scorer, self.query_rows = counts.scorer, counts.judgments.rows_of_block(block)
        self.tiles = self.scorer.query_tiles(self.query_rows)
        table = np.full(self.above.shape, np.inf)
        table[self.row, self.column] = self.threshold
        backend = self.scorer.backend
        self.thresholds = backend.cast(backend.to_device(table), self.scorer.arithmetic.out_dtype)
        self.own = self.slots.take(np.flatnonzero(self.slots.has_vectors))
        self.own_scores = np.full(len(self.own.judged), np.nan)  # in the blocks of documents

    def add(self, docs: slice) -> None:
        scorer, doc = self.scorer, self.counts.judgments.doc[self.own.judged]
        scores = scorer.scores(self.tiles, docs, buffer=1)
        here = (doc >= docs.start) & (doc < docs.stop)
        counts = BlockCounts(scorer.backend, ScoreBlock(scores), self.thresholds)
        if not counts.all_finite:
            scorer.raise_not_finite(scores, docs, self.query_rows)
        self.own_scores[here] = gather_scores(scorer.backend, scores, self.own.row[here], doc[here] - docs.start)
        self.above += counts.above
        self.equal += counts.equal
        self._add_lowest(*counts.lowest)
        if self.counts.orders:
            self._add_ties(counts, docs)

    def _add_ties(self, counts: BlockCounts, docs: slice) -> None:
        """Find the tied documents of a block. A judged document that is alone is known; others are searched."""
        own, has_vectors = self.counts.judgments.doc[self.slots.judged[self.first]], self.slots.has_vectors[self.first]
        size = counts.equal[self.row, self.column]
        alone = (size == 1) & has_vectors & (own >= docs.start) & (own < docs.stop)
        others = np.flatnonzero((size > 0) & ~alone)
        position, doc = counts.find_tied(self.row[others], self.column[others])
        self.ties += [(np.flatnonzero(alone), own[alone]), (others[position], doc + docs.start)]

    def correct_scores(self) -> bool:
        """Take the scores of the blocks where products depend on more than the two vectors."""
        counts, judged = self.counts, self.own.judged
        if np.array_equal(self.own_scores, counts.score[judged]):
            return False
        if counts.shared_scores is not None:
            counts.check_shared_scores(judged, self.own_scores)
        counts.score[judged] = self.own_scores
        return True


class DeviceTieCounts(TieCounts):
    """Counts from the scores of a device."""

    scorer: DeviceScorer
    block_counts = _DeviceBlockCounts

    def count(self, blocks: Blocks) -> None:
        """Count in all blocks."""
        if len(blocks.docs) == 1 and blocks.queries:
            self._count_whole_collection(blocks)
        else:
            super().count(blocks)

    def _count_whole_collection(self, blocks: Blocks) -> None:
        """Count in the scores of all documents.

        The products of two blocks of queries are queued before anything else is done. So the device works on the next
        block while the counts of the last one are copied.
        """
        docs, queue = blocks.docs[0], self.scorer.queue
        first = [(block, self._queue_scores(block, docs)) for block in blocks.queries[:QUEUED_BLOCKS]]
        self.allocate()
        for block, scores in first:
            self._queue_counts(block, scores, blocks)
        for block in blocks.queries[QUEUED_BLOCKS:]:
            self._queue_counts(block, self._queue_scores(block, docs), blocks)
        queue.finish()

    def _queue_scores(self, block: slice, docs: slice) -> ScoreBlock:
        """Start to compute the scores of a block of queries against all documents."""
        buffer = self.scorer.queue.next_buffer()
        tiles = self.scorer.query_tiles(self.judgments.rows_of_block(block))
        return self.scorer.score_block(tiles, docs, buffer=buffer)

    def _queue_counts(self, block: slice, scores: ScoreBlock, blocks: Blocks) -> None:
        """Take the scores of the judged documents from all scores, and start to count."""
        backend, judgments, shared = self.scorer.backend, self.judgments, self.shared_scores
        slots = judgments.slots(block, shared)  # documents are looked up while the device works
        table = None if shared is None else slots.to_table(shared[slots.judged])
        thresholds, doc_table = gather_thresholds(backend, scores, slots, table, judgments.doc[slots.judged])
        count_ties = self.orders and judgments.doc_ids.are_row_numbers and shared is None
        counts = BlockCounts(backend, scores, thresholds, doc_table if count_ties else None, judgments.doc_ids.digits)
        query, position = judgments.queries_in_block(block)
        queries = as_slice(query), as_slice(position)
        queued = _QueuedBlock(block, scores, slots, slots.flat_indices, as_slice(slots.judged), queries, counts)
        self.scorer.queue.add(lambda: self._finish(queued, blocks))

    def _finish(self, queued: _QueuedBlock, blocks: Blocks) -> None:
        """Copy the counts of a block to the judgments."""
        block, scores, slots, flat_indices, judged, (query, position), counts = queued
        if not counts.all_finite:
            self.scorer.raise_not_finite(scores.matrix(), blocks.docs[0], self.judgments.rows_of_block(block))
        score, above, equal = counts.take(flat_indices)
        if self.shared_scores is None:
            self.score[judged] = score
        else:
            self.check_shared_scores(slots.judged[slots.has_vectors], score[slots.has_vectors])
        self.start[judged], self.size[judged] = above, equal
        lowest, lowest_size = counts.lowest
        self.lowest[query], self.lowest_size[query] = lowest[position], lowest_size[position]
        before = counts.ties_before(flat_indices)
        for order in self.before.keys() & before.keys():
            self.before[order][judged] = before[order]
        if self.orders and not before:
            some = slots.take(np.flatnonzero(self.can_have_ties_before(slots, equal)))
            group, first = some.group_ties(self.score[some.judged])
            tied_group, tied_doc = counts.find_tied(some.row[first], some.column[first])
            self.count_ties_before(some, group, tied_group, tied_doc)
        blocks.add_done(scores.pairs)
