"""A table of estimates over the orders of ties: what notebooks, Markdown and LaTeX show of a report or of bounds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import islice
from typing import Any

from tiewise.tables.model import MAX_ROWS, Bar, Section, Table
from tiewise.tables.wording import PLAIN

__all__ = ["estimate_section", "estimate_table"]


def estimate_table(heading: str, named: Iterable[tuple[object, Any]], total: int | None = None) -> Table:
    """The first estimates by name; a column that applies to none of them is left out.

    Where the order of ties changes nothing, an estimate is a plain number. `total` counts all estimates.
    """
    shown = list(islice(named, MAX_ROWS))
    each = [estimate for _, estimate in shown]
    columns: dict[str, list[Any]] = {heading: [str(name) for name, _ in shown], "expected": [e.expected for e in each]}
    if any(e.tied or e.bias for e in each):
        columns["over ties"] = [
            PLAIN.interval(e.minimum, e.maximum, e.method.range_marks) if e.tied else "" for e in each
        ]
        columns[""] = [Bar(e.minimum, e.expected, e.maximum, e.oblivious) if e.tied or e.bias else "" for e in each]
        columns |= {name: [getattr(e, name) for e in each] for name in ("std", "oblivious", "bias")}
    columns["residual"] = [e.residual for e in each]
    columns["if lists were cut"] = [None if e.cut is None else PLAIN.interval(*e.cut) for e in each]
    known = {name: values for name, values in columns.items() if any(value is not None for value in values)}
    return Table.of_columns(known, {"bias": PLAIN.signed}, total=total)


def estimate_section(
    heading: str,
    named: Iterable[tuple[object, Any]],
    *,
    title: str = "",
    legend: str | None = None,
    notes: Iterable[str] = (),
    total: int | None = None,
) -> Section:
    """What a result shows that consists of one table of estimates; `legend` explains its bars."""
    table = replace(estimate_table(heading, named, total), notes=() if legend is None else (legend,))
    return Section([table], title, list(notes))
