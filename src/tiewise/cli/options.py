"""The arguments and options that several commands share, each declared once.

Each is a decorator. `evaluation` and `output` add several options, which the command gets as one object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from pathlib import Path
from typing import Any, get_args

import click

from tiewise.cli.command import INPUT, MEASURES, OUTPUT, SIGNIFICANCE, TIES, argument, complete_from, option
from tiewise.io.formats import FORMATS
from tiewise.metrics.names import measures as all_measures
from tiewise.metrics.tool_rules import TOOLS
from tiewise.output import TableFormat
from tiewise.ties.orders import ORDERS

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

PATH = click.Path(path_type=Path, readable=False)  # the reader checks whether it can be read


class WholeNumber(click.IntRange):
    """A whole number within limits; click calls it an "integer range" in messages."""

    name = "whole number"


class Number(click.FloatRange):
    """A number within limits."""

    name = "number"


POSITIVE, NOT_NEGATIVE = WholeNumber(min=1), WholeNumber(min=0)
DTYPES = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}


def apply_all(decorators: Iterable[Decorator]) -> Decorator:
    """One decorator for several; help shows their options in this order."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for one in reversed([*decorators]):
            function = one(function)
        return function

    return decorate


def complete_measure() -> dict[str, str]:
    """The names of the measures, each with its summary."""
    return {name: measure.summary for name, measure in all_measures().items()}


def load_plugins(ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> None:
    """Import the modules of ``--plugin``."""
    from tiewise.cli.plugins import load_plugin

    for name in value:
        load_plugin(name)


# -- arguments and input ------------------------------------------------------------------------------------------

qrels = argument("QRELS", "Relevance judgments; - is standard input.", type=PATH)
run = argument("RUN", "A run; - is standard input.", type=PATH)
runs = argument("RUN...", "One or more runs; - is standard input.", into="runs", type=PATH)
two_runs = argument("RUN...", "Two or more runs; - is standard input.", into="runs", type=PATH)

input_format = option(
    "--input-format FORMAT",
    INPUT,
    "The format of the runs: trec, msmarco, json, mteb (mteb:subset/split), sentence-transformers, reranker or "
    "parquet.",
    default_note="recognised from the content",
    shell_complete=complete_from(lambda: FORMATS),
)
qrels_format = option(
    "--qrels-format FORMAT",
    INPUT,
    "The format of the judgments: trec, msmarco, beir, json or parquet.",
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

# -- measures -----------------------------------------------------------------------------------------------------


def measures(default: str = "nDCG@10 AP RR P@10 R@100", remark: str = "") -> Decorator:
    """``--measure``; help shows the default and the remark."""
    return option(
        "-m, --measure NAMES",
        MEASURES,
        "Measures, separated by blanks or commas, as Tiewise, trec_eval, ir_measures, ranx or MTEB spell them: "
        f"nDCG@10,20 'P(rel=2)@5' ndcg_cut.5,10. `tiewise measures` lists all.{remark}",
        into="measures",
        multiple=True,
        default_note=default,
        shell_complete=complete_from(complete_measure),
    )


relevance = option(
    "-l, --rel LABEL",
    MEASURES,
    "The lowest label that counts as relevant, for measures whose name does not set rel=.",
    type=Number(min=0),
    default_note="1, or the default of your own measure",
    old_names=["--level"],
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

depth = option("-M, --depth N", INPUT, "Use only the first N ranks of each run.", type=POSITIVE)
drop_self = option("--drop-self", INPUT, "Remove documents that have the id of their query, as BEIR does.")
distances = option("--distances", INPUT, "The scores are distances, lowest first: negate them.")
complete = option("--complete", TIES, "The lists are complete: none was truncated inside its last tie group.")

EVALUATION = {
    "missing": option(
        "--missing zero|skip|error",
        INPUT,
        "Judged queries that are not in the run count as 0, are skipped, or are an error.",
        default="zero",
    ),
    "no_relevant": option(
        "--no-relevant zero|skip",
        INPUT,
        "Queries without a relevant document count as 0, or are skipped.",
        default="zero",
    ),
    "judged_only": option(
        "-J, --judged-only",
        INPUT,
        "Remove unjudged documents, and those with a negative label, from the runs, as trec_eval does.",
    ),
    "drop_self": drop_self,
    "distances": distances,
    "depth": depth,
    "oblivious": option(
        "--oblivious NAME",
        TIES,
        "The tie order of the oblivious value: that of a tool (trec_eval, pytrec_eval, ir_measures, "
        "sentence-transformers ...), given, docid-desc, docid-asc, rank (the rank column), or none.",
        default="trec_eval",
        callback=lambda ctx, param, value: None if value == "none" else value,
        shell_complete=complete_from(lambda: [*TOOLS, *ORDERS, "none"]),
    ),
    "score_dtype": option(
        "--score-dtype TYPE",
        TIES,
        "Round scores to float32, float16, bfloat16 (fp32, fp16, bf16) or decimal:N first. This can create ties.",
        callback=lambda ctx, param, value: DTYPES.get(value, value),
        shell_complete=complete_from(lambda: [*DTYPES.values(), "decimal:"]),
    ),
    "complete": complete,
    "samples": option(
        "--samples N",
        TIES,
        "The number of random orders for statistics that have no closed form and too many arrangements to enumerate.",
        type=WholeNumber(min=2),
        default=1000,
    ),
}

seed = option("--seed N", TIES, "The seed of these random orders.", type=WholeNumber(min=0), default=0)


def evaluation(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of every evaluation; the command gets them as the dictionary `evaluation`."""

    @wraps(command)
    def collected(**values: Any) -> Any:
        return command(evaluation={name: values.pop(name) for name in EVALUATION}, **values)

    return apply_all(EVALUATION.values())(collected)


significance = apply_all(
    [
        option(
            "--test NAME",
            SIGNIFICANCE,
            "The paired test over queries: permutation (sign flips), t (Student's) or wilcoxon (signed ranks).",
            type=click.Choice(["permutation", "t", "wilcoxon"]),
            default="permutation",
        ),
        option("--confidence NUMBER", SIGNIFICANCE, "The confidence of intervals.", type=float, default=0.95),
        option(
            "--resamples N",
            SIGNIFICANCE,
            "The number of resamples of the queries and sign flips.",
            type=int,
            default=10_000,
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
    ]
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
quiet = option("--quiet", OUTPUT, "Write no notes to standard error.")


def output_path(metavar: str = "FILE", compression: str = ".gz, .zst, .bz2 and .xz compress") -> Decorator:
    """``--output``, with the file names that it compresses."""
    return option(
        f"-o, --output {metavar}",
        OUTPUT,
        f"Write to a file, completely or not at all; {compression}.",
        type=PATH,
        default="-",
        default_note="standard output",
    )


def figure(what: str) -> Decorator:
    """``--figure``, with what it shows."""
    return option(
        "--figure FILE",
        OUTPUT,
        f"Also draw {what}, as .svg, .png, .pdf, .html or .json; needs the extra 'report'.",
        type=PATH,
    )


def output(json: str, formats: Any = TableFormat) -> Decorator:
    """The options of a result in many formats; the command gets them as one `Output`. `json` says what JSON holds."""
    known = get_args(formats)
    described = [f"json ({json})" if one == "json" else one for one in known]
    decorate = apply_all(
        [
            option(
                "--format FORMAT",
                OUTPUT,
                f"{', '.join(described[:-1])} or {described[-1]}.",
                type=click.Choice(known),
                default_note="table on a terminal, else tsv; with -o by the file's suffix",
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
        ]
    )

    return _collect_output(decorate)


def short_output(group: str) -> Decorator:
    """The same with short help in one group, and without ``--digits``."""
    known = get_args(TableFormat)
    formats = option("--format FORMAT", group, ", ".join(known), type=click.Choice(known))
    path = option("-o, --output FILE", group, "Write to a file, in the format of its suffix.", type=PATH)
    return _collect_output(apply_all([formats, path, option("--quiet", group, "Write no notes to standard error.")]))


def _collect_output(decorate: Decorator) -> Decorator:
    def collect(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def collected(format: Any, output: Path | None, quiet: bool, digits: int | None = None, **values: Any) -> Any:
            from tiewise.cli.output import STANDARD_OUTPUT, Output

            return command(output=Output.resolve(format, output or STANDARD_OUTPUT, digits, quiet), **values)

        return decorate(collected)

    return collect
