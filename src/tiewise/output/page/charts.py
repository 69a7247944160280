"""The charts of the page: those of `tiewise.figures`, in colours that follow the page, with brackets in the forest.

A chart is drawn in the browser from its specification in Vega-Lite. Its title becomes a caption, which wraps on a
phone, and each colour of the theme a variable of the page's style, so that light, dark and print need no
second drawing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Any

from tiewise import figures
from tiewise.analysis.reports import Report
from tiewise.figures.theme import FAINT, GREY, INK, PALETTE
from tiewise.metrics.definition import Measure

__all__ = ["CUTOFFS", "brackets", "curve", "forest"]

#: Where curves are drawn.
CUTOFFS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 100)

#: The colours of figures, and the variables of the page that stand for them.
_COLOURS = {INK: "ink", GREY: "grey", FAINT: "faint", "white": "card", "#ffffff": "card"}
_COLOURS |= {colour: f"c{place}" for place, colour in enumerate(PALETTE)}
#: What holds names and numbers of the user's and no colours.
_DATA = ("datasets", "data", "domain", "sort", "description")

#: How far from the frame brackets stand, behind the numbers in words, and from each other; and how many side by side.
BESIDE, LANE, LANES = 178, 26, 4

#: The page's own letters; the browser measures them, so they are named here too.
FONT = 'system-ui, "Segoe UI", Helvetica, Arial, sans-serif'

Names = Sequence[str]


def forest(
    reports: Mapping[str, Report],
    measure: Measure,
    printed: Mapping[str, Mapping[str, float]],
    decided: Callable[[str, str], bool],
    confidence: float,
    seed: int,
) -> dict[str, Any]:
    """The forest plot, with a bracket beside runs of which none is ahead of another in every order of ties.

    `printed` is what tools print for each run.
    """
    found = figures.forest_rows(reports, measure, intervals=confidence, seed=seed, tools=False)
    rows = [{**row, "tools": printed[row["name"]]} for row in found]
    rows.sort(key=lambda row: -row["expected"])
    spec = figures.forest(rows, measure=measure.name, sort=False, level=confidence).to_dict()
    order = [row["name"] for row in rows]
    open_ = brackets(order, decided)
    drawn = [(names, lane) for names, lane in open_ if lane < LANES]
    spec["layer"] += [layer for names, lane in drawn for layer in _bracket(names, lane, order, spec["width"])]
    for layer in spec["layer"]:  # one order for all layers, whatever rows each has
        layer["encoding"]["y"] |= {"sort": None, "scale": {"domain": order}}
    beside = {"brackets": len({lane for _, lane in drawn}), "labels": max(map(len, order))}
    caption = [_caption(spec)]
    if drawn:
        caption.append("Brackets: of the runs with a dot, none is ahead of another in every order of ties.")
    if len(open_) > len(drawn):
        caption.append(f"There is no room for {len(open_) - len(drawn)} more brackets: see the pairs.")
    return {"spec": _themed(spec), "caption": " ".join(caption), **beside}


def brackets(order: Names, decided: Callable[[str, str], bool]) -> list[tuple[list[str], int]]:
    """Groups of runs of which no two are decided, so that each such pair is in one, with a lane that has room for it.

    A run that stands between others need not belong to them: it may be less tied than they are.

    >>> brackets("ABCD", lambda a, b: {a, b} == {"A", "C"} or "D" in (a, b))
    [(['A', 'B'], 0), (['B', 'C'], 1)]
    >>> brackets("ABC", lambda a, b: {a, b} == {"A", "B"})
    [(['A', 'C'], 0), (['B', 'C'], 1)]
    """
    groups: list[list[str]] = []
    for a, b in combinations(order, 2):
        if not decided(a, b) and not any(a in group and b in group for group in groups):
            group = [a, b]
            for one in order:
                if one not in group and not any(decided(one, other) for other in group):
                    group.append(one)
            groups.append(sorted(group, key=order.index))
    return _in_lanes(sorted(groups, key=lambda group: order.index(group[0])), order)


def _in_lanes(groups: Sequence[list[str]], order: Names) -> list[tuple[list[str], int]]:
    """Each group with the first lane that is free from its first run on."""
    found, ends = [], list[int]()  # ends: of the last group in each lane
    for group in groups:
        first, last = order.index(group[0]), order.index(group[-1])
        lane = next((lane for lane, end in enumerate(ends) if end < first), len(ends))
        ends[lane : lane + 1] = [last]
        found.append((group, lane))
    return found


def _bracket(group: Names, lane: int, order: Names, width: int) -> list[dict[str, Any]]:
    """A rule beside the rows from the first to the last of a group, a dot at each of its runs, and what it means."""
    rows = order[order.index(group[0]) : order.index(group[-1]) + 1]
    middle = {} if len(rows) % 2 else {"bandPosition": 1}  # an even number of rows has no middle one
    x, name = {"value": width + BESIDE + LANE * lane}, {"field": "name", "type": "nominal", "title": None}
    rule = {"type": "rule", "strokeWidth": 2, "color": PALETTE[1], "aria": False}
    dot = {"type": "point", "filled": True, "size": 45, "opacity": 1, "color": PALETTE[1], "aria": False}
    text = {"type": "text", "angle": 270, "dy": 12, "fontSize": 11, "color": INK, "aria": False}
    ends = {"x": x, "y": name, "y2": {"field": "last"}}
    said = {"x": x, "y": name | middle, "text": {"value": "not decided"}}
    return [
        {"data": {"values": [{"name": rows[0], "last": rows[-1]}]}, "mark": rule, "encoding": ends},
        {"data": {"values": [{"name": one} for one in group]}, "mark": dot, "encoding": {"x": x, "y": name}},
        {"data": {"values": [{"name": rows[(len(rows) - 1) // 2]}]}, "mark": text, "encoding": said},
    ]


def curve(reports: Mapping[str, Report], measure: Measure, cutoffs: Sequence[int]) -> dict[str, Any]:
    """A measure against its cutoff, a line for each run."""
    spec = figures.curve(reports, measure, cutoffs).to_dict()
    return {"measure": measure.name, "spec": _themed(spec), "caption": _caption(spec)}


def _caption(spec: Mapping[str, Any]) -> str:
    """What the figure's subtitle says."""
    said = spec["title"].get("subtitle", "")
    return said if isinstance(said, str) else " ".join(said)


def _themed(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The specification without its title, each colour of the theme a variable of the page."""
    plain = {name: part for name, part in spec.items() if name not in ("title", "$schema")}
    made: dict[str, Any] = _recoloured(plain)
    made["config"] |= {"background": "transparent", "font": FONT, "padding": 4}
    return made


def _recoloured(part: Any) -> Any:
    if isinstance(part, dict):
        kept = {name: one for name, one in part.items() if name != "zero" or part.get("type") != "log"}
        return {name: one if name in _DATA else _recoloured(one) for name, one in kept.items()}
    if isinstance(part, list):
        return [_recoloured(one) for one in part]
    return f"var(--{_COLOURS[part]})" if isinstance(part, str) and part in _COLOURS else part
