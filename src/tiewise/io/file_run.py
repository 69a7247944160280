"""`FileRun`: a run that stays in its file of lines, plain or compressed.

Where the rows of a query lie apart, its lines are brought together first. A large file is split for that into temporary
ones, each for a share of the queries: memory is bounded by a share, or by the longest list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cached_property, partial
from tempfile import TemporaryFile
from typing import Any

from tiewise.data.columns import Floats
from tiewise.data.runs import Qrels, Run, Source, twice
from tiewise.errors import InputError
from tiewise.io import streaming as onepass
from tiewise.io import text_native as compiled
from tiewise.io.compression import Reread, Stream, opened
from tiewise.io.formats import layout_of
from tiewise.io.layouts import Layout, Problems, blocks

__all__ = ["FileRun"]

SHARE = 1 << 26  # bytes of lines that are brought together at a time
MOST_SHARES = 100  # files that are open at the same time
PIECE = 1 << 20  # bytes of them that are counted at a time
SMALL = 1 << 23  # a file of so many bytes is read before a second thread could help


class FileRun(onepass.PassedRun):
    """A run in a file of lines."""

    def __init__(self, path: str, format: str | None, to_run: Callable[[], Run]):
        super().__init__(to_run)
        self._file, self._format = Reread(path), format

    @property
    def source(self) -> Source:
        """The file, with its hash, which is computed when it is asked for."""
        return Source(self._file.path, self._file.sha256, self._layout.format)

    @property
    def path(self) -> str:
        """The path of the file."""
        return self._file.path

    @cached_property
    def _layout(self) -> Layout:
        return self._parts(_lines)[0]

    def to_run(self) -> Run:
        """The same run as columns."""
        self._file.check()
        return super().to_run()

    def _passed(self, qrels: Qrels, wanted: Mapping[str, Sequence[str]], scores: Floats | None) -> onepass.Pass:
        self._file.check()
        ranks = any("rank" in orders for orders in wanted.values())
        layout, parts = self._parts(compiled.whole_lists_of)

        def load(block: Any, part: Any) -> None:
            compiled.parse(block, part, Problems(layout, self._file.path, strict=True), 1, ranks=ranks)

        threads = 1 if self._file.size <= SMALL else onepass.THREADS
        done = onepass.Pass(qrels, wanted, scores, self._dtypes, load, threads)
        fine = done.count(parts)
        if done.apart:
            done.clear()
            fine = all(done.count(share) for share in self._regrouped(layout))
            if not (fine or done.wrong):
                self._to_run()  # raises: it knows the lines
        self._file.check()
        if not fine:
            self._explain(layout, done)
        if not done.rows:
            raise InputError(f"{self._file.path}: holds no rows.")
        return done

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
            with self._room():
                files = [stack.enter_context(TemporaryFile()) for _ in range(shares)]
            for block in lines:
                for file, some in zip(files, compiled.reader().split(block, shares, layout.tabs), strict=True):
                    with self._room():
                        file.write(some)
                        file.flush()
            for file in files:
                file.seek(0)
                yield _together(blocks(iter(partial(file.read, PIECE), b"")), layout)
                file.close()

    @contextmanager
    def _room(self) -> Iterator[None]:
        """What cannot be written to the temporary folder is told."""
        try:
            yield
        except OSError as error:
            raise InputError(
                f"{self._file.path}: the rows of a query lie apart, and the temporary folder has no room to bring them "
                f"together ({error.strerror}). Sort the file by query, or set TMPDIR to a folder with room."
            ) from None

    def _explain(self, layout: Layout, done: onepass.Pass) -> None:
        """Raise what is wrong: lines, then ids that are not UTF-8, then documents that stand twice."""
        problems = Problems(layout, self._file.path)
        if done.wrong:
            block, first = compiled.reader().Block(), 1
            for part in self._parts(_lines)[1]:
                compiled.parse(block, part, problems, first)
                first += block.lines
        problems.check()
        for kind in ("query", "document"):
            told = {name: line for what, name, line in reversed(done.garbled) if what == kind}
            for name, line in sorted(told.items(), key=lambda item: item[1]):
                problems.garbled(line, kind, name)
            problems.check()
        raise InputError(
            *(
                f"{self._file.path}:{line}: {twice(Run, query, doc)}"
                for query, doc, line in done.again[: onepass.MOST_TOLD]
            )
        )


def _together(lines: Iterable[bytes], layout: Layout) -> Iterator[bytes]:
    """Blocks of lines with those of a query side by side."""
    regrouped = compiled.reader().Regrouped(layout.tabs)
    for block in lines:
        regrouped.add(block)
    return iter(partial(regrouped.next, PIECE), b"")


def _lines(stream: Stream) -> Iterator[bytes]:
    return blocks(stream.chunks())
