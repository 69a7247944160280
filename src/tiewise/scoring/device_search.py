"""The best documents of queries on a device: each block of scores is compared with the k-th best score so far."""

from __future__ import annotations

import numpy as np

from tiewise.data.columns import Floats
from tiewise.scoring.backends import Array, Indices, TorchBackend
from tiewise.scoring.blocks import Blocks
from tiewise.scoring.device_scorer import DeviceScorer

__all__ = ["top_k_on_device"]


def top_k_on_device(scorer: DeviceScorer, blocks: Blocks, k: int) -> list[tuple[Indices, Indices, Floats]]:
    """For each block of queries: rows, documents and scores of the k best, and of all that tie with the k-th."""
    return [_top_k_of_block(scorer, blocks, rows, k) for rows in blocks.queries]


def _top_k_of_block(scorer: DeviceScorer, blocks: Blocks, rows: slice, k: int) -> tuple[Indices, Indices, Floats]:
    tiles = scorer.query_tiles(rows)
    candidates = _Candidates(scorer.backend, k)
    for span in blocks.docs:
        scores = scorer.finite_scores(tiles, span, rows, buffer=1)
        candidates.add(scores, span.start)
        blocks.add_done(scores.shape[0] * scores.shape[1])
    return candidates.finish()


class _Candidates:
    """For each query the k best scores so far, and the documents that are as good as the k-th of them."""

    def __init__(self, backend: TorchBackend, k: int):
        self.backend, self.k = backend, k
        self._top: Array | None = None  # (queries, up to k): the best scores, in any order
        self._parts: list[tuple[Array, Array, Array]] = []  # queries, documents, scores
        self._n_new = 0  # candidates since the last time that some were dropped

    def add(self, scores: Array, offset: int) -> None:
        """Add the scores of a block of documents, whose first row is `offset`."""
        if self._top is None:
            top = self.backend.top_values(scores, self.k)
            self._top = self.backend.concatenate([top])  # a copy, because scores are overwritten
            rows, columns = self.backend.nonzero(scores >= self._limit[:, None])
        else:
            rows, columns = self.backend.nonzero(scores >= self._limit[:, None])
            self._update_top(rows, scores[rows, columns], len(scores))
        self._keep(rows, columns + offset, scores[rows, columns])

    @property
    def _limit(self) -> Array:
        """The k-th best score of each query; −infinity while there are fewer than k."""
        assert self._top is not None
        lowest = self.backend.xp.amin(self._top, 1)
        return lowest if self._top.shape[1] == self.k else self.backend.xp.full_like(lowest, -float("inf"))

    def _update_top(self, rows: Array, values: Array, n_queries: int) -> None:
        """Merge new candidates, ordered by query, into the best scores."""
        if not len(rows):
            return
        counts = self.backend.xp.bincount(rows, minlength=n_queries)
        starts = self.backend.xp.cumsum(counts, 0) - counts
        new = self.backend.empty((n_queries, int(counts.max())), values.dtype)
        new[...] = -float("inf")
        new[rows, self.backend.as_indices(np.arange(len(rows))) - starts[rows]] = values
        self._top = self.backend.top_values(self.backend.concatenate([self._top, new], 1), self.k)

    def _keep(self, rows: Array, docs: Array, values: Array) -> None:
        assert self._top is not None
        fits = values >= self._limit[rows]
        self._parts.append((rows[fits], docs[fits], values[fits]))
        self._n_new += len(self._parts[-1][0])
        if self._n_new > 4 * self._top.shape[0] * self.k:
            self._drop_below_limit()

    def _drop_below_limit(self) -> None:
        rows, docs, values = (self.backend.concatenate(parts) for parts in zip(*self._parts, strict=True))
        fits = values >= self._limit[rows]
        self._parts, self._n_new = [(rows[fits], docs[fits], values[fits])], 0

    def finish(self) -> tuple[Indices, Indices, Floats]:
        """Queries, documents and scores, in main memory."""
        if not self._parts:
            return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0)
        self._drop_below_limit()
        rows, docs, values = (self.backend.to_numpy(part) for part in self._parts[0])
        return rows, docs, values
