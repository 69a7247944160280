"""Which files the shards are: paths, folders and patterns become one list, in an order that can be foretold."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tiewise.errors import InputError
from tiewise.io.compression import is_pattern

__all__ = ["described", "paths"]


def paths(given: Any) -> list[str]:
    """The files of some paths, folders and patterns: as given, those of a folder or a pattern by name.

    A folder stands for all files in it and in its folders, whatever they end in, except those whose own name, or that
    of a folder on the way, begins with ``.`` or ``_``. A pattern stands for the files that fit it, and leaves out those
    that begin with ``.``, as a shell does. Paths are absolute, since a worker may stand elsewhere.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> for name in ("part-1.trec", "part-0.trec", "_SUCCESS"):
    ...     _ = (folder / name).write_text("q1 Q0 d1 1 0.5 x")
    >>> [Path(path).name for path in paths(folder)]
    ['part-0.trec', 'part-1.trec']
    """
    listed = [given] if isinstance(given, (str, os.PathLike)) else list(_iterated(given))
    found = [str(Path(path).absolute()) for one in listed for path in _expanded(os.fspath(one))]
    if not found:
        raise InputError("There are no shards to count.")
    _check_distinct(found)
    return found


def described(files: list[str]) -> str:
    """Some shards in a few words.

    >>> described(["a.trec", "b.trec", "c.trec"])
    'a.trec … c.trec (3 shards)'
    """
    return files[0] if len(files) == 1 else f"{files[0]} … {files[-1]} ({len(files):,} shards)"


def _iterated(given: Any) -> Iterable[Any]:
    if isinstance(given, Iterable):
        several = list(given)
        if all(isinstance(one, (str, os.PathLike)) for one in several):
            return several
    raise InputError(
        f"An object of type {type(given).__name__} is no list of shards. Give paths, a folder, a pattern, such as "
        "shards/*.trec, or a Ray data set with the columns query_id, doc_id and score."
    )


def _expanded(path: str) -> list[str]:
    if path == "-":
        raise InputError("Standard input (-) cannot be read on other machines. Give files.")
    if "://" in path:
        raise InputError(
            f"{path}: is no file. Let Ray read it, ray.data.read_parquet('{path}'), and give the data set."
        )
    if Path(path).is_dir():
        inside = sorted(one for one in Path(path).rglob("*") if one.is_file())
        found = [str(one) for one in inside if not any(p[0] in "._" for p in one.relative_to(path).parts)]
        if not found:
            raise InputError(
                f"{path}: is a folder without files to read. Looked for: files in it and in its folders whose names do "
                f"not begin with '.' or '_'{f'; {len(inside):,} passed over' if inside else ''}."
            )
        return found
    if is_pattern(path):
        matching = glob.glob(path, recursive=True)  # noqa: PTH207 - Path.glob takes no absolute pattern
        found = sorted(one for one in matching if Path(one).is_file())
        if not found:
            raise InputError(f"{path}: no file fits this pattern. Mind that every worker must see the same files.")
        return found
    return [path]


def _check_distinct(found: list[str]) -> None:
    seen: dict[str, str] = {}
    for path in found:
        real = os.path.realpath(path)
        if real in seen:
            same = "" if seen[real] == path else f", which is {seen[real]}"
            raise InputError(f"{path}: this shard is listed twice{same}. List each shard once.")
        seen[real] = path
