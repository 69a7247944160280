"""Reports in words: the line that reads a table, and text that is safe to show."""

from __future__ import annotations

from collections.abc import Sequence

from tiewise.analysis.reports import Report, said_once
from tiewise.output.numerals import decimal, share, signed, visible
from tiewise.output.view import Named, View
from tiewise.ties.orders import ORDERS

__all__ = ["notes", "reading", "safe", "tools_title"]


def reading(report: Report, view: View) -> str:
    """One sentence on a report: how tied its run is, and what that does to the numbers."""
    known = report.provenance
    if known.rows is None or known.tied_share is None:
        return ""
    if not known.tied_rows:
        return f"None of {known.rows:,} rows are tied: no order of ties can change these numbers."
    tied = f"{share(known.tied_share)} of {known.rows:,} rows are tied"
    moved = next((measure for measure in report if visible(report[measure], view.places)), None)
    if moved is None:
        unmoved = "of these numbers" if not any(report[measure].tied for measure in report) else "of the digits shown"
        return f"{tied}, but their order changes none {unmoved}."
    estimate = report[moved]
    low, high = (decimal(value or 0.0, view.places) for value in (estimate.minimum, estimate.maximum))
    std = "" if estimate.std is None else f" (std {_small(estimate.std, view.places)})"
    return f"{tied}: their order alone moves {moved} between {low} and {high}{std}{_one_order(report, moved, view)}."


def _one_order(report: Report, measure: object, view: View) -> str:
    estimate, name = report[str(measure)], report.provenance.options["oblivious"]
    if estimate.oblivious is None or estimate.bias is None:
        return ""
    order = f"the order '{name}'" if name in ORDERS else f"the order of {name}"
    return f"; {order} gives {decimal(estimate.oblivious, view.places)} ({signed(estimate.bias, view.places)})"


def _small(value: float, digits: int) -> str:
    text = decimal(value, digits)
    return f"below {decimal(10**-digits, digits)}" if value and not float(text) else text


def notes(reports: Sequence[Named], view: View) -> list[str]:
    """What a reader should know, where there are several runs under the names of those of which it is true."""
    each = [(name, report.notes) for name, report in reports]
    return [*view.notes, *(said_once(each) if len(each) > 1 else each[0][1] if each else ())]


def tools_title(name: str, report: Report) -> str:
    """The heading of what the tools print; `name` is empty where there is only one run."""
    changed = any(report.provenance.options[option] for option in ("score_dtype", "depth", "judged_only"))
    run = f"{name or 'the run'} as read" if changed else name
    return f"What each tool prints{f' for {run}' * bool(run)}, and its bias"


def safe(text: str) -> str:
    """Text with control characters (and what turns the direction of writing) shown as escapes, not obeyed.

    >>> safe("q\\x1b[31m1"), safe("naïve 文")
    ('q\\\\x1b[31m1', 'naïve 文')
    """
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
