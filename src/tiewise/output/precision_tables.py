"""The table of `Precisions` in every format."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from tiewise._version import __version__
from tiewise.output.options import OutputOptions
from tiewise.scoring.precision_trials import Precisions
from tiewise.tables.model import Section, Table

__all__ = ["PrecisionTables"]


@dataclass(frozen=True)
class PrecisionTables:
    """The rows of `Precisions`, to show."""

    precisions: Precisions

    def section(self, options: OutputOptions) -> Section:
        """A row for each way to store and score, and what to choose."""
        return replace(self.precisions._section(options.numbers), notes=options.notes)

    def records(self, options: OutputOptions) -> Table:
        """A row for each way and measure."""
        return self.precisions._records()

    def document(self, options: OutputOptions) -> dict[str, Any]:
        """The rows, and what to choose."""
        return {"version": __version__, **self.precisions.to_dict(), "notes": list(options.notes)}
