"""Formats for programs: TSV and CSV, JSON Lines, and plain values as one JSON document.

TSV, CSV and JSON Lines have the rows of a table, some thousand at a time, so that a million queries need little memory.
A value that does not apply is an empty cell, or null.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby, islice, repeat
from types import NoneType
from typing import Any

import numpy as np

from tiewise.results.base import Result
from tiewise.results.model import BLOCK_ROWS, Block, Table


def render_tsv(table: Table, digits: int | None = None) -> Iterator[str]:
    """The rows as TSV; `digits` after the point, or numbers in full precision.

    >>> "".join(render_tsv(Table.of_columns({"a": [0.25], "b": ["tab\\there"]})))
    'a\\tb\\n0.25\\ttab\\\\there\\n'
    """
    # TSV has no quotes: characters that would end a cell are written as in JSON and MySQL
    escapes = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})

    def write(value: Any) -> str:
        return _text(value, digits).translate(escapes)

    yield "\t".join(write(column.name) for column in table.columns) + "\n"
    for block in table.blocks():
        ends = [*["\t"] * (len(block.columns) - 1), "\n"]
        yield _join(chain(*zip(_texts(block, write), ends, strict=True)), block.n_rows)


def render_csv(table: Table, digits: int | None = None) -> Iterator[str]:
    """The rows as CSV, in the same way. Text that a spreadsheet would run as a formula gets an apostrophe before it.

    >>> "".join(render_csv(Table.of_columns({"id": ["=1+1", "-5"], "value": [-0.25, 1.0]})))
    "id,value\\n'=1+1,-0.25\\n-5,1.0\\n"
    """
    import csv

    def write(value: Any) -> str:
        cell = _text(value, digits)
        return f"'{cell}" if _is_formula(cell) else cell

    names = Block(1, [column.name for column in table.columns])
    for block in chain([names], table.blocks()):
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

    def write(value: Any) -> str:
        return encode(round_floats(value, digits))

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
    end = "\n"

    def found() -> Iterator[tuple[str, Any]]:
        nonlocal end
        end = (yield from _json_values(document, "", "\n", encode)) + end

    pairs = found()
    while block := list(islice(pairs, BLOCK_ROWS)):
        texts, values = zip(*block, strict=True)
        lines = encode(round_floats(list(values), digits))[1:-1].split("\n")
        yield "".join(chain.from_iterable(zip(texts, lines, strict=True)))
    yield end


def _json_values(
    value: Any, before: str, line: str, encode: Callable[[Any], str]
) -> Generator[tuple[str, Any], None, str]:
    """The values that hold no others, each with the text before it; the text after the last is returned.

    `before` stands before the value, and `line` begins a line of its container.
    """
    if isinstance(value, Result) and not isinstance(value, Mapping):
        value = value.to_dict()
    if isinstance(value, Mapping):
        brackets, keys, items = "{}", (f"{encode(key)}: " for key in value), value.values()
    elif isinstance(value, (list, tuple)):
        brackets, keys, items = "[]", repeat(""), value
    else:
        yield before, value
        return ""
    if not value:
        return before + brackets
    inner = line + "  "
    text, between = before + brackets[0] + inner, "," + inner
    for key, one in zip(keys, items):  # noqa: B905  # a list has no keys
        if isinstance(one, _PLAIN):
            yield text + key, one
            text = between
        else:
            text = (yield from _json_values(one, text + key, inner, encode)) + between
    return text.removesuffix(between) + line + brackets[1]


_PLAIN = (str, float, int, NoneType)


def round_floats(value: Any, digits: int | None) -> Any:
    """All numbers of nested lists and dictionaries rounded to some digits; None leaves them as they are."""
    if digits is None:
        return value
    if isinstance(value, float):
        return round(value, digits)
    if isinstance(value, dict):
        return {key: round_floats(one, digits) for key, one in value.items()}
    return [round_floats(one, digits) for one in value] if isinstance(value, list) else value


def _text(value: Any, digits: int | None) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return repr(value) if digits is None else f"{value:.{digits}f}"
    return str(value)


def _texts(block: Block, write: Callable[[Any], str]) -> list[str | Sequence[str]]:
    """Each column as `write` writes its values: a text for each row, or one that all rows have.

    Each number of the arrays is written once: without ties a query has the same one in several columns.
    """
    arrays = [column for column in block.columns if isinstance(column, np.ndarray)]
    if arrays:
        bits, places = np.unique(np.stack(arrays).view(np.int64), return_inverse=True)  # 0.0 is not -0.0
        known = [write(None if number != number else number) for number in bits.view(np.float64).tolist()]
        written = iter(np.array(known, dtype=object)[places].reshape(len(arrays), -1).tolist())

    def texts(column: Any) -> str | Sequence[str]:
        if isinstance(column, np.ndarray):
            return next(written)
        return list(map(write, column)) if isinstance(column, list) else write(column)

    return [texts(column) for column in block.columns]


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
