"""`PairGroups`: all that a measure of two rankings needs to know of them, for many pairs of rankings at once.

What `TieGroups` are for a run against judgments, these are for a ranking against a ranking. For a document that both
rankings of a pair hold, all that matters is how many documents stand above its tie group in each of them (`start`), and
how many the group has (`size`). Bounds also look at the documents that one ranking has alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tiewise.caching import cached_property
from tiewise.data.columns import Codes, Floats, encode, heads, positions, ranges, split_segments
from tiewise.data.runs import Run
from tiewise.ties.orders import group_rows

BLOCK = 1 << 17  # rows of both rankings that `PairGroups.blocks` pairs at a time


def inclusion(start: Codes, size: Codes, depth: Codes | int) -> Floats:
    """The probability of documents of these tie groups to be among the first `depth` of their list."""
    return np.clip((depth - start) / size, 0.0, 1.0)


@dataclass(frozen=True, eq=False)
class RankedLists:
    """Ranked lists with ties, of documents that are known by codes. Rows are sorted by list, then by document."""

    offsets: Codes  # (n_lists + 1,): rows offsets[i] to offsets[i + 1] belong to list i
    doc: Codes  # (n_rows,)
    start: Codes  # (n_rows,): documents of the list above the tie group of the row
    size: Codes  # (n_rows,): documents in that tie group

    @staticmethod
    def of_runs(runs: Sequence[Run], queries: Sequence[str]) -> list[RankedLists]:
        """The lists of each run for some queries; empty where a run lacks the query. Codes are the same in all runs."""
        codes, names = encode([doc for run in runs for doc in run.docs], "document")
        places = {query: place for place, query in enumerate(queries)}
        found, used = [], 0
        for run in runs:
            code = codes[used : (used := used + len(run.docs))]
            rows, start, size = group_rows(run)
            query = positions(places, run.queries)[run.query[rows]]
            key = query * len(names) + code[run.doc[rows]]
            order = np.argsort(key)
            order = order[np.searchsorted(key[order], 0) :]  # other queries come first
            offsets = np.searchsorted(query[order], np.arange(len(queries) + 1))
            found.append(RankedLists(offsets, code[run.doc[rows[order]]], start[order], size[order]))
        return found

    @staticmethod
    def concatenate(parts: Sequence[RankedLists]) -> RankedLists:
        """The lists of all parts, one after another."""
        lengths = np.concatenate([part.length for part in parts])
        columns = (np.concatenate([getattr(part, name) for part in parts]) for name in ("doc", "start", "size"))
        return RankedLists(np.append(0, np.cumsum(lengths)), *columns)

    @property
    def length(self) -> Codes:
        """The number of documents in each list, (n_lists,)."""
        return np.diff(self.offsets)

    @cached_property
    def list(self) -> Codes:
        """The list of each row, (n_rows,)."""
        return np.repeat(np.arange(len(self.offsets) - 1), self.length)

    def take(self, lists: Codes) -> RankedLists:
        """Some of the lists, perhaps several times."""
        length = self.length[lists]
        rows = ranges(self.offsets[lists], length)
        return RankedLists(np.append(0, np.cumsum(length)), self.doc[rows], self.start[rows], self.size[rows])

    def keep(self, kept: NDArray[np.bool_]) -> RankedLists:
        """The rows in a mask, which holds whole tie groups from the top of each list."""
        offsets = np.append(0, np.cumsum(kept))[self.offsets]
        return RankedLists(offsets, self.doc[kept], self.start[kept], self.size[kept])

    def head(self, depth: int | None) -> RankedLists:
        """The first `depth` documents of each list; a tie group that the depth splits is kept whole."""
        return self if depth is None else self.keep(self.start < depth)

    def append(self, lists: Codes, doc: Codes) -> RankedLists:
        """The lists followed by more documents, those of each list as one last tie group."""
        size = np.bincount(lists, minlength=len(self.length))
        columns = (self.list, lists), (self.doc, doc), (self.start, self.length[lists]), (self.size, size[lists])
        row_list, docs, start, sizes = map(np.concatenate, columns)
        order = np.lexsort((docs, row_list))
        offsets = self.offsets + np.append(0, np.cumsum(size))
        return RankedLists(offsets, docs[order], start[order], sizes[order])


class UnmatchedGroups(NamedTuple):
    """The tie groups of one ranking that hold documents which the other lacks: by pair, best first."""

    pair: Codes
    start: Codes
    size: Codes
    unmatched: Codes  # documents that the other ranking lacks
    before: Codes  # the same in the groups above


@dataclass(frozen=True, eq=False)
class PairGroups:
    """Pairs of rankings x and y: for each common document its pair, and the start and size of both its tie groups.

    Arrays with two rows are of x and of y. Those over the common documents are sorted by pair.

    >>> x, y = (RankedLists(np.array([0, 3]), np.array(doc), np.array(start), np.array(size))
    ...         for doc, start, size in (([0, 1, 2], [0, 1, 1], [1, 2, 2]), ([1, 2, 5], [2, 0, 1], [1, 1, 1])))
    >>> pairs = PairGroups.of(x, y)
    >>> pairs.start.tolist(), pairs.size.tolist(), pairs.n_common
    ([[1, 1], [2, 0]], [[2, 2], [1, 1]], array([2]))
    """

    lists: tuple[RankedLists, RankedLists]  # x and y: list i of x is compared with list i of y
    rows: tuple[Codes, Codes]  # (n_common,) each: the rows of the common documents in both
    pair: Codes  # (n_common,): ascending
    start: Codes  # (2, n_common): documents of the list above the tie group of the document
    size: Codes  # (2, n_common): documents in that tie group

    @staticmethod
    def of(x: RankedLists, y: RankedLists) -> PairGroups:
        """Each list of x with the same list of y."""
        n_docs = 1 + max(int(lists.doc.max(initial=0)) for lists in (x, y))
        key_x, key_y = (lists.list * n_docs + lists.doc for lists in (x, y))
        at = np.searchsorted(key_y, key_x)  # both ascend, which makes this fast
        found = np.flatnonzero(np.append(key_y, -1)[at] == key_x)
        rows = found, at[found]
        start, size = (
            np.array([getattr(lists, name)[own] for lists, own in zip((x, y), rows, strict=True)])
            for name in ("start", "size")
        )
        return PairGroups((x, y), rows, x.list[found], start, size)

    @staticmethod
    def blocks(x: RankedLists, y: RankedLists, a: Codes | None = None, b: Codes | None = None) -> Iterator[PairGroups]:
        """List a[i] of x with list b[i] of y (by default i with i), some pairs at a time: memory is for a block."""
        a, b = (np.arange(len(x.length)) if lists is None else lists for lists in (a, b))
        rows = np.append(0, np.cumsum(x.length[a] + y.length[b]))
        for some in split_segments(rows, BLOCK):
            yield PairGroups.of(x.take(a[some]), y.take(b[some]))

    def __len__(self) -> int:
        return len(self.lists[0].offsets) - 1

    @cached_property
    def length(self) -> Codes:
        """The lengths of both rankings, (2, n_pairs)."""
        return np.array([lists.length for lists in self.lists])

    @cached_property
    def n_common(self) -> Codes:
        """The number of common documents of each pair, (n_pairs,)."""
        return np.bincount(self.pair, minlength=len(self))

    @cached_property
    def n_union(self) -> Codes:
        """The number of documents in either ranking, (n_pairs,)."""
        union: Codes = self.length.sum(axis=0) - self.n_common
        return union

    @cached_property
    def tied(self) -> bool:
        """Whether any documents of a ranking are tied."""
        return any(bool((lists.size > 1).any()) for lists in self.lists)

    def sum(self, values: NDArray[np.generic]) -> Floats:
        """The sum of the values of the common documents of each pair, (n_pairs,)."""
        total, (some, first) = np.zeros(len(self)), self._segments
        total[some] = np.add.reduceat(values, first, dtype=np.float64)
        return total

    @cached_property
    def _segments(self) -> tuple[Codes, Codes]:
        """The pairs with common documents, and the first such document of each."""
        some = np.flatnonzero(self.n_common)
        return some, (np.cumsum(self.n_common) - self.n_common)[some]

    def inclusion(self, side: int, depth: Codes | int | None) -> Floats:
        """The probability of each common document to be among the first `depth` of x (0) or y (1); None: of all.

        The depth is one number, or one for each pair.
        """
        if depth is None:
            return np.ones(len(self.pair))
        limit = depth[self.pair] if isinstance(depth, np.ndarray) else depth
        return inclusion(self.start[side], self.size[side], limit)

    def overlap(self, x_depth: Codes | int | None, y_depth: Codes | int | None) -> Floats:
        """How many documents the first of x and the first of y have in common, expected over the tie orders."""
        return self.sum(self.inclusion(0, x_depth) * self.inclusion(1, y_depth))

    @cached_property
    def extreme_ranks(self) -> tuple[Codes, Codes] | tuple[()]:
        """The ranks of the common documents in x and y, (2, n_common), in the worst and in the best order; () untied.

        Documents stand by pair and tie group. Best: tied documents follow the tie groups of the other ranking,
        unmatched ones come last, and those that are tied in both rankings have one order in both. Worst: the reverse of
        all three. A sum of F(rank in x, rank in y), with an F that falls with both ranks and is supermodular, is
        largest in the best order and smallest in the worst.
        """
        if not self.tied:
            return ()
        width, n = int(self.length.max(initial=0)) + 1, len(self.pair)
        by_cell = np.argsort((self.pair * width + self.start[0]) * width + self.start[1])
        start, size, position = self.start[:, by_cell], self.size[:, by_cell], np.arange(n)
        group_x, group_y = self.pair * width + start
        by_y = np.argsort(group_y * n + position)
        earlier = np.empty((2, n), dtype=np.int64)  # common documents of the group that come first in the best order
        earlier[0], earlier[1, by_y] = position - heads(group_x), position - heads(group_y[by_y])
        best = start + 1 + earlier
        cell = heads(group_x * width + start[1])
        earlier[0] += 2 * (cell - position) + np.bincount(cell, minlength=n)[cell] - 1  # in x, a cell is reversed
        return start + size - earlier, best

    def unmatched(self, side: int) -> UnmatchedGroups:
        """The tie groups of x (0) or y (1) with documents that the other ranking lacks."""
        lists = self.lists[side]
        alone = np.delete(np.arange(len(lists.doc)), self.rows[side])
        first_rank = lists.offsets[lists.list[alone]] + lists.start[alone]  # of the group, among those of all lists
        _, member, count = np.unique(first_rank, return_index=True, return_counts=True)
        pair, start, size = (column[alone[member]] for column in (lists.list, lists.start, lists.size))
        before = np.cumsum(count) - count
        return UnmatchedGroups(pair, start, size, count, before - before[heads(pair)])

    def union(self) -> PairGroups:
        """The same pairs, each ranking followed by the documents that only the other has, as one last tie group."""
        completed = []
        for lists, other, rows in zip(self.lists, self.lists[::-1], self.rows[::-1], strict=True):
            alone = np.delete(np.arange(len(other.doc)), rows)
            completed.append(lists.append(other.list[alone], other.doc[alone]))
        return PairGroups.of(*completed)
