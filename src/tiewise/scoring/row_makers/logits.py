"""`logits`: the last step of a reranker computed in several ways, from saved logits or hidden states, as rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from tiewise.analysis.protocols import Row
from tiewise.data.columns import Floats, identifiers
from tiewise.data.runs import Run
from tiewise.errors import InputError
from tiewise.scoring.backends import Array, backend_of, dtype_name
from tiewise.scoring.functions import head, logit, score
from tiewise.scoring.ids import IdsLike

__all__ = ["LEVEL_NAMES", "logits"]

#: What follows the type of the model in the name of a row, for each level.
LEVEL_NAMES = {"native": "", "score": " + hps", "logit": " + logit", "head": " + head"}
#: The row of the logits of the model in float32.
FLOAT32 = "float32"


def logits(
    queries: IdsLike,
    docs: IdsLike,
    *,
    logits: Array | None = None,
    hidden: Array | None = None,
    weight: Array | None = None,
    bias: Array | None = None,
    reference: Array | None = None,
    positive: int | None = None,
    levels: Iterable[str] | None = None,
) -> dict[str, Row]:
    """The rows of ways to compute the scores of a reranker from what was saved of it, for `protocol`: name → row.

    - `queries`, `docs`: the query and the document of each pair.
    - `logits`: the model's own, (pairs,) or (pairs, classes), in its type X. One class is scored by a sigmoid, several
      by a softmax, in which `positive` is the class that means relevant: by default 1, the second.
    - `hidden`, `weight`, `bias`: the input of the last layer, (pairs, width), and its parameters, as `scoring.head`
      takes them. Without `logits`, these are computed from them in the type of the hidden states.
    - `reference`: the logits of the same pairs from the model in float32; the first row, ``float32``.
    - `levels`: ``"native"`` (the activation in the type of the logits; the row ``X``), ``"score"`` (in float32: ``X +
      hps``), ``"logit"`` (no activation: ``X + logit``) and ``"head"`` (the last layer in float32: ``X + head``); by
      default all that are possible.

    >>> import numpy as np
    >>> rows = logits(["q", "q"], ["a", "b"], logits=np.float16([8.0, 8.25]))
    >>> {name: row.run.tied_share for name, row in rows.items()}
    {'float16': 1.0, 'float16 + hps': 0.0, 'float16 + logit': 0.0}
    """
    ids = _resolve_ids(queries, docs)
    scores = _score_levels(logits, hidden, weight, bias, reference, positive)
    name, first = scores.pop("type"), scores.pop(FLOAT32, None)
    chosen = {f"{name}{LEVEL_NAMES[level]}": scores[level] for level in _resolve_levels(levels, scores)}
    if first is not None:
        if FLOAT32 in chosen:
            raise InputError("The logits are in float32 as the reference is. Leave out one of them.")
        chosen = {FLOAT32: first, **chosen}
    return {name: Row(_make_run(*ids, compute())) for name, compute in chosen.items()}


def _score_levels(
    logits: Any, hidden: Any, weight: Any, bias: Any, reference: Any, positive: int | None
) -> dict[str, Any]:
    """The type of the logits, and by level a function that computes the scores of all pairs."""
    if (hidden is None) != (weight is None):
        raise InputError("The last layer needs hidden and weight. Give both, or neither.")
    if bias is not None and weight is None:
        raise InputError("There is a bias without hidden and weight. Give all three, or no bias.")
    if logits is None and hidden is None:
        raise InputError("There is nothing to score. Give logits, or hidden and weight.")
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
    found: dict[str, Any] = {
        "type": dtype_name(own.dtype),
        "native": partial(score, own, **options, precision="native"),
        "score": partial(score, own, **options),
        "logit": partial(logit, own, **options),
    }
    if hidden is not None:
        found["head"] = partial(logit, again, **options)
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


def _resolve_levels(levels: Iterable[str] | None, possible: Iterable[str]) -> list[str]:
    """The levels in the order of the table: what is computed again increases."""
    known = list(possible)
    wanted = known if levels is None else [levels] if isinstance(levels, str) else list(levels)
    for level in wanted:
        if level not in LEVEL_NAMES:
            raise InputError(f"Unknown level {level!r}. Use some of: {', '.join(LEVEL_NAMES)}.")
        if level not in known:
            raise InputError(f"The level '{level}' needs hidden states and the weights of the last layer.")
    if not wanted:
        raise InputError(f"No level was given. Give some of: {', '.join(known)}.")
    return [level for level in known if level in wanted]


def _as_logits(given: Any, what: str) -> Array:
    """Logits, (pairs,) for one class, else (pairs, classes)."""
    array = backend_of(given).as_array(given, what)
    if array.ndim not in (1, 2) or not array.shape[0] or not array.shape[-1]:
        raise InputError(f"The {what} have shape {tuple(array.shape)}. Give (pairs,) or (pairs, classes).")
    return array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array


def _make_run(queries: list[str], docs: list[str], scores: Array) -> Run:
    """The pairs as a run, whose lists are complete: all that was given to the reranker."""
    values: Floats = np.asarray(backend_of(scores).to_numpy(scores), dtype=np.float64)
    if len(values) != len(queries):
        raise InputError(f"There are ids of {len(queries):,} pairs, and scores of {len(values):,}. Give one for each.")
    run = Run.from_columns(queries, docs, values)
    return replace(run, complete_lists=np.ones(len(run.queries), dtype=bool))


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
