"""Results to read: a table for people, and TSV, CSV, JSON, Parquet, LaTeX, Markdown and trec_eval's lines for tools.

`render` draws any number of reports, each under the name of its run, in the way that a `View` asks for; `sheet.draw`
draws any other result. Each format is a small module of its own and is imported only when it is asked for.
"""

from tiewise.output.view import Format, ListFormat, Named, SheetFormat, Value, View, render

__all__ = ["Format", "ListFormat", "Named", "SheetFormat", "Value", "View", "render"]
