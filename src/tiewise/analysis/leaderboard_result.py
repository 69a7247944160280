"""`Leaderboard`: systems over many collections, with intervals of their ranks for two kinds of chance.

*Other queries* keeps the collections; *other collections* draws these again. They answer different questions and are
never merged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import pairwise
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from tiewise._version import __version__
from tiewise.analysis.leaderboard_tables import leaderboard_section
from tiewise.analysis.rank_intervals import (
    Differences,
    RankIntervals,
    over_queries,
    over_units,
    rank_intervals,
    unit_means,
)
from tiewise.analysis.significance import ATOL
from tiewise.analysis.simultaneous import sort_by_values
from tiewise.caching import cached_method, cached_property
from tiewise.data.columns import Floats, identifier
from tiewise.errors import InputError
from tiewise.metrics.aggregation import sum_over_queries
from tiewise.metrics.definition import Measure
from tiewise.results.base import Result
from tiewise.results.model import Rows, Section, Table
from tiewise.results.view import View
from tiewise.results.wording import (
    MAX_NAMED,
    cached_by_spelling,
    count_noun,
    cut_lists_note,
    is_in_shell,
    join_names,
    list_examples,
    merge_notes,
)

#: What is drawn again.
Other = Literal["queries", "collections"]
OTHERS: tuple[Other, ...] = get_args(Other)

#: Fewer groups than this cannot show that their differences are other than normal.
FEW_UNITS = 6

#: The columns of a leaderboard, a row for each system, and the keys of `rows` in JSON.
LEADERBOARD_COLUMNS = {
    "system": "the name of the system",
    "mean": "the mean over collections (a group counts as one); empty if one is missing",
    "borda": "Borda points: the number of systems less the rank, added up over collections",
    "rank": "1 + the number of systems that are ahead on the collections that both have; empty if a pair has none",
    "rank_queries_low": "the first rank that other queries of these collections leave open",
    "rank_queries_high": "the last",
    "rank_collections_low": "the first rank that other collections leave open; empty for one collection",
    "rank_collections_high": "the last",
    "minimum": "the lowest mean that orders of ties can give",
    "maximum": "the highest",
    "collections": "how many it has",
}

#: The columns of `Leaderboard.cells`, and the keys of `cells` in JSON.
CELL_COLUMNS = {
    "collection": "the name of the collection",
    "system": "the name of the system",
    "expected": "the mean over queries; empty if the cell is missing",
    "standard_error": "of this mean, over queries; empty for one query",
    "minimum": "the lowest value that an order of the tied documents can give",
    "maximum": "the highest",
    "queries": "the number of queries",
}

#: The keys of `Leaderboard.to_dict` and of JSON.
LEADERBOARD_KEYS = {
    "version": "of Tiewise",
    "measure": "the measure in its canonical spelling",
    "groups": "the collections of each group; one without a group is a group by itself",
    "confidence": "of the intervals of ranks, which hold for all systems at once",
    "seed": "of random draws",
    "sentence": "what these collections can tell",
    "may_be_first": "the systems whose ranks begin with 1, for other `queries` and other `collections`",
    "open_neighbours": "how many neighbours cannot be told apart, in the same way",
    "rows": "the columns of systems",
    "cells": "the columns of cells",
    "notes": "what a reader should know",
}


@dataclass(frozen=True, eq=False)
class MeasuredCollection:
    """One collection: what all systems have there; NaN for those that lack it."""

    name: str
    queries: int  #: that all of its systems have
    judged: int  #: queries that were judged
    expected: Floats  # (n_queries, n_systems)
    minimum: Floats  # (n_systems,): means over queries
    maximum: Floats
    cut: tuple[str, ...]  #: systems whose lists may have been cut inside a tie group
    notes: Mapping[bool, Mapping[str, tuple[str, ...]]]  #: of runs, as Python and as a shell spell options

    @property
    def has(self) -> NDArray[np.bool_]:
        """Which systems have it, (n_systems,)."""
        return np.asarray(~np.isnan(self.expected[0]))

    @property
    def mean(self) -> Floats:
        """The mean over queries of each system."""
        return sum_over_queries(self.expected) / self.queries

    @property
    def error(self) -> Floats:
        """The standard error of each mean; NaN for one query."""
        if self.queries < 2:
            return np.full(self.expected.shape[1], np.nan)
        return np.asarray(self.expected.std(axis=0, ddof=1) / np.sqrt(self.queries))


class Leaderboard(Result):
    """Systems over many collections: means, Borda points, and the ranks that other samples would allow.

    >>> import tiewise as tw
    >>> qrels = {f"q{i}": {"a": 1} for i in range(9)}
    >>> good, bad = ({query: docs for query in qrels} for docs in ({"a": 0.9, "b": 0.5}, {"b": 0.5, "a": 0.1}))
    >>> found = tw.leaderboard({"web": (qrels, {"A": good, "B": bad}), "news": (qrels, {"A": good, "B": bad})}, "RR")
    >>> found.may_be_first("queries"), found.may_be_first("collections"), found.is_shown("A", "B")
    (('A',), ('A', 'B'), True)
    >>> found.cells()[0]["expected"], found.cells()[0]["standard_error"]
    (1.0, 0.0)
    """

    _schema = "tiewise/leaderboard/1"

    def __init__(
        self,
        measure: Measure,
        collections: Sequence[MeasuredCollection],
        systems: Sequence[str],
        groups: Mapping[str, tuple[str, ...]],
        *,
        confidence: float = 0.95,
        seed: int = 0,
    ):
        self.measure, self.groups, self.confidence, self.seed = measure, dict(groups), confidence, seed
        self._collections, self._names = tuple(collections), tuple(systems)
        self.collections = tuple(one.name for one in collections)
        lacking = [name for name, column in zip(systems, self._means.T, strict=True) if np.isnan(column).all()]
        if lacking:
            raise InputError(f"{list_examples(lacking)} has only parts of groups. Give all parts of one, or no groups.")

    def __repr__(self) -> str:
        systems, collections = count_noun(len(self._names), "system"), count_noun(len(self.collections), "collection")
        return f"<Leaderboard: {self.measure}, {systems}, {collections}>"

    @property
    def systems(self) -> tuple[str, ...]:
        """The systems, the first in rank first."""
        return tuple(row["system"] for row in self._rows)

    @property
    def _is_grouped(self) -> bool:
        return len(self.groups) < len(self.collections)

    # -- numbers --------------------------------------------------------------------------------------------------

    @cached_property
    def _units(self) -> list[int]:
        """The place of each collection's group."""
        place = {name: unit for unit, parts in enumerate(self.groups.values()) for name in parts}
        return [place[name] for name in self.collections]

    @cached_property
    def _means(self) -> Floats:
        """The value of each system in each group, (n_groups, n_systems); NaN if a part is missing."""
        return unit_means([one.expected for one in self._collections], self._units)

    @cached_property
    def _borda(self) -> Floats:
        """Borda points: equal systems share the mean of their ranks; a missing value has no points."""
        points = np.zeros(len(self._names))
        for row in self._means:
            with np.errstate(invalid="ignore"):
                gap = row - row[:, None]  # NaN compares as False
            ranks = (gap > ATOL).sum(axis=1) + ((np.abs(gap) <= ATOL).sum(axis=1) + 1) / 2
            points += np.where(np.isnan(row), 0.0, len(row) - ranks)
        return points

    @cached_method
    def _differences(self, other: Other) -> Differences:
        """The differences of all systems, which stand in an order that depends on their values alone."""
        order = self._order
        if other == "collections":
            return over_units(self._means[:, order], self._differences("queries").error)
        return over_queries([one.expected[:, order] for one in self._collections], self._units)

    @cached_property
    def _order(self) -> list[int]:
        whole = np.vstack([one.expected for one in self._collections])
        return sort_by_values([np.nan_to_num(whole, nan=-1e9)]).tolist()

    @cached_method
    def _intervals(self, other: Other) -> RankIntervals | None:
        """In the order of `_order`; None if this sample says nothing."""
        return rank_intervals(self._differences(other), self.confidence, self.seed)

    @cached_property
    def _rows(self) -> list[dict[str, Any]]:
        """The rows of systems, the first in rank first; those without a rank by Borda points."""
        ends = {other: self._intervals(other) for other in OTHERS}
        found = self._differences("queries")
        number = np.count_nonzero([one.has for one in self._collections], axis=0)
        is_ranked = np.all((found.n > 0) | np.eye(len(self._names), dtype=bool), axis=1).tolist()
        ahead = (found.gap > ATOL).sum(axis=0)
        extremes = ([one.minimum[None] for one in self._collections], [one.maximum[None] for one in self._collections])
        units = (self._means, *(unit_means(each, self._units) for each in extremes))
        means = [sum_over_queries(each) / len(each) for each in units]
        rows = []
        for place, system in enumerate(self._order):
            mean, low, high = (None if np.isnan(each[system]) else float(each[system]) for each in means)
            row: dict[str, Any] = {"system": self._names[system], "mean": mean, "borda": float(self._borda[system])}
            row["rank"] = int(1 + ahead[place]) if is_ranked[place] else None
            for other, one in ends.items():
                row[f"rank_{other}_low"] = None if one is None else int(one.low[place])
                row[f"rank_{other}_high"] = None if one is None else int(one.high[place])
            rows.append(row | {"minimum": low, "maximum": high, "collections": int(number[system])})
        return sorted(rows, key=lambda row: (row["rank"] is None, row["rank"], -row["borda"], row["system"]))

    def rows(self) -> Rows:
        """The systems, the first in rank first: see `LEADERBOARD_COLUMNS`."""
        return Rows({name: [row[name] for row in self._rows] for name in LEADERBOARD_COLUMNS})

    def cells(self) -> Rows:
        """The value of each system in each collection, with its standard error over queries: see `CELL_COLUMNS`."""
        order = [self._names.index(name) for name in self.systems]
        rows: list[tuple[Any, ...]] = []
        for one in self._collections:
            columns = np.array([one.mean, one.error, one.minimum, one.maximum])[:, order].T.tolist()
            plain = ([None if value != value else value for value in row] for row in columns)
            named = zip(self.systems, plain, strict=True)
            rows += [(one.name, system, *row, one.queries) for system, row in named]
        return Rows(dict(zip(CELL_COLUMNS, zip(*rows, strict=True), strict=True)))

    # -- what it can tell -----------------------------------------------------------------------------------------

    def is_shown(self, a: str, b: str, other: Other = "queries") -> bool | None:
        """Whether `a` is shown to be better than `b`, for other queries or other collections; None if that is unknown.

        All pairs are tested at once.
        """
        places = []
        for name in (identifier(a, "system"), identifier(b, "system")):
            if name not in self._names:
                raise InputError(f"There is no system '{name}'. The systems are {list_examples(self.systems, 5)}.")
            places.append(self._order.index(self._names.index(name)))
        found = self._intervals(_check_other(other))
        return None if found is None else bool(found.shown[tuple(places)])

    def may_be_first(self, other: Other = "queries") -> tuple[str, ...] | None:
        """The systems whose ranks begin with 1, for other queries or other collections; None if that is unknown."""
        key = f"rank_{_check_other(other)}_low"
        return None if self._intervals(other) is None else tuple(r["system"] for r in self._rows if r[key] == 1)

    def open_neighbours(self, other: Other = "queries") -> int | None:
        """How many neighbours of the table cannot be told apart, for other queries or other collections."""
        if self._intervals(_check_other(other)) is None:
            return None
        return sum(not (self.is_shown(a, b, other) or self.is_shown(b, a, other)) for a, b in pairwise(self.systems))

    @property
    def sentence(self) -> str:
        """How many neighbours cannot be told apart, and how many systems may be first."""
        return " ".join(f"Other {other}: {self._describe(other)}." for other in OTHERS)

    def _describe(self, other: Other) -> str:
        first, unknown = self.may_be_first(other), self.open_neighbours(other)
        if first is None or unknown is None:
            return "no interval (see the notes)"
        open_ = f"{unknown:,} of {len(self.systems) - 1:,} neighbours cannot be told apart"
        is_clear = open_ if unknown else "every neighbour can be told apart"
        if not first:  # pairs have other collections in common, so they may form a cycle
            return f"{is_clear}; every system is behind another one"
        named = f"{first[0]} is first" if len(first) == 1 else f"{len(first):,} systems may be first"
        return f"{is_clear}; {named}"

    # -- notes ----------------------------------------------------------------------------------------------------

    @property
    def cut_note(self) -> str:
        """The note on lists that may have been cut inside a tie group; empty if there are none."""
        cut = [f"{name} in {one.name}" for one in self._collections for name in one.cut]
        return cut_lists_note(f"Lists of {join_names(cut, limit=MAX_NAMED)}") if cut else ""

    @cached_by_spelling
    def notes(self) -> tuple[str, ...]:
        """What a reader should know."""
        own = [
            (f"{system} in {one.name}", notes)
            for one in self._collections
            for system, notes in one.notes[is_in_shell()].items()
        ]
        return (*self._missing_notes(), *self._sample_notes(), *filter(None, [self.cut_note]), *merge_notes(own))

    def _missing_notes(self) -> list[str]:
        lacks = {
            name: some
            for place, name in enumerate(self._names)
            if (some := [one.name for one in self._collections if not one.has[place]])
        }
        if not lacks:
            return []
        cells = count_noun(len(self._names) * len(self.collections), "cell")
        number = sum(map(len, lacks.values()))
        listed = join_names([f"{name} ({join_names(some)})" for name, some in lacks.items()], limit=MAX_NAMED)
        notes = [
            f"{number:,} of {cells} {'is' if number == 1 else 'are'} missing: {listed}. Such a system has no mean, and "
            "a pair is compared on the collections that both have."
        ]
        if any(row["rank"] is None for row in self._rows):
            notes.append("A system that has no collection in common with another one has no rank, only an interval.")
        return notes

    def _sample_notes(self) -> list[str]:
        notes = []
        if self._intervals("collections") is None:
            kind = "group" if self._is_grouped else "collection"
            which = f"One {kind} says" if len(self.groups) == 1 else f"No two systems share two {kind}s, which says"
            notes.append(f"{which} nothing about other {kind}s: there is no interval.")
        elif len(self.groups) < FEW_UNITS:
            notes.append(
                f"There are only {len(self.groups)} {'groups' if self._is_grouped else 'collections'}: what is shown "
                "for others rests on differences that are normally distributed."
            )
        single = [one.name for one in self._collections if one.queries < 2]
        if single:
            has = "has" if len(single) == 1 else "have"
            notes.append(
                f"{join_names(single)} {has} one query, whose variance is not known: no pair that has it is told apart "
                "for other queries."
            )
        return notes + [
            f"{one.name}: {one.queries:,} of {one.judged:,} queries count, those that all its systems have."
            for one in self._collections
            if one.queries < one.judged
        ]

    # -- what is shown --------------------------------------------------------------------------------------------

    @property
    def plot(self) -> Any:
        """Figures of this result: `ranks()`."""
        return import_module("tiewise.figures.leaderboards").LeaderboardPlots(self)

    def _section(self, view: View) -> Section:
        return leaderboard_section(self, view)

    def _records(self, view: View) -> Table:
        return Table.of_records(LEADERBOARD_COLUMNS, self._rows)

    def _document(self, view: View) -> dict[str, Any]:
        first = {other: self.may_be_first(other) for other in OTHERS}
        return {
            "version": __version__,
            "measure": self.measure.name,
            "groups": {name: list(parts) for name, parts in self.groups.items()},
            "confidence": self.confidence,
            "seed": self.seed,
            "sentence": self.sentence,
            "may_be_first": {other: None if names is None else list(names) for other, names in first.items()},
            "open_neighbours": {other: self.open_neighbours(other) for other in OTHERS},
            "rows": self._records(view).records(),
            "cells": list(self.cells()),
            "notes": list(self.notes),
        }


def _check_other(other: Other) -> Other:
    if other not in OTHERS:
        raise InputError(f"Other what? Use {' or '.join(map(repr, OTHERS))}, not {other!r}.")
    return other
