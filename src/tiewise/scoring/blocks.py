"""Blocks of queries and documents, which bound the memory, and the progress through them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tiewise.data.progress import Progress, check_progress
from tiewise.scoring.options import require_int

if TYPE_CHECKING:
    from tiewise.scoring.scorers import Scorer

__all__ = ["Blocks", "round_up", "split"]


class Blocks:
    """Blocks of queries and of documents, and how many of their pairs are done.

    `memory` is the number of bytes of scores that a device may keep, for two blocks at a time, if more than usual.
    """

    def __init__(
        self,
        scorer: Scorer,
        n_queries: int,
        block: int | None = None,
        query_block: int | None = None,
        progress: Progress | None = None,
        memory: int | None = None,
    ):
        check_progress(progress)
        block = require_int(block, "block", optional=True)
        query_block = require_int(query_block, "query_block", optional=True)
        query_size, doc_size = scorer.block_sizes(n_queries, block, query_block, memory)
        self.queries = split(slice(0, n_queries), query_size)
        self.docs = split(slice(0, scorer.docs.n), doc_size)
        self._progress, self._done, self._total = progress, 0, n_queries * scorer.docs.n

    def add_done(self, pairs: int) -> None:
        """Report that more pairs are scored."""
        self._done += pairs
        if self._progress is not None and self._done < self._total:
            self._progress(self._done, self._total)

    def finish(self) -> None:
        """Report that everything is done."""
        if self._progress is not None:
            self._progress(self._total, self._total)


def split(rows: slice, size: int) -> list[slice]:
    """A range cut into pieces of a size.

    >>> split(slice(2, 7), 3)
    [slice(2, 5, None), slice(5, 7, None)]
    """
    return [slice(start, min(start + size, rows.stop)) for start in range(rows.start, rows.stop, size)]


def round_up(n: int, size: int) -> int:
    """The next multiple of a size.

    >>> round_up(5, 4), round_up(8, 4)
    (8, 8)
    """
    return -(-n // size) * size
