"""Every error and warning that Tiewise raises; `TiewiseError` is the base of all errors.

A message says what was found, where, and what to do about it. It is raised where the user's data enters, so
that nothing further in has to doubt its input.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = [
    "CutWarning",
    "InputError",
    "MeasureError",
    "MissingExtraError",
    "TiewiseError",
    "TiewiseWarning",
    "first_line",
    "name_memory_errors",
    "prefix_errors",
    "warn",
    "warn_of_cuts",
]


class TiewiseError(Exception):
    """The base of every error that Tiewise raises."""


class InputError(TiewiseError, ValueError):
    """A file, a table or an argument that cannot be used as given. `problems` lists what was found."""

    def __init__(self, *problems: str):
        super().__init__("\n".join(problems))
        self.problems = problems


@contextmanager
def prefix_errors(name: str) -> Iterator[None]:
    """Start what an `InputError` says with the name of the file or the run that it is about.

    >>> with prefix_errors("run.json"):
    ...     raise InputError("The run is empty.")
    Traceback (most recent call last):
    tiewise.errors.InputError: run.json: The run is empty.
    """
    try:
        yield
    except InputError as error:
        raise InputError(*(f"{name}: {problem}" for problem in error.problems)) from None


@contextmanager
def name_memory_errors(name: str) -> Iterator[None]:
    """Turn a `MemoryError` into an `InputError` with the name of the file that needs the memory.

    >>> with name_memory_errors("run.trec"):
    ...     raise MemoryError
    Traceback (most recent call last):
    tiewise.errors.InputError: run.trec: there is not enough memory for it.
    """
    try:
        yield
    except MemoryError:
        raise InputError(f"{name}: there is not enough memory for it.") from None


class MeasureError(TiewiseError, ValueError):
    """A measure that is not known, or a parameter that it does not take."""


class MissingExtraError(TiewiseError, ImportError):
    """An optional package is needed that is not installed.

    >>> print(MissingExtraError("Reading Parquet", "arrow"))
    Reading Parquet needs an extra: pip install 'tiewise[arrow]'
    """

    def __init__(self, what: str, extra: str):
        super().__init__(f"{what} needs an extra: pip install 'tiewise[{extra}]'")


def first_line(error: BaseException) -> str:
    """The first line of what an error of another library says, without its full stop.

    >>> first_line(ValueError("It is damaged.\\nat byte 7"))
    'It is damaged'
    """
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".") if lines else "no reason given"


class TiewiseWarning(UserWarning):
    """A result that is valid, but wider than one may think."""


class CutWarning(TiewiseWarning):
    """Lists that may have been cut inside a tie group, which leaves more open than their ties show."""


def warn_of_cuts(note: str) -> None:
    """Warn with a note on lists that may have been cut, if there is one, without the mark that it has in tables."""
    if note:
        warn(note.removeprefix("° "), CutWarning)


def warn(message: str, category: type[TiewiseWarning] = TiewiseWarning) -> None:
    """Warn at the line that called this package."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] in ("tiewise", "contextlib"):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
