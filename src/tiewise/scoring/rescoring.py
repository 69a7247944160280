"""`rescore`: the candidates of a cheap search scored again with better vectors; all of them, or only tied ones.

An index of quantised vectors finds candidates. A float query orders them, against the quantised documents or against
the original vectors; the operands decide which. On a device a product takes a tile of queries anyway, so the lists of a
tile are scored together: all its queries against all their candidates, from which each query takes its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tiewise.data.columns import Floats
from tiewise.data.documents import Documents
from tiewise.data.progress import Progress, check_progress
from tiewise.data.runs import Run
from tiewise.errors import InputError
from tiewise.scoring.backends import Indices
from tiewise.scoring.blocks import Scorer
from tiewise.scoring.device_scorer import MIN_TILE
from tiewise.scoring.ids import Ids
from tiewise.tables.wording import count_noun, list_examples

__all__ = ["DEVICE_OPTIONS", "rescore_run"]

#: Tiles of a device. Candidates are few, so a tile has few document vectors.
DEVICE_OPTIONS = {"queries_at_once": MIN_TILE, "doc_tile": 1024}

#: Candidates that are scored at a time, unless a single list has more; and lists.
MAX_CANDIDATES, MAX_LISTS = 2**16, 1024


def rescore_run(
    scorer: Scorer,
    query_ids: Ids,
    doc_ids: Ids,
    table: Run,
    depth: int | None,
    progress: Progress | None,
    *,
    only_tied: bool,
) -> Run:
    """The run with its first `depth` documents scored again, or only the tied ones of them."""
    check_progress(progress)
    query_row, doc_row = query_ids.find_rows(table.queries), doc_ids.find_doc_rows(table)
    lists = _RankedLists(table, depth, only_tied=only_tied)
    doc, offsets = table.doc[lists.order], table.offsets
    _check_found(query_row, np.arange(len(query_row)), table.queries, ("query", "queries"), "query_ids")
    _check_found(doc_row, doc[lists.selected], table.docs, ("document", "documents"), "doc_ids")
    scores, selected = np.zeros(len(doc)), np.flatnonzero(lists.selected)
    ends = np.searchsorted(selected, offsets)
    for start, stop in _split_lists(np.diff(ends)):
        rows = selected[ends[start] : ends[stop]]
        scores[rows] = scorer.score_pairs(query_row[start:stop], lists.number[rows] - start, doc_row[doc[rows]])
        if progress is not None:
            progress(stop, len(table.queries))
    scorer.warn_of_zero_vectors()
    new = lists.append_rest(scores) if not only_tied else lists.order_groups(scores)
    order = np.lexsort((-new, lists.number))
    return replace(table, documents=Documents(doc[order], table.docs), value=new[order], rank=None, source=None)


class _RankedLists:
    """The rows of a run in descending order within each list: tie groups, and which documents are scored again."""

    def __init__(self, run: Run, depth: int | None, *, only_tied: bool):
        self.starts, self.lengths = run.offsets[:-1], np.diff(run.offsets)
        self.number: Indices = np.repeat(np.arange(len(self.lengths)), self.lengths)  # the list of each row
        self.order = np.lexsort((-run.value, self.number))  # stable
        value = run.value[self.order]
        is_first = np.ones(len(value), bool)
        is_first[1:] = (value[1:] != value[:-1]) | (self.number[1:] != self.number[:-1])
        self.group = np.cumsum(is_first) - 1
        first = np.flatnonzero(is_first)[self.group]  # the first row of the group
        is_within = first - self.starts[self.number] < (len(value) if depth is None else min(depth, len(value)))
        self.selected: NDArray[np.bool_] = is_within & (np.bincount(self.group)[self.group] > 1 if only_tied else True)

    def append_rest(self, scores: Floats) -> Floats:
        """The new scores of the selected documents, and integers below them for the others."""
        number, selected = self.number, self.selected
        lowest, first_group = np.full(len(self.lengths), np.inf), np.full(len(self.lengths), len(self.group))
        np.minimum.at(lowest, number[selected], scores[selected])
        np.minimum.at(first_group, number[~selected], self.group[~selected])
        # Twice the spacing of float32 at the lowest score.
        step = np.maximum(1.0, np.ldexp(1.0, np.frexp(lowest)[1] - 23))[number]
        rest = (np.floor(lowest[number] / step) - 1 - (self.group - first_group[number])) * step
        return np.where(selected, scores, rest)

    def order_groups(self, scores: Floats) -> Floats:
        """Decreasing integers, by group and within a group by the new scores; ties in both stay ties."""
        order = np.lexsort((-scores, self.group))
        group, score = self.group[order], scores[order]
        is_new = np.ones(len(group), bool)
        is_new[1:] = (group[1:] != group[:-1]) | (score[1:] != score[:-1])
        rank = np.cumsum(is_new)
        new = np.empty(len(group))
        new[order] = self.lengths[self.number] - (rank - rank[self.starts[self.number]])
        return new


def _split_lists(n_candidates: Indices) -> Iterator[tuple[int, int]]:
    """Ranges of lists, limited in lists and in candidates."""
    ends, start = np.cumsum(n_candidates), 0
    while start < len(ends):
        limit = ends[start] - n_candidates[start] + MAX_CANDIDATES
        stop = max(int(np.searchsorted(ends, limit, side="right")), start + 1)
        stop = min(stop, start + MAX_LISTS)
        yield start, stop
        start = stop


def _check_found(rows: Indices, codes: Indices, names: Sequence[str], words: tuple[str, str], option: str) -> None:
    """Raise if a query or a document has no vector; each of them is counted once."""
    missing = list(dict.fromkeys(codes[rows[codes] < 0].tolist()))
    if missing:
        number = count_noun(len(missing), f"{words[0]} of the run has", f"{words[1]} of the run have")
        raise InputError(f"{number} no vector: {list_examples(names[code] for code in missing)}. Is {option} missing?")
