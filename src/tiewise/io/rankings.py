"""The ranking of one query in the shapes that libraries and services use, as ``{document: number}``.

A ranking is a mapping of numbers, an ordered list of ids, pairs of a document and a number, a list of mappings or
objects with an id and a score, or a response of a search engine around such a list. Of ids without scores the score is
−rank; of judgments they are the relevant documents, with label 1.
"""

from __future__ import annotations

import re
from collections.abc import ItemsView, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from numbers import Integral
from typing import Any, TypeVar

import numpy as np

from tiewise.data.runs import Run
from tiewise.data.table import DOC_NAMES, QUERY_NAMES, RANK_NAMES, Table, find_name
from tiewise.errors import InputError
from tiewise.io.search_responses import (
    DISTANCE_NAMES,
    ID_NAMES,
    LABEL_NAMES,
    NESTED_NAMES,
    NUMBER_NAME,
    QUERY_ID_NAMES,
    SCORE_NAMES,
    check_lists,
    find_batch,
    find_id,
    find_list,
    find_nested,
    find_relevant,
    has_attributes,
    is_id,
    is_score,
    unwrap,
)

#: Scores that rise as often, and never fall, are distances.
MIN_RISES = 3
#: What an object may have as attributes, besides an id and a score.
ATTRIBUTES = ("score", "distance", *NESTED_NAMES)

AnyTable = TypeVar("AnyTable", bound=Table)


def as_table(cls: type[Table], table: Mapping[Any, Any], metric: str = "") -> Mapping[Any, Any]:
    """``{query: ranking}`` as ``{query: {document: number}}``; a plain table stays as it is.

    >>> as_table(Run, {"q": ["d2", "d1"], "r": [("d1", 0.5)]})
    {'q': {'d2': -1.0, 'd1': -2.0}, 'r': {'d1': 0.5}}
    """
    if _sign(metric) > 0 and all(isinstance(docs, Mapping) and find_list(docs) is None for docs in table.values()):
        return table
    found = {}
    for query, docs in table.items():
        try:
            found[query] = read_ranking(cls, docs, metric)
        except ValueError as error:
            raise InputError(f"query {query!r}: {error}") from None
    if cls is Run and not metric:
        _refuse_distances([list(found[query].values()) for query in table if not isinstance(table[query], Mapping)])
    return found


def table_of_batch(cls: type[AnyTable], given: Any, metric: str = "") -> AnyTable | None:
    """The table of an answer to several queries, which are numbered; None for other values.

    >>> table_of_batch(Run, [[{"corpus_id": 7, "score": 0.5}], []]).to_dict()
    {'0': {'7': 0.5}, '1': {}}
    """
    try:
        batch = find_batch(given)
    except ValueError as error:
        raise InputError(str(error)) from None
    if batch is None:
        return None
    table = cls.from_dict(as_table(cls, {str(place): one for place, one in enumerate(batch)}, metric))
    return replace(table, numbered=("query",)) if isinstance(table, Run) else table


def read_ranking(cls: type[Table], given: Any, metric: str = "") -> Mapping[Any, Any]:
    """The number of each document; a ValueError says what is wrong. `metric` is that of numbers called distance.

    >>> read_ranking(Run, {"hits": {"hits": [{"_id": "d1", "_score": 2.5}]}})
    {'d1': 2.5}
    """
    given, is_ordered = unwrap(given), False
    if hasattr(given, "to_dict") and hasattr(given, "index") and not hasattr(given, "columns"):  # a series
        given = given.to_dict()
    if isinstance(given, Mapping):
        located, relevant = find_list(given), find_relevant(given)
        if relevant is not None and cls is not Run:
            return dict.fromkeys(relevant, 1)
        if located is None and relevant is not None:
            raise ValueError("has relevant documents, but no ranking. Judgments are not a run.")
        if located is None:
            check_metric(metric)
            return given
        check_lists(given)
        given, is_ordered = located
    if isinstance(given, ItemsView):
        given = list(given)
    if isinstance(given, AbstractSet):
        if cls is Run:
            raise ValueError("a set has no order. Give a list of ids, best first, or {document: score}.")
        return dict.fromkeys(sorted(given, key=str), 1)  # in an order that does not depend on hashes
    if hasattr(given, "columns") and hasattr(given, "to_dict"):  # a frame, as of LanceDB
        given = given.to_dicts() if hasattr(given, "to_dicts") else given.to_dict("records")
    if isinstance(given, Iterator):
        raise ValueError(f"a {type(given).__name__} can be read only once. Give a list.")
    is_array = isinstance(given, np.ndarray) or (hasattr(given, "tolist") and hasattr(given, "dim"))  # of torch
    if not isinstance(given, (list, tuple)) and not is_array:
        raise ValueError(f"a {type(given).__name__} is not a ranking. Give {{document: {cls.value_names[0]}}}.")
    items: list[Any] = given.tolist() if is_array else list(given)
    if isinstance(given, tuple) and len(items) == 2 and (pairs := _pair(*items)):
        items = pairs
    if cls is not Run:  # Elasticsearch has documents without a rating in its evaluations
        items = [item for item in items if not (isinstance(item, Mapping) and item.get("rating", 0) is None)]
    if all(map(is_id, items)):
        read = [(doc, -float(rank) if cls is Run else 1, "") for rank, doc in enumerate(items, 1)]
    else:
        if mixed := [item for item in items if not is_id(item)] if any(map(is_id, items)) else []:
            raise ValueError(f"{_shorten(mixed[0])} is not an id, where others are.")
        _check_one_query(items)
        read = [_read_item(cls, item, rank, metric) for rank, item in enumerate(items, 1)]
    docs = {doc: number for doc, number, _ in read}
    if -1 in docs:
        raise ValueError("-1 is no document: the index found fewer neighbours. Leave it out.")
    if len(docs) < len(read):
        seen: set[Any] = set()
        twice = next(doc for doc, _, _ in read if doc in seen or seen.add(doc))  # type: ignore[func-returns-value]
        raise ValueError(f"document {twice!r} appears twice. Keep one.")
    names = {name for _, _, name in read}
    if len(names) > 1:
        raise ValueError(f"some documents have a {max(names)}, and some {min(names) or 'none'}. Give the same to all.")
    if cls is Run and (is_ordered or not names.isdisjoint(DISTANCE_NAMES) or metric):
        _check_order(list(docs.values()))
    return docs


def _pair(docs: Any, scores: Any) -> list[tuple[Any, Any]]:
    """The documents with their scores, if these are a list of ids and a list of fractions; else none."""
    found = [one.tolist() if hasattr(one, "tolist") else one for one in (docs, scores)]
    if not all(isinstance(one, (list, tuple)) for one in found) or len(found[0]) != len(found[1]):
        return []
    are_lists = all(map(is_id, found[0])) and all(is_score(one) and not isinstance(one, Integral) for one in found[1])
    return [*zip(*found, strict=True)] if are_lists else []


def _check_one_query(items: list[Any]) -> None:
    """Raise if these are rows of several queries, not the ranking of one."""
    for name in QUERY_ID_NAMES[:-3]:
        if len({item[name] for item in items if isinstance(item, Mapping) and is_id(item.get(name))}) > 1:
            raise ValueError(f"the list has rows of several queries, by {name!r}. Give all rows as one list.")


def _read_item(cls: type[Table], item: Any, rank: int, metric: str) -> tuple[Any, Any, str]:
    """The document and the number of an item of a list, and what the number is called."""
    if has_attributes(item):
        item = _attributes(item)
    if isinstance(item, Mapping):
        return _read_mapping(cls, item, rank, metric)
    number = cls.value_names[0]
    if not isinstance(item, (list, tuple)) or len(item) != 2:
        raise ValueError(f"{_shorten(item)} is neither an id nor (document, {number}).")
    first, second = item
    if isinstance(first, str) or (is_id(first) and not isinstance(second, (str, Integral))):
        if not isinstance(second, str):
            return first, second * _sign(metric) if is_score(second) else second, number
    elif is_score(first) and is_id(second) and (isinstance(second, str) or not isinstance(first, Integral)):  # a heap
        return second, first * _sign(metric), f"{number} before it"
    if is_score(second) and not is_score(first):  # of LangChain, for which some stores give distances
        raise ValueError(
            f"{_shorten(item)}: a {type(first).__name__} is not an id. Give (id, {number}), or (id, -distance)."
        )
    raise ValueError(f"{_shorten(item)}: which one is the document? Give {{document: {number}}}.")


def _attributes(item: Any) -> Mapping[str, Any]:
    """What is read of an object, by its names; a node of LlamaIndex has attributes, too."""
    if isinstance(item, Mapping):
        return item
    found = {name: getattr(item, name) for name in (*ID_NAMES, *ATTRIBUTES) if hasattr(item, name)}
    return {**found, "node": _attributes(found["node"])} if "node" in found else found


def check_metric(metric: str) -> None:
    """Raise if numbers that are no distances by their names were said to be some."""
    if _sign(metric) < 0:
        raise InputError(
            f"rankings:{metric} is for lists of documents with a distance each. Of other numbers that are distances, "
            "leave it out and give --distances (in Python, distances=True)."
        )


def _sign(metric: str) -> int:
    """By what a number is multiplied to be a score."""
    return -1 if metric in ("l2", "hamming") else 1


def _read_mapping(cls: type[Table], item: Mapping[Any, Any], rank: int, metric: str) -> tuple[Any, Any, str]:
    nested, doc = find_nested(item), find_id(item)
    if doc is None:
        advice = " Of a reranker, write lines with query_id, doc_ids and its response." if "index" in item else ""
        raise ValueError(f"a result has no id of its document. It has: {_list_names(item)}.{advice}")
    distance = next((str(name) for name in item if "distance" in str(name).lower()), None) if cls is Run else None
    names = SCORE_NAMES if cls is Run else LABEL_NAMES
    for one in (item, nested) if distance is None else (item,):
        name = next((name for name in names if name in one), None)
        if name is not None and not (distance == "distance" and item.get("score") == item["distance"]):  # Milvus
            return doc, _check_number(doc, name, parse_number(one[name])) * (_sign(metric) if cls is Run else 1), name
    if cls is Run and (name := next((name for name in DISTANCE_NAMES if name in item), None)) is not None:
        return doc, -_check_number(doc, name, parse_number(item[name])), name
    if distance is not None:
        if metric:
            return doc, _sign(metric) * _check_number(doc, distance, parse_number(item[distance])), distance
        raise ValueError(
            f"document {doc!r} has a {distance}, which may be a score, too. Give {{document: -{distance}}}, or without "
            "the minus for IP and COSINE of Milvus; of a file, name the metric: --input-format rankings:l2 (in Python, "
            "format='rankings:l2')."
        )
    if cls is Run and any(name in item for name in LABEL_NAMES):
        raise ValueError(f"document {doc!r} has no score. It has: {_list_names(item)}. Judgments are not a run.")
    if cls is Run and is_id(item.get("rank")) and not isinstance(item["rank"], str):
        return doc, -float(item["rank"]), "rank"
    if cls is Run and not any(
        re.search(NUMBER_NAME, str(name)) or isinstance(one, float) for name, one in item.items()
    ):
        return doc, -float(rank), "place"
    advice = " If a higher number is better, call it score." if cls is Run else ""
    raise ValueError(f"document {doc!r} has no {cls.value_names[0]}. It has: {_list_names(item)}.{advice}")


def _check_number(doc: Any, name: str, number: Any) -> Any:
    if not is_score(number):
        advice = " A search that is sorted by a field has no scores." if name == "_score" else ""
        advice, number = (" Write 1 or 0.", str(number).lower()) if isinstance(number, bool) else (advice, number)
        raise ValueError(f"document {doc!r} has the {name} {number!r}, not a number.{advice}")
    return number


def parse_number(number: Any) -> Any:
    """A number that is written as text, as DPR does; other values unchanged."""
    if not isinstance(number, str):
        return number
    try:
        return number if "_" in number else float(number)
    except ValueError:
        return number


# -- all queries ----------------------------------------------------------------------------------------------------


def is_row(cls: type[Table], item: Any) -> bool:
    """Whether a mapping is a row: it names a query, a document and a number, each one value.

    >>> is_row(Run, {"qid": "q1", "docno": "d1", "score": 0.5})
    True
    """
    if not isinstance(item, Mapping):
        return False
    picked = [item.get(name) for name in row_names(cls, item)]
    return all(is_id(one) or is_score(one) or (isinstance(one, bool) and cls is not Run) for one in picked)


def row_names(cls: type[Table], names: Iterable[Any]) -> tuple[str | None, ...]:
    """The names of the query, the document and the number of a row, None for what it has not."""
    numbers = (cls.value_names, RANK_NAMES) if cls is Run else (cls.value_names,)
    return _row_names(tuple(name for name in names if isinstance(name, str)), numbers)


@lru_cache(maxsize=64)  # rows have the same names, and runs in a loop the same queries
def _row_names(names: tuple[str, ...], numbers: tuple[tuple[str, ...], ...]) -> tuple[str | None, ...]:
    number = next((found for known in numbers if (found := find_name(names, known)) is not None), None)
    doc = find_name(names, DOC_NAMES) or find_name(names, ["document"])  # which may be a text
    return find_name(names, QUERY_NAMES), doc, number


def rows_of_columns(cls: type[Table], table: Mapping[Any, Any]) -> list[dict[Any, Any]] | None:
    """The rows of columns by name, as lists or as pandas writes them; None for other mappings.

    >>> rows_of_columns(Run, {"qid": ["q1"], "docno": ["d1"], "score": [0.5]})
    [{'qid': 'q1', 'docno': 'd1', 'score': 0.5}]
    """
    names, data = table.get("columns"), table.get("data")
    if isinstance(names, list) and isinstance(data, list):  # pandas, orient="split"
        bad = next((row for row in data if not isinstance(row, list) or len(row) != len(names)), None)
        if bad is not None:
            raise InputError(f"{_shorten(bad)} is not a row of the {len(names)} columns {_list_names(names)}.")
        return [dict(zip(names, row, strict=True)) for row in data]
    if not 2 <= len(table) <= 100 or None in row_names(cls, table)[:2]:
        return None
    is_named = row_names(cls, table)[2] is not None
    columns = {
        name: list(one.values()) if is_named and isinstance(one, Mapping) else one for name, one in table.items()
    }
    if not all(isinstance(one, (list, tuple, np.ndarray)) for one in columns.values()):
        return None
    if not is_named:
        raise InputError(f"the columns {_list_names(columns)} name no {cls.value_names[0]}.")
    if len({len(one) for one in columns.values()}) > 1:
        lengths = ", ".join(f"{len(one)} {name}" for name, one in columns.items())
        raise InputError(f"columns of different lengths: {lengths}.")
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _steps(values: list[Any]) -> list[tuple[Any, Any]]:
    """Each number and the next one; what is not a number is reported later."""
    return list(pairwise(values)) if all(map(is_score, values)) else []


def _refuse_distances(lists: list[list[Any]]) -> None:
    """Raise if the scores of all lists are ranks, or if none fall, and enough rise, to be distances, nearest first."""
    if any(len(values) > 1 for values in lists) and all(values == [*range(1, len(values) + 1)] for values in lists):
        raise InputError("The scores of all lists are 1, 2, 3 …, as ranks are. Give ids alone, best first.")
    steps = [step for values in lists for step in _steps(values)]
    if not any(two < one for one, two in steps) and sum(two > one for one, two in steps) >= MIN_RISES:
        raise InputError(
            "The scores of all lists rise, as distances do, of which the smallest is the best. Give {document: "
            "-distance}, or Run.from_neighbors(distances, ids, metric=…); if they are scores, {document: score}."
        )


def _check_order(values: list[Any]) -> None:
    """Raise if scores rise: then it is not known whether the order or the scores are those of the ranking."""
    if any(two > one for one, two in _steps(values)):
        raise ValueError(
            "the documents are not in the order of their scores: a reranker may have moved them and kept the old "
            "scores, or these are distances (or the other way round). Give ids alone, best first, or {document: score}."
        )


def _list_names(item: Iterable[Any]) -> str:
    return ", ".join(map(repr, item))


def _shorten(item: Any) -> str:
    text = repr(item)
    return text if len(text) <= 60 else f"{text[:60]}…"
