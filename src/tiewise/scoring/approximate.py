"""Approximate scores of queries and documents with a bound on their error, and what they decide.

A fast matrix product gives every document a score whose error is bounded (theory.md, Eqs. 28–31). A document whose
exact score certainly lies above, below or at a threshold is counted at once; only the few documents for which that is
open, the *near* ones, are returned to be scored by the definition.

The loops are compiled (`src/kernels`); without a compiler NumPy does the same. NumPy uses one error bound for a whole
row where the kernels use one for each document, so it may return more near documents, never other results.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tiewise.columns import Codes, Floats
from tiewise.native import native
from tiewise.scoring.threads import threads_for

__all__ = ["Approximation", "Selected", "Thresholds"]


class Thresholds(NamedTuple):
    """Exact scores to count at, for each row in ascending order; unused columns are infinite."""

    bounds: Floats  # (4, n_rows, width): see Rounding.interval
    sizes: Codes  # (n_rows,): how many columns are used


class Selected(NamedTuple):
    """Documents that were selected: their row, their place in the block, and their approximate score."""

    row: Codes
    doc: Codes
    value: Floats


@dataclass(frozen=True)
class Approximation:
    """A block of approximate scores, (rows, documents).

    A score is values·scale + offset; its error is at most row[0]·doc[0] + doc[1] + row[1].
    """

    values: NDArray[Any]  # (n_rows, n_docs), float32 or float64
    row: Floats  # (2, n_rows)
    doc: Floats  # (2, n_docs)
    scale: NDArray[Any] | None = None  # (n_docs,), of the type of the values
    offset: NDArray[Any] | None = None
    _matrix: list[NDArray[Any]] = field(default_factory=list, repr=False)

    @property
    def matrix(self) -> NDArray[Any]:
        """The approximate scores as one matrix."""
        if not self._matrix:
            values = self.values
            values = values if self.scale is None else values * self.scale
            self._matrix.append(values if self.offset is None else values + self.offset)
        return self._matrix[0]

    def error(self, row: Codes, doc: Codes) -> Floats:
        """A bound on the error of the scores of some pairs."""
        return self.row[0, row] * self.doc[0, doc] + self.doc[1, doc] + self.row[1, row]

    @property
    def largest_error(self) -> Floats:
        """(n_rows,): a bound on the error of all scores of a row."""
        if not self.doc.shape[1]:
            return self.row[1]
        return self.row[0] * self.doc[0].max() + self.doc[1].max() + self.row[1]

    def take(self, rows: Codes) -> Approximation:
        """Some of the rows."""
        return Approximation(
            self.values[rows], np.ascontiguousarray(self.row[:, rows]), self.doc, self.scale, self.offset
        )

    def count(self, thresholds: Thresholds) -> tuple[Codes, Codes, tuple[Codes, Codes, Codes]]:
        """Documents that surely score above each threshold, that surely equal it, and the near ones.

        The first two have the shape (rows, width). Near documents come as the rows, columns and documents of what is
        open: whether that document scores above, at or below that threshold.
        """
        shape = thresholds.bounds.shape[1:]
        above, equal = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        kernels = native("kernels")
        if kernels is not None:
            steps = self.values.size * min(shape[1] + 1, 16)
            near = kernels.count(*self._parts, *thresholds, above, equal, threads_for(steps))
            return above, equal, near
        rows, columns, docs = [], [], []
        matrix, error = self.matrix, self.largest_error
        for row in range(shape[0]):
            mine, off = matrix[row].astype(np.float64, copy=False), error[row]
            odd = ~np.isfinite(mine)
            for column in range(int(thresholds.sizes[row])):
                low_out, low_in, high_in, high_out = thresholds.bounds[:, row, column]
                surely = (mine > high_out + off) & ~odd
                same = (mine >= low_in + off) & (mine <= high_in - off)
                above[row, column], equal[row, column] = np.count_nonzero(surely), np.count_nonzero(same)
                found = np.flatnonzero((mine >= low_out - off) & ~surely & ~same | odd)
                docs.append(found)
                rows.append(np.full(len(found), row))
                columns.append(np.full(len(found), column))
        return above, equal, (_joined(rows), _joined(columns), _joined(docs))

    def select(self, limit: Floats, *, below: bool = False) -> Selected:
        """Documents whose exact score may be at least the limit of their row, or with `below` at most."""
        kernels = native("kernels")
        if kernels is not None:
            return Selected(*kernels.select(*self._parts, limit, below, threads_for(self.values.size)))
        matrix, error = self.matrix, self.largest_error[:, None]
        inside = matrix - error <= limit[:, None] if below else matrix + error >= limit[:, None]
        flat = np.flatnonzero(inside | ~np.isfinite(matrix))
        row = flat // max(matrix.shape[1], 1)
        doc = flat - row * matrix.shape[1]
        return Selected(row, doc, matrix[row, doc].astype(np.float64))

    def lowest(self) -> Floats:
        """(n_rows,): what the lowest exact score of a row does not exceed."""
        out = np.full(self.values.shape[0], np.inf)
        kernels = native("kernels")
        if kernels is not None:
            kernels.lowest(*self._parts, out, threads_for(self.values.size))
            return out
        matrix = self.matrix.astype(np.float64)
        return np.where(np.isfinite(matrix), matrix, np.inf).min(1, initial=np.inf) + self.largest_error

    @property
    def _parts(self) -> tuple[Any, ...]:
        return self.values, self.scale, self.offset, self.row, self.doc


def _joined(parts: list[Codes]) -> Codes:
    return np.concatenate([*parts, np.zeros(0, np.int64)])
