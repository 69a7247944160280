"""Shards of a run: counting one of them, on a worker, and the whole run from all of them.

A shard is the path of a file, or a block of a Ray data set, which is an Arrow table. A worker returns judged scores and
counts, never rows. The first pass counts every shard as if it were the whole run. Where shards share queries, the
second pass counts for the judged scores of all shards, and the counts are added.
"""

from __future__ import annotations

import glob
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tiewise.analysis.measuring import check_common_queries, check_judged, list_documents
from tiewise.data.columns import Floats, project
from tiewise.data.judgments import Qrels
from tiewise.data.runs import Trend
from tiewise.data.source import Source
from tiewise.errors import InputError, prefix_errors
from tiewise.io import as_source
from tiewise.io.compression import is_pattern
from tiewise.io.edited_run import edit_source
from tiewise.results.wording import count_noun
from tiewise.ties.counted import Counted, RunSource
from tiewise.ties.groups import TieGroups
from tiewise.ties.shards import Counts, Total, sample_limit, small

if TYPE_CHECKING:
    import pyarrow


Shard: TypeAlias = "str | pyarrow.Table"
ShardCounts: TypeAlias = Mapping[str, Counts]  # by score type


@dataclass(frozen=True)
class ShardSummary:
    """What a shard holds."""

    judged: NDArray[Any]  # (n,): its judged documents, as rows of the qrels
    scores: Floats  # (n,): their scores
    queries: NDArray[Any]  # (m,): its judged queries
    facts: Counted  # about all of its rows; without tie groups
    unjudged: frozenset[str] = frozenset()  # its other queries

    @property
    def nbytes(self) -> int:
        """The bytes of its arrays."""
        return self.judged.nbytes + self.scores.nbytes + self.queries.nbytes

    @property
    def sha256(self) -> str:
        """Of the file; empty for a block of a data set."""
        return "" if self.facts.source is None else self.facts.source.sha256


@dataclass(frozen=True)
class ShardCounter(ABC):
    """Counts shards of one kind."""

    qrels: Qrels
    orders: Mapping[str, Sequence[str]]  # tie-break orders by score type
    score_dtype: str | None = field(default=None, kw_only=True)  # round scores to this type first
    judged_only: bool = field(default=False, kw_only=True)  # remove unjudged documents first
    drop_self: bool = field(default=False, kw_only=True)  # remove documents with the id of their query first
    distances: bool = field(default=False, kw_only=True)  # negate scores first
    complete: ClassVar[bool] = False  # every shard ranks all of its documents for all queries

    @abstractmethod
    def count(
        self, shard: Shard, scores: Floats | None = None, fingerprint_limit: int = 0
    ) -> tuple[ShardSummary, ShardCounts]:
        """A shard's summary and counts: for its own judged scores, or for the judged `scores` of all shards."""

    @property
    def unjudged(self) -> frozenset[str]:
        """Queries without judgments, as far as they are known before a shard is read."""
        return frozenset()


@dataclass(frozen=True)
class RunCounter(ShardCounter):
    """Counts the shards of a run."""

    format: str | None = None

    def count(
        self, shard: Shard, scores: Floats | None = None, fingerprint_limit: int = 0
    ) -> tuple[ShardSummary, ShardCounts]:
        """See `ShardCounter`."""
        run = edit_source(self._open(shard), drop_self=self.drop_self, distances=self.distances).count(
            self.qrels,
            sorted(set().union(*self.orders.values())),
            tuple(self.orders),
            score_dtype=self.score_dtype,
            judged_only=self.judged_only,
            scores=scores,
            fingerprint_limit=fingerprint_limit,
        )
        ties = run.ties["float64"]
        judged = np.flatnonzero(ties.in_shard if ties.in_shard is not None else ~np.isnan(ties.score))
        queries = np.flatnonzero(ties.present)
        summary = ShardSummary(
            small(judged), ties.score[judged], small(queries), replace(run, ties={}), unjudged=ties.unjudged
        )
        return summary, {dtype: run.ties[dtype].only(orders).counts() for dtype, orders in self.orders.items()}

    def _open(self, shard: Shard) -> RunSource:
        if isinstance(shard, str):
            return as_source(shard, format=self.format)
        with prefix_errors("data set"):
            return as_source(shard)


@dataclass(eq=False)
class ShardedRun(Counted):
    """A run that was counted in shards: `tiewise.evaluate` takes it in place of a run."""

    shards: int = 0
    cut: Literal["query", "document"] = "query"  # "query": no judged query is in two shards
    moved: int = 0  # bytes of scores and counts that workers sent

    def __repr__(self) -> str:
        rows = "" if self.n_rows is None else f", {self.n_rows:,} rows"
        return f"<ShardedRun: {count_noun(self.shards, 'shard')} split by {self.cut}{rows}, {self.moved:,} bytes moved>"


#: Counts all shards, for their own judged scores (None, 0), or for those of all, with fingerprints below a limit:
#: summaries, and sums of counts with their bytes.
CountAll: TypeAlias = Callable[[Floats | None, int], tuple[Sequence[ShardSummary], Iterable[tuple[ShardCounts, int]]]]


def merge_shards(counter: ShardCounter, count_all: CountAll, names: Sequence[str]) -> ShardedRun:
    """The whole run; `names` are those of the shards, for error messages."""
    qrels = counter.qrels
    shards, sums = count_all(None, 0)
    _check_distinct(shards, names)
    scores = _merge_scores(qrels, shards, names)
    queries = np.concatenate([shard.queries for shard in shards])
    unjudged = counter.unjudged.union(*(shard.unjudged for shard in shards))
    _check_common_ids(qrels, scores, shards, unjudged)
    cut: Literal["query", "document"] = "query" if len(np.unique(queries)) == len(queries) else "document"
    moved = sum(shard.nbytes for shard in shards)
    if cut == "document" or counter.complete:
        if any("rank" in orders for orders in counter.orders.values()):
            raise InputError(
                "There are queries in more than one shard, and the rank columns of shards do not make one ranking. Use "
                "oblivious='given' or another order."
            )
        limit = sample_limit(sum(shard.facts.n_rows or 0 for shard in shards))
        second, sums = count_all(scores, limit)
        _check_unchanged(shards, second, names)
        _check_apart(second, names)
    totals = {dtype: Total(len(qrels), len(qrels.queries), orders) for dtype, orders in counter.orders.items()}
    for counts, nbytes in sums:
        moved += nbytes
        for dtype, one in counts.items():
            totals[dtype].add(one)
    ties = {
        dtype: TieGroups(
            qrels=qrels,
            score=scores if dtype == "float64" else project(scores, dtype),
            **total.columns(),
            unjudged=unjudged,
            complete=counter.complete,
        )
        for dtype, total in totals.items()
    }
    if counter.judged_only:
        ties = {dtype: one.condensed_from(one) for dtype, one in ties.items()}
    return ShardedRun(
        ties,
        **({} if counter.complete else _merge_facts(shards, names, ties_known=cut == "query")),
        score_dtype=counter.score_dtype,
        judged_only=counter.judged_only,
        drop_self=counter.drop_self,
        distances=counter.distances,
        shards=len(shards),
        cut=cut,
        moved=moved,
    )


def _merge_scores(qrels: Qrels, shards: Sequence[ShardSummary], names: Sequence[str]) -> Floats:
    """The score of every judged document, NaN where no shard has it; raises if two shards have it."""
    scores, shard_of = np.full(len(qrels), np.nan), np.full(len(qrels), -1, dtype=np.int32)
    for number, shard in enumerate(shards):
        twice = shard.judged[shard_of[shard.judged] >= 0]
        if len(twice):
            query, doc = qrels.row(int(twice[0]))
            raise InputError(
                f"{names[number]}: document '{doc}' of query '{query}' is in {names[shard_of[twice[0]]]} too "
                f"({count_noun(len(twice), 'such document')}). Shards must not share documents. Was one given twice?"
            )
        scores[shard.judged], shard_of[shard.judged] = shard.scores, number
    return scores


def _merge_facts(shards: Sequence[ShardSummary], names: Sequence[str], ties_known: bool) -> dict[str, Any]:
    """Rows, ties and provenance. Ties between rows of different shards are not counted: then they are None."""
    each = [shard.facts for shard in shards]
    facts: dict[str, Any] = {"n_rows": sum(one.n_rows or 0 for one in each)}
    sources = [one.source for one in each if one.source is not None]
    if len(sources) == len(shards):
        hashes = [source.sha256 for source in sources]
        whole = hashes[0] if len(hashes) == 1 else sha256("\n".join(hashes).encode()).hexdigest()
        name = names[0] if len(names) == 1 else f"{names[0]} … {names[-1]} ({len(names):,} shards)"
        facts["source"] = Source(name, whole, ", ".join(sorted({source.format for source in sources})))
    facts["has_self"] = np.logical_or.reduce([one.has_self for one in each if one.has_self is not None])
    unjudged = [query for shard in shards for query in shard.unjudged]
    if ties_known and len(set(unjudged)) == len(unjudged):
        facts["tied_rows"] = sum(one.tied_rows or 0 for one in each)
        facts["trend"] = Trend.sum(one.trend for one in each if one.trend is not None)
        if each[0].new_ties is not None:
            facts["new_ties"] = sum(one.new_ties or 0 for one in each)
    return facts


def _check_distinct(shards: Sequence[ShardSummary], names: Sequence[str]) -> None:
    seen: dict[str, str] = {}
    for shard, name in zip(shards, names, strict=True):
        if shard.sha256 and seen.setdefault(shard.sha256, name) != name:
            raise InputError(
                f"{name}: has the same bytes as {seen[shard.sha256]}, so every document would count twice. List each "
                "shard once."
            )


def _check_common_ids(qrels: Qrels, scores: Floats, shards: Sequence[ShardSummary], unjudged: frozenset[str]) -> None:
    check_judged(qrels)
    present = sum(len(shard.queries) for shard in shards)
    check_common_queries(qrels, present, sorted(unjudged), len(unjudged))
    if np.isnan(scores).all():
        docs = next((shard.facts.docs for shard in shards if shard.facts.docs), ())
        raise InputError(f"No list holds a document judged for its query. {list_documents(docs, qrels)}")


def _check_apart(shards: Sequence[ShardSummary], names: Sequence[str]) -> None:
    """Raise if two shards have the same row: of all rows, or of a sample; judged documents were compared before."""
    parts = [np.zeros(0, np.uint64) if one.facts.fingerprints is None else one.facts.fingerprints for one in shards]
    found, owner = np.concatenate(parts), np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    order = np.argsort(found, kind="stable")
    same = np.flatnonzero(found[order][1:] == found[order][:-1])
    if len(same):
        first, other = owner[order[same]], owner[order[same + 1]]
        many = int(np.sum((first == first[0]) & (other == other[0])))
        raise InputError(
            f"{names[other[0]]}: has {count_noun(many, 'document')} without a judgment, or more, of queries for which "
            f"{names[first[0]]} has the same. Shards must not share documents. Was one given twice?"
        )


def _check_unchanged(first: Sequence[ShardSummary], second: Sequence[ShardSummary], names: Sequence[str]) -> None:
    """Raise if the second pass did not read what the first one read."""
    for before, after, name in zip(first, second, names, strict=True):
        if before.sha256 != after.sha256 or not np.array_equal(before.judged, after.judged):
            raise InputError(f"{name}: the shard changed during the evaluation. Evaluate again.")


# -- the list of shard files: paths, folders and patterns become absolute paths in a fixed order --------------------
# Every entry of a listing is a shard or an error that names it: a shard that is left out silently would change
# numbers.

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
            f"An object of type {type(given).__name__} is not a list of shards. Give paths, a folder, a pattern, such "
            "as shards/*.trec, or a Ray data set with the columns query_id, doc_id and score."
        )
    paths = [str(Path(path).absolute()) for entry in entries for path in _expand(os.fspath(entry))]
    if not paths:
        raise InputError("There are no shards to count.")
    _check_distinct_paths(paths)
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
    path = Path(os.fsdecode(error.filename))
    if path.is_symlink() and isinstance(error, FileNotFoundError):
        raise InputError(f"{path}: is a link to '{path.readlink()}', which does not exist. {ADVICE}") from None
    raise InputError(f"{path}: cannot be read ({error.strerror}). {ADVICE}") from None


def _check_distinct_paths(paths: list[str]) -> None:
    seen: dict[str, str] = {}
    for path in paths:
        real = os.path.realpath(path)
        if real in seen:
            same = "" if seen[real] == path else f", as {seen[real]}"
            raise InputError(f"{path}: this shard is listed twice{same}. List each shard once.")
        seen[real] = path
