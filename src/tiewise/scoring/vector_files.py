"""Documents from files: arrays that are mapped into memory, and Parquet files that are read in row groups."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np

from tiewise.errors import InputError, name_memory_errors, prefix_errors
from tiewise.io.compression import Reread
from tiewise.io.parquet import parquet_errors
from tiewise.io.tensors import read_tensors
from tiewise.io.vectors import find_vector_columns, ids_to_list, vectors_to_matrix
from tiewise.results.optional import need
from tiewise.scoring.backends import Array, Backend, NumpyBackend
from tiewise.scoring.spans import Rows
from tiewise.scoring.storage import Shards, Storage, TokenVectors, copy_rows, make_storage

#: The names of the arrays in a file with several: the vectors, their ids, and for token vectors the lengths of rows.
VECTORS, IDS, LENGTHS = "docs", "doc_ids", "lengths"

PARQUET = (".parquet", ".pq")  # the suffixes of Parquet files

Path_ = str | os.PathLike[str]


def is_path(docs: Any) -> TypeGuard[Path_ | Sequence[Path_]]:
    """Whether documents are given as a file or a list of files."""
    if isinstance(docs, (str, os.PathLike)):
        return True
    return isinstance(docs, (list, tuple)) and bool(docs) and all(isinstance(one, (str, os.PathLike)) for one in docs)


def open_vectors(docs: Path_ | Sequence[Path_], fn: str) -> tuple[Storage, list[Any] | None]:
    """The vectors of files, one after the other, and their ids, if the files have any."""
    paths = [docs] if isinstance(docs, (str, os.PathLike)) else list(docs)
    names = [os.fspath(path) for path in paths]
    opened = [_open(name, fn) for name in names]
    storages = [storage for storage, _ in opened]
    storage = storages[0] if len(storages) == 1 else Shards(storages, names)
    with_ids = [ids for _, ids in opened if ids is not None]
    if len(with_ids) not in (0, len(opened)):
        raise InputError("Some of the files have ids of documents and some have none. Give doc_ids for all.")
    return storage, [one for ids in with_ids for one in ids] if with_ids else None


def _open(name: str, fn: str) -> tuple[Storage, Any]:
    if Path(name).suffix.lower() in PARQUET:
        parquet = ParquetVectors(name)
        if fn not in ("dot", "cosine", "euclidean"):
            raise InputError(
                f"{name}: vectors of a Parquet file are for fn='dot', 'cosine' or 'euclidean', not {fn!r}."
            )
        return parquet, parquet.read_ids()
    arrays = read_tensors(name, PARQUET)
    vectors = _find_vectors(arrays, VECTORS, name)
    vectors = TokenVectors(vectors, arrays[LENGTHS]) if LENGTHS in arrays else vectors
    with prefix_errors(name):
        storage = make_storage(vectors, "documents", fn)
    ids = arrays.get(IDS)
    return storage, None if ids is None else ids.tolist()


def _find_vectors(arrays: Mapping[str, Any], role: str, name: str) -> Any:
    """The array of a role, or the only one."""
    if role not in arrays and len(arrays) != 1:
        found = ", ".join(map(repr, arrays)) or "none"
        raise InputError(
            f"{name}: has no array called '{role}'. It has: {found}. Rename one, or give the array itself."
        )
    return arrays[role] if role in arrays else next(iter(arrays.values()))


def read_matrix(path: Path_, vectors: str, ids: str) -> tuple[Array, list[Any] | None]:
    """The vectors of one file and their ids: of an array with a name, or the only one, or of a Parquet file."""
    name = os.fspath(path)
    if Path(name).suffix.lower() in PARQUET:
        return ParquetVectors(name).read()
    arrays = read_tensors(name, PARQUET)
    return _find_vectors(arrays, vectors, name), None if ids not in arrays else arrays[ids].tolist()


class ParquetVectors(Storage):
    """The vectors of a Parquet file; a row group is decoded when one of its rows is taken."""

    def __init__(self, name: str, dims: int | None = None):
        self.name, self.backend = name, NumpyBackend()
        parquet = need("pyarrow.parquet", "Parquet", "arrow")
        with self._errors():
            self._file = parquet.ParquetFile(name)
            names, groups = self._file.schema_arrow.names, self._file.metadata
            sizes = [groups.row_group(number).num_rows for number in range(groups.num_row_groups)]
        self._reread = Reread(name)
        self._ids, self._column = find_vector_columns(names, name)
        self.offsets = np.concatenate([[0], np.cumsum(np.array(sizes, np.int64))])
        self.n = int(self.offsets[-1])
        self._read_group = lru_cache(2)(self._decode)
        self._width: int | None = None  # of the vectors in the file
        first = self._read_group(int(np.argmax(self.offsets > 0)) - 1) if self.n else np.zeros((0, 1), np.float32)
        self._width, self.dtype = first.shape[1], first.dtype
        self.dims = self._width if dims is None else dims

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Name the file in errors."""
        with name_memory_errors(self.name), prefix_errors(self.name), parquet_errors():
            yield

    def read(self) -> tuple[Array, list[Any]]:
        """All vectors and their ids."""
        ids = self.read_ids()
        return self.take(slice(0, self.n)), ids

    def read_ids(self) -> list[Any]:
        """The ids of all rows."""
        with self._errors():
            ids = ids_to_list(self._file.read(columns=[self._ids]).column(0), f"column '{self._ids}'")
            if len(ids) != self.n:
                raise InputError(f"has {len(ids):,} ids for {self.n:,} rows: it is damaged. Create it again.")
            return ids

    def _decode(self, number: int) -> Array:
        self._reread.check()
        first, stop = self.offsets[number : number + 2].tolist()
        with self._errors():
            column = self._file.read_row_group(number, columns=[self._column]).column(0)
            if len(column) != stop - first:
                raise InputError(
                    f"has {len(column):,} vectors for {stop - first:,} ids: it is damaged. Create it again."
                )
            return vectors_to_matrix(column, f"column '{self._column}'", first_row=first, dims=self._width)

    def take(self, rows: Rows) -> Array:
        if isinstance(rows, slice):
            rows = np.arange(rows.start, rows.stop)
        out = np.empty((len(rows), self.dims), self.dtype)
        number = np.searchsorted(self.offsets, rows, side="right") - 1
        for group in np.unique(number).tolist():
            here = np.flatnonzero(number == group)
            out[here] = self._read_group(group)[rows[here] - self.offsets[group], : self.dims]
        return out

    def cut(self, dims: int) -> Storage:
        return ParquetVectors(self.name, dims)

    def to(self, backend: Backend) -> Storage:
        return copy_rows(self, backend)

    @property
    def nbytes(self) -> int:
        return self.n * self.dims * int(np.dtype(self.dtype).itemsize)
