"""The figures of a report, an audit or a comparison: what `report.plot` and `compared.plot` offer.

They show the numbers that the result has; nothing is read again. Each figure is an ordinary altair chart.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from tiewise.analysis.comparison import Compared
from tiewise.analysis.reports import Report
from tiewise.errors import InputError
from tiewise.figures.curves import curve
from tiewise.figures.forests import forest, forest_rows
from tiewise.figures.query_differences import differences
from tiewise.figures.tie_group_sizes import group_sizes
from tiewise.metrics.definition import Measure
from tiewise.results.wording import list_examples

if TYPE_CHECKING:
    import altair as alt


class ReportPlots:
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

    def forest(self, *, tools: bool | Iterable[str] = True, intervals: bool = False, title: str = "") -> alt.LayerChart:
        """All measures of the report except counts, one row each: see `tiewise.figures.forest` and `forest_rows`."""
        report, chosen = self._report, tools if isinstance(tools, bool) else list(tools)
        rows = [
            row
            for measure in report
            if not measure.total
            for row in forest_rows({measure.name: report}, measure, tools=chosen, intervals=intervals)
        ]
        heading = title or "What the order of ties makes of each measure"
        return forest(rows, sort=False, title=heading)

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


class ComparisonPlots:
    """The figures of one comparison; each is an ordinary altair chart."""

    def __init__(self, compared: Compared):
        self._compared = compared

    def forest(
        self,
        measure: str | Measure | None = None,
        *,
        tools: bool | Iterable[str] = True,
        intervals: bool = True,
        title: str = "",
    ) -> alt.LayerChart:
        """The systems side by side in a measure, which may be omitted if there is only one.

        `intervals` over queries are those of each system alone: their whiskers may overlap although the difference is
        shown. `tools` selects tools from `Compared.printed`, whose numbers differ only by the order of ties. See
        `tiewise.figures.forest`.
        """
        compared, printed, rows = self._compared, self._printed(measure, tools), []
        for system in compared.systems:
            mean = compared.estimate(system, measure)
            low, high = (intervals and compared.estimates(system, measure).mean().ci) or (None, None)
            values = {"expected": mean.expected, "minimum": mean.minimum, "maximum": mean.maximum}
            rows.append({"name": system, **values, "ci_low": low, "ci_high": high, "tools": printed[system]})
        return forest(rows, measure=str(mean.measure), title=title)

    def differences(
        self,
        a: str | None = None,
        b: str | None = None,
        measure: str | Measure | None = None,
        *,
        title: str = "",
    ) -> alt.LayerChart:
        """System a minus system b, query by query. If there are only two systems, they need not be named.

        A line shows the range that the ties of both systems allow, each in its own order. See
        `tiewise.figures.differences`.
        """
        systems = self._compared.systems
        if a is None and b is None and len(systems) == 2:
            a, b = systems
        if a is None or b is None:
            raise InputError(f"Name two systems to draw, of {list_examples(systems, 5)}.")
        if a == b:
            raise InputError(f"'{a}' does not differ from itself. Name two systems.")
        first, second = (self._compared.estimates(name, measure) for name in (a, b))
        return differences(first, second, names=(a, b), title=title)

    def _printed(self, measure: str | Measure | None, tools: bool | Iterable[str]) -> dict[str, dict[str, float]]:
        """The numbers of the chosen tools, by system."""
        if tools is False:
            return {system: {} for system in self._compared.systems}
        printed = self._compared.printed(measure)
        if tools is True:
            return printed
        chosen, known = list(tools), dict.fromkeys(tool for values in printed.values() for tool in values)
        unknown = [tool for tool in chosen if tool not in known]
        if unknown:
            raise InputError(
                f"No number of {list_examples(unknown)} can be compared here. Available: {', '.join(known)}."
            )
        return {system: {tool: values[tool] for tool in chosen if tool in values} for system, values in printed.items()}
