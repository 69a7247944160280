"""Counts in a block of scores on a device: how many are above each threshold, and how many are equal to it.

A block of scores is read once, by kernels (`counting_kernels.py`, `selecting_kernels.py`), or by torch where there are
none. Nothing waits for the device until the first count is used.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from tiewise.caching import cached_property
from tiewise.data.columns import Floats
from tiewise.scoring.backends import Array, TorchBackend
from tiewise.scoring.judgments import Slots
from tiewise.scoring.spans import Indices

#: Documents, beside 3k/2, for which there is room while the k best are selected.
SPARE_DOCUMENTS = 32


class ScoreBlock(NamedTuple):
    """Scores on a device: products, or products times a factor of the document and then one of the query."""

    products: Array  # (rows, documents)
    doc_factors: Array | None = None  # (documents,)
    query_factors: Array | None = None  # (rows,)

    @property
    def has_factors(self) -> bool:
        """Whether products are not the scores yet."""
        return self.doc_factors is not None

    @property
    def pairs(self) -> int:
        """The number of scores."""
        return int(self.products.shape[0] * self.products.shape[1])

    def gather(self, columns: Array) -> Array:
        """Some scores of each row, (rows, any); infinity for negative columns."""
        kernels = _load_kernels("score_kernels", self.products.device.type)
        if kernels is not None:
            return kernels.gather(self, columns)
        places = columns.clip(0)
        found = self.products.gather(1, places)
        if self.doc_factors is not None and self.query_factors is not None:
            found = found * self.doc_factors[places] * self.query_factors[:, None]
        return found.masked_fill(columns < 0, np.inf)

    def matrix(self) -> Array:
        """All scores; they replace the products, so this is the last use of the block."""
        if self.doc_factors is not None and self.query_factors is not None:
            kernels = _load_kernels("score_kernels", self.products.device.type)
            if kernels is None or self.products.stride(1) != 1:
                self.products.mul_(self.doc_factors).mul_(self.query_factors[:, None])
            else:
                kernels.scale(self.products, self.doc_factors, self.query_factors)
        return self.products


class BlockCounts:
    """The counts of a block of scores. They come to main memory, in one array, when the first of them is used.

    `thresholds` are scores, (rows, largest number for a row), of the type of the scores. Unused ones
    are infinite; no score equals them. `docs` has the documents whose scores the thresholds are, if the ids are row
    numbers of at most `digits` digits. Then the tied documents before each of them are counted too.
    """

    def __init__(
        self, backend: TorchBackend, block: ScoreBlock, thresholds: Array, docs: Array | None = None, digits: int = 1
    ):
        self._kernels = _load_kernels("counting_kernels", thresholds.device.type)
        self._shape = tuple(thresholds.shape)
        block = block if self._kernels is not None else ScoreBlock(block.matrix())
        self.backend, self.block, self._thresholds = backend, block, thresholds
        self._by_search = self._kernels is not None and thresholds.shape[1] > self._kernels.MAX_COMPARISONS
        self._has_ties_before = docs is not None and self._kernels is not None and not self._by_search
        if self._by_search:
            counts: tuple[Array, Array] = self._kernels.count_by_search(backend.xp, block, thresholds), None
        else:
            count = _count_with_torch if self._kernels is None else self._kernels.count
            counts = count(backend.xp, block, thresholds, docs, digits)
        self._wait, self._chunk_counts = backend.to_numpy_async(counts[0]), counts[1]
        if self._has_ties_before:  # these are not used any more, and freeing them now costs no waiting
            del self._thresholds, self._chunk_counts

    @cached_property
    def _tables(self) -> list[Indices]:
        """Thresholds, above, equal; for each row the lowest score, its number, what is not finite; ties before."""
        rows, width = self._shape
        sizes = [rows * width] * 3 + [rows] * 3 + [rows * width] * (2 if self._has_ties_before else 0)
        counts, ends = self._wait(), accumulate(sizes)
        return [counts[end - size : end] for size, end in zip(sizes, ends, strict=True)]

    @property
    def all_finite(self) -> bool:
        """Whether all scores are finite."""
        return not self._tables[5].any()

    @property
    def above(self) -> Indices:
        """(rows, width): scores above each threshold."""
        return self._tables[1].reshape(self._shape)

    @property
    def equal(self) -> Indices:
        """(rows, width): scores equal to it."""
        return self._tables[2].reshape(self._shape)

    @property
    def lowest(self) -> tuple[Floats, Indices]:
        """(rows,): the lowest score, and how many scores equal it."""
        return self._tables[3].view(np.float64), self._tables[4]

    def take(self, flat_indices: Indices) -> tuple[Floats, Indices, Indices]:
        """Some thresholds, by ascending indices into the flattened table, and the scores above and equal to them."""
        thresholds, above, equal = self._tables[:3]
        if len(flat_indices) < len(thresholds):
            thresholds, above, equal = thresholds[flat_indices], above[flat_indices], equal[flat_indices]
        return thresholds.view(np.float64), above, equal

    def ties_before(self, flat_indices: Indices) -> dict[str, Indices]:
        """By tie-break order, how many tied documents are before those of some thresholds; empty if not counted."""
        tables = dict(zip(("given", "docid-desc"), self._tables[6:], strict=False))
        return {order: table[flat_indices] for order, table in tables.items()}

    def find_tied(self, row: Indices, column: Indices) -> tuple[Indices, Indices]:
        """The documents whose scores equal some thresholds: positions in `row` and `column`, and documents.

        Thresholds are distinct in a row, and ordered by row and value.
        """
        if not len(row):
            return row, row
        sizes = self.equal[row, column]
        if self._kernels is None:
            cells = zip(row.tolist(), column.tolist(), strict=True)
            tied = [self.backend.xp.nonzero(self.block.products[i] == self._thresholds[i, j]) for i, j in cells]
            docs = self.backend.to_numpy(self.backend.xp.cat(tied))[:, 0]
        elif self._by_search:
            return self._find_by_search(row, column, int(sizes.sum()))
        else:
            with self.backend.side_stream():
                cells = self.backend.as_indices(np.stack([row, column, np.cumsum(sizes) - sizes]))
                tied = self._kernels.find_tied(
                    self.backend.xp, self.block, self._thresholds, self._chunk_counts, cells, int(sizes.sum())
                )
                docs = self.backend.to_numpy(tied)
        return np.repeat(np.arange(len(row)), sizes), docs

    def _find_by_search(self, row: Indices, column: Indices, n_docs: int) -> tuple[Indices, Indices]:
        """The same where scores are searched among these thresholds; the device finds documents in any order."""
        first = np.searchsorted(row, np.arange(self._shape[0]))  # of each row
        place = np.arange(len(row)) - first[row]
        wanted = np.full((len(first), int(place.max()) + 1), np.inf)
        wanted[row, place] = self._tables[0].view(np.float64).reshape(self._shape)[row, column]
        with self.backend.side_stream():
            thresholds = self.backend.cast(self.backend.copy_async(wanted), self._thresholds.dtype)
            found = self._kernels.find_by_search(
                self.backend.xp, self.block, thresholds, self.backend.as_indices(first), n_docs
            )
            position, docs = self.backend.to_numpy(found)
        order = np.lexsort((docs, position))
        return position[order], docs[order]


def gather_thresholds(
    backend: TorchBackend, block: ScoreBlock, slots: Slots, table: Floats | None, docs: Indices
) -> tuple[Array, Array]:
    """A table of thresholds on the device, and the table of their documents, −1 where there is none.

    Thresholds are the scores of `docs`, one for each slot; where that is −1, they come from `table`, or are infinite.
    Nothing waits for the device.
    """
    doc_table = np.full(slots.shape, -1)
    doc_table[slots.row, slots.column] = docs
    columns = backend.as_indices(doc_table)
    own = block.gather(columns)
    if table is None:
        return own, columns
    given = backend.cast(backend.to_device(table), own.dtype)
    return backend.xp.where(columns < 0, given, own), columns


class BestDocuments:
    """The k best documents of each query in a block of scores, and all that tie with the k-th.

    They are found by kernels, which wait for nothing, or by torch.
    """

    def __init__(self, backend: TorchBackend, block: ScoreBlock, k: int):
        self.backend, self.k = backend, min(k, block.products.shape[1])
        self._kernels = _load_kernels("selecting_kernels", block.products.device.type)
        self._selection = None
        #: Whether rows have descending scores, and equal ones ascending documents.
        self.is_ranked = False
        if self._kernels is not None and self._kernels.can_select(block, self.k):
            self._selection, self.is_ranked = self._kernels.Selection(backend.xp, block, self.k), True
            self._wait = backend.to_numpy_async(self._selection.select(SPARE_DOCUMENTS + 3 * self.k // 2))
        else:
            self._scores = block.matrix()
            self._limit = backend.xp.topk(self._scores, self.k, dim=1, sorted=False).values.amin(1)

    def wait(self) -> tuple[bool, Indices, Indices, Floats]:
        """Whether all scores are finite; rows, documents and scores, in the order of rows."""
        if self._selection is None:
            row, doc = self.backend.xp.nonzero(self._scores >= self._limit[:, None], as_tuple=True)
            found = [self.backend.to_numpy(one) for one in (row, doc, self._scores[row, doc].double())]
            return self.backend.all_finite(self._scores), found[0], found[1], found[2]
        table = self._wait()
        largest = int(table[:, 0].max(initial=0))
        if largest > table.shape[1] - 2:  # many documents tie, or the best are in few chunks
            table = self.backend.to_numpy(self._selection.select(largest))
        keys = table[:, 2:]
        lowest = self._kernels.lowest_equal_key(keys[:, self.k - 1 : self.k])
        sizes = self.k + (keys[:, self.k :] >= lowest).sum(1)
        row, keys = np.repeat(np.arange(len(keys)), sizes), keys[:, : sizes.max(initial=0)]
        keys = keys.ravel() if len(row) == keys.size else keys[keys >= lowest]  # often there are no ties
        return not table[:, 1].any(), row, *self._kernels.unpack_keys(keys)


def _count_with_torch(
    torch: Any, block: ScoreBlock, thresholds: Array, docs: Array | None, digits: int
) -> tuple[Array, None]:
    """What the kernels count, without the tied documents before others."""
    scores = block.products
    columns = [thresholds[:, j : j + 1] for j in range(thresholds.shape[1])]
    above, equal = [(scores > one).sum(1) for one in columns], [(scores == one).sum(1) for one in columns]
    low, high = torch.aminmax(scores, dim=1)
    not_finite = (low * 0 + high * 0 != 0).long()
    tables = [torch.stack(counts, 1).ravel() for counts in (above, equal)]
    per_row = [low.double().view(torch.int64), (scores == low[:, None]).sum(1), not_finite]
    return torch.cat([thresholds.double().view(torch.int64).ravel(), *tables, *per_row]), None


@cache
def _load_kernels(module: str, device: str) -> Any:
    """A module of kernels, or None where they do not run."""
    if device != "cuda":
        return None
    from tiewise.scoring import score_kernels

    return None if score_kernels.triton is None else import_module(f"tiewise.scoring.{module}")
