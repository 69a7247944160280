"""`Plots` of a comparison: its systems side by side, and two of them query by query.

The figures show what `compare` has measured, over the queries compared; nothing is read again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tiewise.analysis.comparison import Compared
from tiewise.errors import InputError
from tiewise.figures.forests import forest, query_interval
from tiewise.figures.query_differences import differences
from tiewise.metrics.definition import Measure
from tiewise.tables.wording import list_examples

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
        """The systems side by side in a measure, which may be omitted if there is only one.

        `intervals` over queries are at the comparison's own confidence (True), at another, or left out (False).
        `tools` selects tools from `Compared.printed`, whose numbers differ only by the order of ties. See
        `tiewise.figures.forest`.
        """
        compared = self._compared
        confidence = compared.confidence if intervals is True else intervals or None
        printed = self._printed(measure, tools)
        rows = []
        for system in compared.systems:
            mean = compared.estimate(system, measure)
            low, high = query_interval(
                compared.estimates(system, measure), confidence, samples=compared.samples, seed=compared.seed
            )
            rows.append(
                {
                    "name": system,
                    "expected": mean.expected,
                    "minimum": mean.minimum,
                    "maximum": mean.maximum,
                    "ci_low": low,
                    "ci_high": high,
                    "tools": printed[system],
                }
            )
        return forest(rows, measure=str(mean.measure), title=title, level=confidence or compared.confidence)

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
