"""The verdict of an audit: what tie order changes, why documents are tied, and what to do, in sentences.

With judgments, `consequences` grades the effect of tie order. Without them it is unknown, and the verdict says how many
lists have a tie across a cutoff. A reference run shows whether the order is right; that is a question of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tiewise.analysis.auditing.causes import MIN_ROWS, Evidence, Remedy
from tiewise.analysis.auditing.consequences import RANKED, Effect, Grade, Reversal, grade_ties
from tiewise.analysis.auditing.fidelity import Fidelity
from tiewise.tables.estimates import is_wide
from tiewise.tables.wording import SHORT, capitalize_first, format_percent, join_names

__all__ = ["Verdict", "decide_verdict", "describe_difference"]

MIN_DIFFERENCE = 0.005  # half a point: a run that differs from its reference by this is not faithful to it
MIN_LIST_SHARE = 0.1  # without judgments: ties across a cutoff call for a remedy from this share of the lists on
MIN_RBO = 0.95  # below this, a run does not rank as its reference does
TOP = 10  # ties across deeper cutoffs call for a remedy only if there are no cutoffs up to this rank
MAX_REVERSALS = 2  # the most reversed results that the verdict names; others are counted

#: Problems with a remedy that is worth while even if the ties change nothing.
AVOIDABLE = (
    "precision",
    "precision or counts",
    "logits",
    "before transformation",
    "scaled",
    "decimals",
    "saturation",
    "printed saturation",
)


class Verdict(NamedTuple):
    """The grade of the ties of a run, the verdict in words, and what to do."""

    grade: Grade
    text: str
    remedy: Remedy | None


class _Finding(NamedTuple):
    """What was found on ties alone."""

    grade: Grade
    text: str
    needs_remedy: bool


def decide_verdict(
    evidence: Evidence,
    across: Mapping[int, int],
    effects: Sequence[Effect] | None = None,
    reversals: Sequence[Reversal] | None = None,
    fidelity: Fidelity | None = None,
    library: str | None = None,
) -> Verdict:
    """The verdict on a run.

    `across` has, by cutoff, the number of lists with a tie across it; `effects` are those on the measures, None without
    judgments; `reversals` are the results that tie order reverses, None if there are no results to reverse.
    """
    found = _judge_ties(evidence, across, effects, reversals, fidelity)
    problem = _choose_problem(evidence, found, fidelity)
    remedy = None if problem is None else evidence.find_remedy(problem, library)
    return Verdict(found.grade, _add_reference(found, fidelity), remedy)


def _choose_problem(evidence: Evidence, found: _Finding, fidelity: Fidelity | None) -> str | None:
    """The problem to remedy: the cause of the ties, or of a wrong order; None if nothing needs to be done."""
    is_unfaithful = not found.needs_remedy and fidelity is not None and bool(describe_difference(fidelity))
    is_checked = evidence.cause is None and fidelity is not None  # untied, and a reference shows whether order is right
    was_rounded = evidence.scores.precision and not found.needs_remedy and (is_unfaithful or not is_checked)
    problem = evidence.refine("precision" if was_rounded else evidence.cause or "")
    if is_unfaithful and problem not in AVOIDABLE:
        return "order"
    return problem if problem in AVOIDABLE or found.needs_remedy else None


# -- ties -------------------------------------------------------------------------------------------------------------


def _judge_ties(
    evidence: Evidence,
    across: Mapping[int, int],
    effects: Sequence[Effect] | None,
    reversals: Sequence[Reversal] | None,
    fidelity: Fidelity | None,
) -> _Finding:
    ties, rows = evidence.ties, evidence.scores.rows
    if evidence.cause is None and not reversals:
        return _Finding("none", _describe_untied(evidence, fidelity), False)
    tied = f"{format_percent(ties.tied_share, in_words=True)} of rows are tied{evidence.explain()}"
    if effects is not None:
        return _judge_by_consequences(effects, reversals, tied)
    if rows < MIN_ROWS:
        return _Finding("unknown", f"Too little to judge: {ties.tied_rows} of {rows} rows are tied.", True)
    return _judge_without_judgments({rank: lists / ties.lists for rank, lists in across.items()}, tied, evidence.cause)


def _judge_without_judgments(share: Mapping[int, float], tied: str, cause: str | None) -> _Finding:
    top = {rank: lists for rank, lists in share.items() if rank <= TOP} or share
    crossed = max(top.values(), default=0.0)
    shown = top if crossed else share
    rank = max(shown, key=lambda rank: shown[rank], default=None)
    if rank is None:
        facts = tied
    elif shown[rank]:
        facts = f"{tied}; a tie lies across rank {rank} in {format_percent(shown[rank], in_words=True)} of lists"
    else:
        facts = f"{tied}; no tie lies across rank {join_names([str(one) for one in share], 'or', limit=len(share))}"
    text = f"Effect of ties unknown without judgments: {facts}. Judgments (--qrels, qrels=) show what that changes."
    return _Finding("unknown", text, crossed >= MIN_LIST_SHARE or cause == "constant")


def _describe_untied(evidence: Evidence, fidelity: Fidelity | None) -> str:
    precision = evidence.scores.precision
    if precision and fidelity is None:
        return (
            f"No documents are tied, but scores were rounded to {precision}: their order may not be that of float32 "
            "scores. Give those as the reference to see."
        )
    if evidence.ties.are_ranks:
        return (
            "No ties as far as one can see: the scores are ranks, so documents that were tied have been put in an "
            "order."
        )
    return "No ties: no two documents of a list have the same score."


def _judge_by_consequences(effects: Sequence[Effect], reversals: Sequence[Reversal] | None, tied: str) -> _Finding:
    grade, cut = grade_ties(effects, reversals or ()), _describe_cuts(effects)
    claimed = [one for one in reversals or () if one.is_claimed]
    if claimed:
        return _Finding(grade, f"Tie order can reverse a result: {tied}; {_list_reversals(claimed)}.{cut}", True)
    if grade == "none":
        text = f"Its ties change nothing: {tied}; no tie order changes a measure by .00005 or more."
        return _Finding(grade, text, False)
    gravest = max(effects, key=lambda effect: (RANKED.index(effect.grade_by_order), effect.size))
    if gravest.grade_by_order == "none":
        unchanged = "no order of the documents listed changes a measure by .00005 or more"
        return _Finding(grade, f"Report the bounds: {tied}; {unchanged}.{cut}", False)
    kept = "" if reversals is None else " No comparison or check is reversed."
    if reversals:
        kept = f" No check or significant comparison is reversed; {_list_reversals(reversals)}."
    if grade == "minor":
        return _Finding(grade, f"Its ties change little: {tied}; {gravest}.{kept * bool(reversals)}", False)
    if grade == "decides":
        text = f"Tie order matters as much as the choice of queries: {tied}; {gravest}.{kept * bool(reversals)}{cut}"
        return _Finding(grade, text, True)
    text = f"Report the expected values: {tied}; {gravest}.{kept}{cut}"
    return _Finding(grade, text, gravest.grade_by_order == "report")


def _list_reversals(reversals: Sequence[Reversal]) -> str:
    """The first reversals, and how many more there are."""
    more = len(reversals) - MAX_REVERSALS
    return "; ".join([*map(str, reversals[:MAX_REVERSALS]), *([f"and {more} more"] if more > 0 else [])])


def _describe_cuts(effects: Sequence[Effect]) -> str:
    """The bounds of measures that lists cut inside a tie group leave open, in a sentence; empty if there are none."""
    cuts = {effect.measure: effect.cut for effect in effects if effect.cut is not None and is_wide(effect.cut)}
    if not cuts:
        return ""
    bounds = join_names([f"{name} lies within {'–'.join(map(SHORT.number, cut))}" for name, cut in cuts.items()])
    return f" Lists may have been cut inside a tie group: counting what may be missing, expected {bounds}."


# -- order ------------------------------------------------------------------------------------------------------------


def _add_reference(found: _Finding, fidelity: Fidelity | None) -> str:
    """The verdict on ties with that on the order; a wrong order comes first if ties do no harm."""
    text, harmless = found.text, found.grade in ("none", "minor")
    if fidelity is None or fidelity.inverted is None:
        return text
    difference = describe_difference(fidelity)
    if not difference:
        rbo = "" if fidelity.rbo is None else f": RBO is {SHORT.short(fidelity.rbo)}"
        return f"{text} It {'also' if harmless else 'otherwise'} ranks as the reference does{rbo}."
    if not harmless:
        return f"{text} It does not rank as the reference does: {difference}."
    return f"Not faithful: it does not rank as the reference does: {difference}. {capitalize_first(text)}"


def describe_difference(fidelity: Fidelity) -> str:
    """How the order differs from that of the reference, in a few words; empty if it hardly does, or is not known."""
    if fidelity.inverted is None:
        return ""
    pairs = f"{format_percent(fidelity.inverted, in_words=True)} of pairs are inverted"
    measure, gap = max(fidelity.gap.items(), key=lambda one: abs(one[1]), default=("", 0.0))
    if abs(gap) >= MIN_DIFFERENCE:
        return f"{measure} differs by {SHORT.signed(gap)}, and {pairs}"
    low = fidelity.rbo is not None and fidelity.rbo < MIN_RBO
    return f"RBO is {SHORT.short(fidelity.rbo or 0.0)}, and {pairs}" if low else ""
