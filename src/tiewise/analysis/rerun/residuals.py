"""`score_noise`: how far the scores of two runs of one system differ, beyond a monotone change.

A monotone change of the scores reorders nothing, so it is not noise. It is one smooth curve over all queries; a change
by a constant in each query reorders nothing either. What remains are residuals. Both runs are noisy, so the noise of
one run is a residual over √2.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from importlib import import_module
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tiewise.analysis.grids import GRIDS, MIN_DISTINCT, Grid, find_grid
from tiewise.analysis.rerun.monotone_curve import MonotoneCurve
from tiewise.data.columns import Codes, Floats, positions
from tiewise.data.runs import Run
from tiewise.errors import InputError
from tiewise.io import as_run
from tiewise.io.types import RunLike
from tiewise.metrics.noise import NoiseLaw
from tiewise.results.base import Result
from tiewise.results.model import Column, Section, Table
from tiewise.results.view import View
from tiewise.results.wording import count_noun, list_examples
from tiewise.ties.orders import breaks_ties, find_reordered, group_rows

Mask = NDArray[np.bool_]

#: The ranges of the score for which there is a size of its own, and the fewest documents in one.
RANGES, PER_RANGE = 8, 200
#: Fewer documents than this with two scores do not show how large the noise is.
MIN_DOCUMENTS = 20
#: Scores are compared where the curve is not flatter than this share of its usual slope: elsewhere scores saturate.
MIN_SLOPE = 0.2
#: Rounding that is smaller than this share of the noise is not another precision, only other digits.
NEGLIGIBLE = 0.01


class ScoreRange(NamedTuple):
    """The noise of documents in a range of the score."""

    low: float  #: the lowest score of the first run
    high: float  #: the highest
    documents: int
    std: float  #: the standard deviation of the noise of one run


class GridPair(NamedTuple):
    """The grids of the scores of two runs."""

    first: Grid | None  #: None if it is not known
    second: Grid | None
    coarser: str | None  #: ``"first"`` or ``"second"`` if this run was rounded more coarsely, so that noise shows it

    @classmethod
    def of(cls, first: Run, second: Run, noise: float) -> GridPair:
        """Those of two runs; `noise` is the standard deviation of the residuals, in the unit of the first."""
        grids = _grid(first), _grid(second)
        score = np.abs(first.value[np.isfinite(first.value)])
        if None in grids or not len(score):
            return cls(*grids, None)
        one, two = (float(grid.spacing(np.array([np.median(score)]))[0]) for grid in grids if grid)
        if one == two or max(one, two) / np.sqrt(12.0) < NEGLIGIBLE * noise:
            return cls(*grids, None)
        return cls(*grids, "first" if one > two else "second")

    def describe(self, first: str, second: str) -> str:
        """Which of the two runs, called so, is the coarser one."""
        assert self.first and self.second
        names = ((first, self.first.label), (second, self.second.label))
        (coarse, grid), (fine, other) = names if self.coarser == "first" else names[::-1]
        return f"the scores of {coarse} lie on a coarser grid ({grid}) than those of {fine} ({other})"


def _grid(run: Run) -> Grid | None:
    """The grid of the scores, as an audit names it; that of few distinct scores is not known."""
    from tiewise.analysis.auditing.quantization import find_quantization  # the audit imports this module

    distinct = np.unique(run.value[np.isfinite(run.value)])
    if len(distinct) < MIN_DISTINCT:
        return None
    grid = GRIDS[find_grid(distinct)]
    found = None if grid.name == "integer" else find_quantization(distinct, ())
    return found.grid if found and not (found.dtype or found.made_by) else grid


@dataclass(frozen=True, eq=False, repr=False)
class ScoreNoise(Result):
    """The noise of the scores of one run, from two runs of the same system, in the unit of the first run's scores.

    >>> import numpy as np, tiewise as tw
    >>> rng = np.random.default_rng(0)
    >>> score = rng.normal(size=(30, 40))
    >>> first, second = (
    ...     {f"q{i}": {f"d{j}": rng.normal(x, 0.01) for j, x in enumerate(row)} for i, row in enumerate(score)}
    ...     for _ in range(2)
    ... )
    >>> found = tw.score_noise(first, second)
    >>> found.queries, found.documents, found.reorders, round(found.std, 3)
    (30, 600, True, 0.01)
    """

    queries: int  #: queries with documents that were compared
    documents: int  #: documents whose two scores were compared
    left_out: int  #: documents below the upper half of a list, in one run alone, or where scores saturate
    reorders: bool  #: whether a pair of documents has another order in the second run
    ties_differ: bool  #: whether documents that one of the runs ties differ in the other
    grids: GridPair  #: the grids of the two runs' scores
    residual_std: float  #: the standard deviation of the residuals
    by_score: tuple[ScoreRange, ...]  #: the noise by ranges of the first run's score, lowest first
    _score: Floats
    _residual: Floats

    @property
    def std(self) -> float:
        """The standard deviation of the noise of one run: that of the residuals over √2, as both runs are noisy."""
        return float(self.residual_std / np.sqrt(2.0))

    @property
    def coarser(self) -> str | None:
        """``"first"`` or ``"second"``, the run whose scores lie on a coarser grid: in another precision; else None."""
        return self.grids.coarser

    @property
    def residuals(self) -> tuple[Floats, Floats]:
        """The first run's score of each document that was compared, and its residual."""
        return self._score, self._residual

    @property
    def moves(self) -> bool:
        """Whether there is noise: a pair of documents has another order in the second run, or is tied in one alone."""
        return self.reorders or self.ties_differ

    @property
    def law(self) -> NoiseLaw:
        """The distribution of the noise of one run."""
        return NoiseLaw.of_residuals(self._residual / np.sqrt(2.0), self._score, _count_ranges(len(self._score)))

    @property
    def plot(self) -> Any:
        """The figure of this result: `residuals()`."""
        return import_module("tiewise.figures.score_residuals").ScoreNoisePlots(self)

    @property
    def sentence(self) -> str:
        """The size of the noise in a sentence."""
        twice = f"{count_noun(self.queries, 'query', 'queries')} scored twice, {count_noun(self.documents, 'document')}"
        if not self.moves:
            return f"Scored again, no pair of documents changes its order ({twice})."
        if self.coarser:
            return f"Not a rerun: {self.grids.describe('the first run', 'the second run')}."
        if self.documents < MIN_DOCUMENTS:
            return f"Too few documents to measure the noise of scores ({twice})."
        return f"Scores of one run vary by ±{self.std:.2g} (standard deviation; {twice})."

    def __repr__(self) -> str:
        return f"<ScoreNoise: {self.sentence}>"

    def _records(self, view: View) -> Table:
        return Table.of_records(ScoreRange._fields, (one._asdict() for one in self.by_score))

    def _document(self, view: View) -> dict[str, Any]:
        found = {one.name: getattr(self, one.name) for one in fields(self) if not one.name.startswith("_")}
        grids = [grid.name if grid else "unknown" for grid in (self.grids.first, self.grids.second)]
        by_score = self._records(view).records()
        return found | {"std": self.std, "by_score": by_score, "grids": grids, "coarser": self.coarser}

    def _section(self, view: View) -> Section:
        if self.moves and (self.coarser or self.documents < MIN_DOCUMENTS):
            return Section([self.sentence], "Noise of scores")
        columns = (
            Column("low", "scores from", "right"),
            Column("high", "to", "right"),
            Column("documents", align="right"),
            Column("std", "noise (std)", "right"),
        )
        rows = [(f"{one.low:.4g}", f"{one.high:.4g}", f"{one.documents:,}", f"{one.std:.2g}") for one in self.by_score]
        left = f"{count_noun(self.left_out, 'document')} left out: below the upper half of a list, or in one run alone."
        return Section([Table(columns, rows), self.sentence, *([left] if self.left_out else [])], "Noise of scores")


def score_noise(first: RunLike, second: RunLike) -> ScoreNoise:
    """The noise of scores, from two runs of the same system: another batch size, GPU, kernel or seed.

    A monotone change of the scores is not noise, as it reorders nothing. Documents of the upper half of the shallower
    list that both runs have are compared. `first` and `second` are anything that `evaluate` takes as a run.

    >>> import tiewise as tw
    >>> first = {"q": {"a": 3.0, "b": 2.0, "c": 1.0, "d": 0.5}}
    >>> tw.score_noise(first, {"q": {"a": 9.0, "b": 4.0, "c": 1.0, "d": 0.25}})
    <ScoreNoise: Scored again, no pair of documents changes its order (1 query scored twice, 2 documents).>
    """
    return compare_scores(as_run(first), as_run(second))


def compare_scores(first: Run, second: Run) -> ScoreNoise:
    """The same of the rows of two runs."""
    pairs = _Pairs.of(first, second)
    finite = np.isfinite(pairs.first) & np.isfinite(pairs.second)
    every, upper = pairs.take(finite), pairs.take(finite & pairs.is_upper)
    reorders = len(find_reordered(every.query, every.first, every.second)) > 0
    ties_differ = any(breaks_ties(every.query, *one) for one in permutations((every.first, every.second)))
    score, residual, query = upper.first, np.zeros(len(upper.first)), upper.query
    if (reorders or ties_differ) and len(score) > 1:
        curve = MonotoneCurve.fit(score, upper.second)
        slope = curve.slope(score)
        if len(score) >= MIN_DOCUMENTS and not slope.any():
            raise InputError(
                "The scores of the second run do not rise with those of the first, so it is not a rerun. Does one of "
                "them hold distances?"
            )
        kept = slope > MIN_SLOPE * np.median(slope)
        residual = ((upper.second - curve.value(score))[kept]) / slope[kept]
        score, query = score[kept], query[kept]
        residual, kept = _centre(residual, query)
        score, residual, query = score[kept], residual[kept], query[kept]
    residual_std = _rms(residual)
    return ScoreNoise(
        queries=len(np.unique(query)),
        documents=len(score),
        left_out=pairs.documents - len(score),
        reorders=reorders,
        ties_differ=ties_differ,
        grids=GridPair.of(first, second, residual_std),
        residual_std=residual_std,
        by_score=_by_score(score, residual),
        _score=score,
        _residual=residual,
    )


class _Pairs(NamedTuple):
    """The two scores of documents that both runs have."""

    query: Codes
    first: Floats
    second: Floats
    is_upper: Mask  # whether a document stands in the upper half of the shallower list
    documents: int  # in the shallower lists, of queries that both runs have

    @classmethod
    def of(cls, first: Run, second: Run) -> _Pairs:
        places = positions(first.query_index, second.queries)
        if not (places >= 0).any():
            raise InputError(
                "The two runs have no query in common. Queries of the first: "
                f"{list_examples(first.queries)}; of the second: {list_examples(second.queries)}. Score some queries "
                "of the first again; evaluate also takes both runs of other queries."
            )
        score, rows = first.find(second, places)
        own = np.flatnonzero(rows >= 0)
        if not len(own):
            raise InputError("The two runs have no document in common. Do their ids match?")
        lengths = np.where(places >= 0, np.diff(first.offsets)[places], 0), np.diff(second.offsets)
        shorter, query = np.minimum(*lengths), second.query[own]
        above = np.where((lengths[0] <= lengths[1])[query], _above(first)[rows[own]], _above(second)[own])
        is_upper = above < ((shorter + 1) // 2)[query]
        return cls(query, score[own], second.value[own], is_upper, int(shorter.sum()))

    def take(self, kept: Mask) -> _Pairs:
        """Some of the documents."""
        return _Pairs(self.query[kept], self.first[kept], self.second[kept], self.is_upper[kept], self.documents)


def _above(run: Run) -> Codes:
    """How many documents of its list score above each row."""
    rows, start, _ = group_rows(run)
    above = np.empty(len(rows), dtype=np.int64)
    above[rows] = start
    return above


def _centre(residual: Floats, query: Codes) -> tuple[Floats, Mask]:
    """The residuals less their mean in each query, which reorders nothing; queries with one document are left out."""
    _, code, count = np.unique(query, return_inverse=True, return_counts=True)
    mean = np.bincount(code, weights=residual) / count
    scale = np.sqrt(count / np.maximum(count - 1, 1))  # the mean takes a part of the variance with it
    return (residual - mean[code]) * scale[code], (count > 1)[code]


def _rms(residual: Floats) -> float:
    return float(np.sqrt(np.mean(residual**2))) if len(residual) else 0.0


def _count_ranges(n: int) -> int:
    return max(1, min(RANGES, n // PER_RANGE))


def _by_score(score: Floats, residual: Floats) -> tuple[ScoreRange, ...]:
    order = np.argsort(score, kind="stable")
    each = np.array_split(order, _count_ranges(len(order))) if len(order) else []
    return tuple(
        ScoreRange(float(score[one[0]]), float(score[one[-1]]), len(one), float(_rms(residual[one]) / np.sqrt(2.0)))
        for one in each
    )
