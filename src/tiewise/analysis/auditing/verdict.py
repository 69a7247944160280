"""The verdict of an audit: what made the ties, whether they matter, and what to do, in plain words.

What matters is judged by what is known. With judgments it is how far the order of ties alone can move a measure;
without them, in how many lists a tie lies across a cutoff. A cause is named only if there is evidence of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from tiewise.analysis.auditing.fidelity import Fidelity
from tiewise.analysis.auditing.grids import FEW, Grid
from tiewise.analysis.auditing.grouping import Grouping, Pile
from tiewise.analysis.auditing.remedies import Remedy, remedy_for
from tiewise.analysis.auditing.scaled import Steps, steps_of, steps_of_all
from tiewise.analysis.auditing.scores import ScoreGrid
from tiewise.analysis.auditing.spacing import Spacing, spacing_of
from tiewise.analysis.reports import Report

__all__ = ["LEVELS", "Evidence", "Verdict", "judge"]

#: How far a run can be trusted, and what that means.
LEVELS = {
    "sound": "no documents are tied",
    "harmless": "some are, but it hardly shows",
    "unclear": "there is too little to say",
    "unreliable": "the order of ties decides what is printed",
    "unfaithful": "ties do no harm, but the order is not that of the reference",
}

MOVED = 0.005  # half a point: a measure that ties can move by this is not settled
CROSSED = 0.1  # without judgments: ties across a cutoff matter from this share of lists on
SMALL = 50  # so few rows are an example, not a run
UNLIKE = 0.95  # below this RBO a run does not rank as its reference does
HEAD = 10  # cutoffs deeper than this matter less: they count only if there are no others


@dataclass(frozen=True)
class Evidence:
    """What is known of a run's scores and ties."""

    scores: ScoreGrid
    groups: Grouping
    cutoffs: Mapping[int, int]  #: by rank, the lists with a tie across it
    identical_rows: int | None = None  #: tied rows that are tied with identical documents only
    report: Report | None = None
    fidelity: Fidelity | None = None

    @property
    def tied_share(self) -> float:
        """The share of rows that are tied with another."""
        return self.groups.tied_rows / max(self.scores.rows, 1)

    @cached_property
    def piles(self) -> tuple[Pile, ...]:
        """Scores heaped up at 1 or 0."""
        return self.groups.piles(self.scores.printing)

    @property
    def pile(self) -> Pile | None:
        """The heap of scores at a limit that holds most tied rows, if the score function levels off there."""
        heaps = [pile for pile in self.piles if pile.levels_off]
        return next((pile for pile in heaps if 2 * pile.tied_rows >= self.groups.tied_rows), None)

    @cached_property
    def rounding(self) -> tuple[float, Grid] | None:
        """The largest share of tied pairs that rounding to a grid explains, and the grid; None if nothing is tied.

        Scores that printing heaped up at a limit are left out: they have neighbours on one side only.
        """
        ends = tuple(pile.at for pile in self.piles if pile.printed and pile.levels_off)
        shares = [
            (share, grid)
            for grid in self.scores.resolutions
            if (share := self.groups.rounded_share(grid, ends)) is not None
        ]
        return max(shares, key=lambda one: one[0], default=None)

    @cached_property
    def steps(self) -> Steps | None:
        """The even steps in which scores come that were scaled, all of them or list by list; None if there are none."""
        if self.scores.origin or self.scores.name == "integer":
            return None
        found = steps_of(self.groups.tied_lists(), self.scores.printings)
        return found or steps_of_all(self.groups.distinct(), self.groups.lists, self.scores.printings)

    @cached_property
    def spacing(self) -> Spacing:
        """How near to each other distinct scores lie."""
        return spacing_of(self.groups)

    @property
    def cause(self) -> str | None:
        """What made most of the ties; None if there are none."""
        groups, scores, origin = self.groups, self.scores, self.scores.origin
        if not groups.tied_rows:
            return None
        if 2 * (groups.constant + groups.nearly_constant) >= groups.rankings:
            return "constant"
        if self.identical_rows is not None and self.identical_rows >= 0.9 * groups.tied_rows:
            return "identical"
        if origin and not (self.pile and origin.function.of_logits):
            return "precision" if origin.precision else "integer" if origin.grid.name == "1" else "steps"
        if scores.name == "integer" and scores.known:
            return "integer"
        if self.pile:
            return "saturation"
        if scores.distinct < FEW:
            return "few" if scores.rows >= SMALL else "unclear"
        if self.steps:
            return "scaled"
        return self._rounded_or_not()

    def _rounded_or_not(self) -> str:
        """Whether printing, or float32, made ties of scores that are of no low-precision type; a few do not tell."""
        if self.groups.tied_pairs < FEW or self.rounding is None:
            return "unclear"
        share, grid = self.rounding
        if share >= 0.5:
            return grid.name if grid.name in ("float32", "float64") else "decimals"
        return "genuine" if self.spacing.by_chance or self.groups.unmatched else "unclear"

    @property
    def spaced(self) -> bool:
        """Whether all that is known of ties is that scores keep apart, as rounded numbers and counts do."""
        return self.cause == "unclear" and self.scores.distinct >= FEW and self.spacing.kept_apart


@dataclass(frozen=True)
class Verdict:
    """How far a run can be trusted, why, and what to do."""

    level: str  #: one of `LEVELS`
    cause: str | None  #: what made the ties
    words: str
    remedy: Remedy | None


def judge(evidence: Evidence, library: str | None = None) -> Verdict:
    """The verdict on some evidence."""
    cause = evidence.cause
    level, words = _on_ties(evidence, cause)
    level, words = _beside_reference(level, words, evidence.fidelity)
    source = _source(evidence, level, cause)
    remedy = None if source is None else remedy_for(source, evidence.scores.precision, library)
    return Verdict(level, cause, words, remedy)


def _source(evidence: Evidence, level: str, cause: str | None) -> str | None:
    """What is to be remedied: the cause of ties, or that of a wrong order; None if nothing need be done."""
    origin, source = evidence.scores.origin, cause
    if origin and origin.precision and level in ("harmless", "unfaithful"):
        source = "precision"
    if source == "precision" and origin:
        made = "logits" if origin.function.of_logits else "beneath" if origin.function.name else None
        source = made or ("either" if origin.steps else source)
    if source == "saturation" and evidence.pile and evidence.pile.printed:
        source = "ends"
    if source == "unclear" and evidence.spaced:
        source = "spaced"
    at_once = ("precision", "beneath", "either", "logits", "scaled", "decimals", "ends", "saturation")
    if level == "unfaithful" and source not in at_once:
        return "order"
    return source if level in ("unclear", "unreliable") or source in at_once else None


# -- on ties ----------------------------------------------------------------------------------------------------


def _on_ties(evidence: Evidence, cause: str | None) -> tuple[str, str]:
    if cause is None:
        return _untied(evidence)
    groups, rows = evidence.groups, evidence.scores.rows
    tied = f"{percent(evidence.tied_share)} of rows are tied{_because(evidence, cause)}"
    if evidence.report is not None:
        return _by_judgments(evidence.report, tied)
    if rows < SMALL:
        return "unclear", f"Too little to judge: {groups.tied_rows} of {rows} rows are tied."
    if cause == "constant":
        return "unreliable", f"Not reliable: {tied}. What tools print for it is the order in which they list ties."
    return _by_cutoffs(evidence, tied)


def _by_cutoffs(evidence: Evidence, tied: str) -> tuple[str, str]:
    share = {rank: lists / evidence.groups.lists for rank, lists in evidence.cutoffs.items()}
    looked_at = [rank for rank in share if rank <= HEAD] or list(share)
    rank = max(looked_at, key=lambda rank: share[rank], default=None)
    if rank is None or not share[rank]:
        return "harmless", f"Harmless ties, as far as one can see without judgments: {tied}."
    across = f"a tie lies across rank {rank} in {percent(share[rank])} of lists"
    if share[rank] < CROSSED:
        return "harmless", f"Harmless ties, as far as one can see without judgments: {tied}; {across}."
    return "unreliable", f"Not reliable: {tied}; {across}."


def _untied(evidence: Evidence) -> tuple[str, str]:
    precision = evidence.scores.precision
    if precision and evidence.fidelity is None:
        return "harmless", (
            f"No documents are tied, but scores were rounded to {precision}: their order may not be that of float32 "
            "scores. Give those as the reference to see."
        )
    if evidence.groups.ranks:
        return "sound", (
            "Sound as far as one can see: the scores are ranks, so documents that were tied have been put in an order."
        )
    return "sound", "Sound: no two documents of a list have the same score."


def _by_judgments(report: Report, tied: str) -> tuple[str, str]:
    moves = {measure: report[measure].range or 0.0 for measure in report if not measure.total}
    moved = max(moves, key=lambda measure: moves[measure], default=None)
    if moved is None or moves[moved] < MOVED:
        most = max(moves.values(), default=0.0)
        by = f"by more than {decimal(max(most, 0.0001))}" if most else "at all"
        return "harmless", f"Harmless ties: {tied}; their order moves no measure {by}."
    return "unreliable", f"Not reliable: {tied}; {moved} can move by {decimal(moves[moved])} with their order alone."


def _because(evidence: Evidence, cause: str) -> str:
    scores, groups = evidence.scores, evidence.groups
    because = {
        "precision": _rounded_to(scores),
        "steps": _stepped(scores),
        "scaled": evidence.steps.words if evidence.steps else "",
        "decimals": f"scores {evidence.rounding[1].words}" if evidence.rounding else "",
        "integer": _counted(scores),
        "float32": "float32 has no numbers between their scores",
        "float64": "float64 has no numbers between their scores",
        "saturation": _piled(evidence),
        "few": f"there are only {scores.distinct} distinct scores",
        "identical": "the documents are identical, and not by rounding",
        "constant": _constant(groups),
    }.get(cause)
    if because:
        return f" because {because}"
    if evidence.spaced:
        return ", and scores keep apart as rounded numbers or counts do"
    return ", and the scores do not tell why" if cause == "genuine" else ""


def _rounded_to(scores: ScoreGrid) -> str:
    origin = scores.origin
    if origin is None:
        return ""
    if origin.function.of_logits:
        return f"logits were rounded to {origin.precision}"
    counts = f", or are counts divided by {origin.steps.name.removeprefix('1/')}" if origin.steps else ""
    what = "the numbers that scores were made from" if origin.function.name else "scores"
    return f"{what} were rounded to {origin.precision}{counts}"


def _stepped(scores: ScoreGrid) -> str:
    origin = scores.origin
    if origin is None:
        return ""
    what = f"{origin.function.undone} come" if origin.function.name else "scores come"
    return f"{what} in even steps of {origin.grid.name}"


def _counted(scores: ScoreGrid) -> str:
    made = scores.origin is not None and scores.origin.function.name
    return "scores were made from whole numbers" if made else "scores are whole numbers"


def _piled(evidence: Evidence) -> str:
    pile, printing = evidence.pile, evidence.scores.printing
    if pile is None:
        return ""
    digits = f" and {printing.words}" if pile.printed and printing else ""
    return f"scores pile up at {pile.at:.0f}{digits}"


def _constant(groups: Grouping) -> str:
    found = groups.constant + groups.nearly_constant
    lists = f"{found:,} of {groups.rankings:,} lists {'gives' if found == 1 else 'give'}"
    return f"{lists} all documents, or nearly all, one score"


# -- on the order -----------------------------------------------------------------------------------------------


def _beside_reference(level: str, words: str, found: Fidelity | None) -> tuple[str, str]:
    """The verdict on ties with what a reference adds: a doubt about the order comes first, if ties are none."""
    if found is None or found.inverted is None:
        return level, words
    doubt = doubt_of(found)
    if not doubt:
        also = "also ranks" if level in ("sound", "harmless") else "otherwise ranks"
        return level, f"{words} It {also} as the reference does{_likeness(found)}."
    if level not in ("sound", "harmless"):
        return level, f"{words} It does not rank as the reference does: {doubt}."
    rest = words.split(": ", 1)[1] if level == "sound" else words
    return "unfaithful", f"Not faithful: it does not rank as the reference does: {doubt}. {rest[0].upper()}{rest[1:]}"


def doubt_of(found: Fidelity) -> str:
    """How the order differs from the reference, in a few words; empty if it hardly does, or is not known."""
    if found.inverted is None:
        return ""
    pairs = f"{percent(found.inverted)} of pairs are inverted"
    gap = max(found.gap.items(), key=lambda one: abs(one[1]), default=None)
    if gap and abs(gap[1]) >= MOVED:
        return f"{gap[0]} {'-' if gap[1] < 0 else '+'}{decimal(abs(gap[1]))}, and {pairs}"
    return f"RBO is {decimal(found.rbo)}, and {pairs}" if found.rbo is not None and found.rbo < UNLIKE else ""


def _likeness(found: Fidelity) -> str:
    return "" if found.rbo is None else f": RBO is {decimal(found.rbo)}"


def percent(part: float) -> str:
    """A share in words.

    >>> percent(0.494), percent(1), percent(0.0001), percent(0.99999)
    ('49.4%', '100%', 'fewer than 0.1%', 'over 99.9%')
    """
    if part in (0, 1):
        return f"{part:.0%}"
    return "fewer than 0.1%" if part < 0.0005 else "over 99.9%" if part > 0.9995 else f"{part:.1%}"


def decimal(value: float) -> str:
    """A number without the zero before its point, to four digits at most.

    >>> decimal(0.0109), decimal(0.001), decimal(1)
    ('.0109', '.001', '1')
    """
    return f"{value:.4f}".rstrip("0").rstrip(".").removeprefix("0") or "0"
