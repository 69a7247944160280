"""Sections as small HTML blocks for notebooks, with a bar for each range.

The HTML has no script and takes its colours from the notebook, so it can be read on a light and on a dark background.
Everything that came from a file is escaped. Where a viewer leaves pictures out, the numbers beside them say the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import Any

from tiewise.results.model import MAX_ROWS, Bar, Code, Column, Paragraph, Part, Section, Table, cell_of
from tiewise.results.wording import PLAIN

MAX_CHARACTERS = 100  # the most characters that are shown of a cell

# Both stand out from white and from black, and all readers can tell them apart.
BLUE, ORANGE = "#2f86c6", "#d9691e"
WIDTH, HEIGHT = 120, 14  # of the picture of a bar, in pixels
MIN_BAR = 5  # the least width of a bar, which is seen on both sides of the line at its middle

# Classes that keep a notebook from typesetting a price or an id between dollar signs as a formula.
_OPENING = '<div class="tiewise tex2jax_ignore mathjax_ignore" style="margin:.4em 0">'
_TABLE = '<table style="border-collapse:collapse;font-variant-numeric:tabular-nums">'
_CELL = "padding:.1em .6em;"


def render_html(section: Section) -> str:
    """A section as one block of HTML."""
    inside = [f"<div><strong>{escape(section.title)}</strong></div>"] if section.title else []
    inside += [line for part in section.parts for line in _part(part)]
    inside += [f'<div style="max-width:60em;opacity:.8">{escape(note)}</div>' for note in section.notes]
    return _OPENING + "\n".join(inside) + "</div>"


def _part(part: Part) -> Iterator[str]:
    if isinstance(part, Table):
        yield from [f"<div>{escape(part.title)}</div>"] if part.title else []
        yield render_table(part)
        yield from (f"<div>{escape(note)}</div>" for note in (*part.notes, part.bar_legend) if note)
    elif isinstance(part, Code):
        lines = (f"for {use}:\n  {line}\n" for use, line in part.lines.items())
        yield f"<pre>{escape(''.join(lines))}</pre>"
    elif text := part.text if isinstance(part, Paragraph) else part:
        yield f"<div>{escape(text)}</div>"


def render_table(table: Table) -> str:
    """The first rows of a table, and below how many more there are.

    >>> print(render_table(Table.of_columns({"id": ["<a>"], "score": [0.5]}, total=2)))
    <table ...><thead><tr><th ...left">id</th><th ...right">score</th></tr></thead>
    <tbody><tr><td ...left">&lt;a&gt;</td><td ...right">0.5000</td></tr></tbody></table>
    <div>… and 1 more</div>
    """
    table = table.take_columns(range(MAX_ROWS + 1)) if len(table.columns) > MAX_ROWS else table
    rows = table.rows[:MAX_ROWS]
    titles = [_short(column.title) for column in table.columns]
    head = _line("th", titles, table.columns) if any(titles) else ""
    if table.groups:
        spans = (
            f'<th colspan="{many}" style="{_CELL}text-align:left">{_short(name)}</th>' for name, many in table.groups
        )
        head = f"<tr>{''.join(spans)}</tr>{head}"
    body = "".join(_line("td", map(_cell, row), table.columns) for row in rows)
    more = (len(table.rows) if table.total is None else table.total) - len(rows)
    rest = f"\n<div>… and {more:,} more</div>" if more > 0 else ""
    return f"{_TABLE}<thead>{head}</thead>\n<tbody>{body}</tbody></table>{rest}"


def _line(tag: str, cells: Iterable[str], columns: Sequence[Column]) -> str:
    pairs = zip(cells, columns, strict=True)
    made = (f'<{tag} style="{_CELL}text-align:{column.align}">{cell}</{tag}>' for cell, column in pairs)
    return f"<tr>{''.join(made)}</tr>"


def _cell(value: Any) -> str:
    if isinstance(value, Bar):
        return draw_bar(value)
    cell = cell_of(value)
    text = _short(str(cell))
    if cell.shade is None:
        return text
    strength = 0.5 * min(max(cell.shade, 0.0), 1.0)
    return f'<span style="background:rgba(47,134,198,{strength:.2f});padding:.1em .4em">{text}</span>'


def _short(text: str) -> str:
    return escape(text if len(text) <= MAX_CHARACTERS else f"{text[: MAX_CHARACTERS - 1]}…")


def draw_bar(bar: Bar) -> str:
    """A range between two ends as a picture: a line at its middle, a cross at its mark, a faint line at 0.

    Nothing is drawn where a value is missing or not finite.
    """
    known = [value for value in (bar.low, bar.middle, bar.high, bar.mark) if value is not None]
    if bar.low is None or bar.middle is None or bar.high is None or not all(map(math.isfinite, known)):
        return ""
    start, end = min(0.0, *known), max(1.0, *known)  # the axis is longer where a value lies beyond its ends
    scale = (WIDTH - 6) / (end - start)
    low, middle, high, zero = (3 + (value - start) * scale for value in (bar.low, bar.middle, bar.high, 0.0))
    words = "{} between {} and {}".format(*map(PLAIN.number, (bar.middle, bar.low, bar.high)))
    base, half = HEIGHT - 2, max(high - low, MIN_BAR) / 2
    left, right = (low + high) / 2 - half, (low + high) / 2 + half
    parts = [
        f'<line x1="3" x2="{WIDTH - 3}" y1="{base}" y2="{base}" stroke="currentColor" stroke-opacity=".35"/>',
        f'<rect x="{left:.1f}" y="3" width="{right - left:.1f}" height="{HEIGHT - 6}" rx="1" fill="{BLUE}" '
        'fill-opacity=".8"/>',
        f'<line x1="{middle:.1f}" x2="{middle:.1f}" y1="1" y2="{HEIGHT - 1}" stroke="currentColor" stroke-width="2"/>',
    ]
    if start < 0 < end:
        parts.append(f'<path d="M{zero:.1f} 0v{HEIGHT}" stroke="currentColor" stroke-opacity=".35"/>')
    if bar.mark is not None:
        words += f"; {PLAIN.number(bar.mark)} marked"
        at = 3 + (bar.mark - start) * scale - 3
        cross = f"M{at:.1f} {HEIGHT / 2 - 3}l6 6m0-6l-6 6"
        parts.append(f'<path d="{cross}" stroke="{ORANGE}" stroke-width="1.6" fill="none"/>')
    return (
        f'<svg width="{WIDTH}" height="{HEIGHT}" role="img" aria-label="{words}" '
        f'style="display:inline-block;vertical-align:middle"><title>{words}</title>{"".join(parts)}</svg>'
    )
