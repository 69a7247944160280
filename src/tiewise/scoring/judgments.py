"""Judgments placed among the rows of queries and documents, and the scores at which to count for them."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tiewise.data.columns import Codes, Floats
from tiewise.data.runs import Qrels
from tiewise.errors import InputError, listed
from tiewise.scoring.ids import Ids

__all__ = ["Judged", "Slots"]


class Judged:
    """Judgments with the rows of their queries and documents.

    Queries without judgments are left aside, unless the qrels may well have them all. Only which queries are scored has
    to be known before a device is at work, so the rest is found when it is first asked for.
    """

    def __init__(self, qrels: Qrels, queries: int, docs: int, query_ids: Any, doc_ids: Any):
        self.qrels = qrels
        self.queries, self.docs = Ids(query_ids, queries, "query"), Ids(doc_ids, docs, "document")
        every = len(qrels.queries) >= self.queries.n
        self.rows = np.arange(self.queries.n) if every else np.unique(self._row[self._row >= 0])  # which are scored

    @cached_property
    def _row(self) -> Codes:
        """(n_queries,): the row of each query of the qrels, −1 if none."""
        return self.queries.find(self.qrels.queries)

    @cached_property
    def place(self) -> Codes:
        """(n_queries,): where it stands in rows, −1 if nowhere."""
        if len(self.rows) == self.queries.n:
            return self._row
        return np.where(self._row >= 0, np.searchsorted(self.rows, self._row), -1)

    @cached_property
    def query(self) -> Codes:
        """(n_judged,): into rows, −1 if none."""
        return self.place[self.qrels.query]

    @cached_property
    def doc(self) -> Codes:
        """(n_judged,): the document's row, −1 if none. Found when first asked for: a device may be at work by then."""
        return self.docs.find_docs(self.qrels)[self.qrels.doc]

    @cached_property
    def known(self) -> NDArray[np.bool_]:
        """(n_judged,): both are here."""
        return (self.query >= 0) & (self.doc >= 0)

    @cached_property
    def unjudged(self) -> frozenset[str]:
        """Our queries that have no judgments."""
        if np.count_nonzero(self._row >= 0) == self.queries.n:
            return frozenset()
        return frozenset(self.queries.names(range(self.queries.n))) - self.qrels.query_index.keys()

    @cached_property
    def _by_query(self) -> tuple[Codes, Codes]:
        """The judgments of our queries in the order of these, and the rows of those."""
        query = self.query
        if (query[1:] >= query[:-1]).all() and (query[:1] >= 0).all():
            return np.arange(len(query)), query
        order = np.argsort(query, kind="stable")
        query = query[order]
        return order[query >= 0], query[query >= 0]

    def check_queries(self) -> None:
        """Raise if no judged query is here."""
        if len(self.qrels) and self.queries.n and not (self._row >= 0).any():
            raise InputError(_strangers("queries", "query_ids", self.queries, self.qrels.queries))

    def check_docs(self) -> None:
        """Raise if no judged document is here."""
        if len(self.qrels) and self.docs.n and not (self.doc >= 0).any():
            raise InputError(_strangers("documents", "doc_ids", self.docs, self.qrels.docs))

    def rows_of(self, block: slice) -> Any:
        """The rows of a block of queries: a slice if they stand together, which spares a copy."""
        if len(self.rows) == self.queries.n:
            return block
        rows = self.rows[block]
        together = len(rows) and rows[-1] - rows[0] == len(rows) - 1
        return slice(int(rows[0]), int(rows[-1]) + 1) if together else rows

    def of(self, block: slice) -> Codes:
        """The judgments of a block of queries whose documents are here."""
        mine = self._in(block)
        return mine[self.known[mine]]

    def slots(self, block: slice, score: Floats | None = None) -> Slots:
        """Slots for the judgments of a block whose documents are here, and for those that have a score all the same."""
        mine = self._in(block)
        mine = mine[self.known[mine] if score is None else self.known[mine] | ~np.isnan(score[mine])]
        row = self.query[mine] - block.start
        heads = np.searchsorted(row, np.arange(block.stop - block.start))
        return Slots(mine, row, np.arange(len(mine)) - heads[row], self.known[mine], block.stop - block.start)

    def asked(self, block: slice) -> tuple[Codes, Codes]:
        """The queries of the qrels that are in a block, and where they stand in it."""
        mine = np.flatnonzero((self.place >= block.start) & (self.place < block.stop))
        return mine, self.place[mine] - block.start

    def _in(self, block: slice) -> Codes:
        order, query = self._by_query
        return order[np.searchsorted(query, block.start) : np.searchsorted(query, block.stop)]


class Slots(NamedTuple):
    """A place for each judgment of a block in a table with a row a query."""

    judged: Codes  # (n,): the judgments, by query
    row: Codes  # (n,): where they stand
    column: Codes  # (n,)
    known: NDArray[np.bool_]  # (n,): whether the document is here
    rows: int

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the table."""
        return self.rows, int(self.column.max(initial=0)) + 1

    @property
    def places(self) -> Codes:
        """(n,): the places in the table, row after row; they ascend."""
        return self.row * self.shape[1] + self.column

    def table(self, values: Floats | float) -> Floats:
        """The table of a value for each judgment, filled up with infinity."""
        found = np.full(self.shape, np.inf)
        found[self.row, self.column] = values
        return found

    def where(self, some: NDArray[Any]) -> Slots:
        """Some of the slots, of the same table."""
        return Slots(self.judged[some], self.row[some], self.column[some], self.known[some], self.rows)

    def groups(self, score: Floats) -> tuple[Codes, Codes]:
        """The tie group of each judgment, as a number, and the first judgment of each group; both into the slots."""
        order = np.lexsort((score, self.row))
        row, value = self.row[order], score[order]
        new = np.ones(len(order), dtype=bool)
        new[1:] = (row[1:] != row[:-1]) | (value[1:] != value[:-1])
        number = np.empty(len(order), dtype=np.int64)
        number[order] = np.cumsum(new) - 1
        return number, order[new]


def _strangers(what: str, option: str, ours: Ids, theirs: Any) -> str:
    return (
        f"The qrels have none of the {what}. Ids of the {what}: {listed(ours.names(range(min(ours.n, 3))))}; "
        f"of the qrels: {listed(theirs)}. Are {option} missing?"
    )
