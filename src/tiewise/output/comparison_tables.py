"""The tables of a comparison: two systems have a row for each measure, more are a leaderboard; programs get every pair.

Below the numbers stand sentences: what ties decide, whether other queries would give the same result, which tools
disagree.
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
from tiewise.metrics.definition import Measure
from tiewise.output.cells import estimate_cell, shows_ties
from tiewise.output.options import OutputOptions
from tiewise.tables.data_formats import round_floats
from tiewise.tables.model import Cell, Section, Table, columns_of
from tiewise.tables.records import Rows
from tiewise.tables.wording import MISSING, NumberFormat, count_noun, format_percent, format_ranks

__all__ = ["COMPARISON_COLUMNS", "ComparisonTables"]

#: The columns of TSV, CSV and Parquet and the keys of JSON Lines, as stable as those of ``tiewise evaluate``.
COMPARISON_COLUMNS = {
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

ALL_PAIRS = 10  # up to this many systems, all pairs are searched for tools that disagree, else only neighbours
FLIPS = 3  # how many such pairs are described before the others are counted

_ORDERS = {
    "independent": "each run's ties on their own",
    "per-query": "in each query one order for all runs",
    "shared": "one order of all documents for all runs and queries",
}
_TESTS = {"permutation": "paired permutation test", "t": "paired t-test", "wilcoxon": "Wilcoxon's signed-rank test"}


@dataclass(frozen=True)
class ComparisonTables:
    """A comparison to show, with the bounds over unjudged documents where these are asked for."""

    compared: Compared
    unjudged: Mapping[str, Unjudged] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    progress: Progress | None = None  #: called with how many pairs are done, of how many

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know."""
        return (*self.compared.notes, *self.remarks)

    @property
    def _is_pair(self) -> bool:
        return len(self.compared.systems) == 2

    # -- for programs -------------------------------------------------------------------------------------------

    def records(self, options: OutputOptions) -> Table:
        """Every pair in every measure."""
        return Table.of_records(COMPARISON_COLUMNS, self._records())

    def _records(self) -> Iterator[dict[str, Any]]:
        for pair in self.compared.pairs(self.progress):
            plain = pair.to_dict()
            for side, system in (("a", pair.a), ("b", pair.b)):
                plain[f"{side}_expected"] = self.compared.estimate(system, pair.measure).expected
                plain |= self._unjudged_bounds(side, system, pair.measure)
            plain |= plain.pop("difference") | {"difference": pair.difference.expected}
            for name in ("ci", "ci_order"):
                plain[f"{name}_low"], plain[f"{name}_high"] = plain[name] or (None, None)
            yield plain

    def _unjudged_bounds(self, side: str, system: str, measure: str) -> dict[str, float | None]:
        """The bounds of one run over unjudged documents, as columns."""
        known = self.unjudged.get(system)
        bounds = known.get(measure) if known else None
        parts = (bounds.lower, bounds.upper, known.condensed[measure]) if known and bounds else (None, None, None)
        names = (f"{side}_lower", f"{side}_upper", f"{side}_condensed")
        return {name: None if part is None else part.expected for name, part in zip(names, parts, strict=True)}

    def document(self, options: OutputOptions) -> dict[str, Any]:
        """How the runs were compared, the leaderboards, and every pair under the names that Python has for it."""
        found = self.compared
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
            "notes": list(options.notes),
            "leaderboards": {
                measure.name: {"tau": found.tau(measure), "rows": [dict(row) for row in found.leaderboard(measure)]}
                for measure in found.measures
            },
            "pairs": [pair.to_dict() for pair in found.pairs(self.progress)],
        }
        if self.unjudged:
            plain["unjudged"] = {name: one.to_dict() for name, one in self.unjudged.items()}
        whole: dict[str, Any] = round_floats(plain, options.digits)
        return whole

    # -- for people ---------------------------------------------------------------------------------------------

    def section(self, options: OutputOptions) -> Section:
        """A row for each measure or each system, and sentences below."""
        table = self._pair_table(options) if self._is_pair else self._leaderboard_table(options)
        sentences = self._sentences(options)
        return Section([table, *([""] if sentences else []), *sentences], self._title, options.notes)

    @property
    def _title(self) -> str:
        found = self.compared
        who = " against ".join(found.systems) if self._is_pair else f"{len(found.systems)} runs"
        which = f"{found.measures[0]} · " if len(found.measures) == 1 else ""
        return f"{which}{who} · {count_noun(found.queries, 'query', 'queries')}"

    def _pair_table(self, options: OutputOptions) -> Table:
        a, b = self.compared.systems
        rows = []
        for measure in self.compared.measures:
            pair = self.compared.pair(a, b, measure)
            values = (estimate_cell(self.compared.estimate(name, measure), measure, options) for name in (a, b))
            interval = MISSING if pair.ci is None else options.numbers.interval(*pair.ci)
            rows.append((measure.name, *values, *_pair_cells(pair, options.numbers), interval))
        heads = (a, b, "difference", "ahead", self._p_heading, f"{self._confidence} interval")
        legend = self._legend("difference", "ahead", "p", "interval")
        return Table(columns_of(["measure"], heads), rows, notes=(legend,))

    def _leaderboard_table(self, options: OutputOptions) -> Table:
        several, rows = len(self.compared.measures) > 1, list[tuple[str | Cell, ...]]()
        for measure in self.compared.measures:
            for row in self._leaderboard_rows(measure, options):
                rows.append(row if several else row[1:])
                if self.progress is not None:
                    self.progress(len(rows), len(self.compared.measures) * len(self.compared.systems))
        rival = f"against {self.compared.baseline or 'the next'}"
        heads = ("expected", "by ties", "by queries", rival, "ahead", self._p_heading)
        names = (*(["measure"] if several else []), "rank", "run")
        legend = self._legend("by ties", "by queries", "ahead", "p")
        return Table(columns_of(names, heads), rows, notes=(legend,))

    def _leaderboard_rows(self, measure: Measure, options: OutputOptions) -> Iterator[tuple[str | Cell, ...]]:
        for row, pair in zip(self._leaderboards[measure], self._rivals(measure), strict=True):
            yield (
                measure.name,
                str(row["rank"]),
                row["system"],
                estimate_cell(self.compared.estimate(row["system"], measure), measure, options),
                format_ranks(row["rank_best"], row["rank_worst"]),
                format_ranks(row["rank_low"], row["rank_high"]),
                *(_pair_cells(pair, options.numbers) if pair else (MISSING, MISSING, MISSING)),
            )

    def _rivals(self, measure: Measure) -> Iterator[Duel | None]:
        """Each system of a leaderboard against the baseline, or against the next; None where there is none."""
        names, baseline = self._leaderboards[measure]["system"], self.compared.baseline
        for name, after in zip(names, [*names[1:], None], strict=True):
            rival = baseline or after
            yield self.compared.pair(name, rival, measure) if rival and rival != name else None

    @cached_property
    def _leaderboards(self) -> dict[Measure, Rows]:
        return {measure: self.compared.leaderboard(measure) for measure in self.compared.measures}

    @property
    def _is_corrected(self) -> bool:
        """Whether p-values belong to several comparisons, and are corrected for that."""
        n = len(self.compared.systems)
        family = n <= MOST_SYSTEMS or self.compared.baseline is not None
        return family and not (n == 2 and len(self.compared.measures) == 1)

    @property
    def _p_heading(self) -> str:
        return "p (Holm)" if self._is_corrected else "p"

    @property
    def _confidence(self) -> str:
        return format_percent(self.compared.confidence).replace(".0%", "%")

    def _legend(self, *columns: str) -> str:
        how = _ORDERS[self.compared.orders]
        error = " ± the standard error where orders were sampled" if self._is_sampled else ""
        first = self.compared.systems[0] if self._is_pair else "it"
        baseline = self.compared.baseline
        pairs = f"comparisons with {baseline}" if baseline and not self._is_pair else "pairs"
        more = f", corrected for all {pairs} and measures" if self._is_corrected else ""
        words = {
            "difference": "difference: expected [lowest, highest] over the orders of ties.",
            "by ties": f"by ties: the best and the worst rank that the orders of ties allow{self._at_most}.",
            "by queries": f"by queries: the {self._confidence} interval of the rank over resamples of the queries.",
            "ahead": f"ahead: the share of all orders of ties in which {first} is, {how}{error}.",
            "p": f"p: {_TESTS[self.compared.test]} on the queries' expected differences{more}.",
            "interval": "interval: bootstrap over queries.",
        }
        return " ".join(words[column] for column in columns)

    @property
    def _is_sampled(self) -> bool:
        """Whether a share of orders is shown that was sampled."""
        pairs: Iterable[Duel | None] = (
            self.compared.pairs()
            if self._is_pair
            else (pair for measure in self.compared.measures for pair in self._rivals(measure))
        )
        return any("±" in pair.often for pair in pairs if pair)

    @property
    def _at_most(self) -> str:
        """Says if ranks over ties are bounds."""
        reached = self._is_pair or all(all(board["ranks_reached"]) for board in self._leaderboards.values())
        return "" if reached else ", at the most: not all are known to be reached by one order for all runs"

    # -- sentences ----------------------------------------------------------------------------------------------

    def _sentences(self, options: OutputOptions) -> list[str]:
        """The verdicts on two systems, or what is undecided among more; and what unjudged documents leave open."""
        if self._is_pair:
            verdicts = [pair.verdict for pair in self.compared.pairs()]
        else:
            verdicts = [
                line for measure in self.compared.measures for line in self._undecided(measure, options.numbers)
            ]
        return [*verdicts, *self._unjudged_sentences(options.numbers)]

    def _undecided(self, measure: Measure, numbers: NumberFormat) -> Iterator[str]:
        about = f"{measure}: " if len(self.compared.measures) > 1 else ""
        flips = [pair for pair in self._searched_pairs(measure) if pair.flip]
        lines = [self._not_separated(measure), self._changed_order(measure, numbers)]
        lines += [f"{pair.a} or {pair.b}? {pair.of_tools}" for pair in flips[:FLIPS]]
        if len(flips) > FLIPS:
            lines.append(f"and {len(flips) - FLIPS} more pairs for which tools name different winners.")
        return (f"{about}{line}" for line in lines if line)

    def _not_separated(self, measure: Measure) -> str:
        """Which systems neither ties nor queries separate."""
        board = self._leaderboards[measure]
        ties = [rows for rows in _groups(board, "group_ties") if self._can_change(rows, measure)]
        lines = [f"The order of ties alone can change the order of {_join_groups(ties, '; of ')}."] if ties else []
        if queries := _groups(board, "group_queries"):
            groups = _join_groups(queries, "; ")
            lines.append(f"These queries do not tell apart, with {self._confidence} confidence: {groups}.")
        return " ".join(lines)

    def _can_change(self, rows: list[dict[str, Any]], measure: Measure) -> bool:
        """Whether there are two systems of which either can be first, depending on the order of ties."""
        overlapping = (
            (a["system"], b["system"])
            for a, b in combinations(rows, 2)
            if a["maximum"] > b["minimum"] + ATOL and b["maximum"] > a["minimum"] + ATOL
        )
        if self.compared.orders == "independent":
            return any(True for _ in overlapping)
        return any(all(self.compared.pair(*two, measure).can_lead) for two in overlapping)

    def _searched_pairs(self, measure: Measure) -> Iterator[Duel]:
        names, baseline = self._leaderboards[measure]["system"], self.compared.baseline
        pairs: Iterable[tuple[str, str]]
        if baseline:
            pairs = ((name, baseline) for name in names if name != baseline)
        else:
            pairs = combinations(names, 2) if len(names) <= ALL_PAIRS else pairwise(names)
        return (self.compared.pair(a, b, measure) for a, b in pairs)

    def _changed_order(self, measure: Measure, numbers: NumberFormat) -> str:
        tau = self.compared.tau(measure)
        if tau is None or tau > 1 - 1e-9 or not _oblivious_order_differs(self._leaderboards[measure]):
            return ""
        return (
            f"In the order of {self.compared.oblivious} the runs stand differently "
            f"(Kendall's τ {numbers.number(tau)} with this table)."
        )

    def _unjudged_sentences(self, numbers: NumberFormat) -> list[str]:
        lines = []
        for name, unjudged in self.unjudged.items():
            for measure, bounds in unjudged.items():
                low, high = bounds.lower.expected, None if bounds.upper is None else bounds.upper.expected
                condensed = unjudged.condensed[measure].expected
                if low is not None and high is not None and condensed is not None:
                    lines.append(
                        f"{name}: {measure} lies in {numbers.interval(low, high)} whatever unjudged documents are "
                        f"worth, and is {numbers.number(condensed)} without them (condensed lists)."
                    )
        return lines


def _pair_cells(pair: Duel, numbers: NumberFormat) -> tuple[Cell, str, str]:
    """The difference of a pair, how often the first is ahead, and the p-value."""
    gap = pair.difference
    detail = numbers.interval(gap.minimum, gap.maximum) if shows_ties(gap, numbers) else ""
    p_value = pair.p_value if pair.p_holm is None else pair.p_holm
    return Cell(numbers.signed(gap.expected), detail), pair.often, numbers.p_value(p_value)


def _groups(board: Rows, column: str) -> list[list[dict[str, Any]]]:
    """The rows of each group of two or more that are not separated."""
    groups: dict[int, list[dict[str, Any]]] = {}
    for row in board:
        groups.setdefault(row[column], []).append(row)
    return [rows for rows in groups.values() if len(rows) > 1]


def _join_groups(groups: Iterable[list[dict[str, Any]]], between: str) -> str:
    return between.join(", ".join(row["system"] for row in rows) for rows in groups)


def _oblivious_order_differs(board: Rows) -> bool:
    """Whether two systems are in another order, or equal, by their oblivious values."""
    columns = (np.array(board[name], dtype=np.float64).round(12) for name in ("expected", "oblivious"))
    expected, oblivious = (np.sign(values[:, None] - values) for values in columns)
    return bool((expected != oblivious).any())
