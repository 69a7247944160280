"""What the shards answer, put together as it comes in: judged scores, who holds what, and sums of counts.

Nothing is kept of an answer but what it adds to a sum, so that a thousand shards take the memory of one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256

import numpy as np

from tiewise.adapters.ray.working import Found, Reading, flags, unpacked
from tiewise.analysis.readings import Facts
from tiewise.data.columns import Floats, project
from tiewise.data.runs import Qrels, Source
from tiewise.errors import InputError, counted, listed
from tiewise.ties.groups import TieGroups
from tiewise.ties.shards import Total

__all__ = ["Gathered", "Sums"]


class Sums:
    """The counts of shards, added up for every reading."""

    def __init__(self, qrels: Qrels, orders: Mapping[Reading, Sequence[str]]):
        self.qrels = qrels
        self.totals = {one: Total(len(qrels), len(qrels.queries), some) for one, some in orders.items()}
        self.moved = 0  # bytes that came in

    def add(self, answer: bytes) -> None:
        """Add the counts of one shard or of several; in the order of the shards, if some share queries."""
        self.moved += len(answer)
        for reading, counts in unpacked(answer).items():
            self.totals[reading].add(counts)

    def check_whole(self, scores: Floats) -> None:
        """Raise if the second pass did not see the judged documents that the first one saw."""
        owned = self.totals[Reading("float64")].owned
        if not np.array_equal(owned, ~np.isnan(scores)):
            raise InputError(
                "The second pass over the shards did not find the judged documents of the first one. Do they change, "
                "or does the data set draw at random? Write it to files, or materialize() it, first."
            )

    def groups(self, scores: Floats, unjudged: frozenset[str], complete: bool = False) -> dict[str, TieGroups]:
        """The tie groups of the whole in every type of scores."""
        found = {}
        for reading, total in self.totals.items():
            score = scores if reading.dtype == "float64" else project(scores, reading.dtype)
            found[reading] = TieGroups(
                qrels=self.qrels, score=score, **total.columns(), unjudged=unjudged, complete=complete
            )
        condensed = {one.dtype for one in found if one.whole}
        return {
            one.dtype: ties.condensed_from(found[Reading(one.dtype, True)]) if one.dtype in condensed else ties
            for one, ties in found.items()
            if not one.whole
        }


class Gathered:
    """The first pass: judged scores, what shards say of themselves, and whether a query is in two of them."""

    def __init__(self, qrels: Qrels, name: Callable[[int], str]):
        self.qrels, self._name = qrels, name
        self.scores = np.full(len(qrels), np.nan)
        self.apart = True  # no judged query in two shards
        self.unjudged: set[str] = set()
        self.sha256: dict[int, str] = {}  # by shard
        self.moved = 0  # bytes that came in
        self._by_hash: dict[str, int] = {}
        self._holder = np.full(len(qrels), -1, dtype=np.int32)
        self._seen = np.zeros(len(qrels.queries), dtype=bool)
        self._tied: int | None = 0
        self._rows = self._new_ties = 0
        self._formats: set[str] = set()
        self._docs: tuple[str, ...] = ()

    @property
    def shards(self) -> int:
        """How many shards have come in."""
        return len(self.sha256)

    def add(self, shard: int, found: Found, size: int) -> None:
        """Take in what a shard says of itself, in so many bytes."""
        self.moved += size
        self._check_new(shard, found)
        self.scores[found.rows] = found.score
        queries = flags(found.present, len(self._seen))
        self.apart = self.apart and not self._seen[queries].any()
        if not self.apart or not self.unjudged.isdisjoint(found.unjudged):
            self._tied = None  # rows may tie with rows of another shard
        self._seen[queries] = True
        self.unjudged |= found.unjudged
        self._rows += found.length
        self._new_ties += found.new_ties
        self._tied = None if self._tied is None else self._tied + found.tied
        self._formats |= {found.format} - {""}
        self._docs = self._docs or found.docs

    def _check_new(self, shard: int, found: Found) -> None:
        """Raise if a shard has the bytes, or a judged document, of another one."""
        self.sha256[shard] = found.sha256
        same = self._by_hash.setdefault(found.sha256, shard) if found.sha256 else shard
        if same != shard:
            one, other = sorted((same, shard))
            raise InputError(
                f"{self._name(other)}: holds the same bytes as {self._name(one)}, so every document would stand twice. "
                "List each shard once."
            )
        twice = found.rows[self._holder[found.rows] >= 0]
        if len(twice):
            query, doc = self.qrels.row(int(twice[0]))
            one, other = sorted((int(self._holder[twice[0]]), shard))
            raise InputError(
                f"{self._name(other)}: document '{doc}' of query '{query}' stands in {self._name(one)} too "
                f"({counted(len(twice), 'such document')}). Shards must not share documents; was one given twice?"
            )
        self._holder[found.rows] = shard

    def check_common(self) -> None:
        """Raise if judgments and shards have nothing in common."""
        if not len(self.qrels.queries):
            raise InputError("The qrels are empty: there is nothing to measure against.")
        if not self._seen.any() and not self.unjudged:
            raise InputError("The run is empty: it has no query.")
        if not self._seen.any():
            raise InputError(
                f"The run and the qrels have no query in common. Queries of the run: {listed(sorted(self.unjudged))}; "
                f"of the qrels: {listed(self.qrels.queries)}."
            )
        if np.isnan(self.scores).all():
            raise InputError(
                f"The run and the qrels have no document in common. Documents of the run: {listed(self._docs)}; of the "
                f"qrels: {listed(self.qrels.ids(np.arange(min(3, len(self.qrels)))))}."
            )

    def facts(self, path: str, projected: bool) -> Facts:
        """What is known of the run. Ties between rows of different shards are not counted: then it is not known."""
        hashes = [self.sha256[shard] for shard in sorted(self.sha256)]
        whole = hashes[0] if len(hashes) == 1 else sha256("\n".join(hashes).encode()).hexdigest()
        source = Source(path, whole, ", ".join(sorted(self._formats))) if hashes and all(hashes) else None
        new = self._new_ties if projected and self._tied is not None else None
        return Facts(source, self._rows, self._tied, new)
