"""Progress callbacks of long computations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tiewise.errors import InputError

#: Called with the amount of work done and the total amount.
Progress = Callable[[int, int], None]


def check_progress(progress: Any) -> Progress:
    """The callback, or for None one that does nothing; an error if it is not a function.

    >>> check_progress(print) is print, check_progress(None)(1, 2)
    (True, None)
    >>> check_progress(True)
    Traceback (most recent call last):
    tiewise.errors.InputError: progress is a function that is called with (done, total), or None, not True.
    """
    if progress is None:
        return lambda done, total: None
    if not callable(progress):
        raise InputError(f"progress is a function that is called with (done, total), or None, not {progress!r}.")
    return progress
