"""High-precision scoring: scores, quantised vectors, exact search and tie groups straight from embeddings.

Most ties in neural retrieval come from the last step of a low-precision model. Here that step is computed in float32 or
better, for NumPy arrays and torch tensors. torch is not imported unless the caller has imported it.
"""

from tiewise.scoring.collections import Collection, judged_scores, rescore, search, tie_groups
from tiewise.scoring.functions import LEVELS, head, logit, score
from tiewise.scoring.options import FUNCTIONS, PRECISIONS
from tiewise.scoring.quantised import Quantized, quantize
from tiewise.scoring.storage import TokenVectors

__all__ = [
    "FUNCTIONS",
    "LEVELS",
    "PRECISIONS",
    "Collection",
    "Quantized",
    "TokenVectors",
    "head",
    "judged_scores",
    "logit",
    "quantize",
    "rescore",
    "score",
    "search",
    "tie_groups",
]
