"""`similarity` of whole runs: equal to the measure of each pair of rankings, for all pairs, queries and cutoffs."""

from __future__ import annotations

import itertools
import pickle
import warnings

import numpy as np
import pytest
from scipy.stats import hypergeom

import tiewise as tw
from tiewise.errors import InputError
from tiewise.metrics.hypergeometric import hypergeometric
from tiewise.ties import pairs as pair_groups


def systems(number: int, queries: int = 3, seed: int = 0) -> dict[str, dict[str, dict[str, float]]]:
    """Runs with ties, over documents that they share in part. Each run has one query more than the run before."""
    rng = np.random.default_rng(seed)

    def scores() -> dict[str, float]:
        docs = rng.choice(14, size=9, replace=False)
        return {f"d{doc}": float(score) for doc, score in zip(docs, rng.integers(0, 5, 9), strict=True)}

    return {f"S{s}": {f"q{q}": scores() for q in range(queries + s)} for s in range(number)}


def ranking(runs, system: str, query: str) -> tw.Ranking:
    return tw.Ranking.from_scores(runs[system][query])


def assert_same_bounds(found: tw.Bounds, truth: tw.Bounds) -> None:
    for part in ("value", "lower", "upper", "extrapolated"):
        one, other = getattr(found, part), getattr(truth, part)
        assert (one is None) == (other is None)
        if one is not None:
            for statistic in ("expected", "minimum", "maximum"):
                assert getattr(one, statistic) == pytest.approx(getattr(other, statistic), abs=1e-12)


@pytest.mark.parametrize(
    "measure",
    [
        *("RBO(phi=0.8)", "RBO(phi=0.9)", "RBO(phi=0.8, ties='w')", 'RBO(phi=0.8, ties="b")'),
        *("RBA(phi=0.8)", "RBA(phi=0.95)", "RBR(phi=0.8)", "MED_RBP(phi=0.8)", "tau", "tau_ap"),
    ],
)
def test_every_pair_and_query_equals_the_measure_of_its_rankings(measure):
    runs = systems(4, queries=4)
    found, chosen = tw.similarity(runs, measure), tw.parse(measure)
    assert found.queries == ("q0", "q1", "q2", "q3") and found.left_out == 3
    for a, b in itertools.product(runs, repeat=2):
        per_query = found.per_query(a, b)
        for query, bounds in per_query.items():
            x, y = ranking(runs, a, query), ranking(runs, b, query)
            if chosen.stem in ("tau", "tau_ap"):
                value = getattr(tw, chosen.stem)(x, y, complete="union")
                truth = tw.Bounds(value, value, value=value)
            elif chosen.stem == "MED_RBP":
                med = tw.rankings.med_rbp(x, y, phi=chosen.phi)
                truth = tw.Bounds(med.lower, med.upper, value=med)
            elif chosen.stem == "RBR":
                truth = tw.rbr(x.items, y, phi=chosen.phi)
            elif chosen.stem == "RBA":
                truth = tw.rba(x, y, phi=chosen.phi)
            else:
                truth = tw.rbo(x, y, phi=chosen.phi, ties=chosen.ties)
            assert_same_bounds(bounds, truth)
        mean = np.mean([one.lower.expected for one in per_query.values()])
        assert found.pair(a, b).lower.expected == pytest.approx(mean, abs=1e-14)
    assert found.matrix().shape == (4, 4)
    pairs = list((itertools.combinations if chosen.symmetric else itertools.permutations)(range(4), 2))
    frame = found.to_frame()
    assert list(zip(frame["observed"], frame["reference"], strict=True)) == [(f"S{a}", f"S{b}") for a, b in pairs]
    assert list(frame["expected"]) == [found.matrix()[pair] for pair in pairs]
    assert chosen.name in repr(found)


def test_a_cutoff_of_rbr_defines_the_set_and_is_exact_inside_ties():
    runs = systems(3)
    found = tw.similarity(runs, "RBR(phi=0.7)@4")
    for a, b in itertools.permutations(runs, 2):
        for query, bounds in found.per_query(a, b).items():
            truth = tw.rbr(ranking(runs, a, query), ranking(runs, b, query), phi=0.7, depth=4)
            assert_same_bounds(bounds, truth)


@pytest.mark.parametrize(
    "measure", ["RBO(phi=0.9)", "RBA(phi=0.9)", "RBR(phi=0.9)", "RBR(phi=0.9)@4", "MED_RBP(phi=0.9)"]
)
def test_without_bounds_the_score_is_the_same(measure):
    runs = systems(5)
    whole, quick = tw.similarity(runs, measure), tw.similarity(runs, measure, bounds=False)
    assert np.allclose(whole.matrix(), quick.matrix(), atol=1e-13, rtol=0)
    assert quick.pair("S0", "S1").upper is None
    assert quick.pair("S0", "S1").lower.minimum is None
    with pytest.raises(InputError, match="has no 'upper expected' here"):
        quick.matrix("upper")


@pytest.mark.parametrize("measure", ["tau", "tau_ap@3"])
def test_correlation_without_bounds(measure):
    runs = systems(3)
    whole, quick = (
        tw.similarity(runs, measure, edge="extend"),
        tw.similarity(runs, measure, edge="extend", bounds=False),
    )
    assert (whole.matrix() == quick.matrix()).all()
    assert quick.pair("S0", "S1").value.minimum is None
    bounds = whole.pair("S0", "S1")
    assert bounds.lower == bounds.upper == bounds.value and bounds.residual == 0  # nothing is unseen
    assert whole.matrix("value", "minimum")[0, 1] < whole.matrix()[0, 1] < whole.matrix("value", "maximum")[0, 1]
    with pytest.raises(InputError, match="has no 'lower expected' here"):
        whole.matrix("lower")


@pytest.mark.parametrize("measure", ["RBO", "MED_RBP", "RBR@4"])
def test_blocks_of_pairs_do_not_change_numbers(measure, monkeypatch):
    """One run is compared with several others at a time. Lists have different lengths, and some have no ties."""
    rng = np.random.default_rng(7)
    runs = {}
    for s in range(6):
        docs = rng.choice(20, size=3 + 2 * s, replace=False)
        scores = np.arange(len(docs)) if s % 3 == 0 else rng.integers(0, 4, len(docs))
        runs[f"S{s}"] = {"q": {f"d{doc}": float(score) for doc, score in zip(docs, scores, strict=True)}}
    found = tw.similarity(runs, measure)
    for size in (1, 30):
        monkeypatch.setattr(pair_groups, "BLOCK", size)
        again = tw.similarity(runs, measure)
        for part in tw.parse(measure).parts:
            for statistic in ("expected", "minimum", "maximum"):
                assert again.matrix(part, statistic) == pytest.approx(found.matrix(part, statistic), abs=1e-15)
    for a, b in itertools.product(runs, repeat=2):
        x, y = ranking(runs, a, "q"), ranking(runs, b, "q")
        if measure == "RBO":
            assert_same_bounds(found.pair(a, b), tw.rbo(x, y, phi=0.9))
        elif measure == "MED_RBP":
            med = tw.rankings.med_rbp(x, y, phi=0.9)
            assert_same_bounds(found.pair(a, b), tw.Bounds(med.lower, med.upper, value=med))
        else:
            assert_same_bounds(found.pair(a, b), tw.rbr(x, y, phi=0.9, depth=4))


def test_a_depth_inside_a_tie_group():
    runs = {"A": {"q": {"a": 1.0, "b": 1.0, "c": 0.5}}, "B": {"q": {"a": 3.0, "c": 2.0, "b": 1.0}}}
    with pytest.raises(InputError, match=r"Depth 1 ends inside a group of 2 tied items of query 'q'.*--edge extend"):
        tw.similarity(runs, "RBO(phi=0.9)@1", edge="error")
    with pytest.raises(InputError, match="edge='sideways' is not possible"):
        tw.similarity(runs, "RBO(phi=0.9)@1", edge="sideways")
    whole = tw.similarity(runs, "RBO(phi=0.9)@1")
    extended = whole.pair("A", "B")
    note = "Depth 1 ends inside a tie group in 1 of 2 lists: the whole group is taken (edge='extend')."
    assert whole.split_note == note and note in whole.to_dict()["notes"]
    assert "left out (edge='shrink'" in tw.similarity(runs, "RBO(phi=0.9)@1", edge="shrink").split_note
    assert tw.similarity(runs, "RBO(phi=0.9)@2").split_note == ""
    assert extended.lower.expected == pytest.approx(tw.rbo("(a b)", "a", phi=0.9).lower.expected)


def test_progress_is_reported_to_the_end():
    for bounds in (True, False):
        calls: list[tuple[int, int]] = []
        tw.similarity(systems(3), "RBA(phi=0.9)", bounds=bounds, progress=lambda *now, to=calls: to.append(now))
        assert calls[-1][0] == calls[-1][1] == 9
        assert [done for done, _ in calls] == sorted(done for done, _ in calls)


@pytest.mark.parametrize("runs", [[{}, {}], [], {"A": {}}, {}])
def test_similarity_needs_two_named_runs(runs):
    with pytest.raises(InputError, match=r"names no runs|two runs or more"):
        tw.similarity(runs)
    with pytest.raises(InputError, match=r"names no runs"):
        tw.similarity("a.trec", "b.trec")


def test_hypergeometric_probabilities():
    rng = np.random.default_rng(3)
    for size in (1, 2, 5, 30, 2000, 100_000):
        marked, drawn = rng.integers(0, size + 1, 5), rng.integers(0, size + 1, 5)
        if size == 100_000:
            marked = marked // 500
        found = hypergeometric(np.full(5, size), marked, drawn)
        h = np.arange(found.shape[1])
        for row, u, j in zip(found, marked, drawn, strict=True):
            assert np.allclose(row, hypergeom.pmf(h, size, u, j), atol=1e-10, rtol=1e-7)


@pytest.mark.parametrize("measure", [tw.RBO, tw.RBA, tw.RBR, tw.MED_RBP, tw.parse("tau"), tw.parse("tau_ap")], ids=str)
def test_one_ranking_has_no_value(measure):
    assert not hasattr(measure, "of")
    with pytest.raises(tw.MeasureError, match=f"{measure.stem}.* compares two rankings.*{measure.stem.lower()}\\(x, y"):
        measure.of("1(01)")


def test_names_of_the_measures():
    assert tw.parse("MED-RBP") == tw.parse("med_rbp(phi=0.9)") == tw.MED_RBP
    assert tw.parse("kendall_tau@10") == tw.parse("tau") @ 10
    assert {"MED_RBP", "tau", "tau_ap"} <= set(tw.measures())
    assert tw.MED_RBP.is_distance and tw.MED_RBP.symmetric
    assert tw.parse("tau").symmetric and not tw.parse("tau_ap").symmetric
    assert pickle.loads(pickle.dumps(tw.parse("tau_ap") @ 5)) == tw.parse("tau_ap@5")


def test_negative_numbers_are_aligned():
    up, down = {"q": {"a": 2.0, "b": 1.0}}, {"q": {"a": 1.0, "b": 2.0}}
    assert repr(tw.similarity({"A": up, "B": down}, "tau")).splitlines()[1:] == ["A   1.000 -1.000", "B  -1.000  1.000"]


def test_system_names_may_be_numbers():
    a, b = {"q": {"x": 2.0, "y": 1.0}}, {"q": {"y": 2.0, "x": 1.0}}
    found = tw.similarity({1: a, 2: b}, "RBO(phi=0.9)")
    assert found.systems == ("1", "2") and repr(found).splitlines()[1].startswith("1  1.000")
    assert "<table" in found._repr_html_() and found.to_frame() is not None
    assert found.pair(1, 2) == found.pair("1", "2")
    with pytest.raises(tw.InputError, match=r"There is no system '3'\. Systems: 1, 2"):
        found.pair(1, 3)
    with pytest.raises(tw.InputError, match="Two of the systems are called '1'"):
        tw.similarity({1: a, "1": b})


def test_rba_of_all_pairs():
    runs = systems(4, 3, seed=2)
    steps = []
    quick = tw.similarity(runs, "RBA(phi=0.9)", bounds=False, progress=lambda done, total: steps.append((done, total)))
    assert steps == [(18, 18)]  # six pairs, in one block
    steps.clear()
    slow = tw.similarity(runs, "RBA(phi=0.9)", progress=lambda done, total: steps.append((done, total)))
    assert steps == [(18, 18)]
    assert quick.matrix("lower") == pytest.approx(slow.matrix("lower"), abs=1e-14)
    with pytest.raises(InputError, match="no 'upper expected'"):
        quick.matrix("upper")


@pytest.mark.parametrize("edge", ["extend", "shrink"])
def test_similarity_to_a_depth(edge):
    runs = systems(2, 5, seed=3)
    found = tw.similarity(runs, "RBO(phi=0.9)@3", edge=edge)
    for query, bounds in found.per_query("S0", "S1").items():
        x, y = (tw.Ranking.from_scores(runs[s][query]).cut(3, edge) for s in ("S0", "S1"))
        assert_same_bounds(bounds, tw.rbo(x, y, phi=0.9))
    with pytest.raises(
        InputError, match=r"Depth 3 ends inside a group of \d tied items of query 'q\d'.*extend.*shrink"
    ):
        tw.similarity(runs, "RBO(phi=0.9)@3", edge="error")


def test_an_empty_list_cannot_be_extrapolated_and_the_rest_can():
    tied, plain = {"a": 1.0, "b": 1.0}, {"a": 2.0, "b": 1.0}
    runs = {"A": {"q": tied, "p": plain}, "B": {"q": plain, "p": plain}}
    found = tw.similarity(runs, "RBO(phi=0.9)@1", edge="shrink")
    assert found.per_query("A", "B")["q"].extrapolated is None
    assert found.pair("A", "B").extrapolated.expected == pytest.approx(1.0)
    assert found.matrix()[0, 1] == pytest.approx(1.0)


def test_values_that_are_not_defined():
    one = {"q": {"a": 1.0}}
    found = tw.similarity({"A": one, "B": one}, "tau")  # one document has no pairs
    assert np.isnan(found.matrix()).all() and found.pair("A", "B").value is None
    assert "nan" in repr(found) and found.pair("A", "B").lower.expected is None
    empty = tw.similarity({"A": {"q": {"a": 1.0, "b": 1.0}}, "B": {"q": {"a": 1.0, "b": 1.0}}}, "RBO@1", edge="shrink")
    assert empty.score_part == "lower" and (empty.matrix() == 0).all()
    assert tw.similarity({"A": one, "B": one}, "RBO").score_part == "extrapolated"


def test_invalid_comparisons():
    runs = systems(2, 2, seed=4)
    with pytest.raises(tw.MeasureError, match="nDCG@10 measures a run against judgments"):
        tw.similarity(runs, "nDCG@10")
    with pytest.raises(tw.MeasureError, match=r"RBO.*compares two rankings"):
        tw.evaluate({"q0": {"d1": 1}}, runs["S0"], "RBO")
    with pytest.raises(InputError, match="two runs or more"):
        tw.similarity({"A": runs["S0"]})
    with pytest.raises(InputError, match="no query in common"):
        tw.similarity({"A": {"q": {"d": 1.0}}, "B": {"p": {"d": 1.0}}})
    with pytest.raises(InputError, match="no system 'C'"):
        tw.similarity(runs).pair("S0", "C")


def test_p_is_another_name_of_phi_in_med_rbp():
    assert tw.parse("MED_RBP(p=0.8)") == tw.MED_RBP(p=0.8) == tw.MED_RBP(phi=0.8)
    with pytest.raises(tw.MeasureError, match="two names of one parameter"):
        tw.MED_RBP(p=0.8, phi=0.8)


# -- lists that may have been cut inside a tie group ----------------------------------------------------------------


def test_a_list_cut_inside_a_tie_group_can_leave_its_bounds():
    """Why there is a warning: two of four tied documents are missing, and the whole list is above the upper bound."""
    y = "a d e b c"
    seen, whole = tw.rbo("a (b c)", y, phi=0.9), tw.rbo("a (b c d e)", y, phi=0.9)
    assert whole.upper.expected > seen.upper.maximum


def cut_lists(runs, measure, **options) -> int:
    """The number of lists that `similarity` warns of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = tw.similarity(runs, measure, **options)
    assert [str(one.message) for one in caught if one.category is tw.CutWarning] == [found.cut_note] * bool(found.n_cut)
    return found.n_cut


@pytest.mark.parametrize(
    ("measure", "options", "number"),
    [
        ("RBO(phi=0.9)", {}, 1),
        ("tau", {}, 1),
        ("RBO(phi=0.9)", {"complete": True}, 0),
        ("RBO(phi=0.9)@20", {}, 0),  # the first 20 are not tied
        ("RBO(phi=0.9)@21", {}, 1),  # the whole last group is taken
        ("RBO(phi=0.9)@21", {"edge": "shrink"}, 0),
        ("RBO(phi=0.5)", {}, 0),  # 0.5^20 does not show
        ("MED_RBP(phi=0.5)", {}, 0),
        ("RBA(phi=0.5)", {}, 1),  # its weight is that of √0.5
        ("RBA(phi=0.3)", {}, 0),
        ("RBR(phi=0.5)", {}, 0),
        ("RBR(phi=0.5)@21", {}, 1),  # which documents are in the set of 21
        ("RBR(phi=0.5)@20", {}, 0),
    ],
)
def test_lists_that_may_have_been_cut_are_counted_where_they_matter(measure, options, number):
    first = {f"d{i}": 100.0 - i for i in range(20)}
    tied, untied = first | {"x": 1.0, "y": 1.0}, first | {"x": 1.0, "y": 0.5}
    assert cut_lists({"A": {"q": tied}, "B": {"q": untied}}, measure, **options) == number
    assert cut_lists({"A": {"q": untied}, "B": {"q": untied}}, measure, **options) == 0


def test_lists_that_are_known_to_be_complete_do_not_count():
    known = tw.Run.from_neighbors([[0.9, 0.5, 0.5, 0.1]], [[0, 1, 2, 3]], k=2)
    open_ended = tw.Run.from_neighbors([[0.9, 0.5, 0.5]], [[0, 1, 2]])
    assert cut_lists({"A": known, "B": known}, "RBO") == 0
    assert cut_lists({"A": known, "B": open_ended}, "RBO") == 1
    assert open_ended.ends_tied.tolist() == [True] and known.ends_tied.tolist() == [False]
