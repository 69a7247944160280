"""Counting on a GPU: one reading of the scores for all thresholds, in Triton.

A program reads a chunk of one row into registers and compares it with all thresholds of the row. It leaves its counts
in a table of chunks, which is small and is added up afterwards; the table also tells where equal scores are, so that
only those chunks are ever looked at again. Offsets are of 64 bits, counts of a chunk of 16.
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

__all__ = ["count", "small_ties", "tied"]

#: Scores a program reads, and the warps that read them; chosen by measurement.
BLOCK, WARPS = 2048, 1

#: Chunks among which one program looks for those that have the lowest score.
GROUP = 16

#: `small_ties` writes down groups of at most so many documents, and so many documents in all.
SMALL, ROOM = 64, 4096

#: Thresholds compared in one reading; a table of more is read in several.
MOST = 16


def count(torch: Any, scores: Any, values: Any) -> tuple[Any, Any]:
    """Of a matrix of scores and a table of thresholds on one device, without waiting for it: a table, and the counts
    of chunks, with which `tied` finds its way.

    A row of the table has the thresholds, how many scores lie above each, how many equal it, the lowest score, how
    often it occurs, and a number that is 0 if all scores are finite. It is of float64, which holds them all.
    """
    (rows, n), wide = scores.shape, values.shape[1]
    chunks, stride, here = -(-n // BLOCK), scores.stride(0), {"device": scores.device}
    counts = torch.empty((rows, chunks, wide), dtype=torch.int32, **here)
    lows, odd = (torch.empty((rows, chunks), dtype=scores.dtype, **here) for _ in range(2))
    table = torch.empty((rows, 3 * wide + 3), dtype=torch.float64, **here)
    sizes = {"BLOCK": BLOCK, "num_warps": WARPS}
    with torch.cuda.device(scores.device):
        for first in range(0, wide, MOST):
            marks = {"MANY": min(MOST, wide - first), **sizes}
            _scan[(rows * chunks,)](scores, stride, n, values, wide, first, counts, lows, odd, chunks, **marks)
        _add_up[(rows * (wide + 1),)](values, wide, counts, lows, odd, chunks, table, STEP=1024, num_warps=4)
        groups = -(-chunks // GROUP)
        _at_floor[(rows * groups,)](scores, stride, n, lows, chunks, table, wide, groups, GROUP=GROUP, **sizes)
    return table, counts


def small_ties(torch: Any, scores: Any, values: Any, table: Any, counts: Any) -> Any:
    """The documents of all small tie groups, before anybody has asked, without waiting for the device.

    First how many they are, then for each the place of its threshold in the table of values times 2**40, plus the
    document. Nothing is written of what does not fit.
    """
    (rows, n), (_, chunks, wide) = scores.shape, counts.shape
    found = torch.zeros(ROOM + 1, dtype=torch.int64, device=scores.device)
    places = (scores, scores.stride(0), n, values, wide, table, counts, chunks, found)
    with torch.cuda.device(scores.device):
        _write_small[(rows * wide,)](*places, SMALL=SMALL, ROOM=ROOM, STEP=1024, BLOCK=BLOCK, num_warps=4)
    return found


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
def _scan(scores, stride, n, values, wide, first, counts, lows, odd, chunks, MANY: tl.constexpr, BLOCK: tl.constexpr):
    """Count in one chunk, and leave its lowest score and whether anything in it is not finite."""
    place = tl.program_id(0).to(tl.int64)
    row = place // chunks
    chunk = place - row * chunks
    at = chunk * BLOCK + tl.arange(0, BLOCK)
    mine = scores + row * stride + at
    past = (chunk + 1) * BLOCK - n  # places of the chunk behind the end; what fills them lies above everything
    if past <= 0:
        past = past * 0
        x = tl.load(mine)
        nothing = tl.sum(x * 0.0)  # NaN if anything is not finite
    else:
        x = tl.load(mine, mask=at < n, other=float("inf"))
        nothing = tl.sum(tl.where(at < n, x * 0.0, 0.0))
    for j in tl.static_range(MANY):
        value = tl.load(values + row * wide + first + j)
        above = tl.sum(tl.where(x > value, 1.0, 0.0)).to(tl.int32) - past.to(tl.int32)  # floats are added fastest
        equal = tl.sum(tl.where(x == value, 1.0, 0.0)).to(tl.int32)
        tl.store(counts + place * wide + first + j, above + (equal << 16))
    if first == 0:
        tl.store(lows + place, tl.min(x))
        tl.store(odd + place, nothing)


@_kernel
def _add_up(values, wide, counts, lows, odd, chunks, table, STEP: tl.constexpr):
    """Add up the counts of a threshold; the last program of a row finds its lowest score."""
    row = tl.program_id(0).to(tl.int64) // (wide + 1)
    j = tl.program_id(0).to(tl.int64) - row * (wide + 1)
    out = table + row * (3 * wide + 3)
    if j < wide:
        above = tl.zeros([STEP], dtype=tl.int64)
        equal = tl.zeros([STEP], dtype=tl.int64)
        for begin in range(0, chunks, STEP):
            at = begin + tl.arange(0, STEP)
            both = tl.load(counts + (row * chunks + at) * wide + j, mask=at < chunks, other=0)
            above += both & 0xFFFF
            equal += both >> 16
        tl.store(out + j, tl.load(values + row * wide + j).to(tl.float64))
        tl.store(out + wide + j, tl.sum(above).to(tl.float64))
        tl.store(out + 2 * wide + j, tl.sum(equal).to(tl.float64))
    else:
        low = tl.full([STEP], float("inf"), dtype=tl.float64)
        nothing = tl.zeros([STEP], dtype=tl.float64)
        for begin in range(0, chunks, STEP):
            at = begin + tl.arange(0, STEP)
            mine = row * chunks + at
            low = tl.minimum(low, tl.load(lows + mine, mask=at < chunks, other=float("inf")).to(tl.float64))
            nothing += tl.load(odd + mine, mask=at < chunks, other=0.0).to(tl.float64)
        tl.store(out + 3 * wide, tl.min(low))
        tl.store(out + 3 * wide + 1, 0.0)
        tl.store(out + 3 * wide + 2, tl.sum(nothing))


@_kernel
def _at_floor(scores, stride, n, lows, chunks, table, wide, groups, GROUP: tl.constexpr, BLOCK: tl.constexpr):
    """Count the lowest score of a row in the chunks that have it."""
    row = tl.program_id(0).to(tl.int64) // groups
    first = (tl.program_id(0).to(tl.int64) - row * groups) * GROUP
    out = table + row * (3 * wide + 3) + 3 * wide
    floor = tl.load(out)
    some = first + tl.arange(0, GROUP)
    low = tl.load(lows + row * chunks + some, mask=some < chunks, other=float("inf")).to(tl.float64)
    if tl.min(low) == floor:
        for chunk in range(first, tl.minimum(first + GROUP, chunks)):
            if tl.load(lows + row * chunks + chunk).to(tl.float64) == floor:
                at = chunk * BLOCK + tl.arange(0, BLOCK)
                x = tl.load(scores + row * stride + at, mask=at < n, other=float("inf"))
                tl.atomic_add(out + 1, tl.sum(tl.where(x.to(tl.float64) == floor, 1.0, 0.0)).to(tl.float64))


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


@_kernel
def _write_small(
    scores, stride, n, values, wide, table, counts, chunks, found,
    SMALL: tl.constexpr, ROOM: tl.constexpr, STEP: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Write down the documents that tie at one threshold, from chunk to chunk, if they are few."""
    place = tl.program_id(0).to(tl.int64)
    row = place // wide
    column = place - row * wide
    many = tl.load(table + row * (3 * wide + 3) + 2 * wide + column).to(tl.int64)
    if (many > 1) & (many <= SMALL):
        begin = tl.atomic_add(found, many)
        if begin + many <= ROOM:
            value = tl.load(values + place)
            for first in range(0, chunks, STEP):
                number = tl.arange(0, STEP)
                mine = counts + (row * chunks + first + number) * wide + column
                hits = tl.load(mine, mask=first + number < chunks, other=0) >> 16
                while tl.max(hits, 0) > 0:
                    which = tl.argmax(hits, 0)
                    hits = tl.where(number == which, 0, hits)
                    at = (first + which).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
                    x = tl.load(scores + row * stride + at, mask=at < n, other=float("inf"))
                    same = (x == value).to(tl.int64)
                    tl.store(found + begin + tl.cumsum(same, 0), (place << 40) + at, mask=same > 0)
                    begin += tl.sum(same, 0)
