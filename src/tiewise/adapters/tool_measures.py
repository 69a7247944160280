"""Measures as another package defines them, and the one number per query that its drop-in returns.

`value` chooses the number: ``"oblivious"`` is what the package itself gives, under its own order of tied documents; the
others are statistics over all orders: ``"expected"``, ``"minimum"``, ``"maximum"``, ``"std"``, or ``"bias"``
(oblivious − expected).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from tiewise.data.columns import Floats, positions
from tiewise.data.judgments import Qrels
from tiewise.errors import InputError
from tiewise.io import as_source
from tiewise.io.types import RunLike
from tiewise.metrics import engine
from tiewise.metrics.compiled import compute_statistics, tables_of
from tiewise.metrics.definition import Measure
from tiewise.metrics.grouped_judgments import GroupedJudgments
from tiewise.metrics.tool_rules import Rule
from tiewise.ties.counted import Counted, RunSource

__all__ = ["VALUES", "ToolMeasure", "check_value", "evaluate_queries"]

VALUES = ("oblivious", "expected", "minimum", "maximum", "std", "bias")

Key = TypeVar("Key", bound=Hashable)


def check_value(value: str) -> None:
    """Raise if `value` is not one of `VALUES`."""
    if value not in VALUES:
        raise InputError(f"Unknown value {value!r}. Use one of: {', '.join(VALUES)}.")


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


def evaluate_queries(
    qrels: Qrels, run: RunLike, measures: Mapping[Key, ToolMeasure], value: str
) -> tuple[list[str], dict[Key, Floats]]:
    """The judged queries of a run, in the order of the run, and the numbers of each measure along them."""
    source = as_source(run)
    queries = run if isinstance(run, dict) and set(map(type, run)) <= {str} else source.rows().queries
    places = positions(qrels.query_index, queries)
    judged = np.append(np.diff(qrels.offsets) > 0, False)  # the last is for places of −1
    places = places[judged[places]]
    computed = _Evaluation(qrels, source, list(measures.values()), value).compute()
    numbers = {key: computed[measure][places] for key, measure in measures.items()}
    return [qrels.queries[place] for place in places.tolist()], numbers


class _Evaluation:
    """A run against judgments. Ties are counted once for every kind of list, labels and score type."""

    def __init__(self, qrels: Qrels, source: RunSource, tools: Sequence[ToolMeasure], value: str):
        self._qrels, self._source, self._tools, self._value = qrels, source, tools, value
        self._counted: dict[tuple[object, ...], Counted] = {}
        self._grouped: dict[tuple[object, ...], GroupedJudgments] = {}
        self._orders: dict[tuple[object, ...], set[str]] = {}
        for tool in tools:
            if tool.rule.order is not None and value in ("oblivious", "bias"):
                self._orders.setdefault(_kind_of_list(tool, tool.rule.dtype), set()).add(tool.rule.order)

    def compute(self) -> dict[ToolMeasure, Floats]:
        """The numbers of each query, (n_queries,)."""
        if self._value == "bias":
            oblivious, expected = self._find("oblivious"), self._find("expected")
            return {tool: oblivious[tool] - expected[tool] for tool in self._tools}
        return self._find(self._value)

    def _find(self, value: str) -> dict[ToolMeasure, Floats]:
        """A statistic of all tools; those that share their lists are computed together."""
        together: dict[tuple[tuple[object, ...], str, str | None], list[ToolMeasure]] = {}
        for tool in self._tools:
            dtype, order = (tool.rule.dtype, tool.rule.order) if value == "oblivious" else ("float64", None)
            together.setdefault((_kind_of_list(tool, dtype), dtype, order), []).append(tool)
        found: dict[ToolMeasure, Floats] = {}
        for (_, dtype, order), some in together.items():
            counted = self._count(some[0], dtype)
            tables = [tables_of(tool.measure, counted) for tool in some]
            known = [table for table in tables if table is not None]
            if known:
                each = iter(compute_statistics(known, counted, order, dtype, None, truncated=False).column(value))
                found |= {tool: next(each) for tool, table in zip(some, tables, strict=True) if table is not None}
            others = [tool for tool in some if tool not in found]
            if others:
                found |= self._compute_others(others, self._group(some[0], dtype), order, value)
        return found

    def _compute_others(
        self, tools: list[ToolMeasure], grouped: GroupedJudgments, order: str | None, value: str
    ) -> dict[ToolMeasure, Floats]:
        """The same of measures without compiled closed forms."""
        if order is not None:
            values = engine.values_of([tool.measure for tool in tools], grouped, grouped.oblivious(order))
            return {tool: values[tool.measure] for tool in tools}
        found = {}
        for tool in tools:
            estimates = engine.estimates(tool.measure, grouped)
            found[tool] = np.sqrt(estimates.variance) if value == "std" else getattr(estimates, value)
        return found

    def _group(self, tool: ToolMeasure, dtype: str) -> GroupedJudgments:
        key = _kind_of_list(tool, dtype)
        if key not in self._grouped:
            self._grouped[key] = engine.group(tool.measure, self._count(tool, dtype).ties[dtype])
        return self._grouped[key]

    def _count(self, tool: ToolMeasure, dtype: str) -> Counted:
        key = _kind_of_list(tool, dtype)
        if key not in self._counted:
            qrels = replace_labels(self._qrels, tool.labels)
            judged = qrels if tool.measure.needs_all_judged else qrels.nonzero
            self._counted[key] = self._source.count(judged, sorted(self._orders.get(key, ())), (dtype,))
        return self._counted[key]


def _kind_of_list(tool: ToolMeasure, dtype: str) -> tuple[object, ...]:
    """What two measures must share to share their counts."""
    return tool.measure.judged_only, tool.labels, tool.measure.needs_all_judged, dtype


def replace_labels(qrels: Qrels, labels: tuple[tuple[float, float], ...]) -> Qrels:
    """Judgments in which some labels are replaced by others.

    >>> replace_labels(Qrels.from_dict({"q": {"a": 1, "b": 2}}), ((1, 2), (2, 5))).to_dict()
    {'q': {'a': 2.0, 'b': 5.0}}
    """
    value = qrels.label.copy()
    for old, new in labels:
        value[qrels.label == old] = new
    return replace(qrels, value=value) if labels else qrels
