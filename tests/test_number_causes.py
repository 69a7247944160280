"""Causes of the difference of two numbers.

Contributions add up by construction. So what is proved here is that each number on the way is right: by the real tools,
and by pytrec_eval on judgments and lists that are edited by hand, one switch at a time.
"""

from __future__ import annotations

import json
import math
import random
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest

import tiewise as tw
from peers import orders
from tiewise.analysis.options import Options
from tiewise.analysis.settings import EXPECTED, SWITCHES, Numbers, Settings
from tiewise.analysis.tool_settings import parse_tool
from tiewise.io import as_qrels, as_source
from tiewise.metrics.tool_rules import TOOLS
from twelve import KINDS, Judgments, Lists, make_collection

ml_dtypes = pytest.importorskip("ml_dtypes")

MEASURES = ("AP", "AP@10", "nDCG@10", "RR", "RR@10", "P@10", "R@10", "Success@10")
#: What pytrec_eval calls them; RR@10 is that of the first ten ranks.
NAMES = {"AP": "map", "AP@10": "map_cut_10", "nDCG@10": "ndcg_cut_10", "RR": "recip_rank", "P@10": "P_10",
         "R@10": "recall_10", "Success@10": "success_10"}  # fmt: skip
ATOL = 1e-12


def numbers_of(qrels: Judgments, run: Lists, measure: str) -> Numbers:
    return Numbers.of(as_qrels(qrels), as_source(run), tw.parse(measure), Options())


def tools_of(numbers: Numbers, measure: str) -> dict[str, Settings]:
    """The tools that print a number for this run, with options of their own."""
    found: dict[str, Settings] = {}
    options = ["", " -c", " -J", " -M 7", " --no-relevant skip"]
    for text in ["tiewise", *(f"{name}{option}" for name in TOOLS for option in options)]:
        try:
            found[text] = parse_tool(text, tw.parse(measure), numbers.given)
        except tw.InputError:
            continue
    return found


# -- the numbers on the way ------------------------------------------------------------------------------------------


def compute_by_hand(qrels: Judgments, run: Lists, settings: Settings) -> float | None:
    """What pytrec_eval prints if judgments and lists are edited as the settings say; None if no query is left."""
    pytrec_eval = pytest.importorskip("pytrec_eval")
    measure, params = settings.measure, settings.measure.params
    is_gain = "gains" in params
    values: list[float] = []
    for query, labels in qrels.items():
        if settings.missing == "skip" and query not in run:
            continue
        label = dict(labels)
        if settings.labels != "any":
            label = {doc: math.trunc(x) if settings.labels == "cut" else round(x) for doc, x in label.items()}
        listed = seen = _list(query, run.get(query, {}), settings)
        if measure.judged_only:  # of the cut lists, as trec_eval -M -J does
            listed = [doc for doc in seen if label.get(doc, -1) >= 0]
        rel = getattr(measure, "rel", 1)
        if is_gain and measure.gains != "binary":  # type: ignore[attr-defined]
            exp = measure.gains == "exp"  # type: ignore[attr-defined]
            whole = {doc: round(1000 * (2**x - 1 if exp else x)) if x > 0 else 0 for doc, x in label.items()}
        else:
            whole = {doc: int(x >= rel) for doc, x in label.items()}
        relevant = sum(x > 0 for x in whole.values())
        if settings.no_relevant == "skip" and not relevant:
            continue
        if settings.retrieved_only:
            whole = {doc: x for doc, x in whole.items() if doc in seen}
            relevant = sum(x > 0 for x in whole.values())
        if not listed or not relevant:
            values.append(0.0)
            continue
        k = measure.cutoff
        listed = listed[:k] if measure.stem == "RR" else listed
        ranks = {doc: float(len(listed) - place) for place, doc in enumerate(listed)}
        plain = tw.parse(measure.stem if k is None or measure.stem == "RR" else f"{measure.stem}@10").name
        found = pytrec_eval.RelevanceEvaluator({"q": whole}, set(NAMES.values())).evaluate({"q": ranks})["q"][
            NAMES[plain]
        ]
        if getattr(measure, "norm", "all") == "cap":
            found *= relevant / min(relevant, k)
        values.append(found)
    return float(np.mean(values)) if values else None


def _list(query: str, scores: dict[str, float], settings: Settings) -> list[str]:
    """The documents of a list in the order of the settings."""
    docs = [doc for doc in scores if not (settings.drop_self and doc == query)]
    dtype = ml_dtypes.bfloat16 if settings.score_dtype == "bfloat16" else settings.score_dtype
    read = {doc: float(np.float64(scores[doc]).astype(np.float32).astype(dtype)) for doc in docs}
    if dtype == "float64":
        read = {doc: scores[doc] for doc in docs}
    if settings.order != "given":
        docs.sort(reverse=settings.order == "docid-desc")
    docs.sort(key=lambda doc: -read[doc])
    return docs[: settings.depth]


@pytest.mark.parametrize("kind", KINDS)
def test_every_number_on_the_way_is_that_of_pytrec_eval_on_edited_data(kind: str) -> None:
    qrels, run = make_collection(kind)
    for measure in ("AP", "AP@10", "nDCG@10", "RR@10"):
        numbers = numbers_of(qrels, run, measure)
        seen = {one for one in tools_of(numbers, measure).values() if one.measure.cutoff == tw.parse(measure).cutoff}
        for a, b in combinations(sorted(seen, key=repr), 2):
            seen |= {settings for _, settings in a.steps(b)}
        for settings in seen:
            if settings.order != EXPECTED:
                mine, theirs = numbers.value(settings), compute_by_hand(qrels, run, settings)
                assert mine == pytest.approx(theirs, abs=ATOL), settings


@pytest.mark.parametrize("switch", ["gains", "rel", "labels", "norm", "retrieved_only", "score_dtype"])
def test_single_switches_that_no_tool_turns_alone(switch: str) -> None:
    positions: dict[str, tuple[str, list[Any]]] = {
        "gains": ("nDCG@10", ["exp", "binary"]),
        "rel": ("AP", [2.0, 3.0]),
        "labels": ("AP", ["cut", "round"]),
        "norm": ("AP@10", ["cap"]),
        "retrieved_only": ("AP", [True]),
        "score_dtype": ("RR", ["float32", "float16", "bfloat16"]),
    }
    measure, turned = positions[switch]
    for kind in KINDS:
        qrels, run = make_collection(kind)
        if switch == "gains" and kind == "fractional":
            continue  # 2^2.7 is no whole number
        numbers = numbers_of(qrels, run, measure)
        for position in turned:
            settings = Settings(tw.parse(measure), order="docid-asc").turn(switch, position)
            assert numbers.value(settings) == pytest.approx(compute_by_hand(qrels, run, settings), abs=ATOL)


@pytest.mark.parametrize("measure", ["AP", "nDCG@10", "RR", "P@10"])
def test_the_mean_of_all_orders_is_that_of_pytrec_eval(measure: str) -> None:
    """Every order of the ties of two short lists, one after the other."""
    draw = random.Random(7)
    for _ in range(6):
        docs = [f"d{place}" for place in range(6)]
        qrels: Judgments = {q: {doc: draw.choice([0, 1, 2]) for doc in docs} for q in "pq"}
        run: Lists = {q: {doc: draw.choice([1.0, 2.0]) for doc in docs} for q in "pq"}
        found = tw.why(qrels, run, measure, tools=("docid-asc", "tiewise"))
        settings = Settings(tw.parse(measure), order="docid-asc")
        each = [[compute_by_hand({q: qrels[q]}, {q: ranking}, settings) for ranking in orders(run[q])] for q in qrels]
        expected = float(np.mean([np.mean(values) for values in each]))
        assert found.values[1] == pytest.approx(expected, abs=ATOL)
        assert found.values[0] == pytest.approx(compute_by_hand(qrels, run, settings), abs=ATOL)


# -- the tools -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_every_pair_of_tools_leaves_no_remainder(kind: str) -> None:
    qrels, run = make_collection(kind)
    for measure in MEASURES:
        numbers = numbers_of(qrels, run, measure)
        names = [name for name in tools_of(numbers, measure) if name in TOOLS or name == "tiewise"]
        report = tw.evaluate(qrels, run, measure, complete=True)
        printed = {row.tool: row.value for row in report.oblivious_by_tool()} | {"tiewise": report[measure].expected}
        for a, b in product(names, repeat=2):
            found = tw.why(qrels, run, measure, tools=(a, b))
            for name, value in zip((a, b), found.values, strict=True):
                if tw.parse(measure).cutoff or TOOLS.get(name) is None or TOOLS[name].rule(tw.parse(measure)):
                    assert value == pytest.approx(printed[name], abs=ATOL)
            assert abs(found.remainder) <= ATOL and found.difference == found.values[1] - found.values[0]
            assert sum(row["contribution"] for row in found.to_dict()["causes"]) == pytest.approx(
                found.difference, abs=ATOL
            )


def real_pytrec_eval(qrels: Judgments, run: Lists) -> dict[str, float]:
    pytrec_eval = pytest.importorskip("pytrec_eval")
    whole = {query: {doc: int(x) for doc, x in labels.items()} for query, labels in qrels.items()}
    found = pytrec_eval.RelevanceEvaluator(whole, set(NAMES.values())).evaluate(run)
    return {ours: float(np.mean([one[name] for one in found.values()])) for ours, name in NAMES.items()}


def real_ir_measures(qrels: Judgments, run: Lists) -> dict[str, float]:
    ir_measures = pytest.importorskip("ir_measures")
    whole = {query: {doc: int(x) for doc, x in labels.items()} for query, labels in qrels.items()}
    chosen = {name: ir_measures.parse_measure(name) for name in MEASURES}
    found = ir_measures.calc_aggregate(chosen.values(), whole, run)
    return {name: found[one] for name, one in chosen.items()}


def real_beir(qrels: Judgments, run: Lists) -> dict[str, float]:
    beir = pytest.importorskip("beir.retrieval.evaluation").EvaluateRetrieval
    whole = {query: {doc: int(x) for doc, x in labels.items()} for query, labels in qrels.items()}
    results = {query: dict(docs) for query, docs in run.items() if query in qrels}
    ndcg, ap, recall, precision = beir.evaluate(whole, results, [10])  # drops documents from the results
    values = {"nDCG@10": ndcg["NDCG@10"], "AP@10": ap["MAP@10"], "R@10": recall["Recall@10"], "P@10": precision["P@10"]}
    values["RR@10"] = beir.evaluate_custom(whole, results, [10], "mrr")["MRR@10"]
    return values | {"Success@10": beir.evaluate_custom(whole, results, [10], "acc")["Accuracy@10"]}


def real_mteb(qrels: Judgments, run: Lists) -> dict[str, float]:
    metrics = pytest.importorskip("mteb._evaluators.retrieval_metrics")
    whole = {query: {doc: int(x) for doc, x in labels.items()} for query, labels in qrels.items()}
    scores = metrics.calculate_retrieval_scores({q: docs for q, docs in run.items() if q in qrels}, whole, [10])
    return {
        "nDCG@10": np.mean([one["ndcg_cut_10"] for one in scores.all_scores.values()]),
        "AP@10": np.mean([one["map_cut_10"] for one in scores.all_scores.values()]),
        "P@10": np.mean([one["P_10"] for one in scores.all_scores.values()]),
        "R@10": np.mean([one["recall_10"] for one in scores.all_scores.values()]),
        "RR@10": scores.mrr["MRR@10"],
    }


def real_sentence_transformers(qrels: Judgments, run: Lists) -> dict[str, float]:
    pytest.importorskip("sentence_transformers")
    from sentence_transformers.sentence_transformer.evaluation import InformationRetrievalEvaluator

    relevant = {query: {doc for doc, x in labels.items() if x >= 1} for query, labels in qrels.items()}
    texts = {query: query for query in qrels}
    documents = {doc: doc for docs in run.values() for doc in docs} | {
        doc: doc for docs in qrels.values() for doc in docs
    }
    k = [10]
    evaluator = InformationRetrievalEvaluator(
        texts,
        documents,
        relevant,
        mrr_at_k=k,
        ndcg_at_k=k,
        accuracy_at_k=k,
        precision_recall_at_k=k,
        map_at_k=k,
    )
    lists = [
        [{"corpus_id": doc, "score": score} for doc, score in run.get(query, {}).items()]
        for query in evaluator.queries_ids
    ]
    found = evaluator.compute_metrics(lists)
    names = {"AP@10": "map", "nDCG@10": "ndcg", "RR@10": "mrr", "P@10": "precision", "R@10": "recall"}
    return {ours: found[f"{name}@k"][10] for ours, name in names.items()} | {"Success@10": found["accuracy@k"][10]}


#: How far the numbers of a tool are rounded.
REAL = {
    "pytrec_eval": (real_pytrec_eval, 1e-12),
    "ir_measures": (real_ir_measures, 1e-12),
    "beir": (real_beir, 5.1e-6),  # rounds to five decimals
    "mteb": (real_mteb, 1e-12),
    "sentence-transformers": (real_sentence_transformers, 1e-12),
}


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "fractional"])  # which they refuse
@pytest.mark.parametrize("tool", REAL)
def test_our_number_of_a_tool_is_the_number_of_the_tool(tool: str, kind: str) -> None:
    compute, rounding = REAL[tool]
    qrels, run = make_collection(kind)
    for measure, value in compute(qrels, run).items():
        mine = tw.why(qrels, run, measure, tools=(tool, "tiewise")).values[0]
        assert mine == pytest.approx(float(value), abs=rounding), measure


def test_ranx_is_not_modelled_but_its_printed_number_can_be_asked_for() -> None:
    qrels, run = make_collection("graded")
    with pytest.raises(tw.InputError, match="ranx prints for AP cannot be reproduced: it follows an unstable sort"):
        tw.why(qrels, run, "AP", tools=("ranx", "trec_eval"))


# -- printed numbers -------------------------------------------------------------------------------------------------


def test_printed_numbers_of_two_tools_are_found() -> None:
    qrels, run = make_collection("graded")
    values = tw.why(qrels, run, "AP", tools=("docid-asc", "trec_eval -l 2")).values
    printed = [f"{value:.4f}".lstrip("0") for value in values]
    found = tw.why(qrels, run, "AP", numbers=printed, tools=("docid-asc", "trec_eval"))
    assert [one.cause for one in found.causes] == ["label threshold", "order of ties", "printed digits"]
    assert (
        found.explained
        and found.consistent_with == f"{printed[0]} as docid-asc; {printed[1]} as trec_eval, label threshold: 2"
    )
    assert found.difference == float(printed[1]) - float(printed[0]) and abs(found.remainder) <= ATOL
    assert abs(found.causes[-1].contribution) <= 1e-4  # within the printed digits


RANKED = "q Q0 b 3 0.5 t\nq Q0 a 1 0.5 t\nq Q0 d 2 0.5 t\nq Q0 c 4 0.5 t\nq Q0 e 5 0.4 t\n"


def test_the_rank_column_and_the_order_of_the_file_are_readings(tmp_path: Any) -> None:
    """Five documents: by rank a d b c e, in the file b a d c e, by ids e … a; the relevant one is d."""
    (tmp_path / "run.trec").write_text(RANKED)
    qrels: Judgments = {"q": {"d": 1}}
    for number, name, order in ((".5000", "rank", "rank column"), (".3333", "given", "as in the input")):
        found = tw.why(qrels, tmp_path / "run.trec", "RR", numbers=("1.0000", number), tools=("docid-desc", name))
        assert found.consistent_with == f"1.0000 as docid-desc; {number} as {name}"
        assert (found.causes[0].cause, found.causes[0].b) == ("order of ties", order)
    found = tw.why(qrels, tmp_path / "run.trec", "RR", numbers=(".5000", ".3333"))
    assert found.consistent_with == ".5000 as rank; .3333 as given"  # beir and trm have RR with a cutoff alone
    without = tw.why(qrels, tw.read_run(tmp_path / "run.trec").to_dict(), "RR", numbers=(".5000", ".3333"))
    assert "rank" not in without.consistent_with


def test_ranks_that_contradict_the_scores_are_a_reading(tmp_path: Any) -> None:
    (tmp_path / "run.trec").write_text("q Q0 b 3 0.9 t\nq Q0 a 1 0.7 t\nq Q0 d 2 0.8 t\nq Q0 c 4 0.6 t\n")
    qrels: Judgments = {"q": {"a": 1}}
    for number, position in (("1.0000", "rank column"), (".5000", "as in the input")):
        found = tw.why(qrels, tmp_path / "run.trec", "RR", numbers=(".3333", number), tools=("trec_eval",))
        assert [(one.cause, one.a, one.b) for one in found.causes[:-1]] == [("list order", "scores", position)]
        assert found.consistent_with == f".3333 as trec_eval; {number} as trec_eval, list order: {position}"
    agreed = tw.why(qrels, {"q": {"b": 0.9, "d": 0.8, "a": 0.7}}, "RR", numbers=(".3333", ".5000"))
    assert not agreed.explained  # nothing to rank by but the scores


def test_one_number_may_be_that_of_several_readings() -> None:
    run: Lists = {"q": {"a": 0.5, "b": 0.5, "c": 0.4}}
    found = tw.why({"q": {"a": 1}}, run, "RR", numbers=("1.0000", ".5000"))
    assert found.sentence == (
        "Consistent with this, within the printed digits: 1.0000 as given or docid-asc; .5000 as trec_eval, "
        "trec_eval-9, pytrec_eval or 2 more."
    )


def test_one_number_with_other_digits() -> None:
    run: Lists = {"q": {"a": 0.5, "b": 0.4, "c": 0.3}}
    found = tw.why({"q": {"c": 1}}, run, "RR", numbers=(".3333", ".333"), tools=("mteb",))
    assert found.consistent_with == "both as mteb"
    assert "difference −.0003\n" in found.to_text()
    shares = tw.why({"q": {"c": 1}}, run, "RR", numbers=("33.33%", "33.3"), tools=("mteb",))
    assert shares.values == pytest.approx((0.3333, 0.333))
    assert "33.33%, 33.3, difference −.03\n" in shares.to_text()


@pytest.mark.parametrize(("first", "second"), [(".3141", ".3142"), ("31.41", "31.42")])
def test_numbers_that_nothing_prints(first: str, second: str) -> None:
    qrels, run = {"q": {"a": 1}}, {"q": {"a": 0.5, "b": 0.5}}
    found = tw.why(qrels, run, "RR", numbers=(first, second))
    assert not found.explained and found.sentence.startswith("Not explained by any of these")
    assert all(name in found.sentence for name in SWITCHES.values())
    assert found.notes[0].startswith("None of ")
    low, high = (".5000", "1.0000") if first.startswith(".") else ("50.00", "100.00")
    assert found.notes[1] == f"Other orders of ties give {low} to {high}."
    assert f"Nearest of the tools as they are: {low} (" in found.notes[0]
    assert abs(found.remainder) <= ATOL


def test_a_number_inside_the_range_by_tie_order_is_possible() -> None:
    qrels, run = {"q": {"a": 1}}, {"q": {"a": 0.5, "b": 0.5}}
    found = tw.why(qrels, run, "RR", numbers=(".6200", ".5000"))
    possible = "possible in another order of ties, such as that of ranx; it cannot be confirmed."
    assert not found.explained and found.sentence == f".6200: {possible}"
    both = tw.why(qrels, run, "RR", numbers=(".6200", ".6300"))
    assert both.sentence == f".6200 and .6300: {possible}"
    mixed = tw.why(qrels, run, "RR", numbers=(".6200", ".4900"))
    assert mixed.sentence.startswith(f".6200: {possible} .4900: not explained by any of these, alone or two at once: ")
    assert tw.why(qrels, run, "ERR(max=4)@5", numbers=(".0600", ".0625")).sentence.startswith(
        ".0600: possible in another order of ties; it cannot"
    )
    for known in (
        {"numbers": (".4900", ".5000")},
        {"numbers": (".6200", ".5000"), "tools": ("mteb -M 5", "trec_eval")},
    ):
        assert tw.why(qrels, run, "RR@10", **known).sentence.startswith("Not explained")


def test_all_tools_that_print_a_number_are_named_and_no_other() -> None:
    qrels, run = {"q": {"a": 1}}, {"q": {"a": 0.5, "b": 0.5, "c": 0.1}}
    found = tw.why(qrels, run, "nDCG@10", numbers=(".6309", ".8155"))
    assert found.consistent_with == ".6309 as trec_eval, trec_eval-9, pytrec_eval or 5 more; .8155 as tiewise"
    uncut = tw.why(qrels, run, "nDCG", numbers=(".6309", ".8155"))  # neither BEIR nor MTEB prints it
    assert uncut.consistent_with == ".6309 as trec_eval, trec_eval-9, pytrec_eval or 2 more; .8155 as tiewise"


def test_the_nearest_number_has_the_digits_of_the_printed_one() -> None:
    qrels, run = {"q": {"a": 1}}, {"q": {"c": 0.7, "b": 0.6, "a": 0.5}}
    found = tw.why(qrels, run, "RR", numbers=(".33334", ".5"))
    assert "Nearest of the tools as they are: .33333 (tiewise)" in found.notes[0]
    points = tw.why(qrels, run | {"q": {"a": 0.5, "b": 0.5}}, "RR", numbers=("33.40", "50%"))
    assert points.notes[0].endswith("prints 33.40. Nearest of the tools as they are: 50.00 (trec_eval).")
    assert points.notes[1] == "Other orders of ties give 50.00 to 100.00."
    both = tw.why(qrels, run, "RR", numbers=(".3340", "33.50"))
    assert both.notes[0].endswith("prints .3340 or 33.50. Nearest of the tools as they are: .3333 (tiewise).")


def test_a_tool_that_needs_an_option_for_missing_queries_is_a_reading_with_it() -> None:
    qrels: Judgments = {"a": {"x": 1}, "b": {"y": 1}}
    found = tw.why(qrels, {"a": {"x": 0.5, "w": 0.5}}, "RR", numbers=(".5000", ".2500"))
    assert found.consistent_with.startswith(".5000 as trec_eval -c, ir_measures")


def test_few_digits_have_many_explanations_and_they_are_named() -> None:
    qrels, run = make_collection("graded")
    found = tw.why(qrels, run, "AP", numbers=(".2", ".1"))
    assert found.alternatives and "As simple: " in found.to_text()
    assert found.sentence.startswith("Consistent with this, within the printed digits: ")
    assert len(set(found.alternatives)) == len(found.alternatives)


# -- two runs --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("measure", ["nDCG@10", "AP"])
@pytest.mark.parametrize("seed", range(4))
def test_two_runs_by_hand(seed: int, measure: str) -> None:
    """Every list on the way is made again, by sorting and by dropping documents."""
    draw = random.Random(seed)
    docs = [f"d{place}" for place in range(20)]
    qrels: Judgments = {q: {doc: draw.choice([0, 0, 1, 2]) for doc in docs} for q in "pqrs"}
    a, b = (
        {q: {doc: draw.choice([1.0, 2.0, 3.0]) for doc in draw.sample(docs, 15)} for q in queries}
        for queries in ("pqr", "qrs")
    )
    found = tw.why(qrels, a, measure, other=b)
    both = {q: [doc for doc in a[q] if doc in b[q]] for q in "qr"}

    def value(lists: dict[str, list[str]]) -> float:
        ranked = {q: {doc: -float(place) for place, doc in enumerate(order)} for q, order in lists.items()}
        settings = Settings(tw.parse(measure), order="given")
        hand = compute_by_hand(qrels, ranked, settings)
        assert hand is not None
        return hand

    def listed(run: Lists, queries: str, kept: dict[str, list[str]] | None = None) -> dict[str, list[str]]:
        lists = {q: list(run[q]) if kept is None else kept[q] for q in queries}
        return {q: sorted(sorted(some, reverse=True), key=lambda doc: -run[q][doc]) for q, some in lists.items()}

    def refined(first: Lists, then: Lists) -> dict[str, list[str]]:
        return {
            q: sorted(sorted(some, reverse=True), key=lambda doc: (-first[q][doc], -then[q][doc]))
            for q, some in both.items()
        }

    on_the_way = [
        value(listed(a, "pqr")), value(listed(a, "qr")), value(listed(a, "qr", both)), value(refined(a, b)),
        value(refined(b, a)), value(listed(b, "qr", both)), value(listed(b, "qr")), value(listed(b, "qrs")),
    ]  # fmt: skip
    names = ["queries in run only", "documents in run only", "ties of run", "order of the scores", "ties of other"]
    names += ["documents in other only", "queries in other only"]
    assert [one.cause for one in found.causes] == names
    assert [one.contribution for one in found.causes] == pytest.approx(np.diff(on_the_way).tolist(), abs=ATOL)


def test_a_monotone_change_of_scores_is_no_cause() -> None:
    qrels, run = make_collection("graded")
    other = {query: {doc: math.exp(score) for doc, score in docs.items()} for query, docs in run.items()}
    found = tw.why(qrels, run, "nDCG@10", other=other)
    assert found.difference == 0 and not [one for one in found.causes if one.contribution]
    assert found.notes == ("Scores differ only by a monotone change, or in ties.",)


def test_notes_on_two_runs() -> None:
    qrels: Judgments = {"q": {"a": 1}, "r": {"a": 1}}
    run: Lists = {q: {"x": 0.9, "a": 0.5, "b": 0.4} for q in qrels}
    same = tw.why(qrels, run, "RR", other={q: {"x": 0.9, "a": 0.5} for q in qrels})
    assert same.sentence == "Both numbers are the same: no difference from documents in run only."
    assert same.notes == ("Documents of both runs have the same scores.",)
    assert tw.why(qrels, run, "RR", other=run).sentence == "Both numbers are the same."
    negated = tw.why(qrels, run, "RR", other={q: {doc: -x for doc, x in docs.items()} for q, docs in run.items()})
    opposite = "Most documents are in opposite order: one of the runs may hold distances."
    assert negated.notes == (opposite,)
    noisy = {"q": {"x": -0.9, "a": -0.4, "b": -0.5, "c": -0.3}, "r": {"x": -0.9, "a": -0.5, "b": -0.4}}
    longer = {q: docs | {"c": 0.1} for q, docs in run.items()}
    assert tw.why(qrels, longer, "RR", other=noisy).notes == (opposite,)
    shuffled = {q: {"x": 0.4, "a": 0.9, "b": 0.5} for q in qrels}
    assert tw.why(qrels, run, "RR", other=shuffled).notes == ()
    judged: Judgments = {q: {"a": 1, "y": 1} for q in qrels}
    apart = tw.why(judged, run, "RR", other={q: {"y": 0.9, "z": 0.1} for q in qrels})
    assert "The two runs have no document in common." in apart.notes
    found = tw.why(qrels, run, "RR", other={q: {"y": 0.9, "z": 0.8, "a": 0.5, "b": 0.4} for q in qrels})
    assert [(one.cause, round(one.contribution, 3)) for one in found.causes] == [
        ("documents in run only", 0.5),
        ("documents in other only", -0.667),
    ]
    assert found.notes[0] == "Added up: documents in run only and in other only −.1667."
    self = tw.why(qrels, run, "RR", other={q: docs | {q: 0.99} for q, docs in run.items()})
    assert self.notes[0] == "Documents with their query's id: in 0 lists of run, in 2 lists of other."


def test_runs_with_ties_alone_and_read_as_float32() -> None:
    qrels: Judgments = {"q": {"a": 1}}
    run: Lists = {"q": {"a": 0.123456789, "b": 0.123456788}}
    swapped: Lists = {"q": {"a": 0.123456788, "b": 0.123456789}}
    found = tw.why(qrels, run, "RR", other={"q": {"a": 0.5, "b": 0.5}})
    assert {one.cause: one.contribution for one in found.causes if one.contribution} == {"ties of other": -0.5}
    assert [(one.cause, one.contribution) for one in tw.why(qrels, run, "RR", other=swapped).causes] == [
        ("order of the scores", -0.5)
    ]
    assert tw.why(qrels, run, "RR", other=swapped, tools="pytrec_eval").difference == 0  # tied in float32


@pytest.mark.parametrize("tool", ["mteb", "pytrec_eval", "trec_eval -c", "trec_eval -c -J", "rank"])
def test_two_runs_have_the_numbers_that_the_tool_prints_for_each(tool: str) -> None:
    """Where queries are missing from one run alone, and in the order of the rank column too."""
    qrels: Judgments = {"q": {"a": 1}, "r": {"a": 1}, "s": {"b": 1}}
    scores: Lists = {"q": {"a": 0.5, "b": 0.5}, "r": {"b": 0.5, "a": 0.5, "c": 0.5}, "s": {"b": 0.4, "c": 0.5}}
    whole, few = (
        tw.Run.from_columns(
            [q for q in queries for _ in scores[q]],
            [doc for q in queries for doc in scores[q]],
            [score for q in queries for score in scores[q].values()],
            rank=np.array([place for q in queries for place in range(1, len(scores[q]) + 1)]),
        )
        for queries in ("qrs", "qr")
    )
    alone = [tw.why(qrels, run, "RR", tools=(tool, "tiewise")).values[0] for run in (whole, few)]
    found = tw.why(qrels, whole, "RR", other=few, tools=tool)
    assert found.values == pytest.approx(tuple(alone), abs=ATOL)
    assert tw.why(qrels, few, "RR", other=whole, tools=tool).values == pytest.approx(tuple(alone[::-1]), abs=ATOL)
    assert found.remainder == pytest.approx(0, abs=ATOL)
    assert alone[0] != alone[1]


# -- what people read ------------------------------------------------------------------------------------------------


def test_at_most_ten_lines_without_explain() -> None:
    from tiewise.results.text import render_text
    from tiewise.results.view import View

    for kind in KINDS:
        qrels, run = make_collection(kind)
        other = make_collection("graded")[1]
        asked: list[dict[str, Any]] = [
            {"tools": (a, b)}
            for a, b in combinations(
                ["tiewise", "trec_eval -c -J -M 7 -l 2", "ir_measures", "mteb", "trm", "trec_eval-9"], 2
            )
        ]
        asked += [{"numbers": (".11", ".12")}, {"numbers": (".1111", ".1234")}, {"other": other}]
        for given in asked:
            try:
                found = tw.why(qrels, run, "AP@10", **given)
            except tw.InputError:  # -l of this measure, labels that a tool refuses
                continue
            for width in (80, 100):
                lines = render_text(found._section(View(width=width)), width).splitlines()
                assert len(lines) <= 10 and all(len(line) <= 100 for line in lines), "\n".join(lines)


def test_counts_are_printed_as_counts() -> None:
    qrels: Judgments = {"q": {"a": 1, "b": 1, "c": 1}}
    run: Lists = {"q": {"x": 0.9, "a": 0.5, "b": 0.4, "c": 0.3}}
    assert repr(tw.why(qrels, run, "num_rel_ret", tools=("trec_eval", "trec_eval -M 3"))) == (
        "NumRelRet: trec_eval 3, trec_eval -M 3 2, difference −1\n"
        "cause      trec_eval  trec_eval -M 3  contribution\n"
        "lists cut  whole      first 3                   −1\n"
        "Lists cut: the whole difference."
    )
    same = tw.why(qrels, run, "num_rel_ret", tools=("trec_eval", "tiewise"))
    assert same.sentence == "Both numbers are the same: no difference from order of ties."
    nothing = tw.why(qrels, run, "num_rel_ret", numbers=("7", "8"))
    assert nothing.notes[0].endswith("settings prints 7 or 8. Nearest of the tools as they are: 3 (tiewise).")


def test_small_causes_share_a_row_and_explain_has_all() -> None:
    causes = tuple(tw.Cause(f"cause {place}", "a", "b", 0.01 * place) for place in range(1, 9))
    found = tw.Why("AP", ("A", "B"), (0.0, 0.36), causes)
    assert "5 others" in found.to_text() and "cause 8" in found.to_text() and "cause 1" not in found.to_text()
    assert "cause 1" in found.to_text(explain=True) and "others" not in found.to_text(explain=True)
    noted = tw.Why("AP", ("A", "B"), (0.0, 0.36), causes, notes=("One.", "Two.", "Three."))
    assert "7 others" in noted.to_text()


def test_the_largest_cause_may_go_against_the_difference() -> None:
    causes = (tw.Cause("x", "a", "b", 0.05), tw.Cause("y", "a", "b", -0.04), tw.Cause("z", "a", "b", -0.04))
    found = tw.Why("AP", ("A", "B"), (0.5, 0.47), causes)
    assert found.sentence == "Largest cause: x; then y and z; they partly cancel."
    assert tw.Why("AP", ("A", "B"), (0.0, -0.08), causes[1:]).sentence == "Largest cause: y; then z."


def test_where_no_query_is_left_two_causes_have_one_contribution() -> None:
    """No query has a relevant document of label 2, until the labels are rounded."""
    qrels: Judgments = {"q": {"a": 1.6}}
    run: Lists = {"q": {"a": 1.0}}
    tools = ("tiewise", "tiewise --labels round -l 2 --no-relevant skip")
    found = tw.why(qrels, run, "AP(rel=2)", tools=("tiewise", "tiewise --labels round --no-relevant skip"))
    assert [(one.cause, one.contribution) for one in found.causes] == [
        ("queries without relevant documents and fractional labels", 1.0)
    ]
    assert tw.why(qrels, run, "AP", tools=tools).difference == 0


WRONG: list[tuple[dict[str, Any], str]] = [
    ({}, "Give one tool or two, two numbers or another run."),
    ({"tools": ("ir_measures", "mteb", "beir")}, "Give one tool or two, not 3"),
    ({"tools": ("ir_measures", "no_tool")}, "Unknown tool 'no_tool'. Use tiewise, trec_eval,"),
    ({"tools": ("ir_measures", "")}, "'' is not the name of a tool"),
    ({"tools": ("ir_measures", "mteb '")}, "is not the name of a tool"),
    ({"tools": ("ir_measures", "mteb -x")}, "Unknown option '-x' of mteb. Use -c, -J"),
    ({"tools": ("ir_measures", "mteb -M")}, "-M of mteb needs a value"),
    ({"tools": ("ir_measures", "mteb -M ten")}, "-M needs a number, not 'ten'"),
    ({"tools": ("ir_measures", "mteb -M 0")}, "depth is a whole number of ranks from 1 on"),
    ({"tools": ("ir_measures", "mteb --missing never")}, "--missing is zero or skip, not 'never'"),
    ({"tools": ("ir_measures", "mteb --score-dtype int3")}, "Unknown score_dtype 'int3'"),
    ({"tools": ("ir_measures", "rank")}, "The run has no rank column"),
    ({"tools": ("ir_measures", "trec_eval -l 0.5 --order sideways")}, "--order is expected, "),
    ({"tools": ("ir_measures", "tiewise -J -M 3")}, "-J and -M together have no expected value"),
    ({"numbers": (".1957",)}, "Give two numbers"),
    ({"numbers": ".1957"}, "Give two numbers"),
    ({"numbers": 0.1957}, "Give two numbers"),
    ({"tools": 7}, "tools=7 is not possible. Give names"),
    ({"tools": ("mteb", None)}, "tools=('mteb', None) is not possible. Give names"),
    ({"numbers": (".1957", "many")}, "'many' is not a number"),
    ({"numbers": (".1957", math.inf)}, "'inf' is not a finite number"),
    ({"numbers": (".1957", "195.7")}, "195.7 is not a value of AP, even in per cent"),
    ({"numbers": (".1957", "-.1")}, "-.1 is not a value of AP"),
    ({"numbers": (".1957", "101%")}, "101% is not a value of AP"),
    ({"numbers": (".1957", ".1958"), "other": {"q": {"a": 1.0}}}, "not both"),
    ({"numbers": (".1957", ".1958"), "tools": ("mteb", "beir", "trm")}, "at most two tools, not 3"),
    ({"other": {"q": {"a": 1.0}}, "tools": ("mteb", "beir")}, "Two runs are read by one tool, not 2"),
    ({"other": {"r": {"a": 1.0}}}, "The two runs have no query in common"),
    ({"other": {"p": {"a": 1.0}}}, "other: The run and the qrels have no query in common"),
]


@pytest.mark.parametrize(("given", "message"), WRONG)
def test_wrong_use_is_an_error(given: dict[str, Any], message: str) -> None:
    with pytest.raises(tw.TiewiseError) as error:
        tw.why({"q": {"a": 1}, "r": {"b": 1}}, {"q": {"a": 0.5}, "p": {"a": 1.0}}, "AP", **given)
    assert message in str(error.value)


def test_measures_that_cannot_be_asked_for() -> None:
    qrels, run = {"q": {"a": 1}}, {"q": {"a": 0.5}}
    with pytest.raises(tw.InputError, match="Give one measure, not 2"):
        tw.why(qrels, run, "nDCG@5,10", tools=("trec_eval", "mteb"))
    with pytest.raises(tw.InputError, match="has no label threshold: leave out -l"):
        tw.why(qrels, run, "nDCG@10", tools=("trec_eval -l 2", "mteb"))
    with pytest.raises(tw.InputError, match="mteb does not have RBP"):
        tw.why(qrels, run, "RBP", tools=("tiewise", "mteb"))
    with pytest.raises(tw.InputError, match="refuses labels that are not whole numbers"):
        tw.why({"q": {"a": 1.5}}, run, "AP", tools=("tiewise", "pytrec_eval"))
    with pytest.raises(tw.InputError, match="Write 'trec_eval -c'"):
        tw.why({"q": {"a": 1}, "r": {"a": 1}}, run, "AP", tools=("tiewise", "trec_eval"))


# -- the command -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("why")
    qrels, run = make_collection("missing")
    tw.write_qrels(tw.Qrels.from_dict(qrels), path / "qrels.txt")
    tw.write_run(tw.Run.from_dict(run), path / "run.trec")
    tw.write_run(tw.Run.from_dict(make_collection("graded")[1]), path / "again.trec")
    return path


def test_the_command_prints_what_the_function_finds(process: Any, folder: Any) -> None:
    asked = ["why", "qrels.txt", "run.trec", "-m", "AP", "--tool", "trec_eval -c", "--tool", "mteb"]
    found = tw.why(folder / "qrels.txt", folder / "run.trec", "AP", tools=("trec_eval -c", "mteb"))
    assert process(*asked).out == f"{found!r}\n"
    assert process(*asked, "--format", "json").json == json.loads(found.to_json())
    rows = process(*asked, "--format", "tsv").rows
    assert [row["cause"] for row in rows] == [one.cause for one in found.causes]
    assert sum(float(row["contribution"]) for row in rows) == pytest.approx(found.difference, abs=ATOL)
    for name in ("csv", "jsonl", "latex", "markdown"):
        assert "missing queries" in process(*asked, "--format", name).out
    explained = process(*asked, "--explain").out
    assert "Count them as 0, or systems gain by failing." in explained and "score type" in explained


def test_the_command_with_numbers_and_runs(tiewise: Any) -> None:
    asked = ["why", "qrels.txt", "run.trec", "-m", "AP"]
    assert "Not explained" in tiewise(*asked, "--numbers", ".9111", ".9112").out
    assert "documents in other only" in tiewise(*asked, "--other", "again.trec").out
    assert "bfloat16" in tiewise(*asked, "--tool", "mteb", "--tool", "mteb --score-dtype bf16", "--explain").out
    assert tiewise(
        "why", "qrels.txt", "run.trec", "-m", "AP", "-l", "2", "--tool", "mteb", "--tool", "tiewise"
    ).out.startswith("AP(rel=2): mteb")
    for wrong in ([], ["--numbers", ".1"], ["--other", "none.trec"], ["--numbers", ".1", "x"]):
        assert tiewise(*asked, *wrong, code=2).out == ""
    asked = ["why", "qrels.txt", "run.trec", "-m", "AP", "-m", "RR", "--tool", "mteb", "--tool", "beir"]
    assert "Give one measure, not 2" in tiewise(*asked, code=2).err
    asked = ["why", "qrels.txt", "run.trec", "--numbers", ".1", ".2"]
    assert "Give the measure of the two numbers, such as nDCG@10 (-m)." in tiewise(*asked, code=2).err


def test_a_short_name_of_a_type_is_that_type() -> None:
    tools = "trec_eval --score-dtype fp16", "trec_eval --score-dtype float16"
    assert tw.why({"q": {"a": 1}}, {"q": {"a": 0.5, "b": 0.5}}, "RR", tools=tools).causes == ()


def test_one_tool_is_compared_with_the_expected_value_in_ndcg(tiewise: Any, folder: Any) -> None:
    files = folder / "qrels.txt", folder / "run.trec"
    both = repr(tw.why(*files, "nDCG@10", tools=("pytrec_eval", "tiewise")))
    assert repr(tw.why(*files, tools="pytrec_eval")) == repr(tw.why(*files, tools=["pytrec_eval"])) == both
    assert tiewise("why", "qrels.txt", "run.trec", "--tool", "pytrec_eval").out == f"{both}\n"
    other = tiewise("why", "qrels.txt", "run.trec", "--other", "again.trec").out
    assert other == f"{tw.why(*files, 'nDCG@10', other=folder / 'again.trec')!r}\n"
