"""The figure of `Precisions`: what each row loses, against the bytes of a vector."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tiewise.errors import InputError
from tiewise.figures.theme import GREY, INK, PALETTE, WIDTH, inline_data, layer_chart, load_altair, tooltips
from tiewise.scoring.precision_trials import Precisions
from tiewise.tables.wording import PLAIN

if TYPE_CHECKING:
    import altair as alt

__all__ = ["PrecisionPlots", "precision_losses"]

#: Vectors whose bytes differ by less than this factor stand side by side, this factor apart on the logarithmic axis.
SAME_SIZE, BESIDE = 1.15, 1.12

#: The height of the frame, of the gap between an interval and the name above it, and of a character, in pixels.
HEIGHT, GAP, CHARACTER = 380, 8, 5.8


class PrecisionPlots:
    """The figure of one table of precisions, an ordinary altair chart."""

    def __init__(self, precisions: Precisions):
        self._precisions = precisions

    def loss(self, *, title: str = "") -> alt.LayerChart:
        """What each row loses: see `tiewise.figures.precision_losses`."""
        return precision_losses(self._precisions, title=title)


def precision_losses(found: Precisions | Mapping[str, Any], *, title: str = "") -> alt.LayerChart:
    """What each row of a table of precisions loses, against the bytes of a vector.

    A point is the difference to the reference in the first measure; its bar ends at the bounds that hold for all rows
    at once. The dashed line is the largest loss that is allowed. Vectors of nearly the same size stand side by side.
    The rows of a reranker have no bytes and stand in their order. `found` may also be what `Precisions.to_dict` gave.
    """
    document = found.to_dict() if isinstance(found, Precisions) else found
    rows = [row for row in document["rows"] if row["measure"] == document["rows"][0]["measure"]]
    if len(rows) < 2:
        raise InputError("There is only the reference: no other row has a loss to draw.")
    places, ticks = _place(rows)
    loss, has_bytes = document["max_loss"], "bytes" in rows[0]
    data = inline_data(
        {
            "name": [row["setup"] for row in rows],
            "place": places,
            "bytes": [row.get("bytes") for row in rows],
            **{key: [row[key] for row in rows] for key in ("difference", "lower", "upper", "expected")},
            "kind": ["reference", *map(_kind, rows[1:])],
        }
    )
    alt, measure = load_altair(), rows[0]["measure"]
    labels = ", ".join(f"'{place}': {json.dumps(text)}" for place, text in ticks.items())
    scale = alt.Scale(domain=_domain(rows, loss, has_names=has_bytes), nice=False)
    x = alt.X(
        "place:Q",
        title="bytes of a document vector (logarithmic)" if has_bytes else None,
        scale=alt.Scale(type="log" if has_bytes else "linear", nice=False, zero=False, padding=24),
        axis=alt.Axis(values=list(ticks), labelExpr=f"{{{labels}}}[datum.value]", grid=False),
    )
    y = alt.Y("difference:Q", title=f"{measure}, difference to {rows[0]['setup']}", scale=scale)
    kinds = {"reference": GREY, "keeps": PALETTE[2], "loses": PALETTE[1], "unknown": PALETTE[0]}
    shown = [kind for kind in kinds if kind in {row["kind"] for row in data.values}]
    color = alt.Color(
        "kind:N",
        title=None,
        scale=alt.Scale(domain=shown, range=[kinds[kind] for kind in shown]),
        legend=None if loss is None else alt.Legend(orient="top", symbolType="circle"),
    )
    base = alt.Chart(data)
    lines = [alt.Chart(inline_data({"at": [0.0]})).mark_rule(color=GREY).encode(alt.Y("at:Q"))]
    if loss is not None:
        limit = alt.Chart(inline_data({"at": [-loss]})).mark_rule(color=INK, strokeDash=[5, 4])
        lines.append(limit.encode(alt.Y("at:Q")))
    names = base.mark_text(angle=270, align="left", baseline="middle", dx=GAP, fontSize=11)
    tooltip = tooltips(
        "name:N", *(["bytes:Q"] if has_bytes else []), "expected:Q", "difference:Q", "lower:Q", "upper:Q"
    )
    layers = [
        *lines,
        base.mark_rule(strokeWidth=3, opacity=0.55).encode(x, alt.Y("lower:Q"), alt.Y2("upper:Q"), color),
        base.mark_point(size=60, filled=True, opacity=1).encode(x, y, color, tooltip=tooltip),
        *([names.encode(x, alt.Y("upper:Q"), text="name:N")] if has_bytes else []),
    ]
    allowed = "" if loss is None else f" Dashed: the loss that is allowed, {loss:g}."
    return layer_chart(
        layers,
        title=title or _title(document, rows[0]),
        subtitle=f"Bars: 95% bounds on each side, for all rows at once.{allowed}",
        description="; ".join(f"{row['setup']} {PLAIN.signed(row['difference'])}" for row in rows) + f" {measure}.",
        height=HEIGHT,
        width=WIDTH,
    )


def _title(document: Mapping[str, Any], reference: Mapping[str, Any]) -> str:
    if not document.get("has_judgments", True):
        return f"Agreement with the {reference['setup']} ranking"
    return "What smaller vectors lose" if "bytes" in reference else "What the last step of a reranker loses"


def _kind(row: Mapping[str, Any]) -> str:
    """The verdict; without a largest loss there is none."""
    return row.get("verdict") or "unknown"


def _domain(rows: Sequence[Mapping[str, Any]], loss: float | None, *, has_names: bool) -> list[float]:
    """The ends of the axis of differences, with room for the names above the intervals."""
    ends = [end for row in rows for end in (row["lower"], row["upper"])] + ([] if loss is None else [-loss])
    padding = (max(ends) - min(ends)) / 20 or 0.005
    low, high = min(ends) - padding, max(ends) + padding
    for row in rows if has_names else ():
        share = (GAP + CHARACTER * len(row["setup"])) / HEIGHT
        high = max(high, (row["upper"] - share * low) / (1 - share))
    return [low, high]


def _place(rows: Sequence[Mapping[str, Any]]) -> tuple[list[float], dict[int, str]]:
    """Where rows stand on the axis, and the labels of some places."""
    if "bytes" not in rows[0]:
        return [float(place) for place in range(len(rows))], {place: row["setup"] for place, row in enumerate(rows)}
    order = sorted(range(len(rows)), key=lambda at: (rows[at]["bytes"], at))
    groups: list[list[int]] = []
    for at in order:
        if groups and rows[at]["bytes"] < SAME_SIZE * rows[groups[-1][0]]["bytes"]:
            groups[-1].append(at)
        else:
            groups.append([at])
    places, ticks = [0.0] * len(rows), {}
    for group in groups:
        center = round(rows[group[0]]["bytes"])
        for position, at in enumerate(group):
            places[at] = center * BESIDE ** (position - (len(group) - 1) / 2)
        ticks[center] = f"{center:,}"
    return places, ticks
