"""Figures of low precision: a measure against its cutoff, with what the order of ties can make of it, and number lines.

The first shows what Figures 2, 4 and 5 of Yang et al. (2025) show, the second what their Appendix A is about.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from tiewise.columns import Floats
from tiewise.errors import InputError
from tiewise.figures.theme import GREY, INK, PALETTE, WIDTH, altair, dressed, rows
from tiewise.report import Report

if TYPE_CHECKING:
    import altair as alt

__all__ = ["at_cutoffs", "number_lines"]

# -- a measure against its cutoff --------------------------------------------------------------------------------------

DASHES = ((1, 0), (7, 3), (2, 2), (9, 3, 2, 3), (5, 5), (1, 3))
COLUMNS = 2  # panels side by side


def at_cutoffs(
    reports: Mapping[str, Report], *, title: str = "", marked: str = "the tie-oblivious value"
) -> alt.VConcatChart:
    """Measures against their cutoffs, a panel for each measure and a line for each report, by its name.

    The line is the expectation; shaded is what some order of the ties gives; a cross is the tie-oblivious value, where
    it is not the expectation. `marked` says which order that is. Reports are those of `evaluate` with a measure at
    several cutoffs: ``[f"nDCG@{k}" for k in range(1, 21)]``.
    """
    points = [point for name, report in reports.items() for point in _points(name, report)]
    panels: dict[str, list[dict[str, Any]]] = {}
    for point in points:
        panels.setdefault(point["measure"], []).append(point)
    if not panels:
        raise InputError("There is no measure with a cutoff in the reports. Evaluate some, such as 'nDCG@5'.")
    alt, names = altair(), list(reports)
    drawn = [_panel(measure, found, names) for measure, found in panels.items()]
    lines = [alt.hconcat(*drawn[at : at + COLUMNS], spacing=28) for at in range(0, len(drawn), COLUMNS)]
    heading = alt.Title(
        title or "Measures against their cutoffs",
        subtitle=f"Lines: expected over all orders of ties. Shaded: what some order gives. Crosses: {marked}.",
    )
    return dressed(
        alt.vconcat(*lines, spacing=22).properties(title=heading),
        f"{', '.join(panels)} against the cutoff for {', '.join(names)}, with the range over the orders of ties.",
    )


def _points(name: str, report: Report) -> list[dict[str, Any]]:
    """What is drawn of one report: a point for each measure that has a cutoff."""
    found = []
    for measure in report:
        mean = report[measure]
        if measure.cutoff is None or mean.expected is None:
            continue
        numbers = {"expected": mean.expected, "minimum": mean.minimum, "maximum": mean.maximum}
        rounded = {key: None if value is None else round(value, 5) for key, value in numbers.items()}
        marked = mean.oblivious if mean.bias is not None and abs(mean.bias) > 5e-5 else None
        rounded["oblivious"] = None if marked is None else round(marked, 5)
        found.append({"name": name, "measure": measure.uncut.name, "k": measure.cutoff, **rounded})
    return found


def _panel(measure: str, points: Sequence[dict[str, Any]], names: Sequence[str]) -> alt.LayerChart:
    """One measure: areas beneath, then lines, then crosses."""
    alt = altair()
    data = alt.InlineData(values=list(points))
    base = alt.Chart(data, width=WIDTH / COLUMNS - 30, height=230)
    ends = [min(point["k"] for point in points), max(point["k"] for point in points)]
    x = alt.X(
        "k:Q",
        title="cutoff k",
        scale=alt.Scale(domain=ends, nice=False, padding=8),
        axis=alt.Axis(tickMinStep=1, grid=False),
    )
    scale = alt.Scale(zero=False, nice=True)
    y = alt.Y("expected:Q", title=f"{measure}@k", scale=scale)
    legend = alt.Legend(orient="top", symbolType="stroke", symbolSize=400, symbolOpacity=1, columnPadding=18)
    colour = alt.Color("name:N", title=None, scale=alt.Scale(domain=list(names)), legend=legend)
    dashes = [list(DASHES[at % len(DASHES)]) for at in range(len(names))]
    dash = alt.StrokeDash("name:N", title=None, scale=alt.Scale(domain=list(names), range=dashes), legend=legend)
    shaded = base.mark_area(fillOpacity=0.2, opacity=1, aria=False).encode(
        x, alt.Y("minimum:Q", scale=scale, title=f"{measure}@k"), alt.Y2("maximum:Q"), colour
    )
    line = base.mark_line(strokeWidth=2).encode(
        x, y, colour, dash, tooltip=["name:N", "k:Q", "expected:Q", "minimum:Q", "maximum:Q", "oblivious:Q"]
    )
    crosses = (
        base.transform_filter("isValid(datum.oblivious)")
        .mark_point(shape="M-1-1L1 1M-1 1L1-1", size=22, filled=False, strokeWidth=1.4, opacity=1, aria=False)
        .encode(x, alt.Y("oblivious:Q", scale=scale), colour)
    )
    made: Any = alt.layer(shaded, line, crosses)
    return made


# -- number lines ------------------------------------------------------------------------------------------------------

ROW = 46  # the height of one number line
TICK = 22  # the height of a number on it
LEAST = 1.6  # pixels between two numbers that can still be told apart


def number_lines(
    formats: Mapping[str, ArrayLike],
    *,
    domain: tuple[float, float] = (0.0, 1.0),
    title: str = "",
    subtitle: str | Sequence[str] = "",
    points: ArrayLike | None = None,
    points_name: str = "",
) -> alt.LayerChart:
    """The numbers that some formats have between two ends, a line for each format and a stroke for each number.

    `formats` holds the numbers of each, in any order; those outside the `domain` are left out, and where numbers stand
    closer than can be drawn there is a solid bar. The count stands behind the line. `points`, if given, are marked on a
    line of their own above, such as scores before they are rounded.
    """
    low, high = domain
    if not low < high:
        raise InputError(f"domain={domain!r}: give where the line begins and ends, the lower end first.")
    if not formats:
        raise InputError("There is no format to draw: give its numbers by its name.")
    inside = {name: _inside(values, low, high) for name, values in formats.items()}
    alt = altair()
    lines = ([points_name or "points"] if points is not None else []) + list(inside)
    scale = alt.Scale(domain=[low, high], nice=False)
    x = alt.X("low:Q", title=None, scale=scale, axis=alt.Axis(grid=False, tickCount=6))
    y = alt.Y("line:N", title=None, sort=lines, axis=alt.Axis(domain=False, ticks=False, labelPadding=10, grid=False))
    strokes, bars = _strokes(inside, (high - low) / WIDTH * LEAST)
    layers = [
        alt.Chart(rows(strokes))
        .mark_tick(color=PALETTE[0], thickness=1.1, opacity=1, height=TICK, aria=False)
        .encode(x, y),
        alt.Chart(rows(bars)).mark_bar(color=PALETTE[0], height=TICK, aria=False).encode(x, y, alt.X2("high:Q")),
        alt.Chart(rows(_counts(inside, high)))
        .mark_text(align="left", dx=10, color=GREY)
        .encode(x, y, alt.Text("count:N")),
    ]
    if points is not None:
        shown = _inside(points, low, high)
        dots = rows({"line": [lines[0]] * len(shown), "low": np.round(shown, 7)})
        mark = {"color": PALETTE[1], "thickness": 1.1, "opacity": 1, "height": TICK, "aria": False}
        layers.append(alt.Chart(dots).mark_tick(**mark).encode(x, y))
        count = rows({"line": [lines[0]], "low": [high], "count": [f"{len(shown):,}"]})
        layers.append(alt.Chart(count).mark_text(align="left", dx=10, color=INK).encode(x, y, alt.Text("count:N")))
    heading = alt.Title(title or f"Numbers between {low:g} and {high:g}", subtitle=subtitle)
    made = alt.layer(*layers).properties(width=WIDTH, height=ROW * len(lines), title=heading)
    said = ", ".join(f"{name} has {len(values):,}" for name, values in inside.items())
    return dressed(made, f"Numbers from {low:g} to {high:g}: {said}.")


def _inside(values: ArrayLike, low: float, high: float) -> Floats:
    """The distinct numbers of the domain, ascending."""
    found: Floats = np.unique(np.asarray(values, dtype=np.float64))
    return found[(found >= low) & (found <= high)]


def _strokes(inside: Mapping[str, Floats], least: float) -> tuple[dict[str, Any], dict[str, Any]]:
    """Numbers that stand apart, and the ends of the stretches in which they are too close to be told apart."""
    strokes: dict[str, list[Any]] = {"line": [], "low": []}
    bars: dict[str, list[Any]] = {"line": [], "low": [], "high": []}
    for name, values in inside.items():
        groups = np.split(values, np.flatnonzero(np.diff(values) >= least) + 1) if len(values) else []
        for group in groups:
            if len(group) == 1:
                strokes["line"].append(name)
                strokes["low"].append(round(float(group[0]), 7))
            else:
                bars["line"].append(name)
                bars["low"].append(round(float(group[0]), 7))
                bars["high"].append(round(float(group[-1]), 7))
    return strokes, bars


def _counts(inside: Mapping[str, Floats], high: float) -> dict[str, Any]:
    return {
        "line": list(inside),
        "low": [high] * len(inside),
        "count": [f"{len(found):,}" for found in inside.values()],
    }
