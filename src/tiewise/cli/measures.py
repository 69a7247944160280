"""``tiewise measures``: the list of measures, and the description of one."""

from __future__ import annotations

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
    from tiewise.output import measure_tables
    from tiewise.tables.data_formats import render_json

    shown = screen()
    if name is None:
        write(measure_tables.list_measures(format or ("table" if shown["width"] else "tsv"), **shown))
    elif format == "json":
        write(render_json(measure_tables.describe_measure(tw.parse(name))))
    else:
        write(measure_tables.document_measure(tw.parse(name)))
