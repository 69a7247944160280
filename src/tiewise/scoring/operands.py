"""Queries and documents, whose rows are taken a few at a time, and the types in which they are scored.

An operand is a matrix of vectors, token vectors with a mask, quantised vectors, or packed bits. Its rows are brought to
the device, unpacked or decoded only when they are taken, so an operand need not fit into memory as a whole.

With ``precision="float32"`` a score is rounded once, at the end, to float32; ``"float64"`` leaves out this rounding.
``"native"`` reproduces what a model gives that runs in the low precision of its operands: products are added in a wider
type and rounded to the operands' type, and so is the result of every later step. Products of integers are exact in all
three.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from tiewise.errors import InputError
from tiewise.scoring.backends import Array, Backend, Rows, backend_of, dtype_name, is_integer, is_low_precision
from tiewise.scoring.quantised import Quantized, unpack_bits
from tiewise.tables.wording import count_noun

__all__ = ["Mask", "Operand", "ScoreTypes", "VectorsLike", "make_operands"]

#: What functions take as queries and documents: NumPy arrays, torch tensors, lists, quantised vectors.
VectorsLike: TypeAlias = ArrayLike | Quantized
Mask: TypeAlias = ArrayLike | None

#: Integer types whose products can be exact in float32.
SMALL_INTEGERS = ("bool", "int8", "uint8")


class Operand(NamedTuple):
    """Queries or documents."""

    take: Callable[[Rows], Array]  # rows, on the device where scores are computed
    n: int
    dims: int
    backend: Backend  # of the given vectors
    dtype: Any  # of the given vectors
    dtype_name: str
    tokens: int = 1  # vectors per row, for late interaction
    mask: Array | None = None  # (n, tokens): which tokens count
    matrix: Array | None = None  # the vectors, if they are one matrix on the device where scores are computed


def make_operands(
    backend: Backend, queries: VectorsLike, docs: VectorsLike, fn: str, query_mask: Mask, doc_mask: Mask
) -> tuple[Operand, Operand]:
    """Queries and documents for a score function, checked; `backend` is where scores are computed."""
    if fn != "maxsim" and (query_mask is not None or doc_mask is not None):
        raise InputError(f"Masks are for fn='maxsim', which scores tokens; fn={fn!r} has one vector per row.")
    both_quantised = isinstance(queries, Quantized) and isinstance(docs, Quantized)
    left = _make_operand(backend, queries, "queries", fn, query_mask, both_quantised)
    right = _make_operand(backend, docs, "documents", fn, doc_mask, both_quantised)
    if left.dims != right.dims:
        raise InputError(
            f"Queries have {left.dims} dimensions and documents {right.dims}. Both must come from one model."
        )
    if isinstance(queries, Quantized) and isinstance(docs, Quantized) and not queries.same_scale(docs):
        raise InputError("Queries and documents are quantised on different scales. Share one: calibration=docs.")
    return left, right


def _make_operand(
    backend: Backend, given: VectorsLike, what: str, fn: str, mask: Mask, both_quantised: bool
) -> Operand:
    if isinstance(given, Quantized):
        return _quantised_operand(backend, given, fn, both_quantised)
    source = backend_of(given)
    array = source.as_array(given, what)
    shape, ndim = tuple(array.shape), 3 if fn == "maxsim" else 2
    if len(shape) != ndim or not all(shape[1:]):
        expected = "(rows, tokens, dimensions)" if ndim == 3 else "(rows, dimensions)"
        raise InputError(f"The {what} have shape {shape}. fn={fn!r} takes {expected}.")
    if fn == "hamming":
        return _bit_operand(backend, source, array, what)
    is_local = source.device == backend.device

    def take(rows: Rows) -> Array:
        everything = isinstance(rows, slice) and rows.stop - rows.start == shape[0]
        part = array if everything else array[source.as_index(rows)]
        return part if is_local else backend.to_device(part)

    return Operand(
        take,
        shape[0],
        shape[-1],
        source,
        array.dtype,
        dtype_name(array.dtype),
        tokens=shape[1] if ndim == 3 else 1,
        mask=None if mask is None else _check_mask(backend, mask, shape[:2], what),
        matrix=array if is_local and ndim == 2 else None,
    )


def _quantised_operand(backend: Backend, given: Quantized, fn: str, both_quantised: bool) -> Operand:
    """Codes as integers if both sides are quantised, decoded vectors if only one is."""
    if fn == "maxsim":
        raise InputError("Late interaction (fn='maxsim') does not take quantised vectors. Decode them first.")
    if fn == "hamming" and not (both_quantised and given.kind == "binary"):
        raise InputError("fn='hamming' compares bits. Quantise both queries and documents to 'binary'.")
    source, name = backend_of(given.codes), "int8" if both_quantised else "float32"
    unpack = given.values if both_quantised else given.decode

    def take(rows: Rows) -> Array:
        return backend.to_device(unpack(source.as_index(rows)))

    return Operand(take, len(given), given.dims, source, source.dtype(name), name)


def _bit_operand(backend: Backend, source: Backend, array: Array, what: str) -> Operand:
    """Rows of −1 and 1 from bytes as `packbits` makes them, or from truth values."""
    name = dtype_name(array.dtype)
    if name not in ("uint8", "bool"):
        raise InputError(
            f"The {what} are {name}, but fn='hamming' compares bits: uint8 from packbits, bool, or quantize(..., "
            "to='binary')."
        )
    n, dims = array.shape[0], array.shape[1] * (8 if name == "uint8" else 1)

    def take(rows: Rows) -> Array:
        bits = backend.to_device(array[source.as_index(rows)])
        bits = unpack_bits(backend, bits, dims) if name == "uint8" else bits
        return backend.cast(bits, backend.dtype("int8")) * 2 - 1

    return Operand(take, n, dims, source, source.dtype("int8"), "int8")


def _check_mask(backend: Backend, mask: Mask, shape: tuple[int, ...], what: str) -> Array:
    counts = backend.to_device(backend_of(mask).as_array(mask, f"mask of the {what}") != 0)
    if tuple(counts.shape) != shape:
        raise InputError(f"The mask of the {what} has shape {tuple(counts.shape)}; their tokens have {shape}.")
    empty = np.asarray(backend.to_numpy(~counts.any(1))).nonzero()[0]
    if len(empty):
        raise InputError(
            f"The mask leaves no token in row {empty[0]} of the {what} ({count_noun(len(empty), 'such row')})."
        )
    return counts


class ScoreTypes:
    """The types of one computation of scores.

    - `wide`: vectors are converted to float64 (otherwise to float32).
    - `result`: the type in which scores are kept, float32 or float64.
    - `low`: scores are rounded to the low precision of the operands.
    - `integer`: all scores are integers, which need no rounding.
    """

    def __init__(self, precision: str, fn: str, queries: Operand, docs: Operand):
        names = queries.dtype_name, docs.dtype_name
        self.integer, self.wide, double = _choose_types(fn, precision, names, queries.dims * queries.tokens)
        self.result = "float64" if double else "float32"
        self.low = precision == "native" and names[0] == names[1] and is_low_precision(names[0])

    def native_dtype(self, queries: Operand, backend: Backend) -> Any:
        """The type of scores in native precision."""
        if self.integer:
            return backend.dtype("int32" if self.result == "float32" else "int64")
        return queries.dtype if self.low else backend.dtype(self.result)


@cache
def _choose_types(fn: str, precision: str, names: tuple[str, str], terms: int) -> tuple[bool, bool, bool]:
    """Whether scores are integers, whether vectors are float64, and whether scores are; `terms` are added for one."""
    if fn == "hamming" or (fn in ("dot", "maxsim") and set(names) <= set(SMALL_INTEGERS)):
        # Sums up to 2**24 are exact in float32, whatever the order of additions.
        largest = terms * (1 if fn == "hamming" else 2**16 if "uint8" in names else 2**14)
        wide = precision == "float64" or largest > 2**24
        return True, wide, wide
    wide = "float64" in names or any(is_integer(name) and name not in SMALL_INTEGERS for name in names)
    return False, wide, precision == "float64" or (precision == "native" and wide)
