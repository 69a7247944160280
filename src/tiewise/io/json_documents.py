"""JSON: ``{query: {document: number}}`` as it is, or wrapped as MTEB or sentence-transformers write it."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from tiewise.errors import InputError

__all__ = ["read_document"]

META = "mteb_model_meta"
SHAPE = "{query: {document: number}}"
PREDICTION = '{"query_id": …, "results": [{"corpus_id": …, "score": …}, …]}'
# Only a number with such an exponent or so many digits can overflow; looking at each one takes time.
HUGE = re.compile(r"[eE]\+?\d{3}|\d{300}")
BLANK = re.compile(r"[ \t\r\n]*")


class Value(NamedTuple):
    """A JSON value and the line on which it begins."""

    value: Any
    line: int


def read_document(data: bytes, format: str | None, part: str, name: str) -> tuple[str, Mapping[Any, Any]]:
    """The format of a JSON document and the table in it; `part` picks one of MTEB's subsets and splits.

    >>> read_document(b'{"q1": {"d1": 0.5}}', None, "", "run.json")
    ('json', {'q1': {'d1': 0.5}})
    """
    values = _values(_text(data, name), name)
    if not values:
        raise InputError(f"{name}: is empty. Expected {SHAPE}.")
    document = values[0].value
    format = format or _recognise(document)
    if format == "sentence-transformers":
        return format, _predictions(values, name)
    if len(values) > 1:
        raise InputError(f"{name}:{values[1].line}: a second JSON value. Expected one object, {SHAPE}.")
    if not isinstance(document, dict):
        raise InputError(f"{name}: holds a JSON {_kind(document)}. Expected {SHAPE}.")
    if format == "mteb":
        return format, _pick({key: value for key, value in document.items() if key != META}, part, name)
    for query, docs in document.items():
        if isinstance(docs, dict) and isinstance(next(iter(docs.values()), None), dict):
            raise InputError(f"{name}: {query!r} is nested too deep. Expected {SHAPE}; MTEB's files: format='mteb'.")
    return format, document


def _recognise(document: Any) -> str:
    if isinstance(document, dict) and META in document:
        parts = [value for key, value in document.items() if key != META] or [document[META]]
        scores = any(isinstance(one, (int, float)) for part in parts if isinstance(part, dict) for one in part.values())
        return "json" if scores else "mteb"  # a query may be called like that, too
    if isinstance(document, dict) and "query_id" in document and isinstance(document.get("results"), list):
        return "sentence-transformers"
    return "json"


def _predictions(values: list[Value], name: str) -> Mapping[Any, Any]:
    """The rankings of sentence-transformers, one a line."""
    table: dict[Any, dict[Any, Any]] = {}
    problems: list[str] = []
    for value, line in values:
        try:
            query = value["query_id"]
            docs = {hit["corpus_id"]: hit["score"] for hit in value["results"]}
            repeated = len(docs) < len(value["results"])
        except (KeyError, TypeError):
            problems.append(f"{name}:{line}: expected {PREDICTION}.")
            continue
        if query in table:
            problems.append(f"{name}:{line}: query {query!r} stands twice in the run. Keep one of the lines.")
        elif repeated:
            problems.append(f"{name}:{line}: a document stands twice in the run for query {query!r}. Keep one.")
        table[query] = docs
    if problems:
        rest = [f"… and {len(problems) - 10} more problems."] if len(problems) > 10 else []
        raise InputError(*problems[:10], *rest)
    return table


def _pick(document: Mapping[str, Any], part: str, name: str) -> Mapping[Any, Any]:
    """One of the tables ``{subset: {split: {query: {document: score}}}}`` of MTEB's predictions."""
    tables = {
        f"{subset}/{split}": table
        for subset, splits in document.items()
        if isinstance(splits, dict)
        for split, table in splits.items()
        if isinstance(table, dict)
    }
    if not tables:
        raise InputError(f"{name}: holds no predictions. Expected {{subset: {{split: {SHAPE}}}}}.")
    if part in tables:
        return tables[part]
    if part or len(tables) > 1:
        found = f"has no part {part!r}, but" if part else f"has {len(tables)} parts,"
        pick = next(iter(tables))
        raise InputError(f"{name}: {found} {', '.join(tables)}. Pick one, such as format='mteb:{pick}'.")
    return next(iter(tables.values()))


def _text(data: bytes, name: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(f"{name}:{line}: is not UTF-8. Convert the file with iconv.") from None


def _values(text: str, name: str) -> list[Value]:
    """All JSON values that follow one another in a text."""
    decoder = json.JSONDecoder(object_pairs_hook=_unique, parse_float=_finite if HUGE.search(text) else None)
    values: list[Value] = []
    line, last, at = 1, 0, _skip(text, 0)
    try:
        while at < len(text):
            line, last = line + text.count("\n", last, at), at
            value, at = decoder.raw_decode(text, at)
            values.append(Value(value, line))
            at = _skip(text, at)
    except json.JSONDecodeError as error:
        raise InputError(f"{name}:{error.lineno}:{error.colno}: is not JSON: {error.msg}.") from None
    except InputError as error:
        raise InputError(f"{name}: {error}") from None
    except RecursionError:
        raise InputError(f"{name}: is nested too deep. Expected {SHAPE}.") from None
    except ValueError as error:  # an integer of thousands of digits
        raise InputError(f"{name}: {error}.") from None
    return values


def _skip(text: str, at: int) -> int:
    found = BLANK.match(text, at)
    return found.end() if found else at


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) < len(pairs):
        twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise InputError(f"the key {twice!r} stands twice in one JSON object. Keep one of them.")
    return table


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise InputError(f"the number {text[:20]} is too large for float64; scale the numbers.")
    return number


def _kind(value: Any) -> str:
    return {list: "list", str: "text", bool: "boolean", type(None): "null"}.get(type(value), "number")
