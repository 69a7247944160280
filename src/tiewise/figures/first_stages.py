"""Figures of `Stages`, rank-biased recall against cost, and of the range of RBA, by which φ is chosen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tiewise.data.columns import Floats
from tiewise.errors import InputError
from tiewise.figures.theme import GREY, INK, inline_data, layer_chart, load_altair, palette_colors
from tiewise.rankings.first_stages import Stages
from tiewise.rankings.weights import reversed_rba

if TYPE_CHECKING:
    import altair as alt


class StagePlots:
    """The figures of one result; each is an ordinary altair chart."""

    def __init__(self, stages: Stages):
        self._stages = stages

    def pareto(self, phi: float | None = None) -> alt.LayerChart:
        """Rank-biased recall against cost: a line for each system; points on the Pareto frontier are filled.

        Thick bars reach from the lower to the upper bound; thin bars show the extremes over the tie orders. The default
        `phi` is the first that was measured.
        """
        alt, chosen = load_altair(), self._check_phi(phi)
        rows = [row for row in self._stages.table() if row["phi"] == chosen]
        has_cost = rows[0]["cost"] is not None
        costs = [row["cost"] if has_cost else row["depth"] for row in rows]
        if None in costs:
            raise InputError("Sets of whole lists have no depth to draw them by. Give depths, or costs.")
        log = " (logarithmic)" * all(costs)
        deepest = 1 + max(row["depth"] or 0 for row in rows)  # whole lists come after all depths
        columns = ("rbr_lower", "rbr_upper", "rbr_minimum", "rbr_maximum", "recall")
        points = []
        for row, cost in zip(rows, costs, strict=True):
            place = {"reach": row["depth"] or deepest, "label": str(row["depth"] or "all"), "cost": cost}
            names = {"system": row["system"], "depth": row["depth"]}
            points.append(names | place | {"pareto": bool(row["pareto"])} | {name: row[name] for name in columns})
        x = alt.X(
            "cost:Q",
            title=("cost of both stages" if has_cost else "documents passed on") + log,
            scale=alt.Scale(type="log", nice=False, padding=30) if log else alt.Undefined,
            axis=alt.Axis(labelOverlap="greedy"),
        )
        y = alt.Y("rbr_lower:Q", title=f"rank-biased recall (φ = {chosen:g})")
        systems = list(self._stages.systems)
        legend = alt.Legend(orient="top", columns=5)
        colors = alt.Scale(domain=systems, range=palette_colors(len(systems)))
        color = alt.Color("system:N", title=None, scale=colors, legend=legend)
        shape = alt.Shape("system:N", title=None, scale=alt.Scale(domain=systems), legend=legend)
        base = alt.Chart(alt.InlineData(values=points))
        tooltip = [
            *("system:N", alt.Tooltip("label:N", title="depth"), "cost:Q", "recall:Q"),
            *("rbr_lower:Q", "rbr_upper:Q", "rbr_minimum:Q", "rbr_maximum:Q"),
        ]
        hollow = base.transform_filter("!datum.pareto").mark_point(
            size=80, strokeWidth=2, filled=False, fill="white", opacity=1
        )
        filled = base.transform_filter("datum.pareto").mark_point(size=90, filled=True, opacity=1)
        extremes = alt.Y("rbr_minimum:Q"), alt.Y2("rbr_maximum:Q")
        layers = [
            base.mark_rule(strokeWidth=1.5, opacity=0.7).encode(x, *extremes, color),
            base.mark_rule(strokeWidth=5, opacity=0.5).encode(x, y, alt.Y2("rbr_upper:Q"), color),
            base.mark_line(strokeWidth=1.5, opacity=0.6).encode(x, y, color, alt.Order("reach:Q")),
            hollow.encode(x, y, color, shape, tooltip=tooltip),
            filled.encode(x, y, color, shape, tooltip=tooltip),
            base.mark_text(dx=8, dy=12, color=GREY, fontSize=11, align="left").encode(x, y, text="label:N"),
        ]
        words = "Filled: Pareto frontier. Numbers: depth. Bars: bounds; thin: by tie order."
        return layer_chart(
            layers,
            title="What first stages pass on",
            subtitle=words,
            description="Rank-biased recall of first stages against their cost, by depth.",
            height=340,
        )

    def _check_phi(self, phi: float | None) -> float:
        if phi is None:
            return self._stages.phis[0]
        if phi not in self._stages.phis:
            raise InputError(f"phi={phi!r} was not measured. Available: {', '.join(map(str, self._stages.phis))}.")
        return phi


# -- the range of RBA -----------------------------------------------------------------------------------------------

EXTREMES = ("reversed: the least", "the same: the most")


def rba_range(lengths: Sequence[int] = (10, 50, 100), *, phi: tuple[float, float] = (0.3, 1.0)) -> alt.LayerChart:
    """The range of RBA between permutations as a function of φ, for some lengths: a chart to choose φ by.

    The solid line is the score of a reversed ranking, k(1−φ)·φ^((k−1)/2) (Eq. 12), the lowest of a permutation. The
    dashed line is the score of the same ranking, 1 − φ^k, the highest. A dot marks the peak of each solid line, at
    φ* = (k−1)/(k+1). `phi` are the ends of the axis.
    """
    low, high = phi
    if not lengths or min(lengths) < 2:
        raise InputError(f"lengths={tuple(lengths)!r}: give one or more lengths of rankings, of two items or more.")
    if not 0 <= low < high <= 1:
        raise InputError(f"phi={phi!r}: give where the axis begins and ends, between 0 and 1.")
    alt = load_altair()
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
        scale=alt.Scale(domain=list(EXTREMES), range=[[1, 0], [6, 4]]),
        legend=alt.Legend(**legend, symbolStrokeColor=INK),
    )
    grid = np.linspace(low, high, 281)
    lines = alt.Chart(_range_lines(lengths, names, grid)).mark_line().encode(**axes, strokeDash=dash)
    peaks = alt.Chart(_range_peaks(lengths, names, phi)).mark_point(size=70, opacity=1).encode(**axes)
    return layer_chart(
        [lines, peaks],
        title="The range of RBA between permutations",
        subtitle="Where the solid line has come near the dashed one, orders can no longer be told apart.",
        description=f"RBA of reversed and of equal rankings of {', '.join(map(str, lengths))} items against φ.",
        height=340,
    )


def _range_lines(lengths: Sequence[int], names: Sequence[str], phi: Floats) -> Any:
    scores = [line for k in lengths for line in (reversed_rba(phi, k), 1 - phi**k)]
    return inline_data(
        {
            "length": np.repeat(names, 2 * len(phi)),
            "order": np.tile(np.repeat(EXTREMES, len(phi)), len(lengths)),
            "phi": np.round(np.tile(phi, 2 * len(lengths)), 5),
            "score": np.round(np.concatenate(scores), 5),
        }
    )


def _range_peaks(lengths: Sequence[int], names: Sequence[str], phi: tuple[float, float]) -> Any:
    """The peaks of the solid lines that are on the axis."""
    peaks = [((k - 1) / (k + 1), k, name) for k, name in zip(lengths, names, strict=True)]
    inside = [(peak, reversed_rba(peak, k), name) for peak, k, name in peaks if phi[0] <= peak <= phi[1]]
    return inline_data(dict(zip(("phi", "score", "length"), zip(*inside, strict=True), strict=False)))
