"""The charts of the page: those of `tiewise.figures`, in the colours of the page, with brackets in the forest plot.

The browser draws a chart from its Vega-Lite specification. Its title becomes a caption, which wraps on a phone. Each
colour of the theme becomes a variable of the page's style, so that light, dark and print need no second chart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Any

from tiewise import figures
from tiewise.analysis.reports import Report
from tiewise.figures.theme import FAINT, GREY, INK, PALETTE
from tiewise.metrics.definition import Measure
from tiewise.results.optional import need

#: The cutoffs of curves.
CUTOFFS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 100)

#: The colours of figures, and the variables of the page that stand for them.
_COLOURS = {INK: "ink", GREY: "grey", FAINT: "faint", "white": "card", "#ffffff": "card"}
_COLOURS |= {colour: f"c{place}" for place, colour in enumerate(PALETTE)}
#: Parts of a specification that hold the user's names and numbers, and no colours.
_DATA = ("datasets", "data", "domain", "sort", "description")

#: The distance of brackets from the frame and from each other, in pixels; and how many stand side by side.
BESIDE, LANE, LANES = 178, 18, 4

#: The font of the page; the browser measures it, so it is named here too.
FONT = 'system-ui, "Segoe UI", Helvetica, Arial, sans-serif'

Names = Sequence[str]


def forest(
    reports: Mapping[str, Report],
    measure: Measure,
    printed: Mapping[str, Mapping[str, float]],
    is_settled: Callable[[str, str], bool],
) -> dict[str, Any]:
    """The forest plot, with a bracket beside each group of runs in which no pair is settled.

    `printed` holds what tools print for each run.
    """
    plain = figures.forest_rows(reports, measure, intervals=True, tools=False)
    rows = [{**row, "tools": printed[row["name"]]} for row in plain]
    rows.sort(key=lambda row: -row["expected"])
    spec = _specification(lambda: figures.forest(rows, measure=measure.name, sort=False))
    order = [row["name"] for row in rows]
    unsettled = brackets(order, is_settled)
    visible = [(names, lane) for names, lane in unsettled if lane < LANES]
    spec["layer"] += [layer for names, lane in visible for layer in _bracket(names, lane, order, spec["width"])]
    for layer in spec["layer"]:  # one order for all layers, whichever rows each has
        layer["encoding"]["y"] |= {"sort": None, "scale": {"domain": order}}
    if visible:
        spec["layer"].append(_bracket_heading(max(lane for _, lane in visible), spec["width"]))
    sizes = {"brackets": len({lane for _, lane in visible}), "labels": max(map(len, order))}
    caption = [_caption(spec)]
    if visible:
        caption.append(
            "Lines on the right, tie order open: of the runs with a dot, none is ahead of another in every order."
        )
    if len(rows) > 1:
        caption.append("Whiskers of two runs may overlap although their paired difference is shown: see Pairs.")
    if len(unsettled) > len(visible):
        caption.append(f"There is no room for {len(unsettled) - len(visible)} more brackets: see the pairs.")
    return {"spec": _use_page_colours(spec), "caption": " ".join(caption), **sizes}


def brackets(order: Names, is_settled: Callable[[str, str], bool]) -> list[tuple[list[str], int]]:
    """Groups of runs in which no pair is settled, each with a free lane; every unsettled pair is in a group.

    A run between two others need not be in their group: it may have fewer ties.

    >>> brackets("ABCD", lambda a, b: {a, b} == {"A", "C"} or "D" in (a, b))
    [(['A', 'B'], 0), (['B', 'C'], 1)]
    >>> brackets("ABC", lambda a, b: {a, b} == {"A", "B"})
    [(['A', 'C'], 0), (['B', 'C'], 1)]
    """
    groups: list[list[str]] = []
    for a, b in combinations(order, 2):
        if not is_settled(a, b) and not any(a in group and b in group for group in groups):
            group = [a, b]
            for one in order:
                if one not in group and not any(is_settled(one, other) for other in group):
                    group.append(one)
            groups.append(sorted(group, key=order.index))
    return _assign_lanes(sorted(groups, key=lambda group: order.index(group[0])), order)


def _assign_lanes(groups: Sequence[list[str]], order: Names) -> list[tuple[list[str], int]]:
    """Each group with the first lane that is free from its first run on."""
    assigned, ends = [], list[int]()  # ends: where the last group of each lane ends
    for group in groups:
        first, last = order.index(group[0]), order.index(group[-1])
        lane = next((lane for lane, end in enumerate(ends) if end < first), len(ends))
        ends[lane : lane + 1] = [last]
        assigned.append((group, lane))
    return assigned


def _bracket(group: Names, lane: int, order: Names, width: int) -> list[dict[str, Any]]:
    """A line beside the rows of a group, and a dot at each of its runs."""
    rows = order[order.index(group[0]) : order.index(group[-1]) + 1]
    x, name = {"value": width + BESIDE + LANE * lane}, {"field": "name", "type": "nominal", "title": None}
    rule = {"type": "rule", "strokeWidth": 2, "color": PALETTE[1], "aria": False}
    dot = {"type": "point", "filled": True, "size": 45, "opacity": 1, "color": PALETTE[1], "aria": False}
    ends = {"x": x, "y": name, "y2": {"field": "last"}}
    return [
        {"data": {"values": [{"name": rows[0], "last": rows[-1]}]}, "mark": rule, "encoding": ends},
        {"data": {"values": [{"name": one} for one in group]}, "mark": dot, "encoding": {"x": x, "y": name}},
    ]


def _bracket_heading(lanes: int, width: int) -> dict[str, Any]:
    """What the brackets say, once above all of them."""
    x = {"value": width + BESIDE + LANE * lanes + 8}
    text = {"type": "text", "y": -8, "align": "right", "fontSize": 11, "color": INK, "aria": False}
    return {"data": {"values": [{}]}, "mark": text, "encoding": {"x": x, "text": {"value": "tie order open"}}}


def curve(reports: Mapping[str, Report], measure: Measure, cutoffs: Sequence[int]) -> dict[str, Any]:
    """A measure against its cutoff, a line for each run."""
    return {"measure": measure.name, **_chart(lambda: figures.curve(reports, measure, cutoffs))}


def losses(protocol: Mapping[str, Any]) -> dict[str, Any]:
    """What each row of a protocol loses."""
    return _chart(lambda: figures.losses(protocol))


def _chart(draw: Callable[[], Any]) -> dict[str, Any]:
    """A figure as it is, in the colours of the page."""
    spec = _specification(draw)
    return {"spec": _use_page_colours(spec), "caption": _caption(spec)}


def _specification(draw: Callable[[], Any]) -> dict[str, Any]:
    """A figure as plain values. altair's checks of each part against its schema would take most of the time."""
    with need("altair.utils.schemapi", "A report", "report").debug_mode(False):
        spec: dict[str, Any] = draw().to_dict(validate=False)
    return spec


def _caption(spec: Mapping[str, Any]) -> str:
    subtitle = spec["title"].get("subtitle", "")
    return subtitle if isinstance(subtitle, str) else " ".join(subtitle)


def _use_page_colours(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The specification without its title; each colour of the theme is a variable of the page."""
    plain = {name: part for name, part in spec.items() if name not in ("title", "$schema", "padding")}
    changed: dict[str, Any] = _replace_colours(plain)
    changed["config"] |= {"background": "transparent", "font": FONT, "padding": 4}
    changed["config"]["legend"] |= {"columnPadding": 10}  # the browser measures the font that it draws
    return changed


def _replace_colours(part: Any) -> Any:
    if isinstance(part, dict):
        kept = {name: one for name, one in part.items() if name != "zero" or part.get("type") != "log"}
        return {name: one if name in _DATA else _replace_colours(one) for name, one in kept.items()}
    if isinstance(part, list):
        return [_replace_colours(one) for one in part]
    return f"var(--{_COLOURS[part]})" if isinstance(part, str) and part in _COLOURS else part
