"""The results of a reader for any file: all that is read and counted, or the error.

Two readers agree on a file if their results are equal: as a run and as qrels, in every text format, for any size of
blocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import tiewise as tw
from tiewise.io import as_source, compression, file_run, read_qrels, read_run, streaming, text
from tiewise.ties.orders import ORDERS, TOOL_ORDERS

COMPRESSED = tuple(compression.MAGIC)  # how a compressed file begins
FORMATS = {read_run: (None, "trec", "msmarco"), read_qrels: (None, "trec", "msmarco", "beir")}
DTYPES = ("float64", "float32", "decimal:1")
QRELS = {"q1": {"d1": 1, "d2": 0, "ü": 2, "zz": 1}, "q2": {"d1": 1, "d3": 1}, "é": {"0": 1, "日本": 1}, "q9": {"d1": 1}}


@contextmanager
def reading(reader: str, chunk: int = compression.CHUNK, threads: int = 1) -> Iterator[None]:
    """Read files with one of the two readers, `chunk` bytes at a time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIEWISE_READER", reader)
        patch.setattr(compression, "CHUNK", chunk)
        patch.setattr(text, "BLOCK", chunk)
        patch.setattr(file_run, "PIECE", chunk)
        patch.setattr(file_run, "SHARE", 8 * chunk)
        patch.setattr(file_run, "SMALL", 0 if threads > 1 else 1 << 40)
        patch.setattr(streaming, "THREADS", threads)
        yield


def results(path: Path) -> dict[str, object]:
    """The result of every way to read a file."""
    found: dict[str, object] = {}
    for read, formats in FORMATS.items():
        for format in formats:
            found[f"{read.__name__} {format}"] = result_or_error(lambda: table(path, read, format))  # noqa: B023
    for format in FORMATS[read_run]:
        for name, orders in (("ranked", ORDERS), ("unranked", TOOL_ORDERS)):
            found[f"counted {format} {name}"] = result_or_error(lambda: counted(path, format, orders))  # noqa: B023
    return found


def result_or_error(read):
    """The result, or the message of an InputError. Any other error is a bug."""
    try:
        return read()
    except tw.InputError as error:
        assert str(error)
        return f"error: {error}"


def table(path, read, format):
    """A file as columns."""
    found = read(path, format=format)
    rank = getattr(found, "rank", None)
    return repr(found.to_dict()), None if rank is None else rank.tolist(), getattr(found, "name", None), found.source


def counted(path, format, orders):
    """All counts of a file, for judgments that share ids with it."""
    run = as_source(path, format=format)
    found = run.count(judgments(path), orders, DTYPES)
    rounded = run.count(judgments(path), (), score_dtype="decimal:1")
    groups = {
        dtype: [
            *(column.tolist() for column in (ties.score, ties.start, ties.size, ties.length, ties.lowest_size)),
            (ties.lowest + 0.0).tolist(),  # of the zeros either one
            {order: before.tolist() for order, before in ties.before.items()},
            sorted(ties.unjudged),
        ]
        for dtype, ties in found.ties.items()
    }
    facts = (
        len(found.queries),  # examples for messages: others if the lines of a large file had to be grouped by query
        found.n_queries,
        len(found.docs),
        found.n_rows,
        found.tied_rows,
        found.found.tolist(),
        found.source,
    )
    return repr(groups), *facts, rounded.tied_rows, rounded.new_ties


def judgments(path: Path) -> tw.Qrels:
    """Judgments with ids of a file: the third and the second word of its lines."""
    found = {query: dict(docs) for query, docs in QRELS.items()}
    for line in path.read_bytes()[:20_000].decode(errors="ignore").split("\n")[::2]:
        words = line.split()
        if len(words) > 2:
            found.setdefault(words[0], {}).update({words[1]: 1, words[2]: 2})
    return tw.Qrels.from_dict(found)


def differences(path: Path, chunk: int, threads: int = 1) -> list[str]:
    """The results in which the compiled reader differs from the one in Python, for blocks of `chunk` bytes."""
    with reading("python", chunk):
        want = results(path)
    with reading("compiled", chunk, threads):
        have = results(path)
    corrupt = path.read_bytes().startswith(COMPRESSED)  # either of several errors may come first
    return [
        f"{key}:\n  python   {want[key]}\n  compiled {have[key]}"
        for key in want
        if want[key] != have[key] and not (corrupt and all(str(one[key]).startswith("error: ") for one in (want, have)))
    ]
