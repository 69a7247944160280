"""Random runs and judgments for tests against other packages: ties, float32-only ties, graded and negative labels,
missing, unjudged and empty queries, UTF-8 ids."""

from __future__ import annotations

import random
from itertools import permutations, product

NAMES = ["a", "a1", "Z", "9", "10", "é", "ß", "日本", "ー", "z", "doc", "Doc", "d-1", "d_1", "0", "𝄞"]
NAMES += ["q", "w", "e", "r"]

Table = dict[str, dict[str, float]]


def scores(rng: random.Random, kind: str, n: int) -> list[float]:
    if kind == "tied":
        return [rng.randrange(4) / 4 for _ in range(n)]
    if kind == "float32":  # apart as float64, often equal as float32
        return [rng.randrange(3) / 8 + rng.randrange(3) * 1e-9 + 0.1 for _ in range(n)]
    return [rng.gauss(0, 1) for _ in range(n)]


def draw(seed: int, *, queries: int = 12, negative: bool = True) -> tuple[dict[str, dict[str, int]], Table]:
    """Judgments and a run. No query has only negative labels: pytrec_eval may die of that."""
    rng = random.Random(seed)
    qrels: dict[str, dict[str, int]] = {}
    run: Table = {}
    for place in rng.sample(range(queries), queries):
        query = f"q{place}" if place % 3 else f"ä{place}"
        docs = rng.sample(NAMES, rng.randint(1, len(NAMES)))
        if rng.random() < 0.9:
            labels = [0, 0, 1, 1, 2, 3, 4] + ([-1, -2] if negative else [])
            judged = {doc: rng.choice(labels) for doc in rng.sample(NAMES, rng.randint(1, 12))}
            if max(judged.values()) >= 0:
                qrels[query] = judged
        if rng.random() < 0.9:
            kind = rng.choice(["tied", "float32", "untied"])
            run[query] = dict(zip(docs, scores(rng, kind, len(docs)), strict=True))
    return qrels, run


def orders(ranking: dict[str, float]) -> list[dict[str, float]]:
    """The ranking without ties, once for every order of its tied documents."""
    groups = [[d for d, s in ranking.items() if s == value] for value in sorted(set(ranking.values()), reverse=True)]
    listings = product(*(list(permutations(group)) for group in groups))
    return [
        {doc: -float(place) for place, doc in enumerate(doc for group in listing for doc in group)}
        for listing in listings
    ]
