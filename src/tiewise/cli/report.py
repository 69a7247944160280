"""``tiewise report``: one HTML page on some runs, to look at and to send."""

from __future__ import annotations

import sys
from pathlib import Path

from tiewise.cli.asked import asked, evaluation_options
from tiewise.cli.inputs import heeded, named, read_once
from tiewise.cli.options import (
    ChanceSeed,
    Complete,
    Confidence,
    Depth,
    InputFormat,
    JudgedOnly,
    Level,
    Measures,
    Missing,
    Names,
    NoRelevant,
    Oblivious,
    Orders,
    PageFile,
    Plugins,
    QrelsFile,
    QrelsFormat,
    Quiet,
    ReferenceName,
    RunFiles,
    Samples,
    ScoreType,
    SignificanceTest,
    Title,
)
from tiewise.cli.output import note
from tiewise.errors import InputError
from tiewise.io import read_qrels, read_run

__all__ = ["EXAMPLES", "report"]

EXAMPLES = (
    "Examples\n\n"
    "  tiewise report qrels.txt bm25.trec dense.trec -o report.html\n\n"
    "  tiewise report qrels.txt runs/*.trec -m AP,nDCG@10 --complete -o report.html\n\n"
    "  tiewise report qrels.txt minilm-fp32.trec minilm-bf16.trec --reference minilm-fp32 -o precision.html"
)


def report(
    qrels: QrelsFile,
    runs: RunFiles,
    output: PageFile = None,
    measure: Measures = None,
    level: Level = None,
    plugin: Plugins = None,
    reference: ReferenceName = None,
    missing: Missing = None,
    no_relevant: NoRelevant = "zero",
    judged_only: JudgedOnly = False,
    depth: Depth = None,
    input_format: InputFormat = None,
    qrels_format: QrelsFormat = None,
    oblivious: Oblivious = "trec_eval",
    score_dtype: ScoreType = None,
    complete: Complete = False,
    orders: Orders = "independent",
    test: SignificanceTest = "permutation",
    confidence: Confidence = 0.95,
    samples: Samples = 10_000,
    seed: ChanceSeed = 0,
    name: Names = None,
    title: Title = "",
    quiet: Quiet = False,
) -> None:
    """Write one page in HTML that says who is ahead, whether ties decide it, and what to do about them.

    It is one file that needs no network: open it, mail it, print it. The first measure is what it is about.
    """
    from tiewise.output.page import write_report
    from tiewise.output.page.rendering import check_path, format_command
    from tiewise.output.progress import progress

    if output is None and sys.stdout.isatty():
        raise InputError("A page is for a browser, not for a terminal. Write it to a file: -o report.html.")
    path = Path("-") if output is None else output
    check_path(path)
    files = named(runs, name)
    chosen, _ = asked(measure, (), level, plugin or ())
    options = evaluation_options(
        oblivious=oblivious,
        missing=missing,
        no_relevant=no_relevant,
        score_dtype=score_dtype,
        depth=depth,
        judged_only=judged_only,
        complete=complete,
    )
    read_once([qrels, *runs])
    with heeded() as warned, progress("runs", quiet=quiet) as tell:
        write_report(
            read_qrels(qrels, format=qrels_format),
            {one: read_run(file, format=input_format) for one, file in files.items()},
            path,
            chosen,
            reference=reference,
            title=title,
            command=format_command(sys.argv[1:]),
            orders=orders,
            test=test,
            confidence=confidence,
            samples=samples,
            seed=seed,
            progress=tell,
            **options,
        )
    if not quiet:
        note(*warned)
