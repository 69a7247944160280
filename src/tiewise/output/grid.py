"""Reports as a grid of cells, which table, Markdown and LaTeX then draw, each in its own way.

Several runs stand one below the other with a column for each measure, the highest value of each column is marked, and
so is every other whose range overlaps the range of that one: there the order of ties alone decides which is higher. One
run has a line for each measure; so have several where more statistics than the expectation and its range are asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tiewise.analysis.reports import Report, ToolValue
from tiewise.metrics.definition import Measure
from tiewise.metrics.estimate import Estimate
from tiewise.metrics.tools import TOOLS
from tiewise.output.numerals import NONE, interval, number, share, signed, visible
from tiewise.output.view import Extra, Named, View

__all__ = ["BEST", "OPEN", "Cell", "Grid", "Line", "cell_of", "grid_of", "tool_grid"]

BEST = "*"
OPEN = "≈"


@dataclass(frozen=True)
class Cell:
    """A number, its mark, and what stands smaller behind it: the range, or a bias."""

    number: str
    detail: str = ""
    mark: str = ""  # BEST, OPEN, or that of a note

    def __str__(self) -> str:
        return f"{self.number}{self.mark}{' ' * bool(self.detail)}{self.detail}"


@dataclass(frozen=True)
class Line:
    """A line of a grid: the names at its left, and its cells. The last lines of a grid may be set apart as its sum."""

    names: tuple[str, ...]
    cells: tuple[Cell, ...]
    summary: bool = False


@dataclass(frozen=True)
class Grid:
    """Lines of cells under heads, and what explains the marks."""

    names: tuple[str, ...]
    heads: tuple[str, ...]
    lines: tuple[Line, ...]
    legend: tuple[str, ...] = ()

    def columns(self, first: int, last: int) -> Grid:
        """The same lines with some of the columns."""
        lines = tuple(replace(line, cells=line.cells[first:last]) for line in self.lines)
        return replace(self, heads=self.heads[first:last], lines=lines)


def grid_of(reports: Sequence[Named], view: View) -> Grid:
    """The grid that suits what was asked for."""
    if view.columns or (len(reports) == 1 and not view.per_query):
        return _by_measure(reports, view)
    return _by_run(reports, view)


# -- one line for each measure --------------------------------------------------------------------------------


def _by_measure(reports: Sequence[Named], view: View) -> Grid:
    lines = tuple(
        Line(
            (*_names(reports, view, name, query), measure.name),
            (cell_of(estimate, measure, view), *(_extra(estimate, measure, column, view) for column in view.columns)),
        )
        for name, report in reports
        for query, _, found in _queries(report, view)
        for measure, estimate in found.items()
    )
    heads = (view.value or "expected [lowest, highest]", *(_head(column, reports) for column in view.columns))
    return Grid((*_names(reports, view, "run", "query"), "measure"), heads, lines)


def _names(reports: Sequence[Named], view: View, run: str, query: str) -> tuple[str, ...]:
    """What a line is called by: its run if there are several, its query if each is shown."""
    return (*([run] if len(reports) > 1 else []), *([query] if view.per_query else []))


def _head(column: Extra, reports: Sequence[Named]) -> str:
    if column != "oblivious":
        return column
    return f"oblivious ({reports[0].report.provenance.options['oblivious'] or 'none'})"


def _extra(estimate: Estimate, measure: Measure, column: Extra, view: View) -> Cell:
    if column == "cut":
        return Cell(NONE if estimate.cut is None else interval(*estimate.cut, view.places))
    value: float | None = getattr(estimate, column)
    if value is None:
        return Cell(NONE)
    if column == "z":
        return Cell(f"{value:+.1f}")
    return Cell(signed(value, view.places) if column == "bias" else number(value, view.places, measure))


# -- one line for each run ------------------------------------------------------------------------------------


def _by_run(reports: Sequence[Named], view: View) -> Grid:
    measures = reports[0].report.measures
    marks = {measure: _marks([report[measure] for _, report in reports], measure, view) for measure in measures}
    with_share = len(reports) > 1 and not view.per_query
    lines = []
    for place, (name, report) in enumerate(reports):
        for query, mean, found in _queries(report, view):
            cells = [
                cell_of(found.get(measure), measure, view, marks[measure][place] if mean else "")
                for measure in measures
            ]
            share_first = [Cell(_tied(report))] if with_share else []
            names = _names(reports, view, name, query)
            lines.append(Line(names, (*share_first, *cells), summary=view.per_query and mean))
    heads = (*(["tied"] if with_share else []), *map(str, measures))
    return Grid(_names(reports, view, "run", "query"), heads, tuple(lines), _legend(lines, view))


def _tied(report: Report) -> str:
    tied = report.provenance.tied_share
    return NONE if tied is None else share(tied)


def _queries(report: Report, view: View) -> Iterator[tuple[str, bool, dict[Measure, Estimate]]]:
    """Each query, then the mean over them as ``all``; whether it is the mean; and the estimates that it has."""
    columns = {measure: report.per_query(measure) for measure in report}
    if view.per_query:
        for query in dict.fromkeys(query for column in columns.values() for query in column):
            yield query, False, {measure: column[query] for measure, column in columns.items() if query in column}
    if view.summary:
        yield "all", True, {measure: report[measure] for measure in report}


def cell_of(estimate: Estimate | None, measure: Measure, view: View, mark: str = "") -> Cell:
    """An estimate with its range where ties show in the digits printed."""
    if estimate is None:
        return Cell(NONE)
    shown = number(getattr(estimate, view.value or "expected"), view.places, measure)
    low, high = estimate.minimum, estimate.maximum
    if view.value or low is None or high is None or not visible(estimate, view.places):
        return Cell(shown, mark=mark)
    return Cell(shown, interval(low, high, view.places), mark)


def _marks(estimates: Sequence[Estimate], measure: Measure, view: View) -> list[str]:
    """For one measure of all runs: which is highest, and which others ties alone could put there."""
    values = [getattr(estimate, view.value or "expected") for estimate in estimates]
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


def _legend(lines: Sequence[Line], view: View) -> tuple[str, ...]:
    marks = {cell.mark for line in lines for cell in line.cells}
    words = []
    if BEST in marks:
        words.append(f"{BEST} highest {view.value or 'expected value'}")
    if OPEN in marks:
        words.append(f"{OPEN} the order of ties alone can put it above {BEST}")
    return (", ".join(words),) if words else ()


# -- what each tool prints ------------------------------------------------------------------------------------


def tool_grid(report: Report, view: View) -> Grid:
    """What each known tool prints for a run, with its bias behind it, and the expectation beneath."""
    table = report.oblivious_by_tool()
    measures = report.measures
    found = {(row.tool, row.measure): row for row in table}
    signs = _Footnotes()
    lines = [
        Line((tool,), tuple(_printed(found.get((tool, measure.name)), measure, signs, view) for measure in measures))
        for tool in TOOLS
        if any(row.tool == tool for row in table)
    ]
    plain = replace(view, value=None)
    expected = Line(
        ("expected",), tuple(cell_of(report[measure], measure, plain) for measure in measures), summary=True
    )
    return Grid(("tool",), tuple(map(str, measures)), (*lines, expected), tuple(signs.lines()))


class _Footnotes:
    """Notes of tools, each with a sign of its own."""

    def __init__(self) -> None:
        self._tools: dict[str, dict[str, None]] = {}

    def sign(self, row: ToolValue) -> str:
        """The sign of a row's note."""
        self._tools.setdefault(row.note, {})[row.tool] = None
        return _raised(list(self._tools).index(row.note) + 1)

    def lines(self) -> Iterator[str]:
        """Every note with the tools that it is about."""
        for place, (note, tools) in enumerate(self._tools.items(), 1):
            yield f"{_raised(place)} {', '.join(tools)}: {note}"


def _raised(place: int) -> str:
    return str(place).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))


def _printed(row: ToolValue | None, measure: Measure, signs: _Footnotes, view: View) -> Cell:
    if row is None:
        return Cell("")
    sign = signs.sign(row) if row.note else ""
    if row.value is None or row.bias is None:
        return Cell("?", mark=sign)
    return Cell(number(row.value, view.places, measure), f"({signed(row.bias, view.places)})", sign)
