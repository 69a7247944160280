"""Runs with lists that may have been cut inside a tie group, or without some judged queries, in sentences.

If a list was cut, documents are missing that are tied with those at its end. The range is about the documents listed;
the bounds `Estimate.cut` say where the expected value is, whatever was cut off.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from tiewise.metrics.estimate import Estimate
from tiewise.results.estimates import is_wide
from tiewise.results.wording import THREE, cut_lists_note, join_names

if TYPE_CHECKING:
    from tiewise.analysis.reports import Report


def find_open(runs: Mapping[str, Estimate]) -> list[list[str]]:
    """The groups of runs whose order documents that may be missing could change.

    >>> cuts = {"A": (0.6, 0.9), "B": (0.3, 1.0), "C": None, "D": (0.1, 0.2)}
    >>> expected = {"A": 0.6, "B": 0.4, "C": 0.15, "D": 0.12}
    >>> find_open({name: Estimate(expected[name], cut=cuts[name], cut_likely=True) for name in cuts})
    [['A', 'B'], ['C', 'D']]
    """
    if len(runs) < 2:
        return []
    ends = {
        name: one.open_cut or (one.expected, one.expected) for name, one in runs.items() if one.expected is not None
    }
    wide = {name for name in ends if is_wide(runs[name].open_cut)}
    groups: list[list[str]] = []
    for name, (low, high) in ends.items():
        others = wide if name not in wide else ends.keys()  # one of two runs must be open
        joined = [
            group for group in groups if any(o in others and ends[o][0] < high and low < ends[o][1] for o in group)
        ]
        groups = [group for group in groups if group not in joined] + [[*chain.from_iterable(joined), name]]
    return [group for group in groups if len(group) > 1]


def describe_cuts(by_measure: Mapping[str, Mapping[str, Estimate]], unbounded: Sequence[str] = ()) -> str:
    """Where the expected values of runs are, whatever was cut off; empty if nothing is open. It starts with a colon.

    A run alone needs no name: its name is empty. `unbounded` are the measures for which there are no bounds.

    >>> a = Estimate(expected=0.6354, cut=(0.6314, 0.8959), cut_likely=True)
    >>> b = Estimate(expected=0.4119, cut=(0.3024, 1.0), cut_likely=True)
    >>> describe_cuts({"R@1000": {"A": a, "B": b}})
    ': R@1000 .631 – .896 (A), .302 – 1.000 (B), so which is higher is open'
    >>> describe_cuts({}, ["G", "infAP"])
    ': no bounds for G and infAP'
    """
    wide, questions = {}, {}
    for measure, runs in by_measure.items():
        wide[measure] = {name: one.open_cut for name, one in runs.items() if is_wide(one.open_cut)}
        if groups := find_open(runs):
            names = ", and that of ".join(join_names(names, limit=5) for names in groups)
            questions[measure] = "which is higher" if len(runs) == 2 else f"the order of {names}"
    return describe_bounds(wide, unbounded, questions)


def describe_bounds(
    wide: Mapping[str, Mapping[str, tuple[float, float] | None]],
    unbounded: Sequence[str] = (),
    questions: Mapping[str, str] = {},
) -> str:
    """The same from the bounds that leave a digit open, by measure and run, and from what that leaves open.

    >>> describe_bounds({"AP": {"": (0.25, 0.5)}})
    ': AP .250 – .500'
    """
    open_runs, parts = set(chain.from_iterable(wide.values())), []
    for measure, cuts in wide.items():
        if not cuts:
            continue
        ends = {name: " – ".join(map(THREE.number, cut or ())) for name, cut in cuts.items()}
        within = [f"{text} ({name})" if len(open_runs) > 1 else text for name, text in ends.items()]
        question = f", so {questions[measure]} is open" if measure in questions else ""
        parts.append(f"{measure} {', '.join(within)}{question}")
    if unbounded:
        parts.append(f"no bounds for {join_names(unbounded, limit=len(unbounded))}")
    return f": {'; '.join(parts)}" if parts else ""


def cut_note(reports: Mapping[str, Report], by_measure: Mapping[str, Mapping[str, Estimate]] | None = None) -> str:
    """The note on lists of several runs that may have been cut inside a tie group; empty if there are none.

    `by_measure` has the estimates that are shown: by default those of the reports, which have the same measures.
    """
    if by_measure is None:
        measures = next(iter(reports.values()))
        by_measure = {str(measure): {name: one[measure] for name, one in reports.items()} for measure in measures}
    cut = [name for name, report in reports.items() if report.is_cut]
    if not cut:
        return ""
    unbounded = {name: None for report in reports.values() for name in report.without_bounds if name in by_measure}
    bounds = describe_cuts(by_measure, list(unbounded)) or ", which ranges ignore"
    return cut_lists_note(f"° Lists of {join_names(cut)}", bounds)


def caption_notes(reports: Mapping[str, Report]) -> list[str]:
    """Short sentences for the caption of a table: lists that may have been cut, and missing queries counted as 0."""
    cut = [name for name, report in reports.items() if report.is_cut]
    missing = {name: report.missing_as_zero for name, report in reports.items() if report.missing_as_zero}
    notes = [f"° Lists of {join_names(cut)} may have been cut inside a tie group."] if cut else []
    if missing:
        counts = join_names([f"{count:,} of {name}" for name, count in missing.items()])
        notes.append(f"Missing judged queries count as 0: {counts}.")
    return notes
