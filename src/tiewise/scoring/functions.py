"""`score`, `logit` and `head`: the last step of a model in high precision.

A model may run in bfloat16; only its last step, which turns logits or embeddings into scores, has to be computed in
float32 for most ties to disappear. `score` widens the logits and then applies the activation. `logit` leaves out the
activation, which rounds: a sigmoid orders like its logit, and a softmax like the log-odds. `head` goes back one more
step and computes the logits again from the hidden state, because the logits of a low-precision model are on a coarse
grid and already tie.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tiewise.errors import InputError
from tiewise.results.optional import need
from tiewise.scoring.backends import (
    Array,
    Backend,
    NumpyBackend,
    TorchBackend,
    backend_of,
    dtype_name,
    is_integer,
    is_low_precision,
    not_finite_error,
    scoring_backend,
)
from tiewise.scoring.collections import Collection
from tiewise.scoring.device_scorer import MIN_TILE, DeviceScorer
from tiewise.scoring.environment import ieee_arithmetic
from tiewise.scoring.host_scorer import HostScorer
from tiewise.scoring.operands import Mask
from tiewise.scoring.options import ACTIVATIONS, FUNCTIONS, as_int, check_choice, check_precision
from tiewise.scoring.quantised import Quantized
from tiewise.scoring.spans import split
from tiewise.scoring.storage import TokenVectors, VectorsLike

#: What to rank by, for a model with a last linear layer, from the least to the most that is computed again.
LEVELS = {
    "score": "the activation in float32, on the model's logits",
    "logit": "the model's logits themselves, or their difference for softmax",
    "head": "logits computed again in float32 from the last hidden state",
}

#: Hidden states in a tile of a device. They come a batch at a time, so it is small.
STATE_TILE = 256


@ieee_arithmetic()
def score(
    z: VectorsLike,
    other: VectorsLike | None = None,
    *,
    fn: str,
    positive: int = 1,
    precision: str = "float32",
    mask: Mask = None,
    other_mask: Mask = None,
) -> Array:
    """Scores in high precision, from the logits of a classifier or from two sets of embeddings.

    - ``"sigmoid"``: of every logit. ``"softmax"``: the probability of class `positive`; classes are on the last axis.
    - ``"dot"``, ``"cosine"``, ``"euclidean"`` (the negative distance, so that larger is better): all pairs of the rows
      of `z` and `other`, (n, dims) and (m, dims) to (n, m). A single vector is one row.
    - ``"maxsim"``: late interaction of token vectors, (n, tokens, dims) and (m, tokens, dims); `mask` and `other_mask`
      say which tokens count. A matrix, (tokens, dims), is one query or one document, so that two matrices give one
      score. ``"hamming"``: equal bits, of packed uint8, of bool, or of `Quantized`.

    `precision` is the type of the result; ``"native"`` reproduces the score in the low precision of the operands, for
    comparison. Tensors give tensors on their device, everything else gives NumPy arrays.

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
        return _activate(z, fn, positive, precision)
    check_choice(fn, FUNCTIONS, f"score function {fn!r}")
    if other is None:
        raise InputError(f"fn={fn!r} scores pairs: give a second operand, such as the documents' vectors.")
    z, mask, is_single = _as_rows(z, mask, fn)
    other, other_mask, other_is_single = _as_rows(other, other_mask, fn)
    scorer = Collection(other, fn=fn, precision=precision, doc_mask=other_mask).scorer(z, mask)
    scores = scorer.score_all()
    scorer.warn_of_zero_vectors()
    scores = scores[0] if is_single else scores
    return scores[..., 0] if other_is_single else scores


@ieee_arithmetic()
def logit(z: ArrayLike, *, fn: str | None = None, positive: int = 1, precision: str = "float32") -> Array:
    """What to rank by in place of an activation: it gives the same order, and adds no ties.

    For ``"sigmoid"`` the logit itself. For ``"softmax"`` the log-odds of class `positive`: its logit minus the
    logarithm of the sum of the exponentials of the others; for two classes, the difference of the two logits. Without
    `fn`, a matrix with two columns or more is taken for ``"softmax"``, and anything else for ``"sigmoid"``.

    >>> import numpy as np
    >>> logits = np.float32([18.0, 19.0, 20.0])
    >>> score(logits, fn="sigmoid"), logit(logits)
    (array([1., 1., 1.], dtype=float32), array([18., 19., 20.], dtype=float32))
    >>> logit([[1.0, 3.0], [2.0, 0.0]])
    array([ 2., -2.], dtype=float32)
    """
    if fn is None:
        shape = backend_of(z).as_array(z, "logits").shape
        fn = "softmax" if len(shape) > 1 and shape[-1] > 1 else "sigmoid"
    backend, array, wide, dtype = _read_logits(z, fn, precision)
    values = wide if fn == "sigmoid" else _log_odds(backend, wide, _check_class(array, positive))
    values = backend.cast(values, dtype)
    if not backend.all_finite(values):
        _check_finite(backend, array, "logits")
        name = dtype_name(values.dtype)
        remedy = "Scale the logits." if name == "float64" else "Use precision='float64' or scale the logits."
        raise InputError(f"The log-odds are too large for {name}. {remedy}")
    return _to_library_of(z, values)


@ieee_arithmetic()
def head(hidden: ArrayLike, weight: ArrayLike, bias: ArrayLike | None = None, *, precision: str = "float32") -> Array:
    """The logits of a model's last linear layer, computed again in high precision: hidden · weightᵀ + bias.

    `hidden` is the input of that layer, (n, width); `weight` has one row per class, (classes, width), and the result is
    (n, classes). A weight of one row, (width,), gives (n,). Equal hidden states give equal logits, to the last bit.
    Rank by `logit` of the result; for a yes/no model this is the difference of its two logits. With two classes or more
    take ``precision="float64"`` here, so that only the difference is rounded, in `logit`.

    >>> hidden, weight = [[1.0, 2.0], [0.0, 1.0]], [[1.0, 1.0], [0.5, -1.0]]
    >>> head(hidden, weight, [0.0, 1.0])
    array([[ 3. , -0.5],
           [ 1. ,  0. ]], dtype=float32)
    """
    check_precision(precision)
    backend = backend_of(hidden)
    states = backend.as_array(hidden, "hidden states")
    weights = backend.to_device(backend_of(weight).as_array(weight, "weights"))
    if states.ndim != 2 or weights.ndim not in (1, 2) or states.shape[1] != weights.shape[-1]:
        raise InputError(
            f"Hidden states of shape {tuple(states.shape)} do not match weights of shape {tuple(weights.shape)}. Give "
            "(n, width) and (classes, width)."
        )
    biases = None if bias is None else backend.to_device(backend_of(bias).as_array(bias, "biases"))
    if biases is not None and tuple(biases.shape) not in ((), (1,), tuple(weights.shape[:-1])):
        raise InputError(f"A bias of shape {tuple(biases.shape)} does not match {weights.shape[:-1]} classes.")
    matrix = weights if weights.ndim == 2 else weights[None]
    if backend.on_device:
        logits = _head_on_device(backend, states, matrix, biases, precision)
        if not backend.all_finite(logits):  # only then are the operands searched for NaN and infinity
            _check_operands(backend, states, matrix, biases)
            name = dtype_name(logits.dtype)
            remedy = "Scale the weights." if name == "float64" else "Use precision='float64'."
            raise InputError(f"The logits are too large for {name}. {remedy}")
    else:
        _check_operands(backend, states, matrix, biases)
        logits = _head_on_host(backend, states, matrix, biases, precision)
    return logits if weights.ndim == 2 else logits[:, 0]


# -- activations ------------------------------------------------------------------------------------------------------


def exp_log_softmax(z: Array, positive: int = 1) -> Array:
    """The softmax as the exponential of its logarithm, both in the type of the logits: so some model cards compute it.

    torch rounds in between as no formula says, so it computes this for arrays too. The result is a tensor.
    """
    if not isinstance(backend_of(z), TorchBackend):
        torch = need("torch", "fn='log_softmax'", "transformers")
        z = torch.from_numpy(np.asarray(z, np.float32)).to(getattr(torch, dtype_name(z.dtype)))
    backend = backend_of(z)
    _check_finite(backend, z, "logits")
    return z.log_softmax(-1)[..., _check_class(z, positive)].exp()


def _activate(z: Any, fn: str, positive: int, precision: str) -> Array:
    backend, array, wide, dtype = _read_logits(z, fn, precision)
    index = 0 if fn == "sigmoid" else _check_class(array, positive)
    source = backend_of(z)
    if precision == "native" and isinstance(source, TorchBackend):
        logits = source.as_array(z, "logits")
        # As the model itself computes it. In float32 torch's bits depend on the place in the tensor; ours do not.
        if is_low_precision(dtype_name(logits.dtype)) and source.supports_matmul(logits.dtype):
            _check_finite(source, logits, "logits")
            return _torch_activation(source, logits, fn, index)
    if isinstance(backend, TorchBackend):  # one or two steps: on a device, each costs as much as a layer of a model
        values = _torch_activation(backend, wide, fn, index)
    else:  # a softmax is the sigmoid of the log-odds
        values = _sigmoid(wide if fn == "sigmoid" else _log_odds(backend, wide, index))
    values = backend.cast(values, dtype)
    _check_finite(backend, array, "logits")  # last, because it waits for a device
    values = _to_library_of(z, values)
    return source.cast(values, source.as_array(z, "logits").dtype) if precision == "native" else values


def _torch_activation(backend: TorchBackend, logits: Array, fn: str, index: int) -> Array:
    torch = backend.torch
    return torch.sigmoid(logits) if fn == "sigmoid" else torch.softmax(logits, -1)[..., index]


def _read_logits(z: Any, fn: str, precision: str) -> tuple[Backend, Array, Array, Any]:
    """The backend, the logits as given and in float64, and the type of the result.

    In main memory NumPy computes for tensors too: its loops give equal inputs equal bits, whatever their position.
    Whether the logits are finite is checked later.
    """
    if fn not in ACTIVATIONS:
        raise InputError(f"fn={fn!r} is not a function of logits. Use one of: {', '.join(ACTIVATIONS)}.")
    check_precision(precision)
    source = backend_of(z)
    backend = scoring_backend(source)
    given = source.as_array(z, "logits")
    name = dtype_name(given.dtype)
    if is_integer(name):
        raise InputError(f"The logits are integers ({name}). Give the model's floating-point logits.")
    array = backend.as_array(given, "logits")
    wide = backend.cast(array, backend.dtype("float64"))
    wide = wide if isinstance(backend, TorchBackend) else np.ascontiguousarray(wide).reshape(array.shape)
    return backend, array, wide, array.dtype if precision == "native" else backend.dtype(precision)


def _to_library_of(z: Any, values: Array) -> Array:
    """What NumPy computed for a tensor, as a tensor."""
    source = backend_of(z)
    if not isinstance(source, TorchBackend) or source.on_device:
        return values
    return source.torch.from_numpy(np.asarray(values))


def _check_class(array: Array, positive: int) -> int:
    classes = array.shape[-1] if array.ndim else 0
    if classes < 2:
        raise InputError(
            f"Softmax needs two classes or more, but logits of shape {tuple(array.shape)} have one. Use fn='sigmoid'."
        )
    return require_class(positive, classes)


def require_class(positive: Any, classes: int) -> int:
    """The index of a class, or an error."""
    index = as_int(positive)
    if index is None or not 0 <= index < classes:
        raise InputError(f"positive must be the index of a class, 0 to {classes - 1}, not {positive!r}.")
    return index


def _log_odds(backend: Backend, wide: Array, positive: int) -> Array:
    """The logit of a class minus log Σ exp of the others."""
    if wide.shape[-1] == 2:
        return wide[..., positive] - wide[..., 1 - positive]
    others = backend.xp.concatenate([wide[..., :positive], wide[..., positive + 1 :]], -1)
    top = backend.xp.amax(others, -1)
    return wide[..., positive] - (top + backend.xp.log(backend.xp.exp(others - top[..., None]).sum(-1)))


def _sigmoid(x: Any) -> Any:
    """1 / (1 + exp(−x)), without overflow on either side."""
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + small), small / (1 + small))


def _check_finite(backend: Backend, array: Array, what: str) -> None:
    if not backend.all_finite(array):
        raise not_finite_error(what, backend.rows_not_finite(array))


# -- the last layer ---------------------------------------------------------------------------------------------------


def _check_operands(backend: Backend, states: Array, weights: Array, biases: Array | None) -> None:
    for array, what in ((states, "hidden states"), (weights, "weights"), (biases, "biases")):
        if array is not None:
            _check_finite(backend, array, what)


def _head_on_host(backend: Backend, states: Array, weights: Array, biases: Array | None, precision: str) -> Array:
    """float32(S(w, h) + b) for all hidden states h and classes w."""
    if precision == "native" and is_integer(dtype_name(states.dtype)):
        precision = "float32"  # a bias need not be an integer
    scorer = Collection(states, precision=precision).scorer(weights)
    assert isinstance(scorer, HostScorer)
    scorer.result_name = "logits"
    bias = None if biases is None else np.asarray(NumpyBackend().as_array(biases, "biases"), dtype=np.float64)
    logits = scorer.score_all(None if bias is None else np.broadcast_to(bias.reshape(-1), len(weights)))
    return np.ascontiguousarray(logits.T) if isinstance(logits, np.ndarray) else logits.T.contiguous()


def _head_on_device(backend: Any, states: Array, weights: Array, biases: Array | None, precision: str) -> Array:
    """The same by products of the device, in tiles of one shape, so that equal states stay equal everywhere."""
    low = precision == "native" and is_low_precision(dtype_name(states.dtype)) and states.dtype == weights.dtype
    if low and backend.supports_matmul(states.dtype):  # as the model itself computes it
        return backend.torch.nn.functional.linear(states, weights, None if biases is None else biases.to(states.dtype))
    logits = _multiply_tiles(backend, states, weights, "float32" if low else precision)
    logits = logits if biases is None else logits + backend.cast(biases, logits.dtype)
    return backend.cast(logits, states.dtype) if low else logits


def _multiply_tiles(backend: Any, states: Array, weights: Array, precision: str) -> Array:
    names = dtype_name(states.dtype), dtype_name(weights.dtype)
    if precision != "float32" or states.shape[1] % 16 or not backend.has_float32_output(*names):
        at_once = max(len(weights), MIN_TILE)
        scorer = Collection(states, precision=precision).scorer(weights, queries_at_once=at_once, doc_tile=STATE_TILE)
        assert isinstance(scorer, DeviceScorer)
        return scorer.scores(scorer.query_tiles(slice(0, len(weights))), slice(0, len(states))).T
    n = states.shape[0]
    if 0 < n <= STATE_TILE:
        return _multiply_tile(backend, states, weights)
    spans = split(slice(0, max(n, 1)), STATE_TILE)
    return backend.xp.concatenate([_multiply_tile(backend, states[span], weights) for span in spans])


def _multiply_tile(backend: Any, states: Array, weights: Array) -> Array:
    """The product of states in a full tile. The rows behind them do not matter: no row of a product depends on them."""
    n = len(states)
    if n == STATE_TILE and states.is_contiguous() and states.data_ptr() % 16 == 0:
        return backend.product(states, weights)
    tile = backend.empty((STATE_TILE, states.shape[1]), states.dtype)
    tile[:n] = states
    return backend.product(tile, weights)[:n]


# -- pairs ------------------------------------------------------------------------------------------------------------


def _as_rows(given: Any, mask: Mask, fn: str) -> tuple[Any, Any, bool]:
    """Rows and their mask from an operand, and whether it was a single row."""
    if isinstance(given, (Quantized, TokenVectors)):
        return given, mask, False
    array = backend_of(given).as_array(given, "vectors")
    if array.ndim != (2 if fn == "maxsim" else 1):
        return array, mask, False
    return array[None], None if mask is None else backend_of(mask).as_array(mask, "mask")[None], True
