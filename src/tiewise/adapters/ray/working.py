"""What a worker does with one shard: it reads it, counts, and hands back no more than that.

A shard is the path of a file, or a block of a Ray data set, which is an Arrow table. Answers travel as bytes. What is
wrong with a shard is an answer too, so that it reaches the user as it was said and not as a stack of frames.
"""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from tiewise.analysis.readings import Countable
from tiewise.data.columns import Codes, Floats
from tiewise.data.runs import Qrels
from tiewise.errors import InputError, TiewiseError
from tiewise.io import as_run, as_source
from tiewise.ties.groups import TieGroups, some_docs, tie_groups_as
from tiewise.ties.shards import Counts, Total, small

__all__ = [
    "Answer",
    "Counted",
    "Counter",
    "Found",
    "Reading",
    "RunCounter",
    "added",
    "answered",
    "bits",
    "flags",
    "unpacked",
]


class Reading(NamedTuple):
    """A way to read a run: the type of its scores, and whether unjudged documents stay when others were taken out."""

    dtype: str
    whole: bool = False


Counted = Mapping[Reading, Counts]


@dataclass(frozen=True)
class Found:
    """What a shard says of itself after the first pass."""

    rows: NDArray[Any]  # (n,): the judged documents it holds, as rows of the qrels
    score: Floats  # (n,): their scores
    present: bytes  # which queries it has, a bit each, compressed
    unjudged: frozenset[str] = frozenset()  # queries it has that were not judged
    length: int = 0  # rows
    tied: int = 0  # of these, tied
    new_ties: int = 0  # of these, tied by `score_dtype`
    sha256: str = ""  # of the file
    format: str = ""
    docs: tuple[str, ...] = ()  # a few of its documents, for a message


class Answer(NamedTuple):
    """What comes back of a shard beside its counts."""

    found: Found | None = None
    size: int = 0  # bytes that its counts take
    problem: str = ""  # what is wrong with it


class Counter(Protocol):
    """How shards of a kind are counted."""

    @property
    def qrels(self) -> Qrels:
        """The judgments to count for."""

    @property
    def once(self) -> bool:
        """Whether the first pass counts too, which is enough if no query is in two shards."""

    def first(self, shard: Any) -> tuple[Found, Counted]:
        """What the shard holds, and its counts as if it were the whole."""

    def second(self, shard: Any, scores: Floats, sha256: str) -> tuple[None, Counted]:
        """Its counts for the judged scores of all shards."""


@dataclass(frozen=True)
class RunCounter:
    """How the shards of a run are counted: for which judgments, in which readings, for which orders of ties."""

    qrels: Qrels
    orders: Mapping[str, Sequence[str]]  # by the type in which scores are read
    score_dtype: str | None = None
    judged_only: bool = False
    format: str | None = None
    once = True

    @property
    def readings(self) -> list[Reading]:
        """The ways to read a shard."""
        kinds = (False, True) if self.judged_only else (False,)
        return [Reading(dtype, whole) for dtype in self.orders for whole in kinds]

    def orders_of(self, reading: Reading) -> tuple[str, ...]:
        """The orders to count for; of a whole run from which documents are taken out, only lists' ends matter."""
        return () if reading.whole else tuple(self.orders[reading.dtype])

    def first(self, shard: Any) -> tuple[Found, Counted]:
        """What the shard holds, and its counts as if it were the whole."""
        given = self._read(shard)
        kept = as_run(given).judged_only(self.qrels) if self.judged_only else given
        run = self._projected(kept)
        groups = self._groups(given, run)
        ties = groups[Reading("float64")]
        held = np.flatnonzero(~np.isnan(ties.score))
        found = Found(
            rows=small(held),
            score=ties.score[held],
            present=bits(ties.present),
            unjudged=ties.unjudged,
            length=len(run),
            tied=run.tied_rows,
            new_ties=0 if run is kept else run.tied_rows - kept.tied_rows,
            sha256=_hash(given),
            format="" if given.source is None else given.source.format,
            docs=tuple(some_docs(given)),
        )
        return found, {one: ties.counts() for one, ties in groups.items()}

    def second(self, shard: Any, scores: Floats, sha256: str) -> tuple[None, Counted]:
        """Its counts for the judged scores of all shards."""
        given = self._read(shard)
        if _hash(given) != sha256:
            raise InputError(f"{shard}: was changed while it was being evaluated. Evaluate again.")
        run = self._projected(as_run(given).judged_only(self.qrels) if self.judged_only else given)
        return None, {one: ties.counts() for one, ties in self._groups(given, run, scores).items()}

    def _read(self, shard: Any) -> Countable:
        if isinstance(shard, str):
            return as_source(shard, format=self.format)
        try:
            return as_source(shard)
        except InputError as error:
            raise InputError(*(f"data set: {problem}" for problem in error.problems)) from None

    def _projected(self, run: Countable) -> Countable:
        return run if self.score_dtype is None else run.projected(self.score_dtype)

    def _groups(self, given: Countable, run: Countable, scores: Floats | None = None) -> dict[Reading, TieGroups]:
        found: dict[Reading, TieGroups] = {}
        for whole in sorted({one.whole for one in self.readings}):
            wanted = {one.dtype: self.orders_of(one) for one in self.readings if one.whole == whole}
            read = self._projected(given) if whole else run
            ties = tie_groups_as(self.qrels, read, wanted, scores)
            found |= {Reading(dtype, whole): groups for dtype, groups in ties.items()}
        return found


def bits(present: NDArray[np.bool_]) -> bytes:
    """Which queries are there: a bit each, compressed, so that few and all are both little."""
    return zlib.compress(np.packbits(present).tobytes(), 1)


def flags(present: bytes, queries: int) -> Codes:
    """The queries that are there."""
    packed = np.frombuffer(zlib.decompress(present), np.uint8)
    return np.flatnonzero(np.unpackbits(packed, count=queries))


def answered(work: Callable[[], tuple[Found | None, Counted]]) -> tuple[bytes, bytes]:
    """What a shard answers, as bytes: of itself, and its counts."""
    try:
        found, counted = work()
    except TiewiseError as error:
        return packed(Answer(problem=str(error))), b""
    counts = packed(counted)
    return packed(Answer(found, len(counts))), counts


def added(sizes: tuple[int, int], answers: Sequence[bytes]) -> bytes:
    """The sum of the counts of neighbouring shards; `sizes` are the numbers of judged documents and of queries."""
    totals: dict[Reading, Total] = {}
    for answer in filter(None, answers):  # that of a shard with a problem is empty
        for reading, counts in unpacked(answer).items():
            totals.setdefault(reading, Total(*sizes, counts.before)).add(counts)
    return packed({reading: total.counts() for reading, total in totals.items()})


def packed(value: Any) -> bytes:
    """Anything as bytes."""
    return pickle.dumps(value, protocol=5)


def unpacked(value: bytes) -> Any:
    """What was packed."""
    return pickle.loads(value)


def _hash(run: Countable) -> str:
    return "" if run.source is None else run.source.sha256
