"""Writing runs and judgments to files. Numbers are written so that reading gives the same float64."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tiewise.data.columns import Codes
from tiewise.data.judgments import Qrels
from tiewise.data.runs import Run
from tiewise.data.table import Table
from tiewise.errors import InputError
from tiewise.io.compression import PathLike, save
from tiewise.io.parquet import parquet_bytes
from tiewise.io.sources import as_qrels, as_run
from tiewise.io.types import QrelsLike, RunLike
from tiewise.results.wording import list_examples

Writer = Callable[[], Iterable[bytes]]

# Characters that an id cannot contain between tabs, and between blanks; a lone surrogate has no UTF-8.
BREAK = r"\0\t\n\r\ud800-\udfff"
BLANK = BREAK + r"\v\f "


def write_run(run: RunLike, path: PathLike, *, format: str | None = None, tag: str | None = None) -> None:
    """Write a run as ``trec``, ``json`` or ``parquet``; without `format` the suffix decides, else it is TREC.

    The file is complete or does not appear. ``-`` is standard output; .gz, .zst, .bz2 and .xz compress. TREC rows are
    sorted by descending score, ties in their order, unless the run has a rank column. `tag` is the last column.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "run.trec"
    >>> write_run({"q1": {"d1": 0.1, "d2": 0.1 + 0.2}}, path, tag="demo")
    >>> print(path.read_text(), end="")
    q1 Q0 d2 1 0.30000000000000004 demo
    q1 Q0 d1 2 0.1 demo
    """
    table = as_run(run)
    writers: dict[str, Writer] = {
        "trec": lambda: _trec_run(table, (table.name or "tiewise") if tag is None else tag),
        "json": lambda: _json(table, float),
        "parquet": lambda: _parquet(table, {} if table.rank is None else {"rank": table.rank}),
    }
    save(path, _choose_writer(writers, format, path)())


def write_qrels(qrels: QrelsLike, path: PathLike, *, format: str | None = None) -> None:
    """Write judgments as ``trec``, ``beir``, ``json`` or ``parquet``, with the rules of `write_run`.

    Judgments for subtopics have these in TREC's second column, which is 0 else. BEIR's format does not hold them.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "qrels.txt"
    >>> write_qrels({"q1": {"d1": 2, "d2": 0.5}}, path)
    >>> print(path.read_text(), end="")
    q1 0 d1 2
    q1 0 d2 0.5
    """
    table = as_qrels(qrels)
    writers: dict[str, Writer] = {
        "trec": lambda: _trec_qrels(table),
        "beir": lambda: _beir_qrels(table),
        "json": lambda: _json(table, _label),
        "parquet": lambda: _parquet(table, {}),
    }
    if table.subtopics is not None:
        del writers["beir"]
        writers["json"] = lambda: [json.dumps(table.to_dict()).encode()]
    save(path, _choose_writer(writers, format, path)())


def _choose_writer(writers: dict[str, Writer], format: str | None, path: PathLike) -> Writer:
    suffixes = Path(path).suffixes
    format = format or next((name for name in ("json", "parquet") if f".{name}" in suffixes), "trec")
    if format not in writers:
        raise InputError(f"Cannot write format {format!r}. Use one of {', '.join(writers)}.")
    return writers[format]


def _trec_run(run: Run, tag: str) -> Iterator[bytes]:
    _check_ids(run, "TREC", BLANK)
    if not tag or re.search(f"[{BLANK}]", tag):
        raise InputError(f"The tag {tag!r} is empty or contains blanks. Use one word: it is the last column of TREC.")
    for query, rows in _lists(run):
        if run.rank is None:
            rows = rows[np.argsort(-run.value[rows], kind="stable")]  # ties keep their order
            ranks = range(1, len(rows) + 1)
        else:  # keep the order of the rows and the ranks
            ranks = run.rank[rows].tolist()
        cells = zip(run.ids(rows), ranks, run.value[rows].tolist(), strict=True)
        yield "".join(f"{query} Q0 {doc} {rank} {score!r} {tag}\n" for doc, rank, score in cells).encode()


def _trec_qrels(qrels: Qrels) -> Iterator[bytes]:
    _check_ids(qrels, "TREC", BLANK)
    rows = qrels.trec_rows()
    yield from (f"{query} {subtopic} {doc} {_label(label)}\n".encode() for query, subtopic, doc, label in rows)


def _beir_qrels(qrels: Qrels) -> Iterator[bytes]:
    _check_ids(qrels, "BEIR", BREAK)
    yield b"query-id\tcorpus-id\tscore\n"
    yield from (f"{query}\t{doc}\t{_label(label)}\n".encode() for query, doc, label in qrels)


def _json(table: Table, number: Callable[[float], float]) -> Iterator[bytes]:
    for place, (query, rows) in enumerate(_lists(table)):
        docs = dict(zip(table.ids(rows), map(number, table.value[rows].tolist()), strict=True))
        yield f"{',' if place else '{'}\n{json.dumps(query)}: {json.dumps(docs)}".encode()
    yield b"\n}\n" if table.queries else b"{}\n"


def _parquet(table: Table, more: dict[str, Any]) -> Iterator[bytes]:
    yield parquet_bytes(table.named_columns() | more)


def _lists(table: Table) -> Iterator[tuple[str, Codes]]:
    """Each query and its rows."""
    for place, query in enumerate(table.queries):
        yield query, np.arange(table.offsets[place], table.offsets[place + 1])


def _label(label: float) -> float:
    """A label as an integer if it is one, as trec_eval requires."""
    return int(label) if label.is_integer() else label


def _check_ids(table: Table, what: str, forbidden: str) -> None:
    """Raise if an id cannot be read back from columns."""
    unfit = re.compile(f"^$|[{forbidden}]").search
    bad = {
        "document": [doc for doc in table.ids(np.unique(table.doc, return_index=True)[1]) if unfit(doc)],
        "query": [query for query in table.queries if unfit(query) or query.startswith("#")],
    }
    if isinstance(table, Qrels) and table.subtopics is not None:
        bad["subtopic"] = [name for name in table.subtopics.names if unfit(name)]
    for kind, ids in bad.items():
        if ids:
            raise InputError(
                f"The {kind} id{'s' * (len(ids) > 1)} {list_examples(ids)} cannot be written in {what} columns: an id "
                "must not be empty or contain blanks, and a query id must not begin with '#'. Rename it, or write JSON."
            )
