"""Bounds over unjudged documents against all labels, and measures without bounds."""

from __future__ import annotations

import itertools

import pytest

import oracle
import tiewise as tw

QRELS = {"q1": {"a": 1, "b": 0, "z": 1}, "q2": {"c": 2, "d": 0}}
RUN = {"q1": {"x": 3.0, "a": 2.0, "y": 2.0, "b": 1.0}, "q2": {"u": 5.0, "d": 4.0, "v": 3.0, "c": 2.0}}


@pytest.mark.parametrize(
    ("measure", "name", "k", "params"),
    [
        ("P@2", "P", 2, {}),
        ("P(rel=2)@3", "P", 3, {"rel": 2}),
        ("Success@1", "Success", 1, {}),
        ("RR", "RR", None, {}),
        ("Hits@3", "Hits", 3, {}),
        ("Judged@3", "Judged", 3, {}),
    ],
)
def test_bounds_equal_the_extremes_of_all_labels(measure, name, k, params):
    found = tw.unjudged(QRELS, RUN, measure, complete=True)[measure]
    means = []
    for query, docs in RUN.items():
        open_ = [doc for doc in docs if doc not in QRELS[query]]
        values = []
        for labels in itertools.product((None, 0, 1, 2), repeat=len(open_)):
            known = QRELS[query] | dict(zip(open_, labels, strict=True))
            judged = [known[doc] for doc in docs]
            rest = [label for doc, label in QRELS[query].items() if doc not in docs]
            values.append(oracle.estimate(name, list(docs.values()), judged, rest, k, **params).expected)
        means.append((min(values), max(values)))
    assert found.lower.expected == pytest.approx(sum(low for low, _ in means) / 2)
    assert found.upper.expected == pytest.approx(sum(high for _, high in means) / 2)


def test_the_residual_of_rbp_agrees():
    for measure in ("RBP(p=0.8)", "RBP(p=0.5)@2", 'RBP(p=0.7, gains="graded", max=2)'):
        bounds = tw.unjudged(QRELS, RUN, measure, complete=True)[measure]
        assert bounds.residual == pytest.approx(tw.evaluate(QRELS, RUN, measure, complete=True)[measure].residual)


def test_bounds_have_their_own_tie_ranges():
    bounds = tw.unjudged(QRELS, RUN, "P@2", complete=True)["P@2"]
    plain = tw.evaluate(QRELS, RUN, "P@2", complete=True)["P@2"]
    assert (bounds.lower.minimum, bounds.lower.maximum) == (plain.minimum, plain.maximum)
    assert bounds.upper.minimum == bounds.upper.maximum  # when all of q1 is relevant, no order matters


def test_condensed_values():
    found = tw.unjudged(QRELS, RUN, ["P@2", "RR"], complete=True)
    condensed = tw.evaluate(QRELS, RUN, ["P@2", "RR"], judged_only=True, complete=True)
    assert found.condensed["RR"].expected == condensed["RR"].expected
    assert list(found) == ["P@2", "RR"] and len(found) == 2
    assert found.to_dict()["RR"]["condensed"]["expected"] == condensed["RR"].expected


def test_missing_queries_and_tie_groups():
    assert tw.unjudged({"q": {"a": 1}, "p": {"b": 1}}, {"q": {"a": 1.0}}, "P@1")["P@1"].residual == 0
    with pytest.raises(tw.InputError, match="Tie groups do not hold the unjudged documents"):
        tw.unjudged(None, tw.notation("10"), "P@1")


def test_both_bounds_are_over_the_same_queries():
    judged = {"known": {"a": 1}, "unknown": {"b": 0}}
    run = {"known": {"a": 2.0, "c": 1.0}, "unknown": {"b": 2.0, "c": 1.0}}
    bounds = tw.unjudged(judged, run, "P@2", no_relevant="skip", complete=True)["P@2"]
    assert (bounds.lower.expected, bounds.upper.expected) == (0.5, 1.0)  # with "unknown", the upper one would be 0.75


def test_judged_only_is_an_error():
    with pytest.raises(tw.InputError, match="nothing left to bound"):
        tw.unjudged(QRELS, RUN, "P@2", judged_only=True)


@pytest.mark.parametrize("measure", ["AP", "nDCG@10", "R@5", "Bpref", "Rprec"])
def test_normalized_measures_have_no_bounds(measure):
    with pytest.raises(tw.MeasureError, match="divides by the number of relevant documents"):
        tw.unjudged(QRELS, RUN, measure)


def test_other_measures_have_no_bounds():
    with pytest.raises(tw.MeasureError, match="known only for P, Hits, Success, RR, RBP, Judged, SetP"):
        tw.unjudged(QRELS, RUN, "ERR")


def test_a_measure_without_a_relevant_document_leaves_the_others_alone():
    judged, run = {"q": {"a": 1, "b": 0}}, {"q": {"a": 2.0, "x": 1.0}}
    found = tw.unjudged(judged, run, ["P@2", "P(rel=3)@2"], no_relevant="skip", complete=True)
    assert found["P@2"].residual == 0.5
    nothing = found["P(rel=3)@2"]  # no query is left to take the mean over
    assert nothing.lower.expected is None and nothing.upper.expected is None and nothing.residual is None
    assert found.condensed["P(rel=3)@2"].expected is None
    assert repr(nothing) == "P(rel=3)@2 from ? to ?"
    assert found.to_dict()["P(rel=3)@2"]["upper"]["expected"] is None
    assert "P(rel=3)@2" in found._repr_html_()
    row = next(line for line in found.to_markdown().splitlines() if line.startswith("| P(rel=3)@2"))
    assert row.count("| – ") == 3 and "-" not in row  # the sign of all tables for a value that does not apply
