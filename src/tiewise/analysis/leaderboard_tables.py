"""What people read of a leaderboard: one table, one sentence, and on demand how to read it and every cell."""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from tiewise.results.model import Cell, Column, Hint, Part, Section, Table
from tiewise.results.view import View
from tiewise.results.wording import MAX_NAMED, MISSING, count_noun, format_level, format_ranks

if TYPE_CHECKING:
    from tiewise.analysis.leaderboard_result import Leaderboard

CELL_COLUMNS = 4  #: the most collections that a table of cells has

LEGEND = (
    "mean: over the {units}, each of which counts as much; values are expected over all orders of ties. borda: in "
    "each, the number of systems less the rank, added up. Ranks: from 1 + the number of systems that are shown to be "
    "better to the number of systems − the number of those shown to be worse; all {level} intervals of a column hold "
    "together. other queries: if other queries were drawn for these collections. other collections: if other {units} "
    "like these were drawn: the wider question. The two are never added up."
)


def leaderboard_section(found: Leaderboard, view: View) -> Section:
    """The table of systems, and what these collections can tell."""
    systems, collections = count_noun(len(found.systems), "system"), count_noun(len(found.collections), "collection")
    groups = f" in {count_noun(len(found.groups), 'group')}" * found._is_grouped
    parts: list[Part] = [_system_table(found, view), found.sentence]
    notes, more = found.notes, 0 if view.explain else max(len(found.notes) - MAX_NAMED, 0)
    if view.explain:
        units = "groups" if groups else "collections"
        parts += ["", LEGEND.format(units=units, level=format_level(found.confidence)), *_cell_tables(found, view)]
    else:
        parts.append(Hint.explain("every cell", *["all notes"] * bool(more)))
    if more:
        notes = (*notes[:MAX_NAMED], f"{count_noun(more, 'more note')}.")
    return Section(parts, f"{found.measure} · {collections}{groups} · {systems}", notes)


def _system_table(found: Leaderboard, view: View) -> Table:
    numbers, ranks = view.numbers, f"rank ({format_level(found.confidence)}) for other"

    def interval(other: str) -> Callable[[dict[str, Any]], str]:
        low, high = f"rank_{other}_low", f"rank_{other}_high"
        return lambda row: MISSING if row[low] is None else format_ranks(row[low], row[high])

    columns: dict[Column, Callable[[dict[str, Any]], Any]] = {
        Column("rank"): lambda row: MISSING if row["rank"] is None else f"{row['rank']:,}",
        Column("system", shown="always"): itemgetter("system"),
        Column("mean", align="right"): lambda row: numbers.number(row["mean"]),
        Column("ties", "by tie order", "right", shown="wide"): lambda row: numbers.extremes(
            row["minimum"], row["maximum"]
        ),
        Column("borda", align="right"): lambda row: f"{row['borda']:,.1f}",
        Column("collections", "cells", "right", shown="wide"): itemgetter("collections"),
        Column("rank_queries", "queries", group=ranks): interval("queries"),
        Column("rank_collections", "collections", group=ranks): interval("collections"),
    }
    return Table.of_rows(columns, found.rows(), view)


def _cell_tables(found: Leaderboard, view: View) -> list[Table]:
    """Every value with its standard error, a few collections at a time."""
    by_collection: dict[str, list[dict[str, Any]]] = {}
    for cell in found.cells():
        by_collection.setdefault(cell["collection"], []).append(cell)
    names, tables = list(by_collection), []
    for first in range(0, len(names), CELL_COLUMNS):
        some = names[first : first + CELL_COLUMNS]
        columns: dict[str, list[Any]] = {"system": list(found.systems)}
        columns |= {name: [_cell(cell, view) for cell in by_collection[name]] for name in some}
        title = "Each collection: mean over queries (standard error)" if not first else ""
        tables.append(Table.of_columns(columns, title=title))
    return tables


def _cell(cell: dict[str, Any], view: View) -> Cell:
    error = cell["standard_error"]
    detail = "" if error is None else f"({view.numbers.number(error)})"
    return Cell(view.numbers.number(cell["expected"]), detail, value=cell["expected"])
