"""Columns: ids as codes, numbers as float64, and the data frames of others, without importing any of them.

What enters Tiewise from memory passes here once and is checked here.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import count, islice, repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tiewise.errors import InputError
from tiewise.tables.optional import installed, need

__all__ = [
    "Codes",
    "Floats",
    "by_name",
    "descending",
    "encode",
    "frame_columns",
    "frozen",
    "identifier",
    "identifiers",
    "number_problem",
    "numbers",
    "positions",
    "project",
    "sorted_lists",
]

Codes = NDArray[np.int64]
Floats = NDArray[np.float64]


def identifier(value: object, what: str) -> str:
    """An id as text: text stays, integers and bytes are converted, anything else is an error."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.bool_)):
        return str(int(value))
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise InputError(f"The {what} id {value!r} is not UTF-8.") from None
    raise InputError(f"The {what} id {value!r} is a {type(value).__name__}. Ids are text or integers.")


def by_name(runs: Mapping[Any, Any], what: str) -> dict[str, Any]:
    """The runs by their names as text, of which no two may be the same."""
    named: dict[str, Any] = {}
    for given, run in runs.items():
        name = identifier(given, what)
        if name in named:
            raise InputError(f"Two of the {what}s are called '{name}', once as text and once not. Rename one of them.")
        named[name] = run
    return named


def identifiers(values: Iterable[object], what: str) -> list[str]:
    """A column of ids as text, or an error that names the rows of those that cannot be."""
    listing = list(values)
    try:
        return [identifier(value, what) for value in listing]
    except InputError:
        raise InputError(*islice(_not_ids(listing, what), 10)) from None


def _not_ids(listing: list[object], what: str) -> Iterator[str]:
    """What is wrong with ids, row by row. A gap among integers may have made floats of them, so gaps are said alone."""
    gaps = [row for row, value in enumerate(listing) if _is_gap(value)]
    yield from (f"row {row}: the {what} id is missing. Drop the row, or give it one." for row in gaps)
    for row, value in enumerate([] if gaps else listing):
        try:
            identifier(value, what)
        except InputError as error:
            yield f"row {row}: {error}"


def _is_gap(value: object) -> bool:
    """Whether a value stands for none: None, NaN, and what pandas has for them."""
    return type(value).__name__ in ("NoneType", "NAType", "NaTType") or (isinstance(value, float) and value != value)


def encode(values: Any, what: str) -> tuple[Codes, list[str]]:
    """Integer codes and the ids they stand for.

    >>> encode(["b", "a", "b"], "document")
    (array([0, 1, 0]), ['b', 'a'])
    """
    values = _host(values)
    if hasattr(values, "dictionary_encode"):
        coded = _arrow_codes(values, what)
        if coded is not None:
            return coded
        values = (values.cast(values.type.value_type) if hasattr(values.type, "index_type") else values).to_numpy()
    if isinstance(values, np.ndarray) and values.dtype.kind in "iu" and len(values):
        low, high = int(values.min()), int(values.max())
        values = values.astype(np.int64) if high < 2**63 else values
        if high - low > 8 * len(values) + 1024:
            distinct, codes = np.unique(values, return_inverse=True)
            return codes, [str(value) for value in distinct.tolist()]
        seen = np.zeros(high - low + 1, dtype=np.int64)
        seen[values - low] = 1
        return (np.cumsum(seen) - 1)[values - low], [str(low + i) for i in np.flatnonzero(seen).tolist()]
    listing = values.tolist() if hasattr(values, "tolist") else list(values)
    if not set(map(type, listing)) <= {str}:
        listing = identifiers(listing, what)
    index: defaultdict[str, int] = defaultdict(count().__next__)
    codes = np.fromiter(map(index.__getitem__, listing), np.int64, len(listing))
    return codes, list(index)


def _arrow_codes(column: Any, what: str) -> tuple[Codes, list[str]] | None:
    """Codes and ids of a column of text in Arrow, which keeps or makes such codes itself; None if it is another one."""
    arrow = need("pyarrow", "An Arrow table", "arrow")
    column = column if isinstance(column, arrow.ChunkedArray) else arrow.chunked_array([column])
    text = column.type.value_type if arrow.types.is_dictionary(column.type) else column.type
    known = arrow.types.is_string(text) or arrow.types.is_large_string(text)
    if column.null_count or not len(column) or not known:
        return None
    if text == column.type or not _one_dictionary(column):
        column = column.cast(text).dictionary_encode()
    try:
        ids = column.chunk(0).dictionary.to_pylist()
    except UnicodeDecodeError as error:
        raise InputError(f"The {what} id {error.object!r} is not UTF-8.") from None
    chunks = [chunk.indices.to_numpy() for chunk in column.chunks]
    codes = chunks[0] if len(chunks) == 1 else np.concatenate(chunks)
    if len(codes) and not (codes.min() >= 0 and codes.max() < len(ids)):
        raise InputError(f"The column of {what} ids is damaged: it has codes without an id. Make it again.")
    return None if None in ids or len(set(ids)) < len(ids) else (codes, ids)


def _one_dictionary(column: Any) -> bool:
    """Whether all chunks have the same ids, and no more than there are rows."""

    def place(ids: Any) -> tuple[int, int, list[int]]:
        return ids.offset, len(ids), [buffer.address for buffer in ids.buffers() if buffer is not None]

    first, *others = (chunk.dictionary for chunk in column.chunks)
    return len(first) <= len(column) and all(place(one) == place(first) for one in others)


def numbers(values: Any, what: str) -> Floats:
    """A column of numbers as float64; text and integers beyond 2**53 are errors."""
    arrow = hasattr(values, "dictionary_encode")  # what Arrow holds does not change, so it may stay where it is
    array = np.asarray(_host(values))
    if array.ndim != 1:
        raise InputError(f"The {what}s have shape {array.shape}. Give one flat column.")
    if array.dtype.kind in "iu" and len(array) and max(abs(int(array.min())), abs(int(array.max()))) > 2**53:
        raise InputError(
            f"An integer {what} beyond 2**53 has no exact float64, so distinct {what}s would tie. Scale them."
        )
    if array.dtype.kind in "OUSM":
        problems = (number_problem(value, f"row {row}", what) for row, value in enumerate(array.tolist()))
        found = list(islice(filter(None, problems), 10))
        if found:
            raise InputError(*found)
    return array.astype(np.float64, copy=not arrow)


def project(values: Floats, dtype: str) -> Floats:
    """Values rounded to a grid: ``float32``, ``float16``, ``bfloat16``, or ``decimal:n``.

    >>> project(np.array([1.2345678901]), "bfloat16")
    array([1.234375])
    """
    if dtype in ("float32", "float16"):
        with np.errstate(over="ignore"):
            return values.astype(dtype).astype(np.float64)
    if dtype == "bfloat16":  # float32 with half of its bits, rounded to nearest, ties to even
        with np.errstate(over="ignore"):
            bits = values.astype(np.float32).view(np.uint32)
        finite = np.isfinite(values)
        rounded = (bits + (((bits >> 16) & 1) + np.uint32(0x7FFF))) & np.uint32(0xFFFF0000)
        return np.where(finite, rounded, bits).astype(np.uint32).view(np.float32).astype(np.float64)
    decimals = re.fullmatch(r"decimal:([0-9]|1[0-5])", str(dtype))
    if decimals:
        with np.errstate(over="ignore"):  # numbers without decimals stay, however large
            return np.where(np.abs(values) < 2.0**53, np.round(values, int(decimals[1])), values)
    raise InputError(
        f"Unknown score_dtype {dtype!r}. Use 'float32', 'float16', 'bfloat16' or 'decimal:n' (n decimals, at most 15)."
    )


def positions(index: Mapping[str, int], ids: Iterable[str]) -> Codes:
    """The position of each id in an index, −1 where it has none."""
    return np.fromiter(map(index.get, ids, repeat(-1)), np.int64)


def descending(values: Floats, offsets: Codes) -> bool:
    """Whether each segment of `values` never rises."""
    inside = np.ones(len(values) + 1, dtype=bool)
    inside[offsets] = False
    return not (inside[1:-1] & (values[1:] > values[:-1])).any()


def sorted_lists(values: Floats, offsets: Codes) -> Floats:
    """Each segment of `values` in descending order, lists of one length at a time."""
    ordered = np.empty_like(values)
    lengths = np.diff(offsets)
    for length in set(lengths.tolist()):
        rows = offsets[:-1][lengths == length][:, None] + np.arange(length)
        ordered[rows] = -np.sort(-values[rows], axis=1)
    return ordered


def frame_columns(frame: Any) -> dict[str, Callable[[], Any]]:
    """The columns of any data frame by name, each as a function that fetches it."""
    if hasattr(frame, "collect") and hasattr(frame, "collect_schema"):  # a polars LazyFrame
        frame = frame.collect()
    names = getattr(frame, "columns", None)
    if names is not None and all(isinstance(name, str) for name in names):

        def fetch(name: str) -> Any:
            column = frame[name]
            if hasattr(column, "to_arrow") and (arrow := installed("pyarrow")):  # polars
                column = arrow.chunked_array([column.to_arrow()])
            if hasattr(column, "dictionary_encode"):  # Arrow
                return column
            return column.to_numpy() if hasattr(column, "to_numpy") else column

        return {name: partial(fetch, name) for name in names}
    if hasattr(frame, "__arrow_c_stream__"):
        arrow = need("pyarrow", "An Arrow table", "arrow")
        table = frame if isinstance(frame, arrow.Table) else arrow.table(frame)
        return {name: partial(table.column, name) for name in table.column_names}
    raise InputError(f"A {type(frame).__name__} is no data frame: it has neither named columns nor Arrow data.")


def _host(values: Any) -> Any:
    """Torch tensors of any device and type as NumPy; anything else as it is."""
    if hasattr(values, "detach") and hasattr(values, "cpu"):
        values = values.detach().cpu()
        return values.double().numpy() if values.is_floating_point() else values.numpy()
    return values


def number_problem(value: object, where: str, what: str) -> str | None:
    """What is wrong with a value that should be a number, if anything is."""
    try:
        number = float("text" if isinstance(value, (str, bytes)) else value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        text = isinstance(value, (str, bytes)) and _says_number(value)
        return f"{where}: {what} {value!r} is {'text, not a number' if text else 'no number'}."
    except OverflowError:
        number = math.inf
    if isinstance(value, (int, np.integer)) and (math.isinf(number) or int(number) != int(value)):
        return (
            f"{where}: {what} {value} is an integer without an exact float64 (beyond 2**53), so distinct {what}s would "
            "tie. Scale them."
        )
    return None


def _says_number(text: str | bytes) -> bool:
    try:
        return not math.isnan(float(text))
    except ValueError:
        return False


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """The same array, seen so that it cannot be written to."""
    view = array.view()
    view.flags.writeable = False
    return view
