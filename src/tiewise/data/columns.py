"""Columns of ids and numbers: checks and conversions of data in memory.

Ids become codes, numbers become float64. Data frames are read without importing their libraries.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import count, islice, repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tiewise.errors import InputError, warn
from tiewise.results.optional import installed, need

Codes = NDArray[np.int64]
Floats = NDArray[np.float64]

#: The option that gives the ids of rows, in Python and in the shell.
ID_OPTIONS = {"query": "query_ids (--query-ids)", "document": "doc_ids (--doc-ids)"}

MAX_ID = 64  # longer text is not an id, unless something says so
MAX_PROBLEMS = 10  # problems that an error lists

# glibc returns an array to the system when it is freed, unless a larger one (below 32 MiB) was freed before. So
# temporary arrays reuse memory from here on; otherwise each would cost a page fault for every 4 KiB.
np.empty(1 << 24, np.uint8)


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


def look_like_ids(values: Iterable[object]) -> bool:
    """Whether values may be ids, and no texts: integers, or short text without blanks.

    >>> look_like_ids(["d1", 7]), look_like_ids(["a text"])
    (True, False)
    """
    return all(
        isinstance(one, (str, int)) and not isinstance(one, bool) and re.fullmatch(rf"\S{{1,{MAX_ID}}}", str(one))
        for one in values
    )


def by_name(runs: Mapping[Any, Any], what: str) -> dict[str, Any]:
    """The runs with their names as text. Names must be unique."""
    named: dict[str, Any] = {}
    for key, run in runs.items():
        name = identifier(key, what)
        if name in named:
            raise InputError(f"Two of the {what}s are called '{name}', one as text and one not. Rename one of them.")
        named[name] = run
    return named


def identifiers(values: Iterable[object], what: str) -> list[str]:
    """A column of ids as text. Errors name the rows."""
    listing = list(values)
    try:
        return [identifier(value, what) for value in listing]
    except InputError:
        raise InputError(*islice(_id_problems(listing, what), MAX_PROBLEMS)) from None


def _id_problems(listing: list[object], what: str) -> Iterator[str]:
    """The problems of ids by row. Missing ids are reported alone: pandas turns integers into floats because of them."""
    missing = [row for row, value in enumerate(listing) if _is_missing(value)]
    yield from (f"row {row}: the {what} id is missing. Drop the row, or give it one." for row in missing)
    for row, value in enumerate([] if missing else listing):
        try:
            identifier(value, what)
        except InputError as error:
            yield f"row {row}: {error}"


def _is_missing(value: object) -> bool:
    """Whether a value is None, NaN, or a missing value of pandas."""
    return type(value).__name__ in ("NoneType", "NAType", "NaTType") or (isinstance(value, float) and value != value)


def encode(values: Any, what: str) -> tuple[Codes, list[str]]:
    """Integer codes, and the ids by code.

    >>> encode(["b", "a", "b"], "document")
    (array([0, 1, 0]), ['b', 'a'])
    """
    values = to_host(values)
    if hasattr(values, "dictionary_encode"):
        check_arrow(values, f"The column of {what} ids")
        coded = _arrow_codes(values)
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


def check_arrow(column: Any, what: str) -> None:
    """Raise if an Arrow column is damaged: Arrow itself reads beyond its memory if an offset or a code is wrong."""
    arrow = need("pyarrow", "An Arrow table", "arrow")
    try:
        column.validate(full=True)
    except arrow.ArrowException as error:
        problem = str(error).splitlines()[0].rpartition("Invalid: ")[2].rstrip(".")
        raise InputError(f"{what} is damaged ({problem}). Create it again.") from None


def _arrow_codes(column: Any) -> tuple[Codes, list[str]] | None:
    """Codes and ids of an Arrow column, encoded by Arrow; None if its values are not text or are missing."""
    arrow = need("pyarrow", "An Arrow table", "arrow")
    column = column if isinstance(column, arrow.ChunkedArray) else arrow.chunked_array([column])
    text = column.type.value_type if arrow.types.is_dictionary(column.type) else column.type
    is_text = arrow.types.is_string(text) or arrow.types.is_large_string(text)
    if column.null_count or not len(column) or not is_text:
        return None
    if text == column.type or not _one_dictionary(column):
        column = column.cast(text).dictionary_encode()
    ids = column.chunk(0).dictionary.to_pylist()
    chunks = [chunk.indices.to_numpy() for chunk in column.chunks]
    codes = chunks[0] if len(chunks) == 1 else np.concatenate(chunks)
    return None if None in ids or len(set(ids)) < len(ids) else (codes, ids)


def _one_dictionary(column: Any) -> bool:
    """Whether all chunks have the same dictionary, with at most as many ids as rows."""

    def address(ids: Any) -> tuple[int, int, list[int]]:
        return ids.offset, len(ids), [buffer.address for buffer in ids.buffers() if buffer is not None]

    first, *others = (chunk.dictionary for chunk in column.chunks)
    return len(first) <= len(column) and all(address(other) == address(first) for other in others)


def numbers(values: Any, what: str) -> Floats:
    """A column of numbers as float64; text and integers beyond 2**53 are errors."""
    arrow = hasattr(values, "dictionary_encode")  # Arrow's memory does not change, so it need not be copied
    host = to_host(values)
    try:
        array = np.asarray(host)
    except ValueError:  # lists among numbers
        array = np.asarray(host, dtype=object)
    if array.ndim != 1:
        raise InputError(f"The {what}s have shape {array.shape}. Give one flat column.")
    if array.dtype.kind in "iu" and len(array) and max(abs(int(array.min())), abs(int(array.max()))) > 2**53:
        raise InputError(
            f"An integer {what} beyond 2**53 has no exact float64, so distinct {what}s would tie. Scale them."
        )
    if array.dtype.kind in "cm":
        raise InputError(f"The {what}s are {array.dtype}, not real numbers.")
    if array.dtype.kind in "OUSM":
        check_each(what, ((f"row {row}", value) for row, value in enumerate(array.tolist())))
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
        with np.errstate(over="ignore"):  # numbers from 2**53 on have no decimals
            return np.where(np.abs(values) < 2.0**53, np.round(values, int(decimals[1])), values)
    raise InputError(
        f"Unknown score_dtype {dtype!r}. Use 'float32', 'float16', 'bfloat16' or 'decimal:n' (n decimals, at most 15)."
    )


def positions(index: Mapping[str, int], ids: Iterable[str]) -> Codes:
    """The position of each id in an index, −1 where it has none."""
    return np.fromiter(map(index.get, ids, repeat(-1)), np.int64)


def ranges(starts: Codes, lengths: Codes) -> Codes:
    """The integers of many ranges, one after another.

    >>> ranges(np.array([7, 3]), np.array([2, 3]))
    array([7, 8, 3, 4, 5])
    """
    ends = np.cumsum(lengths)
    flat: Codes = np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts - (ends - lengths), lengths)
    return flat


def is_first(*columns: NDArray[Any]) -> NDArray[np.bool_]:
    """Whether each element begins a segment: it differs from the one before it in one of the columns.

    >>> is_first(np.array([1, 1, 1, 2]), np.array([0.5, 0.5, 0.25, 0.25]))
    array([ True, False,  True,  True])
    """
    first = np.ones(len(columns[0]), dtype=bool)
    np.not_equal(columns[0][1:], columns[0][:-1], out=first[1:])
    for column in columns[1:]:
        first[1:] |= column[1:] != column[:-1]
    return first


def heads(*columns: NDArray[Any]) -> Codes:
    """For each element, where its segment begins: see `is_first`.

    >>> heads(np.array([4, 4, 7]))
    array([0, 0, 2])
    """
    first = is_first(*columns)
    head: Codes = first.nonzero()[0][first.cumsum() - 1]
    return head


def split_segments(offsets: Codes, size: int) -> Iterator[slice]:
    """Segments in parts of at most `size` elements, or of one segment.

    >>> list(split_segments(np.array([0, 2, 3, 9]), 4))
    [slice(0, 2, None), slice(2, 3, None)]
    """
    first, n = 0, len(offsets) - 1
    while first < n:
        last = max(int(np.searchsorted(offsets, offsets[first] + size, side="right")) - 1, first + 1)
        yield slice(first, last)
        first = last


def is_descending(values: Floats, offsets: Codes) -> bool:
    """Whether no segment of `values` rises."""
    inside = np.ones(len(values) + 1, dtype=bool)
    inside[offsets] = False
    return not (inside[1:-1] & (values[1:] > values[:-1])).any()


def sort_lists(values: Floats, offsets: Codes) -> Floats:
    """Each segment of `values` in descending order."""
    ordered = np.empty_like(values)
    for rows in _of_equal_length(offsets):
        ordered[rows] = -np.sort(-values[rows], axis=1)
    return ordered


def order_lists(values: Floats, offsets: Codes) -> Codes:
    """The order that sorts each segment of `values` so; equal values keep their order.

    >>> order_lists(np.array([0.5, 0.9, 0.5, 0.1, 0.2]), np.array([0, 3, 5]))
    array([1, 0, 2, 4, 3])
    """
    order = np.empty(len(values), dtype=np.int64)
    for rows in _of_equal_length(offsets):
        order[rows] = rows[:, :1] + np.argsort(-values[rows], axis=1, kind="stable")
    return order


def _of_equal_length(offsets: Codes) -> Iterator[Codes]:
    """The elements of segments that are sorted together, (n_segments, length)."""
    lengths = np.diff(offsets)
    for length in set(lengths.tolist()) - {0}:
        yield offsets[:-1][lengths == length][:, None] + np.arange(length)


def frame_columns(frame: Any) -> tuple[list[str], Callable[[str], Any]]:
    """The names of the columns of any data frame, and a function that fetches one of them."""
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

        return list(names), fetch
    if hasattr(frame, "__arrow_c_stream__"):
        arrow = need("pyarrow", "An Arrow table", "arrow")
        table = frame if isinstance(frame, arrow.Table) else arrow.table(frame)
        return table.column_names, table.column
    raise InputError(f"A {type(frame).__name__} is not a data frame: it has neither named columns nor Arrow data.")


def to_host(values: Any) -> Any:
    """A torch tensor as a NumPy array; other values unchanged. A masked value is an error, since NumPy drops masks."""
    if hasattr(values, "detach") and hasattr(values, "cpu"):
        values = values.detach().cpu()
        return values.double().numpy() if values.is_floating_point() else values.numpy()
    masked = np.argwhere(getattr(values, "mask", False)).tolist() if isinstance(values, np.ndarray) else []
    if masked:
        raise InputError(f"The value at {masked[0]} is masked, one of {len(masked):,}. Drop or fill them.")
    return values


def check_each(what: str, values: Iterable[tuple[str, object]]) -> None:
    """Raise if a value is not a number that float64 holds; each value comes with its place for the message."""
    problems = filter(None, (_number_problem(value, where, what) for where, value in values))
    messages = list(islice(problems, MAX_PROBLEMS))
    if messages:
        raise InputError(*messages)


def _number_problem(value: object, where: str, what: str) -> str | None:
    """The problem of a value that should be a number, None if there is none."""
    try:
        number = float("text" if isinstance(value, (str, bytes)) else value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        if isinstance(value, (str, bytes)) and _is_number(value):
            return f"{where}: {what} {value!r} is text, not a number. Convert the {what}s: float({what})."
        is_list = isinstance(value, (list, tuple))
        advice = ' Write a list of results as {query: [{"id": …, "score": …}, …]}.' if is_list else ""
        if isinstance(value, Mapping) and what == "score":
            advice = " If these are several runs by name, evaluate each, or give them to compare."
        return f"{where}: {what} {value!r:.60} is not a number.{advice}"
    except OverflowError:
        number = math.inf
    if isinstance(value, (int, np.integer)) and (math.isinf(number) or int(number) != int(value)):
        return (
            f"{where}: {what} {value} is an integer without an exact float64 (beyond 2**53), so distinct {what}s would "
            "tie. Scale them."
        )
    return None


def _is_number(text: str | bytes) -> bool:
    try:
        return not math.isnan(float(text))
    except ValueError:
        return False


def freeze(array: NDArray[Any]) -> NDArray[Any]:
    """A read-only view of an array; one that is read-only as it is."""
    if not array.flags.writeable:
        return array
    view = array.view()
    view.flags.writeable = False
    return view


def warn_of_row_numbers(what: str, judged: Collection[str]) -> None:
    """Warn if row numbers are the ids of queries or documents, and judged ids count up, but from 1.

    Few judged documents need not have the first one, 0: most numbers up to the largest must be judged.
    """
    numbers = {int(name) for name in judged if name.isdecimal()}
    if numbers and 0 not in numbers and 2 * len(numbers) > max(numbers):
        warn(
            f"{what.capitalize()} ids were not given: rows are numbered from 0, but {what} '0' is not judged. If the "
            f"judgments have other ids, give {ID_OPTIONS[what]}."
        )
