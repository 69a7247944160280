"""Where a command writes, a result in any format, notes on standard error, and the checks of ``--fail-if``."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from click.exceptions import Exit

from tiewise.cli.program import CHECK_FAILED, print_error, print_note
from tiewise.errors import InputError
from tiewise.io.compression import COMPRESSED, check_writable
from tiewise.io.compression import save as save_file
from tiewise.results import data_formats
from tiewise.results.optional import need
from tiewise.results.view import SUFFIXES, WIDTH, TableFormat, View
from tiewise.results.wording import encodable, spelled_for_shell

if TYPE_CHECKING:
    from tiewise.cli.conditions import Condition
    from tiewise.results.base import Result
    from tiewise.results.model import Section, Table

STANDARD_OUTPUT = Path("-")


@dataclass(eq=False, repr=False)
class Output:
    """The options of what a command writes; what cannot be written is an error at once."""

    format: Any = None  #: a `Format`; None: that of the path
    path: Path = STANDARD_OUTPUT
    digits: int | None = None
    quiet: bool = False
    columns: tuple[str, ...] = ()
    wide: bool = False
    explain: bool = False
    per_query: bool = False
    no_summary: bool = False
    figure: Path | None = None

    def __post_init__(self) -> None:
        self.path = self.path or STANDARD_OUTPUT
        self.format = self.format or _default_format(self.path)
        if self.format == "parquet" and is_terminal(self.path):
            raise InputError("Parquet cannot be shown on a terminal. Write it to a file: -o FILE.parquet.")
        if self.figure is not None:
            from tiewise.figures.theme import check_figure_path

            check_figure_path(self.figure)
            if self.path.absolute() == self.figure.absolute():
                raise InputError(
                    f"{self.figure}: cannot hold the figure and the numbers. Give --figure and -o different files."
                )
            check_writable(self.figure)

    @property
    def view(self) -> View:
        """What to show of the result, in the room that there is."""
        return View(
            columns=self.columns,
            wide=self.wide,
            explain=self.explain,
            per_query=self.per_query,
            summary=not self.no_summary,
            digits=self.digits,
            width=screen(self.path)["width"],
        )

    def show(
        self,
        result: Result,
        notes: Sequence[str] = (),
        *,
        failed: Sequence[str] = (),
        draw: Callable[[], Any] | None = None,
    ) -> None:
        """Write a result and its figure. `notes` were collected on the way to it; see `write` for `failed`."""
        how: dict[str, Any] = {"notes": None if self.quiet else notes, "colour": screen(self.path)["colour"]}
        content = render(result, self.format, self.view, **how)
        if self.figure is not None and draw is not None:  # after the table, which can fail
            from tiewise.figures.theme import save

            save(draw(), self.figure)
        self.write(content, [*notes, *getattr(result, "notes", ())], failed)

    def write(
        self, content: str | bytes | Iterable[str], notes: Iterable[str] = (), failed: Sequence[str] = ()
    ) -> None:
        """Write the result; then the notes to standard error, unless the format itself shows them to people.

        `failed` are the messages of failed checks: if there are any, the exit code is 3.
        """
        write(content, self.path, styled=self.format == "table")
        if not self.quiet and self.format not in ("table", "markdown"):
            print_note(*notes)
        for message in failed:
            print_error(message)
        if failed:
            raise Exit(CHECK_FAILED)


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
    width = WIDTH
    if shown:
        from shutil import get_terminal_size

        width = get_terminal_size().columns
    return {"width": width, "colour": colour}


def write(content: str | bytes | Iterable[str], path: Path = STANDARD_OUTPUT, *, styled: bool = False) -> None:
    """Write to standard output, or to a file, which is written whole or not at all; `styled` text may have colours."""
    encoding = sys.stdout.encoding if is_terminal(path) else "utf-8"
    pieces = [content] if isinstance(content, (str, bytes)) else content
    encoded = (one if isinstance(one, bytes) else encodable(one, encoding).encode(encoding) for one in pieces)
    save_file(path, encoded, styled=styled)


def write_section(section: Section) -> None:
    """Write tables and sentences to standard output, as a terminal shows them."""
    from tiewise.results.text import render_text

    write(render_text(section, **screen()), styled=True)


def render(
    result: Result, format: TableFormat, view: View, *, notes: Sequence[str] | None = (), colour: bool = False
) -> str | bytes | Iterator[str]:
    """A result as text that ends with a line break, whole or in pieces, or as bytes (Parquet).

    `notes` are shown to people beside those of the result; None: neither are.
    """
    match format:
        case "table" | "markdown":
            section = result._section(view)
            section = section._replace(notes=() if notes is None else [*notes, *section.notes])
            if format == "table":
                from tiewise.results.text import render_text

                return render_text(section, view.width, colour=colour)
            from tiewise.results.markdown import render_markdown

            return render_markdown(section)
        case "latex":
            return result._latex(view)
        case "json":
            with spelled_for_shell(False):  # as `to_dict` does
                document = result._to_dict(view)
            return data_formats.render_json(document, view.digits)
        case "jsonl":
            return data_formats.render_json_lines(_records(result, view), view.digits)
        case "parquet":
            return _parquet(_records(result, view), view.digits)
    write = data_formats.render_csv if format == "csv" else data_formats.render_tsv
    return write(_records(result, view), view.digits)


def _records(result: Result, view: View) -> Table:
    """The rows for programs; with the names of columns, those of a row and these, both ends of an interval."""
    table = result._records(view)
    if not view.columns:
        return table
    result._section(view)  # an unknown column is an error
    wanted = {*view.columns, *(("minimum", "maximum") if "ties" in view.columns else ())}
    is_value = (not all(isinstance(value, str) for value in table.values(column.name)) for column in table.columns)
    names = next((place for place, found in enumerate(is_value) if found), len(table.columns))
    return table.take_columns(
        place
        for place, column in enumerate(table.columns)
        if place < names or column.name in wanted or column.name.rpartition("_")[0] in wanted
    )


def _parquet(table: Table, digits: int | None) -> bytes:
    """The rows of TSV as a Parquet file: numbers are numbers, and an empty cell is null."""
    from tiewise.io.parquet import parquet_bytes

    arrow = need("pyarrow", "Parquet", "arrow")
    columns = {}
    for column in table.columns:
        values = data_formats.round_floats(table.values(column.name), digits)
        array = arrow.array([_utf8(value) for value in values])
        columns[column.name] = array.cast(arrow.float64()) if arrow.types.is_null(array.type) else array
    return parquet_bytes(columns)


def _utf8(value: Any) -> Any:
    """A value, if it is text without characters that have no UTF-8: these are written as escapes, as in all formats."""
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value


def failed_checks(conditions: Sequence[Condition], results: Mapping[str, Any]) -> list[str]:
    """A message for each condition that is true for a result, by the name of its run; that of all runs has none."""
    messages = []
    for name, result in results.items():
        of_run = f" for run '{name}'" if name else ""
        checked = ((one.text, one.explain(result)) for one in conditions)
        messages += [f"check failed{of_run}: '{text}' is true ({why})." for text, why in checked if why]
    return messages
