"""The table of `Protocol` in every format."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from tiewise._version import __version__
from tiewise.analysis.protocol_result import Protocol
from tiewise.output.options import OutputOptions
from tiewise.tables.model import Section, Table

__all__ = ["ProtocolTables"]


@dataclass(frozen=True)
class ProtocolTables:
    """The rows of a protocol, to show: with all columns, or not in points."""

    protocol: Protocol
    wide: bool = False
    fractions: bool = False

    def section(self, options: OutputOptions) -> Section:
        """A table for each measure, and what it says."""
        shown = self.protocol._section(wide=self.wide, fractions=self.fractions)
        return replace(shown, notes=options.notes)

    def records(self, options: OutputOptions) -> Table:
        """A line for each row and measure."""
        return self.protocol._records()

    def document(self, options: OutputOptions) -> dict[str, Any]:
        """The rows, and what to choose."""
        return {"version": __version__, **self.protocol.to_dict(), "notes": list(options.notes)}
