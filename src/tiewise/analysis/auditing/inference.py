"""Score-grid inference: on which number grid the scores of a run lie, how they were quantised, and the evidence.

The grid is that of all scores. The quantisation is also looked for among the tied scores alone: one other row in a run
of bfloat16 scores does not make it a run of float32 scores.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tiewise.analysis.auditing.grids import (
    FLOAT32,
    GRIDS,
    LOW_PRECISION,
    MIN_DISTINCT,
    Grid,
    find_grid,
    find_printings,
    nearest_float32,
    subsample,
)
from tiewise.analysis.auditing.quantization import LOG10_ALPHA, Quantization, find_quantization, log10_p_value
from tiewise.data.columns import Codes, Floats
from tiewise.tables.wording import capitalize_first, format_percent

__all__ = ["ScoreGrid", "infer_score_grid"]

MIN_TIED_SHARE = 0.9  # of distinct tied scores: so many must fit a quantisation, the others may come from elsewhere


@dataclass(frozen=True)
class ScoreGrid:
    """The grid of a run's scores, and the evidence for it."""

    name: str  #: the first of `GRIDS` that contains all scores
    rows: int
    distinct: int  #: distinct scores of the run
    distinct_float32: int  #: distinct numbers among their nearest float32
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
    def beneath(self) -> str | None:
        """The low-precision type behind the scores, if they are not numbers of that type themselves."""
        dtype = None if self.quantization is None else self.quantization.dtype
        return None if dtype == self.name else dtype

    @property
    def made_by(self) -> str | None:
        """What hides the coarse numbers: ``"printing"`` with few digits, ``"sigmoid"`` and others."""
        return None if self.quantization is None else self.quantization.made_by

    @property
    def printings(self) -> tuple[Grid, ...]:
        """The few decimals, and the few digits, with which all scores can have been printed."""
        return tuple(grid for grid in self.roundings if grid.name.startswith(("decimal", "digits")))

    @property
    def evidence(self) -> str:
        """The evidence for the grid, in a sentence."""
        scores = f"{self.rows:,} scores ({self.distinct:,} distinct)"
        if self.quantization and (self.made_by or self.name not in LOW_PRECISION):
            return self._describe_quantization(self.quantization, scores)
        if self.name == "float64":
            return f"The {scores} need float64: they lie on no coarser grid."
        if self.name == "float32" or self.log10_p_value is None:
            return f"All {scores} are float32 numbers, and lie on no coarser grid."
        all_scores = f"All {scores} {GRIDS[self.name].description}"
        if self.distinct_float32 < MIN_DISTINCT:
            ones = "ones" if self.distinct < MIN_DISTINCT else "float32 numbers"
            return f"{all_scores}, but so few distinct {ones} are no evidence of rounding."
        odds = 10 ** (-self.log10_p_value / self.distinct_float32)
        if odds < 1.5:
            return f"{all_scores}, as any float32 here."
        steps = self.quantization.steps if self.quantization else None
        even = f" They {steps.description}." if steps else ""
        return f"{all_scores}; by chance, one float32 in {odds:,.0f} would.{even}"

    def _describe_quantization(self, found: Quantization, scores: str) -> str:
        which = f"All {scores}"
        if self.share < 1:
            tied = "all" if self.tied_share == 1 else f"{format_percent(self.tied_share, in_words=True)} of the"
            which = capitalize_first(f"{format_percent(self.share, in_words=True)} of {scores}, and {tied} tied ones,")
        numbers = f"numbers of the {found.dtype} grid" if found.dtype else f"numbers in even steps of {found.grid.name}"
        printed = "printed with few digits" if found.printing else ""
        return f"{', '.join(filter(None, (f'{which} are {numbers}', found.transformation.description, printed)))}."


def infer_score_grid(scores: Floats, sizes: Codes | None = None) -> ScoreGrid:
    """The grid of scores, which are those of tie groups of some sizes, and how they were quantised.

    Infinite scores mean that a document was not scored; they lie on every grid.

    >>> scores = np.linspace(0.1, 0.9, 500)
    >>> infer_score_grid(scores).name, infer_score_grid(scores.astype(np.float32).astype(float)).name
    ('float64', 'float32')
    >>> infer_score_grid(scores.astype(np.float16).astype(float)).evidence
    'All 500 scores (500 distinct) lie on the float16 grid; by chance, one float32 in 8,192 would.'
    """
    sizes = np.ones(len(scores), dtype=np.int64) if sizes is None else sizes
    distinct = np.unique(scores)
    x = distinct[np.isfinite(distinct)]
    name = find_grid(x)
    f = np.unique(nearest_float32(x))
    p_value = None
    if name not in ("float32", "float64"):
        p_value = log10_p_value((FLOAT32.spacing(f) / GRIDS[name].spacing(f))[f != 0])
    printings = find_printings(x) if name != "integer" and len(x) >= MIN_DISTINCT else ()
    printed = () if name in LOW_PRECISION else tuple(grid for grid in printings if grid.name != name)
    found = ScoreGrid(name, int(sizes.sum()), len(distinct), len(f), p_value, subsample(x), (GRIDS[name], *printed))
    if name == "integer":
        return found
    quantization = find_quantization(x, printings)
    if quantization is not None:
        return replace(found, quantization=quantization)
    return _with_quantization_of_ties(found, scores, sizes)


def _with_quantization_of_ties(found: ScoreGrid, scores: Floats, sizes: Codes) -> ScoreGrid:
    """The grid with the quantisation of most tied scores, if there is evidence of one."""
    finite = np.isfinite(scores)
    tied = np.unique(scores[finite & (sizes > 1)])
    if len(tied) < MIN_DISTINCT:
        return found
    quantization = find_quantization(tied, find_printings(tied), MIN_TIED_SHARE)
    if quantization is None:
        return found
    explained = sizes[finite][quantization.explains(scores[finite])]
    share = float(explained.sum() / sizes[finite].sum())
    return replace(found, quantization=quantization, share=share, tied_share=float(quantization.explains(tied).mean()))
