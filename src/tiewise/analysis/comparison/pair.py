"""`Duel`: one system against another in one measure, and what can be said of it in words.

Three questions are kept apart. Does the order of ties decide who is ahead (`certain`, `probability`)? Could the
difference be chance in the sample of queries (`p_value`, `ci`)? And would tools that break ties by a rule of their own
agree (`flip`)?
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tiewise.analysis.comparison.distribution import Chances
from tiewise.analysis.significance import ATOL
from tiewise.metrics.estimate import Estimate
from tiewise.tables.model import Section, Table
from tiewise.tables.records import Rows
from tiewise.tables.results import Result
from tiewise.tables.wording import PLAIN, format_percent, join_names

__all__ = ["ALPHA", "Duel"]

#: Where the corrected p-value is below this, a difference is said to be unlikely to be chance.
ALPHA = 0.05


@dataclass(frozen=True, repr=False)
class Duel(Result):
    """System `a` against system `b` in one measure; every difference is a − b."""

    a: str
    b: str
    measure: str
    queries: int
    difference: Estimate  #: over the orders of ties: expected, minimum, maximum, std
    chances: Chances
    exact_range: bool  #: whether minimum and maximum are reached, or only contain what the orders can give
    std_error: float | None  #: the standard error of the std, where orders of ties were sampled for it
    p_value: float
    p_holm: float | None  #: corrected for all pairs and measures of the comparison; None if this pair is none of them
    ci: tuple[float, float] | None  #: of the expected difference, over the sample of queries
    ci_order: tuple[float, float] | None  #: of the difference in one order of ties, chosen once at random
    effect: float | None  #: the mean of the queries' differences over their standard deviation
    wins: int  #: queries in which a's expectation is higher
    losses: int
    ties: int
    tools: Rows  #: what each tool prints for a and b, and the winner it names

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
    def probability(self) -> float:
        """How likely a is ahead when ties are in random order."""
        return self.chances.greater

    @property
    def probability_equal(self) -> float | None:
        """How likely neither is; None where `method` is ``normal``, which cannot say."""
        return self.chances.equal

    @property
    def probability_less(self) -> float:
        """How likely b is."""
        return self.chances.less

    @property
    def probability_error(self) -> float | None:
        """The standard error of `probability`, at the most, where orders of ties were sampled for it; else None."""
        return self.chances.error

    @property
    def method(self) -> str:
        """How the probabilities were found: ``exact``, ``sampled (n=…)`` or ``normal``."""
        return self.chances.method

    @property
    def winners(self) -> dict[str, list[str]]:
        """The tools that name each winner, of those that differ from each other by the order of ties alone."""
        named: dict[str, list[str]] = {}
        for row in self.tools:
            if row["ties_only"] and row["winner"] is not None:
                named.setdefault(row["winner"], []).append(row["tool"])
        return named

    @property
    def flip(self) -> bool:
        """Whether two tools name different winners because they break ties differently."""
        return len(self.winners) > 1

    # -- words --------------------------------------------------------------------------------------------------

    @property
    def verdict(self) -> str:
        """What to make of it: ties first, then the sample of queries, then tools that disagree."""
        return " ".join(filter(None, (self._of_ties, self._of_queries, self.of_tools)))

    @property
    def _ahead(self) -> tuple[str, str]:
        return (self.a, self.b) if (self.difference.expected or 0.0) >= 0 else (self.b, self.a)

    @property
    def _of_ties(self) -> str:
        first, second = self._ahead
        gap = abs(self.difference.expected or 0.0)
        ahead = f"{first} is ahead of {second} by {_small(gap)} in {self.measure}"
        if self.certain:
            return f"{ahead}{' whatever the order of ties' if self.difference.tied else ''}."
        if not self.difference.tied:
            return f"{self.a} and {self.b} are level in {self.measure}."
        of_first, of_second = zip((self.probability, self.probability_less), self.can_lead, strict=True)
        if first != self.a:
            of_first, of_second = of_second, of_first
        often = f"in {_percent(*of_first)} of random orders {first} is ahead, in {_percent(*of_second)} {second}"
        if gap <= ATOL:
            return (
                f"{self.a} and {self.b} are level in {self.measure} on average, and the order of ties decides: {often}."
            )
        if not of_second[1]:
            return f"{ahead} on average; {often}."
        return f"{ahead} on average, but the order of ties decides: {often}."

    @property
    def _of_queries(self) -> str:
        if abs(self.difference.expected or 0.0) <= ATOL:
            return ""
        if self.queries < 2:
            return "One query says nothing about others."
        p, final = PLAIN.p_value(self.p_value, "p"), self.p_value if self.p_holm is None else self.p_holm
        if final != self.p_value:
            p += f", corrected {final:.3f}" if final >= 0.001 else ""
        if final < ALPHA:
            return f"The expected difference is unlikely to be chance in the sample of {self.queries:,} queries ({p})."
        return f"With these {self.queries:,} queries it may be chance ({p})."

    @property
    def of_tools(self) -> str:
        """Which tools name which winner, if they do not agree; else empty."""
        if not self.flip:
            return ""
        named = [
            f"{join_names(tools)} {'name' if len(tools) > 1 else 'names'} {who}" for who, tools in self.winners.items()
        ]
        return f"Tools disagree, for they break ties differently: {'; '.join(named)}."

    @property
    def often(self) -> str:
        """How often a is ahead, with the standard error of a sampled share.

        Always and never are said of all orders, not of those that happened to be drawn.
        """
        if not self.can_lead[0]:
            return "never"
        if self.certain:
            return "always"
        part = format_percent(min(max(self.probability, 1e-9), 1 - 1e-9))
        error = self.probability_error
        return part if error is None or part.startswith(("<", ">")) else f"{part} ± {100 * error:.1f}"

    def __repr__(self) -> str:
        return self.verdict

    def _section(self) -> Section:
        from tiewise.analysis.comparison.sections import pair_section

        return pair_section(self)

    def _records(self) -> Table:
        return Table.of_record(self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values."""
        names = ("a", "b", "measure", "queries", "certain", "probability", "probability_equal", "probability_less")
        later = ("p_value", "p_holm", "effect", "wins", "losses", "ties", "flip", "verdict")
        plain = {name: getattr(self, name) for name in names[:4]}
        parts = ("expected", "minimum", "maximum", "std")
        plain["difference"] = {name: getattr(self.difference, name) for name in parts}
        plain |= {name: getattr(self, name) for name in names[4:]} | {"method": self.method}
        plain |= {name: getattr(self, name) for name in ("probability_error", "std_error", "exact_range")}
        plain |= {name: None if (ci := getattr(self, name)) is None else list(ci) for name in ("ci", "ci_order")}
        return plain | {name: getattr(self, name) for name in later} | {"tools": [dict(row) for row in self.tools]}


def _small(value: float) -> str:
    return f"{value:.4f}" if value >= 0.00005 else "less than 0.0001"


def _percent(part: float, possible: bool) -> str:
    """A share of orders that is 0% only if no order is among them, and never 100%."""
    if not possible:
        return "0%"
    if not 0.001 <= part <= 0.999:
        return "<0.1%" if part < 0.5 else ">99.9%"
    return f"{min(max(100 * part, 0.1), 99.9):.{0 if 0.01 <= part <= 0.99 else 1}f}%"
