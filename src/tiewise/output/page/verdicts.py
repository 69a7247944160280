"""The sentences of the page: the verdict at its top, and one for each precision."""

from __future__ import annotations

from collections.abc import Sequence

from tiewise.analysis.auditing import Audit
from tiewise.analysis.comparison import Compared, PairComparison
from tiewise.metrics.estimate import Estimate
from tiewise.tables.estimates import describe_range
from tiewise.tables.wording import PLAIN, format_percent, join_names

__all__ = ["ALPHA", "describe_precision", "undecided_pairs", "verdict_on_one", "verdict_on_several"]

#: A difference with a p-value below this is called unlikely to be chance.
ALPHA = 0.05


def verdict_on_one(name: str, measure: str, mean: Estimate) -> str:
    """The verdict on one run.

    >>> verdict_on_one("bm25", "RR", Estimate(expected=0.5, minimum=0.25, maximum=0.75))
    'RR of bm25 is 0.5000 on average over the orders of its ties; a single order can give ... from 0.2500 to 0.7500.'
    """
    value = f"{measure} of {name} is {'about ' * bool(mean.method.mark('expected'))}{PLAIN.number(mean.expected)}"
    if not mean.tied:
        return f"{value}, and no order of ties can change that."
    low, high, method = PLAIN.number(mean.minimum), PLAIN.number(mean.maximum), mean.method["extremes"]
    moved = f"give anything from {low} to {high}" if method == "exact" else f"move it {describe_range(mean)}"
    return f"{value} on average over the orders of its ties; a single order can {moved}."


def verdict_on_several(compared: Compared, measure: str) -> str:
    """The verdict on several runs: who is first, and whether the order of ties or the sample of queries decides it."""
    first, *others = (row["system"] for row in compared.leaderboard(measure))
    pairs = [compared.pair(first, other, measure) for other in others]
    if undecided := undecided_pairs(pairs):
        if undecided[0].can_lead[1]:
            return _who_is_first(first, measure, undecided)
        return (
            f"No order of ties puts another run ahead of {first} in {measure}, but some put "
            f"{join_names([pair.b for pair in undecided])} level with it."
        )
    level = [pair.b for pair in pairs if not pair.certain]
    if level:
        return f"{join_names([first, *level])} are level in {measure}."
    ahead = f"ahead of {others[0]}" if len(others) == 1 else f"first of {len(compared.systems)} runs"
    ties = " whatever the order of ties" if any(pair.difference.tied for pair in pairs) else ""
    return f"{first} is {ahead} in {measure}{ties}{_chance(pairs)}."


def undecided_pairs(pairs: Sequence[PairComparison]) -> list[PairComparison]:
    """The pairs in which an order of ties puts the second run ahead; if there are none, those that it makes equal."""
    tied = [pair for pair in pairs if not pair.certain and pair.difference.tied]
    return [pair for pair in tied if pair.can_lead[1]] or tied


def _who_is_first(first: str, measure: str, pairs: Sequence[PairComparison]) -> str:
    names = [pair.b for pair in pairs]
    flips = any(pair.flip for pair in pairs)
    tools = ", and tools that break ties differently name different winners" if flips else ""
    who = join_names([first, *names], "or")
    return f"Who is first in {measure} is not decided: the order of ties alone can put {who} ahead{tools}."


def _chance(pairs: Sequence[PairComparison]) -> str:
    """Whether the lead of the first run may be chance in the sample of queries."""
    chance = [pair for pair in pairs if (pair.p_value if pair.p_holm is None else pair.p_holm) >= ALPHA]
    queries = pairs[0].queries
    if queries < 2:
        return ", for this one query"
    if not chance:
        return f", and that is unlikely to be chance in the sample of {queries:,} queries"
    over = "this" if len(pairs) == 1 else f"the lead over {join_names([pair.b for pair in chance])}"
    return f", but with these {queries:,} queries {over} may be chance"


def describe_precision(audit: Audit, reference: str) -> str:
    """How tied a run is and how faithful to its reference: a run without ties is not always correct."""
    fidelity = audit.fidelity
    some = format_percent(audit.tied_share) if audit.tied_rows else "None"
    tied = f"{some} of its rows are tied"
    if fidelity is None:
        return f"{tied}; the others are compared with it."
    if fidelity.inverted is None or fidelity.tied is None:
        return f"{tied}; it has no pair of documents in common with {reference}."
    wrong = f"of the pairs that {reference} orders, it orders {format_percent(fidelity.inverted)} the other way round"
    lost = f" and ties {format_percent(fidelity.tied)}" if fidelity.tied else ""
    warning = " No ties does not mean the right order." if fidelity.inverted and not fidelity.tied else ""
    return f"{tied}; {wrong}{lost}.{warning}"
