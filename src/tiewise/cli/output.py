"""Where a command writes and in which format, notes on standard error, and the checks of ``--fail-if``."""

from __future__ import annotations

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
from tiewise.output import Format, OutputOptions, TableFormat
from tiewise.output.options import SUFFIXES
from tiewise.output.paths import check_writable
from tiewise.tables.wording import encodable

if TYPE_CHECKING:
    from tiewise.cli.conditions import Condition

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

    def view(self, **settings: Any) -> OutputOptions:
        """How to draw the result."""
        return OutputOptions(format=self.format, digits=self.digits, **screen(self.path), **settings)

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
    """The format of a file by its suffix; of standard output, a table on a terminal, else TSV."""
    if path == STANDARD_OUTPUT:
        return "table" if is_terminal(path) else "tsv"
    plain = path.with_suffix("") if path.suffix in COMPRESSED else path
    if plain.suffix and plain.suffix.lower() not in SUFFIXES:
        known = ", ".join(SUFFIXES)
        raise InputError(f"{path}: no format is known for '{plain.suffix}'. Use one of {known}, or give --format.")
    return SUFFIXES.get(plain.suffix.lower(), "tsv")


def screen(path: Path = STANDARD_OUTPUT) -> dict[str, Any]:
    """Width and colour of the terminal, if the output goes there."""
    shown = is_terminal(path)
    return {"width": shutil.get_terminal_size().columns if shown else None, "colour": shown}


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
