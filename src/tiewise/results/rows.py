"""`Rows`: a small table to read, to loop over and to convert, without a data frame library."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tiewise.results.base import Result
from tiewise.results.model import Section, Table
from tiewise.results.view import View
from tiewise.results.wording import format_value


class Rows(Result, Sequence[Any]):
    """Rows that are dictionaries with the same keys; ``rows["score"]`` is a column, ``rows[0]`` a row.

    >>> rows = Rows({"system": ["A", "B"], "score": [0.5, None]})
    >>> rows["score"], rows[1]["system"], len(rows)
    ([0.5, None], 'B', 2)
    >>> rows
    system  score
    A       0.5000
    B       –
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

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (dict(zip(self._columns, row, strict=True)) for row in zip(*self._columns.values(), strict=True))

    def _section(self, view: View) -> Section:
        return Section([Table.of_columns(self._columns)])

    def __repr__(self) -> str:
        shown = [[name, *map(format_value, column)] for name, column in self._columns.items()]
        widths = [max(map(len, column)) for column in shown]
        lines = (zip(row, widths, strict=True) for row in zip(*shown, strict=True))
        return "\n".join("  ".join(f"{text:<{width}}" for text, width in line).rstrip() for line in lines)
