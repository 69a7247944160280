"""Kendall's τ and τ_AP of two rankings with ties, as Estimates over the orders of ties.

τ counts pairs of items: concordant pairs C, discordant ones D, and pairs T that are tied in either ranking, which a
random order resolves either way. τ_AP (Yilmaz et al. 2008) weighs a pair by how high it stands in the observed ranking.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from tiewise.data.columns import Codes
from tiewise.errors import InputError, listed
from tiewise.metrics.estimate import Estimate
from tiewise.rankings.pairs import Pair, estimate
from tiewise.rankings.ranking import Groups, Ranking

__all__ = ["Tau", "TauAP", "tau", "tau_ap"]


@dataclass(frozen=True, repr=False)
class Tau(Estimate):
    """τ over the orders of ties, with τ_b beside it (None if a ranking is a single group)."""

    tau_b: float | None = None


@dataclass(frozen=True, repr=False)
class TauAP(Estimate):
    """τ_AP over the orders of ties, with the symmetric τ_AP,b beside it (None if a ranking is a single group)."""

    tau_ap_b: float | None = None


def tau(x: Any, y: Any, complete: Literal["union"] | None = None) -> Tau:
    """Kendall's τ of two rankings of the same items: (C − D) / N in expectation, (C − D ∓ T) / N at the extremes.

    With ``complete="union"`` items that one ranking lacks are appended to it as one last tie group.

    >>> tau("a (b c) d", "a b c d")
    τ 0.8333 [0.6667, 1.0000]
    """
    a, b = _groups(x, y, complete)
    n = len(a)
    pairs = n * (n - 1) // 2
    if not pairs:
        return Tau(measure="τ")
    order = np.lexsort((b, a))
    tied_a, tied_b = _tied(a), _tied(b)
    tied_both = _tied(a * (int(b.max()) + 1) + b)
    discordant = inversions(b[order])
    concordant = pairs - discordant - tied_a - tied_b + tied_both
    balance, open_ = concordant - discordant, tied_a + tied_b - tied_both
    free = (pairs - tied_a) * (pairs - tied_b)
    return Tau(
        expected=balance / pairs,
        minimum=(balance - open_) / pairs,
        maximum=(balance + open_) / pairs,
        measure="τ",
        tau_b=balance / math.sqrt(free) if free else None,
    )


def tau_ap(x: Any, y: Any, complete: Literal["union"] | None = None) -> TauAP:
    """τ_AP of an observed ranking x against a true one y: pairs near the head of x weigh more.

    Ties of either ranking stand in any order. With a truth that has none, the expectation is the τ_AP,a of Urbano &
    Marrero (2017), which is for ties of the observed ranking; a pair that the truth ties counts one half.

    >>> tau_ap("a b c", "a c b")
    τ_AP 0.5000
    """
    a, b = _groups(x, y, complete)
    n = len(a)
    if n < 2:
        return TauAP(measure="τ_AP")
    values = [_tau_ap_mean(a, b)]
    if _tied(a) or _tied(b):
        values += [_tau_ap_mean(*_canonical(a, b, which)) for which in ("worst", "best")]
    found = estimate("τ_AP", values)
    sides = [_tau_ap_tied(a, b), _tau_ap_tied(b, a)]
    both = None if None in sides else float(np.mean(sides))  # type: ignore[arg-type]
    return TauAP(found.expected, found.minimum, found.maximum, measure="τ_AP", tau_ap_b=both)


def inversions(values: Codes) -> int:
    """How many pairs stand in the wrong order: i < j with values[i] > values[j].

    >>> inversions(np.array([3, 1, 2, 2]))
    3
    """
    if len(values) <= 64:
        return int(np.count_nonzero(np.triu(values[:, None] > values[None, :])))
    half = len(values) // 2
    left, right = np.sort(values[:half]), values[half:]
    crossing = int((half - np.searchsorted(left, right, side="right")).sum())
    return inversions(values[:half]) + inversions(right) + crossing


def smaller_before(values: Codes) -> Codes:
    """For each of some numbers from 0 on, how many of those before it are smaller.

    Two numbers differ first in one bit: of those that agree in all higher ones, a 1 has every 0 before it.

    >>> smaller_before(np.array([1, 3, 2, 2, 0, 3]))
    array([0, 1, 1, 1, 0, 4])
    """
    counts = np.zeros(len(values), dtype=np.int64)
    order = np.arange(len(values))  # by the bits seen so far, then as given
    for bit in range(int(values.max(initial=0)).bit_length() - 1, -1, -1):
        seen = values[order] >> bit
        one, higher = (seen & 1).astype(bool), seen >> 1
        zeros = np.append(0, np.cumsum(~one))  # before each place
        among = zeros[:-1] - zeros[np.searchsorted(higher, higher)]  # of those with the same higher bits
        counts[order[one]] += among[one]
        order = order[np.argsort(seen, kind="stable")]
    return counts


def _groups(x: Any, y: Any, complete: str | None) -> tuple[Codes, Codes]:
    """The group numbers of the items in both rankings, along one order of the items."""
    left, right = Ranking(x), Ranking(y)
    only = [set(left.items) - set(right.items), set(right.items) - set(left.items)]
    if complete not in (None, "union"):
        raise InputError(f"complete={complete!r} is not possible. Use 'union' or nothing.")
    if any(only) and complete is None:
        raise InputError(
            f"The rankings hold different items: only in the first {listed(only[0]) or 'none'}; only in the second "
            f"{listed(only[1]) or 'none'}. Say complete='union' to append what is missing as one last tie group."
        )
    items = [*left.items, *(item for item in right.items if item not in left.place)]
    return tuple(_of(ranking, items) for ranking in (left, right))  # type: ignore[return-value]


def _of(ranking: Ranking, items: list[Any]) -> Codes:
    last = len(ranking)
    group = ranking.groups.group
    return np.array([group[ranking.place[i]] if i in ranking.place else last for i in items], dtype=np.int64)


def _tied(group: Codes) -> int:
    counts = np.unique(group, return_counts=True)[1]
    return int((counts * (counts - 1) // 2).sum())


def _canonical(a: Codes, b: Codes, which: str) -> tuple[Codes, Codes]:
    """Ranks without ties in the best or the worst order, along the items."""
    by_a, by_b = np.argsort(a, kind="stable"), np.argsort(b, kind="stable")
    place = np.empty(len(b), dtype=np.int64)
    place[by_b] = np.arange(len(b))
    left, right = Pair(_dense(a[by_a]), _dense(b[by_b]), place[by_a]).ranks(which)
    ranks = np.empty((2, len(a)), dtype=np.int64)
    ranks[0, by_a], ranks[1, by_b] = left, right
    return ranks[0], ranks[1]


def _dense(group: Codes) -> Groups:
    return Groups.of(np.unique(group, return_inverse=True)[1])


def _tau_ap_mean(a: Codes, b: Codes) -> float:
    """The expectation: 2/(n−1) · Σ (items above rank i that are rightly there) / (i−1) − 1, the sum over i ≥ 2.

    An item of a group of m after s others comes to slot p with chance 1/m. Of the s above its group, those that the
    truth has above it are right, and half of those that the truth ties; so are half of the p − 1 of its own group.
    """
    n = len(a)
    order, less, same = _above(a, b)
    above = np.arange(n, dtype=np.float64)  # at each rank
    share = np.divide(1.0, above, out=np.zeros(n), where=above > 0)
    heads = np.flatnonzero(np.diff(a[order], prepend=-1))
    sizes = np.diff(np.append(heads, n))
    right = np.add.reduceat(less + same / 2, heads) / sizes
    inside = (above - np.repeat(heads, sizes)) / 2
    total = (right * np.add.reduceat(share, heads)).sum() + (inside * share).sum()
    return float(2 / (n - 1) * total - 1)


def _tau_ap_tied(a: Codes, b: Codes) -> float | None:
    """τ_AP,b in one direction: each item against the groups above its own. None if there is one group only."""
    order, less, _ = _above(a, b)
    above = np.searchsorted(a[order], a[order])
    below = above > 0
    return float(2 * (less[below] / above[below]).mean() - 1) if below.any() else None


def _above(a: Codes, b: Codes) -> tuple[Codes, Codes, Codes]:
    """The items by their group in a; for each how many of the groups above it stand above it in b, and tie in b."""
    order = np.lexsort(
        (-b, a)
    )  # b descends in each group of a: none of an item's own group counts as smaller before it
    less = smaller_before(b[order])
    cells = np.lexsort((a, b))
    run, cell = b[cells], a[cells] + b[cells] * (int(a.max(initial=0)) + 1)
    same = np.empty(len(a), dtype=np.int64)
    same[cells] = np.searchsorted(cell, cell) - np.searchsorted(run, run)
    return order, less, same[order]
