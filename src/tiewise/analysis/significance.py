"""Whether a mean difference could be chance in the sample of queries: tests and intervals on one difference a query.

Everything here is about the sample of queries and nothing about ties: a row is a query, a column is a pair of systems,
a number is the difference of two expectations. The same seeded draws serve all columns, so that a pair has one answer,
alone or among a thousand others, and memory stays bounded.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from numbers import Integral, Real
from typing import Any, Literal, get_args

import numpy as np

from tiewise.data.columns import Floats
from tiewise.errors import InputError

__all__ = [
    "DUST",
    "TESTS",
    "Test",
    "blocks",
    "bootstrap",
    "check",
    "check_confidence",
    "effect_size",
    "holm",
    "intervals",
    "p_values",
    "permutation",
]

Test = Literal["permutation", "t", "wilcoxon"]
TESTS: tuple[Test, ...] = get_args(Test)

#: Means this near to each other are one number, but for the rounding of their sums.
DUST = 1e-12
#: Up to so many differences other than 0, all sign flips are tried.
ENUMERATED = 16
#: More queries than this are first added up in as many random blocks of equal size.
BLOCKS = 20_000
#: How many numbers one step may hold.
ROOM = 1 << 22
#: Up to so many columns it is quicker to look the drawn queries up than to count them.
FEW = 8
#: How many samples can be asked for: of fewer an interval would say little, and more would take hours.
SAMPLES = (100, 1_000_000)


def check(test: Any = "permutation", confidence: Any = 0.95, samples: Any = 10_000, seed: Any = 0) -> None:
    """Refuse a test that is not known, and numbers with which nothing could be drawn.

    >>> check(samples=5)
    Traceback (most recent call last):
    tiewise.errors.InputError: samples is a whole number from 100 to 1,000,000, not 5.
    """
    if test not in TESTS:
        raise InputError(f"Unknown test {test!r}. Use {' or '.join(map(repr, TESTS))}.")
    check_confidence(confidence)
    fewest, most = SAMPLES
    if not isinstance(samples, Integral) or not fewest <= int(samples) <= most:
        raise InputError(f"samples is a whole number from {fewest} to {most:,}, not {samples!r}.")
    if not isinstance(seed, Integral) or isinstance(seed, bool) or int(seed) < 0:
        raise InputError(f"seed is a whole number from 0 on, not {seed!r}.")


def check_confidence(given: Any, name: str = "confidence") -> None:
    """Refuse what is no level of an interval; `name` is what it was given as."""
    if not isinstance(given, Real) or not 0 < float(given) < 1:
        raise InputError(f"{name} lies between 0 and 1, as 0.95 does; {given!r} does not.")


def p_values(differences: Floats, test: Test = "permutation", *, samples: int = 10_000, seed: int = 0) -> Floats:
    """The two-sided p-value of each column of differences, (n_queries, n_pairs).

    >>> p_values(np.array([[0.1], [0.2], [0.3]]))  # 2 of the 8 ways to flip signs lie as far from 0
    array([0.25])
    """
    check(test)
    run = {
        "permutation": lambda d: permutation(d, samples, seed),
        "t": lambda d: _paired_t(d, samples, seed),
        "wilcoxon": _wilcoxon,
    }[test]
    some = np.abs(differences).max(axis=0, initial=0.0) > DUST  # where nothing differs, there is nothing to test
    found = np.ones(differences.shape[1])
    if some.any():
        found[some] = run(differences[:, some])
    return found


def permutation(differences: Floats, samples: int, seed: int) -> Floats:
    """The sign-flip test: how often a mean lies as far from 0 when the sign of each query's difference is drawn.

    With few differences other than 0 all flips are tried, and p = k / 2ⁿ; else p = (1 + k) / (1 + samples).
    """
    summed = blocks(differences, seed)
    few = np.count_nonzero(np.abs(summed) > DUST, axis=0) <= ENUMERATED
    p = np.empty(summed.shape[1])
    for column in np.flatnonzero(few):
        p[column] = _all_flips(summed[:, column])
    if not few.all():
        p[~few] = _some_flips(summed[:, ~few], samples, seed)
    return p


def _all_flips(difference: Floats) -> float:
    moved = difference[np.abs(difference) > DUST]
    signs = np.array(list(product((1.0, -1.0), repeat=len(moved)))).reshape(-1, len(moved))
    return float(np.mean(_as_far(signs @ moved, moved.sum(), len(difference))))


def _some_flips(differences: Floats, samples: int, seed: int) -> Floats:
    rng, n = np.random.default_rng(seed), len(differences)
    total, far = differences.sum(axis=0), np.zeros(differences.shape[1])
    for rows in _steps(samples, n):
        bits = np.unpackbits(rng.integers(0, 256, (rows, -(-n // 8)), dtype=np.uint8), axis=1, count=n)
        flipped = total - 2 * (bits.astype(np.float64) @ differences)
        far += np.count_nonzero(_as_far(flipped, total, n), axis=0)
    return (1 + far) / (1 + samples)


def _as_far(sums: Floats, total: Floats | float, n: int) -> Floats:
    return np.abs(sums) >= np.abs(total) - DUST * n  # type: ignore[return-value]


def _paired_t(differences: Floats, samples: int, seed: int) -> Floats:
    """The paired t-test; where all differences are equal, it has no spread, and the signs are flipped instead."""
    from scipy import stats

    p = np.empty(differences.shape[1])
    flat = np.ptp(differences, axis=0) <= DUST
    if flat.any():
        p[flat] = permutation(differences[:, flat], samples, seed)
    if not flat.all():
        p[~flat] = stats.ttest_1samp(differences[:, ~flat], 0.0, axis=0).pvalue
    return p


def _wilcoxon(differences: Floats) -> Floats:
    from scipy import stats

    # Equal differences must be equal numbers to share a rank.
    columns = (column[np.abs(column) > DUST].round(12) for column in differences.T)
    return np.array([float(stats.wilcoxon(column).pvalue) for column in columns])


def holm(p: Floats) -> Floats:
    """Holm's correction of the p-values of one family: they hold together, whatever depends on what.

    >>> holm(np.array([0.01, 0.04, 0.03]))
    array([0.03, 0.06, 0.06])
    """
    order = np.argsort(p, kind="stable")
    corrected = np.empty(len(p))
    corrected[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1.0)
    return corrected


def effect_size(difference: Floats) -> float | None:
    """The mean of the differences over their standard deviation (d_z); None where they do not differ.

    >>> effect_size(np.array([1.0, 2.0, 3.0]))
    2.0
    """
    spread = float(np.std(difference, ddof=1)) if len(difference) > 1 else 0.0
    return float(difference.mean()) / spread if spread > DUST else None


def intervals(
    differences: Floats, confidence: float = 0.95, *, samples: int = 10_000, seed: int = 0
) -> tuple[Floats, Floats]:
    """The percentile interval of each column's mean, from `samples` seeded bootstrap resamples of the queries."""
    tail = (1 - confidence) / 2
    low, high = np.empty(differences.shape[1]), np.empty(differences.shape[1])
    width = max(ROOM // samples, 1)
    for first in range(0, differences.shape[1], width):
        some = slice(first, first + width)
        means = np.concatenate(list(bootstrap(differences[:, some], samples, seed)))
        low[some], high[some] = np.quantile(means, [tail, 1 - tail], axis=0)
    return low, high


def bootstrap(values: Floats, samples: int, seed: int) -> Iterator[Floats]:
    """The mean of each column over resamples of the queries, some resamples at a time, (n_some, n_columns).

    A resample takes as many queries as there are, with replacement, the same ones for all columns.
    """
    summed = blocks(values, seed)
    rng, n = np.random.default_rng([seed, 1]), len(summed)
    for rows in _steps(samples, n):
        drawn = rng.integers(0, n, (rows, n))
        if summed.shape[1] <= FEW:
            yield np.stack([column[drawn].mean(axis=1) for column in summed.T], axis=1)
        else:  # how often each query was drawn, for all columns at once
            places = (drawn + n * np.arange(rows)[:, None]).ravel()
            times = np.bincount(places, minlength=rows * n).reshape(rows, n)
            yield times.astype(np.float64) @ summed / n


def blocks(values: Floats, seed: int) -> Floats:
    """The queries themselves, or, where they are very many, random blocks of them whose mean is the same.

    >>> blocks(np.ones((100_000, 1)), seed=0).shape
    (20000, 1)
    """
    n = len(values)
    if n <= BLOCKS:
        return values
    shuffled = values[np.random.default_rng([seed, 2]).permutation(n)]
    heads = np.arange(BLOCKS) * n // BLOCKS
    summed: Floats = np.add.reduceat(shuffled, heads, axis=0)
    return summed * (BLOCKS / n)


def _steps(samples: int, n: int) -> Iterator[int]:
    """So many samples in steps of bounded size, which depend on the queries alone: so do the numbers drawn."""
    step = min(max(ROOM // n, 1), 256)
    for first in range(0, samples, step):
        yield min(step, samples - first)
