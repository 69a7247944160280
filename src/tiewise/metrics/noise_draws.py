"""Random draws of noise: how far the mean of a measure over queries moves.

Each list is cut into clusters that the noise cannot reorder. In a draw, the documents of a cluster get noise and are
counted again: how many score above each judged document, and how many the same. So many draws are tie groups of as many
runs, which are measured as any run is, exactly over the orders of what ties remain.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tiewise.data.columns import Codes, Floats, ranges
from tiewise.data.documents import Documents
from tiewise.data.judgments import Qrels
from tiewise.metrics import engine
from tiewise.metrics.compiled import compute_statistics, tables_of
from tiewise.metrics.definition import Measure, Sampling
from tiewise.metrics.grouped_judgments import GroupedJudgments, select_queries
from tiewise.metrics.noise import NoiseLaw
from tiewise.metrics.scored_lists import ScoredLists
from tiewise.metrics.segments import alike
from tiewise.ties.counted import Counted
from tiewise.ties.groups import TieGroups
from tiewise.ties.orders import random_priorities

#: Draws that are measured together, and about how many documents are sorted together.
DRAWS, SORTED = 64, 1 << 17
#: Draws for which 64 random bits are enough.
SHARED = 4
#: Random orders of what remains tied in a draw, for measures without a closed form.
ORDERS = 20


class NoiseDraws:
    """Lists with noise, of some measures that look at the same tie groups."""

    def __init__(
        self, measures: Sequence[Measure], grouped: GroupedJudgments, lists: ScoredLists, law: NoiseLaw, seed: int
    ):
        self.measures, self._lists, self._law, self._seed = measures, lists, law, seed
        is_head = lists.heads(law.reach(lists.score))
        cluster, first = np.cumsum(is_head) - 1, np.flatnonzero(is_head)
        size = np.diff(np.append(first, len(is_head)))
        judged = np.flatnonzero(lists.place >= 0)
        depth = np.max([one.depth(grouped) if one.additive else grouped.length for one in measures], axis=0)
        moves = np.zeros(len(size), dtype=bool)
        moves[cluster[lists.place[judged]]] = True
        moves &= (size > 1) & (lists.above[first] < depth[lists.query[first]])
        #: The queries whose value may change, as places.
        self.queries = np.unique(lists.query[first[moves]])
        self._ties = select_queries(grouped.ties, self.queries)
        self._size, self._start = size[moves], lists.above[first[moves]]
        places = ranges(first[moves], self._size)
        self._score, self._row = lists.score[places], law.row(lists.score[places])
        self._ids = lists.ids(places)
        self._blocks = list(self._pad(np.cumsum(self._size) - self._size))
        # The judged documents of these clusters: rows of the selected judgments, and their documents.
        chosen = np.zeros(grouped.n_queries, dtype=bool)
        chosen[self.queries] = True
        selected = np.flatnonzero(chosen[grouped.ties.qrels.query])
        position = np.full(len(lists.score), -1)
        position[places] = np.arange(len(places))
        at = np.where(lists.place[selected] >= 0, position[lists.place[selected]], -1)
        self._judged = np.flatnonzero(at >= 0)
        self._judged_at = at[self._judged]
        self._judged_start = np.repeat(self._start, self._size)[self._judged_at]

    def _pad(self, first: Codes) -> Iterator[tuple[Codes, NDArray[np.bool_]]]:
        """Clusters of about one size as matrices of documents, with a mask of those that are there."""
        for some in alike(self._size):
            column = np.arange(int(self._size[some].max()))
            is_there = column < self._size[some][:, None]
            yield first[some][:, None] + np.where(is_there, column, 0), is_there

    def values(self, n: int) -> Iterator[dict[Measure, Floats]]:
        """The values of each measure for `queries` in n draws, (some draws, n_queries), until there are n."""
        if not len(self.queries):
            return
        repeated = _Repeated(self._ties, min(n, DRAWS))
        for low in range(0, n, DRAWS):
            many = min(DRAWS, n - low)
            start, size = self._count(low, many)
            found = repeated.measure(self.measures, start, size)
            yield {measure: one[:many] for measure, one in found.items()}

    def _count(self, low: int, many: int) -> tuple[Codes, Codes]:
        """Where judged documents stand in some draws: documents above, and of the same score, (DRAWS, n_judged)."""
        start, size = (np.tile(column, (many, 1)) for column in (self._ties.start, self._ties.size))
        step = SHARED * max(1, SORTED // (SHARED * max(len(self._score), 1)))
        for first in range(low, low + many, step):
            some = min(step, low + many - first)
            above, same = self._ranks(first, some)
            part = slice(first - low, first - low + some)
            start[part, self._judged] = self._judged_start + above[:, self._judged_at]
            size[part, self._judged] = same[:, self._judged_at]
        return start, size

    def _ranks(self, first: int, many: int) -> tuple[Codes, Codes]:
        """How many documents of its cluster score above each document, and as it, (n_draws, n_documents)."""
        score = self._score + self._draw(first, many)
        above, same = np.empty((2, *score.shape), dtype=np.int32)
        for places, is_there in self._blocks:
            block = np.where(is_there, -score[:, places], np.nan)  # NaN comes last
            order = np.argsort(block, axis=-1)
            ordered = np.take_along_axis(block, order, axis=-1)
            rank = np.empty(order.shape, dtype=np.int32)
            np.put_along_axis(rank, order, np.arange(order.shape[-1], dtype=np.int32)[None, None], axis=-1)
            ties = np.ones(order.shape, dtype=np.int32)
            is_tied = ordered[..., 1:] == ordered[..., :-1]
            if is_tied.any():
                rank, ties = _average(order, is_tied)
            above[:, places[is_there]], same[:, places[is_there]] = rank[:, is_there], ties[:, is_there]
        return above, same

    def _draw(self, first: int, many: int) -> Floats:
        """The noise of each document in some draws, (n_draws, n_documents): four draws from 64 random bits."""
        numbers = range(first // SHARED, -(-(first + many) // SHARED))
        bits = np.array([random_priorities(self._ids, self._seed, number) for number in numbers]).astype("<u8")
        steps = bits.view("<u2").reshape(len(numbers), -1, SHARED).transpose(0, 2, 1).reshape(-1, len(self._ids))[:many]
        table = self._law.quantiles
        return table[0][steps] if len(table) == 1 else table[self._row, steps]


def _average(order: Codes, is_tied: NDArray[np.bool_]) -> tuple[Codes, Codes]:
    """How many documents score above each, and as it, of sorted rows in which some equal the one before."""
    width = order.shape[-1]
    column = np.arange(width, dtype=np.int32)
    is_head = np.ones(order.shape, dtype=bool)
    is_head[..., 1:] = ~is_tied
    first = np.maximum.accumulate(np.where(is_head, column, 0), axis=-1)
    is_end = np.ones(order.shape, dtype=bool)
    is_end[..., :-1] = ~is_tied
    end = np.minimum.accumulate(np.where(is_end, column, width)[..., ::-1], axis=-1)[..., ::-1]
    above, same = np.empty((2, *order.shape), dtype=np.int32)
    np.put_along_axis(above, order, first.astype(np.int32), axis=-1)
    np.put_along_axis(same, order, (end - first + 1).astype(np.int32), axis=-1)
    return above, same


class _Repeated:
    """Tie groups of some queries, several times: each draw has lists of its own."""

    def __init__(self, ties: TieGroups, times: int):
        qrels, n = ties.qrels, len(ties.qrels.queries)
        self._times, self._n = times, n
        rows = np.tile(np.arange(len(qrels)), times)
        offsets = np.append((qrels.offsets[:-1] + len(qrels) * np.arange(times)[:, None]).ravel(), times * len(qrels))
        names = tuple(map(str, range(times * n)))
        self._qrels = Qrels(names, offsets, Documents(rows, range(len(qrels))), qrels.label[rows])  # type: ignore[arg-type]
        length, present, lowest = (np.tile(one, times) for one in (ties.length, ties.present, ties.lowest))
        of_lists = length, present, lowest, np.ones(times * n, dtype=np.int64)
        self._ties = TieGroups(self._qrels, qrels.label[rows], rows, rows, *of_lists, depth=ties.depth, complete=True)

    def measure(self, measures: Sequence[Measure], start: Codes, size: Codes) -> Mapping[Measure, Floats]:
        """The expected values over the orders of ties, (times, n_queries); the last draws may be missing."""
        missing = self._times - len(start)
        if missing:
            start, size = (np.concatenate([one, np.repeat(one[:1], missing, axis=0)]) for one in (start, size))
        ties = replace(self._ties, start=start.ravel(), size=size.ravel())
        counted = Counted.of(ties)
        tables = dict(zip(measures, tables_of(tuple(measures), counted), strict=True))
        known = [measure for measure in measures if tables[measure] is not None]
        found: dict[Measure, Floats] = {}
        if known:
            made = compute_statistics([tables[one] for one in known], counted, None, "float64", None, truncated=False)
            found = dict(zip(known, made.column("expected"), strict=True))
        if len(known) < len(measures):
            grouped = GroupedJudgments(ties)
            for measure in measures:
                if measure not in found:
                    found[measure] = engine.expected(measure, grouped, Sampling(ORDERS, 0))
        return {measure: found[measure].reshape(self._times, self._n) for measure in measures}
