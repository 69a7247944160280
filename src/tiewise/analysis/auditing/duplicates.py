"""Identical documents: documents with equal vectors, whose ties no precision can break."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tiewise.analysis.auditing.tie_statistics import TieStatistics
from tiewise.data.columns import Floats, identifier, to_host
from tiewise.errors import InputError
from tiewise.results.wording import count_noun, list_examples


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
