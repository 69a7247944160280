"""`MemoryRun`: a `Run`, whose columns are in memory, as a source of tie groups."""

from __future__ import annotations

from collections.abc import Sequence

from tiewise.data.columns import Floats
from tiewise.data.runs import Qrels, Run
from tiewise.ties.counted import Counted, RunSource, count_lists

__all__ = ["MemoryRun"]


class MemoryRun(RunSource):
    """A `Run` as a source of tie groups.

    >>> qrels = Qrels.from_dict({"q": {"a": 1}})
    >>> counted = MemoryRun(Run.from_dict({"q": {"a": 1.0, "b": 1.0}})).count(qrels, ["docid-desc"])
    >>> counted.ties["float64"].size, counted.tied_rows
    (array([2]), 2)
    """

    def __init__(self, run: Run):
        self._run = run

    def rows(self) -> Run:
        """The run itself."""
        return self._run

    def _count(
        self,
        qrels: Qrels,
        orders: Sequence[str],
        dtypes: Sequence[str],
        score_dtype: str | None,
        scores: Floats | None,
    ) -> Counted:
        return count_lists(self._run, qrels, orders, dtypes, score_dtype, scores)
