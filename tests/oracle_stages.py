"""First stages against the ranking of a second one, again and naively: every set and every order is tried.

Nothing here is clever and nothing is imported from `src`, so agreement with it is evidence. A first stage is a row of
tie groups, and so is the reference. The set that a depth cuts from the former may be any that takes the right number
of documents from the group it ends in, and each order of the reference's ties is as likely as any other, whatever the
set. What is left of a set and an order is a row of booleans: at which ranks the reference shows a document of the set.

>>> sorted(draws([["a"], ["b", "c"]], [["x", "b"]], 1).items())
[(Draw(held=(False, False, False), size=1), 2), (Draw(held=(False, False, True), size=1), 1),
 (Draw(held=(False, True, False), size=1), 1)]
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

Groups = Sequence[Sequence[str]]  # tied documents, best group first
Depth = int | None  # None: the whole list

__all__ = [
    "Draw",
    "Point",
    "ceiling",
    "cost",
    "draws",
    "expected_residual",
    "groups",
    "held_weight",
    "optimum",
    "pareto",
    "recall",
    "row",
    "sets",
    "spread",
]


# Sets and orders


class Draw(NamedTuple):
    """A set and an order of the reference: whether each rank holds a document of the set, and the set's size."""

    held: tuple[bool, ...]
    size: int


def groups(scores: Mapping[str, float]) -> list[list[str]]:
    """The tie groups of scored documents, highest score first.

    >>> groups({"a": 1, "b": 3, "c": 1})
    [['b'], ['a', 'c']]
    """
    return [[doc for doc in scores if scores[doc] == score] for score in sorted(set(scores.values()), reverse=True)]


def sets(observed: Groups, depth: Depth) -> Iterator[frozenset[str]]:
    """Every set that the first `depth` documents can be, each equally likely.

    >>> [sorted(found) for found in sets([["a"], ["b", "c"]], 2)]
    [['a', 'b'], ['a', 'c']]
    """
    taken: list[str] = []
    for group in observed:
        room = math.inf if depth is None else depth - len(taken)
        if room < len(group):
            for part in itertools.combinations(group, int(room)):
                yield frozenset(taken) | frozenset(part)
            return
        taken.extend(group)
    yield frozenset(taken)


def orders(reference: Groups) -> Iterator[tuple[str, ...]]:
    """Every order that the ties of the reference allow, each equally likely."""
    for chosen in itertools.product(*map(itertools.permutations, reference)):
        yield tuple(itertools.chain.from_iterable(chosen))


def draws(reference: Groups, observed: Groups, depth: Depth) -> Counter[Draw]:
    """All pairs of a set and an order, as what can be seen of them, with the number of times each is seen."""
    ordered = list(orders(reference))
    return Counter(
        Draw(tuple(doc in found for doc in order), len(found)) for found in sets(observed, depth) for order in ordered
    )


def mean(value: Callable[[Draw], float], drawn: Counter[Draw]) -> float:
    return math.fsum(value(draw) * times for draw, times in drawn.items()) / drawn.total()


# Rank-biased recall: Moffat et al. (2024), Eqs. 6 and 9


def held_weight(draw: Draw, phi: float, k: int | None = None) -> float:
    """RBR by the first k ranks of the reference, or by all of them."""
    return (1 - phi) / phi * math.fsum(phi**rank for rank, held in enumerate(draw.held[:k], start=1) if held)


def residual(draw: Draw, phi: float, k: int | None = None) -> float:
    """What the documents of the set that these ranks do not show add at the most: they come next, one after another.

    >>> residual(Draw((True, False), 3), 0.5)
    0.1875
    """
    seen = draw.held[:k]
    return (1 - phi) / phi * math.fsum(phi ** (len(seen) + i) for i in range(1, draw.size - sum(seen) + 1))


def recall(draw: Draw, k: int | None = None) -> float:
    """The share of the first k documents of the reference that the set holds; 0 if there are none."""
    return sum(draw.held[:k]) / len(draw.held[:k]) if draw.held else 0.0


def row(reference: Groups, observed: Groups, depth: Depth, phi: float, k: int | None = None) -> dict[str, float]:
    """The columns of a query that depend on its sets alone."""
    drawn = draws(reference, observed, depth)
    lower = {draw: held_weight(draw, phi) for draw in drawn}
    upper = {draw: lower[draw] + residual(draw, phi) for draw in drawn}
    return {
        "rbr_lower": mean(lower.__getitem__, drawn),
        "rbr_upper": mean(upper.__getitem__, drawn),
        "rbr_minimum": min(lower.values()),
        "rbr_maximum": max(lower.values()),
        "recall": mean(lambda draw: recall(draw, k), drawn),
    }


def expected_residual(length: int, size: int, taken: int, unseen_before: int, unseen: int, phi: float) -> float:
    """The residual's mean where the set takes `taken` of a group of `size`, of which the reference lacks `unseen`.

    For lists too long to enumerate. The reference has `length` documents and also lacks `unseen_before` of those that
    stand above the group. The number of sets that take j of the unseen documents is a product of two binomials.

    >>> drawn = draws([["a"], ["b"]], [["x"], ["b", "y", "z"]], 3)
    >>> mean(lambda draw: residual(draw, 0.5), drawn) == expected_residual(2, 3, 2, 1, 2, 0.5)
    True
    """
    ways = [math.comb(unseen, j) * math.comb(size - unseen, taken - j) for j in range(taken + 1)]
    assert sum(ways) == math.comb(size, taken)
    parts = (way / sum(ways) * (1 - phi ** (unseen_before + j)) for j, way in enumerate(ways))
    return phi**length * math.fsum(parts)


# Cost, and the points that no other point beats


class Point(NamedTuple):
    """A first stage at a depth."""

    lower: float
    upper: float
    cost: float


def cost(table: Mapping[str, object], system: str, depth: Depth, sizes: Sequence[int]) -> float:
    """The cost of a first stage and of reranking what it finds; `sizes` are those of its sets, for depth None.

    >>> cost({"a": 2.0, "rerank": 0.5}, "a", 10, [3]), cost({"a": {None: 1.0}, "rerank": 2}, "a", None, [1, 2])
    (7.0, 4.0)
    """
    first = table[system]
    own = first[depth] if isinstance(first, Mapping) else first
    return own + table.get("rerank", 0) * (sum(sizes) / len(sizes) if depth is None else depth)


def pareto(points: Sequence[Point]) -> list[bool]:
    """Whether each point stays: it goes only if another is surely no worse, and cheaper or surely better.

    >>> pareto([Point(0.5, 0.5, 1), Point(0.5, 0.5, 1), Point(0.5, 0.5, 2), Point(0.4, 0.6, 2)])
    [True, True, False, True]
    """
    return [not any(beats(other, point) for other in points) for point in points]


def beats(other: Point, point: Point) -> bool:
    no_worse = other.cost <= point.cost and other.lower >= point.upper
    return no_worse and (other.cost < point.cost or other.lower > point.upper)


# Figure 3: first stages of equal recall


def spread(reference: Groups, observed: Groups, depth: Depth, phi: float, k: int) -> dict[str, float]:
    """The columns of a query that has some recall, and that recall."""
    drawn = draws(reference, observed, depth)
    return {
        "recall": mean(lambda draw: recall(draw, k), drawn),
        "base": mean(lambda draw: held_weight(draw, phi, k), drawn),
        "base_upper": mean(lambda draw: held_weight(draw, phi, k) + residual(draw, phi, k), drawn),
        "full": mean(lambda draw: held_weight(draw, phi), drawn),
        "full_upper": mean(lambda draw: held_weight(draw, phi) + residual(draw, phi), drawn),
    }


def optimum(hits: int, k: int, size: int, phi: float, length: int) -> float:
    """The most that RBR of a set of `size` documents can be with `hits` in the first k: all such sets are tried.

    `length` is how many ranks there are to choose from. A set's documents that are at none of them add nothing.

    >>> optimum(1, 2, 2, 0.5, 4)  # ranks 1 and 3
    0.625
    """
    chosen = itertools.chain.from_iterable(itertools.combinations(range(1, length + 1), n) for n in range(size + 1))
    return max(
        (1 - phi) / phi * math.fsum(phi**rank for rank in ranks)
        for ranks in chosen
        if sum(rank <= k for rank in ranks) == hits
    )


def ceiling(hits: int, k: int, size: int, phi: float) -> float:
    """The same, as argued: the hits at ranks 1, 2, …, the other documents right after rank k."""
    ranks = [*range(1, hits + 1), *range(k + 1, k + 1 + size - hits)]
    return (1 - phi) / phi * math.fsum(phi**rank for rank in ranks)
