"""The sheet of a `Compared`: two systems are a line for each measure, more are a leaderboard; programs get every pair.

People read words below the numbers: what ties decide, whether other queries would say the same, which tools disagree.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from tiewise._version import __version__
from tiewise.analysis.comparison import MOST_SYSTEMS, Compared, Duel
from tiewise.analysis.significance import ATOL
from tiewise.analysis.unjudged_bounds import Unjudged
from tiewise.data.progress import Progress
from tiewise.errors import counted
from tiewise.metrics.definition import Measure
from tiewise.output import sheet
from tiewise.output.grid import Cell, Grid, Line, cell_of
from tiewise.output.numerals import NONE, decimal, interval, share, signed, visible
from tiewise.output.rows import rounded
from tiewise.output.table import Drawing
from tiewise.output.view import View
from tiewise.tables.records import Rows

__all__ = ["COMPARE_COLUMNS", "Side", "draw"]

#: The columns of TSV, CSV and Parquet and the keys of JSON Lines, as stable as those of ``tiewise evaluate``.
COMPARE_COLUMNS = {
    "measure": "the measure in its canonical spelling",
    "a": "the name of one run",
    "b": "the name of the run it is compared with; every difference is a − b",
    "queries": "how many queries are compared",
    "a_expected": "the expected value of a, as in `tiewise evaluate`",
    "b_expected": "the expected value of b",
    "difference": "the expected difference, over all orders of the tied documents",
    "minimum": "the lowest difference that orders of the tied documents can give",
    "maximum": "the highest",
    "std": "its standard deviation over the orders",
    "certain": "whether one of the two is ahead in every order",
    "probability": "how likely a is ahead in a random order",
    "probability_equal": "how likely neither is; empty where the method is normal, which cannot say",
    "probability_less": "how likely b is",
    "method": "how that was found: exact, rounded, sampled (n=…), or normal",
    "p_value": "of the test that `--test` names, on the queries' expected differences, two-sided",
    "p_holm": "the same, corrected for all pairs and measures of the comparison",
    "ci_low": "the interval of the expected difference over the sample of queries (`--confidence`): its lower end",
    "ci_high": "its upper end",
    "ci_order_low": "the interval of the difference in one order of ties, chosen once at random: its lower end",
    "ci_order_high": "its upper end",
    "effect": "the mean of the queries' differences over their standard deviation",
    "wins": "queries in which a's expectation is higher",
    "losses": "queries in which b's is",
    "ties": "queries in which they are equal",
    "flip": "whether two tools name different winners because they break ties differently",
    "verdict": "all of that in words",
    "a_lower": "with `--unjudged`, for measures that it bounds: the value of a if unjudged documents are worth nothing",
    "a_upper": "if they are worth as much as can be",
    "a_condensed": "if they are taken out of the lists",
    "b_lower": "the same for b",
    "b_upper": "the same for b",
    "b_condensed": "the same for b",
    "exact_range": "whether orders of the tied documents reach minimum and maximum, or these are only bounds",
    "probability_error": "the standard error of probability where orders were sampled",
    "std_error": "the standard error of std where orders were sampled for it",
}

ALL_PAIRS = 10  # up to so many systems, flips are looked for in all pairs, else between neighbours
FLIPS = 3  # how many flips are told before the others are counted


@dataclass(frozen=True)
class Side:
    """A comparison to be shown, side by side, with what unjudged documents leave open where that was asked for."""

    found: Compared
    unjudged: Mapping[str, Unjudged] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    progress: Progress | None = None  #: what is told how many pairs are done, of how many

    @property
    def title(self) -> str:
        """What was compared, over how many queries."""
        found = self.found
        who = " against ".join(found.systems) if self._is_pair else f"{len(found.systems)} runs"
        which = f"{found.measures[0]} · " if len(found.measures) == 1 else ""
        n = found.queries
        return f"{which}{who} · {counted(n, 'query', 'queries')}"

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know."""
        return (*self.found.notes, *self.remarks)

    @property
    def _is_pair(self) -> bool:
        return len(self.found.systems) == 2

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(COMPARE_COLUMNS)

    # -- for programs -------------------------------------------------------------------------------------------

    def rows(self, view: View) -> Iterator[dict[str, Any]]:
        """Every pair in every measure."""
        for duel in self.found.pairs(self.progress):
            plain = duel.to_dict()
            plain |= {"a_expected": self._mean(duel.a, duel), "b_expected": self._mean(duel.b, duel)}
            plain |= self._bounds("a", duel.a, duel.measure) | self._bounds("b", duel.b, duel.measure)
            plain |= plain.pop("difference") | {"difference": duel.difference.expected}
            for name in ("ci", "ci_order"):
                plain[f"{name}_low"], plain[f"{name}_high"] = plain[name] or (None, None)
            yield {name: plain[name] for name in COMPARE_COLUMNS}

    def _bounds(self, side: str, system: str, measure: str) -> dict[str, float | None]:
        """What unjudged documents leave open in one run, as columns."""
        known = self.unjudged.get(system)
        bounds = known.get(measure) if known else None
        parts = (bounds.lower, bounds.upper, known.condensed[measure]) if known and bounds else (None, None, None)
        names = (f"{side}_lower", f"{side}_upper", f"{side}_condensed")
        return {name: None if part is None else part.expected for name, part in zip(names, parts, strict=True)}

    def _mean(self, system: str, duel: Duel) -> float | None:
        return self.found.estimate(system, duel.measure).expected

    def document(self, view: View) -> dict[str, Any]:
        """How it was compared, the leaderboards, and every pair under the names that Python has for it."""
        found = self.found
        plain: dict[str, Any] = {
            "version": __version__,
            "runs": found.sources,
            "baseline": found.baseline,
            "orders": found.orders,
            "test": found.test,
            "confidence": found.confidence,
            "samples": found.samples,
            "seed": found.seed,
            "queries": found.queries,
            "notes": list(view.notes),
            "leaderboards": {
                measure.name: {"tau": found.tau(measure), "rows": [dict(row) for row in found.leaderboard(measure)]}
                for measure in found.measures
            },
            "pairs": [duel.to_dict() for duel in found.pairs(self.progress)],
        }
        if self.unjudged:
            plain["unjudged"] = {name: one.to_dict() for name, one in self.unjudged.items()}
        whole: dict[str, Any] = rounded(plain, view.digits)
        return whole

    # -- for people ---------------------------------------------------------------------------------------------

    def grid(self, view: View) -> Grid:
        """A line for each measure or each system, and below it what reads it."""
        grid = self._pair(view) if self._is_pair else self._board(view)
        return Grid(grid.names, grid.heads, grid.lines, (*grid.legend, *self.words(view)))

    def words(self, view: View) -> list[str]:
        """The verdicts on two systems, or what is not settled between more; and what is not judged."""
        told = [duel.verdict for duel in self.found.pairs()] if self._is_pair else self._unsettled(view)
        return [*told, *self._open(view)]

    def _pair(self, view: View) -> Grid:
        a, b = self.found.systems
        places = view.places
        lines = []
        for measure in self.found.measures:
            duel = self.found.pair(a, b, measure)
            cells = (
                *(cell_of(self.found.estimate(name, measure), measure, view) for name in (a, b)),
                _difference(duel, places),
                Cell(duel.often),
                Cell(_p(duel)),
                Cell(NONE if duel.ci is None else interval(*duel.ci, places)),
            )
            lines.append(Line((measure.name,), cells))
        heads = (a, b, "difference", "ahead", self._p_head, f"{self._level} interval")
        return Grid(("measure",), heads, tuple(lines), (self._legend("difference", "ahead", "p", "interval"),))

    def _board(self, view: View) -> Grid:
        several, lines = len(self.found.measures) > 1, list[Line]()
        for measure in self.found.measures:
            for line in self._board_lines(measure, several, view):
                lines.append(line)
                if self.progress is not None:
                    self.progress(len(lines), len(self.found.measures) * len(self.found.systems))
        base = self.found.baseline
        heads = (
            "expected",
            "by ties",
            "by queries",
            f"against {base}" if base else "against the next",
            "ahead",
            self._p_head,
        )
        names = (*(["measure"] if several else []), "rank", "run")
        legend = self._legend("by ties", "by queries", "ahead", "p")
        return Grid(names, heads, tuple(lines), (legend,))

    def _board_lines(self, measure: Measure, several: bool, view: View) -> Iterator[Line]:
        for row, duel in zip(self._boards[measure], self._rivals(measure), strict=True):
            cells = (
                cell_of(self.found.estimate(row["system"], measure), measure, view),
                Cell(_ranks(row["rank_best"], row["rank_worst"])),
                Cell(_ranks(row["rank_low"], row["rank_high"])),
                _difference(duel, view.places) if duel else Cell(NONE),
                Cell(duel.often if duel else NONE),
                Cell(_p(duel) if duel else NONE),
            )
            yield Line((*([measure.name] if several else []), str(row["rank"]), row["system"]), cells)

    def _rivals(self, measure: Measure) -> Iterator[Duel | None]:
        """Each system of a leaderboard against the baseline, or against the next; None where there is none."""
        names, base = self._boards[measure]["system"], self.found.baseline
        for name, after in zip(names, [*names[1:], None], strict=True):
            rival = base or after
            yield self.found.pair(name, rival, measure) if rival and rival != name else None

    @cached_property
    def _boards(self) -> dict[Measure, Rows]:
        return {measure: self.found.leaderboard(measure) for measure in self.found.measures}

    @property
    def _corrected(self) -> bool:
        """Whether p-values are those of several comparisons, and corrected for that."""
        n = len(self.found.systems)
        family = n <= MOST_SYSTEMS or self.found.baseline is not None
        return family and not (n == 2 and len(self.found.measures) == 1)

    @property
    def _p_head(self) -> str:
        return "p (Holm)" if self._corrected else "p"

    @property
    def _level(self) -> str:
        return share(self.found.confidence).replace(".0%", "%")

    def _legend(self, *columns: str) -> str:
        how = _ORDERS[self.found.orders]
        error = " ± the standard error where orders were sampled" if self._is_sampled else ""
        first = self.found.systems[0] if self._is_pair else "it"
        base = self.found.baseline
        pairs = f"comparisons with {base}" if base and not self._is_pair else "pairs"
        more = f", corrected for all {pairs} and measures" if self._corrected else ""
        words = {
            "difference": "difference: expected [lowest, highest] over the orders of ties.",
            "by ties": f"by ties: the best and the worst rank that the orders of ties allow{self._at_most}.",
            "by queries": f"by queries: the {self._level} interval of the rank over resamples of the queries.",
            "ahead": f"ahead: the share of all orders of ties in which {first} is, {how}{error}.",
            "p": f"p: {_TESTS[self.found.test]} on the queries' expected differences{more}.",
            "interval": "interval: bootstrap over queries.",
        }
        return " ".join(words[column] for column in columns)

    @property
    def _is_sampled(self) -> bool:
        """Whether some share of orders is shown that was sampled."""
        if self._is_pair:
            duels = self.found.pairs()
        else:
            duels = (duel for measure in self.found.measures for duel in self._rivals(measure) if duel)
        return any("±" in duel.often for duel in duels)

    @property
    def _at_most(self) -> str:
        """Whether ranks by ties are bounds, in words."""
        reached = self._is_pair or all(all(board["ranks_reached"]) for board in self._boards.values())
        return "" if reached else ", at the most: not all are known to be reached by one order for all runs"

    # -- what is not settled ------------------------------------------------------------------------------------

    def _unsettled(self, view: View) -> list[str]:
        told = []
        for measure in self.found.measures:
            about = f"{measure}: " if len(self.found.measures) > 1 else ""
            told += [f"{about}{line}" for line in (self._told_apart(measure), self._turned(measure, view)) if line]
            flips = [duel for duel in self._looked_at(measure) if duel.flip]
            told += [f"{about}{_flip(duel)}" for duel in flips[:FLIPS]]
            if len(flips) > FLIPS:
                told.append(f"{about}and {len(flips) - FLIPS} more pairs for which tools name different winners.")
        return told

    def _told_apart(self, measure: Measure) -> str:
        """Which neighbours ties or queries do not tell apart, in words."""
        board = self._boards[measure]
        ties = [rows for rows in _groups(board, "group_ties") if self._can_change(rows, measure)]
        told = [f"The order of ties alone can change the order of {_named(ties)}."] if ties else []
        if queries := _groups(board, "group_queries"):
            told.append(f"These queries do not tell apart, with {self._level} confidence: {_named(queries, '; ')}.")
        return " ".join(told)

    def _can_change(self, rows: list[dict[str, Any]], measure: Measure) -> bool:
        """Whether of some two systems either can stand above the other, as the order of ties has it."""
        overlapping = (
            (a["system"], b["system"])
            for a, b in combinations(rows, 2)
            if a["maximum"] > b["minimum"] + ATOL and b["maximum"] > a["minimum"] + ATOL
        )
        if self.found.orders == "independent":
            return any(True for _ in overlapping)
        return any(all(self.found.pair(*two, measure).can_lead) for two in overlapping)

    def _looked_at(self, measure: Measure) -> Iterator[Duel]:
        names, base = self._boards[measure]["system"], self.found.baseline
        pairs: Iterable[tuple[str, str]]
        if base:
            pairs = ((name, base) for name in names if name != base)
        else:
            pairs = combinations(names, 2) if len(names) <= ALL_PAIRS else pairwise(names)
        return (self.found.pair(a, b, measure) for a, b in pairs)

    def _turned(self, measure: Measure, view: View) -> str:
        tau = self.found.tau(measure)
        if tau is None or tau > 1 - 1e-9 or not _stand_differently(self._boards[measure]):
            return ""
        shown = decimal(tau, view.places)
        return (
            f"In the order of {self.found.oblivious} the runs stand differently (Kendall's τ {shown} with this table)."
        )

    def _open(self, view: View) -> list[str]:
        told = []
        for name, found in self.unjudged.items():
            for measure, bounds in found.items():
                low, high = bounds.lower.expected, None if bounds.upper is None else bounds.upper.expected
                condensed = found.condensed[measure].expected
                if low is not None and high is not None and condensed is not None:
                    told.append(
                        f"{name}: {measure} lies in {interval(low, high, view.places)} whatever unjudged documents are "
                        f"worth, and is {decimal(condensed, view.places)} without them (condensed lists)."
                    )
        return told


def draw(side: Side, view: View) -> str | bytes:
    """A comparison in the format of the view: for people a page, else a sheet like any other."""
    return _page(side, view) if view.format == "table" else sheet.draw(side, view)


def _page(side: Side, view: View) -> str:
    drawing = Drawing(view.width, colour=view.colour)
    drawing.words(side.title, "bold")
    whole, words = side.grid(view), side.words(view)
    drawing.grid(Grid(whole.names, whole.heads, whole.lines, whole.legend[: len(whole.legend) - len(words)]))
    if words:
        drawing.gap()
    for line in words:
        drawing.words(line)
    drawing.notes(view.notes)
    return drawing.text()


_ORDERS = {
    "independent": "each run's ties on their own",
    "per-query": "in each query one order for all runs",
    "shared": "one order of all documents for all runs and queries",
}
_TESTS = {"permutation": "paired permutation test", "t": "paired t-test", "wilcoxon": "Wilcoxon's signed-rank test"}


def _difference(duel: Duel, places: int) -> Cell:
    gap = duel.difference
    assert gap.expected is not None and gap.minimum is not None and gap.maximum is not None
    detail = interval(gap.minimum, gap.maximum, places) if visible(gap, places) else ""
    return Cell(signed(gap.expected, places), detail)


def _p(duel: Duel) -> str:
    value = duel.p_value if duel.p_holm is None else duel.p_holm
    return decimal(value, 3) if value >= 0.001 else "<.001"


def _ranks(low: int, high: int) -> str:
    return str(low) if low == high else f"{low}–{high}"


def _groups(board: Rows, column: str) -> list[list[dict[str, Any]]]:
    """The rows of each group of two or more that are not told apart."""
    found: dict[int, list[dict[str, Any]]] = {}
    for row in board:
        found.setdefault(row[column], []).append(row)
    return [rows for rows in found.values() if len(rows) > 1]


def _named(groups: Iterable[list[dict[str, Any]]], between: str = "; of ") -> str:
    return between.join(", ".join(row["system"] for row in rows) for rows in groups)


def _stand_differently(board: Rows) -> bool:
    """Whether some two systems stand in another order, or level, by their oblivious values."""
    columns = (np.array(board[name], dtype=np.float64).round(12) for name in ("expected", "oblivious"))
    expected, oblivious = (np.sign(values[:, None] - values) for values in columns)
    return bool((expected != oblivious).any())


def _flip(duel: Duel) -> str:
    return f"{duel.a} or {duel.b}? {duel.of_tools}"
