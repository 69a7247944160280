"""Scores of queries against documents on a device, computed in tiles of one fixed shape.

cuBLAS chooses a kernel by the shape and the alignment of the operands, and kernels add in different orders. So the last
bits of a dot product may depend on how many others are computed with it. Then a score would change with the size of a
block, and a document would not tie with its own copy. Therefore all products here have one shape: queries and documents
come in tiles, and a tile that is not full is filled with zeros. For one model of GPU and one number of queries, a score
then depends on its two vectors alone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from itertools import cycle
from typing import Any, NoReturn

import numpy as np

from tiewise.caching import cached_property
from tiewise.data.columns import Floats
from tiewise.errors import InputError
from tiewise.scoring.backends import Array, TorchBackend, dtype_name, not_finite_error
from tiewise.scoring.blocks import Scorer
from tiewise.scoring.device_counting import ScoreBlock
from tiewise.scoring.device_functions import DEVICE_FUNCTIONS, Arithmetic, Tile
from tiewise.scoring.host_scorer import overflow_remedy
from tiewise.scoring.operands import Operand
from tiewise.scoring.spans import Indices, Rows, as_slice, key_of, length_of, round_up, split

#: The smallest number of queries in a tile: for fewer, libraries use kernels for narrow matrices. A single query is
#: scored alone on CUDA, where its products do not depend on the position of a document.
MIN_TILE = 16

#: Rows of scores begin at multiples of this, because kernels are also chosen by alignment.
ALIGNMENT = 64

#: Vectors are filled with zeros to a multiple of this number of dimensions, so that all rows have one alignment.
DIMS_ALIGNMENT = 16

#: From this number of tiles on, documents may be multiplied in one product.
MIN_TILES_AT_ONCE = 4

#: How many blocks are queued on a device at a time.
QUEUED_BLOCKS = 2

#: From here on, numbers round to more than the largest of float8 (e4m3), which is 448.
FLOAT8_OVERFLOW = 464.0

#: Scores in a block of several tiles of queries.
SCORES_AT_ONCE = 2**27

#: By device and shape: whether one product of all documents has the bits of the products of tiles.
_same_bits: dict[Any, dict[Any, bool]] = {}


class Queue:
    """Blocks of scores that a device works on, each in its own buffer, and what is done with them in main memory."""

    def __init__(self) -> None:
        self._waiting: deque[Callable[[], None]] = deque()
        self._buffers = cycle(range(1, QUEUED_BLOCKS + 1))

    def next_buffer(self) -> int:
        """The number of a buffer that no waiting block uses."""
        if len(self._waiting) == QUEUED_BLOCKS:
            self._waiting.popleft()()
        return next(self._buffers)

    def add(self, finish_block: Callable[[], None]) -> None:
        """Put off what waits for the device."""
        self._waiting.append(finish_block)

    def finish(self) -> None:
        """Do all that was put off."""
        while self._waiting:
            self._waiting.popleft()()


class DeviceScorer(Scorer):
    """Scores on a device."""

    def __init__(
        self,
        backend: TorchBackend,
        queries: Operand,
        docs: Operand,
        fn: str,
        precision: str,
        *,
        score_dtype: str | None = None,
        queries_at_once: int | None = None,
        doc_tile: int | None = None,
    ):
        """`queries_at_once` queries are scored together, if not all; a tile has `doc_tile` vectors of documents."""
        super().__init__(queries, docs, fn, precision)
        self.backend, self.score_dtype = backend, score_dtype
        self.arithmetic = Arithmetic(backend, self.types, fn, queries, docs)
        self.function = DEVICE_FUNCTIONS[fn](backend, self.arithmetic, queries, docs)
        self.query_tile = self._choose_query_tile(queries_at_once or queries.n)
        self.doc_tile = max((doc_tile or backend.doc_tile) // docs.tokens, 1)
        self._dims_padding = -queries.dims % DIMS_ALIGNMENT
        self.queue = Queue()
        self._buffers: dict[int, Array] = {}
        self._zero_masks: dict[tuple[str, Any], tuple[Rows, Callable[[], Any]]] = {}  # by side and rows

    def _choose_query_tile(self, n: int) -> int:
        """Queries per tile, for tiles of equal size. It depends on their number only, not on blocks or documents."""
        tokens = self.queries.tokens
        if n * tokens == 1 and self.backend.is_cuda:
            return 1
        tiles = max(-(-n // max(self.backend.query_tile // tokens, 1)), 1)
        return round_up(max(-(-n // tiles), 1), -(-MIN_TILE // tokens))

    def block_sizes(self, n_queries: int, block: int | None, query_block: int | None) -> tuple[int, int]:
        """The number of queries and of documents in a block, in whole tiles."""
        # Several tiles of queries at a time, if there are few documents: a block has its own cost.
        scores_of_tile = self.query_tile * round_up(max(self.docs.n, 1), self.doc_tile)
        at_once = self.query_tile * max(SCORES_AT_ONCE // scores_of_tile, 1)
        query_size = round_up(query_block or min(at_once, max(n_queries, 1)), self.query_tile)
        doc_size = max(self.backend.block // self.docs.tokens, 1)
        # Two blocks of scores are kept at a time.
        tiles = self.backend.score_memory // (2 * query_size * self.arithmetic.out_dtype.itemsize) // self.doc_tile
        doc_size = max(doc_size, tiles * self.doc_tile)
        return query_size, round_up(block or doc_size, self.doc_tile)

    # -- scores -------------------------------------------------------------------------------------------------------

    def doc_block(self, rows: slice) -> slice:
        """The rows themselves: their tiles are made while they are multiplied."""
        return rows

    def query_tiles(self, rows: Rows) -> list[Tile]:
        """Tiles of some queries, prepared."""
        return [self._make_tile(self.queries, part, self.query_tile) for part in split(rows, self.query_tile)]

    def scores(self, tiles: list[Tile], rows: Rows, *, buffer: int = 0) -> Array:
        """The scores of prepared queries against some documents, (queries, documents).

        With a `buffer` number, they overwrite the result of the last call with the same number. This saves memory.
        """
        return self.score_block(tiles, rows, buffer=buffer).matrix()

    def score_block(self, tiles: list[Tile], rows: Rows, *, buffer: int = 0) -> ScoreBlock:
        """The same scores, perhaps still as products and factors."""
        block = self._multiply_block(tiles, rows, buffer)
        return block if self.score_dtype is None else ScoreBlock(self._round(block.matrix(), self.score_dtype))

    def _round(self, scores: Array, name: str) -> Array:
        """Scores rounded in place; those that are too large become NaN or infinite."""
        dtype = self.backend.dtype("float8_e4m3fn" if name == "float8" else name)
        if name == "float8":  # it has no infinity, and torch would round to its largest number
            scores.masked_fill_(scores.abs() > FLOAT8_OVERFLOW, np.nan)
        return scores.copy_(scores.to(dtype))

    def _multiply_block(self, tiles: list[Tile], rows: Rows, buffer: int) -> ScoreBlock:
        n = length_of(rows)
        in_place = isinstance(rows, slice) and self._multiplies_in_place
        width = round_up(n, ALIGNMENT if in_place and n >= self.doc_tile else self.doc_tile)
        out = self._allocate(len(tiles), width, buffer)
        placed = [(slice(i * self.query_tile, (i + 1) * self.query_tile), tile) for i, tile in enumerate(tiles)]
        own_rows = slice(0, sum(tile.n for tile in tiles))
        if in_place and n:
            assert isinstance(rows, slice)
            self._multiply(out, placed, rows)
            if self.fn == "cosine":
                self._note_zero_rows("queries", tiles)
                factors = [self.function.factors(tile.extra) for tile in tiles]
                query_factors: Array = factors[0] if len(tiles) == 1 else self.backend.xp.concatenate(factors)
                return ScoreBlock(_part(out, own_rows, n), self._doc_factors(rows), query_factors[own_rows])
        else:
            for j, part in enumerate(split(rows, self.doc_tile)):
                docs = self._make_tile(self.docs, part, self.doc_tile)
                columns = slice(j * self.doc_tile, (j + 1) * self.doc_tile)
                for out_rows, queries in placed:
                    self.function.combine_into(out[out_rows, columns], queries, docs)
                self._note_zero_rows("documents", [docs])
            self._note_zero_rows("queries", tiles)
        return ScoreBlock(_part(out, own_rows, n))

    def score_all(self) -> Array:
        """The scores of all queries against all documents, in the type of the precision."""
        queries, docs = slice(0, self.queries.n), slice(0, self.docs.n)
        scores = self.scores(self.query_tiles(queries), docs)
        if not self.backend.all_finite(scores):
            self.raise_not_finite(scores, docs, queries)
        if self.queries.n % self.query_tile or not scores.is_contiguous():
            scores = self.backend.xp.concatenate([scores])  # a copy without the padding of the tiles
        return self.to_result_type(scores, self.backend)

    def score_pairs(self, queries: Indices, query: Indices, doc: Indices) -> Floats:
        """The scores of any pairs, tile by tile of `queries`, against the documents of their pairs."""
        scores, order = np.empty(len(query)), np.argsort(query, kind="stable")
        for part in split(slice(0, len(queries)), self.query_tile):
            low, high = np.searchsorted(query, [part.start, part.stop], sorter=order)
            pairs, rows = order[low:high], as_slice(queries[part])
            if not len(pairs):
                continue
            docs, column = np.unique(doc[pairs], return_inverse=True)
            table = self.scores(self.query_tiles(rows), docs, buffer=1)
            scores[pairs] = gather_scores(self.backend, table, query[pairs] - part.start, column)
            if not np.isfinite(scores[pairs]).all():  # other pairs of these queries and documents do not matter
                self.raise_not_finite(scores[pairs], docs, rows)
        return scores

    def zero_rows(self) -> dict[str, set[int]]:
        """The zero vectors; only here does the device have to be waited for."""
        for (side, _), (rows, wait) in self._zero_masks.items():
            self._add_zero_rows(side, rows, wait())
        return super().zero_rows()

    def _note_zero_rows(self, side: str, tiles: list[Tile]) -> None:
        """Find zero vectors, if their cosine is taken as 0."""
        for tile in tiles if self.fn == "cosine" else ():
            rows = tile.rows
            key = side, key_of(rows)
            if key not in self._zero_masks:
                self._zero_masks[key] = rows, self.backend.to_numpy_async(tile.extra[: tile.n] == 0)

    def raise_not_finite(self, scores: Array, rows: Rows, query_rows: Rows) -> NoReturn:
        """Raise the error for scores that are not finite; it names the row that causes them."""
        for operand, part, side in ((self.queries, query_rows, "queries"), (self.docs, rows, "documents")):
            bad = self.backend.rows_not_finite(operand.take(part))
            if len(bad):
                raise not_finite_error(side, bad, part, " Leave it out or correct it.")
        too_large = int((scores * 0 != 0).sum())  # NaN and infinity times 0 are NaN
        name = self.score_dtype or dtype_name(self.arithmetic.low_dtype or self.arithmetic.out_dtype)
        raise InputError(
            f"{too_large:,} of the scores, or the squares in them, are too large for {name}. {overflow_remedy(name)}"
        )

    # -- products -----------------------------------------------------------------------------------------------------

    def _allocate(self, n_tiles: int, width: int, buffer: int) -> Array:
        shape = n_tiles * self.query_tile, width
        out = self._buffers.get(buffer)
        if out is None or tuple(out.shape) != shape:
            out = self.backend.empty(shape, self.arithmetic.out_dtype)
        if buffer:
            self._buffers[buffer] = out
        return out

    @cached_property
    def _multiplies_in_place(self) -> bool:
        """Whether scores are products of the documents as they are in memory."""
        arithmetic, matrix = self.arithmetic, self.docs.matrix
        if matrix is None or not self.function.is_product or self._dims_padding:
            return False
        if not (arithmetic.float32_output or matrix.dtype == arithmetic.compute_dtype):
            return False
        if not matrix.is_contiguous() or matrix.data_ptr() % 16:
            return False
        return self.backend.can_write_product(matrix.dtype, arithmetic.out_dtype)

    def _multiply(self, out: Array, tiles: list[tuple[slice, Tile]], rows: slice) -> None:
        """Write products of documents: of all in one product, where that has the bits of the products of tiles.

        One product costs less than many. Its bits are compared once for each shape, on the first and the last tile.
        If all documents are fewer than a tile has, they are one product with the zeros that fill it.
        """
        n = length_of(rows)
        if self.docs.n < self.doc_tile:
            assert rows.start == 0
            for out_rows, tile in tiles:
                self.backend.product_into(out[out_rows], tile.vectors, self._padded_docs())
            return
        shape = self.arithmetic.out_dtype, self.docs.dtype, self.docs.dims, self.query_tile, n
        same_bits = _same_bits.setdefault(self.backend.device, {})
        if n > (MIN_TILES_AT_ONCE - 1) * self.doc_tile and same_bits.get(shape, True):
            docs = self.docs.take(rows)
            for out_rows, tile in tiles:
                self.backend.product_into(_part(out, out_rows, n), tile.vectors, docs)
            if shape not in same_bits:
                same_bits[shape] = self._has_bits_of_tiles(out, tiles[0], rows)
            if same_bits[shape]:
                return
        self._multiply_tiles(out, tiles, rows)

    def _padded_docs(self) -> Array:
        """All documents in one tile; it is kept for the next call."""
        key = f"tile of {self.doc_tile}"
        if key not in self.docs.prepared:
            self.docs.prepared[key] = self._pad_rows(self.docs.take(slice(0, self.docs.n)), self.doc_tile)
        return self.docs.prepared[key]

    def _doc_factors(self, rows: slice) -> Array:
        """The factors of some documents; they are computed once for all, in tiles of one shape."""
        key = f"factors, {self.arithmetic.compute_dtype}"
        if key not in self.docs.prepared:
            norms = self.backend.zeros((self.docs.n,), self.arithmetic.compute_dtype)
            for part in split(slice(0, self.docs.n), self.doc_tile):
                tile = self._make_tile(self.docs, part, self.doc_tile)
                norms[part] = tile.extra[: tile.n]
            zero_rows = np.flatnonzero(self.backend.to_numpy(norms == 0))
            self.docs.prepared[key] = self.function.factors(norms), zero_rows
        factors, zero_rows = self.docs.prepared[key]
        self._zero_rows["documents"].update(zero_rows[(zero_rows >= rows.start) & (zero_rows < rows.stop)].tolist())
        return factors[rows]

    def _has_bits_of_tiles(self, out: Array, tile: tuple[slice, Tile], rows: slice) -> bool:
        """Whether the product of all documents has the bits of products of tiles."""
        product = self.backend.empty((self.query_tile, self.doc_tile), self.arithmetic.out_dtype)
        for start in (0, length_of(rows) - self.doc_tile):
            part = slice(rows.start + start, rows.start + start + self.doc_tile)
            self.backend.product_into(product, tile[1].vectors, self.docs.take(part))
            whole = out[tile[0], start : start + self.doc_tile]
            if not ((product == whole) | ((product != product) & (whole != whole))).all():  # NaN equals NaN
                return False
        return True

    def _multiply_tiles(self, out: Array, tiles: list[tuple[slice, Tile]], rows: slice) -> None:
        """Write products of tiles; of a last tile that is not full, its part."""
        size = self.doc_tile
        for part in split(rows, size):
            columns = slice(part.start - rows.start, part.stop - rows.start)
            n = length_of(part)
            if n == size:
                for out_rows, tile in tiles:
                    self.backend.product_into(out[out_rows, columns], tile.vectors, self.docs.take(part))
                continue
            vectors = self.docs.take(slice(part.stop - size, part.stop))  # a full tile that ends at the same document
            product = self.backend.empty((self.query_tile, size), self.arithmetic.out_dtype)
            for out_rows, tile in tiles:
                self.backend.product_into(product, tile.vectors, vectors)
                out[out_rows, columns] = product[:, size - n :]

    # -- tiles --------------------------------------------------------------------------------------------------------

    def _make_tile(self, operand: Operand, rows: Rows, size: int) -> Tile:
        given, mask = self._take(operand, rows)
        mask = None if mask is None else self._pad_rows(mask, size)
        return Tile(rows, length_of(rows), *self.function.prepare(self._pad_rows(self._pad_dims(given), size), mask))

    def _take(self, operand: Operand, rows: Rows) -> tuple[Array, Array | None]:
        """Some rows and their mask. Token vectors of rows of different lengths are filled with zeros."""
        vectors = operand.take(rows)
        if operand.lengths is None:
            return vectors, None if operand.mask is None else operand.mask[rows]
        counts = np.arange(operand.tokens) < operand.lengths[rows][:, None]
        mask = self.backend.to_device(counts)
        padded = self.backend.zeros((*counts.shape, operand.dims), vectors.dtype)
        padded[mask] = vectors
        return padded, mask

    def _pad_dims(self, x: Array) -> Array:
        """Vectors filled with zeros, which change no product, no norm and no distance."""
        if not self._dims_padding:
            return x
        padded = self.backend.zeros((*x.shape[:-1], x.shape[-1] + self._dims_padding), x.dtype)
        padded[..., : x.shape[-1]] = x
        return padded

    def _pad_rows(self, x: Array, size: int) -> Array:
        if len(x) == size:
            return x
        padded = self.backend.zeros((size, *x.shape[1:]), x.dtype)
        padded[: len(x)] = x
        return padded


def _part(array: Array, rows: slice, columns: int) -> Array:
    """Some rows and the first columns of an array; the array itself if these are all."""
    return array if (length_of(rows), columns) == tuple(array.shape) else array[rows, :columns]


def gather_scores(backend: TorchBackend, scores: Array, row: Indices, column: Indices) -> Floats:
    """Some of the scores, as float64 in main memory."""
    some = scores[backend.as_indices(row), backend.as_indices(column)]
    return np.asarray(backend.to_numpy(some), dtype=np.float64)
