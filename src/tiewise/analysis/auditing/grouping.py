"""The tie groups of all rows of a run: how many, how large, where in their lists, and what may have made them.

Unlike `tiewise.ties`, which counts what judged documents need, this looks at every row; one sort of each list is enough
for all of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from tiewise.analysis.auditing.grids import Grid, glance
from tiewise.data.columns import Codes, Floats, project, sorted_lists
from tiewise.data.runs import Run

__all__ = ["Bin", "Example", "Grouping", "Pile"]

LOOKED_AT = 200  # so many lists at the most are looked at one by one
SAMPLED = 300_000  # about so many groups at the most are looked at for their spacing
MOST = 5  # so many examples of the largest groups, and of the documents in each
NEARLY = 0.9  # a list is nearly constant if one score has such a share of its documents
SHORTEST = 10  # shorter lists are not called nearly constant, and fewer lists say nothing of zeros
NEAR_ONE = 2.0**-20  # float32 tells only 16 numbers apart in the last part of this size below 1
APPROACH = 1e-3  # scores that near their limit without reaching it show that a function levels off there
BESIDE = 0.05  # of scores printed with few digits, such a part of those at the limit must stand one step before it


class Bin(NamedTuple):
    """The tie groups whose size lies from `low` to `high`; untied documents are groups of one."""

    low: int
    high: int
    groups: int
    rows: int


class Example(NamedTuple):
    """A tie group, with some of its documents."""

    query: str
    score: float
    rank: int  #: that of its first document
    size: int
    docs: tuple[str, ...]


class Pile(NamedTuple):
    """Scores heaped up at a limit of the score function."""

    at: float  #: 1 or 0
    rows: int
    tied_rows: int
    levels_off: bool  #: whether other scores come close to the limit, as those of a sigmoid or a softmax do
    printed: bool = False  #: whether scores were printed so that they end in 1 or 0 before float32 would


@dataclass(frozen=True, eq=False)
class Grouping:
    """Every tie group of a run, in the order of its lists and from the best down; untied rows are groups of one."""

    run: Run
    values: Floats  # (n_rows,): each list in descending order
    query: Codes  # (n_groups,): the list's position in the run
    start: Codes  # (n_groups,): documents of the list that score higher
    size: Codes  # (n_groups,)
    score: Floats  # (n_groups,)

    @classmethod
    def of(cls, run: Run) -> Grouping:
        """The tie groups of a run."""
        values = run.value if run.descending else sorted_lists(run.value, run.offsets)
        heads = _heads(values, run.offsets)
        query = np.searchsorted(run.offsets, heads, side="right") - 1
        size = np.diff(np.append(heads, len(values)))
        return cls(run, values, query, heads - run.offsets[query], size, values[heads])

    @cached_property
    def lengths(self) -> Codes:
        """The length of each list that has any document, (n_lists,)."""
        lengths: Codes = np.diff(self.run.offsets)
        return lengths[lengths > 0]

    @property
    def lists(self) -> int:
        """How many lists hold any document."""
        return len(self.lengths)

    # -- how many and how large ---------------------------------------------------------------------------------

    @cached_property
    def tied_rows(self) -> int:
        """How many rows share their score with another of their list."""
        return int(self.size[self.size > 1].sum())

    @property
    def largest(self) -> int:
        """The size of the largest group."""
        return int(self.size.max(initial=0))

    @property
    def tied_pairs(self) -> int:
        """How many pairs of documents are tied."""
        return int((self.size * (self.size - 1) // 2).sum())

    def histogram(self) -> tuple[Bin, ...]:
        """The groups by size: 1, 2, 3 to 4, 5 to 8 and so on."""
        place = np.ceil(np.log2(self.size)).astype(np.int64)
        groups, rows = np.bincount(place), np.bincount(place, weights=self.size).astype(np.int64)
        return tuple(
            Bin(2 ** (b - 1) + 1 if b else 1, 2**b, count, in_all)
            for b, (count, in_all) in enumerate(zip(groups.tolist(), rows.tolist(), strict=True))
        )

    def examples(self) -> tuple[Example, ...]:
        """The largest groups of tied documents, each with some of its documents."""
        return tuple(self._example(g) for g in np.argsort(-self.size, kind="stable")[:MOST] if self.size[g] > 1)

    def _example(self, g: int) -> Example:
        place, score = int(self.query[g]), float(self.score[g])
        low, high = self.run.offsets[place : place + 2]
        rows = low + np.flatnonzero(self.run.value[low:high] == score)
        docs = tuple(self.run.ids(rows[:MOST]))
        return Example(self.run.queries[place], score, int(self.start[g]) + 1, int(self.size[g]), docs)

    # -- where --------------------------------------------------------------------------------------------------

    def across(self, cutoff: int) -> int:
        """How many lists have a tie between this rank and the next."""
        return int(np.count_nonzero((self.start < cutoff) & (self.start + self.size > cutoff)))

    def longer_than(self, cutoff: int) -> int:
        """How many lists go on after a rank."""
        return int(np.count_nonzero(self.lengths > cutoff))

    @property
    def rankings(self) -> int:
        """How many lists hold two documents or more, so that there is something to rank."""
        return self.longer_than(1)

    @cached_property
    def constant(self) -> int:
        """How many lists, of two documents or more, give all documents one score."""
        return int(np.count_nonzero((self.size > 1) & (self.size == self._length_of_group)))

    @cached_property
    def nearly_constant(self) -> int:
        """How many other lists give most of their documents one score, unless it is a last 0: nothing matched these."""
        length = self._length_of_group
        most = (self.size >= NEARLY * length) & (self.size < length) & (length >= SHORTEST)
        most &= (self.score != 0) | (self.start + self.size < length)
        return int(np.count_nonzero(most))

    @cached_property
    def ending_tied(self) -> int:
        """How many lists end with tied documents, so that they may have been cut among more of them."""
        return int(np.count_nonzero((self.start + self.size == self._length_of_group) & (self.size > 1)))

    @cached_property
    def unmatched(self) -> bool:
        """Whether most ties are last scores of 0, as documents get that nothing matched.

        Scores that were rounded to 0 have neighbours that were rounded to the next number, and are tied as well.
        """
        last = (self.score == 0) & (self.start + self.size == self._length_of_group) & (self.start > 0)
        pairs = int((self.size * (self.size - 1) // 2)[last].sum())
        before = self.size[np.flatnonzero(last) - 1]
        tied_too = int(np.count_nonzero(before > 1))
        return 2 * pairs >= self.tied_pairs and len(before) >= SHORTEST and 4 * tied_too < len(before)

    @property
    def _length_of_group(self) -> Codes:
        return np.diff(self.run.offsets)[self.query]

    # -- why ----------------------------------------------------------------------------------------------------

    def float32_ties(self) -> int:
        """How many more rows are tied for a reader that keeps scores as float32."""
        read = project(self.values, "float32")
        size = np.diff(np.append(_heads(read, self.run.offsets), len(read)))
        return int(size[size > 1].sum()) - self.tied_rows

    def rounded_share(self, grid: Grid, without: Sequence[float] = ()) -> float | None:
        """The share of tied pairs that rounding to a grid explains; None if nothing is tied.

        Where rounding alone makes ties, scores fall into one cell as often as into neighbouring ones: half as many
        pairs share a cell as lie one step apart. Documents that have a score in common for another reason are tied
        without such neighbours. Scores at a limit, which has one neighbour and much beyond it, can be left out.
        """
        kept = ~np.isin(np.abs(self.score), without)
        tied = int((self.size * (self.size - 1) // 2)[kept].sum())
        if not tied:
            return None
        upper, lower = self.score[:-1], self.score[1:]
        with np.errstate(invalid="ignore", over="ignore"):
            steps = (upper - lower) / grid.step(np.where(np.abs(upper) < np.abs(lower), upper, lower))
        beside = (self.query[1:] == self.query[:-1]) & (np.abs(steps - 1) < 0.01) & kept[1:] & kept[:-1]
        return min(1.0, float((self.size[:-1] * self.size[1:])[beside].sum()) / 2 / tied)

    def tied_lists(self) -> list[Floats]:
        """The scores of lists with ties: of all of them, or some evenly from all."""
        tied = np.unique(self.query[self.size > 1])
        some = tied[:: len(tied) // LOOKED_AT + 1]
        bounds = zip(self.run.offsets[some], self.run.offsets[some + 1], strict=True)
        return [self.values[low:high] for low, high in bounds]

    def distinct(self) -> Floats:
        """The distinct finite scores of the run in ascending order: all of them, or some evenly from all."""
        return glance(np.unique(self.score[np.isfinite(self.score)]))

    def sample(self) -> tuple[Codes, Floats, Codes]:
        """Groups with a finite score, of all lists or of some evenly from all: their list, score and size."""
        mine = np.isfinite(self.score) & (self.query % (len(self.score) // SAMPLED + 1) == 0)
        return self.query[mine], self.score[mine], self.size[mine]

    def piles(self, printing: Grid | None = None) -> tuple[Pile, ...]:
        """Scores at 1 and 0, or so near to 1 that float32 hardly tells them apart, where all lie between −1 and 1.

        With few digits, it is the printing that does not tell them apart.
        """
        if not len(self.score) or self.score.max() > 1 or self.score.min() < -1:
            return ()
        from_one, from_zero = 1 - np.abs(self.score), np.abs(self.score)
        step = 0.0 if printing is None else float(printing.step(np.array([0.99]))[0])
        found = (self._pile(1.0, from_one, step, NEAR_ONE, APPROACH), self._pile(0.0, from_zero, step, 0.0, NEAR_ONE))
        return tuple(pile for pile in found if pile.tied_rows)

    def _pile(self, at: float, distance: Floats, step: float, within: float, approach: float) -> Pile:
        printed = step > NEAR_ONE
        mine = distance < step / 2 if printed else (distance < within) | (distance == 0)
        rows, tied = int(self.size[mine].sum()), int(self.size[mine & (self.size > 1)].sum())
        near = ~mine & (distance < (1.5 * step if printed else approach))
        needed = BESIDE * rows if printed else 1
        return Pile(at, rows, tied, int(self.size[near].sum()) >= needed, printed)

    @cached_property
    def ranks(self) -> bool:
        """Whether the scores are ranks: whole numbers one apart, in all lists."""
        steps = -np.diff(self.values)[np.diff(np.repeat(np.arange(self.lists), self.lengths)) == 0]
        return len(steps) > 0 and bool((steps == 1).all())

    def identical(self, kinds: Any) -> int:
        """How many tied rows are tied only with documents of their own kind; `kinds` gives the kind of a document."""
        group = np.repeat(np.arange(len(self.size)), self.size)
        order = np.lexsort((-self.run.value, np.repeat(np.arange(len(self.run.queries)), np.diff(self.run.offsets))))
        tied = np.flatnonzero(self.size[group] > 1)
        kind = kinds(self.run.ids(order[tied]))
        heads = np.flatnonzero(np.diff(group[tied], prepend=-1))
        alike = np.minimum.reduceat(kind, heads) == np.maximum.reduceat(kind, heads) if len(heads) else np.zeros(0)
        return int(self.size[group[tied[heads]]][alike.astype(bool)].sum())


def _heads(values: Floats, offsets: Codes) -> Codes:
    """The rows with which a tie group begins, in sorted lists."""
    new = np.ones(len(values), dtype=bool)
    new[1:] = values[1:] != values[:-1]
    new[offsets[:-1][np.diff(offsets) > 0]] = True
    return np.flatnonzero(new)
