"""Rank-biased overlap (RBO) of two rankings with ties: how much their heads share, at every depth.

At depth d of a ranking only the group that holds rank d is open: its items are in the top d with one chance, those
before it surely, those after it not. So the overlap at d follows from four counts of common items, by whether their
groups are open or closed on either side, and each count is a running sum over the depths. All of RBO is a sum over
depths of such overlaps, with the weights of the depths (Webber et al. 2010).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tiewise.data.columns import Codes, Floats
from tiewise.errors import InputError
from tiewise.metrics.estimate import Bounds
from tiewise.rankings.pairs import Pair, Side, estimate
from tiewise.rankings.weights import Weights, check_phi, weights

__all__ = ["rbo_of"]


def rbo_of(pair: Pair, phi: float, ties: str = "average", extremes: bool = True) -> Bounds:
    """RBO of two rankings side by side; without `extremes`, the expectation alone."""
    phi = check_phi(phi)
    if ties not in ("average", "w", "a", "b"):
        raise InputError(f"ties={ties!r} is not possible for RBO. Use 'average', 'w', 'a' or 'b'.")
    w = weights(phi, pair.union)
    agreement = _average(pair, w, extremes) if ties == "average" else _variant(pair, w, ties)
    lower, upper, extrapolated = (
        None if values is None else estimate("RBO", values, extremes) for values in _sums(pair, w, agreement)
    )
    assert lower is not None
    return Bounds(lower, upper, extrapolated, measure="RBO")


# -- sums over depths --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Agreement:
    """How far two rankings agree at the depths to the end of the longer one: shared / of.

    Past the end of the shorter one, what is unseen of it adds to `shared`: at the most `best`; and `likely` times the
    agreement at its end, if agreement stays as it is.
    """

    shared: Floats  # (n_orders, n_depths): in expectation, and in the worst and in the best order
    of: Floats  # (n_depths,)
    best: Floats  # (n_depths,)
    likely: Floats  # (n_depths,)


def _sums(pair: Pair, w: Weights, agreement: Agreement) -> tuple[Floats, Floats, Floats | None]:
    """RBO_MIN, RBO_MAX and RBO_EXT, (n_orders,) each; the last is None where there is nothing to extrapolate from."""
    s, long = (side.length for side in pair.by_length)
    weight = w.each[:long] / agreement.of
    shared = agreement.shared
    least = pair.common * float(w.after[long])
    lower = _total(shared * weight, least)
    upper = _total((shared + agreement.best) * weight, max(_most_beyond(pair, w), least))
    if not s:
        return lower, upper, None
    rate = shared[:, s - 1] / agreement.of[s - 1]
    at_end = (pair.common + (long - s) * rate) / long
    return lower, upper, _total((shared + agreement.likely * rate[:, None]) * weight, at_end * w.phi**long)


def _total(terms: Floats, beyond: Any) -> Floats:
    """The sum over the depths and beyond them: at most 1, whatever rounding makes of it."""
    return np.minimum(terms.sum(axis=-1) + beyond, 1.0)


def _most_beyond(pair: Pair, w: Weights) -> float:
    """What the depths beyond both rankings add at the most: two more items match at each, until all do."""
    s, long = (side.length for side in pair.by_length)
    d, each = w.depth[long : pair.union], w.each[long : pair.union]
    return float(((2 * d - long - s + pair.common) / d * each).sum() + w.phi**pair.union)


# -- overlaps ----------------------------------------------------------------------------------------------------------


def _average(pair: Pair, w: Weights, extremes: bool) -> Agreement:
    """Agreement as a share of the depth, in expectation over the orders of ties and in the worst and the best."""
    s, long = (side.length for side in pair.by_length)
    if not pair.tied:
        shared = [_counted(np.maximum(pair.left.start, pair.right.start), long)]
    else:
        shared = [_expected(pair, long)]
        for which in ("worst", "best") if extremes else ():
            left, right = pair.common_ranks(which)
            shared.append(_counted(np.maximum(left, right) - 1, long))
    depth = w.depth[:long]
    unseen = np.maximum(depth - s, 0)
    return Agreement(np.array(shared, dtype=np.float64), of=depth, best=unseen, likely=unseen)


def _expected(pair: Pair, depths: int) -> Floats:
    """The expected overlap at the depths 1, 2, …: closed groups count whole, open ones by chance."""
    left, right = pair.left, pair.right
    p, q = left.chance(depths), right.chance(depths)
    both_open = _between(np.maximum(left.start, right.start), np.minimum(left.end, right.end), depths)
    left_open = _between(np.maximum(left.start, right.end), left.end, depths)
    right_open = _between(np.maximum(right.start, left.end), right.end, depths)
    closed = _counted(np.maximum(left.end, right.end), depths)
    return closed + p * left_open + q * right_open + p * q * both_open


def _counted(after: Codes, depths: int) -> Any:
    """At each depth the number of items that count after that many ranks, (n_depths,)."""
    return np.cumsum(np.bincount(after, minlength=depths)[:depths])


def _between(after: Codes, to: Codes, depths: int) -> Any:
    """At each depth the number of items that count after some ranks and up to others, (n_depths,)."""
    return _counted(np.minimum(after, to), depths) - _counted(to, depths)


# -- the variants of Corsi and Urbano ----------------------------------------------------------------------------------


def _variant(pair: Pair, w: Weights, ties: str) -> Agreement:
    """The agreement of RBO^w, RBO^a or RBO^b (Corsi & Urbano, SIGIR 2024), one number each.

    An item is in the top d to a degree: its chance, or for w fully as soon as its group begins. Overlaps are sums of
    products of degrees. They are divided by the mean size of the two heads, Σ degree (w, a), or by the geometric mean
    of Σ degree² (b).
    """
    short, long = pair.by_length
    n = long.length
    degrees = [np.ones(n) if ties == "w" else side.chance(n) for side in (short, long)]
    shared = _counted(np.maximum(short.start, long.start), n) if ties == "w" else _expected(pair, n)
    power = 2 if ties == "b" else 1
    sizes = [_size(side, degree**power, w) for side, degree in zip((short, long), degrees, strict=True)]
    # Items that only the longer ranking holds: those of closed groups count whole, those of the open one by degree.
    lonely, group = long.lonely, long.groups.group
    closed, opened = (np.cumsum(lonely) - lonely)[group], lonely[group]
    mean = (closed + degrees[1] * opened) / np.maximum(closed + opened, 1)
    unseen = np.maximum(w.depth[:n] - short.length, 0)
    return Agreement(
        np.array([shared], dtype=np.float64),
        of=np.sqrt(sizes[0] * sizes[1]) if ties == "b" else (sizes[0] + sizes[1]) / 2,
        best=np.minimum(unseen, closed) + degrees[1] * np.clip(unseen - closed, 0, opened),
        likely=unseen * mean,
    )


def _size(side: Side, degree: Floats, w: Weights) -> Floats:
    """The size of the head at each depth, if the items of its open group count to a degree; past the end, the depth."""
    size = w.depth[: len(degree)].copy()
    group = side.groups.group
    size[: side.length] = side.groups.starts[group] + side.groups.sizes[group] * degree[: side.length]
    return size
