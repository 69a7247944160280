"""What made the ties of a run. A cause is named only if there is evidence of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from tiewise.analysis.auditing.even_steps import EvenSteps, find_steps_by_list, find_steps_in_run
from tiewise.analysis.auditing.gaps import GapTest, run_gap_test
from tiewise.analysis.auditing.grids import MIN_DISTINCT, Grid
from tiewise.analysis.auditing.inference import ScoreGrid
from tiewise.analysis.auditing.tie_statistics import Pile, TieStatistics

__all__ = ["MIN_ROWS", "Evidence"]

MIN_ROWS = 50  # fewer rows are an example, not a run
IDENTICAL_SHARE = 0.9  # of tied rows: if so many are identical documents, these are the cause


@dataclass(frozen=True)
class Evidence:
    """The evidence in a run's scores and ties, and the cause that follows from it."""

    scores: ScoreGrid
    ties: TieStatistics
    identical_rows: int | None = None  #: rows that are tied with identical documents only

    @cached_property
    def piles(self) -> tuple[Pile, ...]:
        """Scores at the limits 1 and 0."""
        return self.ties.piles(next(iter(self.scores.printings), None))

    @property
    def saturation(self) -> Pile | None:
        """The limit at which most tied rows are, if the score function levels off there."""
        saturated = (pile for pile in self.piles if pile.levels_off)
        return next((pile for pile in saturated if 2 * pile.tied_rows >= self.ties.tied_rows), None)

    @cached_property
    def rounding(self) -> tuple[float, Grid] | None:
        """The share of tied pairs that rounding explains at most, and the grid; None if nothing is tied."""
        limits = [pile.at for pile in self.piles if pile.printed and pile.levels_off]
        return self.ties.explain_by_rounding(self.scores.roundings, limits)

    @cached_property
    def even_steps(self) -> EvenSteps | None:
        """The even steps of scores that were scaled, all of them or list by list; None if there are none."""
        if self.scores.quantization or self.scores.name == "integer":
            return None
        by_list = find_steps_by_list(self.ties.sample_tied_lists(), self.scores.printings)
        return by_list or find_steps_in_run(self.scores.sample, self.ties.lists, self.scores.printings)

    @cached_property
    def gaps(self) -> GapTest:
        """Whether distinct scores come as near to each other as by chance."""
        return run_gap_test(self.ties)

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
        return "genuine" if self.gaps.shows_chance or ties.is_unmatched else "unclear"

    @property
    def shows_only_gaps(self) -> bool:
        """Whether all that is known is that scores keep apart, as rounded numbers and counts do."""
        return self.cause == "unclear" and self.scores.distinct >= MIN_DISTINCT and self.gaps.shows_rounding
