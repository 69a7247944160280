"""`rescore`: candidates of a cheap search scored again with better vectors, all of them or only where they tie.

An index of quantised vectors finds candidates; a float query against the quantised documents, or against the original
vectors, puts them in order. What the operands are decides which of the two it is.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np

from tiewise.columns import Codes, Floats
from tiewise.data import Run
from tiewise.errors import InputError, listed
from tiewise.io import as_run
from tiewise.scoring.ids import Ids
from tiewise.scoring.pairs import LEAST_TILE, Pairs
from tiewise.scoring.searching import Progress

__all__ = ["rescore"]


def rescore(
    run: Any,
    queries: Any,
    docs: Any,
    *,
    fn: str = "dot",
    precision: str = "float32",
    depth: int | None = None,
    only: Literal["tied"] | None = None,
    query_ids: Any = None,
    doc_ids: Any = None,
    progress: Progress | None = None,
) -> Run:
    """The run with its first `depth` documents (all, if None) scored again, in their new order.

    Give float queries with `Quantized` documents, or with the original vectors. A tie group in which `depth` ends is
    taken whole.

    - Documents below `depth` keep their order and their ties, beneath those scored again: their scores are whole
      numbers that count down from below the lowest new score.
    - ``only="tied"`` scores only documents that tie. A tie group keeps its place and is ordered within; as new scores
      cannot be compared with those of other groups, all scores of the run become whole numbers that count down.

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
    if depth is not None and (isinstance(depth, bool) or not isinstance(depth, int) or depth < 1):
        raise InputError(f"depth is a whole number of documents from 1 on, or None, not {depth!r}.")
    if only not in (None, "tied"):
        raise InputError(f"only is 'tied' or None, not {only!r}.")
    table = as_run(run)
    table = table if isinstance(table, Run) else table.to_run()
    pairs = Pairs(queries, docs, fn=fn, precision=precision, at_once=LEAST_TILE)
    query_row, doc_row = _rows(table, pairs, query_ids, doc_ids)
    doc, value = np.empty_like(table.doc), np.empty_like(table.value)
    for place in range(len(table.queries)):
        low, high = int(table.offsets[place]), int(table.offsets[place + 1])
        mine = _Listed(table, low, high)
        chosen = mine.chosen(depth, tied=only == "tied")
        fresh = np.zeros(high - low)
        if chosen.any():
            rows = _known(table, doc_row, mine.doc[chosen])
            query = np.array([query_row[place]])
            scores = pairs.checked(pairs.left(query), rows, query)
            fresh[chosen] = pairs.lib.host(scores)[0]
        new = mine.below(chosen, fresh) if only is None else mine.within(fresh)
        order = np.argsort(-new, kind="stable")
        doc[low:high], value[low:high] = mine.doc[order], new[order]
        if progress is not None:
            progress(place + 1, len(table.queries))
    pairs.warn()
    return replace(table, doc=doc, value=value, rank=None, source=None)


class _Listed:
    """One list of a run in descending order, with its tie groups."""

    def __init__(self, run: Run, low: int, high: int):
        order = np.argsort(-run.value[low:high], kind="stable")
        value = run.value[low:high][order]
        self.doc: Codes = run.doc[low:high][order]
        self.group: Codes = np.cumsum(np.concatenate([[False], value[1:] != value[:-1]])[: len(value)])
        self.size: Codes = np.bincount(self.group)[self.group] if len(value) else self.group
        self.start: Codes = np.searchsorted(self.group, self.group)

    def chosen(self, depth: int | None, *, tied: bool) -> Any:
        """Which documents are scored again."""
        inside = self.start < (len(self.doc) if depth is None else depth)
        return inside & (self.size > 1) if tied else inside

    def below(self, chosen: Any, fresh: Floats) -> Floats:
        """New scores for the first documents, and whole numbers beneath them for the others."""
        if chosen.all():
            return fresh
        first = int(self.group[~chosen][0])
        return np.where(chosen, fresh, np.floor(fresh[chosen].min()) - 1 - (self.group - first))

    def within(self, fresh: Floats) -> Floats:
        """Whole numbers that count down over groups, and within them by the new scores; equal in both stays equal."""
        order = np.lexsort((-fresh, self.group))
        group, value = self.group[order], fresh[order]
        step = np.concatenate([[False], (group[1:] != group[:-1]) | (value[1:] != value[:-1])])[: len(group)]
        place = np.cumsum(step)
        new = np.empty(len(group))
        new[order] = len(group) - place
        return new


def _rows(run: Run, pairs: Pairs, query_ids: Any, doc_ids: Any) -> tuple[Codes, Codes]:
    """The rows of the run's queries, which must all be there, and of its documents, −1 where there is none."""
    query = Ids(query_ids, pairs.queries.n, "query").find(run.queries)
    missing = [run.queries[place] for place in np.flatnonzero(query < 0).tolist()]
    if missing:
        raise InputError(f"{len(missing)} queries of the run have no vector: {listed(missing)}. Are query_ids missing?")
    return query, Ids(doc_ids, pairs.docs.n, "document").find_docs(run)


def _known(run: Run, doc_row: Codes, docs: Codes) -> Codes:
    rows = doc_row[docs]
    if (rows < 0).any():
        missing = [run.docs[code] for code in docs[rows < 0].tolist()]
        raise InputError(f"{len(missing)} documents of a list have no vector: {listed(missing)}. Are doc_ids missing?")
    return rows
