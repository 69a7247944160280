"""The estimates of some measures for every query of a run that was read, by the options of an evaluation.

Reading and counting come first and cost most; measuring comes after, as often as one likes: `evaluate` asks here once,
and `Report.at` again, for other measures of the same lists.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
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
from tiewise.ties import TieGroups

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
    cuts = None if options["complete"] else _Cuts(readings)
    found = {measure: _measured(measure, readings, rules.get(measure), cuts) for measure in chosen}
    how = options["missing"], options["no_relevant"]
    return {measure: one.where(_kept(measure, readings, *how)) for measure, one in found.items()}


def _order_of(rule: Rule) -> Rule:
    """A rule's order and score type alone: `bias` is the effect of an order, not of another definition."""
    return Rule(rule.order, rule.dtype)


def _measured(measure: Measure, readings: Readings, rule: Rule | None, cuts: _Cuts | None) -> Estimates:
    urns = readings.urns("float64")
    order = rule.order if rule and rule.dtype == "float64" and rule.order in urns.ties.before else None
    found = engine.estimates(measure, urns, oblivious=order)
    if rule is not None and order is None:
        found.oblivious = readings.in_order(measure, rule)
    if cuts is not None:
        found.cut = cuts.bounds(measure, found.expected)
    return found


class _Cuts:
    """The lists that end with tied documents, so that they may have been cut inside their last tie group."""

    def __init__(self, readings: Readings):
        self._readings = readings
        self._places = np.flatnonzero(readings.ties.open_ended)

    @cached_property
    def _ties(self) -> TieGroups:
        return engine.alone(self._readings.ties, self._places)

    @cached_property
    def _endless(self) -> engine.Urns:
        """The lists as they would be if the last tie group of each went on without end."""
        return engine.Urns(self._ties.without_last_group())

    def _joined(self, measure: Measure) -> engine.Urns:
        """The lists with the judged documents in their last tie group that were not retrieved, if they help."""
        return engine.Urns(self._ties.with_joined(measure.gain(self._ties.qrels.label)))

    def bounds(self, measure: Measure, expected: Floats) -> tuple[Floats, Floats] | None:
        """Bounds on the expectation if lists were cut inside their last tie group; None if none can have been.

        Worst if that group goes on without end; best if the judged documents that were not retrieved are in it, as many
        of the best ones as help. Exact for measures that are linear in the gain, or know only one.
        """
        looked = self._readings.looked_into(measure)[self._places]
        if not looked.any():
            return None
        lower, upper = expected.copy(), expected.copy()
        places, known = self._places[looked], expected[self._places[looked]]
        lower[places] = np.minimum(engine.expected(measure, self._endless)[0][looked], known)
        upper[places] = np.maximum(engine.expected(measure, self._joined(measure))[0][looked], known)
        return lower, upper


def _kept(measure: Measure, readings: Readings, missing: str, no_relevant: str) -> NDArray[np.bool_]:
    """The queries that count, (n_queries,)."""
    kept = np.ones(len(readings.qrels.queries), dtype=bool)
    if missing == "skip":
        kept &= readings.ties.present
    if no_relevant == "skip":
        kept &= readings.has_relevant(measure)
    return kept
