"""Judgments placed among the rows of queries and documents, and the scores at which to count for them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tiewise.columns import Codes, Floats
from tiewise.data import Qrels
from tiewise.errors import InputError, listed
from tiewise.scoring.ids import Ids
from tiewise.scoring.pairs import Pairs

__all__ = ["Judged", "Probes", "probes_at"]


class Judged:
    """Judgments with the rows of their queries and documents. Queries without judgments are left aside."""

    def __init__(self, qrels: Qrels, pairs: Pairs, query_ids: Any, doc_ids: Any):
        self.qrels = qrels
        self.queries, self.docs = Ids(query_ids, pairs.queries.n, "query"), Ids(doc_ids, pairs.docs.n, "document")
        place = self.queries.find(qrels.queries)
        self.rows: Codes = np.unique(place[place >= 0])  # the judged queries among ours
        self.place = np.where(place >= 0, np.searchsorted(self.rows, place), -1)  # (n_queries,): into rows, −1 if none
        self.query: Codes = self.place[qrels.query]  # (n_judged,): into rows
        self.doc: Codes = self.docs.find_docs(qrels)[qrels.doc]  # (n_judged,): the document's row, −1 if none
        self.known = (self.query >= 0) & (self.doc >= 0)  # (n_judged,): both are here

    def check(self, *, shard: bool) -> None:
        """Raise if ids do not match at all; a shard may hold no judged document."""
        if len(self.qrels) and self.queries.n and not len(self.rows):
            raise InputError(_strangers("queries", "query_ids", self.queries, self.qrels.queries))
        if not shard and len(self.qrels) and self.docs.n and not (self.doc >= 0).any():
            raise InputError(_strangers("documents", "doc_ids", self.docs, self.qrels.docs))

    def of(self, block: slice) -> Codes:
        """The judgments of a block of queries whose documents are here."""
        return np.flatnonzero(self.known & (self.query >= block.start) & (self.query < block.stop))


class Probes(NamedTuple):
    """The distinct scores of judged documents of a block of queries: a row a query, ascending."""

    judged: Codes  # (n,): the judgments that have a score
    row: Codes  # (n,): where it stands in the table
    column: Codes  # (n,)
    values: NDArray[Any]  # (queries, most): filled up with infinity, which no score reaches


def probes_at(judged: Judged, block: slice, score: Floats) -> Probes:
    """The probes of a block, from the scores of all judgments, NaN where a document has none."""
    inside = (judged.query >= block.start) & (judged.query < block.stop)
    mine = np.flatnonzero(inside & ~np.isnan(score))
    mine = mine[np.lexsort((score[mine], judged.query[mine]))]
    row, value = judged.query[mine] - block.start, score[mine]
    new = np.ones(len(mine), dtype=bool)
    new[1:] = (row[1:] != row[:-1]) | (value[1:] != value[:-1])
    number = np.cumsum(new) - 1  # each judgment's probe among all of the block
    heads = number[np.searchsorted(row, np.arange(block.stop - block.start))[row]] if len(row) else number
    column = number - heads
    values = np.full((block.stop - block.start, int(column.max(initial=0)) + 1), np.inf)
    values[row, column] = value
    return Probes(mine, row, column, values)


def _strangers(what: str, option: str, ours: Ids, theirs: Any) -> str:
    return (
        f"The qrels have none of the {what}. Ids of the {what}: {listed(ours.names(range(min(ours.n, 3))))}; "
        f"of the qrels: {listed(theirs)}. Are {option} missing?"
    )
