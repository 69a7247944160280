"""Names of runs after their files."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

_SUFFIXES = {
    ".gz",
    ".zst",
    ".bz2",
    ".xz",
    ".zip",
    ".csv",
    ".trec",
    ".run",
    ".res",
    ".txt",
    ".tsv",
    ".json",
    ".jsonl",
    ".parquet",
}


def name_listed(runs: Any) -> Any:
    """A list of paths as ``{name: path}``; other values unchanged.

    >>> name_listed(["bm25.trec", "dense.trec.gz"])
    {'bm25': 'bm25.trec', 'dense': 'dense.trec.gz'}
    """
    is_list = isinstance(runs, (list, tuple)) and bool(runs)
    if not is_list or not all(isinstance(run, (str, PathLike)) for run in runs):
        return runs
    return dict(zip(name_files([Path(run) for run in runs]), runs, strict=True))


def name_files(paths: Sequence[Path]) -> list[str]:
    """A name for each file, with as many folders as make the names differ.

    >>> name_files([Path("a/run.trec.gz"), Path("b/run.trec"), Path("b/bm25.trec"), Path("b/bm25.trec"), Path("-")])
    ['a/run', 'b/run', 'b/bm25', 'b/bm25#2', 'stdin']
    """
    plain = [without_suffixes(path) for path in paths]
    longest = max(1, *(len(path.parts) for path in plain))  # "." has no part: reading it is the error
    by_depth = [["/".join(path.parts[-parts:]) or "." for path in plain] for parts in range(1, longest + 1)]
    found = next((names for names in by_depth if len(set(names)) == len(set(paths))), by_depth[0])
    repeats = [found[:place].count(name) for place, name in enumerate(found)]
    return [f"{name}#{before + 1}" if before else name for name, before in zip(found, repeats, strict=True)]


def without_suffixes(path: Path) -> Path:
    """A path without the endings of runs and of compressed files."""
    if str(path) == "-":
        return Path("stdin")
    while path.suffix.lower() in _SUFFIXES and path.stem:
        path = path.with_suffix("")
    return path
