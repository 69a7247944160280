"""`DictRun`: a run that stays in the user's ``{query: {document: score}}``.

Most runs in Python are dictionaries already. The compiled reader looks ids up where Python keeps them: none is coded or
copied.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tiewise.data.runs import Run
from tiewise.data.source import Source
from tiewise.errors import InputError
from tiewise.io import streaming
from tiewise.io.streaming import Counting, StreamedRun

__all__ = ["DictRun"]


class DictRun(StreamedRun):
    """A run in the user's dictionary of dictionaries.

    >>> DictRun({"q1": {"d1": 0.5}}).rows()
    <Run: 1 query, 1 row>
    """

    is_constant = False  # the user may change the dictionary

    def __init__(self, table: Mapping[Any, Mapping[Any, float]]):
        self._table = table
        self._threads = 1  # Python objects are read by one thread at a time

    def rows(self) -> Run:
        """The same run as columns."""
        return Run.from_dict(self._table)

    @property
    def _source(self) -> Source | None:
        return None

    def _read(self, counting: Counting) -> bool:
        return not counting.needs_ranks and counting.count(self._parts(), _load)

    def _parts(self) -> Iterator[list[tuple[Any, Any]]]:
        """Lists in parts of about `streaming.ROWS` rows."""
        part: list[tuple[Any, Any]] = []
        n_rows = 0
        for item in self._table.items():
            part.append(item)
            n_rows += len(item[1]) if isinstance(item[1], dict) else 1
            if n_rows >= streaming.ROWS:
                yield part
                part, n_rows = [], 0
        if part:
            yield part


def _load(block: Any, part: list[tuple[Any, Any]]) -> None:
    if not block.read_lists(part):
        raise InputError("An id is not text, or a score is not a number.")  # `Run` names it
