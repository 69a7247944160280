"""Figures of `Leaderboard`: the ranks that other queries and other collections leave open."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tiewise.analysis.leaderboard_result import OTHERS, Leaderboard
from tiewise.figures.theme import INK, PALETTE, ROWS_WIDTH, layer_chart, load_altair, name_axis, tooltips
from tiewise.results.wording import format_level

if TYPE_CHECKING:
    import altair as alt

ROW_HEIGHT, LOW_ROW, MANY = 26, 14, 40  #: the heights of rows, lower for more systems than this


class LeaderboardPlots:
    """The figures of one leaderboard; each is an ordinary altair chart."""

    def __init__(self, leaderboard: Leaderboard):
        self._leaderboard = leaderboard

    def ranks(self, *, title: str = "") -> alt.LayerChart:
        """A row for each system: its rank, and beside it one bar for other queries and one for other collections."""
        alt, found = load_altair(), self._leaderboard
        rows = list(found.rows())
        height = ROW_HEIGHT if len(rows) <= MANY else LOW_ROW
        y = name_axis("system", [row["system"] for row in rows])
        scale = alt.Scale(domain=[0.5, len(rows) + 0.5], nice=False, zero=False)
        whole = alt.Axis(format="d", tickMinStep=1, orient="top")

        def x(field: str) -> Any:
            return alt.X(f"{field}:Q", title="rank", scale=scale, axis=whole)

        bars: list[dict[str, Any]] = []
        for row in rows:
            for other in OTHERS:
                low, high = (row[f"rank_{other}_{end}"] for end in ("low", "high"))
                if low is not None:
                    ends = {"from": low - 0.35, "to": high + 0.35, "low": low, "high": high}
                    bars.append({"system": row["system"], "other": f"other {other}", **ends})
        names = [f"other {other}" for other in OTHERS]
        of_names = alt.Scale(domain=names, range=list(PALETTE[: len(names)]))
        color = alt.Color("other:N", title=None, scale=of_names, legend=alt.Legend(orient="top"))
        layers = []
        for place, name in enumerate(names):
            own = alt.InlineData(values=[bar for bar in bars if bar["other"] == name])
            drawn = alt.Chart(own).mark_bar(height=height / 3.5, yOffset=(2 * place - 1) * height / 5)
            shown = tooltips("system:N", "other:N", "low:Q", "high:Q")
            layers.append(drawn.encode(x("from"), alt.X2("to:Q"), y, color, tooltip=shown))
        keys = ("system", "rank", "mean", "borda")
        ranked = alt.InlineData(values=[{key: row[key] for key in keys} for row in rows if row["rank"] is not None])
        circles = alt.Chart(ranked).mark_point(size=3 * height, filled=False, fill="white", stroke=INK, opacity=1)
        layers.append(circles.encode(x("rank"), y, tooltip=tooltips("system:N", "rank:Q", "mean:Q", "borda:Q")))
        level = format_level(found.confidence)
        return layer_chart(
            layers,
            title=title or f"{found.measure}: ranks that are left open",
            subtitle=f"Circle: rank. Bars: {level} intervals, which hold for all systems at once. {found.sentence}",
            description=f"Rank intervals of {len(rows)} systems. {found.sentence}",
            width=ROWS_WIDTH,
            height=alt.Step(height),
        )
