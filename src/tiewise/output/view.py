"""What is to be shown and how: the choices that all formats share, and the way to each of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal, NamedTuple, get_args

from tiewise.analysis.reports import Report

__all__ = [
    "EXTRAS",
    "SUFFIXES",
    "Extra",
    "Format",
    "ListFormat",
    "Named",
    "SheetFormat",
    "Value",
    "View",
    "module_of",
    "render",
]

SheetFormat = Literal["table", "tsv", "csv", "json", "jsonl", "latex", "markdown", "parquet"]
Format = Literal[SheetFormat, "trec"]
ListFormat = Literal["table", "tsv", "json", "markdown"]
Value = Literal["expected", "oblivious", "minimum", "maximum"]
Extra = Literal["minimum", "maximum", "range", "std", "oblivious", "bias", "z", "residual", "cut"]

EXTRAS: tuple[Extra, ...] = get_args(Extra)

#: The format that the suffix of a file asks for.
SUFFIXES: dict[str, SheetFormat] = {
    ".tsv": "tsv",
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "jsonl",
    ".parquet": "parquet",
    ".md": "markdown",
    ".tex": "latex",
    ".txt": "table",
}

# Every format's module; each has a function render(reports, view), and all but trec have draw(sheet, view).
_MODULES = {
    "table": "table",
    "tsv": "delimited",
    "csv": "delimited",
    "json": "documents",
    "jsonl": "documents",
    "latex": "latex",
    "markdown": "markdown",
    "parquet": "columnar",
    "trec": "trec",
}


class Named(NamedTuple):
    """A report under the name of its run."""

    name: str
    report: Report


@dataclass(frozen=True)
class View:
    """How reports are to be shown."""

    format: Format = "table"
    per_query: bool = False
    summary: bool = True  #: the mean over queries
    digits: int | None = None  #: None: what suits the format
    columns: tuple[Extra, ...] = ()  #: statistics beside the expectation and its range
    value: Value | None = None  #: one number a cell instead of the expectation with its range
    tools: bool = False  #: what each known tool prints
    level: float = 1  #: the relevance level that trec_eval's names stand for
    notes: tuple[str, ...] = ()  #: what else a reader should know
    width: int | None = None  #: of the terminal; None: as wide as need be
    colour: bool = False

    @property
    def places(self) -> int:
        """Digits behind the point where numbers are for people: 3, unless asked for otherwise."""
        return 3 if self.digits is None else self.digits


def render(reports: Sequence[Named], view: View) -> str | bytes:
    """Some reports in the format of the view: text that ends with a line break, or bytes (Parquet)."""
    content: str | bytes = module_of(view.format).render(reports, view)
    return content


def module_of(format: Format) -> Any:
    """The module of a format."""
    return import_module(f"tiewise.output.{_MODULES[format]}")
