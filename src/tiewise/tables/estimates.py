"""How every format shows an estimate over the orders of ties, and tables of estimates.

A statistic that comes from random orders has ~ before it, and a bound on the lowest or highest value ≥ or ≤
(`Method.mark`). All tables, for people, write estimates with `format_statistic`, `format_range`, `estimate_cell` and
`difference_cell`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import islice
from typing import Any

from tiewise.tables.model import CUT, MAX_ROWS, Bar, Cell, Section, Table
from tiewise.tables.wording import MISSING, PLAIN, NumberFormat

__all__ = [
    "describe_range",
    "difference_cell",
    "estimate_cell",
    "estimate_section",
    "estimate_table",
    "explain_cut_marks",
    "format_range",
    "format_statistic",
    "is_wide",
]

CUT_LEGEND = f"{CUT} may be another value{{}}, because lists may have been cut inside a tie group{{}}."


def format_statistic(estimate: Any, name: str, write: Callable[[float], str] = PLAIN.number) -> str:
    """A statistic of an estimate after its mark.

    >>> from tiewise.metrics.estimate import Estimate, Method
    >>> sampled = Estimate(0.5, 0.25, 1.0, std=0.125, method=Method(extremes="bound", std="sampled"))
    >>> [format_statistic(sampled, name) for name in ("expected", "maximum", "std", "bias")]
    ['0.5000', '≤1.0000', '~0.1250', '–']
    """
    value = getattr(estimate, name)
    return MISSING if value is None else estimate.method.mark(name) + write(value)


def format_range(estimate: Any, numbers: NumberFormat = PLAIN, write: Callable[[float], str] | None = None) -> str:
    """Minimum and maximum in brackets; empty if they look the same. `write` formats them in another way."""
    ends, write = (estimate.minimum, estimate.maximum), write or numbers.number
    if None in ends or len(set(map(numbers.number, ends))) == 1:
        return ""
    low, high = (format_statistic(estimate, name, write) for name in ("minimum", "maximum"))
    step = numbers.number(10**-numbers.digits)
    low, high = low.replace("≥<0", f"≥−{step}"), high.replace("≤>0", f"≤{step}")  # a bound may not be reached
    return re.sub(r"[~≥≤](?=[<>])", "", f"[{low}, {high}]")  # on one side of zero, whatever the mark


def is_wide(cut: tuple[float, float] | None, digits: int = 3) -> bool:
    """Whether the bounds for lists that may have been cut leave a digit of an expected value open.

    >>> is_wide((0.302, 1.0)), is_wide((0.4916, 0.4919)), is_wide(None)
    (True, False, False)
    """
    return cut is not None and round(cut[0], digits) != round(cut[1], digits)


def explain_cut_marks(table: Table) -> Table:
    """The table with a sentence on the marks of values that lists which may have been cut leave open, if it has any."""
    marked = [cell for row in table.rows for cell in row if isinstance(cell, Cell) and CUT in cell.mark]
    if not marked:
        return table
    has_ranges = any(cell.detail for cell in marked)
    ranges = (", even outside its brackets", ": brackets are of the documents listed") if has_ranges else ("", "")
    return replace(table, notes=(*table.notes, CUT_LEGEND.format(*ranges)))


def describe_range(estimate: Any, numbers: NumberFormat = PLAIN) -> str:
    """Minimum and maximum in words: ``between a and b``, ``at most between`` bounds, ``about between`` sampled ends.

    >>> from tiewise.metrics.estimate import Estimate, Method
    >>> describe_range(Estimate(0.5, 0.25, 1.0, method=Method(extremes="bound")))
    'at most between 0.2500 and 1.0000'
    """
    how = {"exact": "", "bound": "at most ", "sampled": "about "}[estimate.method["extremes"]]
    return f"{how}between {numbers.number(estimate.minimum)} and {numbers.number(estimate.maximum)}"


def difference_cell(difference: Any, numbers: NumberFormat = PLAIN) -> Cell:
    """The expected difference with its sign, and the range; ends that round to zero show their sign too.

    >>> from tiewise.metrics.estimate import Estimate, Method
    >>> str(difference_cell(Estimate(0.00594, -0.00004, 0.0127), NumberFormat(3, leading_zero=False)))
    '+.006 [<0, .013]'
    >>> bound = Estimate(0.00594, -0.00004, 0.0127, method=Method(extremes="bound"))
    >>> str(difference_cell(bound, NumberFormat(3, leading_zero=False)))
    '+.006 [≥−.001, ≤.013]'
    """
    text = format_statistic(difference, "expected", numbers.signed)
    return Cell(text, format_range(difference, numbers, numbers.end), value=difference.expected)


def estimate_cell(
    estimate: Any, numbers: NumberFormat = PLAIN, write: Callable[[float], str] | None = None, mark: str = ""
) -> Cell:
    """The expected value, and the range if ties show in the digits; `write` formats the value in another way.

    >>> from tiewise.metrics.estimate import Estimate
    >>> str(estimate_cell(Estimate(0.5, 0.25, 1.0)))
    '0.5000 [0.2500, 1.0000]'
    """
    text = format_statistic(estimate, "expected", write or numbers.number)
    mark += CUT if is_wide(estimate.open_cut, numbers.digits) else ""
    return Cell(text, format_range(estimate, numbers), mark, value=estimate.expected)


def estimate_table(heading: str, named: Iterable[tuple[object, Any]], total: int | None = None) -> Table:
    """The first estimates by name; a column that applies to none of them is left out.

    Where the order of ties changes nothing, an estimate is a plain number. `total` counts all estimates.
    """
    shown = list(islice(named, MAX_ROWS))
    each = [estimate for _, estimate in shown]
    columns: dict[str, list[Any]] = {heading: [str(name) for name, _ in shown]}
    columns["expected"] = [_marked(e, "expected") for e in each]
    if any(e.tied or e.bias for e in each):
        columns["over ties"] = [format_range(e) if e.tied else "" for e in each]
        columns[""] = [Bar(e.minimum, e.expected, e.maximum, e.oblivious) if e.tied or e.bias else "" for e in each]
        columns |= {name: [_marked(e, name) for e in each] for name in ("std", "oblivious", "bias")}
    columns["residual"] = [e.residual for e in each]
    columns["if lists were cut"] = [PLAIN.interval(*e.cut) if is_wide(e.open_cut, PLAIN.digits) else None for e in each]
    known = {name: values for name, values in columns.items() if any(value is not None for value in values)}
    return Table.of_columns(known, {"bias": PLAIN.signed}, total=total)


def _marked(estimate: Any, name: str) -> float | Cell | None:
    """A statistic as a plain number, or as a cell if it has a mark."""
    value: float | None = getattr(estimate, name)
    if value is None or not estimate.method.mark(name):
        return value
    write = PLAIN.signed if name == "bias" else PLAIN.number
    return Cell(format_statistic(estimate, name, write), value=value)


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
    table = replace(estimate_table(heading, named, total), bar_legend=legend or "")
    return Section([table], title, list(notes))
