"""The different arrangements of a tie group.

Documents that a measure does not tell apart are of one kind. Only the order of the kinds matters, so a group of few
kinds has few different arrangements.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import lgamma, log, perm

import numpy as np
from numpy.typing import NDArray

from tiewise.data.columns import Codes, Floats

#: The most arrangements that are enumerated, and the most documents in all of them together.
MAX_ARRANGEMENTS, MAX_SLOTS = 2000, 40_000


@dataclass(frozen=True)
class Arrangements:
    """The different ways to fill some slots with documents of some kinds, and the probability of each."""

    kinds: NDArray[np.int16]  # (n_arrangements, n_slots)
    probabilities: Floats  # (n_arrangements,)

    def __len__(self) -> int:
        return len(self.probabilities)

    def before(self, document_kinds: Codes, kind_of: Codes | None = None) -> Codes:
        """How many documents of a tie group precede some of its documents, (n_arrangements, n_documents).

        Documents of one kind stand in the given order. Those outside the slots follow the last slot. If documents of
        several groups are arranged together, `kind_of` has for each of their kinds that of this group, −1 for none.

        >>> arrange((1, 2), 2).before(np.array([0, 1])).tolist()
        [[0, 1], [1, 0], [2, 0]]
        >>> arrange((1, 1, 1), 3).before(np.array([0]), np.array([-1, 0, 1])).ravel().tolist()
        [0, 1, 0, 0, 1, 1]
        """
        n, slots = self.kinds.shape
        kinds = self.kinds if kind_of is None else kind_of[self.kinds]
        place = np.cumsum(kinds >= 0, axis=1) - 1
        before = np.full((n, len(document_kinds)), slots, dtype=np.int64)
        for kind in np.unique(document_kinds).tolist():
            columns = np.flatnonzero(document_kinds == kind)[:slots]
            places = np.sort(np.where(kinds == kind, place, slots), axis=1)
            before[:, columns] = places[:, : len(columns)]
        outside = before == slots
        return np.where(outside, slots - 1 + np.cumsum(outside, axis=1), before)


@lru_cache(maxsize=4096)
def arrange(counts: tuple[int, ...], slots: int) -> Arrangements | None:
    """All ways to fill `slots` with documents, given their number for each kind; None if there are too many.

    >>> arrange((1, 2), 2).kinds.tolist(), arrange((1, 2), 2).probabilities.round(3).tolist()
    ([[0, 1], [1, 0], [1, 1]], [0.333, 0.333, 0.333])
    """
    if perm(len(counts), min(len(counts), slots, 20)) > MAX_ARRANGEMENTS:  # those that begin with different kinds
        return None
    if slots == sum(counts):  # a multinomial coefficient
        log_number = lgamma(slots + 1) - sum(lgamma(n + 1) for n in counts)
        if log_number > log(MAX_ARRANGEMENTS) + 1e-9:
            return None
    partial: list[tuple[tuple[int, ...], tuple[int, ...], float]] = [((), counts, 1.0)]
    for total in range(sum(counts), sum(counts) - slots, -1):
        partial = [
            ((*kinds, kind), (*rest[:kind], n - 1, *rest[kind + 1 :]), probability * n / total)
            for kinds, rest, probability in partial
            for kind, n in enumerate(rest)
            if n
        ]
        if len(partial) > MAX_ARRANGEMENTS or len(partial) * slots > MAX_SLOTS:
            return None
    kinds = np.array([kinds for kinds, _, _ in partial], dtype=np.int16).reshape(len(partial), slots)
    return Arrangements(kinds, np.array([probability for _, _, probability in partial]))
