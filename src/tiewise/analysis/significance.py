"""Tests of one mean difference over queries, and bounds for several columns at once.

This module is about the sample of queries only, not about ties. Its input is the differences of two expected values,
query by query. `unadjusted_tests` are the tests that papers name, of one pair alone; the intervals and p-values of a
comparison are those of `simultaneous`.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from numbers import Real
from typing import Any

import numpy as np

from tiewise.data.columns import Floats
from tiewise.errors import InputError
from tiewise.results.wording import ATOL as ATOL
from tiewise.results.wording import spell_option

#: The highest confidence: with more, random draws are too few.
MAX_CONFIDENCE = 0.999
#: The confidence of bounds for losses.
CONFIDENCE = 0.95
#: The draws of the largest of several t-statistics: its quantile has a standard error of about 0.01.
NORMAL_DRAWS = 100_000
#: The permutation test is exact up to this many differences other than 0, else so many flips are drawn.
MAX_EXACT, FLIPS = 16, 10_000
#: More queries than this are added up in this many random blocks of equal size.
MAX_BLOCKS = 20_000
#: How many numbers one step may hold in memory.
MEMORY_LIMIT = 1 << 22


def check_confidence(confidence: Any) -> None:
    """Require 0 < confidence ≤ 0.999."""
    if not isinstance(confidence, Real) or not 0 < float(confidence) <= MAX_CONFIDENCE:
        raise InputError(f"confidence lies between 0 and {MAX_CONFIDENCE}, such as 0.95, not {confidence!r}.")


# -- one pair ---------------------------------------------------------------------------------------------------------


def unadjusted_tests(difference: Floats, seed: int = 0) -> dict[str, float]:
    """The two-sided p-values of one column of differences by the usual paired tests, each alone.

    If all differences are equal, Student's t has no spread to divide by, and is left out.

    >>> {name: round(p, 3) for name, p in unadjusted_tests(np.array([0.1, 0.2, 0.3])).items()}
    {'t': 0.074, 'permutation': 0.25, 'wilcoxon': 0.25}
    """
    from scipy import stats

    others = difference[np.abs(difference) > ATOL]
    if not len(others):
        return {}
    found = {} if np.ptp(difference) <= ATOL else {"t": float(stats.ttest_1samp(difference, 0.0).pvalue)}
    # Rounding makes equal differences equal numbers, so that they share a rank.
    wilcoxon = float(stats.wilcoxon(others.round(12)).pvalue)
    return found | {"permutation": permutation_test(difference, seed), "wilcoxon": wilcoxon}


def permutation_test(difference: Floats, seed: int = 0) -> float:
    """The p-value of the sign-flip test: how often random signs bring the mean as far from 0.

    With few differences other than 0 all 2ⁿ flips are tried, and p = k / 2ⁿ; otherwise p = (1 + k) / (1 + flips).

    >>> permutation_test(np.array([0.1, 0.2, 0.3]))  # 2 of the 8 sign flips are as far from 0
    0.25
    """
    summed = sum_in_blocks(difference[:, None], seed)[:, 0]
    others = summed[np.abs(summed) > ATOL]
    total, n = float(others.sum()), len(others)

    def count(flips: Any) -> int:  # how many flips bring the sum as far from 0
        return int(np.count_nonzero(np.abs(total - 2 * (flips @ others)) >= abs(total) - ATOL * len(summed)))

    if n <= MAX_EXACT:
        return count((np.arange(2**n)[:, None] >> np.arange(n)) & 1) / 2**n
    rng, step, k = np.random.default_rng(seed), max(MEMORY_LIMIT // n, 1), 0
    for first in range(0, FLIPS, step):
        drawn = rng.integers(0, 256, (min(step, FLIPS - first), -(-n // 8)), dtype=np.uint8)
        k += count(np.unpackbits(drawn, axis=1, count=n).astype(np.float64))
    return (1 + k) / (1 + FLIPS)


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


# -- bounds for several columns at once ------------------------------------------------------------------------------


def loss_bounds(differences: Floats, worst: float = 1.0, *, seed: int = 0) -> tuple[Floats, Floats]:
    """A 95% lower and an upper bound on the mean of each column, each of which holds for all columns at once.

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
        return np.maximum(extended.mean(axis=0) - max_t_quantile(extended, CONFIDENCE, seed) * error, -worst)

    return lower(differences), np.maximum(-lower(-differences), differences.mean(axis=0))


def queries_for_loss(max_loss: float, worst: float = 1.0) -> int:
    """The least number of queries that can show a loss below `max_loss`, if none of them loses (see `loss_bounds`).

    >>> [queries_for_loss(loss) for loss in (0.02, 0.01, 0.005)]
    [132, 265, 529]
    """
    from scipy.special import stdtrit

    if max_loss > worst:
        return 1

    def is_enough(n: int) -> bool:  # the mean of these and one that loses `worst`, and its error, are worst / (n + 1)
        return bool(worst * (1 + stdtrit(n, CONFIDENCE)) / (n + 1) < max_loss)

    high = 1
    while not is_enough(high):
        high *= 2
    return bisect_left(range(high), True, lo=1, key=is_enough)


def max_t_quantile(values: Floats, confidence: float, seed: int = 0) -> float:
    """The quantile of the largest of the columns' t-statistics, if queries are normally distributed with mean 0.

    The columns have the correlation of `values`. One column: Student's quantile; several: from seeded draws.

    >>> round(max_t_quantile(np.arange(10.0)[:, None], 0.95), 3)
    1.833
    """
    from scipy.special import stdtrit

    freedom = len(values) - 1
    single = float(stdtrit(freedom, confidence))
    centred = values - values.mean(axis=0)
    norm = np.sqrt((centred**2).sum(axis=0))
    scaled = centred[:, norm > ATOL] / norm[norm > ATOL]
    if scaled.shape[1] < 2:
        return single
    root = symmetric_root(scaled)
    rng, largest = np.random.default_rng([seed, 3]), np.empty(NORMAL_DRAWS)
    step = max(MEMORY_LIMIT // len(root), 1)
    for first in range(0, NORMAL_DRAWS, step):
        size = min(step, NORMAL_DRAWS - first)
        largest[first : first + size] = (rng.standard_normal((size, len(root))) @ root).max(axis=1)
    largest /= np.sqrt(rng.chisquare(freedom, NORMAL_DRAWS) / freedom)
    return max(float(np.quantile(largest, confidence)), single)


def symmetric_root(columns: Floats) -> Floats:
    """As many rows as columns, with the same products of columns.

    The symmetric root is unique: any other would make draws depend on the machine.

    >>> symmetric_root(np.array([[3.0, 0.0], [4.0, 0.0], [0.0, 2.0]])).round(6).tolist()
    [[5.0, 0.0], [0.0, 2.0]]
    """
    triangle = np.linalg.qr(columns, mode="r")  # products of columns would lose small differences
    _, sizes, axes = np.linalg.svd(triangle, full_matrices=False)  # there may be fewer rows than columns
    return (axes.T * sizes) @ axes
