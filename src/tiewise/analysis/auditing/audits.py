"""`audit`: takes a run and returns an `Audit`: how tied the run is, why, whether that matters, and what to do."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from importlib import import_module
from numbers import Integral, Real
from typing import Any

from tiewise._version import __version__
from tiewise.analysis.auditing.causes import LIBRARIES, Remedy, collect_evidence
from tiewise.analysis.auditing.consequences import Effect, Grade, Reversal, find_reversals, measure_effects
from tiewise.analysis.auditing.duplicates import count_identical_rows
from tiewise.analysis.auditing.even_steps import EvenSteps
from tiewise.analysis.auditing.fidelity import Fidelity, measure_fidelity
from tiewise.analysis.auditing.quantization import infer_score_grid
from tiewise.analysis.auditing.tie_statistics import Pile, SizeBin, TieExample, TieStatistics
from tiewise.analysis.auditing.verdict import decide_verdict, describe_difference
from tiewise.analysis.comparison.pair import PairComparison
from tiewise.analysis.evaluating import DEFAULT_MEASURES, evaluate
from tiewise.analysis.measuring import resolve_measures
from tiewise.analysis.options import Missing, OptionNames
from tiewise.analysis.reports import Z_LIMIT, Report
from tiewise.data.source import Source
from tiewise.errors import CutWarning, InputError
from tiewise.io import as_qrels, as_run
from tiewise.io.edited_run import edit_source
from tiewise.io.memory_run import MemoryRun
from tiewise.io.types import QrelsLike, RunLike
from tiewise.metrics.definition import Measure
from tiewise.metrics.estimate import Estimate
from tiewise.metrics.names import MeasureLike, parse
from tiewise.metrics.tool_rules import Rule
from tiewise.tables.estimates import estimate_table
from tiewise.tables.model import Code, Part, Section, Table
from tiewise.tables.results import Result
from tiewise.tables.wording import capitalize_first, count_noun, format_percent, trend_note
from tiewise.ties.counted import RunSource

__all__ = ["CUTOFFS", "Audit", "audit"]

#: The cutoffs at which ties are counted.
CUTOFFS = (1, 5, 10, 20, 50, 100, 1000)

#: The orders of ties that are tested for knowledge of the labels.
AUDITED_ORDERS = ("given", "docid-desc", "docid-asc")


def audit(
    run: RunLike,
    *,
    qrels: QrelsLike | None = None,
    reference: RunLike | None = None,
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
    edits = {"drop_self": drop_self, "distances": distances}
    source = edit_source(run if isinstance(run, RunSource) else MemoryRun(as_run(run)), **edits)
    rows = source.rows()
    if not len(rows):
        raise InputError("The run has no rows: there is nothing to audit.")
    if library is not None and library not in LIBRARIES:
        raise InputError(f"Unknown library {library!r}. Use one of {', '.join(LIBRARIES)}.")
    if rows.source is not None and rows.source.format in ("mteb", "sentence-transformers"):
        library = library or "sentence-transformers"
    if rows.source is not None and rows.source.format == "reranker":
        library = library or "reranker"
    ties, ranks, pairs = TieStatistics(rows), _check_cutoffs(cutoffs), _check_comparisons(comparisons)
    limits = _parse_checks(checks)
    if qrels is None and (pairs or limits):
        raise InputError(f"{'comparisons' if pairs else 'checks'} needs judgments: give the audit qrels (--qrels).")
    qrels = None if qrels is None else as_qrels(qrels)
    options = OptionNames(missing=missing, complete=complete, drop_self=drop_self, distances=distances)
    report = None if qrels is None else _evaluate(qrels, source, [*resolve_measures(measures), *limits], options)
    scores = infer_score_grid(ties.score, ties.size)
    evidence = collect_evidence(scores, ties, None if vectors is None else count_identical_rows(ties, vectors))
    across = {rank: ties.count_across(rank) for rank in ranks if rank < ties.longest}
    fidelity = None
    if reference is not None:
        other = edit_source(reference if isinstance(reference, RunSource) else MemoryRun(as_run(reference)), **edits)
        options = OptionNames(**options, oblivious=None)
        its_report = None if report is None else _evaluate(qrels, other, report.measures, options)
        fidelity = measure_fidelity(rows, other.rows(), report, its_report)
    effects = None if report is None else measure_effects(report)
    reversals = find_reversals(report, pairs, limits) if report is not None and (pairs or limits) else None
    verdict = decide_verdict(evidence, across, effects, reversals, fidelity, library)
    quantization, even_lists, rounding = scores.quantization, evidence.even_steps, evidence.rounding
    dtype, steps = (quantization.dtype, quantization.steps) if quantization else (None, None)
    rounded = scores.name != "integer" and not quantization and not even_lists
    return Audit(
        source=rows.source,
        name=getattr(rows, "name", None),
        queries=ties.lists,
        rows=scores.rows,
        grid=scores.name,
        grid_evidence=f"{scores.evidence} {even_lists.evidence}" if even_lists else scores.evidence,
        grid_beneath=None if dtype == scores.name else dtype,
        grid_made_by=quantization.made_by if quantization else None,
        precision=scores.precision,
        even_steps=steps.step if steps else None,
        even_lists=even_lists,
        log10_chance=scores.log10_p_value,
        distinct=scores.distinct,
        tied_rows=ties.tied_rows,
        tied_share=ties.tied_share,
        largest_group=int(ties.size.max()),
        group_sizes=ties.histogram(),
        groups=ties.examples(),
        across=across,
        constant_queries=ties.constant,
        nearly_constant_queries=ties.nearly_constant,
        cut_lists=0 if complete else ties.ending_tied,
        float32_ties=ties.float32_ties(),
        rounded_share=rounding[0] if rounding and rounded else None,
        near_share=evidence.small_gaps,
        identical_rows=evidence.identical_rows,
        piles=evidence.piles,
        notes=tuple(filter(None, [trend_note(rows.trend(), distances=distances)]))
        if report is None
        else report.input_notes,
        report=report,
        z_by_order={} if report is None else _z_by_order(report),
        effects=effects or (),
        reversals=reversals or (),
        fidelity=fidelity,
        grade=verdict.grade,
        cause=evidence.cause,
        verdict=verdict.text,
        advice=verdict.remedy,
    )


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
    """The numbers that each measure is checked against."""
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
            values = report._evaluation.in_order(measure, Rule(order))
            assert values is not None and mean.expected is not None and mean.std
            value = float(values.sum() if measure.total else values.mean())
            zs[measure.name] = (value - mean.expected) / mean.std
    return found


@dataclass(frozen=True, repr=False)
class Audit(Result):
    """The result of an audit: the grid of the scores, the ties, their effect, the verdict and the remedy."""

    source: Source | None  #: the file of the run
    name: str | None  #: the run's tag
    queries: int  #: lists that are not empty
    rows: int

    # -- the scores
    grid: str  #: the first grid that contains all scores: ``"integer"``, ``"bfloat16"``, ``"decimal:3"`` …
    grid_evidence: str  #: the evidence for the grid, and for even steps that scaling hides, in sentences
    grid_beneath: str | None  #: the low-precision type behind the scores, if they are not numbers of that type
    grid_made_by: str | None  #: what hides it: ``"printing"``, or the name of a transformation
    precision: str | None  #: the type to which numbers were rounded, ``"low precision"`` if the type is not known
    even_steps: float | None  #: the step, 1 divided by a power of two, in which most scores or their preimages come
    even_lists: EvenSteps | None  #: even steps of another size, in the lists or in the whole run
    log10_chance: float | None  #: of all distinct scores lying on the grid by chance; None for float32 and float64
    distinct: int  #: distinct scores in the whole run

    # -- the ties
    tied_rows: int  #: rows that share their score with another row of their query
    tied_share: float  #: the share of rows that are tied, 0 to 1
    largest_group: int  #: documents in the largest tie group; 1 if nothing is tied
    group_sizes: tuple[SizeBin, ...]  #: the number of tie groups, by size
    groups: tuple[TieExample, ...]  #: the largest tie groups, with some of their documents
    across: Mapping[int, int]  #: by rank, the lists with a tie across it; without ranks at which all lists have ended
    constant_queries: int  #: lists that give all their documents, two or more, one score
    nearly_constant_queries: int  #: other lists that give at least 90 % of their documents, ten or more, one score
    cut_lists: int  #: lists that end with tied documents, so that they may have been truncated inside a tie group
    float32_ties: int  #: rows that are tied in addition if scores are read as float32
    rounded_share: float | None  #: of tied pairs: those that printing or float32 explains; None if something else does
    near_share: float | None  #: small gaps between scores, as a share of those expected by chance: 0 after rounding
    identical_rows: int | None  #: rows that are tied with identical documents only; None without vectors
    piles: tuple[Pile, ...]  #: scores at the limits 1 and 0

    # -- their effect
    notes: tuple[str, ...]  #: on what was given: queries left out, ids that do not match, scores that may be distances
    report: Report | None  #: every measure over the orders of ties; None without judgments
    z_by_order: Mapping[str, Mapping[str, float]]  #: by order of ties and measure; beyond ±4 an order knows the labels
    effects: tuple[Effect, ...]  #: of tie order on each measure; empty without judgments
    reversals: tuple[Reversal, ...]  #: comparisons and checks that tie order reverses
    fidelity: Fidelity | None  #: the difference from the reference; None without one

    # -- the verdict
    grade: Grade  #: what tie order changes: ``"none"``, ``"minor"``, ``"report"``, ``"decides"`` or ``"unknown"``
    cause: str | None  #: what made most of the ties; None if there are none
    verdict: str  #: how far the run can be trusted, in words
    advice: Remedy | None  #: what to do; None if nothing needs to be done

    def __getitem__(self, measure: str | Measure) -> Estimate:
        if self.report is None:
            raise InputError(f"{measure} needs judgments: give the audit qrels (--qrels).")
        return self.report[measure]

    @property
    def tied_words(self) -> str:
        """How tied the run is, in a sentence."""
        if not self.tied_rows:
            return f"None of {self.rows:,} rows are tied."
        groups = sum(one.groups for one in self.group_sizes if one.low > 1)
        size = f"{'' if groups == 1 else 'up to '}{self.largest_group:,}"
        tied = f"{format_percent(self.tied_share, in_words=True)} of {self.rows:,} rows are tied"
        return capitalize_first(f"{tied}, in {count_noun(groups, 'group')} of {size} documents.")

    @property
    def knowing(self) -> dict[str, dict[str, float]]:
        """The orders of ties that know the labels, with z for each measure that shows it."""
        far = {order: {m: z for m, z in zs.items() if abs(z) > Z_LIMIT} for order, zs in self.z_by_order.items()}
        return {order: zs for order, zs in far.items() if zs}

    @property
    def inverted(self) -> float | None:
        """The share of pairs that the run orders the other way round than the reference."""
        return None if self.fidelity is None else self.fidelity.inverted

    @property
    def rbo(self) -> float | None:
        """The rank-biased overlap of run and reference."""
        return None if self.fidelity is None else self.fidelity.rbo

    @property
    def tau(self) -> float | None:
        """Kendall's τ of run and reference."""
        return None if self.fidelity is None else self.fidelity.tau

    @property
    def decides(self) -> bool | None:
        """Whether tie order decides a result; None if that is unknown, because there are no judgments."""
        return None if self.grade == "unknown" else self.grade == "decides"

    @property
    def unfaithful(self) -> bool | None:
        """Whether the order differs from that of the reference, with or without ties; None without a reference."""
        return None if self.fidelity is None else bool(describe_difference(self.fidelity))

    @property
    def remedy(self) -> str | None:
        """What to do, with lines of code; None if nothing needs to be done."""
        return None if self.advice is None else str(self.advice)

    # -- output -----------------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values; what does not apply is None."""
        report, advice = self.report, self.advice
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {
            "version": __version__,
            "run": None if self.source is None else self.source.to_dict(),
            **{name: value for name, value in values.items() if name not in ("source", "name", "report", "advice")},
            "even_lists": None if self.even_lists is None else self.even_lists.to_dict(),
            "group_sizes": [one._asdict() for one in self.group_sizes],
            "groups": [
                one._asdict()
                | {"score": one.score if math.isfinite(one.score) else str(one.score), "docs": list(one.docs)}
                for one in self.groups
            ],
            "across": {str(rank): lists for rank, lists in self.across.items()},
            "piles": [one._asdict() for one in self.piles],
            "notes": list(self.notes),
            "measured_queries": None if report is None else report.queries,
            "measures": None if report is None else report.to_dict()["measures"],
            "tools": None if report is None else [asdict(row) for row in report.oblivious_by_tool()],
            "z_by_order": None if report is None else {order: dict(zs) for order, zs in self.z_by_order.items()},
            "fidelity": None if self.fidelity is None else asdict(self.fidelity),
            "effects": [asdict(one) | {"grade": one.grade} for one in self.effects],
            "reversals": [asdict(one) | {"tools": list(one.tools)} for one in self.reversals],
            "decides": self.decides,
            "unfaithful": self.unfaithful,
            "remedy": self.remedy,
            "remedy_code": {} if advice is None else dict(advice.code),
        }

    def to_json(self, *, indent: int | None = 2) -> str:
        """`to_dict` as JSON; what does not apply is null."""
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False)

    @property
    def plot(self) -> Any:
        """Figures of this audit: `group_sizes()`, and with judgments those of its report."""
        return import_module("tiewise.figures.plots").ReportPlots(self.report, self)

    def _section(self) -> Section:
        facts = {
            "grid of the scores": self.grid,
            "distinct scores": self.distinct,
            "tied rows": self.tied_rows,
            "largest tie group": self.largest_group,
            "lists that end tied": self.cut_lists,
            **{f"lists with a tie across rank {rank}": lists for rank, lists in self.across.items()},
        }
        measures = () if self.report is None else self.report.measures
        parts: list[Part] = [self.verdict, self.tied_words, self.grid_evidence, Table.of_facts(facts)]
        parts += [estimate_table("measure", [(m.name, self[m]) for m in measures])] if measures else []
        if self.advice is not None:
            code = {LIBRARIES[library]: line for library, line in self.advice.code.items()}
            parts += [self.advice.text, *([Code(code)] if code else [])]
        title = f"Audit{f' of {self.name}' if self.name else ''}: effect of ties {self.grade}"
        return Section(parts, title, self.notes)

    def _records(self) -> Table:
        return Table.of_nested(self.to_dict())

    def __repr__(self) -> str:
        remedy = [self.remedy] if self.remedy else []
        return "\n".join([self.tied_words, self.grid_evidence, self.verdict, *remedy, *self.notes])
