"""What a notebook shows of a result: a small table in HTML, with a bar for each range.

It is plain HTML without a script, and takes its colours from the page, so that it can be read in a light notebook and
in a dark one. Whatever came from a file is text and stays text. Where a viewer leaves pictures out, the numbers beside
them say the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from itertools import islice
from numbers import Integral, Real
from typing import Any

__all__ = [
    "FEW",
    "MOST",
    "NONE",
    "Markup",
    "bar",
    "block",
    "estimates",
    "facts",
    "shaded",
    "share",
    "signed",
    "table",
    "text",
]

MOST, FEW = 30, 10  #: rows that are shown of a result, and of data
LONGEST = 100  # characters of a cell that are shown
NONE = "–"  # what stands for a value that does not apply

# Both stand out from white and from black, and can be told apart by all readers.
BLUE, ORANGE = "#2f86c6", "#d9691e"
WIDE, TALL = 120, 14  # of a bar, in pixels

# Classes that keep a notebook from typesetting a price or an id between dollar signs as a formula.
_OPENING = '<div class="tiewise tex2jax_ignore mathjax_ignore" style="margin:.4em 0">'
_TABLE = '<table style="border-collapse:collapse;font-variant-numeric:tabular-nums">'
_CELL = "padding:.1em .6em;"


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


class Signed(float):
    """A difference, which is shown with its sign."""

    __slots__ = ()


def text(value: object) -> Markup:
    """A value as HTML: numbers as they are read, everything else escaped.

    >>> print(*map(text, (0.25, 1200, True, None, "<b>", Markup("<b>"))))
    0.2500 1,200 yes – &lt;b&gt; <b>
    """
    if isinstance(value, Markup):
        return value
    if value is None:
        return Markup(NONE)
    if isinstance(value, bool):
        return Markup("yes" if value else "no")
    if isinstance(value, Signed):
        return Markup(f"{value:+.4f}" if value else "0")
    if isinstance(value, Integral):
        return Markup(f"{int(value):,}")
    if isinstance(value, Real):
        number = float(value)
        counted = abs(number) >= 1000 and number.is_integer()  # a count that was added up
        return Markup(f"{number:,.0f}" if counted else f"{number:.4f}")
    return Markup(escape(str(value)))


def signed(value: float | None) -> Signed | None:
    """A difference that is shown with its sign; None stays None."""
    return None if value is None else Signed(value)


def share(part: float) -> str:
    """A share in percent that is 0 or 100 only if it is exactly that.

    >>> share(0.4936), share(0.0), share(0.0001), share(0.9999)
    ('49.4%', '0%', '<0.1%', '>99.9%')
    """
    if part in (0, 1):
        return f"{part:.0%}"
    return "<0.1%" if part < 0.0005 else ">99.9%" if part > 0.9995 else f"{part:.1%}"


def table(heads: Sequence[str], rows: Iterable[Sequence[Any]], *, total: int | None = None, most: int = MOST) -> Markup:
    """A table of the first rows, and beneath it how many more there are; `total` is the number of all.

    A column is set to the right if its first value is a number, and to the left otherwise.

    >>> print(table(["id", "score"], [["<a>", 0.5], ["b", 1.0]], most=1))
    <table ...><thead><tr><th ...left">id</th><th ...right">score</th></tr></thead>
    <tbody><tr><td ...left">&lt;a&gt;</td><td ...right">0.5000</td></tr></tbody></table>
    <div>… and 1 more</div>
    """
    given = iter(rows)
    shown = [list(row) for row in islice(given, most)]
    total = len(shown) + sum(1 for _ in given) if total is None else total
    sides = [_side(column) for column in zip(*shown, strict=True)] if shown else ["left"] * len(heads)
    head = _line("th", heads, sides)
    body = "".join(_line("td", row, sides) for row in shown)
    rest = f"\n<div>… and {total - len(shown):,} more</div>" if total > len(shown) else ""
    return Markup(f"{_TABLE}<thead>{head}</thead>\n<tbody>{body}</tbody></table>{rest}")


def facts(named: Mapping[str, object]) -> Markup:
    """Values by their names, a line for each; those of a mapping stand behind its name.

    >>> "gap: RR" in facts({"queries": 3, "gap": {"RR": 0.5}})
    True
    """
    lines = []
    for name, value in named.items():
        parts = value.items() if isinstance(value, Mapping) else [("", value)]
        lines += [(f"{name}: {part}" if part else name, text(one)) for part, one in parts]
    return table(("", ""), lines, most=len(lines))


def _side(column: Sequence[Any]) -> str:
    first = next((value for value in column if value is not None), "")
    return "right" if isinstance(first, Real) and not isinstance(first, bool) else "left"


def _line(tag: str, cells: Iterable[Any], sides: Sequence[str]) -> str:
    pairs = zip(cells, sides, strict=True)
    made = (f'<{tag} style="{_CELL}text-align:{side}">{text(_short(cell))}</{tag}>' for cell, side in pairs)
    return f"<tr>{''.join(made)}</tr>"


def _short(cell: Any) -> Any:
    plain = isinstance(cell, str) and not isinstance(cell, Markup)
    return cell[: LONGEST - 1] + "…" if plain and len(cell) > LONGEST else cell


def block(title: str, *parts: str | None, notes: Iterable[str] = ()) -> str:
    """A whole result: its title, its parts, and notes beneath. Parts are `Markup`, or lines of text to escape."""
    inside = [f"<div><strong>{escape(title)}</strong></div>"] if title else []
    inside += [part if isinstance(part, Markup) else f"<div>{escape(part)}</div>" for part in parts if part]
    inside += [f'<div style="max-width:60em;opacity:.8">{escape(note)}</div>' for note in notes]
    return _OPENING + "\n".join(inside) + "</div>"


def estimates(head: str, named: Iterable[tuple[object, Any]], total: int | None = None) -> Markup:
    """A table of estimates, each by its name; what applies to none of those shown is left out.

    Where the order of ties moves nothing, an estimate is a plain number.
    """
    shown = list(islice(named, MOST))
    tied = any(one.tied or one.bias for _, one in shown)
    columns: dict[str, list[Any]] = {head: [name for name, _ in shown], "expected": [one.expected for _, one in shown]}
    if tied:
        columns["over ties"] = [_interval(one.minimum, one.maximum) if one.tied else "" for _, one in shown]
        columns[""] = [_range(one) for _, one in shown]
        columns |= {name: [getattr(one, name) for _, one in shown] for name in ("std", "oblivious")}
        columns["bias"] = [signed(one.bias) for _, one in shown]
    columns["residual"] = [one.residual for _, one in shown]
    columns["if lists were cut"] = [one.cut and _interval(*one.cut) for _, one in shown]
    kept = {name: column for name, column in columns.items() if any(value is not None for value in column)}
    return table(list(kept), zip(*kept.values(), strict=True), total=len(shown) if total is None else total)


def _range(estimate: Any) -> Markup:
    moved = estimate.tied or estimate.bias
    return bar(estimate.minimum, estimate.expected, estimate.maximum, estimate.oblivious) if moved else Markup("")


def _interval(low: float, high: float) -> str:
    return f"[{low:.4f}, {high:.4f}]"


def bar(
    low: float | None,
    middle: float | None,
    high: float | None,
    mark: float | None = None,
    *,
    ends: tuple[float, float] = (0.0, 1.0),
) -> Markup:
    """A range as a bar between two ends, with a line at its middle value and a cross at another; nothing without one.

    The ends move outwards where a value lies beyond them. Between them, a faint line stands at 0.
    """
    if low is None or middle is None or high is None:
        return Markup("")
    known = [value for value in (low, middle, high, mark) if value is not None]
    if not all(map(math.isfinite, known)):
        return Markup("")
    start, end = min(ends[0], *known), max(ends[1], *known)

    def x(value: float) -> float:
        return 3 + (WIDE - 6) * (value - start) / (end - start)

    left, width = x(low), max(x(high) - x(low), 1.5)
    parts = [
        f'<line x1="3" x2="{WIDE - 3}" y1="{TALL - 2}" y2="{TALL - 2}" stroke="currentColor" stroke-opacity=".35"/>',
        f'<rect x="{left:.1f}" y="3" width="{width:.1f}" height="{TALL - 6}" rx="1" fill="{BLUE}" fill-opacity=".8"/>',
        f'<line x1="{x(middle):.1f}" x2="{x(middle):.1f}" y1="1" y2="{TALL - 1}" stroke="currentColor" '
        'stroke-width="2"/>',
    ]
    if start < 0 < end:
        zero = x(0.0)
        parts.append(f'<path d="M{zero:.1f} 0v{TALL}" stroke="currentColor" stroke-opacity=".35"/>')
    if mark is not None:
        at, centre = x(mark), TALL / 2
        parts.append(
            f'<path d="M{at - 3:.1f} {centre - 3}l6 6m0-6l-6 6" stroke="{ORANGE}" stroke-width="1.6" fill="none"/>'
        )
    says = f"{middle:.4f} between {low:.4f} and {high:.4f}" + ("" if mark is None else f"; {mark:.4f} marked")
    return Markup(
        f'<svg width="{WIDE}" height="{TALL}" role="img" aria-label="{says}" '
        f'style="display:inline-block;vertical-align:middle"><title>{says}</title>{"".join(parts)}</svg>'
    )


def shaded(value: float | None, share: float) -> Markup:
    """A number on a ground that is the stronger the larger its share of the whole, 0 to 1, for a cell of a matrix."""
    strength = 0.5 * min(max(share, 0.0), 1.0)
    ground = f"background:rgba(47,134,198,{strength:.2f});padding:.1em .4em"
    return Markup(f'<span style="{ground}">{text(value)}</span>')
