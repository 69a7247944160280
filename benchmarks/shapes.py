"""Made judgments and runs in the shapes that people evaluate, written once into a folder and reused.

Scores have four decimals, so that some documents tie, as they do in real runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np


@dataclass(frozen=True)
class Shape:
    """So many queries, documents a list, judged documents a query, grades, and documents to draw from."""

    queries: int
    documents: int
    judged: int
    grades: int
    collection: int


SHAPES = {
    "dl": Shape(50, 1000, 200, 4, 100_000),  # TREC Deep Learning: few queries, deep graded judgments
    "miracl": Shape(717, 100, 8, 2, 100_000),  # reranking: short candidate lists
    "marco": Shape(6980, 1000, 1, 2, 8_800_000),  # MS MARCO dev: one relevant document a query
    "large": Shape(100_000, 100, 2, 2, 8_800_000),  # many queries
}


def files(name: str, folder: Path) -> tuple[Path, Path]:
    """The paths of the qrels and the run of a shape, made if they are not there yet."""
    qrels, run = folder / f"{name}.qrels", folder / f"{name}.run"
    if not (qrels.exists() and run.exists()):
        folder.mkdir(parents=True, exist_ok=True)
        _make(SHAPES[name], qrels, run)
    return qrels, run


def _make(shape: Shape, qrels: Path, run: Path) -> None:
    rng = np.random.default_rng(0)
    unfinished = run.with_suffix(".part")
    with qrels.open("w") as judged, unfinished.open("w") as listed:
        for query in range(shape.queries):
            docs = np.unique(rng.integers(0, shape.collection, shape.documents * 2))
            docs = rng.permutation(docs)[: shape.documents]
            scores = np.sort(rng.random(len(docs)).round(4))[::-1]
            found = rng.random() < 0.9
            picked = rng.choice(min(len(docs), 400), size=min(shape.judged, 400, len(docs)), replace=False)
            for place in np.sort(picked):
                label = int(rng.integers(0, shape.grades)) if shape.judged > 1 else 1
                judged.write(f"{query} 0 D{docs[place] if found else shape.collection + query:07d} {label}\n")
                if not found:
                    break
            listed.writelines(
                f"{query} Q0 D{doc:07d} {rank} {score} made\n"
                for rank, (doc, score) in enumerate(zip(docs.tolist(), scores.tolist(), strict=True), start=1)
            )
    unfinished.replace(run)
