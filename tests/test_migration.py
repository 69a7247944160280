"""What the migration pages say, checked against the packages that they are about."""

from __future__ import annotations

import math
import random
import re
from pathlib import Path

import pytest

import tiewise as tw

DOCS = Path(__file__).parent.parent / "docs"


def test_the_experiment_of_pyterrier():
    """The example of the page, run as it stands there."""
    pytest.importorskip("pyterrier")
    pytest.importorskip("ir_measures")
    from ir_measures import DefaultPipeline

    page = (DOCS / "migrate-python.md").read_text(encoding="utf-8")
    example = re.search(r"```python\n(import pandas as pd\nimport pyterrier.*?)```", page, re.DOTALL)
    found: dict = {}
    exec(example[1], found)
    assert found["one_order"].iloc[0].to_dict() == {"name": "A", "AP": 0.75, "RR@10": 1.0}
    assert found["expected"].iloc[0].to_dict() == {"name": "A", "AP": 0.875, "RR@10": 0.875}
    assert found["provider"] not in DefaultPipeline.providers


EQUAL = "hits@5 hit_rate@5 precision@5 recall@5 f1@5 r-precision mrr map@5 dcg@5 dcg_burges@5 ndcg@5 ndcg_burges@5"
EQUAL += " map@5-l2 mrr-l2 recall@5-l2"


def test_what_ranx_prints_where_no_order_of_ties_changes_it():
    """Ties of documents that are not relevant, a query without results, one without judgments."""
    ranx = pytest.importorskip("ranx")
    qrels = {"a": {"x": 2, "y": 1, "lost": 3}, "b": {"x": 1}, "none": {"x": 0}}
    run = {"a": {"x": 3.0, "z": 2.0, "w": 2.0, "y": 1.0}, "none": {"x": 1.0}, "other": {"x": 1.0}}
    measures = {name: tw.parse(name) for name in EQUAL.split()}
    theirs = ranx.evaluate(ranx.Qrels(qrels), ranx.Run(run), list(measures), make_comparable=True)
    report = tw.evaluate(qrels, run, list(measures.values()), complete=True)
    printed = {row.measure: row for row in report.oblivious_by_tool() if row.tool == "ranx"}
    for name, measure in measures.items():
        assert printed[measure.name].value == pytest.approx(float(theirs[name]), abs=1e-12), name
        assert printed[measure.name].note == "with make_comparable=True"
    assert tw.why(qrels, run, "nDCG@5", tools="ranx").values[0] == printed["nDCG@5"].value
    fractions = {"a": {"x": 1.5, "y": 2.7, "z": 0.5}}  # ranx cuts them to whole labels
    theirs = ranx.evaluate(ranx.Qrels(fractions), ranx.Run({"a": run["a"]}), "ndcg@5")
    assert tw.why(fractions, {"a": run["a"] | {"w": 1.5}}, "nDCG@5", tools="ranx").values[0] == pytest.approx(theirs)
    moved = tw.evaluate(qrels, run | {"a": {"x": 3.0, "z": 3.0}}, "nDCG@5", complete=True).oblivious_by_tool()
    assert next(row.value for row in moved if row.tool == "ranx") is None


def test_names_of_ranx():
    ranx = pytest.importorskip("ranx")
    rng = random.Random(0)
    docs = [f"d{place}" for place in range(14)]
    qrels = {f"q{i}": {d: rng.choice([0, 0, 1, 1, 2, 3]) for d in rng.sample(docs, 9)} | {"d0": 2} for i in range(20)}
    run = {q: {d: 20.0 - place for place, d in enumerate(rng.sample(docs, 11))} for q in qrels}
    theirs = ranx.evaluate(ranx.Qrels(qrels), ranx.Run(run), [*EQUAL.split(), "rbp.80"])
    report = tw.evaluate(qrels, run, EQUAL.split(), complete=True)
    for name in EQUAL.split():
        assert report[tw.parse(name)].expected == pytest.approx(float(theirs[name]), abs=1e-12), name
    graded = tw.RBP(p=0.8, gains="graded", max=3)
    assert 3 * tw.evaluate(qrels, run, graded, complete=True)[graded].expected == pytest.approx(float(theirs["rbp.80"]))
    all_relevant = {"q": {"a": 1, "b": 1}}, {"q": {"a": 2.0, "b": 1.0}}
    assert math.isnan(ranx.evaluate(ranx.Qrels(all_relevant[0]), ranx.Run(all_relevant[1]), "bpref"))
    assert tw.evaluate(*all_relevant, "bpref", complete=True)["bpref"].expected == 1
