"""`Ranking`: items in order, some of them tied. A ranking is a sequence of tie groups, best first.

Write it ``"a (b c) d"``, ``["a", {"b", "c"}, "d"]`` or ``[["a"], ["b", "c"], ["d"]]``, or make it from scores.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from itertools import pairwise, repeat
from typing import Any, Literal, cast, get_args

import numpy as np
from numpy.typing import NDArray

from tiewise.caching import cached_property
from tiewise.data.columns import Codes, Floats, is_first
from tiewise.data.runs import Run
from tiewise.errors import InputError
from tiewise.ties.pairs import PairGroups, RankedLists

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


def cut_mask(
    start: Codes, size: Codes, depth: int, edge: str, describe: Callable[[int], str] = lambda row: ""
) -> NDArray[np.bool_]:
    """Whether each item belongs to the first `depth`, from its tie group, of which none may be split.

    `describe` says where the item of a row is, for the error that `edge` asks for.
    """
    if edge not in get_args(Edge):
        raise InputError(f"edge={edge!r} is not possible. Use {', '.join(map(repr, get_args(Edge)))}.")
    check_depth(depth)
    split = np.flatnonzero((start < depth) & (start + size > depth))
    if edge == "error" and len(split):
        raise InputError(
            f"Depth {depth} ends inside a group of {size[split[0]]} tied items{describe(int(split[0]))}. Use "
            "edge='extend' (--edge extend) to include the whole group, or 'shrink' to leave it out."
        )
    return start + size <= depth if edge == "shrink" else start < depth


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
        self._set_items([item for group in groups for item in group], list(map(len, groups)))
        seen: set[Item] = set()
        for number, group in enumerate(groups, start=1):
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

    def _set_items(self, items: Sequence[Item], sizes: Sequence[int] | Codes) -> None:
        self.items: tuple[Item, ...] = tuple(items)  #: all items, group by group
        sizes = np.asarray(sizes, dtype=np.int64)
        #: How many items stand above the tie group of each item, and how many it holds, (n_items,).
        self.start, self.size = np.repeat(np.cumsum(sizes) - sizes, sizes), np.repeat(sizes, sizes)

    @classmethod
    def from_scores(cls, scores: Mapping[Any, float], depth: int | None = None, edge: Edge = "error") -> Ranking:
        """Items by descending score; equal scores are tied. `depth` keeps the first items: see `cut`."""
        return cls._from_column(list(scores), Run.from_dict({"": scores}).value, depth, edge)

    @classmethod
    def from_run(cls, run: Run, query: str, depth: int | None = None, edge: Edge = "error") -> Ranking:
        """The ranking of one query of a run; equal scores are tied. `depth` keeps the first items: see `cut`."""
        if not isinstance(run, Run):
            raise InputError(f"A {type(run).__name__} is not a Run. Read a file with tw.read_run(path) first.")
        if query not in run.query_index:
            raise InputError(f"The run has no query {query!r}.")
        place = run.query_index[query]
        rows = np.arange(run.offsets[place], run.offsets[place + 1])
        return cls._from_column(run.ids(rows), run.score[rows], depth, edge)

    @classmethod
    def _from_column(cls, items: Sequence[Item], scores: Floats, depth: int | None, edge: Edge) -> Ranking:
        order = np.argsort(-scores, kind="stable")
        first = np.flatnonzero(is_first(scores[order]))
        ranking = cls.__new__(cls)
        ranking._set_items(list(map(items.__getitem__, order.tolist())), np.diff(first, append=len(items)))
        return ranking if depth is None else ranking.cut(depth, edge)

    def cut(self, depth: int, edge: Edge = "error") -> Ranking:
        """The first `depth` items. If the depth ends inside a tie group, `edge` extends, shrinks, or raises an error.

        `rbp`, `rbr`, `precision_at` and `recall_at` do not need this choice: they take a depth and are exact inside
        tie groups.
        """
        kept = int(np.count_nonzero(cut_mask(self.start, self.size, depth, edge)))
        return Ranking(self[: len(np.unique(self.start[:kept]))])

    @cached_property
    def position(self) -> dict[Item, int]:
        """The position of each item in `items`, from 0."""
        return dict(zip(self.items, range(len(self.items)), strict=True))

    @cached_property
    def _groups(self) -> tuple[tuple[Item, ...], ...]:
        first = np.unique(self.start).tolist()
        return tuple(self.items[i:j] for i, j in pairwise([*first, len(self.items)]))

    @property
    def tied(self) -> bool:
        """Whether any items are tied."""
        return bool((self.size > 1).any())

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


def pair_rankings(x: RankingLike, y: RankingLike) -> PairGroups:
    """The tie groups of two rankings, as one pair. Codes are the positions of the items of y, then those of x."""
    left, right = as_ranking(x), as_ranking(y)
    codes = np.fromiter(map(right.position.get, left.items, repeat(-1)), np.int64, len(left.items))
    codes = np.where(codes >= 0, codes, len(right.items) + np.arange(len(codes)))
    order = np.argsort(codes)
    return PairGroups.of(
        RankedLists(np.array([0, len(codes)]), codes[order], left.start[order], left.size[order]),
        RankedLists(np.array([0, len(right.items)]), np.arange(len(right.items)), right.start, right.size),
    )


def _parse(text: str) -> list[tuple[Item, ...]]:
    """The groups of a ranking such as ``a (b c) d``."""
    groups: list[tuple[Item, ...]] = []
    for part in re.findall(r"\([^()]*\)|[^\s()]+|[()]", text):
        if part in ("(", ")"):
            raise InputError(f"A bracket in {text!r} has no partner, or brackets nest. Write 'a (b c) d'.")
        groups.append(tuple(part[1:-1].split()) if part.startswith("(") else (part,))
    return groups
