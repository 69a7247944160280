"""``tiewise report``: one HTML page about some runs."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tiewise.analysis.evaluating import DEFAULT_MEASURES
from tiewise.cli import options
from tiewise.cli.command import INPUT, MEASURES, OUTPUT, command, option
from tiewise.cli.inputs import Inputs, collect_warnings
from tiewise.cli.output import STANDARD_OUTPUT, is_terminal
from tiewise.cli.program import print_note
from tiewise.cli.progress import progress
from tiewise.cli.selection import Selection
from tiewise.errors import InputError

EXAMPLES = (
    "tiewise report qrels.txt bm25.trec dense.trec -o report.html",
    "tiewise report qrels.txt runs/*.trec -m AP,nDCG@10 --complete -o report.html",
    "tiewise report qrels.txt fp32.trec bf16.trec --reference fp32.trec -o out.html",
)


@command("report", Inputs, Selection, examples=EXAMPLES)
@options.qrels
@options.runs
@options.measures()
@option(
    "--reference RUN",
    MEASURES,
    "The run that the others should rank like, such as the one in float32: its file or its name.",
    type=str,
    default_note="the finest of runs whose names differ in a precision: minilm-fp32, minilm-bf16",
)
@option("--protocol FILE.json", INPUT, "Add a section on a protocol, which `tiewise protocol` wrote with -o FILE.json.")
@options.evaluation
@options.formats
@options.significance
@options.names
@option("--title TEXT", OUTPUT, "The title of the page.", default="", default_note="measure and runs")
@option("--full-paths", OUTPUT, "Show the paths of files on the page, not only their names.")
@options.output_path("FILE.html", ".html.gz compresses")
@options.quiet
def report(
    inputs: Inputs,
    selection: Selection,
    *,
    reference: str | None,
    protocol: Path | None,
    title: str,
    full_paths: bool,
    path: Path,
    quiet: bool,
    **how: Any,
) -> None:
    """Write one HTML page: which run is better, whether ties decide that, and what to do about them.

    The page is one file that needs no network: open it, mail it, print it. The first measure is its main one.
    """
    from tiewise.page.content import collect_content
    from tiewise.page.rendering import check_path, save_page

    if is_terminal(path):
        raise InputError("The page is for a browser, not for a terminal. Write it to a file: -o report.html.")
    check_path(path)
    reference = inputs.name_of(reference)
    how |= {"reference": reference, "protocol": protocol}
    chosen = selection.resolve(DEFAULT_MEASURES)
    with collect_warnings() as warned, progress("runs", quiet=quiet) as callback:
        judged = inputs.read_qrels(hashed=True)
        content = collect_content(judged, inputs.read_runs(quiet=quiet), chosen, progress=callback, **how)
        files = [inputs.qrels, *inputs.runs, path, reference, protocol]
        command_line = _describe_command(() if full_paths else files)
        save_page(content, path, title=title, command=command_line, full_paths=full_paths)
    if not quiet:
        written = [] if path == STANDARD_OUTPUT else [f"The page is in {path}."]
        print_note(*warned, *content.notes, *written)


def _describe_command(files: Iterable[Path | str | None]) -> str:
    """The command line, with the names of these files instead of their paths."""
    words = ["tiewise", *sys.argv[1:]]
    for file in [str(file) for file in files if file is not None]:
        words = [word.replace(file, Path(file).name) for word in words]
    return shlex.join(words)
