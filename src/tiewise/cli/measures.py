"""``tiewise measures``: the list of measures, and the description of one."""

from __future__ import annotations

import json
from typing import get_args

import click

import tiewise as tw
from tiewise.cli import options
from tiewise.cli.command import OUTPUT, argument, command, complete_from, option
from tiewise.cli.output import screen, write
from tiewise.output import ListFormat

__all__ = ["measures"]


@command("measures", examples=("tiewise measures", "tiewise measures nDCG"))
@argument("[NAME]", "A measure to describe.", shell_complete=complete_from(options.complete_measure))
@option(
    "--format FORMAT",
    OUTPUT,
    "table, tsv, json or markdown.",
    type=click.Choice(get_args(ListFormat)),
    default_note="table on a terminal, else tsv",
)
@options.plugins
def measures(name: str | None, format: ListFormat | None) -> None:
    """List the measures with their parameters, defaults and other names; or describe one."""
    from tiewise.output import listing

    shown = screen()
    if name is None:
        write(listing.listing(format or ("table" if shown["width"] else "tsv"), **shown))
    elif format == "json":
        write(json.dumps(listing.entry(tw.parse(name)), indent=2, ensure_ascii=False) + "\n")
    else:
        write(listing.page(tw.parse(name)))
