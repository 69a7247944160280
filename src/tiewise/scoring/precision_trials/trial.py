"""`precisions`: one collection stored and scored in several ways, each measured against float32."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np

from tiewise.analysis.evaluating import evaluate
from tiewise.analysis.reports import Report
from tiewise.caching import cached_property
from tiewise.data.judgments import Qrels
from tiewise.data.progress import Progress, check_progress
from tiewise.data.runs import Run
from tiewise.errors import InputError
from tiewise.io import as_qrels
from tiewise.io.types import QrelsLike
from tiewise.metrics.definition import Measure
from tiewise.metrics.names import MeasureLike
from tiewise.scoring.backends import Array, backend_of, dtype_name, is_low_precision
from tiewise.scoring.blocks import split
from tiewise.scoring.collections import Collection
from tiewise.scoring.ids import Ids, IdsLike
from tiewise.scoring.options import require_int
from tiewise.scoring.precision_trials.result import DEFAULT_CUTOFF, PrecisionRow, Precisions, Speed
from tiewise.scoring.precision_trials.rows import check_trial, make_row, take_first_for_relevant
from tiewise.scoring.precision_trials.setups import Setup, bytes_per_vector, default_setups, shorten, store
from tiewise.scoring.quantised import BLOCK, Quantized

__all__ = ["precisions"]

FUNCTIONS = ("cosine", "dot", "euclidean")


def precisions(
    queries: Array,
    docs: Array,
    qrels: QrelsLike | None = None,
    *,
    query_ids: IdsLike = None,
    doc_ids: IdsLike = None,
    measures: MeasureLike | Iterable[MeasureLike] = "nDCG@10",
    rows: Iterable[str | Setup] | None = None,
    encoders: Mapping[str, tuple[Array, Array]] | None = None,
    max_loss: float | None = None,
    fn: str = "cosine",
    depth: int = 100,
    phi: float = 0.9,
    repeats: int = 3,
    resamples: int = 10_000,
    seed: int = 0,
    progress: Progress | None = None,
) -> Precisions:
    """What each way to store vectors and compute scores costs in quality, against float32, and what it saves.

    - `queries`, `docs`: float vectors, arrays or tensors. Without `qrels`, the first documents of the float32 ranking
      are taken for relevant.
    - `rows`: the ways to compare, in the notation of `Setup`: ``"bfloat16"``, ``"float32:int8"`` (float32 queries,
      int8 documents), ``"float32/bfloat16"`` (float32 vectors, bfloat16 scores), ``"binary+100"`` (the first 100
      scored again in float32), ``"float32@256"`` (the first 256 dimensions). float32 is always one of them.
    - `encoders`: vectors of the same queries and documents from the model in another type, by name; a row
      ``"bfloat16>float32"`` takes those that are called bfloat16.
    - `measures`: the first one decides. `max_loss`: how much of it may be lost; then the result says what to choose.
    - `fn`: cosine, dot or euclidean; binary codes are compared by their equal bits. `depth`: the length of the lists
      that are compared with those of float32, by RBO and RBR with persistence `phi`.
    - `repeats`: how often the search is timed; 0 for no timing. `resamples`, `seed`: of the bootstrap over queries.

    int8 and int4 take the range of each dimension from the documents alone, never from queries or judgments. For
    cosine, vectors are divided by their lengths before they are quantised.

    >>> import numpy as np
    >>> docs = np.random.default_rng(0).normal(size=(200, 32)).astype(np.float32)
    >>> found = precisions(docs[:20] + 0.1, docs, rows=["float16", "binary"], measures="R@10", repeats=0)
    >>> [(str(row.setup), row.bytes) for row in found.rows]
    [('float32', 128.0), ('float16', 64.0), ('binary', 4.0)]
    >>> found.rows[1].expected > found.rows[2].expected
    True
    """
    chosen = check_trial(measures, max_loss, resamples, seed)
    check_progress(progress)
    if fn not in FUNCTIONS:
        raise InputError(f"fn={fn!r} is not possible here. Use one of: {', '.join(FUNCTIONS)}.")
    lengths = require_int(depth, "depth"), require_int(repeats, "repeats", minimum=0)
    trial = _Trial(queries, docs, query_ids, doc_ids, encoders or {}, fn, phi, *lengths, has_qrels=qrels is not None)
    dims = trial.docs.shape[1]
    setups = [Setup(), *(default_setups(dims, encoders or ()) if rows is None else map(Setup.parse, rows))]
    setups = list(dict.fromkeys(setups))
    for setup in setups:
        trial.vectors(setup)  # an error now, not after minutes
    judged = as_qrels(qrels) if qrels is not None else trial.reference_judgments(chosen[0])
    found = []
    for place, setup in enumerate(setups):
        found.append(trial.measure(setup, judged, chosen))
        if progress is not None:
            progress(place + 1, len(setups))
    return Precisions(found, chosen, max_loss, judged=qrels is not None, resamples=resamples, seed=seed)


class _Trial:
    """The vectors, and the float32 ranking that others are compared with."""

    def __init__(
        self,
        queries: Any,
        docs: Any,
        query_ids: IdsLike,
        doc_ids: IdsLike,
        encoders: Mapping[str, tuple[Any, Any]],
        fn: str,
        phi: float,
        depth: int,
        repeats: int,
        *,
        has_qrels: bool,
    ):
        self.queries, self.docs = _matrices(queries, docs)
        self._of_encoder = {name: _matrices(*pair, f" of '{name}'") for name, pair in encoders.items()}
        for name, pair in self._of_encoder.items():
            if (len(pair[0]), len(pair[1])) != (len(self.queries), len(self.docs)):
                raise InputError(
                    f"The encoder '{name}' has vectors of {len(pair[0]):,} queries and {len(pair[1]):,} documents, not "
                    f"of {len(self.queries):,} and {len(self.docs):,}."
                )
        ids = Ids(query_ids, len(self.queries), "query"), Ids(doc_ids, len(self.docs), "document")
        # Against the ranking's own documents, row numbers are right.
        self.query_ids, self.doc_ids = (None if has_qrels and one.are_made_up else one.all for one in ids)
        self.fn, self.depth, self.phi, self.repeats = fn, depth, phi, repeats

    def vectors(self, setup: Setup) -> tuple[Array, Array]:
        """The queries and documents of a setup, before they are stored."""
        if setup.encoder is None:
            pair = self.queries, self.docs
        elif setup.encoder in self._of_encoder:
            pair = self._of_encoder[setup.encoder]
        else:
            known = ", ".join(self._of_encoder) or "none are given"
            raise InputError(f"'{setup}': there are no vectors of an encoder '{setup.encoder}' ({known}).")
        return shorten(pair[0], setup), shorten(pair[1], setup)

    def measure(self, setup: Setup, qrels: Qrels, measures: Sequence[Measure]) -> PrecisionRow:
        """One row of the table."""
        tried = _Tried(self, setup)
        row = make_row(
            setup, tried.run, self.reference.run, lambda some: tried.evaluate(qrels, some), measures, self.phi
        )
        size = bytes_per_vector(setup, self.docs.shape[1], len(self.docs))
        return replace(row, bytes=size, speed=tried.time(self.repeats))

    @cached_property
    def reference(self) -> _Tried:
        return _Tried(self, Setup())

    def reference_judgments(self, measure: Measure) -> Qrels:
        """The first documents of each float32 ranking, as if they alone were relevant."""
        return take_first_for_relevant(self.reference.search(measure.cutoff or DEFAULT_CUTOFF), measure)


@dataclass
class _Tried:
    """One setup: its vectors, its ranking and the time that a search takes."""

    trial: _Trial
    setup: Setup

    @cached_property
    def _operands(self) -> tuple[Any, Any]:
        queries, documents = self.trial.vectors(self.setup)
        docs = store(documents, self.setup.docs, self.trial.fn, "documents")
        scale = docs if isinstance(docs, Quantized) and self.setup.queries == self.setup.docs else None
        return store(queries, self.setup.queries, self.trial.fn, "queries", scale), docs

    @cached_property
    def _collection(self) -> Collection:
        setup = self.setup
        return Collection(
            self._operands[1],
            doc_ids=self.trial.doc_ids,
            fn="hamming" if setup.queries == setup.docs == "binary" else self.trial.fn,
            precision="native" if setup.is_native else "float32",
            score_dtype=None if setup.is_native or setup.scores == "float32" else setup.scores,
        )

    def evaluate(self, qrels: Qrels, measures: Sequence[Measure]) -> Report:
        """The measures over the whole collection, or over the candidates that are scored again."""
        if self.setup.rescore is not None:
            return evaluate(qrels, self.run, measures, complete=True, oblivious=None)
        ties = self._collection.tie_groups(self._operands[0], qrels, query_ids=self.trial.query_ids, orders=())
        return evaluate(None, ties, measures, complete=True, oblivious=None)

    @cached_property
    def run(self) -> Run:
        """The first documents of each query, with all that tie with the last."""
        return self._rank()

    def _rank(self) -> Run:
        if self.setup.rescore is None:
            return self.search(self.trial.depth)
        best = self.trial.reference._collection
        candidates = self._first_stage.search(self.setup.rescore)
        return best.rescore(candidates, self.trial.queries, query_ids=self.trial.query_ids)

    @cached_property
    def _first_stage(self) -> _Tried:
        """What finds the candidates that are scored again."""
        return _Tried(self.trial, replace(self.setup, rescore=None))

    def search(self, k: int) -> Run:
        """The k best documents of each query, with all that tie with the k-th."""
        return self._collection.search(self._operands[0], k, query_ids=self.trial.query_ids)

    def time(self, repeats: int) -> Speed | None:
        """How many queries a second are searched, all at once. Vectors are stored before, once."""
        if not repeats:
            return None
        _ = self.run
        rates: list[float] = []
        for _ in range(repeats):
            begin = perf_counter()
            self._rank()
            rates.append(len(self.trial.queries) / (perf_counter() - begin))
        device = backend_of(self.trial.queries).device
        return Speed(
            float(np.mean(rates)), float(np.std(rates)), len(self.trial.queries), repeats, str(device or "cpu")
        )


def _matrices(queries: Any, docs: Any, whose: str = "") -> tuple[Array, Array]:
    """Queries and documents, checked."""
    pair = _matrix(queries, f"queries{whose}"), _matrix(docs, f"documents{whose}")
    if pair[0].shape[1] != pair[1].shape[1]:
        raise InputError(
            f"Queries{whose} have {pair[0].shape[1]} dimensions and documents {pair[1].shape[1]}. They must agree."
        )
    return pair


def _matrix(given: Any, what: str) -> Array:
    backend = backend_of(given)
    array = backend.as_array(given, what)
    if array.ndim != 2 or not array.shape[0] or not array.shape[1]:
        raise InputError(f"The {what} have shape {tuple(array.shape)}. Give a matrix with one vector per row.")
    name = dtype_name(array.dtype)
    if not is_low_precision(name):  # others are widened when they are used
        array = backend.cast(array, backend.dtype("float32"))
    for rows in split(slice(0, len(array)), max(BLOCK // array.shape[1], 1)):
        if not backend.all_finite(array[rows]):
            row = backend.rows_not_finite(array[rows])[0] + rows.start
            large = "" if is_low_precision(name) else ", or a number too large for float32"
            raise InputError(f"Row {row} of the {what} holds NaN or infinity{large}, counted from 0. Remove it.")
    return array
