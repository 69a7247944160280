"""Quantised vectors over a whole collection: formats, score functions and rescoring, and such a search as first stage.

The collection is Cranfield, whose vectors by all-MiniLM-L6-v2 in float32 are scaled to unit length, so that dot product
and cosine agree before anything is rounded. What is scored in the quantised domain is given again with a float query,
and with its first documents rescored by the original vectors.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tiewise as tw
from experiments.encoders import Static
from experiments.saved import cranfield_ids, cranfield_qrels, cranfield_texts, cranfield_vectors, needed
from experiments.scored import Judged, markdown, measured, optional, row, spread, values_of
from tiewise import scoring

DEPTHS = (10, 50, 200)  # to which documents are rescored


@dataclass(frozen=True)
class Format:
    """How vectors are kept and scored; `kind` is a floating-point type of torch, or one of `scoring.quantize`."""

    bits: int  # of a dimension
    kind: str
    functions: tuple[str, ...] = ("dot", "cosine")

    @property
    def coded(self) -> bool:
        return self.kind in ("int8", "int4", "binary")

    def kept(self, queries: Any, documents: Any) -> tuple[Any, Any]:
        """Both sides in this format; the range of codes is that of the documents."""
        if not self.coded:
            dtype = getattr(needed("torch"), self.kind)
            return queries.to(dtype), documents.to(dtype)
        codes = scoring.quantize(documents, self.kind)  # type: ignore[arg-type]
        return scoring.quantize(queries, self.kind, calibration=codes), codes  # type: ignore[arg-type]


FORMATS = {
    "float32": Format(32, "float32"),
    "bfloat16": Format(16, "bfloat16"),
    "float8 e4m3": Format(8, "float8_e4m3fn"),
    "int8": Format(8, "int8"),
    "int4": Format(4, "int4"),
    "1 bit": Format(1, "binary", ("hamming", "cosine")),
}


@dataclass(frozen=True, eq=False)
class Collection:
    """Unit vectors of queries and documents in float32, and the judgments."""

    queries: Any
    documents: Any
    judged: Judged
    ids: dict[str, list[str]]

    @classmethod
    def cranfield(cls, folder: Path) -> Collection:
        """Cranfield by MiniLM."""
        queries, documents = (unit(vectors) for vectors in cranfield_vectors(folder, "fp32"))
        return cls(queries, documents, cranfield_qrels(folder), cranfield_ids(len(queries), len(documents)))

    def search(self, queries: Any, documents: Any, fn: str, precision: str = "native") -> tw.Run:
        """All documents in the order of their scores; in the operands' own precision unless told otherwise."""
        return scoring.search(queries, documents, len(self.ids["doc_ids"]), fn=fn, precision=precision, **self.ids)


def unit(vectors: Any) -> Any:
    return needed("torch").nn.functional.normalize(vectors.float(), dim=1)


def quantised_table(data: Collection, measure: str) -> str:
    """Format × score function: on the codes alone, with a float query, and rescored to some depths."""
    exact = data.search(data.queries, data.documents, "dot")
    lines = []
    for name, format_ in FORMATS.items():
        queries, documents = format_.kept(data.queries, data.documents)
        for fn in format_.functions:
            run = data.search(queries, documents, fn)
            own = row(data.judged, run, exact, measure)
            float_query = float_queried(data, format_, documents, fn)
            rescored = [scoring.rescore(run, data.queries, data.documents, depth=depth, **data.ids) for depth in DEPTHS]
            others = [row(data.judged, one, None, measure) for one in (float_query, *rescored)]
            size = f"{format_.bits * data.documents.shape[1] // 8:,}"
            lines.append(
                (
                    f"{name} · {fn}",
                    size,
                    f"{own.tied:.1f}",
                    values_of(own),
                    optional(own.rbo, ".3f"),
                    *map(values_of, others),
                )
            )
    heads = (
        "format · score",
        "bytes",
        "tied %",
        "as it is",
        "RBO to fp32",
        "float query",
        *(f"rescored {d}" for d in DEPTHS),
    )
    return markdown(heads, lines)


def float_queried(data: Collection, format_: Format, documents: Any, fn: str) -> tw.Run:
    """The original queries against the documents as they are kept, multiplied in float32."""
    other = documents if format_.coded else documents.float()
    return data.search(data.queries, other, "cosine" if fn == "hamming" else fn, "float32")


# -- a low-precision first stage under a reranker ----------------------------------------------------------------------

PHI = 0.9
DRAWS = 10  # random orders of the documents that tie at the depth, for the mean after reranking


def first_stages(folder: Path, measure: str) -> str:
    """The static model in some formats as the first stage, MiniLM in float32 as the reranker, over Cranfield.

    Ranges are over what the first stage may hand on: which documents of the tie group that the depth cuts. The
    reranker's own scores do not tie.
    """
    rerank = Collection.cranfield(folder)
    second = rerank.search(rerank.queries, rerank.documents, "dot")
    firsts = static_stages(folder, rerank)
    lines = []
    for one in tw.stages(second, firsts, depths=DEPTHS, phi=PHI, k=10).table():
        first, depth = firsts[one["system"]], one["depth"]
        sets = Handed(first, second, rerank.judged, depth)
        lines.append(
            (
                f"{one['system']}, {depth}",
                f"{100 * first.tied_share:.1f}",
                spread(one["rbr_lower"], one["rbr_minimum"], one["rbr_maximum"], 3),
                f"{one['recall']:.3f}",
                spread(sets.mean(measure), sets.least(measure), sets.most(measure)),
            )
        )
    heads = ("first stage, depth", "tied %", f"RBR (φ = {PHI:g})", "recall of the reranker's 10", "after reranking")
    return markdown(heads, lines)


def static_stages(folder: Path, like: Collection) -> dict[str, tw.Run]:
    """The static model's rankings of all documents, its vectors kept in some formats."""
    model, texts = Static(), cranfield_texts(folder)
    queries, documents = (unit(model.vectors(list(part.values()), "float32")) for part in texts)
    return {
        name: like.search(*format_.kept(queries, documents), format_.functions[0]) for name, format_ in FORMATS.items()
    }


class Handed:
    """What a first stage hands on to a depth, and what the reranker makes of it.

    Documents above the tie group that the depth cuts are handed on for sure; of the group, as many as there is room
    for. With labels of 0 and 1, the best choice is relevant documents, those first that the reranker scores highest,
    and then others, those first that it scores lowest; the worst choice is the other way round.
    """

    def __init__(self, first: tw.Run, second: tw.Run, judged: Judged, depth: int):
        self._judged, self._scores = judged, second.to_dict()
        self._cut = {query: cut_at(docs, depth) for query, docs in first.to_dict().items()}

    def most(self, measure: str) -> float:
        """The highest value."""
        return self._value(measure, lambda label, score: (-label, -score if label else score))

    def least(self, measure: str) -> float:
        """The lowest."""
        return self._value(measure, lambda label, score: (label, score if label else -score))

    def mean(self, measure: str) -> float:
        """The mean of some random choices."""
        chance = random.Random(2025)
        drawn = [self._value(measure, lambda label, score: chance.random()) for _ in range(DRAWS)]
        return sum(drawn) / len(drawn)

    def _value(self, measure: str, order: Callable[[float, float], Any]) -> float:
        lists = {}
        for query, (sure, group, room) in self._cut.items():
            labels, scores = self._judged.get(query, {}), self._scores[query]
            keys = {doc: order(labels.get(doc, 0.0), scores[doc]) for doc in group}
            chosen = sorted(group, key=keys.__getitem__)[:room]
            lists[query] = {doc: scores[doc] for doc in (*sure, *chosen)}
        value = measured(self._judged, tw.Run.from_dict(lists), measure)[measure].expected
        assert value is not None
        return 100 * value


def cut_at(docs: dict[str, float], depth: int) -> tuple[list[str], list[str], int]:
    """The documents above the tie group that a depth cuts, that group, and how many of it there is room for.

    >>> cut_at({"a": 3.0, "b": 2.0, "c": 2.0, "d": 1.0}, 2)
    (['a'], ['b', 'c'], 1)
    """
    last = sorted(docs.values(), reverse=True)[min(depth, len(docs)) - 1]
    sure = [doc for doc, score in docs.items() if score > last]
    return sure, [doc for doc, score in docs.items() if score == last], depth - len(sure)
