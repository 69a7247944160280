"""One order of the documents for several runs: what a tool does that breaks all ties by the same rule.

The order is one for each query, or one of all document ids, for all queries. A document then stands before another
wherever the two are tied, in every run and in every query that the order is for. Tie groups that have a document in
common are drawn together, as one component; components are independent. A component of few documents is enumerated
like a single tie group; others are drawn: the priority of a document is a hash of its id and of the number of the draw,
so that every run of a comparison sees the same order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from tiewise.analysis.comparison.distribution import Lot, Tied, Words, words
from tiewise.data.columns import Codes, Floats, positions
from tiewise.data.runs import Run
from tiewise.errors import InputError
from tiewise.ties.orders import group_rows

__all__ = ["Component", "Members", "components", "drawn", "lots_of"]

#: How many random orders are drawn, at least and at most, and how many documents they may move in all.
FEWEST, DRAWS, MOVED = 200, 1000, 100_000_000
#: Components are looked for among at most so many documents, and orders drawn of at most so many.
MOST_DOCS, MOST_TIED = 50_000, 5_000_000

Hashes = NDArray[np.uint64]


class Members:
    """All documents of the tie groups that matter to a measure, judged or not; an id is the same in all runs.

    With `across_queries` one order is for all queries, so that a document has one priority; else it has one in each.
    """

    def __init__(self, tied: Tied, run: Run, *, across_queries: bool):
        self.tied, self.across_queries = tied, across_queries
        size = tied.urns.group_size[tied.groups]
        if size.sum() > MOST_TIED:
            raise InputError(
                f"{size.sum():,} tied documents matter to {tied.measure}; one order for all runs takes at most "
                f"{MOST_TIED:,}. Compare fewer queries, give the measure a cutoff, or use independent orders."
            )
        qrels = tied.urns.ties.qrels
        places = positions(run.query_index, qrels.queries)
        first = run.offsets[places[tied.query]] + tied.urns.group_start[tied.groups]
        self._head = np.repeat(np.cumsum(size) - size, size)
        self.group: Codes = np.repeat(np.arange(len(tied)), size)  # (n_members,)
        rows = group_rows(run)[0][np.repeat(first, size) + np.arange(len(self.group)) - self._head]
        self.doc = _hashes(run.docs, run.doc[rows])
        self._query = _hashes(qrels.queries, tied.query)[self.group]
        label_of_row = np.full(len(run), np.nan)
        found = run.find(qrels, places)[1]
        label_of_row[found[found >= 0]] = qrels.label[found >= 0]
        label = label_of_row[rows]
        judged = np.flatnonzero(~np.isnan(label))
        # In `tied.docs` a group's documents descend by label, and equal labels may change places.
        self.judged = judged[np.lexsort((-label[judged], self.group[judged]))]
        self.target = tied.judged()
        self.key = np.full(len(label), tied.unjudged)
        self.key[self.judged] = tied.keys[tied.docs[self.target]]

    def __len__(self) -> int:
        return len(self.doc)

    def ids(self, *, across_queries: bool) -> Hashes:
        """A number for each member: the same for a document in all queries, or another in each query."""
        return self.doc if across_queries else self.doc ^ self._query

    def rank(self, priority: Hashes) -> Codes:
        """The ranks of `tied.docs` when the members of each group stand by ascending priority."""
        rank = self.tied.rank.copy()
        rank[self.target] = self._start + 1 + self._before(priority)
        return rank

    @cached_property
    def _start(self) -> Codes:
        """How many documents stand above the group of each judged member."""
        start: Codes = self.tied.urns.group_start[self.tied.groups][self.group[self.judged]]
        return start

    def _before(self, priority: Hashes) -> Codes:
        """How many members of its group have a lower priority than each judged member."""
        bits = np.uint64(max(len(self.tied) - 1, 1).bit_length())
        # One number a member, its group in the highest bits: numbers are sorted much faster than two keys.
        number = (self.group.astype(np.uint64) << (np.uint64(64) - bits)) | (priority >> bits)
        ordered = np.sort(number)
        place: Codes = np.searchsorted(ordered, number[self.judged])
        if (ordered[1:] == ordered[:-1]).any():  # two priorities differ in the bits that were left out
            place = np.empty(len(number), dtype=np.int64)
            place[np.lexsort((priority, self.group))] = np.arange(len(number))
            place = place[self.judged]
        return place - self._head[self.judged]


def _hashes(names: Sequence[str], codes: Codes) -> Hashes:
    """The hash of the name of each code."""
    used, at = np.unique(codes, return_inverse=True)
    each = (blake2b(names[code].encode(), digest_size=8).digest() for code in used.tolist())
    return np.frombuffer(b"".join(each), dtype="<u8").astype(np.uint64)[at]


def drawn(members: Members, seed: int) -> Floats:
    """The sum of what all groups add to their queries' values, in random orders that are the same for all runs."""
    draws = int(np.clip(MOVED // max(len(members), 1), FEWEST, DRAWS))
    ids = members.ids(across_queries=members.across_queries)
    return np.array([members.tied.shares(members.rank(_priority(ids, seed, i))).sum() for i in range(draws)])


def _priority(ids: Hashes, seed: int, draw: int) -> Hashes:
    """A number for each id that is random, and the same wherever the id stands (splitmix64)."""
    step = np.uint64((0x9E3779B97F4A7C15 * (draw + 1) + 0xD1B54A32D192ED03 * (seed + 1)) % 2**64)
    with np.errstate(over="ignore"):
        x = ids + step
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray(x ^ (x >> np.uint64(31)))


# -- components ---------------------------------------------------------------------------------------------------

Kind = tuple[tuple[int, int, float], ...]  # the groups that a document stands in, as (run, group, key)


@dataclass(frozen=True)
class Component:
    """Tie groups of some runs that have documents in common, and the documents by kind."""

    groups: tuple[tuple[int, ...], ...]  # of each run
    kinds: dict[Kind, int]  # how many documents are of a kind

    @property
    def first(self) -> tuple[int, int]:
        """The run and the number of its first group."""
        return next((side, some[0]) for side, some in enumerate(self.groups) if some)

    @property
    def size(self) -> int:
        """The number of its documents."""
        return sum(self.kinds.values())

    @cached_property
    def words(self) -> Words | None:
        """The different orders of its documents; None if there are too many."""
        return words(tuple(self.kinds.values()), self.size)


def components(sides: Sequence[Members], *, across_queries: bool) -> list[Component] | None:
    """The components of some runs, within each query or across all of them; None if they hold too many documents."""
    if sum(map(len, sides)) > MOST_DOCS:
        return None
    held: dict[int, list[tuple[int, int, float]]] = {}
    for side, members in enumerate(sides):
        ids = members.ids(across_queries=across_queries).tolist()
        for one, group, key in zip(ids, members.group.tolist(), members.key.tolist(), strict=True):
            held.setdefault(one, []).append((side, group, key))
    parent = {(side, group): (side, group) for side, members in enumerate(sides) for group in range(len(members.tied))}

    def root(node: tuple[int, int]) -> tuple[int, int]:
        while parent[node] != node:
            parent[node] = node = parent[parent[node]]
        return node

    for kind in held.values():
        for one in kind[1:]:
            parent[root(one[:2])] = root(kind[0][:2])
    groups: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for node in parent:
        groups.setdefault(root(node), []).append(node)
    kinds: dict[tuple[int, int], dict[Kind, int]] = {node: {} for node in groups}
    for kind in held.values():
        counted, key = kinds[root(kind[0][:2])], tuple(kind)
        counted[key] = counted.get(key, 0) + 1
    return [
        Component(
            tuple(tuple(group for of, group in nodes if of == side) for side in range(len(sides))),
            dict(sorted(kinds[node].items())),
        )
        for node, nodes in groups.items()
    ]


def lots_of(parts: Sequence[Component], sides: Sequence[Tied]) -> list[Lot]:
    """A lot for each component: what its groups add to the first run, less what they add to the others."""
    spelled = [part.words for part in parts]
    most = max((len(one.chance) for one in spelled if one is not None), default=0)
    added = [
        np.array(list(_in_words(side, parts, tied, most))).reshape(most, len(tied)) for side, tied in enumerate(sides)
    ]
    lots = []
    for part, one in zip(parts, spelled, strict=True):
        assert one is not None
        n = len(one.chance)
        first, *others = (values[:n, list(some)].sum(axis=1) for values, some in zip(added, part.groups, strict=True))
        lots.append(Lot(first - sum(others), one.chance).merged())
    return lots


def _in_words(side: int, parts: Sequence[Component], tied: Tied, most: int) -> Iterator[Floats]:
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
    key_in = [{(of, group): key for of, group, key in kind} for kind in part.kinds]
    for group in part.groups[side]:
        mine = np.array([(side, group) in keys for keys in key_in])
        place = np.cumsum(mine[spelled.kind], axis=1) - 1  # among the documents of the group
        docs = tied.docs_of(group)
        keys = tied.keys[tied.docs[docs]]
        rank = np.empty((len(spelled.chance), len(keys)), dtype=np.int64)
        for key in np.unique(keys).tolist():
            letters = np.array([one.get((side, group)) == key for one in key_in])[spelled.kind]
            slots = place[letters].reshape(len(place), -1)  # every word has as many of them
            rank[:, keys == key] = slots[:, : np.count_nonzero(keys == key)]
        yield docs, rank + 1 + int(tied.urns.group_start[tied.groups[group]])
