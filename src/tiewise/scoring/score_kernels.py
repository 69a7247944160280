"""Scores in Triton kernels: how a kernel takes and loads the scores of a block, and products scaled to scores.

Triton comes with torch for CUDA. All kernels take it from here. Their modules are imported only when there are scores
on such a device (`device_counting.py`).
"""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from typing import Any

triton: Any = None
tl: Any = None
with suppress(ImportError):
    triton, tl = import_module("triton"), import_module("triton.language")

#: The products that a program scales, and the scores that it gathers.
SCALED, GATHERED = 4096, 128


def kernel(function: Any) -> Any:
    """A function for Triton to compile; the function itself where there is no Triton, so that its module loads."""
    return function if triton is None else triton.jit(function)


def kernel_arguments(block: Any) -> tuple[Any, Any, Any]:
    """Products and factors for a kernel; where there are no factors, the kernel does not read them."""
    if block.has_factors:
        return block.products, block.doc_factors, block.query_factors
    return block.products, block.products, block.products


@kernel
def load_scores(scores, doc, n, doc_factors, query_factor, other, FACTORS: tl.constexpr):
    """Scores of a row: products, or products times factors with two roundings, as torch does it."""
    x = tl.load(scores + doc, mask=doc < n, other=other)
    if FACTORS:
        x = x * tl.load(doc_factors + doc, mask=doc < n, other=1.0) * query_factor
    return x


def gather(block: Any, columns: Any) -> Any:
    """Some scores of each row of a `ScoreBlock`, in the shape of `columns`; infinity for negative columns."""
    scores, *factors = kernel_arguments(block)
    found, size = columns.new_empty(columns.shape, dtype=scores.dtype), columns.numel()
    inputs = (scores, scores.stride(0), *factors, columns, columns.shape[1], size, found)
    with import_module("torch").cuda.device(scores.device):
        _gather_cells[(-(-size // GATHERED),)](*inputs, FACTORS=block.has_factors, BLOCK=GATHERED, num_warps=4)
    return found


@kernel
def _gather_cells(
    scores, stride, doc_factors, query_factors, columns, width, size, found, FACTORS: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    """Write the scores of some cells of a table of columns."""
    cell = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    row = cell // width
    doc = tl.load(columns + cell, mask=cell < size, other=-1)
    x = tl.load(scores + row * stride + doc, mask=doc >= 0, other=0.0)
    if FACTORS:
        factor = tl.load(doc_factors + doc, mask=doc >= 0, other=0.0)
        x = x * factor * tl.load(query_factors + row, mask=doc >= 0, other=0.0)
    tl.store(found + cell, tl.where(doc >= 0, x, float("inf")), mask=cell < size)


def scale(products: Any, doc_factors: Any, query_factors: Any) -> None:
    """Multiply a matrix, in place, with a factor for each column and then with one for each row."""
    (rows, n), chunks = products.shape, -(-products.shape[1] // SCALED)
    inputs = (products, products.stride(0), n, doc_factors, query_factors, chunks)
    with import_module("torch").cuda.device(products.device):
        _scale_chunk[(rows * chunks,)](*inputs, BLOCK=SCALED, num_warps=4)


@kernel
def _scale_chunk(products, stride, n, doc_factors, query_factors, chunks, BLOCK: tl.constexpr):
    """Multiply one chunk of a row; two roundings, as torch does it."""
    program = tl.program_id(0).to(tl.int64)
    row = program // chunks
    doc = (program - row * chunks) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(products + row * stride + doc, mask=doc < n)
    x = x * tl.load(doc_factors + doc, mask=doc < n) * tl.load(query_factors + row)
    tl.store(products + row * stride + doc, x, mask=doc < n)
