"""What the order of tied items does to a sum over the common items of two rankings: mean, extremes and variance.

RBO, RBA, RBR, MED-RBP and τ_AP are sums of F(rank in x, rank in y), with an F that falls with both ranks and is
supermodular. So their extremes are the values in two orders (`PairGroups.extreme_ranks`). RBO and MED-RBP depend on the
larger of the two ranks alone, and their means have a closed form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from tiewise.data.columns import Codes, Floats
from tiewise.metrics.estimate import Bounds, Estimate
from tiewise.metrics.segments import BLOCK, row_sum, segment_sum
from tiewise.ties.pairs import PairGroups, RankedLists

#: By name of a part, such as ``lower``, its statistics for each pair: (1, n_pairs) expected, or (3, n_pairs) with the
#: minimum and the maximum. NaN where it is not defined.
Parts = Mapping[str, Floats]

LARGEST = 1 << 24  # pairs of tied ranks that the standard deviation may need


def over_orders(values: Sequence[Floats] | Floats, extremes: bool = True) -> Floats:
    """The statistics of a part from its values, (n_pairs,) each: expected, and perhaps in the two extreme orders.

    Without extreme orders, all orders have the same value. Rounding cannot move the expectation outside the extremes.
    """
    if not extremes:
        return values[0][None]
    ends = values[1:] if len(values) > 1 else values
    low, high = np.min(ends, axis=0), np.max(ends, axis=0)
    return np.array([np.minimum(np.maximum(values[0], low), high), low, high])


def make_estimate(measure: str, statistics: Floats, variance: Callable[[], float | None] | None = None) -> Estimate:
    """The Estimate of one pair from its statistics, (3,), and the variance, which is computed when it is needed."""

    def std() -> float | None:
        found = None if variance is None else variance()
        return None if found is None else float(np.sqrt(max(found, 0.0)))

    expected, minimum, maximum = map(float, statistics)
    estimate = Estimate(expected, minimum, maximum, measure=measure)
    return estimate if variance is None else estimate._defer_std(std)


def make_bounds(measure: str, parts: Parts, variances: Callable[[], Mapping[str, float | None]] = dict) -> Bounds:
    """The Bounds of one pair. A part that it does not have, or that is not defined, is None."""
    variance_of = cache(variances)

    def make(name: str, statistics: Floats) -> Estimate:
        return make_estimate(measure, statistics, lambda: variance_of().get(name))

    found = {name: make(name, column[:, 0]) for name, column in parts.items() if not np.isnan(column[0, 0])}
    return Bounds(found["lower"], found.get("upper"), found.get("extrapolated"), measure=measure)


def mean_at_larger_rank(pairs: PairGroups, values: Floats) -> Floats:
    """The mean of values[r − 1] over the tie orders, if r is the larger rank of a common document, (n_common,).

    Over the ranks i and k of its groups, max(i, k) = r for 2r − 1 − start − start' pairs where both groups have the
    rank r, and after that for as many pairs as the group that ends first has ranks.
    """
    mean = values[np.maximum(*pairs.start)]
    tied = np.flatnonzero(np.maximum(*pairs.size) > 1)
    if not len(tied):
        return mean
    x_start, y_start, x_size, y_size = (column[tied] for column in (*pairs.start, *pairs.size))
    x_end, y_end = x_start + x_size, y_start + y_size
    first, last = np.maximum(x_start, y_start), np.maximum(x_end, y_end)
    middle = np.maximum(np.minimum(x_end, y_end), first)
    some = values[: int(last.max())]
    after, after_by_rank = (
        np.append(np.cumsum(terms[::-1])[::-1], 0.0) for terms in (some, some * np.arange(1, len(some) + 1))
    )
    after_middle = after[middle]
    in_both = 2 * (after_by_rank[first] - after_by_rank[middle])
    in_both -= (1 + x_start + y_start) * (after[first] - after_middle)
    in_one = np.where(x_end > y_end, y_size, x_size) * (after_middle - after[last])
    mean[tied] = (in_both + in_one) / (x_size * y_size)
    return mean


# -- variance of one pair ------------------------------------------------------------------------------------------


def sum_variance(pairs: PairGroups, *functions: Callable[[Codes, Codes], Floats]) -> list[float | None]:
    """The variance of Σ F(rank in x, rank in y) over the tie orders of one pair, for each F; None: it takes too long.

    A function takes ranks from 0 that are broadcast, and returns a new array. Items in the same group of x and the same
    group of y form a cell. Over the ranks i and k of a cell, F(i, k) is a constant, plus a function of i, plus a
    function of k, plus a rest γ(i, k) whose rows and columns have the mean 0. These three are uncorrelated. Sums of the
    functions of i and of k are sums over random permutations of a group (Hoeffding 1951). The γ of two items of a cell
    have the covariance Σ γ² / (m(m−1)n(n−1)).
    """
    if not (pairs.size > 1).any():
        return [0.0] * len(functions)
    cell = pairs.start[0] * (int(pairs.length.max()) + 1) + pairs.start[1]
    _, member, n_items = np.unique(cell, return_index=True, return_counts=True)
    tied = np.maximum(*pairs.size)[member] > 1
    n_items, start, size = n_items[tied], pairs.start[:, member[tied]], pairs.size[:, member[tied]]
    if size.prod(axis=0).sum() > LARGEST:
        return [None] * len(functions)
    effects: tuple[list[_Effect], list[_Effect]] = [], []
    total = np.zeros(len(functions))
    for some in _alike_cells(size):
        rest, *found = _divide_cells(n_items[some], start[:, some], size[:, some], functions)
        total += rest
        for side, effect in zip(effects, found, strict=True):
            side.append(effect)
    total += sum(map(_permutation_variance, pairs.lists, effects))
    return list(map(float, total))


class _Effect(NamedTuple):
    """What the rank of an item in one ranking adds, for the items of some cells, one cell after another."""

    rank: Codes  # (n_ranks,): the ranks of the groups, from 0
    n_items: Codes  # (n_ranks,): in the cell
    value: Floats  # (n_functions, n_ranks): with the mean 0 in each cell


def _alike_cells(size: Codes) -> Iterator[Codes]:
    """Cells in blocks of like sizes, (2, n_cells): with 1 rank, 2 to 7, 8 to 31 and so on, on each side."""
    kind = np.frexp(size)[1] // 2
    kind = kind[0] * 64 + kind[1]
    by_kind = np.argsort(kind, kind="stable")
    for cells in np.split(by_kind, np.flatnonzero(np.diff(kind[by_kind])) + 1):
        most = max(BLOCK // int(size[:, cells].max(axis=1).prod()), 1)
        yield from (cells[first : first + most] for first in range(0, len(cells), most))


def _divide_cells(
    n_items: Codes, start: Codes, size: Codes, functions: Sequence[Callable[[Codes, Codes], Floats]]
) -> tuple[Floats, _Effect, _Effect]:
    """The variance of the sums of the rests γ of some cells, (n_functions,), and the functions of i and of k.

    The cells are of like size: matrices have a slot for each rank of the largest.
    """
    m, n = size[:, :, None]  # (n_cells, 1) each
    i, k = (np.arange(int(many.max())) for many in size)
    held, left = i < m, start[0, :, None] + np.minimum(i, m - 1)
    held_right, right = k < n, start[1, :, None] + np.minimum(k, n - 1)
    both = held[:, :, None] & held_right[:, None, :]
    is_padded = not both.all()
    rests, of_left, of_right = [], [], []
    for function in functions:
        values = function(left[:, :, None], right[:, None, :])
        if is_padded:
            values *= both
        by_left, by_right = values.sum(axis=2) / n, values.sum(axis=1) / m
        mean = row_sum(by_left) / m
        of_left.append((by_left - mean)[held])
        of_right.append((by_right - mean)[held_right])
        values -= by_left[:, :, None]
        values -= (by_right - mean)[:, None, :]
        if is_padded:
            values *= both
        rests.append(np.einsum("cik,cik->c", values, values))
    m, n = size
    pairs = n_items * (1 + (n_items - 1) / np.maximum((m - 1) * (n - 1), 1)) / (m * n)
    rest = (np.array(rests) * np.where((m > 1) & (n > 1), pairs, 0.0)).sum(axis=1)
    effects = (left, held, m, of_left), (right, held_right, n, of_right)
    return rest, *(_Effect(rank[where], np.repeat(n_items, many), np.array(own)) for rank, where, many, own in effects)


def _permutation_variance(lists: RankedLists, effects: Sequence[_Effect]) -> Floats:
    """The variance of Σ_e value_e(rank of e) over random orders of the tie groups; 0 for items in no cell."""
    size = lists.size[np.argsort(lists.start)]  # at each rank
    rank, count, value = (np.concatenate(parts, axis=-1) for parts in zip(*effects, strict=True))
    items = segment_sum(rank, count, len(size))
    mean = segment_sum(rank, count * value / size[rank], len(size))
    squares = segment_sum(rank, count * (value - mean[:, rank]) ** 2, len(size))
    squares += (size - items) * mean**2
    return (squares / np.maximum(size - 1, 1))[:, size > 1].sum(axis=1)
