"""Counts for judged documents in the ranking of a whole collection, and the tie groups that follow from them.

The scores of the judged documents are computed first. They are the thresholds: every document is above, at or below.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tiewise.data.columns import Floats
from tiewise.errors import InputError
from tiewise.results.wording import count_noun
from tiewise.scoring.blocks import Blocks, Scorer
from tiewise.scoring.judgments import Judgments, Slots
from tiewise.scoring.spans import Indices
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
