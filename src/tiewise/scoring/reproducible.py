"""Scores by the definition, with the products of a device: the bits of the CPU, and most of the work on a GPU.

A `ReproducibleScorer` is a `HostScorer` whose approximate scores stay on a device. What they decide is counted there;
near documents are scored there in float64, with an error bound, and by the definition in main memory where that leaves
a score open.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tiewise.data.columns import Floats
from tiewise.scoring.approximate import ApproximateScores, Decided, Thresholds
from tiewise.scoring.backends import Array, TorchBackend
from tiewise.scoring.device_functions import Tile
from tiewise.scoring.device_scorer import DeviceScorer
from tiewise.scoring.host_functions import SAFE_NORMS, VectorBlock, relative_error
from tiewise.scoring.host_scorer import HostScorer
from tiewise.scoring.operands import Operand
from tiewise.scoring.spans import Indices, Rows, key_of, numbers_of, split

#: How many numbers are multiplied in float64 at a time.
CHUNK = 2**27


@dataclass(frozen=True)
class DocRows:
    """A block of documents on the device."""

    rows: slice
    norms: Floats  # upper bounds of their norms
    side: str = "documents"

    @property
    def n(self) -> int:
        """The number of documents."""
        return int(self.rows.stop - self.rows.start)

    @property
    def is_zero(self) -> NDArray[np.bool_]:
        """Which are zero vectors."""
        return self.norms == 0

    @property
    def start(self) -> int:
        """The first document."""
        return int(self.rows.start)


class ReproducibleScorer(HostScorer):
    """Dot products and cosines in float32, by the definition, of vectors up to float32."""

    def __init__(self, queries: Operand, docs: Operand, device: DeviceScorer, score_dtype: str | None = None):
        """`queries` and `docs` are operands in main memory; `device` scores the same vectors."""
        super().__init__(queries, docs, device.fn, "float32", score_dtype)
        self.device = device
        self._tiles: dict[Any, list[Tile]] = {}  # by query rows

    @staticmethod
    def supports(device: DeviceScorer) -> bool:
        """Whether the scores of a device can be filters for the definition."""
        types = device.types
        return device.fn in ("dot", "cosine") and device.precision == "float32" and not (types.wide or types.integer)

    def block_sizes(self, n_queries: int, block: int | None, query_block: int | None) -> tuple[int, int]:
        """The number of queries and of documents in a block of the device."""
        return self.device.block_sizes(n_queries, block, query_block)

    def doc_block(self, rows: Rows) -> Any:
        """Contiguous documents stay on the device; others are fetched, for the definition."""
        if not isinstance(rows, slice):
            return super().doc_block(rows)
        return DocRows(rows, self._doc_norms[rows])

    @property
    def _doc_norms(self) -> Floats:
        """Upper bounds of the norms of all documents, computed once, in float64."""
        docs = self.device.docs
        if "norm bounds" not in docs.prepared:
            parts = [self._norms(docs, part) for part in split(slice(0, docs.n), self.device.doc_tile)]
            norms = np.concatenate([np.zeros(0), *parts])
            docs.prepared["norm bounds"] = norms * (1 + (docs.dims + 4) * 2.0**-52)
        return np.asarray(docs.prepared["norm bounds"])

    def _norms(self, operand: Operand, rows: Rows) -> Floats:
        torch, vectors = self.device.backend.torch, operand.take(rows)
        wide = vectors if self.device.backend.supports_matmul(vectors.dtype) else vectors.float()
        return np.asarray(self.device.backend.to_numpy(torch.linalg.vector_norm(wide, dim=-1, dtype=torch.float64)))

    def approximate(self, q: VectorBlock, d: Any) -> ApproximateScores:
        """Approximate scores on the device."""
        key = key_of(q.rows)
        if key not in self._tiles:
            self._tiles[key] = self.device.query_tiles(q.rows)
        values = self.device.scores(self._tiles[key], d.rows, buffer=1)
        if self.fn == "dot":
            row_error, doc_error = self.function._error_bounds(q.norms, d.norms, np.float32)
        else:
            low, high = SAFE_NORMS[np.dtype(np.float32)]
            for norms, part in ((q.norms, (slice(None), None)), (d.norms, (None, slice(None)))):
                unsafe = (norms > 0) & ~((norms > low) & (norms < high))
                if unsafe.any():  # the definition decides
                    values.masked_fill_(self.device.backend.to_device(unsafe)[part], np.nan)
            dims, u = self.queries.dims, 2.0**-24
            # The product, both norms in float32, two divisions and two multiplications.
            bound = 1.02 * relative_error(dims + 2, np.float32) + 2.04 * (dims + 4) * u + 16 * u
            row_error, doc_error = np.stack([np.full(q.n, bound), np.zeros(q.n)]), np.ones((1, d.n))
        self._find_zero_rows(q, d)
        return DeviceApproximateScores(values, row_error, doc_error, backend=self.device.backend)

    def exact_scores(self, q: VectorBlock, d: Any, i: Indices, j: Indices) -> Floats:
        """The scores of some pairs: in float64 on the device, and by the definition where that leaves them open."""
        if not isinstance(d, DocRows):
            return super().exact_scores(q, d, i, j)
        if not len(i):
            return np.zeros(0)
        value, error = self._wide_scores(numbers_of(q.rows, i), d.start + j, q.norms[i] * d.norms[j])
        low, high = self.rounding(value - error), self.rounding(value + error)
        is_open = np.flatnonzero(~(np.isfinite(low) & (low == high) & (np.signbit(low) == np.signbit(high))))
        if len(is_open):
            rows, place = np.unique(d.start + j[is_open], return_inverse=True)
            low[is_open] = super().exact_scores(q, super().doc_block(rows), i[is_open], place)
        return low

    def _wide_scores(self, query: Indices, doc: Indices, norms: Floats) -> tuple[Floats, Floats]:
        """Scores of pairs in float64, and bounds on their errors."""
        queries, docs, torch = self.device.queries, self.device.docs, self.device.backend.torch
        parts = []
        for part in split(slice(0, len(query)), max(CHUNK // queries.dims, 1)):
            a, b = queries.take(query[part]).double(), docs.take(doc[part]).double()
            value = (a * b).sum(-1)
            if self.fn == "cosine":
                value = value / (torch.linalg.vector_norm(a, dim=-1) * torch.linalg.vector_norm(b, dim=-1))
            parts.append(self.device.backend.to_numpy(value))
        bound = 4 * relative_error(queries.dims + 4, np.float64)
        return np.concatenate(parts), bound * (norms if self.fn == "dot" else np.ones(len(norms)))

    def exact_matrix(self, q: VectorBlock, d: Any, bias: Floats | None = None) -> Floats:
        """The scores of all pairs, computed in main memory."""
        return super().exact_matrix(q, super().doc_block(d.rows) if isinstance(d, DocRows) else d, bias)


@dataclass(frozen=True)
class DeviceApproximateScores(ApproximateScores):
    """A block of approximate scores on a device; one error bound decides for all scores of a row."""

    backend: TorchBackend = field(kw_only=True)

    def kth_lower_bound(self, k: int) -> Floats | None:
        """(n_rows,): at least k documents score this much; None if there are fewer than 2k."""
        if self.values.shape[1] < 2 * k:
            return None
        best = self.backend.torch.topk(
            self.backend.torch.nan_to_num(self.values, nan=-np.inf), k, dim=1, sorted=False
        ).values.amin(1)
        return np.asarray(self.backend.to_numpy(best.double())) - self.max_error()

    def count(self, thresholds: Thresholds, max_near: int) -> Decided:
        """See `ApproximateScores.count`; no score is certainly equal to a threshold."""
        low, _, _, high = thresholds.bounds
        error, (rows, width) = self.max_error()[:, None], low.shape
        lowest, highest = self._to_device(low - error, -np.inf), self._to_device(high + error, np.inf)
        above, near = np.zeros((rows, width), np.int64), [np.zeros((3, 0), np.int64)]
        for column in range(width):
            is_above = self.values > highest[:, column, None]
            above[:, column] = self.backend.to_numpy(is_above.sum(1))
            is_used = self.backend.to_device(thresholds.sizes > column)
            is_near = ~(is_above | (self.values < lowest[:, column, None])) & is_used[:, None]
            found = self.backend.to_numpy(self.backend.torch.nonzero(is_near)).T
            near.append(np.stack([found[0], np.full(found.shape[1], column), found[1]]))
        row, place, doc = np.concatenate(near, 1)
        skipped = np.bincount(row, minlength=rows) > max_near
        above[skipped] = 0
        kept = ~skipped[row]
        smallest = self.backend.torch.nan_to_num(self.values, nan=np.inf, neginf=np.inf).amin(1)
        lowest = np.asarray(self.backend.to_numpy(smallest.double())) + self.max_error()
        return Decided(above, np.zeros_like(above), lowest, skipped, (row[kept], place[kept], doc[kept]))

    def select(
        self, limit: Floats, max_selected: int, *, below: bool = False
    ) -> tuple[NDArray[np.bool_], tuple[Indices, Indices, Floats]]:
        """See `ApproximateScores.select`."""
        limit = np.where(np.isnan(limit), np.inf if below else -np.inf, limit)
        if below:
            is_out = self.values > self._to_device(limit + self.max_error(), np.inf)[:, None]
        else:
            is_out = self.values < self._to_device(limit - self.max_error(), -np.inf)[:, None]
        counts = self.backend.to_numpy((~is_out).sum(1))
        skipped = np.asarray(counts > max_selected)
        is_out |= self.backend.to_device(skipped)[:, None]
        row, doc = self.backend.torch.nonzero(~is_out, as_tuple=True)
        value = self.backend.to_numpy(self.values[row, doc].double())
        return skipped, (self.backend.to_numpy(row), self.backend.to_numpy(doc), value)

    def _to_device(self, bound: Floats, outward: float) -> Array:
        """Bounds in float32, rounded outward."""
        single = bound.astype(np.float32)
        wrong = single > bound if outward < 0 else single < bound
        return self.backend.to_device(np.where(wrong, np.nextafter(single, np.float32(outward)), single))
