"""`Answers`: two questions about a pair of systems and their two answers. Every output takes them from here.

*In every order of ties?* Is the same system ahead in every order of the tied documents?
*Shown?* Do these queries show that the expected difference is not 0, so that it would hold for other queries?

The questions are about two kinds of chance, and one answer says nothing about the other. So they are never merged into
one verdict, and only a difference with two times yes is shown in the colour of success.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from tiewise.analysis.significance import ATOL
from tiewise.results.base import Result
from tiewise.results.model import Section, Table
from tiewise.results.view import View
from tiewise.results.wording import SHORT, format_percent, format_share

if TYPE_CHECKING:
    from tiewise.analysis.comparison.pair import PairComparison

__all__ = ["QUERIES_QUESTION", "TIES_QUESTION", "Answers", "describe_answers"]

TIES_QUESTION, QUERIES_QUESTION = "In every order of ties?", "Shown?"

ONE_QUERY = "One query is no evidence about other queries"


@dataclass(frozen=True)
class Answers(Result):
    """The answers to both questions, as single words."""

    any_tie_order: Literal["yes", "no", "equal"]  #: of the documents listed; equal: the same value in every order
    shown: Literal["yes", "no", "unknown"]  #: that the difference is not 0; unknown: there is only one query

    @classmethod
    def of(cls, pair: PairComparison) -> Answers:
        """The answers for a pair."""
        equal = not pair.difference.tied and abs(pair.difference.expected or 0.0) <= ATOL
        return cls(
            "yes" if pair.certain else "equal" if equal else "no",
            "unknown" if pair.queries < 2 else "yes" if pair.is_shown else "no",
        )

    def _section(self, view: View) -> Section:
        return Section([Table.of_facts({TIES_QUESTION: self.any_tie_order, QUERIES_QUESTION: self.shown})])

    @property
    def both_yes(self) -> bool:
        """Whether one system is ahead in every order of ties, and shown to be better."""
        return (self.any_tie_order, self.shown) == ("yes", "yes")


def describe_answers(pair: PairComparison) -> str:
    """The result for a pair in sentences: what tie order, other queries and missing documents can change."""
    cut = " But lists may have been cut: counting what may be missing, which is higher is open." * pair.open_by_cuts
    return _describe_lists(pair) + cut


def _describe_lists(pair: PairComparison) -> str:
    """The result for the documents listed."""
    answers, words, (leader, other) = pair.answers, _Words(pair), pair.by_expectation
    queries = f"these {pair.queries:,} queries" if pair.queries > 1 else "this one query"
    listed = "in every order of the documents listed"
    if answers.any_tie_order == "equal":
        orders = f", {listed}" if pair.may_be_cut else ""
        return f"{pair.a} and {pair.b} have the same {pair.measure} over {queries}{orders}."
    scores = f"{pair.a} scores {'higher' if leader == pair.a else 'lower'} than {pair.b} in {pair.measure}"
    however = listed if pair.may_be_cut else "in every order of ties"
    settled = f"{scores} {however} ({words.difference}{words.range(', from ')})"
    match answers.any_tie_order, answers.shown:
        case "yes", "yes":
            return f"{settled}, and the difference is significant over {queries} ({words.evidence})."
        case "yes", "no":
            chance = f"but other queries could reverse it ({words.evidence})"
            return f"On {queries} {settled}, {chance}. This is not enough evidence that {leader} is better."
        case "yes", _:
            return f"On {queries} {settled}. {ONE_QUERY}."
    leads = f"{leader} leads in {words.leader_share} of random orders"
    if answers.shown == "yes":
        change = words.can_change(f"put {other} ahead")
        return (
            f"Averaged over tie orders {scores}, significantly over {queries} ({words.difference}; {words.evidence}), "
            f"but some tie orders {change} ({words.range()}); {leads}. Report the expected values."
        )
    change = (
        f"some tie orders {words.can_change('reverse the difference')} ({words.difference}{words.range(', from ')})"
    )
    others = f", and so could other queries ({words.evidence})" if pair.queries > 1 else f". {ONE_QUERY}"
    if pair.queries > 1 and pair.wins == pair.losses == 0:
        others = ", and the expected values are equal in every query"
    return f"{pair.a} and {pair.b} cannot be told apart in {pair.measure}: {change}{others}. {leads}."


class _Words:
    """The numbers of a pair as sentences show them: every difference is a − b, as in tables."""

    def __init__(self, pair: PairComparison):
        self._pair = pair

    @property
    def difference(self) -> str:
        """The expected difference."""
        expected = self._pair.difference.expected or 0.0
        tiny = "below +.0001" if expected > 0 else "above −.0001"
        return "expected difference 0" if abs(expected) <= ATOL else SHORT.signed(expected, tiny=tiny)

    def range(self, before: str = "") -> str:
        """The lowest and the highest difference over tie orders, if they look different."""
        low, high = (SHORT.signed(end) for end in (self._pair.difference.minimum, self._pair.difference.maximum))
        return f"{before}{low} to {high}" if low != high or not before else ""

    @property
    def evidence(self) -> str:
        """The p-value, for how many differences it was adjusted, and the interval."""
        pair = self._pair
        p = SHORT.p_value(pair.p_value, "p") + (
            f", adjusted for {pair.family:,} differences" if pair.family > 1 else ""
        )
        if pair.ci is None:
            return p
        low, high = (SHORT.signed(end, tiny="just above 0" if end > 0 else "just below 0") for end in pair.ci)
        return f"{p}; {format_percent(pair.confidence).replace('.0%', '%')} interval {low} to {high}"

    def can_change(self, reverse: str) -> str:
        """What some tie orders do: `reverse`, or make both equal. They *may* do it if the range is only a bound."""
        pair = self._pair
        other_can_lead = pair.can_lead[1 if pair.by_expectation[0] == pair.a else 0]
        return f"{'' if pair.exact_range else 'may '}{reverse if other_can_lead else 'make them equal'}"

    @property
    def leader_share(self) -> str:
        """The share of random orders in which the run with the higher expectation leads; it is never 0% or 100%."""
        pair = self._pair
        share = pair.probability if pair.by_expectation[0] == pair.a else pair.probability_less
        return format_share(share, pair.samples)
