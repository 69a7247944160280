"""``tiewise report``: one HTML page about some runs."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import tiewise as tw
from tiewise.cli import options
from tiewise.cli.command import INPUT, MEASURES, OUTPUT, command, option
from tiewise.cli.inputs import check_stdin_once, collect_warnings, runs_by_name
from tiewise.cli.output import STANDARD_OUTPUT, is_terminal
from tiewise.cli.program import print_note
from tiewise.cli.selection import DEFAULT_MEASURES, resolve_measures
from tiewise.data.judgments import Kind
from tiewise.errors import InputError

__all__ = ["report"]

EXAMPLES = (
    "tiewise report qrels.txt bm25.trec dense.trec -o report.html",
    "tiewise report qrels.txt runs/*.trec -m AP,nDCG@10 --complete -o report.html",
    "tiewise report qrels.txt fp32.trec bf16.trec --reference fp32.trec -o out.html",
)


@command("report", examples=EXAMPLES)
@options.qrels
@options.runs
@options.measures()
@options.relevance
@options.plugins
@option(
    "--reference RUN",
    MEASURES,
    "The run that the others should rank like, such as the one in float32: its file or its name.",
    default_note="the finest of runs whose names differ in a precision: minilm-fp32, minilm-bf16",
)
@option(
    "--protocol FILE.json",
    INPUT,
    "Add a section on a protocol, which `tiewise protocol` wrote with -o FILE.json.",
    type=options.PATH,
)
@options.evaluation
@options.input_format
@options.qrels_format
@options.qrels_kind
@options.significance
@options.names
@option("--title TEXT", OUTPUT, "The title of the page.", default="", default_note="measure and runs")
@option("--full-paths", OUTPUT, "Show the paths of files on the page, not only their names.")
@options.output_path("FILE.html", ".html.gz compresses")
@options.quiet
def report(
    qrels: Path,
    runs: Sequence[Path],
    *,
    measures: Sequence[str],
    rel: float | None,
    reference: str | None,
    protocol: Path | None,
    evaluation: dict[str, Any],
    input_format: str | None,
    qrels_format: str | None,
    qrels_kind: Kind,
    names: Sequence[str],
    title: str,
    full_paths: bool,
    output: Path,
    quiet: bool,
    **significance: Any,
) -> None:
    """Write one HTML page: which run is better, whether ties decide that, and what to do about them.

    The page is one file that needs no network: open it, mail it, print it. The first measure is its main one.
    """
    from tiewise.cli.progress import progress
    from tiewise.page.content import collect_content
    from tiewise.page.rendering import check_path, save_page

    if is_terminal(output):
        raise InputError("The page is for a browser, not for a terminal. Write it to a file: -o report.html.")
    check_path(output)
    files = runs_by_name(runs, names)
    if reference not in files:
        reference = next((name for name, path in files.items() if str(path) == reference), reference)
    chosen = resolve_measures(measures or DEFAULT_MEASURES, rel)
    check_stdin_once([qrels, *runs])
    with collect_warnings() as warned, progress("runs", quiet=quiet) as callback:
        content = collect_content(
            tw.read_qrels(qrels, format=qrels_format, kind=qrels_kind),
            {name: tw.read_run(path, format=input_format) for name, path in files.items()},
            chosen,
            reference=reference,
            protocol=protocol,
            progress=callback,
            **significance,
            **evaluation,
        )
        command_line = _describe_command([qrels, *runs, output, reference, protocol], full_paths=full_paths)
        save_page(content, output, title=title, command=command_line, full_paths=full_paths)
    if not quiet:
        written = [] if output == STANDARD_OUTPUT else [f"The page is in {output}."]
        print_note(*warned, *content.notes, *written)


def _describe_command(files: Iterable[Path | str | None], *, full_paths: bool) -> str:
    """The command line, with the names of files instead of their paths, unless these are asked for."""
    words = ["tiewise", *sys.argv[1:]]
    for file in () if full_paths else [str(file) for file in files if file is not None]:
        words = [word.replace(file, Path(file).name) for word in words]
    return shlex.join(words)
