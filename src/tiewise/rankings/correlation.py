"""Kendall's τ and τ_AP of two rankings with ties, as Estimates over the tie orders.

τ counts pairs of items: C concordant pairs, D discordant pairs, and T pairs that are tied in either ranking, which a
random order makes concordant or discordant. τ_AP (Yilmaz et al. 2008) gives more weight to pairs near the top of the
observed ranking.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from tiewise.data.columns import Codes, Floats, heads
from tiewise.errors import InputError
from tiewise.metrics.estimate import Estimate
from tiewise.metrics.segments import safe_divide
from tiewise.rankings.ranking import RankingLike, as_ranking, pair_rankings
from tiewise.rankings.tie_orders import Parts, make_estimate, over_orders
from tiewise.results.wording import list_examples
from tiewise.ties.pairs import PairGroups


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
    pairs = _pair_same_items(x, y, complete)
    if len(pairs.pair) < 2:
        return Tau(measure="τ")
    counts = count_pairs(pairs)
    product = float((counts.total - counts.tied_x)[0]) * float((counts.total - counts.tied_y)[0])
    tau_b = float(counts.balance[0]) / math.sqrt(product) if product else None
    estimate = make_estimate("τ", counts.tau()[:, 0])
    return Tau(estimate.expected, estimate.minimum, estimate.maximum, measure="τ", tau_b=tau_b)


def compute_tau(pairs: PairGroups, extremes: bool = True) -> Parts:
    """τ of pairs of rankings of the same items; NaN for fewer than two items."""
    return {"value": count_pairs(pairs).tau(extremes)}


class PairCounts(NamedTuple):
    """How many pairs of common items there are, and of each kind, (n_pairs,) each."""

    total: Codes
    tied_x: Codes
    tied_y: Codes
    tied_both: Codes
    discordant: Codes

    @property
    def tied(self) -> Codes:
        """Those that are tied in either ranking."""
        return self.tied_x + self.tied_y - self.tied_both

    @property
    def balance(self) -> Codes:
        """Concordant pairs less discordant ones."""
        return self.total - self.tied - 2 * self.discordant

    def tau(self, extremes: bool = True) -> Floats:
        """τ over the tie orders; NaN for fewer than two items."""
        total = np.where(self.total, self.total, np.nan)
        orders = self.balance, self.balance - self.tied, self.balance + self.tied
        return over_orders([balance / total for balance in orders], extremes)


def count_pairs(pairs: PairGroups) -> PairCounts:
    """The kinds of the pairs of common items, for each pair of rankings.

    >>> count_pairs(pair_rankings("a (b c)", "b a c"))
    PairCounts(total=array([3]), tied_x=array([1]), tied_y=array([0]), tied_both=array([0]), discordant=array([1]))
    """
    width, n = int(pairs.length.max(initial=0)) + 1, len(pairs)
    group_x, group_y = pairs.pair * width + pairs.start
    cells = np.sort(group_x * width + pairs.start[1])

    def count_tied(groups: Codes) -> Codes:
        """Pairs of items with the same group, from sorted groups: each item with all before it."""
        same = np.arange(len(groups)) - heads(groups)
        return np.bincount(pairs.pair, weights=same, minlength=n).astype(np.int64)

    discordant = pairs.sum(count_smaller_before(width - cells % width, pairs.pair)).astype(np.int64)
    total = pairs.n_common * (pairs.n_common - 1) // 2
    tied_x, tied_y, tied_both = map(count_tied, (np.sort(group_x), np.sort(group_y), cells))
    return PairCounts(total, tied_x, tied_y, tied_both, discordant)


def tau_ap(x: RankingLike, y: RankingLike, complete: Literal["union"] | None = None) -> TauAP:
    """τ_AP of an observed ranking x against a true ranking y: pairs near the top of x weigh more.

    Ties of both rankings may take any order. If y has no ties, the expectation is the τ_AP,a of Urbano & Marrero
    (2017), which is defined for ties of the observed ranking. A pair that y ties counts one half.

    >>> tau_ap("a b c", "a c b")
    τ_AP 0.5000
    """
    pairs = _pair_same_items(x, y, complete)
    if len(pairs.pair) < 2:
        return TauAP(measure="τ_AP")
    estimate = make_estimate("τ_AP", compute_tau_ap(pairs)["value"][:, 0])
    there, back = (_directed_tau_ap_b(*starts) for starts in (pairs.start, pairs.start[::-1]))
    tau_ap_b = None if there is None or back is None else (there + back) / 2
    return TauAP(estimate.expected, estimate.minimum, estimate.maximum, measure="τ_AP", tau_ap_b=tau_ap_b)


def compute_tau_ap(pairs: PairGroups, extremes: bool = True) -> Parts:
    """τ_AP of pairs of rankings of the same items; NaN for fewer than two items."""
    orders = [pairs.start, *(pairs.extreme_ranks if extremes else ())]
    return {"value": over_orders([_expected_tau_ap(pairs, *starts) for starts in orders], extremes)}


def count_smaller_before(values: Codes, segment: Codes) -> Codes:
    """For each of some integers ≥ 0, how many earlier ones of its segment are smaller. Segments ascend.

    Two different numbers first differ in one bit. Among numbers that agree in all higher bits, a 1 has every earlier 0
    before it.

    >>> count_smaller_before(np.array([1, 3, 2, 2, 0, 3]), np.array([0, 0, 0, 0, 0, 1]))
    array([0, 1, 1, 1, 0, 0])
    """
    bits = int(values.max(initial=0)).bit_length()
    keys = (segment << bits) + values
    counts = np.zeros(len(values), dtype=np.int64)
    position = order = np.arange(len(values))  # `order` sorts by the higher bits, then by position
    for bit in range(bits - 1, -1, -1):
        prefix = keys[order] >> bit
        one = (prefix & 1).astype(bool)
        zeros_before = np.cumsum(~one) - ~one
        smaller = zeros_before - zeros_before[heads(prefix >> 1)]  # with the same higher bits
        counts[order[one]] += smaller[one]
        order = order[np.argsort(prefix * len(values) + position)]
    return counts


def _pair_same_items(x: RankingLike, y: RankingLike, complete: str | None) -> PairGroups:
    """The tie groups of two rankings of the same items."""
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
    return pair_rankings(left, right).union()


def _expected_tau_ap(pairs: PairGroups, a: Codes, b: Codes) -> Floats:
    """2/(n−1) · Σ_{i≥2} (items above rank i that y ranks above it) / (i−1) − 1, expected over the tie orders.

    `a` and `b` are equal for items that are tied in x and in y. An item of a group of m items after s others is in each
    slot p with probability 1/m. Correct are: of the s items above its group, those that y ranks above it and half of
    those that y ties with it; and half of the p − 1 items of its own group.
    """
    pair, n = pairs.pair, pairs.n_common
    a, above, tied = _count_above(pair, a, b)
    items_above = np.arange(len(pair)) - heads(pair)  # at each rank
    first = heads(a)
    size = np.bincount(first, minlength=len(pair))[first]
    correct = np.bincount(first, weights=above + tied / 2, minlength=len(pair))[first] / size
    share = safe_divide(correct + (np.arange(len(pair)) - first) / 2, items_above)
    return 2 / np.where(n > 1, n - 1, np.nan) * pairs.sum(share) - 1


def _directed_tau_ap_b(a: Codes, b: Codes) -> float | None:
    """τ_AP,b of one pair in one direction: each item against the groups above its own. None if there is one group."""
    groups, above, _ = _count_above(np.zeros_like(a), a, b)
    items_above = heads(groups)
    has_above = items_above > 0
    return float(2 * (above[has_above] / items_above[has_above]).mean() - 1) if has_above.any() else None


def _count_above(pair: Codes, a: Codes, b: Codes) -> tuple[Codes, Codes, Codes]:
    """The groups in a of the items of each pair, ascending; how many items of higher groups b ranks above each item,
    and how many b ties with it."""
    width = int(max(a.max(initial=0), b.max(initial=0))) + 1
    # b descends inside each group of a, so that no item of the own group counts as smaller and earlier.
    order = np.argsort((pair * width + a) * width - b)
    above = count_smaller_before(b[order], pair)
    by_b = np.argsort((pair * width + b) * width + a)
    group_b = (pair * width + b)[by_b]
    tied = np.empty(len(a), dtype=np.int64)
    tied[by_b] = heads(group_b * width + a[by_b]) - heads(group_b)
    return (pair * width + a)[order], above, tied[order]
