"""Runs that stay where they are: whatever is asked of them is counted in one pass, in little memory.

Tie groups need counts, not rows. So a file of lines, or a table of columns, is read block by block, each of which holds
whole lists, and every block fills the places of its own queries in the arrays of the result: blocks need not wait for
each other, and the result does not depend on how many threads read them.
"""

from __future__ import annotations

import os
import threading
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tiewise.data.columns import Codes, Floats, project
from tiewise.data.runs import Qrels, Run
from tiewise.data.streamed import StreamedRun
from tiewise.errors import InputError
from tiewise.io.text_native import reader
from tiewise.ties.groups import NO_RANKS, TieGroups, check_orders, scores_as, some_docs, tie_groups_as

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["Pass", "PassedRun"]

MOST_THREADS = 8
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
ALLOWED = os.environ.get("OMP_NUM_THREADS", "")  # what a cluster says to its workers, too
THREADS = max(1, min(CORES, int(ALLOWED) if ALLOWED.isdecimal() else CORES, MOST_THREADS))
MOST_TOLD = 10  # documents that stand twice, of which an error tells

Load = Callable[[Any, Any], None]  # fills a compiled block with a part of a run


class PassedRun(StreamedRun):
    """A run that is read anew for every question; `projected` reads its scores as another type."""

    def __init__(self, to_run: Callable[[], Run]):
        self._to_run = to_run
        self._dtypes: tuple[str, ...] = ()
        self._tallies: dict[tuple[str, ...], _Tally] = {}  # by how scores are read: shared with projections

    @abstractmethod
    def _passed(self, qrels: Qrels, wanted: Mapping[str, Sequence[str]], scores: Floats | None) -> Pass | None:
        """A pass over the run; None if it must be read into columns."""

    def tie_groups(
        self, qrels: Qrels, wanted: Mapping[str, Sequence[str]], scores: Floats | None = None
    ) -> dict[str, TieGroups]:
        """The tie groups for several readings of the scores, each with its orders, in one pass."""
        check_orders(chain.from_iterable(wanted.values()))
        done = self._passed(qrels, wanted, scores)
        if done is None:
            run = self.to_run()
            for dtype in wanted:
                read = run if dtype == "float64" else run.projected(dtype)
                tally = _Tally(run, len(run), read.tied_rows, tuple(some_docs(run)))
                self._tallies[read_as(self._dtypes, dtype)] = tally
            return tie_groups_as(qrels, run, wanted, scores)
        for reading in done.readings.values():
            self._tallies[reading.dtypes] = _Tally(done.names, done.rows, reading.tied, done.docs)
        return done.tie_groups()

    @property
    def _tally(self) -> _Tally:
        if self._dtypes not in self._tallies:
            self.tie_groups(Qrels.from_dict({}), {"float64": ()})
        return self._tallies[self._dtypes]

    @property
    def queries(self) -> tuple[str, ...]:
        """The queries of the run."""
        return self._tally.names.queries

    def __len__(self) -> int:
        return self._tally.rows

    @property
    def tied_rows(self) -> int:
        """How many rows share their score with another row of the same query."""
        return self._tally.tied

    @property
    def docs(self) -> tuple[str, ...]:
        """Some documents of the run, for messages."""
        return self._tally.docs

    def projected(self, dtype: str) -> Self:
        """The run as a reader sees it that keeps scores in another type: see `Run.projected`."""
        project(np.zeros(0), dtype)  # an unknown type is told here
        run = copy(self)
        run._dtypes = (*self._dtypes, dtype)
        return run

    def to_run(self) -> Run:
        """The same run as columns."""
        run = self._to_run()
        for dtype in self._dtypes:
            run = run.projected(dtype)
        return run


def read_as(dtypes: tuple[str, ...], dtype: str) -> tuple[str, ...]:
    """The types to which scores are rounded if they are read as one more; ``"float64"`` leaves them as they are."""
    return dtypes if dtype == "float64" else (*dtypes, dtype)


class _Names:
    """The queries of a run: they become Python's texts when somebody asks for them."""

    def __init__(self) -> None:
        self._codes = reader().Codes()
        self._found: list[range] = []  # the codes of a part's queries, in the order of the parts

    def claim(self, block: Any) -> range | None:
        """The codes of a block's queries; None if one of them was claimed before.

        The places of a query are filled once, by one thread.
        """
        first: int = self._codes.claim(block)
        return None if first < 0 else range(first, first + block.lists)

    def append(self, claimed: range) -> None:
        """Put the queries of the next part behind the others."""
        self._found.append(claimed)

    @cached_property
    def queries(self) -> tuple[str, ...]:
        """The ids, in the order in which their lists were read."""
        names = self._codes.ids()
        return tuple(names[code] for codes in self._found for code in codes)


class _Tally(NamedTuple):
    names: _Names | Run
    rows: int
    tied: int
    docs: tuple[str, ...]


@dataclass
class Reading:
    """The scores read in one way, and the arrays of its tie groups, which blocks fill."""

    dtypes: tuple[str, ...]  # the types to which scores are rounded, one after another
    orders: tuple[str, ...]
    qrels: Qrels
    scores: Floats | None  # those of judged documents, if this run is one shard of several

    def __post_init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Begin anew."""
        judged, queries = len(self.qrels), len(self.qrels.queries)
        self.tied = 0
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

    queries: range = range(0)  # their codes
    unjudged: list[str] = field(default_factory=list)
    rows: int = 0
    lines: int = 0
    tied: list[int] = field(default_factory=list)  # by reading
    ranked: bool = True
    garbled: list[tuple[str, bytes, int]] = field(default_factory=list)  # what, which, in which line of the block
    again: list[tuple[str, str, int]] = field(default_factory=list)  # query, document, line
    docs: tuple[str, ...] = ()
    wrong: bool = False
    apart: bool = False


class _Shared:
    """Parts that several threads take, each with its place; what goes wrong with the next one stands in its place."""

    def __init__(self, parts: Iterator[Any]):
        self._parts: Iterator[tuple[int, Any]] = enumerate(parts)
        self._lock = threading.Lock()
        self._last = -1

    def take(self) -> tuple[int, Any] | None:
        """The next part; None if there is none."""
        with self._lock:
            try:
                self._last, part = next(self._parts)
                return self._last, part
            except StopIteration:
                return None
            except Exception as error:
                self._parts = iter(())
                return self._last + 1, error

    def stop(self) -> None:
        """Hand out no more of them."""
        with self._lock:
            self._parts = iter(())


class Pass:
    """One pass over a run, for some readings of its scores; what was found to be wrong with it is kept."""

    def __init__(
        self,
        qrels: Qrels,
        wanted: Mapping[str, Sequence[str]],
        scores: Floats | None,
        dtypes: tuple[str, ...],
        load: Load,
        threads: int,
    ):
        self.qrels, self.load, self.threads = qrels, load, threads
        self.readings = {
            dtype: Reading(read_as(dtypes, dtype), tuple(orders), qrels, scores_as(scores, dtype))
            for dtype, orders in wanted.items()
        }
        self._ranks = any("rank" in orders for orders in wanted.values())
        docs = qrels.ids(np.arange(len(qrels)))
        self._judged = reader().Judged(list(qrels.queries), np.array(qrels.offsets), docs)
        self.clear()

    def clear(self) -> None:
        """Begin anew."""
        self.names = _Names()
        self._unjudged: set[str] = set()
        self.docs: tuple[str, ...] = ()
        self.rows = self._lines = 0
        self.apart = False  # a query has rows in two places
        self.wrong = False  # something could not be read
        self._ranked = True  # all rows have the ranks that an order asks for
        self.garbled: list[tuple[str, bytes, int]] = []  # ids that are not UTF-8: what, which, and its line
        self.again: list[tuple[str, str, int]] = []  # documents that stand twice: query, document, line
        self._row = np.full(len(self.qrels), -1, np.int64)
        self._length = np.zeros(len(self.qrels.queries), np.int64)
        for reading in self.readings.values():
            reading.clear()

    def count(self, parts: Iterable[Any]) -> bool:
        """Count parts that hold whole lists, up to the first trouble; whether there was none."""
        for piece in self._pieces(parts):
            self.wrong |= piece.wrong
            self.garbled += [(what, name, self._lines + line) for what, name, line in piece.garbled]
            self.again += [(query, doc, self._lines + line) for query, doc, line in piece.again]
            self.names.append(piece.queries)
            self._unjudged.update(piece.unjudged)
            self.apart |= piece.apart
            if self.wrong or self.apart:
                break
            self._ranked &= piece.ranked
            self.docs = self.docs or piece.docs
            self._lines, self.rows = self._lines + piece.lines, self.rows + piece.rows
            for reading, tied in zip(self.readings.values(), piece.tied, strict=False):
                reading.tied += tied
        return not (self.wrong or self.apart or self.garbled or self.again)

    def tie_groups(self) -> dict[str, TieGroups]:
        """The tie groups of each reading."""
        if not self._ranked:  # told last, as the run is otherwise fine
            raise InputError(NO_RANKS)
        return {dtype: self._tie_groups(reading) for dtype, reading in self.readings.items()}

    def _tie_groups(self, reading: Reading) -> TieGroups:
        return TieGroups(
            qrels=self.qrels,
            score=reading.score,
            start=reading.start,
            size=reading.size,
            length=self._length,
            present=self._length > 0,
            floor=reading.floor,
            floor_size=reading.floor_size,
            before=reading.before,
            owned=None if reading.scores is None else self._row >= 0,
            unjudged=frozenset(self._unjudged),
        )

    def _pieces(self, parts: Iterable[Any]) -> Iterator[_Piece]:
        """What the parts hold, in their order, read by one thread or by several."""
        if self.threads == 1:
            block = reader().Block()
            yield from (self._piece(block, part) for part in parts)
            return
        from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait

        shared = _Shared(iter(parts))
        with ThreadPoolExecutor(self.threads) as pool:
            found = [pool.submit(self._work, shared) for _ in range(self.threads)]
            try:
                wait(found, return_when=FIRST_EXCEPTION)
            finally:  # interrupted, or out of memory
                shared.stop()
        for _, piece in sorted(chain.from_iterable(one.result() for one in found), key=lambda pair: pair[0]):
            if isinstance(piece, Exception):
                raise piece
            yield piece

    def _work(self, shared: _Shared) -> list[tuple[int, _Piece | Exception]]:
        """Take parts until there are no more, or one is wrong; each is read by the thread that counts it."""
        block = reader().Block()
        done: list[tuple[int, _Piece | Exception]] = []
        while (taken := shared.take()) is not None:
            place, part = taken
            piece = part if isinstance(part, Exception) else self._piece(block, part)
            done.append((place, piece))
            if isinstance(piece, Exception) or piece.wrong or piece.apart:
                shared.stop()
        return done

    def _piece(self, block: Any, part: Any) -> _Piece:
        """Read and count one part."""
        try:
            self.load(block, part)
        except InputError:
            return _Piece(wrong=True)
        garbled = _garbled(block)
        if garbled:
            return _Piece(lines=block.lines, garbled=garbled)
        queries = self.names.claim(block)
        if queries is None:
            return _Piece(apart=True)
        place = np.empty(len(queries), np.int64)
        twice = block.look_up(self._judged, place, self._length, self._row)
        return _Piece(
            queries=queries,
            unjudged=[block.query(at).decode() for at in np.flatnonzero(place < 0).tolist()],
            rows=len(block),
            lines=block.lines,
            tied=[reading.count(block, self._judged, place, self._row) for reading in self.readings.values()],
            ranked=not self._ranks or block.rank is not None,
            again=_told(block, twice[:MOST_TOLD]),
            docs=self.docs or tuple(block.doc(row).decode() for row in range(min(3, len(block)))),
        )


def _told(block: Any, rows: Codes) -> list[tuple[str, str, int]]:
    """Some rows of a block: query, document, line."""
    if not len(rows):
        return []
    lists, lines = np.searchsorted(block.offsets, rows, side="right") - 1, block.line[rows] + 1
    told = zip(lists.tolist(), rows.tolist(), lines.tolist(), strict=True)
    return [(block.query(at).decode(), block.doc(row).decode(), line) for at, row, line in told]


def _garbled(block: Any) -> list[tuple[str, bytes, int]]:
    """The ids of a block that are not UTF-8: what, which, and its line."""
    lists, rows = block.garbled_queries().tolist(), block.garbled_docs().tolist()
    if not lists and not rows:
        return []
    offsets, lines = block.offsets, block.line + 1
    found = [("query", block.query(at), int(lines[offsets[at]])) for at in lists]
    return found + [("document", block.doc(at), int(lines[at])) for at in rows]
