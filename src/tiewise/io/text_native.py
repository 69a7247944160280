"""The compiled reader, where it is installed: lines become columns, and a file's lists are cut into blocks.

`tiewise._reader` cuts text and counts; it knows no message and no measure. Lines that it does not understand come back
as odd: they are checked here one by one, and written plainly if there is nothing wrong with them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from tiewise.data.columns import Codes, Floats
from tiewise.data.native import native
from tiewise.io.compression import Stream
from tiewise.io.layouts import Columns, Layout, Problems

__all__ = ["available", "columns", "parse", "reader", "whole_lists", "whole_lists_of"]

BLOCK = 1 << 20  # bytes that are counted at a time: rows and ids of so many stay in the cache


def available() -> bool:
    """Whether files are read by the compiled reader."""
    return native() is not None


def reader() -> Any:
    """The compiled module, where it is known to be there."""
    module = native()
    assert module is not None
    return module


def parse(block: Any, data: Any, problems: Problems, first: int, *, ranks: bool = False, tags: bool = False) -> None:
    """Read a block of lines; `first` is the number of its first line, for what is wrong with it."""
    layout = problems.layout
    how = len(layout.columns), layout.number, layout.tabs, ranks, tags
    block.parse(data, *how)
    if len(block.odd):
        block.parse(problems.plain(bytes(data).split(b"\n"), block.odd.tolist(), first), *how)


def whole_lists(chunks: Iterable[bytes]) -> Iterator[Any]:
    """Chunks of any size as blocks of whole lists: a cut falls only between two rows of different queries."""
    held: list[Any] = []
    rest = fresh = 0  # bytes of a list that goes on, and bytes after them
    for chunk in chunks:
        held.append(chunk)
        fresh += len(chunk)
        if fresh < max(BLOCK, rest):
            continue
        text = memoryview(b"".join(held))
        cut = reader().last_list(text)
        if cut:
            yield text[:cut]
        held, rest, fresh = [text[cut:]], len(text) - cut, 0
    if last := b"".join(held):
        yield last


def whole_lists_of(stream: Stream) -> Iterator[Any]:
    """The same of a file; one that is not compressed is read to where it stays: only the rest of a block is copied."""
    if stream.compressed:
        yield from whole_lists(stream.chunks())
        return
    rest = memoryview(b"")
    many = 1
    while many:
        memory = memoryview(np.empty(len(rest) + max(BLOCK, len(rest)), np.uint8))  # type: ignore[arg-type]
        memory[: len(rest)] = rest
        many = stream.readinto(memory[len(rest) :])
        held = len(rest) + many
        cut = reader().last_list(memory[:held]) if many else held
        if cut:
            yield memory[:cut]
        rest = memory[cut:held]


def columns(parts: Iterable[bytes], layout: Layout, name: str) -> Columns:
    """The columns of a text file, which comes as blocks of whole lines: see `tiewise.io.text_python.parse_lines`."""
    block, queries, docs, problems = reader().Block(), reader().Codes(), reader().Codes(), Problems(layout, name)
    query: list[Codes] = []
    doc: list[Codes] = []
    number: list[Floats] = []
    ranks: list[Codes] | None = []
    tags: set[bytes | None] = set()
    spans: list[tuple[int, Sequence[int] | Codes]] = []  # a row, and the lines of the rows from it on
    bad: dict[str, dict[bytes, int]] = {"query": {}, "document": {}}  # ids that are not UTF-8, and where
    rows = lines = 0
    for part in parts:
        parse(block, part, problems, lines + 1, ranks=ranks is not None, tags=True)
        if not len(block):
            lines += block.lines
            continue
        line = range(lines + 1, lines + 1 + block.lines) if block.lines == len(block) else block.line + (lines + 1)
        lists, bad_rows = block.garbled_queries(), block.garbled_docs()
        offsets = block.offsets
        for place in lists.tolist():
            bad["query"].setdefault(block.query(place), int(line[int(offsets[place])]))
        for row in bad_rows.tolist():
            bad["document"].setdefault(block.doc(row), int(line[row]))
        query.append(np.repeat(queries.queries(block), np.diff(offsets)))
        doc.append(docs.docs(block))
        number.append(-block.value if layout.number == "rank" else block.value.copy())
        if ranks is not None and block.rank is not None:
            ranks.append(block.rank)
        else:
            ranks = None
        tags.add(block.tag if block.one_tag else None)
        spans.append((rows, line))
        rows, lines = rows + len(block), lines + block.lines
    problems.check()
    for what, ids in bad.items():
        for one, at in ids.items():
            problems.garbled(at, what, one)
        problems.check()
    tag = next(iter(tags), None) if len(tags) == 1 else None

    def line_of(row: int) -> int:
        first, found = spans[bisect_right(spans, row, key=lambda span: span[0]) - 1]
        return int(found[row - first])

    return Columns(
        np.concatenate(query) if query else np.zeros(0, np.int64),
        queries.ids(),
        np.concatenate(doc) if doc else np.zeros(0, np.int64),
        docs.ids(),
        np.concatenate(number) if number else np.zeros(0),
        np.concatenate(ranks) if ranks else None,
        None if tag is None else tag.decode(errors="replace"),
        line_of,
    )
