"""One screen on why ties matter, from the example that comes with the package: ``tiewise demo``."""

from __future__ import annotations

from importlib.resources import as_file, files

from tiewise.analysis.evaluating import evaluate
from tiewise.analysis.reports import Report, ToolValue
from tiewise.data.runs import Qrels, Run
from tiewise.io import read_qrels, read_run
from tiewise.metrics.names import parse
from tiewise.metrics.tools import TOOLS
from tiewise.output.grid import Cell, Grid, Line, grid_of, tool_grid
from tiewise.output.numerals import decimal, share
from tiewise.output.table import Drawing
from tiewise.output.view import Named, View

__all__ = ["constant_run", "demo", "example"]

MEASURES = ("RR@10", "nDCG@10")
RUNS = {
    "minilm-bf16": "bfloat16 vectors, bfloat16 product",
    "minilm-hps": "bfloat16 vectors, float32 product",
    "minilm-fp32": "float32 throughout",
}
CANDIDATES = 50
ORDERS = {"docid-desc": "ids descending", "docid-asc": "ids ascending", "given": "as listed", None: "not reproducible"}
OPPOSED = ("trec_eval", "sentence-transformers")  # these two list ties in opposite orders


def demo(width: int | None = None, *, colour: bool = False) -> str:
    """The screen as text."""
    qrels, runs = example()
    drawing = Drawing(width, colour=colour)
    _knowing_nothing(drawing, *constant_run(qrels, runs["minilm-fp32"]))
    drawing.gap()
    _low_precision(drawing, {name: evaluate(qrels, run, MEASURES, complete=True) for name, run in runs.items()})
    drawing.gap()
    drawing.words("Now yours: tiewise evaluate QRELS RUN --tools", "bold")
    return drawing.text()


def example() -> tuple[Qrels, dict[str, Run]]:
    """The judgments and the runs that come with the package."""
    folder = files("tiewise.example")
    with as_file(folder / "qrels.txt") as path:
        qrels = read_qrels(path)
    runs = {}
    for name in RUNS:
        with as_file(folder / f"{name}.trec.gz") as path:
            runs[name] = read_run(path)
    return qrels, runs


def constant_run(qrels: Qrels, run: Run, length: int = CANDIDATES) -> tuple[Qrels, Run]:
    """Judgments and a run that scores every candidate the same, as a reranking data set lists candidates.

    Relevant documents come first, then the best of the others, and ids number them in this order.
    """
    judged, listed = qrels.to_dict(), run.to_dict()
    labels: dict[str, dict[str, float]] = {}
    scores: dict[str, dict[str, float]] = {}
    for query, relevant in judged.items():
        others = (doc for doc in listed[query] if doc not in relevant)
        candidates = [*relevant, *others][:length]
        ids = [f"{query}/{place:03d}" for place in range(len(candidates))]
        labels[query] = {name: relevant[doc] for name, doc in zip(ids, candidates, strict=True) if doc in relevant}
        scores[query] = dict.fromkeys(ids, 0.5)
    return Qrels.from_dict(labels), Run.from_dict(scores)


def _knowing_nothing(drawing: Drawing, qrels: Qrels, run: Run) -> None:
    """A constant scorer, and what each tool prints for it; equal answers stand together."""
    report = evaluate(qrels, run, MEASURES, complete=True)
    drawing.words("1. A scorer that knows nothing gives every candidate the same score. What do tools print?", "bold")
    drawing.words(
        f"{len(qrels.queries)} queries, {CANDIDATES} candidates each, the relevant one first and ids in that order, as "
        "in reranking sets."
    )
    printed = {(row.tool, row.measure): row for row in report.oblivious_by_tool()}
    answers = {tool: [printed.get((tool, measure)) for measure in MEASURES] for tool in TOOLS}
    tools = sorted(answers, key=lambda tool: [_value(row) for row in answers[tool]])
    lines = [Line((tool,), tuple(_answer(row) for row in answers[tool])) for tool in tools]
    expected = tool_grid(report, View()).lines[-1]
    drawing.grid(Grid(("tool",), MEASURES, (*lines, Line(("expected [lowest, highest]",), expected.cells, True))))


def _value(row: ToolValue | None) -> float:
    """By what answers are sorted: those that cannot be reproduced last."""
    if row is None:
        return 0.5
    return 2.0 if row.value is None else row.value


def _answer(row: ToolValue | None) -> Cell:
    if row is None:
        return Cell("")
    rule = TOOLS[row.tool].rule(parse(row.measure))
    return Cell("?" if row.value is None else decimal(row.value, 3), ORDERS.get(rule.order if rule else None, ""))


def _low_precision(drawing: Drawing, reports: dict[str, Report]) -> None:
    """Real scores in bfloat16, and the same vectors with their products in float32."""
    report = reports["minilm-bf16"]
    tied = share(report.provenance.tied_share or 0.0)
    drawing.words(
        f"2. A real model, all-MiniLM-L6-v2, on 1,785 documents. In bfloat16, {tied} of the rows tie.", "bold"
    )
    grid = grid_of([Named(name, report) for name, report in reports.items()], View())
    lines = [
        Line((*line.names, RUNS[line.names[0]]), tuple(Cell(cell.number, cell.detail) for cell in line.cells))
        for line in grid.lines
    ]
    drawing.grid(Grid((*grid.names, "how it is scored"), grid.heads, tuple(lines)))
    drawing.words(_quarrel(reports["minilm-bf16"], reports["minilm-hps"]))


def _quarrel(low: Report, high: Report) -> str:
    """What two tools print for the low precision, and what for the high one."""
    before, after = ([f"{tool} prints {decimal(value, 3)}" for tool, value in _printed(one)] for one in (low, high))
    values = {decimal(value, 3) for _, value in _printed(high)}
    settled = f"both print {values.pop()}" if len(values) == 1 else " and ".join(after)
    return f"{MEASURES[0]} in bfloat16: {' and '.join(before)}. With High-Precision Scoring (hps) {settled}."


def _printed(report: Report) -> list[tuple[str, float]]:
    found = {row.tool: row.value for row in report.oblivious_by_tool() if row.measure == MEASURES[0]}
    return [(tool, found[tool] or 0.0) for tool in OPPOSED]
