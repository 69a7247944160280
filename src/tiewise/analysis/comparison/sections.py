"""The tables and sentences of a comparison, for notebooks, terminals, Markdown and LaTeX.

Two systems have a row for each measure. More systems are a leaderboard. Both have a column for each of the two
questions of `answers`: however ties are ordered, and for other queries? Below are sentences on both, on tools that
disagree, and on what unjudged documents leave open.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from tiewise.analysis.comparison.answers import ALPHA, QUERIES_QUESTION, TIES_QUESTION
from tiewise.analysis.comparison.pair import PairComparison
from tiewise.analysis.significance import ATOL
from tiewise.caching import cached_property
from tiewise.data.progress import Progress
from tiewise.metrics.definition import Measure
from tiewise.metrics.estimate import Estimate
from tiewise.metrics.tool_rules import tool_for
from tiewise.tables.estimates import difference_cell, estimate_cell, explain_cut_marks
from tiewise.tables.model import Bar, Cell, Column, Section, Table, columns_of
from tiewise.tables.records import Rows
from tiewise.tables.wording import MISSING, PLAIN, NumberFormat, count_noun, format_percent, format_ranks, join_names

if TYPE_CHECKING:
    from tiewise.analysis.comparison.result import Compared
    from tiewise.analysis.unjudged_bounds import Unjudged

__all__ = ["ComparisonSection", "pair_section"]

MAX_SEARCHED = 10  #: up to this many systems, all pairs are searched for reversals, else only neighbours
MAX_RIVALS = 50  #: the most runs that are compared with the first one
MAX_OPEN = 5  #: the most neighbours of unclear order that are named; others are counted
MAX_FLIPS = 3  #: the most such pairs that are described; others are counted

DIFFERENCE_BAR = "Bar: lowest to highest difference over the orders of ties; dark line: expected; faint line: 0."
VALUE_BAR = "Bar: lowest to highest over the orders of ties; line: expected{}."
TIES_HEADING, QUERIES_HEADING = "all orders", "other queries"
ORDER_KINDS = {
    "independent": "each run's ties on their own",
    "per-query": "in each query one order for all runs",
    "shared": "one order of all documents for all runs and queries",
}
TESTS = {"permutation": "a paired permutation test", "t": "a paired t-test", "wilcoxon": "Wilcoxon's signed-rank test"}


def pair_section(pair: PairComparison) -> Section:
    """Two systems in one measure."""
    columns = columns_of(["measure"], ["difference", "", TIES_HEADING, QUERIES_HEADING, "interval"])
    (cells,) = _difference_cells([pair], PLAIN, bars=True, first=f"{pair.a} ", corrected=pair.is_corrected)
    row = (pair.measure, *cells, _interval(pair, PLAIN))
    legend = DIFFERENCE_BAR if pair.difference.tied else ""
    table = _drop_empty_columns(Table(columns, [row], bar_legend=legend))
    return Section([table, pair.verdict], f"{pair.a} against {pair.b}")


@dataclass(frozen=True)
class ComparisonSection:
    """Two systems in all measures, or a leaderboard of more systems, and sentences.

    With `bars`, as in a notebook, ranges are drawn too, and each measure has its own leaderboard.
    """

    compared: Compared
    numbers: NumberFormat = PLAIN
    bars: bool = False
    unjudged: Mapping[str, Unjudged] = field(default_factory=dict)
    progress: Progress | None = None

    def build(self, notes: Sequence[str]) -> Section:
        """Tables, sentences and notes."""
        found, measures = self.compared, self.compared.measures
        if self._is_pair:
            tables = [self._pair_table()]
        else:
            tables = [self._leaderboard_table(some) for some in ([[m] for m in measures] if self.bars else [measures])]
        sentences = [*self._verdicts(), *self._sentences_on_unjudged()]
        systems = " against ".join(self._two) if self._is_pair else f"{len(found.systems)} runs"
        measure = f"{measures[0]} · " if len(measures) == 1 else ""
        title = f"{measure}{systems} · {count_noun(found.queries, 'query', 'queries')}"
        return Section([*tables, *([""] if sentences else []), *sentences], title, notes)

    @property
    def _is_pair(self) -> bool:
        return len(self.compared.systems) == 2

    @cached_property
    def _two(self) -> tuple[str, str]:
        """The systems of a pair; every difference is the first minus the second, the baseline if there is one."""
        pair = next(self.compared.pairs())
        return pair.a, pair.b

    # -- two systems --------------------------------------------------------------------------------------------

    def _pair_table(self) -> Table:
        found, (a, b) = self.compared, self._two
        pairs = [found.pair(a, b, measure) for measure in found.measures]
        cells = _difference_cells(pairs, self.numbers, bars=self.bars, first=f"{a} ", corrected=self._is_corrected)
        rows = [
            (
                measure.name if len(pairs) > 1 else "",
                *(_estimate_cell(found.estimate(name, measure), measure, self.numbers) for name in (a, b)),
                *difference,
                _interval(pair, self.numbers),
            )
            for measure, pair, difference in zip(found.measures, pairs, cells, strict=True)
        ]
        headings = (a, b, "difference", "", TIES_HEADING, QUERIES_HEADING, f"{self._confidence} interval")
        legend = self._legend(pairs, "difference", "ties", "queries", "interval")
        return self._table(columns_of(["measure"], headings), rows, [*legend, DIFFERENCE_BAR])

    def _table(
        self, columns: tuple[Column, ...], rows: Sequence[Sequence[Any]], legend: Sequence[str], title: str = ""
    ) -> Table:
        """A table without empty columns; the last sentence of the legend is about its bars."""
        has_bars = any(isinstance(value, Bar) for row in rows for value in row)
        bar_legend = legend[-1] if has_bars else ""
        table = _drop_empty_columns(Table(columns, rows, title, (" ".join(legend[:-1]),), bar_legend))
        return explain_cut_marks(table)

    # -- leaderboards -------------------------------------------------------------------------------------------

    def _leaderboard_table(self, measures: Sequence[Measure]) -> Table:
        found, rows, pairs = self.compared, list[tuple[Any, ...]](), list[PairComparison]()
        total = len(found.measures) * len(found.systems)
        for measure in measures:
            name = measure.name if len(measures) > 1 else ""
            for row, pair in zip(self._leaderboards[measure], self._rivals(measure), strict=True):
                rows.append((name, *self._leaderboard_cells(row, measure), *self._rival_cells(pair)))
                pairs += [pair] if pair else []
                if self.progress is not None:
                    self.progress(len(rows), total)
        rival = f"against {found.baseline or 'the next'}"
        headings = ("expected", "", "by queries", rival, TIES_HEADING, QUERIES_HEADING)
        legend = self._legend(pairs, "rank", "by queries", "rival", "ties", "queries")
        orders = dict.fromkeys(tool_for(found.oblivious, measure) for measure in measures if found.oblivious)
        cross = f"; cross: order of {', '.join(orders)}" if orders else ""
        title = measures[0].name if len(measures) < len(found.measures) else ""
        return self._table(
            columns_of(["measure", "rank", "run"], headings), rows, [*legend, VALUE_BAR.format(cross)], title
        )

    def _leaderboard_cells(self, row: dict[str, Any], measure: Measure) -> Iterator[str | Cell | Bar]:
        best, worst = row["rank_best"], row["rank_worst"]
        yield Cell(str(row["rank"]), "" if best == worst else f"({format_ranks(best, worst)})")
        yield row["system"]
        estimate, board = self.compared.estimate(row["system"], measure), self._leaderboards[measure]
        yield _estimate_cell(estimate, measure, self.numbers)
        ends = min(board["minimum"]), max(board["maximum"])
        has_bar = self.bars and estimate.tied
        yield Bar(estimate.minimum, estimate.expected, estimate.maximum, row["oblivious"], ends) if has_bar else ""
        yield format_ranks(row["rank_low"], row["rank_high"])

    def _rival_cells(self, pair: PairComparison | None) -> tuple[str | Cell, ...]:
        if pair is None:
            return MISSING, MISSING, MISSING
        ((difference, _, ties, queries),) = _difference_cells([pair], self.numbers, corrected=self._is_corrected)
        return difference, ties, queries

    def _rivals(self, measure: Measure) -> Iterator[PairComparison | None]:
        """Each system of a leaderboard against the baseline, or against the next; None if there is none."""
        names, baseline = self._leaderboards[measure]["system"], self.compared.baseline
        for name, after in zip(names, [*names[1:], None], strict=True):
            rival = baseline or after
            yield self.compared.pair(name, rival, measure) if rival and rival != name else None

    @cached_property
    def _leaderboards(self) -> dict[Measure, Rows]:
        return {measure: self.compared.leaderboard(measure) for measure in self.compared.measures}

    # -- legend -------------------------------------------------------------------------------------------------

    def _legend(self, pairs: Iterable[PairComparison], *columns: str) -> list[str]:
        """What the columns mean."""
        found = self.compared
        pairs = list(pairs)
        error = " (± the standard error, if orders were sampled)" if any("±" in pair.ahead for pair in pairs) else ""
        listed = "; listed: of the documents listed, for lists may have been cut" if any(map(_is_listed, pairs)) else ""
        if any(pair.open_by_cuts for pair in pairs):
            listed += "; open if cut: documents that may be missing from lists could put either run ahead"
        first, less = (self._two[0], f" {' minus '.join(self._two)},") if self._is_pair else ("the run of the row", "")
        rival, other = (found.baseline, found.baseline) if found.baseline else ("the next", "the run below")
        family = f"comparisons with {found.baseline}" if found.baseline and not self._is_pair else "pairs"
        corrected = f", corrected for all {family} and measures (Holm)" if self._is_corrected else ""
        reached = self._is_pair or all(all(board["ranks_reached"]) for board in self._leaderboards.values())
        bound = "" if reached else ", at the most: not all are known to be reached by one order for all runs"
        legend = {
            "difference": f"difference:{less} expected [lowest, highest] over the orders of ties.",
            "rank": f"rank: by expected value; in brackets the ranks that the orders of ties allow{bound}.",
            "by queries": f"by queries: the {self._confidence} interval of the rank over resamples of the queries; "
            "between two of the runs the test counts (other queries).",
            "rival": f"against {rival}: the expected difference to {other}, [lowest, highest] over the orders of ties; "
            f"{TIES_HEADING} and {QUERIES_HEADING} are about this difference.",
            "ties": f"all orders: whether the same run is ahead in every order of ties; else the share of orders in "
            f"which {first} is ahead{error}, {ORDER_KINDS[found.orders]}{listed}.",
            "queries": f"other queries: whether the expected difference is significant (p < {ALPHA:g}); p by "
            f"{TESTS[found.test]}{corrected}.",
            "interval": "interval: bootstrap over queries.",
        }
        return [legend[column] for column in columns]

    @property
    def _is_corrected(self) -> bool:
        """Whether p-values are corrected for several comparisons."""
        return self.compared.has_family and not (self._is_pair and len(self.compared.measures) == 1)

    @property
    def _confidence(self) -> str:
        return format_percent(self.compared.confidence).replace(".0%", "%")

    # -- sentences ----------------------------------------------------------------------------------------------

    def _verdicts(self) -> list[str]:
        """The verdicts on two systems, or both answers for a leaderboard of more."""
        if self._is_pair:
            return [pair.verdict for pair in self.compared.pairs()]
        lines = []
        for measure in self.compared.measures:
            about = f"{measure}: " if len(self.compared.measures) > 1 else ""
            flips = [pair for pair in self._searched_pairs(measure) if pair.flip]
            found = [self._describe_first(measure), *self._answers(measure), self._changed_order(measure)]
            found += [f"{pair.a} or {pair.b}? {pair.verdict_on_tools}" for pair in flips[:MAX_FLIPS]]
            if len(flips) > MAX_FLIPS:
                found.append(
                    f"and {len(flips) - MAX_FLIPS} more pairs for which orders of ties name different winners."
                )
            lines += [f"{about}{line}" for line in found if line]
        return lines

    def _describe_first(self, measure: Measure) -> str:
        """Whether the run with the highest expected value is shown to be better than every other run."""
        first, *others = self._leaderboards[measure]["system"]
        if self.compared.baseline or self.compared.queries < 2 or len(others) > MAX_RIVALS:
            return ""
        pairs = [self.compared.pair(first, other, measure) for other in others]
        rivals = [pair.b for pair in pairs if pair.open_by_cuts or not pair.answers.both_yes]
        if rivals:
            better = f"it is not shown to be better than {join_names(rivals, 'or', limit=5)}"
            return f"Who is first? {first} has the highest expected value, but {better}."
        what = "the documents listed" if any(pair.may_be_cut for pair in pairs) else "ties"
        return f"Who is first? {first}: ahead of all others in every order of {what}, and significantly over queries."

    def _answers(self, measure: Measure) -> list[str]:
        """Both questions about the order of a leaderboard, each with its answer."""
        baseline = self.compared.baseline
        unclear = [pair for pair in self._rivals(measure) if pair and pair.answers.other_queries == "unclear"]
        pairs = self._reversed_pairs(measure)
        can = "can" if any(some[0].exact_range for _, some in pairs) else "may"
        changed = (f"{', '.join(names)}{_describe_reversals(names, some)}" for names, some in pairs)
        reordered = f"No: tie order {can} change the order of {'; of '.join(changed)}"
        on_ties = reordered if pairs else self._settled(measure)
        open_pairs = [" and ".join(pair.by_expectation) for pair in unclear]
        more = f"; {len(open_pairs) - MAX_OPEN} more pairs" if len(open_pairs) > MAX_OPEN else ""
        rivals = f"from {baseline}" if baseline else "between neighbours"
        on_queries = f"Yes: every difference {rivals} is significant"
        if open_pairs:
            which = "" if baseline else "these neighbours: "
            on_queries = (
                f"Unclear: other queries may change the order of {which}{'; '.join(open_pairs[:MAX_OPEN])}{more}"
            )
        if self.compared.queries < 2:
            on_queries = "Unknown: there is only one query"
        scope = f" Both answers are about the differences from {baseline} alone." if baseline else ""
        return [f"{TIES_QUESTION} {on_ties}.", f"{QUERIES_QUESTION} {on_queries}.{scope}"]

    def _reversed_pairs(self, measure: Measure) -> list[tuple[list[str], list[PairComparison]]]:
        """Systems whose order tie order can change, each with the pairs of them that `_most_reversed` chooses.

        With a baseline, these are pairs with it; else groups of the leaderboard.
        """
        if self.compared.baseline:
            rivals = (self.compared.pair(*pair.by_expectation, measure) for pair in self._rivals(measure) if pair)
            return [([pair.a, pair.b], [pair]) for pair in rivals if pair.answers.any_tie_order == "no"]
        groups = _groups(self._leaderboards[measure], "group_ties")
        return [
            ([row["system"] for row in rows], self._most_reversed(rows, measure))
            for rows in groups
            if self._can_change(rows, measure)
        ]

    def _settled(self, measure: Measure) -> str:
        """The answer if no order of the documents listed changes the leaderboard."""
        if not any(pair.may_be_cut for pair in self._rivals(measure) if pair):
            return "Yes: no tie order puts another run ahead"
        listed = "no order of the documents listed puts another run ahead"
        could = self.compared.open_by_cuts(measure)
        return f"Open: {listed}, but documents that may be missing could" if could else f"Yes: {listed}"

    def _can_change(self, rows: list[dict[str, Any]], measure: Measure) -> bool:
        """Whether there are two systems of which either can be ahead."""
        overlapping = (
            (a["system"], b["system"])
            for a, b in combinations(rows, 2)
            if a["maximum"] > b["minimum"] + ATOL and b["maximum"] > a["minimum"] + ATOL
        )
        is_independent = self.compared.orders == "independent"
        return any(is_independent or all(self.compared.pair(*two, measure).can_lead) for two in overlapping)

    def _most_reversed(self, rows: list[dict[str, Any]], measure: Measure) -> list[PairComparison]:
        """Of the pairs of a group that are searched, the one whose lower system is most often ahead.

        Then the same of the pairs with the first system of the group, if that is another one.
        """
        names = [row["system"] for row in rows]
        pairs = [self.compared.pair(a, b, measure) for a, b in _some_pairs(names)]
        most, first = (
            max(some, key=lambda pair: pair.probability_less)
            for some in (pairs, [pair for pair in pairs if pair.a == names[0]])
        )
        return [most] if first is most or not first.can_lead[1] else [most, first]

    def _searched_pairs(self, measure: Measure) -> Iterator[PairComparison]:
        names, baseline = self._leaderboards[measure]["system"], self.compared.baseline
        pairs = ((name, baseline) for name in names if name != baseline) if baseline else _some_pairs(names)
        return (self.compared.pair(a, b, measure) for a, b in pairs)

    def _changed_order(self, measure: Measure) -> str:
        tau, order = self.compared.tau(measure), self.compared.oblivious
        if tau is None or order is None or tau > 1 - 1e-9 or not _oblivious_order_differs(self._leaderboards[measure]):
            return ""
        return (
            f"In the order of {tool_for(order, measure)} the runs stand differently "
            f"(Kendall's τ {self.numbers.number(tau)} with this table)."
        )

    def _sentences_on_unjudged(self) -> list[str]:
        numbers, lines = self.numbers, []
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


def _estimate_cell(estimate: Estimate, measure: Measure, numbers: NumberFormat) -> Cell:
    """The expected value, with the range if ties show in the digits; counts have no digits after the point."""
    value = estimate.expected
    is_count = value is not None and measure.total and value == int(value)
    return estimate_cell(estimate, numbers, (lambda count: f"{int(count):,}") if is_count else None)


def _difference_cells(
    pairs: Sequence[PairComparison], numbers: NumberFormat, *, corrected: bool, bars: bool = False, first: str = ""
) -> list[tuple[Cell, Bar | str, str, str]]:
    """For each pair the difference, its bar, and the answers to both questions; bars have common ends.

    `first` is the name of the first run of all pairs, if no column has it.
    """
    gaps = [pair.difference for pair in pairs]
    reach = [end or 0.0 for gap in gaps for end in (gap.minimum, gap.maximum)]
    ends = min(*reach, -1e-9), max(*reach, 1e-9)
    return [
        (
            difference_cell(gap, numbers),
            Bar(gap.minimum, gap.expected, gap.maximum, ends=ends) if bars and gap.tied else "",
            _ties_answer(pair, first),
            _queries_answer(pair, numbers, corrected),
        )
        for pair, gap in zip(pairs, gaps, strict=True)
    ]


def _ties_answer(pair: PairComparison, first: str) -> str:
    """Whether the same system is ahead however ties are ordered; if not, how often the first is."""
    answer = pair.answers.any_tie_order
    if answer != "no":
        if pair.open_by_cuts:
            return f"open if cut, else {answer}"
        return f"{answer} (listed)" if _is_listed(pair) else answer
    return f"no, {first}{'never ahead' if pair.ahead == 'never' else f'ahead in {pair.ahead}'}"


def _is_listed(pair: PairComparison) -> bool:
    """Whether the answer on ties is one for the documents listed alone: others may have been cut off."""
    return pair.may_be_cut and not pair.open_by_cuts and pair.answers.any_tie_order != "no"


def _queries_answer(pair: PairComparison, numbers: NumberFormat, corrected: bool) -> str:
    """Whether the difference is significant over queries, with the p-value."""
    answer = pair.answers.other_queries
    name = "Holm p" if corrected else "p"
    return answer if answer == "unknown" else f"{answer} ({name} {numbers.p_value(pair.final_p_value)})"


def _interval(pair: PairComparison, numbers: NumberFormat) -> str:
    return MISSING if pair.ci is None else f"[{', '.join(map(numbers.end, pair.ci))}]"


def _drop_empty_columns(table: Table) -> Table:
    """The table without columns that are empty in all rows."""
    return table.take_columns(
        place for place in range(len(table.columns)) if any(row[place] != "" for row in table.rows)
    )


def _groups(board: Rows, column: str) -> list[list[dict[str, Any]]]:
    """The rows of each group of two or more that are not separated."""
    groups: dict[int, list[dict[str, Any]]] = {}
    for row in board:
        groups.setdefault(row[column], []).append(row)
    return [rows for rows in groups.values() if len(rows) > 1]


def _describe_reversals(names: Sequence[str], pairs: Sequence[PairComparison]) -> str:
    """How often the lower system of each pair of a group is ahead; empty if it never is."""
    if not pairs[0].can_lead[1]:
        return ""
    most = "most often: " if 2 < len(names) <= MAX_SEARCHED else ""
    each = [f"{p.b} {'leads' if p.exact_range else 'may lead'} {p.a} in {p.share_less}" for p in pairs]
    return f" ({most}{' of random orders; '.join(each)} of random orders)"


def _some_pairs(names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """All pairs of a few systems, else those of neighbours."""
    return combinations(names, 2) if len(names) <= MAX_SEARCHED else pairwise(names)


def _oblivious_order_differs(board: Rows) -> bool:
    """Whether two systems are in another order, or equal, by their oblivious values."""
    columns = (np.array(board[name], dtype=np.float64).round(12) for name in ("expected", "oblivious"))
    expected, oblivious = (np.sign(values[:, None] - values) for values in columns)
    return bool((expected != oblivious).any())
