"""One order of the documents that breaks the ties of several runs, as in a tool that sorts by document id.

The order is for one query, or for all queries. Tie groups that have a document in common depend on each other: they
make one component. Components are independent. A component with few arrangements is enumerated. Otherwise whole orders
are sampled: the priority of a document is a hash of its id and of the number of the sample, so every run of a
comparison sees the same order.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from tiewise.analysis.comparison.arrangements import Component, Kind, TiedGroups
from tiewise.data.columns import Codes, Floats, positions
from tiewise.data.runs import Run
from tiewise.errors import InputError
from tiewise.metrics.enumeration import mix_bits
from tiewise.ties.orders import group_rows

__all__ = ["TiedDocuments", "link_groups", "sample_shared_orders"]

#: About how many documents all sampled orders may sort, beyond the least number of orders.
MIN_SAMPLES, SORTED_DOCS = 200, 100_000_000
#: The most documents among which components are looked for, and the most of which orders are sampled.
MAX_LINKED, MAX_TIED = 50_000, 5_000_000

Hashes = NDArray[np.uint64]


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
        qrels = tied.grouped.ties.qrels
        query_of_run = positions(run.query_index, qrels.queries)
        first = run.offsets[query_of_run[tied.query]] + tied.start
        self._group_start = np.repeat(np.cumsum(size) - size, size)
        self.group: Codes = np.repeat(np.arange(len(tied)), size)  # (n_documents,)
        rows = group_rows(run)[0][np.repeat(first, size) + np.arange(len(self.group)) - self._group_start]
        self._doc_hash = _hash_names(run.docs, run.doc[rows])
        self._query_hash = _hash_names(qrels.queries, tied.query)[self.group]
        judgment_of_row = np.full(len(run), -1)
        found = run.find(qrels, query_of_run)[1]
        judgment_of_row[found[found >= 0]] = np.flatnonzero(found >= 0)
        judgment = judgment_of_row[rows]
        self.judged = np.flatnonzero(judgment >= 0)
        place = np.full(len(qrels), -1)
        place[tied.grouped.rows[tied.docs]] = np.arange(len(tied.docs))
        self.target: Codes = place[judgment[self.judged]]  #: the same documents as indices into `tied.docs`
        self.key = np.full(len(rows), tied.unjudged_key)
        self.key[self.judged] = tied.keys[tied.docs[self.target]]

    def __len__(self) -> int:
        return len(self.group)

    def ids(self, *, across_queries: bool) -> Hashes:
        """A number for each document: the same in all queries, or another in each query."""
        return self._doc_hash if across_queries else self._doc_hash ^ self._query_hash

    def rank(self, priority: Hashes) -> Codes:
        """The ranks of `tied.docs` if the documents of each group are sorted by ascending priority."""
        rank = self.tied.rank.copy()
        rank[self.target] = self.tied.start[self.group[self.judged]] + 1 + self._count_before(priority)
        return rank

    def _count_before(self, priority: Hashes) -> Codes:
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


def _hash_names(names: Sequence[str], codes: Codes) -> Hashes:
    """The hash of the name of each code."""
    used, index = np.unique(codes, return_inverse=True)
    digests = (blake2b(names[code].encode(), digest_size=8).digest() for code in used.tolist())
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)[index]


def sample_shared_orders(documents: TiedDocuments, samples: int, seed: int) -> Floats:
    """What all groups add to the sum over queries, in random orders that are the same for all runs."""
    n = min(samples, max(SORTED_DOCS // max(len(documents), 1), MIN_SAMPLES))
    ids, tied = documents.ids(across_queries=documents.across_queries), documents.tied
    return np.array([tied.contributions(documents.rank(_priority(ids, seed, i))).sum() for i in range(n)])


def _priority(ids: Hashes, seed: int, sample: int) -> Hashes:
    """A random number for each id, the same wherever the id occurs (SplitMix64)."""
    step = np.uint64((0x9E3779B97F4A7C15 * sample + 0xD1B54A32D192ED03 * (seed + 1)) % 2**64)
    return np.asarray(mix_bits(ids + step))


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
