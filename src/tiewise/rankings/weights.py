"""Rank weights and the choice of φ. Weights never rise from one rank to the next, and all ranks weigh 1 in total.

RBP, RBR, RBA and MED-RBP are sums of rank weights. By default these are geometric: rank r has the weight
(1−φ)·φ^(r−1), so the ranks after n weigh φ^n. φ is the persistence `p` of Moffat & Zobel (2008) and of Webber et al.
(2010). RBO has such weights for depths instead of ranks. Sums of geometric weights are closed forms that lose no
precision to cancellation, whatever the length of a list and however close φ is to 0 or 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from numbers import Real
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from tiewise.caching import cached_property
from tiewise.data.columns import Codes, Floats
from tiewise.errors import InputError
from tiewise.metrics.catalogue.parts import log_discount
from tiewise.rankings.ranking import check_depth

FloatOrArray = TypeVar("FloatOrArray", float, Floats)


def check_phi(phi: object) -> float:
    """φ as a float; an error unless 0 < φ < 1."""
    number: Any = phi if isinstance(phi, Real) else math.nan
    if not 0 < number < 1:
        raise InputError(f"phi={phi!r} is not possible. It must lie above 0 and below 1.")
    return float(number)


def either_phi(phi: float | None, p: float | None, default: float | None = None) -> float | None:
    """φ, which may be given as `p`; an error if it is given under both names."""
    if p is not None and phi != default:
        raise InputError(f"phi={phi!r} and p={p!r} are two names of one parameter. Give one of them.")
    return phi if p is None else p


# -- weights of ranks ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, init=False, repr=False)
class Weights:
    """Weights of the ranks 1, 2, 3, …, which never rise: for RBR, RBA and MED-RBP, instead of φ.

    `values` are the weights of the first ranks. The ranks after them weigh `tail` in total, and fall geometrically from
    the last value; without a tail they weigh nothing. All weights are scaled so that their sum is 1.

    >>> Weights([3, 2, 1])
    Weights([0.5, 0.3333, 0.1667])
    >>> Weights([2, 1], tail=1)
    Weights([0.5, 0.25], tail=0.25)
    >>> Weights.geometric(0.5) == Weights([0.5], tail=0.5)
    True
    """

    values: tuple[float, ...]
    tail: float

    def __init__(self, values: Sequence[float] | NDArray[Any], tail: float = 0.0):
        _check_weights(values, tail)
        total = math.fsum([*values, tail])
        object.__setattr__(self, "values", tuple(float(value) / total for value in values))
        object.__setattr__(self, "tail", float(tail) / total)

    @staticmethod
    def geometric(phi: float) -> Weights:
        """(1−φ)·φ^(r−1), the weights of RBP.

        >>> Weights.geometric(0.8)
        Weights([0.2], tail=0.8)
        """
        phi = check_phi(phi)
        return Weights((1 - phi,), phi)

    @staticmethod
    def dcg(k: int) -> Weights:
        """1 / log2(r + 1) for the first k ranks, the weights of DCG@k.

        >>> Weights.dcg(3)
        Weights([0.4693, 0.2961, 0.2346])
        """
        check_depth(k, "k")
        return Weights(1 / log_discount(np.arange(1.0, k + 1)))

    @staticmethod
    def zipf(k: int, exponent: float = 1.0) -> Weights:
        """1 / r^exponent for the first k ranks.

        >>> Weights.zipf(3)
        Weights([0.5455, 0.2727, 0.1818])
        """
        check_depth(k, "k")
        if not isinstance(exponent, Real) or not 0 <= exponent < math.inf:
            raise InputError(f"exponent={exponent!r} is not possible: it must be a number of 0 or more.")
        return Weights((np.arange(k) + 1.0) ** -float(exponent))

    def at(self, rank: Codes | Floats, power: float = 1.0) -> Floats:
        """weight^power of each rank."""
        n = len(self._head)
        weight: Floats = self.values[-1] ** power * self.ratio ** (power * np.maximum(rank - 1 - n, 0))
        if n:
            weight = np.where(rank <= n, self._head[np.minimum(rank, n).astype(np.int64) - 1] ** power, weight)
        return weight

    def after(self, n: Codes | int) -> Floats:
        """The weight of all ranks after each n."""
        later = np.maximum(np.asarray(n, dtype=np.float64) - len(self._head), 0)
        rest: Floats = (self.values[-1] + self.tail) * self.ratio**later
        return rest + self._head_sums(1.0)[np.minimum(n, len(self._head))]

    def sum(self, start: Codes | int, size: Codes | int, power: float = 1.0) -> Floats:
        """The sum of weight^power over the ranks start + 1 … start + size, of each tie group."""
        n, begin = len(self._head), np.asarray(start)
        in_head = np.clip(n - begin, 0, size)
        rate = power * math.log(max(self.ratio, SMALLEST))
        geometric = np.expm1((size - in_head) * rate) / np.expm1(rate)
        total: Floats = self.values[-1] ** power * self.ratio ** (power * np.maximum(begin - n, 0.0)) * geometric
        if n:
            head = self._head_sums(power)
            total = total + head[np.minimum(begin, n)] - head[np.minimum(begin + in_head, n)]
        return total

    def mean(self, start: Codes | int, size: Codes | int, power: float = 1.0) -> Floats:
        """The mean of weight^power over the ranks start + 1 … start + size, of each tie group."""
        begin, ranks = np.broadcast_arrays(start, size)
        width = int(ranks.max(initial=0)) + 1
        groups, place = np.unique(begin * width + ranks, return_inverse=True)  # most groups have several items
        first, many = groups // width, groups % width
        means: Floats = (self.sum(first, many, power) / many)[place]
        return means.reshape(begin.shape)

    def is_geometric_after(self, n: Codes) -> NDArray[np.bool_]:
        """Whether the weights of the ranks after each n are geometric, and not 0."""
        return (n >= len(self._head)) & (self.ratio > 0)

    # The weights are geometric from the last value on. `_head` are the values before it.

    @cached_property
    def _head(self) -> Floats:
        return np.array(self.values[:-1], dtype=np.float64)

    @cached_property
    def ratio(self) -> float:
        """The weight of a rank after the last value, divided by that of the rank before it."""
        return self.tail / (self.values[-1] + self.tail) if self.tail else 0.0

    def _head_sums(self, power: float) -> Floats:
        """The sum of weight^power over the ranks of the head after 0, 1, 2, …"""
        sums: Floats = np.append(np.cumsum(self._head[::-1] ** power)[::-1], 0.0)
        return sums

    def __repr__(self) -> str:
        shown = [f"{value:.4g}" for value in self.values[:5]] + ["…"] * (len(self.values) > 5)
        return f"Weights([{', '.join(shown)}]" + (f", tail={self.tail:.4g})" if self.tail else ")")


SMALLEST = 5e-324  # has a logarithm, unlike 0
WeightsLike = Weights | Sequence[float] | NDArray[Any]  #: Weights, or the weights of the first ranks


def as_weights(phi: float | None, weights: WeightsLike | None) -> Weights:
    """The weights, or geometric weights for φ; an error unless one of the two is given."""
    if weights is None:
        if phi is None:
            raise InputError("phi=None is not possible. Give phi, above 0 and below 1, or weights=.")
        return Weights.geometric(phi)
    if phi is not None:
        raise InputError(f"phi={phi!r} and weights= were given. Give one of them: phi stands for geometric weights.")
    return weights if isinstance(weights, Weights) else Weights(weights)


def _check_weights(values: Any, tail: Any) -> None:
    """Require weights that never rise, of 0 or more, with a sum above 0."""
    is_array = isinstance(values, np.ndarray) and values.ndim == 1
    if not is_array and (isinstance(values, (str, bytes)) or not isinstance(values, Sequence)):
        raise InputError(
            f"weights={values!r} is not possible. Give the weights of the first ranks, such as [3, 2, 1], or "
            "Weights.geometric(phi), Weights.dcg(k) or Weights.zipf(k)."
        )
    last = math.inf
    for rank, value in enumerate(values, start=1):
        if not _is_weight(value):
            raise InputError(f"The weight {value!r} of rank {rank} is not possible: weights are numbers of 0 or more.")
        if value > last:
            raise InputError(f"Weights must not rise: rank {rank} has {value:g}, and the rank before it {last:g}.")
        last = value
    if not _is_weight(tail):
        raise InputError(f"tail={tail!r} is not possible. It is the weight of all ranks after the values, 0 or more.")
    if tail and not (len(values) and last):
        raise InputError(f"tail={tail:g} is not possible: later ranks fall from the last value, which must be above 0.")
    if not 0 < sum(map(float, values)) + float(tail) < math.inf:
        raise InputError("The sum of the weights must be above 0 and finite.")


def _is_weight(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and 0 <= value < math.inf  # type: ignore[operator]


# -- weights of depths ---------------------------------------------------------------------------------------------


class WeightTable(NamedTuple):
    """Sums of the weights of the depths after 0, 1, … n, for sums over depths of the overlap of two rankings."""

    tail: Floats  # (n + 1,): Σ weight/d over these depths d: what one shared item adds to agreement
    rest: Floats  # (n + 1,): Σ weight over these depths


def weight_table(phi: float, depth: int) -> WeightTable:
    """RBO's weights, (1−φ)·φ^(d−1), at least to this depth. Some tables are cached: pairs of systems share them."""
    return _overlap_table(phi, 1 << max(depth - 1, 0).bit_length())


@lru_cache(maxsize=8)
def _overlap_table(phi: float, n: int) -> WeightTable:
    weights, depth = Weights.geometric(phi), np.arange(n + 1)
    smallest_first = np.append(tail_weight(phi, n), (weights.at(depth[1:]) / depth[1:])[::-1])
    return WeightTable(np.cumsum(smallest_first)[::-1], weights.after(depth))


def difference_table(weights: Weights, depth: int) -> WeightTable:
    """MED-RBP's weights, d·(w_d − w_{d+1}), to this depth."""
    n = np.arange(depth + 1)
    tail = weights.at(n + 1)
    return WeightTable(tail, n * tail + weights.after(n))


def tail_weight(phi: float, depth: int) -> float:
    """(1−φ)·Σ_{d > depth} φ^(d−1)/d: what one shared item adds to RBO at all depths after `depth`.

    It is the sum over all depths, a logarithm, minus the first terms. For large depths that would cancel: with a =
    depth + 1 the sum is (1−φ)·φ^depth/a · F(1, a; a + 1; φ), and Gauss's continued fraction of F (DLMF 15.7), of which
    this is the even part, is exact to the last digit.

    >>> tail_weight(0.5, 0) == math.log(2)
    True
    """
    a = float(depth + 1)
    if a * (1 - phi) < 2:
        d = np.arange(1, a, dtype=np.float64)
        return float((1 - phi) * (-math.log1p(-phi) / phi - (phi ** (d - 1) / d).sum()))
    fraction = math.inf
    for k in range(LEVELS, -1, -1):
        m = a + 2 * k
        below = (phi * (a + k) * (k + 1) / (m + 1)) ** 2 / (m * (m + 2)) / fraction
        fraction = 1 - phi + phi * ((m - 1) * (2 * k + 1) - 2 * k**2) / (m**2 - 1) - below
    return (1 - phi) * phi**depth / a / fraction


LEVELS = 64  # of the continued fraction: the last ones no longer change a digit


# -- the choice of φ -----------------------------------------------------------------------------------------------


def top_weight(phi: float, d: int, measure: str = "RBO") -> float:
    """The share of a measure's weight on the first d ranks: RBO's (Webber et al. 2010, Eq. 21), or another's.

    RBP, RBR, RBA and MED_RBP have the weight 1 − φ^d there.

    >>> round(top_weight(0.9, 10), 4), round(top_weight(0.9, 10, "RBP"), 4)
    (0.8556, 0.6513)
    """
    phi = check_phi(phi)
    check_depth(d, "d")
    if _check_measure(measure) == "RBO":
        return 1 - phi ** (d - 1) + d * tail_weight(phi, d - 1)
    return -math.expm1(d * math.log(phi))


def phi_for_weight(weight: float, depth: int, measure: str = "RBO") -> float:
    """The φ for which the first `depth` ranks have this share of a measure's weight: `top_weight` turned round.

    >>> round(phi_for_weight(0.9, 10), 3), round(phi_for_weight(0.9, 10, "RBP"), 3)
    (0.876, 0.794)
    """
    if not isinstance(weight, Real) or not 0 < weight < 1:
        raise InputError(f"weight={weight!r} is not possible: it is a share of the weight, above 0 and below 1.")
    check_depth(depth)
    if _check_measure(measure) == "RBO":
        return _bisect(lambda phi: top_weight(phi, depth) > weight, 0.0, 1.0)
    return math.exp(math.log1p(-weight) / depth)


def _check_measure(measure: object) -> str:
    """The name of a rank-biased measure, without its parameters."""
    name = str(measure).partition("(")[0].upper().replace("-", "_")
    if name not in ("RBO", "RBP", "RBR", "RBA", "MED_RBP"):
        raise InputError(f"measure={measure!r} has no weights by φ. Use RBO, RBP, RBR, RBA or MED_RBP.")
    return name


def _bisect(is_below: Callable[[float], bool], low: float, high: float) -> float:
    """The number up to which `is_below` is true, between two numbers."""
    middle = (low + high) / 2
    while low < middle < high:
        low, high = (middle, high) if is_below(middle) else (low, middle)
        middle = (low + high) / 2
    return middle


def phi_for_discount(f: float, k: int) -> float:
    """The φ for which rank k + 1 weighs `f` times as much as rank 1: f^(1/k) (Moffat et al. 2024, Eq. 10).

    >>> round(phi_for_discount(0.1, 10), 4)
    0.7943
    """
    if not isinstance(f, Real) or not isinstance(k, Real) or not 0 < f < 1 or k < 1:
        raise InputError(f"phi_for_discount({f!r}, {k!r}): f must be between 0 and 1, and k a rank of at least 1.")
    return float(f ** (1 / k))


def reversed_rba(phi: FloatOrArray, k: int) -> FloatOrArray:
    """RBA's lower bound for a ranking of k items and its reverse: k(1−φ)·φ^((k−1)/2) (Moffat et al. 2024, Eq. 12).

    >>> reversed_rba(0.25, 2)
    0.75
    """
    return k * (1 - phi) * phi ** ((k - 1) / 2)


def phi_for_reverse_rba(score: float, k: int) -> float:
    """The φ for which RBA gives `score` to a ranking of k items and its reverse (Moffat et al. 2024, Eq. 12).

    `reversed_rba` rises up to φ* = (k−1)/(k+1) and falls after it, so two such φ exist, or none. This is the one that
    is at most φ*.

    >>> round(phi_for_reverse_rba(0.2, 50), 4)
    0.8666
    """
    if not isinstance(k, Real) or not k >= 2:
        raise InputError(f"phi_for_reverse_rba needs two items or more, not k={k!r}: one item has no reverse.")
    peak = (k - 1) / (k + 1)
    highest = reversed_rba(peak, k)
    if not isinstance(score, Real) or not 0 < score <= highest:
        raise InputError(
            f"No φ gives a reversed ranking of {k} items an RBA of {score!r}. The RBA must be above 0 and at most "
            f"{highest:.4f}, its value at φ = {peak:.4f}."
        )
    return _bisect(lambda phi: reversed_rba(phi, k) < score, 0.0, peak)
