"""Lists that may be truncated inside their last tie group, and what that group may have held.

Whatever it was, its ranks hold at best the best documents of the group and of those that were not retrieved, best
first, and at worst documents that are worth nothing: Eq. (18). The groups above it stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tiewise.data.columns import Codes, heads
from tiewise.metrics.definition import Measure
from tiewise.metrics.grouped_judgments import GroupedJudgments
from tiewise.ties.groups import TieGroups


def reaches_last_group(measure: Measure, grouped: GroupedJudgments) -> NDArray[np.bool_]:
    """Whether a measure looks into the last tie group of a list that may be truncated there, (n_queries,)."""
    ties, start = grouped.ties, grouped.ties.last_start
    if ties.condensed_end is None:
        return ties.may_be_truncated & (measure.depth(grouped) > start)
    ranks = np.minimum(ties.lowest_size, ties.condensed_end.candidates)
    short, long = (GroupedJudgments(replace(ties, length=length)) for length in (start, start + ranks))
    looks = (measure.depth(long) > start) | (measure.base(long) != measure.base(short))
    return ties.may_be_truncated & looks


class LastGroups:
    """The last tie groups of some lists that may be truncated there, given by the places of their queries."""

    def __init__(self, grouped: GroupedJudgments, places: Codes):
        self.places = places
        self._ties = ties = grouped.ties.select_queries(places)
        chosen = np.zeros(grouped.n_queries, dtype=bool)
        chosen[places] = True
        #: The tied groups above the last ones, of the groups of all queries.
        self.above = np.flatnonzero(grouped.above_last & chosen[grouped.group_query])
        self._may_be_there = ties.in_last_group | (ties.size == 0)  # which judged documents
        if ties.condensed_end is not None:
            self._may_be_there &= ties.qrels.label >= 0

    def fill(self, measures: Sequence[Measure], how: Literal["best", "worst"]) -> Iterator[GroupedJudgments]:
        """The lists with the best documents there are for the last group, or the worst, by each of the measures.

        In condensed lists it holds no documents besides, or as many judged ones that are worth nothing as there can be.
        """
        ties = self._ties
        query, label = ties.qrels.query, ties.qrels.label
        gains = [measure.gain(label) for measure in measures]
        is_better = np.logical_or.reduce([gain > 0 if how == "best" else gain < 0 for gain in gains])  # than unjudged
        rows = np.flatnonzero(self._may_be_there & is_better)
        if len(rows):
            worth = np.abs(gains[0]) if len(measures) == 1 else label if how == "best" else -label
            rows = rows[np.lexsort((-worth[rows], query[rows]))]
            place = np.arange(len(rows)) - heads(query[rows])
            rows = rows[place < ties.lowest_size[query[rows]]]
        sizes, end = [ties.lowest_size], ties.condensed_end
        if end is not None:
            others = self._may_be_there & (gains[0] > 0) if how == "worst" else np.zeros(len(query), dtype=bool)
            most = end.candidates - np.bincount(query[others], minlength=len(end.candidates))
            sizes = [np.bincount(query[rows], minlength=len(most)), np.minimum(ties.lowest_size, most)]
        for ranks in sizes:
            yield GroupedJudgments(ties.with_last_group(rows, ranks))


def untie_last_group(measure: Measure, ties: TieGroups) -> GroupedJudgments:
    """The same lists with the documents of the last tie group in their best order, those with a key of 0 at its end."""
    query = ties.qrels.query
    rows = np.flatnonzero((ties.size > 0) & (ties.start == ties.last_start[query]))
    rows = rows[np.lexsort((-measure.key(ties.qrels.label[rows]), query[rows]))]
    start, size = ties.start.copy(), ties.size.copy()
    start[rows] += np.arange(len(rows)) - heads(query[rows])
    size[rows] = 1
    return GroupedJudgments(replace(ties, start=start, size=size))
