"""``tiewise audit``: the ties of runs, their cause, what their order changes, and a remedy."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

import tiewise as tw
from tiewise.analysis.auditing import CUTOFFS, Audits
from tiewise.analysis.auditing.audits import open_audited
from tiewise.analysis.evaluating import DEFAULT_MEASURES
from tiewise.cli import options
from tiewise.cli.command import MEASURES, OUTPUT, TIES, command, option
from tiewise.cli.conditions import FACTS
from tiewise.cli.inputs import Inputs, collect_warnings
from tiewise.cli.output import Output, failed_checks
from tiewise.cli.progress import progress
from tiewise.cli.selection import Selection
from tiewise.errors import InputError

EXAMPLES = (
    "tiewise audit run.trec",
    "tiewise audit bf16.trec --qrels qrels.txt --reference fp32.trec",
    "tiewise audit run.trec --fail-if 'tied_share > 0.1 or cut_lists > 0'",
    "tiewise audit run.trec --qrels qrels.txt --fail-if changes_winner",
)


@command("audit", Inputs, Selection, Output, examples=EXAMPLES)
@options.runs
@option("--qrels QRELS", MEASURES, "Relevance judgments, to see how ties change the measures.")
@option("--reference RUN", MEASURES, "The run that these should rank like, such as the scores in float32.")
@option(
    "--rerun SECOND",
    MEASURES,
    "The same system scored again: show the noise of the scores.",
    multiple=True,
    repeatable=False,
)
@options.measures()
@options.fail_if(
    "'tied_share > 0.1', 'cut_lists > 0', 'changes_winner' and 'nDCG@10 < 0.45' (with --qrels), 'inverted > 0.01' "
    "(with --reference)."
)
@options.formats
@options.EVALUATION["missing"]
@options.EVALUATION["drop_self"]
@options.EVALUATION["distances"]
@options.EVALUATION["complete"]
@option(
    "--cutoff RANK",
    TIES,
    "A rank: count the queries in which a tie crosses it.",
    into="cutoffs",
    multiple=True,
    default_note=" ".join(map(str, CUTOFFS)),
)
@option(
    "--library NAME",
    OUTPUT,
    "Show the remedy as code for sentence-transformers, transformers, index, reranker or own.",
    type=click.Choice(["sentence-transformers", "transformers", "index", "reranker", "own"]),
    default_note="the likeliest; all with --explain",
)
@options.columns
@options.explain("tie groups, the effect on each measure, every tool, all lines of code, how to read it")
@options.names
@options.output()
def audit(
    inputs: Inputs,
    selection: Selection,
    output: Output,
    *,
    reference: Path | None,
    rerun: Sequence[Path],
    cutoffs: Sequence[int],
    library: Any,
    **evaluation: Any,
) -> None:
    """Show what made the ties of a run, what they change, and what to do.

    With judgments it shows how far ties move each measure; for several runs also whether they can change the winner.
    With a reference run, such as the same scores in float32, it shows how far the rankings differ.
    """
    if selection.measures and inputs.qrels is None:
        raise InputError("-m needs judgments: give --qrels.")
    if rerun and len(inputs.runs) > 1:
        raise InputError(f"--rerun is a second run of one system. Here are {len(inputs.runs)} runs: audit each alone.")
    if len(rerun) > 1:
        raise InputError(f"An audit compares a run with one second run. Here are {len(rerun)}: give --rerun once.")
    conditions = selection.conditions(facts=FACTS)
    chosen = selection.resolve(DEFAULT_MEASURES, conditions)
    checks: dict[tw.Measure, list[float]] = {}
    for measure, limit in (one for condition in conditions for one in condition.limits):
        checks.setdefault(measure, []).append(limit)
    with collect_warnings() as warned:
        judged = None if inputs.qrels is None else inputs.read_qrels()
        edits = {name: evaluation[name] for name in ("drop_self", "distances")}
        needs_rows = reference is not None or bool(rerun)
        runs = {name: open_audited(run, needs_rows=needs_rows, **edits) for name, run in inputs.open_runs().items()}
        other = None if reference is None else inputs.open_run(reference)
        again = inputs.open_run(rerun[0]) if rerun else None
        compared = [measure for measure in chosen if not measure.total]
        pairs = []
        if judged is not None and len(runs) > 1 and compared:
            pairs = list(tw.compare(judged, runs, compared, **evaluation).pairs())
        found = {}
        with progress("runs", quiet=output.quiet) as callback:
            for name, run in runs.items():
                found[name] = tw.audit(
                    run,
                    qrels=judged,
                    reference=other,
                    rerun=again,
                    measures=chosen,
                    cutoffs=cutoffs or CUTOFFS,
                    library=library,
                    comparisons=[pair for pair in pairs if name in (pair.a, pair.b)],
                    checks=checks,
                    **evaluation,
                )
                if callback is not None:
                    callback(len(found), len(runs))
    output.show(Audits(found), warned, failed=failed_checks(conditions, found))
