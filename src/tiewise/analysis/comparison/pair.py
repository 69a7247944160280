"""`PairComparison`: one system against another in one measure, as numbers and in sentences.

Three questions are kept apart. Is the same system ahead in every order of ties (`certain`, `probability`)? Do these
queries show that the difference is not 0 (`p_value`, `ci`)? `answers` has both in a word each. And do tools that break
ties by their own rules name the same winner (`flip`)?
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tiewise.analysis.comparison.answers import Answers, describe_answers
from tiewise.analysis.significance import ATOL
from tiewise.analysis.simultaneous import level
from tiewise.metrics.estimate import Estimate
from tiewise.metrics.tool_rules import TOOLS
from tiewise.results.base import Result
from tiewise.results.model import Section, Table
from tiewise.results.rows import Rows
from tiewise.results.view import View
from tiewise.results.wording import format_share, join_names

__all__ = ["PairComparison"]


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
    probability: float  #: how likely a is ahead in a random order of ties
    probability_equal: float
    probability_less: float
    probability_error: float | None  #: the standard error of `probability`, at most; None if it is exact
    method: str  #: how the probabilities were computed: ``exact`` or ``sampled (n=…)``
    samples: int | None  #: of how many random orders; None if they are exact
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
    tools: Rows  #: what each tool prints for a and b, and the winner that it names
    confidence: float = 0.95  #: of the intervals; a difference is shown if p_value < 1 − confidence
    a_cut: tuple[float, float] | None = None  #: bounds on the expected value of a if its lists were cut in a tie group
    b_cut: tuple[float, float] | None = None  #: the same for b
    may_be_cut: bool = False  #: whether documents are probably missing from lists, so that an expected value is open
    open_by_cuts: bool = False  #: whether these bounds overlap: documents that may be missing could put either ahead

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

    @property
    def winners(self) -> dict[str, list[str]]:
        """The tools that name each winner; only tools that differ from each other by the order of ties alone."""
        tools: dict[str, list[str]] = {}
        for row in self.tools:
            if row["ties_only"] and row["winner"] is not None:
                tools.setdefault(row["winner"], []).append(row["tool"])
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

    @property
    def answers(self) -> Answers:
        """The answers to the two questions: in every order of ties, and shown?"""
        return Answers.of(self)

    @property
    def by_expectation(self) -> tuple[str, str]:
        """The two systems, the one with the higher expectation first."""
        return (self.a, self.b) if (self.difference.expected or 0.0) >= 0 else (self.b, self.a)

    @property
    def verdict(self) -> str:
        """The result in sentences: what tie order and other queries could change, and which tools disagree."""
        return " ".join(filter(None, (describe_answers(self), self.verdict_on_tools)))

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

    @property
    def share_less(self) -> str:
        """In words, the share of orders in which b is ahead, if some but not all orders put it ahead."""
        return format_share(self.probability_less, self.samples, in_words=True)

    def __repr__(self) -> str:
        return self.verdict

    def _section(self, view: View) -> Section:
        from tiewise.analysis.comparison.sections import pair_section

        return pair_section(self, view)

    def _records(self, view: View) -> Table:
        return Table.of_record(self._document(view))

    def _document(self, view: View) -> dict[str, Any]:
        plain = {name: getattr(self, name) for name in _FIELDS.split()}
        difference = self.difference.to_dict()
        plain["difference"] = {name: difference[name] for name in ("expected", "minimum", "maximum", "std", "method")}
        plain |= {name: None if plain[name] is None else list(plain[name]) for name in _INTERVALS}
        plain |= {"any_tie_order": self.answers.any_tie_order, "shown": self.answers.shown}
        return plain | {"tools": [dict(row) for row in self.tools]}


_INTERVALS = ("ci", "ci_order", "a_cut", "b_cut")

#: The keys of `PairComparison.to_dict`, in their order.
_FIELDS = (
    "a b measure queries difference certain probability probability_equal probability_less method probability_error "
    "std_error exact_range a_cut b_cut open_by_cuts p_value ci family ci_order effect wins losses equal flip "
    "verdict tools"
)
