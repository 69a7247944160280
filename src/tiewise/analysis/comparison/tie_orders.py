"""The difference of two systems, or the value of one, over the orders of ties: range, std, who is ahead how often.

The ties of each run are broken independently, or one order breaks those of all runs: one order for each query, or one
order of all documents for all queries (a shared order). With independent orders the extremes are means of the queries'
extremes; they contain the extremes of any other kind of orders.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import isnan, sqrt
from operator import attrgetter
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tiewise.analysis.comparison.distribution import (
    Distribution,
    Probabilities,
    TiedGroups,
    add_distributions,
    compare_distributions,
)
from tiewise.analysis.comparison.shared_order import Component, enumerate_components, link_groups
from tiewise.analysis.comparison.system import Aligned, System
from tiewise.analysis.significance import ATOL
from tiewise.caching import cached_property
from tiewise.data.columns import Codes, Floats
from tiewise.metrics.estimate import Estimate, Method, Methods

Orders = Literal["independent", "per-query", "shared"]


@dataclass(frozen=True)
class TieOutcome:
    """What the orders of ties make of a difference."""

    difference: Estimate
    exact_range: bool  #: whether some orders give the minimum and the maximum
    std_error: float | None  #: the standard error of std, if orders were sampled for it
    find_probabilities: Callable[[], Probabilities]

    @cached_property
    def probabilities(self) -> Probabilities:
        """How likely the difference is above, at and below 0; computed when it is looked at."""
        return self.find_probabilities()

    @property
    def reversed(self) -> TieOutcome:
        """The same for the negative difference."""
        low, mean, high = (
            None if part is None else 0.0 - part
            for part in (self.difference.maximum, self.difference.expected, self.difference.minimum)
        )
        negative = replace(self.difference, minimum=low, expected=mean, maximum=high)
        find = partial(attrgetter("probabilities.reversed"), self)
        return replace(self, difference=negative, find_probabilities=find)


@dataclass(frozen=True)
class _Sum:
    """The sum of the differences over queries."""

    minimum: float
    maximum: float
    variance: float
    probabilities: Probabilities | None = None  #: None: not computed yet
    exact_range: bool = True
    std_error: float | None = None


def analyze_tie_orders(
    systems: Sequence[System], places: Sequence[int], values: Aligned, orders: Orders, *, seed: int
) -> TieOutcome:
    """What the orders of ties make of the difference of two systems, or of the value of one.

    `places` are the columns of these systems in `values`.
    """
    n, scale = len(values.queries), values.scale
    own, *other = (values.sums()[place] for place in places)
    sums = own.minus(*other) if other else own
    method = Methods.concatenate([values.methods[place] for place in places], n)
    exact_extremes = method is None or not method.extremes.any()
    total = independent = _Sum(sums.minimum, sums.maximum, sums.variance, exact_range=exact_extremes)
    if orders != "independent" and total.maximum - total.minimum > ATOL:
        total = _in_one_order(systems, values.take(places), total, across_queries=orders == "shared", seed=seed)
    expected = sums.expected / n
    minimum, maximum = min(total.minimum / n, expected), max(total.maximum / n, expected)
    std = sqrt(total.variance) / n * scale
    difference = Estimate(
        expected=expected * scale,
        minimum=minimum * scale,
        maximum=maximum * scale,
        std=None if isnan(std) else std,
        measure=values.measure.name,
    )
    if method is not None:
        difference = method.describe(difference, scale / n)
    if total is not independent:
        words = dict(difference.method)
        if total.exact_range:
            words["extremes"] = "exact"
        elif words["extremes"] == "exact":  # one order for all runs may not reach these ends
            words["extremes"] = "bound"
        if total.std_error is not None:
            words["std"] = "sampled"
        difference = replace(difference, method=Method(**words))
    error = None if total.std_error is None else total.std_error / n * scale
    find = partial(_find_probabilities, systems, values, (minimum, expected, maximum), total.probabilities, seed)
    return TieOutcome(difference, total.exact_range, error, find)


def _find_probabilities(
    systems: Sequence[System],
    values: Aligned,
    means: tuple[float, float, float],
    found: Probabilities | None,
    seed: int,
) -> Probabilities:
    """Who is ahead how often; `means` are the lowest, the expected and the highest difference, not scaled."""
    minimum, expected, maximum = means
    if len(systems) == 1 or minimum > ATOL or maximum < -ATOL or maximum - minimum <= ATOL:
        found = Probabilities.of_sign(expected)
    elif found is None:
        first, second = (one.sum_distribution(values.measure, values.kept, seed) for one in systems)
        found = compare_distributions(first, second, ATOL * len(values.queries))
    return found.restrict(minimum, maximum)


# -- one order for all runs -------------------------------------------------------------------------------------------


def _in_one_order(
    systems: Sequence[System], values: Aligned, independent: _Sum, *, across_queries: bool, seed: int
) -> _Sum:
    """The sum with one order for all runs, in each query or in all of them.

    The numbers are exact if all components can be enumerated. A query with too many arrangements keeps the range of
    independent orders. Queries that share documents in too many arrangements keep the sum of their own ranges. Both
    are bounds that no order may reach.
    """
    documents = [system.documents[values.measure] for system in systems]
    in_queries = link_groups(documents, across_queries=False)
    linked = link_groups(documents, across_queries=True) if across_queries else in_queries
    if in_queries is None or linked is None:
        return _sample(systems, values, replace(independent, exact_range=False), seed)
    runs = [one.tied for one in documents]
    components, open_queries, exact_range = _choose_components(in_queries, linked, runs)
    distributions = enumerate_components(components, runs)
    row = np.cumsum(values.kept) - 1  # the row of each judged query among those compared
    is_open = np.zeros(len(values.queries), dtype=bool)
    is_open[row[sorted(open_queries)]] = True
    minimum, maximum = (
        float(np.where(is_open, end, values.difference).sum() + sum(one.values[at] - one.mean for one in distributions))
        for at, end in zip((0, -1), values.difference_range, strict=True)
    )
    if any(one.arrangements is None for one in linked):
        return _sample(systems, values, _Sum(minimum, maximum, np.nan, exact_range=exact_range), seed)
    total = add_distributions(distributions, samples=systems[0].draws, seed=seed)
    first, *others = (system.constant(values.measure, values.kept) for system in systems)
    zero = Distribution.of_constant(sum(others) - first)
    probabilities = compare_distributions(total, zero, ATOL * len(values.queries))
    return _Sum(minimum, maximum, sum(one.variance for one in distributions), probabilities)


def _sample(systems: Sequence[System], values: Aligned, bounds: _Sum, seed: int) -> _Sum:
    """The variance and the probabilities from random orders that are the same for all runs."""
    each = [system.sample_sums(values.measure, values.kept, seed) for system in systems]
    n = min(map(len, each))
    first, *others = (sums[:n] for sums in each)
    sampled = first - sum(others)
    atol = ATOL * len(values.queries)
    probabilities = compare_distributions(Distribution.of_samples(sampled), Distribution.of_constant(0.0), atol)
    error = _standard_error_of_std(sampled)
    return replace(bounds, variance=float(sampled.var()), probabilities=probabilities, std_error=error)


def _standard_error_of_std(sampled: Floats) -> float:
    """The standard error of the standard deviation of samples, by their fourth moment (the delta method)."""
    squares = (sampled - sampled.mean()) ** 2
    variance = squares.mean()
    return float(np.sqrt(squares.var() / len(sampled) / (4 * variance))) if variance > 0 else 0.0


def _choose_components(
    in_queries: Sequence[Component], linked: Sequence[Component], runs: Sequence[TiedGroups]
) -> tuple[list[Component], set[int], bool]:
    """The components to enumerate, the queries with others, and whether some order gives the range of the sum.

    Components across queries, `linked`, consist of components within queries, `in_queries`. A linked component with too
    many arrangements has the sum of the ranges of its parts. If the parts and their documents make a tree (no cycle of
    parts, each with a document of the next), some order gives every part its extreme: two parts share at most one
    document, so they never need opposite orders, nor do several in a circle.
    """
    owner = {
        (run, group): index
        for index, one in enumerate(linked)
        for run, groups in enumerate(one.groups)
        for group in groups
    }
    parts_of: list[list[Component]] = [[] for _ in linked]
    for part in in_queries:
        parts_of[owner[part.first]].append(part)
    query_of = {part.first: int(runs[part.first[0]].query[part.first[1]]) for part in in_queries}
    # The range of one run in each query needs no enumeration.
    is_known = len(runs) == 1 and any(one.arrangements is None for one in linked)
    open_queries = {query_of[part.first] for part in in_queries if is_known or part.arrangements is None}
    chosen: list[Component] = []
    exact_range = not open_queries
    for one, parts in zip(linked, parts_of, strict=True):
        enumerable = [part for part in parts if query_of[part.first] not in open_queries]
        if one.arrangements is not None and len(enumerable) == len(parts):
            chosen.append(one)
        else:
            chosen += enumerable
            is_tree = sum(part.size for part in parts) - one.size == len(parts) - 1
            exact_range &= is_tree
    return chosen, open_queries, exact_range


@dataclass(frozen=True)
class RankRanges:
    """The best and the worst rank of each system over the orders of ties, and whether an order reaches them."""

    best: Codes  # (n_systems,)
    worst: Codes
    reached: NDArray[np.bool_]


def rank_independently(minimum: Floats, maximum: Floats) -> RankRanges:
    """The ranks if each system may be anywhere in its range; equal values share a rank.

    >>> ranks = rank_independently(np.array([0.3, 0.2, 0.1]), np.array([0.4, 0.35, 0.1]))
    >>> ranks.best, ranks.worst
    (array([1, 1, 3]), array([2, 2, 3]))
    """
    n, lows, highs = len(minimum), np.sort(minimum), np.sort(maximum)
    best = 1 + n - np.searchsorted(lows, maximum + ATOL, side="right")
    # The highest value of a tied system is above its own lowest; it is not one of the others.
    worst = n - np.searchsorted(highs, minimum + ATOL, side="right") + (maximum <= minimum + ATOL)
    return RankRanges(best, worst, np.ones(n, dtype=bool))


def rank_in_one_order(lowest: Floats, exact: NDArray[np.bool_], sampled: Floats) -> RankRanges:
    """The ranks if one order breaks the ties of all systems.

    `lowest` has the lowest value of i − j for each pair, `exact` whether some order gives it, and `sampled` the values
    of all systems in some orders, (n_orders, n_systems).

    >>> lowest = np.array([[0.0, -0.1, 0.2], [-0.2, 0.0, 0.1], [-0.4, -0.3, 0.0]])
    >>> ranks = rank_in_one_order(lowest, np.ones((3, 3), dtype=bool), np.array([[0.4, 0.3, 0.1]]))
    >>> ranks.best, ranks.worst, ranks.reached
    (array([1, 1, 3]), array([2, 2, 3]), array([ True,  True,  True]))
    """
    always_above, can_be_above = lowest > ATOL, lowest.T < -ATOL
    best, worst = 1 + always_above.sum(axis=0), 1 + can_be_above.sum(axis=0)
    # The extremes of a pair are those of the rank if there is only one rival. Otherwise an order must show them.
    rivals = can_be_above & ~always_above
    is_known = (rivals.sum(axis=0) <= 1) & (exact | ~rivals).all(axis=0)
    ranks = _ranks(sampled)
    reached = is_known | ((ranks.min(axis=0) == best) & (ranks.max(axis=0) == worst))
    return RankRanges(best, worst, reached)


def _ranks(means: Floats) -> Codes:
    """1 + the number of systems that are higher, in each row."""
    order = np.argsort(-means, axis=1)
    descending = np.take_along_axis(means, order, axis=1)
    ranks = np.empty(means.shape, dtype=np.int64)
    np.put_along_axis(ranks, order, np.arange(1, means.shape[1] + 1)[None, :], axis=1)
    for row in np.flatnonzero((descending[:, :-1] - descending[:, 1:] <= 2 * ATOL).any(axis=1)):  # nearly equal
        ranks[row] = 1 + np.searchsorted(-descending[row], -means[row] - ATOL)
    return ranks
