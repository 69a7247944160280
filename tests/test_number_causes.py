"""Causes of the difference of two numbers: contributions add up, and the numbers are those of the tools."""

from __future__ import annotations

import random

import pytest

import tiewise as tw
from tiewise.analysis.number_causes import why


def make_case(seed: int) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, float]]]:
    draw = random.Random(seed)
    docs = [f"d{i}" for i in range(12)]
    qrels = {f"q{q}": {doc: draw.choice([0, 0, 1, 2]) for doc in draw.sample(docs, 7)} for q in range(5)}
    run = {f"q{q}": {doc: draw.choice([0.1, 0.2, 0.3]) for doc in draw.sample(docs, 9)} for q in range(5)}
    return qrels, run


@pytest.mark.parametrize("measure", ["nDCG@5", "AP", "RR@10", "P@3"])
@pytest.mark.parametrize("seed", range(4))
def test_contributions_add_up_to_the_difference(seed: int, measure: str) -> None:
    qrels, run = make_case(seed)
    found = why(qrels, run, measure, tools=("trec_eval", "tiewise"))
    estimate = tw.evaluate(qrels, run, measure)[measure]
    assert found.difference == pytest.approx(estimate.expected - estimate.oblivious, abs=1e-12)
    contributions = [row["contribution"] for row in found.to_frame().to_dict("records")]
    assert sum(contributions) == pytest.approx(found.difference, abs=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_threshold_is_a_cause(seed: int) -> None:
    qrels, run = make_case(seed)
    found = why(qrels, run, "AP", tools=("trec_eval", "trec_eval -l 2"))
    low, high = (tw.evaluate(qrels, run, name)[name].oblivious for name in ("AP", "AP(rel=2)"))
    assert found.difference == pytest.approx(high - low, abs=1e-12)
    assert len(found.causes) == (found.difference != 0)


def test_two_runs_that_differ_in_ties_alone() -> None:
    qrels = {"q": {"a": 1}}
    found = why(qrels, {"q": {"a": 0.5, "b": 0.5}}, "RR", other={"q": {"a": 0.6, "b": 0.5}})
    assert found.difference == 0.5
    assert sum(row["contribution"] for row in found.to_frame().to_dict("records")) == 0.5


@pytest.mark.parametrize("given", [{}, {"tools": ("trec_eval",)}, {"tools": ("trec_eval", "no_tool")}])
def test_bad_input_is_an_error(given: dict[str, object]) -> None:
    with pytest.raises(tw.TiewiseError):
        why({"q": {"a": 1}}, {"q": {"a": 0.5}}, "RR", **given)
