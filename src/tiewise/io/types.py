"""Types of arguments: everything that functions accept as judgments or as a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Protocol, SupportsFloat

from tiewise.data.judgments import Qrels
from tiewise.data.runs import Run
from tiewise.io.compression import FileLike
from tiewise.ties.counted import RunSource
from tiewise.ties.groups import TieGroups


class ArrowStream(Protocol):
    """An Arrow table, or a data frame that exports one by the PyCapsule interface (pandas, polars, DuckDB …)."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The stream as a capsule."""


class DataFrame(Protocol):
    """A data frame with named columns."""

    @property
    def columns(self) -> Any:
        """The names of the columns."""

    def __getitem__(self, name: Any, /) -> Any:
        """A column."""


class LazyFrame(Protocol):
    """A lazy data frame of polars."""

    def collect_schema(self) -> Any:
        """The names and types of the columns."""


class RanxQrels(Protocol):
    """`Qrels` of ranx."""

    qrels: Any

    def to_dict(self) -> Any:
        """``{query: {document: label}}``."""


class RanxRun(Protocol):
    """A `Run` of ranx."""

    run: Any

    def to_dict(self) -> Any:
        """``{query: {document: score}}``."""


Nested = Mapping[Any, Mapping[Any, SupportsFloat]]  # {query: {document: number}}
Diverse = Mapping[Any, Mapping[Any, Mapping[Any, SupportsFloat]]]  # {query: {document: {subtopic: label}}}
Rankings = Mapping[Any, Sequence[Any] | AbstractSet[Any]]  # {query: documents in order, pairs, or objects}
# (query, document, number). A `Run` is iterable too, but it is neither of these: swapped arguments are a type error.
Row = tuple[Any, ...] | list[Any] | Mapping[str, Any]
Rows = Sequence[Row] | Iterator[Row]

#: Judgments: a path, ``{query: {document: label}}`` (for diversity, ``{query: {document: {subtopic: label}}}``), a data
#: frame, rows of three values, relevant documents, an open file, or `Qrels`.
QrelsLike = FileLike | Qrels | Nested | Diverse | Rankings | ArrowStream | DataFrame | LazyFrame | RanxQrels | Rows
#: A run: a path, ``{query: {document: score}}``, a data frame, rows of three values, a `Run`, or `TieGroups`.
RunLike = (
    FileLike | Run | TieGroups | RunSource | Nested | Rankings | ArrowStream | DataFrame | LazyFrame | RanxRun | Rows
)
