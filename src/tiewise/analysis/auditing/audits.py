"""`audit`: takes a run and returns an `Audit`: how tied the run is, why, whether that matters, and what to do."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, is_dataclass
from importlib import import_module
from numbers import Integral, Real
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

from tiewise.analysis.auditing.causes import LIBRARIES, Remedy, collect_evidence
from tiewise.analysis.auditing.consequences import (
    Effect,
    Fidelity,
    Grade,
    Reversal,
    decide_verdict,
    find_reversals,
    measure_effects,
    measure_fidelity,
)
from tiewise.analysis.auditing.even_steps import EvenSteps
from tiewise.analysis.auditing.quantization import infer_score_grid
from tiewise.analysis.auditing.tie_statistics import (
    Pile,
    SizeBin,
    TieExample,
    TieStatistics,
    count_identical_rows,
    find_ties,
)
from tiewise.analysis.comparison.pair import PairComparison
from tiewise.analysis.evaluating import DEFAULT_MEASURES, evaluate
from tiewise.analysis.measuring import resolve_measures
from tiewise.analysis.options import Missing, OptionNames
from tiewise.analysis.report_tables import REPORT_COLUMNS
from tiewise.analysis.reports import Report
from tiewise.analysis.rerun.residuals import ScoreNoise, compare_scores
from tiewise.data.judgments import Qrels
from tiewise.data.runs import Run
from tiewise.data.source import Source
from tiewise.errors import CutWarning, InputError
from tiewise.io import as_qrels, as_source
from tiewise.io.edited_run import EditedRun, edit_source
from tiewise.io.memory_run import MemoryRun
from tiewise.io.streaming import StreamedRun
from tiewise.io.types import QrelsLike, RunLike
from tiewise.metrics.definition import Measure
from tiewise.metrics.estimate import Estimate
from tiewise.metrics.names import MeasureLike, parse
from tiewise.metrics.tool_rules import Rule
from tiewise.results.base import Result
from tiewise.results.view import View
from tiewise.results.wording import trend_note
from tiewise.ties.counted import Counted, Request, RunSource

if TYPE_CHECKING:
    from tiewise.analysis.auditing.sections import Audits
    from tiewise.results.model import Section, Table

#: The cutoffs at which ties are counted.
CUTOFFS = (1, 5, 10, 20, 50, 100, 1000)

#: The orders of ties that are tested for knowledge of the labels.
AUDITED_ORDERS = ("given", "docid-desc", "docid-asc")

#: The library that wrote a file, by its format.
LIBRARY_OF_FORMAT = {
    "mteb": "sentence-transformers",
    "sentence-transformers": "sentence-transformers",
    "reranker": "reranker",
}


def audit(
    run: RunLike,
    *,
    qrels: QrelsLike | None = None,
    reference: RunLike | None = None,
    rerun: RunLike | None = None,
    vectors: Any = None,
    measures: MeasureLike | Iterable[MeasureLike] = DEFAULT_MEASURES,
    cutoffs: Iterable[int] = CUTOFFS,
    complete: bool = False,
    missing: Missing = "zero",
    drop_self: bool = False,
    distances: bool = False,
    library: str | None = None,
    comparisons: Iterable[PairComparison] = (),
    checks: Mapping[str, float | Iterable[float]] | Mapping[Measure, float | Iterable[float]] | None = None,
) -> Audit:
    """An `Audit` of a run: how tied it is, which grid its scores lie on, whether that matters, and what to do.

    `run` is anything that `evaluate` takes as a run.

    - `qrels`: judgments. They show how far each measure can move, what each tool prints, and whether an order of ties
      knows the labels.
    - `reference`: the run that this one should equal, such as its scores in float32. It shows how far the order
      differs.
    - `rerun`: the same system scored again, perhaps some queries of it. It shows the noise of the scores, which
      High-Precision Scoring does not remove.
    - `vectors`: the documents' vectors, ``{document: vector}`` or ``(ids, matrix)``. They distinguish identical
      documents from ties made by rounding.
    - `measures`: the measures to compute with judgments, as `evaluate` takes them.
    - `cutoffs`: the ranks across which ties are counted.
    - `complete`: the lists were not truncated, even if they end inside a tie group.
    - `missing`, `drop_self`, `distances`: as in `evaluate`; the last two are for the reference too.
    - `library`: the library for which the remedy shows its line of code: ``"sentence-transformers"``,
      ``"transformers"``, ``"index"``, ``"reranker"`` or ``"own"``; None for all but the reranker.
    - `comparisons`: this run against others, as ``compare(…).pair("A", "B")`` returns them. They show whether tie order
      reverses one of them, which also changes a rank.
    - `checks`: ``{measure: number}``: the least value that a check asks for, or several. They show whether tie order
      changes the result of a check; it needs judgments.

    >>> import numpy as np
    >>> import tiewise as tw
    >>> scores = np.linspace(0.5, 0.9, 200).astype(np.float16)
    >>> run = {"q": {f"d{i}": float(np.round(score, 2)) for i, score in enumerate(scores)}}
    >>> found = tw.audit(run)
    >>> found.grid, found.tied_share, found.largest_group
    ('float16', 1.0, 6)
    """
    if library is not None and library not in LIBRARIES:
        raise InputError(f"Unknown library {library!r}. Use one of {', '.join(LIBRARIES)}.")
    ranks, pairs, limits = _check_cutoffs(cutoffs), _check_comparisons(comparisons), _parse_checks(checks)
    if qrels is None and (pairs or limits):
        raise InputError(f"{'comparisons' if pairs else 'checks'} needs judgments: give the audit qrels (--qrels).")
    qrels = None if qrels is None else as_qrels(qrels)
    edits = {"drop_self": drop_self, "distances": distances}
    needs_rows = any(one is not None for one in (reference, rerun, vectors))
    source = open_audited(run, needs_rows=needs_rows, **edits)
    options = OptionNames(missing=missing, complete=complete, drop_self=drop_self, distances=distances)
    report = None if qrels is None else _evaluate(qrels, source, [*resolve_measures(measures), *limits], options)
    counted = source.take_inspected()
    assert counted.trend is not None
    if library is None and counted.source is not None:
        library = LIBRARY_OF_FORMAT.get(counted.source.format)
    ties = TieStatistics(counted.inspected)
    scores = infer_score_grid([(part.score, part.size) for part in ties.parts])
    identical = None if vectors is None else count_identical_rows(source.rows(), vectors)
    evidence = collect_evidence(scores, ties, identical)
    across = ties.count_across(ranks)
    fidelity = None
    if reference is not None:
        other = open_audited(reference, needs_rows=True, **edits)
        options = OptionNames(**options, oblivious=None)
        its_report = None if report is None else _evaluate(qrels, other, report.measures, options)
        fidelity = measure_fidelity(source.rows(), other.rows(), report, its_report)
    noise = None if rerun is None else compare_scores(source.rows(), edit_source(as_source(rerun), **edits).rows())
    effects = None if report is None else measure_effects(report)
    reversals = () if report is None else find_reversals(report, pairs, limits)
    grade, verdict, advice = decide_verdict(evidence, across, effects, reversals, fidelity, library)
    quantization, even_lists = scores.quantization, evidence.even_steps
    return Audit(
        name=counted.name,
        source=counted.source,
        queries=ties.lists,
        rows=scores.rows,
        verdict=verdict,
        grade=grade,
        changes_winner=None if grade == "unknown" else grade == "changes_winner",
        cause=evidence.cause,
        reason=evidence.explain(),
        remedy=None if advice is None else str(advice),
        advice=advice,
        grid=scores.name,
        grid_evidence=f"{scores.evidence} {even_lists.evidence}" if even_lists else scores.evidence,
        grid_beneath=quantization.dtype if quantization and quantization.dtype != scores.name else None,
        grid_made_by=quantization.made_by if quantization else None,
        precision=scores.precision,
        even_steps=quantization.steps.step if quantization and quantization.steps else None,
        even_lists=even_lists,
        log10_chance=scores.log10_p_value,
        distinct=scores.distinct,
        tied_rows=ties.tied_rows,
        tied_share=ties.tied_share,
        largest_group=ties.largest,
        group_sizes=ties.histogram(),
        groups=ties.examples(),
        across=across,
        constant_queries=ties.constant,
        nearly_constant_queries=ties.nearly_constant,
        cut_lists=0 if complete else ties.ending_tied,
        float32_ties=ties.float32_ties,
        rounded_share=evidence.rounded_share,
        near_share=evidence.small_gaps,
        identical_rows=evidence.identical_rows,
        piles=evidence.piles,
        report=report,
        z_by_order={} if report is None else _z_by_order(report),
        effects=effects or (),
        reversals=reversals,
        fidelity=fidelity,
        unfaithful=fidelity.differs if fidelity else None,
        inverted=fidelity.inverted if fidelity else None,
        rbo=fidelity.rbo if fidelity else None,
        tau=fidelity.tau if fidelity else None,
        noise=noise,
        _longest=ties.longest,
        _trend=counted.trend,
        _distances=distances,
    )


class AuditedRun(RunSource):
    """A source whose tie groups of all rows are found when it is counted; its counts are kept."""

    def __init__(self, source: StreamedRun | EditedRun):
        self._source, self.drop_self, self.distances = source, source.drop_self, source.distances
        self._counts: dict[Request, Counted] = {}
        self._inspected: Counted | None = None

    def rows(self) -> Run:
        """All rows as columns."""
        return self._source.rows()

    def take_inspected(self) -> Counted:
        """The counts with the tie groups of all rows, which are not kept."""
        if self._inspected is None:
            self._counts.clear()
            self.count(Qrels.from_dict({}), (), ("float64",))
        found, self._inspected = self._inspected, None
        assert found is not None
        return found

    def _count(self, request: Request) -> Counted:
        if request not in self._counts:
            is_known = self._inspected is not None
            counted = self._source._count(request if is_known else request._replace(inspect=find_ties))
            if not counted.n_rows:
                raise InputError("The run has no rows: there is nothing to audit.")
            self._inspected = self._inspected or counted
            self._counts[request] = counted.replace(inspected=()).compact()
        return self._counts[request]


def open_audited(run: Any, *, drop_self: bool, distances: bool, needs_rows: bool = False) -> AuditedRun:
    """A run to audit, without its rows in memory unless they are needed."""
    source = edit_source(as_source(run), drop_self=drop_self, distances=distances)
    if isinstance(source, AuditedRun):
        return source
    if not isinstance(source, EditedRun) and (needs_rows or not isinstance(source, StreamedRun)):
        source = MemoryRun(source.rows())  # an edited run has its rows in memory, and knows that it is edited
    return AuditedRun(source)


def _check_cutoffs(cutoffs: Any) -> list[int]:
    if isinstance(cutoffs, str) or not isinstance(cutoffs, Iterable):
        raise InputError(f"cutoffs={cutoffs!r} is not possible. Give several ranks, as in cutoffs=(10, 100).")
    ranks = set()
    for rank in cutoffs:
        if isinstance(rank, bool) or not isinstance(rank, Integral) or rank < 1:
            raise InputError(f"A cutoff must be a rank, a whole number from 1 on, not {rank!r}.")
        ranks.add(int(rank))
    return sorted(ranks)


def _check_comparisons(comparisons: Any) -> list[PairComparison]:
    pairs = list(comparisons) if isinstance(comparisons, Iterable) else [comparisons]
    if not all(isinstance(pair, PairComparison) for pair in pairs):
        raise InputError("comparisons are those of this run with others, as in [compare(…).pair('A', 'B')].")
    return pairs


def _parse_checks(checks: Any) -> dict[Measure, list[float]]:
    if checks is not None and not isinstance(checks, Mapping):
        raise InputError(f"checks={checks!r} is not possible. Give {{measure: number}}, as in {{'nDCG@10': 0.45}}.")
    found: dict[Measure, list[float]] = {}
    for name, given in (checks or {}).items():
        limits = list(given) if isinstance(given, Iterable) and not isinstance(given, str) else [given]
        if not all(isinstance(limit, Real) for limit in limits):
            raise InputError(f"The check of {name} needs a number, not {given!r}.")
        found.setdefault(parse(name), []).extend(map(float, limits))
    return found


def _evaluate(qrels: Any, run: RunSource, measures: Any, options: OptionNames) -> Report:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CutWarning)  # the audit counts truncated lists itself
        return evaluate(qrels, run, measures, **options)


def _z_by_order(report: Report) -> dict[str, dict[str, float]]:
    """For each order of ties and each measure, its distance from a random order in standard deviations."""
    tied = {measure: mean for measure in report if (mean := report[measure]).std}
    if not tied:
        return {}
    found: dict[str, dict[str, float]] = {order: {} for order in AUDITED_ORDERS}
    for order, zs in found.items():
        for measure, mean in tied.items():
            value = report._evaluation.mean_in_order(measure, Rule(order))
            assert mean.expected is not None and mean.std
            if value is not None:  # else the measure is not defined in this order
                zs[measure.name] = (value - mean.expected) / mean.std
    return found


#: Keys of the JSON document that are made from the report.
_REPORT_KEYS = {
    "notes": "on the input: queries left out, ids that do not match, lists that may have been cut",
    "measured_queries": "the number of queries; null without judgments, as the next two",
    "measures": "every measure over the orders of ties",
    "tools": "what each tool prints",
}


@dataclass(frozen=True, repr=False)
class Audit(Result):
    """The result of an audit: the grid of the scores, the ties, their effect, the verdict and the remedy.

    An attribute is a key of the JSON document, or the keys in its annotation are made from it. ``audit["nDCG@10"]`` is
    an estimate, if there are judgments.
    """

    _schema = "tiewise/audit/1"

    name: Annotated[str | None, "the name of the run"]
    source: Annotated[Source | None, "path, SHA-256 and format of its file"]
    queries: Annotated[int, "lists that are not empty"]
    rows: Annotated[int, "rows of the run"]

    # -- the verdict
    verdict: Annotated[str, "what ties change, in a sentence"]
    grade: Annotated[Grade, "`none`, `harmless`, `changes_number`, `changes_winner` or `unknown`"]
    changes_winner: Annotated[bool | None, "whether the grade is that; null if unknown"]
    cause: Annotated[str | None, "what made most of the ties, in a word; null without ties"]
    reason: Annotated[str | None, "the same in words"]
    remedy: Annotated[str | None, "what to do, with lines of code, or null"]
    advice: Annotated[Remedy | None, {"remedy_code": "the lines of code by library"}]

    # -- the scores
    grid: Annotated[str, "the first grid that contains all scores: `integer`, `bfloat16`, `decimal:3` …"]
    grid_evidence: Annotated[str, "the evidence for it, in sentences"]
    grid_beneath: Annotated[str | None, "the low-precision type behind the scores, if they left its grid"]
    grid_made_by: Annotated[str | None, "what hides it: `printing`, or the name of a transformation"]
    precision: Annotated[str | None, "the type to which numbers were rounded; `low precision` if it is not known"]
    even_steps: Annotated[float | None, "the step, a power of two, in which most scores or their preimages come"]
    even_lists: Annotated[EvenSteps | None, "even steps of another size, in the lists or in the whole run"]
    log10_chance: Annotated[float | None, "of finding all scores on the grid by chance; null for float32 and float64"]
    distinct: Annotated[int, "distinct scores"]

    # -- the ties
    tied_rows: Annotated[int, "rows that tie with another of their query"]
    tied_share: Annotated[float, "their share, 0 to 1"]
    largest_group: Annotated[int, "the size of the largest tie group, at least 1"]
    group_sizes: Annotated[tuple[SizeBin, ...], "the number of tie groups, by size"]
    groups: Annotated[tuple[TieExample, ...], "the largest tie groups, with some of their documents"]
    across: Annotated[Mapping[int, int], "by rank, the number of lists with a tie across it"]
    constant_queries: Annotated[int, "lists of two or more documents with one score"]
    nearly_constant_queries: Annotated[int, "other lists of ten or more with one score for at least 90%"]
    cut_lists: Annotated[int, "lists that end with tied documents, perhaps cut inside a tie group"]
    float32_ties: Annotated[int, "rows that tie in addition if scores are read as float32"]
    rounded_share: Annotated[float | None, "the share of tied pairs that printing or float32 explains, or null"]
    near_share: Annotated[float | None, "close neighbours, over those expected by chance: 0 after rounding"]
    identical_rows: Annotated[int | None, "rows that tie with identical documents only; null without vectors"]
    piles: Annotated[tuple[Pile, ...], "scores at the limits 1 and 0"]

    # -- their effect
    report: Annotated[Report | None, _REPORT_KEYS]
    z_by_order: Annotated[Mapping[str, Mapping[str, float]], "z by order of ties and measure"]
    effects: Annotated[
        tuple[Effect, ...],
        "of tie order on each measure: its size max(|bias|, 2 std), range, half the interval over queries",
    ]
    reversals: Annotated[tuple[Reversal, ...], "comparisons and checks that tie order reverses"]
    fidelity: Annotated[Fidelity | None, "the difference from the reference; null without one"]
    unfaithful: Annotated[bool | None, "whether the order differs from it; null without one"]
    inverted: Annotated[float | None, "the share of pairs in the opposite order"]
    rbo: Annotated[float | None, "rank-biased overlap with it"]
    tau: Annotated[float | None, "Kendall's τ with it"]
    noise: Annotated[ScoreNoise | None, "the noise of the scores, if they were scored again"]

    _longest: int  # the length of the longest list
    _trend: tuple[int, int, int, int, bool]
    _distances: bool

    def __getitem__(self, measure: str | Measure) -> Estimate:
        if self.report is None:
            raise InputError(f"{measure} needs judgments: give the audit qrels (--qrels).")
        return self.report[measure]

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know: cut lists, queries left out, scores that may be distances."""
        if self.report is None:
            return tuple(filter(None, [trend_note(self._trend, distances=self._distances)]))
        return (*filter(None, [self.report.cut_note]), *self.report.input_notes)

    @property
    def plot(self) -> Any:
        """Figures of this audit: `group_sizes()`, and with judgments those of its report."""
        return import_module("tiewise.figures.plots").ReportPlots(self.report, self)

    # -- what is shown ------------------------------------------------------------------------------------------

    def _document(self, view: View) -> dict[str, Any]:
        report = self.report
        made: dict[str, Any] = {
            "remedy_code": {} if self.advice is None else self.advice.code,
            "measured_queries": None if report is None else report.queries,
            "measures": None if report is None else {one.name: report[one].to_dict() for one in report},
            "tools": None if report is None else list(report.oblivious_by_tool()),
            "effects": [asdict(one) | {"grade": one.grade} for one in self.effects],
        }
        return {name: _plain(made[name] if name in made else getattr(self, name)) for name in AUDIT_KEYS}

    def _records(self, view: View) -> Table:
        return self._shown._records(view)

    def _section(self, view: View) -> Section:
        return self._shown._section(view)

    def _latex(self, view: View) -> str:
        return self._shown._latex(view)

    @property
    def _shown(self) -> Audits:
        from tiewise.analysis.auditing.sections import Audits

        return Audits({self.name or "": self})

    def __repr__(self) -> str:
        return self.to_text().rstrip("\n")


def _plain(value: Any) -> Any:
    """A value as JSON holds it."""
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        value = value._asdict()
    elif is_dataclass(value) and not isinstance(value, type):
        value = asdict(value)
    if isinstance(value, Mapping):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _collect_keys() -> dict[str, str]:
    keys: dict[str, str] = {}
    for name, hint in get_type_hints(Audit, include_extras=True).items():
        for meaning in getattr(hint, "__metadata__", ()):
            keys |= meaning if isinstance(meaning, dict) else {name: meaning}
    return keys


#: The keys of the JSON document, and what they hold.
AUDIT_KEYS = _collect_keys()

_OF_RUN = (
    *("queries", "rows", "tied_rows", "tied_share", "largest_group", "cut_lists", "constant_queries", "grid"),
    *("precision", "cause", "grade", "unfaithful", "inverted", "rbo", "tau", "verdict"),
)
_OF_MEASURE = (
    *("measure", "expected", "ci_low", "ci_high", "minimum", "maximum", "std", "oblivious", "bias", "range", "z"),
)

#: The columns of TSV, CSV and Parquet and the keys of JSON Lines: a row for each measure; without judgments, one row.
AUDIT_COLUMNS = {
    "run": AUDIT_KEYS["name"],
    **{name: AUDIT_KEYS[name] for name in _OF_RUN},
    **{name: REPORT_COLUMNS[name] for name in _OF_MEASURE},
    "effect": "the grade of the measure alone",
}
