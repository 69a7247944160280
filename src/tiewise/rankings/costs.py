"""What the stages of a search take: ``{"bm25": 1.2, "dense": {"10": 3.0}, "rerank": 0.4}`` as JSON, or lines of text.

A line holds a system and its cost, or a system, a depth and the cost at that depth, parted by blanks or commas. What
follows ``#`` is a remark.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from functools import partial
from math import inf
from typing import Any

from tiewise.errors import InputError
from tiewise.io.compression import PathLike, opened

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
    costs = _from_json(text, name) if text.lstrip().startswith(("{", "[")) else _from_lines(text, name)
    if not costs:
        raise InputError(f"{name}: holds no costs. Write a line 'bm25 1.2' for each system, and 'rerank 0.4'.")
    return costs


def _from_json(text: str, name: str) -> Costs:
    try:
        found = json.loads(text, object_pairs_hook=partial(_once, name), parse_int=float)
    except json.JSONDecodeError as error:
        raise InputError(f"{name}:{error.lineno}:{error.colno}: is not JSON: {error.msg}.") from None
    except RecursionError:
        raise InputError(f"{name}: is nested too deep. Expected a cost for each system, perhaps by depth.") from None
    if not isinstance(found, dict):
        raise InputError(f'{name}: is a JSON list. Expected an object: {{"bm25": 1.2, "rerank": 0.4}}.')
    return {system: _of_system(cost, f"{name}: '{system}'") for system, cost in found.items()}


def _once(name: str, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The pairs of a JSON object, none of which may hide another."""
    table = dict(pairs)
    if len(table) < len(pairs):
        twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise InputError(f"{name}: '{twice}' stands twice in one JSON object. Keep one of them.")
    return table


def _of_system(cost: Any, where: str) -> float | dict[int, float]:
    if isinstance(cost, dict):
        return {_depth(depth, where): _cost(one, where) for depth, one in cost.items()}
    return _cost(cost, where)


def _from_lines(text: str, name: str) -> Costs:
    costs: Costs = {}
    for number, line in enumerate(text.splitlines(), start=1):
        words, where = re.split(r"[\s,]+", line.partition("#")[0].strip()), f"{name}:{number}"
        if words == [""] or (not costs and words[0] == "system" and words[-1] == "cost"):  # a blank line or the heads
            continue
        if len(words) not in (2, 3):
            found = f"{len(words)} word{'s' * (len(words) > 1)}"
            raise InputError(f"{where}: {found}. Expected a system, perhaps a depth, and a cost.")
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
        cost = float("text" if isinstance(value, bool) else value)
    except (TypeError, ValueError):
        raise InputError(f"{where}: the cost {value!r} is no number.") from None
    if not 0 <= cost < inf:
        raise InputError(f"{where}: the cost {cost:g} is not possible. Costs are numbers from 0 on.")
    return cost
