"""Which documents are identical: those with equal vectors, whose ties no precision can break."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tiewise.data.columns import Codes, identifier
from tiewise.data.runs import Run
from tiewise.errors import InputError, counted, listed

__all__ = ["kinds_of"]


def kinds_of(vectors: Any, run: Run | None = None) -> Callable[[Sequence[str]], Codes]:
    """A function that numbers documents so that those of equal vectors have one number.

    `vectors` is ``{document: vector}`` or ``(ids, matrix)``. A document without a vector is one of its own kind;
    some document of the run must have one.

    >>> kinds = kinds_of({"a": [1, 0], "b": [0, 1], "c": [1, 0]})
    >>> kinds(["a", "b", "c", "unknown"])
    array([ 1,  0,  1, -1])
    """
    ids, rows = _parts(vectors)
    names = [identifier(name, "document") for name in ids]
    if len(set(names)) < len(names):
        twice = [name for name, count in Counter(names).items() if count > 1]
        raise InputError(f"Documents stand more than once among the vectors: {listed(twice)}. Keep one row of each.")
    matrix = _matrix(rows, len(names))
    if run is not None:
        _check_common(names, run)
    plain = np.ascontiguousarray(matrix + 0.0)  # −0 is 0
    whole = plain.view(np.dtype((np.void, plain.dtype.itemsize * plain.shape[1]))).ravel()
    kind = dict(zip(names, np.unique(whole, return_inverse=True)[1].tolist(), strict=True))

    def numbered(docs: Sequence[str]) -> Codes:
        unknown = iter(range(-1, -len(docs) - 1, -1))
        return np.array([kind[doc] if doc in kind else next(unknown) for doc in docs], dtype=np.int64)

    return numbered


def _check_common(names: Sequence[str], run: Run) -> None:
    known = set(names)
    docs = run.ids(np.arange(len(run)))
    if known.isdisjoint(docs):
        raise InputError(
            f"No document of the run has a vector. Documents of the run: {listed(docs[:10])}; ids of the vectors: "
            f"{listed(names[:10])}."
        )


def _parts(vectors: Any) -> tuple[Sequence[Any], Any]:
    if isinstance(vectors, Mapping):
        return list(vectors), [_host(vector) for vector in vectors.values()]
    if isinstance(vectors, tuple) and len(vectors) == 2:
        return list(vectors[0]), _host(vectors[1])
    raise InputError("vectors is {document: vector}, or (ids, matrix) with a row for each id.")


def _matrix(rows: Any, count: int) -> Any:
    try:
        matrix = np.asarray(rows, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("The vectors are not numbers of one length each. Give a matrix, a row for each id.") from None
    if matrix.ndim != 2 or not matrix.shape[1] or len(matrix) != count:
        raise InputError(f"The vectors have shape {matrix.shape} for {count:,} ids. Give a row for each id.")
    bad = np.flatnonzero(~np.isfinite(matrix).all(axis=1))
    if len(bad):
        raise InputError(f"Row {bad[0]} of the vectors holds NaN or infinity ({counted(len(bad), 'such row')}).")
    return matrix


def _host(values: Any) -> Any:
    """A torch tensor of any device and type as NumPy; anything else as it is."""
    return values.detach().cpu().double().numpy() if hasattr(values, "detach") else values
