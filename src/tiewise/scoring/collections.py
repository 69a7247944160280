"""`Collection`: documents that are prepared once and then searched, counted and scored many times."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

from tiewise.data.columns import Floats
from tiewise.data.progress import Progress
from tiewise.data.runs import Run
from tiewise.errors import InputError
from tiewise.io import as_qrels, as_run
from tiewise.io.types import QrelsLike, RunLike
from tiewise.scoring.backends import device_backend
from tiewise.scoring.blocks import Scorer
from tiewise.scoring.environment import ieee_arithmetic
from tiewise.scoring.full_ranking import count_tie_groups, score_judged
from tiewise.scoring.ids import Ids, IdsLike
from tiewise.scoring.operands import Mask
from tiewise.scoring.options import check_pair_function, check_precision, check_score_dtype, require_int
from tiewise.scoring.rescoring import DEVICE_OPTIONS, rescore_run
from tiewise.scoring.scorers import DocumentOperands, check_masks
from tiewise.scoring.searching import find_best
from tiewise.scoring.storage import Storage, VectorsLike, make_storage
from tiewise.scoring.vector_files import is_path, open_vectors
from tiewise.tables.wording import count_noun
from tiewise.ties.groups import TieGroups

__all__ = ["Collection", "DocsLike"]

#: Documents: vectors, or files of them.
DocsLike: TypeAlias = "VectorsLike | str | os.PathLike[str] | Sequence[str | os.PathLike[str]]"


class Collection:
    """Documents prepared once, with what every call needs: their ids, norms and place in memory.

    - `docs`: vectors as `search` takes them, or files of them: ``.npy`` and ``.safetensors``, which are mapped into
      memory, ``.npz``, and Parquet. A list of files is one collection in shards. Files may be larger than the memory.
    - `doc_ids`: one id per row; for Parquet files, the column of ids is taken. Without ids, rows are counted.
    - `fn`, `precision`, `doc_mask`: as for `search`.
    - `device`: where scores are computed, such as ``"cuda"``; by default, where the queries are. The documents are
      copied there once if they fit, and otherwise block by block in every call.
    - `score_dtype`: scores are rounded to float16, bfloat16 or float8 (e4m3) at the end, by way of float32, as an index
      that stores its scores in this type has them.
    - `dims`: only the first dimensions of documents and queries count, as for Matryoshka embeddings.
    - `reproducible`: scores of a GPU have the bits of the CPU, at a price. Without it a document ties with its copy and
      shards equal the whole, for one model of GPU.

    >>> docs = [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.5, 0.5]]
    >>> collection = Collection(docs, doc_ids=["a", "b", "c", "d"])
    >>> collection
    <Collection: 4 documents of 2 dimensions, float64, dot>
    >>> collection.search([[2.0, 0.0]], 1).to_dict()
    {'0': {'a': 2.0, 'c': 2.0}}
    >>> collection.judged_scores([[2.0, 0.0]], {"0": {"d": 1}})
    array([1.])
    >>> rounded = Collection([[1.0], [1.001]], score_dtype="bfloat16")
    >>> rounded
    <Collection: 2 documents of 1 dimension, float64, dot, scores in bfloat16>
    >>> rounded.search([[3.0]], 1).to_dict()
    {'0': {'0': 3.0, '1': 3.0}}
    """

    def __init__(
        self,
        docs: DocsLike,
        *,
        doc_ids: IdsLike = None,
        fn: str = "dot",
        precision: str = "float32",
        device: Any = None,
        doc_mask: Mask = None,
        dims: int | None = None,
        score_dtype: str | None = None,
        reproducible: bool = False,
    ):
        check_pair_function(fn)
        check_precision(precision)
        check_score_dtype(score_dtype, precision)
        check_masks(fn, doc_mask)
        self.fn, self.precision, self.dims = fn, precision, require_int(dims, "dims", optional=True)
        self.score_dtype, self.reproducible = score_dtype, bool(reproducible)
        self._backend = None if device is None else device_backend(device)
        if is_path(docs):
            storage, found_ids = open_vectors(docs, fn)
            doc_ids = found_ids if doc_ids is None else doc_ids
        else:
            storage = make_storage(docs, "documents", fn)
        storage = self._cut(storage, "documents")
        self.doc_ids = Ids(doc_ids, storage.n, "document")
        if self._backend is not None and self._backend.has_room(storage.nbytes):
            storage = storage.to(self._backend)
        self._docs = DocumentOperands(storage, doc_mask)

    def __len__(self) -> int:
        return self._docs.storage.n

    @property
    def nbytes(self) -> int | None:
        """The bytes of the vectors in memory, without ids; None for files and sparse vectors."""
        return self._docs.storage.nbytes or None

    def __repr__(self) -> str:
        docs = self._docs.storage
        size = f"{count_noun(docs.n, 'document')} of {count_noun(docs.dims, 'dimension')}"
        rounded = "" if self.score_dtype is None else f", scores in {self.score_dtype}"
        return f"<Collection: {size}, {docs.dtype_name}, {self.fn}{rounded}>"

    def _cut(self, storage: Storage, what: str) -> Storage:
        if self.dims is None or storage.dims == self.dims:
            return storage
        if storage.dims < self.dims:
            raise InputError(f"The {what} have {storage.dims} dimensions, fewer than dims={self.dims}.")
        return storage.cut(self.dims)

    def _scorer(self, queries: VectorsLike, query_mask: Mask, **device_options: Any) -> Scorer:
        check_masks(self.fn, query_mask)
        storage = self._cut(make_storage(queries, "queries", self.fn), "queries")
        return self._docs.scorer(
            storage,
            self.fn,
            self.precision,
            query_mask,
            self._backend,
            score_dtype=self.score_dtype,
            reproducible=self.reproducible,
            **device_options,
        )

    @ieee_arithmetic()
    def search(
        self,
        queries: VectorsLike,
        k: int,
        *,
        query_ids: IdsLike = None,
        query_mask: Mask = None,
        cap: int | None = None,
        block: int | None = None,
        query_block: int | None = None,
        progress: Progress | None = None,
    ) -> Run:
        """A `Run` of the k best documents of each query, and of all that tie with the k-th: see `scoring.search`."""
        k = require_int(k, "k")
        cap = require_int(cap, "cap", minimum=k, optional=True)
        scorer = self._scorer(queries, query_mask)
        ids = Ids(query_ids, scorer.queries.n, "query"), self.doc_ids
        return find_best(scorer, *ids, k, cap, block, query_block, progress)

    @ieee_arithmetic()
    def tie_groups(
        self,
        queries: VectorsLike,
        qrels: QrelsLike,
        *,
        query_ids: IdsLike = None,
        query_mask: Mask = None,
        orders: Sequence[str] = ("docid-desc",),
        scores: Floats | None = None,
        block: int | None = None,
        query_block: int | None = None,
        drop_self: bool = False,
        progress: Progress | None = None,
    ) -> TieGroups:
        """The tie groups of the judged documents in the ranking of all documents: see `scoring.tie_groups`.

        >>> collection = Collection([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
        >>> ties = collection.tie_groups([[2.0, 0.0]], {"0": {"0": 1}})
        >>> ties.start, ties.size
        (array([0]), array([2]))
        """
        scorer = self._scorer(queries, query_mask)
        ids = Ids(query_ids, scorer.queries.n, "query"), self.doc_ids
        return count_tie_groups(scorer, *ids, as_qrels(qrels), orders, scores, block, query_block, progress, drop_self)

    @ieee_arithmetic()
    def judged_scores(
        self, queries: VectorsLike, qrels: QrelsLike, *, query_ids: IdsLike = None, query_mask: Mask = None
    ) -> Floats:
        """The scores of the judged documents, one per row of the qrels; NaN for documents that are not here."""
        scorer = self._scorer(queries, query_mask)
        return score_judged(scorer, Ids(query_ids, scorer.queries.n, "query"), self.doc_ids, as_qrels(qrels))

    @ieee_arithmetic()
    def rescore(
        self,
        run: RunLike,
        queries: VectorsLike,
        *,
        depth: int | None = None,
        only: Literal["tied"] | None = None,
        query_ids: IdsLike = None,
        query_mask: Mask = None,
        progress: Progress | None = None,
    ) -> Run:
        """The run with its first `depth` documents (all, if None) scored again: see `scoring.rescore`.

        >>> Collection([[0.1], [0.3]], precision="float64").rescore({"0": {"0": 2.0, "1": 1.0}}, [[1.0]]).to_dict()
        {'0': {'1': 0.3, '0': 0.1}}
        """
        depth = require_int(depth, "depth", optional=True)
        if only not in (None, "tied"):
            raise InputError(f"only must be 'tied' or None, not {only!r}.")
        scorer = self._scorer(queries, query_mask, **DEVICE_OPTIONS)
        ids = Ids(query_ids, scorer.queries.n, "query"), self.doc_ids
        return rescore_run(scorer, *ids, as_run(run), depth, progress, only_tied=only == "tied")
