"""`StreamedRun`: what a run must answer that is not in memory and counts for itself.

`tiewise.ties` counts the rows of a run that it is given. A run that stays in its file or table is asked for its tie
groups instead, in all readings of its scores at once, so that it need be read only once; `tiewise.io` holds such runs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tiewise.data.columns import Floats
from tiewise.data.runs import Qrels, Run, Source

if TYPE_CHECKING:
    from tiewise.ties.groups import TieGroups

__all__ = ["StreamedRun"]


class StreamedRun(ABC):
    """A run that is not in memory and counts for itself, for several readings of its scores at once."""

    @property
    @abstractmethod
    def source(self) -> Source | None:
        """The file in which it is, if it is in one."""

    @property
    def path(self) -> str | None:
        """The path of that file, for messages: it is not hashed for that."""
        return None

    @property
    @abstractmethod
    def queries(self) -> tuple[str, ...]:
        """The queries of the run."""

    @abstractmethod
    def __len__(self) -> int: ...

    @property
    @abstractmethod
    def tied_rows(self) -> int:
        """How many rows share their score with another row of the same query."""

    @property
    def tied_share(self) -> float:
        """The share of rows that are tied with another, 0 to 1."""
        return self.tied_rows / len(self) if len(self) else 0.0

    @property
    @abstractmethod
    def docs(self) -> tuple[str, ...]:
        """Some documents of the run, for messages."""

    @abstractmethod
    def projected(self, dtype: str) -> StreamedRun:
        """The run as a reader sees it that keeps scores in another type: see `Run.projected`."""

    @abstractmethod
    def to_run(self) -> Run:
        """The same run as columns."""

    @abstractmethod
    def tie_groups(
        self, qrels: Qrels, wanted: Mapping[str, Sequence[str]], scores: Floats | None = None
    ) -> dict[str, TieGroups]:
        """The tie groups for several readings of the scores, each with its orders: see `tie_groups`."""
