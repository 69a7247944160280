"""``tiewise demo``: one screen that shows why ties matter, from the example that comes with the package."""

from __future__ import annotations

from pathlib import Path

from tiewise.analysis.evaluating import evaluate
from tiewise.analysis.report_tables import Reports
from tiewise.analysis.reports import Report
from tiewise.analysis.tool_values import ToolValue
from tiewise.cli.command import OUTPUT, PATH, command, option
from tiewise.cli.output import write_section
from tiewise.cli.program import print_note
from tiewise.data.judgments import Qrels
from tiewise.data.runs import Run
from tiewise.example import file, write_files
from tiewise.io import read_qrels, read_run
from tiewise.metrics.names import parse
from tiewise.metrics.tool_rules import TOOLS
from tiewise.results.estimates import format_ties
from tiewise.results.model import Cell, Column, Paragraph, Part, Section, Table, columns_of
from tiewise.results.view import View
from tiewise.results.wording import format_percent

MEASURES = ("RR@10", "nDCG@10")
RUNS = {
    "minilm-bf16": "bfloat16 vectors, bfloat16 product",
    "minilm-hps": "bfloat16 vectors, float32 product",
    "minilm-fp32": "float32 throughout",
}
CANDIDATES = 50
ORDER_NAMES = {
    "docid-desc": "ids descending",
    "docid-asc": "ids ascending",
    "given": "as listed",
    None: "not reproducible",
}
NUMBERS = View().numbers
OPPOSITE_TOOLS = ("trec_eval", "sentence-transformers")  # these two list ties in opposite orders


@command("demo", examples=("tiewise demo", "tiewise demo --write example && cd example"))
@option(
    "--write FOLDER",
    OUTPUT,
    "Write the files of the example, which the documentation uses, to a folder instead, unless they are there.",
    into="folder",
    type=PATH,
)
def demo(folder: Path | None) -> None:
    """Show on one screen why ties matter: a constant scorer, and a real model in bfloat16."""
    if folder is not None:
        names = write_files(folder)
        print_note(f"{len(names)} files are in {folder}; {folder / 'README.md'} describes them.")
        return
    qrels = read_qrels(file("qrels.txt"))
    runs = {name: read_run(file(f"{name}.trec.gz")) for name in RUNS}
    reports = {name: evaluate(qrels, run, MEASURES, complete=True) for name, run in runs.items()}
    parts: list[Part] = [*_constant_scorer(*_constant_run(qrels, runs["minilm-fp32"])), ""]
    parts += [*_low_precision(reports), "", Paragraph("Now yours: tiewise evaluate QRELS RUN --tools", "bold")]
    write_section(Section(parts))


def _constant_run(qrels: Qrels, run: Run) -> tuple[Qrels, Run]:
    """Judgments and a run that scores every candidate the same, as a reranking data set lists candidates.

    Relevant documents come first, then the best of the others, and ids number them in this order.
    """
    ranked = run.to_dict()
    labels: dict[str, dict[str, float]] = {}
    scores: dict[str, dict[str, float]] = {}
    for query, relevant in qrels.to_dict().items():
        candidates = [*relevant, *(doc for doc in ranked[query] if doc not in relevant)][:CANDIDATES]
        ids = [f"{query}/{place:03d}" for place in range(len(candidates))]
        labels[query] = {name: relevant[doc] for name, doc in zip(ids, candidates, strict=True) if doc in relevant}
        scores[query] = dict.fromkeys(ids, 0.5)
    return Qrels.from_dict(labels), Run.from_dict(scores)


def _constant_scorer(qrels: Qrels, run: Run) -> list[Part]:
    """What each tool prints for a scorer that gives every candidate the same score; equal answers stand together."""
    report = evaluate(qrels, run, MEASURES, complete=True)
    printed = {(row.tool, row.measure): row for row in report.oblivious_by_tool()}
    tools = dict.fromkeys(tool for tool, _ in printed)
    answers = {tool: [printed.get((tool, measure)) for measure in MEASURES] for tool in tools}
    ranked = sorted(answers, key=lambda tool: [_sort_key(row) for row in answers[tool]])
    rows = [(tool, *map(_answer, answers[tool])) for tool in ranked]
    means = [report[measure] for measure in MEASURES]
    cells = (Cell(NUMBERS.number(one.expected), f"({format_ties(one, NUMBERS)})") for one in means)
    expected = ("expected (by tie order)", *cells)
    return [
        Paragraph("1. A constant scorer gives every candidate the same score. What do tools print?", "bold"),
        f"{len(qrels.queries)} queries, {CANDIDATES} candidates each, the relevant ones first and ids in that order, "
        "as in reranking sets.",
        Table(columns_of(["tool"], MEASURES), [*rows, expected], summary=frozenset({len(rows)})),
    ]


def _sort_key(row: ToolValue | None) -> float:
    """The value of an answer; answers that cannot be reproduced come last."""
    if row is None:
        return 0.5
    return 2.0 if row.value is None else row.value


def _answer(row: ToolValue | None) -> Cell:
    if row is None:
        return Cell("")
    rule = TOOLS[row.tool].rule(parse(row.measure))
    return Cell(
        "?" if row.value is None else NUMBERS.number(row.value), ORDER_NAMES.get(rule.order if rule else None, "")
    )


def _low_precision(reports: dict[str, Report]) -> list[Part]:
    """Real scores in bfloat16, and the same vectors with their products in float32."""
    tied = format_percent(reports["minilm-bf16"].provenance.tied_share)
    (table,) = Reports(reports)._section(View(columns=("expected", "ties"))).tables
    rows = [(name, RUNS[name], *cells) for name, *cells in table.rows]
    first, *others = table.columns
    return [
        Paragraph(
            f"2. A real model, all-MiniLM-L6-v2, on 1,785 documents. In bfloat16, {tied} of the rows tie.", "bold"
        ),
        Table((first, Column("how it is scored"), *others), rows),
        _tools_disagree(reports["minilm-bf16"], reports["minilm-hps"]),
    ]


def _tools_disagree(low: Report, high: Report) -> str:
    """What two tools print for the low precision, and for the high one."""
    before, after = (_printed(report) for report in (low, high))
    differ = " and ".join(f"{tool} prints {value}" for tool, value in before.items())
    (same,) = set(after.values())
    return (
        f"{MEASURES[0]} in bfloat16: {differ}. With High-Precision Scoring (hps) both print {same}: it removes ties, "
        "not the rounding of the vectors."
    )


def _printed(report: Report) -> dict[str, str]:
    values = {row.tool: row.value for row in report.oblivious_by_tool() if row.measure == MEASURES[0]}
    return {tool: NUMBERS.number(values[tool]) for tool in OPPOSITE_TOOLS}
