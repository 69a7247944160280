"""Formats for programs: TSV and CSV, JSON Lines, and plain values as one JSON document.

TSV, CSV and JSON Lines have the rows of a table, some thousand at a time, so that a million queries need little memory.
A value that does not apply is an empty cell, or null.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, groupby, repeat
from types import NoneType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tiewise.results.base import Result
from tiewise.results.model import BLOCK_ROWS, Block, Table


def render_tsv(table: Table, digits: int | None = None) -> Iterator[str]:
    """The rows as TSV; `digits` after the point, or numbers in full precision.

    >>> "".join(render_tsv(Table.of_columns({"a": [0.25], "b": ["tab\\there"]})))
    'a\\tb\\n0.25\\ttab\\\\there\\n'
    """
    # TSV has no quotes: characters that would end a cell are written as in JSON and MySQL
    escapes = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})
    has_escape = re.compile(r"[\\\t\n\r]").search

    def write(values: Sequence[Any]) -> list[str]:
        texts = [_text(value, digits) for value in values]
        return [text.translate(escapes) for text in texts] if has_escape("".join(texts)) else texts

    for block in chain([_name_row(table)], table.blocks()):
        ends = [*["\t"] * (len(block.columns) - 1), "\n"]
        yield _join(chain(*zip(_texts(block, write), ends, strict=True)), block.n_rows)


def render_csv(table: Table, digits: int | None = None) -> Iterator[str]:
    """The rows as CSV, in the same way. Text that a spreadsheet would run as a formula gets an apostrophe before it.

    >>> "".join(render_csv(Table.of_columns({"id": ["=1+1", "-5"], "value": [-0.25, 1.0]})))
    "id,value\\n'=1+1,-0.25\\n-5,1.0\\n"
    """
    import csv

    def write(values: Sequence[Any]) -> list[str]:
        cells = [_text(value, digits) for value in values]
        return [f"'{cell}" if _is_formula(cell) else cell for cell in cells]

    for block in chain([_name_row(table)], table.blocks()):
        out, texts = io.StringIO(), _texts(block, write)
        columns = (repeat(text, block.n_rows) if isinstance(text, str) else text for text in texts)
        csv.writer(out, lineterminator="\n").writerows(zip(*columns, strict=True))
        yield out.getvalue()


def _is_formula(cell: str) -> bool:
    """Whether a spreadsheet takes a cell for a formula."""
    if not cell.lstrip().startswith(("=", "@", "+", "-")):
        return False
    try:
        float(cell)
    except ValueError:
        return True
    return False


def render_json_lines(table: Table, digits: int | None = None) -> Iterator[str]:
    """Each row as an object on a line of its own."""
    import json

    encode = json.JSONEncoder(ensure_ascii=False).encode

    def write(values: Sequence[Any]) -> list[str]:
        return [encode(round_floats(value, digits)) for value in values]

    names = [f"{', ' if place else '{'}{encode(column.name)}: " for place, column in enumerate(table.columns)]
    for block in table.blocks():
        yield _join([*chain(*zip(names, _texts(block, write), strict=True)), "}\n"], block.n_rows)


def render_json(document: Any, digits: int | None = None) -> Iterator[str]:
    """Plain values as one indented document; results in it become plain one at a time.

    >>> print("".join(render_json({"a": [0.125, None], "b": {}}, 2)), end="")
    {
      "a": [
        0.12,
        null
      ],
      "b": {}
    }
    """
    import json

    # The library is slow at indentation: here it encodes the values of a block as one list, a line for each.
    encode = json.JSONEncoder(ensure_ascii=False, separators=("\n", ": ")).encode
    texts: list[str] = []  # what stands before each value
    values: list[Any] = []  # those that hold no others

    @lru_cache(maxsize=1000)  # most keys are names of fields
    def name(key: str) -> str:
        return f"{encode(key)}: "

    def take() -> str:
        lines = encode(round_floats(values, digits))[1:-1].split("\n") if values else []
        block = "".join(chain.from_iterable(zip(texts, lines, strict=True)))
        texts.clear()
        values.clear()
        return block

    def add(value: Any, text: str, line: str) -> Generator[str, None, str]:
        """Add a value after a text, and yield full blocks; the text after it is returned. `line` begins its line."""
        if isinstance(value, Result) and not isinstance(value, Mapping):
            value = value.to_dict()
        items: Iterable[tuple[str, Any]]
        if isinstance(value, Mapping):
            brackets, items = "{}", zip(map(name, value), value.values(), strict=True)
        elif isinstance(value, (list, tuple)):
            brackets, items = "[]", zip(repeat(""), value, strict=False)
        else:
            texts.append(text)
            values.append(value)
            return ""
        if not value:
            return text + brackets
        inner = f"{line}  "
        between = f",{inner}"
        text += brackets[0] + inner
        for key, one in items:
            if isinstance(one, _PLAIN):
                texts.append(text + key)
                values.append(one)
                text = between
            else:
                text = (yield from add(one, text + key, inner)) + between
        if len(values) >= BLOCK_ROWS:
            yield take()
        return text.removesuffix(between) + line + brackets[1]

    end = yield from add(document, "", "\n")
    yield f"{take()}{end}\n"


_PLAIN = (str, float, int, NoneType)


def round_floats(value: Any, digits: int | None) -> Any:
    """All numbers of nested lists and dictionaries rounded to some digits; None leaves them as they are."""
    if digits is None:
        return value
    if isinstance(value, float):
        return round(value, digits)
    if isinstance(value, dict):
        return {key: round_floats(one, digits) for key, one in value.items()}
    return [round_floats(one, digits) for one in value] if isinstance(value, (list, tuple)) else value


def _text(value: Any, digits: int | None) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        return repr(value) if digits is None else f"{value:.{digits}f}"
    return "" if value is None else str(value)


def _name_row(table: Table) -> Block:
    return Block(1, [column.name for column in table.columns])


def _texts(block: Block, write: Callable[[Sequence[Any]], list[str]]) -> list[str | Sequence[str]]:
    """Each column as `write` writes its values: a text for each row, or one that all rows have.

    Each number of the arrays is written once: without ties a query has the same one in several columns.
    """
    columns = [_shared_number(column) if isinstance(column, np.ndarray) else column for column in block.columns]
    arrays = [column for column in columns if isinstance(column, np.ndarray)]
    if arrays:
        bits, places = np.unique(np.stack(arrays).view(np.int64), return_inverse=True)  # 0.0 is not -0.0
        known = write([None if number != number else number for number in bits.view(np.float64).tolist()])
        written = iter(np.array(known, dtype=object)[places].reshape(len(arrays), -1).tolist())

    def texts(column: Any) -> str | Sequence[str]:
        if isinstance(column, np.ndarray):
            return next(written)
        return write(column) if isinstance(column, list) else write([column])[0]

    return [texts(column) for column in columns]


def _shared_number(column: NDArray[np.float64]) -> NDArray[np.float64] | float | None:
    """The number that all rows have; the column itself if they differ."""
    bits = column.view(np.int64)
    if (bits != bits[0]).any():
        return column
    return None if np.isnan(column[0]) else float(column[0])


def _join(parts: Iterable[str | Sequence[str]], n_rows: int) -> str:
    """The parts of all rows, one row after the other; a part is a text for each row, or one that all rows have.

    >>> _join(["{", ["a", "b"], " ", "= 1}"], 2)
    '{a = 1}{b = 1}'
    """
    columns: list[Iterable[str]] = []
    for is_text, some in groupby(parts, lambda part: isinstance(part, str)):
        found = list(some)
        columns += [repeat("".join(map(str, found)), n_rows)] if is_text else found
    return "".join(chain.from_iterable(zip(*columns, strict=True)))
