"""The verdict of an audit: what ties change, in one sentence, and what to do.

With judgments, `consequences` grades the effect of tie order; without them it is unknown. A reference run shows whether
the order is right; that is a question of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tiewise.analysis.auditing.causes import Evidence, Remedy
from tiewise.analysis.auditing.consequences import Effect, Grade, Reversal, grade_ties, gravest_effect
from tiewise.analysis.auditing.fidelity import Fidelity
from tiewise.results.wording import capitalize_first, count_noun, format_percent

MIN_LIST_SHARE = 0.1  # without judgments: ties across a cutoff call for a remedy from this share of the lists on
TOP = 10  # ties across deeper cutoffs call for a remedy only if there are no cutoffs up to this rank
MAX_REVERSALS = 2  # the most reversed results that the verdict names; others are counted

#: Problems with a remedy that is worth while even if the ties change nothing.
AVOIDABLE = {"precision", "precision or counts", "logits", "before transformation", "scaled", "decimals"}
AVOIDABLE |= {"saturation", "printed saturation"}


def decide_verdict(
    evidence: Evidence,
    across: Mapping[int, int],
    effects: Sequence[Effect] | None,
    reversals: Sequence[Reversal],
    fidelity: Fidelity | None,
    library: str | None,
) -> tuple[Grade, str, Remedy | None]:
    """The grade of the ties of a run, the verdict in words, and what to do.

    `across` has, by cutoff, the number of lists with a tie across it; `effects` are those on the measures, None without
    judgments; `reversals` are the results that tie order reverses.
    """
    if evidence.cause is None and not reversals:
        grade, text, needs_remedy = _judge_untied(evidence, fidelity)
    elif effects is None:
        grade, text, needs_remedy = _judge_by_statistics(evidence, across)
    else:
        grade, text, needs_remedy = _judge_by_consequences(evidence, effects, reversals)
    differs = fidelity is not None and fidelity.differs
    is_checked = evidence.cause is None and fidelity is not None  # untied, and a reference shows whether order is right
    was_rounded = evidence.scores.precision and not needs_remedy and (differs or not is_checked)
    problem = evidence.refine("precision" if was_rounded else evidence.cause or "")
    if not needs_remedy and problem not in AVOIDABLE:
        problem = "order" if differs else ""
    remedy = evidence.find_remedy(problem, library) if problem else None
    return grade, f"{text}{' It does not rank as the reference does.' * differs}", remedy


#: The grade of the ties, the verdict on them, and whether they call for a remedy.
_Finding = tuple[Grade, str, bool]


def _judge_untied(evidence: Evidence, fidelity: Fidelity | None) -> _Finding:
    precision = evidence.scores.precision
    if precision and fidelity is None:
        text = f"No ties, but scores were rounded to {precision}: a reference shows whether their order is right."
    elif evidence.ties.are_ranks:
        text = "No ties are visible: the scores are ranks, so tied documents have been put in an order."
    else:
        text = "No ties: no two documents of a list have the same score."
    return "none", text, False


def _judge_by_statistics(evidence: Evidence, across: Mapping[int, int]) -> _Finding:
    if evidence.cause == "constant":
        return "unknown", f"{_describe_constant(evidence)}: they rank nothing.", True
    top = [lists for rank, lists in across.items() if rank <= TOP] or list(across.values())
    tied = capitalize_first(format_percent(evidence.ties.tied_share, in_words=True))
    is_crossed = max(top, default=0) >= MIN_LIST_SHARE * evidence.ties.lists
    return "unknown", f"{tied} of rows are tied; judgments show what that changes.", is_crossed


def _judge_by_consequences(evidence: Evidence, effects: Sequence[Effect], reversals: Sequence[Reversal]) -> _Finding:
    grade, gravest = grade_ties(effects, reversals), gravest_effect(effects)
    if claimed := [one for one in reversals if one.is_claimed]:
        what = "the winner" if any(one.shown for one in claimed) else "the outcome"
        return grade, f"Ties can change {what}: {_list_reversals(claimed)}.", True
    if grade == "none" or gravest is None:
        return grade, "Ties change nothing: no tie order changes a measure by .00005 or more.", False
    if evidence.cause == "constant":
        return grade, f"{_describe_constant(evidence)}: the numbers say nothing about the system.", True
    if gravest.grade_by_order == "none":
        text = "No order of the documents listed changes a measure, but lists may have been cut inside a tie group."
        return grade, text, False
    small = "Harmless: ties" if grade == "harmless" else "Ties"
    return grade, f"{str(gravest).replace('Ties', small, 1)}.", gravest.grade_by_order != "harmless"


def _describe_constant(evidence: Evidence) -> str:
    ties = evidence.ties
    constant, lists = ties.constant + ties.nearly_constant, count_noun(ties.rankings, "list")
    some = lists if constant == ties.rankings else f"{constant:,} of {lists}"
    return f"{'Nearly all' if ties.nearly_constant else 'All'} scores of {some} are equal"


def _list_reversals(reversals: Sequence[Reversal]) -> str:
    """The first reversals, and how many more there are."""
    more = len(reversals) - MAX_REVERSALS
    return "; ".join([*map(str, reversals[:MAX_REVERSALS]), *([f"and {more} more"] if more > 0 else [])])
