"""The lines of trec_eval: ``ndcg_cut_10           \tall\t0.3657``, for programs that read them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tiewise.analysis.report_tables import iterate_queries
from tiewise.analysis.reports import Report
from tiewise.errors import InputError
from tiewise.metrics.trec_eval_names import name_of
from tiewise.results.view import View

VALUES = ("expected", "oblivious", "minimum", "maximum")  #: what a line can show


def render_trec(reports: Mapping[str, Report], view: View, level: float = 1) -> str:
    """The lines of one report, query by query and then the means, as ``trec_eval -q`` prints them.

    The value is the expected one, or the first column that was asked for; `level` is trec_eval's ``-l``.
    """
    if len(reports) > 1:
        raise InputError(
            f"trec_eval's format has no column for the name of a run, and {len(reports)} runs were given. Give one run "
            "at a time, or use --format tsv."
        )
    shown = view.columns[0] if view.columns else "expected"
    if shown not in VALUES or len(view.columns) > 1:
        raise InputError(f"trec_eval's format has one column of values: one of {', '.join(VALUES)}.")
    (report,) = reports.values()
    return "".join(_lines(report, view, shown, level))


def _lines(report: Report, view: View, shown: str, level: float) -> Iterator[str]:
    names = {measure: name_of(measure, level) or measure.name for measure in report}  # ours where trec_eval has none
    digits = 4 if view.digits is None else view.digits
    for query, _, estimates in iterate_queries(report, view):
        for measure, estimate in estimates.items():
            value: float | None = getattr(estimate, shown)
            text = "-" if value is None else format_number(value, is_count=measure.total, digits=digits)
            yield format_line(names[measure], query, text)


def format_line(name: str, query: str, value: str) -> str:
    """One line."""
    return f"{name:<22s}\t{query}\t{value}\n"


def format_number(value: float, *, is_count: bool = False, digits: int = 4) -> str:
    """A number as trec_eval prints it; a count has no digits unless it is a mean over orders.

    >>> format_number(0.36574), format_number(12.0, is_count=True), format_number(2.5, is_count=True)
    ('0.3657', '12', '2.5000')
    """
    if is_count and abs(value - round(value)) < 1e-6:
        return str(round(value))
    return f"{value:6.{digits}f}"
