"""Columns of ids and vectors in Arrow tables and Parquet files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tiewise.data.columns import check_arrow
from tiewise.data.table import DOC_NAMES, QUERY_NAMES
from tiewise.errors import InputError
from tiewise.results.optional import need
from tiewise.results.wording import count_noun

if TYPE_CHECKING:
    import pyarrow

ID_NAMES = ("id", "_id", *DOC_NAMES, *QUERY_NAMES)
VECTOR_NAMES = ("vector", "embedding", "embeddings", "vectors", "emb", "values")


def find_vector_columns(names: Sequence[str], source: str) -> tuple[str, str]:
    """The names of the column of ids and of the column of vectors."""

    def find(what: str, known: Sequence[str]) -> str:
        for name in known:
            if names.count(name) > 1:
                raise InputError(f"{source}: has two columns '{name}'. Keep one of them.")
            if name in names:
                return name
        options = f"{', '.join(known[:-1])} or {known[-1]}"
        raise InputError(
            f"{source}: has no column of {what}, called {options}. It has: {', '.join(names) or 'none'}. Rename one."
        )

    return find("ids", ID_NAMES), find("vectors", VECTOR_NAMES)


def ids_to_list(column: pyarrow.ChunkedArray, where: str) -> list[Any]:
    """A column of ids as Python objects."""
    check_arrow(column, where)
    ids: list[Any] = column.to_pylist()
    return ids


def vectors_to_matrix(
    column: pyarrow.ChunkedArray, where: str, *, first_row: int = 0, dims: int | None = None
) -> NDArray[Any]:
    """A column of lists of one length as a matrix. A missing list or number is an error.

    Of a part of a column, `first_row` is the number of its first row, and `dims` the length of the lists before it.
    """
    arrow = need("pyarrow", "Parquet", "arrow")
    compute, types = need("pyarrow.compute", "Parquet", "arrow"), arrow.types
    check_arrow(column, where)
    if hasattr(column.type, "storage_type"):  # a tensor of Ray or Arrow
        column = arrow.chunked_array([chunk.storage for chunk in column.chunks], column.type.storage_type)
    kind = column.type
    is_list = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    if not is_list or not any(
        is_number(kind.value_type) for is_number in (types.is_floating, types.is_integer, types.is_boolean)
    ):
        raise InputError(f"{where} holds {kind}, not vectors.")
    if column.null_count:
        row = first_row + int(np.argmax(column.is_null().to_numpy()))
        raise InputError(f"{where} has no vector in row {row} ({count_noun(column.null_count, 'such row')}). Drop it.")
    lengths = compute.list_value_length(column).to_numpy()
    if not lengths.all():
        raise InputError(f"{where} has an empty vector in row {first_row + int(np.argmin(lengths))}. Drop it.")
    dims = int(lengths[0]) if dims is None and len(lengths) else dims or 1
    odd = np.flatnonzero(lengths != dims)
    if len(odd):
        row = int(odd[0])
        raise InputError(
            f"{where} has vectors of {dims} numbers and, in row {first_row + row}, of {lengths[row]}. Use one length."
        )
    values = compute.list_flatten(column)
    if values.null_count:
        row = first_row + int(np.argmax(values.is_null().to_numpy())) // dims
        raise InputError(f"{where} lacks a number in row {row}. Drop the row, or fill it in.")
    return values.to_numpy().reshape(len(column), dims)
