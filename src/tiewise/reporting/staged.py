"""The sheet of `Stages`: a line for each first stage, depth and φ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from tiewise._version import __version__
from tiewise.data import Run
from tiewise.firststage import Stages
from tiewise.reporting.grid import Cell, Grid, Line
from tiewise.reporting.numerals import NONE, decimal, number
from tiewise.reporting.rows import STAGES_COLUMNS, rounded
from tiewise.reporting.view import View

__all__ = ["Staged"]

WORTH, NOT_WORTH = "yes", "no"


@dataclass(frozen=True)
class Staged:
    """First stages measured against a second stage, to be shown."""

    found: Stages
    reference: tuple[str, Run]
    runs: Mapping[str, Run]

    @property
    def title(self) -> str:
        """What was measured against what, and over how many queries."""
        n = len(self.found.queries)
        return f"RBR against {self.reference[0]} · {n:,} {'query' if n == 1 else 'queries'}"

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know."""
        missing = {name: number for name, number in self.found.missing.items() if number}
        total = len(self.found.queries)
        return tuple(
            f"{name} hands on nothing for {number:,} of {total:,} queries, which count as 0."
            for name, number in missing.items()
        )

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
        sources = [{"name": name} | (asdict(run.source) if run.source else {}) for name, run in inputs]
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
        """A line for each system, depth and φ."""
        rows = list(self.rows(view))
        tied = any(row["rbr_minimum"] != row["rbr_lower"] or row["rbr_maximum"] != row["rbr_upper"] for row in rows)
        costs = any(row["cost"] is not None for row in rows)
        names = ("system", *(["query"] if view.per_query else []), "depth", "phi")
        k = self.found.k
        heads = (
            "RBR",
            "upper",
            *(["over ties"] if tied else []),
            "recall" if k is None else f"recall@{k}",
            *(["cost"] if costs else []),
            "worth it",
        )
        lines = tuple(
            Line(
                tuple("all" if row[name] is None else str(row[name]) for name in names),
                tuple(self._cells(row, view, tied=tied, costs=costs)),
                summary=view.per_query and row["query"] == "all",
            )
            for row in rows
        )
        return Grid(names, heads, lines, _legend(tied=tied, costs=costs))

    @staticmethod
    def _cells(row: Mapping[str, Any], view: View, *, tied: bool, costs: bool) -> Iterator[Cell]:
        yield Cell(decimal(row["rbr_lower"], view.places))
        yield Cell(decimal(row["rbr_upper"], view.places))
        if tied:
            names = ("rbr_lower", "rbr_upper", "rbr_minimum", "rbr_maximum")
            lower, upper, least, most = (decimal(row[name], view.places) for name in names)
            yield Cell(NONE if (lower, upper) == (least, most) else f"[{least}, {most}]")
        yield Cell(number(row["recall"], view.places))
        if costs:
            yield Cell(NONE if row["cost"] is None else f"{row['cost']:,.4g}")
        yield Cell(WORTH if row["pareto"] else NOT_WORTH)


def _legend(*, tied: bool, costs: bool) -> tuple[str, ...]:
    words = ["RBR: if all that the reference does not show comes last; upper: if it comes next."]
    if tied:
        words.append("Both are expected over the orders of ties; over ties: the least and the most there can be.")
    price = "costs no more" if costs else "hands on no more documents"
    words.append(f"Worth it: no other line of that phi {price} and is surely at least as good.")
    return (" ".join(words),)
