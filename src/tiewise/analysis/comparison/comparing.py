"""`compare`: systems against each other on the same judgments, and `Compared`, which answers what is asked of them.

Each run is measured once; a pair is arithmetic on the columns of two systems, done when it is asked for. What is random
about it is of two kinds that never mix: the order of tied documents, and which queries happened to be sampled.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from importlib import import_module
from itertools import combinations
from os import PathLike
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from tiewise.analysis import significance
from tiewise.analysis.comparison.aligned import Columns, aligned
from tiewise.analysis.comparison.leaderboard import Ranks, apart, leaderboard, together
from tiewise.analysis.comparison.orders import Meeting, Orders, Outcome
from tiewise.analysis.comparison.pair import Duel
from tiewise.analysis.comparison.sections import comparison_records, comparison_section
from tiewise.analysis.comparison.system import System
from tiewise.analysis.evaluating import report_of
from tiewise.analysis.measuring import Evaluation, count_run, resolve_measures
from tiewise.analysis.options import OptionNames, Options
from tiewise.analysis.reports import said_once
from tiewise.analysis.significance import ATOL, Test
from tiewise.data.columns import Floats, by_name, identifier
from tiewise.data.progress import Progress, check_progress
from tiewise.errors import CutWarning, InputError, MeasureError, listed
from tiewise.io import as_qrels, as_source
from tiewise.io.types import QrelsLike, RunLike
from tiewise.metrics.definition import Measure
from tiewise.metrics.estimate import Estimate, Estimates
from tiewise.metrics.names import MeasureLike, parse, parse_all
from tiewise.rankings.correlation import tau
from tiewise.rankings.ranking import Ranking
from tiewise.tables.model import Section, Table
from tiewise.tables.records import Rows
from tiewise.tables.results import Result
from tiewise.ties.counted import RunSource

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = [
    "DEFAULT_MEASURES",
    "Compared",
    "Orders",
    "as_source_of",
    "check_options",
    "check_pairs",
    "compare",
    "prefix_errors",
]

#: What is compared when nothing is asked for: one measure, for each more makes every p-value say less.
DEFAULT_MEASURES = ("nDCG@10",)
#: Up to so many systems all pairs are compared; so many pairs are kept, others are found again.
MOST_SYSTEMS, KEPT = 200, 2000
#: Up to so many systems their ranks are found pair by pair where one order breaks the ties of all.
MOST_TOGETHER = 50


_BOUNDS = (
    "Ranks by ties are bounds then; a leaderboard says (ranks_reached) of which an order is known that gives them."
)
#: What a reader should know of orders that are not independent.
NOTES = {
    "per-query": "In each query one order breaks the ties of all runs. Where it has too many cases to enumerate, it is "
    f"sampled, and the range is the wider one of independent orders (exact_range is false). {_BOUNDS}",
    "shared": "One order of all documents breaks the ties of all runs in all queries. Where tied documents that "
    "several queries have in common make too many cases to enumerate, the order is sampled, and the range, that of one "
    "order for each query or of independent orders, is a bound that no order may reach (exact_range is false). "
    f"{_BOUNDS}",
}


def compare(
    qrels: QrelsLike,
    runs: Mapping[Any, RunLike],
    measures: MeasureLike | Iterable[MeasureLike] = DEFAULT_MEASURES,
    *,
    baseline: str | None = None,
    orders: Orders = "independent",
    test: Test = "permutation",
    confidence: float = 0.95,
    samples: int = 10_000,
    seed: int = 0,
    progress: Progress | None = None,
    **options: Unpack[OptionNames],
) -> Compared:
    """Systems against each other: who is ahead, and whether ties, the sample of queries or a tool decide that.

    `runs` is ``{name: run}``, two or more, in any form that `evaluate` takes; `options` are those of `evaluate`
    (`missing`, `no_relevant`, `score_dtype`, `depth`, `judged_only`, `complete`, `oblivious`).

    - `baseline`: the system that all others are compared with; without one, all pairs are compared.
    - `orders`: the ties of each run fall on their own (``"independent"``), or one random order of all document ids
      breaks the ties of all runs in all queries (``"shared"``), as a tool does that sorts by id; ``"per-query"`` is one
      order for all runs, another in each query.
    - `test`: ``"permutation"`` (paired, by sign flips), ``"t"`` or ``"wilcoxon"``, on the queries' expectations. Where
      all differences are equal, ``"t"`` has no spread to divide by and is the permutation test.
    - `confidence` of intervals; `samples` and `seed` of all that is drawn.

    >>> qrels = {"q1": {"a": 1, "b": 0}, "q2": {"c": 1}}
    >>> tied = {"q1": {"a": 1.0, "b": 1.0}, "q2": {"c": 2.0, "d": 1.0}}
    >>> late = {"q1": {"b": 2.0, "a": 1.0}, "q2": {"c": 2.0, "d": 1.0}}
    >>> pair = compare(qrels, {"tied": tied, "late": late}, "RR", complete=True).pair("tied", "late")
    >>> pair.difference
    RR 0.1250 [0.0000, 0.2500]
    >>> pair.certain, pair.probability, pair.probability_equal
    (False, 0.5, 0.5)
    """
    chosen, checked = resolve_measures(measures), Options.of("compare", options)
    named = by_name(runs, "system") if isinstance(runs, Mapping) else {}
    baseline = None if baseline is None else identifier(baseline, "system")
    _check(named, runs, baseline)
    check_options(orders, test, confidence, samples, seed)
    check_progress(progress)
    judged, systems = as_qrels(qrels), []
    sources = {name: as_source_of(name, run) for name, run in named.items()}
    for done, (name, source) in enumerate(sources.items(), 1):
        with prefix_errors(name):
            evaluation = Evaluation(count_run(judged, source, checked), checked)
            systems.append(System(name, evaluation, report_of(evaluation, chosen)))
        if progress is not None:
            progress(done, len(named))
    measured = [one for one in chosen if any(len(system.estimates[one]) for system in systems)]
    if not measured:
        raise InputError(f"No query is left to compare by {listed(chosen)}: see missing= and no_relevant=.")
    if orders != "independent":  # one order for several runs is of all their documents
        kept = {measure: aligned(systems, measure).kept for measure in measured}
        for system, source in zip(systems, sources.values(), strict=True):
            with prefix_errors(system.name):
                system.find_members(source.rows(), kept, across_queries=orders == "shared")
    found = Compared(systems, measured, baseline, orders, test, confidence, samples, seed)
    if found.cut_note:
        warnings.warn(found.cut_note, CutWarning, stacklevel=2)
    return found


def as_source_of(name: str, run: RunLike) -> RunSource:
    """A run that can be counted; errors start with its name, or with the name of its file."""
    if isinstance(run, (str, PathLike)):
        return as_source(run)
    with prefix_errors(name):
        return as_source(run)


def check_pairs(systems: int, baseline: str | None) -> None:
    """Refuse to compare all pairs of very many systems."""
    if baseline is None and systems > MOST_SYSTEMS:
        raise InputError(
            f"{systems:,} systems make {systems * (systems - 1) // 2:,} pairs. Name a baseline (baseline=, --baseline) "
            f"to compare the others with, take the leaderboard alone (--format table), ask for single pairs, or "
            f"compare at most {MOST_SYSTEMS} at once."
        )


@contextmanager
def prefix_errors(name: str) -> Iterator[None]:
    """Start errors with the name of the run."""
    try:
        yield
    except InputError as error:
        raise InputError(f"Run '{name}': {error}") from error


def check_options(orders: Any, test: Any, confidence: Any, samples: Any, seed: Any) -> None:
    """Refuse options that `compare` cannot use, before anything is read."""
    if orders not in get_args(Orders):
        *most, last = map(repr, get_args(Orders))
        raise InputError(f"Unknown orders {orders!r}. Use {', '.join(most)} or {last}.")
    significance.check_options(test, confidence, samples, seed)


def _check(named: Mapping[str, Any], runs: object, baseline: str | None) -> None:
    if not isinstance(runs, Mapping):
        raise InputError(f"Give the runs as {{name: run}}, not as a {type(runs).__name__}.")
    if len(named) < 2:
        raise InputError(f"A comparison is between two systems or more; {len(named)} was given.")
    if baseline is not None and baseline not in named:
        raise InputError(f"The baseline '{baseline}' is none of the systems: {listed(named, 5)}.")


class Compared(Result):
    """Systems compared: `pair` has two of them in one measure, `leaderboard` all of them, `pairs` every pair."""

    def __init__(
        self,
        systems: list[System],
        measures: list[Measure],
        baseline: str | None,
        orders: Orders,
        test: Test,
        confidence: float,
        samples: int,
        seed: int,
    ):
        self._systems = {system.name: system for system in systems}
        self.systems, self.measures = tuple(self._systems), tuple(measures)
        self.baseline, self.orders, self.test = baseline, orders, test
        self.confidence, self.samples, self.seed = float(confidence), int(samples), int(seed)  # NumPy's become Python's
        self._place = {name: place for place, name in enumerate(self.systems)}
        self._columns: dict[Measure, Columns] = {}
        self._outcomes: dict[tuple[tuple[str, ...], Measure], Outcome] = {}
        self._duels: dict[tuple[str, str, Measure], Duel] = {}

    def __repr__(self) -> str:
        if len(self.systems) == 2:
            return "\n".join(duel.verdict for duel in self.pairs())
        boards = (f"{measure}\n{self.leaderboard(measure)!r}" for measure in self.measures)
        return "\n\n".join(boards)

    def _section(self) -> Section:
        return comparison_section(self)

    def _records(self) -> Table:
        return comparison_records(self)

    # -- what is asked for --------------------------------------------------------------------------------------

    def pair(self, a: str, b: str, measure: str | Measure | None = None) -> Duel:
        """System a against system b in a measure, which may be left out where there is only one."""
        wanted = self._known(measure)
        self._named(a, b)
        a, b = identifier(a, "system"), identifier(b, "system")
        if a == b:
            raise InputError(f"'{a}' is to be compared with itself. Name two systems.")
        key = (a, b, wanted)
        duel = self._duels.get(key) or self._duel(*key)
        if len(self._duels) < KEPT:
            self._duels[key] = duel
        return duel

    def pairs(self, progress: Progress | None = None) -> Iterator[Duel]:
        """Every pair in every measure; with a baseline, each other system against it."""
        wanted = [(*pair, measure) for measure in self.measures for pair in self._family]
        for done, key in enumerate(wanted, 1):
            yield self.pair(*key)
            if progress is not None:
                progress(done, len(wanted))

    def select(self, measures: MeasureLike | Iterable[MeasureLike]) -> Compared:
        """The same comparison in some of its measures: p-values are corrected for these alone.

        >>> runs = {"A": {"q": {"a": 2.0, "b": 1.0}}, "B": {"q": {"b": 2.0, "a": 1.0}}}
        >>> compare({"q": {"a": 1}}, runs, ["RR", "AP"]).select("RR").measures
        (RR,)
        """
        chosen = [self._known(measure) for measure in parse_all(measures)]
        how = (self.baseline, self.orders, self.test, self.confidence, self.samples, self.seed)
        return Compared(list(self._systems.values()), chosen, *how)

    def leaderboard(self, measure: str | Measure | None = None) -> Rows:
        """The systems by descending expectation, with the ranks that ties or the sample of queries could give them.

        `rank_best` and `rank_worst` are over the orders of ties, `rank_low` and `rank_high` the interval over bootstrap
        resamples of the queries. `group_ties` and `group_queries` number the groups that cannot be told apart: all of
        one stand above all of the next in every order of ties, or together in that share of resamples which
        `confidence` says. Where one order breaks the ties of all systems, the ranks over ties are bounds;
        `ranks_reached` says whether an order is known that gives them.
        """
        wanted = self._known(measure)
        columns = self._of(wanted)
        each = [self.estimate(system, wanted) for system in self.systems]
        minimum, maximum = np.array([one.minimum for one in each]), np.array([one.maximum for one in each])
        return leaderboard(
            self.systems,
            columns.expected,
            minimum,
            maximum,
            None if columns.oblivious is None else columns.mean(columns.oblivious),
            self._ranks(wanted, minimum, maximum),
            scale=columns.scale,
            confidence=self.confidence,
            samples=self.samples,
            seed=self.seed,
        )

    def _ranks(self, measure: Measure, minimum: Floats, maximum: Floats) -> Ranks:
        """The ranks that the orders of ties allow, by the systems' ranges, or pair by pair if one order is for all."""
        ranks, n = apart(minimum, maximum), len(self.systems)
        if self.orders == "independent" or (ranks.best == ranks.worst).all():
            return ranks
        if n > MOST_TOGETHER:  # what independent orders allow holds all that one order does
            return replace(ranks, reached=ranks.best == ranks.worst)
        low, exact = minimum[:, None] - maximum, np.ones((n, n), dtype=bool)
        open_ = (low < ATOL) & (low.T < ATOL)
        for i, j in zip(*np.nonzero(np.triu(open_, 1)), strict=True):
            found = self._outcome((self.systems[i], self.systems[j]), measure)
            assert found.difference.minimum is not None and found.difference.maximum is not None
            low[i, j], low[j, i] = found.difference.minimum, -found.difference.maximum
            exact[i, j] = exact[j, i] = found.exact_range
        np.fill_diagonal(low, 0.0)
        return together(low, exact, self._in_one_order(measure))

    def _in_one_order(self, measure: Measure) -> Floats:
        """The means of all systems in random orders that are the same for all, (n_orders, n_systems)."""
        columns = self._of(measure)
        drawn = [system.drawn(measure, columns.kept, self.seed) for system in self._systems.values()]
        n = min(map(len, drawn))
        return np.stack([values[:n] for values in drawn], axis=1) * (columns.scale / len(columns.queries))

    def tau(self, measure: str | Measure | None = None) -> float | None:
        """Kendall's τ between the systems by their oblivious values and by their expectations; 1 is the same order."""
        columns = self._of(self._known(measure))
        if columns.oblivious is None:
            return None
        oblivious, expected = (
            Ranking.from_scores(dict(zip(self.systems, columns.mean(values).round(12).tolist(), strict=True)))
            for values in (columns.oblivious, columns.expected)
        )
        return tau(oblivious, expected).expected

    def per_query(self, a: str, b: str, measure: str | Measure | None = None) -> Rows:
        """The difference a − b of each query: expected, minimum and maximum over independent orders of ties."""
        columns, (i, j) = self._of(self._known(measure)), self._named(a, b)
        return Rows(
            {
                "query": columns.queries,
                "a": columns.expected[:, i].tolist(),
                "b": columns.expected[:, j].tolist(),
                "difference": (columns.expected[:, i] - columns.expected[:, j]).tolist(),
                "minimum": (columns.minimum[:, i] - columns.maximum[:, j]).tolist(),
                "maximum": (columns.maximum[:, i] - columns.minimum[:, j]).tolist(),
            }
        )

    def estimate(self, system: str, measure: str | Measure | None = None) -> Estimate:
        """The estimate of one system over the queries compared.

        With one order for all queries (``"shared"``), queries that have tied documents in common are not independent:
        std has their covariances, and the range is that of one order, or contains it.
        """
        wanted = self._known(measure)
        self._named(system)
        system = identifier(system, "system")
        return self._outcome((system,), wanted).difference

    def estimates(self, system: str, measure: str | Measure | None = None) -> Estimates:
        """The estimates of one system for each of the queries compared."""
        wanted, (place,) = self._known(measure), self._named(system)
        columns = self._of(wanted)
        return Estimates(
            wanted.name,
            columns.queries,
            expected=columns.expected[:, place],
            minimum=columns.minimum[:, place],
            maximum=columns.maximum[:, place],
            variance=columns.variance[:, place],
            oblivious=None if columns.oblivious is None else columns.oblivious[:, place],
            total=wanted.total,
        )

    def printed(self, measure: str | Measure | None = None) -> dict[str, dict[str, float]]:
        """What tools print for each system, of those that differ from each other by the order of ties alone.

        Of a system with queries that others lack there is nothing: tools average over all of its own.
        """
        wanted = self._known(measure)
        more = self._with_more(wanted)
        return {
            name: {} if name in more else {t: one.value for t, one in system.printed(wanted).items() if one.same}
            for name, system in self._systems.items()
        }

    @property
    def plot(self) -> Any:
        """Figures of this comparison: `forest()` and `differences()`."""
        return import_module("tiewise.figures.comparisons").Plots(self)

    # -- what to know -------------------------------------------------------------------------------------------

    @property
    def queries(self) -> int:
        """How many queries are compared: of the first measure, should they differ."""
        return len(self._of(self.measures[0]).queries)

    @property
    def oblivious(self) -> str | None:
        """The order of ties, or the tool, of the oblivious values."""
        return next(iter(self._systems.values())).options.oblivious

    @property
    def sources(self) -> list[dict[str, Any]]:
        """Name and file of every run."""
        return [system.source() for system in self._systems.values()]

    @cached_property
    def cut_note(self) -> str:
        """The sentence on runs whose lists may have been cut inside a tie group; empty if there is none."""
        cut = [name for name, system in self._systems.items() if system.cut_lists]
        if not cut:
            return ""
        return (
            f"Lists of {listed(cut)} end with tied documents and may have been cut inside a tie group. What was cut "
            "off is in no range here; complete=True (--complete) says that nothing was."
        )

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know."""
        notes = [self.cut_note] if self.cut_note else []
        own = ((name, system.notes) for name, system in self._systems.items())
        notes += said_once((name, (one for one in said if "cut inside a tie group" not in one)) for name, said in own)
        systems = self._systems.values()
        left_out = [m for m in next(iter(systems)).estimates if not any(len(one.estimates[m]) for one in systems)]
        if left_out:
            notes.append(f"There is no query to compare by {', '.join(map(str, left_out))}: left out.")
        more = list(dict.fromkeys(name for measure in self.measures for name in self._with_more(measure)))
        if more:
            notes.append(
                f"{listed(more)} {'has' if len(more) == 1 else 'have'} queries that others lack, which are not "
                "compared. What tools print is over other queries, so that they are not asked for a winner."
            )
        if self.orders != "independent":
            notes.append(NOTES[self.orders])
        if self.queries > significance.MAX_BLOCKS:
            notes.append(
                f"For tests and intervals the {self.queries:,} queries were added up in {significance.MAX_BLOCKS:,} "
                "random blocks."
            )
        return tuple(notes)

    # -- one pair -----------------------------------------------------------------------------------------------

    def _duel(self, a: str, b: str, measure: Measure) -> Duel:
        columns, places = self._of(measure), (self._place[a], self._place[b])
        outcome = self._outcome((a, b), measure)
        each = columns.difference(*places)
        p, p_holm, ci = self._over_queries(a, b, measure, each)
        return Duel(
            a=a,
            b=b,
            measure=measure.name,
            queries=len(each),
            difference=outcome.difference,
            chances=outcome.chances,
            exact_range=outcome.exact_range,
            std_error=outcome.std_error,
            p_value=p,
            p_holm=p_holm,
            ci=None if ci is None else (ci[0] * columns.scale, ci[1] * columns.scale),
            ci_order=self._deployed(each, outcome.difference, columns.scale),
            effect=significance.effect_size(each),
            wins=int(np.count_nonzero(each > ATOL)),
            losses=int(np.count_nonzero(each < -ATOL)),
            ties=int(np.count_nonzero(np.abs(each) <= ATOL)),
            tools=self._tools(a, b, measure),
        )

    def _outcome(self, names: tuple[str, ...], measure: Measure) -> Outcome:
        """What the orders of ties make of a pair, found once for both directions, or of one system alone."""
        ordered = tuple(sorted(names, key=self._place.__getitem__))
        key = (ordered, measure)
        if key not in self._outcomes:
            meeting = Meeting(
                tuple(self._systems[name] for name in ordered),
                tuple(self._place[name] for name in ordered),
                measure,
                self._of(measure),
                self.samples,
                self.seed,
            )
            alone = len(names) == 1 and self.orders == "per-query"  # one order a query: independent for one system
            self._outcomes[key] = meeting.outcome("independent" if alone else self.orders)
        return self._outcomes[key] if names == ordered else self._outcomes[key].reversed

    # -- queries ------------------------------------------------------------------------------------------------

    @property
    def _family(self) -> list[tuple[str, str]]:
        """The pairs that are compared; a pair's p-value is corrected for all of them."""
        if self.baseline is not None:
            return [(name, self.baseline) for name in self.systems if name != self.baseline]
        check_pairs(len(self.systems), self.baseline)
        return list(combinations(self.systems, 2))

    @cached_property
    def _tests(self) -> dict[tuple[str, str, Measure], tuple[float, float, float, float]]:
        """p-value, corrected p-value and interval of every pair of the family in every measure."""
        if self.baseline is None and len(self.systems) > MOST_SYSTEMS:
            return {}
        keys, p, low, high = [], [], [], []
        for measure in self.measures:
            expected = self._of(measure).expected
            pairs = self._family
            keys += [(*pair, measure) for pair in pairs]
            for first in range(0, len(pairs), 500):
                some = pairs[first : first + 500]
                each = np.stack([expected[:, self._place[a]] - expected[:, self._place[b]] for a, b in some], axis=1)
                p.append(significance.p_values(each, self.test, samples=self.samples, seed=self.seed))
                ends = significance.bootstrap_intervals(each, self.confidence, samples=self.samples, seed=self.seed)
                low.append(ends[0])
                high.append(ends[1])
        flat = np.concatenate(p)
        columns = (flat, significance.holm(flat), np.concatenate(low), np.concatenate(high))
        return dict(zip(keys, zip(*(column.tolist() for column in columns), strict=True), strict=True))

    def _over_queries(
        self, a: str, b: str, measure: Measure, each: Floats
    ) -> tuple[float, float | None, tuple[float, float] | None]:
        for key, sign in (((a, b, measure), 1), ((b, a, measure), -1)):
            if key in self._tests:
                p, p_holm, *ci = self._tests[key]
                low, high = sorted(sign * end for end in ci)
                return p, p_holm, (low, high) if len(each) > 1 else None
        options = {"samples": self.samples, "seed": self.seed}
        p = float(significance.p_values(each[:, None], self.test, **options)[0])
        ends = significance.bootstrap_intervals(each[:, None], self.confidence, **options)
        return p, None, (float(ends[0][0]), float(ends[1][0])) if len(each) > 1 else None

    def _deployed(self, each: Floats, difference: Estimate, scale: float) -> tuple[float, float] | None:
        """The interval of the difference in one order of ties: Var(E over queries)/n, and the variance of the order."""
        if len(each) < 2 or difference.std is None or difference.expected is None:
            return None
        spread = (float(np.var(each, ddof=1)) / len(each) * scale**2 + difference.std**2) ** 0.5
        wide = NormalDist().inv_cdf((1 + self.confidence) / 2) * spread
        return difference.expected - wide, difference.expected + wide

    # -- tools --------------------------------------------------------------------------------------------------

    def _tools(self, a: str, b: str, measure: Measure) -> Rows:
        all_there = not {a, b} & set(self._with_more(measure))
        first, second = (self._systems[name].printed(measure) if all_there else {} for name in (a, b))
        rows = [(tool, first[tool], second[tool]) for tool in first if tool in second]
        gaps = [one.value - two.value for _, one, two in rows]
        return Rows(
            {
                "tool": [tool for tool, _, _ in rows],
                "a": [one.value for _, one, _ in rows],
                "b": [two.value for _, _, two in rows],
                "winner": [a if gap > ATOL else b if gap < -ATOL else None for gap in gaps],
                "ties_only": [one.same and two.same for _, one, two in rows],
            }
        )

    def _with_more(self, measure: Measure) -> list[str]:
        """The systems whose own queries are more than those compared: tools average over others than we do."""
        kept = self._of(measure).kept
        return [name for name, system in self._systems.items() if not np.array_equal(system.kept(measure), kept)]

    # -- columns ------------------------------------------------------------------------------------------------

    def _known(self, measure: str | Measure | None) -> Measure:
        if measure is None:
            if len(self.measures) > 1:
                raise InputError(f"Name a measure: {', '.join(map(str, self.measures))} were compared.")
            return self.measures[0]
        wanted = parse(measure)
        if wanted not in self.measures:
            raise MeasureError(f"{wanted} was not compared. There is {', '.join(map(str, self.measures))}.")
        return wanted

    def _named(self, *given: str) -> tuple[int, ...]:
        """The places of systems among the columns."""
        names = [identifier(name, "system") for name in given]
        for name in names:
            if name not in self._place:
                raise InputError(f"There is no system '{name}'. The systems are {listed(self.systems, 5)}.")
        return tuple(self._place[name] for name in names)

    def _of(self, measure: Measure) -> Columns:
        if measure not in self._columns:
            self._columns[measure] = aligned(list(self._systems.values()), measure)
        return self._columns[measure]
