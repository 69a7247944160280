"""Queries and documents as rows to take: vectors, token vectors with masks, quantised vectors, packed bits.

Rows are taken a few at a time and only then brought to the device, unpacked or decoded, so that what is scored never
has to fit anywhere as a whole.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tiewise.errors import InputError
from tiewise.scoring.arrays import Array, Library, library_of, such_rows
from tiewise.scoring.quantised import Quantized, unpack_bits

__all__ = ["Operand", "operands"]


class Operand(NamedTuple):
    """Queries or documents."""

    take: Callable[[Any], Array]  # the rows of a slice, or at some positions, where scores are computed
    n: int
    dims: int
    lib: Library  # the library that holds the vectors
    dtype: Any  # the type of the vectors in that library
    type_name: str
    tokens: int = 1  # vectors a row, for late interaction
    mask: Array | None = None  # (n, tokens): which of them are there
    matrix: Array | None = None  # the vectors themselves, if they are one matrix that lies where it is needed


def operands(lib: Library, queries: Any, docs: Any, fn: str, query_mask: Any, doc_mask: Any) -> tuple[Operand, Operand]:
    """Queries and documents for a score function, checked; `lib` is where scores are computed."""
    if fn != "maxsim" and (query_mask is not None or doc_mask is not None):
        raise InputError(f"Masks are for fn='maxsim', which scores tokens; fn={fn!r} has one vector a row.")
    coded = isinstance(queries, Quantized) and isinstance(docs, Quantized)
    left = _operand(lib, queries, "queries", fn, query_mask, coded)
    right = _operand(lib, docs, "documents", fn, doc_mask, coded)
    if left.dims != right.dims:
        raise InputError(
            f"Queries have {left.dims} dimensions and documents {right.dims}. Both must come from one model."
        )
    if coded and not queries.same_scale(docs):
        raise InputError("Queries and documents are quantised on different scales. Share one: calibration=docs.")
    return left, right


def _operand(lib: Library, given: Any, what: str, fn: str, mask: Any, coded: bool) -> Operand:
    if isinstance(given, Quantized):
        return _quantised(lib, given, fn, coded)
    source = library_of(given)
    array = source.array(given, what)
    shape, wanted = tuple(array.shape), 3 if fn == "maxsim" else 2
    if len(shape) != wanted or not all(shape[1:]):
        expected = "(rows, tokens, dimensions)" if wanted == 3 else "(rows, dimensions)"
        raise InputError(f"The {what} have shape {shape}. fn={fn!r} takes {expected}.")
    if fn == "hamming":
        return _bits(lib, source, array, what)
    there = None if mask is None else _mask(lib, mask, shape[:2], what)
    tokens = shape[1] if wanted == 3 else 1
    here = lib.lies_here(array)

    def take(rows: Any) -> Array:
        everything = isinstance(rows, slice) and rows.stop - rows.start == shape[0]
        found = array if everything else array[source.index(rows)]
        return found if here else lib.here(found)

    held = array if here and wanted == 2 else None
    name = source.name(array.dtype)
    return Operand(take, shape[0], shape[-1], source, array.dtype, name, tokens, there, held)


def _quantised(lib: Library, given: Quantized, fn: str, coded: bool) -> Operand:
    """Whole numbers if both sides are quantised, decoded vectors if one is."""
    if fn == "maxsim":
        raise InputError("Late interaction (fn='maxsim') takes no quantised vectors. Decode them first.")
    if fn == "hamming" and not (coded and given.kind == "binary"):
        raise InputError("fn='hamming' compares bits. Quantise both queries and documents to 'binary'.")
    source, name = library_of(given.codes), "int8" if coded else "float32"
    take = given.values if coded else given.decode

    def rows_of(rows: Any) -> Array:
        return lib.here(take(source.index(rows)))

    return Operand(rows_of, len(given), given.dims, source, source.dtype(name), name)


def _bits(lib: Library, source: Library, array: Array, what: str) -> Operand:
    """Rows of −1 and 1 from bytes as `packbits` makes them, or from truth values."""
    name = source.name(array.dtype)
    if name not in ("uint8", "bool"):
        raise InputError(
            f"The {what} are {name}, but fn='hamming' compares bits: uint8 from packbits, bool, or quantize(..., "
            "to='binary')."
        )
    n, dims = array.shape[0], array.shape[1] * (8 if name == "uint8" else 1)

    def take(rows: Any) -> Array:
        found = lib.here(array[source.index(rows)])
        return lib.cast(unpack_bits(lib, found, dims) if name == "uint8" else found, lib.dtype("int8")) * 2 - 1

    return Operand(take, n, dims, source, source.dtype("int8"), "int8")


def _mask(lib: Library, mask: Any, shape: tuple[int, ...], what: str) -> Array:
    there = lib.here(library_of(mask).array(mask, f"mask of the {what}") != 0)
    if tuple(there.shape) != shape:
        raise InputError(f"The mask of the {what} has shape {tuple(there.shape)}; their tokens have {shape}.")
    empty = np.asarray(lib.host(~there.any(1))).nonzero()[0]
    if len(empty):
        raise InputError(f"Row {empty[0]} of the {what} has no token that counts ({such_rows(len(empty))}).")
    return there
