"""`vectors`: one collection, stored and scored in several ways (`Setup`), as rows of the protocol."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np

from tiewise.analysis.protocols import Row
from tiewise.caching import cached_property
from tiewise.data.columns import project
from tiewise.data.runs import Run
from tiewise.errors import InputError, prefix_errors, warn
from tiewise.io.memory_run import MemoryRun
from tiewise.results.optional import installed, need
from tiewise.results.wording import spell_dtypes
from tiewise.scoring.backends import Array, Backend, backend_of, dtype_name, is_low_precision
from tiewise.scoring.collections import VECTOR_ORDERS, Collection
from tiewise.scoring.judgments import Ids, IdsLike
from tiewise.scoring.operands import SMALL_INTEGERS, warn_of_bits
from tiewise.scoring.options import SCORE_DTYPES, require_int
from tiewise.scoring.quantised import BLOCK, KINDS, Quantized, quantize
from tiewise.scoring.spans import Rows, split
from tiewise.scoring.storage import Storage, make_storage
from tiewise.ties.counted import Counted, Request, RunSource

#: The types of stored vectors.
STORAGE = ("float32", "float16", "bfloat16", "float8", "int8", "int4", "binary")
#: The types of scores.
SCORES = ("float32", *SCORE_DTYPES)

#: The largest number of float8 (e4m3).
FLOAT8_MAX = 448.0

_NOTATION = re.compile(
    r"(?:(?P<encoder>[^>]+)>)?(?:(?P<queries>[a-z]+\d*):)?(?P<docs>[a-z]+\d*)(?:@(?P<dims>\d+))?(?:/(?P<scores>[a-z]+\d*))?(?:\+(?P<rescore>\d+))?"
)


@dataclass(frozen=True)
class Setup:
    """How vectors are made, stored and scored: ``ENCODER>QUERIES:DOCS@DIMS/SCORES+RESCORE``, all but DOCS optional.

    - `docs`, `queries`: how they are stored: float32, float16, bfloat16, float8, int8, int4 or binary. Queries are
      stored as documents are, unless the notation says otherwise.
    - `scores`: the type of the scores: float32, float16, bfloat16 or float8.
    - `dims`: only the first dimensions are kept, as for Matryoshka embeddings.
    - `rescore`: so many of the first documents, and all that tie with the last of them, are scored again with the
      float32 vectors of the same encoder.
    - `encoder`: the name of other vectors of the same queries and documents, from a model that runs in another type.

    >>> Setup.parse("float32:int8@256+100")
    Setup(docs='int8', queries='float32', scores='float32', dims=256, rescore=100, encoder=None)
    >>> str(Setup(docs="float32", queries="float32", scores="bfloat16"))
    'float32/bfloat16'
    """

    docs: str = "float32"
    queries: str = "float32"
    scores: str = "float32"
    dims: int | None = None
    rescore: int | None = None
    encoder: str | None = None

    @classmethod
    def parse(cls, given: str | Setup) -> Setup:
        """The setup of a notation."""
        if isinstance(given, Setup):
            return given
        match = _NOTATION.fullmatch(spell_dtypes(given.strip())) if isinstance(given, str) else None
        if match is None:
            raise InputError(
                f"{given!r} is not a way to store vectors. Write DOCS, or ENCODER>QUERIES:DOCS@DIMS/SCORES+RESCORE: "
                "'int8', 'float32:binary', 'float32@256', 'float32/bfloat16', 'binary+100'."
            )
        docs, queries, scores = match["docs"], match["queries"] or match["docs"], match["scores"] or "float32"
        for what, one, known in (
            ("documents", docs, STORAGE),
            ("queries", queries, STORAGE),
            ("scores", scores, SCORES),
        ):
            if one not in known:
                raise InputError(f"{given!r}: {what} cannot have the type '{one}'. Use one of: {', '.join(known)}.")
        if queries != docs and queries in KINDS:
            raise InputError(f"{given!r}: {queries} queries need {queries} documents. Use float queries, or one type.")
        dims, rescore = (None if match[name] is None else int(match[name]) for name in ("dims", "rescore"))
        if dims == 0 or rescore == 0:
            raise InputError(f"{given!r}: dimensions and the depth of rescoring are whole numbers from 1 on.")
        return cls(docs, queries, scores, dims, rescore, match["encoder"])

    def __str__(self) -> str:
        parts = [f"{self.encoder}>"] if self.encoder else []
        parts += [self.docs if self.queries == self.docs else f"{self.queries}:{self.docs}"]
        parts += [f"@{self.dims}"] if self.dims else []
        parts += [f"/{self.scores}"] if self.scores != "float32" else []
        return "".join(parts + ([f"+{self.rescore}"] if self.rescore else []))

    @property
    def is_native(self) -> bool:
        """Whether vectors and scores have one low-precision type, as in a model that computes all in it."""
        return self.scores == self.docs == self.queries and self.scores in ("float16", "bfloat16")


def default_setups(dims: int, encoders: Iterable[str] = ()) -> list[Setup]:
    """The setups that are compared if none are named, for vectors of some dimensions and those of other encoders."""
    names = "float32 float16 bfloat16 bfloat16/bfloat16 float32/bfloat16 float32/float8 float8 float32:int8 int8"
    names += " float32:int4 int4 float32:binary binary binary+100"
    shorter = [f"float32@{length}" for length in (dims // 2, dims // 4) if length >= 16]
    others = [f"{encoder}>{setup}" for encoder in encoders for setup in ("float32", "bfloat16/bfloat16")]
    return [Setup.parse(name) for name in [*names.split(), *shorter, *others]]


def _leave_out(setups: Sequence[Setup], backend: Backend) -> list[Setup]:
    """The setups for which nothing has to be installed, with a note on the others."""
    kept = list(setups)
    if installed("ml_dtypes") is None:  # which has the types that NumPy does not have; torch has them for vectors
        types = {one: {one.docs, one.scores} if backend.device is None else {one.scores} - {one.docs} for one in setups}
        kept = [one for one in setups if types[one].isdisjoint(("bfloat16", "float8"))]
        rows = ", ".join(str(one) for one in setups if one not in kept)
        warn(f"Left out, because they need an extra: {rows}. Install it: pip install 'tiewise[precision]'")
    return kept


def store(vectors: Array, kind: str, fn: str, what: str, scale: Quantized | None = None) -> Any:
    """Vectors as they are stored for a score function: an array in a type, or codes.

    `scale` is that of the documents, for queries; `what` names the vectors in messages.
    """
    backend = backend_of(vectors)
    if kind in KINDS:
        return quantize(vectors, kind, calibration=scale, normalize=fn == "cosine")  # type: ignore[arg-type]
    if kind == "float8":
        return Float8.of(vectors)
    if kind == "float32" and is_low_precision(dtype_name(vectors.dtype)):
        return vectors  # scores are the same, and no copy is needed
    stored = backend.cast(vectors, _dtype(backend, kind))
    if not backend.all_finite(stored):
        row = backend.rows_not_finite(stored)[0]
        raise InputError(f"Row {row} of the {what} holds a number too large for {kind}. Leave {kind} out, or scale it.")
    return stored


class Float8(Storage):
    """Vectors in float8 (e4m3) with a scale for each, because its numbers end at 448. They are decoded when taken.

    >>> import numpy as np
    >>> Float8.of(np.float32([[1.0, 0.06]])).take(slice(0, 1)).round(4).tolist()
    [[1.0, 0.057999998331069946]]
    """

    def __init__(self, codes: Array, scale: Array):
        self.codes, self.scale = codes, scale  # (n, dims): the bytes of float8; (n, 1): float32
        self.backend, (self.n, self.dims) = backend_of(codes), codes.shape
        self.dtype = self.backend.dtype("float32")

    @classmethod
    def of(cls, vectors: Array) -> Float8:
        """Vectors in float8, made of some rows at a time."""
        backend, (n, dims) = backend_of(vectors), vectors.shape
        kind, xp = _dtype(backend, "float8"), backend.xp
        codes = backend.zeros((n, dims), backend.dtype("uint8"))
        scale = backend.zeros((n, 1), backend.dtype("float32"))
        for rows in split(slice(0, n), max(BLOCK // dims, 1)):
            block = backend.cast(vectors[rows], backend.dtype("float32"))
            largest = xp.amax(xp.abs(block), 1)[:, None]
            scale[rows] = xp.where(largest > 0, largest / FLOAT8_MAX, xp.ones_like(largest))
            codes[rows] = backend.cast(block / scale[rows], kind).view(codes.dtype)
        return cls(codes, scale)

    def take(self, rows: Rows) -> Array:
        at = self.backend.as_index(rows)
        numbers = self.codes[at].view(_dtype(self.backend, "float8"))
        return self.backend.cast(numbers, self.dtype) * self.scale[at]

    def cut(self, dims: int) -> Storage:
        return Float8(self.codes[:, :dims], self.scale)

    def to(self, backend: Backend) -> Storage:
        return Float8(backend.to_device(self.codes), backend.to_device(self.scale))

    @property
    def nbytes(self) -> int:
        return self.n * (self.dims + 4)


def _dtype(backend: Any, kind: str) -> Any:
    name = "float8_e4m3fn" if kind == "float8" else kind
    if backend.device is None and kind in ("bfloat16", "float8"):  # NumPy itself does not have them
        return getattr(need("ml_dtypes", f"Storing vectors in {kind}", "precision"), name)
    return backend.dtype(name)


def bytes_per_vector(docs: Array, kind: str) -> float:
    """The memory of one of the vectors in a type, with its share of the scales; not of those for rescoring.

    >>> import numpy as np
    >>> docs = np.zeros((100, 12), np.float32)
    >>> [bytes_per_vector(docs, kind) for kind in ("float32", "int8", "binary")]
    [48.0, 12.96, 2.0]
    """
    backend, (n, dims) = backend_of(docs), docs.shape
    one = store(backend.zeros((1, dims), backend.dtype("float32")) + 1, kind, "dot", "documents")
    scales = [] if not isinstance(one, Quantized) or one.low is None else [one.low, one.step]
    return make_storage(one, "documents", "dot").nbytes + sum(array.nbytes for array in scales) / n


def shorten(vectors: Array, setup: Setup) -> Array:
    """The dimensions that a setup keeps."""
    if setup.dims is None:
        return vectors
    if setup.dims > vectors.shape[1]:
        raise InputError(f"'{setup}': the vectors have {vectors.shape[1]} dimensions only.")
    return vectors[:, : setup.dims]


FUNCTIONS = ("cosine", "dot", "euclidean")


def vectors(
    queries: Array,
    docs: Array,
    names: Iterable[str] | None = None,
    *,
    fn: str = "cosine",
    query_ids: IdsLike = None,
    doc_ids: IdsLike = None,
    encoders: Mapping[str, tuple[Array, Array]] | None = None,
    depth: int = 100,
    repeats: int = 0,
) -> dict[str, Row]:
    """The rows of ways to store vectors and compute scores, for `protocol`: name → row.

    - `queries`, `docs`: float vectors, arrays or tensors.
    - `names`: the ways, as ``ENCODER>QUERIES:DOCS@DIMS/SCORES+RESCORE``, all but DOCS optional: ``"bfloat16"``,
      ``"float32:int8"`` (float32 queries, int8 documents), ``"float32/bfloat16"`` (float32 vectors, bfloat16 scores),
      ``"binary+100"`` (the first 100 scored again in float32), ``"float32@256"`` (the first 256 dimensions). Types are
      float32, float16, bfloat16, float8, int8, int4 and binary. By default a selection, float32 first. Documents that
      tie with the 100th are scored again too, all of them, so that no order of ties decides; a note says how many.
    - `fn`: cosine, dot or euclidean; binary codes are compared by their equal bits.
    - `encoders`: vectors of the same queries and documents from the model in another type, by name; the row
      ``"bfloat16>float32"`` takes those that are called bfloat16.
    - `depth`: the length of the lists that `protocol` compares with those of the reference. Measures see the whole
      collection.
    - `repeats`: how often the search of a row is timed, for `Row.seconds`; 0: not at all.

    int8 and int4 take the range of each dimension from the documents alone, never from queries or judgments. For
    cosine, vectors are divided by their lengths before they are quantised.

    >>> import numpy as np
    >>> docs = np.random.default_rng(0).normal(size=(200, 32)).astype(np.float32)
    >>> rows = vectors(docs[:20] + 0.1, docs, ["float32", "float16", "binary"])
    >>> {name: row.bytes for name, row in rows.items()}
    {'float32': 128.0, 'float16': 64.0, 'binary': 4.0}
    """
    if fn not in FUNCTIONS:
        raise InputError(f"fn={fn!r} is not possible here. Use one of: {', '.join(FUNCTIONS)}.")
    lengths = require_int(depth, "depth"), require_int(repeats, "repeats", minimum=0)
    given = _Vectors(queries, docs, query_ids, doc_ids, encoders or {}, fn, lengths[0])
    if names is None:
        chosen = _leave_out(default_setups(given.docs.shape[1], encoders or ()), backend_of(given.docs))
    else:
        chosen = [Setup.parse(name) for name in ([names] if isinstance(names, (str, Setup)) else names)]
    runs = {str(setup): VectorRun(given, setup) for setup in chosen}  # an error now, not after minutes
    exact = next((name for name, run in runs.items() if (run.setup.docs, run.setup.encoder) == ("float32", None)), None)
    notes = {} if exact is None else {exact: given.note_types()}
    warn_of_bits(given.types, "give the float vectors: the row 'binary' makes bits of them")
    return {
        name: Row(
            run,
            bytes=given.bytes_of(run.setup),
            seconds=run.time(repeats) if repeats else None,
            timed="Tiewise's search" if repeats else "",
            note=run.describe_rescoring() or notes.get(name, ""),
        )
        for name, run in runs.items()
    }


class VectorRun(RunSource):
    """The ranking of a whole collection: its tie groups are exact, its rows are the first documents of each query."""

    def __init__(self, vectors: _Vectors, setup: Setup, *, drop_self: bool = False):
        self._vectors, self.setup, self._drop_self = vectors, setup, drop_self
        vectors.select(setup)

    def rows(self) -> Run:
        """The first documents of each query, with all that tie with the last."""
        return self._run.without_self() if self._drop_self else self._run

    def without_self(self) -> VectorRun:
        """The ranking without documents that have the id of their query."""
        return VectorRun(self._vectors, self.setup, drop_self=True)

    @cached_property
    def _run(self) -> Run:
        return self._rank()

    def _rank(self) -> Run:
        given, setup = self._vectors, self.setup
        queries, collection = given.stored(replace(setup, rescore=None))
        found = collection.search(queries, setup.rescore or given.depth, query_ids=given.query_ids)
        if setup.rescore is None:
            return found
        queries, exact = given.exact(setup)
        return exact.rescore(found, queries, query_ids=given.query_ids)

    def describe_rescoring(self) -> str:
        """What is read to score documents again, and how many if that is more than the setup says; else empty."""
        depth = self.setup.rescore
        if depth is None:
            return ""
        full = self._vectors.bytes_of(Setup(encoder=self.setup.encoder))
        note = f"also reads full vectors, {full:,.0f} bytes each."
        with prefix_errors(f"Row '{self.setup}'"):
            count = len(self._run) / len(self._run.queries)
        if count <= depth:
            return note
        more = f"{count:,.1f}".removesuffix(".0")
        return f"{note} It scores {more} documents a query: ties across rank {depth} are all rescored."

    def time(self, repeats: int) -> float:
        """The seconds of a search for all queries at once, the mean of some. Vectors are stored before, once."""
        _ = self._run
        begin = perf_counter()
        for _ in range(repeats):
            self._rank()
        return (perf_counter() - begin) / repeats

    def _count(self, request: Request) -> Counted:
        """The tie groups of the whole collection, or of the candidates that are scored again."""
        if request.score_dtype is not None or request.judged_only or request.scores is not None:
            raise InputError("A row of vectors has no other scores or documents: give a run of scoring.search.")
        if "rank" in request.orders:
            raise InputError("Vectors have no rank column to list ties by. Use the order 'given'.")
        if self.setup.rescore is not None:
            counted = MemoryRun(self.rows())._count(request)
            ties = {dtype: replace(one, complete=True) for dtype, one in counted.ties.items()}
            return counted.replace(ties=ties, drop_self=self._drop_self)
        queries, collection = self._vectors.stored(self.setup)
        found = collection.tie_groups(
            queries,
            request.qrels,
            query_ids=self._vectors.query_ids,
            orders=[order for order in VECTOR_ORDERS if order in request.orders],
            drop_self=self._drop_self,
        )
        # Scores have at most the digits of float32: in it they tie as they are.
        return Counted(dict.fromkeys(request.dtypes, found), drop_self=self._drop_self)


class _Vectors:
    """Queries and documents, and what is stored of them: at most one setup at a time."""

    def __init__(
        self,
        queries: Any,
        docs: Any,
        query_ids: IdsLike,
        doc_ids: IdsLike,
        encoders: Mapping[str, tuple[Any, Any]],
        fn: str,
        depth: int,
    ):
        self.queries, self.docs = _matrices(queries, docs)
        self._of_encoder = {name: _matrices(*pair, f" of '{name}'") for name, pair in encoders.items()}
        pairs: dict[Any, tuple[Any, Any]] = {None: (queries, docs), **encoders}
        #: The types in which queries and documents were given, by encoder.
        self._types = {name: [backend_of(one).as_array(one, "vectors").dtype for one in pairs[name]] for name in pairs}
        self.types = {dtype_name(one) for one in self._types[None]}
        for name, pair in self._of_encoder.items():
            if (len(pair[0]), len(pair[1])) != (len(self.queries), len(self.docs)):
                raise InputError(
                    f"The encoder '{name}' has vectors of {len(pair[0]):,} queries and {len(pair[1]):,} documents, not "
                    f"of {len(self.queries):,} and {len(self.docs):,}."
                )
        ids = Ids(query_ids, len(self.queries), "query"), Ids(doc_ids, len(self.docs), "document")
        self.query_ids, self.doc_ids = (None if one.are_made_up else one.all for one in ids)
        self.fn, self.depth = fn, depth
        self._stored: tuple[Setup, Any, Collection] | None = None
        self._exact: dict[str | None, tuple[Any, Collection]] = {}

    def select(self, setup: Setup) -> tuple[Array, Array]:
        """The queries and documents of a setup, before they are stored."""
        if setup.encoder is None:
            pair = self.queries, self.docs
        elif setup.encoder in self._of_encoder:
            pair = self._of_encoder[setup.encoder]
        else:
            known = ", ".join(self._of_encoder) or "none are given"
            raise InputError(f"'{setup}': there are no vectors of an encoder '{setup.encoder}' ({known}).")
        return shorten(pair[0], setup), shorten(pair[1], setup)

    def bytes_of(self, setup: Setup) -> float:
        """The memory of a document of a setup; numbers that were given in a smaller type than float32 keep it."""
        docs = self.select(setup)[1]
        if setup.docs == "float32":
            return float(docs.shape[1] * min(4, self._types[setup.encoder][1].itemsize))
        return bytes_per_vector(docs, setup.docs)

    def note_types(self) -> str:
        """The note on vectors that are not those of a model in float32, as far as can be seen."""
        whole = next((name for name in SMALL_INTEGERS if name in self.types), None)
        if whole is None:
            return _note_rounded(self.queries, self.docs)
        return (
            f"the vectors hold only numbers of {whole}, {self.bytes_of(Setup()):,.0f} bytes each. Give the float "
            "vectors that they were made of, and these as an encoder."
        )

    def stored(self, setup: Setup) -> tuple[Any, Collection]:
        """The queries and the collection of a setup."""
        if self._stored is None or self._stored[0] != setup:
            self._stored = None  # first, to free its memory
            self._stored = setup, *self._store(setup)
        return self._stored[1:]

    def exact(self, setup: Setup) -> tuple[Any, Collection]:
        """The queries and documents in float32 of the encoder of a setup, for scoring again."""
        if setup.encoder not in self._exact:
            self._exact[setup.encoder] = self._store(Setup(encoder=setup.encoder))
        return self._exact[setup.encoder]

    def _store(self, setup: Setup) -> tuple[Any, Collection]:
        given, documents = self.select(setup)
        docs = store(documents, setup.docs, self.fn, "documents")
        scale = docs if isinstance(docs, Quantized) and setup.queries == setup.docs else None
        collection = Collection(
            docs,
            doc_ids=self.doc_ids,
            fn="hamming" if setup.queries == setup.docs == "binary" else self.fn,
            precision="native" if setup.is_native else "float32",
            score_dtype=None if setup.is_native or setup.scores == "float32" else setup.scores,
        )
        return store(given, setup.queries, self.fn, "queries", scale), collection


def _matrices(queries: Any, docs: Any, whose: str = "") -> tuple[Array, Array]:
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


def _note_rounded(*matrices: Array) -> str:
    """The note on vectors that are not from a model in float32, by their numbers; empty if they may be."""
    kinds = [kind for kind in map(_find_rounding, matrices) if kind]
    if not kinds:
        return ""
    return (
        f"the vectors hold only numbers of {kinds[0]}. If a model in {kinds[0]} made them, give those of the model in "
        "float32, and these as an encoder."
    )


def _find_rounding(matrix: Array) -> str | None:
    """The type of 16 bits to which all numbers were rounded, as far as can be seen; whole numbers tell nothing."""
    backend, name = backend_of(matrix), dtype_name(matrix.dtype)
    if is_low_precision(name):
        return name
    kinds, is_whole = ["bfloat16", "float16"], True  # most numbers of bfloat16 are also float16
    for rows in split(slice(0, len(matrix)), max(BLOCK // matrix.shape[1], 1)):
        block = np.asarray(backend.to_numpy(matrix[rows]), dtype=np.float64)
        is_whole = is_whole and bool((block == np.trunc(block)).all())
        kinds = [kind for kind in kinds if (project(block, kind) == block).all()]
        if not kinds:
            return None
    return None if is_whole else kinds[0]
