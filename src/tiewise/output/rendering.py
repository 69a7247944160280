"""`render`: any result in any format."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from tiewise.errors import InputError
from tiewise.output.options import OutputOptions
from tiewise.tables import data_formats
from tiewise.tables.model import Section, Table
from tiewise.tables.optional import need

__all__ = ["ResultTables", "render"]


class ResultTables(Protocol):
    """What a format asks of a result."""

    def section(self, options: OutputOptions) -> Section:
        """What people read: tables, paragraphs and notes."""

    def records(self, options: OutputOptions) -> Table:
        """What programs read: one table with stable column names."""

    def document(self, options: OutputOptions) -> dict[str, Any]:
        """Everything as plain values, for JSON."""


def render(result: ResultTables, options: OutputOptions) -> str | bytes:
    """A result in the format of the options: text that ends with a line break, or bytes (Parquet)."""
    match options.format:
        case "table":
            from tiewise.tables.text import render_text

            return render_text(result.section(options), options.width, colour=options.colour)
        case "markdown":
            from tiewise.tables.markdown import render_markdown

            return render_markdown(result.section(options))
        case "latex":
            from tiewise.tables.latex import render_latex

            return render_latex(result.section(options))
        case "tsv" | "csv":
            write = data_formats.render_csv if options.format == "csv" else data_formats.render_tsv
            return write(result.records(options), options.digits)
        case "json":
            return data_formats.render_json(data_formats.round_floats(result.document(options), options.digits))
        case "jsonl":
            return data_formats.render_json_lines(result.records(options), options.digits)
        case "parquet":
            return _parquet(result.records(options), options.digits)
        case "trec":
            from tiewise.output.report_tables import ReportTables
            from tiewise.output.trec_format import render_trec

            if isinstance(result, ReportTables):
                return render_trec(result.reports, options)
    raise InputError(f"There is no format '{options.format}' for this result.")


def _parquet(table: Table, digits: int | None) -> bytes:
    """The rows of TSV as a Parquet file: numbers are numbers, and an empty cell is null."""
    from tiewise.io.parquet import parquet_bytes

    arrow = need("pyarrow", "Parquet", "arrow")
    columns = {
        column.name: [_utf8(value) for value in data_formats.round_floats(table.values(column.name), digits)]
        for column in table.columns
    }
    return parquet_bytes({name: arrow.array(values, _arrow_type(arrow, values)) for name, values in columns.items()})


def _utf8(value: Any) -> Any:
    """A value, if it is text without characters that have no UTF-8: these are written as escapes, as in all formats."""
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value


def _arrow_type(arrow: Any, values: Sequence[Any]) -> Any:
    """The type of a column: numbers are float64, unless all are whole."""
    kinds = {type(value) for value in values if value is not None}
    if kinds and kinds <= {str}:
        return arrow.string()
    return arrow.bool_() if kinds == {bool} else arrow.int64() if kinds == {int} else arrow.float64()
