"""`Audits`: what audits show: of one run the sentence and the facts behind it, of several a row for each run.

With `explain`, a run also shows its tie groups, the effect on each measure, what each tool prints, all lines of code,
and how to read this.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tiewise.analysis.auditing.audits import AUDIT_COLUMNS, AUDIT_KEYS, Audit
from tiewise.analysis.auditing.causes import LIBRARIES
from tiewise.analysis.auditing.consequences import GRADES, RANKED, TOP, gravest_effect
from tiewise.analysis.grids import GRIDS
from tiewise.analysis.reports import Z_LIMIT
from tiewise.metrics.definition import Measure
from tiewise.results.base import Result
from tiewise.results.estimates import STATISTICS, drop_empty, shows_ties, statistic_cells, statistic_columns
from tiewise.results.model import Code, Column, Hint, Paragraph, Part, Section, Style, Table, columns_of
from tiewise.results.view import View
from tiewise.results.wording import (
    capitalize_first,
    count_noun,
    describe_chance,
    format_percent,
    format_ranks,
    format_z,
    merge_notes,
    spell_option,
)
from tiewise.ties.orders import ORDER_NAMES

EXAMPLES = 3  # of the largest tie groups
#: Attributes that `explain` shows.
COUNTS = (
    *("distinct", "tied_rows", "constant_queries", "nearly_constant_queries", "cut_lists", "float32_ties"),
    *("identical_rows", "rounded_share", "near_share"),
)
EXPLANATION = (
    "by tie order: lowest – highest, the worst case in every query at once. bias: what {} prints less what is "
    "expected. ±95%: half of the interval for other queries. Effect of ties, by x = max(|bias|, 2 std): harmless: x "
    "is below .0005 and below a tenth of ±95%; changes the number: x is larger, or lists may have been cut inside a "
    "tie group; can change the winner: x reaches ±95%, or a tool or at least 2.5% of random orders reverses a check "
    "or a difference that is shown."
)


class Audits(Result, dict[str, Audit]):
    """Audits by the names of their runs; the name of a single one may be empty.

    >>> import tiewise as tw
    >>> tied, fine = tw.audit({"q": {"a": 1.0, "b": 1.0}}), tw.audit({"q": {"a": 1.2, "b": 1.1}})
    >>> print(Audits({"tied": tied, "fine": fine}).to_text())
    2 runs
    run   tied  largest  cause     effect of ties
    tied  100%        2  constant  unknown
    fine    0%        1  –         none
    Judgments show what ties change: qrels='FILE'.
    How to read this, each run's cause and remedy: explain=True
    <BLANKLINE>
    """

    _schema = Audit._schema

    @property
    def notes(self) -> list[str]:
        """What a reader should know; of several runs, with the names of the runs for which it is true."""
        if len(self) == 1:
            return list(next(iter(self.values())).notes)
        return merge_notes((name, audit.notes) for name, audit in self.items())

    def _document(self, view: View) -> dict[str, Any]:
        runs = [audit._document(view) | {"name": name or audit.name} for name, audit in self.items()]
        return runs[0] if len(runs) == 1 else {"runs": runs}

    def _records(self, view: View) -> Table:
        return Table.of_records(AUDIT_COLUMNS, (row for name, audit in self.items() for row in _rows(name, audit)))

    def _section(self, view: View) -> Section:
        if len(self) == 1 and not view.columns and not view.wide:
            ((name, audit),) = self.items()
            return _OneAudit(name, audit, view).section()
        name, gravest = max(self.items(), key=lambda one: _rank(one[1]))
        parts: list[Part] = [self._overview(gravest, view), Paragraph(_sentence(name, gravest), _style(gravest))]
        if not view.explain:
            parts.append(Hint.explain("each run's cause and remedy"))
        else:
            for name, audit in self.items():
                parts += ["", Paragraph(name, "bold"), *_OneAudit(name, audit, view).answer()]
                parts += [capitalize_first(f"{one}.") for one in audit.reversals]
            parts += ["", Paragraph(EXPLANATION.format(_order(gravest) or "a tool"), "dim")]
        return Section(parts, count_noun(len(self), "run"), self.notes)

    def _latex(self, view: View) -> str:
        from tiewise.results.latex import render_latex

        section = self._section(view)
        sentence = next(part.text for part in section.parts if isinstance(part, Paragraph))
        return render_latex(Section(section.tables, f"{section.title}: {sentence}"))

    def _overview(self, gravest: Audit, view: View) -> Table:
        """A row for each run, by the measure of the gravest effect."""
        effect = gravest_effect(gravest.effects)
        measure = effect.measure if effect else ""
        columns = (
            Column("run", shown="always"),
            Column("tied_share", "tied", "right"),
            Column("largest_group", "largest", "right", shown="wide" if measure else "default"),
            Column("cut_lists", "lists that end tied", "right", shown="wide"),
            Column("grid", shown="wide"),
            Column("cause", shown="wide" if measure and gravest.fidelity else "default"),
            *(statistic_columns(measure, _order(gravest)) if measure else ()),
            Column("rbo", "RBO", "right"),
            Column("inverted", align="right", shown="wide"),
            Column("grade", "effect of ties"),
        )
        rows = []
        for name, audit in self.items():
            facts = (format_percent(audit.tied_share), audit.largest_group, audit.cut_lists, audit.grid, audit.cause)
            cells = statistic_cells(audit[measure], view.numbers) if measure else ()
            beside = ("", "")
            if audit.fidelity is not None:
                beside = (view.numbers.number(audit.rbo), format_percent(audit.inverted))
            rows.append((name, *facts, *cells, *beside, GRADES[audit.grade][0]))
        return drop_empty(Table(columns, rows).choose(view), view)


def _rows(name: str, audit: Audit) -> Iterator[dict[str, Any]]:
    """A row for each measure; without judgments, one row."""
    facts = {"run": name} | {key: getattr(audit, key) for key in AUDIT_COLUMNS if hasattr(audit, key)}
    grades = {effect.measure: effect.grade for effect in audit.effects}
    for row in audit.report._records(View()).records() if audit.report is not None else [{}]:
        row = {**row, **facts, "effect": grades.get(str(row.get("measure")))}
        yield {key: row.get(key) for key in AUDIT_COLUMNS}


def _sentence(name: str, gravest: Audit) -> str:
    if gravest.grade == "unknown":
        return f"Judgments show what ties change: {spell_option('qrels', 'FILE')}."
    if gravest.grade == "none" and not gravest.unfaithful:
        return "Ties change nothing in these runs."
    return f"{name}: {gravest.verdict}"


def _rank(audit: Audit) -> tuple[int, int, bool, float]:
    """How grave the effect of ties is; without judgments it is unknown, or there are none."""
    effect = gravest_effect(audit.effects)
    order, size = (RANKED.index(effect.grade_by_order), effect.size) if effect else (0, 0.0)
    return RANKED.index(audit.grade), order, bool(audit.unfaithful), size


def _style(audit: Audit) -> Style:
    """The colour of a verdict: only a result that someone claims is red."""
    if any(one.is_claimed for one in audit.reversals):
        return "bad"
    return "good" if audit.grade in ("none", "harmless") and not audit.unfaithful else "warning"


def _order(audit: Audit) -> str:
    return "" if audit.report is None else audit.report.oblivious_names


class _OneAudit:
    def __init__(self, name: str, audit: Audit, view: View):
        self.name, self.audit, self.view, self.numbers = name, audit, view, view.numbers

    def section(self) -> Section:
        audit = self.audit
        counts = (count_noun(audit.queries, "query", "queries"), count_noun(audit.rows, "row"))
        legend = Paragraph(EXPLANATION.format(_order(audit) or "a tool"), "dim")
        rest = ["", *self.details(), "", legend] if self.view.explain else [Hint.explain("tie groups", "every tool")]
        return Section([*self.answer(), *rest], " · ".join(filter(None, (self.name, *counts))), audit.notes)

    def answer(self) -> list[Part]:
        changes, qrels = "what that changes", spell_option("qrels", "FILE")
        sentence = self.audit.verdict.replace(f"{changes}.", f"{changes}: {qrels}.")
        table = Table((Column("name", ""), Column("value", "")), list(self.facts()))
        return [Paragraph(sentence, _style(self.audit)), table]

    def facts(self) -> Iterator[tuple[str, str]]:
        audit = self.audit
        if audit.reason is None:
            yield "scores", f"{GRIDS[audit.grid].label}, {audit.distinct:,} distinct"
        else:
            yield "cause", audit.reason
            yield "tied", "; ".join(self._tied())
        for measure in self._measures():
            yield measure.name, self._value(measure)
        if audit.fidelity is not None:
            yield "faithful", audit.fidelity.describe(self.numbers)
        if audit.noise is not None:
            yield "scored again", audit.noise.sentence
        if audit.advice is not None:
            yield "optional" if audit.grade in ("none", "harmless") else "do", audit.advice.text
            yield from (("", line.partition("  #")[0]) for line in list(audit.advice.code.values())[:1])

    def _tied(self) -> Iterator[str]:
        audit, across = self.audit, self.audit.across
        yield f"{format_percent(audit.tied_share)} of rows"
        crossed = {rank: lists for rank, lists in across.items() if lists}
        top = {rank: lists for rank, lists in crossed.items() if rank <= TOP} or crossed
        if top:
            rank = max(top, key=lambda rank: (top[rank], rank))
            yield f"{format_percent(top[rank] / audit.queries)} of lists across rank {rank:,}"
        yield f"largest group {audit.largest_group:,}"

    def _measures(self) -> list[Measure]:
        """The measures, those first that ties move."""
        report = self.audit.report
        return [] if report is None else sorted(report, key=lambda one: not shows_ties(report[one], self.numbers))

    def _value(self, measure: Measure) -> str:
        """The value of a measure, its range by tie order, and what a tool prints if that looks different."""
        mean, numbers = self.audit[measure], self.numbers
        cells = dict(zip(STATISTICS, statistic_cells(mean, numbers, is_count=measure.total), strict=True))
        if not shows_ties(mean, numbers):
            return str(cells["expected"])
        text = f"{cells['expected']}, by tie order {cells['ties']}"
        assert self.audit.report is not None
        order = self.audit.report.select(measure).oblivious_names
        does = "gives" if order.startswith("the ") else "prints"
        return f"{text}; {order} {does} {cells['oblivious']}" if numbers.differ(mean.expected, mean.oblivious) else text

    # -- the rest -----------------------------------------------------------------------------------------------

    def details(self) -> Iterator[Part]:
        audit = self.audit
        yield audit.grid_evidence
        counts = {name: getattr(audit, name) for name in COUNTS}
        yield Table.of_facts({AUDIT_KEYS[name].partition(";")[0]: number for name, number in counts.items() if number})
        yield from self._groups()
        if audit.report is not None:
            wide = audit.report._section(View(wide=True, digits=self.numbers.digits + 1, width=self.view.width))
            yield from ("", wide.tables[0]._replace(title=f"Means over {wide.title}", notes=()))
            yield from (capitalize_first(f"{one}.") for one in audit.reversals)
            yield from self._far_orders()
            yield from ("", *audit.report.oblivious_by_tool()._section(self.view).parts)
        if audit.fidelity is not None:
            yield from ("", *audit.fidelity._section(self.view).parts)
        if audit.noise is not None:
            yield from ("", *audit.noise._section(self.view).parts)
        if audit.advice is not None and audit.advice.code:
            yield from ("", audit.advice.text)
            yield Code({LIBRARIES[library]: line for library, line in audit.advice.code.items()})

    def _groups(self) -> Iterator[Part]:
        audit = self.audit
        if not audit.tied_rows:
            return
        sizes = {format_ranks(one.low, one.high): one for one in audit.group_sizes if one.groups}
        counts = [(name, *(f"{getattr(one, name):,}" for one in sizes.values())) for name in ("groups", "rows")]
        yield from ("", Table(columns_of(["group size"], list(sizes)), counts))
        if any(audit.across.values()):
            shares = (format_percent(lists / audit.queries) for lists in audit.across.values())
            columns = columns_of(["across rank"], [f"{rank:,}" for rank in audit.across])
            yield from ("", Table(columns, [("lists with a tie", *shares)]))
        yield ""
        for one in audit.groups[:EXAMPLES]:
            docs = ", ".join(one.docs) + (" …" if one.size > len(one.docs) else "")
            yield f"query {one.query}: {one.size:,} documents score {one.score:.9g}, from rank {one.rank:,} on: {docs}"

    def _far_orders(self) -> Iterator[str]:
        """Orders of tied documents that are too far from a random one to be left without a question."""
        for order, zs in self.audit.z_by_order.items():
            if far := {measure: z for measure, z in zs.items() if abs(z) > Z_LIMIT}:
                shown = ", ".join(f"z {format_z(z)} for {measure}" for measure, z in far.items())
                asked = f"Does {ORDER_NAMES[order]} depend on the labels? It is far from random"
                yield f"{asked}: {shown} ({describe_chance(far.values())})."
