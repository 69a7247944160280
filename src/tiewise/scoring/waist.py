"""`tie_groups`: the waist straight from embeddings, so that a whole collection is evaluated with no run at all.

For every judged document all documents are counted that score above it or the same. Nothing is sorted or cut, and one
block of scores is held at a time. A judged document's own score must be the very bits that the product of its block
gives it, or it would not tie with itself. It is computed beforehand, in tiles of the same shape as all others
(`tiewise.scoring.pairs`), and looked up again while counting; should a library's products differ after all, the scores
of the blocks hold and the collection is counted once more.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tiewise.columns import Codes, Floats
from tiewise.errors import InputError, counted
from tiewise.io import as_qrels
from tiewise.scoring.arrays import Array
from tiewise.scoring.counting import Reading, looked_up, picked, read
from tiewise.scoring.judgments import Judged, Slots
from tiewise.scoring.pairs import Pairs
from tiewise.scoring.searching import Blocks
from tiewise.scoring.similarities import Tile
from tiewise.telling import Progress
from tiewise.ties import TieGroups

__all__ = ["judged_scores", "tie_groups"]

#: The orders that documents of a matrix have: by id, or by row.
ORDERS = ("docid-desc", "docid-asc", "given")


def tie_groups(
    queries: Any,
    docs: Any,
    qrels: Any,
    *,
    fn: str = "dot",
    precision: str = "float32",
    query_ids: Any = None,
    doc_ids: Any = None,
    query_mask: Any = None,
    doc_mask: Any = None,
    orders: Sequence[str] = ("docid-desc",),
    scores: Floats | None = None,
    block: int | None = None,
    query_block: int | None = None,
    progress: Progress | None = None,
) -> TieGroups:
    """The tie groups of the judged documents in the ranking of all documents: what `evaluate` takes in place of a run.

    They equal those of the full run in everything. Operands, blocks and `progress` are those of `search`; `qrels` is
    whatever `evaluate` takes. `orders` are the tie-break orders to count for: ``"docid-desc"``, ``"docid-asc"``,
    ``"given"`` (by row).

    For a collection in shards, gather `judged_scores` of every shard, join them with ``numpy.fmax.reduce``, give them
    to each shard as `scores`, and put the results together with ``TieGroups.merge``.

    >>> docs = [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.5, 0.5]]
    >>> ties = tie_groups([[2.0, 0.0]], docs, {"0": {"0": 1, "3": 0}})
    >>> ties.start, ties.size, ties.length
    (array([0, 2]), array([2, 1]), array([4]))
    >>> import tiewise as tw
    >>> tw.evaluate(None, ties, "RR")["RR"]
    RR 0.7500 [0.5000, 1.0000]
    """
    for order in orders:
        if order not in ORDERS:
            raise InputError(f"Unknown tie-break order {order!r}. Embeddings have: {', '.join(ORDERS)}.")
    pairs = Pairs(queries, docs, fn=fn, precision=precision, query_mask=query_mask, doc_mask=doc_mask)
    judged = Judged(as_qrels(qrels), pairs, query_ids, doc_ids)
    tally = _Tally(pairs, judged, tuple(orders), None if scores is None else _given(scores, judged))
    blocks = Blocks(pairs, len(judged.rows), block, query_block, progress, held=pairs.lib.held)
    tally.add(blocks)
    blocks.finish()
    pairs.warn()
    return tally.groups()


def judged_scores(
    queries: Any,
    docs: Any,
    qrels: Any,
    *,
    fn: str = "dot",
    precision: str = "float32",
    query_ids: Any = None,
    doc_ids: Any = None,
    query_mask: Any = None,
    doc_mask: Any = None,
) -> Floats:
    """The score of every judged document that these documents have, NaN for the others, along the rows of the qrels.

    >>> judged_scores([[2.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]], {"0": {"1": 1, "0": 1, "9": 0}})
    array([ 0.,  2., nan])
    """
    pairs = Pairs(queries, docs, fn=fn, precision=precision, query_mask=query_mask, doc_mask=doc_mask)
    judged = Judged(as_qrels(qrels), pairs, query_ids, doc_ids)
    score = np.full(len(judged.qrels), np.nan)
    for block in Blocks(pairs, len(judged.rows)).queries:
        score[judged.of(block)] = _own_scores(pairs, pairs.left(judged.rows_of(block)), judged, block)
    return score


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


class _Tally:
    """What has been counted, along the judgments and the queries of the qrels."""

    def __init__(self, pairs: Pairs, judged: Judged, orders: tuple[str, ...], given: Floats | None):
        self.pairs, self.judged, self.orders = pairs, judged, orders
        self.given = given  # the scores of all shards, if this is one of them

    def _begin_tables(self) -> None:
        """Make room for what is counted, and check that there is something to count for."""
        judged, given = self.judged, self.given
        judged.check_queries()
        n, queries = len(judged.qrels), len(judged.qrels.queries)
        self.score = np.full(n, np.nan) if given is None else given
        self.start, self.size = np.zeros(n, np.int64), np.zeros(n, np.int64)
        self.floor, self.floor_size = np.full(queries, np.nan), np.zeros(queries, np.int64)
        self.present = judged.place >= 0
        self.length, self.unjudged = np.where(self.present, judged.docs.n, 0), judged.unjudged
        counted = {"docid-asc": "docid-desc"}  # one follows from the other
        self.before = {counted.get(order, order): np.zeros(n, np.int64) for order in self.orders}
        if given is None:  # a shard may hold no judged document
            judged.check_docs()

    def add(self, blocks: Blocks) -> None:
        """Count for all blocks of queries."""
        if len(blocks.docs) == 1 and blocks.queries:
            self._add_whole(blocks)
            return
        self._begin_tables()
        for block in blocks.queries if blocks.docs else ():
            self._add_block(block, blocks)

    def _add_whole(self, blocks: Blocks) -> None:
        """Count in the scores of all documents.

        A device is asked for the products of two blocks before anything else is done, and is at work on the next one
        while another is finished.
        """
        at_once = 1 if self.pairs.lib.on_host else 2
        rooms = cycle(range(1, at_once + 1))
        asked = [self._ask(block, blocks.docs[0], next(rooms)) for block in blocks.queries[:at_once]]
        self._begin_tables()
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
        return block, span, pairs.near(pairs.scores(left, span, again=room))

    def _begin(self, block: slice, span: slice, scores: Array) -> _Begun:
        """Take the scores of the judged documents from all scores, and ask for the counts."""
        lib, judged, given = self.pairs.lib, self.judged, self.given
        slots = judged.slots(block, given)  # documents are looked up here, while a device is at work
        table = None if given is None else slots.table(given[slots.judged])
        values, own = looked_up(lib, scores, slots, table, judged.doc[slots.judged[slots.known]] - span.start)
        counted = self.orders and judged.docs.counted and given is None
        reading = read(lib, scores, values, own if counted else None, judged.docs.digits)
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
            self._check_given(slots.judged[slots.known], found[slots.known])
        self.start[mine], self.size[mine] = above, equal
        self._set_floor(asked, reading.low, reading.low_size)
        ahead = reading.ahead(places)
        for order in self.before.keys() & ahead.keys():
            self.before[order][mine] = ahead[order]
        if self.orders and not ahead:
            some = slots.where(np.flatnonzero(self._open(slots, equal)))
            group, first = some.groups(self.score[some.judged])
            question, doc = reading.tied(some.row[first], some.column[first])
            self._break(some, group, question, doc + span.start)
        blocks.done(scores.shape[0] * scores.shape[1])

    def _add_block(self, block: slice, blocks: Blocks) -> None:
        """Count in one block of documents after another, for judged scores that were computed before."""
        left, mine = self.pairs.left(self.judged.rows_of(block)), self.judged.of(block)
        if self.given is None:
            self.score[mine] = _own_scores(self.pairs, left, self.judged, block)
        seen = self._add_parts(block, blocks, left)
        if not np.array_equal(seen, self.score[mine]):  # a library whose products depend on more than the two vectors
            if self.given is not None:
                self._check_given(mine, seen)
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
            scores = pairs.near(pairs.scores(left, span, again=1))
            if values is None:
                values, _ = looked_up(lib, scores, slots, table)
            here = (doc >= span.start) & (doc < span.stop)
            reading = read(lib, scores, values)
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
        self._set_floor(judged.asked(block), floor, floor_size)
        if self.orders:
            tied, docs = (np.concatenate(parts) for parts in zip(*ties, strict=True))
            open_ = self._open(slots, equal)
            wanted = np.zeros(len(first), dtype=bool)
            wanted[group[open_]] = True
            self._break(slots.where(open_), group[open_], tied[wanted[tied]], docs[wanted[tied]])
        return seen

    def _check_given(self, mine: Codes, score: Floats) -> None:
        """Raise if judged documents have other scores here than those that all shards count for."""
        wrong = mine[self.score[mine] != score]
        if len(wrong):
            query, doc = self.judged.qrels.row(int(wrong[0]))
            raise InputError(
                f"The score given for document '{doc}' of query '{query}' is not the one it has here "
                f"({counted(len(wrong), 'such document')}). Gather judged_scores() with the same queries, options and "
                "device."
            )

    def _set_floor(self, asked: tuple[Any, Any], floor: Floats, floor_size: Codes) -> None:
        query, row = asked
        self.floor[query], self.floor_size[query] = floor[row], floor_size[row]

    def _open(self, slots: Slots, size: Codes) -> NDArray[np.bool_]:
        """Which judged documents may have tied ones before them.

        One that ties with itself alone has none; one of another shard may tie with a single one here.
        """
        return size > 1 if self.given is None else (size > 1) | ((size > 0) & ~slots.known)

    def _ties(self, slots: Slots, first: Codes, reading: Reading, span: slice) -> list[tuple[Codes, Codes]]:
        """Groups and their documents in a block: a judged document alone is known, the others are looked for."""
        row, column, own = slots.row[first], slots.column[first], self.judged.doc[slots.judged[first]]
        many = reading.equal[row, column]
        alone = (many == 1) & slots.known[first] & (own >= span.start) & (own < span.stop)
        asked = np.flatnonzero((many > 0) & ~alone)
        question, doc = reading.tied(row[asked], column[asked])
        return [(np.flatnonzero(alone), own[alone]), (asked[question], doc + span.start)]

    def _break(self, slots: Slots, group: Codes, tied: Codes, doc: Codes) -> None:
        """Count the tied documents before each judged one: those of a greater id, and those of an earlier row.

        `group` has the group of each slot, `tied` the groups of the documents `doc`.
        """
        judged, wanted = self.judged, slots.judged
        if "docid-desc" in self.before and len(tied):
            keys, own = judged.docs.keys(doc, judged.doc[wanted], lambda: judged.qrels.ids(wanted))
            self.before["docid-desc"][wanted] = _ahead(keys, tied, own, group)
        if "given" in self.orders and len(tied):
            here = judged.known[wanted]
            last = judged.docs.n  # an earlier row is the greater key
            self.before["given"][wanted[here]] = _ahead(last - doc, tied, last - judged.doc[wanted[here]], group[here])

    def groups(self) -> TieGroups:
        """The tie groups."""
        judged, qrels = self.judged, self.judged.qrels
        before = dict(self.before)
        if "docid-asc" in self.orders:
            before["docid-asc"] = np.where(self.size > 0, self.size - judged.known - before["docid-desc"], 0)
        return TieGroups(
            qrels=qrels,
            score=self.score,
            start=self.start,
            size=self.size,
            length=self.length,
            present=self.present,
            floor=self.floor,
            floor_size=self.floor_size,
            before={order: before[order] for order in self.orders},
            owned=None if self.given is None else judged.known,
            unjudged=self.unjudged,
            complete=True,  # all documents were counted
        )


def _together(places: Codes) -> Any:
    """Places as a slice if they ascend one by one, which spares time later."""
    if len(places) and places[-1] - places[0] == len(places) - 1 and (np.diff(places) == 1).all():
        return slice(int(places[0]), int(places[-1]) + 1)
    return places


def _given(scores: Any, judged: Judged) -> Floats:
    """The scores of all shards, checked."""
    given = np.array(scores, dtype=np.float64)
    if given.shape != (len(judged.qrels),):
        raise InputError(
            f"scores have shape {given.shape}; the qrels have {len(judged.qrels)} rows. Give one for each."
        )
    return np.where(judged.query >= 0, given, np.nan)


def _own_scores(pairs: Pairs, left: list[Tile], judged: Judged, block: slice) -> Floats:
    """The scores of a block's judged documents, from products with these documents alone."""
    mine = judged.of(block)
    if not len(mine):
        return np.zeros(0)
    docs, column = np.unique(judged.doc[mine], return_inverse=True)
    scores = pairs.near(pairs.checked(left, docs, judged.rows_of(block)))
    return picked(pairs.lib, scores, judged.query[mine] - block.start, column)


def _ahead(keys: Codes, group: Codes, own: Codes, of: Codes) -> Codes:
    """For each judged document, how many tied documents of its group have a greater key; keys are from 0 on."""
    span = max(int(keys.max()), int(own.max(initial=0))) + 1
    ordered = np.sort(group * span + keys)
    return np.searchsorted(ordered, (of + 1) * span) - np.searchsorted(ordered, of * span + own, side="right")
