"""Selecting the best documents on a GPU in Triton, by the maxima of chunks.

The k-th largest of the maxima of chunks is a limit that k documents reach, and few others. Only chunks that reach it
are read again. A document and its score are one integer, the key, so that they are sorted together: a higher score has
a higher key; of equal scores, the earlier document has it. −0 equals 0, scores may be infinite, and NaN has no place in
the order. The upper 32 bits are those of the score, as an integer that sorts like it; the lower 32 bits count documents
from the last.
"""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tiewise.scoring.score_kernels import kernel, kernel_arguments, load_scores, tl

#: The scores that a program reads, one chunk or several.
BLOCK = 2048

#: With smaller chunks, documents are not selected by the maxima of chunks.
SMALLEST_CHUNK = 16

#: The key of no document, below those of all others; and the last document that a key has room for.
NO_DOCUMENT, LAST_DOCUMENT = -(2**63), 2**32 - 1


class Selection:
    """The k best documents of each row of a `ScoreBlock` in float32, and all that tie with the k-th."""

    def __init__(self, torch: Any, block: Any, k: int):
        scores, *factors = kernel_arguments(block)
        self.torch, self.block, self.k, self.device = torch, block, k, scores.device
        self.rows, self.n = scores.shape
        self.size = _selection_chunk(self.n, k)
        self.chunks, on_device = -(-self.n // self.size), {"device": scores.device}
        self.programs = -(-self.n // BLOCK)  # of each row
        maxima = torch.empty((self.rows, self.chunks), dtype=scores.dtype, **on_device)
        not_finite = torch.empty((self.rows, self.programs), dtype=scores.dtype, **on_device)
        self._inputs = (scores, scores.stride(0), self.n, *factors, maxima, self.chunks, not_finite, self.programs)
        self._options = {"FACTORS": block.has_factors, "CHUNK": self.size, "BLOCK": BLOCK, "num_warps": 4}
        with torch.cuda.device(self.device):
            _find_maxima[(self.rows * self.programs,)](*self._inputs, **self._options)
        self.limit = torch.topk(maxima, k, dim=1, sorted=False).values.amin(1)

    def select(self, capacity: int) -> Any:
        """One array for each row: how many documents reach the limit, and 0 if all scores are finite; then `capacity`
        keys in descending order, for `unpack_keys`.
        """
        torch, on_device = self.torch, {"dtype": self.torch.int64, "device": self.device}
        per_row = torch.zeros((self.rows, 2), **on_device)
        keys = torch.full((self.rows, capacity), NO_DOCUMENT, **on_device)
        with torch.cuda.device(self.device):
            _select_documents[(self.rows * self.programs,)](
                *self._inputs, self.limit, per_row, keys, capacity, **self._options
            )
        return torch.cat([per_row, keys.sort(dim=1, descending=True).values], 1)


def unpack_keys(keys: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The documents and scores of keys."""
    bits = (keys >> 32).astype(np.int32)
    scores = (bits ^ ((bits >> 31) & 0x7FFFFFFF)).view(np.float32)  # of negative ones, all but the sign are inverted
    return ~keys & LAST_DOCUMENT, scores.astype(np.float64)


def lowest_equal_key(keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """A bound for each key: keys with a score at least as high are at or above it, all others are below."""
    return keys >> 32 << 32


def can_select(block: Any, k: int) -> bool:
    """Whether `Selection` finds the k best: scores are in float32, and chunks are not too small."""
    return block.products.element_size() == 4 and _selection_chunk(block.products.shape[1], k) >= SMALLEST_CHUNK


def _selection_chunk(n: int, k: int) -> int:
    """The size of chunks in which k of n documents are selected: small enough for four chunks per document."""
    size = BLOCK
    while size >= SMALLEST_CHUNK and -(-n // size) < 4 * k:
        size //= 2
    return size


@kernel
def _find_maxima(
    scores, stride, n, doc_factors, query_factors, maxima, chunks, not_finite, programs,
    FACTORS: tl.constexpr, CHUNK: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Write the largest scores of some chunks of a row, and whether all of them are finite."""
    program = tl.program_id(0).to(tl.int64)
    row = program // programs
    part = program - row * programs
    doc = part * BLOCK + tl.arange(0, BLOCK)
    query_factor = tl.load(query_factors + row)
    x = load_scores(scores + row * stride, doc, n, doc_factors, query_factor, float("-inf"), FACTORS)
    chunk = part * (BLOCK // CHUNK) + tl.arange(0, BLOCK // CHUNK)
    largest = tl.max(tl.reshape(x, (BLOCK // CHUNK, CHUNK)), 1)
    tl.store(maxima + row * chunks + chunk, largest, mask=chunk < chunks)
    tl.store(not_finite + program, tl.sum(tl.where(doc < n, x * 0.0, 0.0)))


@kernel
def _select_documents(
    scores, stride, n, doc_factors, query_factors, maxima, chunks, not_finite, programs, limits, per_row, keys,
    capacity, FACTORS: tl.constexpr, CHUNK: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Write keys for the documents of some chunks that reach the limit of their row, in any order."""
    program = tl.program_id(0).to(tl.int64)
    row = program // programs
    part = program - row * programs
    limit = tl.load(limits + row)
    if tl.load(not_finite + program) != 0.0:  # NaN
        tl.store(per_row + 2 * row + 1, 1)
    chunk = part * (BLOCK // CHUNK) + tl.arange(0, BLOCK // CHUNK)
    if tl.max(tl.load(maxima + row * chunks + chunk, mask=chunk < chunks, other=float("-inf"))) >= limit:
        doc = part * BLOCK + tl.arange(0, BLOCK)
        query_factor = tl.load(query_factors + row)
        x = load_scores(scores + row * stride, doc, n, doc_factors, query_factor, float("-inf"), FACTORS)
        reaches = (x >= limit) & (doc < n)
        place = tl.atomic_add(per_row + 2 * row, tl.sum(reaches.to(tl.int64))) + tl.cumsum(reaches.to(tl.int64), 0) - 1
        bits = tl.where(x == 0.0, 0.0, x).to(tl.int32, bitcast=True)  # −0 equals 0
        bits = bits ^ ((bits >> 31) & 0x7FFFFFFF)
        key = (bits.to(tl.int64) << 32) | (0xFFFFFFFF - doc)
        tl.store(keys + row * capacity + place, key, mask=reaches & (place < capacity))
