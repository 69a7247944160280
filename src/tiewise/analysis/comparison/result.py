"""`Compared`: the result of `compare`. It has pairs, leaderboards, tests and notes.

A pair is computed from the estimates of two systems when it is asked for. Two kinds of randomness are kept apart: the
order of tied documents, and the sample of queries.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from importlib import import_module
from itertools import combinations
from typing import Any

import numpy as np

from tiewise.analysis import significance
from tiewise.analysis.comparison.leaderboard import RankRanges, leaderboard, rank_in_one_order, rank_independently
from tiewise.analysis.comparison.pair import PairComparison
from tiewise.analysis.comparison.paper_table import Intervals, paper_section
from tiewise.analysis.comparison.sections import ComparisonSection
from tiewise.analysis.comparison.system import Aligned, System, align
from tiewise.analysis.comparison.tie_orders import Orders, TieOutcome, analyze_tie_orders
from tiewise.analysis.incomplete_runs import cut_note, find_open
from tiewise.analysis.reports import Report
from tiewise.analysis.significance import ATOL, Pairs, Test
from tiewise.caching import cached_property
from tiewise.data.columns import Floats, identifier
from tiewise.data.progress import Progress
from tiewise.errors import InputError, MeasureError
from tiewise.metrics.definition import Measure
from tiewise.metrics.estimate import Estimate, Estimates
from tiewise.metrics.names import MeasureLike, parse, parse_all
from tiewise.rankings.correlation import tau
from tiewise.rankings.ranking import Ranking
from tiewise.tables.estimates import is_wide
from tiewise.tables.latex import render_latex
from tiewise.tables.model import Section, Table
from tiewise.tables.records import Rows
from tiewise.tables.results import Result
from tiewise.tables.wording import NumberFormat, join_names, list_examples, merge_notes

__all__ = ["MAX_SYSTEMS", "Compared", "check_pairs"]

#: The most systems of which all pairs are compared, and the most pairs that are kept in memory.
MAX_SYSTEMS, MAX_CACHED = 200, 2000
#: The most systems whose ranks in one order for all runs are found pair by pair.
MAX_RANKED_BY_PAIRS = 50

_RANKS_ARE_BOUNDS = (
    "Ranks by ties are bounds then; the column ranks_reached of a leaderboard says whether an order is known that "
    "gives them."
)
#: What to know of orders that are not independent.
NOTES = {
    "per-query": "In each query one order breaks the ties of all runs. If it has too many arrangements to enumerate, "
    "it is sampled, and the range is the wider one of independent orders (exact_range is false). "
    f"{_RANKS_ARE_BOUNDS}",
    "shared": "One order of all documents breaks the ties of all runs in all queries. If tied documents that several "
    "queries have in common make too many arrangements to enumerate, the order is sampled, and the range is that of "
    "one order for each query or of independent orders: a bound that no order may reach (exact_range is false). "
    f"{_RANKS_ARE_BOUNDS}",
}


def check_pairs(systems: int, baseline: str | None) -> None:
    """Raise an error for all pairs of too many systems."""
    if baseline is None and systems > MAX_SYSTEMS:
        raise InputError(
            f"{systems:,} systems make {systems * (systems - 1) // 2:,} pairs. Name a baseline (baseline=, --baseline) "
            f"to compare the others with, take the leaderboard alone (--format table), ask for single pairs, or "
            f"compare at most {MAX_SYSTEMS} at once."
        )


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
        resamples: int,
        seed: int,
    ):
        self._systems = {system.name: system for system in systems}
        self.systems, self.measures = tuple(self._systems), tuple(measures)
        self.baseline, self.orders, self.test = baseline, orders, test
        self.confidence, self.resamples, self.seed = float(confidence), int(resamples), int(seed)  # not NumPy's types
        self._index = {name: index for index, name in enumerate(self.systems)}
        self._aligned: dict[Measure, Aligned] = {}
        self._places: dict[Measure, dict[str, int]] = {}
        self._means: dict[tuple[str, Measure], Estimate] = {}
        self._outcomes: dict[tuple[tuple[str, ...], Measure], TieOutcome] = {}
        self._pairs: dict[tuple[str, str, Measure], PairComparison] = {}
        self._leaderboards: dict[Measure, Rows] = {}

    def __repr__(self) -> str:
        if len(self.systems) == 2:
            return "\n".join(pair.verdict for pair in self.pairs())
        boards = (f"{measure}\n{self.leaderboard(measure)!r}" for measure in self.measures)
        return "\n\n".join(boards)

    def _section(self) -> Section:
        return ComparisonSection(self, bars=True).build(self.notes)

    def _records(self) -> Table:
        boards = {measure.name: self.leaderboard(measure) for measure in self.measures}
        rows = [{"measure": name} | row for name, board in boards.items() for row in board]
        return Table.of_records(rows[0], rows)

    def to_latex(
        self, *, baselines: str | Sequence[str] | None = None, intervals: Intervals | None = None, digits: int = 3
    ) -> str:
        r"""A table for a paper: a row for each system, a column for each measure.

        The highest value is bold, and ↑ marks what another order of ties may make the highest. A dagger marks what is
        significantly higher than a baseline, an arrow and a dagger what is lower; test and correction are in the
        caption. `baselines` are the systems to compare with: by default the one of the comparison, or the
        first of two systems. `intervals` adds those over the orders of ``"ties"``, or over ``"queries"``. The table
        needs ``\usepackage{booktabs,siunitx}``.

        >>> from tiewise import compare
        >>> runs = {"A": {"q": {"a": 2.0, "b": 1.0}}, "B": {"q": {"b": 2.0, "a": 1.0}}}
        >>> print(compare({"q": {"a": 1}}, runs, "RR").to_latex().splitlines()[-5])
        A & \bfseries 1.000 \\
        """
        return render_latex(paper_section(self, baselines, intervals, NumberFormat(digits, leading_zero=False)))

    # -- results ------------------------------------------------------------------------------------------------

    def pair(self, a: str, b: str, measure: str | Measure | None = None) -> PairComparison:
        """System a against system b in a measure, which may be left out if there is only one."""
        chosen = self._find_measure(measure)
        a, b = self._find_systems(a, b)
        if a == b:
            raise InputError(f"'{a}' is to be compared with itself. Name two systems.")
        key = (a, b, chosen)
        pair = self._pairs.get(key) or self._compare_pair(*key)
        if len(self._pairs) < MAX_CACHED:
            self._pairs[key] = pair
        return pair

    def pairs(self, progress: Progress | None = None) -> Iterator[PairComparison]:
        """Every pair in every measure; with a baseline, each other system against it."""
        keys = [(*pair, measure) for measure in self.measures for pair in self._family]
        for done, key in enumerate(keys, 1):
            yield self.pair(*key)
            if progress is not None:
                progress(done, len(keys))

    def select(self, measures: MeasureLike | Iterable[MeasureLike]) -> Compared:
        """The same comparison in some of its measures: p-values are corrected for these alone.

        >>> from tiewise import compare
        >>> runs = {"A": {"q": {"a": 2.0, "b": 1.0}}, "B": {"q": {"b": 2.0, "a": 1.0}}}
        >>> compare({"q": {"a": 1}}, runs, ["RR", "AP"]).select("RR").measures
        (RR,)
        """
        chosen = [self._find_measure(measure) for measure in parse_all(measures)]
        options = (self.baseline, self.orders, self.test, self.confidence, self.resamples, self.seed)
        return Compared(list(self._systems.values()), chosen, *options)

    def leaderboard(self, measure: str | Measure | None = None) -> Rows:
        """The systems by descending expectation, with the ranks that ties or the sample of queries could give them.

        `rank_best` and `rank_worst` are over the orders of ties. `rank_low` and `rank_high` are the interval over
        resamples of the queries. `group_ties` and `group_queries` number the groups that are not separated:
        all systems of a group are ahead of all of the next in every order of ties, or in at least the share
        `confidence` of the resamples. If one order breaks the ties of all systems, the ranks over ties are
        bounds; `ranks_reached` says whether an order is known that gives them.
        """
        chosen = self._find_measure(measure)
        if chosen not in self._leaderboards:
            self._leaderboards[chosen] = self._rank_systems(chosen)
        return self._leaderboards[chosen]

    def _rank_systems(self, measure: Measure) -> Rows:
        """The leaderboard of a measure."""
        aligned = self._align(measure)
        estimates = [self.estimate(system, measure) for system in self.systems]
        minimum, maximum = (np.array([getattr(one, end) for one in estimates]) for end in ("minimum", "maximum"))
        return leaderboard(
            self.systems,
            aligned.expected,
            minimum,
            maximum,
            None if aligned.oblivious is None else aligned.mean(aligned.oblivious),
            self._rank_over_ties(measure, minimum, maximum),
            scale=aligned.scale,
            confidence=self.confidence,
            resamples=self.resamples,
            seed=self.seed,
        )

    def _rank_over_ties(self, measure: Measure, minimum: Floats, maximum: Floats) -> RankRanges:
        """The ranks that the orders of ties allow: from the systems' ranges, or pair by pair for one common order."""
        ranks, n = rank_independently(minimum, maximum), len(self.systems)
        if self.orders == "independent" or (ranks.best == ranks.worst).all():
            return ranks
        if n > MAX_RANKED_BY_PAIRS:  # independent orders allow all that one order allows
            return replace(ranks, reached=ranks.best == ranks.worst)
        lowest, exact = minimum[:, None] - maximum, np.ones((n, n), dtype=bool)
        overlap = (lowest < ATOL) & (lowest.T < ATOL)
        for i, j in zip(*np.nonzero(np.triu(overlap, 1)), strict=True):
            outcome = self._analyze_ties((self.systems[i], self.systems[j]), measure)
            assert outcome.difference.minimum is not None and outcome.difference.maximum is not None
            lowest[i, j], lowest[j, i] = outcome.difference.minimum, -outcome.difference.maximum
            exact[i, j] = exact[j, i] = outcome.exact_range
        np.fill_diagonal(lowest, 0.0)
        return rank_in_one_order(lowest, exact, self._sample_means(measure))

    def _sample_means(self, measure: Measure) -> Floats:
        """The means of all systems in random orders that are the same for all, (n_orders, n_systems)."""
        aligned = self._align(measure)
        sums = [system.sample_sums(measure, aligned.kept, self.seed) for system in self._systems.values()]
        n = min(map(len, sums))
        return np.stack([values[:n] for values in sums], axis=1) * (aligned.scale / len(aligned.queries))

    def tau(self, measure: str | Measure | None = None) -> float | None:
        """Kendall's τ between the systems by their oblivious values and by their expectations; 1 is the same order."""
        aligned = self._align(self._find_measure(measure))
        if aligned.oblivious is None:
            return None
        oblivious, expected = (
            Ranking.from_scores(dict(zip(self.systems, aligned.mean(values).round(12).tolist(), strict=True)))
            for values in (aligned.oblivious, aligned.expected)
        )
        return tau(oblivious, expected).expected

    def per_query(self, a: str, b: str, measure: str | Measure | None = None) -> Rows:
        """The difference a − b of each query: expected, minimum and maximum over independent orders of ties."""
        aligned = self._align(self._find_measure(measure), *self._find_systems(a, b))
        minimum, maximum = aligned.difference_range
        columns = {
            "a": aligned.expected[:, 0],
            "b": aligned.expected[:, 1],
            "difference": aligned.difference,
            "minimum": minimum,
            "maximum": maximum,
        }
        return Rows({"query": aligned.queries} | {name: column.tolist() for name, column in columns.items()})

    def estimate(self, system: str, measure: str | Measure | None = None) -> Estimate:
        """The estimate of one system over the queries compared.

        With one order for all queries (``"shared"``), queries that have tied documents in common are not independent:
        std includes their covariances, and the range is that of one order, or contains it.
        """
        chosen, (name,) = self._find_measure(measure), self._find_systems(system)
        mean = self._mean(name, chosen)
        return replace(self._analyze_ties((name,), chosen).difference, cut=mean.cut, cut_likely=mean.cut_likely)

    def estimates(self, system: str, measure: str | Measure | None = None) -> Estimates:
        """The estimates of one system for each of the queries compared."""
        chosen = self._find_measure(measure)
        (name,) = self._find_systems(system)
        kept = self._align(chosen).kept[self._systems[name].kept(chosen)]
        return self._systems[name].estimates[chosen].take(kept)

    def printed(self, measure: str | Measure | None = None) -> dict[str, dict[str, float]]:
        """What tools print for each system; only tools that differ from each other by the order of ties alone.

        A system with queries that others lack has no values, because tools average over all of its queries.
        """
        chosen = self._find_measure(measure)
        with_more_queries = self._with_more_queries[chosen]
        return {
            name: {tool: one.value for tool, one in system.printed(chosen).items() if one.same_definition}
            if name not in with_more_queries
            else {}
            for name, system in self._systems.items()
        }

    @property
    def plot(self) -> Any:
        """Figures of this comparison: `forest()` and `differences()`."""
        return import_module("tiewise.figures.plots").ComparisonPlots(self)

    # -- notes --------------------------------------------------------------------------------------------------

    @property
    def queries(self) -> int:
        """The number of queries compared (in the first measure, if measures differ)."""
        return len(self._align(self.measures[0]).queries)

    @property
    def oblivious(self) -> str | None:
        """The order of ties, or the tool, of the oblivious values."""
        return next(iter(self._systems.values())).oblivious

    @property
    def reports(self) -> dict[str, Report]:
        """The report of each system, over all of its queries."""
        return {name: system.report for name, system in self._systems.items()}

    @property
    def sources(self) -> list[dict[str, Any]]:
        """Name and file of every run."""
        return [{"name": name, **(one.report.provenance.run or {})} for name, one in self._systems.items()]

    @cached_property
    def cut_note(self) -> str:
        """The warning about lists that may have been truncated inside a tie group; empty if there are none."""
        by_measure = {m.name: {name: self._mean(name, m) for name in self.systems} for m in self.measures}
        return cut_note(self.reports, by_measure)

    def open_by_cuts(self, measure: str | Measure | None = None) -> list[list[str]]:
        """The groups of systems whose order could change if documents that may have been cut off were listed."""
        chosen = self._find_measure(measure)
        return find_open({name: self._mean(name, chosen) for name in self.systems})

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know."""
        return (*([self.cut_note] if self.cut_note else []), *self.other_notes)

    @cached_property
    def other_notes(self) -> tuple[str, ...]:
        """The notes without that on cut lists."""
        systems = self._systems.values()
        notes = merge_notes((system.name, system.report.other_notes) for system in systems)
        left_out = [m for m in next(iter(systems)).estimates if not any(len(one.estimates[m]) for one in systems)]
        if left_out:
            notes.append(f"There is no query to compare by {', '.join(map(str, left_out))}: left out.")
        more = list(dict.fromkeys(name for measure in self.measures for name in self._with_more_queries[measure]))
        if more:
            notes.append(
                f"{list_examples(more)} {'has' if len(more) == 1 else 'have'} queries that others lack, which are not "
                "compared. Tools average over all queries of a run, so their winners are not shown."
            )
        notes += [
            f"{join_names(same, limit=5)} have the same values in every query: is it one run, given more than once?"
            for same in self._same_values
        ]
        if self.orders != "independent":
            notes.append(NOTES[self.orders])
        if self.queries > significance.MAX_BLOCKS:
            notes.append(
                f"For tests and intervals the {self.queries:,} queries were added up in {significance.MAX_BLOCKS:,} "
                "random blocks."
            )
        return tuple(notes)

    @cached_property
    def _same_values(self) -> list[list[str]]:
        """The groups of systems that have the same expected values and ranges in every query and measure."""
        found: dict[tuple[bytes, ...], list[str]] = {}
        aligned = [self._align(measure) for measure in self.measures]
        for name, index in self._index.items():
            columns = (column for one in aligned for column in (one.expected, one.minimum, one.maximum))
            found.setdefault(tuple(column[:, index].tobytes() for column in columns), []).append(name)
        return [names for names in found.values() if len(names) > 1]

    # -- one pair -----------------------------------------------------------------------------------------------

    def _compare_pair(self, a: str, b: str, measure: Measure) -> PairComparison:
        aligned = self._align(measure, a, b)
        outcome, each, scale = self._analyze_ties((a, b), measure), aligned.difference, aligned.scale
        probabilities = outcome.probabilities
        p_value, p_holm, *ci = self._test_pair(a, b, measure, each)
        means = {name: self._mean(name, measure) for name in (a, b)}
        return PairComparison(
            a=a,
            b=b,
            measure=measure.name,
            queries=len(each),
            difference=outcome.difference,
            probability=probabilities.greater,
            probability_equal=probabilities.equal,
            probability_less=probabilities.less,
            probability_error=probabilities.error,
            method=probabilities.method,
            samples=probabilities.samples,
            exact_range=outcome.exact_range,
            std_error=outcome.std_error,
            p_value=p_value,
            p_holm=p_holm,
            ci=(ci[0] * scale, ci[1] * scale) if len(each) > 1 else None,
            ci_order=self._interval_in_one_order(each, outcome.difference, scale),
            effect=significance.effect_size(each),
            wins=int(np.count_nonzero(each > ATOL)),
            losses=int(np.count_nonzero(each < -ATOL)),
            ties=int(np.count_nonzero(np.abs(each) <= ATOL)),
            tools=self._winners_by_tool(a, b, measure),
            confidence=self.confidence,
            a_cut=means[a].cut,
            b_cut=means[b].cut,
            may_be_cut=any(is_wide(mean.open_cut) for mean in means.values()),
            open_by_cuts=bool(find_open(means)),
        )

    def _mean(self, system: str, measure: Measure) -> Estimate:
        """The estimate of one system over the queries compared, with the bounds if its lists were cut."""
        key = (system, measure)
        if key not in self._means:
            self._means[key] = self.estimates(system, measure).mean()
        return self._means[key]

    def _analyze_ties(self, names: tuple[str, ...], measure: Measure) -> TieOutcome:
        """What the orders of ties make of one system or of a pair; a pair is analyzed once for both directions.

        Which of the two is subtracted depends on their values, not on the order in which they were given.
        """
        ordered = tuple(sorted(names, key=self._order_by_values(measure).__getitem__))
        key = (ordered, measure)
        if key not in self._outcomes:
            # An order for each query is the same as independent orders if there is only one system.
            is_independent = len(names) == 1 and self.orders == "per-query"
            self._outcomes[key] = analyze_tie_orders(
                [self._systems[name] for name in ordered],
                self._align(measure, *ordered),
                "independent" if is_independent else self.orders,
                seed=self.seed,
            )
        return self._outcomes[key] if names == ordered else self._outcomes[key].reversed

    def _order_by_values(self, measure: Measure) -> dict[str, int]:
        """The places of the systems in an order that depends on their values only, if these differ."""
        if measure not in self._places:
            found = self._align(measure)
            columns = (found.expected.T, found.minimum.T, found.maximum.T)
            keys = {name: [one[index].tolist() for one in columns] for name, index in self._index.items()}
            self._places[measure] = {name: place for place, name in enumerate(sorted(keys, key=keys.__getitem__))}
        return self._places[measure]

    def _interval_in_one_order(self, each: Floats, difference: Estimate, scale: float) -> tuple[float, float] | None:
        """The interval of the difference in one order of ties: Var(E over queries)/n plus the variance of the order.

        Student's t, with the degrees of freedom of Welch and Satterthwaite: only the first variance is estimated.
        """
        if len(each) < 2 or difference.std is None or difference.expected is None:
            return None
        from scipy.special import stdtrit

        of_queries = float(np.var(each, ddof=1)) / len(each) * scale**2
        variance = of_queries + difference.std**2
        freedom = (len(each) - 1) * (variance / of_queries) ** 2 if of_queries > 0 else np.inf
        width = float(stdtrit(freedom, (1 + self.confidence) / 2)) * variance**0.5
        return difference.expected - width, difference.expected + width

    def _winners_by_tool(self, a: str, b: str, measure: Measure) -> Rows:
        is_comparable = not self._with_more_queries[measure].keys() & {a, b}
        first, second = (self._systems[name].printed(measure) if is_comparable else {} for name in (a, b))
        tools = [tool for tool in first if tool in second]
        gaps = [first[tool].value - second[tool].value for tool in tools]
        return Rows(
            {
                "tool": tools,
                "a": [first[tool].value for tool in tools],
                "b": [second[tool].value for tool in tools],
                "winner": [a if gap > ATOL else b if gap < -ATOL else None for gap in gaps],
                "ties_only": [first[tool].same_definition and second[tool].same_definition for tool in tools],
            }
        )

    @cached_property
    def _with_more_queries(self) -> dict[Measure, dict[str, None]]:
        """By measure, the systems that have queries which are not compared: tools average over these too."""
        compared = {measure: len(self._align(measure).queries) for measure in self.measures}
        systems = self._systems.items()
        return {
            measure: {name: None for name, system in systems if len(system.estimates[measure]) > many}
            for measure, many in compared.items()
        }

    # -- tests on the sample of queries -------------------------------------------------------------------------

    @property
    def _family(self) -> list[tuple[str, str]]:
        """The pairs that are compared; p-values are corrected for all of them."""
        if self.baseline is not None:
            return [(name, self.baseline) for name in self.systems if name != self.baseline]
        check_pairs(len(self.systems), self.baseline)
        return list(combinations(self.systems, 2))

    @property
    def has_family(self) -> bool:
        """Whether p-values are corrected: there is a baseline, or there are not too many systems."""
        return self.baseline is not None or len(self.systems) <= MAX_SYSTEMS

    @cached_property
    def _tests(self) -> dict[tuple[str, str, Measure], tuple[float, float, float, float]]:
        """p-value, corrected p-value and interval of every pair of the family in every measure."""
        if not self.has_family:
            return {}
        pairs = self._family
        a, b = (np.array([self._index[pair[side]] for pair in pairs]) for side in (0, 1))
        by_queries: dict[bytes, list[Measure]] = {}  # measures of the same queries share their samples
        for measure in self.measures:
            by_queries.setdefault(self._align(measure).kept.tobytes(), []).append(measure)
        keys, found = list[tuple[str, str, Measure]](), []
        for measures in by_queries.values():
            keys += [(*pair, measure) for measure in measures for pair in pairs]
            expected = [self._align(measure).expected for measure in measures]
            if len(pairs) > len(self.systems):
                found += [self._test(one, (a, b)) for one in expected]
            else:
                found.append(self._test(np.hstack([one[:, a] - one[:, b] for one in expected])))
        p, low, high = (np.concatenate(column) for column in zip(*found, strict=True))
        tests = (column.tolist() for column in (p, significance.holm(p), low, high))
        return dict(zip(keys, zip(*tests, strict=True), strict=True))

    def _test(self, values: Floats, pairs: Pairs | None = None) -> tuple[Floats, Floats, Floats]:
        """The p-value of each column of differences, or of each pair of columns, and the two ends of its interval."""
        how: dict[str, Any] = {"pairs": pairs, "resamples": self.resamples, "seed": self.seed}
        p = significance.p_values(values, self.test, **how)
        return p, *significance.bootstrap_intervals(values, self.confidence, **how)

    def _test_pair(self, a: str, b: str, measure: Measure, each: Floats) -> tuple[float, float | None, float, float]:
        if (a, b, measure) in self._tests:
            return self._tests[a, b, measure]
        if (b, a, measure) in self._tests:
            p, p_holm, low, high = self._tests[b, a, measure]
            return p, p_holm, -high, -low
        p, low, high = (float(column[0]) for column in self._test(each[:, None]))
        return p, None, low, high

    # -- measures and systems -----------------------------------------------------------------------------------

    def _find_measure(self, measure: str | Measure | None) -> Measure:
        if measure is None:
            if len(self.measures) > 1:
                raise InputError(f"Name a measure: {', '.join(map(str, self.measures))} were compared.")
            return self.measures[0]
        chosen = parse(measure)
        if chosen not in self.measures:
            raise MeasureError(f"{chosen} was not compared. Available: {', '.join(map(str, self.measures))}.")
        return chosen

    def _find_systems(self, *given: str) -> tuple[str, ...]:
        names = tuple(identifier(name, "system") for name in given)
        for name in names:
            if name not in self._index:
                raise InputError(f"There is no system '{name}'. The systems are {list_examples(self.systems, 5)}.")
        return names

    def _align(self, measure: Measure, *names: str) -> Aligned:
        """The estimates of some systems side by side; of all systems if no names are given."""
        if measure not in self._aligned:
            self._aligned[measure] = align(list(self._systems.values()), measure)
        aligned = self._aligned[measure]
        return aligned.take([self._index[name] for name in names]) if names else aligned
