"""``tiewise similarity``: the rankings of runs against each other."""

from __future__ import annotations

import re
from typing import Any

import tiewise as tw
from tiewise.cli import options
from tiewise.cli.command import MEASURES, TIES, command, complete_from, option
from tiewise.cli.inputs import Inputs, collect_warnings
from tiewise.cli.output import Output
from tiewise.cli.progress import progress
from tiewise.errors import InputError, MeasureError
from tiewise.rankings.pair_measures import PairMeasure, list_pair_measures

EXAMPLES = (
    "tiewise similarity bm25.trec dense.trec --phi 0.95 --depth 100",
    "tiewise similarity runs/*.trec -m RBA -o matrix.md",
    "tiewise similarity bm25.trec dense.trec -m tau --depth 100 --edge shrink",
    "tiewise similarity bm25.trec dense.trec hybrid.trec -q -o pairs.csv",
)


@command("similarity", Inputs, Output, examples=EXAMPLES)
@options.two_runs
@option(
    "-m, --measure NAME",
    MEASURES,
    "A measure of two rankings: RBO, RBA, RBR, MED_RBP, tau or tau_ap, with parameters and a cutoff: "
    "'RBO(phi=0.95)@100'.",
    default="RBO",
    shell_complete=complete_from(lambda: {name: one.summary for name, one in tw.measures().items() if one.compares}),
)
@option(
    "--phi NUMBER",
    MEASURES,
    "The persistence, above 0 and below 1, for a measure whose name does not set phi=.",
    default_note="0.9",
)
@options.EVALUATION["depth"]
@options.input_format
@option(
    "--edge extend|shrink|error",
    TIES,
    "If the depth ends inside a tie group: take the whole group, leave it out, or stop.",
    default="extend",
)
@options.EVALUATION["distances"]
@options.EVALUATION["complete"]
@options.per_query
@options.explain("how to read it, ranges of all pairs, and which measure fits which question")
@options.names
@options.output()
def similarity(
    inputs: Inputs, output: Output, *, measure: str, phi: float | None, depth: int | None, **how: Any
) -> None:
    """Compare the rankings of runs with each other, with ties and bounds, over the queries that they share.

    Two runs have one line, with what ties and the unseen tail of the lists change. More runs have a matrix.
    """
    chosen = _resolve_comparison(measure, phi, depth)
    is_matrix = len(inputs.files) > 2 and not output.per_query and not output.explain
    bounds = not is_matrix or output.format not in ("table", "markdown", "latex")
    with collect_warnings() as warned:
        runs = inputs.read_runs(quiet=output.quiet)
        with progress("pairs of lists", quiet=output.quiet) as callback:
            found = tw.similarity(runs, chosen, bounds=bounds, progress=callback, **how)
    output.show(found, warned)


def _resolve_comparison(text: str, phi: float | None, depth: int | None) -> PairMeasure:
    """The measure of two rankings with this name; `phi` and `depth` apply where the name does not set them."""
    found = tw.parse(text)
    if not isinstance(found, PairMeasure):
        raise MeasureError(
            f"{found} needs judgments: use `tiewise evaluate`. Measures of two runs: {list_pair_measures()}."
        )
    if depth is not None and found.cutoff not in (None, depth):
        raise InputError(f"{found} has a cutoff, and --depth {depth} was given too. Give one of them.")
    if phi is not None:
        if re.search(r"\bphi\s*=", text):
            raise InputError(f"{found} has a phi, and --phi {phi:g} was given too. Give one of them.")
        found = found(phi=phi)
    return found if depth is None else found @ depth
