"""The sentences of the page: what it found, the two answers at its top, and a sentence for each precision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tiewise.analysis.auditing import Audit
from tiewise.analysis.comparison import Compared, PairComparison
from tiewise.metrics.estimate import Estimate
from tiewise.results.estimates import describe_range, is_wide
from tiewise.results.wording import PLAIN, count_noun, format_percent, format_share, join_names


def verdict_on_one(name: str, measure: str, mean: Estimate) -> str:
    """The verdict on one run.

    >>> verdict_on_one("bm25", "RR", Estimate(expected=0.5, minimum=0.25, maximum=0.75))
    'RR of bm25 is 0.5000 on average over the orders of its ties; a single order can give ... from 0.2500 to 0.7500.'
    """
    value = f"{measure} of {name} is {'about ' * bool(mean.method.mark('expected'))}{PLAIN.number(mean.expected)}"
    if not mean.tied:
        return (
            f"{value}, and no order of {'the documents listed' if is_wide(mean.open_cut) else 'ties'} can change that."
        )
    low, high, method = PLAIN.number(mean.minimum), PLAIN.number(mean.maximum), mean.method["extremes"]
    moved = f"give anything from {low} to {high}" if method == "exact" else f"move it {describe_range(mean)}"
    return f"{value} on average over the orders of its ties; a single order can {moved}."


def verdict_on_several(compared: Compared, measure: str, leads: Sequence[PairComparison]) -> str:
    """Which run has the highest expected value, and first of all if it is not clearly first.

    `leads` are the first run against each other run; the two answers say more about them.
    """
    board = compared.ranking(measure)
    best = [row["system"] for row in board if row["rank"] == 1]
    value, runs = PLAIN.number(board[0]["expected"]), count_noun(len(board), "run")
    if len(best) == len(board):
        return f"{join_names(best)} have the same expected {measure}, {value}."
    has = "has" if len(best) == 1 else "have"
    return f"{_doubt(leads)}{join_names(best)} {has} the highest expected {measure} of {runs}, {value}."


def describe_other_leaders(leaders: Mapping[str, str]) -> str:
    """Which runs have the highest expected values by other measures, as further sentences.

    >>> describe_other_leaders({"AP": "dense", "RR": "bm25", "P@10": "dense"})
    ' By AP and P@10, the highest is dense. By RR, the highest is bm25.'
    """
    by_leader: dict[str, list[str]] = {}
    for measure, leader in leaders.items():
        by_leader.setdefault(leader, []).append(measure)
    return "".join(f" By {join_names(names)}, the highest is {leader}." for leader, names in by_leader.items())


#: Why no run is clearly first, by the answers of the pair: any tie order, shown.
_DOUBTS = {
    ("yes", "no"): "other queries could reverse the lead of {first} over {others}",
    ("no", "yes"): "some orders of ties undo the lead of {first} over {others}",
    ("no", "no"): "{first} and {others} cannot be told apart",
    ("no", "unknown"): "{first} and {others} cannot be told apart",
}


def _doubt(leads: Sequence[PairComparison]) -> str:
    """That no run is clearly first, and why; empty if one is, or if its lead is over one query only."""
    others: dict[str, list[str]] = {}
    for pair in leads:
        if why := _DOUBTS.get((pair.answers.any_tie_order, pair.answers.shown)):
            others.setdefault(why, []).append(pair.b)
    reasons = [why.format(first=leads[0].a, others=join_names(names)) for why, names in others.items()]
    return f"No run is clearly first: {'; '.join(reasons)}. " if reasons else ""


def answer_on_ties(pairs: Sequence[PairComparison]) -> str:
    """In every order of ties: does the first run of all these pairs stay ahead?"""
    first, is_cut = pairs[0].a, any(pair.may_be_cut for pair in pairs)
    if reversing := [pair for pair in pairs if pair.answers.any_tie_order == "no" and pair.can_lead[1]]:
        flips = any(pair.tools_disagree for pair in pairs)
        tools = " Tools break ties differently and name different winners." if flips else ""
        shares = (format_share(pair.probability_less, pair.samples, in_words=True) for pair in reversing)
        others = [f"{pair.b} (in {share} of random orders)" for pair, share in zip(reversing, shares, strict=True)]
        put = "put" if any(pair.exact_range for pair in reversing) else "may put"
        return f"No: some tie orders {put} {join_names(others, 'or')} ahead of {first}.{tools}"
    if level := [pair.b for pair in pairs if pair.answers.any_tie_order == "no"]:
        return f"No: some tie orders put {join_names(level, 'or')} level with {first}, none puts it ahead."
    if equal := [pair.b for pair in pairs if pair.answers.any_tie_order == "equal"]:
        return f"{join_names([first, *equal])} are equal in every tie order{' of the documents listed' * is_cut}."
    if not is_cut:
        return f"Yes: {first} is ahead in every tie order."
    rivals = [pair.b for pair in pairs if pair.open_by_cuts]
    could = f" Documents that may be missing from lists could put {join_names(rivals, 'or')} ahead." if rivals else ""
    return f"{'Open' if rivals else 'Yes'}: {first} is ahead in every order of the documents listed.{could}"


def answer_on_queries(pairs: Sequence[PairComparison]) -> str:
    """Is the first run of all these pairs shown to be better?"""
    first, queries = pairs[0].a, pairs[0].queries
    if queries < 2:
        return "Unknown: there is only one query."
    if unclear := [pair.b for pair in pairs if pair.answers.shown == "no"]:
        lead = f"that {first} is better than {join_names(unclear, 'or')}"
        return f"No: these {queries:,} queries do not show {lead}."
    return f"Yes: these {queries:,} queries show that {first} is better than every other run."


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
