"""How every call starts: operands, options and ids are checked, and the operands decide about the scorer."""

from __future__ import annotations

from typing import Any

from tiewise.scoring.backends import TorchBackend, scoring_backend
from tiewise.scoring.blocks import Scorer
from tiewise.scoring.device_scorer import DeviceScorer
from tiewise.scoring.host_scorer import HostScorer
from tiewise.scoring.ids import Ids, IdsLike
from tiewise.scoring.operands import Mask, VectorsLike, make_operands
from tiewise.scoring.options import check_pair_function, check_precision
from tiewise.scoring.quantised import Quantized

__all__ = ["make_scorer", "prepare"]


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
