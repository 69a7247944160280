"""`MemoryRun`: a `Run`, whose columns are in memory, as a source of tie groups."""

from __future__ import annotations

from collections.abc import Sequence

from tiewise.data.columns import Floats
from tiewise.data.runs import Qrels, Run
from tiewise.ties.counted import DTYPES, Counted, RunSource, count_lists

__all__ = ["MemoryRun"]


class MemoryRun(RunSource):
    """A `Run` as a source of tie groups. It remembers its counts, so several questions share one count.

    >>> qrels = Qrels.from_dict({"q": {"a": 1}})
    >>> counted = MemoryRun(Run.from_dict({"q": {"a": 1.0, "b": 1.0}})).count(qrels, ["docid-desc"])
    >>> counted.ties["float64"].size, counted.tied_rows
    (array([2]), 2)
    """

    def __init__(self, run: Run):
        self._run = run
        self._counts: dict[tuple[object, ...], Counted] = {}

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

    def count(
        self,
        qrels: Qrels,
        orders: Sequence[str],
        dtypes: Sequence[str] = DTYPES,
        *,
        score_dtype: str | None = None,
        judged_only: bool = False,
        scores: Floats | None = None,
    ) -> Counted:
        """The tie groups: see `RunSource`."""
        key = id(qrels), tuple(orders), tuple(dtypes), score_dtype, judged_only
        if scores is None and key in self._counts:
            return self._counts[key]
        counted = super().count(qrels, orders, dtypes, score_dtype=score_dtype, judged_only=judged_only, scores=scores)
        if scores is None:
            self._counts[key] = counted  # it holds the qrels, so that their id stays theirs
        return counted
