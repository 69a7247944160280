"""`reranker_precisions`: the last step of a reranker computed in several ways, from saved logits or hidden states."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np

from tiewise.analysis.evaluating import evaluate
from tiewise.data.columns import Floats, identifiers
from tiewise.data.judgments import Qrels
from tiewise.data.runs import Run
from tiewise.errors import InputError
from tiewise.io import as_qrels
from tiewise.io.types import QrelsLike
from tiewise.metrics.names import MeasureLike
from tiewise.scoring.backends import Array, backend_of, dtype_name
from tiewise.scoring.functions import head, logit, score
from tiewise.scoring.ids import IdsLike
from tiewise.scoring.precision_trials.result import RERANKER_ROWS, RerankerPrecisions
from tiewise.scoring.precision_trials.rows import check_trial, make_row, take_first_for_relevant
from tiewise.tables.wording import list_examples

__all__ = ["reranker_precisions"]

#: The row of the logits of the model in float32.
FLOAT32 = "float32"


def reranker_precisions(
    queries: IdsLike,
    docs: IdsLike,
    qrels: QrelsLike | None = None,
    *,
    logits: Array | None = None,
    hidden: Array | None = None,
    weight: Array | None = None,
    bias: Array | None = None,
    reference: Array | None = None,
    positive: int | None = None,
    measures: MeasureLike | Iterable[MeasureLike] = "nDCG@10",
    rows: Iterable[str] | None = None,
    max_loss: float | None = None,
    phi: float = 0.9,
    resamples: int = 10_000,
    seed: int = 0,
) -> RerankerPrecisions:
    """What each way to compute the scores of a reranker costs in quality, for pairs whose logits were saved.

    - `queries`, `docs`: the query and the document of each pair. Without `qrels`, the first documents of the reference
      are taken for relevant.
    - `logits`: the model's own, (pairs,) or (pairs, classes), in its type. One class is scored by a sigmoid, several by
      a softmax, in which `positive` is the class that means relevant: by default 1, the second.
    - `hidden`, `weight`, `bias`: the input of the last layer, (pairs, width), and its parameters, as `scoring.head`
      takes them. Without `logits`, these are computed from them in the type of the hidden states.
    - `reference`: the logits of the same pairs from the model in float32. The other rows are compared with them;
      without them, with the first row: head, or logit if there are no hidden states.
    - `rows`: ``"native"`` (the activation in the type of the logits), ``"score"`` (in float32), ``"logit"`` (no
      activation) and ``"head"`` (the last layer in float32); by default all that are possible.
    - `measures`, `max_loss`, `phi`, `resamples`, `seed`: as for `precisions`.

    >>> import numpy as np
    >>> logits = np.float16([8.0, 8.25, 1.0, 2.0])
    >>> found = reranker_precisions(["q", "q", "r", "r"], ["a", "b", "a", "b"],
    ...                             {"q": {"b": 1}, "r": {"b": 1}}, logits=logits, measures="RR")
    >>> [(row.setup, row.expected, row.tied_share) for row in found.rows]
    [('logit', 1.0, 0.0), ('score', 1.0, 0.0), ('native', 0.875, 0.5)]
    """
    chosen = check_trial(measures, max_loss, resamples, seed)
    ids = _resolve_ids(queries, docs)
    values = _score_levels(logits, hidden, weight, bias, reference, positive)
    names = _resolve_rows(rows, [name for name in values if name in RERANKER_ROWS])
    if reference is not None:
        names = [FLOAT32, *names]
    judged = None if qrels is None else as_qrels(qrels)
    runs = {name: _make_run(*ids, values[name](), judged) for name in names}
    first = runs[names[0]]
    judged = take_first_for_relevant(first, chosen[0]) if judged is None else judged
    found = [
        make_row(name, run, first, partial(evaluate, judged, run, complete=True, oblivious=None), chosen, phi)
        for name, run in runs.items()
    ]
    return RerankerPrecisions(found, chosen, max_loss, judged=qrels is not None, resamples=resamples, seed=seed)


def _score_levels(
    logits: Any, hidden: Any, weight: Any, bias: Any, reference: Any, positive: int | None
) -> dict[str, Any]:
    """By row, a function that computes the scores of all pairs."""
    if (hidden is None) != (weight is None):
        raise InputError("The last layer needs hidden and weight. Give both, or neither.")
    if bias is not None and weight is None:
        raise InputError("There is a bias without hidden and weight. Give all three, or no bias.")
    if logits is None and hidden is None:
        raise InputError("There is nothing to score. Give logits, or hidden and weight.")
    found: dict[str, Any] = {}
    if hidden is not None:
        again = _as_logits(head(hidden, weight, bias, precision="float64"), "logits of the last layer")
        if logits is None:
            logits = head(hidden, weight, bias, precision="native")
    own = _as_logits(logits, "logits")
    if hidden is not None and own.shape != again.shape:
        shapes = f"shape {tuple(own.shape)}, and those of the last layer {tuple(again.shape)}"
        raise InputError(f"The logits have {shapes}. They must agree.")
    if own.ndim == 1 and positive is not None:
        raise InputError(
            f"positive (--positive) is {positive!r}: it chooses among several logits, but there is one a pair. Omit it."
        )
    several: dict[str, Any] = {"fn": "softmax", "positive": 1 if positive is None else positive}
    options = {"fn": "sigmoid"} if own.ndim == 1 else several
    if hidden is not None:
        found["head"] = partial(logit, again, **options)
    found["logit"] = partial(logit, own, **options)
    found["score"] = partial(score, own, **options)
    found["native"] = partial(score, own, **options, precision="native")
    if reference is not None:
        found[FLOAT32] = partial(logit, _check_reference(_as_logits(reference, "reference"), own), **options)
    return found


def _check_reference(reference: Array, own: Array) -> Array:
    """The logits of the model in float32."""
    if reference.shape != own.shape:
        shapes = f"shape {tuple(reference.shape)}, and the logits {tuple(own.shape)}"
        raise InputError(f"The reference has {shapes}. Give the logits of the same pairs and classes.")
    if dtype_name(reference.dtype) not in ("float32", "float64"):
        raise InputError(f"The reference has the type {dtype_name(reference.dtype)}. Give logits in float32.")
    return reference


def _resolve_rows(rows: Iterable[str] | None, possible: Iterable[str]) -> list[str]:
    """The rows in the order of the table: what is computed again decreases."""
    known = list(possible)
    wanted = known if rows is None else [rows] if isinstance(rows, str) else list(rows)
    for name in wanted:
        if name not in RERANKER_ROWS:
            raise InputError(f"Unknown row {name!r}. Use some of: {', '.join(RERANKER_ROWS)}.")
        if name not in known:
            raise InputError(f"The row '{name}' needs hidden states and the weights of the last layer.")
    if not wanted:
        raise InputError(f"No row was given. Give some of: {', '.join(known)}.")
    return [name for name in known if name in wanted]


def _as_logits(given: Any, what: str) -> Array:
    """Logits, (pairs,) for one class, else (pairs, classes)."""
    array = backend_of(given).as_array(given, what)
    if array.ndim not in (1, 2) or not array.shape[0] or not array.shape[-1]:
        raise InputError(f"The {what} have shape {tuple(array.shape)}. Give (pairs,) or (pairs, classes).")
    return array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array


def _make_run(queries: list[str], docs: list[str], scores: Array, qrels: Qrels | None) -> Run:
    """The pairs of judged queries as a run."""
    values: Floats = np.asarray(backend_of(scores).to_numpy(scores), dtype=np.float64)
    if len(values) != len(queries):
        raise InputError(f"There are ids of {len(queries):,} pairs, and scores of {len(values):,}. Give one for each.")
    if qrels is None:
        return Run.from_columns(queries, docs, values)
    known = set(qrels.queries)
    kept = [row for row, query in enumerate(queries) if query in known]
    if not kept:
        examples = f"of the pairs {list_examples(dict.fromkeys(queries))}, of the qrels {list_examples(qrels.queries)}"
        raise InputError(f"The qrels have none of the queries. Queries {examples}.")
    return Run.from_columns([queries[row] for row in kept], [docs[row] for row in kept], values[kept])


def _resolve_ids(queries: IdsLike, docs: IdsLike) -> tuple[list[str], list[str]]:
    """The query and the document of each pair."""
    both = []
    pairs: list[tuple[Any, str]] = [(queries, "query"), (docs, "document")]
    for given, what in pairs:
        values = given.tolist() if hasattr(given, "tolist") else given
        if values is None or isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
            raise InputError(f"Give the {what} of each pair as a list of ids, not {values!r}.")
        both.append(identifiers(values, what))
    if len(both[0]) != len(both[1]):
        raise InputError(f"There are {len(both[0]):,} queries and {len(both[1]):,} documents of pairs. Give one each.")
    return both[0], both[1]
