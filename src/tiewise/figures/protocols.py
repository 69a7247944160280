"""The figures of `Protocol`: measures against their cutoff, and what each row loses."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tiewise.analysis.protocol_result import Protocol
from tiewise.errors import InputError
from tiewise.figures.curves import curve
from tiewise.figures.theme import GREY, INK, PALETTE, WIDTH, inline_data, layer_chart, load_altair, tooltips
from tiewise.results.wording import PLAIN

if TYPE_CHECKING:
    import altair as alt

#: Vectors whose bytes differ by less than this factor stand side by side, this factor apart on the logarithmic axis.
SAME_SIZE, BESIDE = 1.15, 1.12

#: The height of the frame, of the gap between an interval and the name above it, and of a character, in pixels.
HEIGHT, GAP, CHARACTER = 380, 8, 5.8


class ProtocolPlots:
    """The figures of one protocol, ordinary altair charts."""

    def __init__(self, protocol: Protocol):
        self._protocol = protocol

    def cutoffs(self, cutoffs: Iterable[int] = range(1, 51), *, title: str = "") -> alt.LayerChart | alt.ConcatChart:
        """The measures of each row against their cutoff, with ranges and the oblivious order: see `figures.curve`."""
        found = self._protocol
        reports = {name: report for name in found.rows if (report := found.row(name).report) is not None}
        if not reports:
            raise InputError("Without judgments no measure has a value: give qrels.")
        return curve(reports, found.measures, cutoffs, title=title)

    def loss(self, *, title: str = "") -> alt.LayerChart:
        """What each row loses: see `tiewise.figures.losses`."""
        return losses(self._protocol, title=title)


def losses(found: Protocol | Mapping[str, Any], *, title: str = "") -> alt.LayerChart:
    """What each row of a protocol loses, against the bytes of a vector.

    A point is the difference to the reference in the first measure; its bar ends at the bounds that hold for all rows
    at once. The dashed line is the largest loss that is allowed. Vectors of nearly the same size stand side by side.
    Rows without bytes stand in their order. `found` may also be what `Protocol.to_dict` gave.
    """
    document = found.to_dict() if isinstance(found, Protocol) else found
    if "measure" not in document["rows"][0]:
        raise InputError("Without judgments no row has a loss to draw: give qrels.")
    rows = first_rows(document)
    if len(rows) < 2:
        raise InputError("There is only the reference: no other row has a loss to draw.")
    loss, has_bytes = document["max_loss"], all(row["bytes"] for row in rows)
    places, ticks = _place(rows, by_bytes=has_bytes)
    keys = ("bytes", "difference", "lower", "upper", "expected")
    points = [
        {"name": row["row"], "place": place, **{key: row[key] for key in keys}, "kind": row.get("verdict") or "unknown"}
        for row, place in zip(rows, places, strict=True)
    ]
    points[0]["kind"] = "reference"
    alt, measure = load_altair(), rows[0]["measure"]
    labels = ", ".join(f"'{place}': {json.dumps(text)}" for place, text in ticks.items())
    scale = alt.Scale(domain=_domain(rows, loss, has_names=has_bytes), nice=False)
    x = alt.X(
        "place:Q",
        title="bytes of a document vector (logarithmic)" if has_bytes else None,
        scale=alt.Scale(type="log" if has_bytes else "linear", nice=False, zero=False, padding=24),
        axis=alt.Axis(values=list(ticks), labelExpr=f"{{{labels}}}[datum.value]", grid=False),
    )
    y = alt.Y("difference:Q", title=f"{measure}, difference to {rows[0]['row']}", scale=scale)
    kinds = {"reference": GREY, "keeps": PALETTE[2], "loses": PALETTE[1], "unknown": PALETTE[0]}
    shown = [kind for kind in kinds if kind in {point["kind"] for point in points}]
    color = alt.Color(
        "kind:N",
        title=None,
        scale=alt.Scale(domain=shown, range=[kinds[kind] for kind in shown]),
        legend=None if loss is None else alt.Legend(orient="top", symbolType="circle"),
    )
    base = alt.Chart(alt.InlineData(values=points))
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
        title=title or f"What each row loses against {rows[0]['row']}",
        subtitle=f"Bars: 95% bounds on each side, for all rows at once.{allowed}",
        description="; ".join(f"{row['row']} {PLAIN.signed(row['difference'])}" for row in rows) + f" {measure}.",
        height=HEIGHT,
        width=WIDTH,
    )


def first_rows(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The rows of the first measure, the reference first."""
    rows = [row for row in document["rows"] if row["measure"] == document["rows"][0]["measure"]]
    return sorted(rows, key=lambda row: row["row"] != document["reference"])


def _domain(rows: Sequence[Mapping[str, Any]], loss: float | None, *, has_names: bool) -> list[float]:
    """The ends of the axis of differences, with room for the names above the intervals."""
    ends = [end for row in rows for end in (row["lower"], row["upper"])] + ([] if loss is None else [-loss])
    padding = (max(ends) - min(ends)) / 20 or 0.005
    low, high = min(ends) - padding, max(ends) + padding
    for row in rows if has_names else ():
        share = (GAP + CHARACTER * len(row["row"])) / HEIGHT
        high = max(high, (row["upper"] - share * low) / (1 - share))
    return [low, high]


def _place(rows: Sequence[Mapping[str, Any]], *, by_bytes: bool) -> tuple[list[float], dict[int, str]]:
    """Where rows stand on the axis, and the labels of some places."""
    if not by_bytes:
        return [float(place) for place in range(len(rows))], {place: row["row"] for place, row in enumerate(rows)}
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
