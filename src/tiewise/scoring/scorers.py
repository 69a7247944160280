"""Scorers: what scores queries against documents, on a device or in main memory.

`search`, `tie_groups`, `judged_scores` and `rescore` all start here: `prepare` checks operands, options and ids.
"""

from __future__ import annotations

import warnings
from typing import Any, TypeAlias

from tiewise.errors import TiewiseWarning
from tiewise.scoring.backends import TorchBackend, scoring_backend
from tiewise.scoring.device_scorer import DeviceScorer
from tiewise.scoring.host_scorer import HostScorer
from tiewise.scoring.ids import Ids, IdsLike
from tiewise.scoring.operands import Mask, VectorsLike, make_operands
from tiewise.scoring.options import check_pair_function, check_precision
from tiewise.scoring.quantised import Quantized

__all__ = ["Scorer", "make_scorer", "prepare", "warn_of_zero_vectors"]

Scorer: TypeAlias = HostScorer | DeviceScorer


def prepare(
    queries: VectorsLike,
    docs: VectorsLike,
    fn: str,
    precision: str,
    *,
    ids: tuple[IdsLike, IdsLike],
    masks: tuple[Mask, Mask],
    **device_options: Any,
) -> tuple[Scorer, Ids, Ids]:
    """A scorer, and the ids of the queries and of the documents."""
    scorer = make_scorer(queries, docs, fn, precision, masks=masks, **device_options)
    return scorer, Ids(ids[0], scorer.queries.n, "query"), Ids(ids[1], scorer.docs.n, "document")


def make_scorer(
    queries: VectorsLike,
    docs: VectorsLike,
    fn: str = "dot",
    precision: str = "float32",
    *,
    masks: tuple[Mask, Mask] = (None, None),
    **device_options: Any,
) -> Scorer:
    """The scorer of queries against documents; `device_options` are options of `DeviceScorer`."""
    check_pair_function(fn)
    check_precision(precision)
    backend = scoring_backend(queries.codes if isinstance(queries, Quantized) else queries)
    left, right = make_operands(backend, queries, docs, fn, *masks)
    if isinstance(backend, TorchBackend):
        return DeviceScorer(backend, left, right, fn, precision, **device_options)
    return HostScorer(left, right, fn, precision)


def warn_of_zero_vectors(scorer: Scorer, stacklevel: int = 4) -> None:
    """Warn about zero vectors, whose cosine was taken as 0."""
    sides = [f"{count:,} of the {side}" for side, count in scorer.count_zero_vectors().items() if count]
    if sides:
        warnings.warn(
            f"Zero vectors have no direction: {' and '.join(sides)}. Their cosine is taken as 0.",
            TiewiseWarning,
            stacklevel=stacklevel,
        )
