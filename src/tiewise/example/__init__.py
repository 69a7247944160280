"""A small real data set: judgments, runs of one model in three precisions, first stages, and small vectors."""

from __future__ import annotations

import filecmp
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

    Where the folder holds the data set already, perhaps beside other files, nothing is written.

    >>> import tempfile
    >>> write_files(Path(tempfile.mkdtemp()) / "example")[:2]
    ['bm25.trec.bz2', 'costs.json']
    """
    target = Path(folder)
    names = [one.name for one in _files()]
    copied = [*names, "README.md"]
    if target.exists() or target.is_symlink():
        changed = [name for name in copied if not _is_same(_HERE / name, target / name)]
        if changed:
            raise InputError(
                f"{target}: exists already, without the example's {changed[0]}, and nothing is overwritten. "
                "Name a new folder."
            )
        return names
    if not target.parent.is_dir():
        raise InputError(f"{target}: there is no folder {target.parent}. Make it first.")
    try:
        with tempfile.TemporaryDirectory(dir=target.parent) as part:
            whole = Path(part) / target.name
            whole.mkdir()
            for name in copied:
                shutil.copyfile(_HERE / name, whole / name)
            whole.rename(target)
    except OSError as error:
        raise InputError(f"{target}: cannot be written: {error.strerror or error}.") from error
    return names


def _is_same(ours: Path, theirs: Path) -> bool:
    return theirs.is_file() and filecmp.cmp(ours, theirs, shallow=False)


def _files() -> list[Path]:
    return sorted(one for one in _HERE.iterdir() if one.suffix in (".txt", ".gz", ".bz2", ".json", ".npz"))
