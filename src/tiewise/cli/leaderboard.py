"""``tiewise leaderboard``: systems over many collections, each in a folder of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import tiewise as tw
from tiewise.cli import options
from tiewise.cli.command import INPUT, NOT_NEGATIVE, PATH, SIGNIFICANCE, argument, command, option
from tiewise.cli.inputs import Inputs, collect_warnings, name_runs
from tiewise.cli.output import Output
from tiewise.cli.progress import progress
from tiewise.cli.selection import Selection
from tiewise.errors import InputError
from tiewise.io import as_qrels, as_source
from tiewise.results.wording import list_examples

EXAMPLES = (
    "tiewise leaderboard collections -m nDCG@10",
    "tiewise leaderboard collections --groups 'cqa=cqa-*' --figure ranks.png",
    "tiewise leaderboard collections --format json",
)
DEFAULT_MEASURE = "nDCG@10"
#: Neither collections nor runs, by the name before the first point: hidden files, and those that describe data.
NOT_DATA = ("", "README", "LICENSE")


@command("leaderboard", Inputs, Selection, Output, examples=EXAMPLES)
@argument(
    "FOLDER", "A folder for each collection: qrels.* (qrels.txt, qrels.tsv …), and a file for each system.", type=PATH
)
@options.measures(DEFAULT_MEASURE, " A leaderboard has one.")
@option(
    "--groups NAME=PARTS",
    INPUT,
    "Related collections that count as one: their names or patterns, separated by commas, as in cqa=cqa-*.",
    multiple=True,
)
@options.apply_all(*(one for name, one in options.EVALUATION.items() if name not in ("oblivious", "seed")))
@options.formats
@option(
    "--confidence NUMBER",
    SIGNIFICANCE,
    "The confidence of the intervals of ranks, which hold for all systems at once.",
    default=0.95,
)
@option("--seed N", SIGNIFICANCE, "The seed of random draws.", type=NOT_NEGATIVE, default=0)
@options.columns
@options.explain("how to read it, and every cell with its standard error")
@options.figure("the intervals of ranks")
@options.output()
def leaderboard(
    inputs: Inputs, selection: Selection, output: Output, *, folder: Path, groups: Sequence[str], **how: Any
) -> None:
    """Rank systems by their mean over collections, and show the ranks that other queries or other collections allow.

    A file's name without suffixes is the name of its system, the same in every folder. A system may lack collections.
    README and LICENSE are left out.
    """
    from tiewise.analysis.leaderboards import check_measure

    measure, parts = check_measure(selection.resolve([DEFAULT_MEASURE])), _read_groups(groups)
    collections = _find_collections(folder, inputs)
    with collect_warnings() as warned, progress("runs", quiet=output.quiet) as callback:
        found = tw.leaderboard(collections, measure, groups=parts, progress=callback, **how)
    output.show(found, warned, draw=found.plot.ranks)


def _find_collections(folder: Path, inputs: Inputs) -> dict[str, tuple[Any, dict[str, Any]]]:
    """Judgments and runs of every folder in it, in the order of their names."""
    if not folder.is_dir():
        raise InputError(f"{folder}: there is no such folder. Give one that has a folder for each collection.")
    folders = [one for one in _visible(folder) if one.is_dir()]
    if not folders:
        raise InputError(f"{folder}: there is no folder in it. Each collection is one, with qrels.* and its runs.")
    return {one.name: _find_files(one, inputs) for one in folders}


def _find_files(folder: Path, inputs: Inputs) -> tuple[Any, dict[str, Any]]:
    files = [one for one in _visible(folder) if not one.is_dir()]
    qrels = [one for one in files if one.name.partition(".")[0] == "qrels"]
    if len(qrels) != 1:
        found = (
            f"{len(qrels)} files of judgments ({list_examples(one.name for one in qrels)})" if qrels else "no qrels.*"
        )
        raise InputError(
            f"{folder}: there {'are' if qrels else 'is'} {found}. A collection has one, such as qrels.txt."
        )
    if len(files) == 1:
        raise InputError(f"{folder}: there is no run beside {qrels[0].name}. Each system has a file.")
    named: dict[str, Path] = {}
    for run in (one for one in files if one not in qrels):
        (name,) = name_runs([Path(run.name)])
        if name in named:
            raise InputError(
                f"{folder}: {named[name].name} and {run.name} are both called '{name}'. Rename one of them."
            )
        named[name] = run
    judged = as_qrels(qrels[0], format=inputs.qrels_format, kind=inputs.qrels_kind)
    return judged, {name: as_source(run, format=inputs.input_format) for name, run in named.items()}


def _visible(folder: Path) -> list[Path]:
    """What is in a folder, but for hidden files and those that describe it."""
    return sorted(one for one in folder.iterdir() if one.name.partition(".")[0].upper() not in NOT_DATA)


def _read_groups(texts: Sequence[str]) -> Mapping[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for text in texts:
        name, _, parts = text.partition("=")
        if not name or not parts:
            raise InputError(f"--groups {text}: write NAME=PART,PART, with names of collections or patterns.")
        groups.setdefault(name, []).extend(part.strip() for part in parts.split(",") if part.strip())
    return groups
