"""`quantize`: vectors in one byte, half a byte or one bit a dimension, and back.

int8 and int4 cut the range of every dimension, taken from a sample, into 256 or 16 even steps; binary keeps the sign.
Two quantised operands are scored on their codes, in whole numbers and exactly: that is what an index of such vectors
does, and why its scores tie. A float query against quantised documents is scored on the decoded vectors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from tiewise.errors import InputError
from tiewise.scoring.arrays import Array, Library, is_integer, library_of, such_rows
from tiewise.scoring.environment import unaffected_by_settings

__all__ = ["KINDS", "Quantized", "pack_bits", "quantize", "unpack_bits"]

#: How many values a dimension is left with.
KINDS = {"int8": 256, "int4": 16, "binary": 2}


@dataclass(frozen=True, eq=False, repr=False)
class Quantized:
    """Vectors as codes: one byte a dimension (int8), or packed two (int4) or eight (binary) to the byte.

    It is given to `score`, `search`, `tie_groups` and `rescore` in the place of vectors.
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
        """The memory that the codes take."""
        return len(self) * int(self.codes.shape[1])

    def values(self, rows: Any = slice(None)) -> Array:
        """The codes of some rows unpacked, as whole numbers: −128 … 127, −8 … 7, or −1 and 1."""
        codes, lib = self.codes[rows], library_of(self.codes)
        if self.kind == "int8":
            return codes
        if self.kind == "int4":
            halves = lib.xp.stack([codes >> 4, codes & 15], -1).reshape(len(codes), -1)[:, : self.dims]
            return lib.cast(halves, lib.dtype("int8")) - 8
        return lib.cast(unpack_bits(lib, codes, self.dims), lib.dtype("int8")) * 2 - 1

    @unaffected_by_settings
    def decode(self, rows: Any = slice(None)) -> Array:
        """The vectors that the codes of some rows stand for, in float32.

        >>> quantize([[0.0, 1.0], [0.5, 2.0], [1.0, 4.0]], to="int4").decode().round(1)
        array([[0. , 1. ],
               [0.5, 2. ],
               [1. , 4. ]], dtype=float32)
        """
        lib = library_of(self.codes)
        values = lib.cast(self.values(rows), lib.dtype("float32"))
        if self.kind == "binary":
            return values
        assert self.low is not None and self.step is not None
        return (values + KINDS[self.kind] // 2) * self.step + self.low

    def same_scale(self, other: Quantized) -> bool:
        """Whether codes of the two mean the same."""
        if self.kind != other.kind or self.dims != other.dims:
            return False
        return self.kind == "binary" or all(
            np.array_equal(library_of(a).host(a), library_of(b).host(b))
            for a, b in ((self.low, other.low), (self.step, other.step))
        )


@unaffected_by_settings
def quantize(vectors: Any, to: Literal["int8", "int4", "binary"] = "int8", *, calibration: Any = None) -> Quantized:
    """Vectors as codes of 8, 4 or 1 bit a dimension.

    For int8 and int4 the range of each dimension comes from `calibration`: sample vectors (two rows, the lowest and the
    highest values, will do), or a `Quantized` whose scale to share, as queries must that of their documents. Without
    it, the range is that of the vectors themselves. Values beyond it take its nearest end. Binary keeps the sign (a bit
    is set above 0) in NumPy's ``packbits`` layout and needs no calibration.

    >>> docs = quantize([[-1.0, 0.0], [1.0, 2.0]], to="int8")
    >>> docs, docs.codes.tolist()
    (<Quantized: 2 vectors of 2 dimensions, int8, 4 bytes>, [[-128, -128], [127, 127]])
    >>> quantize([[0.5, 9.0]], to="int8", calibration=docs).codes.tolist()
    [[63, 127]]
    >>> quantize([[0.3, -0.2, 0.9]], to="binary").codes
    array([[160]], dtype=uint8)
    """
    if not isinstance(to, str) or to not in KINDS:
        raise InputError(f"Vectors cannot be quantised to {to!r}. Use one of: {', '.join(KINDS)}.")
    lib = library_of(vectors.codes if isinstance(vectors, Quantized) else vectors)
    array = _matrix(lib, vectors, "vectors")
    if to == "binary":
        if calibration is not None and not (isinstance(calibration, Quantized) and calibration.kind == "binary"):
            raise InputError("Binary codes keep the sign of each value and take no calibration. Centre vectors first.")
        return Quantized(pack_bits(lib, array > 0), to, array.shape[1])
    low, step = _scale(lib, array if calibration is None else calibration, to, array.shape[1])
    levels = KINDS[to]
    place = lib.xp.clip(lib.xp.round((array - low) / step), 0, levels - 1)
    if to == "int8":
        return Quantized(lib.cast(place - levels // 2, lib.dtype("int8")), to, array.shape[1], low, step)
    nibbles = lib.zeros((len(array), -(-array.shape[1] // 2) * 2), lib.dtype("uint8"))
    nibbles[:, : array.shape[1]] = lib.cast(place, lib.dtype("uint8"))
    return Quantized((nibbles[:, 0::2] << 4) | nibbles[:, 1::2], to, array.shape[1], low, step)


def _scale(lib: Library, calibration: Any, to: str, dims: int) -> tuple[Array, Array]:
    """The lowest value and the step of each dimension."""
    if isinstance(calibration, Quantized):
        if (calibration.kind, calibration.dims) != (to, dims):
            raise InputError(
                f"The calibration is {calibration.kind} with {calibration.dims} dimensions; wanted is {to} with {dims}."
            )
        return lib.here(calibration.low), lib.here(calibration.step)
    sample = _matrix(lib, calibration, "calibration vectors")
    if sample.shape[1] != dims or not len(sample):
        raise InputError(
            f"The calibration vectors have shape {tuple(sample.shape)}; wanted are some vectors of {dims} dimensions."
        )
    low, high = lib.here(lib.xp.amin(sample, 0)), lib.here(lib.xp.amax(sample, 0))
    with np.errstate(over="ignore"):
        step = (high - low) / (KINDS[to] - 1)
    if not lib.finite(step):
        place = int(lib.host(~lib.xp.isfinite(step)).nonzero()[0][0])
        raise InputError(f"The range of dimension {place} of the vectors is wider than float32 holds. Scale them down.")
    return low, lib.xp.where(step > 0, step, lib.xp.ones_like(step))  # a constant dimension decodes to its constant


def _matrix(lib: Library, given: Any, what: str) -> Array:
    """Vectors in float32, checked."""
    if isinstance(given, Quantized):
        said = f"The {what} are quantised already, to {given.kind}."
        raise InputError(f"{said} Give the original vectors, or decode() them first.")
    array = lib.array(given, what)
    if array.ndim != 2:
        raise InputError(f"The {what} have shape {tuple(array.shape)}. Give a matrix, one vector a row.")
    if is_integer(lib.name(array.dtype)):
        raise InputError(f"The {what} are whole numbers ({lib.name(array.dtype)}) already. Give the original vectors.")
    array = lib.cast(array, lib.dtype("float32"))
    bad = lib.host(~lib.xp.isfinite(array).all(1)).nonzero()[0]
    if len(bad):
        raise InputError(
            f"Row {bad[0]} of the {what} holds NaN, infinity, or what float32 cannot hold ({such_rows(len(bad))}). "
            "Leave it out or scale it."
        )
    return array


def pack_bits(lib: Library, bits: Array) -> Array:
    """Bits eight to the byte, the first the highest; what is left of the last byte is 0."""
    if isinstance(bits, np.ndarray):
        return np.packbits(bits, axis=1)
    wide = lib.zeros((len(bits), -(-bits.shape[1] // 8) * 8), lib.dtype("uint8"))
    wide[:, : bits.shape[1]] = bits
    weights = lib.cast(lib.integers([128, 64, 32, 16, 8, 4, 2, 1]), lib.dtype("uint8"))
    return lib.cast((wide.reshape(len(bits), -1, 8) * weights).sum(-1), lib.dtype("uint8"))


def unpack_bits(lib: Library, codes: Array, dims: int) -> Array:
    """The first `dims` bits of each row of bytes, as 0 and 1."""
    if isinstance(codes, np.ndarray):
        return np.unpackbits(codes, axis=1, count=dims)
    shifts = lib.cast(lib.integers([7, 6, 5, 4, 3, 2, 1, 0]), lib.dtype("uint8"))
    return ((codes[:, :, None] >> shifts) & 1).reshape(len(codes), -1)[:, :dims]
