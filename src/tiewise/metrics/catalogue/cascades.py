"""Cascade measures, whose user stops at a document: ERR and nERR."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tiewise.data.columns import Floats
from tiewise.metrics.catalogue.parts import OfGains, clip_labels, exponential_gain, ideal_sum
from tiewise.metrics.definition import Law, param
from tiewise.metrics.grouped_judgments import GroupBlock, GroupedJudgments, Order
from tiewise.metrics.hypergeometric import hypergeometric
from tiewise.metrics.names import measure
from tiewise.metrics.segments import BLOCK, alike, row_sum

__all__ = ["ERR", "nERR"]


class _Cascade(OfGains):
    """A reader goes down the list and stops at a document with probability gain = (2^label − 1) / 2^max."""

    max: float = param(4, above=0, below=1000, shown=True)
    limits = (0.0, 1.0)

    def gain(self, label: Floats) -> Floats:
        return exponential_gain(clip_labels(self.max, label, self)) / 2.0**self.max

    def payoff(self, rank: Floats, seen: Floats) -> Floats:
        return 1 / rank

    def passing(self, gain: Floats) -> Floats:
        return 1 - gain

    def terms(self, order: Order) -> Floats:
        gain = self.gain(order.label)
        return gain * order.product_before(self.passing(gain)) * self.payoff(order.rank, order.rank)

    def law(self, block: GroupBlock) -> Law:
        reach = block.product_above(1 - self.gain(block.label))  # the chance to come as far as this group
        # m_s: the mean over orders of Π(1 − gain) of the first s documents; d_s = m_s − m_{s+1}, by a recurrence
        # of its own so that nothing cancels. Documents are added to the group one by one.
        reached = _reached(block.gain / block.size, block.inside)
        depth = int(reached.max())
        s, rank, within = block.slot[:, :depth], block.rank[:, :depth], block.within[:, :depth]
        items = block.size - block.relevant  # those without a gain are in already: m = 1 for s ≤ items
        m, d = np.where(s <= items, 1.0, 0.0), np.zeros_like(rank)
        for gain in block.gains.T[:, :, None]:
            added, theta = gain != 0, 1 - gain
            m_before, d_before = np.zeros_like(m), np.zeros_like(d)
            m_before[:, 1:], d_before[:, 1:] = m[:, :-1], d[:, :-1]
            total = items + 1
            d = np.where(added, (np.maximum(items - s, 0) * d + s * theta * d_before + gain * m) / total, d)
            m = np.where(added, (np.maximum(total - s, 0) * m + s * theta * m_before) / total, m)
            items = items + added
        mean = reach * row_sum(np.where(within, d / rank, 0.0))
        return Law(mean, lambda: reach**2 * _cascade_variance(block, reached))


class _ERR(_Cascade):
    """Expected reciprocal rank: a reader stops at a document with probability (2^label − 1) / 2^max.

    >>> ERR(max=1).of("(10)1")
    ERR(max=1) 0.4583 [0.3333, 0.5833]
    """


class _nERR(_Cascade):
    """ERR over the ERR of the best list of all judged documents.

    >>> nERR(max=1).of("(10)1")
    nERR(max=1) 0.7333 [0.5333, 0.9333]
    """

    def divisor(self, q: GroupedJudgments) -> NDArray[Any]:
        return ideal_sum(self, q)


#: A share of a sum that its rounding hides.
NEGLIGIBLE = 2.0**-60


def _reached(mean: Floats, most: Floats) -> Floats:
    """How many documents with some mean gain a reader reads with a probability that is not negligible, at most `most`.

    With ḡ for the mean gain, the chance to read s documents is at most (1 − ḡ)^s (Maclaurin's inequality). So what
    follows them adds at most that share of a sum that is at least ḡ. The cost of a tie group is thus linear in its
    size, however many of its documents are relevant.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        depth = np.log(NEGLIGIBLE * mean) / np.log1p(-mean)
    return np.ceil(np.clip(np.nan_to_num(depth, nan=np.inf), 1, most))


#: Above this cost of a tie group, in additions, the variance is left out.
CASCADE_COST = 5e8


def _cascade_variance(block: GroupBlock, reached: Floats) -> Floats:
    """The variance of Σ_j (D_{j−1} − D_j) · w(slot of the j-th relevant document), w = 1 / rank.

    D_j = Π(1 − gain) over the first j relevant documents. Which documents these are does not depend on their slots: the
    variance follows from the covariances of D, and from those of w at the slots (theory.md, Eq. 13).
    """
    relevant = block.relevant
    read = _reached(block.gain / relevant, np.minimum(relevant, reached))
    variance = np.full_like(block.start, np.nan)
    able = np.flatnonzero(read**2 * (10 * relevant + reached) <= CASCADE_COST)
    widths = read[able, 0].astype(np.int64)
    for part in (able[some] for some in alike(widths, widths * int(reached.max()))):
        columns = block.start[part], block.size[part], relevant[part], reached[part]
        is_cut = (reached == block.inside)[part] & (block.inside < block.size)[part]
        n_read = int(read[part].max())
        mean, covariance = _slot_weights(*columns, is_cut, n_read)
        lost, of_gains = _cascade_covariance(block.gains[part], n_read)
        rise = np.diff(mean, axis=1, append=0.0)  # summed by parts, Σ (D_{j−1} − D_j) · mean_j is Σ D_j · rise_j
        first = np.diff(lost, axis=1)
        products = np.diff(np.diff(of_gains, axis=1), axis=2) + first[:, :, None] * first[:, None, :]
        variance[part, 0] = np.einsum("gj,gjk,gk->g", rise, of_gains[:, 1:, 1:], rise)
        variance[part, 0] += np.einsum("gjk,gjk->g", products, covariance)
    are_equal = np.all((block.gains == block.gains[:, :1]) | (block.gains == 0), axis=1, keepdims=True)
    steps = are_equal & (10 * reached * (read + 1000) <= CASCADE_COST)
    for at in np.flatnonzero(np.isnan(variance) & steps).tolist():
        group = (float(column[at, 0]) for column in (block.start, block.size, block.inside, relevant, block.gains))
        variance[at] = _equal_gains_variance(int(reached[at, 0]), int(read[at, 0]), *group)
    return np.maximum(variance, 0.0)


def _equal_gains_variance(
    slots: int, n_read: int, start: float, size: float, inside: float, relevant: float, gain: float
) -> float:
    """The same if all gains of a tie group are equal, from its end to its start.

    What the slots from one on add, over the chance to come so far, depends on the relevant documents above alone: its
    mean and its variance follow from those of the next slot (theory.md, Eq. 13b).
    """
    weight = 1 / (start + np.arange(1.0, slots + 1))
    if not slots == inside < size:  # else the cutoff ends inside the group
        weight -= weight[-1]
    seen, theta = np.arange(float(n_read)), 1 - gain
    mean, variance = np.zeros((2, n_read + 1))
    for at in range(slots - 1, -1, -1):
        chance, other = np.clip([relevant - seen, size - at - relevant + seen], 0, size - at) / (size - at)
        apart = gain * weight[at] + theta * mean[1:] - mean[:-1]  # if the document is relevant, and if it is not
        variance[:-1] = chance * theta**2 * variance[1:] + other * variance[:-1] + chance * other * apart**2
        mean[:-1] += chance * apart
    return float(variance[0])


def _slot_weights(
    start: Floats, size: Floats, relevant: Floats, slots: Floats, is_cut: NDArray[np.bool_], n_read: int
) -> tuple[Floats, Floats]:
    """Means and covariances of the weights of the slots that the first relevant documents of tie groups have.

    Arguments are columns. A constant may be taken off the weights, unless the cutoff ends inside the group. Slots below
    those that are read have a weight of 0. Given that the k-th document has slot u, those before it have any k − 1 of
    the slots above, equally often: a slot v < u is that of the (k−1)-th with chance C(v−1, k−2) / C(u−1, k−1). So sums
    over v are running sums, which `sums` has for each j ≤ k, times c_k(u) = C(u−1, k−1) up to a factor.
    """
    n_groups, n_slots = len(start), int(slots.max())
    slot = np.arange(1.0, n_slots + 1)
    weight = np.where(slot <= slots, 1 / (start + slot) - np.where(is_cut, 0.0, 1 / (start + slots)), 0.0)
    drawn = np.minimum(slot - 1, size - 1).ravel()
    others, marked = (np.repeat(column - 1, n_slots) for column in (size, relevant))
    drawings = np.zeros((n_groups * n_slots, n_read))
    step = max(BLOCK // int(min(relevant.max(), n_slots)), 1)
    for low in range(0, len(drawn), step):
        rows = slice(low, low + step)
        found = hypergeometric(others[rows], marked[rows], drawn[rows])[:, :n_read]
        drawings[rows, : found.shape[1]] = found
    chance = drawings.reshape(n_groups, n_slots, n_read).swapaxes(1, 2)  # that the k-th document has slot u
    chance = chance * np.where(slot <= slots, relevant / size, 0.0)[:, None, :]
    mean = np.einsum("gku,gu->gk", chance, weight)
    covariance, sums, c = np.zeros((n_groups, n_read, n_read)), np.zeros_like(chance), np.ones(n_slots)
    for k in range(n_read):
        if k:
            scale = k / max(n_slots - k, 1)
            sums[:, :k, 1:] = np.cumsum(sums[:, :k, :-1], axis=2) * scale
            sums[:, :k, 0] = 0.0
            c = c * np.maximum(slot - k, 0) / max(n_slots - k, 1)
        apart = weight - mean[:, k, None]
        pays = np.divide(chance[:, k], c, out=np.zeros_like(weight), where=c > 0) * weight
        covariance[:, :k, k] = covariance[:, k, :k] = np.einsum("gju,gu->gj", sums[:, :k], pays)
        missed = np.maximum(1 - chance[:, k].sum(axis=1), 0.0)
        covariance[:, k, k] = (chance[:, k] * apart**2).sum(axis=1) + missed * mean[:, k] ** 2
        sums[:, k] = apart * c
    return mean, covariance


def _cascade_covariance(gains: Floats, t: int) -> tuple[Floats, Floats]:
    """The means of 1 − D_s, and Cov(D_s, D_u), for s, u = 0..t, of documents with these gains in random order.

    For s ≤ u, D_s is a product over a random set A of s documents, D_u over A and a set B of v = u − s others.
    Documents are added one by one; each falls into A, into B, or into neither. What is followed is 1 − D, so that small
    gains do not drown in 1: `dd`, `cd`, `dc` and `cc` are the means of D_s·D_u, (1−D_s)·D_u, D_s·(1−D_u) and
    (1−D_s)·(1−D_u) (theory.md, Eq. 12).
    """
    s, v = np.arange(t + 1.0)[None, :, None], np.arange(t + 1.0)[None, None, :]
    items = np.zeros((len(gains), 1, 1))
    dd = np.where(s + v <= items, 1.0, 0.0)
    cd, dc, cc = np.zeros_like(dd), np.zeros_like(dd), np.zeros_like(dd)

    def into_a(mean: Floats) -> Floats:
        return np.pad(mean, ((0, 0), (1, 0), (0, 0)))[:, :-1]

    def into_b(mean: Floats) -> Floats:
        return np.pad(mean, ((0, 0), (0, 0), (1, 0)))[:, :, :-1]

    for column in gains.T:
        live = np.flatnonzero(column)  # the groups that are full are done
        if not len(live):
            break
        gain = column[live][:, None, None]
        more, theta = items[live] + 1, 1 - gain
        keep, a, b = np.maximum(more - s - v, 0) / more, s / more, v / more
        d2, c1, c2, c0 = dd[live], cd[live], dc[live], cc[live]
        cc[live] = keep * c0 + b * into_b(c0 + gain * c1) + a * into_a(c0 + gain * (c1 + c2) + gain**2 * d2)
        cd[live] = keep * c1 + theta * (b * into_b(c1) + a * into_a(c1 + gain * d2))
        dc[live] = keep * c2 + b * into_b(c2 + gain * d2) + theta * a * into_a(c2 + gain * d2)
        dd[live] = keep * d2 + theta * (b * into_b(d2) + theta * a * into_a(d2))
        items[live] = more
    lost = dc[:, 0]  # the mean of 1 − D_u
    i, j = np.triu_indices(t + 1)
    covariance = np.zeros_like(dd)
    covariance[:, i, j] = covariance[:, j, i] = cc[:, i, j - i] - lost[:, i] * lost[:, j]
    return lost, covariance


ERR = measure(_ERR)
nERR = measure(_nERR)
