"""One number for each query, where Tiewise has an estimate: what the drop-ins return, and how they come by it.

The packages that the drop-ins stand in for return one number for a measure and a query. Which one, `value` says:
``"oblivious"``, the number that the package itself would give, under its own order of tied documents; or a statistic
over all orders: ``"expected"``, ``"minimum"``, ``"maximum"``, ``"std"``, or ``"bias"`` (oblivious − expected).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tiewise.data.columns import Floats, positions
from tiewise.data.runs import Qrels, Run
from tiewise.errors import InputError, MeasureError
from tiewise.io import as_run
from tiewise.io.dict_run import DictRun
from tiewise.metrics import engine
from tiewise.metrics.definition import Measure
from tiewise.metrics.tools import Rule
from tiewise.ties.counting import count_ties
from tiewise.ties.groups import TieGroups

__all__ = ["VALUES", "Counted", "Wanted", "check_value"]

#: What a drop-in may return for a measure and a query.
VALUES = ("oblivious", "expected", "minimum", "maximum", "std", "bias")


def check_value(value: str) -> str:
    """A statistic's name, or an error."""
    if value not in VALUES:
        raise InputError(f"Unknown value {value!r}. Use one of: {', '.join(VALUES)}.")
    return value


@dataclass(frozen=True)
class Wanted:
    """A measure as a package means it: its tie rule, and on which lists and labels it looks."""

    measure: Measure
    rule: Rule
    judged_only: bool = False  # lists without their unjudged documents, and without those of a negative label
    labels: tuple[tuple[float, float], ...] = ()  # labels that count as other labels
    final: Callable[[Floats], Floats] | None = None  # a rising function of the measure

    @property
    def offers(self) -> tuple[str, ...]:
        """The statistics that are known exactly; a function of a measure keeps its orders, not its expectation."""
        exact: tuple[str, ...] = getattr(self.measure, "offers", VALUES)
        return exact if self.final is None else tuple(v for v in exact if v in ("oblivious", "minimum", "maximum"))

    def check(self, name: object, value: str) -> None:
        """Raise if a statistic is not known; `name` is how the user called the measure."""
        if value not in self.offers:
            raise MeasureError(
                f"{name}: no exact value={value!r} is known. Leave it out, or ask for it with value="
                f"{' or '.join(map(repr, self.offers))}."
            )


class Counted:
    """A run against judgments: ties are counted once for every kind of list and every reading of the scores.

    Columns of numbers run along `qrels.queries`.
    """

    def __init__(self, qrels: Qrels, run: Run | DictRun, wanted: Iterable[Wanted], value: str):
        self.qrels, self.run, self.value = qrels, run, value
        self.present: NDArray[np.bool_] = positions(run.query_index, qrels.queries) >= 0
        self._urns: dict[tuple[object, ...], engine.Urns] = {}
        self._orders: dict[tuple[object, ...], set[str]] = {}
        for one in wanted:
            if one.rule.order is not None:
                self._orders.setdefault(_reading(one, one.rule.dtype), set()).add(one.rule.order)

    def column(self, wanted: Wanted) -> Floats:
        """The number of each query, (n_queries,)."""
        found = self._statistic(wanted)
        return found if wanted.final is None else wanted.final(found)

    def _statistic(self, wanted: Wanted) -> Floats:
        measure = wanted.measure
        if self.value == "oblivious":
            return self._oblivious(wanted)
        urns = self._counted(wanted, "float64")
        if self.value == "minimum":
            return engine.value(measure, urns, urns.worst(measure))
        if self.value == "maximum":
            return engine.value(measure, urns, urns.best(measure))
        found = engine.estimates(measure, urns)
        if self.value == "std":
            return np.sqrt(found.variance)
        return found.expected if self.value == "expected" else self._oblivious(wanted) - found.expected

    def _oblivious(self, wanted: Wanted) -> Floats:
        order = wanted.rule.order
        assert order is not None, "the packages that have a drop-in can be reproduced"
        urns = self._counted(wanted, wanted.rule.dtype)
        return engine.value(wanted.measure, urns, urns.oblivious(order))

    def _counted(self, wanted: Wanted, dtype: str) -> engine.Urns:
        reading = _reading(wanted, dtype)
        if reading not in self._urns:
            orders = sorted(self._orders.get(reading, ())) if self.value in ("oblivious", "bias") else []
            self._urns[reading] = engine.Urns(self._count(wanted, dtype, orders))
        return self._urns[reading]

    def _count(self, wanted: Wanted, dtype: str, orders: list[str]) -> TieGroups:
        qrels = relabelled(self.qrels, wanted.labels)
        run = as_run(self.run).judged_only(qrels) if wanted.judged_only else self.run
        return count_ties(qrels, run, orders, (dtype,))[dtype]


def _reading(wanted: Wanted, dtype: str) -> tuple[object, ...]:
    return wanted.judged_only, wanted.labels, dtype


def relabelled(qrels: Qrels, labels: tuple[tuple[float, float], ...]) -> Qrels:
    """Judgments in which some labels count as others.

    >>> relabelled(Qrels.from_dict({"q": {"a": 1, "b": 2}}), ((1, 2), (2, 5))).to_dict()
    {'q': {'a': 2.0, 'b': 5.0}}
    """
    label = qrels.label.copy()
    for old, new in labels:
        label[qrels.label == old] = new
    return replace(qrels, value=label) if labels else qrels
