"""High-precision scoring: scores, quantised vectors, exact search and tie groups straight from embeddings.

Most ties in neural retrieval are made in the last step of a low-precision model. Here that step is computed in float32
or better, for NumPy arrays and torch tensors alike; nothing is imported that the caller has not imported.
"""

from tiewise.scoring.full_ranking import judged_scores, tie_groups
from tiewise.scoring.functions import FUNCTIONS, LEVELS, head, logit, score
from tiewise.scoring.precisions import PRECISIONS
from tiewise.scoring.quantised import Quantized, quantize
from tiewise.scoring.rescoring import rescore
from tiewise.scoring.searching import search

__all__ = [
    "FUNCTIONS",
    "LEVELS",
    "PRECISIONS",
    "Quantized",
    "head",
    "judged_scores",
    "logit",
    "quantize",
    "rescore",
    "score",
    "search",
    "tie_groups",
]
