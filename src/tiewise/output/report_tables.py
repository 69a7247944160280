"""The tables of reports. Several runs stand one below the other, with a column for each measure.

The highest value of each column is marked, and so is every other whose range overlaps the range of that one: there the
order of ties alone decides which is higher. One run has a row for each measure; so have several runs if more statistics
than the expected value and its range are shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tiewise.analysis.incomplete_runs import caption_notes, cut_note
from tiewise.analysis.reports import Report, ToolValue
from tiewise.metrics.definition import Measure
from tiewise.metrics.estimate import Estimate
from tiewise.metrics.tool_rules import TOOLS, tool_for
from tiewise.output.cells import estimate_cell, format_measured, shows_ties
from tiewise.output.options import OutputOptions, Statistic
from tiewise.tables.estimates import describe_range, explain_cut_marks, format_statistic
from tiewise.tables.model import BEST, OPEN, Cell, Part, Section, Table, columns_of
from tiewise.tables.wording import MISSING, count_noun, format_percent, format_z, join_names, merge_notes
from tiewise.ties.orders import ORDERS

__all__ = ["REPORT_COLUMNS", "TOOL_COLUMNS", "ReportTables", "Reports", "iterate_queries", "report_table", "tool_table"]

#: The columns of TSV, CSV and Parquet and the keys of JSON Lines, in this order, with what they hold. They are stable:
#: a later version may add columns at the end, and never renames or moves one. A cell is empty (null) where it does not
#: apply.
REPORT_COLUMNS = {
    "run": "the name of the run: its file's name without folder and suffix",
    "measure": "the measure in its canonical spelling",
    "query": "the query's id, or `all` for the mean over queries (the sum, for counts)",
    "expected": "the mean over all orders of the tied documents: the value under a random order",
    "minimum": "the lowest value that an order of the tied documents can give",
    "maximum": "the highest",
    "std": "the standard deviation over all orders",
    "oblivious": "the value that one fixed order gives (`--oblivious`), as a tie-oblivious tool prints it",
    "bias": "oblivious − expected: the effect of that one order",
    "range": "maximum − minimum: how far the order of ties alone can move the value",
    "z": "bias / std: beyond ±4, check whether the order depends on the labels",
    "residual": "what unjudged and unseen documents could still add (RBP)",
    "cut_lower": "the lowest that `expected` can be if lists were cut inside their last tie group",
    "cut_upper": "the highest",
    "expected_method": "how `expected` was found: `exact`, or `sampled` from random orders",
    "extremes_method": "how `minimum` and `maximum` were found: `exact`, `bound` or `sampled`",
    "std_method": "how `std` was found: `exact` or `sampled`",
    "standard_error": "the standard error of `expected`, if that was sampled",
}

#: The columns of TSV, CSV and Parquet and the keys of JSON Lines with ``--tools``.
TOOL_COLUMNS = {
    "run": "the name of the run",
    "measure": "the measure in its canonical spelling",
    "tool": "a tool that reports this measure",
    "version": "the versions whose rule is meant",
    "value": "what it prints for this run; empty if that cannot be reproduced",
    "bias": "value − expected",
    "note": "how it differs from the measure's definition here, or why its number cannot be reproduced",
}


Reports = Mapping[str, Report]  #: by the names of their runs


@dataclass(frozen=True)
class ReportTables:
    """Reports to show, one for each run."""

    reports: Reports

    def notes(self, options: OutputOptions) -> list[str]:
        """What a reader should know; of several runs, with the names of the runs for which it is true."""
        if len(self.reports) == 1:
            return [*options.notes, *next(iter(self.reports.values())).notes]
        on_cuts = cut_note(self.reports)
        others = merge_notes((name, report.other_notes) for name, report in self.reports.items())
        return [*options.notes, *([on_cuts] if on_cuts else []), *others]

    def section(self, options: OutputOptions) -> Section:
        """The table of all runs, a sentence on one run, and what tools print."""
        if options.format == "latex":
            return self._latex_section(options)
        parts: list[Part] = [report_table(self.reports, options)]
        is_text, title = options.format == "table", ""
        if len(self.reports) > 1 and is_text:
            title = f"{len(self.reports):,} runs · {_count_queries(self.reports.values())}"
        if len(self.reports) == 1:
            ((name, report),) = self.reports.items()
            sentence = describe_ties(report, options)
            title = f"{name} · {count_noun(report.queries, 'query', 'queries')}" if is_text else ""
            parts += [sentence if is_text or not sentence else f"{name}: {sentence}"] if sentence else []
        for name, report in self.reports.items() if options.tools else ():
            heading = _tools_title("" if is_text and len(self.reports) == 1 else name, report)
            parts += ["", replace(tool_table(report, options), title=heading)]
        return Section(parts, title, self.notes(options))

    def _latex_section(self, options: OutputOptions) -> Section:
        """The tables of a paper, with all that their captions need."""
        notes = caption_notes(self.reports)
        if options.tools:
            each = ((tool_table(report, options), _tools_title(name, report)) for name, report in self.reports.items())
            return Section([replace(table, title=title, notes=(*table.notes, *notes)) for table, title in each])
        table, first = report_table(self.reports, options), next(iter(self.reports.values()))
        of = join_names(list(self.reports)) if len(self.reports) == 1 else f"{len(self.reports)} runs"
        measures = join_names([measure.name for measure in first.measures], limit=len(first.measures))
        means = ": means over all orders of tied documents" if options.value in (None, "expected") else ""
        title = f"{measures} of {of} over {count_noun(first.queries, 'query', 'queries')}{means}"
        legend = (text.replace(f"above {BEST}", "above the bold one") for text in table.notes)
        return Section([replace(table, notes=(*legend, *notes))], title)

    def records(self, options: OutputOptions) -> Table:
        """A row for each run, measure and query, or with tools one for each run, measure and tool."""
        if options.tools:
            rows = ({"run": name} | row for name, report in self.reports.items() for row in _tool_records(report))
            return Table.of_records(TOOL_COLUMNS, rows)
        return Table.of_records(REPORT_COLUMNS, self._rows(options))

    def _rows(self, options: OutputOptions) -> Iterator[dict[str, Any]]:
        for name, report in self.reports.items():
            for measure in report:
                keys = {"run": name, "measure": measure.name}
                if options.per_query:
                    for query, estimate in report.per_query(measure).items():
                        yield keys | {"query": query} | _statistics(estimate)
                if options.summary:
                    yield keys | {"query": "all"} | _statistics(report[measure])

    def document(self, options: OutputOptions) -> dict[str, Any]:
        """``{"runs": [{"name": …, "provenance": …, "notes": …, "measures": …, "queries": …, "tools": …}, …]}``."""
        return {"runs": [_document(name, report, options) for name, report in self.reports.items()]}


def _count_queries(reports: Iterable[Report]) -> str:
    """The number of queries of each report; runs may lack some."""
    numbers = sorted({report.queries for report in reports})
    return (
        count_noun(numbers[0], "query", "queries") if len(numbers) == 1 else f"{numbers[0]:,}–{numbers[-1]:,} queries"
    )


def _statistics(estimate: Estimate) -> dict[str, Any]:
    plain = estimate.to_dict()
    lower, upper = plain["cut"] or (None, None)
    methods = {f"{name}_method": word for name, word in estimate.method.items()}
    return plain | {"cut_lower": lower, "cut_upper": upper} | methods


def _tool_records(report: Report) -> list[dict[str, Any]]:
    keys = [name for name in TOOL_COLUMNS if name != "run"]
    return [{name: getattr(row, name) for name in keys} for row in report.oblivious_by_tool()]


def _document(name: str, report: Report, options: OutputOptions) -> dict[str, Any]:
    plain = report.to_dict(per_query=options.per_query)
    if not options.summary:
        del plain["measures"]
    if options.tools:
        plain["tools"] = _tool_records(report)
    return {"name": name, **plain}


# -- words --------------------------------------------------------------------------------------------------------


def describe_ties(report: Report, options: OutputOptions) -> str:
    """A sentence on how tied a run is, and how that affects its numbers."""
    known, numbers = report.provenance, options.numbers
    if known.rows is None or known.tied_share is None:
        return ""
    if not known.tied_rows:
        return f"None of {known.rows:,} rows are tied: no order of ties can change these numbers."
    tied = f"{format_percent(known.tied_share)} of {known.rows:,} rows are tied"
    moved = next((measure for measure in report if shows_ties(report[measure], numbers)), None)
    if moved is None:
        unmoved = "of these numbers" if not any(report[measure].tied for measure in report) else "of the digits shown"
        return f"{tied}, but their order changes none {unmoved}."
    estimate = report[moved]
    tiny = estimate.std is not None and estimate.std > 0 and not numbers.differ(estimate.std, 0)
    shown = f"below {numbers.number(10**-numbers.digits)}" if tiny else numbers.number(estimate.std)
    std = "" if estimate.std is None else f" (std {estimate.method.mark('std')}{shown})"
    order = ""
    if estimate.oblivious is not None and estimate.bias is not None:
        name = tool_for(known.options["oblivious"], moved)
        which = f"the order '{name}'" if name in ORDERS else f"the order of {name}"
        order = f"; {which} gives {numbers.number(estimate.oblivious)} ({numbers.signed(estimate.bias)})"
    return f"{tied}: their order alone moves {moved} {describe_range(estimate, numbers)}{std}{order}."


def _tools_title(name: str, report: Report) -> str:
    """The title of what tools print; `name` is empty where there is only one run."""
    changed = any(
        report.provenance.options[option]
        for option in ("score_dtype", "depth", "judged_only", "drop_self", "distances")
    )
    run = f"{name or 'the run'} as read" if changed else name
    return f"What each tool prints{f' for {run}' * bool(run)}, and its bias"


# -- tables -------------------------------------------------------------------------------------------------------


def report_table(reports: Reports, options: OutputOptions) -> Table:
    """A row for each measure, or for each run, whichever suits the options."""
    is_by_measure = options.columns or (len(reports) == 1 and not options.per_query)
    return explain_cut_marks((_table_by_measure if is_by_measure else _table_by_run)(reports, options))


def _table_by_measure(reports: Reports, options: OutputOptions) -> Table:
    rows = [
        (
            *_row_names(reports, options, name, query),
            measure.name,
            estimate_cell(estimate, measure, options),
            *(_statistic(estimate, measure, column, options) for column in options.columns),
        )
        for name, report in reports.items()
        for query, _, found in iterate_queries(report, options)
        for measure, estimate in found.items()
    ]
    names = (*_row_names(reports, options, "run", "query"), "measure")
    order = ", ".join(next(iter(reports.values())).oblivious_orders) or "none"
    headings = (f"oblivious ({order})" if column == "oblivious" else column for column in options.columns)
    heads = (options.value or "expected [lowest, highest]", *headings)
    return Table(columns_of(names, heads), rows)


def _row_names(reports: Reports, options: OutputOptions, run: str, query: str) -> tuple[str, ...]:
    """The names of a row: its run if there are several, its query if each is shown."""
    return (*([run] if len(reports) > 1 else []), *([query] if options.per_query else []))


def _statistic(estimate: Estimate, measure: Measure, column: Statistic, options: OutputOptions) -> str:
    numbers = options.numbers
    if column == "cut":
        return MISSING if estimate.cut is None else numbers.interval(*estimate.cut)
    written: dict[str, Callable[[float], str]] = {"z": format_z, "bias": numbers.signed}
    return format_statistic(estimate, column, written.get(column, lambda x: format_measured(x, measure, numbers)))


def _table_by_run(reports: Reports, options: OutputOptions) -> Table:
    measures = next(iter(reports.values())).measures
    marks = {
        measure: _marks([report[measure] for report in reports.values()], measure, options) for measure in measures
    }
    with_share = len(reports) > 1 and not options.per_query
    rows, summary = list[tuple[str | Cell, ...]](), set[int]()
    for place, (name, report) in enumerate(reports.items()):
        for query, is_mean, found in iterate_queries(report, options):
            cells = (
                estimate_cell(found.get(measure), measure, options, marks[measure][place] if is_mean else "")
                for measure in measures
            )
            share = [format_percent(report.provenance.tied_share)] if with_share else []
            if options.per_query and is_mean:
                summary.add(len(rows))
            rows.append((*_row_names(reports, options, name, query), *share, *cells))
    heads = (*(["tied"] if with_share else []), *map(str, measures))
    columns = columns_of(_row_names(reports, options, "run", "query"), heads)
    shown = {mark for some in marks.values() for mark in some} if options.summary else set()
    return Table(columns, rows, notes=_legend(shown, options), summary=frozenset(summary))


def iterate_queries(report: Report, options: OutputOptions) -> Iterator[tuple[str, bool, dict[Measure, Estimate]]]:
    """Each query, then the mean as ``all``; whether it is the mean; and the estimates that it has."""
    columns = {measure: report.per_query(measure) for measure in report}
    if options.per_query:
        for query in dict.fromkeys(query for column in columns.values() for query in column):
            yield query, False, {measure: column[query] for measure, column in columns.items() if query in column}
    if options.summary:
        yield "all", True, {measure: report[measure] for measure in report}


def _marks(estimates: Sequence[Estimate], measure: Measure, options: OutputOptions) -> list[str]:
    """For one measure of all runs: which is highest, and which others the order of ties alone could put there."""
    values = [getattr(estimate, options.value or "expected") for estimate in estimates]
    known = [value for value in values if value is not None]
    if len(estimates) == 1 or measure.total or not known:
        return [""] * len(estimates)
    best = max(known)
    lowest = min(
        e.minimum for e, value in zip(estimates, values, strict=True) if value == best and e.minimum is not None
    )

    def mark(estimate: Estimate, value: float | None) -> str:
        if value == best:
            return BEST
        return OPEN if estimate.maximum is not None and estimate.maximum > lowest else ""

    return [mark(estimate, value) for estimate, value in zip(estimates, values, strict=True)]


def _legend(marks: set[str], options: OutputOptions) -> tuple[str, ...]:
    words = [f"{BEST} highest {options.value or 'expected value'}"] if BEST in marks else []
    words += [f"{OPEN} another order of the documents listed can put it above {BEST}"] if OPEN in marks else []
    return (", ".join(words),) if words else ()


def tool_table(report: Report, options: OutputOptions) -> Table:
    """What each known tool prints for a run, with its bias, and the expected value below."""
    found = {(row.tool, row.measure): row for row in report.oblivious_by_tool()}
    tools = [tool for tool in TOOLS if any((tool, measure.name) in found for measure in report)]
    footnotes: dict[str, dict[str, None]] = {}  # the tools of each note, in the order in which notes come
    rows = [
        (tool, *(_tool_cell(found.get((tool, measure.name)), measure, footnotes, options) for measure in report))
        for tool in tools
    ]
    plain = replace(options, value=None)
    rows.append(("expected", *(estimate_cell(report[measure], measure, plain) for measure in report)))
    notes = (f"{_raised(place)} {', '.join(who)}: {note}" for place, (note, who) in enumerate(footnotes.items(), 1))
    columns = columns_of(["tool"], [str(measure) for measure in report])
    return explain_cut_marks(Table(columns, rows, notes=tuple(notes), summary=frozenset({len(tools)})))


def _tool_cell(
    row: ToolValue | None, measure: Measure, footnotes: dict[str, dict[str, None]], options: OutputOptions
) -> Cell:
    if row is None:
        return Cell("")
    sign = ""
    if row.note:
        footnotes.setdefault(row.note, {})[row.tool] = None
        sign = _raised(list(footnotes).index(row.note) + 1)
    if row.value is None or row.bias is None:
        return Cell("?", mark=sign)
    return Cell(format_measured(row.value, measure, options.numbers), f"({options.numbers.signed(row.bias)})", sign)


def _raised(number: int) -> str:
    return str(number).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
