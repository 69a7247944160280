"""`EditedRun`: a run without the documents that have the id of their query, or with its scores negated."""

from __future__ import annotations

import numpy as np

from tiewise.caching import cached_property
from tiewise.data.columns import positions
from tiewise.data.runs import Run
from tiewise.errors import InputError
from tiewise.io.memory_run import MemoryRun
from tiewise.ties.counted import Counted, Request, RunSource


def edit_run(run: Run, *, drop_self: bool = False, distances: bool = False) -> Run:
    """The run without documents that have the id of their query (`drop_self`), or with opposite scores (`distances`).

    >>> edit_run(Run.from_dict({"q": {"q": 0.0, "a": 0.5}}), drop_self=True, distances=True).to_dict()
    {'q': {'a': -0.5}}
    """
    run = run.negated() if distances else run
    return run.without_self() if drop_self else run


def edit_source(source: RunSource, *, drop_self: bool = False, distances: bool = False) -> RunSource:
    """The same for any source; the source itself if nothing is to be done, or was done already."""
    if (source.drop_self, source.distances) == (drop_self, distances):
        return source
    if isinstance(source, EditedRun):
        source = source.original
    if isinstance(source, Counted):
        raise InputError("Tie groups hold counts, not rows: give drop_self or distances a run.")
    if not (drop_self or distances):
        return source
    edited = source.without_self() if drop_self and not distances else None
    return edited or EditedRun(source, drop_self=drop_self, distances=distances)


class EditedRun(RunSource):
    """A source whose rows are edited: see `edit_run`."""

    def __init__(self, source: RunSource, *, drop_self: bool, distances: bool):
        self.original, self.is_constant = source, source.is_constant
        self.drop_self, self.distances = drop_self, distances

    @cached_property
    def _edited(self) -> MemoryRun:
        return MemoryRun(edit_run(self.original.rows(), drop_self=self.drop_self, distances=self.distances))

    def rows(self) -> Run:
        """The edited rows."""
        return self._edited.rows()

    def _count(self, request: Request) -> Counted:
        counted = self._edited._count(request)
        if self.drop_self:  # whether lists look truncated is a matter of their lengths before
            whole = self.original.rows()
            places = positions(whole.query_index, request.qrels.queries)
            length = np.append(np.diff(whole.offsets), 0)[places]
            ties = {dtype: one.truncated_from(length) for dtype, one in counted.ties.items()}
            counted = counted.replace(ties=ties)
        return counted.replace(drop_self=self.drop_self, distances=self.distances)
