"""Tie groups of judged documents, counted on a device.

A judged document's own score must be the very bits that the product of its block gives it, or it would not tie with
itself. Where all documents fit, it is taken from the same product. Otherwise it is computed beforehand, in tiles of the
same shape as all others (`tiewise.scoring.device`), and looked up again while counting; should the library's products
differ after all, the scores of the blocks hold and the collection is counted once more.
"""

from __future__ import annotations

from itertools import cycle
from typing import Any, NamedTuple

import numpy as np

from tiewise.data.columns import Codes, Floats
from tiewise.scoring.arrays import Array
from tiewise.scoring.blocks import Blocks
from tiewise.scoring.device import DeviceScores
from tiewise.scoring.device_counting import Reading, looked_up, picked
from tiewise.scoring.device_functions import Tile
from tiewise.scoring.judgments import Judged, Slots
from tiewise.scoring.tie_counts import TieCounts

__all__ = ["DeviceCounts", "own_scores"]

_Asked = tuple[slice, slice, Array]  # a block of queries, all documents, and their scores


class _Begun(NamedTuple):
    """A block of queries that is being counted for."""

    block: slice
    span: slice
    scores: Array
    slots: Slots
    places: Codes  # of the slots in their table
    mine: Any  # their judgments
    asked: tuple[Any, Any]  # the queries of the qrels in the block, and their rows
    reading: Reading


class DeviceCounts(TieCounts):
    """Counts from the scores of a device."""

    def __init__(self, pairs: DeviceScores, judged: Judged, orders: tuple[str, ...], given: Floats | None):
        super().__init__(judged, orders, given)
        self.pairs = pairs

    def add(self, blocks: Blocks) -> None:
        """Count for all blocks of queries."""
        if len(blocks.docs) == 1 and blocks.queries:
            self._add_whole(blocks)
            return
        self.begin_tables()
        for block in blocks.queries if blocks.docs else ():
            self._add_block(block, blocks)

    def _add_whole(self, blocks: Blocks) -> None:
        """Count in the scores of all documents.

        A device is asked for the products of two blocks before anything else is done, and is at work on the next one
        while another is finished.
        """
        at_once = 2
        rooms = cycle(range(1, at_once + 1))
        asked = [self._ask(block, blocks.docs[0], next(rooms)) for block in blocks.queries[:at_once]]
        self.begin_tables()
        begun = [self._begin(*one) for one in asked]
        for block in blocks.queries[at_once:]:
            self._finish(begun.pop(0), blocks)
            begun.append(self._begin(*self._ask(block, blocks.docs[0], next(rooms))))
        for one in begun:
            self._finish(one, blocks)

    def _ask(self, block: slice, span: slice, room: int) -> _Asked:
        """Ask for the scores of a block of queries against all documents."""
        pairs = self.pairs
        left = pairs.left(self.judged.rows_of(block))
        return block, span, pairs.scores(left, span, again=room)

    def _begin(self, block: slice, span: slice, scores: Array) -> _Begun:
        """Take the scores of the judged documents from all scores, and ask for the counts."""
        lib, judged, given = self.pairs.lib, self.judged, self.given
        slots = judged.slots(block, given)  # documents are looked up here, while a device is at work
        table = None if given is None else slots.table(given[slots.judged])
        values, own = looked_up(lib, scores, slots, table, judged.doc[slots.judged[slots.known]] - span.start)
        counted = self.orders and judged.docs.counted and given is None
        reading = Reading(lib, scores, values, own if counted else None, judged.docs.digits)
        query, row = judged.asked(block)
        asked = _together(query), _together(row)
        return _Begun(block, span, scores, slots, slots.places, _together(slots.judged), asked, reading)

    def _finish(self, begun: _Begun, blocks: Blocks) -> None:
        """Keep what was counted."""
        block, span, scores, slots, places, mine, asked, reading = begun
        if not reading.finite:
            self.pairs.blame(scores, span, self.judged.rows_of(block))
        found, above, equal = reading.at(places)
        if self.given is None:
            self.score[mine] = found
        else:
            self.check_given(slots.judged[slots.known], found[slots.known])
        self.start[mine], self.size[mine] = above, equal
        self.set_floor(asked[0], reading.low[asked[1]], reading.low_size[asked[1]])
        ahead = reading.ahead(places)
        for order in self.before.keys() & ahead.keys():
            self.before[order][mine] = ahead[order]
        if self.orders and not ahead:
            some = slots.where(np.flatnonzero(self.may_be_behind(slots, equal)))
            group, first = some.groups(self.score[some.judged])
            question, doc = reading.tied(some.row[first], some.column[first])
            self.break_ties(some, group, question, doc + span.start)
        blocks.done(scores.shape[0] * scores.shape[1])

    def _add_block(self, block: slice, blocks: Blocks) -> None:
        """Count in one block of documents after another, for judged scores that were computed before."""
        left, mine = self.pairs.left(self.judged.rows_of(block)), self.judged.of(block)
        if self.given is None:
            self.score[mine] = own_scores(self.pairs, left, self.judged, block)
        seen = self._add_parts(block, blocks, left)
        if not np.array_equal(seen, self.score[mine]):  # a library whose products depend on more than the two vectors
            if self.given is not None:
                self.check_given(mine, seen)
            self.score[mine] = seen
            self._add_parts(block, blocks, left)

    def _add_parts(self, block: slice, blocks: Blocks, left: list[Tile]) -> Floats:
        """Count in one block of documents after another; the scores that the judged documents had there."""
        pairs, judged, lib, mine = self.pairs, self.judged, self.pairs.lib, self.judged.of(block)
        slots = judged.slots(block, self.score)
        table, values = slots.table(self.score[slots.judged]), None
        above, equal = np.zeros(slots.shape, np.int64), np.zeros(slots.shape, np.int64)
        row, doc, seen = judged.query[mine] - block.start, judged.doc[mine], np.full(len(mine), np.nan)
        floor, floor_size = np.full(slots.rows, np.inf), np.zeros(slots.rows, np.int64)
        group, first = slots.groups(self.score[slots.judged])
        ties = [(np.zeros(0, np.int64), np.zeros(0, np.int64))]
        for span in blocks.docs:
            scores = pairs.scores(left, span, again=1)
            if values is None:
                values, _ = looked_up(lib, scores, slots, table)
            here = (doc >= span.start) & (doc < span.stop)
            reading = Reading(lib, scores, values)
            if not reading.finite:
                pairs.blame(scores, span, judged.rows_of(block))
            seen[here] = picked(lib, scores, row[here], doc[here] - span.start)
            above, equal = above + reading.above, equal + reading.equal
            low, many = reading.low, reading.low_size
            floor_size = np.where(low < floor, 0, floor_size) + np.where(low <= floor, many, 0)
            floor = np.minimum(floor, low)
            if self.orders:
                ties += self._ties(slots, first, reading, span)
            blocks.done(scores.shape[0] * scores.shape[1])
        above, equal = above[slots.row, slots.column], equal[slots.row, slots.column]
        self.start[slots.judged], self.size[slots.judged] = above, equal
        query, place = judged.asked(block)
        self.set_floor(query, floor[place], floor_size[place])
        if self.orders:
            tied, docs = (np.concatenate(parts) for parts in zip(*ties, strict=True))
            open_ = self.may_be_behind(slots, equal)
            wanted = np.zeros(len(first), dtype=bool)
            wanted[group[open_]] = True
            self.break_ties(slots.where(open_), group[open_], tied[wanted[tied]], docs[wanted[tied]])
        return seen

    def _ties(self, slots: Slots, first: Codes, reading: Reading, span: slice) -> list[tuple[Codes, Codes]]:
        """Groups and their documents in a block: a judged document alone is known, the others are looked for."""
        row, column, own = slots.row[first], slots.column[first], self.judged.doc[slots.judged[first]]
        many = reading.equal[row, column]
        alone = (many == 1) & slots.known[first] & (own >= span.start) & (own < span.stop)
        asked = np.flatnonzero((many > 0) & ~alone)
        question, doc = reading.tied(row[asked], column[asked])
        return [(np.flatnonzero(alone), own[alone]), (asked[question], doc + span.start)]


def _together(places: Codes) -> Any:
    """Places as a slice if they ascend one by one, which spares time later."""
    if len(places) and places[-1] - places[0] == len(places) - 1 and (np.diff(places) == 1).all():
        return slice(int(places[0]), int(places[-1]) + 1)
    return places


def own_scores(pairs: DeviceScores, left: list[Tile], judged: Judged, block: slice) -> Floats:
    """The scores of a block's judged documents, from products with these documents alone."""
    mine = judged.of(block)
    if not len(mine):
        return np.zeros(0)
    docs, column = np.unique(judged.doc[mine], return_inverse=True)
    scores = pairs.checked(left, docs, judged.rows_of(block))
    return picked(pairs.lib, scores, judged.query[mine] - block.start, column)
