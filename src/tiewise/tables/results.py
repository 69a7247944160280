"""`Result`: the base of public results. It converts a result to every format by one piece of code.

A class says what it shows, and gets `to_frame`, `to_dict`, `to_markdown`, `to_latex` and what notebooks display:

* `_section()` is required: the tables and paragraphs that people read, as a `Section`;
* `_records()` is optional: the table that programs read; by default the first table of the section.

A class whose dictionary or data frame has a documented shape of its own overrides `to_dict` or `to_frame`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # results are made more often than they are shown
    from tiewise.tables.model import Section, Table

__all__ = ["Result"]


class Result:
    """A result that converts to a data frame, plain values, Markdown, LaTeX and HTML."""

    __slots__ = ()

    def _section(self) -> Section:
        """What people read."""
        raise NotImplementedError

    def _records(self) -> Table:
        """What programs read."""
        return self._section().tables[0].without_bars()

    def to_frame(self) -> Any:
        """The rows as a pandas data frame (polars where pandas is missing)."""
        from tiewise.tables.optional import data_frame

        table = self._records()
        return data_frame({column.name: table.values(column.name) for column in table.columns})

    def to_dict(self) -> dict[str, Any]:
        """The rows and the notes as plain values."""
        return {"rows": self._records().records(), "notes": list(self._section().notes)}

    def to_markdown(self) -> str:
        """The tables as Markdown."""
        from tiewise.tables.markdown import render_markdown

        return render_markdown(self._section())

    def to_latex(self) -> str:
        r"""The tables as LaTeX; they need ``\usepackage{booktabs,siunitx}``."""
        from tiewise.tables.latex import render_latex

        return render_latex(self._section())

    def _repr_html_(self) -> str:
        from tiewise.tables.html import render_html

        return render_html(self._section())
