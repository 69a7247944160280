"""Tie groups of judged documents, counted in main memory.

The scores of the judged documents are computed first, by the definition. They are thresholds: approximate scores decide
for nearly all documents on which side of a threshold they lie, and the others are scored by the definition as well.
"""

from __future__ import annotations

import numpy as np

from tiewise.data.columns import Codes, Floats
from tiewise.scoring.approximate import Approximation, Thresholds
from tiewise.scoring.blocks import Blocks
from tiewise.scoring.host import HostScores, Rows, most_near
from tiewise.scoring.judgments import Judged
from tiewise.scoring.tie_counts import TieCounts

__all__ = ["HostCounts"]


class HostCounts(TieCounts):
    """Counts from approximate scores and, where these leave something open, exact ones."""

    def __init__(self, scores: HostScores, judged: Judged, orders: tuple[str, ...], given: Floats | None):
        super().__init__(judged, orders, given)
        self.scores = scores

    def add(self, blocks: Blocks) -> None:
        """Count for all blocks."""
        self.begin_tables()
        known = np.flatnonzero(self.judged.known)
        own = self.scores.pairs(self.judged.rows[self.judged.query[known]], self.judged.doc[known])
        if self.given is None:
            self.score[known] = own
        else:
            self.check_given(known, own)
        parts = [_Part(self, block) for block in blocks.queries]
        for span in blocks.docs if parts else ():
            docs = self.scores.doc_rows(span)
            for part in parts:
                part.add(docs, span.start)
                blocks.done(part.queries.n * docs.n)
        for part in parts if blocks.docs else ():
            part.finish()


class _Part:
    """The counts of one block of queries.

    Judged documents of one query with equal scores share a threshold; thresholds are numbered by query and score.
    """

    def __init__(self, counts: HostCounts, block: slice):
        self.counts, self.scores, self.block = counts, counts.scores, block
        self.queries = self.scores.query_rows(counts.judged.rows_of(block))
        self.slots = counts.judged.slots(block, counts.score)
        value = counts.score[self.slots.judged]
        self.group, first = self.slots.groups(value)  # of each slot, and a slot of each group
        self.row, self.value = self.slots.row[first], value[first]  # of each group
        sizes = np.bincount(self.row, minlength=self.queries.n)
        self.column = np.arange(len(self.row)) - (np.cumsum(sizes) - sizes)[self.row]
        self.number = np.full((self.queries.n, int(sizes.max(initial=0))), -1)  # of the group at a row and column
        self.number[self.row, self.column] = np.arange(len(self.row))
        self.thresholds = self._thresholds(sizes)
        self.above, self.equal = np.zeros(self.number.shape, np.int64), np.zeros(self.number.shape, np.int64)
        self.floor, self.floor_size = np.full(self.queries.n, np.inf), np.zeros(self.queries.n, np.int64)
        self.ties: list[tuple[Codes, Codes]] = []  # groups, and documents that belong to them

    def _thresholds(self, sizes: Codes) -> Thresholds:
        bounds = np.full((4, *self.number.shape), np.inf)
        for bound, end in zip(bounds, self.scores.rounding.interval(self.value), strict=True):
            table = np.zeros(self.number.shape)
            table[self.row, self.column] = end
            scaled = self.scores.function.to_filter(self.queries, table)
            bound[self.row, self.column] = scaled[self.row, self.column]
        unknown = np.zeros(len(bounds[0]), bool)
        unknown[self.row] |= ~np.isfinite(bounds[:, self.row, self.column]).all(0)
        # Squares that overflow decide nothing: every document of the row is near.
        bounds[:, unknown] = np.array([-np.inf, np.inf, -np.inf, np.inf])[:, None, None]
        return Thresholds(bounds, sizes)

    def add(self, docs: Rows, offset: int) -> None:
        """Count in a block of documents."""
        approximate = self.scores.approximate(self.queries, docs)
        above, equal, many, row, column, doc = approximate.count(self.thresholds, most_near(docs.n))
        if many.any():
            self._add_exactly(np.flatnonzero(many), docs, offset)
        if self.counts.orders:
            self._add_ties(approximate, equal, offset)
        self.above += above
        self.equal += equal
        score = self.scores.exact(self.queries, docs, row, doc)
        self._compare(row, column, doc + offset, score)
        self._add_floor(approximate, docs)

    def _compare(self, row: Codes, column: Codes, doc: Codes, score: Floats) -> None:
        """Count documents with exact scores at single thresholds."""
        number = self.number[row, column]
        value = self.value[number]
        np.add.at(self.above, (row, column), score > value)
        same = score == value
        np.add.at(self.equal, (row, column), same)
        if self.counts.orders:
            self.ties.append((number[same], doc[same]))

    def _add_exactly(self, rows: Codes, docs: Rows, offset: int) -> None:
        """Count in the exact scores of all documents for some rows, of which too many are near a threshold."""
        for row, score in zip(rows.tolist(), self.scores.matrix(self.queries.take(rows), docs), strict=True):
            number = self.number[row][self.number[row] >= 0]
            value, ordered = self.value[number], np.argsort(score, kind="stable")
            low, high = (np.searchsorted(score[ordered], value, side=side) for side in ("left", "right"))
            self.above[row, : len(number)] += docs.n - high
            self.equal[row, : len(number)] += high - low
            if self.counts.orders:
                for one, begin, end in zip(number.tolist(), low.tolist(), high.tolist(), strict=True):
                    self.ties.append((np.full(end - begin, one), ordered[begin:end] + offset))

    def _add_ties(self, approximate: Approximation, equal: Codes, offset: int) -> None:
        """Find the documents that were surely equal to a threshold, which coarse scores have."""
        _, low, high, _ = self.thresholds.bounds
        for row in np.flatnonzero(equal.any(1)).tolist():
            least, most = approximate.take(np.array([row])).intervals(0)
            for column in np.flatnonzero(equal[row]).tolist():
                inside = np.flatnonzero((least >= low[row, column]) & (most <= high[row, column]))
                self.ties.append((np.full(len(inside), self.number[row, column]), inside + offset))

    def _add_floor(self, approximate: Approximation, docs: Rows) -> None:
        """The lowest score of each row, and how many documents have it."""
        scores, rows = self.scores, np.arange(self.queries.n)
        lowest = scores.rounding(scores.function.from_filter(self.queries, rows, approximate.lowest()))
        lowest = np.fmin(lowest, self.floor)
        last = scores.rounding.interval(np.where(np.isfinite(lowest), lowest, 0.0))[3]
        limit = scores.function.to_filter(self.queries, last[:, None])[:, 0]
        limit = np.where(np.isfinite(lowest), limit, np.inf)
        many, row, doc, _ = approximate.select(limit, most_near(docs.n), below=True)
        low, size = np.full(len(rows), np.inf), np.zeros(len(rows), np.int64)
        if many.any():
            found = scores.matrix(self.queries.take(np.flatnonzero(many)), docs)
            low[many] = found.min(1)
            size[many] = np.count_nonzero(found == low[many][:, None], axis=1)
        exact = scores.exact(self.queries, docs, row, doc)
        np.minimum.at(low, row, exact)
        size += np.bincount(row, weights=exact == low[row], minlength=len(rows)).astype(np.int64)
        self.floor_size = np.where(low < self.floor, 0, self.floor_size) + np.where(low <= self.floor, size, 0)
        self.floor = np.minimum(self.floor, low)

    def finish(self) -> None:
        """Hand over what was counted."""
        counts, slots = self.counts, self.slots
        row, column = self.row[self.group], self.column[self.group]
        size = self.equal[row, column]
        counts.start[slots.judged], counts.size[slots.judged] = self.above[row, column], size
        query, place = counts.judged.asked(self.block)
        counts.set_floor(query, self.floor[place], self.floor_size[place])
        if counts.orders and self.ties:
            tied, docs = (np.concatenate(parts) for parts in zip(*self.ties, strict=True))
            broken = counts.may_be_behind(slots, size)
            wanted = np.zeros(len(self.row), dtype=bool)
            wanted[self.group[broken]] = True
            kept = wanted[tied]
            counts.break_ties(slots.where(broken), self.group[broken], tied[kept], docs[kept])
