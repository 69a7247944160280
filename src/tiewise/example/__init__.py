"""A small real data set: judgments, runs of one model in three precisions, first stages, and small vectors."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from tiewise.errors import InputError

__all__ = ["file", "write_files"]

_HERE = Path(__file__).parent


def file(name: str) -> Path:
    """The path of a file of the data set.

    >>> file("qrels.txt").name
    'qrels.txt'
    """
    path = _HERE / name
    if not path.is_file():
        raise InputError(f"The example has no file '{name}'. It has: {', '.join(repr(one.name) for one in _files())}.")
    return path


def write_files(folder: str | os.PathLike[str]) -> list[str]:
    """Copy the data set to a new folder, with all files or not at all, and return their names.

    >>> import tempfile
    >>> write_files(Path(tempfile.mkdtemp()) / "example")[:2]
    ['bm25.trec.bz2', 'costs.json']
    """
    target = Path(folder)
    if target.exists() or target.is_symlink():
        raise InputError(f"{target}: exists already, and nothing is overwritten. Name a new folder.")
    if not target.parent.is_dir():
        raise InputError(f"{target}: there is no folder {target.parent}. Make it first.")
    names = [one.name for one in _files()]
    try:
        with tempfile.TemporaryDirectory(dir=target.parent) as part:
            whole = Path(part) / target.name
            whole.mkdir()
            for name in [*names, "README.md"]:
                shutil.copyfile(_HERE / name, whole / name)
            whole.rename(target)
    except OSError as error:
        raise InputError(f"{target}: cannot be written: {error.strerror or error}.") from error
    return names


def _files() -> list[Path]:
    return sorted(one for one in _HERE.iterdir() if one.suffix in (".txt", ".gz", ".bz2", ".json", ".npz"))
