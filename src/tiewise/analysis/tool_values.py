"""`ToolTable`: what other tools print for a run, each beside the expectation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, overload

from tiewise.metrics.definition import Measure
from tiewise.metrics.estimate import Estimate
from tiewise.results.base import Result
from tiewise.results.estimates import format_measured
from tiewise.results.model import Cell, Section, Table, columns_of
from tiewise.results.view import View

#: The columns of TSV, CSV and Parquet and the keys of JSON Lines of tools.
TOOL_COLUMNS = {
    "run": "the name of the run: its file's name without folder and suffix",
    "measure": "the measure in its canonical spelling",
    "tool": "a tool that reports this measure",
    "version": "the versions whose rule is meant",
    "value": "what it prints; empty if that cannot be reproduced",
    "bias": "value − expected",
    "note": "how its definition differs, or why its number cannot be reproduced",
}


class ToolValue(NamedTuple):
    """What one tool would print for one measure; None, with the reason in `note`, if that cannot be known."""

    tool: str
    version: str
    measure: str
    value: float | None
    bias: float | None
    note: str


class ToolTable(Result, Sequence[ToolValue]):
    """What the known tools would print for a run, one row for each tool and measure."""

    _schema = "tiewise/tools/1"

    def __init__(self, values: Sequence[ToolValue], expected: Mapping[Measure, Estimate]):
        self._values, self._expected = tuple(values), dict(expected)

    @overload
    def __getitem__(self, place: int) -> ToolValue: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[ToolValue, ...]: ...
    def __getitem__(self, place: int | slice) -> ToolValue | tuple[ToolValue, ...]:
        return self._values[place]

    def __len__(self) -> int:
        return len(self._values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ToolTable) and self._values == other._values

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return self.to_text().rstrip()

    def _section(self, view: View) -> Section:
        numbers, footnotes = view.numbers, dict[str, dict[str, None]]()  # the tools of each note
        found = {(row.tool, row.measure): row for row in self}

        def cell(tool: str, measure: Measure) -> Cell:
            row, sign = found.get((tool, measure.name)), ""
            if row is None:
                return Cell("")
            if row.note:
                footnotes.setdefault(row.note, {})[row.tool] = None
                sign = _raised(list(footnotes).index(row.note) + 1)
            if row.value is None or row.bias is None:
                return Cell("?", mark=sign)
            text = format_measured(row.value, numbers, is_count=measure.total)
            return Cell(text, f"({numbers.signed(row.bias)})", sign)

        tools = list(dict.fromkeys(row.tool for row in self))
        rows = [(tool, *(cell(tool, measure) for measure in self._expected)) for tool in tools]
        expected = (format_measured(e.expected, numbers, is_count=m.total) for m, e in self._expected.items())
        notes = (f"{_raised(place)} {', '.join(who)}: {note}" for place, (note, who) in enumerate(footnotes.items(), 1))
        columns = columns_of(["tool"], [str(measure) for measure in self._expected])
        table = Table(
            columns,
            [*rows, ("expected", *expected)],
            "What each tool prints (bias: printed minus expected)",
            tuple(notes),
            summary=frozenset({len(tools)}),
        )
        return Section([table])

    def _records(self, view: View) -> Table:
        return ToolTables({"": self})._records(view).drop("run")

    def _document(self, view: View) -> dict[str, Any]:
        return {"rows": self._records(view).records()}


class ToolTables(Result, dict[str, ToolTable]):
    """What tools print for several runs by name, or for one."""

    _schema = ToolTable._schema

    def _section(self, view: View) -> Section:
        tables = {name: one._section(view).tables[0] for name, one in self.items()}
        if len(tables) == 1:
            return Section(list(tables.values()), next(iter(tables)))
        return Section([table._replace(title=f"{name}: {table.title}") for name, table in tables.items()])

    def _records(self, view: View) -> Table:
        rows = ({"run": name} | row._asdict() for name, table in self.items() for row in table)
        return Table.of_records(TOOL_COLUMNS, rows)

    def _document(self, view: View) -> dict[str, Any]:
        runs = [{"name": name, **table._to_dict(view)} for name, table in self.items()]
        return runs[0] if len(runs) == 1 else {"runs": runs}


def _raised(number: int) -> str:
    return str(number).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
