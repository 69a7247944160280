"""`Rows`: a small table to read, to loop over and to hand on, without a data frame library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tiewise.tables.optional import data_frame

__all__ = ["Rows"]


class Rows(Sequence[Any]):
    """Rows that are dictionaries, all with the same columns; a column is asked for by its name.

    >>> rows = Rows({"system": ["A", "B"], "score": [0.5, None]})
    >>> rows["score"], rows[1]["system"], len(rows)
    ([0.5, None], 'B', 2)
    >>> rows
    system  score
    A       0.5000
    B       -
    """

    def __init__(self, columns: Mapping[str, Sequence[Any]]):
        self._columns = {name: list(column) for name, column in columns.items()}

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self._columns)

    def __len__(self) -> int:
        return len(next(iter(self._columns.values()), []))

    def __getitem__(self, key: Any) -> Any:
        """A column by its name, a row by its number, or some rows by a slice."""
        if isinstance(key, str):
            return self._columns[key]
        if isinstance(key, slice):
            return Rows({name: column[key] for name, column in self._columns.items()})
        return {name: column[key] for name, column in self._columns.items()}

    def to_frame(self) -> Any:
        """The rows as a pandas data frame (polars where pandas is missing)."""
        return data_frame(self._columns)

    def _repr_html_(self) -> str:
        from tiewise.tables import html as notebook

        return notebook.block("", notebook.table(self.columns, (row.values() for row in self), total=len(self)))

    def __repr__(self) -> str:
        shown = [[name, *map(_text, column)] for name, column in self._columns.items()]
        widths = [max(map(len, column)) for column in shown]
        lines = (zip(row, widths, strict=True) for row in zip(*shown, strict=True))
        return "\n".join("  ".join(f"{text:<{width}}" for text, width in line).rstrip() for line in lines)


def _text(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4f}" if isinstance(value, float) else str(value)
