"""The verdict of an audit: what ties change, in one sentence, and what to do.

With judgments, `consequences` grades the effect of tie order; without them it is unknown. A reference run shows whether
the order is right; that is a question of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tiewise.analysis.auditing.causes import Evidence, Remedy
from tiewise.analysis.auditing.consequences import Effect, Grade, Reversal, grade_ties, gravest_effect
from tiewise.analysis.auditing.fidelity import Fidelity
from tiewise.results.wording import capitalize_first, count_noun, format_percent

__all__ = ["decide_verdict"]

MIN_LIST_SHARE = 0.1  # without judgments: ties across a cutoff call for a remedy from this share of the lists on
TOP = 10  # ties across deeper cutoffs call for a remedy only if there are no cutoffs up to this rank
MAX_REVERSALS = 2  # the most reversed results that the verdict names; others are counted

#: Problems with a remedy that is worth while even if the ties change nothing.
AVOIDABLE = {"precision", "precision or counts", "logits", "before transformation", "scaled", "decimals"}
AVOIDABLE |= {"saturation", "printed saturation"}


class _Finding(NamedTuple):
    """The grade of the ties, the verdict on them, and whether they call for a remedy."""

    grade: Grade
    text: str
    needs_remedy: bool


def decide_verdict(
    evidence: Evidence,
    across: Mapping[int, int],
    effects: Sequence[Effect] | None = None,
    reversals: Sequence[Reversal] = (),
    fidelity: Fidelity | None = None,
    library: str | None = None,
) -> tuple[Grade, str, Remedy | None]:
    """The grade of the ties of a run, the verdict in words, and what to do.

    `across` has, by cutoff, the number of lists with a tie across it; `effects` are those on the measures, None without
    judgments; `reversals` are the results that tie order reverses.
    """
    found = _judge_ties(evidence, across, effects, reversals, fidelity)
    problem = _choose_problem(evidence, found, fidelity)
    remedy = None if problem is None else evidence.find_remedy(problem, library)
    differs = " It does not rank as the reference does." if fidelity is not None and fidelity.differs else ""
    return found.grade, found.text + differs, remedy


def _choose_problem(evidence: Evidence, found: _Finding, fidelity: Fidelity | None) -> str | None:
    """The problem to remedy: the cause of the ties, or of a wrong order; None if nothing needs to be done."""
    is_unfaithful = not found.needs_remedy and fidelity is not None and fidelity.differs
    is_checked = evidence.cause is None and fidelity is not None  # untied, and a reference shows whether order is right
    was_rounded = evidence.scores.precision and not found.needs_remedy and (is_unfaithful or not is_checked)
    problem = evidence.refine("precision" if was_rounded else evidence.cause or "")
    if is_unfaithful and problem not in AVOIDABLE:
        return "order"
    return problem if problem in AVOIDABLE or found.needs_remedy else None


def _judge_ties(
    evidence: Evidence,
    across: Mapping[int, int],
    effects: Sequence[Effect] | None,
    reversals: Sequence[Reversal],
    fidelity: Fidelity | None,
) -> _Finding:
    ties = evidence.ties
    if evidence.cause is None and not reversals:
        return _Finding("none", _describe_untied(evidence, fidelity), False)
    if effects is not None:
        return _judge_by_consequences(effects, reversals, evidence)
    if evidence.cause == "constant":
        return _Finding("unknown", f"{_describe_constant(evidence)}: they rank nothing.", True)
    top = [lists for rank, lists in across.items() if rank <= TOP] or list(across.values())
    tied = capitalize_first(format_percent(ties.tied_share, in_words=True))
    text = f"{tied} of rows are tied; judgments show what that changes."
    is_crossed = max(top, default=0) >= MIN_LIST_SHARE * ties.lists
    return _Finding("unknown", text, is_crossed)


def _describe_constant(evidence: Evidence) -> str:
    ties = evidence.ties
    constant, lists = ties.constant + ties.nearly_constant, count_noun(ties.rankings, "list")
    some = lists if constant == ties.rankings else f"{constant:,} of {lists}"
    return f"{'Nearly all' if ties.nearly_constant else 'All'} scores of {some} are equal"


def _describe_untied(evidence: Evidence, fidelity: Fidelity | None) -> str:
    precision = evidence.scores.precision
    if precision and fidelity is None:
        return f"No ties, but scores were rounded to {precision}: a reference shows whether their order is right."
    if evidence.ties.are_ranks:
        return "No ties are visible: the scores are ranks, so tied documents have been put in an order."
    return "No ties: no two documents of a list have the same score."


def _judge_by_consequences(effects: Sequence[Effect], reversals: Sequence[Reversal], evidence: Evidence) -> _Finding:
    grade = grade_ties(effects, reversals)
    claimed = [one for one in reversals if one.is_claimed]
    if claimed:
        what = "the winner" if any(one.shown for one in claimed) else "the outcome"
        return _Finding(grade, f"Ties can change {what}: {_list_reversals(claimed)}.", True)
    gravest = gravest_effect(effects)
    if grade == "none" or gravest is None:
        return _Finding(grade, "Ties change nothing: no tie order changes a measure by .00005 or more.", False)
    if evidence.cause == "constant":
        return _Finding(grade, f"{_describe_constant(evidence)}: the numbers say nothing about the system.", True)
    if gravest.grade_by_order == "none":
        text = "No order of the documents listed changes a measure, but lists may have been cut inside a tie group."
        return _Finding(grade, text, False)
    small = "Harmless: ties" if grade == "harmless" else "Ties"
    return _Finding(
        grade, f"{str(gravest).replace('Ties', small, 1)}.", gravest.grade_by_order not in ("none", "harmless")
    )


def _list_reversals(reversals: Sequence[Reversal]) -> str:
    """The first reversals, and how many more there are."""
    more = len(reversals) - MAX_REVERSALS
    return "; ".join([*map(str, reversals[:MAX_REVERSALS]), *([f"and {more} more"] if more > 0 else [])])
