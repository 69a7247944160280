"""How the values of queries become one number: their mean, their sum, or their geometric mean.

Queries are independent, and every aggregation rises with each value. So its extremes are those of the queries, and its
expectation and variance follow from theirs. The geometric mean needs the moments of a root of each value for that:

    E[Π x_q^(1/n)] = Π E[x_q^(1/n)],    Var = Π E[x_q^(2/n)] − E²
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tiewise.data.columns import Floats

if TYPE_CHECKING:
    from tiewise.metrics.estimate import Estimate, Estimates

__all__ = ["GEOMETRIC_MEAN", "MEAN", "SUM", "Aggregation"]


class Aggregation:
    """The mean over queries."""

    def of_values(self, values: Floats) -> float:
        """One number for the values of some queries, at least one."""
        return float(np.add.reduce(values)) / self._divisor(len(values))

    def of_estimates(self, each: Estimates) -> Estimate:
        """The estimate of that number: std = √ΣVar / n."""
        n = self._divisor(len(each))
        found = each.summary(self.of_values, float(np.sqrt(each.variance.sum())) / n)
        return found if each.method is None else each.method.describe(found, n)

    def _divisor(self, n: int) -> int:
        return n


class _Sum(Aggregation):
    """The sum over queries, of counts."""

    def _divisor(self, n: int) -> int:
        return 1


class _GeometricMean(Aggregation):
    """The geometric mean over queries, of values above 0."""

    def of_values(self, values: Floats) -> float:
        return float(np.exp(np.log(values).sum() / len(values)))

    def of_estimates(self, each: Estimates) -> Estimate:
        roots = each.powers(1.0 / len(each))
        expected = float(np.exp(np.log(roots.expected).sum()))
        spread = expected * float(np.sqrt(np.expm1(np.log1p(roots.variance / roots.expected**2).sum())))
        found = each.summary(self.of_values, spread)
        found = replace(found, expected=float(np.clip(expected, found.minimum, found.maximum)))
        if each.method is not None:
            found = each.method.describe(found, 1)
        if roots.method is None:
            return found
        relative = replace(roots.method, standard_error=expected * roots.method.standard_error / roots.expected)
        word, error = found.method["extremes"], relative.describe(found, 1)
        return replace(error, method=type(error.method)(**{**error.method, "extremes": word}))


MEAN, SUM, GEOMETRIC_MEAN = Aggregation(), _Sum(), _GeometricMean()
