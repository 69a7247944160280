"""``tiewise recall``: first stages against the second stage that reads what they hand on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from tiewise.cli.inputs import heeded, named, names, read_once
from tiewise.cli.options import (
    MEASURES,
    OUTPUT,
    Digits,
    InputFormat,
    Names,
    Output,
    PerQuery,
    PointsOutputFormat,
    Quiet,
    RunFiles,
)
from tiewise.cli.output import note_beside, screen, target, write
from tiewise.errors import InputError, listed
from tiewise.io import read_run
from tiewise.output import View
from tiewise.output.places import check_place
from tiewise.rankings.costs import RERANK, read_costs
from tiewise.rankings.first_stages import stages

__all__ = ["EXAMPLES", "recall"]

EXAMPLES = (
    "Examples\n\n"
    "  tiewise recall reranker.trec bm25.trec dense.trec --phi 0.9 --depth 10,20,50,100\n\n"
    "  tiewise recall reranker.trec bm25.trec dense.trec --cost costs.json --figure pareto.svg\n\n"
    "  tiewise recall reranker.trec bm25.trec -k 10 -q --format csv -o queries.csv"
)

Number = TypeVar("Number")

Reference = Annotated[
    Path,
    typer.Argument(metavar="REFERENCE", help="The second stage's deep ranking, as a run; - is standard input."),
]
Phis = Annotated[
    str,
    typer.Option(
        metavar="NUMBERS",
        help="How far down the reference counts: one or more, above 0 and below 1.",
        rich_help_panel=MEASURES,
    ),
]
Depths = Annotated[
    str,
    typer.Option(
        metavar="NUMBERS",
        help="How many documents are handed on: one or more; 'all' takes whole lists.",
        rich_help_panel=MEASURES,
    ),
]
RecallAt = Annotated[
    int | None,
    typer.Option(
        "-k",
        metavar="N",
        min=1,
        help="Recall is of the reference's first N documents.",
        show_default="all of them",
        rich_help_panel=MEASURES,
    ),
]
CostFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="What each first stage takes for a query, perhaps by depth, and 'rerank', what the second takes for a "
        "document: lines 'bm25 1.2' or 'bm25 100 1.2', or JSON.",
        rich_help_panel=MEASURES,
    ),
]
FigureFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Draw RBR against cost too, for the first phi, as .svg, .png, .pdf, .html or .json; needs the extra "
        "'report'.",
        rich_help_panel=OUTPUT,
    ),
]


def recall(
    reference: Reference,
    runs: RunFiles,
    phi: Phis = "0.8,0.9",
    depth: Depths = "10,20,50,100",
    k: RecallAt = None,
    cost: CostFile = None,
    input_format: InputFormat = None,
    per_query: PerQuery = False,
    format: PointsOutputFormat = None,
    digits: Digits = None,
    name: Names = None,
    output: Output = None,
    figure: FigureFile = None,
    quiet: Quiet = False,
) -> None:
    """Measure what first stages hand to a reranker, by rank-biased recall, and whether it is worth its cost.

    The first documents of a run are a set; what counts is where the reranker's own ranking has them.
    """
    from tiewise.output.progress import progress
    from tiewise.output.sheet import draw
    from tiewise.output.staged import Staged

    kind, output = target(format, output)
    if figure is not None:
        from tiewise.figures.theme import check_figure_path

        check_figure_path(figure)  # before anything is written
        _both(figure, output)
    files = named(runs, name)
    phis = _numbers(phi, "--phi", float)
    depths = _numbers(depth, "--depth", lambda word: None if word == "all" else int(word))
    view = View(format=kind, per_query=per_query, digits=digits, **screen(output))
    read_once([reference, *runs, *([cost] if cost else [])])
    with heeded() as warned:
        costs, unused = (None, []) if cost is None else _of_runs(read_costs(cost), files)
        second = read_run(reference, format=input_format)
        read = {name: read_run(path, format=input_format) for name, path in files.items()}
        with progress("sets", quiet=quiet) as tell:
            found = stages(second, read, depths, phis, costs, k=k, progress=tell)
    sheet = Staged(found, (names([reference])[0], second), read)
    view = replace(view, notes=(*warned, *sheet.notes, *unused))
    drawn = draw(sheet, view)  # before the figure is written, for this may fail too
    if figure is not None:
        from tiewise.figures import save

        save(found.plot.pareto(), figure)
    write(drawn, output)
    note_beside(view, view.notes, quiet)


def _of_runs(costs: Mapping[str, Any], runs: Iterable[str]) -> tuple[dict[str, Any], list[str]]:
    """The costs of these runs and of the second stage, and a note on the others."""
    others = [name for name in costs if name not in (*runs, RERANK)]
    said = [f"The costs of {listed(others)} are not used: no run has that name."] if others else []
    return {name: one for name, one in costs.items() if name not in others}, said


def _both(figure: Path, output: Path | None) -> None:
    """Refuse two files of which one could be written and not the other."""
    if output is not None and output.absolute() == figure.absolute():
        raise InputError(f"{figure}: cannot hold the figure and the numbers. Give --figure and -o files of their own.")
    check_place(figure)


def _numbers(text: str, option: str, kind: Callable[[str], Number]) -> list[Number]:
    """The numbers of a list like ``10,20``."""
    try:
        return [kind(word) for word in text.replace(",", " ").split()]
    except ValueError:
        like = "0.8,0.9" if option == "--phi" else "10,20"
        raise InputError(f"{option} '{text}' is no list of numbers. Write them like {like}.") from None
