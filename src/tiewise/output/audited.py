"""An `Audit` to read: a page for the terminal, with the verdict at both ends, and a sheet for all other formats."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tiewise.analysis.auditing import LIBRARIES, Audit
from tiewise.analysis.auditing.tie_statistics import Pile, SizeBin, TieExample
from tiewise.analysis.reports import Report, ToolValue
from tiewise.errors import counted
from tiewise.metrics.definition import Measure
from tiewise.output import sheet
from tiewise.output.grid import Cell, Grid, Line, cell_of
from tiewise.output.numerals import NONE, decimal, number, share, signed, visible
from tiewise.output.rows import rounded
from tiewise.output.table import WIDEST, Drawing
from tiewise.output.view import View

__all__ = ["AUDIT_COLUMNS", "Audited", "draw"]

#: The columns of TSV, CSV and Parquet and the keys of JSON Lines.
AUDIT_COLUMNS = {
    "run": "the name of the run",
    "name": "the name of a fact, as in the JSON document; of one inside another `across.10`",
    "value": "its value as text; empty if it does not apply",
}

SHOWN = 3  # examples of the largest groups
TOOLS_FOR = 3  # measures for which the page shows what tools print
OWN = "†"  # the mark of a tool that computes something else under the measure's name
_STYLES = {"sound": "bold green", "harmless": "bold green", "unreliable": "bold red"}


@dataclass(frozen=True)
class Audited:
    """The audit of a run, to be shown under its name."""

    name: str
    audit: Audit

    @property
    def title(self) -> str:
        """The run, and how large it is."""
        return f"{self.name} · {counted(self.audit.queries, 'query', 'queries')} · {counted(self.audit.rows, 'row')}"

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(AUDIT_COLUMNS)

    def document(self, view: View) -> dict[str, Any]:
        """The name of the run, and everything that was found."""
        plain: dict[str, Any] = {"name": self.name, **rounded(self.audit.to_dict(), view.digits)}
        return plain | {"notes": [*view.notes, *self.remarks]}

    def rows(self, view: View) -> Iterator[dict[str, Any]]:
        """A row for each fact that is one value."""
        for name, value in _flat(rounded(self.audit.to_dict(), view.digits)):
            yield {"run": self.name, "name": name, "value": None if value is None else str(value)}

    def grid(self, view: View) -> Grid:
        """A line for each fact, for Markdown and LaTeX, and the verdict beneath."""
        said = self.audit
        facts = {
            "grid": said.grid,
            "distinct scores": f"{said.distinct:,}",
            "tied rows": share(said.tied_share),
            "largest group": f"{said.largest_group:,}",
            "lists that end tied": f"{said.cut_lists:,}",
            **{f"tie across rank {rank}": self._of_lists(lists) for rank, lists in said.across.items()},
        }
        lines = [Line((name,), (Cell(value),)) for name, value in facts.items()]
        if said.report is not None:
            lines += [Line((m.name,), (cell_of(said[m], m, view),)) for m in said.report]
        todo = said.advice
        code = () if view.format == "markdown" or todo is None else str(todo).splitlines()[1:]  # there it is a block
        legend = (said.grid_evidence, said.verdict, *(() if todo is None else (todo.text, *code)))
        return Grid(("",), (self.name,), tuple(lines), legend)

    def _of_lists(self, lists: int) -> str:
        return share(lists / self.audit.queries)

    # -- remarks --------------------------------------------------------------------------------------------------

    @property
    def remarks(self) -> tuple[str, ...]:
        """What else a reader should know."""
        return tuple(filter(None, (self._constant, *self._piles, self._identical, self._float32, self._cut)))

    @property
    def _constant(self) -> str:
        whole, most = self.audit.constant_queries, self.audit.nearly_constant_queries
        some = whole or most
        have = f"{some:,} of {_lists(self.audit.queries)} {'has' if some == 1 else 'have'} one score"
        if not whole:
            return f"{have} for nearly all documents." if most else ""
        more = f", {most:,} more for nearly all" if most else ""
        return f"{have} for all documents{more}."

    @property
    def _piles(self) -> list[str]:
        return [
            f"{counted(pile.rows, 'score')} lie {_where(pile)}, {pile.tied_rows:,} of them tied"
            f"{': the score function levels off there' if pile.levels_off else ''}."
            for pile in self.audit.piles
        ]

    @property
    def _identical(self) -> str:
        alike = self.audit.identical_rows
        if alike is None or not self.audit.tied_rows:
            return ""
        tied = counted(self.audit.tied_rows, "tied row")
        return f"Of {tied}, {alike:,} {'is' if alike == 1 else 'are'} tied with documents of the same vector only."

    @property
    def _float32(self) -> str:
        more = self.audit.float32_ties
        ties = f"ties {counted(more, 'row')} more" if more > 0 else ""
        return f"A tool that reads scores as float32, as pytrec_eval does, {ties}." if ties else ""

    @property
    def _cut(self) -> str:
        cut = self.audit.cut_lists
        end = "ends with tied documents and may have been cut inside its" if cut == 1 else ""
        end = end or "end with tied documents and may have been cut inside their"
        return f"{_lists(cut)} {end} last tie group; --complete says that nothing was cut." if cut else ""


def draw(audited: Audited, view: View) -> str | bytes:
    """An audit in the format of the view: for people a page, else a sheet like any other."""
    if view.format == "table":
        return _page(audited, view)
    return _markdown(audited, view) if view.format == "markdown" else sheet.draw(audited, view)


# -- the page -----------------------------------------------------------------------------------------------------


def _page(audited: Audited, view: View) -> str:
    found, drawing = audited.audit, Drawing(view.width, colour=view.colour)
    drawing.words(audited.title, "bold")
    if found.tied_rows or found.report or found.fidelity:  # else it stands so near that once is enough
        drawing.words(_shortened(found.verdict, _width(view)), _style(found))
    drawing.words(found.grid_evidence)
    drawing.words(f"{found.tied_words}{_explained(found)}")
    if found.tied_rows:
        drawing.gap()
        drawing.grid(_sizes(found.group_sizes))
        if any(found.across.values()):
            drawing.gap()
            drawing.grid(_cutoffs(found))
        drawing.gap()
        for example in found.groups[:SHOWN]:
            drawing.words(_example(example, _width(view)))
    for remark in audited.remarks:
        drawing.words(remark)
    if found.report is not None:
        drawing.gap()
        _effect(drawing, found, found.report, view)
    if found.fidelity is not None:
        drawing.gap()
        drawing.words(_fidelity(found, view))
    drawing.notes(view.notes)
    drawing.gap()
    drawing.words(found.verdict, _style(found))
    if found.advice is not None:
        drawing.words(found.advice.text)
    return drawing.text() + _code(found, view)


def _code(found: Audit, view: View) -> str:
    """The lines of the remedy, each below whom it is for; a line of code is never broken."""
    parts = []
    for library, line in found.advice.code.items() if found.advice else ():
        for text, style, width in ((f"for {LIBRARIES[library]}:", "", view.width), (line, "cyan", None)):
            drawing = Drawing(width, colour=view.colour)
            drawing.words(text, style)
            parts.append(drawing.text() if text != line else f"  {drawing.text()}")
    return "".join(parts)


def _width(view: View) -> int:
    return min(view.width or WIDEST, WIDEST)


def _style(found: Audit) -> str:
    return _STYLES.get(found.level, "bold yellow")


def _shortened(verdict: str, width: int) -> str:
    """The first part of the verdict, on one line."""
    first = verdict.split("; ")[0].split(". ")[0].rstrip(".")
    return f"{first}." if len(first) < width else f"{first[: width - 2].rsplit(' ', 1)[0]} …"


def _explained(found: Audit) -> str:
    """How much of it rounding explains, where that is a question."""
    if found.rounded_share is None or found.cause not in ("decimals", "float32", "genuine"):
        return ""
    return f" Rounding explains {share(found.rounded_share)} of the tied pairs."


def _sizes(bins: Sequence[SizeBin]) -> Grid:
    shown = [one for one in bins if one.groups]
    heads = tuple(str(one.low) if one.low == one.high else f"{one.low:,}–{one.high:,}" for one in shown)
    lines = (
        Line(("groups",), tuple(Cell(f"{one.groups:,}") for one in shown)),
        Line(("rows",), tuple(Cell(f"{one.rows:,}") for one in shown)),
    )
    return Grid(("group size",), heads, lines)


def _cutoffs(found: Audit) -> Grid:
    cells = tuple(Cell(share(lists / found.queries)) for lists in found.across.values())
    return Grid(("after rank",), tuple(f"{rank:,}" for rank in found.across), (Line(("lists with a tie",), cells),))


def _example(one: TieExample, width: int) -> str:
    docs = ", ".join(one.docs) + (" …" if one.size > len(one.docs) else "")
    line = f"{one.query}: {one.size:,} documents score {one.score:.9g}, from rank {one.rank:,} on: {docs}"
    if len(line) <= width:
        return line
    whole = line[: width - 1].rpartition(" ")[0]  # ids are not broken
    return f"{whole.rstrip(' ,')} …" if " documents " in whole else f"{line[: width - 2]} …"


def _effect(drawing: Drawing, found: Audit, report: Report, view: View) -> None:
    """How far each measure can move, what tools print, and whether an order of ties knows the labels."""
    lines = [
        Line((m.name,), (cell_of(report[m], m, view), Cell(_moved(report, m, view)), Cell(_spread(report, m, view))))
        for m in report
    ]
    drawing.grid(Grid(("measure",), ("expected [lowest, highest]", "range", "std"), tuple(lines)))
    tools = _tools(report, view)
    if tools is not None:
        drawing.gap()
        drawing.grid(tools)
    if found.knowing:
        drawing.words(
            "Orders of tied documents that are not blind to the labels, by their distance z from a random one: "
            + "; ".join(f"{order} ({_far(zs)})" for order, zs in found.knowing.items())
            + "."
        )


def _far(zs: Mapping[str, float]) -> str:
    return ", ".join(f"{z:+.1f} for {measure}" for measure, z in zs.items())


def _moved(report: Report, measure: Measure, view: View) -> str:
    return number(report[measure].range, view.places + 1, measure)


def _spread(report: Report, measure: Measure, view: View) -> str:
    return number(report[measure].std, view.places + 1, measure)


def _tools(report: Report, view: View) -> Grid | None:
    """What tools print for the measures that ties move most, tools of equal answers in one line; None if none moves."""
    moved = [measure for measure in report if visible(report[measure], view.places)]
    measures = sorted(moved, key=lambda measure: -(report[measure].range or 0.0))[:TOOLS_FOR]
    if not measures:
        return None
    printed = {(row.tool, row.measure): _printed(row, view) for row in report.oblivious_by_tool()}
    answers: dict[tuple[Cell, ...], list[str]] = {}
    for tool in dict.fromkeys(tool for tool, _ in printed):
        answer = tuple(printed.get((tool, measure.name), Cell("")) for measure in measures)
        if any(cell.number for cell in answer):
            answers.setdefault(answer, []).append(tool)
    lines = tuple(Line((", ".join(tools),), answer) for answer, tools in answers.items())
    own = f" {OWN} by a definition of its own." if any(cell.mark for answer in answers for cell in answer) else ""
    more = len(moved) - len(measures)
    short = " trm is tie-aware-retrieval-metrics." if any("trm" in tools for tools in answers.values()) else ""
    rest = f" These move most; {counted(more, 'measure')} more in the JSON document." if more else ""
    legend = f"In brackets the bias: what is printed less what is expected. ? cannot be reproduced.{own}{short}{rest}"
    return Grid(("tools that print",), tuple(measure.name for measure in measures), lines, (legend,))


def _printed(row: ToolValue, view: View) -> Cell:
    if row.value is None or row.bias is None:
        return Cell("?")
    return Cell(decimal(row.value, view.places), f"({_signed(row.bias, view.places)})", OWN if row.note else "")


def _fidelity(found: Audit, view: View) -> str:
    said = found.fidelity
    assert said is not None
    if said.inverted is None or said.tied is None:
        return "The reference orders no pair of documents that both runs list."
    pairs = f"of {said.pairs:,} pairs that it orders, {share(said.inverted)} are inverted and {share(said.tied)} tied"
    alike = ", ".join(
        f"{name} {NONE if value is None else decimal(value, view.places)}"
        for name, value in (("τ", said.tau), ("RBO", said.rbo))
    )
    gaps = ", ".join(f"{measure} {_signed(gap, view.places + 1)}" for measure, gap in said.gap.items())
    beside = f" Expected values beside it: {gaps}." if gaps else ""
    return f"Against the reference, in {counted(said.queries, 'query', 'queries')}: {pairs}; {alike}.{beside}"


# -- Markdown -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _ToolSheet:
    """What tools print, as a sheet below the facts."""

    title: str
    table: Grid
    columns: tuple[str, ...] = ()

    def rows(self, view: View) -> Iterator[dict[str, Any]]:
        """None: the rows are those of the audit."""
        yield from ()

    def document(self, view: View) -> dict[str, Any]:
        """Nothing: the document is that of the audit."""
        return {}

    def grid(self, view: View) -> Grid:
        """What people see."""
        return self.table


def _markdown(audited: Audited, view: View) -> str:
    """The facts with the verdict, the lines of the remedy as a block of code, and what tools print."""
    found = audited.audit
    parts = [str(sheet.draw(audited, view))]
    if found.advice is not None and found.advice.code:
        lines = (f"# for {LIBRARIES[library]}\n{line}\n" for library, line in found.advice.code.items())
        parts.append(f"```python\n{''.join(lines)}```\n")
    tools = None if found.report is None else _tools(found.report, view)
    if tools is not None:
        parts.append(str(sheet.draw(_ToolSheet("What tools print", tools), replace(view, notes=()))))
    return "\n".join(parts)


# -- words --------------------------------------------------------------------------------------------------------


def _where(pile: Pile) -> str:
    if pile.printed or not pile.at:
        return f"exactly at {pile.at:.0f}"
    return "at 1 or within a millionth of it"


def _signed(value: float, digits: int) -> str:
    """A difference with its sign, if it shows in these digits.

    >>> _signed(-0.0028, 3), _signed(-0.0002, 3), _signed(0.0, 3)
    ('-.003', '≈0', '0')
    """
    return "≈0" if value and not round(value, digits) else signed(value, digits)


def _lists(number: int) -> str:
    return counted(number, "list")


def _flat(plain: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """The single values of nested dictionaries, with the path to each; lists are left out."""
    for name, value in plain.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{name}.")
        elif not isinstance(value, list):
            yield f"{before}{name}", value
