"""Noise of scores: its distribution, and what it does to the mean of a measure over queries (`Noise`, `Rerun`).

The score of a document is S = s + ε, with an ε for each document, independent of all others. A `NoiseLaw` is the
distribution of ε: normal, uniform, or that of the residuals of a second run.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from tiewise.data.columns import Codes, Floats, freeze
from tiewise.errors import InputError
from tiewise.results.wording import PLAIN

#: The steps of a table of quantiles: a draw is one of them, chosen by 16 random bits.
STEPS = 1 << 16
#: Normal noise is not followed beyond so many standard deviations: a probability of 2e-9.
NORMAL_REACH = 6.0
#: The quantile of the normal distribution for an interval of 95%.
Z_95 = 1.959964
#: A number that takes fewer values than this in the draws moves in steps.
FEW_VALUES = 100


@dataclass(frozen=True)
class Noise:
    """What noise of a given size would do to the mean of a measure over queries.

    >>> import tiewise as tw
    >>> found = tw.evaluate({"q": {"a": 1}}, {"q": {"a": 0.5, "b": 0.499}}, "RR", noise=0.001)["RR"].noise
    >>> found.expected  # b stands above a with probability Φ(−1/√2) = .24
    0.88...
    """

    expected: float  #: the mean over the noise
    std: float  #: the standard deviation over the noise, from random draws
    method: str  #: how `expected` was found: exact or sampled
    standard_error: float | None  #: of `expected`, if that was sampled
    std_error: float  #: the standard error of `std`
    law: str  #: the distribution of the noise

    def __repr__(self) -> str:
        return f"{self.law} noise: expected {PLAIN.number(self.expected)}, std {self.std:.2g}"


@dataclass(frozen=True)
class Rerun:
    """The rerun band of a mean over queries: what the same system, scored again, should print in 95 of 100 cases."""

    low: float  #: the lower end of the band
    high: float  #: its upper end
    std: float  #: the standard deviation of the mean over the noise of one run
    shift: float  #: expected under that noise, less the value of the run: a band needs it to be smaller than `std`
    queries: int  #: the queries that were scored twice
    documents: int  #: the documents whose two scores were compared
    left_out: int  #: documents below the upper half of a list, or in one of its runs alone
    method: str  #: from what the band was made
    half_width: float  #: half the width of the band before it is clipped; see `half_width`
    second: float | None = None  #: the value of the second run, if it has all queries
    difference: float | None = None  #: this, less the value of the first run

    def __repr__(self) -> str:
        return f"rerun band [{PLAIN.number(self.low)}, {PLAIN.number(self.high)}]"


def half_width(draws: Floats) -> float:
    """Half the width of a band that holds 95% of the differences of two runs, from draws of the number of one.

    It is 1.96 · √2 · std, as both runs are noisy. A measure that takes few values moves in steps, and one step may be
    wider than this: there, the 95% quantile of the differences of two draws counts too.

    >>> half_width(np.repeat([0.2, 0.4], [900, 100])), half_width(np.repeat([0.2, 0.4], [990, 10]))
    (0.2, 0.055...)
    """
    half = float(Z_95 * np.sqrt(2.0) * draws.std(ddof=1))
    value, count = np.unique(np.round(draws, 12), return_counts=True)
    if len(value) >= FEW_VALUES:
        return half
    difference, chance = np.abs(value[:, None] - value).ravel(), np.outer(count, count).ravel() / len(draws) ** 2
    order = np.argsort(difference)
    return max(half, float(difference[order][np.searchsorted(np.cumsum(chance[order]), 0.95)]))


class NoiseLaw(NamedTuple):
    """A distribution of noise, which may depend on the score.

    Scores below `edges[0]` have the noise of row 0 of `quantiles`, those up to `edges[1]` that of row 1, and so on.
    """

    name: str  #: normal, uniform or residuals
    scale: float  #: the standard deviation of normal noise, half the width of uniform noise
    edges: Floats  # (n_rows − 1,)
    quantiles: Floats  # (n_rows, STEPS), ascending

    @classmethod
    def parse(cls, noise: Any) -> NoiseLaw:
        """A law from what a user gives: the standard deviation of normal noise, or ``"uniform:0.001"``.

        >>> NoiseLaw.parse("uniform:0.5"), NoiseLaw.parse(0.001)
        (uniform ±0.5, normal 0.001)
        """
        kind, _, size = noise.partition(":") if isinstance(noise, str) else ("normal", "", noise)
        try:
            scale = float("nan" if isinstance(size, (bool, np.bool_)) else size)
        except (TypeError, ValueError):
            scale = float("nan")
        if kind not in ("normal", "uniform") or not 1e-300 < scale < 1e300:
            raise InputError(
                f"noise={noise!r} is not possible. Give the standard deviation of normal noise, a number above 0, or "
                'half the width of uniform noise, as in "uniform:0.001".'
            )
        return cls(kind, scale, np.zeros(0), scale * _unit_quantiles(kind))

    @classmethod
    def of_residuals(cls, residuals: Floats, score: Floats, rows: int) -> NoiseLaw:
        """The law of some residuals, which have scores: one row of quantiles for each of some ranges of the score."""
        edges = np.unique(np.quantile(score, np.arange(1, rows) / rows)) if rows > 1 else np.zeros(0)
        row = np.searchsorted(edges, score, side="right")
        each = [np.sort(residuals[row == one]) for one in range(len(edges) + 1)]
        each = [one if len(one) else np.zeros(1) for one in each]
        tables = [one[(np.arange(STEPS) * len(one)) // STEPS] for one in each]
        return cls("residuals", float(np.sqrt(np.mean(residuals**2))), edges, np.array(tables))

    def row(self, score: Floats) -> Codes:
        """The row of `quantiles` for some scores."""
        return np.searchsorted(self.edges, score, side="right")

    def reach(self, score: Floats) -> Floats:
        """The largest draw for some scores, without its sign."""
        most: Floats = np.abs(self.quantiles).max(axis=1)[self.row(score)]
        return most

    def __repr__(self) -> str:
        return f"{self.name} {'±' if self.name == 'uniform' else ''}{self.scale:g}"


@lru_cache(maxsize=2)
def _unit_quantiles(kind: str) -> Floats:
    """The quantiles of a law of scale 1, one for each step."""
    shares = (np.arange(STEPS) + 0.5) / STEPS
    if kind == "uniform":
        return freeze(2 * shares[None] - 1)
    from scipy.special import ndtri  # in a function: it takes time to import

    return freeze(ndtri(shares)[None])
