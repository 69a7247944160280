"""`curve`: measures against their cutoff, with the range over the tie orders (Yang et al. 2025, Figures 2, 4 and 5)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tiewise.analysis.measuring import resolve_measures
from tiewise.analysis.reports import Report
from tiewise.errors import InputError
from tiewise.figures.theme import (
    PALETTE,
    WIDTH,
    apply_theme,
    load_altair,
    make_title,
    name_legend,
    palette_colors,
    tooltips,
)
from tiewise.metrics.definition import Measure
from tiewise.results.wording import join_names
from tiewise.ties.orders import name_order

if TYPE_CHECKING:
    import altair as alt

#: Dashes distinguish lines of one colour, and all lines in print.
DASHES = ((1, 0), (7, 3), (2, 2), (9, 3, 2, 3), (4, 4), (1, 3))

#: The crosses of different tools, as SVG paths.
CROSS_SHAPES = ("M-1-1L1 1M-1 1L1-1", "M-1.2 0L1.2 0M0-1.2L0 1.2", "M-1-1L1 1M-1 1L1-1M-1.3 0L1.3 0")

MAX_CROSSES = 20  # of one line; more of them would merge
STATISTICS = ("expected", "minimum", "maximum", "oblivious")


def curve(
    reports: Report | Mapping[str, Report],
    measure: str | Measure | Sequence[str | Measure] = "nDCG",
    cutoffs: Iterable[int] = range(1, 51),
    *,
    oblivious: bool = True,
    title: str = "",
) -> alt.LayerChart | alt.ConcatChart:
    """Measures against their cutoffs, for one report, or several by name; one panel for each measure.

    The line is the expectation, the shaded area the range over the tie orders. A cross is the tie-oblivious value,
    where ties can change it. The measures are computed from the reports' data: the reports need not contain them.
    """
    named = {"": reports} if isinstance(reports, Report) else dict(reports)
    if not named:
        raise InputError("There is no report to draw. Give one, or several by their names.")
    families = list(dict.fromkeys(one.uncut for one in resolve_measures(measure)))
    ranks = sorted(set(cutoffs))
    if not ranks:
        raise InputError("cutoffs is empty: give the ranks at which to measure, such as range(1, 51).")
    points = [point for name, report in named.items() for point in _points(name, report, families, ranks)]
    of_panel = [[point for point in points if point["measure"] == one.name] for one in families]
    panels = [_panel(some, list(named), ranks, oblivious, small=len(families) > 1) for some in of_panel]
    alt, measured = load_altair(), ", ".join(one.name for one in families)
    orders = {report.provenance.options["oblivious"] for report in named.values()} - {None}
    of_orders = [name_order(order) for order in sorted(orders)]
    crosses = f" Crosses: {join_names(of_orders)}." if oblivious and orders else ""
    heading = make_title(
        title or f"{measured} against the cutoff",
        f"Lines: expected over tie orders. Shaded: lowest to highest.{crosses}",
    )
    chart: Any = panels[0]
    if len(panels) > 1:
        chart = alt.concat(*panels, columns=2, spacing=26).resolve_scale(color="shared", strokeDash="shared")
    description = f"{measured} against the cutoff, with the range over the orders of ties."
    themed = apply_theme(chart.properties(title=heading), description)
    for panel, some in zip(themed.concat if len(panels) > 1 else [themed], of_panel, strict=True):
        panel.data = alt.InlineData(values=some)  # at the end: altair copies a chart whenever it changes
    return themed


def _points(name: str, report: Report, families: Sequence[Measure], ranks: Sequence[int]) -> list[dict[str, Any]]:
    """One point for each measure and cutoff of a report."""
    evaluated = report.at([one @ rank for one in families for rank in ranks])
    step = math.ceil(len(ranks) / MAX_CROSSES)
    points = []
    for measure in evaluated:
        mean, index = evaluated[measure], ranks.index(measure.cutoff or 0)
        if mean.expected is not None:
            crossed = mean.oblivious is not None and (mean.tied or bool(mean.bias)) and index % step == 0
            keys = {"system": name, "measure": measure.uncut.name, "cutoff": measure.cutoff}
            values = {key: getattr(mean, key) for key in STATISTICS}
            marks = {key: mark for key in STATISTICS if (mark := mean.method.mark(key))}
            points.append({**keys, **values, "crossed": crossed} | ({"marks": marks} if marks else {}))
    return points


def _panel(
    points: Sequence[dict[str, Any]], names: Sequence[str], ranks: Sequence[int], oblivious: bool, small: bool
) -> alt.LayerChart:
    """One measure, without its data: ranges, then lines, circles if there are few cutoffs, and crosses."""
    alt = load_altair()
    base = alt.Chart()
    sparse = len(ranks) <= 12 and ranks[-1] >= 20 * ranks[0]  # few cutoffs, far from each other
    x = alt.X(
        "cutoff:Q",
        title="cutoff k",
        scale=alt.Scale(type="log" if sparse else "linear", zero=False, nice=False, padding=8),
        axis=alt.Axis(values=list(ranks), grid=False, labelSeparation=5)
        if sparse
        else alt.Axis(tickMinStep=1, format="d", grid=False),
    )
    scale = padded_scale(point[key] for point in points for key in ("minimum", "maximum", "oblivious"))
    title = f"{points[0]['measure'] if points else ''}@k"
    y = alt.Y("expected:Q", title=title, scale=scale)
    color, dash = _line_styles(names)
    tooltip = tooltips("system:N", "cutoff:Q", *(f"{key}:Q" for key in STATISTICS))
    ranges = base.mark_area(opacity=0.24 if len(names) < 3 else 0.16, aria=False)
    layers = [
        ranges.encode(x, alt.Y("minimum:Q", scale=scale, title=title), alt.Y2("maximum:Q"), color),
        base.mark_line(strokeWidth=2, aria=False).encode(x, y, color, dash, tooltip=tooltip),
    ]
    if len(ranks) <= MAX_CROSSES:
        circles = base.mark_point(size=34, filled=False, fill="white", strokeWidth=1.6, opacity=1, aria=False)
        layers.append(circles.encode(x, y, color, tooltip=tooltip))
    if oblivious:
        mark = {"shape": CROSS_SHAPES[0], "size": 36, "filled": False, "strokeWidth": 1.7, "opacity": 1, "aria": False}
        crosses = base.transform_filter("datum.crossed").mark_point(**mark)
        layers.append(crosses.encode(x, alt.Y("oblivious:Q", scale=scale), color, tooltip=tooltip))
    size = {"width": WIDTH / 2 - 45, "height": 220} if small else {"width": WIDTH, "height": 340}
    return alt.layer(*layers).properties(**size)


def padded_scale(values: Iterable[float | None]) -> Any:
    """A scale with some space around the values. It stays within 0 and 1 if the values do."""
    known = [value for value in values if value is not None] or [0.0, 1.0]
    low, high = min(known), max(known)
    padding = (high - low) / 25 or 0.02
    first = low - padding if low < 0 else max(low - padding, 0.0)
    last = high + padding if high > 1 else min(high + padding, 1.0)
    return load_altair().Scale(domain=[first, last], nice=True)


def _line_styles(names: Sequence[str]) -> tuple[Any, Any]:
    """Colours and dashes that distinguish systems: six colours, and dashes for print and for repeated colours."""
    alt = load_altair()
    legend = None
    if len(names) > 1 or names[0]:
        legend = alt.Legend(**name_legend(names), symbolType="stroke", symbolSize=500, symbolOpacity=1)
    dashes = [list(DASHES[(i + i // len(PALETTE)) % len(DASHES)]) for i in range(len(names))]

    def channel(kind: Any, styles: Sequence[Any]) -> Any:
        return kind("system:N", title=None, scale=alt.Scale(domain=list(names), range=styles), legend=legend)

    return channel(alt.Color, palette_colors(len(names))), channel(alt.StrokeDash, dashes)
