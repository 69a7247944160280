"""The table of precisions on the page: a result of `precisions` or `reranker_precisions`, or the JSON of either."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from typing import Any, TypeAlias, get_args

from tiewise.errors import InputError
from tiewise.io.compression import PathLike, opened
from tiewise.scoring.precision_trials import Precisions
from tiewise.scoring.precision_trials.result import Verdict

__all__ = ["PrecisionsLike", "resolve_precisions"]

#: A table of precisions, what its `to_dict` gave, or a JSON file with it.
PrecisionsLike: TypeAlias = "Precisions | Mapping[str, Any] | PathLike"

#: What every row has: texts, and numbers.
TEXTS = ("setup", "measure")
NUMBERS = (
    *("expected", "minimum", "maximum", "difference", "difference_low", "difference_high"),
    *("lower", "upper", "losing", "rbo", "tied_share"),
)
VERDICTS = (None, *get_args(Verdict))


def resolve_precisions(given: PrecisionsLike) -> dict[str, Any]:
    """The table as plain values, with the rows of its first measure."""
    if isinstance(given, Precisions):
        document: Any = given.to_dict()
    elif isinstance(given, Mapping):
        document = given
    elif isinstance(given, (str, os.PathLike)):
        document = _read(given)
    else:
        raise InputError(f"precisions must be a result of tw.precisions, or a file of it, not {given!r}.")
    name = f"{os.fspath(given)}: " if isinstance(given, (str, os.PathLike)) else ""
    problem = _find_problem(document)
    if problem:
        raise InputError(
            f"{name}is not a table of precisions: {problem}. `tiewise precisions ... -o FILE.json` writes one."
        )
    first = document["rows"][0]["measure"]
    keys: dict[str, Any] = {"has_judgments": True, "max_loss": None, "sentence": None, "choice": None, "notes": []}
    return {**keys, **document, "measure": first, "rows": [row for row in document["rows"] if row["measure"] == first]}


def _read(path: PathLike) -> Any:
    with opened(path) as stream:
        try:
            return json.loads(stream.read())
        except ValueError:
            raise InputError(
                f"{os.fspath(path)}: is not JSON. `tiewise precisions ... -o FILE.json` writes it."
            ) from None


def _find_problem(document: Any) -> str:
    """What a document lacks; empty if nothing."""
    rows = document.get("rows") if isinstance(document, Mapping) else None
    if not isinstance(rows, list) or not all(isinstance(row, Mapping) for row in rows):
        return "it has no list 'rows'"
    numbers = (*NUMBERS, *(["bytes"] if rows and "bytes" in rows[0] else []))
    for place, row in enumerate(rows):
        for key in TEXTS:
            if not isinstance(row.get(key), str):
                return f"row {place} has no text '{key}'"
        for key in numbers:
            if not _is_number(row.get(key)):
                return f"row {place} has no number '{key}'"
        if row.get("bytes", 1) <= 0 or row.get("verdict") not in VERDICTS:
            return f"row {place} has bytes {row.get('bytes')!r} and the verdict {row.get('verdict')!r}"
    if len([row for row in rows if row["measure"] == rows[0]["measure"]]) < 2:
        return "it has less than two rows of its first measure"
    loss = document.get("max_loss")
    return "" if loss is None or _is_number(loss) else "'max_loss' is not a number"


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
