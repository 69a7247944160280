"""`Ranking`: items in order, some of them tied. A ranking is a row of tie groups, best first.

It may be written ``"a (b c) d"``, ``["a", {"b", "c"}, "d"]`` or ``[["a"], ["b", "c"], ["d"]]``, or be taken from
scores.
"""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from tiewise.data.columns import Codes
from tiewise.data.runs import Run
from tiewise.errors import InputError

__all__ = ["Edge", "Groups", "Ranking", "check_depth", "check_gains", "ranked"]

Item = Hashable
Edge = Literal["extend", "shrink", "error"]  #: what to do where a depth ends inside a tie group


def check_depth(depth: object, what: str = "depth") -> None:
    """Refuse what is no number of items from 1 on."""
    if isinstance(depth, bool) or not isinstance(depth, (int, np.integer)) or depth < 1:
        raise InputError(f"{what}={depth!r} is not possible: it is a whole number from 1 on.")


class Groups(NamedTuple):
    """A ranking without its items' names: which group each item is in, and where the groups begin."""

    group: Codes  # (n_items,): ascending, from 0
    sizes: Codes  # (n_groups,)
    starts: Codes  # (n_groups,): items before the group

    @staticmethod
    def of(group: Codes) -> Groups:
        """From the group of each item, ascending from 0."""
        sizes = np.bincount(group) if len(group) else np.zeros(0, dtype=np.int64)
        return Groups(group, sizes, np.cumsum(sizes) - sizes)

    def cut(self, depth: int, edge: str, where: str = "") -> int:
        """How many items the first `depth` are, if that may not end inside a tie group."""
        if edge not in get_args(Edge):
            raise InputError(f"edge={edge!r} is not possible. Use {', '.join(map(repr, get_args(Edge)))}.")
        check_depth(depth)
        if depth >= len(self.group) or self.group[depth] != self.group[depth - 1]:
            return min(depth, len(self.group))
        last = self.group[depth - 1]
        if edge == "error":
            raise InputError(
                f"Depth {depth} ends inside a group of {self.sizes[last]} tied items{where}. Say edge='extend' "
                "(--edge extend) to take the group whole, or 'shrink' to leave it out."
            )
        return int(self.starts[last] + (self.sizes[last] if edge == "extend" else 0))


def check_gains(gains: object, most: float = math.inf) -> None:
    """Refuse what is no ``{item: gain}`` with gains from 0 to `most`."""
    if not isinstance(gains, Mapping):
        raise InputError(
            f"A {type(gains).__name__} holds no gains. Give {{item: gain}}, 1 for what is relevant and 0 for what is "
            "not; items without a gain are unjudged."
        )
    for item, gain in gains.items():
        if not 0 <= gain <= most or math.isinf(gain):
            above = f" … gmax={most:g}. Give the right gmax" if most < math.inf else " on"
            raise InputError(f"The gain {gain!r} of {item!r} is not possible: gains are numbers from 0{above}.")


class Ranking(Sequence[tuple[Item, ...]]):
    """Tie groups of items, best first; no item stands in it twice. It may be empty.

    >>> Ranking("a (b c) d")
    a (b c) d
    >>> Ranking.from_scores({"a": 3.0, "b": 1.0, "c": 1.0})
    a (b c)
    """

    def __init__(self, ranking: Ranking | str | Iterable[Any]):
        if isinstance(ranking, Ranking):
            groups: list[tuple[Item, ...]] = list(ranking)
        elif isinstance(ranking, str):
            groups = _written(ranking)
        elif isinstance(ranking, (set, frozenset, Mapping)) or not isinstance(ranking, Iterable):
            raise InputError(
                f"A {type(ranking).__name__} is no ranking: it has no order. Write ['a', {{'b', 'c'}}, 'd'], or take "
                "the ranking from scores with Ranking.from_scores()."
            )
        else:
            groups = [tuple(g) if isinstance(g, (list, tuple, set, frozenset)) else (g,) for g in ranking]
        self._groups = tuple(groups)
        seen: set[Item] = set()
        for place, group in enumerate(self._groups, start=1):
            if not group:
                raise InputError(f"Group {place} of the ranking is empty. Leave it out.")
            for item in group:
                if isinstance(item, (list, set, dict)):
                    raise InputError(f"Group {place} of the ranking holds a {type(item).__name__}. Groups do not nest.")
                if item in seen:
                    raise InputError(f"The item {item!r} stands twice in the ranking. Keep one of them.")
                seen.add(item)

    @classmethod
    def from_scores(cls, scores: Mapping[Any, float], depth: int | None = None, edge: Edge = "error") -> Ranking:
        """Items by descending score; equal scores are tied. With `depth`, the first ones: see `cut`."""
        run = Run.from_dict({"": scores})
        by_name: dict[Item, Any] = {str(item): item for item in scores}
        return cls([[by_name[name] for name in group] for group in cls.from_run(run, "", depth, edge)])

    @classmethod
    def from_run(cls, run: Run, query: str, depth: int | None = None, edge: Edge = "error") -> Ranking:
        """The ranking of one query of a run; equal scores are tied. With `depth`, the first items: see `cut`."""
        if not isinstance(run, Run):
            raise InputError(f"A {type(run).__name__} is no Run. Read a file with tw.read_run(path) first.")
        place = run.query_index.get(query)
        if place is None:
            raise InputError(f"The run has no query {query!r}.")
        rows, group = ranked(run, place)
        ends = np.flatnonzero(np.diff(group)) + 1
        whole = cls([run.ids(group) for group in np.split(rows, ends) if len(group)])
        return whole if depth is None else whole.cut(depth, edge)

    def cut(self, depth: int, edge: Edge = "error") -> Ranking:
        """The first `depth` items. Where that ends inside a tie group: take it whole, leave it out, or an error.

        `rbp`, `rbr`, `precision_at` and `recall_at` need no such choice: they take a depth and are exact inside ties.
        """
        kept = self.groups.cut(depth, edge)
        return Ranking(self[: int(np.searchsorted(self.groups.starts, kept))])

    # -- as arrays over the items ------------------------------------------------------------------------------

    @cached_property
    def items(self) -> tuple[Item, ...]:
        """All items, group by group."""
        return tuple(item for group in self._groups for item in group)

    @cached_property
    def place(self) -> dict[Item, int]:
        """The place of each item in `items`."""
        return {item: place for place, item in enumerate(self.items)}

    @cached_property
    def groups(self) -> Groups:
        """The groups as arrays, along `items`."""
        sizes = np.array([len(group) for group in self._groups], dtype=np.int64)
        return Groups.of(np.repeat(np.arange(len(sizes)), sizes))

    @property
    def tied(self) -> bool:
        """Whether any items are tied."""
        return len(self._groups) < len(self.items)

    def __len__(self) -> int:
        return len(self._groups)

    def __getitem__(self, place: Any) -> Any:
        return self._groups[place]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Ranking):
            return NotImplemented
        return list(map(frozenset, self)) == list(map(frozenset, other))

    def __hash__(self) -> int:
        return hash(tuple(map(frozenset, self)))

    def __repr__(self) -> str:
        return " ".join(f"({' '.join(map(str, g))})" if len(g) > 1 else str(g[0]) for g in self) or "(empty)"


def ranked(run: Run, place: int) -> tuple[Codes, Codes]:
    """The rows of one list of a run, best first, and the tie group of each."""
    rows = np.arange(run.offsets[place], run.offsets[place + 1])
    rows = rows[np.argsort(-run.score[rows], kind="stable")]
    score = run.score[rows]
    group = np.zeros(len(rows), dtype=np.int64)
    group[1:] = np.cumsum(score[1:] != score[:-1])
    return rows, group


def _written(text: str) -> list[tuple[Item, ...]]:
    groups: list[tuple[Item, ...]] = []
    for part in re.findall(r"\([^()]*\)|[^\s()]+|[()]", text):
        if part in ("(", ")"):
            raise InputError(f"A bracket in {text!r} has no partner, or brackets nest. Write 'a (b c) d'.")
        groups.append(tuple(part[1:-1].split()) if part.startswith("(") else (part,))
    return groups
