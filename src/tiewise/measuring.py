"""The estimates of some measures for every query of a run that was read, by the options of an evaluation.

Reading and counting come first and cost most; measuring comes after, as often as one likes: `evaluate` asks here once,
and `Report.at` again, for other measures of the same lists.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tiewise import engine
from tiewise.columns import Floats
from tiewise.errors import MeasureError
from tiewise.estimate import Estimates
from tiewise.profiles import Rule, rule_for
from tiewise.readings import Readings
from tiewise.registry import Measure, parse_all

__all__ = ["asked", "estimates"]


def asked(measures: str | Measure | Iterable[str | Measure]) -> list[Measure]:
    """The measures of some names, all of which are of a run against judgments."""
    chosen = parse_all(measures)
    for measure in chosen:
        if measure.compares:
            raise MeasureError(f"{measure} compares two rankings. Use similarity() for it, or RBP for judgments.")
    return chosen


def estimates(measures: Iterable[Measure], readings: Readings, options: Mapping[str, Any]) -> dict[Measure, Estimates]:
    """Each measure for every query that counts, over the orders of ties, with the value of the oblivious order."""
    chosen, oblivious = list(measures), options["oblivious"]
    rules = {measure: _order_of(rule_for(oblivious, measure)) for measure in chosen} if oblivious else {}
    readings.count(set(rules.values()))
    found = {measure: _measured(measure, readings, rules.get(measure), options["complete"]) for measure in chosen}
    how = options["missing"], options["no_relevant"]
    return {measure: one.where(_kept(measure, readings, *how)) for measure, one in found.items()}


def _order_of(rule: Rule) -> Rule:
    """A rule's order and score type alone: `bias` is the effect of an order, not of another definition."""
    return Rule(rule.order, rule.dtype)


def _measured(measure: Measure, readings: Readings, rule: Rule | None, complete: bool) -> Estimates:
    urns = readings.urns("float64")
    found = engine.estimates(measure, urns)
    if rule is not None:
        found.oblivious = readings.in_order(measure, rule)
    if not complete:
        found.cut = _cut(measure, readings, found.expected)
    return found


def _cut(measure: Measure, readings: Readings, expected: Floats) -> tuple[Floats, Floats] | None:
    """Bounds on the expectation if lists were cut inside their last tie group; None if none can have been.

    Worst if that group goes on without end; best if the judged documents that were not retrieved are in it, as many of
    the best ones as help. Exact for measures that are linear in the gain, or know only one.
    """
    looked = readings.looked_into(measure)
    if not looked.any():
        return None
    lower = np.minimum(engine.expected(measure, readings.endless)[0], expected)
    upper = np.maximum(engine.expected(measure, readings.joined(measure))[0], expected)
    return np.where(looked, lower, expected), np.where(looked, upper, expected)


def _kept(measure: Measure, readings: Readings, missing: str, no_relevant: str) -> NDArray[np.bool_]:
    """The queries that count, (n_queries,)."""
    kept = np.ones(len(readings.qrels.queries), dtype=bool)
    if missing == "skip":
        kept &= readings.ties.present
    if no_relevant == "skip":
        kept &= readings.has_relevant(measure)
    return kept
