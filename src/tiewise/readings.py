"""Judgments and a run, read as different tools would read them.

Tie groups are counted once for every reading: the scores as they are, or as a float32 reader sees them. Both evaluation
and report ask here for the value of a measure in a tool's own order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tiewise import engine
from tiewise.columns import Floats
from tiewise.data import MappedRun, Qrels, Run
from tiewise.errors import InputError, listed
from tiewise.io import as_qrels, as_run, countable
from tiewise.profiles import Rule
from tiewise.registry import Measure
from tiewise.ties import StreamedRun, TieGroups, tie_groups_as

__all__ = ["Readings"]

Counted = Run | MappedRun | StreamedRun


class Readings:
    """Judgments and a run, with tie groups counted once for every reading of the scores."""

    def __init__(self, qrels: Any, run: Any, *, score_dtype: str | None, judged_only: bool, depth: int | None):
        self.depth = depth
        self._urns: dict[str, engine.Urns] = {}
        self.counted: Counted | None = None  # what is counted: None if only tie groups were given
        self.unprojected: Counted | None = None
        self._whole: Counted | None = None  # the run from which unjudged documents were taken
        if isinstance(run, TieGroups):
            if score_dtype or judged_only:
                raise InputError("Tie groups hold counts, not scores: give score_dtype or judged_only a run.")
            if run.owned is not None:
                raise InputError("These are the tie groups of one shard. Merge those of all shards first.")
            if qrels is not None and tuple(as_qrels(qrels)) != tuple(run.qrels):
                raise InputError("The tie groups were counted for other qrels. Give None, or the same.")
            self.qrels = run.qrels
            self._urns["float64"] = engine.Urns(run if depth is None else run.to_depth(depth))
            return
        self.qrels = as_qrels(qrels)
        if not len(self.qrels.queries):
            raise InputError("The qrels are empty: there is nothing to measure against.")
        self.counted = as_run(run) if judged_only else countable(run)
        if judged_only:
            assert not isinstance(self.counted, StreamedRun)
            self._whole, self.counted = self.counted, self.counted.judged_only(self.qrels)
        self.unprojected = self.counted
        if score_dtype is not None:
            self.counted = self.counted.projected(score_dtype)
            self._whole = self._whole and self._whole.projected(score_dtype)

    @property
    def run(self) -> Run | MappedRun | None:
        """The run with its rows; None if only tie groups were given."""
        if isinstance(self.counted, StreamedRun):
            self.counted = self.counted.to_run()
        return self.counted

    @property
    def ties(self) -> TieGroups:
        """The tie groups of the scores as they are."""
        return self.urns("float64").ties

    def urns(self, dtype: str, orders: Iterable[str] = ()) -> engine.Urns:
        """The tie groups of scores read as `dtype`, counted for these orders among others."""
        self._count({dtype: set(orders)})
        return self._urns[dtype]

    def count(self, rules: Iterable[Rule]) -> None:
        """Count for all the orders that some rules need, all readings of the scores at once."""
        wanted: dict[str, set[str]] = {"float64": set()}
        for rule in rules:
            wanted.setdefault(rule.dtype, set()).update([rule.order] if rule.order else [])
        self._count(wanted)

    def _count(self, wanted: Mapping[str, set[str]]) -> None:
        """Count what has not been counted yet."""
        if self.counted is None:
            return
        known = {dtype: set(urns.ties.before) for dtype, urns in self._urns.items()}
        missing = {
            dtype: sorted(orders | known.get(dtype, set()))
            for dtype, orders in wanted.items()
            if dtype not in known or not orders <= known[dtype]
        }
        if not missing:
            return
        if known and isinstance(self.counted, MappedRun):
            self.counted.check_unchanged()  # the dictionary is the user's
        found = tie_groups_as(self.qrels, self.counted, missing)
        if not known:
            _check_queries(self.qrels, self.counted, next(iter(found.values())))
        whole = tie_groups_as(self.qrels, self._whole, dict.fromkeys(missing, ())) if self._whole is not None else found
        _check_found(self.qrels, self.counted if self._whole is None else self._whole, next(iter(whole.values())))
        for dtype, ties in found.items():
            ties = ties if self._whole is None else ties.condensed_from(whole[dtype])
            self._urns[dtype] = engine.Urns(ties.to_depth(self.depth))

    @cached_property
    def endless(self) -> engine.Urns:
        """The lists as they would be if the last tie group of those that may have been cut went on without end."""
        return engine.Urns(self.ties.without_last_group())

    def joined(self, measure: Measure) -> engine.Urns:
        """The lists with the judged documents in their last tie group that were not retrieved, if they help."""
        return engine.Urns(self.ties.with_joined(measure.gain(self.qrels.label)))

    def has_relevant(self, measure: Measure) -> NDArray[np.bool_]:
        """Whether a query has a relevant document for a measure, retrieved or not, (n_queries,)."""
        return self.urns("float64").judged(measure.relevant(self.qrels.label)) > 0

    def looked_into(self, measure: Measure) -> NDArray[np.bool_]:
        """Whether a measure looks into the last tie group of a list that may have been cut there, (n_queries,)."""
        urns, ties = self.urns("float64"), self.ties
        if measure.total or not measure.takes_depth:
            return np.zeros(len(ties.length), dtype=bool)
        return ties.open_ended & (measure.depth(urns) > ties.length - ties.floor_size)

    def in_order(self, measure: Measure, rule: Rule) -> Floats | None:
        """The value of a measure for each query when ties are broken by a rule; None if that is not known."""
        if rule.order is None or (self.counted is None and rule.order not in self.ties.before):
            return None
        if self.counted is None and rule.dtype != "float64":
            return None
        urns = self.urns(rule.dtype, {rule.order})
        if rule.retrieved_only:
            urns = engine.Urns(urns.ties.retrieved_only())
        return engine.value(measure, urns, urns.oblivious(rule.order))


def _check_queries(qrels: Qrels, run: Counted, ties: TieGroups) -> None:
    if not len(run.queries):
        raise InputError("The run is empty: it has no query.")
    if not ties.present.any():
        raise InputError(
            f"The run and the qrels have no query in common. Queries of the run: {listed(run.queries)}; "
            f"of the qrels: {listed(qrels.queries)}."
        )


def _check_found(qrels: Qrels, run: Counted, ties: TieGroups) -> None:
    """No judged document in any list: ids that do not match, unless it is one query made by hand."""
    if ties.size.any() or not len(run) or not len(qrels):
        return
    if np.count_nonzero(ties.present) > 1 or qrels.source is not None or run.source is not None:
        rows = run.to_run() if isinstance(run, StreamedRun) else run
        raise InputError(
            "The run and the qrels have no document in common. Documents of the run: "
            f"{listed(rows.ids(np.arange(min(3, len(rows)))))}; of the qrels: "
            f"{listed(qrels.ids(np.arange(min(3, len(qrels)))))}."
        )
