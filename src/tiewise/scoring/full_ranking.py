"""`tie_groups`: tie groups straight from embeddings, so that a whole collection is evaluated without a run.

For every judged document, all documents are counted that score above it or the same. Nothing is sorted or cut, and one
block of scores is in memory at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from tiewise.data.columns import Floats
from tiewise.data.progress import Progress
from tiewise.errors import InputError
from tiewise.io import as_qrels
from tiewise.io.types import QrelsLike
from tiewise.scoring.blocks import Blocks
from tiewise.scoring.device_scorer import DeviceScorer
from tiewise.scoring.device_ties import DeviceTieCounts
from tiewise.scoring.environment import ieee_arithmetic
from tiewise.scoring.host_ties import HostTieCounts
from tiewise.scoring.ids import IdsLike
from tiewise.scoring.judgments import Judgments
from tiewise.scoring.operands import Mask, VectorsLike
from tiewise.scoring.scorers import prepare
from tiewise.ties.groups import TieGroups

__all__ = ["judged_scores", "tie_groups"]

#: The tie-break orders of documents in a matrix: by id, or by row.
VECTOR_ORDERS = ("docid-desc", "docid-asc", "given")


@ieee_arithmetic()
def tie_groups(
    queries: VectorsLike,
    docs: VectorsLike,
    qrels: QrelsLike,
    *,
    fn: str = "dot",
    precision: str = "float32",
    query_ids: IdsLike = None,
    doc_ids: IdsLike = None,
    query_mask: Mask = None,
    doc_mask: Mask = None,
    orders: Sequence[str] = ("docid-desc",),
    scores: Floats | None = None,
    block: int | None = None,
    query_block: int | None = None,
    progress: Progress | None = None,
) -> TieGroups:
    """The tie groups of the judged documents in the ranking of all documents. `evaluate` takes them in place of a run.

    They are equal to those of the full run. Operands, blocks and `progress` are those of `search`; `qrels` is what
    `evaluate` takes. `orders` are the tie-break orders to count for: ``"docid-desc"``, ``"docid-asc"``, ``"given"``
    (by row).

    For a collection in shards: compute `judged_scores` of every shard, join them with ``numpy.fmax.reduce``, give the
    result to each shard as `scores`, and merge the tie groups with ``TieGroups.merge``.

    >>> docs = [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.5, 0.5]]
    >>> ties = tie_groups([[2.0, 0.0]], docs, {"0": {"0": 1, "3": 0}})
    >>> ties.start, ties.size, ties.length
    (array([0, 2]), array([2, 1]), array([4]))
    >>> import tiewise as tw
    >>> tw.evaluate(None, ties, "RR")["RR"]
    RR 0.7500 [0.5000, 1.0000]
    """
    if isinstance(orders, str) or not isinstance(orders, Iterable):
        raise InputError(f"orders must be a list of tie-break orders, such as ['given'], not {orders!r}.")
    for order in orders:
        if order not in VECTOR_ORDERS:
            raise InputError(f"Unknown tie-break order {order!r}. Embeddings have: {', '.join(VECTOR_ORDERS)}.")
    scorer, *ids = prepare(queries, docs, fn, precision, ids=(query_ids, doc_ids), masks=(query_mask, doc_mask))
    judgments = Judgments(as_qrels(qrels), *ids)
    shared_scores = None if scores is None else _check_scores(scores, judgments)
    make_counts = DeviceTieCounts if isinstance(scorer, DeviceScorer) else HostTieCounts
    counts = make_counts(scorer, judgments, tuple(orders), shared_scores)
    blocks = Blocks(scorer, len(judgments.query_rows), block, query_block, progress, counting=True)
    counts.count(blocks)
    blocks.finish()
    scorer.warn_of_zero_vectors()
    return counts.to_tie_groups()


@ieee_arithmetic()
def judged_scores(
    queries: VectorsLike,
    docs: VectorsLike,
    qrels: QrelsLike,
    *,
    fn: str = "dot",
    precision: str = "float32",
    query_ids: IdsLike = None,
    doc_ids: IdsLike = None,
    query_mask: Mask = None,
    doc_mask: Mask = None,
) -> Floats:
    """The scores of the judged documents, one per row of the qrels; NaN for documents that are not here.

    >>> judged_scores([[2.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]], {"0": {"1": 1, "0": 1, "9": 0}})
    array([ 0.,  2., nan])
    """
    scorer, *ids = prepare(queries, docs, fn, precision, ids=(query_ids, doc_ids), masks=(query_mask, doc_mask))
    judgments = Judgments(as_qrels(qrels), *ids)
    scores = np.full(len(judgments.qrels), np.nan)
    scores[judgments.has_vectors] = judgments.score(scorer)
    return scores


def _check_scores(scores: Any, judgments: Judgments) -> Floats:
    """The scores from all shards, as an array."""
    try:
        array = np.array(scores, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("scores must be numbers, one per row of the qrels: see judged_scores().") from None
    n = len(judgments.qrels)
    if array.shape != (n,):
        raise InputError(f"scores have shape {array.shape}, but the qrels have {n} rows. Give one score per row.")
    return np.where(judgments.query >= 0, array, np.nan)
