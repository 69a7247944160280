"""A low-precision search as the first stage of a reranker: what it hands on depends on how it orders ties."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tiewise as tw
from experiments.low_precision import MEASURE, Experiment, Judged, cranfield, minilm_cranfield, static_vectors

DEPTHS = (10, 200)  # how many documents are handed on
PHI = 0.9
DRAWS = 10  # random orders of the documents that tie at the depth, for the mean after reranking
#: Rows of `tw.rows.vectors`, by how the table calls them.
FORMATS = {"float32": "float32", "bfloat16": "bfloat16/bfloat16", "float8": "float8/float8", "1 bit": "binary"}


def first_stages(folder: Path) -> list[tuple[str, ...]]:
    """The lines of a table: the static model as the first stage, MiniLM in float32 as the reranker, over Cranfield.

    Ranges are over what the first stage may hand on: which documents of the tie group that the depth cuts. The
    reranker's own scores do not tie.
    """
    from torch.nn.functional import normalize

    texts, reranker = cranfield(folder), minilm_cranfield(folder)
    second = reranker.run("float32")
    ids = {"query_ids": list(texts.queries), "doc_ids": list(texts.docs)}
    vectors = (normalize(part, dim=1) for part in static_vectors(texts))
    rows = tw.rows.vectors(*vectors, FORMATS.values(), fn="dot", **ids, depth=len(texts.docs))
    first = Experiment("static", reranker.qrels, {name: rows[notation] for name, notation in FORMATS.items()})
    runs = {name: first.run(name) for name in first.rows}
    lines = []
    for one in tw.stages(second, runs, depths=DEPTHS, phi=PHI).table():
        depth = one["depth"]
        handed = HandedOn(runs[one["system"]], second, reranker.qrels, depth)
        lines.append(
            (
                f"{one['system']}, {depth}",
                format_range(one["rbr_lower"], one["rbr_minimum"], one["rbr_maximum"], 3),
                format_range(*(100 * value for value in (handed.mean(), handed.least(), handed.most())), 2),
            )
        )
    return lines


def format_range(value: float, least: float, most: float, digits: int) -> str:
    """A value, and in brackets the least and the most it may be, where these can be told apart."""
    shown = [f"{number:.{digits}f}" for number in (value, least, most)]
    return shown[0] if shown[1] == shown[2] else f"{shown[0]} [{shown[1]}, {shown[2]}]"


class HandedOn:
    """What a first stage hands on to a depth, and the measure of what the reranker makes of it.

    Documents above the tie group that the depth cuts are handed on for sure; of the group, as many as there is room
    for. With labels of 0 and 1, the best choice is relevant documents, those first that the reranker scores highest,
    and then others, those first that it scores lowest; the worst choice is the other way round.
    """

    def __init__(self, first: tw.Run, second: tw.Run, judged: Judged, depth: int, measure: str = MEASURE):
        self._judged, self._scores, self._measure = judged, second.to_dict(), measure
        self._cut = {query: cut_at(docs, depth) for query, docs in first.to_dict().items()}

    def most(self) -> float:
        """The highest value."""
        return self._value(lambda label, score: (-label, -score if label else score))

    def least(self) -> float:
        """The lowest."""
        return self._value(lambda label, score: (label, score if label else -score))

    def mean(self) -> float:
        """The mean of some random choices."""
        chance = random.Random(2025)
        return sum(self._value(lambda label, score: chance.random()) for _ in range(DRAWS)) / DRAWS

    def _value(self, order: Callable[[float, float], Any]) -> float:
        lists = {}
        for query, (sure, group, room) in self._cut.items():
            labels, scores = self._judged.get(query, {}), self._scores[query]
            keys = {doc: order(labels.get(doc, 0.0), scores[doc]) for doc in group}
            chosen = sorted(group, key=keys.__getitem__)[:room]
            lists[query] = {doc: scores[doc] for doc in (*sure, *chosen)}
        value = tw.evaluate(self._judged, lists, self._measure, complete=True)[self._measure].expected
        assert value is not None
        return value


def cut_at(docs: dict[str, float], depth: int) -> tuple[list[str], list[str], int]:
    """The documents above the tie group that a depth cuts, that group, and how many of it there is room for.

    >>> cut_at({"a": 3.0, "b": 2.0, "c": 2.0, "d": 1.0}, 2)
    (['a'], ['b', 'c'], 1)
    """
    last = sorted(docs.values(), reverse=True)[min(depth, len(docs)) - 1]
    sure = [doc for doc, score in docs.items() if score > last]
    return sure, [doc for doc, score in docs.items() if score == last], depth - len(sure)
