"""The tables of audits: for one run a page with the verdict at both ends, or facts; for several runs an overview."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tiewise.analysis.auditing import LIBRARIES, Audit, Effect
from tiewise.analysis.auditing.tie_statistics import TieExample
from tiewise.analysis.comparison.system import ORDER_NAMES
from tiewise.analysis.reports import Report, ToolValue
from tiewise.output.cells import estimate_cell, shows_ties
from tiewise.output.options import OutputOptions
from tiewise.tables.data_formats import round_floats
from tiewise.tables.estimates import explain_cut_marks
from tiewise.tables.model import Cell, Code, Paragraph, Part, Section, Style, Table, columns_of
from tiewise.tables.wording import (
    LINE_WIDTH,
    MISSING,
    NumberFormat,
    count_noun,
    cut_lists_note,
    describe_chance,
    format_percent,
    format_ranks,
    format_z,
    merge_notes,
)

__all__ = ["AUDIT_COLUMNS", "AuditTables"]

#: The columns of TSV, CSV and Parquet and the keys of JSON Lines.
AUDIT_COLUMNS = {
    "run": "the name of the run",
    "name": "the name of a fact, as in the JSON document; of one inside another `across.10`",
    "value": "its value as text; empty if it does not apply",
}

EXAMPLES = 3  # of the largest tie groups
TOOL_MEASURES = 3  # measures for which the page shows what tools print
DECIDES_LEGEND = (
    "decides: |bias| or 2 std reaches the value over queries, or a named tool or at least 2.5% of random orders "
    "reverses a check or a significant comparison. The worst case does not count."
)
EFFECT_DECIDES_LEGEND = (
    "minor: |bias| and 2 std are below .0005 and below a tenth of the value over queries. decides: one of them reaches "
    "that value; the worst case does not count. Whether tie order reverses a comparison shows if runs are audited "
    "together."
)
EFFECT_LEGEND = (
    "bias: of the order of {}. worst case: highest minus lowest. over queries: half of the 95% interval. effect: none, "
    "minor, report (the expected values; also if lists may have been cut), or decides."
)
OVERVIEW_LEGEND = (
    "moves most: the measure with the largest |bias| or 2 std; the next four columns are about it. bias: of the order "
    "of {}. worst case: highest minus lowest. over queries: half of the 95% interval. effect: of the run's own ties."
)
OWN = "†"  # the mark of a tool that computes something else under the measure's name


@dataclass(frozen=True)
class AuditTables:
    """The audits of runs by name: of one run all that was found, of several a row each and their verdicts."""

    audits: Mapping[str, Audit]

    def document(self, options: OutputOptions) -> dict[str, Any]:
        """The name of the run, and everything that was found; of several runs, their list."""
        runs = [_SingleAudit(name, audit).document(options) for name, audit in self.audits.items()]
        return runs[0] if len(runs) == 1 else {"runs": runs}

    def notes(self, options: OutputOptions) -> tuple[str, ...]:
        """All notes, in the order in which they are shown."""
        if len(self.audits) == 1:
            return (*options.notes, *next(iter(self.audits.values())).notes)
        return (*options.notes, *merge_notes((name, audit.notes) for name, audit in self.audits.items()))

    def records(self, options: OutputOptions) -> Table:
        """A row for each run and each fact that is one value."""
        rows = [
            {"run": name, "name": fact, "value": None if value is None else str(value)}
            for name, audit in self.audits.items()
            for fact, value in Table.of_nested(round_floats(audit.to_dict(), options.digits)).rows
        ]
        return Table.of_records(AUDIT_COLUMNS, rows)

    def section(self, options: OutputOptions) -> Section:
        """What people read."""
        options = replace(options, notes=self.notes(options))
        if len(self.audits) == 1:
            return _SingleAudit(*next(iter(self.audits.items()))).section(options)
        parts: list[Part] = [self._overview(options), ""]
        for name, audit in self.audits.items():
            parts.append(Paragraph(f"{name}: {audit.verdict}", _style(audit)))
            more = [*_describe_far_orders(audit), *([audit.advice.text] if audit.advice else [])]
            parts += [f"{name}: {text}" for text in more]
        return Section(
            parts, f"{len(self.audits)} runs", [*options.notes, "For all details of one run: tiewise audit RUN"]
        )

    def _overview(self, options: OutputOptions) -> Table:
        """A row for each run: its ties, and the measure that their order moves most."""
        finer = NumberFormat(options.numbers.digits + 1, leading_zero=False)
        rows = []
        for name, audit in self.audits.items():
            most = max(audit.effects, key=lambda effect: effect.size, default=None)
            cells = _effect_cells(most, finer)[:-1]
            facts = (format_percent(audit.tied_share), f"{audit.largest_group:,}")
            reverses = " (reversal)" * bool(audit.decides and most and most.grade != "decides")
            rows.append((name, *facts, most.measure if most else MISSING, *cells, f"{audit.grade}{reverses}"))
        columns = columns_of(
            ["run"],
            ["tied", "largest", "moves most", "bias", "std", "worst case", "over queries", "effect of ties"],
        )
        has_effects = any(audit.effects for audit in self.audits.values())
        orders = dict.fromkeys(effect.order or "none" for audit in self.audits.values() for effect in audit.effects)
        legend = (OVERVIEW_LEGEND.format(", ".join(orders)), DECIDES_LEGEND)
        table = Table(columns, rows, notes=legend if has_effects else ())
        return table if has_effects else table.take_columns([0, 1, 2, len(columns) - 1])


def _style(audit: Audit) -> Style:
    """The colour of a verdict: only a result that tie order decides is red."""
    is_calm = audit.grade in ("none", "minor") and not audit.unfaithful
    return "bad" if audit.decides else "good" if is_calm else "warning"


@dataclass(frozen=True)
class _SingleAudit:
    """The audit of a run, to show with its name."""

    name: str
    audit: Audit

    def document(self, options: OutputOptions) -> dict[str, Any]:
        """The name of the run, and everything that was found."""
        return {"name": self.name, **self.audit.to_dict(), "notes": [*options.notes, *self.audit.notes, *self.remarks]}

    def section(self, options: OutputOptions) -> Section:
        """What people read: a page for the terminal, else a table of facts, the verdict and the remedy."""
        audit = self.audit
        title = f"{self.name} · {count_noun(audit.queries, 'query', 'queries')} · {count_noun(audit.rows, 'row')}"
        if options.format == "table":
            return Section(self._page(options), title)
        parts: list[Part] = [self._facts(options), audit.grid_evidence, audit.verdict, *self._remedy()]
        if options.format == "markdown" and (tools := _tool_table(audit.report, options)) is not None:
            parts.append(replace(tools, title="What tools print"))
        return Section(parts, title, options.notes)

    def _facts(self, options: OutputOptions) -> Table:
        audit = self.audit
        facts: dict[str, str | Cell] = {
            "grid": audit.grid,
            "distinct scores": f"{audit.distinct:,}",
            "tied rows": format_percent(audit.tied_share),
            "largest group": f"{audit.largest_group:,}",
            "lists that end tied": f"{audit.cut_lists:,}",
            "effect of ties": audit.grade,
        }
        for rank, lists in audit.across.items():
            facts[f"tie across rank {rank}"] = format_percent(lists / audit.queries)
        if audit.report is not None:
            facts |= {measure.name: estimate_cell(audit[measure], measure, options) for measure in audit.report}
        return explain_cut_marks(Table(columns_of([""], [self.name]), list(facts.items())))

    def _remedy(self) -> list[Part]:
        """What to do, and a line of code for each library."""
        remedy = self.audit.advice
        if remedy is None:
            return []
        code = {LIBRARIES[library]: line for library, line in remedy.code.items()}
        return [remedy.text, *([Code(code)] if code else [])]

    @property
    def remarks(self) -> list[str]:
        """What else a reader should know."""
        return list(_remarks(self.audit))

    def _page(self, options: OutputOptions) -> list[Part]:
        audit, width = self.audit, min(options.width or LINE_WIDTH, LINE_WIDTH)
        style = _style(audit)
        parts: list[Part] = []
        if audit.tied_rows or audit.report or audit.fidelity:  # else the whole verdict follows closely
            parts.append(Paragraph(_shorten_verdict(audit.verdict, width), style))
        parts += [audit.grid_evidence, f"{audit.tied_words}{_explained_by_rounding(audit)}"]
        if audit.tied_rows:
            sizes = {format_ranks(one.low, one.high): one for one in audit.group_sizes if one.groups}
            counts = [(name, *(f"{getattr(one, name):,}" for one in sizes.values())) for name in ("groups", "rows")]
            parts += ["", Table(columns_of(["group size"], list(sizes)), counts)]
            if any(audit.across.values()):
                shares = (format_percent(lists / audit.queries) for lists in audit.across.values())
                columns = columns_of(["across rank"], [f"{rank:,}" for rank in audit.across])
                parts += ["", Table(columns, [("lists with a tie", *shares)])]
            parts += ["", *(_describe_group(example, width) for example in audit.groups[:EXAMPLES])]
        parts += self.remarks
        if audit.report is not None:
            parts += ["", *_effect(audit, audit.report, options)]
        if audit.fidelity is not None:
            parts += ["", _describe_fidelity(audit, options.numbers)]
        parts += [Paragraph(f"note: {note}", "dim") for note in options.notes]
        return [*parts, "", Paragraph(audit.verdict, style), *self._remedy()]


def _remarks(audit: Audit) -> Iterator[str]:
    whole, most = audit.constant_queries, audit.nearly_constant_queries
    have = f"of {count_noun(audit.queries, 'list')} {'has' if (whole or most) == 1 else 'have'} one score"
    if whole:
        yield f"{whole:,} {have} for all documents{f', {most:,} more for nearly all' if most else ''}."
    elif most:
        yield f"{most:,} {have} for nearly all documents."
    for pile in audit.piles:
        where = f"exactly at {pile.at:.0f}" if pile.printed or not pile.at else "at 1 or within a millionth of it"
        why = ": the score function levels off there" if pile.levels_off else ""
        yield f"{count_noun(pile.rows, 'score')} lie {where}, {pile.tied_rows:,} of them tied{why}."
    same = audit.identical_rows
    if same is not None and audit.tied_rows:
        are = f"{same:,} {'is' if same == 1 else 'are'}"
        yield f"Of {count_noun(audit.tied_rows, 'tied row')}, {are} tied with documents of the same vector only."
    if audit.float32_ties > 0:
        more = count_noun(audit.float32_ties, "row")
        yield f"A tool that reads scores as float32, as pytrec_eval does, ties {more} more."
    if cut := audit.cut_lists:
        end = "ends" if cut == 1 else "end"
        yield cut_lists_note(f"{cut:,} of {count_noun(audit.queries, 'list')} {end} with tied documents and")


def _shorten_verdict(verdict: str, width: int) -> str:
    """The first part of the verdict that fits on one line."""
    first = verdict.split("; ")[0].split(". ")[0].rstrip(".")
    return f"{first}." if len(first) < width else f"{first.split(': ')[0]}."


def _explained_by_rounding(audit: Audit) -> str:
    """How many tied pairs rounding explains, where that is a question."""
    if audit.rounded_share is None or audit.cause not in ("decimals", "float32", "genuine"):
        return ""
    return f" Rounding explains {format_percent(audit.rounded_share)} of the tied pairs."


def _describe_group(one: TieExample, width: int) -> str:
    docs = ", ".join(one.docs) + (" …" if one.size > len(one.docs) else "")
    line = f"query {one.query}: {one.size:,} documents score {one.score:.9g}, from rank {one.rank:,} on: {docs}"
    if len(line) <= width:
        return line
    whole = line[: width - 1].rpartition(" ")[0]  # ids are not broken
    return f"{whole.rstrip(' ,')} …" if " documents " in whole else f"{line[: width - 2]} …"


def _effect(audit: Audit, report: Report, options: OutputOptions) -> list[Part]:
    """How far ties can move each measure, what tools print, and whether an order of ties depends on the labels."""
    finer = NumberFormat(options.numbers.digits + 1, leading_zero=False)
    effects = {effect.measure: effect for effect in audit.effects}
    rows = [
        (
            measure.name,
            estimate_cell(report[measure], measure, options),
            *_effect_cells(effects.get(measure.name), finer),
        )
        for measure in report
    ]
    legend = EFFECT_LEGEND.format(report.provenance.options["oblivious"])
    if report.queries != audit.queries:
        legend = f"Means over {count_noun(report.queries, 'query', 'queries')}. {legend}"
    heads = ["expected [lowest, highest]", "bias", "std", "worst case", "over queries", "effect"]
    table = Table(columns_of(["measure"], heads), rows, notes=(legend, EFFECT_DECIDES_LEGEND))
    parts: list[Part] = [explain_cut_marks(table)]
    if (tools := _tool_table(report, options)) is not None:
        parts += ["", tools]
    return [*parts, *_describe_far_orders(audit)]


def _describe_far_orders(audit: Audit) -> Iterator[str]:
    """Orders of tied documents that are too far from a random one to be left without a question."""
    if audit.knowing:
        far = (
            f"{ORDER_NAMES.get(order, order)} ("
            f"{', '.join(f'{format_z(z)} for {measure}' for measure, z in zs.items())}; {describe_chance(zs.values())})"
            for order, zs in audit.knowing.items()
        )
        yield (
            "Orders of ties that may depend on the labels (a question to check), by their distance from the "
            f"expected value in standard deviations: {'; '.join(far)}."
        )


def _effect_cells(effect: Effect | None, numbers: NumberFormat) -> tuple[str, ...]:
    """Bias, std, range, half the interval over queries, and the grade; counts have none of them."""
    if effect is None:
        return (MISSING,) * 5
    half = MISSING if effect.half_interval is None else f"±{numbers.number(effect.half_interval)}"
    sizes = (numbers.number(effect.std), numbers.number(effect.worst_case))
    return numbers.signed(effect.bias, tiny="≈0"), *sizes, half, effect.grade


def _tool_table(report: Report | None, options: OutputOptions) -> Table | None:
    """What tools print for the measures that ties move most, with equal answers in one row; None if nothing moves."""
    if report is None:
        return None
    moved = [measure for measure in report if shows_ties(report[measure], options.numbers)]
    if not moved:
        return None
    measures = sorted(moved, key=lambda measure: -(report[measure].range or 0.0))[:TOOL_MEASURES]
    printed = {(row.tool, row.measure): _tool_cell(row, options.numbers) for row in report.oblivious_by_tool()}
    answers: dict[tuple[Cell, ...], list[str]] = {}
    for tool in dict.fromkeys(tool for tool, _ in printed):
        answer = tuple(printed.get((tool, measure.name), Cell("")) for measure in measures)
        if any(cell.text for cell in answer):
            answers.setdefault(answer, []).append(tool)
    rows = [(", ".join(tools), *answer) for answer, tools in answers.items()]
    own = (
        f" {OWN} by another definition of the measure."
        if any(cell.mark for answer in answers for cell in answer)
        else ""
    )
    more = len(moved) - len(measures)
    short = " trm is tie-aware-retrieval-metrics." if any("trm" in tools for tools in answers.values()) else ""
    rest = (
        f" Shown are the measures with the largest worst case; {count_noun(more, 'measure')} more in the JSON document."
        if more
        else ""
    )
    legend = (
        "In brackets the bias: what is printed less what is expected. ? cannot be reproduced; blank: not a measure of "
        f"the tool.{own}{short}{rest}"
    )
    return Table(columns_of(["printed by"], [measure.name for measure in measures]), rows, notes=(legend,))


def _tool_cell(row: ToolValue, numbers: NumberFormat) -> Cell:
    if row.value is None or row.bias is None:
        return Cell("?")
    if row.note:  # its difference is not one of the order of ties alone
        return Cell(numbers.number(row.value), mark=OWN)
    return Cell(numbers.number(row.value), f"({numbers.signed(row.bias, tiny='≈0')})")


def _describe_fidelity(audit: Audit, numbers: NumberFormat) -> str:
    fidelity = audit.fidelity
    assert fidelity is not None
    if fidelity.inverted is None or fidelity.tied is None:
        return "The reference orders no pair of documents that both runs list."
    pairs = (
        f"of {fidelity.pairs:,} pairs that it orders, {format_percent(fidelity.inverted)} are inverted and "
        f"{format_percent(fidelity.tied)} tied"
    )
    alike = f"τ {numbers.number(fidelity.tau)}, RBO {numbers.number(fidelity.rbo)}"
    finer = NumberFormat(numbers.digits + 1, leading_zero=False)
    gaps = ", ".join(f"{measure} {finer.signed(gap, tiny='≈0')}" for measure, gap in fidelity.gap.items())
    beside = f" Expected values beside it: {gaps}." if gaps else ""
    return f"Against the reference, in {count_noun(fidelity.queries, 'query', 'queries')}: {pairs}; {alike}.{beside}"
