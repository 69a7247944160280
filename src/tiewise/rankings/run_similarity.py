"""`similarity`: how alike the rankings of two or of many systems are, query by query, with ties and bounds.

`RBO`, `RBA` and `RBR` are measures like those of the catalogue, but of two rankings: they have names, parameters and
cutoffs, and `parse` reads them. Documents are coded once for all systems, so that a pair costs a few array operations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Any, ClassVar, Literal

import numpy as np

from tiewise.data.columns import Codes, Floats, by_name, identifier, positions
from tiewise.data.progress import Progress, check_progress
from tiewise.data.runs import Run
from tiewise.errors import InputError, MeasureError, counted
from tiewise.io import as_run
from tiewise.metrics.definition import Measure, param
from tiewise.metrics.estimate import Bounds, Estimate
from tiewise.metrics.names import measure, parse
from tiewise.rankings.rank_biased import Pair, mean_weight, rba_of, rbo_of, rbr_of
from tiewise.rankings.ranking import Edge, Groups, ranked
from tiewise.tables.model import Cell, Column, Section, Table
from tiewise.tables.optional import data_frame
from tiewise.tables.results import Result
from tiewise.tables.wording import PLAIN

__all__ = ["RBA", "RBO", "RBR", "Comparison", "Similarity", "similarity"]


class _NoValueError(MeasureError, AttributeError):
    """One ranking was to be measured by a comparison of two; `hasattr` is False then."""


class Comparison(Measure):
    """A measure of an observed ranking against a reference ranking. One ranking has no value, so there is no `of`."""

    compares: ClassVar[bool] = True
    symmetric: ClassVar[bool] = True

    @property
    def reach(self) -> int | None:
        """The depth to which both rankings are read: the cutoff, unless the measure is exact inside a tie group."""
        return self.cutoff

    @property
    def of(self) -> Any:
        """Raise: one ranking has no value."""
        function = f"tiewise.{self.stem.lower()}(x, y, phi={getattr(self, 'phi', 0.9):g})"
        raise _NoValueError(f"{self} compares two rankings: one alone has no value. Use {function}.")

    def of_pair(self, pair: Pair, extremes: bool = True) -> Bounds:
        """The measure of two rankings side by side, without the extremes over ties if they are not wanted."""
        raise NotImplementedError


class _RBO(Comparison):
    """Rank-biased overlap of two rankings: how much their heads share, at every depth.

    >>> RBO(phi=0.95) @ 100
    RBO(phi=0.95)@100
    """

    phi: float = param(0.9, above=0, below=1, shown=True)
    ties: str = param("average", choices=("average", "w", "a", "b"))

    def of_pair(self, pair: Pair, extremes: bool = True) -> Bounds:
        """RBO of two rankings side by side."""
        return rbo_of(pair, self.phi, self.ties, extremes=extremes)


RBO = measure(_RBO)


class _RBA(Comparison):
    """Rank-biased alignment of two rankings: common items weigh by their rank in both.

    >>> RBA(phi=0.95)
    RBA(phi=0.95)
    """

    phi: float = param(0.9, above=0, below=1, shown=True)
    ties: str = param("average", choices=("average", "share"))

    def of_pair(self, pair: Pair, extremes: bool = True) -> Bounds:
        """RBA of two rankings side by side."""
        return rba_of(pair, self.phi, self.ties, extremes=extremes)


RBA = measure(_RBA)


class _RBR(Comparison):
    """Rank-biased recall: the weight, in a reference ranking, of the items that the observed one holds.

    A cutoff is of the observed ranking alone, and exact inside a tie group.

    >>> RBR(phi=0.8) @ 20
    RBR(phi=0.8)@20
    """

    phi: float = param(0.9, above=0, below=1, shown=True)
    symmetric = False

    @property
    def reach(self) -> int | None:
        """Rankings are read whole: the cutoff is of the set."""
        return None

    def of_pair(self, pair: Pair, extremes: bool = True) -> Bounds:
        """RBR of the first ranking, as a set, against the second."""
        return rbr_of(pair, self.phi, self.cutoff)


RBR = measure(_RBR)


class Similarity(Result):
    """The similarity of systems: for each query and each pair, and on average over queries.

    `score` is the one number for a table: the extrapolated value where the measure has one (RBO), else the lower bound.
    """

    #: What is known of each pair; each has a column for each of the `STATISTICS` (n_queries, n_pairs).
    PARTS: ClassVar[tuple[str, ...]] = ("lower", "upper", "extrapolated")
    STATISTICS: ClassVar[tuple[str, ...]] = ("expected", "minimum", "maximum")

    def __init__(
        self,
        measure: Comparison,
        systems: tuple[str, ...],
        queries: tuple[str, ...],
        pairs: Sequence[tuple[int, int]],
        values: Mapping[str, Floats],
        left_out: int,
    ):
        self.measure, self.systems, self.queries = measure, systems, queries
        self.left_out = left_out  #: queries that not all systems have
        self._values = {name: column for name, column in values.items() if not np.isnan(column).all()}
        self._index = np.zeros((len(systems), len(systems)), dtype=np.int64)  # the pair of each observed and reference
        for place, (i, j) in enumerate(pairs):
            self._index[i, j] = place
            if measure.symmetric:
                self._index[j, i] = place

    def matrix(self, part: str = "score", statistic: Literal["expected", "minimum", "maximum"] = "expected") -> Floats:
        """The mean over queries for all pairs, (n_systems, n_systems); `part`: score, lower, upper or extrapolated.

        The row is the observed system, the column the reference.
        """
        if part == "score":
            part = "extrapolated" if f"extrapolated {statistic}" in self._values else "lower"
        name = f"{part} {statistic}"
        if name not in self._values:
            raise InputError(f"{self.measure} has no '{name}' here. There are: {', '.join(self._values)}.")
        mean: Floats = _mean(self._values[name])[self._index]
        return mean

    def pair(self, observed: str | int, reference: str | int) -> Bounds:
        """The mean over queries for one pair."""
        place = self._place(observed, reference)
        return self._bounds(lambda values: float(_mean(values[:, [place]])[0]))

    def per_query(self, observed: str | int, reference: str | int) -> dict[str, Bounds]:
        """The bounds of one pair for each query."""
        place = self._place(observed, reference)

        def at(q: int) -> Bounds:
            return self._bounds(lambda values: float(values[q, place]))

        return {query: at(q) for q, query in enumerate(self.queries)}

    def to_frame(self, part: str = "score") -> Any:
        """The matrix of means as a data frame, with the systems as its columns and in its first column."""
        return data_frame({"system": list(self.systems)} | dict(zip(self.systems, self.matrix(part).T, strict=True)))

    def __repr__(self) -> str:
        over = counted(len(self.queries), "query", "queries")
        wide = max(map(len, self.systems))
        rows = zip(self.systems, self.matrix(), strict=True)
        lines = [f"{name:<{wide}}  " + " ".join(f"{value:.3f}" for value in row) for name, row in rows]
        return "\n".join([f"{self.measure} of {len(self.systems)} systems over {over}", *lines])

    def _section(self) -> Section:
        rows = [(name, *values) for name, values in zip(self.systems, self.matrix().tolist(), strict=True)]
        columns = (Column("system", ""), *(Column(name, align="right", format=_shaded) for name in self.systems))
        notes = [] if self.measure.symmetric else ["A row is an observed system, a column the reference."]
        if self.left_out:
            notes.append(f"Left out: {counted(self.left_out, 'query', 'queries')} that not all systems have.")
        return Section([Table(columns, rows)], repr(self).partition("\n")[0], notes)

    def _place(self, *names: object) -> int:
        systems = [identifier(name, "system") for name in names]
        for system in systems:
            if system not in self.systems:
                raise InputError(f"There is no system '{system}'. There are: {', '.join(self.systems)}.")
        observed, reference = map(self.systems.index, systems)
        return int(self._index[observed, reference])

    def _bounds(self, pick: Callable[[Floats], float]) -> Bounds:
        parts: list[Estimate | None] = []
        for part in self.PARTS:
            columns = [self._values.get(f"{part} {name}") for name in self.STATISTICS]
            numbers = [None if column is None or np.isnan(value := pick(column)) else value for column in columns]
            known = any(number is not None for number in numbers)
            parts.append(Estimate(numbers[0], numbers[1], numbers[2], measure=self.measure.name) if known else None)
        assert parts[0] is not None
        return Bounds(parts[0], parts[1], parts[2], measure=self.measure.name)


def _shaded(value: float) -> Cell:
    return Cell(PLAIN.number(value), shade=value)


def similarity(
    runs: Mapping[Any, Any],
    measure: str | Comparison = "RBO(phi=0.9)",
    *,
    edge: Edge = "error",
    bounds: bool = True,
    progress: Progress | None = None,
) -> Similarity:
    """How alike the rankings of some systems are: all pairs, for each query that all of them have, and on average.

    `runs` are runs by name, in any form that `evaluate` takes. A cutoff in the measure (``"RBO(phi=0.9)@100"``) is the
    depth to which rankings are read; where it ends inside a tie group, `edge` says whether to take the group whole
    (``"extend"``), to leave it out (``"shrink"``), or to stop. ``bounds=False`` leaves out upper bounds and extremes,
    which is faster; RBA of all pairs is then one sparse product. `progress(done, total)` is called as pairs are done.

    >>> a = {"q": {"d1": 3.0, "d2": 2.0, "d3": 2.0}}
    >>> b = {"q": {"d1": 1.0, "d3": 0.9, "d2": 0.8}}
    >>> found = similarity({"A": a, "B": b}, "RBO(phi=0.9)")
    >>> found.pair("A", "B").extrapolated
    RBO(phi=0.9) 0.9775 [0.9550, 1.0000]
    """
    chosen = parse(measure) if isinstance(measure, str) else measure
    if not isinstance(chosen, Comparison):
        raise MeasureError(f"{chosen} measures a run against judgments. Between runs: RBO, RBA, RBR.")
    if not isinstance(runs, Mapping):
        raise InputError(f"A {type(runs).__name__} names no runs. Give {{'bm25': run, 'dense': run}}.")
    if len(runs) < 2:
        raise InputError(f"Similarity is between two runs or more; {len(runs)} was given.")
    systems = tuple(by_name(runs, "system"))
    check_progress(progress)
    lists = _Lists([as_run(run) for run in runs.values()], chosen.reach, edge)
    pairs = _pairs(len(runs), chosen.symmetric)
    wanted = [(part, one) for part in _parts(chosen, bounds) for one in Similarity.STATISTICS[: None if bounds else 1]]
    values = np.full((len(wanted), len(lists.queries), len(pairs)), np.nan)
    total = len(lists.queries) * len(pairs)
    for q in range(len(lists.queries)):
        here, done = lists.of_query(q), q * len(pairs)
        if not bounds and isinstance(chosen, _RBA) and chosen.ties == "average":
            values[0, q] = _aligned(here, chosen.phi)[tuple(zip(*pairs, strict=True))]
        else:
            for place, (i, j) in enumerate(pairs):
                if progress is not None and place % 50 == 0:
                    progress(done + place, total)
                found = chosen.of_pair(here.pair(i, j), bounds)
                numbers = (getattr(getattr(found, part), statistic, None) for part, statistic in wanted)
                values[:, q, place] = [np.nan if number is None else number for number in numbers]
        if progress is not None:
            progress(done + len(pairs), total)
    columns = dict(zip(map(" ".join, wanted), values, strict=True))
    return Similarity(chosen, systems, lists.queries, pairs, columns, lists.left_out)


def mean_rbo(left: Run, right: Run, phi: float, depth: int) -> float | None:
    """RBO of two runs to a depth, extrapolated and expected, mean over common queries; None if no list has a document.

    It is what `similarity` finds for one pair, without the pairs of a system with itself. A tie group that the depth
    cuts is read whole.
    """
    code = positions(left.doc_index, right.docs)  # −1 for a document that only the right run has
    place = np.full(len(left.docs) + 1, -1)
    values = []
    for query in (query for query in left.queries if query in right.query_index):
        (ours, x), (theirs, y) = (_head(run, query, depth, "extend") for run in (left, right))
        common = code[right.doc[theirs]]
        place[common] = np.arange(len(common))
        place[-1] = -1
        found = rbo_of(Pair(x, y, place[left.doc[ours]]), phi, extremes=False).extrapolated
        place[common] = -1
        values += [] if found is None else [found.expected or 0.0]
    return float(np.mean(values)) if values else None


def _parts(measure: Comparison, bounds: bool) -> tuple[str, ...]:
    extrapolated = ("extrapolated",) * isinstance(measure, _RBO)
    return ("lower", *(("upper",) * bounds), *extrapolated)


def _mean(values: Floats) -> Any:
    """The mean over queries, of those for which there is a value: an empty list cannot be extrapolated."""
    there = ~np.isnan(values)
    total = np.where(there, values, 0.0).sum(axis=0)
    return np.divide(total, there.sum(axis=0), out=np.full_like(total, np.nan), where=there.any(axis=0))


def _pairs(n: int, symmetric: bool) -> list[tuple[int, int]]:
    if symmetric:
        return [*combinations(range(n), 2), *((i, i) for i in range(n))]
    return [(i, j) for i in range(n) for j in range(n)]


class _Ranked:
    """The rankings of all systems for one query: document codes and groups, best first."""

    def __init__(self, codes: Sequence[Codes], groups: Sequence[Groups], vocabulary: int):
        self.codes, self.groups = codes, groups
        self._place = np.full((len(codes), vocabulary), -1, dtype=np.int32)
        for system, mine in enumerate(codes):
            self._place[system, mine] = np.arange(len(mine))

    def pair(self, i: int, j: int) -> Pair:
        return Pair(self.groups[i], self.groups[j], self._place[j, self.codes[i]].astype(np.int64))


def _aligned(ranked: _Ranked, phi: float) -> Floats:
    """Expected RBA of all pairs at once: the sparse product of the systems' weights with themselves."""
    from scipy.sparse import csr_array

    rows, columns, weights = [], [], []
    for system, (codes, groups) in enumerate(zip(ranked.codes, ranked.groups, strict=True)):
        mine = groups.group
        rows.append(np.full(len(codes), system))
        columns.append(codes)
        weights.append(mean_weight(phi, groups.starts[mine], groups.sizes[mine], power=0.5))
    shape = (len(ranked.codes), ranked._place.shape[1])
    matrix = csr_array((np.concatenate(weights), (np.concatenate(rows), np.concatenate(columns))), shape=shape)
    product: Floats = (matrix @ matrix.T).toarray()
    return product


class _Lists:
    """The runs of all systems, their documents coded by one vocabulary, for the queries that all of them have."""

    def __init__(self, runs: Sequence[Any], depth: int | None, edge: str):
        self._runs: list[Run] = list(runs)
        self._depth, self._edge = depth, edge
        shared = set.intersection(*(set(run.queries) for run in self._runs))
        everything = set().union(*(run.queries for run in self._runs))
        if not shared:
            raise InputError("The runs have no query in common.")
        self.queries = tuple(query for query in self._runs[0].queries if query in shared)
        self.left_out = len(everything) - len(shared)

    def of_query(self, q: int) -> _Ranked:
        """The rankings of one query; its documents are coded from 0."""
        query = self.queries[q]
        index: dict[str, int] = {}
        codes: list[Codes] = []
        groups: list[Groups] = []
        for run in self._runs:
            rows, mine = _head(run, query, self._depth, self._edge)
            codes.append(np.array([index.setdefault(name, len(index)) for name in run.ids(rows)], dtype=np.int64))
            groups.append(mine)
        return _Ranked(codes, groups, len(index))


def _head(run: Run, query: str, depth: int | None, edge: str) -> tuple[Codes, Groups]:
    """The rows of a list to a depth, best first, and their tie groups."""
    rows, group = ranked(run, run.query_index[query])
    kept = len(rows) if depth is None else Groups.of(group).cut(depth, edge, f" of query '{query}'")
    return rows[:kept], Groups.of(group[:kept])
