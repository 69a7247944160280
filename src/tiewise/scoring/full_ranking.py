"""`tie_groups`: tie groups straight from embeddings, so that a whole collection is evaluated without a run.

For every judged document, all documents are counted that score above it or the same. Nothing is sorted or cut, and one
block of scores is in memory at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from tiewise.data.columns import Codes, Floats
from tiewise.data.documents import Documents
from tiewise.data.judgments import Qrels
from tiewise.data.progress import Progress
from tiewise.errors import InputError
from tiewise.scoring.blocks import Blocks, Scorer
from tiewise.scoring.device_scorer import DeviceScorer
from tiewise.scoring.device_ties import DeviceTieCounts
from tiewise.scoring.host_ties import HostTieCounts
from tiewise.scoring.ids import Ids
from tiewise.scoring.judgments import Judgments
from tiewise.ties.groups import TieGroups

__all__ = ["count_tie_groups", "score_judged"]

#: The tie-break orders of documents in a matrix: by id, or by row.
VECTOR_ORDERS = ("docid-desc", "docid-asc", "given")


def count_tie_groups(
    scorer: Scorer,
    query_ids: Ids,
    doc_ids: Ids,
    qrels: Qrels,
    orders: Sequence[str],
    scores: Floats | None,
    block: int | None,
    query_block: int | None,
    progress: Progress | None,
    drop_self: bool = False,
) -> TieGroups:
    """The tie groups of the judged documents in the ranking of all documents.

    With `drop_self`, documents with the id of their query are left out.
    """
    if drop_self:
        if scores is not None:
            raise InputError("drop_self needs the whole collection, not one shard: leave out scores.")
        whole, rows, own = _with_self(qrels)
        options = (orders, None, block, query_block, progress)
        return count_tie_groups(scorer, query_ids, doc_ids, whole, *options).without(own)._keep(rows, qrels)
    if isinstance(orders, str) or not isinstance(orders, Iterable):
        raise InputError(f"orders must be a list of tie-break orders, such as ['given'], not {orders!r}.")
    for order in orders:
        if order not in VECTOR_ORDERS:
            raise InputError(f"Unknown tie-break order {order!r}. Embeddings have: {', '.join(VECTOR_ORDERS)}.")
    judgments = Judgments(qrels, query_ids, doc_ids)
    shared_scores = None if scores is None else _check_scores(scores, judgments)
    make_counts = DeviceTieCounts if isinstance(scorer, DeviceScorer) else HostTieCounts
    counts = make_counts(scorer, judgments, tuple(orders), shared_scores)
    blocks = Blocks(scorer, len(judgments.query_rows), block, query_block, progress)
    counts.count(blocks)
    blocks.finish()
    scorer.warn_of_zero_vectors()
    return counts.to_tie_groups()


def _with_self(qrels: Qrels) -> tuple[Qrels, Codes, Codes]:
    """The judged documents and the one with the id of each query, the rows of the judged ones, and those of the others.

    Labels are left out.
    """
    ids, docs, offsets = qrels.ids(np.arange(len(qrels))), list[str](), [0]
    rows, own = list[int](), list[int]()
    for query, first, last in zip(qrels.queries, qrels.offsets.tolist(), qrels.offsets[1:].tolist(), strict=False):
        judged = ids[first:last]
        rows.extend(range(len(docs), len(docs) + len(judged)))
        docs += judged if query in judged else [*judged, query]
        own.append(docs.index(query, offsets[-1]))
        offsets.append(len(docs))
    whole = Qrels(qrels.queries, np.array(offsets), Documents.of_rows(docs), np.zeros(len(docs)))
    return whole, np.array(rows, dtype=np.int64), np.array(own, dtype=np.int64)


def score_judged(scorer: Scorer, query_ids: Ids, doc_ids: Ids, qrels: Qrels) -> Floats:
    """The scores of the judged documents, one per row of the qrels; NaN for documents that are not here."""
    judgments = Judgments(qrels, query_ids, doc_ids)
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
