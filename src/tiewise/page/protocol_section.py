"""The section of the page on a protocol: a result of `protocol`, or its JSON."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from typing import Any, TypeAlias, get_args

from tiewise.analysis.protocol_result import Protocol, Verdict
from tiewise.errors import InputError
from tiewise.figures.protocols import first_rows
from tiewise.io.compression import PathLike, opened
from tiewise.ties.orders import name_order

#: A protocol, what its `to_dict` gave, or a JSON file with it.
ProtocolLike: TypeAlias = "Protocol | Mapping[str, Any] | PathLike"

#: What every row has: texts, numbers, and numbers that may be missing.
TEXTS = ("row", "measure")
NUMBERS = ("expected", "range", "difference", "lower", "upper", "differs")
OPTIONAL = ("oblivious", "bias", "ci_low", "ci_high", "tied_share", "bytes")
VERDICTS = (None, *get_args(Verdict))


def resolve_protocol(given: ProtocolLike) -> dict[str, Any] | None:
    """The protocol as plain values, with the rows of its first measure, the reference first; None if it has one row."""
    if isinstance(given, Protocol):
        document: Any = given.to_dict()
    elif isinstance(given, Mapping):
        document = given
    elif isinstance(given, (str, os.PathLike)):
        document = _read(given)
    else:
        raise InputError(f"protocol must be a result of tw.protocol, or a file of it, not {given!r}.")
    name = f"{os.fspath(given)}: " if isinstance(given, (str, os.PathLike)) else ""
    problem = _find_problem(document)
    if problem:
        raise InputError(f"{name}is not a protocol: {problem}. `tiewise protocol ... -o FILE.json` writes one.")
    rows = first_rows(document)
    if len(rows) == 1:
        return None  # there is nothing to compare
    order = document.get("oblivious")
    keys: dict[str, Any] = {"max_loss": None, "sentence": None, "choice": None, "notes": []}
    return {
        **keys,
        "order": name_order(order) if isinstance(order, str) else "one order of ties",
        **document,
        "measure": rows[0]["measure"],
        "rows": rows,
        "has_bytes": all(row["bytes"] for row in rows),
    }


def _read(path: PathLike) -> Any:
    with opened(path) as stream:
        try:
            return json.loads(stream.read())
        except ValueError:
            raise InputError(
                f"{os.fspath(path)}: is not JSON. `tiewise protocol ... -o FILE.json` writes it."
            ) from None


def _find_problem(document: Any) -> str:
    """What a document lacks; empty if nothing."""
    rows = document.get("rows") if isinstance(document, Mapping) else None
    if not isinstance(rows, list) or not rows or not all(isinstance(row, Mapping) for row in rows):
        return "it has no list 'rows', or an empty one"
    for place, row in enumerate(rows):
        for key in TEXTS:
            if not isinstance(row.get(key), str):
                return f"row {place} has no text '{key}'"
        for key in (*NUMBERS, *OPTIONAL):
            if not (_is_number(row.get(key)) or (key in OPTIONAL and key in row and row[key] is None)):
                return f"row {place} has no number '{key}'"
        if (row["bytes"] or 1) <= 0 or row.get("verdict") not in VERDICTS:
            return f"row {place} has bytes {row['bytes']!r} and the verdict {row.get('verdict')!r}"
    first = [row["row"] for row in rows if row["measure"] == rows[0]["measure"]]
    if document.get("reference") not in first:
        return "its reference is not one of its rows"
    loss = document.get("max_loss")
    return "" if loss is None or _is_number(loss) else "'max_loss' is not a number"


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
