"""`search`: the k best documents of each query, exactly, block by block, with everything that ties with the k-th.

For each query the k best scores seen so far are kept, and with them every document that scores at least as well as the
k-th. A block's scores are compared with that bound once. A tie group at the edge is never cut, unless a cap is asked
for.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from tiewise.columns import Codes, Floats
from tiewise.data import Run
from tiewise.errors import InputError, TiewiseWarning, counted
from tiewise.scoring.arrays import Array, Library, Numpy, whole
from tiewise.scoring.ids import Ids
from tiewise.scoring.pairs import Pairs
from tiewise.telling import Progress, check_progress

__all__ = ["Blocks", "search"]


def search(
    queries: Any,
    docs: Any,
    k: int,
    *,
    fn: str = "dot",
    precision: str = "float32",
    query_ids: Any = None,
    doc_ids: Any = None,
    query_mask: Any = None,
    doc_mask: Any = None,
    cap: int | None = None,
    block: int | None = None,
    query_block: int | None = None,
    progress: Progress | None = None,
) -> Run:
    """A `Run` of the k best documents of each query, and of all that tie with the k-th.

    Operands and `fn` are those of `score`; documents may lie in main memory while queries are on a device. Ids are
    counted ``"0"``, ``"1"``, … unless given. `cap` bounds the length of a list: of a tie group that does not fit,
    documents are kept in the order of their rows, and a warning says how many were left out. `block` documents and
    `query_block` queries are scored at a time, in whole tiles, which bounds the memory and changes no score.
    `progress(done, total)` is called as blocks are done.

    >>> docs = [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.5, 0.5]]
    >>> search([[2.0, 0.0]], docs, 1, doc_ids=["a", "b", "c", "d"]).to_dict()
    {'0': {'a': 2.0, 'c': 2.0}}
    """
    many, most = whole(k), None if cap is None else whole(cap)
    if many is None or many < 1:
        raise InputError(f"k is a whole number of documents from 1 on, not {k!r}.")
    if cap is not None and (most is None or most < many):
        raise InputError(f"cap is a whole number of documents from k={k} on, or None, not {cap!r}.")
    pairs = Pairs(queries, docs, fn=fn, precision=precision, query_mask=query_mask, doc_mask=doc_mask)
    names = Ids(query_ids, pairs.queries.n, "query"), Ids(doc_ids, pairs.docs.n, "document")
    blocks = Blocks(pairs, pairs.queries.n, block, query_block, progress)
    found = [_best(pairs, blocks, rows, many, most) for rows in blocks.queries]
    blocks.finish()
    pairs.warn()
    left_out = sum(one.left_out for one in found)
    if left_out:
        warnings.warn(
            f"Left out (cap={cap}): {counted(left_out, 'document that ties', 'documents that tie')} with the last one "
            "of a list.",
            TiewiseWarning,
            stacklevel=2,
        )
    return _run(names, found)


class Blocks:
    """Queries and documents cut into blocks of whole tiles, and how many of their pairs are done."""

    def __init__(
        self,
        pairs: Pairs,
        queries: int,
        block: int | None = None,
        query_block: int | None = None,
        progress: Progress | None = None,
        held: int | None = None,
    ):
        """`held` is how many bytes of scores may be held, of two blocks at a time, if not those of a usual block."""
        check_progress(progress)
        block, query_block = _positive(block, "block"), _positive(query_block, "query_block")
        wide = _whole(query_block or pairs.query_tile, pairs.query_tile)
        usual = max(pairs.lib.block // pairs.docs.tokens, 1)
        if held is not None:
            usual = max(usual, held // (2 * wide * pairs.arithmetic.held.itemsize) // pairs.doc_tile * pairs.doc_tile)
        size = _whole(block or usual, pairs.doc_tile)
        self.queries = [slice(at, min(at + wide, queries)) for at in range(0, queries, wide)]
        self.docs = [slice(at, min(at + size, pairs.docs.n)) for at in range(0, pairs.docs.n, size)]
        self._progress, self._done, self._total = progress, 0, queries * pairs.docs.n

    def done(self, pairs: int) -> None:
        """So many more pairs are scored."""
        self._done += pairs
        if self._progress is not None and self._done < self._total:
            self._progress(self._done, self._total)

    def finish(self) -> None:
        """All is done."""
        if self._progress is not None:
            self._progress(self._total, self._total)


class _Found:
    """The documents found for a block of queries, by query and descending score."""

    def __init__(self, query: Codes, doc: Codes, score: Floats, queries: slice, cap: int | None):
        order = np.lexsort((-score, query))  # stable, and documents come in the order of their rows
        query, self.doc, self.score = query[order], doc[order], score[order].astype(np.float64)
        self.lengths = np.bincount(query, minlength=queries.stop - queries.start)
        self.left_out = 0
        if cap is not None:
            heads = np.cumsum(self.lengths) - self.lengths
            kept = np.arange(len(query)) - heads[query] < cap
            self.left_out = int(np.count_nonzero(~kept))
            self.doc, self.score, self.lengths = self.doc[kept], self.score[kept], np.minimum(self.lengths, cap)


def _best(pairs: Pairs, blocks: Blocks, rows: slice, k: int, cap: int | None) -> _Found:
    left = pairs.left(rows)
    lib: Library = Numpy() if pairs.lib.on_host else pairs.lib
    best = _Best(lib, k)
    for span in blocks.docs:
        scores = pairs.near(pairs.checked(left, span, rows, again=1))
        best.add(scores, span.start)
        blocks.done(scores.shape[0] * scores.shape[1])
    return _Found(*best.found(), rows, cap)


class _Best:
    """For each query the k best scores so far, and the documents that are as good as the k-th of them."""

    def __init__(self, lib: Library, k: int):
        self.lib, self.k = lib, k
        self._top: Array | None = None  # (queries, up to k): the best scores, in any order
        self._kept: list[tuple[Array, Array, Array]] = []  # queries, documents, scores
        self._many = 0

    def add(self, scores: Array, offset: int) -> None:
        """Take in the scores of documents from `offset` on."""
        if self._top is None:
            self._top = self.lib.joined([self.lib.largest(scores, self.k)])  # a copy: scores are written over
            rows, columns = self.lib.where(scores >= self._bound[:, None])
        else:
            rows, columns = self.lib.where(scores >= self._bound[:, None])
            self._raise(rows, scores[rows, columns], len(scores))
        values = scores[rows, columns]
        self._keep(rows, columns + offset, values)

    @property
    def _bound(self) -> Array:
        """The k-th best score of each query, below which nothing is kept."""
        assert self._top is not None
        low = self.lib.xp.amin(self._top, 1)
        return low if self._top.shape[1] == self.k else self.lib.xp.full_like(low, -float("inf"))

    def _raise(self, rows: Array, values: Array, queries: int) -> None:
        """Merge new candidates into the best scores; those of one query stand together."""
        if not len(rows):
            return
        counts = self.lib.xp.bincount(rows, minlength=queries)
        heads = self.lib.xp.cumsum(counts, 0) - counts
        width = int(counts.max())
        fresh = self.lib.empty((queries, width), values.dtype)
        fresh[...] = -float("inf")
        fresh[rows, self.lib.integers(np.arange(len(rows))) - heads[rows]] = values
        self._top = self.lib.largest(self.lib.joined([self._top, fresh], 1), self.k)

    def _keep(self, rows: Array, docs: Array, values: Array) -> None:
        fits = values >= self._bound[rows]
        self._kept.append((rows[fits], docs[fits], values[fits]))
        self._many += len(self._kept[-1][0])
        assert self._top is not None
        if self._many > 4 * self._top.shape[0] * self.k:
            self._shrink()

    def _shrink(self) -> None:
        """Drop what the bound has overtaken."""
        rows, docs, values = (self.lib.joined(parts) for parts in zip(*self._kept, strict=True))
        fits = values >= self._bound[rows]
        self._kept, self._many = [(rows[fits], docs[fits], values[fits])], 0

    def found(self) -> tuple[Codes, Codes, Floats]:
        """Queries, documents and scores, in main memory."""
        if not self._kept:
            return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0)
        self._shrink()
        rows, docs, values = (self.lib.host(part) for part in self._kept[0])
        return rows, docs, values


def _run(names: tuple[Ids, Ids], found: list[_Found]) -> Run:
    doc = np.concatenate([one.doc for one in found] or [np.zeros(0, np.int64)])
    score = np.concatenate([one.score for one in found] or [np.zeros(0)])
    lengths = np.concatenate([one.lengths for one in found] or [np.zeros(0, np.int64)])
    distinct, codes = np.unique(doc, return_inverse=True)  # only documents that were found are named
    queries = tuple(names[0].names(range(names[0].n)))
    return Run(queries, np.concatenate([[0], np.cumsum(lengths)]), codes, names[1].names(distinct), score)


def _positive(value: Any, name: str) -> int | None:
    if value is None:
        return None
    number = whole(value)
    if number is None or number < 1:
        raise InputError(f"{name} is a whole number from 1 on, not {value!r}.")
    return number


def _whole(size: int, tile: int) -> int:
    return -(-size // tile) * tile
