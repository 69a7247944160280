"""The functions of a query and a document, and what scores them: on a device, or in main memory."""

from __future__ import annotations

import warnings
from typing import Any, TypeAlias

from tiewise.errors import InputError, TiewiseWarning
from tiewise.scoring.arrays import Torch, scoring_library
from tiewise.scoring.device import DeviceScores
from tiewise.scoring.host import HostScores
from tiewise.scoring.operands import operands
from tiewise.scoring.precisions import check_precision
from tiewise.scoring.quantised import Quantized

__all__ = ["PAIRWISE", "Scores", "check_pairwise", "pair_scores", "warn_of_zero_vectors"]

#: The functions of a query and a document.
PAIRWISE = ("dot", "cosine", "euclidean", "maxsim", "hamming")

Scores: TypeAlias = HostScores | DeviceScores


def check_pairwise(fn: str) -> None:
    """Raise if there is no such function of two operands."""
    if fn not in PAIRWISE:
        raise InputError(f"Unknown score function {fn!r} of two operands. Use one of: {', '.join(PAIRWISE)}.")


def pair_scores(
    queries: Any,
    docs: Any,
    *,
    fn: str = "dot",
    precision: str = "float32",
    query_mask: Any = None,
    doc_mask: Any = None,
    **device: Any,
) -> Scores:
    """What scores queries against documents; `device` are options of `DeviceScores`."""
    check_pairwise(fn)
    check_precision(precision)
    lib = scoring_library(queries.codes if isinstance(queries, Quantized) else queries)
    left, right = operands(lib, queries, docs, fn, query_mask, doc_mask)
    if isinstance(lib, Torch):
        return DeviceScores(lib, left, right, fn, precision, **device)
    return HostScores(left, right, fn, precision)


def warn_of_zero_vectors(scores: Scores, stacklevel: int = 4) -> None:
    """Warn of vectors without a direction, whose cosine was taken as 0."""
    found = [f"{count:,} of the {side}" for side, count in scores.zero_vectors().items() if count]
    if found:
        warnings.warn(
            f"Zero vectors have no direction: {' and '.join(found)}. Their cosine is taken as 0.",
            TiewiseWarning,
            stacklevel=stacklevel,
        )
