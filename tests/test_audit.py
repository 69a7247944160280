"""Audits of runs: grids, ties, their effect, fidelity to a reference, verdicts, and output."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import tiewise as tw
from tiewise.analysis.auditing import GRADES, LIBRARIES, Effect, even_steps
from tiewise.analysis.auditing.audits import AUDIT_COLUMNS, AUDIT_KEYS
from tiewise.analysis.auditing.consequences import grade_ties
from tiewise.analysis.auditing.quantization import ScoreGrid, infer_score_grid
from tiewise.analysis.grids import GRIDS, DecimalGrid
from tiewise.cli.conditions import FACTS, Condition
from tiewise.cli.output import render
from tiewise.errors import InputError
from tiewise.results.view import View

ml_dtypes = pytest.importorskip("ml_dtypes")

TYPES = {
    "float8_e4m3": ml_dtypes.float8_e4m3fn,
    "float8_e5m2": ml_dtypes.float8_e5m2,
    "bfloat16": ml_dtypes.bfloat16,
    "float16": np.float16,
    "float32": np.float32,
}


def random(seed: int, rows: int = 2000, scale: float = 1.0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=rows) * scale


def cast(values: np.ndarray, name: str) -> np.ndarray:
    """Values rounded to a type by ml_dtypes, as float64, without those that overflow."""
    with np.errstate(over="ignore"):
        rounded = values.astype(np.float32).astype(TYPES[name]).astype(np.float64)
    return rounded[np.isfinite(rounded)]


def grid_of(scores: np.ndarray) -> ScoreGrid:
    """The grid of scores that are not tied."""
    return infer_score_grid([(scores, np.ones(len(scores), dtype=int))])


def run_of(scores: np.ndarray, lists: int = 20) -> dict[str, dict[str, float]]:
    """A run of lists of equal length from scores."""
    parts = np.array_split(np.asarray(scores, dtype=float), lists)
    return {f"q{q}": {f"d{q}-{i}": float(s) for i, s in enumerate(part)} for q, part in enumerate(parts)}


# -- grids --------------------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), name=st.sampled_from(list(TYPES)), scale=st.sampled_from([0.01, 1.0, 30.0]))
def test_numbers_of_a_type_lie_on_its_grid(seed, name, scale):
    assert grid_of(cast(random(seed, scale=scale), name)).name == name


@pytest.mark.parametrize("name", [name for name in TYPES if name != "float32"])
def test_a_small_type_contains_its_numbers_and_not_their_neighbours(name):
    kind = TYPES[name]
    bits = np.arange(2 ** (8 * np.dtype(kind).itemsize)).astype(f"u{np.dtype(kind).itemsize}")
    every = bits.view(kind).astype(np.float32)
    every = every[np.isfinite(every)]
    assert GRIDS[name].contains(every.astype(float)).all()
    beside = np.unique(np.nextafter(every[np.abs(every) > 1e-30], np.float32(np.inf)))
    beside = beside[np.isfinite(beside)]
    assert not GRIDS[name].contains(beside.astype(float)).any()


@pytest.mark.parametrize("scale", [1e-3, 1.0, 30.0, 2000.0, 1e5])
def test_unrounded_scores_are_float32_or_float64(scale):
    scores = random(1, scale=scale)
    assert grid_of(scores).name == "float64"
    assert grid_of(scores.astype(np.float32).astype(float)).name == "float32"


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("text", ["%.9g", "%.12g", "%.17g"])
def test_printing_with_9_digits_keeps_the_grid(name, text):
    scores = cast(random(2), name)
    assert grid_of(np.array([float(text % s) for s in scores])).name == name


def test_shortest_text_of_float32_is_on_the_float32_grid():
    scores = random(3).astype(np.float32)
    assert grid_of(np.array([float(str(s)) for s in scores])).name == "float32"


@pytest.mark.parametrize("digits", [1, 2, 3, 4])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("scale", [1.0, 20.0])
def test_scores_with_few_decimals(digits, kind, scale):
    scores = np.round(random(4, scale=scale).astype(kind), digits).astype(float)
    assert grid_of(scores).name == f"decimal:{digits}"
    assert grid_of(np.array([float(f"{s:.9g}") for s in scores])).name == f"decimal:{digits}"


def test_five_decimals_are_not_a_grid():
    assert grid_of(np.round(random(5), 5)).name == "float32"


def test_whole_numbers():
    assert grid_of(np.arange(100.0)).name == "integer"
    assert grid_of(-np.arange(1.0, 100.0)).name == "integer"
    assert grid_of(np.array([2.0**30, 5.0])).name == "integer"


@pytest.mark.parametrize("scores", [[1e-60, 3e-50], [1e60, 0.123456], [0.5, 1e-60]])
def test_scores_outside_the_range_of_float32_are_float64(scores):
    assert grid_of(np.array(scores)).name == "float64"


def test_infinite_scores_lie_on_every_grid():
    scores = cast(random(6), "bfloat16")
    scores[::7] = -np.inf
    assert grid_of(scores).name == "bfloat16"
    assert grid_of(np.full(3, -np.inf)).name == "integer"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("bfloat16", "%.4f"),
        ("bfloat16", "%.6f"),
        ("bfloat16", "%.6g"),
        ("float16", "%.6f"),  # four decimals hide it
        ("float16", "%.6g"),
    ],
)
def test_low_precision_is_found_behind_few_digits(name, text):
    printed = grid_of(np.array([float(text % s) for s in cast(random(7), name)]))
    assert (printed.quantization.dtype, printed.quantization.made_by, printed.precision) == (name, "printing", name)
    honest = grid_of(np.array([float(text % s) for s in random(7)]))
    assert honest.precision is None


@pytest.mark.parametrize("name", ["bfloat16", "float16"])
def test_low_precision_is_found_behind_a_sigmoid(name):
    made = grid_of(sigmoid(cast(random(8, scale=3), name)))
    assert (made.name, made.quantization.dtype, made.quantization.made_by) == ("float32", name, "sigmoid")
    assert grid_of(sigmoid(random(8, scale=3))).precision is None


def sigmoid(z: np.ndarray) -> np.ndarray:
    """In float32, as a model would."""
    return (1 / (1 + np.exp(-z.astype(np.float32)))).astype(np.float32).astype(float)


@pytest.mark.parametrize("decimals", [4, 5, 6, 7, 8, None])
@pytest.mark.parametrize("shift", [0, 4])  # some scores are printed as 1.0000 or 0.0000
def test_low_precision_is_found_behind_a_sigmoid_and_few_digits(decimals, shift):
    def printed(z: np.ndarray) -> np.ndarray:
        return sigmoid(z) if decimals is None else np.round(sigmoid(z), decimals)

    z = random(30, 20_000, scale=3) + shift
    found = grid_of(printed(cast(z, "bfloat16")))
    assert (found.quantization.dtype, found.quantization.made_by, found.precision) == (
        "bfloat16",
        "sigmoid",
        "bfloat16",
    )
    assert grid_of(printed(z)).quantization is None


@pytest.mark.parametrize("decimals", [4, 6, None])
def test_a_softmax_of_two_logits_shows_low_precision_without_a_type(decimals):
    two = cast(np.random.default_rng(31).normal(10, 2, 40_000), "bfloat16").reshape(2, -1)
    scores = sigmoid(two[1] - two[0])
    found = grid_of(scores if decimals is None else np.round(scores, decimals))
    assert (found.quantization.dtype, found.quantization.made_by, found.precision) == (None, "sigmoid", "low precision")
    honest = np.random.default_rng(31).normal(10, 2, (2, 20_000)).astype(np.float32)
    scores = sigmoid(honest[1] - honest[0])
    assert grid_of(scores if decimals is None else np.round(scores, decimals)).quantization is None


@pytest.mark.parametrize("name", ["bfloat16", "float16"])
@pytest.mark.parametrize(("made_by", "made"), [("factor", lambda x: 100 * x), ("difference", lambda x: 1 - x)])
def test_low_precision_is_found_behind_a_factor_and_a_difference(name, made_by, made):
    found = grid_of(made(cast(random(32) / 5, name).astype(np.float32)).astype(float))
    assert (found.name, found.quantization.dtype, found.quantization.made_by) == ("float32", name, made_by)
    assert grid_of(made(random(32).astype(np.float32) / 5).astype(float)).quantization is None


@pytest.mark.parametrize("factor", [5, 10, 20, 50, 100])
def test_the_coarser_of_two_possible_types_is_named(factor):
    """20 times a bfloat16 is a float16 number, and 100 times one comes in even steps."""
    found = tw.audit(run_of((cast(random(45, scale=0.1) + 0.5, "bfloat16").astype(np.float32) * factor).astype(float)))
    assert found.precision == found.grid_beneath == "bfloat16"
    assert found.grid != "bfloat16" and found.grid_made_by == "factor"


# -- lists that were scaled ---------------------------------------------------------------------------------------

SCALINGS = {
    "0 to 1": lambda x: (x - x.min()) / (x.max() - x.min()),
    "z-scores": lambda x: (x - x.mean()) / x.std(),
    "a temperature": lambda x: x / np.float32(0.07),
    "a shift": lambda x: np.float32(0.3) * x + x.mean(),
    "softmax": lambda x: np.exp(3 * (x - x.max())) / np.exp(3 * (x - x.max())).sum(),
    "sigmoid": lambda x: 1 / (1 + np.exp(-(x * np.float32(1.7) - x.mean()))),
}


def scaled_run(scores: np.ndarray, scaling: str, decimals: int | None = None, lists: int = 20) -> dict:
    """A run whose lists are scaled in float32, and perhaps printed."""
    parts = [SCALINGS[scaling](part) for part in np.array_split(scores.astype(np.float32), lists)]
    together = np.concatenate(parts).astype(np.float32).astype(float)
    return run_of(together if decimals is None else np.round(together, decimals), lists)


@pytest.mark.parametrize("scaling", SCALINGS)
@pytest.mark.parametrize("name", ["float8_e4m3", "bfloat16", "float16"])
def test_low_precision_is_found_behind_scaling_of_lists(name, scaling):
    scores = cast(np.abs(random(46, 8000, 0.15) + 0.6), name)
    found = tw.audit(scaled_run(scores, scaling))
    assert found.grid == "float32" and found.cause in ("scaled", "precision")
    assert "high_precision(model)" in found.remedy and "unknown" not in found.reason
    if found.cause == "scaled":
        assert "come in even steps, list by list" in found.reason
        assert "by chance is below 1 in 10^" in found.grid_evidence
        plain = found.to_dict()["even_lists"]
        assert plain["lists"] > 0.9 * plain["looked_at"] and plain["log10_chance"] < -12
        assert found.rounded_share is None
    assert found.cause == "scaled" or scaling in ("a temperature", "sigmoid")


@pytest.mark.parametrize("decimals", [4, 6])
def test_low_precision_is_found_behind_scaling_and_few_digits(decimals):
    found = tw.audit(scaled_run(cast(random(46, 4000, 0.1) + 0.6, "bfloat16"), "0 to 1", decimals))
    assert found.cause == "scaled"


@pytest.mark.parametrize("scaling", SCALINGS)
@pytest.mark.parametrize("decimals", [3, 4, 5, 6, None])
def test_unrounded_lists_that_were_scaled_raise_no_alarm(scaling, decimals):
    """Lists of a model with some identical documents, and lists of BM25 with genuine ties."""
    model = np.random.default_rng(47).normal(0.5, 0.1, (20, 200)).astype(np.float32)
    model[:, 1::20] = model[:, ::20]
    for scores in (model.ravel(), bm25(48)):
        found = tw.audit(scaled_run(scores, scaling, decimals))
        assert found.tied_rows and found.cause != "scaled" and found.even_lists is None


def test_scaled_counts_are_not_called_low_precision():
    counts = np.random.default_rng(49).binomial(384, 0.6, 4000).astype(float)
    found = tw.audit(scaled_run(counts, "0 to 1"))
    assert found.cause == "scaled" and found.precision is None
    assert "rounded or counted" in found.grid_evidence and "If they are counts" in found.remedy


def test_ranks_and_short_lists_are_no_evidence_of_even_steps():
    few = tw.audit(scaled_run(cast(random(50, 160), "bfloat16"), "0 to 1"))  # eight documents a list
    assert few.even_lists is None
    assert tw.audit(run_of(np.tile(np.arange(100) / 99, 20))).grade == "none"


def test_false_positive_rate_of_even_steps():
    """Of unrounded lists, at most one in a hundred has a p-value below .01, also with few digits."""
    chance = np.random.default_rng(51)
    three = [DecimalGrid("decimal:3", 3)]
    lists = [np.unique(np.round(chance.random(12), 3)) for _ in range(400)]
    below = [even_steps._test_list(x, even_steps.UP_TO_SCALE, three)[0] for x in lists]
    assert np.mean(np.array(below) < -2) <= 0.01
    lists = [np.sort(chance.permutation(100)[:10] / 100) for _ in range(50)]
    inverted = (even_steps._invert_list(x, even_steps.OF_LISTS[0], np.zeros(1)) for x in lists)
    whole = [next(even_steps._split_range(x)) for x in inverted]
    assert max(map(even_steps._log10_chance, whole)) < -20  # two decimals that were not given as a printing


@pytest.mark.parametrize("lists", [1, 3, 30])
def test_combined_p_values_of_uniform_p_values_are_uniform(lists):
    draws = np.log10(np.random.default_rng(52).random((4000, lists)))
    combined = np.array([even_steps._combine_p_values(row) for row in draws])
    for at in (0.5, 0.1, 0.01):
        assert np.mean(combined < np.log10(at)) == pytest.approx(at, abs=4 * np.sqrt(at / 4000))


@pytest.mark.parametrize(
    ("scores", "step"),
    [
        (np.random.default_rng(33).binomial(16, 0.5, 5000) / 8, 1 / 8),
        (np.random.default_rng(33).integers(0, 21, 5000) / 4, 1 / 4),
        (np.random.default_rng(33).binomial(1024, 0.6, 5000) / 1024, 1 / 1024),
        (np.random.default_rng(33).binomial(256, 0.3, 5000) / 256, 1 / 256),
    ],
)
def test_even_steps_are_not_called_low_precision(scores, step):
    found = tw.audit(run_of(scores))
    assert (found.cause, found.even_steps, found.precision) == ("steps", step, None)
    assert f"even steps of 1/{1 / step:.0f}" in found.reason and "high_precision" not in found.remedy
    assert found.grid in TYPES  # all of its numbers are in fact such numbers


def test_both_are_named_if_steps_and_type_are_as_likely():
    """From .5 to 1, bfloat16 numbers are 1/256 apart, as are shares of 256 bits."""
    found = tw.audit(run_of(np.random.default_rng(34).integers(130, 250, 5000) / 256))
    assert (found.cause, found.even_steps) == ("precision", 1 / 256)
    assert found.reason == "scores rounded to bfloat16, or counts divided by 256"
    assert "counts" in found.remedy and "high_precision(model)" in found.remedy
    wider = tw.audit(run_of(cast(random(34, 5000, 0.1) + 0.6, "bfloat16")))
    assert (wider.cause, wider.even_steps) == ("precision", None) and "counts" not in wider.reason


@pytest.mark.parametrize("odd", ["one row", "one a list", "a tenth of the lists"])
@pytest.mark.parametrize("text", ["%.17g", "%.6f"])
def test_some_other_rows_do_not_hide_low_precision(odd, text):
    scores, honest = cast(random(35, 20_000), "bfloat16").reshape(100, 200), random(36, 20_000).reshape(100, 200)
    mine = {"one row": np.s_[3:4, 7], "one a list": np.s_[:, 0], "a tenth of the lists": np.s_[::10]}[odd]
    scores[mine] = honest[mine]
    found = tw.audit(run_of(np.array([float(text % s) for s in scores.ravel()]), lists=100))
    assert found.grid in ("float32", "float64")  # that of all scores
    assert (found.cause, found.precision) == ("precision", "bfloat16")
    assert "tied ones, are numbers of the bfloat16 grid" in found.grid_evidence


def test_one_fraction_does_not_hide_whole_numbers():
    scores = np.random.default_rng(37).integers(0, 200, 5000).astype(float)
    scores[17] = 0.3712
    assert tw.audit(run_of(scores)).cause == "integer"


@pytest.mark.parametrize("digits", [13, 15, 16])
def test_float32_printed_with_many_digits(digits):
    scores = random(38).astype(np.float32).astype(float)
    assert grid_of(np.array([float(f"{s:.{digits}g}") for s in scores])).name == "float32"
    assert grid_of(np.array([float(f"{s:.{digits}g}") for s in random(38)])).name == "float64"


@pytest.mark.filterwarnings("error")
def test_huge_and_tiny_scores_raise_no_warning():
    assert tw.audit({"q": {"a": 1e308, "b": 1.5, "c": 1.5, "d": 5e-324}}).tied_rows == 2
    tiny = tw.audit(run_of(np.repeat(np.arange(1, 51), 20) * 2.0**-149, lists=5))
    assert tiny.grid_made_by is None and tiny.tied_share == 1


@pytest.mark.parametrize("near", [0.5, 1.0, 3.0])
def test_scores_with_equal_float32_are_not_called_low_precision(near):
    """Their nearest float32 is one number, which lies on a coarse grid; but one number is no evidence."""
    scores = near + np.random.default_rng(53).random(400) * 1e-9
    found = tw.audit(run_of(scores))
    assert found.grid in ("integer", "float8_e5m2") and not grid_of(scores).is_significant
    assert (found.grade, found.remedy, grid_of(scores).quantization) == ("none", None, None)
    assert "so few distinct float32 numbers are not evidence" in found.grid_evidence
    tied = tw.audit(run_of(np.repeat(scores, 2)))
    assert tied.cause == "unclear"


def test_a_softmax_may_give_different_scores_for_equal_differences_of_logits():
    """Rounding may give different scores to two pairs of logits with the same difference."""
    two = cast(np.random.default_rng(54).normal(10, 2, 20_000), "bfloat16").astype(np.float32).reshape(2, -1)
    e = np.exp(two)
    scores = (e[1] / e.sum(axis=0)).astype(float)
    assert len(np.unique(scores)) > len(np.unique(two[1] - two[0]))
    assert grid_of(scores).quantization.made_by == "sigmoid"


def test_evidence_for_a_grid():
    scores = cast(random(9), "bfloat16")
    found = grid_of(scores)
    assert found.is_significant and "only one in 65,536 is such a number: this is not a coincidence" in found.evidence
    assert found.log10_p_value == pytest.approx(
        -16 * np.log10(2) * np.count_nonzero(np.unique(cast(random(9), "bfloat16")))
    )
    few = grid_of(np.array([0.5, 0.25, 0.75]))
    assert few.name == "float8_e5m2" and not few.is_significant and few.precision is None
    assert "not evidence" in few.evidence


def test_few_decimals_of_large_float32_are_no_evidence():
    """From 2**20 on, every float32 has at most three decimals, whatever made it."""
    found = grid_of((2.0**20 + np.random.default_rng(0).random(500) * 2**20).astype(np.float32).astype(float))
    assert found.name == "decimal:3" and not found.is_significant


# -- ties ---------------------------------------------------------------------------------------------------------


@st.composite
def runs(draw: st.DrawFn) -> dict[str, dict[str, float]]:
    scores = st.lists(st.sampled_from([0.0, 0.5, 1.0, 1.0 + 1e-12, 2.5, -3.0]), max_size=9)
    lists = draw(st.lists(scores, min_size=1, max_size=5).filter(any))
    return {f"q{q}": {f"d{i}": s for i, s in enumerate(one)} for q, one in enumerate(lists)}


@settings(max_examples=200, deadline=None)
@given(run=runs(), coded=st.booleans())
def test_tie_statistics_by_brute_force(run, coded):
    found = tw.audit(tw.Run.from_dict(run) if coded else run, cutoffs=(1, 2, 5))
    lists = [sorted(docs.values(), reverse=True) for docs in run.values() if docs]
    sizes = [one.count(score) for one in lists for score in set(one)]
    rows = sum(map(len, lists))
    assert (found.queries, found.rows) == (len(lists), rows)
    assert found.tied_rows == sum(size for size in sizes if size > 1)
    assert found.tied_share == pytest.approx(sum(size for size in sizes if size > 1) / rows)
    assert found.largest_group == max(sizes)
    assert found.distinct == len({score for one in lists for score in one})
    assert found.cut_lists == sum(len(one) > 1 and one[-1] == one[-2] for one in lists)
    assert found.constant_queries == sum(len(one) > 1 and len(set(one)) == 1 for one in lists)
    assert dict(found.across) == {
        k: sum(len(one) > k and one[k - 1] == one[k] for one in lists)
        for k in (1, 2, 5)
        if any(len(one) > k for one in lists)
    }
    for one in found.group_sizes:
        inside = [size for size in sizes if one.low <= size <= one.high]
        assert (one.groups, one.rows) == (len(inside), sum(inside))
    assert sum(one.groups for one in found.group_sizes) == len(sizes)
    as_float32 = [[float(np.float32(score)) for score in one] for one in lists]
    tied = sum(one.count(score) > 1 for one in as_float32 for score in one)
    assert found.float32_ties == tied - found.tied_rows
    for group in found.groups:
        docs = [doc for doc, score in run[group.query].items() if score == group.score]
        assert len(docs) == group.size > 1 and list(group.docs) == docs[:5]
        assert group.rank == 1 + sum(score > group.score for score in run[group.query].values())
    assert [one.size for one in found.groups] == sorted((size for size in sizes if size > 1), reverse=True)[:5]


def test_counts_equal_those_of_evaluate():
    run = run_of(cast(random(10), "float16"))
    qrels = {query: dict.fromkeys(list(docs)[:3], 1) for query, docs in run.items()}
    found = tw.audit(run, qrels=qrels, measures="nDCG@10")
    from_ = found.report.provenance
    assert (found.tied_rows, found.cut_lists) == (from_.tied_rows, from_.cut_lists)
    assert tw.audit(run, complete=True).cut_lists == 0


def test_nearly_constant_lists():
    assert tw.audit({"q": dict.fromkeys("abcdefghi", 0.5) | {"z": 0.9}}).nearly_constant_queries == 1
    assert tw.audit({"q": dict.fromkeys("abcdefgh", 0.5) | {"y": 0.8, "z": 0.9}}).nearly_constant_queries == 0
    # a final score of 0 means that nothing matched: the top of such a list is not constant
    assert tw.audit({"q": dict.fromkeys("abcdefghi", 0.0) | {"z": 0.9}}).nearly_constant_queries == 0


def test_identical_documents_are_distinguished_from_rounding():
    run = {"q": {"a": 0.5, "b": 0.5, "c": 0.25, "d": 0.25, "e": 0.1, "f": 0.1}}
    vectors = {"a": [1.0, 0.0], "b": [1.0, -0.0], "c": [1.0, 2.0], "d": [1.0, 3.0], "e": [9.0, 9.0]}
    assert tw.audit(run).identical_rows is None
    assert tw.audit(run, vectors=vectors).identical_rows == 2  # f has no vector, so e and f may differ
    ids, matrix = list(vectors), np.array(list(vectors.values()), dtype=np.float32)
    assert tw.audit(tw.Run.from_dict(run), vectors=(ids, matrix)).identical_rows == 2
    found = tw.audit({"q": {"a": 0.5, "b": 0.5, "c": 0.25, "d": 0.2}}, vectors=vectors)
    assert found.cause == "identical"
    run = run_of(bm25(13))
    alike = tw.audit(run, vectors={doc: [1.0] for docs in run.values() for doc in docs})
    assert alike.reason == "identical documents, not rounding"


# -- verdicts -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tied", "said"),
    [
        ((9, 10), "100% of lists across rank 10;"),  # offsets: the documents at ranks 10 and 11
        ((18, 19, 20), "100% of lists across rank 20;"),
        ((2, 3), "tied   6.7% of rows; largest group 2"),
    ],
)
def test_the_text_names_the_cutoffs_that_were_looked_at(tied, said):
    scores = [
        100.0 - (tied[0] if place in tied else place) + place_of_list / 7
        for place_of_list in range(10)
        for place in range(30)
    ]
    found = tw.audit(run_of(np.array(scores), lists=10), cutoffs=(1, 5, 10, 20))
    assert (found.across[20] > 0) is (20 in tied) and said in found.to_text()


def labels(run: dict[str, dict[str, float]], seed: int = 0) -> dict[str, dict[str, int]]:
    """Random judgments, so that the order of ties matters."""
    chance = np.random.default_rng(seed)
    return {query: {doc: int(chance.random() < 0.2) for doc in docs} for query, docs in run.items()}


@pytest.mark.parametrize("name", ["float8_e4m3", "float8_e5m2", "bfloat16", "float16"])
def test_a_low_precision_reranker(name):
    sigmoid = 1 / (1 + np.exp(-random(11, scale=2)))
    run = run_of(cast(sigmoid, name))
    for found in (tw.audit(run), tw.audit(run, qrels=labels(run))):
        assert (found.cause, found.grid) == ("precision", name)
        assert f"scores rounded to {name}" in found.reason
        assert "high_precision(model)" in found.remedy and name in found.remedy
    assert found.grade in ("changes_number", "changes_winner") and "other queries would change it by" in found.verdict


def test_saturated_scores():
    z = random(12, scale=4) + 15
    found = tw.audit(run_of((1 / (1 + np.exp(-z.astype(np.float32)))).astype(float)))
    assert (found.grid, found.cause, found.grade) == ("float32", "saturation", "unknown")
    assert [pile.at for pile in found.piles] == [1.0] and found.piles[0].levels_off
    assert "pile up at 1" in found.reason and "logit" in found.remedy


@pytest.mark.parametrize(
    ("mean", "std", "decimals", "cause"),
    [
        (-10, 3, 4, "saturation"),
        (-10, 3, 3, "saturation"),
        (8, 4, 3, "saturation"),
        (8, 4, 4, "decimals"),
        (0, 6, 3, "decimals"),
        (-6, 3, 3, "decimals"),
    ],
)
def test_saturation_of_probabilities_printed_with_few_digits(mean, std, decimals, cause):
    z = np.random.default_rng(39).normal(mean, std, 20_000)
    found = tw.audit(run_of(np.round(sigmoid(z), decimals), lists=100))
    assert found.cause == cause and all(pile.levels_off and pile.printed for pile in found.piles)
    assert f"at most {decimals} decimals" in found.reason
    assert ".9g" in found.remedy


@pytest.mark.parametrize("decimals", [2, 3, 4, 5])
@pytest.mark.parametrize("most", [0.8, 3.0])
def test_unmatched_documents_are_not_called_saturated(decimals, most):
    scores = np.random.default_rng(40).random((100, 100)) * most
    scores[:, 30:] = 0
    found = tw.audit(run_of(np.round(scores.ravel(), decimals), lists=100))
    assert found.cause == "genuine" and not any(pile.levels_off for pile in found.piles)


def bm25(seed: int, lists: int = 20, docs: int = 100) -> np.ndarray:
    """Full-precision scores of a few term statistics: documents with equal statistics tie."""
    chance = np.random.default_rng(seed)
    idf = chance.uniform(2, 8, size=(lists, 3))
    tf, length = chance.integers(0, 4, size=(lists, docs, 3)), chance.integers(5, 12, size=(lists, docs, 1)) / 8
    return (idf[:, None] * tf * 2.2 / (tf + 0.3 + 0.9 * length)).sum(axis=2).ravel()


@pytest.mark.parametrize("digits", [3, 4, None])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_ties_of_bm25_are_not_called_low_precision(digits, kind):
    scores = bm25(13).astype(kind).astype(float)
    found = tw.audit(run_of(scores if digits is None else np.round(scores, digits)))
    assert found.tied_share > 0.1
    assert found.cause == "genuine" and found.precision is None
    assert found.reason == "unknown from the scores alone" and "high_precision" not in (found.remedy or "")
    assert found.remedy is None or ("in low precision before" in found.remedy and "scoring.head(" in found.remedy)
    assert found.rounded_share < 0.3


def test_bm25_scores_in_bfloat16_are_called_low_precision():
    found = tw.audit(run_of(cast(bm25(13), "bfloat16")))
    assert found.cause == "precision"


@pytest.mark.parametrize("digits", [1, 2])
def test_scores_printed_with_few_digits(digits):
    found = tw.audit(run_of(np.round(random(14), digits)))
    assert (found.grid, found.cause) == (f"decimal:{digits}", "decimals")
    assert found.rounded_share > 0.7 and ".9g" in found.remedy


@pytest.mark.parametrize(("text", "words"), [("%.5f", "5 decimals"), ("%.5g", "5 digits")])
def test_five_digits_make_ties_in_long_lists(text, words):
    scores = random(27, 60_000, scale=0.2) if text == "%.5f" else 10.0 ** random(27, 60_000, scale=0.4)
    found = tw.audit(run_of(np.array([float(text % s) for s in scores]), lists=20))
    assert (found.grid, found.cause) == ("float32", "decimals") and words in found.reason
    assert ".9g" in found.remedy


def test_float32_makes_ties_in_long_lists():
    scores = (0.5 + np.random.default_rng(28).random(60_000) / 100).astype(np.float32)
    found = tw.audit(run_of(scores, lists=10))
    assert (found.grid, found.cause) == ("float32", "float32") and found.rounded_share > 0.9
    assert "float64" in found.remedy


def test_hamming_distances():
    bits = np.random.default_rng(15).random((2000, 64)) < 0.5
    found = tw.audit(run_of(bits.sum(axis=1).astype(float)))
    assert (found.grid, found.cause, found.grade) == ("integer", "integer", "unknown")
    assert found.reason == "scores are whole numbers" and "scoring.rescore" in found.remedy


def test_lists_of_one_document_do_not_hide_constant_lists():
    run = {f"a{i}": {"d": 1 + i / 7} for i in range(60)} | {
        f"b{i}": {f"d{j}": 0.12 for j in range(9)} for i in range(50)
    }
    found = tw.audit(run)
    assert found.cause == "constant" and found.verdict == "All scores of 50 lists are equal: they rank nothing."


def test_constant_scores():
    run = run_of(np.full(1000, 0.5))
    for found, grade in ((tw.audit(run), "unknown"), (tw.audit(run, qrels=labels(run)), "changes_winner")):
        assert (found.grade, found.cause, found.constant_queries) == (grade, "constant", 20)


def test_an_order_that_knows_the_labels():
    run = run_of(np.full(1000, 0.5))
    qrels = {query: {doc: int(place < 5) for place, doc in enumerate(docs)} for query, docs in run.items()}
    found = tw.audit(run, qrels=qrels, measures=["nDCG@10", "RR"])
    assert found.z_by_order["given"]["nDCG@10"] > 4
    asked = "Does the order of the data depend on the labels? It is far from random: z +"
    assert asked in " ".join(found.to_text(explain=True).split()) and asked not in " ".join(found.to_text().split())
    report = tw.evaluate(qrels, run, ["nDCG@10"], oblivious="given", complete=True)
    assert found.z_by_order["given"]["nDCG@10"] == pytest.approx(report["nDCG@10"].z)


@pytest.mark.parametrize("missing", ["zero", "skip"])
@pytest.mark.parametrize("measure", ["AP", "GMAP", "Accuracy", "Hits@7"])
def test_z_is_that_of_an_evaluation_in_the_order(measure, missing):
    rng = np.random.default_rng(3)
    qrels = {f"q{q}": {f"d{i}": int(rng.integers(0, 2)) for i in range(12)} for q in range(6)}
    run = {f"q{q}": {f"d{i}": float(rng.integers(0, 4)) for i in range(16)} for q in range(5)}
    found = tw.audit(run, qrels=qrels, measures=[measure], missing=missing, complete=True)
    for order, zs in found.z_by_order.items():
        mean = tw.evaluate(qrels, run, measure, oblivious=order, missing=missing, complete=True)[measure]
        assert zs[str(tw.parse(measure))] == pytest.approx(mean.z, rel=1e-12)


def test_no_z_of_an_order_in_which_a_measure_is_not_defined():
    found = tw.audit({"q": {"b": 1.0, "c": 1.0, "a": 1.0}}, qrels={"q": {"a": 1, "b": 0}}, measures=["Accuracy@2"])
    assert "Accuracy@2" not in found.z_by_order["given"] and found.z_by_order["docid-asc"]["Accuracy@2"] == 1


@pytest.mark.parametrize("missing", ["zero", "skip"])
@pytest.mark.parametrize("measure", ["AP", "GMAP", "Accuracy", "NumRelRet"])
def test_gap_is_that_of_two_evaluations(measure, missing):
    rng = np.random.default_rng(3)
    qrels = {f"q{q}": {f"d{i}": int(rng.integers(0, 2)) for i in range(12)} for q in range(6)}
    a, b = ({f"q{q}": {f"d{i}": float(rng.integers(0, 4)) for i in range(16)} for q in range(6)} for _ in range(2))
    del a["q1"], b["q2"]
    found = tw.audit(a, reference=b, qrels=qrels, measures=[measure], missing=missing, complete=True)
    both = {query: docs for query, docs in qrels.items() if query in a and query in b}
    here, there = (tw.evaluate(both, run, measure, complete=True)[measure].expected for run in (a, b))
    assert found.fidelity.gap[str(tw.parse(measure))] == pytest.approx(here - there, rel=1e-12)


def test_few_distinct_scores():
    found = tw.audit(run_of(np.random.default_rng(16).choice([0.0, 0.25, 0.5, 0.75, 1.0], 1000)))
    assert (found.grade, found.cause) == ("unknown", "few") and found.reason == "only 5 distinct scores"


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("scale", [0.1, 1.0, 25.0, 3000.0])
def test_unrounded_scores_raise_no_alarm(kind, scale):
    run = run_of(random(17, scale=scale).astype(kind).astype(float))
    for found in (tw.audit(run), tw.audit(run, qrels=labels(run))):
        assert found.grid == np.dtype(kind).name
        assert (found.grade, found.remedy, found.tied_share) == ("none", None, 0.0)


def test_a_few_duplicates_need_no_remedy():
    scores = random(18).astype(np.float32).astype(float)
    scores[3], scores[-1] = scores[2], scores[-2]
    found = tw.audit(run_of(scores))
    assert (found.grade, found.cause, found.remedy) == ("unknown", "unclear", None)  # two ties tell nothing


@pytest.mark.parametrize("docs", [{"a": 0.5, "b": 0.25, "c": 0.75}, {"a": 2.0, "b": 1.0, "c": 1.0}, {"a": 1.0}])
def test_a_few_rows_raise_no_alarm(docs):
    found = tw.audit({"q": docs})
    assert found.grade in ("none", "unknown")
    assert found.precision is None


def test_ranks_instead_of_scores():
    found = tw.audit({"q1": {"a": -1, "b": -2, "c": -3}, "q2": {"c": -1, "a": -2}})
    assert found.grade == "none" and "ranks" in found.verdict


def test_untied_low_precision_needs_a_reference():
    scores = cast(np.linspace(0.5, 0.99, 60), "bfloat16")
    found = tw.audit(run_of(np.unique(scores), lists=2))
    assert found.tied_rows == 0 and found.grade == "none" and "reference" in found.verdict


# -- grades -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("range_", "bias", "std", "half", "grade"),
    [
        (0.00004, 0.00004, 0.00002, 0.00001, "none"),  # it does not show in four digits, whatever the rest
        (0.011, -0.0003, 0.0001, 0.037, "harmless"),
        (0.011, -0.0003, 0.001, 0.037, "changes_number"),  # a wide worst case, and a typical effect of .002
        (0.011, -0.0006, 0.0001, 0.037, "changes_number"),  # the bias alone
        (0.011, 0.0003, 0.0001, 0.002, "changes_number"),  # small, but a tenth of the uncertainty over queries
        (0.9, 0.0, 0.0001, 0.037, "harmless"),  # the worst case makes no grade
        (0.05, 0.0, 0.01, 0.02, "changes_winner"),  # as much as other queries
        (0.05, 0.0, 0.0, 0.02, "harmless"),
        (0.05, 0.01, 0.01, None, "changes_number"),  # one query has no interval
    ],
)
def test_the_grade_of_a_measure(range_, bias, std, half, grade):
    assert Effect("RR", max(abs(bias), 2 * std), range_, half).grade == grade


@pytest.mark.parametrize(
    ("size", "half", "words"),
    [
        (0.0026, 0.056, "RR by about .003; other queries would change it by .056"),
        (0.01, 0.056, "RR by about .010; other queries would change it by .056"),
        (0.00031, 0.056, "RR by about .0003; other queries would change it by .0560"),
        (0.061, 0.056, "RR by about .061; other queries would change it by .056"),
        (3.2, 10.0, "RR by about 3.200; other queries would change it by 10.000"),
        (0.25, None, "RR by about .250"),
    ],
)
def test_an_effect_in_words(size, half, words):
    assert str(Effect("RR", size, 4.0, half)) == f"Ties change {words}"
    only_range = Effect("RR", 0.0, size, half)  # where neither bias nor std is known
    assert str(only_range) == f"Ties change {words}"


def test_effects_are_those_of_the_report():
    run = run_of(cast(random(22), "bfloat16"))
    qrels = labels(run)
    found = tw.audit(run, qrels=qrels, measures=["nDCG@10", "AP", "NumRet"])
    report = tw.evaluate(qrels, run, ["nDCG@10", "AP"], complete=True)
    assert [effect.measure for effect in found.effects] == ["nDCG@10", "AP"]  # a count has none
    for effect in found.effects:
        mean = report[effect.measure]
        assert (effect.range, effect.half_width) == (mean.range, mean.half_width)
        assert effect.size == max(abs(mean.bias), 2 * mean.std)
    plain = found.to_dict()
    assert plain["effects"][0]["grade"] == found.effects[0].grade and plain["changes_winner"] is found.changes_winner


QUERIES = [f"q{n}" for n in range(40)]
JUDGED = {query: {"a": 1} for query in QUERIES}
#: Of 40 queries, some rank the relevant document second, so that queries differ more than ties.
MIXED = {query: {"a": 2.0, "b": 1.0} if n % 2 else {"b": 2.0, "a": 1.0} for n, query in enumerate(QUERIES)}
ONE_TIED = MIXED | {"q0": {"a": 1.0, "b": 1.0}}


def test_a_reversed_comparison_is_named_and_changes_the_winner_if_it_is_shown():
    """In sums over queries, the tied run is 0 or .5 above MIXED, .25 expected; `above` is 1/6 above it."""
    third = {"b": 3.0, "c": 2.0, "a": 1.0}
    above = MIXED | {"q0": {"a": 2.0, "b": 1.0}, "q2": third, "q4": third}
    for other, is_reversed in ((above, True), (MIXED, False)):
        pair = tw.compare(JUDGED, {"tied": ONE_TIED, "other": other}, "RR", complete=True).pair("tied", "other")
        found = tw.audit(ONE_TIED, qrels=JUDGED, measures="RR", complete=True, comparisons=[pair])
        assert found.grade == "changes_number" and bool(found.reversals) is is_reversed
        untied = tw.audit(other, qrels=JUDGED, measures="RR", complete=True, comparisons=[pair])
        assert untied.grade == "none"  # its own ties reverse nothing
        if is_reversed:
            (one,) = found.reversals
            assert (one.result, one.share) == (
                "tied against other in RR",
                pytest.approx(0.5),
            ) and "trec_eval" in one.tools
            assert (
                f"T{str(one)[1:]}." in " ".join(found.to_text(explain=True).split()) and str(one) not in found.verdict
            )
            assert one.shown is False and not found.changes_winner  # nobody claims the difference
            assert grade_ties(found.effects, [one]) == "changes_number"
            assert grade_ties(found.effects, [replace(one, shown=True)]) == "changes_winner"
    alone = tw.audit(ONE_TIED, qrels=JUDGED, measures="RR", complete=True)
    assert alone.grade == "changes_number" and alone.reversals == ()


@pytest.mark.parametrize("limit", [0.7, 0.7499, 0.7501, 0.756, 0.757, 0.762, 0.763])
def test_a_reversed_check_changes_the_outcome(limit):
    """RR of ONE_TIED is .75 in one order of the two tied documents and .7625 in the other, .75625 expected."""
    found = tw.audit(ONE_TIED, qrels=JUDGED, measures="RR", complete=True, checks={"RR": limit})
    assert found["RR"].expected == pytest.approx(0.75625)
    assert found.changes_winner is (0.75 < limit <= 0.7625)
    check = f"the check of RR at {limit:g}".replace("0.", ".")
    assert [one.result for one in found.reversals] == [check] * found.changes_winner
    assert found.verdict.startswith(f"Ties can change the outcome: {check}") is found.changes_winner


def test_checks_and_comparisons_need_judgments():
    pair = tw.compare(JUDGED, {"a": ONE_TIED, "b": MIXED}, "RR", complete=True).pair("a", "b")
    for options in ({"checks": {"RR": 0.5}}, {"comparisons": [pair]}):
        with pytest.raises(InputError, match="needs judgments"):
            tw.audit(ONE_TIED, **options)
    with pytest.raises(InputError, match="needs a number"):
        tw.audit(ONE_TIED, qrels=JUDGED, checks={"RR": "much"})
    with pytest.raises(InputError, match=r"Give \{measure: number\}"):
        tw.audit(ONE_TIED, qrels=JUDGED, checks=0.5)
    with pytest.raises(InputError, match="compare"):
        tw.audit(ONE_TIED, qrels=JUDGED, comparisons=["a"])


# -- fidelity -----------------------------------------------------------------------------------------------------


@settings(max_examples=80, deadline=None)
@given(run=runs(), other=runs())
def test_fidelity_by_brute_force(run, other):
    shared = [query for query in run if query in other]
    assume(shared)
    found = tw.audit(run, reference=tw.Run.from_dict(other)).fidelity
    ordered = inverted = tied = 0
    taus = []
    for query in shared:
        docs = [doc for doc in run[query] if doc in other[query]]
        balance = 0
        for a, b in combinations(docs, 2):
            ours, theirs = (np.sign(one[query][a] - one[query][b]) for one in (run, other))
            balance += ours * theirs
            ordered += theirs != 0
            inverted += ours * theirs < 0
            tied += theirs != 0 and ours == 0
        if len(docs) > 1:
            taus.append(balance / (len(docs) * (len(docs) - 1) / 2))
    assert (found.queries, found.pairs) == (len(shared), ordered)
    assert found.inverted == (pytest.approx(inverted / ordered) if ordered else None)
    assert found.tied == (pytest.approx(tied / ordered) if ordered else None)
    assert found.tau == (pytest.approx(np.mean(taus)) if taus else None)


def test_a_run_is_faithful_to_itself():
    run = run_of(random(19))
    found = tw.audit(run, reference=run, qrels=labels(run), measures="nDCG@10")
    assert (found.inverted, found.tau) == (0.0, 1.0) and found.rbo == pytest.approx(1)
    assert found.fidelity.gap == {"nDCG@10": 0.0} and found.grade == "none" and found.unfaithful is False
    assert "faithful  yes: RBO 1.000, 0% of pairs inverted, nDCG@10 0" in found.to_text()


def test_an_untied_run_in_the_wrong_order():
    run = run_of(random(20))
    reversed_ = {query: {doc: -score for doc, score in docs.items()} for query, docs in run.items()}
    found = tw.audit(reversed_, reference=run)
    assert (found.inverted, found.tau, found.tied_share) == (1.0, -1.0, 0.0)
    assert found.grade == "none" and found.unfaithful and "100% of pairs inverted" in found.to_text()
    assert found.verdict.startswith("No ties: ") and found.verdict.endswith("It does not rank as the reference does.")
    assert "Find what differs" in found.remedy
    qrels = {query: {max(docs, key=docs.get): 1} for query, docs in run.items()}
    judged = tw.audit(reversed_, reference=run, qrels=qrels, measures="RR")
    assert judged.fidelity.gap["RR"] == pytest.approx(judged["RR"].expected - 1)
    assert judged.unfaithful and ", RR −" in judged.to_text()


@pytest.mark.parametrize("size", [1, 2, 3, 7, 151])
def test_rbo_reads_a_tie_across_its_last_rank_whole(size):
    """A tie group across rank 100 is read whole."""
    run = {"q": {f"d{i}": float(-(i // size)) for i in range(200)}}
    reference = {"q": {f"d{i}": float(-(i // 2)) for i in range(-1, 199)}}
    found = tw.audit(run, reference=reference)
    pair = tw.similarity({"a": run, "b": reference}, "RBO(phi=0.9)@100", edge="extend").pair("a", "b")
    assert found.rbo == pytest.approx(pair.extrapolated.expected, abs=1e-12)


def test_scores_of_minus_infinity_are_tied_in_both():
    run = {"q": {"a": 1.0, "b": float("-inf"), "c": float("-inf")}}
    found = tw.audit(run, reference=run).fidelity
    assert (found.pairs, found.inverted, found.tied, found.tau) == (2, 0.0, 0.0, pytest.approx(2 / 3))


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32), lengths=st.lists(st.integers(1, 150), min_size=1, max_size=4))
def test_inversions_in_lists_of_any_length(seed, lengths):
    chance = np.random.default_rng(seed)
    run, other = (
        {
            f"q{q}": dict(zip(map(str, range(n)), chance.integers(0, 40, n).tolist(), strict=True))
            for q, n in enumerate(lengths)
        }
        for _ in range(2)
    )
    found = tw.audit(run, reference=other).fidelity
    signs = [
        np.sign(np.subtract.outer(*2 * (np.array(list(one[q].values())),)))[np.triu_indices(n, 1)]
        for one in (run, other)
        for q, n in zip(run, lengths, strict=True)
    ]
    ours, theirs = (np.concatenate(part) for part in (signs[: len(lengths)], signs[len(lengths) :]))
    assert found.pairs == np.count_nonzero(theirs)
    if found.pairs:
        assert found.inverted == pytest.approx(np.count_nonzero(ours * theirs < 0) / found.pairs)


def test_the_gap_is_over_common_queries():
    run, other = {"q1": {"a": 2, "b": 1}, "q2": {"a": 1, "b": 2}}, {"q2": {"a": 2, "b": 1}}
    found = tw.audit(run, reference=other, qrels={"q1": {"a": 1}, "q2": {"a": 1}}, measures="RR")
    assert found.fidelity.gap == {"RR": pytest.approx(-0.5)}


# -- input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cutoffs": (0,)}, "from 1 on, not 0"),
        ({"cutoffs": (1.5,)}, "not 1.5"),
        ({"cutoffs": 5}, "several ranks"),
        ({"cutoffs": "10"}, "several ranks"),
        ({"cutoffs": [1, "x"]}, "not 'x'"),
        ({"cutoffs": [True]}, "not True"),
        ({"library": "keras"}, "Use one of sentence-transformers"),
        ({"vectors": {"x": [1, 2], "y": [1, 2]}}, "No document of the run has a vector.*'a', 'b'.*'x', 'y'"),
        ({"vectors": [[1, 2]]}, "vectors must be"),
        ({"vectors": {"a": [1, 2], "b": [1]}}, "one length"),
        ({"vectors": (["a", "b"], [[1.0]])}, "a row for each id"),
        ({"vectors": (["a", "b", "a"], [[1.0], [2.0], [3.0]])}, "more than once among the vectors: 'a'"),
        ({"vectors": {"a": [1.0], "b": [float("nan")]}}, r"Row 1 of the vectors holds NaN or infinity \(1 such row\)"),
        ({"reference": {"other": {"a": 1}}}, "no query in common"),
        ({"qrels": {"other": {"a": 1}}}, "no query in common"),
        ({"reference": 7}, "is not a run"),
    ],
)
def test_invalid_options(options, message):
    with pytest.raises(InputError, match=message):
        tw.audit({"q": {"a": 1.0, "b": 1.0}}, **options)


def test_cutoffs_of_any_integer_type():
    run = run_of(cast(random(41), "bfloat16"))
    assert tw.audit(run, cutoffs=np.array([10, 5])).across == tw.audit(run, cutoffs=(5, 10)).across


def test_an_unknown_library_is_an_error_even_without_a_remedy():
    with pytest.raises(InputError, match="Use one of sentence-transformers"):
        tw.audit(run_of(random(42)), library="keras")


@pytest.mark.parametrize("run", [{}, {"q": {}}])
def test_empty_runs(run):
    with pytest.raises(InputError, match="no rows"):
        tw.audit(run)


def test_a_measure_needs_judgments():
    with pytest.raises(InputError, match="needs judgments"):
        tw.audit({"q": {"a": 1.0}})["nDCG@10"]


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_line_of_code_for_a_library(library):
    found = tw.audit(run_of(cast(random(21), "bfloat16")), library=library)
    assert list(found.advice.code) == [library]
    assert len(found.remedy.splitlines()) == 2


# -- ways out -----------------------------------------------------------------------------------------------------


def test_object_and_json_share_names(tmp_path):
    path = tmp_path / "run.trec"
    tw.write_run(tw.Run.from_dict(run_of(cast(random(22), "bfloat16"))), path)
    run = tw.read_run(path)
    qrels = labels(run.to_dict())
    found = tw.audit(run, qrels=qrels, reference=run)
    plain = json.loads(found.to_json())
    assert list(plain) == ["schema", *AUDIT_KEYS] and plain["schema"] == "tiewise/audit/1"
    simple = {name for name in AUDIT_KEYS if not isinstance(plain[name], (list, dict))} - {"measured_queries"}
    assert {"grid", "tied_share", "verdict", "remedy", "grade", "cause", "reason", "rounded_share"} <= simple
    for name in simple:
        assert plain[name] == getattr(found, name), name
    assert plain["measures"]["nDCG@10"]["range"] == found["nDCG@10"].range
    assert plain["source"]["format"] == "trec" and plain["across"]["10"] == found.across[10]
    assert {row["tool"] for row in plain["tools"]} >= {"trec_eval", "pytrec_eval"}


def test_an_audit_can_be_pickled():
    run = run_of(cast(random(22), "bfloat16"))
    scaled = tw.audit(scaled_run(cast(random(46, 4000, 0.1) + 0.6, "bfloat16"), "0 to 1"), reference=run)
    assert scaled.even_lists is not None and pickle.loads(pickle.dumps(scaled)) == scaled
    judged = tw.audit(run, qrels=labels(run))
    assert pickle.loads(pickle.dumps(judged)).to_dict() == judged.to_dict()


def test_json_without_judgments_and_with_unscored_documents():
    plain = json.loads(tw.audit({"q": {"a": float("-inf"), "b": float("-inf"), "c": 1.0}}).to_json())
    assert plain["groups"][0]["score"] == "-inf"
    assert (plain["measures"], plain["fidelity"], plain["tools"]) == (None, None, None)


def named(found: tw.Audit, name: str = "r") -> tw.Audit:
    return replace(found, name=name)


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_answer_is_short_and_lines_of_code_and_ids_are_not_broken(width):
    run = run_of(cast(random(23), "bfloat16"))
    found = named(tw.audit(run, qrels=labels(run), reference=run_of(cast(random(23), "float32"))), "bf16")
    default, explained = (render(found, "table", View(width=width, explain=explain)) for explain in (False, True))
    assert default.splitlines()[0] == "bf16 · 20 queries · 2,000 rows"
    assert found.verdict in " ".join(default.split()) and "faithful  yes" in default
    assert len(default.splitlines()) <= (14 if width > 60 else 22)
    assert max(map(len, default.splitlines())) <= max(width, 70)
    lines = [line.strip() for line in explained.splitlines()]
    assert all(line in lines for line in found.advice.code.values())
    words = {word.strip(",") for word in explained.split()}
    assert {"sentence-transformers", "trec_eval-9", "torchmetrics"} <= words
    ids = {word for word in words if word.startswith("d") and "-" in word}
    assert ids and ids <= {doc for docs in run.values() for doc in docs}


@pytest.mark.parametrize(
    ("missing", "printed", "order"),
    [("zero", "trec_eval -c prints .250", "trec_eval -c"), ("skip", "the order of trec_eval gives .500", "the order")],
)
def test_where_a_query_is_missing_trec_eval_prints_a_mean_with_c_alone(missing, printed, order):
    qrels, run = {"q": {"a": 1}, "r": {"a": 1}}, {"q": {"a": 1.0, "b": 1.0}}
    found = tw.audit(run, qrels=qrels, measures="RR", missing=missing, complete=True)
    assert printed in found.to_text()
    assert next(row for row in found.report.oblivious_by_tool() if row.tool == "trec_eval").value is None
    assert f"obl ({order}" in tw.evaluate(qrels, run, "RR", missing=missing, complete=True).to_text(wide=True)


def test_measures_that_ties_move_come_first():
    run = {f"q{n}": {"a": 3.0, "b": 1.0, "c": 1.0} for n in range(20)}
    qrels = {query: {"a": 1, "b": 1} for query in run}
    rows = tw.audit(run, qrels=qrels, measures=["RR", "NumRet", "AP"], complete=True).to_text().splitlines()
    at = [line.split()[0] for line in rows].index("AP")
    assert rows[at].endswith("AP      .917, by tie order .833 – 1.000; trec_eval prints .833")
    assert rows[at + 1 : at + 3] == ["RR      1.000", "NumRet  60"]  # a count has no digits after the point


def test_explain_shows_the_counts_that_are_not_0():
    run = run_of(random(44), lists=20) | {"one": dict.fromkeys("abc", 1.0)}
    text = " ".join(tw.audit(run).to_text(explain=True).split())
    assert "lists of two or more documents with one score 1 lists that end with tied documents" in text


def test_an_audit_of_a_sound_run_is_short():
    text = tw.audit(run_of(cast(random(24), "float32"))).to_text()
    assert len(text.splitlines()) == 4 and text.splitlines()[1].startswith("No ties: ")


def test_scores_of_a_text_file_are_not_called_float32():
    found = tw.audit(run_of(np.round(np.random.default_rng(0).random(200), 6)))
    assert found.grid == "float32" and "scores  no coarser than float32, 200 distinct" in found.to_text()
    assert found.grid_evidence == "The 200 scores (200 distinct) are no coarser than float32."


def test_only_a_claimed_result_is_red():
    red, yellow, green = "\x1b[1;31m", "\x1b[1;33m", "\x1b[1;32m"
    constant = run_of(np.full(1000, 0.5))
    shown = [
        (tw.audit(ONE_TIED, qrels=JUDGED, measures="RR", complete=True, checks={"RR": 0.756}), red),
        (tw.audit(constant, qrels=labels(constant)), yellow),  # it could change a winner, but nobody is one
        (tw.audit(ONE_TIED, qrels=JUDGED, measures="RR", complete=True), yellow),
        (tw.audit(run_of(random(17))), green),
    ]
    for found, colour in shown:
        text = render(found, "table", View(), colour=True)
        assert [one for one in (red, yellow, green) if one in text] == [colour], found.verdict
    assert [found.grade for found, _ in shown[:2]] == ["changes_winner"] * 2


@pytest.mark.parametrize("format", ["tsv", "csv", "jsonl", "markdown", "latex"])
def test_every_format_has_the_facts(format):
    run = run_of(cast(random(25), "float16"))
    text = "".join(render(named(tw.audit(run, qrels=labels(run))), format, View()))
    assert "float16" in text and "nDCG@10" in text
    if format == "tsv":
        head, first, *_ = (line.split("\t") for line in text.splitlines())
        row = dict(zip(head, first, strict=True))
        assert head == list(AUDIT_COLUMNS) and (row["run"], row["grid"]) == ("r", "float16")


def test_its_repr_is_what_a_terminal_shows():
    found = tw.audit(run_of(random(26)))
    assert f"{found!r}\n" == found.to_text() and "<table" in found._repr_html_()
    assert found.to_frame()["tied_rows"].tolist() == [0]


def test_every_grade_has_words():
    assert [words for words, _ in GRADES.values()] == [
        "none",
        "harmless",
        "changes the number",
        "can change the winner",
        "unknown",
    ]


# -- gates --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "closed"),
    [
        ("tied_share > 0.5", True),
        ("tied_share > 0.7", False),
        ("cut_lists > 0 and largest_group == 2", True),
        ("not distinct < 2 or constant_queries > 0", True),
        ("range(RR) > 0.1 and tied_share > 0.5", True),
        ("float32_ties != 0", False),
        ("inverted > 0 or tau < 1", True),
        ("changes_winner", False),
        ("changes_winner < 1 and unfaithful == 1", True),
        ("not unfaithful", False),
    ],
)
def test_gates_on_an_audit(text, closed):
    run = {"q": {"a": 2.0, "b": 1.0, "c": 1.0}}
    found = tw.audit(run, qrels={"q": {"b": 1}}, reference={"q": {"a": 1, "b": 2, "c": 3}}, measures="RR")
    gate = Condition.parse(text, facts=FACTS)
    assert bool(gate.explain(found)) is closed


def test_gates_say_what_closed_them_and_what_they_need():
    found = tw.audit({"q": {"a": 2.0, "b": 1.0, "c": 1.0}})
    assert Condition.parse("largest_group > 1 or cut_lists > 5", facts=FACTS).explain(found) == (
        "largest_group = 2, cut_lists = 1"
    )
    with pytest.raises(InputError, match="--reference"):
        Condition.parse("inverted > 0", facts=FACTS).explain(found)
    with pytest.raises(InputError, match="--reference"):
        Condition.parse("unfaithful", facts=FACTS).explain(found)
    with pytest.raises(InputError, match="judgments \\(--qrels\\)"):
        Condition.parse("changes_winner", facts=FACTS).explain(found)
    with pytest.raises(InputError, match="is not a condition"):
        Condition.parse("tied_share", facts=FACTS)
    with pytest.raises(InputError, match="--qrels"):
        Condition.parse("range(RR) > 0", facts=FACTS).explain(found)
    with pytest.raises(InputError, match="Did you mean 'tied_share'"):
        Condition.parse("tide_share > 0", facts=FACTS)
    with pytest.raises(tw.MeasureError, match="Unknown measure 'tied_share'"):
        Condition.parse("tied_share > 0")  # a report has no such fact


def test_every_fact_is_one_of_an_audit():
    found = tw.audit({"q": {"a": 2.0}}, reference={"q": {"a": 1}})
    assert all(hasattr(found, name) for name in FACTS)


def test_lists_that_may_be_cut_change_the_number():
    """Tie order changes nothing, for both tied documents count; but others may have been cut off."""
    run = {f"q{n}": {"x": 2.0, "a": 1.0, "b": 1.0} for n in range(20)}
    judged = {query: {"a": 1, "b": 1, "c": 1} for query in run}
    found = tw.audit(run, qrels=judged, measures="R@3")
    assert found.grade == "changes_number" and found.effects[0].grade_by_order == "none"
    assert "lists may have been cut inside a tie group" in found.verdict
    text = " ".join(found.to_text().split())
    assert (
        "R@3 .667°" in text and "note: ° 20 of 20 lists may have been cut inside a tie group: R@3 .000 – .667." in text
    )
    whole = tw.audit(run, qrels=judged, measures="R@3", complete=True)
    assert whole.grade == "none" and whole["R@3"].cut is None and "Ties change nothing" in whole.verdict


def test_what_to_do_is_optional_where_ties_change_nothing():
    rng = np.random.default_rng(0)
    run = {f"q{n}": {f"d{i}": round(float(s), 2) for i, s in enumerate(rng.random(60))} | {"a": 2.0} for n in range(20)}
    found = tw.audit(run, qrels={query: {"a": 1} for query in run}, measures="RR", complete=True)
    assert found.grade == "none" and found.advice is not None
    assert "\noptional" in found.to_text() and "\ndo " not in found.to_text()
