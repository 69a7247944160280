"""`render`: any result in any format."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from tiewise.results import data_formats
from tiewise.results.base import Result
from tiewise.results.model import Table
from tiewise.results.optional import need
from tiewise.results.view import TableFormat, View
from tiewise.results.wording import spelled_for_shell


def render(
    result: Result,
    format: TableFormat,
    view: View,
    *,
    notes: Sequence[str] = (),
    colour: bool = False,
) -> str | bytes | Iterator[str]:
    """A result as text that ends with a line break, whole or in pieces, or as bytes (Parquet).

    `notes` are shown to people beside those of the result.
    """
    match format:
        case "table" | "markdown":
            section = result._section(view)
            section = replace(section, notes=[*notes, *section.notes])
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
            return data_formats.render_json(data_formats.round_floats(document, view.digits))
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
