"""Diversity measures again, naively: definitions on one ordered list, and all orders of the ties tried.

Nothing is imported from `src`. A document is a dictionary with its label for each subtopic, empty if it was not judged.
`ranked` holds documents in rank order, `unretrieved` the judged documents outside the list. Documents have ids, because
the ideal list depends on them.

>>> a, b = Document("a", {"x": 1}), Document("b", {"x": 1, "y": 1})
>>> value("STREC", [a, b], [], 1), value("STREC", [b, a], [], 1)
(0.5, 1.0)
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from oracle import Statistics

__all__ = ["MEASURES", "Document", "estimate", "orders", "value"]


class Document(NamedTuple):
    id: str
    labels: dict[str, float]


Documents = Sequence[Document]


def relevant_for(document: Document, rel: float) -> set[str]:
    return {subtopic for subtopic, label in document.labels.items() if label >= rel and label >= 0}


def known_subtopics(ranked: Documents, unretrieved: Documents, rel: float) -> set[str]:
    """The subtopics with a relevant document."""
    return set().union(*(relevant_for(document, rel) for document in [*ranked, *unretrieved]))


def gains(ranked: Documents, alpha: float, rel: float) -> list[float]:
    """What each document gains: the more documents above have its subtopics, the less."""
    seen: dict[str, int] = {}
    found = []
    for document in ranked:
        subtopics = relevant_for(document, rel)
        found.append(math.fsum((1 - alpha) ** seen.get(subtopic, 0) for subtopic in subtopics))
        for subtopic in subtopics:
            seen[subtopic] = seen.get(subtopic, 0) + 1
    return found


def ideal(documents: Documents, alpha: float, rel: float) -> list[Document]:
    """ndeval's ideal list: always the document that gains most, of several that with the last id."""
    chosen: list[Document] = []
    left = sorted((one for one in documents if relevant_for(one, rel)), key=lambda one: one.id, reverse=True)
    while left:
        gained = [round(gains([*chosen, one], alpha, rel)[-1], 12) for one in left]
        chosen.append(left.pop(gained.index(max(gained))))
    return chosen


def discounted(ranked, k, alpha, rel, discount):
    return math.fsum(gain * discount(rank) for rank, gain in enumerate(gains(ranked, alpha, rel)[:k], start=1))


def log2(rank):
    return 1 / math.log2(rank + 1)


def reciprocal(rank):
    return 1 / rank


def over_full_list(ranked, unretrieved, k, alpha, rel, discount):
    """Over the sum of a list whose documents are relevant for all subtopics."""
    n = len(known_subtopics(ranked, unretrieved, rel))
    depth = len(ranked) if k is None else k
    full = n * math.fsum((1 - alpha) ** (rank - 1) * discount(rank) for rank in range(1, depth + 1))
    return discounted(ranked, k, alpha, rel, discount) / full if full else 0.0


def over_ideal(ranked, unretrieved, k, alpha, rel, discount):
    best = discounted(ideal([*ranked, *unretrieved], alpha, rel), k, alpha, rel, discount)
    return discounted(ranked, k, alpha, rel, discount) / best if best else 0.0


def alpha_dcg(ranked, unretrieved, k, *, alpha=0.5, rel=1):
    return over_full_list(ranked, unretrieved, k, alpha, rel, log2)


def alpha_ndcg(ranked, unretrieved, k, *, alpha=0.5, rel=1):
    return over_ideal(ranked, unretrieved, k, alpha, rel, log2)


def err_ia(ranked, unretrieved, k, *, alpha=0.5, rel=1):
    return over_full_list(ranked, unretrieved, k, alpha, rel, reciprocal)


def nerr_ia(ranked, unretrieved, k, *, alpha=0.5, rel=1):
    return over_ideal(ranked, unretrieved, k, alpha, rel, reciprocal)


def nrbp(ranked, unretrieved, k, *, alpha=0.5, beta=0.5, rel=1):
    n = len(known_subtopics(ranked, unretrieved, rel))
    total = discounted(ranked, None, alpha, rel, lambda rank: beta ** (rank - 1))
    return total * (1 - (1 - alpha) * beta) / n if n else 0.0


def nnrbp(ranked, unretrieved, k, *, alpha=0.5, beta=0.5, rel=1):
    return over_ideal(ranked, unretrieved, None, alpha, rel, lambda rank: beta ** (rank - 1))


def mean_over_subtopics(ranked, unretrieved, rel, measure):
    subtopics = known_subtopics(ranked, unretrieved, rel)
    if not subtopics:
        return 0.0
    hits = {s: [s in relevant_for(document, rel) for document in ranked] for s in subtopics}
    totals = {s: sum(s in relevant_for(document, rel) for document in [*ranked, *unretrieved]) for s in subtopics}
    return math.fsum(measure(hits[s], totals[s]) for s in subtopics) / len(subtopics)


def ap_ia(ranked, unretrieved, k, *, rel=1):
    def average_precision(hits, total):
        return math.fsum(sum(hits[:rank]) / rank for rank, hit in enumerate(hits, start=1) if hit) / total

    return mean_over_subtopics(ranked, unretrieved, rel, average_precision)


def p_ia(ranked, unretrieved, k, *, rel=1):
    depth = len(ranked) if k is None else k
    return mean_over_subtopics(ranked, unretrieved, rel, lambda hits, _: sum(hits[:k]) / depth if depth else 0.0)


def strec(ranked, unretrieved, k, *, rel=1):
    return mean_over_subtopics(ranked, unretrieved, rel, lambda hits, _: float(any(hits[:k])))


# NRBP, nNRBP and AP_IA have no cutoff and ignore k.
MEASURES: dict[str, Callable[..., float]] = {
    "alpha_DCG": alpha_dcg,
    "alpha_nDCG": alpha_ndcg,
    "ERR_IA": err_ia,
    "nERR_IA": nerr_ia,
    "NRBP": nrbp,
    "nNRBP": nnrbp,
    "AP_IA": ap_ia,
    "P_IA": p_ia,
    "STREC": strec,
}


def value(name: str, ranked: Documents, unretrieved: Documents = (), k: int | None = None, **params) -> float:
    """The measure on one fully ordered list."""
    return MEASURES[name](list(ranked), list(unretrieved), k, **params)


def orders(scores: Sequence[float], documents: Documents) -> Iterator[list[Document]]:
    """Every order that the ties allow, each equally likely; the first is the given one."""
    by_score = sorted(zip(scores, documents, strict=True), key=lambda row: row[0], reverse=True)  # stable
    groups = [[one for _, one in rows] for _, rows in itertools.groupby(by_score, key=lambda row: row[0])]
    for arranged in itertools.product(*map(itertools.permutations, groups)):
        yield list(itertools.chain.from_iterable(arranged))


def estimate(
    name: str,
    scores: Sequence[float],
    documents: Documents,
    unretrieved: Documents = (),
    k: int | None = None,
    **params,
) -> Statistics:
    """The measure's statistics over every order of the tied documents."""
    values = [value(name, ranked, unretrieved, k, **params) for ranked in orders(scores, documents)]
    mean = math.fsum(values) / len(values)
    variance = math.fsum((v - mean) ** 2 for v in values) / len(values)
    return Statistics(mean, min(values), max(values), math.sqrt(variance), values[0])
