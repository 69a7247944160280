"""Results to read: a table for people, and TSV, CSV, JSON, Parquet, LaTeX, Markdown and trec_eval's lines for tools.

`render` shows any result in the format that `OutputOptions` name. One module for each kind of result describes its
tables (`report_tables`, `comparison_tables`, `audit_tables`, `similarity_tables`, `stage_tables`); `tiewise.tables`
renders a table in each format.
"""

from tiewise.output.options import Format, ListFormat, OutputOptions, TableFormat, Value
from tiewise.output.rendering import ResultTables, render

__all__ = ["Format", "ListFormat", "OutputOptions", "ResultTables", "TableFormat", "Value", "render"]
