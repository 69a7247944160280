"""`MonotoneCurve`: one smooth curve that never falls, by least squares, with few knots."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tiewise.data.columns import Floats

#: How many knots there are inside the range of the scores, at their quantiles: few, or the curve follows the noise.
KNOTS = (0, 3, 6, 12)
#: More knots are taken if they leave less than this share of the squared residuals.
GAIN = 0.8
#: Documents for each knot at the least.
PER_KNOT = 25


@dataclass(frozen=True)
class MonotoneCurve:
    """A cubic spline whose coefficients do not fall, so that it does not either.

    >>> x = np.linspace(-2, 2, 200)
    >>> curve = MonotoneCurve.fit(x, 3 * x + 1)
    >>> curve.value(np.array([0.5])).round(6), curve.slope(np.array([0.5])).round(6)
    (array([2.5]), array([3.]))
    """

    spline: Any
    low: float
    high: float

    @classmethod
    def fit(cls, x: Floats, y: Floats) -> MonotoneCurve:
        """The curve of y on x, with the fewest knots: more are taken while the residuals shrink."""
        best, least = cls._fit(x, y, KNOTS[0]), np.inf
        for n in KNOTS:
            if n * PER_KNOT > len(x):
                break
            curve = cls._fit(x, y, n)
            squares = float(np.mean((y - curve.value(x)) ** 2))
            if squares > GAIN * least:
                break
            best, least = curve, squares
        return best

    @classmethod
    def _fit(cls, x: Floats, y: Floats, n: int) -> MonotoneCurve:
        from scipy.interpolate import BSpline  # in a function: they take time to import
        from scipy.optimize import nnls

        low, high = float(x.min()), float(x.max())
        high = high if high > low else low + 1.0
        inner = np.unique(np.quantile(x, np.arange(1, n + 1) / (n + 1)))
        inner = inner[(inner > low) & (inner < high)]
        knots = np.concatenate([[low] * 4, inner, [high] * 4])
        basis = BSpline(knots, np.eye(len(knots) - 4), 3)(x)
        steps = np.cumsum(basis[:, ::-1], axis=1)[:, ::-1][:, 1:]  # what a rise of all later coefficients adds
        centred, aim = steps - steps.mean(axis=0), y - y.mean()
        square = centred.T @ centred
        lower = np.linalg.cholesky(square + (1e-12 * np.trace(square) + 1e-300) * np.eye(len(square)))
        rises = nnls(lower.T, np.linalg.solve(lower, centred.T @ aim))[0]  # the normal equations: few unknowns
        start = y.mean() - steps.mean(axis=0) @ rises
        return cls(BSpline(knots, start + np.append(0.0, np.cumsum(rises)), 3), low, high)

    def value(self, x: Floats) -> Floats:
        """The curve at some places."""
        return np.asarray(self.spline(np.clip(x, self.low, self.high)))

    def slope(self, x: Floats) -> Floats:
        """Its slope there."""
        return np.asarray(self.spline.derivative()(np.clip(x, self.low, self.high)))
