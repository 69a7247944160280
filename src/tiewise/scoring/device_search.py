"""The best documents of some queries on a device: each block of scores is compared with the k-th best so far."""

from __future__ import annotations

import numpy as np

from tiewise.data.columns import Codes, Floats
from tiewise.scoring.arrays import Array, Torch
from tiewise.scoring.blocks import Blocks
from tiewise.scoring.device import DeviceScores

__all__ = ["best_on_device"]


def best_on_device(scores: DeviceScores, blocks: Blocks, rows: slice, k: int) -> tuple[Codes, Codes, Floats]:
    """The rows, documents and scores of the k best of some queries, and of all that tie with the k-th."""
    left = scores.left(rows)
    best = _Best(scores.lib, k)
    for span in blocks.docs:
        found = scores.checked(left, span, rows, again=1)
        best.add(found, span.start)
        blocks.done(found.shape[0] * found.shape[1])
    return best.found()


class _Best:
    """For each query the k best scores so far, and the documents that are as good as the k-th of them."""

    def __init__(self, lib: Torch, k: int):
        self.lib, self.k = lib, k
        self._top: Array | None = None  # (queries, up to k): the best scores, in any order
        self._kept: list[tuple[Array, Array, Array]] = []  # queries, documents, scores
        self._many = 0

    def add(self, scores: Array, offset: int) -> None:
        """Take in the scores of documents from `offset` on."""
        if self._top is None:
            self._top = self.lib.joined([self.lib.largest(scores, self.k)])  # a copy: scores are written over
            rows, columns = self.lib.where(scores >= self._bound[:, None])
        else:
            rows, columns = self.lib.where(scores >= self._bound[:, None])
            self._raise(rows, scores[rows, columns], len(scores))
        values = scores[rows, columns]
        self._keep(rows, columns + offset, values)

    @property
    def _bound(self) -> Array:
        """The k-th best score of each query, below which nothing is kept."""
        assert self._top is not None
        low = self.lib.xp.amin(self._top, 1)
        return low if self._top.shape[1] == self.k else self.lib.xp.full_like(low, -float("inf"))

    def _raise(self, rows: Array, values: Array, queries: int) -> None:
        """Merge new candidates into the best scores; those of one query stand together."""
        if not len(rows):
            return
        counts = self.lib.xp.bincount(rows, minlength=queries)
        heads = self.lib.xp.cumsum(counts, 0) - counts
        width = int(counts.max())
        fresh = self.lib.empty((queries, width), values.dtype)
        fresh[...] = -float("inf")
        fresh[rows, self.lib.integers(np.arange(len(rows))) - heads[rows]] = values
        self._top = self.lib.largest(self.lib.joined([self._top, fresh], 1), self.k)

    def _keep(self, rows: Array, docs: Array, values: Array) -> None:
        fits = values >= self._bound[rows]
        self._kept.append((rows[fits], docs[fits], values[fits]))
        self._many += len(self._kept[-1][0])
        assert self._top is not None
        if self._many > 4 * self._top.shape[0] * self.k:
            self._shrink()

    def _shrink(self) -> None:
        """Drop what the bound has overtaken."""
        rows, docs, values = (self.lib.joined(parts) for parts in zip(*self._kept, strict=True))
        fits = values >= self._bound[rows]
        self._kept, self._many = [(rows[fits], docs[fits], values[fits])], 0

    def found(self) -> tuple[Codes, Codes, Floats]:
        """Queries, documents and scores, in main memory."""
        if not self._kept:
            return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0)
        self._shrink()
        rows, docs, values = (self.lib.host(part) for part in self._kept[0])
        return rows, docs, values
