"""What the order of ties changes: the effect on each measure, the results that it reverses, a run's grade and verdict.

For a measure, let x = max(|bias|, 2 · std) be how far one order usually is from the expected value, and h half the
width of the interval over queries. The grade says what follows from that:

- ``none``: the range is below .00005, so no order changes four digits
- ``harmless``: x is below .0005 and below h / 10
- ``changes_number``: x is larger, or lists may have been cut inside a tie group, which shows in three digits
- ``changes_winner``: the order of a named tool, or at least 2.5 % of random orders, reverses a check, or a comparison
  that is shown over queries; or x is at least h
- ``unknown``: documents are tied, and there are no judgments

The range is the worst case, in every query at once. The grade does not depend on its size.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import NormalDist
from typing import Any, Literal

import numpy as np

from tiewise.analysis.auditing.causes import Evidence, Remedy
from tiewise.analysis.comparison.pair import PairComparison
from tiewise.analysis.reports import Report
from tiewise.analysis.significance import ATOL
from tiewise.data.runs import Run
from tiewise.errors import InputError
from tiewise.metrics.definition import Measure
from tiewise.metrics.estimate import Estimate
from tiewise.metrics.names import parse
from tiewise.rankings.pair_measures import RBO
from tiewise.rankings.run_similarity import RunPair
from tiewise.results.base import Result
from tiewise.results.estimates import is_wide
from tiewise.results.model import Section, Table
from tiewise.results.view import View
from tiewise.results.wording import (
    MIN_WIDTH,
    SHORT,
    NumberFormat,
    capitalize_first,
    count_noun,
    format_percent,
    join_names,
    list_examples,
)

Grade = Literal["none", "harmless", "changes_number", "changes_winner", "unknown"]

#: The grades in words, and what each means; from the least to the gravest.
GRADES: dict[Grade, tuple[str, str]] = {
    "none": ("none", "ties change nothing that is printed"),
    "harmless": ("harmless", "ties change little, far less than other queries would"),
    "changes_number": (
        "changes the number",
        "ties change what tools print, or lists may have been cut inside a tie group: report the expected values",
    ),
    "changes_winner": (
        "can change the winner",
        "ties reverse a result that is shown or checked, or move a measure as much as other queries would",
    ),
    "unknown": ("unknown", "documents are tied; judgments show what that changes"),
}
RANKED = tuple(GRADES)

HARMLESS = 0.0005  # an effect from here on changes the number
HARMLESS_SHARE = 0.1  # and so does one from this share of the uncertainty over queries on
MIN_REVERSED = 0.025  # the least share of random orders that counts as a reversal


@dataclass(frozen=True)
class Effect:
    """The effect of tie order on one measure, beside the uncertainty over queries."""

    measure: str
    size: float  #: x = max(|bias|, 2 · std)
    range: float  #: all queries at their worst, against all at their best
    half_width: float | None  #: h: half the width of the 95% interval over queries; None for one query
    cut: tuple[float, float] | None = None  #: bounds on the expected value if lists were cut inside a tie group

    @property
    def grade(self) -> Grade:
        """The grade of this measure alone, without regard to comparisons."""
        by_order = self.grade_by_order
        return "changes_number" if is_wide(self.cut) and by_order in ("none", "harmless") else by_order

    @property
    def grade_by_order(self) -> Grade:
        """The grade by the order of the documents listed: lists that may have been cut do not count."""
        if self.range < MIN_WIDTH:
            return "none"
        if self.half_width is None:
            return "changes_number"
        if self.size >= self.half_width:
            return "changes_winner"
        is_small = self.size < HARMLESS and self.size < HARMLESS_SHARE * self.half_width
        return "harmless" if is_small else "changes_number"

    def __str__(self) -> str:
        """How much ties change the measure (a typical order; else the range), and how much other queries would."""
        size = self.size or self.range
        place = -int(f"{size:.6e}".partition("e")[2])  # of the first digit that is not 0
        numbers = NumberFormat(max(3, place), leading_zero=False)
        change = f"Ties change {self.measure} by about {numbers.number(size)}"
        if self.half_width is None:
            return change
        return f"{change}; other queries would change it by {numbers.number(self.half_width)}"


@dataclass(frozen=True)
class Reversal:
    """A result that tie order reverses: a comparison of two runs, or a check of one."""

    result: str  #: ``A against B in nDCG@10``, or ``the check of nDCG@10 at .45``
    share: float  #: of random orders that reverse it
    tools: tuple[str, ...]  #: the named tools whose order does
    shown: bool | None = None  #: whether a comparison is shown over queries (significant); None for a check

    @property
    def is_claimed(self) -> bool:
        """Whether someone claims the result: it is shown, or a check."""
        return self.shown is not False

    def __str__(self) -> str:
        orders = [f"by {format_percent(self.share)} of random orders"] if self.share >= MIN_REVERSED else []
        orders += [f"by {join_names(self.tools)}"] if self.tools else []
        doubt = " (not shown)" if self.shown is False else ""
        return f"{self.result}{doubt} is reversed {', and '.join(orders)}"


def measure_effects(report: Report) -> tuple[Effect, ...]:
    """The effect of tie order on each measure of a report that is not a count."""
    return tuple(_measure_effect(measure.name, report[measure]) for measure in report if not measure.total)


def _measure_effect(measure: str, mean: Estimate) -> Effect:
    half = mean.half_width
    if half is None and mean.ci is not None:  # of a geometric mean
        half = (mean.ci[1] - mean.ci[0]) / 2
    size = max(abs(mean.bias or 0.0), 2 * (mean.std or 0.0))
    return Effect(measure, size, mean.range or 0.0, half, mean.open_cut)


def gravest_effect(effects: Iterable[Effect]) -> Effect | None:
    """The first effect with the gravest grade by order; None if there are none."""
    return max(effects, key=lambda effect: RANKED.index(effect.grade_by_order), default=None)


def find_reversals(
    report: Report, comparisons: Iterable[PairComparison], checks: Mapping[Measure, Iterable[float]]
) -> tuple[Reversal, ...]:
    """The comparisons with other runs, and the checks of a measure against a number, that tie order reverses.

    A comparison that only the ties of the other run reverse is none of them.
    """
    found = [_reversed_comparison(pair) for pair in comparisons if _is_moved(report, parse(pair.measure))]
    found += [_reversed_check(report, measure, limit) for measure, limits in checks.items() for limit in limits]
    return tuple(one for one in found if one.tools or one.share >= MIN_REVERSED)


def _is_moved(report: Report, measure: Measure) -> bool:
    known = report if measure in report else report.at(measure)
    return (known[measure].range or 0.0) >= MIN_WIDTH


def _reversed_comparison(pair: PairComparison) -> Reversal:
    gap = pair.difference.expected or 0.0
    first, second = pair.by_expectation
    share = pair.probability_less if gap >= 0 else pair.probability
    if abs(gap) <= ATOL:  # no order of the two is expected: it is open if each can lead
        share = min(pair.probability, pair.probability_less)
    against = pair.winners.get(second, []) if abs(gap) > ATOL or pair.flip else []
    name, is_shown = f"{first} against {second} in {pair.measure}", pair.is_shown
    return Reversal(name, share if all(pair.can_lead) else 0.0, tuple(against), is_shown)


def _reversed_check(report: Report, measure: Measure, limit: float) -> Reversal:
    """A check passes or fails by the expected value; the share of random orders is a normal approximation."""
    mean = report[measure]
    expected, low, high = (value or 0.0 for value in (mean.expected, mean.minimum, mean.maximum))
    passes = expected >= limit
    share = 0.0
    if mean.std and low < limit <= high:
        share = NormalDist().cdf(-abs(expected - limit) / mean.std)
    printed = (row for row in report.at(measure).oblivious_by_tool() if not row.note and row.value is not None)
    tools = tuple(row.tool for row in printed if ((row.value or 0.0) >= limit) is not passes)
    return Reversal(f"the check of {measure} at {SHORT.short(limit)}", share, tools)


def grade_ties(effects: Iterable[Effect], reversals: Sequence[Reversal]) -> Grade:
    """The grade of a run with judgments: that of the measure with the gravest effect, or of a reversal.

    A comparison that is not shown claims nothing that tie order could reverse.
    """
    if any(one.is_claimed for one in reversals):
        return "changes_winner"
    return max((effect.grade for effect in effects), key=RANKED.index, default="none")


# -- the verdict ----------------------------------------------------------------------------------------------------
# With judgments it is the grade; without them it is unknown. A reference run shows whether the order is right; that is
# a question of its own.

MIN_LIST_SHARE = 0.1  # without judgments: ties across a cutoff call for a remedy from this share of the lists on
TOP = 10  # ties across deeper cutoffs call for a remedy only if there are no cutoffs up to this rank
MAX_REVERSALS = 2  # the most reversed results that the verdict names; others are counted

#: Problems with a remedy that is worth while even if the ties change nothing.
AVOIDABLE = {"precision", "precision or counts", "logits", "before transformation", "scaled", "decimals"}
AVOIDABLE |= {"saturation", "printed saturation"}


def decide_verdict(
    evidence: Evidence,
    across: Mapping[int, int],
    effects: Sequence[Effect] | None,
    reversals: Sequence[Reversal],
    fidelity: Fidelity | None,
    library: str | None,
) -> tuple[Grade, str, Remedy | None]:
    """The grade of the ties of a run, the verdict in words, and what to do.

    `across` has, by cutoff, the number of lists with a tie across it; `effects` are those on the measures, None without
    judgments; `reversals` are the results that tie order reverses.
    """
    if evidence.cause is None and not reversals:
        grade, text, needs_remedy = _judge_untied(evidence, fidelity)
    elif effects is None:
        grade, text, needs_remedy = _judge_by_statistics(evidence, across)
    else:
        grade, text, needs_remedy = _judge_by_consequences(evidence, effects, reversals)
    differs = fidelity is not None and fidelity.differs
    is_checked = evidence.cause is None and fidelity is not None  # untied, and a reference shows whether order is right
    was_rounded = evidence.scores.precision and not needs_remedy and (differs or not is_checked)
    problem = evidence.refine("precision" if was_rounded else evidence.cause or "")
    if not needs_remedy and problem not in AVOIDABLE:
        problem = "order" if differs else ""
    remedy = evidence.find_remedy(problem, library) if problem else None
    return grade, f"{text}{' It does not rank as the reference does.' * differs}", remedy


#: The grade of the ties, the verdict on them, and whether they call for a remedy.
_Finding = tuple[Grade, str, bool]


def _judge_untied(evidence: Evidence, fidelity: Fidelity | None) -> _Finding:
    precision = evidence.scores.precision
    if precision and fidelity is None:
        text = f"No ties, but scores were rounded to {precision}: a reference shows whether their order is right."
    elif evidence.ties.are_ranks:
        text = "No ties are visible: the scores are ranks, so tied documents have been put in an order."
    else:
        text = "No ties: no two documents of a list have the same score."
    return "none", text, False


def _judge_by_statistics(evidence: Evidence, across: Mapping[int, int]) -> _Finding:
    if evidence.cause == "constant":
        return "unknown", f"{_describe_constant(evidence)}: they rank nothing.", True
    top = [lists for rank, lists in across.items() if rank <= TOP] or list(across.values())
    tied = capitalize_first(format_percent(evidence.ties.tied_share, in_words=True))
    is_crossed = max(top, default=0) >= MIN_LIST_SHARE * evidence.ties.lists
    return "unknown", f"{tied} of rows are tied; judgments show what that changes.", is_crossed


def _judge_by_consequences(evidence: Evidence, effects: Sequence[Effect], reversals: Sequence[Reversal]) -> _Finding:
    grade, gravest = grade_ties(effects, reversals), gravest_effect(effects)
    if claimed := [one for one in reversals if one.is_claimed]:
        what = "the winner" if any(one.shown for one in claimed) else "the outcome"
        return grade, f"Ties can change {what}: {_list_reversals(claimed)}.", True
    if grade == "none" or gravest is None:
        return grade, "Ties change nothing: no tie order changes a measure by .00005 or more.", False
    if evidence.cause == "constant":
        return grade, f"{_describe_constant(evidence)}: the numbers say nothing about the system.", True
    if gravest.grade_by_order == "none":
        text = "No order of the documents listed changes a measure, but lists may have been cut inside a tie group."
        return grade, text, False
    small = "Harmless: ties" if grade == "harmless" else "Ties"
    return grade, f"{str(gravest).replace('Ties', small, 1)}.", gravest.grade_by_order != "harmless"


def _describe_constant(evidence: Evidence) -> str:
    ties = evidence.ties
    constant, lists = ties.constant + ties.nearly_constant, count_noun(ties.rankings, "list")
    some = lists if constant == ties.rankings else f"{constant:,} of {lists}"
    return f"{'Nearly all' if ties.nearly_constant else 'All'} scores of {some} are equal"


def _list_reversals(reversals: Sequence[Reversal]) -> str:
    """The first reversals, and how many more there are."""
    more = len(reversals) - MAX_REVERSALS
    return "; ".join([*map(str, reversals[:MAX_REVERSALS]), *([f"and {more} more"] if more > 0 else [])])


# -- how faithful a run is to a reference run, such as the same scores in float32 -----------------------------------
# For each query, the pairs of documents that both runs list are counted as concordant, inverted or tied. RBO compares
# the lists themselves, and the gap is the difference of expected values.

PHI, DEPTH = 0.9, 100  # of RBO; a tie group across the last rank is read whole, because it has little weight there
MIN_GAP = 0.005  # half a point: a run that differs from its reference by this is not faithful to it
MIN_RBO = 0.95  # below this, a run does not rank as its reference does


@dataclass(frozen=True)
class Fidelity(Result):
    """A run compared with its reference, over the queries of both.

    >>> import tiewise as tw
    >>> run, reference = {"q": {"a": 3.0, "b": 1.0, "c": 1.0}}, {"q": {"a": 2.0, "b": 3.0, "c": 1.0}}
    >>> found = tw.audit(run, reference=reference).fidelity
    >>> found.pairs, round(found.inverted, 4), round(found.tied, 4), round(found.tau, 4)
    (3, 0.3333, 0.3333, 0.0)
    """

    queries: int
    pairs: int  #: pairs of documents in both lists that the reference orders
    inverted: float | None  #: the share of these pairs that the run orders the other way round
    tied: float | None  #: the share of these pairs that the run ties
    tau: float | None  #: Kendall's τ of the common documents, expected over the orders of ties, mean over queries
    rbo: float | None  #: RBO of the lists (φ = 0.9, first 100 ranks), extrapolated and expected, mean over queries
    gap: dict[str, float]  #: by measure: the expected value of the run minus that of the reference

    @property
    def differs(self) -> bool:
        """Whether a measure differs by .005 or more, or RBO is below .95."""
        is_low = self.rbo is not None and self.rbo < MIN_RBO
        return self.inverted is not None and (is_low or any(abs(gap) >= MIN_GAP for gap in self.gap.values()))

    def describe(self, numbers: NumberFormat) -> str:
        """Whether the run ranks as the reference does, and how far it differs, in a few words."""
        if self.inverted is None:
            return "unknown: the reference orders no pair of documents that both runs list"
        facts = [f"RBO {numbers.number(self.rbo)}", f"{format_percent(self.inverted)} of pairs inverted"]
        if self.gap:
            measure = max(self.gap, key=lambda name: abs(self.gap[name]))
            facts.append(f"{measure} {numbers.signed(self.gap[measure], tiny='≈0')}")
        return f"{'no' if self.differs else 'yes'}: {', '.join(facts)}"

    def _document(self, view: View) -> dict[str, Any]:
        return asdict(self)

    def _section(self, view: View) -> Section:
        shares = {"inverted": format_percent(self.inverted), "tied": format_percent(self.tied)}
        means = {"tau": view.numbers.number(self.tau), "rbo": view.numbers.number(self.rbo)}
        gaps = {name: view.numbers.signed(gap, tiny="≈0") for name, gap in self.gap.items()}
        return Section([Table.of_facts(asdict(self) | shares | means | {"gap": gaps}, title="Beside its reference")])

    def _records(self, view: View) -> Table:
        return Table.of_record(asdict(self))


def measure_fidelity(run: Run, reference: Run, report: Report | None, reference_report: Report | None) -> Fidelity:
    """The fidelity of a run to a reference, with the gap between their reports if there are judgments."""
    common = set(run.queries) & set(reference.queries)
    if not common:
        raise InputError(
            f"The run and the reference have no query in common. Queries of the run: {list_examples(run.queries)}; of "
            f"the reference: {list_examples(reference.queries)}."
        )
    pair = RunPair(run, reference)
    counts = pair.count_pairs()
    ordered, tied = counts.total - counts.tied_y, counts.tied_x - counts.tied_both
    taus = counts.tau(extremes=False)[0, counts.total > 0]
    total = int(ordered.sum())
    return Fidelity(
        queries=len(common),
        pairs=total,
        inverted=int(counts.discordant.sum()) / total if total else None,
        tied=int(tied.sum()) / total if total else None,
        tau=float(taus.mean()) if len(taus) else None,
        rbo=pair.score(RBO(phi=PHI) @ DEPTH),
        gap={} if report is None or reference_report is None else _measure_gaps(report, reference_report, common),
    )


def _measure_gaps(run: Report, reference: Report, common: set[str]) -> dict[str, float]:
    """By measure, the difference of the expected values over common queries."""
    gaps = {}
    for measure in run:
        each = [report.per_query(measure) for report in (run, reference)]
        both = common.intersection(*(one.queries for one in each))
        masks = (np.array([query in both for query in one.queries], dtype=bool) for one in each)
        here, there = (one.take(mask).mean().expected for one, mask in zip(each, masks, strict=True))
        if here is not None and there is not None:
            gaps[measure.name] = here - there
    return gaps
