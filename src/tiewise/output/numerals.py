"""Numbers as people read them: no zero before the point, and a range only where ties show in the digits printed."""

from __future__ import annotations

from tiewise.metrics.definition import Measure
from tiewise.metrics.estimate import Estimate
from tiewise.tables.html import NONE, share

__all__ = ["NONE", "decimal", "interval", "number", "share", "signed", "visible"]


def decimal(value: float, digits: int) -> str:
    """A number with some digits behind the point and no zero before it.

    >>> decimal(0.36294, 3), decimal(-0.36294, 3), decimal(1, 3), decimal(-0.00001, 3)
    ('.363', '-.363', '1.000', '.000')
    """
    text = f"{value:.{digits}f}"
    if not float(text):
        text = text.lstrip("-")
    sign, plain = ("-", text[1:]) if text.startswith("-") else ("", text)
    return sign + (plain[1:] if plain.startswith("0.") else plain)


def signed(value: float, digits: int) -> str:
    """A difference with its own sign, however small it is; exactly none is a plain 0.

    >>> signed(0.0028, 3), signed(-0.0028, 3), signed(-0.00026, 3), signed(0.0, 3)
    ('+.003', '-.003', '-.000', '0')
    """
    return f"{'-' if value < 0 else '+'}{decimal(abs(value), digits)}" if value else "0"


def number(value: float | None, digits: int, measure: Measure | None = None) -> str:
    """The value of a measure; counts that are added up have no digits behind the point.

    >>> from tiewise import NumRet
    >>> number(100_000.0, 3, NumRet), number(0.25, 3)
    ('100,000', '.250')
    """
    if value is None:
        return NONE
    if measure is not None and measure.total and value == int(value):
        return f"{int(value):,}"
    return decimal(value, digits)


def visible(estimate: Estimate, digits: int) -> bool:
    """Whether ties show in the digits printed: minimum and maximum do not read the same."""
    if estimate.minimum is None or estimate.maximum is None:
        return False
    return decimal(estimate.minimum, digits) != decimal(estimate.maximum, digits)


def interval(low: float, high: float, digits: int) -> str:
    """A range in brackets.

    >>> interval(0.3587, 0.3676, 3)
    '[.359, .368]'
    """
    return f"[{decimal(low, digits)}, {decimal(high, digits)}]"
