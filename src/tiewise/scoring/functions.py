"""`score`, `logit` and `head`: the last step of a model in high precision, at three levels.

A model may run in bfloat16; only its last step, which turns logits or embeddings into scores, has to be computed in
float32 for most ties to vanish. `score` widens the logits and then applies the activation. `logit` leaves the
activation away, which rounds: a sigmoid orders like its logit, and a softmax like the log-odds. `head` goes one step
further back and computes the logits themselves again, from the hidden state, because a low-precision model's logits lie
on a coarse grid and tie already.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tiewise.errors import InputError
from tiewise.scoring.arrays import (
    Array,
    Library,
    Numpy,
    Torch,
    is_integer,
    is_low,
    library_of,
    such_rows,
    whole,
)
from tiewise.scoring.blocks import Blocks
from tiewise.scoring.device import LEAST_TILE, DeviceScores
from tiewise.scoring.environment import unaffected_by_settings
from tiewise.scoring.host import HostScores
from tiewise.scoring.pairwise import PAIRWISE, pair_scores, warn_of_zero_vectors
from tiewise.scoring.precisions import check_precision
from tiewise.scoring.quantised import Quantized

__all__ = ["ACTIVATIONS", "FUNCTIONS", "LEVELS", "head", "logit", "score"]

#: What to rank a model with a last linear layer by, from the least to the most that is computed again.
LEVELS = {
    "score": "the activation in float32, on the model's logits",
    "logit": "the model's logits themselves, or their difference for softmax",
    "head": "logits computed again in float32 from the last hidden state",
}

#: The functions of logits, and all of them.
ACTIVATIONS = ("sigmoid", "softmax")
FUNCTIONS = (*ACTIVATIONS, *PAIRWISE)

#: Hidden states in a tile of `head`: they come a batch at a time.
HEAD_TILE = 256


@unaffected_by_settings
def score(
    z: Any,
    other: Any = None,
    *,
    fn: str,
    positive: int = 1,
    precision: str = "float32",
    mask: Any = None,
    other_mask: Any = None,
) -> Array:
    """Scores in high precision, from the logits of a classifier or from two sets of embeddings.

    - ``"sigmoid"``: of every logit. ``"softmax"``: the probability of class `positive`, classes along the last axis.
    - ``"dot"``, ``"cosine"``, ``"euclidean"`` (the distance with a minus sign, so that larger is better): all pairs of
      the rows of `z` and `other`, (n, dims) and (m, dims) to (n, m). One vector may stand for one row.
    - ``"maxsim"``: late interaction of token vectors, (n, tokens, dims) and (m, tokens, dims), with `mask` and
      `other_mask` to say which tokens count. A matrix, (tokens, dims), is one query or one document, so that two
      matrices give one score. ``"hamming"``: equal bits, of packed uint8, of bool, or of `Quantized`.

    `precision` is the type of the result; ``"native"`` reproduces the score in the operands' own low precision, for
    comparison. Tensors give tensors on their device, anything else NumPy arrays.

    >>> import numpy as np
    >>> score(np.float16([8.0, 8.25, 12.0]), fn="sigmoid", precision="native")
    array([0.9995, 0.9995, 1.    ], dtype=float16)
    >>> score(np.float16([8.0, 8.25, 12.0]), fn="sigmoid").round(5)
    array([0.99966, 0.99974, 0.99999], dtype=float32)
    >>> score([[1.0, 3.0], [2.0, 0.0]], fn="softmax").round(3)
    array([0.881, 0.119], dtype=float32)
    >>> score([[1.0, 2.0]], [[3.0, 4.0], [0.5, 0.0]], fn="dot")
    array([[11. ,  0.5]], dtype=float32)
    """
    if fn in ACTIVATIONS:
        if other is not None or mask is not None or other_mask is not None:
            raise InputError(f"fn={fn!r} is a function of logits: it takes one operand and no mask.")
        return _activated(z, fn, positive, precision)
    if fn not in PAIRWISE:
        raise InputError(f"Unknown score function {fn!r}. Use one of: {', '.join(FUNCTIONS)}.")
    if other is None:
        raise InputError(f"fn={fn!r} scores pairs: give a second operand, such as the documents' vectors.")
    z, one = _rows(z, fn)
    other, another = _rows(other, fn)
    pairs = pair_scores(
        z,
        other,
        fn=fn,
        precision=precision,
        query_mask=_row_of(mask) if one else mask,
        doc_mask=_row_of(other_mask) if another else other_mask,
    )
    if isinstance(pairs, DeviceScores):
        found = pairs.all()
        if precision == "native":
            found = pairs.lib.cast(found, pairs.types.native_type(pairs.queries, pairs.lib))
    else:
        found = _as_given(_all_on_host(pairs), pairs, precision)
    warn_of_zero_vectors(pairs)
    found = found[0] if one else found
    return found[..., 0] if another else found


def _all_on_host(pairs: HostScores) -> Any:
    """The scores of all queries against all documents."""
    found = np.empty((pairs.queries.n, pairs.docs.n), pairs.types.result)
    blocks = Blocks(pairs, pairs.queries.n)
    queries = [pairs.query_rows(rows) for rows in blocks.queries]
    for span in blocks.docs:
        docs = pairs.doc_rows(span)
        for rows, mine in zip(blocks.queries, queries, strict=True):
            found[rows, span] = pairs.matrix(mine, docs)
    return found


def _as_given(found: Any, pairs: HostScores, precision: str) -> Array:
    """Scores in the library of the queries, in the type of the precision."""
    lib = pairs.queries.lib
    if isinstance(lib, Torch):
        found = lib.torch.from_numpy(found)
    return lib.cast(found, pairs.types.native_type(pairs.queries, lib)) if precision == "native" else found


@unaffected_by_settings
def logit(z: Any, *, fn: str | None = None, positive: int = 1, precision: str = "float32") -> Array:
    """What to rank by in the place of an activation: it gives the same order, and no ties of its own.

    For ``"sigmoid"`` the logit itself. For ``"softmax"`` the log-odds of class `positive`: its logit less the logarithm
    of the sum of the exponentials of the others, which for two classes is the difference of the two logits. Without
    `fn`, a matrix with two columns or more has classes and is taken for ``"softmax"``, and anything else for
    ``"sigmoid"``.

    >>> import numpy as np
    >>> logits = np.float32([18.0, 19.0, 20.0])
    >>> score(logits, fn="sigmoid"), logit(logits)
    (array([1., 1., 1.], dtype=float32), array([18., 19., 20.], dtype=float32))
    >>> logit([[1.0, 3.0], [2.0, 0.0]])
    array([ 2., -2.], dtype=float32)
    """
    if fn is None:
        shape = library_of(z).array(z, "logits").shape
        fn = "softmax" if len(shape) > 1 and shape[-1] > 1 else "sigmoid"
    lib, array, wide, result = _logits(z, fn, precision)
    found = lib.cast(wide if fn == "sigmoid" else _log_odds(lib, wide, _class(array, positive)), result)
    if not lib.finite(found):
        _check_finite(lib, array, "logits")
        name = lib.name(found.dtype)
        remedy = "Scale the logits." if name == "float64" else "Use precision='float64' or scale the logits."
        raise InputError(f"The log-odds are too large for {name}. {remedy}")
    return _as_tensor(z, found)


@unaffected_by_settings
def head(hidden: Any, weight: Any, bias: Any = None, *, precision: str = "float32") -> Array:
    """The logits of a model's last linear layer, computed again in high precision: hidden · weightᵀ + bias.

    `hidden` is what that layer was given, (n, width); `weight` has a row for each class, (classes, width), and the
    result is (n, classes). A weight of one row, (width,), gives (n,). Equal hidden states give equal logits, to the
    last bit. Rank by `logit` of the result, which for a yes/no model is the difference of its two logits.

    >>> hidden, weight = [[1.0, 2.0], [0.0, 1.0]], [[1.0, 1.0], [0.5, -1.0]]
    >>> head(hidden, weight, [0.0, 1.0])
    array([[ 3. , -0.5],
           [ 1. ,  0. ]], dtype=float32)
    """
    check_precision(precision)
    lib = library_of(hidden)
    states, rows = lib.array(hidden, "hidden states"), lib.here(library_of(weight).array(weight, "weights"))
    if states.ndim != 2 or rows.ndim not in (1, 2) or states.shape[1] != rows.shape[-1]:
        raise InputError(
            f"Hidden states of shape {tuple(states.shape)} do not go with weights of shape {tuple(rows.shape)}. Give "
            "(n, width) and (classes, width)."
        )
    add = None if bias is None else lib.here(library_of(bias).array(bias, "biases"))
    if add is not None and tuple(add.shape) not in ((), (1,), tuple(rows.shape[:-1])):
        raise InputError(f"A bias of shape {tuple(add.shape)} does not go with {rows.shape[:-1]} classes.")
    matrix = rows if rows.ndim == 2 else rows[None]
    layer = lib, states, matrix, add, precision
    if lib.on_device:
        found = _last_layer_on_device(*layer)
        if not lib.finite(found):  # what is no number makes none; only then is it looked for
            _check_layer(*layer[:-1])
            name = lib.name(found.dtype)
            remedy = "Scale the weights." if name == "float64" else "Use precision='float64'."
            raise InputError(f"The logits are too large for {name}. {remedy}")
    else:
        _check_layer(*layer[:-1])
        found = _last_layer_on_host(*layer)
    return found if rows.ndim == 2 else found[:, 0]


def _check_layer(lib: Library, states: Array, weight: Array, bias: Array | None) -> None:
    for given, what in ((states, "hidden states"), (weight, "weights"), (bias, "biases")):
        if given is not None:
            _check_finite(lib, given, what)


def _last_layer_on_host(lib: Library, states: Array, weight: Array, bias: Array | None, precision: str) -> Array:
    """float32(S(w, h) + b) for all hidden states h and classes w."""
    if precision == "native" and is_integer(lib.name(states.dtype)):
        precision = "float32"  # there may be a bias
    pairs = pair_scores(weight, states, precision=precision)
    assert isinstance(pairs, HostScores)
    pairs.what = "logits"
    add = None if bias is None else np.asarray(Numpy().array(bias, "biases"), dtype=np.float64).reshape(-1, 1)
    found = np.empty((states.shape[0], weight.shape[0]), pairs.types.result)
    classes = pairs.query_rows(slice(0, weight.shape[0]))
    for span in Blocks(pairs, weight.shape[0]).docs:
        found[span] = pairs.matrix(classes, pairs.doc_rows(span), add).T
    return _as_given(found, pairs, precision)


def _last_layer_on_device(lib: Any, states: Array, weight: Array, bias: Array | None, precision: str) -> Array:
    """The same by products of the device, in tiles of one shape, so that equal states stay equal in every place."""
    low = precision == "native" and is_low(lib.name(states.dtype)) and states.dtype == weight.dtype
    if low and lib.multiplies(states.dtype):  # whatever the device does, bias included
        return lib.torch.nn.functional.linear(states, weight, None if bias is None else bias.to(states.dtype))
    found = _tiles_of_layer(lib, states, weight, "float32" if low else precision)
    found = found if bias is None else found + lib.cast(bias, found.dtype)
    return lib.cast(found, states.dtype) if low else found


def _tiles_of_layer(lib: Any, states: Array, weight: Array, precision: str) -> Array:
    names = lib.name(states.dtype), lib.name(weight.dtype)
    if precision != "float32" or states.shape[1] % 16 or not lib.fuses(*names):
        pairs = pair_scores(
            weight, states, precision=precision, at_once=max(len(weight), LEAST_TILE), doc_tile=HEAD_TILE
        )
        assert isinstance(pairs, DeviceScores)
        return pairs.scores(pairs.left(slice(0, len(weight))), slice(0, len(states))).T
    n = states.shape[0]
    if 0 < n <= HEAD_TILE:
        return _tile_of_layer(lib, states, weight, n)
    spans = [slice(at, min(at + HEAD_TILE, n)) for at in range(0, max(n, 1), HEAD_TILE)]
    return lib.joined([_tile_of_layer(lib, states[span], weight, span.stop - span.start) for span in spans])


def _tile_of_layer(lib: Any, states: Array, weight: Array, n: int) -> Array:
    """The product of n states, made in a tile; whatever stands behind them, a row of a product depends on no other."""
    if n == HEAD_TILE and states.is_contiguous() and states.data_ptr() % 16 == 0:
        return lib.product(states, weight)
    tile = lib.empty((HEAD_TILE, states.shape[1]), states.dtype)
    tile[:n] = states
    return lib.product(tile, weight)[:n]


def _activated(z: Any, fn: str, positive: int, precision: str) -> Array:
    lib, array, wide, result = _logits(z, fn, precision)
    place = 0 if fn == "sigmoid" else _class(array, positive)
    own = library_of(z)
    if precision == "native" and isinstance(own, Torch) and own.multiplies(own.array(z, "logits").dtype):
        mine = own.array(z, "logits")  # what the model itself would do
        _check_finite(own, mine, "logits")
        return own.xp.sigmoid(mine) if fn == "sigmoid" else own.xp.softmax(mine, -1)[..., place]
    if isinstance(lib, Torch):  # a step or two: on a device each costs as much as a model's layer
        found = lib.xp.sigmoid(wide) if fn == "sigmoid" else lib.xp.softmax(wide, -1)[..., place]
    else:
        found = _sigmoid(wide if fn == "sigmoid" else _log_odds(lib, wide, place))  # a softmax is one of the log-odds
    found = lib.cast(found, result)
    _check_finite(lib, array, "logits")  # last: it waits for a device
    found = _as_tensor(z, found)
    return own.cast(found, own.array(z, "logits").dtype) if precision == "native" else found


def _logits(z: Any, fn: str, precision: str) -> tuple[Library, Array, Array, Any]:
    """Logits as given and in float64, and the type of the result; whether they are finite is still to be checked.

    In main memory NumPy computes for tensors too: its loops give equal inputs equal bits wherever they stand.
    """
    if fn not in ACTIVATIONS:
        raise InputError(f"fn={fn!r} is no function of logits. Use one of: {', '.join(ACTIVATIONS)}.")
    check_precision(precision)
    own = library_of(z)
    lib = own if own.on_device else Numpy()
    given = own.array(z, "logits")
    name = own.name(given.dtype)
    if is_integer(name):
        raise InputError(f"The logits are whole numbers ({name}). Give the model's floating-point logits.")
    array = lib.array(given, "logits")
    wide = lib.cast(array, lib.dtype("float64"))
    wide = wide if isinstance(lib, Torch) else np.ascontiguousarray(wide).reshape(array.shape)
    return lib, array, wide, array.dtype if precision == "native" else lib.dtype(precision)


def _as_tensor(z: Any, found: Array) -> Array:
    """What NumPy computed for a tensor, as a tensor."""
    lib = library_of(z)
    if not isinstance(lib, Torch) or lib.on_device:
        return found
    return lib.torch.from_numpy(np.asarray(found))


def _class(array: Array, positive: int) -> int:
    classes = array.shape[-1] if array.ndim else 0
    if classes < 2:
        raise InputError(
            f"Softmax is over two classes or more; logits of shape {tuple(array.shape)} have one. Use fn='sigmoid'."
        )
    place = whole(positive)
    if place is None or not 0 <= place < classes:
        raise InputError(f"positive is the place of a class among {classes}, from 0 on, not {positive!r}.")
    return place


def _log_odds(lib: Library, wide: Array, positive: int) -> Array:
    """The logit of a class less log Σ exp of the others; what is not finite is found later."""
    if wide.shape[-1] == 2:
        return wide[..., positive] - wide[..., 1 - positive]
    others = lib.joined([wide[..., :positive], wide[..., positive + 1 :]], -1)
    top = lib.xp.amax(others, -1)
    return wide[..., positive] - (top + lib.xp.log(lib.xp.exp(others - top[..., None]).sum(-1)))


def _sigmoid(x: Any) -> Any:
    """1 / (1 + exp(−x)), without overflow on either side."""
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + small), small / (1 + small))


def _check_finite(lib: Library, array: Array, what: str) -> None:
    if lib.finite(array):
        return
    wide = lib.cast(array, lib.dtype("float64"))
    bad = lib.host(~lib.xp.isfinite(wide.reshape(wide.shape[0] if wide.ndim else 1, -1)).all(1)).nonzero()[0]
    raise InputError(f"Row {int(bad[0])} of the {what} holds NaN or infinity ({such_rows(len(bad))}).")


def _rows(given: Any, fn: str) -> tuple[Any, bool]:
    """Rows from an operand, and whether it was a single one."""
    if isinstance(given, Quantized):
        return given, False
    array = library_of(given).array(given, "vectors")
    single = array.ndim == (2 if fn == "maxsim" else 1)
    return (array[None] if single else array), single


def _row_of(mask: Any) -> Any:
    """The mask of a single operand as a row."""
    return None if mask is None else library_of(mask).array(mask, "mask")[None]
