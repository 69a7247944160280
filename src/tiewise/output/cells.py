"""Cells that several results show: the value of a measure, and an estimate with its range."""

from __future__ import annotations

from tiewise.metrics.definition import Measure
from tiewise.metrics.estimate import Estimate
from tiewise.output.options import OutputOptions
from tiewise.tables.estimates import format_range, format_statistic, is_wide
from tiewise.tables.model import CUT, Cell
from tiewise.tables.wording import MISSING, NumberFormat

__all__ = ["estimate_cell", "format_measured", "shows_ties"]


def format_measured(value: float | None, measure: Measure, numbers: NumberFormat) -> str:
    """The value of a measure; counts that are added up have no digits after the point.

    >>> from tiewise import NumRet, P
    >>> short = NumberFormat(3, leading_zero=False)
    >>> format_measured(100_000.0, NumRet, short), format_measured(0.25, P, short)
    ('100,000', '.250')
    """
    if value is not None and measure.total and value == int(value):
        return f"{int(value):,}"
    return numbers.number(value)


def shows_ties(estimate: Estimate, numbers: NumberFormat) -> bool:
    """Whether ties show in the digits that are printed: minimum and maximum look different."""
    return numbers.differ(estimate.minimum, estimate.maximum)


def estimate_cell(estimate: Estimate | None, measure: Measure, options: OutputOptions, mark: str = "") -> Cell:
    """An estimate, with its range if ties show in the digits that are printed."""
    if estimate is None:
        return Cell(MISSING)
    numbers = options.numbers
    text = format_statistic(estimate, options.value or "expected", lambda x: format_measured(x, measure, numbers))
    if is_wide(estimate.open_cut, numbers.digits) and options.value in (None, "expected"):
        mark += CUT
    return Cell(text, "" if options.value else format_range(estimate, numbers), mark)
