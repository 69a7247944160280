"""Paired significance tests and bootstrap intervals: whether a mean difference could be due to the sample of queries.

This module is about the sample of queries only, not about ties. Its input has a row for each query and a column for
each pair of systems; a number is the difference of two expected values. All columns share the same seeded draws. So a
pair has the same p-value whether it is tested alone or with others, and memory stays bounded. If there are more pairs
than systems, the columns are those of systems: a mean of differences is the difference of two means.

The t-test and the Wilcoxon test are those of scipy. The permutation test and the bootstrap are our own:
`scipy.stats.permutation_test` takes longer, the import of `scipy.stats` alone takes longer than either of ours, and
neither scipy function sums very many queries in blocks.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from numbers import Integral, Real
from typing import Any, Literal, get_args

import numpy as np

from tiewise.data.columns import Codes, Floats
from tiewise.errors import InputError
from tiewise.metrics.estimate import Estimates
from tiewise.tables.wording import spell_option

__all__ = [
    "ATOL",
    "MAX_BLOCKS",
    "TESTS",
    "Pairs",
    "Test",
    "bootstrap_intervals",
    "bootstrap_means",
    "check_confidence",
    "check_options",
    "effect_size",
    "holm",
    "loss_bounds",
    "max_t_intervals",
    "max_t_quantile",
    "p_values",
    "permutation_test",
    "queries_for_loss",
    "query_intervals",
    "sum_in_blocks",
]

Test = Literal["permutation", "t", "wilcoxon"]
Pairs = tuple[Codes, Codes]  #: the columns of pairs of systems: a difference is the first less the second
TESTS: tuple[Test, ...] = get_args(Test)

#: Means that differ by at most this are equal: the rest is rounding of their sums.
ATOL = 1e-12
#: The draws of the largest of several t-statistics: its quantile has a standard error of about 0.01.
NORMAL_DRAWS = 100_000
#: The permutation test is exact up to this many differences other than 0.
MAX_EXACT = 16
#: More queries than this are added up in this many random blocks of equal size.
MAX_BLOCKS = 20_000
#: How many numbers one step may hold in memory.
MEMORY_LIMIT = 1 << 22
#: Up to this many columns, indexing the drawn queries is faster than a product with their counts.
FEW_COLUMNS = 2
#: The most multiplications of one product, and its columns: in a larger one, threads that wait take most of the time.
PRODUCT_SIZE, PRODUCT_COLUMNS = 1 << 18, 8
#: The allowed number of resamples: fewer give poor intervals, more take hours.
RESAMPLES_RANGE = (100, 1_000_000)


def check_options(test: Any = "permutation", confidence: Any = 0.95, resamples: Any = 10_000, seed: Any = 0) -> None:
    """Raise an error for an unknown test, and for a confidence, a number of resamples or a seed that is out of range.

    >>> check_options(resamples=5)
    Traceback (most recent call last):
    tiewise.errors.InputError: resamples is a whole number from 100 to 1,000,000, not 5.
    """
    if test not in TESTS:
        raise InputError(f"Unknown test {test!r}. Use {' or '.join(map(repr, TESTS))}.")
    check_confidence(confidence)
    low, high = RESAMPLES_RANGE
    if not isinstance(resamples, Integral) or not low <= int(resamples) <= high:
        raise InputError(f"resamples is a whole number from {low} to {high:,}, not {resamples!r}.")
    if not isinstance(seed, Integral) or isinstance(seed, bool) or int(seed) < 0:
        raise InputError(f"seed is a whole number from 0 on, not {seed!r}.")


def check_confidence(confidence: Any, name: str = "confidence") -> None:
    """Require 0 < confidence < 1; `name` is the name of the option."""
    if not isinstance(confidence, Real) or not 0 < float(confidence) < 1:
        raise InputError(f"{name} lies between 0 and 1, such as 0.95, not {confidence!r}.")


# -- tests ------------------------------------------------------------------------------------------------------------


def p_values(
    values: Floats,
    test: Test = "permutation",
    *,
    pairs: Pairs | None = None,
    resamples: int = 10_000,
    seed: int = 0,
) -> Floats:
    """The two-sided p-value of each column of differences, (n_queries, n_pairs).

    With `pairs`, the values are those of systems, (n_queries, n_systems), and a difference is one column less another.

    >>> p_values(np.array([[0.1], [0.2], [0.3]]))  # 2 of the 8 sign flips are as far from 0
    array([0.25])
    """
    check_options(test)
    if test == "permutation":
        return permutation_test(values, resamples, seed, pairs)
    found = []
    for differences in _Differences(values, pairs).parts(max(MEMORY_LIMIT // len(values), 1)):
        differs = np.abs(differences).max(axis=1, initial=0.0) > ATOL
        p, tested = np.ones(len(differences)), differences[differs].T
        if differs.any():
            p[differs] = _wilcoxon_test(tested) if test == "wilcoxon" else _paired_t_test(tested, resamples, seed)
        found.append(p)
    return np.concatenate(found)


def permutation_test(values: Floats, resamples: int, seed: int, pairs: Pairs | None = None) -> Floats:
    """The p-values of the sign-flip test: how often random signs bring a mean as far from 0.

    With few differences other than 0 all 2ⁿ flips are tried, and p = k / 2ⁿ; otherwise p = (1 + k) / (1 + resamples).
    """
    summed = sum_in_blocks(values, seed)
    n, each = len(summed), _Differences(summed, pairs)
    p = np.empty(len(each))
    sampled: dict[int, float] = {}  # the sum of the differences of each pair that is not tested exactly
    for pair in range(len(each)):
        difference = each[pair]
        others = difference[np.abs(difference) > ATOL]
        if len(others) > MAX_EXACT:
            sampled[pair] = float(difference.sum())
        else:
            every_flip = (np.arange(2 ** len(others))[:, None] >> np.arange(len(others))) & 1
            p[pair] = _count_as_extreme(every_flip @ others, float(others.sum()), n) / len(every_flip)
    if sampled:
        k = dict.fromkeys(sampled, 0)
        for flipped in _sum_flipped(summed, resamples, seed):
            sums = _Differences(flipped, pairs)
            for pair, total in sampled.items():
                k[pair] += _count_as_extreme(sums[pair], total, n)
        p[list(k)] = (1 + np.array(list(k.values()))) / (1 + resamples)
    return p


class _Differences:
    """The columns of values, or, with pairs of columns, their differences: one at a time, as there may be many."""

    def __init__(self, values: Floats, pairs: Pairs | None):
        self._columns, self._pairs = np.ascontiguousarray(values.T), pairs

    def __len__(self) -> int:
        return len(self._columns) if self._pairs is None else len(self._pairs[0])

    def __getitem__(self, pair: int | slice) -> Floats:
        if self._pairs is None:
            return self._columns[pair]
        return np.asarray(self._columns[self._pairs[0][pair]] - self._columns[self._pairs[1][pair]])

    def parts(self, size: int) -> Iterator[Floats]:
        """All of them in parts, (at most `size`, n_values)."""
        return (self[first : first + size] for first in range(0, len(self), size))


def _count_as_extreme(flipped: Floats, total: float, n: int) -> int:
    """How many flips bring the sum of `n` differences as far from 0 as it is, given the sums of those flipped."""
    return int(np.count_nonzero(np.abs(total - 2 * flipped) >= abs(total) - ATOL * n))


def _sum_flipped(values: Floats, resamples: int, seed: int) -> Iterator[Floats]:
    """For random flips, the sum of each column over the queries that are flipped, (n_flips, n_columns).

    A random byte flips some of eight queries. The sums of all 256 choices are computed once.
    """
    n, columns = values.shape
    blocks = np.zeros((-(-n // 8), 8, columns))
    blocks.reshape(-1, columns)[:n] = values
    rng, batches = np.random.default_rng(seed), list(_split_samples(resamples, n))
    at_once = max(MEMORY_LIMIT // (max(len(blocks), columns) * batches[0]), 1)
    for first in range(0, len(batches), at_once):
        some = batches[first : first + at_once]
        flips = np.concatenate([rng.integers(0, 256, (rows, len(blocks)), dtype=np.uint8) for rows in some])
        sums = np.zeros((len(flips), columns))
        for block, flipped in zip(blocks, np.ascontiguousarray(flips.T), strict=True):
            of_choice = np.zeros((1, columns))
            for query in block[::-1]:
                of_choice = np.concatenate([of_choice, of_choice + query])
            sums += of_choice.take(flipped, axis=0)
        yield sums


def _paired_t_test(differences: Floats, resamples: int, seed: int) -> Floats:
    """The paired t-test. Columns of equal differences have no variance: they get the permutation test instead."""
    from scipy import stats

    p = np.empty(differences.shape[1])
    equal = np.ptp(differences, axis=0) <= ATOL
    if equal.any():
        p[equal] = permutation_test(differences[:, equal], resamples, seed)
    if not equal.all():
        p[~equal] = stats.ttest_1samp(differences[:, ~equal], 0.0, axis=0).pvalue
    return p


def _wilcoxon_test(differences: Floats) -> Floats:
    from scipy import stats

    # Rounding makes equal differences equal numbers, so that they share a rank.
    columns = (column[np.abs(column) > ATOL].round(12) for column in differences.T)
    return np.array([float(stats.wilcoxon(column).pvalue) for column in columns])


def holm(p: Floats) -> Floats:
    """The p-values of one family after Holm's correction, which needs no independence.

    >>> holm(np.array([0.01, 0.04, 0.03]))
    array([0.03, 0.06, 0.06])
    """
    order = np.argsort(p, kind="stable")
    corrected = np.empty(len(p))
    corrected[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1.0)
    return corrected


def effect_size(difference: Floats) -> float | None:
    """The mean of the differences over their standard deviation (d_z); None if all differences are equal.

    >>> effect_size(np.array([1.0, 2.0, 3.0]))
    2.0
    """
    std = float(np.std(difference, ddof=1)) if len(difference) > 1 else 0.0
    return float(difference.mean()) / std if std > ATOL else None


# -- resampling -------------------------------------------------------------------------------------------------------


def bootstrap_intervals(
    values: Floats,
    confidence: float = 0.95,
    *,
    pairs: Pairs | None = None,
    resamples: int = 10_000,
    seed: int = 0,
) -> tuple[Floats, Floats]:
    """The percentile interval of each column's mean, from `resamples` resamples of the queries.

    With `pairs`, the columns are those of systems, and the intervals are those of the differences of two columns.
    """
    tail, width = (1 - confidence) / 2, max(MEMORY_LIMIT // resamples, 1)

    def intervals(values: Floats, pairs: Pairs | None) -> list[Any]:
        means = np.concatenate(list(bootstrap_means(values, resamples, seed)))
        return [np.quantile(some, [tail, 1 - tail], axis=1) for some in _Differences(means, pairs).parts(width)]

    if values.shape[1] <= width:
        found = intervals(values, pairs)
    else:  # the means of all columns would take too much memory
        found = [ends for some in _Differences(values, pairs).parts(width) for ends in intervals(some.T, None)]
    low, high = np.concatenate(found, axis=1)
    return low, high


def query_intervals(
    estimates: Sequence[Estimates], confidence: float | None, **options: Any
) -> list[tuple[float, float] | None]:
    """The bootstrap interval of each mean expectation; None without a confidence, for one query, and for counts."""
    found: list[tuple[float, float] | None] = [None] * len(estimates)
    if confidence is None:
        return found
    check_confidence(confidence, "intervals")
    by_length: dict[int, list[int]] = {}  # estimates of equally many queries share their resamples
    for place, each in enumerate(estimates):
        if len(each) > 1 and not each.total:
            by_length.setdefault(len(each), []).append(place)
    for places in by_length.values():
        values = np.stack([estimates[place].expected for place in places], axis=1)
        ends = (column.tolist() for column in bootstrap_intervals(values, confidence, **options))
        for place, interval in zip(places, zip(*ends, strict=True), strict=True):
            found[place] = interval
    return found


def bootstrap_means(values: Floats, resamples: int, seed: int) -> Iterator[Floats]:
    """The mean of each column over resamples of the queries, in batches of shape (n_samples, n_columns).

    A sample draws as many queries as there are, with replacement, the same ones for all columns.
    """
    summed = sum_in_blocks(values, seed)
    rng, n = np.random.default_rng([seed, 1]), len(summed)
    parts = np.split(summed, range(PRODUCT_COLUMNS, summed.shape[1], PRODUCT_COLUMNS), axis=1)
    at_once = min(max(PRODUCT_SIZE // (n * PRODUCT_COLUMNS), 1), 256)
    for first in range(0, resamples, at_once):
        rows = min(at_once, resamples - first)
        drawn = rng.integers(0, n, (rows, n), dtype=np.int32)
        if summed.shape[1] <= FEW_COLUMNS:
            yield np.stack([column[drawn].mean(axis=1) for column in summed.T], axis=1)
        else:  # how often each query was drawn, for all columns at once
            cells = (drawn + n * np.arange(rows)[:, None]).ravel()
            counts = np.bincount(cells, minlength=rows * n).reshape(rows, n).astype(np.float64)
            yield np.hstack([counts @ part for part in parts]) / n


def sum_in_blocks(values: Floats, seed: int) -> Floats:
    """The queries, or, if they are very many, random blocks of queries with the same mean.

    >>> sum_in_blocks(np.ones((100_000, 1)), seed=0).shape
    (20000, 1)
    """
    n = len(values)
    if n <= MAX_BLOCKS:
        return values
    shuffled = values[np.random.default_rng([seed, 2]).permutation(n)]
    first = np.arange(MAX_BLOCKS) * n // MAX_BLOCKS
    summed: Floats = np.add.reduceat(shuffled, first, axis=0)
    return summed * (MAX_BLOCKS / n)


def _split_samples(resamples: int, n: int) -> Iterator[int]:
    """The sizes of batches of resamples. They depend only on the number of queries, and so do the numbers drawn."""
    step = min(max(MEMORY_LIMIT // n, 1), 256)
    for first in range(0, resamples, step):
        yield min(step, resamples - first)


# -- bounds for several columns at once ------------------------------------------------------------------------------


def loss_bounds(
    differences: Floats, worst: float = 1.0, *, confidence: float = 0.95, seed: int = 0
) -> tuple[Floats, Floats]:
    """A lower and an upper bound on the mean of each column, each of which holds for all columns at once.

    `differences` has a row for each query and a column for each system: its value less that of a reference. Few queries
    that differ say little about rare large losses. So the lower bound is that of the queries and one more, in which
    every column loses `worst`, the most that a query can lose; the upper bound is that with one that gains it. Both
    are one-sided, with one critical value for all columns (`max_t_quantile`).

    >>> low, high = loss_bounds(np.zeros((265, 1)))  # no query differs
    >>> low.round(4).tolist(), high.round(4).tolist()
    ([-0.01], [0.01])
    """
    most = float(np.max(-differences, initial=0.0))
    if not worst >= most - ATOL:
        found = f"{spell_option('worst', worst)} is less than what one query loses, {most:.4g}"
        raise InputError(f"{found}. Give the most it can lose.")

    def lower(values: Floats) -> Floats:
        extended = np.vstack([values, np.full((1, values.shape[1]), -worst)])
        error = extended.std(axis=0, ddof=1) / math.sqrt(len(extended))
        return np.maximum(extended.mean(axis=0) - max_t_quantile(extended, confidence, seed=seed) * error, -worst)

    return lower(differences), np.maximum(-lower(-differences), differences.mean(axis=0))


def queries_for_loss(max_loss: float, worst: float = 1.0, *, confidence: float = 0.95) -> int:
    """The least number of queries that can show a loss below `max_loss`, if none of them loses (see `loss_bounds`).

    >>> [queries_for_loss(loss) for loss in (0.02, 0.01, 0.005)]
    [132, 265, 529]
    """
    from scipy.special import stdtrit

    if max_loss > worst:
        return 1

    def is_enough(n: int) -> bool:  # the mean of these and one that loses `worst`, and its error, are worst / (n + 1)
        return bool(worst * (1 + stdtrit(n, confidence)) / (n + 1) < max_loss)

    high = 1
    while not is_enough(high):
        high *= 2
    return bisect_left(range(high), True, lo=1, key=is_enough)


def max_t_intervals(values: Floats, confidence: float = 0.95, *, seed: int = 0) -> tuple[Floats, Floats]:
    """Two-sided intervals of the mean of each column, which hold for all columns at once (max-t).

    >>> low, high = max_t_intervals(np.array([[0.0], [0.1], [0.2]]))
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([-0.148], [0.348])
    """
    mean, n = values.mean(axis=0), len(values)
    half = max_t_quantile(values, confidence, two_sided=True, seed=seed) * values.std(axis=0, ddof=1) / math.sqrt(n)
    return mean - half, mean + half


def max_t_quantile(values: Floats, confidence: float, *, two_sided: bool = False, seed: int = 0) -> float:
    """The quantile of the largest of the columns' t-statistics, if queries are normally distributed with mean 0.

    The columns have the correlation of `values`. One column: Student's quantile; several: from seeded draws. With
    `two_sided`, it is the quantile of the largest absolute value.

    >>> round(max_t_quantile(np.arange(10.0)[:, None], 0.95), 3)
    1.833
    """
    from scipy.special import stdtrit

    freedom = len(values) - 1
    single = float(stdtrit(freedom, (1 + confidence) / 2 if two_sided else confidence))
    centred = values - values.mean(axis=0)
    norm = np.sqrt((centred**2).sum(axis=0))
    scaled = centred[:, norm > ATOL] / norm[norm > ATOL]
    if scaled.shape[1] < 2:
        return single
    # The symmetric root of the correlations, which is unique: any other would make the draws depend on the machine.
    share, axes = np.linalg.eigh(scaled.T @ scaled)
    root = (axes * np.sqrt(np.where(share > 1e-10, share, 0.0))) @ axes.T
    rng, largest = np.random.default_rng([seed, 3]), np.empty(NORMAL_DRAWS)
    step = max(MEMORY_LIMIT // len(root), 1)
    for first in range(0, NORMAL_DRAWS, step):
        size = min(step, NORMAL_DRAWS - first)
        drawn = rng.standard_normal((size, len(root))) @ root
        largest[first : first + size] = (np.abs(drawn) if two_sided else drawn).max(axis=1)
    largest /= np.sqrt(rng.chisquare(freedom, NORMAL_DRAWS) / freedom)
    return max(float(np.quantile(largest, confidence)), single)
