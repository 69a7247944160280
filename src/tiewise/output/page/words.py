"""What the page says in sentences: the verdict it opens with, and what stands beside a precision."""

from __future__ import annotations

from collections.abc import Sequence

from tiewise.analysis.auditing import Audit
from tiewise.analysis.comparison import Compared, Duel
from tiewise.metrics.estimate import Estimate
from tiewise.tables.html import share

__all__ = ["ALPHA", "of_one", "of_precision", "of_several", "rivals"]

#: p-values below this are called a difference that is unlikely to be chance.
ALPHA = 0.05


def of_one(name: str, measure: str, mean: Estimate) -> str:
    """The verdict on one run.

    >>> of_one("bm25", "RR", Estimate(expected=0.5, minimum=0.25, maximum=0.75))
    'RR of bm25 is 0.5000 on average over the orders of its ties; a single order can give ... from 0.2500 to 0.7500.'
    """
    value = f"{measure} of {name} is {mean.expected:.4f}"
    if not mean.tied:
        return f"{value}, and no order of ties can change that."
    return (
        f"{value} on average over the orders of its ties; a single order can give anything from {mean.minimum:.4f} to "
        f"{mean.maximum:.4f}."
    )


def of_several(found: Compared, measure: str) -> str:
    """The verdict on several runs: who is first, and whether the order of ties or the sample of queries decides it."""
    first, *others = (row["system"] for row in found.leaderboard(measure))
    duels = [found.pair(first, other, measure) for other in others]
    if open_ := rivals(duels):
        if open_[0].can_lead[1]:
            return _undecided(first, measure, open_)
        return (
            f"No order of ties puts another run ahead of {first} in {measure}, but some put "
            f"{_listed([duel.b for duel in open_])} level with it."
        )
    level = [duel.b for duel in duels if not duel.certain]
    if level:
        return f"{_listed([first, *level])} are level in {measure}."
    ahead = f"ahead of {others[0]}" if len(others) == 1 else f"first of {len(found.systems)} runs"
    ties = " whatever the order of ties" if any(duel.difference.tied for duel in duels) else ""
    return f"{first} is {ahead} in {measure}{ties}{_of_queries(duels)}."


def rivals(duels: Sequence[Duel]) -> list[Duel]:
    """Of the pairs of the first with others: those that an order of ties turns round, or, without one, makes level."""
    open_ = [duel for duel in duels if not duel.certain and duel.difference.tied]
    return [duel for duel in open_ if duel.can_lead[1]] or open_


def _undecided(first: str, measure: str, duels: Sequence[Duel]) -> str:
    names = [duel.b for duel in duels]
    flips = any(duel.flip for duel in duels)
    tools = ", and tools that break ties differently name different winners" if flips else ""
    who = _listed([first, *names], "or")
    return f"Who is first in {measure} is not decided: the order of ties alone can put {who} ahead{tools}."


def _of_queries(duels: Sequence[Duel]) -> str:
    """Whether the first would be first for other queries."""
    chance = [duel for duel in duels if (duel.p_value if duel.p_holm is None else duel.p_holm) >= ALPHA]
    queries = duels[0].queries
    if queries < 2:
        return ", for this one query"
    if not chance:
        return f", and that is unlikely to be chance in the sample of {queries:,} queries"
    over = "this" if len(duels) == 1 else f"the lead over {_listed([duel.b for duel in chance])}"
    return f", but with these {queries:,} queries {over} may be chance"


def of_precision(name: str, audit: Audit, reference: str) -> str:
    """How tied a run is and how faithful to its reference, so that no ties is not mistaken for correct."""
    said = audit.fidelity
    tied = "None of its rows are tied" if not audit.tied_rows else f"{share(audit.tied_share)} of its rows are tied"
    if said is None:
        return f"{tied}; the others are compared with it."
    if said.inverted is None or said.tied is None:
        return f"{tied}; it has no pair of documents in common with {reference}."
    wrong = f"of the pairs that {reference} orders, it orders {share(said.inverted)} the other way round"
    lost = f" and ties {share(said.tied)}" if said.tied else ""
    warning = " No ties does not mean the right order." if said.inverted and not said.tied else ""
    return f"{tied}; {wrong}{lost}.{warning}"


def _listed(names: Sequence[str], last: str = "and", most: int = 3) -> str:
    """Some names in words; of many, how many more there are."""
    shown = [*names[:most], *([f"{len(names) - most} more"] if len(names) > most else [])]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} {last} {shown[-1]}"
