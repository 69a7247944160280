"""Where the responses of search engines, vector databases and rerankers have their list of documents.

`PLACES` says where the list is; an item of it is read in `tiewise.io.rankings`, by the names that are here, too. A
response to several queries has a list or a response for each, in the order of the request.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any, NamedTuple

from tiewise.data.runs import Run
from tiewise.data.table import DOC_NAMES, QUERY_NAMES

#: The names of a list of ids, and of a document's id in an item of a list: those of columns, then those of services.
LIST_NAMES = (*(f"{name}s" for name in DOC_NAMES if name != "doc"), "ids")
ID_NAMES = (*DOC_NAMES, "id", "_id", "id_", "node_id", "wikipedia_id", "key", "objectID", "file_id")
SCORE_NAMES = (
    *Run.value_names,
    *("_score", "_relevance_score", "_rankingScore", "@search.rerankerScore", "@search.score"),
)
#: Numbers of which the smallest is the best in every metric: LanceDB, turbopuffer, Weaviate.
DISTANCE_NAMES = ("_distance", "$dist")
LABEL_NAMES = ("relevance", "label", "rel", "grade", "rating", "gain")
#: What may hold the id of a document, or its id and score: Elasticsearch, Pinecone, LlamaIndex, Milvus, Qdrant.
NESTED_NAMES = ("document", "doc", "node", "hit", "entity", "payload")
METADATA_NAMES = ("metadata", "meta")  # LangChain, Haystack


def _of_vespa(item: Any) -> Any:
    """A hit of Vespa by our names; of an id such as ``id:space:type::d1`` the part that the user chose."""
    if not isinstance(item, Mapping) or not isinstance(item.get("id"), str):
        return item
    return {"id": item["id"].rpartition("::")[2], "score": item.get("relevance")}


def _of_weaviate(item: Any) -> Any:
    """An object of Weaviate, of GraphQL or the Python client, by our names: a distance, else a score or a certainty."""
    if isinstance(item, Mapping):
        more, properties = item.get("_additional"), item
    elif _is_object(item):
        more, properties = {**vars(item.metadata), "id": str(item.uuid)}, item.properties
    else:
        return item
    if not isinstance(more, Mapping):
        return item
    named = {name: properties[name] for name in DOC_NAMES if name in (properties or ())}
    found = {"rerank_score": "score", "distance": "_distance", "score": "score", "certainty": "score"}
    number = next(({found[name]: more[name]} for name in found if more.get(name) not in (None, "")), {})
    return {"id": more.get("id"), **named, **number}


def _is_object(item: Any) -> bool:
    """Whether this is an object of Weaviate's client."""
    return hasattr(item, "uuid") and hasattr(item, "metadata")


class ListPlace(NamedTuple):
    """Where a response has its list of documents, and what is known of it."""

    path: tuple[str, ...]  # "*" is the only name that is there
    is_ordered: bool = False  # by its scores: else a reranker moved them, or they are distances
    read_item: Callable[[Any], Any] | None = None  # an item by our names


#: Where Elasticsearch, Solr, Vespa, Weaviate, Qdrant, Pinecone, Azure, Anserini, RankGPT, DPR, Milvus, KILT and others
#: have their lists. The first place that fits is used.
PLACES: tuple[ListPlace, ...] = (
    ListPlace(("hits", "hits"), is_ordered=True),  # Elasticsearch, OpenSearch
    ListPlace(("response", "docs"), is_ordered=True),  # Solr
    ListPlace(("root", "children"), is_ordered=True, read_item=_of_vespa),
    ListPlace(("data", "Get", "*"), is_ordered=True, read_item=_of_weaviate),
    ListPlace(("objects",), is_ordered=True, read_item=_of_weaviate),
    ListPlace(("result", "points"), is_ordered=True),  # Qdrant
    ListPlace(("result", "hits"), is_ordered=True),  # Pinecone
    *(ListPlace((name,), is_ordered=True) for name in ("result", "points", "matches", "value", "hits")),
    *(ListPlace((name,), is_ordered=True) for name in ("candidates", "ctxs", "contexts")),
    *(ListPlace((name,)) for name in ("results", "rows", "docs", "documents", "ranking", "rankings", "nodes")),
    *(ListPlace((name,)) for name in ("retrieved", "retrieved_docs", "retrieved_documents", "ratings")),
    *(ListPlace((name,), is_ordered=True) for name in ("passages", "data")),
    ListPlace(("output", "provenance")),  # KILT
)
#: Where the answer to several queries has one list or response for each: msearch, Qdrant, Meilisearch, Milvus.
BATCHES = ("responses", "result", "results", "data")
#: Lists of ids that have the scores in a second list.
PARALLEL_IDS = (
    *LIST_NAMES,
    *DOC_NAMES[:-1],
    "indices",
    "retrieved_ids",
)  # also beside distances: of Chroma documents are texts
PARALLEL = (*PARALLEL_IDS, "documents", "docs", "results", "retrieved", "ranking")
#: Names of one list of ids, of which the first counts, and of lists of texts beside it.
ALIASES, TEXTS = (*LIST_NAMES, "indices"), ("documents", "docs", "passages", "contexts")
#: What the second list is called.
PARALLEL_SCORES = ("scores", "similarities", "retrieved_scores", "score")
#: Names of numbers, without which the order of a list alone is not its ranking: what ties would be lost.
NUMBER_NAME = r"(?i)score|distance|\bdist\b|match|simil|certainty|confidence|logit|prob|bm25"
#: Names of lists of relevant documents: relevant_docs, positive_passages, gold_ids, answer_pids of LoTTE; not of texts,
#: such as golden_answers.
RELEVANT_NAME = r"(?i)answer_pids|(?!.*answer)(relevant|positive|gold|ground_?truth)"
#: The names of a query's id beside its ranking, the first that is there.
QUERY_ID_NAMES = (*(name for name in QUERY_NAMES if name not in ("query", "topic")), "queryId", "id", "_id", "topic")
#: Names that an answer to one of several queries may have for its query.
QUERY_NUMBER_NAME = r"(?i)query|topic|question|number|index"
TEXT_NAMES = ("query", "question", "input")


def find_list(given: Mapping[Any, Any]) -> tuple[Any, bool] | None:
    """The list of documents in a response, and whether it is in the order of its scores; None if there is none.

    >>> find_list({"took": 3, "hits": {"total": 1, "hits": [{"_id": "d"}]}})
    ([{'_id': 'd'}], True)
    >>> find_list({"documents": ["d2", "d1"], "scores": [0.5, 0.25]})
    ([('d2', 0.5), ('d1', 0.25)], False)
    >>> find_list({"ids": [["d2", "d1"]], "distances": [[0.25, 0.5]]})
    ([{'id': 'd2', '_distance': 0.25}, {'id': 'd1', '_distance': 0.5}], True)
    """
    if not any(issubclass(kind, (Mapping, list, tuple)) for kind in set(map(type, given.values()))):
        return None  # nearly always: the labels or scores of documents
    lists = {name: _of_one(given.get(name)) for name in (*PARALLEL, *PARALLEL_SCORES, "distances")}
    scores = next((lists[name] for name in PARALLEL_SCORES if isinstance(lists[name], (list, tuple))), None)
    ids = next(
        (name for name in PARALLEL if isinstance(lists[name], (list, tuple)) and all(map(is_id, lists[name]))), ""
    )
    if ids and scores is not None:
        return list(zip(lists[ids], scores, strict=False)), False
    if ids in PARALLEL_IDS and isinstance(lists["distances"], (list, tuple)):
        pairs = zip(lists[ids], lists["distances"], strict=False)
        return [{"id": doc, DISTANCE_NAMES[0]: distance} for doc, distance in pairs], True
    for place in PLACES:
        value: Any = given
        for name in place.path:
            value = value[0] if isinstance(value, list) and len(value) == 1 else value
            names = list(value) if name == "*" and isinstance(value, Mapping) else [name]
            value = value.get(names[0]) if isinstance(value, Mapping) and len(names) == 1 else None
        if isinstance(value, (list, tuple)) and _is_list_of_documents(value):
            return [place.read_item(item) for item in value] if place.read_item else value, place.is_ordered
    if ids in PARALLEL_IDS and given.keys() <= {ids, *QUERY_ID_NAMES, *QUERY_NAMES, *TEXT_NAMES}:
        return lists[ids], False
    if not any(is_id(given.get(name)) for name in QUERY_ID_NAMES):
        return None
    lists_of_items = [one for one in given.values() if isinstance(one, list) and one]
    for known in (SCORE_NAMES, LABEL_NAMES):
        if named := [one for one in lists_of_items if all(_has_number(item, known) for item in one)]:
            return named[0], True
    return None


def _has_number(item: Any, names: Sequence[str]) -> bool:
    """Whether an item of a list has an id, and a number of one of the names."""
    return isinstance(item, Mapping) and all(any(name in item for name in known) for known in (ID_NAMES, names))


def find_relevant(given: Mapping[Any, Any]) -> list[Any] | None:
    """The relevant documents of a query, which judgments may list instead of labels; None if there are none.

    >>> find_relevant({"query_id": "q1", "positive_passages": [{"docid": "d1", "text": "…"}]})
    ['d1']
    """
    lists = [
        one for name, one in given.items() if re.match(RELEVANT_NAME, str(name)) and isinstance(one, (list, tuple))
    ]
    if not lists and isinstance(given.get("output"), list):  # the answers of KILT, each with its evidence
        parts = [one.get("provenance") or () for one in given["output"] if isinstance(one, Mapping)]
        pages = [page for part in parts for page in part if isinstance(page, Mapping) and "wikipedia_id" in page]
        lists = [pages] if not any("score" in page for page in pages) else []
    if len(lists) != 1 or not lists[0]:
        return None
    found = [find_id(one) if isinstance(one, Mapping) else one for one in lists[0]]
    has_query = any(is_id(given.get(name)) for name in QUERY_ID_NAMES)
    are_texts = not has_query and any(" " in str(one) for one in found)  # of RAGAS, of MTEB's reranking
    return found if all(map(is_id, found)) and not are_texts else None


def find_nested(item: Mapping[Any, Any]) -> Mapping[Any, Any]:
    """What an item of a list has inside it, where it may have its id: a document, or else metadata."""
    nested: Mapping[Any, Any] = next((item[name] for name in NESTED_NAMES if isinstance(item.get(name), Mapping)), {})
    if nested or any(is_id(item.get(name)) for name in ID_NAMES):
        return nested
    return next((item[name] for name in METADATA_NAMES if isinstance(item.get(name), Mapping)), {})


def find_id(item: Mapping[Any, Any]) -> Any:
    """The id of the document in an item of a list, None if it has none.

    A name of a document's id beats those of any: the points of Qdrant have numbers, and ids in their payload.

    >>> find_id({"id": 7, "payload": {"doc_id": "d1"}}), find_id({"text": "…"})
    ('d1', None)
    """
    both = (item, find_nested(item))
    return next(
        (one[name] for names in (DOC_NAMES, ID_NAMES) for one in both for name in names if is_id(one.get(name))), None
    )


def unwrap(given: Any) -> Any:
    """The list or the mapping in the answer of a client: Elasticsearch has a body, Qdrant points, Redis docs."""
    for name in ("body", "points", "matches", "objects", "docs", "results"):
        if not isinstance(given, (Mapping, list, tuple)) and isinstance(getattr(given, name, None), (Mapping, list)):
            found = getattr(given, name)
            return found if name == "body" else {name: found}
    return given


def as_plain(value: Any) -> Any:
    """The response of a client as JSON has it: objects become mappings, arrays lists."""
    for name in ("model_dump", "tolist", "_asdict"):
        if hasattr(value, name):
            return as_plain(getattr(value, name)())
    if isinstance(value, Mapping) or (hasattr(value, "__dict__") and not callable(value)):
        fields = value if isinstance(value, Mapping) else vars(value)
        return {name: as_plain(one) for name, one in fields.items()}
    return [as_plain(one) for one in value] if isinstance(value, (list, tuple)) else value


def check_lists(given: Mapping[Any, Any]) -> None:
    """Raise if a response has two rankings, or ids beside numbers that are not their scores, or more or fewer."""
    lists = {name: _of_one(one) for name, one in given.items() if isinstance(_of_one(one), (list, tuple)) and one}
    rankings = [name for name, one in lists.items() if _may_be_ranking(name, one)]
    ids = next((name for name in PARALLEL if name in lists and all(map(is_id, lists[name]))), None)
    numbers = [name for name in lists if name != ids and re.search(NUMBER_NAME, str(name))]
    if ids in PARALLEL_IDS and numbers:
        rankings = [name for name in rankings if name == ids or name not in TEXTS]
    others = [name for name in rankings if name not in ALIASES] + [name for name in rankings if name in ALIASES][:1]
    if len(others) > 1:
        first, second = [name for name in lists if name in others][:2]
        raise ValueError(f"has the lists {first!r} and {second!r}. Keep the one that is the ranking.")
    if ids is None or not numbers:
        return
    name = next((one for one in (*PARALLEL_SCORES, "distances") if one in numbers), None)
    if name is None or (name == "distances" and ids not in PARALLEL_IDS):
        raise ValueError(f"{ids} beside {numbers[0]}. Give {{document: score}}; of a distance, the score is -distance.")
    if len(lists[ids]) != len(lists[name]):
        raise ValueError(f"{len(lists[ids])} {ids}, but {len(lists[name])} {name}.")


def _may_be_ranking(name: str, items: Sequence[Any]) -> bool:
    """Whether a list has a usual name and ids alone, or documents with scores."""
    if re.match(RELEVANT_NAME, str(name)):
        return False
    are_ids = name in (*PARALLEL, *(place.path[0] for place in PLACES)) and all(map(is_id, items))
    return are_ids or all(_has_number(item, SCORE_NAMES) for item in items)


def _of_one(value: Any) -> Any:
    """The list of the only query in a list of lists, as Chroma has it; other values unchanged."""
    is_nested = isinstance(value, (list, tuple)) and len(value) == 1 and isinstance(value[0], (list, tuple))
    return value[0] if is_nested else value


def find_batch(given: Any) -> list[Any] | None:
    """The lists or responses of several queries in the answer to all of them, in their order; None if it is none.

    >>> find_batch({"ids": [["d2", "d1"], ["d3"]], "distances": [[0.25, 0.5], [0.1]]})
    [{'ids': ['d2', 'd1'], 'distances': [0.25, 0.5]}, {'ids': ['d3'], 'distances': [0.1]}]
    >>> find_batch({"responses": [{"hits": {"hits": [{"_id": "d", "_score": 1.5}]}}]})
    [{'hits': {'hits': [{'_id': 'd', '_score': 1.5}]}}]
    """
    if isinstance(given, Mapping):
        for ids in filter(given.__contains__, PARALLEL_IDS):
            for numbers in ("distances", *PARALLEL_SCORES):
                lists: list[Any] = [given.get(ids), given.get(numbers)]
                if all(isinstance(one, (list, tuple)) and one and _is_all_lists(one) for one in lists):
                    if len(lists[0]) != len(lists[1]):
                        raise ValueError(f"{len(lists[0])} lists of {ids}, but {len(lists[1])} of {numbers}.")
                    return [{ids: one, numbers: other} for one, other in zip(*lists, strict=True)]
        parts = map(given.__getitem__, filter(given.__contains__, BATCHES))
        return next((found for part in parts if (found := find_batch(part)) is not None), None)
    items = given if isinstance(given, (list, tuple)) and not hasattr(given, "_fields") else []
    answers = [unwrap(item) for item in items]
    is_list = [isinstance(one, (list, tuple)) and not hasattr(one, "_fields") for one in answers]
    inner = [one for answer, is_one in zip(answers, is_list, strict=True) if is_one for one in answer[:1]]
    if any(is_id(one) or is_score(one) or one is None for one in inner):  # rows
        return None
    responses = [one for one, is_one in zip(answers, is_list, strict=True) if not is_one]
    is_response = all(isinstance(one, Mapping) and find_list(one) and find_query(one) is None for one in responses)
    if not is_response or not (inner or responses):
        return None
    for key in responses[0] if len(responses) > 1 else ():
        named = {one[key] for one in responses if re.search(QUERY_NUMBER_NAME, str(key)) and is_id(one.get(key))}
        if len(named) == len(answers):
            raise ValueError(
                f"the answers have {key!r}, which may name their queries. If it does, call it query_id, else leave it "
                "out."
            )
    return answers


def _is_all_lists(items: Sequence[Any]) -> bool:
    return all(isinstance(one, (list, tuple)) for one in items)


def find_query(line: Mapping[Any, Any]) -> Any:
    """The id of the query beside its ranking: an id, that of a nested query, or else the text of the query.

    >>> find_query({"query": {"qid": "q1", "text": "why"}, "candidates": []})
    'q1'
    """
    for name in QUERY_ID_NAMES:
        if is_id(line.get(name)):
            return line[name]
    for name in TEXT_NAMES:
        inner = line.get(name)
        if isinstance(inner, Mapping):
            return next((inner[one] for one in QUERY_ID_NAMES if is_id(inner.get(one))), inner.get("text"))
    located = find_list(line)
    items = located[0] if located else []
    ids = {item.get("qid") for item in items if isinstance(item, Mapping)}  # RankGPT has it in every hit
    if len(ids) == 1 and is_id(found := ids.pop()):
        return found
    return next((line[name] for name in TEXT_NAMES if isinstance(line.get(name), str)), None)


def _is_list_of_documents(items: Sequence[Any]) -> bool:
    known = (Mapping, list, tuple)
    return all(is_id(item) or isinstance(item, known) or has_attributes(item) or _is_object(item) for item in items)


def is_id(value: Any) -> bool:
    """Whether a value may be an id."""
    return isinstance(value, (str, Integral)) and not isinstance(value, bool)


def is_score(value: Any) -> bool:
    """Whether a value is a number."""
    is_tensor = getattr(value, "shape", None) == () and hasattr(value, "__float__")
    return (isinstance(value, Real) and not isinstance(value, bool)) or is_tensor


def has_attributes(item: Any) -> bool:
    """Whether an object has an id and a score as attributes: those of pyserini, Qdrant, Haystack, LlamaIndex."""
    return any(hasattr(item, name) for name in (*ID_NAMES, "node")) and hasattr(item, "score")
