"""What the page shows: every run measured and audited, all compared, and a few queries in many orders of their ties.

The page is about its first measure: verdict, forest plot, pairs and the orders of ties. The other measures are in the
tables and can be chosen for the curves. Runs of one system in several precisions are found by their names.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from os import PathLike
from typing import Any, cast

import numpy as np

from tiewise.analysis.auditing import Audit, audit
from tiewise.analysis.auditing.audits import AuditedRun, open_audited
from tiewise.analysis.comparison import Compared, Orders, PairComparison, check_options, compare
from tiewise.analysis.comparison.pair import QUERIES_QUESTION, TIES_QUESTION
from tiewise.analysis.evaluating import DEFAULT_MEASURES, evaluate
from tiewise.analysis.incomplete_runs import cut_note
from tiewise.analysis.measuring import resolve_measures
from tiewise.analysis.options import OptionNames, Options
from tiewise.analysis.reports import Report
from tiewise.analysis.simultaneous import Test
from tiewise.caching import cached_property
from tiewise.data.columns import by_name
from tiewise.data.judgments import Qrels
from tiewise.data.progress import Progress, check_progress
from tiewise.errors import CutWarning, InputError, prefix_errors
from tiewise.io import as_qrels
from tiewise.metrics.definition import Measure
from tiewise.metrics.estimate import Estimate, Estimates
from tiewise.metrics.names import parse
from tiewise.page import charts, verdicts
from tiewise.page.protocol_section import ProtocolLike, resolve_protocol
from tiewise.page.tie_orders import replay_query
from tiewise.results.wording import MIN_WIDTH, join_names, list_examples
from tiewise.ties.counted import RunSource

#: The most runs of a page. Up to ALL_PAIRS runs, all pairs are compared; with more, each run with the first.
MAX_RUNS, ALL_PAIRS = 50, 16
#: How many queries are shown in many orders of their ties.
MAX_QUERIES = 3
#: Measures that have a curve, beside the measures asked for.
CURVES = ("nDCG", "RR", "AP", "P", "R")


def collect_content(
    qrels: Any,
    runs: Mapping[Any, Any],
    measures: str | Measure | Iterable[str | Measure] = DEFAULT_MEASURES,
    *,
    reference: str | None = None,
    protocol: ProtocolLike | None = None,
    orders: Orders = "independent",
    test: Test = "max-t",
    confidence: float = 0.95,
    seed: int = 0,
    progress: Progress | None = None,
    **options: Any,
) -> PageContent:
    """Everything that the page shows of some runs, ``{name: run}``; `options` are those of `evaluate`."""
    named = _check_runs(runs, reference)
    check_options(orders, test, confidence)
    check_progress(progress)
    table = None if protocol is None else resolve_protocol(protocol)
    chosen, all_qrels = resolve_measures(measures), as_qrels(qrels)
    if chosen[0].total:
        raise InputError(f"{chosen[0]} is a count, and the page is about its first measure. Name another one first.")
    checked = Options.of("write_page", cast(OptionNames, {"seed": seed, **options}))
    edits: dict[str, Any] = {"drop_self": checked.drop_self, "distances": checked.distances}
    families = find_families(named, reference)
    needs_rows = bool(families) or orders != "independent"
    # Each is counted once, for all that follows.
    sources = {name: _open(name, run, needs_rows=needs_rows, **edits) for name, run in named.items()}
    judged = _common_queries(all_qrels, sources) if options.get("missing") == "skip" else all_qrels
    references = {name: sources[one.reference] for one in families for name in one.members if name != one.reference}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CutWarning)  # the notes contain it
        reports = {}
        for name, source in sources.items():
            with prefix_errors(f"Run '{name}'"):
                reports[name] = evaluate(judged, source, chosen, **options)
            if progress is not None:
                progress(len(reports), len(named))
        how: dict[str, Any] = {"orders": orders, "test": test, "confidence": confidence, "seed": seed, **options}
        compared = compare(judged, sources, chosen[0], **how) if len(named) > 1 else None
        pairs = _pairs_by_run(compared, chosen[0])
        audits = {}
        for name, source in sources.items():
            found = audit(
                source,
                qrels=judged,
                measures=chosen,
                complete=checked.complete,
                reference=references.get(name),
                comparisons=pairs.get(name, []),
                missing=checked.missing,
                **edits,
            )
            audits[name] = replace(found, report=reports[name])  # two for each run would take memory
    return PageContent(
        all_qrels, judged, sources, tuple(chosen), reports, audits, compared, tuple(families), table, seed
    )


def _check_runs(runs: Mapping[Any, Any], reference: str | None) -> dict[str, Any]:
    if not isinstance(runs, Mapping) or not runs:
        raise InputError("Give the runs as {name: run}, one or more.")
    if any(not isinstance(run, Mapping) and isinstance(run, (int, float)) for run in runs.values()):
        raise InputError("Give the runs as {name: run}: this looks like a single list of scores.")
    named = by_name(runs, "run")
    if len(named) > MAX_RUNS:
        raise InputError(f"A page is for {MAX_RUNS} runs at most, not {len(named):,}. `tiewise compare` takes more.")
    if reference is not None and reference not in named:
        raise InputError(f"The reference '{reference}' is not one of the runs: {list_examples(named, 5)}.")
    return named


def _pairs_by_run(compared: Compared | None, measure: Measure) -> dict[str, list[PairComparison]]:
    """The comparisons of each run with the others; of many runs, with its neighbours in the ranking."""
    if compared is None:
        return {}
    names = compared.ranking(measure)["system"]
    both = combinations(names, 2) if len(names) <= ALL_PAIRS else pairwise(names)
    pairs = [compared.pair(a, b, measure) for a, b in both]
    return {name: [pair for pair in pairs if name in (pair.a, pair.b)] for name in names}


def _open(name: str, run: Any, **how: Any) -> AuditedRun:
    if isinstance(run, (str, PathLike)):
        return open_audited(run, **how)  # errors name the file
    with prefix_errors(f"Run '{name}'"):
        return open_audited(run, **how)


def _common_queries(qrels: Qrels, sources: Mapping[str, RunSource]) -> Qrels:
    """The judgments of queries that every run has, so that all numbers of a page are about the same queries."""
    counts = (source.count(qrels, (), ("float64",)) for source in sources.values())
    is_common = np.logical_and.reduce([counted.ties["float64"].present for counted in counts])
    if not is_common.any():
        raise InputError("The runs have no judged query in common: there is nothing to compare.")
    rows = np.flatnonzero(is_common[qrels.query])
    kept = (qrels.query[rows], qrels.queries, qrels.documents.take(rows), qrels.value[rows])
    subtopics = None if qrels.subtopics is None else qrels.subtopics.take(rows)
    return Qrels.from_codes(*kept, unique=True, source=qrels.source, subtopics=subtopics)


@dataclass(frozen=True)
class PageContent:
    """The results that the page shows, and what it makes of them."""

    all_qrels: Qrels
    qrels: Qrels  #: the judgments of the queries that the page is about
    sources: dict[str, AuditedRun]
    measures: tuple[Measure, ...]
    reports: dict[str, Report]
    audits: dict[str, Audit]
    compared: Compared | None  #: None for one run
    families: tuple[PrecisionFamily, ...]
    protocol: dict[str, Any] | None  #: a protocol, if one was given
    seed: int

    @property
    def measure(self) -> Measure:
        """The measure that the page is about."""
        return self.measures[0]

    @property
    def options(self) -> dict[str, Any]:
        """The options of the evaluation."""
        return self._first_report.provenance.options

    @property
    def oblivious(self) -> str:
        """The tool, or the order, of the oblivious values."""
        return self._first_report.oblivious_names or "one order"

    @property
    def queries(self) -> int:
        """The number of queries that means are over."""
        return self._first_report.queries if self.compared is None else self.compared.queries

    @property
    def _first_report(self) -> Report:
        return next(iter(self.reports.values()))

    # -- sentences ----------------------------------------------------------------------------------------------

    @cached_property
    def verdict(self) -> str:
        """What was found, in one sentence."""
        if self.compared is None:
            name, report = next(iter(self.reports.items()))
            return verdicts.verdict_on_one(name, self.measure.name, report[self.measure])
        first = verdicts.verdict_on_several(self.compared, self.measure.name, self._leads)
        others = {measure.name: self._other_leader(measure) for measure in self.measures[1:] if not measure.total}
        return first + verdicts.describe_other_leaders({name: run for name, run in others.items() if run})

    def _other_leader(self, measure: Measure) -> str:
        """The run with the highest expected value, if it is visibly above that of the run that leads the page."""
        values = {name: report[measure].expected or 0.0 for name, report in self.reports.items()}
        highest = max(values, key=values.__getitem__)
        return highest if values[highest] - values[self.ranking[0]["system"]] >= MIN_WIDTH else ""

    @cached_property
    def answers(self) -> dict[str, str]:
        """The two questions about the lead of the first run, each with its answer; empty for one run."""
        if not self._leads:
            return {}
        on_ties, on_queries = verdicts.answer_on_ties(self._leads), verdicts.answer_on_queries(self._leads)
        return {TIES_QUESTION: on_ties, QUERIES_QUESTION: on_queries}

    @property
    def _leads(self) -> list[PairComparison]:
        return self.pairs[: len(self.reports) - 1]

    @cached_property
    def notes(self) -> list[str]:
        """What a reader should know."""
        notes = self._first_report.notes
        if self.compared is not None:  # it has the first measure alone
            on_cuts = cut_note(self.reports)
            rows = {row["row"] for row in self.protocol["rows"]} if self.protocol else set()
            same = [note for names, note in self.compared.same_notes.items() if rows.issuperset(names)]
            others = (note for note in self.compared.other_notes if note not in same)  # rows of a protocol may be equal
            notes = (*([on_cuts] if on_cuts else []), *others)
        judged = len(self.all_qrels.queries)
        common = len(self.qrels.queries)
        skipped = f"Only the {common:,} of {judged:,} judged queries that every run has are on this page."
        return [skipped, *notes] if common < judged else list(notes)

    # -- runs and pairs -----------------------------------------------------------------------------------------

    @cached_property
    def ranking(self) -> list[dict[str, Any]]:
        """The runs, best first, with the ranks that ties and queries allow."""
        if self.compared is not None:
            return [dict(row) for row in self.compared.ranking(self.measure)]
        mean = self._first_report[self.measure]
        values = {key: getattr(mean, key) for key in ("expected", "minimum", "maximum", "oblivious")}
        return [{"rank": 1, "system": next(iter(self.reports)), **values}]

    def estimate(self, name: str) -> Estimate:
        """The estimate of a run as the ranking shows it."""
        return self.reports[name][self.measure] if self.compared is None else self.compared.estimate(name, self.measure)

    @cached_property
    def pairs(self) -> list[PairComparison]:
        """The pairs that are shown: all, or each run against the first."""
        if self.compared is None:
            return []
        names = [row["system"] for row in self.ranking]
        above = names if len(names) <= ALL_PAIRS else names[:1]
        return [self.compared.pair(a, b, self.measure) for place, a in enumerate(above) for b in names[place + 1 :]]

    def is_settled(self, a: str, b: str) -> bool:
        """Whether one of two runs is ahead in every order of ties; of pairs that are not shown, by their ranges."""
        if (pair := frozenset((a, b))) in self._settled:
            return self._settled[pair]
        ends = {row["system"]: (row["minimum"], row["maximum"]) for row in self.ranking}
        return bool(ends[a][0] > ends[b][1] or ends[b][0] > ends[a][1])

    @cached_property
    def _settled(self) -> dict[frozenset[str], bool]:
        return {frozenset((pair.a, pair.b)): pair.certain or not pair.difference.tied for pair in self.pairs}

    def gap(self, name: str, reference: str) -> float | None:
        """The difference of two runs in their expected values."""
        own, other = (self.reports[one][self.measure].expected for one in (name, reference))
        return None if own is None or other is None else own - other

    # -- charts -------------------------------------------------------------------------------------------------

    def forest(self) -> dict[str, Any]:
        """The forest plot."""
        printed = self._printed_by_tools()
        return charts.forest(self.reports, self.measure, printed, self.is_settled)

    def _printed_by_tools(self) -> dict[str, dict[str, float]]:
        """What tools print for each run, of those tools that differ only in the order of ties."""
        if self.compared is not None:
            return self.compared.printed(self.measure)
        name, report = next(iter(self.reports.items()))
        rows = (row for row in report.at(self.measure).oblivious_by_tool() if not row.note)
        return {name: {row.tool: row.value for row in rows if row.value is not None}}

    def curves(self) -> list[dict[str, Any]]:
        """A curve for each measure that has cutoffs, the runs in the order of the ranking."""
        own = [measure.uncut for measure in self.measures if measure.takes_cutoff and not measure.total]
        every = dict.fromkeys([*own, *map(parse, CURVES)])
        best_first = {row["system"]: self.reports[row["system"]] for row in self.ranking}
        return [charts.curve(best_first, one, self._cutoffs) for one in every]

    @cached_property
    def _lengths(self) -> dict[str, int]:
        """The length of the longest list of each run."""
        return {name: max(audit._longest, 1) for name, audit in self.audits.items()}

    @property
    def _cutoffs(self) -> list[int]:
        return [k for k in charts.CUTOFFS if k <= max(*self._lengths.values(), self.measure.cutoff or 1)]

    @property
    def short_runs(self) -> str:
        """Which runs have shorter lists than the largest cutoff of curves; empty if none."""
        largest = self._cutoffs[-1]
        short = [f"{name} ({length:,})" for name, length in self._lengths.items() if length < largest]
        if not short:
            return ""
        what = f"Runs with lists that are all shorter than k = {largest}: {join_names(short)}."
        return f"{what} After its last document a list finds nothing more."

    def losses(self) -> dict[str, Any] | None:
        """What the rows of the protocol lose, if there is one."""
        return None if self.protocol is None else charts.losses(self.protocol)

    # -- queries ------------------------------------------------------------------------------------------------

    @cached_property
    def widest_queries(self) -> list[tuple[str, str]]:
        """The queries that ties can move most, each with the run in which they do; the widest range first.

        If ties move no query, it is any query, as an example.
        """
        best: dict[str, tuple[float, str]] = {}
        for name, report in self.reports.items():
            each, ties = report.per_query(self.measure), report._evaluation.ties
            absent = {ties.qrels.queries[place] for place in np.flatnonzero(~ties.present).tolist()}
            for query, wide in zip(each.queries, (each.maximum - each.minimum).tolist(), strict=True):
                if query not in absent and wide > best.get(query, (-1.0, ""))[0]:
                    best[query] = (wide, name)
        widest = sorted(best.items(), key=lambda item: -item[1][0])[:MAX_QUERIES]
        moved = [(query, name) for query, (wide, name) in widest if wide > 0]
        return moved or [(query, name) for query, (_, name) in widest[:1]]

    @property
    def is_moved(self) -> bool:
        """Whether the order of ties changes the value of any query."""
        return any(report[self.measure].tied for report in self.reports.values())

    def replays(self) -> list[dict[str, Any]]:
        """The widest queries in many orders of their ties, for every run, first the run with the widest range."""
        lists: dict[str, list[dict[str, Any]]] = {query: [] for query, _ in self.widest_queries}
        for name, source in self.sources.items():
            rows = source.rows()  # of one run at a time
            for query, widest in self.widest_queries:
                found = replay_query(self.qrels, rows, query, self.measures, self.options)
                if found is not None:
                    lists[query].insert(0 if name == widest else len(lists[query]), {"run": name, **found})
        return [{"query": query, "lists": some} for query, some in lists.items()]

    def per_query(self) -> dict[str, Any]:
        """The estimates of every query and run, as columns."""
        estimates = {name: report.per_query(self.measure) for name, report in self.reports.items()}
        names = ("expected", "minimum", "maximum", "oblivious")
        columns = [
            {"run": name, "marks": _marks(each), **{key: _column(each, key) for key in names}}
            for name, each in estimates.items()
        ]
        return {"queries": list(next(iter(estimates.values())).queries), "runs": columns}


def _column(each: Estimates, key: str) -> list[float] | None:
    column = getattr(each, key)
    return None if column is None else column.round(5).tolist()


def _marks(each: Estimates) -> dict[str, list[str]]:
    """What stands before the statistics of each query (`Method.mark`); empty if every statistic is exact."""
    methods = [] if each.method is None else [estimate.method for estimate in each.values()]
    names = ("expected", "minimum", "maximum", "range") if methods else ()
    return {name: [method.mark(name) for method in methods] for name in names}


# -- runs of one system in several precisions -----------------------------------------------------------------------
# A run without ties is not always correct: scores may be rounded early and only look precise. So if ``minilm-bf16``
# and ``minilm-fp32`` are both there, the page shows how far the order of one differs from the order of the other.

#: The words for a precision in names, by its number of bits; of equal bits, the one with more digits first.
_WORDS = {
    64: "float64 fp64 f64 double",
    32: "float32 fp32 f32 single full",
    31: "hps",  # vectors in low precision, products in float32
    16: "float16 fp16 f16 half",
    15: "bfloat16 bf16",
    8: "float8 fp8 f8 e4m3 e5m2 int8 uint8 i8 8bit sq8 q8",
    4: "int4 uint4 i4 4bit nf4 fp4 q4",
    1: "1bit binary ubinary bit sign",
}
_BITS = {word: bits for bits, words in _WORDS.items() for word in words.split()}
_HPS = _BITS["hps"]


@dataclass(frozen=True)
class PrecisionFamily:
    """One system in several precisions; the other runs are compared with the reference."""

    name: str
    reference: str
    members: tuple[str, ...]  #: from the finest to the coarsest, with the reference


def find_families(names: Iterable[str], reference: str | None = None) -> list[PrecisionFamily]:
    """The families among some runs, by their names; a reference outside of them makes one family of all runs.

    >>> find_families(["minilm-bf16", "bm25", "minilm-fp32"])
    [PrecisionFamily(name='minilm', reference='minilm-fp32', members=('minilm-fp32', 'minilm-bf16'))]
    >>> find_families(["new", "old"], reference="old")[0].members
    ('old', 'new')
    """
    given = list(names)
    by_stem: dict[str, list[tuple[int, int, str]]] = {}
    for name in given:
        stem, bits = _split_name(name)
        if bits is not None:
            by_stem.setdefault(stem, []).append((-bits, given.index(name), name))
    families = []
    for stem, some in by_stem.items():
        members = tuple(name for *_, name in sorted(some))
        if len(members) > 1:
            finest = reference if reference is not None and reference in members else members[0]
            families.append(PrecisionFamily(stem, finest, members))
    if reference is not None and not any(reference in family.members for family in families):
        others = tuple(name for name in given if name != reference)
        families = [PrecisionFamily("", reference, (reference, *others))] if others else []
    return families


def _split_name(name: str) -> tuple[str, int | None]:
    """A name without its precision, and the precision in bits; None if the name has none, or two.

    The precision of a model that is scored by HPS may be in the name too:

    >>> _split_name("minilm_bf16_hps"), _split_name("minilm-hps")
    (('minilm', 31), ('minilm', 31))
    """
    words = [word for word in re.split(r"[-_./\s]+", name) if word]
    precisions = [_BITS[word.lower()] for word in words if word.lower() in _BITS]
    if len(precisions) == 2 and _HPS in precisions:
        precisions = [_HPS]
    if len(precisions) != 1:
        return name, None
    return "-".join(word for word in words if word.lower() not in _BITS), precisions[0]
