"""`tie_groups`: the waist straight from embeddings, so that a whole collection is evaluated with no run at all.

For every judged document all documents are counted that score above it or the same. Nothing is sorted or cut, and one
block of scores is held at a time. A judged document's own score must be the very bits that the product of its block
gives it, or it would not tie with itself. It is computed beforehand, in tiles of the same shape as all others
(`tiewise.scoring.pairs`), and looked up again while counting; should a library's products differ after all, the scores
of the blocks hold and the collection is counted once more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tiewise.columns import Codes, Floats
from tiewise.errors import InputError
from tiewise.io import as_qrels
from tiewise.scoring.arrays import Array
from tiewise.scoring.counting import count, lowest, picked, tied
from tiewise.scoring.judgments import Judged, Probes, probes_at
from tiewise.scoring.pairs import Pairs
from tiewise.scoring.searching import Blocks, Progress
from tiewise.scoring.similarities import Tile
from tiewise.ties import TieGroups, count_above

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
    judged.check(shard=scores is not None)
    tally = _Tally(pairs, judged, tuple(orders), None if scores is None else _given(scores, judged))
    blocks = Blocks(pairs, len(judged.rows), block, query_block, progress)
    for one in blocks.queries if blocks.docs else []:
        tally.add(one, blocks)
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
        score[judged.of(block)] = _own_scores(pairs, pairs.left(judged.rows[block]), judged, block)
    return score


class _Tally:
    """What has been counted, along the judgments and the queries of the qrels."""

    def __init__(self, pairs: Pairs, judged: Judged, orders: tuple[str, ...], given: Floats | None):
        n, queries = len(judged.qrels), len(judged.qrels.queries)
        self.pairs, self.judged, self.orders = pairs, judged, orders
        self.given = given  # the scores of all shards, if this is one of them
        self.score = np.full(n, np.nan) if given is None else given
        self.start, self.size = np.zeros(n, np.int64), np.zeros(n, np.int64)
        self.floor, self.floor_size = np.full(queries, np.nan), np.zeros(queries, np.int64)
        self.before = {order: np.zeros(n, np.int64) for order in ("docid-desc", "given")}

    def add(self, block: slice, blocks: Blocks) -> None:
        """Count for a block of queries."""
        pairs, judged, mine = self.pairs, self.judged, self.judged.of(block)
        rows = judged.rows[block]
        left = pairs.left(rows)

        def scored(span: slice) -> Array:
            return pairs.near(pairs.checked(left, span, rows, again=True))

        if len(blocks.docs) == 1:  # one product holds it all
            everything = scored(blocks.docs[0])
            self._take(mine, _gathered(pairs, everything, judged, block, mine, 0))
            self._count(block, blocks, lambda span: everything)
            return
        self._take(mine, _own_scores(pairs, left, judged, block))
        seen = self._count(block, blocks, scored)
        if not np.array_equal(seen, self.score[mine]):  # a library whose products depend on more than the two vectors
            self._take(mine, seen)
            self._count(block, blocks, scored)

    def _take(self, mine: Codes, score: Floats) -> None:
        """Set the scores of judged documents; those of a shard must be those that all shards count for."""
        if self.given is None:
            self.score[mine] = score
            return
        wrong = mine[self.given[mine] != score]
        if len(wrong):
            query, doc = self.judged.qrels.row(int(wrong[0]))
            raise InputError(
                f"The score given for document '{doc}' of query '{query}' is not the one it has here ({len(wrong)} "
                "such documents). Gather judged_scores() with the same queries, options and device."
            )

    def _count(self, block: slice, blocks: Blocks, scored: Callable[[slice], Array]) -> Floats:
        """Count in all blocks of documents; the scores that the block's judged documents had there."""
        judged, lib, mine = self.judged, self.pairs.lib, self.judged.of(block)
        probes = probes_at(judged, block, self.score)
        shape = probes.values.shape
        above, equal, seen = np.zeros(shape, np.int64), np.zeros(shape, np.int64), np.full(len(mine), np.nan)
        floor, floor_size = np.full(shape[0], np.inf), np.zeros(shape[0], np.int64)
        ties: list[tuple[Codes, Codes]] = []  # the probe, numbered along the table, and the document
        for span in blocks.docs:
            scores = scored(span)
            here = (judged.doc[mine] >= span.start) & (judged.doc[mine] < span.stop)
            seen[here] = _gathered(self.pairs, scores, judged, block, mine[here], span.start)
            more, same = count(lib, scores, probes.values)
            above, equal = above + more, equal + same
            low, many = lowest(lib, scores)
            floor_size = np.where(low < floor, 0, floor_size) + np.where(low <= floor, many, 0)
            floor = np.minimum(floor, low)
            if self.orders:
                row, column = np.nonzero(same)
                question, doc = tied(lib, scores, row, probes.values[row, column])
                ties.append(((row * shape[1] + column)[question], doc + span.start))
            blocks.done(scores.shape[0] * scores.shape[1])
        self.start[probes.judged] = above[probes.row, probes.column]
        self.size[probes.judged] = equal[probes.row, probes.column]
        asked = np.flatnonzero((judged.place >= block.start) & (judged.place < block.stop))
        self.floor[asked] = floor[judged.place[asked] - block.start]
        self.floor_size[asked] = floor_size[judged.place[asked] - block.start]
        if self.orders:
            self._break(probes, *(np.concatenate(parts) for parts in zip(*ties, strict=True)))
        return seen

    def _break(self, probes: Probes, group: Codes, doc: Codes) -> None:
        """Count the tied documents before each judged one: those of a greater id, and those of an earlier row."""
        judged, flat = self.judged, probes.row * probes.values.shape[1] + probes.column
        owned = judged.known[probes.judged]
        # A document that ties with itself alone has none before it; one of another shard may tie with a single one.
        open_ = np.bincount(group, minlength=probes.values.size) > 1
        open_[flat[~owned]] = True
        group, doc = group[open_[group]], doc[open_[group]]
        wanted, of = probes.judged[open_[flat]], flat[open_[flat]]
        if {"docid-desc", "docid-asc"} & set(self.orders) and len(group):
            keys = 2 * judged.docs.by_name
            own = judged.docs.keys(judged.qrels.ids(wanted), judged.doc[wanted])
            self.before["docid-desc"][wanted] = _ahead(keys[doc], group, own, of)
        if "given" in self.orders and len(group):
            here = judged.known[wanted]
            ahead = _ahead(-doc, group, -judged.doc[wanted[here]], of[here])
            self.before["given"][wanted[here]] = ahead

    def groups(self) -> TieGroups:
        """The tie groups."""
        judged, qrels = self.judged, self.judged.qrels
        present = judged.place >= 0
        ascending = np.where(self.size > 0, self.size - judged.known - self.before["docid-desc"], 0)
        before = {**self.before, "docid-asc": ascending}
        return TieGroups(
            qrels=qrels,
            score=self.score,
            start=self.start,
            size=self.size,
            length=np.where(present, judged.docs.n, 0),
            present=present,
            floor=self.floor,
            floor_size=self.floor_size,
            before={order: before[order] for order in self.orders},
            owned=None if self.given is None else judged.known,
            unjudged=frozenset(judged.queries.names(range(judged.queries.n))) - qrels.query_index.keys(),
        )


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
    scores = pairs.near(pairs.checked(left, docs, judged.rows[block]))
    return picked(pairs.lib, scores, judged.query[mine] - block.start, column)


def _gathered(pairs: Pairs, scores: Array, judged: Judged, block: slice, mine: Codes, offset: int) -> Floats:
    """The scores that judged documents have in a block of scores that holds them."""
    return picked(pairs.lib, scores, judged.query[mine] - block.start, judged.doc[mine] - offset)


def _ahead(keys: Codes, group: Codes, own: Codes, of: Codes) -> Codes:
    """For each judged document, how many tied documents of its group have a greater key."""
    order = np.lexsort((own, of))
    groups, number = np.unique(of, return_inverse=True)
    bounds = np.searchsorted(number[order], np.arange(len(groups) + 1))
    place = np.searchsorted(groups, group)
    asked = place < len(groups)
    asked[asked] = groups[place[asked]] == group[asked]
    above, _, _ = count_above(keys[asked], place[asked], own[order], bounds)
    ahead = np.empty(len(own), dtype=np.int64)
    ahead[order] = above
    return ahead
