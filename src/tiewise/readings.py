"""Judgments and a run, read as different tools would read them.

Tie groups are counted once for every reading: the scores as they are, or as a float32 reader sees them. Both evaluation
and report ask here for the value of a measure in a tool's own order.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tiewise import engine
from tiewise.columns import Floats
from tiewise.data import MappedRun, Qrels, Run
from tiewise.errors import InputError, listed
from tiewise.io import as_qrels, as_run
from tiewise.profiles import Rule
from tiewise.registry import Measure
from tiewise.ties import TieGroups, tie_groups

__all__ = ["Readings"]


class Readings:
    """Judgments and a run, with tie groups counted once for every reading of the scores."""

    def __init__(self, qrels: Any, run: Any, *, score_dtype: str | None, judged_only: bool, depth: int | None):
        self.depth, self.dtype = depth, score_dtype
        self.run: Run | MappedRun | None = None
        self.unprojected: Run | MappedRun | None = None
        self._whole: Run | MappedRun | None = None  # the run from which unjudged documents were taken
        self._urns: dict[str, engine.Urns] = {}
        if isinstance(run, TieGroups):
            if score_dtype or judged_only:
                raise InputError("Tie groups hold counts, not scores: give score_dtype or judged_only a run.")
            self.qrels = run.qrels
            self._urns["float64"] = engine.Urns(run.to_depth(depth))
            return
        self.qrels = as_qrels(qrels)
        self.run = as_run(run)
        _check_common(self.qrels, self.run)
        if judged_only:
            self._whole = self.run
            self.run = (self.run.to_run() if isinstance(self.run, MappedRun) else self.run).judged_only(self.qrels)
        self.unprojected = self.run
        if score_dtype:
            self.run = self.run.projected(score_dtype)
            self._whole = self._whole and self._whole.projected(score_dtype)

    @property
    def ties(self) -> TieGroups:
        """The tie groups of the scores as they are."""
        return self.urns("float64").ties

    def urns(self, dtype: str, orders: Iterable[str] = ()) -> engine.Urns:
        """The tie groups of scores read as `dtype`, counted for these orders among others."""
        have = self._urns.get(dtype)
        wanted = set(orders)
        if self.run is not None and (have is None or not wanted <= set(have.ties.before)):
            run = self.run if dtype == "float64" else self.run.projected(dtype)
            known = set(have.ties.before) if have else set()
            ties = tie_groups(self.qrels, run, sorted(wanted | known))
            _check_found(self.qrels, run, ties)
            if self._whole is not None:
                ties = ties.condensed_from(tie_groups(self.qrels, self._whole, ()))
            self._urns[dtype] = have = engine.Urns(ties.to_depth(self.depth))
        assert have is not None
        return have

    @cached_property
    def continued(self) -> tuple[engine.Urns, list[engine.Urns]]:
        """The lists as they could go on if they were cut inside their last tie group.

        It does worst if that group goes on without end; best if relevant documents that were not retrieved are in it,
        as many of the best ones as help: those of the highest label, of the two highest, and so on.
        """
        ties = self.ties
        joining = (ties.size == 0) & ties.open_ended[ties.qrels.query] & (ties.qrels.label > 0)
        labels = np.unique(ties.qrels.label[joining])[::-1]
        return engine.Urns(ties.without_last_group()), [engine.Urns(ties.with_joined(label)) for label in labels]

    def count(self, rules: Iterable[Rule]) -> None:
        """Count for all the orders that some rules need, each reading of the scores once."""
        if self.run is None:
            return
        self.urns("float64", {rule.order for rule in rules if rule.dtype == "float64" and rule.order})
        for dtype in {rule.dtype for rule in rules} - {"float64"}:
            self.urns(dtype, {rule.order for rule in rules if rule.dtype == dtype and rule.order})

    def looked_into(self, measure: Measure) -> NDArray[np.bool_]:
        """Whether a measure looks into the last tie group of a list that may have been cut there, (n_queries,)."""
        urns, ties = self.urns("float64"), self.ties
        return ties.open_ended & (measure.depth(urns) > ties.length - ties.floor_size)

    def in_order(self, measure: Measure, rule: Rule) -> Floats | None:
        """The value of a measure for each query when ties are broken by a rule; None if that is not known."""
        if rule.order is None or (self.run is None and rule.order not in self.ties.before):
            return None
        if self.run is None and rule.dtype != "float64":
            return None
        urns = self.urns(rule.dtype, {rule.order})
        if rule.retrieved_only:
            urns = engine.Urns(urns.ties.retrieved_only())
        return engine.value(measure, urns, urns.oblivious(rule.order))


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
