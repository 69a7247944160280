"""The exact expectation of a measure when scores have independent noise (theory.md, Eqs. 32 and 33).

Given the score y of document i itself, every other document j stands above it or not independently of the others, with
p_j(y) = P(S_j > y). So the documents above it are a Poisson-binomial number, which is convolved document by document,
and what remains is an integral over y:

    E = Σ_i gain_i · ∫ Σ_{a,b} P(A = a | y) P(B = b | y) payoff(1 + a + b, a) dF_i(y) / divisor

A counts the documents with a gain, B the others. Only documents within reach of the noise are convolved; those above
are certain. A group of equal scores that is out of reach of all others has the expectation of its ties.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tiewise.data.columns import Codes, Floats
from tiewise.metrics import engine
from tiewise.metrics.aggregation import MEAN, SUM
from tiewise.metrics.definition import Measure
from tiewise.metrics.grouped_judgments import GroupedJudgments
from tiewise.metrics.noise import NORMAL_REACH, NoiseLaw
from tiewise.metrics.scored_lists import ScoredLists
from tiewise.metrics.segments import safe_divide, segment_sum

#: The most multiplications for one measure; above it, the expectation is sampled.
MAX_COST = 4e9
#: The most nodes of one integral, and the most numbers in a block, which fit into a cache.
MAX_NODES, BLOCK = 1 << 13, 1 << 18


def has_formula(measure: Measure) -> bool:
    """Whether the expectation under noise is known: for a sum whose payoff depends on what stands above alone."""
    is_plain = type(measure).terms is Measure.terms or measure.passing(np.zeros(1)) is not None
    return is_plain and measure.additive and measure.part is None and measure.aggregation in (MEAN, SUM)


def expected_under_noise(
    measure: Measure, grouped: GroupedJudgments, lists: ScoredLists, law: NoiseLaw
) -> Floats | None:
    """The expectation of each query, (n_queries,); None if it would cost too much."""
    gain, means = measure.scaled_gain(grouped), engine.group_means(measure, grouped)
    near = _Neighbours.of(lists, lists.place[grouped.rows], law)
    is_isolated = near.equal == near.last - near.first  # a tie group out of reach of all others: it has a closed form
    needed = np.flatnonzero(~is_isolated & (gain != 0) & (near.above < measure.depth(grouped)[grouped.query]))
    terms = _terms(measure, grouped, gain, near, needed)
    if terms is None:
        return None
    alone = np.where(is_isolated[grouped.first], means, 0.0)
    total = segment_sum(grouped.group_query, alone, grouped.n_queries)
    total += segment_sum(grouped.query[needed], terms, grouped.n_queries)
    return safe_divide(total, engine.divisors(measure, grouped)) + measure.base(grouped)


class _Neighbours(NamedTuple):
    """For some documents of lists, which documents of the list may change places with them under a law."""

    lists: ScoredLists
    law: NoiseLaw
    place: Codes  # of the document itself
    first: Codes  # places of the first one within reach, and of the one after the last
    last: Codes
    above: Codes  # how many stand above all of these
    equal: Codes  # how many of them have the same score, itself included

    @classmethod
    def of(cls, lists: ScoredLists, place: Codes, law: NoiseLaw) -> _Neighbours:
        reach = 2 * law.scale * (NORMAL_REACH if law.name == "normal" else 1.0)
        first, last, equal = (np.empty(len(place), dtype=np.int64) for _ in range(3))
        query = lists.query[place]
        for one in np.unique(query).tolist():
            low, high = lists.offsets[one], lists.offsets[one + 1]
            own = np.flatnonzero(query == one)
            falling, score = -lists.score[low:high], -lists.score[place[own]]
            first[own] = low + np.searchsorted(falling, score - reach, side="left")
            last[own] = low + np.searchsorted(falling, score + reach, side="right")
            equal[own] = np.searchsorted(falling, score, side="right") - np.searchsorted(falling, score, side="left")
        return cls(lists, law, place, first, last, first - lists.offsets[query], equal)


def _terms(
    measure: Measure, grouped: GroupedJudgments, gain: Floats, near: _Neighbours, needed: Codes
) -> Floats | None:
    """The expected term of each document that is needed; None if they cost too much."""
    lists = near.lists
    own_gain = np.zeros(len(lists.score))  # of every document of the lists
    own_gain[lists.place[grouped.rows]] = gain
    passing = measure.passing(own_gain)
    weight = np.ones(len(own_gain)) if passing is None else passing
    has_gain = own_gain != 0 if measure.uses_seen and passing is None else np.zeros(len(own_gain), dtype=bool)
    counts = np.append(0, np.cumsum(has_gain))
    head = lists.offsets[lists.query[near.place[needed]]]
    width = (near.last - near.first)[needed]
    depth = measure.depth(grouped)[grouped.query[needed]] - near.above[needed]  # ranks that count, from the first near
    seen = counts[near.first[needed]] - counts[head]
    others = counts[near.last[needed]] - counts[near.first[needed]] - has_gain[near.place[needed]]
    nodes = _count_nodes(near.law, width)
    slots = np.minimum(depth, width)
    cost = nodes * width * (slots + others) + nodes * slots * (others + 1)
    if nodes.max(initial=0) > MAX_NODES or cost.sum() > MAX_COST:
        return None
    terms = np.empty(len(needed))
    for some in _alike(nodes * (slots + others + 1), width):
        rows = needed[some]
        y, chance = _integration_nodes(near, rows, int(nodes[some].max()))
        block = _Block(near, rows, y)
        a = block.convolve(has_gain, None, int(others[some].max()) + 1)
        b = block.convolve(~has_gain, None if passing is None else weight, int(slots[some].max()))
        reached = np.ones(len(rows))
        if passing is not None:
            above = zip(head[some], near.first[rows], strict=True)
            reached = np.array([np.prod(weight[low:high]) for low, high in above])
        start = near.above[rows][:, None]
        total = np.zeros(y.shape)
        for count in range(a.shape[-1]):
            rank = start + 1.0 + count + np.arange(b.shape[-1])
            payoff = measure.payoff(rank.astype(np.float64), np.full(rank.shape, float(count)) + seen[some][:, None])
            payoff = np.where(rank - start <= depth[some][:, None], payoff, 0.0)
            total += a[..., count] * np.einsum("ins,is->in", b, payoff)
        terms[some] = gain[rows] * reached * (total * chance).sum(axis=1)
    return terms


class _Block:
    """Some documents, and nodes of their own scores, (n_documents, n_nodes)."""

    def __init__(self, near: _Neighbours, rows: Codes, y: Floats):
        width = (near.last - near.first)[rows]
        column = np.arange(int(width.max()))
        is_there = column < width[:, None]
        self._places = near.first[rows][:, None] + np.where(is_there, column, 0)
        self._counts = is_there & (self._places != near.place[rows][:, None])  # the document itself does not
        self._score, self._law, self._y = near.lists.score, near.law, y

    def convolve(self, chosen: NDArray[np.bool_], weight: Floats | None, slots: int) -> Floats:
        """The probability that so many of the chosen documents stand above, each times a weight, up to `slots`.

        The result is (n_documents, n_nodes, slots).
        """
        found = np.zeros((*self._y.shape, slots))
        found[..., 0] = 1.0
        counts = self._counts & chosen[self._places]
        for column in np.flatnonzero(counts.any(axis=0)).tolist():
            place = self._places[:, column]
            p = _probability_above(self._law, self._score[place][:, None] - self._y)
            p = np.where(counts[:, column][:, None], p, 0.0)[..., None]
            up = found[..., :-1] * (p if weight is None else p * weight[place][:, None, None])
            found *= 1 - p
            found[..., 1:] += up
        return found


def _probability_above(law: NoiseLaw, difference: Floats) -> Floats:
    """P(s_j + ε > y) of the differences s_j − y."""
    if law.name == "uniform":
        return np.clip((difference / law.scale + 1) / 2, 0.0, 1.0)
    from scipy.special import ndtr  # in a function: it takes time to import

    return np.asarray(ndtr(difference / law.scale))


def _count_nodes(law: NoiseLaw, width: Codes) -> Codes:
    """How many nodes make the integral exact to 1e-9, with so many documents in reach."""
    if law.name == "uniform":  # between two kinks the integrand is a polynomial of a degree below the width
        return width * (width // 2 + 1)
    # The trapezoidal rule converges exponentially; what it follows has a width of about 1 / √(1 + .64 m).
    return np.ceil(2.5 * NORMAL_REACH * np.sqrt(1 + 0.64 * width)).astype(np.int64)


def _integration_nodes(near: _Neighbours, rows: Codes, n: int) -> tuple[Floats, Floats]:
    """Scores of some documents at which the integrand is taken, and their weights, (n_documents, n_nodes)."""
    law, scores = near.law, near.lists.score
    own = scores[near.place[rows]][:, None]
    if law.name == "normal":
        z = np.linspace(-NORMAL_REACH, NORMAL_REACH, n)
        chance = np.exp(-(z**2) / 2)
        return own + law.scale * z, np.broadcast_to(chance / chance.sum(), (len(rows), n))
    each = []
    for row in rows.tolist():
        score, centre = scores[near.first[row] : near.last[row]], scores[near.place[row]]
        low, high = centre - law.scale, centre + law.scale
        kinks = np.unique(np.clip(np.concatenate([score - law.scale, score + law.scale, [low, high]]), low, high))
        x, w = np.polynomial.legendre.leggauss(len(score) // 2 + 1)
        half = np.diff(kinks)[:, None] / 2
        each.append(((kinks[:-1, None] + half * (1 + x)).ravel(), (half * w).ravel() / (2 * law.scale)))
    most = max(len(y) for y, _ in each)
    y, chance = np.repeat(own, most, axis=1), np.zeros((len(rows), most))
    for place, (nodes, weights) in enumerate(each):
        y[place, : len(nodes)], chance[place, : len(nodes)] = nodes, weights
    return y, chance


def _alike(size: Codes, width: Codes) -> Iterator[Codes]:
    """Documents in blocks of about one width, of a limited size."""
    order = np.argsort(width, kind="stable")
    low = 0
    while low < len(order):
        limit = max(16, 2 * int(width[order[low]]))
        high = low + 1
        largest = int(size[order[low]])
        while high < len(order) and width[order[high]] <= limit:
            largest = max(largest, int(size[order[high]]))
            if largest * (high + 1 - low) > BLOCK:
                break
            high += 1
        yield order[low:high]
        low = high
