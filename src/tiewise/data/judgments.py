"""`Qrels`: judgments, a label for each judged document of each query; for diversity measures, one for each subtopic."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from tiewise.caching import cached_property
from tiewise.data.columns import Codes, Floats, encode, frame_columns, freeze, identifier, numbers, ranges
from tiewise.data.documents import Documents
from tiewise.data.table import (
    LABEL_NAMES,
    Row,
    Table,
    check_duplicates,
    check_mapping,
    check_numbers,
    mapped_rows,
    pick_column,
)
from tiewise.errors import InputError
from tiewise.results.wording import count_noun

if TYPE_CHECKING:
    from typing_extensions import Self

SUBTOPIC_NAMES = ("subtopic", "subtopic_id")

#: The kinds of judgments: a label for each document, or one for each subtopic of a document.
Kind = Literal["adhoc", "diversity"]

Value = TypeVar("Value")


@dataclass(frozen=True, eq=False, repr=False)
class Subtopics:
    """A label for each subtopic for which a document was judged, document by document.

    >>> two = Subtopics(np.array([0, 2, 3]), np.array([0, 1, 1]), np.array([1.0, 2.0, 1.0]), ("a", "b"))
    >>> two.row, two.take(np.array([1])).code, two.highest
    (array([0, 0, 1]), array([1]), array([2., 1.]))
    """

    offsets: Codes  # (n_documents + 1,): labels offsets[i] to offsets[i + 1] are those of document i
    code: Codes  # (n_labels,): the subtopic, as a place in `names`
    label: Floats  # (n_labels,)
    names: tuple[str, ...]  # the ids of subtopics; queries may share an id, not a subtopic

    def __post_init__(self) -> None:
        for one in fields(self):
            column = getattr(self, one.name)
            if isinstance(column, np.ndarray):
                object.__setattr__(self, one.name, freeze(column))

    def __len__(self) -> int:
        return len(self.label)

    @cached_property
    def row(self) -> Codes:
        """The document of each label, (n_labels,)."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))

    @property
    def highest(self) -> Floats:
        """The highest label of each document, which has at least one, (n_documents,)."""
        highest: Any = np.maximum.reduceat(self.label, self.offsets[:-1]) if len(self) else np.zeros(0)
        return highest

    def take(self, rows: NDArray[Any]) -> Subtopics:
        """Those of some documents."""
        n = np.diff(self.offsets)[rows]
        labels = ranges(self.offsets[rows], n)
        return Subtopics(np.append(0, np.cumsum(n)), self.code[labels], self.label[labels], self.names)


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
    duplicate_hint = (
        'Documents appear twice. If their rows are for different subtopics, read them with kind="diversity" '
        "(`tiewise evaluate --qrels-kind diversity`)."
    )

    @property
    def has_whole_labels(self) -> bool:
        """Whether all labels are whole numbers."""
        return bool((self.value == np.trunc(self.value)).all())

    def with_whole_labels(self, *, rounded: bool = False) -> Qrels:
        """The same judgments without the fractions of labels, as trec_eval reads them: 2.7 is 2; or `rounded`: 3."""
        return replace(self, value=freeze(np.rint(self.value) if rounded else np.trunc(self.value)))

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
        check_duplicates(cls, pair, row_of, where, lambda row: f", subtopic '{names[subtopic[row]]}'")
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
        check_mapping(cls, table)
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
        if listing and isinstance(listing[0], Mapping):
            return cls._from_named_subtopics(*mapped_rows(listing))
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

    def named_columns(self) -> dict[str, Any]:
        """The columns by name: query_id, doc_id, relevance and, if there are any, subtopic."""
        if self.subtopics is None:
            return super().named_columns()
        names, rows = ("query_id", "subtopic", "doc_id", self.value_names[0]), list(self.trec_rows())
        return {name: [row[place] for row in rows] for place, name in enumerate(names)}

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
        some = self.derived("nonzero", self._take_nonzero)
        return self if some is None else some

    def _take_nonzero(self) -> Qrels | None:
        """Those without label 0; None if there is none with it."""
        if self.label.all():
            return None
        return self.take(np.flatnonzero(self.label), pool=Pool(self.documents, self.offsets))

    # -- what follows from judgments alone --------------------------------------------------------------------

    def derived(self, key: Hashable, compute: Callable[[], Value]) -> Value:
        """What is computed from these judgments alone, under a key: computed once, for any number of runs.

        An array is read-only.

        >>> qrels = Qrels.from_dict({"q1": {"a": 1, "b": 0}})
        >>> qrels.derived("total", lambda: float(qrels.label.sum())), qrels.derived("total", lambda: 0.0)
        (1.0, 1.0)
        """
        if key not in self._derived:
            value = compute()
            self._derived[key] = freeze(value) if isinstance(value, np.ndarray) else value
        found: Value = self._derived[key]
        return found

    @cached_property
    def _derived(self) -> dict[Hashable, Any]:
        return {}

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_derived"}


def has_subtopics(kind: str) -> bool:
    """Whether judgments of this kind have subtopics; an unknown kind is an error."""
    if kind not in get_args(Kind):
        raise InputError(f"Unknown kind of judgments {kind!r}. Use {' or '.join(map(repr, get_args(Kind)))}.")
    return kind == "diversity"
