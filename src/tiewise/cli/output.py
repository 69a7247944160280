"""Where a command writes and in which format, notes on standard error, and the checks of ``--fail-if``."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from click.exceptions import Exit

from tiewise.cli.program import CHECK_FAILED, print_error, print_note
from tiewise.errors import InputError
from tiewise.io.compression import COMPRESSED, save
from tiewise.io.output_paths import check_writable
from tiewise.results.view import SUFFIXES, WIDTH, Format, TableFormat, View
from tiewise.results.wording import encodable

if TYPE_CHECKING:
    from tiewise.cli.conditions import Condition
    from tiewise.results.base import Result

__all__ = ["STANDARD_OUTPUT", "Output", "exit_if_failed", "failed_checks", "is_terminal", "screen", "write"]

STANDARD_OUTPUT = Path("-")


@dataclass(frozen=True)
class Output:
    """Where and how a command writes its result; a path that cannot be written is an error at once."""

    format: Format
    path: Path
    digits: int | None = None
    quiet: bool = False

    @classmethod
    def resolve(cls, format: Format | None, path: Path, digits: int | None, quiet: bool) -> Output:
        """The output of the options; without a format it is that of the path."""
        check_writable(path)
        format = format or _default_format(path)
        if format == "parquet" and is_terminal(path):
            raise InputError("Parquet cannot be shown on a terminal. Write it to a file: -o FILE.parquet.")
        return cls(format, path, digits, quiet)

    def view(self, **settings: Any) -> View:
        """What to show of the result, in the room that there is."""
        return View(digits=self.digits, width=screen(self.path)["width"], **settings)

    def show(self, result: Result, view: View, notes: Iterable[str] = (), **added: Any) -> None:
        """Write a result; `notes` were collected on the way to it, and `added` are more keys of JSON."""
        said = [*notes, *getattr(result, "notes", ())]
        self.write(self.render(result, view, notes, **added), said)

    def render(self, result: Result, view: View, notes: Iterable[str] = (), **added: Any) -> str | bytes:
        """The result in the format of the options."""
        from tiewise.cli.rendering import render

        assert self.format != "trec"
        colour = screen(self.path)["colour"]
        return render(result, self.format, view, notes=list(notes), colour=colour, added=added)

    def check_figure(self, figure: Path | None) -> None:
        """Require that a figure can be drawn and written beside the result, before anything is read."""
        if figure is None:
            return
        from tiewise.figures.theme import check_figure_path

        check_figure_path(figure)
        if self.path.absolute() == figure.absolute():
            raise InputError(f"{figure}: cannot hold the figure and the numbers. Give --figure and -o different files.")
        check_writable(figure)

    def write(self, content: str | bytes, notes: Iterable[str] = ()) -> None:
        """Write the result; then the notes to standard error, unless the format itself shows them to people."""
        write(content, self.path, styled=self.format == "table")
        if not self.quiet and self.format not in ("table", "markdown"):
            print_note(*notes)


def is_terminal(path: Path) -> bool:
    """Whether what is written to a path appears on a terminal."""
    return path == STANDARD_OUTPUT and sys.stdout.isatty()


def _default_format(path: Path) -> TableFormat:
    """The format of a file by its suffix; a table for people where there is none, and on standard output."""
    plain = path.with_suffix("") if path.suffix in COMPRESSED else path
    if plain.suffix and plain.suffix.lower() not in SUFFIXES:
        known = ", ".join(SUFFIXES)
        raise InputError(f"{path}: no format is known for '{plain.suffix}'. Use one of {known}, or give --format.")
    return SUFFIXES.get(plain.suffix.lower(), "table")


def screen(path: Path = STANDARD_OUTPUT) -> dict[str, Any]:
    """Width and colour of the terminal, if the output goes there."""
    shown = is_terminal(path)
    colour = shown and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
    return {"width": shutil.get_terminal_size().columns if shown else WIDTH, "colour": colour}


def write(content: str | bytes, path: Path = STANDARD_OUTPUT, *, styled: bool = False) -> None:
    """Write to standard output, or to a file, which is written whole or not at all; `styled` text may have colours."""
    if isinstance(content, str):
        encoding = sys.stdout.encoding if is_terminal(path) else "utf-8"
        content = encodable(content, encoding).encode(encoding)
    save(path, [content], styled=styled)


def failed_checks(conditions: Sequence[Condition], results: Iterable[tuple[str, Any]]) -> list[str]:
    """A message for each condition that is true for a result, each result with what it is called in the message."""
    found = [(name, one.text, why) for name, result in results for one in conditions if (why := one.explain(result))]
    return [f"check failed{name}: '{text}' is true ({why})." for name, text, why in found]


def exit_if_failed(messages: Sequence[str]) -> None:
    """Print the messages of failed checks, if there are any, and exit with 3."""
    for message in messages:
        print_error(message)
    if messages:
        raise Exit(CHECK_FAILED)
