"""The costs of the stages of a search: ``{"bm25": 1.2, "dense": {10: 3.0, 100: 4.5}, "rerank": 0.4}``.

A file holds the same as JSON, or as lines of text. A line has a system and its cost, or a system, a depth and the cost
at that depth, separated by blanks or commas. Text after ``#`` is a comment.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from math import inf
from typing import Any

from tiewise.errors import InputError
from tiewise.io.compression import PathLike, opened
from tiewise.results.wording import list_examples

RERANK = "rerank"  #: the key of the second stage's cost for one document

Depth = int | None  # None: the whole list
Costs = Mapping[str, float | Mapping[int, float]]  #: by system, and by depth if they differ
CostTable = dict[str, float | dict[int, float]]


class StageCosts:
    """The cost of each first stage at each depth, and of the second stage for one document.

    >>> StageCosts({"bm25": 1.0, "rerank": 0.5}, ["bm25"], [10]).total("bm25", 10, set_size=7)
    6.0
    """

    def __init__(self, costs: Costs, systems: Sequence[str], depths: Sequence[Depth]):
        if not isinstance(costs, Mapping):
            raise InputError(f"cost={costs!r} is not a table of costs. Give {{'bm25': 1.2, '{RERANK}': 0.4}}.")
        if RERANK in systems:
            raise InputError(f"A system cannot be called '{RERANK}' where costs are given: that is the second stage.")
        missing = [name for name in systems if name not in costs]
        unknown = [name for name in costs if name not in systems and name != RERANK]
        problems = {
            f"There is no cost for {list_examples(missing)}. Give one for every system.": missing,
            f"There is a cost for {list_examples(unknown)}, which is not a system. "
            f"Systems: {list_examples(systems)}.": unknown,
        }
        if missing or unknown:
            raise InputError(*(problem for problem, names in problems.items() if names))
        self._rerank = _parse_cost(costs.get(RERANK, 0.0), f"'{RERANK}'")
        self._first = {name: _by_depth(name, costs[name], depths) for name in systems}

    def total(self, system: str, depth: Depth, set_size: float) -> float:
        """The cost of both stages. `set_size` documents are reranked if the depth is None, else `depth`."""
        return self._first[system][depth] + self._rerank * (set_size if depth is None else depth)


def _by_depth(system: str, cost: Any, depths: Sequence[Depth]) -> dict[Depth, float]:
    if not isinstance(cost, Mapping):
        return dict.fromkeys(depths, _parse_cost(cost, f"'{system}'"))
    missing = [depth for depth in depths if depth not in cost]
    if missing:
        where = "for whole lists" if missing == [None] else f"at depth {', '.join(map(str, missing))}"
        raise InputError(f"There is no cost of '{system}' {where}. Give one for every depth, or one number for all.")
    return {depth: _parse_cost(cost[depth], f"'{system}' at depth {depth}") for depth in depths}


def read_costs(path: PathLike) -> CostTable:
    """The costs in a file, by system, and by depth if they differ."""
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


def _from_json(text: str, name: str) -> CostTable:
    try:
        parsed = json.loads(text, object_pairs_hook=partial(_unique_keys, name), parse_int=float)
    except json.JSONDecodeError as error:
        raise InputError(f"{name}:{error.lineno}:{error.colno}: is not JSON: {error.msg}.") from None
    except RecursionError:
        raise InputError(f"{name}: is nested too deep. Expected a cost for each system, perhaps by depth.") from None
    if not isinstance(parsed, dict):
        raise InputError(f'{name}: is a JSON list. Expected an object: {{"bm25": 1.2, "rerank": 0.4}}.')
    costs: CostTable = {}
    for system, cost in parsed.items():
        where = f"{name}: '{system}'"
        if isinstance(cost, dict):
            costs[system] = {_parse_depth(depth, where): _parse_cost(one, where) for depth, one in cost.items()}
        else:
            costs[system] = _parse_cost(cost, where)
    return costs


def _unique_keys(name: str, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object without repeated keys."""
    table = dict(pairs)
    if len(table) < len(pairs):
        repeated = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise InputError(f"{name}: '{repeated}' occurs twice in one JSON object. Keep one of them.")
    return table


def _from_lines(text: str, name: str) -> CostTable:
    costs: CostTable = {}
    for number, line in enumerate(text.splitlines(), start=1):
        words, where = re.split(r"[\s,]+", line.partition("#")[0].strip()), f"{name}:{number}"
        if words == [""] or (not costs and words[0] == "system" and words[-1] == "cost"):  # a blank line or the header
            continue
        if len(words) not in (2, 3):
            found = f"{len(words)} word{'s' * (len(words) > 1)}"
            raise InputError(f"{where}: {found}. Expected a system, perhaps a depth, and a cost.")
        system, cost = words[0], _parse_cost(words[-1], where)
        entry = costs.setdefault(system, {} if len(words) == 3 else cost)
        if len(words) == 3 and isinstance(entry, dict) and (depth := _parse_depth(words[1], where)) not in entry:
            entry[depth] = cost
        elif entry is not cost:
            raise InputError(f"{where}: '{system}' has a cost already. Keep one of the lines.")
    return costs


def _parse_depth(word: str, where: str) -> int:
    if not word.isdecimal() or int(word) < 1:
        raise InputError(f"{where}: '{word}' is not a depth. A depth is a number of documents, 1 or more.")
    return int(word)


def _parse_cost(value: Any, where: str) -> float:
    try:
        cost = float("text" if isinstance(value, bool) else value)
    except (TypeError, ValueError):
        raise InputError(f"{where}: the cost {value!r} is not a number.") from None
    if not 0 <= cost < inf:
        raise InputError(f"{where}: the cost {cost:g} is not possible. Costs are finite numbers, 0 or more.")
    return cost
