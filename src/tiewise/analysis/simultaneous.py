"""Differences of systems tested at once: an interval and a p-value of one kind for each.

The differences of a comparison are one family: every pair of systems, or every system against a baseline, in every
measure. The largest statistic of the family, drawn where no two systems differ, gives one critical value for all
intervals, and the p-value of each difference. So an interval excludes 0 exactly if p < α, with α = 1 − confidence, and
the probability that any system is falsely shown to be better is about α, also if the best one is chosen after looking.

- ``max-t``: the largest paired t-statistic. Each has its own standard error. Means are drawn from a normal distribution
  with the systems' covariance; few queries estimate it badly, so it is shrunk towards independent systems. Draws never
  make a p-value smaller than that of Student's t for one difference alone, nor an interval narrower.
- ``tukey``: randomised Tukey HSD (Carterette 2012), the largest difference if the systems change places at random in
  each query. Intervals of one measure have one width.

Draws are of systems, not of pairs; they depend on the values alone, not on names or on the order of the systems.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from tiewise.analysis.significance import ATOL, sum_in_blocks, symmetric_root
from tiewise.caching import cached_method
from tiewise.data.columns import Codes, Floats
from tiewise.metrics.aggregation import sum_over_queries

Test = Literal["max-t", "tukey"]
TESTS: tuple[Test, ...] = get_args(Test)

#: The most draws of the largest statistic, and the fewest.
MAX_DRAWS, MIN_DRAWS = 20_000, 1_000
#: About how many numbers all draws may take: differences and normal numbers of max-t, places of tukey.
MAX_NUMBERS = 100_000_000
#: How many numbers of draws are held at once.
BLOCK = 1 << 17


def level(confidence: float) -> float:
    """α: a difference with a p-value below this is shown.

    >>> level(0.95)
    0.05
    """
    return round(1 - float(confidence), 12)


@dataclass(frozen=True)
class Tested:
    """One difference of a family."""

    p_value: float
    ci: tuple[float, float] | None  #: None for one query, and if all of too few differences are the same


class Family:
    """All differences of some systems in some measures, tested at once.

    `values` has an array for each measure, (n_queries, n_systems), and `kept` says which of all queries these are.
    `baseline` is the column of the system that all others are compared with; None: all pairs.

    >>> scores = np.array([[0.3, 0.1], [0.5, 0.4], [0.9, 0.6]])
    >>> tested = Family([scores], [np.ones(3, dtype=bool)]).test(0, 1)
    >>> round(tested.p_value, 4), [round(end, 3) for end in tested.ci]
    (0.0742, [-0.048, 0.448])
    """

    def __init__(
        self,
        values: Sequence[Floats],
        kept: Sequence[NDArray[np.bool_]],
        *,
        baseline: int | None = None,
        test: Test = "max-t",
        confidence: float = 0.95,
        seed: int = 0,
    ):
        self.alpha, self._is_tukey = level(confidence), test == "tukey"
        order = sort_by_values(values)
        self._column = np.argsort(order)  # of each system in what follows
        ordered = [each[:, order] for each in values]
        systems = len(order)
        self.size = len(values) * (math.comb(systems, 2) if baseline is None else systems - 1)  #: of the family
        self._n = [len(each) for each in values]
        self._mean = [sum_over_queries(each) / len(each) for each in ordered]
        self._error = [(_pooled_error if self._is_tukey else _standard_errors)(each) for each in ordered]
        self._largest = np.empty(0)  # ascending; none for a single t-statistic, which has Student's distribution
        if max(self._n) > 1 and (self._is_tukey or self.size > 1):
            draws = Draws(systems, self.alpha, seed, baseline=None if baseline is None else int(self._column[baseline]))
            if self._is_tukey:
                largest = draws.permuted(_align(ordered, kept), self._n, self._error)
            else:
                largest = draws.normal(_model_queries(ordered, kept), self.size)
            self._largest = np.sort(largest)

    def test(self, a: int, b: int, measure: int = 0) -> Tested:
        """The difference a − b of two systems in a measure, all by their places."""
        return self._test_all(b, measure)[a]

    @cached_method
    def _test_all(self, b: int, measure: int) -> list[Tested]:
        """The differences of all systems from b."""
        mean, j, n = self._mean[measure], self._column[b], self._n[measure]
        gaps, error = (mean - mean[j])[self._column], self._error[measure][self._column, j]
        if n < 2:
            return [Tested(1.0, None)] * len(gaps)
        varies, is_zero = error > ATOL, np.abs(gaps) <= ATOL
        p_of_equal = np.where(is_zero, 1.0, self._p_of_equal(n))  # for the same difference in every query
        p = np.where(varies, self._p_values(np.abs(gaps) / np.where(varies, error, 1.0), n), p_of_equal)
        half = np.where(varies, self._critical(n) * error, 0.0)
        columns = (p, gaps - half, gaps + half, varies | is_zero | (p < self.alpha))
        rows = zip(*(column.tolist() for column in columns), strict=True)
        return [Tested(p_value, (low, high) if has_interval else None) for p_value, low, high, has_interval in rows]

    def shown(self, measure: int = 0) -> NDArray[np.bool_]:
        """Which system is shown to be better than which, (n_systems, n_systems): the interval is above 0."""
        mean, error, n = self._mean[measure], self._error[measure], self._n[measure]
        gaps = mean[:, None] - mean
        if n < 2:
            return np.zeros(gaps.shape, dtype=bool)
        equal = (gaps > ATOL) & (self._p_of_equal(n) < self.alpha)
        better = np.where(error <= ATOL, equal, gaps - self._critical(n) * error > 0)
        return np.asarray(better[np.ix_(self._column, self._column)])

    def _p_of_equal(self, n: int) -> float:
        """The p-value of `n` equal differences: that of sign flips, after Bonferroni; they have no standard error."""
        return min(self.size * 0.5 ** (n - 1), 1.0)

    def _p_values(self, statistics: Floats, n: int) -> Floats:
        from scipy.special import ndtri, stdtr

        alone: Floats = 2 * stdtr(n - 1, -statistics)
        if not len(self._largest):
            return alone
        scores = statistics if self._is_tukey else -ndtri(alone / 2)
        reached = len(self._largest) - np.searchsorted(self._largest, scores - ATOL)
        drawn = (1 + reached) / (1 + len(self._largest))
        return drawn if self._is_tukey else np.maximum(drawn, alone)

    def _critical(self, n: int) -> float:
        """What the statistic of `n` queries must exceed, so that its p-value is below α."""
        from scipy.special import ndtr, stdtrit

        single = float(-stdtrit(n - 1, self.alpha / 2))
        if not len(self._largest):
            return single
        score = critical_score(self._largest, self.alpha)
        return score if self._is_tukey else max(float(-stdtrit(n - 1, ndtr(-score))), single)


def critical_score(largest: Floats, alpha: float) -> float:
    """What a statistic must exceed, so that its p-value by these draws, in ascending order, is below α."""
    most = math.ceil(alpha * (len(largest) + 1) - 1)  # p < α if fewer draws than this are as large
    return float(largest[-most]) + ATOL


def sort_by_values(values: Sequence[Floats]) -> Codes:
    """The systems in an order that depends on their values only."""
    keys = [
        tuple(part for each in values for part in (each[:, i].sum(), each[:, i].tobytes()))
        for i in range(values[0].shape[1])
    ]
    return np.array(sorted(range(len(keys)), key=keys.__getitem__))


def _standard_errors(values: Floats) -> Floats:
    """The standard error of the mean of every difference, (n_systems, n_systems)."""
    n = len(values)
    return distances(values - values.mean(axis=0)) / math.sqrt(n * max(n - 1, 1))


def _pooled_error(values: Floats) -> Floats:
    """One standard error for all differences; it stays the same if systems change places within queries."""
    n, systems = values.shape
    squares = float(((values - values.mean(axis=1, keepdims=True)) ** 2).sum())
    return np.full((systems, systems), math.sqrt(2 * squares / (systems - 1)) / n)


def distances(columns: Floats) -> Floats:
    """The Euclidean distances of all columns."""
    rows = np.ascontiguousarray(columns.T)
    return np.stack([np.sqrt(((rows - row) ** 2).sum(axis=1)) for row in rows])


def _align(values: Sequence[Floats], kept: Sequence[NDArray[np.bool_]]) -> list[Floats]:
    """The columns of all measures over the same queries, 0 where a measure lacks one; very many in blocks."""
    union, systems = np.logical_or.reduce(kept), values[0].shape[1]
    whole = np.zeros((int(union.sum()), len(values) * systems))
    for place, (each, own) in enumerate(zip(values, kept, strict=True)):
        whole[own[union], place * systems : (place + 1) * systems] = each
    blocks = sum_in_blocks(whole, 0)
    return np.split(blocks * (len(whole) / len(blocks)), len(values), axis=1)


def _model_queries(values: Sequence[Floats], kept: Sequence[NDArray[np.bool_]]) -> list[Model]:
    """A model of the means of each measure; fewer rows with the same covariance replace many queries."""
    columns, systems = _align([each - each.mean(axis=0) for each in values], kept), values[0].shape[1]
    if len(columns) * systems < len(columns[0]):
        columns = np.split(symmetric_root(np.hstack(columns)), len(columns), axis=1)
    return [Model([each], systems / (systems + len(own))) for each, own in zip(columns, values, strict=True)]


class Draws:
    """Draws of the largest statistic of a family where no two systems differ; columns are ordered by their values."""

    def __init__(self, systems: int, alpha: float, seed: int, *, baseline: int | None = None):
        self._systems, self._alpha, self._seed, self._baseline = systems, alpha, seed, baseline

    def normal(self, models: Sequence[Model], differences: int, tested: NDArray[np.bool_] | None = None) -> Floats:
        """The largest normal deviation of all differences.

        A draw weights the queries at random, the same for all systems and measures, so that means have the covariance
        of the queries. Noise of each system replaces a share of it: few queries make differences seem to depend on
        each other, and too small a maximum would follow. With `tested`, the largest is that of i − j for those pairs
        alone; draws are the same for all calls.
        """
        rng, rows = np.random.default_rng([self._seed, 4]), models[0].n_rows

        def fill(largest: Floats) -> None:
            weights = rng.standard_normal((len(largest), rows))
            for model in models:
                self._raise(largest, model.draw(weights, rng), model.factor, tested)

        numbers = differences * max(len(model.parts) for model in models) + rows
        return self._repeat(fill, numbers=numbers, held=max(rows, self._systems))

    def permuted(self, columns: Sequence[Floats], sizes: Sequence[int], errors: Sequence[Floats]) -> Floats:
        """The largest difference if the systems change places at random in each query, over its standard error."""
        factors = [
            0.0 if error[0, 0] <= ATOL else 1 / (n * error[0, 0]) for n, error in zip(sizes, errors, strict=True)
        ]
        rng, (queries, systems) = np.random.default_rng([self._seed, 4]), columns[0].shape
        everyone = np.ones(systems, dtype=bool)

        def fill(largest: Floats) -> None:
            places = np.broadcast_to(np.arange(systems, dtype=np.int32), (len(largest), queries, systems))
            places = rng.permuted(places, axis=2)
            for each, factor in zip(columns, factors, strict=True):
                drawn = factor * np.take_along_axis(each[None], places, axis=2).sum(axis=1)
                self._raise(largest, [(drawn, everyone)])

        return self._repeat(fill, numbers=5 * queries * systems * len(columns), held=queries * systems)

    def _repeat(self, fill: Callable[[Floats], None], *, numbers: int, held: int) -> Floats:
        """As many draws as there is time for, if each takes so many numbers; enough for α in any case."""
        fewest = max(MIN_DRAWS, math.ceil(20 / self._alpha))
        largest = np.zeros(max(min(MAX_NUMBERS // numbers, MAX_DRAWS), fewest))
        step = max(BLOCK // held, 1)
        for first in range(0, len(largest), step):
            fill(largest[first : first + step])
        return largest

    def _raise(
        self,
        largest: Floats,
        drawn: Sequence[tuple[Floats, NDArray[np.bool_]]],
        factor: Floats | None = None,
        tested: NDArray[np.bool_] | None = None,
    ) -> None:
        """Raise each number to the largest difference in its row of `drawn`, times the factor of the pair.

        `drawn` are parts of the means, each with the systems that have it; all have the first. Differences are
        absolute; with `tested`, they are those of i − j alone.
        """
        if factor is None and self._baseline is None:
            np.maximum(largest, np.ptp(drawn[0][0], axis=1), out=largest)
            return
        rows = [(np.ascontiguousarray(part.T), has) for part, has in drawn]
        for first in range(self._systems - 1) if self._baseline is None else (self._baseline,):
            others = slice(first + 1 if self._baseline is None else 0, None)
            if tested is not None and not (tested[first, others].any() or tested[others, first].any()):
                continue
            gaps = rows[0][0][others] - rows[0][0][first]
            for part, has in rows[1:]:
                if has[first]:
                    gaps += has[others, None] * (part[others] - part[first])
            if factor is not None:
                gaps *= factor[first, others, None]
            if tested is None:
                np.abs(gaps, out=gaps)
            else:
                gaps = np.maximum(tested[others, first, None] * gaps, tested[first, others, None] * -gaps)
            np.maximum(largest, gaps.max(axis=0), out=largest)


class Model:
    """Normal means of systems with the covariance of their queries, of which noise replaces a share.

    `parts` have the rows of the same systems, centred, each row with its own weight: (n_rows, n_systems), NaN in the
    columns of systems that lack a part. A difference has the parts that both systems have.
    """

    def __init__(self, parts: Sequence[Floats], share: float):
        self.n_rows, systems = sum(map(len, parts)), parts[0].shape[1]
        noise, square = np.zeros(systems), np.zeros((systems, systems))
        whole: list[tuple[Floats, NDArray[np.bool_]]] = []
        for part in parts:
            has: NDArray[np.bool_] = np.isfinite(part[:1]).all(axis=0).astype(bool)
            filled = part if has.all() else np.where(has, part, 0.0)
            alone = (filled - filled.sum(axis=1, keepdims=True) / max(has.sum(), 1)) * has
            noise += (alone**2).sum(axis=0) * has.sum() / max(has.sum() - 1, 1)
            square += np.where(has & has[:, None], distances(filled) ** 2, 0.0)
            whole.append((filled * math.sqrt(1 - share), has))
        self._noise = np.sqrt(share * noise)
        whole.sort(key=lambda one: not one[1].all())
        if not whole[0][1].all():  # noise is added to the first part
            whole.insert(0, (np.zeros((0, systems)), np.ones(systems, dtype=bool)))
        self.parts = whole
        variance = self._noise[:, None] ** 2 + self._noise**2
        #: one over the standard deviation of each difference; 0 if the two are equal in every query
        self.factor = np.where(
            np.sqrt(square) > ATOL, 1 / np.sqrt(np.maximum((1 - share) * square + variance, ATOL**2)), 0.0
        )

    def draw(self, weights: Floats, rng: np.random.Generator) -> list[tuple[Floats, NDArray[np.bool_]]]:
        """The parts of the means for weights of the queries, (n_draws, n_systems) each, with who has them."""
        ends = np.cumsum([len(part) for part, _ in self.parts])
        drawn = [weights[:, end - len(part) : end] @ part for (part, _), end in zip(self.parts, ends, strict=True)]
        drawn[0] = drawn[0] + rng.standard_normal((len(weights), len(self._noise))) * self._noise
        return [(one, has) for one, (_, has) in zip(drawn, self.parts, strict=True)]
