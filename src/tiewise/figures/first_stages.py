"""Figures of `Stages`: rank-biased recall against cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tiewise.errors import InputError
from tiewise.figures.theme import GREY, inline_data, layer_chart, load_altair, palette_colors
from tiewise.rankings.first_stages import Stages

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
        data = inline_data(
            {
                "system": [row["system"] for row in rows],
                "depth": [row["depth"] for row in rows],
                "reach": [row["depth"] or deepest for row in rows],
                "label": [str(row["depth"] or "all") for row in rows],
                "cost": costs,
                "pareto": [bool(row["pareto"]) for row in rows],
                **{name: [row[name] for row in rows] for name in columns},
            }
        )
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
        base = alt.Chart(data)
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
