"""`head`: the logits of a model's last linear layer, computed again in high precision."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tiewise.errors import InputError
from tiewise.scoring.backends import (
    Array,
    Backend,
    NumpyBackend,
    backend_of,
    check_finite,
    is_integer,
    is_low_precision,
)
from tiewise.scoring.blocks import split
from tiewise.scoring.device_scorer import MIN_TILE, DeviceScorer
from tiewise.scoring.environment import ieee_arithmetic
from tiewise.scoring.host_scorer import HostScorer
from tiewise.scoring.options import check_precision
from tiewise.scoring.scorers import make_scorer

__all__ = ["head"]

#: Hidden states in a tile. They come a batch at a time, so it is small.
STATE_TILE = 256


@ieee_arithmetic()
def head(hidden: ArrayLike, weight: ArrayLike, bias: ArrayLike | None = None, *, precision: str = "float32") -> Array:
    """The logits of a model's last linear layer, computed again in high precision: hidden · weightᵀ + bias.

    `hidden` is the input of that layer, (n, width); `weight` has one row per class, (classes, width), and the result is
    (n, classes). A weight of one row, (width,), gives (n,). Equal hidden states give equal logits, to the last bit.
    Rank by `logit` of the result; for a yes/no model this is the difference of its two logits.

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
            name = backend.dtype_name(logits.dtype)
            remedy = "Scale the weights." if name == "float64" else "Use precision='float64'."
            raise InputError(f"The logits are too large for {name}. {remedy}")
    else:
        _check_operands(backend, states, matrix, biases)
        logits = _head_on_host(backend, states, matrix, biases, precision)
    return logits if weights.ndim == 2 else logits[:, 0]


def _check_operands(backend: Backend, states: Array, weights: Array, biases: Array | None) -> None:
    check_finite(backend, states, "hidden states")
    check_finite(backend, weights, "weights")
    if biases is not None:
        check_finite(backend, biases, "biases")


def _head_on_host(backend: Backend, states: Array, weights: Array, biases: Array | None, precision: str) -> Array:
    """float32(S(w, h) + b) for all hidden states h and classes w."""
    if precision == "native" and is_integer(backend.dtype_name(states.dtype)):
        precision = "float32"  # a bias need not be an integer
    scorer = make_scorer(weights, states, precision=precision)
    assert isinstance(scorer, HostScorer)
    scorer.result_name = "logits"
    bias = None if biases is None else np.asarray(NumpyBackend().as_array(biases, "biases"), dtype=np.float64)
    logits = scorer.score_all(None if bias is None else np.broadcast_to(bias.reshape(-1), len(weights)))
    return backend.xp.ascontiguousarray(logits.T) if isinstance(logits, np.ndarray) else logits.T.contiguous()


def _head_on_device(backend: Any, states: Array, weights: Array, biases: Array | None, precision: str) -> Array:
    """The same by products of the device, in tiles of one shape, so that equal states stay equal everywhere."""
    low = precision == "native" and is_low_precision(backend.dtype_name(states.dtype)) and states.dtype == weights.dtype
    if low and backend.supports_matmul(states.dtype):  # as the model itself computes it
        return backend.torch.nn.functional.linear(states, weights, None if biases is None else biases.to(states.dtype))
    logits = _multiply_tiles(backend, states, weights, "float32" if low else precision)
    logits = logits if biases is None else logits + backend.cast(biases, logits.dtype)
    return backend.cast(logits, states.dtype) if low else logits


def _multiply_tiles(backend: Any, states: Array, weights: Array, precision: str) -> Array:
    names = backend.dtype_name(states.dtype), backend.dtype_name(weights.dtype)
    if precision != "float32" or states.shape[1] % 16 or not backend.has_float32_output(*names):
        at_once = max(len(weights), MIN_TILE)
        scorer = make_scorer(weights, states, precision=precision, queries_at_once=at_once, doc_tile=STATE_TILE)
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
