"""Lines of a batch of requests, whose ids, such as ``q1_d7``, name a query and a document.

OpenAI, Mistral and others call the id ``custom_id``, Gemini calls it ``key``. What separates the query from the
document must follow from all ids of the file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tiewise.data.table import QUERY_NAMES
from tiewise.errors import InputError, warn

ID_NAMES = ("custom_id", "key")
RESPONSE_NAMES = ("response", "result")
#: What may stand between a query and a document.
SEPARATORS = ("__", "::", "||", "--", *"_-/|:,;#@~ \t")
ADVICE = "Write query_id and doc_id beside it, or doc_ids of an answer that orders several documents."


def is_batch_line(value: Any) -> bool:
    """Whether a value is the response to one request of a batch, without the ids of its query and document."""
    if not isinstance(value, Mapping) or any(name in value for name in QUERY_NAMES):
        return False
    return isinstance(_request(value), str) and any(name in value for name in RESPONSE_NAMES)


def _request(line: Mapping[str, Any]) -> Any:
    return next((line[name] for name in ID_NAMES if name in line), None)


def name_requests(values: Sequence[tuple[Any, str]]) -> list[tuple[Any, str]]:
    """The lines with their queries and documents, each with its place, and a note that says how they were read.

    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     name_requests([({"custom_id": "q1_d7", "response": {}}, "a.jsonl:1")])
    [({'query_id': 'q1', 'doc_id': 'd7', 'response': {}}, 'a.jsonl:1')]
    >>> str(caught[0].message)
    "a.jsonl: custom_id 'q1_d7' is read as query 'q1', document 'd7', and others likewise."
    """
    for value, where in values:
        if not is_batch_line(value):
            raise InputError(f"{where}: has no custom_id with a response, which other lines have.")
    ids = [_request(value) for value, _ in values]
    name = next(name for name in ID_NAMES if name in values[0][0])
    where = values[0][1]
    fitting = [mark for mark in SEPARATORS if all(_divides(mark, one) for one in ids)]
    if len(fitting) != 1:
        several = f"may be divided at {' or '.join(map(repr, fitting))}" if fitting else "names no query and document"
        raise InputError(f"{where}: {name} {ids[0]!r} {several}. {ADVICE}")
    pairs = [one.split(fitting[0]) for one in ids]
    queries, docs = ({pair[place] for pair in pairs} for place in (0, 1))
    if len(queries) == 1 < len(ids) and not any(map(str.isdigit, min(queries))):  # request-1, request-2
        raise InputError(f"{where}: {name} {ids[0]!r} names no query and document. {ADVICE}")
    if len(queries) > len(docs):
        raise InputError(
            f"{where}: of {name}s such as {ids[0]!r} the first parts differ more than the second. {ADVICE}"
        )
    file = where.rpartition(":")[0] or where
    warn(f"{file}: {name} {ids[0]!r} is read as query {pairs[0][0]!r}, document {pairs[0][1]!r}, and others likewise.")
    return [
        ({"query_id": query, "doc_id": doc, "response": _answer(value)}, place)
        for (query, doc), (value, place) in zip(pairs, values, strict=True)
    ]


def _divides(mark: str, text: str) -> bool:
    """Whether a separator divides a text into two."""
    return text.count(mark) == 1 and all(text.split(mark))


def _answer(line: Mapping[str, Any]) -> Any:
    """The response of a line, or its error."""
    found = next(line[name] for name in RESPONSE_NAMES if name in line)
    return {"error": line["error"]} if found is None and line.get("error") is not None else found
