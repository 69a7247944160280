"""Weights of ranks, MED-RBP, and the choice of φ, against enumeration of tie orders, judgments and completions."""

from __future__ import annotations

import inspect
import itertools
import math
import random
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import oracle_rankings as oracle
import tiewise as tw
from test_rankings import PHI, close, rankings
from tiewise.errors import InputError
from tiewise.rankings import MED, Weights, med_rbp, phi_for_weight, tie_orders, top_weight

MANY = 3000  # ranks, for sums over all of them


@st.composite
def weightings(draw: st.DrawFn) -> tuple[list[float], float]:
    """Weights of the first ranks that do not rise, and the weight of all later ranks."""
    values = sorted(draw(st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.0, 7.5]), min_size=1, max_size=7)), reverse=True)
    tail = draw(st.sampled_from([0.0, 0.3, 4.0])) if values[-1] else 0.0
    assume(sum(values) > 0)
    return values, tail


def weight_function(values: list[float], tail: float) -> Callable[[int], float]:
    """The weight of a rank, by the definition: after the values it falls by one factor, to the sum of the tail."""
    total = sum(values) + tail
    factor = tail / (values[-1] + tail) if tail else 0.0

    def weight_of(rank: int) -> float:
        return (values[rank - 1] if rank <= len(values) else values[-1] * factor ** (rank - len(values))) / total

    return weight_of


def geometric(phi: float) -> Callable[[int], float]:
    return lambda rank: (1 - phi) * phi ** (rank - 1)


def flat(groups: list[list[str]]) -> list[str]:
    return [item for group in groups for item in group]


# -- weights ----------------------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(given_weights=weightings())
def test_sums_of_weights(given_weights):
    weights, weight_of = Weights(given_weights[0], given_weights[1]), weight_function(*given_weights)
    assert math.fsum(map(weight_of, range(1, MANY))) == pytest.approx(1, abs=1e-12)
    ranks = np.arange(1, 15)
    for power in (1.0, 0.5):
        truth = [weight_of(int(rank)) ** power for rank in ranks]
        assert weights.at(ranks, power) == pytest.approx(truth, abs=1e-15)
        for start, size in itertools.product(range(10), range(4)):
            assert weights.sum(start, size, power) == pytest.approx(math.fsum(truth[start : start + size]), abs=1e-14)
    for n in range(12):
        assert weights.after(n) == pytest.approx(math.fsum(map(weight_of, range(n + 1, MANY))), abs=1e-13)


def test_named_weights():
    assert Weights.dcg(3).values == pytest.approx([w / 2.1309297535714578 for w in (1, 0.6309297535714575, 0.5)])
    assert Weights.zipf(4, 0).values == (0.25,) * 4
    assert Weights.zipf(2, 2).values == (0.8, 0.2)
    assert Weights([2, 1], tail=1) == Weights(np.array([4.0, 2.0]), tail=2.0)
    assert hash(Weights([1])) == hash(Weights((5,)))
    assert repr(Weights.dcg(8)).endswith("…])") and "tail" not in repr(Weights.dcg(8))


@pytest.mark.parametrize(
    ("values", "tail", "message"),
    [
        ([1, 2], 0, r"must not rise: rank 2 has 2, and the rank before it 1"),
        ([1, math.nan], 0, "weight nan of rank 2 is not possible"),
        ([math.inf], 0, "weight inf of rank 1 is not possible"),
        ([1, -0.5], 0, r"weight -0.5 of rank 2 is not possible"),
        ([True], 0, "weight True of rank 1"),
        (["1"], 0, "weight '1' of rank 1"),
        ([], 0, "sum of the weights must be above 0 and finite"),
        ([0, 0], 0, "sum of the weights must be above 0 and finite"),
        ([1e308, 1e308], 0, "sum of the weights must be above 0 and finite"),
        ([], 1, "later ranks fall from the last value"),
        ([1, 0], 0.5, r"tail=0.5 is not possible: later ranks fall from the last value, which must be above 0"),
        ([1], -1, "tail=-1 is not possible"),
        ([1], math.inf, "tail=inf is not possible"),
        ([1], math.nan, "tail=nan is not possible"),
        ("321", 0, r"weights='321' is not possible.*\[3, 2, 1\].*Weights.geometric"),
        (7, 0, "weights=7 is not possible"),
        ({3: 1}, 0, "is not possible"),
        (np.ones((2, 2)), 0, "is not possible"),
    ],
)
def test_impossible_weights(values, tail, message):
    with pytest.raises(InputError, match=message):
        Weights(values, tail)


@pytest.mark.parametrize("call", [tw.rbr, tw.rba, med_rbp])
def test_phi_or_weights(call):
    assert call("a (b c)", "c b", phi=0.7) == call("a (b c)", "c b", weights=Weights.geometric(0.7))
    assert call("a (b c)", "c b", weights=[2, 1]) == call("a (b c)", "c b", weights=Weights([4, 2]))
    with pytest.raises(InputError, match=r"phi=0.7 and weights= were given"):
        call("a", "b", phi=0.7, weights=[1])
    with pytest.raises(InputError, match="must not rise"):
        call("a", "b", weights=[1, 2])
    if call is not med_rbp:
        with pytest.raises(InputError, match="Give phi, above 0 and below 1, or weights="):
            call("a", "b")


def test_named_constructors_check_their_arguments():
    for make in (Weights.dcg, Weights.zipf):
        with pytest.raises(InputError, match="k=0 is not possible"):
            make(0)
    for exponent in (-1, math.nan, math.inf, "1"):
        with pytest.raises(InputError, match="exponent="):
            Weights.zipf(3, exponent)
    with pytest.raises(InputError, match=r"phi=1\.5 is not possible"):
        Weights.geometric(1.5)


# -- RBR and RBA with weights ------------------------------------------------------------------------------------------


@settings(max_examples=80, deadline=None)
@given(x=rankings(5), given_weights=weightings(), observed=st.sets(st.sampled_from("abcdefxyz")))
def test_rbr_with_weights_over_all_orders(x, given_weights, observed):
    assume(oracle.number_of_orders(x) <= 800)
    weight_of = weight_function(*given_weights)
    found = tw.rbr(observed, x, weights=Weights(*given_weights))
    lower, upper = oracle.over_orders(lambda a: oracle.rbr_of_weights(observed, a, weight_of), x)
    close(found.lower, lower)
    close(found.upper, upper)


@settings(max_examples=80, deadline=None)
@given(x=rankings(5, "abcdef"), y=rankings(4, "abcdef"), given_weights=weightings(), depth=st.integers(1, 5))
def test_rbr_with_weights_of_the_head_of_a_ranking(x, y, given_weights, depth):
    assume(oracle.number_of_orders(x, y) <= 800)
    weight_of = weight_function(*given_weights)
    found = tw.rbr(tw.Ranking(x), y, weights=Weights(*given_weights), depth=depth)
    lower, upper = oracle.over_orders(lambda a, b: oracle.rbr_of_weights(a[:depth], b, weight_of), x, y)
    close(found.lower, lower)
    close(found.upper, upper)


@settings(max_examples=100, deadline=None)
@given(x=rankings(6), y=rankings(6), given_weights=weightings())
def test_rba_with_weights_over_all_orders(x, y, given_weights):
    assume(oracle.number_of_orders(x, y) <= 1500)
    weight_of = weight_function(*given_weights)

    def bounds(a: list[str], b: list[str]) -> tuple[float, float]:
        whole_a, whole_b = ([*one, *(item for item in other if item not in one)] for one, other in ((a, b), (b, a)))
        rest = math.fsum(map(weight_of, range(len(whole_a) + 1, 400)))
        return oracle.rba_of_weights(a, b, weight_of), oracle.rba_of_weights(whole_a, whole_b, weight_of) + rest

    found = tw.rba(x, y, weights=Weights(*given_weights))
    lower, upper = oracle.over_orders(bounds, x, y, alike=oracle.interchangeable(x, y))
    close(found.lower, lower)
    close(found.upper, upper)


@pytest.mark.parametrize("values", [[4, 2, 1, 0.5], [1, 1, 1, 1], [5, 5, 1, 0], [1, 0, 0, 0]])
@pytest.mark.parametrize(("x", "y"), [("a", "a"), ("a b", "c"), ("a b", "b a"), ("", "a b"), ("a b c", "b"), ("", "")])
def test_bounds_equal_the_extremes_over_all_completions(values, x, y):
    """Only four ranks have a weight, so the rankings are completed to four items, in every way."""
    a, b, weight_of, weights = x.split(), y.split(), weight_function(values, 0), Weights(values)
    whole = list(oracle.completions(a, b, 4))
    for call, measure in ((tw.rba, oracle.rba_of_weights), (med_rbp, oracle.med)):
        found, truth = call(a, b, weights=weights), [measure(*pair, weight_of) for pair in whole]
        assert (found.lower.expected, found.upper.expected) == pytest.approx((min(truth), max(truth)), abs=1e-12)
    found = tw.rbr(a, b, weights=weights)
    truth = [oracle.rbr_of_weights(a, ranked, weight_of)[0] for ranked in oracle.extensions(b, a, 4, "fresh")]
    assert (found.lower.expected, found.upper.expected) == pytest.approx((min(truth), max(truth)), abs=1e-12)


def test_long_lists_of_weights_equal_the_closed_forms_of_geometric_weights():
    """Many values that happen to be geometric take other paths than φ; the numbers are the same."""
    rng = random.Random(0)
    phi = 0.97
    values = [(1 - phi) * phi**rank for rank in range(300)]
    weights = Weights(values, phi**300)
    for _ in range(20):
        x, y = ([rng.sample(range(j, 400, 7), 40) for j in rng.sample(range(7), 4)] for _ in range(2))
        for call in (tw.rba, tw.rbr, med_rbp):
            mine, truth = call(tw.Ranking(x), y, weights=weights), call(tw.Ranking(x), y, phi=phi)
            close(mine.lower, truth.lower)
            close(mine.upper, truth.upper)


# -- MED-RBP ----------------------------------------------------------------------------------------------------------


@settings(max_examples=120, deadline=None)
@given(x=rankings(5, "abcdef"), y=rankings(5, "abcdef"), phi=PHI)
def test_med_rbp_over_all_orders_and_judgments(x, y, phi):
    assume(oracle.number_of_orders(x, y) <= 300)
    found = med_rbp(x, y, phi=phi)
    values = [oracle.med_by_judgments(a, b, geometric(phi)) for a in oracle.orders(x) for b in oracle.orders(y)]
    truth = oracle.statistics(values)
    close(found, truth)
    variance = math.fsum((value - truth.expected) ** 2 for value in values) / len(values)
    assert found.std == pytest.approx(math.sqrt(variance), abs=1e-12)
    assert found.lower.minimum <= found.minimum and found.maximum <= found.upper.maximum
    assert 0 <= found.lower.expected <= found.expected <= found.upper.expected <= 1 + 1e-15


@settings(max_examples=100, deadline=None)
@given(x=rankings(7), y=rankings(7), given_weights=weightings())
def test_med_with_weights_over_all_orders(x, y, given_weights):
    assume(oracle.number_of_orders(x, y) <= 1000)
    weight_of = weight_function(*given_weights)
    found = med_rbp(x, y, weights=Weights(*given_weights))
    values = [oracle.med(a, b, weight_of) for a in oracle.orders(x) for b in oracle.orders(y)]
    close(found, oracle.statistics(values))
    assert found.std == pytest.approx(float(np.std(values)), abs=1e-12)
    assert found.lower.std == found.upper.std == found.std


@pytest.mark.parametrize("x", ["", "a", "a b", "a b c"])
@pytest.mark.parametrize("y", ["", "a", "b a", "c d", "d e f"])
@pytest.mark.parametrize("phi", [0.1, 0.5])
def test_bounds_of_med_rbp_hold_for_all_completions(x, y, phi):
    a, b, n = x.split(), y.split(), 4
    found = med_rbp(a, b, phi=phi)
    values = [oracle.med(*pair, geometric(phi)) for pair in oracle.completions(a, b, n)]
    assert min(values) - phi**n - 1e-12 <= found.lower.expected <= min(values) + phi**n + 1e-12
    assert max(values) - 1e-12 <= found.upper.expected <= max(values) + phi**n + 1e-12


@settings(max_examples=60, deadline=None)
@given(x=rankings(8), y=rankings(8), z=rankings(8), phi=PHI)
def test_laws_of_med_rbp(x, y, z, phi):
    here, there = med_rbp(x, y, phi=phi), med_rbp(y, x, phi=phi)
    for name in ("expected", "minimum", "maximum", "std"):
        assert getattr(here, name) == pytest.approx(getattr(there, name), abs=1e-12)
    assert here.minimum <= here.expected <= here.maximum
    a, b, c = map(flat, (x, y, z))
    same = med_rbp(a, a, phi=phi)
    assert same.expected == same.minimum == same.maximum == same.std == same.lower.expected == 0
    distances = [med_rbp(*pair, phi=phi).upper.expected for pair in ((a, b), (b, c), (a, c))]  # if all goes on
    assert distances[2] <= distances[0] + distances[1] + 1e-12
    gains = {item: 1.0 for item in {*a, *b} if item in a and (item not in b or a.index(item) < b.index(item))}
    difference = tw.rbp(a, gains, phi=phi).lower.expected - tw.rbp(b, gains, phi=phi).lower.expected
    assert difference <= med_rbp(a, b, phi=phi).expected + 1e-12


def test_med_rbp_of_simple_rankings():
    assert med_rbp("a b c", "d e", phi=0.5).expected == pytest.approx(1 - 0.5**3)  # disjoint: the longer list
    assert med_rbp("", "", phi=0.5).expected == 0
    assert med_rbp("", "a b", phi=0.5) == med_rbp("a b", "", phi=0.5)
    assert med_rbp("", "a b", phi=0.5).expected == pytest.approx(0.75)
    assert (med_rbp("", "").lower.expected, med_rbp("", "").upper.expected) == (0, 1)
    assert med_rbp("a b", "b a", weights=Weights.dcg(2)).expected == pytest.approx(
        (1 - 1 / math.log2(3)) / (1 + 1 / math.log2(3))
    )
    assert isinstance(med_rbp("a", "b"), MED) and med_rbp("a", "b").measure == "MED-RBP"


def test_med_rbp_takes_phi_under_both_names():
    assert med_rbp("a b", "b a") == med_rbp("a b", "b a", phi=tw.RBP.p) == med_rbp("a b", "b a", p=0.8)
    with pytest.raises(InputError, match=r"phi=0.5 and p=0.5 are two names of one parameter"):
        med_rbp("a", "a", phi=0.5, p=0.5)
    for arguments in ({"phi": 1}, {"p": 0}, {"phi": "0.5"}):
        with pytest.raises(InputError, match="above 0 and below 1"):
            med_rbp("a", "a", **arguments)


@pytest.mark.parametrize("phi", [5e-324, 1e-9, 1 - 1e-9, 1 - 2**-53])
def test_med_rbp_for_phi_close_to_zero_or_one(phi):
    found = med_rbp("a (b c) d (e f g)", "(b a) c (g x e)", phi=phi)
    for part in (found, found.lower, found.upper):
        assert 0 <= part.minimum <= part.expected <= part.maximum <= 1


def test_med_rbp_of_long_lists():
    rng = np.random.default_rng(1)
    scores = [dict(enumerate(rng.integers(0, 250, 600).astype(float))) for _ in range(2)]
    x, y = map(tw.Ranking.from_scores, scores)
    found = med_rbp(x, y, phi=0.995)
    draws = []
    for _ in range(200):
        orders = [[item for group in ranking for item in rng.permutation(group).tolist()] for ranking in (x, y)]
        draws.append(oracle.med(*orders, geometric(0.995)))
    assert abs(np.mean(draws) - found.expected) < 4 * found.std / math.sqrt(len(draws))
    assert 0.8 < np.std(draws) / found.std < 1.2
    assert found.minimum <= min(draws) <= max(draws) <= found.maximum


def test_std_of_huge_tie_groups_is_left_out(monkeypatch):
    found = med_rbp("(a b c)", "(a b c)", phi=0.5)
    assert found.std > 0  # it is computed when it is looked at
    monkeypatch.setattr(tie_orders, "LARGEST", 8)
    quick = med_rbp("(a b c)", "(a b c)", phi=0.5)
    assert quick.std is None and quick.lower.std is None
    assert (quick.expected, quick.minimum, quick.maximum) == (found.expected, found.minimum, found.maximum)


# -- the choice of φ --------------------------------------------------------------------------------------------------


def test_phi_for_a_share_of_the_weight():
    assert round(phi_for_weight(0.9, 10), 3) == 0.876
    assert round(phi_for_weight(0.9, 10, "RBP"), 3) == 0.794
    for weight, depth in itertools.product((1e-6, 0.1, 0.5, 0.9, 0.999), (1, 2, 10, 100)):
        assert oracle_share(phi_for_weight(weight, depth), depth) == pytest.approx(weight, rel=1e-6)
        for measure in ("RBP", "rbr", tw.RBA, "MED-RBP"):
            phi = phi_for_weight(weight, depth, measure)
            assert 1 - phi**depth == pytest.approx(weight, rel=1e-9)
            assert top_weight(phi, depth, measure) == pytest.approx(weight, rel=1e-9)
    assert inspect.signature(phi_for_weight).parameters["measure"].default == "RBO"


def oracle_share(phi: float, depth: int) -> float:
    return oracle.rbo_top_weight(phi, depth) if phi < 0.999 else top_weight(phi, depth)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 10), "weight=0 is not possible"),
        ((1, 10), "weight=1 is not possible"),
        ((math.nan, 10), "weight=nan"),
        (("0.9", 10), "weight='0.9'"),
        ((0.9, 0), "depth=0 is not possible"),
        ((0.9, 2.5), "depth=2.5 is not possible"),
        ((0.9, 10, "nDCG"), "measure='nDCG' has no weights by φ. Use RBO, RBP, RBR, RBA or MED_RBP"),
    ],
)
def test_impossible_shares_of_the_weight(arguments, message):
    with pytest.raises(InputError, match=message):
        phi_for_weight(*arguments)
