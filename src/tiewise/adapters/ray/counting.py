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

from tiewise.analysis.readings import Countable
from tiewise.data.columns import Floats
from tiewise.data.runs import Qrels
from tiewise.errors import InputError
from tiewise.io import as_run, countable
from tiewise.ties.groups import some_docs, tie_groups_as
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
        given = self._read(shard)
        kept = as_run(given).judged_only(self.qrels) if self.judged_only else given
        run = self._project(kept)
        groups = tie_groups_as(self.qrels, run, self.orders, scores)
        ties = groups["float64"]
        judged = np.flatnonzero(ties.owned if ties.owned is not None else ~np.isnan(ties.score))
        summary = ShardSummary(
            judged=small(judged),
            scores=ties.score[judged],
            queries=small(np.flatnonzero(ties.present)),
            unjudged=ties.unjudged,
            rows=len(run),
            tied_rows=run.tied_rows,
            new_ties=0 if run is kept or scores is not None else run.tied_rows - kept.tied_rows,
            sha256="" if given.source is None else given.source.sha256,
            format="" if given.source is None else given.source.format,
            docs=tuple(some_docs(given if self.judged_only else run)),
        )
        if self.judged_only:  # send the end of the whole list: whether it was cut there shows in the sum of all shards
            whole = tie_groups_as(self.qrels, self._project(given), dict.fromkeys(self.orders, ()), scores)
            for dtype, ties in groups.items():
                floor = whole[dtype].floor
                size = np.where(ties.floor == floor, ties.floor_size, 0)
                groups[dtype] = replace(ties, floor=floor, floor_size=size)
        return summary, {dtype: ties.counts() for dtype, ties in groups.items()}

    def _read(self, shard: Shard) -> Countable:
        if isinstance(shard, str):
            return countable(shard, format=self.format)
        try:
            return countable(shard)
        except InputError as error:
            raise InputError(*(f"data set: {problem}" for problem in error.problems)) from None

    def _project(self, run: Countable) -> Countable:
        return run if self.score_dtype is None else run.projected(self.score_dtype)
