"""Measures of trec_eval in tie groups too large to enumerate: what is exact there, and what is sampled."""

from __future__ import annotations

import math

import pytest

import tiewise as tw
from cases import Case
from tiewise.metrics import engine
from tiewise.metrics.catalogue import average_precision
from tiewise.metrics.enumeration import Sampling
from tiewise.metrics.tool_rules import TOOLS

GRADES = [0.0, 1.0, 2.0, 0.0, 1.0, 3.0, 0.0, 0.0, 1.0, 2.0] * 3
BINARY = [min(grade, 1.0) for grade in GRADES]


def estimate(measure: tw.Measure, labels: list[float], samples: int = 2000) -> tw.Estimate:
    case = Case([float(place // 15) for place in range(len(labels))], labels, [1.0])
    return engine.estimates(measure, case.grouped(), sampling=Sampling(samples, 3)).mean()


@pytest.mark.parametrize(
    ("measure", "labels", "method"),
    [
        (tw.binG, GRADES, ("exact", "exact", "exact")),
        (tw.RnDCG, GRADES, ("exact", "exact", "exact")),
        (tw.TrecRBP, GRADES, ("exact", "exact", "exact")),
        (tw.RBPresid, [*GRADES[:-1], -1.0], ("exact", "exact", "exact")),
        (tw.IPrec(recall=0.4), GRADES, ("exact", "exact", "exact")),
        (tw.ElevenPointAP, GRADES, ("exact", "exact", "sampled")),
        (tw.infAP, GRADES, ("exact", "exact", "sampled")),
        (tw.infAP, [-1.0, -1.0, *GRADES[2:]], ("exact", "sampled", "sampled")),
        (tw.G, GRADES, ("sampled", "sampled", "sampled")),
        (tw.G, BINARY, ("sampled", "exact", "sampled")),
        (tw.nDCGRel, GRADES, ("sampled", "exact", "sampled")),
        (tw.nDCGRel(gains="0=-1"), GRADES, ("sampled", "sampled", "sampled")),
        (tw.YAAP, GRADES, ("sampled", "exact", "sampled")),
        (tw.LogAP, GRADES, ("sampled", "exact", "sampled")),
    ],
    ids=str,
)
def test_how_each_statistic_is_found(measure, labels, method):
    found = estimate(measure, labels, samples=50)
    assert tuple(found.method.values()) == method
    assert found.minimum < found.expected < found.maximum


@pytest.mark.parametrize("measure", [tw.IPrec(recall=0.1), tw.IPrec(recall=0.6), tw.ElevenPointAP], ids=str)
def test_the_distribution_of_interpolated_precision_agrees_with_a_sample(measure, monkeypatch):
    exact = estimate(measure, GRADES)
    monkeypatch.setattr(average_precision, "LATTICE_COST", 0)
    sampled = estimate(measure, GRADES, samples=4000)
    assert (exact.method["expected"], sampled.method["expected"]) == ("exact", "sampled")
    assert abs(exact.expected - sampled.expected) < 4 * sampled.standard_error
    assert exact.std == pytest.approx(sampled.std, rel=0.1)


def test_infap_agrees_with_a_sample():
    labels = [-1.0, -1.0, *GRADES[2:]]
    exact = estimate(tw.infAP, labels)
    sampled = estimate(_SampledInfAP(), labels, samples=4000)
    assert abs(exact.expected - sampled.expected) < 4 * sampled.standard_error


class _SampledInfAP(type(tw.infAP)):
    """infAP as if its expectation were not known."""

    def law(self, block):
        law = super().law(block)
        return law._replace(mean=law.mean * math.nan)


@pytest.mark.parametrize("ranking", ["1" * 54, f"({'10' * 27})", "1" * 30 + "(00)"])
def test_nothing_is_left_of_a_judged_list(ranking):
    found = tw.RBPresid.of(ranking)
    assert (found.expected, found.minimum, found.maximum, found.std) == (0, 0, 0, 0)
    assert math.copysign(1, found.expected) == 1
    length = len(ranking.strip("()").replace("(", ""))
    assert tw.RBP(p=0.5).of(ranking).residual == pytest.approx(0.5**length, rel=1e-12)


def test_a_geometric_mean_is_not_compared():
    runs = {"A": {"q": {"a": 1.0, "b": 0.5}}, "B": {"q": {"b": 1.0, "a": 0.5}}}
    with pytest.raises(tw.MeasureError, match="Compare LogAP instead: in one order of ties its mean is"):
        tw.compare({"q": {"a": 1}}, runs, "gm_map")
    found = tw.compare({"q": {"a": 1}}, runs, "LogAP")
    assert found.pair("A", "B", "LogAP").difference.expected == pytest.approx(math.log(2))


def test_gains_by_label():
    measure = tw.parse("ndcg.2=9.0,1=5")
    assert str(measure) == 'nDCG(gains="1=5,2=9")' and measure == tw.nDCG(gains="1=5, 2=9")
    assert measure.of("123").expected == pytest.approx((5 + 9 / math.log2(3) + 3 / 2) / (9 + 5 / math.log2(3) + 3 / 2))
    for wrong in ("1", 5, None, "x=2", "1=2=3", "-1=2", "1=2,1=3"):
        with pytest.raises(tw.MeasureError, match="gains="):
            tw.nDCG(gains=wrong)
    assert tw.ElevenPointAP(points=0.5) == tw.ElevenPointAP(points="0.50")


@pytest.mark.parametrize(
    ("word", "names"),
    [
        ("iprec_at_recall.0.1,0.5", ["IPrec(recall=0.1)", "IPrec(recall=0.5)"]),
        ("IPrec@0.1", ["IPrec(recall=0.1)"]),
        ("Rprec_mult_0.20", ["RprecMult(multiple=0.2)"]),
        ("utility.2,-1,0,0", ["Utility(a=2)"]),
        ("11pt_avg.0.2,.5", ['ElevenPointAP(points="0.2,0.5")']),
        ("set_F.2 map", ["SetF(x=2)", "AP"]),
        ("G.1=2,3=7,P.5,10", ['G(gains="1=2,3=7")', "P@5", "P@10"]),
        ("rbp.p=0.8", ["RBP(p=0.8)"]),
        ("rbp_resid.p=0.8", ["RBPresid(p=0.8)"]),
        ("P", ["P"]),
        ("unj.5", ["Unj@5"]),
    ],
)
def test_names_of_trec_eval(word, names):
    assert [str(measure) for measure in tw.parse_all(word)] == names


def test_trec_eval_prints_dcg():
    assert TOOLS["trec_eval"].rule(tw.DCG) == TOOLS["trec_eval"].rule(tw.YAAP)
    assert TOOLS["trec_eval"].rule(tw.DCG @ 10) is None and TOOLS["pytrec_eval"].rule(tw.DCG) is None


def test_one_number_after_a_name():
    with pytest.raises(tw.MeasureError, match=r"set_F.0.5,2: give 1 number, not 2"):
        tw.parse("set_F.0.5,2")


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("Utility", {"a": 1.7e308}),
        ("INST", {"T": 1e100}),
        ("INSQ", {"T": 1e-300}),
        ("IPrec", {"recall": 1e300}),
        ("RprecMult", {"multiple": 1e300}),
        ("P", {"rel": 10**400}),
        ("RnDCG", {"gains": "1=1e-300"}),
        ("nDCG", {"gains": "1=-1e300"}),
        ("ElevenPointAP", {"points": "1e100"}),
        ("ElevenPointAP", {"points": "nan"}),
    ],
)
def test_parameters_of_absurd_size(name, params):
    with pytest.raises(tw.MeasureError, match="Numbers are 0, or from 1e-12 to 1e12 in size"):
        getattr(tw, name)(**params)


def test_extreme_parameters_need_no_warning(recwarn):
    for measure in (
        tw.Utility(a=-1e12),
        tw.INST(T=1e12),
        tw.INSQ(T=1e-12),
        tw.IPrec(recall=1e12),
        tw.G(gains="1=1e12"),
    ):
        found = measure.of("(10)1-")
        assert math.isfinite(found.expected) and math.isfinite(found.std)
    assert not [one for one in recwarn if issubclass(one.category, RuntimeWarning)]
