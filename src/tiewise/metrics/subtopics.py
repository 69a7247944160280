"""Tie groups in which every subtopic is a query of its own, for measures that add up a measure of each subtopic.

A diversity measure is a sum over the subtopics of a query,

    M(q) = Σ_s part(s) / divisor(q),

where `part` is an ordinary measure of the labels for subtopic s. Expectations add up, whatever documents the subtopics
have in common, so E is the sum of the expectations of Eq. (2). The extremes of the sum lie within the sums of the
extremes. The variance depends on the documents that subtopics have in common.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tiewise.caching import cached_method
from tiewise.data.columns import Codes, Floats, heads
from tiewise.data.judgments import Qrels
from tiewise.metrics import engine
from tiewise.metrics.grouped_judgments import GroupedJudgments, Order
from tiewise.metrics.segments import safe_divide, segment_sum

if TYPE_CHECKING:
    from tiewise.metrics.catalogue.parts import Binary
    from tiewise.metrics.definition import Measure


class SubtopicJudgments:
    """The tie groups of some queries with the labels for each of their subtopics.

    Labels are sorted by subtopic, and subtopics by query.
    """

    def __init__(self, grouped: GroupedJudgments):
        ties, qrels = grouped.ties, grouped.ties.qrels
        qrels.check_subtopics("A diversity measure")
        found = qrels.subtopics
        assert found is not None
        n_names = max(len(found.names), 1)
        key = qrels.query[found.row] * n_names + found.code
        order = np.argsort(key, kind="stable")
        subtopics, first, self.subtopic = np.unique(key[order], return_index=True, return_inverse=True)  # (n_labels,)
        self.query = subtopics // n_names  # (n_subtopics,): the query of each subtopic
        self.row: Codes = found.row[order]  # (n_labels,): the judged document of each label
        self.label: Floats = found.label[order]
        self._n_queries, self._n_groups, self._n_rows = grouped.n_queries, len(grouped.first), len(qrels)
        names, offsets = tuple(map(str, range(len(first)))), np.append(first, len(order))
        of_subtopics = Qrels(names, offsets, qrels.documents.take(self.row), self.label)
        self.grouped = GroupedJudgments(ties.for_judgments(of_subtopics, self.row, self.query))
        group_of_row = np.full(len(qrels), -1)
        group_of_row[grouped.rows] = grouped.group
        # For each tie group of a subtopic, the tie group of the query that it is a part of.
        self._group: Codes = group_of_row[self.row[self.grouped.rows[self.grouped.first]]]
        bounds = np.arange(grouped.n_queries + 1)
        self._first_row, self._first_subtopic = qrels.offsets, np.searchsorted(self.query, bounds)
        self._first_label = np.searchsorted(self.query[self.subtopic], bounds)

    def count_subtopics(self, measure: Binary) -> Floats:
        """The number of subtopics of each query that have a relevant document, (n_queries,)."""
        return self.sum(self.grouped.relevant(measure) > 0)

    def count_relevant(self, measure: Binary) -> Floats:
        """The number of subtopics for which each judged document is relevant, (n_rows of the qrels,)."""
        return segment_sum(self.row, measure.gain(self.label), self._n_rows)

    # -- statistics of a measure of each subtopic ----------------------------------------------------------------

    def terms(self, part: Measure, order: Order) -> Floats:
        """What each document of an order adds to the sum over its subtopics."""
        labels, divisor = self._relevant(part)  # the others add nothing
        place = np.full(self._n_rows, -1)
        place[order.rows] = np.arange(len(order.rows))
        document = place[self.row[labels]]
        listed = np.flatnonzero(document >= 0)
        labels, document = labels[listed], document[listed]
        rank = order.rank[document]
        by_rank = np.argsort(self.subtopic[labels] * (rank.max(initial=0.0) + 1) + rank)
        labels, document, rank = labels[by_rank], document[by_rank], rank[by_rank]
        terms = part.terms(Order(self.grouped, self.subtopic[labels], rank, labels))
        return segment_sum(document, safe_divide(terms, divisor[self.subtopic[labels]]), len(order.rows))

    @cached_method
    def _relevant(self, part: Measure) -> tuple[Codes, Floats]:
        """The labels with a gain, and what each subtopic is divided by."""
        return np.flatnonzero(part.gain(self.label)), np.asarray(part.divisor(self.grouped), dtype=np.float64)

    def group_means(self, part: Measure) -> Floats:
        """The expectation of each tie group, summed over subtopics, (n_groups,)."""
        return segment_sum(self._group, self._group_means(part), self._n_groups)

    def expected(self, part: Measure) -> Floats:
        """The expectation of each subtopic, (n_subtopics,)."""
        return segment_sum(self.grouped.group_query, self._group_means(part), len(self.query))

    @cached_method
    def _group_means(self, part: Measure) -> Floats:
        return safe_divide(engine.group_means(part, self.grouped), self._relevant(part)[1][self.grouped.group_query])

    def group_extremes(self, part: Measure) -> tuple[Floats, Floats]:
        """The lowest and the highest value of each tie group, summed over subtopics, (n_groups,)."""
        divisor = self._relevant(part)[1][self.grouped.group_query]
        low, high = (
            segment_sum(self._group, safe_divide(engine.part_values(part, order), divisor), self._n_groups)
            for order in (self.grouped.worst(part), self.grouped.best(part))
        )
        return low, high

    def sum(self, values: NDArray[Any]) -> Floats:
        """The sum over the subtopics of each query, (n_queries,)."""
        return segment_sum(self.query, values, self._n_queries)

    # -- documents -----------------------------------------------------------------------------------------------

    def sets(self, measure: Binary) -> Floats:
        """A number for each set of subtopics, of each judged document; 0 if it is relevant for none, (n_rows,)."""
        relevant = np.flatnonzero(measure.gain(self.label) > 0)
        by_row = relevant[np.argsort(self.row[relevant], kind="stable")]  # and by subtopic
        row, subtopic = self.row[by_row], self.subtopic[by_row]
        column = np.arange(len(row)) - heads(row)
        number = np.zeros(self._n_rows, dtype=np.int64)
        for place in range(int(column.max(initial=-1)) + 1):  # one subtopic after another
            there = np.flatnonzero(column == place)
            longer = number[row[there]] * (len(self.query) + 1) + subtopic[there]
            number[row[there]] = number.max() + 1 + np.unique(longer, return_inverse=True)[1]
        return number.astype(np.float64)

    def matrix(self, measure: Binary, query: int) -> NDArray[np.bool_]:
        """For which subtopics of a query its judged documents are relevant, (n_documents, n_subtopics)."""
        labels = slice(*self._first_label[query : query + 2])
        relevant = np.flatnonzero(measure.gain(self.label[labels]) > 0)
        shape = [first[query + 1] - first[query] for first in (self._first_row, self._first_subtopic)]
        found = np.zeros(shape, dtype=bool)
        row, subtopic = self.row[labels][relevant], self.subtopic[labels][relevant]
        found[row - self._first_row[query], subtopic - self._first_subtopic[query]] = True
        return found

    def ideal(self, measure: Binary, alpha: float, grouped: GroupedJudgments) -> Order:
        """The ideal list of each query as ndeval builds it: the next document is the one that adds most to the sum.

        That is (1 − α)^(documents above it that are relevant for s), summed over the subtopics s of the document. Of
        documents that add the same, the one with the last id comes first.
        """
        qrels = grouped.ties.qrels

        def compute() -> tuple[Codes, Codes, Codes]:
            lists = [self._greedy(measure, alpha, qrels, query) for query in range(self._n_queries)]
            query = np.repeat(np.arange(self._n_queries), list(map(len, lists)))
            return query, np.arange(1, len(query) + 1) - heads(query), np.concatenate([*lists, np.zeros(0, np.int64)])

        return Order(grouped, *qrels.derived(("ideal list", alpha, measure.rel), compute))

    def _greedy(self, measure: Binary, alpha: float, qrels: Qrels, query: int) -> Codes:
        """The judged documents of one query, as rows of the qrels, in the order of the ideal list."""
        relevant = self.matrix(measure, query)
        rows = np.flatnonzero(relevant.any(axis=1))
        ids = qrels.ids(rows + self._first_row[query])
        rows = rows[sorted(range(len(ids)), key=ids.__getitem__, reverse=True)]
        relevant, weight = relevant[rows].astype(np.float64), np.ones(relevant.shape[1])
        chosen: list[int] = []
        left = np.ones(len(rows), dtype=bool)
        for _ in rows:
            added = np.where(left, np.round(relevant @ weight, 12), -1.0)  # sums of equal terms are equal
            best = int(np.argmax(added))
            left[best] = False
            weight = np.where(relevant[best] > 0, weight * (1 - alpha), weight)
            chosen.append(best)
        best_first: Codes = rows[chosen] + self._first_row[query]
        return best_first
