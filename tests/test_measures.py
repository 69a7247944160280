"""Every registered measure, in all statistics, against an oracle that enumerates all orders of the ties."""

from __future__ import annotations

import doctest
import math
from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle
import tiewise as tw
from cases import MEASURES, Case, cases
from tiewise.metrics import engine
from tiewise.metrics import names as registry
from tiewise.metrics.catalogue import cascades
from tiewise.metrics.grouped_judgments import GroupedJudgments
from tiewise.ties import notation

NAMES = [str(measure) for measure, _ in MEASURES]


@pytest.mark.parametrize(("measure", "params"), MEASURES, ids=NAMES)
@settings(max_examples=60, deadline=None)
@given(case=cases(most=6), cutoff=st.one_of(st.none(), st.integers(1, 9)))  # few enough orders to enumerate them all
def test_every_statistic_equals_the_enumerated_one(measure, params, case, cutoff):
    if measure.takes_cutoff and cutoff:
        measure = measure @ cutoff
    found = engine.estimates(measure, case.grouped("given"), oblivious="given").mean()
    name = measure.stem
    truth = oracle.estimate(name, case.scores, case.labels, case.unretrieved, measure.cutoff, **params)
    if "sampled" in found.method.values():  # 7 documents of 7 kinds have more arrangements than are enumerated
        assert abs(found.expected - truth.expected) <= 5 * (found.standard_error or 1e-12)
        return
    for field in ("expected", "minimum", "maximum", "std", "oblivious"):
        assert isclose(getattr(found, field), getattr(truth, field)), field


def isclose(found: float | None, truth: float) -> bool:
    """Whether two statistics are equal; None is one of a measure that is not defined (NaN)."""
    return math.isnan(truth) if found is None else math.isclose(found, truth, rel_tol=1e-12, abs_tol=1e-12)


@settings(max_examples=200, deadline=None)
@given(case=cases(), cutoff=st.one_of(st.none(), st.integers(1, 9)), p=st.sampled_from([0.5, 0.8]))
def test_the_residual_of_rbp(case, cutoff, p):
    measure = tw.RBP(p=p) if cutoff is None else tw.RBP(p=p) @ cutoff
    found = engine.estimates(measure, case.grouped()).mean().residual
    truth = oracle.estimate("RBPresidual", case.scores, case.labels, case.unretrieved, cutoff, p=p)
    assert found == pytest.approx(truth.expected, abs=1e-12)


@pytest.mark.parametrize("measure", [measure for measure, _ in MEASURES], ids=NAMES)
@settings(max_examples=40, deadline=None)
@given(case=cases())
def test_laws(measure, case):
    found = engine.estimates(measure, case.grouped("given"), oblivious="given").mean()
    if found.expected is None:  # not defined for this list
        return
    assert found.minimum <= found.expected <= found.maximum
    if found.method["extremes"] == "exact" and found.oblivious is not None:
        assert found.minimum - 1e-15 <= found.oblivious <= found.maximum + 1e-15
    if found.minimum == found.maximum:  # no order matters: nothing is left to chance, to the last bit
        assert (found.expected, found.std, found.bias) == (found.minimum, 0.0, 0.0)


@pytest.mark.parametrize("measure", [measure for measure, _ in MEASURES], ids=NAMES)
@settings(max_examples=40, deadline=None)
@given(case=cases())
def test_without_ties_all_statistics_are_one_number(measure, case):
    untied = Case([-float(place) for place in range(len(case.scores))], case.labels, case.unretrieved)
    found = engine.estimates(measure, untied.grouped("given"), oblivious="given").mean()
    assert found.expected == found.minimum == found.maximum == found.oblivious
    assert found.std in (0.0, None) and (found.std is None) == (found.expected is None)


@pytest.mark.parametrize("measure", [measure for measure, _ in MEASURES], ids=NAMES)
def test_a_measure_reads_back_from_its_name(measure):
    for one in (measure, measure @ 7 if measure.takes_cutoff else measure):
        assert tw.parse(str(one)) == one
        assert hash(tw.parse(str(one))) == hash(one)


@pytest.mark.parametrize("name", tw.measures())
def test_the_examples_of_a_measure_run(name):
    measure = tw.measures()[name]
    tests = doctest.DocTestFinder(recurse=False).find(type(measure), name, globs=dict(tw.measures()))
    assert tests
    assert tests[0].examples, f"{name} shows no example"
    assert doctest.DocTestRunner().run(tests[0]).failed == 0


# -- numerics: a million tied documents, and two million above them ------------------------------------------------


def one_group(start: int, size: int, labels: list[float], unretrieved: list[float] = ()) -> GroupedJudgments:
    """A tie group of `size` documents that holds the given labels, after `start` unjudged documents."""
    ties = notation("(" + "1" * len(labels) + ")|" + "1" * len(unretrieved))
    n, everything = len(labels), np.array([*labels, *unretrieved], dtype=float)
    held = np.arange(len(everything)) < n
    qrels = replace(ties.qrels, value=everything)
    return GroupedJudgments(
        replace(
            ties,
            qrels=qrels,
            start=np.where(held, start, 0),
            size=np.where(held, size, 0),
            length=np.array([start + size]),
            before={"given": np.where(held, np.arange(len(held)), 0)},
        )
    )


@pytest.mark.parametrize("start", [0, 2_000_000])
@pytest.mark.parametrize("cutoff", [None, 50_000])
@pytest.mark.parametrize("name", ["RR", "Success", "AP", "nDCG", "P", "R", "ERR", "RBP"])
def test_a_million_tied_documents(name, cutoff, start):
    """E and Var against sums in exact rational arithmetic where these are simple: one relevant document."""
    size = 1_000_000
    measure = tw.measures()[name]
    depth = None if cutoff is None else start + cutoff
    if depth:
        measure = measure @ depth
    found = engine.estimates(measure, one_group(start, size, [1.0]), oblivious="given").mean()
    inside = size if cutoff is None else cutoff
    rank = np.arange(start + 1, start + inside + 1, dtype=np.longdouble)
    total = start + size
    worth = {
        "RR": 1 / rank,
        "AP": 1 / rank,
        "Success": np.ones_like(rank),
        "nDCG": 1 / np.log2(rank + 1),
        "P": np.ones_like(rank) / (depth or total),
        "R": np.ones_like(rank),
        "ERR": np.longdouble(1) / 16 / rank,
        "RBP": np.longdouble(0.2) * np.longdouble(0.8) ** (rank - 1),
    }[name]
    mean = worth.sum() / size  # the relevant document is at each of the ranks with the same chance
    variance = ((worth - mean) ** 2).sum() / size + (size - inside) * mean**2 / size
    assert found.expected == pytest.approx(float(mean), rel=1e-10, abs=1e-300)
    assert found.minimum <= found.expected <= found.maximum
    assert found.method["std"] == "exact"
    if found.minimum < found.maximum:
        assert found.std == pytest.approx(float(np.sqrt(variance)), rel=1e-8)


def test_ap_of_two_relevant_among_thousands_deep_down():
    """All 1,999,000 places of two relevant documents among 2,000, after two million others: both terms of Eq. 9."""
    start, n = 2_000_000, 2000
    for cutoff in (n, 700):
        found = engine.estimates(tw.AP @ (start + cutoff), one_group(start, n, [1.0, 1.0])).mean()
        i, j = np.triu_indices(n, 1)
        first, second = i + np.longdouble(1), j + np.longdouble(1)
        drawn = (
            np.where(first <= cutoff, 1 / (start + first), 0) + np.where(second <= cutoff, 2 / (start + second), 0)
        ) / 2
        assert found.expected == pytest.approx(float(drawn.mean()), rel=1e-12)
        assert found.std == pytest.approx(float(drawn.std()), rel=1e-9)


def test_binomials_that_overflow():
    """n = 10⁵, r = 3, t = 5·10⁴."""
    found = engine.estimates(tw.Success @ 50_000, one_group(0, 100_000, [1.0] * 3)).mean()
    missed = Fraction(50000 * 49999 * 49998, 100000 * 99999 * 99998)
    assert found.expected == pytest.approx(float(1 - missed), rel=1e-14)
    found = engine.estimates(tw.RR @ 50_000, one_group(0, 100_000, [1.0] * 3)).mean()
    rank = np.arange(1, 50_001, dtype=np.longdouble)
    chance = 3 * (100_000 - rank) * (99_999 - rank) / (100_000 * np.longdouble(99_999) * 99_998)
    mean = (chance / rank).sum()
    assert found.expected == pytest.approx(float(mean), rel=1e-13)
    second = (chance / rank**2).sum()
    assert found.std == pytest.approx(float(np.sqrt(second - mean**2)), rel=1e-12)


@pytest.mark.parametrize("start", [0, 100_000])
@pytest.mark.parametrize("cutoff", [17, 40])
@pytest.mark.parametrize("name", ["RR", "Success", "AP", "nDCG", "ERR", "R"])
def test_three_relevant_among_forty(name, cutoff, start):
    """All 9,880 places of three relevant documents, summed exactly, deep down a list too."""
    found = engine.estimates(tw.measures()[name] @ (start + cutoff), one_group(start, 40, [1.0] * 3)).mean()
    place = np.array(list(combinations(range(1, 41), 3)), dtype=np.longdouble)
    rank, inside = start + place, place <= cutoff
    drawn = {
        "RR": np.where(inside[:, 0], 1 / rank[:, 0], 0),
        "Success": inside[:, 0].astype(np.longdouble),
        "AP": np.where(inside, [1, 2, 3] / rank, 0).sum(axis=1) / 3,
        "nDCG": np.where(inside, 1 / np.log2(rank + 1), 0).sum(axis=1)
        / (1 / np.log2(np.arange(2, 5, dtype=np.longdouble))).sum(),
        "ERR": np.where(inside, np.longdouble(15 / 16) ** np.arange(3) / 16 / rank, 0).sum(axis=1),
        "R": inside.sum(axis=1) / np.longdouble(3),
    }[name]
    assert found.expected == pytest.approx(float(drawn.mean()), rel=1e-13)
    assert found.std == pytest.approx(float(drawn.std()), rel=1e-9, abs=1e-16)


@pytest.mark.parametrize(("size", "relevant"), [(2, 1), (5, 1), (7, 3), (8, 7), (9, 6)])
@pytest.mark.parametrize("start", [0, 3, 100_000])
@pytest.mark.parametrize("gain", [1e-4, 1 / 16, 15 / 16, 1.0])
def test_err_of_equal_gains_against_all_places(size, relevant, start, gain):
    """The recursion over slots that large groups take, against every choice of places."""
    for inside in (size, size - 1, 1):
        place = np.array(list(combinations(range(1, size + 1), relevant)), dtype=np.longdouble)
        passed = (1 - np.longdouble(gain)) ** np.arange(relevant)
        drawn = np.where(place <= inside, gain * passed / (start + place), 0).sum(axis=1)
        found = cascades._equal_gains_variance(inside, min(relevant, inside), start, size, inside, relevant, gain)
        assert found == pytest.approx(float(drawn.var()), rel=1e-9, abs=1e-30)


@pytest.mark.parametrize(("start", "cutoff"), [(0, None), (0, 600), (20, 30), (1000, None)])
def test_err_where_all_but_one_of_a_large_group_are_relevant(start, cutoff):
    """All places of the other one: random orders would hardly ever have it above."""
    size, gain = 1000, np.longdouble(1) / 16
    place, slot = np.arange(size)[:, None], np.arange(size)
    passed = slot - (place < slot)
    weight = np.where(slot < (cutoff or size), 1 / (start + slot + np.longdouble(1)), 0)
    drawn = (np.where(place == slot, 0, (1 - gain) ** passed) * gain * weight).sum(axis=1)
    measure = tw.ERR if cutoff is None else tw.ERR @ (start + cutoff)
    found = engine.estimates(measure, one_group(start, size, [1.0] * (size - 1))).mean()
    assert found.method["std"] == "exact"
    assert found.std == pytest.approx(float(drawn.std()), rel=1e-8)


@pytest.mark.parametrize(
    "payoff",
    [
        lambda self, rank: 1.0 if rank <= 3 else 0.0,
        lambda self, rank, seen: 1 / math.log2(rank + 1),
        lambda self, rank: [1, 2],
    ],
    ids=["if", "math", "shape"],
)
def test_a_payoff_that_is_not_written_for_arrays_is_explained(payoff, monkeypatch):
    monkeypatch.setattr(registry, "_registry", dict(registry._registry))
    monkeypatch.setattr(registry, "_aliases", dict(registry._aliases))
    own = tw.measure(type("Own", (tw.Measure,), {"payoff": payoff, "__module__": "own"}))
    with pytest.raises(tw.MeasureError, match=r"Own\.payoff does not work for many ranks at once.*np\.where"):
        own.of("(10)01(011)")


def test_a_divisor_is_one_number_or_one_for_each_query(monkeypatch):
    monkeypatch.setattr(registry, "_registry", dict(registry._registry))
    monkeypatch.setattr(registry, "_aliases", dict(registry._aliases))

    def make(name, divisor):
        return tw.measure(type(name, (tw.Measure,), {"divisor": divisor, "__module__": "own"}))

    half, each = make("Half", lambda self, q: 2), make("Each", lambda self, q: np.full(q.n_queries, 2.0))
    wrong = make("Wrong", lambda self, q: [1])
    qrels, run = {"p": {"a": 1, "b": 1}, "q": {"a": 1}}, {"p": {"a": 1.0, "b": 1.0}, "q": {"x": 1.0, "a": 1.0}}
    report = tw.evaluate(qrels, run, [half @ 1, each @ 1], complete=True)
    assert report[half @ 1].expected == report[each @ 1].expected == 0.375
    compared = tw.compare(
        qrels, {"A": run, "B": {query: {"x": 2.0, "a": 1.0} for query in "pq"}}, [half @ 1], complete=True
    )
    assert compared.pair("A", "B").difference.maximum == 0.5
    with pytest.raises(tw.MeasureError, match=r"divisor\(q\) of Wrong returned an array of shape \(1,\)"):
        tw.evaluate(qrels, run, wrong, complete=True)


def test_a_payoff_may_be_one_number_for_all_ranks(monkeypatch):
    monkeypatch.setattr(registry, "_registry", dict(registry._registry))
    monkeypatch.setattr(registry, "_aliases", dict(registry._aliases))
    own = tw.measure(type("Own", (tw.Measure,), {"payoff": lambda self, rank: 2, "__module__": "own"}))
    assert own.of("(10)01(011)").expected == 8


@pytest.mark.parametrize("name", ["name", "gain", "cutoff"])
def test_a_parameter_is_not_called_like_what_every_measure_has(name):
    body = {"__annotations__": {name: int}, name: tw.param(2), "payoff": lambda self, rank: rank}
    with pytest.raises(tw.MeasureError, match=f"'{name}' is an attribute of every measure"):
        tw.measure(type("Shadow", (tw.Measure,), body))


@pytest.mark.parametrize(
    "measure", [measure for measure, _ in MEASURES if not measure.needs_all_judged], ids=lambda measure: measure.name
)
@settings(max_examples=60, deadline=None)
@given(case=cases(), cutoff=st.one_of(st.none(), st.integers(1, 9)))
def test_documents_of_label_zero_may_be_left_out(measure, case, cutoff):
    """Most measures do not tell judged non-relevant documents from unjudged ones."""
    measure = measure @ cutoff if measure.takes_cutoff and cutoff else measure
    every = case.grouped("given")
    one, other = (
        engine.estimates(measure, grouped, oblivious="given").mean() for grouped in (every, _without_zero(every))
    )
    for name in ("expected", "minimum", "maximum", "std", "oblivious"):
        value = getattr(other, name)
        assert isclose(getattr(one, name), math.nan if value is None else value), name


def _without_zero(grouped: GroupedJudgments) -> GroupedJudgments:
    return GroupedJudgments(grouped.ties.with_nonzero_labels())


def test_which_measures_need_documents_of_label_zero():
    need = {measure.name for measure, _ in MEASURES if measure.needs_all_judged}
    assert {"Bpref", "Judged", "RBP(p=0.8)", "P(rel=0)", "AUC(rel=0)"} <= need
    assert not {"nDCG", "AP", "RR", "ERR(max=5)", "AUC", "P(rel=2)", "NumRel"} & need
    case = Case([1.0, 1.0], [1.0, 0.0], [])
    values = [
        engine.estimates(tw.Bpref, grouped).mean().expected
        for grouped in (case.grouped(), _without_zero(case.grouped()))
    ]
    assert values == [0.5, 1.0]


def test_the_weight_of_set_f_is_not_negative():
    """With one below 0, more relevant documents could lower it, and a minimum was above its maximum."""
    with pytest.raises(tw.MeasureError, match=r"x=-0.9 is not possible. It must be 0 or more"):
        tw.SetF(x=-0.9)
    assert tw.SetF(x=0).of("100|1").expected == pytest.approx(1 / 3)  # precision


@pytest.mark.parametrize("size, cutoff", [(5000, None), (5000, 3200), (700, 20)])
def test_the_std_of_err_does_not_miss_rare_orders(size, cutoff):
    """Two relevant documents among thousands: x·w_i + y·w_j for all slots i < j, and the gains in both orders."""
    worth = np.where(np.arange(size) < (cutoff or size), 1 / np.arange(1.0, size + 1), 0.0)
    after, before = np.arange(size)[::-1], np.arange(size)
    mean = square = 0.0
    for first, second in ((1 / 16, 7 / 16), (7 / 16, 1 / 16)):
        x, y = first, (1 - first) * second
        mean += (x * after + y * before) @ worth / 2
        square += (x**2 * after + y**2 * before) @ worth**2 / 2
        square += x * y * worth[1:] @ np.cumsum(worth)[:-1]
    mean, square = mean / math.comb(size, 2), square / math.comb(size, 2)
    run = {"q": {f"d{i}": 1.0 for i in range(size)}}
    found = tw.evaluate({"q": {"d0": 1, "d1": 3}}, run, tw.ERR @ cutoff, complete=True)[tw.ERR @ cutoff]
    assert found.method["std"] == "exact"
    assert found.expected == pytest.approx(mean, rel=1e-12)
    assert found.std == pytest.approx(math.sqrt(square - mean**2), rel=1e-10)
