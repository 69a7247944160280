"""`stages`: first stages of a search, measured against the second stage that reranks their documents.

A first stage passes a *set* of documents to a reranker, which sorts them again. The quality of the set depends on where
the reranker would rank its documents if it read the whole collection: it is the rank-biased recall of the set against
that reference ranking (Moffat et al., SIGIR-AP 2024, §3). Deeper sets hold more and cost more, so each system and depth
is weighed against its cost. A point is dropped only if another point is certainly better.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from tiewise._version import __version__
from tiewise.caching import cached_property
from tiewise.data.columns import Codes, Floats, positions
from tiewise.data.progress import Progress, check_progress
from tiewise.data.runs import Run
from tiewise.data.source import Source, describe_sources
from tiewise.errors import InputError, warn_of_cuts
from tiewise.io import as_run
from tiewise.io.compression import PathLike
from tiewise.io.types import RunLike
from tiewise.metrics.segments import safe_divide
from tiewise.rankings.costs import Costs, Depth, StageCosts, read_costs
from tiewise.rankings.rank_biased import compute_rbr, set_size
from tiewise.rankings.ranking import Ranking, check_depth
from tiewise.rankings.weights import Weights, check_phi
from tiewise.results.base import Result
from tiewise.results.estimates import record_table
from tiewise.results.model import Column, Hint, Paragraph, Part, Rows, Section, Table
from tiewise.results.view import View
from tiewise.results.wording import (
    MIN_WIDTH,
    MISSING,
    NumberFormat,
    count_noun,
    cut_lists_note,
    join_names,
)
from tiewise.ties.pairs import PairGroups, RankedLists

T = TypeVar("T")

ATOL = 1e-12  # smaller differences are rounding

#: The columns of TSV, CSV and Parquet and the keys of `points` in JSON, as stable as those of ``tiewise evaluate``.
STAGE_COLUMNS = {
    "system": "the name of the first stage",
    "query": "the query's id, or `all` for the mean over queries",
    "depth": "how many documents the first stage passes on; empty: the whole list",
    "phi": "the φ of rank-biased recall",
    "rbr_lower": "rank-biased recall if documents that the reference does not show come last: the value to report",
    "rbr_upper": "the same if they come next",
    "rbr_minimum": "the lowest `rbr_lower` of all orders of ties",
    "rbr_maximum": "the highest",
    "rbr_ceiling": "1 − φ^depth: the highest possible value",
    "recall": "the share of the reference's first documents that is passed on",
    "cost": "what both stages take, by `cost`",
    "pareto": "false if another row of that φ costs no more and its rbr_lower reaches this rbr_upper",
}
#: The keys of `Stages.to_dict` and of JSON.
STAGE_KEYS = {
    "version": "of Tiewise",
    "reference": "path, SHA-256 and format of the reference",
    "runs": "name, path, SHA-256 and format of each first stage",
    "queries": "the number of queries of the reference",
    "recall_at": "the documents of the reference that recall counts; null: all",
    "notes": "what a reader should know",
    "points": "a row for each first stage, depth and φ",
}

EXPLANATION = (
    "RBR: rank-biased recall. A document that is passed on weighs (1 − φ)·φʳ⁻¹ if the reference has it at rank r; the "
    "mean over the queries, and over all orders of tied documents. at most: 1 − φ^depth, what so many documents can "
    "have. by tie order: the lowest and the highest value that an order can give; same: it changes no digit shown. "
    "by unseen tail: documents that the reference does not show come last in it, or next; RBR says last. recall: the "
    "share of {} that is passed on. cost: of the first stage, and of the second for as many documents as it is passed. "
    "pareto: no other row of that phi costs no more and has surely as high an RBR; without costs, depth is the cost. A "
    "higher phi looks further down the reference: on average at its first 1 / (1 − φ) documents."
)
NEAR = 0.05  # to the highest RBR: the cheapest first stage and depth within this distance is named


def stages(
    reference: RunLike,
    runs: Mapping[str, RunLike | Mapping[Any, Iterable[Any]]],
    depths: int | Iterable[Depth] | None = (10, 20, 50, 100),
    phi: float | Iterable[float] = (0.8, 0.9),
    cost: Costs | PathLike | None = None,
    *,
    recall_at: int | None = None,
    complete: bool = False,
    distances: bool = False,
    progress: Progress | None = None,
) -> Stages:
    """First stages against a second stage: rank-biased recall and cost of the sets that they pass on, at some depths.

    `reference` is the second stage's ranking of all documents it could be given, as a run; equal scores are ties.
    `runs` are the first stages by name: runs, or ``{query: ids}`` with a set of ids, or with a ranked list in which
    sets are ties. At depth k the set holds the first k documents; if k splits a tie group, each document of the group
    is in the set with the probability that a random order gives. A depth of None takes the whole list. The queries are
    those of the reference; a run without a query passes on nothing for it.

    `recall` in the result is of the reference's first `recall_at` documents (None: of all). `cost` is a table, or a
    file with one: the cost of each first stage, one number or one for each depth, and under ``"rerank"`` the cost of
    the second stage for one document (default 0). Without `cost`, the depth is the cost. A list that ends with tied
    documents may have been cut among them: a `CutWarning` says how many such lists count; ``complete=True`` says that
    none was. With `distances`, the scores of all runs and of the reference are distances, lowest first.

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
        raise InputError("There are no runs. Give the first stages by name: {'bm25': run}.")
    check_progress(progress)
    second = as_run(reference, distances=distances)
    if not second.queries:
        raise InputError("The reference has no query, so there is nothing to measure against.")
    all_depths = _as_tuple(depths, _parse_depth, "No depth was given. Use depths=[10, 20].")
    phis = _as_tuple(phi, check_phi, "No phi was given. Use phi=[0.8, 0.9].")
    if recall_at is not None:
        check_depth(recall_at, "recall_at")
    table = read_costs(cost) if isinstance(cost, (str, os.PathLike)) else cost
    costs = None if table is None else StageCosts(table, tuple(runs), all_depths)
    firsts = {name: _as_first_stage(name, given, second, distances) for name, given in runs.items()}
    whole, *lists = RankedLists.of_runs([second, *firsts.values()], second.queries)
    points = []
    for done, (name, first) in enumerate(zip(runs, lists, strict=True), start=1):
        measured = _measure(first, whole, all_depths, phis, recall_at)
        for depth, (sizes, values) in zip(all_depths, measured, strict=True):
            set_size = float(sizes.mean())
            total_cost = None if costs is None else costs.total(name, depth, set_size)
            points += [_Point(name, depth, *one, set_size, total_cost) for one in zip(phis, values, strict=True)]
        if progress is not None:
            progress(done, len(runs))
    cut = {} if complete else {"the reference": _count_cut_references(second, max(phis), recall_at)}
    cut |= {} if complete else {name: _count_cut_sets(run, second, all_depths) for name, run in firsts.items()}
    left_out = {name: len(run.query_index.keys() - second.query_index.keys()) for name, run in firsts.items()}
    missing = {name: int(np.count_nonzero(first.length == 0)) for name, first in zip(runs, lists, strict=True)}
    sources = [second.source, *(run.source for run in firsts.values())]
    cut = {name: number for name, number in cut.items() if number}
    found = Stages(second.queries, tuple(runs), all_depths, phis, recall_at, points, missing, left_out, cut, sources)
    warn_of_cuts(found.cut_note)
    return found


def _measure(
    first: RankedLists, reference: RankedLists, depths: Sequence[Depth], phis: Sequence[float], k: int | None
) -> Iterator[tuple[Codes, Floats]]:
    """For each depth the sizes of the sets, (n_queries,), and the values of each φ, (n_phis, n_values, n_queries)."""
    deepest = None if None in depths else max(depth for depth in depths if depth is not None)
    blocks = [
        [_measure_block(pairs, depth, phis, k) for depth in depths]
        for pairs in PairGroups.blocks(first.head(deepest), reference)
    ]
    for at_depth in zip(*blocks, strict=True):
        sizes, values = zip(*at_depth, strict=True)
        yield np.concatenate(sizes), np.concatenate(values, axis=-1)


def _measure_block(pairs: PairGroups, depth: Depth, phis: Sequence[float], k: int | None) -> tuple[Codes, Floats]:
    n_first = pairs.length[1] if k is None else np.minimum(pairs.length[1], k)
    recall = safe_divide(pairs.overlap(depth, k), n_first)
    values = []
    for phi in phis:
        rbr = compute_rbr(pairs, Weights.geometric(phi), depth)
        lower, minimum, maximum = rbr["lower"]
        values.append((lower, rbr["upper"][0], minimum, maximum, recall))
    return set_size(pairs, depth), np.array(values)


#: The columns that have a value for each query.
VALUES = ("rbr_lower", "rbr_upper", "rbr_minimum", "rbr_maximum", "recall")


class _Point(NamedTuple):
    """One system at one depth, for one φ."""

    system: str
    depth: Depth
    phi: float
    values: Floats  # (n_values, n_queries): of `VALUES`
    set_size: float  # the mean over queries
    cost: float | None

    @property
    def price(self) -> float:
        """The cost; without costs, the number of documents."""
        return self.depth or self.set_size if self.cost is None else self.cost

    @property
    def ceiling(self) -> float | None:
        """The most that so many documents can have."""
        return None if self.depth is None else 1 - self.phi**self.depth


@dataclass(eq=False, repr=False)
class Stages(Result):
    """The sets that first stages pass to a second stage: rank-biased recall with its bounds, recall and cost.

    `plot.pareto()` draws it (with the extra ``tiewise[report]``).

    >>> stages({"q": {"a": 2.0, "b": 1.0}}, {"bm25": {"q": {"b": 1.0}}}, depths=1, phi=0.8)
    RBR over 1 query
    system  depth  phi     rbr_lower  rbr_upper  rbr_minimum  rbr_maximum  rbr_ceiling  recall  cost  pareto
    bm25    1      0.8000  0.1600     0.1600     0.1600       0.1600       0.2000       0.5000  –     yes
    """

    _schema = "tiewise/stages/1"

    queries: tuple[str, ...]
    systems: tuple[str, ...]
    depths: tuple[Depth, ...]
    phis: tuple[float, ...]
    recall_at: int | None  #: recall is of so many documents of the reference; None: of all
    _points: Sequence[_Point]
    missing: dict[str, int]  #: for how many queries each system passes on nothing
    left_out: dict[str, int]  #: how many queries of each system the reference lacks
    cut_lists: dict[str, int]  #: how many lists of the reference and of each system may be cut in a group that counts
    _sources: Sequence[Source | None]  #: of the reference and of each system

    def table(self) -> Rows:
        """Means over queries, a row for each system, depth and φ.

        `rbr_lower` and `rbr_upper` are expected over the tie orders, if documents that the reference does not show come
        last, or next. `rbr_minimum` and `rbr_maximum` are the lowest and the highest value that an order of ties gives
        if they come last. `rbr_ceiling` is 1 − φ^depth. `pareto` is False if another point costs no more and its lower
        bound reaches the upper bound of this point (unless both points are equal).
        """
        return self._rows({name: column.mean(axis=1, keepdims=True) for name, column in self._columns.items()})

    def per_query(self) -> Rows:
        """The rows of `table` for each query."""
        return self._rows(self._columns, self.queries)

    @property
    def plot(self) -> Any:
        """Figures of this result: `pareto()`."""
        return import_module("tiewise.figures.first_stages").StagePlots(self)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know."""
        total = len(self.queries)
        missing = (
            f"{name} passes on nothing for {number:,} of {total:,} queries, which count as 0."
            for name, number in self.missing.items()
            if number
        )
        others = (
            f"{count_noun(number, 'query', 'queries')} of {name} {'is' if number == 1 else 'are'} not in the reference "
            "and left out."
            for name, number in self.left_out.items()
            if number
        )
        return (*missing, *others, *([self.cut_note] if self.cut_note else []))

    @property
    def cut_note(self) -> str:
        """How many lists may have been cut inside a tie group that counts; empty if there are none."""
        if not self.cut_lists:
            return ""
        counts = join_names([f"{count_noun(number, 'list')} of {name}" for name, number in self.cut_lists.items()])
        return cut_lists_note(counts, ", which the numbers ignore")

    def __repr__(self) -> str:
        return f"RBR over {count_noun(len(self.queries), 'query', 'queries')}\n{self.table()!r}"

    def _section(self, view: View) -> Section:
        parts: list[Part] = [self._point_table(view), *(self._sentence(phi, view.numbers) for phi in self.phis)]
        if view.explain:
            first = "the reference" if self.recall_at is None else f"the reference's first {self.recall_at:,} documents"
            parts += ["", Paragraph(EXPLANATION.format(first), "dim")]
        else:
            parts.append(Hint.explain())
        source = self._sources[0]
        reference = Path(source.path).name if source else "the reference"
        queries = count_noun(len(self.queries), "query", "queries")
        return Section(parts, f"RBR against {reference} · {queries}", self.notes)

    def _records(self, view: View) -> Table:
        rows = [*(self.per_query() if view.per_query else ()), *self.table()]
        return Table.of_records(STAGE_COLUMNS, ({"query": "all"} | row for row in rows))

    def _document(self, view: View) -> dict[str, Any]:
        reference, *others = describe_sources(["", *self.systems], self._sources)
        return {
            "version": __version__,
            "reference": {name: value for name, value in reference.items() if value},
            "runs": others,
            "queries": len(self.queries),
            "recall_at": self.recall_at,
            "notes": list(self.notes),
            "points": self._records(view).records(),
        }

    def _point_table(self, view: View) -> Table:
        """A row for each system and depth, one φ after another: rows of one φ are compared with each other."""
        rows = self._records(view).records()
        rows.sort(key=lambda row: (row["query"] == "all", self.phis.index(row["phi"])))
        has_tail = any(view.numbers.differ(row["rbr_lower"], row["rbr_upper"]) for row in rows)
        for row in rows:
            row |= {"phi": f"{row['phi']:g}", "depth": row["depth"] or "all", "cost": self._format_cost(row["cost"])}
        recall = "recall" if self.recall_at is None else f"recall@{self.recall_at}"
        columns = {
            **({Column("phi", align="right", shown="always"): ["phi"]} if len(self.phis) > 1 else {}),
            Column("system", "run", shown="always"): ["system"],
            **({Column("query", shown="always"): ["query"]} if view.per_query else {}),
            Column("depth", align="right", shown="always"): ["depth"],
            Column("cost", align="right"): ["cost"],
            Column("rbr_lower", "RBR", "right"): ["rbr_lower"],
            Column("rbr_ceiling", "at most", "right"): ["rbr_ceiling"],
            Column("ties", "by tie order"): ["rbr_minimum", "rbr_maximum"],
            Column("tail", "by unseen tail", shown="default" if has_tail else "wide"): ["rbr_lower", "rbr_upper"],
            Column("recall", recall, "right", shown="wide" if self.recall_at is None else "default"): ["recall"],
            Column("pareto"): ["pareto"],
        }
        return record_table(rows, columns, view)

    def _sentence(self, phi: float, numbers: NumberFormat) -> str:
        """Which first stage, how deep, at what cost: the cheapest point whose RBR is near the highest."""
        found = [(point, float(point.values[0].mean())) for point in self._points if point.phi == phi]
        highest, most = max(found, key=lambda one: (one[1], -one[0].price))
        chosen, value = min((one for one in found if one[1] >= most - NEAR), key=lambda one: (one[0].price, -one[1]))
        where = f"phi={phi:g}: " if len(self.phis) > 1 else ""
        text = f"{where}{self._describe(chosen)} has RBR {numbers.number(value)}"
        if chosen.price == highest.price:
            return f"{text}, the highest."
        return (
            f"{text}, within {numbers.short(NEAR)} of the highest, {numbers.number(most)}: {self._describe(highest)}."
        )

    def _describe(self, point: _Point) -> str:
        depth = "its whole list" if point.depth is None else f"depth {point.depth:,}"
        return f"{point.system} at {depth}" + ("" if point.cost is None else f" (cost {self._format_cost(point.cost)})")

    def _format_cost(self, cost: float | None) -> str:
        """A cost, with as many digits after the point as make all costs look different."""
        costs = {point.cost for point in self._points if point.cost is not None}
        digits = next((n for n in range(2, 10) if len({round(one, n) for one in costs}) == len(costs)), 10)
        return MISSING if cost is None else f"{cost:,.{digits}f}"

    @cached_property
    def _columns(self) -> dict[str, Floats]:
        """The values of all points, (n_points, n_queries) each."""
        columns = np.array([point.values for point in self._points]).transpose(1, 0, 2)
        return dict(zip(VALUES, columns, strict=True))

    def _rows(self, columns: Mapping[str, Floats], queries: Sequence[str] = ()) -> Rows:
        """A row for each point, or for each point and query."""

        def repeat(name: str) -> list[Any]:
            return [getattr(point, name) for point in self._points for _ in range(max(len(queries), 1))]

        return Rows(
            {
                "system": repeat("system"),
                **({"query": list(queries) * len(self._points)} if queries else {}),
                "depth": repeat("depth"),
                "phi": repeat("phi"),
                **{name: columns[name].ravel().tolist() for name in VALUES[:-1]},
                "rbr_ceiling": repeat("ceiling"),
                "recall": columns["recall"].ravel().tolist(),
                "cost": repeat("cost"),
                "pareto": self._pareto(columns["rbr_lower"], columns["rbr_upper"]).ravel().tolist(),
            }
        )

    def _pareto(self, lower: Floats, upper: Floats) -> NDArray[np.bool_]:
        """Whether each point is on the Pareto frontier of its φ, (n_points, n_queries)."""
        points = self._points
        cost = np.array([point.price for point in points], dtype=np.float64)
        kept = np.ones(lower.shape, dtype=bool)
        for phi in self.phis:
            rows = np.flatnonzero([point.phi == phi for point in points])
            kept[rows] = pareto_mask(cost[rows], lower[rows], upper[rows])
        return kept


def pareto_mask(cost: Floats, lower: Floats, upper: Floats) -> NDArray[np.bool_]:
    """Whether no other point dominates each point: costs no more, has a lower bound ≥ this upper bound, and not both =.

    `cost` is (n_points,), the bounds are (n_points, n_queries).

    >>> pareto_mask(np.array([1.0, 2.0, 2.0]), np.array([[0.5], [0.3], [0.4]]), np.array([[0.6], [0.5], [0.7]]))[:, 0]
    array([ True, False,  True])
    """
    order = np.argsort(cost, kind="stable")
    none = np.full_like(lower[:1], -np.inf)
    best = np.concatenate([none, np.maximum.accumulate(lower[order], axis=0)])  # among the i cheapest points
    cheaper = best[np.searchsorted(cost[order], cost, side="left")]
    not_dearer = best[np.searchsorted(cost[order], cost, side="right")]
    kept: NDArray[np.bool_] = (cheaper < upper - ATOL) & (not_dearer <= upper + ATOL)
    return kept


# -- arguments -----------------------------------------------------------------------------------------------------


def _as_first_stage(name: str, given: Any, reference: Run, distances: bool) -> Run:
    """A first stage as a run. What is given as sets or ranked lists is complete."""
    if _holds_sets(given):
        rankings = {query: [ids] if isinstance(ids, Set) else Ranking(ids) for query, ids in given.items()}
        run = Run.from_rankings(rankings)
        return replace(run, complete_lists=np.ones(len(run.queries), dtype=bool))
    run = as_run(given, distances=distances)
    if not any(query in reference.query_index for query in run.queries):
        raise InputError(f"'{name}' has no query of the reference. Do their query ids match?")
    return run


def _count_cut_references(run: Run, phi: float, k: int | None) -> int:
    """The number of lists that may have been cut inside a tie group which RBR or recall of the first k looks into.

    Without k, recall is of the documents listed.
    """
    counts = (phi**run.last_start >= MIN_WIDTH) | (run.last_start < (k or 0))
    return int(np.count_nonzero(run.ends_tied & counts))


def _count_cut_sets(run: Run, reference: Run, depths: Sequence[Depth]) -> int:
    """The number of lists that may have been cut inside a tie group into which a depth looks.

    Without a depth, the set is the list as it is.
    """
    deepest = max((depth for depth in depths if depth is not None), default=0)
    is_measured = positions(reference.query_index, run.queries) >= 0
    return int(np.count_nonzero(run.ends_tied & is_measured & (run.last_start < deepest)))


def _holds_sets(given: Any) -> bool:
    """Whether this is ``{query: ids}``."""
    if not isinstance(given, Mapping):
        return False
    return all(isinstance(ids, Collection) and not isinstance(ids, (Mapping, str, bytes)) for ids in given.values())


def _parse_depth(depth: Any) -> Depth:
    if depth is None:
        return None
    check_depth(depth)
    return int(depth)


def _as_tuple(given: Any, parse: Callable[[Any], T], if_empty: str) -> tuple[T, ...]:
    """One value, or several without repetition."""
    values = tuple(given) if isinstance(given, Iterable) and not isinstance(given, str) else (given,)
    if not values:
        raise InputError(if_empty)
    return tuple(dict.fromkeys(map(parse, values)))
