"""Tie groups of judged documents, counted on a device.

The score of a judged document must have the bits that the product of its block gives it; otherwise it would not tie
with itself. Where all documents fit into one block, it is taken from that product. Otherwise it is computed before, in
tiles of the same shape (`tiewise.scoring.device_scorer`), and compared while counting. If the products of the library
differ nevertheless, the scores of the blocks are used and the collection is counted again.
"""

from __future__ import annotations

from itertools import cycle
from typing import Any, NamedTuple

import numpy as np

from tiewise.data.columns import Floats
from tiewise.scoring.backends import Array, Indices
from tiewise.scoring.blocks import Blocks
from tiewise.scoring.device_counting import BlockCounts, gather_scores, gather_thresholds
from tiewise.scoring.device_functions import Tile
from tiewise.scoring.device_scorer import DeviceScorer
from tiewise.scoring.judgments import Judgments, Slots, as_slice
from tiewise.scoring.tie_counts import TieCounts

__all__ = ["DeviceTieCounts", "score_judged"]

#: How many blocks of queries are queued on a device at a time.
QUEUED_BLOCKS = 2


class _QueuedBlock(NamedTuple):
    """A block of queries whose counts are queued on the device."""

    block: slice
    docs: slice
    scores: Array
    slots: Slots
    flat_indices: Indices  # of the slots
    judged: Any  # indices or a slice
    queries: tuple[Any, Any]  # the queries of the qrels in the block, and their positions
    counts: BlockCounts


class DeviceTieCounts(TieCounts):
    """Counts from the scores of a device."""

    def __init__(
        self, scorer: DeviceScorer, judgments: Judgments, orders: tuple[str, ...], shared_scores: Floats | None
    ):
        super().__init__(judgments, orders, shared_scores)
        self.scorer = scorer

    def count(self, blocks: Blocks) -> None:
        """Count in all blocks."""
        if len(blocks.docs) == 1 and blocks.queries:
            self._count_whole_collection(blocks)
            return
        self.allocate()
        for block in blocks.queries if blocks.docs else ():
            self._count_in_doc_blocks(block, blocks)

    # -- all documents in one block -----------------------------------------------------------------------------------

    def _count_whole_collection(self, blocks: Blocks) -> None:
        """Count in the scores of all documents.

        The products of two blocks of queries are queued before anything else is done. So the device works on the next
        block while the counts of the last one are copied.
        """
        buffers, docs = cycle(range(1, QUEUED_BLOCKS + 1)), blocks.docs[0]
        scores = [self._queue_scores(block, docs, next(buffers)) for block in blocks.queries[:QUEUED_BLOCKS]]
        self.allocate()
        queue = [self._queue_counts(block, docs, one) for block, one in zip(blocks.queries, scores, strict=False)]
        for block in blocks.queries[QUEUED_BLOCKS:]:
            self._finish(queue.pop(0), blocks)
            queue.append(self._queue_counts(block, docs, self._queue_scores(block, docs, next(buffers))))
        for queued in queue:
            self._finish(queued, blocks)

    def _queue_scores(self, block: slice, docs: slice, buffer: int) -> Array:
        """Start to compute the scores of a block of queries against all documents."""
        tiles = self.scorer.query_tiles(self.judgments.rows_of_block(block))
        return self.scorer.scores(tiles, docs, buffer=buffer)

    def _queue_counts(self, block: slice, docs: slice, scores: Array) -> _QueuedBlock:
        """Take the scores of the judged documents from all scores, and start to count."""
        backend, judgments, shared = self.scorer.backend, self.judgments, self.shared_scores
        slots = judgments.slots(block, shared)  # documents are looked up while the device works
        table = None if shared is None else slots.to_table(shared[slots.judged])
        own_docs = judgments.doc[slots.judged[slots.has_vectors]] - docs.start
        thresholds, doc_table = gather_thresholds(backend, scores, slots, table, own_docs)
        count_ties = self.orders and judgments.doc_ids.are_row_numbers and shared is None
        counts = BlockCounts(backend, scores, thresholds, doc_table if count_ties else None, judgments.doc_ids.digits)
        query, position = judgments.queries_in_block(block)
        queries = as_slice(query), as_slice(position)
        return _QueuedBlock(block, docs, scores, slots, slots.flat_indices, as_slice(slots.judged), queries, counts)

    def _finish(self, queued: _QueuedBlock, blocks: Blocks) -> None:
        """Copy the counts of a block to the judgments."""
        block, docs, scores, slots, flat_indices, judged, (query, position), counts = queued
        if not counts.all_finite:
            self.scorer.raise_not_finite(scores, docs, self.judgments.rows_of_block(block))
        score, above, equal = counts.take(flat_indices)
        if self.shared_scores is None:
            self.score[judged] = score
        else:
            self.check_shared_scores(slots.judged[slots.has_vectors], score[slots.has_vectors])
        self.start[judged], self.size[judged] = above, equal
        self.set_floor(query, counts.floor[position], counts.floor_size[position])
        before = counts.ties_before(flat_indices)
        for order in self.before.keys() & before.keys():
            self.before[order][judged] = before[order]
        if self.orders and not before:
            some = slots.take(np.flatnonzero(self.can_have_ties_before(slots, equal)))
            group, first = some.group_ties(self.score[some.judged])
            tied_group, tied_doc = counts.find_tied(some.row[first], some.column[first])
            self.count_ties_before(some, group, tied_group, tied_doc + docs.start)
        blocks.add_done(scores.shape[0] * scores.shape[1])

    # -- several blocks of documents ----------------------------------------------------------------------------------

    def _count_in_doc_blocks(self, block: slice, blocks: Blocks) -> None:
        """Count in one block of documents after the other, for judged scores that are computed before."""
        tiles = self.scorer.query_tiles(self.judgments.rows_of_block(block))
        judged = self.judgments.judged_in_block(block)
        if self.shared_scores is None:
            self.score[judged] = score_judged(self.scorer, tiles, self.judgments, block)
        block_scores = self._count_all_doc_blocks(block, blocks, tiles)
        if not np.array_equal(block_scores, self.score[judged]):  # products depend on more than the two vectors
            if self.shared_scores is not None:
                self.check_shared_scores(judged, block_scores)
            self.score[judged] = block_scores
            self._count_all_doc_blocks(block, blocks, tiles)

    def _count_all_doc_blocks(self, block: slice, blocks: Blocks, tiles: list[Tile]) -> Floats:
        """Count for a block of queries; the scores that the judged documents have in the blocks of documents."""
        scorer, judgments, backend = self.scorer, self.judgments, self.scorer.backend
        judged = judgments.judged_in_block(block)
        slots = judgments.slots(block, self.score)
        table, thresholds = slots.to_table(self.score[slots.judged]), None
        above, equal = np.zeros(slots.shape, np.int64), np.zeros(slots.shape, np.int64)
        row, doc = judgments.query[judged] - block.start, judgments.doc[judged]
        block_scores = np.full(len(judged), np.nan)
        floor, floor_size = np.full(slots.n_rows, np.inf), np.zeros(slots.n_rows, np.int64)
        group, first = slots.group_ties(self.score[slots.judged])
        ties = [(np.zeros(0, np.int64), np.zeros(0, np.int64))]
        for docs in blocks.docs:
            scores = scorer.scores(tiles, docs, buffer=1)
            if thresholds is None:
                thresholds, _ = gather_thresholds(backend, scores, slots, table)
            here = (doc >= docs.start) & (doc < docs.stop)
            counts = BlockCounts(backend, scores, thresholds)
            if not counts.all_finite:
                scorer.raise_not_finite(scores, docs, judgments.rows_of_block(block))
            block_scores[here] = gather_scores(backend, scores, row[here], doc[here] - docs.start)
            above, equal = above + counts.above, equal + counts.equal
            new_floor = counts.floor
            floor_size = np.where(new_floor < floor, 0, floor_size)
            floor_size = floor_size + np.where(new_floor <= floor, counts.floor_size, 0)
            floor = np.minimum(floor, new_floor)
            if self.orders:
                ties += self._find_ties(slots, first, counts, docs)
            blocks.add_done(scores.shape[0] * scores.shape[1])
        size = equal[slots.row, slots.column]
        self.start[slots.judged], self.size[slots.judged] = above[slots.row, slots.column], size
        query, position = judgments.queries_in_block(block)
        self.set_floor(query, floor[position], floor_size[position])
        if self.orders:
            tied_group, tied_doc = (np.concatenate(parts) for parts in zip(*ties, strict=True))
            self.count_block_ties(slots, size, group, tied_group, tied_doc)
        return block_scores

    def _find_ties(
        self, slots: Slots, first: Indices, counts: BlockCounts, docs: slice
    ) -> list[tuple[Indices, Indices]]:
        """Groups and their documents in a block. A judged document that is alone is known; others are searched."""
        row, column, own = slots.row[first], slots.column[first], self.judgments.doc[slots.judged[first]]
        size = counts.equal[row, column]
        alone = (size == 1) & slots.has_vectors[first] & (own >= docs.start) & (own < docs.stop)
        others = np.flatnonzero((size > 0) & ~alone)
        position, doc = counts.find_tied(row[others], column[others])
        return [(np.flatnonzero(alone), own[alone]), (others[position], doc + docs.start)]


def score_judged(scorer: DeviceScorer, tiles: list[Tile], judgments: Judgments, block: slice) -> Floats:
    """The scores of the judged documents of a block of queries, from products with these documents only."""
    judged = judgments.judged_in_block(block)
    if not len(judged):
        return np.zeros(0)
    docs, column = np.unique(judgments.doc[judged], return_inverse=True)
    scores = scorer.finite_scores(tiles, docs, judgments.rows_of_block(block))
    return gather_scores(scorer.backend, scores, judgments.query[judged] - block.start, column)
