"""Numbers in the sentences of an audit."""

from __future__ import annotations

__all__ = ["capitalize_first", "format_decimal", "format_share"]


def format_share(share: float) -> str:
    """A share in percent, rounded to 0% or 100% only if it is exactly that.

    >>> format_share(0.494), format_share(1), format_share(0.0001), format_share(0.99999)
    ('49.4%', '100%', 'fewer than 0.1%', 'over 99.9%')
    """
    if share in (0, 1):
        return f"{share:.0%}"
    return "fewer than 0.1%" if share < 0.0005 else "over 99.9%" if share > 0.9995 else f"{share:.1%}"


def format_decimal(value: float) -> str:
    """A number with at most four decimals and no zero before the point.

    >>> format_decimal(0.0109), format_decimal(0.001), format_decimal(1)
    ('.0109', '.001', '1')
    """
    return f"{value:.4f}".rstrip("0").rstrip(".").removeprefix("0") or "0"


def capitalize_first(sentence: str) -> str:
    """A sentence with a capital letter at its start; the rest stays.

    >>> capitalize_first("over 99.9% of BM25 scores")
    'Over 99.9% of BM25 scores'
    """
    return sentence[:1].upper() + sentence[1:]
