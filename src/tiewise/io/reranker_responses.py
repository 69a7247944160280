"""Responses of rerankers behind an API, one JSON object on each line, as a run.

A line has the id of the query, the ids of the documents in the order of the request, and the response as it came:

    {"query_id": "q1", "doc_ids": ["d7", "d2"], "response": {"results": [{"index": 1, "relevance_score": 0.98}, …]}}

Where each document was asked for alone, ``response`` is a list, or a line has one ``doc_id``. Log-probabilities of yes
and no become log-odds: their difference does not level off, as the probability of yes does. A listwise reranker answers
with an order; the score of a document is −rank then.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from math import inf, log
from typing import Any

from tiewise.data.columns import look_like_ids
from tiewise.data.table import DOC_NAMES, QUERY_NAMES, Table
from tiewise.errors import InputError, warn
from tiewise.io.rankings import parse_number, read_ranking
from tiewise.io.search_responses import ID_NAMES, LIST_NAMES, find_id, find_list, find_query, is_id, is_score
from tiewise.io.token_logprobs import (
    BoundedLogOdds,
    UnlikelyLogOdds,
    find_answers,
    is_generation,
    log_odds,
    read_number,
)
from tiewise.results.wording import count_noun

EXPECTED = '{"query_id": …, "doc_ids": […], "response": {"results": [{"index": …, "relevance_score": …}, …]}}'
#: The line of an answer about one document.
BARE = '{"query_id": …, "doc_id": …, "response": …}, or a custom_id such as q1_d7'
#: The names of the document of a line.
ONE_NAMES = tuple(name for name in DOC_NAMES if name != "doc")  # which may be a text
#: What clients and batches put around a response.
AROUND = ("body", "output", "result", "results")
#: Where responses have their results; NVIDIA calls them rankings, Google records, Elasticsearch rerank.
LISTS = ("results", "data", "rankings", "records", "rerank")
#: Where a response that is not in ``response`` has its results: beside the ids.
INLINE = ("choices", *LISTS, *AROUND)
#: Where services have scores in the order of the request: DeepInfra, MLflow.
SCORE_LISTS = ("scores", "predictions")
#: The names of an error in a response.
ERRORS = ("error", "errors", "message", "detail")
SERVICE_ERROR = "looks like an error message of the service: {!r}. Ask again."
#: A response that was written as text: an object, or a list of objects.
JSON_TEXT = re.compile(r"\s*(\[\s*)?\{")
#: The likeliest of at most ten classes is as likely as that.
MIN_LIKELIEST = 0.1
SCORES = ("relevance_score", "score", "logit", "relevanceScore")
INDEXES = ("index", "corpus_id", "result_index")
NO_INDEX = "a result has no index, the number of its document in the request, counted from 0."
MAX_NUMBER = 10_000  # documents of one request
ORDERS = ("permutation", "order")
#: The labels of two classes; models without names for them have LABEL_0 and LABEL_1.
UNNAMED = "label_0"
POSITIVE = ("yes", "true", "relevant", "label_1", "positive")
NEGATIVE = ("no", "false", "irrelevant", "not_relevant", UNNAMED, "negative")
#: Where services have a text.
TEXT_KEYS = ("generated_text", "text", "content", "response", "completion", "output_text")
#: An order of passages as RankGPT and RankLLM write it.
CHAIN = re.compile(r"\[(?:\d+|[A-Z])\](?:\s*>\s*\[(?:\d+|[A-Z])\])+")
MARK = re.compile(r"\[(\d+|[A-Z])\]")
PLAIN_CHAIN = re.compile(r"\s*\d+(?:\s*>\s*\d+)+\s*")
#: Names of objects that may have documents by their ids.
DOCUMENTS_NAME = re.compile(r"(?i)doc|passage|candidate|corpus|text|chunk|hit")
#: What is around a block of Markdown.
FENCE = re.compile(r"^\s*```(?:json)?\s*|\s*```\s*$")


def is_response(document: Any) -> bool:
    """Whether a JSON value is a line of responses."""
    if not isinstance(document, Mapping):
        return False
    has_query = any(name in document for name in QUERY_NAMES)
    if "response" in document or "responses" in document:
        return has_query or find_query(document) is not None
    is_named = any(name in document for name in (*ONE_NAMES, *LIST_NAMES))
    return has_query and is_named and any(name in document for name in INLINE)


def is_bare_response(document: Mapping[str, Any]) -> bool:
    """Whether this is the response of a language model or a reranker as it came, without ids around it."""
    if isinstance(document.get("choices"), list) or (is_generation(document) and isinstance(_text(document), str)):
        return True
    lists = (document.get(name) for name in LISTS)
    found = next((one for one in lists if isinstance(one, list) and one), [])
    return bool(found) and all(isinstance(one, Mapping) and not {*INDEXES}.isdisjoint(one) for one in found)


def find_error(response: Mapping[Any, Any]) -> str:
    """The beginning of the message in the response of a service that failed, empty if there is none.

    >>> find_error({"message": "rate limit"}), find_error({"error": {"message": "rate limit"}})
    ('rate limit', 'rate limit')
    """
    error = next((response[name] for name in ERRORS if response.get(name)), "")
    text = error.get("message", "") if isinstance(error, Mapping) else error
    return text[:60] if isinstance(text, str) and isinstance(parse_number(text), str) else ""


def is_scored_part(line: Any, docs: Mapping[Any, Any]) -> bool:
    """Whether a line has scores of named documents, and no ranks, so that other lines may have those of others."""
    if not is_response(line) or _doc_ids(line) is None:
        return False
    return len(docs) < 2 or [*docs.values()] != [-rank for rank in range(1, len(docs) + 1)]


def read_response(cls: type[Table], line: Any) -> tuple[Any, Mapping[Any, Any]]:
    """The query of a line, and the score of each document. A ValueError says what is wrong.

    >>> from tiewise import Run
    >>> read_response(Run, {"query_id": "q", "doc_ids": ["a", "b"], "response": [{"index": 1, "score": 0.9}]})
    ('q', {'b': 0.9})
    >>> item = {"index": 0, "logprobs": {"Yes": -0.5, "No": -1.5}}
    >>> read_response(Run, {"query_id": "q", "response": {"data": [item]}})
    ('q', {'0': 1.0})
    >>> read_response(Run, {"query_id": "q", "doc_ids": ["a", "b"], "response": "[2] > [1]"})
    ('q', {'b': -1.0, 'a': -2.0})
    """
    if not is_response(line):
        error = find_error(line) if isinstance(line, Mapping) else ""
        raise ValueError(SERVICE_ERROR.format(error) if error else f"expected {EXPECTED}.")
    query, response, names = _query(line), _response(line), _doc_ids(line)
    if names is None and (texts := next((name for name, one in _lists(line) if _are_ids(one)), None)) is not None:
        raise ValueError(f"the {texts} look like ids. Call them doc_ids; if they are texts, leave them out.")
    found = next(pairs for read in READERS if (pairs := read(cls, response, names)) is not None)
    docs: dict[Any, Any] = {}
    for key, score in found:
        doc = _name(key, names)
        if doc in docs:
            raise ValueError(f"document {doc!r} appears twice. Keep one.")
        docs[doc] = score
    return query, docs


def _name(key: Any, names: list[Any] | None) -> Any:
    """The document of a result: `key` is its place in the request, or its id as text."""
    if names is None:
        return str(key)
    if isinstance(key, str):
        if (doc := next((name for name in names if str(name) == key), None)) is None:
            raise ValueError(f"a result has the id {key!r}, which is not one of the doc_ids.")
        return doc
    if key >= len(names):
        raise ValueError(f"a result has index {key}, but there are {len(names)} doc_ids. Give all, in order.")
    return names[key]


def check_table(table: Mapping[Any, Mapping[Any, Any]], lines: Sequence[Any], name: str) -> None:
    """Note documents without a score or an id, and scores of bounds or unlikely tokens; an InputError if most are."""
    scores = [score for docs in table.values() for score in docs.values()]
    bounded = sum(isinstance(score, BoundedLogOdds) for score in scores)
    if bounded:
        found = f"{bounded:,} of {len(scores):,} answers have only one of yes and no among their logprobs"
        ask = "Ask for more of them (top_logprobs), or restrict the answer to yes and no."
        if 2 * bounded > len(scores):
            raise InputError(f"{name}: {found}. {ask}")
        warn(f"{name}: {found}. The other one is taken to be as likely as the least likely token. {ask}")
    if unlikely := sum(isinstance(score, UnlikelyLogOdds) for score in scores):
        found = f"{unlikely:,} of {len(scores):,} answers do not begin with yes or no"
        if 2 * unlikely > len(scores):
            raise InputError(
                f"{name}: {found}. Let the model answer yes or no at once; of other words, give the log-probabilities "
                'as {"index": …, "logprobs": {"yes": …, "no": …}}.'
            )
        warn(f"{name}: {found}; their scores come from unlikely tokens. Let the model answer at once.")
    _note_missing(table, lines, name)
    if any(_is_numbered(line, table) for line in lines):
        warn(f"{name}: lines without doc_ids: their documents are numbered 0, 1, 2 … in the order of the request.")


def _note_missing(table: Mapping[Any, Mapping[Any, Any]], lines: Sequence[Any], name: str) -> None:
    """Note how many documents of the requests have no score."""
    missing, total, responses = 0, 0, 0
    for line in lines:
        given, scored = _doc_ids(line) or [], {*map(str, table[_query(line)])}
        n_missing = sum(str(doc) not in scored for doc in given)
        if n_missing:
            missing, total, responses = missing + n_missing, total + len(given), responses + 1
    if missing:
        found = f"{missing:,} of {total:,} doc_ids have no score in {count_noun(responses, 'response')} (top_n?)"
        warn(f"{name}: {found}. They count as not retrieved; ask for the scores of all.")


def _is_numbered(line: Mapping[str, Any], table: Mapping[Any, Any]) -> bool:
    if _doc_ids(line) is not None:
        return False
    docs = table[_query(line)]
    return all(str(doc).isdecimal() and int(doc) < MAX_NUMBER for doc in docs)


def _query(line: Mapping[str, Any]) -> Any:
    """The query of a line; beside an inline response, whose id is called id, only names of queries count."""
    is_inline = "response" not in line and "responses" not in line
    found = None if is_inline else find_query(line)
    return next(line[name] for name in QUERY_NAMES if name in line) if found is None else found


def _doc_ids(line: Mapping[str, Any]) -> list[Any] | None:
    """The ids of the documents of a line, None if it has none."""
    name = next((name for name in (*ONE_NAMES, *LIST_NAMES) if name in line), None)
    if name is None:
        return _ids_of_documents(line)
    found = [line[name]] if name in ONE_NAMES and is_id(line[name]) else line[name]
    if not isinstance(found, list):
        raise ValueError(f"doc_ids must be a list with the id of each document, not {found!r}.")
    return found


def _ids_of_documents(line: Mapping[str, Any]) -> list[Any] | None:
    """The ids of documents that stand beside their texts."""
    found = [(name, [find_id(one) for one in docs if isinstance(one, Mapping)], docs) for name, docs in _lists(line)]
    named = {
        tuple(map(str, ids)): (name, ids) for name, ids, docs in found if len(ids) == len(docs) and all(map(is_id, ids))
    }
    if len(named) > 1:
        names = " and ".join(name for name, _ in named.values())
        raise ValueError(f"the lists {names} have other ids. Call those of the request doc_ids.")
    return next((ids for _, ids in named.values()), None)


def _lists(line: Mapping[str, Any], without: Sequence[str] = ("response", "responses", *INLINE)) -> Iterator[Any]:
    """The lists beside the response, with their names; also those of the request, and the keys of named documents."""
    for name, one in line.items():
        if name in without:
            continue
        if isinstance(one, list) and one:
            yield name, one
        elif isinstance(one, Mapping) and DOCUMENTS_NAME.search(str(name)):
            yield name, [*one]
        elif isinstance(one, Mapping):
            yield from _lists(one, ())


def _response(line: Mapping[str, Any]) -> Any:
    """The response of a line, without what a client or a batch puts around it; JSON as text is parsed."""
    response = line.get("response", line.get("responses", line))
    if isinstance(response, str) and JSON_TEXT.match(response):
        response = _parse_text(response)
    for name in AROUND:
        inner = response.get(name) if isinstance(response, Mapping) else None
        if isinstance(inner, Mapping):
            response = inner
    return response


def _are_ids(texts: list[Any]) -> bool:
    """Whether texts, or the first of each pair, look like ids, and no two are equal."""
    ids = [one[0] if isinstance(one, list) and one else one for one in texts]
    return bool(ids) and look_like_ids(ids) and len({*map(str, ids)}) == len(ids)


# -- shapes of responses --------------------------------------------------------------------------------------------

#: The places of documents in the request, or their ids as text, with their scores.
Pairs = Iterable[tuple[Any, Any]]


def _read_search(cls: type[Table], response: Any, names: list[Any] | None) -> Pairs | None:
    """The response of a search engine, or a list of its documents: with ids, and no indexes."""
    items = response
    if isinstance(response, Mapping):
        located = None if is_generation(response) else find_list(response)
        items = located[0] if located else None
    if not isinstance(items, list) or not items:
        return None
    is_found = all(isinstance(item, Mapping) and {*INDEXES}.isdisjoint(item) for item in items)
    if not is_found or (items is response and not all(map(_is_document, items))):
        return None
    return [(str(doc), score) for doc, score in read_ranking(cls, response).items()]


def _is_document(item: Mapping[str, Any]) -> bool:
    """Whether an item holds a document that has an id: those of LlamaIndex and LangChain."""
    return any(isinstance(item.get(name), Mapping) for name in ("node", "metadata"))


def _read_answer(cls: type[Table], response: Any, names: list[Any] | None) -> Pairs | None:
    """The response of a language model, which may have answers for several documents, or a number that it wrote."""
    if not _is_answer(response):
        return None
    answers = _read_answers(response)
    _check_count(len(answers), names)
    return answers.items()


def _read_parts(cls: type[Table], response: Any, names: list[Any] | None) -> Pairs | None:
    """A list of responses, each to the next documents of the request, of which services take only so many at once."""
    parts: list[dict[Any, Any]] = []
    for one in response if isinstance(response, list) else ():
        items = next((one[name] for name in LISTS if name in one), None) if isinstance(one, Mapping) else one
        if not isinstance(items, list) or not items or not all(map(_has_index, items)):
            return None
        others = None if names is None else names[sum(map(len, parts)) :]
        parts.append(dict(_read_item(item, others) for item in items))
    if not parts:
        return None
    if any({*part} != {*range(len(part))} for part in parts):
        raise ValueError("a response in the list lacks documents. Write a line with its own doc_ids for each response.")
    scores = [part[place] for part in parts for place in range(len(part))]
    _check_count(len(scores), names)
    return enumerate(scores)


def _has_index(item: Any) -> bool:
    return isinstance(item, Mapping) and isinstance(item.get("index"), int)


def _read_list(cls: type[Table], response: Any, names: list[Any] | None) -> Pairs:
    """A list of results, perhaps in an object: with an index or an id, or in the order of the request."""
    items = _items(response)
    items = [one[0] if isinstance(one, list) and one and is_generation(one[0]) else one for one in items]  # TGI
    for matches, read in IN_ORDER:
        if items and all(map(matches, items)):
            if isinstance(response, list) and _is_permutation(items):
                raise ValueError('these may be scores or an order. Write {"scores": […]} or {"permutation": […]}.')
            scores = read(items)
            _check_count(len(scores), names)
            return enumerate(scores)
    if items and _is_text(items[0]):
        raise _no_logprobs(_text(items[0]))
    found = [_read_item(item, names) for item in items]
    places = {*map(str, range(len(names or [])))}
    if places and places.isdisjoint(map(str, names or [])) and sorted(places) == sorted(str(key) for key, _ in found):
        return [(int(key), score) for key, score in found]  # of Google, which has the ids of the request
    return found


def _items(response: Any) -> list[Any]:
    """The list of results in a response."""
    found, keys = response, ""
    if isinstance(response, Mapping):
        found = next((response[name] for name in (*LISTS, *SCORE_LISTS) if name in response), None)
        if found is None and isinstance(response.get("response"), list):  # Cloudflare calls the index an id
            found = [{**one, "index": one.get("id")} for one in response["response"] if isinstance(one, Mapping)]
        if not isinstance(found, list) and (text := _text(response)):
            raise _no_logprobs(text)
        error = find_error(response)
        keys = f"{f': {error!r}' if error else ''}? It has: {', '.join(map(repr, response))}. "
    if not isinstance(found, list):
        raise ValueError(f"the response has no list of results; is it an error message{keys or '? '}Ask again.")
    return found


def _scores_of_answers(items: list[Any]) -> list[Any]:
    answers = [_read_answers(one) for one in items]
    if any(len(one) > 1 for one in answers):
        raise ValueError("a response has several answers, in a list of responses. Give one for each document.")
    return [score for one in answers for score in one.values()]


def _is_answer(response: Any) -> bool:
    """Whether this is the answer of a language model, or a number that one wrote."""
    return is_generation(response) or _written_score(response) is not None


def _read_answers(response: Any) -> dict[int, Any]:
    """The scores of the answers in a response, by the number of their prompt: log-odds, or the number in the text."""
    written = _written_score(response)
    try:
        answers = find_answers(response) if is_generation(response) else {}
    except ValueError:
        if written is None:
            raise
        answers = {}
    return {i: log_odds(one.logprobs, one.token, is_top=True) for i, one in answers.items()} or {0: written}


def _written_score(response: Any) -> Any:
    """A response that is a number, also as text or as ``{"score": number}`` in it; None for others."""
    is_result = isinstance(response, Mapping) and not {*INDEXES, *SCORES, "label", "text"}.isdisjoint(response)
    text = _text(response) if isinstance(response, Mapping) and not is_result else response
    number = parse_number(_only_score(_parse_text(text) if isinstance(text, str) else text))
    return number if is_score(number) else None


def _only_score(value: Any) -> Any:
    """The number in ``{"score": number}``, perhaps with its reason; other values unchanged."""
    names = [name for name in SCORES if name in value] if isinstance(value, Mapping) else []
    if len(names) != 1 or not {*value}.isdisjoint((*INDEXES, *ID_NAMES, "label")):
        return value
    is_alone = all(isinstance(one, str) for name, one in value.items() if name != names[0])
    return value[names[0]] if is_alone else value


def _parse_text(text: str) -> Any:
    """The JSON in a text, which may stand in a block of Markdown; the text itself if it is none."""
    with suppress(ValueError, RecursionError):
        return json.loads(FENCE.sub("", text))
    return text


def _is_text(item: Any) -> bool:
    """Whether this is a text that a model generated, and no result with a score."""
    is_scored = isinstance(item, Mapping) and any(name in item for name in (*INDEXES, *SCORES, "label"))
    return isinstance(item, Mapping) and not is_scored and _text(item) is not None


def _no_logprobs(text: str) -> ValueError:
    return ValueError(
        f"the response is a text, {text[:40]!r}, without the log-probabilities of which the score is made. Ask for "
        "them (logprobs=True, top_logprobs=20); where there are none, ask for a number or an order, [2] > [1]."
    )


def _check_count(n: int, names: list[Any] | None) -> None:
    if names is not None and n != len(names):
        raise ValueError(f"{n} answers for {len(names)} doc_ids. Give one for each, in order.")


def _read_item(item: Any, names: list[Any] | None) -> tuple[Any, Any]:
    """The index or the id of a result, and its score."""
    if not isinstance(item, Mapping):
        raise ValueError(NO_INDEX)
    index = next((item[name] for name in INDEXES if name in item), None)
    doc = find_id({name: one for name, one in item.items() if name not in (*INDEXES, "doc")})
    if isinstance(index, str) and "index" not in item:
        index, doc = None, index
    if doc is not None and (index is None or names is None):
        return str(doc), _score(item)
    if not isinstance(index, int) or isinstance(index, bool) or index < 0:
        raise ValueError(NO_INDEX)
    if names is not None and index < len(names) and str(doc) in {*map(str, names)} - {str(names[index])}:
        raise ValueError(f"a result has index {index} and the id {doc!r}, but doc_ids has {names[index]!r} there.")
    return index, _score(item)


def _scores_of_likeliest(items: list[Any]) -> list[Any]:
    """The scores of a pipeline that gives the likeliest class alone, if there is only one class."""
    is_one = len({item["label"] for item in items}) == 1
    if not is_one or not any(is_score(item["score"]) and item["score"] < MIN_LIKELIEST for item in items):
        raise ValueError(
            "a result has no index, and the likeliest class alone does not say how relevant a document is. Ask for all "
            "classes: top_k=None."
        )
    return [_score_of_classes([item]) for item in items]


def _score(item: Mapping[str, Any]) -> Any:
    if "logprobs" in item:
        return log_odds(item["logprobs"])
    for name in SCORES:
        if name in item:
            return parse_number(item[name])
    if "probs" in item:
        return _score_of_probabilities(item)
    if item.get("object") == "pooling" and "data" in item:
        return _score_of_pooling(item["data"])
    raise ValueError(
        f"a result has neither {', '.join(SCORES[:2])} nor logprobs. It has: {', '.join(map(repr, item))}."
    )


def _score_of_pooling(data: Any) -> float:
    try:
        return read_number(data[0] if isinstance(data, list) and len(data) == 1 else data)
    except TypeError:
        raise ValueError(
            "a result does not hold a single number: a pooled vector is not a score. Serve the model as a classifier, "
            "and ask for floats (encoding_format)."
        ) from None


def _score_of_probabilities(item: Mapping[str, Any]) -> float:
    """The probability of the only class, or the log-odds of two classes, of which `label` is the likelier one."""
    try:
        values = [read_number(value) for value in item["probs"]]
    except TypeError:
        raise ValueError(f"probs must be a list of numbers, not {item['probs']!r}.") from None
    label = str(item.get("label")).lower()
    if len(values) == 1:
        return _score_of_classes([{"label": label, "score": values[0]}])
    if len(values) != 2 or label not in (*POSITIVE, *NEGATIVE):
        raise ValueError(
            f"{len(values)} classes, and the label {item.get('label')!r} does not say which is relevant. Serve a model "
            "with one class, or with the labels yes and no, or LABEL_1 and LABEL_0."
        )
    other = (NEGATIVE if label in POSITIVE else POSITIVE)[0]
    return _score_of_classes([{"label": label, "score": max(values)}, {"label": other, "score": min(values)}])


def _score_of_classes(classes: list[Any]) -> float:
    """The score of the only class, which is LABEL_0 if it has no name, or the log-odds of two, each with its label."""
    if len(classes) == 1 and is_score(classes[0]):  # a matrix of logits
        return classes[0]
    try:
        found = {str(one["label"]).lower(): read_number(one["score"]) for one in classes}
    except (TypeError, KeyError):
        raise ValueError('expected for each document a number or [{"label": …, "score": …}, …].') from None
    if len(found) == len(classes) == 1 and not {*found} & {*NEGATIVE} - {UNNAMED}:
        return next(iter(found.values()))
    positive, negative = ([label for label in found if label in known] for known in (POSITIVE, NEGATIVE))
    if len(found) != 2 or not positive or not negative:
        raise ValueError(f"the labels {', '.join(map(repr, found))} do not say which is relevant.")
    yes, no = (log(one) if one > 0 else -inf for one in (found[positive[0]], found[negative[0]]))
    return yes - no


# -- listwise -----------------------------------------------------------------------------------------------------


def _read_order(cls: type[Table], response: Any, names: list[Any] | None) -> Pairs | None:
    """The order that a listwise reranker gave, with −rank."""
    text = _text(response) if isinstance(response, Mapping) else response
    for one in (response, _parse_text(text) if isinstance(text, str) else None):
        order = next((one[name] for name in ORDERS if name in one), None) if isinstance(one, Mapping) else None
        if isinstance(order, list):
            return _rank(order, names)
        if (
            isinstance(one, list)
            and all(isinstance(doc, str) for doc in one)
            and sorted(one) == sorted(map(str, names or []))
        ):
            return [(doc, -float(rank)) for rank, doc in enumerate(one, 1)]
    is_order = isinstance(text, str) and (MARK.search(text) or PLAIN_CHAIN.fullmatch(text))
    return _rank(_find_places(text), names) if is_order else None


def _text(response: Mapping[str, Any]) -> Any:
    """The text that a model generated, None if there is none."""
    choices, message = response.get("choices"), response.get("message")
    if isinstance(choices, list) and len(choices) == 1 and isinstance(choices[0], Mapping):
        message = choices[0].get("message")
        found = message.get("content") if isinstance(message, Mapping) else choices[0].get("text")
    elif isinstance(message, Mapping):  # Ollama
        found = message.get("content")
    else:
        found = next((response[name] for name in TEXT_KEYS if name in response), None)
    output = response.get("output")
    if found is None and isinstance(output, list):  # OpenAI's Responses
        messages = [one for one in output if isinstance(one, Mapping) and one.get("type") == "message"]
        found = messages[-1].get("content") if messages else None
    candidates = response.get("candidates")
    if found is None and isinstance(candidates, list) and len(candidates) == 1 and isinstance(candidates[0], Mapping):
        content = candidates[0].get("content")  # Gemini
        found = content.get("parts") if isinstance(content, Mapping) else None
    if isinstance(found, list):  # Anthropic
        found = "".join(str(one.get("text", "")) for one in found if isinstance(one, Mapping))
    return found if isinstance(found, str) and found else None


def _find_places(text: str) -> list[int]:
    """The places in an order that was written as text."""
    order = text.rpartition("</think>")[2]
    if "<think>" in order:
        raise ValueError("the model was cut while it was thinking. Allow it more tokens.")
    if PLAIN_CHAIN.fullmatch(order):
        order = re.sub(r"\d+", r"[\g<0>]", order)
    chains, marks = CHAIN.findall(order), MARK.findall(order)
    if len(chains) != 1 or len(MARK.findall(chains[0])) != len(marks):
        raise ValueError(f"expected one order such as [2] > [1] > [3], not {order[:60]!r}.")
    return [int(mark) if mark.isdigit() else ord(mark) - ord("A") + 1 for mark in marks]


def _rank(places: list[Any], names: list[Any] | None) -> list[tuple[int, float]]:
    """The places of the documents in their order, with −rank."""
    n = len(places) if names is None else len(names)
    if not _is_permutation(places) or len(places) != n:
        raise ValueError(
            f"the order has {len(places)} of {n} documents, or one of them twice: {places!r}. Give the order of all, "
            "or only the doc_ids that were ranked."
        )
    first = min(places)
    ids, docs = [*map(str, places)], [str(place) if names is None else str(names[place - first]) for place in places]
    if ids != docs and {*ids} == {*docs}:
        shown = " > ".join(ids)[:60]
        raise ValueError(
            f"the order '{shown}' may be of doc_ids or of places. Give a list of doc_ids as text, best first, "
            'or places from 0: {"order": […]}.'
        )
    return [(place - first, -float(rank)) for rank, place in enumerate(places, 1)]


def _is_permutation(places: list[Any]) -> bool:
    """Whether these are the whole numbers from 0 or 1 on, each once, and at least two of them."""
    if len(places) < 2 or not all(isinstance(one, int) and not isinstance(one, bool) for one in places):
        return False
    return sorted(places) in ([*range(len(places))], [*range(1, len(places) + 1)])


#: What reads a response: the first one that gives its scores.
READERS = (_read_order, _read_search, _read_answer, _read_parts, _read_list)
#: Lists with an item for each document, in the order of the request: how one is recognised, and what reads all.
IN_ORDER: tuple[tuple[Callable[[Any], bool], Callable[[list[Any]], list[Any]]], ...] = (
    (lambda one: isinstance(one, Mapping) and {*SCORES}.isdisjoint(one) and _is_answer(one), _scores_of_answers),
    (lambda one: isinstance(one, (float, int)) and not isinstance(one, bool), list),
    (lambda one: isinstance(one, list), lambda items: [_score_of_classes(one) for one in items]),
    (lambda one: isinstance(one, Mapping) and {*one} == {"label", "score"}, _scores_of_likeliest),
)
