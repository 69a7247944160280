"""A small real data set: judgments, runs of one model in three precisions, and first stages with what they take."""

from __future__ import annotations

from pathlib import Path

from tiewise.errors import InputError

__all__ = ["file"]

_HERE = Path(__file__).parent


def file(name: str) -> Path:
    """The path of a file of the data set.

    >>> file("qrels.txt").name
    'qrels.txt'
    """
    path = _HERE / name
    if not path.is_file():
        there = sorted(one.name for one in _HERE.iterdir() if one.suffix in (".txt", ".gz", ".bz2", ".json"))
        raise InputError(f"The example has no file '{name}'. It has: {', '.join(map(repr, there))}.")
    return path
