"""`rescore`: candidates of a cheap search scored again with better vectors, all of them or only where they tie.

An index of quantised vectors finds candidates; a float query against the quantised documents, or against the original
vectors, puts them in order. What the operands are decides which of the two it is. On a device a product takes a tile of
queries anyway, so a tile of lists is scored at a time: all its queries against all its candidates, of which each keeps
its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from tiewise.data.columns import Codes, Floats
from tiewise.data.progress import Progress, check_progress
from tiewise.data.runs import Run
from tiewise.errors import InputError, counted, listed
from tiewise.io import as_run
from tiewise.scoring.arrays import whole
from tiewise.scoring.device import LEAST_TILE, DeviceScores
from tiewise.scoring.environment import unaffected_by_settings
from tiewise.scoring.ids import Ids
from tiewise.scoring.pairwise import Scores, pair_scores, warn_of_zero_vectors

__all__ = ["rescore"]

#: Document vectors in a tile, and candidates of a tile of lists unless one list alone has more: they are few.
CANDIDATE_TILE, CANDIDATES = 1024, 2**16

#: Lists that are scored at a time in main memory.
LISTS = 1024


@unaffected_by_settings
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
    query_mask: Any = None,
    doc_mask: Any = None,
    progress: Progress | None = None,
) -> Run:
    """The run with its first `depth` documents (all, if None) scored again, in their new order.

    Give float queries with `Quantized` documents, or with the original vectors, and the `fn` that the model was made
    for: for most embedding models ``"cosine"``, unless vectors have length 1 already. Masks are those of `search`. A
    tie group in which `depth` ends is taken whole.

    - Documents below `depth` keep their order and their ties, beneath those scored again: their scores are whole
      numbers that count down from below the lowest new score, in steps of 1 or, far from 0, of what float32 can tell
      apart.
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
    check_progress(progress)
    deep = None if depth is None else whole(depth)
    if depth is not None and (deep is None or deep < 1):
        raise InputError(f"depth is a whole number of documents from 1 on, or None, not {depth!r}.")
    if only not in (None, "tied"):
        raise InputError(f"only is 'tied' or None, not {only!r}.")
    table = as_run(run)
    pairs = _pairs(queries, docs, fn=fn, precision=precision, query_mask=query_mask, doc_mask=doc_mask)
    query_row, doc_row = _rows(table, pairs, query_ids, doc_ids)

    def lists() -> Iterator[_Listed]:
        return (_Listed(table, place, deep, tied=only == "tied") for place in range(len(table.queries)))

    if (doc_row < 0).any():
        _check_known(table, lists(), doc_row)
    doc, value = np.empty_like(table.doc), np.empty_like(table.value)
    for some in _tiles(lists(), pairs.query_tile if isinstance(pairs, DeviceScores) else LISTS):
        for mine, fresh in zip(some, _scored(pairs, some, query_row, doc_row), strict=True):
            new = mine.below(fresh) if only is None else mine.within(fresh)
            order = np.argsort(-new, kind="stable")
            doc[mine.rows], value[mine.rows] = mine.doc[order], new[order]
        if progress is not None:
            progress(some[-1].place + 1, len(table.queries))
    warn_of_zero_vectors(pairs)
    return replace(table, doc=doc, value=value, rank=None, source=None)


def _pairs(queries: Any, docs: Any, **options: Any) -> Scores:
    """What scores a few queries against a few documents."""
    pairs = pair_scores(queries, docs, at_once=LEAST_TILE, **options)
    if isinstance(pairs, DeviceScores):
        pairs.doc_tile = max(CANDIDATE_TILE // pairs.docs.tokens, 1)
    return pairs


class _Listed:
    """One list of a run in descending order, with its tie groups, and which of its documents are scored again."""

    def __init__(self, run: Run, place: int, depth: int | None, *, tied: bool):
        self.place, self.rows = place, slice(int(run.offsets[place]), int(run.offsets[place + 1]))
        order = np.argsort(-run.value[self.rows], kind="stable")
        value = run.value[self.rows][order]
        self.doc: Codes = run.doc[self.rows][order]
        self.group: Codes = np.cumsum(np.concatenate([[False], value[1:] != value[:-1]])[: len(value)])
        inside = np.searchsorted(self.group, self.group) < (len(value) if depth is None else depth)
        tie = np.bincount(self.group)[self.group] > 1 if tied and len(value) else True
        self.chosen: Any = inside & tie

    def below(self, fresh: Floats) -> Floats:
        """New scores for the first documents, and whole numbers beneath them for the others."""
        chosen = self.chosen
        if chosen.all():
            return fresh
        first, lowest = int(self.group[~chosen][0]), fresh[chosen].min()
        step = max(1.0, 2.0 ** (int(np.frexp(lowest)[1]) - 23))  # twice the spacing of float32 at the lowest score
        return np.where(chosen, fresh, (np.floor(lowest / step) - 1 - (self.group - first)) * step)

    def within(self, fresh: Floats) -> Floats:
        """Whole numbers that count down over groups, and within them by the new scores; equal in both stays equal."""
        order = np.lexsort((-fresh, self.group))
        group, value = self.group[order], fresh[order]
        step = np.concatenate([[False], (group[1:] != group[:-1]) | (value[1:] != value[:-1])])[: len(group)]
        place = np.cumsum(step)
        new = np.empty(len(group))
        new[order] = len(group) - place
        return new


def _tiles(lists: Iterable[_Listed], most: int) -> Iterator[list[_Listed]]:
    """Lists a few at a time: so many at most, and with few candidates together."""
    tile: list[_Listed] = []
    candidates = 0
    for one in lists:
        count = int(one.chosen.sum())
        if tile and (len(tile) == most or candidates + count > CANDIDATES):
            yield tile
            tile, candidates = [], 0
        tile.append(one)
        candidates += count
    if tile:
        yield tile


def _scored(pairs: Scores, lists: list[_Listed], query_row: Codes, doc_row: Codes) -> list[Floats]:
    """The new scores of some lists, 0 where a document is not scored again."""
    fresh = [np.zeros(len(one.doc)) for one in lists]
    rows = doc_row[np.concatenate([one.doc[one.chosen] for one in lists])]
    queries = query_row[[one.place for one in lists]]
    counts = [int(one.chosen.sum()) for one in lists]
    scores = _scores_of(pairs, queries, rows, counts)
    for i, (one, high) in enumerate(zip(lists, np.cumsum(counts).tolist(), strict=True)):
        fresh[i][one.chosen] = scores[high - counts[i] : high]
    return fresh


def _scores_of(pairs: Scores, queries: Codes, rows: Codes, counts: list[int]) -> Floats:
    """The scores of candidates; each query has so many of them, one after another."""
    if not isinstance(pairs, DeviceScores):
        return pairs.pairs(np.repeat(queries, counts), rows)
    if not len(rows):
        return np.zeros(0)
    table = pairs.scores(pairs.left(queries), rows, again=1)
    every = pairs.lib.host(table)
    found = np.empty(len(rows))
    for i, high in enumerate(np.cumsum(counts).tolist()):
        mine = slice(high - counts[i], high)
        found[mine] = every[i, mine]
        if not np.isfinite(found[mine]).all():  # what a query has with another's candidates does not matter
            pairs.blame(table[i : i + 1, mine], rows[mine], queries[i : i + 1])
    return found


def _rows(run: Run, pairs: Scores, query_ids: Any, doc_ids: Any) -> tuple[Codes, Codes]:
    """The rows of the run's queries, which must all be there, and of its documents, −1 where there is none."""
    query = Ids(query_ids, pairs.queries.n, "query").find(run.queries)
    missing = [run.queries[place] for place in np.flatnonzero(query < 0).tolist()]
    if missing:
        said = counted(len(missing), "query of the run has", "queries of the run have")
        raise InputError(f"{said} no vector: {listed(missing)}. Are query_ids missing?")
    return query, Ids(doc_ids, pairs.docs.n, "document").find_docs(run)


def _check_known(run: Run, lists: Iterable[_Listed], doc_row: Codes) -> None:
    """Refuse documents that are to be scored and have no vector; each counts once, in however many lists it stands."""
    chosen = (one.doc[one.chosen] for one in lists)
    missing = dict.fromkeys(code for docs in chosen for code in docs[doc_row[docs] < 0].tolist())
    if missing:
        said = counted(len(missing), "document of the run has", "documents of the run have")
        raise InputError(f"{said} no vector: {listed(run.docs[code] for code in missing)}. Are doc_ids missing?")
