"""Tests of one pair against scipy and enumeration; simultaneous intervals against a naive computation; their level."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tiewise.analysis import significance, simultaneous
from tiewise.analysis.significance import (
    loss_bounds,
    max_t_quantile,
    permutation_test,
    queries_for_loss,
    sum_in_blocks,
    symmetric_root,
    unadjusted_tests,
)
from tiewise.analysis.simultaneous import TESTS, Family
from tiewise.errors import InputError

# -- one pair ---------------------------------------------------------------------------------------------------------


def test_unadjusted_tests_are_those_of_scipy():
    each = np.random.default_rng(7).normal(0.03, 0.1, 40)
    found = unadjusted_tests(each)
    assert found["t"] == pytest.approx(stats.ttest_1samp(each, 0).pvalue)
    assert found["wilcoxon"] == pytest.approx(stats.wilcoxon(each).pvalue)
    theirs = stats.permutation_test(
        (each,), lambda d, axis: np.mean(d, axis=axis), permutation_type="samples", n_resamples=20_000, rng=1
    ).pvalue
    assert found["permutation"] == pytest.approx(theirs, abs=0.02)


def test_wilcoxon_gives_equal_differences_the_same_rank():
    counts = np.array([(3, 2)] * 6 + [(0, 1)] * 3 + [(2, 1)] * 3)
    each = counts[:, 0] / 3 - counts[:, 1] / 3  # thirds that differ in their last bit
    assert unadjusted_tests(each)["wilcoxon"] == pytest.approx(stats.wilcoxon(counts[:, 0] - counts[:, 1]).pvalue)


def test_equal_differences_have_no_t_test():
    assert unadjusted_tests(np.zeros(5)) == {}
    assert unadjusted_tests(np.full(4, 0.3)) == {"permutation": 0.125, "wilcoxon": 0.125}


@pytest.mark.parametrize("n", [1, 2, 5, 9])
def test_permutation_test_of_few_differences_is_exact(n):
    each = np.round(np.random.default_rng(n).normal(0.1, 0.2, n), 2)
    sums = [sum(s * d for s, d in zip(signs, each, strict=True)) for signs in itertools.product((1, -1), repeat=n)]
    wanted = np.mean([abs(total) >= abs(each.sum()) - 1e-9 for total in sums])
    assert permutation_test(each) == pytest.approx(wanted)
    assert permutation_test(np.append(each, np.zeros(50))) == pytest.approx(wanted)  # these change nothing


def test_sampled_flips_approximate_all_flips(monkeypatch):
    each = np.random.default_rng(3).normal(0.05, 0.1, 14)
    exact = permutation_test(each)
    monkeypatch.setattr(significance, "MAX_EXACT", 0)
    assert permutation_test(each) == pytest.approx(exact, abs=0.01)
    assert permutation_test(np.full(200, 0.1)) == 1 / (1 + significance.FLIPS)  # the order that was seen counts as one


def test_very_many_queries_are_summed_in_blocks(monkeypatch):
    each = np.random.default_rng(4).normal(0.001, 0.1, (2000, 3))
    pair, whole = permutation_test(each[:, 0]), {test: family(each, test=test).test(0, 1) for test in TESTS}
    monkeypatch.setattr(significance, "MAX_BLOCKS", 500)
    assert sum_in_blocks(each, 0).shape == (500, 3)
    assert sum_in_blocks(each, 0).mean(axis=0) == pytest.approx(each.mean(axis=0))
    assert permutation_test(each[:, 0]) == pytest.approx(pair, abs=0.03)
    for test in TESTS:
        assert family(each, test=test).test(0, 1).ci == pytest.approx(whole[test].ci, abs=5e-4)


# -- all differences at once ------------------------------------------------------------------------------------------


def family(*values: np.ndarray, **options) -> Family:
    return Family(values, [np.ones(len(values[0]), dtype=bool)] * len(values), **options)


def naive_tukey(values: np.ndarray, draws: int, baseline: int | None = None) -> np.ndarray:
    """The largest difference of means after shuffling each row, sampled without the library."""
    rng, systems = np.random.default_rng(99), values.shape[1]
    pairs = (
        list(itertools.combinations(range(systems), 2)) if baseline is None else [(i, baseline) for i in range(systems)]
    )
    largest = []
    for _ in range(draws):
        means = np.array([rng.permutation(row) for row in values]).mean(axis=0)
        largest.append(max(abs(means[i] - means[j]) for i, j in pairs))
    return np.array(largest)


@pytest.mark.parametrize("baseline", [None, 2])
def test_randomised_tukey_agrees_with_a_naive_computation(baseline):
    rng = np.random.default_rng(3)
    values = rng.random((30, 1)) + rng.normal(0, 0.2, (30, 4)) + np.array([0.0, 0.02, 0.05, 0.12])
    found, largest = family(values, test="tukey", baseline=baseline), naive_tukey(values, 6000, baseline)
    for i in (0, 1, 3):
        gap, tested = values.mean(axis=0)[i] - values.mean(axis=0)[2], found.test(i, 2)
        assert tested.p_value == pytest.approx(np.mean(largest >= abs(gap) - 1e-12), abs=0.02)
        assert tested.ci[1] - gap == pytest.approx(np.quantile(largest, 0.95), rel=0.03)


def test_max_t_agrees_with_a_multivariate_distribution():
    """With very many queries nothing is shrunk, and the largest of three differences is that of normal variables."""
    rng = np.random.default_rng(5)
    values = rng.normal(size=(4000, 3)) @ np.array([[1.0, 0.9, 0.0], [0.0, 0.4, 0.0], [0.0, 0.0, 0.5]])
    found = family(values, seed=1)
    each = np.stack([values[:, i] - values[:, j] for i, j in itertools.combinations(range(3), 2)], axis=1)
    drawn = np.abs(stats.multivariate_normal(cov=np.corrcoef(each.T), allow_singular=True).rvs(200_000, random_state=1))
    errors = each.std(axis=0, ddof=1) / np.sqrt(len(each))
    for (i, j), gap, error in zip(itertools.combinations(range(3), 2), each.mean(axis=0), errors, strict=True):
        tested = found.test(i, j)
        assert tested.ci[1] - gap == pytest.approx(np.quantile(drawn.max(axis=1), 0.95) * error, rel=0.01)
        assert tested.p_value == pytest.approx(np.mean(drawn.max(axis=1) >= abs(gap) / error), abs=0.01)


@pytest.mark.parametrize("baseline", [None, 1])
def test_rows_that_replace_queries_keep_their_covariance(monkeypatch, baseline):
    values = [np.random.default_rng(seed).normal(size=(60, 4)).cumsum(axis=1) for seed in (1, 2)]
    pairs = [(i, 1, measure) for i in (0, 2, 3) for measure in (0, 1)]
    few = family(*values, baseline=baseline)
    monkeypatch.setattr(simultaneous, "symmetric_root", lambda columns: columns)
    whole = family(*values, baseline=baseline)
    for pair in pairs:
        assert few.test(*pair).ci == pytest.approx(whole.test(*pair).ci, abs=0.02)
        assert few.test(*pair).p_value == pytest.approx(whole.test(*pair).p_value, abs=0.01)


def test_rows_that_replace_queries_keep_small_differences():
    """Two systems may differ by much less than queries do."""
    values = np.random.default_rng(1).random((60, 1)) + np.random.default_rng(2).normal(size=(60, 3)) * 1e-7
    root = symmetric_root(values)
    assert np.ptp(root, axis=1).max() > 1e-7
    gaps = [np.stack([each[:, i] - each[:, j] for i, j in ((0, 1), (0, 2), (1, 2))]) for each in (values, root)]
    assert (gaps[1] @ gaps[1].T) == pytest.approx(gaps[0] @ gaps[0].T, rel=1e-6)


@pytest.mark.parametrize("baseline", [None, 0])
def test_several_differences_are_never_tested_more_leniently_than_one(baseline):
    """Draws of differences that depend on each other fall by chance below Student's t, and above it."""
    values = np.random.default_rng(8).random((12, 1)) * [1, 0, 0] + np.random.default_rng(9).random((12, 3)) * 1e-9
    for seed, (i, j) in itertools.product(range(8), itertools.permutations(range(3), 2)):
        tested = family(values, baseline=baseline, seed=seed).test(i, j)
        alone = stats.ttest_rel(values[:, i], values[:, j])
        low, high = alone.confidence_interval(0.95)
        assert tested.p_value >= alone.pvalue * (1 - 1e-9)
        assert tested.ci[1] - tested.ci[0] >= (high - low) * (1 - 1e-9)


def test_one_pair_in_one_measure_is_students_t():
    values = np.random.default_rng(8).random((12, 2))
    tested, theirs = family(values).test(0, 1), stats.ttest_rel(values[:, 0], values[:, 1])
    assert tested.p_value == pytest.approx(theirs.pvalue)
    assert tested.ci == pytest.approx(tuple(theirs.confidence_interval(0.95)))


@pytest.mark.parametrize("test", TESTS)
@settings(max_examples=60, deadline=None)
@given(st.integers(1, 7), st.integers(2, 5), st.integers(0, 10**6), st.sampled_from([0.5, 0.9, 0.95]), st.booleans())
def test_an_interval_excludes_zero_exactly_if_p_is_small(test, n, systems, seed, confidence, has_baseline):
    """Values of few steps: equal differences, and statistics that are equal to those of permutations."""
    rng = np.random.default_rng(seed)
    values = [rng.integers(0, 3, (n, systems)) / 2 + np.arange(systems) * rng.integers(0, 2) for _ in range(2)]
    options = {"test": test, "confidence": confidence, "baseline": 1 if has_baseline else None}
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(simultaneous, "MAX_DRAWS", 2000)
        found = family(*values, **options)
    for measure, (i, j) in itertools.product((0, 1), itertools.permutations(range(systems), 2)):
        tested, gap = found.test(i, j, measure), values[measure][:, i].mean() - values[measure][:, j].mean()
        is_shown = tested.p_value < simultaneous.level(confidence)
        excludes = tested.ci is not None and not tested.ci[0] <= 0 <= tested.ci[1]
        assert excludes == is_shown
        assert found.shown(measure)[i, j] == (is_shown and gap > 0)
        back = found.test(j, i, measure)
        assert back.p_value == tested.p_value and 0 < tested.p_value <= 1
        assert (back.ci is None) == (tested.ci is None) and (
            tested.ci is None or back.ci == pytest.approx((-tested.ci[1], -tested.ci[0]), abs=1e-12)
        )


@pytest.mark.parametrize("test", TESTS)
def test_results_do_not_depend_on_the_order_of_systems(test):
    values = np.random.default_rng(2).random((40, 6))
    order = np.random.default_rng(3).permutation(6)
    found, other = family(values, test=test), family(values[:, order], test=test)
    for i, j in itertools.combinations(range(6), 2):
        assert other.test(i, j) == found.test(int(order[i]), int(order[j]))


def test_measures_with_other_queries_share_a_family():
    rng = np.random.default_rng(6)
    whole, kept = rng.random((50, 3)), rng.random(50) < 0.6
    found = Family([whole, whole[kept]], [np.ones(50, dtype=bool), kept])
    assert found.size == 6
    alone = family(whole)
    assert found.test(0, 1).p_value > alone.test(0, 1).p_value
    wide = found.test(0, 1, 1).ci
    assert wide[1] - wide[0] > found.test(0, 1).ci[1] - found.test(0, 1).ci[0]  # fewer queries


def test_equal_differences():
    """No spread: shown only if enough queries agree in sign; without a difference there is nothing to show."""
    few, many = (np.stack([np.full(n, 0.5), np.full(n, 0.3), np.full(n, 0.3)], axis=1) for n in (4, 12))
    assert family(few).test(0, 1) == simultaneous.Tested(3 / 8, None)
    tested = family(many).test(0, 1)
    assert tested.p_value == pytest.approx(3 / 2**11) and tested.ci == pytest.approx((0.2, 0.2))
    assert family(many).test(1, 2) == simultaneous.Tested(1.0, (0.0, 0.0))
    assert family(many[:1]).test(0, 1) == simultaneous.Tested(1.0, None)


def draw_runs(rng: np.random.Generator, n: int, systems: int) -> np.ndarray:
    """Equal systems whose errors have different sizes and share the difficulty of queries."""
    return rng.random((n, 1)) + rng.normal(0, 1, (n, systems)) * np.linspace(0.05, 0.3, systems)


@pytest.mark.parametrize("test", TESTS)
@pytest.mark.parametrize("systems", [3, 6, 10])
def test_the_best_of_equal_runs_is_seldom_shown_to_be_better(systems, test, monkeypatch):
    """The best is chosen after looking. Over the rows alone the level would be .069, .131 and .177."""
    monkeypatch.setattr(simultaneous, "MAX_DRAWS", 500)
    monkeypatch.setattr(simultaneous, "MIN_DRAWS", 500)
    rng, false, samples = np.random.default_rng(systems), 0, 250
    for sample in range(samples):
        # Tukey HSD permutes labels: it is exact if the errors of systems have one size.
        values = (
            draw_runs(rng, 50, systems) if test == "max-t" else rng.random((50, 1)) + rng.normal(0, 0.2, (50, systems))
        )
        found = family(values, test=test, seed=sample)
        best = int(values.mean(axis=0).argmax())
        false += any(found.test(best, other).p_value < 0.05 for other in range(systems) if other != best)
    assert false / samples <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / samples)


def test_intervals_hold_together(monkeypatch):
    monkeypatch.setattr(simultaneous, "MAX_DRAWS", 500)
    monkeypatch.setattr(simultaneous, "MIN_DRAWS", 500)
    rng, truth, held, samples = np.random.default_rng(1), np.array([0.0, 0.1, 0.1, 0.3, 0.5]), 0, 250
    for sample in range(samples):
        found = family(draw_runs(rng, 40, 5) + truth, seed=sample)
        ends = [(found.test(i, j).ci, truth[i] - truth[j]) for i, j in itertools.combinations(range(5), 2)]
        held += all(low <= gap <= high for (low, high), gap in ends)
    assert 0.95 - 3 * np.sqrt(0.05 * 0.95 / samples) <= held / samples < 1


def test_bounds_of_one_row_are_those_of_one_more_query_that_loses_all():
    for n, lost in ((50, 0.5), (20, 0.5), (20, 1.0), (3, 0.0)):
        values = np.zeros((n, 1))
        values[0] = -lost
        low, high = loss_bounds(values)
        for bound, sign in ((low, 1), (-high, -1)):
            extended, t = np.append(sign * values, -1.0), stats.t.ppf(0.95, n)
            expected = extended.mean() - t * extended.std(ddof=1) / np.sqrt(n + 1)
            assert bound[0] == pytest.approx(max(expected, -1.0), abs=1e-12)
        assert -1 <= low[0] < values.mean() < high[0] <= 1


def test_the_critical_value_is_that_of_the_largest_t():
    rng = np.random.default_rng(1)
    for columns in (2, 3):
        values = rng.normal(size=(12, columns)) + rng.normal(size=(12, 1))
        quantile = max_t_quantile(values, 0.95)
        share = stats.multivariate_t.cdf(
            np.full(columns, quantile), shape=np.corrcoef(values.T), df=11, random_state=rng, maxpts=200_000
        )
        assert share == pytest.approx(0.95, abs=0.003)
    same = np.repeat(values[:, :1], 5, axis=1)
    assert max_t_quantile(same, 0.95) == pytest.approx(stats.t.ppf(0.95, 11), abs=0.02)
    constant = np.hstack([values[:, :1], np.ones((12, 2))])
    assert max_t_quantile(constant, 0.95) == pytest.approx(stats.t.ppf(0.95, 11))


def test_how_many_queries_can_show_a_loss():
    for loss, worst in ((0.02, 1.0), (0.005, 1.0), (0.01, 0.5), (0.3, 1.0), (2.0, 1.0)):
        n = queries_for_loss(loss, worst)
        assert loss_bounds(np.zeros((n, 1)), worst)[0][0] > -loss
        assert n == 1 or loss_bounds(np.zeros((n - 1, 1)), worst)[0][0] <= -loss


def test_more_rows_than_queries_have_bounds():
    low, high = loss_bounds(np.random.default_rng(1).normal(size=(5, 9)) / 10)
    assert ((low >= -1) & (low < high) & (high <= 1)).all()


def test_a_loss_beyond_the_worst_is_an_error():
    with pytest.raises(InputError, match=r"worst=0.3 is less than what one query loses, 0.5"):
        loss_bounds(np.array([[0.0], [-0.5]]), 0.3)


def test_bounds_hold_for_all_rows_at_once():
    """Sparse, skewed, correlated losses of 8 rows, in 200 samples of 100 queries: at most about 5 % fail."""
    rng = np.random.default_rng(7)

    def draw(n):
        z = 0.7 * rng.standard_normal((n, 8)) + 0.7 * rng.standard_normal((n, 1))
        hit = rng.random((n, 8)) < np.linspace(0.2, 0.8, 8)
        return np.clip(hit * np.linspace(0.02, 0.2, 8) * (z - 0.3), -1, 1)

    truth = draw(1_000_000).mean(axis=0)
    samples = [loss_bounds(draw(100), seed=seed) for seed in range(200)]
    assert sum(bool((low <= truth).all()) for low, _ in samples) >= 185
    assert sum(bool((high >= truth).all()) for _, high in samples) >= 185
