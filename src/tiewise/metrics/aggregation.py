"""How the values of queries become one number: their mean, their sum, or their geometric mean.

Queries are independent, and every aggregation rises with each value. So its extremes are those of the queries, and its
expectation and variance follow from theirs. The geometric mean needs the moments of a root of each value for that:

    E[Π x_q^(1/n)] = Π E[x_q^(1/n)],    Var = Π E[x_q^(2/n)] − E²

Its bounds for truncated lists are the products of bounds on E[x_q^(1/n)].
"""

from __future__ import annotations

from dataclasses import replace
from math import isfinite, sqrt
from typing import TYPE_CHECKING

import numpy as np

from tiewise.data.columns import Floats

if TYPE_CHECKING:
    from tiewise.metrics.estimate import Estimate, Estimates, OverQueries


def sum_over_queries(values: Floats) -> Floats:
    """The sum over queries, which are the first axis. All means use it: equal additions keep E within its range."""
    return np.asarray(np.add.reduce(np.ascontiguousarray(values.T), axis=-1))


class Aggregation:
    """The mean over queries."""

    def terms(self, values: Floats) -> Floats:
        """What is added up."""
        return values

    def of_sum(self, total: float, n: int) -> float:
        """The number from the sum of n terms."""
        return total / n

    def of_values(self, values: Floats) -> float:
        """The number for the values of some queries, at least one."""
        return self.of_sum(float(sum_over_queries(self.terms(values))), len(values))

    def of_estimates(self, each: Estimates) -> Estimate:
        """The estimate of the number for the estimates of some queries: std = √ΣVar / n."""
        n, sums, scale = len(each), each.sums, self.of_sum(1.0, len(each))
        spread, over = sqrt(sums["variance"]) * scale, self.over_queries(each.expected, each.limits)
        found = each.summary(lambda name, _: self.of_sum(sums[name], n), spread, over)
        if found.oblivious is None and each.oblivious is not None:  # it is not defined for all queries in this order
            defined = each.oblivious[~np.isnan(each.oblivious)]
            found = replace(found, oblivious=self.of_values(defined) if len(defined) else None)
        return found if each.method is None else each.method.describe(found, scale)

    def over_queries(self, values: Floats, limits: tuple[float, float]) -> OverQueries | None:
        """What the sample of queries leaves open; None for one query."""
        from tiewise.metrics.estimate import OverQueries

        n, terms = len(values), self.terms(values)
        mean = float(np.add.reduce(terms)) / n
        if n < 2 or not isfinite(mean):
            return None
        centred = terms - mean
        return OverQueries(sqrt(float(centred @ centred) / (n - 1) / n), n - 1, limits, self is GEOMETRIC_MEAN)


class _Sum(Aggregation):
    """The sum over queries, of counts."""

    def of_sum(self, total: float, n: int) -> float:
        return total

    def over_queries(self, values: Floats, limits: tuple[float, float]) -> OverQueries | None:
        return None


class _GeometricMean(Aggregation):
    """The geometric mean over queries, of values above 0."""

    def terms(self, values: Floats) -> Floats:
        logs: Floats = np.log(values)
        return logs

    def of_sum(self, total: float, n: int) -> float:
        return float(np.exp(total / n))

    def of_estimates(self, each: Estimates) -> Estimate:
        assert each.powers is not None
        roots = each.powers(1.0 / len(each))
        expected = _product(roots.expected)
        spread = expected * float(np.sqrt(np.expm1(np.log1p(roots.variance / roots.expected**2).sum())))
        found = each.summary(lambda _, column: self.of_values(column), spread)
        cut = None if roots.cut is None else (_product(roots.cut[0]), _product(roots.cut[1]))
        over = self.over_queries(each.expected, each.limits)
        found = replace(
            found, expected=float(np.clip(expected, found.minimum, found.maximum)), cut=cut, _over_queries=over
        )
        if roots.method is None:
            return found
        error = expected * roots.method.standard_error / roots.expected
        return roots.method._replace(standard_error=error).describe(found)


def _product(values: Floats) -> float:
    return float(np.exp(np.log(values).sum()))


MEAN, SUM, GEOMETRIC_MEAN = Aggregation(), _Sum(), _GeometricMean()
