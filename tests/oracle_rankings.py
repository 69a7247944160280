"""The rank-biased measures again, naively: definitions on untied rankings, all orders of the ties, all completions.

Nothing here is clever and nothing is imported from `src`, so agreement with it is evidence. A measure is
computed on *untied* rankings (lists of items, best first). A tied ranking is a list of tie groups, and
`over_orders` tries every order of all groups of both rankings, so no closed form for ties appears. The
exceptions are named where they stand: `rba_share`, the RBO variants, tau_b and tau_AP,b are not averages
over orders but definitions on the tie groups.

Rankings are prefixes of unbounded ones, so most measures are a lower and an upper bound. The bounds are
written down as the papers argue them, and found again by trying every continuation (`rbo_by_completion` and
its siblings at the end).

>>> over_orders(lambda x, y: rbo(x, y, 0.5)[2], [["a", "b"]], [["a"], ["b"]])  # extrapolated
Statistics(expected=0.75, minimum=0.5, maximum=1.0)
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

Item = Hashable
Ranking = Sequence[Item]  # untied, best first
Groups = Sequence[Sequence[Item]]  # tied, best group first

__all__ = [
    "Bounds",
    "Statistics",
    "completions",
    "extensions",
    "interchangeable",
    "med",
    "med_by_judgments",
    "number_of_orders",
    "orders",
    "over_orders",
    "precision",
    "rba",
    "rba_by_completion",
    "rba_of_weights",
    "rba_share",
    "rbo",
    "rbo_by_completion",
    "rbo_top_weight",
    "rbo_variant",
    "rbp",
    "rbr",
    "rbr_by_completion",
    "rbr_of_weights",
    "recall",
    "tau",
    "tau_ap",
    "tau_ap_b",
    "tau_b",
    "union_completed",
]


# Orders of ties, and statistics over them


class Statistics(NamedTuple):
    """A score over all orders of the ties, each equally likely."""

    expected: float
    minimum: float
    maximum: float


def orders(groups: Groups, alike: Callable[[Item], Any] | None = None) -> Iterator[list[Item]]:
    """Every untied ranking that the ties allow, each equally likely.

    With `alike`, items of a group that it maps to equal values are interchangeable for the measure, and one
    order stands for all that differ by swapping such items. There are Π m! of those (m the sizes of the
    classes), the same number for each, so the rankings that remain are equally likely still.

    >>> list(orders([["a"], ["b", "c"]]))
    [['a', 'b', 'c'], ['a', 'c', 'b']]
    >>> list(orders([["a"], ["b", "c"]], alike=lambda item: item == "a"))
    [['a', 'c', 'b']]
    """
    choices = []
    for group in groups:
        permutations = list(itertools.permutations(group))
        if alike is not None:
            permutations = list({tuple(map(alike, order)): order for order in permutations}.values())
        choices.append(permutations)
    for chosen in itertools.product(*choices):
        yield list(itertools.chain.from_iterable(chosen))


def number_of_orders(*rankings: Groups) -> int:
    """How many combinations `over_orders` tries without `alike`: a test can assume it small."""
    return math.prod(math.factorial(len(group)) for ranking in rankings for group in ranking)


def interchangeable(x: Groups, y: Groups) -> Callable[[Item], Item | None]:
    """`alike` for RBO and RBA, which see of an unmatched item nothing but its rank: they are all one item, None."""
    common = set(flat(x)) & set(flat(y))
    return lambda item: item if item in common else None


def over_orders(
    fn: Callable[..., Any], x: Groups, y: Groups | None = None, alike: Callable[[Item], Any] | None = None
) -> Any:
    """The Statistics of fn(untied x) or fn(untied x, untied y) over every order of all tie groups.

    Where fn returns a tuple, a tuple of Statistics, one for each component; None where fn returns None.

    >>> over_orders(lambda ranked: rbp(ranked, {"a": 1}, 0.5), [["a", "b"]])
    (Statistics(expected=0.375, minimum=0.25, maximum=0.5), Statistics(expected=1.0, minimum=1.0, maximum=1.0))
    """
    if y is None:
        values = [fn(order) for order in orders(x, alike)]
    else:
        y_orders = list(orders(y, alike))
        values = [fn(x_order, y_order) for x_order in orders(x, alike) for y_order in y_orders]
    if isinstance(values[0], tuple):
        return tuple(statistics(component) for component in zip(*values, strict=True))
    return statistics(values)


def statistics(values: Sequence[float | None]) -> Statistics | None:
    if None in values:
        assert set(values) == {None}  # a score that is undefined is so in every order
        return None
    return Statistics(math.fsum(values) / len(values), min(values), max(values))


def flat(groups: Groups) -> list[Item]:
    return list(itertools.chain.from_iterable(groups))


def ranks(ranked: Ranking) -> dict[Item, int]:
    return {item: rank for rank, item in enumerate(ranked, start=1)}


def weight(rank: float, phi: float) -> float:
    """What rank r, or an average rank, is worth: (1−φ)φ^{r−1}."""
    return (1 - phi) * phi ** (rank - 1)


# Set | set: Moffat et al. (2024), Eqs. 1 and 2; 0 where the divisor is 0


def precision(observed: Collection[Item], reference: Collection[Item]) -> float:
    found = sum(item in reference for item in observed)
    return found / len(observed) if observed else 0.0


def recall(observed: Collection[Item], reference: Collection[Item]) -> float:
    return precision(reference, observed)  # Eq. 3


# Ranking | set: RBP, Eq. 4, with gains; an item that is not in `gains` is unjudged


def rbp(
    ranked: Ranking, gains: Mapping[Item, float], phi: float, depth: int | None = None, gmax: float = 1.0
) -> tuple[float, float]:
    """(lower, upper): what is unjudged, and all below `depth` or the end, gains 0, or else gmax."""
    seen = ranked[:depth]
    lower = math.fsum(weight(rank, phi) * gains.get(item, 0) for item, rank in ranks(seen).items())
    upper = math.fsum(weight(rank, phi) * gains.get(item, gmax) for item, rank in ranks(seen).items())
    return lower, upper + gmax * phi ** len(seen)  # all ranks after n weigh φ^n together


# Set | ranking: RBR, Eqs. 6 and 9


def rbr(items: Collection[Item], ranked: Ranking, phi: float) -> tuple[float, float]:
    """(lower, upper): items that are not ranked come never, or else next."""
    best = [*ranked, *(set(items) - set(ranked))]  # in any order: each of them counts
    lower, upper = (
        math.fsum(weight(rank, phi) for item, rank in ranks(ranking).items() if item in items)
        for ranking in (ranked, best)
    )
    return lower, upper


# Ranking | ranking: RBA, Eq. 11 and Algorithm 1


def rba(x: Ranking, y: Ranking, phi: float) -> tuple[float, float]:
    """(lower, upper): no further item in common, or else each ranking goes on with the items that only the other
    holds, in the other's order, and then both go on with the same items.
    """
    longest_x = [*x, *(item for item in y if item not in x)]
    longest_y = [*y, *(item for item in x if item not in y)]
    return aligned(x, y, phi), aligned(longest_x, longest_y, phi) + phi ** len(longest_x)


def aligned(x: Ranking, y: Ranking, phi: float) -> float:
    """RBA's sum over the common items (Eq. 11)."""
    x_rank, y_rank = ranks(x), ranks(y)
    return math.fsum(weight((x_rank[item] + y_rank[item]) / 2, phi) for item in x if item in y_rank)


def rba_share(x: Groups, y: Groups, phi: float) -> float:
    """RBA's lower bound with ties="share": tied items share their weight equally, Σ √(share in x · share in y).

    A definition on the groups, not an average over the orders.
    """
    x_share, y_share = shares(x, phi), shares(y, phi)
    return math.fsum(math.sqrt(x_share[item] * y_share[item]) for item in x_share if item in y_share)


def shares(groups: Groups, phi: float) -> dict[Item, float]:
    rank_of = ranks(flat(groups))
    return {
        item: math.fsum(weight(rank_of[other], phi) for other in group) / len(group)
        for group in groups
        for item in group
    }


# Any weights of the ranks: weight_of(rank)


def rbr_of_weights(items: Collection[Item], ranked: Ranking, weight_of: Callable[[int], float]) -> tuple[float, float]:
    """(lower, upper) of RBR: items that are not ranked come never, or else next."""
    best = [*ranked, *(item for item in items if item not in ranked)]
    lower, upper = (
        math.fsum(weight_of(rank) for item, rank in ranks(ranking).items() if item in items)
        for ranking in (ranked, best)
    )
    return lower, upper


def rba_of_weights(x: Ranking, y: Ranking, weight_of: Callable[[int], float]) -> float:
    """RBA's sum over the common items of two rankings that do not go on."""
    x_rank, y_rank = ranks(x), ranks(y)
    return math.fsum(math.sqrt(weight_of(x_rank[item]) * weight_of(y_rank[item])) for item in x if item in y_rank)


def med_by_judgments(x: Ranking, y: Ranking, weight_of: Callable[[int], float]) -> float:
    """The largest difference of Σ weight over the relevant items, by trying every set of relevant items."""
    x_rank, y_rank, items = ranks(x), ranks(y), list(dict.fromkeys([*x, *y]))
    differences = []
    for judged in itertools.product((False, True), repeat=len(items)):
        relevant = [item for item, is_relevant in zip(items, judged, strict=True) if is_relevant]
        scores = (math.fsum(weight_of(rank[item]) for item in relevant if item in rank) for rank in (x_rank, y_rank))
        differences.append(abs(next(scores) - next(scores)))
    return max(differences)


def med(x: Ranking, y: Ranking, weight_of: Callable[[int], float]) -> float:
    """The same, from the two sets of relevant items that favour one ranking at every item."""
    x_rank, y_rank = ranks(x), ranks(y)
    gaps = [
        (weight_of(x_rank[item]) if item in x_rank else 0.0) - (weight_of(y_rank[item]) if item in y_rank else 0.0)
        for item in {*x, *y}
    ]
    return max(math.fsum(gap for gap in gaps if gap > 0), math.fsum(-gap for gap in gaps if gap < 0))


# Ranking | ranking: RBO, Eq. 5 and Webber et al. (2010)


def rbo(x: Ranking, y: Ranking, phi: float) -> tuple[float, float, float | None]:
    """(lower, upper, extrapolated), by the agreement that Webber et al. assume at each depth.

    With the lengths s ≤ l, and X_d items in the top d of both rankings (the shorter one just ends at s):

    - lower (RBO_MIN): nothing unseen is ever shared. X_d, and X_l beyond l.
    - upper (RBO_MAX): each unseen item of the shorter ranking matches one that the longer one has shown,
      X_d + (d−s); beyond l two more items match at each depth, until all do.
    - extrapolated (RBO_EXT): an unseen item of the shorter ranking matches at the rate seen at s,
      X_d + (d−s)·X_s/s; beyond l the agreement stays as it is. None if a ranking is empty: no rate is seen.
    """
    s, longest = sorted((len(x), len(y)))
    overlaps = [len(set(x[:depth]) & set(y[:depth])) for depth in range(longest + 1)]
    worst, best = [], []
    for depth in range(1, longest + 1):
        worst.append(overlaps[depth] / depth)
        best.append((overlaps[depth] + max(depth - s, 0)) / depth)
    lower = over_depths(worst, phi) + beyond(overlaps[longest], longest, phi)[0]
    upper = over_depths(best, phi) + beyond(overlaps[longest] + longest - s, longest, phi)[1]
    if s == 0:
        return lower, upper, None
    rate = overlaps[s] / s
    likely = [(overlaps[depth] + max(depth - s, 0) * rate) / depth for depth in range(1, longest + 1)]
    return lower, upper, over_depths(likely, phi) + phi**longest * likely[-1]


def over_depths(agreements: Sequence[float], phi: float) -> float:
    """Σ over the depths 1, 2, … of agreement times weight."""
    return math.fsum(weight(depth, phi) * agreement for depth, agreement in enumerate(agreements, start=1))


@functools.cache
def beyond(overlap: int, depth: int, phi: float) -> tuple[float, float]:
    """RBO's (least, most) from the depths beyond `depth`, where two rankings of that length share `overlap` items.

    An overlap never shrinks; from one depth to the next it grows by at most 2, and it is at most the depth.
    Summed term by term: what follows depth d weighs φ^d, and agreement is at most 1.
    """
    least, most = [], []
    d = depth
    while phi**d > 1e-17:
        d += 1
        least.append(weight(d, phi) * overlap / d)
        most.append(weight(d, phi) * min(d, overlap + 2 * (d - depth)) / d)
    return math.fsum(least), math.fsum(most)


def rbo_top_weight(phi: float, depth: int) -> float:
    """Webber's W: the share of an RBO that the first `depth` ranks decide, 1/d of the agreement at d for each rank.

    >>> round(rbo_top_weight(0.9, 10), 4)
    0.8556
    """
    return over_depths([1.0] * depth, phi) + beyond(depth, depth, phi)[0]


def rbo_variant(x: Groups, y: Groups, phi: float, ties: str) -> tuple[float, float, float | None]:
    """(lower, upper, extrapolated) with the agreement of Corsi and Urbano (SIGIR 2024), ties = "w", "a" or "b".

    A definition on the groups, not an average over the orders. Each item is in the top d to a degree
    (`inclusion`), X_d is the sum of the products of the two degrees, and the agreement is X_d divided by

    - w: the mean of the two sides' Σ degree;
    - a: d;
    - b: the geometric mean of the two sides' Σ degree²;

    where the shorter ranking counts as d beyond its end, s. There the upper bound adds to X_d the degrees of
    the first d−s items that only the longer ranking holds; the extrapolation adds (d−s)·(agreement at s) times
    the mean degree of all such items whose degree is positive. Beyond both ends all is as in untied RBO.
    """
    short, long = sorted((x, y), key=lambda groups: len(flat(groups)))
    s, longest = len(flat(short)), len(flat(long))
    only_long = [item for item in flat(long) if item not in flat(short)]
    common = longest - len(only_long)
    worst, best, likely = [], [], []
    rate = None
    for depth in range(1, longest + 1):
        p, q = inclusion(short, depth, ties), inclusion(long, depth, ties)
        overlap = math.fsum(p[item] * q[item] for item in p if item in q)
        unseen = max(depth - s, 0)
        p_size, q_size = (
            math.fsum(degree**2 if ties == "b" else degree for degree in side.values()) for side in (p, q)
        )
        if unseen:
            p_size = depth
        divisor = {"w": (p_size + q_size) / 2, "a": depth, "b": math.sqrt(p_size * q_size)}[ties]
        if depth <= s:
            rate = overlap / divisor
        worst.append(overlap / divisor)
        best.append((overlap + math.fsum(q[item] for item in only_long[:unseen])) / divisor)
        if rate is not None:
            positive = [q[item] for item in only_long if q[item] > 0]
            added = unseen * rate * math.fsum(positive) / len(positive) if unseen else 0.0
            likely.append((overlap + added) / divisor)
    lower = over_depths(worst, phi) + beyond(common, longest, phi)[0]
    upper = over_depths(best, phi) + beyond(common + longest - s, longest, phi)[1]
    if rate is None:
        return lower, upper, None
    return lower, upper, over_depths(likely, phi) + phi**longest * (common + (longest - s) * rate) / longest


def inclusion(groups: Groups, depth: int, ties: str) -> dict[Item, float]:
    """To what degree each item is in the top `depth`: for "w" fully as soon as its group starts, else the share of
    the orders that place it there.
    """
    degrees = {}
    start = 1
    for group in groups:
        places = min(max(depth - start + 1, 0), len(group))  # of the group's, those within the depth
        for item in group:
            degrees[item] = float(places > 0) if ties == "w" else places / len(group)
        start += len(group)
    return degrees


# Ranking | ranking: the tau family, on two rankings of the same items. None where there is no pair to count.


def tau(x: Ranking, y: Ranking) -> float | None:
    """Kendall's tau of untied rankings: (pairs in the same order − pairs in opposite order) / pairs."""
    y_rank = same_items_ranks(x, y)
    signs = [1 if y_rank[upper] < y_rank[lower] else -1 for upper, lower in itertools.combinations(x, 2)]
    return sum(signs) / len(signs) if signs else None


def tau_ap(x: Ranking, y: Ranking) -> float | None:
    """Yilmaz et al. (2008) on untied rankings, y the truth: at each rank of x but the first, the share of the items
    above that the truth has above as well; their mean, scaled to [−1, 1].
    """
    y_rank = same_items_ranks(x, y)
    shares_right = [
        sum(y_rank[above] < y_rank[item] for above in x[:offset]) / offset
        for offset, item in enumerate(x)
        if offset > 0
    ]
    return 2 * math.fsum(shares_right) / len(shares_right) - 1 if shares_right else None


def tau_b(x: Groups, y: Groups) -> float | None:
    """Kendall's tau_b of tied rankings: (same order − opposite order) / √(pairs not tied in x · not tied in y).

    A definition on the groups, not an average over the orders. None if a ranking is one group.
    """
    same_items_ranks(flat(x), flat(y))
    x_group, y_group = group_numbers(x), group_numbers(y)
    total = x_untied = y_untied = 0
    for a, b in itertools.combinations(x_group, 2):
        x_sign, y_sign = sign(x_group[a] - x_group[b]), sign(y_group[a] - y_group[b])
        total += x_sign * y_sign
        x_untied += x_sign != 0
        y_untied += y_sign != 0
    return total / math.sqrt(x_untied * y_untied) if x_untied and y_untied else None


def tau_ap_b(x: Groups, y: Groups) -> float | None:
    """tau_AP,b of Urbano and Marrero (2017), symmetric: the mean of both directions. None if a ranking is one group.

    A definition on the groups, not an average over the orders. In one direction, for each item outside the
    first group: the share of the items in earlier groups that the other ranking has strictly earlier as well;
    their mean, scaled to [−1, 1].
    """
    same_items_ranks(flat(x), flat(y))
    if len(x) < 2 or len(y) < 2:
        return None
    return (tau_ap_b_directed(x, y) + tau_ap_b_directed(y, x)) / 2


def tau_ap_b_directed(x: Groups, y: Groups) -> float:
    y_group = group_numbers(y)
    shares_right = []
    for number, group in enumerate(x):
        above = flat(x[:number])
        for item in group if above else ():
            shares_right.append(sum(y_group[other] < y_group[item] for other in above) / len(above))
    return 2 * math.fsum(shares_right) / len(shares_right) - 1


def union_completed(x: Groups, y: Groups) -> tuple[list[list[Item]], list[list[Item]]]:
    """Both rankings over the union of their items: what one lacks is appended to it as one last tie group.

    >>> union_completed([["a"], ["b"]], [["b", "c"]])
    ([['a'], ['b'], ['c']], [['b', 'c'], ['a']])
    """

    def completed(groups: Groups, other: Groups) -> list[list[Item]]:
        missing = [item for item in flat(other) if item not in flat(groups)]
        return [list(group) for group in groups] + ([missing] if missing else [])

    return completed(x, y), completed(y, x)


def same_items_ranks(x: Ranking, y: Ranking) -> dict[Item, int]:
    if set(x) != set(y):
        raise ValueError("the rankings hold different items")
    return ranks(y)


def group_numbers(groups: Groups) -> dict[Item, int]:
    return {item: number for number, group in enumerate(groups) for item in group}


def sign(number: int) -> int:
    return (number > 0) - (number < 0)


# Bounds by completion. The functions above state the bounds of untied prefixes; those below find them by trying
# every continuation of the prefixes to rank n, and adding the least and the most that the ranks beyond n can give
# *once the first n are known*. If the least and the most found so are the bounds stated, for every n tried, the
# bounds are tight: a continuation attains them. The lower bounds of RBR, RBA and RBO are attained only by rankings
# that never again show an item of the other; where every item must turn up in the end they are infima, approached
# and not reached.


class Bounds(NamedTuple):
    """What all completions to rank n span: with the ranks beyond n, and by the sums to rank n alone.

    `head_minimum` and `head_maximum` need no argument about what is beyond n. RBO's bounds are at most φ^n above
    them; RBA's at most 2·Σ_{t>n} weight((1+t)/2), a shared item with one rank beyond n being worth weight((1+t)/2)
    at the most. That pins the bounds down if φ^n is small, which checks the tails themselves.
    """

    lower: float
    upper: float
    head_minimum: float
    head_maximum: float


def extensions(ranked: Ranking, others: Ranking, n: int, fresh: str) -> Iterator[list[Item]]:
    """Every way to continue `ranked` to n items: at each rank an item of `others` not yet ranked, or a fresh one.

    Fresh items occur nowhere else, so one (named by its rank) stands for all; so does it for an item of `others`
    that this ranking never shows.

    >>> list(extensions(["a"], ["b"], 3, "x"))
    [['a', 'b', ('x', 3)],
     ['a', ('x', 2), 'b'],
     ['a', ('x', 2), ('x', 3)]]
    """
    if len(ranked) > n:
        raise ValueError(f"{len(ranked)} items are more than n={n}")
    if len(ranked) == n:
        yield list(ranked)
        return
    for item in [*(other for other in others if other not in ranked), (fresh, len(ranked) + 1)]:
        yield from extensions([*ranked, item], others, n, fresh)


def completions(x: Ranking, y: Ranking, n: int) -> Iterator[tuple[list[Item], list[Item]]]:
    """Every way to continue both rankings to n items, up to the names of the unknown items.

    First x goes on with items of y that it lacks and fresh items; then y goes on with items of the *continued* x
    that it lacks, the fresh ones included, and fresh items of its own. So an unknown item is x's alone, y's alone
    or shared, at any pair of ranks beyond the prefixes, and a known item of one ranking is found at any rank of the
    other or not at all.
    """
    for whole_x in extensions(x, y, n, "x"):
        for whole_y in extensions(y, whole_x, n, "y"):
            yield whole_x, whole_y


def bounds(sums: Iterator[tuple[float, float, float]]) -> Bounds:
    """The bounds from (sum to rank n, least beyond, most beyond) for each completion."""
    rows = list(sums)
    return Bounds(
        min(head + least for head, least, _ in rows),
        max(head + most for head, _, most in rows),
        min(head for head, _, _ in rows),
        max(head for head, _, _ in rows),
    )


def rbo_by_completion(x: Ranking, y: Ranking, phi: float, n: int) -> Bounds:
    """RBO's bounds over all completions to rank n; `beyond` says what follows."""

    def sums() -> Iterator[tuple[float, float, float]]:
        for whole_x, whole_y in completions(x, y, n):
            overlaps = [len(set(whole_x[:depth]) & set(whole_y[:depth])) for depth in range(1, n + 1)]
            head = over_depths([overlap / depth for depth, overlap in enumerate(overlaps, start=1)], phi)
            yield head, *beyond(overlaps[-1] if n else 0, n, phi)

    return bounds(sums())


def rba_by_completion(x: Ranking, y: Ranking, phi: float, n: int) -> Bounds:
    """RBA's bounds over all completions to rank n.

    The most beyond n: each of the u items that one ranking holds alone comes next in the other, best ranked first,
    at n+1..n+u, and after that both are aligned. Nothing does better. A ranking that has an item from the other's
    first n at rank j, and at an earlier rank i > n one that the other holds at t > n or not at all, gains by swapping
    them, since weight is a product of a factor for each ranking; and of the pairings that remain the sorted one is
    best (rearrangement).
    """

    def sums() -> Iterator[tuple[float, float, float]]:
        for whole_x, whole_y in completions(x, y, n):
            alone_x = [rank for item, rank in ranks(whole_x).items() if item not in whole_y]
            alone_y = [rank for item, rank in ranks(whole_y).items() if item not in whole_x]
            found = [
                weight((rank + other) / 2, phi)
                for alone in (alone_x, alone_y)
                for other, rank in enumerate(alone, start=n + 1)
            ]
            yield aligned(whole_x, whole_y, phi), 0.0, math.fsum(found) + phi ** (n + len(alone_x))

    return bounds(sums())


def rbr_by_completion(items: Collection[Item], ranked: Ranking, phi: float, n: int) -> Bounds:
    """RBR's bounds over all continuations of the ranking to rank n; beyond it the missing items come never, or next."""

    def sums() -> Iterator[tuple[float, float, float]]:
        for whole in extensions(ranked, sorted(items, key=repr), n, "fresh"):
            head = math.fsum(weight(rank, phi) for item, rank in ranks(whole).items() if item in items)
            missing = sum(item not in whole for item in items)
            yield head, 0.0, math.fsum(weight(n + i, phi) for i in range(1, missing + 1))

    return bounds(sums())
