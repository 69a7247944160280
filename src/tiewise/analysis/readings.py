"""Judgments and a run, read as different tools would read them.

Tie groups are counted once for every reading: the scores as they are, or as a float32 reader sees them. Both evaluation
and report ask here for the value of a measure in a tool's own order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tiewise.data.columns import Floats
from tiewise.data.dict_run import MappedRun
from tiewise.data.runs import Qrels, Run, Source
from tiewise.data.streamed import StreamedRun
from tiewise.errors import InputError, listed
from tiewise.io import as_qrels, as_run, countable
from tiewise.metrics import engine
from tiewise.metrics.definition import Measure
from tiewise.metrics.tools import Rule
from tiewise.ties.groups import TieGroups, some_docs, tie_groups_as

__all__ = ["Countable", "CountedRun", "Facts", "Readings"]

Countable = Run | MappedRun | StreamedRun

TOOL_ORDERS = ("docid-desc", "docid-asc", "given")  # the orders of ties in which some tool lists documents


class Facts(NamedTuple):
    """What is known of a run besides its tie groups; None where it is not."""

    source: Source | None = None
    rows: int | None = None
    tied_rows: int | None = None  # rows that share their score with another row of their query
    new_ties: int | None = None  # those of them that `score_dtype` made


@dataclass(frozen=True, eq=False)
class CountedRun:
    """A run that was counted elsewhere: its tie groups in every reading that is needed, and what is known of it.

    >>> from tiewise.ties.groups import notation
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
        self._urns: dict[str, engine.Urns] = {}
        self.held: Countable | None = None  # what is counted here
        self.unprojected: Countable | None = None
        self._whole: Countable | None = None  # the run from which unjudged documents were taken
        if isinstance(run, TieGroups):
            run = CountedRun({"float64": run})
        self.counted = run if isinstance(run, CountedRun) else None
        if self.counted is not None:
            _check_counted(self.counted, qrels, score_dtype, judged_only)
            self.qrels = self.counted.qrels
            self._urns = {dtype: engine.Urns(_cut_at(ties, depth)) for dtype, ties in self.counted.ties.items()}
            return
        self.qrels = as_qrels(qrels)
        if not len(self.qrels.queries):
            raise InputError("The qrels are empty: there is nothing to measure against.")
        self.held = as_run(run) if judged_only else countable(run)
        if judged_only:
            assert not isinstance(self.held, StreamedRun)
            self._whole, self.held = self.held, self.held.judged_only(self.qrels)
        self.unprojected = self.held
        if score_dtype is not None:
            self.held = self.held.projected(score_dtype)
            self._whole = self._whole and self._whole.projected(score_dtype)

    def __getstate__(self) -> dict[str, Any]:
        """What is pickled or copied: counts for every tool, and no rows, so that no file or dictionary is needed."""
        with suppress(InputError, OSError):  # a run that was changed, or is gone, stays as it was counted
            self._count({dtype: set(TOOL_ORDERS) for dtype in ("float64", "float32", *self._urns)})
        source = None
        with suppress(InputError, OSError):
            source = self.source
        ties = {dtype: urns.ties for dtype, urns in self._urns.items()}
        return {"depth": self.depth, "counted": CountedRun(ties, self.facts._replace(source=source))}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.depth, self.counted = state["depth"], state["counted"]
        self.held = self.unprojected = self._whole = None
        self.qrels = self.counted.qrels
        self._urns = {dtype: engine.Urns(ties) for dtype, ties in self.counted.ties.items()}

    @cached_property
    def run(self) -> Run | MappedRun | None:
        """The run with its rows; None if only tie groups were given."""
        return self.held.to_run() if isinstance(self.held, StreamedRun) else self.held

    @property
    def source(self) -> Source | None:
        """Where the run came from; a file is hashed when this is asked for."""
        return self.counted.facts.source if self.counted else self.held.source if self.held else None

    @cached_property
    def facts(self) -> Facts:
        """How many rows the run has, and how many of them are tied."""
        if self.held is None:
            assert self.counted is not None
            return self.counted.facts
        tied, before = self.held.tied_rows, self.unprojected
        new = None if self.held is before or before is None else tied - before.tied_rows
        return Facts(None, len(self.held), tied, new)

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
        if self.held is None:
            return
        known = {dtype: set(urns.ties.before) for dtype, urns in self._urns.items()}
        missing = {
            dtype: sorted(orders | known.get(dtype, set()))
            for dtype, orders in wanted.items()
            if dtype not in known or not orders <= known[dtype]
        }
        if not missing:
            return
        if known and isinstance(self.held, MappedRun):
            self.held.check_unchanged()  # the dictionary is the user's
        found = tie_groups_as(self.qrels, self.held, missing)
        if not known:
            _check_queries(self.qrels, self.held, next(iter(found.values())))
        whole = tie_groups_as(self.qrels, self._whole, dict.fromkeys(missing, ())) if self._whole is not None else found
        _check_found(self.qrels, self.held if self._whole is None else self._whole, next(iter(whole.values())))
        for dtype, ties in found.items():
            ties = ties if self._whole is None else ties.condensed_from(whole[dtype])
            self._urns[dtype] = engine.Urns(ties.to_depth(self.depth))

    def has_relevant(self, measure: Measure) -> NDArray[np.bool_]:
        """Whether a query has a relevant document for a measure, retrieved or not, (n_queries,)."""
        return self.urns("float64").judged(measure.relevant(self.qrels.label)) > 0

    def looked_into(self, measure: Measure) -> NDArray[np.bool_]:
        """Whether a measure looks into the last tie group of a list that may have been cut there, (n_queries,)."""
        urns, ties = self.urns("float64"), self.ties
        return ties.open_ended & (measure.depth(urns) > ties.length - ties.floor_size)

    def knows(self, rule: Rule) -> bool:
        """Whether the order of a rule can be counted, or was."""
        counted = self._urns.get(rule.dtype)
        return self.held is not None or (counted is not None and rule.order in counted.ties.before)

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


def _check_queries(qrels: Qrels, run: Countable, ties: TieGroups) -> None:
    if not len(run) and not len(run.queries):
        path = run.path if isinstance(run, StreamedRun) else None
        raise InputError(f"{path}: holds no rows." if path else "The run is empty: it has no query.")
    if not ties.present.any():
        raise InputError(
            f"The run and the qrels have no query in common. Queries of the run: {listed(run.queries)}; "
            f"of the qrels: {listed(qrels.queries)}."
        )


def _from_file(run: Countable) -> bool:
    """Whether a run came from a file, which is not hashed to know that."""
    return run.path is not None if isinstance(run, StreamedRun) else run.source is not None


def _check_found(qrels: Qrels, run: Countable, ties: TieGroups) -> None:
    """No judged document in any list: ids that do not match, unless it is one query made by hand."""
    if ties.size.any() or not len(run) or not len(qrels):
        return
    if np.count_nonzero(ties.present) > 1 or qrels.source is not None or _from_file(run):
        raise InputError(
            f"The run and the qrels have no document in common. Documents of the run: {listed(some_docs(run))}; "
            "of the qrels: "
            f"{listed(qrels.ids(np.arange(min(3, len(qrels)))))}."
        )
