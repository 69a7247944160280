"""All pairs of queries and documents on a device, scored in tiles of one fixed shape.

cuBLAS chooses a kernel by the shape and the alignment of the operands, and kernels add in different orders, so the last
bits of a dot product may depend on how many others are computed beside it. Then a score would change with the size of a
block, and a document would no longer tie with its own copy. So every product here has one shape, whatever was asked
for: queries and documents come in tiles, and what is missing from a tile is filled with zeros. For one model of GPU and
one number of queries, a score then depends on its two vectors alone.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NoReturn

from tiewise.errors import InputError
from tiewise.scoring.arrays import Array, Torch, such_rows
from tiewise.scoring.device_functions import DEVICE_FUNCTIONS, Arithmetic, Similarity, Tile
from tiewise.scoring.operands import Operand
from tiewise.scoring.precisions import Types

__all__ = ["LEAST_TILE", "DeviceScores"]

#: The fewest queries in a tile: for fewer, libraries switch to kernels for narrow matrices. A single query stays alone
#: where its products were found not to depend on the place of a document.
LEAST_TILE = 16

#: Rows of scores begin at multiples of so many, as kernels are also chosen by alignment.
ALIGNED = 64

#: Vectors are filled up with zeros to a multiple of so many dimensions, so that all rows of a matrix are aligned alike.
ALIGNED_DIMS = 16

#: From so many tiles on, documents may be multiplied in one product.
ONE_FROM = 4

#: By device and shape: whether one product gives the bits of tiles.
_alike: dict[Any, dict[Any, bool]] = {}


class DeviceScores:
    """Scores of queries against documents on a device, for any rows of either."""

    def __init__(
        self,
        lib: Torch,
        queries: Operand,
        docs: Operand,
        fn: str,
        precision: str,
        *,
        at_once: int | None = None,
        doc_tile: int | None = None,
    ):
        """`at_once` is how many queries will be scored together, if it is not all of them; `doc_tile` is the number of
        documents in a tile, if they are known to be few."""
        self.lib, self.queries, self.docs = lib, queries, docs
        self.types = Types(precision, fn, queries, docs)
        self.arithmetic = Arithmetic(lib, self.types, fn, queries, docs)
        self.similarity = DEVICE_FUNCTIONS[fn](lib, self.arithmetic, queries, docs)
        self.query_tile = self._query_tile(at_once or queries.n)
        self.doc_tile = doc_tile or max(lib.doc_tile // docs.tokens, 1)
        self.filled = -queries.dims % ALIGNED_DIMS
        self._rooms: dict[int, Array] = {}
        self._zero: dict[tuple[str, int], Array] | None = {} if fn == "cosine" else None

    def _query_tile(self, queries: int) -> int:
        """As many queries as make even tiles: it depends on their number, never on blocks or on the documents."""
        if queries * self.queries.tokens == 1 and self.lib.steady_alone():
            return 1
        most = max(self.lib.query_tile // self.queries.tokens, 1)
        tiles = max(-(-queries // most), 1)
        least = -(-LEAST_TILE // self.queries.tokens)
        return -(-max(-(-queries // tiles), 1) // least) * least

    def left(self, rows: Any) -> list[Tile]:
        """Tiles of some queries (a slice, or positions), ready to be scored against documents."""
        spans = _spans(rows, self.queries.n, self.query_tile)
        return [self._tile(self.queries, span, self.query_tile, "queries") for span in spans]

    def scores(self, left: list[Tile], rows: Any, *, again: int = 0) -> Array:
        """The scores of queries made ready against some documents (a slice, or positions), (queries, documents).

        With `again` they are written over the scores of the last call that said the same number, which spares fresh
        memory.
        """
        n, straight = _length(rows), isinstance(rows, slice) and self._straight
        width = _whole(n, ALIGNED if straight else self.doc_tile)
        room = self._room_of((len(left) * self.query_tile, width), again)
        downs = [slice(i * self.query_tile, (i + 1) * self.query_tile) for i in range(len(left))]
        if straight and n:
            self._multiply(room, list(zip(downs, left, strict=True)), rows)
        else:
            for j, span in enumerate(_spans(rows, self.docs.n, self.doc_tile)):
                right = self._tile(self.docs, span, self.doc_tile, "documents")
                across = slice(j * self.doc_tile, (j + 1) * self.doc_tile)
                for down, mine in zip(downs, left, strict=True):
                    self.similarity.combine_into(room[down, across], mine, right)
        return _part(room, slice(0, sum(tile.rows for tile in left)), n)

    def _room_of(self, shape: tuple[int, int], again: int) -> Array:
        room = self._rooms.get(again)
        if room is None or tuple(room.shape) != shape:
            room = self.lib.empty(shape, self.arithmetic.held)
        if again:
            self._rooms[again] = room
        return room

    @cached_property
    def _straight(self) -> bool:
        """Whether scores are products of the documents as they lie."""
        ours, matrix = self.arithmetic, self.docs.matrix
        plain = type(self.similarity) is Similarity and ours.native is None
        if matrix is None or not plain or self.filled or not (ours.fused or matrix.dtype == ours.compute):
            return False
        if not matrix.is_contiguous() or matrix.data_ptr() % 16:
            return False
        return self.lib.writes(matrix.dtype, ours.held)

    def _multiply(self, room: Array, left: list[tuple[slice, Tile]], everything: slice) -> None:
        """Write products of documents as they lie: of all at once where that gives the bits of tiles.

        One product costs less than many. Whether its bits are those of tiles is tried once for each shape,
        on the first and the last tile.
        """
        shape = self.arithmetic.held, self.docs.dtype, self.docs.dims, self.query_tile, _length(everything)
        alike = _alike.setdefault(self.lib.device, {})
        if shape[-1] > (ONE_FROM - 1) * self.doc_tile and alike.get(shape, True):
            docs = self.docs.take(everything)
            for down, mine in left:
                self.lib.product_into(_part(room, down, shape[-1]), mine.vectors, docs)
            if shape not in alike:
                alike[shape] = self._gives_tiles(room, left[0], everything)
            if alike[shape]:
                return
        self._multiply_tiles(room, left, _spans(everything, self.docs.n, self.doc_tile))

    def _gives_tiles(self, room: Array, left: tuple[slice, Tile], span: slice) -> bool:
        """Whether a product of all documents of a span has the bits of tiles."""
        found = self.lib.empty((self.query_tile, self.doc_tile), self.arithmetic.held)
        for begin in (0, _length(span) - self.doc_tile):
            rows = slice(span.start + begin, span.start + begin + self.doc_tile)
            self.lib.product_into(found, left[1].vectors, self.docs.take(rows))
            if not self.lib.same(found, room[left[0], begin : begin + self.doc_tile]):
                return False
        return True

    def _multiply_tiles(self, room: Array, left: list[tuple[slice, Tile]], spans: list[slice]) -> None:
        """Write products of whole tiles where they belong, and of a last one that is not whole its part."""
        base, size = spans[0].start, self.doc_tile
        for span in spans:
            across = slice(span.start - base, span.stop - base)
            n = _length(span)
            if n == size:
                for down, tile in left:
                    self.lib.product_into(room[down, across], tile.vectors, self.docs.take(span))
                continue
            whole = span.stop >= size  # then there is a tile that ends where they end
            rows = slice(span.stop - size, span.stop) if whole else span
            vectors = self._padded(self.docs.take(rows), size)
            mine = slice(size - n, size) if whole else slice(n)
            found = self.lib.empty((self.query_tile, size), self.arithmetic.held)
            for down, tile in left:
                self.lib.product_into(found, tile.vectors, vectors)
                room[down, across] = found[:, mine]

    def checked(self, left: list[Tile], rows: Any, query_rows: Any, *, again: int = 0) -> Array:
        """The same scores, all of them numbers; if they are not, an error that names the row to blame."""
        found = self.scores(left, rows, again=again)
        if not self.lib.finite(found):
            self.blame(found, rows, query_rows)
        return found

    def all(self) -> Array:
        """The scores of all queries against all documents."""
        queries = slice(0, self.queries.n)
        found = self.checked(self.left(queries), slice(0, self.docs.n), queries)
        whole = self.queries.n % self.query_tile == 0 and self.lib.contiguous(found)
        return found if whole else self.lib.joined([found])  # a copy of its own size, without what fills up the tiles

    def zero_vectors(self) -> dict[str, int]:
        """How many queries and documents had no direction, so that their cosine is 0."""
        counts: dict[str, int] = {}
        for (side, _), count in (self._zero or {}).items():
            counts[side] = counts.get(side, 0) + int(count)
        return counts

    def _tile(self, operand: Operand, rows: Any, size: int, side: str) -> Tile:
        count = _length(rows)
        mask = None if operand.mask is None else self._padded(operand.mask[rows], size)
        vectors, beside = self.similarity.prepared(self._padded(self._aligned(operand.take(rows)), size), mask)
        if self._zero is not None and (side == "queries" or isinstance(rows, slice)):  # else looked up once more
            assert beside is not None
            first = rows.start if isinstance(rows, slice) else int(rows[0])
            self._zero[side, first] = (beside[:count] == 0).sum()
        return Tile(vectors, beside, count)

    def _aligned(self, x: Array) -> Array:
        """Vectors filled up with zeros, which change no product, no norm and no distance."""
        if not self.filled:
            return x
        whole = self.lib.zeros((*x.shape[:-1], x.shape[-1] + self.filled), x.dtype)
        whole[..., : x.shape[-1]] = x
        return whole

    def _padded(self, x: Array, size: int) -> Array:
        if len(x) == size:
            return x
        whole = self.lib.zeros((size, *x.shape[1:]), x.dtype)
        whole[: len(x)] = x
        return whole

    def blame(self, found: Array, rows: Any, query_rows: Any) -> NoReturn:
        """Say which row makes scores that are not finite."""
        for operand, mine, what in ((self.queries, query_rows, "queries"), (self.docs, rows, "documents")):
            x = self.lib.cast(operand.take(mine), self.lib.dtype("float64"))
            bad = self.lib.host(~self.lib.xp.isfinite(x.reshape(len(x), -1)).all(1)).nonzero()[0]
            if len(bad):
                row = mine.start + bad[0] if isinstance(mine, slice) else mine[bad[0]]
                raise InputError(
                    f"Row {int(row)} of the {what} holds NaN or infinity ({such_rows(len(bad))} in this block). "
                    "It has no score: leave it out or mend it."
                )
        rows_, _ = self.lib.host(~self.lib.xp.isfinite(found)).nonzero()
        low = self.arithmetic.native
        name = self.lib.name(self.arithmetic.held if low is None else low)
        wider = {"float64": "Scale", "float32": "Use precision='float64' or scale"}
        remedy = wider.get(name, "Use precision='float32' or scale")
        raise InputError(
            f"{len(rows_):,} of the scores, or the squares that they are made of, are too large for {name}. "
            f"{remedy} the vectors."
        )


def _spans(rows: Any, n: int, size: int) -> list[Any]:
    """Rows cut into pieces of a size."""
    if isinstance(rows, slice):
        low, high = rows.start, min(rows.stop, n)
        return [slice(at, min(at + size, high)) for at in range(low, high, size)]
    return [rows[at : at + size] for at in range(0, len(rows), size)]


def _part(array: Array, rows: slice, columns: int) -> Array:
    """Some rows and the first columns of an array: itself, if these are all."""
    return array if (_length(rows), columns) == tuple(array.shape) else array[rows, :columns]


def _whole(n: int, size: int) -> int:
    """The next multiple of a size."""
    return -(-n // size) * size


def _length(rows: Any) -> int:
    return int(rows.stop - rows.start) if isinstance(rows, slice) else len(rows)
