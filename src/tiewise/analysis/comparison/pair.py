"""`PairComparison`: one system against another in one measure, as numbers and in sentences.

*In every order of ties?* Is the same system ahead in every order of the tied documents (`certain`, `probability`)?
*Shown?* Do these queries show that the expected difference is not 0, so that it would hold for other queries
(`p_value`, `ci`)? The questions are about two kinds of chance, and one answer says nothing about the other. So they are
never merged into one verdict, and only two times yes is shown in the colour of success. A third question is whether
tools that break ties by their own rules name the same winner (`flip`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tiewise.analysis.comparison.distribution import Probabilities
from tiewise.analysis.significance import ATOL
from tiewise.analysis.simultaneous import level
from tiewise.caching import cached_property
from tiewise.metrics.estimate import Estimate
from tiewise.metrics.tool_rules import TOOLS
from tiewise.results.base import Result
from tiewise.results.model import Rows, Section, Table
from tiewise.results.view import View
from tiewise.results.wording import SHORT, format_percent, format_share, join_names

TIES_QUESTION, QUERIES_QUESTION = "In every order of ties?", "Shown?"

ONE_QUERY = "One query says nothing about other queries"


@dataclass(frozen=True)
class Answers(Result):
    """The answers to both questions, as single words."""

    any_tie_order: Literal["yes", "no", "equal"]  #: of the documents listed; equal: the same value in every order
    shown: Literal["yes", "no", "unknown"]  #: that the difference is not 0; unknown: there is only one query

    def _section(self, view: View) -> Section:
        return Section([Table.of_facts({TIES_QUESTION: self.any_tie_order, QUERIES_QUESTION: self.shown})])

    @property
    def both_yes(self) -> bool:
        """Whether one system is ahead in every order of ties, and shown to be better."""
        return (self.any_tie_order, self.shown) == ("yes", "yes")


@dataclass(frozen=True, repr=False)
class PairComparison(Result):
    """System `a` against system `b` in one measure; every difference is a − b.

    >>> from tiewise import compare
    >>> runs = {"A": {"q": {"x": 1.0, "y": 1.0}}, "B": {"q": {"x": 2.0, "y": 1.0}}}
    >>> pair = compare({"q": {"x": 1, "y": 0}}, runs, "RR", complete=True).pair("A", "B")
    >>> pair.difference, pair.probability_less, pair.probability_equal, pair.method
    (RR -0.2500 [-0.5000, 0.0000], 0.5, 0.5, 'exact')
    """

    a: str
    b: str
    measure: str
    queries: int
    difference: Estimate  #: over the orders of ties: expected, minimum, maximum, std
    exact_range: bool  #: whether orders of ties reach minimum and maximum, or these are only bounds
    std_error: float | None  #: the standard error of std, if orders of ties were sampled for it
    p_value: float  #: adjusted for all differences of the comparison: see `family`
    ci: tuple[float, float] | None  #: of the expected difference; those of the family hold together
    family: int  #: how many differences were tested at once
    ci_order: tuple[float, float] | None  #: of the difference in one random order of ties
    effect: float | None  #: the mean of the queries' differences over their standard deviation
    wins: int  #: queries in which a's expectation is higher
    losses: int
    equal: int
    _on_demand: Mapping[str, Any] = field(hash=False)  # probabilities and tools, which take most of the time
    confidence: float = 0.95  #: of the intervals; a difference is shown if p_value < 1 − confidence
    a_cut: tuple[float, float] | None = None  #: bounds on the expected value of a if its lists were cut in a tie group
    b_cut: tuple[float, float] | None = None  #: the same for b
    may_be_cut: bool = False  #: whether documents are probably missing from lists, so that an expected value is open
    open_by_cuts: bool = False  #: whether these bounds overlap: documents that may be missing could put either ahead

    @property
    def _probabilities(self) -> Probabilities:
        return self._on_demand["probabilities"]

    @property
    def probability(self) -> float:
        """How likely a is ahead in a random order of ties."""
        return self._probabilities.greater

    @property
    def probability_equal(self) -> float:
        """How likely they are equal."""
        return self._probabilities.equal

    @property
    def probability_less(self) -> float:
        """How likely b is ahead."""
        return self._probabilities.less

    @property
    def probability_error(self) -> float | None:
        """The standard error of `probability`, at most; None if it is exact."""
        return self._probabilities.error

    @property
    def method(self) -> str:
        """How the probabilities were computed: ``exact`` or ``sampled (n=…)``."""
        return self._probabilities.method

    @property
    def samples(self) -> int | None:
        """Of how many random orders; None if they are exact."""
        return self._probabilities.samples

    @property
    def tools(self) -> Rows:
        """What each tool prints for a and b, and the winner that it names."""
        return self._on_demand["tools"]

    @property
    def certain(self) -> bool:
        """Whether one of the two is ahead in every order of ties."""
        low, high = self.difference.minimum, self.difference.maximum
        return low is not None and high is not None and (low > ATOL or high < -ATOL)

    @property
    def can_lead(self) -> tuple[bool, bool]:
        """Whether some order of ties puts a ahead, and whether one puts b ahead."""
        low, high = self.difference.minimum, self.difference.maximum
        return high is not None and high > ATOL, low is not None and low < -ATOL

    @property
    def is_shown(self) -> bool:
        """Whether these queries show that the expected difference is not 0: its interval excludes 0."""
        return self.queries > 1 and self.p_value < level(self.confidence)

    @cached_property
    def winners(self) -> dict[str, list[str]]:
        """The tools that name each winner; only tools that differ from each other by the order of ties alone."""
        tools: dict[str, list[str]] = {}
        columns = (self.tools[name] for name in ("tool", "winner", "ties_only"))
        for tool, winner, ties_only in zip(*columns, strict=True):
            if ties_only and winner is not None:
                tools.setdefault(winner, []).append(tool)
        return tools

    @property
    def flip(self) -> bool:
        """Whether two orders of ties, of tools or of the file or its ids, name different winners."""
        return len(self.winners) > 1

    @property
    def tools_disagree(self) -> bool:
        """Whether two tools name different winners because they break ties differently."""
        return sum(any(tool in TOOLS for tool in tools) for tools in self.winners.values()) > 1

    # -- sentences ----------------------------------------------------------------------------------------------

    @cached_property
    def answers(self) -> Answers:
        """The answers to the two questions: in every order of ties, and shown?"""
        equal = not self.difference.tied and abs(self.difference.expected or 0.0) <= ATOL
        return Answers(
            "yes" if self.certain else "equal" if equal else "no",
            "unknown" if self.queries < 2 else "yes" if self.is_shown else "no",
        )

    @property
    def by_expectation(self) -> tuple[str, str]:
        """The two systems, the one with the higher expectation first."""
        return (self.a, self.b) if (self.difference.expected or 0.0) >= 0 else (self.b, self.a)

    @property
    def verdict(self) -> str:
        """The result in sentences: what tie order and other queries could change, and which tools disagree."""
        cut = "But lists may have been cut: counting what may be missing, which is higher is open." * self.open_by_cuts
        return " ".join(filter(None, (_describe_lists(self), cut, self.verdict_on_tools)))

    @property
    def verdict_on_tools(self) -> str:
        """Which tools name which winner, if they disagree; else empty."""
        if not self.flip:
            return ""
        named = [
            f"{join_names(tools)} {'name' if len(tools) > 1 else 'names'} {who}" for who, tools in self.winners.items()
        ]
        if self.tools_disagree:
            return f"Tools disagree, because they break ties differently: {'; '.join(named)}."
        return f"Orders of ties name different winners: {'; '.join(named)}."

    @property
    def ahead(self) -> str:
        """The share of orders in which a is ahead, with its standard error if it was sampled.

        "always" and "never" are about all orders, not only about those that were sampled.
        """
        if not self.can_lead[0]:
            return "never"
        if self.certain:
            return "always"
        share = format_share(self.probability, self.samples)
        if self.probability_error is None or share.startswith(("<", ">")):
            return share
        error = 100 * self.probability_error
        return f"{share} ± {f'{error:.1f}' if error >= 0.05 else '<0.1'}"

    def __repr__(self) -> str:
        return self.verdict

    def _section(self, view: View) -> Section:
        from tiewise.analysis.comparison.sections import pair_section

        return pair_section(self, view)

    def _records(self, view: View) -> Table:
        return Table.of_record(self._document(view))

    def _document(self, view: View) -> dict[str, Any]:
        plain = {name: getattr(self, name) for name in _FIELDS.split()}
        plain["difference"] = {
            name: getattr(self.difference, name) for name in ("expected", "minimum", "maximum", "std")
        }
        plain["difference"]["method"] = dict(self.difference.method)
        plain |= {name: None if plain[name] is None else list(plain[name]) for name in _INTERVALS}
        plain |= {"any_tie_order": self.answers.any_tie_order, "shown": self.answers.shown}
        return plain | {"tools": list(self.tools)}


_INTERVALS = ("ci", "ci_order", "a_cut", "b_cut")

#: The keys of `PairComparison.to_dict`, in their order.
_FIELDS = (
    "a b measure queries difference certain probability probability_equal probability_less method probability_error "
    "std_error exact_range a_cut b_cut open_by_cuts p_value ci family ci_order effect wins losses equal flip "
    "verdict tools"
)


# -- sentences: every difference is a − b, as in tables --------------------------------------------------


def _describe_lists(pair: PairComparison) -> str:
    """The result for the documents listed."""
    answers, difference, evidence = pair.answers, _format_difference(pair), _format_evidence(pair)
    leader, other = pair.by_expectation
    queries = f"these {pair.queries:,} queries" if pair.queries > 1 else "this one query"
    listed = "in every order of the documents listed"
    if answers.any_tie_order == "equal":
        orders = f", {listed}" if pair.may_be_cut else ""
        return f"{pair.a} and {pair.b} have the same {pair.measure} over {queries}{orders}."
    scores = f"{pair.a} scores {'higher' if leader == pair.a else 'lower'} than {pair.b} in {pair.measure}"
    however = listed if pair.may_be_cut else "in every order of ties"
    settled = f"{scores} {however} ({difference}{_format_range(pair, ', from ')})"
    match answers.any_tie_order, answers.shown:
        case "yes", "yes":
            return f"{settled}, and the difference is significant over {queries} ({evidence})."
        case "yes", "no":
            chance = f"but other queries could reverse it ({evidence})"
            return f"On {queries} {settled}, {chance}. This is not enough evidence that {leader} is better."
        case "yes", _:
            return f"On {queries} {settled}. {ONE_QUERY}."
    share = format_share(pair.probability if leader == pair.a else pair.probability_less, pair.samples)
    leads = f"{leader} leads in {share} of random orders"
    if answers.shown == "yes":
        change = _change(pair, f"put {other} ahead")
        return (
            f"Averaged over tie orders {scores}, significantly over {queries} ({difference}; {evidence}), "
            f"but some tie orders {change} ({_format_range(pair)}); {leads}. Report the expected values."
        )
    change = f"some tie orders {_change(pair, 'reverse the difference')} ({difference}{_format_range(pair, ', from ')})"
    others = f", and so could other queries ({evidence})" if pair.queries > 1 else f". {ONE_QUERY}"
    if pair.queries > 1 and pair.wins == pair.losses == 0:
        others = ", and the expected values are equal in every query"
    return f"{pair.a} and {pair.b} cannot be told apart in {pair.measure}: {change}{others}. {leads}."


def _format_difference(pair: PairComparison) -> str:
    expected = pair.difference.expected or 0.0
    tiny = "below +.0001" if expected > 0 else "above −.0001"
    return "expected difference 0" if abs(expected) <= ATOL else SHORT.signed(expected, tiny=tiny)


def _format_range(pair: PairComparison, before: str = "") -> str:
    """The lowest and the highest difference over tie orders; after other words, only if they look different."""
    low, high = (SHORT.signed(end) for end in (pair.difference.minimum, pair.difference.maximum))
    return f"{before}{low} to {high}" if low != high or not before else ""


def _format_evidence(pair: PairComparison) -> str:
    """The p-value, for how many differences it was adjusted, and the interval."""
    adjusted = f", adjusted for {pair.family:,} differences" if pair.family > 1 else ""
    p = SHORT.p_value(pair.p_value, "p") + adjusted
    if pair.ci is None:
        return p
    low, high = (SHORT.signed(end, tiny="just above 0" if end > 0 else "just below 0") for end in pair.ci)
    return f"{p}; {format_percent(pair.confidence).replace('.0%', '%')} interval {low} to {high}"


def _change(pair: PairComparison, reverse: str) -> str:
    """What some tie orders do: `reverse`, or make both equal. They *may* do it if the range is only a bound."""
    other_can_lead = pair.can_lead[1 if pair.by_expectation[0] == pair.a else 0]
    return f"{'' if pair.exact_range else 'may '}{reverse if other_can_lead else 'make them equal'}"
