"""`Plots` of a report or an audit: the figures that show its own numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from tiewise.analysis.reports import Report
from tiewise.errors import InputError
from tiewise.figures.curves import curve
from tiewise.figures.forests import forest, forest_rows
from tiewise.figures.query_differences import differences
from tiewise.figures.tie_group_sizes import group_sizes
from tiewise.metrics.definition import Measure

if TYPE_CHECKING:
    import altair as alt

__all__ = ["Plots"]


class Plots:
    """The figures of one report, or of an audit; each is an ordinary altair chart."""

    def __init__(self, report: Report | None, run: Any):
        self._judged, self._run = report, run

    @property
    def _report(self) -> Report:
        if self._judged is None:
            raise InputError("This figure needs judgments: give the audit qrels.")
        return self._judged

    def curve(
        self,
        measure: str | Measure | Sequence[str | Measure] = "nDCG",
        cutoffs: Iterable[int] = range(1, 51),
        *,
        oblivious: bool = True,
        title: str = "",
    ) -> alt.LayerChart | alt.ConcatChart:
        """Measures against their cutoffs: see `tiewise.figures.curve`."""
        return curve(self._report, measure, cutoffs, oblivious=oblivious, title=title)

    def forest(
        self, *, tools: bool | Iterable[str] = True, intervals: float | None = None, title: str = ""
    ) -> alt.LayerChart:
        """All measures of the report except counts, one row each: see `tiewise.figures.forest` and `forest_rows`."""
        report, chosen = self._report, tools if isinstance(tools, bool) else list(tools)
        rows = [
            row
            for measure in report
            if not measure.total
            for row in forest_rows({measure.name: report}, measure, tools=chosen, intervals=intervals)
        ]
        heading = title or "What the order of ties makes of each measure"
        return forest(rows, sort=False, title=heading, level=intervals or 0.95)

    def differences(
        self,
        other: Report,
        measure: str | Measure | None = None,
        *,
        names: tuple[str, str] = ("this", "other"),
        title: str = "",
    ) -> alt.LayerChart:
        """This report minus another, query by query, in one measure (default: the first of this report).

        See `tiewise.figures.differences`.
        """
        chosen = self._report.measures[0] if measure is None else measure
        a, b = (report.at(chosen) for report in (self._report, other))
        return differences(a.per_query(a.measures[0]), b.per_query(b.measures[0]), names=names, title=title)

    def group_sizes(self, *, title: str = "") -> alt.LayerChart:
        """How large the tie groups of the run are: see `tiewise.figures.group_sizes`."""
        if self._run is None:
            raise InputError(
                "The sizes of all tie groups are unknown: only those with judged documents were given. "
                "Evaluate the run itself."
            )
        return group_sizes(self._run, title=title)
