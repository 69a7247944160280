"""``tiewise measures``: the list of measures, and the description of one."""

from __future__ import annotations

import inspect
import re
import textwrap
from typing import Any, get_args

import click

import tiewise as tw
from tiewise.cli import options
from tiewise.cli.command import OUTPUT, argument, command, complete_from, option
from tiewise.cli.output import screen, write, write_section
from tiewise.results.data_formats import render_json, render_tsv
from tiewise.results.model import Cell, Column, Part, Section, Table
from tiewise.results.view import ListFormat
from tiewise.results.wording import LINE_WIDTH

#: The columns of the list as TSV.
LIST_COLUMNS = ("name", "cutoff", "parameters", "aliases", "summary")
PARAMETERS_WIDTH = 36  # on a terminal
#: What most people want.
FIRST = ("nDCG", "RR", "AP", "P", "R", "Success", "F1", "RBP", "ERR", "Judged")


@command("measures", examples=("tiewise measures", "tiewise measures nDCG"))
@argument("[NAME]", "A measure to describe.", type=str, shell_complete=complete_from(options.complete_measure))
@option(
    "--format FORMAT", OUTPUT, "table, tsv, json or markdown.", type=click.Choice(get_args(ListFormat)), default="table"
)
@options.explain("all measures, with parameters, defaults and other names")
@options.plugins
def measures(name: str | None, format: ListFormat, explain: bool) -> None:
    """List the measures, those that most people want first; or describe one."""
    if name is not None:
        measure = tw.parse(name)
        write(render_json(_describe(measure)) if format == "json" else _document(measure, screen()["width"]))
        return
    known = [_describe(measure) for measure in tw.measures().values()]
    if format == "json":
        write(render_json(known))
    elif format == "table":
        write_section(_section(known, explain=explain))
    else:
        rows = [[_text(one[column]) for column in LIST_COLUMNS] for one in known]
        table = Table(tuple(map(Column, LIST_COLUMNS)), rows)
        write(render_tsv(table) if format == "tsv" else _markdown(rows))


def _describe(measure: tw.Measure) -> dict[str, Any]:
    """What is known about a measure, as plain values."""
    return {
        "name": measure.stem,
        "cutoff": measure.takes_cutoff,
        "parameters": {
            name: {"default": one.default, **({"choices": list(one.choices)} if one.choices else {})}
            for name, one in measure.params.items()
        },
        "aliases": [alias.replace(":", " with ").replace("'", '"') for alias in measure.aliases],
        "summary": measure.summary,
    }


def _document(measure: tw.Measure, width: int | None) -> str:
    """The full documentation of one measure; a terminal of this width gets shorter lines."""
    known = _describe(measure)
    parts = [measure.stem + ("@k" if measure.takes_cutoff else ""), inspect.getdoc(type(measure)) or ""]
    if known["parameters"]:
        parts.append("Parameters, with their defaults: " + _text(known["parameters"]))
    parts.append("A cutoff @k may follow the name." if measure.takes_cutoff else "It takes no cutoff.")
    if measure.needs_subtopics:
        parts.append("It needs judgments for subtopics: --qrels-kind diversity.")
    if known["aliases"]:
        parts.append("Also called: " + _text(known["aliases"]))
    paragraphs = "\n\n".join(parts).split("\n\n")
    return "\n\n".join(_wrap(one, min(width, LINE_WIDTH)) if width else one for one in paragraphs) + "\n"


def _wrap(paragraph: str, width: int) -> str:
    """A paragraph in lines of this width; code, formulas and lists keep their lines."""
    if re.search(r"^(?:>>>|\s|[-*|])", paragraph, re.MULTILINE):
        return paragraph
    return textwrap.fill(paragraph, width, break_long_words=False, break_on_hyphens=False)


def _section(known: list[dict[str, Any]], *, explain: bool) -> Section:
    """The measures that most people want, and the names of others by family; with `explain`, all of them."""
    from tiewise.metrics.catalogue import FAMILIES, MEASURES

    first = [one for one in known if explain or one["name"] in FIRST]
    first.sort(key=lambda one: FIRST.index(one["name"]) if one["name"] in FIRST else len(FIRST))
    columns = (Column("measure"), Column("parameters", width=PARAMETERS_WIDTH), Column("what it is"))
    rows = [
        (
            Cell(one["name"], mark=_text(one["cutoff"])),
            _text(one["parameters"]),
            Cell(one["summary"], f"Also {_text(one['aliases'])}." if explain and one["aliases"] else ""),
        )
        for one in first
    ]
    usage = (
        "A cutoff may follow where it says @k, and parameters stand in brackets: P(rel=2)@10. `tiewise measures NAME` "
        "describes one."
    )
    parts: list[Part] = [Table(columns, rows), "", usage]
    if not explain:
        others = [one["name"] for one in known if one["name"] not in MEASURES]
        families = {family: ", ".join(names) for family, names in FAMILIES.items()}
        families |= {"of two rankings, and your own": ", ".join(others)} if others else {}
        parts[1:2] = ["", Table((Column("family"), Column("all measures")), list(families.items())), ""]
    return Section(parts)


def _markdown(rows: list[list[str]]) -> str:
    """A table whose summaries are Markdown already."""
    escaped = ([cell.replace("|", "\\|") for cell in row] for row in rows)
    lines = [LIST_COLUMNS, ["---"] * len(LIST_COLUMNS), *escaped]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "@k" if value else ""
    if isinstance(value, dict):
        return ", ".join(f"{name}={_format_default(one)}" for name, one in value.items())
    return ", ".join(value) if isinstance(value, list) else str(value)


def _format_default(parameter: dict[str, Any]) -> str:
    """The default of a parameter; where it is one of several words, the others after it."""
    choices = parameter.get("choices", ())
    if not choices:
        return f'"{parameter["default"]}"' if isinstance(parameter["default"], str) else f"{parameter['default']:g}"
    others = [choice for choice in choices if choice != parameter["default"]]
    return "|".join(f'"{choice}"' for choice in (parameter["default"], *others))
