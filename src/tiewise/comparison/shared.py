"""One order of the documents for two runs: what a tool does that breaks the ties of both by the same rule.

A document then stands before another in both runs or in neither, wherever they are tied. Groups of the two runs that
hold a document in common are drawn together, as one component; components are independent. A component of few documents
is enumerated like a single tie group; others are drawn: the priority of a document is a hash of its id and of the
number of the draw, so that every run of a comparison sees the same order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from tiewise.columns import Codes, Floats
from tiewise.comparison.lots import Lot, Tied, Words, words
from tiewise.data import Qrels, Run
from tiewise.errors import InputError
from tiewise.ties import grouped

__all__ = ["Component", "Members", "components", "drawn", "lots_of"]

#: How many random orders are drawn, and how many documents these may move in all.
DRAWS, MOVED = 1000, 20_000_000
#: Components are looked for among at most so many documents, and orders drawn of at most so many.
MOST_DOCS, MOST_TIED = 50_000, 500_000

Hashes = NDArray[np.uint64]


class Members:
    """All documents of the tie groups that matter to a measure, judged or not; an id is the same in all runs."""

    def __init__(self, tied: Tied, run: Run):
        self.tied = tied
        size = tied.urns.group_size[tied.groups]
        if size.sum() > MOST_TIED:
            raise InputError(
                f"{size.sum():,} tied documents matter to {tied.measure}; one order for all runs takes at most "
                f"{MOST_TIED:,}. Compare fewer queries, give the measure a cutoff, or use independent orders."
            )
        qrels, rows = tied.urns.ties.qrels, grouped(run)[0]
        queries = [qrels.queries[place] for place in tied.query.tolist()]
        first = run.offsets[[run.query_index[query] for query in queries]] + tied.urns.group_start[tied.groups]
        self.group: Codes = np.repeat(np.arange(len(tied)), size)  # (n_members,)
        docs = [run.ids(rows[low : low + n]) for low, n in zip(first.tolist(), size.tolist(), strict=True)]
        self.id = np.array(
            [_hash(query, doc) for query, some in zip(queries, docs, strict=True) for doc in some], dtype=np.uint64
        )
        labels = {place: _labels(qrels, place) for place in set(tied.query.tolist())}
        label = np.array(
            [
                labels[place].get(doc, np.nan)
                for place, some in zip(tied.query.tolist(), docs, strict=True)
                for doc in some
            ]
        )
        judged = np.flatnonzero(~np.isnan(label))
        # In `tied.docs` a group's documents descend by label, and equal labels may change places.
        self.judged = judged[np.lexsort((-label[judged], self.group[judged]))]
        self.target = tied.judged()
        self._head = (np.cumsum(size) - size)[self.group]
        self.key = np.full(len(label), tied.unjudged)
        self.key[self.judged] = tied.keys[tied.docs[self.target]]

    def __len__(self) -> int:
        return len(self.id)

    def rank(self, priority: Hashes) -> Codes:
        """The ranks of `tied.docs` when the members of each group stand by ascending priority."""
        order = np.lexsort((priority, self.group))
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order)) - self._head
        rank = self.tied.rank.copy()
        start = self.tied.urns.group_start[self.tied.groups][self.group]
        rank[self.target] = (start + 1 + place)[self.judged]
        return rank


def _labels(qrels: Qrels, place: int) -> dict[str, float]:
    rows = np.arange(qrels.offsets[place], qrels.offsets[place + 1])
    return dict(zip(qrels.ids(rows), qrels.label[rows].tolist(), strict=True))


def _hash(query: str, doc: str) -> int:
    return int.from_bytes(blake2b(f"{query}\0{doc}".encode(), digest_size=8).digest(), "little")


def drawn(members: Members, seed: int) -> Floats:
    """The sum of what all groups add to their queries' values, in random orders that are the same for all runs."""
    draws = int(np.clip(MOVED // max(len(members), 1), 100, DRAWS))
    return np.array([members.tied.shares(members.rank(_priority(members.id, seed, i))).sum() for i in range(draws)])


def _priority(ids: Hashes, seed: int, draw: int) -> Hashes:
    """A number for each id that is random, and the same wherever the id stands (splitmix64)."""
    step = np.uint64((0x9E3779B97F4A7C15 * (draw + 1) + 0xD1B54A32D192ED03 * (seed + 1)) % 2**64)
    with np.errstate(over="ignore"):
        x = ids + step
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray(x ^ (x >> np.uint64(31)))


# -- components ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Component:
    """Tie groups of two runs that hold documents in common, and the documents by kind: (group, group, key)."""

    query: int
    groups: tuple[tuple[int, ...], tuple[int, ...]]  # of the first run and of the second
    kinds: dict[tuple[int, int, float], int]  # how many documents are of a kind; group −1 is none

    @property
    def words(self) -> Words | None:
        """The different orders of its documents; None if there are too many."""
        return words(tuple(self.kinds.values()), sum(self.kinds.values()))


def components(a: Members, b: Members) -> list[Component] | None:
    """The components of two runs; None if they hold too many documents."""
    if len(a) + len(b) > MOST_DOCS:
        return None
    held: dict[int, list[float]] = {}
    for side, members in enumerate((a, b)):
        rows = zip(members.id.tolist(), members.group.tolist(), members.key.tolist(), strict=True)
        for one, group, key in rows:
            held.setdefault(one, [-1, -1, key])[side] = group
    parent = list(range(len(a.tied) + len(b.tied)))

    def root(node: int) -> int:
        while parent[node] != node:
            parent[node] = node = parent[parent[node]]
        return node

    for left, right, _ in held.values():
        if left >= 0 and right >= 0:
            parent[root(int(left))] = root(len(a.tied) + int(right))
    groups: dict[int, tuple[list[int], list[int]]] = {}
    for node in range(len(parent)):
        second = node >= len(a.tied)
        groups.setdefault(root(node), ([], []))[second].append(node - second * len(a.tied))
    kinds: dict[int, dict[tuple[int, int, float], int]] = {}
    for left, right, key in held.values():
        node = root(int(left) if left >= 0 else len(a.tied) + int(right))
        kind = (int(left), int(right), key)
        counted = kinds.setdefault(node, {})
        counted[kind] = counted.get(kind, 0) + 1
    return [
        Component(
            int(a.tied.query[left[0]] if left else b.tied.query[right[0]]),
            (tuple(left), tuple(right)),
            dict(sorted(kinds[node].items())),
        )
        for node, (left, right) in groups.items()
    ]


def lots_of(parts: list[Component], a: Tied, b: Tied) -> list[Lot]:
    """A lot for each component: what its groups add to the first run less what they add to the second."""
    found = [part.words for part in parts]
    spelled = [one for one in found if one is not None]
    assert len(spelled) == len(found)
    most = max((len(one.chance) for one in spelled), default=0)
    added = [
        np.array(list(_in_words(side, parts, tied, most))).reshape(most, len(tied)) for side, tied in enumerate((a, b))
    ]
    lots = []
    for part, one in zip(parts, spelled, strict=True):
        n = len(one.chance)
        left, right = (values[:n, list(some)].sum(axis=1) for values, some in zip(added, part.groups, strict=True))
        lots.append(Lot(left - right, one.chance).merged())
    return lots


def _in_words(side: int, parts: list[Component], tied: Tied, most: int) -> Iterator[Floats]:
    """What each group of one run adds with all components in their first order, their second, …"""
    ranks = [choice for part in parts for choice in _ranks(side, part, tied)]
    for word in range(most):
        rank = tied.rank.copy()
        for docs, choices in ranks:
            if word < len(choices):
                rank[docs] = choices[word]
        yield tied.shares(rank)


def _ranks(side: int, part: Component, tied: Tied) -> Iterator[tuple[slice, Codes]]:
    """For each group of one run in a component its documents, and their ranks in each order, (n_words, n_documents)."""
    spelled = part.words
    assert spelled is not None
    kinds = list(part.kinds)
    for group in part.groups[side]:
        mine = np.array([kind[side] == group for kind in kinds])
        place = np.cumsum(mine[spelled.kind], axis=1) - 1  # among the documents of the group
        docs = tied.docs_of(group)
        keys = tied.keys[tied.docs[docs]]
        rank = np.empty((len(spelled.chance), len(keys)), dtype=np.int64)
        for key in np.unique(keys).tolist():
            wanted = np.array([own and kind[2] == key for own, kind in zip(mine, kinds, strict=True)])
            letters = wanted[spelled.kind]
            slots = place[letters].reshape(len(place), -1)  # every word has as many of them
            rank[:, keys == key] = slots[:, : np.count_nonzero(keys == key)]
        yield docs, rank + 1 + int(tied.urns.group_start[tied.groups[group]])
