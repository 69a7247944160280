"""Models of a user who reads a list from the top and stops somewhere: SDCG, INSQ, INST, BPM and NERR.

The user goes on from rank i to rank i + 1 with probability C_i, so rank i is read with probability w_i = Π_{j<i} C_j.
The value is the mean gain of what is read (C/W/L; Moffat et al., 2017, Azzopardi et al., 2019):

    V = Σ_i w_i · gain_i / Σ_i w_i

Gains run from 0 for labels up to `min_rel` to 1 for labels from `max_rel` on. Without a cutoff the user reads at most
1,000 ranks, as in cwl_eval: longer lists are cut there, and shorter ones are followed by documents without a gain.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tiewise.data.columns import Floats
from tiewise.errors import MeasureError
from tiewise.metrics.catalogue.first_relevant import law_of_first
from tiewise.metrics.catalogue.parts import OfGains, log_discount
from tiewise.metrics.definition import Law, Measure, param
from tiewise.metrics.grouped_judgments import GroupedJudgments, GroupSums, Order
from tiewise.metrics.hypergeometric import hypergeometric
from tiewise.metrics.names import measure
from tiewise.metrics.segments import safe_divide

__all__ = ["BPM", "INSQ", "INST", "NERR8", "NERR9", "NERR10", "NERR11", "SDCG"]

#: How many ranks a user reads at most, if there is no cutoff, and the largest cutoff: there is a weight for each rank.
RANKS, MAX_RANKS = 1000, 10_000_000


def explain_clipped_labels(measures: Iterable[Measure], labels: Floats) -> Iterator[str]:
    """A note on each scale of user models, of some measures, that ends below the highest label.

    >>> list(explain_clipped_labels([INST, INST(max_rel=3)], np.array([0.0, 3.0])))
    ['INST(max_rel=1): labels above 1 (up to 3) count as 1. Give the highest label of the scale, as in max_rel=3.']
    """
    highest, clipped = float(labels.max(initial=0.0)), dict[float, list[str]]()
    for one in measures:
        if isinstance(one, UserModel) and one.max_rel < highest:
            clipped.setdefault(one.max_rel, []).append(one.name)
    for limit, names in clipped.items():
        yield (
            f"{', '.join(names)}: labels above {limit:g} (up to {highest:g}) count as {limit:g}. Give the highest "
            f"label of the scale, as in max_rel={highest:g}."
        )


class Reading(NamedTuple):
    """What the users of a model read, for each query: means over the users."""

    gain: Floats  #: of all that is read, Σ w_i · gain_i
    ranks: Floats  #: that are read, Σ w_i
    unstopped: Floats  #: the share of users who would read on below the last rank, w_{N+1}


class UserModel(OfGains):
    """A user who reads a list from the top and stops somewhere."""

    min_rel: float = param(0, least=0)
    max_rel: float = param(1, above=0, shown=True)
    limits = (0.0, 1.0)

    def __init__(self, /, **params: Any):
        super().__init__(**params)
        if not self.min_rel < self.max_rel:
            raise MeasureError(
                f"{self.stem}: min_rel={self.min_rel:g} is not below max_rel={self.max_rel:g}. They are the lowest and "
                "the highest label of the scale."
            )
        if self.ranks > MAX_RANKS:
            raise MeasureError(f"{self.name}: the cutoff may be at most {MAX_RANKS:,}.")

    @property
    def ranks(self) -> int:
        """The number of ranks that a user reads at most, whether the list has them or not."""
        return RANKS if self.cutoff is None else self.cutoff

    def gain(self, label: Floats) -> Floats:
        return (np.clip(label, self.min_rel, self.max_rel) - self.min_rel) / (self.max_rel - self.min_rel)

    def depth(self, q: GroupedJudgments) -> NDArray[Any]:
        return np.minimum(q.length, self.ranks)

    def found_gain(self, order: Order) -> Floats:
        """The gain of each document within the ranks that a user may read."""
        within = order.rank <= UserModel.depth(self, order.grouped)[order.query]
        return np.where(within, self.gain(order.label), 0.0)

    def read(self, order: Order) -> Reading:
        """What is read in one order."""
        raise NotImplementedError


# -- weights that do not depend on gains ----------------------------------------------------------------------


class _Weighted(UserModel):
    """A user whose patience depends on the rank alone: w_i is a weight of the rank."""

    def weight(self, rank: Floats) -> Floats:
        raise NotImplementedError

    def payoff(self, rank: Floats) -> Floats:  # type: ignore[override]  # it ignores `seen`
        return self.weight(rank)

    def divisor(self, q: GroupedJudgments) -> NDArray[Any]:
        return np.full(q.n_queries, self.weight(np.arange(1.0, self.ranks + 1)).sum())

    def read(self, order: Order) -> Reading:
        gain = order.sum(self.found_gain(order) * self.weight(order.rank))
        unstopped = self.weight(np.array([self.ranks + 1.0])) if self.cutoff is None else np.zeros(1)
        return Reading(gain, self.divisor(order.grouped), np.repeat(unstopped, order.n_queries))


class _SDCG(_Weighted):
    """Scaled DCG: DCG over the DCG of k documents with the highest label.

    >>> SDCG(max_rel=2).of("(20)1", k=3)
    SDCG(max_rel=2)@3 0.5000 [0.4134, 0.5866]
    """

    dcg: str = param("log2", choices=("log2",))

    def weight(self, rank: Floats) -> Floats:
        return 1.0 / log_discount(rank)


def _insq_weight(rank: Floats, goal: float) -> Floats:
    """C_i = ((i + 2T − 1) / (i + 2T))², so that w_i = (2T / (i + 2T − 1))²."""
    return (2 * goal / (rank + 2 * goal - 1)) ** 2


class _INSQ(_Weighted):
    """The mean gain of the ranks read by a user who goes on from rank i with probability ((i + 2T − 1) / (i + 2T))².

    T is the gain that the user looks for (Moffat et al., 2012).

    >>> INSQ.of("(10)1")
    INSQ(max_rel=1) 0.3775 [0.2696, 0.4853]
    """

    takes_cutoff = False
    T: float = param(1.0, above=0)

    def weight(self, rank: Floats) -> Floats:
        return _insq_weight(rank, self.T)


# -- weights that depend on the gains above -------------------------------------------------------------------


class _Adaptive(UserModel):
    """A user whose patience depends on the gains seen, so that the value is not a sum over documents."""

    additive = False

    def values(self, order: Order) -> Floats:
        reading = self.read(order)
        return reading.gain / reading.ranks


class _NERR(_Adaptive):
    """A user who goes on from rank i with probability a_i · (1 − gain_i), so that w_i = A_i · Π_{j<i} (1 − gain_j).

    The best order is by descending gain: theory.md, user models.
    """

    def patience(self, rank: Floats) -> Floats:
        """A_i = Π_{j<i} a_j."""
        raise NotImplementedError

    def depth(self, q: GroupedJudgments) -> NDArray[Any]:
        """Nobody reads below a document of gain 1."""
        return np.minimum(super().depth(q), _first_end(q, q.in_group(self.gain(q.label) == 1) > 0))

    def read(self, order: Order) -> Reading:
        patience = self.patience(np.arange(1.0, self.ranks + 2))
        gain = self.found_gain(order)
        stop = order.product_before(1 - gain) * gain  # the probability to stop at this document because of its gain
        rank = np.minimum(order.rank, self.ranks).astype(np.int64) - 1
        never = np.ones(order.n_queries)
        np.multiply.at(never, order.query, 1 - gain)
        total = np.cumsum(patience)
        # Summed by parts, Σ w_i is the mean of Σ_{j≤i} A_j over the ranks i where the user stops because of a gain.
        ranks = order.sum(stop * total[rank]) + never * total[self.ranks - 1]
        unstopped = never * (patience[-1] if self.cutoff is None else 0.0)
        return Reading(order.sum(stop * patience[rank]), ranks, unstopped)

    def law(self, q: GroupedJudgments) -> Law:
        """With gains of 0 and 1 alone, V = A_r / Σ_{i≤r} A_i for the rank r of the first relevant document."""
        gain, depth = self.gain(q.label), self.depth(q)
        is_partial = (gain > 0) & (gain < 1) & (q.start < depth[q.query])
        mean = np.where(q.retrieved(is_partial) > 0, np.nan, self.values(q.worst(self)))
        variance = np.where(np.isnan(mean), np.nan, 0.0)
        tied, _ = q.tied_groups
        has_gain = q.in_group(gain > 0) > 0
        is_first = has_gain & (q.above_group(has_gain.astype(np.float64)) == 0) & (q.group_start < depth[q.group_query])
        groups = tied[(is_first & ~np.isnan(mean[q.group_query]))[tied]]
        patience = self.patience(np.arange(1.0, self.ranks + 1))
        worth = patience / np.cumsum(patience)
        inside = q.inside(depth)[groups].astype(np.int64)
        for block in GroupSums(q, gain).blocks(groups, inside):
            found = law_of_first(block, worth[np.minimum(block.rank, self.ranks).astype(np.int64) - 1])
            query = q.group_query[block.groups]
            assert found.variance is not None
            mean[query], variance[query] = found.mean[:, 0], found.variance()[:, 0]
        return Law(mean, lambda: variance)


class _NERR8(_NERR):
    """Nearly ERR (Azzopardi et al., 2021, Eq. 8): a user goes on with probability 1 − gain, up to rank k.

    >>> NERR8(max_rel=2).of("(20)1", k=3)
    NERR8(max_rel=2)@3 0.7500 [0.5000, 1.0000]
    """

    def patience(self, rank: Floats) -> Floats:
        return np.ones_like(rank)


class _NERR9(_NERR):
    """Nearly ERR (Azzopardi et al., 2021, Eq. 9): a user goes on from rank i with (1 − gain) · i / (i + 1), up to k.

    >>> NERR9(max_rel=2).of("(20)1", k=3)
    NERR9(max_rel=2)@3 0.6667 [0.3333, 1.0000]
    """

    def patience(self, rank: Floats) -> Floats:
        return 1.0 / rank


class _NERR10(_NERR):
    """Nearly ERR (Azzopardi et al., 2021, Eq. 10): a user goes on with probability p · (1 − gain).

    >>> NERR10(p=0.5, max_rel=2).of("(20)1")
    NERR10(max_rel=2, p=0.5) 0.6667 [0.3333, 1.0000]
    """

    takes_cutoff = False
    p: float = param(0.9, above=0, below=1)

    def patience(self, rank: Floats) -> Floats:
        return self.p ** (rank - 1)


class _NERR11(_NERR):
    """Nearly ERR (Azzopardi et al., 2021, Eq. 11): a user goes on as in INSQ, with that probability times 1 − gain.

    >>> NERR11(max_rel=2).of("(20)1")
    NERR11(max_rel=2) 0.6538 [0.3077, 1.0000]
    """

    takes_cutoff = False
    T: float = param(1.0, above=0)

    def patience(self, rank: Floats) -> Floats:
        return _insq_weight(rank, self.T)


class _INST(_Adaptive):
    """INSQ with a user who stops earlier if more gain was found: after rank i, T − G_i is still missing.

    C_i = ((i + 2T − G_i − 1) / (i + 2T − G_i))², where G_i is the gain of the first i ranks (Moffat et al., 2015). For
    T below 0.5 this need not be a probability.

    >>> INST.of("(10)1")
    INST(max_rel=1) 0.5260 [0.3287, 0.7233]
    """

    takes_cutoff = False
    T: float = param(1.0, least=0.5)

    def read(self, order: Order) -> Reading:
        # The best order is by descending gain: theory.md, user models.
        # From one document with a gain to the next, x_i = i + 2T − G_i grows by 1 with each rank. So the product of C_i
        # telescopes, and the sum of the weights is a difference of two values of ζ(2, x) = Σ_{n≥0} 1 / (x + n)².
        from scipy.special import zeta

        order = order.take(self.found_gain(order) > 0)
        gain, rank = self.gain(order.label), order.rank
        missing = 2 * self.T - (order.sum_before(gain) + gain)
        first = np.diff(order.query, prepend=-1) > 0
        end = np.append(np.where(first, self.ranks, rank), self.ranks)[1:]  # up to here nothing more is found
        near, far = rank + missing - 1, end + missing - 1
        start = np.full(order.n_queries, float(self.ranks))
        start[order.query[first]] = rank[first]  # up to here nothing is found
        weight = _insq_weight(start, self.T)[order.query] * order.product_before(safe_divide(near, far) ** 2)
        ranks = (2 * self.T) ** 2 * (zeta(2, 2 * self.T) - zeta(2, start + 2 * self.T))
        ranks += order.sum(weight * near**2 * (zeta(2, near + 1) - zeta(2, far + 1)))
        unstopped = _insq_weight(np.full(order.n_queries, self.ranks + 1.0), self.T)
        last = np.append(first, True)[1:]
        unstopped[order.query[last]] = (weight * safe_divide(near, far + 1) ** 2)[last]
        return Reading(order.sum(weight * gain), ranks, unstopped)


class _Stop(NamedTuple):
    """The tie group in which a user of BPM may stop: in no other group does the order of documents matter."""

    query: int
    above: float  # the gain of the groups above
    start: int
    inside: int  # the ranks of the group that may be read
    gains: Floats  # of its documents, in descending order


class _BPM(_Adaptive):
    """Bejeweled player model: the mean gain down to the rank where the gains add up to T, or to rank k.

    (Zhang et al., 2017, with fixed limits.)

    >>> BPM.of("0(10)1", k=4)
    BPM(max_rel=1)@4 0.4167 [0.3333, 0.5000]
    """

    sorted_extremes = False
    value_range = (0.0, 1.0)
    T: float = param(1.0, above=0)

    def _level(self, label: Floats) -> Floats:
        """The gain in units of labels: sums of whole numbers are exact."""
        return np.clip(label, self.min_rel, self.max_rel) - self.min_rel

    @property
    def _scale(self) -> float:
        return self.max_rel - self.min_rel

    def depth(self, q: GroupedJudgments) -> NDArray[Any]:
        """Nobody reads below the group in which the gains add up to T."""
        level = q.in_group(self._level(q.label))
        return np.minimum(super().depth(q), _first_end(q, q.above_group(level) + level >= self.T * self._scale))

    def read(self, order: Order) -> Reading:
        level, goal = np.where(self.found_gain(order) > 0, self._level(order.label), 0.0), self.T * self._scale
        above = order.sum_before(level)
        is_read = above < goal
        is_last = is_read & (above + level >= goal)
        ranks = np.full(order.n_queries, float(self.ranks))
        ranks[order.query[is_last]] = order.rank[is_last]
        unstopped = np.full(order.n_queries, float(self.cutoff is None))
        unstopped[order.query[is_last]] = 0.0
        return Reading(order.sum(np.where(is_read, level, 0.0)) / self._scale, ranks, unstopped)

    def _stops(self, q: GroupedJudgments) -> Iterator[_Stop]:
        """The group in which a user may stop, for each query that has one with several documents."""
        level, depth = self._level(q.label), self.depth(q)
        above = q.above_group(q.in_group(level))
        ends = q.group_start + q.group_size
        tied = (q.group_size > 1) & (q.group_start < depth[q.group_query]) & (ends >= depth[q.group_query])
        for group in np.flatnonzero(tied).tolist():
            query, first = int(q.group_query[group]), int(q.first[group])
            gains = np.zeros(int(q.group_size[group]))
            judged = level[first : first + int(q.n_judged[group])]
            gains[: len(judged)] = judged
            start = int(q.group_start[group])
            yield _Stop(query, float(above[group]), start, int(depth[query]) - start, -np.sort(-gains))

    def _outcomes(self, stop: _Stop) -> tuple[Floats, Floats] | None:
        """The values that the orders of a group can give, with their probabilities; None if its gains differ."""
        n, r, step = len(stop.gains), int(np.count_nonzero(stop.gains)), stop.gains[0]
        if r and stop.gains[r - 1] != step:
            return None
        # The user stops at the relevant document number `needed`, or at the last rank with fewer of them.
        needed = 1
        while needed <= r and stop.above + needed * step < self.T * self._scale:
            needed += 1
        slot = np.arange(needed - 1, min(n - r + needed, stop.inside) if needed <= r else needed - 1)
        chance = hypergeometric(np.full_like(slot, n), np.full_like(slot, r), slot)[:, needed - 1 :][:, :1]
        chance = chance.sum(axis=1) * (r - needed + 1) / (n - slot)
        fewer = np.arange(max(stop.inside - (n - r), 0), min(needed, r + 1, stop.inside + 1))
        values = (stop.above + needed * step) / (stop.start + 1 + slot), (stop.above + fewer * step) / self.ranks
        end = hypergeometric([n], [r], [stop.inside])[0][fewer]
        return np.concatenate(values) / self._scale, np.append(chance, end)

    def law(self, q: GroupedJudgments) -> Law:
        """Where the gains of the group differ in which a user may stop, there are only bounds."""
        mean = self.values(q.worst(self))
        variance, low, high, is_bound = np.zeros_like(mean), mean.copy(), mean.copy(), np.zeros(len(mean), dtype=bool)
        for stop in self._stops(q):
            outcomes, at = self._outcomes(stop), stop.query
            is_bound[at] = outcomes is None
            value, chance = (self._bounds(stop), np.nan) if outcomes is None else outcomes
            mean[at] = (value * chance).sum()
            variance[at] = ((value - mean[at]) ** 2 * chance).sum()
            low[at], high[at] = value.min(), value.max()
        return Law(mean, lambda: variance, lambda: (low, high, is_bound))

    def _bounds(self, stop: _Stop) -> Floats:
        """Values that no order leaves: the user stops after s documents of the group only if s of them can add up to T.

        And s − 1 of them can add up to less.
        """
        goal = self.T * self._scale
        most = stop.above + np.cumsum(stop.gains)[: stop.inside]
        least = stop.above + np.cumsum(stop.gains[::-1])[: stop.inside]
        rank = stop.start + 1.0 + np.arange(stop.inside)
        can_stop = (most >= goal) & (np.append(stop.above, least[:-1]) < goal)
        found = [np.maximum(goal, least)[can_stop] / rank[can_stop]]
        found += [np.minimum(most, goal + stop.gains[0])[can_stop] / rank[can_stop]]
        if least[-1] < goal:  # T need not be reached
            found += [np.array([least[-1], min(most[-1], goal)]) / self.ranks]
        return np.concatenate(found) / self._scale


def _first_end(q: GroupedJudgments, flags: NDArray[np.bool_]) -> Floats:
    """The last rank of the first flagged tie group of each query, infinite if there is none."""
    end = np.full(q.n_queries, np.inf)
    np.minimum.at(end, q.group_query[flags], (q.group_start + q.group_size)[flags])
    return end


SDCG = measure(_SDCG)
INSQ = measure(_INSQ)
NERR8 = measure(_NERR8)
NERR9 = measure(_NERR9)
NERR10 = measure(_NERR10)
NERR11 = measure(_NERR11)
INST = measure(_INST)
BPM = measure(_BPM)
