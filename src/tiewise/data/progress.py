"""Progress callbacks of long computations."""

from __future__ import annotations

from collections.abc import Callable

from tiewise.errors import InputError

#: Called with the amount of work done and the total amount.
Progress = Callable[[int, int], None]


def check_progress(progress: object) -> None:
    """Raise if `progress` is not a function.

    >>> check_progress(print)
    >>> check_progress(True)
    Traceback (most recent call last):
    tiewise.errors.InputError: progress is a function that is called with (done, total), or None, not True.
    """
    if progress is not None and not callable(progress):
        raise InputError(f"progress is a function that is called with (done, total), or None, not {progress!r}.")
