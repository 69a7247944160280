"""Rank-biased measures and τ of rankings with ties, against an oracle that enumerates all orders and completions."""

from __future__ import annotations

import inspect
import math
import random
import statistics

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import oracle_rankings as oracle
import tiewise as tw
from tiewise import rankings as rankings_folder
from tiewise import ties as ties_folder
from tiewise.errors import InputError

PHI = st.sampled_from([0.1, 0.5, 0.8, 0.9, 0.99])


@st.composite
def rankings(draw: st.DrawFn, most: int = 6, items: str = "abcdefgh") -> list[list[str]]:
    """Up to `most` items in tie groups."""
    chosen = draw(st.permutations(items))[: draw(st.integers(0, most))]
    groups: list[list[str]] = []
    for item in chosen:
        if groups and draw(st.booleans()):
            groups[-1].append(item)
        else:
            groups.append([item])
    return groups


def close(found: tw.Estimate, truth) -> None:
    for field in ("expected", "minimum", "maximum"):
        assert getattr(found, field) == pytest.approx(getattr(truth, field), abs=1e-12), field


@settings(max_examples=150, deadline=None)
@given(x=rankings(), y=rankings(), phi=PHI)
def test_rbo_over_all_orders(x, y, phi):
    assume(oracle.number_of_orders(x, y) <= 2500)
    found = tw.rbo(x, y, phi=phi)
    lower, upper, extrapolated = oracle.over_orders(lambda a, b: oracle.rbo(a, b, phi), x, y)
    close(found.lower, lower)
    close(found.upper, upper)
    if x and y:
        close(found.extrapolated, extrapolated)
    else:
        assert found.extrapolated is None  # nothing to extrapolate from


@settings(max_examples=150, deadline=None)
@given(x=rankings(), y=rankings(), phi=PHI)
def test_rba_over_all_orders(x, y, phi):
    assume(oracle.number_of_orders(x, y) <= 2500)
    found = tw.rba(x, y, phi=phi)
    lower, upper = oracle.over_orders(lambda a, b: oracle.rba(a, b, phi), x, y)
    close(found.lower, lower)
    close(found.upper, upper)
    share = tw.rba(x, y, phi=phi, ties="share")
    assert share.lower.expected == pytest.approx(oracle.rba_share(x, y, phi), abs=1e-12)
    assert share.upper is None
    assert share.residual is None
    assert share.lower.expected >= found.lower.expected - 1e-12


@settings(max_examples=100, deadline=None)
@given(x=rankings(), y=rankings(), phi=PHI, ties=st.sampled_from("wab"))
def test_rbo_variants(x, y, phi, ties):
    found = tw.rbo(x, y, phi=phi, ties=ties)
    lower, upper, extrapolated = oracle.rbo_variant(x, y, phi, ties)
    assert found.lower.expected == pytest.approx(lower, abs=1e-12)
    assert found.upper.expected == pytest.approx(upper, abs=1e-12)
    if x and y:
        assert found.extrapolated.expected == pytest.approx(extrapolated, abs=1e-12)


@settings(max_examples=150, deadline=None)
@given(x=rankings(), phi=PHI, seed=st.integers(0, 99), depth=st.one_of(st.none(), st.integers(1, 7)))
def test_rbp_and_rbr_over_all_orders(x, phi, seed, depth):
    assume(oracle.number_of_orders(x) <= 800)
    rng = random.Random(seed)
    gmax = rng.choice([1.0, 3.0])
    gains = {item: rng.choice([0, gmax / 2, gmax]) for item in "abcdefghz" if rng.random() < 0.6}
    found = tw.rbp(x, gains, phi=phi, depth=depth, gmax=gmax)
    lower, upper = oracle.over_orders(lambda a: oracle.rbp(a, gains, phi, depth, gmax), x)
    close(found.lower, lower)
    close(found.upper, upper)
    observed = set(gains)
    found = tw.rbr(observed, x, phi=phi)
    lower, upper = oracle.over_orders(lambda a: oracle.rbr(observed, a, phi), x)
    close(found.lower, lower)
    close(found.upper, upper)


def test_rounding_is_no_effect_of_ties():
    """The weights of three ranks add up to the same in every order, but for their last digit."""
    lower = tw.rbr("c a b", "(a c b)", phi=0.9).lower
    assert lower.minimum == lower.expected == lower.maximum
    assert not lower.tied and repr(lower) == "RBR 0.2710"


@settings(max_examples=150, deadline=None)
@given(x=rankings(items="abcdef"), y=rankings(items="abcdef"))
def test_tau_and_tau_ap_over_all_orders(x, y):
    assume(oracle.number_of_orders(x, y) <= 2500)
    a, b = oracle.union_completed(x, y)
    assume(oracle.number_of_orders(a, b) <= 2500)
    found, found_ap = tw.tau(x, y, complete="union"), tw.tau_ap(x, y, complete="union")
    assume(len({item for group in a for item in group}) > 1)
    close(found, oracle.over_orders(oracle.tau, a, b))
    close(found_ap, oracle.over_orders(oracle.tau_ap, a, b))
    for mine, truth in ((found.tau_b, oracle.tau_b(a, b)), (found_ap.tau_ap_b, oracle.tau_ap_b(a, b))):
        assert (mine is None) == (truth is None)
        assert mine is None or mine == pytest.approx(truth, abs=1e-12)


@pytest.mark.parametrize(("x", "y"), [("", ""), ("a", ""), ("", "a"), ("a", "a")])
def test_tau_of_fewer_than_two_items_is_none(x, y):
    assert tw.tau(x, y, complete="union").expected is None
    assert tw.tau_ap(x, y, complete="union").expected is None


@pytest.mark.parametrize("x", ["", "a", "a b", "a b c"])
@pytest.mark.parametrize("y", ["", "a", "b a", "c d", "d e f"])
@pytest.mark.parametrize("phi", [0.1, 0.5, 0.9])
def test_bounds_equal_the_extremes_over_all_completions(x, y, phi):
    """Every way in which both rankings can go on, to five items: the bounds hold, and are reached in the limit."""
    a, b = x.split(), y.split()
    for mine, theirs in ((tw.rbo, oracle.rbo_by_completion), (tw.rba, oracle.rba_by_completion)):
        found, truth = mine(a, b, phi=phi), theirs(a, b, phi, 5)
        assert found.lower.expected == pytest.approx(truth.lower, abs=1e-12)
        assert found.upper.expected == pytest.approx(truth.upper, abs=1e-12)
    found, truth = tw.rbr(a, b, phi=phi), oracle.rbr_by_completion(a, b, phi, 6)
    assert found.lower.expected == pytest.approx(truth.lower, abs=1e-12)
    assert found.upper.expected == pytest.approx(truth.upper, abs=1e-12)


@settings(max_examples=100, deadline=None)
@given(x=rankings(8), y=rankings(8), phi=PHI)
def test_laws(x, y, phi):
    for measure in (tw.rbo, tw.rba):
        here, there = measure(x, y, phi=phi), measure(y, x, phi=phi)
        for a, b in ((here.lower, there.lower), (here.upper, there.upper)):  # symmetric
            assert a.expected == pytest.approx(b.expected, abs=1e-12)
            assert a.minimum - 1e-12 <= a.expected <= a.maximum + 1e-12
        assert -1e-12 <= here.lower.expected <= here.upper.expected + 1e-12 <= 1 + 1e-9
    untied = [[item] for group in x for item in group], [[item] for group in y for item in group]
    plain = tw.rbo(*untied, phi=phi)
    for ties in "wab":  # without ties all variants are one
        variant = tw.rbo(*untied, phi=phi, ties=ties)
        assert variant.lower.expected == pytest.approx(plain.lower.expected, abs=1e-12)
        assert variant.upper.expected == pytest.approx(plain.upper.expected, abs=1e-12)
    observed = {item for group in y for item in group}
    gains = {item: float(item in observed) for group in x for item in group}  # dual in the base score
    base = tw.rbp(x, gains, phi=phi).lower.expected
    assert tw.rbr(observed, x, phi=phi).lower.expected == pytest.approx(base, abs=1e-15)


@pytest.mark.parametrize("phi", [0.5, 0.9])
def test_bounds_shrink_as_rankings_grow_and_identity_reaches_one(phi):
    items = [str(i) for i in range(400)]
    for measure in (tw.rbo, tw.rba):
        widths = [measure(items[:n], items[:n][::-1], phi=phi).residual for n in (1, 3, 10, 50)]
        assert widths == sorted(widths, reverse=True)
        assert measure(items, items, phi=phi).lower.expected == pytest.approx(1, abs=1e-9)


# -- the papers' numbers --------------------------------------------------------------------------------------------


def test_corsi_and_urbanos_example():
    x, y = "red (blue green) yellow pink", "(blue red) white (yellow black purple) green"
    published = {
        "a": (0.6922853, 0.3310519, 0.8930692),
        "w": (0.7068257, 0.3429684, 0.9049857),
        "b": (0.7207131, 0.3509163, 0.9129336),
    }
    for ties, numbers in published.items():
        found = tw.rbo(x, y, phi=0.95, ties=ties)
        values = (found.extrapolated.expected, found.lower.expected, found.upper.expected)
        assert tuple(round(value, 7) for value in values) == numbers


#: What rbo 0.1.3 prints (it needs NumPy 1): RankingSimilarity(list(x), list(y)).rbo_ext(p=p)
RBO_EXT = [
    ("fcgja", "bijce", 0.9, 0.29889000000000004),
    ("aidjghef", "dbgaehic", 0.8, 0.3889347047619048),
    ("jagi", "dachjbi", 0.9, 0.42905378571428565),
    ("jecaifb", "fbie", 0.95, 0.5504245431547619),
    ("adhfeicbgj", "edcfbahigj", 0.5, 0.24159226190476188),
    ("heb", "bigjchdea", 0.98, 0.5190764580158926),
]


@pytest.mark.parametrize(("x", "y", "p", "printed"), RBO_EXT)
def test_rbo_without_ties_equals_the_package_rbo(x, y, p, printed):
    assert tw.rbo(list(x), list(y), phi=p).extrapolated.expected == pytest.approx(printed, abs=1e-13)


@settings(max_examples=100, deadline=None)
@given(x=st.sets(st.sampled_from("abcdef")), y=st.sets(st.sampled_from("abcdef")))
def test_precision_and_recall_of_sets(x, y):
    assert tw.rankings.precision(x, y) == pytest.approx(oracle.precision(sorted(x), sorted(y)))
    assert tw.rankings.recall(x, y) == tw.rankings.precision(y, x) == pytest.approx(oracle.recall(sorted(x), sorted(y)))


def test_choice_of_phi():
    assert tw.phi_for_discount(0.5, 10) == pytest.approx(0.5**0.1)
    for k, score in ((10, 0.3), (50, 0.2), (2, 0.5)):
        phi = tw.phi_for_reverse_rba(score, k)
        assert phi <= (k - 1) / (k + 1)
        assert tw.rba(range(k), range(k)[::-1], phi=phi).lower.expected == pytest.approx(score, abs=1e-9)
    assert round(tw.rankings.top_weight(0.9, 10), 4) == 0.8556 == round(oracle.rbo_top_weight(0.9, 10), 4)
    for call in (
        lambda: tw.phi_for_reverse_rba(0.99, 10),
        lambda: tw.phi_for_reverse_rba(0.2, 1),
        lambda: tw.phi_for_discount(1.5, 10),
        lambda: tw.rankings.top_weight(1, 10),
    ):
        with pytest.raises(InputError):
            call()


def test_tau_b_equals_scipy():
    stats = pytest.importorskip("scipy.stats")
    rng = random.Random(0)
    for _ in range(50):
        n = rng.randrange(2, 200)
        scores = [[rng.randrange(1 + n // 3) for _ in range(n)] for _ in range(2)]
        found = tw.tau(*(tw.Ranking.from_scores(dict(enumerate(map(float, s)))) for s in scores))
        truth = stats.kendalltau(*scores).statistic
        assert (found.tau_b is None and math.isnan(truth)) or found.tau_b == pytest.approx(truth, abs=1e-12)


# -- rankings -------------------------------------------------------------------------------------------------------


def test_a_ranking_in_every_form():
    forms = ["a (b c) d", ["a", {"b", "c"}, "d"], [["a"], ["b", "c"], ["d"]], ["a", ("c", "b"), "d"]]
    assert len({tw.Ranking(form) for form in forms}) == 1
    assert tw.Ranking.from_scores({"d": 0.0, "b": 1.0, "a": 2.5, "c": 1.0}) == tw.Ranking("a (b c) d")
    run = tw.Run.from_dict({"q": {"d": 0.0, "b": 1.0, "a": 2.5, "c": 1.0}})
    assert tw.Ranking.from_run(run, "q") == tw.Ranking("a (b c) d")
    assert tw.Ranking.from_scores({3: 1.0, 1: 2.0}).items == (1, 3)
    assert tw.Ranking("") == tw.Ranking([])
    assert repr(tw.Ranking("a (b c)")) == "a (b c)"


def test_a_cutoff_inside_a_tie_group():
    ranking = tw.Ranking("a (b c) d")
    assert ranking.cut(3) == tw.Ranking("a (b c)")
    assert ranking.cut(2, "extend") == tw.Ranking("a (b c)")
    assert ranking.cut(2, "shrink") == tw.Ranking("a")
    with pytest.raises(InputError, match=r"Depth 2 ends inside a group of 2 tied items.*extend.*shrink"):
        ranking.cut(2)


@pytest.mark.parametrize(
    ("ranking", "message"),
    [
        ("a b a", "'a' occurs twice"),
        ([["a"], []], "Group 2 of the ranking is empty"),
        ("a ()", "Group 2 of the ranking is empty"),
        ("a (b", "bracket"),
        ("a (b (c))", "bracket"),
        ([["a", ["b"]]], "do not nest"),
        ({"a", "b"}, "has no order"),
        ({"a": 1.0}, "from_scores"),
        (7, "is not a ranking"),
    ],
)
def test_invalid_rankings(ranking, message):
    with pytest.raises(InputError, match=message):
        tw.Ranking(ranking)


def test_rbp_takes_phi_under_both_names():
    assert inspect.signature(tw.rbp).parameters["phi"].default == tw.RBP.p == 0.8
    found = tw.rbp("a (b c)", {"a": 1, "b": 0}, phi=0.5)
    assert tw.rbp("a (b c)", {"a": 1, "b": 0}, p=0.5) == found
    assert tw.rbp("a b", {"a": 1}) == tw.rbp("a b", {"a": 1}, phi=0.8) == tw.rbp("a b", {"a": 1}, p=0.8)
    with pytest.raises(InputError, match=r"phi=0\.5 and p=0.5 are two names of one parameter"):
        tw.rbp("a", {"a": 1}, phi=0.5, p=0.5)
    assert tw.RBP(phi=0.9) == tw.RBP(p=0.9) == tw.parse("RBP(phi=0.9)") == tw.parse("rbp.phi=0.9")
    assert str(tw.RBP(phi=0.9) @ 10) == "RBP(p=0.9)@10"
    assert tw.RBP(p=0.9)(phi=0.5) == tw.RBP(p=0.5)
    with pytest.raises(tw.MeasureError, match="p and phi are two names of one parameter"):
        tw.RBP(p=0.9, phi=0.9)


@pytest.mark.parametrize("name", ["RBO", "RBA", "RBR", "MED_RBP"])
def test_measures_of_two_rankings_take_phi_under_both_names(name):
    measure, function = getattr(tw, name), getattr(rankings_folder, name.lower())
    assert (
        measure(p=0.7) == measure(phi=0.7) == tw.parse(f"{name}(p=0.7)") and str(measure(p=0.7)) == f"{name}(phi=0.7)"
    )
    with pytest.raises(tw.MeasureError, match=f"{name}: p and phi are two names of one parameter"):
        measure(p=0.7, phi=0.7)
    assert function("a (b c)", "b a d", p=0.7) == function("a (b c)", "b a d", phi=0.7)
    with pytest.raises(InputError, match=r"phi=0\.7 and p=0\.8 are two names of one parameter"):
        function("a", "a", phi=0.7, p=0.8)


def test_the_folder_exports_its_functions_and_results():
    for name in rankings_folder.__all__:
        value = getattr(rankings_folder, name)
        assert getattr(tw, name, value) is value
        assert inspect.getdoc(value if inspect.isfunction(value) or inspect.isclass(value) else type(value))
    assert isinstance(tw.tau("a b", "b a"), rankings_folder.Tau)
    contract = {"rbp", "rbr", "rbo", "rba", "tau", "tau_ap", "phi_for_discount", "phi_for_reverse_rba"}
    assert set(rankings_folder.__all__) & set(tw.__all__) == {*contract, "Ranking"}
    assert {"judged_scores", "notation"} <= set(ties_folder.__all__) & set(tw.__all__)
    assert set(dir(rankings_folder)) == set(rankings_folder.__all__)
    with pytest.raises(AttributeError, match="no attribute 'rbx'"):
        rankings_folder.rbx  # noqa: B018


def test_bad_arguments():
    for phi in (0, 1, -0.1, 1.5, float("nan")):
        with pytest.raises(InputError, match="above 0 and below 1"):
            tw.rbo("a", "a", phi=phi)
    with pytest.raises(InputError, match="numbers from 0 to gmax=1"):
        tw.rbp("a", {"a": 2.0}, phi=0.5)
    with pytest.raises(InputError, match="gmax"):
        tw.rbp("a", {"a": 0.0}, phi=0.5, gmax=0)
    with pytest.raises(InputError, match=r"different items.*'c'.*complete='union'"):
        tw.tau("a b", "a c")
    with pytest.raises(InputError, match="not possible"):
        tw.tau("a b", "a b", complete="both")
    for call in (lambda: tw.rbo("a", "a", ties="c"), lambda: tw.rba("a", "a", phi=0.5, ties="w")):
        with pytest.raises(InputError, match="ties="):
            call()


def test_empty_sets_and_rankings_are_defined():
    assert tw.rbr([], "a b", phi=0.9).upper.expected == 0
    assert tw.rbo("", "", phi=0.9).upper.expected == pytest.approx(1)
    assert tw.rba("", "a", phi=0.9).lower.expected == 0
    assert tw.rbp("", {}, phi=0.9).upper.expected == 1
    assert tw.tau("", "").expected is None


# -- the standard deviation over the tie orders ---------------------------------------------------------------------


def spreads(measure, x, y) -> list[float]:
    """The standard deviation of each part of a measure of untied rankings, over all tie orders."""
    values = [measure(a, b) for a in oracle.orders(x) for b in oracle.orders(y)]
    return [statistics.pstdev(part) if None not in part else None for part in zip(*values, strict=True)]


@settings(max_examples=120, deadline=None)
@given(x=rankings(), y=rankings(), phi=PHI, depth=st.one_of(st.none(), st.integers(1, 6)))
def test_std_over_all_orders(x, y, phi, depth):
    assume(oracle.number_of_orders(x, y) <= 1500)
    found = tw.rbo(x, y, phi=phi), tw.rba(x, y, phi=phi), tw.rbr(tw.Ranking(x), y, phi=phi, depth=depth)
    truths = (
        spreads(lambda a, b: oracle.rbo(a, b, phi), x, y),
        spreads(lambda a, b: oracle.rba(a, b, phi), x, y),
        spreads(lambda a, b: oracle.rbr(set(a[:depth]), b, phi), x, y),
    )
    for bounds, truth in zip(found, truths, strict=True):
        for part, std in zip((bounds.lower, bounds.upper, bounds.extrapolated), truth, strict=False):
            if part is not None and part.std is not None:
                assert part.std == pytest.approx(std, abs=1e-8)  # the root of a rounding error
                assert part.method["std"] == "exact"
        assert bounds.lower.std is not None
    assert found[0].upper.std is not None  # of RBA and RBR, unmatched items may change the upper bound
    assert depth is not None or found[2].upper.std is not None
