"""Checks an output path before anything is read or measured.

Whether the disk has room is only seen when the file is written, whole or not at all.
"""

from __future__ import annotations

import os
from pathlib import Path

from tiewise.errors import InputError
from tiewise.io.compression import PathLike
from tiewise.results.optional import need


def check_writable(path: PathLike) -> None:
    """Raise an error if no file can be written at a path; ``-``, pipes and devices are not checked.

    >>> check_writable("nowhere/run.trec")
    Traceback (most recent call last):
    tiewise.errors.InputError: nowhere/run.trec: cannot be written: there is no folder nowhere. Make it first.
    """
    name = os.fspath(path)
    if name == "-":
        return
    target = Path(os.path.realpath(name))  # a link stays a link
    if target.is_dir():
        raise InputError(f"{name}: is a folder. Name a file in it.")
    if target.exists() and not target.is_file():
        return
    if not target.parent.is_dir():
        raise InputError(f"{name}: cannot be written: there is no folder {Path(name).parent}. Make it first.")
    if not os.access(target.parent, os.W_OK):
        raise InputError(f"{name}: cannot be written: you may not write to the folder {Path(name).parent}.")
    if target.suffix == ".zst":
        need("zstandard", "Writing .zst", "zstd")
