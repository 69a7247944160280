"""The language of --fail-if."""

from __future__ import annotations

import pytest

import tiewise as tw
from tiewise.gate import STATISTICS, Gate

QRELS = {"q1": {"a": 1, "b": 0}, "q2": {"c": 1}}
TIED = {"q1": {"a": 0.5, "b": 0.5, "x": 0.1}, "q2": {"c": 0.9, "y": 0.8}}
MEASURES = ["RR", "nDCG@10", "AP", "P(rel=2)@5", 'AP(norm="cap")@10', "RBP(p=0.8)"]


@pytest.fixture(scope="module")
def report() -> tw.Report:
    return tw.evaluate(QRELS, TIED, MEASURES)


@pytest.mark.parametrize(
    ("text", "closed"),
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
    ],
)
def test_conditions(report, text, closed):
    assert bool(Gate.parse(text).closed_by(report)) is closed


def test_it_says_what_closed_it(report):
    gate = Gate.parse("range(RR) > 0.2 and expected(mrr) < 1")
    assert gate.closed_by(report) == "range(RR) = 0.25, expected(RR) = 0.875"
    assert gate.measures == (tw.RR,)


@pytest.mark.parametrize("statistic", STATISTICS)
def test_every_statistic_is_known(statistic):
    assert str(Gate.parse(f"{statistic}(nDCG@10) > 0").terms[0]) == f"{statistic}(nDCG@10)"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rnage(nDCG@10) > 0.1", "Did you mean 'range'"),
        ("size(nDCG@10) > 0.1", "Use one of expected, minimum"),
        ("range(NDGC@10) > 0.1", "Did you mean 'nDCG@10'"),
        ("range(nDCG@10", "a bracket is not closed"),
        ("range(nDCG@10) >", "is no condition"),
        ("range(nDCG@10)", "is no condition"),
        ("nDCG@10 > 0.1", "is no condition"),
        ("range(nDCG@10) > True", "is no condition"),
        ("range(nDCG@10) > '1'", "is no condition"),
        ("range(nDCG@10) in 1", "is no condition"),
        ("range(nDCG@10) + 1 > 1", "is no condition"),
        ("abs(range(RR), 1) > 1", "is no condition"),
        ("__import__('os').system('false') > 1", "is no condition"),
        ("__import__('os') > 1", "unknown statistic"),
        ("_1 > 1", "is no condition"),
        ("range() > 1", "empty measure name"),
        ("", "is no condition"),
        ("(" * 500 + "range(RR) > 1", "is no condition"),
    ],
)
def test_what_is_no_condition_says_so(text, message):
    with pytest.raises(tw.TiewiseError, match=message.replace("(", r"\(")):
        Gate.parse(text)


def test_a_gate_never_guesses(report):
    with pytest.raises(tw.InputError, match="RR has no residual here"):
        Gate.parse("residual(RR) > 0.1").closed_by(report)
    without_order = tw.evaluate(QRELS, TIED, ["RR"], oblivious=None)
    with pytest.raises(tw.InputError, match="RR has no bias here"):
        Gate.parse("bias(RR) > 0.1").closed_by(without_order)


def test_z_without_ties_is_none_at_all_or_beyond_all_bounds():
    untied = tw.evaluate({"q": {"a": 1}}, {"q": {"a": 2.0, "b": 1.0}}, ["RR"])
    assert Gate.parse("z(RR) == 0").closed_by(untied)
    # Read as float32 these two are one: an order is then chosen where there was no choice.
    rounded = tw.evaluate({"q": {"a": 1}}, {"q": {"a": 0.123456789, "b": 0.123456788}}, ["RR"], oblivious="pytrec_eval")
    assert Gate.parse("z(RR) < -4").closed_by(rounded)
