"""Measures on condensed lists: the parameter `judged_only` of one measure, against the option for all of them."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings

import tiewise as tw
from cases import MEASURES, cases
from peers import draw
from tiewise.ties import tie_groups

FIELDS = ("expected", "minimum", "maximum", "std", "oblivious", "residual", "cut", "method", "standard_error")
ORDERS = ("given", "docid-asc", "docid-desc")


@settings(max_examples=100, deadline=None)
@given(case=cases(most=12))
def test_tie_groups_of_condensed_lists(case):
    """Those of the whole lists hold all that is needed: the lists themselves are not read again."""
    found = tie_groups(case.qrels, case.run, ORDERS).condensed()
    truth = tie_groups(case.qrels, case.run.judged_only(case.qrels), ORDERS)
    assert found.length.tolist() == truth.length.tolist()
    assert found.size.tolist() == truth.size.tolist()
    retrieved = truth.size > 0
    assert found.start[retrieved].tolist() == truth.start[retrieved].tolist()
    assert np.array_equal(found.score, truth.score, equal_nan=True)
    for order in ORDERS:
        assert found.before[order][retrieved].tolist() == truth.before[order][retrieved].tolist()
    again = found.condensed()
    assert again.start.tolist() == found.start.tolist() and again.length.tolist() == found.length.tolist()


@pytest.mark.parametrize("measure", [tw.measures()[m.stem] for m, _ in MEASURES if m == tw.measures()[m.stem]], ids=str)
@pytest.mark.parametrize("options", [{}, {"depth": 4, "score_dtype": "float32", "complete": True}], ids=str)
def test_the_parameter_is_the_option_for_one_measure(measure, options):
    measure = measure @ 3 if measure.takes_cutoff else measure
    options = options if measure.takes_depth else {}
    for seed in range(3):
        qrels, run = draw(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", tw.CutWarning)
            whole = tw.evaluate(qrels, run, [measure], judged_only=True, samples=50, **options)
            found = tw.evaluate(qrels, run, [measure(judged_only=True), measure], samples=50, **options)
            plain = tw.evaluate(qrels, run, measure, samples=50, **options)
            both = tw.evaluate(qrels, run, measure(judged_only=True), judged_only=True, samples=50, **options)
        for field in FIELDS:
            truth = getattr(whole[measure], field)
            assert getattr(found[measure(judged_only=True)], field) == pytest.approx(truth, abs=1e-14), field
            assert getattr(both[measure(judged_only=True)], field) == pytest.approx(truth, abs=1e-14), field
            assert getattr(found[measure], field) == getattr(plain[measure], field), field


def test_names():
    measure = tw.parse("nDCG(judged_only=True)@10")
    assert measure == tw.nDCG(judged_only=True) @ 10 == (tw.nDCG @ 10)(judged_only=True)
    assert measure.name == "nDCG(judged_only=True)@10" and measure != tw.nDCG @ 10
    assert measure(judged_only=False) == tw.nDCG @ 10 and measure.uncut == tw.nDCG(judged_only=True)
    assert tw.parse("P(rel=2, judged_only=True)@5").name == "P(rel=2, judged_only=True)@5"
    assert tw.nDCG(judged_only=True).of("-(2-0)-1") == tw.nDCG(judged_only=True).of("(20)1")
    with pytest.raises(tw.MeasureError, match="judged_only=1 is not possible"):
        tw.parse("P(judged_only=1)@5")
    with pytest.raises(tw.MeasureError, match="compares two rankings"):
        tw.RBO(judged_only=True)


def test_a_report_counts_documents_of_label_zero_when_it_needs_them(tmp_path):
    qrels, run = draw(3)
    paths = tmp_path / "qrels.txt", tmp_path / "run.trec"
    paths[0].write_text("".join(f"{q} 0 {d} {label}\n" for q, docs in qrels.items() for d, label in docs.items()))
    tw.write_run(tw.Run.from_dict(run), paths[1])
    report = tw.evaluate(*paths, "AP", complete=True)
    assert report.at("AP(judged_only=True)")["AP(judged_only=True)"].expected == (
        tw.evaluate(*paths, "AP", complete=True, judged_only=True)["AP"].expected
    )


def test_tie_groups_that_were_given():
    case = tw.notation("-(2-0)-1")
    assert tw.evaluate(None, case, "nDCG(judged_only=True)", oblivious="given", complete=True)[
        "nDCG(judged_only=True)"
    ].expected == pytest.approx(tw.nDCG.of("(20)1").expected)


@pytest.mark.parametrize("orders", ["independent", "per-query", "shared"])
def test_compare(orders):
    qrels, first = draw(4)
    _, second = draw(5)
    condensed = [
        tw.compare(qrels, {"A": first, "B": second}, measure, complete=True, orders=orders, **options).pair("A", "B")
        for measure, options in (("AP", {"judged_only": True}), ("AP(judged_only=True)", {}))
    ]
    one, other = condensed
    assert other.difference.expected == pytest.approx(one.difference.expected, abs=1e-14)
    assert other.probability == pytest.approx(one.probability, abs=1e-12)
    assert other.p_value == pytest.approx(one.p_value, abs=1e-12)


def test_unjudged_documents_of_condensed_lists_have_no_bounds():
    with pytest.raises(tw.MeasureError, match="judged_only"):
        tw.unjudged({"q": {"a": 1}}, {"q": {"a": 1.0, "b": 0.5}}, "P(judged_only=True)@2")


@pytest.mark.parametrize("judged_only", [False, True])
def test_which_tools_condense(judged_only):
    qrels, run = draw(6)
    report = tw.evaluate(qrels, run, tw.P(judged_only=judged_only) @ 5, complete=True)
    tools = {row.tool for row in report.oblivious_by_tool()}
    assert {"trec_eval", "ir_measures", "pytrec_eval"} <= tools
    assert ("beir" in tools) != judged_only
