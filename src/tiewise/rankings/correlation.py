"""Kendall's τ and τ_AP of two rankings with ties, as Estimates over the tie orders.

τ counts pairs of items: C concordant pairs, D discordant pairs, and T pairs that are tied in either ranking, which a
random order makes concordant or discordant. τ_AP (Yilmaz et al. 2008) gives more weight to pairs near the top of the
observed ranking.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tiewise.data.columns import Codes
from tiewise.errors import InputError
from tiewise.metrics.estimate import Estimate
from tiewise.rankings.pairs import RankingPair, TieOrder, make_estimate
from tiewise.rankings.ranking import RankGroups, Ranking, RankingLike, as_ranking
from tiewise.results.wording import list_examples

__all__ = ["Tau", "TauAP", "compute_tau", "compute_tau_ap", "count_inversions", "tau", "tau_ap", "union_groups"]


@dataclass(frozen=True, repr=False)
class Tau(Estimate):
    """τ over the tie orders, and τ_b (None if a ranking is a single tie group).

    >>> found = tau("a (b c)", "a b c")
    >>> found, round(found.tau_b, 4)
    (τ 0.6667 [0.3333, 1.0000], 0.8165)
    """

    tau_b: float | None = None


@dataclass(frozen=True, repr=False)
class TauAP(Estimate):
    """τ_AP over the tie orders, and the symmetric τ_AP,b (None if a ranking is a single tie group).

    >>> found = tau_ap("a (b c)", "a b c")
    >>> found, found.tau_ap_b
    (τ_AP 0.7500 [0.5000, 1.0000], 0.75)
    """

    tau_ap_b: float | None = None


def tau(x: RankingLike, y: RankingLike, complete: Literal["union"] | None = None) -> Tau:
    """Kendall's τ of two rankings of the same items: expected (C − D) / N, extremes (C − D ∓ T) / N.

    With ``complete="union"``, items that one ranking lacks are appended to it as one last tie group.

    >>> tau("a (b c) d", "a b c d")
    τ 0.8333 [0.6667, 1.0000]
    """
    return compute_tau(*_align_items(x, y, complete))


def compute_tau(a: Codes, b: Codes) -> Tau:
    """τ of two rankings, from the tie group of each item in both."""
    pairs = len(a) * (len(a) - 1) // 2
    if not pairs:
        return Tau(measure="τ")
    tied_a, tied_b = _count_tied_pairs(a), _count_tied_pairs(b)
    tied_both = _count_tied_pairs(a * (int(b.max()) + 1) + b)
    discordant = int(count_inversions(b[None, np.lexsort((b, a))])[0])
    tied = tied_a + tied_b - tied_both
    balance = pairs - tied - 2 * discordant  # C − D
    untied_product = (pairs - tied_a) * (pairs - tied_b)
    return Tau(
        expected=balance / pairs,
        minimum=(balance - tied) / pairs,
        maximum=(balance + tied) / pairs,
        measure="τ",
        tau_b=balance / math.sqrt(untied_product) if untied_product else None,
    )


def tau_ap(x: RankingLike, y: RankingLike, complete: Literal["union"] | None = None) -> TauAP:
    """τ_AP of an observed ranking x against a true ranking y: pairs near the top of x weigh more.

    Ties of both rankings may take any order. If y has no ties, the expectation is the τ_AP,a of Urbano & Marrero
    (2017), which is defined for ties of the observed ranking. A pair that y ties counts one half.

    >>> tau_ap("a b c", "a c b")
    τ_AP 0.5000
    """
    return compute_tau_ap(*_align_items(x, y, complete))


def compute_tau_ap(a: Codes, b: Codes, extremes: bool = True) -> TauAP:
    """τ_AP of two rankings, from the tie group of each item in both; without `extremes`, only the expectation."""
    if len(a) < 2:
        return TauAP(measure="τ_AP")
    values = [_expected_tau_ap(a, b)]
    if not extremes:
        return TauAP(values[0], measure="τ_AP")
    if _count_tied_pairs(a) or _count_tied_pairs(b):
        values += [_expected_tau_ap(*_break_ties(a, b, order)) for order in ("worst", "best")]
    estimate = make_estimate("τ_AP", values)
    there, back = _directed_tau_ap_b(a, b), _directed_tau_ap_b(b, a)
    tau_ap_b = None if there is None or back is None else (there + back) / 2
    return TauAP(estimate.expected, estimate.minimum, estimate.maximum, measure="τ_AP", tau_ap_b=tau_ap_b)


def count_inversions(rows: Codes) -> Codes:
    """The number of pairs i < j with row[i] > row[j], for each row.

    Blocks are counted pair by pair. Then sorted halves are merged: each number of the right half passes all larger ones
    of the left half.

    >>> count_inversions(np.array([[3, 1, 2, 2], [1, 2, 3, 4]]))
    array([3, 0])
    """
    n_rows, width = rows.shape
    part = max(min(width, 128 if n_rows == 1 else 32), 1)  # for one row, calls cost more than comparisons
    n_blocks = 1 << ((width - 1) // part).bit_length()
    if n_blocks * part > width:  # a last number that is the largest adds no inversion
        rows = np.pad(rows, ((0, 0), (0, n_blocks * part - width)), constant_values=rows.max(initial=0))
    blocks = rows.reshape(-1, part)
    later = np.triu(np.ones((part, part), dtype=bool), 1)
    counts = ((blocks[:, :, None] > blocks[:, None, :]) & later).sum(axis=(1, 2)).reshape(n_rows, -1).sum(axis=1)
    for _ in range(n_blocks.bit_length() - 1):
        halves = np.sort(rows.reshape(-1, 2, part), axis=2).reshape(-1, 2 * part)
        from_right = np.argsort(halves, axis=1, kind="stable") >= part  # of equal numbers, the left comes first
        remaining = part - np.cumsum(~from_right, axis=1)
        counts += (remaining * from_right).sum(axis=1).reshape(n_rows, -1).sum(axis=1)
        part *= 2
    return np.asarray(counts, dtype=np.int64)


def count_smaller_before(values: Codes) -> Codes:
    """For each of some integers ≥ 0, how many earlier ones are smaller.

    Two different numbers first differ in one bit. Among numbers that agree in all higher bits, a 1 has every earlier 0
    before it.

    >>> count_smaller_before(np.array([1, 3, 2, 2, 0, 3]))
    array([0, 1, 1, 1, 0, 4])
    """
    counts = np.zeros(len(values), dtype=np.int64)
    order = np.arange(len(values))  # sorted by the higher bits, then by position
    for bit in range(int(values.max(initial=0)).bit_length() - 1, -1, -1):
        prefix = values[order] >> bit
        one, higher = (prefix & 1).astype(bool), prefix >> 1
        zeros_before = np.append(0, np.cumsum(~one))
        smaller = zeros_before[:-1] - zeros_before[np.searchsorted(higher, higher)]  # with the same higher bits
        counts[order[one]] += smaller[one]
        order = order[np.argsort(prefix, kind="stable")]
    return counts


def union_groups(pair: RankingPair) -> tuple[Codes, Codes]:
    """The tie group in both rankings of each item of either. Items that one ranking lacks are its last tie group."""
    x, y = pair.left.groups, pair.right.groups
    only_y = np.delete(y.group, pair.right.common)
    b = np.full(len(x), len(y.size))
    b[pair.left.common] = y.group[pair.right.common]
    return np.append(x.group, np.full(len(only_y), len(x.size))), np.append(b, only_y)


def _align_items(x: RankingLike, y: RankingLike, complete: str | None) -> tuple[Codes, Codes]:
    """The tie group of each item in both rankings, over the same items."""
    left, right = as_ranking(x), as_ranking(y)
    only_left, only_right = set(left.items) - set(right.items), set(right.items) - set(left.items)
    if complete not in (None, "union"):
        raise InputError(f"complete={complete!r} is not possible. Use 'union' or None.")
    if (only_left or only_right) and complete is None:
        raise InputError(
            f"The rankings hold different items: only in the first {list_examples(only_left) or 'none'}; only in the "
            f"second {list_examples(only_right) or 'none'}. Use complete='union' to append missing items "
            "as one last tie group."
        )
    items = [*left.items, *(item for item in right.items if item not in left.position)]

    def groups(ranking: Ranking) -> Codes:
        position, group = ranking.position, ranking.groups.group
        return np.array([group[position[i]] if i in position else len(ranking) for i in items], dtype=np.int64)

    return groups(left), groups(right)


def _count_tied_pairs(group: Codes) -> int:
    size = np.unique(group, return_counts=True)[1]
    return int((size * (size - 1) // 2).sum())


def _break_ties(a: Codes, b: Codes, order: TieOrder) -> tuple[Codes, Codes]:
    """The ranks of the items in both rankings, in the best or the worst tie order."""
    by_a, by_b = np.argsort(a, kind="stable"), np.argsort(b, kind="stable")
    position = np.empty(len(b), dtype=np.int64)
    position[by_b] = np.arange(len(b))
    x, y = (RankGroups.from_group(np.unique(group, return_inverse=True)[1]) for group in (a[by_a], b[by_b]))
    ranks = np.empty((2, len(a)), dtype=np.int64)
    ranks[0, by_a], ranks[1, by_b] = RankingPair(x, y, position[by_a]).ranks(order)
    return ranks[0], ranks[1]


def _expected_tau_ap(a: Codes, b: Codes) -> float:
    """2/(n−1) · Σ_{i≥2} (items above rank i that y ranks above it) / (i−1) − 1, expected over the tie orders.

    An item of a group of m items after s others is in each slot p with probability 1/m. Correct are: of the s items
    above its group, those that y ranks above it and half of those that y ties with it; and half of the p − 1 items of
    its own group.
    """
    n = len(a)
    order, above, tied = _count_above(a, b)
    items_above = np.arange(n, dtype=np.float64)  # at each rank
    weight = np.divide(1.0, items_above, out=np.zeros(n), where=items_above > 0)
    start = np.flatnonzero(np.diff(a[order], prepend=-1))
    size = np.diff(np.append(start, n))
    correct = np.add.reduceat(above + tied / 2, start) / size
    inside = (items_above - np.repeat(start, size)) / 2
    total = (correct * np.add.reduceat(weight, start)).sum() + (inside * weight).sum()
    return float(2 / (n - 1) * total - 1)


def _directed_tau_ap_b(a: Codes, b: Codes) -> float | None:
    """τ_AP,b in one direction: each item against the groups above its own. None if there is one group only."""
    order, above, _ = _count_above(a, b)
    items_above = np.searchsorted(a[order], a[order])
    has_above = items_above > 0
    return float(2 * (above[has_above] / items_above[has_above]).mean() - 1) if has_above.any() else None


def _count_above(a: Codes, b: Codes) -> tuple[Codes, Codes, Codes]:
    """The items by their group in a; how many items of higher groups b ranks above each, and how many b ties with."""
    # b descends inside each group of a, so that no item of the own group counts as smaller and earlier.
    order = np.lexsort((-b, a))
    above = count_smaller_before(b[order])
    by_b = np.lexsort((a, b))
    group_b, cell = b[by_b], a[by_b] + b[by_b] * (int(a.max(initial=0)) + 1)
    tied = np.empty(len(a), dtype=np.int64)
    tied[by_b] = np.searchsorted(cell, cell) - np.searchsorted(group_b, group_b)
    return order, above, tied[order]
