"""`Ranking`: items in order, some of them tied. A ranking is a sequence of tie groups, best first.

Write it ``"a (b c) d"``, ``["a", {"b", "c"}, "d"]`` or ``[["a"], ["b", "c"], ["d"]]``, or make it from scores.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

import numpy as np

from tiewise.caching import cached_property
from tiewise.data.columns import Codes, Floats
from tiewise.data.runs import Run
from tiewise.errors import InputError

__all__ = [
    "Edge",
    "Gains",
    "RankGroups",
    "Ranking",
    "RankingLike",
    "as_ranking",
    "check_depth",
    "check_gains",
    "rank_rows",
]

Item = Hashable
RankingLike = str | Iterable[Item | Collection[Item]]  #: anything that `Ranking` takes; a Ranking is one too
Gains = Mapping[Any, float]  #: {item: gain}; items without a gain are unjudged
Edge = Literal["extend", "shrink", "error"]  #: what to do if a depth ends inside a tie group


def check_depth(depth: object, name: str = "depth") -> None:
    """Require an integer of at least 1, which NumPy can hold."""
    if isinstance(depth, bool) or not isinstance(depth, (int, np.integer)) or not 1 <= depth <= 2**53:
        raise InputError(f"{name}={depth!r} is not possible: it must be a whole number, 1 or more.")


def check_gains(gains: object, gmax: float = math.inf) -> None:
    """Require ``{item: gain}`` with finite gains from 0 to `gmax`."""
    if not isinstance(gains, Mapping):
        raise InputError(
            f"A {type(gains).__name__} holds no gains. Give {{item: gain}}: 1 for a relevant item, 0 for an item that "
            "is not relevant. Items without a gain are unjudged."
        )
    for item, gain in gains.items():
        if not 0 <= gain <= gmax or math.isinf(gain):
            limits = "0 or more" if math.isinf(gmax) else f"from 0 to gmax={gmax:g}. Give the right gmax"
            raise InputError(f"The gain {gain!r} of {item!r} is not possible: gains are numbers {limits}.")


@dataclass(frozen=True, eq=False)
class RankGroups:
    """The tie groups of a ranking as arrays, without the names of the items."""

    group: Codes  # (n_items,): the group of each item, ascending from 0
    size: Codes  # (n_groups,): items in the group
    start: Codes  # (n_groups,): items before the group

    @staticmethod
    def from_group(group: Codes) -> RankGroups:
        """From the group of each item, ascending from 0."""
        size = np.bincount(group) if len(group) else np.zeros(0, dtype=np.int64)
        return RankGroups(group, size, np.cumsum(size) - size)

    def __len__(self) -> int:
        """The number of items."""
        return len(self.group)

    @cached_property
    def item_size(self) -> Codes:
        """The size of each item's group, (n_items,)."""
        return self.size[self.group]

    @cached_property
    def item_start(self) -> Codes:
        """The number of items before each item's group, (n_items,)."""
        return self.start[self.group]

    def inclusion(self, depth: int | None) -> Floats:
        """The probability of each item to be among the first `depth`, or 1 if it is None, (n_items,)."""
        if depth is None:
            return np.ones(len(self))
        return np.clip((depth - self.item_start) / self.item_size, 0.0, 1.0)

    def head_length(self, depth: int, edge: str, where: str = "") -> int:
        """How many items belong to the first `depth` if no tie group may be split."""
        if edge not in get_args(Edge):
            raise InputError(f"edge={edge!r} is not possible. Use {', '.join(map(repr, get_args(Edge)))}.")
        check_depth(depth)
        if depth >= len(self) or self.group[depth] != self.group[depth - 1]:
            return min(depth, len(self))
        start, size = self.item_start[depth], self.item_size[depth]
        if edge == "error":
            raise InputError(
                f"Depth {depth} ends inside a group of {size} tied items{where}. Use edge='extend' (--edge extend) to "
                "include the whole group, or 'shrink' to leave it out."
            )
        return int(start + size if edge == "extend" else start)


class Ranking(Sequence[tuple[Item, ...]]):
    """Tie groups of items, best first. Each item occurs once. A ranking may be empty.

    >>> Ranking("a (b c) d")
    a (b c) d
    >>> Ranking.from_scores({"a": 3.0, "b": 1.0, "c": 1.0})
    a (b c)
    """

    def __init__(self, ranking: RankingLike):
        if isinstance(ranking, str):
            groups = _parse(ranking)
        elif isinstance(ranking, (set, frozenset, Mapping)) or not isinstance(ranking, Iterable):
            raise InputError(
                f"A {type(ranking).__name__} is not a ranking: it has no order. Write ['a', {{'b', 'c'}}, 'd'], or "
                "make the ranking from scores with Ranking.from_scores()."
            )
        else:
            groups = [tuple(g) if isinstance(g, (list, tuple, set, frozenset)) else (cast(Item, g),) for g in ranking]
        self._groups = tuple(groups)
        seen: set[Item] = set()
        for number, group in enumerate(self._groups, start=1):
            if not group:
                raise InputError(f"Group {number} of the ranking is empty. Leave it out.")
            for item in group:
                if isinstance(item, (list, set, dict)):
                    raise InputError(
                        f"Group {number} of the ranking holds a {type(item).__name__}. Groups do not nest."
                    )
                if item in seen:
                    raise InputError(f"The item {item!r} occurs twice in the ranking. Keep one of them.")
                seen.add(item)

    @classmethod
    def from_scores(cls, scores: Mapping[Any, float], depth: int | None = None, edge: Edge = "error") -> Ranking:
        """Items by descending score; equal scores are tied. `depth` keeps the first items: see `cut`."""
        run = Run.from_dict({"": scores})
        by_name = {str(item): item for item in scores}
        return cls([[by_name[str(name)] for name in group] for group in cls.from_run(run, "", depth, edge)])

    @classmethod
    def from_run(cls, run: Run, query: str, depth: int | None = None, edge: Edge = "error") -> Ranking:
        """The ranking of one query of a run; equal scores are tied. `depth` keeps the first items: see `cut`."""
        if not isinstance(run, Run):
            raise InputError(f"A {type(run).__name__} is not a Run. Read a file with tw.read_run(path) first.")
        if query not in run.query_index:
            raise InputError(f"The run has no query {query!r}.")
        rows, group = rank_rows(run, run.query_index[query])
        borders = np.flatnonzero(np.diff(group)) + 1
        ranking = cls([run.ids(tied) for tied in np.split(rows, borders) if len(tied)])
        return ranking if depth is None else ranking.cut(depth, edge)

    def cut(self, depth: int, edge: Edge = "error") -> Ranking:
        """The first `depth` items. If the depth ends inside a tie group, `edge` extends, shrinks, or raises an error.

        `rbp`, `rbr`, `precision_at` and `recall_at` do not need this choice: they take a depth and are exact inside
        tie groups.
        """
        kept = self.groups.head_length(depth, edge)
        return Ranking(self[: int(np.searchsorted(self.groups.start, kept))])

    # -- as arrays over the items ------------------------------------------------------------------------------

    @cached_property
    def items(self) -> tuple[Item, ...]:
        """All items, group by group."""
        return tuple(item for group in self._groups for item in group)

    @cached_property
    def position(self) -> dict[Item, int]:
        """The position of each item in `items`, from 0."""
        return {item: position for position, item in enumerate(self.items)}

    @cached_property
    def groups(self) -> RankGroups:
        """The tie groups as arrays over `items`."""
        sizes = [len(group) for group in self._groups]
        return RankGroups.from_group(np.repeat(np.arange(len(sizes)), sizes))

    @property
    def tied(self) -> bool:
        """Whether any items are tied."""
        return len(self._groups) < len(self.items)

    def __len__(self) -> int:
        return len(self._groups)

    def __getitem__(self, index: Any) -> Any:
        return self._groups[index]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Ranking):
            return NotImplemented
        return list(map(frozenset, self)) == list(map(frozenset, other))

    def __hash__(self) -> int:
        return hash(tuple(map(frozenset, self)))

    def __repr__(self) -> str:
        return " ".join(f"({' '.join(map(str, g))})" if len(g) > 1 else str(g[0]) for g in self) or "(empty)"


def as_ranking(ranking: RankingLike) -> Ranking:
    """The ranking itself, or a new one in any form that `Ranking` takes."""
    return ranking if isinstance(ranking, Ranking) else Ranking(ranking)


def rank_rows(run: Run, query: int) -> tuple[Codes, Codes]:
    """The rows of one query of a run, best first, and the tie group of each."""
    rows = np.arange(run.offsets[query], run.offsets[query + 1])
    rows = rows[np.argsort(-run.score[rows], kind="stable")]
    score = run.score[rows]
    group = np.zeros(len(rows), dtype=np.int64)
    group[1:] = np.cumsum(score[1:] != score[:-1])
    return rows, group


def _parse(text: str) -> list[tuple[Item, ...]]:
    """The groups of a ranking such as ``a (b c) d``."""
    groups: list[tuple[Item, ...]] = []
    for part in re.findall(r"\([^()]*\)|[^\s()]+|[()]", text):
        if part in ("(", ")"):
            raise InputError(f"A bracket in {text!r} has no partner, or brackets nest. Write 'a (b c) d'.")
        groups.append(tuple(part[1:-1].split()) if part.startswith("(") else (part,))
    return groups
