"""Columns of ids and vectors in Arrow tables and Parquet files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tiewise.data.table import DOC_NAMES, QUERY_NAMES
from tiewise.errors import InputError
from tiewise.tables.optional import need
from tiewise.tables.wording import count_noun

if TYPE_CHECKING:
    import pyarrow

__all__ = ["find_vector_columns", "vectors_to_matrix"]

ID_NAMES = ("id", "_id", *DOC_NAMES, *QUERY_NAMES)
VECTOR_NAMES = ("vector", "embedding", "embeddings", "vectors", "emb", "values")


def find_vector_columns(names: Sequence[str], source: str) -> tuple[str, str]:
    """The names of the column of ids and of the column of vectors."""

    def find(what: str, known: Sequence[str]) -> str:
        for name in known:
            if name in names:
                return name
        options = f"{', '.join(known[:-1])} or {known[-1]}"
        raise InputError(
            f"{source}: has no column of {what}, called {options}. It has: {', '.join(names) or 'none'}. Rename one."
        )

    return find("ids", ID_NAMES), find("vectors", VECTOR_NAMES)


def vectors_to_matrix(column: pyarrow.ChunkedArray, where: str) -> NDArray[Any]:
    """A column of lists of one length as a matrix."""
    arrow = need("pyarrow", "Parquet", "arrow")
    array = column.combine_chunks()
    if isinstance(array, arrow.ChunkedArray):  # extension types stay in chunks
        array = arrow.concat_arrays(array.chunks) if array.num_chunks else arrow.array([], array.type.value_type)
    if hasattr(array, "storage") and not hasattr(array, "flatten"):
        array = array.storage  # a tensor of Ray or Arrow
    if not hasattr(array, "flatten"):
        raise InputError(f"{where} holds {array.type}, not vectors.")
    if array.null_count:
        row = int(np.argmax(array.is_null().to_numpy(zero_copy_only=False)))
        raise InputError(f"{where} has no vector in row {row} ({count_noun(array.null_count, 'such row')}). Drop it.")
    rows = len(array)
    if hasattr(array, "offsets") and rows:
        lengths = np.diff(array.offsets.to_numpy())
        odd = np.flatnonzero(lengths != lengths[0])
        if len(odd):
            row = int(odd[0])
            raise InputError(
                f"{where} has vectors of {lengths[0]} numbers and, in row {row}, of {lengths[row]}. Use one length."
            )
    values = array.flatten().to_numpy(zero_copy_only=False)
    return values.reshape(rows, -1) if rows else np.zeros((0, 1), dtype=np.float32)
