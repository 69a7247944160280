"""`adapters.index.check`: an index against the exact ranking, with recall by enumeration of tie orders."""

from __future__ import annotations

import re
from itertools import pairwise, permutations

import numpy as np
import pytest

import tiewise as tw
from tiewise.adapters.index import INDEX_KEYS, IndexCheck, check
from tiewise.scoring import Collection

rng = np.random.default_rng(11)
DOCS = rng.integers(-1, 2, size=(9, 4)).astype(np.float32)  # small numbers: many ties
QUERIES = rng.integers(-1, 2, size=(12, 4)).astype(np.float32)


def index_of(vectors, rows, sign=1):
    """A search that sees some rows only, and returns scores or, with sign -1, distances."""

    def search(queries, k):
        scores = np.asarray(queries) @ vectors[rows].T
        best = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        return sign * np.take_along_axis(scores, best, 1), np.asarray(rows)[best]

    return search


def enumerated_recall(scores, found, k):
    """The lowest, mean and highest share of the first k that was found, over all orders of the ties."""
    values = []
    for order in permutations(range(len(scores))):
        if all(scores[a] >= scores[b] for a, b in pairwise(order)):
            values.append(len(set(order[:k]) & found) / k)
    return min(values), sum(values) / len(values), max(values)


@pytest.mark.parametrize("sign", [1, -1])
def test_recall_is_that_of_all_orders_of_ties(sign):
    docs, k = DOCS[:7], 3
    search = index_of(docs, [0, 2, 3, 5, 6], sign)
    found = check(search, Collection(docs), QUERIES, k)
    _, indices = search(QUERIES, k)
    for query, estimate in found.per_query().items():
        row = int(query)
        low, mean, high = enumerated_recall(docs @ QUERIES[row], set(indices[row].tolist()), k)
        assert (estimate.minimum, estimate.maximum) == pytest.approx((low, high))
        assert estimate.expected == pytest.approx(mean)
    assert 0 < found.recall.expected < 1 and found.recall.range > 0


def test_similarities_are_those_of_the_runs():
    found = check(index_of(DOCS, list(range(9))), Collection(DOCS), QUERIES, 4, phi=0.8)
    runs = {"a": found.index.run, "b": found.exact.run}
    assert found.rbo.extrapolated == tw.similarity(runs, "RBO(phi=0.8)").pair("a", "b").extrapolated
    assert found.rbr.lower == tw.similarity(runs, "RBR(phi=0.8)").pair("a", "b").lower
    assert found.recall.maximum == 1


def test_a_perfect_index_reaches_every_ceiling():
    docs = np.random.default_rng(3).normal(size=(200, 16)).astype(np.float32)
    found = check(index_of(docs, list(range(200))), Collection(docs), docs[:20], 10, repeats=1)
    assert found.rbr_ceiling == pytest.approx(1 - 0.9**10)
    assert found.rbr.lower.expected == pytest.approx(found.rbr_ceiling)
    assert found.rbo.extrapolated.expected == pytest.approx(1)
    assert repr(found) == "<IndexCheck: recall@10 1.0000, RBR 0.6513 of 0.6513, RBO 1.0000, 20 queries>"
    assert repr(found.recall) == "recall@10 1.0000"
    assert {one.measure for one in found.per_query().values()} == {"recall@10"}
    assert "P@10" not in found.to_markdown()
    lines = found.to_text().splitlines()
    assert re.match(r"index +1\.000 +\.651 +\.651 +1\.000 +0% ", lines[2])
    assert lines[4:] == ["The index finds 1.000 of the exact first 10.", "How to read this: explain=True"]
    assert "1 − φᵏ" in found.to_text(explain=True)
    row = found.to_dict()["searches"][0]
    assert (row["rbr_ceiling"], row["rbo_residual"]) == (found.rbr_ceiling, found.rbo.residual)


def test_measures_are_those_of_evaluate():
    qrels = {f"q{row}": {"d1": 1, "d4": 1} for row in range(12)}
    ids = {"query_ids": [f"q{row}" for row in range(12)]}
    collection = Collection(DOCS, doc_ids=[f"d{row}" for row in range(9)])
    found = check(index_of(DOCS, [1, 2, 3, 5]), collection, QUERIES, 4, qrels=qrels, measures=["AP@3", "RR"], **ids)
    whole = tw.evaluate(qrels, collection.search(QUERIES, 9, **ids), "AP@3", complete=True)
    assert found.exact.report["AP@3"].expected == pytest.approx(whole["AP@3"].expected)
    with pytest.warns(tw.CutWarning):
        own = tw.evaluate(qrels, found.index.run, "AP@3")
    assert found.index.report["AP@3"].expected == own["AP@3"].expected
    assert any("may have been cut" in note for note in found.notes)


def test_an_index_that_finds_nothing_has_recall_0():
    def search(queries, k):
        return np.full((len(queries), k), -3e38), np.full((len(queries), k), -1)

    found = check(search, Collection(DOCS), QUERIES, 3)
    assert found.recall.expected == 0 and found.index.run.tied_share == 0
    assert "recall@3" in found.to_markdown()


def test_formats():
    found = check(
        index_of(DOCS, [0, 1, 2]), Collection(DOCS), QUERIES, 2, index_bytes=48, repeats=1, qrels={"0": {"1": 1}}
    )
    assert isinstance(found, IndexCheck) and repr(found).startswith("<IndexCheck: recall@2 ")
    frame = found.to_frame()
    assert frame["search"].tolist() == ["index", "exact"] and frame["bytes"].tolist() == [48, 9 * 4 * 4]
    assert "nDCG@10 expected" in frame.columns
    assert found.to_latex().count("\\\\") >= 3 and "| index" in found.to_markdown()
    document = found.to_dict()
    assert list(document) == ["schema", *INDEX_KEYS] and document["schema"] == "tiewise/index/1"
    assert document["searches"][0]["recall"] == found.recall.expected
    means = (one.report["nDCG@10"].expected for one in (found.index, found.exact))
    assert "; nDCG@10 is {}, exact {}.".format(*(f"{mean:.3f}".removeprefix("0") for mean in means)) in found.to_text()
    assert "<table" in found._repr_html_()


def test_the_figure_shows_what_is_found_by_rank():
    pytest.importorskip("altair")
    found = check(index_of(DOCS, [0, 1, 2, 8]), Collection(DOCS), QUERIES, 3)
    drawn = found.plot().to_dict()
    values = next(iter(drawn["datasets"].values()))
    last = [value for value in values if value["cutoff"] == 3]
    assert last[0]["expected"] == pytest.approx(found.recall.expected)


@pytest.mark.parametrize(
    ("search", "message"),
    [
        (Collection(DOCS), r"not a Collection. Give index.search, not the index"),
        (lambda queries, k: None, r"returned a NoneType. It must return \(scores, indices\)"),
        (
            lambda queries, k: (np.zeros((12, 2)), np.array([[0, 9]] * 12)),
            "index 9, but the collection has 9 documents",
        ),
        (lambda queries, k: (np.zeros((1, 2)), np.array([[0, 1]])), "12 query ids"),
    ],
)
def test_errors(search, message):
    with pytest.raises(tw.InputError, match=message):
        check(search, Collection(DOCS), QUERIES, 2)


def test_faiss_lists_with_few_probes():
    faiss = pytest.importorskip("faiss")
    docs = np.random.default_rng(0).normal(size=(600, 16)).astype(np.float32)
    index = faiss.IndexIVFFlat(faiss.IndexFlatIP(16), 16, 8, faiss.METRIC_INNER_PRODUCT)
    index.train(docs)
    index.add(docs)
    recalls = []
    for index.nprobe in (1, 3, 8):
        recalls.append(check(index.search, Collection(docs), docs[:40] + 0.1, 10).recall.expected)
    assert recalls == sorted(recalls) and recalls[0] < 0.9 and recalls[2] == 1
