"""Generated judgments and runs in the shapes that people evaluate. They are written once into a folder and reused.

A `Shape` has scores with four decimals, so some documents tie. A `PooledShape` imitates a TREC collection: many
judgments for each query, of which few are relevant, and a given share of tied rows. Its constants are fitted to Robust
2003 and to the run MU03rob01. `long_run` repeats 256 lists under new queries, for runs of any length.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Shape:
    """The size of a collection with few judgments."""

    queries: int
    documents: int  #: in each list
    judged: int  #: documents for each query
    grades: int  #: number of labels, with 0
    collection: int  #: documents to draw from


@dataclass(frozen=True)
class PooledShape:
    """The size of a collection with deep pools of judgments, and the share of rows that are tied."""

    queries: int
    documents: int  #: in each list
    judged: int  #: documents for each query
    tied: float  #: share of rows with the score of another row of the list
    collection: int = 528_155  #: documents to draw from


ROBUST_JUDGED = 1288  # judgments for each query in Robust 2003, on average
JUDGED_SWEEP = (10, 100, 1000, 3000)
TIED_SWEEP = (0, 3, 30, 97, 100)  # per cent
#: Small calls: the documents of each list, by the number of queries. The last ones are reranked candidates.
CALL_DOCUMENTS = {1: 100, 10: 100, 50: 100, 400: 20}

SHAPES: dict[str, Shape | PooledShape] = {
    "tiny": Shape(2, 5, 2, 2, 100),  # almost nothing: the cost of a start
    "dl": Shape(50, 1000, 200, 4, 100_000),  # TREC Deep Learning: few queries, deep graded judgments
    "miracl": Shape(717, 100, 8, 2, 100_000),  # reranking: short candidate lists
    "marco": Shape(6980, 1000, 1, 2, 8_800_000),  # MS MARCO dev: one relevant document for each query
    "one-list": Shape(1, 10**6, 400, 2, 8_800_000),  # a whole collection, ranked for one query
    "large": Shape(100_000, 100, 2, 2, 8_800_000),  # many queries
    "robust": PooledShape(100, 1000, ROBUST_JUDGED, 0.97),  # TREC Robust 2003, a run with many ties
    "robust-untied": PooledShape(100, 1000, ROBUST_JUDGED, 0.03),  # the same, a run with few ties
    **{f"call-{queries}": PooledShape(queries, documents, 20, 0.3) for queries, documents in CALL_DOCUMENTS.items()},
    **{f"judged-{judged}": PooledShape(100, 1000, judged, 0.3) for judged in JUDGED_SWEEP},
    **{f"tied-{share}": PooledShape(100, 1000, ROBUST_JUDGED, share / 100) for share in TIED_SWEEP},
}


def files(name: str, folder: Path) -> tuple[Path, Path]:
    """The paths of the qrels and the run of a shape; the files are written if they do not exist."""
    return write_files(SHAPES[name], folder / f"{name}.qrels", folder / f"{name}.run")


def write_files(shape: Shape | PooledShape, qrels: Path, run: Path, seed: int = 0) -> tuple[Path, Path]:
    """Write the qrels and the run of a shape, unless both exist; return their paths."""
    if not (qrels.exists() and run.exists()):
        qrels.parent.mkdir(parents=True, exist_ok=True)
        unfinished = run.with_suffix(".part")
        with qrels.open("w") as judgments, unfinished.open("w") as rows:
            write = _write if isinstance(shape, Shape) else _write_pooled
            write(shape, np.random.default_rng(seed), judgments, rows)  # type: ignore[arg-type]
        unfinished.replace(run)
    return qrels, run


def _write(shape: Shape, rng: np.random.Generator, judgments: TextIO, rows: TextIO) -> None:
    for query in range(shape.queries):
        docs = np.unique(rng.integers(0, shape.collection, shape.documents * 2))
        docs = rng.permutation(docs)[: shape.documents]
        scores = np.sort(rng.random(len(docs)).round(4))[::-1]
        retrieved = rng.random() < 0.9
        picked = rng.choice(min(len(docs), 400), size=min(shape.judged, 400, len(docs)), replace=False)
        for place in np.sort(picked):
            label = int(rng.integers(0, shape.grades)) if shape.judged > 1 else 1
            judgments.write(f"{query} 0 D{docs[place] if retrieved else shape.collection + query:07d} {label}\n")
            if not retrieved:
                break
        rows.writelines(
            f"{query} Q0 D{doc:07d} {rank} {score} made\n"
            for rank, (doc, score) in enumerate(zip(docs.tolist(), scores.tolist(), strict=True), start=1)
        )


# -- pools of judgments ---------------------------------------------------------------------------------------------

#: In Robust 2003 a third of the judged documents are in a list. They are almost all documents at the top of it, and a
#: quarter at its end: at rank 330 (a quarter of the pool) it is half of the documents.
HALF_JUDGED = 330 / ROBUST_JUDGED
#: The share of relevant documents among judged ones: at the first rank, and far down or not retrieved. Of all 128,796
#: judged documents 4.7 % are relevant, and 7 % of these have label 2.
TOP_RELEVANT, BASE_RELEVANT, HIGHLY_RELEVANT = 0.45, 0.036, 0.067
ALL_TIED_GROUPS = 5  # in a list in which all rows are tied, as rutcor03100 has


def _write_pooled(shape: PooledShape, rng: np.random.Generator, judgments: TextIO, rows: TextIO) -> None:
    ranks = np.arange(shape.documents)
    judged_share = 1 / (1 + (ranks / (HALF_JUDGED * shape.judged)) ** 1.5)
    for query in range(301, 301 + shape.queries):
        docs = rng.choice(shape.collection, shape.documents + shape.judged, replace=False)
        judged = np.flatnonzero(rng.random(shape.documents) < judged_share)[: shape.judged]
        missing = shape.documents + np.arange(shape.judged - len(judged))  # judged, not retrieved
        pool = np.concatenate([judged, missing])
        depth = np.concatenate([judged, np.full(len(missing), np.inf)])
        relevant_share = BASE_RELEVANT + TOP_RELEVANT / (1 + depth / 8)
        relevant = rng.random(len(pool)) < relevant_share
        labels = relevant * (1 + (rng.random(len(pool)) < HIGHLY_RELEVANT))
        names = [f"LA{doc // 1000:06d}-{doc % 1000:04d}" for doc in docs.tolist()]
        lines = sorted((names[place], label) for place, label in zip(pool.tolist(), labels.tolist(), strict=True))
        judgments.writelines(f"{query} 0 {name} {label}\n" for name, label in lines)
        scores = _tied_scores(rng, shape.documents, shape.tied).tolist()
        rows.writelines(
            f"{query} Q0 {name} {rank} {score} made\n"
            for rank, (name, score) in enumerate(zip(names, scores, strict=False), start=1)
        )


def _tied_scores(rng: np.random.Generator, documents: int, tied: float) -> NDArray[np.float64]:
    """Descending scores, of which about the given share are tied. Groups grow with the rank, as in MU03rob01.

    The mean size of a group is 1 + start/scale, and sizes are geometric. A group is then a single document with
    probability 1/(1 + start/scale), so the share of untied rows is 1/(1 + documents/scale).
    """
    scale = documents * (1 - tied) / tied if tied else np.inf
    sizes: list[int] = []
    start = 0
    while start < documents:
        if tied < 1:
            size = int(rng.geometric(1 / (1 + start / scale)))
        else:
            size = 1 + int(rng.geometric(ALL_TIED_GROUPS / documents))
            size += start + size == documents - 1  # leave no single document at the end
        sizes.append(min(size, documents - start))
        start += sizes[-1]
    distinct = np.sort(rng.choice(10**6, len(sizes), replace=False))[::-1] / 1e4  # also distinct as float32
    scores: NDArray[np.float64] = np.repeat(distinct, sizes)
    return scores


# -- other runs for the same judgments ------------------------------------------------------------------------------

Scores = dict[str, dict[str, float]]


def reorder(run: Scores, seed: int) -> Scores:
    """Another run with the same scores and documents, in a similar order: neighbours change places."""
    rng = np.random.default_rng(seed)
    result = {}
    for query, scores in run.items():
        docs, ranks = list(scores), np.arange(len(scores))
        order = np.argsort(ranks + rng.normal(0, 1 + 0.3 * ranks))
        result[query] = {docs[place]: score for place, score in zip(order.tolist(), scores.values(), strict=True)}
    return result


def write_run(run: Scores, path: Path) -> None:
    """Write a run, unless the file exists."""
    if path.exists():
        return
    with path.open("w") as rows:
        for query, scores in run.items():
            rows.writelines(
                f"{query} Q0 {doc} {rank} {score} made\n" for rank, (doc, score) in enumerate(scores.items(), start=1)
            )


# -- runs of almost nothing, and of any length ----------------------------------------------------------------------


def short(folder: Path) -> tuple[Path, Path]:
    """The paths of qrels and a run of two queries in which a judged document is tied: the cost of a call."""
    qrels, run = folder / "short.qrels", folder / "short.run"
    folder.mkdir(parents=True, exist_ok=True)
    qrels.write_text("1 0 b 1\n2 0 b 1\n")
    scores = {"a": 5, "b": 4, "c": 4, "d": 2, "e": 1}
    run.write_text("".join(f"{query} Q0 {doc} 1 {score} made\n" for query in "12" for doc, score in scores.items()))
    return qrels, run


LISTS = 256  # distinct lists
DOCUMENTS = 1000  # in each
PLACE = b"#######"  # stands for the query id in a list: ids have seven digits


@dataclass(frozen=True)
class LongRun:
    """The files of a run of many lists, with one judged document in each."""

    qrels: Path
    run: Path
    queries: int

    @property
    def lines(self) -> int:
        return self.queries * DOCUMENTS

    def delete(self) -> None:
        self.qrels.unlink()
        self.run.unlink()


def long_run(queries: int, folder: Path) -> LongRun:
    """Write a run of some queries, of a thousand documents each. It is not kept for later."""
    folder.mkdir(parents=True, exist_ok=True)
    made = LongRun(folder / f"long-{queries}.qrels", folder / f"long-{queries}.run", queries)
    lists = list(_lists())
    with made.qrels.open("w") as judgments, made.run.open("wb") as rows:
        for query in range(queries):
            doc, text = lists[query % LISTS]
            judgments.write(f"{10**6 + query} 0 {doc} 1\n")
            rows.write(text.replace(PLACE, b"%d" % (10**6 + query)))
    return made


def list_bytes() -> int:
    """The mean length of a list."""
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
