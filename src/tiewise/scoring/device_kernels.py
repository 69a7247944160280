"""Counting on a GPU: one reading of the scores for all thresholds, in Triton.

A program reads a chunk of one row into registers and compares it with all thresholds of the row. It leaves its counts
in a table of chunks, which is small and is added up afterwards; the table also tells where equal scores are, so that
only those chunks are ever looked at again. Offsets are of 64 bits, counts of a chunk of 16.

Comparing, not reading, is what takes the time, and a GPU compares at half the speed at which it multiplies and adds. So
a score x is compared with a threshold v by arithmetic: (x − v) · 2¹²⁶ + 2⁻¹², cut to [0, 1], is 1 above, 2⁻¹² where
both are equal and 0 below, and one sum of it holds both counts. That is exact: x − v is 0 only if both are equal, and
else so far from it, for |v| ≥ 2⁻¹⁰⁰, that the product is beyond 1. Smaller thresholds and float64 are compared plainly.
"""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from typing import Any

triton: Any = None  # it comes with torch for CUDA, and is loaded only once there are scores on such a device
tl: Any = None
with suppress(ImportError):
    triton, tl = import_module("triton"), import_module("triton.language")

__all__ = ["count", "tied"]

#: Scores a program reads, and the warps that read them; chosen by measurement.
BLOCK, WARPS = 2048, 1

#: The least threshold that is compared by arithmetic, and what is 1 over the sum of one equal score: above any chunk.
TINY, UNIT = 2.0**-100, 4096


def count(torch: Any, scores: Any, values: Any, docs: Any, digits: int) -> tuple[Any, Any]:
    """Of a matrix of scores and a table of thresholds on one device, without waiting for it: what was counted, and the
    counts of chunks, with which `tied` finds its way.

    What was counted is one row of whole numbers of 64 bits, which holds it all, in tables one after another: the
    thresholds, by the bits that they have as float64, how many scores lie above each and how many equal it, all in the
    shape of `values`; then for each row the lowest score, by its bits, how often it occurs, and 0 if all scores are
    finite. With `docs`, the documents whose scores the thresholds are, two tables in the shape of `values` follow: how
    many that tie with it have an earlier row, and how many one that is greater as text. `digits` is how many digits the
    last row has.
    """
    (rows, n), wide = scores.shape, values.shape[1]
    chunks, stride, here = -(-n // BLOCK), scores.stride(0), {"device": scores.device}
    counts = torch.empty((rows, chunks, wide), dtype=torch.int32, **here)
    ends = torch.empty((2, rows, chunks), dtype=scores.dtype, **here)
    found = torch.empty(rows * ((3 if docs is None else 5) * wide + 3), dtype=torch.int64, **here)
    fast, marks = scores.dtype == torch.float32, triton.next_power_of_2(wide)
    read = (scores, stride, n, values, wide, counts, ends, ends[1], chunks)
    order = (values if docs is None else docs, digits, 10 ** (digits - 1))
    with torch.cuda.device(scores.device):
        _scan[(rows * chunks,)](*read, FAST=fast, TINY=TINY, UNIT=UNIT, MARKS=marks, BLOCK=BLOCK, num_warps=WARPS)
        _add_up[(rows * (wide + 1),)](
            *read, rows, found, *order, ORDER=docs is not None, STEP=1024, BLOCK=BLOCK, num_warps=4
        )
    return found, counts


def tied(torch: Any, scores: Any, values: Any, counts: Any, asked: Any, many: int) -> Any:
    """The documents whose scores equal some of the thresholds.

    `asked` has three rows: the row and the column of each threshold, and where its documents shall begin; `many` is
    how many they are in all.
    """
    (_, n), (_, chunks, wide), questions = scores.shape, counts.shape, asked.shape[1]
    docs = torch.empty(many, dtype=torch.int64, device=scores.device)
    places = (scores, scores.stride(0), n, values, wide, counts, chunks, asked, questions, docs)
    with torch.cuda.device(scores.device):
        _find[(questions * chunks,)](*places, STEP=1024, BLOCK=BLOCK, num_warps=4)
    return docs


def _kernel(function: Any) -> Any:
    return function if triton is None else triton.jit(function)


@_kernel
def _scan(
    scores, stride, n, values, wide, counts, lows, odd, chunks,
    FAST: tl.constexpr, TINY: tl.constexpr, UNIT: tl.constexpr, MARKS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Count in one chunk, and leave its lowest score and whether anything in it is not finite."""
    place = tl.program_id(0).to(tl.int64)
    row = place // chunks
    chunk = place - row * chunks
    at = chunk * BLOCK + tl.arange(0, BLOCK)
    mine = scores + row * stride + at
    if (chunk + 1) * BLOCK <= n:
        x = tl.load(mine)
        low = tl.min(x)
        nothing = tl.sum(x * 0.0)  # NaN if anything is not finite
    else:  # what stands for places behind the end lies below everything
        x = tl.load(mine, mask=at < n, other=float("-inf"))
        low = tl.min(tl.where(at < n, x, float("inf")))
        nothing = tl.sum(tl.where(at < n, x * 0.0, 0.0))
    number, out, first = tl.arange(0, MARKS), counts + place * wide, values + row * wide
    least = tl.min(tl.abs(tl.load(first + number, mask=number < wide, other=float("inf"))))
    if FAST and least >= TINY:
        for j in range(0, wide, 2):  # two at a time, so that neither waits for its own sums
            another = j + 1 < wide
            one, two = tl.load(first + j), tl.load(first + j + 1, mask=another, other=float("inf"))
            tl.store(out + j, _by_arithmetic(x, one, UNIT))
            tl.store(out + j + 1, _by_arithmetic(x, two, UNIT), mask=another)
    else:
        for j in range(wide):
            tl.store(out + j, _plainly(x, tl.load(first + j)))
    tl.store(lows + place, low)
    tl.store(odd + place, nothing)


@_kernel
def _by_arithmetic(x, value, UNIT: tl.constexpr):
    """What `_plainly` gives, as the beginning of this module says; 2¹²⁶ and 2⁻¹² stand there by their bits."""
    step: tl.constexpr = "fma.rn.sat.f32 $0, $1, 0f7E800000, 0f39800000;"
    held = tl.inline_asm_elementwise(step, "=f,f", [x - value], dtype=tl.float32, is_pure=True, pack=1)
    both = (tl.sum(held) * UNIT).to(tl.int32)
    return both // UNIT + ((both % UNIT) << 16)


@_kernel
def _plainly(x, value):
    """How many scores lie above a threshold, plus 2¹⁶ times how many equal it."""
    above = tl.sum(tl.where(x > value, 1.0, 0.0)).to(tl.int32)  # floats are added fastest
    return above + (tl.sum(tl.where(x == value, 1.0, 0.0)).to(tl.int32) << 16)


@_kernel
def _add_up(
    scores, stride, n, values, wide, counts, lows, odd, chunks, rows, found, docs, digits, most,
    ORDER: tl.constexpr, STEP: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Put together what chunks of a row have of a threshold, or of its lowest score."""
    row = tl.program_id(0).to(tl.int64) // (wide + 1)
    j = tl.program_id(0).to(tl.int64) - row * (wide + 1)
    mine, behind, size = scores + row * stride, found + 3 * rows * wide, rows * wide
    if j < wide:
        told, ours = row * wide + j, counts + row * chunks * wide + j
        value = tl.load(values + told)
        equal = _of_threshold(value, wide, ours, chunks, found + told, size, STEP)
        if ORDER:
            own, out = tl.load(docs + told), behind + 3 * rows + told
            _of_order(mine, n, value, wide, ours, chunks, equal, own, digits, most, out, size, STEP, BLOCK)
    else:
        _of_floor(mine, n, lows + row * chunks, odd + row * chunks, chunks, behind + row, rows, STEP, BLOCK)


@_kernel
def _of_threshold(value, wide, counts, chunks, out, apart, STEP: tl.constexpr):
    """Add up the counts of a threshold; how many scores equal it."""
    number = tl.arange(0, STEP)
    above = tl.zeros([STEP], dtype=tl.int64)
    equal = tl.zeros([STEP], dtype=tl.int64)
    for first in range(0, chunks, STEP):
        both = tl.load(counts + (first + number) * wide, mask=first + number < chunks, other=0)
        above += both & 0xFFFF
        equal += both >> 16
    many = tl.sum(equal)
    tl.store(out, value.to(tl.float64).to(tl.int64, bitcast=True))
    tl.store(out + apart, tl.sum(above))
    tl.store(out + 2 * apart, many)
    return many


@_kernel
def _of_order(
    scores, n, value, wide, counts, chunks, equal, own, digits, most, out, apart,
    STEP: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Count the documents that equal a threshold and stand before its own: by row, and by the row written down."""
    earlier, greater = tl.zeros([BLOCK], dtype=tl.int64), tl.zeros([BLOCK], dtype=tl.int64)
    if equal > 1:
        number, mine = tl.arange(0, STEP), _as_text(own, digits, most)
        for first in range(0, chunks, STEP):
            hits = tl.load(counts + (first + number) * wide, mask=first + number < chunks, other=0) >> 16
            while tl.max(hits, 0) > 0:
                which = tl.argmax(hits, 0)
                hits = tl.where(number == which, 0, hits)
                at = (first + which).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
                same = tl.load(scores + at, mask=at < n, other=float("-inf")) == value
                earlier += (same & (at < own)).to(tl.int64)
                greater += (same & (_as_text(at, digits, most) > mine)).to(tl.int64)
    tl.store(out, tl.sum(earlier))
    tl.store(out + apart, tl.sum(greater))


@_kernel
def _as_text(row, digits, most):
    """Numbers in the order of rows written in decimal: filled up with zeros to so many digits, then the fewer first."""
    missing = row * 0
    for _ in range(digits - 1):
        short = row < most
        row = tl.where(short, row * 10, row)
        missing += short.to(tl.int64)
    return row * digits - missing


@_kernel
def _of_floor(scores, n, lows, odd, chunks, out, apart, STEP: tl.constexpr, BLOCK: tl.constexpr):
    """Find the lowest score of a row, count it in the chunks that have it, and add up what is not finite."""
    number = tl.arange(0, STEP)
    low = tl.full([STEP], float("inf"), dtype=tl.float64)
    nothing = tl.zeros([STEP], dtype=tl.float64)
    for first in range(0, chunks, STEP):
        there = first + number < chunks
        low = tl.minimum(low, tl.load(lows + first + number, mask=there, other=float("inf")).to(tl.float64))
        nothing += tl.load(odd + first + number, mask=there, other=0.0).to(tl.float64)
    floor = tl.min(low)
    many = tl.zeros([BLOCK], dtype=tl.int64)
    for first in range(0, chunks, STEP):
        ends = tl.load(lows + first + number, mask=first + number < chunks, other=float("inf")).to(tl.float64)
        hits = (ends == floor).to(tl.int32)
        while tl.max(hits, 0) > 0:
            which = tl.argmax(hits, 0)
            hits = tl.where(number == which, 0, hits)
            at = (first + which).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
            x = tl.load(scores + at, mask=at < n, other=float("inf")).to(tl.float64)
            many += (x == floor).to(tl.int64)
    tl.store(out, floor.to(tl.int64, bitcast=True))
    tl.store(out + apart, tl.sum(many))
    tl.store(out + 2 * apart, (tl.sum(nothing) != 0).to(tl.int64))


@_kernel
def _find(
    scores, stride, n, values, wide, counts, chunks, asked, questions, docs, STEP: tl.constexpr, BLOCK: tl.constexpr
):
    """Write down the documents of a chunk that tie, behind those of the chunks before it."""
    question = tl.program_id(0).to(tl.int64) // chunks
    chunk = tl.program_id(0).to(tl.int64) - question * chunks
    row = tl.load(asked + question)
    column = tl.load(asked + questions + question)
    mine = counts + row * chunks * wide + column
    if (tl.load(mine + chunk * wide) >> 16) > 0:
        begin = tl.load(asked + 2 * questions + question)
        for before in range(chunk):
            begin += tl.load(mine + before * wide) >> 16
        at = chunk * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(scores + row * stride + at, mask=at < n, other=float("inf"))
        same = x == tl.load(values + row * wide + column)
        tl.store(docs + begin + tl.cumsum(same.to(tl.int32), 0) - 1, at, mask=same)
