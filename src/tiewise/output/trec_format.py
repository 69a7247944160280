"""The lines of trec_eval: ``ndcg_cut_10           \tall\t0.3657``, for programs that read them."""

from __future__ import annotations

from collections.abc import Iterator

from tiewise.analysis.reports import Report
from tiewise.errors import InputError
from tiewise.metrics.definition import Measure
from tiewise.metrics.estimate import Estimate
from tiewise.metrics.names import measures
from tiewise.output.options import OutputOptions
from tiewise.output.report_tables import Reports, iterate_queries

__all__ = ["render_trec", "trec_name"]

# By our name: what trec_eval calls the measure without a cutoff, and with one. Empty: it has no such measure.
_NAMES = {
    "nDCG": ("ndcg", "ndcg_cut_{}"),
    "AP": ("map", "map_cut_{}"),
    "RR": ("recip_rank", ""),
    "P": ("", "P_{}"),
    "R": ("", "recall_{}"),
    "Success": ("", "success_{}"),
    "Rprec": ("Rprec", ""),
    "Bpref": ("bpref", ""),
    "SetP": ("set_P", ""),
    "SetR": ("set_recall", ""),
    "NumRet": ("num_ret", ""),
    "NumRel": ("num_rel", ""),
    "NumRelRet": ("num_rel_ret", ""),
}
_COUNTS = ("num_ret", "num_rel", "num_rel_ret")


def trec_name(measure: Measure, level: float = 1) -> str:
    """The name under which trec_eval, called with ``-l level``, prints a measure; ours where it has none.

    >>> from tiewise import P, nDCG
    >>> trec_name(nDCG @ 10), trec_name(P(rel=2) @ 5, level=2), trec_name(P(rel=2) @ 5)
    ('ndcg_cut_10', 'P_5', 'P(rel=2)@5')
    """
    if measure.stem not in _NAMES:
        return measure.name
    usual = measures()[measure.stem]
    if "rel" in usual.params:
        usual = usual(rel=level)
    whole, cut = _NAMES[measure.stem]
    name = whole if measure.cutoff is None else cut.format(measure.cutoff)
    return name if name and measure.uncut == usual else measure.name


def render_trec(reports: Reports, options: OutputOptions) -> str:
    """The lines of one report, query by query and then the means, as ``trec_eval -q`` prints them."""
    if len(reports) > 1:
        raise InputError(
            f"trec_eval's format has no column for the name of a run, and {len(reports)} runs were given. Give one run "
            "at a time, or use --format tsv."
        )
    if options.tools:
        raise InputError("trec_eval's format cannot hold a table of tools. Use --format tsv.")
    (report,) = reports.values()
    return "".join(_lines(report, options))


def _lines(report: Report, options: OutputOptions) -> Iterator[str]:
    names = {measure: trec_name(measure, options.level) for measure in report}
    for query, _, estimates in iterate_queries(report, options):
        for measure, estimate in estimates.items():
            yield _line(names[measure], query, estimate, options)


def _line(name: str, query: str, estimate: Estimate, options: OutputOptions) -> str:
    digits = 4 if options.digits is None else options.digits
    value: float | None = getattr(estimate, options.value or "expected")
    if value is None:
        shown = "-"
    elif name in _COUNTS and abs(value - round(value)) < 1e-6:
        shown = str(round(value))
    else:
        shown = f"{value:6.{digits}f}"
    return f"{name:<22s}\t{query}\t{shown}\n"
