"""`ScoredLists`: all documents of ranked lists with their scores, as tie groups do not hold how far these lie apart."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tiewise.data.columns import Codes, Floats, positions, ranges
from tiewise.data.runs import Run
from tiewise.ties.groups import TieGroups
from tiewise.ties.orders import Hashes, hash_names


class ScoredLists:
    """The lists of judged queries, each best first; arrays run over their documents."""

    def __init__(self, run: Run, ties: TieGroups):
        qrels = ties.qrels
        self.run, self.queries = run, qrels.queries
        at = positions(run.query_index, qrels.queries)
        length = np.where(at >= 0, np.append(np.diff(run.offsets), 0)[at], 0)
        self.offsets: Codes = np.append(0, np.cumsum(length))  # (n_queries + 1,)
        self.rows: Codes = run.best_first[ranges(run.offsets[at], length)]  # of the run
        self.score: Floats = run.value[self.rows]
        self.query: Codes = np.repeat(np.arange(len(at)), length)
        self.above: Codes = np.arange(len(self.rows)) - self.offsets[self.query]  # documents before it in the list
        found, place = run.find(qrels, at)[1], np.full(len(run) + 1, -1)
        place[self.rows] = np.arange(len(self.rows))
        self.place: Codes = place[found]  # (n_judged,): of each judged document, −1 if it was not retrieved

    def heads(self, reach: Floats, depth: NDArray[Any]) -> NDArray[np.bool_]:
        """Whether a document is the first of its cluster: noise that stays within reach brings none above it.

        `reach` is the largest noise of each document. A document that cannot come to the first ranks of its list, up to
        `depth`, does not matter there: it is a cluster of its own.
        """
        lower, upper = self.score - reach, self.score + reach
        is_head = np.ones(len(self.score), dtype=bool)
        for first, end, k in zip(self.offsets[:-1].tolist(), self.offsets[1:].tolist(), depth.tolist(), strict=True):
            if end - first > k > 0:  # k documents are certainly above what lies below this
                least = np.partition(lower[first:end], end - first - int(k))[end - first - int(k)]
                highest = np.maximum.accumulate(upper[first:end][::-1])[::-1]
                end = first + int(np.count_nonzero(highest >= least))
            if end - first > 1:
                lowest = np.minimum.accumulate(lower[first : end - 1])
                highest = np.maximum.accumulate(upper[end - 1 : first : -1])[::-1]
                is_head[first + 1 : end] = lowest > highest
        return is_head

    def ids(self, places: Codes) -> Hashes:
        """A random number for each of some documents, the same wherever the document occurs in a list of the query."""
        return hash_names(self.queries, self.query[places]) * np.uint64(3) + hash_names(
            self.run.docs, self.run.doc[self.rows[places]]
        )
