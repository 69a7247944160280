"""`differences`: two systems query by query, with the range over the tie orders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tiewise.analysis.significance import ATOL
from tiewise.errors import InputError
from tiewise.figures.theme import GREY, INK, PALETTE, inline_data, layer_chart, load_altair
from tiewise.metrics.estimate import Estimate
from tiewise.results.wording import count_noun, list_examples

if TYPE_CHECKING:
    import altair as alt

HALF_BAR = 0.42  # of the distance of two bars


def differences(
    a: Mapping[str, Estimate | float],
    b: Mapping[str, Estimate | float],
    *,
    names: tuple[str, str] = ("A", "B"),
    title: str = "",
) -> alt.LayerChart:
    """Two systems query by query, from `Report.per_query` or plain numbers: expected differences, sorted.

    A line shows the range that the tie orders of both systems allow. The bar is pale if this range includes 0. Queries
    without a difference, and queries that only one system has, are left out.
    """
    common = [query for query in a if query in b]
    if not common:
        raise InputError(f"The two have no query in common: {list_examples(list(a))}; {list_examples(list(b))}.")
    rows = sorted((_difference(query, a[query], b[query]) for query in common), key=lambda row: -row["difference"])
    drawn = [row for row in rows if row["low"] or row["high"]]
    alt, n = load_altair(), max(len(drawn), 1)
    bounds = [{"left": i - HALF_BAR, "place": i, "right": i + HALF_BAR, **row} for i, row in enumerate(drawn, 1)]
    base = alt.Chart(alt.InlineData(values=bounds))
    scale = alt.Scale(domain=[0.4, n + 0.6], nice=False)
    no_axis = alt.Axis(labels=False, ticks=False, grid=False, domain=False)
    x_title = f"{count_noun(len(drawn), 'query', 'queries')}, sorted"
    tooltip = ["query:N", *(f"{key}:Q" for key in ("difference", "low", "high"))]
    bars = base.mark_rect(aria=False).encode(
        alt.X("left:Q", title=x_title, scale=scale, axis=no_axis),
        alt.X2("right:Q"),
        alt.Y("difference:Q", title=f"{names[0]} − {names[1]}"),
        alt.Y2Datum(0),
        color=alt.condition("datum.difference > 0", alt.value(PALETTE[0]), alt.value(PALETTE[1])),
        opacity=alt.condition("datum.sure", alt.value(0.95), alt.value(0.35)),
        tooltip=tooltip,
    )
    ranges = (
        base.transform_filter("datum.high > datum.low")
        .mark_rule(color=INK, strokeWidth=max(0.6, min(1.5, 200 / n)), aria=False)
        .encode(alt.X("place:Q", scale=scale, axis=no_axis), alt.Y("low:Q"), alt.Y2("high:Q"), tooltip=tooltip)
    )
    zero = alt.Chart(inline_data({"zero": [0]})).mark_rule(color=GREY).encode(alt.Y("zero:Q"))
    measure = getattr(a, "measure", None) or ""
    return layer_chart(
        [bars, zero, ranges],
        title=title or f"{measure}{': ' if measure else ''}{names[0]} against {names[1]}, query by query",
        subtitle=_summary(rows, drawn, len(set(a) ^ set(b)), names),
        description=f"{names[0]} less {names[1]} for each of {len(common):,} queries, sorted.",
        height=300,
    )


def _difference(query: str, a: Estimate | float, b: Estimate | float) -> dict[str, Any]:
    """The expected difference and its extremes; the ties of the two systems are independent."""
    (mean_a, low_a, high_a), (mean_b, low_b, high_b) = _statistics(query, a), _statistics(query, b)
    gaps = (mean_a - mean_b, low_a - high_b, high_a - low_b)
    mean, low, high = (0.0 if abs(gap) <= ATOL else gap for gap in gaps)  # smaller gaps are rounding
    return {"query": query, "difference": mean, "low": low, "high": high, "sure": low > 0 or high < 0}


def _statistics(query: str, value: Estimate | float) -> tuple[float, float, float]:
    """Expectation, minimum and maximum."""
    if not isinstance(value, Estimate):
        return float(value), float(value), float(value)
    if value.expected is None:
        raise InputError(f"Query {query!r} has no expected value to compare. Leave it out.")
    low = value.expected if value.minimum is None else value.minimum
    return value.expected, low, value.expected if value.maximum is None else value.maximum


def _summary(
    rows: Sequence[dict[str, Any]], drawn: Sequence[dict[str, Any]], unpaired: int, names: Sequence[str]
) -> str:
    """The subtitle: who is better for how many queries, and what was left out."""
    first, second = (sum(sign * row["difference"] > 0 for row in rows) for sign in (1, -1))
    parts = [f"{names[0]} is better for {count_noun(first, 'query', 'queries')}, {names[1]} for {second:,}."]
    if any(row["high"] > row["low"] for row in drawn):
        undecided = sum(not row["sure"] for row in drawn)
        parts.append(f"Lines: over the orders of ties; pale where these could undo it ({undecided:,}).")
    same = len(rows) - len(drawn)
    if same:
        parts.append(f"{same:,} {'does' if same == 1 else 'do'} not differ.")
    if unpaired:
        parts.append(f"{unpaired:,} that only one of the two has are left out.")
    return " ".join(parts)
