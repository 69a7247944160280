"""The runs that a command reads: their names, standard input at most once, and warnings as notes."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tiewise.errors import CutWarning, InputError, TiewiseWarning
from tiewise.io.compression import is_pattern

__all__ = ["check_stdin_once", "collect_warnings", "name_of_shards", "name_runs", "runs_by_name"]

_SUFFIXES = {".gz", ".zst", ".bz2", ".xz", ".trec", ".run", ".res", ".txt", ".tsv", ".json", ".jsonl", ".parquet"}


def check_stdin_once(paths: Iterable[Path | None]) -> None:
    """Require that at most one path is standard input."""
    if [*map(str, paths)].count("-") > 1:
        raise InputError("Standard input (-) can be read once. Give files for the others.")


@contextmanager
def collect_warnings() -> Iterator[list[str]]:
    """A list that has the messages of all our warnings when the block ends."""
    messages: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", TiewiseWarning)
        warnings.simplefilter("ignore", CutWarning)  # a note of the report has it
        yield messages
    messages += dict.fromkeys(str(one.message) for one in caught if issubclass(one.category, TiewiseWarning))


def runs_by_name(paths: Sequence[Path], given: Sequence[str] = ()) -> dict[str, Path]:
    """Paths of runs by name: see `name_runs`."""
    return dict(zip(name_runs(paths, given), paths, strict=True))


def name_runs(paths: Sequence[Path], given: Sequence[str] = ()) -> list[str]:
    """A name for each run: the given one, or its file's, with as many folders as make the names differ.

    >>> name_runs([Path("a/run.trec.gz"), Path("b/run.trec"), Path("b/bm25.trec"), Path("b/bm25.trec"), Path("-")])
    ['a/run', 'b/run', 'b/bm25', 'b/bm25#2', 'stdin']
    """
    if given:
        if len(given) != len(paths) or len(set(given)) < len(given):
            raise InputError("--name needs a different name for each run. Give it once for each, in their order.")
        return list(given)
    plain = [_without_suffixes(path) for path in paths]
    longest = max(1, *(len(path.parts) for path in plain))  # "." has no part: reading it is the error
    by_depth = [["/".join(path.parts[-parts:]) or "." for path in plain] for parts in range(1, longest + 1)]
    found = next((names for names in by_depth if len(set(names)) == len(set(paths))), by_depth[0])
    repeats = [found[:place].count(name) for place, name in enumerate(found)]
    return [f"{name}#{before + 1}" if before else name for name, before in zip(found, repeats, strict=True)]


def name_of_shards(shards: Sequence[Path], given: Sequence[str] = ()) -> str:
    """The name of a run in shards: the given one, or that of its folder, file or pattern; of several, their number.

    >>> [name_of_shards([Path(path)]) for path in ("runs/dense/", "runs/dense-*.parquet", "runs/dense/*/[0-9].trec")]
    ['dense', 'dense', 'dense']
    """
    if len(given) > 1:
        raise InputError("With --engine ray all files are one run. Give --name once.")
    if given:
        return given[0]
    if len(shards) > 1:
        return f"{len(shards):,} shards"
    if not is_pattern(shards[0]):
        return name_runs([shards[0].resolve() if shards[0].is_dir() else shards[0]])[0]
    fixed = (re.split(r"[*?\[]", part)[0].rstrip("-_.") for part in reversed(_without_suffixes(shards[0]).parts))
    return next(filter(None, fixed), Path.cwd().name)


def _without_suffixes(path: Path) -> Path:
    if str(path) == "-":
        return Path("stdin")
    while path.suffix.lower() in _SUFFIXES and path.stem:
        path = path.with_suffix("")
    return path
