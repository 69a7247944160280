"""What host and device share: the interface of a scorer, and the loop over blocks of queries and documents.

Blocks bound the memory and change no score.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tiewise.data.columns import Floats
from tiewise.data.progress import Progress, check_progress
from tiewise.errors import warn
from tiewise.scoring.backends import Array, Backend
from tiewise.scoring.operands import Operand, ScoreTypes
from tiewise.scoring.options import require_int
from tiewise.scoring.spans import Indices, Rows, numbers_of, split


class Scorer(ABC):
    """Scores of queries against documents, for any rows of both."""

    def __init__(self, queries: Operand, docs: Operand, fn: str, precision: str):
        self.queries, self.docs, self.fn, self.precision = queries, docs, fn, precision
        self.types = ScoreTypes(precision, fn, queries, docs)
        self._zero_rows: dict[str, set[int]] = {"queries": set(), "documents": set()}

    @abstractmethod
    def block_sizes(self, n_queries: int, block: int | None, query_block: int | None) -> tuple[int, int]:
        """The number of queries and of documents in a block."""

    @abstractmethod
    def doc_block(self, rows: slice) -> Any:
        """A block of documents, prepared as far as possible for all blocks of queries."""

    @abstractmethod
    def score_all(self) -> Array:
        """The scores of all queries against all documents, in the library of the queries."""

    @abstractmethod
    def score_pairs(self, queries: Indices, query: Indices, doc: Indices) -> Floats:
        """The scores of any pairs: of row `queries[query]` of the queries and row `doc` of the documents."""

    def zero_rows(self) -> dict[str, set[int]]:
        """The queries and the documents that were zero vectors, whose cosine is taken as 0."""
        return self._zero_rows

    def _add_zero_rows(self, side: str, rows: Rows, is_zero: NDArray[np.bool_]) -> None:
        self._zero_rows[side].update(numbers_of(rows, np.flatnonzero(is_zero)).tolist())

    def to_result_type(self, scores: Array, backend: Backend) -> Array:
        """Scores in the type of the precision."""
        if self.precision != "native":
            return scores
        return backend.cast(scores, self.types.native_dtype(self.queries, backend))

    def warn_of_zero_vectors(self) -> None:
        """Warn about zero vectors, whose cosine was taken as 0."""
        sides = [f"{len(rows):,} of the {side}" for side, rows in self.zero_rows().items() if rows]
        if sides:
            warn(f"Zero vectors have no direction: {' and '.join(sides)}. Their cosine is taken as 0.")


class QueryBlock(Protocol):
    """A block of queries, to which the documents are given block by block."""

    n: int  # queries

    def add(self, docs: Any) -> None:
        """Take the scores of a block of documents, which comes from `Scorer.doc_block`."""


class Blocks:
    """Blocks of queries and of documents, and how many of their pairs are done."""

    def __init__(
        self,
        scorer: Scorer,
        n_queries: int,
        block: int | None = None,
        query_block: int | None = None,
        progress: Progress | None = None,
    ):
        report_progress = check_progress(progress)
        block = require_int(block, "block", optional=True)
        query_block = require_int(query_block, "query_block", optional=True)
        query_size, doc_size = scorer.block_sizes(n_queries, block, query_block)
        self._scorer = scorer
        self.queries = split(slice(0, n_queries), query_size)
        self.docs = split(slice(0, scorer.docs.n), doc_size)
        self._progress, self._done, self._total = report_progress, 0, n_queries * scorer.docs.n

    def visit(self, query_blocks: Sequence[QueryBlock]) -> None:
        """Give all documents to all blocks of queries."""
        for rows in self.docs if query_blocks else ():
            docs = self._scorer.doc_block(rows)
            for queries in query_blocks:
                queries.add(docs)
                self.add_done(queries.n * (rows.stop - rows.start))

    def add_done(self, pairs: int) -> None:
        """Report that more pairs are scored."""
        self._done += pairs
        if self._done < self._total:
            self._progress(self._done, self._total)

    def finish(self) -> None:
        """Report that everything is done, and warn about zero vectors."""
        self._progress(self._total, self._total)
        self._scorer.warn_of_zero_vectors()
