"""Measures without a closed form: enumerated where ties have few arrangements, else sampled."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle
import tiewise as tw
from cases import Case, cases
from tiewise.errors import MeasureError
from tiewise.metrics import engine, enumeration
from tiewise.metrics.definition import Law, ListMeasure, Measure, Sampling, param
from tiewise.metrics.grouped_judgments import GroupedJudgments
from tiewise.ties.orders import RandomPlaces

FIELDS = ("expected", "minimum", "maximum", "std", "oblivious")


class ListAP(ListMeasure):
    """AP, by its definition for one list."""

    rel: float = param(1)

    def of_gains(self, gains, ideal):
        ranks = np.flatnonzero(gains) + 1
        n = np.count_nonzero(ideal)
        return float(np.sum(np.arange(1, len(ranks) + 1) / ranks)) / n if n else 0.0


class OpenDCG(Measure):
    """DCG, as if there were no closed form for it."""

    sorted_extremes = False

    def gain(self, label):
        return np.maximum(label, 0.0)

    def payoff(self, rank, seen):
        return 1 / np.log2(rank + 1)

    def law(self, block):
        return Law(super().law(block).mean * np.nan)


NAMES = {ListAP: "AP", OpenDCG: "DCG"}


@pytest.mark.parametrize("measure", NAMES, ids=NAMES.values())
@settings(max_examples=60, deadline=None)
@given(case=cases(), cutoff=st.one_of(st.none(), st.integers(1, 9)))
def test_enumerated_statistics_equal_those_of_the_oracle(measure, case, cutoff):
    found = engine.estimates(measure(cutoff=cutoff), case.grouped("given"), oblivious="given").mean()
    truth = oracle.estimate(NAMES[measure], case.scores, case.labels, case.unretrieved, cutoff)
    assert found.method == {"expected": "exact", "extremes": "exact", "std": "exact"}
    for field in FIELDS:
        assert math.isclose(getattr(found, field), getattr(truth, field), rel_tol=1e-12, abs_tol=1e-12), field


@pytest.mark.parametrize("cutoff", [None, 15])
@pytest.mark.parametrize("measure", NAMES, ids=NAMES.values())
def test_sampled_statistics_agree_with_the_closed_form(measure, cutoff):
    rng = np.random.default_rng(0)
    labels = [float(x) for x in rng.integers(0, 3, 30)]
    case = Case([float(x) for x in rng.integers(0, 2, 30)], labels, [1.0])
    exact = engine.estimates(tw.measures()[NAMES[measure]] @ cutoff, case.grouped()).mean()
    found = engine.estimates(measure(cutoff=cutoff), case.grouped(), sampling=Sampling(2000, 1)).mean()
    assert found.method == {"expected": "sampled", "extremes": "sampled", "std": "sampled"}
    assert abs(found.expected - exact.expected) < 4 * found.standard_error
    assert found.standard_error == pytest.approx(exact.std / math.sqrt(2000), rel=0.1)
    assert found.std == pytest.approx(exact.std, rel=0.1)
    assert found.minimum >= exact.minimum - 1e-12 and found.maximum <= exact.maximum + 1e-12
    assert repr(found).startswith(f"{found.measure} ~{found.expected:.4f} [~")


class Rare(ListMeasure):
    """Whether the relevant documents stand at ranks 2, 3, 4, …: one order in nearly 850 million of those below."""

    def of_gains(self, gains, ideal):
        return float(gains[1 : 1 + np.count_nonzero(ideal)].all())


def test_samples_that_agree_by_chance_are_not_called_exact():
    case = Case([1.0] * 40, [1.0] * 10 + [None] * 30, [])
    found = engine.estimates(Rare(), case.grouped(), sampling=Sampling(50, 0)).mean()
    assert found.minimum == found.maximum == found.expected == 0  # as all samples are
    assert found.method == {"expected": "sampled", "extremes": "sampled", "std": "sampled"}
    assert found.standard_error == 0 and f"{found:.1f}" == "~0.0"


def test_more_kinds_than_a_small_integer_counts():
    labels = [0.01 * (place + 1) for place in range(200)]
    found = engine.estimates(tw.BPM(max_rel=2) @ 1, Case([1.0] * 200, labels, []).grouped()).mean()
    values = [oracle.value("BPM", [label], [], 1, max_rel=2) for label in labels]
    assert found.method["expected"] == "exact"
    assert found.expected == pytest.approx(math.fsum(values) / 200, abs=1e-12)
    assert (found.minimum, found.maximum) == pytest.approx((min(values), max(values)), abs=1e-12)


def many(queries: list[str]) -> tuple[dict, dict]:
    docs = [f"d{i}" for i in range(24)]
    judged = {q: {d: (i + len(q)) % 3 for i, d in enumerate(docs)} for q in queries}
    return judged, {q: dict.fromkeys(docs, 1.0) for q in queries}


@pytest.fixture
def list_ap():
    from tiewise.metrics import names

    yield tw.measure(ListAP)
    del names._registry["ListAP"]
    names._aliases.pop("listap", None)


def test_a_query_is_sampled_in_the_same_way_whatever_the_other_queries_are(list_ap):
    one, all_queries = (tw.evaluate(*many(q), list_ap, complete=True) for q in (["aa"], ["b", "aa", "ccc"]))
    assert one.per_query(list_ap)["aa"] == all_queries.per_query(list_ap)["aa"]
    other = tw.evaluate(*many(["aa"]), list_ap, complete=True, seed=1)
    assert other[list_ap].expected != one[list_ap].expected
    errors = [e.standard_error for e in all_queries.per_query(list_ap).values()]
    assert all_queries[list_ap].standard_error == pytest.approx(math.hypot(*errors) / 3)


def test_a_mean_carries_the_weakest_word_of_its_queries(list_ap):
    judged, run = many(["long"])
    judged["short"], run["short"] = {"a": 1, "b": 0}, {"a": 1.0, "b": 1.0}
    report = tw.evaluate(judged, run, list_ap, complete=True, samples=50)
    words = {query: e.method["expected"] for query, e in report.per_query(list_ap).items()}
    assert words == {"long": "sampled", "short": "exact"}
    assert report[list_ap].method["expected"] == "sampled"
    assert any("~" in note and "standard error" in note for note in report.notes)
    assert report.per_query(list_ap)["short"].standard_error is None


def test_lists_without_a_closed_form_are_compared(list_ap):
    judged, tied = many(["aa", "b"])
    first = {q: {d: float(-i) for i, d in enumerate(docs)} for q, docs in tied.items()}
    for orders in ("independent", "per-query", "shared"):
        mine = tw.compare(judged, {"A": tied, "B": first}, list_ap, complete=True, orders=orders).pair("A", "B")
        ours = tw.compare(judged, {"A": tied, "B": first}, "AP", complete=True, orders=orders).pair("A", "B")
        assert mine.difference.expected == pytest.approx(ours.difference.expected, abs=0.02)
        assert mine.probability == pytest.approx(ours.probability, abs=0.05)


@pytest.mark.parametrize(("size", "n_judged"), [(6, 4), (400, 3), (5, 1), (1000, 30)])
def test_random_orders_are_uniform(size, n_judged):
    one, n = np.ones(1, dtype=np.int64), 4000
    places = RandomPlaces(one.astype(np.uint64), size * one, n_judged * one, seed=3)
    drawn = np.array([places.draw(number) for number in range(n)])
    assert all(len(set(row)) == n_judged for row in drawn.tolist())
    assert drawn.min() >= 0 and drawn.max() < size
    error = size / math.sqrt(12 * n)
    assert np.abs(drawn.mean(axis=0) - (size - 1) / 2).max() < 5 * error
    if n_judged > 1:  # two documents: each is first half of the time
        assert abs((drawn[:, 0] < drawn[:, 1]).mean() - 0.5) < 5 * 0.5 / math.sqrt(n)


def test_few_orders_are_drawn_of_very_many_documents(monkeypatch):
    monkeypatch.setattr(enumeration, "MOVED_DOCUMENTS", 1000)
    ties = tw.notation("(" + "1" * 20 + "-" * 20 + ")")
    found = engine.estimates(ListAP(), GroupedJudgments(ties)).mean()
    assert found.standard_error == pytest.approx(found.std / math.sqrt(enumeration.MIN_SAMPLES))


@pytest.mark.parametrize("wrong", [{"samples": 1}, {"samples": 2.5}, {"seed": -1}, {"samples": True}])
def test_bad_sampling(wrong):
    with pytest.raises(tw.InputError, match=f"{next(iter(wrong))} is a whole number"):
        tw.evaluate({"q": {"a": 1}}, {"q": {"a": 1.0}}, "AP", **wrong)


def test_the_error_for_a_plain_function_says_what_to_write():
    with pytest.raises(
        MeasureError, match=r"^first_rank is a function\. Make a class .* tiewise\.ListMeasure.*of_gains"
    ):

        @tw.measure
        def first_rank(gains):
            return 1.0

    with pytest.raises(MeasureError, match=r"inherit from tiewise\.Measure or tiewise\.ListMeasure\.$"):
        tw.measure(int)
