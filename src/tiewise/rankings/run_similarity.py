"""`similarity`: how similar the rankings of two or more systems are, query by query, with ties and bounds.

The lists of all systems are paired system by system, over all queries at once, as `PairGroups`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations, permutations, product
from os import PathLike
from typing import Any, ClassVar, Literal, TypeVar

import numpy as np

from tiewise._version import __version__
from tiewise.caching import cached_property
from tiewise.data.columns import Floats, by_name, identifier, positions
from tiewise.data.progress import Progress, check_progress
from tiewise.data.runs import Run
from tiewise.data.source import Source, describe_sources
from tiewise.errors import InputError, MeasureError, warn_of_cuts
from tiewise.io import as_run
from tiewise.io.run_names import name_listed
from tiewise.io.types import RunLike
from tiewise.metrics.estimate import Bounds, Estimate
from tiewise.metrics.names import parse
from tiewise.rankings.correlation import PairCounts, count_pairs
from tiewise.rankings.pair_measures import PARTS, PairMeasure, list_pair_measures
from tiewise.rankings.ranking import Edge, cut_mask
from tiewise.results.base import Result
from tiewise.results.estimates import record_table
from tiewise.results.model import Cell, Column, Hint, Paragraph, Section, Table
from tiewise.results.model import Part as SectionPart
from tiewise.results.view import View
from tiewise.results.wording import MIN_WIDTH, MISSING, NumberFormat, count_noun, cut_lists_note, spell_option
from tiewise.ties.pairs import PairGroups, RankedLists

T = TypeVar("T")
Part = Literal["score", "value", "lower", "upper", "extrapolated"]
Statistic = Literal["expected", "minimum", "maximum"]

SCORE_PARTS: tuple[Part, ...] = ("extrapolated", "value", "lower")  # the score is the first that a measure has


# -- the result ----------------------------------------------------------------------------------------------------

#: The columns of TSV, CSV and Parquet and the keys of `pairs` in JSON, as stable as those of ``tiewise evaluate``.
SIMILARITY_COLUMNS = {
    "observed": "one run",
    "reference": "the other run; a symmetric measure has one row for the two",
    "query": "the query's id, or `all` for the mean over queries",
    "expected": "the value to report: extrapolated (RBO), of the lists as they are (MED_RBP, tau, tau_ap), or the "
    "lower bound (RBR, RBA)",
    "minimum": "its lowest value in any order of ties",
    "maximum": "the highest",
    "lower": "its lowest mean, whatever follows the lists",
    "lower_minimum": "the lowest in any order of ties",
    "lower_maximum": "the highest",
    "upper": "its highest mean, whatever follows the lists",
    "upper_minimum": "the lowest in any order of ties",
    "upper_maximum": "the highest",
    "residual": "upper − lower",
    "ceiling": "RBR with a cutoff k: 1 − φᵏ, the highest possible value",
}
#: The keys of `Similarity.to_dict` and of JSON.
SIMILARITY_KEYS = {
    "version": "of Tiewise",
    "measure": "the measure, with its parameters and cutoff",
    "expected_is": "what `expected` of a pair is: `extrapolated`, `value` or `lower`",
    "edge": "how a tie group across the cutoff was treated: `extend`, `shrink` or `error`",
    "runs": "name, path, SHA-256 and format of each run",
    "queries": "the number of queries that all runs have",
    "queries_left_out": "the number of the others",
    "notes": "what a reader should know",
    "pairs": "a row for each pair of runs",
}

EXPLANATION = (
    "value: the mean over the queries, and over all orders of tied documents; each run orders its ties by itself, so a "
    "run with ties is not quite like itself. by tie order: the lowest and the highest value that an order can give, "
    "the worst case in every query; same: it changes no digit shown. by unseen tail: what may follow the lists: at one "
    "end all of it disagrees, at the other it agrees as far as it can."
)
_VALUES = {
    "extrapolated": " The value assumes that it agrees as much as what was seen.",
    "value": " The value is that of the lists as they are.",
    "lower": " The value assumes that all of it disagrees.",
}
_CEILING = " at most: 1 − φᵏ, what k documents can have."
_DISTANCE = " The measure is a distance: 0 for the same ranking."
QUESTIONS = {
    "Does a ranking have relevant documents on top?": "RBP, with judgments: evaluate",
    "Does a set hold what a reference ranks first?": "RBR; with depths and costs: stages",
    "Do two rankings have the same documents on top?": "RBO: counts what is shared at each depth",
    "Do they also have them at the same ranks?": "RBA: needs a smaller φ for short lists",
    "Could judgments tell two rankings apart?": "MED_RBP: the largest difference of RBP",
    "Are the same documents in the same order?": "tau; with more weight on top: tau_ap",
}

WIDE_TAIL = 0.05  # from here on, the value depends on what was not seen
LONGEST_HEADING = 16  # where a name is longer, the columns of a matrix have numbers


@dataclass(eq=False, repr=False)
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
    RBO(phi=0.9) 0.9000, from 0.3117 to 0.9000
    """

    _schema = "tiewise/similarity/1"

    #: What is known of each pair. Each part has a column for each of the `STATISTICS`, (n_queries, n_pairs).
    PARTS: ClassVar[tuple[str, ...]] = PARTS
    STATISTICS: ClassVar[tuple[Statistic, ...]] = ("expected", "minimum", "maximum")

    measure: PairMeasure
    systems: tuple[str, ...]
    queries: tuple[str, ...]
    _values: Mapping[str, Floats]
    _measure_own: Callable[[], Mapping[str, Floats]]
    left_out: int  #: the number of queries that some systems lack
    n_split: int  #: lists in which the depth ends inside a tie group
    edge: Edge  #: what was done with these groups
    n_cut: int  #: lists that may have been cut inside a tie group which counts
    _sources: Sequence[Source | None]

    def matrix(self, part: Part = "score", statistic: Statistic = "expected") -> Floats:
        """The mean over queries for all pairs, (n_systems, n_systems).

        A row is the observed system, a column the reference.
        """
        if part == "score":
            part = self.score_part
        name = f"{part} {statistic}"
        if name not in self._values:
            raise InputError(f"{self.measure} has no '{name}' here. Available: {', '.join(self._values)}.")
        matrix = np.diag(_mean_over_queries(self._own[name]))
        means = _mean_over_queries(self._values[name])
        matrix[tuple(np.transpose(list(self._places)))] = means[list(self._places.values())]
        return matrix

    @property
    def score_part(self) -> Part:
        """Which part `score` is."""
        return next(part for part in SCORE_PARTS if f"{part} expected" in self._values)

    @cached_property
    def _places(self) -> dict[tuple[int, int], int]:
        """The column of each pair of different systems."""
        places = {pair: place for place, pair in enumerate(_pairs(self.measure, range(len(self.systems))))}
        return places | {pair[::-1]: place for pair, place in places.items()} if self.measure.symmetric else places

    @cached_property
    def _own(self) -> Mapping[str, Floats]:
        """The values of each system with itself, (n_queries, n_systems): computed when they are asked for."""
        return self._measure_own()

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_own": self._own, "_measure_own": dict}  # without the lists

    def pair(self, observed: str | int, reference: str | int) -> Bounds:
        """The mean over queries for one pair."""
        columns = self._columns_of(observed, reference)
        return self._bounds({name: float(_mean_over_queries(column)) for name, column in columns.items()})

    def per_query(self, observed: str | int, reference: str | int) -> dict[str, Bounds]:
        """The bounds of one pair for each query."""
        columns = self._columns_of(observed, reference)
        numbers = (dict(zip(columns, row, strict=True)) for row in zip(*map(list, columns.values()), strict=True))
        return dict(zip(self.queries, map(self._bounds, numbers), strict=True))

    @property
    def _n_queries(self) -> str:
        return count_noun(len(self.queries), "query", "queries")

    def __repr__(self) -> str:
        width = max(map(len, self.systems))
        matrix = self.matrix()
        sign = " " if (matrix < 0).any() else "-"  # a blank before positive numbers, if there are negative ones
        rows = zip(self.systems, matrix, strict=True)
        lines = [f"{name:<{width}}  " + " ".join(f"{value:{sign}.3f}" for value in row) for name, row in rows]
        return "\n".join([f"{self.measure} of {len(self.systems)} systems over {self._n_queries}", *lines])

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know: queries left out, tie groups at the depth, and lists that may have been cut."""
        left = count_noun(self.left_out, "query is", "queries are")
        left_note = f"{left} not in all runs and left out." if self.left_out else ""
        return tuple(note for note in (left_note, self.split_note, self.cut_note) if note)

    @property
    def cut_note(self) -> str:
        """How many lists may have been cut inside a tie group that counts; empty if there are none."""
        if not self.n_cut:
            return ""
        return cut_lists_note(f"{self.n_cut:,} of {self._n_lists}", ", which the numbers ignore")

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
        return f"{where}: {done} ({spell_option('edge', self.edge)})."

    # -- what is shown ----------------------------------------------------------------------------------------

    def _section(self, view: View) -> Section:
        is_matrix = len(self.systems) > 2 and not view.per_query
        parts: list[SectionPart] = [self._matrix_table(view) if is_matrix else self._pair_table(view)]
        parts.append(self._most_alike(view.numbers) if is_matrix else self._sentence(view.numbers))
        if view.explain:
            parts += ["", self._pair_table(view)] if is_matrix else []
            parts += ["", Paragraph(self._explanation, "dim"), ""]
            columns = Column("question"), Column("measure")
            parts.append(Table(columns, list(QUESTIONS.items()), title="Which measure fits which question"))
        else:
            more = "ranges by tie order" if is_matrix else "which measure to use"
            parts.append(Hint.explain(more))
        return Section(parts, f"{self.measure} · {self._n_queries}", self.notes)

    def _records(self, view: View) -> Table:
        return Table.of_records(SIMILARITY_COLUMNS, self._rows(view))

    def _document(self, view: View) -> dict[str, Any]:
        return {
            "version": __version__,
            "measure": self.measure.name,
            "expected_is": self.score_part,
            "edge": self.edge,
            "runs": describe_sources(self.systems, self._sources),
            "queries": len(self.queries),
            "queries_left_out": self.left_out,
            "notes": list(self.notes),
            "pairs": list(self._rows(view)),
        }

    @property
    def _explanation(self) -> str:
        text = EXPLANATION if "upper" in self.measure.parts else EXPLANATION.partition(" by unseen tail")[0]
        text += _VALUES[self.score_part] * ("upper" in self.measure.parts)
        return text + _CEILING * (self._ceiling is not None) + _DISTANCE * self.measure.is_distance

    @property
    def _ceiling(self) -> float | None:
        """1 − φᵏ for RBR with a cutoff k."""
        k = self.measure.cutoff
        return None if k is None or self.measure.list_depth == k else 1 - self.measure.weight_after(k)

    def _rows(self, view: View) -> Iterator[dict[str, Any]]:
        """The records: query by query if these are asked for, then the mean as ``all``."""
        for pair in _pairs(self.measure, self.systems):
            found = [*(self.per_query(*pair).items() if view.per_query else ()), ("all", self.pair(*pair))]
            for query, bounds in found:
                yield dict(zip(SIMILARITY_COLUMNS, (*pair, query, *self._statistics(bounds)), strict=True))

    def _statistics(self, bounds: Bounds) -> list[float | None]:
        unseen = [bounds.lower, bounds.upper] if "upper" in self.measure.parts else [None, None]
        each = [one or Estimate() for one in (getattr(bounds, self.score_part), *unseen)]
        numbers = [getattr(one, name) for one in each for name in self.STATISTICS]
        return [*numbers, bounds.residual if unseen[0] else None, self._ceiling]

    def _pair_table(self, view: View) -> Table:
        """A row for each pair; what ties and the unseen tail do to it have columns of their own."""
        rows = list(self._rows(view))
        has_tail = any(view.numbers.differ(row["lower"], row["upper"]) for row in rows)
        columns = {
            Column("observed", "run", shown="always"): ["observed"],
            Column("reference", "against", shown="always"): ["reference"],
            **({Column("query", shown="always"): ["query"]} if view.per_query else {}),
            Column("expected", "value", "right"): ["expected"],
            Column("ceiling", "at most", "right"): ["ceiling"],
            Column("ties", "by tie order"): ["minimum", "maximum"],
            Column("tail", "by unseen tail", shown="default" if has_tail else "wide"): ["lower", "upper"],
            Column("residual", align="right", shown="wide"): ["residual"],
        }
        return record_table(rows, columns, view)

    def _matrix_table(self, view: View) -> Table:
        is_numbered = max(map(len, self.systems)) > LONGEST_HEADING
        heads = [str(place) for place, _ in enumerate(self.systems, 1)] if is_numbered else self.systems
        matrix = np.where(np.eye(len(self.systems), dtype=bool), np.nan, self.matrix())
        rows = [
            (*([head] if is_numbered else []), name, *(_shaded(value, view.numbers) for value in values.tolist()))
            for head, name, values in zip(heads, self.systems, matrix, strict=True)
        ]
        names = [*([Column("number", "")] if is_numbered else []), Column("run")]
        group = "" if self.measure.symmetric else "against"
        return Table((*names, *(Column(head, align="right", group=group) for head in heads)), rows)

    def _sentence(self, numbers: NumberFormat) -> str:
        """What to report of the first pair."""
        pair = next(_pairs(self.measure, self.systems))
        row = next(self._rows(View()))
        value, low, high, residual = (row[name] for name in ("expected", "lower", "upper", "residual"))
        if value is None:
            return ""
        stem, of = self.measure.stem, "" if self.measure.symmetric else f" of {pair[0]} against {pair[1]}"
        if residual is not None and residual >= WIDE_TAIL:
            bounds = numbers.extremes(low, high)
            return f"The unseen tail leaves {stem}{of} open, {bounds}: use longer lists or a smaller phi."
        most = "" if row["ceiling"] is None else f", at most {numbers.number(row['ceiling'])}"
        ends = row["minimum"], row["maximum"]
        ties = f", by tie order {numbers.extremes(*ends)}" if numbers.differ(*ends) else ""
        tail = ""
        if residual is not None and numbers.differ(low, high):
            does = "adds" if value == low else "changes it by"
            tail = f"; the unseen tail {does} at most {numbers.number(max(high - value, value - low))}"
        return f"Report {stem} {numbers.number(value)}{of}{most}{ties}{tail}."

    def _most_alike(self, numbers: NumberFormat) -> str:
        """Which two runs are most alike, and which least."""
        pairs = _pairs(self.measure, self.systems)
        means = _mean_over_queries(self._values[f"{self.score_part} expected"])
        found = {pair: mean for pair, mean in zip(pairs, means.tolist(), strict=True) if not np.isnan(mean)}
        if not found:
            return ""
        ends = [pick(found, key=found.__getitem__) for pick in (max, min)]
        link = "and" if self.measure.symmetric else "against"
        words = [f"{a} {link} {b} ({numbers.number(found[a, b])})" for a, b in ends]
        most, least = reversed(words) if self.measure.is_distance else words
        highest = "" if self._ceiling is None else f" Highest possible: {numbers.number(self._ceiling)}."
        return f"Most alike: {most}; least: {least}.{highest}"

    def _columns_of(self, *names: str | int) -> dict[str, Floats]:
        """The values of one pair for each query, by part and statistic."""
        systems = [identifier(name, "system") for name in names]
        for system in systems:
            if system not in self.systems:
                raise InputError(f"There is no system '{system}'. Systems: {', '.join(self.systems)}.")
        a, b = map(self.systems.index, systems)
        columns, place = (self._own, a) if a == b else (self._values, self._places[a, b])
        return {name: columns[name][:, place] for name in self._values}

    def _bounds(self, numbers: Mapping[str, float]) -> Bounds:
        value, lower, upper, extrapolated = (self._estimate(part, numbers) for part in self.PARTS)
        if self.measure.parts == ("value",):  # nothing is unseen
            lower = upper = value
        lower = Estimate(measure=self.measure.name) if lower is None else lower
        return Bounds(lower, upper, extrapolated, self.measure.name, value)

    def _estimate(self, part: str, numbers: Mapping[str, float]) -> Estimate | None:
        found = (numbers.get(f"{part} {name}", np.nan) for name in self.STATISTICS)
        expected, minimum, maximum = (None if np.isnan(number) else float(number) for number in found)
        if expected is minimum is maximum is None:
            return None
        return Estimate(expected, minimum, maximum, measure=self.measure.name)


def _pairs(measure: PairMeasure, systems: Iterable[T]) -> Iterator[tuple[T, T]]:
    """The pairs of systems that are shown: an observed one and a reference."""
    return (combinations if measure.symmetric else permutations)(systems, 2)


def _shaded(value: float, numbers: NumberFormat) -> Cell:
    return Cell(MISSING) if np.isnan(value) else Cell(numbers.number(value), shade=value, value=value)


def _mean_over_queries(values: Floats) -> Floats:
    """The mean over the queries that have a value: an empty list cannot be extrapolated."""
    known = ~np.isnan(values)
    total = np.where(known, values, 0.0).sum(axis=0)
    mean: Floats = np.divide(total, known.sum(axis=0), out=np.full_like(total, np.nan), where=known.any(axis=0))
    return mean


# -- the computation -----------------------------------------------------------------------------------------------


def similarity(
    runs: Mapping[Any, RunLike] | Sequence[str | PathLike[str]],
    measure: str | PairMeasure = "RBO(phi=0.9)",
    *,
    edge: Edge = "extend",
    bounds: bool = True,
    complete: bool = False,
    distances: bool = False,
    progress: Progress | None = None,
) -> Similarity:
    """How similar the rankings of some systems are: all pairs, for each query that all systems have, and the mean.

    `runs` are runs by name, in any form that `evaluate` takes, or a list of paths. A cutoff in the measure
    (``"RBO(phi=0.9)@100"``) is the depth at which lists are cut. If it splits a tie group, `edge` includes the whole
    group (``"extend"``), leaves it out (``"shrink"``), or raises an error. ``bounds=False`` leaves out upper bounds and
    extremes, which is faster. A list that ends with tied documents may have been cut among them: a `CutWarning` says
    how many such lists count; ``complete=True`` says that none was. With `distances`, scores are distances, lowest
    first. `progress(done, total)` is called as pairs are done.

    >>> a = {"q": {"d1": 3.0, "d2": 2.0, "d3": 2.0}}
    >>> b = {"q": {"d1": 1.0, "d3": 0.9, "d2": 0.8}}
    >>> found = similarity({"A": a, "B": b}, "RBO(phi=0.9)", complete=True)
    >>> found.pair("A", "B").extrapolated
    RBO(phi=0.9) 0.9775 [0.9550, 1.0000]
    """
    runs = name_listed(runs)
    if not isinstance(runs, Mapping):
        raise InputError(f"A {type(runs).__name__} names no runs. Give {{'bm25': run, 'dense': run}}.")
    chosen = parse(measure) if isinstance(measure, str) else measure
    if not isinstance(chosen, PairMeasure):
        raise MeasureError(f"{chosen} measures a run against judgments. Measures of two runs: {list_pair_measures()}.")
    if len(runs) < 2:
        raise InputError(f"Similarity needs two runs or more; {len(runs)} was given.")
    systems = tuple(by_name(runs, "system"))
    check_progress(progress)
    loaded = [as_run(run, distances=distances) for run in runs.values()]
    queries, left_out = _common_queries(loaded)
    lists, n_split, n_cut = _read_lists(loaded, queries, chosen, edge)
    measure_pairs = partial(_measure_pairs, lists, len(queries), chosen, bounds)
    values = measure_pairs(list(_pairs(chosen, range(len(runs)))), progress)
    measure_own = partial(measure_pairs, [(i, i) for i in range(len(runs))])
    n_cut, sources = 0 if complete else n_cut, [run.source for run in loaded]
    found = Similarity(chosen, systems, queries, values, measure_own, left_out, n_split, edge, n_cut, sources)
    warn_of_cuts(found.cut_note)
    return found


def _common_queries(runs: Sequence[Run]) -> tuple[tuple[str, ...], int]:
    """The queries that all runs have, in the order of the first run, and the number of other queries."""
    common = set(runs[0].queries).intersection(*(run.queries for run in runs))
    if not common:
        raise InputError("The runs have no query in common.")
    n_queries = len(set().union(*(run.queries for run in runs)))
    return tuple(query for query in runs[0].queries if query in common), n_queries - len(common)


def _read_lists(
    runs: Sequence[Run], queries: Sequence[str], measure: PairMeasure, edge: Edge
) -> tuple[RankedLists, int, int]:
    """The lists of all runs for some queries, run by run, down to the depth of the measure.

    Also the number of lists in which the depth ends inside a tie group, and of those that may have been cut inside one
    which counts.
    """
    each, depth, n_split = RankedLists.of_runs(runs, queries), measure.list_depth, 0
    length = np.concatenate([one.length for one in each])
    lists = RankedLists.concatenate([one if depth is None else _cut(one, queries, depth, edge) for one in each])
    if depth is not None:
        n_split = int(np.count_nonzero(lists.length != np.minimum(length, depth)))
    places = [positions(run.query_index, queries) for run in runs]
    last_start, ends_tied = (
        np.concatenate([getattr(run, name)[place] for run, place in zip(runs, places, strict=True)])
        for name in ("last_start", "ends_tied")
    )
    starts = last_start[ends_tied & (lists.length == length)].tolist()
    return lists, n_split, sum(measure.weight_after(start) >= MIN_WIDTH for start in starts)


def _cut(lists: RankedLists, queries: Sequence[str], depth: int, edge: Edge) -> RankedLists:
    def describe(row: int) -> str:
        return f" of query '{queries[int(lists.list[row])]}'"

    return lists.keep(cut_mask(lists.start, lists.size, depth, edge, describe))


def _measure_pairs(
    lists: RankedLists,
    n_queries: int,
    measure: PairMeasure,
    bounds: bool,
    runs: Sequence[tuple[int, int]],
    progress: Progress | None = None,
) -> dict[str, Floats]:
    """The columns of a `Similarity`, (n_queries, n_pairs) each, for pairs of runs, by their numbers."""
    parts = [part for part in measure.parts if bounds or part != "upper"]
    statistics = Similarity.STATISTICS if bounds else Similarity.STATISTICS[:1]
    done, total = 0, len(runs) * n_queries
    values = np.full((len(parts), len(statistics), total), np.nan)
    own, their = (np.add.outer(run * n_queries, np.arange(n_queries)).ravel() for run in np.array(runs).T)
    for pairs in PairGroups.blocks(lists.head(measure.cutoff), lists, own, their):
        found = measure.of_pairs(pairs, bounds)
        for part, column in zip(parts, values, strict=True):
            column[:, done : done + len(pairs)] = found.get(part, np.nan)
        done += len(pairs)
        if progress is not None:
            progress(done, total)
    columns = values.reshape(-1, len(runs), n_queries).transpose(0, 2, 1)
    # A part that the measure never has is left out. These two may not be defined for some pairs only.
    kept = {"value", "extrapolated"} if lists.length.any() else {"value"}
    return {
        f"{part} {statistic}": column
        for (part, statistic), column in zip(product(parts, statistics), columns, strict=True)
        if part in kept or not np.isnan(column).all()
    }


class RunPair:
    """The lists of two runs for their common queries, and how similar they are: expected over the orders of ties, mean
    over queries.

    >>> x, y = (Run.from_dict({"q": scores}) for scores in ({"a": 2.0, "b": 1.0, "c": 1.0}, {"b": 2.0, "d": 1.0}))
    >>> RunPair(x, y).overlap(2)  # b is among the first two of x in one of two orders
    0.25
    """

    def __init__(self, left: Run, right: Run):
        self.left, self.right = RankedLists.of_runs([left, right], _common_queries([left, right])[0])

    def score(self, measure: PairMeasure) -> float | None:
        """The score that `Similarity` has for the left run against the right one; None if it is not defined."""
        blocks = PairGroups.blocks(self.left.head(measure.cutoff), self.right.head(measure.list_depth))
        part = next(part for part in SCORE_PARTS if part in measure.parts)
        mean = float(_mean_over_queries(np.concatenate([measure.of_pairs(one, False)[part][0] for one in blocks])))
        return None if np.isnan(mean) else mean

    def overlap(self, k: int) -> float:
        """The share of their first k documents that both have. Of lists that are shorter, all documents count."""
        blocks = PairGroups.blocks(self.left.head(k), self.right.head(k))
        found = [(one.overlap(k, k), one.length.max(axis=0)) for one in blocks]
        common, length = (np.concatenate(part) for part in zip(*found, strict=True))
        return float((common / np.clip(length, 1, k)).mean())

    def count_pairs(self) -> PairCounts:
        """The kinds of the pairs of documents that both lists of a query have."""
        counts = [count_pairs(pairs) for pairs in PairGroups.blocks(self.left, self.right)]
        return PairCounts(*np.concatenate(counts, axis=1))
