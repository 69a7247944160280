"""Noise of scores: exact expectations against simulations, rerun bands, what is refused, and what is said."""

from __future__ import annotations

import json
import math
import pickle

import numpy as np
import pytest

import tiewise as tw
from tiewise.analysis.rerun.monotone_curve import MonotoneCurve
from tiewise.metrics import noise, noise_draws, noise_expectation

FORMULAS = ("nDCG", "nDCG@5", "DCG@4", "AP", "AP@4", "RR", "RR@3", "P@4", "R@6", "F1@5", "RBP(p=0.8)", "Success@3")
CASCADES = ("ERR(max=2)", "ERR(max=2)@4", "nERR(max=2)@5")
LAWS = {"normal": 0.2, "uniform": "uniform:0.15"}


def draw_list(seed: int, n: int = 13) -> tuple[dict, dict, np.ndarray, np.ndarray]:
    """Judgments and a run of one query, with ties and graded labels; scores and labels in the order of the run."""
    rng = np.random.default_rng(seed)
    score, label = np.round(rng.normal(0, 1, n), 1), rng.choice([0, 0, 1, 2], n)
    label[rng.integers(n)] = 1
    qrels = {"q": {f"d{i}": int(x) for i, x in enumerate(label)} | {"unseen": 1}}
    return qrels, {"q": {f"d{i}": float(x) for i, x in enumerate(score)}}, score, label


def simulate(name: str, score: np.ndarray, label: np.ndarray, law: str, n: int, seed: int) -> np.ndarray:
    """Values of a measure in n draws, by definitions of this file: one more relevant document was not retrieved."""
    rng = np.random.default_rng(seed)
    shape = (n, len(score))
    noise = rng.normal(0, 0.2, shape) if law == "normal" else rng.uniform(-0.15, 0.15, shape)
    graded = label[np.argsort(-(score + noise), axis=1)].astype(float)
    rank = np.arange(1, len(score) + 1)
    stem, _, cutoff = name.partition("@")
    k = int(cutoff) if cutoff else len(score)
    seen, relevant = rank <= k, graded > 0
    total = (label > 0).sum() + 1
    ideal = np.sort(np.append(label, 1))[::-1]
    stop = (2**graded - 1) / 4
    reach = np.cumprod(np.hstack([np.ones((n, 1)), 1 - stop[:, :-1]]), axis=1)
    best = (2.0**ideal - 1) / 4
    cascade = (stop * reach / rank * seen).sum(axis=1)
    first = np.where((relevant & seen).any(axis=1), relevant.argmax(axis=1) + 1, np.inf)
    discount = 1 / np.log2(rank + 1)
    dcg = (graded * discount * seen).sum(axis=1)
    found = (relevant & seen).sum(axis=1)
    hits = np.cumsum(relevant, axis=1)
    chance = np.cumprod(np.append(1, 1 - best[:-1]))
    values = {
        "nDCG": lambda: dcg / (ideal[:k] / np.log2(np.arange(2, min(k, len(ideal)) + 2))).sum(),
        "DCG": lambda: dcg,
        "AP": lambda: (relevant * hits / rank * seen).sum(axis=1) / total,
        "RR": lambda: 1 / first,
        "P": lambda: found / k,
        "R": lambda: found / total,
        "F1": lambda: 2 * found / (k + total),
        "RBP(p=0.8)": lambda: (relevant * 0.2 * 0.8 ** (rank - 1)).sum(axis=1),
        "Success": lambda: np.isfinite(first).astype(float),
        "ERR(max=2)": lambda: cascade,
        "nERR(max=2)": lambda: cascade / (best * chance / np.arange(1, len(best) + 1))[:k].sum(),
    }
    return values[stem]()


# -- exact expectations ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_expectations_equal_simulations(law, seed):
    qrels, run, score, label = draw_list(seed)
    report = tw.evaluate(qrels, run, FORMULAS + CASCADES, noise=LAWS[law], complete=True)
    for name in FORMULAS + CASCADES:
        found, values = report[name].noise, simulate(name, score, label, law, 40_000, seed)
        error = max(values.std(), 1e-9) / math.sqrt(len(values))
        assert found.method == "exact", name
        assert found.standard_error is None
        assert abs(found.expected - values.mean()) < 4 * error + 1 / len(values), name  # or too rare to be seen
        if values.std() > 0.02:  # a rare event is seen too seldom
            assert abs(found.std - values.std()) < 4 * found.std_error + 0.02 * values.std(), name


def test_more_nodes_do_not_change_an_expectation(monkeypatch):
    _, _, score, label = draw_list(5, n=60)
    qrels = {"q": {f"d{i}": int(x) for i, x in enumerate(label)}}
    run = {"q": {f"d{i}": float(x) for i, x in enumerate(score)}}
    names = ("nDCG@10", "AP", "RR", "ERR(max=2)")
    few = tw.evaluate(qrels, run, names, noise=0.5, complete=True)
    count = noise_expectation._count_nodes
    monkeypatch.setattr(noise_expectation, "_count_nodes", lambda law, width: 4 * count(law, width))
    many = tw.evaluate(qrels, run, names, noise=0.5, complete=True)
    for name in names:
        assert few[name].noise.expected == pytest.approx(many[name].noise.expected, abs=1e-8)


def test_a_measure_without_a_formula_is_sampled():
    qrels, run, score, _ = draw_list(2)
    report = tw.evaluate(qrels, run, ["Bpref", "AUC"], noise=0.2, complete=True, samples=2000)
    rng = np.random.default_rng(0)
    others = np.array([tw.evaluate(qrels, noisy(rng, score, 0.2), "AUC")["AUC"].expected for _ in range(300)])
    found = report["AUC"].noise
    assert (found.method, report["Bpref"].noise.method) == ("sampled", "sampled")
    assert abs(found.expected - others.mean()) < 4 * math.hypot(others.std() / math.sqrt(300), found.standard_error)


def noisy(rng: np.random.Generator, score: np.ndarray, size: float) -> dict:
    return {"q": {f"d{i}": float(x) for i, x in enumerate(score + rng.normal(0, size, len(score)))}}


def test_a_costly_expectation_is_sampled(monkeypatch):
    qrels, run, *_ = draw_list(1)
    exact = tw.evaluate(qrels, run, "AP", noise=0.2, complete=True)["AP"].noise
    monkeypatch.setattr(noise_expectation, "MAX_COST", 10)
    found = tw.evaluate(qrels, run, "AP", noise=0.2, complete=True)["AP"].noise
    assert (exact.method, found.method) == ("exact", "sampled")
    assert abs(found.expected - exact.expected) < 4 * found.standard_error


# -- the limit of small noise is a random order of ties ---------------------------------------------------------------


@pytest.mark.parametrize("noise", [1e-9, "uniform:1e-9"])
def test_small_noise_is_a_random_order_of_ties(noise):
    names = FORMULAS + CASCADES
    for seed in range(5):
        qrels, run, *_ = draw_list(seed, n=20)
        report = tw.evaluate(qrels, run, names, noise=noise, complete=True)
        for name in names:
            assert report[name].noise.expected == pytest.approx(report[name].expected, abs=1e-9)


@pytest.mark.parametrize("noise", [0.05, "uniform:0.05"])
def test_the_integral_over_a_tie_group_is_its_closed_form(noise):
    # A document just within reach of the tie group: the closed form is not used, and it hardly ever changes places.
    reach = 0.1 if isinstance(noise, str) else 2 * 6 * 0.05
    docs = {f"d{i}": 1.0 for i in range(7)} | {"low": 1.0 - reach * (1 - 1e-7)}
    qrels = {"q": {"d0": 2, "d3": 1, "d4": 0, "low": 1}}
    names = FORMULAS + CASCADES
    report = tw.evaluate(qrels, {"q": docs}, names, noise=noise, complete=True)
    for name in names:
        assert report[name].noise.expected == pytest.approx(report[name].expected, abs=1e-9), name


# -- draws ------------------------------------------------------------------------------------------------------------


def lists(scores: np.ndarray) -> dict:
    return {f"q{i}": {f"d{j}": float(x) for j, x in enumerate(row)} for i, row in enumerate(scores)}


def system(seed: int, queries: int = 60, docs: int = 40, steps: int | None = None) -> tuple[dict, np.ndarray]:
    """Judgments, and the scores of a system; relevant documents score higher."""
    rng = np.random.default_rng(seed)
    label = rng.choice([0, 1, 2], (queries, docs), p=[0.85, 0.1, 0.05])
    score = rng.normal(0, 1, (queries, docs)) + 0.8 * label
    return lists(label), score if steps is None else np.round(score * steps) / steps


def test_draws_do_not_depend_on_the_order_of_rows_or_on_other_queries():
    qrels, score = system(1, queries=6, steps=5)
    run = lists(score)
    turned = {query: dict(reversed(docs.items())) for query, docs in reversed(run.items())}
    first, second = (tw.evaluate(qrels, one, ["nDCG@5", "AP"], noise=0.1, complete=True) for one in (run, turned))
    for name in ("nDCG@5", "AP"):
        assert first[name].noise.std == pytest.approx(second[name].noise.std, rel=1e-12)
    alone = tw.evaluate({"q2": qrels["q2"]}, run, "AP", noise=0.1, complete=True)["AP"].noise
    others = {query: run[query] for query in ("q2", "q0")}
    assert alone.std == tw.evaluate({"q2": qrels["q2"]}, others, "AP", noise=0.1, complete=True)["AP"].noise.std


def test_the_number_of_draws_sorted_together_changes_nothing(monkeypatch):
    qrels, score = system(1, queries=5)
    options = {"noise": 0.3, "complete": True, "samples": 150}
    whole = tw.evaluate(qrels, lists(score), ["nDCG@5", "AP", "Bpref"], **options)
    monkeypatch.setattr(noise_draws, "SORTED", 1)
    monkeypatch.setattr(noise_draws, "DRAWS", 28)
    parts = tw.evaluate(qrels, lists(score), ["nDCG@5", "AP", "Bpref"], **options)
    for name in ("nDCG@5", "AP", "Bpref"):
        assert parts[name].noise.std == pytest.approx(whole[name].noise.std, rel=1e-12)


def test_infinite_scores_stay_where_they_are():
    run = {"q": {"a": math.inf, "b": 1.0, "c": 0.9, "d": -math.inf, "e": -math.inf}}
    found = tw.evaluate({"q": {"b": 1, "e": 1}}, run, ["AP", "RR"], noise=0.1, complete=True)
    assert found["RR"].noise.expected == pytest.approx(1 / 2 - 0.2397501 * (1 / 2 - 1 / 3), abs=1e-6)
    assert found["AP"].noise.std > 0


def test_depth_judged_only_and_rounding_apply_to_noisy_scores():
    qrels, run, *_ = draw_list(4)
    for options in ({"depth": 5}, {"judged_only": True}, {"score_dtype": "decimal:0"}):
        found = tw.evaluate(qrels, run, ["P@4", "AP"], noise=1e-9, complete=True, **options)
        for name in ("P@4", "AP"):
            assert found[name].noise.expected == pytest.approx(found[name].expected, abs=1e-9)
    found = tw.evaluate(qrels, run, "AP(judged_only=True)", noise=1e-9, complete=True)
    (mean,) = (found[measure] for measure in found)
    assert mean.noise.expected == pytest.approx(mean.expected, abs=1e-9)


# -- the noise of two runs --------------------------------------------------------------------------------------------


def again(score: np.ndarray, size: float, seed: int) -> np.ndarray:
    return score + np.random.default_rng(seed).normal(0, size, score.shape)


@pytest.mark.parametrize("size", [0.003, 0.03, 0.3])
@pytest.mark.parametrize("change", [lambda x: x, lambda x: 1.05 * x + 7, lambda x: np.sinh(x / 2)])
def test_the_noise_of_one_run_is_found_whatever_the_monotone_change(size, change):
    _, score = system(3)
    found = tw.score_noise(lists(again(score, size, 1)), lists(change(again(score, size, 2))))
    assert found.reorders
    assert found.std == pytest.approx(size, rel=0.15)
    assert found.residual_std == pytest.approx(found.std * math.sqrt(2))
    assert sum(one.documents for one in found.by_score) == found.documents == 60 * 20
    assert found.left_out == 60 * 20


def test_a_constant_in_each_query_is_no_noise():
    _, score = system(3)
    moved = score + 5 * np.arange(60)[:, None] % 7
    assert tw.score_noise(lists(again(score, 0.01, 1)), lists(again(moved, 0.01, 2))).std < 0.5
    assert not tw.score_noise(lists(score), lists(moved)).reorders


def test_documents_in_one_run_alone_are_left_out():
    first = {"q": {f"d{i}": float(-i) for i in range(10)}}
    second = {"q": {f"d{i}": float(-i) for i in (0, 2, 1, 3, 20, 21)}}
    found = tw.score_noise(first, second)
    assert (found.queries, found.documents, found.left_out) == (1, 3, 3)


def test_a_monotone_second_run_gives_a_band_of_0():
    qrels, score = system(1)
    value = tw.evaluate(qrels, lists(score), "nDCG@10", complete=True)["nDCG@10"].expected
    for change in (lambda x: 1.05 * x, lambda x: 1 / (1 + np.exp(-x)), lambda x: x):
        band = tw.evaluate(qrels, lists(score), "nDCG@10", rerun=lists(change(score)))["nDCG@10"].rerun
        assert (band.low, band.high, band.std, band.shift) == (value, value, 0.0, 0.0)
        assert band.method == "no pair of documents changes its order"


def test_ties_of_one_run_alone_are_noise():
    qrels, score = system(1)
    tenths = np.round(score, 1)
    first, second = lists(tenths), lists(np.round(0.2 * np.floor(tenths / 0.2 + 0.01), 1))  # both have one decimal
    for runs in ((first, second), (second, first)):
        found = tw.score_noise(*runs)
        assert (found.reorders, found.ties_differ, found.moves, found.coarser) == (False, True, True, None)
        assert found.std == pytest.approx(0.05 / math.sqrt(2), rel=0.1)
        assert "vary by" in found.sentence
    report = tw.evaluate(qrels, first, "nDCG@10", rerun=second, complete=True)
    band, other = report["nDCG@10"].rerun, tw.evaluate(qrels, second, "nDCG@10")["nDCG@10"].expected
    assert band.second == other != report["nDCG@10"].expected
    assert band.low < report["nDCG@10"].expected < band.high
    same = tw.score_noise(first, lists(3 * np.round(score, 1)))
    assert (same.ties_differ, same.moves, same.std) == (False, False, 0.0)


def test_a_second_run_with_other_documents_does_not_print_the_number_again():
    run = {f"q{i}": {"a": 0.5, "b": 0.4, "c": 0.1, "d": 0.05} for i in range(20)}
    second = {query: docs | {"new": 0.6} for query, docs in run.items()}
    report = tw.evaluate({query: {"a": 1} for query in run}, run, "RR@2", rerun=second)
    assert report["RR@2"].rerun is None
    assert refusal(report) == (
        "No rerun band for RR@2: no pair of documents of both runs changes its order, but the second run has other "
        "documents, and prints .5000: score the same documents twice."
    )


@pytest.mark.parametrize("missing", ["zero", "skip"])
def test_numbers_are_shown_beside_each_other_for_the_same_queries_alone(missing):
    qrels, score = system(7)
    first, second = lists(again(score, 0.02, 1)), lists(again(score, 0.02, 2))
    few = {query: docs for query, docs in first.items() if query < "q3"}
    both = tw.evaluate(qrels, first, "P@5", rerun=second, missing=missing)["P@5"].rerun
    assert both.second == tw.evaluate(qrels, second, "P@5")["P@5"].expected
    assert tw.evaluate(qrels, few, "P@5", rerun=second, missing=missing)["P@5"].rerun.second is None


def test_bands_are_as_wide_as_the_step_of_a_number_that_few_documents_move():
    """P@5 of 200 queries moves by .001: in one of eight runs, so in more than 5% of pairs."""
    rng = np.random.default_rng(3)
    draws = np.where(rng.random(1000) < 1 / 8, 0.319, 0.318)
    other = np.where(rng.random(1000) < 1 / 8, 0.319, 0.318)
    step = 0.319 - 0.318
    assert 1.96 * math.sqrt(2) * draws.std() < step
    assert noise.half_width(draws) == pytest.approx(step, abs=1e-12)
    assert np.mean(np.abs(draws - other) <= noise.half_width(draws) + 1e-12) >= 0.95
    assert noise.half_width(draws + rng.normal(0, 1e-6, 1000)) < step  # many values: no steps


def test_bands_hold_the_numbers_of_other_replicates():
    qrels, score = system(7, queries=150)
    runs = [again(score, 0.02, seed) for seed in range(24)]
    values = [tw.evaluate(qrels, lists(run), ["nDCG@10", "AP"], complete=True) for run in runs]
    inside, centres = [], []
    for seed in range(8):
        few = {query: docs for query, docs in lists(runs[seed + 8]).items() if query in {f"q{i}" for i in range(20)}}
        report = tw.evaluate(qrels, lists(runs[seed]), ["nDCG@10", "AP"], rerun=few, complete=True)
        for name in ("nDCG@10", "AP"):
            band = report[name].rerun
            if band is None:
                continue
            assert band.low < report[name].expected < band.high
            assert band.half_width == pytest.approx(1.96 * math.sqrt(2) * band.std, rel=1e-4)
            assert (band.queries, band.documents, band.left_out) == (20, 400, 400)
            inside += [band.low <= values[other][name].expected <= band.high for other in range(24) if other != seed]
            centres.append(abs(band.shift) <= band.std)
    assert len(centres) >= 8
    assert all(centres)
    assert np.mean(inside) >= 0.9


def test_a_pair_on_other_queries_gives_the_same_kind_of_band():
    qrels, score = system(7, queries=150)
    _, other = system(8, queries=30)
    pair = tuple({f"x{q}": docs for q, docs in lists(again(other, 0.02, seed)).items()} for seed in (1, 2))
    run = lists(again(score, 0.02, 3))
    found = tw.evaluate(qrels, run, "P@5", rerun=pair)["P@5"].rerun
    assert tw.evaluate(qrels, run, "P@5", rerun=list(pair))["P@5"].rerun == found
    same = tw.evaluate(qrels, run, "P@5", rerun=lists(again(score, 0.02, 4)))["P@5"].rerun
    assert (found.queries, found.second, found.difference) == (30, None, None)
    assert found.std == pytest.approx(same.std, rel=0.2)
    assert same.difference == same.second - tw.evaluate(qrels, run, "P@5")["P@5"].expected


# -- what is refused --------------------------------------------------------------------------------------------------


def refusal(report: tw.Report) -> str:
    (note,) = [note for note in report.notes if note.startswith("No rerun band")]
    return note


def test_too_large_an_error_has_no_band():
    qrels, score = system(1, queries=300)
    report = tw.evaluate(qrels, lists(again(score, 1.0, 1)), "AP", rerun=lists(again(score, 1.0, 2)), complete=True)
    assert report["AP"].rerun is None
    assert "too large for a band" in refusal(report)


def test_a_refusal_shows_which_number_is_larger():
    qrels, score = system(15, queries=6)
    first, second = (lists(again(score, 0.2, seed)) for seed in (1, 2))
    report = tw.evaluate(qrels, first, "RR", rerun=second, complete=True, samples=64)
    assert refusal(report).endswith("the value moves by +.055339 on average, by ±.055251 at random.")


@pytest.mark.filterwarnings("ignore::tiewise.CutWarning")
def test_measures_that_reach_the_end_of_cut_lists_have_no_band():
    qrels, score = system(1)
    qrels = {query: docs | {"unseen": 1} for query, docs in qrels.items()}
    first, second = lists(again(score, 0.02, 1)), lists(again(score, 0.02, 2))
    report = tw.evaluate(qrels, first, ["P@5", "R@40"], rerun=second)
    assert report["P@5"].rerun is not None
    assert report["R@40"].rerun is None
    assert refusal(report) == (
        "No rerun band for R@40: the lists may have been cut, and documents could enter them from below. If they are "
        "complete, add complete=True."
    )
    assert tw.evaluate(qrels, first, "R@40", rerun=second, complete=True)["R@40"].rerun is not None


def test_another_precision_is_no_rerun_in_either_direction():
    qrels, score = system(1)
    coarse, fine = lists(np.round(again(score, 0.01, 1), 2)), lists(again(score, 0.01, 2))
    pair, coarse_pair = (
        tuple(lists(change(again(score, 0.01, seed))) for seed in (3, 4))
        for change in (lambda x: x, lambda x: np.round(x, 2))
    )
    run, second, the_pair = "the run", "the second run", "the pair"
    rounded, exact = lists(np.round(score, 1)), lists(score)  # this reorders nothing, but hides the order of ties
    cases = [
        (coarse, fine, run, second, "decimal:2"),
        (fine, coarse, second, run, "decimal:2"),
        (rounded, exact, run, second, "decimal:1"),
        (exact, rounded, second, run, "decimal:1"),
        (coarse, pair, run, the_pair, "decimal:2"),
        (fine, coarse_pair, the_pair, run, "decimal:2"),
        (fine, (coarse, fine), "the first run of the pair", "the second run of the pair", "decimal:2"),
        (fine, (fine, coarse), "the second run of the pair", "the first run of the pair", "decimal:2"),
    ]
    for first, rerun, coarser, finer, grid in cases:
        report = tw.evaluate(qrels, first, "P@5", rerun=rerun, complete=True)
        assert report["P@5"].rerun is None
        assert refusal(report) == (
            f"No rerun band for P@5: the scores of {coarser} lie on a coarser grid ({grid}) than those of {finer} "
            "(float64). Another precision is another system: score again in the same one, or compare the two."
        )
    same = tw.evaluate(qrels, coarse, "P@5", rerun=coarse_pair, complete=True)
    assert same["P@5"].rerun is not None


def test_a_grid_finer_than_the_noise_is_no_other_precision():
    qrels, score = system(1)
    first, second = again(score, 0.01, 1), again(score, 0.01, 2)
    printed = np.round(second, 4)  # as a file may have it
    for runs in ((first, printed), (printed, first), (first, second.astype(np.float32)), (first, 2 * printed)):
        found = tw.score_noise(*map(lists, runs))
        assert found.coarser is None
        assert found.grids[0] != found.grids[1]
    report = tw.evaluate(qrels, lists(first), "nDCG@10", rerun=lists(printed), complete=True)
    assert report["nDCG@10"].rerun is not None


def test_a_grid_is_called_as_in_an_audit():
    fine = np.random.default_rng(1).normal(20, 2, (30, 40))
    coarse = np.round(fine * 4) / 4
    found = tw.score_noise(lists(coarse), lists(fine))
    assert "on a coarser grid (even steps of 1/4) than those of the second run (float64)" in found.sentence
    assert tw.audit(lists(coarse)).reason == "scores come in even steps of 1/4"
    assert found.to_dict()["grids"] == ["1/4", "float64"]


def test_a_run_of_few_distinct_scores_has_no_known_grid():
    _, score = system(1)
    few = np.digitize(score, [-1, 0, 1]) / 7
    for runs in ((few, score), (score, few)):
        found = tw.score_noise(*map(lists, runs))
        assert (None in found.grids[:2], found.coarser) == (True, None)


def test_few_documents_have_no_band():
    run = {"q": {f"d{i}": -1.0 * i for i in range(10)}}
    second = {"q": run["q"] | {"d1": -2.0, "d2": -1.0}}
    report = tw.evaluate({"q": {"d0": 1}}, run, "RR", rerun=second, complete=True)
    assert report["RR"].rerun is None
    assert refusal(report).startswith("No rerun band for RR: only 5 documents can be compared, at least 20 are needed")
    few = "Too few documents to measure the noise of scores (1 query scored twice, 5 documents)."
    assert tw.score_noise(run, second).to_text().split("\n")[1:] == [few, ""]


def test_few_documents_in_the_same_order_say_nothing_of_other_queries():
    qrels, score = system(1)
    first = lists(score)
    report = tw.evaluate(qrels, first, "P@5", rerun={"q0": dict(list(first["q0"].items())[:5])})
    assert report["P@5"].rerun is None
    assert "only 3 documents can be compared" in refusal(report)


def test_scores_that_do_not_rise_with_the_others_are_no_rerun():
    _, score = system(1)
    for other in (lists(-again(score, 0.01, 1)), lists(np.zeros_like(score))):
        with pytest.raises(tw.InputError, match="do not rise with those of the first, so it is not a rerun"):
            tw.score_noise(lists(score), other)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"noise": 0}, "noise=0 is not possible. Give the standard deviation of normal noise"),
        ({"noise": "flat:1"}, "noise='flat:1' is not possible"),
        ({"noise": True}, "noise=True is not possible"),
        ({"noise": math.nan}, "is not possible"),
        ({"rerun": ({},)}, "rerun has 1 run. Give the second run, or a pair"),
        ({"rerun": ({}, {}, {})}, "rerun has 3 runs. Give the second run, or a pair"),
        (
            {"rerun": {"x": {"a": 1.0}}},
            "of the second: 'x'. Score some queries of the first again; evaluate also takes both runs of",
        ),
        ({"rerun": {"q": {"z": 1.0}}}, "The two runs have no document in common"),
    ],
)
def test_wrong_input_is_an_error(options, message):
    with pytest.raises(tw.InputError) as raised:
        tw.evaluate({"q": {"a": 1}}, {"q": {"a": 1.0, "b": 0.5}}, "RR", **options)
    assert message in str(raised.value)


def test_tie_groups_have_no_scores_to_add_noise_to():
    ties = tw.notation("(10)1")
    with pytest.raises(tw.InputError, match="give the run itself"):
        tw.evaluate(None, ties, "RR", noise=0.1)


def test_diversity_measures_have_no_noise():
    report = tw.evaluate({"q": {"a": {"s": 1}}}, {"q": {"a": 1.0, "b": 0.5}}, "alpha_nDCG@5", noise=0.1)
    assert report["alpha_nDCG@5"].noise is None
    assert any(note.startswith("No value under noise for alpha_nDCG@5: ") for note in report.notes)


def test_a_measure_without_queries_has_no_noise():
    report = tw.evaluate({"q": {"a": 0}}, {"q": {"a": 1.0, "b": 0.5}}, ["AP", "P@1"], noise=0.1, no_relevant="skip")
    assert report["AP"].noise is None
    assert "No value under noise for AP and P@1: it has no value." in report.notes


@pytest.fixture
def folder(tmp_path):
    return tmp_path


# -- what is shown ----------------------------------------------------------------------------------------------------


def test_reports_keep_and_show_what_was_found():
    qrels, score = system(7)
    first, second = (lists(again(score, 0.02, seed)) for seed in (1, 2))
    report = tw.evaluate(qrels, first, ["P@5", "nDCG@5"], rerun=second, noise=0.02)
    copied = pickle.loads(pickle.dumps(report))
    assert copied["P@5"].rerun == report["P@5"].rerun == report.select("P@5")["P@5"].rerun
    assert report.at("P@3")["P@3"].noise.method == "exact"
    found = report.to_dict()["measures"]["P@5"]
    assert found["rerun"]["low"] == report["P@5"].rerun.low
    assert found["noise"]["expected"] == report["P@5"].noise.expected
    (row, _) = report.to_frame().to_dict("records")
    assert (row["rerun_low"], row["noise_std"]) == (report["P@5"].rerun.low, report["P@5"].noise.std)
    text = report.to_text()
    assert "rerun ±" in text
    said = "Rerun band: scored again as in the second run, this run would print P@5 between"
    shown = (text, repr(report), report.to_markdown(), report._repr_html_())
    assert all(said in " ".join(one.split()) for one in shown)
    band = report["P@5"].rerun
    assert repr(report).startswith(f"{report['P@5']!r}\n")
    assert f" · {band!r}" in repr(report["P@5"])
    assert "rerun ±" in report["P@5"].to_text()
    plain = tw.evaluate(qrels, lists(score), "P@5")
    assert plain["P@5"].rerun is None
    assert "rerun" not in plain.to_text()


def test_a_band_that_changes_no_digit_shown_is_called_so():
    """Noise exchanges the relevant document with another in one query of 200 alone, and not in these two runs."""
    qrels = {f"q{i}": {"d0": 1} for i in range(200)}
    score, rng = -np.arange(20.0) * np.where(np.arange(200) == 0, 1e-6, 1)[:, None], np.random.default_rng(3)
    first, second = (lists(score + 1e-6 * rng.normal(size=score.shape)) for _ in range(2))
    report = tw.evaluate(qrels, first, "nDCG@10", rerun=second, complete=True)
    band = report["nDCG@10"].rerun
    assert (f"{band.low:.4f}", f"{band.high:.4f}", band.difference) == ("0.9994", "1.0000", 0.0)
    text = " ".join(report.to_text(digits=2).split())
    assert "nDCG@10 1.00 .00 same same ±95%" in text
    assert text.endswith("this run would print nDCG@10 1.00 again (95%, from 200 queries scored twice).")
    text = " ".join(report.to_text(digits=4).split())
    assert "nDCG@10 1.0000 .0000 same .0006 ±95%" in text
    assert "between .99940 and 1.00000 (95%, from 200 queries scored twice). The second run prints 1.00000 too." in text


def test_forbidden_words_are_not_said():
    qrels, score = system(7)
    report = tw.evaluate(qrels, lists(again(score, 0.02, 1)), "P@5", rerun=lists(again(score, 0.02, 2)))
    for words in ("true value", "confidence interval", "error of the model", "float32 would", "recovers"):
        assert words not in report.to_text()


def test_the_command_shows_the_band_of_one_run(tiewise, tmp_path):
    qrels, score = system(7, queries=40)
    tw.write_qrels(tw.Qrels.from_dict(qrels), tmp_path / "qrels.txt")
    for name, seed in (("first", 1), ("again", 2), ("other", 3)):
        tw.write_run(tw.Run.from_dict(lists(again(score, 0.02, seed))), tmp_path / f"{name}.trec")
    files = [str(tmp_path / name) for name in ("qrels.txt", "first.trec")]
    second = ["--rerun", str(tmp_path / "again.trec")]
    text = tiewise("evaluate", *files, "-m", "P@5", *second).out
    assert "Rerun band: scored again as in again.trec, this run would print P@5 between" in " ".join(text.split())
    found = json.loads(tiewise("evaluate", *files, "-m", "P@5", *second, "--format", "json").out)
    assert found["measures"]["P@5"]["rerun"]["queries"] == 40
    other = str(tmp_path / "other.trec")
    text = tiewise("evaluate", *files, "-m", "P@5", *second, "--rerun", other).out
    assert "scored again as in other.trec" in " ".join(text.split())
    assert "--rerun is for one run" in tiewise("evaluate", *files, other, *second, code=2).err
    text = tiewise("audit", files[1], *second).out
    assert "scored again" in text
    assert "Scores of one run vary by ±0.02" in text
    assert "audit each alone" in tiewise("audit", files[1], other, *second, code=2).err
    assert "Here are 2: give --rerun once." in tiewise("audit", files[1], *second, "--rerun", other, code=2).err


def test_the_rows_of_the_noise_are_numbers():
    _, score = system(7, queries=40)
    first = lists(again(score, 0.02, 1))
    found = tw.score_noise(first, lists(again(score, 0.02, 2)))
    assert [tuple(row) for row in found.to_frame().to_dict("split")["data"]] == list(found.by_score)
    refused = tw.score_noise(first, lists(np.round(score, 1)))
    assert len(refused.to_frame()) == len(refused.by_score)


def test_an_audit_has_the_noise_of_the_scores():
    _, score = system(7, queries=40)
    found = tw.audit(lists(again(score, 0.02, 1)), rerun=lists(again(score, 0.02, 2)))
    assert found.noise.std == pytest.approx(0.02, rel=0.1)
    assert found.to_dict()["noise"]["documents"] == 800
    assert tw.audit(lists(score)).noise is None


def test_an_audit_says_that_another_precision_is_no_rerun(tiewise, tmp_path):
    _, score = system(7, queries=40)
    fine, coarse = again(score, 0.02, 1), np.round(again(score, 0.02, 2), 1)
    files = [tmp_path / "fine.trec", tmp_path / "coarse.trec"]
    for path, scores in zip(files, (fine, coarse), strict=True):
        tw.write_run(tw.Run.from_dict(lists(scores)), path)
    said = "Not a rerun: the scores of the {} run lie on a coarser grid (decimal:1) than those of the {} run (float64)."
    for first, second, order in ((fine, coarse, ("second", "first")), (coarse, fine, ("first", "second"))):
        found = tw.audit(lists(first), rerun=lists(second))
        assert found.noise.coarser == order[0]
        assert found.noise.sentence == said.format(*order)
        for explain in (False, True):
            text = " ".join(found.to_text(explain=explain).split())
            assert said.format(*order) in text
            assert "vary by" not in text
            assert "noise (std)" not in text
    text = " ".join(tiewise("audit", str(files[0]), "--rerun", str(files[1])).out.split())
    assert said.format("second", "first") in text


def test_the_figure_shows_residuals_by_score():
    pytest.importorskip("altair")
    _, score = system(7, queries=40)
    noise = tw.score_noise(lists(again(score, 0.02, 1)), lists(again(score, 0.02, 2)))
    chart = noise.plot.residuals().to_dict()
    ranges, points = (chart["datasets"][layer["data"]["name"]] for layer in chart["layer"])
    assert len(points) == noise.documents
    assert [one["documents"] for one in ranges] == [one.documents for one in noise.by_score]


# -- the curve --------------------------------------------------------------------------------------------------------


def test_the_curve_never_falls_and_follows_what_rises():
    rng = np.random.default_rng(0)
    x = rng.normal(size=2000)
    grid = np.linspace(x.min(), x.max(), 500)
    for change in (np.tanh, np.exp, lambda y: 2 * y, lambda y: -y):
        curve = MonotoneCurve.fit(x, change(x) + rng.normal(0, 0.01, len(x)))
        assert (np.diff(curve.value(grid)) >= -1e-9).all()
        assert (curve.slope(grid) >= -1e-9).all()
    curve = MonotoneCurve.fit(x, np.tanh(x))
    assert np.abs(curve.value(x) - np.tanh(x)).mean() < 0.005
