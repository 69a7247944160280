"""`forest`: systems side by side in one measure, with four kinds of uncertainty in four marks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tiewise.analysis.reports import Report
from tiewise.errors import InputError
from tiewise.figures.curves import CROSS_SHAPES, padded_scale
from tiewise.figures.theme import (
    GREY,
    INK,
    PALETTE,
    ROWS_WIDTH,
    inline_data,
    layer_chart,
    load_altair,
    name_axis,
    shorten_labels,
    tooltips,
)
from tiewise.metrics.definition import Measure
from tiewise.metrics.tool_rules import TOOLS
from tiewise.results.model import Rows
from tiewise.results.wording import PLAIN

if TYPE_CHECKING:
    import altair as alt

NUMBERS = ("expected", "minimum", "maximum", "ci_low", "ci_high", "residual")
ROW_HEIGHT = 38
CROSS_OFFSET, CROSS_STEP = 13, 8  # distance of the first crosses from the middle of a row, and of further ones

#: Room for the words at the right if the reader's font is wider than that of the renderer, in pixels. Names at the left
#: have a pixel for each letter.
WIDER_FONT = 26


def forest_rows(
    reports: Mapping[str, Report],
    measure: str | Measure,
    *,
    tools: bool | Iterable[str] = True,
    intervals: bool | Mapping[str, tuple[float, float]] = False,
) -> Rows:
    """The rows of a forest plot of some reports, by name, with the number that each tool prints.

    `tools` names the tools; True takes all, False none. `intervals` are over queries: those of each
    report (`Estimate.ci`), or intervals by name.
    """
    rows = []
    for name, report in reports.items():
        evaluated = report.at(measure)
        mean = evaluated[evaluated.measures[0]]
        interval = intervals.get(name) if isinstance(intervals, Mapping) else mean.ci if intervals else None
        numbers = (mean.expected, mean.minimum, mean.maximum, *(interval or (None, None)), mean.residual)
        rows.append((name, *numbers, _printed_by_tools(evaluated, tools)))
    names = ("name", *NUMBERS, "tools")
    return Rows({name: [row[place] for row in rows] for place, name in enumerate(names)})


def _printed_by_tools(report: Report, tools: bool | Iterable[str]) -> dict[str, float]:
    """What each tool prints for the only measure of a report; for tie groups, the value of their order."""
    chosen = list(TOOLS) if tools is True else [] if tools is False else list(tools)
    unknown = [tool for tool in chosen if tool not in TOOLS]
    if unknown:
        raise InputError(f"Unknown tool {unknown[0]!r}. Available: {', '.join(TOOLS)}.")
    if report.provenance.rows is None:
        order, value = next(iter(report.oblivious_orders), None), report[report.measures[0]].oblivious
        return {order: value} if order is not None and value is not None else {}
    table = report.oblivious_by_tool() if chosen else ()
    return {row.tool: row.value for row in table if row.tool in chosen and row.value is not None}


def forest(
    systems: Iterable[Mapping[str, Any]], *, measure: str = "", sort: bool = True, title: str = "", level: float = 0.95
) -> alt.LayerChart:
    """Systems side by side, one row each, from plain numbers.

    A row has a `name` and `expected` (the circle). Optional are `minimum` and `maximum` (the thick bar: the order of
    ties), `ci_low` and `ci_high` (the whisker: which queries were sampled, at the confidence `level`), `residual` (the
    hollow bar: unjudged documents), and `tools`, the number that each tool prints (a cross each; tools that always
    agree share one). Rows are sorted by `expected`, unless `sort` is False.
    """
    rows = [_check_row(row) for row in systems]
    if len({row["name"] for row in rows}) < len(rows):
        raise InputError("Two rows have the same name. Give each a name of its own.")
    if sort:
        rows.sort(key=lambda row: -row["expected"])
    alt, order = load_altair(), [row["name"] for row in rows]
    base = alt.Chart(inline_data({key: [row[key] for row in rows] for key in ("name", *NUMBERS, "reach", "words")}))
    y = name_axis("name", order)
    values = [row[key] for row in rows for key in (*NUMBERS[:-1], "reach")]
    scale = padded_scale([*values, *(value for row in rows for value in row["tools"].values())])

    def x(field: str) -> Any:
        return alt.X(f"{field}:Q", title=measure or "value", scale=scale, axis=alt.Axis(tickCount=10))

    layers, legend = [], ["Circle: expected", "bar: over the orders of ties"]
    if any(row["residual"] is not None for row in rows):
        hollow = base.mark_bar(height=15, fillOpacity=0, stroke=GREY, strokeWidth=1.2, strokeDash=[3, 2])
        layers.append(hollow.encode(x("expected"), alt.X2("reach:Q"), y))
        legend.append("hollow: what is not judged")
    # Higher than the circle and with an outline, so that a range narrower than the circle is seen.
    bars = base.mark_bar(height=16, color=PALETTE[0], opacity=0.6, stroke=PALETTE[0], strokeWidth=2)
    layers.append(bars.transform_filter("datum.minimum < datum.maximum").encode(x("minimum"), alt.X2("maximum:Q"), y))
    if any(row["ci_low"] is not None for row in rows):
        layers.append(base.mark_rule(color=INK, strokeWidth=1.4).encode(x("ci_low"), alt.X2("ci_high:Q"), y))
        ends = base.mark_tick(color=INK, thickness=1.4, height=10, opacity=1)
        layers += [ends.encode(x(end), y) for end in ("ci_low", "ci_high")]
        legend.append(f"whisker: {level:.0%} interval over queries")
    circles = base.mark_point(size=60, filled=False, fill="white", stroke=INK, strokeWidth=1.8, opacity=1)
    layers.append(circles.encode(x("expected"), y, tooltip=tooltips("name:N", *(f"{key}:Q" for key in NUMBERS))))
    crosses = _merge_tools(rows)
    if crosses:
        layers += _cross_layers(crosses, x, y)
        legend.append("crosses: what tools print where ties move it")
    numbers = base.mark_text(align="left", fontSize=12, color=INK)
    layers.append(numbers.encode(alt.XValue(ROWS_WIDTH + 12), y, alt.Text("words:N")))
    found = "; ".join(f"{row['name']} {row['words']}" for row in rows)
    chart: Any = layer_chart(
        layers,
        title=title or (f"{measure}: systems side by side" if measure else "Systems side by side"),
        subtitle="; ".join(legend) + ".",
        description=f"{measure or 'Values'} of {len(rows)} systems: {found}.",
        width=ROWS_WIDTH,
        height=alt.Step(ROW_HEIGHT + 2 * CROSS_STEP * (max(len(crosses) - 1, 0) // 2)),
    )
    longest = max(map(len, order), default=0)
    return chart.properties(padding={"left": 14 + min(longest, 34), "top": 14, "bottom": 14, "right": 14 + WIDER_FONT})


def _check_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row with all keys and Python's own numbers; None if a number is unknown."""
    name, expected = row.get("name"), row.get("expected")
    if name is None or expected is None:
        raise InputError(f"A row of a forest plot has a name and an expected value, not {dict(row)!r}.")
    numbers = {key: None if row.get(key) is None else float(row[key]) for key in NUMBERS}
    tools = {str(tool): float(value) for tool, value in (row.get("tools") or {}).items() if value is not None}
    for value in (*numbers.values(), *tools.values()):
        if value is not None and not math.isfinite(value):
            raise InputError(f"{name}: {value} cannot be drawn. Leave unknown numbers out, or give None.")
    low, high = numbers["minimum"], numbers["maximum"]
    words = PLAIN.number(expected) + (f" {PLAIN.interval(low, high)}" if PLAIN.differ(low, high) else "")
    reach = None if numbers["residual"] is None else float(expected) + numbers["residual"]
    return {"name": str(name), **numbers, "tools": tools, "reach": reach, "words": words}


def _merge_tools(rows: Sequence[Mapping[str, Any]]) -> dict[tuple[str, ...], dict[str, float]]:
    """The printed numbers by row name. Tools that share rows and agree in all of them are merged.

    A number that ties cannot move, and that is the expected one, has no cross: the circle shows it.
    """
    by_tool: dict[str, dict[str, float]] = {}
    for row in rows:
        is_fixed = row["minimum"] is not None and row["minimum"] == row["maximum"]
        for tool, value in row["tools"].items():
            if not (is_fixed and math.isclose(value, row["expected"], abs_tol=1e-9)):
                by_tool.setdefault(tool, {})[row["name"]] = value
    merged: list[tuple[list[str], dict[str, float]]] = []
    for tool, values in by_tool.items():
        for tools, known in merged:
            both = known.keys() & values.keys()
            if both and all(math.isclose(known[name], values[name], abs_tol=1e-12) for name in both):
                tools.append(tool)
                known |= values
                break
        else:
            merged.append(([tool], dict(values)))
    return {tuple(tools): values for tools, values in merged}


def _cross_layers(crosses: Mapping[tuple[str, ...], Mapping[str, float]], x: Any, y: Any) -> list[Any]:
    """The crosses of all tools, each at its own height, so that none hides another."""
    alt = load_altair()
    labels = [", ".join(tools[:2]) + (f" and {len(tools) - 2} more" if len(tools) > 2 else "") for tools in crosses]
    colors = [PALETTE[1 + i % (len(PALETTE) - 1)] for i in range(len(labels))]
    shapes = [CROSS_SHAPES[i % len(CROSS_SHAPES)] for i in range(len(labels))]
    legend = alt.Legend(orient="top", columns=2, **shorten_labels(350), symbolSize=90)
    color = alt.Color("tool:N", title=None, scale=alt.Scale(domain=labels, range=colors), legend=legend)
    shape = alt.Shape("tool:N", title=None, scale=alt.Scale(domain=labels, range=shapes), legend=legend)
    layers = []
    for i, (label, (tools, values)) in enumerate(zip(labels, crosses.items(), strict=True)):
        same = {"tool": [label] * len(values), "tools": [", ".join(tools)] * len(values)}
        data = inline_data({"name": values.keys(), "printed": values.values(), **same})
        offset = (-1, 1)[i % 2] * (CROSS_OFFSET + CROSS_STEP * (i // 2))  # above and below the bar in turn
        mark = alt.Chart(data).mark_point(size=44, filled=False, strokeWidth=1.8, opacity=1, yOffset=offset)
        layers.append(mark.encode(x("printed"), y, color, shape, tooltip=tooltips("name:N", "tools:N", "printed:Q")))
    return layers
