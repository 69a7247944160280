"""Which precision a collection can afford: the same vectors stored and scored in several ways, side by side."""

from tiewise.scoring.precision_trials.rerankers import reranker_precisions
from tiewise.scoring.precision_trials.result import PrecisionRow, Precisions, RerankerPrecisions
from tiewise.scoring.precision_trials.setups import STORAGE, Setup
from tiewise.scoring.precision_trials.trial import precisions

__all__ = [
    "STORAGE",
    "PrecisionRow",
    "Precisions",
    "RerankerPrecisions",
    "Setup",
    "precisions",
    "reranker_precisions",
]
