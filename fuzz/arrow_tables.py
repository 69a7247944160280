"""Arrow columns must be read as a naive reader reads their buffers, or refused by an error of Tiewise.

An input is a sequence of bytes from which a table is built: types, offsets, codes, nulls, slices and chunks, right or
wrong. The reference reads the same buffers one cell after another. A table without a fault must be read, by the
compiled reader and by Python, as rows and as counts; one with a fault may be refused, never read as something else.
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from fuzzing import Fuzzer, main  # noqa: E402

import tiewise as tw  # noqa: E402
from tiewise.errors import TiewiseError  # noqa: E402
from tiewise.ties import tie_groups  # noqa: E402

CORPUS = HERE / "corpus-arrow"

TEXT = "d1d2q1q2 \u00e9\u65e5xyz-0123456789".encode()
INDEX_TYPES = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FAR = [0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 127, 255, -1, -2, 2**31 - 1, -(2**31), 2**32, 2 + 2**32, 2**63 - 1, -(2**63)]
SCORES = [0.0, 1.0, 1.0, 0.5, -0.0, -3.25, 1e300, float("inf"), float("-inf"), 2.0**53, float("nan")]


class Damaged(Exception):
    """A column that no reader can read as Arrow defines it."""


class Source:
    """Numbers from bytes; 0 after their end."""

    def __init__(self, data: bytes):
        self._bytes: Iterator[int] = iter(data)

    def number(self, below: int) -> int:
        """A number from 0 on."""
        return next(self._bytes, 0) % below

    def chance(self, of: int) -> bool:
        """True once in so many times; False after the end."""
        return self.number(of) == of - 1


class Ids:
    """A column of ids as Arrow's buffers, and as a naive reader sees them."""

    def __init__(self, source: Source, rows: int, prefix: str):
        self.offset, self.rows = source.number(3), rows
        length = rows + self.offset
        self.wide, self.prefix = source.chance(3), prefix
        self.coded = source.chance(2)
        self.index_type = INDEX_TYPES[source.number(len(INDEX_TYPES))] if self.coded else ""
        names = 1 + source.number(12) if self.coded else length
        self.text, self.ends = self._strings(source, names)
        self.valid = self._mask(source, length)
        self.codes: list[int] = []
        if self.coded:
            limits = np.iinfo(self.index_type)
            codes = [
                source.number(names) if not source.chance(25) else FAR[source.number(len(FAR))] for _ in range(length)
            ]
            self.codes = [code if limits.min <= code <= limits.max else 0 for code in codes]

    def _strings(self, source: Source, many: int) -> tuple[bytes, list[int]]:
        """The bytes and offsets of ids: mostly different ones, in order; sometimes any offsets in any text."""
        if source.chance(6):
            largest = 2**63 if self.wide else 2**31
            ends = [source.number(len(TEXT) + 1) for _ in range(many + 1)]
            if not source.chance(3):
                ends.sort()
            ends = [FAR[source.number(len(FAR))] if source.chance(30) else end for end in ends]
            return TEXT, [end if -largest <= end < largest else 0 for end in ends]
        each = source.number(4) + 1  # rows that share an id: those of a query, or a document twice
        ids = [
            f"{self.prefix}{place // each if source.chance(30) or self.prefix == 'q' else place}"
            for place in range(many)
        ]
        if source.chance(8):
            ids = [id + "\u65e5" for id in ids]
        if source.chance(30):
            ids[source.number(many) if many else 0 :] = []
            ids += [""] * (many - len(ids))
        texts = [id.encode() for id in ids]
        return b"".join(texts), np.cumsum([0, *map(len, texts)]).tolist()

    def _mask(self, source: Source, length: int) -> list[bool]:
        if not source.chance(8):
            return [True] * length
        return [not source.chance(4) for _ in range(length)]

    def array(self) -> pyarrow.Array:
        """The column, not checked by Arrow."""
        ends = pyarrow.py_buffer(np.array(self.ends, np.int64 if self.wide else np.int32))
        kind = pyarrow.large_string() if self.wide else pyarrow.string()
        mask = None if all(self.valid) else pyarrow.py_buffer(np.packbits(self.valid, bitorder="little").tobytes())
        names = len(self.ends) - 1
        buffers = [None if self.coded else mask, ends, pyarrow.py_buffer(self.text)]
        if not self.coded:
            return pyarrow.Array.from_buffers(kind, self.rows, buffers, offset=self.offset)
        ids = pyarrow.Array.from_buffers(kind, names, buffers)
        codes = pyarrow.py_buffer(np.array(self.codes, self.index_type))
        index = pyarrow.Array.from_buffers(
            pyarrow.type_for_alias(self.index_type), self.rows, [mask, codes], offset=self.offset
        )
        return pyarrow.DictionaryArray.from_arrays(index, ids, safe=False)

    def read(self) -> list[str | None]:
        """The ids of all rows."""
        return [self._cell(row) for row in range(self.offset, self.offset + self.rows)]

    def _cell(self, row: int) -> str | None:
        if not self.valid[row]:
            return None
        at = self.codes[row] if self.coded else row
        if not 0 <= at < len(self.ends) - 1:
            raise Damaged
        first, last = self.ends[at : at + 2]
        if not 0 <= first <= last <= len(self.text):
            raise Damaged
        try:
            return self.text[first:last].decode()
        except UnicodeDecodeError:
            raise Damaged from None

    @property
    def is_sound(self) -> bool:
        """Whether all buffers are as Arrow defines them, also where no row looks."""
        try:
            self.read()
            for first, last in pairwise([0, *self.ends, len(self.text)]):
                if not 0 <= first <= last <= len(self.text):
                    return False
                self.text[first:last].decode()
        except (Damaged, UnicodeDecodeError):
            return False
        return True


def build(data: bytes) -> tuple[Ids, Ids, list[float | None], pyarrow.Table]:
    """Two columns of ids, the scores, and the table of the three."""
    source = Source(data)
    rows = source.number(13)
    query, doc = Ids(source, rows, "q"), Ids(source, rows, "d")
    scores: list[float | None] = [SCORES[source.number(len(SCORES) - (not source.chance(6)))] for _ in range(rows)]
    kind = ["float64", "float64", "float32", "int64"][source.number(4)]
    if kind == "int64":
        scores = [None if score is None else float(int(score)) if abs(score) < 2**53 else 7.0 for score in scores]
    if kind == "float32":
        scores = [None if score is None else float(np.float32(min(score, 1e30))) for score in scores]
    if source.chance(12) and rows:
        scores[source.number(rows)] = None
    values = scores if kind != "int64" else [None if score is None else int(score) for score in scores]
    columns = [query.array(), doc.array(), pyarrow.array(values, pyarrow.type_for_alias(kind))]
    table = pyarrow.Table.from_arrays([_chunked(source, column) for column in columns], ["query_id", "doc_id", "score"])
    return query, doc, scores, table


def _chunked(source: Source, column: pyarrow.Array) -> pyarrow.ChunkedArray:
    """The column in up to three chunks, some of them empty."""
    cuts = sorted(source.number(len(column) + 1) for _ in range(source.number(3)))
    edges = [0, *cuts, len(column)]
    chunks = [column.slice(low, high - low) for low, high in pairwise(edges)]
    return pyarrow.chunked_array(chunks, column.type)


def reference(query: Ids, doc: Ids, scores: list[float | None]) -> dict[str, dict[str, float]] | None:
    """The run as a naive reader sees it; None if it has a fault."""
    run: dict[str, dict[str, float]] = {}
    try:
        rows = list(zip(query.read(), doc.read(), scores, strict=True))
    except Damaged:
        return None
    for name, document, score in rows:
        if name is None or document is None or score is None or score != score or document in run.get(name, {}):
            return None
        run.setdefault(name, {})[document] = score
    return run


def failure(data: bytes, kind: str, folder: Path) -> str:
    """How a table is misread; nothing if it is not."""
    try:
        query, doc, scores, table = build(data)
    except pyarrow.ArrowInvalid:  # Arrow itself does not make such a table
        return ""
    expected = reference(query, doc, scores)
    judged = {name: dict.fromkeys(list(docs)[:3], 1) for name, docs in (expected or {"q0": {"d0": 1.0}}).items()} or {
        "q0": {"d0": 1}
    }
    before = os.environ.get("TIEWISE_READER")
    try:
        for reader in ("compiled", "python"):
            os.environ["TIEWISE_READER"] = reader
            for what, read in {"rows": _rows, "counts": _counts}.items():
                try:
                    found = read(table, judged)
                except TiewiseError as error:
                    if expected is not None and query.is_sound and doc.is_sound:
                        return f"{reader}, {what}: a sound table is refused: {error}"
                    continue
                if expected is None:
                    return f"{reader}, {what}: a table with a fault is read: {found}"
                if str(found) != str(right := read(expected, judged)):  # NaN is not equal to itself
                    return f"{reader}, {what}: {found} instead of {right}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    finally:
        os.environ.pop("TIEWISE_READER")
        if before is not None:
            os.environ["TIEWISE_READER"] = before
    return ""


def _rows(run: Any, judged: Any) -> Any:
    return (tw.Run.from_dict(run) if isinstance(run, dict) else tw.Run.from_frame(run)).to_dict()


def _counts(run: Any, judged: Any) -> Any:
    ties = tie_groups(judged, run, ("docid-desc", "given"))
    columns = {**vars(ties), **ties.before}
    return {
        name: column.tolist() for name, column in columns.items() if isinstance(column, np.ndarray) and name != "lowest"
    }


KNOWN = [path.read_bytes() for path in sorted(CORPUS.iterdir())] if CORPUS.is_dir() else []


def draw(rng: random.Random) -> tuple[str, bytes]:
    """Random bytes, or an input of the corpus with some changes."""
    if not KNOWN or rng.random() < 0.5:
        return "", rng.randbytes(rng.randint(1, 120))
    data = bytearray(rng.choice(KNOWN))
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(data) + 1)
        data[at : at + rng.choice([0, 1, 1, 1, 5])] = rng.randbytes(rng.choice([0, 1, 1, 1, 3]))
    return "", bytes(data)


FUZZER = Fuzzer(draw, failure)

if __name__ == "__main__":
    main(FUZZER, __doc__, "each was read as it is, or refused")
