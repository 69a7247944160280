"""The ranking of one query in the shapes that libraries and services use, as ``{document: number}``.

A ranking is a mapping of numbers, an ordered list of ids, pairs of a document and a number, a list of mappings or
objects with an id and a score, or a response of a search engine around such a list. Of ids without scores the score is
−rank; of judgments they are the relevant documents, with label 1.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import pairwise
from numbers import Integral, Real
from typing import Any

import numpy as np

from tiewise.data.runs import Run
from tiewise.data.table import DOC_NAMES, QUERY_NAMES, Table
from tiewise.errors import InputError

#: The names of a document's id in an item of a list: those of columns, then those of services and libraries.
ID_NAMES = (*DOC_NAMES, "id", "_id", "id_", "node_id", "wikipedia_id", "chunk_id", "key")
SCORE_NAMES = ("score", "sim", "similarity", "relevance_score", "_score")
LABEL_NAMES = ("relevance", "label", "rel", "grade", "rating", "gain")
#: What may hold the id of a document, or its id and score: Elasticsearch, Pinecone, LlamaIndex.
NESTED_NAMES = ("document", "doc", "node", "hit", "entity")
#: Where a response has its list: Elasticsearch and OpenSearch, Solr, Vespa, Qdrant, Pinecone, Anserini and others.
PATHS: tuple[tuple[str, ...], ...] = (
    ("hits", "hits"),
    ("response", "docs"),
    ("root", "children"),
    ("result", "points"),
    ("result",),
    ("points",),
    ("matches",),
    ("hits",),
    ("candidates",),
    ("ctxs",),
    ("contexts",),
    ("results",),
    ("docs",),
    ("documents",),
    ("passages",),
    ("ranking",),
    ("rankings",),
    ("retrieved",),
    ("retrieved_docs",),
    ("retrieved_documents",),
    ("nodes",),
    ("ratings",),
    ("output", "provenance"),  # KILT
)
VESPA = ("root", "children")
#: Lists in the order of their scores. If it is another one, a reranker moved them, or the scores are distances.
ORDERED = {
    *(("hits", "hits"), ("response", "docs"), VESPA, ("result", "points"), ("result",), ("points",), ("matches",)),
    *(("hits",), ("candidates",), ("ctxs",), ("contexts",), ("passages",)),
}
#: Lists of ids that have the scores in a second list.
PARALLEL = ("doc_ids", "ids", "docids", "docnos", "indices", "documents", "docs", "results", "retrieved", "ranking")
#: Scores that rise as often, and never fall, are distances.
MIN_RISES = 3
#: Names of numbers, without which the order of a list alone is not its ranking: what ties would be lost.
NUMBER_NAME = re.compile(r"(?i)score|distance|\bdist\b|match|simil|certainty|confidence|logit|prob")
#: The names of a query's id beside its ranking, the first that is there.
QUERY_ID_NAMES = (*(name for name in QUERY_NAMES if name not in ("query", "topic")), "queryId", "id", "_id", "topic")
TEXT_NAMES = ("query", "question", "input")


def as_table(cls: type[Table], table: Mapping[Any, Any]) -> Mapping[Any, Any]:
    """``{query: ranking}`` as ``{query: {document: number}}``; a plain table stays as it is.

    >>> as_table(Run, {"q": ["d2", "d1"], "r": [("d1", 0.5)]})
    {'q': {'d2': -1.0, 'd1': -2.0}, 'r': {'d1': 0.5}}
    """
    if all(isinstance(docs, Mapping) and find_list(docs) is None for docs in table.values()):
        return table
    found = {}
    for query, docs in table.items():
        try:
            found[query] = read_ranking(cls, docs)
        except ValueError as error:
            raise InputError(f"query {query!r}: {error}") from None
    if cls is Run:
        _refuse_distances([list(found[query].values()) for query in table if not isinstance(table[query], Mapping)])
    return found


def read_ranking(cls: type[Table], given: Any) -> Mapping[Any, Any]:
    """The number of each document; a ValueError says what is wrong.

    >>> read_ranking(Run, {"hits": {"hits": [{"_id": "d1", "_score": 2.5}]}})
    {'d1': 2.5}
    """
    given, is_ordered = _unwrap(given)
    if isinstance(given, Mapping):
        located = find_list(given)
        if located is None:
            return given
        _check_lists(given)
        given, is_ordered = located
    if isinstance(given, AbstractSet):
        if cls is Run:
            raise ValueError("a set has no order. Give a list of ids, best first, or {document: score}.")
        return dict.fromkeys(sorted(given, key=str), 1)  # in an order that does not depend on hashes
    if not isinstance(given, (list, tuple, np.ndarray)):
        raise ValueError(f"a {type(given).__name__} is no ranking. Give {{document: {cls.value_names[0]}}}.")
    items: list[Any] = given.tolist() if isinstance(given, np.ndarray) else list(given)
    if cls is not Run:  # Elasticsearch has documents without a rating in its evaluations
        items = [item for item in items if not (isinstance(item, Mapping) and item.get("rating", 0) is None)]
    if all(map(_is_id, items)):
        read = [(doc, -float(rank) if cls is Run else 1, "") for rank, doc in enumerate(items, 1)]
    else:
        if mixed := [item for item in items if not _is_id(item)] if any(map(_is_id, items)) else []:
            raise ValueError(f"{_shorten(mixed[0])} is no id, where others are.")
        _check_one_query(items)
        read = [_read_item(cls, item, rank) for rank, item in enumerate(items, 1)]
    docs = {doc: number for doc, number, _ in read}
    if len(docs) < len(read):
        seen: set[Any] = set()
        twice = next(doc for doc, _, _ in read if doc in seen or seen.add(doc))  # type: ignore[func-returns-value]
        raise ValueError(f"document {twice!r} appears twice. Keep one.")
    names = {name for _, _, name in read}
    if len(names) > 1:
        raise ValueError(f"some documents have a {max(names)}, and some {min(names) or 'none'}. Give the same to all.")
    if is_ordered and cls is Run:
        _check_order(list(docs.values()))
    return docs


def _unwrap(given: Any) -> tuple[Any, bool]:
    """The list or the mapping in an answer of a client: Elasticsearch has a body, Qdrant points, Pinecone matches.

    And whether it is a list that is in the order of its scores.
    """
    for name in ("body", "points", "matches"):
        if not isinstance(given, (Mapping, list, tuple)) and isinstance(getattr(given, name, None), (Mapping, list)):
            return getattr(given, name), (name,) in ORDERED
    return given, False


def _check_one_query(items: list[Any]) -> None:
    """Raise if these are rows of several queries, not the ranking of one."""
    for name in QUERY_ID_NAMES[:-3]:
        if len({item[name] for item in items if isinstance(item, Mapping) and _is_id(item.get(name))}) > 1:
            raise ValueError(f"the list has rows of several queries, by {name!r}. Give all rows as one list.")


def find_list(given: Mapping[Any, Any]) -> tuple[Any, bool] | None:
    """The list of documents in a response, and whether it is in the order of its scores; None if there is none.

    >>> find_list({"took": 3, "hits": {"total": 1, "hits": [{"_id": "d"}]}})
    ([{'_id': 'd'}], True)
    >>> find_list({"documents": ["d2", "d1"], "scores": [0.5, 0.25]})
    ([('d2', 0.5), ('d1', 0.25)], False)
    """
    for ids in PARALLEL if isinstance(given.get("scores"), (list, tuple)) else ():
        if isinstance(given.get(ids), (list, tuple)) and all(map(_is_id, given[ids])):
            return list(zip(given[ids], given["scores"], strict=False)), False
    for path in PATHS:
        value: Any = given
        for name in path:
            value = value[0] if isinstance(value, list) and len(value) == 1 else value
            value = value.get(name) if isinstance(value, Mapping) else None
        if isinstance(value, (list, tuple)) and _is_list_of_documents(value):
            return [_of_vespa(item) for item in value] if path == VESPA else value, path in ORDERED
    return None


def _check_lists(given: Mapping[Any, Any]) -> None:
    """Raise if a list of ids stands beside numbers that are not its scores, or that are more or fewer than the ids."""
    lists = {name: one for name, one in given.items() if isinstance(one, (list, tuple))}
    ids = next((name for name in PARALLEL if lists.get(name) and all(map(_is_id, lists[name]))), None)
    numbers = [name for name in lists if name != ids and NUMBER_NAME.search(str(name))]
    if ids is None or not numbers:
        return
    if "scores" not in numbers:
        raise ValueError(f"{ids} beside {numbers[0]}. Give {{document: score}}; of a distance, the score is -distance.")
    if len(lists[ids]) != len(lists["scores"]):
        raise ValueError(f"{len(lists[ids])} {ids}, but {len(lists['scores'])} scores.")


def find_query(line: Mapping[Any, Any]) -> Any:
    """The id of the query beside its ranking: an id, that of a nested query, or else the text of the query.

    >>> find_query({"query": {"qid": "q1", "text": "why"}, "candidates": []})
    'q1'
    """
    for name in QUERY_ID_NAMES:
        if _is_id(line.get(name)):
            return line[name]
    for name in TEXT_NAMES:
        inner = line.get(name)
        if isinstance(inner, Mapping):
            return next((inner[one] for one in QUERY_ID_NAMES if _is_id(inner.get(one))), inner.get("text"))
    located = find_list(line)
    items = located[0] if located else []
    ids = {item.get("qid") for item in items if isinstance(item, Mapping)}  # RankGPT has it in every hit
    if len(ids) == 1 and _is_id(found := ids.pop()):
        return found
    return next((line[name] for name in TEXT_NAMES if isinstance(line.get(name), str)), None)


def _is_list_of_documents(items: Sequence[Any]) -> bool:
    return all(_is_id(item) or isinstance(item, (Mapping, list, tuple)) or _has_attributes(item) for item in items)


def _of_vespa(item: Any) -> Any:
    """A hit of Vespa by our names; of an id such as ``id:space:type::d1`` the part that the user chose."""
    if not isinstance(item, Mapping) or not isinstance(item.get("id"), str):
        return item
    return {"id": item["id"].rpartition("::")[2], "score": item.get("relevance")}


def _is_id(value: Any) -> bool:
    return isinstance(value, (str, Integral)) and not isinstance(value, bool)


def _is_score(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _has_attributes(item: Any) -> bool:
    return any(hasattr(item, name) for name in ID_NAMES) and hasattr(item, "score")


def _read_item(cls: type[Table], item: Any, rank: int) -> tuple[Any, Any, str]:
    """The document and the number of an item of a list, and what the number is called."""
    if isinstance(item, Mapping):
        return _read_mapping(cls, item, rank)
    if _has_attributes(item):  # pyserini, Qdrant, Haystack
        return next(getattr(item, name) for name in ID_NAMES if hasattr(item, name)), item.score, "score"
    if hasattr(item, "node") and hasattr(item, "score"):  # LlamaIndex
        return next(getattr(item.node, name) for name in ID_NAMES if hasattr(item.node, name)), item.score, "score"
    number = cls.value_names[0]
    if not isinstance(item, (list, tuple)) or len(item) != 2:
        raise ValueError(f"{_shorten(item)} is neither an id nor (document, {number}).")
    first, second = item
    if isinstance(first, str) or (_is_id(first) and not isinstance(second, (str, Integral))):
        if not isinstance(second, str):
            return first, second, number
    elif _is_score(first) and isinstance(second, str):  # as in a heap: only one of them is text
        return second, first, f"{number} before it"
    raise ValueError(f"{_shorten(item)}: which one is the document? Give {{document: {number}}}.")


def _read_mapping(cls: type[Table], item: Mapping[Any, Any], rank: int) -> tuple[Any, Any, str]:
    nested: Mapping[Any, Any] = next((item[name] for name in NESTED_NAMES if isinstance(item.get(name), Mapping)), {})
    known = (one[name] for one in (item, nested) for name in ID_NAMES if _is_id(one.get(name)))
    doc = next(known, None)
    if doc is None:
        raise ValueError(f"a result has no id of its document. It has: {_list_names(item)}.")
    names = SCORE_NAMES if cls is Run else LABEL_NAMES
    for one in (item, nested):
        name = next((name for name in names if name in one), None)
        if name is not None:
            number = _parse(one[name])
            if not _is_score(number):
                advice = " A search that is sorted by a field has no scores." if name == "_score" else ""
                raise ValueError(f"document {doc!r} has the {name} {number!r}, not a number.{advice}")
            return doc, number, name
    distance = next((str(name) for name in item if "distance" in str(name).lower()), None)
    if cls is Run and distance is not None:
        raise ValueError(
            f"document {doc!r} has a {distance}, which may be a score, too. Give {{document: -distance}}, or "
            "Run.from_neighbors(distances, ids, metric=…)."
        )
    if cls is Run and any(name in item for name in LABEL_NAMES):
        raise ValueError(f"document {doc!r} has no score. It has: {_list_names(item)}. Judgments are no run.")
    if cls is Run and _is_id(item.get("rank")) and not isinstance(item["rank"], str):
        return doc, -float(item["rank"]), "rank"
    if cls is Run and not any(NUMBER_NAME.search(str(name)) for name in item):
        return doc, -float(rank), "place"
    raise ValueError(f"document {doc!r} has no {cls.value_names[0]}. It has: {_list_names(item)}.")


def _parse(number: Any) -> Any:
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
    picked = [next((item[name] for name in names if name in item), None) for names in _row_names(cls)]
    return all(_is_id(one) or _is_score(one) for one in picked)


def _row_names(cls: type[Table]) -> tuple[Sequence[str], ...]:
    return QUERY_NAMES, DOC_NAMES, cls.value_names


def rows_of_columns(cls: type[Table], table: Mapping[Any, Any]) -> list[dict[Any, Any]] | None:
    """The rows of columns by name, as lists or as pandas writes them; None for other mappings.

    >>> rows_of_columns(Run, {"qid": ["q1"], "docno": ["d1"], "score": [0.5]})
    [{'qid': 'q1', 'docno': 'd1', 'score': 0.5}]
    """
    if {"columns", "data"} <= {*table} and isinstance(table["data"], list):  # pandas, orient="split"
        return [dict(zip(table["columns"], row, strict=True)) for row in table["data"]]
    if len(table) > 100 or not all(any(name in table for name in names) for names in _row_names(cls)):
        return None
    columns = {name: list(one.values()) if isinstance(one, Mapping) else one for name, one in table.items()}
    if not all(isinstance(one, (list, tuple, np.ndarray)) for one in columns.values()):
        return None
    if len({len(one) for one in columns.values()}) > 1:
        lengths = ", ".join(f"{len(one)} {name}" for name, one in columns.items())
        raise InputError(f"columns of different lengths: {lengths}.")
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def rankings_of_rows(items: Sequence[Any]) -> dict[str, Any] | None:
    """The rankings of a list that has one for each query, by their places, as of `semantic_search`; None for rows.

    >>> rankings_of_rows([[{"corpus_id": 7, "score": 0.5}], []])
    {'0': [{'corpus_id': 7, 'score': 0.5}], '1': []}
    """
    rankings = [item for item in items if isinstance(item, (list, tuple)) and not hasattr(item, "_fields")]
    inner = [one for item in rankings for one in item[:1]]
    if len(rankings) < len(items) or not inner or any(_is_id(one) or _is_score(one) or one is None for one in inner):
        return None
    return {str(place): item for place, item in enumerate(items)}


def _steps(values: list[Any]) -> list[tuple[Any, Any]]:
    """Each number and the next one; what is no number is reported later."""
    return list(pairwise(values)) if all(map(_is_score, values)) else []


def _refuse_distances(lists: list[list[Any]]) -> None:
    """Raise if the scores of no list fall, and rise often enough to be distances from the nearest document on."""
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
            "scores, or these are distances. Give ids alone, best first, or {document: score}."
        )


def _list_names(item: Mapping[Any, Any]) -> str:
    return ", ".join(map(repr, item))


def _shorten(item: Any) -> str:
    text = repr(item)
    return text if len(text) <= 60 else f"{text[:60]}…"
