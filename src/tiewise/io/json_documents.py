"""JSON: ``{query: {document: number}}``, files of MTEB and sentence-transformers, and responses of rerankers."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from tiewise.data.columns import frame_columns
from tiewise.data.judgments import Qrels
from tiewise.data.runs import Run
from tiewise.data.table import DOC_NAMES, QUERY_NAMES, Table, find_name, swapped_message
from tiewise.errors import InputError, prefix_errors
from tiewise.io.batch_requests import is_batch_line, name_requests
from tiewise.io.rankings import (
    as_table,
    check_metric,
    is_row,
    parse_number,
    read_ranking,
    row_names,
    rows_of_columns,
    table_of_batch,
)
from tiewise.io.reranker_responses import (
    BARE,
    EXPECTED,
    SERVICE_ERROR,
    check_table,
    find_error,
    is_bare_response,
    is_response,
    is_scored_part,
    read_response,
)
from tiewise.io.search_responses import (
    LABEL_NAMES,
    SCORE_NAMES,
    as_plain,
    find_list,
    find_query,
    find_relevant,
    is_id,
    is_score,
)
from tiewise.io.text_columns import MAX_WIDTH

META = "mteb_model_meta"
SHAPE = "{query: {document: number}}"
RANKING = '{"query_id": …, "candidates": [{"docid": …, "score": …}, …]}'
# Only a number with such an exponent or as many digits can overflow; checking each number takes time.
HUGE = re.compile(r"[eE]\+?\d{3}|\d{200}")
TEXT = re.compile(rb':\s*"')  # a value that is text, perhaps a number
BLANK = re.compile(r"[ \t\r\n]*")
MAX_PROBLEMS = 10
VALUE_BYTES = 100  # of memory, for a JSON value and its place in a list or an object
TYPE_NAMES = {list: "list", str: "text", bool: "boolean", type(None): "null"}

AnyTable = TypeVar("AnyTable", bound=Table)
Value = tuple[Any, str]  # a JSON value, and where it begins: the name of the file and the line


def read_document(
    cls: type[Table], data: bytes, format: str | None, part: str, name: str
) -> tuple[str, Mapping[Any, Any] | list[Any] | Table]:
    """The format of a JSON document, and its table or its rows.

    `part` selects a subset and a split of MTEB's files, and is the metric of rankings whose numbers are distances.

    >>> read_document(Run, b'{"q1": {"d1": 0.5}}', None, "", "run.json")
    ('json', {'q1': {'d1': 0.5}})
    """
    metric = part if format == "rankings" else ""
    format, table = _find_table(cls, _parse_values(data, name), format, part, name)
    if format in ("rows", "reranker"):
        with prefix_errors(name):
            check_metric(metric)
    if cls is Run and isinstance(table, Mapping) and (b"true" in data or b"false" in data):  # perhaps in an id
        _refuse_booleans(table, name)
    if isinstance(table, Mapping) and TEXT.search(data):  # NumPy's scalars by json.dumps(run, default=str)
        table = {
            query: {doc: parse_number(number) for doc, number in docs.items()} if isinstance(docs, Mapping) else docs
            for query, docs in table.items()
        }
    return format, table


def estimate_memory(data: bytes) -> int:
    """About how many bytes the values of a JSON document take in memory: ``[],[],[]`` takes 25 times its size.

    >>> estimate_memory(b'{"q1": {"d1": 0.5}}')
    219
    """
    return len(data) + VALUE_BYTES * sum(map(data.count, (b",", b"[", b"{")))


def _find_table(
    cls: type[Table], values: list[Value], format: str | None, part: str, name: str
) -> tuple[str, Mapping[Any, Any] | list[Any] | Table]:
    if not values:
        raise InputError(f"{name}: is empty. Expected {SHAPE}.")
    document = values[0][0]
    if len(values) == 1 and isinstance(document, dict) and format in (None, "json", "rows"):
        if {"evaluation_time", "scores"} <= {*document}:
            predictions = "Write predictions: mteb.evaluate(model, tasks, prediction_folder=…)."
            raise InputError(f"{name}: has the results of MTEB, which hold no rankings. {predictions}")
        document = _unwrap(cls, document, name)
        values = [(document, values[0][1])]
    if format is None and len(values) > 1 and all(_is_plain_row(value) for value, _ in values):
        return "rows", [value for value, _ in values]
    if isinstance(document, list) and len(values) == 1:  # all queries in one list
        if format is None and document and all(map(_is_plain_row, document)):
            return "rows", document
        if all(isinstance(value, dict) for value in document):
            values = [(value, name) for value in document] or values
        document = values[0][0]
    if format in (None, "reranker") and is_batch_line(document):
        values, format = name_requests(values), "reranker"
    metric = part if format == "rankings" else ""
    if format is None or (metric and not _is_ranking(document)):
        format = _detect_format(cls, document, len(values))
    if format == "rows":
        return format, [_check_row(cls, value, where) for value, where in values]
    if format == "json" and TABLES.matches(document):
        return format, read_lists(cls, values, TABLES, metric)
    if format in LIST_READERS:
        if cls is Qrels and format != "rankings":
            raise InputError(f"{name}: looks like {swapped_message(cls, format)}")
        return format, read_lists(cls, values, LIST_READERS[format], metric if format == "rankings" else "")
    with prefix_errors(name):
        answers = document if len(values) == 1 else [value for value, _ in values]
        if format in ("json", "rankings") and (batch := table_of_batch(cls, answers, metric)) is not None:
            return "rankings", batch
    if isinstance(document, dict) and (error := find_error(document)):
        raise InputError(f"{values[0][1]}: {SERVICE_ERROR.format(error)}")
    if isinstance(document, dict) and is_bare_response(document):
        raise InputError(f"{values[0][1]}: is a response without the ids of its query and document. Expected {BARE}.")
    if len(values) > 1 and format == "json" and all(_is_table(value) for value, _ in values):
        lines = [({"query_id": query, "docs": docs}, at) for one, at in values for query, docs in one.items()]
        return format, read_lists(cls, lines, TABLES, metric)
    if len(values) > 1 and _is_renamed_row(cls, document):
        keys, names = ", ".join(map(repr, list(document)[:10])), ("query_id", "doc_id", cls.value_names[0])
        known = row_names(cls, document)
        others = iter([key for key in document if key not in known])
        rename = ", ".join(
            f"{name}: {_path_of_jq(key or next(others))}" for name, key in zip(names, known, strict=True)
        )
        found = f"has the keys {keys}, which do not name a query, a document and a {names[2]}"
        raise InputError(f"{values[0][1]}: {found}. Rename them, such as with jq -c '{{{rename}}}'.")
    if len(values) > 1 and isinstance(document, dict) and find_query(document) is not None:
        found = ", ".join(map(repr, list(document)[:10]))
        row = f"{{query_id: …, doc_id: …, {cls.value_names[0]}: …}}"
        response = f"; the response of a reranker stands in {EXPECTED}" if cls is Run and "doc_ids" in document else ""
        raise InputError(
            f"{values[0][1]}: is neither a row, {row}, nor a ranking, {RANKING}{response}. It has: {found}."
        )
    if len(values) > 1:
        raise InputError(f"{values[1][1]}: a second JSON value. Expected one object, {SHAPE}.")
    if not isinstance(document, dict):
        raise InputError(f"{name}: is a JSON {TYPE_NAMES.get(type(document), 'number')}. Expected {SHAPE}.")
    if format == "mteb":
        return format, _select_part({key: value for key, value in document.items() if key != META}, part, name)
    with prefix_errors(name):
        if (rows := rows_of_columns(cls, document)) is not None:
            return "rows", rows
        document = as_table(cls, _unwrap_table(cls, document), metric)
    for query, docs in () if cls is Qrels else document.items():
        if isinstance(docs, dict) and isinstance(next(iter(docs.values()), None), dict):
            raise InputError(f"{name}: {query!r} is nested too deep. Expected {SHAPE}; MTEB's files: format='mteb'.")
    return format, document


def _path_of_jq(key: str) -> str:
    """A value by its key, for jq; of a distance, with a minus."""
    path = f".{key}" if key.isidentifier() else f'."{key}"'
    return f"(-{path})" if "dist" in key.lower() else path


def _unwrap_table(cls: type[Table], document: dict[str, Any]) -> Mapping[Any, Any]:
    """The table in a document: the evaluations of Elasticsearch, and the judgments that LlamaIndex writes."""
    if isinstance(document.get("details"), dict) and "metric_score" in document:
        return document["details"]
    if isinstance(document.get("relevant_docs"), dict) and isinstance(document.get("queries"), dict):
        if cls is Run:
            raise InputError(f"looks like {swapped_message(cls, 'relevant_docs')}")
        return document["relevant_docs"]
    if isinstance(document.get("requests"), list) and cls is Qrels:
        return {one.get("id"): one for one in document["requests"] if isinstance(one, dict)}
    if find_list(document) is not None:
        raise InputError(
            "is a ranking without the id of its query. Write {query: ranking}, or one line for each query: "
            '{"query_id": …, "response": …}.'
        )
    return document


def _unwrap(cls: type[Table], document: dict[str, Any], name: str) -> Any:
    """The rows or the table of a run that an object holds beside other things; others unchanged."""
    if any(reader.matches(document) for reader in LIST_READERS.values()):
        return document
    rows = [one for one in document.values() if isinstance(one, list) and one and all(is_row(cls, row) for row in one)]
    if len(rows) == 1:
        return rows[0]
    if document and all(is_row(cls, row) for row in document.values()):  # pandas, orient="index"
        return [*document.values()]
    tables = [one for one in WRAPPERS if _holds_rankings(document.get(one))]
    if cls.noun in tables:
        return document[cls.noun]
    if len(tables) > 1:
        raise InputError(f"{name}: holds {' and '.join(map(repr, tables))}. Give one of them, as {SHAPE}.")
    return document[tables[0]] if tables else document


def _holds_rankings(value: Any) -> bool:
    """Whether a value has a ranking for each query, and is none itself."""
    if not isinstance(value, dict) or not value or find_list(value) is not None:
        return False
    return all(isinstance(one, (dict, list)) for one in value.values())


def _is_plain_row(row: Any) -> bool:
    """Whether a value is a row without names: values, not hits."""
    return (
        isinstance(row, list) and 3 <= len(row) <= MAX_WIDTH and not any(isinstance(cell, (dict, list)) for cell in row)
    )


def _is_renamed_row(cls: type[Table], value: Any) -> bool:
    """Whether a value may be a row with other names: at least three ids or numbers, and not a score for a label."""
    if not isinstance(value, dict) or len(value) < 3 or not all(is_id(one) or is_score(one) for one in value.values()):
        return False
    return not set(value).intersection(LABEL_NAMES if cls is Run else SCORE_NAMES)


def _check_row(cls: type[Table], value: Any, where: str) -> Any:
    if not is_row(cls, value):
        raise InputError(f"{where}: expected a row, {{query_id: …, doc_id: …, {cls.value_names[0]}: …}}.")
    return value


def _refuse_booleans(table: Mapping[Any, Any], name: str) -> None:
    """Raise if a number is a boolean, which Python would read as 1 or 0."""
    for query, docs in table.items():
        for doc, number in docs.items() if isinstance(docs, Mapping) else ():
            if any(isinstance(one, bool) for one in (number.values() if isinstance(number, dict) else [number])):
                found = f"the value for query {query!r}, document {doc!r} is '{json.dumps(number)}'"
                raise InputError(f"{name}: {found}, not a number. Write 1 or 0.")


def _detect_format(cls: type[Table], document: Any, n_values: int) -> str:
    if isinstance(document, dict) and META in document:
        parts = [value for key, value in document.items() if key != META] or [document[META]]
        scores = any(isinstance(one, (int, float)) for part in parts if isinstance(part, dict) for one in part.values())
        return "json" if scores else "mteb"  # a query may have that id, too
    if is_row(cls, document):
        return "rows"
    return next((name for name, reader in LIST_READERS.items() if reader.matches(document)), "json")


def _is_prediction(value: Any) -> bool:
    results = value.get("results") if isinstance(value, dict) and "query_id" in value else None
    return isinstance(results, list) and all(isinstance(one, dict) and "corpus_id" in one for one in results[:1])


def _is_ranking(value: Any) -> bool:
    if not isinstance(value, dict) or find_query(value) is None:
        return False
    return find_list(value) is not None or find_relevant(value) is not None


def _read_ranking(cls: type[Table], value: Any, metric: str = "") -> tuple[Any, Mapping[Any, Any]]:
    """The ranking of a query with the names of many tools: rank_llm, RankGPT, Anserini, DPR."""
    if not _is_ranking(value):
        raise ValueError(f"expected {RANKING}.")
    return find_query(value), read_ranking(cls, value, metric)


class ListReader(NamedTuple):
    """How to read a value that is the ranking of one query."""

    matches: Callable[[Any], bool]  # whether a value looks like one
    read: Callable[..., tuple[Any, Mapping[Any, Any]]]  # the query, and the score of each document
    expected: str  # what it looks like, for messages
    check: Callable[[Any, Sequence[Any], str], None] = lambda table, lines, name: None  # notes on the whole table


#: The formats with one ranking in each value, such as a line of JSON.
LIST_READERS = {
    "reranker": ListReader(is_response, read_response, EXPECTED, check_table),
    "sentence-transformers": ListReader(_is_prediction, _read_ranking, RANKING),
    "rankings": ListReader(_is_ranking, _read_ranking, RANKING),
}


def _is_table(value: Any) -> bool:
    """Whether a value is ``{query: {document: number}}``."""
    return isinstance(value, dict) and bool(value) and all(map(_is_numbers, value.values()))


def _is_numbers(value: Any) -> bool:
    return isinstance(value, dict) and bool(value) and all(map(is_score, value.values()))


def _find_named_table(value: Any) -> tuple[Any, Mapping[Any, Any]] | None:
    """The id of a query and the only ``{document: number}`` beside it, None if there are none."""
    if not isinstance(value, dict):
        return None
    query = next((value[name] for name in QUERY_NAMES if is_id(value.get(name))), None)
    tables = [value[name] for name in TABLE_NAMES if _is_numbers(value.get(name))]
    return None if query is None or len(tables) != 1 else (query, tables[0])


def _read_named_table(cls: type[Table], value: Any, metric: str = "") -> tuple[Any, Mapping[Any, Any]]:
    found = _find_named_table(value)
    if found is None:
        raise ValueError(f"expected {TABLE}.")
    check_metric(metric)
    return found


#: What an object that holds more than a run or judgments calls them.
WRAPPERS = ("run", "qrels", "results", "predictions", "rankings", "retrieved", "scores", "data", "relevance", "labels")
#: Where a line may have ``{document: number}`` beside its query.
TABLE_NAMES = ("docs", "documents", "results", "scores", "ranking", "run", "retrieved", "qrels", "relevance", "labels")
TABLE = '{"query_id": …, "docs": {document: number}}'
TABLES = ListReader(lambda value: _find_named_table(value) is not None, _read_named_table, TABLE)


def read_lists(cls: type[Table], values: Sequence[Value], reader: ListReader, metric: str = "") -> Mapping[Any, Any]:
    """The table of values that hold one ranking each. Responses for other documents of a query are added to it."""
    options = {"metric": metric} if metric else {}
    table: dict[Any, Mapping[Any, Any]] = {}
    first: dict[Any, Any] = {}
    problems: list[str] = []
    for value, where in values:
        try:
            query, docs = reader.read(cls, value, **options)
            before = table.get(query, {})
            is_part = is_scored_part(first.setdefault(query, value), before) and is_scored_part(value, docs)
            if query in table and not (is_part and before.keys().isdisjoint(docs)):
                raise ValueError(f"query {query!r} appears twice in the {cls.noun}. Keep one of the lines.")
            table[query] = {**before, **docs} if before else docs
        except TypeError:  # an id that is a list or an object
            problems.append(f"{where}: expected {reader.expected}, where an id is text or a whole number.")
        except ValueError as error:
            problems.append(f"{where}: {error}")
    if problems:
        more = len(problems) - MAX_PROBLEMS
        raise InputError(*problems[:MAX_PROBLEMS], *([f"… and {more} more problems."] if more > 0 else []))
    reader.check(table, [value for value, _ in values], values[0][1].rpartition(":")[0] or values[0][1])
    return table


def read_ranked_rows(cls: type[Table], rows: list[Any]) -> Mapping[Any, Any] | None:
    """The table of a list with the ranking of a query in each item, None for other lists."""
    if not rows or not isinstance(rows[0], Mapping) or is_row(cls, rows[0]):
        return None
    format = "reranker" if cls is Run and is_response(rows[0]) else "rankings"
    if not LIST_READERS[format].matches(rows[0]):
        return None
    if format == "reranker":
        rows = [as_plain(row) for row in rows]
    return read_lists(cls, [(row, f"{cls.noun}:{place}") for place, row in enumerate(rows)], LIST_READERS[format])


def read_frame(cls: type[AnyTable], frame: Any, **kind: Any) -> AnyTable:
    """The table in a data frame, which may have a ranking in each row: a list of ids and a list of scores."""
    is_read_once = hasattr(frame, "collect") or not hasattr(frame, "columns")  # lazy, or a stream
    names: list[Any] = [] if is_read_once else list(getattr(frame, "column_names", frame.columns))
    if not names or not all(isinstance(name, str) for name in names):
        return cls.from_frame(frame, **kind)
    if find_name(names, QUERY_NAMES) is None:
        return cls.from_frame(frame, **kind)
    _, fetch = frame_columns(frame)
    if (doc := find_name(names, DOC_NAMES)) is not None:
        try:
            return cls.from_frame(frame, **kind)
        except InputError:
            if not _holds_lists(fetch(doc)):
                raise
    columns = {name: _as_list(fetch(name)) for name in names}
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    rankings = read_ranked_rows(cls, rows)
    return cls.from_frame(frame, **kind) if rankings is None else cls.from_dict(rankings)


def _holds_lists(column: Any) -> bool:
    if hasattr(column, "type"):  # of Arrow, whose memory may be damaged
        return "list" in str(column.type).partition("<")[0]
    return isinstance(next(iter(column), None), (list, tuple, np.ndarray))


def _as_list(column: Any) -> list[Any]:
    if hasattr(column, "to_pylist"):
        return column.to_pylist()
    return [one.tolist() if hasattr(one, "tolist") else one for one in column]


def _select_part(document: Mapping[str, Any], part: str, name: str) -> Mapping[Any, Any]:
    """One of the tables ``{subset: {split: {query: {document: score}}}}`` of MTEB's predictions."""
    tables = {
        f"{subset}/{split}": table
        for subset, splits in document.items()
        if isinstance(splits, dict)
        for split, table in splits.items()
        if isinstance(table, dict)
    }
    if not tables:
        raise InputError(f"{name}: has no predictions. Expected {{subset: {{split: {SHAPE}}}}}.")
    first = next(iter(tables))
    if (part and part not in tables) or (not part and len(tables) > 1):
        found = f"has no part {part!r}, but" if part else f"has {len(tables)} parts,"
        pick = f"--input-format mteb:{first} (in Python, format='mteb:{first}')"
        raise InputError(f"{name}: {found} {', '.join(tables)}. Pick one: {pick}.")
    return tables[part or first]


def _parse_values(data: bytes, name: str) -> list[Value]:
    """All JSON values of a file, which may have one on each line."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(f"{name}:{line}: is not UTF-8. Convert the file with iconv.") from None
    decoder = json.JSONDecoder(object_pairs_hook=_unique_keys, parse_float=_finite if HUGE.search(text) else None)
    values: list[Value] = []
    line, last, at = 1, 0, _skip_blanks(text, 0)
    try:
        while at < len(text):
            line, last = line + text.count("\n", last, at), at
            value, at = decoder.raw_decode(text, at)
            values.append((value, f"{name}:{line}"))
            at = _skip_blanks(text, at)
    except json.JSONDecodeError as error:
        raise InputError(f"{name}:{error.lineno}:{error.colno}: is not JSON: {error.msg}.") from None
    except InputError as error:
        raise InputError(f"{name}: {error}") from None
    except RecursionError:
        raise InputError(f"{name}: is nested too deep. Expected {SHAPE}.") from None
    except ValueError as error:  # an integer of thousands of digits
        raise InputError(f"{name}: {error}.") from None
    return values


def _skip_blanks(text: str, at: int) -> int:
    match = BLANK.match(text, at)
    return match.end() if match else at


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) < len(pairs):
        key = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise InputError(f"the key {key!r} appears twice in one JSON object. Keep one of them.")
    return table


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise InputError(f"the number {text[:20]} is too large for float64; scale the numbers.")
    return number
