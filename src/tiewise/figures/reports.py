"""Figures of reports: a measure against its cutoff, systems side by side, queries against each other, tie groups.

All of them show what the order of ties alone can do. `curve` shows what Figures 2, 4 and 5 of Yang et al. (2025) show.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from tiewise.analysis.auditing import Audit
from tiewise.analysis.auditing.tie_statistics import SizeBin, TieStatistics
from tiewise.analysis.measuring import resolve_measures
from tiewise.analysis.reports import Report
from tiewise.analysis.significance import ATOL, bootstrap_intervals, check_confidence
from tiewise.errors import InputError, counted, listed
from tiewise.figures.theme import GREY, INK, PALETTE, WIDTH, altair, dressed, rows
from tiewise.io import as_run
from tiewise.metrics.definition import Measure
from tiewise.metrics.estimate import Estimate
from tiewise.metrics.tools import TOOLS
from tiewise.tables.records import Rows

if TYPE_CHECKING:
    import altair as alt

__all__ = ["Plots", "curve", "differences", "forest", "forest_rows", "group_sizes"]

#: Lines of the same colour, and all lines in print, differ in these.
DASHES = ((1, 0), (7, 3), (2, 2), (9, 3, 2, 3), (4, 4), (1, 3))

#: Crosses of different tools.
CROSSES = ("M-1-1L1 1M-1 1L1-1", "M-1.2 0L1.2 0M0-1.2L0 1.2", "M-1-1L1 1M-1 1L1-1M-1.3 0L1.3 0")

MARKED = 20  # so many cutoffs have a cross at the most; more would run into a line of their own


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
    ) -> Any:
        """Measures against their cutoffs: see `tiewise.figures.curve`."""
        return curve(self._report, measure, cutoffs, oblivious=oblivious, title=title)

    def forest(
        self, *, tools: bool | Iterable[str] = True, intervals: float | None = None, title: str = ""
    ) -> alt.LayerChart:
        """All measures of the report but counts, a row for each: see `tiewise.figures.forest` and `forest_rows`."""
        report = self._report
        measured = [measure for measure in report if not measure.total]
        how: dict[str, Any] = {"tools": tools, "intervals": intervals}
        found = [row for one in measured for row in forest_rows({one.name: report}, one, **how)]
        heading = title or "What the order of ties makes of each measure"
        return forest(found, sort=False, title=heading, level=intervals or 0.95)

    def differences(
        self,
        other: Report,
        measure: str | Measure | None = None,
        *,
        names: tuple[str, str] = ("this", "other"),
        title: str = "",
    ) -> alt.LayerChart:
        """This report less another, query by query, by the first measure of this one or by any other.

        See `tiewise.figures.differences`.
        """
        chosen = self._report.measures[0] if measure is None else measure
        mine, others = (report.at(chosen) for report in (self._report, other))
        return differences(
            mine.per_query(mine.measures[0]), others.per_query(others.measures[0]), names=names, title=title
        )

    def group_sizes(self, *, title: str = "") -> alt.LayerChart:
        """How large the tie groups of the run are: see `tiewise.figures.group_sizes`."""
        if self._run is None:
            raise InputError("Tie groups of judged documents do not tell how large all are. Evaluate the run itself.")
        return group_sizes(self._run, title=title)


# -- a measure against its cutoff --------------------------------------------------------------------------------------


def curve(
    reports: Report | Mapping[str, Report],
    measure: str | Measure | Sequence[str | Measure] = "nDCG",
    cutoffs: Iterable[int] = range(1, 51),
    *,
    oblivious: bool = True,
    title: str = "",
    marked: str = "",
) -> Any:
    """Measures against their cutoffs, for one report or for several by their names; a panel for each measure.

    The line is the expectation, shaded is what some order of the ties gives, and a cross is the tie-oblivious value
    where ties can move it; `marked` says what order that is, if its name does not. The measures are computed anew from
    what the reports hold: they need not be in them.
    """
    named = {"": reports} if isinstance(reports, Report) else dict(reports)
    if not named:
        raise InputError("There is no report to draw. Give one, or several by their names.")
    families = list(dict.fromkeys(one.uncut for one in resolve_measures(measure)))
    ranks = _ranks(cutoffs)
    points = [point for name, report in named.items() for point in _points(name, report, families, ranks)]
    panels = [
        _panel([p for p in points if p["measure"] == one.name], list(named), ranks, oblivious, len(families) > 1)
        for one in families
    ]
    alt, measured = altair(), ", ".join(one.name for one in families)
    orders = {report.provenance.options["oblivious"] for report in named.values()} - {None}
    crosses = f" Crosses: {marked or 'the order of ' + ', '.join(sorted(orders))}." if oblivious and orders else ""
    heading = alt.Title(
        title or f"{measured} against the cutoff",
        subtitle=f"Lines: expected over the orders of ties. Shaded: lowest to highest.{crosses}",
    )
    made: Any = panels[0]
    if len(panels) > 1:
        shared = {"color": "shared", "strokeDash": "shared"}
        made = alt.concat(*panels, columns=2, spacing=26).resolve_scale(**shared)
    described = f"{measured} against the cutoff, with the range over the orders of ties."
    return dressed(made.properties(title=heading), described)


def _ranks(cutoffs: Iterable[int]) -> list[int]:
    ranks = sorted(set(cutoffs))
    if not ranks:
        raise InputError("cutoffs is empty: give the ranks at which to measure, such as range(1, 51).")
    return ranks


def _points(name: str, report: Report, families: Sequence[Measure], ranks: Sequence[int]) -> list[dict[str, Any]]:
    """What is drawn of one report, a point for each measure and cutoff."""
    found = report.at([one @ rank for one in families for rank in ranks])
    every = math.ceil(len(ranks) / MARKED)
    points = []
    for measure in found:
        mean, place = found[measure], ranks.index(measure.cutoff or 0)
        if mean.expected is not None:
            numbers = {key: getattr(mean, key) for key in ("expected", "minimum", "maximum", "oblivious")}
            crossed = mean.oblivious is not None and (mean.tied or bool(mean.bias)) and place % every == 0
            keys = {"system": name, "measure": measure.uncut.name, "cutoff": measure.cutoff}
            points.append({**keys, **numbers, "crossed": crossed})
    return points


def _panel(
    points: Sequence[dict[str, Any]], names: Sequence[str], ranks: Sequence[int], oblivious: bool, small: bool
) -> alt.LayerChart:
    """One measure: ranges beneath, then lines, circles where cutoffs are few, and crosses."""
    alt = altair()
    base = alt.Chart(alt.InlineData(values=list(points)))
    apart = len(ranks) <= 12 and ranks[-1] >= 20 * ranks[0]  # a few cutoffs far from each other
    x = alt.X(
        "cutoff:Q",
        title="cutoff k",
        scale=alt.Scale(type="log" if apart else "linear", zero=False, nice=False, padding=8),
        axis=alt.Axis(values=list(ranks), grid=False, labelSeparation=5)
        if apart
        else alt.Axis(tickMinStep=1, format="d", grid=False),
    )
    scale = _with_room(point[key] for point in points for key in ("minimum", "maximum", "oblivious"))
    named = points[0]["measure"] if points else ""
    y = alt.Y("expected:Q", title=f"{named}@k", scale=scale)
    colour, dash = _told_apart("system", names)
    shown = ["system:N", "cutoff:Q", *(f"{key}:Q" for key in ("expected", "minimum", "maximum", "oblivious"))]
    ranges = base.mark_area(opacity=0.24 if len(names) < 3 else 0.16, aria=False).encode(
        x, alt.Y("minimum:Q", scale=scale, title=f"{named}@k"), alt.Y2("maximum:Q"), colour
    )
    layers = [ranges, base.mark_line(strokeWidth=2, aria=False).encode(x, y, colour, dash, tooltip=shown)]
    if len(ranks) <= MARKED:
        layers.append(
            base.mark_point(size=34, filled=False, fill="white", strokeWidth=1.6, opacity=1, aria=False).encode(
                x, y, colour, tooltip=shown
            )
        )
    if oblivious:
        cross = {"shape": CROSSES[0], "size": 36, "filled": False, "strokeWidth": 1.7, "opacity": 1, "aria": False}
        crosses = base.transform_filter("datum.crossed").mark_point(**cross)
        layers.append(crosses.encode(x, alt.Y("oblivious:Q", scale=scale), colour, tooltip=shown))
    size = {"width": WIDTH / 2 - 45, "height": 220} if small else {"width": WIDTH, "height": 340}
    made: Any = alt.layer(*layers).properties(**size)
    return made


def _with_room(values: Iterable[float | None]) -> Any:
    """A scale with some room around the values, but not beyond 0 and 1 if they are not: no such measure goes there."""
    known = [value for value in values if value is not None] or [0.0, 1.0]
    low, high = min(known), max(known)
    room = (high - low) / 25 or 0.02
    first = low - room if low < 0 else max(low - room, 0.0)
    last = high + room if high > 1 else min(high + room, 1.0)
    return altair().Scale(domain=[first, last], nice=True)


def _told_apart(field: str, names: Sequence[str]) -> tuple[Any, Any]:
    """Colour and dashes of some names: six colours, and dashes that tell lines apart in print, or of one colour."""
    alt = altair()
    legend = None
    if len(names) > 1 or names[0]:
        legend = alt.Legend(
            orient="top", symbolType="stroke", symbolSize=500, symbolOpacity=1, columns=4, labelLimit=260
        )
    dashes = [list(DASHES[(at + at // len(PALETTE)) % len(DASHES)]) for at in range(len(names))]
    scales = (alt.Scale(domain=list(names), range=one) for one in (_colours(names), dashes))
    colour, dash = (
        kind(f"{field}:N", title=None, scale=scale, legend=legend)
        for kind, scale in zip((alt.Color, alt.StrokeDash), scales, strict=True)
    )
    return colour, dash


def _colours(names: Sequence[str]) -> list[str]:
    return [PALETTE[at % len(PALETTE)] for at in range(len(names))]


# -- systems side by side ----------------------------------------------------------------------------------------------

NUMBERS = ("expected", "minimum", "maximum", "ci_low", "ci_high", "residual")
ROW, NEAREST, LANE = 34, 10, 8  # the height of a row, and how far crosses stand from its middle and from each other


def forest_rows(
    reports: Mapping[str, Report],
    measure: str | Measure,
    *,
    tools: bool | Iterable[str] = True,
    intervals: float | Mapping[str, tuple[float, float]] | None = None,
    seed: int = 0,
) -> Rows:
    """What `forest` draws of some reports, by their names: a row for each, with the number that each tool prints.

    `tools` are those whose numbers are wanted, all (True) or none (False). `intervals` are those over queries: a level
    such as 0.95, by bootstrap with this `seed`, or what is known by the names.
    """
    columns: dict[str, list[Any]] = {"name": list(reports)} | {key: [] for key in (*NUMBERS, "tools")}
    for name, report in reports.items():
        found = report.at(measure)
        mean = found[found.measures[0]]
        known = intervals.get(name) if isinstance(intervals, Mapping) else _interval(found, intervals, seed)
        low, high = known or (None, None)
        numbers = (mean.expected, mean.minimum, mean.maximum, low, high, mean.residual)
        for key, value in zip(NUMBERS, numbers, strict=True):
            columns[key].append(value)
        columns["tools"].append(_printed(found, tools))
    return Rows(columns)


def _interval(report: Report, level: float | None, seed: int) -> tuple[float, float] | None:
    """That of the expectation of a report's only measure over its queries; None for one query, and for counts."""
    if level is None:
        return None
    check_confidence(level, "intervals")
    measure = report.measures[0]
    each = report.per_query(measure).expected
    if len(each) < 2 or measure.total:
        return None
    low, high = bootstrap_intervals(each[:, None], level, seed=seed)
    return float(low[0]), float(high[0])


def _printed(report: Report, tools: bool | Iterable[str]) -> dict[str, float]:
    """What each tool prints for the only measure of a report; of tie groups, what their order gives."""
    wanted = list(TOOLS) if tools is True else [] if tools is False else list(tools)
    unknown = [tool for tool in wanted if tool not in TOOLS]
    if unknown:
        raise InputError(f"Unknown tool {unknown[0]!r}. There are: {', '.join(TOOLS)}.")
    if report.provenance.rows is None:
        order, value = report.provenance.options["oblivious"], report[report.measures[0]].oblivious
        return {order: value} if order is not None and value is not None else {}
    table = report.oblivious_by_tool() if wanted else ()
    return {row.tool: row.value for row in table if row.tool in wanted and row.value is not None}


def forest(
    systems: Iterable[Mapping[str, Any]], *, measure: str = "", sort: bool = True, title: str = "", level: float = 0.95
) -> alt.LayerChart:
    """Systems side by side, a row for each, from plain numbers.

    A row has a `name` and `expected`; and, where they are known, `minimum` and `maximum` (the thick bar: the order of
    ties), `ci_low` and `ci_high` (the whisker: which queries were sampled), `residual` (the hollow bar: what was not
    judged), and `tools`, the number that each tool prints (a cross each; those who always agree share one). The circle
    is the expectation. `sort` puts the highest on top; `level` is that of the intervals.
    """
    given = [_checked(row) for row in systems]
    names = [row["name"] for row in given]
    if len(set(names)) < len(names):
        raise InputError("Two rows have the same name. Give each a name of its own.")
    if sort:
        given.sort(key=lambda row: -row["expected"])
    alt, order = altair(), [row["name"] for row in given]
    data = rows({key: [row[key] for row in given] for key in ("name", *NUMBERS, "reach", "words")})
    base = alt.Chart(data)
    axis = alt.Axis(labelLimit=240, ticks=False, domain=False, labelPadding=8, grid=True)
    y = alt.Y("name:N", title=None, sort=order, axis=axis)

    drawn = [row[key] for row in given for key in (*NUMBERS[:-1], "reach")]
    scale = _with_room([*drawn, *(value for row in given for value in row["tools"].values())])

    def x(field: str) -> Any:
        return alt.X(f"{field}:Q", title=measure or "value", scale=scale, axis=alt.Axis(tickCount=10))

    shown = ["name:N", *(f"{key}:Q" for key in NUMBERS)]
    layers, words = [], []
    if _any(given, "residual"):
        hollow = base.mark_bar(height=15, fillOpacity=0, stroke=GREY, strokeWidth=1.2, strokeDash=[3, 2])
        layers.append(hollow.encode(x("expected"), alt.X2("reach:Q"), y))
        words.append("hollow: what is not judged")
    bars = base.mark_bar(height=10, color=PALETTE[0], opacity=0.6)
    layers.append(bars.encode(x("minimum"), alt.X2("maximum:Q"), y))
    if _any(given, "ci_low"):
        layers.append(base.mark_rule(color=INK, strokeWidth=1.4).encode(x("ci_low"), alt.X2("ci_high:Q"), y))
        layers += [
            base.mark_tick(color=INK, thickness=1.4, height=10, opacity=1).encode(x(end), y)
            for end in ("ci_low", "ci_high")
        ]
        words.append(f"whisker: {level:.0%} interval over queries")
    layers.append(
        base.mark_point(size=60, filled=False, fill="white", stroke=INK, strokeWidth=1.8, opacity=1).encode(
            x("expected"), y, tooltip=shown
        )
    )
    crosses = _crosses(given)
    if crosses:
        layers += _crossed(crosses, x, y)
        words.append("crosses: what tools print")
    beside = base.mark_text(align="left", fontSize=12, color=INK)
    layers.append(beside.encode(alt.XValue(FOREST + 12), y, alt.Text("words:N")))
    explained = "; ".join(["Circle: expected", "bar: over the orders of ties", *words]) + "."
    heading = alt.Title(
        title or (f"{measure}: systems side by side" if measure else "Systems side by side"),
        subtitle=_folded(explained),
    )
    made: Any = alt.layer(*layers).properties(
        width=FOREST, height=alt.Step(ROW + 2 * LANE * (max(len(crosses) - 1, 0) // 2)), title=heading
    )
    said = "; ".join(f"{row['name']} {row['words']}" for row in given)
    return dressed(made, f"{measure or 'Values'} of {len(given)} systems: {said}.")


FOREST = WIDTH - 160  # the width of the frame: names stand to its left, numbers to its right


def _checked(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row with all its keys, numbers as Python's own; None where one is not known."""
    name, expected = row.get("name"), row.get("expected")
    if name is None or expected is None:
        raise InputError(f"A row of a forest plot has a name and an expected value, not {dict(row)!r}.")
    numbers = {key: None if row.get(key) is None else float(row[key]) for key in NUMBERS}
    tools = {str(tool): float(value) for tool, value in (row.get("tools") or {}).items() if value is not None}
    wrong = [value for value in (*numbers.values(), *tools.values()) if value is not None and not math.isfinite(value)]
    if wrong:
        raise InputError(f"{name}: {wrong[0]} cannot be drawn. Leave out what is not known, or give None.")
    low, high, residual = numbers["minimum"], numbers["maximum"], numbers["residual"]
    ends = ["" if end is None else f"{end:.4f}" for end in (low, high)]
    words = f"{expected:.4f}" + (f" [{ends[0]}, {ends[1]}]" if all(ends) and ends[0] != ends[1] else "")
    reach = None if residual is None else numbers["expected"] + residual  # type: ignore[operator]
    return {"name": str(name), **numbers, "tools": tools, "reach": reach, "words": words}


def _any(given: Sequence[Mapping[str, Any]], key: str) -> bool:
    return any(row[key] is not None for row in given)


def _crosses(given: Sequence[Mapping[str, Any]]) -> dict[tuple[str, ...], dict[str, float]]:
    """The numbers of tools by row; those that agree wherever both have one, and somewhere do, are one."""
    found: dict[str, dict[str, float]] = {}
    for row in given:
        for tool, value in row["tools"].items():
            found.setdefault(tool, {})[row["name"]] = value
    merged: list[tuple[list[str], dict[str, float]]] = []
    for tool, values in found.items():
        for tools, known in merged:
            both = known.keys() & values.keys()
            if both and all(math.isclose(known[name], values[name], abs_tol=1e-12) for name in both):
                tools.append(tool)
                known |= values
                break
        else:
            merged.append(([tool], dict(values)))
    return {tuple(tools): values for tools, values in merged}


def _crossed(crosses: Mapping[tuple[str, ...], Mapping[str, float]], x: Any, y: Any) -> list[Any]:
    """The crosses of all tools, those of each at a height of their own, so that none hides another."""
    alt = altair()
    labels = [_label(tools) for tools in crosses]
    colours = [PALETTE[1 + at % (len(PALETTE) - 1)] for at in range(len(labels))]
    shapes = [CROSSES[at % len(CROSSES)] for at in range(len(labels))]
    legend = alt.Legend(orient="top", columns=2, labelLimit=320, symbolSize=90)
    colour = alt.Color("tool:N", title=None, scale=alt.Scale(domain=labels, range=colours), legend=legend)
    shape = alt.Shape("tool:N", title=None, scale=alt.Scale(domain=labels, range=shapes), legend=legend)
    layers = []
    for at, (label, (tools, values)) in enumerate(zip(labels, crosses.items(), strict=True)):
        same = {"tool": [label] * len(values), "tools": [", ".join(tools)] * len(values)}
        data = rows({"name": values.keys(), "printed": values.values(), **same})
        lane = (-1, 1)[at % 2] * (NEAREST + LANE * (at // 2))  # above and below the bar by turns
        mark = alt.Chart(data).mark_point(size=44, filled=False, strokeWidth=1.8, opacity=1, yOffset=lane)
        layers.append(mark.encode(x("printed"), y, colour, shape, tooltip=["name:N", "tools:N", "printed:Q"]))
    return layers


def _label(tools: Sequence[str]) -> str:
    rest = f" and {len(tools) - 2} more" if len(tools) > 2 else ""
    return ", ".join(tools[:2]) + rest


def _folded(words: str, width: int = 108) -> list[str]:
    """A subtitle in lines that fit the chart."""
    return wrap(words, width)


# -- query by query ----------------------------------------------------------------------------------------------------


def differences(
    a: Mapping[str, Estimate | float],
    b: Mapping[str, Estimate | float],
    *,
    names: tuple[str, str] = ("A", "B"),
    title: str = "",
) -> alt.LayerChart:
    """Two systems query by query, as `Report.per_query` gives them (or plain numbers): expected differences, sorted.

    A line reaches over what the orders of the ties of both can make of a difference; where that could turn it round, or
    make it nothing, the bar is pale. Queries where nothing differs, and those that only one of the two has, are left
    out.
    """
    common = [query for query in a if query in b]
    if not common:
        raise InputError(f"The two have no query in common: {listed(list(a))}; {listed(list(b))}.")
    found = sorted((_difference(query, a[query], b[query]) for query in common), key=lambda row: -row["difference"])
    shown = [row for row in found if row["low"] or row["high"]]
    alt = altair()
    columns = ("query", "difference", "low", "high", "sure")
    place = range(1, len(shown) + 1)
    data = rows(
        {"left": [at - 0.42 for at in place], "place": place, "right": [at + 0.42 for at in place]}
        | {key: [row[key] for row in shown] for key in columns}
    )
    base = alt.Chart(data)
    domain = alt.Scale(domain=[0.4, max(len(shown), 1) + 0.6], nice=False)
    no_axis = alt.Axis(labels=False, ticks=False, grid=False, domain=False)
    count = counted(len(shown), "query", "queries")
    x = alt.X("left:Q", title=f"{count}, sorted", scale=domain, axis=no_axis)
    y = alt.Y("difference:Q", title=f"{names[0]} − {names[1]}")
    tips = ["query:N", *(f"{key}:Q" for key in ("difference", "low", "high"))]
    bars = base.mark_rect(aria=False).encode(
        x,
        alt.X2("right:Q"),
        y,
        alt.Y2Datum(0),
        color=alt.condition("datum.difference > 0", alt.value(PALETTE[0]), alt.value(PALETTE[1])),
        opacity=alt.condition("datum.sure", alt.value(0.95), alt.value(0.35)),
        tooltip=tips,
    )
    thin = max(0.6, min(1.5, 200 / max(len(shown), 1)))
    ranges = (
        base.transform_filter("datum.high > datum.low")
        .mark_rule(color=INK, strokeWidth=thin, aria=False)
        .encode(alt.X("place:Q", scale=domain, axis=no_axis), alt.Y("low:Q"), alt.Y2("high:Q"), tooltip=tips)
    )
    zero = alt.Chart(rows({"zero": [0]})).mark_rule(color=GREY).encode(alt.Y("zero:Q"))
    measure = getattr(a, "measure", None) or ""
    heading = alt.Title(
        title or f"{measure}{': ' if measure else ''}{names[0]} against {names[1]}, query by query",
        subtitle=_folded(_counted(found, shown, len(set(a) ^ set(b)), names)),
    )
    made: Any = alt.layer(bars, zero, ranges).properties(width=WIDTH, height=300, title=heading)
    return dressed(made, f"{names[0]} less {names[1]} for each of {len(common):,} queries, sorted.")


def _difference(query: str, a: Estimate | float, b: Estimate | float) -> dict[str, Any]:
    """The expected difference and its extremes: the ties of the two are in no common order."""
    (mean_a, low_a, high_a), (mean_b, low_b, high_b) = _spread(query, a), _spread(query, b)
    gaps = (mean_a - mean_b, low_a - high_b, high_a - low_b)
    mean, low, high = (0.0 if abs(gap) <= ATOL else gap for gap in gaps)  # but for rounding, these are equal
    return {"query": query, "difference": mean, "low": low, "high": high, "sure": low > 0 or high < 0}


def _spread(query: str, value: Estimate | float) -> tuple[float, float, float]:
    if not isinstance(value, Estimate):
        return float(value), float(value), float(value)
    if value.expected is None:
        raise InputError(f"Query {query!r} has no expected value to compare. Leave it out.")
    low = value.expected if value.minimum is None else value.minimum
    return value.expected, low, value.expected if value.maximum is None else value.maximum


def _counted(found: Sequence[dict[str, Any]], shown: Sequence[dict[str, Any]], alone: int, names: Sequence[str]) -> str:
    """What a reader sees, in numbers."""
    first, second = (sum(sign * row["difference"] > 0 for row in found) for sign in (1, -1))
    open_ = sum(not row["sure"] for row in shown)
    parts = [f"{names[0]} is better for {counted(first, 'query', 'queries')}, {names[1]} for {second:,}."]
    if any(row["high"] > row["low"] for row in shown):
        parts.append(f"Lines: over the orders of ties; pale where these could undo it ({open_:,}).")
    if len(found) > len(shown):
        same = len(found) - len(shown)
        parts.append(f"{same:,} {'does' if same == 1 else 'do'} not differ.")
    if alone:
        parts.append(f"{alone:,} that only one of the two has are left out.")
    return " ".join(parts)


# -- tie groups --------------------------------------------------------------------------------------------------------


def group_sizes(runs: Any, *, title: str = "") -> alt.LayerChart:
    """How large tie groups are: the share of rows by the size of their group, of one run or of several by their names.

    A run is anything that `evaluate` takes, or an `Audit`; several are ``{name: run}``. Numbers above the bars of one
    run count its groups.
    """
    several = isinstance(runs, Mapping) and not any(map(_is_list, runs.values()))
    sizes = {str(name): _bins(one) for name, one in (runs.items() if several else [("", runs)])}
    if not sizes:
        raise InputError("There is no run to draw. Give one, or several by their names.")
    alt, names = altair(), list(sizes)
    longest = max(sizes.values(), key=len)
    labels = [_size(one) for one in longest]
    data = rows(_columns(sizes))
    angle = {"labelAngle": -40} if len(labels) > 9 else {"labelAngle": 0}
    x = alt.X("size:N", title="documents in the tie group (1: not tied)", sort=labels, axis=alt.Axis(**angle))
    y = alt.Y("share:Q", title="share of rows", axis=alt.Axis(format="%"))
    tips = [*(["run:N"] if several else []), "size:N", "groups:Q", "rows:Q", alt.Tooltip("share:Q", format=".1%")]
    base = alt.Chart(data)
    if several:
        legend = alt.Legend(orient="top", columns=4, labelLimit=260, symbolType="square")
        colour = alt.Color("run:N", title=None, scale=alt.Scale(domain=names, range=_colours(names)), legend=legend)
        offset = alt.XOffset("run:N", sort=names)
        bars = base.mark_bar().encode(x, y, offset, colour, tooltip=tips)
        layers = [bars]
        said = "Of the rows of each run, those in tie groups of a size."
    else:
        colour = alt.condition("datum.size == '1'", alt.value(GREY), alt.value(PALETTE[0]))
        counts = base.mark_text(dy=-7, fontSize=11, color=GREY).encode(x, y, alt.Text("groups:Q", format=","))
        layers = [base.mark_bar(width=alt.RelativeBandSize(0.75)).encode(x, y, color=colour, tooltip=tips), counts]
        total = sum(one.rows for one in longest)
        tied = sum(one.rows for one in longest if one.low > 1)
        said = f"{tied / total:.1%} of {total:,} rows are tied. Above the bars: the number of groups."
    heading = alt.Title(title or "Sizes of tie groups", subtitle=said)
    made: Any = alt.layer(*layers).properties(width=WIDTH, height=280, title=heading)
    return dressed(made, "The share of rows by the size of their tie group.")


def _is_list(one: Any) -> bool:
    """Whether this is the list of a query, ``{document: score}``, and not a run."""
    return isinstance(one, Mapping) and not any(isinstance(value, Mapping) for value in one.values())


def _bins(run: Any) -> tuple[SizeBin, ...]:
    found = run.group_sizes if isinstance(run, Audit) else TieStatistics.of(as_run(run)).histogram()
    if not found:
        raise InputError("The run has no rows: there are no tie groups to draw.")
    return found


def _size(one: SizeBin) -> str:
    return f"{one.low:,}" if one.low == one.high else f"{one.low:,}–{one.high:,}"


def _columns(sizes: Mapping[str, Sequence[SizeBin]]) -> dict[str, list[Any]]:
    flat = [(name, one, sum(other.rows for other in bins)) for name, bins in sizes.items() for one in bins]
    return {
        "run": [name for name, _, _ in flat],
        "size": [_size(one) for _, one, _ in flat],
        "groups": [one.groups for _, one, _ in flat],
        "rows": [one.rows for _, one, _ in flat],
        "share": [one.rows / total for _, one, total in flat],
    }
