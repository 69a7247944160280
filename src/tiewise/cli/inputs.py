"""The runs and judgments that a command reads: their names and formats, and warnings as notes."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tiewise.caching import cached_property
from tiewise.cli.progress import progress
from tiewise.data.judgments import Kind, Qrels
from tiewise.data.runs import Run
from tiewise.errors import CutWarning, InputError, MeasureError, TiewiseWarning
from tiewise.io import as_qrels, as_source, read_qrels, read_run
from tiewise.io.compression import is_pattern
from tiewise.io.reading import column_format
from tiewise.io.run_names import name_files, without_suffixes
from tiewise.ties.counted import RunSource


@dataclass(eq=False, repr=False)
class Inputs:
    """The options of runs and judgments."""

    runs: Sequence[Path] = ()
    names: Sequence[str] = ()
    qrels: Path | None = None
    input_format: str | None = None
    input_columns: str | None = None
    qrels_format: str | None = None
    qrels_kind: Kind = "adhoc"

    @property
    def run_format(self) -> str | None:
        """The format of the runs, perhaps with their columns."""
        return column_format(self.input_format, self.input_columns)

    @cached_property
    def files(self) -> dict[str, Path]:
        """The paths of the runs by name: see `name_runs`. What a shell's <(…) writes is named after its tag."""
        for path in self.runs:
            _refuse_measure(path)
        names = name_runs(self.runs, self.names)
        if not self.names:
            tags = {path: run.name for path, run in self._piped.items()}
            names = [tags.get(path) or name for path, name in zip(self.runs, names, strict=True)]
            names = [f"{name}#{n}" if (n := names[:i].count(name) + 1) > 1 else name for i, name in enumerate(names)]
        return dict(zip(names, self.runs, strict=True))

    @cached_property
    def _piped(self) -> dict[Path, Run]:
        """The runs that can be read only once, but for standard input."""
        piped = [path for path in self.runs if str(path) != "-" and path.is_fifo()]
        return {path: read_run(path, format=self.run_format) for path in piped}

    def name_of(self, run: str | None) -> str | None:
        """The name of a run that was given by name or by path."""
        by_path = {str(path): name for name, path in self.files.items()}
        return run if run is None or run in self.files else by_path.get(run, run)

    def read_qrels(self, *, hashed: bool = False) -> Qrels:
        """The judgments; if they are `hashed`, their SHA-256 is computed while they are read."""
        assert self.qrels is not None
        read = read_qrels if hashed else as_qrels
        return read(self.qrels, format=self.qrels_format, kind=self.qrels_kind)

    def read_runs(self, *, quiet: bool) -> dict[str, Run]:
        """The rows of all runs, which are hashed; with a progress bar, unless `quiet`."""
        read: dict[str, Run] = {}
        with progress("runs", quiet=quiet) as callback:
            for name, path in self.files.items():
                read[name] = self._piped.get(path) or read_run(path, format=self.run_format)
                callback(len(read), len(self.files))
        return read

    def open_runs(self) -> dict[str, RunSource]:
        """The runs, each read when it is needed."""
        return {name: self.open_run(path) for name, path in self.files.items()}

    def open_run(self, path: Path) -> RunSource:
        """One of the runs, read when it is needed."""
        return as_source(self._piped.get(path, path), format=self.run_format)


def _refuse_measure(path: Path) -> None:
    """A second word after -m is read as a run: say so if it is a measure, and no file."""
    from tiewise.metrics.names import parse_all

    with suppress(MeasureError):
        if not path.exists() and parse_all(str(path)):
            raise InputError(f"{path}: there is no such file. If it is a measure, give it after -m too: -m {path}.")


@contextmanager
def collect_warnings() -> Iterator[list[str]]:
    """A list that has the messages of all our warnings when the block ends."""
    messages: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", TiewiseWarning)
        warnings.simplefilter("ignore", CutWarning)  # a note of the report has it
        yield messages
    messages += dict.fromkeys(str(one.message) for one in caught if issubclass(one.category, TiewiseWarning))


def name_runs(paths: Sequence[Path], given: Sequence[str] = ()) -> list[str]:
    """A name for each run: the given one, or that of its file."""
    if given:
        if len(given) != len(paths) or len(set(given)) < len(given):
            raise InputError("--name needs a different name for each run. Give it once for each, in their order.")
        return list(given)
    return name_files(paths)


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
    fixed = (re.split(r"[*?\[]", part)[0].rstrip("-_.") for part in reversed(without_suffixes(shards[0]).parts))
    return next(filter(None, fixed), Path.cwd().name)
