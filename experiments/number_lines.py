"""A figure of number formats: the numbers that a type has, as ticks on a line (Yang et al. 2025, Appendix A)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from tiewise.data.columns import Floats
from tiewise.errors import InputError
from tiewise.figures.theme import GREY, INK, PALETTE, WIDTH, inline_data, layer_chart, load_altair

if TYPE_CHECKING:
    import altair as alt

__all__ = ["number_lines"]

ROW_HEIGHT = 46  # of one number line, in pixels
TICK_HEIGHT = 22
MIN_DISTANCE = 1.6  # pixels between two ticks that can be distinguished


def number_lines(
    formats: Mapping[str, ArrayLike],
    *,
    domain: tuple[float, float] = (0.0, 1.0),
    title: str = "",
    subtitle: str | Sequence[str] = "",
    points: ArrayLike | None = None,
    points_name: str = "",
) -> alt.LayerChart:
    """The numbers of some formats in a domain: a line for each format, and a tick for each number.

    `formats` holds the numbers of each format, in any order; numbers outside the `domain` are left out. Numbers that
    are too close to draw become a solid bar. Each line ends with the count of its numbers. `points`, such as scores
    before rounding, get a line of their own at the top.
    """
    low, high = domain
    if not low < high:
        raise InputError(f"domain={domain!r}: give where the line begins and ends, the lower end first.")
    if not formats:
        raise InputError("There is no format to draw: give its numbers by its name.")
    inside = {name: _numbers_inside(values, low, high) for name, values in formats.items()}
    alt = load_altair()
    point_line = {} if points is None else {points_name or "points": _numbers_inside(points, low, high)}
    lines = [*point_line, *inside]
    scale = alt.Scale(domain=[low, high], nice=False)
    x = alt.X("low:Q", title=None, scale=scale, axis=alt.Axis(grid=False, tickCount=6))
    y = alt.Y("line:N", title=None, sort=lines, axis=alt.Axis(domain=False, ticks=False, labelPadding=10, grid=False))

    def ticks(data: Mapping[str, Any], color: str) -> Any:
        mark = {"color": color, "thickness": 1.1, "opacity": 1, "height": TICK_HEIGHT, "aria": False}
        return alt.Chart(inline_data(data)).mark_tick(**mark).encode(x, y)

    def counts(numbers: Mapping[str, Floats], color: str) -> Any:
        labels = [f"{len(values):,}" for values in numbers.values()]
        data = inline_data({"line": list(numbers), "low": [high] * len(numbers), "count": labels})
        return alt.Chart(data).mark_text(align="left", dx=10, color=color).encode(x, y, alt.Text("count:N"))

    separate, dense = _split_dense(inside, (high - low) / WIDTH * MIN_DISTANCE)
    bars = alt.Chart(inline_data(dense)).mark_bar(color=PALETTE[0], height=TICK_HEIGHT, aria=False)
    layers = [ticks(separate, PALETTE[0]), bars.encode(x, y, alt.X2("high:Q")), counts(inside, GREY)]
    for name, values in point_line.items():
        layers.append(ticks({"line": [name] * len(values), "low": np.round(values, 7)}, PALETTE[1]))
        layers.append(counts(point_line, INK))
    found = ", ".join(f"{name} has {len(values):,}" for name, values in inside.items())
    return layer_chart(
        layers,
        title=title or f"Numbers between {low:g} and {high:g}",
        subtitle=subtitle,
        description=f"Numbers from {low:g} to {high:g}: {found}.",
        height=ROW_HEIGHT * len(lines),
    )


def _numbers_inside(values: ArrayLike, low: float, high: float) -> Floats:
    """The distinct numbers of the domain, ascending."""
    distinct: Floats = np.unique(np.asarray(values, dtype=np.float64))
    return distinct[(distinct >= low) & (distinct <= high)]


def _split_dense(inside: Mapping[str, Floats], min_distance: float) -> tuple[dict[str, Any], dict[str, Any]]:
    """Numbers that can be drawn separately, and the ends of the ranges in which numbers are too close."""
    separate: dict[str, list[Any]] = {"line": [], "low": []}
    dense: dict[str, list[Any]] = {"line": [], "low": [], "high": []}
    for name, values in inside.items():
        groups = np.split(values, np.flatnonzero(np.diff(values) >= min_distance) + 1) if len(values) else []
        for group in groups:
            columns = separate if len(group) == 1 else dense
            columns["line"].append(name)
            columns["low"].append(round(float(group[0]), 7))
            if len(group) > 1:
                columns["high"].append(round(float(group[-1]), 7))
    return separate, dense
