"""Counts of tie groups on a device.

The score of a judged document must have the bits that the product of its block gives it; otherwise it would not tie
with itself. Where all documents fit into one block, it is taken from that product. Otherwise it is computed before, in
tiles of the same shape (`tiewise.scoring.device_scorer`), and compared while counting. If the products of the library
differ nevertheless, the scores of the blocks are used and the collection is counted again.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tiewise.scoring.blocks import Blocks
from tiewise.scoring.device_counting import BlockCounts, ScoreBlock, gather_thresholds
from tiewise.scoring.device_scorer import QUEUED_BLOCKS, DeviceScorer, gather_scores
from tiewise.scoring.judgments import Slots
from tiewise.scoring.spans import Indices, as_slice
from tiewise.scoring.tie_counts import QueryBlockCounts, TieCounts


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
