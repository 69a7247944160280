"""`logits`: the last step of a reranker computed in several ways, from saved logits or hidden states, as rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from tiewise.analysis.protocols import Row
from tiewise.data.columns import Floats, identifiers
from tiewise.data.runs import Run
from tiewise.errors import InputError
from tiewise.results.wording import spell_option
from tiewise.scoring.backends import Array, backend_of, dtype_name, is_low_precision
from tiewise.scoring.functions import LEVELS as COMPUTED
from tiewise.scoring.functions import exp_log_softmax, head, logit, require_class, score
from tiewise.scoring.judgments import IdsLike

#: The model's own scores, and the levels of `tiewise.scoring`: what is computed again increases.
LEVELS = ("native", *COMPUTED)
#: How a model makes a score of its logits.
FUNCTIONS = ("sigmoid", "softmax", "log_softmax", "identity")
#: The row of the model in float32.
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
    fn: str | None = None,
    positive: int | None = None,
    levels: Iterable[str] | None = None,
) -> dict[str, Row]:
    """The rows of ways to compute the scores of a reranker from what was saved of it, for `protocol`: name → row.

    - `queries`, `docs`: the query and the document of each pair.
    - `logits`: the model's own, (pairs,) or (pairs, classes), in its type X.
    - `fn`: how the model makes a score of them: ``"sigmoid"``, the default for one class; ``"softmax"``, that for
      several; ``"log_softmax"``, whose exponential is the score, as in the code of Qwen3-Reranker; ``"identity"``, if
      the logit is the score. `positive`: which of several classes means relevant; by default 1, the second.
    - `hidden`, `weight`, `bias`: the input of the last layer, (pairs, width), and its parameters, as `scoring.head`
      takes them. Without `logits`, these are computed from them in the type of the hidden states.
    - `reference`: the logits of the same pairs from the model in float32; the first row, ``float32``, is their score.
    - `levels`: ``"native"`` (the score in the type of the logits, as the model itself computes it; the row ``X``),
      ``"score"`` (in float32: ``X + hps``), ``"logit"`` (no activation: ``X + logit``) and ``"head"`` (the last layer
      in float32: ``X + head``); by default all that are possible. Logits in float64 are scored in float64.

    `rows.model` makes the same rows, of the logits and hidden states that it saves.

    >>> import numpy as np
    >>> rows = logits(["q", "q"], ["a", "b"], logits=np.float16([8.0, 8.25]))
    >>> {name: row.run.tied_share for name, row in rows.items()}
    {'float16': 1.0, 'float16 + hps': 0.0, 'float16 + logit': 0.0}
    """
    ids = _resolve_ids(queries, docs)
    scores = _score_levels(logits, hidden, weight, bias, reference, fn, positive)
    name, first = scores.pop("type"), scores.pop(FLOAT32, None)
    possible = [level for level in LEVELS if level in scores]
    chosen = {name_row(name, level): scores[level] for level in resolve_levels(levels, possible)}
    if first is not None:
        if FLOAT32 in chosen:
            raise InputError("The logits are in float32 as the reference is. Leave out one of them.")
        chosen = {FLOAT32: first, **chosen}
    return {name: Row(_make_run(*ids, compute())) for name, compute in chosen.items()}


def _score_levels(
    logits: Any, hidden: Any, weight: Any, bias: Any, reference: Any, fn: str | None, positive: int | None
) -> dict[str, Any]:
    """The type of the logits, and by level a function that computes the scores of all pairs."""
    if (hidden is None) != (weight is None):
        raise InputError("The last layer needs hidden and weight. Give both, or neither.")
    if bias is not None and weight is None:
        raise InputError("There is a bias without hidden and weight. Give all three, or no bias.")
    if logits is None and hidden is None:
        raise InputError("There is nothing to score. Give logits, or hidden and weight.")
    again = None
    if hidden is not None:
        again = _as_logits(head(hidden, weight, bias, precision="float64"), "logits of the last layer")
        if logits is None:
            logits = head(hidden, weight, bias, precision="native")
    own = _as_logits(logits, "logits")
    if again is not None and own.shape != again.shape:
        shapes = f"shape {tuple(own.shape)}, and those of the last layer {tuple(again.shape)}"
        raise InputError(f"The logits have {shapes}. They must agree.")
    if own.ndim == 1 and positive is not None:
        raise InputError(
            f"positive (--positive) is {positive!r}: it chooses among several logits, but there is one a pair. Omit it."
        )
    first = None if reference is None else _check_reference(_as_logits(reference, "reference"), own)
    fn, index = _resolve_function(fn, own.ndim), 1 if positive is None else positive
    if own.ndim == 2 and fn in ("sigmoid", "identity"):  # classes that do not compete
        index = require_class(index, own.shape[1])
        own, again, first = (None if one is None else one[:, index] for one in (own, again, first))
    found: dict[str, Any] = {
        "type": dtype_name(own.dtype),
        "native": partial(_score_native, own, fn, index),
        "score": partial(_score, own, fn, index),
        "logit": partial(_score, own, fn, index, activate=False),
    }
    if again is not None:
        found["head"] = partial(_score, again, fn, index, activate=False, precision=_precision_of(own))
    if first is not None:
        found[FLOAT32] = partial(_score, first, fn, index)
    return found


def _resolve_function(fn: str | None, ndim: int) -> str:
    """How scores are made of logits."""
    if fn is None:
        return "sigmoid" if ndim == 1 else "softmax"
    if fn not in FUNCTIONS:
        raise InputError(f"{spell_option('fn', fn)} is not possible here. Use one of: {', '.join(FUNCTIONS)}.")
    if ndim == 1 and "softmax" in fn:
        raise InputError(f"{spell_option('fn', fn)} needs two logits a pair or more, and there is one.")
    return fn


def _score_native(own: Array, fn: str, positive: int) -> Array:
    """The scores as a model computes them, in the type of its logits."""
    if fn == "identity":
        return own
    if fn == "log_softmax" and is_low_precision(dtype_name(own.dtype)):
        return exp_log_softmax(own, positive)
    return score(own, fn=fn.removeprefix("log_"), positive=positive, precision="native")


def _score(own: Array, fn: str, positive: int, *, activate: bool = True, precision: str | None = None) -> Array:
    """The scores in high precision, with or without the activation."""
    compute = score if activate and fn != "identity" else logit
    kind = "sigmoid" if fn == "identity" else fn.removeprefix("log_")
    return compute(own, fn=kind, positive=positive, precision=precision or _precision_of(own))


def _precision_of(logits: Array) -> str:
    """High precision is float32, unless logits have more: they must not tie more than they do."""
    return "float64" if dtype_name(logits.dtype) == "float64" else "float32"


def _check_reference(reference: Array, own: Array) -> Array:
    """The logits of the model in float32."""
    if reference.shape != own.shape:
        shapes = f"shape {tuple(reference.shape)}, and the logits {tuple(own.shape)}"
        raise InputError(f"The reference has {shapes}. Give the logits of the same pairs and classes.")
    if dtype_name(reference.dtype) not in ("float32", "float64"):
        raise InputError(f"The reference has the type {dtype_name(reference.dtype)}. Give logits in float32.")
    return reference


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


def name_row(dtype: str, level: str) -> str:
    """The name of the row of a model in a type, at a level.

    >>> name_row("bfloat16", "native"), name_row("bfloat16", "score"), name_row("bfloat16", "head")
    ('bfloat16', 'bfloat16 + hps', 'bfloat16 + head')
    """
    return dtype if level == "native" else f"{dtype} + {'hps' if level == 'score' else level}"


def resolve_levels(levels: str | Iterable[str] | None, possible: Sequence[str] = LEVELS) -> tuple[str, ...]:
    """The levels that were asked for, in the order of `LEVELS`; None means all that are possible."""
    wanted = possible if levels is None else [levels] if isinstance(levels, str) else list(levels)
    for level in wanted:
        if level not in LEVELS:
            raise InputError(f"Unknown level {level!r}. Use some of: {', '.join(LEVELS)}.")
        if level not in possible:
            raise InputError(f"The level '{level}' needs hidden states and the weights of the last layer.")
    if not wanted:
        raise InputError(f"No level was given. Give some of: {', '.join(possible)}.")
    return tuple(level for level in possible if level in wanted)
