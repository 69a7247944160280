"""Vectors of an example, some of them copies of each other, and a check against the exact search."""

from __future__ import annotations

import numpy as np

import tiewise as tw
from tiewise import scoring

K = 10
chance = np.random.default_rng(7)
DOCS = chance.normal(size=(300, 16)).astype(np.float32)
DOCS[[40, 80, 120]] = DOCS[0]
QUERIES = (DOCS[:20] + chance.normal(scale=0.2, size=(20, 16))).astype(np.float32)
QRELS = {str(query): {str(query): 1} for query in range(20)}


def check_against_exact(run: tw.Run) -> None:
    """The run holds the tie groups of an exact search, in their order; its measures are the same."""
    exact = scoring.search(QUERIES, DOCS, K, fn="dot")
    for query, docs in exact.to_dict().items():
        found = run.to_dict()[query]
        assert found.keys() == docs.keys(), f"query {query}: {found.keys() ^ docs.keys()}"
        groups = [[{d for d in one if one[d] == score} for score in one.values()] for one in (found, docs)]
        assert groups[0] == groups[1], f"query {query}: other ties"
    reports = [tw.evaluate(QRELS, one, ["RR", "nDCG@10"], complete=True) for one in (run, exact)]
    for measure in ("RR", "nDCG@10"):
        assert abs(reports[0][measure].expected - reports[1][measure].expected) < 1e-12, measure
    assert reports[0]["RR"].range > 0, "the copies of a document are not tied"
