"""Figures of a comparison: its systems side by side, and two of them query by query, over the queries compared.

They are the figures of reports, drawn from what `compare` has measured already; nothing is read again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from tiewise.analysis.comparison import Compared
from tiewise.analysis.significance import bootstrap_intervals, check_confidence
from tiewise.errors import InputError, listed
from tiewise.figures.reports import differences, forest
from tiewise.metrics.definition import Measure

if TYPE_CHECKING:
    import altair as alt

__all__ = ["Plots"]


class Plots:
    """The figures of one comparison; each is an ordinary altair chart."""

    def __init__(self, compared: Compared):
        self._compared = compared

    def forest(
        self,
        measure: str | Measure | None = None,
        *,
        tools: bool | Iterable[str] = True,
        intervals: bool | float = True,
        title: str = "",
    ) -> alt.LayerChart:
        """The systems side by side in a measure, which may be left out where there is only one.

        `intervals` over queries are at the comparison's own confidence, at another, or none (False). `tools` are those
        whose numbers are wanted, of the ones that differ from each other by the order of ties alone: see `printed` of
        the comparison. See `tiewise.figures.forest`.
        """
        found = self._compared
        level = found.confidence if intervals is True else intervals
        printed, rows = self._printed(measure, tools), list[dict[str, Any]]()
        means = {system: found.estimate(system, measure) for system in found.systems}
        for system, mean in means.items():
            low, high = self._interval(system, measure, level) if level else (None, None)
            numbers = {key: getattr(mean, key) for key in ("expected", "minimum", "maximum")}
            rows.append({"name": system, **numbers, "ci_low": low, "ci_high": high, "tools": printed[system]})
        return forest(rows, measure=str(mean.measure), title=title, level=level or found.confidence)

    def differences(
        self,
        a: str | None = None,
        b: str | None = None,
        measure: str | Measure | None = None,
        *,
        title: str = "",
    ) -> alt.LayerChart:
        """System a less system b, query by query; of two systems neither need be named.

        A line reaches over what the ties of both can make of a difference, each in an order of its own. See
        `tiewise.figures.differences`.
        """
        first, second = self._two(a, b)
        mine, others = (self._compared.estimates(name, measure) for name in (first, second))
        return differences(mine, others, names=(first, second), title=title)

    def _two(self, a: str | None, b: str | None) -> tuple[str, str]:
        systems = self._compared.systems
        if a is None and b is None and len(systems) == 2:
            return systems[0], systems[1]
        if a is None or b is None:
            raise InputError(f"Name two systems to draw, of {listed(systems, 5)}.")
        if a == b:
            raise InputError(f"'{a}' does not differ from itself. Name two systems.")
        return a, b

    def _printed(self, measure: str | Measure | None, tools: bool | Iterable[str]) -> dict[str, dict[str, float]]:
        if tools is False:
            return {system: {} for system in self._compared.systems}
        printed = self._compared.printed(measure)
        if tools is True:
            return printed
        wanted, known = list(tools), dict.fromkeys(tool for each in printed.values() for tool in each)
        unknown = [tool for tool in wanted if tool not in known]
        if unknown:
            raise InputError(f"No number of {listed(unknown)} can be compared here. There are: {', '.join(known)}.")
        return {system: {tool: each[tool] for tool in wanted if tool in each} for system, each in printed.items()}

    def _interval(
        self, system: str, measure: str | Measure | None, level: float
    ) -> tuple[float, float] | tuple[None, None]:
        """That of a system's expectation over the queries; none for one query, and for counts."""
        check_confidence(level, "intervals")
        found = self._compared
        each = found.estimates(system, measure)
        if len(each) < 2 or each.total:
            return None, None
        low, high = bootstrap_intervals(each.expected[:, None], level, samples=found.samples, seed=found.seed)
        return float(low[0]), float(high[0])
