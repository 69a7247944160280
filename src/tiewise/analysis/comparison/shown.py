"""What a notebook shows of a comparison: a line for each measure of two systems, a leaderboard of more, and words.

The bars of one table have common ends, so that they can be compared; in those of differences a faint line stands at 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tiewise.analysis.comparison.pair import Duel
from tiewise.analysis.significance import ATOL as DUST
from tiewise.tables import html as notebook
from tiewise.tables.records import Rows

if TYPE_CHECKING:
    from tiewise.analysis.comparison.comparing import Compared

__all__ = ["of_board", "of_duel", "of_two"]

OF_DIFFERENCES = "Bar: lowest to highest difference over the orders of ties; dark line: expected; faint line: 0."
OF_VALUES = "Bar: lowest to highest over the orders of ties; line: expected{}."
OF_RANKS = "By ties, by queries: the ranks that orders of ties allow, and the interval over resamples of the queries."


def of_duel(duel: Duel) -> str:
    """One pair in one measure."""
    notes = [OF_DIFFERENCES] if duel.difference.tied else []
    return notebook.block(f"{duel.a} against {duel.b}", _differences([duel], {}), duel.verdict, notes=notes)


def of_two(found: Compared) -> str:
    """Two systems in all measures."""
    duels = list(found.pairs())
    a, b = duels[0].a, duels[0].b
    means = {name: [found.estimate(name, duel.measure).expected for duel in duels] for name in (a, b)}
    title = f"{a} against {b}, {_queries(found)}"
    explained = [OF_DIFFERENCES] if any(duel.difference.tied for duel in duels) else []
    verdicts = (duel.verdict for duel in duels)
    return notebook.block(title, _differences(duels, means), *verdicts, notes=[*explained, *found.notes])


def of_board(found: Compared) -> str:
    """More systems, a leaderboard for each measure."""
    parts: list[str] = []
    boards = [found.leaderboard(measure) for measure in found.measures]
    for measure, board in zip(found.measures, boards, strict=True):
        parts += [measure.name, _leaderboard(board)]
    tied = any(map(_moved, (row for board in boards for row in board)))
    cross = "" if found.oblivious is None else f"; cross: order of {found.oblivious}"
    explained = [OF_VALUES.format(cross)] if tied else []
    title = f"{len(found.systems):,} systems, {_queries(found)}"
    return notebook.block(title, *parts, notes=[*explained, OF_RANKS, *found.notes])


def _queries(found: Compared) -> str:
    return f"{found.queries:,} {'query' if found.queries == 1 else 'queries'}"


def _differences(duels: Sequence[Duel], means: dict[str, list[Any]]) -> notebook.Markup:
    """A line for each pair, with what is known of its systems between measure and difference."""
    low, high = (_furthest(duels, sign) for sign in (-1, 1))
    ranges = [(duel.difference.minimum, duel.difference.expected, duel.difference.maximum) for duel in duels]
    first = duels[0].a
    columns: dict[str, list[Any]] = {"measure": [duel.measure for duel in duels], **means}
    columns["difference"] = [notebook.signed(duel.difference.expected) for duel in duels]
    if any(duel.difference.tied for duel in duels):
        columns["over ties"] = [_interval(duel.difference.minimum, duel.difference.maximum) for duel in duels]
        columns[""] = [notebook.bar(*three, ends=(low, high)) for three in ranges]
        columns[f"{first} ahead"] = [duel.often for duel in duels]
    columns["p"] = [_p(duel.p_value) for duel in duels]
    if any(duel.p_holm not in (None, duel.p_value) for duel in duels):
        columns["p (Holm)"] = [None if duel.p_holm is None else _p(duel.p_holm) for duel in duels]
    columns["interval over queries"] = [None if duel.ci is None else _interval(*duel.ci) for duel in duels]
    return notebook.table(list(columns), zip(*columns.values(), strict=True), total=len(duels))


def _leaderboard(board: Rows) -> notebook.Markup:
    ends = min(board["minimum"]), max(board["maximum"])
    columns: dict[str, list[Any]] = {name: board[name] for name in ("rank", "system", "expected")}
    if any(map(_moved, board)):
        columns["over ties"] = [_interval(row["minimum"], row["maximum"]) if _moved(row) else "" for row in board]
        columns[""] = [_bar(row, ends) for row in board]
    columns["by ties"] = [_ranks(row["rank_best"], row["rank_worst"]) for row in board]
    columns["by queries"] = [_ranks(row["rank_low"], row["rank_high"]) for row in board]
    return notebook.table(list(columns), zip(*columns.values(), strict=True), total=len(board))


def _bar(row: dict[str, Any], ends: tuple[float, float]) -> notebook.Markup:
    numbers = (row[name] for name in ("minimum", "expected", "maximum", "oblivious"))
    return notebook.bar(*numbers, ends=ends) if _moved(row) else notebook.Markup("")


def _moved(row: dict[str, Any]) -> bool:
    return bool(row["maximum"] > row["minimum"] + DUST)


def _furthest(duels: Sequence[Duel], sign: int) -> float:
    """How far differences reach to one side of 0, so that bars can be compared."""
    ends = [(duel.difference.minimum or 0.0, duel.difference.maximum or 0.0) for duel in duels]
    return sign * max(0.0, *(sign * end for pair in ends for end in pair), 1e-9)


def _interval(low: float | None, high: float | None) -> str:
    return notebook.NONE if low is None or high is None else f"[{low:.4f}, {high:.4f}]"


def _ranks(low: int, high: int) -> str:
    return str(low) if low == high else f"{low}–{high}"


def _p(value: float) -> str:
    return f"{value:.3f}" if value >= 0.001 else "<0.001"
