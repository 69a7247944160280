"""All arithmetic on tie groups, over all queries at once.

The tie groups of a ranking follow each other. What stands above a group is a fixed number of documents, so groups are
independent, and expectation and variance are sums over groups. For a group of n documents after c others, with
r relevant in it and R relevant above it,

    M   = Σ_r gain(label_r) · payoff(r, seen_{r−1}) / divisor                                            (1)
    E   = Σ_g Σ_{j=1..n} ḡ_g · E[payoff(c+j, R+H)] / divisor,  H ~ Hypergeometric(n−1, r−1, j−1)         (2)
    Var = Σ_g SS(payoff) · SS(gain) / (n−1) / divisor²,        if payoff ignores `seen`                  (3)
    minimum, maximum, oblivious = (1) on labels sorted ascending, descending, or as given in each group  (4)

A query without ties has one order, so that (1) is all there is to say of it. In the others, only groups that hold
documents of different gain need (2) and (3). They are worked through as dense blocks, groups × ranks, of groups of
about one size, so that memory stays bounded and sums are taken pairwise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tiewise.data.columns import Codes, Floats
from tiewise.errors import MeasureError
from tiewise.metrics.aggregation import GEOMETRIC_MEAN
from tiewise.metrics.definition import SAMPLING, Measure, Sampling
from tiewise.metrics.estimate import BOUND, EXACT, SAMPLED, Estimates, Methods
from tiewise.metrics.grouped_judgments import GroupBlock, GroupedJudgments, GroupSums, Order
from tiewise.metrics.segments import row_sum, safe_divide, segment_sum
from tiewise.tables.wording import count_noun
from tiewise.ties.groups import TieGroups

if TYPE_CHECKING:
    from tiewise.metrics.enumeration import PartStatistics

__all__ = [
    "estimates",
    "expected",
    "expected_with_last_group",
    "group",
    "group_means",
    "linear_moments",
    "mean_and_variance",
    "moments",
    "sum_payoffs",
    "value",
]


def group(measure: Measure, ties: TieGroups) -> GroupedJudgments:
    """The tie groups as a measure sees them: those of condensed lists, if it is measured on these."""
    return GroupedJudgments(ties.condensed() if measure.judged_only else ties)


def value(measure: Measure, grouped: GroupedJudgments, order: Order) -> Floats:
    """A measure in one order, for each query: Eq. (1)."""
    return _Computation(measure, grouped).value(order)


def expected(measure: Measure, grouped: GroupedJudgments, sampling: Sampling = SAMPLING) -> Floats:
    """The expectation over all orders, for each query: Eq. (2). Nothing is sampled if it has a closed form."""
    return _Computation(measure, grouped, sampling).expectation()


def mean_and_variance(measure: Measure, grouped: GroupedJudgments) -> tuple[Floats, Floats]:
    """Expectation and variance over all orders, for each query: Eqs. (2) and (3)."""
    found = _Computation(measure, grouped).statistics(None)
    return found.mean, found.variance


def group_means(measure: Measure, grouped: GroupedJudgments) -> Floats:
    """The expectation of each tie group of a measure that is a sum, before it is divided, (n_groups,)."""
    return _Computation(measure, grouped).all_group_means()


def expected_with_last_group(
    measure: Measure,
    grouped: GroupedJudgments,
    above: Codes,
    filled: GroupedJudgments,
    order: Literal["best", "worst"],
    sampling: Sampling = SAMPLING,
) -> Floats:
    """The expectation in some queries if their last tie group held other documents, in a fixed order.

    `filled` has these queries, with those documents. The tied groups above the last one, `above` of `grouped`, stay in
    random order. Their expectations are those that were computed for `grouped`.
    """
    if not measure.additive:
        return expected(measure, _untie_last_group(measure, filled.ties), sampling)
    computation = _Computation(measure, filled)
    if not measure.is_built_in() or grouped.ties.condensed_end is not None:  # they may depend on the last group
        return computation.with_last_group(order, computation.group_means)
    if measure not in grouped._means:
        grouped._means[measure] = _Computation(measure, grouped).group_means
    means = np.zeros(len(filled.first))
    means[filled.above_last] = grouped._means[measure][above]  # both hold the same groups, in the same order
    return computation.with_last_group(order, means)


def _untie_last_group(measure: Measure, ties: TieGroups) -> GroupedJudgments:
    """The same lists with the documents of the last tie group in their best order, those with a key of 0 at its end."""
    query = ties.qrels.query
    rows = np.flatnonzero((ties.size > 0) & (ties.start == ties.last_start[query]))
    rows = rows[np.lexsort((-measure.key(ties.qrels.label[rows]), query[rows]))]
    start, size = ties.start.copy(), ties.size.copy()
    start[rows] += np.arange(len(rows)) - np.searchsorted(query[rows], query[rows])
    size[rows] = 1
    return GroupedJudgments(replace(ties, start=start, size=size))


def estimates(
    measure: Measure, grouped: GroupedJudgments, *, oblivious: str | None = None, sampling: Sampling = SAMPLING
) -> Estimates:
    """Expectation, extremes, variance and, for a named order, the oblivious value of a measure for each query."""
    _check_depth(measure, grouped)
    found, judged_weight = _Computation(measure, grouped, sampling).statistics(oblivious), measure.judged_weight()
    is_geometric = measure.aggregation is GEOMETRIC_MEAN  # else the tie groups need not be kept
    return Estimates(
        measure.name,
        grouped.ties.qrels.queries,
        expected=found.mean,
        minimum=found.minimum,
        maximum=found.maximum,
        variance=np.where(np.isnan(found.mean), np.nan, found.variance),  # NaN: it is not defined for these lists
        oblivious=found.oblivious,
        residual=None if judged_weight is None else 1.0 - expected(judged_weight, grouped),
        method=found.method,
        aggregation=measure.aggregation,
        powers=partial(_estimates_of_power, measure, grouped, sampling) if is_geometric else None,
    )


def _estimates_of_power(measure: Measure, grouped: GroupedJudgments, sampling: Sampling, exponent: float) -> Estimates:
    return estimates(measure.to_power(exponent), grouped, sampling=sampling)


class _Statistics(NamedTuple):
    """The statistics of each query; without `method` all of them are exact."""

    mean: Floats
    variance: Floats
    minimum: Floats
    maximum: Floats
    oblivious: Floats | None
    method: Methods | None


class _Computation:
    """A measure over some tie groups: what is the same in all orders is worked out once."""

    def __init__(self, measure: Measure, grouped: GroupedJudgments, sampling: Sampling = SAMPLING):
        self.measure, self.grouped, self.sampling = measure, grouped, sampling
        self.depth = measure.depth(grouped)
        self._parts: PartStatistics | None = None  # of what has no closed form
        self._closed: tuple[NDArray[np.bool_], NDArray[np.bool_]]  # whether mean and variance of a part have one

    # -- Eq. (1): one order, or a stack of several --------------------------------------------------------------------

    def value(self, order: Order) -> Floats:
        """Eq. (1), for each query."""
        return self._divide(order.sum(self._terms(order))) if self.measure.additive else self.measure.values(order)

    def _terms(self, order: Order) -> Floats:
        """The terms of Eq. (1), 0 beyond the depth."""
        return np.where(order.rank <= self.depth[order.query], self.measure.terms(order), 0.0)

    def _divide(self, total: Floats, query: Codes | None = None, *, with_base: bool = True) -> Floats:
        """Sums over lists, divided; `query` has the queries of the lists, if there is not one for each."""
        divisor, base = self._divisor, self._base if with_base else None
        if query is not None:
            divisor, base = (None if one is None else one[query] for one in (divisor, base))
        if divisor is not None:
            total = safe_divide(total, divisor)
        return total if base is None else total + base

    @cached_property
    def _divisor(self) -> Floats | None:
        """What each query's sum is divided by; None: by nothing."""
        if type(self.measure).divisor is Measure.divisor:
            return None
        return np.asarray(self.measure.divisor(self.grouped), dtype=np.float64)

    @cached_property
    def _base(self) -> Floats | None:
        """What is added for each query; None: nothing."""
        return None if type(self.measure).base is Measure.base else self.measure.base(self.grouped)

    # -- all orders ---------------------------------------------------------------------------------------------------

    def statistics(self, oblivious: str | None) -> _Statistics:
        """All statistics of each query."""
        measure, grouped = self.measure, self.grouped
        n, tied = grouped.n_queries, grouped.tied_queries
        if measure.additive and not measure.needs_subtopics:
            stack = grouped.stack(measure, oblivious)
            terms = self._terms(stack.order)
            values = self._divide(stack.order.sum(terms), stack.query)
            worst = terms[stack.worst]
        else:
            orders = [grouped.worst(measure), *([] if oblivious is None else [grouped.oblivious(oblivious)])]
            some = [self.value(order)[tied] for order in orders] if len(tied) else []
            values = np.concatenate([self.value(grouped.best(measure)), *some])
            worst = None
        maximum = values[:n]
        if not len(tied):  # without ties, every statistic is the same number
            return _Statistics(maximum, np.zeros(n), maximum, maximum, None if oblivious is None else maximum, None)
        low, high = values[n : n + len(tied)], maximum[tied]
        mean, variance = self._tied_moments(worst) if measure.additive else (x[tied] for x in self.list_moments)
        if measure.sorted_extremes and not measure.is_built_in():
            _check_order(measure, mean, low, high)
        method = None
        if not measure.sorted_extremes:
            closed = (x[tied] for x in self._closed_extremes)
            low, high = (np.where(np.isnan(x), y, x) for x, y in zip(closed, (low, high), strict=True))
        if self._parts is not None:
            low, high, method = self._extremes(self._parts, low, high)
        fixed = low == high  # then no order matters, unless only samples agree
        if method is not None:
            fixed &= method.extremes != SAMPLED
        mean = np.where(fixed, low, np.minimum(np.maximum(mean, low), high))
        variance = np.where(fixed, 0.0, variance)
        if method is not None:
            method = method.take(~fixed).spread(n, tied[~fixed])
        one_order = None
        if oblivious is not None:
            one_order = values[n + len(tied) :]
            one_order = np.where(fixed & ~np.isnan(one_order), low, one_order)
        if len(tied) == n:
            return _Statistics(mean, variance, low, high, one_order, method)
        spread = np.zeros(n)
        spread[tied] = variance

        def whole(column: Floats) -> Floats:
            found = maximum.copy()
            found[tied] = column
            return found

        oblivious_values = None if one_order is None else whole(one_order)
        return _Statistics(whole(mean), spread, whole(low), whole(high), oblivious_values, method)

    def expectation(self) -> Floats:
        """Eq. (2), for each query."""
        if not self.measure.additive:
            return self.list_moments[0]
        found = self.value(self.grouped.best(self.measure))
        found[self.grouped.tied_queries] = self._tied_expectation(None)
        return found

    def _tied_expectation(self, worst: Floats | None) -> Floats:
        """Eq. (2), for each query with ties; `worst` has the terms of the worst order of their documents."""
        grouped, tied = self.grouped, self.grouped.tied_queries
        groups, _ = grouped.tied_groups
        grouped._means[self.measure] = mean = self.group_means
        place, documents = grouped.place_among_tied, grouped.tied_documents
        if worst is None:
            worst = self._terms(grouped.worst(self.measure))[documents]
        # Where a group is not mixed, any order will do.
        certain = np.where(self._mixed_groups[grouped.group[documents]], 0.0, worst)
        fixed = segment_sum(place[grouped.query[documents]], certain, len(tied))
        total = segment_sum(place[grouped.group_query[groups]], mean[groups], len(tied))
        return self._divide(fixed, tied) + self._divide(total, tied, with_base=False)

    def _tied_moments(self, worst: Floats | None) -> tuple[Floats, Floats]:
        """Eqs. (2) and (3), for each query with ties."""
        grouped, tied = self.grouped, self.grouped.tied_queries
        groups, _ = grouped.tied_groups
        variance = self.group_moments[1]
        squares = segment_sum(grouped.place_among_tied[grouped.group_query[groups]], variance[groups], len(tied))
        spread = squares if self._divisor is None else safe_divide(squares, self._divisor[tied] ** 2)
        return self._tied_expectation(worst), spread

    @property
    def group_means(self) -> Floats:
        """The expectations of `group_moments`; variances are not computed if they have no closed form."""
        mean, _ = self._closed_form
        sum_of_all = np.add.reduce(mean)
        return mean if sum_of_all == sum_of_all else self.group_moments[0]

    def all_group_means(self) -> Floats:
        """The expectation of each tie group, before it is divided, also where its order does not matter."""
        return np.where(self._mixed_groups, self.group_means, self.part_values(self.grouped.worst(self.measure)))

    @cached_property
    def _closed_form(self) -> tuple[Floats, Floats]:
        """Expectation and variance of each tie group as `moments` gives them, 0 where its order does not matter."""
        grouped, inside, mixed = self.grouped, self._inside, self._mixed_groups
        mean, variance = np.zeros(len(grouped.first)), np.zeros(len(grouped.first))
        groups = np.flatnonzero(mixed)
        for block in self._sums.blocks(groups, inside[groups]) if len(groups) else ():
            e, var = self.measure.moments(block)
            mean[block.groups], variance[block.groups] = e[:, 0], var[:, 0]
        return mean, variance

    @cached_property
    def group_moments(self) -> tuple[Floats, Floats]:
        """Expectation and variance of each tie group, before they are divided; 0 where its order does not matter."""
        grouped, inside, mixed = self.grouped, self._inside, self._mixed_groups
        mean, variance = self._closed_form
        sum_of_all = np.add.reduce(mean) + np.add.reduce(variance)
        if sum_of_all == sum_of_all and self.measure.sorted_extremes:  # nothing is NaN
            return mean, variance
        self._closed = ~np.isnan(mean), ~np.isnan(variance)
        is_open = ~(self._closed[0] & self._closed[1]) | (mixed & self._has_open_extremes[grouped.group_query])
        if np.count_nonzero(is_open):
            self._parts = parts = self._summarize(np.where(is_open, inside, 0))
            mean = np.where(self._closed[0], mean, parts.mean)
            variance = np.where(self._closed[1], variance, parts.variance)
        return mean, variance

    @cached_property
    def _sums(self) -> GroupSums:
        return self.grouped.sums(self.measure.scaled_gain(self.grouped))

    @cached_property
    def _inside(self) -> Codes:
        """How many ranks of each group lie within the depth, (n_groups,)."""
        grouped = self.grouped
        inside = np.minimum(self.depth[grouped.group_query] - grouped.group_start, grouped.group_size)
        return np.maximum(inside, 0).astype(np.int64)

    @cached_property
    def _mixed_groups(self) -> NDArray[np.bool_]:
        """Whether the order of a group matters, within the depth, (n_groups,)."""
        is_mixed = self._sums.is_mixed
        if not self.measure.sorted_extremes:
            is_mixed = self.grouped.is_mixed(*self.measure.kinds(self.grouped))
        return is_mixed & (self._inside > 0)

    @cached_property
    def list_moments(self) -> tuple[Floats, Floats]:
        """Expectation and variance of each query, for a measure that is not a sum."""
        mean, variance = self.measure.list_moments(self.grouped)
        self._closed = ~np.isnan(mean), ~np.isnan(variance)
        is_open = ~(self._closed[0] & self._closed[1]) | self._has_open_extremes
        if np.count_nonzero(is_open):
            grouped = self.grouped
            mixed = grouped.is_mixed(*self.measure.kinds(grouped)) & is_open[grouped.group_query]
            self._parts = parts = self._summarize(np.where(mixed, self._inside, 0))
            one = self.measure.values(grouped.worst(self.measure))  # where no order changes the value
            found = [np.where(np.isnan(x), y, x) for x, y in ((parts.mean, one), (parts.variance, np.zeros_like(one)))]
            mean, variance = np.where(self._closed[0], mean, found[0]), np.where(self._closed[1], variance, found[1])
        return mean, variance

    # -- without a closed form ----------------------------------------------------------------------------------------

    def _summarize(self, inside: Codes) -> PartStatistics:
        from tiewise.metrics.enumeration import summarize_parts

        keys, unjudged_key = self.measure.kinds(self.grouped)
        return summarize_parts(
            lambda grouped: _Computation(self.measure, grouped).part_values,
            self.grouped,
            keys=keys,
            unjudged_key=unjudged_key,
            inside=inside,
            by_group=self.measure.additive,
            sampling=self.sampling,
        )

    def part_values(self, order: Order) -> Floats:
        """The value of each part in one order: of each tie group before it is divided, or of each query."""
        if not self.measure.additive:
            return self.measure.values(order)
        return segment_sum(self.grouped.group, self._terms(order), len(self.grouped.first))

    def _extremes(self, parts: PartStatistics, low: Floats, high: Floats) -> tuple[Floats, Floats, Methods]:
        """The extremes of tied queries where the sorted orders need not give them, and how statistics were found."""
        grouped, measure, tied = self.grouped, self.measure, self.grouped.tied_queries
        has_mean, has_variance = self._closed
        is_sampled = parts.samples > 0
        error = np.where(is_sampled & ~has_mean, parts.variance / np.maximum(parts.samples, 1), 0.0)
        by_part = [is_sampled & ~has_mean, is_sampled & ~has_variance, is_sampled]
        if measure.additive:
            place, n = grouped.group_query, grouped.n_queries
            by_part = [segment_sum(place, one, n) > 0 for one in by_part]
            total = segment_sum(place, error, n)
            error = total if self._divisor is None else safe_divide(total, self._divisor**2)
        mean_sampled, std_sampled, any_sampled = (one[tied] for one in by_part)
        extremes = np.zeros(len(tied), dtype=np.int8)
        if not measure.sorted_extremes:
            is_open, most = self._has_open_extremes[tied], self._most_extreme(parts, low, high)
            low, high = (np.where(is_open, x, y) for x, y in zip(most, (low, high), strict=True))
            is_open &= any_sampled
            bounds = measure.extreme_bounds(grouped)
            if bounds is not None:
                low, high = (np.where(is_open, x[tied], y) for x, y in zip(bounds, (low, high), strict=True))
            extremes = np.where(is_open, SAMPLED if bounds is None else BOUND, EXACT).astype(np.int8)
        expected, std = (np.where(one, SAMPLED, EXACT).astype(np.int8) for one in (mean_sampled, std_sampled))
        return low, high, Methods(expected, extremes, std, np.where(mean_sampled, np.sqrt(error[tied]), np.nan))

    @cached_property
    def _closed_extremes(self) -> tuple[Floats, Floats]:
        """Minimum and maximum of each query by a closed form, NaN where there is none; the sorted orders are none."""
        return self.measure.extremes(self.grouped)

    @cached_property
    def _has_open_extremes(self) -> NDArray[np.bool_]:
        """Whether the extremes of a query must be searched for among its orders."""
        if self.measure.sorted_extremes:
            return np.zeros(self.grouped.n_queries, dtype=bool)
        low, high = self._closed_extremes
        return np.isnan(low) | np.isnan(high)

    def _most_extreme(self, parts: PartStatistics, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """The lowest and the highest value of all orders that were tried, for each tied query."""
        grouped, tied = self.grouped, self.grouped.tied_queries
        if not self.measure.additive:
            return np.fmin(low, parts.minimum[tied]), np.fmax(high, parts.maximum[tied])
        mixed, order = self._mixed_groups, grouped.worst(self.measure)
        fixed = self._divide(order.sum(np.where(mixed[grouped.group], 0.0, self._terms(order))))
        totals = (segment_sum(grouped.group_query, np.where(mixed, x, 0.0), grouped.n_queries) for x in parts.extremes)
        seen = [(fixed + self._divide(total, with_base=False))[tied] for total in totals]
        return np.fmin(low, seen[0]), np.fmax(high, seen[1])

    # -- lists that may be truncated ----------------------------------------------------------------------------------

    def with_last_group(self, which: Literal["best", "worst"], means: Floats) -> Floats:
        """The expectation of each query with a fixed order of its last tie group; `means` are those of other groups."""
        grouped, measure = self.grouped, self.measure
        order = grouped.best(measure) if which == "best" else grouped.worst(measure)
        above = self._mixed_groups & grouped.above_last
        certain = np.where(above[grouped.group], 0.0, self._terms(order))
        total = segment_sum(grouped.group_query, np.where(above, means, 0.0), grouped.n_queries)
        return self._divide(order.sum(certain)) + self._divide(total, with_base=False)


def moments(measure: Measure, block: GroupBlock) -> tuple[Floats, Floats]:
    """The group step that follows from a measure's payoff alone; the variance is NaN if it depends on `seen`."""
    if measure.uses_seen:
        total = sum_payoffs(measure.payoff, block, block.relevant, block.seen)
        return block.gain / block.size * total, np.full_like(block.start, np.nan)
    return linear_moments(measure.payoff(block.rank, block.rank), block)


def linear_moments(payoff: Floats, block: GroupBlock) -> tuple[Floats, Floats]:
    """Expectation and variance of Σ gain · payoff for payoffs that depend on the rank alone, (n_groups, n_slots)."""
    weight = np.where(block.within, payoff, 0.0)
    total = row_sum(weight)
    mean = total / block.size
    squares = row_sum(np.where(block.within, weight - mean, 0.0) ** 2) + (block.size - block.inside) * mean**2
    return block.gain / block.size * total, squares * block.gain_ss / np.maximum(block.size - 1, 1)


def sum_payoffs(
    payoff: Callable[[Floats, Floats], Floats], block: GroupBlock, relevant: Floats, seen: Floats
) -> Floats:
    """Eq. (2): the sum over slots of the expected payoff of a relevant document that stands there.

    A group has `relevant` of them, and `seen` stand above it; H others of the group are drawn in the slots before.
    """
    others, hits = block.size - 1, relevant - 1
    h = np.arange(int(relevant.max()), dtype=np.float64)[None, :]
    chance = np.where(h == 0, 1.0, 0.0) * np.ones_like(block.start)  # P(H = h) before the first slot
    total = np.zeros_like(block.start)
    for j in range(block.slot.shape[1]):
        worth = payoff(np.broadcast_to(block.rank[:, j : j + 1], chance.shape), seen + h)
        total += np.where(block.within[:, j : j + 1], row_sum(chance * np.where(chance > 0, worth, 0.0)), 0.0)
        left = np.maximum(others - j, 1)  # one more of the others is drawn
        miss = np.clip((others - hits - (j - h)) / left, 0.0, 1.0)
        hit = np.clip((hits - h) / left, 0.0, 1.0)
        drawn = chance * hit
        chance = chance * miss
        chance[:, 1:] += drawn[:, :-1]
    return total


def _check_order(measure: Measure, mean: Floats, minimum: Floats, maximum: Floats) -> None:
    """The two sorted orders are the extremes of top-heavy measures; another one must say how to sort for it."""
    slack = 1e-9 * (1 + np.abs(mean))
    if ((minimum > maximum) | (mean < minimum - slack) | (mean > maximum + slack)).any():
        raise MeasureError(
            f"{measure.name} is not best when labels descend within a tie group, nor worst when they ascend. Give it a "
            "method key(label): by what to sort for its best order, unjudged documents at 0."
        )


def _check_depth(measure: Measure, grouped: GroupedJudgments) -> None:
    if measure.takes_depth:
        return
    over = grouped.group_start + grouped.group_size > grouped.length[grouped.group_query]
    if over.any():
        some = count_noun(len(np.unique(grouped.group_query[over])), "query", "queries")
        raise MeasureError(
            f"{measure.name} looks at whole tie groups, but depth {grouped.ties.depth} ends inside one in {some}. "
            f"Leave the depth out, or leave out {measure.name}."
        )
