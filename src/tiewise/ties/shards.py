"""The counts of shards, and their sum.

What one shard of a collection adds to the tie groups of the whole is a few small numbers for the judged documents that
it touches. `Counts` holds these and nothing else, so they are cheap to send; `Total` adds them up, one shard or one sum
of neighbours at a time, in the memory of a single sum. Whole numbers add up the same in any grouping,
so the result does not depend on how the work was divided.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tiewise.data.columns import Codes, Floats
from tiewise.data.runs import Run

Small = NDArray[np.integer[Any]]  # whole numbers from 0 on, in the smallest type that holds them


class Counts(NamedTuple):
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


# -- fingerprints of rows, by which shards that hold the same row are noticed ---------------------------------------
# A fingerprint is a number of 64 bits that depends on the query and the document, and is the same on every machine. A
# shard sends those below a limit: all of them if the run is small, else a sample. A row in two shards is in the
# sample of both or of none. The compiled reader computes the same numbers (count.h).

Fingerprints = NDArray[np.uint64]

START, FACTOR, BITS = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, (1 << 64) - 1
MAX_SAMPLE = 1 << 20  # fingerprints of a whole run, which are eight bytes each


def sample_limit(n_rows: int) -> int:
    """The limit below which about `MAX_SAMPLE` fingerprints of a run are, or all of a small one.

    >>> sample_limit(1000) == 2**64 - 1, sample_limit(1 << 30) == 2**54
    (True, True)
    """
    return min((MAX_SAMPLE << 64) // max(n_rows, 1), BITS)


def fingerprint(id: str, value: int = START) -> int:
    """The fingerprint of an id after others, whose fingerprint is `value`.

    >>> fingerprint("d1", fingerprint("q1")) != fingerprint("q1", fingerprint("d1"))
    True
    """
    text = id.encode(errors="surrogatepass")
    for at in range(0, len(text), 8):
        value = (value ^ int.from_bytes(text[at : at + 8], "little")) * FACTOR & BITS
        value ^= value >> 32
    value = (value ^ len(text)) * FACTOR & BITS
    return value ^ value >> 32


def fingerprint_ids(ids: Iterable[str], limit: int, value: int = START) -> Fingerprints:
    """The fingerprints of ids that are below a limit."""
    found = (fingerprint(id, value) for id in ids)
    return np.array([one for one in found if one < limit], np.uint64)


def fingerprint_rows(run: Run, limit: int) -> Fingerprints:
    """The fingerprints of the rows of a run that are below a limit."""
    lists = zip(run.queries, run.offsets[:-1].tolist(), run.offsets[1:].tolist(), strict=True)
    parts = [
        fingerprint_ids(run.ids(np.arange(first, last)), limit, fingerprint(query)) for query, first, last in lists
    ]
    return np.concatenate([np.zeros(0, np.uint64), *parts])
