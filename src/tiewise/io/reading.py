"""Reading a file as a `Run` or as `Qrels`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from io import StringIO
from numbers import Real
from typing import Any, TypeVar, cast

from tiewise.data.judgments import Kind, Qrels, has_subtopics
from tiewise.data.native import native
from tiewise.data.runs import Run
from tiewise.data.source import Source
from tiewise.data.table import RANK_NAMES, Table, find_name, row_fields, swapped_message
from tiewise.errors import InputError, prefix_errors
from tiewise.io.compression import FileLike, Reread, Stream, check_expansion, opened
from tiewise.io.formats import FORMATS, TREC_RUN, check_format, detect_family, detect_layout
from tiewise.io.rankings import parse_number, row_names
from tiewise.io.text import line_blocks, read_columns
from tiewise.io.text_columns import names_columns

AnyTable = TypeVar("AnyTable", bound=Table)


def read_run(path: FileLike, *, format: str | None = None, input_columns: str | Sequence[str] | None = None) -> Run:
    """The run in a file, plain or compressed (.gz, .zst, .bz2, .xz, .zip); ``-`` reads standard input.

    The format is recognised from the content: TREC's six columns, MS MARCO's three (query, document, rank, which
    becomes the score −rank), other columns, JSON, the predictions of MTEB or sentence-transformers, rankings and
    responses of rerankers, Parquet, or Arrow (Feather). `format` forces one of ``trec``, ``msmarco``, ``columns``,
    ``json``, ``mteb``, ``sentence-transformers``, ``reranker``, ``rankings``, ``rows``, ``parquet``, ``arrow``;
    ``mteb:default/test`` picks a subset and a split, and ``rankings:l2`` names the metric of distances. `input_columns`
    names the columns of a file of text: ``"query,doc,score"``. An open file is read, too.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "run.trec"
    >>> _ = path.write_text("q1 Q0 d1 1 0.5 bm25\\nq1 Q0 d2 2 0.25 bm25\\n")
    >>> run = read_run(path)
    >>> run, run.name, run.to_dict()
    (<Run: 1 query, 2 rows>, 'bm25', {'q1': {'d1': 0.5, 'd2': 0.25}})
    """
    return read_table(Run, path, column_format(format, input_columns))


def column_format(format: str | None, input_columns: str | Sequence[str] | None) -> str | None:
    """The format of columns that are named; the given one if they are not.

    >>> column_format(None, ["query", "doc", "score"])
    'columns:query,doc,score'
    """
    if input_columns is None:
        return format
    if format not in (None, "columns"):
        raise InputError(f"Format {format!r} has its own columns. Leave out one of them.")
    return f"columns:{input_columns if isinstance(input_columns, str) else ','.join(input_columns)}"


def read_qrels(path: FileLike, *, format: str | None = None, kind: Kind = "adhoc") -> Qrels:
    """The judgments in a file, plain or compressed (.gz, .zst, .bz2, .xz, .zip); ``-`` reads standard input.

    The format is recognised from the content: TREC's four columns, three columns (query, document, label) with BEIR's
    header or without, other columns, JSON, or Parquet. `format` forces one of ``trec``, ``msmarco``, ``beir``,
    ``json``, ``rankings``, ``rows``, ``parquet``; ``columns:query,doc,label`` names the columns.

    With ``kind="diversity"`` TREC's second column is the subtopic for which a document was judged; else it is ignored.
    JSON has ``{query: {document: {subtopic: label}}}`` then, and Parquet a column ``subtopic`` or ``iteration``.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "test.tsv"
    >>> _ = path.write_text("query-id\\tcorpus-id\\tscore\\nq1\\td1\\t2\\n")
    >>> qrels = read_qrels(path)
    >>> qrels.to_dict(), qrels.source.format
    ({'q1': {'d1': 2.0}}, 'beir')
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "diversity.txt"
    >>> _ = path.write_text("q1 s1 d1 1\\nq1 s2 d1 0\\n")
    >>> read_qrels(path, kind="diversity").to_dict()
    {'q1': {'d1': {'s1': 1.0, 's2': 0.0}}}
    """
    return read_table(Qrels, path, format, kind=kind)


def read_table(
    cls: type[AnyTable], path: FileLike, format: str | None, *, hashed: bool = True, kind: Kind = "adhoc"
) -> AnyTable:
    """A run or judgments in a file. Without `hashed` its SHA-256 is computed when it is first asked for."""
    format, part = check_format(cls, format, kind)
    file = None if hashed or not isinstance(path, (str, os.PathLike)) else Reread(os.fspath(path))
    with opened(path, hashed=file is None) as stream:
        name = stream.name
        read = READERS[detect_family(format, stream.head, name)]
        format, table = read(cls, stream, format, part, kind)
    if not len(table):
        raise InputError(f"{name}: has no rows.")
    if has_subtopics(kind) and getattr(table, "subtopics", None) is None:
        raise InputError(f"{name}: has no subtopics. Expected {{query: {{document: {{subtopic: label}}}}}}.")
    sha256 = stream.sha256() if file is None else lambda: file.sha256
    return replace(table, source=Source(name, sha256, format))


def read_rows(cls: type[AnyTable], rows: list[Any], **kind: Any) -> AnyTable:
    """The table of rows: ``(query, document, number)``, named tuples or mappings; others are the lines of a file.

    >>> read_rows(Run, [("q1", "Q0", "d1", 1, 0.5, "bm25")]).to_dict()
    {'q1': {'d1': 0.5}}
    """
    if rows and is_line(rows[0]):
        lines = [row if isinstance(row, str) else "\t".join(map(str, row)) for row in rows]
        if not isinstance(rows[0], str) and len(lines[0].split()) == len(TREC_RUN.columns) != len(rows[0]):
            raise InputError(
                f"the cells of {rows[0]!r:.60} have blanks, so they may be a line of TREC. Give rows of "
                f"(query, document, {cls.value_names[0]})."
            )
        with opened(StringIO("\n".join(lines)), name=f"rows of the {cls.noun}") as stream:
            read = READERS[detect_family(None, stream.head, stream.name)]
            return read(cls, stream, None, "", kind.get("kind", "adhoc"))[1]
    return cls.from_rows(_parse_numbers(cls, rows), **kind)


def is_line(row: Any) -> bool:
    """Whether a row is a line of a file, or the cells of one: more than a query, a document and a number, or a header.

    >>> is_line("q1 Q0 d1 1 0.5 bm25"), is_line(["qid", "docno", "score"]), is_line(["q1", "d1", 0.5])
    (True, True, False)
    """
    if isinstance(row, str):
        return len(row.split()) > 2
    if not isinstance(row, (list, tuple)) or row_fields([row]) is not None:
        return False
    return all(isinstance(cell, (str, Real)) for cell in row) and (
        len(row) > 3 or (len(row) == 3 and names_columns([*map(str, row)]))
    )


def _parse_numbers(cls: type[Table], rows: list[Any]) -> list[Any]:
    """The same rows, with numbers that are written as text, as of CSV or by ``json.dumps(rows, default=str)``."""
    first = rows[0] if rows else ()
    if isinstance(first, Mapping):
        names = [name for name in (row_names(cls, first)[2], find_name(first, RANK_NAMES)) if name in first]
        texts = [name for name in names if isinstance(first[name], str)]
        return [{**row, **{name: parse_number(row.get(name)) for name in texts}} for row in rows] if texts else rows
    is_text = isinstance(first, (list, tuple)) and len(first) == 3 and isinstance(first[2], str)
    is_text &= row_fields(rows) is None
    return [(*row[:2], *map(parse_number, row[2:])) for row in rows] if is_text else rows


def _read_lines(cls: type[AnyTable], stream: Stream, format: str | None, part: str, kind: Kind) -> tuple[str, AnyTable]:
    # The text of judgments stays in memory, so it is read as one block. The reader in Python copies cells.
    if native() is not None and cls is Qrels and not has_subtopics(kind):
        parts: Iterable[bytes] = filter(None, [stream.read()])
    else:
        parts = line_blocks(stream.chunks(), stream.name)
    layout, blocks = detect_layout(cls, parts, format, part, stream.name, kind)
    found = read_columns(blocks, layout, stream.name)
    columns: tuple[Any, ...] = (found.lists, found.queries, found.documents, found.value)

    def where(row: int) -> str:
        return f"{stream.name}:{found.line(row)}"

    build: Any = cls.from_codes
    optional: dict[str, Any] = {"offsets": found.offsets}
    if cls is Run:
        optional |= {"rank": found.rank, "name": found.tag}
    if found.subtopic is not None:
        build, optional = Qrels.from_subtopic_codes, {}
        columns = (found.query, *columns[1:], *found.subtopic)
    table: AnyTable = build(*columns, where=where, **optional)
    return layout.format, table


def _read_documents(
    cls: type[AnyTable], stream: Stream, format: str | None, part: str, kind: Kind
) -> tuple[str, AnyTable]:
    from tiewise.io.json_documents import estimate_memory, read_document

    data = stream.read()
    check_expansion(stream.name, stream.n_raw, estimate_memory(data))
    format, table = read_document(cls, data, format, part, stream.name)
    if cls is Qrels and FORMATS[format].only == "run":
        raise InputError(f"{stream.name}: looks like {swapped_message(cls, format)}")
    with prefix_errors(stream.name):
        if not isinstance(table, Table):
            table = read_rows(cls, table) if isinstance(table, list) else cls.from_dict(table)
        return format, cast("AnyTable", table)


def _read_frame(cls: type[AnyTable], stream: Stream, format: str | None, part: str, kind: Kind) -> tuple[str, AnyTable]:
    from tiewise.io.json_documents import read_frame
    from tiewise.io.parquet import ArrowFrame, ParquetFrame

    data, options = stream.read(), {"kind": kind} if cls is Qrels else {}
    is_arrow = detect_family(format, stream.head, stream.name) == "arrow"
    with prefix_errors(stream.name):
        frame = ArrowFrame(data) if is_arrow else ParquetFrame(data)
        return "arrow" if is_arrow else "parquet", read_frame(cls, frame, **options)


#: What reads each family of formats: the format that was recognised, and the table.
READERS: Mapping[str, Callable[..., tuple[str, Any]]] = {
    "lines": _read_lines,
    "documents": _read_documents,
    "parquet": _read_frame,
    "arrow": _read_frame,
}
