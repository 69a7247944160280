"""Results travel: what is pickled or copied says what the original says, and needs neither the files nor the rows."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import tiewise as tw

QRELS = {"q": {"a": 1, "b": 0, "z": 2}, "p": {"c": 1, "a": 0}}
RUN = {"q": {"a": 1.0, "b": 1.0, "c": 0.5, "z": 0.5}, "p": {"c": 1.0, "a": 1.0}}
OTHER = {"q": {"b": 2.0, "a": 1.0}, "p": {"c": 1.0}}
MEASURES = ["nDCG@10", "RR", "AP"]

WAYS = {"pickle": lambda x: pickle.loads(pickle.dumps(x)), "deepcopy": copy.deepcopy, "copy": copy.copy}


def results() -> dict[str, object]:
    with pytest.warns(tw.CutWarning):
        cut = tw.evaluate(QRELS, RUN, MEASURES)
    return {
        "report": cut,
        "columns": tw.evaluate(QRELS, tw.Run.from_dict(RUN), MEASURES, complete=True),
        "float16": tw.evaluate(QRELS, RUN, MEASURES, complete=True, score_dtype="float16", oblivious="given"),
        "judged only": tw.evaluate(QRELS, RUN, MEASURES, complete=True, judged_only=True),
        "tie groups": tw.evaluate(None, tw.notation("(10)1"), "RR", complete=True, oblivious=None),
        "audit": tw.audit(RUN),
        "judged audit": tw.audit(RUN, qrels=QRELS, reference=OTHER),
        "comparison": tw.compare(QRELS, {"A": RUN, "B": OTHER}, ["RR", "AP"]),
        "leaderboard": tw.leaderboard({"c": (QRELS, {"A": RUN, "B": OTHER})}),
        "similarity": tw.similarity({"a": RUN, "b": OTHER}),
        "rbo": tw.rbo("ab", "ac", phi=0.9),
        "run": tw.Run.from_dict(RUN),
        "qrels": tw.Qrels.from_dict(QRELS),
        "measure": tw.P(rel=2) @ 10,
    }


@pytest.mark.filterwarnings("ignore::tiewise.errors.CutWarning")
@pytest.mark.parametrize("way", WAYS)
def test_results_can_be_pickled_and_copied(way):
    for name, result in results().items():
        assert repr(WAYS[way](result)) == repr(result), name


@pytest.mark.parametrize("way", WAYS)
def test_a_std_that_nobody_looked_at_travels(way):
    x, y = "a (b c) d", "(a b) c e"
    for result in (tw.rbo(x, y), tw.rbo(x, y, ties="w"), tw.rba(x, y, phi=0.8), tw.rbr("(a b)", y, phi=0.8, depth=1)):
        travelled = WAYS[way](result.lower)
        assert travelled == result.lower and travelled.std == result.lower.std
        assert travelled.to_dict() == result.lower.to_dict()
        assert list(result.lower.to_dict()) == list(tw.Estimate().to_dict())  # in the same order


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", ["dictionary", "columns", "file", "parquet"])
def test_a_report_that_travelled_answers_all_that_it_did(tmp_path, way, kind):
    run = RUN
    if kind == "columns":
        run = tw.Run.from_dict(RUN)
    elif kind != "dictionary":
        run = tmp_path / ("run.trec" if kind == "file" else "run.parquet")
        if kind == "parquet":
            pytest.importorskip("pyarrow")
        tw.write_run(tw.Run.from_dict(RUN), run)
    report = tw.evaluate(QRELS, run, MEASURES, complete=True, score_dtype="float32")
    expected = tw.evaluate(QRELS, run, MEASURES, complete=True, score_dtype="float32")
    found = WAYS[way](report)
    if way != "copy" and kind in ("file", "parquet"):
        wanted = expected.to_json(per_query=True), expected.oblivious_by_tool(), expected.at("P@2, R@1")
        run.unlink()  # the counts are there
    else:
        wanted = expected.to_json(per_query=True), expected.oblivious_by_tool(), expected.at("P@2, R@1")
    assert (found.to_json(per_query=True), found.oblivious_by_tool()) == wanted[:2]
    assert repr(found.at("P@2, R@1")) == repr(wanted[2])
    assert dict(found.per_query("nDCG@10")) == dict(expected.per_query("nDCG@10"))


def test_a_pickle_holds_counts_and_no_rows():
    scores = np.random.default_rng(0).integers(0, 50, 20_000).tolist()
    run = {"q": {f"document-{i}": float(score) for i, score in enumerate(scores)}}
    report = tw.evaluate({"q": {"document-7": 1}}, run, "nDCG@10", complete=True)
    assert len(pickle.dumps(report)) < 20_000


def test_a_report_of_a_changed_dictionary_keeps_what_was_counted():
    run = {"q": {"a": 1.0, "b": 1.0}}
    report = tw.evaluate({"q": {"a": 1}}, run, "RR", complete=True)
    run["q"]["c"] = 5.0
    assert pickle.loads(pickle.dumps(report))["RR"] == report["RR"]


@pytest.mark.parametrize("way", ["deepcopy", "copy"])
@pytest.mark.parametrize("kind", ["columns", "file"])
def test_a_copy_in_the_same_process_can_count_its_run_again(tmp_path, way, kind):
    """Documents of label 0 were not counted for AP; Bpref needs them."""
    run = tw.Run.from_dict(RUN) if kind == "columns" else tmp_path / "run.trec"
    if kind == "file":
        tw.write_run(tw.Run.from_dict(RUN), run)
    report = tw.evaluate(QRELS, run, "AP", complete=True)
    assert repr(WAYS[way](report).at("Bpref")) == repr(report.at("Bpref"))
