"""`search`, `tie_groups`, `judged_scores` and `rescore`: a `Collection` for a single call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from tiewise.data.columns import Floats
from tiewise.data.progress import Progress
from tiewise.data.runs import Run
from tiewise.io.types import QrelsLike, RunLike
from tiewise.scoring.collections import Collection
from tiewise.scoring.ids import IdsLike
from tiewise.scoring.operands import Mask
from tiewise.scoring.storage import VectorsLike
from tiewise.ties.groups import TieGroups

__all__ = ["judged_scores", "rescore", "search", "tie_groups"]


def search(
    queries: VectorsLike,
    docs: VectorsLike,
    k: int,
    *,
    fn: str = "dot",
    precision: str = "float32",
    query_ids: IdsLike = None,
    doc_ids: IdsLike = None,
    query_mask: Mask = None,
    doc_mask: Mask = None,
    cap: int | None = None,
    block: int | None = None,
    query_block: int | None = None,
    progress: Progress | None = None,
) -> Run:
    """A `Run` of the k best documents of each query, and of all that tie with the k-th.

    Operands and `fn` are those of `score`; documents may be in main memory while queries are on a GPU. Ids are
    ``"0"``, ``"1"``, … unless they are given. `cap` limits the length of a list: if a tie group does not fit, its first
    rows are kept, and a warning says how many documents were left out. `block` documents and `query_block` queries are
    scored at a time (on a GPU in whole tiles); this bounds the memory and changes no score. `progress(done, total)` is
    called after each block.

    >>> docs = [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.5, 0.5]]
    >>> search([[2.0, 0.0]], docs, 1, doc_ids=["a", "b", "c", "d"]).to_dict()
    {'0': {'a': 2.0, 'c': 2.0}}
    """
    collection = Collection(docs, doc_ids=doc_ids, fn=fn, precision=precision, doc_mask=doc_mask)
    return collection.search(
        queries,
        k,
        query_ids=query_ids,
        query_mask=query_mask,
        cap=cap,
        block=block,
        query_block=query_block,
        progress=progress,
    )


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
    drop_self: bool = False,
    progress: Progress | None = None,
) -> TieGroups:
    """The tie groups of the judged documents in the ranking of all documents. `evaluate` takes them in place of a run.

    They are equal to those of the full run. Operands, blocks and `progress` are those of `search`; `qrels` is what
    `evaluate` takes. `orders` are the tie-break orders to count for: ``"docid-desc"``, ``"docid-asc"``, ``"given"``
    (by row). With `drop_self`, documents with the id of their query are left out.

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
    collection = Collection(docs, doc_ids=doc_ids, fn=fn, precision=precision, doc_mask=doc_mask)
    return collection.tie_groups(
        queries,
        qrels,
        query_ids=query_ids,
        query_mask=query_mask,
        orders=orders,
        scores=scores,
        block=block,
        query_block=query_block,
        drop_self=drop_self,
        progress=progress,
    )


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
    collection = Collection(docs, doc_ids=doc_ids, fn=fn, precision=precision, doc_mask=doc_mask)
    return collection.judged_scores(queries, qrels, query_ids=query_ids, query_mask=query_mask)


def rescore(
    run: RunLike,
    queries: VectorsLike,
    docs: VectorsLike,
    *,
    fn: str = "dot",
    precision: str = "float32",
    depth: int | None = None,
    only: Literal["tied"] | None = None,
    query_ids: IdsLike = None,
    doc_ids: IdsLike = None,
    query_mask: Mask = None,
    doc_mask: Mask = None,
    progress: Progress | None = None,
) -> Run:
    """The run with its first `depth` documents (all, if None) scored again, in their new order.

    Give float queries with `Quantized` documents, or with the original vectors, and the `fn` that the model was trained
    for: for most embedding models ``"cosine"``, unless vectors have length 1. Masks are those of `search`. A tie group
    in which `depth` ends is scored as a whole.

    - Documents below `depth` keep their order and their ties, below those that are scored again: their scores are
      integers that decrease from below the lowest new score, in steps of 1 or, far from 0, in steps that float32 can
      distinguish.
    - ``only="tied"`` scores only tied documents. A tie group keeps its position and is ordered within. New scores
      cannot be compared with those of other groups, so all scores of the run become decreasing integers.

    >>> run = {"q": {"a": 3.0, "b": 2.0, "c": 2.0, "d": 1.0}}
    >>> vectors = [[0.1], [0.2], [0.3], [0.9]]
    >>> options = dict(query_ids=["q"], doc_ids=["a", "b", "c", "d"], precision="float64")
    >>> rescore(run, [[1.0]], vectors, **options).to_dict()
    {'q': {'d': 0.9, 'c': 0.3, 'b': 0.2, 'a': 0.1}}
    >>> rescore(run, [[1.0]], vectors, depth=2, **options).to_dict()
    {'q': {'c': 0.3, 'b': 0.2, 'a': 0.1, 'd': -1.0}}
    >>> rescore(run, [[1.0]], vectors, only="tied", **options).to_dict()
    {'q': {'a': 4.0, 'c': 3.0, 'b': 2.0, 'd': 1.0}}
    """
    collection = Collection(docs, doc_ids=doc_ids, fn=fn, precision=precision, doc_mask=doc_mask)
    return collection.rescore(
        run, queries, depth=depth, only=only, query_ids=query_ids, query_mask=query_mask, progress=progress
    )
