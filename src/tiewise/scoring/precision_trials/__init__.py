"""Which precision a collection can afford: the same vectors stored and scored in several ways, side by side."""

from tiewise.scoring.precision_trials.result import PrecisionRow, Precisions
from tiewise.scoring.precision_trials.setups import STORAGE, Setup
from tiewise.scoring.precision_trials.trial import precisions

__all__ = ["STORAGE", "PrecisionRow", "Precisions", "Setup", "precisions"]
