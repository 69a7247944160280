"""``tiewise evaluate``: runs against judgments."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tiewise.analysis import evaluating as evaluation
from tiewise.cli.asked import asked, evaluation_options
from tiewise.cli.inputs import heeded, name_of_shards, named, read_once
from tiewise.cli.options import (
    Address,
    Columns,
    Complete,
    CountMissing,
    Depth,
    Digits,
    Engine,
    FailIf,
    InputFormat,
    JudgedOnly,
    Level,
    Measures,
    Missing,
    Names,
    NoRelevant,
    NoSummary,
    Oblivious,
    Output,
    OutputFormat,
    PerQuery,
    Plugins,
    QrelsFile,
    QrelsFormat,
    Quiet,
    RunFiles,
    ScoreType,
    ShownValue,
    Tools,
    Wide,
)
from tiewise.cli.output import closed, leave_if, note_beside, screen, target, write
from tiewise.errors import InputError
from tiewise.io import as_source, read_qrels
from tiewise.metrics.definition import Measure
from tiewise.output import Named, View, render
from tiewise.output.progress import progress
from tiewise.output.view import EXTRAS
from tiewise.output.wording import notes

__all__ = ["EXAMPLES", "evaluate"]

EXAMPLES = (
    "Examples\n\n"
    "  tiewise evaluate qrels.txt run.trec -m nDCG@10 -m RR@10\n\n"
    "  tiewise evaluate qrels.txt bm25.trec dense.trec.gz --wide\n\n"
    "  tiewise evaluate -q -c -M 1000 -m ndcg_cut.10,100 --format trec qrels.txt run.trec\n\n"
    "  tiewise evaluate qrels.txt run.json --tools --oblivious sentence-transformers\n\n"
    "  tiewise evaluate qrels.txt 'shards/*.trec.gz' --engine ray --address auto\n\n"
    "  tiewise evaluate qrels.txt run.trec --fail-if 'range(nDCG@10) > 0.01' || echo too many ties"
)


def evaluate(
    qrels: QrelsFile,
    runs: RunFiles,
    measure: Measures = None,
    level: Level = None,
    plugin: Plugins = None,
    fail_if: FailIf = None,
    missing: Missing = None,
    count_missing: CountMissing = False,
    no_relevant: NoRelevant = "zero",
    judged_only: JudgedOnly = False,
    depth: Depth = None,
    input_format: InputFormat = None,
    qrels_format: QrelsFormat = None,
    oblivious: Oblivious = "trec_eval",
    score_dtype: ScoreType = None,
    complete: Complete = False,
    tools: Tools = False,
    engine: Engine = "local",
    address: Address = None,
    per_query: PerQuery = False,
    no_summary: NoSummary = False,
    format: OutputFormat = None,
    columns: Columns = None,
    wide: Wide = False,
    value: ShownValue = None,
    digits: Digits = None,
    name: Names = None,
    output: Output = None,
    quiet: Quiet = False,
) -> None:
    """Measure runs against judgments, exactly over all orders of their tied documents.

    A number alone is, to the digits shown, the same in every order of ties; .363 [.359, .367] adds the lowest and the
    highest there can be.
    """
    format, output = target(format, output)
    if no_summary and not per_query:
        raise InputError("-n leaves out the means, so that nothing is left without -q. Give -q too.")
    if count_missing and missing not in (None, "zero"):
        raise InputError(f"-c is --missing zero, and --missing {missing} was given too. Give one of them.")
    if tools and per_query and format not in ("table", "markdown", "json"):
        raise InputError(f"In {format}, --tools has no rows for queries. Leave -q out, or use --format json or table.")
    if address is not None and engine != "ray":
        raise InputError("--address is that of a Ray cluster. Give --engine ray too.")
    chosen, gates = asked(measure, fail_if or (), level, plugin or ())
    view = View(
        format=format,
        per_query=per_query,
        summary=not no_summary,
        digits=digits,
        value=value,
        tools=tools,
        level=1 if level is None else level,
        **screen(output),
    )
    options = evaluation_options(
        oblivious=oblivious,
        missing=missing,
        no_relevant=no_relevant,
        score_dtype=score_dtype,
        depth=depth,
        judged_only=judged_only,
        complete=complete,
    )
    formats = (qrels_format, input_format) if input_format != "beir" else ("beir", None)  # a format of judgments
    if engine == "ray":
        with progress("Shards", quiet=quiet) as told:
            how = {"tools": tools, "address": address, "progress": told, **options}
            reports, warned = _evaluated_on_ray(qrels, runs, name_of_shards(runs, name or ()), chosen, how, formats)
    else:
        reports, warned = _evaluated(qrels, named(runs, name), chosen, options, formats)
    view = replace(view, columns=_extras(columns or (), wide, reports), notes=warned)
    complaints = closed(gates, reports)
    write(render(reports, view), output)
    note_beside(view, notes(reports, view), quiet)
    leave_if(complaints)


def _evaluated(
    qrels: Path,
    runs: Mapping[str, Path],
    chosen: Sequence[Measure],
    options: dict[str, Any],
    formats: tuple[str | None, str | None],
) -> tuple[list[Named], tuple[str, ...]]:
    """The report of each run under its name, and warnings in words."""
    read_once([qrels, *runs.values()])
    qrels_format, run_format = formats
    with heeded() as warned:
        judged = read_qrels(qrels, format=qrels_format)
        reports = [
            Named(name, evaluation.evaluate(judged, as_source(path, format=run_format), chosen, **options))
            for name, path in runs.items()
        ]
    return reports, tuple(warned)


def _evaluated_on_ray(
    qrels: Path,
    shards: Sequence[Path],
    name: str,
    chosen: Sequence[Measure],
    options: dict[str, Any],
    formats: tuple[str | None, str | None],
) -> tuple[list[Named], tuple[str, ...]]:
    """The report of a run in shards under its name, and warnings in words."""
    from tiewise.adapters import ray

    with heeded() as warned:
        judged = read_qrels(qrels, format=formats[0])
        report = ray.evaluate(judged, shards, chosen, format=formats[1], **options)
    return [Named(name, report)], tuple(warned)


def _extras(texts: Sequence[str], wide: bool, reports: Sequence[Named]) -> tuple[Any, ...]:
    """The columns that were asked for by name, then those of --wide that apply to some measure."""
    wanted = [name for text in texts for name in re.split(r"[\s,]+", text) if name]
    for name in wanted:
        if name not in EXTRAS:
            raise InputError(f"Unknown column '{name}'. Use {', '.join(EXTRAS)}.")
    means = [report[measure] for _, report in reports for measure in report]
    for name in ("std", "oblivious", "bias", "z", "residual", "cut") if wide else ():
        if any(getattr(mean, name) is not None for mean in means):
            wanted.append(name)
    return tuple(dict.fromkeys(wanted))
