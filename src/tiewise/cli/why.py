"""``tiewise why``: why two numbers differ."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import tiewise as tw
from tiewise.analysis.number_causes import DEFAULT_MEASURE
from tiewise.cli import options
from tiewise.cli.command import MEASURES, command, complete_from, option
from tiewise.cli.inputs import Inputs, collect_warnings
from tiewise.cli.output import Output
from tiewise.cli.selection import Selection
from tiewise.errors import InputError
from tiewise.metrics.tool_rules import TOOLS
from tiewise.ties.orders import ORDERS

EXAMPLES = (
    "tiewise why qrels.txt run.trec -m nDCG@10 --tool trec_eval --tool mteb",
    "tiewise why qrels.txt run.trec -m AP --tool 'trec_eval -c'",
    "tiewise why qrels.txt run.trec -m AP --numbers .1957 .1958",
    "tiewise why qrels.txt run.trec -m nDCG@10 --other again.trec --explain",
)


@command("why", Output, examples=EXAMPLES)
@options.qrels
@options.run
@option(
    "-m, --measure NAME",
    MEASURES,
    f"The measure of both numbers, as in `tiewise evaluate` (default: {DEFAULT_MEASURE}; --numbers need it).",
    into="measures",
    multiple=True,
    repeatable=False,
    shell_complete=complete_from(options.complete_measure),
)
@options.relevance
@options.plugins
@option(
    "--tool NAME",
    MEASURES,
    "A tool that printed a number, in quotes with its options: -c, -J, -l N, -M N, --missing, --no-relevant, "
    "--drop-self, --keep-self, --labels any|cut|round, --score-dtype TYPE, --order ORDER, and parameters of the "
    "measure. 'tiewise' is the expected value. Give two, or one to compare with it; with --numbers, none or "
    "those that printed them; with --other, none or one.",
    into="tools",
    multiple=True,
    shell_complete=complete_from(lambda: ["tiewise", *TOOLS, *ORDERS]),
)
@option(
    "--numbers A B",
    MEASURES,
    "Two printed numbers, with all their digits: what prints them?",
    metavar="A B",
    type=str,
    nargs=2,
)
@option("--other RUN", MEASURES, "A second run that should have the same value.")
@options.formats
@options.EVALUATION["distances"]
@options.explain("every cause, what it is and what to do about it, other explanations of printed numbers")
@options.output()
def why(
    output: Output,
    *,
    qrels: Path,
    run: Path,
    measures: tuple[str, ...],
    rel: float | None,
    tools: tuple[str, ...],
    numbers: tuple[str, str] | None,
    other: Path | None,
    distances: bool,
    **formats: Any,
) -> None:
    """Show why two numbers differ: causes, with what each adds to the difference.

    The numbers are those of two tools (--tool, twice; once for a tool and the expected value), two that somebody
    printed (--numbers), or those of two runs that should be the same (--other).
    """
    if not (tools or numbers or other):
        raise InputError("Give --tool, --numbers, or --other.")
    chosen = Selection(list(measures), rel).resolve([] if numbers else [DEFAULT_MEASURE])
    if len(chosen) > 1:
        raise InputError(f"Give one measure, not {len(chosen)}.")
    inputs = Inputs([run] if other is None else [run, other], qrels=qrels, **formats)
    with collect_warnings() as warned:
        judged, runs = inputs.read_qrels(), [*inputs.open_runs().values()]
        found = tw.why(
            judged,
            runs[0],
            chosen[0] if chosen else None,
            tools=tools,
            numbers=numbers or (),
            other=None if other is None else runs[1],
            distances=distances,
        )
    output.show(found, warned)
