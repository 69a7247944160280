"""What the scores of a run are: the grid on which they lie, the numbers from which they were made, and the evidence.

The grid is that of all scores. What made ties is asked of the tied scores, for one odd row in a run of bfloat16 scores
does not make it a run of float32 scores.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from tiewise.analysis.auditing.grids import (
    FEW,
    FLOAT32,
    GRIDS,
    LOW_PRECISION,
    Grid,
    grid_of,
    nearest_float32,
    printings,
)
from tiewise.analysis.auditing.origins import CHANCE, MOST, Origin, log10_chance, origin_of
from tiewise.data.columns import Floats

__all__ = ["ScoreGrid", "score_grid"]


@dataclass(frozen=True)
class ScoreGrid:
    """The grid of a run's scores, and what speaks for it."""

    name: str  #: the first of `GRIDS` that holds all scores
    rows: int
    distinct: int  #: distinct scores of the whole run
    telling: int  #: distinct numbers among the nearest float32 of these
    log10_chance: float | None  #: of all distinct scores being on the grid by chance; None for float32 and float64
    resolutions: tuple[Grid, ...]  #: what may have rounded the scores: the grid, or printing with few digits
    origin: Origin | None = None  #: the coarse numbers from which scores were made
    share: float = 1.0  #: the share of rows that were
    tied_share: float = 1.0  #: the share of distinct tied scores that were

    @property
    def known(self) -> bool:
        """Whether there is enough evidence to say that scores were rounded to this grid."""
        return self.telling >= FEW and self.log10_chance is not None and self.log10_chance < CHANCE

    @property
    def precision(self) -> str | None:
        """The low-precision type from which the scores come, if there is enough evidence of one."""
        return None if self.origin is None else self.origin.precision

    @property
    def beneath(self) -> str | None:
        """The low-precision type from whose numbers the scores were made, if they are not such numbers themselves."""
        return None if self.origin is None or self.origin.type == self.name else self.origin.type

    @property
    def made_by(self) -> str | None:
        """How scores were made from coarse numbers: ``"printing"`` with few digits, ``"sigmoid"`` and others."""
        return None if self.origin is None else self.origin.made_by

    @property
    def printings(self) -> tuple[Grid, ...]:
        """The few decimals, and the few digits, with which all scores can have been printed."""
        return tuple(grid for grid in self.resolutions if grid.name.startswith(("decimal", "digits")))

    @property
    def printing(self) -> Grid | None:
        """The first of these."""
        return next(iter(self.printings), None)

    @cached_property
    def evidence(self) -> str:
        """What speaks for the grid, in a sentence."""
        scores = f"{self.rows:,} scores ({self.distinct:,} distinct)"
        if self.origin and (self.made_by or self.name not in LOW_PRECISION):
            return self._made(self.origin, scores)
        if self.name == "float64":
            return f"The {scores} need float64: they lie on no coarser grid."
        if self.name == "float32" or self.log10_chance is None:
            return f"All {scores} are float32 numbers, and lie on no coarser grid."
        lie = f"All {scores} {GRIDS[self.name].words}"
        if self.telling < FEW:
            ones = "ones" if self.distinct < FEW else "float32 numbers"
            return f"{lie}, but so few distinct {ones} are no evidence of rounding."
        odds = 10 ** (-self.log10_chance / self.telling)
        if odds < 1.5:
            return f"{lie}, as any float32 here."
        steps = self.origin.steps if self.origin else None
        even = f" They {steps.words}." if steps else ""
        return f"{lie}; by chance, one float32 in {odds:,.0f} would.{even}"

    def _made(self, origin: Origin, scores: str) -> str:
        """What speaks for the numbers beneath."""
        whole = f"All {scores}" if self.share == 1 else f"{_share(self.share)} of {scores}"
        if self.share < 1:
            whole += f", and {'all' if self.tied_share == 1 else _share(self.tied_share) + ' of the'} tied ones,"
        beneath = (
            f"numbers of the {origin.type} grid" if origin.type else f"numbers in even steps of {origin.grid.name}"
        )
        printed = "printed with few digits" if origin.printing else ""
        how = ", ".join(filter(None, (origin.function.words, printed)))
        return f"{whole} are {beneath}{how and f', {how}'}."


def _share(part: float) -> str:
    return f"{100 * part:.1f}%" if 0.0005 < part < 0.9995 else "Over 99.9%" if part > 0.5 else "Fewer than 0.1%"


def score_grid(values: Floats, tied: Floats | None = None) -> ScoreGrid:
    """The grid of some scores, those among them that are tied, and what they were made from.

    Infinite scores, which say that a document was not scored, lie on every grid.

    >>> scores = np.linspace(0.1, 0.9, 500)
    >>> score_grid(scores).name, score_grid(scores.astype(np.float32).astype(float)).name
    ('float64', 'float32')
    >>> score_grid(scores.astype(np.float16).astype(float)).evidence
    'All 500 scores (500 distinct) lie on the float16 grid; by chance, one float32 in 8,192 would.'
    """
    distinct, rows = np.unique(values, return_counts=True)
    there = np.isfinite(distinct)
    x, rows = distinct[there], rows[there]
    name = grid_of(x)
    chance, read = None, np.unique(nearest_float32(x))
    if name not in ("float32", "float64"):
        chance = log10_chance((FLOAT32.step(read) / GRIDS[name].step(read))[read != 0])
    plain = name not in ("integer", *LOW_PRECISION) and len(x) >= FEW
    printed = [grid for grid in printings(x) if grid.name != name] if plain else []
    found = ScoreGrid(name, len(values), len(distinct), len(read), chance, (GRIDS[name], *printed))
    return found if name == "integer" else _with_origin(found, x, rows, tied)


def _with_origin(found: ScoreGrid, x: Floats, rows: Any, tied: Floats | None) -> ScoreGrid:
    """The grid with what all scores were made from, or else most of the tied ones."""
    origin = origin_of(x)
    if origin is not None or tied is None:
        return replace(found, origin=origin)
    mine = np.unique(tied[np.isfinite(tied)])
    origin = origin_of(mine, MOST)
    if origin is None:
        return found
    return replace(found, origin=origin, share=origin.share(x, rows), tied_share=origin.share(mine))
