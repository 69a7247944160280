"""The drop-in for pytrec_eval against pytrec_eval itself, in which also every statistic is enumerated."""

from __future__ import annotations

import io
import math
import warnings
from collections import OrderedDict, defaultdict

import numpy as np
import pytest

import tiewise as tw
import tiewise.adapters.pytrec_eval as ours
from peers import draw, orders

theirs = pytest.importorskip("pytrec_eval")

NAMES_OF_PEER = sorted(theirs.supported_measures - {"runid"})  # its number is whatever is in memory
#: Whose last bit may differ: gain · (1 / log2) for gain / log2, the order of a sum, NumPy's logarithm.
ROUNDED = ("ndcg", "Rndcg", "G", "binG", "11pt_avg", "gm_")
#: nan in pytrec_eval where the list is empty.
UNDEFINED = ("iprec_at_recall", "11pt_avg")


def without_runid(found):
    return {query: row | ({"runid": 0.0} if "runid" in row else {}) for query, row in found.items()}


def assert_same(found, expected):
    assert list(found) == list(expected)  # queries in the order of the run
    for query, row in expected.items():
        assert list(found[query]) == list(row)  # names in trec_eval's order
        for name, number in row.items():
            got = found[query][name]
            assert type(got) is float
            if name.startswith(ROUNDED) and not math.isnan(number):
                assert got == pytest.approx(number, rel=1e-14, abs=1e-15), (query, name)
            elif math.isnan(number):
                assert name.startswith(UNDEFINED)
                assert got == 0.0
            else:
                assert got == number, (query, name)


@pytest.mark.parametrize("judged_only", [False, True])
@pytest.mark.parametrize("level", [1, 2, 3])
@pytest.mark.parametrize("seed", range(25))
def test_numbers_equal_pytrec_eval(seed, level, judged_only):
    qrels, run = draw(seed)
    expected = theirs.RelevanceEvaluator(qrels, NAMES_OF_PEER, level, judged_only).evaluate(run)
    assert_same(ours.RelevanceEvaluator(qrels, NAMES_OF_PEER, level, judged_only).evaluate(run), expected)


def test_all_measures_are_there():
    assert ours.supported_measures == theirs.supported_measures
    for nickname in ours.supported_nicknames:
        assert ours.supported_nicknames[nickname] == theirs.supported_nicknames[nickname]


@pytest.mark.parametrize("name", sorted(theirs.supported_measures))
def test_a_measure_of_each_name_and_its_mean(name):
    """One name at a time, for a run without ties: the numbers of each query, and what they make together."""
    qrels, run = draw(11)
    untied = {query: {doc: -float(place) for place, doc in enumerate(docs)} for query, docs in run.items()}
    expected = theirs.RelevanceEvaluator(qrels, {name}).evaluate(untied)
    found = ours.RelevanceEvaluator(qrels, {name}).evaluate(untied)
    assert_same(found, without_runid(expected))
    for key in next(iter(expected.values())):
        values = [row[key] for row in expected.values()]
        assert ours.compute_aggregated_measure(key, values) == theirs.compute_aggregated_measure(key, values)


def test_queries_are_in_the_order_in_which_an_ordered_dictionary_lists_them():
    qrels, run = draw(1)
    moved = OrderedDict(run)
    moved.move_to_end(next(iter(run)))  # the dictionary beneath keeps its order
    found = ours.RelevanceEvaluator(qrels, {"map"}).evaluate(moved)
    assert list(found) == [query for query in moved if query in qrels] != [query for query in run if query in qrels]


def test_evaluator_takes_many_runs():
    evaluator = ours.RelevanceEvaluator(draw(1)[0], {"ndcg_cut_5", "map"})
    peer = theirs.RelevanceEvaluator(draw(1)[0], {"ndcg_cut_5", "map"})
    for seed in (1, 2, 3, 1):
        run = draw(seed)[1]
        assert_same(evaluator.evaluate(run), peer.evaluate(run))
    assert evaluator.evaluate({}) == {}
    assert evaluator.evaluate({"unknown": {"a": 1.0}}) == {}


def test_long_lists_with_few_judgments():
    rng = np.random.default_rng(0)
    run, qrels = {}, {}
    for query in range(30):
        docs = [f"d{code}" for code in rng.choice(10_000, 1000, replace=False)]
        scores = np.round(rng.normal(size=1000), 1 + query % 3)
        run[str(query)] = dict(zip(docs, (np.sort(scores)[::-1] if query % 2 else scores).tolist(), strict=True))
        qrels[str(query)] = dict.fromkeys(rng.choice(docs, 1 + query % 2).tolist(), 1)
    expected = theirs.RelevanceEvaluator(qrels, NAMES_OF_PEER).evaluate(run)
    assert_same(ours.RelevanceEvaluator(qrels, NAMES_OF_PEER).evaluate(run), expected)


# -- statistics over all orders ------------------------------------------------------------------------------------

SMALL = [
    ({"a": 1, "b": 0, "c": 2, "x": 1}, {"a": 0.5, "b": 0.5, "c": 0.25, "d": 0.25, "e": 0.25}),
    ({"a": 1, "b": 0, "c": -1, "d": 3}, {"a": 0.5, "b": 0.5, "c": 0.5, "d": 0.5, "e": 0.25}),
    ({"a": 2, "b": 1, "c": 1, "d": 0}, {"e": 0.9, "a": 0.5, "b": 0.5, "c": 0.5, "d": 0.5}),
    ({"x": 1}, {"a": 0.5, "b": 0.5}),
]
NAMES = [
    *NAMES_OF_PEER,
    "P_1,2,3",
    "ndcg_cut_2,3",
    "recall_2,3",
    "map_cut_2,3",
    "relative_P_1,2",
    "success_2",
    "Rprec_mult_0.7",
]


@pytest.mark.parametrize("judged_only", [False, True])
@pytest.mark.parametrize("level", [1, 2])
@pytest.mark.parametrize(("labels", "scores"), SMALL)
def test_statistics_equal_pytrec_eval_over_all_orders(labels, scores, level, judged_only):
    every = [
        theirs.RelevanceEvaluator({"q": labels}, NAMES, level, judged_only).evaluate({"q": order})["q"]
        for order in orders(scores)
    ]
    truth = {name: np.nan_to_num([row[name] for row in every]) for name in every[0]}  # nan: UNDEFINED
    for value in ("expected", "minimum", "maximum", "std"):
        found = ours.RelevanceEvaluator({"q": labels}, NAMES, level, judged_only, value=value).evaluate({"q": scores})
        for name, number in found["q"].items():
            numbers = truth[name]
            want = {
                "expected": numbers.mean(),
                "minimum": numbers.min(),
                "maximum": numbers.max(),
                "std": numbers.std(),
            }[value]
            assert number == pytest.approx(want, rel=1e-12, abs=1e-12), (name, value)


@pytest.mark.parametrize("seed", range(5))
def test_values_equal_evaluate(seed):
    qrels, run = draw(seed)
    names = {
        "map": "AP",
        "Rprec": "Rprec",
        "bpref": "Bpref",
        "recip_rank": "RR",
        "P_5": "P@5",
        "recall_10": "R@10",
        "ndcg": "nDCG",
        "ndcg_cut_10": "nDCG@10",
        "map_cut_5": "AP@5",
        "success_1": "Success@1",
        "set_P": "SetP",
        "set_recall": "SetR",
    }
    report = tw.evaluate(qrels, run, list(names.values()), oblivious="pytrec_eval", missing="skip", complete=True)
    for value in ("oblivious", "expected", "minimum", "maximum", "std", "bias"):
        found = ours.RelevanceEvaluator(qrels, names, value=value).evaluate(run)
        for name, measure in names.items():
            expected = {query: getattr(one, value) for query, one in report.per_query(measure).items()}
            assert {query: row[name] for query, row in found.items()} == expected


def test_float32_ties_do_not_affect_the_expectation():
    qrels, run = {"q": {"a": 1}}, {"q": {"a": 0.123456789, "b": 0.123456788}}
    assert theirs.RelevanceEvaluator(qrels, {"map"}).evaluate(run) == {"q": {"map": 0.5}}
    for value, number in [("oblivious", 0.5), ("expected", 1.0), ("minimum", 1.0), ("bias", -0.5), ("std", 0.0)]:
        assert ours.RelevanceEvaluator(qrels, {"map"}, value=value).evaluate(run) == {"q": {"map": number}}


# -- names ---------------------------------------------------------------------------------------------------------

QRELS = {"q": {"a": 1, "b": 0, "c": 2}, "p": {"a": 1}}
RUN = {"q": {"a": 0.3, "b": 0.5, "x": 0.9, "c": 0.1}, "p": {"a": 1.0, "z": 1.0}}


@pytest.mark.parametrize(
    "names",
    [
        {"ndcg_cut"},
        {"ndcg_cut.5,10"},
        {"ndcg_cut_10,5"},
        {"P_5", "P.7", "P"},
        {"recall.100,7", "success"},
        {"iprec_at_recall_0.55,0.5", "Rprec_mult_1.5,0.333", "Rprec_mult_0"},
        {"set_F"},
        {"set_F_2"},
        {"set_F_0.5", "relative_P_9,10"},
        {"official"},
        {"set", "P_3"},
        set(),
        ["map", "map"],
    ],
)
def test_names_expand_as_in_pytrec_eval(names):
    expected = without_runid(theirs.RelevanceEvaluator(QRELS, names).evaluate(RUN))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_same(ours.RelevanceEvaluator(QRELS, names).evaluate(RUN), expected)


def test_a_nickname_is_all_of_its_measures():
    expected = theirs.RelevanceEvaluator(QRELS, {"all_trec"}).evaluate(RUN)
    assert_same(ours.RelevanceEvaluator(QRELS, {"all_trec"}).evaluate(RUN), without_runid(expected))


@pytest.mark.parametrize("name", ["recip_rank_10", "map_5", "infAP_3", "relstring_5"])
def test_ignored_parameter_warns(name):
    with pytest.warns(tw.TiewiseWarning, match=f"{name} is .*ignores"):
        evaluator = ours.RelevanceEvaluator(QRELS, {name})
    assert_same(evaluator.evaluate(RUN), theirs.RelevanceEvaluator(QRELS, {name}).evaluate(RUN))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("G_5", "takes no parameter"),  # pytrec_eval aborts the process
        ("rbp", "unsupported measure rbp"),
        ("ndgc", "unsupported measure ndgc"),
        ("prefs", "unsupported measure prefs"),
        ("P_0", "whole number from 1"),  # pytrec_eval aborts the process
        ("map_cut_0", "whole number from 1"),
        ("P_5.5", "whole number from 1"),
        ("P_5x", "unsupported measure P_5x"),
        ("ndcg_10", "Write ndcg_cut_10"),  # pytrec_eval aborts the process
        ("utility_2", "takes no parameter"),
        ("set_F_1,2", "takes one parameter"),
    ],
)
def test_invalid_names(name, message):
    with pytest.raises(tw.MeasureError, match=message):
        ours.RelevanceEvaluator(QRELS, {name})
    with pytest.raises(ValueError):  # as pytrec_eval raises it
        ours.RelevanceEvaluator(QRELS, {name})


def test_measures_must_be_a_collection():
    with pytest.raises(tw.MeasureError, match=r"such as \{'map'\}"):
        ours.RelevanceEvaluator(QRELS, "map")


# -- input ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", [0, -1, "1", None, math.nan, math.inf])
def test_invalid_relevance_levels(level):
    with pytest.raises(tw.InputError, match="relevance_level"):
        ours.RelevanceEvaluator(QRELS, {"map"}, level)


def test_unknown_value():
    with pytest.raises(tw.InputError, match="Unknown value 'mean'"):
        ours.RelevanceEvaluator(QRELS, {"map"}, value="mean")


def test_query_with_only_negative_labels():  # pytrec_eval may segfault
    qrels = {"q": {"a": -1, "b": -2}}
    found = ours.RelevanceEvaluator(qrels, ours.supported_measures).evaluate({"q": {"a": 1.0, "x": 1.0}})["q"]
    assert {name: number for name, number in found.items() if number} == {
        "num_q": 1.0,
        "num_ret": 2.0,
        "gm_map": math.log(1e-5),
        "gm_bpref": math.log(1e-5),
        "utility": -2.0,
    }


def test_fractional_labels_and_scores_of_numpy():
    qrels = {"q": {"a": 0.5, "b": 1.5, "c": np.int64(1)}}
    run = {"q": {"a": np.float32(0.5), "b": np.float64(0.25), "c": np.int32(2)}}
    found = ours.RelevanceEvaluator(qrels, {"ndcg", "map", "num_rel"}, 0.5).evaluate(run)["q"]
    assert found["map"] == 1.0
    assert found["num_rel"] == 3.0
    gain = 1 / math.log2(2) + 0.5 / math.log2(3) + 1.5 / math.log2(4)
    assert found["ndcg"] == pytest.approx(gain / (1.5 / math.log2(2) + 1 / math.log2(3) + 0.5 / math.log2(4)))
    assert ours.RelevanceEvaluator(qrels, {"num_rel"}).evaluate(run)["q"] == {"num_rel": 2.0}


def test_missing_and_empty_queries():
    qrels = {"both": {"a": 1}, "judged": {"a": 1}, "empty": {}, "nothing": {"a": 1}}
    run = {"run": {"a": 1.0}, "nothing": {}, "both": {"a": 1.0}, "empty": {"a": 1.0}}
    expected = theirs.RelevanceEvaluator(qrels, {"map", "num_ret"}).evaluate(run)
    assert list(expected) == ["nothing", "both"]
    assert_same(ours.RelevanceEvaluator(qrels, {"map", "num_ret"}).evaluate(run), expected)


def test_other_inputs(tmp_path):
    qrels, run = draw(7, negative=False)
    (tmp_path / "qrels").write_text("".join(f"{q} 0 {d} {n}\n" for q, docs in qrels.items() for d, n in docs.items()))
    expected = ours.RelevanceEvaluator(qrels, {"map", "P"}).evaluate(run)
    assert ours.RelevanceEvaluator(tmp_path / "qrels", {"map", "P"}).evaluate(tw.Run.from_dict(run)) == expected


def test_input_errors():
    with pytest.raises(tw.InputError, match="'nan' for query 'q', document 'a'"):
        ours.RelevanceEvaluator(QRELS, {"map"}).evaluate({"q": {"a": math.nan}})
    with pytest.raises(tw.InputError, match="'high' is not a number"):
        ours.RelevanceEvaluator(QRELS, {"map"}).evaluate({"q": {"a": "high"}})
    with pytest.raises(tw.InputError, match="query 'q'"):
        ours.RelevanceEvaluator({"q": 5}, {"map"})


# -- aggregation and files ---------------------------------------------------------------------------------------------


def test_aggregation():
    qrels, run = draw(3)
    found = ours.RelevanceEvaluator(qrels, NAMES_OF_PEER).evaluate(run)
    for name in next(iter(found.values())):
        values = [row[name] for row in found.values()]
        assert ours.compute_aggregated_measure(name, values) == theirs.compute_aggregated_measure(name, values)


TREC_RUN = "q1 Q0 d1 1 0.5 tag\nq1 Q0 日本 2 -1e-3 tag\nq2 Q0 d1 1 7 tag\nq1 Q0 d3 3 inf tag\n"
TREC_QRELS = "q1 0 d1 2\nq1 0 日本 -1\nq2 0 d1 0\nq1 0 d3 1\n"


@pytest.mark.parametrize("of", [io.StringIO, str.splitlines, lambda text: text.splitlines(True)])
def test_parsing(of):
    run, qrels = ours.parse_run(of(TREC_RUN)), ours.parse_qrel(of(TREC_QRELS))
    assert run == theirs.parse_run(of(TREC_RUN))
    assert list(run) == ["q1", "q2"]
    assert qrels == theirs.parse_qrel(of(TREC_QRELS))
    assert all(type(label) is int for labels in qrels.values() for label in labels.values())
    assert isinstance(run, defaultdict)
    assert isinstance(qrels, defaultdict)
    assert run["new"] == {}


def test_parsing_files(tmp_path):
    path = tmp_path / "run.trec"
    path.write_text(TREC_RUN)
    with path.open() as text:
        assert ours.parse_run(text) == theirs.parse_run(TREC_RUN.splitlines())
    assert ours.parse_run(["# a comment", "", "q Q0 d 1 2 t", "# of six words 1 x"]) == {"q": {"d": 2.0}}
    path.write_text("")
    with path.open() as text:
        assert ours.parse_run(text) == {}
    assert ours.parse_qrel(["q1 0 d1 0.5", "q1 0 d2 1.0"]) == {"q1": {"d1": 0.5, "d2": 1}}


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["q1 Q0 d1 1 0.5 t", "q1 Q0 d1 2 0.4 t"], "run:2: document 'd1' appears twice in the run for query 'q1'"),
        (["q1 Q0 d1 1 0.5 t", "", "q1 Q0 d2 2 t"], "run:3: 5 columns instead of 6"),
        (["q1 Q0 d1 1 nan t"], "run:1: score 'nan' for query 'q1'"),
        (["q1 Q0 d1 1 0,5 t"], "run:1: .*decimal point"),
        (["q1 Q0 d1 1 1_000 t"], "run:1: .*digits"),
    ],
)
def test_invalid_lines(lines, message):
    with pytest.raises(tw.InputError, match=message):
        ours.parse_run(lines)


def test_errors_name_the_file(tmp_path):
    path = tmp_path / "bad.qrels"
    path.write_text("q1 0 d1 1\nq1 0 d2 x\n")
    with path.open() as text, pytest.raises(tw.InputError, match=r"bad\.qrels:2: label 'x'"):
        ours.parse_qrel(text)


def test_the_value_of_an_evaluator_is_fixed():
    evaluator = ours.RelevanceEvaluator(QRELS, {"map"}, value="std")
    assert evaluator.value == "std"
    with pytest.raises(AttributeError, match=r"has one value, 'std'\. Make another one for 'expected'"):
        evaluator.value = "expected"


def test_documents_of_an_evaluator_need_utf8_only_where_they_are_tied():
    run = {"q": {"a": 2.0, "\ud800": 1.0, "b": 0.5}}
    evaluator = ours.RelevanceEvaluator({"q": {"a": 1, "b": 1}}, {"map"})
    assert evaluator.evaluate(run) == {"q": {"map": (1 + 2 / 3) / 2}}
    run["q"]["\ud800"] = 0.5  # listed by descending id: above b
    assert evaluator.evaluate(run) == {"q": {"map": (1 + 2 / 3) / 2}}
