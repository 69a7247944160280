"""``tiewise evaluate``: runs against relevance judgments."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import click

import tiewise as tw
from tiewise.analysis.report_tables import Reports
from tiewise.analysis.tool_values import ToolTables
from tiewise.analysis.trec_format import render_trec
from tiewise.cli import options
from tiewise.cli.command import EXECUTION, INPUT, OUTPUT, TIES, command, option
from tiewise.cli.inputs import check_stdin_once, collect_warnings, name_of_shards, name_runs
from tiewise.cli.output import Output, exit_if_failed, failed_checks
from tiewise.cli.progress import progress
from tiewise.cli.selection import DEFAULT_MEASURES, explain_names, parse_conditions, resolve_measures
from tiewise.data.judgments import Kind
from tiewise.errors import InputError
from tiewise.io import as_qrels, as_source, read_qrels
from tiewise.results.view import Format

__all__ = ["evaluate"]

EXAMPLES = (
    "tiewise evaluate qrels.txt run.trec -m nDCG@10 -m RR@10",
    "tiewise evaluate qrels.txt bm25.trec dense.trec.gz --wide",
    "tiewise evaluate -q -c -M 1000 -m ndcg_cut.10 --format trec qrels.txt run.trec",
    "tiewise evaluate qrels.txt run.json --tools --oblivious sentence-transformers",
    "tiewise evaluate qrels.txt run.trec --qrels-kind diversity -m alpha_nDCG@20",
    "tiewise evaluate qrels.txt 'shards/*.trec.gz' --engine ray --address auto",
    "tiewise evaluate qrels.txt run.trec --fail-if 'range(nDCG@10) > 0.01'",
)


@command("evaluate", examples=EXAMPLES)
@options.qrels
@options.runs
@options.measures()
@options.relevance
@options.plugins
@options.fail_if(
    "'nDCG@10 < 0.45', 'range(nDCG@10) > 0.01', 'abs(bias(AP)) > 0.005 or z(RR) > 4'. The statistics of a measure are "
    "expected (also without a name), minimum, maximum, std, oblivious, bias, range, z and residual."
)
@options.evaluation
@options.seed
@option("-c", INPUT, "The same as --missing zero, as in trec_eval.", into="count_missing")
@options.input_format
@options.qrels_format
@options.qrels_kind
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
@options.output("one object with the list 'runs'", Format)
def evaluate(
    qrels: Path,
    runs: Sequence[Path],
    *,
    measures: Sequence[str],
    rel: float | None,
    fail_if: Sequence[str],
    evaluation: dict[str, Any],
    seed: int,
    count_missing: bool,
    input_format: str | None,
    qrels_format: str | None,
    qrels_kind: Kind,
    tools: bool,
    engine: str,
    address: str | None,
    per_query: bool,
    no_summary: bool,
    columns: tuple[str, ...],
    wide: bool,
    explain: bool,
    names: Sequence[str],
    output: Output,
) -> None:
    """Evaluate runs against relevance judgments, exactly over all orders of tied documents.

    For each run and measure: the expected value, how far other queries would move it, and the lowest and highest value
    that the order of ties can give.
    """
    if no_summary and not per_query:
        raise InputError("-n leaves out the means, so nothing is left to show. Add -q.")
    if count_missing and evaluation["missing"] != "zero":
        raise InputError(f"-c means --missing zero, but --missing {evaluation['missing']} was given. Give one of them.")
    if tools and (per_query or output.format == "trec"):
        raise InputError(
            f"--tools has one value for each tool and measure: leave out {'-q' if per_query else '--format trec'}."
        )
    if address is not None and engine != "ray":
        raise InputError("--address is for a Ray cluster. Add --engine ray.")
    evaluation["seed"] = seed
    conditions = parse_conditions(fail_if, rel)
    chosen = resolve_measures(measures or DEFAULT_MEASURES, rel)
    checked = resolve_measures(measures or DEFAULT_MEASURES, rel, conditions)
    view = output.view(per_query=per_query, summary=not no_summary, columns=columns, wide=wide, explain=explain)
    titles = [name_of_shards(runs, names)] if engine == "ray" else name_runs(runs, names)
    if input_format == "beir":  # a format of judgments
        qrels_format, input_format = "beir", None
    check_stdin_once([qrels, *runs])
    with collect_warnings() as warned:
        read = read_qrels if output.format == "json" else as_qrels  # JSON shows the hash: it is computed while reading
        judged = read(qrels, format=qrels_format, kind=qrels_kind)
        if engine == "ray":
            from tiewise.adapters import ray

            # Ray reports dead workers on standard output, which is for the result.
            with progress("Shards", quiet=output.quiet) as callback, redirect_stdout(sys.stderr):
                cluster: Any = {"format": input_format, "tools": tools, "address": address, "progress": callback}
                found = [ray.evaluate(judged, runs, checked, **cluster, **evaluation)]
        else:
            found = []
            with progress("runs", quiet=output.quiet) as callback:
                for path in runs:
                    run = as_source(path, format=input_format)
                    found.append(tw.evaluate(judged, run, checked, **evaluation))
                    if callback is not None:
                        callback(len(found), len(runs))
    reports = Reports({name: report.select(chosen) for name, report in zip(titles, found, strict=True)})
    named = [(f" for run '{name}'", report) for name, report in zip(titles, found, strict=True)]
    failed = failed_checks(conditions, named)
    notes = [*warned, *explain_names(measures)]
    if output.format == "trec":
        output.write(render_trec(reports, view, 1 if rel is None else rel), [*notes, *reports.notes])
    elif tools:
        tables = ToolTables({name: report.oblivious_by_tool() for name, report in reports.items()})
        output.show(tables, view, notes)
    else:
        output.show(reports, view, notes)
    exit_if_failed(failed)
