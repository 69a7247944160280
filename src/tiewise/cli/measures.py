"""``tiewise measures``: the list of measures, and the page of one."""

from __future__ import annotations

from typing import Annotated

import typer

from tiewise.cli.asked import load
from tiewise.cli.options import Plugins, complete_measure
from tiewise.cli.output import screen, write
from tiewise.metrics.definition import parse
from tiewise.output import ListFormat

__all__ = ["list_measures"]


def list_measures(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="A measure, to see its documentation.", autocompletion=complete_measure),
    ] = None,
    format: Annotated[
        ListFormat | None,
        typer.Option(help="How to print.", show_default="table on a terminal, else tsv"),
    ] = None,
    plugin: Plugins = None,
) -> None:
    """List the measures, with their parameters, their defaults and their other names; or show one."""
    from tiewise.output import measure_tables
    from tiewise.tables.json_rows import render_json

    load(plugin or ())
    shown = screen(None)
    chosen = format or ("table" if shown["width"] else "tsv")
    if name is None:
        write(measure_tables.list_measures(chosen, **shown), None)
    elif format == "json":
        write(render_json(measure_tables.describe_measure(parse(name))), None)
    else:
        write(measure_tables.document_measure(parse(name)), None)
