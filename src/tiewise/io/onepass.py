"""`FileRun`: a run that stays in its file. Whatever is asked of it is counted in one pass, in little memory.

Tie groups need counts, not rows. So a file of lines is read block by block, each of which holds whole lists, and every
block fills the places of its own queries in the arrays of the result: blocks need not wait for each other, and the
result does not depend on how many threads read them. Where the rows of a query lie apart, the file is read as often as
its size demands, each time for a share of the queries, whose lines are brought together first.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tiewise.columns import Codes, Floats, project
from tiewise.data import Qrels, Run, Source, twice
from tiewise.errors import InputError
from tiewise.io import compiled
from tiewise.io.layout import Layout, Problems, blocks
from tiewise.io.recognise import layout_of
from tiewise.io.streams import opened
from tiewise.ties import NO_RANKS, CountingRun, TieGroups, check_orders

__all__ = ["FileRun"]

SHARE = 1 << 26  # bytes of lines that are brought together at a time
PIECE = 1 << 20  # bytes of them that are counted at a time
SMALL = 1 << 23  # a file of so many bytes is read before a second thread could help
MOST_THREADS = 8
THREADS = min(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1, MOST_THREADS)
MOST_TOLD = 10  # documents that stand twice, of which an error tells


class FileRun(CountingRun):
    """A run in a file of lines, read anew for every question; `projected` reads its scores as another type."""

    def __init__(self, path: str, format: str | None, to_run: Callable[[], Run]):
        self.path, self.format, self._to_run = path, format, to_run
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
        return Source(self.path, hashed.hexdigest(), self._tally.format)

    def check_unchanged(self) -> None:
        """Raise if the file is no longer the one that was read first."""
        if self._now() != self._stat:
            raise InputError(f"{self.path}: was changed after it was evaluated. Evaluate it again.")

    @property
    def bytes(self) -> int:
        """The size of the file."""
        return self._stat[0]

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
        check_orders(chain.from_iterable(wanted.values()))
        self.check_unchanged()
        readings = [
            _Reading((*self._dtypes, *([] if dtype == "float64" else [dtype])), tuple(orders), qrels, scores)
            for dtype, orders in wanted.items()
        ]
        done = _Pass(self, qrels, readings)
        done.run()
        for reading in readings:
            self._tallies[reading.dtypes] = _Tally(tuple(done.queries), done.rows, reading.tied, done.layout.format)
        return {dtype: done.tie_groups(reading) for dtype, reading in zip(wanted, readings, strict=True)}

    def blocks(self, cut: Callable[[Iterable[bytes]], Iterator[bytes]]) -> Iterator[Layout | bytes]:
        """The file's layout, and then the file, cut into blocks by a function of its chunks."""
        with opened(self.path, hashed=False) as stream:
            layout, parts = layout_of(Run, cut(stream.chunks()), self.format, stream.name)
            yield layout
            yield from parts


class _Tally(NamedTuple):
    queries: tuple[str, ...]
    rows: int
    tied: int
    format: str


@dataclass
class _Reading:
    """The scores read in one way, and the arrays of its tie groups, which blocks fill."""

    dtypes: tuple[str, ...]
    orders: tuple[str, ...]
    qrels: Qrels
    scores: Floats | None  # those of judged documents, if this file is one shard of several

    def __post_init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Begin anew."""
        self.tied = 0
        judged, queries = len(self.qrels), len(self.qrels.queries)
        self.score = np.full(judged, np.nan) if self.scores is None else np.array(self.scores)
        self.start, self.size = np.zeros((2, judged), np.int64)
        self.floor, self.floor_size = np.full(queries, np.nan), np.zeros(queries, np.int64)
        self.before = {order: np.zeros(judged, np.int64) for order in self.orders}

    def count(self, block: Any, judged: Any, place: Codes, row: Codes) -> int:
        """Count a block, and return how many of its rows are tied."""
        value = block.value
        for dtype in self.dtypes:
            value = project(value, dtype)
        before = (self.before.get(order) for order in ("docid-desc", "docid-asc", "given", "rank"))
        arrays = self.score, self.start, self.size, self.floor, self.floor_size
        tied: int = block.count(judged, value, place, row, self.scores is None, *arrays, *before)
        return tied


@dataclass
class _Piece:
    """What a block held, apart from counts."""

    queries: list[str] = field(default_factory=list)
    rows: int = 0
    lines: int = 0
    tied: list[int] = field(default_factory=list)  # by reading
    ranked: bool = True
    garbled: list[tuple[str, bytes, int]] = field(default_factory=list)  # what, which, in which line of the block
    again: list[tuple[str, str, int]] = field(default_factory=list)  # query, document, line
    wrong: bool = False


class _Pass:
    """One pass over a file, for some readings of it."""

    def __init__(self, file: FileRun, qrels: Qrels, readings: Sequence[_Reading]):
        self.file, self.qrels, self.readings = file, qrels, readings
        self.ranks = any("rank" in reading.orders for reading in readings)
        docs = qrels.ids(np.arange(len(qrels)))
        self.judged = compiled.reader().Judged(list(qrels.queries), np.array(qrels.offsets), docs)
        self.queries: dict[str, None] = {}
        self.rows = 0
        self.layout: Layout
        self.row = np.full(len(qrels), -1)
        self.length = np.zeros(len(qrels.queries), np.int64)

    def run(self) -> None:
        """Count all that the file holds."""
        found = self.file.blocks(compiled.whole_lists)
        self.layout = next(found)  # type: ignore[assignment]
        if self._count(found):
            return
        self.queries, self.rows = {}, 0  # the rows of some query lie apart: begin anew
        for reading in self.readings:
            reading.clear()
        shares = -(-sum(map(len, self._lines())) // SHARE)
        for share in range(shares):
            regrouped = compiled.reader().Regrouped(share, shares, self.layout.tabs)
            for lines in self._lines():
                regrouped.add(lines)
            text = memoryview(regrouped.text())
            del regrouped
            pieces = (text[at : at + PIECE] for at in range(0, len(text), PIECE))
            together = self._count(compiled.whole_lists(pieces), numbered=False)
            assert together, "lines were brought together"

    def tie_groups(self, reading: _Reading) -> TieGroups:
        """The tie groups of a reading, after the pass."""
        return TieGroups(
            qrels=self.qrels,
            score=reading.score,
            start=reading.start,
            size=reading.size,
            length=self.length,
            present=self.length > 0,
            floor=reading.floor,
            floor_size=reading.floor_size,
            before=reading.before,
            owned=None if reading.scores is None else self.row >= 0,
            unjudged=frozenset(self.queries.keys() - self.qrels.query_index.keys()),
        )

    def _lines(self) -> Iterator[Any]:
        found = self.file.blocks(blocks)
        next(found)
        return found

    def _count(self, parts: Iterable[Any], numbered: bool = True) -> bool:
        """Count blocks of whole lists; False if a query has more than one. `numbered`: lines are in their place."""
        lines, garbled, again = 0, [], []
        for piece in self._pieces(parts):
            if piece.wrong:
                self._explain()
            if not piece.ranked:
                raise InputError(NO_RANKS)
            garbled += [(what, name, lines + line) for what, name, line in piece.garbled]
            again += [(query, doc, lines + line) for query, doc, line in piece.again]
            before = len(self.queries)
            self.queries.update(dict.fromkeys(piece.queries))
            if len(self.queries) < before + len(piece.queries):
                return False
            lines, self.rows = lines + piece.lines, self.rows + piece.rows
            for reading, tied in zip(self.readings, piece.tied, strict=False):
                reading.tied += tied
        if (garbled or again) and not numbered:
            self.file.to_run()  # raises: it knows the lines
        problems = Problems(self.layout, self.file.path)
        for kind in ("query", "document"):
            told: dict[bytes, int] = {}
            for what, name, line in garbled:
                if what == kind:
                    told.setdefault(name, line)
            for name, line in told.items():
                problems.garbled(line, kind, name)
            problems.check()
        if again:
            raise InputError(*(f"{self.file.path}:{line}: {twice(Run, q, d)}" for q, d, line in again[:MOST_TOLD]))
        return True

    def _explain(self) -> None:
        """Raise what is wrong with the first lines that are wrong."""
        problems, block, first = Problems(self.layout, self.file.path), compiled.reader().Block(), 1
        for part in self._lines():
            compiled.parse(block, part, problems, first)
            first += block.lines
        problems.check()

    def _pieces(self, parts: Iterable[Any]) -> Iterator[_Piece]:
        """What blocks hold, in their order; large files are read by several threads."""
        if THREADS == 1 or self.file.bytes <= SMALL:
            block = compiled.reader().Block()
            yield from (self._piece(block, part) for part in parts)
            return
        from concurrent.futures import Future, ThreadPoolExecutor

        own = threading.local()

        def work(part: Any) -> _Piece:
            if not hasattr(own, "block"):
                own.block = compiled.reader().Block()
            return self._piece(own.block, part)

        waiting: deque[Future[_Piece]] = deque()
        with ThreadPoolExecutor(THREADS) as pool:
            for part in parts:
                waiting.append(pool.submit(work, part))
                if len(waiting) > 2 * THREADS:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()

    def _piece(self, block: Any, part: Any) -> _Piece:
        """Read and count one block."""
        try:
            compiled.parse(block, part, Problems(self.layout, "", strict=True), 1, ranks=self.ranks)
        except InputError:
            return _Piece(wrong=True)
        lists, rows = block.garbled_queries(), block.garbled_docs()
        if len(lists) or len(rows):
            line, offsets = block.line + 1, block.offsets
            garbled = [("query", block.query(at), int(line[offsets[at]])) for at in lists.tolist()]
            garbled += [("document", block.doc(at), int(line[at])) for at in rows.tolist()]
            return _Piece(lines=block.lines, garbled=garbled)
        queries, offsets = block.queries, block.offsets
        place = np.empty(len(queries), np.int64)
        twice = block.find(self.judged, place, self.row)
        again = []
        if len(twice):
            line = block.line + 1
            lists = np.searchsorted(offsets, twice, side="right") - 1
            for at, list_ in zip(twice.tolist()[:MOST_TOLD], lists.tolist(), strict=False):
                again.append((queries[list_], block.doc(at).decode(), int(line[at])))
        known = place >= 0
        self.length[place[known]] = np.diff(offsets)[known]
        tied = [reading.count(block, self.judged, place, self.row) for reading in self.readings]
        ranked = not self.ranks or block.rank is not None
        return _Piece(queries, len(block), block.lines, tied, ranked, again=again)
