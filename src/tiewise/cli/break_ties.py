"""``tiewise break``: a run without ties."""

from __future__ import annotations

from pathlib import Path

import click

import tiewise as tw
from tiewise.cli import options
from tiewise.cli.command import NOT_NEGATIVE, TIES, command, option
from tiewise.cli.program import print_note
from tiewise.io import as_run
from tiewise.io.reading import column_format
from tiewise.results.wording import format_percent
from tiewise.ties.orders import ORDERS


@command("break", examples=("tiewise break run.trec --seed 7 -o strict.trec.gz",))
@options.run
@option(
    "--order NAME",
    TIES,
    "The order of tied documents: random, docid-desc, docid-asc, given (that of the file) or rank (the rank column).",
    type=click.Choice(["random", *ORDERS]),
    default="random",
)
@option("--seed N", TIES, "The same seed gives the same random order.", type=NOT_NEGATIVE, default=0)
@options.input_format
@options.EVALUATION["distances"]
@options.output_path()
@options.quiet
def break_ties(
    run: Path,
    order: str,
    seed: int,
    input_format: str | None,
    input_columns: str | None,
    distances: bool,
    path: Path,
    quiet: bool,
) -> None:
    """Break the ties of a run, for tools that need a strict order.

    Documents that are not tied keep their order. The new scores are n, n - 1, ..., 1, so that no reader ties them
    again.

    This is one order out of many. A tool then measures that order, not the run.
    """
    tied = as_run(run, format=column_format(input_format, input_columns), distances=distances)
    tw.write_run(tw.break_ties(tied, order=order, seed=seed), path)
    if not quiet:
        how = f"seed {seed}" if order == "random" else f"order {order}"
        print_note(f"{format_percent(tied.tied_share)} of {len(tied):,} rows were tied; {how}.")
