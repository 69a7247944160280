"""`Settings`: by which conventions a tool computes a number; `Numbers`: the number that settings give for a run.

What `--tools` prints and what `why` explains are computed here, from counts of the run. The conventions are switches,
and `Settings.steps` turns them one at a time, in a fixed order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tiewise.analysis.measuring import Evaluation, count_run
from tiewise.analysis.options import Options
from tiewise.data.judgments import Qrels
from tiewise.data.runs import Run
from tiewise.errors import InputError
from tiewise.io.memory_run import MemoryRun
from tiewise.metrics import engine
from tiewise.metrics.definition import Measure
from tiewise.metrics.tool_rules import Rule
from tiewise.ties.counted import DTYPES, RunSource
from tiewise.ties.orders import arrange_ties

NO_ROWS = "Tie groups hold counts, not rows. Give the run itself."
EXPECTED = "expected"  #: the mean over all orders of ties, in the place of an order


class Settings(NamedTuple):
    """The conventions behind a number. `switches` names those in which two of them differ."""

    measure: Measure
    drop_self: bool = False
    missing: str = "zero"
    no_relevant: str = "zero"
    labels: str = "any"  # that are not whole numbers: "any", "cut" or "round"
    retrieved_only: bool = False  # relevant documents that were not retrieved are unknown
    depth: int | None = None
    ranked_by: str = "score"  # or "rank", the rank column, or "given", the order of the data
    score_dtype: str = "float64"
    order: str = EXPECTED

    @classmethod
    def of_rule(cls, rule: Rule, measure: Measure, **others: Any) -> Settings:
        """Those of a tool for a measure."""
        assert rule.order is not None
        return cls(
            rule.measure or measure,
            missing=rule.missing,
            no_relevant="skip" if rule.skips_no_relevant else "zero",
            labels="cut" if rule.labels == "cut" else "any",
            retrieved_only=rule.retrieved_only,
            score_dtype=rule.dtype,
            order=rule.order,
            **others,
        )

    @property
    def rule(self) -> Rule:
        """How labels, scores and ties are read."""
        dtype = self.score_dtype if self.score_dtype in DTYPES else "float64"  # else the run is counted in this type
        return Rule(self.order, dtype, retrieved_only=self.retrieved_only, labels=self.labels)

    def kept(self, evaluation: Evaluation) -> NDArray[np.bool_]:
        """The judged queries that count, (n_judged_queries,)."""
        kept = np.ones(len(evaluation.qrels.queries), dtype=bool)
        if self.missing == "skip":
            kept &= evaluation.ties.present
        if self.no_relevant == "skip":
            kept &= evaluation.has_relevant(self.measure, self.rule)
        return kept

    def get(self, switch: str) -> Any:
        """The position of a switch; None if the measure does not have it."""
        return getattr(self if switch in FIELDS else self.measure, switch, None)

    def turn(self, switch: str, position: Any) -> Settings:
        """The same with one switch in another position."""
        if switch in FIELDS:
            return self._replace(**{switch: position})
        return self._replace(measure=self.measure(**{switch: position}))

    def steps(self, other: Settings) -> Iterator[tuple[str, Settings]]:
        """From here to other settings, one switch at a time, in the fixed order of `SWITCHES`."""
        now = self
        for switch in dict.fromkeys([*SWITCHES, *self.measure.params]):
            if now.get(switch) != other.get(switch):
                now = now.turn(switch, other.get(switch))
                yield switch, now
        assert now == other


FIELDS = frozenset(Settings._fields) - {"measure"}

#: The switches in the order in which they are turned, and what they are called: first which documents and queries
#: count, then what they are worth, then their order. Other parameters of a measure come last, under their own names.
SWITCHES = {
    "drop_self": "self-documents",
    "missing": "missing queries",
    "no_relevant": "queries without relevant documents",
    "labels": "fractional labels",
    "retrieved_only": "unretrieved documents",
    "rel": "label threshold",
    "gains": "gain",
    "norm": "divisor",
    "judged_only": "unjudged documents",
    "depth": "lists cut",
    "cutoff": "cutoff",
    "ranked_by": "list order",
    "score_dtype": "score type",
    "order": "order of ties",
}


class Numbers:
    """The numbers that settings give for one run; each is computed once."""

    def __init__(self, evaluation: Evaluation):
        self.given = evaluation
        self._evaluations: dict[tuple[bool, str, int | None], Evaluation] = {}
        self._values: dict[Settings, float | None] = {}

    @classmethod
    def of(cls, qrels: Qrels, source: RunSource, measure: Measure, options: Options) -> Numbers:
        """Count a run for any settings of a measure: -J needs documents of label 0."""
        measures = [measure, *([] if measure.judged_only else [measure(judged_only=True)])]
        return cls(Evaluation.of(qrels, source, options, measures))

    @classmethod
    def of_edited(cls, qrels: Qrels, run: Run) -> Numbers:
        """Count a run that was edited, perhaps so that it has no judged documents."""
        source, options = MemoryRun(run), Options(oblivious="trec_eval" if run.rank is None else "rank")
        return cls(Evaluation(count_run(qrels, source, options, is_edited=True), options, source, qrels))

    def value(self, settings: Settings) -> float | None:
        """The number; None if no query is left, and for what has no number."""
        if settings not in self._values:
            self._values[settings] = self._compute(settings)
        return self._values[settings]

    def _compute(self, settings: Settings) -> float | None:
        cuts_rows = settings.depth is not None and (settings.measure.judged_only or settings.retrieved_only)
        if settings.ranked_by != "score" or cuts_rows:
            return self._compute_of_rows(settings)
        evaluation, measure, rule = self._evaluation(settings), settings.measure, settings.rule
        if settings.order == EXPECTED:
            grouped = evaluation.read_by(measure, rule)
            found = engine.expected(measure, grouped, evaluation.options.sampling)
        else:
            in_order = evaluation.in_order(measure, rule)
            if in_order is None:
                return None
            found = in_order
        kept = settings.kept(evaluation) & ~np.isnan(found)  # where a measure is not defined, the query is left out
        return float(measure.aggregation.of_values(found[kept])) if kept.any() else None

    def _compute_of_rows(self, settings: Settings) -> float | None:
        """The number of lists that are ranked anew or cut first, as by trec_eval -M -J; None if ties leave it open."""
        evaluation = self._evaluation(settings._replace(depth=None))
        if (source := evaluation.readable) is None:
            raise InputError(NO_ROWS)
        rows, options = source.rows(), evaluation.options
        rows = rows if options.score_dtype is None else rows.projected(options.score_dtype)
        rows = rows.judged_only(evaluation.qrels) if options.judged_only else rows
        if settings.ranked_by != "score":
            rows = rank_by(rows, settings.ranked_by)
        elif settings.score_dtype != "float64":
            rows = rows.projected(settings.score_dtype)
        if settings.depth is not None:
            if settings.order == EXPECTED:
                return None
            rows = arrange_ties(rows, settings.order, seed=0)
            assert rows.rank is not None
            rows = rows.take(np.flatnonzero(rows.rank <= settings.depth))
        # The rows are so already.
        read = settings._replace(depth=None, ranked_by="score", score_dtype="float64", drop_self=False)
        return Numbers.of_edited(evaluation.qrels, rows).value(read)

    def _evaluation(self, settings: Settings) -> Evaluation:
        given = self.given
        drop_self = settings.drop_self and bool(given.self_queries)
        dtype = "float64" if settings.score_dtype in DTYPES else settings.score_dtype
        key = drop_self, dtype, settings.depth
        if key not in self._evaluations:
            found = given.without_self if drop_self else given
            if found is not None and dtype != "float64":
                found = found.edited(score_dtype=dtype)
            if found is None:
                raise InputError(NO_ROWS)
            if settings.depth != found.options.depth:
                options = replace(found.options, depth=settings.depth)
                found = Evaluation(found.counted, options, found.source, found.qrels)
            self._evaluations[key] = found
        return self._evaluations[key]


def rank_by(run: Run, order: str) -> Run:
    """The run with scores that fall along its rank column (``"rank"``) or its rows (``"given"``)."""
    place = np.arange(len(run)) if order == "given" or run.rank is None else run.rank
    return replace(run, value=-place.astype(np.float64))
