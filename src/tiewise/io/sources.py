"""Conversion of all kinds of input: a path, a dictionary, a data frame, an Arrow table, rows, a run of ranx.

`as_source` leaves a run where it is and counts it there. `as_run` reads its rows.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from tiewise.data.columns import Floats
from tiewise.data.judgments import Kind, Qrels
from tiewise.data.native import native
from tiewise.data.runs import Run
from tiewise.data.table import DOC_NAMES, QUERY_NAMES, Table, find_name, swapped_message
from tiewise.errors import InputError, prefix_errors
from tiewise.io.compression import PathLike, opened
from tiewise.io.edited_run import edit_run
from tiewise.io.file_run import FileRun
from tiewise.io.formats import check_format, detect_family
from tiewise.io.memory_run import DictRun, MemoryRun
from tiewise.io.rankings import as_table, rows_of_columns, table_of_batch
from tiewise.io.reading import is_line, read_rows, read_run, read_table
from tiewise.io.search_responses import is_id
from tiewise.results.wording import list_examples
from tiewise.ties.counted import Counted, RunSource
from tiewise.ties.groups import TieGroups
from tiewise.ties.orders import arrange_ties

if TYPE_CHECKING:
    from tiewise.io.types import QrelsLike, RunLike

MAX_LABEL = 10  # labels above it are rare
UNNAMED = re.compile(r"(column_)?\d+")  # how pandas and polars call columns that have no header
MAX_FRACTIONS = 101  # the labels 0, .01 ... 1

AnyTable = TypeVar("AnyTable", bound=Table)


def as_source(run: RunLike, *, format: str | None = None) -> RunSource:
    """A run that is counted where it is. One that can be read only once, such as standard input, is read now.

    >>> as_source({"q1": {"d1": 0.5}}).rows()
    <Run: 1 query, 1 row>
    """
    if isinstance(run, TieGroups):
        return Counted.of(run)
    if isinstance(run, RunSource):
        return run
    if (module := native()) is not None:
        if isinstance(run, dict) and all(issubclass(kind, Mapping) for kind in set(map(type, run.values()))):
            return DictRun(run, module)
        if hasattr(run, "__arrow_c_stream__"):
            from tiewise.io.arrow_run import ArrowRun

            run = _as_plain_frame(run)
            table = ArrowRun.of_table(run)
            return MemoryRun(_convert(Run, run, format)) if table is None else table
        if isinstance(run, (str, os.PathLike)) and _is_file(run):  # a pipe can be read only once
            return _file_source(os.fspath(run), format)
    return MemoryRun(_convert(Run, run, format))


def _file_source(path: str, format: str | None) -> RunSource:
    """A run in a file: text and Parquet are counted where they are."""
    name, _ = check_format(Run, format)
    with opened(path, hashed=False) as stream:
        family = detect_family(name, stream.head, stream.name)
        if family == "lines":
            return FileRun(path, format, stream)
    if family == "parquet" and not stream.compressed:
        from tiewise.io.arrow_run import ArrowRun

        with prefix_errors(path):
            table = ArrowRun.of_parquet(path)
        if table is not None:
            return table
    return MemoryRun(read_run(path, format=format))


def as_run(run: RunLike, *, format: str | None = None, distances: bool = False) -> Run:
    """The rows of a run: a path, ``{query: {document: score}}``, a data frame, rows, or a `Run`.

    With `distances`, scores are negated.

    >>> as_run([("q1", "d1", 0.5), ("q1", "d2", 0.25)])
    <Run: 1 query, 2 rows>
    """
    is_source = isinstance(run, (TieGroups, RunSource))
    rows = as_source(run).rows() if is_source else _convert(Run, run, format)
    return edit_run(rows, distances=distances)


def as_qrels(qrels: QrelsLike, *, format: str | None = None, kind: Kind = "adhoc") -> Qrels:
    """Judgments from a path, ``{query: {document: label}}``, a data frame, rows, or `Qrels`, also those of ranx.

    `kind` is as in `read_qrels`.

    >>> as_qrels({"q1": {"d1": 1, "d2": 0}})
    <Qrels: 1 query, 2 rows>
    """
    return _convert(Qrels, qrels, format, kind=kind)


def check_not_swapped(qrels: QrelsLike | None, run: RunLike, judged: Qrels | None) -> None:
    """Raise if scores were very likely given as judgments, and labels as a run, both in dictionaries.

    The labels `look_like_scores`; all scores are small integers, and some are equal or 0.
    """
    if judged is None or not (isinstance(qrels, Mapping) and isinstance(run, Mapping)):
        return
    if not look_like_scores(judged.label):
        return
    lists = [list(docs.values()) for docs in run.values() if isinstance(docs, Mapping)]
    scores: set[Any] = {score for values in lists for score in values}
    if not scores or not all(isinstance(score, Integral) and 0 <= int(score) <= MAX_LABEL for score in scores):
        return
    if 0 in scores or len(lists) == sum(map(len, lists)) or any(len(set(values)) < len(values) for values in lists):
        raise InputError(
            f"The qrels look like a run (label {find_fraction(judged.label):g}), and the run like qrels (score "
            f"{max(scores)}). Where both are given, qrels come first. If they are right, give the scores as floats."
        )


def look_like_scores(values: Floats) -> bool:
    """Whether most numbers are fractions, and more than half of the numbers, or more than 101, are distinct.

    >>> look_like_scores(np.array([0.73, 0.51])), look_like_scores(np.array([1.0, 0.5, 0.0, 0.5]))
    (True, False)
    """
    fractions, distinct = np.count_nonzero(values != np.round(values)), len(np.unique(values))
    return bool(fractions > len(values) / 2 and distinct > min(len(values) / 2, MAX_FRACTIONS))


def find_fraction(values: Floats) -> float:
    """The first number that is not whole."""
    return float(values[np.argmax(values != np.round(values))])


def _convert(cls: type[AnyTable], given: Any, format: str | None, **kind: Any) -> AnyTable:
    """A run or judgments from whatever they were given as: see `SHAPES`."""
    if isinstance(given, cls):
        return given
    if isinstance(given, Table):
        raise InputError(f"Found {swapped_message(cls)}")
    if isinstance(given, (str, os.PathLike)):
        return read_table(cls, given, format, hashed=not _is_file(given), **kind)
    given = _as_plain_frame(given)
    for matches, read in SHAPES:
        if matches(given):
            table: AnyTable = read(cls, given, **kind)
            return table
    raise _unknown_type(cls, given)


def _refuse_arrays(cls: type[Table], given: Any, **kind: Any) -> Any:
    """Raise for scores or labels without ids."""
    raise InputError(
        f"A {type(given).__name__} of numbers has no ids, so it is not {_expected(cls)}. {_shapes(cls)} Arrays of "
        "scores and labels go to tw.evaluate_scores(scores, labels, measures); those of scores and ids are a run: "
        "tw.Run.from_neighbors(scores, ids)."
    )


def _are_numbers(given: Any) -> bool:
    """Whether these are an array or a tensor of numbers, or lists of numbers: scores or labels without ids."""
    if hasattr(given, "dtype") and hasattr(given, "shape") and not hasattr(given, "columns"):
        kind = getattr(given.dtype, "kind", "f")  # a tensor holds nothing else
        return kind in "bf" or (kind in "iu" and not (len(given.shape) == 2 and given.shape[1] == 3))  # rows
    first = given[0] if isinstance(given, (list, tuple)) and given else None
    if isinstance(given, tuple) and len(getattr(first, "shape", ())) == 2:  # of an index: scores and ids
        return True
    if isinstance(first, (list, tuple)) and first and not hasattr(first, "_fields"):
        first = first[0] if len(first) != 3 or isinstance(first[0], float) else None
    return isinstance(first, Real) and not isinstance(first, bool)


def _unknown_type(cls: type[Table], given: Any) -> InputError:
    return InputError(f"An object of type {type(given).__name__} is not {_expected(cls)}. {_shapes(cls)}")


def _shapes(cls: type[Table]) -> str:
    number = cls.value_names[0]
    shapes = f"{{query: {{document: {number}}}}}, a data frame, or rows of (query, document, {number})"
    return f"Give a path, {shapes}."


def _expected(cls: type[Table]) -> str:
    return "a run" if cls is Run else "qrels"


def _as_plain_frame(given: Any) -> Any:
    """A frame or series of pandas with its index as columns, if it names queries or documents; others unchanged.

    What a query of DuckDB found becomes an Arrow table, and a frame that was read without a header lines.
    """
    if hasattr(given, "fetchnumpy"):
        return (given.to_arrow_table if hasattr(given, "to_arrow_table") else given.fetch_arrow_table)()
    is_frame = hasattr(given, "to_dict") and hasattr(given, "columns") and not hasattr(given, "column_names")
    if is_frame and len(given.columns) and all(UNNAMED.fullmatch(str(name)) for name in given.columns):
        rows = given.rows() if hasattr(given, "rows") else given.itertuples(index=False, name=None)
        return ["\t".join(map(str, row)) for row in rows]
    names = getattr(getattr(given, "index", None), "names", ())
    is_named = isinstance(names, Sequence) and any(name in (*QUERY_NAMES, *DOC_NAMES) for name in names)
    if not is_named or not hasattr(given, "reset_index"):
        return given
    return given.reset_index() if hasattr(given, "columns") else given.rename("score").reset_index()


def _has_any(given: Any, *names: str) -> bool:
    return any(hasattr(given, name) for name in names)


def _from_ranx(cls: type[AnyTable], given: Any, **kind: Any) -> AnyTable:
    """A table from a `Run` or `Qrels` of ranx, known by its attributes: ranx is never imported."""
    if not hasattr(given, cls.noun):
        raise InputError(f"Found {swapped_message(cls)}")
    table = cls.from_dict(given.to_dict())
    name = getattr(given, "name", None)
    return replace(table, name=name) if isinstance(table, Run) and isinstance(name, str) else table


def _from_mapping(cls: type[AnyTable], given: Any, **kind: Any) -> AnyTable:
    """A table from ``{query: ranking}``, or from columns by name."""
    if any(map(_is_data_set, given.values())):  # such as a `DatasetDict`
        raise InputError(f"{_expected(cls)} is one split of a data set. This has {list_examples(given)}: give one.")
    if (rows := rows_of_columns(cls, given)) is not None:
        return cls.from_rows(rows, **kind)
    table = table_of_batch(cls, given)
    return cls.from_dict(as_table(cls, given)) if table is None else table


def _is_data_set(given: Any) -> bool:
    """Whether this is a `datasets.Dataset`, by its attributes: datasets is never imported."""
    return hasattr(given, "column_names") and hasattr(given, "features") and not isinstance(given, Mapping)


def _from_frame(cls: type[AnyTable], given: Any, **kind: Any) -> AnyTable:
    from tiewise.io.json_documents import read_frame

    return read_frame(cls, given, **kind)


def _as_row(row: Any) -> Any:
    """The attributes of an object, such as a data class, if they name a query and a document; arrays as lists."""
    if isinstance(row, np.ndarray):
        return row.tolist()
    if isinstance(row, (tuple, list, str, Mapping)) or not hasattr(row, "__dict__"):
        return row
    names = [name for name in vars(row) if isinstance(name, str)]
    return vars(row) if find_name(names, QUERY_NAMES) and find_name(names, DOC_NAMES) else row


def _is_ranking(query: Any, given: Any) -> bool:
    return is_id(query) and isinstance(given, (Mapping, list, AbstractSet))


def _from_pairs(cls: type[AnyTable], pairs: list[tuple[Any, Any]]) -> AnyTable:
    """A table from queries with their rankings, such as the items of a dictionary."""
    table = dict(pairs)
    if len(table) < len(pairs):
        query = Counter(query for query, _ in pairs).most_common(1)[0][0]
        raise InputError(f"query {query!r} appears twice in the {cls.noun}. Keep one.")
    return _from_mapping(cls, table)


def _from_rows(cls: type[AnyTable], given: Any, **kind: Any) -> AnyTable:
    from tiewise.io.json_documents import read_ranked_rows

    rows = [_as_row(row) for row in given]
    if rows and all(isinstance(row, tuple) and len(row) == 2 and _is_ranking(*row) for row in rows):
        return _from_pairs(cls, rows)
    if (table := table_of_batch(cls, rows)) is not None:
        return table
    if (rankings := read_ranked_rows(cls, rows)) is not None:
        return cls.from_dict(rankings)
    if rows and all(
        isinstance(row, (str, os.PathLike)) and not is_line(row) for row in rows
    ):  # text is a sequence too, but never a row
        found = f"A list of text ({list_examples(map(os.fspath, rows))}) is not {_expected(cls)}."
        shards = "; or, if they are shards of one run, all to tiewise.adapters.ray.evaluate" if cls is Run else ""
        raise InputError(f"{found} Give one path{shards}.")
    try:
        return read_rows(cls, rows, **kind)
    except TypeError:  # its items are not rows
        raise _unknown_type(cls, given) from None


#: The shapes of data in memory, besides `Run` and `Qrels`: how each is recognised, and what reads it as a table of a
#: class. The first one that matches is used.
SHAPES: tuple[tuple[Callable[[Any], bool], Callable[..., Any]], ...] = (
    (lambda given: isinstance(given, Mapping), _from_mapping),
    (_is_data_set, _from_rows),
    (_are_numbers, _refuse_arrays),
    (lambda given: _has_any(given, "__arrow_c_stream__", "collect_schema", "columns"), _from_frame),
    (lambda given: hasattr(given, "to_dict") and _has_any(given, Run.noun, Qrels.noun), _from_ranx),
    (lambda given: hasattr(given, "read"), lambda cls, given, **kind: read_table(cls, given, None, **kind)),
    (lambda given: isinstance(given, Iterable) and not isinstance(given, (bytes, bytearray)), _from_rows),
)


def _is_file(path: PathLike) -> bool:
    return os.path.isfile(path)  # noqa: PTH113 – Path raises on long names


def tie_groups(
    qrels: QrelsLike, run: RunLike, orders: Sequence[str] = ("docid-desc",), *, scores: Floats | None = None
) -> TieGroups:
    """The tie groups of the judged documents of a run, by counting.

    `qrels` and `run` are as in `evaluate`. `orders` are the tie-break orders for which `before` is counted. `scores`
    are the judged scores of a larger collection of which `run` is one shard.

    >>> tie_groups({"q": {"a": 1, "z": 1}}, {"q": {"a": 1.0, "b": 1.0, "c": 2.0}})
    <TieGroups: 1 query, 1 judged document retrieved, 1 of them tied>
    """
    return as_source(run).count(as_qrels(qrels), tuple(orders), ("float64",), scores=scores).ties["float64"]


def judged_scores(qrels: QrelsLike, run: RunLike) -> Floats:
    """The score of every judged document, NaN if the run does not have it; `qrels` and `run` are as in `evaluate`."""
    return tie_groups(qrels, run, ()).score


def count_shards(qrels: QrelsLike, shards: Sequence[RunLike], orders: Sequence[str]) -> TieGroups:
    """The tie groups of a run whose documents are divided into shards: see `TieGroups.from_shards`."""
    if not shards:
        raise InputError("There are no shards to count.")
    judged, sources = as_qrels(qrels), [as_source(shard) for shard in shards]
    scores = np.fmax.reduce([judged_scores(judged, source) for source in sources])
    return TieGroups.merge(tie_groups(judged, source, orders, scores=scores) for source in sources)


def break_ties(run: RunLike, *, order: str = "random", seed: int = 0, distances: bool = False) -> Run:
    """A run without ties, for tools that need a strict order: one order out of many.

    `order` is ``"random"``, where equal seeds give equal orders, or that of a tool: ``"docid-desc"``, ``"docid-asc"``,
    ``"given"`` or ``"rank"`` (the rank column). Documents that are not tied keep their order. The new scores are n,
    n − 1, …, 1, so that a reader of float32 ties none of them again (up to 2**24 documents a list). With `distances`,
    scores are distances, lowest first.

    >>> run = {"q": {"a": 0.5, "b": 0.5, "c": 0.5, "d": 0.9}}
    >>> break_ties(run, seed=2).to_dict(), break_ties(run, order="docid-desc").to_dict()
    ({'q': {'d': 4.0, 'c': 3.0, 'a': 2.0, 'b': 1.0}}, {'q': {'d': 4.0, 'c': 3.0, 'b': 2.0, 'a': 1.0}})
    """
    return arrange_ties(as_run(run, distances=distances), order, seed)
