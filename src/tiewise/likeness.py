"""`similarity`: how alike the rankings of two or of many systems are, query by query, with ties and bounds.

`RBO`, `RBA` and `RBR` are measures like those of the catalogue, but of two rankings: they have names, parameters and
cutoffs, and `parse` reads them. Documents are coded once for all systems, so that a pair costs a few array operations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from tiewise.columns import Codes, Floats, data_frame
from tiewise.data import Run
from tiewise.errors import InputError, MeasureError
from tiewise.estimate import Bounds, Estimate
from tiewise.io import as_run
from tiewise.rankbiased import Pair, mean_power, rba_of, rbo_of, rbr_of
from tiewise.ranking import Groups
from tiewise.registry import Measure, measure, param, parse

__all__ = ["RBA", "RBO", "RBR", "Comparison", "Similarity", "similarity"]


class Comparison(Measure):
    """A measure of an observed ranking against a reference ranking; a cutoff is the depth to which both are read."""

    compares: ClassVar[bool] = True
    symmetric: ClassVar[bool] = True

    def of_pair(self, pair: Pair) -> Bounds:
        """The measure of two rankings side by side."""
        raise NotImplementedError


class _RBO(Comparison):
    """Rank-biased overlap of two rankings: how much their heads share, at every depth.

    >>> RBO(phi=0.95) @ 100
    RBO(phi=0.95)@100
    """

    phi: float = param(0.9, above=0, below=1, shown=True)
    ties: str = param("average", choices=("average", "w", "a", "b"))

    def of_pair(self, pair: Pair) -> Bounds:
        """RBO of two rankings side by side."""
        return rbo_of(pair, self.phi, self.ties)


RBO = measure(_RBO)


class _RBA(Comparison):
    """Rank-biased alignment of two rankings: common items weigh by their rank in both.

    >>> RBA(phi=0.95)
    RBA(phi=0.95)
    """

    phi: float = param(0.9, above=0, below=1, shown=True)
    ties: str = param("average", choices=("average", "share"))

    def of_pair(self, pair: Pair) -> Bounds:
        """RBA of two rankings side by side."""
        return rba_of(pair, self.phi, self.ties)


RBA = measure(_RBA)


class _RBR(Comparison):
    """Rank-biased recall: the weight, in a reference ranking, of the items that the observed one holds.

    >>> RBR(phi=0.8) @ 20
    RBR(phi=0.8)@20
    """

    phi: float = param(0.9, above=0, below=1, shown=True)
    symmetric = False

    def of_pair(self, pair: Pair) -> Bounds:
        """RBR of the first ranking, as a set, against the second."""
        return rbr_of(pair, self.phi)


RBR = measure(_RBR)


class Similarity:
    """The similarity of systems: for each query and each pair, and on average over queries.

    `score` is the one number for a table: the extrapolated value where the measure has one (RBO), else the lower bound.
    """

    #: What is known of each pair, as arrays (n_queries, n_systems, n_systems); the row is the observed system.
    PARTS: ClassVar[tuple[str, ...]] = ("lower", "upper", "extrapolated")

    def __init__(
        self,
        measure: Comparison,
        systems: tuple[str, ...],
        queries: tuple[str, ...],
        values: Mapping[str, Floats],
        left_out: int,
    ):
        self.measure, self.systems, self.queries = measure, systems, queries
        self.left_out = left_out  #: queries that not all systems have
        self._values = dict(values)

    def matrix(self, part: str = "score", statistic: Literal["expected", "minimum", "maximum"] = "expected") -> Floats:
        """The mean over queries for all pairs, (n_systems, n_systems); `part`: score, lower, upper or extrapolated."""
        if part == "score":
            part = "extrapolated" if f"extrapolated {statistic}" in self._values else "lower"
        name = f"{part} {statistic}"
        if name not in self._values:
            raise InputError(f"{self.measure} has no '{name}' here. There are: {', '.join(self._values)}.")
        return _mean(self._values[name])

    def pair(self, observed: str, reference: str) -> Bounds:
        """The mean over queries for one pair."""
        i, j = self._place(observed), self._place(reference)
        return self._bounds(lambda values: float(_mean(values[:, i, j])))

    def per_query(self, observed: str, reference: str) -> dict[str, Bounds]:
        """The bounds of one pair for each query."""
        i, j = self._place(observed), self._place(reference)

        def at(q: int) -> Bounds:
            return self._bounds(lambda values: float(values[q, i, j]))

        return {query: at(q) for q, query in enumerate(self.queries)}

    def to_frame(self, part: str = "score") -> Any:
        """The matrix of means as a data frame, with the systems as its columns and in its first column."""
        return data_frame({"system": list(self.systems)} | dict(zip(self.systems, self.matrix(part).T, strict=True)))

    def __repr__(self) -> str:
        head = f"{self.measure} of {len(self.systems)} systems over {len(self.queries):,} queries"
        wide = max(map(len, self.systems))
        rows = zip(self.systems, self.matrix(), strict=True)
        lines = [f"{name:<{wide}}  " + " ".join(f"{value:.3f}" for value in row) for name, row in rows]
        return "\n".join([head, *lines])

    def _place(self, system: str) -> int:
        if system not in self.systems:
            raise InputError(f"There is no system '{system}'. There are: {', '.join(self.systems)}.")
        return self.systems.index(system)

    def _bounds(self, pick: Callable[[Floats], float]) -> Bounds:
        parts: list[Estimate | None] = []
        for part in self.PARTS:
            columns = [self._values.get(f"{part} {name}") for name in ("expected", "minimum", "maximum")]
            numbers = [None if column is None or np.isnan(value := pick(column)) else value for column in columns]
            known = any(number is not None for number in numbers)
            parts.append(Estimate(numbers[0], numbers[1], numbers[2], measure=self.measure.name) if known else None)
        assert parts[0] is not None
        return Bounds(parts[0], parts[1], parts[2], measure=self.measure.name)


def similarity(
    runs: Mapping[str, Any],
    measure: str | Comparison = "RBO(phi=0.9)",
    *,
    edge: Literal["extend", "shrink", "error"] = "extend",
    bounds: bool = True,
    progress: Callable[[int, int], None] | None = None,
) -> Similarity:
    """How alike the rankings of some systems are: all pairs, for each query that all of them have, and on average.

    `runs` are runs by name, in any form that `evaluate` takes. A cutoff in the measure (``"RBO(phi=0.9)@100"``) is the
    depth to which rankings are read; where it ends inside a tie group, `edge` says whether to take the group whole, to
    leave it out, or to stop. ``bounds=False`` computes expected lower bounds only, for RBA in one sparse product.
    `progress(done, total)` is called as pairs are done.

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
    systems = tuple(runs)
    lists = _Lists([as_run(run) for run in runs.values()], chosen.cutoff, edge)
    n, total = len(systems), len(lists.queries)
    pairs = _pairs(n, chosen.symmetric)
    values: dict[str, Floats] = {}

    def put(name: str, q: int, i: int, j: int, value: float | None) -> None:
        if value is not None:
            values.setdefault(name, np.full((total, n, n), np.nan))[q, i, j] = value

    for q in range(total):
        ranked = lists.of_query(q)
        if not bounds and isinstance(chosen, _RBA) and chosen.ties == "average":
            values.setdefault("lower expected", np.zeros((total, n, n)))[q] = _aligned(ranked, chosen.phi)
        else:
            for done, (i, j) in enumerate(pairs):
                if progress is not None and done % 50 == 0:
                    progress(q * len(pairs) + done, total * len(pairs))
                found = chosen.of_pair(ranked.pair(i, j))
                for part in Similarity.PARTS if bounds else ("lower",):
                    estimate: Estimate | None = getattr(found, part)
                    for statistic in ("expected", "minimum", "maximum") if bounds else ("expected",):
                        number = getattr(estimate, statistic, None)
                        put(f"{part} {statistic}", q, i, j, number)
                        if chosen.symmetric:
                            put(f"{part} {statistic}", q, j, i, number)
    if progress is not None:
        progress(total * len(pairs), total * len(pairs))
    return Similarity(chosen, systems, lists.queries, values, lists.left_out)


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

    root = float(np.sqrt(phi))
    rows, columns, weights = [], [], []
    for system, (codes, groups) in enumerate(zip(ranked.codes, ranked.groups, strict=True)):
        mine = groups.group
        rows.append(np.full(len(codes), system))
        columns.append(codes)
        weights.append(mean_power(root, groups.starts[mine].astype(np.float64), groups.sizes[mine].astype(np.float64)))
    shape = (len(ranked.codes), ranked._place.shape[1])
    matrix = csr_array((np.concatenate(weights), (np.concatenate(rows), np.concatenate(columns))), shape=shape)
    product: Floats = (matrix @ matrix.T).toarray()
    return (1 - phi) / phi * product


class _Lists:
    """The runs of all systems, their documents coded by one vocabulary, for the queries that all of them have."""

    def __init__(self, runs: Sequence[Any], depth: int | None, edge: str):
        self._runs: list[Run] = [run if isinstance(run, Run) else run.to_run() for run in runs]
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
            place = run.query_index[query]
            rows = np.arange(run.offsets[place], run.offsets[place + 1])
            rows = rows[np.argsort(-run.score[rows], kind="stable")]
            group = np.cumsum(np.diff(run.score[rows], prepend=run.score[rows[:1]]) != 0)
            kept = self._kept(group, query)
            group, names = group[:kept], run.ids(rows[:kept])
            codes.append(np.array([index.setdefault(name, len(index)) for name in names], dtype=np.int64))
            groups.append(Groups.of(group.astype(np.int64)))
        return _Ranked(codes, groups, len(index))

    def _kept(self, group: NDArray[Any], query: str) -> int:
        """How many items are read of a list whose items are in these groups."""
        depth = self._depth
        if depth is None or depth >= len(group) or group[depth] != group[depth - 1]:
            return len(group) if depth is None else min(depth, len(group))
        if self._edge == "error":
            raise InputError(
                f"Depth {depth} ends inside a tie group of query '{query}'. Say edge='extend' to take the group whole, "
                "or edge='shrink' to leave it out."
            )
        side: Literal["left", "right"] = "right" if self._edge == "extend" else "left"
        return int(np.searchsorted(group, group[depth - 1], side=side))
