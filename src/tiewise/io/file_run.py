"""`FileRun`: a run that stays in its file of lines, plain or compressed.

Where the rows of a query lie apart, its lines are brought together first. A large file is split for that into temporary
ones, each for a share of the queries: memory is bounded by a share, or by the longest list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from tempfile import TemporaryFile
from typing import Any

from tiewise.data.runs import Run, Source, twice
from tiewise.errors import InputError
from tiewise.io import streaming, text_native
from tiewise.io.compression import Reread, Stream, opened
from tiewise.io.formats import layout_of
from tiewise.io.layouts import Layout, Problems, blocks
from tiewise.io.streaming import Counting, StreamedRun

__all__ = ["FileRun"]

SHARE = 1 << 26  # bytes of lines that are brought together at a time
MOST_SHARES = 100  # files that are open at the same time
PIECE = 1 << 20  # bytes of them that are counted at a time
SMALL = 1 << 23  # a file of so many bytes is read before a second thread could help


class FileRun(StreamedRun):
    """A run in a file of lines."""

    def __init__(self, path: str, format: str | None, read: Callable[[], Run]):
        self._file, self._format, self._read_rows = Reread(path), format, read
        self._layout: Layout | None = None  # known once the file was read

    @property
    def _source(self) -> Source:
        assert self._layout is not None
        return Source(self._file.path, lambda: self._file.sha256, self._layout.format)

    @property
    def _threads(self) -> int:
        return 1 if self._file.size <= SMALL else streaming.THREADS

    def rows(self) -> Run:
        """The same run as columns."""
        self._file.check()
        return self._read_rows()

    def _read(self, counting: Counting) -> bool:
        self._file.check()
        layout, parts = self._parts(text_native.whole_lists_of)
        self._layout = layout

        def load(block: Any, part: Any) -> None:
            problems = Problems(layout, self._file.path, strict=True)
            text_native.parse(block, part, problems, 1, ranks=counting.needs_ranks)

        correct = counting.count(parts, load)
        if counting.not_contiguous:
            counting.clear()
            correct = all(counting.count(share, load) for share in self._regrouped(layout))
            if not (correct or counting.unreadable):
                self._read_rows()  # raises: it knows the lines
        self._file.check()
        if not correct:
            self._raise_problems(layout, counting)
        if not counting.rows:
            raise InputError(f"{self._file.path}: holds no rows.")
        return True

    def _parts(self, cut: Callable[[Stream], Iterator[Any]]) -> tuple[Layout, Iterator[Any]]:
        """The file's layout, and the file as blocks, into which it is cut by a function."""
        found = self._opened(cut)
        return next(found), found

    def _opened(self, cut: Callable[[Stream], Iterator[Any]]) -> Iterator[Any]:
        with opened(self._file.absolute, name=self._file.path, hashed=False) as stream:
            layout, parts = layout_of(Run, cut(stream), self._format, stream.name)
            yield layout
            yield from parts

    def _regrouped(self, layout: Layout) -> Iterator[Iterator[bytes]]:
        """The lines of every query brought together, a share of the queries at a time."""
        shares = min(-(-sum(map(len, self._parts(_lines)[1])) // SHARE), MOST_SHARES)
        lines = self._parts(_lines)[1]
        if shares == 1:
            yield _together(lines, layout)
            return
        with ExitStack() as stack:
            with self._temporary_files():
                files = [stack.enter_context(TemporaryFile()) for _ in range(shares)]
            for block in lines:
                for file, some in zip(files, text_native.reader().split(block, shares, layout.tabs), strict=True):
                    with self._temporary_files():
                        file.write(some)
                        file.flush()
            for file in files:
                file.seek(0)
                yield _together(blocks(iter(partial(file.read, PIECE), b"")), layout)
                file.close()

    @contextmanager
    def _temporary_files(self) -> Iterator[None]:
        """Report errors of the temporary folder with the name of the file."""
        try:
            yield
        except OSError as error:
            raise InputError(
                f"{self._file.path}: the rows of a query lie apart, and the temporary folder has no room to bring them "
                f"together ({error.strerror}). Sort the file by query, or set TMPDIR to a folder with room."
            ) from None

    def _raise_problems(self, layout: Layout, counting: Counting) -> None:
        """Raise an error for unreadable lines, else for ids that are not UTF-8, else for duplicates."""
        problems = Problems(layout, self._file.path)
        if counting.unreadable:
            block, first = text_native.reader().Block(), 1
            for part in self._parts(_lines)[1]:
                text_native.parse(block, part, problems, first)
                first += block.lines
        problems.check()
        for kind in ("query", "document"):
            lines = {name: line for what, name, line in reversed(counting.not_utf8) if what == kind}
            for name, line in sorted(lines.items(), key=lambda item: item[1]):
                problems.garbled(line, kind, name)
            problems.check()
        raise InputError(
            *(
                f"{self._file.path}:{line}: {twice(Run, query, doc)}"
                for query, doc, line in counting.duplicates[: streaming.MOST_DUPLICATES]
            )
        )


def _together(lines: Iterable[bytes], layout: Layout) -> Iterator[bytes]:
    """Blocks of lines with those of a query side by side."""
    regrouped = text_native.reader().Regrouped(layout.tabs)
    for block in lines:
        regrouped.add(block)
    return iter(partial(regrouped.next, PIECE), b"")


def _lines(stream: Stream) -> Iterator[bytes]:
    return blocks(stream.chunks())
