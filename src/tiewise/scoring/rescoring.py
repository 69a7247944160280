"""`rescore`: the candidates of a cheap search scored again with better vectors; all of them, or only tied ones.

An index of quantised vectors finds candidates. A float query orders them, against the quantised documents or against
the original vectors; the operands decide which. On a device a product takes a tile of queries anyway, so the lists of a
tile are scored together: all its queries against all their candidates, from which each query takes its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from tiewise.data.columns import Floats
from tiewise.data.documents import Documents
from tiewise.data.progress import Progress, check_progress
from tiewise.data.runs import Run
from tiewise.errors import InputError
from tiewise.io import as_run
from tiewise.io.types import RunLike
from tiewise.scoring.backends import Indices
from tiewise.scoring.device_scorer import MIN_TILE, DeviceScorer
from tiewise.scoring.environment import ieee_arithmetic
from tiewise.scoring.ids import Ids, IdsLike
from tiewise.scoring.operands import Mask, VectorsLike
from tiewise.scoring.options import require_int
from tiewise.scoring.scorers import Scorer, prepare, warn_of_zero_vectors
from tiewise.tables.wording import count_noun, list_examples

__all__ = ["rescore"]

#: Document vectors in a tile. Candidates are few, so it is small.
CANDIDATE_TILE = 1024

#: Candidates that are scored at a time, unless a single list has more; and lists, in main memory.
MAX_CANDIDATES, MAX_LISTS = 2**16, 1024


@ieee_arithmetic()
def rescore(
    run: RunLike,
    queries: VectorsLike,
    docs: VectorsLike,
    *,
    fn: str = "dot",
    precision: str = "float32",
    depth: int | None = None,
    only: Literal["tied"] | None = None,
    query_ids: IdsLike = None,
    doc_ids: IdsLike = None,
    query_mask: Mask = None,
    doc_mask: Mask = None,
    progress: Progress | None = None,
) -> Run:
    """The run with its first `depth` documents (all, if None) scored again, in their new order.

    Give float queries with `Quantized` documents, or with the original vectors, and the `fn` that the model was trained
    for: for most embedding models ``"cosine"``, unless vectors have length 1. Masks are those of `search`. A tie group
    in which `depth` ends is scored as a whole.

    - Documents below `depth` keep their order and their ties, below those that are scored again: their scores are
      integers that decrease from below the lowest new score, in steps of 1 or, far from 0, in steps that float32 can
      distinguish.
    - ``only="tied"`` scores only tied documents. A tie group keeps its position and is ordered within. New scores
      cannot be compared with those of other groups, so all scores of the run become decreasing integers.

    >>> run = {"q": {"a": 3.0, "b": 2.0, "c": 2.0, "d": 1.0}}
    >>> vectors = [[0.1], [0.2], [0.3], [0.9]]
    >>> options = dict(query_ids=["q"], doc_ids=["a", "b", "c", "d"], precision="float64")
    >>> rescore(run, [[1.0]], vectors, **options).to_dict()
    {'q': {'d': 0.9, 'c': 0.3, 'b': 0.2, 'a': 0.1}}
    >>> rescore(run, [[1.0]], vectors, depth=2, **options).to_dict()
    {'q': {'c': 0.3, 'b': 0.2, 'a': 0.1, 'd': -1.0}}
    >>> rescore(run, [[1.0]], vectors, only="tied", **options).to_dict()
    {'q': {'a': 4.0, 'c': 3.0, 'b': 2.0, 'd': 1.0}}
    """
    check_progress(progress)
    depth = require_int(depth, "depth", optional=True)
    if only not in (None, "tied"):
        raise InputError(f"only must be 'tied' or None, not {only!r}.")
    table = as_run(run)
    scorer, query_names, doc_names = prepare(
        queries, docs, fn, precision, ids=(query_ids, doc_ids), masks=(query_mask, doc_mask), queries_at_once=MIN_TILE
    )
    max_lists = MAX_LISTS
    if isinstance(scorer, DeviceScorer):
        scorer.doc_tile, max_lists = max(CANDIDATE_TILE // scorer.docs.tokens, 1), scorer.query_tile
    query_row, doc_row = _find_queries(table, query_names), doc_names.find_doc_rows(table)

    def lists() -> Iterator[_RankedList]:
        return (_RankedList(table, number, depth, only_tied=only == "tied") for number in range(len(table.queries)))

    if (doc_row < 0).any():
        _check_docs(table, lists(), doc_row)
    doc, value = np.empty_like(table.doc), np.empty_like(table.value)
    for batch in _make_batches(lists(), max_lists):
        for one, new_scores in zip(batch, _score_lists(scorer, batch, query_row, doc_row), strict=True):
            new = one.append_rest(new_scores) if only is None else one.order_groups(new_scores)
            order = np.argsort(-new, kind="stable")
            doc[one.rows], value[one.rows] = one.doc[order], new[order]
        if progress is not None:
            progress(batch[-1].number + 1, len(table.queries))
    warn_of_zero_vectors(scorer)
    return replace(table, documents=Documents(doc, table.docs), value=value, rank=None, source=None)


class _RankedList:
    """One list of a run in descending order, with its tie groups and the documents that are scored again."""

    def __init__(self, run: Run, number: int, depth: int | None, *, only_tied: bool):
        self.number, self.rows = number, slice(int(run.offsets[number]), int(run.offsets[number + 1]))
        order = np.argsort(-run.value[self.rows], kind="stable")
        value = run.value[self.rows][order]
        self.doc: Indices = run.doc[self.rows][order]
        self.group: Indices = np.cumsum(np.concatenate([[False], value[1:] != value[:-1]])[: len(value)])
        within_depth = np.searchsorted(self.group, self.group) < (len(value) if depth is None else depth)
        is_tied = np.bincount(self.group)[self.group] > 1 if only_tied and len(value) else True
        self.selected: Any = within_depth & is_tied

    def append_rest(self, scores: Floats) -> Floats:
        """The new scores of the selected documents, and integers below them for the others."""
        selected = self.selected
        if selected.all():
            return scores
        first, lowest = int(self.group[~selected][0]), scores[selected].min()
        step = max(1.0, 2.0 ** (int(np.frexp(lowest)[1]) - 23))  # twice the spacing of float32 at the lowest score
        return np.where(selected, scores, (np.floor(lowest / step) - 1 - (self.group - first)) * step)

    def order_groups(self, scores: Floats) -> Floats:
        """Decreasing integers, by group and within a group by the new scores; ties in both stay ties."""
        order = np.lexsort((-scores, self.group))
        group, score = self.group[order], scores[order]
        is_new = np.concatenate([[False], (group[1:] != group[:-1]) | (score[1:] != score[:-1])])[: len(group)]
        new = np.empty(len(group))
        new[order] = len(group) - np.cumsum(is_new)
        return new


def _make_batches(lists: Iterable[_RankedList], max_lists: int) -> Iterator[list[_RankedList]]:
    """Lists in batches that are limited in lists and in candidates."""
    batch: list[_RankedList] = []
    candidates = 0
    for one in lists:
        count = int(one.selected.sum())
        if batch and (len(batch) == max_lists or candidates + count > MAX_CANDIDATES):
            yield batch
            batch, candidates = [], 0
        batch.append(one)
        candidates += count
    if batch:
        yield batch


def _score_lists(scorer: Scorer, lists: list[_RankedList], query_row: Indices, doc_row: Indices) -> list[Floats]:
    """The new scores of some lists, 0 for documents that are not scored again."""
    queries = query_row[[one.number for one in lists]]
    docs = doc_row[np.concatenate([one.doc[one.selected] for one in lists])]
    counts = [int(one.selected.sum()) for one in lists]
    if isinstance(scorer, DeviceScorer):
        scores = _score_on_device(scorer, queries, docs, counts)
    else:
        scores = scorer.score_pairs(np.repeat(queries, counts), docs)
    new = [np.zeros(len(one.doc)) for one in lists]
    for one, values, part in zip(lists, new, np.split(scores, np.cumsum(counts)[:-1]), strict=True):
        values[one.selected] = part
    return new


def _score_on_device(scorer: DeviceScorer, queries: Indices, docs: Indices, counts: list[int]) -> Floats:
    """The scores of candidates; `counts` says how many of `docs` belong to each query."""
    if not len(docs):
        return np.zeros(0)
    device_table = scorer.scores(scorer.query_tiles(queries), docs, buffer=1)
    table = scorer.backend.to_numpy(device_table)
    scores = np.empty(len(docs))
    for i, stop in enumerate(np.cumsum(counts).tolist()):
        own = slice(stop - counts[i], stop)
        scores[own] = table[i, own]
        if not np.isfinite(scores[own]).all():  # scores with the candidates of other queries do not matter
            scorer.raise_not_finite(device_table[i : i + 1, own], docs[own], queries[i : i + 1])
    return scores


def _find_queries(run: Run, query_ids: Ids) -> Indices:
    """The rows of the run's queries; all of them must have a vector."""
    rows = query_ids.find_rows(run.queries)
    missing = [run.queries[number] for number in np.flatnonzero(rows < 0).tolist()]
    if missing:
        number = count_noun(len(missing), "query of the run has", "queries of the run have")
        raise InputError(f"{number} no vector: {list_examples(missing)}. Is query_ids missing?")
    return rows


def _check_docs(run: Run, lists: Iterable[_RankedList], doc_row: Indices) -> None:
    """Raise if documents to be scored have no vector; each of them is counted once."""
    selected = (one.doc[one.selected] for one in lists)
    missing = dict.fromkeys(code for docs in selected for code in docs[doc_row[docs] < 0].tolist())
    if missing:
        number = count_noun(len(missing), "document of the run has", "documents of the run have")
        raise InputError(
            f"{number} no vector: {list_examples(run.docs[code] for code in missing)}. Is doc_ids missing?"
        )
