"""Drawing from tie groups: how likely it is to draw so many of one kind; and the quantile of Student's t."""

from __future__ import annotations

from math import atan, cos, exp, lgamma, log, pi, sin, sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tiewise.data.columns import Codes, Floats


def is_possible(size: ArrayLike, marked: ArrayLike, drawn: ArrayLike) -> NDArray[np.bool_]:
    """Whether h = 0, 1, 2 … marked items can be among those drawn, (n_groups, n_h).

    A chance may be too small for a float: then it is 0, but not impossible.

    >>> is_possible([4, 3], [2, 3], [2, 1])
    array([[ True,  True,  True],
           [False,  True, False]])
    """
    m, u, j = (np.asarray(column).reshape(-1, 1) for column in (size, marked, drawn))
    h = np.arange(int(np.minimum(u, j).max(initial=0)) + 1)[None, :]
    found: NDArray[np.bool_] = (h <= np.minimum(u, j)) & (h >= j - (m - u))
    return found


def hypergeometric(size: ArrayLike, marked: ArrayLike, drawn: ArrayLike) -> Floats:
    """The chance of h = 0, 1, 2 … marked items among those drawn from groups of some size, (n_groups, n_h).

    Ratios of neighbouring chances are added up as logarithms, so that large groups neither overflow nor vanish.

    >>> hypergeometric([4, 3], [2, 3], [2, 1]).round(4)
    array([[0.1667, 0.6667, 0.1667],
           [0.    , 1.    , 0.    ]])
    """
    possible = is_possible(size, marked, drawn)
    return _chances(size, marked, drawn, np.arange(possible.shape[1], dtype=np.float64)[None, :], possible)


def hypergeometric_window(size: int, marked: int, drawn: Codes) -> tuple[Floats, Floats]:
    """The numbers of marked items that are likely among those drawn from one group, and their chances.

    Both are (n_draws, n_h). What is left out has a chance below 1e-18.

    >>> h, chance = hypergeometric_window(10**6, 10**5, np.array([0, 10**5]))
    >>> h.shape, ((h * chance).sum(axis=1) / [1, 10**4]).round(12)
    ((2, 1823), array([0., 1.]))
    """
    mean = drawn * (marked / size)
    spread = np.sqrt(mean * (1 - marked / size) * (size - drawn) / max(size - 1, 1))
    low = np.maximum(np.floor(mean - 10 * spread - 10), 0.0)
    high = np.minimum(np.ceil(mean + 10 * spread + 10), marked)
    h = low[:, None] + np.arange(int((high - low).max(initial=0)) + 1)
    j = drawn[:, None]
    possible = (h <= np.minimum(marked, j)) & (h >= j - (size - marked))
    return h, _chances(size, marked, drawn, h, possible)


def _chances(size: ArrayLike, marked: ArrayLike, drawn: ArrayLike, h: Floats, possible: NDArray[np.bool_]) -> Floats:
    """The chances of h, which ascends by 1 along a row, if no other h has one."""
    m, u, j = (np.asarray(column, dtype=np.float64).reshape(-1, 1) for column in (size, marked, drawn))
    g = h[:, :-1]
    ratio = (u - g) * (j - g) / ((g + 1) * np.maximum(m - u - j + g + 1, 1))  # of the chance of g + 1 to that of g
    both = possible[:, :-1] & possible[:, 1:]
    logs = np.zeros_like(possible, dtype=np.float64)
    logs[:, 1:] = np.cumsum(np.log(np.where(both, ratio, 1.0)), axis=1)
    logs = np.where(possible, logs, -np.inf)
    chance: Floats = np.exp(logs - logs.max(axis=1, keepdims=True, initial=-1e300))
    return chance / chance.sum(axis=1, keepdims=True)


def mean_reciprocals(size: Floats, marked: Floats, offset: Floats, n_draws: int) -> Floats:
    """The mean of 1 / (offset + h) for h marked items among the first j drawn, j = 0, 1 … n_draws − 1.

    The arguments are columns, (n_groups, 1); with N items, K of them marked, and δ the offset,

        G_{j+1} = ((N − K − j − δ) · (j + 1) · G_j + N + 1) / ((j + 1 + δ) · (N − j)),   G_0 = 1/δ,   G_N = 1/(K + δ)

    (draw one more item, and use the recurrence of the chances in h). It is used from j = 0 as long as errors shrink,
    and below that backwards from j = N.

    >>> mean_reciprocals(np.array([[4.0]]), np.array([[2.0]]), np.array([[1.0]]), 5).round(4)
    array([[1.    , 0.75  , 0.5556, 0.4167, 0.3333]])
    """
    last = 1 / (marked + offset)
    n, needed = -1, min(n_draws - 1, int(size.max(initial=0)))
    while n < needed:
        n = needed
        j = np.arange(n, dtype=np.float64)[None, :]
        grown, kept = (j + 1 + offset) * (size - j), (size - marked - j - offset) * (j + 1)
        there = j < size
        down, up = there & (np.abs(kept) <= grown), there & (np.abs(kept) > grown)
        needed = int(size[up.any(axis=1)].max(initial=n))  # backwards, all items of a group
    found = np.empty((len(size), n + 1))
    found[:, :1] = 1 / offset
    found[:, 1:] = _recur(1 / offset, _ratio(kept, grown, down), _ratio(size + 1, grown, down))
    if up.any():
        # Beyond the last item the value stays that of all items.
        factor, added = np.where(there, _ratio(grown, kept, up), 1.0), _ratio(-(size + 1), kept, up)
        back = _recur(last, factor[:, ::-1], added[:, ::-1])[:, ::-1]
        found[:, :-1] = np.where(up, back, found[:, :-1])
    found = np.where(np.arange(n + 1) >= size, last, found)
    return found[:, :n_draws] if n + 1 >= n_draws else np.pad(found, ((0, 0), (0, n_draws - n - 1)), mode="edge")


def _ratio(amount: Floats, divisor: Floats, where: NDArray[np.bool_]) -> Floats:
    """amount / divisor in some places, else 0."""
    return np.divide(amount, divisor, out=np.zeros(where.shape), where=where)


def _recur(first: Floats, factor: Floats, added: Floats) -> Floats:
    """x_1, x_2 … of x_{i+1} = factor_i · x_i + added_i along each row, in log₂ n steps over all of them."""
    step = 1
    while step < factor.shape[1]:
        added[:, step:] = added[:, step:] + factor[:, step:] * added[:, :-step]
        factor[:, step:] = factor[:, step:] * factor[:, :-step]
        step *= 2
    return factor * first + added


# -- the quantile of Student's t, without SciPy: its import takes longer than a small call --------------------------

NORMAL_QUANTILE = 1.959963984540054  #: of the normal distribution, 97.5 %
MANY = 300  #: from so many degrees of freedom on, the expansion is exact to twelve digits


def t_quantile(freedom: int) -> float:
    """The 97.5 % quantile of Student's t, for two-sided intervals of 95 %.

    >>> [round(t_quantile(freedom), 3) for freedom in (1, 2, 10, 199)]
    [12.706, 4.303, 2.228, 1.972]
    """
    found = _expand(freedom)
    if freedom >= MANY:
        return found
    if freedom < 3:
        return (12.706204736174694, 4.302652729749462)[freedom - 1]
    scale = exp(lgamma((freedom + 1) / 2) - lgamma(freedom / 2)) / sqrt(freedom * pi)
    for _ in range(8):  # Newton's method
        density = 2 * scale * exp(-(freedom + 1) / 2 * log(1 + found**2 / freedom))
        step = (_central_probability(found, freedom) - 0.95) / density
        found -= step
        if abs(step) < 1e-14 * found:
            break
    return found


def _expand(freedom: int) -> float:
    """The expansion in powers of 1 / freedom (Abramowitz & Stegun, 26.7.5)."""
    x, n = NORMAL_QUANTILE, freedom
    terms = (
        (x**3 + x) / 4,
        (5 * x**5 + 16 * x**3 + 3 * x) / 96,
        (3 * x**7 + 19 * x**5 + 17 * x**3 - 15 * x) / 384,
        (79 * x**9 + 776 * x**7 + 1482 * x**5 - 1920 * x**3 - 945 * x) / 92160,
    )
    return x + sum(term / n**power for power, term in enumerate(terms, 1))


def _central_probability(t: float, freedom: int) -> float:
    """P(|T| ≤ t) for a whole number of degrees of freedom (Abramowitz & Stegun, 26.7.3 and 26.7.4)."""
    angle = atan(t / sqrt(freedom))
    square, odd = cos(angle) ** 2, freedom % 2
    term = cos(angle) if odd else 1.0
    total = term if freedom > 1 else 0.0
    for k in range(2 + odd, freedom - 1, 2):
        term *= square * (k - 1) / k
        total += term
    return 2 / pi * (angle + sin(angle) * total) if odd else sin(angle) * total
