"""Tie statistics of all rows of a run: tie groups, their sizes, places and scores, and identical documents.

`tiewise.ties` counts only what judged documents need. This module looks at every row, after one sort of each list.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tiewise.analysis.grids import BLOCK_SIZE, Grid
from tiewise.data.columns import Codes, Floats, identifier, project, sort_lists, to_host
from tiewise.data.runs import Run
from tiewise.errors import InputError
from tiewise.results.wording import count_noun, list_examples

MAX_LISTS = 200  # lists that are tested one by one
MAX_GROUPS = 300_000  # about the number of groups in a sample
MAX_EXAMPLES = 5  # of the largest groups, and of the documents in each
NEARLY_CONSTANT = 0.9  # a list is nearly constant if one score has this share of its documents
MIN_LISTS = 10  # shorter lists are never nearly constant, and fewer lists are no evidence of unmatched documents
NEAR_ONE = 2.0**-20  # float32 has only 16 numbers this near below 1
APPROACH = 1e-3  # scores this near to their limit, without reaching it, show that a function saturates there
MIN_BESIDE = 0.05  # of the scores printed as the limit: this share must be one printed step before it


class SizeBin(NamedTuple):
    """The tie groups with `low` to `high` documents; an untied document is a group of one."""

    low: int
    high: int
    groups: int
    rows: int


class TieExample(NamedTuple):
    """A tie group, with some of its documents."""

    query: str
    score: float
    rank: int  #: of its first document
    size: int
    docs: tuple[str, ...]


class Pile(NamedTuple):
    """Scores at 1 or 0, where a score function saturates."""

    at: float  #: 1 or 0
    rows: int
    tied_rows: int
    levels_off: bool  #: whether other scores come close to the limit, as those of a sigmoid or a softmax do
    printed: bool = False  #: whether few digits, rather than float32, make these scores equal


class TieStatistics:
    """Every tie group of a run, list by list and best first, and counts of them; an untied row is a group of one."""

    def __init__(self, run: Run):
        values = run.value if run.descending else sort_lists(run.value, run.offsets)
        lengths = np.diff(run.offsets)
        new = np.ones(len(values), dtype=bool)
        new[1:] = values[1:] != values[:-1]
        new[run.offsets[:-1][lengths > 0]] = True
        first = np.flatnonzero(new)
        self.run = run
        # -- (n_groups,)
        self.query = query = np.searchsorted(run.offsets, first, side="right") - 1  # the list's position in the run
        self.start = first - run.offsets[query]  # documents of the list with a higher score
        self.size = size = np.diff(np.append(first, len(values)))
        self.score = values[first]
        self.is_tied = size > 1
        length = lengths[query]
        self.is_last = self.start + size == length  # whether the group is the last of its list
        # -- counts
        self.lists = _count(lengths)  # lists that are not empty
        self.rankings = _count(lengths > 1)  # lists in which there is something to rank
        self.longest = int(lengths.max(initial=0))
        self.tied_rows = int(size[self.is_tied].sum())
        self.tied_pairs = _count_pairs(size)
        self.constant = _count(self.is_tied & (size == length))  # lists that give all documents one score
        most = (size >= NEARLY_CONSTANT * length) & (size < length) & (length >= MIN_LISTS)
        unmatched = (self.score == 0) & self.is_last  # documents without a match
        self.nearly_constant = _count(most & ~unmatched)  # other lists that give most documents one score
        self.ending_tied = _count(self.is_last & self.is_tied)  # lists that may be cut inside a tie group

    @property
    def tied_share(self) -> float:
        """The share of rows that are tied."""
        return self.tied_rows / max(len(self.run), 1)

    def histogram(self) -> tuple[SizeBin, ...]:
        """The groups by size: 1, 2, 3 to 4, 5 to 8 and so on."""
        counts = np.bincount(self.size)[1:]
        size = np.arange(1, len(counts) + 1)
        power = np.ceil(np.log2(size)).astype(np.int64)
        groups, rows = (np.bincount(power, weights).astype(np.int64) for weights in (counts, counts * size))
        return tuple(
            SizeBin(2 ** (b - 1) + 1 if b else 1, 2**b, count, total)
            for b, (count, total) in enumerate(zip(groups.tolist(), rows.tolist(), strict=True))
        )

    def examples(self) -> tuple[TieExample, ...]:
        """The largest groups of tied documents, each with some of its documents."""
        tied = np.flatnonzero(self.is_tied)
        found = []
        for group in tied[np.argsort(-self.size[tied], kind="stable")[:MAX_EXAMPLES]].tolist():
            query, score = int(self.query[group]), float(self.score[group])
            low, high = self.run.offsets[query : query + 2]
            rows = low + np.flatnonzero(self.run.value[low:high] == score)
            rank, size = int(self.start[group]) + 1, int(self.size[group])
            docs = tuple(self.run.ids(rows[:MAX_EXAMPLES]))
            found.append(TieExample(self.run.queries[query], score, rank, size, docs))
        return tuple(found)

    def count_across(self, cutoff: int) -> int:
        """How many lists have a tie between this rank and the next."""
        return _count((self.start < cutoff) & (self.start + self.size > cutoff))

    def count_float32_ties(self) -> int:
        """How many more rows are tied if scores are read as float32."""
        score = project(self.score, "float32")
        same = (score[1:] == score[:-1]) & (self.query[1:] == self.query[:-1])
        return _count((np.append(same, False) | np.append(False, same)) & ~self.is_tied)

    # -- signs of a cause -----------------------------------------------------------------------------------------

    @property
    def is_unmatched(self) -> bool:
        """Whether most ties are final scores of 0, as documents without a match get.

        If scores were rounded to 0 instead, the scores before them are often tied as well.
        """
        last = np.flatnonzero((self.score == 0) & self.is_last & (self.start > 0))
        most = 2 * _count_pairs(self.size[last]) >= self.tied_pairs
        return most and len(last) >= MIN_LISTS and 4 * _count(self.is_tied[last - 1]) < len(last)

    @property
    def are_ranks(self) -> bool:
        """Whether the scores are ranks: untied, and one apart in all lists."""
        steps = -np.diff(self.score)[np.diff(self.query) == 0]
        return not self.tied_rows and len(steps) > 0 and bool((steps == 1).all())

    def explain_by_rounding(self, grids: Sequence[Grid], limits: Sequence[float]) -> tuple[float, Grid] | None:
        """The largest share of tied pairs that rounding to one of the grids explains, and the grid; None without ties.

        If only rounding makes ties, scores fall into one cell of the grid as often as into neighbouring cells: half as
        many pairs share a cell as are one step apart. Documents that tie for another reason have no such neighbours.
        Groups with a score of ±`limits` are left out: a limit has a neighbour on one side only.
        """
        kept = ~np.isin(np.abs(self.score), limits)
        tied = _count_pairs(self.size[kept])
        if not tied:
            return None
        above = np.flatnonzero((self.query[1:] == self.query[:-1]) & kept[1:] & kept[:-1])
        apart = [0] * len(grids)  # pairs that are one step apart
        for block in np.array_split(above, len(above) // BLOCK_SIZE + 1):
            upper, lower, pairs = self.score[block], self.score[block + 1], self.size[block] * self.size[block + 1]
            smaller = np.where(np.abs(upper) < np.abs(lower), upper, lower)
            with np.errstate(invalid="ignore", over="ignore"):
                for number, grid in enumerate(grids):
                    steps = (upper - lower) / grid.spacing(smaller)
                    apart[number] += int(pairs[np.abs(steps - 1) < 0.01].sum())
        shares = (min(1.0, number / 2 / tied) for number in apart)
        return max(zip(shares, grids, strict=True), key=lambda one: one[0])

    def piles(self, printing: Grid | None = None) -> tuple[Pile, ...]:
        """Tied scores at 1 and 0, if all scores lie between −1 and 1.

        At 1, scores that float32 can hardly distinguish from 1 count too; with few digits, those printed as 1 or 0.
        """
        if not len(self.score) or self.score.max() > 1 or self.score.min() < -1:
            return ()
        from_one, from_zero = 1 - np.abs(self.score), np.abs(self.score)
        step = 0.0 if printing is None else float(printing.spacing(np.array([0.99]))[0])
        found = (self._pile(1.0, from_one, step, NEAR_ONE, APPROACH), self._pile(0.0, from_zero, step, 0.0, NEAR_ONE))
        return tuple(pile for pile in found if pile.tied_rows)

    def _pile(self, at: float, distance: Floats, step: float, within: float, approach: float) -> Pile:
        printed = step > NEAR_ONE
        here = distance < step / 2 if printed else (distance < within) | (distance == 0)
        rows, tied = int(self.size[here].sum()), int(self.size[here & self.is_tied].sum())
        near = ~here & (distance < (1.5 * step if printed else approach))
        needed = MIN_BESIDE * rows if printed else 1
        return Pile(at, rows, tied, int(self.size[near].sum()) >= needed, printed)

    # -- samples for other tests ----------------------------------------------------------------------------------

    def sample_tied_lists(self) -> list[Floats]:
        """The distinct finite scores, ascending, of lists with ties: of all such lists, or some at even distances."""
        tied = np.unique(self.query[self.is_tied])
        chosen = tied[:: len(tied) // MAX_LISTS + 1]
        bounds = zip(*(np.searchsorted(self.query, chosen, side=side) for side in ("left", "right")), strict=True)
        lists = (self.score[low:high][::-1] for low, high in bounds)
        return [scores[np.isfinite(scores)] for scores in lists]

    def sample_groups(self) -> tuple[Codes, Floats, Codes]:
        """The list, score and size of groups with a finite score: of all lists, or some at even distances."""
        chosen = np.isfinite(self.score) & (self.query % (len(self.score) // MAX_GROUPS + 1) == 0)
        return self.query[chosen], self.score[chosen], self.size[chosen]

    def tied_documents(self) -> tuple[list[str], Codes]:
        """The documents of all tied rows, and the group of each."""
        group = np.repeat(np.arange(len(self.size)), self.size)
        order = np.lexsort((-self.run.value, np.repeat(np.arange(len(self.run.queries)), np.diff(self.run.offsets))))
        tied = np.flatnonzero(self.is_tied[group])
        return self.run.ids(order[tied]), group[tied]


def _count(mask: NDArray[Any]) -> int:
    return int(np.count_nonzero(mask))


def _count_pairs(sizes: Codes) -> int:
    return int((sizes * (sizes - 1)).sum()) // 2


def count_identical_rows(ties: TieStatistics, vectors: Any) -> int:
    """How many tied rows are tied only with documents of the same vector; a document without a vector differs from all.

    `vectors` is ``{document: vector}`` or ``(ids, matrix)``.
    """
    numbers = number_vectors(vectors)
    documents = ties.run.ids(np.arange(len(ties.run)))
    if numbers.keys().isdisjoint(documents):
        raise InputError(
            f"No document of the run has a vector. Documents of the run: {list_examples(documents[:10])}; ids of the "
            f"vectors: {list_examples(list(numbers)[:10])}."
        )
    tied, group = ties.tied_documents()
    if not tied:
        return 0
    vector = np.array([numbers.get(doc, -row) for row, doc in enumerate(tied, 1)])
    first = np.flatnonzero(np.diff(group, prepend=-1))
    identical = np.minimum.reduceat(vector, first) == np.maximum.reduceat(vector, first)
    return int(ties.size[group[first]][identical].sum())


def number_vectors(vectors: Any) -> dict[str, int]:
    """A number for each document: the same for equal vectors.

    >>> number_vectors({"a": [1, 0], "b": [0, 1], "c": [1, 0]})
    {'a': 1, 'b': 0, 'c': 1}
    """
    if isinstance(vectors, Mapping):
        ids, rows = list(vectors), [to_host(vector) for vector in vectors.values()]
    elif isinstance(vectors, tuple) and len(vectors) == 2:
        ids, rows = list(vectors[0]), to_host(vectors[1])
    else:
        raise InputError("vectors must be {document: vector}, or (ids, matrix) with a row for each id.")
    names = [identifier(name, "document") for name in ids]
    if len(set(names)) < len(names):
        repeated = [name for name, count in Counter(names).items() if count > 1]
        raise InputError(
            f"Documents occur more than once among the vectors: {list_examples(repeated)}. Keep one row of each."
        )
    matrix = np.ascontiguousarray(_check_matrix(rows, names) + 0.0)  # −0 becomes 0
    as_bytes = matrix.view(np.dtype((np.void, matrix.dtype.itemsize * matrix.shape[1]))).ravel()
    return dict(zip(names, np.unique(as_bytes, return_inverse=True)[1].tolist(), strict=True))


def _check_matrix(rows: Any, names: Sequence[str]) -> Floats:
    try:
        matrix = np.asarray(rows, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("The vectors are not numbers of one length. Give a matrix with a row for each id.") from None
    if matrix.ndim != 2 or not matrix.shape[1] or len(matrix) != len(names):
        raise InputError(f"The vectors have shape {matrix.shape} for {len(names):,} ids. Give a row for each id.")
    bad = np.flatnonzero(~np.isfinite(matrix).all(axis=1))
    if len(bad):
        raise InputError(f"Row {bad[0]} of the vectors holds NaN or infinity ({count_noun(len(bad), 'such row')}).")
    return matrix
