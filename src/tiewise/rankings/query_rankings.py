"""`QueryRankings`: the rankings of several runs for one query, prepared once for all pairs of runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from typing import TYPE_CHECKING

import numpy as np

from tiewise.caching import cached_property
from tiewise.data.columns import Codes, Floats
from tiewise.data.runs import Run
from tiewise.rankings.pairs import PairRow, RankingPair, split_groups
from tiewise.rankings.ranking import RankGroups, rank_rows
from tiewise.rankings.weights import Weights

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = ["QueryRankings"]

BLOCK = 1 << 15  # documents or depths, times pairs, at a time: what a processor's cache holds


class QueryRankings:
    """The rankings of all runs for one query, down to a depth: document codes from 0, and tie groups, best first."""

    def __init__(self, runs: Sequence[Run], query: str, depth: int | None = None, edge: str = "error"):
        self.codes: list[Codes] = []
        self.groups: list[RankGroups] = []
        self.n_split = 0  #: lists in which the depth ends inside a tie group
        self.cut_starts: list[int] = []  #: how many documents precede each last group that may have been cut
        code: dict[str, int] = {}
        for run in runs:
            place = run.query_index[query]
            rows, group = rank_rows(run, place)
            groups = RankGroups.from_group(group)
            if depth is not None:
                length = groups.head_length(depth, edge, f" of query '{query}'")
                self.n_split += length != min(depth, len(groups))
                rows, groups = rows[:length], RankGroups.from_group(group[:length])
            if len(groups) == len(group) and run.may_be_truncated[place]:
                self.cut_starts.append(int(groups.start[-1]))
            ids = run.ids(rows)
            code.update(zip([doc for doc in ids if doc not in code], count(len(code)), strict=False))
            self.codes.append(np.fromiter(map(code.__getitem__, ids), dtype=np.int64, count=len(ids)))
            self.groups.append(groups)
        self.n_docs = len(code)
        self.length: Codes = np.array([len(groups) for groups in self.groups])
        self._matrices: dict[tuple[Weights, float], csr_array] = {}

    def pair(self, i: int, j: int) -> RankingPair:
        """The rankings of two runs."""
        return RankingPair(self.groups[i], self.groups[j], self._position[j, self.codes[i]].astype(np.int64))

    def rows(self, i: int, others: range) -> Iterator[PairRow]:
        """The ranking of one run with those of some others, in blocks."""
        step = max(BLOCK // max(int(self.length.max(initial=0)), 1), 1)
        for first in range(others.start, others.stop, step):
            some = slice(first, min(first + step, others.stop))
            start, end = self._start_end[:, some].take(self.codes[i], axis=2)
            yield PairRow(self.groups[i], self.length[some], start, end, self._split[:, some])

    def sum_products(self, i: int, others: range, values: Floats, weights: Weights, power: float = 1.0) -> Floats:
        """Σ over the items of one run of value · mean weight^power in another run, for each of some others.

        The mean is over the ranks of the item's tie group. It is a sparse product.
        """
        of_docs = np.zeros(self.n_docs)
        of_docs[self.codes[i]] = values
        sums: Floats = (self._mean_weights(weights, power) @ of_docs)[others.start : others.stop]
        return sums

    def _mean_weights(self, weights: Weights, power: float) -> csr_array:
        """The mean of weight^power over the ranks of each document's tie group, (n_runs, n_docs)."""
        from scipy.sparse import csr_array

        if (weights, power) not in self._matrices:
            means = [weights.mean(groups.item_start, groups.item_size, power) for groups in self.groups]
            offsets = np.append(0, np.cumsum(self.length))
            shape = (len(self.groups), self.n_docs)
            matrix = csr_array((np.concatenate(means), np.concatenate(self.codes), offsets), shape=shape)
            self._matrices[weights, power] = matrix
        return self._matrices[weights, power]

    @cached_property
    def _position(self) -> Codes:
        """The position of each document in each ranking, −1 where it lacks it, (n_runs, n_docs)."""
        position = np.full((len(self.groups), self.n_docs), -1, dtype=np.int32)
        for run, docs in enumerate(self.codes):
            position[run, docs] = np.arange(len(docs))
        return position  # type: ignore[return-value]

    @cached_property
    def _start_end(self) -> Codes:
        """Where the tie group of each document begins and ends in each ranking, (2, n_runs, n_docs)."""
        start_end = np.zeros((2, len(self.groups), self.n_docs), dtype=np.int32)
        for run, (docs, groups) in enumerate(zip(self.codes, self.groups, strict=True)):
            start_end[:, run, docs] = groups.item_start, groups.item_start + groups.item_size
        return start_end  # type: ignore[return-value]

    @cached_property
    def _split(self) -> Codes:
        """The tie groups that the depths split, (2, n_runs, n_depths)."""
        depths = int(self.length.max(initial=0))
        return np.array([split_groups(groups, depths) for groups in self.groups]).transpose(1, 0, 2)
