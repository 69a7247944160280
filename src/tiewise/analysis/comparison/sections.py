"""What people read of a comparison: a table for each measure, one or two sentences, and the rest on demand.

Two systems have a row for each measure. More systems have a ranking for each measure: every system against the best,
or against the baseline. With `explain` follow how to read it, every pair, the tools that disagree, and what unjudged
documents leave open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Any

from tiewise.analysis.comparison.pair import TIES_QUESTION, PairComparison
from tiewise.analysis.significance import ATOL
from tiewise.analysis.simultaneous import level
from tiewise.metrics.definition import Measure
from tiewise.metrics.tool_rules import tool_for
from tiewise.results.estimates import format_measured, format_statistic, format_ties, is_wide
from tiewise.results.model import CUT, Cell, Column, Paragraph, Part, Section, Table
from tiewise.results.view import View
from tiewise.results.wording import (
    MISSING,
    NumberFormat,
    count_noun,
    format_percent,
    format_ranks,
    join_names,
    spell_option,
)

if TYPE_CHECKING:
    from tiewise.analysis.comparison.result import Compared

__all__ = ["comparison_section", "pair_section"]

MAX_SEARCHED = 10  #: up to this many systems, all pairs are searched for tools that disagree, and listed on demand
MAX_NAMED = 5  #: the most systems that a sentence names
MAX_COLUMNS = 5  #: the most systems that the table of tools has
MIN_DIGITS, MAX_DIGITS = 3, 6

ORDER_KINDS = {
    "independent": "each run's ties on their own",
    "per-query": "in each query one order for all runs",
    "shared": "one order of all documents for all runs and queries",
}
TESTS = {
    "max-t": "the largest paired t-statistic (max-t)",
    "tukey": "the largest difference under permutations within queries (randomised Tukey HSD)",
}
Cells = Callable[[Any], Any]  #: what a column shows of a row


def pair_section(pair: PairComparison, view: View) -> Section:
    """Two systems in one measure."""
    numbers = view.numbers if view.digits is not None else NumberFormat(4, leading_zero=False)
    columns = (_measure_column(), *_difference_columns("A − B", _level(pair.confidence)), *_pair_columns())
    table = _choose(columns, [(pair, numbers)], view)
    return Section([table, pair.verdict], f"{pair.a} (A) against {pair.b} (B)")


def comparison_section(compared: Compared, view: View) -> Section:
    """All systems in all measures."""
    return (_Pair if len(compared.systems) == 2 else _Ranking)(compared, view).build()


class _Shown:
    """What two systems and more systems have in common."""

    def __init__(self, compared: Compared, view: View):
        self.compared, self.view = compared, view
        self.level = _level(compared.confidence)

    def build(self) -> Section:
        """Title, tables, sentences and notes."""
        parts = [*self.parts()]
        if self.view.explain:
            parts += self.explained()
        else:
            pairs = "all pairs, " if len(self.compared.systems) > 2 else ""
            parts.append(Paragraph(f"How to read this, {pairs}every tool: {spell_option('explain')}", "dim"))
        return Section(parts, self.title, self.compared.notes)

    @property
    def title(self) -> str:
        raise NotImplementedError

    def parts(self) -> Iterable[Part]:
        raise NotImplementedError

    def legend(self) -> str:
        raise NotImplementedError

    @property
    def queries(self) -> str:
        return count_noun(self.compared.queries, "query", "queries")

    def digits(self, values: Iterable[float | None]) -> NumberFormat:
        """So many digits that different neighbours look different."""
        if self.view.digits is not None:
            return self.view.numbers
        ordered = sorted(value for value in values if value is not None)
        gaps = [high - low for low, high in pairwise(ordered) if high - low > ATOL]
        for digits in range(MIN_DIGITS, MAX_DIGITS):
            numbers = NumberFormat(digits, leading_zero=False)
            if len({numbers.number(value) for value in ordered}) > len(gaps):
                return numbers
        return NumberFormat(MAX_DIGITS, leading_zero=False)

    def value(self, system: str, measure: Measure, numbers: NumberFormat) -> Cell:
        """The expected value of a system, with a mark if lists that may have been cut leave it open."""
        estimate = self.compared.estimate(system, measure)
        mark = CUT if is_wide(estimate.open_cut, numbers.digits) else ""
        text = format_statistic(
            estimate, "expected", lambda value: format_measured(value, numbers, is_count=measure.total)
        )
        return Cell(text, mark=mark)

    # -- on demand ----------------------------------------------------------------------------------------------

    def explained(self) -> Iterable[Part]:
        """How to read the tables, every pair, tools and unjudged documents."""
        yield ""
        yield self.legend()
        for measure in self.compared.measures:
            pairs = [self.compared.pair(*two, measure) for two in _searched(self.compared, measure)]
            numbers = self.digits(self.compared.ranking(measure)["expected"])
            rows = [(pair, numbers) for pair in pairs]
            if len(self.compared.systems) > 2:
                ties = (Column("ties", "A − B by tie order"), _difference_ties)
                columns = (*_NAMES, *_difference_columns("A − B", self.family_level)[:3], ties)
                yield _choose(columns, rows, View(), f"{measure}, pairs")
            found = {(pair.a, pair.b): self.compared.unadjusted_tests(pair.a, pair.b, measure) for pair in pairs}
            alone = [(Column(name, align="right"), _alone(found, name)) for name in ("t", "permutation", "wilcoxon")]
            yield _choose((*_NAMES, *alone), rows, View(), f"{measure}, p of each pair alone, not adjusted")
            if len(self.compared.systems) <= MAX_COLUMNS:
                yield self._tools_table(measure, numbers)
            if len(self.compared.systems) > 2:
                yield from (f"{pair.a} or {pair.b}? {pair.verdict_on_tools}" for pair in pairs if pair.flip)
                yield from filter(None, [self._changed_order(measure)])
        yield from self._unjudged_sentences()

    def _tools_table(self, measure: Measure, numbers: NumberFormat) -> Table:
        """What each tool prints for each run, if it differs from others by the order of ties alone."""
        printed = self.compared.printed(measure)
        tools = list(dict.fromkeys(tool for one in printed.values() for tool in one))
        rows = [(tool, *(numbers.number(one.get(tool)) for one in printed.values())) for tool in tools]
        columns = (Column("tool"), *(Column(name, align="right") for name in printed))
        return Table(columns, rows, f"{measure}, what tools print that differ by the order of ties alone")

    @property
    def family_level(self) -> str:
        """The heading of intervals: their confidence, and that they hold together."""
        several = len(self.compared.systems) > 2 or len(self.compared.measures) > 1
        return f"{self.level}, all rows" if several else self.level

    def family(self) -> str:
        """Which differences were tested at once, and how."""
        found = self.compared
        several = "" if len(found.measures) == 1 else f" in all {len(found.measures)} measures"
        if len(found.systems) == 2:
            which = f"both runs{several}"
        elif found.baseline:
            which = f"all runs against {found.baseline}{several}"
        else:
            which = f"all pairs of runs{several}, because the best one is chosen after looking"
        if len(found.systems) == 2 and not several and found.test == "max-t":
            return "Interval and p are by Student's paired t-test of the queries' expected values."
        return f"Intervals and p are by {TESTS[found.test]}, at once for {which}."

    def _changed_order(self, measure: Measure) -> str:
        tau, order, rows = self.compared.tau(measure), self.compared.oblivious, self.compared.ranking(measure)
        if tau is None or order is None or tau > 1 - 1e-9 or not _order_differs(rows["expected"], rows["oblivious"]):
            return ""
        return (
            f"In the order of {tool_for(order, measure)} the runs stand differently "
            f"(Kendall's τ {NumberFormat(3, leading_zero=False).number(tau)} with this table)."
        )

    def _unjudged_sentences(self) -> Iterable[str]:
        numbers = self.view.numbers
        for name, unjudged in self.compared.unjudged().items():
            for measure, bounds in unjudged.items():
                low, high = bounds.lower.expected, None if bounds.upper is None else bounds.upper.expected
                condensed = unjudged.condensed[measure].expected
                if low is not None and high is not None and condensed is not None:
                    yield (
                        f"{name}: {measure} lies between {numbers.number(low)} and {numbers.number(high)}, whatever "
                        f"unjudged documents are worth; without them it is {numbers.number(condensed)}."
                    )


class _Pair(_Shown):
    """Two systems: a row for each measure, and what can go into a paper."""

    @property
    def pairs(self) -> list[PairComparison]:
        """A pair for each measure; every difference is A − B, and B is the baseline, if there is one."""
        return list(self.compared.pairs())

    @property
    def title(self) -> str:
        measure = f"{self.compared.measures[0]} · " if len(self.compared.measures) == 1 else ""
        pair = self.pairs[0]
        return f"{measure}{pair.a} (A) against {pair.b} (B) · {self.queries}"

    def parts(self) -> Iterable[Part]:
        found, pairs = self.compared, self.pairs
        expected = [[found.estimate(name, pair.measure).expected for name in (pair.a, pair.b)] for pair in pairs]
        numbers = max((self.digits(two) for two in expected), key=lambda one: one.digits)
        rows = [(pair, numbers) for pair in pairs]
        measures = dict(zip((pair.measure for pair in pairs), found.measures, strict=True))
        values = [
            (
                Column(f"{side}_expected", side.upper(), "right"),
                lambda row, side=side: self.value(getattr(row[0], side), measures[row[0].measure], row[1]),
            )
            for side in ("a", "b")
        ]
        first = [_measure_column()] if len(pairs) > 1 else []
        columns = (*first, *values, *_difference_columns("A − B", self.family_level), *_pair_columns())
        yield _choose(columns, rows, self.view)
        yield from (pair.verdict for pair in pairs)

    def legend(self) -> str:
        error = " (± the standard error, where orders were sampled)" if any("±" in p.ahead for p in self.pairs) else ""
        ties = f"If not in every order of ties, the share of orders in which A is ahead follows{error}: "
        return f"A − B: expected difference. {self.family()} {ties}{ORDER_KINDS[self.compared.orders]}."


class _Ranking(_Shown):
    """More systems: a ranking for each measure."""

    @property
    def title(self) -> str:
        measures = self.compared.measures
        what = f"{measures[0]}" if len(measures) == 1 else f"{len(self.compared.systems)} runs"
        return f"{what} · {self.queries} · each run against {self.compared.baseline or 'the best'}"

    def parts(self) -> Iterable[Part]:
        for measure in self.compared.measures:
            yield self._table(measure)
            yield from self._sentences(measure)

    def _table(self, measure: Measure) -> Table:
        found, ranking = self.compared, self.compared.ranking(measure)
        numbers = self.digits(ranking["expected"])
        reference = found.baseline or ranking[0]["system"]
        sampled = max((found.estimate(name, measure).method.mark("expected") for name in found.systems), key=len)
        reached = "" if all(ranking["ranks_reached"]) else ", at most"

        def pair_of(row: dict[str, Any]) -> PairComparison | None:
            return None if row["system"] == reference else found.pair(row["system"], reference, measure)

        def of_pair(show: Cells) -> Cells:
            return lambda row: "" if (pair := pair_of(row)) is None else show((pair, numbers))

        columns = [
            (Column("rank"), lambda row: str(row["rank"])),
            (Column("system", "run", shown="always"), lambda row: row["system"]),
            (Column("expected", "value", "right"), lambda row: self.value(row["system"], measure, numbers)),
            (
                Column("difference", align="right"),
                lambda row: "" if row["difference"] is None else sampled + numbers.signed(row["difference"]),
            ),
            (
                Column("ci", f"[{self.family_level}]", "right"),
                lambda row: "" if row["p_value"] is None else _interval((row["ci_low"], row["ci_high"]), numbers),
            ),
            (Column("p_value", "p", "right"), lambda row: _p(row["p_value"])),
            (
                Column("rank_ties", f"rank by tie order{reached}"),
                lambda row: format_ranks(row["rank_best"], row["rank_worst"]),
            ),
            (
                Column("rank_ci", f"rank, {self.level}", shown="wide"),
                lambda row: format_ranks(row["rank_low"], row["rank_high"]),
            ),
            (
                Column("ties", "by tie order", shown="wide"),
                lambda row: format_ties(found.estimate(row["system"], measure), numbers),
            ),
            (
                Column("oblivious", f"as {tool_for(found.oblivious, measure)} prints it", "right", shown="wide"),
                lambda row: numbers.number(row["oblivious"]),
            )
            if found.oblivious
            else None,
            *((column, of_pair(show)) for column, show in _pair_columns("difference_ties")),
        ]
        title = measure.name if len(found.measures) > 1 else ""
        return _choose([one for one in columns if one], list(ranking), self.view, title)

    # -- sentences ----------------------------------------------------------------------------------------------

    def _sentences(self, measure: Measure) -> Iterable[Part]:
        """What is shown, and what the order of ties can change."""
        yield f"{self._describe_shown(measure)} {self._describe_ties(measure)}".strip()
        if reversed_ := self._reversed(measure):
            yield Paragraph(reversed_, "warning")

    def _describe_shown(self, measure: Measure) -> str:
        found, rows = self.compared, self.compared.ranking(measure)
        if found.queries < 2:
            return "One query is no evidence about other queries."
        tested = [(row, _is_shown(row["p_value"], found.confidence)) for row in rows if row["p_value"] is not None]
        better = [row["system"] for row, is_shown in tested if is_shown and row["difference"] > 0]
        worse = [row["system"] for row, is_shown in tested if is_shown and row["difference"] < 0]
        open_ = [row["system"] for row, is_shown in tested if not is_shown]
        if baseline := found.baseline:
            clauses = [
                f"{_names(some)} {'is' if len(some) == 1 else 'are'} {word} than {baseline}"
                for some, word in ((better, "better"), (worse, "worse"))
                if some
            ]
            sentences = [f"Shown: {'; '.join(clauses)}."] if clauses else []
            if open_:
                rest = f"{_names(open_, 'or')} differs" if clauses else "any differs"
                sentences.append(f"Not shown: that {rest} from {baseline}.")
            return " ".join(sentences)
        first = rows[0]["system"]
        if not worse:
            any_shown = any(row["rank_low"] > 1 for row in rows)
            return f"Not shown: that {f'{first} is better than any other' if any_shown else 'any is better'}."
        if not open_:
            return f"Shown: {first} is better than {'all others' if len(worse) > 1 else _names(worse)}."
        rest = f"Not shown: that it is better than {_names(open_, 'or')}."
        return f"Shown: {first} is better than {_names(worse)}. {rest}"

    def _describe_ties(self, measure: Measure) -> str:
        found, rows = self.compared, self.compared.ranking(measure)
        moved = [row for row in rows if row["rank_best"] != row["rank_worst"]]
        if not moved:
            listed = any(is_wide(found.estimate(name, measure).open_cut) for name in found.systems)
            could = "; documents that may be missing could" if found.open_by_cuts(measure) else ""
            return f"No order of {'the documents listed' if listed else 'ties'} changes a rank{could}."
        ranks = list(dict.fromkeys(row["rank"] for row in moved))
        named = f"Ranks {join_names([*map(str, ranks)], limit=MAX_NAMED)}" if len(ranks) > 1 else f"Rank {ranks[0]}"
        if len(ranks) > 2 and ranks == list(range(ranks[0], ranks[-1] + 1)):
            named = f"Ranks {format_ranks(ranks[0], ranks[-1])}"
        names = {row["system"] for row in moved}
        pairs = (two for two in _searched(found, measure) if names.issuperset(two))
        disagree = any(found.pair(*two, measure).tools_disagree for two in pairs)
        depend = "depend" if len(ranks) > 1 else "depends"
        them = "them" if len(ranks) > 1 else "it"
        return f"{named} {depend} on the order of ties{f'; tools disagree about {them}' if disagree else ''}."

    def _reversed(self, measure: Measure) -> str:
        """A difference that is shown, but that some orders of ties reverse: an alarm."""
        found, rows = self.compared, self.compared.ranking(measure)
        rival = found.baseline or rows[0]["system"]
        ends = {row["system"]: (row["minimum"], row["maximum"]) for row in rows}
        for row in rows:
            name = row["system"]
            overlap = ends[name][1] > ends[rival][0] + ATOL and ends[rival][1] > ends[name][0] + ATOL
            if name == rival or not overlap or not _is_shown(row["p_value"], found.confidence):
                continue
            pair = found.pair(name, rival, measure)
            if all(pair.can_lead):
                leader, other = pair.by_expectation
                can = "put" if pair.exact_range else "may put"
                return f"But some orders of ties {can} {other} ahead of {leader}: report the expected values."
        return ""

    def legend(self) -> str:
        found = self.compared
        versus = found.baseline or "the best"
        return (
            f"value: expected over all orders of ties. difference: value minus that of {versus}. {self.family()} A "
            f"difference is shown if p < {1 - found.confidence:.3g}: then its interval excludes 0. rank by tie order: "
            f"the ranks that orders of ties allow, {ORDER_KINDS[found.orders]}."
        )


# -- columns ----------------------------------------------------------------------------------------------------------


def _measure_column() -> tuple[Column, Cells]:
    return Column("measure", shown="always"), lambda row: row[0].measure


def _difference_columns(heading: str, level: str) -> tuple[tuple[Column, Cells], ...]:
    """Difference, interval, p and the answer on ties, of rows that are a pair and its number format."""
    return (
        (
            Column("difference", heading, "right"),
            lambda row: format_statistic(row[0].difference, "expected", row[1].signed),
        ),
        (Column("ci", f"[{level}]", "right"), lambda row: _interval(row[0].ci, row[1])),
        (Column("p_value", "p", "right"), lambda row: _p(row[0].p_value if row[0].queries > 1 else None)),
        (Column("any_tie_order", TIES_QUESTION[0].lower() + TIES_QUESTION[1:]), lambda row: _ties_answer(row[0])),
    )


def _pair_columns(ties: str = "ties") -> tuple[tuple[Column, Cells], ...]:
    """The other numbers of a pair, for those who ask for them; `ties` names the column of its range."""
    of_order = (
        (Column(ties, "difference by tie order", shown="wide"), _difference_ties),
        (Column("probability", "ahead", "right", shown="wide"), lambda row: row[0].ahead),
        (
            Column("std", align="right", shown="wide"),
            lambda row: format_statistic(row[0].difference, "std", NumberFormat(4, leading_zero=False).number),
        ),
        (
            Column("ci_order", "[in one order of ties]", "right", shown="wide"),
            lambda row: _interval(row[0].ci_order, row[1]),
        ),
        (Column("effect", align="right", shown="wide"), lambda row: NumberFormat(2).number(row[0].effect)),
    )
    counts = tuple(
        (Column(name, align="right", shown="wide"), lambda row, name=name: f"{getattr(row[0], name):,}")
        for name in ("wins", "losses", "equal")
    )
    return (*of_order, *counts)


def _choose(columns: Sequence[tuple[Column, Cells]], rows: Sequence[Any], view: View, title: str = "") -> Table:
    """A table of the columns that a view wants; the cells of others are not computed."""
    cells = {column.name: show for column, show in columns}
    empty = Table(tuple(column for column, _ in columns), [], title).choose(view)
    return Table(empty.columns, [tuple(cells[column.name](row) for column in empty.columns) for row in rows], title)


#: The names of a pair.
_NAMES = ((Column("a", "A"), lambda row: row[0].a), (Column("b", "B"), lambda row: row[0].b))


def _difference_ties(row: Any) -> str:
    return format_ties(row[0].difference, row[1], row[1].signed)


def _alone(found: dict[tuple[str, str], dict[str, float]], name: str) -> Cells:
    return lambda row: _p(found[row[0].a, row[0].b].get(name))


# -- cells ------------------------------------------------------------------------------------------------------------


def _p(value: float | None) -> str:
    return "" if value is None else NumberFormat(3, leading_zero=False).p_value(value)


def _interval(ends: Sequence[float | None] | None, numbers: NumberFormat) -> str:
    """An interval of differences; an end that rounds to 0 says on which side of 0 it is."""
    if ends is None or None in ends:
        return MISSING
    shown = (numbers.signed(end) if numbers.differ(end, 0.0) else numbers.end(end) for end in ends if end is not None)
    return f"[{', '.join(shown)}]"


def _ties_answer(pair: PairComparison) -> str:
    """Whether the same system is ahead in every order of ties; if not, how often A is."""
    answer = pair.answers.any_tie_order
    if answer == "no":
        return f"no, A {'never ahead' if pair.ahead == 'never' else f'ahead in {pair.ahead}'}"
    if pair.open_by_cuts:
        return f"open if cut, else {answer}"
    return f"{answer} (of those listed)" if pair.may_be_cut else answer


# -- small parts ------------------------------------------------------------------------------------------------------


def _level(confidence: float) -> str:
    return format_percent(confidence).replace(".0%", "%")


def _is_shown(p: float | None, confidence: float) -> bool:
    return p is not None and p < level(confidence)


def _names(names: Sequence[str], last: str = "and") -> str:
    return join_names(names, last, limit=MAX_NAMED)


def _searched(compared: Compared, measure: Measure) -> list[tuple[str, str]]:
    """All pairs of a few systems, the better first; of many systems, each against the best; or the baseline."""
    names = compared.ranking(measure)["system"]
    if compared.baseline or len(names) > MAX_SEARCHED:
        rival = compared.baseline or names[0]
        return [(name, rival) for name in names if name != rival]
    if len(names) == 2:
        return [next((pair.a, pair.b) for pair in compared.pairs())]
    return list(combinations(names, 2))


def _order_differs(expected: Sequence[float], oblivious: Sequence[float]) -> bool:
    """Whether two systems are in another order, or equal, by their oblivious values."""
    rows = [(round(e, 12), round(o, 12)) for e, o in zip(expected, oblivious, strict=True)]
    return any(((a > c) - (a < c)) != ((b > d) - (b < d)) for (a, b), (c, d) in combinations(rows, 2))
