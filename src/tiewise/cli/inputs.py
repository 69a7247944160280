"""The files that a command reads: what each run is called, standard input at most once, and warnings kept as words."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tiewise.errors import CutWarning, InputError, TiewiseWarning
from tiewise.io.compression import is_pattern

__all__ = ["heeded", "name_of_shards", "named", "names", "read_once"]

_SUFFIXES = {".gz", ".zst", ".bz2", ".xz", ".trec", ".run", ".res", ".txt", ".tsv", ".json", ".jsonl", ".parquet"}


def read_once(paths: Iterable[Path]) -> None:
    """Refuse to read standard input twice."""
    if [*map(str, paths)].count("-") > 1:
        raise InputError("Standard input (-) can be read once. Give files for the others.")


@contextmanager
def heeded() -> Iterator[list[str]]:
    """A list that holds in words, at the end, what was warned of."""
    words: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", TiewiseWarning)
        warnings.simplefilter("ignore", CutWarning)  # a note of the report says it
        yield words
    words += [str(one.message) for one in caught if issubclass(one.category, TiewiseWarning)]


def named(paths: Sequence[Path], given: Sequence[str] | None = None) -> dict[str, Path]:
    """Runs by their names: see `names`."""
    return dict(zip(names(paths, given or ()), paths, strict=True))


def names(paths: Sequence[Path], given: Sequence[str] = ()) -> list[str]:
    """A name for each run: the given one, or that of its file, with as many folders as tell it from the others.

    >>> names([Path("a/run.trec.gz"), Path("b/run.trec"), Path("b/bm25.trec"), Path("b/bm25.trec"), Path("-")])
    ['a/run', 'b/run', 'b/bm25', 'b/bm25#2', 'stdin']
    """
    if given:
        if len(given) != len(paths) or len(set(given)) < len(given):
            raise InputError("--name takes a name of its own for each run. Give it once for each, in their order.")
        return list(given)
    plain = [_without_suffixes(path) for path in paths]
    longest = max(len(path.parts) for path in plain)
    short = [path.name for path in plain]
    for parts in range(1, longest + 1):
        named = ["/".join(path.parts[-parts:]) for path in plain]
        if len(set(named)) == len(set(paths)):
            short = named
            break
    seen: dict[str, int] = {}
    for place, name in enumerate(short):
        seen[name] = seen.get(name, 0) + 1
        short[place] = name if seen[name] == 1 else f"{name}#{seen[name]}"
    return short


def name_of_shards(shards: Sequence[Path], given: Sequence[str] = ()) -> str:
    """The name of a run in shards: the given one, or that of its folder, file or pattern; of several, their number.

    >>> [name_of_shards([Path(path)]) for path in ("runs/dense/", "runs/dense-*.parquet", "runs/dense/*/[0-9].trec")]
    ['dense', 'dense', 'dense']
    """
    if len(given) > 1:
        raise InputError("--name names a run, and with --engine ray there is one. Give it once.")
    if given:
        return given[0]
    if len(shards) > 1:
        return f"{len(shards):,} shards"
    if not is_pattern(shards[0]):
        return names([shards[0].resolve() if shards[0].is_dir() else shards[0]])[0]
    fixed = (re.split(r"[*?\[]", part)[0].rstrip("-_.") for part in reversed(_without_suffixes(shards[0]).parts))
    return next(filter(None, fixed), Path.cwd().name)


def _without_suffixes(path: Path) -> Path:
    if str(path) == "-":
        return Path("stdin")
    while path.suffix.lower() in _SUFFIXES and path.stem:
        path = path.with_suffix("")
    return path
