"""Measures as another package defines them, and the one number per query that its drop-in returns.

`value` chooses the number: ``"oblivious"`` is what the package itself gives, under its own order of tied documents; the
others are statistics over all orders: ``"expected"``, ``"minimum"``, ``"maximum"``, ``"std"``, or ``"bias"``
(oblivious − expected).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from tiewise.data.columns import Floats, positions
from tiewise.data.judgments import Qrels
from tiewise.errors import InputError
from tiewise.io import as_source
from tiewise.io.types import RunLike
from tiewise.metrics import engine
from tiewise.metrics.compiled import compute_statistics, tables_of
from tiewise.metrics.definition import Measure
from tiewise.metrics.tool_rules import Rule
from tiewise.ties.counted import Counted, CountedLists, RunSource
from tiewise.ties.groups import TieGroups

VALUES = ("oblivious", "expected", "minimum", "maximum", "std", "bias")

Key = TypeVar("Key", bound=Hashable)


def check_value(value: str) -> None:
    """Raise if `value` is not one of `VALUES`."""
    if value not in VALUES:
        raise InputError(f"Unknown value {value!r}. Use one of: {', '.join(VALUES)}.")


class FixedValue:
    """The `value` of an evaluator: chosen when it is made, because what follows from it is found then.

    >>> class Evaluator:
    ...     value = FixedValue()
    ...     def __init__(self, value):
    ...         self._value = value
    >>> Evaluator("std").value
    'std'
    """

    def __get__(self, evaluator: Any, cls: Any = None) -> Any:
        return self if evaluator is None else evaluator._value

    def __set__(self, evaluator: Any, value: Any) -> None:
        raise AttributeError(f"An evaluator has one value, {evaluator._value!r}. Make another one for {value!r}.")


@dataclass(frozen=True)
class ToolMeasure:
    """A measure as a package defines it: with its tie rule, and the lists and labels that it uses."""

    measure: Measure
    rule: Rule
    labels: tuple[tuple[float, float], ...] = ()  # (label, the label that replaces it)

    @property
    def leaves_out_missing(self) -> bool:
        """Whether a query that the run does not have is left out of the mean, and has no number."""
        return self.rule.missing == "skip" and not self.measure.total


class ToolEvaluator(Generic[Key]):
    """Evaluates runs by some measures against one set of judgments. What follows from these alone is found once."""

    def __init__(self, qrels: Qrels, measures: Mapping[Key, ToolMeasure], value: str):
        self._qrels, self._keys, self._value = qrels, list(measures), value
        judged = (np.diff(qrels.offsets) > 0).tolist()
        #: The queries, and None for those without judged documents.
        self._queries = [query if has else None for query, has in zip(qrels.queries, judged, strict=True)]
        statistics = ("oblivious", "expected") if value == "bias" else (value,)
        tools = list(measures.values())
        self._parts = {statistic: _divide(tools, qrels, statistic) for statistic in statistics}
        self._orders: dict[Hashable, tuple[str, ...]] = {}
        for part in self._parts.get("oblivious", ()):
            if part.order is not None:
                self._orders[part.lists] = tuple(sorted({*self._orders.get(part.lists, ()), part.order}))

    def evaluate(self, run: RunLike) -> tuple[list[str], dict[Key, Floats]]:
        """The judged queries of a run, in the order of the run, and the numbers of each measure along them."""
        source, counted, numbers = self._evaluate(run)
        places = self._places(run, source, counted)
        columns = zip(self._keys, numbers[:, places], strict=True)
        return [self._queries[place] or "" for place in places], dict(columns)

    def rows(self, run: RunLike) -> dict[str, dict[Key, float]]:
        """The same as ``{query: {measure: number}}``."""
        source, counted, numbers = self._evaluate(run)
        if isinstance(counted, CountedLists):
            return counted.lists.number_rows(self._queries, self._keys, numbers)
        places = self._places(run, source, counted)
        each = zip(places, numbers.T[places].tolist(), strict=True)
        return {self._queries[place] or "": dict(zip(self._keys, row, strict=True)) for place, row in each}

    def _places(self, run: RunLike, source: RunSource, counted: Counted | None) -> list[int]:
        """The places of the judged queries of a run, in its order."""
        if isinstance(counted, CountedLists):
            places = counted.lists.places
        else:
            queries = run if isinstance(run, dict) and set(map(type, run)) <= {str} else source.rows().queries
            places = positions(self._qrels.query_index, queries)
        return [place for place in places.tolist() if place >= 0 and self._queries[place] is not None]

    def _evaluate(self, run: RunLike) -> tuple[RunSource, Counted | None, Floats]:
        """A run, its counts, and the numbers of each measure for all queries, (n_measures, n_queries)."""
        source, counts = as_source(run), dict[Hashable, Counted]()
        first, *others = [self._find(statistic, source, counts) for statistic in self._parts]
        for expected in others:  # oblivious − expected
            first = first - expected
        return source, next(iter(counts.values()), None), first

    def _find(self, statistic: str, source: RunSource, counts: dict[Hashable, Counted]) -> Floats:
        """A statistic of each measure for all judged queries; `counts` are those of the run so far."""
        parts = self._parts[statistic]
        each = [self._compute(statistic, part, source, counts) for part in parts]
        if len(each) == 1:
            return each[0]
        found = np.empty((len(self._keys), len(self._queries)))
        for part, numbers in zip(parts, each, strict=True):
            found[list(part.places)] = numbers
        return found

    def _compute(self, statistic: str, part: _Part, source: RunSource, counts: dict[Hashable, Counted]) -> Floats:
        counted = counts.get(part.lists)
        if counted is None:
            counted = source.count(part.qrels, self._orders.get(part.lists, ()), (part.dtype,))
            counts[part.lists] = counted
        tables, found = tables_of(part.measures, counted), np.empty(0)
        if tables.rows:
            moments = statistic in ("expected", "std")
            read = part.order, part.dtype, None
            found = compute_statistics(tables, counted, *read, truncated=False, moments=moments).column(statistic)
        if len(tables.rows) == len(part.measures):
            return found
        others = [one for one in part.measures if one not in tables.rows]
        rest = iter(_compute_others(others, counted.ties[part.dtype], part.order, statistic) if others else ())
        return np.array([found[tables.rows[one]] if one in tables.rows else next(rest) for one in part.measures])


class _Part(NamedTuple):
    """Measures that are computed together: they share their lists and their order of ties."""

    lists: Hashable
    qrels: Qrels
    dtype: str
    order: str | None
    places: tuple[int, ...]  # of the measures among all
    measures: tuple[Measure, ...]


def _divide(tools: Sequence[ToolMeasure], qrels: Qrels, statistic: str) -> list[_Part]:
    """Measures in parts that are computed together."""
    together: dict[tuple[Hashable, str, str | None], list[int]] = {}
    for place, tool in enumerate(tools):
        dtype, order = (tool.rule.dtype, tool.rule.order) if statistic == "oblivious" else ("float64", None)
        # What measures must share to share their counts.
        shared = tool.measure.judged_only, tool.labels, tool.measure.needs_all_judged, dtype
        together.setdefault((shared, dtype, order), []).append(place)
    parts = []
    for (lists, dtype, order), places in together.items():
        some = [tools[place] for place in places]
        judged = replace_labels(qrels, some[0].labels)
        judged = judged if some[0].measure.needs_all_judged else judged.nonzero
        parts.append(_Part(lists, judged, dtype, order, tuple(places), tuple(tool.measure for tool in some)))
    return parts


def _compute_others(measures: list[Measure], ties: TieGroups, order: str | None, statistic: str) -> list[Floats]:
    """A statistic of measures without compiled closed forms."""
    grouped = engine.group(ties, measures[0].judged_only)
    if order is not None:
        values = engine.values_of(measures, grouped, grouped.oblivious(order))
        return [values[measure] for measure in measures]
    each = [engine.estimates(measure, grouped) for measure in measures]
    return [np.sqrt(one.variance) if statistic == "std" else getattr(one, statistic) for one in each]


def replace_labels(qrels: Qrels, labels: tuple[tuple[float, float], ...]) -> Qrels:
    """Judgments in which some labels are replaced by others.

    >>> replace_labels(Qrels.from_dict({"q": {"a": 1, "b": 2}}), ((1, 2), (2, 5))).to_dict()
    {'q': {'a': 2.0, 'b': 5.0}}
    """
    if not labels:
        return qrels
    value = qrels.label.copy()
    for old, new in labels:
        value[qrels.label == old] = new
    return replace(qrels, value=value)
