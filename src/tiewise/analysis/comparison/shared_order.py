"""One order of the documents that breaks the ties of several runs, as in a tool that sorts by document id.

The order is for one query, or for all queries. Tie groups that have a document in common depend on each other: they
make one component. Components are independent. A component with few arrangements is enumerated. Otherwise whole orders
are sampled: the priority of a document is a hash of its id and of the number of the sample, so every run of a
comparison sees the same order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tiewise.analysis.comparison.distribution import Distribution, TiedGroups
from tiewise.caching import cached_property
from tiewise.data.columns import Codes, Floats, positions
from tiewise.data.runs import Run
from tiewise.errors import InputError
from tiewise.metrics.enumeration import Arrangements, Moves, arrange, enumerate_orders
from tiewise.metrics.segments import segment_sum
from tiewise.ties.orders import Hashes, hash_names, random_priorities

#: About how many documents all sampled orders may sort, beyond the least number of orders.
MIN_SAMPLES, SORTED_DOCS = 200, 100_000_000
#: The most documents among which components are looked for, and the most of which orders are sampled.
MAX_LINKED, MAX_TIED = 50_000, 5_000_000


class TiedDocuments:
    """All documents of the tie groups that matter to a measure, judged or not.

    With `across_queries` one order is for all queries, so a document has one priority; else it has one in each query.
    """

    def __init__(self, tied: TiedGroups, run: Run, *, across_queries: bool):
        self.tied, self.across_queries = tied, across_queries
        size = tied.size
        if size.sum() > MAX_TIED:
            raise InputError(
                f"{size.sum():,} tied documents matter to {tied.measure}; one order for all runs takes at most "
                f"{MAX_TIED:,}. Compare fewer queries, give the measure a cutoff, or use independent orders."
            )
        grouped = tied.grouped
        qrels = grouped.ties.qrels
        query_of_run = positions(run.query_index, qrels.queries)
        query = grouped.group_query[tied.groups]
        first = run.offsets[query_of_run[query]] + tied.start
        self._group_start = np.repeat(np.cumsum(size) - size, size)
        self.group: Codes = np.repeat(np.arange(len(tied)), size)  # (n_documents,)
        rows = run.best_first[np.repeat(first, size) + np.arange(len(self.group)) - self._group_start]
        self._doc_hash = hash_names(run.docs, run.doc[rows])
        self._query_hash = hash_names(qrels.queries, query)[self.group]
        judgment_of_row = np.full(len(run), -1)
        found = run.find(qrels, query_of_run)[1]
        judgment_of_row[found[found >= 0]] = np.flatnonzero(found >= 0)
        judgment = judgment_of_row[rows]
        self.judged = np.flatnonzero(judgment >= 0)
        place = np.full(len(qrels), -1)
        place[grouped.rows] = np.arange(len(grouped.rows))
        self._target: Codes = place[judgment[self.judged]]  # the same documents as indices into those of `grouped`
        self.key = np.full(len(rows), tied.parts.unjudged_key)
        self.key[self.judged] = tied.parts.keys[self._target]

    def __len__(self) -> int:
        return len(self.group)

    def ids(self, *, across_queries: bool) -> Hashes:
        """A number for each document: the same in all queries, or another in each query."""
        return self._doc_hash if across_queries else self._doc_hash ^ self._query_hash

    def sample(self, samples: int, seed: int) -> Floats:
        """What all groups add to the sum over queries, in random orders that are the same for all runs."""
        n = min(samples, max(SORTED_DOCS // max(len(self), 1), MIN_SAMPLES))
        ids, grouped = self.ids(across_queries=self.across_queries), self.tied.grouped
        before, sums = grouped.offset.copy(), np.zeros(n)
        for number in range(n if len(self) else 0):
            before[self._target] = self.count_before(random_priorities(ids, seed, number))
            sums[number] = self.tied.add(grouped.in_places(before)).sum()
        return sums

    def count_before(self, priority: Hashes) -> Codes:
        """For each judged document, the number of documents of its group with a lower priority."""
        bits = np.uint64(max(len(self.tied) - 1, 1).bit_length())
        # One number for each document, with its group in the highest bits: faster to sort than two keys.
        number = (self.group.astype(np.uint64) << (np.uint64(64) - bits)) | (priority >> bits)
        ordered = np.sort(number)
        place: Codes = np.searchsorted(ordered, number[self.judged])
        if (ordered[1:] == ordered[:-1]).any():  # two priorities differ only in the bits that were shifted out
            place = np.empty(len(number), dtype=np.int64)
            place[np.lexsort((priority, self.group))] = np.arange(len(number))
            place = place[self.judged]
        return place - self._group_start[self.judged]


# -- components -------------------------------------------------------------------------------------------------------

Kind = tuple[tuple[int, int, float], ...]  #: the groups that a document is in, as (run, group, key)


@dataclass(frozen=True)
class Component:
    """Tie groups of one or more runs that one order arranges together, and their documents by kind."""

    groups: tuple[tuple[int, ...], ...]  #: of each run
    kinds: dict[Kind, int]  #: the number of documents of each kind
    slots: int  #: how many documents of an arrangement matter

    @property
    def first(self) -> tuple[int, int]:
        """The run and the index of its first group."""
        return next((run, groups[0]) for run, groups in enumerate(self.groups) if groups)

    @property
    def size(self) -> int:
        """The number of its documents."""
        return sum(self.kinds.values())

    @cached_property
    def arrangements(self) -> Arrangements | None:
        """The different orders of its documents; None if there are too many."""
        return arrange(tuple(self.kinds.values()), self.slots)

    def moves(self, run: int, tied: TiedGroups, number: int) -> Moves:
        """The places of the judged documents of one run in each arrangement; `number` is that of this component."""
        assert self.arrangements is not None
        key_of = [{(side, group): key for side, group, key in kind} for kind in self.kinds]
        documents, before = [], []
        for group in self.groups[run]:
            place = tied.groups[group]
            own = tied.grouped.first[place] + np.arange(tied.grouped.n_judged[place])
            every = sorted({keys[run, group] for keys in key_of if (run, group) in keys})
            kind_of = np.array([every.index(keys[run, group]) if (run, group) in keys else -1 for keys in key_of])
            documents.append(own)
            before.append(self.arrangements.before(np.searchsorted(every, tied.parts.keys[own]), kind_of))
        return Moves(number, self.arrangements.probabilities, np.concatenate(documents), np.hstack(before))


def enumerate_components(components: Sequence[Component], runs: Sequence[TiedGroups]) -> list[Distribution]:
    """For each component the distribution of what its groups add to the first run minus what they add to the others."""
    chances = [one.arrangements.probabilities for one in components if one.arrangements is not None]
    difference = np.zeros((max(map(len, chances), default=0), len(components)))
    for run, tied in enumerate(runs):
        moves = [one.moves(run, tied, number) for number, one in enumerate(components) if one.groups[run]]
        owner = np.full(tied.parts.n_parts, len(components))  # the component of each tie group, or none
        for number, one in enumerate(components):
            owner[tied.groups[list(one.groups[run])]] = number
        for index, (order, _) in enumerate(enumerate_orders(moves, tied.grouped, len(components)) if moves else ()):
            added = segment_sum(owner, tied.add(order), len(components) + 1)[:-1]
            difference[index] += -added if run else added
    return [Distribution.of_outcomes(x[: len(p)], p) for x, p in zip(difference.T, chances, strict=True)]


def link_groups(runs: Sequence[TiedDocuments], *, across_queries: bool) -> list[Component] | None:
    """The components of some runs, within each query or across all; None if there are too many documents.

    There are none for a measure that is not a sum over documents: its groups act together.
    """
    if sum(map(len, runs)) > MAX_LINKED or not all(run.tied.measure.additive for run in runs):
        return None
    kind_of: dict[int, list[tuple[int, int, float]]] = {}
    for run, documents in enumerate(runs):
        ids = documents.ids(across_queries=across_queries).tolist()
        for one, group, key in zip(ids, documents.group.tolist(), documents.key.tolist(), strict=True):
            kind_of.setdefault(one, []).append((run, group, key))
    parent = {(run, group): (run, group) for run, documents in enumerate(runs) for group in range(len(documents.tied))}

    def root(node: tuple[int, int]) -> tuple[int, int]:
        while parent[node] != node:
            parent[node] = node = parent[parent[node]]
        return node

    for kind in kind_of.values():
        for one in kind[1:]:
            parent[root(one[:2])] = root(kind[0][:2])
    groups: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for node in parent:
        groups.setdefault(root(node), []).append(node)
    kinds: dict[tuple[int, int], dict[Kind, int]] = {node: {} for node in groups}
    for kind in kind_of.values():
        counts, key_of_kind = kinds[root(kind[0][:2])], tuple(kind)
        counts[key_of_kind] = counts.get(key_of_kind, 0) + 1
    return [_component(nodes, kinds[node], runs) for node, nodes in groups.items()]


def _component(nodes: list[tuple[int, int]], kinds: dict[Kind, int], runs: Sequence[TiedDocuments]) -> Component:
    run, group = nodes[0]
    return Component(
        tuple(tuple(group for of, group in nodes if of == run) for run in range(len(runs))),
        dict(sorted(kinds.items())),
        # A single group matters only as far down as the measure looks.
        int(runs[run].tied.inside[group]) if len(nodes) == 1 else sum(kinds.values()),
    )
