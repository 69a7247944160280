"""Whatever holds a run or judgments: a path, a dictionary, a data frame, an Arrow table, rows, another library's run.

`as_source` leaves a run where it is, so that it can be counted there. `as_run` gives its rows.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from tiewise.data.columns import Floats
from tiewise.data.runs import Qrels, Run, Table
from tiewise.errors import InputError
from tiewise.io import text_native
from tiewise.io.arrow_run import ArrowRun
from tiewise.io.compression import PathLike, opened
from tiewise.io.dict_run import DictRun
from tiewise.io.file_run import FileRun
from tiewise.io.formats import FORMATS, check_format, family, swapped
from tiewise.io.memory_run import MemoryRun
from tiewise.io.reading import prefix_errors, read_qrels, read_run
from tiewise.tables.wording import list_examples
from tiewise.ties.counted import Counted, RunSource
from tiewise.ties.groups import TieGroups

__all__ = ["as_lists", "as_qrels", "as_run", "as_source", "count_shards", "judged_scores", "tie_groups"]

AnyTable = TypeVar("AnyTable", bound=Table)


def as_source(run: Any, *, format: str | None = None) -> RunSource:
    """A run that can be counted where it is; one that can be read only once, such as standard input, is read now.

    >>> as_source({"q1": {"d1": 0.5}}).rows()
    <Run: 1 query, 1 row>
    """
    if isinstance(run, TieGroups):
        return Counted.of(run)
    if isinstance(run, RunSource):
        return run
    if isinstance(run, Mapping):
        in_dict = DictRun.of(run)
        return MemoryRun(Run.from_dict(run)) if in_dict is None else in_dict
    if text_native.available():
        if hasattr(run, "__arrow_c_stream__"):
            table = ArrowRun.of_table(run)
            return MemoryRun(_convert(Run, run, format)) if table is None else table
        if isinstance(run, (str, os.PathLike)) and _is_file(run):  # anything else can be read only once
            return _file_source(os.fspath(run), format)
    return MemoryRun(_convert(Run, run, format))


def _file_source(path: str, format: str | None) -> RunSource:
    """A run in a file: text and Parquet are counted where they are."""
    wanted, _ = check_format(Run, format)
    with opened(path, hashed=False) as stream:
        kind = family(stream.head, stream.name) if wanted is None else FORMATS[wanted]
    if kind == "lines":
        return FileRun(path, wanted, lambda: read_run(path, format=format))
    if kind == "parquet" and not stream.compressed:
        return prefix_errors(path, lambda name: ArrowRun.of_parquet(name, lambda: read_run(path, format=format)), path)
    return MemoryRun(read_run(path, format=format))


def as_run(run: Any, *, format: str | None = None) -> Run:
    """The rows of whatever holds a run: a path, ``{query: {document: score}}``, a data frame, rows, or a run.

    >>> as_run([("q1", "d1", 0.5), ("q1", "d2", 0.25)])
    <Run: 1 query, 2 rows>
    """
    if isinstance(run, (TieGroups, RunSource)):
        return as_source(run).rows()
    return _convert(Run, run, format)


def as_lists(run: Any) -> Run | DictRun:
    """A run in memory whose lists can be counted: a dictionary stays as it is, anything else becomes a `Run`."""
    source = as_source(run)
    return source if isinstance(source, DictRun) else source.rows()


def as_qrels(qrels: Any, *, format: str | None = None) -> Qrels:
    """Judgments from whatever holds them: a path, ``{query: {document: label}}``, a data frame, rows, or qrels.

    Qrels may be those of ranx.

    >>> as_qrels({"q1": {"d1": 1, "d2": 0}})
    <Qrels: 1 query, 2 rows>
    """
    return _convert(Qrels, qrels, format)


def _convert(cls: type[AnyTable], given: Any, format: str | None) -> AnyTable:
    if isinstance(given, cls):
        return given
    if isinstance(given, Table):
        raise InputError(f"Given: {swapped(cls)}")
    if isinstance(given, (str, os.PathLike)):
        return (read_run if cls is Run else read_qrels)(given, format=format)  # type: ignore[return-value]
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
        some = list_examples(map(os.fspath, rows))
        raise InputError(f"A list of text ({some}) holds no {cls.noun}. Give one path{shards}.")


def _is_file(path: PathLike) -> bool:
    try:
        return Path(path).is_file()
    except (OSError, ValueError):  # too long, or with a NUL byte
        return False


def tie_groups(
    qrels: Any, run: Any, orders: Sequence[str] = ("docid-desc",), *, scores: Floats | None = None
) -> TieGroups:
    """The tie groups of the judged documents of a run, by counting.

    `qrels` and `run` are whatever `evaluate` takes: paths, dictionaries, data frames, rows, `Qrels` and `Run`.
    `orders` names the tie-break orders for which to count `before`. `scores` are the judged scores of a larger
    collection of which `run` is one shard; without them the run is the whole collection.

    >>> tie_groups({"q": {"a": 1, "z": 1}}, {"q": {"a": 1.0, "b": 1.0, "c": 2.0}})
    <TieGroups: 1 query, 1 judged document retrieved, 1 of them tied>
    """
    return as_source(run).count(as_qrels(qrels), tuple(orders), ("float64",), scores=scores).ties["float64"]


def judged_scores(qrels: Any, run: Any) -> Floats:
    """The score of every judged document, NaN where the run does not have it; both as `evaluate` takes them."""
    return tie_groups(qrels, run, ()).score


def count_shards(qrels: Any, shards: Sequence[Any], orders: Sequence[str]) -> TieGroups:
    """The tie groups of a run that is cut into shards of disjoint documents: see `TieGroups.from_shards`."""
    if not shards:
        raise InputError("There are no shards to count.")
    judged, sources = as_qrels(qrels), [as_source(shard) for shard in shards]
    scores = np.fmax.reduce([judged_scores(judged, source) for source in sources])
    return TieGroups.merge(tie_groups(judged, source, orders, scores=scores) for source in sources)
