"""Queries and documents cut into blocks, which bounds the memory, and the progress through them."""

from __future__ import annotations

from typing import Any

from tiewise.data.progress import Progress, check_progress
from tiewise.errors import InputError
from tiewise.scoring.arrays import whole
from tiewise.scoring.device import DeviceScores
from tiewise.scoring.pairwise import Scores

__all__ = ["Blocks"]

#: Queries and documents that are scored at a time in main memory.
QUERIES, DOCUMENTS = 256, 16_384


class Blocks:
    """Blocks of queries and of documents, and how many of their pairs are done.

    On a device they consist of whole tiles, and `held` is how many bytes of scores may be held, of two blocks at a
    time, if not those of a usual block.
    """

    def __init__(
        self,
        scores: Scores,
        queries: int,
        block: int | None = None,
        query_block: int | None = None,
        progress: Progress | None = None,
        held: int | None = None,
    ):
        check_progress(progress)
        block, query_block = _positive(block, "block"), _positive(query_block, "query_block")
        if isinstance(scores, DeviceScores):
            wide = _multiple(query_block or scores.query_tile, scores.query_tile)
            usual = max(scores.lib.block // scores.docs.tokens, 1)
            if held is not None:
                tiles = held // (2 * wide * scores.arithmetic.held.itemsize) // scores.doc_tile
                usual = max(usual, tiles * scores.doc_tile)
            size = _multiple(block or usual, scores.doc_tile)
        else:
            wide = query_block or max(QUERIES // scores.queries.tokens, 1)
            # Few queries have few scores: their blocks may hold more documents.
            few = max(QUERIES // 4 // max(min(wide, queries), 1), 1)
            size = block or max(DOCUMENTS * few // scores.docs.tokens, 1)
        n = scores.docs.n
        self.queries = [slice(at, min(at + wide, queries)) for at in range(0, queries, wide)]
        self.docs = [slice(at, min(at + size, n)) for at in range(0, n, size)]
        self._progress, self._done, self._total = progress, 0, queries * n

    def done(self, pairs: int) -> None:
        """So many more pairs are scored."""
        self._done += pairs
        if self._progress is not None and self._done < self._total:
            self._progress(self._done, self._total)

    def finish(self) -> None:
        """All is done."""
        if self._progress is not None:
            self._progress(self._total, self._total)


def _positive(value: Any, name: str) -> int | None:
    if value is None:
        return None
    number = whole(value)
    if number is None or number < 1:
        raise InputError(f"{name} is a whole number from 1 on, not {value!r}.")
    return number


def _multiple(size: int, tile: int) -> int:
    return -(-size // tile) * tile
