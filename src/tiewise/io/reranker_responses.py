"""Responses of rerankers behind an API, one JSON object on each line, as a run.

A line has the id of the query, the ids of the documents in the order of the request, and the response as it came:

    {"query_id": "q1", "doc_ids": ["d7", "d2"], "response": {"results": [{"index": 1, "relevance_score": 0.98}, …]}}

Cohere, Jina, Voyage and vLLM answer with ``results`` or ``data``, text-embeddings-inference (TEI) with a list. Log-
probabilities of yes and no become log-odds: their difference does not level off, as the probability of yes does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import inf
from typing import Any

import numpy as np

EXPECTED = '{"query_id": …, "doc_ids": […], "response": {"results": [{"index": …, "relevance_score": …}, …]}}'
LISTS = ("results", "data")
SCORES = ("relevance_score", "score")


def is_response(document: Any) -> bool:
    """Whether a JSON value is a line of responses."""
    return isinstance(document, Mapping) and "query_id" in document and "response" in document


def read_response(line: Any) -> tuple[Any, dict[Any, Any]]:
    """The query of a line, and the score of each document. A ValueError says what is wrong.

    >>> read_response({"query_id": "q", "doc_ids": ["a", "b"], "response": [{"index": 1, "score": 0.9}]})
    ('q', {'b': 0.9})
    >>> item = {"index": 0, "logprobs": {"Yes": -0.5, "No": -1.5}}
    >>> read_response({"query_id": "q", "response": {"data": [item]}})
    ('q', {'0': 1.0})
    """
    if not is_response(line):
        raise ValueError(f"expected {EXPECTED}.")
    docs, names = {}, line.get("doc_ids")
    if names is not None and not isinstance(names, list):
        raise ValueError(f"doc_ids must be a list with the id of each document, not {names!r}.")
    for item in _items(line["response"]):
        index = item.get("index") if isinstance(item, Mapping) else None
        if not isinstance(index, int) or isinstance(index, bool) or index < 0:
            raise ValueError("a result has no index, the number of its document in the request, counted from 0.")
        if names is not None and index >= len(names):
            raise ValueError(f"a result has index {index}, but there are {len(names)} doc_ids. Give all, in order.")
        doc = str(index) if names is None else names[index]
        if doc in docs:
            raise ValueError(f"document {doc!r} appears twice. Keep one.")
        docs[doc] = _score(item)
    return line["query_id"], docs


def _items(response: Any) -> list[Any]:
    """The results of a response."""
    if isinstance(response, Mapping):
        response = next((response[name] for name in LISTS if name in response), response)
    if not isinstance(response, list):
        keys = f" It has: {', '.join(map(repr, response))}." if isinstance(response, Mapping) else ""
        raise ValueError(f"the response has no list of results; is it an error message?{keys} Ask again.")
    return response


def _score(item: Mapping[str, Any]) -> Any:
    if "logprobs" in item:
        return _log_odds(item["logprobs"])
    for name in SCORES:
        if name in item:
            return item[name]
    raise ValueError(f"a result has neither {', '.join(SCORES)} nor logprobs. It has: {', '.join(map(repr, item))}.")


def _log_odds(logprobs: Any) -> float:
    """log P(yes) - log P(no); spellings of a word add up."""
    found = {"yes": -inf, "no": -inf}
    for token, value in _tokens(logprobs):
        word = token.strip().lower()
        if word in found:
            found[word] = float(np.logaddexp(found[word], value))
    missing = [word for word, value in found.items() if value == -inf]
    if missing:
        raise ValueError(
            f"the logprobs have no '{missing[0]}'. Ask for more of them (top_logprobs), or restrict the answer to yes "
            "and no."
        )
    return found["yes"] - found["no"]


def _tokens(logprobs: Any) -> Iterator[tuple[str, float]]:
    """Tokens with their log-probabilities, from ``{token: logprob}`` or ``[{"token": …, "logprob": …}, …]``."""
    try:
        pairs = (
            logprobs.items() if isinstance(logprobs, Mapping) else [(one["token"], one["logprob"]) for one in logprobs]
        )
        yield from [(str(token), _number(value)) for token, value in pairs]
    except (KeyError, TypeError, ValueError, OverflowError):
        raise ValueError('logprobs must be {"yes": number, "no": number}, or a list of tokens.') from None


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError
    return float(value)
