"""Text files: blocks of lines become columns.

Two readers split lines into cells: `tiewise._reader`, which is compiled, and `tiewise.io.text_python`. Both have a
`Block`, which parses a block of lines, and `Codes`, which numbers ids. They know no messages: they only mark irregular
lines. These are checked here, one by one, so the errors do not depend on the reader.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tiewise.data.columns import Codes, Floats
from tiewise.data.documents import Documents
from tiewise.data.native import native
from tiewise.errors import InputError
from tiewise.io.formats import RETURN_ADVICE, Layout, describe_width, has_inner_return, is_nonzero

BLOCK = 1 << 20  # bytes that are counted at a time: their rows and ids stay in the cache
MAX_LINE = 1 << 30  # bytes of a line
MAX_PROBLEMS = 10
#: What to do about a line whose rank is none.
RANK_ADVICE = "The first rows hold ranks from 1 on. If these are scores, say --input-columns query,doc,score"


def reader() -> Any:
    """The module that reads text: the compiled one if it is installed."""
    return native() or python_reader()


def python_reader() -> Any:
    """The module that reads text in Python."""
    from tiewise.io import text_python

    return text_python


# -- blocks -----------------------------------------------------------------------------------------------------


def line_blocks(chunks: Iterable[bytes], name: str) -> Iterator[bytes]:
    """Chunks of any size as blocks of whole lines. A last line without a line break gets one.

    `name` is the file's name in messages.
    """
    rest: list[bytes] = []
    n_rest = 0
    for chunk in chunks:
        end = chunk.rfind(b"\n") + 1
        if end:
            yield b"".join([*rest, memoryview(chunk)[:end]])
            rest, n_rest = [], 0
        rest.append(chunk[end:])
        n_rest += len(chunk) - end
        _check_line(n_rest, name)
    if any(rest):
        yield b"".join([*rest, b"\n"])


def list_blocks(blocks: Iterable[bytes]) -> Iterator[list[Any]]:
    """Blocks of whole lines as lists of texts that hold whole lists: each ends where the query changes."""
    texts: list[Any] = []
    n_bytes, query = 0, b""  # the query of the last row
    for block in blocks:
        start, last = reader().last_list(block)
        is_end = (start or last != query) and (last or not query)  # lines without rows end no list
        rest: Any = block
        if is_end and n_bytes + start >= BLOCK:
            yield [*texts, memoryview(block)[:start]] if start else texts
            texts, n_bytes, rest = [], 0, memoryview(block)[start:]
        texts.append(rest)
        n_bytes += len(rest)
        query = last or query
    if n_bytes:
        yield texts


def _check_line(length: int, name: str) -> None:
    if length > MAX_LINE:
        raise InputError(f"{name}: a line is longer than {MAX_LINE:,} bytes. Is this a text file?")


# -- columns ----------------------------------------------------------------------------------------------------


class Columns(NamedTuple):
    """A file as columns, query ids as codes. `line(row)` is the line number of a row."""

    lists: Codes  # (n_lists,): the query of each sequence of rows with one query
    offsets: Codes  # (n_lists + 1,)
    queries: list[str]
    documents: Documents
    value: Floats  # scores or labels; the score is −rank if the layout has only ranks
    rank: Codes | None  # None if the layout has no ranks or one of them is not an integer
    tag: str | None  # None if the layout has no tags or they differ
    subtopic: tuple[Codes, list[str]] | None  # codes and ids; None if the layout has no subtopics
    line: Callable[[int], int]

    @property
    def query(self) -> Codes:
        """The query of each row."""
        return np.repeat(self.lists, np.diff(self.offsets))


def read_columns(blocks: Iterable[bytes], layout: Layout, name: str) -> Columns:
    """The columns of a text file from blocks of whole lines; `name` is the file's name in messages.

    >>> layout = Layout("trec", ("query", "iteration", "document", "label"), "Drop the row.")
    >>> columns = read_columns([b"q1 0 d1 1\\nq1 0 d2 0\\n"], layout, "qrels.txt")
    >>> columns.queries, columns.query, sorted(columns.documents.names), columns.value
    (['q1'], array([0, 0]), ['d1', 'd2'], array([1., 0.]))
    """
    used = python_reader() if layout.has_subtopics else reader()  # judgments for diversity are few
    block, queries, docs, problems = used.Block(), used.Codes(), used.Codes(), Problems(layout, name)
    # The documents of judgments are looked up, which needs no codes.
    ids = None if layout.number != "label" or layout.has_subtopics or native() is None else used.Ids()
    subtopics, subtopic = used.Codes(), list[Any]()
    lists: list[Codes] = []
    starts: list[Codes] = []
    doc: Any = _Column(np.int64) if used is native() else []
    value, ranks, has_ranks = _Column(np.float64), _Column(np.int64), True
    tags: set[bytes | None] = set()
    spans: list[tuple[int, Sequence[int] | Codes]] = []  # the first row of a block, and the lines of its rows
    not_utf8: dict[tuple[str, bytes], int] = {}
    n_rows = n_lines = 0
    for data in blocks:
        parse(block, [data], problems, n_lines + 1, ranks=has_ranks, tags=True)
        first, n_lines, n_block = n_lines + 1, n_lines + block.lines, len(block)
        if not n_block:
            continue
        for what, id, line in find_not_utf8(block):
            not_utf8.setdefault((what, id), first + line)
        lists.append(queries.queries(block))
        starts.append(block.offsets[:-1] + n_rows)
        if layout.has_subtopics:
            cells = block.cells(layout.columns.index("subtopic"))
            subtopic.append(cells)
            for row in block.not_utf8(cells).tolist():
                not_utf8.setdefault(("subtopic", bytes(cells[row])), first + int(block.line[row]))
        value.append(block.take_value())
        has_ranks = has_ranks and block.rank is not None
        if has_ranks:
            ranks.append(block.rank)
        tags.add(block.tag)
        spans.append((n_rows, range(first, n_lines + 1) if block.lines == n_block else block.line + first))
        if ids is None:
            doc.append(docs.docs(block))
        else:
            ids.append(block)
        n_rows += n_block
    problems.check()
    problems.check_utf8(not_utf8)
    tag = tags.pop() if len(tags) == 1 else None

    def line_of(row: int) -> int:
        first, lines = spans[bisect_right(spans, row, key=itemgetter(0)) - 1]
        return int(lines[row - first])

    if ids is not None:
        documents = Documents.of_rows(ids)
    else:
        codes = doc.array() if isinstance(doc, _Column) else docs.join(doc) if doc else np.zeros(0, np.int64)
        documents = Documents(codes, docs.ids())
    return Columns(
        np.concatenate(lists or [np.zeros(0, np.int64)]),
        np.append(np.concatenate(starts or [np.zeros(0, np.int64)]), n_rows),
        queries.ids(),
        documents,
        value.array(),
        ranks.array() if has_ranks and n_rows else None,
        None if tag is None else tag.decode(errors="replace"),
        (subtopics.join(subtopic), subtopics.ids()) if subtopic else None,
        line_of,
    )


class _Column:
    """A column that grows block by block, in one piece of memory."""

    def __init__(self, dtype: type):
        self._values: NDArray[Any] = np.empty(0, dtype)
        self._n = 0

    def append(self, part: NDArray[Any]) -> None:
        first, self._n = self._n, self._n + len(part)
        if self._n > len(self._values):
            self._values.resize(max(self._n, 5 * len(self._values) // 4), refcheck=False)
        self._values[first : self._n] = part

    def array(self) -> NDArray[Any]:
        self._values.resize(self._n, refcheck=False)
        return self._values


def parse(
    block: Any, texts: Sequence[Any], problems: Problems, first_line: int, *, ranks: bool = False, tags: bool = False
) -> None:
    """Parse texts of whole lines, with ranks and tags if they are needed; irregular lines are checked and rewritten."""
    layout = problems.layout
    options = len(layout.columns), layout.number, layout.tabs, ranks, tags, layout.tag
    block.parse(texts, *options)
    if len(block.irregular):
        lines = b"".join(texts).split(b"\n")
        block.parse([problems.rewrite(lines, block.irregular.tolist(), first_line)], *options)
        assert not len(block.irregular), "a normalized line is not regular, and its row would be lost"


def find_not_utf8(block: Any) -> list[tuple[str, bytes, int]]:
    """The ids of a block that are not UTF-8: "query" or "document", the id, and the index of its line."""
    lists, rows = block.not_utf8_queries().tolist(), block.not_utf8_docs().tolist()
    if not lists and not rows:
        return []
    offsets, lines = block.offsets, block.line
    found = [("query", block.query(place), int(lines[offsets[place]])) for place in lists]
    return found + [("document", block.doc(row), int(lines[row])) for row in rows]


# -- problems ---------------------------------------------------------------------------------------------------


@dataclass(eq=False, repr=False)
class Problems:
    """The problems of a file, each with its line. Reading stops after `MAX_PROBLEMS`."""

    layout: Layout
    name: str
    strict: bool = False  # stop at the first one
    messages: list[str] = field(default_factory=list)

    def add(self, line: int, problem: str) -> None:
        """Add the problem of a line."""
        self.messages.append(f"{self.name}:{line}: {problem}")
        if self.strict:
            raise InputError(*self.messages)
        if len(self.messages) == MAX_PROBLEMS:
            raise InputError(*self.messages, f"Reading stopped after {MAX_PROBLEMS} problems.")

    def check(self) -> None:
        """Raise if there are problems."""
        if self.messages:
            raise InputError(*self.messages)

    def check_utf8(self, lines: Mapping[tuple[str, bytes], int]) -> None:
        """Raise if ids are not UTF-8: query ids, else document ids, else subtopics; `lines` has the line of each."""
        for kind in ("query", "document", "subtopic"):
            for (what, id), line in lines.items():
                if what == kind:
                    self.add(line, f"the {what} id {id!r} is not UTF-8. Convert the file with iconv.")
            self.check()

    def rewrite(self, lines: list[bytes], irregular: Iterable[int], first_line: int) -> bytes:
        """The lines, with irregular ones normalized; they are left blank if they are not rows or have a problem."""
        for place in irregular:
            line, lines[place] = lines[place], b""
            if self.layout.is_row(line):
                problem = find_problem(line, self.layout)
                if problem is None:
                    lines[place] = self.layout.normalize(line)
                else:
                    self.add(first_line + place, problem)
        return b"\n".join(lines)


def find_problem(line: bytes, layout: Layout) -> str | None:
    """The problem of a line, None if there is none."""
    cells = layout.split(line)
    if b"\0" in line:
        return "a NUL byte. Is this a text file?"
    if has_inner_return(line):
        return RETURN_ADVICE
    if len(cells) != len(layout.columns):
        text = line.strip()[:300].decode(errors="replace")
        text = text if len(text) <= 60 else text[:60] + "…"
        width = len(layout.columns)
        problem = f"{describe_width(len(cells))} instead of {width} ({' '.join(layout.columns)}): {text!r}"
        if layout.tag and len(cells) > width and cells[width - 1] != layout.tag:
            problem += f". The tag is not {layout.tag.decode(errors='replace')!r}: does an id contain a blank?"
        return problem
    texts = dict(zip(layout.columns, (cell.decode(errors="replace") for cell in cells), strict=True))
    number = texts[layout.number]
    advice = _number_advice(number, layout)
    if advice is None:
        return None
    return f"{layout.number} '{number}' for query '{texts['query']}', document '{texts['document']}'. {advice}."


def _number_advice(text: str, layout: Layout) -> str | None:
    """What to do about a number that cannot be read, None if it can."""
    try:
        number = float(text)
    except ValueError:
        if layout.number == "rank":
            return RANK_ADVICE
        if re.fullmatch(r"[-+]?\d+,\d+", text):
            return f"Write a decimal point: {text.replace(',', '.')}"
        if re.fullmatch(r"[-+]?0[xX][0-9a-fA-F.pP+-]+", text):
            return "Write it as a decimal number"
        wrapped = re.fullmatch(r"[\w.]+\((.+)\)", text)  # np.float64(0.5), the repr of NumPy 2
        return f"Write {wrapped[1]} alone" if wrapped else "It is not a number"
    if "_" in text or not text.isascii():
        return "Write digits only"
    if layout.number == "rank" and not (1 <= number < 2**53 and number.is_integer()):
        return RANK_ADVICE
    if math.isnan(number):
        return layout.nan_advice
    if math.isinf(number) and "inf" not in text.lower():
        return "It is too large for float64; scale the numbers"
    if number == 0 and is_nonzero(text.encode()):
        return "It is too small for float64, and would be 0; scale the numbers"
    if layout.number != "rank" and re.fullmatch(r"[-+]?\d+", text) and abs(number) >= 2**53 and int(text) != number:
        return f"Beyond 2**53 an integer has no exact float64, so distinct {layout.number}s would be equal; scale them"
    return "A label is finite" if math.isinf(number) and layout.number == "label" else None
