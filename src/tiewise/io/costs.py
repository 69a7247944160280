"""What the stages of a search take: ``{"bm25": 1.2, "dense": {"10": 3.0}, "rerank": 0.4}`` as JSON, or lines of text.

A line holds a system and its cost, or a system, a depth and the cost at that depth, parted by blanks or commas. What
follows ``#`` is a remark.
"""

from __future__ import annotations

import json
import re
from typing import Any

from tiewise.errors import InputError
from tiewise.io.streams import PathLike, opened

__all__ = ["read_costs"]

Costs = dict[str, float | dict[int, float]]


def read_costs(path: PathLike) -> Costs:
    """The costs in a file, by system, and by depth where they differ."""
    with opened(path) as stream:
        data, name = stream.read(), stream.name
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{name}: is not UTF-8 text.") from None
    costs = _from_json(text, name) if text.lstrip().startswith("{") else _from_lines(text, name)
    if not costs:
        raise InputError(f"{name}: holds no costs. Write a line 'bm25 1.2' for each system, and 'rerank 0.4'.")
    return costs


def _from_json(text: str, name: str) -> Costs:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise InputError(f"{name}: is no JSON ({error}).") from None
    return {
        system: {_depth(depth, name): _cost(one, name) for depth, one in cost.items()}
        if isinstance(cost, dict)
        else _cost(cost, name)
        for system, cost in found.items()
    }


def _from_lines(text: str, name: str) -> Costs:
    costs: Costs = {}
    for number, line in enumerate(text.splitlines(), start=1):
        words, where = re.split(r"[\s,]+", line.partition("#")[0].strip()), f"{name}:{number}"
        if words == [""] or (not costs and words[0] == "system" and words[-1] == "cost"):  # a blank line or the heads
            continue
        if len(words) not in (2, 3):
            raise InputError(f"{where}: {len(words)} words. Expected a system, perhaps a depth, and a cost.")
        system, cost = words[0], _cost(words[-1], where)
        known = costs.setdefault(system, {} if len(words) == 3 else cost)
        if len(words) == 3 and isinstance(known, dict) and (depth := _depth(words[1], where)) not in known:
            known[depth] = cost
        elif known is not cost:
            raise InputError(f"{where}: '{system}' has a cost already. Keep one of the lines.")
    return costs


def _depth(word: str, where: str) -> int:
    if not word.isdecimal() or int(word) < 1:
        raise InputError(f"{where}: '{word}' is no depth. It is a number of documents, from 1 on.")
    return int(word)


def _cost(value: Any, where: str) -> float:
    try:
        return float("text" if isinstance(value, bool) else value)
    except (TypeError, ValueError):
        raise InputError(f"{where}: the cost {value!r} is no number.") from None
