"""`search`: the k best documents of each query, exactly, block by block, with all that tie with the k-th.

A tie group at the end of a list is never cut, unless a cap is given.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tiewise.data.columns import Floats
from tiewise.data.documents import Documents
from tiewise.data.progress import Progress
from tiewise.data.runs import Run
from tiewise.scoring.backends import Indices
from tiewise.scoring.blocks import Blocks, Scorer, warn
from tiewise.scoring.candidates import make_candidates
from tiewise.scoring.ids import Ids
from tiewise.tables.wording import count_noun

__all__ = ["find_best"]


def find_best(
    scorer: Scorer,
    query_ids: Ids,
    doc_ids: Ids,
    k: int,
    cap: int | None,
    block: int | None,
    query_block: int | None,
    progress: Progress | None,
) -> Run:
    """A run of the k best documents of each query, and of all that tie with the k-th; `cap` limits the lists."""
    blocks = Blocks(scorer, scorer.queries.n, block, query_block, progress)
    candidates = [make_candidates(scorer, rows, min(k, max(scorer.docs.n, 1))) for rows in blocks.queries]
    blocks.visit(candidates)
    nothing = np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0)
    query, doc, score = map(np.concatenate, zip(nothing, *(part.finish() for part in candidates), strict=True))
    blocks.finish()
    scorer.warn_of_zero_vectors()
    order = _rank(query, doc, score)
    starts = np.searchsorted(query[order], np.arange(scorer.queries.n + 1))
    if cap is not None:
        fits = np.arange(len(order)) - starts[query[order]] < min(cap, len(order))
        left_out = len(order) - int(np.count_nonzero(fits))
        if left_out:
            documents = count_noun(left_out, "document that ties", "documents that tie")
            warn(f"cap={cap} left out {documents} with the last one of a list.")
        order = order[fits]
        starts = np.searchsorted(query[order], np.arange(scorer.queries.n + 1))
    names = tuple(query_ids.of_rows(range(query_ids.n)))
    return Run(names, starts, Documents(doc[order], doc_ids.all, distinct=False), score[order])


def _rank(query: Indices, doc: Indices, score: Floats) -> Any:
    """The order of rows by query, descending score, and document. Often they have it already."""
    ordered = (query[1:] > query[:-1]) | (score[1:] < score[:-1]) | ((score[1:] == score[:-1]) & (doc[1:] > doc[:-1]))
    if ordered.all() and (query[1:] >= query[:-1]).all():
        return np.arange(len(query))
    return np.lexsort((doc, -score, query))
