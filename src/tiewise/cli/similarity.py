"""``tiewise similarity``: the rankings of runs against each other."""

from __future__ import annotations

import re
from dataclasses import replace

from tiewise.cli.inputs import heeded, named, read_once
from tiewise.cli.options import (
    Comparison,
    Depth,
    Digits,
    Edge,
    InputFormat,
    ManyRunFiles,
    Names,
    Output,
    PairsOutputFormat,
    PerQuery,
    Phi,
    Quiet,
)
from tiewise.cli.output import note_beside, screen, target, write
from tiewise.errors import InputError, MeasureError
from tiewise.io import read_run
from tiewise.metrics.definition import parse
from tiewise.output import View
from tiewise.rankings import run_similarity

__all__ = ["EXAMPLES", "similarity"]

EXAMPLES = (
    "Examples\n\n"
    "  tiewise similarity bm25.trec dense.trec --phi 0.95 --depth 100\n\n"
    "  tiewise similarity runs/*.trec -m RBA -o matrix.md\n\n"
    "  tiewise similarity bm25.trec dense.trec hybrid.trec -q --format csv -o pairs.csv"
)


def similarity(
    runs: ManyRunFiles,
    measure: Comparison = "RBO",
    phi: Phi = None,
    depth: Depth = None,
    input_format: InputFormat = None,
    edge: Edge = "error",
    per_query: PerQuery = False,
    format: PairsOutputFormat = None,
    digits: Digits = None,
    name: Names = None,
    output: Output = None,
    quiet: Quiet = False,
) -> None:
    """Compare the rankings of runs with each other, with ties and bounds, over the queries that all of them have.

    Two runs are a line with bounds; more are a matrix, with one number for each pair.
    """
    from tiewise.output.progress import progress
    from tiewise.output.sheet import draw
    from tiewise.output.similar import Similar, is_matrix

    kind, output = target(format, output)
    files = named(runs, name)
    chosen = _comparison(measure, phi, depth)
    view = View(format=kind, per_query=per_query, digits=digits, **screen(output))
    lower_only = chosen.stem == "RBA" and is_matrix(len(files), view)  # then it is one product for all pairs
    read_once(runs)
    with heeded() as warned:
        read = {name: read_run(path, format=input_format) for name, path in files.items()}
        with progress("queries", quiet=quiet) as tell:
            found = run_similarity.similarity(read, chosen, edge=edge, bounds=not lower_only, progress=tell)
    sheet = Similar(found, read, edge)
    view = replace(view, notes=(*warned, *sheet.notes))
    write(draw(sheet, view), output)
    note_beside(view, view.notes, quiet)


def _comparison(text: str, phi: float | None, depth: int | None) -> run_similarity.PairMeasure:
    """The measure of two rankings that was asked for, with phi and depth where its name says neither."""
    found = parse(text)
    if not isinstance(found, run_similarity.PairMeasure):
        raise MeasureError(f"{found} is for a run and judgments: use `tiewise evaluate`. Between runs: RBO, RBA, RBR.")
    if depth is not None and found.cutoff not in (None, depth):
        raise InputError(f"{found} has a cutoff, and --depth {depth} was given too. Give one of them.")
    if phi is not None:
        if re.search(r"\bphi\s*=", text):
            raise InputError(f"{found} has a phi, and --phi {phi:g} was given too. Give one of them.")
        found = found(phi=phi)
    return found if depth is None else found @ depth
