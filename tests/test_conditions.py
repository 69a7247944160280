"""The conditions of --fail-if."""

from __future__ import annotations

import warnings

import pytest

import tiewise as tw
from tiewise.cli.conditions import FACTS, STATISTICS, Condition

QRELS = {"q1": {"a": 1, "b": 0}, "q2": {"c": 1}}
TIED = {"q1": {"a": 0.5, "b": 0.5, "x": 0.1}, "q2": {"c": 0.9, "y": 0.8}}
MEASURES = ["RR", "nDCG@10", "AP", "P(rel=2)@5", 'AP(norm="cap")@10', "RBP(p=0.8)"]


@pytest.fixture(scope="module")
def report() -> tw.Report:
    return tw.evaluate(QRELS, TIED, MEASURES)


@pytest.mark.parametrize(
    ("text", "is_true"),
    [
        ("range(RR) > 0.2", True),  # RR is .875 [.75, 1], and .75 in the order of trec_eval
        ("range(RR)>.3", False),
        ("range( mrr ) >= 0.25", True),
        ("expected(RR) == 0.875", True),
        ("expected(RR) != 0.875", False),
        ("minimum(RR) < maximum(RR)", True),
        ("0.7 < oblivious(RR) <= 0.75", True),
        ("bias(RR) > 0.1", False),
        ("bias(RR) < -0.1", True),
        ("abs(bias(RR)) > 0.1", True),
        ("not range(RR) > 0.2", False),
        ("range(RR) > 1 or (std(RR) > 0 and not expected(AP) < 0)", True),
        ("range(RR) > 1 or std(RR) > 0 and expected(AP) < 0", False),
        ("range(ndcg_cut.10) > 0.01", True),
        ("range(ndcg_cut_10) > 0.01", True),
        ('expected(AP(norm="cap") @ 10) > 0.1', True),
        ("expected(P(rel=2)@5) > 0", False),
        ("residual(RBP(p=0.8)) > 0", True),
        ("abs(z(RR)) > 0.5", True),
        ("RR < 0.9", True),  # a measure alone is its expected value
        ("RR < 0.87", False),
        ("0.87 < RR < 0.88", True),
        ("nDCG@10 < 0.95", True),
        ("nDCG @ 10 < 0.95", True),
        ("ndcg_cut.10 < 0.95", True),
        ("mrr >= 0.875 and not nDCG@10 < 0.5", True),
        ("not (RR < 0.9)", False),
        ("abs(RR) < 0.9", True),
        ('AP(norm="cap")@10 > 0.5', True),
        ("P(rel=2)@5 > 0", False),
        ("RR < minimum(RR) or RBP(p=0.8) > 2", False),
    ],
)
def test_conditions(report, text, is_true):
    assert bool(Condition.parse(text).explain(report)) is is_true


def test_explanation_has_the_values(report):
    condition = Condition.parse("range(RR) > 0.2 and expected(mrr) < 1")
    assert condition.explain(report) == "range(RR) = 0.25, expected(RR) = 0.875"
    assert condition.measures == (tw.RR,)


def test_a_measure_alone_is_its_expected_value(report):
    condition = Condition.parse("nDCG@10 < 0.95")
    assert [str(term) for term in condition.terms] == ["expected(nDCG@10)"] and condition.measures == (tw.nDCG @ 10,)
    assert condition.explain(report).startswith("expected(nDCG@10) = 0.9")
    facts = Condition.parse("tau < 0.5 or AP < 0.2", facts=FACTS)  # a fact of an audit goes before a measure
    assert [str(term) for term in facts.terms] == ["tau", "expected(AP)"]
    with pytest.raises(tw.InputError, match="Did you mean 'tied_share'"):
        Condition.parse("tied_shar > 0.1", facts=FACTS)


@pytest.mark.parametrize("statistic", STATISTICS)
def test_every_statistic_is_known(statistic):
    assert str(Condition.parse(f"{statistic}(nDCG@10) > 0").terms[0]) == f"{statistic}(nDCG@10)"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rnage(nDCG@10) > 0.1", "Did you mean 'range'"),
        ("size(nDCG@10) > 0.1", "Use one of expected, minimum"),
        ("range(NDGC@10) > 0.1", "Did you mean 'nDCG@10'"),
        ("range(nDCG@10", "a bracket is not closed"),
        ("range(nDCG@10) >", "this is not a condition"),
        ("range(nDCG@10)", "this is not a condition"),
        ("nDCG@10", "this is not a condition"),
        ("NDGC@10 > 0.1", "Did you mean 'nDCG@10'"),
        ("nDGC > 0.1", "Did you mean 'nDCG'"),
        ("P(level=2)@5 > 0.1", "no parameter 'level'"),
        ("range > 0.1", "this is not a condition"),
        ("range(nDCG@10) > True", "this is not a condition"),
        ("range(nDCG@10) > '1'", "this is not a condition"),
        ("range(nDCG@10) in 1", "this is not a condition"),
        ("range(nDCG@10) + 1 > 1", "this is not a condition"),
        ("abs(range(RR), 1) > 1", "this is not a condition"),
        ("__import__('os').system('false') > 1", "this is not a condition"),
        ("__import__('os') > 1", "unknown statistic"),
        ("_1 > 1", "this is not a condition"),
        ("range() > 1", "empty measure name"),
        ("", "this is not a condition"),
        ("(" * 500 + "range(RR) > 1", "this is not a condition"),
        ("not " * 2000 + "range(RR) > 1", "it is nested more than 100 times"),
        ("0.43 < 0.45", "a comparison has numbers only. Name a measure"),
        ("RR < 0.5 or abs(0.43) < 0.45", "a comparison has numbers only"),
    ],
)
def test_errors(text, message):
    with pytest.raises(tw.TiewiseError, match=message.replace("(", r"\(")):
        Condition.parse(text)


def test_a_missing_statistic_is_an_error(report):
    with pytest.raises(tw.InputError, match="RR has no residual here"):
        Condition.parse("residual(RR) > 0.1").explain(report)
    without_order = tw.evaluate(QRELS, TIED, ["RR"], oblivious=None)
    with pytest.raises(tw.InputError, match="RR has no bias here"):
        Condition.parse("bias(RR) > 0.1").explain(without_order)


def test_z_without_ties_is_zero_or_infinite():
    untied = tw.evaluate({"q": {"a": 1}}, {"q": {"a": 2.0, "b": 1.0}}, ["RR"])
    assert Condition.parse("z(RR) == 0").explain(untied)
    # Read as float32 these two are one: an order is then chosen where there was no choice.
    rounded = tw.evaluate({"q": {"a": 1}}, {"q": {"a": 0.123456789, "b": 0.123456788}}, ["RR"], oblivious="pytrec_eval")
    assert Condition.parse("z(RR) < -4").explain(rounded)


# -- comparisons ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def comparison() -> tw.Compared:
    late = {"q1": {"b": 0.9, "a": 0.5}, "q2": {"y": 0.9, "c": 0.8}}
    runs = {"new": TIED, "main": late, "new, v2 (old)": late}
    return tw.compare(QRELS, runs, ["RR", "AP", 'AP(norm="cap")@5'])


@pytest.mark.parametrize(
    ("text", "is_true"),
    [
        ("certain(new>main, RR)", True),  # 1 or .5 and 1, against .5 and .5
        ("not certain(new > main, RR)", False),
        ("certain(new>main, RR) > 0", True),  # as a number it is 1 or 0
        ("certain(main>new, RR)", False),  # it is certain, but the other way round
        ("certain(main<new, mrr)", True),
        ("flip(new>main, RR) or p(new>main, RR) > 0.05", True),
        ("p(new>main,RR) < 1", True),
        ("p(main>new, RR) == 1", True),  # the two-sided p-value is for the one that is ahead
        ("difference(new>main, RR) == 0.375", True),
        ("difference(main>new, RR) < -0.3 and minimum(new>main, RR) > 0.2", True),
        ("probability(new>main, RR) < 1", False),
        ("ci_low(new>main, RR) < 0 and ci_high(new>main, RR) > 0.3", True),
        ("0 < effect(new>main, AP) < 100 and std(new>main, AP) < 1", True),
        ("difference(new>new, v2 (old), AP(norm='cap')@5) > 0", True),  # new has the relevant documents first
        ("difference(new>new, v2 (old), AP(norm='cap')@5) > 1", False),
    ],
)
def test_conditions_on_a_comparison(comparison, text, is_true):
    assert bool(Condition.parse(text, systems=comparison.systems).explain(comparison)) is is_true


def test_names_of_systems_with_commas_and_brackets(comparison):
    condition = Condition.parse("difference(new>new, v2 (old), AP(norm='cap')@5) > 0", systems=comparison.systems)
    assert str(condition.terms[0]) == 'difference(new>new, v2 (old), AP(norm="cap")@5)'


def test_explanation_of_a_comparison(comparison):
    condition = Condition.parse("not certain(main>new, RR) and p(new>main, AP) > 0.05", systems=comparison.systems)
    assert condition.explain(comparison) == "certain(main>new, RR) = no, p(new>main, AP) = 0.559622"
    assert condition.measures == (tw.RR, tw.AP)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "certain(new>old, RR)",
            "is not a pair of systems and a measure. Write (A>B, nDCG@10) with two of 'new'",
        ),
        ("certain(new, RR)", "is not a pair of systems"),
        ("certain(new>main)", "is not a pair of systems"),
        ("certain(new>main, RX)", "Unknown measure 'RX'"),
        ("p(new>main, RR)", "this is not a condition"),
        ("range(RR) > 0", "unknown statistic 'range'"),
        ("expected(RR) > 0", "unknown statistic 'expected'"),
        ("RR > 0", "this is not a condition. Compare a statistic of two systems"),
        ("cretain(new>main, RR)", "this is not a condition"),
    ],
)
def test_errors_of_a_comparison(comparison, text, message):
    with pytest.raises(tw.TiewiseError) as raised:
        Condition.parse(text, systems=comparison.systems)
    assert message in str(raised.value)


def test_an_unknown_statistic_of_a_pair_is_an_error():
    one = tw.compare({"q": {"a": 1}}, {"A": {"q": {"a": 1.0}}, "B": {"q": {"b": 2.0, "a": 1.0}}}, "RR")
    with pytest.raises(tw.InputError, match=r"The condition needs ci_low\(A>B, RR\), but it is not known here"):
        Condition.parse("ci_low(A>B, RR) < 0", systems=one.systems).explain(one)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("alpha-nDCG@20 < .9", ["alpha_nDCG@20"]),
        ("MAP-IA<.9 or ERR-IA(alpha=0.3)@20 < -0.3", ["AP_IA", "ERR_IA(alpha=0.3)@20"]),
        ("not P-IA@5 < abs(bias(MAP-IA))", ["P_IA@5", "AP_IA"]),
        ("1 > AP-l2", ["AP(rel=2)"]),
    ],
)
def test_names_with_a_hyphen(text, names):
    assert [measure.name for measure in Condition.parse(text).measures] == names


def test_a_gate_on_every_order_is_closed_if_lists_may_have_been_cut():
    qrels = {f"q{i}": {"a": 1, "b": 1} for i in range(4)}
    first = {query: {"a": 2.0, "x": 1.0, "y": 1.0} for query in qrels}
    second = {query: {"x": 2.0, "y": 1.0, "z": 1.0} for query in qrels}
    second["q0"] = {"x": 2.0, "y": 1.0, "b": 1.0}
    condition = Condition.parse("not certain(A>B, R@3)", systems=["A", "B"])
    for complete in (False, True):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", tw.CutWarning)
            found = tw.compare(qrels, {"A": first, "B": second}, "R@3", complete=complete)
        pair = found.pair("A", "B")
        assert pair.certain and pair.open_by_cuts is not complete
        assert (condition.explain(found) is not None) is not complete
