"""Options that several functions share, and their checks."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, overload

import numpy as np

from tiewise.errors import InputError

#: Functions of logits, functions of a query and a document, and all of them.
ACTIVATIONS = ("sigmoid", "softmax")
PAIR_FUNCTIONS = ("dot", "cosine", "euclidean", "maxsim", "hamming")
FUNCTIONS = (*ACTIVATIONS, *PAIR_FUNCTIONS)

HIGH_PRECISIONS = ("float32", "float64")
PRECISIONS = (*HIGH_PRECISIONS, "native")

#: The types to which scores can be rounded; float8 is e4m3.
SCORE_DTYPES = ("float16", "bfloat16", "float8")


def check_choice(value: Any, choices: Sequence[str], what: str) -> None:
    """Raise if the value of an option is not one of its choices; `what` names both in the message."""
    if value not in choices:
        raise InputError(f"Unknown {what}. Use one of: {', '.join(choices)}.")


def check_pair_function(fn: str) -> None:
    """Raise if `fn` is not a function of a query and a document."""
    check_choice(fn, PAIR_FUNCTIONS, f"score function {fn!r} of two operands")


def check_precision(precision: str) -> None:
    """Raise if there is no such precision."""
    check_choice(precision, PRECISIONS, f"precision {precision!r}")


def as_int(value: Any) -> int | None:
    """An integer of Python or NumPy; None for anything else, including bool.

    >>> as_int(np.int64(3)), as_int(3.0), as_int(True)
    (3, None, None)
    """
    if isinstance(value, (bool, np.bool_)):
        return None
    try:
        return operator.index(value)
    except TypeError:
        return None


@overload
def require_int(value: Any, name: str, minimum: int = ..., *, optional: bool) -> int | None: ...
@overload
def require_int(value: Any, name: str, minimum: int = ...) -> int: ...
def require_int(value: Any, name: str, minimum: int = 1, *, optional: bool = False) -> int | None:
    """The value of an option as an integer, or an error that names the option; `optional` allows None.

    >>> require_int(0, "k")
    Traceback (most recent call last):
    tiewise.errors.InputError: k must be an integer of at least 1, not 0.
    """
    if value is None and optional:
        return None
    number = as_int(value)
    if number is None or number < minimum:
        allowed = f"{'None or ' if optional else ''}an integer of at least {minimum}"
        raise InputError(f"{name} must be {allowed}, not {value!r}.")
    return number
