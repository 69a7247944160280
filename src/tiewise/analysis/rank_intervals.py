"""Ranks that a sample leaves open, from the differences of all pairs of systems, tested at once and step by step.

The rank of a system lies between 1 + the number of systems that are shown to be better and S − the number of those
shown to be worse. The hypotheses "i is not better than j" are one family: a pair is shown if its t-statistic exceeds
the quantile of the largest of all. Those that are shown leave the family, and the largest of the rest is drawn again,
until no more are shown. So the probability that any interval misses its rank is about α (Mogstad, Romano, Shaikh and
Wilhelm 2024; percentiles of bootstrapped ranks have no such property).

Statistics are means over units: collections, or groups of them. What is sampled again is one of two:

- `over_queries`: the queries of each collection. The variances of collections add up; the degrees of freedom are those
  of Welch and Satterthwaite.
- `over_units`: the units, whose number less one gives the degrees of freedom. Units hold samples of queries, so the
  standard error is at least that of `over_queries`, below which that of few units falls by chance.

A system may lack units: a pair has the units that both have. The draws are those of `simultaneous`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tiewise.analysis.significance import ATOL, symmetric_root
from tiewise.analysis.simultaneous import Draws, Model, critical_score, distances, level
from tiewise.data.columns import Codes, Floats
from tiewise.metrics.aggregation import sum_over_queries


@dataclass(frozen=True)
class RankIntervals:
    """The ranks of each system that a sample leaves open."""

    low: Codes  # (n_systems,)
    high: Codes
    shown: NDArray[np.bool_]  # (n_systems, n_systems): the first is shown to be better than the second


@dataclass(frozen=True)
class Differences:
    """The mean difference of every pair of systems, and how another sample would change it, (n_systems, n_systems)."""

    gap: Floats  #: 0 where two systems have no unit in common
    error: Floats  #: the standard error; infinite where it is not known
    freedom: Floats  #: the degrees of freedom of Student's t
    n: Floats  #: how many queries, or units, are behind it
    model: Model  #: of the joint distribution


def unit_means(values: Sequence[Floats], units: Sequence[int]) -> Floats:
    """The mean over the collections of each unit, (n_units, n_systems); NaN if a system lacks one.

    `values` has the queries of each collection, (n_queries, n_systems), NaN in the columns of systems that lack it.

    >>> a, b = np.array([[0.25, 0.5], [0.75, 0.5]]), np.array([[1.0, np.nan]])
    >>> unit_means([a, b], [0, 0]), unit_means([a, b], [0, 1])
    (array([[0.75,  nan]]), array([[0.5, 0.5],
           [1. , nan]]))
    """
    total, parts = np.zeros((max(units) + 1, values[0].shape[1])), np.bincount(units)
    for each, unit in zip(values, units, strict=True):
        total[unit] += sum_over_queries(each) / len(each)
    return np.asarray(total / parts[:, None])


def over_queries(values: Sequence[Floats], units: Sequence[int]) -> Differences:
    """The differences if other queries are drawn for the same collections: see `unit_means`."""
    means, parts = unit_means(values, units), np.bincount(units)
    has = ~np.isnan(means)
    gap, common = _mean_gaps(means)
    variance, squared, n = np.zeros_like(gap), np.zeros_like(gap), np.zeros_like(gap)
    rows: dict[bytes, list[Floats]] = {}  # units that the same systems have are one part of the model
    for each, unit in zip(values, units, strict=True):
        queries, both = len(each), has[unit] & has[unit][:, None]
        n += both * queries
        if queries < 2:  # its variance is not known
            variance[both] = np.inf
            continue
        scaled = (each - sum_over_queries(each) / queries) / (parts[unit] * math.sqrt(queries * (queries - 1)))
        own = np.where(both, distances(np.nan_to_num(scaled)) ** 2, 0.0)
        variance += own
        squared += own**2 / (queries - 1)
        rows.setdefault(has[unit].tobytes(), []).append(np.where(has[unit], scaled, np.nan))
    with np.errstate(invalid="ignore"):
        freedom = np.where((squared > 0) & np.isfinite(variance), variance**2 / np.maximum(squared, 1e-300), n - 1)
    error = np.where(common > 0, np.sqrt(variance) / np.maximum(common, 1), np.inf)
    return Differences(gap, error, freedom, n, _model([np.vstack(some) for some in rows.values()], gap))


def over_units(means: Floats, least: Floats | None = None) -> Differences:
    """The differences if other units are drawn; `means` is what `unit_means` returns.

    `least` has the standard errors over queries, (n_systems, n_systems).
    """
    gap, common = _mean_gaps(means)
    has, square = ~np.isnan(means), np.zeros_like(gap)
    for unit, own in enumerate(has):
        both = own & own[:, None]
        square[both] += (_gaps(means[unit]) - gap)[both] ** 2
    error = np.where(common > 1, np.sqrt(square / np.maximum(common * (common - 1), 1)), np.inf)
    if least is not None:
        error = np.maximum(error, np.where(np.isfinite(least), least, 0.0))
    known = np.nan_to_num(means)
    centred = np.where(has, known - (known.sum(axis=1) / np.maximum(has.sum(axis=1), 1))[:, None], 0.0)
    centred = np.where(has, centred - centred.sum(axis=0) / np.maximum(has.sum(axis=0), 1), np.nan)
    rows: dict[bytes, list[Floats]] = {}
    for unit, own in enumerate(has):
        rows.setdefault(own.tobytes(), []).append(centred[unit])
    return Differences(gap, error, np.maximum(common - 1, 1), common, _model([*map(np.array, rows.values())], gap))


def rank_intervals(found: Differences, confidence: float, seed: int = 0) -> RankIntervals | None:
    """The ranks that hold for all systems at once; None if no pair has a standard error.

    >>> means = np.array([[0.9, 0.5, 0.1], [0.8, 0.5, 0.1], [0.9, 0.4, 0.2], [0.8, 0.4, 0.1]])
    >>> intervals = rank_intervals(over_units(means), 0.95)
    >>> intervals.low, intervals.high
    (array([1, 2, 3]), array([1, 2, 3]))
    """
    if not np.isfinite(found.error[~np.eye(len(found.gap), dtype=bool)]).any():
        return None
    shown = _show(found, level(confidence), seed)
    return RankIntervals(1 + shown.sum(axis=0), len(shown) - shown.sum(axis=1), shown)


def _show(found: Differences, alpha: float, seed: int) -> NDArray[np.bool_]:
    """Which system is shown to be better than which: the first is higher in all steps together."""
    from scipy.special import ndtri

    systems, scores = len(found.gap), _scores(found, alpha)
    shown = np.zeros(scores.shape, dtype=bool)
    tested = np.isfinite(found.error) & ~np.eye(systems, dtype=bool)
    if systems == 2:  # Student's t
        return np.asarray(tested & (scores > -ndtri(alpha / 2)))
    draws, single = Draws(systems, alpha, seed), float(-ndtri(alpha))
    while tested.any():
        largest = np.sort(draws.normal([found.model], math.comb(systems, 2), tested))
        better = tested & (scores > max(critical_score(largest, alpha), single))
        if not better.any():
            break
        shown |= better
        tested &= ~better
    return shown


def _scores(found: Differences, alpha: float) -> Floats:
    """The t-statistics as normal scores: a statistic that few units make is far from 0 more often by chance."""
    from scipy.special import ndtri, stdtr

    varies = (found.error > ATOL) & np.isfinite(found.error)
    t = np.abs(found.gap) / np.where(varies, found.error, np.inf)
    scores = -ndtri(stdtr(np.where(varies, found.freedom, 1.0), -t))
    # Equal differences have no standard error: their p-value is that of sign flips, after Bonferroni.
    pairs = math.comb(len(t), 2)
    is_equal = (found.error <= ATOL) & (np.abs(found.gap) > ATOL) & (pairs * 0.5 ** (found.n - 1) < alpha)
    return np.asarray(np.where(is_equal, np.inf, np.abs(scores)) * np.sign(found.gap))


def _gaps(values: Floats) -> Floats:
    return np.asarray(values[:, None] - values)


def _mean_gaps(means: Floats) -> tuple[Floats, Floats]:
    """The mean difference of every pair over the units that both have, and how many these are."""
    has = ~np.isnan(means)
    common: Floats = (has[:, :, None] & has[:, None, :]).sum(axis=0).astype(np.float64)
    total = np.zeros_like(common)
    for row in means:
        total += np.nan_to_num(_gaps(row))
    return total / np.maximum(common, 1), common


def _model(parts: Sequence[Floats], gap: Floats) -> Model:
    """The model of the means, from the rows of each part; fewer rows with the same covariance replace many."""
    systems, n = len(gap), sum(map(len, parts))
    rows = []
    for part in parts or [np.zeros((1, systems))]:
        has = ~np.isnan(part[0])
        fewer = part
        if len(part) > systems:
            fewer = np.full((int(has.sum()), systems), np.nan)
            fewer[:, has] = symmetric_root(part[:, has])
        rows.append(fewer)
    return Model(rows, systems / (systems + n))
