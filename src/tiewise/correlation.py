"""Kendall's τ and τ_AP of two rankings with ties, as Estimates over the orders of ties.

τ counts pairs of items: concordant pairs C, discordant ones D, and pairs T that are tied in either ranking, which a
random order resolves either way. τ_AP (Yilmaz et al. 2008) weighs a pair by how high it stands in the observed ranking.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from tiewise.columns import Codes, Floats
from tiewise.errors import InputError, listed
from tiewise.estimate import Estimate
from tiewise.rankbiased import Pair
from tiewise.ranking import Groups, Ranking

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

    Ties of the truth count one half (τ_AP,a of Urbano & Marrero 2017), which with random orders of x's ties is the
    expectation.

    >>> tau_ap("a b c", "a c b")
    τ_AP 0.5000
    """
    left, right = Ranking(x), Ranking(y)
    a, b = _groups(left, right, complete)
    if len(a) < 2:
        return TauAP(measure="τ_AP")
    lowest, highest = (_tau_ap_untied(*_canonical(a, b, which)) for which in ("worst", "best"))
    return TauAP(
        expected=_tau_ap_mean(a, b),
        minimum=lowest,
        maximum=highest,
        measure="τ_AP",
        tau_ap_b=_tau_ap_b(a, b),
    )


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


def _tau_ap_untied(a: Codes, b: Codes) -> float:
    """2/(n−1) · Σ_{i≥2} (items above rank i that are rightly there) / (i−1) − 1, without ties."""
    truth = b[np.argsort(a)]
    right = np.array([np.count_nonzero(truth[:i] < truth[i]) for i in range(1, len(truth))], dtype=np.float64)
    return float(2 / (len(truth) - 1) * (right / np.arange(1, len(truth))).sum() - 1)


def _tau_ap_mean(a: Codes, b: Codes) -> float:
    """The expectation: slot p of a group of m after s others has s + p − 1 items above it, p − 1 of its own group."""
    total = 0.0
    credit = _credit(b)
    for g in np.unique(a):
        mine = np.flatnonzero(a == g)
        above = np.flatnonzero(a < g)
        m, s = len(mine), len(above)
        before = credit[np.ix_(mine, above)].sum(axis=1)
        within = credit[np.ix_(mine, mine)].sum(axis=1) - 0.5  # not itself, which ties with itself
        p = np.arange(m, dtype=np.float64)
        rank_before = np.maximum(s + p, 1)  # the item at rank 1 has nothing above it and adds nothing
        total += float(((before.sum() + p * within.sum() / max(m - 1, 1)) / rank_before).sum() / m)
    return 2 / (len(a) - 1) * total - 1


def _tau_ap_b(a: Codes, b: Codes) -> float | None:
    """The mean of τ_AP with ties from both sides, each item against the groups above its own."""
    sides = [_tau_ap_tied(a, b), _tau_ap_tied(b, a)]
    return None if None in sides else float(np.mean(sides))  # type: ignore[arg-type]


def _tau_ap_tied(a: Codes, b: Codes) -> float | None:
    below = a > a.min()
    if not below.any():
        return None
    total = 0.0
    for i in np.flatnonzero(below):
        above = b[a < a[i]]
        total += np.count_nonzero(above < b[i]) / len(above)
    return float(2 / np.count_nonzero(below) * total - 1)


def _credit(b: Codes) -> Floats:
    """For items i (rows) and j: 1 if j truly stands above i, one half if they are tied."""
    return (b[None, :] < b[:, None]) + 0.5 * (b[None, :] == b[:, None])
