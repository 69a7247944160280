"""The table of a comparison for a paper: a row for each system, a column for each measure, marks of significance.

The highest value of a column is bold, and ↑ marks values that another order of ties may make the highest. A dagger says
that a value is shown to be higher than that of a named baseline, and an arrow before it that the value is lower. A sign
stands in brackets if not every order of ties puts the same system ahead.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from tiewise.analysis.incomplete_runs import caption_notes
from tiewise.analysis.simultaneous import level
from tiewise.errors import InputError
from tiewise.metrics.definition import Measure
from tiewise.results.estimates import format_statistic, is_wide, shows_ties
from tiewise.results.model import BEST, CUT, OPEN, Cell, Section, Table, columns_of
from tiewise.results.wording import NumberFormat, capitalize_first, count_noun, join_names, list_examples

if TYPE_CHECKING:
    from tiewise.analysis.comparison.result import Compared

Intervals = Literal["ties", "queries"]
BRACKETS: dict[Intervals, str] = {
    "ties": "In square brackets: lowest and highest value over the orders of ties, where they differ",
    "queries": "In square brackets: 95% interval over queries",
}

SIGNS = "†‡§¶"  # one for each baseline
LOWER = "↓"  # before the sign of a baseline


def paper_section(
    compared: Compared, baselines: str | Sequence[str] | None, intervals: Intervals | None, numbers: NumberFormat
) -> Section:
    """The table, with its caption as title and notes.

    Without `baselines` it is the one of the comparison, or the first of two systems; else there are no marks.
    """
    signs = dict(zip(_check_baselines(compared, baselines), SIGNS, strict=False))
    if intervals not in (None, *BRACKETS):
        raise InputError(f"intervals={intervals!r} is not possible. Use 'ties', 'queries' or None.")
    columns = [_column(compared, measure, signs, intervals, numbers) for measure in compared.measures]
    rows = [(name, *(column[name] for column in columns)) for name in columns[0]]
    names = join_names([measure.name for measure in compared.measures], limit=len(compared.measures))
    title = (
        f"{names} of {len(rows)} runs, {count_noun(compared.queries, 'query', 'queries')}, expected over all orders "
        "of ties"
    )
    marks = "".join(cell.mark for column in columns for cell in column.values())
    legend = [f"Bold: highest{f'; {OPEN} may be highest in another order of ties' if OPEN in marks else ''}"]
    legend += [*_explain_signs(compared, signs, marks), *([BRACKETS[intervals]] if intervals else [])]
    notes = (*(f"{one}." for one in legend), *caption_notes(compared.reports))
    heads = columns_of(["run"], [measure.name for measure in compared.measures])
    return Section([Table(heads, rows, notes=notes)], title, compared.notes)


def _column(
    compared: Compared, measure: Measure, signs: dict[str, str], intervals: Intervals | None, numbers: NumberFormat
) -> dict[str, Cell]:
    """The values of a measure by system, with marks and intervals."""
    cells = {}
    for row in compared.ranking(measure):
        name, detail = row["system"], ""
        mean = compared.estimate(name, measure)
        if intervals == "queries":
            ci = compared.estimates(name, measure).mean().ci
            detail = numbers.interval(*ci) if ci and numbers.differ(*ci) else ""
        elif intervals == "ties" and shows_ties(mean, numbers):
            detail = f"[{', '.join(format_statistic(mean, end, numbers.number) for end in ('minimum', 'maximum'))}]"
        mark = BEST if row["rank"] == 1 else OPEN if row["rank_best"] == 1 else ""
        mark += _signs(compared, name, measure, signs) + CUT * is_wide(mean.open_cut)
        cells[name] = Cell(format_statistic(mean, "expected", numbers.number), detail, mark)
    return cells


def _signs(compared: Compared, name: str, measure: Measure, signs: dict[str, str]) -> str:
    """The signs of baselines from which a system differs significantly; in brackets if tie order can change that."""
    found = ""
    for baseline, sign in signs.items():
        pair = compared.pair(name, baseline, measure) if name != baseline else None
        if pair is not None and pair.is_shown:
            shown = sign if (pair.difference.expected or 0.0) > 0 else f"{LOWER}{sign}"
            found += shown if pair.certain else f"({shown})"
    return found


def _explain_signs(compared: Compared, signs: dict[str, str], marks: str) -> list[str]:
    """What the signs among some marks mean, by which test; without any, that nothing is shown."""
    if not signs:
        return []
    without_lower = re.sub(f"{LOWER}.", "", marks)
    found = [f"{sign} higher than {baseline}" for baseline, sign in signs.items() if sign in without_lower]
    found += [f"{LOWER}{sign} lower than {baseline}" for baseline, sign in signs.items() if f"{LOWER}{sign}" in marks]
    none = f"no difference from {join_names(list(signs), 'or', limit=len(signs))} is shown"
    one_pair = len(compared.systems) == 2 and len(compared.measures) == 1
    test = {"max-t": "paired t" if one_pair else "max-t", "tukey": "randomised Tukey HSD"}[compared.test]
    at_once = "" if one_pair else " over all rows" if compared.baseline else " over all pairs"
    brackets = ", in brackets if not in every order" if "(" in marks else ""
    significant = capitalize_first(", ".join(found) or none)
    return [f"{significant} ({test}{at_once}, p < {level(compared.confidence):g}){brackets}"]


def _check_baselines(compared: Compared, baselines: str | Sequence[str] | None) -> list[str]:
    if baselines is None:
        first = compared.systems[0] if len(compared.systems) == 2 else None
        return [one for one in (compared.baseline or first,) if one is not None]
    given = [baselines] if isinstance(baselines, str) else list(baselines)
    unknown = [name for name in given if name not in compared.systems]
    if unknown:
        raise InputError(
            f"The baseline '{unknown[0]}' is not one of the systems: {list_examples(compared.systems, 5)}."
        )
    if len(given) > len(SIGNS):
        raise InputError(f"There are signs for {len(SIGNS)} baselines, and {len(given)} were given.")
    if compared.baseline is not None and set(given) - {compared.baseline}:
        raise InputError(
            f"p-values are those of differences from '{compared.baseline}'. To mark others, compare without baseline=."
        )
    return given
