"""The counts of shards, and their sum.

What one shard of a collection adds to the tie groups of the whole is a few small numbers for the judged documents that
it touches. `Counts` holds these and nothing else, so they are cheap to send; `Total` adds them up, one shard or one sum
of neighbours at a time, in the memory of a single sum. Whole numbers add up the same in any grouping,
so the result does not depend on how the work was divided.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tiewise.data.columns import Codes, Floats

Small = NDArray[np.integer[Any]]  # whole numbers from 0 on, in the smallest type that holds them


@dataclass(frozen=True, eq=False)
class Counts:
    """What a shard counted, of the judged documents and the queries that it touches."""

    rows: Small  # (n,): judged documents as rows of the qrels, each once
    start: Small  # (n,): documents here that score higher
    size: Small  # (n,): documents here that score the same, itself included if it is here
    in_shard: NDArray[np.bool_]  # (n,): it is here
    before: Mapping[str, Small]  # by order, (n,): tied documents here that are ahead of it
    queries: Small  # (m,): the queries that the shard has, each once
    length: Small  # (m,): documents in the list
    lowest: Floats  # (m,): its lowest score, NaN if it is empty
    lowest_size: Small  # (m,): documents with that score

    @staticmethod
    def of(
        start: Codes,
        size: Codes,
        in_shard: NDArray[np.bool_],
        before: Mapping[str, Codes],
        present: NDArray[np.bool_],
        length: Codes,
        lowest: Floats,
        lowest_size: Codes,
    ) -> Counts:
        """The counts that are not 0, of arrays along all judged documents and all queries.

        >>> whole = [np.array([0, 7]), np.array([0, 1]), np.array([False, True]), {}]
        >>> Counts.of(*whole, np.array([True]), np.array([9]), np.array([0.5]), np.array([2])).rows
        array([1], dtype=uint8)
        """
        rows, queries = np.flatnonzero((start > 0) | (size > 0) | in_shard), np.flatnonzero(present)
        return Counts(
            rows=small(rows),
            start=small(start[rows]),
            size=small(size[rows]),
            in_shard=in_shard[rows],
            before={order: small(ahead[rows]) for order, ahead in before.items()},
            queries=small(queries),
            length=small(length[queries]),
            lowest=lowest[queries],
            lowest_size=small(lowest_size[queries]),
        )


class Total:
    """The sum of the counts of shards that share no document, added in the order of the shards.

    >>> from tiewise import notation
    >>> total = Total(3, 1, ["given"])
    >>> total.add(notation("(20)-1").counts())
    >>> total.start, total.before["given"], total.length
    (array([0, 0, 3]), array([0, 1, 0]), array([4]))
    """

    def __init__(self, judged: int, queries: int, orders: Iterable[str]):
        self.start, self.size = np.zeros(judged, np.int64), np.zeros(judged, np.int64)
        self.in_shard = np.zeros(judged, dtype=bool)
        self.before = {order: np.zeros(judged, np.int64) for order in orders}
        self.present = np.zeros(queries, dtype=bool)
        self.length, self.lowest_size = np.zeros(queries, np.int64), np.zeros(queries, np.int64)
        self.lowest = np.full(queries, np.nan)

    def held(self, counts: Counts) -> Codes:
        """The judged documents of a shard that are here already, as rows of the qrels."""
        own = counts.rows[counts.in_shard].astype(np.int64)
        return own[self.in_shard[own]]

    def add(self, counts: Counts) -> None:
        """Add what the next shard counted, or the sum of the next few."""
        rows, query = counts.rows, counts.queries
        own = rows[counts.in_shard]
        for order, before in self.before.items():
            before[rows] += counts.before[order]
        if "given" in self.before:  # whole shards stand before the one that holds the document
            self.before["given"][own] += self.size[own]
        self.start[rows] += counts.start
        self.size[rows] += counts.size
        self.in_shard[own] = True
        lowest = np.fmin(self.lowest[query], counts.lowest)
        still, also = self.lowest[query] == lowest, counts.lowest == lowest
        self.lowest_size[query] = np.where(still, self.lowest_size[query], 0) + np.where(also, counts.lowest_size, 0)
        self.lowest[query] = lowest
        self.length[query] += counts.length
        self.present[query] = True

    def counts(self) -> Counts:
        """The sum as the counts of one larger shard."""
        return Counts.of(**self.columns(), in_shard=self.in_shard)

    def columns(self) -> dict[str, Any]:
        """The sum as the columns of `TieGroups`."""
        names = ("start", "size", "length", "present", "lowest", "lowest_size")
        return {**{name: getattr(self, name) for name in names}, "before": dict(self.before)}


def small(numbers: Codes) -> Small:
    """Whole numbers from 0 on in the smallest type that holds them and that int64 can take in."""
    most = int(numbers.max(initial=0))
    return numbers.astype(np.min_scalar_type(most)) if most < 2**32 else numbers
