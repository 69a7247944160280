"""The sheet of `Stages`: a line for each first stage, depth and φ."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tiewise._version import __version__
from tiewise.data.runs import Run
from tiewise.errors import counted
from tiewise.output.grid import Cell, Grid, Line
from tiewise.output.numerals import NONE, decimal
from tiewise.output.rows import STAGES_COLUMNS, rounded
from tiewise.output.view import View
from tiewise.rankings.first_stages import Stages

__all__ = ["Staged"]

_Row = Mapping[str, Any]


@dataclass(frozen=True)
class Staged:
    """First stages measured against a second stage, to be shown."""

    found: Stages
    reference: tuple[str, Run]
    runs: Mapping[str, Run]

    @property
    def title(self) -> str:
        """What was measured against what, and over how many queries."""
        return f"RBR against {self.reference[0]} · {counted(len(self.found.queries), 'query', 'queries')}"

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know."""
        return self.found.notes

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(STAGES_COLUMNS)

    def rows(self, view: View) -> Iterator[dict[str, Any]]:
        """Each query, if that was asked for, and then the means as ``all``."""
        if view.per_query:
            yield from self.found.per_query()
        for row in self.found.table():
            yield {name: row.get(name, "all") for name in STAGES_COLUMNS}

    def document(self, view: View) -> dict[str, Any]:
        """What was measured, and the rows."""
        inputs = [self.reference, *self.runs.items()]  # a run may be called like the reference
        sources = [{"name": name} | (run.source.to_dict() if run.source else {}) for name, run in inputs]
        return {
            "version": __version__,
            "measure": "RBR",
            "reference": sources[0],
            "runs": sources[1:],
            "queries": len(self.found.queries),
            "k": self.found.k,
            "notes": list(view.notes),
            "points": rounded(list(self.rows(view)), view.digits),
        }

    def grid(self, view: View) -> Grid:
        """A line for each system and depth, one φ after another: lines of one φ are weighed against each other."""
        rows = sorted(self.rows(view), key=lambda row: (row["query"] == "all", self.found.phis.index(row["phi"])))
        names = ("phi", "system", *(["query"] if view.per_query else []), "depth")
        columns = self._columns(rows, view.places)
        lines = tuple(
            Line(
                tuple("all" if row[name] is None else str(row[name]) for name in names),
                tuple(Cell(column(row)) for column in columns.values()),
                summary=view.per_query and row["query"] == "all",
            )
            for row in rows
        )
        return Grid(names, tuple(columns), lines, (" ".join(_LEGEND[head] for head in columns if head in _LEGEND),))

    def _columns(self, rows: Sequence[_Row], places: int) -> dict[str, Callable[[_Row], str]]:
        """The columns that say something about these rows, under their heads."""

        def shown(row: _Row, name: str) -> str:
            return decimal(row[name], places)

        def ties(row: _Row) -> str:
            bounds, extremes = (f"[{shown(row, low)}, {shown(row, high)}]" for low, high in (_BOUNDS, _EXTREMES))
            return NONE if bounds == extremes else extremes

        columns: dict[str, Callable[[_Row], str]] = {"RBR": lambda row: shown(row, "rbr_lower")}
        if any(shown(row, "rbr_lower") != shown(row, "rbr_upper") for row in rows):
            columns["upper"] = lambda row: shown(row, "rbr_upper")
        if any(ties(row) != NONE for row in rows):
            columns["over ties"] = ties
        columns["recall" if self.found.k is None else f"recall@{self.found.k}"] = lambda row: shown(row, "recall")
        costs = sorted({row["cost"] for row in rows if row["cost"] is not None})
        if costs:
            # as many digits behind the point as tell all costs apart
            digits = next((n for n in range(2, 10) if len({round(cost, n) for cost in costs}) == len(costs)), 10)
            columns["cost"] = lambda row: f"{row['cost']:,.{digits}f}"
        columns["worth it" if costs else "worth its depth"] = lambda row: "yes" if row["pareto"] else "no"
        return columns


_BOUNDS, _EXTREMES = ("rbr_lower", "rbr_upper"), ("rbr_minimum", "rbr_maximum")

_LEGEND = {
    "RBR": "RBR: expected over the orders of ties, if all that the reference does not show comes last.",
    "upper": "upper: if it comes next.",
    "over ties": "over ties: the least and the most there can be.",
    "cost": "cost: of the first stage, and of the second for as many documents as the depth says.",
    "worth it": "worth it: no line of that phi costs no more with an RBR that reaches its upper bound.",
    "worth its depth": "worth its depth: no line of that phi hands on no more with an RBR that reaches its upper one.",
}
