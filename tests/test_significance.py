"""Significance tests, bootstrap intervals and Holm's correction, compared with scipy and with enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

import tiewise as tw
from tiewise.analysis import significance
from tiewise.analysis.significance import (
    bootstrap_intervals,
    bootstrap_means,
    effect_size,
    holm,
    loss_bounds,
    max_t_quantile,
    p_values,
    permutation_test,
    queries_for_loss,
    sum_in_blocks,
)
from tiewise.errors import InputError


@pytest.fixture
def differences() -> np.ndarray:
    return np.random.default_rng(7).normal(0.03, 0.1, (40, 3))


def test_paired_t_and_wilcoxon_are_those_of_scipy(differences):
    a = np.random.default_rng(8).random((40, 3))
    for column in range(3):
        pair = a[:, column] + differences[:, column], a[:, column]
        each = (pair[0] - pair[1])[:, None]
        assert p_values(each, "t") == pytest.approx([stats.ttest_rel(*pair).pvalue])
        assert p_values(each, "wilcoxon") == pytest.approx([stats.wilcoxon(each[:, 0]).pvalue])


def test_wilcoxon_gives_equal_differences_the_same_rank():
    counts = np.array([(3, 2)] * 6 + [(0, 1)] * 3 + [(2, 1)] * 3)
    each = counts[:, 0] / 3 - counts[:, 1] / 3  # thirds that differ in their last bit
    assert p_values(each[:, None], "wilcoxon") == pytest.approx([stats.wilcoxon(counts[:, 0] - counts[:, 1]).pvalue])


@pytest.mark.filterwarnings("error")
def test_t_test_without_variance_is_a_permutation_test():
    each = np.stack([np.full(4, 0.3), 0.1 + 0.2 * np.ones(4), np.array([0.1, 0.2, 0.3, 0.4])], axis=1)
    each[0, 1] = 0.3
    found = p_values(each, "t")
    assert found[:2].tolist() == [0.125, 0.125] and found[2] == pytest.approx(stats.ttest_1samp(each[:, 2], 0).pvalue)


def test_permutation_agrees_with_scipy(differences):
    ours = p_values(differences, resamples=20_000)
    theirs = stats.permutation_test(
        (differences,),
        lambda d, axis: np.mean(d, axis=axis),
        permutation_type="samples",
        n_resamples=20_000,
        axis=0,
        rng=1,
    ).pvalue
    assert ours == pytest.approx(theirs, abs=0.02)


@pytest.mark.parametrize("n", [1, 2, 5, 9])
def test_permutation_test_of_few_differences_is_exact(n):
    each = np.round(np.random.default_rng(n).normal(0.1, 0.2, n), 2)
    sums = [sum(s * d for s, d in zip(signs, each, strict=True)) for signs in itertools.product((1, -1), repeat=n)]
    wanted = np.mean([abs(total) >= abs(each.sum()) - 1e-9 for total in sums])
    assert permutation_test(each[:, None], 100, 0) == pytest.approx([wanted])
    padded = np.append(each, np.zeros(50))  # queries that do not differ change nothing
    assert permutation_test(padded[:, None], 100, 0) == pytest.approx([wanted])


def test_sampled_flips_approximate_all_flips(monkeypatch):
    each = np.random.default_rng(3).normal(0.05, 0.1, (14, 2))
    exact = p_values(each)
    monkeypatch.setattr(significance, "MAX_EXACT", 0)
    assert p_values(each, resamples=50_000) == pytest.approx(exact, abs=0.01)
    assert (p_values(each, resamples=100) >= 1 / 101).all()  # the order that was seen counts as one


def test_p_values_without_differences():
    assert p_values(np.zeros((5, 2))).tolist() == [1, 1]
    assert p_values(np.zeros((5, 1)), "wilcoxon").tolist() == [1]
    assert p_values(np.array([[0.1]]), "t").tolist() == [1]
    with pytest.raises(tw.InputError, match="Unknown test 'sign'"):
        p_values(np.ones((3, 1)), "sign")


def test_a_pair_has_the_same_p_value_alone_and_with_others(differences):
    many = np.hstack([differences] * 5)
    assert p_values(many)[:3] == pytest.approx(p_values(differences))
    alone, among = bootstrap_intervals(differences[:, :1]), bootstrap_intervals(many)
    assert (among[0][0], among[1][0]) == pytest.approx((alone[0][0], alone[1][0]))
    assert p_values(differences, seed=1) != pytest.approx(p_values(differences, seed=2), abs=1e-6)


@pytest.mark.parametrize("test", ["permutation", "t", "wilcoxon"])
@pytest.mark.parametrize("memory", [1 << 22, 1 << 14])  # the second holds only a few columns at once
def test_pairs_of_systems_are_tested_like_their_differences(test, memory, monkeypatch):
    monkeypatch.setattr(significance, "MEMORY_LIMIT", memory)
    values = np.random.default_rng(9).random((45, 12)).round(1)
    values[:, 3] = values[:, 4]
    values[:12, 5] = 1 - values[:12, 6]
    values[12:, 5] = values[12:, 6]  # few differences: all flips are tried
    first, second = np.triu_indices(12, 1)
    each = values[:, first] - values[:, second]
    options = {"resamples": 2000, "seed": 3}
    found = p_values(values, test, pairs=(first, second), **options)
    assert found == pytest.approx(p_values(each, test, **options), abs=1e-12)
    ends = bootstrap_intervals(values, pairs=(first, second), **options)
    assert np.array(ends) == pytest.approx(np.array(bootstrap_intervals(each, **options)), abs=1e-12)


@pytest.mark.parametrize("n", [17, 24, 61])
def test_sums_of_flips_are_those_of_single_flips(n):
    values, samples = np.random.default_rng(n).random((n, 2)), 700
    rng = np.random.default_rng(5)
    flips = [
        np.unpackbits(rng.integers(0, 256, (rows, -(-n // 8)), dtype=np.uint8), axis=1, count=n)
        for rows in (256, 256, 188)
    ]
    naive = np.array(
        [
            [sum(v for v, flip in zip(column, row, strict=True) if flip) for column in values.T]
            for row in np.concatenate(flips)
        ]
    )
    assert np.concatenate(list(significance._sum_flipped(values, samples, 5))) == pytest.approx(naive)


def test_bootstrap_intervals_agree_with_scipy(differences):
    low, high = bootstrap_intervals(differences, 0.9, resamples=20_000)
    for column in range(3):
        theirs = stats.bootstrap(
            (differences[:, column],), np.mean, confidence_level=0.9, n_resamples=20_000, method="percentile", rng=2
        ).confidence_interval
        assert (low[column], high[column]) == pytest.approx((theirs.low, theirs.high), abs=0.002)


def test_number_and_batch_size_of_bootstrap_samples(differences):
    parts = list(bootstrap_means(differences, 1000, 0))
    assert sum(len(part) for part in parts) == 1000
    assert max(part.shape[0] for part in parts) <= 256
    assert np.concatenate(parts).mean(axis=0) == pytest.approx(differences.mean(axis=0), abs=0.01)


def test_very_many_queries_are_summed_in_blocks(monkeypatch):
    each = np.random.default_rng(4).normal(0.001, 0.1, (5000, 1))
    whole = p_values(each), bootstrap_intervals(each)
    monkeypatch.setattr(significance, "MAX_BLOCKS", 500)
    assert sum_in_blocks(each, 0).shape == (500, 1)
    assert sum_in_blocks(each, 0).mean() == pytest.approx(each.mean())
    assert p_values(each) == pytest.approx(whole[0], abs=0.03)
    assert np.array(bootstrap_intervals(each)) == pytest.approx(np.array(whole[1]), abs=3e-4)


def test_holm():
    p = np.array([0.01, 0.04, 0.03, 0.005, 0.9])
    assert holm(p) == pytest.approx([0.04, 0.09, 0.09, 0.025, 0.9])
    assert holm(np.array([0.6, 0.7])) == pytest.approx([1, 1])


def test_effect_size():
    assert effect_size(np.array([1.0, 2.0, 3.0])) == pytest.approx(2)
    assert effect_size(np.array([0.5, 0.5])) is None
    assert effect_size(np.array([0.5])) is None


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
