"""Judgments and a run, read as different tools would read them.

Tie groups are counted once for every reading: the scores as they are, or as a float32 reader sees them. Both evaluation
and report ask here for the value of a measure in a tool's own order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tiewise import engine
from tiewise.columns import Floats
from tiewise.data import MappedRun, Qrels, Run, Source
from tiewise.errors import InputError, listed
from tiewise.io import as_qrels, as_run
from tiewise.profiles import Rule
from tiewise.registry import Measure
from tiewise.ties import TieGroups, tie_groups

__all__ = ["CountedRun", "Facts", "Readings"]


class Facts(NamedTuple):
    """What is known of a run besides its tie groups; None where it is not."""

    source: Source | None = None
    rows: int | None = None
    tied_rows: int | None = None  # rows that share their score with another row of their query
    new_ties: int | None = None  # those of them that `score_dtype` made


@dataclass(frozen=True, eq=False)
class CountedRun:
    """A run that was counted elsewhere: its tie groups in every reading that is needed, and what is known of it.

    >>> from tiewise.ties import notation
    >>> CountedRun({"float64": notation("(10)1")}).complete
    False
    """

    ties: Mapping[str, TieGroups]  # by the type in which scores were read; "float64" is the scores as they are
    facts: Facts = field(default_factory=Facts)
    score_dtype: str | None = None  # what had been done to the run when it was counted
    judged_only: bool = False

    @property
    def qrels(self) -> Qrels:
        """The judgments that were counted for."""
        return self.ties["float64"].qrels

    @property
    def complete(self) -> bool:
        """Whether the lists are known to be whole."""
        return self.ties["float64"].complete


class Readings:
    """Judgments and a run, with tie groups counted once for every reading of the scores."""

    def __init__(self, qrels: Any, run: Any, *, score_dtype: str | None, judged_only: bool, depth: int | None):
        self.depth = depth
        self.run: Run | MappedRun | None = None
        self.unprojected: Run | MappedRun | None = None
        self._whole: Run | MappedRun | None = None  # the run from which unjudged documents were taken
        self._urns: dict[str, engine.Urns] = {}
        if isinstance(run, TieGroups):
            run = CountedRun({"float64": run})
        self.counted = run if isinstance(run, CountedRun) else None
        if self.counted is not None:
            _check_counted(self.counted, qrels, score_dtype, judged_only)
            self.qrels = self.counted.qrels
            self._urns = {dtype: engine.Urns(_cut_at(ties, depth)) for dtype, ties in self.counted.ties.items()}
            return
        self.qrels = as_qrels(qrels)
        self.run = as_run(run)
        _check_common(self.qrels, self.run)
        if judged_only:
            self._whole = self.run
            self.run = self.run.judged_only(self.qrels)
        self.unprojected = self.run
        if score_dtype is not None:
            self.run = self.run.projected(score_dtype)
            self._whole = self._whole and self._whole.projected(score_dtype)

    @property
    def ties(self) -> TieGroups:
        """The tie groups of the scores as they are."""
        return self.urns("float64").ties

    @cached_property
    def facts(self) -> Facts:
        """Where the run came from, and how many of its rows are tied."""
        if self.run is None:
            assert self.counted is not None
            return self.counted.facts
        tied, before = self.run.tied_rows, self.unprojected
        new = None if self.run is before or before is None else tied - before.tied_rows
        return Facts(self.run.source, len(self.run), tied, new)

    def urns(self, dtype: str, orders: Iterable[str] = ()) -> engine.Urns:
        """The tie groups of scores read as `dtype`, counted for these orders among others."""
        have = self._urns.get(dtype)
        wanted = set(orders)
        if self.run is not None and (have is None or not wanted <= set(have.ties.before)):
            if self._urns and isinstance(self.run, MappedRun):
                self.run.check_unchanged()  # the dictionary is the user's
            known = set(have.ties.before) if have else set()
            ties = tie_groups(self.qrels, _read_as(self.run, dtype), sorted(wanted | known))
            if self._whole is None:
                _check_found(self.qrels, self.run, ties)
            else:
                whole = tie_groups(self.qrels, _read_as(self._whole, dtype), ())
                _check_found(self.qrels, self._whole, whole)
                ties = ties.condensed_from(whole)
            self._urns[dtype] = have = engine.Urns(ties.to_depth(self.depth))
        assert have is not None
        return have

    @cached_property
    def endless(self) -> engine.Urns:
        """The lists as they would be if the last tie group of those that may have been cut went on without end."""
        return engine.Urns(self.ties.without_last_group())

    def joined(self, measure: Measure) -> engine.Urns:
        """The lists with the judged documents in their last tie group that were not retrieved, if they help."""
        return engine.Urns(self.ties.with_joined(measure.gain(self.qrels.label)))

    def count(self, rules: Iterable[Rule]) -> None:
        """Count for all the orders that some rules need, each reading of the scores once."""
        if self.run is None:
            return
        self.urns("float64", {rule.order for rule in rules if rule.dtype == "float64" and rule.order})
        for dtype in {rule.dtype for rule in rules} - {"float64"}:
            self.urns(dtype, {rule.order for rule in rules if rule.dtype == dtype and rule.order})

    def has_relevant(self, measure: Measure) -> NDArray[np.bool_]:
        """Whether a query has a relevant document for a measure, retrieved or not, (n_queries,)."""
        return self.urns("float64").judged(measure.relevant(self.qrels.label)) > 0

    def looked_into(self, measure: Measure) -> NDArray[np.bool_]:
        """Whether a measure looks into the last tie group of a list that may have been cut there, (n_queries,)."""
        urns, ties = self.urns("float64"), self.ties
        if measure.total or not measure.takes_depth:
            return np.zeros(len(ties.length), dtype=bool)
        return ties.open_ended & (measure.depth(urns) > ties.length - ties.floor_size)

    def knows(self, rule: Rule) -> bool:
        """Whether the order of a rule can be counted, or was."""
        counted = self._urns.get(rule.dtype)
        return self.run is not None or (counted is not None and rule.order in counted.ties.before)

    def in_order(self, measure: Measure, rule: Rule) -> Floats | None:
        """The value of a measure for each query when ties are broken by a rule; None if that is not known."""
        if rule.order is None or not self.knows(rule):
            return None
        urns = self.urns(rule.dtype, {rule.order})
        if rule.retrieved_only:
            urns = engine.Urns(urns.ties.retrieved_only())
        return engine.value(measure, urns, urns.oblivious(rule.order))


def _cut_at(ties: TieGroups, depth: int | None) -> TieGroups:
    return ties if depth is None else ties.to_depth(depth)


def _check_counted(run: CountedRun, qrels: Any, score_dtype: str | None, judged_only: bool) -> None:
    if (score_dtype, judged_only) != (run.score_dtype, run.judged_only):
        raise InputError("Tie groups hold counts, not scores: give score_dtype or judged_only a run.")
    if any(ties.owned is not None for ties in run.ties.values()):
        raise InputError("These are the tie groups of one shard. Merge those of all shards first.")
    if qrels is not None and tuple(as_qrels(qrels)) != tuple(run.qrels):
        raise InputError("The tie groups were counted for other qrels. Give None, or the same.")


def _read_as(run: Run | MappedRun, dtype: str) -> Run | MappedRun:
    return run if dtype == "float64" else run.projected(dtype)


def _check_common(qrels: Qrels, run: Run | MappedRun) -> None:
    if not len(qrels.queries):
        raise InputError("The qrels are empty: there is nothing to measure against.")
    if not len(run.queries):
        raise InputError("The run is empty: it has no query.")
    shared = [query for query in qrels.queries if query in run.query_index]
    if not shared:
        raise InputError(
            f"The run and the qrels have no query in common. Queries of the run: {listed(run.queries)}; "
            f"of the qrels: {listed(qrels.queries)}."
        )


def _check_found(qrels: Qrels, run: Run | MappedRun, ties: TieGroups) -> None:
    """No judged document in any list: ids that do not match, unless it is one query made by hand."""
    several = np.count_nonzero(ties.present) > 1 or qrels.source is not None or run.source is not None
    if several and not ties.size.any() and len(run) and len(qrels):
        raise InputError(
            "The run and the qrels have no document in common. Documents of the run: "
            f"{listed(run.ids(np.arange(min(3, len(run)))))}; of the qrels: "
            f"{listed(qrels.ids(np.arange(min(3, len(qrels)))))}."
        )
