"""Nearest neighbours as an index returns them: scores or distances, and row numbers or ids, best first."""

from __future__ import annotations

import math
import re
from typing import Any, Literal, NamedTuple, get_args
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from tiewise.data.columns import MAX_PROBLEMS, Codes, Floats, numbers, to_host
from tiewise.errors import InputError
from tiewise.results.wording import count_noun

#: How an index compares vectors. "l2" and "hamming" are distances; "ip" and "cosine" may be scores or distances.
Metric = Literal["ip", "cosine", "l2", "hamming"]

#: The names that libraries have for these: their own constants, too, by name. The numbers are those of FAISS.
METRICS: dict[str, tuple[str, ...]] = {
    "ip": ("ip", "0", "dot", "innerproduct", "dotproduct", "mips", "metricinnerproduct", "maxinnerproduct"),
    "cosine": ("cosine", "cos", "cosinesim", "cosinesimil", "cosinesimilarity", "cosinedistance", "angular"),
    "l2": (
        *("l2", "1", "l2sq", "l2squared", "squaredl2", "sqeuclidean"),
        *("euclidean", "euclid", "metricl2", "euclideandistance"),
    ),
    "hamming": ("hamming", "binaryhamming", "jaccard", "tanimoto", "binaryjaccard", "manhattan", "l1", "metricl1", "2"),
}


class NeighborLists(NamedTuple):
    """One list for each query, best first; larger scores are better."""

    offsets: Codes  # (n_queries + 1,)
    document: NDArray[Any]  # (n_rows,): the row number of each document, of the index's integer type
    score: Floats  # (n_rows,)
    complete_lists: NDArray[np.bool_]  # (n_queries,): whether no tied document was left out at the end of the list


def find_metric(metric: Any) -> str:
    """The metric that a library's own name or constant means; distances of other kinds are read as "hamming" is.

    >>> find_metric("cos"), find_metric("L2sq"), find_metric(1)
    ('cosine', 'l2', 'l2')
    """
    name = getattr(metric, "name", metric)  # of an enumeration
    number = isinstance(name, (int, np.integer)) and not isinstance(name, bool)
    text = re.sub(r"[^a-z0-9]", "", str(name).rpartition(".")[2].lower()) if number or isinstance(name, str) else ""
    for found, names in METRICS.items():
        if text in names and (number or not text.isdigit()):
            return found
    raise InputError(f"Unknown metric {metric!r}. Use one of: {', '.join(map(repr, get_args(Metric)))}.")


def neighbor_lists(scores: Any, indices: Any, metric: Any, counts: Any, k: int | None) -> NeighborLists:
    """The lists of an index, without padding and, if `k` is given, up to all that tie with the k-th."""
    metric = find_metric(metric)
    index, score = _matrices(*_filled_up(scores, indices))
    filled = _filled(index, counts)
    _check_nan(score, filled)
    score = _larger_is_better(score, filled, metric)
    order = np.lexsort((np.where(filled, -score, 0.0), ~filled), axis=-1)  # padding last
    index, score, filled = (np.take_along_axis(matrix, order, 1) for matrix in (index, score, filled))
    kept, complete_lists = filled, ~filled.all(axis=1)
    if k is not None:
        kth = score[:, _check_k(k, score.shape[1]) - 1, None]
        kept = filled & ((score >= kth) | ~filled[:, k - 1, None])
        complete_lists = complete_lists | ~kept.all(axis=1)
    offsets = np.concatenate([[0], np.cumsum(kept.sum(axis=1))])
    return NeighborLists(offsets, index[kept], score[kept], np.asarray(complete_lists))


def _filled_up(scores: Any, indices: Any) -> tuple[Any, Any]:
    """Lists of different lengths, filled up with padding; others unchanged."""
    scores, indices = to_host(scores), to_host(indices)
    if isinstance(scores, np.ndarray) and scores.dtype != object:
        return scores, indices
    try:
        pairs = [(list(score), list(index)) for score, index in zip(scores, indices, strict=True)]
    except (TypeError, ValueError):  # no lists, or not as many
        return scores, indices
    longest = max((len(index) for _, index in pairs), default=0)
    if all(len(score) == len(index) == longest for score, index in pairs):
        return scores, indices
    for place, (score, index) in enumerate(pairs):
        if len(score) != len(index):
            raise InputError(f"Row {place}: {len(score)} scores for {len(index)} indices. Give as many.")
    filler = -1 if all(isinstance(one, (int, np.integer)) for _, index in pairs for one in index) else None
    fill = [longest - len(index) for _, index in pairs]
    filled_scores = [[*score, *[math.nan] * n] for (score, _), n in zip(pairs, fill, strict=True)]
    return filled_scores, [[*index, *[filler] * n] for (_, index), n in zip(pairs, fill, strict=True)]


def _matrices(scores: Any, indices: Any) -> tuple[NDArray[Any], Floats]:
    try:
        index, score = np.asarray(indices), np.asarray(scores)
    except ValueError:
        raise InputError("The rows of neighbours differ in length. Fill them up with the index -1.") from None
    if index.shape != score.shape or index.ndim != 2:
        raise InputError(
            f"The scores have shape {score.shape} and the indices {index.shape}. Give both as (queries, neighbours)."
        )
    if index.dtype.kind in "OUS":  # as text, a number among ids would not be seen
        index = _ids(index if isinstance(indices, np.ndarray) else np.array(indices, object))
    elif index.dtype.kind not in "iu":
        swapped = " Scores come first." if score.dtype.kind in "iu" else ""
        raise InputError(f"The indices are {index.dtype}, not integers.{swapped}")
    with np.errstate(invalid="ignore"):  # padding may be any NaN
        return index, numbers(score.reshape(-1), "score").reshape(score.shape)


def _ids(index: NDArray[Any]) -> NDArray[Any]:
    """Indices that are ids: text, or UUIDs, which become text."""
    flat = [str(one) if isinstance(one, UUID) else one for one in index.reshape(-1).tolist()]
    if any(one is not None and not isinstance(one, (str, int)) for one in flat):
        raise InputError("The indices are neither integers nor ids (text or UUIDs).")
    ids = np.empty(len(flat), object)
    ids[:] = flat
    return ids.reshape(index.shape)


def _filled(index: NDArray[Any], counts: Any) -> NDArray[np.bool_]:
    """Which places hold a neighbour. An index pads with -1, which is the largest number of an unsigned type."""
    if index.dtype == object:
        filled = np.array([[one is not None and one != -1 for one in row] for row in index.tolist()], bool)
        filled = filled.reshape(index.shape)
    elif index.dtype.kind == "u":
        filled = index != np.iinfo(index.dtype).max
    else:
        filled = index != -1
        if (index < -1).any():
            query, column = np.argwhere(index < -1)[0].tolist()
            raise InputError(
                f"Row {query}, column {column}: index {index[query, column]}. Only -1, padding, is below 0."
            )
    if counts is None:
        return filled
    n = np.asarray(to_host(counts))
    if n.shape != index.shape[:1] or n.dtype.kind not in "iu" or (n > index.shape[1]).any() or (n < 0).any():
        raise InputError(f"counts must be one number up to {index.shape[1]} for each of the {index.shape[0]} rows.")
    return filled & (np.arange(index.shape[1]) < n[:, None])


def _check_nan(score: Floats, filled: NDArray[np.bool_]) -> None:
    bad = np.argwhere(np.isnan(score) & filled)[:MAX_PROBLEMS].tolist()
    if bad:
        advice = "NaN has no rank. If it is padding, give counts=, the number of neighbours in each row"
        raise InputError(*(f"Row {query}, column {column}: the score is NaN. {advice}." for query, column in bad))


def _larger_is_better(score: Floats, filled: NDArray[np.bool_], metric: str) -> Floats:
    """The scores, or the negated distances. Rows come best first, so distances rise along them, and scores fall.

    Negation is exact: it neither makes ties nor breaks them, which 1 - distance would.
    """
    pairs = filled[:, 1:] & filled[:, :-1]
    rises = bool((pairs & (score[:, 1:] > score[:, :-1])).any())
    falls = bool((pairs & (score[:, 1:] < score[:, :-1])).any())
    if rises and falls:
        raise InputError(
            "The scores of some rows rise and of some fall, so it is not known whether a larger one is better. Give "
            "every row best first, as the index returned it."
        )
    if falls and metric in ("l2", "hamming"):
        raise InputError(
            f"metric={metric!r}: distances rise along a row, from the best to the worst, but these fall. Give them as "
            "the index returned them; for scores, where larger is better, say metric='ip'."
        )
    return 0.0 - score if rises or metric in ("l2", "hamming") else score  # -0.0 would be printed


def _check_k(k: Any, columns: int) -> int:
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or not 1 <= k <= columns:
        raise InputError(
            f"k={k!r}, but there are {count_noun(columns, 'column')}. Give at least k columns; k + 1 are best."
        )
    return int(k)
