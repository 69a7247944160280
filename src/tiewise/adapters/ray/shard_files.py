"""The list of shard files: paths, folders and patterns become absolute paths in a fixed order.

Every entry of a listing is a shard or an error that names it: a shard that is left out silently would change numbers.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import NoReturn, TypeAlias

from tiewise.errors import InputError
from tiewise.io.compression import is_pattern

ShardPaths: TypeAlias = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]

EFFECTIVE_IDS = os.access in os.supports_effective_ids  # not on Windows
ADVICE = "Remove it, or list the shards without it."


def list_shards(given: ShardPaths) -> list[str]:
    """The files of one or several paths, folders and patterns. Folders and patterns list their files by name.

    A folder means all files in it and in its subfolders, except those whose name, or the name of a subfolder on the
    way, begins with ``.`` or ``_``. A pattern leaves out names that begin with ``.``, as a shell does; a folder that
    matches it means its files. Paths are absolute, because a worker may have another working directory.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> for name in ("part-1.trec", "part-0.trec", "_SUCCESS"):
    ...     _ = (folder / name).write_text("q1 Q0 d1 1 0.5 x")
    >>> [Path(path).name for path in list_shards(folder)]
    ['part-0.trec', 'part-1.trec']
    """
    entries = [given] if isinstance(given, (str, os.PathLike)) else given
    if isinstance(entries, Iterable):
        entries = list(entries)
    if not isinstance(entries, list) or not all(isinstance(entry, (str, os.PathLike)) for entry in entries):
        raise InputError(
            f"An object of type {type(given).__name__} is no list of shards. Give paths, a folder, a pattern, such as "
            "shards/*.trec, or a Ray data set with the columns query_id, doc_id and score."
        )
    paths = [str(Path(path).absolute()) for entry in entries for path in _expand(os.fspath(entry))]
    if not paths:
        raise InputError("There are no shards to count.")
    _check_distinct(paths)
    return paths


def _expand(path: str) -> list[str]:
    """The files of one path, folder or pattern."""
    if path == "-":
        raise InputError("Standard input (-) cannot be read on other machines. Give files.")
    if "://" in path:
        raise InputError(
            f"{path}: is not a file. Read it with Ray, ray.data.read_parquet('{path}'), and give the data set."
        )
    if Path(path).is_dir():
        files, skipped = _files_of_folder(path)
        if not files:
            note = f"; {skipped:,} skipped" if skipped else ""
            raise InputError(
                f"{path}: the folder has no files to read. Files in it and in its subfolders are read if no part of "
                f"the name begins with '.' or '_'{note}."
            )
    elif is_pattern(path):
        files = _files_of_pattern(path)
        if not files:
            raise InputError(f"{path}: no file matches this pattern. Every worker must see the same files.")
    else:
        return [path]
    return [str(file) for file in sorted(files)]


def _files_of_folder(folder: str) -> tuple[set[Path], int]:
    """The files of a folder and its subfolders, and the number of entries that were skipped for their names."""
    files, skipped = set[Path](), 0
    seen: dict[str, str] = {}
    for parent, folders, names in os.walk(folder, onerror=_refuse, followlinks=True):
        real = os.path.realpath(parent)
        if seen.setdefault(real, parent) != parent:  # by a link; one to a folder around it would have no end
            raise InputError(f"{parent}: is the same folder as {seen[real]}. {ADVICE}")
        visible = [name for name in names if name[0] not in "._"]
        files.update(Path(parent, name) for name in visible if _is_file(Path(parent, name)))
        skipped += len(names) - len(visible) + sum(name[0] in "._" for name in folders)
        folders[:] = sorted(name for name in folders if name[0] not in "._")
    return files, skipped


def _files_of_pattern(pattern: str) -> set[Path]:
    """The files that match a pattern, and those of the folders that do."""
    parts = Path(pattern).parts
    for depth in range(1, len(parts)):  # `glob` ignores folders that cannot be read
        for folder in _matches(str(Path(*parts[:depth]))):
            if folder.is_dir() and not os.access(folder, os.R_OK | os.X_OK, effective_ids=EFFECTIVE_IDS):
                raise InputError(f"{folder}: the folder cannot be read. {ADVICE}")
    matches = _matches(pattern)
    files = {path for path in matches if _is_file(path)}
    return files.union(*(_files_of_folder(str(path))[0] for path in matches if path.is_dir()))


def _matches(pattern: str) -> list[Path]:
    return [Path(path) for path in glob.glob(pattern, recursive=True)]  # noqa: PTH207 - takes an absolute pattern


def _is_file(path: Path) -> bool:
    """Whether an entry of a listing is a file; False for a folder; anything else is an error."""
    try:
        mode = path.stat().st_mode
    except OSError as error:
        _refuse(error)
    if not S_ISREG(mode) and not S_ISDIR(mode):
        raise InputError(f"{path}: is neither a file nor a folder. {ADVICE}")
    return S_ISREG(mode)


def _refuse(error: OSError) -> NoReturn:
    """Raise for an entry that cannot be read."""
    path = Path(os.fsdecode(error.filename))
    if path.is_symlink() and isinstance(error, FileNotFoundError):
        raise InputError(f"{path}: is a link to '{path.readlink()}', which does not exist. {ADVICE}") from None
    raise InputError(f"{path}: cannot be read ({error.strerror}). {ADVICE}") from None


def _check_distinct(paths: list[str]) -> None:
    seen: dict[str, str] = {}
    for path in paths:
        real = os.path.realpath(path)
        if real in seen:
            same = "" if seen[real] == path else f", as {seen[real]}"
            raise InputError(f"{path}: this shard is listed twice{same}. List each shard once.")
        seen[real] = path
