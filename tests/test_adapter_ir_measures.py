"""The drop-in for ir_measures and the provider, against ir_measures itself."""

from __future__ import annotations

import importlib.util
import json
import math
import os
import shutil
import subprocess
import sys

import pandas as pd
import polars as pl
import pytest

import tiewise as tw
import tiewise.adapters.ir_measures as ours
from peers import draw

theirs = pytest.importorskip("ir_measures")
from ir_measures import (  # noqa: E402
    AP,
    ERR,
    RR,
    Bpref,
    IPrec,
    Judged,
    NumQ,
    NumRel,
    NumRelRet,
    NumRet,
    P,
    R,
    Rprec,
    SetAP,
    SetF,
    SetP,
    SetR,
    SetRelP,
    Success,
    infAP,
    nDCG,
)

SHARED = [
    nDCG,
    nDCG @ 3,
    nDCG @ 10,
    nDCG(gains={1: 3, 2: 1}) @ 5,
    nDCG(judged_only=True) @ 4,
    nDCG(judged_only=True, gains={0: 1, -1: 2}),
    AP,
    AP @ 5,
    AP(rel=2),
    AP(rel=3, judged_only=True) @ 3,
    RR,
    RR(rel=2),
    RR @ 3,
    RR(rel=3) @ 10,
    P @ 1,
    P(rel=2) @ 5,
    P(rel=3, judged_only=True) @ 5,
    R @ 3,
    R(rel=2) @ 10,
    R(judged_only=True) @ 3,
    Success @ 1,
    Success(rel=2, judged_only=True) @ 3,
    Rprec,
    Rprec(rel=2),
    Rprec(judged_only=True),
    Bpref,
    Bpref(rel=2),
    SetP,
    SetP(relative=True, rel=2),
    SetRelP,
    SetR,
    SetR(rel=2),
    SetF,
    SetF(beta=2.0, rel=2),
    SetF(beta=0.5),
    SetAP,
    SetAP(rel=2, judged_only=True),
    NumRet,
    NumRelRet,
    NumRet(rel=2),
    NumRel,
    NumQ,
    IPrec @ 0.3,
    IPrec(rel=2) @ 0.0,
    infAP,
    infAP(rel=2),
    Judged,
    Judged @ 3,
    Judged @ 10,
]


def table(metrics):
    metrics = list(metrics)
    found = {(metric.query_id, metric.measure): metric.value for metric in metrics}
    assert len(found) == len(metrics)
    return found


def evaluate_separately(measures, qrels, run):
    """What ir_measures makes of each measure in a call of its own.

    In one call, ir_measures 0.4.3 may count NumRet on the lists of a judged_only measure, and compute nDCG with the
    gains of another nDCG, as the hash seed has it.
    """
    found = [theirs.calc([measure], qrels, run) for measure in measures]
    metrics = [metric for one in found for metric in one.per_query]
    return theirs.CalcResults({m: a for one in found for m, a in one.aggregated.items()}, metrics)


def assert_close(found, expected):
    assert found.keys() == expected.keys()
    for key, number in expected.items():
        measure = key[1] if isinstance(key, tuple) else key
        if measure.NAME == "nDCG":  # gain · (1 / log2) for gain / log2
            assert found[key] == pytest.approx(number, rel=1e-14, abs=1e-15), key
        else:
            assert found[key] == number, key


@pytest.mark.parametrize("seed", range(40))
def test_numbers_equal_ir_measures(seed):
    qrels, run = draw(seed)
    expected = evaluate_separately(SHARED, qrels, run)
    found = ours.calc(SHARED, qrels, run)
    assert_close(table(found.per_query), table(expected.per_query))
    assert_close(found.aggregated, expected.aggregated)
    assert ours.calc_aggregate(SHARED, qrels, run) == found.aggregated
    assert list(ours.iter_calc(SHARED, qrels, run)) == found.per_query
    assert type(found) is theirs.CalcResults
    assert type(found.per_query[0]) is theirs.Metric


@pytest.mark.skipif(not shutil.which("perl"), reason="ir_measures asks perl for these")
@pytest.mark.parametrize("seed", range(4))
def test_numbers_equal_gdeval_to_five_decimals(seed):
    qrels, run = draw(seed)
    number = {query: str(place) for place, query in enumerate(sorted(qrels.keys() | run.keys()))}
    qrels = {number[query]: docs for query, docs in qrels.items()}  # gdeval knows no other ids
    run = {number[query]: docs for query, docs in run.items()}
    measures = [ERR @ 3, ERR @ 20, nDCG(dcg="exp-log2") @ 5, nDCG(dcg="exp-log2") @ 20]
    expected = table(theirs.iter_calc(measures, qrels, run))
    found = table(ours.iter_calc(measures, qrels, run))
    assert found == pytest.approx(expected, abs=5.001e-6)


@pytest.mark.skipif(not importlib.util.find_spec("cwl"), reason="ir_measures asks cwl_eval for it")
@pytest.mark.parametrize("seed", range(4))
def test_rbp_equals_cwl_eval(seed):
    qrels, run = draw(seed, negative=False)
    measures = [theirs.RBP(rel=1), theirs.RBP(rel=2, p=0.5)]
    expected = table(theirs.iter_calc(measures, qrels, run))
    assert table(ours.iter_calc(measures, qrels, run)) == pytest.approx(expected, abs=1e-14)


USER_MODELS = [
    theirs.SDCG(max_rel=4) @ 5,
    theirs.SDCG(max_rel=2, dcg="log2") @ 10,
    theirs.INSQ(max_rel=4),
    theirs.INSQ(max_rel=1, T=3.0),
    theirs.INST(max_rel=4),
    theirs.INST(max_rel=2, min_rel=1, T=2.0),
    theirs.BPM(max_rel=4) @ 5,
    theirs.BPM(max_rel=2, T=2.0) @ 10,
    theirs.NERR8(max_rel=4) @ 5,
    theirs.NERR9(max_rel=2) @ 10,
    theirs.NERR10(max_rel=4),
    theirs.NERR10(max_rel=1, p=0.5),
    theirs.NERR11(max_rel=4),
    theirs.NERR11(max_rel=2, T=2.5),
]


@pytest.mark.skipif(not importlib.util.find_spec("cwl"), reason="ir_measures asks cwl_eval for them")
@pytest.mark.parametrize("seed", range(12))
def test_user_models_equal_cwl_eval(seed):
    """It lists ties in the given order, so tied runs are equal too; and so are its numbers beside the value."""
    qrels, run = draw(seed)
    expected = {(one.query_id, one.measure): one for one in theirs.iter_calc(USER_MODELS, qrels, run)}
    found = {(one.query_id, one.measure): one for one in ours.iter_calc(USER_MODELS, qrels, run)}
    assert found.keys() == expected.keys()
    for key, metric in expected.items():
        assert type(found[key]) is type(metric)
        assert found[key][2:] == pytest.approx(metric[2:], rel=1e-12, abs=1e-13), key
    aggregated = theirs.calc_aggregate(USER_MODELS, qrels, run)
    assert ours.calc_aggregate(USER_MODELS, qrels, run) == pytest.approx(aggregated, rel=1e-12)


@pytest.mark.skipif(not importlib.util.find_spec("cwl"), reason="ir_measures asks cwl_eval for them")
def test_user_models_read_a_thousand_ranks():
    docs = [f"d{place}" for place in range(1500)]
    qrels = {"q": {doc: place % 4 for place, doc in enumerate(docs) if place % 3 == 0 or place > 900}}
    run = {"q": {doc: -float(place) for place, doc in enumerate(docs)}}
    measures = [theirs.INSQ(max_rel=3, T=40.0), theirs.INST(max_rel=3, T=90.0), theirs.NERR11(max_rel=3, T=900.0)]
    expected = {one.measure: one for one in theirs.iter_calc(measures, qrels, run)}
    for one in ours.iter_calc(measures, qrels, run):
        assert one[2:] == pytest.approx(expected[one.measure][2:], rel=1e-11)


def no_pairs(top, qrels, rel):
    hits = sum(qrels.get(doc, 0) >= rel for doc in top)
    return hits in (0, len(top))


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("measure", [theirs.Accuracy, theirs.Accuracy(rel=2), theirs.Accuracy @ 3])
def test_accuracy_equals_ir_measures(seed, measure):
    """A query without a pair is left out, in ir_measures only if it has no relevant document: else it divides by 0."""
    qrels, run = draw(seed)
    cutoff, rel = measure.params.get("cutoff"), measure["rel"]
    top = {q: sorted(docs, key=docs.get, reverse=True)[:cutoff] for q, docs in run.items()}
    without = {q for q in run.keys() & qrels.keys() if no_pairs(top[q], qrels[q], rel)}
    rest = {q: docs for q, docs in run.items() if q not in without}
    expected = theirs.calc([measure], qrels, rest)
    found = ours.calc([measure], qrels, run)
    assert table(found.per_query) == pytest.approx(table(expected.per_query), abs=1e-14)
    assert found.aggregated == pytest.approx(expected.aggregated, abs=1e-14, nan_ok=True)
    assert without.isdisjoint(one.query_id for one in found.per_query)


@pytest.mark.parametrize("seed", range(12))
def test_compat_equals_ir_measures_without_ties(seed):
    qrels, run = draw(seed)
    run = {q: {d: 100.0 - place for place, d in enumerate(docs)} for q, docs in run.items()}
    measures = [theirs.Compat, theirs.Compat(p=0.5), theirs.Compat(p=0.8, normalize=False)]
    expected = theirs.calc(measures, qrels, run)
    found = ours.calc(measures, qrels, run)
    assert table(found.per_query) == pytest.approx(table(expected.per_query), abs=1e-14)
    assert found.aggregated == pytest.approx(expected.aggregated, abs=1e-14)


def test_two_slips_of_compat_are_not_copied():
    """A document that was not retrieved has score 0 there, and tied ideal documents stand as in the qrels."""
    qrels, run = {"q": {"a": 1, "b": 1}}, {"q": {"b": -1.0, "x": -2.0}}
    above = {"q": {doc: score + 9 for doc, score in run["q"].items()}}
    assert ours.calc_aggregate(["Compat"], qrels, run) == ours.calc_aggregate(["Compat"], qrels, above)
    compat = theirs.Compat
    assert theirs.calc_aggregate([compat], qrels, run)[compat] < theirs.calc_aggregate([compat], qrels, above)[compat]
    qrels, run = {"q": {"b": 1, "a": 1}}, {"q": {"a": 1.0, "b": 1.0}}
    assert ours.calc_aggregate([compat], qrels, run) == {compat: 1.0}
    assert theirs.calc_aggregate([compat], qrels, run)[compat] < 1


@pytest.mark.parametrize("value", ["expected", "minimum", "maximum", "std", "bias"])
def test_all_values_of_the_new_measures_equal_evaluate(value):
    measures = [*USER_MODELS, theirs.Compat, theirs.Accuracy, theirs.Accuracy @ 3]
    qrels, run = draw(2)
    found = ours.calc(measures, qrels, run, value=value)
    rows = table(found.per_query)
    report = tw.evaluate(qrels, run, list(map(str, measures)), oblivious="ir_measures", complete=True)
    for measure in measures:
        for query, estimate in report.per_query(str(measure)).items():
            if query in run and getattr(estimate, value) is not None:
                assert rows[query, measure] == pytest.approx(getattr(estimate, value), abs=1e-14), measure


def test_every_measure_of_one_run_is_ours():
    """All of ir_measures' registry but those of diversity, which need subtopics, and names without a provider there."""
    diversity = {"ERR_IA", "nERR_IA", "alpha_DCG", "alpha_nDCG", "NRBP", "nNRBP", "AP_IA", "P_IA", "StRecall"}
    assert {one.NAME for one in theirs.measures.registry.values()} - diversity <= ours._MEASURES.keys()
    from ir_measures.providers import registry

    unsupported = {
        one.NAME
        for provider in registry.values()
        for one in provider.SUPPORTED_MEASURES
        if one.NAME not in ours._MEASURES
    }
    assert unsupported <= diversity


QRELS = {"q1": {"a": 1, "b": 0, "c": 2}, "q2": {"a": 1}, "q3": {"x": 1}}
RUN = {"q2": {"b": 0.5, "a": 0.5}, "q1": {"a": 0.5, "b": 0.5, "c": 0.5, "d": 0.1}, "q4": {"a": 1.0}}


def test_order_of_metrics():
    found = [(metric.query_id, metric.measure) for metric in ours.iter_calc([RR, AP], QRELS, RUN)]
    assert found == [("q2", RR), ("q2", AP), ("q1", RR), ("q1", AP), ("q3", AP), ("q3", RR)]


def test_measures_may_be_theirs_ours_or_names():
    measures = [nDCG @ 10, tw.nDCG @ 10, "nDCG@10", "ndcg_cut_10", RR @ 10, "RR@10", "MRR@10", "F1@2", tw.AUC]
    found = ours.calc_aggregate(measures, QRELS, RUN)
    assert list(found) == measures
    assert found[nDCG @ 10] == found[tw.nDCG @ 10] == found["nDCG@10"] == found["ndcg_cut_10"]
    assert found[RR @ 10] == found["RR@10"] == found["MRR@10"]
    assert found["F1@2"] == tw.evaluate(QRELS, RUN, "F1@2", oblivious="pytrec_eval", complete=True)["F1@2"].oblivious


def test_names_are_parsed_as_in_ir_measures():
    names = [
        "Judged@10",
        "NumRet(rel=2)",
        "SetF(beta=2.0)",
        "nDCG(dcg='exp-log2')@3",
        "IPrec@0.5",
        "SetRelP",
        "NumRelRet",
    ]
    names += ["P(rel=2, judged_only=True)@3", "nDCG(gains={1: 5})", "Recall@2", "BPref", "NumQ", "infAP"]
    objects = [theirs.parse_measure(name) for name in names]
    found = ours.calc_aggregate([*names, *objects], QRELS, RUN)
    for name, measure in zip(names, objects, strict=True):
        assert found[name] == found[measure], name
    assert ours.calc_aggregate(["Judged@10", tw.Judged @ 10], QRELS, {"q1": {"a": 1.0}}) == {
        "Judged@10": 1 / 3,
        tw.Judged @ 10: 1 / 30,
    }


def test_names_of_tiewise():
    names = ['AP(norm="cap")@2', "nDCG(gains='exp')@3", "ERR(max=5)@3", "RBP(p=0.5)", "P"]
    found = ours.calc_aggregate(names, QRELS, RUN, value="expected")
    report = tw.evaluate(QRELS, RUN, names, complete=True)
    assert found == {name: report[name].expected for name in names}


@pytest.mark.parametrize("value", ["expected", "minimum", "maximum", "std", "oblivious", "bias"])
@pytest.mark.parametrize("seed", range(4))
def test_values_equal_evaluate(seed, value):
    qrels, run = draw(seed)
    pairs = {
        nDCG @ 5: "nDCG@5",
        nDCG(dcg="exp-log2") @ 5: 'nDCG(gains="exp")@5',
        AP(rel=2): "AP(rel=2)",
        RR: "RR",
        RR @ 3: "RR@3",
        P @ 3: "P@3",
        R @ 3: "R@3",
        Bpref: "Bpref",
        Judged @ 3: 'Judged(norm="cap")@3',
        ERR @ 5: "ERR(max=4)@5",
    }
    report = tw.evaluate(qrels, run, list(pairs.values()), oblivious="ir_measures", complete=True)
    found = ours.calc(list(pairs), qrels, run, value=value)
    rows = table(found.per_query)
    for given, name in pairs.items():
        assert found.aggregated[given] == pytest.approx(getattr(report[name], value), rel=1e-13, abs=1e-16)
        for query, estimate in report.per_query(name).items():
            assert rows[query, given] == getattr(estimate, value)
    assert ours.calc_aggregate(list(pairs), qrels, run, value=value) == pytest.approx(found.aggregated, rel=1e-13)


@pytest.mark.parametrize("value", ["expected", "minimum", "maximum", "std", "oblivious", "bias"])
def test_geometric_means_equal_evaluate(value):
    qrels = {"q": {"a": 1}, "p": {"a": 1}, "o": {"a": 1, "b": 1}, "missing": {"a": 1}}
    run = {"q": {"a": 1.0, "b": 2.0}, "p": {"a": 1.0}, "o": {"a": 1.0, "b": 1.0, "c": 1.0}}
    report = tw.evaluate(qrels, run, ["GMAP", "GMBpref"], oblivious="ir_measures", complete=True)
    wanted = {name: getattr(report[name], value) for name in ("GMAP", "GMBpref")}
    assert ours.calc_aggregate(["GMAP", "GMBpref"], qrels, run, value=value) == wanted
    rows = (ours.ScoredDoc(query, doc, score) for query, docs in run.items() for doc, score in docs.items())
    assert ours.calc(["GMAP", "GMBpref"], qrels, rows, value=value).aggregated == wanted
    two = {query: run[query] for query in ("q", "p")}
    assert ours.calc_aggregate(["GMAP"], {query: qrels[query] for query in two}, two) == {
        "GMAP": pytest.approx(0.5**0.5)
    }


def test_numbers_beside_user_models_are_measures_of_their_own():
    beside = [ours._Beside(model, name) for model in (tw.SDCG @ 5, tw.INST) for name in ours.BESIDE]
    assert len(set(beside)) == len(beside) and ours._Beside(tw.SDCG @ 5, ours.BESIDE[0]) == beside[0]


def test_counts_of_missing_queries():
    measures = [NumRet, NumRelRet, NumRel, NumRel(rel=2), NumQ]
    found = ours.calc_aggregate(measures, QRELS, RUN)
    assert list(found.values()) == [6, 3, 3, 1, 2]
    assert found[NumRel] == theirs.calc_aggregate([NumRel], QRELS, RUN)[NumRel]


def test_no_query_in_common():
    for qrels, run in [(QRELS, {}), (QRELS, {"other": {"a": 1.0}})]:
        assert_close(ours.calc_aggregate(SHARED, qrels, run), evaluate_separately(SHARED, qrels, run).aggregated)
    assert math.isnan(ours.calc_aggregate([AP], {}, RUN)[AP])
    assert ours.calc_aggregate([NumQ], {}, RUN)[NumQ] == 0
    assert list(ours.iter_calc([AP], {}, RUN)) == []
    assert ours.calc_aggregate([], QRELS, RUN) == {}


def test_a_query_without_judgments_counts_as_missing():
    qrels, run = QRELS | {"none": {}}, RUN | {"none": {"a": 1.0}}
    measures = [measure for measure in SHARED if repr(measure) not in ("RR@3", "RR(rel=3)@10")]  # there it is left out
    expected = evaluate_separately(measures, qrels, run)
    assert_close(ours.calc_aggregate(measures, qrels, run), expected.aggregated)
    assert_close(table(ours.iter_calc(measures, qrels, run)), table(expected.per_query))


# -- input ---------------------------------------------------------------------------------------------------------


def inputs():
    qrels = [(query, doc, label) for query, docs in QRELS.items() for doc, label in docs.items()]
    run = [(query, doc, score) for query, docs in RUN.items() for doc, score in docs.items()]
    their_qrels = [theirs.Qrel(query, doc, label) for query, doc, label in qrels]
    yield "named tuples", their_qrels, [theirs.ScoredDoc(*row) for row in run]
    yield "generators", iter(their_qrels), (theirs.ScoredDoc(*row) for row in run)
    columns = {"query_id": [q for q, _, _ in qrels], "doc_id": [d for _, d, _ in qrels]}
    frames = columns | {"relevance": [label for _, _, label in qrels], "iteration": ["0"] * len(qrels)}
    scored = {"query_id": [q for q, _, _ in run], "query": ["text"] * len(run), "doc_id": [d for _, d, _ in run]}
    scored |= {"score": [score for _, _, score in run], "rank": [0] * len(run)}
    yield "pandas", pd.DataFrame(frames), pd.DataFrame(scored)
    yield "polars", pl.DataFrame(frames), pl.DataFrame(scored)
    yield "tiewise", tw.Qrels.from_dict(QRELS), tw.Run.from_dict(RUN)
    yield "rows", qrels, run


@pytest.mark.parametrize("kind", ["named tuples", "generators", "pandas", "polars", "tiewise", "rows"])
def test_inputs(kind):
    qrels, run = next((qrels, run) for name, qrels, run in inputs() if name == kind)
    measures = [nDCG @ 3, RR @ 10, Judged, NumRet, theirs.RBP(rel=1)]
    expected = ours.calc(measures, QRELS, RUN)
    found = ours.calc(measures, qrels, run)
    assert found.aggregated == expected.aggregated
    assert table(found.per_query) == table(expected.per_query)


def test_fields_are_found_by_name():
    class Scored(tuple):
        _fields = ("score", "doc_id", "query_id")
        score, doc_id, query_id = (property(lambda self, i=i: self[i]) for i in range(3))

    run = [Scored((0.5, "a", "q1")), Scored((0.7, "b", "q1"))]
    assert ours.calc_aggregate([RR], {"q1": {"a": 1}}, run) == {RR: 0.5}


def test_evaluator_takes_many_runs():
    qrels = draw(1)[0]
    measures = [nDCG @ 5, AP(rel=2), RR @ 3, Judged @ 5, Bpref]
    evaluator, peer = ours.evaluator(measures, qrels), theirs.evaluator(measures, qrels)
    for seed in (1, 2, 1):
        run = draw(seed)[1]
        assert_close(evaluator.calc_aggregate(run), peer.calc_aggregate(run))
        assert_close(table(evaluator.iter_calc(run)), table(peer.iter_calc(run)))
    assert evaluator.qrel_qids == peer.qrel_qids


# -- errors --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("measure", "message"),
    [
        (theirs.RBP @ 10, "RBP without rel is graded"),
        (theirs.RBP, "RBP without rel is graded"),
        (theirs.P, "invalid param cutoff"),
        ("ndgc@10", "Did you mean 'nDCG@10'"),
        ("nDCG(dcg='log3')@10", "dcg='log3' is not possible"),
        ("NumQ(rel=1)", "NumQ does not take all of these parameters: rel"),
        ("P(level=2)@10", "no parameter 'level'"),
        (10, "10 is a int, no measure"),
    ],
)
def test_invalid_measures(measure, message):
    with pytest.raises(tw.MeasureError, match=message):
        ours.calc_aggregate([measure], QRELS, RUN)


def test_a_measure_that_nobody_can_compute():
    class Novel(theirs.measures.Measure):
        __name__ = NAME = "Novel"

    with pytest.raises(tw.MeasureError, match=r"^Tiewise does not have Novel, nor has ir_measures as it is installed"):
        ours.calc_aggregate([RR, Novel()], QRELS, RUN)


@pytest.mark.parametrize("measure", [theirs.alpha_nDCG @ 10, "alpha_nDCG@10"])
def test_diversity_measures_need_subtopics(measure):
    with pytest.raises(tw.InputError, match=r"^alpha_nDCG@10 needs judgments for subtopics, and these have none"):
        ours.calc_aggregate([RR, measure], QRELS, RUN)


@pytest.mark.parametrize("kind", ["named tuples", "pandas", "polars"])
def test_ordinary_measures_on_judgments_for_subtopics(kind):
    """They use the highest label of a document, whether a diversity measure stands beside them or not."""
    rows = [theirs.Qrel("q", doc, label, name) for doc, label, name in [("a", 2, "1"), ("b", 1, "1"), ("a", 0, "2")]]
    qrels = rows if kind == "named tuples" else pytest.importorskip(kind).DataFrame(map(theirs.Qrel._asdict, rows))
    run = {"q": {"b": 3.0, "c": 2.0, "a": 1.0}}
    found = ours.calc_aggregate([AP, nDCG @ 10], qrels, run)
    assert found == theirs.calc_aggregate([AP, nDCG @ 10], {"q": {"a": 2, "b": 1}}, run)
    assert ours.calc_aggregate([theirs.alpha_nDCG @ 10, AP], qrels, run)[AP] == found[AP]


def test_a_warning_where_labels_are_above_the_scale():
    qrels, run = {"q": {"a": 3, "b": 1}}, {"q": {"a": 1.0, "b": 0.5}}
    with pytest.warns(tw.TiewiseWarning, match=r"^INST\(max_rel=1\): labels above 1 \(up to 3\) count as 1\."):
        ours.calc_aggregate([theirs.INST(max_rel=1), AP], qrels, run)
    (note,) = tw.evaluate(qrels, run, ["INST", "BPM", "INST(max_rel=3)"]).notes
    assert note.startswith("INST(max_rel=1), BPM(max_rel=1): labels above 1")


# -- measures that we do not have -----------------------------------------------------------------------------------

LENGTH = theirs.define_byquery(lambda qrels, run: float(len(run)), name="Length")
GREEDY = "INST(T=0.25, max_rel=2)"  # no probabilities, so we refuse it
MIXED = [LENGTH, nDCG @ 3, GREEDY, RR @ 10, "F1@2"]


@pytest.mark.parametrize("kind", ["named tuples", "generators", "pandas", "polars", "tiewise", "rows"])
def test_missing_measures_are_computed_by_ir_measures(kind):
    qrels, run = next((qrels, run) for name, qrels, run in inputs() if name == kind)
    pytest.importorskip("cwl")
    theirs_only = {LENGTH: LENGTH, GREEDY: theirs.parse_measure(GREEDY)}
    wanted = theirs.calc(list(theirs_only.values()), QRELS, RUN)
    rest = ours.calc([one for one in MIXED if one not in theirs_only], QRELS, RUN)
    found = ours.calc(MIXED, qrels, run)
    assert list(found.aggregated) == MIXED
    assert found.aggregated == rest.aggregated | {given: wanted.aggregated[one] for given, one in theirs_only.items()}
    of_theirs = {one: given for given, one in theirs_only.items()}
    expected = {(query, of_theirs[one]): value for (query, one), value in table(wanted.per_query).items()}
    assert table(found.per_query) == table(rest.per_query) | expected


def test_missing_measures_in_every_function():
    pytest.importorskip("cwl")
    evaluator = ours.evaluator(MIXED, iter([theirs.Qrel("q1", "a", 1), theirs.Qrel("q1", "b", 0)]))
    for _ in range(2):
        run = (theirs.ScoredDoc("q1", doc, 0.5) for doc in "ab")
        assert list(evaluator.calc_aggregate(run)) == MIXED
    assert evaluator.qrel_qids == {"q1"} and evaluator.measures == MIXED
    assert {one.measure for one in ours.iter_calc(MIXED, QRELS, RUN)} == set(MIXED)
    only = ours.evaluator([LENGTH], QRELS)
    assert only.calc_aggregate(RUN) == theirs.calc_aggregate([LENGTH], QRELS, RUN)
    assert only.qrel_qids == set(QRELS)


def test_frames_without_documents_reach_measures_that_a_user_defined():
    gold = pd.DataFrame({"query_id": ["q1"], "answer": ["abc"]})
    found = pd.DataFrame({"query_id": ["q1"], "text": ["abcd"]})
    longer = theirs.define_byquery(lambda qrels, run: len(run.iloc[0]["text"]) - len(qrels.iloc[0]["answer"]))
    assert ours.calc_aggregate([longer], gold, found) == {longer: 1}


def test_missing_measures_have_one_value():
    with pytest.raises(tw.MeasureError, match=r"Length: Tiewise does not have it, and ir_measures' own providers know"):
        ours.calc_aggregate([RR, LENGTH], QRELS, RUN, value="expected")


def test_fields_of_rbp():
    """cwl_eval's numbers beside RBP: utility, cost and items of a reader who goes on with probability p."""
    measures = [theirs.RBP(rel=1), theirs.RBP(rel=2, p=0.5), "RBP(rel=1, p=0.9)", RR]
    found = list(ours.iter_calc(measures, QRELS, RUN))
    assert [type(one) for one in found if one.query_id != "q3"] == [theirs.CwlMetric] * 3 + [theirs.Metric] + (
        [theirs.CwlMetric] * 3 + [theirs.Metric]
    )
    assert all(type(one) is theirs.Metric for one in found if one.query_id == "q3")  # it has no list
    for one in found:
        if type(one) is theirs.CwlMetric:
            p = 0.9 if isinstance(one.measure, str) else one.measure["p"]
            assert one.expected_total_utility == pytest.approx(one.value / (1 - p))
            assert (one.expected_cost, one.expected_total_cost, one.expected_items) == pytest.approx(
                (1, 1 / (1 - p), 1 / (1 - p))
            )
    if importlib.util.find_spec("cwl"):
        wanted = [one for one in theirs.iter_calc(measures[:2], QRELS, RUN) if type(one) is theirs.CwlMetric]
        ours_ = {(one.query_id, one.measure): one[2:] for one in found}
        assert len(wanted) == 4
        for one in wanted:
            assert ours_[one.query_id, one.measure] == pytest.approx(one[2:], abs=1e-12)


def test_unknown_statistics():
    with pytest.raises(tw.InputError, match="Unknown value 'mean'"):
        ours.evaluator([AP], QRELS, value="mean")
    ours.calc_aggregate([IPrec @ 0.5], QRELS, RUN, value="maximum")


def test_duplicate_document():
    run = [theirs.ScoredDoc("q1", "a", 0.5), theirs.ScoredDoc("q1", "a", 0.7)]
    with pytest.raises(tw.InputError, match="appears twice"):
        ours.calc_aggregate([AP], QRELS, run)


# -- the module in the place of ir_measures ------------------------------------------------------------------------


def test_all_public_names_exist():
    replaced = {"Evaluator", "__version__", "calc", "calc_aggregate", "evaluator", "iter_calc"}
    replaced |= {"parse_measure", "parse_trec_measure"}
    for name in theirs.__all__:
        assert (getattr(ours, name) is getattr(theirs, name)) == (name not in replaced), name
    star: dict[str, object] = {}
    exec("from tiewise.adapters.ir_measures import *", star)
    assert set(theirs.__all__) <= set(star)
    assert ours.nDCG is theirs.nDCG
    assert ours.parse_measure("MAP@10") == theirs.AP @ 10
    assert ours.parse_trec_measure("ndcg_cut.5,10") == [nDCG @ 5, nDCG @ 10]
    assert ours.Qrel is theirs.Qrel
    submodules: dict[str, object] = {}
    exec("from tiewise.adapters.ir_measures.measures import nDCG, RR as reciprocal\n", submodules)
    exec("from tiewise.adapters.ir_measures.util import parse_measure\n", submodules)
    exec("from tiewise.adapters.ir_measures.providers.base import Provider\n", submodules)
    exec("import tiewise.adapters.ir_measures.measures as named\n", submodules)
    assert submodules["nDCG"] is theirs.nDCG and submodules["reciprocal"] is theirs.RR
    assert submodules["Provider"] is theirs.Provider and submodules["named"] is theirs.measures is ours.measures
    with pytest.raises(AttributeError):
        _ = ours.nothing_of_this_name


WITHOUT = """
import json, sys
sys.modules["ir_measures"] = None
import tiewise as tw
import tiewise.adapters.ir_measures as irm
from tiewise.adapters.ir_measures import *
assert nDCG is tw.nDCG and MAP is tw.AP
from tiewise.adapters.ir_measures.measures import RR as reciprocal, Judged
assert reciprocal is tw.RR and Judged is irm.Judged
metric = list(irm.iter_calc(["RBP(rel=1)"], {"q": {"a": 1}}, {"q": {"a": 1.0}}))[0]
assert metric._fields[2:] == (
    "value", "expected_total_utility", "expected_cost", "expected_total_cost", "expected_items"
)
qrels = [irm.Qrel("q1", "a", 1), irm.Qrel("q1", "b", 0), irm.Qrel("q2", "c", 2)]
run = [irm.ScoredDoc("q1", "a", 0.5), irm.ScoredDoc("q1", "b", 0.5)]
measures = [irm.nDCG @ 10, irm.MRR @ 10, irm.Judged @ 10, irm.NumRelRet, irm.SetF, irm.parse_measure("P(rel=2)@5")]
measures += ["SetF(beta=2.0)", "nDCG(dcg='exp-log2', judged_only=True)@5", "RR"]
measures += irm.parse_trec_measure("map_cut.5,10")
found = irm.calc(measures, qrels, run)
metric = found.per_query[0]
assert metric._fields == ("query_id", "measure", "value") and metric.measure is measures[0]
assert irm.parse_measure("P(judged_only=True)@5") == (tw.P @ 5)(judged_only=True)
for text in ("TiewiseProvider()", "parse_measure('nDCG(gains={1: 5})@5')"):
    try:
        eval("irm." + text)
    except tw.TiewiseError as error:
        print(error, file=sys.stderr)
    else:
        raise SystemExit(text)
try:
    irm.alpha_nDCG
except AttributeError:
    pass
print(json.dumps({str(measure): number for measure, number in found.aggregated.items()}))
"""


def test_without_ir_measures():
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "pip install ir_measures" in done.stderr
    names = ["nDCG@10", "RR@10", "Judged@10", "NumRelRet", "SetF", "P(rel=2)@5", "SetF(beta=2.0)"]
    names += ["nDCG(dcg='exp-log2', judged_only=True)@5", "RR", "AP@5", "AP@10"]
    qrels, run = {"q1": {"a": 1, "b": 0}, "q2": {"c": 2}}, {"q1": {"a": 0.5, "b": 0.5}}
    assert list(json.loads(done.stdout).values()) == list(ours.calc_aggregate(names, qrels, run).values())


# -- the provider --------------------------------------------------------------------------------------------------


@pytest.fixture
def provider():
    before = list(theirs.DefaultPipeline.providers)
    yield ours.TiewiseProvider
    ours.TiewiseProvider.uninstall()
    assert theirs.DefaultPipeline.providers == before


def test_provider_in_ir_measures(provider):
    qrels, run = draw(5)
    every = [*SHARED, LENGTH]  # the last is left to another provider
    expected = evaluate_separately(every, qrels, run)
    installed = provider().install()
    assert theirs.DefaultPipeline.providers[0] is installed
    found = theirs.calc(every, qrels, run)
    assert_close(found.aggregated, expected.aggregated)
    assert_close(table(found.per_query), table(expected.per_query))
    rows = [theirs.Qrel(query, doc, label) for query, docs in qrels.items() for doc, label in docs.items()]
    scored = (theirs.ScoredDoc(query, doc, score) for query, docs in run.items() for doc, score in docs.items())
    assert_close(theirs.calc_aggregate(every, iter(rows), scored), expected.aggregated)


def test_provider_with_expectation(provider):
    assert AP.calc_aggregate(QRELS, RUN) == theirs.calc_aggregate([AP], QRELS, RUN)[AP]
    provider().install()
    provider(value="expected").install()  # in the place of the other
    assert [type(one) for one in theirs.DefaultPipeline.providers].count(provider) == 1
    report = tw.evaluate(QRELS, RUN, ["AP", "RR@10"], complete=True)
    assert theirs.calc_aggregate([AP, RR @ 10], QRELS, RUN) == {
        AP: report["AP"].expected,
        RR @ 10: report["RR@10"].expected,
    }
    assert AP.calc_aggregate(QRELS, RUN) == report["AP"].expected
    assert ours.calc_aggregate([AP], QRELS, RUN) != {AP: report["AP"].expected}  # the drop-in has its own value


@pytest.mark.parametrize("value", ["std", "bias"])
def test_std_and_bias_are_errors_of_the_provider(provider, value):
    """Beside a bias other providers would put plain values, and a mean of standard deviations is none of the mean."""
    with pytest.raises(tw.InputError) as raised:
        provider(value=value)
    assert f"value='{value}'" in str(raised.value) and "tiewise.evaluate" in str(raised.value)
    assert ours.calc_aggregate([AP, RR], QRELS, RUN, value=value)  # where nothing else is mixed in


def test_std_of_a_mean_is_the_same_in_every_function():
    wanted = tw.evaluate(QRELS, RUN, "AP", complete=True)["AP"].std
    assert wanted > 0
    assert ours.calc_aggregate([AP], QRELS, RUN, value="std")[AP] == pytest.approx(wanted)
    assert ours.calc([AP], QRELS, RUN, value="std").aggregated[AP] == pytest.approx(wanted)
    assert ours.evaluator([AP, RR], QRELS, value="std").calc_aggregate(RUN)[AP] == pytest.approx(wanted)


def test_provider_supports_only_its_measures(provider):
    plain, expected = provider(), provider(value="expected")
    assert all(plain.supports(measure) for measure in SHARED)
    assert all(plain.supports(measure) for measure in [*USER_MODELS, theirs.Compat, theirs.Accuracy @ 5])
    others = [LENGTH, theirs.RBP, theirs.SDCG @ 5, theirs.P]
    assert not any(plain.supports(measure) for measure in others)
    assert all(expected.supports(measure) for measure in (infAP, IPrec @ 0.1, nDCG @ 10))


def test_provider_in_pyterrier(provider):
    """PyTerrier gives frames with more columns than are needed, to the function that the module had when imported."""
    calc = theirs.iter_calc
    run = pd.DataFrame(
        {"query_id": ["1", "1"], "doc_id": ["a", "b"], "score": [0.5, 0.5], "rank": [0, 1], "query": ["x", "x"]}
    )
    qrels = pd.DataFrame({"query_id": ["1"], "doc_id": ["a"], "relevance": [1]})
    provider(value="expected").install()
    assert table(calc([RR, RR @ 10], qrels, run)) == {("1", RR): 0.75, ("1", RR @ 10): 0.75}


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_order_of_measures_does_not_change_between_processes(seed):
    """ir_measures gives its providers a set, and PyTerrier makes columns in the order of the numbers."""
    code = (
        "import ir_measures as m; from tiewise.adapters.ir_measures import TiewiseProvider as P; P().install(); "
        "print([str(one.measure) for one in m.iter_calc([m.AP, m.RR@10, m.nDCG@5], {'q': {'a': 1}}, {'q': {'a': 1}})])"
    )
    env = {**os.environ, "PYTHONHASHSEED": str(seed)}
    done = subprocess.run([sys.executable, "-c", code], env=env, check=True, capture_output=True, text=True)
    assert done.stdout == "['AP', 'RR@10', 'nDCG@5']\n"


@pytest.mark.parametrize("name", ["nDCG@0", "P@0", "AP@0", "RR@0", "Success@0", "Accuracy@0"])
def test_cutoff_below_one(name):
    with pytest.raises(tw.MeasureError, match="from 1 on"):
        ours.calc_aggregate([name], {"q": {"a": 1}}, {"q": {"a": 1.0}})


def test_measures_must_be_a_list():
    for measures, match in (("nDCG", r"such as \['nDCG'\]"), ([["nDCG@10"]], "is not a measure")):
        with pytest.raises(tw.MeasureError, match=match):
            ours.calc_aggregate(measures, {"q": {"a": 1}}, {"q": {"a": 1.0}})


def test_infinite_scores_reach_ir_measures():
    run = tw.Run.from_dict({"q": {"a": float("inf"), "b": 1.0}})
    assert ours.calc_aggregate(["Compat(p=0.95)"], {"q": {"a": 1}}, run)["Compat(p=0.95)"] == 1.0
