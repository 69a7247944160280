"""`Collection`: documents that are prepared once and then searched, counted and scored many times.

`search`, `tie_groups`, `judged_scores` and `rescore` make a collection for a single call.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict, TypeVar

import numpy as np
from numpy.typing import NDArray

from tiewise.data.columns import Floats, is_first, split_segments
from tiewise.data.documents import Documents
from tiewise.data.progress import Progress, check_progress
from tiewise.data.runs import Run
from tiewise.errors import InputError, warn
from tiewise.io import as_qrels, as_run
from tiewise.io.types import QrelsLike, RunLike
from tiewise.results.wording import count_noun, list_examples
from tiewise.scoring.backends import Backend, NumpyBackend, TorchBackend, device_backend, scoring_backend
from tiewise.scoring.blocks import Blocks, Scorer
from tiewise.scoring.candidates import find_best
from tiewise.scoring.device_scorer import MIN_TILE, DeviceScorer
from tiewise.scoring.environment import ieee_arithmetic
from tiewise.scoring.host_scorer import HostScorer
from tiewise.scoring.judgments import Ids, IdsLike, Judgments, with_self
from tiewise.scoring.operands import Mask, Operand, check_operands, make_operand
from tiewise.scoring.options import SCORE_DTYPES, check_choice, check_pair_function, check_precision, require_int
from tiewise.scoring.reproducible import ReproducibleScorer
from tiewise.scoring.spans import Indices
from tiewise.scoring.storage import Codes, Sparse, Storage, VectorsLike, make_storage
from tiewise.scoring.tie_counts import DeviceTieCounts, HostTieCounts
from tiewise.scoring.vector_files import is_path, open_vectors
from tiewise.ties.groups import TieGroups
from tiewise.ties.orders import group_rows

if TYPE_CHECKING:
    from typing_extensions import Unpack

#: Documents: vectors, or files of them.
DocsLike: TypeAlias = "VectorsLike | str | os.PathLike[str] | Sequence[str | os.PathLike[str]]"

#: The tie-break orders of documents in a matrix: by id, or by row.
VECTOR_ORDERS = ("docid-desc", "docid-asc", "given")

#: Tiles of a device for `rescore`. Candidates are few, so a tile has few document vectors.
RESCORING_TILES = {"queries_at_once": MIN_TILE, "doc_tile": 1024}

#: Candidates that are scored again at a time, unless a single list has more; a list counts as so many more of them.
MAX_CANDIDATES, LIST_COST = 2**16, 64


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
        if score_dtype is not None:
            check_choice(score_dtype, SCORE_DTYPES, f"score_dtype {score_dtype!r}")
        if score_dtype is not None and precision == "native":
            raise InputError("precision='native' rounds scores to the type of the vectors. Omit it, or score_dtype.")
        self.fn, self.precision, self.dims = fn, precision, require_int(dims, "dims", optional=True)
        self.score_dtype, self.reproducible = score_dtype, bool(reproducible)
        self._mask = self._check_mask(doc_mask)
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
        self._docs = storage
        self._operands: dict[tuple[Any, bool], Operand] = {}  # by device, and whether codes stay integers

    def __len__(self) -> int:
        return self._docs.n

    @property
    def nbytes(self) -> int | None:
        """The bytes of the vectors in memory, without ids; None for files and sparse vectors."""
        return self._docs.nbytes or None

    def __repr__(self) -> str:
        size = f"{count_noun(len(self), 'document')} of {count_noun(self._docs.dims, 'dimension')}"
        rounded = "" if self.score_dtype is None else f", scores in {self.score_dtype}"
        return f"<Collection: {size}, {self._docs.dtype_name}, {self.fn}{rounded}>"

    def _check_mask(self, mask: Mask) -> Mask:
        if self.fn != "maxsim" and mask is not None:
            raise InputError(f"Masks are for fn='maxsim', which scores tokens; fn={self.fn!r} has one vector per row.")
        return mask

    def _cut(self, storage: Storage, what: str) -> Storage:
        if self.dims is None or storage.dims == self.dims:
            return storage
        if storage.dims < self.dims:
            raise InputError(f"The {what} have {storage.dims} dimensions, fewer than dims={self.dims}.")
        return storage.cut(self.dims)

    def scorer(self, queries: VectorsLike, query_mask: Mask = None, **device_options: Any) -> Scorer:
        """The scorer of queries against the documents, by default where the queries are.

        Sparse vectors are scored in main memory. `device_options` are options of `DeviceScorer`.
        """
        self._check_mask(query_mask)
        given = self._cut(make_storage(queries, "queries", self.fn), "queries")
        check_operands(given, self._docs, self.fn)
        backend = self._backend or scoring_backend(given.backend)
        if isinstance(given, Sparse) or isinstance(self._docs, Sparse):
            backend = NumpyBackend()
        integers = isinstance(given, Codes) and isinstance(self._docs, Codes)

        def operands(place: Backend) -> tuple[Operand, Operand]:
            key = place.device, integers
            left = make_operand(given, place, query_mask, "queries", integers=integers)
            if key not in self._operands:  # what is prepared for one call is kept for the next
                self._operands[key] = make_operand(self._docs, place, self._mask, "documents", integers=integers)
            return left, self._operands[key]

        options = self.fn, self.precision
        if not isinstance(backend, TorchBackend):
            return HostScorer(*operands(backend), *options, self.score_dtype)
        # If scores are to be reproducible, the definition decides about scores that are not rounded.
        own_dtype = None if self.reproducible else self.score_dtype
        scorer = DeviceScorer(backend, *operands(backend), *options, score_dtype=own_dtype, **device_options)
        if not self.reproducible or (scorer.types.integer and self.score_dtype is None):  # integers are exact
            return scorer
        host = operands(NumpyBackend())
        if ReproducibleScorer.supports(scorer):
            return ReproducibleScorer(*host, scorer, self.score_dtype)
        return HostScorer(*host, *options, self.score_dtype)

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
        scorer = self.scorer(queries, query_mask)
        n = scorer.queries.n
        ids = Ids(query_ids, n, "query")
        blocks = Blocks(scorer, n, block, query_block, progress)
        query, doc, score = find_best(scorer, blocks, min(k, max(len(self), 1)))
        blocks.finish()
        starts, complete = np.searchsorted(query, np.arange(n + 1)), np.ones(n, dtype=bool)
        if cap is not None:
            fits = np.arange(len(query)) - starts[query] < min(cap, len(query))
            left_out = len(query) - int(np.count_nonzero(fits))
            if left_out:
                documents = count_noun(left_out, "document that ties", "documents that tie")
                warn(f"cap={cap} left out {documents} with the last one of a list.")
            complete[query[~fits]] = False
            query, doc, score = query[fits], doc[fits], score[fits]
            starts = np.searchsorted(query, np.arange(n + 1))
        numbered = tuple(one.what for one in (ids, self.doc_ids) if one.are_made_up)
        found = Documents(doc, self.doc_ids.all, distinct=False)
        return Run(tuple(ids.of_rows(range(n))), starts, found, score, complete_lists=complete, numbered=numbered)

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
        scorer = self.scorer(queries, query_mask)
        ids, judged = Ids(query_ids, scorer.queries.n, "query"), as_qrels(qrels)
        if drop_self and scores is not None:
            raise InputError("drop_self needs the whole collection, not one shard: leave out scores.")
        if isinstance(orders, str) or not isinstance(orders, Iterable):
            raise InputError(f"orders must be a list of tie-break orders, such as ['given'], not {orders!r}.")
        for order in orders:
            if order not in VECTOR_ORDERS:
                raise InputError(f"Unknown tie-break order {order!r}. Embeddings have: {', '.join(VECTOR_ORDERS)}.")
        counted, rows, own = with_self(judged) if drop_self else (judged, None, None)
        judgments = Judgments(counted, ids, self.doc_ids)
        shared_scores = None if scores is None else judgments.check_scores(scores)
        make_counts = DeviceTieCounts if isinstance(scorer, DeviceScorer) else HostTieCounts
        counts = make_counts(scorer, judgments, tuple(orders), shared_scores)
        blocks = Blocks(scorer, len(judgments.query_rows), block, query_block, progress)
        counts.count(blocks)
        blocks.finish()
        ties = counts.to_tie_groups()
        return ties if rows is None or own is None else ties.without(own).for_judgments(judged, rows)

    @ieee_arithmetic()
    def judged_scores(
        self, queries: VectorsLike, qrels: QrelsLike, *, query_ids: IdsLike = None, query_mask: Mask = None
    ) -> Floats:
        """The scores of the judged documents, one per row of the qrels; NaN for documents that are not here."""
        scorer = self.scorer(queries, query_mask)
        judgments = Judgments(as_qrels(qrels), Ids(query_ids, scorer.queries.n, "query"), self.doc_ids)
        scores = np.full(len(judgments.qrels), np.nan)
        scores[judgments.has_vectors] = judgments.score(scorer)
        return scores

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
        scorer = self.scorer(queries, query_mask, **RESCORING_TILES)
        ids, table = Ids(query_ids, scorer.queries.n, "query"), as_run(run)
        report_progress = check_progress(progress)
        query_row, doc_row = ids.find_rows(table.queries), self.doc_ids.find_doc_rows(table)
        rows, start, size = group_rows(table)
        doc, query, offsets = table.doc[rows], table.query, table.offsets
        is_within = start < (len(rows) if depth is None else min(depth, len(rows)))
        is_scored = is_within & (size > 1) if only == "tied" else is_within
        _check_found(query_row, np.arange(len(query_row)), table.queries, ("query", "queries"), "query_ids")
        _check_found(doc_row, doc[is_scored], table.docs, ("document", "documents"), "doc_ids")
        scores, scored = np.zeros(len(doc)), np.flatnonzero(is_scored)
        ends = np.searchsorted(scored, offsets)
        # On a device a product takes a tile of queries anyway, so the lists of a tile are scored together.
        for lists in split_segments(ends + LIST_COST * np.arange(len(ends)), MAX_CANDIDATES):
            part = scored[ends[lists.start] : ends[lists.stop]]
            scores[part] = scorer.score_pairs(query_row[lists], query[part] - lists.start, doc_row[doc[part]])
            report_progress(lists.stop, len(table.queries))
        scorer.warn_of_zero_vectors()
        group = np.cumsum(np.arange(len(rows)) - offsets[query] == start) - 1
        new = _order_groups(scores, group, table) if only == "tied" else _append_rest(scores, is_scored, group, query)
        order = np.lexsort((-new, query))
        return replace(table, documents=Documents(doc[order], table.docs), value=new[order], rank=None, source=None)


# -- rescoring --------------------------------------------------------------------------------------------------------


def _append_rest(scores: Floats, is_scored: NDArray[np.bool_], group: Indices, query: Indices) -> Floats:
    """The new scores of documents that are scored again, and integers below them for the others."""
    n = int(query.max(initial=-1)) + 1
    lowest, first_group = np.full(n, np.inf), np.full(n, len(group))
    np.minimum.at(lowest, query[is_scored], scores[is_scored])
    np.minimum.at(first_group, query[~is_scored], group[~is_scored])
    # Twice the spacing of float32 at the lowest score.
    step = np.maximum(1.0, np.ldexp(1.0, np.frexp(lowest)[1] - 23))[query]
    rest = (np.floor(lowest[query] / step) - 1 - (group - first_group[query])) * step
    return np.where(is_scored, scores, rest)


def _order_groups(scores: Floats, group: Indices, run: Run) -> Floats:
    """Decreasing integers, by group and within a group by the new scores; ties in both stay ties."""
    order = np.lexsort((-scores, group))
    rank = np.cumsum(is_first(group, scores[order]))  # groups are in order already
    new = np.empty(len(group))
    new[order] = np.diff(run.offsets)[run.query] - (rank - rank[run.offsets[run.query]])
    return new


def _check_found(rows: Indices, codes: Indices, names: Sequence[str], words: tuple[str, str], option: str) -> None:
    """Raise if a query or a document has no vector; each of them is counted once."""
    missing = list(dict.fromkeys(codes[rows[codes] < 0].tolist()))
    if missing:
        number = count_noun(len(missing), f"{words[0]} of the run has", f"{words[1]} of the run have")
        raise InputError(f"{number} no vector: {list_examples(names[code] for code in missing)}. Is {option} missing?")


# -- single calls -----------------------------------------------------------------------------------------------------

Function = TypeVar("Function", bound=Callable[..., Any])


class CallOptions(TypedDict, total=False):
    """The options of single calls as keywords, for type checkers: see `Collection` and its methods."""

    fn: str
    precision: str
    doc_ids: IdsLike
    doc_mask: Mask
    query_ids: IdsLike
    query_mask: Mask
    cap: int | None
    depth: int | None
    only: Literal["tied"] | None
    orders: Sequence[str]
    scores: Floats | None
    drop_self: bool
    block: int | None
    query_block: int | None
    progress: Progress | None


#: Those of them that a collection takes; the others are of its methods.
DOCUMENT_OPTIONS = ("fn", "precision", "doc_ids", "doc_mask")


def _single_call(function: Function) -> Function:
    """Decorator: the signature shows the options of the documents and those of the method with the same name."""
    own, of_docs, of_method = (
        inspect.signature(one).parameters for one in (function, Collection, getattr(Collection, function.__name__))
    )
    parameters = [one for one in own.values() if one.kind is not inspect.Parameter.VAR_KEYWORD]
    parameters += [of_docs[name] for name in DOCUMENT_OPTIONS]
    parameters += [one for one in of_method.values() if one.kind is inspect.Parameter.KEYWORD_ONLY]
    function.__signature__ = inspect.signature(function).replace(parameters=parameters)  # type: ignore[attr-defined]
    return function


def _collect(docs: VectorsLike, options: Any) -> Collection:
    """The collection of a single call; its own options are taken out of `options`."""
    return Collection(docs, **{name: options.pop(name) for name in DOCUMENT_OPTIONS if name in options})


@_single_call
def search(queries: VectorsLike, docs: VectorsLike, k: int, **options: Unpack[CallOptions]) -> Run:
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
    return _collect(docs, options).search(queries, k, **options)  # type: ignore[misc]


@_single_call
def tie_groups(queries: VectorsLike, docs: VectorsLike, qrels: QrelsLike, **options: Unpack[CallOptions]) -> TieGroups:
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
    return _collect(docs, options).tie_groups(queries, qrels, **options)  # type: ignore[misc]


@_single_call
def judged_scores(queries: VectorsLike, docs: VectorsLike, qrels: QrelsLike, **options: Unpack[CallOptions]) -> Floats:
    """The scores of the judged documents, one per row of the qrels; NaN for documents that are not here.

    >>> judged_scores([[2.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]], {"0": {"1": 1, "0": 1, "9": 0}})
    array([ 0.,  2., nan])
    """
    return _collect(docs, options).judged_scores(queries, qrels, **options)  # type: ignore[misc]


@_single_call
def rescore(run: RunLike, queries: VectorsLike, docs: VectorsLike, **options: Unpack[CallOptions]) -> Run:
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
    return _collect(docs, options).rescore(run, queries, **options)  # type: ignore[misc]
