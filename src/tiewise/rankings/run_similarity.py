"""`similarity`: how similar the rankings of two or more systems are, query by query, with ties and bounds.

The documents of a query get integer codes once for all systems. Then one system is compared with all later ones at a
time, if the measure can do that.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any, ClassVar, Literal

import numpy as np

from tiewise.data.columns import Floats, by_name, identifier
from tiewise.data.progress import Progress, check_progress
from tiewise.data.runs import Run
from tiewise.errors import CutWarning, InputError, MeasureError
from tiewise.io import as_run
from tiewise.io.types import RunLike
from tiewise.metrics.estimate import Bounds, Estimate
from tiewise.metrics.names import parse
from tiewise.rankings.overlap import compute_rbo
from tiewise.rankings.pair_measures import PARTS, PairMeasure, list_pair_measures
from tiewise.rankings.query_rankings import QueryRankings
from tiewise.rankings.ranking import Edge
from tiewise.tables.model import Cell, Column, Section, Table
from tiewise.tables.optional import data_frame
from tiewise.tables.results import Result
from tiewise.tables.wording import MIN_WIDTH, PLAIN, count_noun, cut_lists_note

__all__ = ["Similarity", "mean_overlap", "similarity"]

Part = Literal["score", "value", "lower", "upper", "extrapolated"]
Statistic = Literal["expected", "minimum", "maximum"]

SCORE_PARTS: tuple[Part, ...] = ("extrapolated", "value", "lower")  # the score is the first that a measure has
PROGRESS_STEP = 50  # pairs between two calls of the progress callback


# -- the result ----------------------------------------------------------------------------------------------------


class Similarity(Result):
    """The similarity of systems: for each query and each pair of systems, and the mean over queries.

    `score` is the one number for a table: the extrapolated value if the measure has one (RBO), the value of the lists
    as they are (MED_RBP, tau, tau_ap), or the lower bound.

    >>> found = similarity({"A": {"q": {"x": 2.0, "y": 1.0}}, "B": {"q": {"y": 2.0, "x": 1.0}}}, "RBO(phi=0.9)")
    >>> found
    RBO(phi=0.9) of 2 systems over 1 query
    A  1.000 0.900
    B  0.900 1.000
    >>> found.pair("A", "B")
    RBO(phi=0.9) [0.3117, 0.9000]
    """

    #: What is known of each pair. Each part has a column for each of the `STATISTICS`, (n_queries, n_pairs).
    PARTS: ClassVar[tuple[str, ...]] = PARTS
    STATISTICS: ClassVar[tuple[Statistic, ...]] = ("expected", "minimum", "maximum")

    def __init__(
        self,
        measure: PairMeasure,
        systems: tuple[str, ...],
        queries: tuple[str, ...],
        rows: Sequence[range],
        values: Mapping[str, Floats],
        left_out: int,
        n_split: int = 0,
        edge: Edge = "extend",
        n_cut: int = 0,
    ):
        self.measure, self.systems, self.queries = measure, systems, queries
        self.left_out = left_out  #: the number of queries that some systems lack
        self.n_split, self.edge = n_split, edge  #: lists in which the depth ends inside a tie group, and what was done
        self.n_cut = n_cut  #: lists that may have been cut inside a tie group which counts
        self._values = {
            name: column for name, column in values.items() if name.startswith("value") or not np.isnan(column).all()
        }
        self._pair_index = np.zeros((len(systems), len(systems)), dtype=np.int64)  # of each observed and reference
        n_pairs = 0
        for i, others in enumerate(rows):
            self._pair_index[i, others] = np.arange(n_pairs, n_pairs := n_pairs + len(others))
            if measure.symmetric:
                self._pair_index[others, i] = self._pair_index[i, others]

    def matrix(self, part: Part = "score", statistic: Statistic = "expected") -> Floats:
        """The mean over queries for all pairs, (n_systems, n_systems).

        A row is the observed system, a column the reference.
        """
        if part == "score":
            part = self.score_part
        name = f"{part} {statistic}"
        if name not in self._values:
            raise InputError(f"{self.measure} has no '{name}' here. Available: {', '.join(self._values)}.")
        return _mean_over_queries(self._values[name])[self._pair_index]

    @property
    def score_part(self) -> Part:
        """Which part `score` is."""
        return next(part for part in SCORE_PARTS if f"{part} expected" in self._values)

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
        matrix = self.matrix()
        sign = " " if (matrix < 0).any() else "-"  # a blank before positive numbers, if there are negative ones
        rows = zip(self.systems, matrix, strict=True)
        lines = [f"{name:<{width}}  " + " ".join(f"{value:{sign}.3f}" for value in row) for name, row in rows]
        return "\n".join([self._title, *lines])

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know: tie groups at the depth, and lists that may have been cut."""
        return tuple(note for note in (self.split_note, self.cut_note) if note)

    @property
    def cut_note(self) -> str:
        """How many lists may have been cut inside a tie group that counts; empty if there are none."""
        if not self.n_cut:
            return ""
        effect = " that counts here; bounds and ranges are of the documents listed"
        return cut_lists_note(f"{self.n_cut:,} of {self._n_lists}", effect)

    @property
    def _n_lists(self) -> str:
        return count_noun(len(self.systems) * len(self.queries), "list")

    @property
    def split_note(self) -> str:
        """In how many lists the depth ends inside a tie group, and what was done; empty if there are none."""
        if not self.n_split:
            return ""
        done = "the whole group is taken" if self.edge == "extend" else "the group is left out"
        where = f"Depth {self.measure.list_depth} ends inside a tie group in {self.n_split:,} of {self._n_lists}"
        return f"{where}: {done} (edge={self.edge!r}, --edge)."

    def _section(self) -> Section:
        rows = [(name, *values) for name, values in zip(self.systems, self.matrix().tolist(), strict=True)]
        columns = (Column("system", ""), *(Column(name, align="right", format=_shaded) for name in self.systems))
        notes = [] if self.measure.symmetric else ["A row is an observed system, a column the reference."]
        if self.left_out:
            notes.append(f"Left out: {count_noun(self.left_out, 'query', 'queries')} that not all systems have.")
        return Section([Table(columns, rows)], self._title, [*notes, *self.notes])

    def _index_of(self, *names: str | int) -> int:
        systems = [identifier(name, "system") for name in names]
        for system in systems:
            if system not in self.systems:
                raise InputError(f"There is no system '{system}'. Systems: {', '.join(self.systems)}.")
        observed, reference = map(self.systems.index, systems)
        return int(self._pair_index[observed, reference])

    def _bounds(self, pick: Callable[[Floats], float]) -> Bounds:
        value, lower, upper, extrapolated = (self._estimate(part, pick) for part in self.PARTS)
        if self.measure.parts == ("value",):  # nothing is unseen
            lower = upper = value
        lower = Estimate(measure=self.measure.name) if lower is None else lower
        return Bounds(lower, upper, extrapolated, self.measure.name, value)

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
    edge: Edge = "extend",
    bounds: bool = True,
    complete: bool = False,
    distances: bool = False,
    progress: Progress | None = None,
) -> Similarity:
    """How similar the rankings of some systems are: all pairs, for each query that all systems have, and the mean.

    `runs` are runs by name, in any form that `evaluate` takes. A cutoff in the measure (``"RBO(phi=0.9)@100"``) is the
    depth at which lists are cut. If it splits a tie group, `edge` includes the whole group (``"extend"``), leaves it
    out (``"shrink"``), or raises an error. ``bounds=False`` leaves out upper bounds and extremes, which is faster; RBA
    of all pairs is then one sparse product. A list that ends with tied documents may have been cut among them: a
    `CutWarning` says how many such lists count; ``complete=True`` says that none was. With `distances`, scores are
    distances, lowest first. `progress(done, total)` is called as pairs are done.

    >>> a = {"q": {"d1": 3.0, "d2": 2.0, "d3": 2.0}}
    >>> b = {"q": {"d1": 1.0, "d3": 0.9, "d2": 0.8}}
    >>> found = similarity({"A": a, "B": b}, "RBO(phi=0.9)", complete=True)
    >>> found.pair("A", "B").extrapolated
    RBO(phi=0.9) 0.9775 [0.9550, 1.0000]
    """
    chosen = parse(measure) if isinstance(measure, str) else measure
    if not isinstance(chosen, PairMeasure):
        raise MeasureError(f"{chosen} measures a run against judgments. Measures of two runs: {list_pair_measures()}.")
    if not isinstance(runs, Mapping):
        raise InputError(f"A {type(runs).__name__} names no runs. Give {{'bm25': run, 'dense': run}}.")
    if len(runs) < 2:
        raise InputError(f"Similarity needs two runs or more; {len(runs)} was given.")
    systems = tuple(by_name(runs, "system"))
    check_progress(progress)
    loaded = [as_run(run, distances=distances) for run in runs.values()]
    queries, left_out = _common_queries(loaded)
    rows = [range(i if chosen.symmetric else 0, len(runs)) for i in range(len(runs))]  # the others of each run
    parts = [part for part in chosen.parts if bounds or part != "upper"]
    statistics = Similarity.STATISTICS if bounds else Similarity.STATISTICS[:1]
    n_pairs = sum(map(len, rows))
    values = np.full((len(parts), len(statistics), len(queries), n_pairs), np.nan)
    total, n_split, n_cut = len(queries) * n_pairs, 0, 0
    for q, query in enumerate(queries):
        rankings, done, reported = QueryRankings(loaded, query, chosen.list_depth, edge), 0, -PROGRESS_STEP
        n_split += rankings.n_split
        n_cut += 0 if complete else sum(chosen.weight_after(n) >= MIN_WIDTH for n in rankings.cut_starts)
        for i, others in enumerate(rows):
            if progress is not None and done >= reported + PROGRESS_STEP:
                progress(q * n_pairs + done, total)
                reported = done
            of_row = chosen.of_row(rankings, i, others, bounds)
            for part, column in zip(parts, values, strict=True):
                column[:, q, done : done + len(others)] = of_row[part]
            done += len(others)
        if progress is not None:
            progress((q + 1) * n_pairs, total)
    columns = zip(product(parts, statistics), values.reshape(-1, *values.shape[2:]), strict=True)
    by_column = {f"{part} {statistic}": column for (part, statistic), column in columns}
    found = Similarity(chosen, systems, queries, rows, by_column, left_out, n_split, edge, n_cut)
    if n_cut:
        warnings.warn(found.cut_note, CutWarning, stacklevel=2)
    return found


def _common_queries(runs: Sequence[Run]) -> tuple[tuple[str, ...], int]:
    """The queries that all runs have, in the order of the first run, and the number of other queries."""
    common = set(runs[0].queries).intersection(*(run.queries for run in runs))
    if not common:
        raise InputError("The runs have no query in common.")
    n_queries = len(set().union(*(run.queries for run in runs)))
    return tuple(query for query in runs[0].queries if query in common), n_queries - len(common)


def mean_rbo(left: Run, right: Run, phi: float, depth: int) -> float | None:
    """The expected, extrapolated RBO of two runs, mean over common queries; None if no list has a document.

    A tie group at `depth` is included whole.
    """
    rankings = (QueryRankings([left, right], query, depth, "extend") for query in _common_queries([left, right])[0])
    bounds = (compute_rbo(lists.pair(0, 1), phi, extremes=False) for lists in rankings)
    values = [rbo.expected or 0.0 for bound in bounds if (rbo := bound.extrapolated) is not None]
    return float(np.mean(values)) if values else None


def mean_overlap(left: Run, right: Run, k: int) -> float:
    """The expected share of their first k documents that two runs have in common, mean over common queries.

    Each run orders its ties by itself. Of lists that are shorter, all documents count.

    >>> x, y = (Run.from_dict({"q": scores}) for scores in ({"a": 2.0, "b": 1.0, "c": 1.0}, {"b": 2.0, "d": 1.0}))
    >>> mean_overlap(x, y, 2)  # b is among the first two of x in one of two orders
    0.25
    """
    shares = []
    for query in _common_queries([left, right])[0]:
        lists = QueryRankings([left, right], query, k, "extend")
        inside: Floats = np.zeros((2, lists.n_docs))  # the probability that a document is among the first k
        for place, (codes, groups) in enumerate(zip(lists.codes, lists.groups, strict=True)):
            inside[place, codes] = np.clip((k - groups.item_start) / groups.item_size, 0.0, 1.0)
        shares.append(float(inside[0] @ inside[1]) / max(min(k, int(lists.length.max())), 1))
    return float(np.mean(shares))
