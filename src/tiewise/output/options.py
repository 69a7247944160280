"""The formats, and the options that all of them share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from tiewise.tables.wording import NumberFormat

__all__ = ["STATISTICS", "SUFFIXES", "Format", "ListFormat", "OutputOptions", "Statistic", "TableFormat", "Value"]

TableFormat = Literal["table", "tsv", "csv", "json", "jsonl", "latex", "markdown", "parquet"]
Format = Literal[TableFormat, "trec"]
ListFormat = Literal["table", "tsv", "json", "markdown"]
Value = Literal["expected", "oblivious", "minimum", "maximum"]
Statistic = Literal["minimum", "maximum", "range", "std", "oblivious", "bias", "z", "residual", "cut"]

STATISTICS: tuple[Statistic, ...] = get_args(Statistic)

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


@dataclass(frozen=True)
class OutputOptions:
    """How a result is shown."""

    format: Format = "table"
    per_query: bool = False
    summary: bool = True  #: show the mean over queries
    digits: int | None = None  #: None: as many as suit the format
    columns: tuple[Statistic, ...] = ()  #: statistics beside the expected value and its range
    value: Value | None = None  #: one number in each cell instead of the expected value with its range
    tools: bool = False  #: show what each known tool prints
    level: float = 1  #: the relevance level that trec_eval's names stand for
    notes: tuple[str, ...] = ()  #: what else a reader should know
    width: int | None = None  #: of the terminal; None: as wide as necessary
    colour: bool = False

    @property
    def numbers(self) -> NumberFormat:
        """How numbers are written for people: ``.363``, unless other digits are asked for."""
        return NumberFormat(3 if self.digits is None else self.digits, leading_zero=False)
