"""`search`: the k best documents of each query, exactly, block by block, with all that tie with the k-th.

A tie group at the end of a list is never cut, unless a cap is given.
"""

from __future__ import annotations

import numpy as np

from tiewise.data.documents import Documents
from tiewise.data.progress import Progress
from tiewise.data.runs import Run
from tiewise.errors import warn
from tiewise.scoring.blocks import Blocks, Scorer
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
    found = [part.finish() for part in candidates] or [(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))]
    query, doc, score = found[0] if len(found) == 1 else map(np.concatenate, zip(*found, strict=True))
    blocks.finish()
    scorer.warn_of_zero_vectors()
    if not all(part.is_ranked for part in candidates):
        order = np.lexsort((doc, -score, query))
        query, doc, score = query[order], doc[order], score[order]
    starts = np.searchsorted(query, np.arange(scorer.queries.n + 1))
    complete = np.ones(scorer.queries.n, dtype=bool)
    if cap is not None:
        fits = np.arange(len(query)) - starts[query] < min(cap, len(query))
        left_out = len(query) - int(np.count_nonzero(fits))
        if left_out:
            documents = count_noun(left_out, "document that ties", "documents that tie")
            warn(f"cap={cap} left out {documents} with the last one of a list.")
        complete[query[~fits]] = False
        query, doc, score = query[fits], doc[fits], score[fits]
        starts = np.searchsorted(query, np.arange(scorer.queries.n + 1))
    names = tuple(query_ids.of_rows(range(query_ids.n)))
    found_docs = Documents(doc, doc_ids.all, distinct=False)
    numbered = tuple(ids.what for ids in (query_ids, doc_ids) if ids.are_made_up)
    return Run(names, starts, found_docs, score, complete_lists=complete, numbered=numbered)
