"""``tiewise measures``: the list of measures, and the page of one."""

from __future__ import annotations

from typing import Annotated

import typer

from tiewise.cli.asked import load
from tiewise.cli.options import Plugins, complete_measure
from tiewise.cli.output import screen, write
from tiewise.metrics.names import parse
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
    import json

    from tiewise.output import listing

    load(plugin or ())
    shown = screen(None)
    chosen = format or ("table" if shown["width"] else "tsv")
    if name is None:
        write(listing.listing(chosen, **shown), None)
    elif format == "json":
        write(json.dumps(listing.entry(parse(name)), indent=2, ensure_ascii=False) + "\n", None)
    else:
        write(listing.page(parse(name)), None)
