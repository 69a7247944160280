"""evaluate() and its Report: means, options, provenance, what other tools would print, lists that were cut."""

from __future__ import annotations

import gc
import importlib.util
import itertools
import json
import math
import pickle
import random
import subprocess
import sys
import warnings
import weakref
from collections.abc import Mapping
from fractions import Fraction
from math import comb

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import oracle
import tiewise as tw
from cases import MEASURES, cases
from tiewise.errors import CutWarning, InputError, MeasureError
from tiewise.io import as_run
from tiewise.metrics import names as registry

ALL = [measure for measure, _ in MEASURES]
#: Those with a closed form: the others are enumerated or sampled, which takes longer.
CLOSED = [measure for measure in ALL if measure.additive and measure.sorted_extremes]


def evaluate(*args, **options):
    """evaluate() of lists declared complete, so that small examples do not warn."""
    return tw.evaluate(*args, **({"complete": True} | options))


def random_case(seed: int, queries: int = 12, grades: int = 4):
    rng = random.Random(seed)
    docs = [f"d{i:02d}" for i in range(25)]
    qrels = {f"q{i}": {d: rng.choice(range(grades)) for d in rng.sample(docs, 8)} for i in range(queries)}
    run = {f"q{i}": {d: rng.choice([0.1, 0.2, 0.3]) for d in rng.sample(docs, 12)} for i in range(queries)}
    return qrels, run


def test_the_mean_over_queries():
    """Mean of E, of the extremes, std of the mean = √ΣVar / n: by hand from the per-query values."""
    qrels, run = random_case(0)
    report = evaluate(qrels, run, [*CLOSED, tw.infAP, tw.nDCGRel, tw.IPrec])
    for measure in report.measures:
        mean, single = report[measure], list(report.per_query(measure).values())
        n = 1 if measure.total else len(single)
        for field in ("expected", "minimum", "maximum", "oblivious"):
            assert getattr(mean, field) == pytest.approx(math.fsum(getattr(e, field) for e in single) / n, abs=1e-13)
        assert mean.std == pytest.approx(math.sqrt(math.fsum(e.std**2 for e in single)) / n, abs=1e-13)


@pytest.mark.filterwarnings("ignore::tiewise.CutWarning")
@pytest.mark.parametrize("untied", [0.0, 0.8])
def test_many_queries_at_once_are_each_of_them_alone(untied):
    """Tie groups of one document to thousands, worked through in blocks of like size, against one query at a time;
    and with a few tied lists, which are worked through apart, among many untied ones."""
    rng = np.random.default_rng(5)
    qrels, run = {}, {}
    for i in range(40):
        n = int(rng.choice([1, 2, 5, 17, 40, 120, 900]))
        kinds = int(rng.integers(1, 12))
        docs = [f"d{j}" for j in range(n)]
        scores = rng.permutation(n) if rng.random() < untied else rng.integers(0, kinds, n)
        run[f"q{i}"] = dict(zip(docs, (scores / 7).tolist(), strict=True))
        judged = rng.choice(docs, size=int(rng.integers(1, n + 1)), replace=False)
        qrels[f"q{i}"] = {d: float(rng.choice([0, 0, 1, 2, 0.5, -1, 3])) for d in judged} | {"x": 1.0}
    rest = [tw.infAP, tw.SetAP, tw.INST, tw.Compat, tw.BPM]
    measures = [m @ k for m in [*CLOSED, *rest] for k in ((7, 100) if m.takes_cutoff else (None,))]
    options = {"oblivious": "given", "complete": not untied, "samples": 20}
    together = tw.evaluate(qrels, run, measures, **options)
    for query in qrels:
        alone = tw.evaluate({query: qrels[query]}, {query: run[query]}, measures, **options)
        for measure in measures:
            a, b = together.per_query(measure).get(query), alone.per_query(measure).get(query)
            if a is None:  # not defined for this query
                assert b is None
                continue
            assert (a.cut or (a.expected,) * 2) == pytest.approx(b.cut or (b.expected,) * 2, rel=1e-12, abs=1e-14)
            for field in ("expected", "minimum", "maximum", "std", "oblivious", "residual"):
                one, other = getattr(a, field), getattr(b, field)
                assert one == other or one == pytest.approx(other, rel=1e-12, abs=1e-14), (measure, field)


def columns(found) -> list:
    """All columns of the estimates of a measure, as bytes."""
    names = ("expected", "minimum", "maximum", "variance", "oblivious", "residual")
    each = [getattr(found, name) for name in names] + list(found.cut or [None])
    return [found.queries, *(None if column is None else column.tobytes() for column in each)]


@pytest.mark.filterwarnings("ignore::tiewise.CutWarning")
@pytest.mark.parametrize(
    "options", [{}, {"depth": 12}, {"oblivious": None}, {"missing": "skip", "no_relevant": "skip"}]
)
def test_many_measures_together_are_each_of_them_alone(options):
    measures = list(dict.fromkeys(cut for one in CLOSED for cut in (one, one @ 5 if one.takes_cutoff else one)))
    for seed in range(2):
        qrels, run = random_case(seed, queries=6)
        together = tw.evaluate(qrels, run, measures, **options, samples=20)
        for measure in measures:
            alone = tw.evaluate(qrels, run, measure, **options, samples=20)
            assert columns(together.per_query(measure)) == columns(alone.per_query(measure)), measure
            assert together[measure] == alone[measure]


@pytest.mark.filterwarnings("ignore::tiewise.CutWarning")
@pytest.mark.parametrize("options", [{}, {"depth": 12}])
def test_bounds_for_truncated_lists_of_many_measures_together_are_those_of_each_alone(options):
    """Measures that are computed together have the same documents in the last groups, by label; alone, by gain."""
    measures = list(dict.fromkeys(cut for one in CLOSED for cut in (one, one @ 5 if one.takes_cutoff else one)))
    compared = 0
    for seed in range(4):
        qrels, run = random_case(seed, queries=6)
        together = tw.evaluate(qrels, run, measures, **options, samples=20)
        for measure in measures:
            alone = tw.evaluate(qrels, run, measure, **options, samples=20)
            one, other = together.per_query(measure), alone.per_query(measure)
            assert (one.cut is None) == (other.cut is None)
            if one.cut is not None:
                np.testing.assert_allclose(one.cut, other.cut, rtol=1e-12, atol=1e-14, err_msg=str(measure))
                compared += bool((one.cut[1] > one.cut[0]).any())
    assert compared > len(measures)


def test_measures_that_look_into_tie_groups_of_different_queries():
    """One rank of one tie group each, but Rprec looks into that of the first query, and P@2 into that of the second."""
    qrels = {"1": {"a": 1, "x": 1, "y": 1}, "2": {"c": 1}}
    run = {"1": {"p": 3, "q": 2, "a": 1, "b": 1, "z": 0}, "2": {"p": 3, "c": 1, "d": 1, "z": 0}}
    together = evaluate(qrels, run, ["Rprec", "P@2"])
    assert [one.expected for one in together.per_query("Rprec").values()] == [pytest.approx(1 / 6), 0.0]
    assert [one.expected for one in together.per_query("P@2").values()] == [0.0, 0.25]


@pytest.mark.parametrize("lowest", [0, 1], ids=["with label 0", "without label 0"])
def test_judgments_that_served_other_runs_give_the_same(lowest):
    qrels, run = random_case(0)
    qrels = {query: {doc: max(label, lowest) for doc, label in docs.items()} for query, docs in qrels.items()}
    _, other = random_case(1)
    kept = tw.Qrels.from_dict(qrels)
    measures = ["nDCG", "nDCG@3", "R@5", "AP", "RR(rel=2)", "Bpref", "P@2", "ERR@4", "RBP(phi=0.8)"]
    for options in ({}, {"judged_only": True}, {"depth": 3}, {"no_relevant": "skip"}):
        evaluate(kept, other, measures, **options)
        again, fresh = evaluate(kept, run, measures, **options), evaluate(qrels, run, measures, **options)
        for measure in again:
            assert columns(again.per_query(measure)) == columns(fresh.per_query(measure))


@pytest.mark.parametrize("labels", [(1, 0), (1, 1)], ids=["with label 0", "without label 0"])
def test_what_is_prepared_for_judgments_is_kept_and_read_only(labels):
    kept, run = tw.Qrels.from_dict({"q": dict(zip("ab", labels, strict=True))}), {"q": {"a": 1.0, "b": 2.0}}
    evaluate(kept, run, "R@5")
    again = kept.nonzero.derived(("relevant", tw.parse("R@5")), lambda: pytest.fail("it was computed twice"))
    assert again.tolist() == [sum(labels)]

    class Changes(tw.Measure):
        """It changes what it gets."""

        def divisor(self, q):
            relevant = q.relevant(tw.parse("R@5"))
            relevant += 1
            return relevant

    with pytest.raises(ValueError, match="read-only"):
        evaluate(kept, run, [Changes()])


def test_the_spread_of_labels_that_are_nearly_equal():
    for low, high in ((0.95, 0.9500001), (1000.0, 1000.001), (1e9, 1e9 + 1)):
        found = evaluate({"q": {"a": low, "b": high}}, {"q": {"a": 1.0, "b": 1.0}}, "DCG@1")["DCG@1"]
        assert found.std == pytest.approx((high - low) / 2, rel=1e-9)


@settings(max_examples=60)
@given(case=cases(), exponent=st.integers(-1000, 1020), cutoff=st.one_of(st.none(), st.integers(1, 8)))
def test_ndcg_does_not_depend_on_the_unit_of_linear_labels(case, exponent, cutoff):
    """However large or small: another query of plain labels stands beside, and none of the two changes the other."""
    scaled = {d: label * 2.0**exponent for _, d, label in case.qrels}
    measure = tw.nDCG @ cutoff
    run = dict(zip(case.docs, case.scores, strict=True))
    found = evaluate({"q": scaled, "p": {"a": 1, "b": 2}}, {"q": run, "p": {"a": 1.0, "b": 1.0}}, measure)
    truth = oracle.estimate("nDCG", case.scores, case.labels, case.unretrieved, cutoff)
    plain = oracle.estimate("nDCG", [1, 1], [1, 2], (), cutoff)
    for query, want in (("q", truth), ("p", plain)):
        for field in ("expected", "minimum", "maximum", "std"):
            assert getattr(found.per_query(measure)[query], field) == pytest.approx(getattr(want, field), abs=1e-12)


def test_labels_near_the_largest_number():
    qrels, run = {"q": {"a": 1e308, "b": 5e307, "c": 1e308}}, {"q": {"b": 3.0, "a": 2.0, "c": 2.0, "d": 1.0}}
    report = evaluate(qrels, run, "nDCG")
    assert report["nDCG"].expected == pytest.approx(oracle.value("nDCG", [0.5, 1, 1]))
    assert (report["nDCG"].std, report.notes) == (0.0, ())
    with pytest.raises(MeasureError, match=r"DCG: a gain of 1e\+308 is too large to be added up. .*nDCG"):
        evaluate(qrels, run, "DCG")


@pytest.mark.parametrize("label", [300, 700, 1023])
def test_exponential_gains_of_large_labels(label):
    """2^label − 1 is as good as 2^label here, so that only differences of labels matter."""
    qrels, run = {"q": {"a": label - 1, "b": label, "c": label - 2}}, {"q": {"a": 2.0, "x": 1.0, "b": 1.0, "c": 0.5}}
    measure = tw.nDCG(gains="exp")
    found, truth = evaluate(qrels, run, measure)[measure], oracle.estimate("nDCG", [2, 1, 1, 0.5], [2, None, 4, 1])
    for field in ("expected", "minimum", "maximum", "std"):
        assert getattr(found, field) == pytest.approx(getattr(truth, field), rel=1e-12)


@pytest.mark.parametrize("name", ["nDCG", "DCG"])
def test_exponential_gains_end_at_a_label_of_1023(name):
    measure = tw.measures()[name](gains="exp")
    with pytest.raises(MeasureError, match=r"A label of 1023[.]5 is too large for a gain of 2"):
        evaluate({"q": {"a": 1023.5}}, {"q": {"a": 1.0}}, measure)


@pytest.mark.parametrize(("oblivious", "order"), [("trec_eval", "desc"), ("docid-asc", "asc"), ("given", "given")])
def test_the_oblivious_value_is_that_of_the_sorted_list(oblivious, order):
    qrels, run = random_case(1)
    report = evaluate(qrels, run, ["nDCG@5", "AP", "RR", "Bpref"], oblivious=oblivious)
    for query, listed in run.items():
        docs = list(listed)
        if order != "given":
            docs.sort(reverse=order == "desc")
        docs.sort(key=lambda d: -listed[d])
        ranked = [qrels[query].get(d) for d in docs]
        rest = [label for d, label in qrels[query].items() if d not in listed]
        for name, k in (("nDCG", 5), ("AP", None), ("RR", None), ("Bpref", None)):
            full = f"{name}@{k}" if k else name
            assert report.per_query(full)[query].oblivious == pytest.approx(
                oracle.value(name, ranked, rest, k), abs=1e-12
            )


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_renaming_and_shuffling_change_nothing_but_oblivious(seed):
    rng = random.Random(seed)
    qrels, run = random_case(seed % 50, queries=3)
    new = {f"d{i:02d}": f"x{n}" for i, n in enumerate(rng.sample(range(25), 25))}
    renamed = {q: {new[d]: s for d, s in rng.sample(list(docs.items()), len(docs))} for q, docs in run.items()}
    labels = {q: {new[d]: s for d, s in docs.items()} for q, docs in qrels.items()}
    before, after = evaluate(qrels, run, CLOSED), evaluate(labels, renamed, CLOSED)
    for measure in before.measures:
        for field in ("expected", "minimum", "maximum", "std"):
            assert getattr(before[measure], field) == pytest.approx(getattr(after[measure], field), abs=1e-14)


def test_queries_that_are_missing_or_not_judged():
    qrels = {"a": {"d": 1}, "b": {"d": 1}, "c": {"d": 0}}
    run = {"a": {"d": 1.0}, "c": {"d": 1.0}, "z": {"d": 1.0}}
    report = evaluate(qrels, run, "RR")
    assert report["RR"].expected == pytest.approx(1 / 3)
    found = report.provenance
    assert (found.judged_queries, found.retrieved_queries, found.missing_queries) == (3, 2, 1)
    assert (found.unjudged_queries, found.queries_without_relevant) == (1, 1)
    assert evaluate(qrels, run, "RR", missing="skip")["RR"].expected == 0.5
    assert evaluate(qrels, run, "RR", missing="skip", no_relevant="skip")["RR"].expected == 1.0
    assert set(evaluate(qrels, run, "RR", missing="skip").per_query("RR")) == {"a", "c"}
    with pytest.raises(InputError, match="1 judged query is missing from the run: 'b'"):
        evaluate(qrels, run, "RR", missing="error")
    assert any(note == "1 judged query is missing from the run and counted as 0." for note in report.notes)
    with pytest.raises(InputError, match="missing is"):
        evaluate(qrels, run, "RR", missing="drop")


def test_nothing_in_common_shows_ids_of_both():
    with pytest.raises(InputError, match=r"no query in common.*'7'.*'q1', 'q2'"):
        evaluate({"q1": {"d": 1}, "q2": {"d": 1}}, {"7": {"d": 1.0}}, "RR")
    with pytest.raises(InputError, match=r"no document in common.*'D1'.*'d1'"):
        evaluate({"q": {"d1": 1}, "p": {"d1": 1}}, {"q": {"D1": 1.0}, "p": {"D1": 1.0}}, "RR")
    shifted = {"q": {"b": 1.0, "x": 0.5}, "p": {"x": 1.0}}
    with pytest.raises(InputError, match=r"No list holds a document judged for its query.*\(distances=True\), or"):
        evaluate({"q": {"a": 1}, "p": {"b": 1}}, shifted, "RR")
    with pytest.raises(InputError, match="qrels are empty"):
        evaluate({}, {"q": {"d": 1.0}}, "RR")
    with pytest.raises(InputError, match="run is empty"):
        evaluate({"q": {"d": 1}}, {}, "RR")


def test_most_queries_without_a_judged_document_are_pointed_out():
    qrels = {f"q{i}": {"a": 1} for i in range(5)}
    run = {f"q{i}": {"a" if i == 0 else "A": 1.0} for i in range(5)}
    assert any(
        "In 4 of 5 queries no judged document was retrieved" in note for note in evaluate(qrels, run, "RR").notes
    )
    with pytest.raises(InputError, match="no document in common"):
        evaluate(qrels, {f"q{i}": {"A": 1.0} for i in range(5)}, "RR", judged_only=True)


def test_queries_without_a_relevant_document_are_counted_for_each_measure():
    qrels, run = {"q": {"a": 0.5}, "p": {"a": 1}}, {"q": {"a": 1.0}, "p": {"a": 1.0}}
    report = evaluate(qrels, run, ["nDCG@5", "P@5", "Judged@5"], no_relevant="skip")
    assert [len(report.per_query(m)) for m in report.measures] == [2, 1, 1]
    assert "1 query has no relevant document for P@5, Judged@5: left out." in report.notes


def test_a_dictionary_that_changes_after_it_was_evaluated():
    run = {"q": {"a": 1.0, "b": 1.0}}
    report = evaluate({"q": {"a": 1}}, run, "RR", complete=True)
    before = report.oblivious_by_tool()
    run["q"]["c"] = 5.0
    assert report.oblivious_by_tool() == before and report.at("P@1")["P@1"].expected == 0.5


def test_one_query_whose_relevant_document_was_not_found_is_no_mistake():
    assert evaluate({"q": {"d": 1}}, {"q": {"x": 1.0}}, "RR")["RR"].expected == 0.0


def test_score_dtype_makes_ties_and_says_how_many():
    qrels, run = {"q": {"a": 1}}, {"q": {"a": 0.123456789, "b": 0.123456788}}
    assert evaluate(qrels, run, "RR")["RR"].range == 0
    report = evaluate(qrels, run, "RR", score_dtype="float32")
    assert report["RR"].expected == 0.75
    assert report.provenance.new_ties == 2
    assert any("2 more rows are tied" in note for note in report.notes)
    assert evaluate(qrels, run, "RR", score_dtype="decimal:2")["RR"].range == 0.5


@pytest.mark.parametrize(("measure", "params"), [(m, params) for m, params in MEASURES if m.takes_depth], ids=str)
@settings(max_examples=30)
@given(case=cases(most=6), depth=st.integers(1, 6), cutoff=st.one_of(st.none(), st.integers(1, 8)))
def test_depth_is_a_cut_of_every_order(measure, params, case, depth, cutoff):
    """Ranks past the depth do not count, in each order separately: enumerated."""
    measure = measure @ cutoff if measure.takes_cutoff else measure

    def value(ranked):
        lost = [label for label in ranked[depth:] if label is not None]
        return oracle.value(measure.stem, ranked[:depth], [*case.unretrieved, *lost], measure.cutoff, **params)

    found = evaluate(case.qrels, case.run, measure, depth=depth, oblivious="given")[measure]
    values = [value(ranked) for ranked in oracle.orders(case.scores, case.labels)]
    values = [one for one in values if not math.isnan(one)]
    if not values:
        assert found.expected is None
        return
    given_order = sorted(range(len(case.scores)), key=lambda i: -case.scores[i])
    assert found.expected == pytest.approx(math.fsum(values) / len(values), abs=1e-12)
    assert (found.minimum, found.maximum) == pytest.approx((min(values), max(values)), abs=1e-12)
    assert found.std == pytest.approx(float(np.std(values)), abs=1e-12)
    oblivious = value([case.labels[i] for i in given_order])
    assert found.oblivious == (None if math.isnan(oblivious) else pytest.approx(oblivious, abs=1e-12))


def test_bpref_of_a_large_group_that_a_depth_cuts():
    """All 9,880 places of two relevant and one non-relevant document among 40, of which 17 are seen."""
    docs = [f"d{i:02d}" for i in range(40)]
    qrels = {"q": {"d00": 1, "d01": 1, "d02": 0, "z": 1, "y": 0, "w": 0}}
    found = evaluate(qrels, {"q": dict.fromkeys(docs, 1.0)}, "Bpref", depth=17)["Bpref"]
    values = []
    for a, b, other in itertools.permutations(range(40), 3):
        if a < b:
            values.append(sum(1 - (other < place) / 3 for place in (a, b) if place < 17) / 3)
    assert found.expected == pytest.approx(np.mean(values), rel=1e-13)
    assert found.std == pytest.approx(np.std(values), rel=1e-12)


def test_measures_of_whole_tie_groups_refuse_a_depth_inside_one():
    with pytest.raises(MeasureError, match=r"AUC looks at whole tie groups.*depth 1.*1 query[.]"):
        evaluate({"q": {"a": 1}}, {"q": {"a": 1.0, "b": 1.0}}, "AUC", depth=1)
    with pytest.raises(InputError, match="depth"):
        evaluate({"q": {"a": 1}}, {"q": {"a": 1.0}}, "RR", depth=0)


def test_judged_only_is_the_condensed_list():
    qrels = {"q": {"a": 1, "b": 0}}
    run = {"q": {"x": 3.0, "b": 2.0, "y": 2.0, "a": 1.0}}
    assert evaluate(qrels, run, "RR")["RR"].expected == 0.25
    assert evaluate(qrels, run, "RR", judged_only=True)["RR"].expected == 0.5


def test_judged_only_takes_negative_labels_out_too(tmp_path):
    """As trec_eval -J: they are no judgments of relevance. What is left of n, x, b, a is b, a."""
    qrels, run = {"q": {"a": 1, "b": 0, "n": -1}}, {"q": {"n": 4.0, "x": 3.0, "b": 2.0, "a": 1.0}}
    file = tmp_path / "run.trec"
    tw.write_run(tw.Run.from_dict(run), file)
    for form in (run, tw.Run.from_dict(run), file):
        report = evaluate(qrels, form, ["RR", "NumRet"], judged_only=True)
        assert (report["RR"].expected, report["NumRet"].expected) == (0.5, 2.0)


def test_a_relevance_level_of_0_takes_all_that_was_judged_from_0_on():
    """As trec_eval -l 0: a label of 0 is relevant, one below 0 is not, and neither is an unjudged document."""
    qrels, run = {"q": {"a": 1, "b": 0, "n": -1, "z": 0}}, {"q": {"a": 4.0, "x": 3.0, "b": 2.0, "n": 1.0}}
    report = evaluate(qrels, run, ["P(rel=0)@4", "R(rel=0)", "NumRel(rel=0)", "AP(rel=0)"])
    assert [report[m].expected for m in report] == pytest.approx([2 / 4, 2 / 3, 3, (1 + 2 / 3) / 3])
    assert repr(tw.unjudged(qrels, run, "P(rel=0)@2", complete=True)) == "P(rel=0)@2 from 0.5000 to 1.0000"
    with pytest.raises(MeasureError, match=r"rel=-0[.]5 is not possible"):
        tw.P(rel=-0.5)


# -- lists that were cut inside a tie group ------------------------------------------------------------------------


def test_a_list_that_ends_in_a_tie_warns_once_with_bounds():
    qrels = {"q": {"a": 1, "b": 1, "z": 1}, "p": {"a": 1}}
    run = {"q": {"a": 2.0, "b": 1.0, "c": 1.0, "d": 1.0}, "p": {"a": 2.0, "c": 1.0}}
    with pytest.warns(CutWarning, match="^1 of 2 lists may have been cut") as caught:
        report = tw.evaluate(qrels, run, ["RR", "R@3", "P@1"])
    assert len(caught) == 1
    assert report["P@1"].cut is None  # it does not look that far
    low, high = report.per_query("R@3")["q"].cut
    # Of three ranks of the group two count. They hold what is not relevant, or b and z.
    assert (low, high) == pytest.approx((1 / 3, 1.0))
    assert report.per_query("R@3")["p"].cut == (1.0, 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert tw.evaluate(qrels, run, ["RR", "R@3"], complete=True)["R@3"].cut is None


def test_a_list_cut_after_one_document_of_a_tie_group():
    """a > (b c), written to depth 2 as a, c: nothing ties in the list, but its next document may."""
    qrels = {f"q{i}": {"b": 1, "c": 0} for i in range(6)}
    run = {query: {"a": 2.0, "c": 1.0} for query in qrels}
    report = tw.evaluate(qrels, run, ["RR@2", "P@1"])
    assert report["RR@2"].cut == (0.0, 0.5)  # in truth .25
    assert report["P@1"].cut is None and not report.notes  # no score ties in this run: a cut is not likely
    assert tw.evaluate(qrels, run, "RR@2", complete=True)["RR@2"].cut is None
    short = {"q0": {"a": 2.0}, "q1": {"a": 2.0}} | {query: run[query] for query in ("q2", "q3", "q4", "q5")}
    assert tw.evaluate(qrels, short, "RR@2")["RR@2"].cut is None  # lists of other lengths were not truncated
    two = {query: run[query] for query in ("q0", "q1")}
    assert tw.evaluate(qrels, two, "RR@2", missing="skip")["RR@2"].cut is None


def test_lists_of_judged_candidates_do_not_look_truncated():
    qrels = {f"q{i}": {"a": 1, "b": 0, "c": 0} for i in range(6)}
    run = {query: {"b": 3.0, "a": 2.0, "c": 1.0} for query in qrels}
    assert tw.evaluate(qrels, run, "AP")["AP"].cut is None
    more = {query: labels | {"z": 1} for query, labels in qrels.items()}
    assert tw.evaluate(more, run, "AP")["AP"].cut is not None


@pytest.mark.parametrize("k", [3, 5])
def test_truncated_runs_hold_the_true_expectation(k):
    """Lists of many ties, cut at k in a random order of ties: the expectation of the whole lists at k is known."""
    rng = np.random.default_rng(k)
    names = ["nDCG", "AP", "RR", "P@3", "R", "RBP(p=0.8)", "Bpref"]
    for _ in range(20):
        qrels = {f"q{i}": {f"d{j}": int(rng.integers(0, 3)) for j in range(9)} for i in range(8)}
        whole = {query: {doc: float(rng.integers(0, 4)) for doc in labels} for query, labels in qrels.items()}
        cut = {}
        for query, scores in whole.items():
            order = sorted(scores, key=lambda doc: (-scores[doc], rng.random()))
            cut[query] = {doc: scores[doc] for doc in order[:k]}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CutWarning)
            found = tw.evaluate(qrels, cut, names)
        depth = [name for name in names if name != "Bpref"]  # it looks at whole tie groups
        truth = tw.evaluate(qrels, whole, depth, depth=k, complete=True)
        for name in depth:
            for query, estimate in found.per_query(name).items():
                low, high = estimate.cut or (estimate.expected, estimate.expected)
                assert low - 1e-12 <= truth.per_query(name)[query].expected <= high + 1e-12


def test_cuts_are_noted_only_where_they_are_likely_and_show():
    qrels = {f"q{i}": {"d0": 1, "x": 1} for i in range(20)}
    untied = {query: {f"d{j}": 10.0 - j for j in range(10)} for query in qrels}
    report = tw.evaluate(qrels, untied, "R")
    assert report["R"].cut == (0.5, 1.0) and not report["R"].cut_likely and report["R"].open_cut is None
    assert not report.notes and "°" not in report.to_markdown()
    tied = {query: {doc: float(score // 2) for doc, score in scores.items()} for query, scores in untied.items()}
    with pytest.warns(CutWarning, match=r"R .500 – 1.000"):
        report = tw.evaluate(qrels, tied, "R")
    assert report["R"].cut_likely and ".500° |" in report.to_markdown()
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # RR changes in the fourth digit at most: nothing that is shown
        many = {f"q{i}": {f"r{i}": 1} for i in range(2000)}
        lists = {query: {"a": 2.0, "b": 2.0, "c": 1.0, "d": 1.0} for query in many}
        for query in list(many)[1:]:
            lists[query] = {f"r{query[1:]}": 2.0, "b": 2.0, "c": 1.0, "d": 0.5}
        report = tw.evaluate(many, lists, "RR")
    low, high = report["RR"].cut
    assert 0 < high - low < 0.0003 and report["RR"].cut_likely and not report.cut_note


def test_the_note_on_cut_lists_names_measures_without_bounds():
    qrels = {query: {"a": 1, "b": 2, "z": 1} for query in ("q", "p")}
    run = {query: {"a": 2.0, "b": 1.0, "c": 1.0} for query in qrels}
    with pytest.warns(CutWarning):
        report = tw.evaluate(qrels, run, ["AP", "Compat(normalize=False)", "G", "P@1"])
    assert report.without_bounds == ["Compat(normalize=False)", "G"]  # P@1 does not look so far
    assert "AP .333 – 1.000; no bounds for Compat(normalize=False) and G." in repr(report)
    with pytest.warns(CutWarning):
        both = tw.compare(qrels, {"A": run, "B": {"q": {"a": 1.0}}}, ["P@1", "G"])
    assert any("tie group: no bounds for G." in note for note in both.notes)
    assert tw.evaluate(qrels, run, "G", complete=True).without_bounds == []


#: Measures that a better document can lower, so that a cut leaves them anywhere in their range.
ANYWHERE = {"AUC": (0.0, 1.0), "Accuracy": (0.0, 1.0), "BPM": (0.0, 1.0), "Unj": (0.0, 1.0)}


@pytest.mark.parametrize("kind", [np.int64, np.int32, np.uint8])
def test_a_depth_may_be_a_whole_number_of_numpy(kind):
    qrels, run = {"q": {"a": 1}}, {"q": {"b": 2.0, "a": 1.0}}
    found, plain = (tw.evaluate(qrels, run, "RR", depth=depth) for depth in (kind(1), 1))
    assert found.to_json() == plain.to_json()
    for depth in (np.float64(5), np.int64(0), np.True_, "5"):
        with pytest.raises(tw.InputError, match="depth is a whole number of ranks from 1 on"):
            tw.evaluate(qrels, run, "RR", depth=depth)


@pytest.mark.parametrize(("measure", "params"), MEASURES, ids=map(str, ALL))
@settings(max_examples=8)
@given(case=cases(most=5), cutoff=st.one_of(st.none(), st.integers(1, 6)))
def test_a_cut_leaves_every_measure_within_its_bounds(measure, params, case, cutoff):
    """All that could have stood in the last tie group, and all ways to fill its ranks, enumerated."""
    assume(len(case.scores) > 1 and case.scores.count(min(case.scores)) > 1)
    measure = measure @ cutoff if measure.takes_cutoff else measure
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CutWarning)
        found = tw.evaluate(case.qrels, case.run, measure)[measure]
    if found.expected is None:  # not defined for this list
        return
    query = (measure.stem, case.scores, case.labels, case.unretrieved, measure.cutoff)
    expectations, fills = list(oracle.cut_expectations(*query, **params)), list(oracle.cut_fills(*query, **params))
    lowest = (measure.value_range or (0.0 if measure.sorted_extremes else math.nan,))[0]
    if found.cut is None and math.isnan(lowest):  # no bounds are known
        return
    if found.cut is None:  # it does not look so far down
        assert expectations == pytest.approx([found.expected] * len(expectations), abs=1e-12)
        return
    assert found.cut == pytest.approx(ANYWHERE.get(measure.stem, (min(fills), max(fills))), abs=1e-12)
    expectations = [one for one in expectations if not math.isnan(one)] or [found.expected]
    assert found.cut[0] - 1e-12 <= min(expectations) <= max(expectations) <= found.cut[1] + 1e-12
    assert found.cut[0] <= found.expected <= found.cut[1]


#: Measures whose bounds for condensed lists are valid, but not always reached: RBPresid has unjudged documents in them.
LOOSE = {*ANYWHERE, "RBPresid"}


@pytest.mark.parametrize(("measure", "params"), MEASURES, ids=map(str, ALL))
@settings(max_examples=6)
@given(case=cases(most=5), cutoff=st.one_of(st.none(), st.integers(1, 6)), option=st.booleans())
def test_a_cut_leaves_every_measure_of_condensed_lists_within_its_bounds(measure, params, case, cutoff, option):
    """Whole lists are truncated and then condensed: all ways to fill the last tie group, enumerated."""
    assume(len(case.scores) > 1 and case.scores.count(min(case.scores)) > 1)
    measure = measure @ cutoff if measure.takes_cutoff else measure
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CutWarning)
        condensed = measure if option else measure(judged_only=True)
        report = tw.evaluate(case.qrels, case.run, condensed, judged_only=option)
    found, bounds = report[condensed], report.per_query(condensed).cut
    if found.expected is None or (bounds is not None and np.isnan(bounds).any()):  # not defined, or no bounds known
        return
    query = (measure.stem, case.scores, case.labels, case.unretrieved, measure.cutoff)
    fills = [one for one in oracle.cut_fills(*query, **params, condensed=True) if not math.isnan(one)]
    if found.cut is None:  # it does not look so far down
        assert fills == pytest.approx([found.expected] * len(fills), abs=1e-12)
        return
    assert found.cut[0] - 1e-12 <= min(fills) and max(fills) <= found.cut[1] + 1e-12
    assert found.cut[0] <= found.expected <= found.cut[1]
    if measure.stem not in LOOSE:
        assert found.cut == pytest.approx((min(fills), max(fills)), abs=1e-12)


def test_a_cut_of_a_measure_whose_depth_depends_on_what_is_retrieved():
    class Found(tw.Measure):
        """The relevant documents in as many ranks as there are relevant documents in the list, over all of them."""

        def depth(self, q):
            return np.minimum(q.length, q.retrieved(self.gain(q.label)))

        def divisor(self, q):
            return q.relevant(self)

    qrels = {"q": dict.fromkeys(["d3", "d8", "d7", "d5", "d1"], 1) | {"d6": 2}}
    run = {"q": dict.fromkeys(["d0", "d3", "d1"], 3.0) | {"d9": 2.0} | dict.fromkeys(["d7", "d5", "d8", "d6"], 1.0)}
    estimate = tw.evaluate(qrels, run, Found())[Found()]
    # At worst the last group has no relevant document: two ranks count, and two of the first three are relevant. At
    # best it has four: six ranks count, of which the first three have two and the last two are relevant.
    assert estimate.cut == pytest.approx((4 / 3 / 6, 4 / 6), abs=1e-12)


def test_a_cut_is_bounded_for_measures_of_whole_lists_too():
    qrels, run = {"q": {"t": 1}}, {"q": {"x": 1.0, "t": 1.0}}
    with pytest.warns(CutWarning, match="1 of 1 list may have been cut"):
        report = tw.evaluate(qrels, run, ["Bpref", "AUC", "NumRelRet"])
    assert [report[name].cut for name in ("Bpref", "AUC", "NumRelRet")] == [(0.0, 1.0)] * 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report = tw.evaluate(qrels, run, ["NumRet", "NumRel"])  # what was cut off is no part of these counts
    assert [report[name].cut for name in ("NumRet", "NumRel")] == [None] * 2


def test_a_better_document_beyond_the_end_is_within_the_bounds_of_err():
    qrels, run = {"q": {"t": 2, "u": 4, "v": 3}}, {"q": {"x": 1.0, "t": 1.0}}
    with pytest.warns(CutWarning):
        found = tw.evaluate(qrels, run, "ERR@2")["ERR@2"]
    with_u = oracle.estimate("ERR", [1, 1, 1], [None, 2, 4], [3], 2)  # u in the tie
    assert with_u.expected == pytest.approx(0.5332, abs=5e-5)
    assert found.cut == pytest.approx((0.0, oracle.value("ERR", [4, 3], [2], 2)))
    assert with_u.expected <= found.cut[1]


def test_counts_are_added_up_over_queries_in_their_bounds_too():
    qrels = {"q": {"a": 1, "z": 1}, "p": {"a": 1}, "o": {"a": 1}}
    run = {"q": {"a": 1.0, "x": 1.0}, "p": {"a": 1.0, "x": 1.0}, "o": {"a": 2.0, "x": 1.0}}
    with pytest.warns(CutWarning, match="3 of 3 lists may have been cut"):
        assert tw.evaluate(qrels, run, "NumRelRet")["NumRelRet"].cut == (1.0, 4.0)


@pytest.mark.parametrize("measure", ["GMAP", "GMBpref"])
def test_a_cut_of_a_geometric_mean(measure):
    """Its expectation is a product of expectations of roots, and so are its bounds: all fills enumerated."""
    lists = [([2, 2, 2, 1, 1], [1, None, 0, None, 0], [1]), ([2, 2, 1, 1], [1, 0, None, 1], []), ([2, 1], [0, 1], [])]
    qrels, run, low, high = {}, {}, 1.0, 1.0
    for name, (scores, labels, unretrieved) in enumerate(lists):
        labelled = {f"d{place}": label for place, label in enumerate(labels)}
        run[f"{name}"] = {doc: float(score) for doc, score in zip(labelled, scores, strict=True)}
        qrels[f"{name}"] = {doc: label for doc, label in labelled.items() if label is not None}
        qrels[f"{name}"] |= {f"x{place}": label for place, label in enumerate(unretrieved)}
        lowest = min(scores)
        cuttable = scores.count(lowest) > 1
        roots = list(
            oracle.cut_fills(measure, scores, labels, unretrieved, root=3)
            if cuttable
            else [oracle.estimate(measure, scores, labels, unretrieved, root=3).expected]
        )
        low, high = low * min(roots), high * max(roots)
    with pytest.warns(CutWarning):
        report = tw.evaluate(qrels, run, measure)
    found = pickle.loads(pickle.dumps(report))[measure]
    assert found.cut == pytest.approx((low, high), abs=1e-12)
    assert found.cut[0] <= found.expected <= found.cut[1]


def test_the_oblivious_mean_has_the_queries_for_which_the_order_defines_it():
    qrels, run = {"q": {"a": 1}, "p": {"a": 1}}, {"q": dict.fromkeys("abc", 1.0), "p": {"a": 2.0, "b": 1.0}}
    report = tw.evaluate(qrels, run, "Accuracy@2", oblivious="docid-desc", complete=True)
    assert report.per_query("Accuracy@2")["q"].oblivious is None  # its first two are c and b
    assert report["Accuracy@2"].oblivious == report.per_query("Accuracy@2")["p"].oblivious == 1.0
    alone = tw.evaluate({"q": qrels["q"]}, {"q": run["q"]}, "Accuracy@2", oblivious="docid-desc", complete=True)
    assert alone["Accuracy@2"].oblivious is None


# -- other tools ---------------------------------------------------------------------------------------------------


def constant(first: bool, smallest: bool):
    """Twenty tied documents, one of them relevant: first or last in the list, with the smallest or largest id."""
    docs = [f"d{i:02d}" for i in range(20)]
    relevant = docs[0] if smallest else docs[-1]
    rest = [d for d in docs if d != relevant]
    listed = [relevant, *rest] if first else [*rest, relevant]
    return {"q": {relevant: 1}}, {"q": dict.fromkeys(listed, 0.5)}


@pytest.mark.parametrize(
    ("first", "smallest", "pytrec", "ir_measures"),
    [
        (True, True, (0.05, 0.0), (1.0, 0.0)),
        (True, False, (1.0, 1.0), (0.0, 1.0)),
        (False, True, (0.05, 0.0), (1.0, 0.0)),
        (False, False, (1.0, 1.0), (0.0, 1.0)),
    ],
)
def test_what_the_tools_were_seen_to_print_for_a_constant_scorer(first, smallest, pytrec, ir_measures):
    report = evaluate(*constant(first, smallest), ["RR", "RR@10", "nDCG@10"])
    printed = {(row.tool, row.measure): row.value for row in report.oblivious_by_tool()}
    assert (printed["pytrec_eval", "RR"], printed["pytrec_eval", "nDCG@10"]) == pytrec
    assert (printed["ir_measures", "RR@10"], printed["ir_measures", "nDCG@10"]) == ir_measures
    assert printed["sentence-transformers", "RR@10"] == (1.0 if smallest else 0.0)
    assert printed["trm", "RR@10"] == (1.0 if first else 0.0)
    assert printed["ranx", "RR@10"] is None
    assert report["RR@10"].expected == pytest.approx(sum(1 / r for r in range(1, 11)) / 20)
    assert "ranx" in repr(report.oblivious_by_tool())


def test_tools_count_queries_and_divisors_their_own_way():
    qrels = {"a": {"d": 1, "e": 1, "f": 1}, "b": {"d": 1}, "c": {"d": 0}}
    run = {"a": {"d": 2.0, "x": 1.0}, "c": {"d": 2.0}}
    report = evaluate(qrels, run, ["AP@2", "R@2"])
    row = {(row.tool, row.measure): row for row in report.oblivious_by_tool()}
    assert row["pytrec_eval", "R@2"].value == pytest.approx((1 / 3 + 0) / 2)  # b left out
    assert row["ir_measures", "R@2"].value == pytest.approx((1 / 3 + 0 + 0) / 3)  # b counts 0
    assert row["sentence-transformers", "AP@2"].value == pytest.approx((1 / 2 + 0) / 2)  # c has nothing relevant
    assert "AP(norm=" in row["sentence-transformers", "AP@2"].note
    assert row["trm", "R@2"].value == pytest.approx((1 + 0) / 2)  # it knows only what is in the list
    assert row["trec_eval-9", "R@2"].value == pytest.approx((1 / 3 + 0) / 2)
    failed = row["trec_eval", "R@2"]  # version 10
    assert (failed.value, failed.bias) == (None, None)
    assert failed.note == "exits with status 4 without -c: 1 judged query is missing from the run"
    whole = evaluate(qrels, run | {"b": {"d": 1.0}}, "R@2")
    there = {row.tool: row.value for row in whole.oblivious_by_tool()}
    assert there["trec_eval"] == pytest.approx((1 / 3 + 1 + 0) / 3)


def test_a_tool_that_cannot_be_reproduced_says_so():
    qrels, run = constant(True, True)
    with pytest.raises(
        InputError, match=r"ranx 0.3 prints for RR@10 cannot be reproduced: it follows an unstable sort"
    ):
        evaluate(qrels, run, "RR@10", oblivious="ranx")
    with pytest.raises(InputError, match="Unknown order or tool 'trec'"):
        evaluate(qrels, run, "RR@10", oblivious="trec")


def test_a_float32_reader_makes_ties_of_its_own():
    qrels, run = {"q": {"a": 1}}, {"q": {"a": 0.123456789, "b": 0.123456788}}
    ours, theirs = (evaluate(qrels, run, "RR", oblivious=tool)["RR"] for tool in ("trec_eval", "pytrec_eval"))
    assert (ours.expected, ours.oblivious) == (1.0, 1.0)
    assert (theirs.expected, theirs.oblivious) == (1.0, 0.5)  # outside [minimum, maximum]: another reading


def test_ties_of_a_float32_reader_do_not_accuse_the_order():
    """Untied in float64 but for one pair: what float32 does to the rest is no order that knows the labels."""
    qrels = {f"q{i}": {"a": 1} for i in range(30)}
    run = {f"q{i}": {"b": 1.0, "a": 1.0 + 1e-12, "c": 0.5, "d": 0.5} for i in range(30)}
    report = evaluate(qrels, run, "RR", oblivious="pytrec_eval")
    assert report["RR"].bias == -0.5  # beyond [minimum, maximum] of the scores as they are
    assert report["RR"].z is None  # there is no spread to compare it with
    assert report._z(tw.RR) == pytest.approx(-math.sqrt(30))  # of the scores as float32, half of all orders do this


def test_an_order_that_knows_the_labels_is_pointed_out():
    rng = random.Random(3)
    qrels = {f"q{i}": {f"d{j}": int(j < 3) for j in range(10)} for i in range(40)}
    positives_first = {q: dict.fromkeys(docs, 0.5) for q, docs in qrels.items()}
    shuffled = {q: dict.fromkeys(rng.sample(list(docs), 10), 0.5) for q, docs in qrels.items()}
    knowing = evaluate(qrels, positives_first, "nDCG@5", oblivious="given")
    assert knowing["nDCG@5"].z > 4
    assert any("depends on the labels" in note and "at most one random order in" in note for note in knowing.notes)
    assert not any("labels" in note for note in evaluate(qrels, shuffled, "nDCG@5", oblivious="given").notes)


# -- the report ----------------------------------------------------------------------------------------------------


def test_a_report_is_a_mapping():
    report = tw.evaluate({"q": {"a": 1}}, {"q": {"a": 1.0, "b": 0.5}}, ["RR", "P@10"])
    assert isinstance(report, Mapping) and len(report) == 2
    assert list(report) == list(report.keys()) == [tw.RR, tw.P @ 10] and "recip_rank" in report
    assert dict(report) == dict(report.items()) == {measure: report[measure] for measure in report}
    assert report.get("MRR") == report["RR"] and report.get("AP") is report.get("no measure") is None


def test_a_report_converts():
    qrels, run = random_case(4)
    report = evaluate(qrels, run, ["nDCG@10", "RBP(p=0.8)", "P@5"])
    plain = json.loads(report.to_json(per_query=True))
    assert plain["measures"]["nDCG@10"]["expected"] == report["nDCG@10"].expected
    assert plain["measures"]["P@5"]["residual"] is None
    assert plain["queries"]["P@5"]["q3"]["maximum"] == report.per_query("P@5")["q3"].maximum
    assert plain["provenance"]["tied_share"] == report.provenance.tied_share > 0.5
    assert plain["provenance"]["options"]["oblivious"] == "trec_eval"
    for frame in (report.to_frame(), report.to_arrow().to_pandas()):
        assert list(frame["measure"]) == ["nDCG@10", "RBP(p=0.8)", "P@5"]
        assert list(frame["query"]) == ["all"] * 3
        assert frame["bias"][0] == report["nDCG@10"].bias
    assert len(report.to_frame(per_query=True)) == 3 * (len(qrels) + 1)


def test_a_measure_is_found_by_any_of_its_spellings():
    qrels, run = random_case(5)
    report = evaluate(qrels, run, ["ndcg_cut.5,10", tw.RR @ 10, "AP(norm='cap')@5", tw.RBP(p=0.8)])
    assert report["nDCG@10"] is report["ndcg_at_10"] is report[tw.nDCG @ 10] is report["NDCG@10"]
    assert report['AP(norm="cap")@5'] is report["AP( norm = 'cap' ) @ 5"]
    assert report["MRR@10"] is report["RR@10"]
    assert report["RBP"] is report["rbp.p=0.8"]
    assert "nDCG@10" in report
    assert "nDCG@20" not in report
    with pytest.raises(InputError, match=r"nDCG@20 was not measured. The report has nDCG@5, nDCG@10"):
        report["nDCG@20"]


def test_fields_that_do_not_apply_are_none():
    qrels, run = random_case(6)
    e = evaluate(qrels, run, "nDCG@10", oblivious=None)["nDCG@10"]
    assert (e.oblivious, e.bias, e.z, e.residual, e.cut) == (None, None, None, None, None)
    none = evaluate({"q": {"a": 0}}, {"q": {"a": 1.0}}, "RR", no_relevant="skip")["RR"]
    assert (none.expected, none.minimum, none.std, none.range) == (None, None, None, None)
    assert evaluate({"q": {"a": 1}}, {"q": {"a": 1.0}}, "RR")["RR"].z is None  # nothing is tied


def test_tie_groups_can_be_evaluated_without_their_run():
    qrels, run = random_case(7)
    ties = tw.tie_groups(tw.Qrels.from_dict(qrels), tw.Run.from_dict(run))
    from_run, from_ties = evaluate(qrels, run, ["nDCG@10", "AP"]), evaluate(None, ties, ["nDCG@10", "AP"])
    assert from_run["AP"] == from_ties["AP"]
    assert from_ties.provenance.rows is None
    assert evaluate(None, ties, "AP", oblivious="pytrec_eval")["AP"].oblivious is None
    assert evaluate(None, ties.to_depth(1), "SetR")["SetR"].expected < evaluate(None, ties, "SetR")["SetR"].expected
    with pytest.raises(InputError, match="other qrels"):
        evaluate({"q0": {"d00": 1}}, ties, "AP")
    with pytest.raises(InputError, match="one shard"):
        part = tw.tie_groups(tw.Qrels.from_dict(qrels), tw.Run.from_dict(run), scores=ties.score)
        evaluate(None, part, "AP")
    with pytest.raises(InputError, match="Tie groups hold counts"):
        evaluate(None, ties, "AP", score_dtype="float32")
    with pytest.raises(InputError, match="Evaluate the run itself"):
        from_ties.oblivious_by_tool()


@pytest.fixture
def own_measures(monkeypatch):
    """Measures that a test registers are gone after it."""
    monkeypatch.setattr(registry, "_registry", tw.measures())  # with all of ours, whichever were loaded
    monkeypatch.setattr(registry, "_aliases", dict(registry._aliases))


def test_a_measure_of_ones_own(own_measures):
    """A payoff that depends on what was seen: exact expectation and extremes, std by seeded sampling."""

    @tw.measure
    class Novelty(tw.Measure):
        """Each further relevant document counts half as much."""

        def payoff(self, rank, seen):
            return 0.5**seen / rank

    qrels, run = random_case(8, queries=4)
    found = evaluate(qrels, run, "Novelty@6")["Novelty@6"]
    totals = []
    for query, listed in run.items():
        labels = [qrels[query].get(d) for d in listed]
        values = []
        for ranked in oracle.orders(list(listed.values()), labels):
            seen, value = 0, 0.0
            for rank, label in enumerate(ranked[:6], start=1):
                if label is not None and label >= 1:
                    value += 0.5**seen / rank
                    seen += 1
            values.append(value)
        totals.append((math.fsum(values) / len(values), min(values), max(values), float(np.var(values))))
    mean = np.mean(totals, axis=0)
    assert found.expected == pytest.approx(mean[0], abs=1e-12)
    assert (found.minimum, found.maximum) == pytest.approx((mean[1], mean[2]), abs=1e-12)
    assert found.std == pytest.approx(math.sqrt(sum(t[3] for t in totals)) / 4, rel=0.08)
    assert found == evaluate(qrels, run, "Novelty@6")["Novelty@6"]  # seeded
    with pytest.raises(MeasureError, match="takes no parameters"):
        Novelty(rel=2)


def test_a_penalty_sorts_below_the_unjudged(own_measures):
    """Negative gains: the best order puts them last, the worst first, unjudged documents between."""

    @tw.measure
    class Penalty(tw.Measure):
        """Labels as gains, harmful documents below zero."""

        def gain(self, label):
            return label

        def payoff(self, rank):
            return 1 / rank

    found = evaluate({"q": {"a": -1, "b": 2}}, {"q": dict.fromkeys("abc", 1.0)}, "Penalty")["Penalty"]
    assert found.maximum == pytest.approx(2 - 1 / 3)
    assert found.minimum == pytest.approx(-1 + 2 / 3)
    assert found.expected == pytest.approx((1 + 1 / 2 + 1 / 3) / 3)


def test_a_measure_whose_best_order_is_another_must_say_so(own_measures):
    @tw.measure
    class Late(tw.Measure):
        """Relevant documents count from rank 3 on."""

        def payoff(self, rank):
            return (rank >= 3).astype(float)

    @tw.measure
    class Later(type(Late)):
        """The same, with its best order said."""

        def key(self, label):
            return -label

    case = {"q": {"a": 0, "b": 1}}, {"q": {"a": 2.0, "b": 1.0, "c": 1.0, "d": 1.0, "e": 1.0}}
    with pytest.raises(MeasureError, match=r"Late is not best when labels descend.*key\(label\)"):
        evaluate(*case, "Late")
    found = evaluate(*case, "Later")["Later"]
    assert (found.expected, found.minimum, found.maximum) == (0.75, 0.0, 1.0)


def test_a_condensed_list_was_not_cut_where_the_whole_list_goes_on():
    qrels, run = {"q": {"a": 1, "b": 0}}, {"q": {"a": 3.0, "b": 3.0, "x": 1.0}}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert tw.evaluate(qrels, run, "RR", judged_only=True)["RR"].cut is None
    found = tw.evaluate(qrels, {"q": {"x": 4.0, "a": 3.0, "b": 3.0}}, "RR", judged_only=True)
    assert found["RR"].cut == (0.0, 1.0)


def test_measures_travel():
    for measure in [*ALL, tw.nDCG(gains="exp") @ 7]:
        assert pickle.loads(pickle.dumps(measure)) == measure


def test_trec_evals_names_without_a_cutoff_take_its_nine():
    assert [str(m) for m in tw.parse_all("ndcg_cut")][:3] == ["nDCG@5", "nDCG@10", "nDCG@15"]
    assert len(tw.parse_all("map_cut")) == 9


def test_a_measure_of_ours_is_not_replaced():
    with pytest.raises(MeasureError, match="'AP' is a measure of Tiewise"):
        tw.measure(type("AP", (tw.Measure,), {}))
    with pytest.raises(MeasureError, match=r"inherit from tiewise.Measure"):
        tw.measure(type("Bad", (), {}))
    assert str(tw.RBP(p=np.float64(0.7))) == "RBP(p=0.7)"


def test_a_run_is_not_a_measure():
    run = {"1": {"a": 1.0, "b": 0.5}}
    with pytest.raises(MeasureError, match=r"A run is not a measure\. Give several runs as \{name: run\}"):
        tw.compare({"1": {"a": 1}}, run, run)


def test_labels_beyond_the_scale_are_an_error():
    for name in ("ERR", "nERR", 'RBP(gains="graded", max=2)'):
        with pytest.raises(MeasureError, match="a label of 5 exceeds max="):
            evaluate({"q": {"a": 5}}, {"q": {"a": 1.0}}, name)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("NDGC@10", "Unknown measure 'NDGC@10'. Did you mean 'nDCG@10'"),
        ("runs/b", "'runs/b' is not a measure, but looks like a path. Give several runs as {name: run}"),
        ("b.trec", "looks like a path"),
        ("hit@10", "Did you mean 'Success@10'"),
        ("acc@10", "Did you mean 'Success@10'"),
        ("ndcg10", "Did you mean 'nDCG@10'"),
        ("Recall10", "Did you mean 'R@10'"),
        ("P5", "Did you mean 'P@5'"),
        ("MRR10", "Did you mean 'RR@10'"),
        ("mrr_cut.10", "Did you mean 'RR@10'"),
        ("rprec10", "Did you mean 'Rprec'"),
        ("F2", r"Did you mean 'F\(beta=2\)'"),
        ("f2_10", r"Did you mean 'F\(beta=2\)@10'"),
        ("nDCG@0", "whole number from 1"),
        ("nDCG@-1", "whole number|Unknown"),
        ("nDCG@1.5", "whole number"),
        ("nDCG@10@5", "one whole number"),
        ("P@0x10", "whole number"),
        ("nDCG@99999999999999999999", "whole number"),
        ("rbp.p=", "not a value for p"),
        ("nDCG@10,20", "'nDCG@10,20' names 2 measures: nDCG@10, nDCG@20. Give one of them"),
        ("nDCG,20", "Unknown measure '20'"),
        ("20", "Unknown measure '20'"),
        ("nDCG@10,0", "whole number from 1"),
        ("nDCG(cutoff=10)@5", "two cutoffs, 10 and 5"),
        ("nDCG(cutoff='x')", "whole number from 1"),
        ("Rprec(cutoff=3)", "takes no cutoff"),
        ("RBP(rel=1, rel=2, p=0.5)", "'rel' is given twice"),
        ("P(self=1)", "no parameter 'self'"),
        ("P(**{'rel': 2})", "parameters have names"),
        ("ERR(max=2000)", "below 1000"),
        ("P(rel={[1]:2})", "number, True, False or a quoted word"),
        ("Compat(normalize=yes)", "number, True, False or a quoted word"),
        ("Compat(normalize=1)", "Use True or False"),
        ("Rprec@10", "takes no cutoff"),
        ("P(relevance=2)", "no parameter 'relevance'; it takes rel"),
        ("P(2)@5", "parameters have names"),
        ('AP(norm="min")', 'Use "all" or "cap"'),
        ("RBP(p=1)", "must lie above 0 and below 1"),
        ("P(rel=-1)@5", "P: rel=-1 is not possible. It must be 0 or more"),
        ("RBP(p='x')", "not a number"),
        ("P(rel=__import__('os'))", "Unknown measure|number, True, False or a quoted word"),
        ("", "empty"),
        ("nDCG@10)", "Unknown"),
        ("what", "Unknown measure 'what'"),
    ],
)
def test_names_that_are_no_measure(name, message):
    with pytest.raises(MeasureError, match=message):
        tw.parse(name)


@pytest.mark.parametrize(
    ("spelling", "canonical"),
    [
        ("ndcg_cut.10", "nDCG@10"), ("ndcg_cut_10", "nDCG@10"), ("ndcg_at_10", "nDCG@10"), ("NDCG@10", "nDCG@10"),
        ("ndcg", "nDCG"), ("P.10", "P@10"), ("P_10", "P@10"), ("precision@5", "P@5"), ("recall.100", "R@100"),
        ("recall_at_20", "R@20"),
        ("map", "AP"), ("MAP", "AP"), ("map_cut.10", "AP@10"), ("map@100-l2", "AP(rel=2)@100"),
        ("recip_rank", "RR"), ("MRR@10", "RR@10"), ("mrr_at_10", "RR@10"), ("success.5", "Success@5"),
        ("hit_rate@10", "Success@10"), ("hits@10", "Hits@10"), ("Rprec", "Rprec"), ("r-precision", "Rprec"),
        ("bpref", "Bpref"), ("rbp.p=0.9", "RBP(p=0.9)"), ("rbp.95", "RBP(p=0.95)"), ("RBP", "RBP(p=0.8)"),
        ("err@20", "ERR(max=4)@20"), ("f1@5", "F1@5"), ("F(beta=2)@5", "F(beta=2)@5"), ("set_P", "SetP"),
        ("num_ret", "NumRet"), ("ndcg_burges@5", 'nDCG(gains="exp")@5'), ("P(rel=2.0)@5", "P(rel=2)@5"),
        ("  nDCG @ 10 ", "nDCG@10"), ("nDCG(dcg='exp-log2')@10", 'nDCG(gains="exp")@10'), ("NumRelRet", "NumRelRet"),
        ("num_rel_ret", "NumRelRet"), ("dcg_burges@5", 'DCG(gains="exp")@5'),
        ("nDCG(cutoff=10)", "nDCG@10"), ("P(rel=2, cutoff=5)", "P(rel=2)@5"), ("nDCG(cutoff=10)@10", "nDCG@10"),
    ],
)  # fmt: skip
def test_other_tools_spellings(spelling, canonical):
    assert str(tw.parse(spelling)) == canonical


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("nDCG@10,20", "nDCG@10 nDCG@20"),
        ("nDCG@10, 20 AP", "nDCG@10 nDCG@20 AP"),
        ("AP,nDCG@5,10,RR", "AP nDCG@5 nDCG@10 RR"),
        ("P(rel=2)@5,10", "P(rel=2)@5 P(rel=2)@10"),
        ("ndcg_at_10,20", "nDCG@10 nDCG@20"),
        ("P_5,10", "P@5 P@10"),
        ("ndcg_cut.5,10,AP@3,7", "nDCG@5 nDCG@10 AP@3 AP@7"),
    ],
)
def test_a_list_of_cutoffs_is_a_measure_each(text, names):
    assert [str(one).replace(" ", "") for one in tw.parse_all(text)] == names.split()
    assert tw.parse_all([text]) == tw.parse_all(text)


def test_a_list_of_cutoffs_wherever_measures_are_named():
    qrels, run = random_case(5)
    assert [str(one) for one in evaluate(qrels, run, "nDCG@10,20")] == ["nDCG@10", "nDCG@20"]
    assert [str(one) for one in evaluate(qrels, run, "AP").at(["P@1,2"])] == ["P@1", "P@2"]
    assert list(tw.unjudged(qrels, run, "P@1,2", complete=True)) == ["P@1", "P@2"]
    assert (tw.nDCG(cutoff=10), tw.nDCG(cutoff=10, gains="exp") @ 5) == (tw.nDCG @ 10, tw.nDCG(gains="exp") @ 5)


def test_nothing_is_left_for_the_garbage_collector(tmp_path):
    """A report goes with the last reference to it, and with it the arrays of its run."""
    path = tmp_path / "run"
    path.write_text("q Q0 a 1 2 t\nq Q0 b 2 2 t\nr Q0 a 1 1 t\n")
    gc.collect()
    gc.disable()
    try:
        for run in (path, {"q": {"a": 2.0, "b": 2.0}, "r": {"a": 1.0}}, tw.io.read_run(path)):
            report = tw.evaluate(
                {"q": {"a": 1, "c": 1}, "r": {"a": 1}}, run, ["nDCG@10", "AP", "RR", "Bpref", "R@5"], complete=True
            )
            report.oblivious_by_tool()
            held = weakref.ref(report._evaluation.ties)
            del report
            assert held() is None
    finally:
        gc.enable()


# -- objects of ranx ----------------------------------------------------------------------------------------------


class LikeRanx:
    """A ranx `Run` or `Qrels`, as far as it is looked at: ranx compiles for seconds when it is imported."""

    def __init__(self, kind: str, table: dict, name: str | None = None):
        setattr(self, kind, table)
        self.name = name

    def to_dict(self) -> dict:
        return next(value for value in vars(self).values() if isinstance(value, dict))


RANX_QRELS = {"q1": {"a": 1, "b": 0}, "q2": {"c": 2, "d": 1}}
RANX_RUN = {"q1": {"a": 0.5, "b": 0.5}, "q2": {"x": 0.9, "d": 0.5, "c": 0.1}}


def test_runs_and_judgments_of_ranx():
    qrels, run = LikeRanx("qrels", RANX_QRELS), LikeRanx("run", RANX_RUN, "bm25")
    wanted = evaluate(RANX_QRELS, RANX_RUN, ["RR", "nDCG@10"], complete=True)
    found = evaluate(qrels, run, ["RR", "nDCG@10"], complete=True)
    assert found["RR"] == wanted["RR"] and found["nDCG@10"] == wanted["nDCG@10"]
    assert as_run(run).name == "bm25"
    pair = tw.compare(qrels, {"A": run, "B": RANX_RUN}, "RR", complete=True).pair("A", "B")
    assert pair.difference.expected == 0
    assert tw.audit(run).rows == 5
    with pytest.raises(InputError, match=r"a run, not qrels\. Where both are given, qrels come first"):
        evaluate(run, qrels, "RR")


def test_objects_of_ranx_itself():
    code = f"""
import ranx, tiewise as tw
qrels, run = ranx.Qrels({RANX_QRELS}), ranx.Run({RANX_RUN}, name="bm25")
found = tw.evaluate(qrels, run, "RR", complete=True)
assert found["RR"] == tw.evaluate({RANX_QRELS}, {RANX_RUN}, "RR", complete=True)["RR"], found
"""
    if importlib.util.find_spec("ranx") is None:
        pytest.skip("ranx is not installed")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("labels", "size", "above"),
    [({4: 100, 1: 50}, 150, 0), ({4: 1, 3: 1}, 500, 5), ({1: 200}, 400, 0), ({2: 9}, 9, 2)],
)
def test_err_of_a_group_whose_end_no_reader_reaches(labels, size, above):
    """Few slots of a large group matter. The reference takes all of them, in whole numbers."""
    blanks = size - sum(labels.values())
    products = [comb(blanks, s) * 16**s for s in range(size + 1)]  # symmetric polynomials of 16·(1 − gain), by slot
    for label, many in labels.items():
        for _ in range(many):
            products = [p + (17 - 2**label) * q for p, q in zip(products, [0, *products], strict=False)]
    means = [Fraction(product, comb(size, s) * 16**s) for s, product in enumerate(products)]
    expected = sum(float(means[s] - means[s + 1]) / (above + s + 1) for s in range(size))
    relevant = "".join(str(label) * many for label, many in labels.items())
    found = tw.ERR.of("0" * above + "(" + relevant + "-" * blanks + ")")
    assert found.expected == pytest.approx(expected, rel=1e-13)


def test_sorted_orders_may_differ_by_rounding() -> None:
    qrels = {"x": {"a": 1, "b": 3, "c": 2, "d": 3}, "y": {"a": 3, "b": 3}}
    run = {"x": {"a": 1, "b": 0, "c": 1, "d": 2}, "y": {"a": 1, "b": 2}}
    compat = "Compat(p=0.9)"
    both = tw.evaluate(qrels, run, compat, depth=3, complete=True).per_query(compat)
    alone = tw.evaluate({"x": qrels["x"]}, {"x": run["x"]}, compat, depth=3, complete=True)[compat]
    assert both["x"].minimum <= both["x"].expected <= both["x"].maximum
    assert both["x"].expected == pytest.approx(alone.expected, abs=1e-12)


def test_an_order_by_float32_scores_is_compared_over_the_queries_that_count():
    rng = np.random.default_rng(0)
    qrels = {f"q{q}": {f"d{i}": int(rng.integers(0, 2)) for i in range(12)} for q in range(30)}
    run = {f"q{q}": {f"d{i}": 1 + int(rng.integers(0, 4)) + i * 1e-9 for i in range(16)} for q in range(20)}
    options = {"oblivious": "pytrec_eval", "complete": True}
    found = [tw.evaluate(qrels, run, "AP", missing=missing, **options) for missing in ("skip", "zero")]
    assert not any("stand higher" in note for report in found for note in report.notes)
