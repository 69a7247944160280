"""What people read of a comparison: a table for each measure, one or two sentences, and the rest on demand.

Two systems have a row for each measure. More systems have a ranking for each measure: every system against the best,
or against the baseline. With `explain` follow how to read it, every pair, the tools that disagree, and what unjudged
documents leave open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import combinations, pairwise
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any

from tiewise.analysis.comparison.pair import TIES_QUESTION, PairComparison
from tiewise.analysis.significance import ATOL
from tiewise.analysis.simultaneous import level
from tiewise.metrics.definition import Measure
from tiewise.metrics.tool_rules import tool_for
from tiewise.results.estimates import format_measured, format_statistic, format_ties, is_wide
from tiewise.results.model import CUT, Cell, Column, Hint, Paragraph, Part, Section, Table, columns_of
from tiewise.results.view import View
from tiewise.results.wording import (
    MAX_NAMED,
    MISSING,
    SHORT,
    THREE,
    NumberFormat,
    count_noun,
    format_level,
    format_ranks,
    join_names,
)

if TYPE_CHECKING:
    from tiewise.analysis.comparison.result import Compared

MAX_SEARCHED = 10  #: up to this many systems, all pairs are searched for tools that disagree, and listed on demand
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
UNADJUSTED = ("t", "permutation", "wilcoxon")
Cells = dict[Column, Callable[[Any], Any]]  #: what each column shows of a row


def pair_section(pair: PairComparison, view: View) -> Section:
    """Two systems in one measure."""
    numbers = view.numbers if view.digits is not None else SHORT
    columns = _MEASURE | _difference_columns(format_level(pair.confidence), numbers) | _pair_columns(numbers)
    return Section([Table.of_rows(columns, [pair], view), pair.verdict], _name_pair(pair))


def _name_pair(pair: PairComparison) -> str:
    """Which system is called A and which B in the columns."""
    named = ((pair.a, "A"), (pair.b, "B"))
    return " against ".join(name if name == letter else f"{name} ({letter})" for name, letter in named)


def comparison_section(compared: Compared, view: View) -> Section:
    """All systems in all measures."""
    several = len(compared.systems) > 2
    title, parts = (_rank_systems if several else _compare_two)(compared, view)
    if view.explain:
        parts += ["", (_legend_of_ranking if several else _legend_of_pair)(compared), *_explain(compared, view)]
    else:
        parts.append(Hint.explain(*["all pairs"] * several, "every tool"))
    return Section(parts, title, compared.notes)


# -- two systems: a row for each measure, and what can go into a paper ------------------------------------------------


def _compare_two(compared: Compared, view: View) -> tuple[str, list[Part]]:
    """Title and parts; every difference is A − B, and B is the baseline, if there is one."""
    pairs, measures = list(compared.pairs()), {measure.name: measure for measure in compared.measures}
    expected = [[compared.estimate(name, pair.measure).expected for name in (pair.a, pair.b)] for pair in pairs]
    numbers = max((_digits(two, view) for two in expected), key=lambda one: one.digits)
    values: Cells = {
        Column("a_expected", "A", "right"): lambda pair: _value(compared, pair.a, measures[pair.measure], numbers),
        Column("b_expected", "B", "right"): lambda pair: _value(compared, pair.b, measures[pair.measure], numbers),
    }
    columns = values | _difference_columns(_family_level(compared), numbers) | _pair_columns(numbers)
    if len(pairs) > 1:
        columns = _MEASURE | columns
    measure = f"{pairs[0].measure} · " if len(pairs) == 1 else ""
    title = f"{measure}{_name_pair(pairs[0])} · {_queries(compared)}"
    return title, [Table.of_rows(columns, pairs, view), *(pair.verdict for pair in pairs)]


def _legend_of_pair(compared: Compared) -> str:
    sampled = any("±" in pair.ahead for pair in compared.pairs())
    error = " (± the standard error, where orders were sampled)" if sampled else ""
    ties = f"If not in every order of ties, the share of orders in which A is ahead follows{error}: "
    return f"A − B: expected difference. {_family(compared)} {ties}{ORDER_KINDS[compared.orders]}."


# -- more systems: a ranking for each measure -------------------------------------------------------------------------


def _rank_systems(compared: Compared, view: View) -> tuple[str, list[Part]]:
    """Title and parts."""
    parts = list[Part]()
    for measure in compared.measures:
        parts.append(_ranking_table(compared, measure, view))
        parts.append(f"{_describe_shown(compared, measure)} {_describe_ties(compared, measure)}".strip())
        if reversed_ := _describe_reversed(compared, measure):
            parts.append(Paragraph(reversed_, "warning"))
    what = f"{compared.measures[0]}" if len(compared.measures) == 1 else f"{len(compared.systems)} runs"
    return f"{what} · {_queries(compared)} · each run against {compared.baseline or 'the best'}", parts


def _legend_of_ranking(compared: Compared) -> str:
    versus = compared.baseline or "the best"
    return (
        f"value: expected over all orders of ties. difference: value minus that of {versus}. {_family(compared)} A "
        f"difference is shown if p < {1 - compared.confidence:.3g}: then its interval excludes 0. rank by tie order: "
        f"the ranks that orders of ties allow, {ORDER_KINDS[compared.orders]}."
    )


def _ranking_table(compared: Compared, measure: Measure, view: View) -> Table:
    ranking = compared.ranking(measure)
    numbers = _digits(ranking["expected"], view)
    reference = compared.baseline or ranking[0]["system"]
    estimates = {name: compared.estimate(name, measure) for name in compared.systems}
    sampled = max((one.method.mark("expected") for one in estimates.values()), key=len)
    reached = "" if all(ranking["ranks_reached"]) else ", at most"

    def difference(row: dict[str, Any]) -> str:
        return "" if row["difference"] is None else sampled + numbers.signed(row["difference"])

    def interval(row: dict[str, Any]) -> str:
        return "" if row["p_value"] is None else _interval((row["ci_low"], row["ci_high"]), numbers)

    def of_pair(show: Callable[[PairComparison], Any]) -> Callable[[dict[str, Any]], Any]:
        return lambda row: "" if row["system"] == reference else show(compared.pair(row["system"], reference, measure))

    columns: Cells = {
        Column("rank"): lambda row: str(row["rank"]),
        Column("system", "run", shown="always"): itemgetter("system"),
        Column("expected", "value", "right"): lambda row: _value(compared, row["system"], measure, numbers),
        Column("difference", align="right"): difference,
        Column("ci", f"[{_family_level(compared)}]", "right"): interval,
        Column("p_value", "p", "right"): lambda row: _p(row["p_value"]),
        Column("rank_ties", f"rank by tie order{reached}"): lambda row: format_ranks(
            row["rank_best"], row["rank_worst"]
        ),
        Column("rank_ci", f"rank, {format_level(compared.confidence)}", shown="wide"): lambda row: format_ranks(
            row["rank_low"], row["rank_high"]
        ),
        Column("ties", "by tie order", shown="wide"): lambda row: format_ties(estimates[row["system"]], numbers),
    }
    if compared.oblivious:
        printed = Column("oblivious", f"as {tool_for(compared.oblivious, measure)} prints it", "right", shown="wide")
        columns[printed] = lambda row: numbers.number(row["oblivious"])
    columns |= {column: of_pair(show) for column, show in _pair_columns(numbers, "difference_ties").items()}
    return Table.of_rows(columns, ranking, view, title=measure.name if len(compared.measures) > 1 else "")


def _describe_shown(found: Compared, measure: Measure) -> str:
    rows = found.ranking(measure)
    if found.queries < 2:
        return "One query says nothing about other queries."
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


def _describe_ties(found: Compared, measure: Measure) -> str:
    rows = found.ranking(measure)
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


def _describe_reversed(found: Compared, measure: Measure) -> str:
    """A difference that is shown, but that some orders of ties reverse: an alarm."""
    rows = found.ranking(measure)
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


# -- on demand --------------------------------------------------------------------------------------------------------


def _explain(compared: Compared, view: View) -> Iterator[Part]:
    """Every pair, tools and unjudged documents."""
    several = len(compared.systems) > 2
    for measure in compared.measures:
        pairs = [compared.pair(*two, measure) for two in _searched(compared, measure)]
        numbers = _digits(compared.ranking(measure)["expected"], view)
        if several:
            first = list(_difference_columns(_family_level(compared), numbers).items())[:3]
            names: Cells = {Column("a", "A"): attrgetter("a"), Column("b", "B"): attrgetter("b")}
            ties: Cells = {Column("ties", "A − B by tie order"): _difference_ties(numbers)}
            yield Table.of_rows(names | dict(first) | ties, pairs, View(), title=f"{measure}, pairs")
        tests = [compared.unadjusted_tests(pair.a, pair.b, measure) for pair in pairs]
        rows = [
            (pair.a, pair.b, *(_p(one.get(name)) for name in UNADJUSTED))
            for pair, one in zip(pairs, tests, strict=True)
        ]
        yield Table(columns_of(["A", "B"], UNADJUSTED), rows, f"{measure}, p of each pair alone, not adjusted")
        if len(compared.systems) <= MAX_COLUMNS:
            yield _tools_table(compared, measure, numbers)
        if several:
            yield from (f"{pair.a} or {pair.b}? {pair.verdict_on_tools}" for pair in pairs if pair.flip)
            yield from filter(None, [_describe_changed_order(compared, measure)])
    yield from _describe_unjudged(compared, view.numbers)


def _tools_table(compared: Compared, measure: Measure, numbers: NumberFormat) -> Table:
    """What each tool prints for each run, if it differs from others by the order of ties alone."""
    printed = compared.printed(measure)
    tools = list(dict.fromkeys(tool for one in printed.values() for tool in one))
    rows = [(tool, *(numbers.number(one.get(tool)) for one in printed.values())) for tool in tools]
    title = f"{measure}, what tools print that differ by the order of ties alone"
    return Table(columns_of(["tool"], list(printed)), rows, title)


def _describe_changed_order(compared: Compared, measure: Measure) -> str:
    tau, order, rows = compared.tau(measure), compared.oblivious, compared.ranking(measure)
    if tau is None or order is None or tau > 1 - 1e-9 or not _order_differs(rows["expected"], rows["oblivious"]):
        return ""
    return (
        f"In the order of {tool_for(order, measure)} the runs stand differently "
        f"(Kendall's τ {THREE.number(tau)} with this table)."
    )


def _describe_unjudged(compared: Compared, numbers: NumberFormat) -> Iterator[str]:
    for name, unjudged in compared.unjudged().items():
        for row in unjudged._records(View()).records():
            low, condensed, high = row["lower"], row["condensed"], row["upper"]
            if low is not None and high is not None and condensed is not None:
                yield (
                    f"{name}: {row['measure']} lies between {numbers.number(low)} and {numbers.number(high)}, whatever "
                    f"unjudged documents are worth; without them it is {numbers.number(condensed)}."
                )


# -- columns of pairs -------------------------------------------------------------------------------------------------

_MEASURE: Cells = {Column("measure", shown="always"): attrgetter("measure")}


def _difference_columns(level: str, numbers: NumberFormat) -> Cells:
    return {
        Column("difference", "A − B", "right"): lambda pair: format_statistic(
            pair.difference, "expected", numbers.signed
        ),
        Column("ci", f"[{level}]", "right"): lambda pair: _interval(pair.ci, numbers),
        Column("p_value", "p", "right"): lambda pair: _p(pair.p_value if pair.queries > 1 else None),
        Column("any_tie_order", TIES_QUESTION[0].lower() + TIES_QUESTION[1:]): _ties_answer,
    }


def _pair_columns(numbers: NumberFormat, ties: str = "ties") -> Cells:
    """The other numbers of a pair, for those who ask for them; `ties` names the column of its range."""

    def count(name: str) -> Callable[[PairComparison], str]:
        return lambda pair: f"{getattr(pair, name):,}"

    return {
        Column(ties, "difference by tie order", shown="wide"): _difference_ties(numbers),
        Column("probability", "ahead", "right", shown="wide"): attrgetter("ahead"),
        Column("std", align="right", shown="wide"): lambda pair: format_statistic(pair.difference, "std", SHORT.number),
        Column("ci_order", "[in one order of ties]", "right", shown="wide"): lambda pair: _interval(
            pair.ci_order, numbers
        ),
        Column("effect", align="right", shown="wide"): lambda pair: NumberFormat(2).number(pair.effect),
        **{Column(name, align="right", shown="wide"): count(name) for name in ("wins", "losses", "equal")},
    }


def _difference_ties(numbers: NumberFormat) -> Callable[[PairComparison], str]:
    return lambda pair: format_ties(pair.difference, numbers, numbers.signed)


# -- cells ------------------------------------------------------------------------------------------------------------


def _value(compared: Compared, system: str, measure: Measure, numbers: NumberFormat) -> Cell:
    """The expected value of a system, with a mark if lists that may have been cut leave it open."""
    estimate = compared.estimate(system, measure)
    mark = CUT if is_wide(estimate.open_cut, numbers.digits) else ""
    write = partial(format_measured, numbers=numbers, is_count=measure.total)
    return Cell(format_statistic(estimate, "expected", write), mark=mark)


def _p(value: float | None) -> str:
    return "" if value is None else THREE.p_value(value)


def _interval(ends: Sequence[float | None] | None, numbers: NumberFormat) -> str:
    """An interval of differences; an end that rounds to 0 says on which side of 0 it is."""
    if ends is None or None in ends:
        return MISSING
    return f"[{', '.join(numbers.end(end) for end in ends if end is not None)}]"


def _ties_answer(pair: PairComparison) -> str:
    """Whether the same system is ahead in every order of ties; if not, how often A is."""
    answer = pair.answers.any_tie_order
    if answer == "no":
        return f"no, A {'never ahead' if pair.ahead == 'never' else f'ahead in {pair.ahead}'}"
    if pair.open_by_cuts:
        return f"open if cut, else {answer}"
    return f"{answer} (of those listed)" if pair.may_be_cut else answer


# -- small parts ------------------------------------------------------------------------------------------------------


def _queries(compared: Compared) -> str:
    return count_noun(compared.queries, "query", "queries")


def _digits(values: Iterable[float | None], view: View) -> NumberFormat:
    """So many digits that different neighbours look different."""
    if view.digits is not None:
        return view.numbers
    ordered = sorted(value for value in values if value is not None)
    gaps = [high - low for low, high in pairwise(ordered) if high - low > ATOL]
    for digits in range(MIN_DIGITS, MAX_DIGITS):
        numbers = NumberFormat(digits, leading_zero=False)
        if len({numbers.number(value) for value in ordered}) > len(gaps):
            return numbers
    return NumberFormat(MAX_DIGITS, leading_zero=False)


def _family_level(compared: Compared) -> str:
    """The heading of intervals: their confidence, and that they hold together."""
    several = len(compared.systems) > 2 or len(compared.measures) > 1
    return f"{format_level(compared.confidence)}{', all rows' * several}"


def _family(compared: Compared) -> str:
    """Which differences were tested at once, and how."""
    several = "" if len(compared.measures) == 1 else f" in all {len(compared.measures)} measures"
    if len(compared.systems) == 2:
        which = f"both runs{several}"
    elif compared.baseline:
        which = f"all runs against {compared.baseline}{several}"
    else:
        which = f"all pairs of runs{several}, because the best one is chosen after looking"
    if len(compared.systems) == 2 and not several and compared.test == "max-t":
        return "Interval and p are by Student's paired t-test of the queries' expected values."
    return f"Intervals and p are by {TESTS[compared.test]}, at once for {which}."


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
