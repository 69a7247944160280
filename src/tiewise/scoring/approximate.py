"""Approximate scores of queries and documents with a bound on their error, and what they decide.

A fast matrix product gives every document a score whose error is bounded (theory.md, Eqs. 28–31). A document whose
exact score certainly lies above, below or at a threshold is counted at once; only the few documents for which that is
open, the *near* ones, are returned to be scored by the definition.

The loops are compiled (`src/kernels`); without a compiler NumPy does the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tiewise.data.columns import Codes, Floats
from tiewise.data.native import native
from tiewise.scoring.threads import threads_for

__all__ = ["Approximation", "Counted", "Selected", "Thresholds"]


#: So many scores are compared with one value in the time of one step of other work.
SCANNED = 16


class Thresholds(NamedTuple):
    """Exact scores to count at, for each row in ascending order; unused columns are infinite."""

    bounds: Floats  # (4, n_rows, width): see Rounding.interval
    sizes: Codes  # (n_rows,): how many columns are used


class Counted(NamedTuple):
    """What the approximate scores of a block decide.

    Near documents come as the rows, columns and documents of what is open: whether that document scores above, at or
    below that threshold.
    """

    above: Codes  # (n_rows, width): documents that surely score above a threshold
    equal: Codes  # (n_rows, width): documents that surely have its score
    many: NDArray[np.bool_]  # (n_rows,): rows that were given up, as too much of them is near; they have no counts
    row: Codes  # (n_near,)
    column: Codes
    doc: Codes


class Selected(NamedTuple):
    """Documents that were selected: their row, their place in the block, and their approximate score."""

    many: NDArray[np.bool_]  # (n_rows,): rows that were given up
    row: Codes
    doc: Codes
    value: Floats


@dataclass(frozen=True)
class Approximation:
    """A block of approximate scores, (rows, documents).

    A score is values·scale + offset; its error is at most row[0]·doc[0] + row[1], plus doc[1] if there is one.
    """

    values: NDArray[Any]  # (n_rows, n_docs), float32 or float64
    row: Floats  # (2, n_rows)
    doc: Floats  # (1 or 2, n_docs)
    scale: NDArray[Any] | None = None  # (n_docs,), of the type of the values
    offset: NDArray[Any] | None = None

    @cached_property
    def matrix(self) -> NDArray[Any]:
        """The approximate scores as one matrix."""
        values = self.values if self.scale is None else self.values * self.scale
        return values if self.offset is None else values + self.offset

    def error(self, row: Codes, doc: Codes) -> Floats:
        """A bound on the error of the scores of some pairs; infinite where there is none."""
        found = self.row[0, row] * self.doc[0, doc] + self.row[1, row]
        if len(self.doc) > 1:
            found = found + self.doc[1, doc]
        return np.where(np.isnan(found), np.inf, found)

    def most_error(self) -> Floats:
        """(n_rows,): a bound on the error of all scores of a row."""
        most = self.row[0] * self.doc[0].max(initial=0.0) + self.row[1] + self.doc[1:].max(initial=0.0)
        return np.where(np.isnan(most), np.inf, most)

    def take(self, rows: Codes) -> Approximation:
        """Some of the rows."""
        row = np.ascontiguousarray(self.row[:, rows])
        return Approximation(self.values[rows], row, self.doc, self.scale, self.offset)

    def first(self, docs: int) -> Approximation:
        """The first few documents."""
        scale, offset = (None if part is None else part[:docs] for part in (self.scale, self.offset))
        return Approximation(self.values[:, :docs], self.row, np.ascontiguousarray(self.doc[:, :docs]), scale, offset)

    def intervals(self, row: int) -> tuple[Floats, Floats]:
        """The lowest and the highest value that the exact score of each document of a row can have."""
        mine = self.matrix[row].astype(np.float64)
        error = self.error(np.array(row), np.arange(len(mine)))
        unknown = ~np.isfinite(mine)
        return np.where(unknown, -np.inf, mine - error), np.where(unknown, np.inf, mine + error)

    def count(self, thresholds: Thresholds, most: int) -> Counted:
        """Documents above each threshold and at it; rows with more than `most` near documents are given up."""
        shape = thresholds.bounds.shape[1:]
        above, equal, many = np.zeros(shape, np.int64), np.zeros(shape, np.int64), np.zeros(shape[0], bool)
        kernels = native("kernels")
        if kernels is not None:
            threads = threads_for(self.values.size * min(shape[1] + 1, 16))
            near = kernels.count(*self._parts, *thresholds, above, equal, most, many, threads)
            return Counted(above, equal, many, *near)
        found: list[tuple[Codes, Codes, Codes]] = []
        for row in range(shape[0]):
            low, high = self.intervals(row)
            near_here: list[tuple[Codes, Codes, Codes]] = []
            for column in range(int(thresholds.sizes[row])):
                low_out, low_in, high_in, high_out = thresholds.bounds[:, row, column]
                surely, same = low > high_out, (low >= low_in) & (high <= high_in)
                above[row, column], equal[row, column] = np.count_nonzero(surely), np.count_nonzero(same)
                docs = np.flatnonzero(~(high < low_out) & ~surely & ~same)
                near_here.append((np.full(len(docs), row), np.full(len(docs), column), docs))
            if sum(len(docs) for _, _, docs in near_here) > most:
                above[row], equal[row], many[row] = 0, 0, True
            else:
                found += near_here
        return Counted(above, equal, many, *_joined(found, 3))

    def select(self, limit: Floats, most: int, *, below: bool = False) -> Selected:
        """Documents whose exact score may be at least the limit of their row, or with `below` at most.

        A limit that is not a number is none. Of rows with more than `most` such documents there are none.
        """
        limit = np.where(np.isnan(limit), np.inf if below else -np.inf, limit)
        many = np.zeros(len(limit), bool)
        kernels = native("kernels")
        if kernels is not None:
            found = kernels.select(*self._parts, limit, below, most, many, threads_for(self.values.size // SCANNED))
            return Selected(many, *found)
        parts: list[tuple[Any, ...]] = []
        for row in range(len(limit)):
            low, high = self.intervals(row)
            docs = np.flatnonzero(low <= limit[row] if below else high >= limit[row])
            many[row] = len(docs) > most
            if not many[row]:
                parts.append((np.full(len(docs), row), docs, self.matrix[row, docs].astype(np.float64)))
        return Selected(many, *_joined(parts, 3))

    def lowest(self) -> Floats:
        """(n_rows,): what the lowest exact score of a row does not exceed."""
        out = np.full(self.values.shape[0], np.inf)
        kernels = native("kernels")
        if kernels is not None:
            kernels.lowest(*self._parts, out, threads_for(self.values.size // SCANNED))
            return out
        return np.array([self.intervals(row)[1].min(initial=np.inf) for row in range(len(out))])

    @property
    def _parts(self) -> tuple[Any, ...]:
        return self.values, self.scale, self.offset, self.row, self.doc


def _joined(parts: list[tuple[Any, ...]], columns: int) -> list[Any]:
    """Columns of parts, one after another."""
    empty = np.zeros(0, np.int64)
    return [np.concatenate([empty, *(part[column] for part in parts)]) for column in range(columns)]
