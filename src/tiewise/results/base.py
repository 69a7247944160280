"""`Result`: the base of public results. A result says once what it shows, and every format comes from that.

* `_section(view)`: the tables and sentences that people read, on a terminal, in Markdown, LaTeX and notebooks;
* `_records(view)`: one flat table for programs: data frames, TSV, CSV, JSON Lines, Parquet; by default the first table
  of the section;
* `_document(view)`: everything as plain values: `to_dict` and JSON; by default the records and the notes. A result that
  a command prints has a `_schema`, the name of this shape.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar

from tiewise.results.view import View

if TYPE_CHECKING:  # results are made more often than they are shown
    from tiewise.results.model import Section, Table


class Result:
    """A result that converts to a data frame, plain values, JSON, Markdown, LaTeX, text and HTML."""

    __slots__ = ()

    _schema: ClassVar[str] = ""  #: such as ``tiewise/evaluation/1``: its last number changes with the shape

    def _section(self, view: View) -> Section:
        """What people read."""
        raise NotImplementedError

    def _records(self, view: View) -> Table:
        """What programs read as rows."""
        return self._section(View(wide=True, per_query=view.per_query)).tables[0].without_bars()

    def _document(self, view: View) -> dict[str, Any]:
        """What programs read as one document, without its schema."""
        return {"rows": self._records(view).records(), "notes": list(self._section(view).notes)}

    def to_frame(self) -> Any:
        """The rows as a pandas data frame (polars where pandas is missing)."""
        from tiewise.results.optional import data_frame

        table = self._records(View())
        return data_frame({column.name: table.values(column.name) for column in table.columns})

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values: what ``--format json`` prints."""
        return self._to_dict(View())

    def _to_dict(self, view: View) -> dict[str, Any]:
        return ({"schema": self._schema} if self._schema else {}) | self._document(view)

    def to_json(self, *, indent: int | None = 2) -> str:
        """`to_dict` as JSON; what does not apply is null."""
        import json

        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False)

    def to_markdown(
        self, *, columns: Iterable[str] = (), wide: bool = False, explain: bool = False, digits: int | None = None
    ) -> str:
        """The tables and sentences as Markdown: some columns by name, or all (`wide`); `explain` has the rest."""
        from tiewise.results.markdown import render_markdown

        return render_markdown(self._section(_view(columns, wide, explain, digits)))

    def to_latex(
        self, *, columns: Iterable[str] = (), wide: bool = False, explain: bool = False, digits: int | None = None
    ) -> str:
        r"""The tables as LaTeX; they need ``\usepackage{booktabs,siunitx}``."""
        return self._latex(_view(columns, wide, explain, digits))

    def _latex(self, view: View) -> str:
        from tiewise.results.latex import render_latex

        return render_latex(self._section(view))

    def to_text(
        self, *, columns: Iterable[str] = (), wide: bool = False, explain: bool = False, digits: int | None = None
    ) -> str:
        """The tables and sentences as a terminal shows them, without colours."""
        from tiewise.results.text import render_text

        return render_text(self._section(_view(columns, wide, explain, digits)))

    def __str__(self) -> str:
        return self.to_text().rstrip("\n") if self._schema else repr(self)  # what a command prints

    def _repr_html_(self) -> str:
        from tiewise.results.html import render_html

        return render_html(self._section(View()))


def _view(columns: Iterable[str], wide: bool, explain: bool, digits: int | None) -> View:
    names = (columns,) if isinstance(columns, str) else tuple(columns)
    return View(columns=names, wide=wide, explain=explain, digits=digits)
