"""Figures 1 and 7 of Moffat et al. (SIGIR-AP 2024): which measure to use, and how far τ, RBO and RBA agree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from tiewise.data.columns import Floats
from tiewise.errors import InputError
from tiewise.figures.theme import GREY, PALETTE, WIDTH, apply_theme, inline_data, load_altair

if TYPE_CHECKING:
    import altair as alt

__all__ = ["agreement", "chooser"]

# -- Figure 7: how far τ, RBO and RBA agree ----------------------------------------------------------------------------


def agreement(tau: ArrayLike, rbo: ArrayLike, rba: ArrayLike, *, title: str = "", bins: int = 70) -> alt.VConcatChart:
    """How τ, RBO and RBA of the same pairs of rankings agree, from three columns of scores of equal length.

    Above: RBA against RBO as a heat map with `bins` cells along each axis, on a logarithmic colour scale. Below: the
    cumulative distributions of all three.
    """
    scores = _check_scores({"τ": tau, "RBO": rbo, "RBA": rba})
    if bins < 1:
        raise InputError(f"bins={bins!r}: give the number of cells along an axis, one or more.")
    alt = load_altair()
    n = scores["τ"].size
    heading = alt.Title(title or "τ, RBO and RBA of the same rankings", subtitle=f"{n:,} pairs of rankings")
    chart = alt.vconcat(_heat_map(scores["RBO"], scores["RBA"], bins), _distributions(scores), spacing=28)
    return apply_theme(
        chart.properties(title=heading).resolve_scale(color="independent", strokeDash="independent"),
        f"RBA against RBO of {n:,} pairs of rankings, and the cumulative distributions of τ, RBO and RBA.",
    )


def _check_scores(given: Mapping[str, ArrayLike]) -> dict[str, Floats]:
    """The scores as arrays of one length, each within the range of its measure."""
    scores = {name: np.asarray(column, dtype=np.float64) for name, column in given.items()}
    if len({column.shape for column in scores.values()}) > 1 or any(c.ndim != 1 or not c.size for c in scores.values()):
        shapes = ", ".join(f"{name} {column.shape}" for name, column in scores.items())
        raise InputError(f"agreement() needs three columns of one length, not empty. It was given {shapes}.")
    for name, column in scores.items():
        lowest = -1.0 if name == "τ" else 0.0
        if not np.all((column >= lowest - 1e-9) & (column <= 1 + 1e-9)):  # NaN is outside too
            raise InputError(
                f"{name} must lie between {lowest:g} and 1; other numbers were given. Leave those pairs out."
            )
        scores[name] = np.clip(column, lowest, 1.0)
    return scores


def _heat_map(x: Floats, y: Floats, bins: int) -> alt.Chart:
    """The number of points in each cell that has any."""
    alt = load_altair()
    edges = np.linspace(0, 1, bins + 1)
    count, _, _ = np.histogram2d(x, y, bins=(edges, edges))
    column, row = np.nonzero(count)
    corners = {"x": edges[column], "x2": edges[column + 1], "y": edges[row], "y2": edges[row + 1]}
    cells = {name: np.round(edge, 4) for name, edge in corners.items()} | {"pairs": count[column, row].astype(int)}
    scale = alt.Scale(domain=[0, 1])
    return (
        alt.Chart(inline_data(cells))
        .mark_rect(aria=False)  # a cell needs no name of its own
        .encode(
            x=alt.X("x:Q", scale=scale, title="RBO", axis=alt.Axis(tickCount=10)),
            x2="x2:Q",
            y=alt.Y("y:Q", scale=scale, title="RBA"),
            y2="y2:Q",
            color=alt.Color(
                "pairs:Q",
                scale=alt.Scale(type="log", range=["#cfe3f2", PALETTE[0], "#00182b"], interpolate="lab"),
                legend=alt.Legend(title="pairs", orient="right", gradientLength=160, tickCount=5),
            ),
            tooltip=["x:Q", "y:Q", "pairs:Q"],
        )
        .properties(width=WIDTH, height=WIDTH * 0.62)
    )


def _distributions(scores: Mapping[str, Floats]) -> alt.Chart:
    """The share of pairs with at most a score, for each measure."""
    alt = load_altair()
    low = min(0.0, *(float(column.min()) for column in scores.values()))
    grid = np.linspace(np.floor(low * 5) / 5, 1, 401)
    share = [np.searchsorted(np.sort(column), grid, side="right") / column.size for column in scores.values()]
    lines = inline_data(
        {
            "measure": np.repeat(list(scores), len(grid)),
            "score": np.round(np.tile(grid, len(scores)), 4),
            "share": np.round(np.concatenate(share), 4),
        }
    )
    names, colors, dashes = list(scores), [PALETTE[2], PALETTE[1], PALETTE[0]], [[2, 3], [7, 3], [1, 0]]
    legend = alt.Legend(title=None, orient="right", symbolType="stroke", symbolSize=500)
    return (
        alt.Chart(lines)
        .mark_line()
        .encode(
            x=alt.X("score:Q", title="score", scale=alt.Scale(domain=[float(grid[0]), 1], nice=False)),
            y=alt.Y("share:Q", title="share of pairs with at most this score", scale=alt.Scale(domain=[0, 1])),
            color=alt.Color("measure:N", scale=alt.Scale(domain=names, range=colors), legend=legend),
            strokeDash=alt.StrokeDash("measure:N", scale=alt.Scale(domain=names, range=dashes), legend=legend),
        )
        .properties(width=WIDTH, height=260)
    )


# -- Figure 1 with Table 5: which measure for which pair ---------------------------------------------------------------

#: Observation, reference, the names of the measures and their functions.
CASES = (
    ("set", "set", "precision, recall", "precision()  recall()"),
    ("ranking", "set", "rank-biased precision", "rbp()"),
    ("set", "ranking", "rank-biased recall", "rbr()"),
    ("ranking", "ranking", "rank-biased overlap, or alignment", "rbo()  rba()"),
)
PANEL_WIDTH, PANEL_HEIGHT = WIDTH / 2 - 10, 236
CENTER_Y, RADIUS = 106, 52  # of the shapes
SHIFTS = {  # of the two shapes from the centre; a set covers the items that it shares
    ("set", "set"): (-32, 32),
    ("ranking", "set"): (-31, 9),
    ("set", "ranking"): (-9, 31),
    ("ranking", "ranking"): (-40, 40),
}
MONOSPACE = "Menlo, Consolas, monospace"
ITEM_Y = [CENTER_Y - RADIUS + 24 + 20 * i for i in range(5)]  # of the items on an arrow


def chooser() -> alt.VConcatChart:
    """Which measure for which pair: an observation B and a reference R, each a set or a ranking.

    Circles are sets and arrows rankings, as in Figure 1 of the paper. The size of a dot on an arrow is the weight of
    its rank.
    """
    alt = load_altair()
    panels = [_panel(*case) for case in CASES]
    rows = [alt.hconcat(*panels[i : i + 2], spacing=20) for i in (0, 2)]
    title = alt.Title(
        "Which measure for which pair?",
        subtitle="An observation B against a reference R. Circles are sets; arrows are rankings, best items on top.",
    )
    return apply_theme(
        alt.vconcat(*rows, spacing=20).properties(title=title),
        "; ".join(f"{observed} against {reference}: {name}" for observed, reference, name, _ in CASES),
    )


def _panel(observed: str, reference: str, name: str, function: str) -> alt.LayerChart:
    """One case: the two shapes, what they are, and the measure of one against the other."""
    alt = load_altair()
    left, right = (PANEL_WIDTH / 2 + shift for shift in SHIFTS[observed, reference])
    layers = _links(left, right) if observed == reference == "ranking" else []
    raised = 12 if observed != reference else 0  # a set then holds the upper items of a ranking
    shapes = [(observed, left, PALETTE[0], "B"), (reference, right, PALETTE[1], "R")]
    for kind, x, color, label in sorted(shapes, key=lambda shape: shape[0] == "ranking"):  # draw sets first
        layers += _circle(x, CENTER_Y - raised, color, label) if kind == "set" else _arrow(x, color, label)
    layers += [
        _mark("text", PANEL_WIDTH / 2, 22, text=f"{observed} | {reference}", fontSize=14, fontWeight="bold"),
        _mark("text", PANEL_WIDTH / 2, 194, text=name, fontSize=14),
        _mark("text", PANEL_WIDTH / 2, 216, text=function, fontSize=12, font=MONOSPACE, color=GREY),
    ]
    frame = alt.ViewBackground(stroke="#d0d7de", cornerRadius=8)
    return alt.layer(*layers, view=frame).properties(width=PANEL_WIDTH, height=PANEL_HEIGHT)


def _circle(x: float, y: float, color: str, label: str) -> list[Any]:
    """A set, with its label on the outer side."""
    disc: dict[str, Any] = {"shape": "circle", "size": (2 * RADIUS) ** 2, "fillOpacity": 0.16, "strokeWidth": 2.5}
    return [_mark("point", x, y, color=color, stroke=color, **disc), _label(label, x, RADIUS + 14, y, color)]


def _arrow(x: float, color: str, label: str) -> list[Any]:
    """A ranking with its items, and its label on the outer side."""
    top, bottom = CENTER_Y - RADIUS, CENTER_Y + RADIUS
    sizes = (150 * 0.7**rank for rank in range(len(ITEM_Y)))
    return [
        _mark("rule", x, top + 4, y2=bottom + 4, color=color, strokeWidth=3),
        _mark("point", x, top, shape="triangle-up", size=260, color=color, opacity=1),
        *(_mark("point", x, y, size=size, color=color, opacity=1) for y, size in zip(ITEM_Y, sizes, strict=True)),
        _label(label, x, 24, CENTER_Y, color),
    ]


def _label(label: str, x: float, distance: float, y: float, color: str) -> Any:
    side = -1 if label == "B" else 1
    return _mark("text", x + side * distance, y, text=label, fontSize=16, fontStyle="italic", color=color)


def _links(left: float, right: float) -> list[Any]:
    """Thin lines between the same items on two arrows."""
    places = enumerate((1, 0, 2, 4))
    return [_mark("rule", left, ITEM_Y[a], x2=right, y2=ITEM_Y[b], color=GREY, strokeWidth=1) for a, b in places]


def _mark(kind: str, x: float, y: float, *, x2: float | None = None, y2: float | None = None, **style: Any) -> Any:
    """One mark, placed by pixels; lines have two ends."""
    alt = load_altair()
    pixels = {"x": x, "y": y, "x2": x2, "y2": y2}
    chart = getattr(alt.Chart(inline_data({"one": [1]})), f"mark_{kind}")(**style)
    return chart.encode(**{channel: alt.value(at) for channel, at in pixels.items() if at is not None})
