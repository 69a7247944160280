"""Where a command writes and in which format; notes beside the output; gates, once it is written."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from tiewise.cli.program import GATE_CLOSED, complain, say
from tiewise.errors import InputError
from tiewise.io.compression import COMPRESSED, save
from tiewise.output import Format, OutputOptions, TableFormat
from tiewise.output.options import SUFFIXES
from tiewise.output.paths import check_writable
from tiewise.tables.wording import escape_controls

if TYPE_CHECKING:
    from tiewise.cli.gates import Found, Gate

__all__ = ["closed", "leave_if", "note", "note_beside", "screen", "target", "write"]


def target(format: Format | None, output: Path | None) -> tuple[Format, Path | None]:
    """The format, and the file to write; None is standard output."""
    output = None if output == Path("-") else output
    if output is not None:
        check_writable(output)
    chosen = format or _usual_format(output)
    if chosen == "parquet" and output is None and sys.stdout.isatty():
        raise InputError("Parquet is not for a terminal. Write it to a file: -o FILE.parquet.")
    return chosen, output


def _usual_format(output: Path | None) -> TableFormat:
    """The format when none is asked for: by the suffix of the file, else a table for people and TSV for programs."""
    if output is None:
        return "table" if sys.stdout.isatty() else "tsv"
    plain = output.with_suffix("") if output.suffix in COMPRESSED else output
    if plain.suffix and plain.suffix.lower() not in SUFFIXES:
        known = ", ".join(SUFFIXES)
        raise InputError(f"{output}: '{plain.suffix}' says no format. End the name in {known}, or give --format.")
    return SUFFIXES.get(plain.suffix.lower(), "tsv")


def screen(output: Path | None) -> dict[str, Any]:
    """Width and colour of the terminal, if that is where the text goes."""
    shown = output is None and sys.stdout.isatty()
    return {"width": shutil.get_terminal_size().columns if shown else None, "colour": shown}


def write(content: str | bytes, output: Path | None) -> None:
    """Write to a file, whole or not at all, or to standard output."""
    if isinstance(content, str):
        encoding = sys.stdout.encoding if output is None and sys.stdout.isatty() else "utf-8"
        content = content.encode(encoding, "backslashreplace")
    save("-" if output is None else output, [content])


def note_beside(view: OutputOptions, said: Iterable[str], quiet: bool) -> None:
    """Write notes to standard error, unless the output itself shows them to people."""
    if not quiet and view.format not in ("table", "markdown"):
        note(*said)


def note(*notes: str) -> None:
    """Write notes to standard error."""
    for one in notes:
        say(f"note: {escape_controls(one)}")


def closed(gates: Sequence[Gate], reports: Iterable[tuple[str, Found]]) -> list[str]:
    """The gates that close for a run, in words, and by what. A gate that asks for what is not there is an error."""
    found = [(gate, name, why) for name, report in reports for gate in gates if (why := gate.closed_by(report))]
    return [f"the gate '{gate.text}' is closed by {name}: {why}." for gate, name, why in found]


def leave_if(complaints: Iterable[str]) -> None:
    """Exit with 3, and say why, if there is anything to complain of."""
    said = list(complaints)
    for complaint in said:
        complain(complaint)
    if said:
        raise typer.Exit(GATE_CLOSED)
