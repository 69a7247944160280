"""The verdict of an audit: whether the ties matter, why, and what to do, in sentences.

With judgments, ties matter if their order alone can move a measure. Without judgments, they matter if many lists have a
tie across a cutoff. A reference run shows whether the order is right.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tiewise.analysis.auditing.causes import MIN_ROWS, Evidence, Remedy
from tiewise.analysis.auditing.fidelity import Fidelity
from tiewise.analysis.reports import Report
from tiewise.tables.wording import NumberFormat, capitalize_first, format_percent

__all__ = ["Verdict", "decide_verdict", "describe_difference"]

SHORT = NumberFormat(4, leading_zero=False)  # numbers in sentences

MIN_DIFFERENCE = 0.005  # half a point: a measure that ties can move by this is not settled
MIN_LIST_SHARE = 0.1  # without judgments: ties across a cutoff matter from this share of the lists on
MIN_RBO = 0.95  # below this, a run does not rank as its reference does
TOP = 10  # ties across deeper cutoffs matter only if there are no cutoffs up to this rank

#: Problems with a remedy that is worth while even if the ties are harmless.
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
    """How far a run can be trusted, and what to do."""

    level: str  #: sound, harmless, unclear (too few rows), unreliable, or unfaithful (only the order is wrong)
    text: str
    remedy: Remedy | None


def decide_verdict(
    evidence: Evidence,
    across: Mapping[int, int],
    report: Report | None = None,
    fidelity: Fidelity | None = None,
    library: str | None = None,
) -> Verdict:
    """The verdict on a run; `across` has, by cutoff, the number of lists with a tie across it."""
    level, text = _judge_ties(evidence, across, report, fidelity)
    level, text = _add_reference(level, text, fidelity)
    problem = _choose_problem(evidence, level)
    return Verdict(level, text, None if problem is None else evidence.find_remedy(problem, library))


def _choose_problem(evidence: Evidence, level: str) -> str | None:
    """The problem to remedy: the cause of the ties, or of a wrong order; None if nothing needs to be done."""
    rounded = evidence.scores.precision and level in ("harmless", "unfaithful")
    problem = evidence.refine("precision" if rounded else evidence.cause or "")
    if level == "unfaithful" and problem not in AVOIDABLE:
        return "order"
    return problem if problem in AVOIDABLE or level in ("unclear", "unreliable") else None


# -- ties -------------------------------------------------------------------------------------------------------------


def _judge_ties(
    evidence: Evidence, across: Mapping[int, int], report: Report | None, fidelity: Fidelity | None
) -> tuple[str, str]:
    ties, rows = evidence.ties, evidence.scores.rows
    if evidence.cause is None:
        return _judge_untied(evidence, fidelity)
    tied = f"{format_percent(ties.tied_share, in_words=True)} of rows are tied{evidence.explain()}"
    if report is not None:
        return _judge_by_measures(report, tied)
    if rows < MIN_ROWS:
        return "unclear", f"Too little to judge: {ties.tied_rows} of {rows} rows are tied."
    if evidence.cause == "constant":
        return "unreliable", f"Not reliable: {tied}. What tools print for it is the order in which they list ties."
    return _judge_by_cutoffs({rank: lists / ties.lists for rank, lists in across.items()}, tied)


def _judge_by_cutoffs(share: Mapping[int, float], tied: str) -> tuple[str, str]:
    top = [rank for rank in share if rank <= TOP] or list(share)
    rank = max(top, key=lambda rank: share[rank], default=None)
    if rank is None or not share[rank]:
        return "harmless", f"Harmless ties, as far as one can see without judgments: {tied}."
    across = f"a tie lies across rank {rank} in {format_percent(share[rank], in_words=True)} of lists"
    if share[rank] < MIN_LIST_SHARE:
        return "harmless", f"Harmless ties, as far as one can see without judgments: {tied}; {across}."
    return "unreliable", f"Not reliable: {tied}; {across}."


def _judge_untied(evidence: Evidence, fidelity: Fidelity | None) -> tuple[str, str]:
    precision = evidence.scores.precision
    if precision and fidelity is None:
        return "harmless", (
            f"No documents are tied, but scores were rounded to {precision}: their order may not be that of float32 "
            "scores. Give those as the reference to see."
        )
    if evidence.ties.are_ranks:
        return "sound", (
            "Sound as far as one can see: the scores are ranks, so documents that were tied have been put in an order."
        )
    return "sound", "Sound: no two documents of a list have the same score."


def _judge_by_measures(report: Report, tied: str) -> tuple[str, str]:
    ranges = {measure: report[measure].range or 0.0 for measure in report if not measure.total}
    widest = max(ranges, key=lambda measure: ranges[measure], default=None)
    if widest is None or ranges[widest] < MIN_DIFFERENCE:
        most = max(ranges.values(), default=0.0)
        by = f"by more than {SHORT.short(max(most, 0.0001))}" if most else "at all"
        return "harmless", f"Harmless ties: {tied}; their order moves no measure {by}."
    moves = f"{widest} can move by {SHORT.short(ranges[widest])} with their order alone"
    return "unreliable", f"Not reliable: {tied}; {moves}."


# -- order ------------------------------------------------------------------------------------------------------------


def _add_reference(level: str, text: str, fidelity: Fidelity | None) -> tuple[str, str]:
    """The verdict on ties with that on the order; a wrong order comes first if ties do no harm."""
    if fidelity is None or fidelity.inverted is None:
        return level, text
    difference = describe_difference(fidelity)
    harmless = level in ("sound", "harmless")
    if not difference:
        rbo = "" if fidelity.rbo is None else f": RBO is {SHORT.short(fidelity.rbo)}"
        return level, f"{text} It {'also' if harmless else 'otherwise'} ranks as the reference does{rbo}."
    if not harmless:
        return level, f"{text} It does not rank as the reference does: {difference}."
    rest = capitalize_first(text.split(": ", 1)[1] if level == "sound" else text)
    return "unfaithful", f"Not faithful: it does not rank as the reference does: {difference}. {rest}"


def describe_difference(fidelity: Fidelity) -> str:
    """How the order differs from that of the reference, in a few words; empty if it hardly does, or is not known."""
    if fidelity.inverted is None:
        return ""
    pairs = f"{format_percent(fidelity.inverted, in_words=True)} of pairs are inverted"
    measure, gap = max(fidelity.gap.items(), key=lambda one: abs(one[1]), default=("", 0.0))
    if abs(gap) >= MIN_DIFFERENCE:
        return f"{measure} {'-' if gap < 0 else '+'}{SHORT.short(abs(gap))}, and {pairs}"
    low = fidelity.rbo is not None and fidelity.rbo < MIN_RBO
    return f"RBO is {SHORT.short(fidelity.rbo or 0.0)}, and {pairs}" if low else ""
