"""evaluate() and its Report: means, options, provenance, what other tools would print, lists that were cut."""

from __future__ import annotations

import gc
import json
import math
import pickle
import random
import warnings
import weakref

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import oracle
import tiewise as tw
from cases import MEASURES, cases
from tiewise import registry
from tiewise.errors import CutWarning, InputError, MeasureError

ALL = [measure for measure, _ in MEASURES]


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
    report = evaluate(qrels, run, ALL)
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
    for i in range(60):
        n = int(rng.choice([1, 2, 5, 17, 40, 120, 900]))
        kinds = int(rng.integers(1, 12))
        docs = [f"d{j}" for j in range(n)]
        scores = rng.permutation(n) if rng.random() < untied else rng.integers(0, kinds, n)
        run[f"q{i}"] = dict(zip(docs, (scores / 7).tolist(), strict=True))
        judged = rng.choice(docs, size=int(rng.integers(1, n + 1)), replace=False)
        qrels[f"q{i}"] = {d: float(rng.choice([0, 0, 1, 2, 0.5, -1, 3])) for d in judged} | {"x": 1.0}
    measures = [m @ k for m in ALL for k in ((7, 100) if m.takes_cutoff else (None,))]
    options = {"oblivious": "given", "complete": not untied}
    together = tw.evaluate(qrels, run, measures, **options)
    for query in qrels:
        alone = tw.evaluate({query: qrels[query]}, {query: run[query]}, measures, **options)
        for measure in measures:
            a, b = together.per_query(measure)[query], alone.per_query(measure)[query]
            assert (a.cut or (a.expected,) * 2) == pytest.approx(b.cut or (b.expected,) * 2, rel=1e-12, abs=1e-14)
            for field in ("expected", "minimum", "maximum", "std", "oblivious", "residual"):
                one, other = getattr(a, field), getattr(b, field)
                assert one == other or one == pytest.approx(other, rel=1e-12, abs=1e-14), (measure, field)


def test_the_spread_of_labels_that_are_nearly_equal():
    for low, high in ((0.95, 0.9500001), (1000.0, 1000.001), (1e9, 1e9 + 1)):
        found = evaluate({"q": {"a": low, "b": high}}, {"q": {"a": 1.0, "b": 1.0}}, "DCG@1")["DCG@1"]
        assert found.std == pytest.approx((high - low) / 2, rel=1e-9)


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


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_renaming_and_shuffling_change_nothing_but_oblivious(seed):
    rng = random.Random(seed)
    qrels, run = random_case(seed % 50, queries=3)
    new = {f"d{i:02d}": f"x{n}" for i, n in enumerate(rng.sample(range(25), 25))}
    renamed = {q: {new[d]: s for d, s in rng.sample(list(docs.items()), len(docs))} for q, docs in run.items()}
    labels = {q: {new[d]: s for d, s in docs.items()} for q, docs in qrels.items()}
    before, after = evaluate(qrels, run, ALL), evaluate(labels, renamed, ALL)
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
    assert "1 query is without a relevant document for P@5, Judged@5 and left out." in report.notes


def test_a_dictionary_that_changes_after_it_was_evaluated():
    run = {"q": {"a": 1.0, "b": 1.0}}
    report = evaluate({"q": {"a": 1}}, run, "RR")
    run["q"]["c"] = 5.0
    with pytest.raises(InputError, match="changed after it was evaluated"):
        report.oblivious_by_tool()


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


@settings(max_examples=150, deadline=None)
@given(case=cases(), depth=st.integers(1, 6), cutoff=st.integers(1, 8))
def test_depth_is_a_cut_of_every_order(case, depth, cutoff):
    """Ranks past the depth do not count, in each order separately: enumerated."""
    names = {
        "nDCG": tw.nDCG @ cutoff,
        "AP": tw.AP,
        "RR": tw.RR @ cutoff,
        "R": tw.R @ cutoff,
        "RBP": tw.RBP,
        "SetP": tw.SetP,
    }
    urns = tw.evaluate(case.qrels, case.run, list(names.values()), depth=depth, complete=True, oblivious="given")
    for name, measure in names.items():
        k = measure.cutoff
        values = []
        for ranked in oracle.orders(case.scores, case.labels):
            lost = [label for label in ranked[depth:] if label is not None]
            values.append(oracle.value(name, ranked[:depth], [*case.unretrieved, *lost], k))
        assert urns[measure].expected == pytest.approx(math.fsum(values) / len(values), abs=1e-12)
        assert urns[measure].minimum == pytest.approx(min(values), abs=1e-12)
        assert urns[measure].maximum == pytest.approx(max(values), abs=1e-12)
        assert urns[measure].std == pytest.approx(float(np.std(values)), abs=1e-12)
        given_order = sorted(range(len(case.scores)), key=lambda i: -case.scores[i])
        ranked = [case.labels[i] for i in given_order]
        lost = [label for label in ranked[depth:] if label is not None]
        truth = oracle.value(name, ranked[:depth], [*case.unretrieved, *lost], k)
        assert urns[measure].oblivious == pytest.approx(truth, abs=1e-12)


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


# -- lists that were cut inside a tie group ------------------------------------------------------------------------


def test_a_list_that_ends_in_a_tie_warns_once_with_bounds():
    qrels = {"q": {"a": 1, "b": 1, "z": 1}, "p": {"a": 1}}
    run = {"q": {"a": 2.0, "b": 1.0, "c": 1.0}, "p": {"a": 2.0, "c": 1.0}}
    with pytest.warns(CutWarning, match="1 of 2 lists ends with tied documents") as caught:
        report = tw.evaluate(qrels, run, ["RR", "R@3", "P@1"])
    assert len(caught) == 1
    assert report["P@1"].cut is None  # it does not look that far
    low, high = report.per_query("R@3")["q"].cut
    # Of a group without end none is seen; with z in it, two of b, c, z are.
    assert low == pytest.approx(1 / 3)
    assert high == pytest.approx((1 + 4 / 3) / 3)
    assert report.per_query("R@3")["p"].cut == (1.0, 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert tw.evaluate(qrels, run, ["RR", "R@3"], complete=True)["R@3"].cut is None


def test_a_document_joins_a_cut_group_only_if_it_raises_its_mean():
    """Two documents of label 2 are shown; one of label 1 that was not retrieved would lower the group's mean."""
    qrels, run = {"q": {"a": 2, "b": 2, "z": 1}}, {"q": {"a": 1.0, "b": 1.0}}
    with pytest.warns(CutWarning):
        found = tw.evaluate(qrels, run, "DCG@2")["DCG@2"]
    assert found.cut[1] == found.expected == pytest.approx(2 + 2 / np.log2(3))
    qrels["q"]["z"] = 3  # this one raises it: two of a, b, z are seen, each as likely
    with pytest.warns(CutWarning):
        found = tw.evaluate(qrels, run, "DCG@2")["DCG@2"]
    assert found.cut[1] == pytest.approx(7 / 3 * (1 + 1 / np.log2(3)))


@pytest.mark.parametrize("kind", [np.int64, np.int32, np.uint8])
def test_a_depth_may_be_a_whole_number_of_numpy(kind):
    qrels, run = {"q": {"a": 1}}, {"q": {"b": 2.0, "a": 1.0}}
    found, plain = (tw.evaluate(qrels, run, "RR", depth=depth) for depth in (kind(1), 1))
    assert found.to_json() == plain.to_json()
    for depth in (np.float64(5), np.int64(0), np.True_, "5"):
        with pytest.raises(tw.InputError, match="depth is a whole number of ranks from 1 on"):
            tw.evaluate(qrels, run, "RR", depth=depth)


@settings(max_examples=100, deadline=None)
@given(case=cases(most=6), hidden=st.lists(st.sampled_from([None, 0, 1, 2]), max_size=3), cutoff=st.integers(1, 6))
def test_cut_bounds_hold_for_every_list_that_could_have_been_cut(case, hidden, cutoff):
    """Any tie group of which the list shows a random part has its expectation within the bounds."""
    assume(case.scores)
    floor = min(case.scores)
    shown = len(case.scores)
    # The whole list: the hidden documents tie with the last group. What is shown are the first `shown` ranks of it.
    scores, labels = [*case.scores, *[floor] * len(hidden)], [*case.labels, *hidden]
    judged = {d: label for d, label in zip(case.docs, case.labels, strict=True) if label is not None}
    judged |= {f"h{i}": label for i, label in enumerate(hidden) if label is not None}
    judged |= {f"u{i}": label for i, label in enumerate(case.unretrieved)}
    assume(judged)
    for name in ("nDCG", "R", "AP", "RR", "P"):
        measure = tw.measures()[name] @ cutoff
        truth = []
        for ranked in oracle.orders(scores, labels):
            lost = [label for label in ranked[shown:] if label is not None]
            truth.append(oracle.value(name, ranked[:shown], [*case.unretrieved, *lost], cutoff))
        expected = math.fsum(truth) / len(truth)
        # The bounds are computed from the shown part only, averaged over which part is shown.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = tw.evaluate(
                {"q": judged}, {"q": dict(zip(case.docs, case.scores, strict=True))}, measure, oblivious=None
            )[measure]
        if found.cut is None or not hidden:
            continue
        assert found.cut[0] <= found.expected <= found.cut[1]
        if all(label is None for label in case.labels):  # the shown part says nothing: the bounds must hold the truth
            assert found.cut[0] - 1e-12 <= expected <= found.cut[1] + 1e-12


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
    assert any("not blind to the labels" in note for note in knowing.notes)
    assert not any("blind" in note for note in evaluate(qrels, shuffled, "nDCG@5", oblivious="given").notes)


# -- the report ----------------------------------------------------------------------------------------------------


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
    with pytest.warns(CutWarning):
        tw.evaluate(qrels, {"q": {"x": 4.0, "a": 3.0, "b": 3.0}}, "RR", judged_only=True)


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


def test_labels_beyond_the_scale_are_an_error():
    for name in ("ERR", "nERR", 'RBP(gains="graded", max=2)'):
        with pytest.raises(MeasureError, match="a label of 5 exceeds max="):
            evaluate({"q": {"a": 5}}, {"q": {"a": 1.0}}, name)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("NDGC@10", "Unknown measure 'NDGC@10'. Did you mean 'nDCG@10'"),
        ("nDCG@0", "whole number from 1"),
        ("nDCG@-1", "whole number|Unknown"),
        ("nDCG@1.5", "whole number"),
        ("nDCG@10@5", "one whole number"),
        ("P@0x10", "whole number"),
        ("nDCG@99999999999999999999", "whole number"),
        ("rbp.p=", "no value for p"),
        ("ERR(max=2000)", "below 1000"),
        ("P(rel={[1]:2})", "number or a quoted word"),
        ("Rprec@10", "takes no cutoff"),
        ("P(relevance=2)", "no parameter 'relevance'; it takes rel"),
        ("P(2)@5", "parameters have names"),
        ('AP(norm="min")', 'Use "all" or "cap"'),
        ("RBP(p=1)", "must lie above 0 and below 1"),
        ("RBP(p='x')", "no number"),
        ("P(rel=__import__('os'))", "Unknown measure|number or a quoted word"),
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
    ],
)  # fmt: skip
def test_other_tools_spellings(spelling, canonical):
    assert str(tw.parse(spelling)) == canonical


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
            held = weakref.ref(report._readings.ties)
            del report
            assert held() is None
    finally:
        gc.enable()
