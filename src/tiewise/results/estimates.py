"""How every format shows an estimate: its value, ±95% over queries, and lowest to highest by tie order, each apart.

A statistic that comes from random orders has ~ before it, and a bound on the lowest or highest value ≥ or ≤
(`Method.mark`). ° marks an expected value that lists which may have been cut leave open.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from tiewise.results.model import CUT, MAX_ROWS, Bar, Cell, Column, Section, Table
from tiewise.results.view import View
from tiewise.results.wording import MISSING, PLAIN, NumberFormat, format_value, format_z

#: The columns of an estimate by name: what people read above each, and whether a table has it by default.
STATISTICS = {
    "expected": ("value", True),
    "ci": ("±95%", True),
    "ties": ("by tie order", True),
    "std": ("std", False),
    "range": ("range", False),
    "oblivious": ("obl", False),
    "bias": ("bias", False),
    "z": ("z", False),
    "residual": ("residual", False),
    "cut": ("if cut", False),
    "rerun": ("rerun ±", True),
}


def format_statistic(estimate: Any, name: str, write: Callable[[float], str] = PLAIN.number) -> str:
    """A statistic of an estimate after its mark.

    >>> from tiewise.metrics.estimate import Estimate, Method
    >>> sampled = Estimate(0.5, 0.25, 1.0, std=0.125, method=Method(extremes="bound", std="sampled"))
    >>> [format_statistic(sampled, name) for name in ("expected", "maximum", "std", "bias")]
    ['0.5000', '≤1.0000', '~0.1250', '–']
    """
    value = getattr(estimate, name)
    return MISSING if value is None else estimate.method.mark(name) + write(value)


def format_measured(value: float | None, numbers: NumberFormat, *, is_count: bool = False) -> str:
    """The value of a measure; counts that are added up have no digits after the point.

    >>> short = NumberFormat(3, leading_zero=False)
    >>> format_measured(100_000.0, short, is_count=True), format_measured(0.25, short)
    ('100,000', '.250')
    """
    return f"{int(value):,}" if is_count and value is not None and value == int(value) else numbers.number(value)


def shows_ties(estimate: Any, numbers: NumberFormat) -> bool:
    """Whether ties show in the digits that are printed: minimum and maximum look different."""
    return numbers.differ(estimate.minimum, estimate.maximum)


def format_ties(estimate: Any, numbers: NumberFormat = PLAIN, write: Callable[[float], str] | None = None) -> str:
    """Lowest and highest by tie order, or that all look the same. `write` formats them in another way.

    >>> from tiewise.metrics.estimate import Estimate, Method
    >>> short = NumberFormat(3, leading_zero=False)
    >>> format_ties(Estimate(0.446, 0.442, 0.45), short), format_ties(Estimate(0.4, 0.39996, 0.40003), short)
    ('.442 – .450', 'same')
    """
    if not shows_ties(estimate, numbers):
        return numbers.extremes(estimate.minimum, estimate.maximum)
    return " – ".join(format_statistic(estimate, name, write or numbers.number) for name in ("minimum", "maximum"))


def is_wide(cut: tuple[float, float] | None, digits: int = 3) -> bool:
    """Whether the bounds for lists that may have been cut leave a digit of an expected value open.

    >>> is_wide((0.302, 1.0)), is_wide((0.4916, 0.4919)), is_wide(None)
    (True, False, False)
    """
    return cut is not None and round(cut[0], digits) != round(cut[1], digits)


def describe_range(estimate: Any) -> str:
    """Minimum and maximum in words: ``between a and b``, ``at most between`` bounds, ``about between`` sampled ends.

    >>> from tiewise.metrics.estimate import Estimate, Method
    >>> describe_range(Estimate(0.5, 0.25, 1.0, method=Method(extremes="bound")))
    'at most between 0.2500 and 1.0000'
    """
    how = {"exact": "", "bound": "at most ", "sampled": "about "}[estimate.method["extremes"]]
    return f"{how}between {PLAIN.number(estimate.minimum)} and {PLAIN.number(estimate.maximum)}"


def statistic_columns(group: str = "", order: str = "") -> tuple[Column, ...]:
    """The columns of an estimate; `order` names the tool, or the order, of the oblivious value."""
    return tuple(
        Column(
            name,
            f"{heading} ({order})" if name == "oblivious" and order else heading,
            "left" if name in ("ties", "cut") else "right",
            group=group,
            shown="default" if is_default else "wide",
        )
        for name, (heading, is_default) in STATISTICS.items()
    )


def statistic_cells(estimate: Any, numbers: NumberFormat, *, is_count: bool = False) -> list[Cell]:
    """The cells of these columns; empty where there is no estimate."""
    if estimate is None:
        return [Cell(MISSING if name == "expected" else "") for name in STATISTICS]

    def measured(value: float) -> str:
        return format_measured(value, numbers, is_count=is_count)

    writers: dict[str, Callable[[float], str]] = {"z": format_z, "bias": numbers.signed}
    mark = CUT if is_wide(estimate.open_cut, numbers.digits) else ""
    cells = {
        name: Cell(format_statistic(estimate, name, writers.get(name, measured)))
        for name in ("std", "range", "oblivious", "bias", "z", "residual")
    }
    cells["expected"] = Cell(format_statistic(estimate, "expected", measured), mark=mark, value=estimate.expected)
    cells["ci"] = Cell(_format_ci(estimate, numbers))
    cells["ties"] = Cell(format_ties(estimate, numbers, measured))
    cells["cut"] = Cell("" if estimate.cut is None else " – ".join(map(numbers.number, estimate.cut)))
    band = estimate.rerun
    changes = band is not None and numbers.differ(band.low, band.high)
    cells["rerun"] = Cell(_format_half_width(band.half_width, numbers) if changes else "same" if band else "")
    return [cells[name] for name in STATISTICS]


def _format_ci(estimate: Any, numbers: NumberFormat) -> str:
    """Half the width of the interval over queries; a dash if it is wider than all that the measure can reach."""
    if estimate.half_width is None:
        return ""
    low, high = estimate.ci
    return MISSING if estimate.half_width > high - low else numbers.number(estimate.half_width)


def _format_half_width(width: float, numbers: NumberFormat) -> str:
    """Half the width of a rerun band, with as many digits as it takes to see it.

    >>> short = NumberFormat(3, leading_zero=False)
    >>> _format_half_width(0.0042, short), _format_half_width(0.00042, short)
    ('.004', '.0004')
    """
    digits = max(numbers.digits, min(-math.floor(math.log10(width)), 6))
    return numbers._replace(digits=digits).number(width)


def drop_empty(table: Table, view: View) -> Table:
    """The table without columns that say nothing, unless they were asked for by name."""
    kept = [
        place
        for place, column in enumerate(table.columns)
        if column.shown == "always"
        or column.name in view.columns
        or any(str(row[place]) not in ("", MISSING) for row in table.rows)
    ]
    return table.take_columns(kept)


def record_table(rows: Sequence[Mapping[str, Any]], columns: Mapping[Column, Sequence[str]], view: View) -> Table:
    """A table of records: a column shows one of their values, or the extremes of two. Empty columns are left out.

    Of several queries, the mean is set off, whose `query` is ``all``.

    >>> columns = {Column("run"): ["run"], Column("ties"): ["minimum", "maximum"], Column("cost"): ["cost"]}
    >>> record_table([{"run": "bm25", "minimum": 0.25, "maximum": 0.5, "cost": None}], columns, View()).rows
    [('bm25', '.250 – .500')]
    """

    def text(values: Sequence[Any]) -> str:
        if len(values) > 1:
            return view.numbers.extremes(*values)
        return view.numbers.number(values[0]) if isinstance(values[0], float) else format_value(values[0])

    cells = [tuple(text([row[name] for name in names]) for names in columns.values()) for row in rows]
    means = (place for place, row in enumerate(rows) if view.per_query and row["query"] == "all")
    table = drop_empty(Table(tuple(columns), cells, summary=frozenset(means)).choose(view), view)
    shown = zip(table.columns, zip(*table.rows, strict=True), strict=True)
    ranges = {one.title: None for one, texts in shown if any(" – " in text for text in texts)}
    return table._replace(notes=(f"{', '.join(ranges)}: lowest – highest",)) if ranges else table


def estimate_section(
    heading: str,
    named: Iterable[tuple[object, Any]],
    view: View,
    *,
    title: str = "",
    notes: Sequence[str] = (),
    total: int | None = None,
) -> Section:
    """What a result shows that consists of one table of estimates, the first ones of many; `total` counts all."""
    shown = list(islice(named, MAX_ROWS))
    columns = (Column(heading, shown="always"), *statistic_columns(), Column(""))
    rows = [(str(name), *statistic_cells(one, view.numbers), draw(one)) for name, one in shown]
    return Section([drop_empty(Table(columns, rows, total=total).choose(view), view)], title, list(notes))


def draw(estimate: Any) -> Bar | str:
    """The range as a bar with the expected value and the oblivious one, where ties move anything."""
    if not (estimate.tied or estimate.bias):
        return ""
    return Bar(estimate.minimum, estimate.expected, estimate.maximum, estimate.oblivious)
