"""`group_sizes`: how large tie groups are, as the share of rows by the size of their group."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tiewise.analysis.auditing import Audit
from tiewise.analysis.auditing.tie_statistics import SizeBin, TieStatistics
from tiewise.errors import InputError
from tiewise.figures.theme import GREY, PALETTE, layer_chart, load_altair, name_legend, palette_colors
from tiewise.io import as_run

if TYPE_CHECKING:
    import altair as alt


def group_sizes(runs: Any, *, title: str = "") -> alt.LayerChart:
    """The share of rows by the size of their tie group, for one run, or for several by name.

    A run is anything that `evaluate` takes, or an `Audit`; several runs are ``{name: run}``. For one run, the numbers
    above the bars count its groups.
    """
    several = isinstance(runs, Mapping) and not any(map(_is_document_scores, runs.values()))
    bins = {str(name): _size_bins(run) for name, run in (runs.items() if several else [("", runs)])}
    if not bins:
        raise InputError("There is no run to draw. Give one, or several by their names.")
    alt, names = load_altair(), list(bins)
    widest = max(bins.values(), key=len)
    labels = [_size_label(one) for one in widest]
    n_rows = {name: sum(one.rows for one in of_run) for name, of_run in bins.items()}
    bars = [
        {
            "run": name,
            "size": _size_label(one),
            "groups": one.groups,
            "rows": one.rows,
            "share": one.rows / n_rows[name],
        }
        for name, of_run in bins.items()
        for one in of_run
    ]
    axis = alt.Axis(labelAngle=-40 if len(labels) > 9 else 0)
    x = alt.X("size:N", title="documents in the tie group (1: not tied)", sort=labels, axis=axis)
    y = alt.Y("share:Q", title="share of rows", axis=alt.Axis(format="%"))
    tooltip = [*(["run:N"] if several else []), "size:N", "groups:Q", "rows:Q", alt.Tooltip("share:Q", format=".1%")]
    base = alt.Chart(alt.InlineData(values=bars))
    if several:
        legend = alt.Legend(**name_legend(names), symbolType="square")
        scale = alt.Scale(domain=names, range=palette_colors(len(names)))
        color = alt.Color("run:N", title=None, scale=scale, legend=legend)
        layers = [base.mark_bar().encode(x, y, alt.XOffset("run:N", sort=names), color, tooltip=tooltip)]
        subtitle = "Of the rows of each run, those in tie groups of a size."
    else:
        color = alt.condition("datum.size == '1'", alt.value(GREY), alt.value(PALETTE[0]))
        counts = base.mark_text(dy=-7, fontSize=11, color=GREY).encode(x, y, alt.Text("groups:Q", format=","))
        layers = [base.mark_bar(width=alt.RelativeBandSize(0.75)).encode(x, y, color=color, tooltip=tooltip), counts]
        total = n_rows[names[0]]
        tied = sum(one.rows for one in widest if one.low > 1)
        subtitle = f"{tied / total:.1%} of {total:,} rows are tied. Above the bars: the number of groups."
    return layer_chart(
        layers,
        title=title or "Sizes of tie groups",
        subtitle=subtitle,
        description="The share of rows by the size of their tie group.",
        height=280,
    )


def _is_document_scores(value: Any) -> bool:
    """Whether this is ``{document: score}`` of one query, and not a run."""
    return isinstance(value, Mapping) and not any(isinstance(one, Mapping) for one in value.values())


def _size_bins(run: Any) -> tuple[SizeBin, ...]:
    bins = run.group_sizes if isinstance(run, Audit) else TieStatistics(as_run(run)).histogram()
    if not bins:
        raise InputError("The run has no rows: there are no tie groups to draw.")
    return bins


def _size_label(one: SizeBin) -> str:
    return f"{one.low:,}" if one.low == one.high else f"{one.low:,}–{one.high:,}"
