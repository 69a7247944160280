"""The tables of `Stages`: a row for each first stage, depth and φ."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tiewise._version import __version__
from tiewise.caching import cached_property
from tiewise.data.runs import Run
from tiewise.output.options import OutputOptions
from tiewise.rankings.first_stages import Stages
from tiewise.tables.model import Section, Table, columns_of
from tiewise.tables.wording import MISSING, NumberFormat, count_noun

__all__ = ["STAGE_COLUMNS", "StageTables"]

#: The columns of TSV, CSV and Parquet and the keys of JSON Lines, as stable as those of ``tiewise evaluate``.
STAGE_COLUMNS = {
    "system": "the name of the first stage: its file's name without folder and suffix",
    "query": "the query's id, or `all` for the mean over the queries of the reference",
    "depth": "how many documents the first stage hands on",
    "phi": "the φ of rank-biased recall",
    "rbr_lower": "rank-biased recall if what the reference does not show comes last: its mean over the orders of ties",
    "rbr_upper": "the same if it comes next",
    "rbr_minimum": "the lowest value that an order of the tied documents can give, if it comes last",
    "rbr_maximum": "the highest, if it comes next",
    "recall": "the share of the reference's first k documents that is handed on, expected over the orders of ties",
    "cost": "what both stages take, by `--cost`",
    "pareto": "false if another line of that φ costs no more and its rbr_lower reaches this rbr_upper",
}

_Row = Mapping[str, Any]
_LEGEND = {
    "RBR": "RBR: rank-biased recall, the weight in the reference of the documents handed on, expected over the orders "
    "of ties; documents that the reference lacks come last.",
    "upper": "upper: if they come next.",
    "over ties": "over ties: lowest and highest over the orders of the documents listed; – if ties change nothing.",
    "at most": "at most: the highest recall that so many documents can have.",
    "cost": "cost: of the first stage, and of the second for as many documents as the depth says.",
}


@dataclass(frozen=True)
class StageTables:
    """First stages measured against a second stage, to show."""

    stages: Stages
    reference: tuple[str, Run]
    runs: Mapping[str, Run]

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know."""
        return self.stages.notes

    def records(self, options: OutputOptions) -> Table:
        """Each query, if these are asked for, and then the means as ``all``."""
        rows = [*(self.stages.per_query() if options.per_query else ()), *self.stages.table()]
        return Table.of_records(STAGE_COLUMNS, ({"query": "all"} | row for row in rows))

    def document(self, options: OutputOptions) -> dict[str, Any]:
        """What was measured, and the rows."""
        inputs = [self.reference, *self.runs.items()]  # a run may be called like the reference
        sources = [{"name": name} | (run.source.to_dict() if run.source else {}) for name, run in inputs]
        return {
            "version": __version__,
            "measure": "RBR",
            "reference": sources[0],
            "runs": sources[1:],
            "queries": len(self.stages.queries),
            "k": self.stages.k,
            "notes": list(options.notes),
            "points": self.records(options).records(),
        }

    def section(self, options: OutputOptions) -> Section:
        """A row for each system and depth, one φ after another: rows of one φ are compared with each other."""
        found = self.records(options).records()
        found.sort(key=lambda row: (row["query"] == "all", self.stages.phis.index(row["phi"])))
        names = ("phi", "system", *(["query"] if options.per_query else []), "depth")
        formats = self._formats(found, options.numbers)
        rows = [
            (
                *("all" if row[name] is None else str(row[name]) for name in names),
                *(format_row(row) for format_row in formats.values()),
            )
            for row in found
        ]
        means = (place for place, row in enumerate(found) if options.per_query and row["query"] == "all")
        price = "at no higher cost" if "cost" in formats else "with no more documents"
        reached = "its upper value" if "upper" in formats else "its RBR"
        dominated = f"dominated: another line of that phi reaches {reached} {price}."
        recall = f"{self._recall_heading}: the share of {self._recalled} that is handed on."
        legend = " ".join([*(_LEGEND[heading] for heading in formats if heading in _LEGEND), recall, dominated])
        table = Table(columns_of(names, list(formats)), rows, notes=(legend,), summary=frozenset(means))
        queries = count_noun(len(self.stages.queries), "query", "queries")
        return Section([table], f"RBR against {self.reference[0]} · {queries}", options.notes)

    def _formats(self, rows: Sequence[_Row], numbers: NumberFormat) -> dict[str, Callable[[_Row], str]]:
        """How each column writes a row, by its heading; columns that say nothing about these rows are left out."""

        def number(row: _Row, name: str) -> str:
            return numbers.number(row[name])

        def over_ties(row: _Row) -> str:
            bounds = numbers.interval(row["rbr_lower"], row["rbr_upper"])
            extremes = numbers.interval(row["rbr_minimum"], row["rbr_maximum"])
            return MISSING if bounds == extremes else extremes

        columns: dict[str, Callable[[_Row], str]] = {"RBR": lambda row: number(row, "rbr_lower")}
        if any(numbers.differ(row["rbr_lower"], row["rbr_upper"]) for row in rows):
            columns["upper"] = lambda row: number(row, "rbr_upper")
        if any(over_ties(row) != MISSING for row in rows):
            columns["over ties"] = over_ties
        columns[self._recall_heading] = lambda row: number(row, "recall")
        if any(numbers.differ(self._highest_recall(row), 1.0) for row in rows):
            columns["at most"] = lambda row: numbers.number(self._highest_recall(row))
        costs = sorted({row["cost"] for row in rows if row["cost"] is not None})
        if costs:
            # as many digits after the point as make all costs look different
            digits = next((n for n in range(2, 10) if len({round(cost, n) for cost in costs}) == len(costs)), 10)
            columns["cost"] = lambda row: f"{row['cost']:,.{digits}f}"
        columns["dominated"] = lambda row: "no" if row["pareto"] else "yes"
        return columns

    @property
    def _recalled(self) -> str:
        """The documents of which recall is a share."""
        return "the reference" if self.stages.k is None else f"the first {self.stages.k:,} documents of the reference"

    @property
    def _recall_heading(self) -> str:
        """Of how many documents of the reference recall is."""
        if self.stages.k is not None:
            return f"recall@{self.stages.k}"
        shortest, longest = int(self._lengths.min()), int(self._lengths.max())
        return f"recall of {longest:,}" if shortest == longest else f"recall of {shortest:,}–{longest:,}"

    @cached_property
    def _lengths(self) -> NDArray[np.int64]:
        """How many documents of the reference count for the recall of each query."""
        lengths = np.diff(self.reference[1].offsets)
        return lengths if self.stages.k is None else np.minimum(lengths, self.stages.k)

    def _highest_recall(self, row: _Row) -> float:
        """The recall of a set of this depth that holds nothing but documents of the reference."""
        lengths = self._lengths[self.reference[1].query_index.get(row["query"], slice(None))]
        held = lengths if row["depth"] is None else np.minimum(row["depth"], lengths)
        return float(np.mean(held / np.maximum(lengths, 1)))
