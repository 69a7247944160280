"""The list of measures, as ``tiewise measures`` prints it, and the documentation of one measure."""

from __future__ import annotations

import inspect
from typing import Any

from tiewise.metrics.definition import Measure
from tiewise.metrics.names import measures
from tiewise.output.options import ListFormat
from tiewise.tables.data_formats import render_json, render_tsv
from tiewise.tables.model import Cell, Column, Section, Table

__all__ = ["LIST_COLUMNS", "describe_measure", "document_measure", "list_measures"]

#: The columns of the list as TSV.
LIST_COLUMNS = ("name", "cutoff", "parameters", "aliases", "summary")
PARAMETERS_WIDTH = 32  # on a terminal


def describe_measure(measure: Measure) -> dict[str, Any]:
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


def list_measures(format: ListFormat, *, width: int | None = None, colour: bool = False) -> str:
    """All registered measures."""
    known = [describe_measure(measure) for measure in measures().values()]
    if format == "json":
        return render_json(known)
    if format == "table":
        from tiewise.tables.text import render_text

        return render_text(_section(known), width or 100, colour=colour)
    table = Table(tuple(map(Column, LIST_COLUMNS)), [[_text(one[name]) for name in LIST_COLUMNS] for one in known])
    if format == "tsv":
        return render_tsv(table)
    rows = ([cell.replace("|", "\\|") for cell in row] for row in table.rows)
    lines = [LIST_COLUMNS, ["---"] * len(LIST_COLUMNS), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def document_measure(measure: Measure) -> str:
    """The full documentation of one measure."""
    known = describe_measure(measure)
    parts = [measure.stem + ("@k" if measure.takes_cutoff else ""), inspect.getdoc(type(measure)) or ""]
    if known["parameters"]:
        parts.append("Parameters, with their defaults: " + _text(known["parameters"]))
    parts.append("A cutoff @k may follow the name." if measure.takes_cutoff else "It takes no cutoff.")
    if known["aliases"]:
        parts.append("Also called: " + _text(known["aliases"]))
    return "\n\n".join(parts) + "\n"


def _section(known: list[dict[str, Any]]) -> Section:
    rows = [
        (
            Cell(one["name"], mark=_text(one["cutoff"])),
            _text(one["parameters"]),
            Cell(one["summary"], f"Also {_text(one['aliases'])}." if one["aliases"] else ""),
        )
        for one in known
    ]
    return Section(
        [
            Table((Column("measure"), Column("parameters", width=PARAMETERS_WIDTH), Column("what it is")), rows),
            "",
            "Parameters show their defaults; a cutoff may follow where it says @k: P(rel=2)@10.",
            "`tiewise measures NAME` shows the documentation of one.",
        ]
    )


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
        return f"{parameter['default']:g}"
    others = [choice for choice in choices if choice != parameter["default"]]
    return "|".join(f'"{choice}"' for choice in (parameter["default"], *others))
