"""`tie_groups`: tie groups straight from embeddings, so that a whole collection is evaluated with no run at all.

For every judged document all documents are counted that score above it or the same. Nothing is sorted or cut, and one
block of scores is held at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from tiewise.data.columns import Floats
from tiewise.data.progress import Progress
from tiewise.errors import InputError
from tiewise.io import as_qrels
from tiewise.scoring.blocks import Blocks
from tiewise.scoring.device import DeviceScores
from tiewise.scoring.device_ties import DeviceCounts, own_scores
from tiewise.scoring.environment import unaffected_by_settings
from tiewise.scoring.host_ties import HostCounts
from tiewise.scoring.judgments import Judged
from tiewise.scoring.pairwise import pair_scores, warn_of_zero_vectors
from tiewise.scoring.tie_counts import TieCounts
from tiewise.ties.groups import TieGroups

__all__ = ["judged_scores", "tie_groups"]

#: The orders that documents of a matrix have: by id, or by row.
ORDERS = ("docid-desc", "docid-asc", "given")


@unaffected_by_settings
def tie_groups(
    queries: Any,
    docs: Any,
    qrels: Any,
    *,
    fn: str = "dot",
    precision: str = "float32",
    query_ids: Any = None,
    doc_ids: Any = None,
    query_mask: Any = None,
    doc_mask: Any = None,
    orders: Sequence[str] = ("docid-desc",),
    scores: Floats | None = None,
    block: int | None = None,
    query_block: int | None = None,
    progress: Progress | None = None,
) -> TieGroups:
    """The tie groups of the judged documents in the ranking of all documents: what `evaluate` takes in place of a run.

    They equal those of the full run in everything. Operands, blocks and `progress` are those of `search`; `qrels` is
    whatever `evaluate` takes. `orders` are the tie-break orders to count for: ``"docid-desc"``, ``"docid-asc"``,
    ``"given"`` (by row).

    For a collection in shards, gather `judged_scores` of every shard, join them with ``numpy.fmax.reduce``, give them
    to each shard as `scores`, and put the results together with ``TieGroups.merge``.

    >>> docs = [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.5, 0.5]]
    >>> ties = tie_groups([[2.0, 0.0]], docs, {"0": {"0": 1, "3": 0}})
    >>> ties.start, ties.size, ties.length
    (array([0, 2]), array([2, 1]), array([4]))
    >>> import tiewise as tw
    >>> tw.evaluate(None, ties, "RR")["RR"]
    RR 0.7500 [0.5000, 1.0000]
    """
    if isinstance(orders, str) or not isinstance(orders, Iterable):
        raise InputError(f"orders is a list of tie-break orders, such as ['given'], not {orders!r}.")
    for order in orders:
        if order not in ORDERS:
            raise InputError(f"Unknown tie-break order {order!r}. Embeddings have: {', '.join(ORDERS)}.")
    pairs = pair_scores(queries, docs, fn=fn, precision=precision, query_mask=query_mask, doc_mask=doc_mask)
    judged = Judged(as_qrels(qrels), pairs.queries.n, pairs.docs.n, query_ids, doc_ids)
    given = None if scores is None else _given(scores, judged)
    counts: TieCounts
    if isinstance(pairs, DeviceScores):
        counts, held = DeviceCounts(pairs, judged, tuple(orders), given), pairs.lib.held
    else:
        counts, held = HostCounts(pairs, judged, tuple(orders), given), None
    blocks = Blocks(pairs, len(judged.rows), block, query_block, progress, held)
    counts.add(blocks)
    blocks.finish()
    warn_of_zero_vectors(pairs)
    return counts.groups()


@unaffected_by_settings
def judged_scores(
    queries: Any,
    docs: Any,
    qrels: Any,
    *,
    fn: str = "dot",
    precision: str = "float32",
    query_ids: Any = None,
    doc_ids: Any = None,
    query_mask: Any = None,
    doc_mask: Any = None,
) -> Floats:
    """The score of every judged document that these documents have, NaN for the others, along the rows of the qrels.

    >>> judged_scores([[2.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]], {"0": {"1": 1, "0": 1, "9": 0}})
    array([ 0.,  2., nan])
    """
    pairs = pair_scores(queries, docs, fn=fn, precision=precision, query_mask=query_mask, doc_mask=doc_mask)
    judged = Judged(as_qrels(qrels), pairs.queries.n, pairs.docs.n, query_ids, doc_ids)
    score = np.full(len(judged.qrels), np.nan)
    if isinstance(pairs, DeviceScores):
        for block in Blocks(pairs, len(judged.rows)).queries:
            score[judged.of(block)] = own_scores(pairs, pairs.left(judged.rows_of(block)), judged, block)
    else:
        known = np.flatnonzero(judged.known)
        score[known] = pairs.pairs(judged.rows[judged.query[known]], judged.doc[known])
    return score


def _given(scores: Any, judged: Judged) -> Floats:
    """The scores of all shards, checked."""
    try:
        given = np.array(scores, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("scores are numbers, one for each row of the qrels: see judged_scores().") from None
    if given.shape != (len(judged.qrels),):
        raise InputError(
            f"scores have shape {given.shape}; the qrels have {len(judged.qrels)} rows. Give one for each."
        )
    return np.where(judged.query >= 0, given, np.nan)
