"""The list of shard files: paths, folders and patterns become absolute paths in a fixed order."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TypeAlias

from tiewise.errors import InputError
from tiewise.io.compression import is_pattern

__all__ = ["ShardPaths", "list_shards"]

ShardPaths: TypeAlias = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


def list_shards(given: ShardPaths) -> list[str]:
    """The files of one or several paths, folders and patterns. Folders and patterns list their files by name.

    A folder means all files in it and in its subfolders, except those whose name, or the name of a subfolder on the
    way, begins with ``.`` or ``_``. A pattern leaves out names that begin with ``.``, as a shell does. Paths are
    absolute, because a worker may have another working directory.

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
        inside = sorted(file for file in Path(path).rglob("*") if file.is_file())
        files = [str(file) for file in inside if not any(part[0] in "._" for part in file.relative_to(path).parts)]
        if not files:
            skipped = f"; {len(inside):,} skipped" if inside else ""
            raise InputError(
                f"{path}: the folder has no files to read. Files in it and in its subfolders are read if no part of "
                f"the name begins with '.' or '_'{skipped}."
            )
        return files
    if is_pattern(path):
        matching = glob.glob(path, recursive=True)  # noqa: PTH207 - Path.glob takes no absolute pattern
        files = sorted(file for file in matching if Path(file).is_file())
        if not files:
            raise InputError(f"{path}: no file matches this pattern. Every worker must see the same files.")
        return files
    return [path]


def _check_distinct(paths: list[str]) -> None:
    seen: dict[str, str] = {}
    for path in paths:
        real = os.path.realpath(path)
        if real in seen:
            same = "" if seen[real] == path else f", as {seen[real]}"
            raise InputError(f"{path}: this shard is listed twice{same}. List each shard once.")
        seen[real] = path
