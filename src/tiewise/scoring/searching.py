"""`search`: the k best documents of each query, exactly, block by block, with everything that ties with the k-th.

In main memory a document is first known by an interval that holds its score. The k-th largest lower end so far is a
limit: a document whose upper end lies below it is neither among the k best nor tied with them. What is left at the end,
little more than k documents a query, is scored by the definition. A tie group at the edge is never cut, unless a cap is
asked for.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from tiewise.data.columns import Codes, Floats
from tiewise.data.progress import Progress
from tiewise.data.runs import Run
from tiewise.errors import InputError, TiewiseWarning, counted
from tiewise.scoring.approximate import Approximation
from tiewise.scoring.arrays import whole
from tiewise.scoring.blocks import Blocks
from tiewise.scoring.device import DeviceScores
from tiewise.scoring.device_search import best_on_device
from tiewise.scoring.environment import unaffected_by_settings
from tiewise.scoring.host import HostScores, Rows, most_near
from tiewise.scoring.ids import Ids
from tiewise.scoring.pairwise import pair_scores, warn_of_zero_vectors

__all__ = ["search"]


@unaffected_by_settings
def search(
    queries: Any,
    docs: Any,
    k: int,
    *,
    fn: str = "dot",
    precision: str = "float32",
    query_ids: Any = None,
    doc_ids: Any = None,
    query_mask: Any = None,
    doc_mask: Any = None,
    cap: int | None = None,
    block: int | None = None,
    query_block: int | None = None,
    progress: Progress | None = None,
) -> Run:
    """A `Run` of the k best documents of each query, and of all that tie with the k-th.

    Operands and `fn` are those of `score`; documents may lie in main memory while queries are on a device. Ids are
    counted ``"0"``, ``"1"``, … unless given. `cap` bounds the length of a list: of a tie group that does not fit,
    documents are kept in the order of their rows, and a warning says how many were left out. `block` documents and
    `query_block` queries are scored at a time (on a device in whole tiles), which bounds the memory and changes no
    score. `progress(done, total)` is called as blocks are done.

    >>> docs = [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.5, 0.5]]
    >>> search([[2.0, 0.0]], docs, 1, doc_ids=["a", "b", "c", "d"]).to_dict()
    {'0': {'a': 2.0, 'c': 2.0}}
    """
    many, most = whole(k), None if cap is None else whole(cap)
    if many is None or many < 1:
        raise InputError(f"k is a whole number of documents from 1 on, not {k!r}.")
    if cap is not None and (most is None or most < many):
        raise InputError(f"cap is a whole number of documents from k={k} on, or None, not {cap!r}.")
    scores = pair_scores(queries, docs, fn=fn, precision=precision, query_mask=query_mask, doc_mask=doc_mask)
    names = Ids(query_ids, scores.queries.n, "query"), Ids(doc_ids, scores.docs.n, "document")
    blocks = Blocks(scores, scores.queries.n, block, query_block, progress)
    many = min(many, max(scores.docs.n, 1))
    most = None if most is None else min(most, max(scores.docs.n, 1))
    if isinstance(scores, DeviceScores):
        best = [best_on_device(scores, blocks, rows, many) for rows in blocks.queries]
    else:
        best = _best_on_host(scores, blocks, many)
    found = [_Found(*one, rows, most) for one, rows in zip(best, blocks.queries, strict=True)]
    blocks.finish()
    warn_of_zero_vectors(scores)
    left_out = sum(one.left_out for one in found)
    if left_out:
        warnings.warn(
            f"Left out (cap={cap}): {counted(left_out, 'document that ties', 'documents that tie')} with the last one "
            "of a list.",
            TiewiseWarning,
            stacklevel=3,
        )
    return _run(names, found)


def _best_on_host(scores: HostScores, blocks: Blocks, k: int) -> list[tuple[Codes, Codes, Floats]]:
    """For each block of queries: the rows, documents and scores of what was found."""
    candidates = [_Candidates(scores, scores.query_rows(rows), rows.start, k) for rows in blocks.queries]
    for span in blocks.docs if candidates else ():
        docs = scores.doc_rows(span)
        for one in candidates:
            one.add(docs, span.start)
            blocks.done(one.queries.n * docs.n)
    return [one.best() for one in candidates]


class _Candidates:
    """For some queries, the documents that may be among the k best, each with an interval that holds its score."""

    def __init__(self, scores: HostScores, queries: Rows, first: int, k: int):
        self.scores, self.queries, self.first, self.k = scores, queries, first, k
        self._lower = np.full((queries.n, k), -np.inf)  # the k largest lower ends, in any order
        self._kept: list[tuple[Codes, Codes, Floats, Floats]] = []  # row, document, lower end, upper end
        self._many = 0
        self._first_limit = np.full(queries.n, -np.inf)

    @property
    def _limit(self) -> Floats:
        """(n_rows,): so good are k documents at least."""
        return self._lower.min(1)

    def add(self, docs: Rows, offset: int) -> None:
        """Take in a block of documents."""
        near = self.scores.approximate(self.queries, docs)
        self._begin(near)
        many, row, doc, value = near.select(self._filter_limit(), most_near(docs.n))
        if many.any():
            self._add_exactly(np.flatnonzero(many), docs, offset)
        error = near.error(row, doc)
        lower, upper = (self._score(row, value + side * error) for side in (-1, 1))
        odd = ~(np.isfinite(value) & np.isfinite(lower) & np.isfinite(upper))
        lower[odd], upper[odd] = -np.inf, np.inf
        self._keep(row, doc + offset, lower, upper)

    def _begin(self, near: Approximation) -> None:
        """A first limit from a part of the first block."""
        part = max(4 * self.k, 4096)
        if self._kept or near.values.shape[1] < 2 * self.k:
            return
        first = near.first(part)
        values = np.where(np.isfinite(first.matrix), first.matrix, -np.inf)
        width = values.shape[1]
        kth = np.partition(values, width - self.k, axis=1)[:, width - self.k].astype(np.float64)
        rows = np.arange(self.queries.n)
        # A limit only: these documents are found again, and their lower ends must not count twice.
        self._first_limit = self._score(rows, kth - first.most_error())

    def _filter_limit(self) -> Floats:
        """The lowest score that may still round to the limit, on the scale of the filter."""
        limit = np.maximum(self._limit, self._first_limit)
        known = np.isfinite(limit)
        least = self.scores.rounding.interval(np.where(known, limit, 0.0))[0]
        found = self.scores.function.to_filter(self.queries, least[:, None])[:, 0]
        return np.where(known, found, -np.inf)

    def _score(self, row: Codes, value: Floats) -> Floats:
        return self.scores.rounding(self.scores.function.from_filter(self.queries, row, value))

    def _add_exactly(self, rows: Codes, docs: Rows, offset: int) -> None:
        """Score all documents of a block for some rows, of which the filter leaves too much open."""
        found = self.scores.matrix(self.queries.take(rows), docs)
        row, doc = np.nonzero(found >= self._limit[rows][:, None])
        self._keep(rows[row], doc + offset, found[row, doc], found[row, doc])

    def _keep(self, row: Codes, doc: Codes, lower: Floats, upper: Floats) -> None:
        if not len(row):
            return
        self._raise(row, lower)
        self._kept.append((row, doc, lower, upper))
        self._many += len(row)
        if self._many > 4 * self._lower.size:
            self._shrink()

    def _raise(self, row: Codes, lower: Floats) -> None:
        """Merge new lower ends into the k largest; those of one row stand together."""
        counts = np.bincount(row, minlength=self.queries.n)
        place = np.arange(len(row)) - (np.cumsum(counts) - counts)[row]
        fresh = np.full((self.queries.n, int(counts.max())), -np.inf)
        fresh[row, place] = lower
        both = np.concatenate([self._lower, fresh], axis=1)
        self._lower = np.partition(both, both.shape[1] - self.k, axis=1)[:, both.shape[1] - self.k :]

    def _shrink(self) -> None:
        """Drop what the limit has overtaken."""
        row, doc, lower, upper = (np.concatenate(parts) for parts in zip(*self._kept, strict=True))
        fits = upper >= self._limit[row]
        self._kept, self._many = [(row[fits], doc[fits], lower[fits], upper[fits])], 0

    def best(self) -> tuple[Codes, Codes, Floats]:
        """The rows, documents and scores of the k best and of all that tie with the k-th."""
        if not self._kept:
            return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0)
        self._shrink()
        row, doc, score, upper = self._kept[0]
        unknown = np.flatnonzero((score != upper) | (np.signbit(score) != np.signbit(upper)))
        score = score.copy()
        score[unknown] = self.scores.pairs(row[unknown] + self.first, doc[unknown])
        self._lower = np.full((self.queries.n, self.k), -np.inf)
        order = np.lexsort((doc, row))
        row, doc, score = row[order], doc[order], score[order]
        self._raise(row, score)
        fits = score >= self._limit[row]
        return row[fits], doc[fits], score[fits]


class _Found:
    """The documents found for a block of queries, by query and descending score."""

    def __init__(self, query: Codes, doc: Codes, score: Floats, queries: slice, cap: int | None):
        order = np.lexsort((-score, query))  # stable, and documents come in the order of their rows
        query, self.doc, self.score = query[order], doc[order], score[order].astype(np.float64)
        self.lengths = np.bincount(query, minlength=queries.stop - queries.start)
        self.left_out = 0
        if cap is not None:
            heads = np.cumsum(self.lengths) - self.lengths
            kept = np.arange(len(query)) - heads[query] < cap
            self.left_out = int(np.count_nonzero(~kept))
            self.doc, self.score, self.lengths = self.doc[kept], self.score[kept], np.minimum(self.lengths, cap)


def _run(names: tuple[Ids, Ids], found: list[_Found]) -> Run:
    doc = np.concatenate([one.doc for one in found] or [np.zeros(0, np.int64)])
    score = np.concatenate([one.score for one in found] or [np.zeros(0)])
    lengths = np.concatenate([one.lengths for one in found] or [np.zeros(0, np.int64)])
    distinct, codes = np.unique(doc, return_inverse=True)  # only documents that were found are named
    queries = tuple(names[0].names(range(names[0].n)))
    return Run(queries, np.concatenate([[0], np.cumsum(lengths)]), codes, names[1].names(distinct), score)
