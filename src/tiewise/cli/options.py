"""The arguments and options that several commands share, each declared once.

Each is a decorator. The values of many are collected: see `Inputs`, `Selection` and `Output`, whose fields have the
names of options.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import click

from tiewise.analysis.options import Options
from tiewise.cli.command import (
    INPUT,
    MEASURES,
    NOT_NEGATIVE,
    OUTPUT,
    PATH,
    SIGNIFICANCE,
    TIES,
    Number,
    WholeNumber,
    argument,
    complete_from,
    option,
)
from tiewise.io.compression import check_writable
from tiewise.io.formats import FORMATS
from tiewise.metrics.names import measures as all_measures
from tiewise.metrics.tool_rules import TOOLS
from tiewise.results.view import TableFormat
from tiewise.results.wording import SHORT_DTYPES
from tiewise.ties.orders import ORDERS

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def apply_all(*decorators: Decorator) -> Decorator:
    """One decorator for several; help shows their options in this order."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for one in reversed(decorators):
            function = one(function)
        return function

    return decorate


def complete_measure() -> dict[str, str]:
    """The names of the measures, each with its summary."""
    return {name: measure.summary for name, measure in all_measures().items()}


def load_plugins(ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> None:
    """Import the modules of ``--plugin``."""
    for name in value:
        from tiewise.cli.plugins import load_plugin

        load_plugin(name)


# -- arguments and input ------------------------------------------------------------------------------------------

qrels = argument("QRELS", "Relevance judgments; - is standard input.")
run = argument("RUN", "A run; - is standard input.")
runs = argument("RUN...", "One or more runs; - is standard input.", into="runs")
two_runs = argument("RUN...", "Two or more runs; - is standard input.", into="runs")

input_format = apply_all(
    option(
        "--input-format FORMAT",
        INPUT,
        "The format of the runs: trec, msmarco, columns, json, mteb (mteb:subset/split), sentence-transformers, "
        "reranker, rankings, rows or parquet.",
        default_note="recognised from the content",
        shell_complete=complete_from(lambda: FORMATS),
    ),
    option(
        "--input-columns NAMES",
        INPUT,
        "The columns of the runs in their order, such as query,doc,score; - is a column to ignore.",
        default_note="by a header, or where only one reading fits",
    ),
)
qrels_format = option(
    "--qrels-format FORMAT",
    INPUT,
    "The format of the judgments: trec, msmarco, beir, columns:query,doc,label, json, rankings, rows or parquet.",
    default_note="recognised from the content",
    shell_complete=complete_from(lambda: FORMATS),
)

qrels_kind = option(
    "--qrels-kind adhoc|diversity",
    INPUT,
    "diversity: the second column of QRELS is the subtopic for which a document was judged, as diversity measures need "
    "it. adhoc: it is ignored.",
    default="adhoc",
)
formats = apply_all(input_format, qrels_format, qrels_kind)

# -- measures -----------------------------------------------------------------------------------------------------


MEASURE_HELP = (
    "Measures, separated by blanks or commas, as Tiewise, trec_eval, ir_measures, ranx or MTEB spell them: "
    "nDCG@10,20 'P(rel=2)@5' ndcg_cut.5,10. `tiewise measures` lists all."
)


def measures(default: str = "nDCG@10 AP RR P@10 R@100", remark: str = "") -> Decorator:
    """``--measure``, whose help shows the default and the remark, ``--rel`` and ``--plugin``."""
    names = option(
        "-m, --measure NAMES",
        MEASURES,
        f"{MEASURE_HELP}{remark}",
        into="measures",
        multiple=True,
        default_note=default,
        shell_complete=complete_from(complete_measure),
    )
    return apply_all(names, relevance, plugins)


relevance = option(
    "-l, --rel LABEL",
    MEASURES,
    "The lowest label that counts as relevant, for measures whose name does not set rel=.",
    type=Number(min=0),
    default_note="1, or the default of your own measure",
)
plugins = option(
    "--plugin FILE.py",
    MEASURES,
    "A Python file or module with your own measures, imported first.",
    multiple=True,
    is_eager=True,
    expose_value=False,
    callback=load_plugins,
)


def fail_if(examples: str) -> Decorator:
    """``--fail-if``, with examples for the command."""
    return option("--fail-if CONDITION", MEASURES, f"Exit with 3 if this is true: {examples}", multiple=True)


# -- evaluation ---------------------------------------------------------------------------------------------------

#: Where help shows an option of an evaluation, and what the command line adds to it.
PLACES: dict[str, dict[str, Any]] = {
    **{name: {"group": INPUT} for name in ("missing", "no_relevant", "judged_only", "drop_self", "distances", "depth")},
    "oblivious": {
        "group": TIES,
        "callback": lambda ctx, param, value: None if value == "none" else value,
        "shell_complete": complete_from(lambda: [*TOOLS, *ORDERS, "none"]),
    },
    "score_dtype": {"group": TIES, "shell_complete": complete_from(lambda: [*SHORT_DTYPES.values(), "decimal:"])},
    "complete": {"group": TIES},
    "samples": {"group": TIES, "type": WholeNumber(min=2)},
    "seed": {"group": TIES, "type": NOT_NEGATIVE},
}


def _evaluation_option(name: str) -> Decorator:
    """An option of `Options`, as it is declared there."""
    declared, place = Options.__dataclass_fields__[name], dict(PLACES[name])
    if declared.default is not None and declared.default is not False:
        place["default"] = declared.default
    return option(declared.metadata["spec"], place.pop("group"), declared.metadata["help"], **place)


EVALUATION = {name: _evaluation_option(name) for name in PLACES}
#: The options of every evaluation, but for its seed: a comparison has a seed for more than that.
evaluation = apply_all(*(one for name, one in EVALUATION.items() if name != "seed"))

significance = apply_all(
    option(
        "--test NAME",
        SIGNIFICANCE,
        "max-t: the largest paired t-statistic (Student's t for one pair and one measure). tukey: randomised Tukey "
        "HSD. Both test all rows and measures at once; without a baseline, all pairs.",
        type=click.Choice(["max-t", "tukey"]),
        default="max-t",
    ),
    option(
        "--confidence NUMBER",
        SIGNIFICANCE,
        "The confidence of intervals, which hold together. A difference is shown if p < 1 − confidence.",
        default=0.95,
    ),
    option("--seed N", SIGNIFICANCE, "The seed of random draws.", type=NOT_NEGATIVE, default=0),
    option(
        "--orders NAME",
        TIES,
        "independent: each run orders its ties by itself. per-query: one order for all runs of a query. shared: "
        "one order of all documents for all runs and queries, as in a tool that sorts by id.",
        type=click.Choice(["independent", "per-query", "shared"]),
        default="independent",
    ),
)


# -- output -------------------------------------------------------------------------------------------------------

names = option(
    "--name NAME",
    OUTPUT,
    "The name of a run; one for each, in their order.",
    into="names",
    multiple=True,
    default_note="the file's name",
)
per_query = option("-q, --per-query", OUTPUT, "Show each query.")
quiet = option("--quiet", OUTPUT, "Write no notes.")


def explain(what: str) -> Decorator:
    """``--explain``, with what it shows."""
    return option("--explain", OUTPUT, f"Show the rest: {what}.")


columns = apply_all(
    option(
        "--columns NAMES",
        OUTPUT,
        "Only these columns of values; an unknown name lists them.",
        multiple=True,
        callback=lambda ctx, param, value: tuple(name for text in value for name in re.split(r"[\s,]+", text) if name),
        default_note="those that most people need",
    ),
    option("--wide", OUTPUT, "All columns that apply."),
)


def check_output(ctx: click.Context, param: click.Parameter, value: Path | None) -> Path | None:
    """A path that can be written; any other is an error before anything is read."""
    if value is not None and not ctx.resilient_parsing:
        check_writable(value)
    return value


def output_path(metavar: str = "FILE", compression: str = ".gz, .zst, .bz2 and .xz compress") -> Decorator:
    """``--output``, with the file names that it compresses."""
    return option(
        f"-o, --output {metavar}",
        OUTPUT,
        f"Write to a file, completely or not at all; {compression}.",
        into="path",
        type=PATH,
        callback=check_output,
        default="-",
        default_note="standard output",
    )


def figure(what: str) -> Decorator:
    """``--figure``, with what it shows."""
    return option(
        "--figure FILE", OUTPUT, f"Also draw {what}, as .svg, .png, .pdf, .html or .json; needs the extra 'report'."
    )


def output(formats: Any = TableFormat) -> Decorator:
    """The options of a result in many formats, for `Output`."""
    known = get_args(formats)
    return apply_all(
        option(
            "--format FORMAT",
            OUTPUT,
            f"{', '.join(known[:-1])} or {known[-1]}.",
            type=click.Choice(known),
            default_note="table; with -o by the file's suffix",
        ),
        option(
            "-p, --digits N",
            OUTPUT,
            "Digits after the decimal point.",
            type=WholeNumber(0, 17),
            default_note="3 for people, 4 in trec, else all",
        ),
        output_path(),
        quiet,
    )


def short_output(group: str) -> Decorator:
    """The same with short help in one group, and without ``--digits``."""
    known = get_args(TableFormat)
    return apply_all(
        option("--format FORMAT", group, ", ".join(known), type=click.Choice(known)),
        option(
            "-o, --output FILE",
            group,
            "Write to a file, in the format of its suffix.",
            into="path",
            type=PATH,
            callback=check_output,
        ),
        option("--quiet", group, "Write no notes."),
    )
