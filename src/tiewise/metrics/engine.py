"""All arithmetic on tie groups, over all queries at once.

Tie groups are independent, so expectation and variance are sums over groups. For a group of n documents after c others,
with r relevant in it and R relevant above it,

    M   = Σ_r gain(label_r) · payoff(r, seen_{r−1}) / divisor                                            (1)
    E   = Σ_g Σ_{j=1..n} ḡ_g · E[payoff(c+j, R+H)] / divisor,  H ~ Hypergeometric(n−1, r−1, j−1)         (2)
    Var = Σ_g SS(payoff) · SS(gain) / (n−1) / divisor²,        if payoff ignores `seen`                  (3)
    minimum, maximum, oblivious = (1) on labels sorted ascending, descending, or as given in each group  (4)

A query without ties has one order, so that (1) is all there is to say of it. In the others, only groups that hold
documents of different gain need (2) and (3).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tiewise.caching import cached_property
from tiewise.data.columns import Codes, Floats
from tiewise.errors import MeasureError
from tiewise.metrics.aggregation import GEOMETRIC_MEAN
from tiewise.metrics.cut_lists import LastGroups, reaches_last_group, untie_last_group
from tiewise.metrics.definition import SAMPLING, Law, Measure, Sampling
from tiewise.metrics.estimate import BOUND, EXACT, SAMPLED, Estimates, Methods
from tiewise.metrics.grouped_judgments import GroupBlock, GroupedJudgments, GroupSums, Order, Stack
from tiewise.metrics.segments import row_sum, safe_divide, segment_sum
from tiewise.results.wording import count_noun
from tiewise.ties.groups import TieGroups

if TYPE_CHECKING:
    from tiewise.metrics.enumeration import OrderStatistics

#: About how many numbers a table of measures × documents may hold.
TABLE = 1 << 16


def group(ties: TieGroups, judged_only: bool = False) -> GroupedJudgments:
    """The tie groups as measures see them: those of condensed lists for `judged_only` measures."""
    return GroupedJudgments(ties.condensed() if judged_only else ties)


def value(measure: Measure, grouped: GroupedJudgments, order: Order) -> Floats:
    """A measure in one order, for each query: Eq. (1)."""
    return values_of([measure], grouped, order)[measure]


def values_of(measures: Sequence[Measure], grouped: GroupedJudgments, order: Order) -> dict[Measure, Floats]:
    """The same for several measures."""
    found: dict[Measure, Floats] = {}
    for batch in _batches(measures, lambda measure: measure.additive, len(order.rows)):
        found.update(zip(batch, _Computation(batch, grouped).value(order), strict=True))
    return found


def expected(measure: Measure, grouped: GroupedJudgments, sampling: Sampling = SAMPLING) -> Floats:
    """The expectation over all orders, for each query: Eq. (2). Nothing is sampled if it has a closed form."""
    return _Computation([measure], grouped, sampling).expectation()[0]


def variance(measure: Measure, grouped: GroupedJudgments) -> Floats:
    """The variance over all orders, for each query: Eq. (3)."""
    (found,) = _Computation([measure], grouped, means_only=False).statistics(None)
    return found.variance


def group_means(measure: Measure, grouped: GroupedJudgments) -> Floats:
    """The expectation of each tie group of a measure that is a sum, before it is divided, (n_groups,)."""
    found = _Computation([measure], grouped)
    return np.where(found._mixed, found._laws.mean, found.part_values(grouped.worst(measure)))[0]


def part_values(measure: Measure, order: Order) -> Floats:
    """The value of each part in one order: of each tie group before it is divided, or of each query's list."""
    return _Computation([measure], order.grouped).part_values(order)[0]


def sorted_extremes(measure: Measure, block: GroupBlock, where: NDArray[np.bool_]) -> tuple[Floats, Floats, bool]:
    """The extremes of tie groups in some queries, (n_queries,), if the orders by key are the worst and the best one."""
    orders, known = (block.grouped.worst(measure), block.grouped.best(measure)), where[block.grouped.group_query]
    low, high = (np.where(known, part_values(measure, order), np.nan)[block.groups] for order in orders)
    return low, high, False


def divisors(measure: Measure, grouped: GroupedJudgments) -> Floats:
    """What a measure is divided by, for each query; a measure may return one number for all."""
    found, n = np.asarray(measure.divisor(grouped), dtype=np.float64), grouped.n_queries
    if found.shape == (n,):
        return found
    if found.shape != ():
        raise MeasureError(
            f"divisor(q) of {measure} returned an array of shape {found.shape}. Return one number, or an array with "
            f"one for each of the {count_noun(n, 'query', 'queries')}."
        )
    return np.full(n, found)


def estimates(
    measure: Measure, grouped: GroupedJudgments, *, oblivious: str | None = None, sampling: Sampling = SAMPLING
) -> Estimates:
    """Expectation, extremes, variance and, for a named order, the oblivious value of a measure for each query."""
    return estimates_of([measure], grouped, oblivious=oblivious, sampling=sampling)[measure]


def estimates_of(
    measures: Sequence[Measure],
    grouped: GroupedJudgments,
    *,
    oblivious: str | None = None,
    sampling: Sampling = SAMPLING,
    truncated: bool = False,
) -> dict[Measure, Estimates]:
    """The same for several measures, which share most of the work.

    With `truncated`, they have bounds for lists that may be truncated, too.
    """
    found, shared = {}, _Shared(grouped)
    for batch in _batches(measures, _shares_orders, 3 * len(grouped.rows)):
        computation = _Computation(batch, grouped, sampling, shared, means_only=False)
        each = computation.statistics(oblivious)
        cuts = computation.bounds(np.array([one.mean for one in each])) if truncated else [None] * len(batch)
        for measure, one, cut in zip(batch, each, cuts, strict=True):
            aggregation = measure.aggregation
            is_geometric = aggregation is GEOMETRIC_MEAN  # else the tie groups need not be kept
            found[measure] = Estimates(
                measure.name,
                grouped.ties.qrels.queries,
                expected=one.mean,
                minimum=one.minimum,
                maximum=one.maximum,
                variance=one.variance,
                oblivious=one.oblivious,
                residual=measure.residual(grouped),
                cut=cut,
                method=one.method,
                aggregation=aggregation,
                powers=partial(_estimates_of_power, measure, grouped, sampling, truncated) if is_geometric else None,
                limits=measure.limits,
            )
    return found


def _estimates_of_power(
    measure: Measure, grouped: GroupedJudgments, sampling: Sampling, truncated: bool, exponent: float
) -> Estimates:
    power = measure.to_power(exponent)
    return estimates_of([power], grouped, sampling=sampling, truncated=truncated)[power]


def _shares_orders(measure: Measure) -> bool:
    """Whether all statistics of a measure come from orders by label, which it has in common with others."""
    return measure.sorts_by_label and measure.additive and measure.sorted_extremes and measure.part is None


def _batches(
    measures: Sequence[Measure], shares: Callable[[Measure], bool], n_documents: int
) -> Iterator[list[Measure]]:
    """Measures that are computed together, because they share their documents' order, and others one by one."""
    shared = [measure for measure in measures if shares(measure)]
    most = max(TABLE // max(n_documents, 1), 1)
    yield from (shared[first : first + most] for first in range(0, len(shared), most))
    yield from ([measure] for measure in measures if measure not in shared)


class _Statistics(NamedTuple):
    """The statistics of each query; without `method` all of them are exact."""

    mean: Floats
    variance: Floats
    minimum: Floats
    maximum: Floats
    oblivious: Floats | None
    method: Methods | None


class _Laws(NamedTuple):
    """The laws of the parts of lists, before they are divided; where no order of a tie group matters they are 0."""

    mean: Floats  # (n_measures, n_parts)
    variance: Floats  # (n_measures, n_parts)
    minimum: Floats  # (n_parts,): extremes are those of a measure alone; 0 if the orders by key have them
    maximum: Floats  # (n_parts,)
    methods: dict[int, Methods]  # by row: how those of the parts were found, if orders were tried


class _Shared:
    """What measures of the same tie groups have in common: orders by label, and the gains in groups."""

    def __init__(self, grouped: GroupedJudgments):
        self._grouped = grouped
        self._stacks: dict[str | None, Stack] = {}  # by the fixed order
        self._sums: dict[bytes, GroupSums] = {}  # by the gains

    def stack(self, measure: Measure, oblivious: str | None) -> Stack:
        """The lists of which the statistics of a measure are made."""
        if not measure.sorts_by_label:
            return self._grouped.stack(measure, oblivious)
        if oblivious not in self._stacks:
            self._stacks[oblivious] = self._grouped.stack(measure, oblivious)
        return self._stacks[oblivious]

    def sums(self, gain: Floats) -> GroupSums:
        """The gains in tie groups."""
        key = gain.tobytes()
        if key not in self._sums:
            self._sums[key] = GroupSums(self._grouped, gain)
        return self._sums[key]


class _Computation:
    """Some measures over some tie groups: what is the same in all orders is worked out once.

    Arrays have a row for each measure. A measure that is not a sum, or has orders of its own, is alone.
    """

    def __init__(
        self,
        measures: Sequence[Measure],
        grouped: GroupedJudgments,
        sampling: Sampling = SAMPLING,
        shared: _Shared | None = None,
        *,
        means_only: bool = True,
    ):
        self.measures, self.grouped, self.sampling, self._means_only = measures, grouped, sampling, means_only
        self._shared = _Shared(grouped) if shared is None else shared
        self.measure = measures[0]
        self.depth = np.array([measure.depth(grouped) for measure in measures])  # (n_measures, n_queries)

    # -- Eq. (1): one order, or a stack of several --------------------------------------------------------------------

    def value(self, order: Order) -> Floats:
        """Eq. (1), for each query."""
        if not self.measure.additive:
            return self.measure.values(order)[None]
        return self._divide(order.sum(self._terms(order)))

    def _terms(self, order: Order) -> Floats:
        """The terms of Eq. (1), 0 beyond the depth."""
        terms = np.array([measure.terms(order) for measure in self.measures])
        return np.where(order.rank <= self.depth[:, order.query], terms, 0.0)

    def _divide(self, total: Floats, query: Codes | None = None, *, with_base: bool = True) -> Floats:
        """Sums over lists, divided; `query` has the queries of the lists, if there is not one for each."""
        of_lists = (slice(None), slice(None) if query is None else query)
        total = safe_divide(total, self._divisor[of_lists])
        return total + self._base[of_lists] if with_base else total

    @cached_property
    def _divisor(self) -> Floats:
        """What each query's sum is divided by."""
        return np.array([divisors(measure, self.grouped) for measure in self.measures])

    @cached_property
    def _base(self) -> Floats:
        """What is added for each query."""
        return np.array([measure.base(self.grouped) for measure in self.measures])

    # -- all orders ---------------------------------------------------------------------------------------------------

    def statistics(self, oblivious: str | None) -> list[_Statistics]:
        """All statistics of each query, of each measure."""
        grouped, tied = self.grouped, self.grouped.tied_queries
        for measure in self.measures:
            _check_depth(measure, grouped)
        if not self.measure.additive:
            orders = [*([] if oblivious is None else [grouped.oblivious(oblivious)]), grouped.worst(self.measure)]
            some = [self.value(order)[:, tied] for order in orders] if len(tied) else []
            values = np.concatenate([self.value(grouped.best(self.measure)), *some], axis=1)
            return self._summarize(values, oblivious, *(x[:, tied] for x in self._laws[:2] if len(tied)))
        stack = self._shared.stack(self.measure, oblivious)
        terms = self._stack_terms(stack)
        values = self._divide(stack.order.sum(terms), stack.query)
        moments = (self._expected(terms), self._tied_variance()) if len(tied) else ()
        return self._summarize(values, oblivious, *moments)

    def _summarize(self, values: Floats, oblivious: str | None, *moments: Floats) -> list[_Statistics]:
        """The statistics from the values of the best, oblivious and worst orders, and moments of queries with ties."""
        n, tied = self.grouped.n_queries, self.grouped.tied_queries
        maximum, methods = values[:, :n], dict[int, Methods]()
        if len(tied):
            mean, variance = moments
            worst = n if oblivious is None else n + len(tied)
            low, high = values[:, worst : worst + len(tied)], maximum[:, tied]
            for row in range(len(self.measures)):
                if self.measures[row].sorted_extremes:
                    _check_order(self.measures[row], mean[row], low[row], high[row])
                else:
                    low[row], high[row] = self._extremes()
                if row in self._laws.methods:
                    methods[row] = self._methods(row)
            low, high = np.minimum(low, high), np.maximum(low, high)  # they may be the same but for rounding
            fixed = low == high  # then no order matters, unless only samples agree
            for row, method in methods.items():
                fixed[row] &= method.extremes[tied] != SAMPLED
                methods[row] = method.only(tied[~fixed[row]])
            mean = np.where(fixed, low, np.minimum(np.maximum(mean, low), high))
            one_order = values[:, n:worst] if oblivious else low
            one_order = np.where(fixed & ~np.isnan(one_order), low, one_order)
            columns = np.array([mean, low, high, one_order, np.where(fixed, 0.0, variance)])
            if len(tied) < n:
                some, columns = columns, np.array([maximum] * 4 + [np.zeros_like(maximum)])
                columns[:, :, tied] = some
            mean, low, high, one_order, variance = columns
        else:  # without ties, every statistic is the same number
            mean = low = high = one_order = maximum
            variance = np.zeros_like(maximum)
        variance[np.isnan(mean)] = np.nan  # it is not defined for these lists
        return [
            _Statistics(
                *(mean[row], variance[row], low[row], high[row]),
                oblivious=None if oblivious is None else one_order[row],
                method=methods.get(row),
            )
            for row in range(len(self.measures))
        ]

    def expectation(self) -> Floats:
        """Eq. (2), for each query."""
        if not self.measure.additive:
            return self._laws.mean
        stack = self._shared.stack(self.measure, None)
        terms = self._stack_terms(stack)
        found = self._divide(stack.order.sum(terms), stack.query)[:, : self.grouped.n_queries]
        if len(self.grouped.tied_queries):
            found[:, self.grouped.tied_queries] = self._expected(terms)
        return found

    def _stack_terms(self, stack: Stack) -> Floats:
        """The terms of all lists of a stack; those of subtopics are computed for one order at a time."""
        if not self.measure.needs_subtopics:
            return self._terms(stack.order)
        return np.concatenate([self._terms(order)[:, documents] for order, documents in stack.parts], axis=1)

    def _expected(self, terms: Floats) -> Floats:
        """Eq. (2), for each query with ties, from the terms of a stack, which ends with the worst order of these."""
        grouped, tied = self.grouped, self.grouped.tied_queries
        (groups, _), documents, place = grouped.tied_groups, grouped.tied_documents, grouped.place_among_tied
        group = grouped.group[documents]
        # Where a group is not mixed, any order will do.
        certain = np.where(self._mixed[:, group], 0.0, terms[:, terms.shape[1] - len(group) :])
        fixed = segment_sum(place[grouped.group_query[group]], certain, len(tied))
        total = segment_sum(place[grouped.group_query[groups]], self._laws.mean[:, groups], len(tied))
        return self._divide(fixed, tied) + self._divide(total, tied, with_base=False)

    def _tied_variance(self) -> Floats:
        """Eq. (3), for each query with ties."""
        grouped, tied = self.grouped, self.grouped.tied_queries
        groups, _ = grouped.tied_groups
        place = grouped.place_among_tied[grouped.group_query[groups]]
        squares = segment_sum(place, self._laws.variance[:, groups], len(tied))
        return safe_divide(squares, self._divisor[:, tied] ** 2)

    def _extremes(self) -> tuple[Floats, Floats]:
        """Minimum and maximum of each query with ties, from those of the parts of its list."""
        grouped, tied, laws = self.grouped, self.grouped.tied_queries, self._laws
        if not self.measure.additive:
            return laws.minimum[tied], laws.maximum[tied]
        order = grouped.worst(self.measure)
        certain = self._divide(order.sum(np.where(self._mixed[:, grouped.group], 0.0, self._terms(order))))
        each = (segment_sum(grouped.group_query, one[None], grouped.n_queries) for one in (laws.minimum, laws.maximum))
        low, high = ((certain + self._divide(one, with_base=False))[0, tied] for one in each)
        return low, high

    def _methods(self, row: int) -> Methods:
        """How the statistics of each query were found, from those of the parts of its list."""
        n, parts, query = self.grouped.n_queries, self._laws.methods[row], self._query
        expected, extremes, std = found = np.zeros((3, n), dtype=np.int8)
        for column, own in zip(found, (parts.expected, parts.extremes, parts.std), strict=True):
            np.maximum.at(column, query, own)
        squares = segment_sum(query, parts.standard_error**2, n)
        if self.measure.additive:
            squares = safe_divide(squares, self._divisor[row] ** 2)
        return Methods(expected, extremes, std, np.where(expected == SAMPLED, np.sqrt(squares), np.nan))

    # -- the laws of parts --------------------------------------------------------------------------------------------

    def _closed_forms(self) -> Iterator[tuple[int, Codes, Law]]:
        """The laws that measures have: the row of the measure, some parts in which the order matters, and their law."""
        if not self.measure.additive:
            yield 0, np.arange(self.grouped.n_queries), self.measure.law(self.grouped)
            return
        alike: dict[tuple[GroupSums, bytes], list[int]] = {}  # measures with the same gains and cutoff
        for row, sums in enumerate(self._sums):
            alike.setdefault((sums, self.inside[row].tobytes()), []).append(row)
        for (sums, _), rows in alike.items():
            groups = self._mixed[rows[0]].nonzero()[0]
            for block in sums.blocks(groups, self.inside[rows[0], groups]):
                for row in rows:
                    yield row, block.groups, self.measures[row].law(block)

    @cached_property
    def _laws(self) -> _Laws:
        """The laws of all parts: by closed forms, else from all orders, else from random ones."""
        from tiewise.metrics.enumeration import try_orders

        n_parts, searched = len(self._query), not (self._means_only or self.measure.sorted_extremes)
        mean, variance = np.zeros((2, len(self.measures), n_parts))
        minimum, maximum, is_bound = *np.zeros((2, n_parts)), np.zeros(n_parts, dtype=bool)
        for row, parts, law in self._closed_forms():
            mean[row, parts] = law.mean.ravel()
            if not self._means_only:
                variance[row, parts] = np.nan if law.variance is None else law.variance().ravel()
            if searched:
                extremes = (np.nan, np.nan, False) if law.extremes is None else law.extremes()
                minimum[parts], maximum[parts], is_bound[parts] = map(np.ravel, extremes)
        found = _Laws(mean, variance, minimum, maximum, {})
        is_open = np.isnan(mean) | np.isnan(variance) | np.isnan(minimum) | np.isnan(maximum) | is_bound
        for row in np.logical_or.reduce(is_open, axis=1).nonzero()[0].tolist():
            inside = np.where(self._mixed[row] & is_open[row, self.part], self.inside[row], 0)
            tried = try_orders(Parts(self.measures[row], self.grouped), inside, self.sampling)
            found.methods[row] = _fill(tried, found, row, is_bound)
        return found

    @cached_property
    def part(self) -> Codes:
        """The part of each tie group: itself, or its list, (n_groups,)."""
        return np.arange(len(self.grouped.first)) if self.measure.additive else self.grouped.group_query

    @cached_property
    def _query(self) -> Codes:
        """The query of each part, (n_parts,)."""
        return self.grouped.group_query if self.measure.additive else np.arange(self.grouped.n_queries)

    @cached_property
    def _sums(self) -> list[GroupSums]:
        return [self._shared.sums(measure.scaled_gain(self.grouped)) for measure in self.measures]

    @cached_property
    def inside(self) -> Codes:
        """How many ranks of each group lie within the depth, (n_measures, n_groups)."""
        return self.grouped.inside(self.depth).astype(np.int64)

    @cached_property
    def _mixed(self) -> NDArray[np.bool_]:
        """Whether the order of a group matters, within the depth, (n_measures, n_groups)."""
        mixed = np.zeros((len(self.measures), len(self.grouped.first)), dtype=bool)
        for own, sums, measure in zip(mixed, self._sums, self.measures, strict=True):
            by_gain = measure.additive and measure.sorted_extremes
            own[:] = sums.is_mixed if by_gain else self.grouped.is_mixed(*measure.kinds(self.grouped))
        mixed &= self.inside > 0
        return mixed

    def part_values(self, order: Order) -> Floats:
        """The value of each part in one order: of each tie group before it is divided, or of each query."""
        if not self.measure.additive:
            return self.value(order)
        return segment_sum(self.grouped.group, self._terms(order), len(self.grouped.first))

    # -- lists that may be truncated ----------------------------------------------------------------------------------

    def bounds(self, expected: Floats) -> list[tuple[Floats, Floats] | None]:
        """Bounds on the expectations if lists were truncated inside their last tie group; None if none can have been.

        A measure that a better document can lower is only known to lie in its range. NaN: no bounds are known.
        """
        grouped, ties = self.grouped, self.grouped.ties
        reached = np.array([reaches_last_group(measure, grouped) for measure in self.measures])
        is_reached = np.logical_or.reduce(reached, axis=1)
        if not np.count_nonzero(is_reached):
            return [None] * len(self.measures)
        if len(self.measures) > 1 and ties.condensed_end is not None:  # the length of a list depends on them
            alone = (_Computation([measure], grouped, self.sampling) for measure in self.measures)
            return [one.bounds(mean[None])[0] for one, mean in zip(alone, expected, strict=True)]
        rows, places = np.flatnonzero(is_reached), np.flatnonzero(np.logical_or.reduce(reached))
        low, high = self._filled_bounds(rows, places, expected)
        low, high = np.where(reached, low, expected), np.where(reached, high, expected)
        return [(x, y) if own else None for x, y, own in zip(low, high, is_reached.tolist(), strict=True)]

    def _filled_bounds(self, rows: Codes, places: Codes, expected: Floats) -> tuple[Floats, Floats]:
        """The same for some measures and queries; elsewhere they are the expectations."""
        measure, part = self.measure, self.measure.part
        lower, upper = expected.copy(), expected.copy()
        if part is not None:
            lower[0], upper[0] = self._sum_bounds(part)
            return np.minimum(lower, expected), np.maximum(upper, expected)
        known = {
            row: one.value_range or (np.nan, np.nan)
            for row, one in enumerate(self.measures)
            if one.value_range is not None or not one.sorted_extremes
        }
        if len(known) < len(self.measures):
            last = LastGroups(self.grouped, places)
            cells = np.ix_(rows, places)
            for filled in last.fill(self.measures, "worst"):
                worst = self._with_last_group(last, filled, filled.worst(measure), rows)
                lower[cells] = np.minimum(lower[cells], worst)
            for filled in last.fill(self.measures, "best"):
                best = self._with_last_group(last, filled, filled.best(measure), rows)
                upper[cells] = np.maximum(upper[cells], best)
        for row, (low, high) in known.items():
            lower[row, places], upper[row, places] = low, high
        return lower, upper

    def _with_last_group(self, last: LastGroups, filled: GroupedJudgments, order: Order, rows: Codes) -> Floats:
        """The expectations with other documents in the last tie groups, which are in one order; others are random.

        `rows` are those of the measures.
        """
        if not self.measure.additive:
            untied = untie_last_group(self.measure, filled.ties)
            return _Computation(self.measures, untied, self.sampling).expectation()
        there = _Computation([self.measures[row] for row in rows.tolist()], filled)
        if np.array_equal(there.depth, self.depth[np.ix_(rows, last.places)]):  # the groups above add the same
            means = np.zeros((len(rows), len(filled.first)))
            random = np.zeros(means.shape, dtype=bool)
            above = np.ix_(rows, last.above)
            random[:, filled.above_last] = self._mixed[above]  # both hold the same groups, in the same order
            means[:, filled.above_last] = self._laws.mean[above]
        else:
            random = there._mixed & filled.above_last
            means = np.where(random, there._laws.mean, 0.0)
        certain = order.sum(np.where(random[:, filled.group], 0.0, there._terms(order)))
        total = segment_sum(filled.group_query, means, filled.n_queries)
        return there._divide(certain) + there._divide(total, with_base=False)

    def _sum_bounds(self, part: Measure) -> tuple[Floats, Floats]:
        """The sums of the bounds of each subtopic, for each query."""
        subtopics = self.grouped.by_subtopic
        expected = subtopics.expected(part)
        alone = _Computation([part], subtopics.grouped, self.sampling)
        low, high = alone.bounds(expected[None])[0] or (expected, expected)
        low, high = (self._divide(subtopics.sum(bound)[None])[0] for bound in (low, high))
        return low, high


class Parts:
    """The parts of lists in which the order of ties may change a measure: tie groups if it is a sum, else the lists."""

    def __init__(self, measure: Measure, grouped: GroupedJudgments):
        self.measure, self.grouped, self.by_group = measure, grouped, measure.additive
        self._computation = _Computation([measure], grouped)
        self.keys, self.unjudged_key = measure.kinds(grouped)  #: documents of one key cannot be told apart
        self.part = self._computation.part  #: of each tie group
        self.n_parts = len(grouped.first) if self.by_group else grouped.n_queries

    @cached_property
    def inside(self) -> Codes:
        """The ranks of each tie group that matter, 0 if its order does not."""
        mixed = self.grouped.is_mixed(self.keys, self.unjudged_key)
        return np.where(mixed, self._computation.inside[0], 0)

    def values(self, order: Order) -> Floats:
        """The value of each part in one order."""
        return self._computation.part_values(order)[0]

    @cached_property
    def unit(self) -> Floats:
        """What a value of 1 adds to the value of the query, of each part."""
        if not self.by_group:
            return np.ones(self.n_parts)
        return safe_divide(np.ones(self.n_parts), divisors(self.measure, self.grouped)[self.grouped.group_query])

    def select(self, places: Codes) -> tuple[Parts, Codes]:
        """The parts of some queries, given by their places in ascending order, and the indices of their tie groups."""
        some, groups = self.grouped.select(places)
        return (self if some is self.grouped else Parts(self.measure, some)), groups


def _fill(tried: OrderStatistics, known: _Laws, row: int, is_bound: NDArray[np.bool_]) -> Methods:
    """Fill what is NaN in the laws of parts by what orders gave, and replace bounds if all orders were enumerated."""
    mean, variance, is_sampled = known.mean[row], known.variance[row], tried.samples > 0
    no_mean, no_variance = np.isnan(mean), np.isnan(variance)
    no_extremes = np.isnan(known.minimum) | np.isnan(known.maximum)
    better = no_extremes | (is_bound & ~is_sampled)
    filled = (mean, no_mean), (variance, no_variance), (known.minimum, better), (known.maximum, better)
    for (column, where), own in zip(filled, tried[:4], strict=True):
        column[where] = own[where]
    words = (
        np.where(no_mean, SAMPLED, EXACT),
        np.where(no_extremes, SAMPLED, np.where(is_bound, BOUND, EXACT)),
        np.where(no_variance, SAMPLED, EXACT),
    )
    expected, extremes, std = (np.where(is_sampled, word, EXACT).astype(np.int8) for word in words)
    error = np.sqrt(tried.variance / np.maximum(tried.samples, 1))
    return Methods(expected, extremes, std, np.where(is_sampled & no_mean, error, 0.0))


def law_of_payoff(measure: Measure, block: GroupBlock) -> Law:
    """The law that follows from a measure's payoff alone; without a variance if it depends on `seen`."""
    if measure.uses_seen:
        total = sum_payoffs(measure.payoff, block, block.relevant, block.seen)
        return Law(block.gain / block.size * total)
    return linear_law(measure.payoff(block.rank, block.rank), block)


def linear_law(payoff: Floats, block: GroupBlock) -> Law:
    """The law of Σ gain · payoff for payoffs that depend on the rank alone, (n_groups, n_slots)."""
    weight = np.where(block.within, payoff, 0.0)
    total = row_sum(weight)

    def variance() -> Floats:
        mean = total / block.size
        squares = row_sum(np.where(block.within, weight - mean, 0.0) ** 2) + (block.size - block.inside) * mean**2
        return squares * block.gain_ss / np.maximum(block.size - 1, 1)

    return Law(block.gain / block.size * total, variance)


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
    if ((minimum > maximum + slack) | (mean < minimum - slack) | (mean > maximum + slack)).any():
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
