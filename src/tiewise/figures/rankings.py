"""Figures of sets and rankings against each other: what to measure them by, and how the measures behave.

They show what Figures 1, 6 and 7 of Moffat et al. (SIGIR-AP 2024) show.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from tiewise.data.columns import Floats
from tiewise.errors import InputError
from tiewise.figures.theme import GREY, INK, PALETTE, WIDTH, altair, dressed, rows
from tiewise.rankings.weights import reversed_rba

if TYPE_CHECKING:
    import altair as alt

__all__ = ["agreement", "chooser", "rba_range"]

# -- Figure 6: the range of RBA ---------------------------------------------------------------------------------------

ORDERS = ("reversed: the least", "the same: the most")


def rba_range(lengths: Sequence[int] = (10, 50, 100), *, phi: tuple[float, float] = (0.3, 1.0)) -> alt.LayerChart:
    """The range of RBA between permutations, as a function of φ, for some lengths: a chart to choose φ by.

    The solid line of each pair is the score of a reversed ranking, k(1−φ)·φ^((k−1)/2) (Eq. 12), the least that a
    permutation can have; the dashed one that of the same ranking, 1 − φ^k, the most. A dot marks the peak of each solid
    line, at φ* = (k−1)/(k+1). `phi` are the ends of the axis.
    """
    low, high = phi
    if not lengths or min(lengths) < 2:
        raise InputError(f"lengths={tuple(lengths)!r}: give one or more lengths of rankings, of two items or more.")
    if not 0 <= low < high <= 1:
        raise InputError(f"phi={phi!r}: give where the axis begins and ends, between 0 and 1.")
    alt = altair()
    names = [f"{k} items" for k in lengths]
    legend = {"orient": "top", "symbolType": "stroke", "symbolSize": 500}
    axes = {
        "x": alt.X("phi:Q", title="φ", scale=alt.Scale(domain=[low, high], nice=False), axis=alt.Axis(tickCount=8)),
        "y": alt.Y("score:Q", title="RBA", scale=alt.Scale(domain=[0, 1])),
        "color": alt.Color("length:N", title=None, scale=alt.Scale(domain=names), legend=alt.Legend(**legend)),
    }
    dash = alt.StrokeDash(
        "order:N",
        title=None,
        scale=alt.Scale(domain=list(ORDERS), range=[[1, 0], [6, 4]]),
        legend=alt.Legend(**legend, symbolStrokeColor=INK),
    )
    lines = alt.Chart(_ranges(lengths, names, np.linspace(low, high, 281))).mark_line().encode(**axes, strokeDash=dash)
    peaks = alt.Chart(_peaks(lengths, names, phi)).mark_point(size=70, opacity=1).encode(**axes)
    title = alt.Title(
        "The range of RBA between permutations",
        subtitle="Where the solid line has come near the dashed one, orders can no longer be told apart.",
    )
    return dressed(
        alt.layer(lines, peaks).properties(width=WIDTH, height=340, title=title),
        f"RBA of reversed and of equal rankings of {', '.join(map(str, lengths))} items against φ.",
    )


def _ranges(lengths: Sequence[int], names: Sequence[str], phi: Floats) -> Any:
    """The two lines of each length, point by point."""
    scores = [line for k in lengths for line in (reversed_rba(phi, k), 1 - phi**k)]
    return rows(
        {
            "length": np.repeat(names, 2 * len(phi)),
            "order": np.tile(np.repeat(ORDERS, len(phi)), len(lengths)),
            "phi": np.round(np.tile(phi, 2 * len(lengths)), 5),
            "score": np.round(np.concatenate(scores), 5),
        }
    )


def _peaks(lengths: Sequence[int], names: Sequence[str], phi: tuple[float, float]) -> Any:
    """Where the score of a reversed ranking is largest, if the axis goes there."""
    peaks = [((k - 1) / (k + 1), k, name) for k, name in zip(lengths, names, strict=True)]
    shown = [(at, reversed_rba(at, k), name) for at, k, name in peaks if phi[0] <= at <= phi[1]]
    return rows(dict(zip(("phi", "score", "length"), zip(*shown, strict=True), strict=False)))


# -- Figure 7: how far τ, RBO and RBA agree ----------------------------------------------------------------------------


def agreement(tau: ArrayLike, rbo: ArrayLike, rba: ArrayLike, *, title: str = "", bins: int = 70) -> alt.VConcatChart:
    """How τ, RBO and RBA of the same pairs of rankings go together, from three columns of scores of equal length.

    Above, RBA against RBO, as a heat map: a cell is darker the more pairs fall into it (on a logarithmic scale), and
    there are `bins` of them along each axis. Below, the cumulative distributions of all three.
    """
    scores = _columns({"τ": tau, "RBO": rbo, "RBA": rba})
    if bins < 1:
        raise InputError(f"bins={bins!r}: give the number of cells along an axis, one or more.")
    alt = altair()
    n = scores["τ"].size
    heading = alt.Title(title or "τ, RBO and RBA of the same rankings", subtitle=f"{n:,} pairs of rankings")
    chart = alt.vconcat(_heat(scores["RBO"], scores["RBA"], bins), _distributions(scores), spacing=28)
    return dressed(
        chart.properties(title=heading).resolve_scale(color="independent", strokeDash="independent"),
        f"RBA against RBO of {n:,} pairs of rankings, and the cumulative distributions of τ, RBO and RBA.",
    )


def _columns(given: Mapping[str, ArrayLike]) -> dict[str, Floats]:
    """The scores as arrays of one length, each within its measure's range."""
    found = {name: np.asarray(column, dtype=np.float64) for name, column in given.items()}
    if len({column.shape for column in found.values()}) > 1 or any(c.ndim != 1 or not c.size for c in found.values()):
        shapes = ", ".join(f"{name} {column.shape}" for name, column in found.items())
        raise InputError(f"agreement() needs three columns of one length, not empty. It was given {shapes}.")
    for name, column in found.items():
        least = -1.0 if name == "τ" else 0.0
        if not np.all((column >= least - 1e-9) & (column <= 1 + 1e-9)):  # NaN is outside too
            raise InputError(f"{name} lies between {least:g} and 1; here are other numbers. Leave those pairs out.")
        found[name] = np.clip(column, least, 1.0)
    return found


def _heat(x: Floats, y: Floats, bins: int) -> alt.Chart:
    """The number of points in each cell that has any."""
    alt = altair()
    edges = np.linspace(0, 1, bins + 1)
    count, _, _ = np.histogram2d(x, y, bins=(edges, edges))
    column, row = np.nonzero(count)
    places = {"x": edges[column], "x2": edges[column + 1], "y": edges[row], "y2": edges[row + 1]}
    cells = rows({name: np.round(at, 4) for name, at in places.items()} | {"pairs": count[column, row].astype(int)})
    whole = alt.Scale(domain=[0, 1])
    return (
        alt.Chart(cells)
        .mark_rect(aria=False)  # a cell needs no name of its own
        .encode(
            x=alt.X("x:Q", scale=whole, title="RBO", axis=alt.Axis(tickCount=10)),
            x2="x2:Q",
            y=alt.Y("y:Q", scale=whole, title="RBA"),
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


def _distributions(scores: dict[str, Floats]) -> alt.Chart:
    """The share of pairs with at most a score, for each measure."""
    alt = altair()
    low = min(0.0, *(float(column.min()) for column in scores.values()))
    grid = np.linspace(np.floor(low * 5) / 5, 1, 401)
    share = [np.searchsorted(np.sort(column), grid, side="right") / column.size for column in scores.values()]
    lines = rows(
        {
            "measure": np.repeat(list(scores), len(grid)),
            "score": np.round(np.tile(grid, len(scores)), 4),
            "share": np.round(np.concatenate(share), 4),
        }
    )
    names, colours, dashes = list(scores), [PALETTE[2], PALETTE[1], PALETTE[0]], [[2, 3], [7, 3], [1, 0]]
    legend = alt.Legend(title=None, orient="right", symbolType="stroke", symbolSize=500)
    return (
        alt.Chart(lines)
        .mark_line()
        .encode(
            x=alt.X("score:Q", title="score", scale=alt.Scale(domain=[float(grid[0]), 1], nice=False)),
            y=alt.Y("share:Q", title="share of pairs with at most this score", scale=alt.Scale(domain=[0, 1])),
            color=alt.Color("measure:N", scale=alt.Scale(domain=names, range=colours), legend=legend),
            strokeDash=alt.StrokeDash("measure:N", scale=alt.Scale(domain=names, range=dashes), legend=legend),
        )
        .properties(width=WIDTH, height=260)
    )


# -- Figure 1 with Table 5: which measure for which pair ---------------------------------------------------------------

#: Observation, reference, the measures' names and their functions.
CASES = (
    ("set", "set", "precision, recall", "precision()  recall()"),
    ("ranking", "set", "rank-biased precision", "rbp()"),
    ("set", "ranking", "rank-biased recall", "rbr()"),
    ("ranking", "ranking", "rank-biased overlap, or alignment", "rbo()  rba()"),
)
PANEL, TALL = WIDTH / 2 - 10, 236  # the size of a case
MIDDLE, RADIUS = 106, 52  # the height at which the shapes stand, and the half of their own
SHIFTS = {  # of the shapes from the middle; a set covers the items that it shares
    ("set", "set"): (-32, 32),
    ("ranking", "set"): (-31, 9),
    ("set", "ranking"): (-9, 31),
    ("ranking", "ranking"): (-40, 40),
}
HEIGHTS = [MIDDLE - RADIUS + 24 + 20 * place for place in range(5)]  # of the items on an arrow


def chooser() -> alt.VConcatChart:
    """Which measure for which pair: an observation B and a reference R, each of them a set or a ranking.

    Circles are sets and arrows rankings, as in Figure 1 of the paper; the dots on an arrow are as large as ranks weigh.
    """
    alt = altair()
    cases = [_case(*case) for case in CASES]
    lines = [alt.hconcat(*cases[place : place + 2], spacing=20) for place in (0, 2)]
    title = alt.Title(
        "Which measure for which pair?",
        subtitle="An observation B against a reference R. Circles are sets; arrows are rankings, best items on top.",
    )
    return dressed(
        alt.vconcat(*lines, spacing=20).properties(title=title),
        "; ".join(f"{observed} against {reference}: {name}" for observed, reference, name, _ in CASES),
    )


def _case(observed: str, reference: str, name: str, function: str) -> alt.LayerChart:
    """One case: the two shapes, what they are, and what measures the one against the other."""
    alt = altair()
    left, right = (PANEL / 2 + shift for shift in SHIFTS[observed, reference])
    layers = _links(left, right) if observed == reference == "ranking" else []
    raised = 12 if observed != reference else 0  # a set then holds the upper items of a ranking
    shapes = [(observed, left, PALETTE[0], "B"), (reference, right, PALETTE[1], "R")]
    for kind, x, colour, label in sorted(shapes, key=lambda shape: shape[0] == "ranking"):  # sets lie underneath
        layers += _circle(x, MIDDLE - raised, colour, label) if kind == "set" else _arrow(x, colour, label)
    layers += [
        _text(PANEL / 2, 22, f"{observed} | {reference}", fontSize=14, fontWeight="bold"),
        _text(PANEL / 2, 194, name, fontSize=14),
        _text(PANEL / 2, 216, function, fontSize=12, font="Menlo, Consolas, monospace", color=GREY),
    ]
    frame = alt.ViewBackground(stroke="#d0d7de", cornerRadius=8)
    return alt.layer(*layers, view=frame).properties(width=PANEL, height=TALL)


def _circle(x: float, y: float, colour: str, name: str) -> list[Any]:
    """A set, with its name on its outer side."""
    disc = {"shape": "circle", "size": (2 * RADIUS) ** 2, "fillOpacity": 0.16, "strokeWidth": 2.5}
    circle = _at(_mark().mark_point(color=colour, stroke=colour, **disc), x, y)
    return [circle, _name(name, x, RADIUS + 14, y, colour)]


def _arrow(x: float, colour: str, name: str) -> list[Any]:
    """A ranking, its items on it, with its name on its outer side."""
    alt = altair()
    shaft = _mark().mark_rule(color=colour, strokeWidth=3)
    head = _mark().mark_point(shape="triangle-up", size=260, color=colour, opacity=1)
    items = [
        _at(_mark().mark_point(size=150 * 0.7**place, color=colour, opacity=1), x, height)
        for place, height in enumerate(HEIGHTS)
    ]
    line = shaft.encode(x=alt.value(x), y=alt.value(MIDDLE - RADIUS + 4), y2=alt.value(MIDDLE + RADIUS + 4))
    return [line, _at(head, x, MIDDLE - RADIUS), *items, _name(name, x, 24, MIDDLE, colour)]


def _name(name: str, x: float, away: float, y: float, colour: str) -> Any:
    side = -1 if name == "B" else 1
    return _text(x + side * away, y, name, fontSize=16, fontStyle="italic", color=colour)


def _links(left: float, right: float) -> list[Any]:
    """Thin lines between the same items on two arrows."""
    alt = altair()
    line = _mark().mark_rule(color=GREY, strokeWidth=1)
    return [
        line.encode(x=alt.value(left), y=alt.value(HEIGHTS[a]), x2=alt.value(right), y2=alt.value(HEIGHTS[b]))
        for a, b in enumerate((1, 0, 2, 4))
    ]


def _text(x: float, y: float, words: str, **style: Any) -> Any:
    return _at(_mark().mark_text(text=words, **style), x, y)


def _mark() -> Any:
    """A chart of one thing, to be placed by pixels."""
    return altair().Chart(rows({"one": [1]}))


def _at(chart: Any, x: float, y: float) -> Any:
    alt = altair()
    return chart.encode(x=alt.value(x), y=alt.value(y))
