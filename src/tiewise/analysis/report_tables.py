"""`Reports`: what an evaluation shows, of one run or of several.

Runs stand one below the other, with a group of columns for each measure. If that is too wide for a line, and for one
run, each row is one measure of one run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

import numpy as np

from tiewise.analysis.incomplete_runs import caption_notes, cut_note
from tiewise.analysis.reports import Report
from tiewise.metrics.definition import Measure
from tiewise.metrics.estimate import EXACT_METHOD, SAMPLED, WORDS, Estimate, Estimates, Methods
from tiewise.results.base import Result
from tiewise.results.estimates import draw, drop_empty, shows_ties, statistic_cells, statistic_columns
from tiewise.results.model import BLOCK_ROWS, Block, BlockRows, Column, Paragraph, Part, Section, Table
from tiewise.results.text import table_width
from tiewise.results.view import View
from tiewise.results.wording import NumberFormat, count_noun, format_percent, merge_notes, spell_command

#: The columns of TSV, CSV and Parquet and the keys of JSON Lines, in this order, with what they hold. They are stable:
#: a later version may add columns at the end, and never renames or moves one. A cell is empty (null) where it does not
#: apply.
REPORT_COLUMNS = {
    "run": "the name of the run: its file's name without folder and suffix",
    "measure": "the measure in its canonical spelling",
    "query": "the query's id, or `all` for the mean over queries (the sum, for counts)",
    "expected": "the mean over all orders of the tied documents",
    "ci_low": "the 95% interval of the mean for other queries (Student's t): its lower end",
    "ci_high": "its upper end",
    "minimum": "the lowest value that an order of the tied documents can give",
    "maximum": "the highest",
    "std": "the standard deviation over all orders",
    "oblivious": "the value in one fixed order (`--oblivious`), as a tool prints it",
    "bias": "oblivious − expected",
    "range": "maximum − minimum",
    "z": "bias / std: beyond ±4, check whether the order depends on the labels",
    "residual": "what unjudged and unseen documents could still add (RBP)",
    "cut_lower": "the lowest `expected` if lists were cut inside their last tie group",
    "cut_upper": "the highest",
    "expected_method": "how `expected` was found: `exact` or `sampled`",
    "extremes_method": "how the extremes were found: `exact`, `bound` or `sampled`",
    "std_method": "how `std` was found: `exact` or `sampled`",
    "standard_error": "of `expected`, if it was sampled",
    "rerun_low": "the lowest value that the same system would print if scored again (95%)",
    "rerun_high": "the highest",
    "rerun_std": "the standard deviation of the mean, from the noise of one run",
    "noise_expected": "the mean under noise of a given size (`noise=` in Python)",
    "noise_std": "the standard deviation of the mean under that noise",
}

EXPLANATION = (
    "value: the mean over all orders of tied documents, that of a random order. ±95%: half of the interval for other "
    "queries of the same kind (Student's t), for one run alone: runs have their queries in common, so two of them are "
    "compared by {}; –: too few queries. by tie order: the lowest and the highest value that an order of tied "
    "documents can give, the worst case in every query; same: it changes no digit shown. {}: the value in that one "
    "order, and bias: less the expected one; z: bias / std."
)


class Reports(Result, dict[str, Report]):
    """Reports by the names of their runs; the name of a single one may be empty."""

    _schema = "tiewise/evaluation/1"

    @property
    def measures(self) -> tuple[Measure, ...]:
        """The measures of all reports."""
        return next(iter(self.values())).measures

    @property
    def notes(self) -> list[str]:
        """What a reader should know; of several runs, with the names of the runs for which it is true."""
        if len(self) == 1:
            return list(next(iter(self.values())).notes)
        on_cuts = cut_note(self)
        others = merge_notes((name, report.other_notes) for name, report in self.items())
        return [*([on_cuts] if on_cuts else []), *others]

    def sentence(self, numbers: NumberFormat) -> str:
        """What ties do to these numbers, and what to report."""
        constant = {name: report.constant_lists for name, report in self.items() if report.is_constant}
        if constant:
            name, lists = max(constant.items(), key=lambda one: one[1])
            of = f" of {name}" if len(self) > 1 else ""
            return f"All scores of {count_noun(lists, 'list')}{of} are equal: the number says nothing about the system."
        found = {
            (name, measure): report[measure]
            for name, report in self.items()
            for measure in report
            if not measure.total and shows_ties(report[measure], numbers)
        }
        if not found:
            knows_ties = all(report._tally.tied_rows is not None for report in self.values())
            return "No order of ties changes a digit shown." if knows_ties else ""
        (name, measure), mean = max(found.items(), key=lambda one: _share_of_interval(one[1]))
        is_small = _share_of_interval(mean) < 1
        if is_small and len(self) * len(self.measures) > 1:
            return "Ties move no value as much as other queries would: report the values."
        moved = f"Ties move {name if len(self) > 1 else measure}"
        what = f"{measure} " if len(self) > 1 and len(self.measures) > 1 else ""
        value = f"report {what}{numbers.number(mean.expected)}"
        if is_small:
            return f"{moved} less than other queries would: {value}."
        ends = f"{value} and its range, {numbers.number(mean.minimum)} to {numbers.number(mean.maximum)}"
        return f"{moved}{' at least as much as other queries would' if mean.half_width else ''}: {ends}."

    # -- what is shown ----------------------------------------------------------------------------------------

    def _section(self, view: View) -> Section:
        by_measure = len(self) == 1 and not view.per_query
        table = self._table(view, by_measure=by_measure)
        if not by_measure and table_width(table) > view.width:
            table = self._table(view, by_measure=True)
        sentence = self.sentence(view.numbers) if view.summary and not view.columns else ""
        again = [report._rerun_sentence(view.numbers) for report in self.values()] if view.summary else []
        table = table._replace(notes=tuple(self._legend(table)), hint=_two_runs())
        parts: list[Part] = [table, *filter(None, [sentence, *again])]
        if view.explain:
            from tiewise.analysis.tool_values import ToolTables

            parts += ["", Paragraph(EXPLANATION.format(spell_command("compare"), self._order or "obl"), "dim")]
            known = {name: report for name, report in self.items() if report._knows_tools}  # not of tie groups
            tools = ToolTables({name: report.oblivious_by_tool() for name, report in known.items()})
            parts += [part for table in (tools._section(view).tables if known else []) for part in ("", table)]
        return Section(parts, self._title, self.notes)

    @property
    def _title(self) -> str:
        numbers = sorted({report.queries for report in self.values()})
        queries = f"{numbers[0]:,}–{numbers[-1]:,} queries" if len(numbers) > 1 else ""
        queries = queries or count_noun(numbers[0], "query", "queries")
        if len(self) > 1:
            return queries
        ((name, report),) = self.items()
        known = report._tally
        tied = "" if known.rows is None else f"{format_percent(known.tied_share)} of {known.rows:,} rows tied"
        return " · ".join(filter(None, (name, queries, tied)))

    @property
    def _order(self) -> str:
        return ", ".join(dict.fromkeys(filter(None, (one.oblivious_names for one in self.values()))))

    def _legend(self, table: Table) -> Iterator[str]:
        names, words = {column.name for column in table.columns}, []
        if "ci" in names:
            words.append(f"±95%: other queries{_two_runs()}")
        if "ties" in names and any(str(value) != "same" for value in table.values("ties")):
            words.append("by tie order: lowest – highest")
        if "rerun" in names:
            words.append("rerun ±: the same system scored again (95%)")
        if words:
            yield " · ".join(words)

    def _table(self, view: View, *, by_measure: bool) -> Table:
        """A block of rows for each measure, with bars, or one block with a group of columns for each measure."""
        rows, summary = list[tuple[Any, ...]](), set[int]()
        for first, *others in [[one] for one in self.measures] if by_measure else [self.measures]:
            for name, report in self.items():
                tied = "" if by_measure and len(self) == 1 else format_percent(report._tally.tied_share)
                for query, is_mean, found in iterate_queries(report, view):
                    if by_measure and first not in found:
                        continue
                    if view.per_query and is_mean:
                        summary.add(len(rows))
                    each = (statistic_cells(found.get(m), view.numbers, is_count=m.total) for m in (first, *others))
                    bar = draw(found[first]) if by_measure else ""
                    rows.append((str(first), name, query, tied if is_mean else "", *chain.from_iterable(each), bar))
        names = (Column(name, shown="always") for name in ("measure", "run", "query"))
        groups = [""] if by_measure else map(str, self.measures)
        statistics = chain.from_iterable(statistic_columns(group, self._order) for group in groups)
        columns = (*names, Column("tied", align="right", shown="always"), *statistics, Column(""))
        cross = f"; cross: {self._order}" * bool(self._order)
        legend = f"Bar: lowest to highest by tie order; line: expected{cross}."
        drawn = by_measure and any(report[measure].tied for report in self.values() for measure in report)
        table = Table(columns, rows, summary=frozenset(summary), bar_legend=legend if drawn else "")
        kept = {"measure": by_measure, "run": len(self) > 1, "query": view.per_query, "tied": any(table.values("tied"))}
        dropped = [name for name, is_kept in kept.items() if not is_kept]
        return drop_empty(table.choose(view), view).drop(*dropped)

    def _latex(self, view: View) -> str:
        from tiewise.results.latex import render_latex

        section = self._section(view._replace(explain=False))
        tables = [one._replace(notes=(*one.notes, *caption_notes(self))) for one in section.tables]
        return render_latex(Section(tables, f"{section.title}: means over all orders of tied documents"))

    def _records(self, view: View) -> Table:
        """A row for each run, measure and query; the query of a mean is ``all``."""

        def blocks() -> Iterator[Block]:
            for name, report in self.items():
                for measure in report:
                    found, names = report.per_query(measure), {"run": name, "measure": measure.name}
                    for start in range(0, len(found), BLOCK_ROWS) if view.per_query else ():
                        some = slice(start, start + BLOCK_ROWS)
                        yield _block(names | {"query": list(found.queries[some])} | _columns(found, some))
                    if view.summary:
                        yield _block(names | {"query": ["all"]} | report[measure]._row)

        return Table(tuple(map(Column, REPORT_COLUMNS)), BlockRows(blocks))

    def _document(self, view: View) -> dict[str, Any]:
        runs = [{"name": name, **report._to_dict(view)} for name, report in self.items()]
        return runs[0] if len(runs) == 1 else {"runs": runs}


def _two_runs() -> str:
    """What to ask instead of comparing the intervals of two runs."""
    return f" (two runs: {spell_command('compare')})"


def iterate_queries(report: Report, view: View) -> Iterator[tuple[str, bool, dict[Measure, Estimate]]]:
    """Each query, then the mean as ``all``; whether it is the mean; and the estimates that it has."""
    columns = {measure: report.per_query(measure) for measure in report}
    if view.per_query:
        for query in dict.fromkeys(query for column in columns.values() for query in column):
            yield query, False, {measure: column[query] for measure, column in columns.items() if query in column}
    if view.summary:
        yield "all", True, {measure: report[measure] for measure in report}


def _block(values: Mapping[str, Any]) -> Block:
    """Rows with the columns of a report; what is not among the values does not apply."""
    return Block(len(values["query"]), [values.get(name) for name in REPORT_COLUMNS])


def _columns(found: Estimates, some: slice) -> dict[str, Any]:
    """The estimates of some queries as the columns of rows; NaN where a value does not apply."""
    names = ("expected", "minimum", "maximum", "oblivious", "residual")
    columns = {name: column[some] for name in names if (column := getattr(found, name)) is not None}
    std = np.sqrt(found.variance[some])
    columns |= {"std": std, "range": columns["maximum"] - columns["minimum"]}
    if "oblivious" in columns:
        bias = columns["oblivious"] - columns["expected"]
        z = np.divide(bias, std, out=np.full(len(std), np.nan), where=std != 0)
        columns |= {"bias": bias, "z": z}
    if found.cut is not None:
        ends = np.stack(found.cut)[:, some]
        lower, upper = np.where(np.isfinite(ends).all(axis=0), ends, np.nan)
        columns |= {"cut_lower": lower, "cut_upper": upper}
    return columns | _method_columns(found.method and found.method.take(some))


def _method_columns(methods: Methods | None) -> dict[str, Any]:
    if methods is None:
        return {f"{name}_method": word for name, word in EXACT_METHOD.items()}
    codes = {name: getattr(methods, name) for name in EXACT_METHOD}
    words = {f"{name}_method": [WORDS[code] for code in column.tolist()] for name, column in codes.items()}
    error = np.where(codes["expected"] == SAMPLED, np.nan_to_num(methods.standard_error), np.nan)
    return words | {"standard_error": error}


def _share_of_interval(mean: Estimate) -> float:
    """Half the range by tie order, over half the interval over queries; infinite if that is not known."""
    return (mean.range or 0.0) / 2 / mean.half_width if mean.half_width else np.inf
