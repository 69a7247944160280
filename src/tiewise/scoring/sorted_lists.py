"""Tie groups of labelled lists, by sorting them where they are: in NumPy, or by torch on a device.

In a sorted list a tie group is a run of equal scores. Some lists at a time are a matrix with a row for each, filled up
at the end; the sort is stable, so the filling stays behind everything else, also behind scores of -inf.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tiewise.data.columns import Codes, Floats
from tiewise.data.documents import Documents, RowNumbers
from tiewise.data.judgments import Pool, Qrels
from tiewise.errors import InputError
from tiewise.scoring.backends import Array, Backend, dtype_name, is_integer, is_low_precision
from tiewise.ties.counted import Counted
from tiewise.ties.groups import TieGroups

#: Scores that are sorted at a time, in main memory and on a device.
HOST_BLOCK, DEVICE_BLOCK = 2**22, 2**26


class Lists(NamedTuple):
    """Lists one below the other: scores and labels in one library, and the number of documents of each list."""

    backend: Backend
    scores: Array  # (n_rows,)
    labels: Array  # (n_rows,)
    sizes: Codes  # (n_queries,)


class _Block(NamedTuple):
    """What was counted in some lists: columns of judged documents, of queries, and totals."""

    judged: list[NDArray[Any]]  # query, document, start, size, before
    label: Floats
    score: Floats
    lowest: Floats
    lowest_size: Codes
    tied: int
    groups: int


def count_lists(lists: Lists, queries: tuple[str, ...], *, all_judged: bool, distances: bool = False) -> Counted:
    """The tie groups of lists: of all documents, or of those with a label other than 0.

    >>> from tiewise.scoring.backends import NumpyBackend
    >>> lists = Lists(NumpyBackend(), np.array([1, 2, 1]), np.array([3, 0, 1]), np.array([3]))
    >>> ties = count_lists(lists, ("q",), all_judged=False).ties["float64"]
    >>> ties.start, ties.size, ties.before["given"]
    (array([1, 1]), array([2, 2]), array([0, 1]))
    """
    parts = [_count_block(lists, part, all_judged, distances) for part in _parts(lists)]
    columns = [np.concatenate(column) for column in zip(*(part.judged for part in parts), strict=True)]
    label, score, lowest, lowest_size = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("label", "score", "lowest", "lowest_size")
    )
    order = np.lexsort((columns[1], columns[0]))
    query, document, start, size, before = (column[order] for column in columns)
    offsets = np.append(0, np.cumsum(np.bincount(query, minlength=len(queries))))
    documents = Documents(document, RowNumbers(int(lists.sizes.max(initial=0))))  # positions in their lists
    n_rows = int(lists.sizes.sum())
    is_part = len(query) < n_rows
    every = Pool(documents, np.append(0, np.cumsum(lists.sizes)))  # its documents are never read: no run is counted
    ties = TieGroups(
        qrels=Qrels(queries, offsets, documents, label[order], pool=every if is_part else None),
        score=score[order],
        start=start,
        size=size,
        length=lists.sizes,
        present=np.ones(len(queries), dtype=bool),
        lowest=lowest,
        lowest_size=lowest_size,
        before={"given": before},
        complete=True,
    )
    neighbours = n_rows - int(np.count_nonzero(lists.sizes))
    return Counted(
        {"float64": ties},
        n_rows=n_rows,
        tied_rows=sum(part.tied for part in parts),
        equal_share=(n_rows - sum(part.groups for part in parts)) / max(neighbours, 1),
        n_queries=len(queries),
        queries=queries[:3],
        found=lists.sizes > 0,  # each document has a label
        distances=distances,
    )


def _parts(lists: Lists) -> Iterator[tuple[slice, slice]]:
    """Some lists at a time: those of some queries, and their rows."""
    limit = DEVICE_BLOCK if lists.backend.on_device else HOST_BLOCK
    ends, first, widest = np.cumsum(lists.sizes), 0, 0
    for place, size in enumerate(lists.sizes.tolist()):
        wider = max(widest, size)
        if place > first and wider * (place - first + 1) > limit:
            yield _part(first, place, ends)
            first, wider = place, size
        widest = wider
    yield _part(first, len(lists.sizes), ends)


def _part(first: int, last: int, ends: Codes) -> tuple[slice, slice]:
    return slice(first, last), slice(int(ends[first - 1]) if first else 0, int(ends[last - 1]))


def _count_block(lists: Lists, part: tuple[slice, slice], all_judged: bool, distances: bool) -> _Block:
    backend, (some, rows), sizes = lists.backend, part, lists.sizes[part[0]]
    width = max(int(sizes.max(initial=0)), 1)
    matrix = _Matrix(backend, sizes, width)
    values, labels = _comparable(backend, lists.scores[rows]), _comparable(backend, lists.labels[rows])
    _check(matrix, values, labels, some.start)
    if distances:
        values = -values
    score, order = backend.sort_descending(matrix.fill(values, _lowest(backend, values)))
    label = backend.take_along_rows(matrix.fill(labels, 0), order)
    is_first = backend.zeros(score.shape, backend.dtype("bool"))
    is_first[:, 0] = True
    is_first[:, 1:] = score[:, 1:] != score[:, :-1]
    matrix.mark_ends(is_first)
    first = backend.flat_nonzero(is_first)
    group = is_first.reshape(-1).cumsum(0) - 1  # of each place
    size = backend.xp.diff(first, append=backend.as_indices([len(sizes) * width]))
    place = backend.flat_nonzero(matrix.is_filled & ((label != 0) | all_judged))
    start, query = first[group[place]], place // width
    judged = query + some.start, order.reshape(-1)[place], start - query * width, size[group[place]], place - start
    last = backend.as_indices(np.arange(len(sizes)) * width + np.maximum(sizes - 1, 0))
    own = size[(filled := matrix.is_filled.reshape(-1)[first])]
    host = backend.to_numpy
    empty, flat = sizes == 0, score.reshape(-1)
    return _Block(
        [host(column).astype(np.int64) for column in judged],
        host(label.reshape(-1)[place]).astype(np.float64),
        host(flat[place]).astype(np.float64),
        np.where(empty, np.nan, host(flat[last]).astype(np.float64)),
        np.where(empty, 0, host(size[group[last]])),
        int(own[own > 1].sum()),
        int(filled.sum()),
    )


class _Matrix:
    """Lists as the rows of a matrix, filled up at the end."""

    def __init__(self, backend: Backend, sizes: Codes, width: int):
        self.backend, self.shape, self._sizes = backend, (len(sizes), width), sizes
        self._is_full = bool((sizes == width).all())
        columns = backend.as_indices(np.arange(width))
        self.is_filled = columns[None, :] < backend.as_indices(sizes)[:, None]

    def fill(self, values: Array, filling: Any) -> Array:
        if self._is_full:
            return values.reshape(self.shape)
        matrix = self.backend.zeros(self.shape, values.dtype)
        matrix[...] = filling
        matrix[self.is_filled] = values
        return matrix

    def mark_ends(self, is_first: Array) -> None:
        """Let a group of its own begin behind each list."""
        rows = np.flatnonzero(self._sizes < self.shape[1])
        if len(rows):
            is_first[self.backend.as_indices(rows), self.backend.as_indices(self._sizes[rows])] = True

    def find(self, place: int) -> tuple[int, int]:
        ends = np.cumsum(self._sizes)
        query = int(np.searchsorted(ends, place, side="right"))
        return query, place - int(ends[query] - self._sizes[query])


def _comparable(backend: Backend, values: Array) -> Array:
    """Values of a type that can be sorted, without -0.0, which some sorts put behind 0.0."""
    name = dtype_name(values.dtype)
    if is_low_precision(name):
        return backend.cast(values, backend.dtype("float32")) + 0.0
    if is_integer(name):
        wide = "float64" if name == "uint64" and not isinstance(values, np.ndarray) else "int64"
        return values if name == "uint64" and wide == "int64" else backend.cast(values, backend.dtype(wide))
    return values + 0.0


def _lowest(backend: Backend, values: Array) -> Any:
    """What stands behind all values in a stable sort."""
    if not is_integer(dtype_name(values.dtype)):
        return -np.inf
    return int(backend.xp.iinfo(values.dtype).min)


def _check(matrix: _Matrix, scores: Array, labels: Array, first_query: int) -> None:
    """Raise if a score is NaN, or a label is NaN, infinite or below 0."""
    is_bad = scores != scores
    _raise_at(matrix, is_bad, scores, first_query, "score", "NaN has no rank; is a mask= missing?")
    advice = "A label is a finite number from 0 on; if it marks padding, give mask="
    _raise_at(matrix, ~((labels >= 0) & (labels < np.inf)), labels, first_query, "label", f"{advice}labels >= 0.")


def _raise_at(matrix: _Matrix, is_bad: Array, values: Array, first_query: int, what: str, advice: str) -> None:
    if not bool(is_bad.any()):
        return
    places = matrix.backend.to_numpy(matrix.backend.flat_nonzero(is_bad))
    query, position = matrix.find(int(places[0]))
    value = float(values[int(places[0])])
    raise InputError(
        f"Query {first_query + query}, document {position}: the {what} is {value:g}, one of {len(places):,} such. "
        f"{advice}"
    )
