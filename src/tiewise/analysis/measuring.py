"""The estimates of some measures for every query of a run that was read, by the options of an evaluation.

Reading and counting come first and cost most; measuring comes after, as often as one likes: `evaluate` asks here once,
and `Report.at` again, for other measures of the same lists.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tiewise.analysis.readings import Readings
from tiewise.data.columns import Floats
from tiewise.errors import MeasureError
from tiewise.metrics import engine
from tiewise.metrics.definition import Measure, parse_all
from tiewise.metrics.estimate import Estimates
from tiewise.metrics.tools import Rule, rule_for
from tiewise.ties.groups import TieGroups

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
        self._urns: dict[bytes, engine.Urns] = {}

    @cached_property
    def _ties(self) -> TieGroups:
        return engine.alone(self._readings.ties, self._places)

    def bounds(self, measure: Measure, expected: Floats) -> tuple[Floats, Floats] | None:
        """Bounds on the expectation if lists were cut inside their last tie group; None if none can have been.

        Whatever stood in that group, its ranks hold at best the best documents of the group and of those that were not
        retrieved, best first, and at worst documents that are worth nothing: Eq. (18). A measure that a better document
        can lower is only known to lie in its range.
        """
        looked = self._readings.looked_into(measure)[self._places]
        if not looked.any():
            return None
        lower, upper = expected.copy(), expected.copy()
        places = self._places[looked]
        if measure.value_range is not None:
            lower[places], upper[places] = measure.value_range
            return lower, upper
        known = expected[places]
        lower[places] = np.minimum(self._filled(measure, "worst")[looked], known)
        upper[places] = np.maximum(self._filled(measure, "best")[looked], known)
        return lower, upper

    def _filled(self, measure: Measure, how: Literal["best", "worst"]) -> Floats:
        """The expectation if the last tie group holds the best documents there are for it, or the worst."""
        ties = self._ties
        query = ties.qrels.query
        gain = measure.gain(ties.qrels.label) * (1 if how == "best" else -1)
        rows = np.flatnonzero((ties.in_last_group | (ties.size == 0)) & (gain > 0))  # unjudged documents are worth 0
        rows = rows[np.lexsort((-gain[rows], query[rows]))]
        place = np.arange(len(rows)) - np.searchsorted(query[rows], query[rows])
        rows = rows[place < ties.floor_size[query[rows]]]
        key = rows.tobytes()
        if key not in self._urns:  # most measures choose the same documents
            self._urns[key] = engine.Urns(ties.with_last_group(rows))
        return engine.expected(measure, self._urns[key], last=how)[0]


def _kept(measure: Measure, readings: Readings, missing: str, no_relevant: str) -> NDArray[np.bool_]:
    """The queries that count, (n_queries,)."""
    kept = np.ones(len(readings.qrels.queries), dtype=bool)
    if missing == "skip":
        kept &= readings.ties.present
    if no_relevant == "skip":
        kept &= readings.has_relevant(measure)
    return kept
