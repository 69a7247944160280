"""`similarity`: how similar the rankings of two or more systems are, query by query, with ties and bounds.

`RBO`, `RBA` and `RBR` are measures like those of the catalogue, but of two rankings: they have names, parameters and
cutoffs, and `parse` reads them. The documents of a query get integer codes once for all systems, so a pair costs only a
few array operations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations, product
from typing import Any, ClassVar, Literal

import numpy as np

from tiewise.data.columns import Codes, Floats, by_name, identifier
from tiewise.data.progress import Progress, check_progress
from tiewise.data.runs import Run
from tiewise.errors import InputError, MeasureError
from tiewise.io import as_run
from tiewise.io.types import RunLike
from tiewise.metrics.definition import Measure, param
from tiewise.metrics.estimate import Bounds, Estimate
from tiewise.metrics.names import measure, parse
from tiewise.rankings.alignment import compute_rba
from tiewise.rankings.overlap import compute_rbo
from tiewise.rankings.pairs import RankingPair
from tiewise.rankings.rank_biased import compute_rbr
from tiewise.rankings.ranking import Edge, RankGroups, rank_rows
from tiewise.rankings.weights import Weights
from tiewise.tables.model import Cell, Column, Section, Table
from tiewise.tables.optional import data_frame
from tiewise.tables.results import Result
from tiewise.tables.wording import PLAIN, count_noun

__all__ = ["RBA", "RBO", "RBR", "PairMeasure", "Similarity", "similarity"]

Part = Literal["score", "lower", "upper", "extrapolated"]
Statistic = Literal["expected", "minimum", "maximum"]

PROGRESS_STEP = 50  # pairs between two calls of the progress callback


# -- measures of two rankings --------------------------------------------------------------------------------------


class _NoValueError(MeasureError, AttributeError):
    """Raised by `of` of a measure of two rankings, so that `hasattr` is False."""


class PairMeasure(Measure):
    """A measure of an observed ranking against a reference ranking. It has no `of`: one ranking has no value.

    >>> isinstance(RBO, PairMeasure), RBO.symmetric, RBR.symmetric
    (True, True, False)
    """

    compares: ClassVar[bool] = True
    symmetric: ClassVar[bool] = True
    parts: ClassVar[tuple[str, ...]] = ("lower", "upper")

    @property
    def list_depth(self) -> int | None:
        """The depth at which both lists are cut: the cutoff, unless the measure is exact inside a tie group."""
        return self.cutoff

    @property
    def of(self) -> Any:
        """Raise an error: one ranking has no value."""
        function = f"tiewise.{self.stem.lower()}(x, y, phi={getattr(self, 'phi', 0.9):g})"
        raise _NoValueError(f"{self} compares two rankings: one ranking has no value. Use {function}.")

    def of_pair(self, pair: RankingPair, extremes: bool = True) -> Bounds:
        """The value of a pair of rankings; without `extremes`, only the expectations."""
        raise NotImplementedError


class _RBO(PairMeasure):
    """Rank-biased overlap of two rankings: how much their heads share, at every depth.

    >>> RBO(phi=0.95) @ 100
    RBO(phi=0.95)@100
    """

    phi: float = param(0.9, above=0, below=1, shown=True)
    ties: str = param("average", choices=("average", "w", "a", "b"))
    parts = ("lower", "upper", "extrapolated")

    def of_pair(self, pair: RankingPair, extremes: bool = True) -> Bounds:
        return compute_rbo(pair, self.phi, self.ties, extremes=extremes)


RBO = measure(_RBO)


class _RBA(PairMeasure):
    """Rank-biased alignment of two rankings: common items weigh by their rank in both.

    >>> RBA(phi=0.95)
    RBA(phi=0.95)
    """

    phi: float = param(0.9, above=0, below=1, shown=True)
    ties: str = param("average", choices=("average", "share"))

    def of_pair(self, pair: RankingPair, extremes: bool = True) -> Bounds:
        return compute_rba(pair, Weights.geometric(self.phi), self.ties, extremes=extremes)


RBA = measure(_RBA)


class _RBR(PairMeasure):
    """Rank-biased recall: the weight, in a reference ranking, of the items that the observed one holds.

    A cutoff is of the observed ranking alone, and exact inside a tie group.

    >>> RBR(phi=0.8) @ 20
    RBR(phi=0.8)@20
    """

    phi: float = param(0.9, above=0, below=1, shown=True)
    symmetric = False

    @property
    def list_depth(self) -> int | None:
        """None: the lists are not cut, because the cutoff defines the set."""
        return None

    def of_pair(self, pair: RankingPair, extremes: bool = True) -> Bounds:
        return compute_rbr(pair, Weights.geometric(self.phi), self.cutoff)


RBR = measure(_RBR)


# -- the result ----------------------------------------------------------------------------------------------------


class Similarity(Result):
    """The similarity of systems: for each query and each pair of systems, and the mean over queries.

    `score` is the one number for a table: the extrapolated value if the measure has one (RBO), else the lower bound.

    >>> found = similarity({"A": {"q": {"x": 2.0, "y": 1.0}}, "B": {"q": {"y": 2.0, "x": 1.0}}}, "RBO(phi=0.9)")
    >>> found
    RBO(phi=0.9) of 2 systems over 1 query
    A  1.000 0.900
    B  0.900 1.000
    >>> found.pair("A", "B")
    RBO(phi=0.9) [0.3117, 0.9000]
    """

    #: What is known of each pair. Each part has a column for each of the `STATISTICS`, (n_queries, n_pairs).
    PARTS: ClassVar[tuple[str, ...]] = ("lower", "upper", "extrapolated")
    STATISTICS: ClassVar[tuple[Statistic, ...]] = ("expected", "minimum", "maximum")

    def __init__(
        self,
        measure: PairMeasure,
        systems: tuple[str, ...],
        queries: tuple[str, ...],
        pairs: Sequence[tuple[int, int]],
        values: Mapping[str, Floats],
        left_out: int,
    ):
        self.measure, self.systems, self.queries = measure, systems, queries
        self.left_out = left_out  #: the number of queries that some systems lack
        self._values = {name: column for name, column in values.items() if not np.isnan(column).all()}
        self._pair_index = np.zeros((len(systems), len(systems)), dtype=np.int64)  # of each observed and reference
        for index, (i, j) in enumerate(pairs):
            self._pair_index[i, j] = index
            if measure.symmetric:
                self._pair_index[j, i] = index

    def matrix(self, part: Part = "score", statistic: Statistic = "expected") -> Floats:
        """The mean over queries for all pairs, (n_systems, n_systems).

        A row is the observed system, a column the reference.
        """
        if part == "score":
            part = "extrapolated" if f"extrapolated {statistic}" in self._values else "lower"
        name = f"{part} {statistic}"
        if name not in self._values:
            raise InputError(f"{self.measure} has no '{name}' here. Available: {', '.join(self._values)}.")
        return _mean_over_queries(self._values[name])[self._pair_index]

    def pair(self, observed: str | int, reference: str | int) -> Bounds:
        """The mean over queries for one pair."""
        index = self._index_of(observed, reference)
        return self._bounds(lambda values: float(_mean_over_queries(values[:, [index]])[0]))

    def per_query(self, observed: str | int, reference: str | int) -> dict[str, Bounds]:
        """The bounds of one pair for each query."""
        index = self._index_of(observed, reference)
        picks = (lambda values, q=q: float(values[q, index]) for q in range(len(self.queries)))
        return dict(zip(self.queries, map(self._bounds, picks), strict=True))

    def to_frame(self, part: Part = "score") -> Any:
        """The matrix as a data frame: a column for each system, and the systems' names in the first column."""
        return data_frame({"system": list(self.systems)} | dict(zip(self.systems, self.matrix(part).T, strict=True)))

    @property
    def _title(self) -> str:
        queries = count_noun(len(self.queries), "query", "queries")
        return f"{self.measure} of {len(self.systems)} systems over {queries}"

    def __repr__(self) -> str:
        width = max(map(len, self.systems))
        rows = zip(self.systems, self.matrix(), strict=True)
        lines = [f"{name:<{width}}  " + " ".join(f"{value:.3f}" for value in row) for name, row in rows]
        return "\n".join([self._title, *lines])

    def _section(self) -> Section:
        rows = [(name, *values) for name, values in zip(self.systems, self.matrix().tolist(), strict=True)]
        columns = (Column("system", ""), *(Column(name, align="right", format=_shaded) for name in self.systems))
        notes = [] if self.measure.symmetric else ["A row is an observed system, a column the reference."]
        if self.left_out:
            notes.append(f"Left out: {count_noun(self.left_out, 'query', 'queries')} that not all systems have.")
        return Section([Table(columns, rows)], self._title, notes)

    def _index_of(self, *names: str | int) -> int:
        systems = [identifier(name, "system") for name in names]
        for system in systems:
            if system not in self.systems:
                raise InputError(f"There is no system '{system}'. Systems: {', '.join(self.systems)}.")
        observed, reference = map(self.systems.index, systems)
        return int(self._pair_index[observed, reference])

    def _bounds(self, pick: Callable[[Floats], float]) -> Bounds:
        lower, upper, extrapolated = (self._estimate(part, pick) for part in self.PARTS)
        assert lower is not None
        return Bounds(lower, upper, extrapolated, measure=self.measure.name)

    def _estimate(self, part: str, pick: Callable[[Floats], float]) -> Estimate | None:
        columns = (self._values.get(f"{part} {name}") for name in self.STATISTICS)
        numbers = [None if column is None or np.isnan(value := pick(column)) else value for column in columns]
        if all(number is None for number in numbers):
            return None
        return Estimate(numbers[0], numbers[1], numbers[2], measure=self.measure.name)


def _shaded(value: float) -> Cell:
    return Cell(PLAIN.number(value), shade=value)


def _mean_over_queries(values: Floats) -> Floats:
    """The mean over the queries that have a value: an empty list cannot be extrapolated."""
    known = ~np.isnan(values)
    total = np.where(known, values, 0.0).sum(axis=0)
    mean: Floats = np.divide(total, known.sum(axis=0), out=np.full_like(total, np.nan), where=known.any(axis=0))
    return mean


# -- the computation -----------------------------------------------------------------------------------------------


def similarity(
    runs: Mapping[Any, RunLike],
    measure: str | PairMeasure = "RBO(phi=0.9)",
    *,
    edge: Edge = "error",
    bounds: bool = True,
    progress: Progress | None = None,
) -> Similarity:
    """How similar the rankings of some systems are: all pairs, for each query that all systems have, and the mean.

    `runs` are runs by name, in any form that `evaluate` takes. A cutoff in the measure (``"RBO(phi=0.9)@100"``) is the
    depth at which lists are cut. If it splits a tie group, `edge` includes the whole group (``"extend"``), leaves it
    out (``"shrink"``), or raises an error. ``bounds=False`` leaves out upper bounds and extremes, which is faster; RBA
    of all pairs is then one sparse product. `progress(done, total)` is called as pairs are done.

    >>> a = {"q": {"d1": 3.0, "d2": 2.0, "d3": 2.0}}
    >>> b = {"q": {"d1": 1.0, "d3": 0.9, "d2": 0.8}}
    >>> found = similarity({"A": a, "B": b}, "RBO(phi=0.9)")
    >>> found.pair("A", "B").extrapolated
    RBO(phi=0.9) 0.9775 [0.9550, 1.0000]
    """
    chosen = parse(measure) if isinstance(measure, str) else measure
    if not isinstance(chosen, PairMeasure):
        raise MeasureError(f"{chosen} measures a run against judgments. Measures between runs: RBO, RBA, RBR.")
    if not isinstance(runs, Mapping):
        raise InputError(f"A {type(runs).__name__} names no runs. Give {{'bm25': run, 'dense': run}}.")
    if len(runs) < 2:
        raise InputError(f"Similarity needs two runs or more; {len(runs)} was given.")
    systems = tuple(by_name(runs, "system"))
    check_progress(progress)
    loaded = [as_run(run) for run in runs.values()]
    queries, left_out = _common_queries(loaded)
    n = range(len(runs))
    pairs = [*combinations(n, 2), *zip(n, n, strict=True)] if chosen.symmetric else list(product(n, n))
    parts = [part for part in chosen.parts if bounds or part != "upper"]
    columns = list(product(parts, Similarity.STATISTICS if bounds else Similarity.STATISTICS[:1]))
    values = np.full((len(columns), len(queries), len(pairs)), np.nan)
    total = len(queries) * len(pairs)
    for q, query in enumerate(queries):
        rankings, done = _QueryRankings(loaded, query, chosen.list_depth, edge), q * len(pairs)
        if not bounds and isinstance(chosen, _RBA) and chosen.ties == "average":
            values[0, q] = _expected_rba_matrix(rankings, chosen.phi)[tuple(zip(*pairs, strict=True))]
        else:
            for index, (i, j) in enumerate(pairs):
                if progress is not None and index % PROGRESS_STEP == 0:
                    progress(done + index, total)
                found = chosen.of_pair(rankings.pair(i, j), bounds)
                numbers = (getattr(getattr(found, part), statistic, None) for part, statistic in columns)
                values[:, q, index] = [np.nan if number is None else number for number in numbers]
        if progress is not None:
            progress(done + len(pairs), total)
    by_column = dict(zip(map(" ".join, columns), values, strict=True))
    return Similarity(chosen, systems, queries, pairs, by_column, left_out)


def _common_queries(runs: Sequence[Run]) -> tuple[tuple[str, ...], int]:
    """The queries that all runs have, in the order of the first run, and the number of other queries."""
    common = set(runs[0].queries).intersection(*(run.queries for run in runs))
    if not common:
        raise InputError("The runs have no query in common.")
    n_queries = len(set().union(*(run.queries for run in runs)))
    return tuple(query for query in runs[0].queries if query in common), n_queries - len(common)


class _QueryRankings:
    """The rankings of all runs for one query, down to a depth: document codes from 0, and tie groups, best first."""

    def __init__(self, runs: Sequence[Run], query: str, depth: int | None, edge: str):
        self.codes: list[Codes] = []
        self.groups: list[RankGroups] = []
        code: dict[str, int] = {}
        for run in runs:
            rows, group = rank_rows(run, run.query_index[query])
            groups = RankGroups.from_group(group)
            if depth is not None:
                length = groups.head_length(depth, edge, f" of query '{query}'")
                rows, groups = rows[:length], RankGroups.from_group(group[:length])
            self.codes.append(np.array([code.setdefault(doc, len(code)) for doc in run.ids(rows)], dtype=np.int64))
            self.groups.append(groups)
        self.n_docs = len(code)
        self._position = np.full((len(runs), self.n_docs), -1, dtype=np.int32)  # of each document in each ranking
        for system, docs in enumerate(self.codes):
            self._position[system, docs] = np.arange(len(docs))

    def pair(self, i: int, j: int) -> RankingPair:
        return RankingPair(self.groups[i], self.groups[j], self._position[j, self.codes[i]].astype(np.int64))


def _expected_rba_matrix(rankings: _QueryRankings, phi: float) -> Floats:
    """Expected RBA of all pairs at once: the sparse product of the systems' weights with themselves."""
    from scipy.sparse import csr_array

    weights = [
        Weights.geometric(phi).mean(groups.item_start, groups.item_size, power=0.5) for groups in rankings.groups
    ]
    offsets = np.cumsum([0, *map(len, weights)])
    shape = (len(weights), rankings.n_docs)
    matrix = csr_array((np.concatenate(weights), np.concatenate(rankings.codes), offsets), shape=shape)
    matrix.sort_indices()
    rba: Floats = (matrix @ matrix.T).toarray()
    return rba


def mean_rbo(left: Run, right: Run, phi: float, depth: int) -> float | None:
    """The expected, extrapolated RBO of two runs, mean over common queries; None if no list has a document.

    A tie group at `depth` is included whole.
    """
    rankings = (_QueryRankings([left, right], query, depth, "extend") for query in _common_queries([left, right])[0])
    bounds = (compute_rbo(lists.pair(0, 1), phi, extremes=False) for lists in rankings)
    values = [rbo.expected or 0.0 for bound in bounds if (rbo := bound.extrapolated) is not None]
    return float(np.mean(values)) if values else None
