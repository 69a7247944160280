"""Cascade measures, whose user stops at a document: ERR and nERR."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tiewise.data.columns import Floats
from tiewise.metrics.catalogue.parts import OfGains, clip_labels, exponential_gain, ideal_sum
from tiewise.metrics.definition import param
from tiewise.metrics.grouped_judgments import GroupBlock, GroupedJudgments, Order
from tiewise.metrics.names import measure
from tiewise.metrics.segments import BLOCK, row_sum

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

    def moments(self, block: GroupBlock) -> tuple[Floats, Floats]:
        reach = block.product_above(1 - self.gain(block.label))  # the chance to come as far as this group
        # m_s: the mean over orders of Π(1 − gain) of the first s documents; d_s = m_s − m_{s+1}, by a recurrence
        # of its own so that nothing cancels. Documents are added to the group one by one.
        depth = _reached_slots(block)
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
        variance = np.full_like(mean, np.nan) if block.means_only else reach**2 * _cascade_variance(block)
        return mean, variance


class _ERR(_Cascade):
    """Expected reciprocal rank: a reader stops at a document with probability (2^label − 1) / 2^max.

    >>> ERR(max=1).of("(10)1")
    ERR(max=1) 0.4583 [0.3333, 0.5833]
    """


ERR = measure(_ERR)


class _nERR(_Cascade):
    """ERR over the ERR of the best list of all judged documents.

    >>> nERR(max=1).of("(10)1")
    nERR(max=1) 0.7333 [0.5333, 0.9333]
    """

    def divisor(self, q: GroupedJudgments) -> NDArray[Any]:
        return ideal_sum(self, q)


nERR = measure(_nERR)


#: A share of a sum that its rounding hides.
NEGLIGIBLE = 2.0**-60


def _reached_slots(block: GroupBlock) -> int:
    """The slots of tie groups that a reader reaches with a probability that is not negligible.

    With ḡ for the mean gain of a group, m_s ≤ (1 − ḡ)^s (Maclaurin's inequality). So the slots from s on add at most
    (1 − ḡ)^s / rank_0, of a sum that is at least ḡ / rank_0. The cost of a group is thus linear in its size, however
    many of its documents are relevant.
    """
    mean = block.gain / block.size
    with np.errstate(divide="ignore", invalid="ignore"):
        depth = np.log(NEGLIGIBLE * mean) / np.log1p(-mean)
    return int(np.ceil(np.clip(np.nan_to_num(depth, nan=np.inf), 1, block.inside)).max())


#: Above this cost in one query (relevant documents × slots², over its tie groups) the variance is left out.
CASCADE_COST = 2e7


def _cascade_variance(block: GroupBlock) -> Floats:
    """The variance of Σ_s (D_s − D_{s+1}) / rank_s, where D_s = Π(1 − gain) over the first s documents of a group."""
    variance = np.full_like(block.start, np.nan)
    able = np.flatnonzero(block.effort[:, 0] <= CASCADE_COST)
    a = np.where(block.within, 1.0 / block.rank, 0.0)
    none = np.zeros((len(a), 1))
    b = np.hstack([a, none]) - np.hstack([none, a])  # summed by parts, the statistic is Σ b_s·D_s
    blanks = (block.size - block.relevant)[:, 0]
    step = max(BLOCK // b.shape[1] ** 2, 1)
    for some in (able[low : low + step] for low in range(0, len(able), step)):
        covariance = _cascade_covariance(block.gains[some], blanks[some], block.inside[some, 0])
        t = covariance.shape[1]
        weight = b[some][:, :t]
        variance[some, 0] = np.einsum("gs,gsu,gu->g", weight, covariance, weight)
    return np.maximum(variance, 0.0)


def _cascade_covariance(gains: Floats, blanks: Floats, inside: Floats) -> Floats:
    """Cov(D_s, D_u) for s, u = 0..t in groups of documents with these gains and `blanks` without one.

    For s ≤ u, D_s is a product over a random set A of s documents, D_u over A and a set B of v = u − s others.
    Documents are added one by one; each falls into A, into B, or into neither. What is followed is 1 − D, so that small
    gains do not drown in 1: `dd`, `cd`, `dc` and `cc` are the means of D_s·D_u, (1−D_s)·D_u, D_s·(1−D_u) and
    (1−D_s)·(1−D_u) (theory.md, Eqs. 12 and 13).
    """
    t = int(inside.max())
    s, v = np.arange(t + 1.0)[None, :, None], np.arange(t + 1.0)[None, None, :]
    items = blanks[:, None, None].copy()
    dd = np.where(s + v <= items, 1.0, 0.0)
    cd, dc, cc = np.zeros_like(dd), np.zeros_like(dd), np.zeros_like(dd)

    def into_a(mean: Floats) -> Floats:
        moved = np.zeros_like(mean)
        moved[:, 1:] = mean[:, :-1]
        return moved

    def into_b(mean: Floats) -> Floats:
        moved = np.zeros_like(mean)
        moved[:, :, 1:] = mean[:, :, :-1]
        return moved

    for column in gains.T:
        added = column != 0
        if not added.all():  # the groups that are full are done
            live = np.flatnonzero(added)
            if not len(live):
                break
        else:
            live = np.arange(len(added))
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
    return covariance
