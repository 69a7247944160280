"""The figures of a report, an audit or a comparison: what `report.plot` and `compared.plot` offer.

They show the numbers that the result has; nothing is read again. Each figure is an ordinary altair chart.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tiewise.analysis.auditing import Audit
from tiewise.analysis.auditing.tie_statistics import SizeBin, TieStatistics
from tiewise.analysis.comparison import Compared
from tiewise.analysis.reports import Report
from tiewise.analysis.significance import ATOL
from tiewise.errors import InputError
from tiewise.figures.curves import curve
from tiewise.figures.forests import forest, forest_rows
from tiewise.figures.theme import GREY, INK, PALETTE, inline_data, layer_chart, load_altair, name_legend, palette_colors
from tiewise.io import as_run
from tiewise.metrics.definition import Measure
from tiewise.metrics.estimate import Estimate
from tiewise.results.wording import count_noun, list_examples

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
        self, a: str | None = None, b: str | None = None, measure: str | Measure | None = None, *, title: str = ""
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


# -- sizes of tie groups --------------------------------------------------------------------------------------------


def group_sizes(runs: Any, *, title: str = "") -> alt.LayerChart:
    """The share of rows by the size of their tie group, for one run, or for several by name.

    A run is anything that `evaluate` takes, or an `Audit`; several runs are ``{name: run}``. For one run, the numbers
    above the bars count its groups.
    """
    several = isinstance(runs, Mapping) and not any(map(_is_document_scores, runs.values()))
    bins = {str(name): _size_bins(run) for name, run in (runs.items() if several else [("", runs)])}
    if not bins:
        raise InputError("There is no run to draw. Give one, or several by their names.")
    alt, names = load_altair(), list(bins)
    widest = max(bins.values(), key=len)
    labels = [_size_label(one) for one in widest]
    n_rows = {name: sum(one.rows for one in of_run) for name, of_run in bins.items()}
    bars = [
        {
            "run": name,
            "size": _size_label(one),
            "groups": one.groups,
            "rows": one.rows,
            "share": one.rows / n_rows[name],
        }
        for name, of_run in bins.items()
        for one in of_run
    ]
    axis = alt.Axis(labelAngle=-40 if len(labels) > 9 else 0)
    x = alt.X("size:N", title="documents in the tie group (1: not tied)", sort=labels, axis=axis)
    y = alt.Y("share:Q", title="share of rows", axis=alt.Axis(format="%"))
    tooltip = [*(["run:N"] if several else []), "size:N", "groups:Q", "rows:Q", alt.Tooltip("share:Q", format=".1%")]
    base = alt.Chart(alt.InlineData(values=bars))
    if several:
        legend = alt.Legend(**name_legend(names), symbolType="square")
        scale = alt.Scale(domain=names, range=palette_colors(len(names)))
        color = alt.Color("run:N", title=None, scale=scale, legend=legend)
        layers = [base.mark_bar().encode(x, y, alt.XOffset("run:N", sort=names), color, tooltip=tooltip)]
        subtitle = "Of the rows of each run, those in tie groups of a size."
    else:
        color = alt.condition("datum.size == '1'", alt.value(GREY), alt.value(PALETTE[0]))
        counts = base.mark_text(dy=-7, fontSize=11, color=GREY).encode(x, y, alt.Text("groups:Q", format=","))
        layers = [base.mark_bar(width=alt.RelativeBandSize(0.75)).encode(x, y, color=color, tooltip=tooltip), counts]
        total = n_rows[names[0]]
        tied = sum(one.rows for one in widest if one.low > 1)
        subtitle = f"{tied / total:.1%} of {total:,} rows are tied. Above the bars: the number of groups."
    return layer_chart(
        layers,
        title=title or "Sizes of tie groups",
        subtitle=subtitle,
        description="The share of rows by the size of their tie group.",
        height=280,
    )


def _is_document_scores(value: Any) -> bool:
    """Whether this is ``{document: score}`` of one query, and not a run."""
    return isinstance(value, Mapping) and not any(isinstance(one, Mapping) for one in value.values())


def _size_bins(run: Any) -> tuple[SizeBin, ...]:
    bins = run.group_sizes if isinstance(run, Audit) else TieStatistics.of(as_run(run)).histogram()
    if not bins:
        raise InputError("The run has no rows: there are no tie groups to draw.")
    return bins


def _size_label(one: SizeBin) -> str:
    return f"{one.low:,}" if one.low == one.high else f"{one.low:,}–{one.high:,}"


# -- two systems query by query -------------------------------------------------------------------------------------

HALF_BAR = 0.42  # of the distance of two bars


def differences(
    a: Mapping[str, Estimate | float],
    b: Mapping[str, Estimate | float],
    *,
    names: tuple[str, str] = ("A", "B"),
    title: str = "",
) -> alt.LayerChart:
    """Two systems query by query, from `Report.per_query` or plain numbers: expected differences, sorted.

    A line shows the range that the tie orders of both systems allow. The bar is pale if this range includes 0. Queries
    without a difference, and queries that only one system has, are left out.
    """
    common = [query for query in a if query in b]
    if not common:
        raise InputError(f"The two have no query in common: {list_examples(list(a))}; {list_examples(list(b))}.")
    rows = sorted((_difference(query, a[query], b[query]) for query in common), key=lambda row: -row["difference"])
    drawn = [row for row in rows if row["low"] or row["high"]]
    alt, n = load_altair(), max(len(drawn), 1)
    bounds = [{"left": i - HALF_BAR, "place": i, "right": i + HALF_BAR, **row} for i, row in enumerate(drawn, 1)]
    base = alt.Chart(alt.InlineData(values=bounds))
    scale = alt.Scale(domain=[0.4, n + 0.6], nice=False)
    no_axis = alt.Axis(labels=False, ticks=False, grid=False, domain=False)
    x_title = f"{count_noun(len(drawn), 'query', 'queries')}, sorted"
    tooltip = ["query:N", *(f"{key}:Q" for key in ("difference", "low", "high"))]
    bars = base.mark_rect(aria=False).encode(
        alt.X("left:Q", title=x_title, scale=scale, axis=no_axis),
        alt.X2("right:Q"),
        alt.Y("difference:Q", title=f"{names[0]} − {names[1]}"),
        alt.Y2Datum(0),
        color=alt.condition("datum.difference > 0", alt.value(PALETTE[0]), alt.value(PALETTE[1])),
        opacity=alt.condition("datum.sure", alt.value(0.95), alt.value(0.35)),
        tooltip=tooltip,
    )
    ranges = (
        base.transform_filter("datum.high > datum.low")
        .mark_rule(color=INK, strokeWidth=max(0.6, min(1.5, 200 / n)), aria=False)
        .encode(alt.X("place:Q", scale=scale, axis=no_axis), alt.Y("low:Q"), alt.Y2("high:Q"), tooltip=tooltip)
    )
    zero = alt.Chart(inline_data({"zero": [0]})).mark_rule(color=GREY).encode(alt.Y("zero:Q"))
    measure = getattr(a, "measure", None) or ""
    return layer_chart(
        [bars, zero, ranges],
        title=title or f"{measure}{': ' if measure else ''}{names[0]} against {names[1]}, query by query",
        subtitle=_summary(rows, drawn, len(set(a) ^ set(b)), names),
        description=f"{names[0]} less {names[1]} for each of {len(common):,} queries, sorted.",
        height=300,
    )


def _difference(query: str, a: Estimate | float, b: Estimate | float) -> dict[str, Any]:
    """The expected difference and its extremes; the ties of the two systems are independent."""
    (mean_a, low_a, high_a), (mean_b, low_b, high_b) = _statistics(query, a), _statistics(query, b)
    gaps = (mean_a - mean_b, low_a - high_b, high_a - low_b)
    mean, low, high = (0.0 if abs(gap) <= ATOL else gap for gap in gaps)  # smaller gaps are rounding
    return {"query": query, "difference": mean, "low": low, "high": high, "sure": low > 0 or high < 0}


def _statistics(query: str, value: Estimate | float) -> tuple[float, float, float]:
    if not isinstance(value, Estimate):
        return float(value), float(value), float(value)
    if value.expected is None:
        raise InputError(f"Query {query!r} has no expected value to compare. Leave it out.")
    low = value.expected if value.minimum is None else value.minimum
    return value.expected, low, value.expected if value.maximum is None else value.maximum


def _summary(
    rows: Sequence[dict[str, Any]], drawn: Sequence[dict[str, Any]], unpaired: int, names: Sequence[str]
) -> str:
    """The subtitle: who is better for how many queries, and what was left out."""
    first, second = (sum(sign * row["difference"] > 0 for row in rows) for sign in (1, -1))
    parts = [f"{names[0]} is better for {count_noun(first, 'query', 'queries')}, {names[1]} for {second:,}."]
    if any(row["high"] > row["low"] for row in drawn):
        undecided = sum(not row["sure"] for row in drawn)
        parts.append(f"Lines: over the orders of ties; pale where these could undo it ({undecided:,}).")
    same = len(rows) - len(drawn)
    if same:
        parts.append(f"{same:,} {'does' if same == 1 else 'do'} not differ.")
    if unpaired:
        parts.append(f"{unpaired:,} that only one of the two has are left out.")
    return " ".join(parts)
