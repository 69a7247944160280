"""Measures of users who read a list, and Compat and Accuracy: large tie groups, where statistics are closed, sampled or
bounds; small ones are enumerated in test_measures.py."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

import oracle
import tiewise as tw
from cases import Case
from tiewise.metrics import engine
from tiewise.metrics.enumeration import Sampling
from tiewise.metrics.grouped_judgments import GroupedJudgments
from tiewise.ties import notation

#: Seven gains that differ: 5,040 orders, more than are enumerated.
LABELS = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0]
TIED = Case([1.0] * 7, LABELS, [2.0])


def enumerate_all(measure: tw.Measure, case: Case = TIED) -> np.ndarray:
    params = {name: getattr(measure, name) for name in measure.params if name != "dcg"}
    values = [
        oracle.value(measure.stem, order, case.unretrieved, measure.cutoff, **params)
        for order in oracle.orders(case.scores, case.labels)
    ]
    return np.array(values)


SAMPLED = [tw.INST(max_rel=4), tw.INST(T=0.5, max_rel=4), tw.NERR8(max_rel=5) @ 5, tw.NERR9(max_rel=5) @ 6]
SAMPLED += [tw.NERR10(max_rel=5), tw.NERR11(max_rel=5)]


@pytest.mark.parametrize("measure", SAMPLED, ids=str)
def test_sampled_expectations_and_exact_extremes(measure):
    truth = enumerate_all(measure)
    found = engine.estimates(measure, TIED.grouped(), sampling=Sampling(2000, 3)).mean()
    assert found.method == {"expected": "sampled", "extremes": "exact", "std": "sampled"}
    assert (found.minimum, found.maximum) == pytest.approx((truth.min(), truth.max()), abs=1e-12)
    assert abs(found.expected - truth.mean()) < 4 * found.standard_error
    assert found.std == pytest.approx(truth.std(), rel=0.1)


@pytest.mark.parametrize(
    "measure", [tw.BPM(max_rel=4) @ 6, tw.BPM(T=1.5, max_rel=4), tw.BPM(T=9, max_rel=4) @ 7], ids=str
)
def test_bounds_of_bpm(measure):
    truth = enumerate_all(measure)
    found = engine.estimates(measure, TIED.grouped(), sampling=Sampling(2000, 3)).mean()
    if found.minimum == found.maximum:  # T is never reached
        assert np.ptp(truth) < 1e-12 and measure.T == 9
        return
    assert found.method == {"expected": "sampled", "extremes": "bound", "std": "sampled"}
    assert found.minimum <= truth.min() + 1e-12 and truth.max() - 1e-12 <= found.maximum
    assert found.range < 2.5 * np.ptp(truth)
    assert abs(found.expected - truth.mean()) < 4 * found.standard_error
    assert repr(found).count("≥") == repr(found).count("≤") == 1


def test_sorting_is_wrong_for_bpm():
    case = Case([9.0, 8.0, 1.0, 1.0, 1.0, 1.0], [0.0, 0.0, 1.0, 2.0, 4.0, 1.0], [])
    found = engine.estimates(tw.BPM(max_rel=4) @ 6, case.grouped()).mean()
    assert found.method["extremes"] == "exact"
    assert found.maximum == pytest.approx(0.375)
    assert oracle.value("BPM", [0, 0, 4, 2, 1, 1], k=6, max_rel=4) == pytest.approx(1 / 3)


def test_bpm_adds_whole_labels():
    """.6 + .3 + .1 is 1: in floating point it is less, in this order."""
    assert 0.6 + 0.3 + 0.1 < 1
    found = tw.evaluate({"q": {"a": 6, "b": 3, "c": 1}}, {"q": {"a": 3.0, "b": 2.0, "c": 1.0}}, "BPM(max_rel=10)@9")
    assert found["BPM(max_rel=10)@9"].expected == pytest.approx(1 / 3)


def test_compat_has_an_exact_expectation_and_a_sampled_deviation():
    truth = enumerate_all(tw.Compat)
    found = engine.estimates(tw.Compat, TIED.grouped(), sampling=Sampling(2000, 3)).mean()
    assert found.method == {"expected": "exact", "extremes": "exact", "std": "sampled"}
    assert found.expected == pytest.approx(truth.mean(), abs=1e-12)
    assert found.std == pytest.approx(truth.std(), rel=0.1)


def one_group(start: int, size: int, labels: list[float]) -> GroupedJudgments:
    """A tie group that holds documents of these labels, after `start` unjudged ones."""
    ties = notation("(" + "1" * len(labels) + ")")
    n = len(labels)
    return GroupedJudgments(
        replace(
            ties,
            qrels=replace(ties.qrels, value=np.array(labels)),
            start=np.full(n, start),
            size=np.full(n, size),
            length=np.array([start + size]),
            before={},
        )
    )


@pytest.mark.parametrize("measure", [tw.NERR8 @ 50, tw.NERR9 @ 50, tw.NERR10, tw.NERR11, tw.BPM @ 50, tw.BPM(T=2) @ 50])
@pytest.mark.parametrize("start", [0, 20])
def test_two_relevant_documents_in_a_large_group(measure, start):
    """All 780 places of two relevant documents among 40, after others: a closed form against a plain mean."""
    params = {name: getattr(measure, name) for name in measure.params}
    truth = [
        oracle.value(measure.stem, [None] * start + [float(i in pair) for i in range(40)], k=measure.cutoff, **params)
        for pair in itertools.combinations(range(40), 2)
    ]
    found = engine.estimates(measure, one_group(start, 40, [1.0, 1.0])).mean()
    assert found.method == {"expected": "exact", "extremes": "exact", "std": "exact"}
    assert found.expected == pytest.approx(math.fsum(truth) / len(truth), rel=1e-12)
    assert (found.minimum, found.maximum) == pytest.approx((min(truth), max(truth)), rel=1e-12)
    assert found.std == pytest.approx(np.std(truth), rel=1e-11)


def test_a_hundred_thousand_tied_documents():
    """The probability of the extremes is 0 in float64; the extremes are there all the same."""
    grouped = one_group(0, 100_000, [1.0] * 2000)
    found = engine.estimates(tw.BPM(T=3) @ 10, grouped).mean()
    assert (found.minimum, found.maximum) == (0.0, 1.0)
    assert found.expected == pytest.approx(10 * 0.02 / 10, rel=0.01)
    found = engine.estimates(tw.Accuracy @ 3000, grouped).mean()
    assert (found.minimum, found.maximum) == (0.0, 1.0) and found.expected == pytest.approx(0.5, abs=1e-12)
    found = engine.estimates(tw.NERR8 @ 5, grouped).mean()
    chance = [0.98**i * 0.02 for i in range(5)]
    assert found.expected == pytest.approx(sum(c / (i + 1) for i, c in enumerate(chance)), rel=1e-3)


def test_queries_without_a_pair_are_left_out():
    qrels = {"none": {"x": 1}, "all": {"a": 1, "b": 1}, "some": {"a": 1}}
    run = {q: {"a": 2.0, "b": 1.0} for q in qrels}
    report = tw.evaluate(qrels, run, ["Accuracy", "AP"])
    assert set(report.per_query("Accuracy")) == {"some"} and len(report.per_query("AP")) == 3
    assert "Accuracy is not defined for 2 queries, which are left out." in report.notes
    nothing = tw.evaluate(qrels, run, "Accuracy@1")
    assert nothing["Accuracy@1"].expected is None and nothing["Accuracy@1"].method["expected"] == "exact"
    assert "Accuracy@1 -" in repr(nothing)
    with pytest.raises(tw.InputError, match="No query is left to compare by 'Accuracy@1'"):
        tw.compare(qrels, {"A": run, "B": run}, "Accuracy@1").pair("A", "B")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("INST(T=0.2)", "T=0.2 is not possible. It must be 0.5 or more"),
        ("INST(min_rel=2)", "min_rel=2 is not below max_rel=1"),
        ("INSQ@10", "INSQ takes no cutoff"),
        ("NERR10(p=1)", "p=1 is not possible"),
        ("SDCG(dcg='exp-log2')@10", "dcg='exp-log2' is not possible"),
        ("Compat(normalize=1)", "normalize=1 is not possible. Use True or False"),
        ("BPM(min_rel=-1)@5", "min_rel=-1 is not possible"),
        ("SDCG@10000000000", "the cutoff may be at most 10,000,000"),
    ],
)
def test_bad_parameters(name, message):
    with pytest.raises(tw.MeasureError, match=message.replace("(", r"\(")):
        tw.parse(name)


def test_the_page_of_a_measure_that_is_not_defined_in_every_order(tmp_path):
    qrels = {"q": {"a": 1}, "p": {"a": 1, "b": 1}}
    runs = {name: {q: {"a": 1.0, "b": 1.0, "c": score} for q in qrels} for name, score in (("A", 1.0), ("B", 0.5))}
    tw.write_page(
        qrels, runs, tmp_path / "page.html", measures=["Accuracy@2", "INST", "P(judged_only=True)@1"], complete=True
    )
    assert "Accuracy@2" in (tmp_path / "page.html").read_text(encoding="utf-8")
