"""`Compared`: the result of `compare`. It has rankings, pairs, tests and notes.

A pair is computed from the estimates of two systems when it is asked for. Two kinds of randomness are kept apart: the
order of tied documents, and the sample of queries.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from itertools import combinations
from typing import Any

import numpy as np

from tiewise._version import __version__
from tiewise.analysis import significance
from tiewise.analysis.comparison.pair import PairComparison
from tiewise.analysis.comparison.paper_table import Intervals, paper_section
from tiewise.analysis.comparison.sections import comparison_section
from tiewise.analysis.comparison.system import Aligned, PrintedValue, System, align
from tiewise.analysis.comparison.tie_orders import (
    Orders,
    RankRanges,
    TieOutcome,
    analyze_tie_orders,
    rank_in_one_order,
    rank_independently,
)
from tiewise.analysis.incomplete_runs import cut_note, find_open
from tiewise.analysis.reports import Report
from tiewise.analysis.significance import ATOL
from tiewise.analysis.simultaneous import Family, Test, Tested
from tiewise.analysis.unjudged_bounds import Unjudged, reason_against
from tiewise.caching import LazyMapping, cached_method, cached_property
from tiewise.data.columns import Floats, identifier
from tiewise.errors import InputError, MeasureError
from tiewise.metrics.definition import Measure
from tiewise.metrics.estimate import Estimate, Estimates
from tiewise.metrics.names import MeasureLike, parse, parse_all
from tiewise.rankings.correlation import tau
from tiewise.rankings.ranking import Ranking
from tiewise.results.base import Result
from tiewise.results.estimates import is_wide
from tiewise.results.latex import render_latex
from tiewise.results.model import Rows, Section, Table
from tiewise.results.view import View
from tiewise.results.wording import MAX_NAMED, NumberFormat, cached_by_spelling, join_names, list_examples, merge_notes

#: The most systems of which `pairs` has every pair, and the most pairs that are kept in memory.
MAX_SYSTEMS, MAX_CACHED = 200, 2000
#: The most systems whose ranks in one order for all runs are found pair by pair.
MAX_RANKED_BY_PAIRS = 50
#: A run that is behind may be behind because more of its first documents are not judged: this share more.
MIN_UNJUDGED = 0.05

_RANKS_ARE_BOUNDS = (
    "Ranks by ties are bounds then; the column ranks_reached of a ranking says whether an order is known that "
    "gives them."
)
_TWO_DIGITS = NumberFormat(2, leading_zero=False)

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


#: The rows of a comparison, a row for each pair: the columns of TSV, CSV and Parquet and of `to_frame`.
COMPARISON_COLUMNS = {
    "measure": "the measure in its canonical spelling",
    "a": "one run",
    "b": "the other; every difference is a − b",
    "queries": "how many queries are compared",
    "a_expected": "the expected value of a",
    "b_expected": "that of b",
    "difference": "the expected difference",
    "p_value": "two-sided, over queries, adjusted for `family` differences",
    "ci_low": "the interval of the difference, which holds for the whole family at once: its lower end",
    "ci_high": "its upper end",
    "family": "how many differences were tested at once",
    "shown": "yes (p_value < 1 − confidence), no, or unknown (one query)",
    "any_tie_order": "whether one run is ahead in every order of ties: yes, no, or equal in every order",
    "minimum": "the lowest difference in any order of ties",
    "maximum": "the highest",
    "std": "its standard deviation over the orders",
    "exact_range": "whether some order reaches minimum and maximum, or they are only bounds",
    "certain": "true if any_tie_order is yes",
    "probability": "that a is ahead in a random order",
    "probability_equal": "that both are equal",
    "probability_less": "that b is",
    "method": "of these: exact, or sampled (n=…)",
    "probability_error": "its standard error, if sampled",
    "std_error": "that of std",
    "ci_order_low": "the interval of the difference in one random order of ties: its lower end",
    "ci_order_high": "its upper end",
    "effect": "the mean of the queries' differences over their standard deviation",
    "wins": "the number of queries in which a is higher",
    "losses": "in which b is",
    "equal": "in which both are equal",
    "flip": "whether two tools name different winners because of ties",
    "verdict": "the same in sentences",
}


class Compared(Result):
    """Systems compared: `ranking` has all of them in one measure, `pair` two of them, `pairs` every pair."""

    _schema = "tiewise/comparison/1"

    def __init__(
        self,
        systems: list[System],
        measures: list[Measure],
        baseline: str | None,
        orders: Orders,
        test: Test,
        confidence: float,
        seed: int,
    ):
        self._systems = {system.name: system for system in systems}
        self.systems, self.measures = tuple(self._systems), tuple(measures)
        self.baseline, self.orders, self.test = baseline, orders, test
        self.confidence, self.seed = float(confidence), int(seed)  # not NumPy's types
        self._index = {name: index for index, name in enumerate(self.systems)}
        self._pairs: dict[tuple[str, str, Measure], PairComparison] = {}

    def __repr__(self) -> str:
        if len(self.systems) == 2:
            return "\n".join(pair.verdict for pair in self.pairs())
        boards = (f"{measure}\n{self.ranking(measure)!r}" for measure in self.measures)
        return "\n\n".join(boards)

    def _section(self, view: View) -> Section:
        return comparison_section(self, view)

    def _records(self, view: View) -> Table:
        return Table.of_records(COMPARISON_COLUMNS, map(self._record, self.pairs()))

    def _record(self, pair: PairComparison) -> dict[str, Any]:
        plain = pair._document(View())
        difference = plain.pop("difference")
        plain |= {name: difference[name] for name in ("minimum", "maximum", "std")}
        plain["difference"] = difference["expected"]
        for name in ("ci", "ci_order"):
            plain[f"{name}_low"], plain[f"{name}_high"] = plain[name] or (None, None)
        sides = (("a_expected", pair.a), ("b_expected", pair.b))
        return plain | {name: self._mean(system, parse(pair.measure)).expected for name, system in sides}

    def _document(self, view: View) -> dict[str, Any]:
        names = ("queries", "baseline", "test", "confidence", "orders", "seed")
        rankings = {
            measure.name: {"tau": self.tau(measure), "rows": [dict(row) for row in self.ranking(measure)]}
            for measure in self.measures
        }
        plain: dict[str, Any] = {"version": __version__, "runs": self.sources}
        plain |= {name: getattr(self, name) for name in names} | {"rankings": rankings}
        plain["pairs"] = [pair._document(view) for pair in self.pairs()]
        if view.explain:
            plain["unjudged"] = {name: bounds.to_dict() for name, bounds in self.unjudged().items()}
        return plain | {"notes": list(self.notes)}

    def to_latex(  # type: ignore[override]  # its columns are the measures
        self,
        *,
        baselines: str | Sequence[str] | None = None,
        intervals: Intervals | None = None,
        digits: int | None = None,
    ) -> str:
        r"""A table for a paper: a row for each system, a column for each measure.

        The highest value is bold, and △ marks what another order of ties may make the highest. A dagger marks what is
        shown to be higher than a baseline, an arrow and a dagger what is lower. `baselines` are the systems to compare
        with: by default the one of the comparison, or the first of two systems. `intervals` adds those over the orders
        of ``"ties"``, or over ``"queries"``. The table needs ``\usepackage{booktabs,siunitx}``.

        >>> from tiewise import compare
        >>> runs = {"A": {"q": {"a": 2.0, "b": 1.0}}, "B": {"q": {"b": 2.0, "a": 1.0}}}
        >>> print(compare({"q": {"a": 1}}, runs, "RR").to_latex().splitlines()[-5])
        A & \bfseries 1.000 \\
        """
        return render_latex(paper_section(self, baselines, intervals, View(digits=digits).numbers))

    def _latex(self, view: View) -> str:
        return self.to_latex(digits=view.digits)

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

    def pairs(self) -> Iterator[PairComparison]:
        """Every pair in every measure; with a baseline, each other system against it.

        Of more than 200 systems without a baseline, it is each system against the best.
        """
        for measure in self.measures:
            rival = self.baseline
            if rival is None and len(self.systems) > MAX_SYSTEMS:
                rival = self.ranking(measure)["system"][0]
            names = self.systems
            both = combinations(names, 2) if rival is None else ((name, rival) for name in names if name != rival)
            yield from (self.pair(*two, measure) for two in both)

    def select(self, measures: MeasureLike | Iterable[MeasureLike]) -> Compared:
        """The same comparison in some of its measures: p-values are adjusted for these alone.

        >>> from tiewise import compare
        >>> runs = {"A": {"q": {"a": 2.0, "b": 1.0}}, "B": {"q": {"b": 2.0, "a": 1.0}}}
        >>> compare({"q": {"a": 1}}, runs, ["RR", "AP"]).select("RR").measures
        (RR,)
        """
        chosen = [self._find_measure(measure) for measure in parse_all(measures)]
        options = (self.baseline, self.orders, self.test, self.confidence, self.seed)
        return Compared(list(self._systems.values()), chosen, *options)

    def ranking(self, measure: str | Measure | None = None) -> Rows:
        """The systems by descending expectation, each with its difference from the best, or from the baseline.

        `rank_best` and `rank_worst` are over the orders of ties. If one order breaks the ties of all systems, they are
        bounds, and `ranks_reached` says whether an order is known that gives them. `rank_low` and `rank_high` follow
        from the differences that are shown, of all pairs: 1 + the number of systems that are better, and their number
        less those that are worse.
        """
        return self._rank_systems(self._find_measure(measure))

    @cached_method
    def _rank_systems(self, measure: Measure) -> Rows:
        aligned = self._align(measure)
        expected = aligned.mean(aligned.expected)
        order = np.argsort(-expected, kind="stable")
        estimates = [self.estimate(system, measure) for system in self.systems]
        minimum, maximum = (np.array([getattr(one, end) for one in estimates]) for end in ("minimum", "maximum"))
        ties = self._rank_over_ties(measure, minimum, maximum)
        better = self._family(None).shown(self._family_measures.index(measure))
        rival = self.baseline or self.systems[int(order[0])]
        tested = [None if name == rival else self._test(name, rival, measure) for name in self.systems]
        low, high = (np.array([one and one.ci and one.ci[side] for one in tested], dtype=object) for side in (0, 1))
        columns: dict[str, Any] = {
            "rank": 1 + np.searchsorted(np.sort(-expected), -expected - ATOL, side="left"),
            "system": np.array(self.systems, dtype=object),
            "expected": expected,
            "minimum": minimum,
            "maximum": maximum,
            "oblivious": np.array(self._oblivious(measure), dtype=object),
            "difference": np.where([one is None for one in tested], None, expected - expected[self._index[rival]]),
            "ci_low": low,
            "ci_high": high,
            "p_value": np.array([one and one.p_value for one in tested], dtype=object),
            "rank_best": ties.best,
            "rank_worst": ties.worst,
            "ranks_reached": ties.reached,
            "rank_low": 1 + better.sum(axis=0),
            "rank_high": len(order) - better.sum(axis=1),
        }
        return Rows({name: column[order].tolist() for name, column in columns.items()})

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
        chosen = self._find_measure(measure)
        aligned, oblivious = self._align(chosen), self._oblivious(chosen)
        if None in oblivious:
            return None
        columns = np.array(oblivious, dtype=np.float64), aligned.mean(aligned.expected)
        printed, expected = (
            Ranking.from_scores(dict(zip(self.systems, values.round(12).tolist(), strict=True))) for values in columns
        )
        return tau(printed, expected).expected

    def _oblivious(self, measure: Measure) -> list[float | None]:
        """The oblivious value of each system over the queries compared."""
        return [self._mean(name, measure).oblivious for name in self.systems]

    def per_query(self, a: str, b: str, measure: str | Measure | None = None) -> Rows:
        """The difference a − b of each query: expected, minimum and maximum over independent orders of ties."""
        aligned = self._align_pair(a, b, measure)
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
        return {
            name: {tool: one.value for tool, one in self._printed(name, chosen).items() if one.same_definition}
            for name in self.systems
        }

    def _printed(self, system: str, measure: Measure) -> dict[str, PrintedValue]:
        return {} if system in self._with_more_queries[measure] else self._systems[system].printed(measure)

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

    @cached_by_spelling
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

    @cached_by_spelling
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
        notes += self.same_notes.values()
        if self.orders != "independent":
            notes.append(NOTES[self.orders])
        notes += self.judged_notes
        if self.queries > significance.MAX_BLOCKS:
            notes.append(
                f"For random draws the {self.queries:,} queries were added up in {significance.MAX_BLOCKS:,} "
                "random blocks."
            )
        return tuple(notes)

    @property
    def same_notes(self) -> dict[tuple[str, ...], str]:
        """The notes on systems that may be one run, by their names."""
        end = "have the same values in every query: is it one run, given more than once?"
        return {tuple(same): f"{join_names(same, limit=5)} {end}" for same in self._same_values}

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
        aligned, outcome = self._align(measure), self._analyze_ties((a, b), measure)
        n, (mean, std, wins, losses) = len(aligned.queries), self._summarize(b, measure)[self._index[a]]
        tested = self._test(a, b, measure)
        means = {name: self._mean(name, measure) for name in (a, b)}
        may_be_cut = any(is_wide(one.open_cut) for one in means.values())
        return PairComparison(
            a=a,
            b=b,
            measure=measure.name,
            queries=n,
            difference=outcome.difference,
            exact_range=outcome.exact_range,
            std_error=outcome.std_error,
            p_value=tested.p_value,
            ci=tested.ci,
            family=self._family_of(a, b).size,
            ci_order=self._interval_in_one_order(n, std * aligned.scale, outcome.difference),
            effect=mean / std if std > ATOL else None,
            wins=wins,
            losses=losses,
            equal=n - wins - losses,
            _on_demand=LazyMapping(("probabilities", "tools"), partial(self._find_on_demand, a, b, measure)),
            confidence=self.confidence,
            a_cut=means[a].cut,
            b_cut=means[b].cut,
            may_be_cut=may_be_cut,
            open_by_cuts=may_be_cut and bool(find_open(means)),
        )

    def _find_on_demand(self, a: str, b: str, measure: Measure, name: str) -> Any:
        """What a pair computes when it is looked at."""
        if name == "tools":
            return self._winners_by_tool(a, b, measure)
        return self._analyze_ties((a, b), measure).probabilities

    @cached_method
    def _summarize(self, b: str, measure: Measure) -> list[tuple[float, float, int, int]]:
        """Mean, standard deviation, wins and losses of the queries' differences of each system from b."""
        rows = self._align(measure).rows()
        gaps = rows - rows[self._index[b]]
        mean = gaps.mean(axis=1)
        std = np.sqrt(((gaps - mean[:, None]) ** 2).sum(axis=1) / max(gaps.shape[1] - 1, 1))
        wins, losses = np.count_nonzero(gaps > ATOL, axis=1), np.count_nonzero(gaps < -ATOL, axis=1)
        return list(zip(*(column.tolist() for column in (mean, std, wins, losses)), strict=True))

    @cached_method
    def _mean(self, system: str, measure: Measure) -> Estimate:
        """The estimate of one system over the queries compared, with the bounds if its lists were cut."""
        return self.estimates(system, measure).mean()

    def _analyze_ties(self, names: tuple[str, ...], measure: Measure) -> TieOutcome:
        """What the orders of ties make of one system or of a pair; a pair is analyzed once for both directions.

        Which of the two is subtracted depends on their values, not on the order in which they were given.
        """
        ordered = tuple(sorted(names, key=self._order_by_values(measure).__getitem__))
        outcome = self._analyze_ordered(ordered, measure)
        return outcome if names == ordered else outcome.reversed

    @cached_method
    def _analyze_ordered(self, names: tuple[str, ...], measure: Measure) -> TieOutcome:
        # An order for each query is the same as independent orders if there is only one system.
        orders = "independent" if len(names) == 1 and self.orders == "per-query" else self.orders
        systems, places = [self._systems[name] for name in names], [self._index[name] for name in names]
        return analyze_tie_orders(systems, places, self._align(measure), orders, seed=self.seed)

    @cached_method
    def _order_by_values(self, measure: Measure) -> dict[str, int]:
        """The places of systems in an order that depends on their values only, if these differ."""
        found = self._align(measure)
        columns = (found.expected.T, found.minimum.T, found.maximum.T)
        keys = {name: [one[index].tolist() for one in columns] for name, index in self._index.items()}
        return {name: place for place, name in enumerate(sorted(keys, key=keys.__getitem__))}

    def _interval_in_one_order(self, n: int, std: float, difference: Estimate) -> tuple[float, float] | None:
        """The interval of the difference in one order of ties: Var(E over queries)/n plus the variance of the order.

        Student's t, with the degrees of freedom of Welch and Satterthwaite: only the first variance is estimated.
        """
        if n < 2 or difference.std is None or difference.expected is None:
            return None
        from scipy.special import stdtrit

        of_queries = std**2 / n
        variance = of_queries + difference.std**2
        freedom = (n - 1) * (variance / of_queries) ** 2 if of_queries > 0 else np.inf
        width = float(stdtrit(freedom, (1 + self.confidence) / 2)) * variance**0.5
        return difference.expected - width, difference.expected + width

    def _winners_by_tool(self, a: str, b: str, measure: Measure) -> Rows:
        first, second = self._printed(a, measure), self._printed(b, measure)
        both = [(tool, one, second[tool]) for tool, one in first.items() if tool in second]
        gaps = [one.value - other.value for _, one, other in both]
        return Rows(
            {
                "tool": [tool for tool, _, _ in both],
                "a": [one.value for _, one, _ in both],
                "b": [other.value for _, _, other in both],
                "winner": [a if gap > ATOL else b if gap < -ATOL else None for gap in gaps],
                "ties_only": [one.same_definition and other.same_definition for _, one, other in both],
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

    @cached_property
    def _family_measures(self) -> list[Measure]:
        """The measures in an order that does not depend on how they were given."""
        return sorted(self.measures, key=str)

    @cached_method
    def _family(self, baseline: str | None) -> Family:
        """All differences that are tested at once: every pair, or every system against the baseline."""
        aligned = [self._align(measure) for measure in self._family_measures]
        return Family(
            [one.expected for one in aligned],
            [one.kept for one in aligned],
            baseline=None if baseline is None else self._index[baseline],
            test=self.test,
            confidence=self.confidence,
            seed=self.seed,
        )

    def _family_of(self, a: str, b: str) -> Family:
        """The family of a pair; two others than the baseline are tested among all pairs."""
        return self._family(self.baseline if self.baseline in (a, b) else None)

    def _test(self, a: str, b: str, measure: Measure) -> Tested:
        """The difference of two systems, as it is reported."""
        place = self._family_measures.index(measure)
        tested = self._family_of(a, b).test(self._index[a], self._index[b], place)
        scale = self._align(measure).scale
        if scale == 1 or tested.ci is None:
            return tested
        return replace(tested, ci=(tested.ci[0] * scale, tested.ci[1] * scale))

    def unadjusted_tests(self, a: str, b: str, measure: str | Measure | None = None) -> dict[str, float]:
        """The p-values of one pair alone by the usual paired tests: Student's t, permutation (sign flips), Wilcoxon."""
        aligned = self._align_pair(a, b, measure)
        return significance.unadjusted_tests(aligned.difference, self.seed)

    # -- judgments ----------------------------------------------------------------------------------------------

    def unjudged(self) -> dict[str, Unjudged]:
        """The bounds over all labels of unjudged documents, for each run, of those measures that have bounds."""
        bounded = [measure for measure in self.measures if reason_against(measure) is None]
        found = {name: system.unjudged(bounded) for name, system in self._systems.items()} if bounded else {}
        return {name: bounds for name, bounds in found.items() if bounds is not None}

    @cached_property
    def judged_notes(self) -> tuple[str, ...]:
        """Where a run is behind the first, and clearly more of its first documents are not judged."""
        behind: dict[int, dict[str, float]] = {}
        for measure in self.measures:
            k, names = measure.cutoff or 10, self.ranking(measure)["system"]
            shares = {name: share for name in names if (share := self._systems[name].judged(k)) is not None}
            judged, unjudged = shares.get(names[0], (1.0, 1.0))
            if less := {name: one for name, (one, open_) in shares.items() if open_ - unjudged >= MIN_UNJUDGED}:
                behind.setdefault(k, {names[0]: judged}).update(less)
        shown = {k: [f"{name} {_TWO_DIGITS.number(one)}" for name, one in some.items()] for k, some in behind.items()}
        return tuple(
            f"Judged@{k}: {', '.join(names[:MAX_NAMED])}{' …' if len(names) > MAX_NAMED else ''}: "
            "unjudged documents may be a part of the difference."
            for k, names in shown.items()
        )

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

    @cached_method
    def _align(self, measure: Measure) -> Aligned:
        """The estimates of all systems side by side."""
        return align(list(self._systems.values()), measure)

    def _align_pair(self, a: str, b: str, measure: str | Measure | None) -> Aligned:
        places = [self._index[name] for name in self._find_systems(a, b)]
        return self._align(self._find_measure(measure)).take(places)
