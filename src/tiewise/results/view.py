"""The formats of a result, and `View`: what a reader wants to see of it."""

from __future__ import annotations

from typing import Literal, NamedTuple

from tiewise.results.wording import NumberFormat

TableFormat = Literal["table", "tsv", "csv", "json", "jsonl", "latex", "markdown", "parquet"]
Format = Literal[TableFormat, "trec"]
ListFormat = Literal["table", "tsv", "json", "markdown"]

#: The format of a file, by its suffix.
SUFFIXES: dict[str, TableFormat] = {
    ".tsv": "tsv",
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "jsonl",
    ".parquet": "parquet",
    ".md": "markdown",
    ".tex": "latex",
    ".txt": "table",
}

WIDTH = 100  #: the width of tables where there is no terminal


class View(NamedTuple):
    """What a reader wants to see of a result, and how much room there is."""

    columns: tuple[str, ...] = ()  #: the columns of values, by name; empty: those of the default
    wide: bool = False  #: all columns
    explain: bool = False  #: how to read the result, and all that stands behind it
    per_query: bool = False  #: each query beside the mean
    summary: bool = True  #: the mean over queries
    digits: int | None = None  #: after the point; None: as many as suit the result
    width: int = WIDTH  #: how many characters a line has

    @property
    def numbers(self) -> NumberFormat:
        """How numbers are written: ``.363``, unless other digits are asked for."""
        return NumberFormat(3 if self.digits is None else self.digits, leading_zero=False)
