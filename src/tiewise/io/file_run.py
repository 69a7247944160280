"""`FileRun`: a run that stays in its text file, plain or compressed.

If the rows of a query are not contiguous, lines are grouped by query first. A large file is split into temporary files
for that, each with a share of the queries, so memory is bounded by a share or by the longest list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import chain
from typing import Any

from tiewise.data.runs import Run, Trend
from tiewise.data.source import Source
from tiewise.errors import InputError
from tiewise.io import streaming
from tiewise.io.compression import Reread, Stream, opened
from tiewise.io.formats import Layout, check_format, detect_layout
from tiewise.io.reading import read_run
from tiewise.io.streaming import Counting, StreamedRun
from tiewise.io.text import Problems, find_not_utf8, line_blocks, list_blocks, parse, reader

SHARE = 1 << 26  # bytes of lines that are grouped at a time
MAX_SHARES = 100  # temporary files that are open at the same time
PIECE = 1 << 20  # bytes of a share that are counted at a time
SMALL = 1 << 23  # bytes of a file for which a second thread does not help


class FileRun(StreamedRun):
    """A run in a text file."""

    def __init__(self, path: str, format: str | None, stream: Stream):
        """A run of whose file the first bytes were read, from which the format was recognised."""
        self._file, self._format, self._name = Reread(path), format, path
        self._columns = check_format(Run, format)
        is_whole = stream.n_raw == self._file.size and not stream.compressed
        self._text = stream.head if is_whole else None  # of a small file, which is opened once
        self._threads = 1 if self._file.size <= SMALL else streaming.THREADS
        self._layout: Layout | None = None  # known after reading
        self._tags = set[bytes | None]()  # known after inspecting
        self._first_trend: Trend | None = None  # of the first lists along their ranks, if lists do not fall

    @property
    def _source(self) -> Source:
        assert self._layout is not None
        return Source(self._name, lambda: self._file.sha256, self._layout.format)

    @property
    def _tag(self) -> str | None:
        tag = next(iter(self._tags)) if len(self._tags) == 1 else None
        return None if tag is None else tag.decode(errors="replace")

    def rows(self) -> Run:
        """The same run as columns."""
        self._file.check()
        return read_run(self._name, format=self._format)

    def _read(self, counting: Counting) -> bool:
        self._file.check()
        layout, parts = self._blocks(list_blocks)
        first: list[Any] = next(parts, [])
        self._layout, self._tags = layout, set()

        def load(block: Any, part: Any, *, ranks: bool = counting.needs_ranks) -> None:
            inspects = counting.inspect is not None
            parse(block, part, Problems(layout, self._name, strict=True), 1, ranks=ranks, tags=inspects)
            if inspects and len(block):
                self._tags.add(block.tag)

        correct = counting.count(chain([first], parts), load)
        if counting.problem == "not contiguous":
            counting.clear()
            correct = all(counting.count(share, load) for share in self._regrouped(layout))
        self._file.check()
        if counting.problem == "unreadable":
            self._raise_problems(layout)
        if not correct:
            return False  # reading its rows raises an error for duplicates
        if not counting.rows:
            raise InputError(f"{self._name}: has no rows.")
        if not counting.trend.falls:
            block = reader().Block()
            load(block, first, ranks=True)
            self._first_trend = None if block.rank is None else Trend.of(block.value, block.offsets, block.rank)
        return True

    def _rank_trend(self) -> Trend | None:
        return self._first_trend

    def _blocks(self, split: Callable[[Iterable[bytes]], Iterator[Any]]) -> tuple[Layout, Iterator[Any]]:
        """The layout of the file, and its blocks of whole lines, as `split` divides them."""

        def read() -> Iterator[Any]:
            with self._chunks() as chunks:
                blocks = line_blocks(chunks, self._name)
                layout, blocks = detect_layout(Run, blocks, *self._columns, self._name)
                yield layout
                yield from split(blocks)

        found = read()
        return next(found), found

    @contextmanager
    def _chunks(self) -> Iterator[Iterable[bytes]]:
        """All bytes of the file, decompressed."""
        if self._text is not None:
            yield [self._text]
            return
        with opened(self._file.absolute, name=self._name, hashed=False) as stream:
            yield stream.chunks()

    def _lines(self) -> Iterator[bytes]:
        """Blocks of whole lines."""
        return self._blocks(iter)[1]

    def _regrouped(self, layout: Layout) -> Iterator[Iterator[list[bytes]]]:
        """The lines grouped by query, a share of the queries at a time."""
        shares = min(-(-sum(map(len, self._lines())) // SHARE), MAX_SHARES)
        if shares == 1:
            yield _group(self._lines(), layout)
            return
        from tempfile import TemporaryFile

        with self._temporary_files(), ExitStack() as stack:
            files = [stack.enter_context(TemporaryFile()) for _ in range(shares)]
            for block in self._lines():
                for file, some in zip(files, reader().split(block, shares, layout.tabs), strict=True):
                    file.write(some)
            for file in files:
                file.seek(0)
                yield _group(line_blocks(iter(partial(file.read, PIECE), b""), self._name), layout)
                file.close()

    @contextmanager
    def _temporary_files(self) -> Iterator[None]:
        """Report errors of the temporary folder with the name of the file."""
        try:
            yield
        except OSError as error:
            raise InputError(
                f"{self._name}: the rows of a query are not contiguous, and the temporary folder has no space to "
                f"group them ({error.strerror}). Sort the file by query, or set TMPDIR to a folder with more space."
            ) from None

    def _raise_problems(self, layout: Layout) -> None:
        """Raise an error for unreadable lines, else for ids that are not UTF-8."""
        block, problems, first_line = reader().Block(), Problems(layout, self._name), 1
        not_utf8: dict[tuple[str, bytes], int] = {}
        for data in self._lines():
            parse(block, [data], problems, first_line)
            for what, id, line in find_not_utf8(block):
                not_utf8.setdefault((what, id), first_line + line)
            first_line += block.lines
        problems.check()
        problems.check_utf8(not_utf8)


def _group(lines: Iterable[bytes], layout: Layout) -> Iterator[list[bytes]]:
    """The lines grouped by query, as blocks of whole lists."""
    regrouped = reader().Regrouped(layout.tabs)
    for block in lines:
        regrouped.add(block)
    return ([lists] for lists in iter(partial(regrouped.next, PIECE), b""))
