"""`quantize`: vectors with 8, 4 or 1 bit per dimension, and back.

int8 and int4 divide the range of every dimension, taken from a sample, into 256 or 16 equal steps; binary keeps the
sign. Two quantised operands are scored on their codes, exactly, as integers: this is what an index of such vectors
does, and why its scores tie. A float query against quantised documents is scored on the decoded vectors.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from tiewise.errors import InputError
from tiewise.results.wording import count_noun
from tiewise.scoring.backends import Array, Backend, backend_of, dtype_name, is_integer
from tiewise.scoring.definition import squared_norms
from tiewise.scoring.environment import ieee_arithmetic
from tiewise.scoring.spans import split

#: How many values a dimension can have.
KINDS = {"int8": 256, "int4": 16, "binary": 2}
DIMS_PER_BYTE = {"int8": 1, "int4": 2, "binary": 8}

#: How many numbers are quantised at a time.
BLOCK = 2**22


@dataclass(frozen=True, eq=False, repr=False)
class Quantized:
    """Vectors as codes: one byte per dimension (int8), or two (int4) or eight (binary) dimensions per byte.

    `score`, `search`, `tie_groups` and `rescore` take it in place of vectors.
    """

    codes: Array  # (n, bytes): int8, or uint8 where packed
    kind: str  # int8, int4 or binary
    dims: int
    low: Array | None = None  # (dims,): the lowest value of each dimension, float32; None for binary
    step: Array | None = None  # (dims,): from one code to the next

    def __len__(self) -> int:
        return int(self.codes.shape[0])

    def __repr__(self) -> str:
        return f"<Quantized: {len(self):,} vectors of {self.dims:,} dimensions, {self.kind}, {self.nbytes:,} bytes>"

    @property
    def shape(self) -> tuple[int, int]:
        """Vectors and dimensions."""
        return len(self), self.dims

    @property
    def nbytes(self) -> int:
        """The memory of the codes."""
        return len(self) * int(self.codes.shape[1])

    def values(self, rows: Any = slice(None)) -> Array:
        """The codes of some rows unpacked, as integers: −128 … 127, −8 … 7, or −1 and 1."""
        codes, backend = self.codes[rows], backend_of(self.codes)
        if self.kind == "int8":
            return codes
        if self.kind == "int4":
            halves = backend.xp.stack([codes >> 4, codes & 15], -1).reshape(len(codes), -1)[:, : self.dims]
            return backend.cast(halves, backend.dtype("int8")) - 8
        return backend.cast(unpack_bits(backend, codes, self.dims), backend.dtype("int8")) * 2 - 1

    def cut(self, dims: int) -> Quantized:
        """The codes of the first dimensions."""
        low, step = (None if part is None else part[:dims] for part in (self.low, self.step))
        return Quantized(self.codes[:, : -(-dims // DIMS_PER_BYTE[self.kind])], self.kind, dims, low, step)

    def to(self, backend: Backend) -> Quantized:
        """The codes on another device."""
        low, step = (None if part is None else backend.to_device(part) for part in (self.low, self.step))
        return Quantized(backend.to_device(self.codes), self.kind, self.dims, low, step)

    @ieee_arithmetic()
    def decode(self, rows: Any = slice(None)) -> Array:
        """The vectors that the codes of some rows stand for, in float32.

        >>> quantize([[0.0, 1.0], [0.5, 2.0], [1.0, 4.0]], to="int4").decode().round(1)
        array([[0. , 1. ],
               [0.5, 2. ],
               [1. , 4. ]], dtype=float32)
        """
        backend = backend_of(self.codes)
        values = backend.cast(self.values(rows), backend.dtype("float32"))
        if self.kind == "binary":
            return values
        assert self.low is not None and self.step is not None
        return (values + KINDS[self.kind] // 2) * self.step + self.low

    def same_scale(self, other: Quantized) -> bool:
        """Whether equal codes of the two mean equal values."""
        if self.kind != other.kind or self.dims != other.dims:
            return False
        return self.kind == "binary" or all(
            np.array_equal(backend_of(a).to_numpy(a), backend_of(b).to_numpy(b))
            for a, b in ((self.low, other.low), (self.step, other.step))
        )


@ieee_arithmetic()
def quantize(
    vectors: ArrayLike,
    to: Literal["int8", "int4", "binary"] = "int8",
    *,
    calibration: ArrayLike | Quantized | None = None,
    normalize: bool = False,
) -> Quantized:
    """Vectors as codes of 8, 4 or 1 bit per dimension.

    For int8 and int4 the range of each dimension comes from `calibration`: sample vectors (two rows with the lowest and
    the highest values are enough), or a `Quantized` whose scale to use, as queries must use that of their documents.
    Without it, the range is that of the vectors themselves. Values outside the range get the code of its nearest end.
    Binary keeps the sign (a bit is set above 0) in the layout of NumPy's ``packbits`` and needs no calibration.
    `normalize` divides all vectors by their lengths first: do so for cosine, or long vectors take most of the range.

    >>> docs = quantize([[-1.0, 0.0], [1.0, 2.0]], to="int8")
    >>> docs, docs.codes.tolist()
    (<Quantized: 2 vectors of 2 dimensions, int8, 4 bytes>, [[-128, -128], [127, 127]])
    >>> quantize([[0.5, 9.0]], to="int8", calibration=docs).codes.tolist()
    [[63, 127]]
    >>> quantize([[0.3, -0.2, 0.9]], to="binary").codes
    array([[160]], dtype=uint8)
    >>> quantize([[3.0, 4.0], [0.0, 1.0]], normalize=True).decode().round(2).tolist()
    [[0.6000000238418579, 0.800000011920929], [0.0, 1.0]]
    """
    if not isinstance(to, str) or to not in KINDS:
        raise InputError(f"Vectors cannot be quantised to {to!r}. Use one of: {', '.join(KINDS)}.")
    backend = backend_of(vectors.codes if isinstance(vectors, Quantized) else vectors)
    array = _as_matrix(backend, vectors, "vectors")
    n, dims = array.shape
    low = step = None
    if to != "binary":
        what = "vectors" if calibration is None else "calibration vectors"
        low, step = _scale(backend, array if calibration is None else calibration, what, to, dims, normalize)
    elif calibration is not None and not (isinstance(calibration, Quantized) and calibration.kind == "binary"):
        raise InputError("Binary codes keep the sign of each value and take no calibration. Centre vectors first.")
    codes = backend.zeros((n, -(-dims // DIMS_PER_BYTE[to])), backend.dtype("int8" if to == "int8" else "uint8"))
    for rows, block in _float32_blocks(backend, array, "vectors", normalize and to != "binary"):
        codes[rows] = _encode(backend, block, to, low, step)
    return Quantized(codes, to, dims, low, step)


def _encode(backend: Backend, block: Array, to: str, low: Array | None, step: Array | None) -> Array:
    if to == "binary":
        return pack_bits(backend, block > 0)
    levels = KINDS[to]
    level = backend.xp.clip(backend.xp.round((block - low) / step), 0, levels - 1)
    if to == "int8":
        return backend.cast(level - levels // 2, backend.dtype("int8"))
    nibbles = backend.zeros((len(block), -(-block.shape[1] // 2) * 2), backend.dtype("uint8"))
    nibbles[:, : block.shape[1]] = backend.cast(level, backend.dtype("uint8"))
    return (nibbles[:, 0::2] << 4) | nibbles[:, 1::2]


def _scale(backend: Backend, calibration: Any, what: str, to: str, dims: int, normalize: bool) -> tuple[Array, Array]:
    """The lowest value and the step of each dimension."""
    if isinstance(calibration, Quantized):
        if (calibration.kind, calibration.dims) != (to, dims):
            raise InputError(
                f"The calibration is {calibration.kind} with {calibration.dims} dimensions, but it must be {to} with "
                f"{dims}."
            )
        return backend.to_device(calibration.low), backend.to_device(calibration.step)
    sample = _as_matrix(backend, calibration, what)
    if sample.shape[1] != dims or not len(sample):
        raise InputError(
            f"The calibration vectors have shape {tuple(sample.shape)}. Give at least one vector of {dims} dimensions."
        )
    xp = backend.xp
    blocks = _float32_blocks(backend, sample, what, normalize)
    lows, highs = zip(*((xp.amin(block, 0), xp.amax(block, 0)) for _, block in blocks), strict=True)
    low, high = (backend.to_device(end) for end in (xp.amin(xp.stack(lows), 0), xp.amax(xp.stack(highs), 0)))
    with np.errstate(over="ignore"):
        step = (high - low) / (KINDS[to] - 1)
    if not backend.all_finite(step):
        dim = int(backend.to_numpy(~backend.xp.isfinite(step)).nonzero()[0][0])
        raise InputError(f"The range of dimension {dim} of the vectors is too wide for float32. Scale them down.")
    return low, xp.where(step > 0, step, xp.ones_like(step))  # a constant dimension decodes to its constant


def _as_matrix(backend: Backend, given: Any, what: str) -> Array:
    """Vectors as an array; it may be a mapped file."""
    if isinstance(given, Quantized):
        raise InputError(
            f"The {what} are already quantised, to {given.kind}. Give the original vectors, or decode() them first."
        )
    array = backend.as_array(given, what)
    if array.ndim != 2:
        raise InputError(f"The {what} have shape {tuple(array.shape)}. Give a matrix with one vector per row.")
    name = dtype_name(array.dtype)
    if is_integer(name):
        raise InputError(f"The {what} are already integers ({name}). Give the original vectors.")
    return array


def _float32_blocks(backend: Backend, array: Array, what: str, normalize: bool) -> Iterator[tuple[slice, Array]]:
    """Some rows at a time, in float32, so that no copy of all vectors is needed; an error if one is not finite."""
    size, dtype = max(BLOCK // max(array.shape[1], 1), 1), backend.dtype("float32")
    blocks = split(slice(0, len(array)), size)
    for rows in blocks:
        block = backend.cast(array[rows], dtype)
        if not backend.all_finite(block):
            bad = np.concatenate(
                [backend.rows_not_finite(backend.cast(array[one], dtype)) + one.start for one in blocks]
            )
            raise InputError(
                f"Row {bad[0]} of the {what} holds NaN, infinity, or a value too large for float32 "
                f"({count_noun(len(bad), 'such row')}). Leave it out or scale it."
            )
        yield rows, _divide_by_norms(backend, block) if normalize else block


def _divide_by_norms(backend: Backend, block: Array) -> Array:
    """Vectors of length 1, computed in float64; zero vectors stay. Norms are defined sums, as those of a cosine."""
    norms = np.sqrt(squared_norms(backend.to_numpy(block)))
    wide = backend.cast(block, backend.dtype("float64"))
    return backend.cast(wide / backend.to_device(norms + (norms == 0))[:, None], block.dtype)


def pack_bits(backend: Backend, bits: Array) -> Array:
    """Eight bits per byte, the first one highest; the last byte is filled with 0."""
    if isinstance(bits, np.ndarray):
        return np.packbits(bits, axis=1)
    wide = backend.zeros((len(bits), -(-bits.shape[1] // 8) * 8), backend.dtype("uint8"))
    wide[:, : bits.shape[1]] = bits
    weights = backend.cast(backend.as_indices([128, 64, 32, 16, 8, 4, 2, 1]), backend.dtype("uint8"))
    return backend.cast((wide.reshape(len(bits), -1, 8) * weights).sum(-1), backend.dtype("uint8"))


def unpack_bits(backend: Backend, codes: Array, dims: int) -> Array:
    """The first `dims` bits of each row of bytes, as 0 and 1."""
    if isinstance(codes, np.ndarray):
        return np.unpackbits(codes, axis=1, count=dims)
    shifts = backend.cast(backend.as_indices([7, 6, 5, 4, 3, 2, 1, 0]), backend.dtype("uint8"))
    return ((codes[:, :, None] >> shifts) & 1).reshape(len(codes), -1)[:, :dims]
