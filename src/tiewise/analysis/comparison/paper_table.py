"""The table of a comparison for a paper: a row for each system, a column for each measure, marks of significance.

The highest value of a column is bold, and ↑ marks values that another order of ties may make the highest. A dagger says
that a value is significantly higher than that of a named baseline, over queries, and an arrow before it that the value
is significantly lower. A sign stands in brackets if not every order of ties puts the same system ahead.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from tiewise.analysis.comparison.answers import ALPHA
from tiewise.analysis.comparison.sections import TESTS
from tiewise.analysis.incomplete_runs import caption_notes
from tiewise.analysis.significance import query_intervals
from tiewise.errors import InputError
from tiewise.metrics.definition import Measure
from tiewise.tables.estimates import explain_cut_marks, format_range, format_statistic, is_wide
from tiewise.tables.model import BEST, CUT, OPEN, Cell, Section, Table, columns_of
from tiewise.tables.wording import (
    NumberFormat,
    capitalize_first,
    count_noun,
    format_percent,
    join_names,
    list_examples,
)

if TYPE_CHECKING:
    from tiewise.analysis.comparison.result import Compared

__all__ = ["Intervals", "paper_section"]

Intervals = Literal["ties", "queries"]

SIGNS = "†‡§¶"  # one for each baseline
LOWER = "↓"  # before the sign of a baseline
NUMBERS = NumberFormat(3, leading_zero=False)


def paper_section(
    compared: Compared,
    baselines: Sequence[str] | None = None,
    intervals: Intervals | None = None,
    numbers: NumberFormat = NUMBERS,
) -> Section:
    """The table, with its caption as title and notes.

    Without `baselines` it is the one of the comparison, or the first of two systems; else there are no marks.
    """
    signs = dict(zip(_check_baselines(compared, baselines), SIGNS, strict=False))
    if intervals not in (None, "ties", "queries"):
        raise InputError(f"intervals={intervals!r} is not possible. Use 'ties', 'queries' or None.")
    systems = [row["system"] for row in compared.leaderboard(compared.measures[0])]
    columns = [_column(compared, systems, measure, signs, intervals, numbers) for measure in compared.measures]
    rows = [(name, *cells) for name, *cells in zip(systems, *columns, strict=True)]
    names = join_names([measure.name for measure in compared.measures], limit=len(compared.measures))
    title = (
        f"{names} of {len(systems)} runs over {count_noun(compared.queries, 'query', 'queries')}: means over all "
        "orders of tied documents"
    )
    marks = "".join(cell.mark for column in columns for cell in column)
    is_open = f"; {OPEN} may be the highest in another order of ties" if OPEN in marks else ""
    legend = [f"Highest in bold{is_open}", *_explain_signs(compared, signs, marks, len(columns))]
    legend += _explain_intervals(compared, intervals)
    notes = (*(f"{one}." for one in legend), *caption_notes(compared.reports))
    heads = columns_of(["run"], [measure.name for measure in compared.measures])
    return Section([explain_cut_marks(Table(heads, rows, notes=notes))], title, compared.notes)


def _column(
    compared: Compared,
    systems: Sequence[str],
    measure: Measure,
    signs: dict[str, str],
    intervals: Intervals | None,
    numbers: NumberFormat,
) -> list[Cell]:
    """The values of a measure, with marks and intervals."""
    means = [compared.estimate(name, measure) for name in systems]
    ranks = {row["system"]: row for row in compared.leaderboard(measure)}
    details = [""] * len(systems)
    if intervals == "queries":
        each = [compared.estimates(name, measure) for name in systems]
        ends = query_intervals(each, compared.confidence, resamples=compared.resamples, seed=compared.seed)
        details = [numbers.interval(*pair) if pair and numbers.differ(*pair) else "" for pair in ends]
    elif intervals == "ties":
        details = [format_range(mean, numbers) if mean.tied else "" for mean in means]
    return [
        Cell(
            format_statistic(mean, "expected", numbers.number),
            detail,
            _rank_mark(ranks[name]) + _signs(compared, name, measure, signs) + CUT * is_wide(mean.open_cut),
        )
        for name, mean, detail in zip(systems, means, details, strict=True)
    ]


def _rank_mark(row: dict[str, Any]) -> str:
    """The mark of the highest value, or of one that another order of ties may make the highest."""
    return BEST if row["rank"] == 1 else OPEN if row["rank_best"] == 1 else ""


def _signs(compared: Compared, name: str, measure: Measure, signs: dict[str, str]) -> str:
    """The signs of baselines from which a system differs significantly; in brackets if tie order can change that."""
    found = ""
    for baseline, sign in signs.items():
        pair = compared.pair(name, baseline, measure) if name != baseline else None
        if pair is not None and pair.answers.other_queries == "yes":
            shown = sign if (pair.difference.expected or 0.0) > 0 else f"{LOWER}{sign}"
            found += shown if pair.certain else f"({shown})"
    return found


def _explain_signs(compared: Compared, signs: dict[str, str], marks: str, n_measures: int) -> list[str]:
    """What the signs among some marks mean, by which test; without any, that nothing is significant."""
    if not signs:
        return []
    without_lower = re.sub(f"{LOWER}.", "", marks)
    found = {
        "higher": [f"{sign} {baseline}" for baseline, sign in signs.items() if sign in without_lower],
        "lower": [f"{LOWER}{sign} {baseline}" for baseline, sign in signs.items() if f"{LOWER}{sign}" in marks],
    }
    words = [f"significantly {side} than {'; '.join(names)}" for side, names in found.items() if names]
    none = f"no difference from {join_names(list(signs), 'or', limit=len(signs))} is significant"
    family = f"comparisons with {compared.baseline}" if compared.baseline else "pairs"
    n_tests = (len(compared.systems) - 1 if compared.baseline else math.comb(len(compared.systems), 2)) * n_measures
    corrected = f", Holm-corrected for all {family} and measures" if n_tests > 1 else ""
    test = TESTS[compared.test].removeprefix("a ")
    significant = capitalize_first(", ".join(words) or none)
    explained = [f"{significant} ({test} over queries, p < {ALPHA:g}{corrected})"]
    if "(" in marks:
        explained.append("A sign in brackets: not every order of ties has the same run ahead")
    return explained


def _explain_intervals(compared: Compared, intervals: Intervals | None) -> list[str]:
    if intervals is None:
        return []
    level = format_percent(compared.confidence).replace(".0%", "%")
    return [
        "In brackets the lowest and the highest value over the orders of ties"
        if intervals == "ties"
        else f"In brackets the {level} bootstrap interval over queries"
    ]


def _check_baselines(compared: Compared, baselines: Sequence[str] | None) -> list[str]:
    if baselines is None:
        first = compared.systems[0] if len(compared.systems) == 2 else None
        return [one for one in (compared.baseline or first,) if one is not None]
    given = [baselines] if isinstance(baselines, str) else list(baselines)
    unknown = [name for name in given if name not in compared.systems]
    if unknown:
        raise InputError(f"The baseline '{unknown[0]}' is none of the systems: {list_examples(compared.systems, 5)}.")
    if len(given) > len(SIGNS):
        raise InputError(f"There are signs for {len(SIGNS)} baselines, and {len(given)} were given.")
    if compared.baseline is not None and set(given) - {compared.baseline}:
        raise InputError(
            f"p-values are corrected for comparisons with '{compared.baseline}' only. To mark others, compare without "
            "baseline=."
        )
    return given
