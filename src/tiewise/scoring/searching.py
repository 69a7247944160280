"""`search`: the k best documents of each query, exactly, block by block, with all that tie with the k-th.

A tie group at the end of a list is never cut, unless a cap is given.
"""

from __future__ import annotations

import warnings

import numpy as np

from tiewise.data.columns import Floats
from tiewise.data.documents import Documents
from tiewise.data.progress import Progress
from tiewise.data.runs import Run
from tiewise.errors import TiewiseWarning
from tiewise.scoring.backends import Indices
from tiewise.scoring.blocks import Blocks
from tiewise.scoring.device_scorer import DeviceScorer
from tiewise.scoring.device_search import top_k_on_device
from tiewise.scoring.environment import ieee_arithmetic
from tiewise.scoring.host_search import top_k_on_host
from tiewise.scoring.ids import Ids, IdsLike
from tiewise.scoring.operands import Mask, VectorsLike
from tiewise.scoring.options import require_int
from tiewise.scoring.scorers import prepare, warn_of_zero_vectors
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
    k = min(k, max(scorer.docs.n, 1))
    top_k = top_k_on_device(scorer, blocks, k) if isinstance(scorer, DeviceScorer) else top_k_on_host(scorer, blocks, k)
    lists = [_RankedLists(*top, rows.stop - rows.start, cap) for top, rows in zip(top_k, blocks.queries, strict=True)]
    blocks.finish()
    warn_of_zero_vectors(scorer)
    left_out = sum(part.n_left_out for part in lists)
    if left_out:
        warnings.warn(
            f"cap={cap} left out {count_noun(left_out, 'document that ties', 'documents that tie')} with the last one "
            "of a list.",
            TiewiseWarning,
            stacklevel=3,
        )
    return _make_run(query_names, doc_names, lists)


class _RankedLists:
    """The documents of a block of queries, ordered by query and descending score."""

    def __init__(self, query: Indices, doc: Indices, score: Floats, n_queries: int, cap: int | None):
        order = np.lexsort((-score, query))  # stable: tied documents stay in the order of their rows
        query, self.doc, self.score = query[order], doc[order], score[order].astype(np.float64)
        self.lengths = np.bincount(query, minlength=n_queries)
        self.n_left_out = 0
        if cap is not None:
            starts = np.cumsum(self.lengths) - self.lengths
            fits = np.arange(len(query)) - starts[query] < min(cap, len(query))
            self.n_left_out = int(np.count_nonzero(~fits))
            self.doc, self.score = self.doc[fits], self.score[fits]
            self.lengths = np.bincount(query[fits], minlength=n_queries)


def _make_run(query_ids: Ids, doc_ids: Ids, lists: list[_RankedLists]) -> Run:
    doc = np.concatenate([np.zeros(0, np.int64), *(part.doc for part in lists)])
    score = np.concatenate([np.zeros(0), *(part.score for part in lists)])
    lengths = np.concatenate([np.zeros(1, np.int64), *(part.lengths for part in lists)])
    distinct, codes = np.unique(doc, return_inverse=True)  # ids only of documents that were found
    queries = tuple(query_ids.of_rows(range(query_ids.n)))
    return Run(queries, np.cumsum(lengths), Documents(codes, doc_ids.of_rows(distinct)), score)
