"""What the order of ties changes: the effect on each measure, the results that it reverses, and the grade of a run.

For a measure, let x = max(|bias|, 2 · std) be how far one order usually is from the expected value, and h half the
width of the interval over queries. The grade says what follows from that:

- ``none``: the range is below .00005, so no order changes four digits
- ``minor``: x is below .0005 and below h / 10
- ``report``: x is larger, but reverses nothing: report the expected values
- ``decides``: the order of a named tool, or at least 2.5 % of random orders, reverses a check, or a comparison that is
  significant over queries; or x is at least h
- ``unknown``: documents are tied, and there are no judgments

Lists that may have been cut inside a tie group are worth a report, whatever the order of the documents listed changes:
a measure whose bounds (`Estimate.cut`) show in three digits is graded ``report`` at least.

The range is the worst case, in every query at once. It is shown, but the grade does not depend on its size.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

from tiewise.analysis.comparison.pair import PairComparison
from tiewise.analysis.reports import Report
from tiewise.analysis.significance import ATOL, query_intervals
from tiewise.metrics.definition import Measure
from tiewise.metrics.names import parse
from tiewise.tables.estimates import is_wide
from tiewise.tables.wording import MIN_WIDTH, SHORT, format_percent, join_names
from tiewise.ties.orders import ORDERS

__all__ = ["GRADES", "Effect", "Grade", "Reversal", "find_reversals", "grade_ties", "measure_effects"]

Grade = Literal["none", "minor", "report", "decides", "unknown"]

RANKED: tuple[Grade, ...] = ("none", "minor", "report", "decides")  #: from the least to the gravest

#: The grades, and what each means.
GRADES: dict[Grade, str] = {
    "none": "tie order changes nothing that is printed",
    "minor": "tie order changes little, far less than other queries would",
    "report": "tie order changes what tools print, but reverses nothing, or lists may have been cut inside a tie "
    "group: report the expected values",
    "decides": "tie order reverses a result, or matters as much as the choice of queries",
    "unknown": "documents are tied; judgments are needed to see what that changes",
}

MINOR = 0.0005  # an effect from here on is worth a report
MINOR_SHARE = 0.1  # and so is one from this share of the uncertainty over queries on
MIN_REVERSED = 0.025  # the least share of random orders that counts as a reversal
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Effect:
    """The effect of tie order on one measure, beside the uncertainty over queries."""

    measure: str
    size: float  #: x = max(|bias|, 2 · std)
    bias: float | None
    std: float | None
    worst_case: float  #: the range: all queries at their worst, against all at their best
    half_interval: float | None  #: h: half the width of the 95% interval over queries; None for one query
    order: str | None = None  #: the tool, or the order, of the bias
    cut: tuple[float, float] | None = None  #: bounds on the expected value if lists were cut inside a tie group

    @property
    def grade(self) -> Grade:
        """The grade of this measure alone, without regard to comparisons."""
        by_order = self.grade_by_order
        return "report" if is_wide(self.cut) and by_order in ("none", "minor") else by_order

    @property
    def grade_by_order(self) -> Grade:
        """The grade by the order of the documents listed: lists that may have been cut do not count."""
        if self.worst_case < MIN_WIDTH:
            return "none"
        if self.half_interval is None:
            return "report"
        if self.size >= self.half_interval:
            return "decides"
        return "minor" if self.size < MINOR and self.size < MINOR_SHARE * self.half_interval else "report"

    def __str__(self) -> str:
        moves = []
        if self.bias is not None:
            order = f"the order '{self.order}'" if self.order in ORDERS else f"the order of {self.order}"
            moves.append(f"{order} moves {self.measure} by {SHORT.signed(self.bias, tiny='≈0')}")
        if self.std is not None:
            what = "" if moves else f" move {self.measure}"
            moves.append(f"random orders{what} usually by {SHORT.number(2 * self.std)} or less (2 std)")
        worst, half = f"worst case {SHORT.number(self.worst_case)}", self.half_interval
        queries = "" if half is None else f"; 95% interval over queries ±{SHORT.number(half)}"
        return f"{', '.join(moves) or self.measure}; {worst}{queries}"


@dataclass(frozen=True)
class Reversal:
    """A result that tie order reverses: a comparison of two runs, or a check of one."""

    result: str  #: ``A against B in nDCG@10``, or ``the check of nDCG@10 at .45``
    share: float  #: of random orders that reverse it
    tools: tuple[str, ...]  #: the named tools whose order does
    significant: bool | None = None  #: whether a comparison is significant over queries; None for a check

    @property
    def is_claimed(self) -> bool:
        """Whether someone claims the result: it is significant, or a check."""
        return self.significant is not False

    def __str__(self) -> str:
        orders = [f"by {format_percent(self.share)} of random orders"] if self.share >= MIN_REVERSED else []
        orders += [f"by {join_names(self.tools)}"] if self.tools else []
        doubt = " (not significant over queries)" if self.significant is False else ""
        return f"{self.result}{doubt} is reversed {', and '.join(orders)}"


def measure_effects(report: Report) -> tuple[Effect, ...]:
    """The effect of tie order on each measure of a report that is no count."""
    measures = [measure for measure in report if not measure.total]
    intervals = query_intervals([report.per_query(measure) for measure in measures], CONFIDENCE)
    return tuple(_effect(report, *each) for each in zip(measures, intervals, strict=True))


def _effect(report: Report, measure: Measure, interval: tuple[float, float] | None) -> Effect:
    mean = report[measure]
    size = max(abs(mean.bias or 0.0), 2 * (mean.std or 0.0))
    half = None if interval is None else (interval[1] - interval[0]) / 2
    order = next((name for name, measures in report.oblivious_orders.items() if measure in measures), None)
    return Effect(measure.name, size, mean.bias, mean.std, mean.range or 0.0, half, order, mean.open_cut)


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
    significant = pair.answers.other_queries == "yes"
    name = f"{first} against {second} in {pair.measure}"
    return Reversal(name, share if all(pair.can_lead) else 0.0, tuple(against), significant)


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

    A comparison that is not significant claims nothing that tie order could reverse.
    """
    if any(one.is_claimed for one in reversals):
        return "decides"
    return max((effect.grade for effect in effects), key=RANKED.index, default="none")
