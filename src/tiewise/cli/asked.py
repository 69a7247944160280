"""The measures that a command line asks for, by name, by the gates that need them, and from files of the user's own."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from tiewise.analysis import evaluating as evaluation
from tiewise.cli.options import SHORT_TYPES
from tiewise.metrics.definition import Measure
from tiewise.metrics.names import parse, parse_all, split_names

if TYPE_CHECKING:
    from tiewise.cli.gates import Gate

__all__ = ["asked", "evaluation_options", "load", "measure_of"]


def evaluation_options(
    *, oblivious: str, missing: str | None, score_dtype: str | None, **others: Any
) -> dict[str, Any]:
    """What `evaluate` is told, from the words of the command line."""
    return {
        "oblivious": None if oblivious == "none" else oblivious,
        "missing": missing or "zero",
        "score_dtype": SHORT_TYPES.get(score_dtype or "", score_dtype),
        **others,
    }


def load(plugins: Iterable[str]) -> None:
    """Import the files and modules with measures of the user's own."""
    from tiewise.cli import plugins as plugin

    for name in plugins:
        plugin.load(name)


def asked(
    names: Sequence[str] | None,
    conditions: Sequence[str],
    level: float | None,
    plugins: Sequence[str],
    facts: Sequence[str] = (),
) -> tuple[list[Measure], list[Gate]]:
    """The measures that were asked for, those of the gates behind them, and the gates, which may ask for `facts`."""
    load(plugins)
    chosen = [one for text in names or evaluation.DEFAULT_MEASURES for one in _at_level(text, level)]
    gates = _gates(conditions, level, facts) if conditions else []
    return list(dict.fromkeys([*chosen, *(one for gate in gates for one in gate.measures)])), gates


def _gates(conditions: Sequence[str], level: float | None, facts: Sequence[str]) -> list[Gate]:
    from tiewise.cli.gates import Gate

    return [Gate.parse(text, lambda name: measure_of(name, level), facts) for text in conditions]


def measure_of(text: str, level: float | None) -> Measure:
    """The one measure of a text, at a relevance level where it has one and does not name it."""
    found = _at_level(text, level)
    return found[0] if len(found) == 1 else parse(text)  # which says that there are several


def _at_level(text: str, level: float | None) -> list[Measure]:
    """The measures of a text, at a relevance level, if one is given, where they have one and do not name it."""
    found = []
    for word in split_names(text) or [text]:
        own = level is None or re.search(r"\brel\s*=|-l\d+$", word)
        found += [one if own or "rel" not in one.params else one(rel=level) for one in parse_all(word)]
    return found
