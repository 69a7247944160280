"""`search`: the k best documents of each query, exactly, block by block, with all that tie with the k-th.

A tie group at the end of a list is never cut, unless a cap is given.
"""

from __future__ import annotations

import warnings

import numpy as np

from tiewise.data.documents import Documents
from tiewise.data.progress import Progress
from tiewise.data.runs import Run
from tiewise.errors import TiewiseWarning
from tiewise.scoring.blocks import Blocks
from tiewise.scoring.candidates import make_candidates
from tiewise.scoring.environment import ieee_arithmetic
from tiewise.scoring.ids import IdsLike
from tiewise.scoring.operands import Mask, VectorsLike
from tiewise.scoring.options import require_int
from tiewise.scoring.scorers import prepare
from tiewise.tables.wording import count_noun

__all__ = ["search"]


@ieee_arithmetic()
def search(
    queries: VectorsLike,
    docs: VectorsLike,
    k: int,
    *,
    fn: str = "dot",
    precision: str = "float32",
    query_ids: IdsLike = None,
    doc_ids: IdsLike = None,
    query_mask: Mask = None,
    doc_mask: Mask = None,
    cap: int | None = None,
    block: int | None = None,
    query_block: int | None = None,
    progress: Progress | None = None,
) -> Run:
    """A `Run` of the k best documents of each query, and of all that tie with the k-th.

    Operands and `fn` are those of `score`; documents may be in main memory while queries are on a GPU. Ids are
    ``"0"``, ``"1"``, … unless they are given. `cap` limits the length of a list: if a tie group does not fit, its first
    rows are kept, and a warning says how many documents were left out. `block` documents and `query_block` queries are
    scored at a time (on a GPU in whole tiles); this bounds the memory and changes no score. `progress(done, total)` is
    called after each block.

    >>> docs = [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.5, 0.5]]
    >>> search([[2.0, 0.0]], docs, 1, doc_ids=["a", "b", "c", "d"]).to_dict()
    {'0': {'a': 2.0, 'c': 2.0}}
    """
    k = require_int(k, "k")
    cap = require_int(cap, "cap", minimum=k, optional=True)
    scorer, query_names, doc_names = prepare(
        queries, docs, fn, precision, ids=(query_ids, doc_ids), masks=(query_mask, doc_mask)
    )
    blocks = Blocks(scorer, scorer.queries.n, block, query_block, progress)
    candidates = [make_candidates(scorer, rows, min(k, max(scorer.docs.n, 1))) for rows in blocks.queries]
    blocks.visit(candidates)
    nothing = np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0)
    query, doc, score = map(np.concatenate, zip(nothing, *(part.finish() for part in candidates), strict=True))
    blocks.finish()
    scorer.warn_of_zero_vectors()
    order = np.lexsort((-score, query))  # stable: tied documents stay in the order of their rows
    starts = np.searchsorted(query[order], np.arange(scorer.queries.n + 1))
    if cap is not None:
        fits = np.arange(len(order)) - starts[query[order]] < min(cap, len(order))
        left_out = len(order) - int(np.count_nonzero(fits))
        if left_out:
            documents = count_noun(left_out, "document that ties", "documents that tie")
            warnings.warn(f"cap={cap} left out {documents} with the last one of a list.", TiewiseWarning, stacklevel=3)
        order = order[fits]
        starts = np.searchsorted(query[order], np.arange(scorer.queries.n + 1))
    distinct, codes = np.unique(doc[order], return_inverse=True)  # ids only of documents that were found
    names = tuple(query_names.of_rows(range(query_names.n)))
    return Run(names, starts, Documents(codes, doc_names.of_rows(distinct)), score[order])
