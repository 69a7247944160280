"""Twelve collections, each with one thing that tools treat differently: the shapes of trec_eval's own test data."""

from __future__ import annotations

import random

Judgments = dict[str, dict[str, float]]
Lists = dict[str, dict[str, float]]

KINDS = (
    "graded", "binary", "negative", "sparse", "missing", "short",
    "norel", "fractional", "self", "long", "runonly", "utf8",
)  # fmt: skip


def make_collection(kind: str) -> tuple[Judgments, Lists]:
    """Judgments and a run of twelve queries; no query has negative labels alone, of which pytrec_eval may die."""
    draw = random.Random(f"twelve {kind}")
    letters = "éß日ー𝄞" if kind == "utf8" else "abXYZ"
    docs = [f"{draw.choice(letters)}{place}" for place in range(60)]
    labels: list[float] = {
        "binary": [0, 0, 1],
        "negative": [-2, -1, 0, 1, 2],
        "fractional": [0, 0.4, 0.6, 1, 1.5, 2.7],
    }.get(kind, [0, 0, 0, 1, 2, 3])
    steps = {"long": 1e-9, "binary": 0.25}.get(kind, 0.125)
    judged, size = {"sparse": 3}.get(kind, 20), {"short": 4, "long": 60}.get(kind, 40)
    qrels: Judgments = {}
    run: Lists = {}
    for place in range(12):
        query = f"q{place}"
        qrels[query] = {doc: draw.choice(labels) for doc in draw.sample(docs, judged)}
        qrels[query][docs[place]] = 0 if kind == "norel" and place < 4 else 2
        if kind == "norel" and place < 4:
            qrels[query] = dict.fromkeys(qrels[query], 0)
        if not (kind == "missing" and place % 4 == 0):
            base = -20.0 if kind == "long" else 0.1
            run[query] = {doc: base + steps * draw.randrange(12) for doc in draw.sample(docs, size)}
        if kind == "self":
            run[query] = {query: 9.0} | run[query]
    if kind == "runonly":
        run |= {f"r{place}": {docs[0]: 1.0} for place in range(3)}
    return qrels, run
