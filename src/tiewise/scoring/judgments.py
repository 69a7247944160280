"""The ids of queries and documents, where the judged ones are among the rows of vectors, and thresholds for them.

Ids are given, or ``"0"``, ``"1"``, … in the order of the rows.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence
from operator import eq
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tiewise.caching import cached_property
from tiewise.data.columns import ID_OPTIONS, Floats, identifiers, is_first, positions, warn_of_row_numbers
from tiewise.data.documents import Documents, RowNumbers
from tiewise.data.judgments import Qrels
from tiewise.data.table import Table
from tiewise.errors import InputError
from tiewise.results.wording import count_noun, list_examples
from tiewise.scoring.blocks import Scorer
from tiewise.scoring.spans import Indices, as_slice

IdsLike: TypeAlias = Iterable[str | int] | NDArray[Any] | None

POWERS_OF_TEN = 10 ** np.arange(19, dtype=np.int64)


class Ids:
    """The ids of all rows, one per row. Without given ids, the id of a row is its number, and the ids are made up.

    >>> Ids(None, 3, "document").of_rows([0, 2])
    ['0', '2']
    """

    def __init__(self, given: IdsLike, n: int, what: str):
        self.n, self.what = n, what
        self.are_made_up = given is None
        self.are_row_numbers = self.are_made_up or isinstance(given, RowNumbers)
        self.all: Sequence[str] = RowNumbers(n)  #: the ids of all rows; row numbers become text when they are used
        self._last_table: tuple[weakref.ref[Table] | None, Indices] = None, np.zeros(0, np.int64)
        if given is None or isinstance(given, RowNumbers):
            return
        values = given.tolist() if hasattr(given, "tolist") else given
        if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
            raise InputError(f"The {what} ids must be a list with one id per row, not {values!r}.")
        self.all = identifiers(values, what)
        if len(self.all) != n:
            counts = f"{count_noun(len(self.all), f'{what} id')} for {count_noun(n, f'{what} vector')}"
            raise InputError(f"{counts}. Give one id per row.")
        self._row_by_id = dict(zip(self.all, range(n), strict=True))
        if len(self._row_by_id) < n:
            seen: set[str] = set()
            repeated = [one for one in self.all if one in seen or seen.add(one)]  # type: ignore[func-returns-value]
            occurs = count_noun(len(repeated), f"{what} id occurs", f"{what} ids occur")
            raise InputError(f"{occurs} more than once: {list_examples(repeated)}. Ids must be distinct.")

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_last_table": (None, np.zeros(0, np.int64))}  # weak references cannot be pickled

    @property
    def digits(self) -> int:
        """The number of digits of the last row."""
        return len(str(max(self.n - 1, 1)))

    def of_rows(self, rows: Any) -> list[str]:
        """The ids of some rows."""
        numbers = rows.tolist() if hasattr(rows, "tolist") else list(rows)
        return [self.all[row] for row in numbers]

    def find_rows(self, ids: Any) -> Indices:
        """The row of each id, −1 where there is none."""
        if self.are_row_numbers:
            return self._parse_rows(list(ids))
        return positions(self._row_by_id, ids)

    def find_doc_rows(self, table: Table) -> Indices:
        """The row of each document of a table, −1 where there is none. It is kept for the next call with the table."""
        last, rows = self._last_table
        if last is None or last() is not table:
            rows = self.find_rows(table.docs)
            self._last_table = weakref.ref(table), rows
        return rows

    def sort_keys(
        self, rows: Indices, other_rows: Indices, other_ids: Callable[[], list[str]]
    ) -> tuple[Indices, Indices]:
        """Integers that sort like the ids, by code point, of some rows and of other documents.

        `other_rows` is −1 for a document that is not here. `other_ids` is called only if rows are not enough.
        """
        if self.are_row_numbers and not (other_rows < 0).any():
            keys = self._decimal_keys(np.concatenate([rows, other_rows]))
            return keys[: len(rows)], keys[len(rows) :]
        others = other_ids()
        if len(rows) < self.n // 16:
            distinct, inverse = np.unique(rows, return_inverse=True)
        else:  # a pass over all rows costs less than sorting these
            selected = np.zeros(self.n, dtype=bool)
            selected[rows] = True
            distinct, inverse = np.flatnonzero(selected), (np.cumsum(selected) - 1)[rows]
        ids = self.of_rows(distinct)
        order = {one: position for position, one in enumerate(sorted({*ids, *others}))}
        return positions(order, ids)[inverse], positions(order, others)

    def _decimal_keys(self, rows: Indices) -> Indices:
        """Integers that sort like the rows in decimal notation: by their digits, then by the number of digits."""
        lengths = _decimal_lengths(rows)
        return rows * POWERS_OF_TEN[self.digits - lengths] * (self.digits + 1) + lengths

    def _parse_rows(self, ids: list[str]) -> Indices:
        """The rows whose numbers are given: "7", but neither "07" nor "+7"."""
        if len(ids) <= self.n and all(map(eq, ids, map(str, range(self.n)))):  # stops at the first difference
            return np.arange(len(ids))
        digits = "".join(ids)
        if digits.isascii() and digits.isdecimal() and max(map(len, ids)) < len(POWERS_OF_TEN):
            rows = np.fromstring(" ".join(ids), np.int64, sep=" ")
            # If all numbers together have as many digits as the text, each id is what str() makes of its number.
            if len(rows) == len(ids) and int(_decimal_lengths(rows).sum()) == len(digits):
                return np.where(rows < self.n, rows, -1)
        return np.fromiter(map(self._parse_row, ids), np.int64, len(ids))

    def _parse_row(self, text: str) -> int:
        row = int(text) if text.isdecimal() and text.isascii() else -1
        return row if 0 <= row < self.n and str(row) == text else -1


def _decimal_lengths(rows: Indices) -> Indices:
    return np.maximum(np.searchsorted(POWERS_OF_TEN, rows, side="right"), 1)


class Judgments:
    """The judgments of the qrels with the rows of their queries and documents.

    Queries without judgments are not scored, unless the qrels may have judgments for all of them. Only the rows of the
    queries have to be known before a device starts, so everything else is computed when it is first needed.
    """

    def __init__(self, qrels: Qrels, query_ids: Ids, doc_ids: Ids):
        self.qrels, self.query_ids, self.doc_ids = qrels, query_ids, doc_ids
        all_rows = len(qrels.queries) >= query_ids.n
        #: (n_scored,): the rows of the queries that are scored.
        self.query_rows = np.arange(query_ids.n) if all_rows else np.unique(self._row[self._row >= 0])

    @cached_property
    def _row(self) -> Indices:
        """(n_queries,): the row of each query of the qrels, −1 if it has none."""
        return self.query_ids.find_rows(self.qrels.queries)

    @cached_property
    def position(self) -> Indices:
        """(n_queries,): the position of each query of the qrels in `query_rows`, −1 if it has none."""
        if len(self.query_rows) == self.query_ids.n:
            return self._row
        return np.where(self._row >= 0, np.searchsorted(self.query_rows, self._row), -1)

    @cached_property
    def query(self) -> Indices:
        """(n_judged,): the position of the query in `query_rows`, −1 if it has none."""
        return self.position[self.qrels.query]

    @cached_property
    def doc(self) -> Indices:
        """(n_judged,): the row of the document, −1 if it has none."""
        return self.doc_ids.find_doc_rows(self.qrels)[self.qrels.doc]

    @cached_property
    def has_vectors(self) -> NDArray[np.bool_]:
        """(n_judged,): whether both the query and the document have a vector here."""
        return (self.query >= 0) & (self.doc >= 0)

    @cached_property
    def unjudged(self) -> frozenset[str]:
        """The queries with a vector and without judgments."""
        if np.count_nonzero(self._row >= 0) == self.query_ids.n:
            return frozenset()
        return frozenset(self.query_ids.of_rows(range(self.query_ids.n))) - self.qrels.query_index.keys()

    @cached_property
    def _by_query(self) -> tuple[Indices, Indices]:
        """The judgments of scored queries in the order of `query_rows`, and the positions of their queries."""
        query = self.query
        if (query[1:] >= query[:-1]).all() and (query[:1] >= 0).all():
            return np.arange(len(query)), query
        order = np.argsort(query, kind="stable")
        query = query[order]
        return order[query >= 0], query[query >= 0]

    def score(self, scorer: Scorer) -> Floats:
        """The scores of the judgments that have vectors."""
        judged = np.flatnonzero(self.has_vectors)
        return scorer.score_pairs(self.query_rows, self.query[judged], self.doc[judged])

    def check_scores(self, scores: Any) -> Floats:
        """The scores of the judgments from all shards, as an array; NaN for queries that are not here."""
        try:
            array = np.array(scores, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError("scores must be numbers, one per row of the qrels: see judged_scores().") from None
        n = len(self.qrels)
        if array.shape != (n,):
            raise InputError(f"scores have shape {array.shape}, but the qrels have {n} rows. Give one score per row.")
        return np.where(self.query >= 0, array, np.nan)

    def check_ids(self, *, docs: bool) -> None:
        """Raise if no judged query has a vector, or if ids were made up and one of them has none; likewise `docs`."""
        _check_ids(self.query_ids, "queries", self.qrels.queries, self._row >= 0)
        if docs:
            _check_ids(self.doc_ids, "documents", self.qrels.docs, self.doc_ids.find_doc_rows(self.qrels) >= 0)

    def rows_of_block(self, block: slice) -> Any:
        """The rows of a block of queries: a slice where they are contiguous, which saves a copy."""
        if len(self.query_rows) == self.query_ids.n:
            return block
        return as_slice(self.query_rows[block])

    def queries_in_block(self, block: slice) -> tuple[Indices, Indices]:
        """The queries of the qrels that are in a block, and their positions in it."""
        queries = np.flatnonzero((self.position >= block.start) & (self.position < block.stop))
        return queries, self.position[queries] - block.start

    def slots(self, block: slice, score: Floats | None = None) -> Slots:
        """Slots for the judgments of a block that have vectors, or a `score` from another shard."""
        order, query = self._by_query
        part = slice(*np.searchsorted(query, [block.start, block.stop]))
        judged, row = order[part], query[part] - block.start
        has_vectors = self.has_vectors[judged]
        has_score = has_vectors if score is None else has_vectors | ~np.isnan(score[judged])
        if not has_score.all():
            judged, row, has_vectors = judged[has_score], row[has_score], has_vectors[has_score]
        starts = np.searchsorted(row, np.arange(block.stop - block.start + 1))
        column = np.arange(len(judged)) - starts[row]
        return Slots(judged, row, column, has_vectors, (len(starts) - 1, max(int(np.diff(starts).max(initial=0)), 1)))


class Slots(NamedTuple):
    """A slot for each judgment of a block of queries, in a table with one row per query."""

    judged: Indices  # (n,): the judgments, ordered by query
    row: Indices  # (n,)
    column: Indices  # (n,)
    has_vectors: NDArray[np.bool_]  # (n,)
    shape: tuple[int, int]  # of the table

    @property
    def flat_indices(self) -> Indices:
        """(n,): indices into the flattened table, ascending."""
        return self.row * self.shape[1] + self.column

    def to_table(self, values: Floats) -> Floats:
        """The table of one value per judgment; infinity elsewhere."""
        table = np.full(self.shape, np.inf)
        table[self.row, self.column] = values
        return table

    def take(self, some: NDArray[Any]) -> Slots:
        """Some of the slots, in the same table."""
        return Slots(self.judged[some], self.row[some], self.column[some], self.has_vectors[some], self.shape)

    def group_ties(self, score: Floats) -> tuple[Indices, Indices]:
        """The number of the tie group of each slot, and one slot of each group; groups are ordered by row and score."""
        order = np.lexsort((score, self.row))
        first = is_first(self.row[order], score[order])
        group = np.empty(len(order), dtype=np.int64)
        group[order] = np.cumsum(first) - 1
        return group, order[first]


def with_self(qrels: Qrels) -> tuple[Qrels, Indices, Indices]:
    """The judged documents and the one with the id of each query, the rows of the judged ones, and those of the others.

    Labels are left out.
    """
    ids, docs, offsets = qrels.ids(np.arange(len(qrels))), list[str](), [0]
    rows, own = list[int](), list[int]()
    for query, first, last in zip(qrels.queries, qrels.offsets.tolist(), qrels.offsets[1:].tolist(), strict=False):
        judged = ids[first:last]
        rows.extend(range(len(docs), len(docs) + len(judged)))
        docs += judged if query in judged else [*judged, query]
        own.append(docs.index(query, offsets[-1]))
        offsets.append(len(docs))
    whole = Qrels(qrels.queries, np.array(offsets), Documents.of_rows(docs), np.zeros(len(docs)))
    return whole, np.array(rows, dtype=np.int64), np.array(own, dtype=np.int64)


def _check_ids(ids: Ids, whose: str, judged: Sequence[str], found: NDArray[np.bool_]) -> None:
    """Raise if no judged id is here, or if ids were made up and one is not; warn if they were made up."""
    option = ID_OPTIONS[ids.what]
    if not len(judged) or not ids.n or (found.all() and not ids.are_made_up):
        return
    if not found.any():
        own = list_examples(ids.of_rows(range(min(ids.n, 3))))
        raise InputError(
            f"The qrels have none of the {whose}. Ids of the {whose}: {own}; of the qrels: {list_examples(judged)}. Is "
            f"{option} missing?"
        )
    if ids.are_made_up and not found.all():
        missing = [judged[place] for place in np.flatnonzero(~found).tolist()]
        raise InputError(
            f"The {whose} have no ids and are numbered 0 to {ids.n - 1:,}, but the qrels have others: "
            f"{list_examples(missing)}. Give {option}."
        )
    if ids.are_made_up:
        warn_of_row_numbers(ids.what, judged)
