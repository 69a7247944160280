"""`evaluate_scores`: arrays or tensors of scores and labels in, a `Report` out, without ids or dictionaries.

The shapes are those of people who train: (queries, documents), perhaps with a mask for padding; or flat, with the size
of each list (LightGBM, XGBoost) or the number of the query of each row (torchmetrics). All become flat columns of whole
lists, which `tiewise.scoring.sorted_lists` counts where they are: of a tensor on a device only the places of documents
with a label come to main memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypedDict, cast

import numpy as np

from tiewise.analysis.evaluating import DEFAULT_MEASURES, report_of
from tiewise.analysis.measuring import Evaluation, resolve_measures
from tiewise.analysis.options import NoRelevant, OptionNames, Options, Unpack, takes_options
from tiewise.analysis.reports import Report
from tiewise.data.columns import Codes, identifiers
from tiewise.errors import InputError
from tiewise.io.sources import find_fraction, look_like_scores
from tiewise.metrics.names import MeasureLike
from tiewise.results.wording import list_examples
from tiewise.scoring.backends import Array, Backend, TorchBackend, backend_of, dtype_name, is_integer
from tiewise.scoring.sorted_lists import Lists, count_lists


class ScoreOptions(TypedDict, total=False):
    """The options of `evaluate` that are not about runs, as keywords, for type checkers."""

    no_relevant: NoRelevant
    depth: int | None
    distances: bool
    samples: int
    seed: int


#: The options of `evaluate` that are about runs: which documents and queries they have.
_OF_RUNS = ("missing", "score_dtype", "judged_only", "complete", "drop_self")


@takes_options(*_OF_RUNS)
def evaluate_scores(
    scores: Any,
    labels: Any,
    measures: MeasureLike | Iterable[MeasureLike] = DEFAULT_MEASURES,
    *,
    mask: Any = None,
    group: Any = None,
    indexes: Any = None,
    query_ids: Any = None,
    oblivious: str | None = "given",
    **options: Unpack[ScoreOptions],
) -> Report:
    """A `Report` of the measures of arrays or tensors of scores and labels, exact over all orders of tied documents.

    `scores` and `labels` are NumPy arrays, lists, or tensors of torch on any device and of any type (also bfloat16 and
    float8), of one of these shapes:

    - (queries, documents), perhaps with a `mask` of the same shape, which is False where there is no document;
    - (rows,) with `group`, the number of rows of each query, one query after the other (LightGBM, XGBoost);
    - (rows,) with `indexes`, the number of the query of each row, in any order (torchmetrics).

    A label says how relevant a document is: 0 or more, perhaps a fraction. The lists are taken as complete: relevant
    documents that are not among the scores are not known. `query_ids` name the queries, which are numbered otherwise.
    Tensors are counted on their device.

    - `oblivious`: "given" breaks ties in the order of the columns or rows; None for no such value.
    {options}

    >>> import numpy as np
    >>> scores = np.array([[0.5, 0.5, 0.1], [0.9, 0.8, 0.0]], dtype=np.float16)
    >>> labels = np.array([[0, 1, 0], [1, 0, 0]])
    >>> evaluate_scores(scores, labels, ["RR", "nDCG@10"], mask=[[True, True, True], [True, True, False]])["RR"]
    RR 0.8750 [0.7500, 1.0000]
    >>> evaluate_scores([0.5, 0.5, 0.1, 0.9, 0.8], [0, 1, 0, 1, 0], "RR", group=[3, 2])["RR"]
    RR 0.8750 [0.7500, 1.0000]
    """
    chosen = resolve_measures(measures)
    for measure in chosen:
        if measure.needs_subtopics:
            raise InputError(f"{measure} needs judgments for subtopics, which labels of this shape are not.")
    if oblivious not in ("given", None):
        raise InputError(
            f"oblivious={oblivious!r}: without ids of documents, the order of ties is 'given' (the order of the "
            "columns or rows) or None. For the orders of tools, give tiewise.evaluate a run."
        )
    for name in _OF_RUNS:
        if name in options:
            raise TypeError(f"evaluate_scores() got an unexpected keyword argument {name!r}")
    names: dict[str, Any] = {**options, "oblivious": oblivious, "complete": True}
    checked = Options.of("evaluate_scores", cast(OptionNames, names))
    columns = _columns(scores, labels, mask=mask, group=group, indexes=indexes)
    _check_not_swapped(columns.lists)
    all_judged = any(measure.needs_all_judged for measure in chosen)
    counted = count_lists(columns.lists, _names(columns, query_ids), all_judged=all_judged, distances=checked.distances)
    evaluation = Evaluation.of(counted.qrels, counted, checked, chosen)
    return report_of(evaluation, chosen)


class _Columns(NamedTuple):
    """Lists, and what their queries are called if nobody names them."""

    lists: Lists
    numbers: Sequence[Any]


def _names(columns: _Columns, given: Any) -> tuple[str, ...]:
    if given is None:
        return tuple(map(str, columns.numbers))
    ids = identifiers(given.tolist() if hasattr(given, "tolist") else given, "query")
    if len(ids) != len(columns.numbers):
        raise InputError(f"{len(ids):,} query_ids for {len(columns.numbers):,} queries. Give one for each.")
    if len(set(ids)) < len(ids):
        twice = [one for one in dict.fromkeys(ids) if ids.count(one) > 1]
        raise InputError(f"query_ids are given twice: {list_examples(twice)}. Ids must be distinct.")
    return tuple(ids)


# -- shapes -----------------------------------------------------------------------------------------------------------


def read_arrays(scores: Any, labels: Any, mask: Any) -> tuple[Backend, Array, Array, Array | None]:
    """The library of the scores, and scores, labels and mask in it, all of one shape.

    Scores in one column, (rows, 1), as a cross-encoder with one logit returns them, are flat if the labels are.
    """
    rows = scores if isinstance(scores, (list, tuple)) else ()
    if len({len(row) for row in rows if isinstance(row, (list, tuple)) or getattr(row, "ndim", False)}) > 1:
        raise InputError(
            "The lists of scores have different lengths. Give them flat, with group=, or padded, with mask=."
        )
    backend = backend_of(scores)
    score = backend.as_array(scores, "scores")
    label = _bring(backend, labels, "labels")
    if len(label.shape) == 1 and tuple(score.shape) == (label.shape[0], 1):
        score = score[:, 0]
    _check_shape("labels", label, tuple(score.shape), score)
    if mask is None:
        return backend, score, label, None
    kept = _bring(backend, mask, "mask")
    if dtype_name(kept.dtype) != "bool":
        raise InputError(
            f"The mask is {dtype_name(kept.dtype)}, not bool. Where 1 means a document, give mask == 1; where 1 means "
            "padding, mask == 0."
        )
    _check_shape("mask", kept, tuple(score.shape), score)
    return backend, score, label, kept


def check_integers(backend: Backend, given: Any, what: str, score: Array, shape: tuple[int, ...]) -> Array:
    """Numbers of queries or documents in the library of the scores."""
    numbers = _bring(backend, given, what)
    _check_shape(what, numbers, tuple(shape), score)
    if not is_integer(dtype_name(numbers.dtype)) or dtype_name(numbers.dtype) == "bool":
        raise InputError(f"The {what} are {dtype_name(numbers.dtype)}, not whole numbers.")
    return numbers


def _columns(scores: Any, labels: Any, *, mask: Any, group: Any, indexes: Any) -> _Columns:
    """Flat columns of whole lists from one of the shapes."""
    backend, score, label, kept = read_arrays(scores, labels, mask)
    if len(score.shape) == 2:
        if group is not None or indexes is not None:
            name = "group" if group is not None else "indexes"
            raise InputError(f"{name} is for flat scores, and these are {_shape(score)}: each row is a query.")
        return _of_matrix(backend, score, label, kept)
    if len(score.shape) != 1:
        raise InputError(f"The scores are {_shape(score)}. Give them as (queries, documents), or flat with group=.")
    if (group is None) == (indexes is None):
        raise InputError(
            f"The scores are flat, {_shape(score)}. Give group= (the number of rows of each query) or indexes= (the "
            "query of each row), not both; or scores of shape (1, documents) for one query."
        )
    query, numbers = _of_group(group, score) if indexes is None else _of_indexes(backend, indexes, score)
    return _of_rows(backend, score, label, kept, query, numbers)


def _of_matrix(backend: Backend, score: Array, label: Array, kept: Array | None) -> _Columns:
    n, width = score.shape
    if not n or not width:
        raise InputError(f"The scores are {_shape(score)}: there is nothing to evaluate.")
    if kept is None:
        return _Columns(Lists(backend, score.reshape(-1), label.reshape(-1), np.full(n, width)), range(n))
    sizes = backend.to_numpy(kept.sum(1)).astype(np.int64)
    return _Columns(Lists(backend, score[kept], label[kept], sizes), range(n))


def _of_rows(
    backend: Backend, score: Array, label: Array, kept: Array | None, query: Array, numbers: Sequence[Any]
) -> _Columns:
    """Lists from rows; `query` has the place of each row's query among the numbers."""
    if kept is not None:
        score, label, query = score[kept], label[kept], query[backend.to_numpy(kept) if _on_host(query) else kept]
    if _on_host(query):
        sizes, order = np.bincount(query, minlength=len(numbers)), None
        if (query[1:] < query[:-1]).any():
            order = np.argsort(query, kind="stable")
    else:
        sizes = backend.to_numpy(backend.xp.bincount(query, minlength=len(numbers)))
        order = query.argsort(stable=True)
    if order is not None:
        order = backend.as_indices(order) if _on_host(order) else order
        score, label = score[order], label[order]
    return _Columns(Lists(backend, score, label, sizes), numbers)


def _of_group(group: Any, score: Array) -> tuple[Codes, Sequence[Any]]:
    """The query of each row, from the number of rows of each query."""
    sizes = backend_of(group).as_array(group, "group sizes")
    sizes = backend_of(sizes).to_numpy(sizes)
    if sizes.ndim != 1 or not is_integer(sizes.dtype.name) or sizes.dtype == bool or (sizes < 0).any():
        raise InputError("group must be whole numbers from 0 on: the number of rows of each query.")
    sizes = sizes.astype(np.int64)
    if not len(sizes) or sizes.sum() != score.shape[0]:
        total = f"group has {len(sizes):,} sizes, {int(sizes.sum()):,} rows together"
        per_row = " If it is the query of each row, give indexes=." if len(sizes) == score.shape[0] else ""
        raise InputError(f"{total}, but there are {score.shape[0]:,} scores.{per_row}")
    return np.repeat(np.arange(len(sizes)), sizes), range(len(sizes))


def _of_indexes(backend: Backend, indexes: Any, score: Array) -> tuple[Array, Sequence[Any]]:
    """The query of each row, and the numbers of the queries, ascending."""
    number = check_integers(backend, indexes, "indexes", score, score.shape)
    if not number.shape[0]:
        raise InputError("There are no scores: there is nothing to evaluate.")
    found, place = (
        np.unique(number, return_inverse=True)
        if _on_host(number)
        else backend.xp.unique(number, sorted=True, return_inverse=True)
    )
    return place, backend.to_numpy(found).tolist()


# -- checks -----------------------------------------------------------------------------------------------------------


def _check_not_swapped(lists: Lists) -> None:
    """Raise if scores are 0 and 1, as integers, and labels are fractions, of which few are equal."""
    if not is_integer(dtype_name(lists.scores.dtype)) or not ((lists.scores == 0) | (lists.scores == 1)).all():
        return
    labels = np.asarray(lists.backend.to_numpy(lists.labels), dtype=np.float64)
    if look_like_scores(labels):
        raise InputError(
            f"The scores look like labels (0 and 1), and the labels like scores ({find_fraction(labels):g}). Scores "
            "come first. If they are right, give the scores as floats."
        )


def _on_host(array: Array) -> bool:
    return isinstance(array, np.ndarray)


def _bring(backend: Backend, given: Any, what: str) -> Array:
    """An array in the library of the scores. Tensors on two devices are an error; arrays are copied to the scores."""
    other = backend_of(given)
    place = "cpu" if backend.device is None else str(backend.device)
    if other.device is not None and str(other.device) != place:
        raise InputError(
            f"The scores are on {place}, and the {what} on {other.device}. Move one of them: {what}.to({place!r})."
        )
    array = backend.as_array(given, what)
    return backend.to_device(array) if isinstance(backend, TorchBackend) else array


def _check_shape(what: str, array: Array, wanted: tuple[int, ...], score: Array) -> None:
    if tuple(array.shape) != wanted:
        fits = "the same shape" if wanted == tuple(score.shape) else f"shape {wanted}"
        raise InputError(f"The scores are {_shape(score)}, and the {what} {_shape(array)}. Give {what} of {fits}.")


def _shape(array: Array) -> str:
    return f"of shape {tuple(array.shape)}"
