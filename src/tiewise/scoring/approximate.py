"""Approximate scores of queries and documents with a bound on their error, and what they decide.

A fast matrix product gives every document a score whose error is bounded (theory.md, Eqs. 28–31). Documents whose exact
score is certainly above, below or at a threshold are counted at once. The few documents for which that is open, the
*near* ones, are returned, to be scored by the definition.

The loops are compiled (`src/kernels`); without a compiler NumPy does the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tiewise.caching import cached_property
from tiewise.data.columns import Floats
from tiewise.data.native import native
from tiewise.scoring.definition import thread_count
from tiewise.scoring.spans import Indices

Mask: TypeAlias = NDArray[np.bool_]

#: How many scores are compared with one value in the time of one step of other work.
SCORES_PER_STEP = 16


class Thresholds(NamedTuple):
    """Exact scores at which to count, ascending in each row; unused columns are infinite."""

    bounds: Floats  # (4, n_rows, width): see Rounding.interval
    sizes: Indices  # (n_rows,): how many columns are used


class Decided(NamedTuple):
    """What approximate scores decide. A skipped row has no counts: too many of its documents are near."""

    above: Indices  # (n_rows, width): documents that are certainly above each threshold
    equal: Indices  # (n_rows, width): documents that are certainly at it
    lowest: Floats  # (n_rows,): an upper bound of the lowest exact score
    skipped: Mask  # (n_rows,)
    near: tuple[Indices, Indices, Indices]  # rows, columns and documents for which it is open


@dataclass(frozen=True)
class ApproximateScores:
    """A block of approximate scores, (rows, documents).

    A score is values·scale + offset. Its error is at most row_error[0]·doc_error[0] + row_error[1], plus doc_error[1]
    if there is one.
    """

    values: NDArray[Any]  # (n_rows, n_docs), float32 or float64
    row_error: Floats  # (2, n_rows)
    doc_error: Floats  # (1 or 2, n_docs)
    scale: NDArray[Any] | None = None  # (n_docs,), of the type of the values
    offset: NDArray[Any] | None = None

    @cached_property
    def matrix(self) -> NDArray[Any]:
        """The approximate scores as one matrix."""
        return self._take(slice(None))

    def _take(self, rows: slice | int) -> NDArray[Any]:
        values = self.values[rows] if self.scale is None else self.values[rows] * self.scale
        return values if self.offset is None else values + self.offset

    def error(self, row: Indices, doc: Indices) -> Floats:
        """A bound on the error of the scores of some pairs; infinite where there is none."""
        error = self.row_error[0, row] * self.doc_error[0, doc] + self.row_error[1, row]
        if len(self.doc_error) > 1:
            error = error + self.doc_error[1, doc]
        return np.where(np.isnan(error), np.inf, error)

    def max_error(self) -> Floats:
        """(n_rows,): a bound on the error of all scores of a row."""
        doc_error = self.doc_error
        error = self.row_error[0] * doc_error[0].max(initial=0.0) + self.row_error[1] + doc_error[1:].max(initial=0.0)
        return np.where(np.isnan(error), np.inf, error)

    def kth_lower_bound(self, k: int) -> Floats | None:
        """(n_rows,): at least k of the first documents score this much; None if there are fewer than 2k documents."""
        if self.values.shape[1] < 2 * k:
            return None
        n = max(4 * k, 4096)
        scale, offset = (None if part is None else part[:n] for part in (self.scale, self.offset))
        first = ApproximateScores(self.values[:, :n], self.row_error, self.doc_error[:, :n], scale, offset)
        values = np.where(np.isfinite(first.matrix), first.matrix, -np.inf)
        kth = values.shape[1] - k
        return np.partition(values, kth, axis=1)[:, kth].astype(np.float64) - first.max_error()

    def intervals(self, row: int) -> tuple[Floats, Floats]:
        """The lowest and the highest value that the exact score of each document of a row can have."""
        scores = self._take(row).astype(np.float64)
        error = self.error(np.array(row), np.arange(len(scores)))
        unknown = ~np.isfinite(scores)
        return np.where(unknown, -np.inf, scores - error), np.where(unknown, np.inf, scores + error)

    def count(self, thresholds: Thresholds, max_near: int) -> Decided:
        """Compare all documents with all thresholds; a row with more than `max_near` near documents is skipped."""
        rows, width = thresholds.bounds.shape[1:]
        above, equal = np.zeros((rows, width), np.int64), np.zeros((rows, width), np.int64)
        lowest, skipped, kernels = np.full(rows, np.inf), np.zeros(rows, bool), native("kernels")
        if kernels is not None:
            threads = thread_count(self.values.size * min(width + 1, 16))
            near = kernels.count(*self._kernel_args, *thresholds, above, equal, lowest, max_near, skipped, threads)
            return Decided(above, equal, lowest, skipped, near)
        parts: list[tuple[Indices, ...]] = []
        for row in range(rows):
            low, high = self.intervals(row)
            lowest[row] = high.min(initial=np.inf)
            row_parts: list[tuple[Indices, ...]] = []
            for column in range(int(thresholds.sizes[row])):
                low_out, low_in, high_in, high_out = thresholds.bounds[:, row, column]
                is_above, is_equal = low > high_out, (low >= low_in) & (high <= high_in)
                above[row, column], equal[row, column] = np.count_nonzero(is_above), np.count_nonzero(is_equal)
                docs = np.flatnonzero(~(high < low_out) & ~is_above & ~is_equal)
                row_parts.append((np.full(len(docs), row), np.full(len(docs), column), docs))
            if sum(len(docs) for _, _, docs in row_parts) > max_near:
                above[row], equal[row], skipped[row] = 0, 0, True
            else:
                parts += row_parts
        return Decided(above, equal, lowest, skipped, _concatenate_columns(parts))

    def select(
        self, limit: Floats, max_selected: int, *, below: bool = False
    ) -> tuple[Mask, tuple[Indices, Indices, Floats]]:
        """Documents whose exact score may be at least the limit of their row, or with `below` at most.

        Which rows are skipped, because they have more than `max_selected` such documents; and the rows, documents and
        approximate scores of the others. NaN is not a limit.
        """
        limit = np.where(np.isnan(limit), np.inf if below else -np.inf, limit)
        skipped = np.zeros(len(limit), bool)
        kernels = native("kernels")
        if kernels is not None:
            threads = thread_count(self.values.size // SCORES_PER_STEP)
            return skipped, kernels.select(*self._kernel_args, limit, below, max_selected, skipped, threads)
        parts: list[tuple[Any, ...]] = []
        for row in range(len(limit)):
            low, high = self.intervals(row)
            docs = np.flatnonzero(low <= limit[row] if below else high >= limit[row])
            skipped[row] = len(docs) > max_selected
            if not skipped[row]:
                parts.append((np.full(len(docs), row), docs, self._take(row)[docs].astype(np.float64)))
        return skipped, _concatenate_columns(parts)

    @property
    def _kernel_args(self) -> tuple[Any, ...]:
        return self.values, self.scale, self.offset, self.row_error, self.doc_error


def _concatenate_columns(parts: list[tuple[Any, ...]]) -> tuple[Any, Any, Any]:
    """The three columns of all parts."""
    first, second, third = zip(*[(np.zeros(0, np.int64),) * 3, *parts], strict=True)
    return np.concatenate(first), np.concatenate(second), np.concatenate(third)
