"""A result that every format can show, whatever it is of: rows for programs, a grid for people, a document as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol

from tiewise.output.view import View, module_of

if TYPE_CHECKING:
    from tiewise.output.grid import Grid

__all__ = ["Sheet", "draw"]


class Sheet(Protocol):
    """What a format asks of a result; the notes are those of the view."""

    @property
    def title(self) -> str:
        """What stands above the grid."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns of all rows."""

    def rows(self, view: View) -> Iterator[dict[str, Any]]:
        """Every row by column."""

    def document(self, view: View) -> dict[str, Any]:
        """All of it as plain values."""

    def grid(self, view: View) -> Grid:
        """What people see."""


def draw(sheet: Sheet, view: View) -> str | bytes:
    """A sheet in the format of the view: text that ends with a line break, or bytes (Parquet)."""
    content: str | bytes = module_of(view.format).draw(sheet, view)
    return content
