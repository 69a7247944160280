"""Figures of `Stages`: what sets are worth against what they cost, and sets of equal recall told apart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tiewise.errors import InputError
from tiewise.figures.theme import FAINT, GREY, INK, PALETTE, WIDTH, altair, dressed, rows
from tiewise.rankings.first_stages import SPREAD_COLUMNS, Stages

if TYPE_CHECKING:
    import altair as alt

__all__ = ["Plots"]

#: What the lines of the paper's Figure 3 are called, from the top down, with their dashes.
LINES = {"ceiling": ("ceiling", [6, 4]), "base_upper": ("base plus residual", [2, 2]), "full": ("full", [1, 0])}


class Plots:
    """The figures of one result; each is an ordinary altair chart."""

    def __init__(self, stages: Stages):
        self._stages = stages

    def pareto(self, phi: float | None = None) -> alt.LayerChart:
        """Rank-biased recall against cost, a line for each system over its depths; what is worth its cost is filled.

        Bars reach from the lower to the upper bound, and from the least to the most over the orders of ties where that
        is wider. Without `phi`, the first that was measured.
        """
        alt, chosen = altair(), self._phi(phi)
        table = [row for row in self._stages.table() if row["phi"] == chosen]
        priced = table[0]["cost"] is not None
        prices = [row["cost"] if priced else row["depth"] for row in table]
        if None in prices:
            raise InputError("Sets of whole lists have no depth to draw them by. Give depths, or costs.")
        log = " (logarithmic)" * all(prices)
        scale = alt.Scale(type="log", nice=False, padding=30) if log else alt.Undefined
        deepest = 1 + max(row["depth"] or 0 for row in table)  # whole lists come after all depths
        data = rows(
            {
                "system": [row["system"] for row in table],
                "depth": [row["depth"] for row in table],
                "reach": [row["depth"] or deepest for row in table],
                "label": [str(row["depth"] or "all") for row in table],
                "cost": prices,
                "worth": [bool(row["pareto"]) for row in table],
                **{name: [row[name] for row in table] for name in ("rbr_lower", "rbr_upper")},
                **{name: [row[name] for row in table] for name in ("rbr_minimum", "rbr_maximum", "recall")},
            }
        )
        x = alt.X(
            "cost:Q",
            title=("cost of both stages" if priced else "documents handed on") + log,
            scale=scale,
            axis=alt.Axis(labelOverlap="greedy"),
        )
        y = alt.Y("rbr_lower:Q", title=f"rank-biased recall (φ = {chosen:g})")
        colour = alt.Color(
            "system:N", title=None, sort=list(self._stages.systems), legend=alt.Legend(orient="top", columns=5)
        )
        shape = alt.Shape("system:N", title=None, sort=list(self._stages.systems))
        base = alt.Chart(data, width=WIDTH, height=340)
        shown = [
            *("system:N", alt.Tooltip("label:N", title="depth"), "cost:Q", "recall:Q"),
            *("rbr_lower:Q", "rbr_upper:Q", "rbr_minimum:Q", "rbr_maximum:Q"),
        ]
        layers = alt.layer(
            base.mark_rule(strokeWidth=1.5, opacity=0.7).encode(
                x, alt.Y("rbr_minimum:Q"), alt.Y2("rbr_maximum:Q"), colour
            ),
            base.mark_rule(strokeWidth=5, opacity=0.5).encode(x, y, alt.Y2("rbr_upper:Q"), colour),
            base.mark_line(strokeWidth=1.5, opacity=0.6).encode(x, y, colour, alt.Order("reach:Q")),
            base.transform_filter("!datum.worth")
            .mark_point(size=80, strokeWidth=2, filled=False, fill="white", opacity=1)
            .encode(x, y, colour, shape, tooltip=shown),
            base.transform_filter("datum.worth")
            .mark_point(size=90, filled=True, opacity=1)
            .encode(x, y, colour, shape, tooltip=shown),
            base.mark_text(dx=8, dy=12, color=GREY, fontSize=11, align="left").encode(x, y, text="label:N"),
        )
        price = "cost" if priced else "depth"
        words = f"Filled: worth its {price}. Numbers: depth. Bars: bounds; thin: over the orders of ties."
        titled = layers.properties(title=alt.Title("What first stages hand on", subtitle=words))
        made: Any = dressed(titled, "Rank-biased recall of first stages against their cost, by depth.")
        return made

    def spread(self, recall: float, *, depth: int, phi: float | None = None, k: int | None = None) -> alt.LayerChart:
        """Sets of equal recall, ordered by their rank-biased recall: Moffat et al. (2024), Figure 3."""
        alt, chosen = altair(), self._phi(phi)
        found = self._stages.spread(recall, depth=depth, phi=chosen, k=k)
        if not len(found):
            raise InputError(f"No set of {depth} documents has a recall of {recall:g} in every order of its ties.")
        place = list(range(1, len(found) + 2))  # a set's step ends where the next begins
        data = rows({"place": place} | {name: [*found[name], found[name][-1]] for name in SPREAD_COLUMNS})
        x = alt.X(
            "place:Q", title=f"{len(found):,} sets of equal recall, in ascending order", axis=alt.Axis(grid=False)
        )
        base = alt.Chart(data, width=WIDTH, height=300)
        y = alt.Y("value:Q", title=f"rank-biased recall (φ = {chosen:g})", scale=alt.Scale(zero=False, padding=10))
        names = {**{name: words for name, (words, _) in LINES.items()}, "base": "base"}
        folded = base.transform_fold(list(names), as_=["line", "value"]).transform_calculate(
            what="{" + ", ".join(f"{name}: '{words}'" for name, words in names.items()) + "}[datum.line]"
        )
        order = list(names.values())
        colours = alt.Scale(domain=order, range=[INK, PALETTE[4], PALETTE[1], PALETTE[0]])
        dashes = alt.Scale(domain=order, range=[*(dash for _, dash in LINES.values()), [1, 0]])
        layers = alt.layer(
            base.mark_area(color=FAINT, opacity=0.8, interpolate="step-after").encode(
                x, alt.Y("base:Q"), alt.Y2("base_upper:Q")
            ),
            folded.mark_line(strokeWidth=1.8, interpolate="step-after").encode(
                x,
                y,
                alt.Color("what:N", title=None, scale=colours, legend=alt.Legend(orient="top", symbolType="stroke")),
                alt.StrokeDash("what:N", title=None, scale=dashes),
            ),
        )
        reach = k or self._stages.k or 10
        title = alt.Title(f"Sets of {depth} documents, all with recall {recall:g} of the first {reach}")
        made: Any = dressed(layers.properties(title=title), "Rank-biased recall of sets that all have the same recall.")
        return made

    def _phi(self, phi: float | None) -> float:
        if phi is None:
            return self._stages.phis[0]
        if phi not in self._stages.phis:
            raise InputError(f"phi={phi!r} was not measured. There are: {', '.join(map(str, self._stages.phis))}.")
        return phi
