"""The doors in: a file or any object that holds a run or judgments becomes a `Run` or a `Qrels`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from tiewise.data.dict_run import MappedRun
from tiewise.data.runs import Qrels, Run, Source, Table
from tiewise.data.streamed import StreamedRun
from tiewise.errors import InputError, listed
from tiewise.io import text_native as compiled
from tiewise.io.arrow_run import ArrowRun
from tiewise.io.compression import PathLike, Stream, opened
from tiewise.io.file_run import FileRun
from tiewise.io.formats import FORMATS, check_format, family, layout_of, swapped
from tiewise.io.json_documents import read_document
from tiewise.io.layouts import blocks
from tiewise.io.parquet import ParquetFrame
from tiewise.io.text_python import parse_lines

__all__ = ["as_qrels", "as_run", "countable", "read_qrels", "read_run"]

AnyTable = TypeVar("AnyTable", bound=Table)
Built = TypeVar("Built")


def read_run(path: PathLike, *, format: str | None = None) -> Run:
    """The run in a file, plain or compressed (.gz, .zst, .bz2, .xz); ``-`` reads standard input.

    The format is recognised from the content: TREC's six columns, MS MARCO's three (query, document, rank, which
    becomes the score −rank), JSON, the predictions of MTEB or sentence-transformers, or Parquet. `format` forces one of
    ``trec``, ``msmarco``, ``json``, ``mteb``, ``sentence-transformers``, ``parquet``; ``mteb:default/test`` picks a
    subset and a split.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "run.trec"
    >>> _ = path.write_text("q1 Q0 d1 1 0.5 bm25\\nq1 Q0 d2 2 0.25 bm25\\n")
    >>> run = read_run(path)
    >>> run, run.name, run.to_dict()
    (<Run: 1 query, 2 rows>, 'bm25', {'q1': {'d1': 0.5, 'd2': 0.25}})
    """
    return _read(Run, path, format)


def read_qrels(path: PathLike, *, format: str | None = None) -> Qrels:
    """The judgments in a file, plain or compressed (.gz, .zst, .bz2, .xz); ``-`` reads standard input.

    The format is recognised from the content: TREC's four columns, three columns (query, document, label) with BEIR's
    header or without, JSON, or Parquet. `format` forces one of ``trec``, ``msmarco``, ``beir``, ``json``, ``parquet``.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "test.tsv"
    >>> _ = path.write_text("query-id\\tcorpus-id\\tscore\\nq1\\td1\\t2\\n")
    >>> qrels = read_qrels(path)
    >>> qrels.to_dict(), qrels.source.format
    ({'q1': {'d1': 2.0}}, 'beir')
    """
    return _read(Qrels, path, format)


def as_run(run: Any, *, format: str | None = None) -> Run | MappedRun:
    """A run from whatever holds one: a path, ``{query: {document: score}}``, a data frame, rows, or a run (ranx's too).

    >>> as_run([("q1", "d1", 0.5), ("q1", "d2", 0.25)])
    <Run: 1 query, 2 rows>
    """
    if isinstance(run, MappedRun):
        return run
    if isinstance(run, StreamedRun):
        return run.to_run()
    mapped = MappedRun.of(run) if isinstance(run, Mapping) else None
    return _as(Run, run, format) if mapped is None else mapped


def countable(run: Any, *, format: str | None = None) -> Run | MappedRun | StreamedRun:
    """A run to be counted: as `as_run`, but files of lines, Parquet and Arrow columns stay where they are.

    What can be read only once, such as standard input, is read into columns.
    """
    if isinstance(run, StreamedRun):
        return run
    if not compiled.available():
        return as_run(run, format=format)
    if hasattr(run, "__arrow_c_stream__"):
        table = ArrowRun.of_table(run)
        return as_run(run) if table is None else table
    if not isinstance(run, (str, os.PathLike)) or not _is_file(run):  # what is no file can be read only once
        return as_run(run, format=format)
    path = os.fspath(run)
    wanted, _ = check_format(Run, format)
    with opened(path, hashed=False) as stream:
        kind = family(stream.head, stream.name) if wanted is None else FORMATS[wanted]
    if kind == "lines":
        return FileRun(path, wanted, lambda: read_run(path, format=format))
    if kind == "parquet" and not stream.compressed:
        return _named(path, lambda given: ArrowRun.of_parquet(given, lambda: read_run(path, format=format)), path)
    return as_run(run, format=format)


def as_qrels(qrels: Any, *, format: str | None = None) -> Qrels:
    """Judgments from whatever holds them: a path, ``{query: {document: label}}``, a data frame, rows, or qrels.

    Qrels may be those of ranx.

    >>> as_qrels({"q1": {"d1": 1, "d2": 0}})
    <Qrels: 1 query, 2 rows>
    """
    return _as(Qrels, qrels, format)


def _as(cls: type[AnyTable], given: Any, format: str | None) -> AnyTable:
    if isinstance(given, cls):
        return given
    if isinstance(given, (Table, MappedRun)):
        raise InputError(f"Given: {swapped(cls)}")
    if isinstance(given, (str, os.PathLike)):
        return _read(cls, given, format)
    if isinstance(given, Mapping):
        return cls.from_dict(given)
    if any(hasattr(given, sign) for sign in ("__arrow_c_stream__", "collect_schema", "columns")):  # a data frame
        return cls.from_frame(given)
    if _is_of_ranx(given):
        return _from_ranx(cls, given)
    if isinstance(given, Iterable) and not isinstance(given, (bytes, bytearray)):
        if hasattr(given, "read"):
            name = getattr(given, "name", None)
            raise InputError(f"An open file holds no {cls.noun}. Give its path{f': {name!r}' * isinstance(name, str)}.")
        rows = list(given)
        _check_no_paths(cls, rows)
        try:
            return cls.from_rows(rows)
        except TypeError:  # its items are no rows
            pass
    kind, number = type(given).__name__, cls.value_names[0]
    raise InputError(
        f"An object of type {kind} holds no {cls.noun}. Give a path, {{query: {{document: {number}}}}}, a data frame, "
        f"or rows of (query, document, {number})."
    )


def _is_of_ranx(given: Any) -> bool:
    """Whether this is a `Run` or a `Qrels` of ranx, or is built like one: ranx itself is never imported."""
    return hasattr(given, "to_dict") and any(hasattr(given, table.noun) for table in (Run, Qrels))


def _from_ranx(cls: type[AnyTable], given: Any) -> AnyTable:
    if not hasattr(given, cls.noun):
        raise InputError(f"Given: {swapped(cls)}")
    table = cls.from_dict(given.to_dict())
    name = getattr(given, "name", None)
    return replace(table, name=name) if isinstance(table, Run) and isinstance(name, str) else table


def _check_no_paths(cls: type[Table], rows: list[Any]) -> None:
    """Raise if what should be rows are paths: text is never a row, though it could be taken apart as one."""
    if rows and all(isinstance(row, (str, os.PathLike)) for row in rows):
        shards = "; or, if they are shards of one run, all to tiewise.adapters.ray.evaluate" if cls is Run else ""
        some = listed(map(os.fspath, rows))
        raise InputError(f"A list of text ({some}) holds no {cls.noun}. Give one path{shards}.")


def _read(cls: type[AnyTable], path: PathLike, format: str | None) -> AnyTable:
    wanted, part = check_format(cls, format)
    with opened(path) as stream:
        kind = family(stream.head, stream.name) if wanted is None else FORMATS[wanted]
        if kind == "lines":
            found, table = _read_lines(cls, stream, wanted)
        elif kind == "documents":
            found, rows = read_document(stream.read(), wanted, part, stream.name)
            if cls is Qrels and found != "json":
                raise InputError(f"{stream.name}: looks like {swapped(cls, found)}")
            table = _named(stream.name, cls.from_dict, rows)
        else:
            found, table = "parquet", _named(stream.name, cls.from_frame, ParquetFrame(stream.read(), stream.name))
    if not len(table):
        raise InputError(f"{stream.name}: holds no rows.")
    return replace(table, source=Source(stream.name, stream.sha256(), found))


def _read_lines(cls: type[AnyTable], stream: Stream, format: str | None) -> tuple[str, AnyTable]:
    layout, parts = layout_of(cls, blocks(stream.chunks()), format, stream.name)
    found = (compiled.columns if compiled.available() else parse_lines)(parts, layout, stream.name)
    columns: dict[str, Any] = {"rank": found.rank, "name": found.tag} if cls is Run else {}
    table = cls.from_codes(
        found.query,
        found.queries,
        found.doc,
        found.docs,
        -found.number if layout.number == "rank" else found.number,  # rank 1 scores highest
        where=lambda row: f"{stream.name}:{found.line(row)}",
        **columns,
    )
    return layout.format, table


def _is_file(path: PathLike) -> bool:
    try:
        return Path(path).is_file()
    except (OSError, ValueError):  # too long, or with a NUL byte
        return False


def _named(name: str, build: Callable[[Any], Built], rows: Any) -> Built:
    """A table, or its errors with the file's name before them."""
    try:
        return build(rows)
    except InputError as error:
        raise InputError(*(f"{name}: {problem}" for problem in error.problems)) from None
