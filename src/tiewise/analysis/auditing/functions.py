"""The functions that scores are made with, and their inverses: what a score was before its function.

A function that is one to one turns coarse numbers into fine ones that are tied as before. `origins` and `scaled` undo
each of these functions and look whether coarse numbers come to light.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tiewise.data.columns import Floats

__all__ = ["FUNCTIONS", "IDENTITY", "UP_TO_SCALE", "ScoreFunction"]

ERROR = 4.0  # a score function errs by so many float32 steps at the most


@dataclass(frozen=True)
class ScoreFunction:
    """A function from numbers to scores; `domain` is the interval from which its inverse takes scores."""

    name: str
    words: str  #: what was done to the numbers
    undone: str  #: what the numbers are, as seen from the scores
    inverse: Callable[[Floats], Any]
    domain: tuple[float, float] = (-math.inf, math.inf)
    linear: bool = False  #: whether it only scales and shifts
    of_logits: bool = False  #: whether a model's logits are what it is usually applied to
    error: float = ERROR  #: of the computation, in float32 steps of the score

    def may_give(self, low: float, high: float) -> bool:
        """Whether scores from `low` to `high` can be values of it."""
        return self.domain[0] <= low and high <= self.domain[1]


def _logit(x: Floats) -> Floats:
    return np.asarray(np.log(x) - np.log1p(-x))


def _sigmoid(x: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-x)))


IDENTITY = ScoreFunction("", "", "scores", lambda x: x, linear=True, error=0.5)

#: The simplest first. For a floating-point type, factors that differ by powers of two are one, and signs do not matter.
FUNCTIONS = (
    IDENTITY,
    ScoreFunction("sigmoid", "put through a sigmoid", "logits of scores", _logit, (0, 1), of_logits=True),
    ScoreFunction("factor", "multiplied by 100 (or 25, 50 …)", "scores", lambda x: x / 100, linear=True),
    ScoreFunction("factor", "multiplied by 10 (or 5, 20 …)", "scores", lambda x: x / 10, linear=True),
    ScoreFunction("difference", "subtracted from 1", "scores", lambda x: 1 - x, linear=True),
    ScoreFunction("difference", "less 1", "scores", lambda x: 1 + x, linear=True),
    ScoreFunction("half", "moved from −1 … 1 to 0 … 1", "scores", lambda x: 2 * x - 1, (0, 1), linear=True),
    ScoreFunction("tanh", "put through tanh", "inverse tanh of scores", np.arctanh, (-1, 1), of_logits=True),
    ScoreFunction("exp", "put through an exponential", "logarithms of scores", np.log, (0, math.inf), of_logits=True),
    ScoreFunction("log", "put through a logarithm", "exponentials of scores", np.exp, (-math.inf, 80)),
    ScoreFunction(
        "log-sigmoid",
        "put through a log-sigmoid",
        "logits of scores' exponentials",
        lambda x: x - np.log(-np.expm1(x)),
        (-math.inf, 0),
        of_logits=True,
    ),
    ScoreFunction("log-odds", "turned into log-odds", "sigmoids of scores", _sigmoid),
    ScoreFunction("distance", "turned into distances √(2 − 2x)", "squares of scores", lambda x: 1 - x**2 / 2, (0, 2)),
    ScoreFunction("distance", "turned into −√(2 − 2x)", "squares of scores", lambda x: 1 - x**2 / 2, (-2, 0)),
    ScoreFunction("root", "put through a square root", "squares of scores", np.square, (0, math.inf)),
    ScoreFunction("root", "put through a square root and negated", "squares of scores", np.square, (-math.inf, 0)),
    ScoreFunction("reciprocal", "turned into 1 / (1 + x)", "reciprocals of scores", lambda x: 1 / x - 1, (0, 1)),
    ScoreFunction(
        "reciprocal",
        "turned into 1 / (1 + √(2 − 2x))",
        "squares of 1 / x − 1",
        lambda x: 1 - (1 / x - 1) ** 2 / 2,
        (0, 1),
    ),
    ScoreFunction("angle", "turned into angles", "cosines of scores", np.cos, (0, math.pi)),
    ScoreFunction(
        "angle", "turned into shares of a half turn", "cosines of π times scores", lambda x: np.cos(np.pi * x), (0, 1)
    ),
)


def _up_to_scale() -> tuple[ScoreFunction, ...]:
    """One function of each kind: what a list's own scale and shift undo makes no difference."""
    kinds = {(one.undone, one.domain): one for one in reversed(FUNCTIONS) if not one.linear}
    return ScoreFunction("scaling", "", "scores", lambda x: x, linear=True), *reversed(kinds.values())


#: Those that differ by more than a factor and a shift of the numbers.
UP_TO_SCALE = _up_to_scale()
