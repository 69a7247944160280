"""The number grid on which the scores of a run lie, and the quantisation behind them, with the evidence.

A quantisation is a low-precision type or even steps, then a transformation and printing. Transformations and printing
hide coarse numbers, so each is inverted here. If nearly all intervals of preimages contain a number of a
coarse grid, and few would by chance, the scores were quantised to that grid. It is also looked for among the tied
scores alone: one other row in a run of bfloat16 scores does not make it a run of float32 scores.

A one-to-one function turns coarse numbers into fine ones, but the ties stay. A printed or computed score stands for all
numbers that would have given the same score: an interval of preimages.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tiewise.analysis.grids import (
    FLOAT32,
    GRIDS,
    LOW_PRECISION,
    MIN_DISTINCT,
    Grid,
    UniformGrid,
    find_grid,
    find_printings,
    nearest_float32,
    subsample,
)
from tiewise.data.columns import Floats
from tiewise.results.wording import capitalize_first, format_percent


class Preimage(NamedTuple):
    """The numbers from which scores were made: each lies within `margin` of `value`."""

    value: Floats
    margin: Floats

    @property
    def is_nonzero(self) -> NDArray[np.bool_]:
        """Whether a number cannot be 0, which lies on every grid and so is not evidence."""
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
    Transformation("difference", "minus 1", "scores", lambda x: 1 + x, linear=True),
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


LOG10_ALPHA = -12.0  # the significance level of every test here: a false positive rate of 10^-12
DECISIVE = 3.0  # log10: of two hypotheses, one is chosen if the scores are a thousand times as likely under it
MIN_TIED_SHARE = 0.9  # of distinct tied scores that must fit a quantisation; the others may come from elsewhere
MERGED = 1 << 20  # scores that are sorted at a time, at least
SCREENED = 200  # scores that are tried on the finest of several nested grids before the others are

#: The grids to look for, from the coarsest on: in each row, the last contains all numbers of the others.
NESTED: tuple[tuple[Grid, ...], ...] = (
    (GRIDS["float8_e5m2"], GRIDS["float8_e4m3"], GRIDS["bfloat16"]),
    (GRIDS["float16"],),
    tuple(UniformGrid("1" if not k else f"1/{2**k}", 2.0**-k) for k in range(15)),
)


@dataclass(frozen=True)
class ScoreGrid:
    """The grid of a run's scores, and the evidence for it."""

    name: str  #: the first of `GRIDS` that contains all scores
    rows: int
    distinct: int  #: distinct scores of the run
    distinct_float32: int  #: distinct numbers among their nearest float32; 0 if the grid is float32 or float64
    log10_p_value: float | None  #: of all distinct scores lying on the grid by chance; None for float32 and float64
    sample: Floats  #: distinct finite scores in ascending order: all of them, or some at even distances
    roundings: tuple[Grid, ...]  #: what may have rounded the scores: the grid, or printing with few digits
    quantization: Quantization | None = None
    share: float = 1.0  #: of rows: those that the quantisation explains
    tied_share: float = 1.0  #: of distinct tied scores: those that it explains

    @property
    def is_significant(self) -> bool:
        """Whether there is enough evidence that scores were rounded to this grid."""
        enough = self.distinct_float32 >= MIN_DISTINCT
        return enough and self.log10_p_value is not None and self.log10_p_value < LOG10_ALPHA

    @property
    def precision(self) -> str | None:
        """The low-precision type to which numbers were rounded, if there is enough evidence of one."""
        return None if self.quantization is None else self.quantization.precision

    @property
    def printings(self) -> tuple[Grid, ...]:
        """The few decimals, and the few digits, with which all scores can have been printed."""
        return tuple(grid for grid in self.roundings if grid.name.startswith(("decimal", "digits")))

    @property
    def evidence(self) -> str:
        """The evidence for the grid, in a sentence."""
        scores = f"{self.rows:,} scores ({self.distinct:,} distinct)"
        if self.quantization and (self.quantization.made_by or self.name not in LOW_PRECISION):
            return self._describe_quantization(self.quantization, scores)
        if self.name == "float64":
            return f"The {scores} need float64: they lie on no coarser grid."
        if self.log10_p_value is None:
            return f"The {scores} are no coarser than float32."
        all_scores = f"All {scores} {GRIDS[self.name].description}"
        if self.distinct_float32 < MIN_DISTINCT:
            ones = "ones" if self.distinct < MIN_DISTINCT else "float32 numbers"
            return f"{all_scores}, but so few distinct {ones} are not evidence of rounding."
        odds = 10 ** (-self.log10_p_value / self.distinct_float32)
        if odds < 1.5:
            return f"{all_scores}, as any float32 here."
        steps = self.quantization.steps if self.quantization else None
        even = f" They {steps.description}." if steps else ""
        chance = "this is not a coincidence" if self.is_significant else "this may be a coincidence"
        odd = f"Of float32 numbers of this magnitude, only one in {odds:,.0f} is such a number"
        return f"{all_scores}. {odd}: {chance}.{even}"

    def _describe_quantization(self, found: Quantization, scores: str) -> str:
        which = f"All {scores}"
        if self.share < 1:
            tied = "all" if self.tied_share == 1 else f"{format_percent(self.tied_share, in_words=True)} of the"
            which = capitalize_first(f"{format_percent(self.share, in_words=True)} of {scores}, and {tied} tied ones,")
        numbers = f"numbers of the {found.dtype} grid" if found.dtype else f"numbers in {found.grid.label}"
        return f"{', '.join([f'{which} are {numbers}', *found.later_steps])}."


def infer_score_grid(parts: Sequence[tuple[Floats, NDArray[Any]]]) -> ScoreGrid:
    """The grid of scores and how they were quantised, from the scores and the sizes of tie groups in several parts.

    Infinite scores mean that a document was not scored; they lie on every grid.

    >>> def infer(scores):
    ...     return infer_score_grid([(scores, np.ones(len(scores), dtype=int))])
    >>> scores = np.linspace(0.1, 0.9, 500)
    >>> infer(scores).name, infer(scores.astype(np.float32).astype(float)).name
    ('float64', 'float32')
    >>> infer(scores.astype(np.float16).astype(float)).evidence
    'All 500 scores (500 distinct) lie on the float16 grid. Of ..., only one in 8,192 is such a number: ...coincidence.'
    """
    distinct = _find_distinct(score for score, _ in parts)
    x = distinct[np.isfinite(distinct)]
    name = find_grid(x)
    distinct_float32, p_value = 0, None
    if name not in ("float32", "float64"):
        f = np.unique(nearest_float32(x))
        distinct_float32, p_value = len(f), log10_p_value((FLOAT32.spacing(f) / GRIDS[name].spacing(f))[f != 0])
    printings = find_printings(x) if name != "integer" and len(x) >= MIN_DISTINCT else ()
    printed = () if name in LOW_PRECISION else tuple(grid for grid in printings if grid.name != name)
    roundings, rows = (GRIDS[name], *printed), sum(int(size.sum()) for _, size in parts)
    found = ScoreGrid(name, rows, len(distinct), distinct_float32, p_value, subsample(x), roundings)
    if name == "integer":
        return found
    if quantization := find_quantization(x, printings):
        return replace(found, quantization=quantization)
    tied = _find_distinct(score[(size > 1) & np.isfinite(score)] for score, size in parts)
    quantization = find_quantization(tied, find_printings(tied), MIN_TIED_SHARE)
    if quantization is None:
        return found
    finite = explained = 0
    for score, size in parts:
        is_finite = np.isfinite(score)
        finite += int(size[is_finite].sum())
        explained += int(size[is_finite][quantization.explains(score[is_finite])].sum())
    share, tied_share = explained / finite, float(quantization.explains(tied).mean())
    return replace(found, quantization=quantization, share=share, tied_share=tied_share)


def _find_distinct(parts: Iterable[Floats]) -> Floats:
    """The distinct numbers of several parts, ascending."""
    found, pending, many = np.zeros(0), list[Floats](), 0
    for part in parts:
        pending.append(part)
        many += len(part)
        if many >= max(MERGED, 2 * len(found)):
            found, pending, many = np.unique(np.concatenate([found, *pending])), [], 0
    return np.unique(np.concatenate([found, *pending]))


# -- quantisation ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Quantization:
    """The grid of the numbers behind scores, and what was done to them; both grids if type and steps are as likely."""

    dtype: str | None  #: the low-precision type
    steps: UniformGrid | None  #: the even steps in which the numbers come
    transformation: Transformation
    printing: Grid | None  #: the few digits with which scores were printed

    @property
    def grid(self) -> Grid:
        """The grid of the numbers before the transformation."""
        grid = GRIDS[self.dtype] if self.dtype else self.steps
        assert grid is not None
        return grid

    @property
    def made_by(self) -> str | None:
        """What hides the grid: the name of a transformation, or ``"printing"``; None if nothing does."""
        return self.transformation.name or (None if self.printing is None else "printing")

    @property
    def later_steps(self) -> list[str]:
        """What was done to the numbers of the grid."""
        return list(filter(None, [self.transformation.description, "printed with few digits" * bool(self.printing)]))

    @property
    def precision(self) -> str | None:
        """The type to which numbers were rounded, if that can be known; None if they may be counts."""
        if self.dtype is None or (self.steps and self.transformation.of_logits):  # a difference of two logits
            return "low precision" if self.transformation.of_logits else None
        return self.dtype

    def log10_likelihood_ratio(self, x: Floats) -> float:
        """log10 of the likelihood of scores under this quantisation, relative to any float32 numbers."""
        sample = subsample(x)
        exact = _invert_score(sample, self.transformation, None)
        fits = _contains(self.grid, _invert_score(sample, self.transformation, self.printing)) & exact.is_nonzero
        steps = self.grid.spacing(exact.value[fits]) * self.transformation.error / exact.margin[fits]
        return float(np.log10(steps).sum())

    def explains(self, x: Floats) -> NDArray[np.bool_]:
        """Whether each score can have been made in this way."""
        return _contains(self.grid, _invert_score(x, self.transformation, self.printing))


def find_quantization(x: Floats, printings: Iterable[Grid], min_share: float = 1.0) -> Quantization | None:
    """The quantisation behind scores, which are distinct, finite and ascending; None without evidence of any.

    `printings` are the grids with which scores may have been printed. At least `min_share` of the scores must fit.

    >>> logits = np.linspace(-4, 4, 300).astype(np.float16).astype(float)
    >>> found = find_quantization(1 / (1 + np.exp(-logits)), ())
    >>> found.dtype, found.made_by
    ('float16', 'sigmoid')
    """
    if len(x) < MIN_DISTINCT:
        return None
    fitted = [
        (found.log10_likelihood_ratio(x), found)
        for transformation in TRANSFORMATIONS
        if transformation.can_produce(x[0], x[-1])
        for printing in (None, *printings)
        if (found := _fit(x, transformation, printing, min_share))
    ]
    best = max((ratio for ratio, _ in fitted), default=0.0)
    return next((found for ratio, found in fitted if ratio >= best - DECISIVE), None)  # the simplest of the likely ones


def log10_p_value(probability: Floats, misses: int = 0) -> float:
    """log10 of the chance that at most `misses` numbers are off a grid; each lies on it with its own probability.

    This is an upper bound: the chances of all choices of missed numbers are added up.
    """
    logs = np.sort(np.log10(np.minimum(probability, 1.0)))
    n = len(logs)
    choices = math.lgamma(n + 1) - math.lgamma(misses + 1) - math.lgamma(n - misses + 1)
    return float(logs[misses:].sum()) + choices / math.log(10)


def _invert_score(x: Floats, transformation: Transformation, printing: Grid | None) -> Preimage:
    """The preimage of scores that were computed in float32, and perhaps printed."""
    computed = transformation.error * FLOAT32.spacing(x)
    return transformation.invert(x, computed + (0 if printing is None else printing.spacing(x) / 2))


def _contains(grid: Grid, preimage: Preimage) -> NDArray[np.bool_]:
    """Whether each interval contains a number of the grid."""
    nearest = grid.round(preimage.value)
    near = np.abs(nearest - preimage.value) <= preimage.margin * 1.000001
    return np.asarray(near & grid.contains(nearest))


def _fit(x: Floats, transformation: Transformation, printing: Grid | None, min_share: float) -> Quantization | None:
    """The coarsest type and the widest steps behind scores, for one transformation and one printing."""
    few = _invert_score(x[:: len(x) // SCREENED + 1], transformation, printing)
    grids = [grid for nested in NESTED if _is_possible(nested[-1], few, 2 * min_share - 1) for grid in nested]
    for some in (subsample(x), x):
        preimage = _invert_score(some, transformation, printing)
        grids = [grid for grid in grids if _fits(grid, preimage, min_share)]
        if not grids:
            return None
    dtype = next((grid for grid in grids if grid.name in LOW_PRECISION), None)
    steps = next((grid for grid in grids if isinstance(grid, UniformGrid)), None)
    if dtype and steps:
        odds = _log10_odds(steps, dtype, preimage)
        dtype, steps = (None if odds > DECISIVE else dtype), (None if odds < -DECISIVE else steps)
    return Quantization(dtype.name if dtype else None, steps, transformation, printing)


def _is_possible(grid: Grid, preimage: Preimage, min_share: float) -> bool:
    """Whether a grid contains at least `min_share` of the numbers that are known well enough to miss it."""
    informative = _is_informative(grid, preimage)
    misses = np.count_nonzero(informative & ~_contains(grid, preimage))
    return bool(misses <= (1 - min_share) * np.count_nonzero(informative))


def _fits(grid: Grid, preimage: Preimage, min_share: float) -> bool:
    """Whether a grid contains nearly all numbers, which is unlikely by chance.

    Several scores from the same number of the grid count once.
    """
    if not _is_possible(grid, preimage, min_share):
        return False
    preimage = preimage.take(_is_informative(grid, preimage))
    preimage = preimage.take(np.unique(grid.round(preimage.value), return_index=True)[1])
    probability = 2 * preimage.margin / grid.spacing(preimage.value)
    misses = int(np.count_nonzero(~_contains(grid, preimage)))
    return len(probability) >= MIN_DISTINCT and log10_p_value(probability, misses) < LOG10_ALPHA


def _is_informative(grid: Grid, preimage: Preimage) -> NDArray[np.bool_]:
    """Whether an interval is less than half a step wide, and does not contain 0, which lies on every grid."""
    return (4 * preimage.margin < grid.spacing(preimage.value)) & preimage.is_nonzero


def _log10_odds(steps: Grid, dtype: Grid, preimage: Preimage) -> float:
    """log10 of the likelihood ratio of two grids: the finer one has more numbers that could have occurred."""
    both = _contains(steps, preimage) & _contains(dtype, preimage) & preimage.is_nonzero
    value = preimage.value[both]
    return float(np.log10(steps.spacing(value) / dtype.spacing(value)).sum())
