"""Where a result is to go: a place that cannot be written to is said before anything is read or measured.

Whether the disk has room is seen only when the file is written, whole or not at all.
"""

from __future__ import annotations

import os
from pathlib import Path

from tiewise.errors import InputError
from tiewise.io.compression import PathLike
from tiewise.tables.optional import need

__all__ = ["check_place"]


def check_place(path: PathLike) -> None:
    """Refuse a path at which no file can appear; ``-``, pipes and devices are left to whoever writes to them.

    >>> check_place("nowhere/run.trec")
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
        raise InputError(f"{name}: cannot be written: nothing may be written to the folder {Path(name).parent}.")
    if target.suffix == ".zst":
        need("zstandard", "Writing .zst", "zstd")
