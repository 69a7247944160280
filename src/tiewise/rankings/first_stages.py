"""`stages`: first stages measured against the second stage that reads what they hand on.

A first stage hands a *set* of documents to a reranker, which orders it anew. How good the set is depends on where the
reranker would have put its documents, had it read the whole collection: rank-biased recall of the set against that
reference ranking (Moffat et al., SIGIR-AP 2024, §3). Deeper sets hold more and cost more, so systems and depths are
weighed against their cost, and a point is dropped only if another one is surely better.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tiewise.data.columns import Floats, positions
from tiewise.data.progress import Progress, check_progress
from tiewise.data.runs import Qrels, Run
from tiewise.errors import InputError, counted, listed
from tiewise.io import as_run
from tiewise.io.compression import PathLike
from tiewise.rankings.costs import read_costs
from tiewise.rankings.rank_biased_recall import Observed
from tiewise.rankings.ranking import Ranking, check_depth
from tiewise.tables.model import Section
from tiewise.tables.records import Rows
from tiewise.tables.results import Result
from tiewise.ties.counting import count_ties
from tiewise.ties.orders import group_rows

__all__ = ["Stages", "stages"]

ROUNDING = 1e-12  # values that differ by less are equal: they were added up in another order

#: The key of a table of costs under which stands what the second stage takes for one document.
RERANK = "rerank"

Depth = int | None
Cost = Mapping[str, float | Mapping[int, float]]


def stages(
    reference: Any,
    runs: Mapping[str, Any],
    depths: int | Iterable[Depth] | None = (10, 20, 50, 100),
    phi: float | Iterable[float] = (0.8, 0.9),
    cost: Cost | PathLike | None = None,
    *,
    k: int | None = None,
    progress: Progress | None = None,
) -> Stages:
    """First stages against a second stage: rank-biased recall and cost of the sets they hand on, at some depths.

    `reference` is the second stage's ranking of all it could be given, as a run; equal scores are ties. `runs` are the
    first stages by name, as runs, or as ``{query: ids}``: a set of ids where the set is known (the union of some
    shards, say), a list where it is ranked, with sets for ties. At
    depth k the set holds the first k documents; of a tie group that straddles k, each with the chance that a random
    order gives it. A depth of None takes the whole list. Queries are those of the reference, and a run that lacks one
    hands on nothing for it.

    `recall` in the result is of the reference's first `k` documents (all of them, if k is None). `cost` holds for each
    system what its first stage takes, a number or one for each depth, and under ``"rerank"`` what the second stage
    takes for a document (nothing, if it is not there); it may be a file with that. Without `cost`, the depth is the
    cost by which points are dropped.

    >>> second = {"q": {"a": 9.0, "b": 7.0, "c": 5.0, "d": 3.0}}
    >>> bm25, dense = {"q": {"b": 2.0, "a": 1.0, "x": 1.0}}, {"q": {"a": 0.9, "y": 0.8, "b": 0.7}}
    >>> found = stages(second, {"bm25": bm25, "dense": dense}, depths=[2, 3], phi=0.8)
    >>> for row in found.table():
    ...     print(row["system"], row["depth"], f"{row['rbr_lower']:.3f}", f"{row['recall']:.3f}", row["pareto"])
    bm25 2 0.260 0.375 True
    bm25 3 0.360 0.500 True
    dense 2 0.200 0.250 True
    dense 3 0.360 0.500 True
    """
    if not isinstance(runs, Mapping) or not runs:
        raise InputError(f"{type(runs).__name__} of no runs by name. Give the first stages as {{'bm25': run}}.")
    check_progress(progress)
    second = _run(reference)
    if not second.queries:
        raise InputError("The reference has no query: there is nothing to measure against.")
    asked, phis = _depths(depths), _phis(phi)
    if k is not None:
        check_depth(k, "k")
    table = read_costs(cost) if isinstance(cost, (str, os.PathLike)) else cost
    costs = None if table is None else _Costs(table, tuple(runs), asked)
    deepest = None if None in asked else max(depth for depth in asked if depth is not None)
    done, total = 0, len(runs) * len(asked)
    found, observed, left_out = {}, {}, {}
    for name, run in runs.items():
        sets, left_out[name] = _first_stage(name, run, second, deepest)
        observed[name] = sets
        for depth in asked:
            drawn = sets.to(depth)
            recall, number = drawn.recall(k), float(drawn.number.mean())
            for one in phis:
                found[name, depth, one] = _Point(drawn.rbr(one), recall, number)
            done += 1
            if progress is not None:
                progress(done, total)
    return Stages(second.queries, tuple(runs), asked, phis, k, found, observed, costs, left_out)


class Stages(Result):
    """What first stages hand to a second stage: rank-biased recall with its bounds, recall, cost, and what is worth it.

    `plot.pareto()` and `plot.spread()` draw it (with the extra ``tiewise[report]``).
    """

    def __init__(
        self,
        queries: tuple[str, ...],
        systems: tuple[str, ...],
        depths: tuple[Depth, ...],
        phis: tuple[float, ...],
        k: int | None,
        points: Mapping[tuple[str, Depth, float], _Point],
        observed: Mapping[str, Observed],
        costs: _Costs | None,
        left_out: Mapping[str, int],
    ):
        self.queries, self.systems, self.depths, self.phis, self.k = queries, systems, depths, phis, k
        self._points, self._observed, self._costs = points, observed, costs
        self.left_out = dict(left_out)  #: how many queries each system has that the reference lacks

    def table(self) -> Rows:
        """Means over queries, a row for each system, depth and φ.

        `rbr_lower` and `rbr_upper` are expected over the orders of ties, if what the reference does not show comes last
        or next; `rbr_minimum` and `rbr_maximum` are the lowest and the highest that both uncertainties allow. `pareto`
        is False where another point costs no more and its lower bound reaches the upper bound of this one (unless the
        two are equal in both).
        """
        columns = {name: [float(column.mean()) for column in columns] for name, columns in self._columns.items()}
        kept = np.array([columns["rbr_lower"], columns["rbr_upper"]])[:, :, None]
        return Rows(self._keys() | columns | {"cost": self._cost(), "pareto": self._pareto(*kept)[:, 0].tolist()})

    def per_query(self) -> Rows:
        """The same for each query: the rows of `table`, query by query."""
        n = len(self.queries)
        kept = self._pareto(np.array(self._columns["rbr_lower"]), np.array(self._columns["rbr_upper"]))
        keys = {name: [one for one in column for _ in range(n)] for name, column in self._keys().items()}
        columns = {name: np.concatenate(columns).tolist() for name, columns in self._columns.items()}
        cost = {"cost": [one for one in self._cost() for _ in range(n)], "pareto": kept.ravel().tolist()}
        query = {"query": list(self.queries) * len(self._points)}
        return Rows({"system": keys.pop("system")} | query | keys | columns | cost)

    def spread(self, recall: float, *, depth: int, phi: float | None = None, k: int | None = None) -> Rows:
        """Sets of equal recall told apart by rank-biased recall: the paper's Figure 3.

        A row for each system and query whose set of `depth` documents holds, whatever the order of ties, just this
        share of the reference's first `k` (10, unless `stages` was given another): `base` weighs those k ranks alone,
        `base_upper` adds what the other documents could bring if the reference went on with them, `full` is measured
        against the whole reference, and `ceiling` is the best that any such set could reach. Ordered by base and full.
        """
        k, phi = self.k or 10 if k is None else k, self.phis[0] if phi is None else phi
        check_depth(k, "k")
        if isinstance(recall, str) or not 0 <= recall <= 1:
            raise InputError(f"recall={recall!r} is no share. It lies between 0 and 1.")
        if depth not in self.depths or phi not in self.phis:
            raise InputError(
                f"depth={depth!r} with phi={phi!r} was not measured. Depths: {_numbers(self.depths)}; "
                f"phi: {_numbers(self.phis)}."
            )
        parts: dict[str, list[Any]] = {name: [] for name in ("system", "query", *SPREAD)}
        for name in self.systems:
            drawn, point = self._observed[name].to(depth), self._points[name, depth, phi]
            seen = np.minimum(drawn.ties.length, k)
            low, high = drawn.recall_range(k)
            at = np.flatnonzero((abs(low - recall) < 1e-9) & (abs(high - recall) < 1e-9))
            base, hits = drawn.base(phi, k)[at], np.rint(recall * seen[at])
            others = drawn.number[at] - hits
            beyond = phi ** seen[at] * (1 - phi**others)  # Eq. 9
            values = (base, base + beyond, point.rbr.lower[at], point.rbr.upper[at], 1 - phi**hits + beyond)
            for column, value in zip(SPREAD, values, strict=True):
                parts[column] += value.tolist()
            parts["system"] += [name] * len(at)
            parts["query"] += [self.queries[q] for q in at.tolist()]
        order = np.lexsort((parts["full"], parts["base"])).tolist()
        return Rows({name: [column[i] for i in order] for name, column in parts.items()})

    @property
    def plot(self) -> Any:
        """Figures of this result: `pareto()` and `spread()`."""
        return import_module("tiewise.figures.stages").Plots(self)

    @cached_property
    def missing(self) -> dict[str, int]:
        """For how many queries each system hands on nothing."""
        return {name: int(np.count_nonzero(one.to(None).number == 0)) for name, one in self._observed.items()}

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know."""
        total = len(self.queries)
        missing = (
            f"{name} hands on nothing for {number:,} of {total:,} queries, which count as 0."
            for name, number in self.missing.items()
            if number
        )
        others = (
            f"{counted(number, 'query', 'queries')} of {name} {'is' if number == 1 else 'are'} not in the reference "
            "and left out."
            for name, number in self.left_out.items()
            if number
        )
        return (*missing, *others)

    def __repr__(self) -> str:
        return f"RBR over {counted(len(self.queries), 'query', 'queries')}\n{self.table()!r}"

    def _section(self) -> Section:
        title = f"RBR over {counted(len(self.queries), 'query', 'queries')}"
        return Section(self.table()._section().parts, title, self.notes)

    # -- points ------------------------------------------------------------------------------------------------

    @cached_property
    def _columns(self) -> dict[str, list[Floats]]:
        """The values of all points, each (n_queries,)."""
        points = self._points.values()
        return {
            "rbr_lower": [point.rbr.lower for point in points],
            "rbr_upper": [point.rbr.upper for point in points],
            "rbr_minimum": [point.rbr.lower_minimum for point in points],
            "rbr_maximum": [point.rbr.upper_maximum for point in points],
            "recall": [point.recall for point in points],
        }

    def _keys(self) -> dict[str, list[Any]]:
        names = ("system", "depth", "phi")
        return dict(zip(names, map(list, zip(*self._points, strict=True)), strict=True))

    def _cost(self) -> list[float | None]:
        if self._costs is None:
            return [None] * len(self._points)
        return [self._costs.of(name, depth, point.number) for (name, depth, _), point in self._points.items()]

    def _pareto(self, lower: Floats, upper: Floats) -> NDArray[np.bool_]:
        """Whether each point is worth its cost, (n_points, n_queries), among the points of its φ."""
        price = (
            self._cost() if self._costs else [depth or point.number for (_, depth, _), point in self._points.items()]
        )
        cost, phi = np.array(price, dtype=np.float64), np.array([phi for _, _, phi in self._points])
        kept = np.ones(lower.shape, dtype=bool)
        for one in self.phis:
            mine = np.flatnonzero(phi == one)
            kept[mine] = worth_it(cost[mine], lower[mine], upper[mine])
        return kept


#: The columns of `Stages.spread` beside system and query.
SPREAD = ("base", "base_upper", "full", "full_upper", "ceiling")


def worth_it(cost: Floats, lower: Floats, upper: Floats) -> NDArray[np.bool_]:
    """Whether no other point costs no more and has a lower bound that reaches this upper bound, one of them strictly.

    `cost` is (n_points,), the bounds are (n_points, n_queries).

    >>> worth_it(np.array([1.0, 2.0, 2.0]), np.array([[0.5], [0.3], [0.4]]), np.array([[0.6], [0.5], [0.7]]))[:, 0]
    array([ True, False,  True])
    """
    order = np.argsort(cost, kind="stable")
    best = np.maximum.accumulate(lower[order], axis=0)
    none = np.full_like(lower[:1], -np.inf)
    best = np.concatenate([none, best])  # best[i]: the highest lower bound among the i cheapest
    cheaper = best[np.searchsorted(cost[order], cost, side="left")]
    no_dearer = best[np.searchsorted(cost[order], cost, side="right")]
    kept: NDArray[np.bool_] = (cheaper < upper - ROUNDING) & (no_dearer <= upper + ROUNDING)
    return kept


class _Point:
    """One system at one depth and φ."""

    def __init__(self, rbr: Any, recall: Floats, number: float):
        self.rbr, self.recall, self.number = rbr, recall, number


class _Costs:
    """What each first stage and the second stage take."""

    def __init__(self, cost: Cost, systems: Sequence[str], depths: Sequence[Depth]):
        if not isinstance(cost, Mapping):
            raise InputError(f"cost={cost!r} is no table. Give {{'bm25': 1.2, '{RERANK}': 0.4}}.")
        if RERANK in systems:
            raise InputError(f"A system cannot be called '{RERANK}' where costs are given: that is the second stage.")
        missing = [name for name in systems if name not in cost]
        unknown = [name for name in cost if name not in systems and name != RERANK]
        if missing or unknown:
            raise InputError(
                *([f"There is no cost for {listed(missing)}. Give one for every system."] if missing else []),
                *(
                    [f"There is a cost for {listed(unknown)}, which is no system. Systems: {listed(systems)}."]
                    if unknown
                    else []
                ),
            )
        self._rerank = _cost(cost.get(RERANK, 0.0), f"'{RERANK}'")
        self._first = {name: self._by_depth(name, cost[name], depths) for name in systems}

    @staticmethod
    def _by_depth(name: str, cost: Any, depths: Sequence[Depth]) -> dict[Depth, float]:
        if not isinstance(cost, Mapping):
            return dict.fromkeys(depths, _cost(cost, f"'{name}'"))
        missing = [depth for depth in depths if depth not in cost]
        if missing:
            where = "for whole lists" if missing == [None] else f"at depth {_numbers(missing)}"
            raise InputError(f"There is no cost of '{name}' {where}. Give one for every depth, or one number for all.")
        return {depth: _cost(cost[depth], f"'{name}' at depth {depth}") for depth in depths}

    def of(self, name: str, depth: Depth, number: float) -> float:
        """The cost of both stages; `number` documents are read where no depth says how many."""
        return self._first[name][depth] + self._rerank * (number if depth is None else depth)


def _numbers(values: Iterable[object]) -> str:
    return ", ".join(map(str, values))


def _cost(value: Any, whose: str) -> float:
    if isinstance(value, (int, float, np.number)) and not isinstance(value, bool) and 0 <= float(value) < np.inf:
        return float(value)
    raise InputError(f"The cost {value!r} of {whose} is no number from 0 on.")


# -- what was given ------------------------------------------------------------------------------------------------


def _first_stage(name: str, given: Any, reference: Run, deepest: Depth) -> tuple[Observed, int]:
    """A first stage's documents down to the deepest set, in their tie groups, and where the reference has them; and how
    many of its queries the reference lacks."""
    is_set = _holds_sets(given)
    run = _of_sets(given) if is_set else _run(given)
    query = positions(reference.query_index, run.queries)  # where the reference has each query
    if not (query >= 0).any() and not is_set:
        raise InputError(f"'{name}' has no query of the reference. Do their query ids match?")
    rows, start, size = group_rows(run)
    kept = query[run.query[rows]] >= 0
    if deepest is not None:
        kept &= start < deepest
    rows, start, size = rows[kept], start[kept], size[kept]
    place = query[run.query[rows]]
    order = np.argsort(place, kind="stable")
    rows, start, size = rows[order], start[order], size[order]
    offsets = np.searchsorted(place[order], np.arange(len(reference.queries) + 1))
    listed_docs = Qrels(reference.queries, offsets, run.doc[rows], run.docs, np.zeros(len(rows)))
    return Observed(count_ties(listed_docs, reference, ())["float64"], start, size), int(np.count_nonzero(query < 0))


def _run(given: Any) -> Run:
    return as_run(given)


def _holds_sets(given: Any) -> bool:
    """Whether this is ``{query: ids}``."""
    if not isinstance(given, Mapping):
        return False
    return all(isinstance(ids, Collection) and not isinstance(ids, (Mapping, str, bytes)) for ids in given.values())


def _of_sets(sets: Mapping[Any, Iterable[Any]]) -> Run:
    return Run.from_dict({query: _scores(ids) for query, ids in sets.items()})


def _scores(ids: Iterable[Any]) -> dict[Any, float]:
    """Scores that rank a list as it stands, and tie the items of a set."""
    if isinstance(ids, Set):
        return dict.fromkeys(ids, 0.0)
    return {item: -float(place) for place, group in enumerate(Ranking(ids)) for item in group}


def _depths(depths: int | Iterable[Depth] | None) -> tuple[Depth, ...]:
    asked = tuple(depths) if isinstance(depths, Iterable) and not isinstance(depths, str) else (depths,)
    for depth in asked:
        if depth is not None:
            check_depth(depth)
    if not asked:
        raise InputError("No depth was given. Say depths=[10, 20].")
    return tuple(dict.fromkeys(None if depth is None else int(depth) for depth in asked))


def _phis(phi: float | Iterable[float]) -> tuple[float, ...]:
    asked = tuple(phi) if isinstance(phi, Iterable) and not isinstance(phi, str) else (phi,)
    for one in asked:
        if not isinstance(one, (int, float, np.floating)) or not 0 < one < 1:
            raise InputError(f"phi={one!r} is not possible. It must lie above 0 and below 1.")
    if not asked:
        raise InputError("No phi was given. Say phi=[0.8, 0.9].")
    return tuple(dict.fromkeys(float(one) for one in asked))
