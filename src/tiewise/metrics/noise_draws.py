"""Random draws of noise: how far the mean of a measure over queries moves.

Each list is cut into clusters that the noise cannot reorder. In a draw, the documents of a cluster get noise and are
counted again: how many score above each judged document, and how many the same. So many draws are tie groups of as many
runs, which are measured as any run is, exactly over the orders of what ties remain.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tiewise.data.columns import Codes, Floats
from tiewise.data.documents import Documents
from tiewise.data.judgments import Qrels
from tiewise.metrics import engine
from tiewise.metrics.compiled import compute_statistics, tables_of
from tiewise.metrics.definition import Measure, Sampling
from tiewise.metrics.grouped_judgments import GroupedJudgments
from tiewise.metrics.noise import STEPS, NoiseLaw
from tiewise.metrics.scored_lists import ScoredLists
from tiewise.ties.counted import Counted
from tiewise.ties.groups import TieGroups
from tiewise.ties.orders import random_priorities

#: Draws that are measured together, and about how many documents are sorted together.
DRAWS, SORTED = 64, 1 << 16
#: Draws for which 64 random bits are enough.
SHARED = 4
#: Random orders of what remains tied in a draw, for measures without a closed form.
ORDERS = 20
#: Infinite scores are as large as this.
LARGEST = 1e300


class _Block(NamedTuple):
    """Clusters of about one size, as a matrix."""

    documents: slice
    width: int


class NoiseDraws:
    """Lists with noise, of some measures that look at the same tie groups."""

    def __init__(
        self, measures: Sequence[Measure], grouped: GroupedJudgments, lists: ScoredLists, law: NoiseLaw, seed: int
    ):
        self.measures, self._law, self._seed = measures, law, seed
        depth = np.max([one.depth(grouped) if one.additive else grouped.length for one in measures], axis=0)
        is_head = lists.heads(law.reach(lists.score), depth)
        cluster, first = np.cumsum(is_head) - 1, np.flatnonzero(is_head)
        size = np.diff(np.append(first, len(is_head)))
        judged = np.flatnonzero(lists.place >= 0)
        moves = np.zeros(len(size), dtype=bool)
        moves[cluster[lists.place[judged]]] = True
        moves &= (size > 1) & (lists.above[first] < depth[lists.query[first]])
        #: The queries whose value may change, as places.
        self.queries = np.unique(lists.query[first[moves]])
        self._ties = grouped.ties.select_queries(self.queries)
        every, is_there = self._arrange(first[moves], size[moves])
        position = np.full(len(lists.score), -1)
        position[every[is_there]] = np.flatnonzero(is_there)
        score = np.clip(lists.score[every], -LARGEST, LARGEST)
        self._falling = np.where(is_there, -score, np.inf)
        self._row, self._ids = law.row(score) * STEPS, lists.ids(every)
        # The judged documents of these clusters, as rows of the selected judgments.
        chosen = np.zeros(grouped.n_queries, dtype=bool)
        chosen[self.queries] = True
        selected = np.flatnonzero(chosen[grouped.ties.qrels.query])
        at = np.where(lists.place[selected] >= 0, position[lists.place[selected]], -1)
        self._judged = np.flatnonzero(at >= 0)
        self._judged_at = at[self._judged]
        self._judged_start = lists.above[first[cluster[lists.place[selected[self._judged]]]]]

    def _arrange(self, starts: Codes, sizes: Codes) -> tuple[Codes, NDArray[np.bool_]]:
        """The documents of some clusters, those of about one size together as the rows of a matrix, one after another.

        A row is filled with the first document of its cluster, which is not there again.
        """
        self._blocks: list[_Block] = []
        places, is_there = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=bool)]
        low = 0
        for some in _blocks(sizes):
            column = np.arange(int(sizes[some].max()))
            held = column < sizes[some][:, None]
            self._blocks.append(_Block(slice(low, low + held.size), len(column)))
            places.append((starts[some][:, None] + np.where(held, column, 0)).ravel())
            is_there.append(held.ravel())
            low += held.size
        return np.concatenate(places), np.concatenate(is_there)

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
        """Where judged documents stand in some draws: documents above, and of the same score, (n_draws, n_judged)."""
        start, size = (np.tile(column, (many, 1)) for column in (self._ties.start, self._ties.size))
        step = SHARED * max(1, SORTED // (SHARED * max(len(self._falling), 1)))
        for first in range(low, low + many, step):
            falling = self._draw(first, min(step, low + many - first))
            part = slice(first - low, first - low + len(falling))
            for block in self._blocks:
                inside = (self._judged_at >= block.documents.start) & (self._judged_at < block.documents.stop)
                judged, at = self._judged[inside], self._judged_at[inside]
                ordered = np.sort(falling[:, block.documents].reshape(len(falling), -1, block.width), axis=-1)
                above, same = _find(ordered, (at - block.documents.start) // block.width, falling.take(at, axis=1))
                start[part, judged], size[part, judged] = self._judged_start[inside] + above, same
        return start, size

    def _draw(self, first: int, many: int) -> Floats:
        """The scores less their noise, negated, in some draws, (n_draws, n_documents): 64 bits serve four."""
        numbers = range(first // SHARED, -(-(first + many) // SHARED))
        bits = np.array([random_priorities(self._ids, self._seed, number) for number in numbers]).astype("<u8")
        steps = bits.view("<u2").reshape(len(numbers), -1, SHARED).transpose(0, 2, 1).reshape(-1, len(self._ids))[:many]
        table = self._law.quantiles
        index = steps if len(table) == 1 else steps + self._row
        noise = table.ravel().take(index, mode="clip")  # all are in range: "clip" skips the check
        return np.subtract(self._falling, noise, out=noise)


def _blocks(sizes: Codes) -> Iterator[Codes]:
    """Clusters of about one size together."""
    kind = np.floor(2 * np.log2(sizes)).astype(np.int64) if len(sizes) else sizes
    for one in np.unique(kind).tolist():
        yield np.flatnonzero(kind == one)


def _find(ordered: Floats, cluster: Codes, own: Floats) -> tuple[Codes, Codes]:
    """How many numbers of its row are below each of some numbers, and how many equal it.

    `ordered` is (n_draws, n_rows, width), ascending; `own` has numbers of some rows, (n_draws, n_numbers).
    """
    n_draws, n_rows, width = ordered.shape
    flat, base = ordered.ravel(), (np.arange(n_draws)[:, None] * n_rows + cluster) * width

    def search(below: np.ufunc) -> Codes:
        found = np.zeros(own.shape, dtype=np.int64)
        step = 1 << (width.bit_length() - 1)
        while step:
            probe = found + (step - 1)
            value = flat.take(base + np.minimum(probe, width - 1))
            found += step * (below(value, own) & (probe < width))
            step >>= 1
        return found

    above = search(np.less)
    following = flat.take(base + np.minimum(above + 1, width - 1))
    is_tied = (following == own) & (above + 1 < width)
    return above, search(np.less_equal) - above if is_tied.any() else np.ones_like(above)


class _Repeated:
    """Tie groups of some queries, several times: each draw has lists of its own."""

    def __init__(self, ties: TieGroups, times: int):
        qrels, n = ties.qrels, len(ties.qrels.queries)
        self._times, self._n = times, n
        rows = np.tile(np.arange(len(qrels)), times)
        offsets = np.append((qrels.offsets[:-1] + len(qrels) * np.arange(times)[:, None]).ravel(), times * len(qrels))
        names = tuple(map(str, range(times * n)))
        self._qrels = Qrels(names, offsets, Documents(rows, range(len(qrels))), qrels.label[rows])  # type: ignore[arg-type]
        self._ties = TieGroups(
            self._qrels,
            score=qrels.label[rows],  # of these, nothing looks at the scores
            start=rows,
            size=rows,
            length=np.tile(ties.length, times),
            present=np.tile(ties.present, times),
            lowest=np.tile(ties.lowest, times),
            lowest_size=np.ones(times * n, dtype=np.int64),
            depth=ties.depth,
            complete=True,
        )

    def measure(self, measures: Sequence[Measure], start: Codes, size: Codes) -> Mapping[Measure, Floats]:
        """The expected values over the orders of ties, (times, n_queries); the last draws may be missing."""
        missing = self._times - len(start)
        if missing:
            start, size = (np.concatenate([one, np.repeat(one[:1], missing, axis=0)]) for one in (start, size))
        ties = replace(self._ties, start=start.ravel(), size=size.ravel())
        counted = Counted.of(ties)
        tables = tables_of(tuple(measures), counted)
        found: dict[Measure, Floats] = {}
        if tables.rows:
            expected = compute_statistics(tables, counted, None, "float64", None, truncated=False).column("expected")
            found = {measure: expected[row] for measure, row in tables.rows.items()}
        if len(found) < len(measures):
            grouped = GroupedJudgments(ties)
            for measure in measures:
                if measure not in found:
                    found[measure] = engine.expected(measure, grouped, Sampling(ORDERS, 0))
        return {measure: found[measure].reshape(self._times, self._n) for measure in measures}
