"""Where vectors are kept, and how: one small class for each kind, behind one interface.

A storage gives some of its rows at a time (`take`), in the library in which they are kept. So vectors need not fit into
memory: a mapped file is read, a Parquet file decoded, and codes are unpacked only for the rows that are taken.
"""

from __future__ import annotations

import mmap
import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from tiewise.caching import cached_property
from tiewise.data.columns import ranges
from tiewise.errors import InputError
from tiewise.scoring.backends import Array, Backend, NumpyBackend, backend_of, check_numeric, dtype_name
from tiewise.scoring.quantised import Quantized, pack_bits, unpack_bits
from tiewise.scoring.spans import Indices, Rows, split

#: How many rows are copied to a device at a time.
COPIED_ROWS = 65_536


@dataclass(frozen=True, eq=False, repr=False)
class TokenVectors:
    """Token vectors of many rows without padding, for late interaction: all vectors, and how many each row has.

    The vectors may be quantised; then they are decoded when they are scored. `Collection`, `search`, `tie_groups`,
    `judged_scores` and `rescore` take it in place of vectors, as queries and as documents, with ``fn="maxsim"``.

    >>> import numpy as np
    >>> TokenVectors(np.ones((5, 2)), [2, 3])
    <TokenVectors: 2 rows, 5 vectors of 2 dimensions>
    """

    vectors: ArrayLike | Quantized  # (n_vectors, dims)
    lengths: ArrayLike  # (n_rows,)

    @classmethod
    def from_rows(cls, rows: Sequence[Any]) -> TokenVectors:
        """Token vectors from one matrix, (tokens, dims), for each row.

        >>> TokenVectors.from_rows([[[1.0, 0.0]], [[0.5, 0.5], [0.0, 1.0]]])
        <TokenVectors: 2 rows, 3 vectors of 2 dimensions>
        """
        if not len(rows):
            raise InputError("There are no token vectors. Give one matrix of tokens and dimensions for each row.")
        backend = backend_of(rows[0])
        matrices = [backend.as_array(row, f"token vectors of row {number}") for number, row in enumerate(rows)]
        for number, matrix in enumerate(matrices):
            if matrix.ndim != 2 or matrix.shape[1] != matrices[0].shape[-1]:
                raise InputError(
                    f"The token vectors of row {number} have shape {tuple(matrix.shape)}. Give (tokens, dimensions), "
                    f"with as many dimensions as row 0, of shape {tuple(matrices[0].shape)}."
                )
        return cls(backend.xp.concatenate(matrices), [len(matrix) for matrix in matrices])

    def __len__(self) -> int:
        return len(np.asarray(self.lengths))

    def __repr__(self) -> str:
        n, dims = np.shape(self.vectors)
        return f"<TokenVectors: {len(self):,} rows, {n:,} vectors of {dims:,} dimensions>"


#: What functions take as queries and documents: NumPy arrays, torch tensors, lists, quantised and token vectors, and
#: sparse matrices of scipy or torch.
VectorsLike: TypeAlias = "ArrayLike | Quantized | TokenVectors"


class Storage(ABC):
    """Rows of vectors."""

    n: int
    dims: int
    backend: Backend  # the library and the device of the rows
    dtype: Any  # of the rows
    tokens: int = 1  # vectors in the longest row, for late interaction
    lengths: Any = None  # (n,): vectors in each row, if rows come without padding
    array: Array = None  # the vectors, if they are one array

    @property
    def dtype_name(self) -> str:
        """The name of the type of the rows."""
        return dtype_name(self.dtype)

    @abstractmethod
    def take(self, rows: Rows) -> Array:
        """Some rows."""

    @abstractmethod
    def cut(self, dims: int) -> Storage:
        """The first dimensions of all rows."""

    def to(self, backend: Backend) -> Storage:
        """A copy on another device; the storage itself if there is no such copy."""
        return self

    @property
    def nbytes(self) -> int:
        """The memory that `to` needs."""
        return 0


class Matrix(Storage):
    """Vectors in an array, (rows, dims), or token vectors, (rows, tokens, dims). A mapped file is such an array."""

    def __init__(self, backend: Backend, array: Array):
        self.backend, self.array, self.dtype = backend, array, array.dtype
        self.n, self.dims, self.tokens = array.shape[0], array.shape[-1], array.shape[1] if array.ndim == 3 else 1

    def take(self, rows: Rows) -> Array:
        _check_mapped(self.array)
        if isinstance(rows, slice) and rows.stop - rows.start == self.n:
            return self.array
        return self.array[self.backend.as_index(rows)]

    def cut(self, dims: int) -> Storage:
        return Matrix(self.backend, self.array[..., :dims])

    def to(self, backend: Backend) -> Storage:
        _check_mapped(self.array)
        copy = backend.to_device(self.array)
        return Matrix(backend, copy.contiguous() if hasattr(copy, "contiguous") else copy)

    @property
    def nbytes(self) -> int:
        return int(np.prod(self.array.shape)) * int(self.array.dtype.itemsize)


class Codes(Storage):
    """Quantised vectors: as integers where both sides are quantised, otherwise decoded."""

    def __init__(self, quantised: Quantized, *, decoded: bool = True):
        self.quantised, self.decoded = quantised, decoded
        self.backend, self.n, self.dims = backend_of(quantised.codes), len(quantised), quantised.dims
        self.dtype = self.backend.dtype("float32" if decoded else "int8")

    def take(self, rows: Rows) -> Array:
        unpack = self.quantised.decode if self.decoded else self.quantised.values
        return unpack(self.backend.as_index(rows))

    def cut(self, dims: int) -> Storage:
        return Codes(self.quantised.cut(dims), decoded=self.decoded)

    def to(self, backend: Backend) -> Storage:
        return Codes(self.quantised.to(backend), decoded=self.decoded)

    @property
    def nbytes(self) -> int:
        return self.quantised.nbytes


class Bits(Storage):
    """Packed bits, for the Hamming distance: eight per byte, the first one highest, 0 behind the last one."""

    def __init__(self, backend: Backend, codes: Array, dims: int):
        self.backend, self.codes, self.dims, self.n = backend, codes, dims, codes.shape[0]
        self.dtype = backend.dtype("int8")

    def take(self, rows: Rows) -> Array:
        _check_mapped(self.codes)
        packed = self.codes[self.backend.as_index(rows)]
        if self.dims % 8 == 0:
            return packed
        kept = self.backend.zeros((packed.shape[1],), packed.dtype) + 255
        kept[-1] = 256 - 2 ** (8 - self.dims % 8)
        return packed & kept

    def unpack(self, backend: Backend, packed: Array) -> Array:
        """Packed bits as −1 and 1."""
        return backend.cast(unpack_bits(backend, packed, self.dims), backend.dtype("int8")) * 2 - 1

    def cut(self, dims: int) -> Storage:
        return Bits(self.backend, self.codes[:, : -(-dims // 8)], dims)

    def to(self, backend: Backend) -> Storage:
        _check_mapped(self.codes)
        return Bits(backend, backend.to_device(self.codes), self.dims)

    @property
    def nbytes(self) -> int:
        return int(np.prod(self.codes.shape))


class Tokens(Storage):
    """Token vectors without padding. `take` gives the vectors of some rows one after the other."""

    def __init__(self, vectors: Storage, lengths: Indices):
        self.vectors, self.lengths = vectors, lengths
        self.backend, self.dtype, self.dims, self.n = vectors.backend, vectors.dtype, vectors.dims, len(lengths)
        self.offsets = np.concatenate([[0], np.cumsum(lengths)])
        self.tokens = int(lengths.max(initial=1))

    def take(self, rows: Rows) -> Array:
        if isinstance(rows, slice):
            return self.vectors.take(slice(int(self.offsets[rows.start]), int(self.offsets[rows.stop])))
        return self.vectors.take(ranges(self.offsets[rows], self.lengths[rows]))

    def cut(self, dims: int) -> Storage:
        return Tokens(self.vectors.cut(dims), self.lengths)

    def to(self, backend: Backend) -> Storage:
        return Tokens(self.vectors.to(backend), self.lengths)

    @property
    def nbytes(self) -> int:
        return self.vectors.nbytes


class Sparse(Storage):
    """A sparse matrix in main memory; `take` gives rows of scipy's compressed matrix."""

    def __init__(self, matrix: Any):
        self.matrix, self.backend, self.dtype = matrix, NumpyBackend(), matrix.dtype
        self.n, self.dims = matrix.shape

    @cached_property
    def terms(self) -> int:
        """The largest number of values in a row."""
        return int(np.diff(self.matrix.indptr).max(initial=1))

    def take(self, rows: Rows) -> Any:
        return self.matrix[rows]

    def cut(self, dims: int) -> Storage:
        return Sparse(self.matrix[:, :dims])


class Shards(Storage):
    """Several storages of one kind; their rows follow each other."""

    def __init__(self, parts: Sequence[Storage], names: Sequence[str]):
        first = parts[0]
        for part, name in zip(parts, names, strict=True):
            if (part.dims, part.dtype_name) != (first.dims, first.dtype_name):
                raise InputError(
                    f"{name} has {part.dims} dimensions of type {part.dtype_name}, but {names[0]} has {first.dims} of "
                    f"type {first.dtype_name}. Shards must come from one model."
                )
        self.parts, self.backend, self.dtype, self.dims = parts, first.backend, first.dtype, first.dims
        self.offsets = np.concatenate([[0], np.cumsum([part.n for part in parts])])
        self.n, self.tokens = int(self.offsets[-1]), max(part.tokens for part in parts)
        if first.lengths is not None:
            self.lengths = np.concatenate([part.lengths for part in parts])

    def take(self, rows: Rows) -> Array:
        if isinstance(rows, slice):
            found = [
                part.take(slice(max(rows.start - start, 0), min(rows.stop - start, part.n)))
                for part, start in zip(self.parts, self.offsets.tolist(), strict=False)
                if start < rows.stop and rows.start < start + part.n
            ]
            return found[0] if len(found) == 1 else self._join(found)
        number = np.searchsorted(self.offsets, rows, side="right") - 1
        joined = self._join([self.parts[i].take(rows[number == i] - self.offsets[i]) for i in np.unique(number)])
        order = np.argsort(number, kind="stable")
        back = np.argsort(order)
        if self.lengths is None:
            return joined[self.backend.as_index(back)]
        lengths = self.lengths[rows[order]]
        return joined[self.backend.as_index(ranges((np.cumsum(lengths) - lengths)[back], lengths[back]))]

    def to(self, backend: Backend) -> Storage:
        """All parts in one matrix on another device, if they are matrices or Parquet files."""
        return copy_rows(self, backend) if self.nbytes else self

    @property
    def nbytes(self) -> int:
        """The bytes of all parts; 0 for token vectors, codes and sparse vectors, which stay where they are."""
        plain = self.lengths is None and not isinstance(self.parts[0], (Codes, Bits, Sparse))
        return sum(part.nbytes for part in self.parts) if plain else 0

    def _join(self, found: list[Array]) -> Array:
        return self.backend.xp.concatenate(found or [self.parts[0].take(slice(0, 0))])

    def cut(self, dims: int) -> Storage:
        return Shards([part.cut(dims) for part in self.parts], [""] * len(self.parts))


def copy_rows(storage: Storage, backend: Backend) -> Storage:
    """The rows of a storage as one matrix on another device, copied some at a time."""
    first = backend.to_device(storage.take(slice(0, min(storage.n, 1))))
    array = backend.zeros((storage.n, *first.shape[1:]), first.dtype)
    for rows in split(slice(0, storage.n), COPIED_ROWS):
        array[rows] = backend.to_device(storage.take(rows))
    return Matrix(backend, array)


# -- from what users give ---------------------------------------------------------------------------------------------


def _check_mapped(array: Array) -> None:
    """Raise if an array is mapped from a file that is shorter by now: reading it would end the process (SIGBUS).

    It is called before each block. A file that is cut while a block is read ends the process all the same.
    """
    while isinstance(getattr(array, "base", None), np.ndarray):  # a view
        array = array.base
    if isinstance(array, np.memmap) and isinstance(file := array.base, mmap.mmap):
        start = array.offset - array.offset % mmap.ALLOCATIONGRANULARITY
        if file.size() < start + len(file):  # of the file that is open, whatever is at its path by now
            raise InputError(f"{array.filename}: became shorter while it was read. Try again.")


def make_storage(given: Any, what: str, fn: str) -> Storage:
    """The storage of queries or documents for a score function, checked; `what` names them in messages."""
    if isinstance(given, Storage):
        return given
    if isinstance(given, Quantized):
        return _quantised_storage(given, fn)
    matrix = _as_sparse(given, what)
    if matrix is not None:
        if fn not in ("dot", "cosine"):
            raise InputError(f"The {what} are sparse. fn={fn!r} does not take sparse vectors; use 'dot' or 'cosine'.")
        return Sparse(matrix)
    if isinstance(given, TokenVectors) or (fn == "maxsim" and _is_list_of_matrices(given)):
        return _token_storage(given if isinstance(given, TokenVectors) else TokenVectors.from_rows(given), what, fn)
    source = backend_of(given)
    array = source.as_array(given, what)
    shape, ndim = tuple(array.shape), 3 if fn == "maxsim" else 2
    if len(shape) != ndim or not all(shape[1:]):
        expected = "(rows, tokens, dimensions)" if ndim == 3 else "(rows, dimensions)"
        raise InputError(f"The {what} have shape {shape}. fn={fn!r} takes {expected}.")
    return _bit_storage(source, array, what) if fn == "hamming" else Matrix(source, array)


def _quantised_storage(given: Quantized, fn: str) -> Storage:
    if fn == "maxsim":
        raise InputError(
            "Late interaction (fn='maxsim') does not take quantised vectors without their rows. Give "
            "TokenVectors(vectors, lengths), or decode them first."
        )
    if fn != "hamming":
        return Codes(given)
    if given.kind != "binary":
        raise InputError("fn='hamming' compares bits. Quantise both queries and documents to 'binary'.")
    return Bits(backend_of(given.codes), given.codes, given.dims)


def _bit_storage(source: Backend, array: Array, what: str) -> Storage:
    """Bits from bytes as `packbits` makes them, or from truth values."""
    name = dtype_name(array.dtype)
    if name not in ("uint8", "bool"):
        signed = ". Those of sentence-transformers' precision='binary' become such bytes by x.view(uint8) ^ 128"
        raise InputError(
            f"The {what} are {name}, but fn='hamming' compares bits: uint8 from packbits, bool, or quantize(..., "
            f"to='binary'){signed if name == 'int8' else ''}."
        )
    if name == "bool":
        return Bits(source, pack_bits(source, array), array.shape[1])
    return Bits(source, array, array.shape[1] * 8)


def _is_list_of_matrices(given: Any) -> bool:
    """Whether rows come one by one: as arrays, or as lists with different numbers of tokens."""
    if not isinstance(given, (list, tuple)) or not given:
        return False
    shapes = set()
    for row in given:
        with suppress(TypeError, ValueError):
            shapes.add(tuple(np.shape(row)))
    return len({shape for shape in shapes if len(shape) == 2}) > 1 or len(getattr(given[0], "shape", ())) == 2


def _token_storage(given: TokenVectors, what: str, fn: str) -> Storage:
    if fn != "maxsim":
        raise InputError(f"The {what} are token vectors, which fn={fn!r} does not take. Use fn='maxsim'.")
    vectors = make_storage(given.vectors, f"token vectors of the {what}", "dot")
    lengths = np.asarray(given.lengths)
    if lengths.ndim != 1 or lengths.dtype.kind not in "iu":
        raise InputError(f"The lengths of the {what} must be one integer for each row, the number of its vectors.")
    if (lengths < 1).any():
        row = int(np.argmax(lengths < 1))
        raise InputError(f"Row {row} of the {what} has {lengths[row]} token vectors. Every row needs at least one.")
    if int(lengths.sum()) != vectors.n:
        raise InputError(
            f"The lengths of the {what} add up to {int(lengths.sum()):,}, but there are {vectors.n:,} vectors."
        )
    return Tokens(vectors, lengths.astype(np.int64))


def _as_sparse(given: Any, what: str) -> Any:
    """A compressed matrix of scipy from a sparse matrix of scipy or torch; None for anything else."""
    torch: Any = sys.modules.get("torch")
    if torch is not None and isinstance(given, torch.Tensor):
        if given.layout not in (torch.sparse_csr, torch.sparse_coo, torch.sparse_csc):
            return None
        given = given.detach().cpu().to_sparse_csr()
        from scipy.sparse import csr_array

        values = NumpyBackend().as_array(given.values(), what)
        given = csr_array((values, given.col_indices().numpy(), given.crow_indices().numpy()), shape=given.shape)
    elif not (hasattr(given, "tocsr") and hasattr(given, "nnz")):
        return None
    matrix = given.tocsr()
    name = matrix.dtype.name
    if matrix.ndim != 2 or not all(matrix.shape[1:]):
        raise InputError(f"The {what} have shape {matrix.shape}. Give (rows, dimensions).")
    check_numeric(name, what)
    if name not in ("float32", "float64"):
        matrix = matrix.astype(np.float32 if matrix.dtype.itemsize < 4 else np.float64)
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    return matrix
