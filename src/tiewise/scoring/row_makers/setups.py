"""`Setup`: in what type queries and documents are stored and scores are computed, and its short notation."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tiewise.errors import InputError
from tiewise.results.optional import need
from tiewise.scoring.backends import Array, Backend, backend_of, dtype_name, is_low_precision
from tiewise.scoring.options import SCORE_DTYPES
from tiewise.scoring.quantised import BLOCK, KINDS, Quantized, quantize
from tiewise.scoring.spans import Rows, split
from tiewise.scoring.storage import Storage, make_storage

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
        match = _NOTATION.fullmatch(given.strip()) if isinstance(given, str) else None
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
        return getattr(need("ml_dtypes", f"{kind} vectors", "precision"), name)
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
