"""The charts of the page: those of `tiewise.figures`, in colours that follow the page, with brackets in the forest.

A chart is drawn in the browser from its specification in Vega-Lite. Its title becomes a caption, which wraps on a
phone, and each colour of the theme a variable of the page's style, so that light, dark and print need no
second drawing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tiewise import figures
from tiewise.figures.theme import FAINT, GREY, INK, PALETTE
from tiewise.registry import Measure
from tiewise.report import Report

__all__ = ["CUTOFFS", "brackets", "curve", "forest"]

#: Where curves are drawn.
CUTOFFS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 100)

#: The colours of figures, and the variables of the page that stand for them.
_COLOURS = {INK: "ink", GREY: "grey", FAINT: "faint", "white": "card", "#ffffff": "card"}
_COLOURS |= {colour: f"c{place}" for place, colour in enumerate(PALETTE)}
#: What holds names and numbers of the user's and no colours.
_DATA = ("datasets", "data", "domain", "sort", "description")

#: How far from the frame brackets stand, behind the numbers in words, and from each other.
BESIDE, LANE = 178, 26

#: The page's own letters; the browser measures them, so they are named here too.
FONT = 'system-ui, "Segoe UI", Helvetica, Arial, sans-serif'

Names = Sequence[str]


def forest(
    reports: Mapping[str, Report],
    measure: Measure,
    intervals: Mapping[str, tuple[float, float]],
    known: Mapping[str, Mapping[str, Any]],
    decided: Callable[[str, str], bool],
    confidence: float,
) -> dict[str, Any]:
    """The forest plot, with a bracket beside runs of which none is ahead of another in every order of ties.

    `known` has what is shown of each run over the queries that all have: its estimate, and what tools print.
    """
    found = figures.forest_rows(reports, measure, intervals=intervals, tools=False)
    rows = [{**row, **known[row["name"]]} for row in found]
    rows.sort(key=lambda row: -row["expected"])
    spec = figures.forest(rows, measure=measure.name, sort=False, level=confidence).to_dict()
    order = [row["name"] for row in rows]
    open_ = brackets(order, decided)
    spec["layer"] += _bracket_layers(open_, spec["width"])
    for layer in spec["layer"]:  # one order for all layers, whatever rows each has
        layer["encoding"]["y"] |= {"sort": None, "scale": {"domain": order}}
    beside = {"brackets": len({lane for _, lane in open_}), "labels": max(map(len, order))}
    return {"spec": _themed(spec), "caption": _caption(spec), **beside}


def brackets(order: Names, decided: Callable[[str, str], bool]) -> list[tuple[Names, int]]:
    """The longest stretches of which no two are decided, each with the lane in which there is room for it.

    >>> brackets("ABCD", lambda a, b: (a, b) == ("A", "C") or b == "D")
    [('AB', 0), ('BC', 1)]
    """
    found: list[tuple[Names, int]] = []
    ends: list[int] = []  # of the last stretch in each lane
    reached = 0
    for first in range(len(order)):
        last = first
        while last + 1 < len(order) and not any(decided(above, order[last + 1]) for above in order[first : last + 1]):
            last += 1
        if last > max(first, reached):  # not inside the stretch before
            lane = next((lane for lane, end in enumerate(ends) if end < first), len(ends))
            ends[lane : lane + 1] = [last]
            found.append((order[first : last + 1], lane))
            reached = last
    return found


def _bracket_layers(found: Sequence[tuple[Names, int]], width: int) -> list[dict[str, Any]]:
    """A rule beside the rows of each bracket, and what it means."""
    layers = []
    for names, lane in found:
        x = {"value": width + BESIDE + LANE * lane}
        middle = names[(len(names) - 1) // 2]
        data = {"values": [{"first": names[0], "last": names[-1], "middle": middle, "text": "not decided"}]}
        rule = {"type": "rule", "color": PALETTE[1], "strokeWidth": 3, "aria": False}
        ends = {"y": {"field": "first", "type": "nominal", "title": None}, "y2": {"field": "last"}}
        text = {"type": "text", "angle": 270, "dy": 12, "color": PALETTE[1], "fontSize": 11, "aria": False}
        between = {} if len(names) % 2 else {"bandPosition": 1}  # an even number of rows has no middle one
        at = {"y": {"field": "middle", "type": "nominal", "title": None, **between}}
        said = {"text": {"field": "text", "type": "nominal"}}
        layers.append({"data": data, "mark": rule, "encoding": {"x": x, **ends}})
        layers.append({"data": data, "mark": text, "encoding": {"x": x, **at, **said}})
    return layers


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
