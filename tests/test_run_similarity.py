"""`similarity` of whole runs: what a pair of rankings gives, for all pairs and queries, at every cutoff."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.stats import hypergeom

import tiewise as tw
from tiewise.errors import InputError
from tiewise.metrics.hypergeometric import hypergeometric


def systems(number: int, queries: int = 3, seed: int = 0) -> dict[str, dict[str, dict[str, float]]]:
    """Runs with ties, over documents that they share in part."""
    rng = np.random.default_rng(seed)

    def scores() -> dict[str, float]:
        docs = rng.choice(14, size=9, replace=False)
        return {f"d{doc}": float(score) for doc, score in zip(docs, rng.integers(0, 5, 9), strict=True)}

    return {f"S{s}": {f"q{q}": scores() for q in range(queries)} for s in range(number)}


def ranking(runs, system: str, query: str) -> tw.Ranking:
    return tw.Ranking.from_scores(runs[system][query])


@pytest.mark.parametrize("measure", ["RBO(phi=0.8)", "RBA(phi=0.8)", "RBR(phi=0.8)", "RBO(phi=0.8, ties='w')"])
def test_every_pair_and_query_is_that_of_its_rankings(measure):
    runs = systems(4)
    found = tw.similarity(runs, measure)
    chosen = tw.parse(measure)
    for a, b in itertools.product(runs, repeat=2):
        for query, bounds in found.per_query(a, b).items():
            x, y = ranking(runs, a, query), ranking(runs, b, query)
            if chosen.stem == "RBR":
                wanted = tw.rbr(x.items, y, phi=0.8)
            elif chosen.stem == "RBA":
                wanted = tw.rba(x, y, phi=0.8)
            else:
                wanted = tw.rbo(x, y, phi=0.8, ties=chosen.ties)
            for part in ("lower", "upper", "extrapolated"):
                one, other = getattr(bounds, part), getattr(wanted, part)
                assert (one is None) == (other is None)
                if one is not None:
                    for statistic in ("expected", "minimum", "maximum"):
                        assert getattr(one, statistic) == pytest.approx(getattr(other, statistic), abs=1e-12)
        mean = np.mean([one.lower.expected for one in found.per_query(a, b).values()])
        assert found.pair(a, b).lower.expected == pytest.approx(mean, abs=1e-14)


def test_a_cutoff_of_rbr_is_that_of_the_set_and_exact_inside_ties():
    runs = systems(3)
    found = tw.similarity(runs, "RBR(phi=0.7)@4")
    for a, b in itertools.permutations(runs, 2):
        for query, bounds in found.per_query(a, b).items():
            wanted = tw.rbr(ranking(runs, a, query), ranking(runs, b, query), phi=0.7, depth=4)
            assert bounds.lower == wanted.lower or bounds.lower.expected == pytest.approx(wanted.lower.expected)
            assert bounds.upper.maximum == pytest.approx(wanted.upper.maximum, abs=1e-14)


@pytest.mark.parametrize("measure", ["RBO(phi=0.9)", "RBA(phi=0.9)", "RBR(phi=0.9)"])
def test_without_bounds_the_score_is_the_same(measure):
    runs = systems(5)
    whole, quick = tw.similarity(runs, measure), tw.similarity(runs, measure, bounds=False)
    assert np.allclose(whole.matrix(), quick.matrix(), atol=1e-13, rtol=0)
    assert quick.pair("S0", "S1").upper is None
    assert quick.pair("S0", "S1").lower.minimum is None
    with pytest.raises(InputError, match="has no 'upper expected' here"):
        quick.matrix("upper")


def test_a_depth_inside_a_tie_group_is_an_error_unless_told():
    runs = {"A": {"q": {"a": 1.0, "b": 1.0, "c": 0.5}}, "B": {"q": {"a": 3.0, "c": 2.0, "b": 1.0}}}
    with pytest.raises(InputError, match=r"Depth 1 ends inside a group of 2 tied items of query 'q'.*--edge extend"):
        tw.similarity(runs, "RBO(phi=0.9)@1")
    with pytest.raises(InputError, match="edge='sideways' is not possible"):
        tw.similarity(runs, "RBO(phi=0.9)@1", edge="sideways")
    extended = tw.similarity(runs, "RBO(phi=0.9)@1", edge="extend").pair("A", "B")
    assert extended.lower.expected == pytest.approx(tw.rbo("(a b)", "a", phi=0.9).lower.expected)


def test_progress_is_told_to_the_end():
    for bounds in (True, False):
        told: list[tuple[int, int]] = []
        tw.similarity(systems(3), "RBA(phi=0.9)", bounds=bounds, progress=lambda *now, to=told: to.append(now))
        assert told[-1][0] == told[-1][1] == 18
        assert [done for done, _ in told] == sorted(done for done, _ in told)


@pytest.mark.parametrize("runs", [["a.trec", "b.trec"], {"A": {}}, {}])
def test_runs_have_names_and_are_two_or_more(runs):
    with pytest.raises(InputError, match=r"names no runs|two runs or more"):
        tw.similarity(runs)


def test_chances_of_draws():
    rng = np.random.default_rng(3)
    for size in (1, 2, 5, 30, 2000, 100_000):
        marked, drawn = rng.integers(0, size + 1, 5), rng.integers(0, size + 1, 5)
        if size == 100_000:
            marked = marked // 500
        found = hypergeometric(np.full(5, size), marked, drawn)
        h = np.arange(found.shape[1])
        for row, u, j in zip(found, marked, drawn, strict=True):
            assert np.allclose(row, hypergeom.pmf(h, size, u, j), atol=1e-10, rtol=1e-7)


@pytest.mark.parametrize("measure", [tw.RBO, tw.RBA, tw.RBR], ids=str)
def test_one_ranking_alone_has_no_value(measure):
    assert not hasattr(measure, "of")
    with pytest.raises(tw.MeasureError, match=f"{measure.stem}.* compares two rankings.*{measure.stem.lower()}\\(x, y"):
        measure.of("1(01)")


def test_systems_may_be_called_by_numbers():
    a, b = {"q": {"x": 2.0, "y": 1.0}}, {"q": {"y": 2.0, "x": 1.0}}
    found = tw.similarity({1: a, 2: b}, "RBO(phi=0.9)")
    assert found.systems == ("1", "2") and repr(found).splitlines()[1].startswith("1  1.000")
    assert "<table" in found._repr_html_() and found.to_frame() is not None
    assert found.pair(1, 2) == found.pair("1", "2")
    with pytest.raises(tw.InputError, match=r"There is no system '3'\. Systems: 1, 2"):
        found.pair(1, 3)
    with pytest.raises(tw.InputError, match="Two of the systems are called '1'"):
        tw.similarity({1: a, "1": b})
