"""``tiewise evaluate``: runs against relevance judgments."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import nullcontext, redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

import tiewise as tw
from tiewise.analysis.evaluating import DEFAULT_MEASURES
from tiewise.analysis.report_tables import Reports
from tiewise.cli import options
from tiewise.cli.command import EXECUTION, INPUT, OUTPUT, TIES, command, option
from tiewise.cli.inputs import Inputs, collect_warnings, name_of_shards
from tiewise.cli.output import Output, failed_checks
from tiewise.cli.progress import progress
from tiewise.cli.selection import Selection, explain_names
from tiewise.errors import InputError, prefix_errors
from tiewise.results.view import Format

EXAMPLES = (
    "tiewise evaluate qrels.txt run.trec -m nDCG@10 -m RR@10",
    "tiewise evaluate -q -c -M 1000 -m ndcg_cut.10 --format trec qrels.txt run.trec",
    "tiewise evaluate qrels.txt run.json --tools --oblivious sentence-transformers",
    "tiewise evaluate qrels.txt 'shards/*.trec.gz' --engine ray --address auto",
    "tiewise evaluate qrels.txt run.trec --fail-if 'range(nDCG@10) > 0.01'",
)


@command("evaluate", Inputs, Selection, Output, examples=EXAMPLES)
@options.qrels
@options.runs
@options.measures()
@options.fail_if(
    "'nDCG@10 < 0.45', 'range(nDCG@10) > 0.01', 'abs(bias(AP)) > 0.005 or z(RR) > 4'. The statistics of a measure are "
    "expected (also without a name), minimum, maximum, std, oblivious, bias, range, z and residual."
)
@options.evaluation
@options.EVALUATION["seed"]
@option(
    "--rerun SECOND",
    TIES,
    "The same system scored again (another batch size, GPU or kernel), or some queries of it: show how far scoring "
    "again moves the measures. Give it twice for a pair of runs of other queries.",
    multiple=True,
)
@option("-c", INPUT, "The same as --missing zero, as in trec_eval.", into="count_missing")
@options.formats
@option("--tools", TIES, "Show what each known tool prints for the run.")
@option(
    "--engine NAME",
    EXECUTION,
    "local: each RUN is a run. ray: all of them (files, folders, quoted patterns) are shards of one run, split by "
    "query or by document, and a Ray cluster counts them.",
    type=click.Choice(["local", "ray"]),
    default="local",
)
@option(
    "--address ADDRESS",
    EXECUTION,
    "The Ray cluster: 10.0.0.1:6379, ray://head:10001 or auto.",
    default_note="RAY_ADDRESS, or a new local cluster",
)
@options.per_query
@option("-n, --no-summary", OUTPUT, "Leave out the means over queries.")
@options.columns
@options.explain("how to read it, what each tool prints")
@options.names
@options.output(Format)
def evaluate(
    inputs: Inputs,
    selection: Selection,
    output: Output,
    *,
    rerun: Sequence[Path],
    count_missing: bool,
    tools: bool,
    engine: str,
    address: str | None,
    **evaluation: Any,
) -> None:
    """Evaluate runs against relevance judgments, exactly over all orders of tied documents.

    For each run and measure: the expected value, how far other queries would move it, and the lowest and highest value
    that the order of ties can give.
    """
    if output.no_summary and not output.per_query:
        raise InputError("-n leaves out the means, so nothing is left to show. Add -q.")
    if count_missing and evaluation["missing"] != "zero":
        raise InputError(f"-c means --missing zero, but --missing {evaluation['missing']} was given. Give one of them.")
    if tools and (output.per_query or output.format == "trec"):
        other = "-q" if output.per_query else "--format trec"
        raise InputError(f"--tools has one value for each tool and measure: leave out {other}.")
    if rerun and (tools or output.no_summary or output.format == "trec"):
        other = "--tools" if tools else "-n" if output.no_summary else "--format trec"
        raise InputError(f"--rerun gives each mean a band: leave out {other}.")
    if address is not None and engine != "ray":
        raise InputError("--address is for a Ray cluster. Add --engine ray.")
    if len(rerun) > 2 or (rerun and (len(inputs.runs) > 1 or engine == "ray")):
        given = f"{len(rerun)} files" if len(rerun) > 2 else "several runs, or shards"
        raise InputError(f"--rerun is for one run: a second run of it, or a pair of runs. Here are {given}.")
    conditions = selection.conditions()
    chosen, checked = selection.resolve(DEFAULT_MEASURES), selection.resolve(DEFAULT_MEASURES, conditions)
    if inputs.input_format == "beir":  # a format of judgments
        inputs = replace(inputs, qrels_format="beir", input_format=None)
    with collect_warnings() as warned:
        if engine == "ray":
            found = _evaluate_shards(inputs, checked, tools=tools, address=address, quiet=output.quiet, **evaluation)
        else:
            found, again = {}, [inputs.open_run(one) for one in rerun]
            second: Any = tuple(again) if len(again) == 2 else next(iter(again), None)
            judged = inputs.read_qrels(hashed=output.format == "json")  # JSON shows the hash
            with progress("runs", quiet=output.quiet) as callback:
                for name, path in inputs.files.items():
                    run = inputs.open_run(path)
                    with prefix_errors(f"Run '{name}'") if len(inputs.runs) > 1 else nullcontext():
                        found[name] = tw.evaluate(judged, run, checked, rerun=second, **evaluation)
                    callback(len(found), len(inputs.runs))
    reports = Reports({name: report.select(chosen) for name, report in found.items()})
    failed = failed_checks(conditions, found)
    notes = [*warned, *explain_names(selection.measures)]
    if output.format == "trec":
        from tiewise.analysis.trec_format import render_trec

        rel = 1 if selection.rel is None else selection.rel
        output.write(render_trec(reports, output.view, rel), [*notes, *reports.notes], failed)
    elif tools:
        from tiewise.analysis.tool_values import ToolTables

        tables = ToolTables({name: report.oblivious_by_tool() for name, report in reports.items()})
        output.show(tables, notes, failed=failed)
    else:
        output.show(reports, notes, failed=failed)


def _evaluate_shards(
    inputs: Inputs, measures: Sequence[tw.Measure], *, quiet: bool, **options: Any
) -> dict[str, tw.Report]:
    """The report of the one run whose shards were given."""
    from tiewise.adapters import ray

    name = name_of_shards(inputs.runs, inputs.names)
    judged = inputs.read_qrels()
    # Ray reports dead workers on standard output, which is for the result.
    with progress("Shards", quiet=quiet) as callback, redirect_stdout(sys.stderr):
        how: Any = {"format": inputs.run_format, "progress": callback, **options}
        return {name: ray.evaluate(judged, inputs.runs, measures, **how)}
