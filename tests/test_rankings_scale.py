"""Rank-biased measures and τ_AP of long rankings and for φ close to 0 or 1: no lost digits, no crossed bounds."""

from __future__ import annotations

import math
import random
from decimal import Decimal, localcontext

import numpy as np
import pytest

import oracle_rankings as oracle
import tiewise as tw
from tiewise.errors import InputError
from tiewise.rankings.correlation import count_pairs, count_smaller_before
from tiewise.rankings.overlap import compute_rba, compute_rbo, expected_power_sum
from tiewise.rankings.ranking import pair_rankings
from tiewise.rankings.weights import Weights, reversed_rba, tail_weight, weight_table

PHIS = [0.1, 0.5, 0.9, 0.99, 0.999, 0.999999]


def tied(rng: random.Random, items: int, most: int, groups: float = 0.4) -> list[list[int]]:
    """A ranking of up to `most` of some items, of which a share begin a group."""
    ranked: list[list[int]] = []
    for item in rng.sample(range(items), rng.randint(0, most)):
        if ranked and rng.random() > groups:
            ranked[-1].append(item)
        else:
            ranked.append([item])
    return ranked


def exact_tails(phi: float, depth: int) -> list[Decimal]:
    """(1−φ)·Σ_{d > k} φ^(d−1)/d for k = 0 … depth, from the whole sum less its head, with digits to spare."""
    with localcontext() as context:
        context.prec = 60 + int(-depth * math.log10(phi))
        p = Decimal(phi)
        left, power = -(1 - p).ln() / p, Decimal(1)
        sums = [left]
        for d in range(1, depth + 1):
            left -= power / d
            power *= p
            sums.append(left)
        return [(1 - p) * value for value in sums]


# -- weights --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("phi", PHIS)
def test_tail_weights_keep_all_digits(phi):
    truth = [float(value) for value in exact_tails(phi, 300)]
    table = weight_table(phi, 300)
    assert table.tail[:301] == pytest.approx(truth, rel=1e-13, abs=0)
    for depth in (0, 1, 2, 7, 100, 300):
        assert tail_weight(phi, depth) == pytest.approx(truth[depth], rel=4e-15, abs=0)
    assert tw.rankings.top_weight(phi, 200) == pytest.approx(1 - phi**199 + 200 * truth[199], rel=1e-13)


def test_weight_tables_are_shared_up_to_the_next_power_of_two():
    assert weight_table(0.9, 513) is weight_table(0.9, 1024)
    assert len(weight_table(0.9, 1025).rest) == 2049
    assert len(weight_table(0.9, 0).rest) == len(weight_table(0.9, 1).rest) == 2


@pytest.mark.parametrize("phi", PHIS)
def test_mean_weight_of_tied_ranks(phi):
    ranks = range(8, 20)  # twelve items after seven
    for power in (0.5, 1.0):
        truth = math.fsum(((1 - phi) * phi ** (r - 1)) ** power for r in ranks) / 12
        assert Weights.geometric(phi).mean(7, 12, power) == pytest.approx(truth, rel=1e-13)


# -- RBO ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("phi", PHIS)
def test_rbo_of_untied_lists_is_the_sum_of_tails(phi):
    rng = random.Random(0)
    x, y = rng.sample(range(1500), 1000), rng.sample(range(1500), 1200)
    place = {item: rank for rank, item in enumerate(y, start=1)}
    after = exact_tails(phi, 1200)
    truth = float(sum(after[max(rank, place[item]) - 1] for rank, item in enumerate(x, start=1) if item in place))
    found = tw.rbo(x, y, phi=phi)
    assert found.lower.expected == found.lower.minimum == found.lower.maximum == pytest.approx(truth, rel=1e-13)
    assert found.extrapolated.minimum == found.extrapolated.expected == found.extrapolated.maximum
    most = oracle_most(x, y, phi)
    assert found.upper.expected == pytest.approx(most, rel=1e-13)


def oracle_most(x: list[int], y: list[int], phi: float) -> float:
    """RBO_MAX depth by depth: unseen items of the shorter list match, then two a depth, until all do."""
    s, n = sorted((len(x), len(y)))
    seen_x, seen_y, overlap, terms = set(), set(), 0, []
    union = len(set(x) | set(y))
    for d in range(1, union + 1):
        if d <= n:
            seen_x |= set(x[d - 1 : d])
            seen_y |= set(y[d - 1 : d])
            overlap = len(seen_x & seen_y)
        most = overlap + max(d - s, 0) + max(d - n, 0)
        terms.append((1 - phi) * phi ** (d - 1) * most / d)
    return math.fsum([*terms, phi**union])


@pytest.mark.parametrize(("n", "phi"), [(200, 0.5), (2000, 0.99), (100_000, 0.999), (100_000, 0.99999)])
def test_identical_lists(n, phi):
    after = float(exact_tails(phi, n)[n]) if n < 3000 else tail_weight(phi, n)
    found = tw.rbo(range(n), range(n), phi=phi)
    assert found.lower.expected == found.lower.minimum == found.lower.maximum
    assert found.lower.expected == pytest.approx(-math.expm1(n * math.log(phi)) + n * after, rel=1e-13)
    assert found.upper.expected == pytest.approx(1, abs=1e-13)
    assert found.extrapolated.expected == pytest.approx(1, abs=1e-13)
    assert 0 <= found.residual <= 1 - found.lower.expected
    aligned = tw.rba(range(n), range(n), phi=phi)
    assert aligned.lower.expected == aligned.lower.maximum == pytest.approx(1 - phi**n, rel=1e-13)
    assert aligned.upper.expected == pytest.approx(1, abs=1e-13)


@pytest.mark.parametrize(("n", "phi"), [(1000, 0.99), (100_000, 0.999), (100_000, 0.99999)])
def test_lists_of_one_tie_group(n, phi):
    """All items tied on both sides: the expected overlap at d is d²/n."""
    group = [list(range(n))]
    found = tw.rbo(group, group, phi=phi)
    head = (1 - phi**n * (1 + n * (1 - phi))) / (1 - phi) / n
    assert found.lower.expected == pytest.approx(
        head + n * tail_weight(phi, n), rel=1e-12
    )  # of which the formula loses some
    assert found.lower.maximum == tw.rbo(range(n), range(n), phi=phi).lower.expected
    assert found.lower.minimum == tw.rbo(range(n), range(n)[::-1], phi=phi).lower.expected
    half = (1 - phi ** (n / 2)) * (1 + math.sqrt(phi)) / (1 - phi)
    assert tw.rba(group, group, phi=phi).lower.expected == pytest.approx((1 - phi) * half**2 / n, rel=1e-12)


def test_expected_overlap_is_the_sum_of_products_of_probabilities():
    """Against the chances of all items at all depths, (n_depths, n_items)."""
    rng = random.Random(1)
    for _ in range(200):
        x, y = (tied(rng, 40, 30) for _ in range(2))
        phi = rng.choice(PHIS)
        s, n = sorted(sum(map(len, groups)) for groups in (x, y))
        overlaps = []
        for depth in range(1, n + 1):
            p, q = (oracle.inclusion(groups, depth, "a") for groups in (x, y))
            overlaps.append(math.fsum(p[item] * q[item] for item in p if item in q))
        common = len({item for g in x for item in g} & {item for g in y for item in g})
        after = common * float(exact_tails(phi, n)[n])
        found = tw.rbo(x, y, phi=phi)
        truth = math.fsum([*((1 - phi) * phi**d * overlap / (d + 1) for d, overlap in enumerate(overlaps)), after])
        assert found.lower.expected == pytest.approx(truth, rel=1e-13)
        if s:
            rate = overlaps[s - 1] / s
            shares = [(overlap + max(d + 1 - s, 0) * rate) / (d + 1) for d, overlap in enumerate(overlaps)]
            truth = math.fsum([*((1 - phi) * phi**d * share for d, share in enumerate(shares)), phi**n * shares[-1]])
            assert found.extrapolated.expected == pytest.approx(truth, rel=1e-13)
        else:
            assert found.extrapolated is None


def test_variants_against_all_contributions_at_all_depths():
    rng = random.Random(2)
    for _ in range(200):
        x, y = (tied(rng, 30, rng.choice((5, 25)), rng.choice((0.2, 0.6))) for _ in range(2))
        phi = rng.choice(PHIS[:4])
        for ties in "wab":
            found = tw.rbo(x, y, phi=phi, ties=ties)
            lower, upper, extrapolated = oracle.rbo_variant(x, y, phi, ties)
            assert found.lower.expected == pytest.approx(lower, abs=1e-13)
            assert found.upper.expected == pytest.approx(upper, abs=1e-13)
            assert (found.extrapolated is None) == (extrapolated is None)
            if extrapolated is not None:
                assert found.extrapolated.expected == pytest.approx(extrapolated, abs=1e-13)


def test_bounds_and_extremes_of_long_tied_lists_are_ordered():
    """Extremes, expectation and bounds stand in order, exactly, and the variants are those of untied lists."""
    rng = random.Random(3)
    for n, phi in ((3000, 0.5), (3000, 0.99), (20_000, 0.9999)):
        x, y = tied(rng, 2 * n, n), tied(rng, 2 * n, n)
        for found in (tw.rbo(x, y, phi=phi), tw.rba(x, y, phi=phi)):
            for part in filter(None, (found.lower, found.upper, found.extrapolated)):
                assert 0 <= part.minimum <= part.expected <= part.maximum <= 1
            for name in ("minimum", "expected", "maximum"):
                assert getattr(found.lower, name) <= getattr(found.upper, name)
        expected = tw.rbo(x, y, phi=phi)
        assert tw.rbo(x, y, phi=phi, ties="a").lower.expected == pytest.approx(expected.lower.expected, rel=1e-13)
        plain = [[item for group in ranking for item in group] for ranking in (x, y)]
        for ties in "wab":
            variant, untied = tw.rbo(*plain, phi=phi, ties=ties), tw.rbo(*plain, phi=phi)
            assert variant.upper.expected == pytest.approx(untied.upper.expected, rel=1e-13)
            assert variant.extrapolated.expected == pytest.approx(untied.extrapolated.expected, rel=1e-13)


# -- RBA ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("x", [0.05, 0.3, 0.9, 0.9999, 1 - 1e-12])
def test_expected_power_sum(x):
    for size, marked in [(m, u) for m in range(2, 9) for u in range(1, m)] + [(300, 1), (300, 120), (300, 299)]:
        ways = math.comb(size, marked)
        with localcontext() as context:
            context.prec = 40
            truth = sum(
                Decimal(math.comb(p, i) * math.comb(size - 1 - p, marked - 1 - i)) / ways * Decimal(x) ** (p + i)
                for p in range(size)
                for i in range(min(marked, p + 1))
            )
        assert expected_power_sum(x, size, marked) == pytest.approx(float(truth), rel=1e-13)


def test_expected_alignment_of_long_tied_lists():
    """The upper bound with one large group that the other ranking holds in part, against a mean over drawn orders."""
    rng = random.Random(4)
    x, y = [[0, 1], list(range(2, 60)), [60]], [[item] for item in range(0, 80, 2)]
    found, draws = tw.rba(x, y, phi=0.95), []
    for _ in range(400):
        order = [item for group in x for item in rng.sample(group, len(group))]
        draws.append(oracle.rba(order, [item for group in y for item in group], 0.95)[1])
    error = np.std(draws) / math.sqrt(len(draws))
    assert abs(np.mean(draws) - found.upper.expected) < 5 * error
    assert found.upper.minimum <= min(draws) <= max(draws) <= found.upper.maximum


@pytest.mark.parametrize(("k", "phi"), [(2, 0.3), (1000, 0.99), (20_000, 0.9999)])
def test_alignment_with_the_reverse(k, phi):
    assert tw.rba(range(k), range(k)[::-1], phi=phi).lower.expected == pytest.approx(reversed_rba(phi, k), rel=1e-13)


# -- without extremes -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("of", "ties"), [(compute_rbo, t) for t in ("average", "w", "b")] + [(compute_rba, "average")])
def test_expectations_without_extremes(of, ties):
    rng = random.Random(5)
    for groups in (0.4, 1.0):  # tied and untied
        pair = pair_rankings(*(tw.Ranking(tied(rng, 30, 25, groups)) for _ in range(2)))
        phi = 0.9 if of is compute_rbo else Weights.geometric(0.9)
        whole, alone = of(pair, phi, ties), of(pair, phi, ties, extremes=False)
        for part, values in alone.items():
            assert values.shape == (1, 1) and whole[part].shape == (3, 1)
            assert values[0] == whole[part][0]


# -- τ_AP -----------------------------------------------------------------------------------------------------------


def test_count_smaller_before():
    rng = np.random.default_rng(6)
    for n in (0, 1, 2, 50, 300):
        values = rng.integers(0, max(n // 2, 1), n)
        truth = [int((values[:i] < values[i]).sum()) for i in range(n)]
        assert count_smaller_before(values, np.zeros(n, dtype=np.int64)).tolist() == truth
        inverted = sum(int((values[:i] > values[i]).sum()) for i in range(n))
        ranking = tw.Ranking.from_scores(dict(enumerate(-values.astype(float))))
        assert count_pairs(pair_rankings(range(n), ranking)).discordant.tolist() == [inverted]


def test_expected_tau_ap_equals_the_sum_over_all_pairs():
    """Item i in slot p of its group: those above its group that belong there, and half of those tied with it."""
    rng = random.Random(7)
    for _ in range(60):
        n = rng.randint(2, 60)
        scores = [[rng.randrange(1 + n // 2) for _ in range(n)] for _ in range(2)]
        found = tw.tau_ap(*(tw.Ranking.from_scores(dict(enumerate(map(float, s)))) for s in scores))
        a, b = scores
        terms = []
        for i in range(n):
            above = [j for j in range(n) if a[j] > a[i]]
            size = a.count(a[i])
            right = sum((b[j] > b[i]) + (b[j] == b[i]) / 2 for j in above)
            terms += [(right + p / 2) / (len(above) + p) / size for p in range(size) if len(above) + p]
        assert found.expected == pytest.approx(2 * math.fsum(terms) / (n - 1) - 1, abs=1e-13)
        assert found.minimum <= found.expected <= found.maximum
        groups = [oracle_groups(s) for s in scores]
        truth = oracle.tau_ap_b(*groups)
        assert found.tau_ap_b == (None if truth is None else pytest.approx(truth, abs=1e-13))


def oracle_groups(scores: list[int]) -> list[list[int]]:
    return [[i for i, score in enumerate(scores) if score == level] for level in sorted(set(scores), reverse=True)]


def test_tau_ap_of_long_lists():
    n = 30_000
    assert tw.tau_ap(range(n), range(n)).expected == pytest.approx(1, abs=1e-13)
    assert tw.tau_ap(range(n), range(n)[::-1]).expected == pytest.approx(-1, abs=1e-13)
    pairs = [[i, i + 1] for i in range(0, n, 2)]
    found = tw.tau_ap(pairs, range(n))
    assert found.maximum == pytest.approx(1, abs=1e-13)
    half = math.fsum(1 / i for i in range(1, n, 2)) / (n - 1)  # of two tied items the lower one is wrong, or not
    assert found.expected == pytest.approx(1 - half, abs=1e-13)
    assert found.minimum == pytest.approx(1 - 2 * half, abs=1e-13)


# -- φ near 0 and 1, and invalid arguments ---------------------------------------------------------------------------


@pytest.mark.parametrize("phi", [5e-324, 1e-320, 1e-300, 1e-9, 1 - 1e-9, 1 - 2**-53])
def test_phi_very_close_to_zero_or_one(phi):
    x, y = "a (b c) d (e f g)", "(b a) c (g x e)"
    calls = [tw.rbo(x, y, phi=phi, ties=ties) for ties in ("average", "w", "a", "b")]
    calls += [tw.rba(x, y, phi=phi), tw.rba(x, y, phi=phi, ties="share"), tw.rbr("ab", y, phi=phi)]
    for found in [*calls, tw.rbp(x, {"a": 1, "c": 0}, phi=phi)]:
        for part in filter(None, (found.lower, found.upper, found.extrapolated)):
            assert 0 <= part.minimum <= part.expected <= part.maximum <= 1 + 1e-12
        assert found.upper is None or found.lower.expected <= found.upper.expected
    if phi < 0.1:  # the first rank is all there is: in y it goes to a or to b
        assert calls[0].lower.expected == pytest.approx(0.5)
        assert calls[4].lower.expected == pytest.approx(0.5, abs=1e-4)


@pytest.mark.parametrize("phi", ["0.9", [0.9], 0.9j, np.array([0.5, 0.6]), None])
def test_invalid_phi(phi):
    calls = [
        lambda: tw.rbo("a", "a", phi=phi),
        lambda: tw.rba("a", "a", phi=phi),
        lambda: tw.rbr("a", "a", phi=phi),
        lambda: tw.rankings.top_weight(phi, 3),
    ]
    if phi is not None:  # which is the default of rbp
        calls += [lambda: tw.rbp("a", {"a": 1}, phi=phi), lambda: tw.rbp("a", {"a": 1}, p=phi)]
    for call in calls:
        with pytest.raises(InputError, match=r"phi=.* is not possible.*above 0 and below 1"):
            call()


@pytest.mark.parametrize("depth", ["3", 0, -1, 2.5, True])
def test_invalid_depth(depth):
    for call in (lambda: tw.rbp("a b", {"a": 1}, depth=depth), lambda: tw.rbr("a b", "a b", phi=0.5, depth=depth)):
        with pytest.raises(InputError, match=r"depth=.* is not possible.*whole number"):
            call()


def test_other_invalid_arguments():
    for call in (
        lambda: tw.rbp("a", {"a": 1}, gmax="2"),
        lambda: tw.rbp("a", {"a": 1}, gmax=math.inf),
        lambda: tw.phi_for_discount("0.1", 10),
        lambda: tw.phi_for_discount(0.1, "10"),
        lambda: tw.phi_for_reverse_rba("0.2", 50),
        lambda: tw.phi_for_reverse_rba(0.2, "50"),
        lambda: tw.rankings.top_weight(0.9, "10"),
        lambda: tw.rankings.top_weight(0.9, 1.5),
    ):
        with pytest.raises(InputError):
            call()


def test_both_bounds_of_rbp_have_a_std():
    found = tw.rbp("(a b) c", {"a": 1, "b": 0}, phi=0.5)
    assert found.lower.std == found.upper.std == pytest.approx(0.125)
