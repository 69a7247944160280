"""`Run` and `Qrels`: ranked lists and judgments as immutable columns.

Both are tables: rows grouped by query, ids coded as integers, and one number in each row (a score or a label). The rows
of a query keep their order. Nothing here sorts them by score: `tiewise.ties` alone decides how ties are broken.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, SupportsFloat, get_args

import numpy as np
from numpy.typing import NDArray

from tiewise.data.columns import (
    MAX_PROBLEMS,
    Codes,
    Floats,
    check_each,
    encode,
    frame_columns,
    freeze,
    identifier,
    identifiers,
    is_descending,
    numbers,
    positions,
    project,
    ranges,
    sort_lists,
    to_host,
)
from tiewise.data.documents import Documents
from tiewise.data.native import native
from tiewise.data.neighbors import Metric, neighbor_lists
from tiewise.data.subtopics import Subtopics
from tiewise.errors import InputError
from tiewise.tables.optional import data_frame
from tiewise.tables.wording import count_noun

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["Kind", "Qrels", "Run", "Source"]

# The names of columns in data frames and Parquet files, ours first.
QUERY_NAMES = ("query_id", "qid", "query", "q_id", "query-id", "topic", "topic_id")
DOC_NAMES = ("doc_id", "docno", "docid", "doc", "corpus_id", "corpus-id", "did", "pid", "item_id")
SCORE_NAMES = ("score", "sim", "similarity", "relevance_score")
LABEL_NAMES = ("relevance", "label", "rel", "grade", "score", "gain")
SUBTOPIC_NAMES = ("subtopic", "subtopic_id")

#: The kinds of judgments: a label for each document, or one for each subtopic of a document.
Kind = Literal["adhoc", "diversity"]

MAX_SUMMARY_ROWS = 2_000_000  # a larger run is shown without its tied share, which takes too long


class Source:
    """The file of a table: its path, its format, and its SHA-256, which may be computed on first use."""

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
        except (InputError, OSError):  # the file was changed or deleted
            digest = ""
        return Source, (self.path, digest, self.format)


class Row(NamedTuple):
    """The ids of a row."""

    query: str
    doc: str


class Lists:
    """One list of numbers for each query: the properties of a run that do not need document ids."""

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
        """Whether every list is sorted by descending score."""
        return is_descending(self.value, self.offsets)

    @cached_property
    def _same_as_previous(self) -> NDArray[np.bool_]:
        """Whether each score of the sorted lists equals the previous one; the last is False, (n_rows + 1,)."""
        ordered = self.value if self.descending else sort_lists(self.value, self.offsets)
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


@dataclass(frozen=True, eq=False, repr=False)
class Table(Lists):
    """Rows grouped by query: the base of `Run` and `Qrels`."""

    queries: tuple[str, ...]
    offsets: Codes  # (n_queries + 1,): rows offsets[i] to offsets[i + 1] belong to queries[i]
    documents: Documents  # the document id of each row
    value: Floats  # (n_rows,): the score or the label
    source: Source | None = field(default=None, kw_only=True)

    noun: ClassVar[str] = "table"
    value_names: ClassVar[tuple[str, ...]] = ()
    nan_advice: ClassVar[str] = "Drop the row"

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
            _check_duplicates(cls, key, row_of, where)
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
        plain = plain_columns(table)
        value, offsets = plain or mapped_columns(cls, table)
        ids: list[Any] = list(chain.from_iterable(table.values()))
        if plain or all_text(table):
            built = cls(tuple(table), offsets, Documents.of_rows(ids), value)
            check_numbers(cls, value, built.row, None)
            return built
        queries = tuple(identifier(query, "query") for query in table)
        if len(set(queries)) < len(queries):
            raise InputError(f"Two queries of the {cls.noun} have the same id as text. Keep one of them.")
        built = cls(queries, offsets, Documents(*encode(ids, "document")), value)
        check_numbers(cls, value, built.row, None)
        # Distinct keys may become one id: 1 and "1".
        _check_duplicates(cls, built.query * max(len(built.docs), 1) + built.doc, built.row, None)
        return built

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
        chosen = [pick_column(cls, names, known) for known in (QUERY_NAMES, DOC_NAMES, cls.value_names)]
        return cls.from_columns(*map(fetch, chosen), **cls._optional_columns(names, fetch))

    @classmethod
    def _optional_columns(cls, names: Sequence[str], fetch: Callable[[str], Any]) -> dict[str, Any]:
        """The columns that not every table of this class has."""
        return {}

    @classmethod
    def from_rows(cls, rows: Iterable[Any]) -> Self:
        """A table from ``(query, document, number)`` tuples, such as ir_measures' `ScoredDoc` and `Qrel`."""
        columns = list(zip(*rows, strict=False))
        if columns and len(columns) < 3:
            raise InputError(f"The rows have {len(columns)} values. Give (query, document, {cls.value_names[0]}).")
        queries, docs, values = columns[:3] if columns else ((), (), ())
        return cls.from_columns(list(queries), list(docs), list(values))

    # -- conversions ----------------------------------------------------------------------------------------

    def __post_init__(self) -> None:
        for name, column in vars(self).items():
            if isinstance(column, np.ndarray):
                object.__setattr__(self, name, freeze(column))

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
        """A data frame of pandas (or polars) with the columns query_id, doc_id, and score or relevance."""
        queries = [self.queries[place] for place in self.query.tolist()]
        columns = {
            "query_id": queries,
            "doc_id": self.ids(np.arange(len(self))),
            self.value_names[0]: self.value,
        }
        return data_frame(columns)

    def take(self, rows: NDArray[Any]) -> Self:
        """The table with only these rows (ascending). A query may keep no row."""
        offsets = np.searchsorted(rows, self.offsets)
        columns = {name: getattr(self, name, None) for name in ("rank", "subtopics")}
        optional = {name: column.take(rows) for name, column in columns.items() if column is not None}
        return replace(self, offsets=offsets, documents=self.documents.take(rows), value=self.value[rows], **optional)


@dataclass(frozen=True, eq=False, repr=False)
class Run(Table):
    """Ranked lists: a score for each retrieved document of each query. Equal scores are ties.

    >>> run = Run.from_dict({"q1": {"a": 2.0, "b": 1.0, "c": 1.0}})
    >>> run
    <Run: 1 query, 3 rows>
    >>> run.tied_share
    0.6666666666666666
    """

    rank: NDArray[np.int64] | None = field(default=None, kw_only=True)  # the file's rank column
    name: str | None = field(default=None, kw_only=True)  # the file's run tag
    complete_lists: NDArray[np.bool_] | None = field(default=None, kw_only=True)  # (n_queries,): not cut in a tie group

    noun = "run"
    value_names = SCORE_NAMES
    nan_advice = "NaN has no rank; drop the row or score it -inf"

    @classmethod
    def from_neighbors(
        cls,
        scores: Any,
        indices: Any,
        *,
        metric: Metric = "ip",
        doc_ids: Any = None,
        query_ids: Any = None,
        k: int | None = None,
        counts: Any = None,
    ) -> Self:
        """A run from what an index of vectors returns: FAISS, usearch, hnswlib, cuVS, ScaNN.

        - `scores`, `indices`: (queries, neighbours), best first, of NumPy or torch. Places with the index -1 are
          padding; `counts` says how many places of each row are filled, if the index says so instead (usearch).
        - `metric`: "l2" and "hamming" are distances. "ip" and "cosine" are scores in FAISS and distances in usearch and
          hnswlib: distances rise along a row. Of a distance d the score is -d, which keeps ties as they are.
        - `doc_ids`: the id of each row of the index; by default its number. `query_ids`: one for each row.
        - `k`: keep the first k neighbours and all that tie with the k-th. With more than k columns (k + 1 are enough)
          it is known which lists do *not* end inside a tie group (`complete_lists`); `evaluate` does not warn of these.
          A list that ends with tied documents in its last column may have been cut there.

        >>> scores, indices = [[0.9, 0.5, 0.5], [0.8, 0.8, 0.1]], [[4, 7, 2], [1, 0, 5]]
        >>> run = Run.from_neighbors(scores, indices, k=2)
        >>> run.to_dict()
        {'0': {'4': 0.9, '7': 0.5, '2': 0.5}, '1': {'1': 0.8, '0': 0.8}}
        >>> run.complete_lists
        array([False,  True])
        >>> Run.from_neighbors([[0.0, 1.5, 3e38]], [[1, 0, -1]], metric="l2", doc_ids=["a", "b"]).to_dict()
        {'0': {'b': 0.0, 'a': -1.5}}
        """
        found = neighbor_lists(scores, indices, metric, counts, k)
        n = len(found.complete_lists)
        queries = _id_column(range(n) if query_ids is None else query_ids, "query")
        if len(queries) != n or len(set(queries)) < n:
            found_ids = f"{len(queries):,} query ids, {len(set(queries)):,} of them distinct"
            raise InputError(f"{found_ids}, for {count_noun(n, 'row')} of neighbours. Give one for each row.")
        if doc_ids is None:
            documents = Documents(*encode(found.document, "document"))
        else:
            names = _id_column(doc_ids, "document")
            _check_range(found.document, found.offsets, len(names))
            documents = Documents(found.document.astype(np.int64), names, distinct=len(set(names)) == len(names))
        built = cls(tuple(queries), found.offsets, documents, found.score, complete_lists=found.complete_lists)
        _check_duplicates(cls, built.query * max(len(built.docs), 1) + built.doc, built.row, None)
        return built

    @classmethod
    def _optional_columns(cls, names: Sequence[str], fetch: Callable[[str], Any]) -> dict[str, Any]:
        if "rank" not in names:
            return {}
        rank = numbers(fetch(pick_column(cls, names, ("rank",))), "rank")
        is_whole = bool((np.abs(rank) < 2**53).all() and (rank == np.round(rank)).all())
        return {"rank": rank.astype(np.int64)} if is_whole else {}

    @property
    def score(self) -> Floats:
        """The score of each row, (n_rows,)."""
        return self.value

    @property
    def _title(self) -> str:
        name = "" if self.name is None else f" ({self.name})"
        from tiewise.tables.wording import format_percent

        tied = f", {format_percent(self.tied_share)} of them tied" if len(self) <= MAX_SUMMARY_ROWS else ""
        return f"{super()._title}{tied}{name}"

    def projected(self, dtype: str) -> Run:
        """The run with scores rounded to float32, float16, bfloat16 or n decimals.

        >>> run = Run.from_dict({"q": {"a": 0.123456789, "b": 0.123456788}})
        >>> run.tied_rows, run.projected("float32").tied_rows
        (0, 2)
        """
        # Rounded, the last document may tie with one that was left out.
        return replace(self, value=project(self.value, dtype), complete_lists=None)

    def find(self, qrels: Qrels, places: Codes) -> tuple[Floats, Codes]:
        """The score and the row of every judged document, NaN and −1 if it was not retrieved.

        `places` is the position of each query of `qrels` in this run, −1 if it is missing.
        """
        place, doc = places[qrels.query], self._codes_of(qrels)[qrels.doc]
        judged = np.flatnonzero((place >= 0) & (doc >= 0))
        rows = np.full(len(qrels), -1)
        if len(judged):
            is_sparse = int(np.bincount(qrels.query[judged]).max()) <= 3
            rows[judged] = (self._find_few if is_sparse else self._find_many)(place[judged], doc[judged])
        score = np.where(rows >= 0, self.value[rows] if len(self) else np.nan, np.nan)
        return score, rows

    def rows_of(self, qrels: Qrels, judged: Codes) -> Codes:
        """The rows of judged documents that are retrieved."""
        return self.find(qrels, positions(self.query_index, qrels.queries))[1][judged]

    def _find_few(self, place: Codes, doc: Codes) -> Codes:
        """The row of each document in the list of its query, −1 if it has none.

        For up to three documents in each query: all rows of the list are compared with the document.
        """
        lengths, rows = np.diff(self.offsets), np.full(len(place), -1)
        order = np.argsort(place, kind="stable")
        turn = np.empty(len(place), dtype=np.int64)  # 0 for the first document of a query, 1 for the second, …
        turn[order] = np.arange(len(place)) - np.searchsorted(place[order], place[order])
        for now in range(int(turn.max()) + 1):
            mine = np.flatnonzero(turn == now)
            target, row_of = np.full(len(lengths), -1), np.full(len(lengths), -1)
            target[place[mine]] = doc[mine]
            matches = np.flatnonzero(self.doc == np.repeat(target, lengths))
            row_of[np.searchsorted(self.offsets, matches, side="right") - 1] = matches
            rows[mine] = row_of[place[mine]]
        return rows

    def _find_many(self, place: Codes, doc: Codes) -> Codes:
        """The same for many documents: rows that hold one of them for any query are sorted, then searched."""
        mask = np.zeros(len(self.docs), dtype=bool)
        mask[doc] = True
        candidates = np.flatnonzero(mask.take(self.doc, mode="clip"))  # codes are in range: "clip" skips the check
        if not len(candidates):
            return np.full(len(place), -1)
        query = np.searchsorted(self.offsets, candidates, side="right") - 1
        key = query * len(self.docs) + self.doc[candidates]
        target = place * len(self.docs) + doc
        order = np.argsort(key)
        at = np.minimum(np.searchsorted(key[order], target), len(key) - 1)
        return np.where(key[order][at] == target, candidates[order[at]], -1)

    def judged_only(self, qrels: Qrels) -> Run:
        """The run without unjudged documents and those with a negative label (condensed lists), as trec_eval -J."""
        places = positions(self.query_index, qrels.queries)
        _, rows = self.find(qrels, places)
        return self.take(np.sort(rows[(rows >= 0) & (qrels.label >= 0)]))


class Pool(NamedTuple):
    """All judged documents of the queries of some judgments."""

    documents: Documents
    offsets: Codes  # (n_queries + 1,)


@dataclass(frozen=True, eq=False, repr=False)
class Qrels(Table):
    """Judgments: a label for each judged document of each query. Labels may be fractional or negative.

    Judgments for diversity measures have a label for each subtopic of a document; the label of the document is the
    highest of these. A dictionary or a data frame shows that it has subtopics. For rows and for the column "iteration"
    of a data frame ``kind="diversity"`` says so.

    >>> Qrels.from_dict({"q1": {"a": 1, "b": 0}})
    <Qrels: 1 query, 2 rows>
    >>> Qrels.from_dict({"q1": {"a": {"s1": 1, "s2": 2}, "b": {"s1": 0}}})
    <Qrels: 1 query, 2 rows, 3 labels for subtopics>
    """

    pool: Pool | None = field(default=None, kw_only=True)  # all judged documents, if these are only some of them
    subtopics: Subtopics | None = field(default=None, kw_only=True)  # the labels for subtopics, of each row

    noun = "qrels"
    value_names = LABEL_NAMES
    nan_advice = "A label is a number; drop the row if it was not judged"

    # -- constructors -----------------------------------------------------------------------------------------

    @classmethod
    def from_columns(cls, queries: Any, docs: Any, values: Any, *, subtopics: Any = None, **columns: Any) -> Self:
        """Judgments from columns of equal length: query ids, document ids, labels and, for diversity, subtopics.

        >>> Qrels.from_columns(["q", "q"], ["a", "a"], [1, 0], subtopics=["s1", "s2"]).to_dict()
        {'q': {'a': {'s1': 1.0, 's2': 0.0}}}
        """
        if subtopics is None:
            return super().from_columns(queries, docs, values, **columns)
        (query, query_ids), (doc, doc_ids) = encode(queries, "query"), encode(docs, "document")
        subtopic, names = encode(subtopics, "subtopic")
        label = numbers(values, cls.value_names[0])
        lengths = [len(query), len(doc), len(subtopic), len(label)]
        if len(set(lengths)) > 1:
            found = "{} queries, {} documents, {} subtopics, {} labels".format(*lengths)
            raise InputError(f"Columns of different lengths: {found}. Give one of each for every row.")
        return cls.from_subtopic_codes(query, query_ids, Documents(doc, doc_ids), label, subtopic, names)

    @classmethod
    def from_subtopic_codes(
        cls,
        query: Codes,
        queries: Sequence[str],
        documents: Documents,
        label: Floats,
        subtopic: Codes,
        names: Sequence[str],
        *,
        where: Callable[[int], str] | None = None,
    ) -> Self:
        """Judgments from coded columns, with the label of a document for a subtopic in each row: see `from_codes`."""

        def row_of(row: int) -> Row:
            return Row(queries[query[row]], documents.ids(np.array([row]))[0])

        query = np.asarray(query, dtype=np.int64)
        check_numbers(cls, label, row_of, where)
        key = query * max(len(documents.names), 1) + documents.codes
        pair = key * max(len(names), 1) + subtopic
        _check_duplicates(cls, pair, row_of, where, lambda row: f", subtopic '{names[subtopic[row]]}'")
        _, first, document = np.unique(key, return_index=True, return_inverse=True)
        first_of_query = np.full(len(queries), len(query))
        np.minimum.at(first_of_query, query[first], first)
        by_appearance = np.lexsort((first, first_of_query[query[first]]))  # documents, query by query
        place = np.argsort(by_appearance)[document]  # of the document of each label
        rows = np.argsort(place, kind="stable")
        offsets = np.searchsorted(place[rows], np.arange(len(first) + 1))
        subtopics = Subtopics(offsets, np.asarray(subtopic, dtype=np.int64)[rows], label[rows], tuple(names))
        heads = first[by_appearance]
        table = cls.from_codes(query[heads], queries, documents.take(heads), subtopics.highest, unique=True)
        return replace(table, subtopics=subtopics)

    @classmethod
    def from_dict(cls, table: Mapping[Any, Mapping[Any, Any]]) -> Self:
        """Judgments from ``{query: {document: label}}`` or, for diversity, ``{query: {document: {subtopic: label}}}``.

        >>> Qrels.from_dict({"q": {"a": {"s1": 1, "s2": 2}}}).label
        array([2.])
        """
        labels = (label for docs in table.values() if isinstance(docs, Mapping) for label in docs.values())
        if not isinstance(next(labels, None), Mapping):
            return super().from_dict(table)
        _check_mapping(cls, table)
        rows: list[tuple[Any, ...]] = []
        for query, docs in table.items():
            for doc, judged in docs.items():
                if not isinstance(judged, Mapping):
                    raise InputError(
                        f"query {query!r}, document {doc!r}: a {type(judged).__name__}, where other documents have "
                        "labels for subtopics. Give {query: {document: {subtopic: label}}}."
                    )
                rows += ((query, doc, label, subtopic) for subtopic, label in judged.items())
        found = cls.from_rows(rows, kind="diversity")
        sizes = dict(zip(found.queries, np.diff(found.offsets).tolist(), strict=True))
        names = tuple(dict.fromkeys(identifier(query, "query") for query in table))  # also those without a label
        return replace(found, queries=names, offsets=np.cumsum([0, *(sizes.get(name, 0) for name in names)]))

    @classmethod
    def from_rows(cls, rows: Iterable[Any], *, kind: Kind = "adhoc") -> Self:
        """Judgments from ``(query, document, label)``; with ``kind="diversity"``, a subtopic is the fourth value.

        Values of named tuples, such as ir_measures' `Qrel` and pyndeval's `SubtopicQrel`, are found by name then.

        >>> Qrels.from_rows([("q", "a", 1, "s1"), ("q", "a", 0, "s2")], kind="diversity")
        <Qrels: 1 query, 1 row, 2 labels for subtopics>
        """
        if not has_subtopics(kind):
            return super().from_rows(rows)
        listing = list(rows)
        columns = [list(column) for column in zip(*listing, strict=False)]
        if listing and hasattr(listing[0], "_fields"):
            named = dict(zip(listing[0]._fields, columns, strict=True))
            return cls._from_named_subtopics(list(named), named.__getitem__)
        if columns and len(columns) != 4:
            raise InputError(f"The rows have {len(columns)} values. Give (query, document, label, subtopic).")
        queries, docs, labels, subtopics = columns or ([], [], [], [])
        return cls.from_columns(queries, docs, labels, subtopics=subtopics)

    @classmethod
    def from_frame(cls, frame: Any, *, kind: Kind = "adhoc") -> Self:
        """Judgments from a data frame of pandas or polars, an Arrow table, or any Arrow stream: see `Run.from_frame`.

        They have subtopics if there is a column ``subtopic`` or ``subtopic_id``; with ``kind="diversity"``,
        ``iteration`` is one too.
        """
        names, fetch = frame_columns(frame)
        return (cls._from_named_subtopics if has_subtopics(kind) else cls._from_named)(names, fetch)

    @classmethod
    def _from_named_subtopics(cls, names: Sequence[str], fetch: Callable[[str], Any]) -> Self:
        subtopic, usual = pick_column(cls, names, (*SUBTOPIC_NAMES, "iteration")), SUBTOPIC_NAMES[0]
        return cls._from_named([*names, usual], lambda name: fetch(subtopic if name == usual else name))

    @classmethod
    def _optional_columns(cls, names: Sequence[str], fetch: Callable[[str], Any]) -> dict[str, Any]:
        name = next((name for name in SUBTOPIC_NAMES if name in names), None)
        return {} if name is None else {"subtopics": fetch(name)}

    # -- subtopics --------------------------------------------------------------------------------------------

    def check_subtopics(self, who: object) -> None:
        """Raise if there are no labels for subtopics, which `who` needs."""
        if self.subtopics is None:
            raise InputError(
                f"{who} needs judgments for subtopics, and these have none. Read a TREC file whose columns are query, "
                'subtopic, document and label with tw.read_qrels(path, kind="diversity"), or --qrels-kind diversity on '
                "the command line; or give {query: {document: {subtopic: label}}}."
            )

    @property
    def has_one_subtopic_each(self) -> bool:
        """Whether there are labels for subtopics, and every query has labels for one subtopic only."""
        if self.subtopics is None:
            return False
        pairs = np.unique(np.stack([self.query[self.subtopics.row], self.subtopics.code]), axis=1)
        return pairs.shape[1] > 0 and len(np.unique(pairs[0])) == pairs.shape[1]

    def equals(self, other: Qrels) -> bool:
        """Whether other judgments are the same, in the same order."""
        same_subtopics = self.subtopics is other.subtopics or self.to_dict() == other.to_dict()
        return self is other or (same_subtopics and tuple(self) == tuple(other))

    def trec_rows(self) -> Iterator[tuple[str, str, str, float]]:
        """Rows as in TREC's files: query, subtopic, document and label. The subtopic is 0 if there are none."""
        if self.subtopics is None:
            yield from ((query, "0", doc, label) for query, doc, label in self)
            return
        docs, names = self.ids(np.arange(len(self))), self.subtopics.names
        columns = self.subtopics.row.tolist(), self.subtopics.code.tolist(), self.subtopics.label.tolist()
        for row, code, label in zip(*columns, strict=True):
            yield self.queries[self.query[row]], names[code], docs[row], label

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """``{query: {document: label}}``, or ``{query: {document: {subtopic: label}}}``, rows in their order."""
        if self.subtopics is None:
            return super().to_dict()
        table: dict[str, dict[str, Any]] = {query: {} for query in self.queries}
        for query, subtopic, doc, label in self.trec_rows():
            table[query].setdefault(doc, {})[subtopic] = label
        return table

    def to_frame(self) -> Any:
        """A data frame with the columns query_id, doc_id, relevance and, if there are any, subtopic."""
        if self.subtopics is None:
            return super().to_frame()
        columns: dict[str, list[Any]] = {"query_id": [], "subtopic": [], "doc_id": [], self.value_names[0]: []}
        for row in self.trec_rows():
            for column, value in zip(columns.values(), row, strict=True):
                column.append(value)
        return data_frame(columns)

    def __repr__(self) -> str:
        labels = "" if self.subtopics is None else f", {count_noun(len(self.subtopics), 'label')} for subtopics"
        return f"{super().__repr__()[:-1]}{labels}>"

    @property
    def label(self) -> Floats:
        """The label of each row, (n_rows,)."""
        return self.value

    @property
    def nonzero(self) -> Qrels:
        """The judgments without those of label 0: most measures treat these documents like unjudged ones.

        >>> Qrels.from_dict({"q1": {"a": 1, "b": 0}}).nonzero
        <Qrels: 1 query, 1 row>
        """
        return self if self.label.all() else self._nonzero

    @cached_property
    def _nonzero(self) -> Qrels:
        return replace(self.take(np.flatnonzero(self.label)), pool=Pool(self.documents, self.offsets))


def _merge_lists(query: Codes, offsets: Codes) -> tuple[Codes, Codes]:
    """The query and the offsets of lists, where neighbours with the same query become one."""
    heads = np.flatnonzero(np.diff(query, prepend=-1))
    return query[heads], np.append(offsets[heads], offsets[-1])


def pick_column(cls: type[Table], columns: Iterable[str], names: Sequence[str]) -> str:
    """The first of the names that is a column."""
    columns = list(columns)
    for name in names:
        if columns.count(name) > 1:
            raise InputError(f"The {cls.noun} has two columns '{name}'. Keep one of them.")
        if name in columns:
            return name
    raise InputError(
        f"The {cls.noun} has no column '{names[0]}' (or {', '.join(names[1:4])} ...). "
        f"It has: {', '.join(columns) or 'none'}."
    )


def _id_column(values: Any, what: str) -> list[str]:
    """Ids as text, from a list, an array or a tensor."""
    values = to_host(values)
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise InputError(f"The {what} ids must be a list with one id for each row, not {values!r}.")
    return identifiers(values.tolist() if hasattr(values, "tolist") else values, what)


def _check_range(index: NDArray[Any], offsets: Codes, n: int) -> None:
    """Raise if a neighbour has no id."""
    bad = np.flatnonzero(index >= n)
    if len(bad):
        row = int(np.searchsorted(offsets, bad[0], side="right")) - 1
        raise InputError(
            f"Row {row}: index {int(index[bad[0]])}, but there are {count_noun(n, 'document id')}. Give doc_ids with "
            "an id for every vector of the index, in the order in which they were added."
        )


def _integer_ranks(ranks: Any) -> NDArray[np.int64]:
    """A column of ranks as int64, or an error if one of them is not an integer."""
    column = np.asarray(ranks)
    if column.dtype.kind in "iu" and not (column.size and int(column.max()) >= 2**63):
        return column.astype(np.int64, copy=False)
    if column.dtype.kind == "f" and (np.abs(column) < 2**53).all() and (column == np.round(column)).all():
        return column.astype(np.int64)
    raise InputError("The ranks are not all integers. Leave the column out, or number the documents of each list.")


def _check_mapping(cls: type[Table], table: Mapping[Any, Any]) -> None:
    for query, docs in table.items():
        if not isinstance(docs, Mapping):
            raise InputError(
                f"The {cls.noun} has a {type(docs).__name__} for query {query!r}. "
                f"Give {{query: {{document: {cls.value_names[0]}}}}}."
            )


def plain_columns(table: Mapping[Any, Any]) -> tuple[Floats, Codes] | None:
    """The numbers of a plain ``{query: {document: number}}`` and the offsets of its lists; None for other mappings."""
    module = native()
    found: tuple[Floats, Codes] | None = module.walk(table) if module is not None and type(table) is dict else None
    return found


def mapped_columns(cls: type[Table], table: Mapping[Any, Mapping[Any, Any]]) -> tuple[Floats, Codes]:
    """The same for any mapping; raises if a value is not a number."""
    _check_mapping(cls, table)
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


def all_text(table: Mapping[Any, Any]) -> bool:
    """Whether all ids are text."""
    return set(map(type, table)) <= {str} and all(
        set(map(type, docs)) <= {str} for docs in table.values() if isinstance(docs, Mapping)
    )


def _check_values(cls: type[Table], table: Mapping[Any, Mapping[Any, float]]) -> None:
    values = ((f"query {query!r}, document {doc!r}", docs[doc]) for query, docs in table.items() for doc in docs)
    check_each(cls.value_names[0], values)


def check_numbers(
    cls: type[Table], value: Floats, row_of: Callable[[int], Row], where: Callable[[int], str] | None
) -> None:
    """Raise if a score is NaN, or a label is NaN or infinite."""
    bad = np.flatnonzero(np.isnan(value) if cls is Run else ~np.isfinite(value))
    if len(bad):
        raise InputError(
            *(
                f"{where(row) + ': ' if where else ''}{cls.value_names[0]} '{value[row]}' for query "
                f"'{row_of(row).query}', document '{row_of(row).doc}'. {cls.nan_advice}."
                for row in bad[:MAX_PROBLEMS].tolist()
            )
        )


def _check_duplicates(
    cls: type[Table],
    key: Codes,
    row_of: Callable[[int], Row],
    where: Callable[[int], str] | None,
    more: Callable[[int], str] = lambda row: "",
) -> None:
    ordered = np.sort(key)
    if (ordered[1:] == ordered[:-1]).any():
        order = np.argsort(key, kind="stable")
        same = np.append(False, key[order[1:]] == key[order[:-1]])
        second = order[same & ~np.append(False, same[:-1])]  # one row for a document that appears three times
        rows = np.sort(second)[:MAX_PROBLEMS].tolist()
        messages = (
            (where(row) + ": " if where else "") + duplicate_message(cls, *row_of(row), more(row)) for row in rows
        )
        hint = (
            'Documents appear twice. If their rows are for different subtopics, read them with kind="diversity" '
            "(`tiewise evaluate --qrels-kind diversity`)."
        )
        raise InputError(*([hint] if cls is Qrels and where and not more(rows[0]) else []), *messages)


def duplicate_message(cls: type[Table], query: str, doc: str, more: str = "") -> str:
    """The message about a document that appears twice in a list; `more` is what stands after the query."""
    return f"document '{doc}' appears twice in the {cls.noun} for query '{query}'{more}. Keep one of the rows."


def has_subtopics(kind: str) -> bool:
    """Whether judgments of this kind have subtopics; an unknown kind is an error."""
    if kind not in get_args(Kind):
        raise InputError(f"Unknown kind of judgments {kind!r}. Use {' or '.join(map(repr, get_args(Kind)))}.")
    return kind == "diversity"
