"""Tie statistics of all rows of a run: tie groups, their sizes, places and scores, and identical documents.

`tiewise.ties` counts only what judged documents need. This module looks at every row, some lists at a time while the
run is read, and keeps the tie groups without ids.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tiewise.analysis.grids import Grid
from tiewise.data.columns import Codes, Floats, identifier, is_descending, ranges, sort_lists, to_host
from tiewise.data.runs import Run
from tiewise.errors import InputError
from tiewise.results.wording import count_noun, list_examples
from tiewise.ties.counted import ListScores, scores_of
from tiewise.ties.orders import group_rows

MAX_LISTS = 200  # lists that are tested one by one
MAX_GROUPS = 300_000  # about the number of groups in a sample
MAX_EXAMPLES = 5  # of the largest groups, and of the documents in each
NEARLY_CONSTANT = 0.9  # a list is nearly constant if one score has this share of its documents
MIN_LISTS = 10  # shorter lists are never nearly constant, and fewer lists are not evidence of unmatched documents
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


class TiesOfLists(NamedTuple):
    """The tie groups of some lists, list by list and best first; an untied row is a group of one."""

    n_lists: int
    score: Floats  # (n_groups,)
    size: NDArray[Any]  # (n_groups,): the least unsigned integers that hold it
    lists: Codes  # (n_lists that are not empty,): their places among the lists
    heads: Codes  # (n_lists that are not empty + 1,): the first group of each
    length: Codes  # (n_lists that are not empty,)
    float32_ties: int  # rows that are tied in addition if scores are read as float32
    examples: tuple[TieExample, ...]  # the largest

    @property
    def is_tied(self) -> NDArray[np.bool_]:
        """Whether several documents have the score."""
        return self.size > 1

    @property
    def has_ties(self) -> NDArray[np.bool_]:
        """Whether each list that is not empty has a tie."""
        return np.asarray(np.maximum.reduceat(self.size, self.heads[:-1]) > 1) if len(self.lists) else self.lists > 0

    def lies_within(self, low: float, high: float) -> bool:
        """Whether all scores do."""
        return bool((self.score[self.heads[:-1]] <= high).all() and (self.score[self.heads[1:] - 1] >= low).all())

    @property
    def gaps(self) -> Floats:
        """From each group but the last to the next one of the list; infinite after the last one of a list."""
        with np.errstate(over="ignore"):
            gaps = self.score[:-1] - self.score[1:]
        gaps[self.heads[1:-1] - 1] = np.inf
        return gaps

    @property
    def inner(self) -> NDArray[np.bool_]:
        """Whether each group but the last is followed by one of the same list."""
        inner = np.ones(max(len(self.score) - 1, 0), dtype=bool)
        inner[self.heads[1:-1] - 1] = False
        return inner


def find_ties(scores: ListScores) -> TiesOfLists:
    """The tie groups of some lists."""
    value, offsets = scores.value, scores.offsets
    ordered = value if is_descending(value, offsets) else sort_lists(value, offsets)
    new = np.ones(len(ordered) + 1, dtype=bool)
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:-1])
    new[offsets[:-1]] = True
    first = np.flatnonzero(new)  # and the number of rows
    lists = np.flatnonzero(np.diff(offsets))
    length = np.diff(offsets)[lists]
    heads = np.append(np.searchsorted(first, offsets[lists]), len(first) - 1)
    size, score = np.diff(first), ordered[first[:-1]]
    tied = np.flatnonzero(size > 1)
    examples = []
    for group in tied[np.argsort(-size[tied], kind="stable")[:MAX_EXAMPLES]].tolist():
        at = lists[np.searchsorted(heads, group, side="right") - 1]
        low, high = offsets[at : at + 2]
        docs = scores.docs(low + np.flatnonzero(value[low:high] == score[group])[:MAX_EXAMPLES])
        rank = int(first[group] - low) + 1
        examples.append(TieExample(scores.query(int(at)), float(score[group]), rank, int(size[group]), tuple(docs)))
    smallest = np.min_scalar_type(int(size.max(initial=0)))
    found = TiesOfLists(len(offsets) - 1, score, size.astype(smallest), lists, heads, length, 0, tuple(examples))
    return found._replace(float32_ties=_count_float32_ties(found))


def _count_float32_ties(ties: TiesOfLists) -> int:
    with np.errstate(over="ignore"):
        score = ties.score.astype(np.float32)
    same = (score[1:] == score[:-1]) & ties.inner
    return _count((np.append(same, False) | np.append(False, same)) & ~ties.is_tied)


class TieStatistics:
    """Every tie group of a run, and counts of them, from those of its lists, some at a time."""

    def __init__(self, parts: Sequence[TiesOfLists]):
        self.parts = parts
        lengths = np.concatenate([part.length for part in parts]) if parts else np.zeros(0, np.int64)
        self.lists = len(lengths)  # that are not empty
        self.rankings = _count(lengths > 1)  # lists in which there is something to rank
        self.longest = int(lengths.max(initial=0))
        self.rows = int(lengths.sum())
        #: The number of groups of each size.
        self.sizes = np.zeros(int(max((part.size.max(initial=0) for part in parts), default=0)) + 1, np.int64)
        self.constant = self.nearly_constant = self.ending_tied = 0
        for part in parts:
            counts = np.bincount(part.size)
            self.sizes[: len(counts)] += counts
            self._count_lists(part)
        size = np.arange(len(self.sizes))
        self.tied_rows = int((size * self.sizes)[2:].sum())
        self.tied_pairs = int((size * (size - 1) // 2 * self.sizes).sum())
        #: How many more rows are tied if scores are read as float32.
        self.float32_ties = sum(part.float32_ties for part in parts)

    @classmethod
    def of(cls, run: Run) -> TieStatistics:
        """Those of a run in memory."""
        return cls(list(map(find_ties, scores_of(run))))

    def _count_lists(self, part: TiesOfLists) -> None:
        if not len(part.lists):
            return
        last, length = part.heads[1:] - 1, part.length
        most = np.maximum.reduceat(part.size, part.heads[:-1])
        self.constant += _count((most == length) & (length > 1))  # lists that give all documents one score
        nearly = (most >= NEARLY_CONSTANT * length) & (most < length) & (length >= MIN_LISTS)
        unmatched = (part.score[last] == 0) & (part.size[last] == most)  # documents without a match
        self.nearly_constant += _count(nearly & ~unmatched)  # other lists that give most documents one score
        self.ending_tied += _count(part.size[last] > 1)  # lists that may be cut inside a tie group

    @property
    def largest(self) -> int:
        """The size of the largest group."""
        return len(self.sizes) - 1

    @property
    def tied_share(self) -> float:
        """The share of rows that are tied."""
        return self.tied_rows / max(self.rows, 1)

    def histogram(self) -> tuple[SizeBin, ...]:
        """The groups by size: 1, 2, 3 to 4, 5 to 8 and so on."""
        counts = self.sizes[1:]
        size = np.arange(1, len(counts) + 1)
        power = np.ceil(np.log2(size)).astype(np.int64)
        groups, rows = (np.bincount(power, weights).astype(np.int64) for weights in (counts, counts * size))
        return tuple(
            SizeBin(2 ** (b - 1) + 1 if b else 1, 2**b, count, total)
            for b, (count, total) in enumerate(zip(groups.tolist(), rows.tolist(), strict=True))
        )

    def examples(self) -> tuple[TieExample, ...]:
        """The largest groups of tied documents, each with some of its documents."""
        return tuple(
            sorted(chain.from_iterable(part.examples for part in self.parts), key=lambda one: -one.size)[:MAX_EXAMPLES]
        )

    def count_across(self, cutoffs: Sequence[int]) -> dict[int, int]:
        """By rank, how many lists have a tie between it and the next; without ranks at which all have ended."""
        across = {cutoff: 0 for cutoff in cutoffs if cutoff < self.longest}
        for part in self.parts:
            new = np.zeros(int(part.length.sum()) + 1, dtype=bool)  # whether a group begins at a row
            new[np.cumsum(part.size, dtype=np.int64)] = True
            first = np.cumsum(part.length) - part.length
            for cutoff in across:
                across[cutoff] += _count(~new[(first + cutoff)[part.length > cutoff]])
        return across

    # -- signs of a cause -----------------------------------------------------------------------------------------

    @property
    def is_unmatched(self) -> bool:
        """Whether most ties are final scores of 0, as documents without a match get.

        If scores were rounded to 0 instead, the scores before them are often tied as well.
        """
        lists = pairs = tied_before = 0
        for part in self.parts:
            last = part.heads[1:] - 1
            last = last[(part.score[last] == 0) & (last > part.heads[:-1])]
            lists += len(last)
            pairs += _count_pairs(part.size[last])
            tied_before += _count(part.is_tied[last - 1])
        return 2 * pairs >= self.tied_pairs and lists >= MIN_LISTS and 4 * tied_before < lists

    @property
    def are_ranks(self) -> bool:
        """Whether the scores are ranks: untied, and one apart in all lists."""
        apart = ((part.gaps[part.inner] == 1).all() for part in self.parts)
        return not self.tied_rows and self.rankings > 0 and all(apart)

    def explain_by_rounding(self, grids: Sequence[Grid], limits: Sequence[float]) -> tuple[float, Grid] | None:
        """The largest share of tied pairs that rounding to one of the grids explains, and the grid; None without ties.

        If only rounding makes ties, scores fall into one cell of the grid as often as into neighbouring cells: half as
        many pairs share a cell as are one step apart. Documents that tie for another reason have no such neighbours.
        Groups with a score of ±`limits` are left out: a limit has a neighbour on one side only.
        """
        tied, apart = self.tied_pairs, [0] * len(grids)  # pairs of documents with one score, and one step apart
        for part in self.parts:
            gap, distance = part.gaps, np.abs(part.score)
            at_limit = np.isin(distance, limits)
            tied -= _count_pairs(part.size[at_limit])
            smaller = np.minimum(distance[:-1], distance[1:])
            largest = smaller.max(initial=0)
            if largest == np.inf:
                largest = smaller[smaller < np.inf].max(initial=0)
            widest = max(float(grid.spacing(np.array([largest]))[0]) for grid in grids)  # but perhaps for that of 0
            near = np.flatnonzero(((gap < 1.02 * widest) | (smaller == 0)) & ~(at_limit[:-1] | at_limit[1:]))
            for number, grid in enumerate(grids):
                step = near[np.abs(gap[near] / grid.spacing(smaller[near]) - 1) < 0.01]
                apart[number] += int((part.size[step].astype(np.int64) * part.size[step + 1]).sum())
        if not tied:
            return None
        shares = (min(1.0, number / 2 / tied) for number in apart)
        return max(zip(shares, grids, strict=True), key=lambda one: one[0])

    def piles(self, printing: Grid | None = None) -> tuple[Pile, ...]:
        """Tied scores at 1 and 0, if all scores lie between −1 and 1.

        At 1, scores that float32 can hardly distinguish from 1 count too; with few digits, those printed as 1 or 0.
        """
        if not all(part.lies_within(-1, 1) for part in self.parts):
            return ()
        step = 0.0 if printing is None else float(printing.spacing(np.array([0.99]))[0])
        limits = ((1.0, NEAR_ONE, APPROACH), (0.0, 0.0, NEAR_ONE))
        found = (self._pile(at, step, within, approach) for at, within, approach in limits)
        return tuple(pile for pile in found if pile.tied_rows)

    def _pile(self, at: float, step: float, within: float, approach: float) -> Pile:
        printed = step > NEAR_ONE
        rows = tied = beside = 0
        for part in self.parts:
            distance = np.abs(at - np.abs(part.score))
            near = distance < (1.5 * step if printed else approach)
            if not near.any():
                continue
            distance, size = distance[near], part.size[near]
            here = distance < step / 2 if printed else (distance < within) | (distance == 0)
            rows, tied = rows + int(size[here].sum()), tied + int(size[here & (size > 1)].sum())
            beside += int(size[~here].sum())
        needed = MIN_BESIDE * rows if printed else 1
        return Pile(at, rows, tied, beside >= needed, printed)

    # -- samples for other tests ----------------------------------------------------------------------------------

    def sample_tied_lists(self) -> list[Floats]:
        """The distinct finite scores, ascending, of lists with ties: of all such lists, or some at even distances."""
        tied = [np.flatnonzero(part.has_ties) for part in self.parts]
        every, before, lists = sum(map(len, tied)) // MAX_LISTS + 1, 0, []
        for part, places in zip(self.parts, tied, strict=True):
            for place in places[-before % every :: every].tolist():
                scores = part.score[part.heads[place] : part.heads[place + 1]][::-1]
                lists.append(scores[np.isfinite(scores)])
            before += len(places)
        return lists

    def sample_groups(self) -> tuple[Codes, Floats, Codes]:
        """The list, score and size of groups with a finite score: of all lists, or some at even distances."""
        every, before = sum(len(part.score) for part in self.parts) // MAX_GROUPS + 1, 0
        samples: list[tuple[NDArray[Any], ...]] = [(np.zeros(0, np.int64), np.zeros(0), np.zeros(0, np.int64))]
        for part in self.parts:
            places = before + part.lists
            chosen = np.flatnonzero(places % every == 0)
            counts = np.diff(part.heads)[chosen]
            groups = ranges(part.heads[chosen], counts)
            sample = np.repeat(places[chosen], counts), part.score[groups], part.size[groups].astype(np.int64)
            samples.append(tuple(column[np.isfinite(sample[1])] for column in sample))
            before += part.n_lists
        query, score, size = map(np.concatenate, zip(*samples, strict=True))
        return query, score, size


def _count(mask: NDArray[Any]) -> int:
    return int(np.count_nonzero(mask))


def _count_pairs(sizes: NDArray[Any]) -> int:
    sizes = sizes.astype(np.int64)
    return int((sizes * (sizes - 1)).sum()) // 2


def count_identical_rows(run: Run, vectors: Any) -> int:
    """How many tied rows are tied only with documents of the same vector; a document without a vector differs from all.

    `vectors` is ``{document: vector}`` or ``(ids, matrix)``.
    """
    numbers = number_vectors(vectors)
    documents = run.ids(np.arange(len(run)))
    if numbers.keys().isdisjoint(documents):
        raise InputError(
            f"No document of the run has a vector. Documents of the run: {list_examples(documents[:10])}; ids of the "
            f"vectors: {list_examples(list(numbers)[:10])}."
        )
    rows, start, size = group_rows(run)
    rows, start, size = (column[size > 1] for column in (rows, start, size))
    if not len(rows):
        return 0
    vector = np.array([numbers.get(doc, -row) for row, doc in enumerate(run.ids(rows), 1)])
    first = np.flatnonzero(np.diff(run.offsets[run.query[rows]] + start, prepend=-1))
    identical = np.minimum.reduceat(vector, first) == np.maximum.reduceat(vector, first)
    return int(size[first][identical].sum())


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
