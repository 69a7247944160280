"""Score transformations and their inverses: sigmoid, tanh, logarithm, cosine to distance and others.

A one-to-one function turns coarse numbers into fine ones, but the ties stay. `quantization` and `even_steps` invert
each function and test whether the result is coarse. A printed or computed score stands for all numbers that would have
given the same score: an interval of preimages.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tiewise.data.columns import Floats


class Preimage(NamedTuple):
    """The numbers from which scores were made: each lies within `margin` of `value`."""

    value: Floats
    margin: Floats

    @property
    def is_nonzero(self) -> NDArray[np.bool_]:
        """Whether a number cannot be 0, which lies on every grid and so is no evidence."""
        return np.asarray(np.abs(self.value) > self.margin)

    def take(self, index: NDArray[Any] | slice) -> Preimage:
        """Some of the numbers."""
        return Preimage(self.value[index], self.margin[index])


@dataclass(frozen=True)
class Transformation:
    """A function from model outputs to scores."""

    name: str
    description: str  #: what was done to the numbers
    preimage: str  #: what the inverse gives
    inverse: Callable[[Floats], Any]
    domain: tuple[float, float] = (-math.inf, math.inf)  #: of the inverse: the interval in which scores lie
    linear: bool = False  #: whether it only scales and shifts
    of_logits: bool = False  #: whether it is usually applied to logits
    error: float = 4.0  #: of the computation, in float32 steps of the score

    def can_produce(self, low: float, high: float) -> bool:
        """Whether scores from `low` to `high` can be its values."""
        return self.domain[0] <= low and high <= self.domain[1]

    def invert(self, x: Floats, error: Floats) -> Preimage:
        """The preimage of scores that are known up to an error. Its margin is infinite where no finite number fits."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            low, high = (self.inverse(np.clip(end, *self.domain)) for end in (x - error, x + error))
            value, margin = (low + high) / 2, np.abs(high - low) / 2
            margin = np.maximum(margin, np.spacing(np.abs(value)))  # the rounding of float64 itself
        finite = np.isfinite(value) & np.isfinite(margin)
        return Preimage(np.where(finite, value, 0.0), np.where(finite, margin, np.inf))


def _logit(x: Floats) -> Floats:
    return np.asarray(np.log(x) - np.log1p(-x))


def _sigmoid(x: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-x)))


#: The simplest first. A float type contains the negatives and the power-of-two multiples of its numbers, so these need
#: no transformation of their own.
TRANSFORMATIONS = (
    Transformation("", "", "scores", lambda x: x, linear=True, error=0.5),
    Transformation("sigmoid", "put through a sigmoid", "logits of scores", _logit, (0, 1), of_logits=True),
    Transformation("factor", "multiplied by 100 (or 25, 50 …)", "scores", lambda x: x / 100, linear=True),
    Transformation("factor", "multiplied by 10 (or 5, 20 …)", "scores", lambda x: x / 10, linear=True),
    Transformation("difference", "subtracted from 1", "scores", lambda x: 1 - x, linear=True),
    Transformation("difference", "less 1", "scores", lambda x: 1 + x, linear=True),
    Transformation("half", "moved from −1 … 1 to 0 … 1", "scores", lambda x: 2 * x - 1, (0, 1), linear=True),
    Transformation("tanh", "put through tanh", "inverse tanh of scores", np.arctanh, (-1, 1), of_logits=True),
    Transformation("exp", "put through an exponential", "logarithms of scores", np.log, (0, math.inf), of_logits=True),
    Transformation("log", "put through a logarithm", "exponentials of scores", np.exp, (-math.inf, 80)),
    Transformation(
        "log-sigmoid",
        "put through a log-sigmoid",
        "logits of scores' exponentials",
        lambda x: x - np.log(-np.expm1(x)),
        (-math.inf, 0),
        of_logits=True,
    ),
    Transformation("log-odds", "turned into log-odds", "sigmoids of scores", _sigmoid),
    Transformation("distance", "turned into distances √(2 − 2x)", "squares of scores", lambda x: 1 - x**2 / 2, (0, 2)),
    Transformation("distance", "turned into −√(2 − 2x)", "squares of scores", lambda x: 1 - x**2 / 2, (-2, 0)),
    Transformation("root", "put through a square root", "squares of scores", np.square, (0, math.inf)),
    Transformation("root", "put through a square root and negated", "squares of scores", np.square, (-math.inf, 0)),
    Transformation("reciprocal", "turned into 1 / (1 + x)", "reciprocals of scores", lambda x: 1 / x - 1, (0, 1)),
    Transformation(
        "reciprocal",
        "turned into 1 / (1 + √(2 − 2x))",
        "squares of 1 / x − 1",
        lambda x: 1 - (1 / x - 1) ** 2 / 2,
        (0, 1),
    ),
    Transformation("angle", "turned into angles", "cosines of scores", np.cos, (0, math.pi)),
    Transformation(
        "angle", "turned into shares of a half turn", "cosines of π times scores", lambda x: np.cos(np.pi * x), (0, 1)
    ),
)

#: Transformations that stay different when the scale and the shift of the numbers are unknown.
UP_TO_SCALE = (
    Transformation("scaling", "", "scores", lambda x: x, linear=True),
    *(transformation for transformation in TRANSFORMATIONS if not transformation.linear),
)
