"""`Evaluation`: a counted run under some options, from which any measure follows.

Counting comes first and costs most. Measuring comes after it, as often as needed: `evaluate` measures once, and
`Report.at`, `compare` and the HTML page measure the same counts again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import lru_cache
from typing import Any
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from tiewise.analysis.options import Options
from tiewise.caching import LazyMapping, cached_method, cached_property
from tiewise.data.columns import Floats, freeze, warn_of_row_numbers
from tiewise.data.judgments import Qrels
from tiewise.errors import InputError, MeasureError
from tiewise.io import as_qrels
from tiewise.io.edited_run import edit_source
from tiewise.metrics import engine
from tiewise.metrics.compiled import STATISTICS, Statistics, compute_statistics, tables_of
from tiewise.metrics.cut_lists import reaches_last_group
from tiewise.metrics.definition import Measure
from tiewise.metrics.estimate import Estimates
from tiewise.metrics.grouped_judgments import GroupedJudgments
from tiewise.metrics.names import MeasureLike, parse_all
from tiewise.metrics.tool_rules import TOOLS, Rule, rule_for, task_drops_self
from tiewise.results.wording import list_examples, spell_option
from tiewise.ties.counted import Counted, RunSource
from tiewise.ties.groups import TieGroups
from tiewise.ties.orders import TOOL_ORDERS


def resolve_measures(measures: MeasureLike | Iterable[MeasureLike]) -> list[Measure]:
    """The measures of some names; measures that compare two rankings are an error."""
    chosen = parse_all(measures)
    for measure in chosen:
        if measure.compares:
            raise MeasureError(f"{measure} compares two rankings. Use similarity() for it, or RBP for judgments.")
    return chosen


def count_run(
    qrels: Qrels | None, source: RunSource, options: Options, *, all_judged: bool = True, is_edited: bool = False
) -> Counted:
    """A run, counted for the orders and score types of all known tools.

    Documents of label 0 are counted with `all_judged`, which few measures need: in a TREC pool they are nine of ten.
    If a run `is_edited`, all its judged documents may have been dropped.
    """
    if qrels is None:
        qrels = source.qrels if isinstance(source, Counted) else as_qrels(qrels)  # type: ignore[arg-type]  # raises
    check_judged(qrels)
    orders = (*TOOL_ORDERS, *(["rank"] if options.oblivious == "rank" else []))
    counts_all = all_judged or options.judged_only or isinstance(source, Counted)
    judged = qrels if counts_all else qrels.nonzero
    counted = source.count(judged, orders, score_dtype=options.score_dtype, judged_only=options.judged_only)
    _check_common(qrels, source, counted, documents=not (options.drop_self or is_edited))
    return counted


def _check_common(qrels: Qrels, source: RunSource, counted: Counted, *, documents: bool) -> None:
    """Raise if the run has no query, or no list a document judged for its query, as where ids do not match.

    `documents` says whether documents are looked at: what was dropped may have been all.
    """
    if counted.n_rows is None:  # only tie groups are known
        return
    for what in counted.numbered:
        warn_of_row_numbers(what, qrels.queries if what == "query" else qrels.docs)
    present = counted.n_present
    check_common_queries(qrels, present, counted.queries, counted.n_queries)
    if not documents or counted.found is None or counted.found.any() or not counted.docs or not len(qrels):
        return
    if present > 1 or qrels.source is not None or counted.source is not None:  # else one query, made by hand
        if not isinstance(source, Counted) and not set(qrels.docs).isdisjoint(source.rows().docs):
            raise InputError(
                "No list holds a document judged for its query, but lists of other queries do. Are the scores "
                f"distances ({spell_option('distances')}), or the query ids shifted?"
            )
        is_response = counted.source is not None and counted.source.format == "reranker"
        is_numbered = is_response and all(map(str.isdecimal, counted.docs))
        hint = " Documents of a line without doc_ids are numbered: add doc_ids." if is_numbered else ""
        raise InputError(
            f"The run and the qrels have no document in common. {list_documents(counted.docs, qrels)}{hint}"
        )


def check_judged(qrels: Qrels) -> None:
    """Raise if there is no judged query."""
    if not len(qrels.queries):
        raise InputError("The qrels are empty: there is nothing to measure against.")


def check_common_queries(qrels: Qrels, present: int, queries: Sequence[str], n_queries: int | None) -> None:
    """Raise if no judged query is `present` in a run; `queries` are some of the `n_queries` that it has."""
    if present:
        return
    if not n_queries:
        raise InputError("The run is empty: it has no query.")
    raise InputError(
        "The run and the qrels have no query in common. Queries of the run: "
        f"{list_examples(queries, total=n_queries)}; of the qrels: {list_examples(qrels.queries)}."
    )


def list_documents(docs: Sequence[str], qrels: Qrels) -> str:
    """Some documents of a run, and some of the qrels, as a sentence."""
    judged = list_examples(qrels.ids(np.arange(min(3, len(qrels)))))
    return f"Documents of the run: {list_examples(dict.fromkeys(docs))}; of the qrels: {judged}."


@lru_cache(maxsize=256)
def _by_rule(measures: tuple[Measure, ...], oblivious: str | None) -> list[tuple[Rule | None, tuple[Measure, ...]]]:
    """Measures by the order and score type of their oblivious values.

    `bias` is the effect of an order, not of a definition: what else a tool does is not part of these rules.
    """
    found: dict[Rule | None, list[Measure]] = {}
    for measure in measures:
        rule = None if oblivious is None else rule_for(oblivious, measure)
        found.setdefault(None if rule is None else Rule(rule.order, rule.dtype), []).append(measure)
    return [(rule, tuple(some)) for rule, some in found.items()]


@lru_cache(maxsize=256)
def _needs(measures: tuple[Measure, ...]) -> tuple[bool, Measure | None]:
    """Whether some measures need all judged documents, and the first one that needs subtopics."""
    diverse = next((measure for measure in measures if measure.needs_subtopics), None)
    return any(measure.needs_all_judged for measure in measures), diverse


class Evaluation:
    """A counted run under some options: the value of any measure, over all orders of ties or in one of them."""

    def __init__(self, counted: Counted, options: Options, source: RunSource | None = None, qrels: Qrels | None = None):
        self.counted, self.options = counted, options
        self.source = source  # for the few questions that need all rows; it is not pickled
        self.qrels = counted.qrels if qrels is None else qrels  # all judgments
        self._statistics: list[ref[Statistics]] = []  # as long as a report has them

    @classmethod
    def of(cls, qrels: Qrels | None, source: RunSource, options: Options, measures: Iterable[Measure]) -> Evaluation:
        """Count a run for some measures."""
        measures = tuple(measures)
        all_judged, diverse = _needs(measures)
        if diverse is not None and qrels is not None:
            qrels.check_subtopics(diverse)
        tool = TOOLS.get(options.oblivious or "")
        if not (isinstance(source, Counted) and tool is not None and tool.drops_self):  # else the tool implies it
            source = edit_source(source, drop_self=options.drop_self, distances=options.distances)
        made = cls(count_run(qrels, source, options, all_judged=all_judged), options, source, qrels)
        if made.self_queries and tool is not None and tool.in_some_tasks and task_drops_self(made.counted.source):
            return cls.of(qrels, source, replace(options, drop_self=True), measures)
        if made.self_queries and not source.is_constant:
            _ = made.without_self  # later the run may have changed
        return made

    def __getstate__(self) -> dict[str, Any]:
        kept = ("counted", "options", "qrels", "_counted_all", "without_self")
        own = {name: vars(self)[name] for name in kept if name in vars(self)}
        return own | {"source": None, "_statistics": []}

    def __deepcopy__(self, memo: dict[int, Any]) -> Evaluation:
        copied = Evaluation.__new__(Evaluation)
        vars(copied).update(deepcopy(self.__getstate__(), memo), source=self.source)  # in this process, it can be read
        return copied

    @property
    def readable(self) -> RunSource | None:
        """The run, if its rows can be read: tie groups have none, and another process does not have the run."""
        return None if isinstance(self.source, Counted) else self.source

    @property
    def ties(self) -> TieGroups:
        """The tie groups of the scores as they are, for the judged documents that were counted."""
        return self.counted.ties["float64"]

    def _ties(self, dtype: str, *, all_judged: bool) -> TieGroups:
        counted, depth = self._counted_all if all_judged else self.counted, self.options.depth
        ties = counted.ties[dtype] if depth is None else counted.ties[dtype].to_depth(depth)
        return ties if all_judged or ties.qrels.pool is not None else ties.with_nonzero_labels()

    @cached_property
    def _counted_all(self) -> Counted:
        """The counts with those of judged documents of label 0."""
        if self.counted.qrels.pool is None:
            return self.counted
        if (source := self.readable) is None or not source.is_constant:
            raise InputError(
                "The run was counted without the documents of label 0, which this measure needs. Evaluate it again "
                "with this measure."
            )
        return count_run(self.qrels, source, self.options)

    @property
    def self_queries(self) -> int:
        """How many judged queries have a document with their own id in their list."""
        return self.counted.self_queries

    @cached_property
    def self_stands_first(self) -> bool:
        """Whether these documents are mostly the first of their lists: queries that are documents too find themselves.

        Elsewhere ids coincide by chance, or because Tiewise numbered rows. True if the run cannot be read.
        """
        if self.counted.numbered:
            return False
        if (source := self.readable) is None:
            return True
        run = source.rows()
        rows, first = run.self_rows, np.full(len(run.queries), -np.inf)
        np.maximum.at(first, run.query, run.score)
        return bool(np.mean(run.score[rows] == first[run.query[rows]]) >= 0.5) if len(rows) else True

    @cached_property
    def without_self(self) -> Evaluation | None:
        """The same without documents that have the id of their query; None if the run cannot be read any more."""
        return self.edited(drop_self=True) if self.self_queries else self

    def edited(self, **changes: Any) -> Evaluation | None:
        """The same run with `drop_self` or `distances`; None if the run cannot be read any more."""
        if (source := self.readable) is None:
            return None
        options = replace(self.options, **changes)
        source = edit_source(source, drop_self=options.drop_self, distances=options.distances)
        return Evaluation(count_run(self.qrels, source, options), options, source, self.qrels)

    def grouped(self, measure: Measure, dtype: str = "float64", *, retrieved_only: bool = False) -> GroupedJudgments:
        """The tie groups that matter to a measure, for scores read as a type, or for retrieved judgments alone.

        Most measures do not tell judged non-relevant documents from unjudged ones: they need no document of label 0.
        """
        return self._group(dtype, measure.needs_all_judged, measure.judged_only, retrieved_only)

    @cached_method
    def _group(self, dtype: str, all_judged: bool, judged_only: bool, retrieved_only: bool) -> GroupedJudgments:
        ties = self._ties(dtype, all_judged=all_judged)
        if dtype != "float64" and ties.same_places(self._ties("float64", all_judged=all_judged)):
            return self._group("float64", all_judged, judged_only, retrieved_only)  # it makes no difference
        return engine.group(ties.retrieved_only() if retrieved_only else ties, judged_only)

    # -- all orders ---------------------------------------------------------------------------------------------

    def estimates(self, measures: Iterable[Measure]) -> Mapping[Measure, Estimates]:
        """Each measure for every query that counts, over the orders of ties, with the value of the oblivious order."""
        chosen = tuple(measures)
        compiled = self._compute(chosen)
        others = [] if len(chosen) == sum(len(one.rows) for one in compiled) else list(chosen)
        general = self._estimate([one for one in others if not any(one in each.rows for each in compiled)])

        def make(measure: Measure) -> Estimates:
            statistics = next((one for one in compiled if measure in one.rows), None)
            found = general[measure] if statistics is None else self._make(measure, statistics)
            return found.take(self.counts(measure, found))

        return LazyMapping(chosen, make)

    def _compute(self, measures: tuple[Measure, ...]) -> list[Statistics]:
        """The statistics of those of the measures that have compiled closed forms."""
        counted, options, each = self.counted, self.options, list[Statistics]()
        for rule, some in _by_rule(measures, options.oblivious):
            if rule is not None and not counted.has(rule.order, rule.dtype):
                continue
            tables = tables_of(some, counted)
            if not tables.rows:
                continue
            order = rule.order if rule is not None and rule.dtype == "float64" else None
            bounded = not options.complete
            found = compute_statistics(tables, counted, order, "float64", options.depth, truncated=bounded)
            if rule is not None and order is None:
                read = rule.order, rule.dtype, options.depth
                other = compute_statistics(tables, counted, *read, truncated=False, moments=False)
                found = found.with_oblivious(other)
            each.append(found)
        self._statistics = [one for one in self._statistics if one()] + list(map(ref, each))
        return each

    def _make(self, measure: Measure, statistics: Statistics) -> Estimates:
        row = statistics.rows[measure]
        expected, minimum, maximum, variance, oblivious, low, high = statistics.values[:, row]
        has_none = type(measure).residual is Measure.residual
        residual = None if has_none else measure.residual(self.grouped(measure))
        return Estimates(
            measure.name,
            self.qrels.queries,
            expected=expected,
            minimum=minimum,
            maximum=maximum,
            variance=variance,
            oblivious=None if self.options.oblivious is None else oblivious,
            residual=residual,
            cut=(low, high) if statistics.is_reached[row] else None,
            cut_likely=not self.options.complete and self.cut_is_likely,
            aggregation=measure.aggregation,
            limits=measure.limits,
            known_sums=dict(zip(STATISTICS, statistics.sums[row], strict=True)) if residual is None else None,
        )

    def counts(self, measure: Measure, found: Estimates) -> NDArray[np.bool_]:
        """The queries that count and for which a measure is defined, (n_queries,)."""
        is_defined: NDArray[np.bool_] = ~np.isnan(found.expected)
        keeps_all = "skip" not in (self.options.missing, self.options.no_relevant)
        return is_defined if keeps_all else is_defined & self.kept(measure)

    def _estimate(self, measures: list[Measure]) -> dict[Measure, Estimates]:
        """Each measure for every query; measures with the same tie groups and order are computed together."""
        options = self.options
        rules = {one: rule for rule, some in _by_rule(tuple(measures), options.oblivious) for one in some}
        together: dict[tuple[GroupedJudgments, str | None], list[Measure]] = {}
        for measure in measures:
            rule, grouped = rules[measure], self.grouped(measure)
            is_counted = rule is not None and rule.dtype == "float64" and rule.order in grouped.ties.before
            together.setdefault((grouped, rule.order if rule and is_counted else None), []).append(measure)
        found: dict[Measure, Estimates] = {}
        for (grouped, order), some in together.items():
            sampling, bounded = options.sampling, not options.complete
            each = engine.estimates_of(some, grouped, oblivious=order, sampling=sampling, truncated=bounded)
            for measure, one in each.items():
                rule = rules[measure]
                if rule is not None and order is None:
                    one.oblivious = self.in_order(measure, rule)
                one.cut_likely = bounded and self.cut_is_likely
            found |= each
        return found

    def kept(self, measure: Measure) -> NDArray[np.bool_]:
        """The queries that count, (n_queries,)."""
        kept = np.ones(len(self.qrels.queries), dtype=bool)
        if self.options.missing == "skip":
            kept &= self.ties.present
        if self.options.no_relevant == "skip":
            kept &= self.has_relevant(measure)
        return kept

    def has_relevant(self, measure: Measure, rule: Rule | None = None) -> NDArray[np.bool_]:
        """Whether a query has a relevant document for a measure, as a rule reads labels, retrieved or not."""
        grouped = self.grouped(measure) if rule is None else self.read_by(measure, rule._replace(retrieved_only=False))
        return grouped.judged(measure.relevant(grouped.ties.qrels.label)) > 0

    @cached_property
    def cut_is_likely(self) -> bool:
        """Whether one list or more ends between equal scores, if these are as frequent there as in the whole run."""
        share = self.counted.equal_share
        if share is None:  # only tie groups are known
            return bool((self.ties.lowest_size > 1).any())
        return share * self.counted.n_present >= 1

    def _find_statistics(self, measure: Measure) -> tuple[Statistics, int] | None:
        """The compiled statistics of a measure, if they were computed, and its row there."""
        for known in self._statistics:
            one = known()
            row = None if one is None else one.rows.get(measure)
            if one is not None and row is not None:
                return one, row
        return None

    def mean_bounds(self, measure: Measure) -> tuple[float, float] | None:
        """Bounds of what is expected of the mean if lists were cut; None if they do not follow from compiled sums."""
        found = self._find_statistics(measure)
        if found is None or "skip" in (self.options.missing, self.options.no_relevant):
            return None
        (*_, low, high), n, of_sum = found[0].sums[found[1]], len(self.qrels.queries), measure.aggregation.of_sum
        return of_sum(low, n), of_sum(high, n)

    def reaches_last_group(self, measure: Measure) -> NDArray[np.bool_]:
        """Whether a measure looks into the last tie group of a list that may be truncated there, (n_queries,)."""
        found = None if self.options.complete else self._find_statistics(measure)
        return reaches_last_group(measure, self.grouped(measure)) if found is None else found[0].reached[found[1]]

    # -- one order ----------------------------------------------------------------------------------------------

    def knows(self, rule: Rule) -> bool:
        """Whether the run was counted for the order and the score type of a rule."""
        return self.counted.has(rule.order, rule.dtype)

    def in_order(self, measure: Measure, rule: Rule) -> Floats | None:
        """The value of a measure for each query when ties are broken by a rule; None if that was not counted."""
        if rule.order is None or not self.knows(rule):
            return None
        return self._value(measure, self.read_by(measure, rule), rule.order)  # several tools have one rule

    def mean_in_order(self, measure: Measure, rule: Rule) -> float | None:
        """The same over the queries that count and for which it is defined; None if there are none."""
        values = self.in_order(measure, rule)
        if values is None:
            return None
        counts = self.kept(measure) & ~np.isnan(values)
        return measure.aggregation.of_values(values[counts]) if counts.any() else None

    @cached_method
    def _value(self, measure: Measure, grouped: GroupedJudgments, order: str) -> Floats:
        return freeze(engine.value(measure, grouped, grouped.oblivious(order)))

    @cached_method
    def read_by(self, measure: Measure, rule: Rule) -> GroupedJudgments:
        """The tie groups that matter to a measure, with labels and scores as a rule reads them."""
        grouped = self.grouped(measure, rule.dtype, retrieved_only=rule.retrieved_only)
        if rule.labels not in ("cut", "round") or self.qrels.has_whole_labels:
            return grouped
        ties = grouped.ties
        return GroupedJudgments(replace(ties, qrels=ties.qrels.with_whole_labels(rounded=rule.labels == "round")))
