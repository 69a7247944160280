"""``tiewise break``: a run whose ties are broken at random."""

from __future__ import annotations

from pathlib import Path

import tiewise as tw
from tiewise.cli import options
from tiewise.cli.command import TIES, command, option
from tiewise.cli.program import print_note
from tiewise.io import as_run
from tiewise.output.paths import check_writable
from tiewise.tables.wording import format_percent
from tiewise.ties.orders import break_ties_randomly

__all__ = ["break_ties"]


@command("break", examples=("tiewise break run.trec --seed 7 -o strict.trec.gz",))
@options.run
@option("--seed N", TIES, "The same seed gives the same order.", type=options.NOT_NEGATIVE, default=0)
@options.input_format
@options.distances
@options.output_path()
@options.quiet
def break_ties(run: Path, seed: int, input_format: str | None, distances: bool, output: Path, quiet: bool) -> None:
    """Break the ties of a run at random, for tools that need a strict order.

    Documents that are not tied keep their order. The new scores are n, n - 1, ..., 1, so that no reader ties them
    again.

    A seed gives one order out of many. A tool then measures that order, not the run.
    """
    check_writable(output)
    tied = as_run(run, format=input_format, distances=distances)
    tw.write_run(break_ties_randomly(tied, seed), output)
    if not quiet:
        print_note(f"{format_percent(tied.tied_share)} of {len(tied):,} rows were tied; seed {seed}.")
