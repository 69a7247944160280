"""Made judgments and runs in the shapes that people evaluate, written once into a folder and reused.

Scores have four decimals, so that some documents tie, as they do in real runs. Runs of any length, for the cost of a
line, repeat some hundred lists under new queries.
"""

from __future__ import annotations

from collections.abc import Iterator
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
    "tiny": Shape(2, 5, 2, 2, 100),  # next to nothing: what a start costs
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


def short(folder: Path) -> tuple[Path, Path]:
    """The paths of qrels and a run of next to nothing in which a judged document is tied: what a call costs."""
    qrels, run = folder / "short.qrels", folder / "short.run"
    folder.mkdir(parents=True, exist_ok=True)
    qrels.write_text("1 0 b 1\n2 0 b 1\n")
    scores = {"a": 5, "b": 4, "c": 4, "d": 2, "e": 1}
    run.write_text("".join(f"{query} Q0 {doc} 1 {score} made\n" for query in "12" for doc, score in scores.items()))
    return qrels, run


# -- runs of any length -----------------------------------------------------------------------------------------------

LISTS = 256  # distinct lists
DOCUMENTS = 1000  # in each
PLACE = b"#######"  # of a query's id in a list: ids have seven digits


@dataclass(frozen=True)
class LongRun:
    """A run of so many lists, one document judged in each, and how many lines and bytes that is."""

    qrels: Path
    run: Path
    queries: int

    @property
    def lines(self) -> int:
        return self.queries * DOCUMENTS

    @property
    def bytes(self) -> int:
        return self.run.stat().st_size

    def delete(self) -> None:
        self.qrels.unlink()
        self.run.unlink()


def long_run(queries: int, folder: Path) -> LongRun:
    """Write a run of some queries, of a thousand documents each; it is not kept for later."""
    folder.mkdir(parents=True, exist_ok=True)
    made = LongRun(folder / f"long-{queries}.qrels", folder / f"long-{queries}.run", queries)
    lists = list(_lists())
    with made.qrels.open("w") as judged, made.run.open("wb") as listed:
        for query in range(queries):
            doc, text = lists[query % LISTS]
            judged.write(f"{10**6 + query} 0 {doc} 1\n")
            listed.write(text.replace(PLACE, b"%d" % (10**6 + query)))
    return made


def list_bytes() -> int:
    """How long a list is, on average."""
    return sum(len(text) for _, text in _lists()) // LISTS


def _lists() -> Iterator[tuple[str, bytes]]:
    """The judged document of each list, and its lines."""
    rng = np.random.default_rng(0)
    place = PLACE.decode()
    for _ in range(LISTS):
        docs = rng.choice(8_800_000, DOCUMENTS, replace=False).tolist()
        scores = np.sort(rng.random(DOCUMENTS).round(4))[::-1].tolist()
        ranked = enumerate(zip(docs, scores, strict=True), start=1)
        lines = [f"{place} Q0 D{doc:07d} {rank} {score} made\n" for rank, (doc, score) in ranked]
        yield f"D{docs[rng.integers(0, 50)]:07d}", "".join(lines).encode()
