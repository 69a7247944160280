"""Telling whoever waits: what long work calls as it goes on, and the check that it can be called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tiewise.errors import InputError

__all__ = ["Progress", "check_progress"]

#: Called with how much is done, and how much there is in all.
Progress = Callable[[int, int], None]


def check_progress(given: Any) -> None:
    """Refuse, before any work, what cannot be called.

    >>> check_progress(print)
    >>> check_progress(True)
    Traceback (most recent call last):
    tiewise.errors.InputError: progress is a function that is called with (done, total), or None, not True.
    """
    if given is not None and not callable(given):
        raise InputError(f"progress is a function that is called with (done, total), or None, not {given!r}.")
