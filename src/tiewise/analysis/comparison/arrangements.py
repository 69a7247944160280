"""The tie groups of a run whose order can change a measure, and all arrangements of their documents.

Documents that a measure does not tell apart are of one kind. Only the order of the kinds matters, so a group of few
kinds has few different arrangements. They are enumerated; a group with too many of them is sampled.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from tiewise.analysis.comparison.distribution import Distribution
from tiewise.caching import cached_property
from tiewise.data.columns import Codes, Floats
from tiewise.metrics.arrangements import Arrangements, arrange
from tiewise.metrics.definition import Measure
from tiewise.metrics.engine import divisors, expected
from tiewise.metrics.grouped_judgments import GroupedJudgments, Order
from tiewise.metrics.segments import safe_divide, segment_sum

__all__ = ["Component", "TiedGroups", "enumerate_components"]


class TiedGroups:
    """The tie groups of a run whose order can change a measure, and what each of them adds to it in an order.

    `keys` tells documents apart as the measure does: by gain, or by label if the measure has its own `terms`.
    """

    def __init__(self, measure: Measure, grouped: GroupedJudgments, kept: NDArray[np.bool_]):
        self.measure, self.grouped = measure, grouped
        self.depth = np.asarray(measure.depth(grouped))
        inside = np.clip(self.depth[grouped.group_query] - grouped.group_start, 0, grouped.group_size).astype(int)
        self.keys, self.unjudged_key = measure.kinds(grouped)
        self.groups = np.flatnonzero((inside > 0) & kept[grouped.group_query] & self._has_several_kinds())
        self.inside: Codes = inside[self.groups]  #: the ranks of each group that the measure looks at
        self.size: Codes = grouped.group_size[self.groups]
        self.judged: Codes = grouped.n_judged[self.groups]  #: the number of judged documents of each group
        self.start: Codes = grouped.group_start[self.groups]
        self._kept = kept
        self._divisor = divisors(measure, grouped)[grouped.group_query]
        self.queries = np.zeros(grouped.n_queries, dtype=bool)  #: whether a query has such a group
        self.queries[grouped.group_query[self.groups]] = True
        # All judged documents of lists with such a group, as indices into the arrays of `grouped`.
        self.docs = np.flatnonzero(self.queries[grouped.query] & (grouped.start < self.depth[grouped.query]))
        offset = np.arange(len(grouped.group)) - grouped.first[grouped.group]
        self.rank: Codes = (grouped.start + 1 + offset)[self.docs]  #: their ranks in one possible order
        self.rows: Codes = grouped.rows[self.docs]
        self._first: Codes = np.searchsorted(self.docs, grouped.first[self.groups])
        self._query_key = grouped.query[self.docs].astype(np.int64) << 32

    def _has_several_kinds(self) -> NDArray[np.bool_]:
        grouped = self.grouped
        if not len(grouped.first):
            return np.zeros(0, dtype=bool)
        low, high = np.minimum.reduceat(self.keys, grouped.first), np.maximum.reduceat(self.keys, grouped.first)
        has_unjudged = grouped.group_size > grouped.n_judged
        low = np.where(has_unjudged, np.minimum(low, self.unjudged_key), low)
        high = np.where(has_unjudged, np.maximum(high, self.unjudged_key), high)
        return np.asarray(low < high)

    def __len__(self) -> int:
        return len(self.groups)

    @property
    def digest(self) -> list[int]:
        """Numbers that follow from the groups and their judged documents alone: a seed that knows no names."""
        facts = (self.query, self.start, self.size, self.judged, np.sort(self.rows[self.judged_docs()]))
        whole = np.concatenate(facts).astype("<i8")
        return list(blake2b(whole.tobytes(), digest_size=16).digest())

    @property
    def query(self) -> Codes:
        """The query of each group."""
        return self.grouped.group_query[self.groups]

    def contributions(self, rank: Codes) -> Floats:
        """What each group adds to the value of its query if `docs` have these ranks, (n_groups,)."""
        rows = np.argsort(self._query_key + rank)
        return self._of_groups(self.docs[rows], rank[rows], self.grouped.rows[self.docs[rows]])

    def contributions_of_rows(self, rank: Codes, rows: Codes) -> Floats:
        """The same if these rows of the qrels, group by group, have these ranks, which ascend in each query."""
        return self._of_groups(self.docs, rank, rows)

    def _of_groups(self, docs: Codes, rank: Codes, rows: Codes) -> Floats:
        """What each group adds; the ranks ascend in each query.

        The value of a measure that is not a sum over documents belongs to the first of its query's groups.
        """
        if not self.measure.additive:
            order = Order(self.grouped, self.grouped.query[docs], rank, rows)
            values = self.measure.values(order)
            if np.isnan(values[self.query]).any():  # not defined in this order
                values = np.where(np.isnan(values), self._expected, values)
            return np.where(np.diff(self.query, prepend=-1) > 0, values[self.query], 0.0)
        return safe_divide(self._sum_terms(docs, rank, rows)[self.groups], self._divisor[self.groups])

    @cached_property
    def _expected(self) -> Floats:
        return expected(self.measure, self.grouped)

    def _sum_terms(self, docs: Codes, rank: Codes, rows: Codes) -> Floats:
        """The sum of the terms of every group of `grouped`; the ranks ascend in each query."""
        grouped = self.grouped
        order = Order(grouped, grouped.query[docs], rank, rows)
        within = order.rank <= self.depth[order.query]
        terms = np.where(within, self.measure.terms(order), 0.0)
        return segment_sum(grouped.group[docs], terms, len(grouped.first))

    def constant(self, expected: Floats) -> float:
        """The sum over queries without what these groups add; `expected` has the values of all queries."""
        certain = float(expected[self._kept & ~self.queries].sum())
        if not self.measure.additive:
            return certain
        rest = np.ones(len(self.grouped.first), dtype=bool)
        rest[self.groups] = False
        terms = safe_divide(self._sum_terms(self.docs, self.rank, self.rows), self._divisor)[rest].sum()
        fixed = terms + self.measure.base(self.grouped)[self.queries].sum()
        return certain + float(fixed)

    def docs_of(self, group: int) -> slice:
        """The judged documents of a group, as a slice of `docs`."""
        first = int(self._first[group])
        return slice(first, first + int(self.judged[group]))

    def judged_docs(self) -> Codes:
        """The judged documents of all groups, group by group, as indices into `docs`."""
        ends = np.cumsum(self.judged)
        indices: Codes = np.arange(int(self.judged.sum())) + np.repeat(self._first - (ends - self.judged), self.judged)
        return indices

    def components(self) -> list[Component] | None:
        """Each group as a component of its own: the groups are ordered independently. None if they act together."""
        if not self.measure.additive:
            return None
        return [Component(((group,),), self._count_kinds(group), int(self.inside[group])) for group in range(len(self))]

    def _count_kinds(self, group: int) -> dict[Kind, int]:
        keys = self.keys[self.docs[self.docs_of(group)]]
        unjudged = int(self.size[group] - self.judged[group])
        kinds, counts = np.unique(np.append(keys, [self.unjudged_key] * bool(unjudged)), return_counts=True)
        counts[np.searchsorted(kinds, self.unjudged_key)] += unjudged - 1 if unjudged else 0
        return {((0, group, key),): count for key, count in zip(kinds.tolist(), counts.tolist(), strict=True)}


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

    def ranks(self, run: int, tied: TiedGroups) -> Iterator[tuple[slice, Codes]]:
        """For each group of one run: its judged documents, and their ranks, (n_arrangements, n_documents).

        A document outside the slots has a rank below all of them.
        """
        assert self.arrangements is not None
        kinds, n = self.arrangements.kinds, self.slots
        key_of = [{(side, group): key for side, group, key in kind} for kind in self.kinds]
        behind = n + np.arange(n)
        for group in self.groups[run]:
            in_group = np.array([(run, group) in keys for keys in key_of])
            position = np.cumsum(in_group[kinds], axis=1) - 1  # among the documents of the group
            docs = tied.docs_of(group)
            keys = tied.keys[tied.docs[docs]]
            rank = np.empty((len(kinds), len(keys)), dtype=np.int64)
            for key in np.unique(keys).tolist():
                has_key = np.array([one.get((run, group)) == key for one in key_of])[kinds]
                columns = np.flatnonzero(keys == key)
                positions = np.sort(np.where(has_key, position, behind), axis=1)
                outside = np.full((len(kinds), max(len(columns) - n, 0)), 2 * n)
                rank[:, columns] = np.hstack([positions, outside])[:, : len(columns)]
            yield docs, rank + 1 + int(tied.start[group])


def enumerate_components(components: Sequence[Component], runs: Sequence[TiedGroups]) -> list[Distribution]:
    """For each component the distribution of what its groups add to the first run minus what they add to the others."""
    each = [component.arrangements for component in components]
    longest = max((len(one) for one in each if one is not None), default=0)
    added = [
        np.array(list(_contributions(run, components, tied, longest))).reshape(longest, len(tied))
        for run, tied in enumerate(runs)
    ]
    found = []
    for component, arrangements in zip(components, each, strict=True):
        assert arrangements is not None
        first, *others = (
            values[: len(arrangements), list(groups)].sum(axis=1)
            for values, groups in zip(added, component.groups, strict=True)
        )
        found.append(Distribution.of_outcomes(first - sum(others), arrangements.probabilities))
    return found


def _contributions(run: int, components: Sequence[Component], tied: TiedGroups, n: int) -> Iterator[Floats]:
    """What each group of one run adds, with all components in their first arrangement, their second, …"""
    ranks = [choice for component in components for choice in component.ranks(run, tied)]
    for index in range(n):
        rank = tied.rank.copy()
        for docs, choices in ranks:
            if index < len(choices):
                rank[docs] = choices[index]
        yield tied.contributions(rank)
