"""What made the ties of a run. A cause is named only if there is evidence of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from tiewise.analysis.auditing.even_steps import EvenSteps, find_steps_by_list, find_steps_in_run
from tiewise.analysis.auditing.gaps import BY_CHANCE, measure_small_gaps
from tiewise.analysis.auditing.grids import MIN_DISTINCT, Grid
from tiewise.analysis.auditing.inference import ScoreGrid
from tiewise.analysis.auditing.tie_statistics import Pile, TieStatistics

__all__ = ["MIN_ROWS", "Evidence", "collect_evidence"]

MIN_ROWS = 50  # fewer rows are an example, not a run
IDENTICAL_SHARE = 0.9  # of tied rows: if so many are identical documents, these are the cause


@dataclass(frozen=True)
class Evidence:
    """The evidence in a run's scores and ties, and the cause that follows from it."""

    scores: ScoreGrid
    ties: TieStatistics
    identical_rows: int | None  #: rows that are tied with identical documents only
    piles: tuple[Pile, ...]  #: scores at the limits 1 and 0
    saturation: Pile | None  #: the limit with most of the tied rows, if the score function levels off there
    rounding: tuple[float, Grid] | None  #: the share of tied pairs that rounding explains, and the grid
    even_steps: EvenSteps | None  #: of scores that were scaled, all of them or list by list
    small_gaps: float | None  #: relative to chance; None if there are too few ties to say

    @cached_property
    def cause(self) -> str | None:
        """What made most of the ties; None if there are none."""
        ties, scores, quantization = self.ties, self.scores, self.scores.quantization
        if not ties.tied_rows:
            return None
        if 2 * (ties.constant + ties.nearly_constant) >= ties.rankings:
            return "constant"
        if self.identical_rows is not None and self.identical_rows >= IDENTICAL_SHARE * ties.tied_rows:
            return "identical"
        if quantization and not (self.saturation and quantization.transformation.of_logits):
            return "precision" if quantization.precision else "integer" if quantization.grid.name == "1" else "steps"
        if scores.name == "integer" and scores.is_significant:
            return "integer"
        if self.saturation:
            return "saturation"
        if scores.distinct < MIN_DISTINCT:
            return "few" if scores.rows >= MIN_ROWS else "unclear"
        if self.even_steps:
            return "scaled"
        if ties.tied_pairs < MIN_DISTINCT or self.rounding is None:
            return "unclear"
        share, grid = self.rounding
        if share >= 0.5:
            return grid.name if grid.name in ("float32", "float64") else "decimals"
        by_chance = self.small_gaps is not None and self.small_gaps >= BY_CHANCE
        return "genuine" if by_chance or ties.is_unmatched else "unclear"

    @property
    def shows_only_gaps(self) -> bool:
        """Whether all that is known is that scores keep apart, as rounded numbers and counts do."""
        apart = self.small_gaps is not None and self.small_gaps < BY_CHANCE
        return self.cause == "unclear" and self.scores.distinct >= MIN_DISTINCT and apart


def collect_evidence(scores: ScoreGrid, ties: TieStatistics, identical_rows: int | None = None) -> Evidence:
    """The evidence in the scores and ties of a run."""
    piles = ties.piles(next(iter(scores.printings), None))
    saturated = [pile for pile in piles if pile.levels_off]
    saturation = next((pile for pile in saturated if 2 * pile.tied_rows >= ties.tied_rows), None)
    rounding = ties.explain_by_rounding(scores.roundings, [pile.at for pile in saturated if pile.printed])
    steps = None
    if not scores.quantization and scores.name != "integer":
        steps = find_steps_by_list(ties.sample_tied_lists(), scores.printings)
        steps = steps or find_steps_in_run(scores.sample, ties.lists, scores.printings)
    return Evidence(scores, ties, identical_rows, piles, saturation, rounding, steps, measure_small_gaps(ties))
