"""Counting one shard, on a worker: it returns judged scores and counts, never rows.

A shard is the path of a file, or a block of a Ray data set, which is an Arrow table. Both passes call `count`: the
first one as if the shard were the whole run, the second one for the judged scores of all shards.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tiewise.data.columns import Floats
from tiewise.data.runs import Qrels
from tiewise.errors import InputError
from tiewise.io import as_source
from tiewise.io.memory_run import MemoryRun
from tiewise.ties.counted import Counted, RunSource
from tiewise.ties.groups import TieGroups
from tiewise.ties.shards import Counts, small

if TYPE_CHECKING:
    import pyarrow

__all__ = ["RunCounter", "Shard", "ShardCounter", "ShardCounts", "ShardSummary"]

Shard: TypeAlias = "str | pyarrow.Table"
ShardCounts: TypeAlias = Mapping[str, Counts]  # by score type


@dataclass(frozen=True)
class ShardSummary:
    """What a shard holds."""

    judged: NDArray[Any]  # (n,): its judged documents, as rows of the qrels
    scores: Floats  # (n,): their scores
    queries: NDArray[Any]  # (m,): its judged queries
    unjudged: frozenset[str] = frozenset()  # its other queries
    rows: int = 0
    tied_rows: int = 0
    new_ties: int = 0  # tied rows that `score_dtype` made
    sha256: str = ""  # of the file
    format: str = ""
    docs: tuple[str, ...] = ()  # a few documents, for error messages

    @property
    def nbytes(self) -> int:
        """The bytes of its arrays."""
        return self.judged.nbytes + self.scores.nbytes + self.queries.nbytes


@dataclass(frozen=True)
class ShardCounter(ABC):
    """Counts shards of one kind."""

    qrels: Qrels
    orders: Mapping[str, Sequence[str]]  # tie-break orders by score type
    score_dtype: str | None = field(default=None, kw_only=True)  # round scores to this type first
    judged_only: bool = field(default=False, kw_only=True)  # remove unjudged documents first
    complete: ClassVar[bool] = False  # every shard ranks all of its documents for all queries

    @abstractmethod
    def count(self, shard: Shard, scores: Floats | None = None) -> tuple[ShardSummary, ShardCounts]:
        """A shard's summary and counts: for its own judged scores, or for the judged `scores` of all shards."""

    @property
    def unjudged(self) -> frozenset[str]:
        """Queries without judgments, as far as they are known before a shard is read."""
        return frozenset()


@dataclass(frozen=True)
class RunCounter(ShardCounter):
    """Counts the shards of a run."""

    format: str | None = None

    def count(self, shard: Shard, scores: Floats | None = None) -> tuple[ShardSummary, ShardCounts]:
        """A shard's summary and counts: for its own judged scores, or for the judged `scores` of all shards."""
        source = self._read(shard)
        if self.judged_only:
            rows = source.rows()
            counted = self._count(MemoryRun(rows.judged_only(self.qrels)), scores)
            whole = self._count(MemoryRun(rows), scores)
            # Send the end of the whole list: whether it was cut there shows in the sum of all shards.
            groups = {dtype: _with_floor_of(ties, whole.ties[dtype]) for dtype, ties in counted.ties.items()}
            counted = replace(counted, ties=groups, docs=whole.docs)
        else:
            counted = self._count(source, scores)
        ties = counted.ties["float64"]
        judged = np.flatnonzero(ties.owned if ties.owned is not None else ~np.isnan(ties.score))
        summary = ShardSummary(
            judged=small(judged),
            scores=ties.score[judged],
            queries=small(np.flatnonzero(ties.present)),
            unjudged=ties.unjudged,
            rows=counted.n_rows or 0,
            tied_rows=counted.tied_rows or 0,
            new_ties=counted.new_ties or 0,
            sha256="" if counted.source is None else counted.source.sha256,
            format="" if counted.source is None else counted.source.format,
            docs=counted.docs,
        )
        return summary, {dtype: counted.ties[dtype].only(orders).counts() for dtype, orders in self.orders.items()}

    def _count(self, source: RunSource, scores: Floats | None) -> Counted:
        orders = sorted({order for some in self.orders.values() for order in some})
        return source.count(self.qrels, orders, tuple(self.orders), score_dtype=self.score_dtype, scores=scores)

    def _read(self, shard: Shard) -> RunSource:
        if isinstance(shard, str):
            return as_source(shard, format=self.format)
        try:
            return as_source(shard)
        except InputError as error:
            raise InputError(*(f"data set: {problem}" for problem in error.problems)) from None


def _with_floor_of(ties: TieGroups, whole: TieGroups) -> TieGroups:
    """Tie groups of condensed lists, with the lowest scores of the whole lists."""
    size = np.where(ties.floor == whole.floor, ties.floor_size, 0)
    return replace(ties, floor=whole.floor, floor_size=size)
