"""The shapes of results for programs: documents have the keys, and rows the columns, that are documented."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import numpy as np
import pytest

import tiewise as tw
from tiewise.adapters import index
from tiewise.example import file
from tiewise.scoring import Collection

ROOT = Path(__file__).parent.parent
QRELS, RUNS = file("qrels.txt"), {name: file(f"{name}.trec.gz") for name in ("minilm-bf16", "minilm-fp32")}


@pytest.fixture(scope="module")
def schemas():
    return runpy.run_path(str(ROOT / "scripts/make_docs.py"))["SCHEMAS"]


@pytest.fixture(scope="module")
def results():
    rng = np.random.default_rng(3)
    queries, docs = rng.normal(size=(4, 8)), rng.normal(size=(30, 8))

    def search(vectors, k):
        scores = vectors @ docs.T
        best = np.argsort(-scores, axis=1)[:, :k]
        return np.take_along_axis(scores, best, axis=1), best

    report = tw.evaluate(QRELS, RUNS["minilm-bf16"], ["nDCG@10", "RR"])
    return {
        "evaluation": report,
        "tools": report.oblivious_by_tool(),
        "comparison": tw.compare(QRELS, RUNS),
        "leaderboard": tw.leaderboard({"example": (QRELS, RUNS)}),
        "why": tw.why(QRELS, RUNS["minilm-bf16"], "AP", tools=("trec_eval", "tiewise")),
        "audit": tw.audit(RUNS["minilm-bf16"], qrels=QRELS),
        "similarity": tw.similarity(RUNS),
        "stages": tw.stages(RUNS["minilm-fp32"], {"bf16": RUNS["minilm-bf16"]}, 5, 0.8),
        "protocol": tw.protocol(QRELS, RUNS),
        "index": index.check(search, Collection(docs), queries, 5),
    }


def test_every_schema_is_documented(schemas, results):
    assert list(schemas) == list(results)
    assert [one.to_dict()["schema"] for one in results.values()] == [f"tiewise/{name}/1" for name in schemas]


@pytest.mark.parametrize(
    "name",
    ["evaluation", "tools", "comparison", "leaderboard", "why", "audit", "similarity", "stages", "protocol", "index"],
)
def test_documents_have_the_keys_that_are_documented(schemas, results, name):
    _, keys, columns = schemas[name]
    document = json.loads(results[name].to_json())
    optional = {"schema", "queries", "unjudged", "name"}  # queries: with -q; unjudged: with --explain; name: of a file
    assert set(document) - set(keys) <= {"schema", "name"} and set(keys) - set(document) <= optional
    frame = list(results[name].to_frame().columns)
    assert not columns or any([key for key in some if key in frame] == frame for some in columns.values())
