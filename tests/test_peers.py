"""Our numbers beside those of other packages, run here: where they are right we agree, where they are not we say so."""

from __future__ import annotations

import random
from fractions import Fraction
from math import comb

import numpy as np
import pytest

import oracle
import tiewise as tw
from tiewise.metrics import engine
from tiewise.metrics.grouped_judgments import GroupedJudgments

pytrec_eval = pytest.importorskip("pytrec_eval")

SHARED = {
    "nDCG": "ndcg", "nDCG@5": "ndcg_cut_5", "nDCG@10": "ndcg_cut_10", "AP": "map", "AP@5": "map_cut_5",
    "RR": "recip_rank",
    "P@5": "P_5", "P@30": "P_30", "R@10": "recall_10", "Success@5": "success_5", "Rprec": "Rprec", "Bpref": "bpref",
    "SetP": "set_P", "SetR": "set_recall", "NumRet": "num_ret", "NumRel": "num_rel", "Hits": "num_rel_ret",
}  # fmt: skip


def make_data(seed: int, scores: list[float], labels: list[int]):
    """Judgments and a run over 40 documents; some queries in one of the two only."""
    rng = random.Random(seed)
    docs = [f"{rng.choice('abzAZé')}{i}" for i in range(40)]
    qrels = {f"q{i}": {d: rng.choice(labels) for d in rng.sample(docs, 12)} | {"zz": 0} for i in range(20)}
    run = {f"q{i}": {d: rng.choice(scores) for d in rng.sample(docs, 25)} for i in range(3, 24)}
    return qrels, run


TIED = [0.1, 0.2, 0.3, 0.3000000001, 16777216.0, 16777217.0]  # some tie in float32 only
UNTIED = [float(x) for x in np.random.default_rng(0).permutation(5000)]


@pytest.mark.parametrize("scores", [TIED, UNTIED], ids=["tied", "untied"])
@pytest.mark.parametrize("labels", [[0, 1], [0, 0, 1, 2, 3], [-2, -1, 0, 1, 2]], ids=["binary", "graded", "negative"])
@pytest.mark.parametrize("level", [1, 2])
def test_oblivious_equals_pytrec_eval(scores, labels, level):
    for seed in range(5):
        qrels, run = make_data(seed, scores, labels)
        truth = pytrec_eval.RelevanceEvaluator(qrels, set(pytrec_eval.supported_measures), level).evaluate(run)
        names = {tw.parse(ours): theirs for ours, theirs in SHARED.items()}
        names = {m(rel=level) if "rel" in m.params else m: theirs for m, theirs in names.items()}
        report = tw.evaluate(qrels, run, list(names), oblivious="pytrec_eval", missing="skip", complete=True)
        for measure, theirs in names.items():
            ours = report.per_query(measure)
            assert set(ours) == set(truth)
            for query, estimate in ours.items():
                assert estimate.oblivious == pytest.approx(truth[query][theirs], abs=1e-12), (measure, query)


def test_oblivious_by_tool_equals_pytrec_eval():
    qrels, run = make_data(7, TIED, [0, 1, 2])
    report = tw.evaluate(qrels, run, ["nDCG@10", "AP", "RR", "P@5"], complete=True)
    printed = {row.measure: row.value for row in report.oblivious_by_tool() if row.tool == "pytrec_eval"}
    truth = pytrec_eval.RelevanceEvaluator(qrels, set(SHARED.values())).evaluate(run)
    for ours, value in printed.items():
        assert value == pytest.approx(np.mean([found[SHARED[ours]] for found in truth.values()]), abs=1e-12)


def test_ndcg_equals_scikit_learn():
    metrics = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(0)
    for _ in range(200):
        n = int(rng.integers(2, 15))
        labels, scores = rng.integers(0, 4, n), rng.integers(0, 3, n) / 2
        k = int(rng.integers(1, n + 3))
        docs = [f"d{i}" for i in range(n)]
        found = tw.evaluate(
            {"q": dict(zip(docs, labels.tolist(), strict=True))},
            {"q": dict(zip(docs, scores.tolist(), strict=True))},
            [tw.nDCG @ k, tw.DCG @ k],
            complete=True,
        )
        assert found[tw.nDCG @ k].expected == pytest.approx(metrics.ndcg_score([labels], [scores], k=k), abs=1e-12)
        assert found[tw.DCG @ k].expected == pytest.approx(metrics.dcg_score([labels], [scores], k=k), abs=1e-12)


OURS = {"ndcg": tw.nDCG, "mrr": tw.RR, "map": tw.AP, "recall": tw.R, "precision": tw.P, "f1": tw.F1, "hits": tw.Hits}


def test_binary_measures_equal_the_authors_package():
    trm = pytest.importorskip("trm")
    rng = np.random.default_rng(1)
    for _ in range(150):
        n = int(rng.integers(1, 12))
        flags, scores = rng.integers(0, 2, n).astype(bool), rng.integers(0, 3, n) / 2
        cutoffs = [1, 3, n]  # not beyond the list: there trm divides the extremes of P and F1 by its length
        theirs = trm.evaluate([scores.tolist()], [flags.tolist()], metrics=list(OURS), k_list=sorted(set(cutoffs)))
        docs = [f"d{i}" for i in range(n)]
        qrels = {"q": dict(zip(docs, flags.astype(int).tolist(), strict=True))}
        run = {"q": dict(zip(docs, scores.tolist(), strict=True))}
        for name, measure in OURS.items():
            for k in theirs.k_list:
                if k > n:
                    continue
                ours = tw.evaluate(qrels, run, measure @ k, oblivious="given", complete=True)[measure @ k]
                for field in ("expected", "minimum", "maximum", "oblivious"):
                    truth = getattr(theirs.metrics[name][k], field)
                    assert getattr(ours, field) == pytest.approx(truth, abs=1e-10), (name, k, field)


def test_authors_package_leaves_its_own_range():
    """P and F1 beyond the list: trm's expectation lies outside its minimum and maximum; enumeration agrees with us."""
    trm = pytest.importorskip("trm")
    theirs = trm.evaluate([[3.0, 3.0]], [[True, False]], metrics=["precision"], k_list=[3]).metrics["precision"][3]
    assert not theirs.minimum <= theirs.expected <= theirs.maximum
    ours = engine.estimates(tw.P @ 3, GroupedJudgments(tw.notation("(10)"))).mean()
    truth = oracle.estimate("P", [3, 3], [1, 0], k=3)
    assert (ours.minimum, ours.expected, ours.maximum) == (truth.minimum, truth.expected, truth.maximum)


# -- what the page on slips says ------------------------------------------------------------------------------------


def manuscript(groups: list[tuple[int, int]], k: int) -> dict[str, Fraction]:
    """Eqs. 9 to 13 and 18 to 25 of Yang et al. as they stand, for groups of (size, relevant)."""
    start = [sum(size for size, _ in groups[:n]) for n in range(len(groups))]
    inside = [max(0, min(size, k - start[n])) for n, (size, _) in enumerate(groups)]  # Eq. 9
    hits = sum((Fraction(r, size) * t for (size, r), t in zip(groups, inside, strict=True)), Fraction(0))
    n_plus = sum(r for _, r in groups)
    found = {"Hits": hits, "R": hits / n_plus, "P": hits / k, "F1": 2 * hits / (k + n_plus)}
    at = next(n for n, (_, r) in enumerate(groups) if r)
    size, r = groups[at]
    found["RR"] = sum(
        (
            Fraction(comb(size - r, t), comb(size, t)) * Fraction(r, size - t) / (start[at] + t + 1)
            for t in range(min(size - 1, k - start[at] - 1) + 1)
        ),
        Fraction(0),
    )
    before = [sum(r for _, r in groups[:n]) for n in range(len(groups))]
    found["AP"] = (
        sum(
            (
                Fraction(r, size) * (before[n] + 1 + t * Fraction(r - 1, size - 1)) / (start[n] + t + 1)
                for n, (size, r) in enumerate(groups)
                if r
                for t in range(inside[n])
            ),
            Fraction(0),
        )
        / n_plus
    )
    return found


def test_equations_of_the_manuscript():
    rng = random.Random(3)
    for _ in range(60):
        sizes = [rng.randint(2, 3) for _ in range(rng.randint(1, 3))]
        labels = [[rng.randint(0, 1) for _ in range(size)] for size in sizes]
        flat = [label for group in labels for label in group]
        if not any(flat):
            continue
        scores = [-n for n, group in enumerate(labels) for _ in group]
        k = rng.randint(1, 9)
        found = manuscript([(len(group), sum(group)) for group in labels], k)
        for name, value in found.items():
            assert float(value) == pytest.approx(oracle.estimate(name, scores, flat, k=k).expected), (name, labels, k)


def test_documented_errors_of_the_manuscript():
    assert manuscript([(2, 1)], 1)["R"] == Fraction(1, 2)  # recall is not 1 by construction before the list's end
    assert manuscript([(2, 1)], 2)["R"] == manuscript([(2, 1)], 5)["R"] == 1  # there it is, whatever was missed
    assert oracle.estimate("R", [1, 1], [1, 0], [1], k=2).expected == pytest.approx(1 / 2)  # one more, not retrieved
    with pytest.raises(ZeroDivisionError):
        manuscript([(1, 1)], 1)  # Eq. 23: 0 · 0/0
    with pytest.raises((ZeroDivisionError, StopIteration)):
        manuscript([(2, 0)], 1)  # no relevant document
    whole = oracle.estimate("RR", [3, 3], [0, 1], k=2)  # no group straddles rank 2
    assert (whole.minimum, whole.maximum) == (0.5, 1.0)
    beyond = manuscript([(2, 1)], 4)["P"]  # beyond the list nothing is missing: Eqs. 9 and 12 divide by k
    assert beyond == Fraction(1, 4) and oracle.estimate("P", [1, 1], [1, 0], k=4).expected == 0.25


def test_documented_errors_of_the_authors_package():
    trm = pytest.importorskip("trm")
    found = {name: trm.evaluate([[2.0, 1.0]], [[2, 0]], metrics=[name], k_list=[1]).metrics[name][1] for name in OURS}
    assert {name: one.oblivious for name, one in found.items()} == {
        "hits": 2, "precision": 2, "recall": 1, "f1": pytest.approx(4 / 3), "mrr": 1, "map": 0.5, "ndcg": 1,
    }  # fmt: skip
    assert (found["hits"].expected, found["mrr"].expected, found["mrr"].maximum) == (2, 2, 1)
    none = trm.evaluate([[1.0, 1.0]], [[False, False]], metrics=list(OURS), k_list=[1]).metrics
    assert {one[1].expected for one in none.values()} == {0}
    assert "(Equation 4)" in trm.TieAwareResult.range.__doc__ and "(Equation 5)" in trm.TieAwareResult.bias.__doc__
    assert "(Equations 22-24)" in trm.metrics.expected_ap.__doc__  # Eqs. 23 to 25 of the manuscript
