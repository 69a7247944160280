"""``tiewise audit``: the ties of runs, their cause, what their order changes, and a remedy."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

import tiewise as tw
from tiewise.analysis.auditing import CUTOFFS, Audits
from tiewise.cli import options
from tiewise.cli.command import MEASURES, OUTPUT, TIES, command, option
from tiewise.cli.conditions import FACTS
from tiewise.cli.inputs import check_stdin_once, collect_warnings, runs_by_name
from tiewise.cli.output import Output, exit_if_failed, failed_checks
from tiewise.cli.selection import DEFAULT_MEASURES, parse_conditions, resolve_measures
from tiewise.data.judgments import Kind
from tiewise.errors import InputError
from tiewise.io import as_qrels

__all__ = ["audit"]

EXAMPLES = (
    "tiewise audit run.trec",
    "tiewise audit bf16.trec --qrels qrels.txt --reference fp32.trec",
    "tiewise audit run.trec --format json | jq .verdict",
    "tiewise audit run.trec --fail-if 'tied_share > 0.1 or cut_lists > 0'",
    "tiewise audit runs/*.trec --qrels qrels.txt -m nDCG@10",
    "tiewise audit run.trec --qrels qrels.txt --fail-if changes_winner",
)


@command("audit", examples=EXAMPLES)
@options.runs
@option("--qrels QRELS", MEASURES, "Relevance judgments, to see how ties change the measures.", type=options.PATH)
@option(
    "--reference RUN",
    MEASURES,
    "The run that these should rank like, such as the scores in float32.",
    type=options.PATH,
)
@options.measures()
@options.relevance
@options.plugins
@options.fail_if(
    "'tied_share > 0.1', 'cut_lists > 0', 'changes_winner' and 'nDCG@10 < 0.45' (with --qrels), 'inverted > 0.01' "
    "(with --reference)."
)
@options.input_format
@options.qrels_format
@options.qrels_kind
@options.EVALUATION["missing"]
@options.drop_self
@options.distances
@options.complete
@option(
    "--cutoff RANK",
    TIES,
    "A rank: count the queries in which a tie crosses it.",
    into="cutoffs",
    type=options.POSITIVE,
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
@options.output("one object; of several runs, one with the list 'runs'")
def audit(
    runs: Sequence[Path],
    *,
    qrels: Path | None,
    reference: Path | None,
    measures: Sequence[str],
    rel: float | None,
    cutoffs: Sequence[int],
    fail_if: Sequence[str],
    library: Any,
    columns: tuple[str, ...],
    wide: bool,
    explain: bool,
    input_format: str | None,
    qrels_format: str | None,
    qrels_kind: Kind,
    names: Sequence[str],
    output: Output,
    **evaluation: Any,
) -> None:
    """Show what made the ties of a run, what they change, and what to do.

    With judgments it shows how far ties move each measure; for several runs also whether they can change the winner.
    With a reference run, such as the same scores in float32, it shows how far the rankings differ.
    """
    if measures and qrels is None:
        raise InputError("-m needs judgments: give --qrels.")
    files = runs_by_name(runs, names)
    conditions = parse_conditions(fail_if, rel, facts=FACTS)
    chosen = resolve_measures(measures or DEFAULT_MEASURES, rel, conditions)
    checks: dict[tw.Measure, list[float]] = {}
    for measure, limit in (one for condition in conditions for one in condition.limits):
        checks.setdefault(measure, []).append(limit)
    check_stdin_once([*runs, qrels, reference])
    with collect_warnings() as warned:
        judged = None if qrels is None else as_qrels(qrels, format=qrels_format, kind=qrels_kind)
        whole = {name: tw.read_run(path, format=input_format) for name, path in files.items()}
        other = None if reference is None else tw.read_run(reference)
        compared = [measure for measure in chosen if not measure.total]
        pairs = []
        if judged is not None and len(whole) > 1 and compared:
            pairs = list(tw.compare(judged, whole, compared, **evaluation).pairs())
        found = {
            name: tw.audit(
                run,
                qrels=judged,
                reference=other,
                measures=chosen,
                cutoffs=cutoffs or CUTOFFS,
                library=library,
                comparisons=[pair for pair in pairs if name in (pair.a, pair.b)],
                checks=checks,
                **evaluation,
            )
            for name, run in whole.items()
        }
    audits = Audits(found)
    failed = failed_checks(conditions, [(f" for run '{name}'", one) for name, one in found.items()])
    output.show(audits, output.view(columns=columns, wide=wide, explain=explain), warned)
    exit_if_failed(failed)
