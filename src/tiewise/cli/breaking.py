"""``tiewise break``: a run whose ties are broken at random."""

from __future__ import annotations

from tiewise.cli.options import InputFormat, Output, Quiet, RunFile, Seed
from tiewise.cli.output import note
from tiewise.io import read_run, write_run
from tiewise.output.numerals import share
from tiewise.output.places import check_place
from tiewise.ties.orders import break_ties_randomly

__all__ = ["EXAMPLES", "break_ties"]

EXAMPLES = "Example: tiewise break run.trec --seed 7 -o strict.trec.gz"


def break_ties(
    run: RunFile, seed: Seed = 0, input_format: InputFormat = None, output: Output = None, quiet: Quiet = False
) -> None:
    """Write a run whose ties are broken strictly at random, for tools that need one.

    Documents that are not tied keep their order. Scores become n, n - 1 ... 1, so that no reader ties them again.

    One seed gives one order out of many: a tool then measures that order, not the run.
    """
    check_place("-" if output is None else output)
    given = read_run(run, format=input_format)
    write_run(break_ties_randomly(given, seed), "-" if output is None else output)
    if not quiet:
        note(f"{share(given.tied_share)} of {len(given):,} rows were tied; seed {seed}.")
