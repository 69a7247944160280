"""Counting on a GPU in Triton: one pass over the scores for all thresholds.

A program loads a chunk of one row into registers and compares it with all thresholds of the row. It writes its counts
to a table of chunks, which is small and is summed afterwards. The table also shows which chunks hold equal scores, so
that only those chunks are read again. Offsets have 64 bits, the counts of a chunk 16.

The time goes into comparing, not into reading, and a GPU compares at half the speed at which it multiplies and adds. So
a score x is compared with a threshold v by arithmetic: (x − v) · 2¹²⁶ + 2⁻¹², clamped to [0, 1], is 1 above, 2⁻¹² where
both are equal and 0 below, and one sum of it holds both counts. This is exact: x − v is 0 only if both are equal;
otherwise, for |v| ≥ 2⁻¹⁰⁰, it is so far from 0 that the product is beyond 1. Smaller thresholds and float64 are
compared directly.
"""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import Any

from tiewise.scoring.score_kernels import kernel, kernel_arguments, load_scores, tl, triton

#: The scores that a program reads, and its warps; chosen by measurement.
BLOCK, WARPS = 2048, 1

#: With more thresholds in a row, each score is searched among them; the chunks that a program searches.
MAX_COMPARISONS, SEARCHED_CHUNKS = 48, 32

#: The scores that are searched at a time, and the warps that do it; chosen by measurement.
SEARCH_BLOCK, SEARCH_WARPS = 1024, 4

#: The smallest threshold that is compared by arithmetic; and 1 over the sum of one equal score, larger than a chunk.
TINY, UNIT = 2.0**-100, 4096


def count(torch: Any, block: Any, thresholds: Any, docs: Any, digits: int) -> tuple[Any, Any]:
    """Counts for a `ScoreBlock` and a table of thresholds on one device; and the counts of chunks, for `find_tied`.

    It does not wait for the device. The counts are one array of 64-bit integers with these tables one after the other:
    the thresholds (the bits of their float64 values), the scores above each, and the scores equal to it, all in the
    shape of `thresholds`; then for each row the lowest score (its bits), how often it occurs, and 0 if all scores are
    finite. With `docs`, the documents whose scores the thresholds are, two more tables in the shape of `thresholds`
    follow: how many tied documents have an earlier row, and how many have a row that is greater as text. `digits` is
    the number of digits of the last row.
    """
    scores, *factors = kernel_arguments(block)
    (rows, n), width = scores.shape, thresholds.shape[1]
    chunks, stride, on_device = -(-n // BLOCK), scores.stride(0), {"device": scores.device}
    counts = torch.empty((rows, chunks, width), dtype=torch.int32, **on_device)
    row_chunks = torch.empty((2, rows, chunks), dtype=scores.dtype, **on_device)
    out = torch.empty(rows * ((3 if docs is None else 5) * width + 3), dtype=torch.int64, **on_device)
    fast, padded_width = scores.dtype == torch.float32, triton.next_power_of_2(width)
    inputs = (scores, stride, n, *factors, thresholds, width, counts, row_chunks, row_chunks[1], chunks)
    options = {"FACTORS": block.has_factors, "BLOCK": BLOCK}
    order = (thresholds if docs is None else docs, digits, 10 ** (digits - 1))
    with torch.cuda.device(scores.device):
        _count_chunk[(rows * chunks,)](
            *inputs, FAST=fast, TINY=TINY, UNIT=UNIT, PADDED_WIDTH=padded_width, num_warps=WARPS, **options
        )
        _sum_chunks[(rows * (width + 1),)](
            *inputs, rows, out, *order, ORDER=docs is not None, STEP=1024, num_warps=4, **options
        )
    return out, counts


def count_by_search(torch: Any, block: Any, thresholds: Any) -> Any:
    """The counts of `count`, without `docs`, for many thresholds.

    Every score is searched among the sorted thresholds of its row. A program counts how many scores are between two
    thresholds, and how many equal one.
    """
    scores, *factors = kernel_arguments(block)
    (rows, n), width, on_device = scores.shape, thresholds.shape[1], {"device": scores.device}
    chunks, stride = -(-n // SEARCH_BLOCK), scores.stride(0)
    ascending, order = thresholds.sort(dim=1)
    bins = 2 * width + 1
    histogram = torch.zeros((rows, bins), dtype=torch.int32, **on_device)
    row_chunks = torch.empty((2, rows, chunks), dtype=scores.dtype, **on_device)
    per_row = torch.empty((3, rows), dtype=torch.int64, **on_device)
    groups = -(-chunks // SEARCHED_CHUNKS)
    inputs = (scores, stride, n, *factors, ascending, width, histogram, row_chunks, row_chunks[1], chunks)
    options = {"FACTORS": block.has_factors, "BLOCK": SEARCH_BLOCK}
    with torch.cuda.device(scores.device):
        _search_chunks[(rows * groups,)](
            *inputs, groups, bins, STEPS=width.bit_length(), CHUNKS=SEARCHED_CHUNKS, num_warps=SEARCH_WARPS, **options
        )
        _sum_chunks[(rows,)](
            *inputs[:6], 0, *inputs[7:], rows, per_row, ascending, 1, 1, ORDER=False, STEP=1024, num_warps=4, **options
        )
    first = torch.searchsorted(ascending, ascending)  # equal thresholds share the bins of the first one
    at_or_below = histogram.cumsum(1).gather(1, 2 * first + 1)
    equal = histogram.gather(1, 2 * first + 1).long()
    table = torch.empty((2, rows, width), dtype=torch.int64, **on_device)
    table[0].scatter_(1, order, n - at_or_below)
    table[1].scatter_(1, order, equal)
    return torch.cat([thresholds.double().view(torch.int64).ravel(), table.ravel(), per_row.ravel()])


def find_by_search(torch: Any, block: Any, thresholds: Any, first: Any, n_docs: int) -> Any:
    """The documents whose scores equal thresholds, and the numbers of these thresholds, in any order.

    The thresholds of a row are distinct and ascending, and infinity follows. Their numbers begin at `first` of the row.
    `n_docs` is the number of documents.
    """
    scores, *factors = kernel_arguments(block)
    (rows, n), width, on_device = scores.shape, thresholds.shape[1], {"dtype": torch.int64, "device": scores.device}
    chunks = -(-n // SEARCH_BLOCK)
    found, size = torch.empty((2, n_docs), **on_device), torch.zeros(1, **on_device)
    inputs = (scores, scores.stride(0), n, *factors, thresholds, width, first, chunks, found, n_docs, size)
    options = {"FACTORS": block.has_factors, "BLOCK": SEARCH_BLOCK}
    with torch.cuda.device(scores.device):
        _find_by_search[(rows * chunks,)](*inputs, STEPS=width.bit_length(), num_warps=SEARCH_WARPS, **options)
    return found


def find_tied(torch: Any, block: Any, thresholds: Any, counts: Any, cells: Any, n_docs: int) -> Any:
    """The documents whose scores equal some of the thresholds.

    `cells` has three rows: the row and the column of each threshold, and the position of its first document in the
    result. `n_docs` is the length of the result.
    """
    scores, *factors = kernel_arguments(block)
    (_, n), (_, chunks, width), n_cells = scores.shape, counts.shape, cells.shape[1]
    docs = torch.empty(n_docs, dtype=torch.int64, device=scores.device)
    inputs = (scores, scores.stride(0), n, *factors, thresholds, width, counts, chunks, cells, n_cells, docs)
    with torch.cuda.device(scores.device):
        _find_tied_in_chunk[(n_cells * chunks,)](*inputs, FACTORS=block.has_factors, BLOCK=BLOCK, num_warps=4)
    return docs


@kernel
def _count_chunk(
    scores, stride, n, doc_factors, query_factors, thresholds, width, counts, lowest, not_finite, chunks,
    FAST: tl.constexpr, TINY: tl.constexpr, UNIT: tl.constexpr, PADDED_WIDTH: tl.constexpr,
    FACTORS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Count in one chunk, and write its lowest score and whether all of it is finite."""
    program = tl.program_id(0).to(tl.int64)
    row = program // chunks
    chunk = program - row * chunks
    doc = chunk * BLOCK + tl.arange(0, BLOCK)
    pointer, query_factor = scores + row * stride + doc, tl.load(query_factors + row)
    if (chunk + 1) * BLOCK <= n:
        x = tl.load(pointer)
        if FACTORS:
            x = x * tl.load(doc_factors + doc) * query_factor
        low = tl.min(x)
        zero = tl.sum(x * 0.0)  # NaN if anything is not finite
    else:  # behind the end, −infinity is below every threshold
        x = load_scores(scores + row * stride, doc, n, doc_factors, query_factor, float("-inf"), FACTORS)
        low = tl.min(tl.where(doc < n, x, float("inf")))
        zero = tl.sum(tl.where(doc < n, x * 0.0, 0.0))
    number, out, first = tl.arange(0, PADDED_WIDTH), counts + program * width, thresholds + row * width
    smallest = tl.min(tl.abs(tl.load(first + number, mask=number < width, other=float("inf"))))
    if FAST and smallest >= TINY:
        for j in range(0, width, 2):  # two at a time, so that one does not wait for the sums of the other
            has_second = j + 1 < width
            one, two = tl.load(first + j), tl.load(first + j + 1, mask=has_second, other=float("inf"))
            tl.store(out + j, _compare_by_arithmetic(x, one, UNIT))
            tl.store(out + j + 1, _compare_by_arithmetic(x, two, UNIT), mask=has_second)
    else:
        for j in range(width):
            tl.store(out + j, _compare(x, tl.load(first + j)))
    tl.store(lowest + program, low)
    tl.store(not_finite + program, zero)


@kernel
def _compare_by_arithmetic(x, threshold, UNIT: tl.constexpr):
    """The result of `_compare`, computed as the top of this module says; 2¹²⁶ and 2⁻¹² are given by their bits."""
    step: tl.constexpr = "fma.rn.sat.f32 $0, $1, 0f7E800000, 0f39800000;"
    weight = tl.inline_asm_elementwise(step, "=f,f", [x - threshold], dtype=tl.float32, is_pure=True, pack=1)
    both = (tl.sum(weight) * UNIT).to(tl.int32)
    return both // UNIT + ((both % UNIT) << 16)


@kernel
def _compare(x, threshold):
    """The number of scores above a threshold, plus 2¹⁶ times the number equal to it."""
    above = tl.sum(tl.where(x > threshold, 1.0, 0.0)).to(tl.int32)  # floats are added fastest
    return above + (tl.sum(tl.where(x == threshold, 1.0, 0.0)).to(tl.int32) << 16)


@kernel
def _sum_chunks(
    scores, stride, n, doc_factors, query_factors, thresholds, width, counts, lowest, not_finite, chunks, rows, out,
    docs, digits, power,
    ORDER: tl.constexpr, STEP: tl.constexpr, FACTORS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Sum over the chunks of a row: the counts of one threshold, or those of the lowest score."""
    row = tl.program_id(0).to(tl.int64) // (width + 1)
    j = tl.program_id(0).to(tl.int64) - row * (width + 1)
    row_scores, per_row, size = scores + row * stride, out + 3 * rows * width, rows * width
    query_factor = tl.load(query_factors + row)
    if j < width:
        cell, chunk_counts = row * width + j, counts + row * chunks * width + j
        threshold = tl.load(thresholds + cell)
        equal = _sum_threshold(threshold, width, chunk_counts, chunks, out + cell, size, STEP)
        if ORDER:
            own, before = tl.load(docs + cell), per_row + 3 * rows + cell
            _count_ties_before(
                row_scores, n, doc_factors, query_factor, threshold, width, chunk_counts, chunks, equal, own, digits,
                power, before, size, STEP, FACTORS, BLOCK,
            )  # fmt: skip
    else:
        _count_lowest(
            row_scores, n, doc_factors, query_factor, lowest + row * chunks, not_finite + row * chunks, chunks,
            per_row + row, rows, STEP, FACTORS, BLOCK,
        )  # fmt: skip


@kernel
def _sum_threshold(threshold, width, counts, chunks, out, distance, STEP: tl.constexpr):
    """Sum the counts of a threshold, and return how many scores equal it."""
    number = tl.arange(0, STEP)
    above = tl.zeros([STEP], dtype=tl.int64)
    equal = tl.zeros([STEP], dtype=tl.int64)
    for first in range(0, chunks, STEP):
        both = tl.load(counts + (first + number) * width, mask=first + number < chunks, other=0)
        above += both & 0xFFFF
        equal += both >> 16
    total = tl.sum(equal)
    tl.store(out, threshold.to(tl.float64).to(tl.int64, bitcast=True))
    tl.store(out + distance, tl.sum(above))
    tl.store(out + 2 * distance, total)
    return total


@kernel
def _count_ties_before(
    scores, n, doc_factors, query_factor, threshold, width, counts, chunks, equal, own, digits, power, out, distance,
    STEP: tl.constexpr, FACTORS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Count the documents that equal a threshold and are before its own document: by row, and by the row as text."""
    earlier, greater = tl.zeros([BLOCK], dtype=tl.int64), tl.zeros([BLOCK], dtype=tl.int64)
    if equal > 1:
        number, own_key = tl.arange(0, STEP), _text_key(own, digits, power)
        for first in range(0, chunks, STEP):
            hits = tl.load(counts + (first + number) * width, mask=first + number < chunks, other=0) >> 16
            while tl.max(hits, 0) > 0:
                which = tl.argmax(hits, 0)
                hits = tl.where(number == which, 0, hits)
                doc = (first + which).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
                same = load_scores(scores, doc, n, doc_factors, query_factor, float("-inf"), FACTORS) == threshold
                earlier += (same & (doc < own)).to(tl.int64)
                greater += (same & (_text_key(doc, digits, power) > own_key)).to(tl.int64)
    tl.store(out, tl.sum(earlier))
    tl.store(out + distance, tl.sum(greater))


@kernel
def _text_key(row, digits, power):
    """Integers that sort like rows in decimal notation: filled with zeros to all digits; shorter numbers come first."""
    missing = row * 0
    for _ in range(digits - 1):
        is_short = row < power
        row = tl.where(is_short, row * 10, row)
        missing += is_short.to(tl.int64)
    return row * digits - missing


@kernel
def _count_lowest(
    scores, n, doc_factors, query_factor, lowest, not_finite, chunks, out, distance,
    STEP: tl.constexpr, FACTORS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Find the lowest score of a row, count it in the chunks that have it, and sum what is not finite."""
    number = tl.arange(0, STEP)
    low = tl.full([STEP], float("inf"), dtype=tl.float64)
    zero = tl.zeros([STEP], dtype=tl.float64)
    for first in range(0, chunks, STEP):
        exists = first + number < chunks
        low = tl.minimum(low, tl.load(lowest + first + number, mask=exists, other=float("inf")).to(tl.float64))
        zero += tl.load(not_finite + first + number, mask=exists, other=0.0).to(tl.float64)
    smallest = tl.min(low)
    size = tl.zeros([BLOCK], dtype=tl.int64)
    for first in range(0, chunks, STEP):
        ends = tl.load(lowest + first + number, mask=first + number < chunks, other=float("inf")).to(tl.float64)
        hits = (ends == smallest).to(tl.int32)
        while tl.max(hits, 0) > 0:
            which = tl.argmax(hits, 0)
            hits = tl.where(number == which, 0, hits)
            doc = (first + which).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
            x = load_scores(scores, doc, n, doc_factors, query_factor, float("inf"), FACTORS).to(tl.float64)
            size += (x == smallest).to(tl.int64)
    tl.store(out, smallest.to(tl.int64, bitcast=True))
    tl.store(out + distance, tl.sum(size))
    tl.store(out + 2 * distance, (tl.sum(zero) != 0).to(tl.int64))


@kernel
def _search(x, first, width, STEPS: tl.constexpr):
    """How many of the ascending thresholds are below each score; their number has `STEPS` bits."""
    below = tl.zeros_like(x).to(tl.int32)
    for step in tl.static_range(STEPS):
        more = below + (1 << (STEPS - 1 - step))
        last = tl.load(first + more - 1, mask=more <= width, other=float("inf"))
        below = tl.where(last < x, more, below)
    return below


@kernel
def _search_chunks(
    scores, stride, n, doc_factors, query_factors, thresholds, width, histogram, lowest, not_finite, chunks, groups,
    bins, STEPS: tl.constexpr, CHUNKS: tl.constexpr, FACTORS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Count in some chunks of a row: bin 2j for scores below threshold j and above the one before, 2j + 1 at it."""
    program = tl.program_id(0).to(tl.int64)
    row = program // groups
    first_chunk = (program - row * groups) * CHUNKS
    first, query_factor = thresholds + row * width, tl.load(query_factors + row)
    for number in range(CHUNKS):
        chunk = first_chunk + number
        if chunk < chunks:
            doc = chunk * BLOCK + tl.arange(0, BLOCK)
            exists = doc < n
            x = load_scores(scores + row * stride, doc, n, doc_factors, query_factor, float("-inf"), FACTORS)
            position = _search(x, first, width, STEPS)
            at = tl.load(first + position, mask=position < width, other=float("inf")) == x
            cell = histogram + row * bins + 2 * position + at.to(tl.int32)
            tl.atomic_add(cell, 1, mask=exists, sem="relaxed")  # faster than tl.histogram
            tl.store(lowest + row * chunks + chunk, tl.min(tl.where(exists, x, float("inf"))))
            tl.store(not_finite + row * chunks + chunk, tl.sum(tl.where(exists, x * 0.0, 0.0)))


@kernel
def _find_by_search(
    scores, stride, n, doc_factors, query_factors, thresholds, width, first, chunks, found, n_docs, size,
    STEPS: tl.constexpr, FACTORS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Write the documents of a chunk that equal a threshold, and its number, in any order."""
    program = tl.program_id(0).to(tl.int64)
    row = program // chunks
    doc = (program - row * chunks) * BLOCK + tl.arange(0, BLOCK)
    query_factor = tl.load(query_factors + row)
    x = load_scores(scores + row * stride, doc, n, doc_factors, query_factor, float("-inf"), FACTORS)
    position = _search(x, thresholds + row * width, width, STEPS)
    inside = (position < width) & (doc < n)
    same = inside & (tl.load(thresholds + row * width + position, mask=inside, other=float("inf")) == x)
    n_here = tl.sum(same.to(tl.int64))
    if n_here > 0:
        place = tl.atomic_add(size, n_here) + tl.cumsum(same.to(tl.int64), 0) - 1
        tl.store(found + place, tl.load(first + row) + position, mask=same & (place < n_docs))
        tl.store(found + n_docs + place, doc, mask=same & (place < n_docs))


@kernel
def _find_tied_in_chunk(
    scores, stride, n, doc_factors, query_factors, thresholds, width, counts, chunks, cells, n_cells, docs,
    FACTORS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Write the tied documents of a chunk behind those of the chunks before it."""
    cell = tl.program_id(0).to(tl.int64) // chunks
    chunk = tl.program_id(0).to(tl.int64) - cell * chunks
    row = tl.load(cells + cell)
    column = tl.load(cells + n_cells + cell)
    chunk_counts = counts + row * chunks * width + column
    if (tl.load(chunk_counts + chunk * width) >> 16) > 0:
        start = tl.load(cells + 2 * n_cells + cell)
        for before in range(chunk):
            start += tl.load(chunk_counts + before * width) >> 16
        doc = chunk * BLOCK + tl.arange(0, BLOCK)
        query_factor = tl.load(query_factors + row)
        x = load_scores(scores + row * stride, doc, n, doc_factors, query_factor, float("inf"), FACTORS)
        same = x == tl.load(thresholds + row * width + column)
        tl.store(docs + start + tl.cumsum(same.to(tl.int32), 0) - 1, doc, mask=same)
