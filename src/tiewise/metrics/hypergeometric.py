"""Drawing from tie groups: how likely it is to draw so many of one kind."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tiewise.data.columns import Floats

__all__ = ["hypergeometric", "is_possible"]


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
    m, u, j = (np.asarray(column, dtype=np.float64).reshape(-1, 1) for column in (size, marked, drawn))
    possible = is_possible(size, marked, drawn)
    g = np.arange(possible.shape[1] - 1, dtype=np.float64)[None, :]
    ratio = (u - g) * (j - g) / ((g + 1) * np.maximum(m - u - j + g + 1, 1))  # of the chance of g + 1 to that of g
    both = possible[:, :-1] & possible[:, 1:]
    logs = np.zeros_like(possible, dtype=np.float64)
    logs[:, 1:] = np.cumsum(np.log(np.where(both, ratio, 1.0)), axis=1)
    logs = np.where(possible, logs, -np.inf)
    chance: Floats = np.exp(logs - logs.max(axis=1, keepdims=True, initial=-1e300))
    return chance / chance.sum(axis=1, keepdims=True)
