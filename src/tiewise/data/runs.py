"""`Run` and `Qrels`: ranked lists and judgments as frozen columns.

Both are one table: rows grouped by query, ids coded as integers, one number a row (a score or a label). Row
order within a query is the order in which the rows were given, and nothing here ever sorts by score: what a
tie is and how it is broken is decided in `tiewise.ties` alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, islice, repeat
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tiewise.data.columns import (
    Codes,
    Floats,
    descending,
    encode,
    frame_columns,
    frozen,
    identifier,
    number_problem,
    numbers,
    positions,
    project,
    sorted_lists,
)
from tiewise.data.native import native
from tiewise.errors import InputError
from tiewise.tables.optional import data_frame
from tiewise.tables.wording import count_noun

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["Qrels", "RankedLists", "Run", "Source"]

# The column names that data frames and Parquet files use for the same thing, ours first.
QUERY_NAMES = ("query_id", "qid", "query", "q_id", "query-id", "topic", "topic_id")
DOC_NAMES = ("doc_id", "docno", "docid", "doc", "corpus_id", "corpus-id", "did", "pid", "item_id")
SCORE_NAMES = ("score", "sim", "similarity", "relevance_score")
LABEL_NAMES = ("relevance", "label", "rel", "grade", "score", "gain")

QUICK = 2_000_000  # rows whose ties are counted quickly enough to be shown without being asked for


class Source:
    """Where a table came from: a file, its format, and its SHA-256, which may be computed when it is asked for."""

    def __init__(self, path: str, sha256: str | Callable[[], str], format: str):
        self.path, self.format = path, format
        self._sha256 = sha256

    def __repr__(self) -> str:
        return f"Source(path={self.path!r}, format={self.format!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Source) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.path, self.format))

    @cached_property
    def sha256(self) -> str:
        """The SHA-256 of the file's bytes."""
        return self._sha256 if isinstance(self._sha256, str) else self._sha256()

    def to_dict(self) -> dict[str, str]:
        """The path, the SHA-256 and the format."""
        return {"path": self.path, "sha256": self.sha256, "format": self.format}

    def __reduce__(self) -> tuple[Any, tuple[str, str, str]]:
        try:
            digest = self.sha256
        except (InputError, OSError):  # the file was changed, or is gone
            digest = ""
        return Source, (self.path, digest, self.format)


class Row(NamedTuple):
    """A row as text, for messages."""

    query: str
    doc: str


class Lists:
    """Numbers in one list a query: what can be said of a run without its document ids."""

    queries: tuple[str, ...]
    offsets: Codes
    value: Floats

    def __len__(self) -> int:
        return len(self.value)

    @cached_property
    def query_index(self) -> dict[str, int]:
        """The position of each query id."""
        return dict(zip(self.queries, range(len(self.queries)), strict=True))

    @cached_property
    def descending(self) -> bool:
        """Whether every list already runs from its highest score to its lowest."""
        return descending(self.value, self.offsets)

    @cached_property
    def _same_as_previous(self) -> NDArray[np.bool_]:
        """Whether each score equals the one before it when lists are sorted; one False more, (n_rows + 1,)."""
        ordered = self.value if self.descending else sorted_lists(self.value, self.offsets)
        same = np.zeros(len(ordered) + 1, dtype=bool)
        same[1:-1] = ordered[1:] == ordered[:-1]
        same[self.offsets] = False
        return same

    @property
    def n_groups(self) -> int:
        """How many tie groups there are, single documents included."""
        return len(self) - int(np.count_nonzero(self._same_as_previous))

    @cached_property
    def tied_rows(self) -> int:
        """How many rows share their score with another row of the same query."""
        same = self._same_as_previous
        return int(np.count_nonzero(same[1:] | same[:-1]))

    @property
    def tied_share(self) -> float:
        """The share of rows that are tied with another, 0 to 1."""
        return self.tied_rows / len(self) if len(self) else 0.0


class RankedLists(Lists, ABC):
    """A run in memory, whose tie groups can be counted."""

    source: Source | None
    rank: NDArray[np.int64] | None

    @abstractmethod
    def find(self, qrels: Qrels, places: Codes) -> tuple[Floats, Codes | None]:
        """The score of every judged document, NaN where it was not retrieved, and its row if that is at hand.

        `places` holds the position in this run of each query of `qrels`, −1 if missing.
        """

    @abstractmethod
    def rows_of(self, qrels: Qrels, judged: Codes) -> Codes:
        """The rows of some judged documents, which are all retrieved."""

    @abstractmethod
    def ids(self, rows: NDArray[Any]) -> list[str]:
        """The document ids of some rows."""

    @abstractmethod
    def projected(self, dtype: str) -> RankedLists:
        """The run as a reader sees it that keeps scores as float32, float16, bfloat16 or n decimals."""


@dataclass(frozen=True, eq=False, repr=False)
class Table(Lists):
    """Rows grouped by query: what `Run` and `Qrels` share."""

    queries: tuple[str, ...]
    offsets: Codes  # (n_queries + 1,): rows offsets[i] to offsets[i + 1] belong to queries[i]
    doc: Codes  # (n_rows,): codes into docs
    docs: Sequence[str]
    value: Floats  # (n_rows,): the score or the label
    source: Source | None = field(default=None, kw_only=True)

    noun: ClassVar[str] = "table"
    value_names: ClassVar[tuple[str, ...]] = ()
    # NaN has no rank, a label of NaN no gain; the message names the way out.
    nan_advice: ClassVar[str] = "Drop the row"

    # -- doors in -----------------------------------------------------------------------------------------

    @classmethod
    def from_codes(
        cls,
        query: Codes,
        queries: Sequence[str],
        doc: Codes,
        docs: Sequence[str],
        value: Floats,
        *,
        where: Callable[[int], str] | None = None,
        unique: bool = False,
        **columns: Any,
    ) -> Self:
        """A table from coded columns, its rows regrouped by query where they are not yet.

        `where(row)` names a row's place in the source for messages (``run.trec:17``); `unique` says that no
        document can stand twice in a query, so that this need not be checked.
        """
        query, doc = np.asarray(query, dtype=np.int64), np.asarray(doc)
        if columns.get("rank") is not None:
            columns["rank"] = np.asarray(columns["rank"])
            if columns["rank"].shape != query.shape:
                raise InputError(f"{len(columns['rank'])} ranks for {len(query)} rows. Give one for every row.")
        value = np.asarray(value, dtype=np.float64)

        def row_of(row: int) -> Row:
            return Row(queries[query[row]], docs[doc[row]])

        check_numbers(cls, value, row_of, where)
        if not unique:
            _check_duplicates(cls, query * max(len(docs), 1) + doc, row_of, where)
        heads = np.flatnonzero(np.diff(query, prepend=-1))
        distinct, first = np.unique(query[heads], return_index=True)
        if len(distinct) < len(heads):  # a query's rows lie apart: bring them together, in order of appearance
            appearance = np.zeros(len(queries), dtype=np.int64)
            appearance[distinct] = first
            rows = np.argsort(appearance[query], kind="stable")
            query, doc, value = query[rows], doc[rows], value[rows]
            columns = {n: c[rows] if isinstance(c, np.ndarray) else c for n, c in columns.items()}
            heads = np.flatnonzero(np.diff(query, prepend=-1))
        names = tuple(map(queries.__getitem__, query[heads].tolist()))
        return cls(names, np.append(heads, len(query)), doc, docs, value, **columns)

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
            of_queries, of_docs = count_noun(len(query), "query", "queries"), count_noun(len(doc), "document")
            of_values = count_noun(len(value), cls.value_names[0])
            raise InputError(
                f"Columns of different lengths: {of_queries}, {of_docs}, {of_values}. Give one of each for every row."
            )
        return cls.from_codes(query, query_ids, doc, doc_ids, value, **columns)

    @classmethod
    def from_dict(cls, table: Mapping[Any, Mapping[Any, float]]) -> Self:
        """A table from ``{query: {document: number}}``, as pytrec_eval, ranx and BEIR use it."""
        value, offsets = plain_columns(table) or mapped_columns(cls, table)
        queries = tuple(identifier(query, "query") for query in table)
        if len(set(queries)) < len(queries):
            raise InputError(f"Two queries of the {cls.noun} have the same id as text. Keep one of them.")
        doc, docs = encode(list(chain.from_iterable(table.values())), "document")
        built = cls(queries, offsets, doc, docs, value)
        check_numbers(cls, value, built.row, None)
        if not all_text(table):  # distinct keys may become one id: 1 and "1"
            _check_duplicates(cls, built.query * max(len(docs), 1) + doc, built.row, None)
        return built

    @classmethod
    def from_frame(cls, frame: Any) -> Self:
        """A table from a pandas or polars data frame, an Arrow table, or any Arrow stream.

        Columns are found by name: ``query_id, doc_id, score`` and the names that PyTerrier (``qid, docno``),
        MS MARCO and BEIR use for them. What Arrow holds is not copied where that can be helped: an array that was
        handed to Arrow must not be changed afterwards.
        """
        columns = frame_columns(frame)
        query = picked(cls, columns, QUERY_NAMES)
        doc = picked(cls, columns, DOC_NAMES)
        value = picked(cls, columns, cls.value_names)
        extra = {}
        if cls is Run and "rank" in columns:
            rank = numbers(columns["rank"](), "rank")
            if (np.abs(rank) < 2**53).all() and (rank == np.round(rank)).all():  # kept if all are integers
                extra["rank"] = rank.astype(np.int64)
        return cls.from_columns(columns[query](), columns[doc](), columns[value](), **extra)

    @classmethod
    def from_rows(cls, rows: Iterable[Any]) -> Self:
        """A table from ``(query, document, number)`` tuples, such as ir_measures' `ScoredDoc` and `Qrel`."""
        columns = list(zip(*rows, strict=False))
        if columns and len(columns) < 3:
            raise InputError(f"Rows of {len(columns)} values. Give (query, document, {cls.value_names[0]}).")
        queries, docs, values = columns[:3] if columns else ((), (), ())
        return cls.from_columns(list(queries), list(docs), list(values))

    # -- doors out ----------------------------------------------------------------------------------------

    def __post_init__(self) -> None:
        for name, column in vars(self).items():
            if isinstance(column, np.ndarray):  # frozen: a view that cannot be written through
                object.__setattr__(self, name, frozen(column))

    def __repr__(self) -> str:
        queries, rows = count_noun(len(self.queries), "query", "queries"), count_noun(len(self), "row")
        return f"<{type(self).__name__}: {queries}, {rows}>"

    def _repr_html_(self) -> str:
        from tiewise.tables.html import render_html
        from tiewise.tables.model import PREVIEW_ROWS, Section
        from tiewise.tables.model import Table as ShownTable

        queries, docs, values = zip(*islice(self, PREVIEW_ROWS), strict=True) if len(self) else ((), (), ())
        columns = {"query": queries, "document": docs, self.value_names[0]: [f"{value:.9g}" for value in values]}
        source = [] if self.source is None else [self.source.path]
        return render_html(Section([*source, ShownTable.of_columns(columns, total=len(self))], self._title))

    @property
    def _title(self) -> str:
        """What the table is, for the heading of a notebook's cell."""
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
        return Row(self.queries[place], self.docs[self.doc[row]])

    def ids(self, rows: NDArray[Any]) -> list[str]:
        """The document ids of some rows."""
        return list(map(self.docs.__getitem__, self.doc[rows].tolist()))

    def _codes_of(self, other: Table) -> Codes:
        """The code that each document of another table has here, −1 if none; only the smaller of the two is indexed."""
        if "doc_index" in vars(self) or len(self.docs) < len(other.docs):
            return positions(self.doc_index, other.docs)
        place = np.fromiter(map(other.doc_index.get, self.docs, repeat(-1)), np.int64, len(self.docs))
        known = np.flatnonzero(place >= 0)
        code = np.full(len(other.docs), -1)
        code[place[known]] = known
        return code

    def __iter__(self) -> Iterator[tuple[str, str, float]]:
        for place, query in enumerate(self.queries):
            rows = slice(int(self.offsets[place]), int(self.offsets[place + 1]))
            docs = [self.docs[code] for code in self.doc[rows].tolist()]
            yield from ((query, doc, value) for doc, value in zip(docs, self.value[rows].tolist(), strict=True))

    def to_dict(self) -> dict[str, dict[str, float]]:
        """``{query: {document: number}}``, rows in their given order."""
        table: dict[str, dict[str, float]] = {query: {} for query in self.queries}
        for query, doc, value in self:
            table[query][doc] = value
        return table

    def to_frame(self) -> Any:
        """A pandas data frame (polars where pandas is missing) with our column names."""
        queries = [self.queries[place] for place in self.query.tolist()]
        columns = {
            "query_id": queries,
            "doc_id": self.ids(np.arange(len(self))),
            self.value_names[0]: self.value,
        }
        return data_frame(columns)

    def take(self, rows: NDArray[Any]) -> Self:
        """The table that holds only the given rows (ascending); queries may be left with none."""
        kept = np.zeros(len(self) + 1, dtype=np.int64)
        kept[np.asarray(rows) + 1] = 1
        offsets = np.cumsum(kept)[self.offsets]
        return self._with_rows(np.asarray(rows), offsets)

    def _with_rows(self, rows: NDArray[Any], offsets: Codes) -> Self:
        return replace(self, offsets=offsets, doc=self.doc[rows], value=self.value[rows])


@dataclass(frozen=True, eq=False, repr=False)
class Run(Table, RankedLists):
    """Ranked lists: a score for each retrieved document of each query. Equal scores are ties.

    >>> run = Run.from_dict({"q1": {"a": 2.0, "b": 1.0, "c": 1.0}})
    >>> run
    <Run: 1 query, 3 rows>
    >>> run.tied_share
    0.6666666666666666
    """

    rank: NDArray[np.int64] | None = field(default=None, kw_only=True)  # the file's rank column
    name: str | None = field(default=None, kw_only=True)  # the file's run tag

    noun = "run"
    value_names = SCORE_NAMES
    nan_advice = "NaN has no rank; drop the row or score it -inf"

    @property
    def score(self) -> Floats:
        """The score of each row, (n_rows,)."""
        return self.value

    @property
    def _title(self) -> str:
        name = "" if self.name is None else f" ({self.name})"
        from tiewise.tables.wording import format_percent

        tied = f", {format_percent(self.tied_share)} of them tied" if len(self) <= QUICK else ""
        return f"{super()._title}{tied}{name}"

    def projected(self, dtype: str) -> Run:
        """The run as a reader sees it that keeps scores as float32, float16, bfloat16 or n decimals.

        >>> run = Run.from_dict({"q": {"a": 0.123456789, "b": 0.123456788}})
        >>> run.tied_rows, run.projected("float32").tied_rows
        (0, 2)
        """
        return replace(self, value=project(self.value, dtype))

    def find(self, qrels: Qrels, places: Codes) -> tuple[Floats, Codes]:
        """The score and the row of every judged document, NaN and −1 where it was not retrieved.

        `places` holds the position in this run of each query of `qrels`, −1 if missing.
        """
        place, wanted = places[qrels.query], self._codes_of(qrels)[qrels.doc]
        judged = np.flatnonzero((place >= 0) & (wanted >= 0))
        rows = np.full(len(qrels), -1)
        if len(judged):
            most = int(np.bincount(qrels.query[judged]).max())
            look = self._scan if most <= 3 else self._probe
            rows[judged] = look(place[judged], wanted[judged])
        score = np.where(rows >= 0, self.value[rows] if len(self) else np.nan, np.nan)
        return score, rows

    def rows_of(self, qrels: Qrels, judged: Codes) -> Codes:
        """The rows of some judged documents, which are all retrieved."""
        return self.find(qrels, positions(self.query_index, qrels.queries))[1][judged]

    def _scan(self, place: Codes, wanted: Codes) -> Codes:
        """The row of each wanted document in the list of its query, −1 if none: for one or a few a query, by comparing
        all documents of the list with it."""
        lengths, found = np.diff(self.offsets), np.full(len(place), -1)
        order = np.argsort(place, kind="stable")
        turn = np.empty(len(place), dtype=np.int64)  # the first of its query, the second, …
        turn[order] = np.arange(len(place)) - np.searchsorted(place[order], place[order])
        for now in range(int(turn.max()) + 1):
            mine = np.flatnonzero(turn == now)
            target, row_of = np.full(len(lengths), -1), np.full(len(lengths), -1)
            target[place[mine]] = wanted[mine]
            hits = np.flatnonzero(self.doc == np.repeat(target, lengths))
            row_of[np.searchsorted(self.offsets, hits, side="right") - 1] = hits
            found[mine] = row_of[place[mine]]
        return found

    def _probe(self, place: Codes, wanted: Codes) -> Codes:
        """The same for many a query: rows of documents that are wanted for some query are looked up by query too."""
        mark = np.zeros(len(self.docs), dtype=bool)
        mark[wanted] = True
        candidates = np.flatnonzero(mark.take(self.doc, mode="clip"))  # codes are in range: this spares the check
        if not len(candidates):
            return np.full(len(place), -1)
        query = np.searchsorted(self.offsets, candidates, side="right") - 1
        have = query * len(self.docs) + self.doc[candidates]
        want = place * len(self.docs) + wanted
        order = np.argsort(have)
        at = np.minimum(np.searchsorted(have[order], want), len(have) - 1)
        return np.where(have[order][at] == want, candidates[order[at]], -1)

    def judged_only(self, qrels: Qrels) -> Run:
        """The run without its unjudged documents (a condensed list), nor those of a negative label, as trec_eval -J."""
        places = positions(self.query_index, qrels.queries)
        _, rows = self.find(qrels, places)
        return self.take(np.sort(rows[(rows >= 0) & (qrels.label >= 0)]))

    def _with_rows(self, rows: NDArray[Any], offsets: Codes) -> Run:
        rank = None if self.rank is None else self.rank[rows]
        return replace(self, offsets=offsets, doc=self.doc[rows], value=self.value[rows], rank=rank)


@dataclass(frozen=True, eq=False, repr=False)
class Qrels(Table):
    """Judgments: a label for each judged document of each query. Labels may be fractional or negative.

    >>> Qrels.from_dict({"q1": {"a": 1, "b": 0}})
    <Qrels: 1 query, 2 rows>
    """

    noun = "qrels"
    value_names = LABEL_NAMES
    nan_advice = "A label is a number; drop the row if it was not judged"

    @property
    def label(self) -> Floats:
        """The label of each row, (n_rows,)."""
        return self.value


def picked(cls: type[Table], columns: Iterable[str], names: Sequence[str]) -> str:
    """The first of some names that a column has."""
    columns = list(columns)
    for name in names:
        if name in columns:
            return name
    raise InputError(
        f"The {cls.noun} has no column '{names[0]}' (or {', '.join(names[1:4])} ...). "
        f"It has: {', '.join(columns) or 'none'}."
    )


def _check_mapping(cls: type[Table], table: Mapping[Any, Any]) -> None:
    for query, docs in table.items():
        if not isinstance(docs, Mapping):
            raise InputError(
                f"The {cls.noun} holds a {type(docs).__name__} for query {query!r}. "
                f"Give {{query: {{document: {cls.value_names[0]}}}}}."
            )


def plain_columns(table: Mapping[Any, Any]) -> tuple[Floats, Codes] | None:
    """The numbers of a plain ``{query: {document: number}}`` and where each list ends; None if it is anything else."""
    module = native()
    found: tuple[Floats, Codes] | None = module.walk(table) if module is not None and type(table) is dict else None
    return found


def mapped_columns(cls: type[Table], table: Mapping[Any, Mapping[Any, float]]) -> tuple[Floats, Codes]:
    """The same of any mapping, or an error that names what is no number."""
    _check_mapping(cls, table)
    lengths = np.fromiter(map(len, table.values()), np.int64, len(table))
    values = array("d")  # stricter than NumPy: neither text nor None is a number
    try:
        for docs in table.values():
            values.extend(docs.values())
    except (TypeError, ValueError, OverflowError):
        _check_each(cls, table)
        raise
    column = np.frombuffer(values) if values else np.zeros(0)
    if (np.abs(column) >= 2**53).any():  # one of them may be an integer that float64 cannot hold
        _check_each(cls, table)
    return column, np.concatenate([[0], np.cumsum(lengths)])


def all_text(table: Mapping[Any, Any]) -> bool:
    """Whether all ids are text."""
    return set(map(type, table)) <= {str} and all(
        set(map(type, docs)) <= {str} for docs in table.values() if isinstance(docs, Mapping)
    )


def _check_each(cls: type[Table], table: Mapping[Any, Mapping[Any, float]]) -> None:
    problems = (
        number_problem(value, f"query {query!r}, document {doc!r}", cls.value_names[0])
        for query, docs in table.items()
        for doc, value in docs.items()
    )
    found = list(islice(filter(None, problems), 10))
    if found:
        raise InputError(*found)


def check_numbers(
    cls: type[Table], value: Floats, row_of: Callable[[int], Row], where: Callable[[int], str] | None
) -> None:
    """Raise if a number of a table is NaN, or infinite where that means nothing."""
    bad = np.flatnonzero(np.isnan(value) if cls is Run else ~np.isfinite(value))
    if len(bad):
        raise InputError(
            *(
                f"{where(row) + ': ' if where else ''}{cls.value_names[0]} '{value[row]}' for query "
                f"'{row_of(row).query}', document '{row_of(row).doc}'. {cls.nan_advice}."
                for row in bad[:10].tolist()
            )
        )


def _check_duplicates(
    cls: type[Table], key: Codes, row_of: Callable[[int], Row], where: Callable[[int], str] | None
) -> None:
    ordered = np.sort(key)
    if (ordered[1:] == ordered[:-1]).any():
        order = np.argsort(key, kind="stable")
        same = np.append(False, key[order[1:]] == key[order[:-1]])
        second = order[same & ~np.append(False, same[:-1])]  # of a document that stands there three times, one row
        rows = np.sort(second)[:10].tolist()
        raise InputError(*(f"{where(row) + ': ' if where else ''}{twice(cls, *row_of(row))}" for row in rows))


def twice(cls: type[Table], query: str, doc: str) -> str:
    """What is said of a document that stands twice in a list."""
    return f"document '{doc}' stands twice in the {cls.noun} for query '{query}'. Keep one of the rows."
