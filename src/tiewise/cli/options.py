"""What options and arguments are called and what their help says: once, for all the commands that take them.

A command takes an option by naming its type here and the value that it has when it is not given.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from tiewise.io.formats import FORMATS
from tiewise.metrics.names import measures
from tiewise.metrics.tools import TOOLS
from tiewise.output import Format, SheetFormat, Value
from tiewise.output.view import EXTRAS
from tiewise.ties.orders import ORDERS

__all__ = [
    "MEASURES",
    "OUTPUT",
    "QUERIES",
    "SHORT_TYPES",
    "TIES",
    "WHERE",
    "Address",
    "AuditFailIf",
    "AuditFormat",
    "Baseline",
    "ChanceSeed",
    "Columns",
    "CompareFailIf",
    "ComparedMeasures",
    "Comparison",
    "Complete",
    "Confidence",
    "CountMissing",
    "Cutoffs",
    "Depth",
    "Digits",
    "Edge",
    "Engine",
    "FailIf",
    "InputFormat",
    "JudgedBy",
    "JudgedOnly",
    "Level",
    "Library",
    "ManyRunFiles",
    "Measures",
    "Missing",
    "Names",
    "NoRelevant",
    "NoSummary",
    "Oblivious",
    "Orders",
    "Output",
    "OutputFormat",
    "PageFile",
    "PairsOutputFormat",
    "PerQuery",
    "Phi",
    "Plugins",
    "PointsOutputFormat",
    "QrelsFile",
    "QrelsFormat",
    "Quiet",
    "ReferenceFile",
    "ReferenceName",
    "RunFile",
    "RunFiles",
    "Samples",
    "ScoreType",
    "Seed",
    "ShownValue",
    "SignificanceTest",
    "Title",
    "Tools",
    "Unjudged",
    "Wide",
    "complete_measure",
]

SHORT_TYPES = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}


def complete_measure() -> list[tuple[str, str]]:
    """The names of the measures, with what each of them is."""
    return [(name, measure.summary) for name, measure in measures().items()]


def _complete_comparison() -> list[tuple[str, str]]:
    return [(name, measure.summary) for name, measure in measures().items() if measure.compares]


def _complete_order() -> list[str]:
    return [*TOOLS, *ORDERS, "none"]


def _complete_input_format() -> list[str]:
    return list(FORMATS)


def _complete_columns() -> list[str]:
    return list(EXTRAS)


MEASURES, QUERIES, TIES, OUTPUT = "What is measured", "Queries and documents", "Ties", "Output"
WHERE = "Where it runs"

QrelsFile = Annotated[Path, typer.Argument(metavar="QRELS", help="The judgments; - is standard input.")]
RunFiles = Annotated[list[Path], typer.Argument(metavar="RUN", help="One run or several; - is standard input.")]
ManyRunFiles = Annotated[list[Path], typer.Argument(metavar="RUN", help="Two runs or more; - is standard input.")]
RunFile = Annotated[Path, typer.Argument(metavar="RUN", help="The run; - is standard input.")]

Measures = Annotated[
    list[str] | None,
    typer.Option(
        "--measure",
        "-m",
        metavar="NAMES",
        help="Measures, split at blanks and commas, in our spelling or that of trec_eval, ir_measures, ranx or MTEB: "
        "nDCG@10,20 'P(rel=2)@5' ndcg_cut.5,10. Repeatable; `tiewise measures` lists them.",
        show_default="nDCG@10 AP RR P@10 R@100",
        autocompletion=complete_measure,
        rich_help_panel=MEASURES,
    ),
]
Comparison = Annotated[
    str,
    typer.Option(
        "--measure",
        "-m",
        metavar="NAME",
        help="A measure of two rankings: RBO, RBA or RBR, with parameters and a cutoff: 'RBO(phi=0.95)@100'.",
        autocompletion=_complete_comparison,
        rich_help_panel=MEASURES,
    ),
]
Phi = Annotated[
    float | None,
    typer.Option(
        metavar="NUMBER",
        help="How far down one looks, above 0 and below 1, for a measure that does not say phi= itself.",
        show_default="0.9",
        rich_help_panel=MEASURES,
    ),
]
Level = Annotated[
    float | None,
    typer.Option(
        "--level",
        "-l",
        metavar="LABEL",
        min=0,
        help="The lowest label that is relevant, for measures that do not say rel= themselves.",
        show_default="1, or what a measure of your own has",
        rich_help_panel=MEASURES,
    ),
]
Plugins = Annotated[
    list[str] | None,
    typer.Option(
        "--plugin",
        metavar="FILE.py",
        help="A file or module with measures of your own, imported first. Repeatable.",
        rich_help_panel=MEASURES,
    ),
]
FailIf = Annotated[
    list[str] | None,
    typer.Option(
        "--fail-if",
        metavar="CONDITION",
        help="Exit with 3 if this holds for a run: 'nDCG@10 < 0.45', 'range(nDCG@10) > 0.01', 'abs(bias(AP)) > 0.005 "
        "or z(RR) > 4'. Of a measure: expected (also by its name alone) minimum maximum std oblivious bias range z "
        "residual. Repeatable.",
        rich_help_panel=MEASURES,
    ),
]
Missing = Annotated[
    Literal["zero", "skip", "error"] | None,
    typer.Option(
        help="Judged queries that the run does not have score 0, are left out, or are an error.",
        show_default="zero",
        rich_help_panel=QUERIES,
    ),
]
CountMissing = Annotated[
    bool, typer.Option("-c", help="The same as --missing zero, as in trec_eval.", rich_help_panel=QUERIES)
]
NoRelevant = Annotated[
    Literal["zero", "skip"],
    typer.Option(help="Queries without a relevant document count, or are left out.", rich_help_panel=QUERIES),
]
JudgedOnly = Annotated[
    bool,
    typer.Option(
        "--judged-only",
        "-J",
        help="Take unjudged documents, and those with a label below 0, out of the lists, as trec_eval does.",
        rich_help_panel=QUERIES,
    ),
]
Depth = Annotated[
    int | None,
    typer.Option("--depth", "-M", metavar="N", min=1, help="Only the first N ranks count.", rich_help_panel=QUERIES),
]
Edge = Annotated[
    Literal["extend", "shrink", "error"],
    typer.Option(
        help="Where a depth ends inside a tie group: take the group whole, leave it out, or stop.",
        rich_help_panel=TIES,
    ),
]
InputFormat = Annotated[
    str | None,
    typer.Option(
        metavar="FORMAT",
        help="The format of the runs: trec, msmarco, json, mteb (mteb:subset/split), sentence-transformers or parquet.",
        show_default="recognised from the content",
        autocompletion=_complete_input_format,
        rich_help_panel=QUERIES,
    ),
]
QrelsFormat = Annotated[
    str | None,
    typer.Option(
        metavar="FORMAT",
        help="The format of the judgments: trec, msmarco, beir, json or parquet.",
        show_default="recognised from the content",
        autocompletion=_complete_input_format,
        rich_help_panel=QUERIES,
    ),
]
Oblivious = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="The one order of ties whose value stands beside the expectation: that of a tool (trec_eval, pytrec_eval, "
        "ir_measures, sentence-transformers ...), given, docid-desc, docid-asc, rank, or none.",
        autocompletion=_complete_order,
        rich_help_panel=TIES,
    ),
]
ScoreType = Annotated[
    str | None,
    typer.Option(
        "--score-dtype",
        metavar="TYPE",
        help="Read scores as float32, float16, bfloat16 (fp32, fp16, bf16) or decimal:N first, which may make ties.",
        autocompletion=lambda: [*SHORT_TYPES.values(), "decimal:"],
        rich_help_panel=TIES,
    ),
]
Complete = Annotated[
    bool,
    typer.Option(
        "--complete", help="The lists are whole: none was cut inside its last tie group.", rich_help_panel=TIES
    ),
]
Tools = Annotated[
    bool, typer.Option("--tools", help="Show what each known tool prints for the run.", rich_help_panel=TIES)
]
Engine = Annotated[
    Literal["local", "ray"],
    typer.Option(
        metavar="NAME",
        help="local: each RUN is a run. ray: all of them (files, folders, quoted patterns) are shards of one run, cut "
        "by query or by document, which the machines of a Ray cluster count.",
        rich_help_panel=WHERE,
    ),
]
Address = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="With --engine ray: the cluster, as in 10.0.0.1:6379, ray://head:10001 or auto.",
        show_default="RAY_ADDRESS, or a Ray of its own on this machine",
        rich_help_panel=WHERE,
    ),
]
PerQuery = Annotated[bool, typer.Option("--per-query", "-q", help="Show each query.", rich_help_panel=OUTPUT)]
NoSummary = Annotated[
    bool, typer.Option("--no-summary", "-n", help="Leave out the means over queries.", rich_help_panel=OUTPUT)
]


def _format_option(formats: str) -> Any:
    return typer.Option(
        "--format",
        metavar="FORMAT",
        help=formats,
        show_default="table on a terminal, else tsv; with -o by the file's suffix",
        rich_help_panel=OUTPUT,
    )


OutputFormat = Annotated[
    Format | None,
    _format_option("table, tsv, csv, json (one object with the list 'runs'), jsonl, latex, markdown, parquet or trec."),
]
PairsOutputFormat = Annotated[
    SheetFormat | None,
    _format_option("table, tsv, csv, json (one object with the list 'pairs'), jsonl, latex, markdown or parquet."),
]
PointsOutputFormat = Annotated[
    SheetFormat | None,
    _format_option("table, tsv, csv, json (one object with the list 'points'), jsonl, latex, markdown or parquet."),
]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAMES",
        help="More columns in table, markdown and latex: minimum maximum range std oblivious bias z residual cut.",
        autocompletion=_complete_columns,
        rich_help_panel=OUTPUT,
    ),
]
Wide = Annotated[
    bool,
    typer.Option("--wide", help="All of std, oblivious, bias, z, residual and cut that apply.", rich_help_panel=OUTPUT),
]
ShownValue = Annotated[
    Value | None,
    typer.Option(
        metavar="NAME",
        help="One number a cell in table, markdown, latex and trec: expected, oblivious, minimum or maximum.",
        show_default="expected; with its range where there is room",
        rich_help_panel=OUTPUT,
    ),
]
Digits = Annotated[
    int | None,
    typer.Option(
        "--digits",
        "-p",
        metavar="N",
        min=0,
        max=17,
        help="Digits behind the point.",
        show_default="3 for people, 4 in trec, else all",
        rich_help_panel=OUTPUT,
    ),
]
Names = Annotated[
    list[str] | None,
    typer.Option(
        "--name",
        metavar="NAME",
        help="What to call a run; once for each, in their order.",
        show_default="the file's name",
        rich_help_panel=OUTPUT,
    ),
]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Write to a file, whole or not at all; - is standard output; .gz, .zst, .bz2 and .xz compress.",
        rich_help_panel=OUTPUT,
    ),
]
PageFile = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE.html",
        help="Write the page to a file, whole or not at all; - is standard output; .html.gz compresses.",
        rich_help_panel=OUTPUT,
    ),
]
Title = Annotated[
    str,
    typer.Option(
        metavar="TEXT", help="What the page is called.", show_default="measure and runs", rich_help_panel=OUTPUT
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", help="No notes on standard error.", rich_help_panel=OUTPUT)]
Seed = Annotated[int, typer.Option(metavar="N", min=0, help="Equal seeds break ties equally.")]
JudgedBy = Annotated[
    Path | None,
    typer.Option(
        "--qrels", metavar="QRELS", help="Judgments, to see what ties do to the measures.", rich_help_panel=MEASURES
    ),
]
ReferenceFile = Annotated[
    Path | None,
    typer.Option(
        "--reference",
        metavar="RUN",
        help="The run that this one should rank like, such as its float32 scores.",
        rich_help_panel=MEASURES,
    ),
]
ReferenceName = Annotated[
    str | None,
    typer.Option(
        "--reference",
        metavar="NAME",
        help="The run, by its name, that the others should rank like, such as that in float32.",
        show_default="the finest of runs whose names differ in a precision: minilm-fp32, minilm-bf16",
        rich_help_panel=MEASURES,
    ),
]
Cutoffs = Annotated[
    list[int] | None,
    typer.Option(
        "--cutoff",
        metavar="RANK",
        min=1,
        help="A rank across which to look for ties. Repeatable.",
        show_default="1 5 10 20 50 100 1000",
        rich_help_panel=TIES,
    ),
]
Library = Annotated[
    Literal["sentence-transformers", "transformers", "index", "own"] | None,
    typer.Option(
        help="Whose line of code the remedy shows: sentence-transformers, transformers, index or own.",
        show_default="all of them",
        rich_help_panel=OUTPUT,
    ),
]
AuditFailIf = Annotated[
    list[str] | None,
    typer.Option(
        "--fail-if",
        metavar="CONDITION",
        help="Exit with 3 if this holds: 'tied_share > 0.1', 'cut_lists > 0', 'range(nDCG@10) > 0.01' (with --qrels), "
        "'inverted > 0.01' (with --reference). Repeatable.",
        rich_help_panel=MEASURES,
    ),
]
AuditFormat = Annotated[
    SheetFormat | None, _format_option("table, tsv, csv, json (one object), jsonl, latex, markdown or parquet.")
]
ComparedMeasures = Annotated[
    list[str] | None,
    typer.Option(
        "--measure",
        "-m",
        metavar="NAMES",
        help="Measures, split at blanks and commas. Repeatable; `tiewise measures` lists them. Each one more makes "
        "corrected p-values larger.",
        show_default="nDCG@10",
        autocompletion=complete_measure,
        rich_help_panel=MEASURES,
    ),
]
Baseline = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Compare all others with this run, and with nothing else.",
        show_default="all pairs",
        rich_help_panel=MEASURES,
    ),
]
CompareFailIf = Annotated[
    list[str] | None,
    typer.Option(
        "--fail-if",
        metavar="CONDITION",
        help="Exit with 3 if this holds: 'not certain(A>B, nDCG@10)', 'p(A>B, nDCG@10) > 0.05', 'difference(A>B, AP) < "
        "-0.01'. Of one run against another: certain flip difference minimum maximum std probability p p_holm ci_low "
        "ci_high effect. A measure that only a condition names is not shown and corrects no other. Repeatable.",
        rich_help_panel=MEASURES,
    ),
]
Orders = Annotated[
    Literal["independent", "per-query", "shared"],
    typer.Option(
        help="The ties of each run fall on their own; one order for all runs in each query; or one order of all "
        "documents for all runs and queries, as in a tool that sorts by id.",
        rich_help_panel=TIES,
    ),
]
SignificanceTest = Annotated[
    Literal["permutation", "t", "wilcoxon"],
    typer.Option(
        help="The paired test on the queries: by sign flips, Student's, or Wilcoxon's signed ranks.",
        rich_help_panel=QUERIES,
    ),
]
Confidence = Annotated[
    float, typer.Option(metavar="NUMBER", help="The confidence of intervals.", rich_help_panel=QUERIES)
]
Samples = Annotated[
    int, typer.Option(metavar="N", help="How many resamples and sign flips are drawn.", rich_help_panel=QUERIES)
]
ChanceSeed = Annotated[
    int, typer.Option(metavar="N", min=0, help="Equal seeds draw the same.", rich_help_panel=QUERIES)
]
Unjudged = Annotated[
    bool,
    typer.Option(
        "--unjudged",
        help="Also bound P, RBP, Success, RR and Judged over all that unjudged documents could be worth.",
        rich_help_panel=QUERIES,
    ),
]
