"""The catalogue of measures, as ``tiewise measures`` lists it, and the page of one measure."""

from __future__ import annotations

import inspect
import json
from typing import Any

from tiewise.metrics.definition import Measure
from tiewise.metrics.names import measures
from tiewise.output.delimited import delimited
from tiewise.output.view import ListFormat

__all__ = ["COLUMNS", "entry", "listing", "page"]

#: The columns of the list as TSV.
COLUMNS = ("name", "cutoff", "parameters", "aliases", "summary")


def entry(measure: Measure) -> dict[str, Any]:
    """What there is to say about a measure, as plain values."""
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


def listing(format: ListFormat, *, width: int | None = None, colour: bool = False) -> str:
    """All registered measures."""
    entries = [entry(measure) for measure in measures().values()]
    if format == "json":
        return json.dumps(entries, indent=2, ensure_ascii=False) + "\n"
    if format == "table":
        return _table(entries, width, colour)
    cells = [[_text(one[column]) for column in COLUMNS] for one in entries]
    if format == "tsv":
        return delimited(COLUMNS, cells)
    lines = [COLUMNS, ["---"] * len(COLUMNS), *([cell.replace("|", "\\|") for cell in line] for line in cells)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def page(measure: Measure) -> str:
    """The full documentation of one measure."""
    one = entry(measure)
    parts = [measure.stem + ("@k" if measure.takes_cutoff else ""), inspect.getdoc(type(measure)) or ""]
    if one["parameters"]:
        parts.append("Parameters, with their defaults: " + _text(one["parameters"]))
    parts.append("A cutoff @k may follow the name." if measure.takes_cutoff else "It takes no cutoff.")
    if one["aliases"]:
        parts.append("Also called: " + _text(one["aliases"]))
    return "\n\n".join(parts) + "\n"


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "@k" if value else ""
    if isinstance(value, dict):
        return ", ".join(f"{name}={_default(one)}" for name, one in value.items())
    return ", ".join(value) if isinstance(value, list) else str(value)


def _default(one: dict[str, Any]) -> str:
    """A parameter's default; where it is one of some words, the others after it."""
    choices = one.get("choices", ())
    if not choices:
        return f"{one['default']:g}"
    others = [choice for choice in choices if choice != one["default"]]
    return "|".join(f'"{choice}"' for choice in (one["default"], *others))


def _table(entries: list[dict[str, Any]], width: int | None, colour: bool) -> str:
    from rich.text import Text

    from tiewise.output.table import Drawing

    drawing = Drawing(width or 100, colour=colour)
    table = drawing.table(("measure", "parameters", "what it is"))
    for one in entries:
        name = Text(one["name"])
        name.append("@k" if one["cutoff"] else "", style="cyan")
        words = Text(one["summary"])
        if one["aliases"]:
            words.append(f" Also {_text(one['aliases'])}.", style="dim")
        table.add_row(name, Text(_text(one["parameters"]).replace(", ", "\n"), style="green"), words)
    drawing.gap()
    drawing.words("Parameters show their defaults; a cutoff may follow where it says @k: P(rel=2)@10.")
    drawing.words("`tiewise measures NAME` shows the documentation of one.")
    return drawing.text()
