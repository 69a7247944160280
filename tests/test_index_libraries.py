"""What the real FAISS and usearch return, as runs."""

from __future__ import annotations

import numpy as np
import pytest

import tiewise as tw
from tiewise import scoring

rng = np.random.default_rng(3)
DOCS = rng.normal(size=(60, 16)).astype(np.float32)
DOCS[[10, 20, 30]] = DOCS[0]
QUERIES = rng.normal(size=(9, 16)).astype(np.float32)
QUERIES[0] = DOCS[0]


def same_lists(run, exact):
    """The same documents; in each list the same tie groups, in the same order."""
    for query in exact.queries:
        own, other = run.to_dict()[query], exact.to_dict()[query]
        assert own.keys() == other.keys()
        groups = [[{d for d in docs if docs[d] == score} for score in docs.values()] for docs in (own, other)]
        assert groups[0] == groups[1]


@pytest.mark.parametrize(("kind", "metric", "fn"), [("IP", "ip", "dot"), ("L2", "l2", "euclidean")])
def test_faiss(kind, metric, fn):
    faiss = pytest.importorskip("faiss")
    index = getattr(faiss, f"IndexFlat{kind}")(16)
    index.add(DOCS)
    run = tw.Run.from_neighbors(*index.search(QUERIES, 13), metric=metric, k=9)
    same_lists(run, scoring.search(QUERIES, DOCS, 9, fn=fn))
    assert run.complete_lists.all()
    assert tw.Run.from_neighbors(*index.search(QUERIES, 70), metric=metric).offsets[-1] == 9 * 60  # padding is dropped


def test_faiss_binary():
    faiss = pytest.importorskip("faiss")
    docs, queries = (np.packbits(vectors > 0, axis=1) for vectors in (DOCS, QUERIES))
    index = faiss.IndexBinaryFlat(16)
    index.add(docs)
    run = tw.Run.from_neighbors(*index.search(queries, 61), metric="hamming", k=9)
    same_lists(run, scoring.search(queries, docs, 9, fn="hamming"))


@pytest.mark.parametrize(
    ("kind", "metric", "fn"), [("ip", "ip", "dot"), ("cos", "cosine", "cosine"), ("l2sq", "l2", "euclidean")]
)
def test_usearch(kind, metric, fn):
    module = pytest.importorskip("usearch.index")
    index = module.Index(ndim=16, metric=kind, dtype="f32")
    index.add(np.arange(60), DOCS)
    found = index.search(QUERIES, 13, exact=True)
    run = tw.Run.from_neighbors(found.distances, found.keys, metric=metric, k=9, counts=found.counts)
    same_lists(run, scoring.search(QUERIES, DOCS, 9, fn=fn))
    short = index.search(QUERIES, 70, exact=True)
    assert len(tw.Run.from_neighbors(short.distances, short.keys, metric=metric, counts=short.counts)) == 9 * 60
