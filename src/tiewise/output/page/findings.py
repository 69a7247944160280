"""What the page shows, found once: every run measured and audited, all compared, a few queries played through.

The first measure is the page's own: verdict, forest plot, pairs and the order of ties are about it. The others stand
in the tables and can be chosen for the curves.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from typing import Any

import numpy as np

from tiewise.analysis.auditing import Audit, audit
from tiewise.analysis.comparison import Compared, Duel, Orders, check_options, compare, prefix_errors
from tiewise.analysis.evaluating import DEFAULT_MEASURES, evaluate
from tiewise.analysis.measuring import resolve_measures
from tiewise.analysis.reports import Report
from tiewise.analysis.significance import Test
from tiewise.data.columns import by_name
from tiewise.data.progress import Progress, check_progress
from tiewise.data.runs import Qrels, Run
from tiewise.errors import CutWarning, InputError, listed
from tiewise.io import as_qrels, as_run
from tiewise.metrics.definition import Measure
from tiewise.metrics.estimate import Estimates
from tiewise.metrics.names import parse
from tiewise.output.page import charts, orders, words
from tiewise.output.page.precisions import Family, families

__all__ = ["Findings", "find"]

#: More runs than this are no page; and from more than ALL_PAIRS on, all are compared with the first alone.
MOST, ALL_PAIRS = 50, 16
#: How many queries are played through the orders of their ties.
PLAYED = 3
#: What curves can be chosen of, beside the measures asked for.
CURVES = ("nDCG", "RR", "AP", "P", "R")


def find(
    qrels: Any,
    runs: Mapping[Any, Any],
    measures: str | Measure | Iterable[str | Measure] = DEFAULT_MEASURES,
    *,
    reference: str | None = None,
    orders: Orders = "independent",
    test: Test = "permutation",
    confidence: float = 0.95,
    samples: int = 10_000,
    seed: int = 0,
    complete: bool = False,
    progress: Progress | None = None,
    **options: Any,
) -> Findings:
    """Everything that the page shows of some runs, ``{name: run}``; `options` are those of `evaluate`."""
    named = _checked(runs, reference)
    check_options(orders, test, confidence, samples, seed)
    check_progress(progress)
    chosen, given = resolve_measures(measures), as_qrels(qrels)
    if chosen[0].total:
        raise InputError(f"{chosen[0]} is a count, and the page is about its first measure. Name another one first.")
    read = {name: _read(name, run) for name, run in named.items()}
    judged = _in_all(given, read) if options.get("missing") == "skip" else given
    kin = families(read, reference)
    against = {name: family.reference for family in kin for name in family.members if name != family.reference}
    options |= {"complete": complete}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CutWarning)  # notes say it
        reports = {}
        for name, run in read.items():
            with prefix_errors(name):
                reports[name] = evaluate(judged, run, chosen, **options)
            if progress is not None:
                progress(len(reports), len(read))
        audits = {
            name: audit(
                run,
                qrels=judged,
                measures=chosen,
                complete=complete,
                reference=read[against[name]] if name in against else None,
            )
            for name, run in read.items()
        }
        how = {"orders": orders, "test": test, "confidence": confidence, "samples": samples, "seed": seed, **options}
        compared = compare(judged, read, chosen[0], **how) if len(read) > 1 else None
    return Findings(given, judged, read, tuple(chosen), reports, audits, compared, tuple(kin), confidence, seed)


def _checked(runs: Mapping[Any, Any], reference: str | None) -> dict[str, Any]:
    if not isinstance(runs, Mapping) or not runs:
        raise InputError("Give the runs as {name: run}, one or more.")
    if any(not isinstance(run, Mapping) and isinstance(run, (int, float)) for run in runs.values()):
        raise InputError("Give the runs as {name: run}: this looks like a single list of scores.")
    named = by_name(runs, "run")
    if len(named) > MOST:
        raise InputError(f"A page is for {MOST} runs at the most, not {len(named):,}. `tiewise compare` takes more.")
    if reference is not None and reference not in named:
        raise InputError(f"The reference '{reference}' is none of the runs: {listed(named, 5)}.")
    return named


def _read(name: str, run: Any) -> Run:
    if isinstance(run, (str, PathLike)):
        return as_run(run)  # errors name the file
    with prefix_errors(name):
        return as_run(run)


def _in_all(qrels: Qrels, runs: Mapping[str, Run]) -> Qrels:
    """The judgments of queries that every run has, so that all numbers of a page are about the same ones."""
    there = np.array([all(query in run.query_index for run in runs.values()) for query in qrels.queries])
    if not there.any():
        raise InputError("The runs have no judged query in common: there is nothing to compare.")
    rows = np.flatnonzero(there[qrels.query])
    kept = (qrels.query[rows], qrels.queries, qrels.doc[rows], qrels.docs, qrels.value[rows])
    return Qrels.from_codes(*kept, unique=True, source=qrels.source)


@dataclass(frozen=True)
class Findings:
    """What was found, and what the page draws of it."""

    given: Qrels  #: all judgments
    qrels: Qrels  #: those of the queries that the page is about
    runs: dict[str, Run]
    measures: tuple[Measure, ...]
    reports: dict[str, Report]
    audits: dict[str, Audit]
    compared: Compared | None
    families: tuple[Family, ...]
    confidence: float
    seed: int

    @property
    def measure(self) -> Measure:
        """The measure that the page is about."""
        return self.measures[0]

    @property
    def options(self) -> dict[str, Any]:
        """How the runs were evaluated."""
        return next(iter(self.reports.values())).provenance.options

    @property
    def queries(self) -> int:
        """How many queries the page is about."""
        return len(self.qrels.queries)

    @cached_property
    def verdict(self) -> str:
        """All of it in one sentence."""
        if self.compared is None:
            name, report = next(iter(self.reports.items()))
            return words.of_one(name, self.measure.name, report[self.measure])
        return words.of_several(self.compared, self.measure.name)

    @cached_property
    def beside(self) -> str:
        """More on the pair that the verdict is about, the first run and its closest rival; empty for one run."""
        of_first = self.duels[: len(self.runs) - 1]
        return next((duel.verdict for duel in [*words.rivals(of_first), *of_first]), "")

    @cached_property
    def notes(self) -> list[str]:
        """What a reader should know."""
        said = next(iter(self.reports.values())).notes if self.compared is None else self.compared.notes
        judged = len(self.given.queries)
        skipped = f"Only the {self.queries:,} of {judged:,} judged queries that every run has are on this page."
        return [skipped, *said] if self.queries < judged else list(said)

    @cached_property
    def board(self) -> list[dict[str, Any]]:
        """The runs, best first, with the ranks that ties and queries allow."""
        if self.compared is not None:
            return [dict(row) for row in self.compared.leaderboard(self.measure)]
        name, report = next(iter(self.reports.items()))
        mean = report[self.measure]
        values = {key: getattr(mean, key) for key in ("expected", "minimum", "maximum", "oblivious")}
        return [{"rank": 1, "system": name, **values}]

    @cached_property
    def duels(self) -> list[Duel]:
        """The pairs that are shown: all of them, or each run against the first."""
        if self.compared is None:
            return []
        names = [row["system"] for row in self.board]
        above = names if len(names) <= ALL_PAIRS else names[:1]
        return [self.compared.pair(a, b, self.measure) for place, a in enumerate(above) for b in names[place + 1 :]]

    def decided(self, a: str, b: str) -> bool:
        """Whether one of two runs is ahead in every order of ties, as far as pairs are known, else by their ranges."""
        if (pair := frozenset((a, b))) in self._decided:
            return self._decided[pair]
        ends = {row["system"]: (row["minimum"], row["maximum"]) for row in self.board}
        return bool(ends[a][0] > ends[b][1] or ends[b][0] > ends[a][1])

    @cached_property
    def _decided(self) -> dict[frozenset[str], bool]:
        return {frozenset((duel.a, duel.b)): duel.certain or not duel.difference.tied for duel in self.duels}

    # -- charts -------------------------------------------------------------------------------------------------

    def forest(self) -> dict[str, Any]:
        """The forest plot."""
        return charts.forest(self.reports, self.measure, self._printed(), self.decided, self.confidence, self.seed)

    def _printed(self) -> dict[str, dict[str, float]]:
        """What tools print for each run, of those that differ from each other by the order of ties alone."""
        if self.compared is None:
            name, report = next(iter(self.reports.items()))
            rows = (row for row in report.at(self.measure).oblivious_by_tool() if not row.note)
            return {name: {row.tool: row.value for row in rows if row.value is not None}}
        return self.compared.printed(self.measure)

    def curves(self) -> list[dict[str, Any]]:
        """A curve for each measure that has cutoffs."""
        wanted = [one.uncut for one in self.measures if one.takes_cutoff and not one.total]
        families = list(dict.fromkeys([*wanted, *map(parse, CURVES)]))
        longest = max(int(np.diff(run.offsets).max(initial=1)) for run in self.runs.values())
        cutoffs = [k for k in charts.CUTOFFS if k <= max(longest, self.measure.cutoff or 1)]
        return [charts.curve(self.reports, one, cutoffs) for one in families]

    # -- queries ------------------------------------------------------------------------------------------------

    @cached_property
    def widest(self) -> list[tuple[str, str]]:
        """The queries that ties can move furthest, each with the run in which they do, widest first.

        If ties move none, it is any query, as an example.
        """
        best: dict[str, tuple[float, str]] = {}
        for name, report in self.reports.items():
            each = report.per_query(self.measure)
            for query, wide in zip(each.queries, (each.maximum - each.minimum).tolist(), strict=True):
                if query in self.runs[name].query_index and wide > best.get(query, (-1.0, ""))[0]:
                    best[query] = (wide, name)
        found = sorted(best.items(), key=lambda item: -item[1][0])[:PLAYED]
        moved = [(query, name) for query, (wide, name) in found if wide > 0]
        return moved or [(query, name) for query, (_, name) in found[:1]]

    @property
    def moved(self) -> bool:
        """Whether the order of ties moves the value of any query."""
        return any(report[self.measure].tied for report in self.reports.values())

    def played(self) -> list[dict[str, Any]]:
        """These queries, each as every run lists it, the run in which it is widest first."""
        found = []
        for query, widest in self.widest:
            names = [widest, *(name for name in self.runs if name != widest)]
            seen = (
                (name, orders.played(self.qrels, self.runs[name], query, self.measures, self.options)) for name in names
            )
            lists = [{"run": name, **one} for name, one in seen if one is not None]
            found.append({"query": query, "lists": lists})
        return found

    def per_query(self) -> dict[str, Any]:
        """The estimates of every query and run, as columns."""
        found = {name: report.per_query(self.measure) for name, report in self.reports.items()}
        names = ("expected", "minimum", "maximum", "oblivious")
        columns = [{"run": name, **{key: _column(each, key) for key in names}} for name, each in found.items()]
        return {"queries": list(next(iter(found.values())).queries), "runs": columns}


def _column(each: Estimates, key: str) -> list[float] | None:
    column = getattr(each, key)
    return None if column is None else column.round(5).tolist()
