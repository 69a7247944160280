"""`Table`: rows grouped by query, ids coded as integers, and one number in each row; the base of `Run` and `Qrels`.

The rows of a query keep their order. Nothing here sorts them by score: `tiewise.ties` alone decides how ties are
broken.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, SupportsFloat

import numpy as np
from numpy.typing import NDArray

from tiewise.caching import cached_property
from tiewise.data.columns import (
    MAX_PROBLEMS,
    Codes,
    Floats,
    check_each,
    encode,
    frame_columns,
    freeze,
    identifier,
    is_descending,
    look_like_ids,
    numbers,
    order_lists,
    positions,
    ranges,
)
from tiewise.data.documents import Documents
from tiewise.data.native import native
from tiewise.data.source import Source
from tiewise.errors import InputError
from tiewise.results.optional import data_frame
from tiewise.results.wording import count_noun

if TYPE_CHECKING:
    from typing_extensions import Self

# The names of columns in data frames and Parquet files, ours first.
QUERY_NAMES = ("query_id", "qid", "q_id", "query-id", "topic_id", "queryid", "question_id", "query", "topic")
DOC_NAMES = (
    *("doc_id", "docno", "docid", "corpus_id", "corpus-id", "did", "d_id", "pid", "item_id", "document_id"),
    *("passage_id", "product_id", "chunk_id", "doc"),
)
MAX_ROWS = 2000  # the first rows, which show whether a column has ids
RANK_NAMES = ("rank", "position")
LABEL_NAMES = (
    *("relevance", "label", "rel", "grade", "gain", "rating", "judgment", "judgement", "qrel", "relevance_label"),
    *("relevance_grade", "is_relevant", "relevant", "score"),
)
#: Words of a name that ends in that of a usual column, and means something else: gold_doc_id, distance_score.
OTHER_WORDS = frozenset(
    {"dist", "distance", "dissimilarity", "label", "gold", "true", "human", "positive", "negative", "target"}
)


class Row(NamedTuple):
    """The ids of a row."""

    query: str
    doc: str


@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """Rows grouped by query: the base of `Run` and `Qrels`."""

    queries: tuple[str, ...]
    offsets: Codes  # (n_queries + 1,): rows offsets[i] to offsets[i + 1] belong to queries[i]
    documents: Documents  # the document id of each row
    value: Floats  # (n_rows,): the score or the label
    source: Source | None = field(default=None, kw_only=True)

    noun: ClassVar[str] = "table"
    value_names: ClassVar[tuple[str, ...]] = ()
    nan_advice: ClassVar[str] = "Drop the row"
    allows_infinity: ClassVar[bool] = False
    duplicate_hint: ClassVar[str] = ""  # what may explain that a document appears twice in a file

    # -- constructors -----------------------------------------------------------------------------------------

    @classmethod
    def from_codes(
        cls,
        query: Codes,
        queries: Sequence[str],
        documents: Documents,
        value: Floats,
        *,
        where: Callable[[int], str] | None = None,
        unique: bool = False,
        offsets: Codes | None = None,
        **columns: Any,
    ) -> Self:
        """A table from coded columns; rows are grouped by query if they are not contiguous.

        `where(row)` is the place of a row in the source for messages (``run.trec:17``). `unique` skips the check for
        documents that appear twice in a query. With `offsets`, `query` has the query of each list, not of each row.
        """
        query, value = np.asarray(query, dtype=np.int64), np.asarray(value, dtype=np.float64)
        query, bounds = _merge_lists(query, np.arange(len(query) + 1) if offsets is None else offsets)
        if columns.get("rank") is not None:
            columns["rank"] = _integer_ranks(columns["rank"])
            if columns["rank"].shape != value.shape:
                raise InputError(f"{len(columns['rank'])} ranks for {len(value)} rows. Give one for every row.")

        def row_of(row: int) -> Row:
            place = int(np.searchsorted(bounds, row, side="right")) - 1
            return Row(queries[query[place]], documents.ids(np.array([row]))[0])

        check_numbers(cls, value, row_of, where)
        contiguous = np.bincount(query, minlength=1).max() <= 1
        if not unique and not (contiguous and documents.known_unique(bounds)):
            key = np.repeat(query, np.diff(bounds)) * max(len(documents.names), 1) + documents.codes
            check_duplicates(cls, key, row_of, where)
        if not contiguous:  # bring the rows of each query together, in order of appearance
            distinct, first = np.unique(query, return_index=True)
            appearance = np.zeros(len(queries), dtype=np.int64)
            appearance[distinct] = first
            lists = np.argsort(appearance[query], kind="stable")
            lengths = np.diff(bounds)[lists]
            rows = ranges(bounds[lists], lengths)
            documents, value = documents.take(rows), value[rows]
            columns = {n: c[rows] if isinstance(c, np.ndarray) else c for n, c in columns.items()}
            query, bounds = _merge_lists(query[lists], np.append(0, np.cumsum(lengths)))
        in_order = np.array_equal(query, np.arange(len(queries)))  # as in a file where queries are contiguous
        names = tuple(queries if in_order else map(queries.__getitem__, query.tolist()))
        return cls(names, bounds, documents, value, **columns)

    @classmethod
    def from_columns(cls, queries: Any, docs: Any, values: Any, **columns: Any) -> Self:
        """A table from three columns of equal length: query ids, document ids and numbers.

        Ids are text or integers (which become text); numbers may come from NumPy, torch or plain lists.
        """
        if columns.get("rank") is not None:
            columns["rank"] = np.array(columns["rank"])
        query, query_ids = encode(queries, "query")
        doc, doc_ids = encode(docs, "document")
        value = numbers(values, cls.value_names[0])
        if not len(query) == len(doc) == len(value):
            lengths = count_noun(len(query), "query", "queries"), count_noun(len(doc), "document")
            raise InputError(
                f"Columns of different lengths: {', '.join(lengths)}, {count_noun(len(value), cls.value_names[0])}. "
                "Give one of each for every row."
            )
        return cls.from_codes(query, query_ids, Documents(doc, doc_ids), value, **columns)

    @classmethod
    def from_dict(cls, table: Mapping[Any, Mapping[Any, SupportsFloat]]) -> Self:
        """A table from ``{query: {document: number}}``, as pytrec_eval, ranx and BEIR use it."""
        plain = _plain_columns(table)
        value, offsets = plain or _mapped_columns(cls, table)
        ids: list[Any] = list(chain.from_iterable(table.values()))
        if plain or _all_text(table):
            built = cls(tuple(table), offsets, Documents.of_rows(ids), value)
            check_numbers(cls, value, built.row, None)
            return built
        queries = tuple(identifier(query, "query") for query in table)
        if len(set(queries)) < len(queries):
            raise InputError(f"Two queries of the {cls.noun} have the same id as text. Keep one of them.")
        built = cls(queries, offsets, Documents(*encode(ids, "document")), value)
        check_numbers(cls, value, built.row, None)
        built.check_unique()  # distinct keys may become one id: 1 and "1"
        return built

    def check_unique(self) -> None:
        """Raise if a query has a document twice."""
        check_duplicates(type(self), self.query * max(len(self.docs), 1) + self.doc, self.row, None)

    @classmethod
    def from_frame(cls, frame: Any) -> Self:
        """A table from a pandas or polars data frame, an Arrow table, or any Arrow stream.

        Columns are found by name: ``query_id, doc_id, score`` and the names that PyTerrier (``qid, docno``),
        MS MARCO and BEIR use. Arrow's memory is not copied if possible: do not change an array that Arrow uses.
        """
        return cls._from_named(*frame_columns(frame))

    @classmethod
    def _from_named(cls, names: Sequence[str], fetch: Callable[[str], Any]) -> Self:
        """A table from columns by name, which `fetch` gives."""
        query, doc = fetch(pick_column(cls, names, QUERY_NAMES)), fetch(cls._doc_column(names, fetch))
        return cls.from_columns(query, doc, cls._values(names, fetch), **cls._optional_columns(names, fetch))

    @classmethod
    def _doc_column(cls, names: Sequence[str], fetch: Callable[[str], Any]) -> str:
        """The name of the column of documents; one called document may have their texts."""
        name = next((name for name in names if fold_name(name) == "document"), None)
        if name is None or find_name(names, DOC_NAMES) is not None:
            return pick_column(cls, names, DOC_NAMES)
        first = fetch(name)[:MAX_ROWS]
        if look_like_ids(next((getattr(first, to)() for to in ("to_pylist", "tolist") if hasattr(first, to)), first)):
            return name
        raise InputError(
            f"The {cls.noun} has no column 'doc_id', and '{name}' looks like texts. If it has the ids, rename it to "
            "doc_id."
        )

    @classmethod
    def _values(cls, names: Sequence[str], fetch: Callable[[str], Any]) -> Any:
        """The column of numbers."""
        return fetch(pick_column(cls, names, cls.value_names))

    @classmethod
    def _optional_columns(cls, names: Sequence[str], fetch: Callable[[str], Any]) -> dict[str, Any]:
        """The columns that not every table of this class has."""
        return {}

    @classmethod
    def from_rows(cls, rows: Iterable[Any]) -> Self:
        """A table from ``(query, document, number)`` tuples, such as ir_measures' `ScoredDoc` and `Qrel`.

        Rows may also be mappings with the names of columns, as in `from_frame`.
        """
        rows = list(rows)
        if rows and isinstance(rows[0], Mapping):
            return cls._from_named(*mapped_rows(rows))
        if (fields := row_fields(rows)) is not None:
            named = dict(zip(fields, zip(*rows, strict=True), strict=True))
            return cls._from_named(list(fields), lambda name: list(named[name]))
        columns = list(zip(*rows, strict=False))
        if columns and len(columns) != 3:
            raise InputError(f"The rows have {len(columns)} values. Give (query, document, {cls.value_names[0]}).")
        queries, docs, values = columns[:3] if columns else ((), (), ())
        return cls.from_columns(list(queries), list(docs), list(values))

    # -- lists of numbers, one for each query ---------------------------------------------------------------

    @cached_property
    def query_index(self) -> dict[str, int]:
        """The position of each query id."""
        return dict(zip(self.queries, range(len(self.queries)), strict=True))

    @cached_property
    def descending(self) -> bool:
        """Whether every list is sorted by descending score."""
        return is_descending(self.value, self.offsets)

    @property
    def best_first(self) -> Codes:
        """All rows, list by list and best first."""
        return np.arange(len(self)) if self.descending else self._order

    @cached_property
    def _order(self) -> Codes:
        return order_lists(self.value, self.offsets)

    @cached_property
    def _same_as_previous(self) -> NDArray[np.bool_]:
        """Whether each score of the sorted lists equals the previous one; the last is False, (n_rows + 1,)."""
        ordered = self.value if self.descending else self.value[self._order]
        same = np.zeros(len(ordered) + 1, dtype=bool)
        same[1:-1] = ordered[1:] == ordered[:-1]
        same[self.offsets] = False
        return same

    @property
    def n_groups(self) -> int:
        """The number of tie groups, single documents included."""
        return len(self) - int(np.count_nonzero(self._same_as_previous))

    @cached_property
    def tied_rows(self) -> int:
        """The number of rows that share their score with another row of the same query."""
        same = self._same_as_previous
        return int(np.count_nonzero(same[1:] | same[:-1]))

    @property
    def tied_share(self) -> float:
        """The share of rows that are tied, 0 to 1."""
        return self.tied_rows / len(self) if len(self) else 0.0

    # -- conversions ----------------------------------------------------------------------------------------

    def __post_init__(self) -> None:
        for name, column in vars(self).items():
            if isinstance(column, np.ndarray):
                object.__setattr__(self, name, freeze(column))

    def __len__(self) -> int:
        return len(self.value)

    def __repr__(self) -> str:
        queries, rows = count_noun(len(self.queries), "query", "queries"), count_noun(len(self), "row")
        return f"<{type(self).__name__}: {queries}, {rows}>"

    def _repr_html_(self) -> str:
        from tiewise.results.html import render_html
        from tiewise.results.model import PREVIEW_ROWS, Section
        from tiewise.results.model import Table as ShownTable

        queries, docs, values = zip(*islice(self, PREVIEW_ROWS), strict=True) if len(self) else ((), (), ())
        columns = {"query": queries, "document": docs, self.value_names[0]: [f"{value:.9g}" for value in values]}
        source = [] if self.source is None else [self.source.path]
        return render_html(Section([*source, ShownTable.of_columns(columns, total=len(self))], self._title))

    @property
    def _title(self) -> str:
        """The heading in a notebook."""
        return repr(self).strip("<>")

    @cached_property
    def query(self) -> Codes:
        """The position in `queries` of each row's query, (n_rows,)."""
        return np.repeat(np.arange(len(self.queries)), np.diff(self.offsets))

    @cached_property
    def doc_index(self) -> dict[str, int]:
        """The code of each document id."""
        return dict(zip(self.docs, range(len(self.docs)), strict=True))

    def row(self, row: int) -> Row:
        """The query and the document of one row."""
        place = int(np.searchsorted(self.offsets, row, side="right")) - 1
        return Row(self.queries[place], self.documents.ids(np.array([row]))[0])

    @property
    def doc(self) -> Codes:
        """The code of each row's document, (n_rows,)."""
        return self.documents.codes

    @property
    def docs(self) -> Sequence[str]:
        """The distinct document ids, in the order of their codes."""
        return self.documents.names

    def ids(self, rows: NDArray[Any]) -> list[str]:
        """The document ids of some rows."""
        return self.documents.ids(rows)

    def _codes_of(self, other: Table) -> Codes:
        """The code of each document of another table, −1 if it has none. Only the smaller table is indexed."""
        if "doc_index" in vars(self) or len(self.docs) < len(other.docs):
            return positions(self.doc_index, other.docs)
        place = positions(other.doc_index, self.docs)
        known = np.flatnonzero(place >= 0)
        code = np.full(len(other.docs), -1)
        code[place[known]] = known
        return code

    def __iter__(self) -> Iterator[tuple[str, str, float]]:
        for place, query in enumerate(self.queries):
            rows = np.arange(self.offsets[place], self.offsets[place + 1])
            docs = self.documents.ids(rows)
            yield from ((query, doc, value) for doc, value in zip(docs, self.value[rows].tolist(), strict=True))

    def to_dict(self) -> dict[str, dict[str, float]]:
        """``{query: {document: number}}``, rows in their order."""
        table: dict[str, dict[str, float]] = {query: {} for query in self.queries}
        for query, doc, value in self:
            table[query][doc] = value
        return table

    def to_frame(self) -> Any:
        """A data frame of pandas (or polars) with the columns query_id, doc_id, and score or relevance.

        Judgments for subtopics have a column subtopic, too.
        """
        return data_frame(self.named_columns())

    def named_columns(self) -> dict[str, Any]:
        """The columns by name: query_id, doc_id, and score or relevance."""
        queries = [self.queries[place] for place in self.query.tolist()]
        return {"query_id": queries, "doc_id": self.ids(np.arange(len(self))), self.value_names[0]: self.value}

    def take(self, rows: NDArray[Any], **fields: Any) -> Self:
        """The table with only these rows (ascending), and with other fields. A query may keep no row."""
        offsets = np.searchsorted(rows, self.offsets)
        columns = {name: getattr(self, name, None) for name in ("rank", "subtopics")}
        optional = {name: column.take(rows) for name, column in columns.items() if column is not None}
        documents, value = self.documents.take(rows), self.value[rows]
        return replace(self, offsets=offsets, documents=documents, value=value, **optional, **fields)


def row_fields(rows: Sequence[Any]) -> Sequence[str] | None:
    """The names of the values of named tuples, if they name a query and a document."""
    fields = getattr(rows[0], "_fields", None) if rows else None
    known = fields and find_name(fields, QUERY_NAMES) and find_name(fields, DOC_NAMES)
    return fields if known and all(getattr(row, "_fields", None) == fields for row in rows) else None


def mapped_rows(rows: list[Any]) -> tuple[list[str], Callable[[str], Any]]:
    """The names of the columns of rows that are mappings, and a function that fetches one of them."""

    def fetch(name: str) -> list[Any]:
        try:
            return [row[name] for row in rows]
        except (KeyError, TypeError, IndexError):
            place = next(place for place, row in enumerate(rows) if not isinstance(row, Mapping) or name not in row)
            raise InputError(f"row {place} has no {name!r}, which the first row has.") from None

    return [name for name in rows[0] if isinstance(name, str)], fetch


def _plain_columns(table: Mapping[Any, Any]) -> tuple[Floats, Codes] | None:
    """The numbers of a plain ``{query: {document: number}}`` and the offsets of its lists; None for other mappings."""
    module = native()
    if module is None or type(table) is not dict:
        return None
    block = module.Block()
    return (block.take_value(), block.offsets) if block.read_lists(list(table.items())) else None


def _mapped_columns(cls: type[Table], table: Mapping[Any, Mapping[Any, Any]]) -> tuple[Floats, Codes]:
    """The same for any mapping; raises if a value is not a number."""
    check_mapping(cls, table)
    lengths = np.fromiter(map(len, table.values()), np.int64, len(table))
    values = array("d")  # stricter than NumPy: neither text nor None is a number
    try:
        for docs in table.values():
            values.extend(docs.values())
    except (TypeError, ValueError, OverflowError):
        _check_values(cls, table)
        raise
    column = np.frombuffer(values) if values else np.zeros(0)
    if (np.abs(column) >= 2**53).any():  # an integer that float64 cannot hold?
        _check_values(cls, table)
    return column, np.concatenate([[0], np.cumsum(lengths)])


def _all_text(table: Mapping[Any, Any]) -> bool:
    return set(map(type, table)) <= {str} and all(
        set(map(type, docs)) <= {str} for docs in table.values() if isinstance(docs, Mapping)
    )


def check_mapping(cls: type[Table], table: Mapping[Any, Any]) -> None:
    """Raise if a query has something other than a mapping."""
    for query, docs in table.items():
        if not isinstance(docs, Mapping):
            raise InputError(
                f"The {cls.noun} has a {type(docs).__name__} for query {query!r}. "
                f"Give {{query: {{document: {cls.value_names[0]}}}}}."
            )


def _check_values(cls: type[Table], table: Mapping[Any, Mapping[Any, float]]) -> None:
    values = ((f"query {query!r}, document {doc!r}", docs[doc]) for query, docs in table.items() for doc in docs)
    check_each(cls.value_names[0], values)


def _merge_lists(query: Codes, offsets: Codes) -> tuple[Codes, Codes]:
    """The query and the offsets of lists, where neighbours with the same query become one."""
    heads = np.flatnonzero(np.diff(query, prepend=-1))
    return query[heads], np.append(offsets[heads], offsets[-1])


def swapped_message(cls: type[Table], evidence: str = "") -> str:
    """The end of a message about a run in the place of judgments, or the reverse."""
    found, expected = ("qrels", "a run") if cls.noun == "run" else ("a run", "qrels")
    option = "; `tiewise audit` takes them as --qrels" if cls.noun == "run" else ""
    return f"{found}{evidence and f' ({evidence})'}, not {expected}. Where both are given, qrels come first{option}."


def find_name(columns: Iterable[str], names: Sequence[str]) -> str | None:
    """The column that has the first of the names that is there, None if there is none.

    Names that differ only in case, blanks, ``_`` and ``-`` count as well; else the only column that ends in the first
    name, or in similarity if that is one of them.

    >>> find_name(["QueryId", "bm25_score"], ["query_id"]), find_name(["QueryId", "bm25_score"], ["score"])
    ('QueryId', 'bm25_score')
    """
    columns = list(columns)
    if (exact := next((name for name in names if name in columns), None)) is not None:
        return exact
    folded = [fold_name(name) for name in columns]
    for name in map(fold_name, names):
        if name in folded:
            return columns[folded.index(name)]
    last = tuple(fold_name(name) for name in (names[0], "similarity") if name in names and name != "relevance")
    ending = [name for name, text in zip(columns, folded, strict=True) if text.endswith(last)]
    is_other = len(ending) != 1 or not OTHER_WORDS.isdisjoint(re.split(r"[\s_-]", ending[0].lower()))
    return None if is_other else ending[0]


@lru_cache(maxsize=4096)  # the names that are looked for are few
def fold_name(name: str) -> str:
    """The name of a column without what people write differently: "Query ID" is queryid."""
    return re.sub(r"[\s_-]+", "", name).lower()


def pick_column(cls: type[Table], columns: Iterable[str], names: Sequence[str]) -> str:
    """The column with one of the names, the first that is there: see `find_name`."""
    columns = list(columns)
    name = find_name(columns, names)
    if name is not None and columns.count(name) > 1:
        raise InputError(f"The {cls.noun} has two columns '{name}'. Keep one of them.")
    if name is not None:
        return name
    distance = next((name for name in columns if "dist" in fold_name(name)), None) if names == cls.value_names else None
    advice = f" Of distances, rename {distance} to {names[0]} and add distances=True." if distance else ""
    raise InputError(
        f"The {cls.noun} has no column '{names[0]}' (or {', '.join(names[1:4])} ...). "
        f"It has: {', '.join(columns) or 'none'}.{advice}"
    )


def _integer_ranks(ranks: Any) -> NDArray[np.int64]:
    """A column of ranks as int64, or an error if one of them is not an integer."""
    column = np.asarray(ranks)
    if column.dtype.kind in "iu" and not (column.size and int(column.max()) >= 2**63):
        return column.astype(np.int64, copy=False)
    if column.dtype.kind == "f" and (np.abs(column) < 2**53).all() and (column == np.round(column)).all():
        return column.astype(np.int64)
    raise InputError("The ranks are not all integers. Leave the column out, or number the documents of each list.")


def check_numbers(
    cls: type[Table], value: Floats, row_of: Callable[[int], Row], where: Callable[[int], str] | None
) -> None:
    """Raise if a number is NaN, or infinite where that is not allowed."""
    bad = np.flatnonzero(np.isnan(value) if cls.allows_infinity else ~np.isfinite(value))
    if len(bad):
        raise InputError(
            *(
                f"{where(row) + ': ' if where else ''}{cls.value_names[0]} '{value[row]}' for query "
                f"'{row_of(row).query}', document '{row_of(row).doc}'. {cls.nan_advice}."
                for row in bad[:MAX_PROBLEMS].tolist()
            )
        )


def check_duplicates(
    cls: type[Table],
    key: Codes,
    row_of: Callable[[int], Row],
    where: Callable[[int], str] | None,
    more: Callable[[int], str] = lambda row: "",
) -> None:
    """Raise if a key appears twice; `more(row)` is what stands after the query in the message."""
    ordered = np.sort(key)
    if (ordered[1:] == ordered[:-1]).any():
        order = np.argsort(key, kind="stable")
        same = np.append(False, key[order[1:]] == key[order[:-1]])
        second = order[same & ~np.append(False, same[:-1])]  # one row for a document that appears three times
        rows = np.sort(second)[:MAX_PROBLEMS].tolist()
        messages = (
            f"{where(row) + ': ' if where else ''}document '{row_of(row).doc}' appears twice in the {cls.noun} for "
            f"query '{row_of(row).query}'{more(row)}. Keep one of the rows."
            for row in rows
        )
        hints = [cls.duplicate_hint] if cls.duplicate_hint and where and not more(rows[0]) else []
        raise InputError(*hints, *messages)
