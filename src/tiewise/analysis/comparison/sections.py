"""What people see of a comparison: a row for each measure of two systems, or a leaderboard, with the verdicts.

The bars of one table have common ends, so that they can be compared; in bars of differences a faint line stands at 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tiewise.analysis.comparison.pair import Duel
from tiewise.analysis.significance import ATOL
from tiewise.tables.model import Bar, Section, Table
from tiewise.tables.records import Rows
from tiewise.tables.wording import PLAIN, count_noun, format_ranks

if TYPE_CHECKING:
    from tiewise.analysis.comparison.comparing import Compared

__all__ = ["comparison_records", "comparison_section", "pair_section"]

DIFFERENCES_LEGEND = "Bar: lowest to highest difference over the orders of ties; dark line: expected; faint line: 0."
VALUES_LEGEND = "Bar: lowest to highest over the orders of ties; line: expected{}."
RANKS_LEGEND = (
    "By ties, by queries: the ranks that orders of ties allow, and the interval over resamples of the queries."
)


def pair_section(pair: Duel) -> Section:
    """Two systems in one measure."""
    return Section([_differences([pair]), pair.verdict], f"{pair.a} against {pair.b}", _differences_legend([pair]))


def comparison_section(compared: Compared) -> Section:
    """Two systems in all measures, or a leaderboard of more systems for each measure."""
    queries = count_noun(compared.queries, "query", "queries")
    if len(compared.systems) == 2:
        pairs = list(compared.pairs())
        names = compared.systems
        means = {name: [compared.estimate(name, pair.measure).expected for pair in pairs] for name in names}
        return Section(
            [_differences(pairs, means), *(pair.verdict for pair in pairs)],
            f"{' against '.join(names)}, {queries}",
            [*_differences_legend(pairs), *compared.notes],
        )
    boards = {measure.name: compared.leaderboard(measure) for measure in compared.measures}
    cross = "" if compared.oblivious is None else f"; cross: order of {compared.oblivious}"
    is_tied = any(_is_tied(row) for board in boards.values() for row in board)
    return Section(
        [_leaderboard(name, board) for name, board in boards.items()],
        f"{len(compared.systems):,} systems, {queries}",
        [*([VALUES_LEGEND.format(cross)] if is_tied else []), RANKS_LEGEND, *compared.notes],
    )


def comparison_records(compared: Compared) -> Table:
    """The leaderboards of all measures in one table, for programs."""
    rows = [{"measure": measure.name} | row for measure in compared.measures for row in compared.leaderboard(measure)]
    return Table.of_records(rows[0], rows)


def _differences(pairs: Sequence[Duel], means: dict[str, list[Any]] | None = None) -> Table:
    """A row for each pair; the means of its systems stand between measure and difference."""
    gaps = [pair.difference for pair in pairs]
    ends = (_farthest(pairs, -1), _farthest(pairs, 1))
    columns: dict[str, list[Any]] = {"measure": [pair.measure for pair in pairs], **(means or {})}
    columns["difference"] = [gap.expected for gap in gaps]
    if any(gap.tied for gap in gaps):
        columns["over ties"] = [PLAIN.interval(gap.minimum, gap.maximum) for gap in gaps]
        columns[""] = [Bar(gap.minimum, gap.expected, gap.maximum, ends=ends) for gap in gaps]
        columns[f"{pairs[0].a} ahead"] = [pair.often for pair in pairs]
    columns["p"] = [pair.p_value for pair in pairs]
    if any(pair.p_holm not in (None, pair.p_value) for pair in pairs):
        columns["p (Holm)"] = [pair.p_holm for pair in pairs]
    columns["interval over queries"] = [None if pair.ci is None else PLAIN.interval(*pair.ci) for pair in pairs]
    return Table.of_columns(columns, {"difference": PLAIN.signed, "p": PLAIN.p_value, "p (Holm)": PLAIN.p_value})


def _differences_legend(pairs: Sequence[Duel]) -> list[str]:
    return [DIFFERENCES_LEGEND] if any(pair.difference.tied for pair in pairs) else []


def _leaderboard(measure: str, board: Rows) -> Table:
    ends = min(board["minimum"]), max(board["maximum"])
    columns: dict[str, list[Any]] = {name: board[name] for name in ("rank", "system", "expected")}
    if any(map(_is_tied, board)):
        tied = [row if _is_tied(row) else None for row in board]
        columns["over ties"] = [PLAIN.interval(row["minimum"], row["maximum"]) if row else "" for row in tied]
        columns[""] = [_bar(row, ends) if row else "" for row in tied]
    columns["by ties"] = [format_ranks(row["rank_best"], row["rank_worst"]) for row in board]
    columns["by queries"] = [format_ranks(row["rank_low"], row["rank_high"]) for row in board]
    return Table.of_columns(columns, title=measure)


def _bar(row: dict[str, Any], ends: tuple[float, float]) -> Bar:
    return Bar(row["minimum"], row["expected"], row["maximum"], row["oblivious"], ends)


def _is_tied(row: dict[str, Any]) -> bool:
    return bool(row["maximum"] > row["minimum"] + ATOL)


def _farthest(pairs: Sequence[Duel], sign: int) -> float:
    """How far differences reach to one side of 0."""
    ends = [end or 0.0 for pair in pairs for end in (pair.difference.minimum, pair.difference.maximum)]
    return sign * max(0.0, *(sign * end for end in ends), 1e-9)
