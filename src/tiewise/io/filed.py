"""`FileRun`: a run that stays in its file of lines, plain or compressed.

Where the rows of a query lie apart, the file is read as often as its size demands, each time for a share of the queries,
whose lines are brought together first: memory is bounded by a share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tiewise.columns import Floats, project
from tiewise.data import Qrels, Run, Source, twice
from tiewise.errors import InputError
from tiewise.io import compiled, onepass
from tiewise.io.layout import Layout, Problems, blocks
from tiewise.io.recognise import layout_of
from tiewise.io.streams import opened
from tiewise.ties import StreamedRun, TieGroups

__all__ = ["FileRun"]

SHARE = 1 << 26  # bytes of lines that are brought together at a time
PIECE = 1 << 20  # bytes of them that are counted at a time
SMALL = 1 << 23  # a file of so many bytes is read before a second thread could help


class FileRun(StreamedRun):
    """A run in a file of lines, read anew for every question; `projected` reads its scores as another type."""

    def __init__(self, path: str, format: str | None, to_run: Callable[[], Run]):
        self.path, self._format, self._to_run = path, format, to_run
        self._dtypes: tuple[str, ...] = ()
        self._stat = self._now()
        self._tallies: dict[tuple[str, ...], _Tally] = {}  # by how scores are read: shared with projections

    # -- what is known of it after a pass -----------------------------------------------------------------------

    @property
    def queries(self) -> tuple[str, ...]:
        """The queries of the run."""
        return self._tally.queries

    def __len__(self) -> int:
        return self._tally.rows

    @property
    def tied_rows(self) -> int:
        """How many rows share their score with another row of the same query."""
        return self._tally.tied

    @property
    def _tally(self) -> _Tally:
        if self._dtypes not in self._tallies:
            self.tie_groups(Qrels.from_dict({}), {"float64": ()})
        return self._tallies[self._dtypes]

    @cached_property
    def source(self) -> Source:
        """The file, with its hash, which is computed when it is asked for."""
        from hashlib import sha256

        self.check_unchanged()
        hashed = sha256()
        with Path(self.path).open("rb") as file:
            while chunk := file.read(PIECE):
                hashed.update(chunk)
        return Source(self.path, hashed.hexdigest(), self._layout.format)

    @cached_property
    def _layout(self) -> Layout:
        return self._parts(blocks)[0]

    def check_unchanged(self) -> None:
        """Raise if the file is no longer the one that was read first."""
        if self._now() != self._stat:
            raise InputError(f"{self.path}: was changed after it was evaluated. Evaluate it again.")

    def _now(self) -> tuple[int, int]:
        found = Path(self.path).stat()
        return found.st_size, found.st_mtime_ns

    # -- doors --------------------------------------------------------------------------------------------------

    def projected(self, dtype: str) -> FileRun:
        """The run as a reader sees it that keeps scores in another type: see `Run.projected`."""
        project(np.zeros(0), dtype)  # an unknown type is told here
        run = FileRun.__new__(FileRun)
        vars(run).update(vars(self), _dtypes=(*self._dtypes, dtype))
        return run

    def to_run(self) -> Run:
        """The same run as columns."""
        self.check_unchanged()
        run = self._to_run()
        for dtype in self._dtypes:
            run = run.projected(dtype)
        return run

    def tie_groups(
        self, qrels: Qrels, wanted: Mapping[str, Sequence[str]], scores: Floats | None = None
    ) -> dict[str, TieGroups]:
        """The tie groups for several readings of the scores, each with its orders, in one pass over the file."""
        self.check_unchanged()
        ranks = any("rank" in orders for orders in wanted.values())
        layout, parts = self._parts(compiled.whole_lists)

        def load(block: Any, part: Any) -> None:
            compiled.parse(block, part, Problems(layout, self.path, strict=True), 1, ranks=ranks)

        threads = 1 if self._stat[0] <= SMALL else onepass.THREADS
        done = onepass.Pass(qrels, wanted, scores, self._dtypes, load, threads)
        fine = done.count(parts)
        if done.apart:
            done.clear()
            fine = all(done.count(share) for share in self._regrouped(layout))
            if not (fine or done.wrong):
                self._to_run()  # raises: it knows the lines
        if not fine:
            self._explain(layout, done)
        if not done.rows:
            raise InputError(f"{self.path}: holds no rows.")
        for reading in done.readings.values():
            self._tallies[reading.dtypes] = _Tally(tuple(done.queries), done.rows, reading.tied)
        return done.tie_groups()

    def _parts(self, cut: Callable[[Iterable[bytes]], Iterator[bytes]]) -> tuple[Layout, Iterator[bytes]]:
        """The file's layout, and the file as blocks, cut by a function of its chunks."""
        found = self._opened(cut)
        return next(found), found  # type: ignore[return-value]

    def _opened(self, cut: Callable[[Iterable[bytes]], Iterator[bytes]]) -> Iterator[Layout | bytes]:
        with opened(self.path, hashed=False) as stream:
            layout, parts = layout_of(Run, cut(stream.chunks()), self._format, stream.name)
            yield layout
            yield from parts

    def _regrouped(self, layout: Layout) -> Iterator[Iterator[bytes]]:
        """The lines of every query brought together, a share of the queries at a time."""
        shares = -(-sum(map(len, self._parts(blocks)[1])) // SHARE)
        for share in range(shares):
            regrouped = compiled.reader().Regrouped(share, shares, layout.tabs)
            for lines in self._parts(blocks)[1]:
                regrouped.add(lines)
            yield iter(partial(regrouped.next, PIECE), b"")

    def _explain(self, layout: Layout, done: onepass.Pass) -> None:
        """Raise what is wrong: lines, then ids that are not UTF-8, then documents that stand twice."""
        problems = Problems(layout, self.path)
        if done.wrong:
            block, first = compiled.reader().Block(), 1
            for part in self._parts(blocks)[1]:
                compiled.parse(block, part, problems, first)
                first += block.lines
        problems.check()
        for kind in ("query", "document"):
            told = {name: line for what, name, line in reversed(done.garbled) if what == kind}
            for name, line in sorted(told.items(), key=lambda item: item[1]):
                problems.garbled(line, kind, name)
            problems.check()
        raise InputError(
            *(f"{self.path}:{line}: {twice(Run, query, doc)}" for query, doc, line in done.again[: onepass.MOST_TOLD])
        )


class _Tally(NamedTuple):
    queries: tuple[str, ...]
    rows: int
    tied: int
