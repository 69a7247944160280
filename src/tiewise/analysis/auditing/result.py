"""`audit`: a run in, an `Audit` out, which says how tied it is, why, whether that matters, and what to do."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from importlib import import_module
from numbers import Integral
from typing import Any

from tiewise._version import __version__
from tiewise.analysis.auditing.fidelity import Fidelity, fidelity
from tiewise.analysis.auditing.grouping import Bin, Example, Grouping, Pile
from tiewise.analysis.auditing.identity import kinds_of
from tiewise.analysis.auditing.remedies import check_library
from tiewise.analysis.auditing.scores import score_grid
from tiewise.analysis.auditing.verdict import Evidence, Verdict, doubt_of, judge, percent
from tiewise.analysis.evaluating import DEFAULT_MEASURES, evaluate
from tiewise.analysis.measuring import Evaluation, count_run
from tiewise.analysis.options import Options
from tiewise.analysis.reports import KNOWING, Report
from tiewise.data.runs import Run
from tiewise.errors import CutWarning, InputError
from tiewise.io import as_qrels, as_run
from tiewise.metrics.definition import Measure
from tiewise.metrics.estimate import Estimate
from tiewise.metrics.tools import Rule

__all__ = ["CUTOFFS", "Audit", "audit"]

#: The cutoffs across which ties are looked for.
CUTOFFS = (1, 5, 10, 20, 50, 100, 1000)

#: The orders of ties that are tested for knowing the labels.
ORDERS = ("given", "docid-desc", "docid-asc")


def audit(
    run: Any,
    *,
    qrels: Any = None,
    reference: Any = None,
    vectors: Any = None,
    measures: str | Measure | Iterable[str | Measure] = DEFAULT_MEASURES,
    cutoffs: Iterable[int] = CUTOFFS,
    complete: bool = False,
    library: str | None = None,
) -> Audit:
    """An `Audit` of a run: how tied it is, what grid its scores lie on, whether that matters, and what to do.

    `run` is anything that `evaluate` takes as one.

    - `qrels`: judgments, to see how far each measure can move, what each tool prints, and whether an order knows the
      labels.
    - `reference`: the run that this one should equal, such as its scores in float32, to see how far its order differs.
    - `vectors`: those of the documents, ``{document: vector}`` or ``(ids, matrix)``, to tell identical documents from
      ties made by rounding.
    - `measures`: those that judgments are read by, as `evaluate` takes them.
    - `cutoffs`: the ranks across which ties are looked for.
    - `complete`: the lists are whole, so one that ends inside a tie group was not cut there.
    - `library`: whose line of code the remedy shows: ``"sentence-transformers"``, ``"transformers"``, ``"index"`` or
      ``"own"``; None for all of them.

    >>> import numpy as np
    >>> import tiewise as tw
    >>> scores = np.linspace(0.5, 0.9, 200).astype(np.float16)
    >>> run = {"q": {f"d{i}": float(np.round(score, 2)) for i, score in enumerate(scores)}}
    >>> found = tw.audit(run)
    >>> found.grid, found.tied_share, found.largest_group
    ('float16', 1.0, 6)
    """
    given = as_run(run)
    if not len(given):
        raise InputError("The run has no rows: there is nothing to audit.")
    check_library(library)
    groups, ranks = Grouping.of(given), _checked(cutoffs)
    qrels = None if qrels is None else as_qrels(qrels)
    judged = None if qrels is None else _judged(qrels, given, measures)
    evidence = Evidence(
        scores=score_grid(given.value, groups.score[groups.size > 1]),
        groups=groups,
        cutoffs={rank: groups.across(rank) for rank in ranks if groups.longer_than(rank)},
        identical_rows=None if vectors is None else groups.identical(kinds_of(vectors, given)),
        report=judged,
        fidelity=None if reference is None else _faithful(given, as_run(reference), qrels, judged, measures),
    )
    knowing = {} if judged is None else _z_by_order(qrels, given, judged)
    return Audit(evidence, judge(evidence, library or _library_of(given)), complete, knowing)


def _library_of(run: Run) -> str | None:
    """The library whose file this is, if its format says so."""
    written = "" if run.source is None else run.source.format
    return "sentence-transformers" if written in ("mteb", "sentence-transformers") else None


def _checked(cutoffs: Any) -> tuple[int, ...]:
    if isinstance(cutoffs, str) or not isinstance(cutoffs, Iterable):
        raise InputError(f"cutoffs={cutoffs!r} is not possible: it is several ranks, as in cutoffs=(10, 100).")
    ranks = []
    for rank in cutoffs:
        if isinstance(rank, bool) or not isinstance(rank, Integral) or rank < 1:
            raise InputError(f"A cutoff is a rank, a whole number from 1 on, not {rank!r}.")
        ranks.append(int(rank))
    return tuple(sorted(set(ranks)))


def _judged(qrels: Any, run: Run, measures: Any, **options: Any) -> Report:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CutWarning)  # the audit counts cut lists itself
        return evaluate(qrels, run, measures, **options)


def _faithful(run: Run, reference: Run, qrels: Any, judged: Report | None, measures: Any) -> Fidelity:
    both = None if judged is None else (judged, _judged(qrels, reference, measures, oblivious=None))
    return fidelity(run, reference, both)


def _z_by_order(qrels: Any, run: Run, judged: Report) -> dict[str, dict[str, float]]:
    """For each order of ties and each measure, how many standard deviations it lies from a random order."""
    spread = {measure: mean for measure in judged if (mean := judged[measure]).std}
    if not spread:
        return {}
    evaluation = Evaluation(count_run(qrels, run, Options()), Options())
    found: dict[str, dict[str, float]] = {order: {} for order in ORDERS}
    for order, zs in found.items():
        for measure, mean in spread.items():
            values = evaluation.in_order(measure, Rule(order))
            assert values is not None and mean.expected is not None and mean.std
            value = float(values.sum() if measure.total else values.mean())
            zs[measure.name] = (value - mean.expected) / mean.std
    return found


@dataclass(frozen=True, repr=False)
class Audit:
    """What an audit found: the grid of the scores, the ties, their effect, the verdict and the remedy."""

    evidence: Evidence
    judgment: Verdict
    complete: bool
    z_by_order: Mapping[str, Mapping[str, float]]  #: beyond ±4, an order of ties is not blind to the labels

    @property
    def name(self) -> str | None:
        """The run's tag."""
        return getattr(self._run, "name", None)

    @property
    def queries(self) -> int:
        """How many lists hold any document."""
        return self.evidence.groups.lists

    @property
    def rows(self) -> int:
        """How many rows the run has."""
        return self.evidence.scores.rows

    # -- the scores -----------------------------------------------------------------------------------------------

    @property
    def grid(self) -> str:
        """The first grid that holds all scores: ``"integer"``, ``"bfloat16"``, ``"decimal:3"``, ``"float32"`` …"""
        return self.evidence.scores.name

    @property
    def grid_evidence(self) -> str:
        """What speaks for the grid, in a sentence, and for coarse numbers that scaling hides, in another."""
        steps = self.evidence.steps
        return self.evidence.scores.evidence + (f" {steps.evidence}" if steps else "")

    @property
    def even_steps(self) -> float | None:
        """The step, 1 divided by a power of two, in which most scores or what lies beneath them come; None if none."""
        origin = self.evidence.scores.origin
        return None if origin is None or origin.steps is None else origin.steps.size

    @property
    def distinct(self) -> int:
        """How many distinct scores there are in the whole run."""
        return self.evidence.scores.distinct

    @property
    def piles(self) -> tuple[Pile, ...]:
        """Scores heaped up at 1 or 0."""
        return self.evidence.piles

    # -- the ties -------------------------------------------------------------------------------------------------

    @property
    def tied_rows(self) -> int:
        """How many rows share their score with another of their query."""
        return self.evidence.groups.tied_rows

    @property
    def tied_share(self) -> float:
        """The share of rows that are tied with another, 0 to 1."""
        return self.evidence.tied_share

    @property
    def tied_words(self) -> str:
        """How tied the run is, in a sentence."""
        if not self.tied_rows:
            return f"None of {self.rows:,} rows are tied."
        groups = sum(one.groups for one in self.group_sizes if one.low > 1)
        number = "1 group" if groups == 1 else f"{groups:,} groups"
        size = f"of {self.largest_group}" if groups == 1 else f"of up to {self.largest_group:,}"
        tied = percent(self.tied_share)
        return f"{tied[0].upper()}{tied[1:]} of {self.rows:,} rows are tied, in {number} {size} documents."

    @property
    def largest_group(self) -> int:
        """How many documents the largest tie group holds; 1 if nothing is tied."""
        return self.evidence.groups.largest

    @cached_property
    def group_sizes(self) -> tuple[Bin, ...]:
        """How many tie groups there are, by size."""
        return self.evidence.groups.histogram()

    @cached_property
    def groups(self) -> tuple[Example, ...]:
        """The largest tie groups, with some of their documents."""
        return self.evidence.groups.examples()

    @property
    def across(self) -> Mapping[int, int]:
        """By rank, how many lists have a tie across it; ranks at which no list goes on are left out."""
        return self.evidence.cutoffs

    @property
    def constant_queries(self) -> int:
        """How many lists give all their documents, two or more, one score."""
        return self.evidence.groups.constant

    @property
    def nearly_constant_queries(self) -> int:
        """How many other lists give at least 90 % of their documents, ten or more, one score."""
        return self.evidence.groups.nearly_constant

    @property
    def cut_lists(self) -> int:
        """How many lists end with tied documents, so that they may have been cut inside a tie group."""
        return 0 if self.complete else self.evidence.groups.ending_tied

    @cached_property
    def float32_ties(self) -> int:
        """How many more rows are tied for a reader that keeps scores as float32."""
        return self.evidence.groups.float32_ties()

    @property
    def rounded_share(self) -> float | None:
        """The share of tied pairs that printing, or float32, explains; None if nothing is tied, or by other means."""
        if self.evidence.scores.name == "integer" or self.evidence.scores.origin or self.evidence.steps:
            return None
        return None if self.evidence.rounding is None else self.evidence.rounding[0]

    @property
    def near_share(self) -> float | None:
        """Scores that lie nearer to each other than rounding would leave them, as a share of those that chance brings.

        About 1 where no rounding made the ties, about 0 where it did, and None if there are too few ties to say.
        """
        return self.evidence.spacing.share

    @property
    def identical_rows(self) -> int | None:
        """How many tied rows are tied with identical documents only; None if no vectors were given."""
        return self.evidence.identical_rows

    # -- their effect ---------------------------------------------------------------------------------------------

    @property
    def report(self) -> Report | None:
        """The report on the run, with every measure over the orders of ties; None if there are no judgments."""
        return self.evidence.report

    def __getitem__(self, measure: str | Measure) -> Estimate:
        if self.report is None:
            raise InputError(f"{measure} needs judgments: give the audit qrels (--qrels).")
        return self.report[measure]

    @property
    def knowing(self) -> dict[str, dict[str, float]]:
        """The orders of ties that are not blind to the labels, with z for each measure that shows it."""
        far = {order: {m: z for m, z in zs.items() if abs(z) > KNOWING} for order, zs in self.z_by_order.items()}
        return {order: zs for order, zs in far.items() if zs}

    @property
    def fidelity(self) -> Fidelity | None:
        """How the order differs from the reference; None if there is none."""
        return self.evidence.fidelity

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

    # -- the verdict ----------------------------------------------------------------------------------------------

    @property
    def level(self) -> str:
        """``"sound"``, ``"harmless"``, ``"unclear"``, ``"unreliable"`` or ``"unfaithful"``."""
        return self.judgment.level

    @property
    def unreliable(self) -> bool:
        """Whether the order of ties decides what is printed."""
        return self.level == "unreliable"

    @property
    def unfaithful(self) -> bool | None:
        """Whether the order is not that of the reference, ties or not; None if there is none."""
        return None if self.fidelity is None else bool(doubt_of(self.fidelity))

    @property
    def cause(self) -> str | None:
        """What made most of the ties; None if there are none."""
        return self.judgment.cause

    @property
    def verdict(self) -> str:
        """How far the run can be trusted, in words."""
        return self.judgment.words

    @property
    def remedy(self) -> str | None:
        """What to do, with lines of code; None if nothing need be done."""
        return None if self.judgment.remedy is None else str(self.judgment.remedy)

    @property
    def _run(self) -> Run:
        return self.evidence.groups.run

    # -- doors out ------------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values; what does not apply is None."""
        source, todo, steps = self._run.source, self.judgment.remedy, self.evidence.steps
        return {
            "version": __version__,
            "run": None if source is None else source.to_dict(),
            "queries": self.queries,
            "rows": self.rows,
            "grid": self.grid,
            "grid_evidence": self.grid_evidence,
            "grid_beneath": self.evidence.scores.beneath,
            "grid_made_by": self.evidence.scores.made_by,
            "even_steps": self.even_steps,
            "even_lists": None if steps is None else steps.to_dict(),
            "log10_chance": self.evidence.scores.log10_chance,
            "distinct": self.distinct,
            "tied_rows": self.tied_rows,
            "tied_share": self.tied_share,
            "largest_group": self.largest_group,
            "group_sizes": [one._asdict() for one in self.group_sizes],
            "groups": [one._asdict() | {"score": _plain(one.score), "docs": list(one.docs)} for one in self.groups],
            "across": {str(rank): lists for rank, lists in self.across.items()},
            "constant_queries": self.constant_queries,
            "nearly_constant_queries": self.nearly_constant_queries,
            "cut_lists": self.cut_lists,
            "float32_ties": self.float32_ties,
            "rounded_share": self.rounded_share,
            "near_share": self.near_share,
            "identical_rows": self.identical_rows,
            "piles": [one._asdict() for one in self.piles],
            **self._effect(),
            "level": self.level,
            "unreliable": self.unreliable,
            "unfaithful": self.unfaithful,
            "cause": self.cause,
            "verdict": self.verdict,
            "remedy": self.remedy,
            "remedy_code": {} if todo is None else dict(todo.code),
        }

    def _effect(self) -> dict[str, Any]:
        report = self.report
        return {
            "measures": None if report is None else report.to_dict()["measures"],
            "tools": None if report is None else [asdict(row) for row in report.oblivious_by_tool()],
            "z_by_order": None if report is None else {order: dict(zs) for order, zs in self.z_by_order.items()},
            "fidelity": None if self.fidelity is None else self.fidelity.to_dict(),
        }

    def to_json(self, *, indent: int | None = 2) -> str:
        """`to_dict` as JSON; what does not apply is null."""
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False)

    @property
    def plot(self) -> Any:
        """Figures of this audit: `group_sizes()`, and with judgments those of its report."""
        return import_module("tiewise.figures.reports").Plots(self.report, self)

    def _repr_html_(self) -> str:
        from tiewise.tables import html as notebook

        facts = {
            "grid of the scores": self.grid,
            "distinct scores": self.distinct,
            "tied rows": self.tied_rows,
            "largest tie group": self.largest_group,
            "lists that end tied": self.cut_lists,
            **{f"lists with a tie across rank {rank}": lists for rank, lists in self.across.items()},
        }
        measures = () if self.report is None else self.report.measures
        measured = notebook.estimates("measure", [(m.name, self[m]) for m in measures]) if measures else None
        remedy = self.remedy and notebook.Markup(f"<pre>{notebook.text(self.remedy)}</pre>")
        title = f"Audit{f' of {self.name}' if self.name else ''}: {self.level}"
        known = (self.verdict, self.tied_words, self.grid_evidence)
        return notebook.block(title, *known, notebook.facts(facts), measured, remedy)

    def __repr__(self) -> str:
        return "\n".join([self.tied_words, self.grid_evidence, self.verdict, *([self.remedy] if self.remedy else [])])


def _plain(score: float) -> float | str:
    """A score that JSON can hold."""
    return score if math.isfinite(score) else str(score)
