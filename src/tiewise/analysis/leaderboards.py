"""`leaderboard`: systems over many collections, with the ranks that other queries and other collections would allow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from tiewise.analysis.comparison.comparing import measure_systems
from tiewise.analysis.comparison.system import System, align
from tiewise.analysis.leaderboard_result import Leaderboard, MeasuredCollection
from tiewise.analysis.measuring import resolve_measures
from tiewise.analysis.options import OptionNames, Options, Unpack, takes_options
from tiewise.analysis.significance import check_confidence
from tiewise.data.columns import Floats, by_name, identifier
from tiewise.data.progress import Progress, check_progress
from tiewise.errors import InputError, MeasureError, prefix_errors, warn_of_cuts
from tiewise.io import as_qrels
from tiewise.io.types import QrelsLike, RunLike
from tiewise.metrics.aggregation import MEAN, sum_over_queries
from tiewise.metrics.definition import Measure
from tiewise.metrics.names import MeasureLike
from tiewise.results.wording import list_examples, spelled_for_shell

#: Judgments and runs by collection; None stands for a run that is missing.
Collections = Mapping[Any, tuple[QrelsLike, Mapping[Any, "RunLike | None"]]]


@takes_options("oblivious")
def leaderboard(
    collections: Collections,
    measure: MeasureLike = "nDCG@10",
    *,
    groups: Mapping[str, str | Iterable[str]] | None = None,
    confidence: float = 0.95,
    progress: Progress | None = None,
    **options: Unpack[OptionNames],
) -> Leaderboard:
    """Systems over many collections by one measure: mean, Borda points, and what these collections can tell of ranks.

    `collections` are ``{name: (qrels, {system: run})}``, in any form that `evaluate` takes. A system may lack
    collections: it is left out there, or its run is None. All values are expected over the orders of ties.

    - `groups`: collections that are related, such as the parts of one, by the name of their group: their names, or
      patterns such as ``"cqadupstack-*"``. A group counts as one collection, with the mean of its parts.
    - `confidence` of the intervals of ranks, which hold for all systems at once. There are two: for other queries of
      these collections, and for other collections.
    {options}

    >>> qrels = {f"q{i}": {"a": 1} for i in range(9)}
    >>> good, bad = ({query: docs for query in qrels} for docs in ({"a": 0.9, "b": 0.5}, {"b": 0.5, "a": 0.1}))
    >>> found = leaderboard({"web": (qrels, {"A": good, "B": bad}), "news": (qrels, {"A": good, "B": bad})}, "RR")
    >>> print(found.to_text())
    RR · 2 collections · 2 systems
                                 rank (95%) for other
    rank  system   mean  borda   queries  collections
    1     A       1.000    2.0   1        1–2
    2     B        .500    0.0   2        1–2
    Other queries: every neighbour can be told apart; A is first. Other collections: 1 of 1 neighbours
    cannot be told apart; 2 systems may be first.
    How to read this, every cell: explain=True
    note: There are only 2 collections: what is shown for others rests on differences that are normally
    distributed.
    <BLANKLINE>
    """
    chosen, checked = check_measure(measure), Options.of("leaderboard", options)
    check_confidence(confidence)
    report_progress = check_progress(progress)
    given = _check_collections(collections)
    units = _find_units(list(given), groups)
    systems = list(dict.fromkeys(name for _, runs in given.values() for name in runs))
    found, done = [], 0
    total = sum(len(runs) for _, runs in given.values())
    for name, (qrels, runs) in given.items():
        measured = []
        with prefix_errors(f"Collection '{name}'"):
            for system in measure_systems(as_qrels(qrels), runs, [chosen], checked):
                measured.append(system)
                done += 1
                report_progress(done, total)
            found.append(_side_by_side(name, measured, systems, chosen))
    result = Leaderboard(chosen, found, systems, units, confidence=confidence, seed=checked.seed)
    warn_of_cuts(result.cut_note)
    return result


def check_measure(measure: MeasureLike | Iterable[MeasureLike]) -> Measure:
    """The measure of a leaderboard; an error if there are several, or if it has no mean over queries."""
    chosen = resolve_measures(measure)
    if len(chosen) > 1:
        raise MeasureError(f"A leaderboard has one measure, not {len(chosen)}: make one for each.")
    if chosen[0].aggregation is not MEAN:
        raise MeasureError(f"{chosen[0]} is not a mean over queries, so collections have no mean of it. Use another.")
    return chosen[0]


def _check_collections(collections: Collections) -> dict[str, tuple[QrelsLike, dict[str, RunLike]]]:
    """The collections by name, each without the runs that are missing."""
    shape = "{collection: (qrels, {system: run})}"
    if not isinstance(collections, Mapping) or not collections:
        raise InputError(f"Give the collections as {shape}, one or more.")
    found, absent = {}, dict[str, None]()
    for name, one in by_name(collections, "collection").items():
        if not (isinstance(one, Sequence) and len(one) == 2 and isinstance(one[1], Mapping)):
            raise InputError(f"Collection '{name}' is not a pair (qrels, runs). Give the collections as {shape}.")
        runs = by_name(one[1], "system")
        absent |= dict.fromkeys(runs)
        found[name] = (one[0], {system: run for system, run in runs.items() if run is not None})
        if not found[name][1]:
            raise InputError(f"Collection '{name}' has no run. Leave it out, or give it runs.")
    systems = {system for _, runs in found.values() for system in runs}
    if without := [system for system in absent if system not in systems]:
        raise InputError(f"No collection has a run of {list_examples(without)}. Leave it out, or give its runs.")
    if len(systems) < 2:
        raise InputError(f"A leaderboard has two systems or more; there is only {list_examples(systems)}.")
    return found


def _find_units(names: Sequence[str], groups: Mapping[str, str | Iterable[str]] | None) -> dict[str, tuple[str, ...]]:
    """The groups and the collections without one, each with its collections.

    >>> _find_units(["cqa-english", "nq", "cqa-gis"], {"cqa": "cqa-*"})
    {'cqa': ('cqa-english', 'cqa-gis'), 'nq': ('nq',)}
    """
    shape = "Give the groups as {group: names of collections}."
    if groups is not None and not isinstance(groups, Mapping):
        raise InputError(shape)
    group_of: dict[str, str] = {}
    for group, given in (groups or {}).items():
        patterns = [given] if isinstance(given, str) else given
        if not isinstance(patterns, Iterable) or not (patterns := list(patterns)):
            raise InputError(f"Group '{group}' has no collection. {shape}")
        for pattern in patterns:
            pattern = identifier(pattern, "collection")
            parts = [name for name in names if name == pattern or (pattern not in names and fnmatchcase(name, pattern))]
            if not parts:
                raise InputError(f"Group '{group}': there is no collection '{pattern}', but {list_examples(names, 5)}.")
            for name in parts:
                if group_of.setdefault(name, group) != group:
                    raise InputError(f"Collection '{name}' is in two groups, '{group_of[name]}' and '{group}'.")
    units: dict[str, tuple[str, ...]] = {}
    for name in names:
        unit = identifier(group_of.get(name, name), "group")
        if name not in group_of and unit in group_of.values():
            raise InputError(f"A group and a collection outside it are called '{unit}'. Rename the group.")
        units[unit] = (*units.get(unit, ()), name)
    return units


def _side_by_side(
    name: str, measured: Sequence[System], systems: Sequence[str], measure: Measure
) -> MeasuredCollection:
    """One collection: a column for each system, NaN for those that lack it."""
    aligned, places = align(measured, measure), [systems.index(system.name) for system in measured]

    def spread(values: Floats) -> Floats:
        whole = np.full((*values.shape[:-1], len(systems)), np.nan)
        whole[..., places] = values
        return whole

    notes: dict[bool, dict[str, tuple[str, ...]]] = {False: {}, True: {}}
    for in_shell, some in notes.items():
        with spelled_for_shell(in_shell):
            for system in measured:
                if not in_shell or system.name in notes[False]:  # most runs have none
                    some |= {system.name: own} if (own := system.report.other_notes) else {}
    n = len(aligned.queries)
    return MeasuredCollection(
        name,
        n,
        len(aligned.kept),
        spread(aligned.expected),
        spread(sum_over_queries(aligned.minimum) / n),
        spread(sum_over_queries(aligned.maximum) / n),
        tuple(system.name for system in measured if system.report.is_cut),
        notes,
    )
