"""Figures of number formats: the numbers that a type has, as strokes on a line (Yang et al. 2025, Appendix A)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from tiewise.data.columns import Floats
from tiewise.errors import InputError
from tiewise.figures.theme import GREY, INK, PALETTE, WIDTH, altair, dressed, rows

if TYPE_CHECKING:
    import altair as alt

__all__ = ["number_lines"]

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
